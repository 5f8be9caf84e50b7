"""What a training step needs to know beside the network, epoch by epoch."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .._distributed._world import World
from .._parameters import Schedule, at_progress
from ._estimated_parameters import AutoParameters


@dataclass
class Plan:
    """What a training step needs to know beside the network.

    Attributes
    ----------
    framework, loss, similarity : parameter objects
        Validated; may hold schedules.
    draw : callable
        ``draw(batch, generator)`` returns one view of each sample of a batch.
    n_samples, n_views, batch_size : int
        Samples of the fit; views per sample; the most samples per step.
    width : int
        Of the network's output.
    lr_schedule : Schedule or None
        Factor on the learning rate by progress.
    seed : int
        Every epoch draws from generators seeded by it and by the epoch's number, so that a fit
        that goes on later repeats nothing.
    n_epochs : int
        Length of the schedules.
    epochs_before : int
        How many epochs the network has been trained for before.
    first_epoch : int
        Where in the schedules training starts.
    seeds_layers : bool
        Whether the network draws from torch's global generators, as dropout does.
    auto : AutoParameters
        Those hyperparameters of the loss that are read off the data.
    bf16 : bool
        Whether the network computes in bfloat16 where that is safe; the loss never does.
    compile : bool
        Whether the network is compiled.
    world : World or None
        The processes that share the fit, where they are several.
    """

    framework: object
    loss: object
    similarity: object
    draw: object
    n_samples: int
    n_views: int
    batch_size: int
    width: int
    lr_schedule: Schedule | None
    seed: int
    n_epochs: int
    auto: AutoParameters
    bf16: bool = False
    compile: bool = False
    world: World | None = None
    epochs_before: int = 0
    first_epoch: int = 0
    seeds_layers: bool = True
    schedules: dict = field(init=False)

    def __post_init__(self):
        self.schedules = {
            f"{role}__{name}": value
            for role in ("loss", "similarity")
            for name, value in getattr(self, role).get_params().items()
            if isinstance(value, Schedule)
        }

    def at(self, epoch):
        """Return loss, similarity and what is not constant in them, at an epoch of this fit."""
        progress = epoch_progress(self.first_epoch + epoch, self.n_epochs)
        values = {name: schedule(progress) for name, schedule in self.schedules.items()}
        values.update((f"loss__{name}", value) for name, value in self.auto.values.items())
        loss = at_progress(self.auto.apply_to(self.loss), progress)
        return loss, at_progress(self.similarity, progress), values

    def seeds(self, epoch):
        """Return seeds for the order of the samples, the views and the layers (dropout)."""
        sequence = np.random.SeedSequence([self.seed, self.epochs_before + epoch])
        order, views, layers = (int(s) for s in sequence.generate_state(3))
        # The layers of each rank have other rows before them.
        return order, views, layers + (0 if self.world is None else self.world.rank)


def epoch_progress(epoch, n_epochs):
    """Return the progress of an epoch: 0 at the first of several, 1 at the last."""
    return min(epoch / max(1, n_epochs - 1), 1.0)
