"""Warnings that point at the caller's line, and console output."""

import contextlib
import os
import sys
import warnings
from importlib.util import find_spec
from typing import Any

import torch.distributed as dist
from tqdm.auto import tqdm

# Warnings skip frames of these folders: skorch calls callbacks, scikit-learn calls `fit` in a
# Pipeline, joblib in cross-validation, and decorators of torch and contextlib wrap functions.
_PACKAGES = map(find_spec, (__package__, "joblib", "skorch", "sklearn", "torch"))
_FOLDERS = (os.path.dirname(str(spec.origin)) + os.sep for spec in _PACKAGES if spec)
_SKIPPED = (*_FOLDERS, contextlib.__file__)

# Seconds after which a bar is shown without verbose.
_SILENT = 10.0


class CollapseWarning(UserWarning):
    """Nearly all samples have almost the same representation after training.

    Examples
    --------
    To stop a script on collapse, make the warning an error:

    >>> import warnings
    >>> from skcontrast.callbacks import CollapseWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", CollapseWarning)
    """


def warn(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Issue a warning that points at the caller's line, outside this package and its libraries.

    Parameters
    ----------
    message : str or Warning
        The text of the warning, or the warning itself, whose class then counts.
    category : type, default=UserWarning
        A subclass of Warning.
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_SKIPPED):
        frame = frame.f_back
    warnings.warn_explicit(
        message,
        category,
        filename=frame.f_code.co_filename,
        lineno=frame.f_lineno,
        module=frame.f_globals.get("__name__", "<unknown>"),
        registry=frame.f_globals.setdefault("__warningregistry__", {}),
    )


def say(text: str) -> None:
    """Write a line to stderr, above any progress bar, if the program has a console."""
    if _writes():
        tqdm.write(text, file=sys.stderr)


def progress(*args: Any, is_asked_for: bool = False, disable: bool = False, **options: Any) -> Any:
    """Return a progress bar on stderr; without `is_asked_for`, it is shown after 10 s."""
    options["delay"] = 0 if is_asked_for else _SILENT
    return tqdm(*args, disable=disable or not _writes(), **options)


def _writes() -> bool:
    """Return whether there is a console, and this is the first of torch's group of processes."""
    is_in_group = dist.is_available() and dist.is_initialized()
    has_console = sys.stderr is not None and not getattr(sys.stderr, "closed", False)
    return has_console and not (is_in_group and dist.get_rank())
