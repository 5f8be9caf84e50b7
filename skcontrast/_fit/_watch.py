"""Callbacks that watch a fit: collapse, divergence, progress, and scikit-learn's callbacks."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from skorch import NeuralNet
from skorch.callbacks import Callback
from torch import nn
from tqdm import tqdm

from .._data._arrays import spectral_rank
from .._inference import encode_batches
from .._model._defaults import default_encoder
from .._model._model import Model
from .._model._settings import Settings, encoders_of
from .._warnings import CollapseWarning, progress, say, warn
from ..callbacks import Evaluation

# Samples of which the effective rank is computed.
_SAMPLES = 128
# A representation has collapsed if its effective rank is below this value and has halved.
_LOWEST_RANK = 2.0
# Fewer samples may have equal representations by chance, such as two images of one colour.
_FEWEST_EQUAL = 4


class CollapseCheck(Callback):
    """Warns if the representation collapses, after epochs 1, 2, 4, 8, … and the last.

    The effective rank of the representations of samples in the first batch is compared with that
    before the training, because few features, few samples or equal samples have a low rank
    anyway. At the end of a first fit, it also warns if all representations are equal.
    """

    def on_train_begin(self, net: Any, **kwargs: Any) -> None:
        """Reset the state of an earlier fit."""
        self.rows_: Any = None
        self.rank_, self.warned_ = np.nan, False

    def on_batch_begin(self, net: Any, batch: Any = None, **kwargs: Any) -> None:
        """Choose samples of the first batch, and compute the rank of their embeddings."""
        if self.rows_ is None:
            self.rows_ = batch.rows[:_SAMPLES].cpu()
            if net.max_epochs > 1 or _is_due(net):
                self.rank_ = _rank_of(_encoded(net, self.rows_))

    def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
        """Warn once if the rank has become low, or all embeddings are equal at the end."""
        if self.warned_ or not _is_due(net):
            return
        h = _encoded(net, self.rows_)
        rank = _rank_of(h) if self.rank_ >= 1 else np.nan
        if rank < min(_LOWEST_RANK, self.rank_ / 2):
            self.warned_ = True
            warn(
                f"The representation has collapsed in or before epoch {len(net.history)}: nearly "
                f"all samples are alike (effective rank {rank:.1f}). Lower 'lr' or "
                "'weight_decay', use a different 'optimizer' or batch norm in 'encoder'.",
                CollapseWarning,
            )
        elif _ends_first_fit(net) and _are_equal(h) and _are_equal(_encoded(net)):
            self.warned_ = True
            warn(
                "The representation is the same for all samples: the fit has learned nothing. "
                "Check that the rows of X differ, and that 'encoder' does not end in a constant, "
                "such as a ReLU of negative inputs.",
                CollapseWarning,
            )


def _ends_first_fit(net: Any) -> bool:
    """Return whether the epoch is the last of a fit that continues no other."""
    return net.first_epoch_ == 0 and (net.is_last_epoch or net.settings.one_epoch)


def _are_equal(h: torch.Tensor) -> bool:
    """Return whether all rows are equal, of which there are enough."""
    return len(h) >= _FEWEST_EQUAL and bool((h == h[0]).all())


def _is_due(net: Any) -> bool:
    """Return whether the epoch's number is a power of 2, or the epoch is the last."""
    epoch = len(net.history)
    return epoch & (epoch - 1) == 0 or net.is_last_epoch


def _encoded(net: Any, rows: torch.Tensor | None = None) -> torch.Tensor:
    """Return the representations of rows of X, on the CPU; for None, of rows all over X."""
    sampler = net.sampler_
    samples = sampler.samples(_SAMPLES) if rows is None else sampler.source.take(rows)
    h = encode_batches(net.module_.encoder, [samples])
    net.module_.train()
    return h.cpu()


def _rank_of(h: torch.Tensor) -> float:
    """Return the effective rank of representations, NaN if they are not finite."""
    return spectral_rank(h.double().numpy()) if bool(h.isfinite().all()) else np.nan


# Training samples that are embedded after the last step.
_SAMPLES_CHECKED = 16


def check_epoch(epoch: int, losses: Sequence[float], network: nn.Module) -> None:
    """Raise ValueError if a loss of an epoch, or a weight at its end, is not finite.

    Parameters
    ----------
    epoch : int
        The number of the epoch, from 1.
    losses : sequence of float
        The loss of each step.
    network : Network
        The trained network.
    """
    values = [t for t in network.state_dict().values() if isinstance(t, torch.Tensor)]
    state = [t.sum() for t in values if t.is_floating_point()]
    if not (np.isfinite(losses).all() and bool(torch.stack(state).isfinite().all())):
        raise _divergence_error(epoch, "loss or weights")


def check_trained_embeddings(net: Any) -> None:
    """Raise ValueError if the embedding of a training sample is not finite after the last step.

    The last loss is computed before the last step, and weights may be huge but finite.

    Parameters
    ----------
    net : ContrastiveNet
        A net at the end of the training.
    """
    h = encode_batches(net.module_.encoder, [net.sampler_.samples(_SAMPLES_CHECKED)])
    z = encode_batches(net.module_.projector, [h])
    if not bool(h.isfinite().all() & z.isfinite().all()):
        raise _divergence_error(len(net.history), "embeddings")


def _divergence_error(epoch: int, what: str) -> ValueError:
    """Return the error of a fit whose losses, weights or embeddings are not finite."""
    return ValueError(
        f"Training diverged in epoch {epoch}: {what} are not finite. Lower 'lr' or 'weight_decay',"
        " raise the similarity's 'temperature', or check that 'encoder', 'augmentation', a custom "
        "'loss' and 'similarity' return finite values, and that 'sample_weight' is not huge."
    )


