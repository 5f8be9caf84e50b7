"""Augmentations of vectors: noise and marginal corruption."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from .._checks import FRACTION, NON_NEGATIVE, learned, parameter
from .._checks._arguments import naming
from .._data._arrays import as_tensor, column_scaler, subset
from .._runtime import guarded
from ._base import Augmentation, as_float, changed, generator_for
from ._matrices import uniform


class GaussianNoise(Augmentation):
    """Add independent Gaussian noise to features of vectors, steps of series, pixels of images.

    .. math:: \\tilde x_j = x_j + \\mathrm{scale} \\cdot \\sigma_j\\, \\varepsilon_j,
        \\qquad \\varepsilon_j \\sim \\mathcal{N}(0, 1)

    where :math:`\\sigma_j` is the standard deviation of feature j in the training samples for
    vectors, and 1 for images and for series, which are standardised before. Images are not clamped
    to [0, 1] afterwards.

    Parameters
    ----------
    scale : float, default=0.1
        Standard deviation of the noise, at least 0: as a fraction of the standard deviation of
        each feature for vectors, in the units of the batch for series (with the default
        ``kinds.Series()``, the standard deviation of each channel), and in units of the intensity
        range [0, 1] for images. A feature that is constant in the training samples gets no noise.

    Attributes
    ----------
    mean_, std_ : ndarray of shape (n_features,)
        Mean and standard deviation of each feature; only after fitting vectors.

    See Also
    --------
    MarginalCorruption : Replaces features by draws from their marginals.
    GaussianBlur : Blurs images.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from skcontrast.augmentation import GaussianNoise
    >>> X = np.array([[0.0, 5.0], [1000.0, 5.0]])
    >>> noise = GaussianNoise(scale=0.1).fit(X)
    >>> noise.std_
    array([500.,   0.])
    >>> noise.augment(torch.from_numpy(X), torch.Generator().manual_seed(0))[:, 1]
    tensor([5., 5.], dtype=torch.float64)
    """

    scale: float = parameter(NON_NEGATIVE, default=0.1)

    kind = ("vectors", "series", "images")
    mean_: Any = learned()
    std_: Any = learned()

    def learn(self, X: NDArray) -> None:
        self.__dict__.pop("mean_", None)
        self.__dict__.pop("std_", None)
        if X.ndim == 2:
            columns = column_scaler(X)
            self.mean_, self.std_ = columns.mean_, np.sqrt(columns.var_)

    def prepared(self, convert: Callable[[Any], Tensor]) -> Augmentation:
        """Return a copy whose ``std_`` is in the units of the training batches."""
        if not hasattr(self, "std_"):
            return self
        centre = convert(self.mean_[np.newaxis])
        with np.errstate(over="ignore"):  # near the limit of float64
            above = np.minimum(self.mean_ + self.std_, np.finfo(np.float64).max)
        return changed(self, std_=(convert(above[np.newaxis]) - centre).abs()[0])

    @guarded(gradients=False)
    def augment(self, batch: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Return `batch` with noise added: a tensor of the same shape, see the base class."""
        batch = as_float(batch)
        generator = generator_for(batch, generator)
        noise = torch.randn(
            batch.shape, generator=generator, dtype=batch.dtype, device=batch.device
        )
        if batch.ndim == 2:
            check_is_fitted(self, "std_")
            std = self.std_ if isinstance(self.std_, Tensor) else as_tensor(self.std_)
            noise.mul_(std.to(batch))
        return noise.mul_(self.scale).add_(batch)


