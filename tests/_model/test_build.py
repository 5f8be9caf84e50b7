"""A new network: its encoder, its head, and their widths."""

import numpy as np
import pytest
import torch
from torch import nn

from skcontrast._model._network import Widths, build_network
from skcontrast.encoders import MLP
from skcontrast.frameworks._modalities import Split
from skcontrast.kinds import Vectors
from skcontrast.similarity import Cosine, VonMisesFisher
from tests.common import X_DIGITS, small


def test_projection_is_the_head_on_the_representation():
    embedder = small(projection_dim=3).fit(X_DIGITS)
    h = embedder.transform(X_DIGITS)
    z = embedder.set_params(output="projection").transform(X_DIGITS)
    expected = embedder.projector_(torch.from_numpy(h)).detach().numpy()
    np.testing.assert_allclose(z, expected, atol=1e-6)
    assert len(embedder.get_feature_names_out()) == 3


def test_without_a_head_projection_is_representation():
    embedder = small(projection_dim=0).fit(X_DIGITS)
    h = embedder.transform(X_DIGITS)
    np.testing.assert_array_equal(embedder.set_params(output="projection").transform(X_DIGITS), h)
    assert len(embedder.get_feature_names_out()) == h.shape[1]


def network_of(shape=(5,), split=None, **kwargs):
    settings = {
        "choose_encoder": lambda place, kind, shape: MLP(widths=(8,)),
        "n_components": None,
        "projection_dim": 3,
        "similarity": Cosine(),
        "owner": "Embedder",
        "batch_size": 256,
    }
    X = np.random.default_rng(0).normal(2, 3, size=(20, *shape)).astype(np.float32)
    scaler = Vectors().scaler().fit(X)
    batch = scaler.to_tensor(X, "cpu")
    built = build_network(batch, Vectors(), scaler, split, **settings | kwargs)
    return built.network, built.widths, batch


def halves():
    return Split([torch.tensor([0, 1]), torch.tensor([2, 3, 4])], (5,))


def test_each_part_has_an_encoder_and_a_head_of_its_own():
    network, widths, batch = network_of(split=halves(), n_components=4)
    assert widths == Widths(representation=8, projection=6, n_modalities=2)
    changed = batch.clone()
    changed[:, 2:] += 1
    network.eval()
    for module, width in ((network.encoder, 4), (network, 3)):
        assert module(changed)[:, :width].equal(module(batch)[:, :width])
        assert not module(changed)[:, width:].equal(module(batch)[:, width:])


def test_the_encoder_is_chosen_by_the_shape_of_its_part():
    shapes = []

    def choose(place, kind, shape):
        shapes.append(shape)
        return MLP((8,))

    network_of(split=halves(), choose_encoder=choose)
    assert shapes == [(2,), (3,)]


@pytest.mark.parametrize("projection_dim, name", [(1, "projection_dim"), (0, "n_components")])
def test_a_similarity_that_needs_more_components_names_the_parameter(projection_dim, name):
    with pytest.raises(ValueError, match=f"'{name}' parameter of Embedder must be at least 2"):
        network_of(similarity=VonMisesFisher(), projection_dim=projection_dim, n_components=1)


def test_numbers_of_a_similarity_follow_the_projection_and_do_not_count_in_the_width():
    network, widths, batch = network_of(similarity=VonMisesFisher())
    assert network(batch).shape == (20, 3 + VonMisesFisher.n_extra) and widths.projection == 3


def test_parts_of_different_widths_cannot_be_compared_without_a_head():
    def same(place, kind, shape):
        return nn.Linear(shape[0], shape[0])

    with pytest.raises(ValueError, match="return 2 and 3 components, which cannot be compared"):
        network_of(split=halves(), choose_encoder=same, projection_dim=0)
    network_of(split=halves(), choose_encoder=same, projection_dim=4)


def test_networks_are_float32_whatever_an_encoder_is():
    network, _, _ = network_of(choose_encoder=lambda *part: lambda s: nn.Linear(*s, 4))
    assert {p.dtype for p in network.parameters()} == {torch.float32}


class Learns(MLP):
    """Keeps what it learns from."""

    def learn(self, module, batch, rng):
        self.seen = [*getattr(self, "seen", []), batch]


def test_an_encoder_learns_once_from_what_its_module_will_get():
    encoder = Learns((8,))
    network, _, batch = network_of(choose_encoder=lambda *part: encoder)
    (seen,) = encoder.seen
    assert torch.equal(seen, network.encoder[0](batch))


def test_the_encoder_of_a_part_learns_from_that_part():
    encoders = [Learns((8,)), Learns((8,))]
    network, _, batch = network_of(
        split=halves(), choose_encoder=lambda place, *part: encoders[place]
    )
    whole = network.encoder[:-1](batch)
    first, second = (encoder.seen[0] for encoder in encoders)
    assert torch.equal(first, whole[:, :2]) and torch.equal(second, whole[:, 2:])


def test_an_encoder_learns_from_2000_samples_at_most(monkeypatch):
    monkeypatch.setattr("skcontrast._model._network._ENOUGH_SAMPLES", 8)
    encoder = Learns((8,))
    network, _, batch = network_of(choose_encoder=lambda *part: encoder)
    assert torch.equal(encoder.seen[0], network.encoder[0](batch[::3])), "evenly spread"