# The first steps, which allocate and compile, are skipped; the median of the next is robust to a
# busy machine.
_WARM_UP, _STEPS = 3, 10
# With verbose=1, a fit of at least these seconds is announced; a longer one is warned of.
_LONG, _TOO_LONG = 10.0, 3600.0


class LongFit(Callback):
    """Prints the expected time of a long fit, measured in its first steps."""

    def on_train_begin(self, net: NeuralNet, **kwargs: Any) -> None:
        """Reset the times of an earlier fit."""
        self.times_: list[float] = []

    def on_batch_end(self, net: Any, **kwargs: Any) -> None:
        """Print the expected time once."""
        self.times_.append(time.perf_counter())
        if len(self.times_) != _WARM_UP + _STEPS:
            return
        seconds = float(np.median(np.diff(self.times_[_WARM_UP - 1 :])))
        n_steps, n_epochs = len(net.sampler_), net.max_epochs - net.epoch_
        total = seconds * n_steps * n_epochs
        text = f"about {tqdm.format_interval(total)} for {n_epochs} epochs of {n_steps} steps"
        text = f"{net.settings.owner}: {text}, {seconds:.2g} s each"
        if total >= _TOO_LONG:
            warn(f"{text}. Lower 'max_epochs', or pass smaller samples or a smaller encoder.")
        elif net.settings.verbose and total >= _LONG:
            say(text)


class ProgressBar(Callback):
    """Prints a line on the data and the network, a bar over epochs, and a line with scores."""

    def on_train_begin(self, net: Any, **kwargs: Any) -> None:
        """Print the data and the network, and show the bar."""
        say(describe_fit(net.settings, net.model, len(net.sampler_.source)))
        options = {"unit": "epoch", "desc": net.settings.owner, "leave": False}
        self.bar_ = progress(total=net.max_epochs, is_asked_for=True, **options)

    def on_epoch_end(self, net: NeuralNet, **kwargs: Any) -> None:
        """Show the loss and the latest scores."""
        shown = {"loss": net.history[-1, "train_loss"]}
        for _, callback in net.callbacks_:
            if isinstance(callback, Evaluation):
                shown |= callback.scores_
        postfix = {name: f"{value:.4f}" for name, value in shown.items()}
        self.bar_.set_postfix(postfix, refresh=False)
        self.bar_.update(net.epoch_ + 1 - self.bar_.n)

    def on_train_end(self, net: Any, **kwargs: Any) -> None:
        """Print the time, the last loss and the scores."""
        self.bar_.close()
        time_taken = tqdm.format_interval(self.bar_.format_dict["elapsed"])
        text = f"{self.bar_.n} of {self.bar_.total} epochs in {time_taken}"
        scores = getattr(self.bar_, "postfix", None)  # a bar that is not shown may have none
        say(f"{net.settings.owner}: {text}. {scores or ''}")


def describe_fit(settings: Settings, model: Model, n_samples: int) -> str:
    """Return a line on the data, the encoder, its size, the device and the number of threads."""
    # Pretrained networks describe their preprocessing.
    names = [m.description for m in model.network.modules() if hasattr(m, "description")]
    # Of several modalities, the first.
    schema = (model.schema.modalities or [model.schema])[0]
    encoder = encoders_of(settings.encoder)[0]
    encoder = default_encoder(schema.kind, schema.sample_shape) if encoder is None else encoder
    name = names[0] if names else getattr(encoder, "__name__", None)
    named = model.network.encoder.named_parameters()
    n_parameters = sum(values.numel() for name, values in named if "original." not in name)
    threads = f", threads: {torch.get_num_threads()}" if settings.device.type == "cpu" else ""
    return (
        f"{settings.owner}: {n_samples:,} {schema.kind.name} of shape "
        f"{schema.sample_shape}; {name or type(encoder).__name__}, {n_parameters:,} parameters, "
        f"{model.widths.representation} components; {settings.device}{threads}"
    )


class Epochs(Callback):
    """Reports a fit to the callbacks of scikit-learn, as a task whose subtasks are epochs.

    Parameters
    ----------
    X, y : array-like or Views, array-like
        The arguments of `fit` for the callbacks; without y, -1 for each sample.
    """

    def __init__(self, X: Any, y: Any):
        self.X, self.y = X, y

    def on_train_begin(self, net: Any, **kwargs: Any) -> None:
        """Begin the fit."""
        self.fit = net.estimator._init_callback_context(max_subtasks=net.max_epochs)
        self.fit.call_on_fit_task_begin(**self._data(net))

    def on_epoch_begin(self, net: Any, **kwargs: Any) -> None:
        """Begin an epoch."""
        self.epoch = self.fit.subcontext("epoch").call_on_fit_task_begin(**self._data(net))

    def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
        """End an epoch, and the training if a callback asks for it."""
        if self.epoch.call_on_fit_task_end(**self._data(net)):
            net.stop()

    def on_train_end(self, net: Any, **kwargs: Any) -> None:
        """End the fit."""
        self.fit.call_on_fit_task_end(**self._data(net))

    def _data(self, net: Any) -> dict[str, Any]:
        """Return the arguments of callbacks; a function returns a fitted embedder on demand."""
        fitted = {"reconstruction_attributes": lambda: vars(net.as_estimator())}
        return {"estimator": net.estimator, "X": self.X, "y": self.y, **fitted}
