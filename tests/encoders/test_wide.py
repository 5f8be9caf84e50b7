"""Wide: any encoder, and beside what it learns any features."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch import nn

from skcontrast import ContrastiveEmbedder, load, save
from skcontrast._checks import InvalidParameterError
from skcontrast.encoders import GIN, MLP, ConvNet, Encoder, Wide
from skcontrast.features import Features, MiniRocket, OrientedGradients, PatchDictionary, Raw
from skcontrast.frameworks import InfoGraph
from tests.common import images, small
from tests.encoders.common import random_batch, seeded

IMAGES = images(60, side=16)


@pytest.mark.parametrize("shape", [(7,), (1, 3, 3)])
def test_raw_features_are_beside_what_is_learned(shape):
    encoder = Wide(MLP(widths=(5,), n_learned=3), [Raw()])
    x = 4 * random_batch(200, shape) + 1
    module = seeded(encoder, shape, None)
    encoder.learn(module, x, np.random.RandomState(0))
    found, features = module.eval()(x), x.flatten(1)
    beside, expected = found[:, 3:], features - features.mean(0)
    torch.testing.assert_close(beside / beside.norm(), expected / expected.norm())
    assert seeded(encoder, shape, 4)(x).shape == (200, 4), "n_components is what is learned"


class Counts(Features):
    """Counts how often it is computed in training and after it."""

    kind = "images"

    def learn(self, batch, rng):
        return Counted()


class Counted(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = 0

    def forward(self, x):
        self.rows += len(x)
        return x.flatten(1)[:, :3]


def test_what_is_not_learned_is_computed_once_before_the_training_and_not_in_it():
    embedder = small(
        encoder=Wide(ConvNet(widths=(4,)), [Counts()]), max_epochs=60, batch_size=30
    ).fit(IMAGES)
    (block,) = embedder.encoder_[1].beside.blocks
    # All samples once, and for the check of the features two rows, and twice each of them; then
    # the check of the embeddings after the last step.
    assert block.rows <= len(IMAGES) + 6 + 16


@pytest.mark.parametrize(
    "deep", [ConvNet(widths=(4,)), nn.Sequential(nn.Flatten(), nn.Linear(768, 5))]
)
def test_any_encoder_has_any_features_in_the_order_that_is_passed(deep):
    features = [OrientedGradients(), PatchDictionary(5, 4), Raw()]
    embedder = small(encoder=Wide(deep, features), max_epochs=1).fit(IMAGES)
    H = embedder.transform(IMAGES)
    for feature in reversed(features):
        alone = clone(feature).set_params(
            **{"random_state": 0} if "random_state" in feature.get_params() else {}
        )
        width = alone.fit_transform(IMAGES).shape[1]
        block, H = H[:, -width:], H[:, :-width]
        if not isinstance(feature, PatchDictionary):  # whose seed is another
            expected = alone.transform(IMAGES)
            found = np.corrcoef(block[:, 0], expected[:, 0])[0, 1]
            assert found == pytest.approx(1, abs=1e-4)
    assert H.shape[1] == embedder.encoder_[1].beside.learned_width


def test_parameters_of_the_encoder_are_reached_by_name_and_copies_are_equal(tmp_path):
    encoder = Wide(ConvNet(widths=(4,)), [OrientedGradients()], weights=[0.5])
    assert clone(encoder).set_params(deep__widths=(5,)).deep.widths == (5,)
    embedder = small(encoder=encoder, max_epochs=1).fit(IMAGES)
    save(embedder, tmp_path / "a")
    copied = load(tmp_path / "a")
    np.testing.assert_array_equal(copied.transform(IMAGES), embedder.transform(IMAGES))
    assert repr(copied.encoder) == repr(encoder)


@pytest.mark.parametrize(
    "encoder, error, message",
    [
        (Wide(MLP(), [OrientedGradients]), TypeError, "must hold objects of skcontrast.features"),
        (Wide(MLP(), ["gradients"]), TypeError, "must hold objects of skcontrast.features"),
        (Wide(MLP(), [Raw()], [1, 2]), ValueError, "'weights' .* must hold 1 numbers"),
        (Wide(MLP(), [Raw()], [-1.0]), InvalidParameterError, "'weights' parameter of Wide"),
        (
            Wide(MLP(), [MiniRocket(3)]),
            InvalidParameterError,
            "'n_features' parameter of MiniRocket",
        ),
        (Wide(MLP(), [MiniRocket()]), ValueError, "MiniRocket expects series"),
        (Wide("mlp", [Raw()]), TypeError, "'deep' parameter of Wide must be"),
    ],
)
def test_what_cannot_stand_side_by_side_is_refused_by_name(encoder, error, message):
    with pytest.raises(error, match=message):
        small(encoder=encoder).fit(random_batch(30, (5,)).numpy())


def test_nodes_have_no_features_of_graphs_beside_them():
    import networkx as nx

    graphs = [nx.path_graph(4 + k % 3) for k in range(20)]
    with pytest.raises(ValueError, match="an encoder of nodes alone"):
        small(encoder=Wide(GIN()), framework=InfoGraph()).fit(graphs)


def test_a_custom_encoder_is_the_deep_one():
    class OneLayer(Encoder):
        kind = "vectors"

        def build(self, sample_shape, n_components=None):
            return nn.Linear(sample_shape[0], n_components or 3)

    X = random_batch(40, (5,)).numpy()
    embedder = ContrastiveEmbedder(Wide(OneLayer(), [Raw()]), max_epochs=1, random_state=0)
    assert embedder.fit_transform(X).shape == (40, 8)
