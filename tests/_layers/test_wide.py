"""SideFeatures: weighed blocks, of which one is trained."""

import networkx as nx
import numpy as np
import pytest
import torch
from torch import nn

from skcontrast import ContrastiveEmbedder
from skcontrast._layers._wide import FirstColumns, RunningScale, SideFeatures
from skcontrast.frameworks import MoCo
from tests.encoders.common import random_batch


def beside(*blocks, learned=3, **kwargs):
    """Return a module that has seen a batch, the batch, and what was learned of it."""
    torch.manual_seed(0)
    x = 4 * random_batch(600, (5,)) + 2
    module, h = SideFeatures(learned), nn.Linear(5, learned)(x).detach()
    for block in blocks:
        module.add(block, x.split(250), **kwargs)
    for _ in range(200):  # running statistics approach those of the batch
        module.train()(h, x)
    return module.eval(), x, h


def test_all_blocks_are_standardised_and_weigh_alike():
    module, x, h = beside(nn.Linear(5, 7), nn.Linear(5, 2))
    with torch.no_grad():
        found = module(h, x)
    assert found.shape == (600, 12) and module.width == 12 and module.learned_width == 3
    torch.testing.assert_close(found.mean(0), torch.zeros(12), rtol=0, atol=1e-3)
    squares = found.square().mean(0)
    sums = torch.stack([squares[:3].sum(), squares[3:10].sum(), squares[10:].sum()])
    torch.testing.assert_close(sums, torch.full((3,), 4.0), rtol=1e-2, atol=0)


def test_a_weight_is_a_share_of_the_squared_norm():
    module, x, h = beside(nn.Linear(5, 7), weight=3.0)
    with torch.no_grad():
        squares = module(h, x).square().mean(0)
    sums = torch.stack([squares[:3].sum(), squares[3:].sum()])
    torch.testing.assert_close(sums, torch.tensor([2.5, 7.5]), rtol=1e-2, atol=0)


def test_constant_columns_do_not_lessen_the_weight_of_a_block():
    constant = nn.Linear(5, 7)
    nn.init.zeros_(constant.weight[2:].data)
    module, x, h = beside(constant, weight=3.0)
    with torch.no_grad():
        squares = module(h, x).square().mean(0)
    assert not squares[5:].gt(1e-6).any()
    torch.testing.assert_close(
        squares[3:].sum() / squares[:3].sum(), torch.tensor(3.0), rtol=1e-2, atol=0
    )


def test_columns_of_one_unit_keep_their_proportions():
    module, x, h = beside(nn.Linear(5, 7), one_scale=True)
    with torch.no_grad():
        found, plain = module(h, x)[:, 3:], module.blocks[0](x)
    ratio = found.std(0) / plain.std(0)
    torch.testing.assert_close(ratio, ratio.mean().expand(7), rtol=1e-4, atol=0)
    torch.testing.assert_close(found.square().mean(0).sum(), torch.tensor(5.0), rtol=1e-2, atol=0)


def test_statistics_of_a_block_are_those_of_all_samples():
    module, x, _ = beside(nn.Linear(5, 7))
    with torch.no_grad():
        expected = module.blocks[0](x)
    torch.testing.assert_close(module.scales[0].mean, expected.mean(0))
    torch.testing.assert_close(module.scales[0].deviation, expected.std(0, correction=0))


def test_while_a_network_is_trained_the_block_is_zero_and_its_statistics_stay():
    module, x, h = beside(nn.Linear(5, 7))
    before = {name: value.clone() for name, value in module.state_dict().items()}
    found = module.train()(h[:20].requires_grad_(), x[:20])
    assert not found[:, 3:].any() and found[:, :3].any()
    found.square().sum().backward()
    assert module.blocks[0].weight.grad is None
    after = module.state_dict()
    changed = {name for name in before if not before[name].equal(after[name])}
    assert changed and all(name.startswith("scale.") for name in changed)


def test_a_constant_column_is_zero():
    module = SideFeatures(1).eval()
    x = torch.tensor([[1.0, 3.0], [2.0, 3.0]])
    module.add(nn.Identity(), [x])
    found = module(x[:, :1], x)
    torch.testing.assert_close(found[:, 2], torch.zeros(2), rtol=0, atol=1e-3)


def test_what_was_constant_in_training_does_not_outweigh_all_else():
    module = SideFeatures(1).eval()
    x = torch.tensor([[1.0, 3.0], [2.0, 3.0]])
    module.add(nn.Identity(), [x])
    found = module(x[:, :1], torch.tensor([[1.0, 4.0], [2.0, 1e6]]))
    assert found.abs().max() < 11 and found[0, 2].abs() < 1.5


def test_a_momentum_network_does_not_change_the_scale_of_what_is_not_trained():
    graphs = [nx.random_labeled_tree(6 + k % 10, seed=k) for k in range(100)]
    embedder = ContrastiveEmbedder(framework=MoCo(), max_epochs=1, random_state=0)
    h = embedder.fit_transform(graphs)
    width = embedder.encoder_.beside.learned_width
    expected = ContrastiveEmbedder(max_epochs=1, random_state=0).fit_transform(graphs)
    np.testing.assert_array_equal(h[:, width:], expected[:, width:])


def test_leading_keeps_the_first_columns():
    h = random_batch(4, (6,))
    assert FirstColumns(2)(h).equal(h[:, :2])


def test_the_scale_of_a_short_fit_is_the_mean_of_its_batches():
    batches = (3 * random_batch(800, (4,)) + 1).split(100)
    scale = RunningScale(4, affine=False)
    for batch in batches:
        scale(batch)
    means = torch.stack([batch.mean(0) for batch in batches])
    variances = torch.stack([batch.var(0) for batch in batches])
    torch.testing.assert_close(scale.running_mean, means.mean(0))
    torch.testing.assert_close(scale.running_var, variances.mean(0))


def test_no_column_of_an_odd_sample_outweighs_all_others():
    module, x, h = beside(nn.Linear(5, 7))
    h[0, 1], x[1, 2] = 1e6, -1e6
    with torch.no_grad():
        largest = module(h, x).abs().amax(0)
    unit = torch.tensor([5 / 3] * 3 + [5 / 7] * 7).sqrt()
    assert (largest <= 10 * unit + 1e-5).all() and largest[1] > 9.9 * unit[1]


@pytest.mark.parametrize("shape", [(1, 16, 16), (3, 50), (8,)], ids=["image", "series", "vector"])
def test_a_trained_wide_encoder_that_is_trained_further_learns_with_what_it_has_learned(shape):
    X = np.random.default_rng(0).normal(size=(40, *shape)).clip(0, 1).astype(np.float32)
    given = {"max_epochs": 1, "random_state": 0, "device": "cpu"}
    first = ContrastiveEmbedder(**given).fit(X)
    further = ContrastiveEmbedder(first.encoder_, projection_dim=2, **given).fit(X)
    assert further.transform(X).shape == first.transform(X).shape
    reads = next(further.projector_.children())
    assert isinstance(reads, FirstColumns) and reads.width < first.transform(X).shape[1]
    assert further.set_params(output="projection").transform(X).shape == (40, 2)
