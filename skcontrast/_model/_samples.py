"""The training samples: read once and validated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, clone
from torch import Tensor

from .._data._arrays import LazySamples, fingerprint
from .._data._batches import bytes_allowed
from .._data._metadata import read_metadata
from .._data._modalities import Modalities
from .._data._pictures import load_images
from .._warnings import warn
from ..augmentation import Views
from ..augmentation._base import Chain
from ..kinds._base import Kind, Request, Schema
from ..kinds._images import Images
from ..kinds._recognise import MultimodalKind, declared_kind, read_samples
from ..schedules._numbers import auto_parameters
from ._settings import Settings, check_same_network, encoders_of

# A list of fewer arrays of one length may be modalities.
_FEW = 4


@dataclass(frozen=True)
class TrainingData:
    """The training samples and their metadata.

    Attributes
    ----------
    X : array-like of length n_samples
        Samples that their kind has validated.
    schema : Schema
        The schema of X.
    chain : list of Augmentation or None
        The augmentations that draw the views, if the user passes them.
    metadata : dict of str to Tensor
        Fields of a `Batch`.
    """

    X: Any
    schema: Schema
    chain: Chain | None
    metadata: dict[str, Tensor]

    @cached_property
    def fingerprint(self) -> int:
        """A hash of samples and labels."""
        labels = [t.numpy() for name, t in self.metadata.items() if name == "labels"]
        return fingerprint([*self.schema.kind.arrays(self.X), *labels])


def read_training_data(
    settings: Settings,
    X: Any,
    y: Any,
    metadata: dict[str, Any],
    estimator: BaseEstimator,
    past: Any,
) -> TrainingData:
    """Validate the arguments of `fit`.

    Parameters
    ----------
    settings : Settings
        The user's parameters, validated.
    X, y, metadata : array-like or Views, array-like or None, dict
        The arguments of `fit`.
    estimator : ContrastiveEmbedder
        Named in messages about X; not changed.
    past : Model or None
        The earlier fit that this one continues.
    """
    X, schema, chain = read_training_samples(settings, X, estimator, past)
    X = _load_into_memory(settings, X)
    automatic = auto_parameters(settings.loss)
    tensors = read_metadata(y, metadata, len(X), settings.loss, uses_classes=bool(automatic))
    if settings.same_group != "neutral" and "groups" not in tensors:
        warn("same_group has no effect: fit got no groups or ignores them: fit(X, groups=...).")
    if settings.same_group == "correct":
        _check_correction(settings, tensors.get("groups"), tensors.get("domains"))
        if "labels" not in tensors and any(name.endswith("tau_plus") for name in automatic):
            warn("tau_plus='auto' without y is near 0: groups correct nothing. Pass a number.")
    # Negatives of other domains could be distinguished by the domain.
    if "domains" in tensors and settings.framework.remembers_samples:
        raise ValueError(
            "domains needs a framework whose negatives are all in the batch, such as SimCLR(): "
            f"{type(settings.framework).__name__} stores samples of other domains."
        )
    return TrainingData(X, schema, chain, tensors)


def read_training_samples(
    settings: Settings, X: Any, estimator: BaseEstimator, past: Any
) -> tuple[Any, Schema, Chain | None]:
    """Return X validated by its kind, its schema, and the augmentations that draw views."""
    X, chain = _split_views(settings, X)
    if past is not None:
        check_same_network(settings, past)
        schema = past.schema
        X, schema = schema.kind.read(X, Request(estimator, schema, min_samples=2))
        return X, schema, chain
    if _lists_modalities(X) and settings.framework.takes_modalities:
        raise ValueError(
            f"X is a list of {len(X)} arrays of {len(X[0])} samples. If they are the "
            f"modalities for framework={settings.framework!r}, pass tuple(X) or "
            "skcontrast.datasets.Modalities(*X)."
        )
    X = Modalities(*X) if isinstance(X, tuple) and settings.framework.takes_modalities else X
    hint = kind_hint(settings, X, chain)
    X, schema = read_samples(X, settings.kind, hint=hint, estimator=estimator, min_samples=2)
    for encoder in encoders_of(settings.encoder):
        encoder_kind = getattr(encoder, "kind", None)
        if isinstance(encoder_kind, Images) and type(schema.kind) is Images:
            # The encoder determines whether pixels are standardised; the user, their size.
            schema = replace(schema, kind=clone(encoder_kind).set_params(size=schema.kind.size))
    schema.kind.check_unusual(X, is_declared=settings.kind is not None)
    return X, schema, chain


def _check_correction(settings: Settings, groups: Tensor | None, domains: Tensor | None) -> None:
    """Raise ValueError if no group can correct the loss."""
    if not settings.loss.is_corrected:
        raise ValueError(
            "same_group='correct' needs a loss with a term that samples of a group correct: DCL, "
            f"HCL, PUCL or PositiveDebiased(negatives=DCL()), got {settings.loss!r}."
        )
    if groups is None or settings.one_epoch:  # a part of a stream may be of one group
        return
    domain = torch.zeros_like(groups) if domains is None else domains
    n_groups = torch.stack([groups, domain]).unique(dim=1).shape[1]
    if n_groups == len(domain.unique()) and int(groups.min()) >= 0:
        each = "several groups" if domains is None else "several groups of each domain"
        raise ValueError(f"same_group='correct' needs {each}, got one: pass -1 where unknown.")


def _lists_modalities(X: Any) -> bool:
    """Return whether X is a list of two or three arrays with the same number of rows."""
    if not (isinstance(X, list) and 1 < len(X) < _FEW):
        return False
    shapes = [tuple(getattr(x, "shape", ())) for x in X]
    return min(map(len, shapes)) > 1 and len({len(x) for x in X}) == 1


def _load_into_memory(settings: Settings, X: Any) -> Any:
    """Load images of files or of Pillow if they fit in memory; return other X unchanged."""
    if not isinstance(X, LazySamples) or X.dtype != np.uint8:
        return X
    from ..datasets import ImageFolder  # imported here, because X is rarely a Dataset

    # Other Datasets may return a random image on each access.
    is_stored = isinstance(getattr(X, "dataset", None), (Sequence, ImageFolder))
    n_bytes = bytes_allowed(torch.device("cpu"), settings.memory_budget)
    if not is_stored or math.prod(X.shape) > n_bytes:
        return X
    return load_images(X, np.empty(X.shape, np.uint8), max(1, settings.n_workers), "images")


def _split_views(settings: Settings, X: Any) -> tuple[Any, Chain | None]:
    """Split the X of `fit` into samples and augmentations; None takes the default of the kind."""
    if not isinstance(X, Views):
        return X, settings.augmentation
    if settings.augmentation is not None:
        raise ValueError(
            f"X comes from augmentation steps, and {settings.owner} has augmentation=: "
            "remove one of them."
        )
    return X.base, list(X.chain)


def kind_hint(settings: Settings, X: Any, chain: Chain | None) -> Kind | None:
    """Return the kind that the user, the augmentations or the encoders declare, if any.

    Raises
    ------
    ValueError
        If samples have several modalities, and the framework has one encoder.
    """
    declared = settings.kind or declared_kind(*(chain or ()), *encoders_of(settings.encoder))
    multimodal = [item for item in (declared, X) if isinstance(item, (MultimodalKind, Modalities))]
    if multimodal and not settings.framework.takes_modalities:
        raise ValueError(
            f"{multimodal[0]!r}: samples of several modalities need a framework with an encoder "
            f"for each, such as framework=CMC(), got {settings.framework!r}."
        )
    return declared
