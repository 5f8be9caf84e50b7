"""Samples of the anchor's class that correct a debiased loss, against naive float64 code."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from skorch.callbacks import Callback

from skcontrast import contrastive_loss
from skcontrast._objective._contrast import pairs_with  # private: extra pairs against naive code

# private: the value of a contrast that no public call forms
from skcontrast._objective._mean_loss import objective_value
from skcontrast.frameworks import CMC, MoCo, in_batch
from skcontrast.losses import (
    BCL,
    DCL,
    HCL,
    PUCL,
    InfoNCE,
    NonparametricBCL,
    PositiveDebiased,
    Ring,
    SupCon,
    Supervised,
)
from skcontrast.similarity import Cosine, VonMisesFisher
from tests.common import small, vectors

N, D = 12, 5
RNG = torch.Generator().manual_seed(0)
CORRECTED = {
    "DCL": DCL(tau_plus=0.15),
    "HCL": HCL(tau_plus=0.15, beta=0.7),
    "PUCL": PUCL(tau_plus=0.2, c=0.3),
    "PositiveDebiased": PositiveDebiased(tau_plus=0.3, negatives=DCL(tau_plus=0.2)),
}
WITHOUT = [
    InfoNCE(), BCL(), NonparametricBCL(), Ring(), SupCon(), Supervised(), PositiveDebiased(),
    PositiveDebiased(negatives=BCL()),
]  # fmt: skip


def drawn(*shape):
    return torch.randn(*shape, D, generator=RNG, dtype=torch.float64)


def naive(loss, anchors, positives, candidates, kept, correcting, *, n=None, weights=None, t=0.5):
    """Return the mean loss by the definition.

    `positives` is (n, m, d), `kept` (n, n_candidates) a mask of the candidates of each anchor,
    `correcting` (n, M, d) or a mask of candidates; n is the number of candidates if some are
    hidden.
    """
    u, p, v = (F.normalize(z, dim=-1) for z in (anchors, positives, candidates))
    scores, s_plus = u @ v.T / t, torch.einsum("ik,imk->im", u, p) / t
    n = kept.sum(1) if n is None else n
    estimating = loss.negatives if isinstance(loss, PositiveDebiased) else loss
    weight = (estimating.hardness() * scores).exp() * kept
    weight = weight / weight.sum(1, keepdim=True)
    if correcting.dtype == torch.bool:
        own = s_plus.exp().mean(1)
        count = correcting.sum(1)
        mean = (scores.exp() * correcting).sum(1) / count.clamp_min(1)
        mates = torch.where(count > 0, mean, own)
    else:
        z = F.normalize(correcting, dim=-1)
        mates = (torch.einsum("ik,imk->im", u, z) / t).exp().mean(1)
    a, b = estimating.coefficients()
    negative = (a * (weight * scores.exp()).sum(1) - b * mates).clamp_min(math.exp(-1 / t))
    numerator = s_plus.exp()
    if isinstance(loss, PositiveDebiased):  # equations 6 and 7, with the prior on both sides
        g, tau = (scores.exp() * kept).sum(1) / n, loss.tau_plus
        mean = (n[:, None] * g[:, None] + s_plus.exp() + math.exp(1 / t)) / (n[:, None] + 2)
        numerator = (mean - (1 - tau) * g[:, None]).clamp_min(tau * math.exp(-1 / t)) / tau
    losses = (1 + n[:, None] * negative[:, None] / numerator).log().mean(1)
    return (losses if weights is None else losses * weights).mean()


def assert_equal_with_gradients(found, expected, *tensors):
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)
    pairs = (torch.autograd.grad(value, tensors, allow_unused=True) for value in (found, expected))
    for of_found, of_expected in zip(*pairs, strict=True):
        torch.testing.assert_close(of_found, of_expected, rtol=1e-8, atol=1e-12)


def of_others(n_views):
    """Return a mask of the candidates of each view that are views of other samples."""
    sample = torch.arange(N).repeat(n_views)
    return sample[:, None] != sample


def positives_of(views):
    """Return the other views of the sample of each view, (n_views · n, n_views − 1, d)."""
    n = len(views)
    shifted = (torch.cat([views[(v + k) % n] for v in range(n)]) for k in range(1, n))
    return torch.stack(list(shifted), 1)


@pytest.mark.parametrize("n_mates", [1, 2, 5])
@pytest.mark.parametrize("n_views", [2, 3])
@pytest.mark.parametrize("name", CORRECTED)
def test_correcting_samples_take_the_place_of_the_positives(name, n_views, n_mates):
    views = [drawn(N).requires_grad_() for _ in range(n_views)]
    mates = [drawn(N).requires_grad_() for _ in range(n_mates)]
    weights, groups = torch.rand(N, generator=RNG).double(), torch.arange(N) // 2
    options = {"loss": CORRECTED[name], "similarity": Cosine(0.5), "correct_with": mates}
    flat, others = torch.cat(views), of_others(n_views)
    together = torch.stack(mates, 1).repeat(n_views, 1, 1)
    given = options["loss"], flat, positives_of(views), flat
    for weight in (None, weights):
        found = contrastive_loss(*views, sample_weight=weight, **options)
        repeated = None if weight is None else weight.repeat(n_views)
        expected = naive(*given, others, together, weights=repeated)
        assert_equal_with_gradients(found, expected, *views, *mates)
    if name == "PositiveDebiased":  # whose positive part counts hidden candidates, too
        return
    found = contrastive_loss(*views, groups=groups, **options)
    sample = torch.arange(N).repeat(n_views)
    kept = groups[sample][:, None] != groups[sample]
    expected = naive(*given, kept, together, n=others.sum(1))
    assert_equal_with_gradients(found, expected, *views, *mates)


@pytest.mark.parametrize("name", CORRECTED)
def test_with_a_queue_the_first_view_is_corrected(name):
    first, second, queue = (drawn(N).requires_grad_() for _ in range(3))
    mate = drawn(N).requires_grad_()
    options = {"loss": CORRECTED[name], "similarity": Cosine(0.5), "queue": queue}
    found = contrastive_loss(first, second, correct_with=mate, **options)
    kept = torch.ones(N, N, dtype=torch.bool)
    loss = CORRECTED[name]
    expected = naive(loss, first, second[:, None], queue, kept, mate[:, None])
    assert_equal_with_gradients(found, expected, first, second, queue, mate)
    groups, queue_groups = torch.arange(N) // 3, torch.arange(N) // 4
    found = contrastive_loss(
        first, second, groups=groups, queue_groups=queue_groups, same_group="correct", **options
    )
    mask = groups[:, None] == queue_groups
    expected = naive(loss, first, second[:, None], queue, kept, mask)
    assert_equal_with_gradients(found, expected, first, second, queue)


@pytest.mark.parametrize("groups", [torch.arange(N) // 2, torch.arange(N) % 5 - 1])
@pytest.mark.parametrize("n_views", [2, 3])
@pytest.mark.parametrize("name", CORRECTED)
def test_members_of_a_group_correct_and_an_anchor_without_one_is_corrected_by_its_view(
    name, n_views, groups
):
    views = [drawn(N).requires_grad_() for _ in range(n_views)]
    options = {"loss": CORRECTED[name], "similarity": Cosine(0.5)}
    found = contrastive_loss(*views, groups=groups, same_group="correct", **options)
    flat, sample = torch.cat(views), torch.arange(N).repeat(n_views)
    others, of_sample = of_others(n_views), groups[sample]
    mask = (of_sample[:, None] == of_sample) & (of_sample >= 0) & others
    expected = naive(options["loss"], flat, positives_of(views), flat, others, mask)
    assert_equal_with_gradients(found, expected, *views)


def test_if_all_of_the_class_correct_dcl_is_the_oracle():
    """In a batch with equally many of each class, with their share among the candidates as τ⁺."""
    y, views = torch.arange(N) % 3, [drawn(N).requires_grad_() for _ in range(2)]
    tau_plus = (N // 3 - 1) / (N - 1)
    similarity = Cosine(1.0)
    found = contrastive_loss(
        *views, loss=DCL(tau_plus=tau_plus), similarity=similarity, groups=y, same_group="correct"
    )
    oracle = contrastive_loss(*views, loss=Supervised(), similarity=similarity, y=y)
    assert_equal_with_gradients(found, oracle, *views)


def test_for_distributions_a_view_is_a_tuple():
    def view():
        return drawn(N), 100 * torch.rand(N, generator=RNG).double()

    first, second, mates = view(), view(), [view(), view()]
    options = {"loss": DCL(tau_plus=0.1), "similarity": VonMisesFisher(8.0)}
    one, two = (
        contrastive_loss(first, second, correct_with=m, **options) for m in (mates[0], mates)
    )
    assert one.isfinite() and two.isfinite() and one != two
    same = contrastive_loss(first, second, correct_with=[mates[0]] * 3, **options)
    torch.testing.assert_close(one, same)


@pytest.mark.parametrize("by", ["scores", "group"])
def test_the_jensen_shannon_form_subtracts_the_mean_of_softplus(by):
    z, mates = drawn(2, N).requires_grad_(), drawn(N).requires_grad_()
    similarity, loss, groups = Cosine(0.5), DCL(tau_plus=0.1), torch.arange(N) // 2
    embedded = similarity.embed(z)
    contrast = in_batch(embedded, groups=groups if by == "group" else None)
    repeated = similarity.embed(mates).repeat(2, 1)
    if by == "scores":
        correcting = pairs_with(contrast.anchors, [repeated], similarity)
        contrast = replace(contrast, correcting=correcting)
    same_group = "correct" if by == "group" else "neutral"
    found = objective_value(contrast, loss, similarity, "jensen-shannon", same_group)
    u = F.normalize(z.flatten(0, 1), dim=1)
    scores, sample = u @ u.T / 0.5, torch.arange(N).repeat(2)
    others, (a, b) = sample[:, None] != sample, loss.coefficients()
    mean = (F.softplus(scores) * others).sum(1) / others.sum(1)
    if by == "scores":
        correction = F.softplus((u * F.normalize(mates, dim=1).repeat(2, 1)).sum(1) / 0.5)
    else:
        mask = (groups[sample][:, None] == groups[sample]) & others
        correction = (F.softplus(scores) * mask).sum(1) / mask.sum(1)
    positive = (u * u.roll(N, 0)).sum(1) / 0.5
    floor = math.log1p(math.exp(-2))
    expected = ((a * mean - b * correction).clamp_min(floor) - F.logsigmoid(positive)).mean()
    inputs = [z, mates] if by == "scores" else [z]
    assert_equal_with_gradients(found, expected, *inputs)


@pytest.mark.parametrize("loss", WITHOUT, ids=repr)
def test_losses_without_a_correction_refuse_it(loss):
    z, y = torch.eye(4), torch.arange(4) // 2
    labels = {"y": y} if loss.requires_y else {}
    for options in ({"correct_with": z}, {"groups": y, "same_group": "correct"}):
        with pytest.raises(ValueError, match="no term that samples of the anchor's class could"):
            contrastive_loss(z, z, loss=loss, **options, **labels)
    with pytest.raises(ValueError, match="'correct' needs a loss with a term"):
        small(loss=loss, same_group="correct").fit(
            vectors(), np.arange(60) % 2 if loss.requires_y else None, groups=np.arange(60) // 2
        )


def test_wrong_arguments_are_refused_by_name():
    z, loss = torch.eye(4), DCL()
    queued = {"queue": z, "correct_with": z[:1]}  # one sample is enough
    assert contrastive_loss(z[:1], z[1:2], loss=loss, **queued).isfinite()
    with pytest.raises(ValueError, match="correct_with must hold at least one tensor"):
        contrastive_loss(z, z, loss=loss, correct_with=[])
    for given in (torch.eye(3, 4), torch.eye(4, 5), "z", 5, torch.zeros(2, 4, 4)):
        with pytest.raises((TypeError, ValueError), match=r"^correct_with\[0\] must "):
            contrastive_loss(z, z, loss=loss, correct_with=given)
    with pytest.raises(ValueError, match=r"correct_with\[1\] must have 4 rows, one for each sam"):
        contrastive_loss(z, z, loss=loss, correct_with=[z, torch.eye(3, 4)])
    with pytest.raises(ValueError, match="At least 2 views are needed"):
        contrastive_loss(loss=loss, correct_with=z)
    with pytest.raises(ValueError, match="correct_with or same_group='correct', not both"):
        contrastive_loss(
            z, z, loss=loss, correct_with=z, groups=torch.arange(4), same_group="correct"
        )


@pytest.mark.parametrize(
    "params",
    [{}, {"framework": MoCo(queue_size=30)}, {"framework": CMC(split=2)}, {"n_views": 3}],
    ids=["SimCLR", "MoCo", "CMC", "three views"],
)
def test_an_embedder_is_corrected_by_groups(params):
    X, groups = vectors(), np.arange(60) % 6
    fitted = {
        same: small(loss=DCL(tau_plus=0.1), same_group=same, **params)
        .fit(X, groups=groups)
        .transform(X)
        for same in ("neutral", "positive", "correct")
    }
    assert np.isfinite(fitted["correct"]).all()
    assert not np.allclose(fitted["correct"], fitted["neutral"])
    assert not np.allclose(fitted["correct"], fitted["positive"])


def test_groups_of_one_are_neutral_with_a_warning_and_one_group_for_all_is_refused():
    X, loss = vectors(), DCL(tau_plus=0.1)
    corrected = small(loss=loss, same_group="correct")
    with pytest.warns(UserWarning, match="groups have no effect: no two samples share"):
        found = corrected.fit(X, groups=np.arange(60)).transform(X)
    expected = small(loss=loss).fit(X).transform(X)
    np.testing.assert_array_equal(found, expected)
    refused = pytest.raises(ValueError, match="needs several groups")
    with refused, pytest.warns(UserWarning, match="groups separate nothing"):
        corrected.fit(X, groups=np.zeros(60, int))
    with pytest.warns(UserWarning, match="groups separate nothing"):
        corrected.partial_fit(X, groups=np.zeros(60, int))  # a part of a stream
    groups = np.arange(60) % 3
    with pytest.raises(ValueError, match="needs several groups of each domain, got one"):
        corrected.fit(X, groups=groups, domains=groups)
    with pytest.warns(UserWarning, match="same_group has no effect: fit got no groups"):
        corrected.fit(X)
    with pytest.warns(UserWarning, match="same_group='correct' has no effect without groups"):
        contrastive_loss(*torch.rand(2, 5, 3), loss=loss, same_group="correct")
    with pytest.warns(UserWarning, match="'auto' without y is near 0"):
        corrected.set_params(loss=DCL(tau_plus="auto")).fit(X, groups=groups)


class WithTerm(DCL):
    """DCL with another term."""

    def losses(self, rows):
        return super().losses(rows) + 1


def test_a_loss_with_another_term_is_corrected_as_without():
    views, groups = torch.rand(2, 8, 3), torch.arange(8) // 2
    options = {"groups": groups, "same_group": "correct"}
    found, plain = (contrastive_loss(*views, loss=f(), **options) for f in (WithTerm, DCL))
    torch.testing.assert_close(found, plain + 1)


class Rows(Callback):
    """Notes the rows of the first batch."""

    def on_train_begin(self, net, **kwargs):
        self.first = None

    def on_batch_begin(self, net, batch=None, **kwargs):
        self.first = batch.rows.tolist() if self.first is None else self.first


def test_pairs_are_drawn_only_where_ordinary_batches_hold_no_mates():
    X, first, of_pairs = vectors(400), {}, np.arange(400) // 2
    one_large = np.where(np.arange(400) < 150, 0, 1 + of_pairs)
    cases = {"pairs": of_pairs, "classes": np.arange(400) % 4, "one large": one_large}
    cases["2 mates expected"] = np.arange(400) % 20
    cases["small domains"] = np.arange(400) % 31  # next to a large one
    domains = (np.arange(400) - 300).clip(0) // 10
    for name, groups in cases.items():
        for same in ("neutral", "correct"):
            rows = Rows()
            params = {"same_group": same, "callbacks": [rows], "batch_size": 50}
            small(loss=DCL(tau_plus=0.1), max_epochs=1, **params).fit(
                X, groups=groups, domains=domains if name == "small domains" else None
            )
            first[name, same] = rows.first
    assert first["classes", "correct"] == first["classes", "neutral"]
    for name in ("one large", "2 mates expected", "small domains"):
        assert first[name, "correct"] != first[name, "neutral"]
    assert len({row // 2 for row in first["pairs", "neutral"]}) > 40
    assert len({row // 2 for row in first["pairs", "correct"]}) <= 26


def test_of_pairs_across_domains_a_batch_holds_none_so_that_it_is_an_ordinary_one():
    X, rows, first = vectors(80), Rows(), {}
    groups, domains = np.arange(80) // 2, np.arange(80) % 2
    for same in ("neutral", "correct"):
        params = {"same_group": same, "callbacks": [rows], "batch_size": 20}
        embedder = small(loss=DCL(tau_plus=0.1), max_epochs=1, **params)
        embedder.fit(X, groups=groups, domains=domains)
        first[same] = rows.first
    assert first["correct"] == first["neutral"]


def test_torchrun_takes_the_correcting_scores_of_its_anchors():
    z = torch.randn(3, N, D, generator=RNG, dtype=torch.float64)
    similarity = Cosine(0.5)
    contrast = in_batch(similarity.embed(z[:2]))
    scores = pairs_with(contrast.anchors, [similarity.embed(z[2]).repeat(2, 1)], similarity)
    whole = replace(contrast, correcting=scores)
    value, *parts = (
        objective_value(part, DCL(tau_plus=0.1), similarity)
        for part in (whole, whole.take(slice(0, N)), whole.take(slice(N, None)))
    )
    torch.testing.assert_close(sum(parts) / 2, value)
