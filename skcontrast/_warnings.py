"""Warnings that point at the caller's line."""

from __future__ import annotations

import os
import sys
import warnings

_PACKAGE = os.path.dirname(__file__) + os.sep


class CollapseWarning(UserWarning):
    """Training has made the representations of nearly all samples alike."""


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning that points at the innermost line of code outside this package.

    Parameters
    ----------
    message : str
        The text of the warning.
    category : type, default=UserWarning
        A subclass of Warning.
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    warnings.warn_explicit(
        message,
        category,
        filename=frame.f_code.co_filename,
        lineno=frame.f_lineno,
        module=frame.f_globals.get("__name__", "<unknown>"),
        registry=frame.f_globals.setdefault("__warningregistry__", {}),
    )
