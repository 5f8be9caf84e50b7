"""Mistakes in pieces of one's own that would train something else in silence: each is named."""

import numpy as np
import pytest
import torch
from torch import nn

from skcontrast import ContrastiveEmbedder, contrastive_loss
from skcontrast.augmentation import Augmentation
from skcontrast.encoders import Encoder
from skcontrast.features import Features
from skcontrast.frameworks import Framework
from skcontrast.kinds import Kind
from skcontrast.losses import HCL, Loss
from skcontrast.similarity import Similarity
from tests.common import vectors

X = vectors()


def own(base, **members):
    """Return a new class with these members."""
    return type("Own", (base,), members)


def derived(self, width=8):
    self.width = width
    self.layer = nn.Linear(6, width)


def renamed(self, power=1.0):
    self.p = power


@pytest.mark.parametrize("init, name", [(derived, "layer"), (renamed, "p")])
@pytest.mark.parametrize(
    "piece", [Augmentation, Encoder, Features, Framework, Kind, Loss, Similarity]
)
def test_an_attribute_that_a_search_would_not_change_is_refused(piece, init, name):
    with pytest.raises(TypeError, match=rf"Own\.__init__ must store .* but sets '{name}', which"):
        own(piece, __init__=init)()


def test_a_constructor_may_set_attributes_of_other_objects():
    def init(self, width=3):
        torch.backends.cudnn.benchmark = torch.backends.cudnn.benchmark
        self.width = width

    assert own(Encoder, __init__=init)(2).width == 2


def test_a_constructor_may_pass_on_what_a_base_takes_and_keep_private_names():
    def init(self, n_best=3):
        HCL.__init__(self, beta=2.0)
        self.n_best, self._calls = n_best, 0

    class Further(own(HCL, __init__=init)):
        def __init__(self):
            super().__init__(n_best=4)

    assert Further().beta == 2.0 and Further().n_best == 4


def sorted_behind_the_second(self, X):
    X = np.asarray(X)
    return np.concatenate([X[:2], X[2:][np.argsort(X[2:, 0])]])


def halved_in_place(self, X):
    X /= 2
    return X


def halved_in_place_one_by_one(self, X):
    for x in X:
        x /= 2
    return np.array([*X, None], dtype=object)[:-1]


@pytest.mark.parametrize(
    "check, given",
    [
        (sorted_behind_the_second, X.copy()),
        (lambda self, X: 2 * np.asarray(X), X.copy()),
        (lambda self, X: np.asarray(X) - np.mean(X, 0), X.copy()),
        (halved_in_place, X.copy()),
        (halved_in_place_one_by_one, list(X.copy())),
    ],
)
def test_a_kind_that_changes_samples_or_their_order_is_refused(check, given):
    def to_tensor(self, X, device):
        return torch.tensor(np.stack(list(X)), dtype=torch.float32, device=device)

    kind = own(Kind, check=check, to_tensor=to_tensor)()
    embedder = ContrastiveEmbedder(nn.Linear(X.shape[1], 4), kind=kind, augmentation=noisy(kind))
    with pytest.raises(ValueError, match=r"Own\.check must return samples in their order"):
        embedder.fit(given)


def noisy(kind):
    """Return an augmentation of a kind that draws as it should."""

    def augment(self, batch, generator=None):
        return batch + torch.randn(batch.shape, generator=generator)

    return own(Augmentation, kind=kind, augment=augment)()


def masked_in_place(scores):
    return scores.masked_fill_(scores.isinf(), -9.0).amax(1)


def without_the_diagonal(scores):
    own = torch.eye(*scores.shape, dtype=torch.bool)
    return scores.masked_fill(own, -torch.inf).logsumexp(1)


@pytest.mark.parametrize(
    "of_candidates, message",
    [
        (lambda scores: scores.amax(1) + (scores.amax(1) - scores.amax(1).mean()) ** 2, "own row"),
        (lambda scores: scores.amax(1) * len(scores) / 6, "own row"),
        (lambda scores: scores[:, :10].logsumexp(1), "in any order"),
        (without_the_diagonal, "in any order"),
        (masked_in_place, "changes its arguments in place"),
        (lambda scores: scores.data.mul_(2).amax(1), "changes its arguments in place"),
    ],
)
@pytest.mark.parametrize("takes_labels", [False, True])
def test_a_row_loss_that_depends_on_more_than_its_row_is_refused(
    of_candidates, message, takes_labels
):
    def row_loss(self, scores, positives):
        return of_candidates(scores) - positives.mean(1)

    def with_labels(self, scores, positives, same_class):
        return row_loss(self, scores, positives) + 0 * same_class.sum(1)

    loss = own(Loss, row_loss=with_labels if takes_labels else row_loss)()
    labels = {"y": torch.arange(20) % 3} if takes_labels else {}
    with pytest.raises(ValueError, match=rf"Own\.row_loss .*{message}"):
        contrastive_loss(*torch.from_numpy(X[:20]).repeat(2, 1, 1), loss=loss, **labels)


@pytest.mark.parametrize("name, value", [("detach_weights", "no"), ("sum_of_weights", "n")])
def test_an_attribute_of_a_loss_is_one_of_its_values(name, value):
    loss = own(Loss, hardness=lambda self: 1.0, **{name: value})()
    with pytest.raises(ValueError, match=rf"The '{name}' parameter of Own must be"):
        contrastive_loss(*torch.from_numpy(X[:20]).repeat(2, 1, 1), loss=loss)


def noise(batch, generator):
    return torch.randn(batch.shape, generator=generator)


@pytest.mark.parametrize(
    "augment, message",
    [
        (lambda x, g: noise(x, g), "from no samples"),
        (lambda x, g: x.flip(0) + noise(x, g), "from other samples"),
        (
            lambda x, g: x[torch.randperm(len(x), generator=g)] + noise(x, g),
            "from other samples",
        ),
        (lambda x, g: x - x.mean(0) + noise(x, g), "from other samples"),
    ],
)
def test_an_augmentation_that_does_not_draw_views_of_its_samples_is_told(augment, message):
    members = {"augment": lambda self, batch, generator=None: augment(batch, generator)}
    augmentation = own(Augmentation, kind="vectors", **members)()
    embedder = ContrastiveEmbedder(augmentation=augmentation, max_epochs=1, random_state=0)
    with pytest.warns(UserWarning, match=rf"Own\.augment draws the view of a sample {message}"):
        embedder.fit(X)
