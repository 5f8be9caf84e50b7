"""Everything that a training step needs to know, epoch by epoch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from .._distributed._world import World
from .._objective._tile import GroupRole
from .._runtime._random import LayerDraws
from ..frameworks import FitContext, Framework
from ..losses import Loss
from ..schedules import Schedule, at_progress
from ..similarity import Similarity
from ._estimated_parameters import AutoParameters


@dataclass(frozen=True, kw_only=True)
class Plan(FitContext):
    """Everything that a training step needs to know: the `FitContext` of frameworks, and the rest.

    Attributes
    ----------
    framework, loss, similarity : parameter objects
        Validated; may hold schedules.
    draw : callable
        ``draw(batch, generator)`` returns one view of each sample of a batch.
    max_epochs : int
        Length of the schedules.
    first_epoch : int
        The epoch in the schedules at which training starts.
    lr_schedule : Schedule or None
        Factor on the learning rate by progress; None keeps it constant.
    seed : int
        Seeds the generators of every epoch together with the epoch's number, so that a resumed
        fit does not repeat the draws of earlier epochs.
    layer_draws : LayerDraws
        What the network draws from torch's global generators, as dropout does.
    same_group : {"neutral", "positive"}
        How samples of one group relate.
    domains : Tensor of shape (n_samples,), dtype int64, or None
        Numbers of the domains of all samples; each batch is of one.
    world : World or None
        The processes that share the fit; None if there is one.
    """

    framework: Framework
    loss: Loss
    similarity: Similarity
    draw: Callable[..., Any]
    max_epochs: int
    first_epoch: int
    lr_schedule: Schedule | None
    seed: int
    layer_draws: LayerDraws
    same_group: GroupRole
    domains: Tensor | None = None
    world: World | None

    def at(self, epoch: int, auto: AutoParameters) -> tuple[Loss, Similarity, dict[str, float]]:
        """Return the loss, the similarity and their varying hyperparameters at an epoch.

        Parameters
        ----------
        epoch : int
            Counted from the beginning of this fit.
        auto : AutoParameters
            The current values of the hyperparameters that are "auto".
        """
        progress = epoch_progress(self.first_epoch + epoch, self.max_epochs)
        values = {
            f"{role}__{name}": value(progress)
            for role, piece in (("loss", self.loss), ("similarity", self.similarity))
            for name, value in piece.get_params().items()
            if isinstance(value, Schedule)
        }
        values.update((f"loss__{name}", value) for name, value in auto.values.items())
        loss: Any = at_progress(auto.apply_to(self.loss), progress)
        return loss, at_progress(self.similarity, progress), values

    def seeds(self, epoch: int) -> tuple[int, int, int]:
        """Return seeds for the order of the samples, the views and the layers (dropout).

        Parameters
        ----------
        epoch : int
            Counted over all fits of the network.
        """
        sequence = np.random.SeedSequence([self.seed, epoch])
        order, views, layers = (int(s) for s in sequence.generate_state(3))
        # The layers of each rank get different rows.
        return order, views, layers + (0 if self.world is None else self.world.rank)


def epoch_progress(epoch: int, n_epochs: int) -> float:
    """Return the progress of an epoch: 0 at the first of several, 1 at the last."""
    return min(epoch / max(1, n_epochs - 1), 1.0)
