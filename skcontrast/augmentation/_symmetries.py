"""Flips and rotations that a collection of images allows."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits
from torch import Tensor

from .._checks._arguments import validated
from .._data._arrays import representative_array
from .._layers._images import PatchLayer, average_to
from .._runtime import guarded, on_threads, resolve_seed
from ..kinds._base import Request
from ..kinds._images import Images
from ._base import as_float

# The maximum and minimum number of images that are compared.
_MOST_IMAGES, _FEWEST_IMAGES = 1000, 600
# The minimum side of images: smaller ones are not much larger than a patch.
_LEAST_SIDE = 16
# Larger images are first reduced to about this side.
_MOST_SIDE = 48
# The size of the dictionary, its training images, and the cells of averages.
_N_PATCHES, _PATCH_SIZE, _N_LEARNED_FROM, _CELLS = 64, 6, 100, 3
# The stride of patches is the side of the image, divided by this.
_STRIDES_PER_SIDE = 24
# The classifier: principal components of all features, and folds.
_N_COMPONENTS, _FOLDS = 200, 5
# The largest AUC of flips and half turns, and that of all symmetries with quarter turns. They lie
# between the AUCs of photographs and of images without an up direction, see the guide on views.
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
        AUC in [0, 1] of a classifier of images against copies with left and right
        exchanged, top and bottom exchanged, rotated by 180° and by 90°: about .5 if they look the
        same, 1 if they differ. NaN if it was not computed.
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
        # Comparisons with NaN are False.
        if all(auc <= _MOST_AUC_OF_ALL for auc in aucs):
            return SYMMETRIES
        if all(auc <= _MOST_AUC for auc in aucs[:3]):
            return SYMMETRIES[:3]
        # Both flips together are a half turn: without it, at most one flip is allowed.
        least = int(np.argmin(aucs[:2]))
        return SYMMETRIES[least : least + 1] if aucs[least] <= _MOST_AUC else ()


@guarded()
@validated(random_state=["random_state"])
def image_symmetries(
    X: Any, *, random_state: int | np.random.RandomState | None = None
) -> ImageSymmetries:
    """Detect the flips and rotations that a collection of images allows, without labels.

    If a classifier cannot distinguish images from their flipped copies, views may be flipped:
    photographs allow left–right flips, satellite tiles all flips and rotations, characters none.
    The default views of :class:`~skcontrast.ContrastiveEmbedder` use this.

    The features of at most 1,000 random images are those of a patch dictionary, which is learned
    from all eight orientations, and colours, both averaged in 3 × 3 cells; images of more than 48
    pixels are reduced first. A logistic regression on 200 principal components is cross-validated
    in five folds. A flip is allowed if its AUC is at most .68; both flips and the half turn, if
    this holds for all three; all symmetries, if the four AUCs are at most .75, since quarter turns
    are easiest to detect. Quarter turns are computed for square images only. It takes about two
    seconds on one core.

    .. warning::
        A *collection* may have a symmetry that its classes do not have. If some classes are
        flipped or rotated versions of others, such as left and right arrows, b and d, or 6 and 9,
        the symmetry makes them one class. No method without labels can detect this: choose the
        views yourself.

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
        fewer than 16 pixels on a side, are too few to decide: AUCs are NaN, and ``shown`` is
        empty.

    Raises
    ------
    ValueError
        If X holds no images, or they are not finite.

    See Also
    --------
    RandomFlip : Flips images.
    RandomAffine : With ``rotation=180`` rotates them by any angle.

    Examples
    --------
    Vertical stripes look the same after flips, but not after a rotation by 90°:

    >>> import numpy as np
    >>> from skcontrast.augmentation import image_symmetries
    >>> rng = np.random.default_rng(0)
    >>> stripes = rng.normal(size=(600, 1, 16)) + rng.normal(size=(600, 16, 16))
    >>> image_symmetries(stripes, random_state=0).shown
    ('left_right', 'up_down', 'half_turn')
    """
    images, seed = Images(), resolve_seed(random_state)
    X, _ = images.read(X, Request("image_symmetries"))
    images.check_unusual(X, is_declared=False)
    X = representative_array(X)
    if not may_show_symmetries(len(X), X.shape[1:]):
        return ImageSymmetries()
    return symmetries_of(X, images.scaler().fit(X), seed)


def symmetries_of(X: Any, scaler: Any, seed: int) -> ImageSymmetries:
    """Return the symmetries of checked images, which are large and many enough.

    Parameters
    ----------
    X : array-like of shape (n_samples, height, width) or (n_samples, channels, height, width)
        Output of their kind.
    scaler : object
        Model to X.
    seed : int
        Seeds the choice of images, the dictionary and the folds.
    """
    rng, device = np.random.RandomState(seed), torch.device("cpu")
    rows = np.sort(rng.permutation(len(X))[:_MOST_IMAGES])
    with torch.no_grad():
        x = _prepared(as_float(scaler.to_tensor(X[rows], device)))
        is_square = x.shape[-2] == x.shape[-1]
        moves = {k: v for k, v in _MOVES.items() if k != "quarter_turn" or is_square}
        layer = _dictionary(x, moves, rng)
        features = _features([x, *(move(x) for move in moves.values())], layer)
    fold = rng.permutation(len(x)) % _FOLDS
    # The rounding of several threads is not reproducible.
    with on_threads(), threadpool_limits(1, user_api="openmp"):
        originals, *moved = _components(features)
        aucs = [_auc(originals, copies, fold) for copies in moved]
    return ImageSymmetries(**dict(zip(moves, aucs, strict=True)))


def may_show_symmetries(n_samples: int, image_shape: tuple | None) -> bool:
    """Return whether samples are images, large and many enough to detect symmetries."""
    are_large = image_shape is not None and min(image_shape[-2:]) >= _LEAST_SIDE
    return n_samples >= _FEWEST_IMAGES and are_large


def _prepared(x: Tensor) -> Tensor:
    """Return standardised images, reduced to about `_MOST_SIDE` pixels unless too small."""
    least, most = sorted(x.shape[-2:])
    x = F.avg_pool2d(x.float(), min(-(-most // _MOST_SIDE), least // _LEAST_SIDE))
    std, mean = torch.std_mean(x, dim=(0, 2, 3), keepdim=True)
    return (x - mean) / std.clamp(min=1e-6)


def _dictionary(x: Tensor, moves: Iterable[str], rng: np.random.RandomState) -> PatchLayer:
    """Return a patch dictionary, learned from all orientations of some images."""
    drawn = x[torch.from_numpy(rng.permutation(len(x))[:_N_LEARNED_FROM])]
    oriented = [drawn, drawn.flip(-1), drawn.flip(-2), drawn.flip(-1, -2)]
    if "quarter_turn" in moves:
        oriented += [images.mT for images in oriented]
    stride = max(1, min(x.shape[-2:]) // _STRIDES_PER_SIDE)
    layer = PatchLayer(_N_PATCHES, (x.shape[1], _PATCH_SIZE, _PATCH_SIZE), 1.0, stride)
    layer.learn(torch.cat(oriented), rng)
    return layer


def _features(copies: Sequence[Tensor], layer: PatchLayer) -> NDArray[np.float64]:
    """Return features (n_copies, n, d) of images and their copies, (n, channels, ...) each.

    They are patch-dictionary features and colours in a few cells, with the same total variance.
    """
    cells, batches = (_CELLS, _CELLS), [batch for images in copies for batch in images.split(100)]
    responses, colours = (
        torch.cat([average_to(cells, m.shape[-2:])(m).flatten(1) for m in maps]).double()
        for maps in (map(layer, batches), batches)
    )
    blocks = [_centred(responses, each=True), _centred(colours, each=False)]
    return torch.cat(blocks, dim=1).view(len(copies), len(copies[0]), -1).numpy()


def _centred(features: Tensor, *, each: bool) -> Tensor:
    """Return centred features (m, d) of total variance 1; with `each`, standardised first."""
    features = features - features.mean(dim=0)
    if each:
        features /= features.std(dim=0, correction=0).clamp(min=1e-6)
    return features / features.square().sum(dim=1).mean().sqrt().clamp(min=1e-6)


def _components(features: NDArray) -> NDArray[np.float64]:
    """Return principal components, (..., n_components); the first has variance 1."""
    rows = features.reshape(-1, features.shape[-1])
    variances, axes = np.linalg.eigh(rows.T @ rows / len(rows))
    return features @ axes[:, ::-1][:, :_N_COMPONENTS] / np.sqrt(max(variances[-1], 1e-12))


def _auc(originals: NDArray, moved: NDArray, fold: NDArray) -> float:
    """Return the cross-validated AUC of a classifier of images (n, d) against copies.

    An image and its copy are in the same fold.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import PredefinedSplit, cross_val_predict

    rows, y = np.concatenate([originals, moved]), np.repeat([0, 1], len(fold))
    classifier, folds = LogisticRegression(max_iter=300), PredefinedSplit(np.tile(fold, 2))
    scores = cross_val_predict(classifier, rows, y, cv=folds, method="decision_function")
    return float(roc_auc_score(y, scores))
