"""The training loop, as a net of skorch."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
import torch
from skorch import NeuralNet
from skorch.callbacks import Callback, EpochTimer, LRScheduler, PassthroughScoring, PrintLog
from skorch.callbacks.scoring import ScoringBase
from torch import Tensor, nn

from .._data._batches import Batch, BatchSampler, Source, is_streamed
from .._inference import encode_batches, in_bf16, trains_in_bf16
from .._label_spreading import LabelSpreader
from .._model._model import Model
from .._model._samples import TrainingData
from .._model._settings import Settings, epoch_progress
from .._objective._functional import Contrast, objective_value
from .._runtime import recorded_interrupts, seeded_rng
from .._safetensors import without_batches
from ..callbacks import Evaluation
from ..frameworks import FitContext, Session
from ..frameworks._checks import as_contrasts, check_contrasts, new_session
from ..kinds._recognise import is_custom, naming_kind
from ..schedules import Schedule
from ._estimated_parameters import AutoParameters
from ._processes import Processes
from ._watch import CollapseCheck, LongFit, ProgressBar, check_epoch

if TYPE_CHECKING:
    from ._checkpoint import EpochState

# The contrasts of a framework are checked in the first step, and in the second, because a memory
# bank is empty in the first.
_STEPS_CHECKED = 2


class ContrastiveNet(NeuralNet):
    """A loop of contrastive training steps with skorch's history and callbacks.

    Parameters
    ----------
    settings : Settings
        The user's parameters, validated; loss and similarity may have schedules.
    model : Model
        The model that is trained.
    data : TrainingData
        The training samples.
    epoch_state : EpochState
        Keeps the state at the end of each epoch.
    processes : Processes
        The processes that train the network.
    estimator : ContrastiveEmbedder
        The embedder, of which callbacks get fitted copies; not changed.
    estimates : dict of str to float
        Estimated hyperparameters of an earlier fit.

    Attributes
    ----------
    context : FitContext
        The fit's context for the framework's session.
    sampler_ : BatchSampler
        Random batches, with samples in memory or streamed.
    auto : AutoParameters
        Estimates the hyperparameters that are "auto".
    spreader : LabelSpreader
        Assigns pseudo-labels.
    draw : callable
        ``draw(batch, generator)`` returns one view of each sample of a batch.
    generator : torch.Generator
        The generator of the views, on the device.
    interrupted_ : bool
        Whether the user has interrupted the training.
    """

    def __init__(
        self,
        settings: Settings,
        model: Model,
        data: TrainingData,
        epoch_state: EpochState,
        processes: Processes,
        estimator: Any,
        estimates: dict[str, float],
    ):
        self.settings, self.model, self.epoch_state = settings, model, epoch_state
        self.processes, self.estimator = processes, estimator
        labels = data.metadata.get("labels")
        self.spreader = LabelSpreader(settings.loss.pseudo_labels(), labels)
        self.auto = AutoParameters(settings.loss, labels, estimates)
        self.sampler_, self.context = self._sampler(data), self._context(data)
        self.generator = torch.Generator(device=settings.device)
        self.draw = model.sampler(model.augmentation, settings.device).draw
        self.interrupted_ = False
        prints = any(isinstance(c, PrintLog) for c in plain_callbacks(settings.callbacks))
        super().__init__(
            model.network,
            criterion=Session,
            lr=settings.lr,
            max_epochs=1 if settings.one_epoch else settings.max_epochs,
            device=settings.device,
            callbacks=_callbacks(settings),
            verbose=prints and not processes.rank,  # PrintLog prints only if the net is verbose
        )

    def _sampler(self, data: TrainingData) -> BatchSampler:
        """Return a sampler of random batches, with samples in memory or streamed."""
        X, settings, spreader = data.X, self.settings, self.spreader
        to_tensor, device = self.model.scaler.to_tensor, settings.device
        # X is one tensor on the device, or is read in batches during training.
        if is_streamed(X, self.model.schema.kind.nbytes(X), device, settings.memory_budget):
            source = Source(X, device, to_tensor, settings.n_workers)
        else:
            source = Source(to_tensor(X, device), device)
        role, groups = settings.same_group, data.metadata.get("groups")
        domains, size = data.metadata.get("domains"), settings.batch_size
        rare = role == "correct" and groups is not None and not _meets_mates(groups, domains, size)
        return BatchSampler(
            source,
            size,
            spreader.labeled,
            spreader.labeled_share,
            pairs=groups if rare or role == "positive" else None,
            share=self.processes.share,
            **data.metadata,
        )

    def _context(self, data: TrainingData) -> FitContext:
        """Return the fit's context for the framework's session."""
        settings, widths, kind = self.settings, self.model.widths, self.model.schema.kind
        device, groups = settings.device, data.metadata.get("groups")
        bf16 = trains_in_bf16(settings.precision, kind, settings.encoder, device)

        def prepare(module: Callable, checked: Callable = lambda run: run) -> Callable:
            run = checked(partial(in_bf16, module) if bf16 else module)
            return self.processes.prepare(run, settings.framework)

        module = self.model.network.to(device)
        network = prepare(module, _checked)
        # The width counts projections and concentrations of all modalities.
        return FitContext(
            module=module,
            network=naming_kind(kind)(network) if is_custom(kind) else network,
            prepare=prepare,
            n_samples=len(data.X),
            n_views=settings.framework.n_views or settings.n_views,
            batch_size=settings.batch_size,
            width=widths.projection + widths.n_modalities * settings.similarity.n_extra,
            device=device,
            generator=torch.Generator(device=device),
            groups=None if groups is None else groups.to(device),
            n_modalities=widths.n_modalities,
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
        """Return a copy of the embedder, fitted with the current state of the network."""
        model = replace(
            self.model,
            network=copy.deepcopy(self.module_).eval(),
            history=without_batches(self.history),
            estimates=dict(self.auto.values),
            n_samples=self.sampler_.n_samples,
        )
        return self.estimator._as_fitted(model)

    def stop(self) -> None:
        """Stop the training when all callbacks have ended the epoch."""
        self.is_stopped_ = True

    def initialize_criterion(self) -> Self:
        """Start the framework's session, which replaces skorch's criterion."""
        self.criterion_ = new_session(self.settings.framework, self.context)
        return self

    def get_all_learnable_params(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Yield the parameters of the network, and the trainable ones of the session."""
        yield from self.module_.user_named_parameters()
        for name, parameter in self.criterion_.named_parameters():
            if parameter.requires_grad:
                yield f"framework.{name}", parameter

    def initialize_optimizer(self, triggered_directly: Any = None) -> Self:
        """Build the optimizer, whose groups are patterns of parameter names."""
        parameters, settings = self.get_all_learnable_params(), self.settings
        build = settings.grouped_optimizer.build
        self.optimizer_ = build(parameters, lr=settings.lr, weight_decay=settings.weight_decay)
        self.base_lr_ = [group["lr"] for group in self.optimizer_.param_groups]
        return self

    def get_iterator(self, dataset: BatchSampler, training: bool = False) -> BatchSampler:
        """Return the batches of an epoch, for callbacks that count them."""
        return dataset

    def on_epoch_begin(self, net: NeuralNet, dataset_train: Any = None, **kwargs: Any) -> None:
        """Resolve the schedules and seed the epoch's generators."""
        super().on_epoch_begin(net, dataset_train=dataset_train, **kwargs)
        self.epoch_ = len(self.history) - 1 - self.first_epoch_
        # skorch keeps a row for each batch; those of earlier epochs are not needed.
        if self.epoch_:
            self.history[-2]["batches"].clear()
        settings, context, epoch = self.settings, self.context, self.first_epoch_ + self.epoch_
        # In partial_fit, schedules count all epochs; in fit, those of this call.
        counted = epoch if settings.one_epoch else self.epoch_
        progress = epoch_progress(counted, settings.max_epochs)
        components = self.auto.at(settings.loss, settings.similarity, progress)
        self.loss_, self.similarity_, values = components
        for name, value in values.items():
            self.history.record(name, value)
        # Seeds depend only on the epoch, so a resumed fit draws the same batches and views. All
        # processes draw the same batches; each draws the views of its samples.
        order, _, _, memory = epoch_seeds(settings.seed, epoch)
        _, view_seed, layer_seed, _ = epoch_seeds(settings.seed, epoch, self.processes.rank)
        self.sampler_.generator.manual_seed(order)
        context.generator.manual_seed(memory)
        self.generator.manual_seed(view_seed)
        self.layer_seed_ = layer_seed
        self.auto.start_epoch(epoch)
        self._complete_labels(epoch)
        self.step_ = 0

    def _complete_labels(self, epoch: int) -> None:
        """Assign pseudo-labels if the loss or an estimate needs them in this epoch."""
        spreader, settings, sampler = self.spreader, self.settings, self.sampler_
        is_for_loss = spreader.is_due(epoch, is_first=self.epoch_ == 0)
        is_for_estimates = spreader.has_some_labels and bool(self.auto.due)
        if not (is_for_loss or is_for_estimates):
            return
        # One pass over all samples gives class shares for estimates and classes for the loss.
        self.processes.n_rows = sampler.n_samples
        h = encode_batches(self.module_.encoder, sampler.in_order(settings.batch_size))
        h = self.processes.gather_rows(h[None])[0]
        spread = spreader.spread(h, [settings.seed, epoch])
        if is_for_estimates:
            self.auto.estimate_prior(spreader.shares(spread))
        if is_for_loss:
            labels = spreader.complete(spread)
        elif settings.loss.requires_y:
            return
        else:
            # For estimates only, classes are drawn by their probabilities.
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
        """Notify the callbacks, which may stop training by a KeyboardInterrupt, as in skorch."""
        try:
            super().notify(method_name, **kwargs)
        except KeyboardInterrupt:
            self.stop()
            raise

    def fit_loop(
        self, X: BatchSampler, y: Any = None, epochs: int | None = None, **kwargs: Any
    ) -> Self:
        """Run the remaining epochs; after an interrupt, keep only finished ones."""
        # A callback may have loaded a checkpoint with a history of earlier epochs.
        self.is_stopped_, self.first_epoch_ = False, len(self.history)
        epoch_data = {"dataset_train": X, "dataset_valid": None}
        end = self.first_epoch_ + self.max_epochs
        with recorded_interrupts() as interrupts:
            try:
                self.epoch_state.resume(self)
                while len(self.history) < end and not self.is_stopped_:
                    self.notify("on_epoch_begin", **epoch_data)
                    self._run_steps(X)
                    self.notify("on_epoch_end", **epoch_data)
                    self.is_stopped_ = self.processes.in_any(self.is_stopped_)
                    self.epoch_state.keep(self)
                    if interrupts:  # code has suppressed the exception
                        raise KeyboardInterrupt
            except KeyboardInterrupt:
                self.interrupted_ = bool(interrupts) or not self.is_stopped_
                # An epoch with all steps done is finished, even if callbacks missed its end.
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
        # Losses are read once, at the end, because reading waits for the device.
        losses = torch.stack([row["train_loss"] for row in rows]).tolist()
        for row, loss in zip(rows, losses, strict=True):
            row["train_loss"] = loss
        self.history.record("train_batch_count", len(rows))

    def train_step(self, batch: Batch, **fit_params: Any) -> dict[str, Any]:
        """Take a step of the optimizer, then update the framework's session."""
        # Layers such as dropout draw from torch's global generators, and so may a framework.
        with seeded_rng(self.layer_seed_ + self.step_, self.settings.device):
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
        # Custom frameworks are checked on the first batches only.
        if self.epoch_ == 0 and self.step_ < _STEPS_CHECKED:
            check_contrasts(contrasts, batch, framework, self.similarity_)
        loss = self._mean_loss(contrasts)
        loss.backward()
        parameters = [parameter for _, parameter in self.get_all_learnable_params()]
        loss = self.processes.sum_gradients(loss, parameters)
        self.step_ += 1
        return {"loss": loss, "y_pred": None}

    def _mean_loss(self, contrasts: Sequence[Contrast]) -> Tensor:
        """Return the mean loss over the anchors of all contrasts, or this process's share."""
        values, n_anchors = [], sum(len(c.anchors) for c in contrasts)
        objective, same_group = self.criterion_.objective, self.settings.same_group
        similarity = self.similarity_
        for contrast in contrasts:
            self.auto.observe(contrast, similarity)
            own_contrast = self.processes.anchors_of_process(contrast, self.settings.framework)
            value = objective_value(own_contrast, self.loss_, similarity, objective, same_group)
            share = len(own_contrast.anchors) / n_anchors
            values.append(value if share == 1 else value * share)
        return sum(values[1:], start=values[0])

    def _set_lr(self) -> None:
        """Set the learning rates of this step according to the schedule."""
        schedule = self.settings.lr_schedule
        if schedule is None or self.settings.one_epoch:
            return
        total = self.max_epochs * len(self.sampler_)
        factor = schedule((self.epoch_ * len(self.sampler_) + self.step_) / total)
        # Groups that callbacks add keep their own rate.
        for group, lr in zip(self.optimizer_.param_groups, self.base_lr_, strict=False):
            group["lr"] = lr * factor


