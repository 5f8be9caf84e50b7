"""Suggestions for misspelled and foreign names of parameters."""

import difflib
import functools
import inspect
import sys
from collections.abc import Callable, Iterable
from types import MethodType
from typing import Any, TypeVar, cast

_F = TypeVar("_F", bound=Callable[..., Any])

# What to write instead of the parameters of papers and of other libraries, which are the values.
_INSTEAD = {
    "similarity=Cosine(temperature=...)": "temperature tau",
    "loss=DCL(tau_plus=...)": "tau_plus class_prior",
    "loss=BCL(alpha=...)": "alpha",
    "loss=HCL(beta=...)": "beta",
    "loss=PUCL(c=...)": "c",
    "framework=MoCo(queue_size=...)": "queue_size memory_bank_size",
    "framework=MoCo(momentum=...)": "momentum",
    "callbacks=[Evaluation(scoring, X, y, patience=...)]": "early_stopping patience",
    "encoder=MLP(widths=...)": "hidden_layer_sizes hidden_dim",
    "encoder=MLP(dropout=...)": "dropout",
    "encoder=Pretrained(network)": "pretrained",
    "precision='bf16'": "amp fp16 mixed_precision",
    "device='cuda'": "cuda gpu use_gpu",
    "n_components": "embedding_dim embedding_size latent_dim output_dim",
    "lr": "learning_rate eta0",
    "max_epochs": "epochs n_epochs num_epochs n_iter max_iter",
    "batch_size": "batch",
    "lr_schedule": "scheduler lr_scheduler",
    "loss": "criterion objective",
    "encoder": "backbone model module network",
    "augmentation": "transform transforms augmentations",
    "random_state": "seed",
    "n_workers": "n_jobs num_workers",
    "y": "labels target",
    "embedder=ContrastiveEmbedder(...)": "batch_size device encoder loss lr max_epochs",
}
ELSEWHERE = {name: there for there, names in _INSTEAD.items() for name in names.split()}
# Names of losses in papers and other libraries, in lower case without signs.
_LOSSES = {
    **dict.fromkeys(("simclr", "ntxent", "nce", "cpc", "contrastive"), "InfoNCE"),
    **dict.fromkeys(("debiased", "debiasedcontrastive"), "DCL"),
    **dict.fromkeys(("hard", "hardnegatives"), "HCL"),
    "bayesian": "BCL",
}
# Names of values in other libraries.
SYNONYMS = dict.fromkeys(("bfloat16", "float16", "fp16", "half", "16", "amp", "mixed"), "bf16")


def advice_on(
    name: str, known: Iterable[str], *, is_set: bool = False, is_custom: bool = False
) -> str:
    """Return a suggestion that ends the message about an unknown name.

    Parameters
    ----------
    name : str
        What the user wrote.
    known : iterable of str
        The names of the parameters.
    is_set : bool, default=False
        Whether it was set by `set_params`, as in a search.
    is_custom : bool, default=False
        Whether the class is not of this package: its author does not want another loss.
    """
    known, instead = list(known), ELSEWHERE.get(name, "")
    longer = (other for other in known if other.startswith(f"{name}_"))  # such as tau
    instead = next(longer, instead)
    if instead in known:
        return f". Did you mean {instead!r}?"
    role, _, value = instead.partition("=")
    path = f"{role}__{name}"
    if instead and "embedder" in known and role != "embedder":
        path, role = f"embedder__{path if value else instead}", "embedder"
        instead = f"embedder=ContrastiveEmbedder({instead if value else f'{instead}=...'})"
    if role in known or (value and not is_custom and role in ("loss", "similarity")):
        nested = f", in a search {path}" if is_set and f"{name}=" in value else ""
        return f". Write {instead}{nested}."
    if meant := difflib.get_close_matches(name, known, 1, 0.7):
        return f". Did you mean {meant[0]!r}?"
    return f": its parameters are {', '.join(known)}." if known else ": it has no parameters."


def belongs_to_package(thing: Any) -> bool:
    """Return whether a class or function is defined in this package, not by a user."""
    return str(getattr(thing, "__module__", "")).partition(".")[0] == __package__.partition(".")[0]


def names_checked(function: _F) -> _F:
    """Decorate a function to suggest the right name for an unknown argument."""
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return function
    known = [p.name for p in parameters if p.name != "self"]

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        unknown = [name for name in kwargs if name not in known]
        if not unknown:
            return function(*args, **kwargs)
        called = type(args[0]) if function.__name__ == "__init__" else function
        owner = called.__name__ if isinstance(called, type) else called.__qualname__
        advice = advice_on(unknown[0], known, is_custom=not belongs_to_package(called))
        raise TypeError(f"{owner}() got an unexpected keyword argument {unknown[0]!r}{advice}")

    return cast(_F, call)


def choices_instead(value: str, base: type, parameter: str) -> str:
    """Return a suggestion that ends a message: objects of type `base` to pass instead."""
    names = {name.lower(): name for name in _public_classes(base)}
    written = "".join(filter(str.isalnum, value.lower()))
    if parameter == "loss" and written in _LOSSES:
        return f" Write loss={_LOSSES[written]}() instead."
    if parameter == "encoder" and any(map(str.isdigit, written)):  # such as "resnet18"
        return f" Write encoder=Pretrained({value!r}) for the weights of timm, or pass a network."
    close = difflib.get_close_matches(written, names, 1, 0.6)
    if written not in names and (partial := [name for name in names if written in name]):
        close = partial
    if close:
        return f" Write {parameter}={' or '.join(f'{names[name]}()' for name in close)} instead."
    return f" Choose from {', '.join(f'{name}()' for name in names.values())}." if names else ""


class available_unless_refused:
    """Decorator of a method that exists only if a function does not say why not.

    Unlike ``available_if`` of scikit-learn, the AttributeError has the reason.

    Parameters
    ----------
    reason : callable
        ``reason(obj)`` returns None if the method exists, else how to get it.
    """

    def __init__(self, reason: Callable[[Any], str | None]):
        self.reason = reason

    def __call__(self, method: Callable[..., Any]) -> Any:
        self.method = method
        functools.update_wrapper(self, method)  # type: ignore[arg-type]
        return self

    def __get__(self, obj: Any, cls: type | None = None) -> Any:
        if obj is None:
            return self.method
        if (reason := self.reason(obj)) is not None:
            name = f"{type(obj).__name__} has no {self.method.__name__}"
            raise AttributeError(f"This {name}: {reason}.")
        return MethodType(self.method, obj)


def parameter_owners(base: type, name: str) -> list[str]:
    """Return the names of the public subclasses of `base` that have a parameter."""
    classes = _public_classes(base)
    return [cls for cls in classes if name in inspect.signature(classes[cls]).parameters]


def _public_classes(base: type) -> dict[str, type]:
    """Return by name the public subclasses of `base` in the subpackage that defines it."""
    package = sys.modules[base.__module__.partition("._")[0]]
    public = {name: getattr(package, name) for name in sorted(getattr(package, "__all__", ()))}
    return {
        name: thing
        for name, thing in public.items()
        if inspect.isclass(thing) and issubclass(thing, base) and thing is not base
    }
