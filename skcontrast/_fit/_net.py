"""The net of skorch: its training step draws views, encodes, contrasts and updates."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
import torch
from skorch import NeuralNet
from skorch.callbacks import Callback, EpochTimer, PassthroughScoring
from skorch.history import History
from torch import Tensor, nn

from .._data._batches import Batch, BatchSampler
from .._network._inference import encode_batches
from .._objective._functional import Contrast, objective_value
from .._runtime import draws_random_numbers, recorded_interrupts, seeded_rng
from ..frameworks import FitContext, Session
from ..frameworks._checks import as_contrasts, check_contrasts, new_session
from ._estimated_parameters import AutoParameters
from ._label_spreading import LabelSpreader
from ._processes import Processes
from ._settings import Settings, epoch_progress
from ._setup import Fitted
from ._watch import CollapseCheck, check_epoch

if TYPE_CHECKING:
    from ._checkpoint import EpochState

# What a framework returns is checked in the first step, and in the next, when a memory has filled.
_STEPS_CHECKED = 2


class ContrastiveNet(NeuralNet):
    """skorch's history and callbacks around a loop of contrastive training steps.

    Parameters
    ----------
    settings : Settings
        The user's parameters, checked; loss and similarity may hold schedules.
    setup : Fitted
        What the training starts from.
    context : FitContext
        The fit's context for the framework's session.
    sampler : BatchSampler
        The training samples.
    auto : AutoParameters
        The hyperparameters that are "auto".
    spreader : LabelSpreader
        Completes the labels.
    epoch_state : EpochState
        Keeps the state at the end of each epoch.
    processes : Processes
        Those that train the network.
    owner : ContrastiveEmbedder
        Makes copies of itself that are fitted, for callbacks; never changed.
    **kwargs : dict
        Parameters of ``skorch.NeuralNet``.

    Attributes
    ----------
    draw : callable
        ``draw(batch, generator)`` returns one view of each sample of a batch.
    generator : torch.Generator
        For the views, on the device.
    draws : bool
        Whether the network draws from torch's global generators, as dropout does. Each step seeds
        them; between the steps, other threads have theirs.
    interrupted_ : bool
        Whether the user has interrupted the training.
    """

    def __init__(
        self,
        settings: Settings,
        setup: Fitted,
        context: FitContext,
        sampler: BatchSampler,
        auto: AutoParameters,
        spreader: LabelSpreader,
        epoch_state: EpochState,
        processes: Processes,
        owner: Any,
        **kwargs: Any,
    ):
        self.settings, self.setup, self.context, self.sampler_ = settings, setup, context, sampler
        self.auto, self.spreader, self.epoch_state = auto, spreader, epoch_state
        self.processes, self.owner = processes, owner
        self.generator = torch.Generator(device=settings.device)
        self.draw = setup.composed(setup.augmentation, settings.device)
        self.draws = settings.framework.draws_random_numbers or draws_random_numbers(setup.network)
        self.interrupted_ = False
        super().__init__(
            setup.network,
            criterion=Session,
            lr=settings.lr,
            max_epochs=1 if settings.one_epoch else settings.max_epochs,
            device=settings.device,
            **kwargs,
        )

    @property
    def _default_callbacks(self) -> list[tuple[str, Callback]]:
        loss = PassthroughScoring(name="train_loss", on_train=True)
        collapse = CollapseCheck()
        return [("epoch_timer", EpochTimer()), ("train_loss", loss), ("collapse_check", collapse)]

    @property
    def is_last_epoch(self) -> bool:
        """Whether the epoch is the last of the `max_epochs` of a fit."""
        return self.epoch_ + 1 == self.settings.max_epochs

    def as_estimator(self) -> Any:
        """Return a fitted embedder, a copy of what has been learned so far, to be judged."""
        rows = History({**row, "batches": []} for row in self.history)
        fitted = replace(
            self.setup,
            network=copy.deepcopy(self.module_).eval(),
            history=rows,
            estimates=dict(self.auto.values),
            n_samples=self.sampler_.n_samples,
        )
        return self.owner._as_fitted(fitted)

    def stop(self) -> None:
        """Stop the training when all callbacks have ended the epoch."""
        self.is_stopped_ = True

    def initialize_criterion(self) -> Self:
        """Start the framework's session, which takes the place of skorch's criterion."""
        self.criterion_ = new_session(self.settings.framework, self.context)
        return self

    def get_all_learnable_params(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Yield the parameters of the network, and of the session those with a gradient."""
        yield from self.module_.user_named_parameters()
        for name, parameter in self.criterion_.named_parameters():
            if parameter.requires_grad:
                yield f"framework.{name}", parameter

    def learned_parameters(self) -> list[nn.Parameter]:
        """Return the parameters without their names, always in the same order."""
        return [parameter for _, parameter in self.get_all_learnable_params()]

    def initialize_optimizer(self, triggered_directly: Any = None) -> Self:
        """Build the optimizer, whose groups match the names of the parameters."""
        named, given = self.get_all_learnable_params(), self.settings
        build = given.grouped_optimizer.build
        self.optimizer_ = build(named, lr=given.lr, weight_decay=given.weight_decay)
        self.base_lr_ = [group["lr"] for group in self.optimizer_.param_groups]
        return self

    def get_iterator(self, dataset: BatchSampler, training: bool = False) -> BatchSampler:
        """Return the batches of an epoch, for callbacks that count them."""
        return dataset

    def on_epoch_begin(self, net: NeuralNet, dataset_train: Any = None, **kwargs: Any) -> None:
        """Resolve the schedules and seed the epoch's generators."""
        super().on_epoch_begin(net, dataset_train=dataset_train, **kwargs)
        self.epoch_ = len(self.history) - 1 - self.first_epoch_
        # skorch keeps a row for each batch, of which nobody reads those of earlier epochs.
        if self.epoch_:
            self.history[-2]["batches"].clear()
        settings, context, epoch = self.settings, self.context, self.first_epoch_ + self.epoch_
        # Schedules count all epochs in partial_fit, and in fit those of this call.
        progress = epoch_progress(
            epoch if settings.one_epoch else self.epoch_, settings.max_epochs
        )
        pieces = self.auto.at(settings.loss, settings.similarity, progress)
        self.loss_, self.similarity_, values = pieces
        for name, value in values.items():
            self.history.record(name, value)
        # Seeds depend on the epoch alone: a resumed fit draws what one without a break would.
        # Processes draw the same batches, and each the views of its samples.
        order, _, _, memory = epoch_seeds(settings.seed, epoch)
        _, views, layers, _ = epoch_seeds(settings.seed, epoch, self.processes.rank)
        self.sampler_.generator.manual_seed(order)
        context.generator.manual_seed(memory)
        self.generator.manual_seed(views)
        self.layer_seed_ = layers
        self.auto.start_epoch(epoch)
        self._complete_labels(epoch)
        self.step_ = 0

    def _complete_labels(self, epoch: int) -> None:
        """Assign pseudo-labels for the loss or for estimates, if either is due."""
        spreader, settings, sampler = self.spreader, self.settings, self.sampler_
        is_for_loss = spreader.is_due(epoch, is_first=self.epoch_ == 0)
        is_for_estimates = spreader.has_some_labels and bool(self.auto.due)
        if not (is_for_loss or is_for_estimates):
            return
        # One pass over all samples serves both: estimates take shares, the loss takes classes.
        self.processes.n_rows = sampler.n_samples
        h = encode_batches(self.module_.encoder, sampler.in_order(settings.batch_size))
        h = self.processes.whole(h[None])[0]
        spread = spreader.spread(h, [settings.seed, epoch])
        if is_for_estimates:
            self.auto.take_shares(spreader.shares(spread))
        if is_for_loss:
            labels = spreader.complete(spread)
        elif settings.loss.requires_y:
            return
        else:
            # No loss reads them: estimates get classes drawn by how probable they are.
            labels = spreader.draw(spread)
        sampler.metadata["labels"] = labels.to(sampler.device)

    def on_epoch_end(self, net: NeuralNet, **kwargs: Any) -> None:
        """Record the learning rate, check for divergence and make the due estimates."""
        self.processes.average_statistics(self.module_, self.criterion_)
        self.history.record("lr", self.optimizer_.param_groups[0]["lr"])
        losses = [batch["train_loss"] for batch in self.history[-1]["batches"]]
        check_epoch(len(self.history), losses, self.module_)
        self.auto.end_epoch(self.loss_)
        super().on_epoch_end(net, **kwargs)

    def notify(self, method_name: str, **kwargs: Any) -> None:
        """Notify the callbacks, which stop the training by a KeyboardInterrupt, as in skorch."""
        try:
            super().notify(method_name, **kwargs)
        except KeyboardInterrupt:
            self.stop()
            raise

    def fit_loop(
        self, X: BatchSampler, y: Any = None, epochs: int | None = None, **kwargs: Any
    ) -> Self:
        """Run the epochs that are left; after an interrupt, keep only the finished ones."""
        # A callback may have loaded a checkpoint, and with it the history of earlier epochs.
        self.is_stopped_, self.first_epoch_ = False, len(self.history)
        told = {"dataset_train": X, "dataset_valid": None}
        end = self.first_epoch_ + self.max_epochs
        with recorded_interrupts() as interrupts:
            try:
                self.epoch_state.resume(self)
                while len(self.history) < end and not self.is_stopped_:
                    self.notify("on_epoch_begin", **told)
                    self._run_steps(X)
                    self.notify("on_epoch_end", **told)
                    self.is_stopped_ = self.processes.in_any(self.is_stopped_)
                    self.epoch_state.keep(self)
                    if interrupts:  # by code that has ignored the exception
                        raise KeyboardInterrupt
            except KeyboardInterrupt:
                self.interrupted_ = bool(interrupts) or not self.is_stopped_
                # An epoch whose steps are done is finished, if not all callbacks have heard of it.
                if not len(self.history) or "train_loss" not in self.history[-1]:
                    self.epoch_state.go_back(self)
                elif not self.interrupted_:
                    self.epoch_state.keep(self)
        return self

    def _run_steps(self, sampler: BatchSampler) -> None:
        """Run the steps of an epoch; unlike skorch, do not wait for the device after each."""
        rows = self.history[-1]["batches"]
        with closing(iter(sampler)) as batches:
            for batch in batches:
                self.notify("on_batch_begin", batch=batch, training=True)
                step = self.train_step(batch)
                self.history.record_batch("train_loss", step["loss"].detach())
                self.history.record_batch("train_batch_size", self.processes.n_rows)
                self.notify("on_batch_end", batch=batch, training=True, **step)
        # Read once, at the end: to read a loss is to wait for the device.
        losses = torch.stack([row["train_loss"] for row in rows]).tolist()
        for row, loss in zip(rows, losses, strict=True):
            row["train_loss"] = loss
        self.history.record("train_batch_count", len(rows))

    def train_step(self, batch: Batch, **fit_params: Any) -> dict[str, Any]:
        """Take a step of the optimizer, then update the framework's session."""
        seed = self.layer_seed_ + self.step_
        with seeded_rng(seed, self.settings.device) if self.draws else nullcontext():
            step = super().train_step(batch, **fit_params)
            self.criterion_.update()
        return step

    def train_step_single(self, batch: Batch, **fit_params: Any) -> dict[str, Any]:
        """Draw views, encode and contrast them, and compute the gradient of the loss."""
        self._set_training(True)
        framework = self.settings.framework
        self.processes.begin_step(len(cast(Tensor, batch.rows)))
        self._set_lr()
        views = [self.draw(batch.x, self.generator) for _ in range(self.context.n_views)]
        returned = self.criterion_.contrast(views, self.similarity_, batch)
        contrasts = as_contrasts(returned, framework)
        # What users wrote is checked on the first batches, not on every one.
        if self.epoch_ == 0 and self.step_ < _STEPS_CHECKED:
            check_contrasts(contrasts, batch, framework, self.similarity_)
        loss = self._mean_loss(contrasts)
        loss.backward()
        loss = self.processes.sum_gradients(loss, self.learned_parameters())
        self.step_ += 1
        return {"loss": loss, "y_pred": None}

    def _mean_loss(self, contrasts: Sequence[Contrast]) -> Tensor:
        """Return the mean loss of the anchors of all contrasts, or this process's share of it."""
        parts, n_anchors = [], sum(len(c.anchors) for c in contrasts)
        objective, same_group = self.criterion_.objective, self.settings.same_group
        for contrast in contrasts:
            self.auto.observe(contrast, self.similarity_)
            own = self.processes.own_anchors(contrast, self.settings.framework)
            value = objective_value(own, self.loss_, self.similarity_, objective, same_group)
            part = len(own.anchors) / n_anchors
            parts.append(value if part == 1 else value * part)
        return sum(parts[1:], start=parts[0])

    def _set_lr(self) -> None:
        """Set the learning rates of this step by the schedule."""
        schedule = self.settings.lr_schedule
        if schedule is None or self.settings.one_epoch:
            return
        total = self.max_epochs * len(self.sampler_)
        factor = schedule((self.epoch_ * len(self.sampler_) + self.step_) / total)
        # Groups that callbacks add keep their own rate.
        for group, lr in zip(self.optimizer_.param_groups, self.base_lr_, strict=False):
            group["lr"] = lr * factor


def epoch_seeds(seed: int, epoch: int, rank: int = 0) -> list[int]:
    """Return seeds of an epoch: for the order, the views, the layers (dropout) and the framework.

    Epochs are counted over all fits of the network, so a resumed fit repeats no draws.
    """
    return np.random.SeedSequence([seed, epoch, rank]).generate_state(4).tolist()
