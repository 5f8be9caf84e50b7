"""
Isomers: graphs with the same degrees
=====================================

Isomers are molecules with the same atoms and bonds and different structures. The four kinds of
graphs here have the same distribution of nodes, edges and degrees, and differ in structure alone.
An embedder is trained on 800 of them without labels.

The result: with few labels, a trained graph neural network is more accurate than the same network
untrained, and counting degrees is no better than chance. Counting neighbourhoods, a training-free
feature, is as accurate as the trained network, and more so with one label per class: try it first.
With many labels, training does not matter here.
"""

# %%
# The data
# --------
# All graphs start as trees. Their nodes are branches, which have three neighbours, links, which
# have two, and leaves. How many there are of each is random and does not depend on the kind. In a
# *comb* the branches form a row. In the other kinds they form a random bush, and the links
# form *legs* at its leaves, *stems* between its branches, or a single *tail*. Then some pairs of
# edges swap their ends: a–b and c–d become a–d and c–b, which changes no degree. The nodes have no
# attributes.

from time import perf_counter

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import EdgePerturb, NodeDrop
from skcontrast.encoders import GIN
from skcontrast.features import WeisfeilerLehman

KINDS = ("comb", "legs", "stems", "tail")


def make_tree(kind, rng):
    """Return a tree with random numbers of branches, links and leaves."""
    n_branches, n_links = rng.integers(7, 12, size=2)
    tree, leaves = nx.path_graph(2), [0, 1]
    for _ in range(n_branches):
        leaf = leaves.pop(-1 if kind == "comb" else rng.integers(len(leaves)))
        new = [len(tree), len(tree) + 1]
        tree.add_edges_from((leaf, node) for node in new)
        leaves += new
    for _ in range(n_links):
        if kind == "tail":
            edges = list(tree.edges(leaves[0]))
        else:
            at_leaves = kind == "legs"
            edges = [e for e in tree.edges if (not set(e).isdisjoint(leaves)) == at_leaves]
        start, end = edges[rng.integers(len(edges))]
        tree.remove_edge(start, end)
        nx.add_path(tree, [start, len(tree), end])
    return tree


def swap_edges(tree, n_swaps, rng):
    """Return the tree after some swaps of edges, which may leave it in several pieces."""
    graph = tree.copy()
    if n_swaps:
        nx.double_edge_swap(graph, n_swaps, max_tries=1000, seed=int(rng.integers(2**31)))
    return graph


rng = np.random.default_rng(0)
y = np.arange(1200) % 4
trees = [make_tree(KINDS[k], rng) for k in y]
graphs = [swap_edges(tree, rng.binomial(tree.number_of_edges(), 0.06), rng) for tree in trees]
train, test, y_train, y_test = train_test_split(
    graphs, y, train_size=800, stratify=y, random_state=0
)

# %%
# The embedding
# -------------
# The pipeline takes a list of networkx graphs. A node without attributes is described by its
# degree. Two views of a graph lack different nodes and have different edges moved.

start = perf_counter()
embed = make_pipeline(
    NodeDrop(rate=0.1),
    EdgePerturb(rate=0.05),
    ContrastiveEmbedder(GIN(n_layers=5), batch_size=128, max_epochs=40, random_state=0),
)
H_train, H_test = embed.fit_transform(train), embed.transform(test)
print(f"trained on {len(train)} graphs without labels in {perf_counter() - start:.0f} s")

# %%
# There are three representations to compare with: the same network untrained (its learning rate is
# too small to change anything), the neighbourhoods of nodes, counted by the colours of Weisfeiler
# and Lehman, and the number of nodes of each degree. The first two are strong baselines: both
# distinguish most graphs that are not the same.

untrained = ContrastiveEmbedder(GIN(n_layers=5), max_epochs=1, lr=1e-9, random_state=0).fit(train)
colours = WeisfeilerLehman(n_rounds=5).fit(train)


def count_degrees(graphs):
    """Return how many nodes of each degree each graph has."""
    return np.array([np.bincount([d for _, d in g.degree], minlength=4) for g in graphs])


representations = {
    "trained GIN": (H_train, H_test),
    "untrained GIN": (untrained.transform(train), untrained.transform(test)),
    "neighbourhoods": (colours.transform(train), colours.transform(test)),
    "degree counts": (count_degrees(train), count_degrees(test)),
}

# %%
# Few labels
# ----------
# The same linear classifier is trained on each representation, with 1 to 50 labels per class,
# drawn twenty times.


def accuracy_with_few_labels(H_train, H_test, n_labels, n_draws=20):
    """Return the test accuracies of a linear classifier for random draws of labeled graphs."""
    accuracies = []
    for seed in range(n_draws):
        rng = np.random.default_rng(seed)
        few = np.concatenate(
            [rng.choice(np.flatnonzero(y_train == k), n_labels, replace=False) for k in range(4)]
        )
        classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
        classifier.fit(H_train[few], y_train[few])
        accuracies.append(classifier.score(H_test, y_test))
    return np.array(accuracies)


label_counts = (1, 2, 5, 10, 20, 50)
results = {
    name: [accuracy_with_few_labels(*pair, n_labels) for n_labels in label_counts]
    for name, pair in representations.items()
}
print("labels per class " + "".join(f"{n:>14d}" for n in label_counts))
for name, accuracies in results.items():
    print(f"{name:17}" + "".join(f"{a.mean():8.3f} ±{a.std():.3f}" for a in accuracies))

# %%
# Graphs, map and accuracy
# ------------------------
# Above is a tree of each kind, and the same tree after two swaps of edges. Below on the left are
# the first two principal components of the embedding of the held-out graphs. Combs and stems,
# which look alike around most of their nodes, still overlap. On the right is the accuracy for each
# number of labels.

figure = plt.figure(figsize=(7, 6.6), layout="constrained")
upper, lower = figure.subfigures(2, 1, height_ratios=(1, 1.3))
colors = ["C0", "C1", "C2", "C3"]
rng = np.random.default_rng(3)
for k, (above, below) in enumerate(upper.subplots(2, 4).T):
    tree = make_tree(KINDS[k], rng)
    swapped = swap_edges(tree, 2, rng)
    while not nx.is_connected(swapped):
        swapped = swap_edges(tree, 2, rng)
    for axis, graph in ((above, tree), (below, swapped)):
        positions = nx.kamada_kawai_layout(graph)
        nx.draw(graph, positions, axis, node_size=14, node_color=colors[k], edge_color="0.6")
    above.set_title(KINDS[k], color=colors[k])

plane, curves = lower.subplots(1, 2)
project = make_pipeline(StandardScaler(), PCA(2)).fit(H_train)
for k, kind in enumerate(KINDS):
    points = project.transform(H_test[y_test == k])
    plane.scatter(*points.T, s=10, color=colors[k], label=kind)
plane.set(title="held-out graphs, embedding", xticks=[], yticks=[])
plane.legend(loc="upper center", bbox_to_anchor=(0.5, 0), ncols=2, frameon=False)
for (name, accuracies), color in zip(results.items(), ("k", "0.4", "0.6", "0.8"), strict=True):
    means, stds = np.mean(accuracies, 1), np.std(accuracies, 1)
    curves.errorbar(label_counts, means, stds, marker="o", capsize=3, color=color, label=name)
curves.set(
    xscale="log", xlabel="labels per class", ylabel="accuracy on held-out graphs", ylim=(0, 1)
)
curves.set_xticks(label_counts, label_counts)
curves.minorticks_off()
curves.legend(loc="center right")
figure.savefig("graphs.png", dpi=120)
print("saved graphs.png")
