"""The samples of a fit: read once and checked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from sklearn.base import clone
from torch import Tensor

from .._data._arrays import LazySamples, fingerprint
from .._data._batches import bytes_allowed
from .._data._metadata import read_metadata
from .._data._modalities import Modalities
from .._data._pictures import load_images
from .._warnings import warn
from ..augmentation import Augmentation, Views
from ..kinds._base import Kind, Request, Schema
from ..kinds._images import Images
from ..kinds._recognise import MultimodalKind, declared_kind, is_custom, read_samples
from ._estimated_parameters import auto_parameters
from ._settings import Settings, check_same_network, encoders_of, same_kind


@dataclass(frozen=True)
class TrainingData:
    """The training samples and their metadata.

    Attributes
    ----------
    X : array-like of length n_samples
        As its kind returns it.
    schema : Schema
        Its schema.
    chain : list of Augmentation or None
        The augmentations that draw the views, if the user has chosen them.
    metadata : dict of str to Tensor
        Fields of a `Batch`.
    """

    X: Any
    schema: Schema
    chain: list[Augmentation] | None
    metadata: dict[str, Tensor]

    @cached_property
    def fingerprint(self) -> int:
        """A number that differs, almost surely, for other samples or labels."""
        labels = [t.numpy() for name, t in self.metadata.items() if name == "labels"]
        return fingerprint([*self.schema.kind._arrays(self.X), *labels])


def read_training_data(
    settings: Settings, X: Any, y: Any, metadata: dict[str, Any], owner: Any, past: Any
) -> TrainingData:
    """Return the arguments of `fit`, checked.

    Parameters
    ----------
    settings : Settings
        The user's parameters, checked.
    X, y, metadata : array-like or Views, array-like or None, dict
        The arguments.
    owner : estimator
        Named in messages about X; never changed.
    past : Fitted or None
        An earlier fit that this one continues.
    """
    X, schema, chain = read_training_samples(settings, X, owner, past)
    X = _decoded(settings, X)
    uses_classes = bool(auto_parameters(settings.loss))
    tensors = read_metadata(y, metadata, len(X), settings.loss, uses_classes=uses_classes)
    if settings.same_group != "neutral" and "groups" not in tensors:
        warn("same_group has no effect: fit got no groups. Pass them by name, fit(X, groups=...).")
    framework = settings.framework
    # Negatives of other domains would differ by the domain alone.
    if "domains" in tensors and framework.remembers_samples:
        raise ValueError(
            "domains needs a framework whose negatives are all of the batch, such as SimCLR(): "
            f"{type(framework).__name__} remembers samples of other domains."
        )
    return TrainingData(X, schema, chain, tensors)


def read_training_samples(
    settings: Settings, X: Any, owner: Any, past: Any
) -> tuple[Any, Schema, list[Augmentation] | None]:
    """Return X ready to be cut into batches, its schema, and the chain that draws its views."""
    X, chain, inputs = _split_views(settings, X)
    if past is not None:
        check_same_network(settings, past)
        schema = past.schema
        X, schema = schema.kind._read(X, Request(owner, schema, min_samples=2))
        return X, schema, chain
    X = Modalities(*X) if isinstance(X, tuple) and settings.framework.takes_parts else X
    hint = kind_hint(settings, X, chain)
    if inputs is not None and len(inputs[0]) > 1 and _is_read_by(settings, hint, inputs[1].kind):
        X, schema = inputs  # as an augmentation has checked it
    else:
        X, schema = read_samples(X, settings.kind, hint=hint, owner=owner, min_samples=2)
    for encoder in encoders_of(settings.encoder):
        wanted = getattr(encoder, "kind", None)
        if isinstance(wanted, Images) and type(schema.kind) is Images:
            # The encoder says whether pixels are standardised, the user which size they have.
            kind = clone(wanted).set_params(size=schema.kind.size)
            schema = replace(schema, kind=kind)
    schema.kind._check_unusual(X, is_declared=settings.kind is not None)
    return X, schema, chain


def _decoded(settings: Settings, X: Any) -> Any:
    """Return images from files or of Pillow that fit in memory, read once; others unchanged."""
    if not isinstance(X, LazySamples) or X.dtype != np.uint8:
        return X
    from ..datasets import ImageFolder  # only now, because X is rarely a Dataset

    # Other Datasets may draw an image anew each time.
    is_stored = isinstance(getattr(X, "dataset", None), (Sequence, ImageFolder))
    allowed = bytes_allowed(torch.device("cpu"), settings.memory_budget)
    if not is_stored or math.prod(X.shape) > allowed:
        return X
    return load_images(X, np.empty(X.shape, np.uint8), max(1, settings.n_workers), "images")


def _split_views(settings: Settings, X: Any) -> tuple[Any, list[Augmentation] | None, Any]:
    """Split the X of `fit` into the data and the chain that draws views of it.

    Returns
    -------
    X : array-like
        The plain data.
    chain : list of Augmentation or None
        None leaves the choice to the kind of X.
    inputs : tuple (array-like, Schema) or None
        X as an augmentation has checked it.
    """
    if not isinstance(X, Views):
        return X, settings.augmentation, None
    if settings.augmentation is not None:
        raise ValueError(
            f"X comes from augmentation steps, and {settings.owner} has augmentation=: "
            "keep one of the two."
        )
    return X.base, list(X.chain), X.inputs


def kind_hint(settings: Settings, X: Any, chain: list[Augmentation] | None) -> Kind | None:
    """Return the kind that the user, the augmentations or the encoders declare, if any.

    Raises
    ------
    ValueError
        If samples have several parts, and the framework has one encoder.
    """
    declared = settings.kind or declared_kind(*(chain or ()), *encoders_of(settings.encoder))
    several = [one for one in (declared, X) if isinstance(one, (MultimodalKind, Modalities))]
    if several and not settings.framework.takes_parts:
        raise ValueError(
            f"{several[0]!r}: samples of several parts need a framework with an encoder for each, "
            f"such as framework=CMC(), got {settings.framework!r}."
        )
    return declared


def _is_read_by(settings: Settings, hint: Kind | None, kind: Kind) -> bool:
    """Return whether an augmentation has read X as the embedder would."""
    is_free = settings.kind is None and (hint is None or not is_custom(hint))
    return is_free or same_kind(kind, hint)
