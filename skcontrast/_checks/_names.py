"""Names that do not exist: which one was meant, or what is there instead."""

from __future__ import annotations

import difflib
import functools
import inspect
import sys
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

_F = TypeVar("_F", bound=Callable[..., Any])

# Names of other libraries, and ours for the same thing.
_SYNONYMS = {
    "max_epochs": "epochs n_epochs num_epochs max_iter n_iter",
    "lr": "learning_rate learning_rate_init eta",
    "batch_size": "bs",
    "weight_decay": "l2",
    "lr_schedule": "scheduler lr_scheduler",
    "random_state": "seed random_seed rng",
    "encoder": "backbone base_encoder model net network",
    "loss": "criterion objective",
    "similarity": "metric distance",
    "augmentation": "transform transforms",
    "n_components": "embedding_dim latent_dim out_dim output_dim dim",
    "projection_dim": "proj_dim projector_dim head_dim",
    "device": "gpu accelerator",
    "precision": "amp fp16 mixed_precision dtype",
    "n_workers": "num_workers",
    "widths": "hidden hidden_dim hidden_sizes hidden_layer_sizes layers channels",
    "n_layers": "num_layers",
    "rotation": "degrees angle",
    "angle": "degrees rotation",
    "n_neighbors": "k",
    "queue_size": "queue_length memory_size",
    "scale": "std sigma",
    "tau_plus": "tau",
    "p": "prob probability rate",
    "rate": "prob probability p",
}
# Where to find what is not a parameter of the same object.
_ELSEWHERE = {
    "temperature": "the temperature is that of the similarity: pass "
    "similarity=Cosine(temperature=0.1); in a search, it is similarity__temperature",
    "early_stopping": "pass callbacks=[skcontrast.callbacks.Evaluation(None, X_test, patience=5)]",
    "n_jobs": "torch.set_num_threads sets the threads of a fit, n_workers of the embedder the "
    "processes that read samples",
}
_ELSEWHERE |= {"tau": _ELSEWHERE["temperature"], "patience": _ELSEWHERE["early_stopping"]}


def advice_on(name: str, known: Iterable[str]) -> str:
    """Return the end of a message about a name that is none of the known ones.

    Parameters
    ----------
    name : str
        What the user wrote.
    known : iterable of str
        The names of the parameters.
    """
    known = list(known)
    meant = [ours for ours in known if name in _SYNONYMS.get(ours, "").split()]
    if name in _ELSEWHERE and not meant:
        return f": {_ELSEWHERE[name]}."
    if meant := meant or difflib.get_close_matches(name, known, 1, 0.7):
        return f". Did you mean {meant[0]!r}?"
    return f": its parameters are {', '.join(known)}." if known else ": it has no parameters."


def names_checked(function: _F) -> _F:
    """Return a function that says, if an argument does not exist, which one may be meant."""
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return function
    known = [p.name for p in parameters if p.name != "self"]

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        for name in kwargs:
            if name not in known:
                is_class = function.__name__ == "__init__"
                owner = type(args[0]).__name__ if is_class else function.__qualname__
                advice = advice_on(name, known)
                raise TypeError(f"{owner}() got an unexpected keyword argument {name!r}{advice}")
        return function(*args, **kwargs)

    return cast(_F, call)


def choices_instead(value: str, base: type, parameter: str) -> str:
    """Return the end of a message: which objects, derived from `base`, there are for a string."""
    names = {name.lower(): name for name in _public_classes(base)}
    close = difflib.get_close_matches(value.lower().replace("_", ""), names, 1, 0.6)
    if close:
        return f" Write {parameter}={names[close[0]]}() instead."
    return f" Choose from {', '.join(f'{name}()' for name in names.values())}." if names else ""


def parameter_owners(base: type, name: str) -> list[str]:
    """Return the names of the public classes derived from `base` that have a parameter."""
    classes = _public_classes(base)
    return [one for one, cls in classes.items() if name in inspect.signature(cls).parameters]


def _public_classes(base: type) -> dict[str, type]:
    """Return by name the classes derived from `base` in the subpackage that defines it."""
    package = sys.modules[base.__module__.partition("._")[0]]
    public = {name: getattr(package, name) for name in sorted(getattr(package, "__all__", ()))}
    return {
        name: thing
        for name, thing in public.items()
        if inspect.isclass(thing) and issubclass(thing, base) and thing is not base
    }
