"""The nearest samples of each sample, in parts of bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import gen_batches

# Numbers that are in memory at a time: neighbours, votes, or entries of a matrix of distances.
_ENTRIES = 2**21

Metric: TypeAlias = str | Callable[..., float]


def batches(n: int, width: int) -> Iterator[slice]:
    """Yield slices of n rows, so short that `width` numbers for each of their rows fit."""
    yield from gen_batches(n, max(1, _ENTRIES // width))


def nearest(
    H: NDArray,
    H_test: NDArray | None,
    k: int,
    metric: Metric = "cosine",
    *,
    width: int = 1,
    seed: int = 0,
) -> Iterator[tuple[slice, NDArray[np.int64]]]:
    """Yield slices of the queries and their k nearest samples, the nearest first.

    Samples at equal distance come in a random order, so that a collapsed embedding finds
    neighbours by chance.

    Parameters
    ----------
    H : ndarray of shape (n_samples, d)
        Embeddings of the samples.
    H_test : ndarray of shape (n_test, d) or None
        Those of the queries. If None, the samples are the queries, each without itself.
    k : int
        Number of neighbours.
    metric : str or callable, default="cosine"
        A metric of ``NearestNeighbors``.
    width : int, default=1
        Numbers per query that the caller keeps; slices are shorter if they are many.
    seed : int, default=0
        Of the order of samples at equal distance.
    """
    order = np.random.default_rng(seed).permutation(len(H))
    queries = H if H_test is None else H_test
    if isinstance(metric, str) and metric == "cosine":
        # Unit vectors have the same order by distance, for which scikit-learn is faster.
        H, queries = _all_on_sphere(H, queries)
        metric = "euclidean"
    search = NearestNeighbors(metric=metric).fit(H[order])
    for rows in batches(len(queries), max(k, width)):
        n_found = k + (H_test is None)
        found = order[search.kneighbors(queries[rows], n_found, return_distance=False)]
        yield rows, _without_self(found, rows) if H_test is None else found


def _without_self(found: NDArray[np.int64], rows: slice) -> NDArray[np.int64]:
    """Return the neighbours of samples without the samples themselves, one fewer each."""
    kept = found != np.arange(rows.start, rows.stop)[:, None]
    kept[kept.all(axis=1), -1] = False
    return found[kept].reshape(len(found), -1)


def on_sphere(z: NDArray) -> NDArray:
    """Return embeddings at length 1, or 0."""
    longest = np.abs(z).max(axis=1, keepdims=True)
    scaled = z / np.where(longest > 0, longest, 1)
    length = np.linalg.norm(scaled, axis=1, keepdims=True)
    return scaled / np.where(length > 0, length, 1)


def _all_on_sphere(*arrays: NDArray) -> list[NDArray]:
    """Return embeddings at length 1; those of length 0 get an extra direction."""
    unit = [on_sphere(z) for z in arrays]
    is_zero = [~z.any(axis=1, keepdims=True) for z in unit]
    if any(of.any() for of in is_zero):
        return [np.hstack([z, of]).astype(z.dtype) for z, of in zip(unit, is_zero, strict=True)]
    return unit
