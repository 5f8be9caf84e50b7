"""Blocks of features next to the embedding of a classifier, and their weights."""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from warnings import catch_warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import cohen_kappa_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler, normalize
from sklearn.utils import check_array, gen_batches

from ._group_whitening import FEW_GROUPS, GroupWhitening
from ._model._defaults import Defaults, defaults_of
from ._whitening import ViewWhitening
from .augmentation._views import base_of
from .embedder import ContrastiveEmbedder
from .encoders._base import is_pretrained
from .kinds._recognise import is_custom
from .metrics._scorers import thawed

# The largest number of raw values that are concatenated with an embedding; chosen by hand.
_MOST_NUMBERS = 4096
# Bounds of κ, so that κ / (1 − κ) of no block is 0, negative or infinite; chosen by hand.
_LEAST_AGREEMENT = 0.02
# Rows per call of `predict`.
_BATCH = 8192


def block_defaults(embedder: ContrastiveEmbedder) -> Defaults:
    """Return the defaults of the kind of data; custom kinds and pretrained networks have none."""
    kind = embedder._model.schema.kind
    has_none = is_custom(kind) or is_pretrained(embedder.encoder)
    return Defaults() if has_none else defaults_of(kind)


def default_blocks(
    embedder: ContrastiveEmbedder, seed: int, groups: NDArray[np.int64] | None = None
) -> list[Any]:
    """Return the default transformers for a fitted embedder, not fitted."""
    defaults, schema = block_defaults(embedder), embedder._model.schema
    features = defaults.features(seed)
    blocks: dict[str, Any] = {name: features[name] for name in defaults.blocks}
    if "raw" in blocks and math.prod(schema.sample_shape) > _MOST_NUMBERS:
        del blocks["raw"]
    for block in blocks.values():
        block.set_params(kind=schema.kind)  # reads and scales X as the embedder does
    chain, whitened = embedder.augmentation_, defaults.whitened
    if chain and whitened:
        blocks[whitened] = ViewWhitening(blocks[whitened], chain, random_state=seed)
    sizes = np.zeros(0) if groups is None else np.bincount(groups[groups >= 0])
    raw, is_frozen = blocks.get("raw"), is_pretrained(embedder.encoder) and not embedder.adapted_
    is_small = len(embedder.get_feature_names_out()) <= _MOST_NUMBERS
    if (sizes > 1).sum() >= FEW_GROUPS and (raw or (is_frozen and is_small)):
        blocks["groups"] = GroupWhitening(transformer=raw and clone(raw))
    return list(blocks.values())


@dataclass(frozen=True)
class Labels:
    """What is known of the rows of a fit.

    Attributes
    ----------
    codes : ndarray of shape (n,), dtype int64
        The position of the class of each row among `classes`; −1 where unknown, −2 where the
        weight of a label is 0.
    classes : ndarray of shape (n_classes,)
        The known classes.
    weight : ndarray of shape (n,) or None
        Weights of the rows.
    groups : ndarray of shape (n,), dtype int64, or None
        Groups whose rows share a class; −1 for none.
    """

    codes: NDArray[np.int64]
    classes: NDArray
    weight: NDArray | None = None
    groups: NDArray[np.int64] | None = None

    def fit(self, classifier: Any, Z: NDArray) -> None:
        """Fit a classifier to the rows whose class is known."""
        rows = (self.codes >= 0) & (True if self.weight is None else self.weight > 0)
        weights = {} if self.weight is None else {"sample_weight": self.weight[rows]}
        classifier.fit(Z[rows], self.classes[self.codes[rows]], **weights)

    def predict(self, classifier: Any, Z: NDArray) -> NDArray[np.int64]:
        """Return the codes of predicted classes."""
        return np.searchsorted(self.classes, predict_in_batches(classifier, Z))


