"""Comparison of an embedder with training-free baselines."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from time import process_time
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from ._checks import POSITIVE_INT, StrOptions
from ._checks._arguments import check_argument, check_length, validated
from ._checks._constraints import SEEDS, TWO_OR_MORE
from ._data._metadata import validate_labels
from ._model._defaults import defaults_of
from ._runtime import guarded
from ._warnings import progress
from ._whitening import ViewWhitening
from .features import Features, Frozen, PartialWhitening, Raw
from .kinds import Kind
from .kinds._recognise import is_custom
from .metrics._labeled import check_count
from .metrics._neighbors import knn_accuracy
from .metrics._paired import PairedComparison, compare_paired
from .metrics._probes import _first_seed, few_label_accuracy, linear_probe
from .metrics._scorers import split_at_embedder

if TYPE_CHECKING:
    from pandas import DataFrame

    from .embedder import ContrastiveEmbedder

OURS, BOTH = "embedder", "concatenated"
COLUMNS = ("few labels", "neighbours", "linear")
# Maximum number of labeled samples for training and for testing.
_MOST = 1000
_N_NEIGHBORS = 20
_MOST_COMPONENTS = 64
# Differences with a smaller p-value are significant.
LEVEL = 0.05
# Accuracies that differ by less count as the same.
_SAME = 0.02
_MORE = " More repeats decide it for few labels, more labeled samples for the others."

# The name of a row, a function that returns its features, and whether to standardise them.
_Row = tuple[str, Callable[[], NDArray], bool]


@dataclass(frozen=True)
class BaselineComparison:
    """The result of :func:`compare_with_baselines`; ``str`` returns a table with a verdict.

    Attributes
    ----------
    scores : dict of str to dict of str to ndarray of shape (n_repeats,)
        The accuracies by row, such as "raw" and "embedder", and column: "few labels",
        "neighbours" and "linear".
    seconds : dict of str to float
        CPU seconds of fitting and embedding, by row; those of "concatenated" without its
        blocks. For an embedder that was fitted before, the time of its epochs and of `transform`.
    n_labels : int
        Labels per class in the column "few labels".
    n_labeled : int
        Number of labeled samples.
    baseline : str or None
        The row with which `verdict` compares; None is the one with the highest mean.
    """

    scores: dict[str, dict[str, NDArray[np.float64]]]
    seconds: dict[str, float]
    n_labels: int
    n_labeled: int
    baseline: str | None = None

    def compare(self, row: str, column: str) -> PairedComparison:
        """Compare the embedder with a row, repeat by repeat.

        Parameters
        ----------
        row : str
            One of the rows.
        column : {"few labels", "neighbours", "linear"}
            One of the columns.

        Returns
        -------
        comparison : PairedComparison
            Of embedder − row. For neighbours and the linear model, training and test sets of
            different repeats overlap, which widens the interval, see :func:`compare_paired`.
        """
        check_argument("compare", "row", row, [StrOptions(set(self.scores))])
        check_argument("compare", "column", column, [StrOptions(set(COLUMNS))])
        return self._compare(row, column)

    def _compare(self, row: str, column: str, **options: float) -> PairedComparison:
        ours, theirs = self.scores[OURS][column], self.scores[row][column]
        ratio = None if column == COLUMNS[0] else 1.0
        return compare_paired(ours, theirs, test_train_ratio=ratio, **options)

    def best_baseline(self, column: str) -> str:
        """Return the training-free row with the highest mean.

        Parameters
        ----------
        column : {"few labels", "neighbours", "linear"}
            One of the columns.

        Returns
        -------
        row : str
        """
        check_argument("best_baseline", "column", column, [StrOptions(set(COLUMNS))])
        rows = [row for row in self.scores if row not in (OURS, BOTH)]
        return max(rows, key=lambda row: self.scores[row][column].mean())

    @property
    def records(self) -> list[dict[str, Any]]:
        """A dict for each row: mean accuracies, p-values against the embedder, seconds."""
        return [self._record(row) for row in self.scores]

    def to_frame(self) -> DataFrame:
        """Return the records as a DataFrame, which needs pandas.

        Returns
        -------
        frame : pandas.DataFrame
            One row per representation.
        """
        from pandas import DataFrame

        return DataFrame(self.records).set_index("row")

    @property
    def verdict(self) -> str:
        """Whether the embedding helps, does not, or whether that is undecided; by column.

        Of each column, with the 95 % interval of the difference. It is wider than that of
        `compare` where the row with the highest mean is chosen, on the same data, from several.
        """
        outcomes = {column: self._outcome(column) for column in COLUMNS}
        found = {outcome for outcome, _ in outcomes.values()}
        if "ahead of" in found:
            summary = f"The embedding helps{' in part' if 'behind' in found else ''}"
        elif "behind" in found or "undecided against" not in found:
            summary = "The embedding does not help"
        else:
            summary = "It is undecided whether the embedding helps"
        text = "; ".join(f"{column} {what}" for column, (_, what) in outcomes.items())
        advice = "" if "undecided against" not in found else _MORE
        return f"{summary}: {text}.{advice}"

    def _outcome(self, column: str) -> tuple[str, str]:
        """Return how the embedder compares with the baseline, and the same with its interval."""
        rows = [row for row in self.scores if row not in (OURS, BOTH)]
        row = self.baseline or self.best_baseline(column)
        level = LEVEL if self.baseline else LEVEL / len(rows)  # by Bonferroni
        found = self._compare(row, column, confidence=1 - level)
        low, high = max(found.low, -1.0), min(found.high, 1.0)
        if np.isnan(found.low):  # all differences are equal
            low = high = found.mean
        outcome = "undecided against"
        if low > 0:
            outcome = "ahead of"
        elif high < 0:
            outcome = "behind"
        elif low > -_SAME and high < _SAME:
            outcome = "as good as"
        return outcome, f"{outcome} {row} ({found.mean:+.3f}, {low:+.3f} to {high:+.3f})"

    def _record(self, row: str) -> dict[str, Any]:
        record: dict[str, Any] = {"row": row}
        for column, values in self.scores[row].items():
            record[column] = float(values.mean())
            record[f"p, {column}"] = np.nan if row == OURS else self.compare(row, column).p_t
        return {**record, "seconds": self.seconds[row]}

    def __str__(self) -> str:
        heads = "".join(f"{column:>12}{'p':>8}" for column in COLUMNS)
        lines = [f"{'':12}{heads}{'seconds':>10}"]
        for record in self.records:
            line = f"{record['row']:12}"
            for column in COLUMNS:
                p = record[f"p, {column}"]
                line += f"{record[column]:12.3f}{'' if np.isnan(p) else f'{p:.1g}':>8}"
            lines.append(f"{line}{record['seconds']:10.1f}")
        plural = "" if self.n_labels == 1 else "s"
        n_repeats = len(self.scores[OURS][COLUMNS[0]])
        return (
            f"Accuracy on {self.n_labeled:,} labeled samples, {n_repeats} repeats; few: "
            f"{self.n_labels} label{plural} per class; p: against the embedder\n"
            + "\n".join([*lines, self.verdict])
        )


@guarded()
@validated(n_labels=POSITIVE_INT, n_repeats=TWO_OR_MORE, baseline=[str, None], random_state=SEEDS)
def compare_with_baselines(
    embedder: ContrastiveEmbedder | Pipeline,
    X: Any,
    y: ArrayLike,
    *,
    n_labels: int = 5,
    n_repeats: int = 10,
    baseline: str | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> BaselineComparison:
    r"""Compare an embedder with training-free baselines on your data.

    All rows of the table have the same samples and labels:

    - "raw": standardised columns, pixels or steps; not for graphs and series of unequal lengths;
    - "PCA": 64 principal components of more than 64 such features;
    - "pretrained": frozen features of the network of :class:`~skcontrast.encoders.Pretrained`;
    - "patches" and "gradients" of images, "kernels" of series, "profile" and "colours" of graphs,
      see :mod:`skcontrast.features`;
    - "whitened": "pretrained", else "patches", "kernels" or "profile", with
      :class:`~skcontrast.ViewWhitening` and the augmentation of the embedder;
    - "untrained": the same embedder with its initial weights, if these are random;
    - "embedder": the output of `transform`;
    - "concatenated": the embedding and the training-free features, or "raw" if there are none;
      each block is standardised and has the same weight.

    The columns are the accuracies of a logistic regression on `n_labels` labels per class; of 20
    nearest neighbours (or the size of the smallest class) by the cosine, after
    :class:`~skcontrast.features.PartialWhitening`; and of a logistic regression on half of the
    labels, at most 1,000. The first is tested on all other labeled samples, the others on the
    other half. Features are fitted and standardised on all of X, without labels; PCA is not
    standardised.

    Parameters
    ----------
    embedder : ContrastiveEmbedder, or Pipeline that ends in one
        Model, or in a FrozenEstimator; otherwise a clone is fitted to X, without y.
    X : array-like, DataFrame, Dataset or list of graphs
        Samples of the shape seen in `fit`: those of the fit, or others. Features are fitted to all
        of them, so more unlabeled samples are better.
    y : array-like of shape (n_samples,)
        Classes, at least two; −1 where unknown.
    n_labels : int, default=5
        Labels per class in the first column, fewer than the size of the smallest class.
    n_repeats : int, default=10
        Number of draws of labels and halves, at least 2; repeat i has the seed
        ``random_state + i``.
    baseline : str, default=None
        The row with which the verdict compares, such as "raw". None is the one with the highest
        mean, which widens the intervals, because it is chosen on the same data.
    random_state : int, RandomState or None, default=None
        Seeds the draws and the baselines.

    Returns
    -------
    comparison : BaselineComparison
        Print it for a table; ``verdict`` is a sentence, ``to_frame()`` a DataFrame. The p-values
        refer to other labels of these samples, not to other data.

    Raises
    ------
    TypeError
        If `embedder` is not an embedder and does not end in one.
    ValueError
        If y has not one entry per sample, fewer than two classes are known, a class has no more
        than `n_labels` samples, or a parameter is outside its range.

    See Also
    --------
    skcontrast.plotting.BaselinesDisplay : Plots the table.
    few_label_accuracy, knn_accuracy, linear_probe : The same measures for any embedding.
    compare_paired : The test.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skcontrast import ContrastiveEmbedder
    >>> from skcontrast.metrics import compare_with_baselines
    >>> X, y = load_iris(return_X_y=True)
    >>> embedder = ContrastiveEmbedder(max_epochs=5, random_state=0).fit(X)
    >>> comparison = compare_with_baselines(embedder, X, y, n_repeats=3, random_state=0)
    >>> list(comparison.scores)
    ['raw', 'untrained', 'embedder', 'concatenated']
    >>> comparison.scores["raw"]["linear"].shape
    (3,)
    """
    # Baselines have the same input as the embedder, after the steps before it.
    before, last = split_at_embedder(embedder, "embedder")
    codes = validate_labels(y, None, needed_by="compare_with_baselines")
    known = np.flatnonzero(codes >= 0)
    _check_classes(codes[known], n_labels)
    start = process_time()
    given = last
    is_fitted = all(step is None or step.__sklearn_is_fitted__() for step in (before, last))
    if isinstance(embedder, FrozenEstimator):
        check_is_fitted(last)
    if not is_fitted:
        before, last = split_at_embedder(clone(embedder).fit(X), "embedder")
    samples = X if before is None else before.transform(X)
    ours = _flat(last.transform(samples))
    check_length("y", len(codes), len(ours))
    # The time of fit and transform of the embedder, also if it was fitted before.
    spent = process_time() - start
    if last is given:
        spent += sum(row.get("dur", 0.0) for row in last.history_)
    seed = _first_seed(random_state, n_repeats) % (2**32 - n_repeats)
    # All rows have the same draws of labels and halves.
    y = codes[known]
    halves = [_halves(y, seed + repeat) for repeat in range(n_repeats)]
    if baseline is not None:
        names = StrOptions(_baseline_names(last, samples))
        check_argument("compare_with_baselines", "baseline", baseline, [names])
    representations: dict[str, NDArray] = {}
    scores, seconds = {}, {}
    rows = _representations(last, samples, ours, representations, seed)
    for name, row, scale in progress(rows, desc="compare_with_baselines", unit="row"):
        start = process_time()
        H = representations[name] = row()
        seconds[name] = spent if name == OURS else process_time() - start
        whitened = PartialWhitening(random_state=0).fit_transform(H)[known]
        scaled = (StandardScaler().fit_transform(H) if scale else H)[known]
        scores[name] = _accuracies(scaled, whitened, y, halves, n_labels, seed)
    return BaselineComparison(scores, seconds, n_labels, len(known), baseline)


def _check_classes(y: NDArray[np.int64], n_labels: int) -> None:
    """Raise ValueError unless two classes or more have training and test samples."""
    sizes = np.unique(y, return_counts=True)[1]
    if len(sizes) < 2:
        raise ValueError(f"y must hold 2 or more known classes, got {len(sizes)}; -1 is unknown.")
    most = int(sizes.min()) - 1
    if not most:
        raise ValueError("y must hold 2 or more samples of each class, got a class of one sample.")
    check_count(n_labels, "n_labels", most, "one less than the size of the smallest class in y")


def _flat(H: Any) -> NDArray:
    """Return embeddings as an array: the embedder's own `set_output` may have made a DataFrame."""
    return np.asarray(H, dtype=np.float32)


