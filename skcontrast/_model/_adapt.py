"""Adaptation of pretrained networks: whether to train one, what stays frozen, and the copy."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..augmentation import compose
from ..encoders._pretrained import Pretrained, has_statistics, image_sizes, output_width
from ..encoders._pretrained_network import PretrainedNetwork
from ..kinds import Images
from ._defaults import default_chain

# For adapt="auto": the number of images, and their batch size, even.
_N_IMAGES, _BATCH = 300, 32
# With batch normalisation: the least distance to the pretraining. Sets that gain with 5 labels, or
# lose at most .013, have .113 to .42 (lite0) and .115 to .3 (lite2); all five below .112 lose.
_LEAST_DISTANCE = 0.113
# Without, at the size of the training: the largest share of views whose nearest neighbour is the
# other view of the same image, and the largest participation ratio of the features. With a vision
# transformer, adapting gains where the ratio is 3.4 to 8.8 (ten sets), but at 10.9 and 12.3, too,
# and costs accuracy at 9.6.
_MOST_RETRIEVED, _MOST_DIRECTIONS = 0.75, 9
# The largest norm of features without their mean, relative to theirs, that is rounding: equal
# images have 1e-6, and those of which one pixel differs by 1/255 6e-5.
_ROUNDING = 1e-5
# Of what is measured, how it is written.
_FORMS = {"distance": ".3f", "view_retrieval": ".1%", "participation_ratio": ".3g"}


def adapt(
    encoder: Pretrained,
    module: nn.Module,
    images: Tensor,
    rng: np.random.RandomState,
    reason: str | None,
) -> dict[str, Any]:
    """Decide whether to train a pretrained network, and prepare it; return the decision.

    A network that is trained keeps its first layers and a frozen copy, and gets smaller images.

    Parameters
    ----------
    encoder : Pretrained
        The encoder that has built the module.
    module : torch.nn.Module
        The network, followed by a linear layer if there is one. Changed in place.
    images : Tensor of shape (n, channels, height, width)
        Training images.
    rng : RandomState
        Chooses the images that are measured.
    reason : {"labels", "groups"} or None
        With one of these, ``adapt="auto"`` trains the network, and its features are not measured.

    Returns
    -------
    decision : dict
        ``adapted``, ``reason``, and what was measured with its limits.
    """
    network: Any = module[0] if isinstance(module, nn.Sequential) else module
    is_auto = isinstance(encoder.adapt, str)
    _freeze(network, encoder.frozen if encoder.adapt else 1.0)
    if not any(weights.requires_grad for weights in network.parameters()):
        why = "no trainable weights" if encoder.adapt else "adapt=False"
        decision = {"adapted": False, "reason": why}
        network.notes.append(describe(decision))
        return decision
    native, widths = network.pixels.size, []
    for size in (native, image_sizes(encoder, network.network, images.shape[-2:])[1]):
        network.pixels.size = size
        with torch.no_grad():  # changes the size if the network takes only one
            widths.append(output_width(encoder, network, images[:2]))
    if widths[0] != widths[1]:  # the network flattens its feature map
        network.pixels.size = native
    decision = {"adapted": True, "reason": (reason if is_auto else None) or "adapt=True"}
    if is_auto and reason is None:
        some = images[torch.from_numpy(rng.permutation(len(images))[:_N_IMAGES])]
        decision = _measured(network, some, native)
    network.notes.append(describe(decision))
    if not decision["adapted"]:
        network.requires_grad_(False).pixels.size = native
        return decision
    network.original = copy.deepcopy(network).requires_grad_(False)
    network.original.pixels.size = native
    network.notes.append(f"added to a frozen copy with {network.original.pixels.input}")
    return decision


def describe(decision: dict[str, Any]) -> str:
    """Return a decision in words."""
    known = {n: (decision[n], decision[f"{n}_limit"], _FORMS[n]) for n in _FORMS if n in decision}
    parts = [
        f"{name.replace('_', ' ')} {value:{form}} (limit {limit:{form}})"
        for name, (value, limit, form) in known.items()
    ] or [decision["reason"]]
    return f"{'adapted' if decision['adapted'] else 'frozen'}: {', '.join(parts)}"


def _freeze(network: PretrainedNetwork, share: float) -> None:
    """Freeze the first share of the parameter tensors.

    Weights that the user has frozen stay so, unless all of them are.
    """
    parameters = list(network.network.parameters())
    n_frozen = int(share * len(parameters))
    is_open = any(weights.requires_grad for weights in parameters)
    for i, weights in enumerate(parameters):
        weights.requires_grad_(i >= n_frozen and (weights.requires_grad or not is_open))


@torch.no_grad()
def _measured(network: PretrainedNetwork, images: Tensor, native: Any) -> dict[str, Any]:
    """Return the decision by the features of images, and by their distance or their views."""
    distance = None
    if any(map(has_statistics, network.modules())):
        trained, network.pixels.size = network.pixels.size, native
        features, distance = _distance(network.eval(), images)
        network.pixels.size = trained
    if distance is None:
        features = torch.cat([network.eval()(batch) for batch in images.split(_BATCH)])
    features = features.double()
    centred = features - features.mean(0)
    if centred.norm() <= _ROUNDING * features.norm():
        return {"adapted": False, "reason": "equal features"}
    if distance is not None:
        found = {"distance": distance, "distance_limit": _LEAST_DISTANCE}
        return {"adapted": distance >= _LEAST_DISTANCE, "reason": "distance", **found}
    rows = nn.functional.normalize(centred)
    # Between different images only, so that the ratio does not grow with their number.
    squares = (rows @ rows.T).square().fill_diagonal_(0)
    ratio = float((squares.numel() - len(rows)) / squares.sum())
    draw = compose(default_chain(Images(), tuple(images.shape[1:])) or [], images.shape[1:])
    retrieved = _share_retrieved(network, draw, images)
    adapts, reason = retrieved <= _MOST_RETRIEVED, "view retrieval"
    if adapts and ratio > _MOST_DIRECTIONS:
        adapts, reason = False, "participation ratio"
    found = {"view_retrieval": retrieved, "view_retrieval_limit": _MOST_RETRIEVED}
    found |= {"participation_ratio": ratio, "participation_ratio_limit": _MOST_DIRECTIONS}
    return {"adapted": adapts, "reason": reason, **found}


def _distance(network: PretrainedNetwork, images: Tensor) -> tuple[Tensor, float | None]:
    """Return the features of images, and their distance to the images of the pretraining.

    KL(N(mean, variance) || N(running mean, running variance)) of the inputs of batch
    normalisation, averaged over channels and over the last third of the layers. Of few images, it
    is too large by a share that is inversely proportional to their number: what their halves have
    more than all of them is subtracted. The distance is None if the network uses no such layer.
    """
    moments: dict[Any, Any] = {}  # of each half of the images

    def add(layer: nn.Module, inputs: tuple[Tensor], output: Tensor) -> None:
        x = inputs[0].reshape(*inputs[0].shape[:2], -1)
        mean, variance = x.mean(2).double(), x.var(2, correction=0).double()
        new = torch.stack([torch.ones_like(mean), mean, variance + mean**2])
        new = torch.stack([new[:, ::2].sum(1), new[:, 1::2].sum(1)])
        moments[layer] = moments.get(layer, 0) + new

    def divergence(layer: Any, total: Tensor) -> float:
        n, mean, square = total
        variance = layer.running_var + (eps := getattr(layer, "eps", 1e-5))
        ratio = (square / n - (mean / n) ** 2 + eps) / variance
        shift = (mean / n - layer.running_mean) ** 2 / variance
        return float((ratio - ratio.log() + shift - 1).mean() / 2)

    layers = [layer for layer in network.modules() if has_statistics(layer)]
    hooks = [layer.register_forward_hook(add) for layer in layers]
    features = torch.cat([network(batch) for batch in images.split(_BATCH)])
    for hook in hooks:
        hook.remove()
    found = []
    for layer, halves in moments.items():
        first, second = (divergence(layer, half) for half in halves)
        found.append(2 * divergence(layer, halves.sum(0)) - (first + second) / 2)
    return features, float(np.mean(found[-len(found) // 3 :])) if found else None


def _share_retrieved(
    network: PretrainedNetwork, draw: Callable[..., Tensor], images: Tensor
) -> float:
    """Return the share of images whose views are nearest to each other among all images."""
    generator = torch.Generator().manual_seed(0)
    batches = images.split(_BATCH)
    features = [torch.cat([network(draw(x, generator)) for x in batches]) for _ in range(2)]
    first, second = (nn.functional.normalize(h - h.mean(0)) for h in features)
    return float(((first @ second.T).argmax(1) == torch.arange(len(images))).double().mean())