class WeightedBlocks:
    """The embedding and blocks of features, concatenated, scaled and weighted.

    Parameters
    ----------
    embedder : ContrastiveEmbedder
        A fitted embedder, the first block.
    transformers : list of transformers
        The other blocks, which `fit_transform` fits. With a pretrained network, a `GroupWhitening`
        without a transformer whitens the embedding.
    scaler : StandardScaler, default=None
        The scaler of fitted blocks.

    Attributes
    ----------
    slices : list of slice
        The columns of each block in the output; set by `fit_transform`.
    shares : ndarray of shape (n_blocks,)
        The weight of each block, its share of the mean squared norm; set by `fit_transform`.
    """

    def __init__(self, embedder: ContrastiveEmbedder, transformers: list[Any], scaler: Any = None):
        self.embedder, self.transformers, self.scaler = embedder, transformers, scaler

    @property
    def names(self) -> list[str]:
        """A unique name for each block."""
        names = ["embedding", *map(_name_of, self.transformers)]
        return [
            f"{name}-{names[:k].count(name) + 1}" if names.count(name) > 1 else name
            for k, name in enumerate(names)
        ]

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the columns, with the block's name as a prefix."""
        names = [self.embedder.get_feature_names_out(input_features)]
        for block, features in zip(self.names[1:], self.transformers, strict=True):
            columns = features.get_feature_names_out(input_features)
            names.append([f"{block}__{name}" for name in columns])
        return np.concatenate(names, dtype=object)

    def fit_transform(self, X: Any, classifier: Any, labels: Labels) -> NDArray:
        """Fit the transformers, weight each block by κ / (1 − κ), and return the columns."""
        embedded = self._embedded(X)
        self.transformers = [
            block.fit(self._input_of(block, base_of(X), embedded), None, groups=labels.groups)
            if isinstance(block, GroupWhitening)
            else block.fit(base_of(X), None)
            for block in self.transformers
        ]
        H = self._features(X, embedded)
        ends = np.cumsum([block.shape[1] for block in H])
        self.slices = [slice(*pair) for pair in pairwise([0, *ends])]
        self.scaler = StandardScaler().fit(np.hstack(H))
        shares = np.ones(len(H))
        shares[0] = block_defaults(self.embedder).embedding
        Z = self._scaled(H, shares)
        if len(H) == 1 or (labels.codes != -1).all():
            return Z
        kappa = self._agreement(Z, classifier, labels)
        del Z  # may be large
        return self._scaled(H, self.shares * kappa / (1 - kappa))

    def _agreement(self, Z: NDArray, classifier: Any, labels: Labels) -> NDArray[np.float64]:
        """Return Cohen's κ between predictions from each block and from all, on unlabeled rows."""
        blocks = zip(self.slices, self.shares, strict=True)
        predicted, every = [], np.arange(len(labels.classes))
        for features in (Z, *(Z[:, block] / np.sqrt(share) for block, share in blocks)):
            labels.fit(classifier, features)
            predicted.append(labels.predict(classifier, features[labels.codes == -1]))
        with catch_warnings(action="ignore", category=UndefinedMetricWarning):  # 0, below
            kappa = [cohen_kappa_score(predicted[0], one, labels=every) for one in predicted[1:]]
        return np.clip(np.nan_to_num(kappa), _LEAST_AGREEMENT, 1 - _LEAST_AGREEMENT)

    def transform(self, X: Any) -> NDArray:
        """Return the columns of all blocks, scaled and weighted."""
        features = self._features(X, self._embedded(X))
        return np.asarray(self.scaler.transform(np.hstack(features)))

    def _embedded(self, X: Any) -> NDArray:
        return _checked_output(self.embedder, self.embedder.transform(X))

    def _features(self, X: Any, embedded: NDArray) -> list[NDArray]:
        """Return the features of samples, one array for each block, from X and its embedding."""
        H = [embedded]
        for t in self.transformers:
            H.append(_checked_output(t, t.transform(self._input_of(t, X, embedded))))
            if self._input_of(t, X, embedded) is embedded:
                # Rows of one length were .02 better on three sets of photographs; on vectors, the
                # difference had either sign (benchmarks/studies/results/metadata.md).
                H[-1] = normalize(H[-1])
        return H

    def _input_of(self, block: Any, X: Any, embedded: NDArray) -> Any:
        """Return what a block transforms: the embedding if it is whitened, else X."""
        whitens = isinstance(thawed(block), GroupWhitening) and thawed(block).transformer is None
        return embedded if whitens and is_pretrained(self.embedder.encoder) else X

    def _scaled(self, H: list[NDArray], shares: NDArray) -> NDArray:
        """Set the weights of the blocks, and return their scaled columns.

        Within a block, the variances of the columns are shrunk to their mean by half. The mean
        squared norm of the rows is the width of the embedding. `shares` divides it among the
        blocks.
        """
        self.shares = shares / shares.sum()
        keep_scale = [isinstance(thawed(t), GroupWhitening) for t in self.transformers]
        blocks = zip(self.slices, self.shares, [False, *keep_scale], strict=True)
        for block, share, has_scale in blocks:
            variances = self.scaler.var_[block]
            # On frozen features of EfficientNet-lite0, half was better on average than the
            # columns' own variances and than their mean, but not on each set. It changed the mean
            # of eleven other sets by less than .001 (benchmarks/studies/results/classifier.md).
            shrunk = (variances + (variances.mean() or 1.0)) / 2
            if has_scale:  # its variances weight the directions
                shrunk = np.full_like(variances, variances.mean() or 1.0)
            norm = (variances / shrunk).sum() or 1.0
            self.scaler.scale_[block] = np.sqrt(shrunk * norm / (share * self.slices[0].stop))
        return np.asarray(self.scaler.transform(np.hstack(H)))


def _checked_output(transformer: Any, output: Any) -> NDArray:
    """Return the output of a block as finite float32 numbers."""
    name = f"the output of {_name_of(transformer)}"
    return check_array(output, dtype=np.float32, input_name=name)


def _name_of(transformer: Any) -> str:
    """Return the name of a class, with that of the features that it whitens in brackets."""
    transformer = thawed(transformer)
    if isinstance(transformer, Pipeline):
        return _name_of(transformer[0])
    name, features = type(transformer).__name__, getattr(transformer, "transformer", None)
    return name if features is None else f"{name}({_name_of(features)})"


def predict_in_batches(classifier: Any, Z: NDArray) -> NDArray:
    """Return predicted classes; memory for scores of all classes is bounded by the batch."""
    return np.concatenate([classifier.predict(Z[b]) for b in gen_batches(len(Z), _BATCH)])
