"""FunctionAugmentation: a function or module as an augmentation."""

import copy
import inspect
from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .._checks import parameter
from .._runtime import guarded, seeded_everywhere
from ..kinds._base import Kind
from ..kinds._recognise import is_custom, named_kinds
from ._base import Augmentation, as_float, check_view_values, generator_for


class FunctionAugmentation(Augmentation):
    """An augmentation that calls a function of kornia, torchvision, albumentations or your own.

    The function receives samples and returns a changed copy, of the same shape. If it draws from
    the global generators of torch, numpy or Python's ``random``, the `random_state` of the
    embedder determines the views, and the state of the generators is the same afterwards. A
    function with its own generators cannot be seeded from outside; it takes a parameter named
    `generator`, `rng` or `seed` instead, see Notes.

    Parameters
    ----------
    func : callable
        Draws one view of each sample, a function or a ``torch.nn.Module``. To save a fitted
        embedder, it must be importable, as a ``lambda`` is not.
    per_sample : bool, default=False
        Whether `func` is called with one sample at a time instead of a batch. Pass True for
        functions that draw the same random numbers for a whole batch, such as most transforms of
        torchvision and albumentations.
    kind : {"vectors", "series", "images", "graphs"}, Kind or None, default=None
        The data that `func` takes, see :class:`skcontrast.kinds.Kind`; None is for vectors, images
        and the custom kind of an embedder. Graphs and samples of a custom kind are passed in
        batches, unchanged.
    backend : {"torch", "numpy"}, default="torch"
        The type of its samples: a tensor on the device of the training, images as
        (n, channels, height, width), or an ndarray, images as (n, height, width, channels). A
        single sample lacks the first axis.
    kw_args : dict, default=None
        Keyword arguments of `func`, as in scikit-learn's ``FunctionTransformer``.

    See Also
    --------
    Augmentation : To write an augmentation that has parameters.

    Notes
    -----
    The values are float32, those of images in [0, 1], those of vectors in the units of X. The
    function gets a copy, so it may work in place. It may return a tensor or an ndarray; integers
    become floats, and images in uint8 are divided by 255. With ``backend="numpy"``, a grey image
    may lack its channel axis. No gradient is computed.

    A parameter of `func` with one of these names receives new random numbers in each call:
    `generator`, a ``torch.Generator`` on the device of the training; `rng`, a
    ``numpy.random.Generator``; `seed`, an int in [0, 2³²).

    Examples
    --------
    A function of a batch, which draws from torch's global generator:

    >>> import numpy as np, torch
    >>> from skcontrast import ContrastiveEmbedder
    >>> from skcontrast.augmentation import FunctionAugmentation
    >>> def rescale(x, spread):
    ...     return x * (1 + spread * torch.randn(len(x), 1))
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> augmentation = FunctionAugmentation(rescale, kind="vectors", kw_args={"spread": 0.2})
    >>> embedder = ContrastiveEmbedder(augmentation=augmentation, max_epochs=2, random_state=0)
    >>> embedder.fit_transform(X).shape
    (60, 128)

    A function of one image of numpy, which receives a generator:

    >>> def shift(image, rng):
    ...     return np.roll(image, rng.integers(-2, 3), axis=1)
    >>> augmentation = FunctionAugmentation(shift, per_sample=True, backend="numpy", kind="images")
    >>> augmentation.augment(torch.rand(4, 3, 8, 8)).shape
    torch.Size([4, 3, 8, 8])
    """

    func: Callable[..., Any] = parameter([callable])
    per_sample: bool = parameter(["boolean"], default=False)
    # checked with the kind of X, with a better message
    kind: str | Kind | None = parameter(default=None)  # type: ignore[misc]
    backend: str = parameter({"torch", "numpy"}, default="torch")
    kw_args: dict[str, Any] | None = parameter([dict, None], default=None)

    @guarded(gradients=False)
    @torch.no_grad()
    def augment(self, batch: Any, generator: torch.Generator | None = None) -> Any:
        """Call the function; see the base class.

        Parameters
        ----------
        batch : Tensor of shape (n, ...), GraphBatch, or a batch of a custom kind
            Vectors in the units of X; images as uint8 or as floats in [0, 1]. Not modified.
        generator : torch.Generator, default=None
            Seeds all generators of the function; None draws an unpredictable view.

        Returns
        -------
        views : Tensor of shape (n, ...), or a batch of the same type
            One view per sample.

        Raises
        ------
        TypeError
            If the function returns neither a tensor nor an ndarray.
        ValueError
            If its output has a different shape or is not finite.
        """
        generator = generator_for(batch, generator)
        seed = int(torch.randint(2**32, (), generator=generator, device=generator.device))
        if not self._takes_numbers:
            with seeded_everywhere(seed, batch.device):
                return self._caller(batch.device, seed)(batch)
        batch = as_float(batch)
        views = self._views(batch, seed)
        check_view_values(views, batch, self._name)
        return views

    def validate(self) -> None:
        """Raise an error for a class, and for options that the kind does not allow."""
        if inspect.isclass(self.func):
            raise TypeError(f"func must be a function or instance: write {self.func.__name__}().")
        if not self._takes_numbers and (self.per_sample or self.backend != "torch"):
            raise ValueError(
                f"{self._name} of {self.kind!r} needs per_sample=False and backend='torch'."
            )

    @property
    def _takes_numbers(self) -> bool:
        """Whether batches are tensors of floats."""
        kinds = named_kinds(self.kind, owner=type(self).__name__)
        if self.kind is None and hasattr(self, "_schema"):
            kinds = [self._schema.kind]
        return all(kind.float_batches for kind in kinds)

    def check_kind(self, sample_shape: tuple, kind: Kind | None = None) -> None:
        """Raise ValueError if samples of this kind cannot be augmented; see the base class."""
        if kind is None or self.kind is not None or not is_custom(kind):
            super().check_kind(sample_shape, kind)

    def _caller(self, device: torch.device, seed: int) -> Callable[[Any], Any]:
        """Return a function of the samples only, with random numbers from the seed."""
        func, kw_args = self._function(device), dict(self.kw_args or {})
        rng = np.random.default_rng(seed)
        available: dict[str, Callable[[], Any]] = {
            "generator": lambda: torch.Generator(device).manual_seed(int(rng.integers(2**32))),
            "rng": lambda: rng,
            "seed": lambda: int(rng.integers(2**32)),
        }
        wanted = [name for name in available if name not in kw_args and name in _parameters(func)]
        return lambda x: func(x, **kw_args, **{name: available[name]() for name in wanted})

    def _views(self, batch: Tensor, seed: int) -> Tensor:
        """Return one view per sample, determined by the seed."""
        call, samples = self._caller(batch.device, seed), self._input(batch)
        with seeded_everywhere(seed, batch.device):
            if not self.per_sample:
                return self._read(call(samples), samples, batch)
            pairs = zip(samples, batch, strict=True)
            return torch.stack([self._read(call(x), x, like) for x, like in pairs])

    def _input(self, batch: Tensor) -> Any:
        """Return a copy of the batch in the format of the function."""
        if self.backend == "torch":
            return batch.clone()
        array = batch.cpu().numpy()
        return np.array(np.moveaxis(array, 1, -1) if array.ndim == 4 else array, order="C")

    def _read(self, view: Any, samples: Any, like: Tensor) -> Tensor:
        """Return the output of the function for `samples` as a tensor like the batch."""
        got, n_axes = type(view).__name__, like.ndim + self.per_sample
        is_channels_last = isinstance(view, np.ndarray) and self.backend == "numpy" and n_axes == 4
        expected = samples.shape if is_channels_last else like.shape
        if isinstance(view, np.ndarray):
            view = torch.from_numpy(np.array(view, order="C"))
        if not isinstance(view, Tensor):
            raise TypeError(f"{self._name} must return a tensor or an ndarray, got {got}.")
        # Libraries of images drop the axis of a single channel.
        if is_channels_last and view.ndim == like.ndim - 1 and expected[-1] == 1:
            view = view.unsqueeze(-1)
        if view.shape != expected:
            one_axis_less = tuple(view.shape) == tuple(expected[1:])
            raise ValueError(
                f"{self._name} must return {'a view' if self.per_sample else 'views'} of the "
                f"shape that it receives, {tuple(expected)}, got {tuple(view.shape)}."
                f"{' Pass per_sample=True if it takes one sample.' if one_axis_less else ''}"
            )
        view = (view.movedim(-1, -3) if is_channels_last else view).to(like.device)
        # Such libraries return uint8, but batches are in [0, 1].
        view = view / 255 if n_axes > 2 and view.dtype == torch.uint8 else view
        return view.to(like.dtype)

    def _function(self, device: torch.device) -> Callable[..., Any]:
        """Return the function; a module is copied to the device unless it is there."""
        func: Any = self.func
        tensors = chain(func.parameters(), func.buffers()) if isinstance(func, nn.Module) else ()
        is_here = all(tensor.device == device for tensor in tensors)
        return func if is_here else copy.deepcopy(func).to(device)

    @property
    def _name(self) -> str:
        func = getattr(self.func, "func", self.func)  # of a functools.partial
        return f"FunctionAugmentation({getattr(func, '__name__', type(func).__name__)})"


def _parameters(func: Callable[..., Any]) -> set[str]:
    """Return the names of the parameters of a function; none if they are unknown."""
    try:
        func = func.forward if isinstance(func, nn.Module) else func
        return set(inspect.signature(func).parameters)
    except (TypeError, ValueError):
        return set()
