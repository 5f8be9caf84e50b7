"""The way from ``encoder=`` to a checked module."""

from __future__ import annotations

import copy
import inspect

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from .._data._validation import GRAPHS, kind_of
from .._parameters import check_component
from ..graphs import GraphBatch
from ..graphs._topology import Topology
from ._base import Encoder
from ._message_passing import ForeignNetwork, GraphNetwork
from .convnet import ConvNet
from .graph import GIN
from .mlp import MLP
from .resnet import ResNet


def build_encoder(encoder, sample_shape, n_components=None):
    """Return the module that `encoder` stands for, tried on a batch of zeros, and its width.

    Parameters
    ----------
    encoder : None, Encoder, torch.nn.Module or callable
        None: chosen by the shape of the samples. An encoder object is built; a module is copied,
        and so is what a callable returns for `sample_shape`.
    sample_shape : tuple of int
        Shape of one sample: ``(n_features,)``, ``(channels, height, width)``, or, for graphs,
        ``(None, n_node_features)``.
    n_components : int or None, default=None
        Width of the representation that is asked for.

    Returns
    -------
    module : torch.nn.Module
        On the CPU; shares nothing with `encoder`.
    width : int
        The width of its output.

    Raises
    ------
    TypeError
        If `encoder` is a class or something else that cannot be built.
    ValueError
        If the module fails on samples of this shape, returns anything but a floating tensor of
        shape (n, width), or has another width than `n_components`.

    Examples
    --------
    >>> from skcontrast.encoders import build_encoder
    >>> module, width = build_encoder(None, (1, 8, 8))
    >>> width
    128
    """
    sample_shape = tuple(size if size is None else int(size) for size in sample_shape)
    name, module = _resolve(encoder, sample_shape, n_components)
    module = module.to("cpu")
    if kind_of(sample_shape) == GRAPHS and not isinstance(module, GraphNetwork):
        module = ForeignNetwork(module)
    width = _width_of(module, sample_shape, name)
    if n_components is not None and width != n_components:
        raise ValueError(
            f"n_components={n_components}, but the encoder {name} returns {width} components. "
            f"Pass n_components={width} or None, or change the encoder's last layer."
        )
    return module, width


def to_channels_last(module, sample_shape):
    """Bring a module of images to channels-last memory format, if it runs in that.

    Convolutions are faster so, on CPUs too. A module that asks for contiguous tensors, as
    ``x.view(len(x), -1)`` does, keeps its format.

    Parameters
    ----------
    module : torch.nn.Module
        Changed in place.
    sample_shape : tuple of int
        Shape of one sample.

    Returns
    -------
    works : bool
        Whether the module is in that format now and its input should be.
    """
    if len(sample_shape) != 3 or any(map(_corrupts_memory, module.modules())):
        return False
    zeros = torch.zeros(2, *sample_shape).to(memory_format=torch.channels_last)
    try:
        trial = copy.deepcopy(module).to(memory_format=torch.channels_last).train()
        with torch.random.fork_rng(devices=[]):
            trial(zeros).sum().backward()
        _dry_run(trial, zeros)
    except Exception:
        return False
    module.to(memory_format=torch.channels_last)
    return True


def _corrupts_memory(layer):
    """Return whether a layer must not run in channels-last format.

    On processors without AVX-512, PyTorch 2.13 writes beyond its memory in the backward pass of a
    convolution of single pixels with a stride that has two to seven input channels.
    """
    return (
        isinstance(layer, nn.Conv2d)
        and set(layer.kernel_size) == {1}
        and max(layer.stride) > 1
        and layer.in_channels < 8
    )


def _resolve(encoder, sample_shape, n_components):
    """Return the name of `encoder`, for messages, and the module that it stands for."""
    if encoder is None:
        encoder = _default_encoder(sample_shape)
    for base in (Encoder, nn.Module):
        if inspect.isclass(encoder) and issubclass(encoder, base):
            check_component(encoder, base, owner="ContrastiveEmbedder", parameter="encoder")
    name = getattr(encoder, "__name__", type(encoder).__name__)
    if isinstance(encoder, Encoder):
        return name, _checked_module(encoder.build(sample_shape, n_components), f"{name}.build")
    if isinstance(encoder, nn.Module):
        return name, copy.deepcopy(encoder)
    if callable(encoder):
        module = _checked_module(encoder(sample_shape), f"The callable encoder {name}")
        return name, copy.deepcopy(module)
    raise TypeError(
        "The 'encoder' parameter of ContrastiveEmbedder must be None, an encoder of "
        "skcontrast.encoders, an instance of torch.nn.Module or a callable that returns one, got "
        f"{encoder!r} of type {type(encoder).__name__}."
    )


def _default_encoder(sample_shape):
    if kind_of(sample_shape) == GRAPHS:
        return GIN()
    if len(sample_shape) == 1:
        return MLP()
    side = max(sample_shape[-2:])
    if side <= 32:
        return ConvNet()
    return ResNet(depth=18, stem="imagenet" if side > 64 else "cifar")


def _checked_module(module, source):
    if not isinstance(module, nn.Module):
        raise TypeError(
            f"{source} must return an instance of torch.nn.Module, got {module!r} of type "
            f"{type(module).__name__}."
        )
    return module


def _width_of(module, sample_shape, name):
    """Return the width of the module's output, learnt from a batch of two zero samples."""
    is_graph = kind_of(sample_shape) == GRAPHS
    try:
        output = _dry_run(module, _zeros(sample_shape))
    except Exception as error:
        samples = f"samples of shape {sample_shape}"
        if is_graph:
            samples = f"graphs with {sample_shape[1]} node features, as (x, edge_index, batch)"
        raise ValueError(f"The encoder {name} failed on {samples}: {error}") from error
    if not isinstance(output, torch.Tensor):
        found = f"a {type(output).__name__}"
    elif output.ndim != 2 or len(output) != 2 or output.shape[1] == 0:
        found = f"a tensor of shape {tuple(output.shape)}"
    elif not output.is_floating_point():
        found = f"a tensor of dtype {output.dtype}"
    else:
        return output.shape[1]
    batch = "of two graphs" if is_graph else f"of shape {(2, *sample_shape)}"
    raise ValueError(
        f"The encoder {name} must map a batch {batch} to a floating tensor of shape (2, width), "
        f"got {found}."
    )


def _zeros(sample_shape):
    """Return a batch of two samples of zeros; as graphs, paths of three and of two nodes."""
    if kind_of(sample_shape) != GRAPHS:
        return torch.zeros(2, *sample_shape)
    edges = torch.tensor([[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]])
    topology = Topology.from_edges(edges, torch.tensor([0, 3, 5]), True)
    return GraphBatch(topology, torch.zeros(5, sample_shape[1]))


def _dry_run(module, batch):
    """Return the output for a batch; modes, statistics and random state stay as found.

    Only lazy layers, which draw their weights here, advance the random state.
    """
    training = {part: part.training for part in module.modules()}
    lazy = any(is_lazy(parameter) for parameter in module.parameters())
    module.eval()
    try:
        with torch.random.fork_rng(devices=[], enabled=not lazy), torch.no_grad():
            return module(batch)
    finally:
        for part, mode in training.items():
            part.training = mode
