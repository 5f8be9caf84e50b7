"""The settings of a fit: the parameters of an embedder, validated, cloned and resolved."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np
import torch
from sklearn.base import clone

from .._checks import Declared, validate_parameters
from .._checks._arguments import check_component
from .._checks._names import advice_on, parameter_owners
from .._runtime import resolve_device, resolve_seed
from ..augmentation._base import Chain
from ..encoders import Encoder
from ..frameworks import Framework, SimCLR
from ..kinds._base import Kind, Schema
from ..kinds._recognise import named_kind
from ..losses import InfoNCE, Loss
from ..optimizers import Optimizer, as_optimizer
from ..schedules import CosineDecay, Schedule, at_progress
from ..similarity import Cosine, Similarity
from ._defaults import fit_defaults
from ._views import augmentations_of

# role: (base class, default); the framework comes before the similarity, whose default it sets
COMPONENTS = {
    "loss": (Loss, InfoNCE),
    "framework": (Framework, SimCLR),
    "similarity": (Similarity, Cosine),
}

# Descriptions, in messages, of values that do not change the network (None).
_UNNAMED = {"framework": "one with one encoder", "similarity": "one without concentrations"}
# max_epochs="auto" before the samples are known.
_EPOCHS = 100


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The parameters of an embedder, validated and resolved.

    Those that are not listed are the user's.

    Attributes
    ----------
    owner : str
        The name of the estimator's class, for messages.
    parameters : dict
        All parameters with the user's values; `lr` is a number once the samples are known.
    loss, framework, similarity : Loss, Framework, Similarity
        Clones, validated.
    kind : Kind or None
        None detects it.
    augmentation : list of Augmentation or None
        None takes the augmentations that come with X, or the default of its kind.
    lr : float
        NaN for "auto" until the samples are known.
    max_epochs : int
        100 for "auto" until the samples are known.
    optimizer : Optimizer
        A clone, validated.
    lr_schedule : Schedule or None
        None keeps the learning rate constant.
    device : torch.device
        The device of the training.
    seed : int
        The seed from `random_state`.
    one_epoch : bool
        Whether this is `partial_fit`: one epoch, and a constant learning rate.
    """

    owner: str
    parameters: dict[str, Any]
    loss: Loss
    framework: Framework
    similarity: Similarity
    kind: Kind | None
    augmentation: Chain | None
    lr: float
    max_epochs: int
    optimizer: Optimizer
    lr_schedule: Schedule | None
    device: torch.device
    seed: int
    encoder: Any
    n_components: int | None
    projection_dim: int
    output: str
    same_group: Literal["neutral", "positive", "correct"]
    n_views: int
    batch_size: int
    weight_decay: float
    precision: str
    memory_budget: float | None
    n_workers: int
    callbacks: Sequence[Any] | None
    warm_start: bool
    checkpoint: str | os.PathLike | None
    random_state: int | np.random.RandomState | None
    verbose: int
    one_epoch: bool = False

    def for_samples(self, n_samples: int, schema: Schema) -> Settings:
        """Return settings with the learning rate and the epochs for `n_samples` of a schema."""
        n_batches = math.ceil(n_samples / self.batch_size)
        encoders = encoders_of(self.encoder)
        defaults = (fit_defaults(encoder, schema, n_batches) for encoder in encoders)
        lr, n_epochs = map(min, zip(*defaults, strict=True))
        lr = lr if self.parameters["lr"] == "auto" else self.lr
        if self.parameters["max_epochs"] != "auto" or self.one_epoch:
            n_epochs = self.max_epochs
        return replace(self, parameters=self.parameters | {"lr": lr}, lr=lr, max_epochs=n_epochs)

    @property
    def grouped_optimizer(self) -> Optimizer:
        """The optimizer; without groups, it gets one per encoder if a `relative_rate` is not 1."""
        rates = [getattr(encoder, "relative_rate", 1.0) for encoder in encoders_of(self.encoder)]
        if self.optimizer.param_groups is not None or all(rate == 1 for rate in rates):
            return self.optimizer
        is_list = isinstance(self.encoder, (list, tuple))
        groups = [
            (f"encoder.{index}.*" if is_list else "encoder.*", {"lr": rate * self.lr})
            for index, rate in enumerate(rates)
        ]
        return clone(self.optimizer).set_params(param_groups=groups)


def epoch_progress(epoch: int, n_epochs: int) -> float:
    """Return the progress of an epoch: 0 at the first of several, 1 at the last."""
    return min(epoch / max(1, n_epochs - 1), 1.0)


def default_with(role: str, parameters: dict[str, Any], framework: Framework | None = None) -> Any:
    """Return the default loss, framework or similarity with some parameters set.

    The default similarity depends on the embedder's framework.
    """
    base, default = COMPONENTS[role]
    if role == "similarity" and isinstance(framework, Framework):
        default = framework.default_similarity
    known = set(default().get_params())
    if unknown := {name.partition("__")[0] for name in parameters} - known:
        name = min(unknown)
        advice = advice_on(name, known, is_set=True)
        if others := parameter_owners(base, name):
            examples = " or ".join(f"{other}()" for other in others)
            advice = f": pass an object as {role} first, such as {examples}."
        raise ValueError(
            f"The {role!r} parameter of ContrastiveEmbedder is None, that is {default()!r}, which "
            f"has no parameter {name!r}{advice}"
        )
    return default().set_params(**parameters)


