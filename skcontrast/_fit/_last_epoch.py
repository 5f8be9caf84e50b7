"""The last finished epoch of a fit, kept in memory and in the checkpoint if there is one."""

from __future__ import annotations

from typing import Any

from .._data._batches import TrainingSet
from ._checkpoint import Checkpoint
from ._net import ContrastiveNet
from ._training_state import capture, restore


class LastEpoch:
    """The state at the end of the last finished epoch of a fit, to which an interrupt returns.

    Parameters
    ----------
    checkpoint : Checkpoint or None
        Where it is written as well, and what the fit resumes from.
    """

    def __init__(self, checkpoint: Checkpoint | None = None):
        self.checkpoint = checkpoint
        self.state: dict[str, Any] | None = None

    def begin(self, net: ContrastiveNet, data: TrainingSet) -> int:
        """Resume from the checkpoint if it has a state; return how many epochs are left."""
        self.data = data
        if self.checkpoint is not None and self.checkpoint.state is not None:
            self.state = self.checkpoint.restore(net, data)
        elif len(net.history):
            self.state = capture(net, data)
        return max(0, net.first_epoch_ + net.max_epochs - len(net.history))

    def is_over(self, net: ContrastiveNet, data: TrainingSet) -> bool:
        """Return whether the fit has been finished before; then its end is restored."""
        if self.checkpoint is None or not self.checkpoint.is_finished:
            return False
        self.checkpoint.restore(net, data)
        return True

    def end_epoch(self, net: ContrastiveNet) -> None:
        """Keep the state of an epoch that is finished, callbacks included."""
        self.state = capture(net, self.data)
        if self.checkpoint is not None and self.checkpoint.is_due(net.epoch_):
            self.checkpoint.write(net, self.state)

    def go_back(self, net: ContrastiveNet) -> None:
        """Return to the last finished epoch, if there is one, and write it.

        An epoch whose steps are done is finished, even if not all callbacks have heard of it. A
        resumed fit repeats it, so that they do.
        """
        if self.state is None:
            return
        if "train_loss" not in net.history[-1]:
            restore(net, self.data, self.state)
        if self.checkpoint is not None and len(net.history) > net.first_epoch_:
            self.checkpoint.write(net, self.state, is_interrupted=True)

    def finish(self, net: ContrastiveNet) -> None:
        """Write the state at the end of the fit, of which nothing is left to do."""
        if self.checkpoint is not None:
            self.checkpoint.write(net, capture(net, self.data), is_finished=True)
