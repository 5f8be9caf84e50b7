"""A batch of graphs and the features of its nodes."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from skcontrast.graphs import GraphBatch, pack_graphs
from tests.graphs.common import check_topology


def as_batch(graphs):
    topology = pack_graphs(graphs).topology
    numbers = torch.arange(topology.n_nodes)
    return GraphBatch(topology, numbers[:, None] * torch.tensor([1.0, -1.0]), numbers % 3, 3)


def test_features_are_numbers_and_a_one_hot_code(undirected):
    batch = as_batch(undirected)
    assert batch.shape == (len(undirected), None, 5) and len(batch) == len(undirected)
    assert batch.x.shape == (batch.n_nodes, 5)
    assert batch.node_ptr.diff().tolist() == [len(graph) for graph in undirected]
    assert batch.x[:, :2].equal(batch.dense)
    assert batch.x[:, 2:].equal(torch.eye(3)[batch.codes])
    assert GraphBatch(batch.topology, batch.dense).x is batch.dense


def test_ordinal_categories_are_a_cumulative_code_wherever_the_batch_goes(undirected):
    batch = replace(as_batch(undirected), ordinal=True)
    assert batch.x[:, 2:].equal(torch.eye(3).flip(1).cumsum(1).flip(1)[batch.codes])
    nodes = torch.arange(batch.n_nodes) % 2 == 0
    for again, rows in (
        (batch[:], slice(None)),
        (batch.to("cpu"), slice(None)),
        (batch.with_edges(batch.edge_index), slice(None)),
        (torch.cat([batch[:2], batch[2:]]), slice(None)),
        (batch.keep(nodes), nodes),
        (batch.mask(~nodes).keep(nodes), nodes),
    ):
        assert again.x.equal(batch.x[rows])
    assert not batch.mask(nodes).x[nodes].any()


@pytest.mark.parametrize(
    "rows", [slice(1, 4), slice(None, None, 2), [3, 0, 3], [-1, 2], [True, False] * 4 + [True]]
)
@pytest.mark.parametrize("as_", [list, np.array, torch.tensor])
def test_rows_of_a_batch_carry_their_features(undirected, rows, as_):
    batch = as_batch(undirected)
    taken = batch[rows if isinstance(rows, slice) else as_(rows)]
    wanted = np.arange(len(batch))[rows]
    check_topology(taken.topology, [undirected[row] for row in wanted])
    parts = batch.dense.split(batch.topology.sizes.tolist())
    assert taken.dense.equal(torch.cat([parts[row] for row in wanted]))
    assert taken.codes.equal(taken.dense[:, 0].long() % 3)


def test_a_batch_is_put_together_by_cat(undirected):
    batch = as_batch(undirected)
    again = torch.cat([batch[:2], batch[2:3], batch[3:]])
    assert isinstance(again, GraphBatch) and again.n_codes == 3
    assert again.x.equal(batch.x) and again.edge_index.equal(batch.edge_index)
    plain = GraphBatch(batch.topology, batch.dense)
    assert torch.cat([plain, plain]).codes is None
    with pytest.raises(TypeError):
        torch.stack([batch, batch])


def test_kept_nodes_carry_their_features_and_masked_ones_lose_them(undirected):
    batch = as_batch(undirected)
    nodes = torch.arange(batch.n_nodes) % 2 == 0
    kept, masked = batch.keep(nodes), batch.mask(nodes)
    assert kept.x.equal(batch.x[nodes]) and kept.batch.equal(batch.batch[nodes])
    assert masked.topology is batch.topology
    assert (masked.x[nodes] == 0).all() and masked.x[~nodes].equal(batch.x[~nodes])
    assert batch.codes.min() == 0