def _meets_mates(groups: Tensor, domains: Tensor | None, batch_size: int) -> bool:
    """Return whether most samples that share a group meet others of it in a random batch."""
    # Batches are of one domain.
    domain = torch.zeros_like(groups) if domains is None else domains
    pairs = torch.stack([groups, domain], 1)[groups >= 0]
    _, place, counts = pairs.unique(dim=0, return_inverse=True, return_counts=True)
    mates = counts[place].double() - 1
    _, of_domain, sizes = domain.unique(return_inverse=True, return_counts=True)
    n_others = sizes[of_domain][groups >= 0].double() - 1
    expected = (mates / n_others)[mates > 0] * (batch_size - 1)
    # With 3 expected, 5 % of the anchors have none in their batch; with 1, 37 %.
    return not len(expected) or float((expected >= 3).double().mean()) >= 0.5


def _checked(network: Callable) -> Callable:
    """Return a network that refuses to return another number of rows than it gets samples."""

    def run(x: Any) -> Any:
        z = network(x)
        if isinstance(z, Tensor) and len(z) != len(x):
            raise ValueError(
                f"'encoder' returned {len(z)} rows for {len(x)} samples in training: it must "
                "return one for each, in their order."
            )
        return z

    return run


def epoch_seeds(seed: int, epoch: int, rank: int = 0) -> list[int]:
    """Return the seeds of an epoch: for the order, views, layers (dropout) and framework.

    Epochs are counted over all fits of the network, so a continued fit does not repeat draws.
    """
    return np.random.SeedSequence([seed, epoch, rank]).generate_state(4).tolist()


