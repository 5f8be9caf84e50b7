"""The progress bar of a fit that is not silent."""

from __future__ import annotations

from typing import Any

import skorch
from skorch.callbacks import Callback
from tqdm.auto import tqdm

from ..callbacks import Evaluation


class ProgressBar(Callback):
    """A bar over epochs that shows the loss and the latest scores."""

    def on_train_begin(self, net: skorch.NeuralNet, **kwargs: Any) -> None:
        self.bar_ = tqdm(total=net.max_epochs, unit="epoch", desc="ContrastiveEmbedder")

    def on_epoch_end(self, net: skorch.NeuralNet, **kwargs: Any) -> None:
        shown = {"loss": net.history[-1, "train_loss"]}
        for _, callback in net.callbacks_:
            if isinstance(callback, Evaluation):
                shown |= callback.scores_
        postfix = {name: f"{value:.4f}" for name, value in shown.items()}
        self.bar_.set_postfix(postfix, refresh=False)
        self.bar_.update(net.epoch_ + 1 - self.bar_.n)

    def on_train_end(self, net: skorch.NeuralNet, **kwargs: Any) -> None:
        self.bar_.close()