def _accuracies(
    scaled: NDArray, whitened: NDArray, y: NDArray, halves: list, n_labels: int, seed: int
) -> dict[str, NDArray[np.float64]]:
    """Return the accuracies of a row in all repeats, by column."""
    smallest = min(np.unique(y[half], return_counts=True)[1].min() for half, _ in halves)
    k = min(_N_NEIGHBORS, int(smallest))
    draws: Any = {"n_labels": n_labels, "n_draws": len(halves), "random_state": seed}
    few = few_label_accuracy(scaled, y, scale=False, **draws)
    neighbors = [
        knn_accuracy(whitened[a], y[a], whitened[b], y[b], n_neighbors=k) for a, b in halves
    ]
    linear = [linear_probe(scaled[a], y[a], scaled[b], y[b], scale=False) for a, b in halves]
    return dict(zip(COLUMNS, map(np.array, (few, neighbors, linear)), strict=True))


def _halves(y: NDArray[np.int64], seed: int) -> list[NDArray]:
    """Return stratified training and test rows."""
    most, n = max(_MOST, len(np.unique(y))), len(y)
    sizes = {"train_size": min(most, n // 2), "test_size": min(most, n - n // 2)}
    return train_test_split(np.arange(n), stratify=y, random_state=seed, **sizes)


def _representations(
    embedder: Any, X: Any, ours: NDArray, computed: dict[str, NDArray], seed: int
) -> Iterator[_Row]:
    """Yield the rows; the features of a row are in `computed` before the next is requested."""
    schema = embedder._model.schema
    declared = schema.kind if is_custom(schema.kind) else embedder.kind

    def of(features: Features) -> NDArray:
        if declared != "auto" and not isinstance(features, Frozen):  # whose encoder has a kind
            features.set_params(kind=declared)
        return features.fit_transform(X)

    if _has_columns(schema.kind, schema.sample_shape, X):
        yield "raw", partial(of, Raw()), True
        raw = computed["raw"]
        if raw.shape[1] > _MOST_COMPONENTS:
            pca = PCA(min(_MOST_COMPONENTS, len(raw)), random_state=seed)
            yield "PCA", partial(make_pipeline(StandardScaler(), pca).fit_transform, raw), False
    features = defaults_of(schema.kind).features(seed)
    features.pop("raw", None)  # has its own row
    if getattr(embedder.encoder, "adapts", False):
        features = {"pretrained": Frozen(embedder.encoder), **features}
    for name, block in features.items():
        yield name, partial(of, block), True
    if features:  # which are fitted by now
        first = FrozenEstimator(next(iter(features.values())))
        whitening = ViewWhitening(first, embedder.augmentation_ or None, random_state=seed)
        yield "whitened", lambda: whitening.fit_transform(X), True
    if "pretrained" not in features:
        yield "untrained", lambda: _flat(_untrained(embedder, seed).fit_transform(X)), True
    yield OURS, lambda: ours, True
    if blocks := [computed[name] for name in features or ("raw",) if name in computed]:
        yield BOTH, lambda: _concatenated([ours, *blocks]), False


def _baseline_names(embedder: Any, X: Any) -> set[str]:
    """Return the names of the rows without training."""
    schema = embedder._model.schema
    names = set(defaults_of(schema.kind).features(0)) - {"raw"}
    names |= {"pretrained"} if getattr(embedder.encoder, "adapts", False) else {"untrained"}
    names |= {"whitened"} if names - {"untrained"} else set()
    if _has_columns(schema.kind, schema.sample_shape, X):
        is_wide = math.prod(schema.sample_shape) > _MOST_COMPONENTS
        names |= {"raw", "PCA"} if is_wide else {"raw"}
    return names


def _concatenated(blocks: list[NDArray]) -> NDArray:
    """Return standardised blocks of equal weight, with a variance of 1 on average."""
    width = np.mean([H.shape[1] for H in blocks])
    scaler = StandardScaler()
    return np.hstack([scaler.fit_transform(H) * np.sqrt(width / H.shape[1]) for H in blocks])


def _has_columns(kind: Kind, shape: tuple, X: Any) -> bool:
    """Return whether samples are arrays of one shape; series only if they have one length."""
    if kind.differs_in_length:
        return isinstance(X, np.ndarray) and X.dtype != object and bool(np.isfinite(X).all())
    return kind.float_batches and not kind.has_gaps and None not in shape


def _untrained(embedder: Any, seed: int) -> Any:
    """Return an embedder whose fit sets the statistics of its network, but no weights."""
    augmentation, untrained = embedder.augmentation, clone(embedder)
    vars(untrained).update(  # the __init__ of a subclass may take fewer parameters
        loss=None,
        max_epochs=1,
        lr=1e-12,
        augmentation=embedder.augmentation_ if augmentation is None else augmentation,
        random_state=seed if embedder.random_state is None else embedder.random_state,
        callbacks=None,
        checkpoint=None,
        warm_start=False,
        verbose=0,
    )
    return untrained
