"""Base class of encoders, and construction of the module of the ``encoder`` parameter."""

import copy
import inspect
import math
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedBuffer, is_lazy

from .._checks import POSITIVE_INT, Numbers, ParameterObject, validate_parameters
from .._checks._arguments import check_argument, check_component, check_rows
from .._checks._names import belongs_to_package, choices_instead
from .._layers._images import PatchLayer
from .._runtime import guarded, seeded_rng
from ..kinds._base import Kind, with_scaler
from ..kinds._recognise import KindName, check_fits, declared_kind, kind_of_shape, read_samples

# Widths of one layer or more.
LAYER_WIDTHS = Numbers(POSITIVE_INT[0], min_length=1)
KindOrName: TypeAlias = Kind | KindName


def is_pretrained(encoder: Any) -> bool:
    """Return whether the parameter `encoder` is a pretrained network, or a list with one."""
    encoders = encoder if isinstance(encoder, (list, tuple)) else [encoder]
    return any(getattr(item, "adapts", False) for item in encoders)


class Encoder(ParameterObject):
    """Base class of the encoders: hyperparameters of a module that is built in ``fit``.

    A subclass takes its hyperparameters in ``__init__``, may state their ranges in
    ``_parameter_constraints``, and implements :meth:`build`, which gets the shape of the samples.

    Attributes
    ----------
    kind : {"vectors", "series", "images", "graphs"}, Kind or a tuple of these, default=None
        The data that it encodes, see :class:`skcontrast.kinds.Kind`; with None,
        `build` validates the shape. If it is a custom kind, the embedder reads X as that kind.
    relative_rate : float, default=1.0
        Learning rate of the network, relative to that of the projection head, unless the optimizer
        has groups of parameters.
    largest_side : int, default=None
        Images of more pixels than a square of this side are reduced to its area before
        augmentation and before the network, but the shorter side to no less than half of this.
        None does not resize.

    See Also
    --------
    Pretrained, MLP, ConvNet, PatchNet, ResNet, SeriesNet, GIN : The encoders of the package.
    skcontrast.kinds.Kind : A kind of data.

    Examples
    --------
    A custom encoder. It combines with all losses, similarities and frameworks, and a
    search reaches its parameters, such as ``encoder__width``:

    >>> import numpy as np
    >>> from torch import nn
    >>> from skcontrast import ContrastiveEmbedder
    >>> from skcontrast.encoders import Encoder
    >>> class OneLayer(Encoder):
    ...     kind = "vectors"
    ...
    ...     def __init__(self, width=32):
    ...         self.width = width
    ...
    ...     def build(self, sample_shape, n_components=None):
    ...         width = n_components or self.width
    ...         return nn.Sequential(nn.Linear(sample_shape[0], width), nn.ReLU())
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> embedder = ContrastiveEmbedder(OneLayer(), max_epochs=2, random_state=0)
    >>> embedder.set_params(encoder__width=16).fit_transform(X).shape
    (100, 16)
    """

    kind: ClassVar[KindOrName | tuple[KindOrName, ...] | None] = None
    largest_side: ClassVar[int | None] = None
    relative_rate: ClassVar[float] = 1.0
    # Whether `fit` decides if the module is trained, as for Pretrained.
    adapts: ClassVar[bool] = False
    # Whether the module runs in channels-last memory format.
    _channels_last: ClassVar[bool] = False

    def build(self, sample_shape: tuple, n_components: int | None = None) -> nn.Module:
        """Return a new module for samples of shape `sample_shape`.

        The weights are drawn from torch's global random state. A copy of the module is trained.

        Parameters
        ----------
        sample_shape : tuple of int
            Shape of one sample: ``(n_features,)``, ``(channels, height, width)``, for series
            ``(channels, None)`` or, for graphs, ``(None, n_node_features)``.
        n_components : int or None, default=None
            Width of the representation; None leaves the choice to the encoder.

        Returns
        -------
        module : torch.nn.Module
            Maps a float32 batch ``(n, *sample_shape)`` to a batch (n, n_components).

        Raises
        ------
        ValueError
            If a hyperparameter is outside its range, or the encoder is not for samples of this
            shape.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement build.")

    def learn(self, module: nn.Module, batch: Any, rng: np.random.RandomState) -> None:
        """Learn parts of a network without gradients, such as a patch dictionary.

        Called once, before the training; by default it does nothing. It returns None.

        Parameters
        ----------
        module : torch.nn.Module
            A copy of the output of :meth:`build`, before training; changed in place.
        batch : Tensor of shape (n, ...) or any other batch
            At most 2,000 training samples, in the form of the input of the module.
        rng : RandomState
            Source of randomness.
        """

    def defaults(self, n_batches: int, sides: Sequence[int] | None = None) -> tuple[float, int]:
        """Return the default learning rate and number of epochs.

        They are used for ``lr="auto"`` and ``max_epochs="auto"`` of the embedder; with several
        encoders, the minimum.

        Parameters
        ----------
        n_batches : int
            Steps per epoch.
        sides : sequence of int, default=None
            Height and width of images; None for other samples.

        Returns
        -------
        lr : float
            By default .001.
        n_epochs : int
            By default those of 4,000 steps, at least 5 and at most 100; but at least 800 steps,
            in at most 400 epochs.
        """
        return 1e-3, default_epochs(n_batches)


def epochs_of(n_steps: int, n_batches: int, fewest: int = 5, most: int = 100) -> int:
    """Return the number of epochs with about `n_steps` steps."""
    return min(max(math.ceil(n_steps / n_batches), fewest), most)


def default_epochs(n_batches: int, most: int = 400) -> int:
    """Return the epochs of 4,000 steps, 5 to 100; but of at least 800 steps, in at most `most`."""
    return max(epochs_of(4_000, n_batches), epochs_of(800, n_batches, fewest=1, most=most))


def check_build(encoder: Encoder, sample_shape: tuple, n_components: int | None) -> None:
    """Raise ValueError unless an encoder can be built for samples of this shape.

    Parameters
    ----------
    encoder : Encoder
        Its parameters are validated, too.
    sample_shape : tuple of int
        Shape of a sample in a batch.
    n_components : int or None
        Width of the representation.
    """
    validate_parameters(encoder)
    owner = f"{type(encoder).__name__}.build"
    check_argument(owner, "n_components", n_components, [*POSITIVE_INT, None])
    _check_kind(encoder, tuple(sample_shape))


def _check_kind(encoder: Encoder, sample_shape: tuple, kind: Kind | None = None) -> None:
    """Raise ValueError if an encoder declares another kind of samples."""

    def fits(declared: Kind) -> bool:
        if isinstance(kind, type(declared)):
            return True
        is_as_in_a_batch = declared.image_shape(sample_shape) in (None, sample_shape)
        return declared.describes(sample_shape) and is_as_in_a_batch

    check_fits(encoder, encoder.kind, fits, f"got samples of shape {sample_shape}")


def init_kaiming(module: Any, nonlinearity: Literal["linear", "relu", "tanh"] = "relu") -> Any:
    """Draw the weights of a linear or convolutional layer, set its bias to zero, and return it.

    .. math:: W \\sim N(0, g^2 / n)

    with g the gain of the non-linearity, and n the fan-out of a convolution (which keeps the
    variance of the gradient) or the fan-in of a linear layer (which keeps the variance of the
    activation) [1]_.

    References
    ----------
    .. [1] K. He, X. Zhang, S. Ren, J. Sun, "Delving Deep into Rectifiers", 2015.
    """
    mode: Literal["fan_in", "fan_out"] = "fan_out" if isinstance(module, nn.Conv2d) else "fan_in"
    nn.init.kaiming_normal_(module.weight, mode=mode, nonlinearity=nonlinearity)
    if module.bias is not None:
        nn.init.zeros_(module.bias)
    return module


def last_layer(width: int, n_components: int | None) -> nn.Module:
    """Return the last linear layer of a network; the identity for None."""
    if n_components is None:
        return nn.Identity()
    return init_kaiming(nn.Linear(width, n_components), "linear")


def build_encoder(
    encoder: Any,
    sample_shape: tuple,
    n_components: int | None = None,
    *,
    kind: Kind | None = None,
    example: Any = None,
    owner: str = "ContrastiveEmbedder",
) -> tuple[nn.Module, int]:
    """Return the module that `encoder` describes, and the width of its output.

    Parameters
    ----------
    encoder : Encoder, torch.nn.Module or callable
        An encoder object is built. A module is copied. A callable is called with `sample_shape`,
        and the module that it returns is copied.
    sample_shape : tuple of int
        Shape of one sample: ``(n_features,)``, ``(channels, height, width)``, or, for graphs,
        ``(None, n_node_features)``.
    n_components : int or None, default=None
        Width of the representation that was requested.
    kind : Kind, default=None
        The kind of the samples; None detects it from their shape.
    example : Tensor of shape (2, ...) or any other batch, default=None
        A batch to validate the encoder; None is a batch of zeros.
    owner : str, default="ContrastiveEmbedder"
        The name of the class, for messages.

    Returns
    -------
    module : torch.nn.Module
        On the CPU; does not share memory with `encoder`.
    width : int
        The width of its output.

    Raises
    ------
    TypeError
        If `encoder` is a class or another object without a module, was compiled by torch.jit,
        or has weights that are not in float32.
    ValueError
        If the module fails on samples of this shape, does not return a floating tensor of shape
        (n, width), or its width differs from `n_components`.

    Examples
    --------
    >>> from skcontrast.encoders import ConvNet
    >>> from skcontrast.encoders._base import build_encoder
    >>> module, width = build_encoder(ConvNet(), (1, 8, 8))
    >>> width
    128
    """
    sample_shape = tuple(size if size is None else int(size) for size in sample_shape)
    if kind is not None and isinstance(encoder, Encoder):
        _check_kind(encoder, sample_shape, kind)
    kind = kind_of_shape(sample_shape) if kind is None else kind
    name, module = _resolve(encoder, sample_shape, n_components, owner)
    _check_float32_module(module, name)
    module = kind.adapt(module.to("cpu"))
    batch = kind.example_batch(sample_shape) if example is None else example
    output = apply_to(module, batch, f"The encoder {name}", f"{kind.name} of shape {sample_shape}")
    width, is_trained = output.shape[1], any(p.requires_grad for p in module.parameters())
    if is_trained != output.requires_grad:
        problem = "does not hold parameters that it uses: put lists of layers in nn.ModuleList"
        if is_trained:
            problem = "has no gradient: leave out detach and no_grad, or freeze its parameters"
        raise ValueError(f"The encoder {name} {problem}.")
    if n_components is not None and width != n_components:
        raise ValueError(
            f"n_components={n_components}, but the encoder {name} returns {width} components. "
            f"Pass n_components={width} or None, or change the encoder's last layer."
        )
    return module, width


def to_channels_last(encoder: Any, module: Any, kind: Kind, sample_shape: tuple) -> bool:
    """Convert a module to channels-last memory format, if the encoder supports it.

    Convolutions are faster in it, also on CPUs. Returns whether the input should have this
    format, too: averages over three channels, as in a patch dictionary, are slower in it.
    """
    is_image = kind.image_shape(sample_shape) is not None
    if not is_image or not getattr(encoder, "_channels_last", False):
        return False
    module.to(memory_format=torch.channels_last)
    return not any(isinstance(layer, PatchLayer) for layer in module.modules())


def _resolve(
    encoder: Any, sample_shape: tuple, n_components: int | None, owner: str
) -> tuple[str, nn.Module]:
    """Return the name of `encoder`, for messages, and the module that it describes."""
    for base in (Encoder, nn.Module):
        if inspect.isclass(encoder) and issubclass(encoder, base):
            check_component(encoder, base, owner, "encoder")
    name = getattr(encoder, "__name__", type(encoder).__name__)
    if isinstance(encoder, Encoder):
        module = require_module(encoder.build(sample_shape, n_components), f"{name}.build")
        return name, module if belongs_to_package(type(encoder)) else _deep_copy(module)
    if isinstance(encoder, nn.Module):
        return name, _deep_copy(encoder)
    if callable(encoder) and not inspect.isclass(encoder):
        module = require_module(encoder(sample_shape), f"The callable encoder {name}")
        return name, _deep_copy(module)
    raise TypeError(
        f"The 'encoder' parameter of {owner} must be None, an encoder of skcontrast.encoders, "
        "an instance of torch.nn.Module or a callable that returns one, got "
        f"{encoder!r} of type {type(encoder).__name__}."
        f"{choices_instead(encoder, Encoder, 'encoder') if isinstance(encoder, str) else ''}"
    )


def _check_float32_module(module: nn.Module, name: str) -> None:
    """Raise TypeError for a network compiled by torch.jit, or with weights not in float32."""
    if any(isinstance(part, torch.jit.ScriptModule) for part in module.modules()):
        raise TypeError(f"The encoder {name} was compiled by torch.jit: pass the original module.")
    dtypes = {p.dtype for p in module.parameters() if p.is_floating_point()}
    for dtype in dtypes - {torch.float32}:
        raise TypeError(
            f"The encoder {name} has weights in {str(dtype).removeprefix('torch.')}: pass it "
            "after .float(), with precision='bf16' for mixed precision."
        )


def _deep_copy(module: nn.Module) -> nn.Module:
    """Return a deep copy; torch does not copy lazy buffers."""
    lazy = [buffer for buffer in module.buffers() if is_lazy(buffer)]
    new: Any = UninitializedBuffer  # whose annotations lack the dtype
    return copy.deepcopy(module, {id(buffer): new(dtype=buffer.dtype) for buffer in lazy})


def require_module(module: Any, source: str) -> nn.Module:
    """Return `module`, or raise TypeError if `source` did not return a module."""
    if not isinstance(module, nn.Module):
        raise TypeError(f"{source} must return a torch.nn.Module, got {module!r}.")
    return module


def apply_to(module: nn.Module, batch: Any, owner: str, samples: str) -> Tensor:
    """Return the validated output of a module in eval mode for a batch.

    Modes and the random state are restored, except that lazy layers draw their weights here.
    """
    training = {child: child.training for child in module.modules()}
    lazy = any(is_lazy(parameter) for parameter in module.parameters())
    module.eval()
    try:
        with torch.random.fork_rng(devices=[], enabled=not lazy), torch.enable_grad():
            rows = module(batch)
    except Exception as error:
        is_flat = "mat1 and mat2 shapes" in str(error) and getattr(batch, "ndim", 2) > 2
        hint = ". Put torch.nn.Flatten() before it" if is_flat else ""
        raise ValueError(f"{owner} failed on {samples}: {error}{hint}") from error
    finally:
        for child, mode in training.items():
            child.training = mode
    return check_rows(owner, rows, len(batch), samples)


# Samples that are encoded together and alone.
_N_SAMPLES = 8


@guarded()
def check_encoder(encoder: Any, X: Any, kind: Kind | None = None) -> None:
    """Check that a custom encoder treats samples independently, and that all parameters train.

    Call this in a test of your class. ``fit`` only checks the type and the shape of the output
    of the module.

    Parameters
    ----------
    encoder : Encoder, torch.nn.Module or callable
        As the parameter `encoder` of :class:`skcontrast.ContrastiveEmbedder`. Not modified.
    X : array-like of shape (n_samples, ...)
        Samples that differ from each other, such as the first 100 of a data set.
    kind : Kind, default=None
        The kind of the samples. None takes the kind of the encoder, or detects it.

    Raises
    ------
    TypeError, ValueError
        If the encoder cannot be built for such samples; if the row of a sample depends, in
        inference, on the other samples, on padding or on random numbers; or if trainable
        parameters get no gradient.

    See Also
    --------
    skcontrast.kinds.check_kind : Checks how a custom kind reads samples.
    skcontrast.augmentation.check_augmentation : The same for an augmentation.

    Examples
    --------
    >>> import numpy as np
    >>> from torch import nn
    >>> from skcontrast.encoders import check_encoder
    >>> class Centred(nn.Linear):
    ...     def forward(self, x):
    ...         return super().forward(x - x.mean(0))
    >>> X = np.random.default_rng(0).normal(size=(20, 5))
    >>> check_encoder(nn.Linear(5, 8), X)
    >>> check_encoder(Centred(5, 8), X)
    Traceback (most recent call last):
    ...
    ValueError: The encoder Centred must be deterministic, treat samples independently in...
    """
    estimator = encoder if isinstance(encoder, Encoder) else Encoder()
    hint = declared_kind(encoder)
    X, schema = read_samples(X, kind, hint=hint, estimator=estimator, min_samples=2)
    kind, cpu = schema.kind, torch.device("cpu")
    with seeded_rng(0, cpu):
        array, scaler, batch = with_scaler(kind, X)
        layer = kind.first_layer(batch, scaler, channels_last=False) or nn.Identity()
        few = array[np.unique(np.linspace(0, len(array) - 1, _N_SAMPLES, dtype=int))]
        samples, shape = scaler.to_tensor(few, cpu), kind.encoded_shape(tuple(batch.shape[1:]))
        example = layer(samples)
        owner = "check_encoder"
        module, _ = build_encoder(encoder, shape, kind=kind, example=example, owner=owner)
        if isinstance(encoder, Encoder):
            encoder.learn(module, layer(batch), np.random.RandomState(0))
        rows = module.eval()(example)
        alone = [module(layer(scaler.to_tensor(few[k : k + 1], cpu))) for k in range(len(few))]
    name = getattr(encoder, "__name__", type(encoder).__name__)
    slack = 1e-4 * float(rows.detach().nan_to_num().abs().max())
    if not torch.allclose(rows, torch.cat(alone), rtol=1e-3, atol=slack, equal_nan=True):
        raise ValueError(
            f"The encoder {name} must be deterministic, treat samples independently in eval mode "
            "and ignore padding, such as by a mask in a skcontrast.kinds.TensorBatch."
        )
    if not (trained := {key: p for key, p in module.named_parameters() if p.requires_grad}):
        return
    slopes = torch.autograd.grad(rows.sum(), list(trained.values()), allow_unused=True)
    if idle := [key for key, slope in zip(trained, slopes, strict=True) if slope is None]:
        raise ValueError(
            f"The encoder {name} has parameters that get no gradient, {', '.join(idle)}: leave "
            "out detach and no_grad, or freeze them by requires_grad_(False)."
        )
