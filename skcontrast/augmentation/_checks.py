"""Validation of custom augmentations."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from sklearn.base import clone
from torch import Tensor

from .._checks import validated
from .._data._arrays import representative_array
from .._runtime import guarded
from ..kinds._base import with_scaler
from ..kinds._recognise import declared_kind, read_samples
from ._base import Augmentation
from ._compose import compose
from ._views import base_of

# The number of samples, of copies of a sample, and of seeds.
_FEW = 8
# Views of the same samples that differ by less were drawn with the same random numbers.
_SAME = 1e-4


@guarded()
@validated(augmentation=Augmentation)
def check_augmentation(augmentation: Augmentation, X: Any) -> None:
    """Check that a custom augmentation draws independent random views, determined by the seed.

    Call this in a test of your class, or on a :class:`FunctionAugmentation`. ``fit`` only checks
    the type and the shape of views, and that they are finite.

    Parameters
    ----------
    augmentation : Augmentation
        Not modified; a clone is fitted to X.
    X : array-like of shape (n_samples, ...)
        Samples that differ from each other, such as the first 100 of a data set.

    Raises
    ------
    TypeError, ValueError
        If views have another type or shape than the samples, or are not finite; if the batch is
        changed in place; if the same seed draws different views; if
        all samples of a batch share their random numbers; if a view depends on other samples, as
        mixed samples do; or if views of images are far outside of [0, 1].

    See Also
    --------
    skcontrast.encoders.check_encoder : The same for an encoder.
    skcontrast.kinds.check_kind : The same for a kind of data.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from skcontrast.augmentation import FunctionAugmentation, check_augmentation
    >>> X = np.random.default_rng(0).normal(size=(20, 3))
    >>> check_augmentation(FunctionAugmentation(lambda x: x + torch.randn(x.shape)), X)
    >>> check_augmentation(FunctionAugmentation(lambda x: x + torch.randn(1)), X)
    Traceback (most recent call last):
    ...
    ValueError: FunctionAugmentation(<lambda>) draws the same random numbers for all samples of...
    """
    hint = declared_kind(augmentation)
    X, schema = read_samples(base_of(X), hint=hint, estimator=augmentation, min_samples=2)
    fitted = clone(augmentation).fit_checked(representative_array(X), schema)
    _, scaler, batch = with_scaler(schema.kind, X)

    def convert(samples: Any) -> Any:
        return scaler.to_tensor(samples, torch.device("cpu"))

    shape = schema.sample_shape
    composed = compose([fitted], shape, kind=schema.kind, convert=convert)
    samples = compose([], shape, kind=schema.kind)(batch[torch.arange(len(batch))[:_FEW]])

    def draw(samples: Any, seed: int) -> Any:
        return composed(samples, torch.Generator().manual_seed(seed))

    name = getattr(augmentation, "_name", f"{type(augmentation).__name__}.augment")
    if isinstance(samples, Tensor):
        _check_views(name, draw, samples)
    else:
        draw(samples, 0)


def _check_views(name: str, draw: Callable[[Tensor, int], Tensor], samples: Tensor) -> None:
    """Raise ValueError unless the seed and each sample alone determine a view."""
    first, second = draw(samples, 0), draw(samples, 0)
    if not torch.allclose(first, second, _SAME, _SAME, equal_nan=True):
        raise ValueError(
            f"{name} returned two different views of the same samples for the same seed: it draws "
            "from its own generator or a global one, and random_state has no effect. "
            "Let it draw only from a parameter 'seed', 'rng' or 'generator'."
        )
    seeds = np.random.default_rng(0).integers(2**32, size=_FEW).tolist()
    some, copies = samples[torch.arange(_FEW) % len(samples)], samples[[0] * _FEW]
    of_some, of_copies = ([draw(batch, seed) for seed in seeds] for batch in (some, copies))
    are_alike = all(torch.equal(views, views[:1].expand_as(views)) for views in of_copies)
    if are_alike and not all(torch.equal(views, of_copies[0]) for views in of_copies):
        raise ValueError(
            f"{name} draws the same random numbers for all samples of a batch: write "
            "torch.rand(len(x), ...), or FunctionAugmentation(..., per_sample=True)."
        )
    first, copy = (torch.stack([v[0] for v in views]) for views in (of_some, of_copies))
    if not torch.allclose(first, copy, _SAME, _SAME, equal_nan=True):
        raise ValueError(
            f"{name} mixes samples: row i of its output must depend only on row i of the batch."
        )
