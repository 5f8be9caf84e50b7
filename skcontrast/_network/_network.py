"""The trained network, encoder and projection head, and the directions of its projections."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor, nn

from ..frameworks._momentum import BATCH_NORM
from ..similarity import Similarity


class Network(nn.Module):
    """Encoder and projection head: (n, ...) → (n, projection_dim).

    Parameters
    ----------
    encoder, projector : torch.nn.Module
        The two.
    own_names : dict of str to str, default={}
        How names of parameters begin here, and how they begin for the user, who knows nothing of
        the layers around the encoder.
    """

    own_names: Mapping[str, str] = {}

    def __init__(
        self, encoder: nn.Module, projector: nn.Module, own_names: Mapping[str, str] | None = None
    ):
        super().__init__()
        self.encoder = encoder
        self.projector = projector
        self.own_names = own_names or {}

    def forward(self, x: Any) -> Tensor:
        return self.projector(self.encoder(x))

    def train(self, mode: bool = True) -> Network:
        """Switch to training or inference mode; frozen parts keep their running statistics.

        Batch normalisation in a part whose parameters all have ``requires_grad=False`` stays in
        inference mode.
        """
        super().train(mode)
        if mode and not all(parameter.requires_grad for parameter in self.parameters()):
            for part in self.modules():
                if _is_frozen(part):
                    _keep_statistics(part)
        return self

    def own_named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Yield the parameters, named as in the modules that the user knows."""
        for name, parameter in self.named_parameters():
            start = next((start for start in self.own_names if name.startswith(start)), "")
            yield self.own_names.get(start, "") + name.removeprefix(start), parameter


def _is_frozen(part: nn.Module) -> bool:
    """Return whether a module has parameters, none of which is trained."""
    parameters = list(part.parameters())
    return bool(parameters) and not any(parameter.requires_grad for parameter in parameters)


def _keep_statistics(part: nn.Module) -> None:
    """Put batch normalisation in inference mode."""
    for layer in part.modules():
        if isinstance(layer, BATCH_NORM):
            layer.eval()


class Directions(nn.Module):
    """The vectors that ``transform`` returns for projections: for most similarities, themselves.

    Parameters
    ----------
    similarity : Similarity
        Its ``directions`` is applied to each part.
    n_parts : int
        Number of projections that are side by side.
    """

    def __init__(self, similarity: Similarity, n_parts: int):
        super().__init__()
        self.similarity, self.n_parts = similarity, n_parts

    def forward(self, z: Tensor) -> Tensor:
        """Map (..., n_parts · (d + n_extra)) to (..., n_parts · d)."""
        return self.similarity.directions(z.unflatten(-1, (self.n_parts, -1))).flatten(-2)
