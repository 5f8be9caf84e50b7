"""What edge attributes add: the default embedder with and without them, on molecules and signs.

    python -m benchmarks.studies.edge_attributes --data-home DIR --sets MUTAG PTC_MR Cuneiform
    python -m benchmarks.studies.edge_attributes --sdf FILE [FILE]  # needs RDKit

The sets of TUDataset have edge labels: bond types of molecules (MUTAG, PTC_MR), or whether an edge
lies within a wedge (Cuneiform, whose edges have coordinates too; those of nodes are left out).
The SDF files are the solubility set of RDKit's book, ``solubility.train.sdf`` and
``solubility.test.sdf``, 1,282 molecules with three classes, `SOL_classification`; the nodes are
heavy atoms, labeled by their element, the edges bonds, labeled by their type.

A representation is scored by a linear probe, RidgeClassifierCV on standardised columns, on ten
folds, or as many as the smallest class allows. The seeds change folds, weights and batches.
Besides the default embedder, trained and untrained, stand bags: how often each node label occurs,
with and without how often each edge label does. Each column "difference" is paired over the seeds:
with edges less without, and the p of a paired t-test.
"""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import RidgeClassifierCV
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks._graph_sets import load_graphs
from benchmarks._results import Table, make_parser, paired, spread
from skcontrast import ContrastiveEmbedder
from skcontrast.graphs import PackedGraphs
from skcontrast.kinds import Graphs

UNTRAINED = {"lr": 1e-12, "max_epochs": 1}


def molecules(files):
    """Return the molecules of SDF files as graphs, and their classes."""
    from rdkit import Chem

    edges, sizes, atoms, bonds, classes = [], [0], [], [], []
    for molecule in (m for file in files for m in Chem.SDMolSupplier(file) if m is not None):
        start = sizes[-1]
        sizes.append(start + molecule.GetNumAtoms())
        atoms += [atom.GetSymbol() for atom in molecule.GetAtoms()]
        classes.append(molecule.GetProp("SOL_classification"))
        for bond in molecule.GetBonds():
            u, v = start + bond.GetBeginAtomIdx(), start + bond.GetEndAtomIdx()
            edges += [(u, v), (v, u)]
            bonds += [str(bond.GetBondType())] * 2
    graphs = PackedGraphs.from_arrays(np.transpose(edges), sizes, labels=atoms, edge_labels=bonds)
    return graphs, np.unique(classes, return_inverse=True)[1]


def read(name, args):
    """Return the graphs of a set, whose nodes have labels alone, and their classes."""
    if name == "solubility":
        return molecules(args.sdf)
    graphs, y = load_graphs(name, args.data_home)
    graphs.attributes = None
    return graphs, y


def bag(graphs, with_edges):
    """Return the logarithm of how often each label occurs, shape (n_graphs, n_labels)."""
    topology = graphs.topology
    owner = topology.graph_of_node
    parts = [(owner, graphs.labels, len(graphs.categories))]
    if with_edges:
        parts.append((owner[topology.targets], graphs.edge_labels, len(graphs.edge_categories)))
    counts = [np.zeros((len(graphs), n)) for *_, n in parts]
    for count, (rows, labels, _) in zip(counts, parts, strict=True):
        np.add.at(count, (rows.numpy(), labels.numpy()), 1)
    return np.log1p(np.hstack(counts))


def accuracy(H, y, seed):
    """Return the accuracy of a linear probe on up to ten folds, in percent."""
    probe = make_pipeline(StandardScaler(), RidgeClassifierCV(np.logspace(-1, 4, 11)))
    n_folds = min(10, np.unique(y, return_counts=True)[1].min())
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    return 100 * cross_val_score(probe, H, y, cv=folds).mean()


def scores(graphs, y, args, **params):
    """Return the accuracies of an embedder for each seed."""
    found = []
    for seed in range(args.seeds):
        embedder = ContrastiveEmbedder(**params, random_state=seed)
        found.append(accuracy(embedder.fit_transform(graphs), y, seed))
    return found


def rows_of(graphs, y, args):
    """Yield for each row its name and the accuracies without and with what it is about."""
    bags = [bag(graphs, with_edges) for with_edges in (False, True)]
    yield "bag", *([accuracy(B, y, seed) for seed in range(args.seeds)] for B in bags)
    trained = {"max_epochs": args.epochs}
    for name, params in (("untrained", UNTRAINED), ("trained", trained)):
        without = scores(graphs, y, args, kind=Graphs(edge_features=None), **params)
        yield name, without, scores(graphs, y, args, **params)


def main():
    """Print a table per set."""
    parser = make_parser(__doc__)
    parser.add_argument("--data-home", help="directory of the datasets; else they are fetched")
    parser.add_argument("--sets", nargs="*", default=["MUTAG", "PTC_MR"])
    parser.add_argument("--sdf", nargs="*", default=[], help="files of the solubility set")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    for name in [*args.sets, *(["solubility"] if args.sdf else [])]:
        graphs, y = read(name, args)
        with Table(name, args, packages=["rdkit"], ratios=["without", "with"], digits=2) as table:
            for row, without, with_it in rows_of(graphs, y, args):
                table.add(
                    {
                        "row": row,
                        "without": spread(without),
                        "with": spread(with_it),
                        "difference": spread(np.subtract(with_it, without).tolist()),
                        **paired(with_it, without),
                    }
                )


if __name__ == "__main__":
    main()
