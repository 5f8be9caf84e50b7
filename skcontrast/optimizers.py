"""Optimizers with options per group of parameters."""

import inspect
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, ClassVar, Literal, Self, TypeAlias

import torch
from torch import nn

from ._checks import NON_NEGATIVE, InvalidParameterError, ParameterObject, StrOptions
from ._checks._arguments import check_argument

__all__ = ["Optimizer"]


Algorithm: TypeAlias = Literal["adam", "adamw", "sgd"] | type[torch.optim.Optimizer]
_Named: TypeAlias = tuple[str, nn.Parameter]

ALGORITHMS: dict[str, type[torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "sgd": torch.optim.SGD,
}
# Options that exclude the fused implementation, which is otherwise chosen.
_IMPLEMENTATIONS = {"foreach", "fused", "differentiable"}


class Optimizer(ParameterObject):
    """An optimizer with options, also for groups of parameters.

    Learning rate, weight decay and schedule are parameters of the embedder. All other options of
    the algorithm are keyword arguments here, with their names in ``torch.optim``, and
    parameters for searches, such as ``optimizer__betas``.

    A group of parameters may have its own options, for instance a low learning rate for a
    pretrained backbone. The schedule multiplies the learning rate of every group by the same
    factor.

    Parameters
    ----------
    algorithm : {"adam", "adamw", "sgd"} or torch.optim.Optimizer class, default="adam"
        The algorithm. "sgd" has momentum 0.9 unless `options` changes it.
    param_groups : list of (str, dict), default=None
        Pairs of a pattern and the options of all parameters whose names match it; other options
        are inherited. In a pattern, ``*`` is any text and ``?`` any character, as for file names.
        A parameter belongs to the first pattern that matches. Its name is
        ``encoder.`` followed by its name in the module that was passed as encoder (with two
        encoders, ``encoder.0.`` and ``encoder.1.``), ``projector.`` followed by its name in the
        projection head, or ``framework.`` followed by its name in the framework. The options are
        those of the algorithm, including ``lr`` and ``weight_decay``.
    **options : dict
        Options of the algorithm by name, such as ``betas`` of Adam or ``momentum`` of SGD, except
        ``lr`` and ``weight_decay``.

    Raises
    ------
    ValueError
        In `fit`: if the algorithm is ``LBFGS``, has no such option or rejects its value, or if no
        parameter matches a pattern.

    See Also
    --------
    skcontrast.ContrastiveEmbedder : Has `lr`, `weight_decay` and `lr_schedule`.

    Examples
    --------
    >>> from skcontrast import ContrastiveEmbedder
    >>> from skcontrast.optimizers import Optimizer
    >>> Optimizer("adamw", betas=(0.9, 0.95))
    Optimizer(algorithm='adamw', betas=(0.9, 0.95))

    The learning rate of the encoder is a tenth of that of the projection head:

    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> slow_encoder = Optimizer(param_groups=[("encoder.*", {"lr": 1e-4})])
    >>> embedder = ContrastiveEmbedder(optimizer=slow_encoder, lr=1e-3, max_epochs=2)
    >>> embedder.fit_transform(X).shape
    (100, 128)

    ``set_params`` on an embedder converts the name of an optimizer to an object:

    >>> ContrastiveEmbedder(optimizer="sgd").set_params(optimizer__momentum=0.5).optimizer
    Optimizer(algorithm='sgd', momentum=0.5)
    """

    _parameter_constraints: ClassVar[dict] = {
        "algorithm": [StrOptions(set(ALGORITHMS)), type],
        "param_groups": [list, tuple, None],
    }

    def __init__(
        self,
        algorithm: Algorithm = "adam",
        *,
        param_groups: Sequence[tuple[str, Mapping[str, Any]]] | None = None,
        **options: Any,
    ):
        self.algorithm = algorithm
        self.param_groups = param_groups
        for name, value in options.items():
            setattr(self, name, value)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return all parameters by name, including options.

        Parameters
        ----------
        deep : bool, default=True
            Has no effect, since no parameter has nested parameters.

        Returns
        -------
        params : dict
        """
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def set_params(self, **params: Any) -> Self:
        """Set parameters, including new options.

        Parameters
        ----------
        **params : dict
            Parameters by name.

        Returns
        -------
        self : Optimizer

        Raises
        ------
        ValueError
            If the algorithm has no such option.
        """
        changed = type(self)(**{**self.get_params(), **params})
        changed._check_names(_options_in(params), changed.torch_class)
        self.__dict__.update(changed.__dict__)
        return self

    @property
    def torch_class(self) -> type[torch.optim.Optimizer]:
        """The class of ``torch.optim`` of the algorithm."""
        if isinstance(self.algorithm, str) and self.algorithm in ALGORITHMS:
            return ALGORITHMS[self.algorithm]
        if inspect.isclass(self.algorithm) and issubclass(self.algorithm, torch.optim.Optimizer):
            return self.algorithm
        raise InvalidParameterError(
            f"The 'optimizer' parameter must be one of {sorted(ALGORITHMS)}, a subclass of "
            f"torch.optim.Optimizer or a skcontrast.optimizers.Optimizer, got {self.algorithm!r}."
        )

    def validate(self) -> None:
        """Raise ValueError for an invalid algorithm, option or group."""
        if (torch_class := self.torch_class) is torch.optim.LBFGS:
            raise InvalidParameterError("LBFGS needs several losses per step: choose 'adam'.")
        self._check_names(_options_in(self.get_params()), torch_class)
        for group in self.param_groups or ():
            match group:
                case [str(pattern), Mapping() as options]:
                    self._check_names(options.keys() - {"lr", "weight_decay"}, torch_class)
                    for name in options.keys() & {"lr", "weight_decay"}:
                        check_argument(f"the group {pattern!r}", name, options[name], NON_NEGATIVE)
                case _:
                    raise InvalidParameterError(
                        f"param_groups must hold pairs of a pattern and a dict, got {group!r}."
                    )

    def _check_names(self, names: Iterable[str], torch_class: type[torch.optim.Optimizer]) -> None:
        """Raise ValueError if the algorithm has no such options."""
        # The first argument is the parameters.
        options = list(inspect.signature(torch_class).parameters)[1:]
        valid = [name for name in options if name not in ("lr", "weight_decay")]
        for name in names:
            if name not in valid:
                raise InvalidParameterError(
                    f"{torch_class.__name__} has no option {name!r}, only {', '.join(valid)}; lr "
                    "and weight_decay are parameters of the embedder and of groups."
                )

    def build(
        self, named_parameters: Iterable[_Named], lr: float, weight_decay: float
    ) -> torch.optim.Optimizer:
        """Return an optimizer of ``torch.optim``.

        Parameters
        ----------
        named_parameters : iterable of (str, torch.nn.Parameter)
            The trained parameters, by the names that patterns match.
        lr, weight_decay : float
            Defaults of groups that do not set them.

        Returns
        -------
        optimizer : torch.optim.Optimizer
            Its first group has the parameters that no pattern matches, if there are any.
        """
        torch_class = self.torch_class
        options = {"lr": lr, "weight_decay": weight_decay}
        set_options = _options_in(self.get_params())
        if torch_class is torch.optim.SGD:
            options["momentum"] = 0.9
        if not _IMPLEMENTATIONS & set_options.keys():
            options["fused"] = True
        accepted = inspect.signature(torch_class).parameters
        defaults = {name: value for name, value in options.items() if name in accepted}
        return torch_class(self._groups(named_parameters), **{**defaults, **set_options})

    def _groups(self, named_parameters: Iterable[_Named]) -> list[dict[str, Any]]:
        """Return groups of parameters with their options; first the parameters without a group."""
        remaining, groups = list(named_parameters), []
        names = [name for name, _ in remaining]
        for pattern, options in self.param_groups or ():
            if not (members := [p for name, p in remaining if fnmatchcase(name, pattern)]):
                raise InvalidParameterError(
                    f"The pattern {pattern!r} in param_groups matches no parameter outside the "
                    f"groups before it. The names are {', '.join(names)}."
                )
            remaining = [(name, p) for name, p in remaining if not fnmatchcase(name, pattern)]
            groups.append({"params": members, **options})
        return ([{"params": [p for _, p in remaining]}] if remaining else []) + groups


def as_optimizer(value: Any) -> Optimizer:
    """Return the `optimizer` parameter of an embedder as an Optimizer.

    Parameters
    ----------
    value : Optimizer, str or type
        The name or the class of an algorithm, or an Optimizer.
    """
    return value if isinstance(value, Optimizer) else Optimizer(value)


def _options_in(params: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters that are options of the algorithm."""
    return {name: params[name] for name in params if name not in ("algorithm", "param_groups")}