class MarginalCorruption(Augmentation):
    """Replace a random subset of the features by draws from their empirical marginals.

    The corruption of SCARF [1]_: in each sample ``round(rate * n_groups)`` groups of features (at
    least one unless the rate is 0), chosen uniformly without replacement, take their values from a
    random training sample, drawn independently for each replaced group. A group is a
    feature, or features that encode one variable together, such as the columns of a one-hot
    encoder.

    Parameters
    ----------
    rate : float, default=0.4
        Fraction of the groups, in [0, 1], that is replaced in each sample. The paper uses 0.6.
    groups : "one-hot", list of lists or None, default="one-hot"
        Which features are replaced together. "one-hot" finds neighbouring features that are 0 or
        1 and of which exactly one is 1 in every row of ``marginals_``. A list holds the positions
        or names of the features of each group; all other features are replaced separately. None
        replaces each feature separately.

    Attributes
    ----------
    marginals_ : ndarray of shape (n_rows, n_features)
        A copy of at most 10,000 training samples, evenly spread. It is pickled with the
        augmentation; :func:`skcontrast.save` leaves it out.
    groups_ : ndarray of shape (n_features,)
        The number of the group of each feature.

    See Also
    --------
    GaussianNoise : Adds noise to features.

    References
    ----------
    .. [1] D. Bahri, H. Jiang, Y. Tay, D. Metzler, "SCARF: Self-Supervised Contrastive Learning
       using Random Feature Corruption", ICLR 2022.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from skcontrast.augmentation import MarginalCorruption
    >>> corruption = MarginalCorruption(rate=0.5).fit(np.ones((4, 6)))
    >>> corruption.augment(torch.zeros(2, 6)).sum(dim=1)
    tensor([3., 3.])

    A category in three columns, and a number; no view has two categories:

    >>> X = np.array([[1, 0, 0, 5.2], [0, 1, 0, 1.4], [0, 0, 1, 3.7]])
    >>> corruption = MarginalCorruption(rate=0.5).fit(X)
    >>> corruption.groups_
    array([0, 0, 0, 1])
    >>> corruption.augment(torch.from_numpy(X))[:, :3].sum(dim=1)
    tensor([1., 1., 1.], dtype=torch.float64)
    """

    rate: float = parameter(FRACTION, default=0.4)
    groups: Literal["one-hot"] | Sequence[Sequence[int | str]] | None = parameter(
        [{"one-hot"}, list, tuple, None], default="one-hot"
    )

    kind = "vectors"

    _samples = ("marginals_",)

    def learn(self, X: NDArray) -> None:
        X = X.reshape(len(X), -1)
        self.marginals_ = subset(X).copy()
        if isinstance(self.groups, str):
            self.groups_ = one_hot_groups(self.marginals_)
        elif self.groups is None:
            self.groups_ = np.arange(X.shape[1])
        else:
            self.groups_ = _numbered(self.groups, X.shape[1], self._schema.feature_names_in)

    def prepared(self, convert: Callable[[Any], Tensor]) -> Augmentation:
        """Return a copy whose ``marginals_`` are in the units of the training batches."""
        return changed(self, marginals_=convert(self.marginals_).contiguous())

    @guarded(gradients=False)
    def augment(self, batch: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Return `batch` corrupted: a tensor of the same shape, see the base class."""
        batch = as_float(batch)
        self.check_kind(batch.shape[1:])
        check_is_fitted(self, "marginals_")
        generator = generator_for(batch, generator)
        n, d = batch.shape
        table = torch.as_tensor(self.marginals_).to(batch.device)
        if d != table.shape[1]:
            raise ValueError(f"batch must have {table.shape[1]} features, got {d}.")
        groups = self.groups_
        n_groups = int(groups.max()) + 1
        chosen, donors = self._draw(n, n_groups, generator)
        # If each feature is a group, only the drawn entries are replaced.
        if n_groups == d:
            return batch.scatter(1, chosen, table[donors, chosen].to(batch))
        # Features of a group come from the same donor, -1 for unchanged groups.
        donor_of_group = donors.new_full((n, n_groups), -1).scatter(1, chosen, donors)
        rows = donor_of_group[:, torch.from_numpy(groups).to(batch.device)]
        return torch.where(rows < 0, batch, table.gather(0, rows.clamp_min(0)).to(batch))

    def _draw(self, n: int, n_groups: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Draw the replaced groups of n samples, and the rows of their new values."""
        count = max(round(self.rate * n_groups), 1 if self.rate > 0 else 0)
        keys = uniform(n, n_groups, generator)
        size, device = (n, count), keys.device
        rows = torch.randint(len(self.marginals_), size, generator=generator, device=device)
        return _largest(keys, count), rows


def one_hot_groups(X: NDArray) -> NDArray[np.int64]:
    """Return the number of the group of each feature: runs of 0 and 1 that always sum to 1.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Training samples, or a subset of them. A run has at least two features.
    """
    n, d = X.shape
    columns = np.arange(d)
    is_one = X == 1
    is_binary = (is_one | (X == 0)).all(axis=0)
    # A run ends once it has as many ones as there are rows, if no row has two of them.
    n_ones = np.where(is_binary, is_one.sum(axis=0), n + 1)
    before = np.append(0, n_ones.cumsum())
    end = np.searchsorted(before, before[:-1] + n).clip(max=d)
    row, column = is_one.nonzero()
    follows = row[1:] == row[:-1]
    # The first column that has a row's second 1, in runs from each column on.
    second = np.full(d, d)
    np.minimum.at(second, column[:-1][follows], column[1:][follows])
    second = np.minimum.accumulate(second[::-1])[::-1]
    is_run = (before[end] == before[:-1] + n) & (end <= second) & (end > columns + 1)
    begins, last = np.ones(d, dtype=bool), 0
    for start in columns[is_run].tolist():
        if start >= last:
            last = int(end[start])
            begins[start + 1 : last] = False
    return begins.cumsum() - 1


def _numbered(groups: Sequence, d: int, names: NDArray | None) -> NDArray[np.int64]:
    """Return the number of the group of each of d features, from lists of positions or names."""
    columns = {} if names is None else {name: k for k, name in enumerate(names)}
    group_of = len(groups) + np.arange(d)  # each other feature is a group
    with naming("groups", "lists of features of X"):
        for group, members in enumerate(groups):
            group_of[[columns.get(member, member) for member in members]] = group
    return np.unique(group_of, return_inverse=True)[1]


def _largest(keys: Tensor, count: int) -> Tensor:
    """Return the columns of the `count` largest keys of each row, in no particular order."""
    if keys.device.type != "cpu" or not 0 < count < keys.shape[1]:
        return keys.topk(count, dim=1, sorted=False).indices
    # numpy takes less than half the time of torch.
    return torch.from_numpy(keys.numpy().argpartition(-count, axis=1)[:, -count:])
