"""Weights by rank are those of the definition."""

import functools

import pytest
import torch
from sklearn.datasets import load_digits

from skcontrast import contrastive_loss
from skcontrast.estimation import project_views
from skcontrast.losses import BCL, NonparametricBCL, Ring, SoftRing, SoftSupCon
from skcontrast.losses._ranks import Ranking  # private: ranks against naive code
from skcontrast.similarity import Cosine
from tests.common import random_views, small


def weights_of(scores, excluded, loss=None):
    """Return the weights of a loss by rank; of none, the ranks themselves."""
    n = scores.shape[1] - excluded.shape[1]
    ranks = torch.arange(1.0, n + 1, dtype=torch.float64)
    table = ranks if loss is None else loss.rank_weights(ranks, n)
    return Ranking(scores, excluded).assign(table)


def scores_of(kind, rows, n, dtype=torch.float32):
    generator = torch.Generator().manual_seed(n)
    scores = torch.randn(rows, n, generator=generator, dtype=dtype)
    if kind == "duplicates":
        scores = scores[:, torch.randint(n, (n,), generator=generator)]
    elif kind == "constant":
        scores = torch.full_like(scores, 0.7)
    elif kind == "signed zeros":
        scores = scores.sign() * 0.0
    elif kind == "integers":
        scores = scores.mul(2).round()
    return scores


def some_excluded(rows, n, m):
    generator = torch.Generator().manual_seed(m)
    columns = [torch.randperm(n, generator=generator)[:m] for _ in range(rows)]
    return torch.stack(columns).long().view(rows, m)


def ranks_by_definition(scores, excluded):
    """Return the rank of each candidate, of equal scores their mean, and which are candidates."""
    counted = torch.ones_like(scores, dtype=torch.bool).scatter_(1, excluded, False)
    lower = (scores[:, None, :] < scores[:, :, None]) & counted[:, None, :]
    equal = (scores[:, None, :] == scores[:, :, None]) & counted[:, None, :]
    return lower.sum(2) + (equal.sum(2) + 1) / 2, counted


KINDS = ["continuous", "duplicates", "constant", "signed zeros", "integers"]
SIZES = [(2, 1, 0), (5, 9, 2), (7, 33, 3), (16, 100, 0), (3, 4, 1), (2, 2, 1), (2, 600, 2)]
LARGE = [(2, 1100, 0), (2, 3500, 1), (2, 9000, 2)]


@pytest.mark.parametrize("kind", KINDS)
def test_equal_scores_share_the_mean_of_their_weights(kind):
    for size in SIZES:
        for dtype in [torch.float32, torch.float64]:
            scores, excluded = scores_of(kind, *size[:2], dtype), some_excluded(*size)
            expected, counted = ranks_by_definition(scores, excluded)
            weights = weights_of(scores, excluded)
            assert torch.equal(weights[counted], expected[counted].to(dtype))


@pytest.mark.parametrize("kind", ["continuous", "integers"])
@pytest.mark.parametrize("size", LARGE, ids=str)
def test_ranks_among_many(kind, size):
    scores, excluded = scores_of(kind, *size[:2]), some_excluded(*size)
    ordered = scores.scatter(1, excluded, -torch.inf).sort(1).values
    ends = [torch.searchsorted(ordered, scores, right=right) for right in (False, True)]
    weights = weights_of(scores, excluded)
    # In 32 bits, scores as close as a millionth of the range of all are equal, too.
    difference = weights - (sum(ends) + 1) / 2 + size[2]
    assert difference.scatter_(1, excluded, 0.0).abs().max() <= 1
    assert (difference == 0).double().mean() > 0.98


@pytest.mark.parametrize("kind", KINDS)
def test_ring_takes_so_many_and_the_right_ones(kind):
    for outer, inner in [(0.5, 0.2), (1.0, 0.0), (0.4, 0.0), (1.0, 0.5)]:
        scores, excluded = scores_of(kind, 6, 52), some_excluded(6, 52, 2)
        within, dropped = int(50 * outer), int(int(50 * outer) * inner)
        _, counted = ranks_by_definition(scores, excluded)
        weights = weights_of(scores, excluded, Ring(outer=outer, inner=inner))
        for row, values, kept in zip(weights, scores, counted, strict=True):
            inside = values[kept].sort().values[50 - within : 50 - dropped]
            assert row[kept].sum().item() == pytest.approx(within - dropped)
            assert (row[kept] @ values[kept]).item() == pytest.approx(
                inside.sum().item(), abs=1e-5
            )


