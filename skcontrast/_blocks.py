"""Blocks of features next to the embedding of a classifier, and their weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import cohen_kappa_score
from sklearn.preprocessing import StandardScaler
from sklearn.utils import gen_batches

from ._whitening import ViewWhitening
from .embedder import ContrastiveEmbedder
from .encoders import Pretrained
from .features import (
    Features,
    GraphProfile,
    MiniRocket,
    PatchDictionary,
    Raw,
    WeisfeilerLehman,
)
from .kinds import Graphs, Images, Kind, Series, Vectors


class _Blocks(NamedTuple):
    """What the embedding of a kind is concatenated with by default.

    Attributes
    ----------
    whitened : callable, default=None
        Returns, for a seed, features that are whitened within views.
    others : tuple of type, default=()
        Classes of features that are not.
    embedding : float, default=1.0
        The weight of the embedding, relative to a block of the same agreement.
    """

    whitened: Callable[[int], Features] | None = None
    others: tuple[type[Features], ...] = ()
    embedding: float = 1.0


_BLOCKS: dict[type[Kind] | None, _Blocks] = {
    Vectors: _Blocks(others=(Raw,)),
    Images: _Blocks(lambda seed: PatchDictionary(random_state=seed)),
    Series: _Blocks(lambda seed: MiniRocket(random_state=seed), embedding=0.25),
    Graphs: _Blocks(lambda _: GraphProfile(), (WeisfeilerLehman,)),
}
# Longer vectors are not concatenated with their embedding.
_MOST_NUMBERS = 4096
# The least agreement of a block, and the least disagreement.
_LEAST_AGREEMENT = 0.02
# Rows that are classified at once.
_BATCH = 8192


def blocks_of(embedder: ContrastiveEmbedder) -> _Blocks:
    """Return what suits the kind of data; only the embedder can read samples of a custom kind."""
    is_pretrained = isinstance(embedder.encoder, Pretrained)
    kind = None if is_pretrained else type(embedder._fitted.schema.kind)
    return _BLOCKS.get(kind, _Blocks())


def default_blocks(embedder: ContrastiveEmbedder, seed: int) -> list[Any]:
    """Return what suits a fitted embedder, not fitted."""
    blocks, schema = blocks_of(embedder), embedder._fitted.schema
    others = [one() for one in blocks.others]
    for one in others:
        if isinstance(one, Raw):
            one.kind = schema.kind  # type: ignore[misc]  # its scale
            if math.prod(schema.sample_shape) > _MOST_NUMBERS:
                return []
    if blocks.whitened is None:
        return others
    features, chain = blocks.whitened(seed), embedder.augmentation_
    return [ViewWhitening(features, chain, random_state=seed) if chain else features, *others]


def features_of(transformers: list[Any], X: Any) -> list[NDArray]:
    """Return the features of samples, one array for each transformer."""
    return [np.asarray(one.transform(X), dtype=np.float32) for one in transformers]


def names_of(transformers: list[Any]) -> list[str]:
    """Return names of the blocks, which differ."""
    names = ["embedding", *(type(one).__name__ for one in transformers)]
    return [
        f"{name}-{names[:k].count(name) + 1}" if names.count(name) > 1 else name
        for k, name in enumerate(names)
    ]


def slices_of(H: list[NDArray]) -> list[slice]:
    """Return the columns of each block in their concatenation."""
    widths = [block.shape[1] for block in H]
    return [slice(end - n, end) for n, end in zip(widths, np.cumsum(widths), strict=True)]


def scaled(H: list[NDArray], shares: NDArray) -> tuple[StandardScaler, NDArray]:
    """Return a scaler of concatenated blocks, and what it returns.

    Blocks get shares of the squared norm, which is that of the first one, standardised.
    """
    columns = np.hstack(H)
    scaler = StandardScaler().fit(columns)
    for block, share in zip(slices_of(H), shares, strict=True):
        if block.start:  # not the embedding, whose columns have no unit
            scaler.scale_[block] = np.sqrt(scaler.var_[block].mean()) or 1.0
        scaler.scale_[block] *= np.sqrt((block.stop - block.start) / (share * H[0].shape[1]))
    return scaler, np.asarray(scaler.transform(columns))


def agreement(
    H: list[NDArray],
    shares: NDArray,
    classifier: Any,
    codes: NDArray,
    classes: NDArray,
    weight: NDArray | None,
) -> NDArray[np.float64]:
    """Return shares, multiplied by the odds that a block agrees with all on unlabeled rows."""
    shares, unknown = shares / shares.sum(), codes < 0
    if len(H) == 1 or not unknown.any():
        return shares
    Z = scaled(H, shares)[1]
    blocks = (Z[:, one] / np.sqrt(share) for one, share in zip(slices_of(H), shares, strict=True))
    predicted = []
    for part in (Z, *blocks):
        fit_known(classifier, part, codes, classes, weight)
        predicted.append(predicted_classes(classifier, part[unknown]))
    kappa = [cohen_kappa_score(predicted[0], alone, labels=classes) for alone in predicted[1:]]
    kappa = np.clip(np.nan_to_num(kappa), _LEAST_AGREEMENT, 1 - _LEAST_AGREEMENT)
    shares = shares * kappa / (1 - kappa)
    return shares / shares.sum()


def fit_known(
    classifier: Any, Z: NDArray, codes: NDArray, classes: NDArray, weight: NDArray | None
) -> None:
    """Fit a classifier to the rows whose class is known."""
    rows = codes >= 0
    weights = {} if weight is None else {"sample_weight": weight[rows]}
    classifier.fit(Z[rows], classes[codes[rows]], **weights)


def predicted_classes(classifier: Any, Z: NDArray) -> NDArray:
    """Return predicted classes, without the scores of all rows and all classes at once."""
    return np.concatenate([classifier.predict(Z[b]) for b in gen_batches(len(Z), _BATCH)])
