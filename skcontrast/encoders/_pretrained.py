"""Pretrained image networks as encoders: preprocessing, output and adaptation."""

import copy
import math
from collections.abc import Sequence
from functools import lru_cache, partial
from numbers import Real
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from .._checks import POSITIVE, POSITIVE_INT, Interval, Numbers, parameter
from .._checks._arguments import check_rows
from .._warnings import warn
from ..kinds import Images
from ._base import Encoder, check_build, epochs_of, last_layer
from ._pretrained_network import (
    Preprocessing,
    PretrainedNetwork,
    declared_size,
    patch_of,
    remove_head,
    with_any_size,
)

# Pixels outside [0, 1] by more than this are standardised or in another unit.
_TOLERANCE = 0.01
# If the brightest pixel is darker, X was probably divided by 255 twice.
_DARKEST = 3.5 / 255
# Bounds of the sides of resized images: in smaller images, networks have too few cells or patches.
_LEAST_SIDE, _LEAST_PATCHES, _MOST_SIDE, _MOST_TOKENS = 96, 6, 224, 256
_FINITE = Interval(Real, None, None, closed="neither")
# Defaults of the image processors of transformers.
_PROCESSOR_DEFAULTS = {
    "do_rescale": True, "rescale_factor": 1 / 255, "rescale_offset": False, "offset": False,
    "do_normalize": True, "include_top": False, "do_flip_channel_order": False,
}  # fmt: skip


