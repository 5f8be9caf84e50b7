"""Callbacks that evaluate an embedder during training.

Pass them to an embedder as ``callbacks``, alone or together with those of skorch.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike
from sklearn.metrics import check_scoring
from skorch.callbacks import Callback
from torch import Tensor

from ._checks import POSITIVE_INT, InvalidParameterError, validate_parameters
from ._checks._constraints import brief
from ._checks._names import names_checked
from ._warnings import CollapseWarning

__all__ = ["CollapseWarning", "Evaluation"]


@dataclass(eq=False, repr=False)
class Evaluation(Callback):
    """Score held-out samples while an embedder trains.

    Every `every` epochs, and after the last of `max_epochs`, the scorer is called with a fitted
    embedder, a copy of the state of the training. The score is a column of
    ``history_``, NaN in epochs without an evaluation, and appears in the progress bar. The
    callback does not change the training.

    Parameters
    ----------
    scoring : callable, dict or None
        A measure of :mod:`skcontrast.metrics`, or a function ``scoring(embedder, X, y)`` that
        returns a number, or a dictionary of numbers by name. A dictionary of such functions works
        too, but not the names of scikit-learn's scorers, which need predictions. None is
        ``ContrastiveEmbedder.score``. Greater is better: measures of which less is better are
        negated.
    X : array-like, Dataset, Modalities or list of graphs
        Held-out samples as input of the embedder: in a Pipeline, after the steps before it.
    y : array-like of shape (n_samples,), default=None
        Their classes, if the scorer needs them.
    every : int, default=1
        Epochs between evaluations, at least 1; counted over all fits of the embedder.
    patience : int, default=None
        Number of consecutive evaluations without a new best score after which training stops; None
        never stops.
    restore_best : bool, default=False
        Whether the weights of the best evaluation are restored at the end. The optimizer and a
        framework's memory keep the state of the last epoch.
    name : str, default=None
        The column of the history; with several scores, ``name_key`` is the column of each. None is
        the name of the function, or "score"; with several scores, their keys.

    Attributes
    ----------
    best_score_ : float
        The highest score of the last fit, −inf before the first evaluation. With several scores,
        only the first counts, also for `patience` and `restore_best`.
    best_epoch_ : int or None
        The epoch of that score, counted from 1 as ``epoch`` in the history.
    scores_ : dict of str to float
        The latest scores by column.

    See Also
    --------
    skcontrast.metrics.make_embedding_scorer : Scorers of custom measures, or with options.
    skcontrast.metrics.make_view_scorer : Scorers of two views, without labels.
    skorch.callbacks.EarlyStopping : Stopping by any column of the history.

    Notes
    -----
    Next to the column NAME, ``NAME_best`` is whether an epoch has the best score so far, which
    ``skorch.callbacks.Checkpoint(monitor="NAME_best")`` can watch.

    Clones share X and y. The pickle of a used callback lacks them, so that a saved embedder does
    not contain data: pass a new callback to continue its training.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import train_test_split
    >>> from skcontrast import ContrastiveEmbedder
    >>> from skcontrast.callbacks import Evaluation
    >>> from skcontrast.metrics import knn_accuracy
    >>> X, y = load_digits(return_X_y=True)
    >>> X_train, X_test, _, y_test = train_test_split(X, y, test_size=300, random_state=0)
    >>> evaluation = Evaluation(knn_accuracy, X_test, y_test, restore_best=True)
    >>> embedder = ContrastiveEmbedder(max_epochs=3, callbacks=[evaluation], random_state=0)
    >>> accuracies = embedder.fit(X_train).history_[:, "knn_accuracy"]
    >>> len(accuracies), max(accuracies) == evaluation.best_score_
    (3, True)
    """

    scoring: Callable[..., Any] | dict | None
    X: Any
    y: ArrayLike | None = None
    _: KW_ONLY
    every: int = 1
    patience: int | None = None
    restore_best: bool = False
    name: str | None = None
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "every": POSITIVE_INT,
        "patience": [*POSITIVE_INT, None],
        "restore_best": ["boolean"],
        "name": [str, None],
    }

    def initialize(self) -> Self:
        """Validate the parameters, and reset the scores."""
        if not (callable(self.scoring) or isinstance(self.scoring, (dict, type(None)))):
            raise InvalidParameterError(
                "The 'scoring' parameter of Evaluation must be a measure or several, such as "
                f"Evaluation(knn_accuracy, X, y), got {brief(self.scoring)}."
            )
        validate_parameters(self)
        if self.X is None:
            raise ValueError(
                "Evaluation has no held-out samples, because a pickle does not contain them: "
                "call set_params(callbacks=[Evaluation(...)]) before you fit it again."
            )
        self.best_score_, self.misses_ = -math.inf, 0
        self.best_epoch_: int | None = None
        self.best_weights_: dict[str, Tensor] | None = None
        # The columns that are known before the first evaluation.
        keys = self.scoring if isinstance(self.scoring, dict) else [None]
        self.scores_ = dict.fromkeys(map(self._column, keys), math.nan)
        return self

    def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
        """Evaluate the embedder if due, and record the scores."""
        epoch = len(net.history)
        is_due = epoch % self.every == 0 or net.is_last_epoch
        scores = self._evaluate(net.as_estimator()) if is_due else self.scores_
        is_best = is_due and next(iter(scores.values())) > self.best_score_
        for column, score in scores.items():
            if column in net.history[-1]:
                raise ValueError(f"The history has a column {column!r}: pass a different 'name'.")
            net.history.record(column, score if is_due else math.nan)
        net.history.record(f"{next(iter(scores))}_best", is_best)
        self.scores_ = scores
        if is_due:
            self._keep_best(net, is_best, epoch)

    def _evaluate(self, embedder: Any) -> dict[str, float]:
        """Return the scores of an embedder by column."""
        scores = check_scoring(embedder, self.scoring)(embedder, self.X, self.y)
        named = scores if isinstance(scores, dict) else {None: scores}
        return {self._column(key): float(score) for key, score in named.items()}

    def _keep_best(self, net: Any, is_best: bool, epoch: int) -> None:
        """Store the best score, or stop the training when patience is exhausted."""
        if not is_best:
            self.misses_ += 1
            if self.misses_ == self.patience:
                net.stop()
            return
        self.misses_, self.best_epoch_ = 0, epoch
        self.best_score_ = next(iter(self.scores_.values()))
        if self.restore_best:
            self.best_weights_ = copy.deepcopy(net.module_.state_dict())

    def on_train_end(self, net: Any, **kwargs: Any) -> None:
        """Restore the weights of the best epoch."""
        if self.best_weights_ is not None and self.best_epoch_ != len(net.history):
            net.module_.load_state_dict(self.best_weights_)
        self.best_weights_ = None

    def _column(self, key: str | None) -> str:
        """Return the column of a score; with several scores, by its key."""
        if key is not None:
            return key if self.name is None else f"{self.name}_{key}"
        return _name_of(self.scoring) if self.name is None else self.name

    def __sklearn_clone__(self) -> Evaluation:
        return type(self)(**self.get_params(deep=False))

    def __getstate__(self) -> dict[str, Any]:
        has_been_used = hasattr(self, "scores_")
        return {**vars(self), "X": None, "y": None} if has_been_used else vars(self).copy()

    def __repr__(self) -> str:
        defaults = {"every": 1, "patience": None, "restore_best": False, "name": None}
        values = {name: getattr(self, name) for name in defaults}
        options = [f"{k}={value!r}" for k, value in values.items() if value != defaults[k]]
        return f"Evaluation({', '.join([_name_of(self.scoring), 'X=...', *options])})"


Evaluation.__init__ = names_checked(Evaluation.__init__)  # type: ignore[method-assign]


def _name_of(scoring: Any) -> str:
    """Return the name of a scorer or of its measure, "score" if it has none."""
    function = getattr(scoring, "measure", scoring)
    name = getattr(getattr(function, "func", function), "__name__", "score")
    return name if name.isidentifier() else "score"
