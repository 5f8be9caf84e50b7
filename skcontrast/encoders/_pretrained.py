"""A pretrained network of images as an encoder: its pixels, its output, and how it is trained."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from numbers import Real
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .._checks import NON_NEGATIVE, POSITIVE, POSITIVE_INT, Interval, Numbers, naming, parameter
from .._layers._pretrained import Pixels, PretrainedNetwork, without_head
from .._warnings import warn
from ..frameworks._moco import BATCH_NORM
from ..kinds import Images
from ._base import Encoder, check_build, epochs_of, last_layer

# Pixels outside [0, 1] by more than this were standardised, or are in another unit.
_TOLERANCE = 0.01
# Images whose brightest pixel is darker were probably divided by 255 twice.
_DARKEST = 3.5 / 255
# Images of eight sets, noise among them, varied .6 to 1.3 times as much as those of ImageNet.
_LEAST_SPREAD, _MOST_SPREAD, _IMAGES_TRIED = 0.25, 4.0, 16
# Sides to which images are brought: smaller ones leave convolutional networks too few cells.
_LEAST_SIDE, _MOST_SIDE = 96, 224
_FINITE = Interval(Real, None, None, closed="neither")
_ADVICE = (
    "does not say for which pixels it was trained: pass the mean= and std= of its intensities in "
    "[0, 1], such as mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225) for most networks of "
    "ImageNet, 0 and 1 if it normalises them itself, or what holds them: processor= "
    "weights.transforms(), model.visual of open_clip, or AutoImageProcessor.from_pretrained(name)."
)


class Pretrained(Encoder):
    """A pretrained network of images, adapted to the images of `fit`.

    It gets pixels as it knows them: intensities in [0, 1] less `mean`, divided by `std`, grey
    images as three equal channels, resized where it takes one size. What it returns for an image
    is one row: a map or tokens are averaged, and a classifier at its end is left out. It is
    trained at a rate of its own, and remains in inference mode: batch normalisation keeps the
    statistics that it was trained with, without which a network forgets much of what it knows
    before the first step. The layers that come first are not trained at all.

    With ``verbose=1`` the embedder prints the preprocessing, the head that was removed and the
    number of features. It puts the output of the network as it was, codes of patches and oriented
    gradients beside what it learns; ``Wide(Pretrained(network))`` leaves them out.

    Parameters
    ----------
    network : torch.nn.Module or str
        A network that maps float images (n, 3, height, width) to (n, width), to maps
        (n, width, rows, columns), to tokens (n, tokens, width), or to an object of transformers
        that has them. It is copied, never changed. A string is the name of a network of timm,
        such as ``"resnet18.tv_in1k"`` or ``"local-dir:/folder"``, whose weights timm loads in
        `fit`, once per process.
    mean, std : float or tuple of float, default=None
        Of the intensities in [0, 1] with which the network was trained, one number or one a
        channel. None reads them from networks of timm, and from `processor`.
    size : int or (int, int), default=None
        Height and width to which images are resized; bilinear, and antialiased where they shrink.
        None is the size of the images, or of the network if it takes one only.
    processor : object, default=None
        An image processor of transformers, or the transforms of torchvision's weights, of timm or
        of open_clip: has the mean and the std.
    rate : float, default=None
        Learning rate of the network, relative to that of the projection head; 0 trains the head
        alone. None is 0.5 for networks with batch normalisation and 0.05 for others, such as
        transformers, which are easily spoiled.
    frozen : float, default=0.33
        Share of the network's parameter tensors, the first ones, that are not trained; in [0, 1).

    Raises
    ------
    ValueError
        In `fit`: if the mean and the std are not known, the pixels are not in [0, 1], the
        channels are not those of the network, or it returns no row for each image.
    TypeError
        In `fit`: if the network was compiled by torch.jit.

    See Also
    --------
    Wide : Puts features beside an encoder.
    skcontrast.features.Frozen : What the network returns without training, as a transformer.

    Notes
    -----
    The layer that makes the output is left out as a classifier if it is called ``fc``, ``head`` or
    the like. Whatever else looks like classes is reported: a softmax, or a number of outputs that
    32 does not divide. So is an end that was left out and may have made an embedding.

    Of a model of transformers, the row is the class token where it has one, or what it pools
    without weights. If a network returns a dict or a tuple, pass a module whose ``forward`` picks
    one tensor; of one that segments, pass the encoder, since the mean of a map of classes says
    little.

    That the first third is not trained saves two fifths of the time of a fit, with
    EfficientNet-lite0 at 96 pixels, and the memory of the largest maps; with few labels of
    textures it cost nothing. ``frozen=0.66`` saves a fifth of what is left: textures gained .03 by
    it with five labels, steel lost .01 (one seed). What a step keeps for the gradient is
    bounded by 1.5 GB, or a quarter of a GPU's memory; what does not fit, such as 256 views of 96
    pixels in a ResNet-50, is computed twice.

    Of what stands beside the adapted network, its former output counts as much as that, the codes
    of a :class:`~skcontrast.features.PatchDictionary` half, and
    :class:`~skcontrast.features.OrientedGradients` a quarter.

    References
    ----------
    .. [1] C. J. Reed et al., "Self-Supervised Pretraining Improves Self-Supervised Pretraining",
       WACV 2022.

    Examples
    --------
    A small network stands for a pretrained one:

    >>> import numpy as np
    >>> from torch import nn
    >>> from skcontrast import ContrastiveEmbedder
    >>> from skcontrast.encoders import Pretrained, Wide
    >>> network = nn.Sequential(nn.Conv2d(3, 8, 3, 2), nn.ReLU(), nn.Conv2d(8, 16, 3, 2))
    >>> X = np.random.default_rng(0).integers(0, 256, size=(40, 3, 32, 32)).astype(np.uint8)
    >>> encoder = Pretrained(network, mean=0.5, std=0.5)
    >>> ContrastiveEmbedder(Wide(encoder), max_epochs=1, random_state=0).fit_transform(X).shape
    (40, 16)
    """

    kind = Images(standardize=False)
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
    processor: Any = parameter(default=None, kw_only=True)
    rate: float | None = parameter([*NON_NEGATIVE, None], default=None, kw_only=True)
    frozen: float = parameter([Interval(Real, 0, 1, closed="left")], default=0.33, kw_only=True)

    @property
    def relative_rate(self) -> float:  # type: ignore[override]
        """Learning rate of the network, relative to that of the projection head."""
        if self.rate is not None:
            return self.rate
        return 0.5 if any(isinstance(one, BATCH_NORM) for one in self._source.modules()) else 0.05

    @property
    def _channels_last(self) -> bool:  # type: ignore[override]
        """Whether the network runs in channels-last memory format, as those of libraries do."""
        return type(self._source).__module__.partition(".")[0] in ("timm", "torchvision")

    @property
    def _source(self) -> nn.Module:
        """The network that is copied, loaded if there is only its name."""
        return load_network(self.network) if isinstance(self.network, str) else self.network

    @torch.no_grad()
    def build(self, sample_shape: tuple, n_components: int | None = None) -> nn.Module:
        """Return a copy of the network, behind the layer that brings pixels as it knows them.

        Parameters
        ----------
        sample_shape : tuple of int
            ``(channels, height, width)``.
        n_components : int or None, default=None
            Width of the representation, which a last linear layer gives, with weights drawn from
            torch's global random state. None leaves this layer out.

        Returns
        -------
        module : torch.nn.Module
            Maps a float32 batch (n, channels, height, width), in [0, 1], to (n, width).

        Raises
        ------
        ValueError
            If the mean or the std is not known, the channels are not those of the network, or it
            returns nothing that is a row per image.
        TypeError
            If the network was compiled by torch.jit.
        """
        check_build(self, sample_shape, n_components)
        if isinstance(self._source, torch.jit.ScriptModule):
            raise TypeError("torch.jit hides the network of Pretrained: pass what it compiled.")
        network = copy.deepcopy(self._source).to("cpu", torch.float32)
        module = PretrainedNetwork(self._pixels(network, sample_shape), network)
        # Two random images tell what the network takes and returns; a generator of their own
        # leaves the global one as it was.
        images = torch.rand(2, *sample_shape, generator=torch.Generator())
        _try_sizes(module, images, is_free=self.size is None)
        end = without_head(network, module.pixels(images))
        width = _width(module, images)
        name = type(network).__name__
        module.description = f"{name}: {module.pixels.description}, {end}, {width} features"
        parameters = list(network.parameters())
        # The first layers, next to the pixels, see what all images share.
        n_frozen = len(parameters) if self.rate == 0 else int(self.frozen * len(parameters))
        for weights in parameters[:n_frozen]:
            weights.requires_grad_(False)
        if n_components is None:
            return module
        return nn.Sequential(module, last_layer(width, n_components))

    def learn(self, module: nn.Module, batch: Tensor, rng: np.random.RandomState) -> None:
        """Learn nothing; raise ValueError for pixels that are not in [0, 1]."""
        low, high = float(batch.min()), float(batch.max())
        if low < -_TOLERANCE * max(high, 0) or high > 1 + _TOLERANCE:
            # Pixels of 8 bits, or of 16.
            advice = f"divided by white, such as X / {255 if high <= 255 else 65535}"
            if low < 0:
                advice = "whose standardisation is undone; from [-1, 1], (X + 1) / 2"
            raise ValueError(
                f"Pretrained takes intensities in [0, 1], but X holds images from {low:.4g} to "
                f"{high:.4g}: pass uint8 images, or floats {advice}."
            )
        spread = _spread(module, batch[:_IMAGES_TRIED])
        if 0 < high < _DARKEST:
            warn(
                f"The brightest pixel in X is {high:.2g}, and Pretrained takes 1 for white: was X "
                "divided by 255 twice?"
            )
        elif not _LEAST_SPREAD <= spread <= _MOST_SPREAD:
            warn(
                f"In the first batch normalisation of Pretrained, X varies {spread:.2g} times as "
                "much as in its training: are mean= and std= right, and is white 1 in X?"
            )

    def pace(self, n_batches: int, sides: Sequence[int] | None = None) -> tuple[float, int]:
        """Return a learning rate of .001, and the epochs that have about 140 steps."""
        # With 800 images 20 epochs: more gains little, and costs minutes.
        return 1e-3, epochs_of(140, n_batches, fewest=1)

    def _pixels(self, network: nn.Module, sample_shape: tuple) -> Pixels:
        """Return the layer from intensities to what the network has learned from."""
        known = _of_timm(network)
        if self.mean is None or self.std is None:
            known |= _of_processor(network, self.processor)
        known |= {k: v for k, v in self.get_params(deep=False).items() if v is not None}
        mean, std, size = known["mean"], known["std"], known["size"]
        _check_statistics(network, mean, std)
        channels = _channels(network, sample_shape[0], mean, std)
        size = _free_size(sample_shape[-2:]) if size is None else size
        with naming("size", "an int, or height and width, in Pretrained", size):
            height, width = np.broadcast_to(size, 2).tolist()
        mean, std = (np.resize(np.asarray(one, np.float64), channels) for one in (mean, std))
        return Pixels(mean, std, (height, width))


def _check_statistics(network: nn.Module, mean: Any, std: Any) -> None:
    """Raise ValueError for a mean and a std that are not known, or not of intensities in [0, 1].

    Warn if the network may use them itself.
    """
    name = type(network).__name__
    if mean is None or std is None:
        raise ValueError(f"The network {name} of Pretrained {_ADVICE} It has {mean=}, {std=}.")
    means, stds = np.asarray(mean, np.float64), np.asarray(std, np.float64)
    # Of pixels from 0 to 255, these are about 120 and 60.
    if max(abs(means).max(), stds.max()) > 2:
        raise ValueError(
            f"The mean and std of Pretrained are of intensities in [0, 1], got {mean!r} and "
            f"{std!r}: divide them by 255."
        )
    is_own = any(hasattr(one, "mean") and hasattr(one, "std") for one in network.modules())
    if is_own and (means.any() or (stds != 1).any()):
        warn(
            f"The network {name} of Pretrained holds a mean and a std: if it normalises "
            "intensities in [0, 1] itself, pass mean=0, std=1."
        )


def _channels(network: nn.Module, n: int, mean: Any, std: Any) -> int:
    """Return the number of channels that a network takes; images of n, and the mean, must fit."""
    # The first layer may be held behind others, or be lazy, without channels yet.
    layers = [one.in_channels for one in network.modules() if isinstance(one, nn.Conv2d)]
    usual = [one for one in (n, 3) if one > 1 and one in layers]
    lengths = {np.asarray(mean).size, np.asarray(std).size}
    channels = [*usual, *layers, 0][0] or max(*lengths, 3)
    if lengths - {1, channels}:
        raise ValueError(
            f"The mean and std of Pretrained must hold one number or {channels}, one for each "
            f"channel, got {mean!r} and {std!r}."
        )
    if n not in (1, channels):
        taken, fewer = "1", "X.mean(axis=1, keepdims=True), or "
        if channels > 1:
            taken = f"{channels}, or 1, which is repeated"
            fewer = f"X[:, :{channels}] if the others are transparency, or " * (n > channels)
        raise ValueError(
            f"X has {n} channels, the network {type(network).__name__} takes {taken}: pass "
            f"{fewer}a network with another first layer, and the mean and std of each channel."
        )
    return channels


@torch.no_grad()
def _spread(module: nn.Module, images: Tensor) -> float:
    """Return how much images vary in the first batch normalisation, as a share of the training's.

    Without one that has been trained, the share is 1.
    """
    norms = (one for one in module.modules() if isinstance(one, BATCH_NORM))
    norm: Any = next((one for one in norms if one.running_mean is not None), nn.Identity())
    seen: list[Tensor] = []
    with norm.register_forward_pre_hook(lambda _, args: seen.extend(args)):
        module(images)
    if not seen or not norm.running_mean.any():
        return 1.0
    variances = seen[0].transpose(0, 1).flatten(1).var(1)
    return float((variances / norm.running_var).nanmedian().sqrt())


def _free_size(sides: Sequence[int]) -> tuple[int, int]:
    """Return the sides of images, the shorter one brought into the range that networks take."""
    least, most = min(sides), max(sides)
    factor = min(max(least, _LEAST_SIDE), _MOST_SIDE) / least
    factor = min(factor, max(1, _MOST_SIDE / most))  # long images are not enlarged
    return max(1, round(sides[0] * factor)), max(1, round(sides[1] * factor))


def _of_timm(network: Any) -> dict[str, Any]:
    """Return what a network of timm knows of its pixels: mean, std, and a size that must be."""
    known = getattr(network, "pretrained_cfg", None) or {}
    size = known.get("input_size") if known.get("fixed_input_size") else None
    return {"mean": known.get("mean"), "std": known.get("std"), "size": size and tuple(size[-2:])}


# What image processors of transformers do, unless they say otherwise.
_USUAL = {
    "do_rescale": True, "rescale_factor": 1 / 255, "rescale_offset": False, "offset": False,
    "do_normalize": True, "include_top": False, "do_flip_channel_order": False,
}  # fmt: skip


def _of_processor(network: Any, processor: Any) -> dict[str, Any]:
    """Return the mean and the std of an image processor, if need be of one on this machine."""
    if processor is None and hasattr(network, "name_or_path"):
        with suppress(Exception):
            from transformers import AutoImageProcessor

            options = {"local_files_only": True, "trust_remote_code": False}
            processor = AutoImageProcessor.from_pretrained(network.name_or_path, **options)
    if processor is None:
        return {}
    steps = getattr(processor, "transforms", ())  # of a Compose of torchvision
    processor = next((one for one in steps if hasattr(one, "mean")), processor)
    has = processor.get if isinstance(processor, Mapping) else partial(getattr, processor)
    for name, usual in _USUAL.items():
        if has(name, usual) not in (usual, None):
            raise ValueError(
                f"The processor of Pretrained has {name}={has(name, usual)!r}, which is not "
                "followed: pass X as the network knows it in [0, 1], with mean= and std=."
            )
    return {name: has(f"image_{name}", None) or has(name, None) for name in ("mean", "std")}


@lru_cache(maxsize=2)
def load_network(name: str) -> nn.Module:
    """Return a network of timm with its weights, loaded once per process."""
    try:
        import timm
    except Exception as error:  # beside the wrong torchvision, timm fails in many ways
        # A build such as 2.13.0+cpu comes from an index of its own, and so must torchvision.
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
            f"timm could not load Pretrained({name!r}): {error}. timm.list_pretrained() has the "
            "names; without a network, pass the folder of a model, 'local-dir:/path', or a module."
        ) from error


def _try_sizes(module: PretrainedNetwork, images: Tensor, *, is_free: bool) -> None:
    """Find a size that a network takes: that of the images, or the only one that it has.

    Raises
    ------
    ValueError
        If the network fails.
    """
    own, name = module.pixels.size, type(module.network).__name__
    errors: dict[str, list[str]] = {}
    # Transformers take one size only: most take 224 pixels, others tell it in their config.
    others = (_MOST_SIDE, getattr(getattr(module.network, "config", None), "image_size", None))
    squares = ((side, side) for side in others if isinstance(side, int))
    sizes = [own, *squares, (images.shape[-2], images.shape[-1])]
    for size in dict.fromkeys(sizes if is_free else [own]):
        module.pixels.size = size
        try:
            _width(module, images)
            return
        except Exception as error:
            errors.setdefault(str(error), []).append(f"{size[0]} × {size[1]}")
    found = "; ".join(f"{', '.join(sizes)} pixels: {text}" for text, sizes in errors.items())
    raise ValueError(
        f"The network {name} of Pretrained failed on images of {found}. Pass a module that maps "
        "one batch of float32 images to one tensor, and its size= if it takes one only."
    )


def _width(module: PretrainedNetwork, images: Tensor) -> int:
    """Return the width of the rows that a network returns."""
    found = module(images)
    if found.ndim != 2 or len(found) != len(images):
        raise ValueError(f"it returns a tensor of shape {tuple(found.shape)} for 2 images")
    return found.shape[1]
