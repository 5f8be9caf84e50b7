"""Everything that a training step needs to know, epoch by epoch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from .._distributed._world import World
from .._runtime._random import LayerDraws
from ..frameworks import FitContext
from ..losses import Loss
from ..schedules import Schedule, at_progress
from ..similarity import Similarity
from ._estimated_parameters import AutoParameters
from ._settings import Settings, epoch_progress


@dataclass(frozen=True, kw_only=True)
class Plan(FitContext):
    """Everything that a training step needs to know: the `FitContext` of frameworks, and the rest.

    Attributes
    ----------
    settings : Settings
        The user's parameters, checked; loss and similarity may hold schedules.
    draw : callable
        ``draw(batch, generator)`` returns one view of each sample of a batch.
    first_epoch : int
        The epoch in the schedules at which training starts.
    lr_schedule : Schedule or None
        Factor on the learning rate by progress; None keeps it constant.
    seed : int
        Seeds the generators of every epoch together with the epoch's number, so that a resumed
        fit does not repeat the draws of earlier epochs.
    layer_draws : LayerDraws
        What the network draws from torch's global generators, as dropout does.
    domains : Tensor of shape (n_samples,), dtype int64, or None
        Numbers of the domains of all samples; each batch is of one.
    world : World or None
        The processes that share the fit; None if there is one.
    """

    settings: Settings
    draw: Callable[..., Any]
    first_epoch: int
    lr_schedule: Schedule | None
    seed: int
    layer_draws: LayerDraws
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
        given = self.settings
        progress = epoch_progress(self.first_epoch + epoch, given.max_epochs)
        values = {
            f"{role}__{name}": value(progress)
            for role, piece in (("loss", given.loss), ("similarity", given.similarity))
            for name, value in piece.get_params().items()
            if isinstance(value, Schedule)
        }
        values.update((f"loss__{name}", value) for name, value in auto.values.items())
        loss: Any = at_progress(auto.apply_to(given.loss), progress)
        return loss, at_progress(given.similarity, progress), values

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
