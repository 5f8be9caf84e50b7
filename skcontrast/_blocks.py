"""Blocks of features next to the embedding of a classifier, and their weights."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import cohen_kappa_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_array, gen_batches

from ._whitening import ViewWhitening
from .embedder import ContrastiveEmbedder
from .encoders import Pretrained
from .features import Features, GraphProfile, MiniRocket, PatchDictionary, Raw, WeisfeilerLehman
from .kinds import Graphs, Images, Kind, Series, Vectors
from .metrics._scorers import thawed


class _Defaults(NamedTuple):
    """Default features that are concatenated with the embedding of a kind of data.

    Attributes
    ----------
    whitened : callable, default=None
        Maps a seed to features, which are whitened within views.
    others : tuple of type, default=()
        Classes of features that are not whitened.
    embedding : float, default=1.0
        The weight of the embedding, relative to a block with the same agreement.
    """

    whitened: Callable[[int], Features] | None = None
    others: tuple[type[Features], ...] = ()
    embedding: float = 1.0


_BLOCKS: dict[type[Kind] | None, _Defaults] = {
    Vectors: _Defaults(others=(Raw,)),
    Images: _Defaults(lambda seed: PatchDictionary(random_state=seed)),
    Series: _Defaults(lambda seed: MiniRocket(random_state=seed), embedding=0.25),
    Graphs: _Defaults(lambda _: GraphProfile(), (WeisfeilerLehman,)),
}
# The largest number of raw values that are concatenated with an embedding.
_MOST_NUMBERS = 4096
# The smallest agreement of a block, and the smallest disagreement.
_LEAST_AGREEMENT = 0.02
# Rows per call of `predict`.
_BATCH = 8192


def block_defaults(embedder: ContrastiveEmbedder) -> _Defaults:
    """Return the defaults of the kind of data; custom kinds and pretrained networks have none."""
    is_pretrained = isinstance(embedder.encoder, Pretrained)
    kind = None if is_pretrained else type(embedder._fitted.schema.kind)
    return _BLOCKS.get(kind, _Defaults())


def default_blocks(embedder: ContrastiveEmbedder, seed: int) -> list[Any]:
    """Return the default transformers for a fitted embedder, not fitted."""
    blocks, schema = block_defaults(embedder), embedder._fitted.schema
    if Raw in blocks.others and math.prod(schema.sample_shape) > _MOST_NUMBERS:
        return []
    chain, whitened = embedder.augmentation_, [blocks.whitened(seed)] if blocks.whitened else []
    features = [*whitened, *(others() for others in blocks.others)]
    for block in features:
        block.kind = schema.kind  # type: ignore[misc]  # reads and scales X as the embedder does
    if not (chain and whitened):
        return features
    return [ViewWhitening(features[0], chain, random_state=seed), *features[1:]]


def transform_with(transformers: list[Any], X: Any) -> list[NDArray]:
    """Return the features of samples, one array for each transformer."""
    return [
        check_array(t.transform(X), dtype=np.float32, input_name=f"the output of {_name_of(t)}")
        for t in transformers
    ]


def block_names(transformers: list[Any]) -> list[str]:
    """Return a unique name for each block."""
    names = ["embedding", *map(_name_of, transformers)]
    return [
        f"{name}-{names[:k].count(name) + 1}" if names.count(name) > 1 else name
        for k, name in enumerate(names)
    ]


def _name_of(transformer: Any) -> str:
    """Return the name of a class, with that of the features that it whitens in brackets."""
    transformer = thawed(transformer)
    if isinstance(transformer, Pipeline):
        return _name_of(transformer[0])
    name, features = type(transformer).__name__, getattr(transformer, "transformer", None)
    return name if features is None else f"{name}({_name_of(features)})"


def block_slices(H: list[NDArray]) -> list[slice]:
    """Return the columns of each block in their concatenation."""
    widths = [block.shape[1] for block in H]
    return [slice(end - n, end) for n, end in zip(widths, np.cumsum(widths), strict=True)]


def scale_blocks(H: list[NDArray], shares: NDArray) -> tuple[StandardScaler, NDArray]:
    """Return a fitted scaler of the concatenated blocks, and the scaled blocks.

    Within a block, the variances of the columns are shrunk to their mean by half. The mean squared
    norm of the rows is the width of the first block. `shares` divides it among the blocks.
    """
    columns = np.hstack(H)
    scaler = StandardScaler().fit(columns)
    for block, share in zip(block_slices(H), shares, strict=True):
        variances = scaler.var_[block]
        shrunk = (variances + (variances.mean() or 1.0)) / 2
        norm = (variances / shrunk).sum() or 1.0
        scaler.scale_[block] = np.sqrt(shrunk * norm / (share * H[0].shape[1]))
    return scaler, scaler.transform(columns)


def weigh_by_agreement(
    H: list[NDArray],
    shares: NDArray,
    classifier: Any,
    codes: NDArray,
    classes: NDArray,
    weight: NDArray | None,
) -> NDArray[np.float64]:
    """Return shares times κ / (1 − κ): the agreement with all blocks on the unlabeled rows."""
    shares, unknown = shares / shares.sum(), codes < 0
    if len(H) == 1 or not unknown.any():
        return shares
    Z = scale_blocks(H, shares)[1]
    columns = zip(block_slices(H), shares, strict=True)
    blocks = (Z[:, block] / np.sqrt(share) for block, share in columns)
    predicted = []
    for features in (Z, *blocks):
        fit_to_known(classifier, features, codes, classes, weight)
        predicted.append(predict_in_batches(classifier, features[unknown]))
    kappa = [cohen_kappa_score(predicted[0], alone, labels=classes) for alone in predicted[1:]]
    kappa = np.clip(np.nan_to_num(kappa), _LEAST_AGREEMENT, 1 - _LEAST_AGREEMENT)
    shares = shares * kappa / (1 - kappa)
    return shares / shares.sum()


def fit_to_known(
    classifier: Any, Z: NDArray, codes: NDArray, classes: NDArray, weight: NDArray | None
) -> None:
    """Fit a classifier to the rows whose class is known."""
    rows = codes >= 0
    weights = {} if weight is None else {"sample_weight": weight[rows]}
    classifier.fit(Z[rows], classes[codes[rows]], **weights)


def predict_in_batches(classifier: Any, Z: NDArray) -> NDArray:
    """Return predicted classes; memory for scores of all classes is bounded by the batch."""
    return np.concatenate([classifier.predict(Z[b]) for b in gen_batches(len(Z), _BATCH)])
