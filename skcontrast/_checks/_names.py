"""Arguments that do not exist: which one was meant, or what is there instead."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, Self, TypeVar, cast

from sklearn.base import BaseEstimator

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

    known = _names_of(function)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if known is not None and any(name not in known for name in kwargs):
            refuse_unknown(function, args, kwargs)
        return function(*args, **kwargs)

    return cast(_F, call)


def refuse_unknown(function: Callable[..., Any], args: tuple, given: Iterable[str]) -> None:
    """Raise TypeError for the name of an argument that a function does not have."""
    known = _names_of(function)
    unknown = None if known is None else next((name for name in given if name not in known), None)
    if known is not None and unknown is not None:
        is_class = function.__name__ == "__init__"
        owner = type(args[0]).__name__ if is_class else function.__qualname__
        raise TypeError(
            f"{owner}() got an unexpected keyword argument {unknown!r}{advice_on(unknown, known)}"
        )


def _names_of(function: Callable[..., Any]) -> list[str] | None:
    """Return the names of the arguments of a function, None if it takes any."""
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    return [p.name for p in parameters if p.name != "self"]


class NamesChecked(BaseEstimator):
    """The base of estimators, whose constructors and `set_params` say which name may be meant."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls):
            cls.__init__ = names_checked(cls.__init__)  # type: ignore[method-assign]

    @names_checked
    def __init__(self) -> None:
        super().__init__()

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name; ``component__parameter`` reaches into a component."""
        known, owner = self.get_params(deep=False), type(self).__name__
        for name, _, nested in (name.partition("__") for name in params):
            if name not in known:
                advice = advice_on(name, known)
                raise ValueError(f"Invalid parameter {name!r} for estimator {owner}{advice}")
            value = params.get(name, known[name])
            if nested and not hasattr(value, "set_params"):
                raise ValueError(
                    f"The {name!r} parameter of {owner} is {value!r} and has no parameters to "
                    f"set: pass an object as {name} first."
                )
        return super().set_params(**params)
