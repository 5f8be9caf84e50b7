"""Pickles of other versions: the version that wrote one is in it, and another one warns."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from typing import Any

from sklearn.exceptions import InconsistentVersionWarning

from .._warnings import warn

_VERSION = "_skcontrast_version"


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
        As `stamped` has returned it.
    """
    state = dict(state)
    written = state.pop(_VERSION)
    if written != _current():
        versions = {
            "current_sklearn_version": _current(),
            "original_sklearn_version": written,
        }
        warn(VersionWarning(estimator_name=name, **versions))
    return state