def test_a_share_that_is_an_integer_up_to_rounding_counts_as_that_integer():
    ranks = torch.arange(1, 101, dtype=torch.float64)
    assert Ring(outer=0.29, inner=0.0).rank_weights(ranks, 100).sum() == 29
    assert Ring(outer=0.57, inner=0.0).rank_weights(ranks, 100).sum() == 57


def test_scores_are_told_apart_beside_one_that_is_far_off():
    scores = torch.cat([torch.linspace(0, 1e-3, 1999).expand(3, -1), torch.full((3, 1), -1e6)], 1)
    none = torch.empty(3, 0, dtype=torch.int64)
    weights = weights_of(scores, none)
    expected = torch.cat([torch.arange(2.0, 2001.0), torch.ones(1)])
    assert (weights == expected).all()


def test_a_small_class_within_rounding_is_ordered():
    crowd = 0.5 + 2.0**-24 * torch.arange(1, 41)
    scores = torch.cat([torch.linspace(0, 0.4, 960), crowd, torch.linspace(0.6, 1, 1000)])
    none = torch.empty(1, 0, dtype=torch.int64)
    weights = weights_of(scores[None], none)
    assert len(scores.unique()) == 2000 and (weights == torch.arange(1.0, 2001)).all()


LOSSES = [
    BCL(alpha=0.9),
    BCL(alpha=1.0, tau_plus=0.3),
    NonparametricBCL(alpha=0.9, beta=1.0),
    SoftRing(sharpness=4.0),
    SoftSupCon(),
    Ring(),
]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_float32_is_as_good_as_float64(loss):
    """Trained, normal, and in classes so tight that rounding orders them by chance."""
    for spread in ["trained", None, 0.02, 0.002, 0.0005]:
        vectors = trained_vectors() if spread == "trained" else vectors_of_classes(spread)
        tolerance = 1e-2 if isinstance(loss, Ring) else 1e-3  # a ring has edges
        if spread == 0.0005:
            tolerance = 2e-2  # float32 itself knows no order
        assert_float32_is_close(loss, *vectors, tolerance)


@pytest.mark.parametrize("loss", [*LOSSES, Ring(outer=1.0, inner=0.1)], ids=repr)
def test_float32_is_as_good_within_a_batch_as_the_guide_says(loss):
    """Of so few scores, two that change places are a larger part of the gradient."""
    for n in [32, 128]:
        for spread, tolerance in [(None, 5e-4), (0.02, 3e-2), (0.002, 0.1), (0.0005, 0.25)]:
            anchors, keys, _ = vectors_of_classes(spread, (n, 0))
            assert_float32_is_close(loss, anchors, keys, None, tolerance)


def assert_float32_is_close(loss, anchors, keys, queue, tolerance):
    """Losses by 1e-6, gradients by a tolerance, relative to float64."""
    found = []
    for dtype in (torch.float32, torch.float64):
        views = [view.to(dtype, copy=True).requires_grad_() for view in (anchors, keys)]
        candidates = None if queue is None else queue.to(dtype)
        value = contrastive_loss(*views, queue=candidates, loss=loss, similarity=Cosine(0.1))
        found.append((value.item(), torch.cat(torch.autograd.grad(value, views)).double()))
    (value, gradient), (exact, exact_gradient) = found
    assert value == pytest.approx(exact, rel=1e-6)
    assert (gradient - exact_gradient).norm() < tolerance * exact_gradient.norm()


@functools.cache
def trained_vectors():
    """Return anchors, keys and a queue as an embedder of digits has them."""
    X = load_digits().images[:1000]
    embedder = small(similarity=Cosine(0.1), batch_size=256).fit(X)
    views = [torch.from_numpy(view).double() for view in project_views(embedder, X)]
    return views[0][:64], views[1][:64], views[0][64:]


