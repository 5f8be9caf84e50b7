"""One fit: from checked parameters and X to everything that a fitted embedder knows."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._data._batches import TrainingSet
from .._data._metadata import check_descriptions
from .._data._sources import make_source
from .._distributed._connection import exchange
from .._distributed._world import Shares, World, current_world
from .._network._acceleration import prepared, trains_in_bf16
from .._network._inference import on_cpu
from .._runtime._random import LayerDraws, draws_random_numbers, seeded_rng
from .._skorch import History, PrintLog
from .._warnings import warn
from ..augmentation._views import base_of
from ..callbacks import Evaluation
from ..kinds._base import Request
from ..kinds._images import Images
from ..kinds._recognise import is_custom, naming_kind
from ._checkpoint import EpochState, opened_state
from ._defaults import are_photographs
from ._estimated_parameters import AutoParameters
from ._identity import identity_of
from ._improvement import Improvement
from ._label_spreading import LabelSpreader
from ._net import ContrastiveNet
from ._plan import Plan
from ._samples import TrainingData, agree_on_seed, read_training_data
from ._settings import Settings, plain_callbacks
from ._setup import Setup, continued_setup, new_setup
from ._training_state import framework_state, optimizer_state, resume
from ._watch import (
    ANNOUNCED,
    LONG,
    Announcement,
    ProgressBar,
    check_embeddings,
    tell_of_pretrained,
    tell_symmetries,
)

# A fit to so many times fewer samples than the one that it replaces is hardly meant.
_FEWER = 10


@dataclass(frozen=True, kw_only=True)
class Fitted(Setup):
    """Everything that a fit has learned, its network in inference mode.

    An embedder takes it over as a whole.

    Attributes
    ----------
    history : History
        A row per epoch.
    estimates : dict of str to float
        The last values of what was estimated from the data.
    optimizer_state, framework_state : dict or None
        The states from which a later fit resumes.
    interrupted : bool
        Whether the user interrupted the fit.
    n_samples : int
        The most samples of a fit.
    improvement : float or None
        How much the score without labels has risen in this fit, where it is measured.
    """

    history: History
    estimates: dict[str, float]
    n_samples: int
    optimizer_state: dict[str, Any] | None = None
    framework_state: dict[str, Any] | None = None
    interrupted: bool = False
    improvement: float | None = None

    @property
    def n_epochs(self) -> int:
        """Epochs trained in all."""
        return len(self.history)

    def read(self, X: Any, owner: Any, **kwargs: Any) -> Any:
        """Check what is passed to a fitted embedder as X, also as `Views`; see `Request`."""
        return self.schema.kind.read(base_of(X), Request(owner, self.schema, **kwargs))[0]

    def on_cpu(self) -> Fitted:
        """Return the same with all tensors on the CPU."""
        return replace(
            self,
            network=on_cpu(self.network),
            optimizer_state=on_cpu(self.optimizer_state),
            framework_state=on_cpu(self.framework_state),
        )


def fit_network(
    settings: Settings,
    X: Any,
    y: Any = None,
    metadata: dict[str, Any] | None = None,
    *,
    owner: Any,
    as_fitted: Callable[[Fitted], Any],
    past: Fitted | None = None,
    one_epoch: bool = False,
) -> Fitted:
    """Train a network on X.

    Parameters
    ----------
    settings : Settings
        The user's parameters, checked.
    X, y, metadata : array-like or Views, array-like or None, dict or None
        The arguments of `fit`.
    owner : estimator
        Named in messages about X; never changed.
    as_fitted : callable
        Returns a copy of the owner that has learned what it is passed; for callbacks.
    past : Fitted, default=None
        The fit that is continued; None starts with a new network.
    one_epoch : bool, default=False
        Whether this is `partial_fit`: one epoch, and a constant learning rate.

    Returns
    -------
    fitted : Fitted

    Raises
    ------
    KeyboardInterrupt
        If the user interrupts before an epoch is finished.
    """
    data = read_training_data(settings, X, y, metadata or {}, owner, past)
    if not one_epoch:
        settings = settings.for_samples(len(data.X), data.schema)
    world, seed = current_world(), settings.seed
    n_samples = max(len(data.X), 0 if past is None else past.n_samples)
    if past is None and (world is None or world.rank == 0):
        _warn_of_loss(n_samples, getattr(owner, "_fitted", None))
    if world is not None:
        seed = agree_on_seed(settings, data, past, world, one_epoch)
    identity = partial(identity_of, settings, data, None if past is None else past.network)
    opened = opened_state(settings, seed, past, identity, world, one_epoch)
    # The caller may have turned gradients off.
    with torch.inference_mode(False), torch.enable_grad(), opened as epoch_state:
        run = _Run(settings, data, past, one_epoch, world, epoch_state.seed)
        setup = run.setup()
        net = run.net(setup, epoch_state, as_fitted)
        with net.interrupt_:
            output = settings.given["output"]
            improvement = Improvement(net, setup, data.X, output, continues=past is not None)
            interrupted = train(net)
            check_embeddings(net, setup.projecting(net.module_))
            whole = {**vars(setup), "network": net.module_.eval()}
            fitted = Fitted(
                **whole,
                history=net.history,
                estimates=net.auto.values,
                n_samples=n_samples,
                improvement=improvement.found(),
            )
            if settings.warm_start or one_epoch:
                fitted = replace(
                    fitted,
                    optimizer_state=optimizer_state(net.optimizer_, net.learned_parameters()),
                    framework_state=framework_state(settings.framework, net.criterion_, data),
                )
            if world is not None:
                interrupted = any(exchange(interrupted))
        return replace(fitted, interrupted=interrupted or net.interrupt_.came)


def _warn_of_loss(n_samples: int, lost: Fitted | None) -> None:
    """Warn if a fit to few samples replaces one to many, as in a Pipeline with few labels."""
    if lost is not None and _FEWER * n_samples <= lost.n_samples:
        warn(
            f"This fit to {n_samples:,} samples replaces what the embedder has learned from "
            f"{lost.n_samples:,}. To keep that before a classifier that knows few samples, pass "
            "sklearn.frozen.FrozenEstimator(embedder) to the Pipeline; to train on, set "
            "warm_start=True."
        )


@dataclass(frozen=True)
class _Run:
    """One call of `fit` or `partial_fit`, with everything that it was passed checked."""

    settings: Settings
    data: TrainingData
    past: Fitted | None
    one_epoch: bool
    world: World | None
    seed: int

    @cached_property
    def shares(self) -> Shares | None:
        """Which rows each rank encodes; None where each encodes all."""
        reads_share = self.world is not None and self.settings.framework.only_encodes_views
        return Shares(self.world) if self.world is not None and reads_share else None

    def setup(self) -> Setup:
        """Return what training starts from."""
        settings, data = self.settings, self.data
        if self.past is None:
            setup = new_setup(settings, data.X, data.schema, data.chain, self.seed)
            is_first = self.world is None or self.world.rank == 0
            if settings.verbose and is_first:
                if settings.encoder is None and are_photographs(setup.schema):
                    tell_of_pretrained()
                if data.chain is None and isinstance(setup.schema.kind, Images):
                    tell_symmetries(setup.symmetries)
        else:
            setup = continued_setup(settings, data.X, data.chain, self.past)
        width = setup.widths.projection // setup.widths.n_parts
        check_descriptions(data.metadata.get("descriptions"), width)
        return setup

    def net(
        self, setup: Setup, epoch_state: EpochState, as_fitted: Callable[[Fitted], Any]
    ) -> ContrastiveNet:
        """Return a net about to train, where an earlier fit has left off if there is one."""
        settings, labels = self.settings, self.data.metadata.get("labels")
        training_set, plan, auto = self._training_set(setup), self._plan(setup), self._auto(labels)
        prints = any(isinstance(c, PrintLog) for c in plain_callbacks(settings.callbacks))
        # What a framework adds to the network starts from different numbers than the network.
        with seeded_rng(self.seed + 1, settings.device):
            net = ContrastiveNet(
                setup.network,
                training_set=training_set,
                plan=plan,
                auto=auto,
                spreader=LabelSpreader(settings.loss.label_spreading(), labels),
                epoch_state=epoch_state,
                build_optimizer=partial(
                    settings.grouped_optimizer.build,
                    lr=settings.lr,
                    weight_decay=settings.weight_decay,
                ),
                as_estimator=partial(_as_estimator, setup, as_fitted),
                lr=settings.lr,
                max_epochs=1 if self.one_epoch else settings.max_epochs,
                device=plan.device,
                callbacks=self._callbacks(),
                # PrintLog prints only if the net is verbose.
                verbose=int(prints),
            ).initialize()
            if self.past is not None:
                resume(net, self.past, self.data)
        return net

    def _callbacks(self) -> list[Any]:
        """Return the user's callbacks, those first whose scores others may monitor."""
        callbacks = sorted(
            self.settings.callbacks or (),
            key=lambda item: not isinstance(plain_callbacks([item])[0], Evaluation),
        )
        if self.world is None or self.world.rank == 0:
            callbacks.append(Announcement(ANNOUNCED if self.settings.verbose else LONG))
            callbacks += [ProgressBar()] if self.settings.verbose else []
        return callbacks

    def _training_set(self, setup: Setup) -> TrainingSet:
        """Return the samples, in memory or streamed, with their metadata."""
        settings, world = self.settings, self.world
        source = make_source(
            self.data.X,
            setup.schema.kind.nbytes(self.data.X),
            setup.scaler.to_tensor,
            settings.device,
            budget=settings.memory_budget,
            n_workers=settings.n_workers,
            n_sharing=1 if world is None or settings.device.type != "cpu" else world.size,
            shares=self.shares,
        )
        fields = {name: of for name, of in self.data.metadata.items() if name != "domains"}
        return TrainingSet(source, **fields)

    def _auto(self, labels: Tensor | None) -> AutoParameters:
        """Return the hyperparameters that are "auto"; warn if one keeps its initial value."""
        settings, past = self.settings, self.past
        auto = AutoParameters(settings.loss, labels, None if past is None else past.estimates)
        for name in auto.need_labels():
            warn(
                f"The {name!r} parameter of the loss is estimated from classes, but y holds no "
                f"two classes: it keeps {auto.values[name]:g}. Pass y, with -1 where they are "
                "unknown."
            )
        if past is None and not self.one_epoch:
            for name in auto.never_estimated(settings.max_epochs):
                warn(
                    f"The {name!r} parameter of the loss is first estimated after "
                    f"{auto.settings[name].every} epochs, but 'max_epochs' is "
                    f"{settings.max_epochs}: it keeps {auto.values[name]:g}. Pass "
                    f"{name}=Auto(every=1) or train longer."
                )
        return auto

    def _plan(self, setup: Setup) -> Plan:
        """Return what a step needs to know."""
        settings, past, one_epoch = self.settings, self.past, self.one_epoch
        kind, device = setup.schema.kind, settings.device
        prepare = partial(
            prepared,
            compile=settings.compile,
            bf16=trains_in_bf16(settings.precision, kind, settings.encoder, device),
            world=self.world,
            shares=self.shares,
        )
        module = setup.network.to(device)
        draws = settings.framework.draws_random_numbers or draws_random_numbers(module)
        network = prepare(module)
        n_extra = setup.widths.n_parts * settings.similarity.n_extra
        groups = self.data.metadata.get("groups")
        return Plan(
            module=module,
            network=naming_kind(kind)(network) if is_custom(kind) else network,
            prepare=prepare,
            n_samples=len(self.data.X),
            n_views=settings.framework.n_views or settings.n_views,
            batch_size=settings.batch_size,
            width=setup.widths.projection + n_extra,
            device=device,
            generator=torch.Generator(device=device),
            n_parts=setup.widths.n_parts,
            groups=None if groups is None else groups.to(device),
            domains=self.data.metadata.get("domains"),
            settings=settings,
            draw=setup.composed(setup.augmentation, device),
            first_epoch=past.n_epochs if one_epoch and past is not None else 0,
            lr_schedule=None if one_epoch else settings.lr_schedule,
            seed=self.seed,
            layer_draws=LayerDraws(device, some=draws),
            world=self.world,
        )


