"""One fit: from checked parameters and X to everything that a fitted embedder knows."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from skorch.callbacks import PrintLog
from skorch.history import History
from torch import Tensor

from .._data._batches import TrainingSet
from .._data._metadata import check_descriptions
from .._data._sources import make_source
from .._distributed._connection import exchange
from .._distributed._world import Shares, World, current_world
from .._network._acceleration import prepared, trains_in_bf16
from .._network._inference import on_cpu
from .._runtime._random import draws_random_numbers, seeded_rng
from .._warnings import warn
from ..callbacks import Evaluation
from ..kinds._base import Request
from ..kinds._recognise import is_custom, naming_kind
from ._checkpoint import EpochState, opened_state
from ._choices import Choices
from ._estimated_parameters import AutoParameters
from ._identity import identity_of
from ._label_spreading import LabelSpreader
from ._net import ContrastiveNet
from ._plan import Plan
from ._resume import framework_state, optimizer_state, resume
from ._samples import TrainingData, agree_on_seed, read_training_data
from ._setup import Setup, continued_setup, new_setup
from ._watch import ProgressBar, check_embeddings


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
        What a later fit resumes from.
    interrupted : bool
        Whether the user interrupted the fit.
    """

    history: History
    estimates: dict[str, float]
    optimizer_state: dict[str, Any] | None = None
    framework_state: dict[str, Any] | None = None
    interrupted: bool = False

    @property
    def n_epochs(self) -> int:
        """Epochs trained in all."""
        return len(self.history)

    def read(self, X: Any, owner: Any, **kwargs: Any) -> Any:
        """Check what is passed to a fitted embedder as X; see `Request`."""
        return self.schema.kind.read(X, Request(owner, self.schema, **kwargs))[0]

    def on_cpu(self) -> Fitted:
        """Return the same with all tensors on the CPU."""
        return replace(
            self,
            network=on_cpu(self.network),
            optimizer_state=on_cpu(self.optimizer_state),
            framework_state=on_cpu(self.framework_state),
        )