def vectors_of_classes(spread, n=(64, 2000), d=32, n_classes=20):
    """Return anchors, keys and a queue: in classes of a spread, or all normal."""
    generator = torch.Generator().manual_seed(0)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    if spread is None:
        anchors, queue = normal(n[0], d), normal(n[1], d)
        return anchors, anchors + 0.5 * normal(n[0], d), queue
    centres = torch.nn.functional.normalize(normal(n_classes, d), dim=1)
    classes = torch.randint(n_classes, (sum(n),), generator=generator)
    centre = centres[classes]
    views = [centre + spread * normal(*centre.shape) for _ in range(2)]
    return views[0][: n[0]], views[1][: n[0]], views[0][n[0] :]


@pytest.mark.parametrize("spread", [0.0, 1e-7, 1e-5, 1e-3])
def test_nearly_collapsed_embeddings_are_ranked(spread):
    base = torch.randn(16, generator=torch.Generator().manual_seed(0)).double()
    views = [base + spread * v for v in random_views(400, 16)]
    exact = contrastive_loss(*views, loss=BCL())
    rounded = contrastive_loss(*(v.float() for v in views), loss=BCL())
    assert rounded.item() == pytest.approx(exact.item(), rel=1e-5)


def test_embeddings_that_are_not_finite_give_a_loss_that_is_not():
    views = random_views(800, 8, dtype=torch.float32)
    views[0][3, 0] = torch.nan
    assert not contrastive_loss(*views, loss=BCL()).isfinite()


def test_a_small_weight_counts_where_its_score_is_large():
    views = [view.double() for view in random_views(20, 3, dtype=torch.float32)]
    loss, cosine = SoftRing(sharpness=20.0, tau_plus=0.3, beta=3.0, floor=0.4), Cosine(0.001)
    exact = contrastive_loss(*views, loss=loss, similarity=cosine)
    rounded = contrastive_loss(*(v.float() for v in views), loss=loss, similarity=cosine)
    assert rounded.item() == pytest.approx(exact.item(), rel=1e-4)


@pytest.mark.parametrize(
    "loss", [*LOSSES, BCL(alpha=0.9, beta=1.0), SoftRing(sharpness=4.0, beta=0.5)], ids=repr
)
def test_the_order_of_a_batch_with_equal_samples_moves_neither_value_nor_gradient(loss):
    for dtype in [torch.float32, torch.float64]:
        generator = torch.Generator().manual_seed(0)
        base = torch.randn(60, 24, generator=generator, dtype=dtype)
        chosen = torch.randint(60, (140,), generator=generator)  # most samples are there often
        views = base[chosen], base.flip(1)[chosen]
        order = torch.randperm(140, generator=generator)

        def of(*views):
            leaves = [view.clone().requires_grad_() for view in views]
            value = contrastive_loss(*leaves, loss=loss, similarity=Cosine(0.1))
            return value.detach(), torch.stack(torch.autograd.grad(value, leaves))

        (value, gradient), (moved, of_moved) = of(*views), of(*(view[order] for view in views))
        rounding = 1e-12 if dtype == torch.float64 else 1e-5
        assert moved.item() == pytest.approx(value.item(), rel=rounding)
        assert (of_moved - gradient[:, order]).abs().max() < 10 * rounding * gradient.abs().max()


@pytest.mark.parametrize("loss", [BCL(alpha=0.9), SoftRing(sharpness=4.0), SoftSupCon()], ids=repr)
def test_equal_samples_that_differ_by_rounding_tie_in_double_precision(loss):
    scores = torch.randn(5, 40, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    scores = scores[:, torch.arange(120) % 40]
    none = torch.empty(5, 0, dtype=torch.int64)
    noise = 1 + 4e-16 * torch.randn(5, 120, generator=torch.Generator().manual_seed(1))
    expected = weights_of(scores, none, loss)
    torch.testing.assert_close(weights_of(scores * noise, none, loss), expected, rtol=0, atol=0)
