"""Encoder and head together, frozen parts, and the directions of projections."""

import numpy as np
import pytest
import torch
from torch import nn

from skcontrast._model._network import Network  # private: the parts of the network
from skcontrast.encoders import MLP
from skcontrast.frameworks import CMC, MoCo, SimCLR
from skcontrast.kinds import Vectors
from tests.common import X_DIGITS, small, vectors


def stage():
    return nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.BatchNorm1d(4, affine=False))


def modes(part):
    return [layer.training for layer in part]


def test_batch_norm_in_a_frozen_part_stays_in_inference_mode():
    network = Network(nn.Sequential(stage().requires_grad_(False), stage()), nn.Identity())
    frozen, trained = network.train().encoder
    assert modes(frozen) == [True, False, False] and modes(trained) == [True] * 3
    frozen.requires_grad_(True)
    assert modes(network.train().encoder[0]) == [True] * 3
    assert modes(network.eval().encoder[1]) == [False] * 3


def test_a_part_that_is_frozen_in_part_freezes_only_the_layers_whose_own_weights_are():
    network = Network(stage(), nn.Linear(4, 2))
    network.encoder[0].requires_grad_(False)
    assert modes(network.train().encoder) == [True] * 3
    network.encoder[1].requires_grad_(False)
    assert modes(network.train().encoder) == [True, False, False]


@pytest.mark.parametrize("framework", [SimCLR(), MoCo(queue_size=64, momentum=0.5), CMC()])
def test_training_leaves_weights_and_statistics_of_a_frozen_stage_alone(framework):
    width = 32 if isinstance(framework, CMC) else 64
    frozen = nn.Sequential(nn.Linear(width, 8), nn.BatchNorm1d(8), nn.ReLU())
    frozen[1].running_mean.fill_(0.3)  # but num_batches_tracked is 0, as in old state dicts
    module = nn.Sequential(frozen.requires_grad_(False), nn.Linear(8, 8), nn.BatchNorm1d(8))
    embedder = small(encoder=module, framework=framework).fit(X_DIGITS)
    fitted = embedder.encoder_[-1]
    after = (fitted.networks[0] if isinstance(framework, CMC) else fitted).state_dict()
    for name, before in frozen.state_dict().items():
        assert after[f"0.{name}"].equal(before), name
    assert not after["2.running_mean"].equal(module[2].running_mean)


def test_an_encoder_that_is_frozen_as_a_whole_trains_the_head_and_says_so():
    module = stage().requires_grad_(False)
    module.insert(0, nn.Linear(64, 4).requires_grad_(False))
    embedder = small(encoder=module, kind=Vectors(standardize=False))
    with pytest.warns(UserWarning, match="output='projection'"):
        H = embedder.fit_transform(X_DIGITS)
    expected = module.eval()(torch.tensor(X_DIGITS, dtype=torch.float32)).numpy()
    assert abs(H - expected).max() < 1e-5
    embedder.set_params(output="projection", projection_dim=3)
    assert embedder.fit_transform(X_DIGITS).shape == (len(X_DIGITS), 3)


def test_the_user_knows_nothing_of_the_layers_around_the_encoder():
    encoder = nn.Sequential(nn.Flatten(), stage())
    network = Network(encoder, nn.Linear(4, 2), {"encoder.1.": "encoder."})
    names = [name for name, _ in network.user_named_parameters()]
    assert names[:2] == ["encoder.0.weight", "encoder.0.bias"] and names[-1] == "projector.bias"


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


def test_parts_of_different_widths_cannot_be_compared_without_a_head():
    def same(shape):
        return nn.Linear(shape[0], shape[0])

    params = {"framework": CMC(split=2), "encoder": same}
    with pytest.raises(ValueError, match="return 2 and 3 components, which cannot be compared"):
        small(projection_dim=0, **params).fit(vectors())
    assert small(**params).fit(vectors()).transform(vectors()).shape == (60, 5)


class Learns(MLP):
    """Keeps what it learns from."""

    seen = []

    def learn(self, module, batch, rng):
        self.seen.append(batch)


@pytest.mark.parametrize("framework", [None, CMC(split=2)])
def test_an_encoder_learns_once_from_what_its_module_will_get(framework, monkeypatch):
    monkeypatch.setattr(Learns, "seen", [])
    monkeypatch.setattr("skcontrast._model._network._ENOUGH_SAMPLES", 8)
    X = 3 * vectors() + 2
    embedder = small(encoder=Learns((8,)), framework=framework).fit(X)
    layers = embedder.encoder_[:-1]
    whole = layers(torch.from_numpy(X[::8]).float())  # evenly spread
    parts = [whole] if framework is None else [whole[:, :2], whole[:, 2:]]
    torch.testing.assert_close(Learns.seen, parts, rtol=1e-4, atol=1e-4)
