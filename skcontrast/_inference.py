"""Inference: devices, bfloat16, embeddings of batches and of two views."""

import copy
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ._data._arrays import is_lazy, row_blocks
from ._warnings import progress
from .encoders import Encoder
from .encoders._base import is_pretrained
from .kinds._base import Kind
from .kinds._recognise import naming_kind

# With fewer vectors, AVX-512 uses another kernel, whose rounding differs by more than the 1e-7
# that scikit-learn's check_methods_subset_invariance allows. Others cost too much to repeat.
_MIN_ROWS = 16


def on_device(module: nn.Module, device: torch.device) -> nn.Module:
    """Return `module` on `device`; move it only if its first parameter is elsewhere."""
    first = next(module.parameters(), None)
    return module if first is not None and first.device == device else module.to(device)


def on_cpu(state: Any) -> Any:
    """Return a module, or tensors nested in dictionaries and lists, with all tensors on the CPU.

    A module or tensor that is already there is returned without copying.
    """
    if isinstance(state, nn.Module):
        if all(t.device.type == "cpu" for t in (*state.parameters(), *state.buffers())):
            return state
        return copy.deepcopy(state).cpu()
    return map_leaves(lambda leaf: leaf.cpu() if isinstance(leaf, Tensor) else leaf, state)


def map_leaves(function: Callable[[Any], Any], state: Any) -> Any:
    """Apply a function to every leaf of nested dictionaries, lists and tuples."""
    if isinstance(state, dict):
        return {key: map_leaves(function, value) for key, value in state.items()}
    if type(state) in (list, tuple):
        return type(state)(map_leaves(function, value) for value in state)
    return function(state)


