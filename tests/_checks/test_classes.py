"""Classes of users: names that resemble those of their base classes."""

import pytest

from skcontrast.augmentation import Augmentation
from skcontrast.encoders import Encoder
from skcontrast.features import Features
from skcontrast.frameworks import Framework
from skcontrast.kinds import Kind
from skcontrast.losses import Loss
from skcontrast.similarity import Similarity


@pytest.mark.parametrize(
    "base, name, meant",
    [
        (Loss, "hardnes", "hardness"),
        (Similarity, "embeds", "embed"),
        (Framework, "contrasts", "contrast"),
        (Kind, "to_tensors", "to_tensor"),
        (Encoder, "builds", "build"),
        (Augmentation, "augmented", "augment"),
    ],
)
def test_a_misspelled_method_is_refused_in_every_base_class(base, name, meant):
    def method(self):
        """Do nothing."""

    with pytest.raises(TypeError, match=rf"Own\.{name} would never be used: did you mean {meant}"):
        type("Own", (base,), {name: method})
    with pytest.raises(TypeError, match=r"Own\.forward would never be called"):
        type("Own", (base,), {"forward": method})
    assert type("Own", (base,), {"a_helper": method, f"_{name}": method})


@pytest.mark.parametrize(
    "base, name, method, takes",
    [
        (Encoder, "build", lambda self: 0, "takes nothing, but is called with sample_shape"),
        (Encoder, "build", lambda self, sample_shape: 0, "takes sample_shape, but is called"),
        (Encoder, "learn", lambda self, X, y=None: 0, "takes X, y, but is .* module, batch, rng"),
        (Features, "learn", lambda self, batch: 0, "takes batch, but is called with batch, rng"),
        (Augmentation, "augment", lambda self, batch: 0, "takes batch, but is .* generator, in"),
        (Augmentation, "augment", lambda self, batch, seed=None: 0, "takes batch, seed, but is"),
        (Kind, "to_tensor", lambda self, X: 0, "takes X, but is called with X, device"),
        (Loss, "rank_weights", lambda self, ranks: 0, "takes ranks, but is .* n_candidates, in"),
        (Loss, "coefficients", lambda self, a, b: 0, "takes a, b, but is called with nothing"),
        (Loss, "row_loss", lambda self, scores: 0, "takes scores, but is .* same_class"),
        (
            Loss,
            "row_loss",
            lambda self, scores, positives, y: 0,
            "takes .*, y, but is .* same_class",
        ),
        (Loss, "row_loss", lambda self, s, p, margin=1.0: 0, "takes s, p, margin, but is called"),
    ],
)
def test_a_method_takes_what_it_is_called_with(base, name, method, takes):
    with pytest.raises(TypeError, match=rf"Own\.{name} {takes}"):
        type("Own", (base,), {name: method})


def test_arguments_of_methods_may_have_other_names_and_more_defaults():
    class Own(Loss):
        def rank_weights(self, ranks, *rest):
            return ranks

        def class_weights(self, same, factor=2.0):
            return factor * same

    class Rows(Loss):
        @staticmethod
        def row_loss(scores, positives, same_class=None):
            return scores.logsumexp(1) - positives.mean(1)

    assert Own().requires_y and Rows().takes_labels
