"""What fit is assembled from: the user's choices, checked, cloned and resolved."""

from __future__ import annotations

import contextlib
import inspect
import secrets
import threading
import warnings

import torch
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state
from skorch.callbacks import Callback, LRScheduler

from .._data._scaling import InputScaler
from .._data._validation import GRAPHS, VECTORS, kind_of
from .._parameters import Schedule, at_progress, check_component, validate_parameters
from ..augmentation import (
    Augmentation,
    MarginalCorruption,
    NodeDrop,
    RandomAffine,
    SimCLRAugmentation,
    Views,
)
from ..encoders import Encoder
from ..frameworks import Framework, SimCLR
from ..graphs import NodeFeatures, PackedGraphs
from ..losses import InfoNCE, Loss
from ..similarity import Cosine, Similarity
from ._optimizer import check_lr_schedule, resolve_optimizer
from ._plan import epoch_progress

# role: (base class, default); the framework comes before the similarity, whose default it sets
COMPONENTS = {
    "loss": (Loss, InfoNCE),
    "framework": (Framework, SimCLR),
    "similarity": (Similarity, Cosine),
}
_OWNER = "ContrastiveEmbedder"
# What the network is not built for, in messages.
_STRUCTURELESS = {"framework": "one with one encoder", "similarity": "one without concentrations"}
_GLOBAL_GENERATORS = threading.RLock()


def resolve_component(estimator, role):
    """Return a validated clone of the estimator's loss, framework or similarity.

    Schedules are evaluated at every epoch, so that a value out of range is found before training.
    """
    base, default = COMPONENTS[role]
    if role == "similarity":
        default = estimator.framework_.default_similarity
    value = getattr(estimator, role)
    value = clone(check_component(value, base, owner=_OWNER, parameter=role, default=default))
    validate_parameters(value)
    if any(isinstance(v, Schedule) for v in value.get_params().values()):
        for epoch in range(estimator.max_epochs):
            at_progress(value, epoch_progress(epoch, estimator.max_epochs))
    return value


def check_choices(estimator):
    """Check what the estimator's own constraints cannot say."""
    if isinstance(estimator.encoder, Encoder):
        validate_parameters(estimator.encoder)
    check_lr_schedule(estimator.lr_schedule, estimator.max_epochs)
    for callback in estimator.callbacks or ():
        _check_callback(callback, estimator.lr_schedule)
    resolve_optimizer(estimator.optimizer)


def _check_callback(callback, lr_schedule):
    callback = callback[1] if isinstance(callback, tuple) and len(callback) == 2 else callback
    if inspect.isclass(callback):
        raise TypeError(
            f"The 'callbacks' parameter of {_OWNER} must hold instances, got the class "
            f"{callback.__name__}. Write {callback.__name__}() instead."
        )
    if not isinstance(callback, Callback):
        raise TypeError(
            f"The 'callbacks' parameter of {_OWNER} must hold callbacks of skorch, got "
            f"{callback!r}."
        )
    name = type(callback).__name__
    if str(getattr(callback, "monitor", "")).startswith("valid_"):
        raise ValueError(
            f"The callback {name} monitors {callback.monitor!r}, but nothing is held back for "
            "validation: pass monitor='train_loss' (EarlyStopping) or 'train_loss_best' "
            "(Checkpoint)."
        )
    if isinstance(callback, LRScheduler) and lr_schedule != "constant":
        raise ValueError(
            f"The callback {name} and the 'lr_schedule' parameter of {_OWNER} both set the "
            "learning rate: pass lr_schedule='constant' with it."
        )


def resolve_device(device):
    """Return the torch device; "auto" is the first of CUDA, MPS and CPU that there is.

    Raises
    ------
    ValueError
        If the device is unknown or not available.
    """
    if device == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(device)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ValueError(
            f"The 'device' parameter of {_OWNER} must be 'auto', 'cpu', 'cuda', 'cuda:N' or 'mps' "
            f"and be available on this machine, got {device!s}."
        ) from error
    if device.type == "meta":
        raise ValueError(f"The 'device' parameter of {_OWNER} must hold data, got 'meta'.")
    return device


def trains_in_bf16(estimator, source):
    """Return whether the network trains in bfloat16.

    "auto" says so for the package's encoders of images, where the processor computes in bfloat16
    itself; another module may use what bfloat16 does not have.

    Parameters
    ----------
    estimator : ContrastiveEmbedder
        Whose `precision` and `encoder` decide.
    source : InMemory or Streamed
        The training samples.
    """
    is_ours = estimator.encoder is None or isinstance(estimator.encoder, Encoder)
    if estimator.precision != "auto" or len(source.sample_shape) != 3 or not is_ours:
        return estimator.precision == "bf16"
    if source.device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    # torch has no public name for this yet; without the private one, float32 is always right.
    computes_bf16 = getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)
    return source.device.type == "cpu" and bool(computes_bf16())


def resolve_seed(random_state, owner=_OWNER):
    """Return an int; None draws it without touching a global generator."""
    if random_state is None:
        return secrets.randbits(31)
    try:
        return int(check_random_state(random_state).randint(2**31 - 1))
    except ValueError as error:
        raise ValueError(
            f"The 'random_state' parameter of {owner} must be an int in [0, 2**32 - 1], a "
            f"RandomState or None, got {random_state!r}."
        ) from error