@torch.inference_mode()
def encode(module: nn.Module, X: Any, kind: Kind, to_tensor: Callable) -> np.ndarray:
    """Apply a module in inference mode to validated samples, batch by batch.

    Samples that are read while they are used show a progress bar.

    Parameters
    ----------
    module : nn.Module
        Maps (n, ...) to (n, d).
    X : array-like of length n
        Samples that their kind has validated.
    kind : Kind
        The kind of the samples, which determines the batch size.
    to_tensor : callable
        Converts rows of X to a batch for the module.

    Returns
    -------
    h : ndarray of shape (n, d), dtype float32

    Raises
    ------
    ValueError
        If the output for a sample is not finite.
    """
    with naming_kind(kind):
        n = kind.rows_per_call(X)
        bar: Any = {"unit": "batch", "total": -(-len(X) // n)}
        blocks = progress(row_blocks(X, n), "transform", disable=not is_lazy(X), **bar)
        h = encode_batches(module, map(to_tensor, blocks), "cpu")
        _check_finite_embeddings(h, X)
    return h.numpy()


def _check_finite_embeddings(h: Tensor, X: Any = None) -> None:
    """Raise ValueError if the embedding of a sample in X, a row of h, is not finite."""
    # The sum is cheaper than a test of every number, and is finite if nothing overflows.
    if h.sum().isfinite():
        return
    (rows,) = torch.nonzero(~h.flatten(1).isfinite().all(1), as_tuple=True)
    if not len(rows):
        return
    is_padded = isinstance(X, np.ndarray) and X.ndim == 3 and np.isnan(X[rows[0], 0, -1])
    advice = "rescale X as in fit, lower 'lr', or raise the similarity's 'temperature'"
    raise ValueError(
        f"The network returns NaN or infinity for {len(rows)} of {len(h)} samples, first for "
        f"X[{int(rows[0])}]: "
        f"{'let it ignore NaN, the padding of shorter series' if is_padded else advice}."
    )


@torch.inference_mode()
def encode_batches(
    module: nn.Module, batches: Iterable[Any], device: torch.device | str | None = None
) -> Tensor:
    """Return the output of a module in inference mode for batches, as one tensor in float32.

    Parameters
    ----------
    module : nn.Module
        Maps (n, ...) to (n, d).
    batches : iterable of Tensor of shape (n, ...)
        The samples, on the device of the module.
    device : torch.device or str, default=None
        The device of the result; None keeps that of the module.
    """
    module.eval()
    rows = [_apply_padded(module, batch).to(device, torch.float32) for batch in batches]
    return torch.cat(rows) if len(rows) > 1 else rows[0]


def _apply_padded(module: nn.Module, batch: Any) -> Tensor:
    """Apply a module to a batch; rows of few vectors are repeated, for equal rounding."""
    n = len(batch)
    if n >= _MIN_ROWS or not isinstance(batch, Tensor) or batch.ndim != 2:
        return module(batch)
    return module(batch[torch.arange(_MIN_ROWS, device=batch.device) % n])[:n]


# Samples that are compared with each other, and samples in a batch.
_BLOCK_SIZE = 1024
_BATCH = 256

Measure = Callable[[NDArray[np.float32], NDArray[np.float32]], float]


def score_views(measure: Measure, blocks: Iterable[NDArray[np.float32]], n_samples: int) -> float:
    """Return a measure of two views of each sample, averaged over the blocks of `embedded_views`.

    Parameters
    ----------
    measure : callable
        ``measure(z1, z2)`` compares embeddings (n, d) of two views of the same samples.
    blocks : iterable of ndarray of shape (2, n, d)
        Embeddings that `embedded_views` yields.
    n_samples : int
        Number of samples in all blocks.
    """
    return sum(len(z1) * float(measure(z1, z2)) for z1, z2 in blocks) / n_samples


@torch.inference_mode()
def embedded_views(
    network: nn.Module,
    draw: Callable[[Any, torch.Generator], Any],
    n_samples: int,
    read: Callable[[NDArray[np.int64]], Any],
    device: torch.device,
) -> Iterator[NDArray[np.float32]]:
    """Yield embeddings (2, n, d) of two views of each sample, in blocks.

    Blocks have at most 1,024 samples, differ in size by at most one, and are spread evenly over
    the samples, which may be sorted.

    Parameters
    ----------
    network : Module
        Maps samples to embeddings; in inference mode.
    draw : callable
        ``draw(batch, generator)`` returns a view of a batch.
    n_samples : int
        Number of samples.
    read : callable
        ``read(rows)`` returns the batch of these rows, on the device.
    device : torch.device
        Device of the random generator.
    """
    generator = torch.Generator(device=device).manual_seed(0)
    n_blocks = -(-n_samples // _BLOCK_SIZE)
    for block in range(n_blocks):
        rows = np.arange(block, n_samples, n_blocks)
        batches = []
        for batch_rows in np.array_split(rows, -(-len(rows) // _BATCH)):
            batch = read(batch_rows)
            z = torch.stack([network(draw(batch, generator)) for _ in range(2)]).float().cpu()
            _check_finite_embeddings(z.transpose(0, 1))
            batches.append(z.numpy())
        yield np.concatenate(batches, axis=1)


def trains_in_bf16(precision: str, kind: Kind, encoder: Any, device: torch.device) -> bool:
    """Return whether the network trains in bfloat16.

    "auto" chooses bfloat16 for the package's encoders of images, on GPUs and CPUs that have it.
    Other modules may use operations that do not support it. Pretrained networks may have depthwise
    convolutions, which are slower in it on CPUs.

    Parameters
    ----------
    precision : {"auto", "float32", "bf16"}
        The parameter of the embedder.
    kind : Kind
        The kind of the samples.
    encoder : object
        The parameter of the embedder.
    device : torch.device
        The device of the training.
    """
    encoders = encoder if isinstance(encoder, (list, tuple)) else [encoder]
    is_ours = all(item is None or isinstance(item, Encoder) for item in encoders)
    if precision != "auto" or not kind.trains_in_bf16 or not is_ours:
        return precision == "bf16"
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type != "cpu" or is_pretrained(encoder):
        return False
    # torch has no public function for this; without the private one, float32 is always right.
    return bool(getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)())


def in_bf16(network: Callable, x: Any) -> Any:
    """Return the output of a network under autocast to bfloat16.

    The output is a float32 tensor or a tuple of float32 tensors.
    """
    # If the caller is under autocast, cached weights would outlive the step; each is used once.
    with torch.autocast(x.device.type, torch.bfloat16, cache_enabled=False):
        output = network(x)
    return tuple(z.float() for z in output) if isinstance(output, tuple) else output.float()
