"""SeriesNet: series of any length, and what is behind their ends."""

import copy
import io
import warnings

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from skcontrast import ContrastiveEmbedder

# private: the rule of the lengths
from skcontrast._layers._kernels import of_like_length, without_end
from skcontrast.augmentation import GaussianNoise
from skcontrast.encoders import SeriesNet
from skcontrast.encoders._series_net import _cells, shortened  # private: the rule of the widths
from tests.encoders.common import random_batch, seeded

SMALL = SeriesNet(widths=(4, 5), pool_size=3)
X = random_batch(24, (2, 40)).numpy()


def small(**kwargs):
    """Return an embedder that trains in a moment."""
    defaults = {"max_epochs": 2, "batch_size": 12, "projection_dim": 5, "random_state": 0}
    defaults |= {"encoder": SMALL, "device": "cpu", "augmentation": [GaussianNoise(0.1)]}
    return ContrastiveEmbedder(**{**defaults, **kwargs})


def ragged(n, n_channels, longest):
    """Return series of all lengths from 1 on."""
    x = random_batch(n, (n_channels, longest))
    for row, length in zip(x, np.linspace(1, longest, n).astype(int), strict=True):
        row[:, length:] = torch.nan
    return x


def learned(encoder, x):
    """Return a network that has seen a batch in training mode."""
    module = seeded(encoder, (x.shape[1], None))
    with torch.no_grad():
        module(x)
    return module.eval()


@pytest.mark.parametrize("n_channels, longest", [(1, 1), (1, 64), (3, 7), (12, 29), (2, 131)])
@pytest.mark.parametrize("encoder", [SMALL, SeriesNet()], ids=["small", "default"])
def test_a_series_has_the_same_embedding_alone_and_among_longer_ones(encoder, n_channels, longest):
    x = ragged(20, n_channels, longest)
    module = learned(encoder, x)
    together = module(x)
    alone = torch.cat([module(row[None, :, ~row[0].isnan()]) for row in x])
    torch.testing.assert_close(alone, together, rtol=0, atol=1e-5 * together.abs().max().item())


def test_training_does_not_depend_on_what_series_are_padded_to():
    x = ragged(20, 2, 40)
    longer = F.pad(x, (0, 30), value=torch.nan)
    first, second = (seeded(SMALL, (2, None)) for _ in range(2))
    torch.testing.assert_close(first(x), second(longer), rtol=0, atol=1e-4)
    torch.testing.assert_close(first.state_dict(), second.state_dict(), rtol=0, atol=1e-5)


def test_statistics_are_those_of_the_times_at_which_series_are():
    x = ragged(20, 2, 40)
    module = seeded(SeriesNet(widths=(3,)), (2, None))
    block = module.blocks[0]
    block.normal.momentum = 1.0
    module(x)
    filled, mask = without_end(x)
    found = block.convolution(filled).transpose(1, 2)[mask[:, 0, ::2] > 0]
    torch.testing.assert_close(block.normal.running_mean, found.mean(0))
    torch.testing.assert_close(block.normal.running_var, found.var(0))


