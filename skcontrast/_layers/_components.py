"""Counts as a few numbers that all vary alike."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import torch
from scipy.linalg import hadamard
from torch import Tensor, nn

# Components that vary less, relative to the first, are rounding.
_LEAST_SPREAD = 1e-4


class Components(nn.Module):
    """Principal components of counts, rotated so that every column varies alike.

    Distances and linear models are as before; but a scaler of columns does not blow up the last
    components, and so does not undo the weights of blocks.

    Parameters
    ----------
    block : torch.nn.Module
        Maps a batch to counts (n, d).
    mean : Tensor of shape (d,)
        The mean of the counts.
    axes : Tensor of shape (d, w)
        What the centred counts are multiplied by.
    """

    mean: Tensor
    axes: Tensor

    def __init__(self, block: nn.Module, mean: Tensor, axes: Tensor):
        super().__init__()
        self.block = block
        self.register_buffer("mean", mean)
        self.register_buffer("axes", axes)

    @classmethod
    @torch.no_grad()
    def of(cls, block: nn.Module, batch: Any, most: int = 256) -> Self:
        """Return the components, at most so many, of what a block returns for training samples."""
        from sklearn.decomposition import PCA

        found = block(batch)
        counts = found.cpu().numpy()
        with np.errstate(invalid="ignore"):  # equal rows have no variance to take shares of
            pca = PCA(min(most, *counts.shape), random_state=0).fit(counts)
        spread = np.sqrt(pca.explained_variance_)
        n_kept = max(1, int((spread > _LEAST_SPREAD * spread[0]).sum()))
        # The entries of Hadamard's matrix are ±1: each column is a sum of all components.
        width = 1 << (n_kept - 1).bit_length()
        axes = pca.components_[:n_kept].T @ hadamard(width)[:n_kept] / np.sqrt(width)
        return cls(block, found.mean(0), torch.from_numpy(axes).to(found))

    def forward(self, x: Any) -> Tensor:
        """Map n samples to (n, w)."""
        return (self.block(x) - self.mean) @ self.axes
