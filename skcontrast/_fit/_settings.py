"""The settings of a fit: the parameters of an embedder, validated, cloned and resolved."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from skorch.callbacks import Callback, LRScheduler
from skorch.callbacks.scoring import ScoringBase
from torch import Tensor, nn

from .._checks import (
    advice_on,
    check_component,
    parameter_owners,
    validate_parameters,
)
from .._data._arrays import fingerprint
from .._runtime import resolve_device, resolve_seed
from ..augmentation import Augmentation
from ..callbacks import Evaluation
from ..encoders import Encoder
from ..frameworks import Framework, SimCLR
from ..kinds._base import Kind, Schema
from ..kinds._recognise import named_kind
from ..losses import InfoNCE, Loss
from ..optimizers import Optimizer, as_optimizer
from ..schedules import CosineDecay, Schedule, at_progress
from ..similarity import Cosine, Similarity
from ._defaults import fit_defaults

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


@dataclass(frozen=True)
class Settings:
    """The parameters of an embedder, validated and resolved.

    Parameters that are not listed are attributes, too, with the user's values.

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
    max_epochs : int
        100 for "auto" until the samples are known.
    augmentation : list of Augmentation or None
        None takes the augmentations that come with X, or the default of its kind.
    optimizer : Optimizer
        A clone, validated.
    lr_schedule : Schedule or None
        None keeps the learning rate constant.
    device : torch.device
        The device of the training.
    callbacks : list
        The user's callbacks.
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
    augmentation: list[Augmentation] | None
    max_epochs: int
    optimizer: Optimizer
    lr_schedule: Schedule | None
    device: torch.device
    callbacks: list[Callback | tuple[str, Callback]]
    seed: int
    one_epoch: bool = False

    def __getattr__(self, name: str) -> Any:
        """Return a parameter that is not resolved."""
        try:
            return vars(self)["parameters"][name]
        except KeyError:
            raise AttributeError(name) from None

    def for_samples(self, n_samples: int, schema: Schema) -> Settings:
        """Return settings with the learning rate and the epochs for `n_samples` of a schema."""
        n_batches = math.ceil(n_samples / self.batch_size)
        encoders = encoders_of(self.encoder)
        defaults = (fit_defaults(encoder, schema, n_batches) for encoder in encoders)
        lr, n_epochs = map(min, zip(*defaults, strict=True))
        parameters = self.parameters | ({"lr": lr} if self.parameters["lr"] == "auto" else {})
        if parameters["max_epochs"] != "auto" or self.one_epoch:
            n_epochs = self.max_epochs
        return replace(self, parameters=parameters, max_epochs=n_epochs)

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


def default_with(role: str, parameters: dict[str, Any], framework: Any = None) -> Any:
    """Return the default loss, framework or similarity with some parameters set.

    The default similarity depends on the embedder's framework.
    """
    base, default = COMPONENTS[role]
    if role == "similarity" and isinstance(framework, Framework):
        default = framework.default_similarity
    known = set(default().get_params())
    unknown = {name.partition("__")[0] for name in parameters} - known
    if unknown:
        name = min(unknown)
        advice = advice_on(name, known, is_set=True)
        others = parameter_owners(base, name)
        if others:
            examples = " or ".join(f"{other}()" for other in others)
            advice = f": pass an object as {role} first, such as {examples}."
        raise ValueError(
            f"The {role!r} parameter of ContrastiveEmbedder is None, that is {default()!r}, which "
            f"has no parameter {name!r}{advice}"
        )
    return default().set_params(**parameters)


def resolve_settings(estimator: Any) -> Settings:
    """Validate the parameters of an embedder and resolve them.

    Raises
    ------
    ValueError, TypeError
        If a parameter, at any depth, is outside its range or has a wrong type; the message names
        the parameter.
    """
    owner = type(estimator).__name__
    # The __init__ of a subclass may have fewer parameters.
    declared = dict.fromkeys(estimator._parameter_constraints)
    parameters = {
        name: getattr(estimator, name) for name in declared | estimator.get_params(False)
    }
    validate_parameters(estimator)
    # validate_parameters does not reach encoders in a list.
    for encoder in encoders_of(parameters["encoder"]):
        if isinstance(encoder, Encoder):
            validate_parameters(encoder)
    max_epochs = _EPOCHS if parameters["max_epochs"] == "auto" else parameters["max_epochs"]
    lr_schedule = _lr_schedule(parameters["lr_schedule"], max_epochs, owner)
    _check_callbacks(plain_callbacks(parameters["callbacks"]), lr_schedule, owner)
    # The framework comes first: the default of the similarity depends on it.
    framework = _component("framework", parameters, owner, max_epochs)
    default = framework.default_similarity
    is_detected = isinstance(parameters["kind"], str) and parameters["kind"] == "auto"
    optimizer = clone(as_optimizer(parameters["optimizer"]))
    validate_parameters(optimizer)
    return Settings(
        owner=owner,
        parameters=parameters,
        loss=_component("loss", parameters, owner, max_epochs),
        framework=framework,
        similarity=_component("similarity", parameters, owner, max_epochs, default),
        kind=None if is_detected else named_kind(parameters["kind"], owner=owner),
        augmentation=augmentations_of(parameters["augmentation"], owner),
        max_epochs=max_epochs,
        optimizer=optimizer,
        lr_schedule=lr_schedule,
        device=resolve_device(parameters["device"], owner),
        callbacks=list(parameters["callbacks"] or ()),
        seed=resolve_seed(parameters["random_state"]),
    )


