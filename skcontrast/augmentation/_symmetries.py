"""Flips and rotations that a collection of images allows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits
from torch import Tensor

from .._checks import validated
from .._data._arrays import representative_array
from .._layers._images import PatchLayer, average_to
from .._runtime._modes import plain_modes
from .._runtime._random import resolve_seed
from .._runtime._threads import one_thread
from ..kinds._base import Request
from ..kinds._images import Images
from ._base import as_float

# Images that are compared: at most, and at least. Classifiers of fewer know too little to tell an
# upright image.
_MOST_IMAGES, _FEWEST_IMAGES = 1000, 600
# Smaller images are little else than a patch.
_LEAST_SIDE = 16
# Larger images are first reduced to about this side.
_MOST_SIDE = 48
# The dictionary, images whose eight orientations it is learned from, and the cells of averages.
_N_PATCHES, _PATCH_SIZE, _N_LEARNED_FROM, _CELLS = 64, 6, 100, 3
# Pixels of the side for each pixel of distance between patches.
_SIDE_OF_A_STEP = 24
# The classifier: principal components of all features, and folds.
_N_COMPONENTS, _FOLDS = 200, 5
# A higher AUC speaks against mirrors and half turns; the second against all of them together with
# quarter turns. They lie between the AUCs of photographs and of what is taken from above or has no
# way up, see the guide's page on views.
_MOST_AUC, _MOST_AUC_OF_ALL = 0.68, 0.75

_MOVES: dict[str, Callable[[Tensor], Tensor]] = {
    "left_right": lambda x: x.flip(-1),
    "up_down": lambda x: x.flip(-2),
    "half_turn": lambda x: x.flip(-1, -2),
    "quarter_turn": lambda x: x.rot90(1, (-2, -1)),
}
SYMMETRIES = tuple(_MOVES)


@dataclass(frozen=True)
class ImageSymmetries:
    """The result of `image_symmetries`: AUCs of images against their flipped or rotated copies.

    Attributes
    ----------
    left_right, up_down, half_turn, quarter_turn : float
        AUC in [0, 1] of the classifier of images against those with left and right
        exchanged, top and bottom exchanged, turned by 180° and by 90°: about .5 if it cannot, 1 if
        it always can. NaN where it was not tried.
    shown : tuple of str
        The symmetries that the collection shows, by the names of these attributes.
    """

    left_right: float = np.nan
    up_down: float = np.nan
    half_turn: float = np.nan
    quarter_turn: float = np.nan

    @property
    def shown(self) -> tuple[str, ...]:
        aucs = [getattr(self, name) for name in SYMMETRIES]
        mirrors = aucs[:2]
        # Comparisons with NaN are False.
        if all(auc <= _MOST_AUC_OF_ALL for auc in aucs):
            return SYMMETRIES
        if all(auc <= _MOST_AUC for auc in aucs[:3]):
            return SYMMETRIES[:3]
        # Both mirrors one after the other are a half turn: without it, there is at most one.
        least = int(np.argmin(mirrors))
        return SYMMETRIES[least : least + 1] if mirrors[least] <= _MOST_AUC else ()


@validated(random_state=["random_state"])
def image_symmetries(
    X: Any, *, random_state: int | np.random.RandomState | None = None
) -> ImageSymmetries:
    """Find out which flips and rotations a collection of images allows, without labels.

    If a classifier cannot distinguish images from their flipped copies, views may be flipped:
    photographs allow left–right flips, satellite tiles all flips and rotations, characters none.
    The default views of :class:`~skcontrast.ContrastiveEmbedder` use this.

    Each of at most 1,000 images, drawn at random, is described by the codes of a dictionary of
    patches, which is learned from all eight orientations, and by its colours, both in 3 × 3 cells;
    images of more than 48 pixels are first reduced by averages. A logistic regression on 200
    principal components is judged by images that it was not fitted to, in five folds. A mirror is
    shown by an AUC of at most .68; both mirrors, and with them the half turn, if this holds for
    all three; all symmetries if the four AUCs are at most .75, since a turn by a quarter is the
    easiest to see. Quarter turns are tried for square images only. It takes about two
    seconds of one core.

    .. warning::
        What a *collection* allows, its classes may not. Where some are mirrored or turned versions
        of others, such as arrows to the left and to the right, b and d, or 6 and 9, the collection
        may show a symmetry that makes them one class. No comparison of images without labels can
        find that: choose the views by hand.

    Parameters
    ----------
    X : array-like or Dataset of shape (n_samples, channels, height, width)
        Images with any number of channels, uint8 or floats; grey ones may lack the channel axis.
    random_state : int, RandomState instance or None, default=None
        Seeds the choice of images, the dictionary and the folds. The global generators are left
        untouched.

    Returns
    -------
    symmetries : ImageSymmetries
        The AUCs, and which symmetries they show: ``shown``. Fewer than 600 images, or images of
        fewer than 16 pixels on a side, are too little to tell: AUCs are NaN, and nothing is shown.

    Raises
    ------
    ValueError
        If X holds no images, or they are not finite.

    See Also
    --------
    RandomFlip : Mirrors images.
    RandomAffine : With ``rotation=180`` turns them by any angle.

    Examples
    --------
    Vertical stripes look alike in a mirror and upside down, but not lying on their side:

    >>> import numpy as np
    >>> from skcontrast.augmentation import image_symmetries
    >>> rng = np.random.default_rng(0)
    >>> stripes = rng.normal(size=(600, 1, 16)) + rng.normal(size=(600, 16, 16))
    >>> image_symmetries(stripes, random_state=0).shown
    ('left_right', 'up_down', 'half_turn')
    """
    images, seed = Images(), resolve_seed(random_state, "image_symmetries")
    X, _ = images._read(X, Request("image_symmetries"))
    images._check_unusual(X, is_declared=False)
    X = representative_array(X)
    if not may_show_symmetries(len(X), X.shape[1:]):
        return ImageSymmetries()
    return symmetries_of(X, images.scaler().fit(X), seed)


def symmetries_of(X: Any, scaler: Any, seed: int) -> ImageSymmetries:
    """Return the symmetries of checked images, as many and as large as may show one.

    Parameters
    ----------
    X : array-like of shape (n_samples, height, width) or (n_samples, channels, height, width)
        As their kind returns them.
    scaler : object
        Fitted to X.
    seed : int
        Seeds the choice of images, the dictionary and the folds.
    """
    rng, device = np.random.RandomState(seed), torch.device("cpu")
    rows = np.sort(rng.permutation(len(X))[:_MOST_IMAGES])
    with plain_modes(device), torch.no_grad():
        x = _prepared(as_float(scaler.to_tensor(X[rows], device)))
        is_square = x.shape[-2] == x.shape[-1]
        moves = {k: v for k, v in _MOVES.items() if k != "quarter_turn" or is_square}
        layer = _dictionary(x, moves, rng)
        features = _features([x, *(move(x) for move in moves.values())], layer)
    fold = rng.permutation(len(x)) % _FOLDS
    # The sums of several threads are rounded in an order of chance.
    with one_thread(), threadpool_limits(1, user_api="openmp"):
        still, *moved = _components(features)
        aucs = [_auc(still, copies, fold) for copies in moved]
    return ImageSymmetries(**dict(zip(moves, aucs, strict=True)))


def may_show_symmetries(n_samples: int, image_shape: tuple | None) -> bool:
    """Return whether samples are images, many and large enough to show a symmetry."""
    are_large = image_shape is not None and min(image_shape[-2:]) >= _LEAST_SIDE
    return n_samples >= _FEWEST_IMAGES and are_large


def _prepared(x: Tensor) -> Tensor:
    """Return images of at most `_MOST_SIDE` pixels, if none gets too small, in standard units."""
    least, most = sorted(x.shape[-2:])
    x = F.avg_pool2d(x.float(), min(-(-most // _MOST_SIDE), least // _LEAST_SIDE))
    std, mean = torch.std_mean(x, dim=(0, 2, 3), keepdim=True)
    return (x - mean) / std.clamp(min=1e-6)


def _dictionary(x: Tensor, moves: Iterable[str], rng: np.random.RandomState) -> PatchLayer:
    """Return a dictionary of patches that is learned from all orientations of some images."""
    some = x[torch.from_numpy(rng.permutation(len(x))[:_N_LEARNED_FROM])]
    oriented = [some, some.flip(-1), some.flip(-2), some.flip(-1, -2)]
    if "quarter_turn" in moves:
        oriented += [images.mT for images in oriented]
    stride = max(1, min(x.shape[-2:]) // _SIDE_OF_A_STEP)
    layer = PatchLayer(_N_PATCHES, (x.shape[1], _PATCH_SIZE, _PATCH_SIZE), 1.0, stride)
    layer.learn(torch.cat(oriented), rng)
    return layer


def _features(copies: Sequence[Tensor], layer: PatchLayer) -> NDArray[np.float64]:
    """Return features (n_copies, n, d) of images and their copies, (n, channels, ...) each.

    They are the codes and the colours in a few cells, the two of the same variance.
    """
    cells, parts = (_CELLS, _CELLS), [part for images in copies for part in images.split(100)]
    codes, colours = (
        torch.cat([average_to(cells, of.shape[-2:])(of).flatten(1) for of in maps]).double()
        for maps in (map(layer, parts), parts)
    )
    blocks = [_centred(codes, each=True), _centred(colours, each=False)]
    return torch.cat(blocks, dim=1).view(len(copies), len(copies[0]), -1).numpy()


def _centred(features: Tensor, *, each: bool) -> Tensor:
    """Return features (m, d) of mean 0 and a variance that is 1 in all, or before in each."""
    features = features - features.mean(dim=0)
    if each:
        features /= features.std(dim=0, correction=0).clamp(min=1e-6)
    return features / features.square().sum(dim=1).mean().sqrt().clamp(min=1e-6)


def _components(features: NDArray) -> NDArray[np.float64]:
    """Return principal components, (..., n_components), of which the first has variance 1."""
    rows = features.reshape(-1, features.shape[-1])
    variances, axes = np.linalg.eigh(rows.T @ rows / len(rows))
    scale = np.sqrt(max(variances[-1], 1e-12))
    return features @ axes[:, ::-1][:, :_N_COMPONENTS] / scale


def _auc(still: NDArray, moved: NDArray, fold: NDArray) -> float:
    """Return the AUC of a classifier of images (n, d) and copies, judged fold by fold.

    An image and its copy are in the same fold.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import PredefinedSplit, cross_val_predict

    rows, y = np.concatenate([still, moved]), np.repeat([0, 1], len(fold))
    classifier, folds = LogisticRegression(max_iter=300), PredefinedSplit(np.tile(fold, 2))
    scores = cross_val_predict(classifier, rows, y, cv=folds, method="decision_function")
    return float(roc_auc_score(y, scores))
