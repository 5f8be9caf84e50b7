"""A display of the history of a fit, epoch by epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .._checks import checked, naming
from ..metrics._scorers import split_at_embedder
from ._axes import Axes, axes, class_colors, is_number, pyplot

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

_LABELS = {
    "train_loss": "training loss",
    "lr": "learning rate",
    "loss__alpha": "α",
    "loss__tau_plus": "τ⁺",
    "loss__beta": "β",
    "similarity__temperature": "temperature t",
}
# Counts and times that skorch records.
_BOOKKEEPING = ("epoch", "dur", "batches")
_LINESTYLES = ("-", "--", ":", "-.")


class TrainingCurveDisplay:
    """Loss, schedules, estimates and metrics by epoch, of one fit or several.

    Parameters
    ----------
    histories : dict of str to sequence of dict
        A row per epoch of each fit, by its name, as in ``embedder.history_``. A row may
        lack a column, such as a metric that is computed every fifth epoch.

    Attributes
    ----------
    axes_ : dict of str to Axes
        The axes of each column.
    figure_ : Figure
        Their figure.
    lines_ : dict of str to dict of str to Line2D
        By column and by name of the fit.

    See Also
    --------
    skcontrast.ContrastiveEmbedder : Has ``history_``.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from skcontrast import ContrastiveEmbedder
    >>> from skcontrast.plotting import TrainingCurveDisplay
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> embedder = ContrastiveEmbedder(max_epochs=5, random_state=0).fit(X)
    >>> display = TrainingCurveDisplay.from_estimator(embedder)
    >>> list(display.axes_)
    ['train_loss', 'lr']
    >>> display.lines_["train_loss"]["ContrastiveEmbedder"].get_xdata()
    array([1, 2, 3, 4, 5])
    """

    def __init__(self, histories: Mapping[str, Sequence[Mapping[str, Any]]]):
        if not isinstance(histories, Mapping) or not histories:
            raise TypeError(f"histories must be a non-empty dict, got {histories!r}.")
        with naming("histories", "a dict of histories, lists of dicts"):
            self.histories = {str(name): list(map(dict, rows)) for name, rows in histories.items()}

    @classmethod
    @checked(columns=[str, list, tuple, None])
    def from_estimator(
        cls,
        estimator: Any,
        *,
        columns: Sequence[str] | None = None,
        ax: Axes | Sequence[Axes] | None = None,
        **kwargs: Any,
    ) -> TrainingCurveDisplay:
        """Draw the history of a fitted embedder, or of several.

        Parameters
        ----------
        estimator : ContrastiveEmbedder, Pipeline, or dict of str to these
            Fitted; a Pipeline has an embedder as a step. A dict draws several fits in one picture
            and names them.
        columns : sequence of str, default=None
            As in `plot`.
        ax : Axes or sequence of Axes, default=None
            As in `plot`.
        **kwargs : dict
            Passed to ``Axes.plot``.

        Returns
        -------
        display : TrainingCurveDisplay
            Already drawn.
        """
        histories = {}
        named = estimator if isinstance(estimator, Mapping) else {None: estimator}
        for name, fitted in named.items():
            _, embedder = split_at_embedder(fitted, at_end=False)
            check_is_fitted(embedder)
            histories[name or type(embedder).__name__] = embedder.history_
        return cls(histories).plot(ax, columns=columns, **kwargs)

    @checked(columns=[str, list, tuple, None])
    def plot(
        self,
        ax: Axes | Sequence[Axes] | None = None,
        *,
        columns: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> TrainingCurveDisplay:
        """Draw a curve for each column and fit.

        Parameters
        ----------
        ax : Axes or sequence of Axes, default=None
            One for each column. None makes a figure with the columns one below the other.
        columns : sequence of str, default=None
            The columns that are drawn. None is ``train_loss`` if `ax` is a single Axes, and else
            all numbers that change from epoch to epoch in one of the fits, but for counts and
            durations.
        **kwargs : dict
            Passed to ``Axes.plot``.

        Returns
        -------
        display : TrainingCurveDisplay
            This display.

        Raises
        ------
        ValueError
            If no history has a column of such a name, or the number of axes is not that of the
            columns.
        """
        known = self._columns()
        if columns is None:
            varying = [name for name in known if name == "train_loss" or self._varies(name)]
            columns = varying if ax is None or np.iterable(ax) else ["train_loss"]
        columns = [columns] if isinstance(columns, str) else list(columns)
        wrong = [repr(name) for name in columns if name not in known]
        if wrong or not columns:
            raise ValueError(f"columns must be among {known}, got {', '.join(wrong) or 'none'}.")
        self.axes_ = dict(zip(columns, _axes_of(ax, columns), strict=True))
        self.figure_: Figure | SubFigure = self.axes_[columns[0]].figure
        self.lines_ = {name: self._plot_column(name, **kwargs) for name in columns}
        for axis in {id(axis): axis for axis in self.axes_.values()}.values():
            if ax is not None or axis is self.axes_[columns[-1]]:
                axis.set_xlabel("epoch")
        if len(self.histories) > 1:
            self.axes_[columns[0]].legend()
        return self

    def _plot_column(self, column: str, **kwargs: Any) -> dict[str, Any]:
        from matplotlib.ticker import MaxNLocator

        ax, lines = self.axes_[column], {}
        colors = class_colors(len(self.histories))
        for k, name in enumerate(self.histories):
            epochs, values = self._curve(name, column)
            if not len(epochs):
                continue
            is_full = len(epochs) == len(self.histories[name])
            style = {
                "label": name,
                "color": colors[k],
                "linestyle": _LINESTYLES[k % len(_LINESTYLES)],
                "marker": "" if is_full and len(epochs) > 1 else "o",
                "markersize": 4,
                **kwargs,
            }
            (lines[name],) = ax.plot(epochs, values, **style)
        ax.set_ylabel(_LABELS.get(column, column))
        ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        return lines

    def _curve(self, name: str, column: str) -> tuple[NDArray, NDArray]:
        """Return the epochs in which a fit recorded a column, and the values."""
        rows = enumerate(self.histories[name], 1)
        found = [(row.get("epoch", k), row.get(column)) for k, row in rows]
        pairs = [pair for pair in found if is_number(pair[1])]
        epochs, values = zip(*pairs, strict=True) if pairs else ((), ())
        return np.array(epochs, dtype=int), np.array(values, dtype=float)

    def _columns(self) -> list[str]:
        """Return the columns of numbers, the loss first and the learning rate last."""
        rows = [row for history in self.histories.values() for row in history]
        every = sorted({c for row in rows for c in row if is_number(row[c])})
        kept = [c for c in every if c not in _BOOKKEEPING and not c.endswith("_batch_count")]
        return sorted(kept, key=lambda name: (name == "lr") - (name == "train_loss"))

    def _varies(self, column: str) -> bool:
        curves = [self._curve(name, column)[1] for name in self.histories]
        return any(np.ptp(values) > 0 for values in curves if len(values))


def _axes_of(ax: Any, columns: Sequence[str]) -> list[Axes]:
    """Return the given axes or new ones, one for each column."""
    n = len(columns)
    if ax is None:
        size = (6.0, 1.2 + 1.6 * n) if n > 1 else (6.0, 3.6)
        settings = {"figsize": size, "layout": "constrained"}
        return list(pyplot().subplots(n, sharex=True, squeeze=False, **settings)[1].ravel())
    is_several = isinstance(ax, (list, tuple, np.ndarray))
    given = [axes(one) for one in (np.asarray(ax, dtype=object).ravel() if is_several else [ax])]
    if len(given) != n:
        raise ValueError(f"ax must hold an Axes for each of {list(columns)}, got {len(given)}.")
    return given