def _callbacks(settings: Settings) -> list[Any]:
    """Return the callbacks; evaluations come first, because others may monitor their scores."""
    items = settings.callbacks or ()
    callbacks = sorted(items, key=lambda c: not isinstance(plain_callbacks([c])[0], Evaluation))
    return [*callbacks, LongFit(), *([ProgressBar()] if settings.verbose else [])]


def plain_callbacks(callbacks: Sequence[Any] | None) -> list[Any]:
    """Return callbacks without their names."""
    items = callbacks or ()
    return [item[1] if isinstance(item, tuple) and len(item) == 2 else item for item in items]


def check_callbacks(callbacks: list[Any], lr_schedule: Schedule | None, owner: str) -> None:
    """Refuse objects that are not callbacks of skorch, and callbacks that need other data."""
    is_evaluated = any(isinstance(callback, Evaluation) for callback in callbacks)
    for callback in callbacks:
        if not isinstance(callback, Callback):
            raise TypeError(
                f"The 'callbacks' parameter of {owner} must hold instances of callbacks, such as "
                f"EarlyStopping(), got {callback!r}."
            )
        name = type(callback).__name__
        # These would run without the data that they need, or override the schedule.
        if isinstance(callback, ScoringBase):
            raise ValueError(
                f"The callback {name} of skorch scores the predictions of a classifier: pass "
                "skcontrast.callbacks.Evaluation(scoring, X, y) with held-out samples instead."
            )
        if str(getattr(callback, "monitor", "")).startswith("valid_") and not is_evaluated:
            raise ValueError(
                f"The callback {name} monitors {callback.monitor!r}, but nothing is held back for "
                "validation: monitor 'train_loss' (EarlyStopping), 'train_loss_best' (Checkpoint) "
                "or the column of a skcontrast.callbacks.Evaluation."
            )
        if isinstance(callback, LRScheduler) and lr_schedule is not None:
            raise ValueError(
                f"The callback {name} and the 'lr_schedule' parameter of {owner} both set the "
                "learning rate: pass lr_schedule='constant' with it."
            )