def _component(
    role: str, parameters: dict[str, Any], owner: str, n_epochs: int, default: type | None = None
) -> Any:
    """Return a validated clone of the loss, framework or similarity.

    Schedules are evaluated at every epoch, so that values out of range fail before training.
    """
    base, package_default = COMPONENTS[role]
    value = check_component(
        parameters[role], base, owner=owner, parameter=role, default=default or package_default
    )
    value = clone(value)
    validate_parameters(value)
    if any(isinstance(v, Schedule) for v in value.get_params().values()):
        for epoch in range(n_epochs):
            at_progress(value, epoch_progress(epoch, n_epochs))
    return value


def plain_callbacks(callbacks: Any) -> list[Any]:
    """Return callbacks without their names."""
    items = callbacks or ()
    return [item[1] if isinstance(item, tuple) and len(item) == 2 else item for item in items]


def _check_callbacks(callbacks: list[Any], lr_schedule: Schedule | None, owner: str) -> None:
    """Refuse objects that are not callbacks of skorch, and callbacks that need other data."""
    is_evaluated = any(isinstance(callback, Evaluation) for callback in callbacks)
    for callback in callbacks:
        if not isinstance(callback, Callback):
            raise TypeError(
                f"The 'callbacks' parameter of {owner} must hold instances of callbacks, such as "
                f"EarlyStopping(), got {callback!r}."
            )
        name = type(callback).__name__
        # These would run without the data that they need, or override the schedule.
        if isinstance(callback, ScoringBase):
            raise ValueError(
                f"The callback {name} of skorch scores the predictions of a classifier: pass "
                "skcontrast.callbacks.Evaluation(scoring, X, y) with held-out samples instead."
            )
        if str(getattr(callback, "monitor", "")).startswith("valid_") and not is_evaluated:
            raise ValueError(
                f"The callback {name} monitors {callback.monitor!r}, but nothing is held back for "
                "validation: monitor 'train_loss' (EarlyStopping), 'train_loss_best' (Checkpoint) "
                "or the column of a skcontrast.callbacks.Evaluation."
            )
        if isinstance(callback, LRScheduler) and lr_schedule is not None:
            raise ValueError(
                f"The callback {name} and the 'lr_schedule' parameter of {owner} both set the "
                "learning rate: pass lr_schedule='constant' with it."
            )


def encoders_of(encoder: Any) -> list[Any]:
    """Return the encoders of the modalities as a list; one encoder gives a list of one."""
    return list(encoder) if isinstance(encoder, (list, tuple)) else [encoder]


def augmentations_of(augmentation: Any, owner: str) -> list[Augmentation] | None:
    """Return an augmentation, a list or a Pipeline as a validated list; None stays None."""
    if augmentation is None:
        return None
    if isinstance(augmentation, Pipeline):
        steps = (step for _, step in augmentation.steps if step not in (None, "passthrough"))
        augmentation = list(steps)
    if isinstance(augmentation, (list, tuple)):
        return [part for step in augmentation for part in augmentations_of(step, owner) or ()]
    if callable(augmentation) and not isinstance(augmentation, (type, Augmentation)):
        name = getattr(augmentation, "__name__", type(augmentation).__name__)
        raise TypeError(
            f"The 'augmentation' parameter of {owner} got {name}, which is not an Augmentation: "
            f"pass FunctionAugmentation({name}), with per_sample=True if it takes one sample."
        )
    check_component(augmentation, Augmentation, owner=owner, parameter="augmentation")
    validate_parameters(augmentation)
    return [augmentation]


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


def description_of(value: Any) -> str:
    """Return a description of an object that is the same in every process.

    It differs for other parameters; for networks, also for other weights. Functions, and objects
    without parameters, are described by their names.
    """
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(description_of, value))}]"
    text = re.sub(" at 0x[0-9a-fA-F]+", "", repr(value))
    if not isinstance(value, nn.Module):
        return text
    structure, weights = zlib.crc32(text.encode()), checksum(value.state_dict().values())
    return f"{type(value).__name__} with checksum {structure:08x} and weights {weights:08x}"


def checksum(values: Iterable[Any]) -> int:
    """Return a checksum of arrays and tensors; other values are ignored."""
    tensors = [torch.as_tensor(v) for v in values if isinstance(v, (np.ndarray, Tensor))]
    known = [tensor for tensor in tensors if not nn.parameter.is_lazy(tensor)]
    return fingerprint(tensor.detach().cpu().double().numpy() for tensor in known)


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
