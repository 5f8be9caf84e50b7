"""Samples of one group are no negatives of each other; if groups are positive, they are pulled."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.base import clone

from skcontrast import ContrastiveEmbedder, contrastive_loss, losses

# private: the batches of a fit, one by one
from skcontrast._data._batches import BatchSampler, Source

# private: the value of a contrast that no public call forms
from skcontrast._objective._mean_loss import objective_value
from skcontrast.encoders import MLP
from skcontrast.frameworks import CMC, Contrast, InfoGraph, MoCo, SimCLR, in_batch
from skcontrast.similarity import Cosine, DotProduct
from tests.naive_losses import infonce_with_groups

LOSSES = [
    losses.InfoNCE(),
    losses.DCL(),
    losses.HCL(),
    losses.PUCL(),
    losses.BCL(),
    losses.Ring(),
    losses.SoftRing(),
    losses.SoftSupCon(),
]
N, D = 12, 5
GROUPS = torch.tensor([0, 0, 0, 1, 1, 2, 2, -1, -1, -1, 3, -1])


def views(n_views=2, seed=0):
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(n_views, N, D, dtype=torch.float64, generator=generator)
    return z.requires_grad_()


def value_and_gradient(z, **kwargs):
    value = contrastive_loss(*z, similarity=Cosine(0.5), **kwargs)
    return value.detach(), torch.autograd.grad(value, z)[0]


@pytest.mark.parametrize("loss", [*LOSSES, losses.PositiveDebiased()], ids=repr)
def test_groups_of_one_sample_each_change_nothing(loss):
    for same_group in ["neutral", "positive"]:
        z = views()
        for groups in (torch.arange(N), torch.full((N,), -1)):
            with_groups = value_and_gradient(z, loss=loss, groups=groups, same_group=same_group)
            torch.testing.assert_close(with_groups, value_and_gradient(z, loss=loss))


class WholeRows(losses.Loss):
    """InfoNCE, as a function of whole rows."""

    def losses(self, rows):
        return torch.cat([rows.scores, rows.positives], 1).logsumexp(1) - rows.positives.mean(1)


NEUTRAL = {"groups": GROUPS}
POSITIVE = {"y": torch.full((N,), -1), "groups": GROUPS, "same_group": "positive"}


@pytest.mark.parametrize(
    "given, same",
    [
        (NEUTRAL, {"loss": losses.Supervised(), "y": GROUPS}),
        ({"loss": losses.SupCon(), **POSITIVE}, {"loss": losses.SupCon(), "y": GROUPS}),
        ({"loss": losses.SINCERE(), **POSITIVE}, {"loss": losses.SINCERE(), "y": GROUPS}),
        # Neutral groups are left out of their class by a loss of whole rows.
        ({"loss": losses.SINCERE(), "y": GROUPS, **NEUTRAL}, {"loss": WholeRows(), **NEUTRAL}),
    ],
)
def test_neutral_groups_are_those_of_no_negatives_and_positive_ones_classes(given, same):
    z = views()
    torch.testing.assert_close(value_and_gradient(z, **given), value_and_gradient(z, **same))


@pytest.mark.parametrize("same_group", ["neutral", "positive"])
def test_groups_count_for_the_negatives_of_supervised_in_addition_to_the_classes(same_group):
    z, y = views(), torch.arange(N) % 3
    only = torch.where(GROUPS == 0, 0, -1)
    got = value_and_gradient(z, loss=losses.Supervised(), y=y, groups=only)[0]
    unit = F.normalize(z.detach().flatten(0, 1), dim=1)
    s = unit @ unit.T / 0.5
    labels, groups = y.repeat(2), only.repeat(2)
    own = torch.eye(N, dtype=torch.bool).repeat(2, 2)
    out = own | (labels[:, None] == labels)
    out |= (groups[:, None] == groups) & (groups >= 0)[:, None]
    mean = (s.exp() * ~out).sum(1) / (~out).sum(1)
    positive = s[torch.arange(2 * N), (torch.arange(2 * N) + N) % (2 * N)]
    expected = (((2 * N - 2) * mean).log() - positive).exp().log1p().mean()
    torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("n_views", [2, 3])
@pytest.mark.parametrize("same_group", ["neutral", "positive"])
def test_value_and_gradient_are_those_of_the_definition(n_views, same_group):
    z = views(n_views)
    expected = infonce_with_groups(z, GROUPS, same_group == "positive")
    got = value_and_gradient(z, groups=GROUPS, same_group=same_group)
    torch.testing.assert_close(got, (expected.detach(), torch.autograd.grad(expected, z)[0]))


@pytest.mark.parametrize("same_group", ["neutral", "positive"])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_the_gradient_is_that_of_the_value(loss, same_group):
    if "detach_weights" in loss.get_params():
        loss = clone(loss).set_params(detach_weights=False)
    kwargs = {"loss": loss, "groups": GROUPS, "same_group": same_group}
    assert torch.autograd.gradcheck(
        lambda z: contrastive_loss(*z, **kwargs), views(), fast_mode=True
    )


def test_positive_groups_are_pulled_beside_a_loss_of_whole_rows_as_beside_infonce():
    z, pulls = views(3), []
    for loss in (WholeRows(), losses.InfoNCE()):
        positive, neutral = (
            value_and_gradient(z, loss=loss, groups=GROUPS, same_group=role)
            for role in ("positive", "neutral")
        )
        pulls.append([there - here for there, here in zip(positive, neutral, strict=True)])
    torch.testing.assert_close(*pulls)
    assert pulls[0][0] != 0


def test_a_candidate_of_the_group_is_pulled_by_a_loss_that_pulls_likely_ones():
    z = views()
    loss = losses.SoftSupCon(sharpness=0.0)
    pulled = value_and_gradient(z, loss=loss, groups=GROUPS, same_group="positive")
    neutral = value_and_gradient(z, loss=loss, groups=GROUPS)
    assert not torch.allclose(pulled[0], neutral[0])


@pytest.mark.parametrize("framework", [SimCLR(), MoCo(queue_size=24, momentum=0.5), CMC()])
@pytest.mark.parametrize("same_group", ["neutral", "positive"])
def test_no_batch_queue_or_bank_contrasts_a_group_with_itself(framework, same_group):
    """If all samples are of one group, nothing but their own views acts on them."""
    X = np.random.default_rng(0).normal(size=(32, 6)).astype(np.float32)
    params = {"framework": framework, "same_group": same_group, "random_state": 0}
    embedder = ContrastiveEmbedder(MLP((8,)), max_epochs=3, batch_size=8, **params)
    seen = []
    with pytest.warns(UserWarning, match="groups separate nothing"):
        alone = embedder.fit(X, groups=np.zeros(32)).history_[:, "train_loss"]
    seen.append(embedder.transform(X))
    seen.append(embedder.fit(X, groups=np.where(np.arange(32) < 16, "a", "b")).transform(X))
    embedder.set_params(same_group="neutral")  # without groups there are no positives among them
    seen.append(embedder.fit(X).transform(X))
    assert all(np.isfinite(alone)) and not np.allclose(seen[0], seen[1])
    assert not np.allclose(seen[1], seen[2]) and not np.allclose(seen[0], seen[2])


@pytest.mark.parametrize("objective", ["contrastive", "jensen-shannon"])
def test_groups_of_graphs(objective):
    graphs = [nx.gnp_random_graph(6, 0.5, seed=k) for k in range(12)]
    embedder = ContrastiveEmbedder(
        framework=InfoGraph(objective=objective), max_epochs=2, batch_size=6, random_state=0
    )
    plain = embedder.fit(graphs).transform(graphs)
    groups = np.arange(12) // 3
    for same_group in ("neutral", "positive"):
        embedder.set_params(same_group=same_group)
        assert not np.allclose(embedder.fit(graphs, groups=groups).transform(graphs), plain)
    with pytest.warns(UserWarning, match="groups have no effect"):
        alone = embedder.set_params(same_group="neutral").fit(graphs, groups=np.full(12, -1))
    alone = alone.transform(graphs)
    np.testing.assert_allclose(alone, plain, rtol=1e-3, atol=1e-4)


def test_jensen_shannon_pulls_graphs_of_the_group_by_their_softplus():
    z = torch.randn(3, 2, dtype=torch.float64, generator=torch.manual_seed(0))
    places = torch.arange(3)[:, None]
    groups = torch.tensor([0, 0, 1])
    known = {"anchor_groups": groups, "candidate_groups": groups}
    own = {"positives": places, "excluded": places}
    contrast = Contrast(anchors=z.clone().requires_grad_(), candidates=z, **own, **known)
    value = objective_value(contrast, losses.InfoNCE(), DotProduct(), "jensen-shannon", "positive")
    s = contrast.anchors @ z.T
    own = F.softplus(-s.diagonal())
    positive = torch.stack(
        [(own[0] + F.softplus(-s[0, 1])) / 2, (own[1] + F.softplus(-s[1, 0])) / 2, own[2]]
    )
    negative = torch.stack([F.softplus(s[0, 2]), F.softplus(s[1, 2]), F.softplus(s[2, :2]).mean()])
    expected = (positive + negative).mean()
    torch.testing.assert_close(value, expected)
    gradients = [torch.autograd.grad(v, contrast.anchors)[0] for v in (value, expected)]
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("n, batch_size", [(40, 8), (41, 8), (7, 2), (9, 100)])
def test_batches_bring_two_samples_of_a_group_together(n, batch_size):
    groups = torch.arange(n) // 3
    groups[-4:] = -1
    data = Source(torch.arange(n), torch.device("cpu"))
    sampler = BatchSampler(data, batch_size, pairs=groups)
    sampler.generator.manual_seed(0)
    batches = [batch.rows for batch in sampler]
    assert torch.cat(batches).sort().values.tolist() == list(range(n))
    sizes = {len(rows) for rows in batches}
    assert max(sizes) - min(sizes) <= 1
    together = sum(len(rows) - len(groups[rows].unique()) for rows in batches)
    # A pair may be cut where a batch ends.
    pairs = sum(int((groups == g).sum()) // 2 for g in range(int(groups.max()) + 1))
    assert together >= pairs - len(batches)
    others = [batch.rows.tolist() for batch in sampler]
    assert others != [rows.tolist() for rows in batches]


@pytest.mark.parametrize(
    "groups, message",
    [
        (np.zeros(3), "groups must have one entry per sample, 32, got 3"),
        (np.full(32, np.inf), "groups contains infinity"),
        (np.array(["-1"] * 32), "groups holds the string '-1'"),
        (np.zeros((32, 2)), "y should be a 1d array|groups"),
    ],
)
def test_wrong_groups_are_refused(groups, message):
    X = np.random.default_rng(0).normal(size=(32, 4))
    with pytest.raises(ValueError, match=message):
        ContrastiveEmbedder(max_epochs=1).fit(X, groups=groups)


ZEROS = torch.zeros(N, D, dtype=torch.float64)


@pytest.mark.parametrize(
    "kwargs, message",
    [
        ({"queue_groups": torch.zeros(3, dtype=torch.int64)}, "pass queue, too"),
        ({"groups": torch.zeros(3, dtype=torch.int64)}, "groups must have 12 entries"),
        ({"groups": torch.zeros(N)}, "groups must be a tensor of integers"),
        ({"same_group": "enemies"}, "'same_group' parameter of contrastive_loss"),
        ({"groups": GROUPS, "queue": ZEROS}, "groups was passed without queue_groups. Pass both"),
        ({"queue_groups": GROUPS, "queue": ZEROS}, "queue_groups was passed without groups. Pass"),
    ],
)
def test_wrong_groups_of_embeddings_are_refused(kwargs, message):
    with pytest.raises((TypeError, ValueError), match=message):
        contrastive_loss(*views(), **kwargs)


@pytest.mark.parametrize(
    "loss, objective",
    [(loss, "contrastive") for loss in [*LOSSES, losses.PositiveDebiased(), losses.SupCon()]]
    + [(loss, "jensen-shannon") for loss in LOSSES if loss.is_estimate],
)
def test_pairs_of_weight_0_are_neutral_groups(loss, objective):
    values = []
    for by_weight in (False, True):
        z, y = views(), torch.arange(N) % 4
        embedded = Cosine(0.5).embed(z)
        contrast = in_batch(embedded, y, groups=None if by_weight else GROUPS)
        if by_weight:
            groups = GROUPS.repeat(2)
            weights = 1.0 - ((groups[:, None] == groups) & (groups >= 0)).double()
            contrast = replace(contrast, pair_weights=weights.clone())
        value = objective_value(contrast, loss, Cosine(0.5), objective)
        values.append((value.detach(), torch.autograd.grad(value, z)[0]))
        assert not by_weight or torch.equal(contrast.pair_weights, weights)
    torch.testing.assert_close(values[1], values[0])


def test_weights_of_pairs_are_factors_of_candidates():
    z, weights = views(), torch.rand(2 * N, 2 * N, generator=torch.Generator().manual_seed(0))
    contrast = in_batch(Cosine(0.5).embed(z))
    weighted = replace(contrast, pair_weights=weights)
    value = objective_value(weighted, losses.InfoNCE(), Cosine(0.5))
    scores = contrast.anchors @ contrast.candidates.T
    w = weights.double().scatter(1, contrast.excluded, 0.0)
    n = scores.shape[1] - contrast.excluded.shape[1]
    estimate = n * (w * scores.exp()).sum(1) / w.sum(1)
    positive = contrast.scores_of_positives(slice(None), scores)[:, 0]
    expected = (1 + estimate / positive.exp()).log().mean()
    torch.testing.assert_close(value, expected)
