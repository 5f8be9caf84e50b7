"""Pickles of other versions: who wrote them, and the parameters that classes have gained since."""

from __future__ import annotations

import inspect
from functools import cache
from importlib.metadata import version
from typing import Any

from sklearn.exceptions import InconsistentVersionWarning

from .._warnings import warn

_VERSION = "_skcontrast_version"
# Parameters that an earlier version called differently, by class.
_RENAMED = {"MLP": {"hidden": "widths"}}


class VersionWarning(InconsistentVersionWarning):
    """A pickle was written by a different version of skcontrast."""

    def __str__(self) -> str:
        return (
            f"This {self.estimator_name} was pickled with skcontrast "
            f"{self.original_sklearn_version}, and this is {self.current_sklearn_version}. "
            "Compare some embeddings with known ones, then write it again, best with "
            "skcontrast.save, whose files later versions read."
        )


@cache
def _current() -> str:
    return version("skcontrast")


def stamped(state: dict[str, Any]) -> dict[str, Any]:
    """Return the state of an estimator with the version that writes it."""
    return {**state, _VERSION: _current()}


def unstamped(name: str, state: dict[str, Any]) -> dict[str, Any]:
    """Return the state of an estimator without its version; warn if that is a different one.

    Parameters
    ----------
    name : str
        The class of the estimator.
    state : dict
        As `stamped` has returned it. Version 0.1.0 wrote no version.
    """
    state = dict(state)
    written = state.pop(_VERSION, None)
    if written != _current():
        versions = {
            "current_sklearn_version": _current(),
            "original_sklearn_version": written or "0.1.0",
        }
        warn(VersionWarning(estimator_name=name, **versions))
    return state


def completed(some: Any, state: dict[str, Any]) -> dict[str, Any]:
    """Return the state of an object with all parameters that its class has now.

    A parameter that the class has gained takes its default, a renamed one its old value.

    Parameters
    ----------
    some : type
        The class, derived from BaseEstimator.
    state : dict
        The attributes of an object that was pickled by any version.
    """
    missing = [name for name in some._get_param_names() if name not in state]
    if not missing:
        return state
    state = dict(state)
    for base in some.__mro__:
        for old, new in _RENAMED.get(base.__name__, {}).items():
            if old in state and base.__module__.startswith("skcontrast."):
                state[new] = state.pop(old)
    for name in missing:
        default = inspect.signature(some).parameters[name].default
        # What a class keeps elsewhere than in an attribute is its own affair.
        if default is not inspect.Parameter.empty and not hasattr(some, name):
            state.setdefault(name, default)
    return state