class Pretrained(Encoder):
    """A pretrained image network, adapted to the images of `fit`.

    The network receives (x − `mean`) / `std`, with intensities x in [0, 1]. Grey images become
    three equal channels. A classification head is removed. The network has its own learning rate.
    Its first layers stay frozen. It remains in inference mode, so that batch normalisation keeps
    the statistics of the pretraining. If it is adapted, the features are the sum of the outputs of
    the trained network and of a frozen copy, each divided by its root mean square.

    With ``verbose=1`` the embedder prints the preprocessing, the head that was removed and the
    number of features.

    Parameters
    ----------
    network : torch.nn.Module or str
        A network that maps float images (n, 3, height, width) to (n, width), to maps
        (n, width, rows, columns), to tokens (n, tokens, width), or to an output object of
        transformers. It is copied, never changed. A string is a name in timm, such as
        ``"resnet18.tv_in1k"`` or ``"local-dir:/folder"``. `fit` loads the weights, once per
        process.
    mean, std : float or tuple of float, default=None
        Mean and standard deviation of the intensities in [0, 1] on which the network was trained,
        one number or one per channel. None reads them from `processor`, or from a network of timm.
    size : int or (int, int), default=None
        Height and width to which images are resized (bilinear, antialiased if they shrink). None
        depends on the images. A frozen network gets them with 96 to 224 pixels on the shorter
        side; enlarging stops where the longer side has 224. A trained network gets an area of at
        most 96 × 96 pixels, and in training its frozen copy gets the same. Transformers get whole
        patches, usually at least 6 × 6, and at most 256. A network that takes only one size gets
        this size; ``set_input_size`` of some networks of timm, such as Swin, changes it.
    pool : {"token", "mean", "both"}, default=None
        Output of a transformer: the class token, the mean of the patches, or both. None is the
        output of the network, and for DINOv3 the class token.
    processor : object, default=None
        Provides the mean and the std: an image processor of transformers, or the transforms of
        torchvision's weights, of timm or of open_clip.
    adapt : bool or "auto", default="auto"
        Whether `fit` trains the network. False leaves it frozen: `transform` returns its features,
        and `fit` takes seconds. "auto" decides by the distance of 300 images to those of the
        pretraining, of which batch normalisation has the mean and the variance: the network is
        trained if this distance is at least 0.113. Without it, at most 75 % of the views of
        300 images must be retrieved, that is, nearest to the other view of the same image, and
        the participation ratio must be at most 9, see :ref:`when-to-adapt`. Every network is
        trained if the loss needs labels, and with groups that are not "neutral". `adaptation_` of
        the embedder has the decision and its reason. The linear layer of `n_components` is always
        trained.
    rate : float, default=None
        Learning rate of the network, relative to that of the projection head. None is 0.2 for
        networks with batch normalisation and 0.05 for others, such as transformers.
    frozen : float, default=0.33
        Share of the network's parameter tensors, the first ones, that are not trained; in [0, 1).
        Tensors with ``requires_grad=False`` are not trained either, unless all of them have it.

    Raises
    ------
    ValueError
        In `fit`: if mean and std are unknown, pixels are outside [0, 1], the number of channels
        is not that of the network, or the network does not return one row per image.
    TypeError
        In `fit`: if the network was compiled by torch.jit.

    See Also
    --------
    skcontrast.features.Frozen : The network's output without training, as a transformer.

    Notes
    -----
    Networks of timm remove their classifier themselves. Of other networks, the last linear or
    convolutional layer of ``fc``, ``_fc``, ``classifier``, ``head``, ``heads`` or ``last_linear``
    is removed. ``torch.nn.Sequential(network)`` keeps it. If the head has another name, replace
    it by ``torch.nn.Identity()`` first.

    Maps and tokens are averaged. From an output object of transformers, the pooled output is
    taken; if the pooler has a dense layer, which may be untrained, the class token. If a network
    returns a dict or a tuple, pass a module whose ``forward`` returns one tensor. Batch
    normalisation with ``track_running_stats=False`` makes features depend on the other images.

    With EfficientNet-lite0 at 96 pixels, freezing the first third saves 40 % of the time of a fit,
    and the memory of the largest maps. ``frozen=0.66`` saves 20 % of the rest.

    Large batches are encoded in chunks of at most 256 images of 98 pixels, or 49 of 224 pixels;
    on a GPU, four times as many. The activations of all chunks except the last are recomputed
    for the gradient, which bounds memory.

    References
    ----------
    .. [1] C. J. Reed et al., "Self-Supervised Pretraining Improves Self-Supervised Pretraining",
       WACV 2022.

    Examples
    --------
    With a small network instead of a pretrained one:

    >>> import numpy as np
    >>> from torch import nn
    >>> from skcontrast import ContrastiveEmbedder
    >>> from skcontrast.encoders import Pretrained
    >>> network = nn.Sequential(nn.Conv2d(3, 8, 3, 2), nn.ReLU(), nn.Conv2d(8, 16, 3, 2))
    >>> X = np.random.default_rng(0).integers(0, 256, size=(40, 3, 32, 32)).astype(np.uint8)
    >>> encoder = Pretrained(network, mean=0.5, std=0.5)
    >>> ContrastiveEmbedder(encoder, max_epochs=1, random_state=0).fit_transform(X).shape
    (40, 16)
    """

    kind = Images(size=224, standardize=False)
    adapts = True
    network: nn.Module | str = parameter([nn.Module, str])
    mean: float | Sequence[float] | None = parameter(
        [_FINITE, Numbers(_FINITE, 1), None], default=None, kw_only=True
    )
    std: float | Sequence[float] | None = parameter(
        [*POSITIVE, Numbers(POSITIVE[0], 1), None], default=None, kw_only=True
    )
    size: int | Sequence[int] | None = parameter(
        [*POSITIVE_INT, Numbers(*POSITIVE_INT), None], default=None, kw_only=True
    )
    pool: Literal["token", "mean", "both"] | None = parameter(
        {"token", "mean", "both", None}, default=None, kw_only=True
    )
    processor: Any = parameter(default=None, kw_only=True)
    adapt: bool | Literal["auto"] = parameter(["boolean", {"auto"}], default="auto", kw_only=True)
    rate: float | None = parameter([*POSITIVE, None], default=None, kw_only=True)
    frozen: float = parameter([Interval(Real, 0, 1, closed="left")], default=0.33, kw_only=True)

    @property
    def relative_rate(self) -> float:  # type: ignore[override]
        """Learning rate of the network, relative to that of the projection head."""
        if self.rate is not None:
            return self.rate
        return 0.2 if any(map(has_statistics, self._source.modules())) else 0.05

    @property
    def _channels_last(self) -> bool:  # type: ignore[override]
        """Whether the network runs in channels-last format, as those of timm and torchvision."""
        return type(self._source).__module__.partition(".")[0] in ("timm", "torchvision")

    @property
    def _source(self) -> nn.Module:
        """The original network, loaded if `network` is a name."""
        return load_network(self.network) if isinstance(self.network, str) else self.network

    @torch.no_grad()
    def build(self, sample_shape: tuple, n_components: int | None = None) -> nn.Module:
        """Return a copy of the network with its preprocessing.

        Parameters
        ----------
        sample_shape : tuple of int
            ``(channels, height, width)``.
        n_components : int or None, default=None
            Width of a last linear layer, with weights drawn from torch's global random state.
            None omits this layer.

        Returns
        -------
        module : torch.nn.Module
            Maps a float32 batch (n, channels, height, width), in [0, 1], to (n, width).

        Raises
        ------
        ValueError
            If mean or std is unknown, the number of channels is not that of the network, or the
            network does not return one row per image.
        TypeError
            If the network was compiled by torch.jit.
        """
        check_build(self, sample_shape, n_components)
        network = with_any_size(copy.deepcopy(self._source).to("cpu", torch.float32))
        head = remove_head(network)
        module = PretrainedNetwork(self._preprocessing(network, sample_shape), network, self.pool)
        images = torch.zeros(2, *sample_shape, dtype=torch.float32, device="cpu")
        width = output_width(self, module, images)
        module.notes += [head, f"{width} features"]
        if n_components is None:
            return module
        return nn.Sequential(module, last_layer(width, n_components))

    def learn(self, module: nn.Module, batch: Tensor, rng: np.random.RandomState) -> None:
        """Raise ValueError for pixels that are not in [0, 1]."""
        low, high = float(batch.min()), float(batch.max())
        if low < -_TOLERANCE * max(high, 0) or high > 1 + _TOLERANCE:
            # Pixels of at most 7 bits, of 8 or of 16.
            advice = f"X / {high if high < 128 else 255 if high <= 255 else 65535:g}"
            if low < 0:
                advice = "images before their standardisation; for [-1, 1], (X + 1) / 2; for "
                advice += "several modalities, kind=Images(standardize=False)"
            raise ValueError(
                f"Pretrained expects intensities in [0, 1], got {low:.4g} to {high:.4g}: pass "
                f"uint8 images, or {advice}."
            )
        if 0 < high < _DARKEST:
            warn(
                f"The brightest pixel in X is {high:.2g}, but white must be 1. Check whether X "
                "was divided by 255 twice."
            )

    def defaults(self, n_batches: int, sides: Sequence[int] | None = None) -> tuple[float, int]:
        """Return a learning rate of .001, and epochs for about 40 steps."""
        # 6 epochs with 800 images. More epochs gain little and take minutes.
        return 1e-3, epochs_of(40, n_batches, fewest=1)

    def _preprocessing(self, network: nn.Module, sample_shape: tuple) -> Preprocessing:
        """Return the preprocessing: parameters, else those of the processor or of timm."""
        name, n_channels = type(network).__name__, sample_shape[0]
        layers = (layer for layer in network.modules() if isinstance(layer, nn.Conv2d))
        channels = next((layer.in_channels for layer in layers), 3)
        if n_channels not in (1, channels):
            raise ValueError(
                f"X has {n_channels} channels, but the network {name} takes {channels}: pass "
                f"images with 1 channel{f' or {channels}' * (channels > 1)}, or another network."
            )
        timm_config: Any = getattr(network, "pretrained_cfg", None) or {}
        source = SimpleNamespace(**timm_config) if self.processor is None else self.processor
        mean, std = _mean_and_std(source)
        if channels == 1 and mean is not None:  # as timm averages the weights of the channels
            mean, std = np.mean(mean), np.mean(std)
        mean = mean if self.mean is None else self.mean
        std = std if self.std is None else self.std
        if mean is None or std is None:
            raise ValueError(
                f"The network {name} of Pretrained needs mean= and std=, or processor=, got "
                f"{mean=}, {std=}. Most have mean=(0.485, 0.456, 0.406) and "
                "std=(0.229, 0.224, 0.225)."
            )
        fits = {np.size(mean), np.size(std)} <= {1, channels}
        if not fits or max(np.abs(mean).max(), np.max(std)) > 2:  # about 120 and 60 for 0 to 255
            raise ValueError(
                f"The mean and std of Pretrained must be one number or {channels}, one for each "
                f"channel, for intensities in [0, 1], got {mean!r} and {std!r}: if they are for "
                "pixels from 0 to 255, divide them by 255."
            )
        mean, std = (np.resize(values, channels) for values in (mean, std))
        size, _ = image_sizes(self, network, sample_shape[-2:])
        return Preprocessing(mean, std, size, patch_of(network))


