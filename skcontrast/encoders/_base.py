"""What an encoder is: hyperparameters, built into a module when the shape of X is known."""

from __future__ import annotations

from torch import nn

from .._data._guess import named_kinds
from .._data._kinds import Kind
from .._parameters import ParameterObject


class Encoder(ParameterObject):
    """Base class of the encoders: hyperparameters that are built into a module in ``fit``.

    A subclass names its hyperparameters in ``__init__``, their ranges in
    ``_parameter_constraints``, and implements :meth:`build`.

    Attributes
    ----------
    kind : {"vectors", "images", "graphs"}, Kind or None
        What it encodes, see :class:`skcontrast.kinds.Kind`; None leaves that to `build`. Where it
        is a kind of your own, X need not be declared to be of that kind.
    """

    kind: str | Kind | tuple | None = None

    def build(self, sample_shape, n_components=None):
        """Return a new module for samples of shape `sample_shape`.

        The weights are drawn from torch's global random state.

        Parameters
        ----------
        sample_shape : tuple of int
            Shape of one sample: ``(n_features,)`` or ``(channels, height, width)``.
        n_components : int or None, default=None
            Width of the representation; None leaves the choice to the encoder.

        Returns
        -------
        module : torch.nn.Module
            Maps a float32 batch ``(n, *sample_shape)`` to a batch (n, n_components).

        Raises
        ------
        ValueError
            If a hyperparameter lies outside its range, or the encoder is not made for samples of
            this shape.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement build.")


def check_shape(encoder: Encoder, sample_shape: tuple) -> None:
    """Raise ValueError unless an encoder is for samples of such a shape, as in a batch."""
    own = named_kinds(encoder.kind, owner=type(encoder).__name__)
    for kind in own:
        is_as_in_a_batch = kind.image_shape(sample_shape) in (None, tuple(sample_shape))
        if kind.describes(sample_shape) and is_as_in_a_batch:
            return
    expected = " or ".join(kind.expected for kind in own)
    raise ValueError(
        f"{type(encoder).__name__} expects {expected}, got samples of shape {tuple(sample_shape)}."
    )


def init_kaiming(module, nonlinearity="relu"):
    """Draw the weights of a linear or convolutional layer, and set its bias to zero.

    .. math:: W \\sim N(0, g^2 / n)

    with g the gain of the non-linearity, and n the fan-out of a convolution (which keeps the
    gradient's variance) or the fan-in of a linear layer (which keeps the activation's) [1]_.

    References
    ----------
    .. [1] K. He, X. Zhang, S. Ren, J. Sun, "Delving Deep into Rectifiers", 2015.
    """
    mode = "fan_out" if isinstance(module, nn.Conv2d) else "fan_in"
    nn.init.kaiming_normal_(module.weight, mode=mode, nonlinearity=nonlinearity)
    if module.bias is not None:
        nn.init.zeros_(module.bias)
    return module
