"""The base class of the encoders: hyperparameters of a module that is built in ``fit``."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
from torch import nn

from .._checks import POSITIVE_INT, ParameterObject, check_argument, validate_parameters
from ..kinds._base import Kind
from ..kinds._recognise import KindName, named_kinds

KindOrName: TypeAlias = Kind | KindName


class Encoder(ParameterObject):
    """Base class of the encoders: hyperparameters of a module that is built in ``fit``.

    A subclass takes its hyperparameters in ``__init__``, may state their ranges in
    ``_parameter_constraints``, and implements :meth:`build`, which gets the shape of the samples.

    Attributes
    ----------
    kind : {"vectors", "series", "images", "graphs"}, Kind or a tuple of these, default=None
        The data that it encodes, see :class:`skcontrast.kinds.Kind`; None leaves the check to
        `build`. If it is a custom kind, the embedder reads X as that kind.
    relative_rate : float, default=1.0
        Learning rate of the network, relative to that of the projection head, where the optimizer
        has no groups of parameters.
    largest_side : int, default=None
        Images of more pixels than a square of this side are reduced to as many, before their views
        are drawn and before the network; None leaves them as they are.
    n_steps : int, default=None
        About how many steps ``max_epochs="auto"`` gives; None is 4,000.

    See Also
    --------
    Pretrained, Wide, MLP, ConvNet, PatchNet, ResNet, SeriesNet, GIN : Those of the package.
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

    kind: KindOrName | tuple[KindOrName, ...] | None = None
    largest_side: int | None = None
    relative_rate: float = 1.0
    n_steps: int | None = None

    def build(self, sample_shape: tuple, n_components: int | None = None) -> nn.Module:
        """Return a new module for samples of shape `sample_shape`.

        The weights are drawn from torch's global random state.

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
        """Set from training samples what gradients do not train, such as a dictionary of patches.

        Called once, before the training; by default it does nothing.

        Parameters
        ----------
        module : torch.nn.Module
            What :meth:`build` returned; changed in place.
        batch : Tensor of shape (n, ...) or any other batch
            Training samples, at most 2,000 of them, as the module will get them.
        rng : RandomState
            Source of randomness.
        """


def check_build(encoder: Encoder, sample_shape: tuple, n_components: int | None) -> None:
    """Raise ValueError unless an encoder can be built for samples of this shape.

    Parameters
    ----------
    encoder : Encoder
        Its parameters are checked too.
    sample_shape : tuple of int
        Shape of a sample in a batch.
    n_components : int or None
        Width of the representation.
    """
    validate_parameters(encoder)
    owner = f"{type(encoder).__name__}.build"
    check_argument(owner, "sample_shape", sample_shape, [tuple, list])
    check_argument(owner, "n_components", n_components, [*POSITIVE_INT, None])
    sizes = list(sample_shape)
    if len(sizes) in (2, 3) and sizes[0] is None:
        # Graphs without edges and attributes have no features of nodes: they get a constant.
        sizes = [1 if size == 0 else size for size in sizes[1:]]
    sizes = [size for size in sizes if size is not None]  # series have any length
    if not sizes or not all(map(POSITIVE_INT[0].is_satisfied_by, sizes)):
        raise ValueError(f"sample_shape must hold ints of at least 1, got {sample_shape!r}.")
    own = named_kinds(encoder.kind, owner=type(encoder).__name__)
    for kind in own:
        is_as_in_a_batch = kind.image_shape(sample_shape) in (None, tuple(sample_shape))
        if kind.describes(sample_shape) and is_as_in_a_batch:
            return
    expected = " or ".join(kind.expected for kind in own)
    raise ValueError(
        f"{type(encoder).__name__} expects {expected}, got samples of shape {tuple(sample_shape)}."
    )


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
