"""Constraints on hyperparameters and arguments, and their error messages."""

import difflib
import inspect
import re
from collections.abc import Sequence
from fractions import Fraction
from itertools import chain
from numbers import Integral, Real
from typing import Any, Literal, TypeAlias

import numpy as np

from .._sklearn_compat import Interval as _Interval
from .._sklearn_compat import InvalidParameterError, StrOptions, validate_parameter_constraints
from ._names import SYNONYMS, choices_instead

Closed: TypeAlias = Literal["left", "right", "both", "neither"]
# The longest value that is shown in a message.
_LONGEST = 300


# What to write for parameters, if a value is not valid.
_EXAMPLES = {
    "callbacks": "[...]", "embedder": "ContrastiveEmbedder(...)", "optimizer": "torch.optim.SGD"
}  # fmt: skip


def brief(value: Any, longest: int = _LONGEST) -> str:
    """Describe a value for messages: an array by its shape."""
    if len(getattr(value, "shape", ())) > 0:
        return f"{type(value).__name__} of shape {tuple(value.shape)}"
    text = repr(value)
    return text if len(text) <= longest else f"a {type(value).__name__}"


def check_values(constraints: dict[str, Any], values: dict[str, Any], owner: str) -> None:
    """Raise ``InvalidParameterError``, as scikit-learn does, for values outside their ranges.

    Messages omit private modules and long values. Invalid constraints of users are reported.
    """
    try:
        validate_parameter_constraints(constraints, values, caller_name=owner)
    except InvalidParameterError as error:
        name = str(error).split("'")[1]
        text = re.sub(r"'skcontrast\.[\w.]*?\b(\w+)'", r"'\1'", str(error))
        text = text.replace(f"Got {values[name]!r} instead", f"Got {brief(values[name])} instead")
        advice = _advice(name, values[name], constraints[name])
        raise InvalidParameterError(f"{text}{advice}") from None


def _advice(name: str, value: Any, constraints: Sequence[Any]) -> str:
    """Return a suggestion that ends a message, or an empty string."""
    known = sorted(chain(*[rule.options for rule in constraints if isinstance(rule, StrOptions)]))
    meant = SYNONYMS.get(str(value).removeprefix("torch.").lower())
    if meant in known:
        return f" Mixed precision is {meant!r}."
    if name == "tau_plus" and isinstance(value, Real):
        return " It is a probability, such as 1/10 for ten classes."
    if close := difflib.get_close_matches(str(value).lower(), known, 1, 0.7):
        return f" Did you mean {close[0]!r}?"
    others = [rule for rule in constraints if not (rule is None or isinstance(rule, StrOptions))]
    base: Any = others[0] if len(others) == 1 else None
    is_class = inspect.isclass(base)
    if is_class and isinstance(value, str):
        return choices_instead(value, base, name)
    if is_class and inspect.isclass(value) and issubclass(value, base):
        arguments = inspect.signature(value).parameters.values()
        needed = ", ".join(one.name for one in arguments if one.default is one.empty)
        return f" Write {name}={value.__name__}({needed}) instead."
    if name in _EXAMPLES:
        return f" Write {name}={_EXAMPLES[name]}."
    if isinstance(value, Real) and name == "similarity":
        return f" Write similarity=Cosine({value!r}) instead."
    if is_class and callable(value) and not inspect.isclass(value):
        return f" Derive a class from {base.__name__}: see 'Custom components' in the user guide."
    return ""


class Interval(_Interval):
    """Constraint on a hyperparameter: a finite number in a range; a bool is not a number."""

    def is_satisfied_by(self, val: Any) -> bool:
        """Return whether a value is such a number."""
        is_number = not isinstance(val, (bool, Fraction)) and super().is_satisfied_by(val)
        return is_number and bool(abs(val) < np.inf)


FRACTION = [Interval(Real, 0, 1, closed="both")]
NON_NEGATIVE = [Interval(Real, 0, None, closed="left")]
POSITIVE = [Interval(Real, 0, None, closed="neither")]
POSITIVE_INT = [Interval(Integral, 1, None, closed="left")]
TWO_OR_MORE = [Interval(Integral, 2, None, closed="left")]
# Of a random state from which a seed is drawn.
SEEDS = [Interval(Integral, 0, 2**32 - 1, closed="both"), np.random.RandomState, None]


class Numbers(Interval):
    """Constraint on a hyperparameter: a sequence of numbers in a range.

    Parameters
    ----------
    of : Interval
        The range of each number.
    min_length : int, default=0
        How many numbers there must be.
    """

    def __init__(self, of: Interval, min_length: int = 0):
        super().__init__(of.type, of.left, of.right, closed=of.closed)
        self.min_length = min_length

    def is_satisfied_by(self, val: Any) -> bool:
        """Return whether a value is a sequence of such numbers."""
        is_row = isinstance(val, (list, tuple, range)) or getattr(val, "ndim", 0) == 1
        return is_row and len(val) >= self.min_length and all(map(super().is_satisfied_by, val))

    def __str__(self) -> str:
        length = f" of length {self.min_length} or more" if self.min_length else ""
        return f"a sequence{length}, each item {super().__str__()}"


class Pair(Interval):
    """Constraint on a hyperparameter: a pair (low, high) of numbers above 0, at most `most`."""

    def __init__(self, most: float | None = None):
        super().__init__(Real, 0, most, closed="right" if most else "neither")

    def is_satisfied_by(self, val: Any) -> bool:
        is_pair = isinstance(val, (tuple, list)) and len(val) == 2
        return is_pair and all(map(super().is_satisfied_by, val)) and bool(val[0] <= val[1])

    def __str__(self) -> str:
        upper = f" <= {self.right:g}" if self.right else ""
        return f"a pair (low, high) with 0 < low <= high{upper}"