def test_series_of_one_length_are_as_if_they_were_masked():
    x = random_batch(8, (2, 40))
    first, second = (seeded(SeriesNet(widths=(3, 4)), (2, None)) for _ in range(2))
    expected = first(x)
    rows = torch.cat([x, torch.full((8, 2, 1), torch.nan)], 2)
    torch.testing.assert_close(second(rows), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("n_cells", [1, 3, 4])
def test_cells_average_a_series_from_its_beginning_to_its_end(n_cells):
    mask = without_end(ragged(12, 1, 12))[1]
    weights = _cells(mask, n_cells)
    torch.testing.assert_close(weights.sum(1), torch.ones(12, n_cells))
    assert not (weights * (1 - mask.transpose(1, 2))).any()
    # A step of a series counts in each cell by the part of it that lies there.
    x = mask * torch.arange(12.0)
    fine = F.interpolate(x[11:], scale_factor=n_cells, mode="nearest").view(1, n_cells, -1)
    torch.testing.assert_close((x[11:] @ weights[11:])[0], fine.mean(2))


def long_series():
    """Return series of 1 to 2,600 times, and their lengths."""
    x, lengths = random_batch(7, (2, 2600)), [2600, 2599, 1500, 1000, 999, 400, 1]
    for row, length in zip(x, lengths, strict=True):
        row[:, length:] = torch.nan
    return x, lengths


def test_long_series_are_read_as_means_and_deviations_of_stretches_in_turn():
    x, lengths = long_series()
    found, mask = shortened(*without_end(x))
    assert found.shape == (7, 2, 999)
    assert mask.sum((1, 2)).tolist() == [520, 520, 500, 500, 999, 400, 1]
    for row, length, size in zip(range(7), lengths, [10, 10, 6, 4, 1, 1, 1], strict=True):
        parts = x[row, :, :length].split(size, 1)
        both = [part for s in parts for part in (s.mean(1), s.std(1, correction=0))]
        expected = torch.stack(both, 1) if size > 1 else x[row, :, :length]
        n = expected.shape[1]
        torch.testing.assert_close(found[row, :, :n], expected, rtol=0, atol=2e-6)
        assert not found[row, :, n:].any()
    short = random_batch(2, (1, 999))
    assert torch.equal(shortened(*without_end(short))[0], short)


def test_a_long_series_has_the_same_embedding_alone_and_among_others():
    x, lengths = long_series()
    module = learned(SMALL, x)
    alone = torch.cat([module(row[None, :, :n]) for row, n in zip(x, lengths, strict=True)])
    torch.testing.assert_close(module(x), alone, rtol=0, atol=1e-4)


@pytest.mark.parametrize("n_components", [None, 7])
@pytest.mark.parametrize("pool_size", [1, 4])
def test_the_width_is_that_of_the_grid_and_the_greatest_of_all_blocks(pool_size, n_components):
    encoder = SeriesNet(widths=(3, 4, 5), pool_size=pool_size)
    module = seeded(encoder, (2, None), n_components)
    for n_times in (1, 50, 300):
        expected = (3, n_components or 12 * (pool_size + 1))
        assert module(random_batch(3, (2, n_times))).shape == expected


def test_each_further_block_sees_four_times_as_much():
    reach = []
    for n_blocks in (1, 2, 3):
        module = seeded(SeriesNet(widths=(4,) * n_blocks, pool_size=1), (1, None)).eval()
        h = random_batch(1, (1, 800)).requires_grad_()
        *_, last = module.blocks
        found = {}
        last.register_forward_hook(lambda block, x, out, found=found: found.update(out=out))
        module(h)
        found["out"][0][0, :, 50].sum().backward()
        seen = h.grad[0, 0].nonzero()
        reach.append(int(seen.max() - seen.min()))
    assert reach[0] < 5 < 30 < reach[1] < 45 and 130 < reach[2] < 175


@pytest.mark.filterwarnings("ignore:All samples in X are alike")
@pytest.mark.parametrize(
    "data",
    [
        np.ones((24, 2, 40)),
        np.arange(24 * 7).reshape(24, 1, 7),
        np.zeros((24, 7, 1)),
        X * 1e6 + 1e9,
        np.where(np.arange(40) < 3, X, 5.0),
    ],
    ids=["constant", "short", "one time", "far from zero", "flat"],
)
@pytest.mark.filterwarnings("ignore:The representation is the same for all samples")
def test_series_of_any_sort_have_finite_embeddings(data):
    embedder = small(kind="series").fit(data)
    assert np.isfinite(embedder.transform(data)).all()


def test_gradients_are_finite_for_series_of_all_lengths():
    module = seeded(SMALL, (2, None))
    module(ragged(20, 2, 40)).square().sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in module.parameters())


def exported(module, x, *, leaves_length_open):
    """Return a program of torch for any number of series, and perhaps of any length."""
    axes = {0: torch.export.Dim("n")}
    if leaves_length_open:
        axes[2] = torch.export.Dim.DYNAMIC
    return torch.export.export(module, (x,), dynamic_shapes=(axes,))


@pytest.mark.parametrize("leaves_length_open", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_an_exported_network_is_the_network(leaves_length_open):
    x = ragged(20, 2, 40)
    module = learned(SMALL, x)
    program = exported(module, x, leaves_length_open=leaves_length_open).module()
    for data in (x, x[:1], random_batch(5, (2, 1234 if leaves_length_open else 40))):
        torch.testing.assert_close(program(data), module(data), rtol=0, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("leaves_length_open", [False, True])
def test_onnx_is_the_network(leaves_length_open):
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    x = ragged(20, 2, 40)
    module = learned(SMALL, x)
    program = exported(module, x, leaves_length_open=leaves_length_open)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        onnx = torch.onnx.export(
            program, (x,), input_names=["X"], external_data=False, dynamo=True, verbose=False
        )
    buffer = io.BytesIO(onnx.model_proto.SerializeToString())
    session = onnxruntime.InferenceSession(buffer.getvalue(), providers=["CPUExecutionProvider"])
    for data in (x, random_batch(5, (2, 77 if leaves_length_open else 40))):
        found = session.run(None, {"X": data.numpy()})[0]
        np.testing.assert_allclose(found, module(data).detach(), rtol=0, atol=1e-4)


def few_far_longer():
    """Return series of which two are far longer than all others."""
    x = random_batch(20, (2, 400))
    for row, length in enumerate([9, 12, 5, 400, 11] * 2 + [10] * 10):
        x[row, :, length:] = torch.nan
    return x


def test_parts_of_like_length_train_as_the_whole_batch_padded(monkeypatch):
    x, found = few_far_longer().double(), []
    start = learned(SMALL, x.float()).double()
    for most_padding in (4, 1e9):
        monkeypatch.setattr("skcontrast._layers._kernels._MOST_PADDING", most_padding)
        module = copy.deepcopy(start).train()
        module(x)[:, ::2].square().sum().backward()
        tensors = [p.grad for p in module.parameters()] + list(module.buffers())
        found.append([module.eval()(x), *tensors])
    assert len(found[0]) > 10
    for part, whole in zip(*found, strict=True):
        torch.testing.assert_close(part, whole)


def test_a_batch_is_cut_where_most_of_it_would_be_padding():
    def sizes(x):
        mask = without_end(x)[1]
        return [tuple(mask[part].shape[::2]) for part in of_like_length(mask)]

    assert sizes(few_far_longer()) == [(18, 12), (2, 400)]
    assert sizes(few_far_longer()[10:]) == [(10, 10)]
    assert sizes(ragged(20, 2, 131)) == [(20, 131)]
    assert sizes(torch.full((2, 1, 30), torch.nan)) == [(2, 1)]
