"""A pretrained network of images as an encoder: its pixels, its output, and how it is trained."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from functools import lru_cache
from numbers import Real
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from .._checks import (
    POSITIVE,
    POSITIVE_INT,
    Interval,
    Numbers,
    StrOptions,
    check_rows,
    naming,
    parameter,
)
from .._layers._pretrained import (
    Pixels,
    PretrainedNetwork,
    declared_size,
    for_any_size,
    patch_of,
    without_head,
)
from .._warnings import say, warn
from ..frameworks._moco import BATCH_NORM
from ..kinds import Images
from ._base import Encoder, check_build, epochs_of, last_layer

# Pixels outside [0, 1] by more than this were standardised, or are in another unit.
_TOLERANCE = 0.01
# Images whose brightest pixel is darker were probably divided by 255 twice.
_DARKEST = 3.5 / 255
# Sides to which images are brought: smaller ones leave networks too few cells or patches.
_LEAST_SIDE, _LEAST_PATCHES, _MOST_SIDE = 96, 6, 224
_MOST_TOKENS = 256
# Images whose features decide, the number encoded at once, and the most directions in which they
# vary where adapting pays. With two networks, steel and cells have 13 to 26, four sets of
# photographs 36 to 63. Whichever set is left out, the middle between the others is 25 to 38.
_N_DECIDING, _BATCH, _MOST_DIRECTIONS = 300, 32, 35
_FINITE = Interval(Real, None, None, closed="neither")
# What image processors of transformers do, unless they say otherwise.
_USUAL = {
    "do_rescale": True, "rescale_factor": 1 / 255, "rescale_offset": False, "offset": False,
    "do_normalize": True, "include_top": False, "do_flip_channel_order": False,
}  # fmt: skip


class Pretrained(Encoder):
    """A pretrained network of images, adapted to the images of `fit`.

    The network receives intensities in [0, 1] less `mean`, divided by `std`. Grey images become
    three equal channels. A classification head is removed. The network is trained at a learning
    rate of its own. Its first layers stay frozen, and it remains in inference mode, so that batch
    normalisation keeps the statistics of the pretraining. The features are the sum of the outputs
    of the trained network and of a frozen copy, each divided by its root mean square.

    With ``verbose=1`` the embedder prints the preprocessing, the head that was removed and the
    number of features.

    Parameters
    ----------
    network : torch.nn.Module or str
        A network that maps float images (n, 3, height, width) to (n, width), to maps
        (n, width, rows, columns), to tokens (n, tokens, width), or to an output object of
        transformers. It is copied, never changed. A string is the name of a network of timm,
        such as ``"resnet18.tv_in1k"`` or ``"local-dir:/folder"``, whose weights timm loads in
        `fit`, once per process.
    mean, std : float or tuple of float, default=None
        Mean and standard deviation of the intensities in [0, 1] on which the network was trained,
        one number or one per channel. None reads them from `processor`, or from a network of timm.
    size : int or (int, int), default=None
        Height and width to which images are resized; bilinear, and antialiased where they shrink.
        None brings the shorter side to between 96 and 224 pixels for a frozen network, and the
        area to at most 96 × 96 pixels for the trained one, and in training for both. Transformers
        get the nearest multiple of their patches, at most 256 tokens. A network of one size gets
        this size.
    pool : {"token", "mean", "both"}, default=None
        The row of a transformer: its class token, the mean of its patches, or both. None is what
        the network returns, and the class token of DINOv3.
    processor : object, default=None
        Object with the mean and the std: an image processor of transformers, or the transforms of
        torchvision's weights, of timm or of open_clip.
    adapt : bool or "auto", default="auto"
        Whether `fit` trains the network. False leaves it frozen: `transform` returns its features,
        and `fit` takes seconds. "auto" decides by its features of 300 images, see Notes.
    rate : float, default=None
        Learning rate of the network, relative to that of the projection head. None is 0.2 for
        networks with batch normalisation and 0.05 for others, such as transformers.
    frozen : float, default=0.33
        Share of the network's parameter tensors, the first ones, that are not trained; in [0, 1).

    Raises
    ------
    ValueError
        In `fit`: if the mean and the std are not known, the pixels are not in [0, 1], the
        channels are not those of the network, or it does not return one row per image.
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

    Maps and tokens are averaged. The row of an output object of transformers is its pooled
    output, or the class token if the network's pooler has a dense layer, which may never have been
    trained. If a network returns a dict or a tuple, pass a module whose
    ``forward`` returns one tensor.

    Freezing the first third saves two fifths of the time of a fit with EfficientNet-lite0 at 96
    pixels, and the memory of the largest maps. ``frozen=0.66`` saves a fifth of the rest.

    Large batches are encoded in chunks, at most 256 images of 98 pixels or 49 of 224 pixels, and
    four times as many on a GPU. The activations of all chunks except the last are computed again
    for the gradient, so that memory stays bounded.

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
    >>> from skcontrast.encoders import Pretrained
    >>> network = nn.Sequential(nn.Conv2d(3, 8, 3, 2), nn.ReLU(), nn.Conv2d(8, 16, 3, 2))
    >>> X = np.random.default_rng(0).integers(0, 256, size=(40, 3, 32, 32)).astype(np.uint8)
    >>> encoder = Pretrained(network, mean=0.5, std=0.5)
    >>> ContrastiveEmbedder(encoder, max_epochs=1, random_state=0).fit_transform(X).shape
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
    pool: Literal["token", "mean", "both"] | None = parameter(
        [StrOptions({"token", "mean", "both"}), None], default=None, kw_only=True
    )
    processor: Any = parameter(default=None, kw_only=True)
    adapt: bool | Literal["auto"] = parameter(
        ["boolean", StrOptions({"auto"})], default="auto", kw_only=True
    )
    rate: float | None = parameter([*POSITIVE, None], default=None, kw_only=True)
    frozen: float = parameter([Interval(Real, 0, 1, closed="left")], default=0.33, kw_only=True)

    @property
    def relative_rate(self) -> float:  # type: ignore[override]
        """Learning rate of the network, relative to that of the projection head."""
        if self.rate is not None:
            return self.rate
        return 0.2 if _has_batch_norm(self._source) else 0.05

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
        """Return a copy of the network, behind its preprocessing layer.

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
        network = for_any_size(copy.deepcopy(self._source).to("cpu", torch.float32))
        end = without_head(network)
        module = PretrainedNetwork(self._pixels(network, sample_shape), network, self.pool)
        width = self._width(module, torch.zeros(2, *sample_shape))
        module.notes += [end, f"{width} features"]
        parameters = list(network.parameters())
        n_frozen = int(self.frozen * len(parameters)) if self.adapt else len(parameters)
        for weights in parameters[:n_frozen]:
            weights.requires_grad_(False)
        if n_components is None:
            return module
        return nn.Sequential(module, last_layer(width, n_components))

    def learn(self, module: nn.Module, batch: Tensor, rng: np.random.RandomState) -> None:
        """Decide whether to train; raise ValueError for pixels that are not in [0, 1]."""
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
        if 0 < high < _DARKEST:
            warn(
                f"The brightest pixel in X is {high:.2g}, and Pretrained takes 1 for white: was X "
                "divided by 255 twice?"
            )
        network: Any = module[0] if isinstance(module, nn.Sequential) else module
        is_open = any(weights.requires_grad for weights in network.parameters())
        if not is_open:
            return
        if self.adapt == "auto":
            some = batch[torch.from_numpy(rng.permutation(len(batch))[:_N_DECIDING])]
            adapts, reason = _decision(network, some)
            network.notes.append(f"{'adapted' if adapts else 'frozen'}: {reason}")
            if not adapts:
                network.requires_grad_(False)
                say(f"Pretrained leaves the network frozen: {reason}. adapt=True trains it.")
                return
        network.original = copy.deepcopy(network).requires_grad_(False)
        network.notes.append("added to a frozen copy")
        network.pixels.size = self._sizes(network.network, batch.shape[-2:])[1]
        with torch.no_grad():
            self._width(network, batch[:2])

    def pace(self, n_batches: int, sides: Sequence[int] | None = None) -> tuple[float, int]:
        """Return a learning rate of .001, and the epochs that have about 40 steps."""
        # With 800 images 6 epochs: more gains little, and costs minutes.
        return 1e-3, epochs_of(40, n_batches, fewest=1)

    def _pixels(self, network: nn.Module, sample_shape: tuple) -> Pixels:
        """Return the preprocessing that the user, the processor or timm declares."""
        name, n_channels = type(network).__name__, sample_shape[0]
        layers = (one for one in network.modules() if isinstance(one, nn.Conv2d))
        channels = next((one.in_channels for one in layers), 3)
        if n_channels not in (1, channels):
            raise ValueError(
                f"X has {n_channels} channels, the network {name} takes {channels}: pass images "
                f"with {channels} or 1 channels, or a network with another first layer."
            )
        of_timm: Any = getattr(network, "pretrained_cfg", None) or {}
        source = SimpleNamespace(**of_timm) if self.processor is None else self.processor
        given = zip((self.mean, self.std), _of_processor(source), strict=True)
        mean, std = (read if own is None else own for own, read in given)
        _check_statistics(name, channels, mean, std)
        mean, std = (np.resize(one, channels) for one in (mean, std))
        size, _ = self._sizes(network, sample_shape[-2:])
        return Pixels(mean, std, size, patch_of(network))

    def _sizes(self, network: nn.Module, sides: Sequence[int]) -> tuple[Any, Any]:
        """Return the size for the frozen network, and for the one that is adapted."""
        if self.size is None:
            return _free_sizes(sides, patch_of(network))
        with naming("size", "an int, or height and width, in Pretrained", self.size):
            return (tuple(np.broadcast_to(self.size, 2).tolist()),) * 2

    def _width(self, module: PretrainedNetwork, images: Tensor) -> int:
        """Return the number of features, and set the size if the network takes only one."""
        network, pixels = module.network, module.pixels
        try:
            return check_rows("it", module.eval()(images), 2, "images").shape[1]
        except Exception as error:
            declared = declared_size(network)
            if self.size is None and declared not in (None, pixels.size):
                pixels.size = declared
                return self._width(module, images)
            raise ValueError(
                f"The network {type(network).__name__} of Pretrained failed on images of "
                f"{pixels.size[0]} × {pixels.size[1]} pixels: {error}. Pass a module that maps a "
                "batch of float32 images to one tensor, and its size= if it takes only one."
            ) from error


def _has_batch_norm(network: nn.Module) -> bool:
    return any(isinstance(layer, BATCH_NORM) for layer in network.modules())


@torch.no_grad()
def _decision(network: PretrainedNetwork, images: Tensor) -> tuple[bool, str]:
    """Return whether adapting pays, and the reason."""
    if not _has_batch_norm(network):
        return False, "no batch normalisation"
    features = torch.cat([network.eval()(part) for part in images.split(_BATCH)]).double()
    rows = nn.functional.normalize(features - features.mean(0))
    scores = rows @ rows.T
    n_directions = float(scores.trace() ** 2 / scores.square().sum())
    adapts = n_directions <= _MOST_DIRECTIONS
    sign = "≤" if adapts else ">"
    return adapts, f"features vary in {n_directions:.0f} {sign} {_MOST_DIRECTIONS} directions"


def _check_statistics(name: str, channels: int, mean: Any, std: Any) -> None:
    """Raise ValueError unless a mean and a std are known and are of intensities in [0, 1]."""
    if mean is None or std is None:
        raise ValueError(
            f"The network {name} of Pretrained needs mean= and std=, or processor=, got {mean=}, "
            f"{std=}. Most have mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225)."
        )
    if max(np.abs(mean).max(), np.max(std)) > 2:  # of pixels from 0 to 255, about 120 and 60
        raise ValueError(
            f"The mean and std of Pretrained are of intensities in [0, 1], got {mean!r} and "
            f"{std!r}: divide them by 255."
        )
    if not {np.size(mean), np.size(std)} <= {1, channels}:
        raise ValueError(
            f"The mean and std of Pretrained must hold one number or {channels}, one for each "
            f"channel, got {mean!r} and {std!r}."
        )


def _free_sizes(sides: Sequence[int], patch: Sequence[int]) -> tuple[Any, Any]:
    """Return the sizes of images of these sides, for a frozen and for an adapted network."""
    least, most = min(sides), max(sides)
    enough = max(_LEAST_SIDE, _LEAST_PATCHES * max(patch))
    factor = min(max(least, enough), _MOST_SIDE) / least
    factor = min(factor, max(1, _MOST_SIDE / most))  # long images are not enlarged
    shrunk = min(factor, enough / math.prod(sides) ** 0.5)
    return _in_patches(sides, factor, patch), _in_patches(sides, shrunk, patch)


def _in_patches(sides: Sequence[int], factor: float, patch: Sequence[int]) -> tuple[int, ...]:
    """Return sides times a factor, in patches; if these become tokens, they are not too many."""
    n = np.round(np.multiply(sides, factor) / patch).clip(1)
    if max(patch) > 1 and n.prod() > _MOST_TOKENS:
        n = np.floor(n * math.sqrt(_MOST_TOKENS / n.prod())).clip(1)
    return tuple((n * patch).astype(int).tolist())


def _of_processor(processor: Any) -> tuple[Any, Any]:
    """Return the mean and the std of an image processor, or of transforms."""
    steps = getattr(processor, "transforms", ())  # of a Compose of torchvision
    processor = next((one for one in steps if hasattr(one, "mean")), processor)
    for name, usual in _USUAL.items():
        if (value := getattr(processor, name, usual)) not in (usual, None):
            raise ValueError(
                f"The processor of Pretrained has {name}={value!r}, which is not followed. "
                "Instead of processor=, pass the mean= and std= of intensities in [0, 1]."
            )
    mean, std = (
        getattr(processor, f"image_{name}", getattr(processor, name, None))
        for name in ("mean", "std")
    )
    return mean, std


@lru_cache(maxsize=2)
def load_network(name: str) -> nn.Module:
    """Return a network of timm with its weights, loaded once per process."""
    try:
        import timm
    except Exception as error:  # with the wrong torchvision, timm fails in many ways
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
