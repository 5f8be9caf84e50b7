"""A display of the scores of a search over hyperparameters."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .._arguments import checked
from ._axes import MARKERS, Axes, axes, class_colors, is_number

# More combinations of the remaining hyperparameters than this do not get a line each.
_MOST_LINES = 6
# On a logarithmic axis, values get a label if so many gaps of the smallest size would fill it,
# and if their labels are not longer than this, in characters.
_MOST_GAPS = 8
_LONGEST_LABEL = 6


class SearchDisplay:
    """A hyperparameter against the score of a search, with the spread over folds.

    Each line shows, for every value of the hyperparameter, the candidate with the best mean score
    among those of the line; the bars are one standard deviation over the folds on either side.
    All other candidates are faint points.

    Parameters
    ----------
    cv_results : dict
        As in ``search.cv_results_``.
    parameter : str, default=None
        The hyperparameter on the x axis, such as ``"embed__loss__tau_plus"`` or, where that is
        clear, its end, ``"tau_plus"``; None is the one that has the most values.
    lines : str or sequence of str, default=None
        Hyperparameters each combination of which has a line. None takes all that differ between
        candidates if they make at most six combinations, and otherwise none.
    metric : str, default="score"
        The metric of a search over several.

    Attributes
    ----------
    ax_ : Axes
        The axes of the scores.
    figure_ : Figure
        The figure of `ax_`.
    lines_ : dict of str to ErrorbarContainer
        The scores by the label of the line.
    points_ : PathCollection
        All candidates.

    See Also
    --------
    TrainingCurveDisplay : The history of one fit.
    sklearn.model_selection.GridSearchCV : Searches a grid.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import GridSearchCV
    >>> from skcontrast import ContrastiveEmbedder
    >>> from skcontrast.plotting import SearchDisplay
    >>> X, _ = load_digits(return_X_y=True)
    >>> grid = {"similarity__temperature": [0.1, 1.0, 10.0]}
    >>> search = GridSearchCV(ContrastiveEmbedder(max_epochs=1, random_state=0), grid, cv=2)
    >>> display = SearchDisplay.from_estimator(search.fit(X[:100]))
    >>> display.ax_.get_xlabel(), display.ax_.get_xscale()
    ('temperature', 'log')
    """

    @checked(
        cv_results=[Mapping], parameter=[str, None], lines=[str, list, tuple, None], metric=[str]
    )
    def __init__(
        self,
        cv_results: Mapping[str, Any],
        *,
        parameter: str | None = None,
        lines: str | Sequence[str] | None = None,
        metric: str = "score",
    ):
        self.cv_results = cv_results
        self.metric = metric
        if "params" not in cv_results:
            raise ValueError("cv_results must be the cv_results_ of a search, with 'params'.")
        if f"mean_test_{metric}" not in cv_results:
            found = [key[10:] for key in cv_results if key.startswith("mean_test_")]
            raise ValueError(f"metric must be among {found}, got {metric!r}.")
        values = _values(cv_results["params"])
        if not values:
            raise ValueError("The candidates in cv_results have no hyperparameters.")
        if parameter is None:
            parameter = max(values, key=lambda name: len(set(_texts(values[name]))))
        self.parameter = _full_name(parameter, values)
        self.lines = self._chosen_lines(lines, values)

    @classmethod
    def from_estimator(
        cls,
        search: Any,
        parameter: str | None = None,
        *,
        lines: str | Sequence[str] | None = None,
        metric: str = "score",
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> SearchDisplay:
        """Draw the scores of a fitted search.

        Parameters
        ----------
        search : GridSearchCV, RandomizedSearchCV or any object with ``cv_results_``
            Fitted.
        parameter : str, default=None
            The hyperparameter on the x axis, as for the class.
        lines : str or sequence of str, default=None
            Hyperparameters each combination of which has a line, as for the class.
        metric : str, default="score"
            The metric of a search over several.
        ax : Axes, default=None
            The axes to draw on; None makes a figure.
        **kwargs : dict
            Passed to ``Axes.errorbar``.

        Returns
        -------
        display : SearchDisplay
            Already drawn.

        Raises
        ------
        ValueError
            If a hyperparameter was not searched, or a metric not computed.
        """
        if inspect.isclass(search) or not hasattr(search, "fit"):
            raise TypeError(f"search must be a fitted search, got {search!r}.")
        check_is_fitted(search, "cv_results_")
        results = search.cv_results_
        return cls(results, parameter=parameter, lines=lines, metric=metric).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> SearchDisplay:
        """Draw the scores.

        Parameters
        ----------
        ax : Axes, default=None
            The axes to draw on; None makes a figure.
        **kwargs : dict
            Passed to ``Axes.errorbar``.

        Returns
        -------
        display : SearchDisplay
            This display.
        """
        from matplotlib.transforms import ScaledTranslation

        self.ax_ = axes(ax, figsize=(6.2, 4.0))
        self.figure_ = self.ax_.figure
        results, metric = self.cv_results, self.metric
        values = _values(results["params"])
        mean, std = (np.asarray(results[f"{s}_test_{metric}"]) for s in ("mean", "std"))
        has_value = np.array([value is not _ABSENT for value in values[self.parameter]])
        x = self._positions(values[self.parameter], has_value)
        groups = self._groups(values, has_value)
        colors = dict(zip(groups, class_colors(len(groups)), strict=True))
        places = np.concatenate(list(groups.values()))
        of_places = [colors[label] for label, rows in groups.items() for _ in rows]
        dots: dict[str, Any] = {"s": 12, "alpha": 0.35, "linewidths": 0}
        self.points_ = self.ax_.scatter(x[places], mean[places], c=of_places, **dots)
        self.lines_, inches = {}, self.figure_.dpi_scale_trans
        for k, (label, rows) in enumerate(groups.items()):
            best = _best_by_position(x, mean, rows)
            # Points of candidates that differ in other hyperparameters too are not one curve.
            others = [_texts(values[name]) for name in values if name != self.parameter]
            is_curve = all(len({texts[row] for row in rows}) == 1 for texts in others)
            aside = ScaledTranslation((4 * k - 2 * (len(groups) - 1)) / 72, 0, inches)
            style = {
                "label": label,
                "color": colors[label],
                "marker": MARKERS[k % len(MARKERS)],
                "linestyle": "-" if is_curve or len(best) < len(rows) else "none",
                "capsize": 3,
                "markersize": 5,
                "transform": self.ax_.transData + aside,  # so that bars do not hide each other
                **kwargs,
            }
            self.lines_[label] = self.ax_.errorbar(x[best], mean[best], std[best], **style)
            # Lines that are moved do not count where matplotlib looks for the range of the data.
            ends = [(x[best], mean[best] + sign * std[best]) for sign in (-1, 1)]
            every = np.concatenate(ends, axis=1).T
            self.ax_.update_datalim(every[np.isfinite(every).all(axis=1)])
        self.ax_.autoscale_view()
        names = _short_names(values)
        self.ax_.set(xlabel=names[self.parameter], ylabel=f"mean {metric} over the folds")
        if self.lines:
            self.ax_.legend(title=", ".join(names[name] for name in self.lines))
        return self

    def _chosen_lines(
        self, lines: str | Sequence[str] | None, values: dict[str, list[Any]]
    ) -> list[str]:
        if lines is not None:
            lines = [lines] if isinstance(lines, str) else lines
            return [_full_name(str(name), values) for name in lines]
        texts = {name: _texts(values[name]) for name in values if name != self.parameter}
        varying = [name for name in texts if len(set(texts[name])) > 1]
        combinations = set(zip(*(texts[name] for name in varying), strict=True))
        return varying if len(combinations) <= _MOST_LINES else []

    def _positions(self, values: list[Any], has_value: NDArray) -> NDArray:
        """Return the places of the candidates on the x axis, and set up the axis."""
        present = [value for value, has in zip(values, has_value, strict=True) if has]
        x = np.full(len(values), np.nan)
        if all(is_number(value) for value in present):
            x[has_value] = present
            if _spans_decades(tried := np.unique(x[has_value])):
                self._set_log_scale(tried)
            else:
                self.ax_.set_xscale("linear")
            return x
        texts = list(dict.fromkeys(_texts(present)))
        x[has_value] = [texts.index(text) for text in _texts(present)]
        self.ax_.set_xticks(range(len(texts)), texts)
        self.ax_.margins(x=0.1)
        return x

    def _set_log_scale(self, tried: NDArray) -> None:
        """Label the tried values if they are short and far apart, and else only the decades."""
        from matplotlib.ticker import NullFormatter

        self.ax_.set_xscale("log")
        gaps = np.diff(np.log(tried))
        texts = [_text(value) for value in tried]
        if gaps.min() >= gaps.sum() / _MOST_GAPS and max(map(len, texts)) <= _LONGEST_LABEL:
            self.ax_.set_xticks(tried, texts)
        # Labels between the decades, of which matplotlib sets up to eight, would overlap.
        self.ax_.xaxis.set_minor_formatter(NullFormatter())

    def _groups(self, values: dict[str, list[Any]], has_value: NDArray) -> dict[str, NDArray]:
        """Return the candidates of each line, by its label."""
        columns = [_texts(values[name]) for name in self.lines]
        groups: dict[str, list[int]] = {}
        for row in np.flatnonzero(has_value).tolist():
            label = ", ".join(texts[row] for texts in columns) or "best"
            groups.setdefault(label, []).append(row)
        return {label: np.array(rows) for label, rows in groups.items()}


# The value of a hyperparameter that a candidate does not have.
_ABSENT = object()


def _values(params: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return the values of each hyperparameter; _ABSENT where a candidate has none."""
    names = dict.fromkeys(name for candidate in params for name in candidate)
    return {name: [candidate.get(name, _ABSENT) for candidate in params] for name in names}