def has_statistics(layer: nn.Module) -> bool:
    """Return whether a layer has statistics of the pretraining, as batch normalisation has."""
    return getattr(layer, "running_var", None) is not None


def image_sizes(encoder: Pretrained, network: nn.Module, sides: Sequence[int]) -> tuple[Any, Any]:
    """Return the image size for the frozen network, and for the adapted one."""
    if encoder.size is None:
        return _default_sizes(sides, patch_of(network))
    if np.size(encoder.size) > 2:
        raise ValueError(f"Pretrained takes size=int or (height, width), got {encoder.size!r}.")
    return (tuple(np.broadcast_to(encoder.size, 2).tolist()),) * 2


def output_width(encoder: Pretrained, module: PretrainedNetwork, images: Tensor) -> int:
    """Return the number of features; set the image size if the network takes only one."""
    network, pixels = module.network, module.pixels
    try:
        return check_rows("it", module.eval()(images), 2, "two images").shape[1]
    except Exception as error:
        if "pool=" in str(error):
            raise
        declared = declared_size(network)
        if encoder.size is None and declared not in (None, pixels.size):
            pixels.size = declared
            return output_width(encoder, module, images)
        advice = "a module from float32 images to one tensor, or the only size= that it takes"
        if np.mod(pixels.size, pixels.patch).any():
            advice = f"a size= that is a multiple of its patches of {pixels.patch[0]} pixels"
        raise ValueError(
            f"The network {type(network).__name__} of Pretrained failed on images of "
            f"{' × '.join(map(str, pixels.size))} pixels: {str(error).rstrip('.')}. Pass {advice}."
        ) from error


