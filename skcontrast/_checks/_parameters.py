"""Parameters, declared in the body of a class with their type, default and range."""

import copy
import functools
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, ClassVar, Literal, Self, dataclass_transform

import torch
from sklearn.base import BaseEstimator
from torch import Tensor, nn

from .._sklearn_compat import StrOptions
from ._constraints import brief, check_values
from ._names import advice_on, names_checked


def parameter(
    constraints: Any = "no_validation", *, default: Any = MISSING, kw_only: bool = False
) -> Any:
    """Declare a parameter in the body of a class.

    Parameters
    ----------
    constraints : list, set of str or "no_validation"
        Valid values, as in scikit-learn's ``_parameter_constraints``. A set of strings, also in a
        list, is a choice; alone, it may hold None.
    default : object
        The default value, which must not be mutable; without it, the parameter is required.
    kw_only : bool, default=False
        Whether it is passed by name only, as are all parameters of a loss.
    """
    if isinstance(constraints, set):
        constraints = [constraints - {None}, *constraints & {None}]
    if isinstance(constraints, list):
        constraints = [StrOptions(c) if isinstance(c, set) else c for c in constraints]
    by_name: Any = kw_only or MISSING  # as the class has it
    return field(default=default, kw_only=by_name, metadata={"constraints": constraints})


def learned(*, init: Literal[False] = False) -> Any:
    """Declare a fitted attribute, which is set after the constructor."""
    return field(init=init)


class _Portable:
    """A module in the state of an object: its pickle depends on its numbers alone.

    The pickle of a tensor holds its address, so that joblib would take each clone for another
    object, and a Pipeline with `memory` would fit it again.
    """

    def __init__(self, module: nn.Module):
        self.module = module

    def __deepcopy__(self, memo: dict[int, Any]) -> nn.Module:
        return copy.deepcopy(self.module, memo)

    def __reduce__(self) -> tuple[Any, ...]:
        tensors = [*self.module.parameters(), *self.module.buffers()]
        numbers: Any = {id(t): _Numbers(t) for t in tensors if _is_plain(t)}
        try:
            return _unchanged, (copy.deepcopy(self.module, numbers),)
        except Exception:  # a module that cannot be copied may still be pickled
            return _unchanged, (self.module,)


class _Numbers:
    """A tensor that is pickled as an array."""

    def __init__(self, tensor: Tensor):
        self.tensor = tensor

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        return copy.deepcopy(self.tensor, memo)

    def __reduce__(self) -> tuple[Any, ...]:
        tensor, values = self.tensor, self.tensor.detach()
        is_parameter = isinstance(tensor, nn.Parameter)
        array = values.reshape(-1).view(torch.uint8).numpy()
        return _tensor_of, (array, values.shape, values.dtype, tensor.requires_grad, is_parameter)


def _is_plain(tensor: Tensor) -> bool:
    """Return whether a tensor is an array of numbers in memory."""
    is_array = type(tensor) in (nn.Parameter, Tensor) and tensor.layout is torch.strided
    if not is_array or tensor.device.type != "cpu" or tensor.is_quantized or tensor.is_nested:
        return False
    return tensor.numel() > 0 and tensor.is_contiguous() and not tensor.is_conj()


def _unchanged(module: nn.Module) -> nn.Module:
    return module


def _tensor_of(
    array: Any, shape: Any, dtype: torch.dtype, requires_grad: bool, is_parameter: bool
) -> Tensor:
    values = torch.from_numpy(array.copy()).view(dtype).reshape(shape)
    if is_parameter:
        return nn.Parameter(values, requires_grad)
    return values.requires_grad_(requires_grad)


def _in_lists(convert: Any, value: Any) -> Any:
    """Apply a function to a value, or to the entries of a list or tuple."""
    if type(value) in (list, tuple):
        return type(value)(map(convert, value))
    return convert(value)


@dataclass_transform(field_specifiers=(parameter, learned))
class Declared(BaseEstimator):
    """Base class of objects whose classes declare parameters in their body.

    Such a class becomes a dataclass without class attributes for its parameters. For an unknown
    parameter, the constructor and `set_params` suggest a name.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        declared = {name for name, field in vars(cls).items() if isinstance(field, Field)}
        if declared:
            by_name = cls.__dataclass_transform__["kw_only_default"]  # type: ignore[attr-defined]
            dataclass(eq=False, repr=False, match_args=False, kw_only=by_name)(cls)
            for name in declared & vars(cls).keys():
                delattr(cls, name)
            init = [field for field in fields(cls) if field.init]  # type: ignore[arg-type]
            cls._parameter_constraints = {
                field.name: field.metadata["constraints"] for field in init
            }
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls):
            cls.__init__ = names_checked(cls.__init__)  # type: ignore[method-assign]

    @names_checked
    def __init__(self) -> None:
        super().__init__()

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes, with modules in parameters so that equal ones pickle equally."""

        def portable(value: Any) -> Any:
            return _Portable(value) if isinstance(value, nn.Module) else value

        state = dict(super().__getstate__())  # type: ignore[no-untyped-call]
        for name in self._parameter_constraints.keys() & state.keys():
            state[name] = _in_lists(portable, state[name])
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Set the attributes."""

        def original(value: Any) -> Any:
            return value.module if isinstance(value, _Portable) else value

        state = {name: _in_lists(original, value) for name, value in state.items()}
        super().__setstate__(state)  # type: ignore[no-untyped-call]

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name; ``component__parameter`` reaches into a component."""
        known, owner = self.get_params(deep=False), type(self).__name__
        for name, _, nested in (name.partition("__") for name in params):
            if name not in known:
                advice = advice_on(name, known, is_set=True)
                raise ValueError(f"Invalid parameter {name!r} for estimator {owner}{advice}")
            value = params.get(name, known[name])
            if nested and not hasattr(value, "set_params"):
                is_list = isinstance(value, (list, tuple))
                advice = "set the list" if is_list else f"pass an object as {name} first"
                raise ValueError(
                    f"The {name!r} parameter of {owner} is {brief(value)} and has no parameters "
                    f"to set: {advice}."
                )
        return super().set_params(**params)


class ParameterObject(Declared):
    """Base class of components with hyperparameters, each passed as a parameter of an estimator.

    Losses, similarities, frameworks, encoders and schedules are parameter objects: they have
    ``get_params``, ``set_params``, ``clone`` and ``repr`` as every scikit-learn object, so that
    a grid search can set ``embedder__loss__tau_plus``. Their values are checked
    against ``_parameter_constraints`` where they are used, never in ``__init__``.
    """

    @classmethod
    @functools.cache
    def _get_param_names(cls) -> list[str]:
        # scikit-learn reads the signature at each call, which shows in a loss of small batches.
        return super()._get_param_names()

    def validate(self) -> None:
        """Raise ValueError for combinations of values that the constraints cannot exclude."""


def validate_parameters(obj: Any) -> None:
    """Raise ``InvalidParameterError`` if a parameter of `obj` is outside its range.

    Parameter objects inside `obj` are checked too, at any depth.
    """
    parameters = obj.get_params(deep=False)
    check_values(obj._parameter_constraints, parameters, type(obj).__name__)
    for value in parameters.values():
        if isinstance(value, ParameterObject):
            validate_parameters(value)
    if hasattr(obj, "validate"):
        obj.validate()
