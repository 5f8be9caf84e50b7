"""CMC: two modalities of a sample, two encoders, two banks."""

import copy

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch import nn

from skcontrast import contrastive_loss

# private: the value of a contrast that no public call forms
from skcontrast._objective._mean_loss import objective_value
from skcontrast.encoders import ConvNet
from skcontrast.frameworks import CMC, Batch
from skcontrast.kinds import Images
from skcontrast.losses import BCL, InfoNCE
from skcontrast.similarity import Cosine, VonMisesFisher
from tests.common import small, vectors
from tests.frameworks.common import IMAGES, Keeps, Watches, X, make_fit, random


def started_cmc(n_negatives=8, **kwargs):
    module = nn.Linear(6, 8)
    return CMC(n_negatives=n_negatives).start(make_fit(module, width=8, n_modalities=2, **kwargs))


def test_each_part_is_contrasted_with_the_bank_of_the_other():
    session = started_cmc(n_negatives=29)
    session.bank.update(random(2, 2, 30, 4), torch.arange(30), None, Cosine())
    views, rows = [random(3, 6, seed=v) for v in range(2)], torch.tensor([4, 0, 29])
    contrasts = session.contrast(views, Cosine(0.3), Batch(views[0], rows=rows))
    z = torch.stack([session.context.module(view) for view in views])
    for modality, contrast in enumerate(contrasts):
        anchors, keys = z[..., 4 * modality :][..., :4], z[..., 4 * (1 - modality) :][..., :4]
        others = [
            contrastive_loss(
                anchors[v, [i]], *keys[:, [i]], queue=bank[torch.arange(30) != row],
                similarity=Cosine(0.3),
            )
            for bank in [session.bank.vectors[1 - modality]]
            for v in range(2)
            for i, row in enumerate(rows)
        ]  # fmt: skip
        value = objective_value(contrast, InfoNCE(), Cosine(0.3))
        torch.testing.assert_close(value, torch.stack(others).mean())


def test_the_first_negatives_of_a_bank_are_those_of_the_batch():
    session = started_cmc()
    views, rows = [random(3, 6, seed=v) for v in range(2)], torch.tensor([4, 0, 29])
    batch = Batch(views[0], rows=rows)
    first, second = session.contrast(views, Cosine(0.3), batch)
    z = session.context.module(views[0]).detach()
    torch.testing.assert_close(first.candidates, Cosine(0.3).embed(z[:, 4:]))
    torch.testing.assert_close(second.candidates, Cosine(0.3).embed(z[:, :4]))
    session.update()
    first, _ = session.contrast(views, Cosine(0.3), batch)
    assert first.candidates.shape == (3, 4) and not first.candidates.requires_grad
    assert first.excluded[:, 0].unique().numel() == 3


def halves(embedder, X):
    """Return the representation, encoder by encoder."""
    return np.split(embedder.transform(X), 2, axis=1)


def test_transform_is_both_encoders_side_by_side():
    rng = np.random.default_rng(0)
    changed = X.copy()
    changed[:, 10:] = rng.permuted(X[:, 10:], axis=0)
    embedder = small(framework=CMC(split=10)).fit(X)
    (first, second), (same, other) = halves(embedder, X), halves(embedder, changed)
    np.testing.assert_array_equal(first, same)
    assert not np.allclose(second, other)
    assert embedder.get_feature_names_out().shape == (first.shape[1] * 2,)
    projected = embedder.set_params(output="projection").transform(X)
    assert projected.shape == (101, 2 * 64) and np.isfinite(embedder.score(X))


def test_the_parts_of_lab_are_its_channels():
    modalities = CMC("lab").split_samples(Images(), (3, 8, 8)).columns
    assert [modality.tolist() for modality in modalities] == [[0], [1, 2]]


def test_lab_contrasts_lightness_with_colour():
    images = np.random.default_rng(0).integers(0, 256, size=(20, 3, 6, 6), dtype=np.uint8)
    grey = images[:, :1].repeat(3, 1)
    embedder = small(encoder=ConvNet(widths=(4,)), framework=CMC()).fit(images)
    light, colour = halves(embedder, grey)
    np.testing.assert_allclose(colour, colour[:1].repeat(20, 0), atol=1e-3)
    assert light.std(axis=0).max() > 1e-3
    first, second = (net(torch.zeros(2, c, 6, 6)) for net, c in zip(
        embedder.encoder_[-1].networks, (1, 2), strict=True
    ))  # fmt: skip
    assert first.shape == second.shape
    for precision in ("float32", "bf16"):
        fitted = clone(embedder).set_params(precision=precision).fit(images / 255)
        assert np.isfinite(fitted.transform(images / 255)).all()


def test_continuing_with_the_same_split_in_a_different_spelling():
    embedder = small(framework=CMC(split=[0, 1]), warm_start=True).fit(X)
    embedder.set_params(framework__split=np.array([0, 1])).fit(X)
    with pytest.raises(ValueError, match=r"from CMC\(split=\[0, 1\]\) to CMC\(split=2\)"):
        embedder.set_params(framework__split=np.int64(2)).fit(X)


def test_warm_start_continues_with_the_same_bank_if_the_samples_are_the_same():
    embedder = small(framework=CMC(), warm_start=True).fit(X)
    states = []
    watch = Watches(lambda session: states.append(copy.deepcopy(session.bank.state_dict())))
    embedder.set_params(callbacks=[watch], batch_size=20)
    last = embedder._states["framework"]["state"]["bank.vectors"].clone()
    embedder.fit(X)
    unmoved = (states[0]["vectors"] == last).all(-1).all(0)
    assert unmoved.sum() == 101 - 17 and states[0]["_extra_state"] == 101
    states.clear()
    embedder.fit(X[::-1])
    assert states[0]["_extra_state"] == 17 and embedder.n_epochs_ == 6
    assert torch.equal(states[0]["labels"], torch.full((101,), -1))