def _texts(values: Sequence[Any]) -> list[str]:
    return list(map(_text, values))


def _text(value: Any) -> str:
    if value is _ABSENT:
        return "–"
    if isinstance(value, str):
        return value
    if is_number(value) or isinstance(value, (float, np.floating)):
        return f"{value:g}"
    return f"{type(value).__name__}()" if len(repr(value)) > 40 else repr(value)


def _spans_decades(values: NDArray) -> bool:
    """Return whether numbers are spread over a decade or more, and more evenly by ratio."""
    if len(values) < 2 or values[0] <= 0 or values[-1] < 10 * values[0]:
        return False
    gaps, ratios = np.diff(values), np.diff(np.log(values))
    if len(values) == 2 or values[-1] >= 30 * values[0]:
        return True
    return bool(ratios.std() / ratios.mean() < gaps.std() / gaps.mean())


def _short_names(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the end of each name, as long as needed to be the only one."""
    short = {}
    for name in values:
        parts = name.split("__")
        ends = ["__".join(parts[-k:]) for k in range(1, len(parts) + 1)]
        short[name] = next((end for end in ends if _ending_in(end, values) == [name]), name)
    return short


def _ending_in(end: str, values: Mapping[str, Any]) -> list[str]:
    return [name for name in values if name == end or name.endswith(f"__{end}")]


def _full_name(name: str, values: Mapping[str, Any]) -> str:
    """Return the hyperparameter with this name, or with a name that ends so."""
    found = [name] if name in values else _ending_in(name, values)
    if len(found) != 1:
        problem = f"several, {found}," if found else "none"
        raise ValueError(
            f"The names in parameter and lines must be among {list(values)}, or the end of one; "
            f"{name!r} is {problem} of them."
        )
    return found[0]


def _best_by_position(x: NDArray, mean: NDArray, rows: NDArray) -> NDArray:
    """Return the best candidate at each place, from left to right."""
    best = []
    for place in np.unique(x[rows]):
        here = rows[x[rows] == place]
        best.append(here[np.nanargmax(mean[here])] if np.isfinite(mean[here]).any() else here[0])
    return np.array(best)