def fit_network(
    choices: Choices,
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
    choices : Choices
        The user's parameters, checked.
    X, y, metadata : array-like or Views, array-like or None, dict or None
        What `fit` was passed.
    owner : estimator
        Named in messages about X; never changed.
    as_fitted : callable
        Returns a copy of the owner that has learned what it is passed; for callbacks.
    past : Fitted, default=None
        What to continue from; None starts with a new network.
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
    data = read_training_data(choices, X, y, metadata or {}, owner, past)
    world, seed = current_world(), choices.seed
    if world is not None:
        seed = agree_on_seed(choices, data, past, world, one_epoch)
    identity = partial(identity_of, choices, data, None if past is None else past.network)
    opened = opened_state(choices, seed, past, identity, world, one_epoch)
    # The caller may have turned gradients off.
    with torch.inference_mode(False), torch.enable_grad(), opened as epoch_state:
        seed = epoch_state.seed
        setup = _setup(choices, data, past, seed)
        reads_share = choices.framework.only_encodes_views
        shares = Shares(world) if world is not None and reads_share else None
        training_set = _training_set(choices, setup, data, world, shares)
        plan = _plan(choices, setup, data, past, one_epoch, seed, world, shares)
        net = _initialised_net(choices, setup, plan, data, past, epoch_state, one_epoch, as_fitted)
        with net.interrupt_:
            # Other threads wait only where the network itself draws random numbers.
            with seeded_rng(seed, choices.device) if plan.seeds_layers else nullcontext():
                interrupted = train(net, training_set, epoch_state)
            check_embeddings(len(net.history), net.module_, training_set)
            whole = {**vars(setup), "network": net.module_.eval()}
            fitted = Fitted(**whole, history=net.history, estimates=net.auto.values)
            if choices.warm_start or one_epoch:
                fitted = replace(
                    fitted,
                    optimizer_state=optimizer_state(net.optimizer_, net.learned_parameters()),
                    framework_state=framework_state(
                        choices.framework, net.criterion_, data.fingerprint
                    ),
                )
            if world is not None:
                interrupted = any(exchange(interrupted))
        return replace(fitted, interrupted=interrupted or net.interrupt_.came)


def _setup(choices: Choices, data: TrainingData, past: Fitted | None, seed: int) -> Setup:
    """Return what training starts from."""
    if past is None:
        setup = new_setup(choices, data.X, data.schema, data.chain, seed)
    else:
        setup = continued_setup(choices, data.X, data.chain, past)
    width = setup.widths.projection // setup.widths.n_parts
    check_descriptions(data.known.get("descriptions"), width)
    return setup


def _initialised_net(
    choices: Choices,
    setup: Setup,
    plan: Plan,
    data: TrainingData,
    past: Fitted | None,
    epoch_state: EpochState,
    one_epoch: bool,
    as_fitted: Callable[[Fitted], Any],
) -> ContrastiveNet:
    """Return a net that is about to train, where an earlier fit has left off if there is one."""
    labels = data.known.get("labels")
    auto = _estimated_parameters(choices, labels, past, one_epoch)
    named = [item if isinstance(item, tuple) else (None, item) for item in choices.callbacks or ()]
    # Others may monitor the scores.
    named.sort(key=lambda item: not isinstance(item[1], Evaluation))
    callbacks = [callback if name is None else (name, callback) for name, callback in named]
    if choices.verbose and (plan.world is None or plan.world.rank == 0):
        callbacks.append(ProgressBar())
    # What a framework adds to the network starts from different numbers than the network.
    with seeded_rng(plan.seed + 1, choices.device):
        net = ContrastiveNet(
            setup.network,
            plan=plan,
            auto=auto,
            spreader=LabelSpreader(choices.loss.label_spreading(), labels),
            epoch_state=epoch_state,
            build_optimizer=partial(
                choices.optimizer.build, lr=choices.lr, weight_decay=choices.weight_decay
            ),
            as_estimator=partial(_as_estimator, setup, as_fitted),
            lr=choices.lr,
            max_epochs=1 if one_epoch else choices.max_epochs,
            device=plan.device,
            callbacks=callbacks,
            # PrintLog prints only if the net is verbose.
            verbose=int(any(isinstance(callback, PrintLog) for _, callback in named)),
        ).initialize()
        if past is not None:
            resume(net, past, data.fingerprint)
    return net


def _training_set(
    choices: Choices, setup: Setup, data: TrainingData, world: World | None, shares: Shares | None
) -> TrainingSet:
    """Return the samples, in memory or streamed, with what is known about each."""
    source = make_source(
        data.X,
        setup.schema.kind,
        setup.scaler.to_tensor,
        choices.device,
        budget=choices.memory_budget,
        n_workers=choices.n_workers,
        n_sharing=1 if world is None or choices.device.type != "cpu" else world.size,
        shares=shares,
    )
    return TrainingSet(source, **data.known)


def _estimated_parameters(
    choices: Choices, labels: Tensor | None, past: Fitted | None, one_epoch: bool
) -> AutoParameters:
    """Return the hyperparameters that are "auto"; warn if one keeps its initial value."""
    auto = AutoParameters(choices.loss, labels, None if past is None else past.estimates)
    for name in auto.need_labels():
        warn(
            f"The {name!r} parameter of the loss is estimated from classes, but y holds no two "
            f"classes: it keeps {auto.values[name]:g}. Pass y, with -1 where they are unknown."
        )
    if past is None and not one_epoch:
        for name in auto.never_estimated(choices.max_epochs):
            warn(
                f"The {name!r} parameter of the loss is first estimated after "
                f"{auto.settings[name].every} epochs, but 'max_epochs' is {choices.max_epochs}: "
                f"it keeps {auto.values[name]:g}. Pass {name}=Auto(every=1) or train longer."
            )
    return auto


def _plan(
    choices: Choices,
    setup: Setup,
    data: TrainingData,
    past: Fitted | None,
    one_epoch: bool,
    seed: int,
    world: World | None,
    shares: Shares | None,
) -> Plan:
    """Return what a step needs to know."""
    kind, device = setup.schema.kind, choices.device
    prepare = partial(
        prepared,
        compile=choices.compile,
        bf16=trains_in_bf16(choices.precision, kind, choices.encoder, device),
        world=world,
        shares=shares,
    )
    module = setup.network.to(device)
    network = prepare(module)
    n_extra = setup.widths.n_parts * choices.similarity.n_extra
    groups = data.known.get("groups")
    return Plan(
        module=module,
        network=naming_kind(kind)(network) if is_custom(kind) else network,
        prepare=prepare,
        n_samples=len(data.X),
        n_views=choices.framework.n_views or choices.n_views,
        batch_size=choices.batch_size,
        width=setup.widths.projection + n_extra,
        device=device,
        generator=torch.Generator(device=device),
        n_parts=setup.widths.n_parts,
        groups=None if groups is None else groups.to(device),
        same_group=choices.same_group,
        framework=choices.framework,
        loss=choices.loss,
        similarity=choices.similarity,
        draw=setup.composed(setup.augmentation, device),
        max_epochs=choices.max_epochs,
        first_epoch=past.n_epochs if one_epoch and past is not None else 0,
        lr_schedule=None if one_epoch else choices.lr_schedule,
        seed=seed,
        seeds_layers=choices.framework.draws_random_numbers or draws_random_numbers(module),
        world=world,
    )


def _as_estimator(setup: Setup, as_fitted: Callable[[Fitted], Any], net: ContrastiveNet) -> Any:
    """Return an embedder with a copy of what a net has learned so far, but not its optimizer."""
    rows = History({**row, "batches": []} for row in net.history)
    network, values = copy.deepcopy(net.module_).eval(), dict(net.auto.values)
    whole = {**vars(setup), "network": network}
    return as_fitted(Fitted(**whole, history=rows, estimates=values))


def train(net: ContrastiveNet, training_set: TrainingSet, epoch_state: EpochState) -> bool:
    """Train, drop an epoch that was not finished, and return whether the user interrupted.

    A fit that its checkpoint says is finished is only restored.

    Raises
    ------
    KeyboardInterrupt
        If the user interrupts before any epoch is finished.
    """
    is_over = epoch_state.is_over(net, training_set)
    if not is_over:
        net.partial_fit(training_set)
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
        epoch_state.finish(net)
    return interrupted
