"""What fit is assembled from: the user's choices, checked, cloned and resolved."""

from __future__ import annotations

import contextlib
import inspect
import secrets

import torch
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state

from ._inputs import VECTORS, kind_of
from ._sklearn_compat import check_component, validate_parameters
from ._training import OPTIMIZERS, epoch_progress
from .augmentation import Augmentation, MarginalCorruption, RandomAffine, SimCLRAugmentation, Views
from .encoders import Encoder
from .frameworks import Framework, SimCLR
from .losses import InfoNCE, Loss
from .schedules import CosineDecay, Schedule, at_progress
from .similarity import Cosine, Similarity

# role: (base class, default)
COMPONENTS = {
    "loss": (Loss, InfoNCE),
    "framework": (Framework, SimCLR),
    "similarity": (Similarity, Cosine),
}
_OWNER = "ContrastiveEmbedder"


def resolve_component(estimator, role):
    """Return a validated clone of the estimator's loss, framework or similarity.

    Schedules are evaluated at every epoch, so that a value out of range is found before training.
    """
    base, default = COMPONENTS[role]
    value = getattr(estimator, role)
    value = clone(check_component(value, base, owner=_OWNER, parameter=role, default=default))
    validate_parameters(value)
    if any(isinstance(v, Schedule) for v in value.get_params(deep=False).values()):
        for epoch in range(estimator.max_epochs):
            at_progress(value, epoch_progress(epoch, estimator.max_epochs))
    return value


def check_choices(estimator):
    """Check what the estimator's own constraints cannot say."""
    if isinstance(estimator.encoder, Encoder):
        validate_parameters(estimator.encoder)
    if isinstance(estimator.lr_schedule, Schedule):
        validate_parameters(estimator.lr_schedule)
    for callback in estimator.callbacks or ():
        if inspect.isclass(callback):
            raise TypeError(
                f"The 'callbacks' parameter of {_OWNER} must hold instances, got the class "
                f"{callback.__name__}. Write {callback.__name__}() instead."
            )
    resolve_optimizer(estimator.optimizer)


def resolve_optimizer(optimizer):
    """Return the optimizer class."""
    if isinstance(optimizer, str):
        return OPTIMIZERS[optimizer]
    if not issubclass(optimizer, torch.optim.Optimizer):
        raise TypeError(
            f"The 'optimizer' parameter of {_OWNER} must be one of {sorted(OPTIMIZERS)} or a "
            f"subclass of torch.optim.Optimizer, got {optimizer!r}."
        )
    return optimizer


def resolve_lr_schedule(lr_schedule):
    """Return a schedule of factors on the learning rate, or None for a constant one."""
    if lr_schedule == "cosine":
        return CosineDecay()
    return None if lr_schedule == "constant" else lr_schedule


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


def resolve_seed(random_state):
    """Return an int; None draws it without touching a global generator."""
    if random_state is None:
        return secrets.randbits(31)
    return int(check_random_state(random_state).randint(2**31 - 1))


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
        augmentation = [step for _, step in augmentation.steps]
    if not isinstance(augmentation, (list, tuple)):
        augmentation = [augmentation]
    for step in augmentation:
        check_component(step, Augmentation, owner=_OWNER, parameter="augmentation")
        validate_parameters(step)
    return list(augmentation)


def _names(chain):
    return ", ".join(type(step).__name__ for step in chain)


def default_chain(sample_shape):
    """Return the augmentations that suit the kind of X."""
    if kind_of(sample_shape) == VECTORS:
        return [MarginalCorruption()]
    is_colour = len(sample_shape) == 3 and sample_shape[0] == 3
    return [SimCLRAugmentation() if is_colour else RandomAffine()]


@contextlib.contextmanager
def preserved_rng(device):
    """Seed torch's global generators freely inside; they are as before afterwards."""
    devices = [] if device.type == "cpu" else [device]
    kind = "cuda" if device.type == "cpu" else device.type
    with torch.random.fork_rng(devices=devices, device_type=kind):
        yield
