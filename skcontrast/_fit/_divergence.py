"""A training whose losses, weights or embeddings are not finite ends with an error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from .._network._inference import encode_batches

# Training samples that are embedded after the last step.
_SAMPLES_CHECKED = 16


def check_epoch(epoch: int, losses: Sequence[float], network: nn.Module) -> None:
    """Raise ValueError if a loss of an epoch, or a weight after it, is not finite.

    Parameters
    ----------
    epoch : int
        Counted from 1.
    losses : sequence of float
        Of each step.
    network : Network
        What is trained.
    """
    state = [t.sum() for t in network.state_dict().values() if t.is_floating_point()]
    if not (np.isfinite(losses).all() and bool(torch.stack(state).isfinite().all())):
        raise _diverged(epoch, "loss or weights")


def check_embeddings(epoch: int, network: Any, X: Any, scaler: Any, device: torch.device) -> None:
    """Raise ValueError if the last step has made the embedding of a training sample infinite.

    The loss of a step is that of the weights before it, and huge weights are still finite.

    Parameters
    ----------
    epoch : int
        The last one, counted from 1.
    network : Network
        What was trained.
    X : array-like of length n_samples
        The training samples.
    scaler : Scaler
        What turns them into tensors.
    device : torch.device
        Where the network is.
    """
    some = X[:: -(-len(X) // _SAMPLES_CHECKED)]
    h = encode_batches(network.encoder, [scaler.to_tensor(some, device)])
    z = encode_batches(network.projector, [h])
    if not bool(h.isfinite().all() & z.isfinite().all()):
        raise _diverged(epoch, "embeddings")


def _diverged(epoch: int, what: str) -> ValueError:
    """Return the error of a fit in which something is not finite after an epoch."""
    return ValueError(
        f"Training diverged in epoch {epoch}: {what} are not finite. Lower 'lr' or "
        "'weight_decay', raise the similarity's 'temperature', or check that 'encoder' and "
        "'augmentation' return finite values, and that 'sample_weight' is not huge."
    )