def _as_estimator(setup: Setup, as_fitted: Callable[[Fitted], Any], net: ContrastiveNet) -> Any:
    """Return an embedder with a copy of what a net has learned so far, but not its optimizer."""
    rows = History({**row, "batches": []} for row in net.history)
    network, values = copy.deepcopy(net.module_).eval(), dict(net.auto.values)
    whole = {**vars(setup), "network": network}
    n_samples = net.plan.n_samples
    return as_fitted(Fitted(**whole, history=rows, estimates=values, n_samples=n_samples))


def train(net: ContrastiveNet) -> bool:
    """Train, drop an epoch that was not finished, and return whether the user interrupted.

    A fit whose checkpoint is finished is only restored.

    Raises
    ------
    KeyboardInterrupt
        If the user interrupts before any epoch is finished.
    """
    is_over = net.epoch_state.is_over(net)
    if not is_over:
        net.partial_fit(net.training_set)
    if len(net.history):
        for row in reversed(net.history):
            if row.pop("batches", None) is None:  # the last row of an earlier fit
                break
            row.update({k: float(v) for k, v in row.items() if isinstance(v, np.floating)})
        if "train_loss" not in net.history[-1]:
            del net.history[-1]
    if is_over:
        return False
    interrupted = net.interrupted_ or net.interrupt_.came
    if interrupted and not len(net.history):
        raise KeyboardInterrupt
    if not net.interrupted_:
        net.epoch_state.finish(net)
    return interrupted
