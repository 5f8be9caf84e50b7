"""Folds of samples of which few have labels."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import BaseCrossValidator, check_cv
from sklearn.utils import check_consistent_length

from ._checks import naming
from ._data._metadata import group_codes, known_classes


class LabeledFolds(BaseCrossValidator):
    """Folds of the samples whose class is known; all others are in every training part.

    Other splitters put samples of unknown class into the test parts, where most scorers count
    every prediction as wrong.

    Parameters
    ----------
    cv : int or splitter, default=5
        How the samples of known class are divided; an int is the number of stratified folds.

    See Also
    --------
    ContrastiveClassifier : What it is for.

    Examples
    --------
    >>> import numpy as np
    >>> from skcontrast import LabeledFolds
    >>> y = np.array([0, 1, -1, 0, 1, -1])
    >>> for train, test in LabeledFolds(2).split(np.zeros(6), y):
    ...     print(train, test)
    [2 3 4 5] [0 1]
    [0 1 2 5] [3 4]
    """

    __metadata_request__split = {"groups": True}

    def __init__(self, cv: Any = 5):
        self.cv = cv

    def split(
        self, X: Any, y: ArrayLike, groups: ArrayLike | None = None
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Yield the rows of each training and test part.

        Parameters
        ----------
        X : object
            Ignored.
        y : array-like of shape (n_samples,)
            Classes; −1, None, NaN or ``pandas.NA`` where unknown.
        groups : array-like of shape (n_samples,), default=None
            Groups for a splitter that needs them, such as ``GroupKFold``.

        Yields
        ------
        train, test : ndarray of int
            Rows of X.
        """
        values, is_known = known_classes(y, needed_by="LabeledFolds")
        known, unknown = np.flatnonzero(is_known), np.flatnonzero(~is_known)
        with naming("groups", "an array of groups, one for each entry of y"):
            check_consistent_length(is_known, groups)
            groups = None if groups is None else group_codes(groups, len(is_known))[known]
        most = np.unique(values, return_counts=True)[1].max()
        if isinstance(self.cv, Integral) and most < self.cv:
            advice = f"LabeledFolds({most}) or fewer folds" if most > 1 else "more labels"
            raise ValueError(
                f"LabeledFolds({self.cv}) needs a class with {self.cv} labels, and the largest in "
                f"y has {most}: pass {advice}."
            )
        with naming("cv", "a number of folds, or a splitter, that suits y and groups"):
            folds = check_cv(self.cv, values, classifier=True).split(known, values, groups)
            folds = [(np.r_[unknown, known[train]], known[test]) for train, test in folds]
        for train, test in folds:
            yield np.sort(train), test

    def get_n_splits(
        self, X: Any = None, y: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> int:
        """Return the number of folds.

        Parameters
        ----------
        X, y, groups : object, default=None
            As in `split`; a splitter may need them to count its folds.

        Returns
        -------
        n_splits : int
        """
        if y is None:
            return check_cv(self.cv).get_n_splits(X, y, groups)
        return sum(1 for _ in self.split(X, y, groups))