def _default_sizes(sides: Sequence[int], patch: Sequence[int]) -> tuple[Any, Any]:
    """Return the default image sizes of a frozen and of an adapted network."""
    least, most = min(sides), max(sides)
    enough = max(_LEAST_SIDE, _LEAST_PATCHES * max(patch))
    factor = min(max(least, enough), _MOST_SIDE) / least
    factor = min(factor, max(1, _MOST_SIDE / most))  # long images are not enlarged
    shrunk = min(factor, enough / math.prod(sides) ** 0.5)
    return _whole_patches(sides, factor, patch), _whole_patches(sides, shrunk, patch)


def _whole_patches(sides: Sequence[int], factor: float, patch: Sequence[int]) -> tuple[int, ...]:
    """Return scaled sides, rounded to whole patches, with at most 256 tokens."""
    n = np.round(np.multiply(sides, factor) / patch).clip(1)
    if max(patch) > 1 and n.prod() > _MOST_TOKENS:
        n = np.floor(n * math.sqrt(_MOST_TOKENS / n.prod())).clip(1)
    return tuple((n * patch).astype(int).tolist())


def _mean_and_std(processor: Any) -> tuple[Any, Any]:
    """Return the mean and the std of an image processor, or of transforms."""
    steps = getattr(processor, "transforms", ())  # of a Compose of torchvision
    if callable(steps) or isinstance(processor, partial):
        raise ValueError(
            f"The processor of Pretrained must be weights.transforms(), got {processor!r}."
        )
    processor = next((step for step in steps if hasattr(step, "mean")), processor)
    for name, default in _PROCESSOR_DEFAULTS.items():
        if (value := getattr(processor, name, default)) not in (default, None):
            raise ValueError(
                f"The processor of Pretrained has {name}={value!r}, which is not supported. "
                "Instead of processor=, pass mean= and std= for intensities in [0, 1]."
            )
    mean = getattr(processor, "image_mean", getattr(processor, "mean", None))
    return mean, getattr(processor, "image_std", getattr(processor, "std", None))


@lru_cache(maxsize=2)
def load_network(name: str) -> nn.Module:
    """Return a pretrained network of timm, loaded once per process."""
    try:
        import timm
    except Exception as error:  # with the wrong torchvision, timm fails in many ways
        # Builds such as 2.13.0+cpu have a separate index, from which torchvision must come, too.
        build = torch.__version__.partition("+")[2]
        index = f" --extra-index-url https://download.pytorch.org/whl/{build}" if build else ""
        raise ImportError(
            f"Pretrained({name!r}) needs timm, which cannot be imported ({error}). Write pip "
            f"install -U timm torchvision torch=={torch.__version__}{index}, or pass a network."
        ) from error
    try:
        return timm.create_model(name, pretrained=True, num_classes=0)
    except Exception as error:
        raise ValueError(
            f"timm could not load Pretrained({name!r}): {str(error).rstrip('.')}. "
            "timm.list_pretrained() has the names. Offline, pass the folder of a model, "
            "'local-dir:/path', or a module."
        ) from error