def unwrap(X, augmentation):
    """Split what `fit` gets into the data and the unfitted or fitted chain that draws its views.

    Returns
    -------
    X : array-like
        The plain data.
    chain : list of Augmentation or None
        None leaves the choice to the kind of X.
    """
    chain = _as_list(augmentation)
    if not isinstance(X, Views):
        return X, chain
    if chain is not None:
        raise ValueError(
            f"X comes from augmentation steps ({_names(X.chain)}) and the 'augmentation' "
            f"parameter of {_OWNER} is set too ({_names(chain)}): keep one of the two."
        )
    return X.base, list(X.chain)


def _as_list(augmentation):
    if augmentation is None:
        return None
    if isinstance(augmentation, Pipeline):
        steps = [step for _, step in augmentation.steps if step not in (None, "passthrough")]
        return [part for step in steps for part in _as_list(step)]
    if isinstance(augmentation, (list, tuple)):
        return [part for step in augmentation for part in _as_list(step)]
    check_component(augmentation, Augmentation, owner=_OWNER, parameter="augmentation")
    validate_parameters(augmentation)
    return [augmentation]


def _names(chain):
    return ", ".join(type(step).__name__ for step in chain)


def scored_chain(estimator):
    """Return the chain that draws the views of ``score``: of graphs never an empty one."""
    if kind_of(estimator._sample_shape) == GRAPHS:
        return estimator.augmentation_ or [NodeDrop()]
    return estimator.augmentation_


def make_scaler(estimator, X):
    """Return what maps X to the tensors, or graphs, of the training, unfitted."""
    if isinstance(X, PackedGraphs):
        return NodeFeatures(estimator.node_features, estimator.standardize)
    return InputScaler(estimator.standardize)


def check_no_graphs(X):
    """Raise ValueError for graphs, which several processes cannot share out yet."""
    if isinstance(X, PackedGraphs):
        raise ValueError("Graphs are trained in one process: start fit without torchrun.")


def default_chain(sample_shape, framework, contrasts_channels=False):
    """Return the augmentations that suit the kind of X, and mix no channels to be contrasted."""
    if kind_of(sample_shape) == GRAPHS:
        # A framework that looks at one view needs none that is different.
        return [] if framework.n_views == 1 else [NodeDrop()]
    if kind_of(sample_shape) == VECTORS:
        return [MarginalCorruption()]
    is_colour = len(sample_shape) == 3 and sample_shape[0] == 3 and not contrasts_channels
    return [SimCLRAugmentation() if is_colour else RandomAffine()]


@contextlib.contextmanager
def seeded_rng(seed, device):
    """Seed torch's global generators inside; they are as before afterwards.

    The generators belong to the whole process, so only one thread is inside at a time.
    """
    devices = [] if device.type == "cpu" else [device]
    kind = "cuda" if device.type == "cpu" else device.type
    with _GLOBAL_GENERATORS, torch.random.fork_rng(devices=devices, device_type=kind):
        torch.manual_seed(seed)
        yield


def draws_random_numbers(encoder):
    """Return whether a network may draw from torch's global generators while it trains."""
    if encoder is None:
        return False
    return not isinstance(encoder, Encoder) or bool(getattr(encoder, "dropout", 0))


def network_parameters(estimator):
    """Return, by name, what the network was built from."""
    encoder = estimator.encoder
    if isinstance(encoder, Encoder):
        encoder = repr(encoder)
    elif encoder is not None:
        encoder = type(encoder).__name__
    parameters = {
        "encoder": encoder,
        "n_components": estimator.n_components,
        "projection_dim": estimator.projection_dim,
        "framework": estimator.framework_.structure,
        "similarity": estimator.similarity_.structure,
    }
    if kind_of(estimator._sample_shape) == GRAPHS:
        parameters["node_features"] = estimator.node_features
    return parameters


def check_same_network(estimator, built_from):
    """Raise ValueError if the parameters name another network than the fitted one."""
    for name, value in network_parameters(estimator).items():
        before = built_from[name]
        if value != before:
            before, value = (_STRUCTURELESS.get(name) if v is None else v for v in (before, value))
            raise ValueError(
                f"The {name!r} parameter of {_OWNER} has changed from {before} to {value} since "
                "the network was built; warm_start and partial_fit go on with the same network. "
                "Call fit with warm_start=False."
            )


def warn_channels_last(X):
    """Warn if images have their channels where height or width belong."""
    shape = X.shape[1:]
    if len(shape) == 3 and shape[0] > 4 and shape[-1] in (1, 3, 4):
        warnings.warn(
            f"X looks like channels-last images of shape {shape}; skcontrast expects "
            "(n_samples, channels, height, width): pass X.transpose(0, 3, 1, 2).",
            UserWarning,
            stacklevel=5,
        )


def warn_never_estimated(auto, n_epochs):
    """Warn if a hyperparameter that is "auto" keeps its initial value throughout the fit."""
    for name in auto.never_estimated(n_epochs):
        every = auto.settings[name].every
        warnings.warn(
            f"The {name!r} parameter of the loss is first estimated after {every} epochs, but "
            f"'max_epochs' is {n_epochs}: it keeps {auto.values[name]:g}. Pass "
            f"{name}=Auto(every=1) or train longer.",
            UserWarning,
            stacklevel=6,
        )
