"""An epoch of InfoGraph: fit next to the usual loop of PyTorch Geometric.

    OMP_WAIT_POLICY=PASSIVE python -m benchmarks.speed.graph_epoch
    python -m benchmarks.speed.graph_epoch --data-home DIR --set DD --rounds 3

Both train GIN of 3 layers of width 32 with sum pooling and two projection heads of the same form,
by Adam and the Jensen–Shannon loss of nodes against graphs, in batches of 128. The usual loop is a
DataLoader over ``Data`` objects, GINConv, global_add_pool and the scores of all nodes and graphs
as one matrix. Epochs are timed in turn within one process, after one of each to warm up; the ratio
is the median over rounds. Last, how long 2,000 networkx graphs take to be packed.
"""

from __future__ import annotations

from time import perf_counter

import networkx as nx
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GINConv, global_add_pool

from benchmarks._graph_sets import load_graphs
from benchmarks._results import Table, make_parser
from benchmarks.speed._bench import in_turn, projection_head, ratios
from skcontrast import ContrastiveEmbedder
from skcontrast.encoders import GIN
from skcontrast.frameworks import InfoGraph
from skcontrast.graphs import pack_graphs
from skcontrast.graphs._features import NodeFeatures
from skcontrast.kinds import Graphs

BATCH, WIDTH, N_LAYERS = 128, 32, 3


class UsualNetwork(nn.Module):
    """GIN as it is usually written; returns projections of nodes and of graphs."""

    def __init__(self, n_features):
        super().__init__()
        widths = [n_features, *[WIDTH] * N_LAYERS]
        self.convs = nn.ModuleList(
            GINConv(nn.Sequential(nn.Linear(k, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH)))
            for k in widths[:-1]
        )
        self.norms = nn.ModuleList(nn.BatchNorm1d(WIDTH) for _ in self.convs)
        self.heads = nn.ModuleList(projection_head(N_LAYERS * WIDTH, 64) for _ in range(2))

    def forward(self, x, edge_index, batch):
        """Return (n_nodes, 64) and (n_graphs, 64)."""
        states = []
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = norm(conv(x, edge_index).relu())
            states.append(x)
        h = torch.cat(states, 1)
        return self.heads[0](h), self.heads[1](global_add_pool(h, batch))


def usual_loss(nodes, graphs, batch):
    """Jensen–Shannon loss of nodes against graphs, all scores at once."""
    scores = nodes @ graphs.T
    own = F.one_hot(batch, len(graphs)).bool()
    return F.softplus(-scores[own]).mean() + F.softplus(scores[~own]).mean()


def as_data(batch, n):
    """Return the n graphs of a batch as objects of PyTorch Geometric."""
    one_by_one = (batch[torch.tensor([k])] for k in range(n))
    return [Data(x=graph.x, edge_index=graph.edge_index) for graph in one_by_one]


def usual_epoch(graphs):
    """Return a function that trains for an epoch as a script would."""
    batch = NodeFeatures("degree", True).fit(graphs).to_tensor(graphs, "cpu")
    loader = DataLoader(as_data(batch, len(graphs)), BATCH, shuffle=True)
    network = UsualNetwork(batch.shape[2])
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3, fused=True)

    def epoch():
        for step in loader:
            optimizer.zero_grad()
            usual_loss(*network(step.x, step.edge_index, step.batch), step.batch).backward()
            optimizer.step()

    return epoch


def packing_seconds(graphs, n_graphs=2000):
    """Return how long it takes to pack networkx graphs of the given ones."""
    as_networkx = []
    for k in range(min(n_graphs, len(graphs))):
        graph = nx.Graph()
        graph.add_nodes_from(range(graphs.sizes[k]))
        graph.add_edges_from(graphs[[k]].topology.edge_index.T.tolist())
        as_networkx.append(graph)
    start = perf_counter()
    pack_graphs(as_networkx)
    return perf_counter() - start, len(as_networkx)


def main():
    """Print the ratio of the epochs, and the time of packing."""
    options = {"data_home": str, "set": "REDDIT-BINARY", "rounds": 5}
    args = make_parser(__doc__, **options).parse_args()
    torch.manual_seed(0)
    graphs, _ = load_graphs(args.set, args.data_home)
    embedder = ContrastiveEmbedder(
        encoder=GIN(N_LAYERS, WIDTH),
        framework=InfoGraph(),
        kind=Graphs(node_features="degree"),
        batch_size=BATCH,
        random_state=0,
    )
    contestants = {
        "usual loop": usual_epoch(graphs),
        "skcontrast": lambda: embedder.partial_fit(graphs),
    }
    seconds = in_turn(contestants, args.rounds)
    relative = ratios(seconds, "usual loop")
    packages = ["torch_geometric", "networkx"]
    with Table("epoch", args, packages=packages, ratios=["ratio"], labels=2, digits=2) as table:
        for name, ratio in relative.items():
            row = {"contestant": name, "threads": torch.get_num_threads()}
            table.add({**row, "s an epoch": np.median(seconds[name]), "ratio": ratio})
    took, n = packing_seconds(graphs)
    with Table("packing", args, packages=packages, ratios=[], digits=1) as table:
        table.add({"networkx graphs": n, "s": took})


if __name__ == "__main__":
    main()