def resolve_settings(estimator: Declared) -> Settings:
    """Validate the parameters of an embedder and resolve them.

    Raises
    ------
    ValueError, TypeError
        If a parameter, at any depth, is outside its range or has a wrong type; the message names
        the parameter.
    """
    owner = type(estimator).__name__
    # The __init__ of a subclass may have fewer parameters.
    names = dict.fromkeys(estimator._parameter_constraints) | estimator.get_params(False)
    parameters = {name: getattr(estimator, name) for name in names}
    validate_parameters(estimator)
    # validate_parameters does not reach encoders in a list.
    for encoder in encoders_of(parameters["encoder"]):
        if isinstance(encoder, Encoder):
            validate_parameters(encoder)
    max_epochs = _EPOCHS if parameters["max_epochs"] == "auto" else parameters["max_epochs"]
    lr_schedule = _lr_schedule(parameters["lr_schedule"], max_epochs, owner)
    # The framework comes first: the default of the similarity depends on it.
    framework = _component("framework", parameters, owner, max_epochs)
    default = framework.default_similarity
    is_detected = isinstance(parameters["kind"], str) and parameters["kind"] == "auto"
    optimizer = clone(as_optimizer(parameters["optimizer"]))
    validate_parameters(optimizer)
    given = {item.name: parameters.get(item.name) for item in fields(Settings)}
    resolved = {
        "owner": owner,
        "parameters": parameters,
        "loss": _component("loss", parameters, owner, max_epochs),
        "framework": framework,
        "similarity": _component("similarity", parameters, owner, max_epochs, default),
        "kind": None if is_detected else named_kind(parameters["kind"], owner=owner),
        "augmentation": augmentations_of(parameters["augmentation"], owner),
        "lr": math.nan if parameters["lr"] == "auto" else parameters["lr"],
        "max_epochs": max_epochs,
        "optimizer": optimizer,
        "lr_schedule": lr_schedule,
        "device": resolve_device(parameters["device"], owner),
        "seed": resolve_seed(parameters["random_state"]),
        "one_epoch": False,
    }
    return Settings(**{**given, **resolved})


def _component(
    role: str, parameters: dict[str, Any], owner: str, n_epochs: int, default: type | None = None
) -> Any:
    """Return a validated clone of the loss, framework or similarity.

    Schedules are evaluated at every epoch, so that values out of range fail before training.
    """
    base, package_default = COMPONENTS[role]
    value = clone(check_component(parameters[role], base, owner, role, default or package_default))
    validate_parameters(value)
    if role == "loss":
        value.check_overrides()
    if any(isinstance(v, Schedule) for v in value.get_params().values()):
        for epoch in range(n_epochs):
            at_progress(value, epoch_progress(epoch, n_epochs))
    return value


def encoders_of(encoder: Any) -> list[Any]:
    """Return the encoders of the modalities as a list; one encoder gives a list of one."""
    return list(encoder) if isinstance(encoder, (list, tuple)) else [encoder]


def _lr_schedule(schedule: str | Schedule, n_epochs: int, owner: str) -> Schedule | None:
    """Return the validated schedule of the learning rate; None is constant."""
    if isinstance(schedule, str):
        return CosineDecay() if schedule == "cosine" else None
    validate_parameters(schedule)
    for epoch in range(n_epochs + 1):
        factor = schedule(epoch / n_epochs)
        if not (math.isfinite(factor) and factor >= 0):
            raise ValueError(
                f"The 'lr_schedule' parameter of {owner} must give finite factors of at least "
                f"0, got {factor} in epoch {epoch}."
            )
    return schedule


def network_parameters(settings: Settings) -> dict[str, Any]:
    """Return the parameters, by name, that determine the network, except the kind."""
    return {
        "encoder": ", ".join(map(_named, encoders_of(settings.encoder))),
        "n_components": settings.n_components,
        "projection_dim": settings.projection_dim,
        "framework": settings.framework.network_signature,
        "similarity": type(settings.similarity).__name__ if settings.similarity.n_extra else None,
    }


def _named(encoder: Any) -> str:
    """Return a description of an encoder."""
    is_named = encoder is None or isinstance(encoder, Encoder)
    return repr(encoder) if is_named else type(encoder).__name__


def check_same_network(settings: Settings, past: Any) -> None:
    """Raise ValueError if the parameters require another network than an earlier fit has."""
    now: dict[str, Any] = network_parameters(settings)
    before = dict(past.built_from)
    if settings.kind is not None and repr(settings.kind) != repr(past.schema.kind):
        now["kind"], before["kind"] = settings.kind, past.schema.kind
    for name, value in now.items():
        if value != before[name]:
            old, new = (_UNNAMED.get(name) if v is None else v for v in (before[name], value))
            raise ValueError(
                f"The {name!r} parameter of {settings.owner} has changed from {old} to {new} "
                "since the network was built: call fit with warm_start=False."
            )