def test_in_a_stream_every_part_has_a_new_bank():
    keeps = Keeps("bank")
    embedder = small(framework=CMC(split=2), callbacks=[keeps])
    for n in (50, 40):
        embedder.partial_fit(vectors(n))
        assert (keeps.before.n_visited, keeps.after.n_visited) == (0, n)
    last = keeps.after
    embedder.partial_fit(vectors(40))  # the same samples once more
    for name in ("vectors", "labels", "visited"):
        assert torch.equal(getattr(keeps.before, name), getattr(last, name))


def test_descriptions_are_as_wide_as_one_head():
    embedder = small(framework=CMC(), projection_dim=5)
    descriptions = np.random.default_rng(0).normal(size=(101, 5))
    assert np.isfinite(embedder.fit(X, descriptions=descriptions).transform(X)).all()
    with pytest.raises(ValueError, match=r"descriptions must have shape \(n_samples, 5\)"):
        embedder.fit(X, descriptions=np.ones((101, 10)))


def test_more_negatives_than_there_are_samples_are_all_others():
    fits = [small(framework=CMC(n_negatives=n)).fit(X).transform(X) for n in (100, 101, 9999)]
    np.testing.assert_array_equal(fits[0], fits[1])
    np.testing.assert_array_equal(fits[0], fits[2])


def test_settings_that_do_not_suit_two_encoders_are_refused():
    with pytest.raises(ValueError, match=r"consists of several arrays: pass split='auto'"):
        small(framework=CMC(split=3)).fit((X, X))
    with pytest.raises(ValueError, match="'auto' needs vectors, series or images of"):
        small(framework=CMC(), encoder=None).fit(IMAGES)
    with pytest.raises(ValueError, match="failed on vectors of shape"):
        small(framework=CMC(), encoder=nn.Linear(64, 5)).fit(X)
    with pytest.raises(ValueError, match="return 10 and 54 components"):
        small(framework=CMC(split=10), encoder=lambda s: nn.Identity(), projection_dim=0).fit(X)
    embedder = small(warm_start=True).fit(X)
    with pytest.raises(ValueError, match="'framework' parameter of ContrastiveEmbedder has chang"):
        embedder.set_params(framework=CMC()).fit(X)


def started_with_three(**kwargs):
    module = nn.Linear(6, 12)
    fit = make_fit(module, width=12, n_modalities=3, **kwargs)
    session = CMC(n_negatives=29).start(fit)
    session.bank.update(random(3, 2, 30, 4), torch.arange(30), None, Cosine())
    return session


def loss_of(session, views, rows, loss):
    """Return the mean loss over all anchors, as a fit computes it."""
    contrasts = session.contrast(views, Cosine(0.3), Batch(views[0], rows=rows))
    values = [objective_value(contrast, loss, Cosine(0.3)) for contrast in contrasts]
    return torch.stack(values).mean()


def pair_of(session, places):
    """Return a session of two of the modalities, with their weights and their banks."""
    columns = [4 * place + k for place in places for k in range(4)]
    module = nn.Linear(6, 8)
    with torch.no_grad():
        module.weight.copy_(session.context.module.weight[columns])
        module.bias.copy_(session.context.module.bias[columns])
    pair = CMC(n_negatives=29).start(make_fit(module, width=8, n_modalities=2))
    pair.bank.load_state_dict(session.bank.state_dict() | {
        "vectors": session.bank.vectors[list(places)]
    })  # fmt: skip
    return pair


@pytest.mark.parametrize("loss", [InfoNCE(), BCL(alpha=0.8)], ids=repr)
def test_the_loss_of_three_parts_is_the_mean_over_the_pairs(loss):
    session, pairs = started_with_three(), [(0, 1), (0, 2), (1, 2)]
    views, rows = [random(3, 6, seed=v) for v in range(2)], torch.tensor([4, 0, 29])
    alone = [loss_of(pair_of(session, pair), views, rows, loss) for pair in pairs]
    torch.testing.assert_close(
        loss_of(session, views, rows, loss) * len(pairs), torch.stack(alone).sum()
    )


def test_the_bank_has_a_vector_for_each_part_and_only_visited_samples():
    states = []
    watch = Watches(lambda session: states.append(session.bank.vectors.clone()))
    modalities = (X[:, :20], X[:, 20:30], X[:, 30:])
    embedder = small(framework=CMC(n_negatives=5), callbacks=[watch], projection_dim=6)
    H = embedder.fit(modalities).transform(modalities)
    assert states[-1].shape == (3, 101, 6) and H.shape == (101, 3 * 128)
    torch.testing.assert_close(states[-1].norm(dim=-1), torch.ones(3, 101))
    assert embedder.set_params(output="projection").transform(modalities).shape == (101, 18)


def test_three_parts_have_a_concentration_together():
    modalities = (X[:, :20], X[:, 20:30], X[:, 30:])
    embedder = small(framework=CMC(), similarity=VonMisesFisher()).fit(modalities)
    kappa = embedder.concentration(modalities)
    assert kappa.shape == (101,) and (kappa > 0).all()
    assert (kappa <= 3 * embedder.similarity_.kappa_max).all()
    scores = embedder.log_score(modalities)
    assert scores.shape == (101, 101) and np.isfinite(scores).all()
