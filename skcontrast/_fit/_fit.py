"""What `fit` does: from checked parameters and X to everything that a fitted embedder knows."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import torch
from skorch.history import History
from torch import Tensor

from .._data._batches import TrainingSet
from .._data._checksum import checksum, fingerprint
from .._data._metadata import check_descriptions, read_annotations, stable_ids
from .._data._sources import make_source
from .._distributed._agreement import agree, end_together
from .._distributed._world import Shares, World, current_world, from_first_rank
from .._network._inference import on_cpu
from .._runtime._random import seeded_rng
from .._warnings import warn
from ..augmentation import Augmentation
from ..kinds._base import Kind, Schema
from ._acceleration import prepared, trains_in_bf16
from ._checkpoint import LastEpoch, opened_checkpoint
from ._choices import Choices
from ._divergence import check_embeddings
from ._estimated_parameters import AutoParameters, auto_parameters
from ._identity import as_arguments, described, identity_of
from ._label_spreading import LabelSpreader
from ._net import ContrastiveNet
from ._plan import Plan
from ._resume import (
    check_same_network,
    framework_state,
    optimizer_state,
    resume,
)
from ._seeding import draws_random_numbers
from ._setup import Setup, continued_setup, new_setup
from ._training import make_net, train

# Parameters that may differ between the ranks of a distributed fit.
_RANKS_OWN = {"callbacks", "device", "n_workers", "random_state", "verbose"}
# Samples have numbers of 63 bits, with the fingerprint of X in the upper ones.
_MOST_SAMPLES = 2**32


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
    optimizer_state: dict[str, Any] | None
    framework_state: dict[str, Any] | None
    interrupted: bool

    @property
    def n_epochs(self) -> int:
        """Epochs trained in all."""
        return len(self.history)

    def read(self, X: Any, owner: Any, **kwargs: Any) -> Any:
        """Check what is passed to a fitted embedder as X; see `Kind.read`."""
        return self.schema.reader.read(X, owner=owner, seen=self.schema, **kwargs)[0]

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
    samples = _read(choices, X, y, metadata or {}, owner, past)
    world, seed = current_world(), choices.seed
    if world is not None:
        seed = _agree_on_seed(choices, samples, past, world, one_epoch)
    start = None if past is None else past.network
    identity = partial(
        identity_of, choices, samples.chain, samples.schema.kind, samples.X, samples.known, start
    )
    opened = (
        nullcontext() if one_epoch else opened_checkpoint(choices, seed, past, identity, world)
    )
    # The caller may have turned gradients off.
    with torch.inference_mode(False), torch.enable_grad(), opened as checkpoint:
        seed = seed if checkpoint is None else checkpoint.seed
        setup = _setup(choices, samples, past, seed)
        reads_share = choices.framework.only_encodes_views
        shares = Shares(world) if world is not None and reads_share else None
        training_set = _training_set(choices, setup, samples, world, shares)
        plan = _plan(choices, setup, samples, past, one_epoch, seed, world, shares)
        last_epoch = LastEpoch(checkpoint)
        net = _begun(choices, setup, plan, samples, past, last_epoch, one_epoch, as_fitted)
        with net.interrupt_:
            # Other threads wait only where the network itself draws random numbers.
            with seeded_rng(seed, choices.device) if plan.seeds_layers else nullcontext():
                interrupted = train(net, training_set, last_epoch)
            if world is not None:
                end_together(interrupted)
            check_embeddings(
                len(net.history), net.module_, samples.X, setup.scaler, choices.device
            )
            resumable = choices.warm_start or one_epoch
            fitted = _fitted(setup, net, samples if resumable else None)
        return replace(fitted, interrupted=interrupted or net.interrupt_.came)


@dataclass(frozen=True)
class Samples:
    """The training samples and what is known about them.

    Attributes
    ----------
    X : array-like of length n_samples
        As its kind returns it.
    schema : Schema
        What it is.
    chain : list of Augmentation or None
        What draws the views, if the user has chosen it.
    known : dict of str to Tensor
        Fields of a `Batch`.
    classes : Tensor of shape (n_classes,) or None
        As in `FitContext`.
    """

    X: Any
    schema: Schema
    chain: list[Augmentation] | None
    known: dict[str, Tensor]
    classes: Tensor | None

    @cached_property
    def _of_X(self) -> int:
        return fingerprint(self.schema.kind.arrays(self.X))

    def fingerprint(self) -> int:
        """Return a number that differs, almost surely, for other samples or labels."""
        labels = self.known.get("labels")
        return self._of_X if labels is None else fingerprint([labels.numpy()], self._of_X)

    def first_id(self) -> int:
        """Return a number from which on the samples, and almost surely no others, are counted."""
        return self._of_X // 2 * _MOST_SAMPLES


def _read(
    choices: Choices, X: Any, y: Any, metadata: dict[str, Any], owner: Any, past: Fitted | None
) -> Samples:
    """Return what `fit` was passed, checked."""
    X, schema, chain = read_training_samples(choices, X, owner, past)
    uses_classes = bool(auto_parameters(choices.loss))
    known = read_annotations(y, metadata, len(X), choices.loss, uses_classes=uses_classes)
    labels = known.get("labels")
    classes = None if labels is None else torch.from_numpy(stable_ids(y, labels.numpy()))
    return Samples(X, schema, chain, known, classes)


def _setup(choices: Choices, samples: Samples, past: Fitted | None, seed: int) -> Setup:
    """Return what training starts from."""
    if past is None:
        setup = new_setup(choices, samples.X, samples.schema, samples.chain, seed)
    else:
        setup = continued_setup(choices, samples.X, samples.chain, past)
    width = setup.widths.projection // setup.widths.n_parts
    check_descriptions(samples.known.get("descriptions"), width)
    return setup


def _begun(
    choices: Choices,
    setup: Setup,
    plan: Plan,
    samples: Samples,
    past: Fitted | None,
    last_epoch: LastEpoch,
    one_epoch: bool,
    as_fitted: Callable[[Fitted], Any],
) -> ContrastiveNet:
    """Return a net that is about to train, where an earlier fit has left off if there is one."""
    labels = samples.known.get("labels")
    auto = _estimated_parameters(choices, labels, past, one_epoch)
    is_first = plan.world is None or plan.world.rank == 0
    # What a framework adds to the network starts from different numbers than the network.
    with seeded_rng(plan.seed + 1, choices.device):
        net = make_net(
            setup.network,
            plan,
            auto,
            LabelSpreader(choices.loss.label_spreading(), labels),
            optimizer=choices.optimizer,
            lr=choices.lr,
            weight_decay=choices.weight_decay,
            max_epochs=1 if one_epoch else choices.max_epochs,
            callbacks=choices.callbacks,
            last_epoch=last_epoch,
            verbose=choices.verbose if is_first else 0,
            as_estimator=partial(_as_estimator, setup, as_fitted),
        )
        if past is not None:
            resume(
                net,
                past.history,
                past.optimizer_state,
                past.framework_state,
                samples.fingerprint,
            )
    return net


def read_training_samples(
    choices: Choices, X: Any, owner: Any, past: Fitted | None
) -> tuple[Any, Schema, list[Augmentation] | None]:
    """Return X as it is cut into batches, what it is, and the chain that draws its views."""
    X, chain, inputs = choices.split_views(X)
    if past is not None:
        X, schema = past.schema.reader.read(X, owner=owner, seen=past.schema, min_samples=2)
        check_same_network(choices, past.schema.kind, past.built_from)
        return X, past.schema, chain
    reader, X = choices.reader(X, chain, inputs)
    if inputs is not None and _is_same(inputs[1].reader, reader) and len(inputs[0]) > 1:
        X, schema = inputs  # as an augmentation has checked it
    else:
        X, schema = reader.read(X, owner=owner, min_samples=2)
    schema.kind.check_unusual(X, is_declared=choices.kind is not None)
    return X, schema, chain


def _is_same(kind: Kind, other: Kind) -> bool:
    """Return whether two kinds are of one class and have the same parameters."""
    return described("kind", kind) == described("kind", other)


def _agree_on_seed(
    choices: Choices, samples: Samples, past: Fitted | None, world: World, one_epoch: bool
) -> int:
    """Check that all ranks were given the same, and return the seed of rank 0."""
    X, schema, chain, known = samples.X, samples.schema, samples.chain, samples.known
    if not schema.kind.shares_batches:
        raise ValueError(
            f"{schema.kind.name.capitalize()} are trained in one process: start fit without "
            "torchrun."
        )
    facts = {"method": "partial_fit" if one_epoch else "fit", "kind": schema.kind.name}
    settings = {k: v for k, v in choices.settings.items() if k not in _RANKS_OWN}
    if choices.augmentation is None:
        settings["augmentation"] = chain
    for name, value in settings.items():
        facts |= described(name, value, weights=False)
    if past is not None:
        facts |= _described_past(past)
    parts = list(schema.kind.arrays(X))
    arrays = {"X" if len(parts) == 1 else f"X[{i}]": array for i, array in enumerate(parts)}
    arrays |= as_arguments(known)
    return agree(facts, arrays, choices.seed, choices.device)


def _described_past(past: Fitted) -> dict[str, str]:
    """Return what tells a fit so far from different ones."""
    states = [past.network.state_dict(), past.optimizer_state, past.framework_state]
    arrays = [t.detach().float().cpu().numpy() for t in _tensors(states)]
    return {
        "earlier_fit__epochs": str(past.n_epochs),
        **described("earlier_fit__built_from", past.built_from),
        **described("earlier_fit__estimates", past.estimates),
        "earlier_fit__state": f"checksum {checksum(arrays)}",
    }


def _tensors(state: Any) -> Iterator[Tensor]:
    """Yield the tensors in nested lists and dictionaries."""
    if isinstance(state, Tensor):
        yield state
    elif isinstance(state, (dict, list, tuple)):
        for item in state.values() if isinstance(state, dict) else state:
            yield from _tensors(item)


def _training_set(
    choices: Choices, setup: Setup, samples: Samples, world: World | None, shares: Shares | None
) -> TrainingSet:
    """Return the samples, in memory or streamed, with what is known about each."""
    source = make_source(
        samples.X,
        setup.schema.kind,
        setup.scaler.to_tensor,
        choices.device,
        budget=choices.memory_budget,
        n_workers=choices.n_workers,
        n_sharing=1 if world is None or choices.device.type != "cpu" else world.size,
        shares=shares,
    )
    return TrainingSet(source, **samples.known)


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
    samples: Samples,
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
    n_extra = setup.widths.n_parts * choices.similarity.n_extra
    labels, groups = (samples.known.get(name) for name in ("labels", "groups"))
    return Plan(
        module=module,
        network=prepare(module),
        prepare=prepare,
        n_samples=len(samples.X),
        n_views=choices.framework.n_views or choices.n_views,
        batch_size=choices.batch_size,
        width=setup.widths.projection + n_extra,
        device=device,
        generator=torch.Generator(device=device),
        n_parts=setup.widths.n_parts,
        groups=None if groups is None else groups.to(device),
        labels=None if labels is None else labels.to(device),
        classes=None if samples.classes is None else samples.classes.to(device),
        first_id=_first_id(samples, world, device) if choices.warm_start or one_epoch else 0,
        is_part=one_epoch,
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


def _first_id(samples: Samples, world: World | None, device: torch.device) -> int:
    """Return the number of the first sample, which later fits recognise."""
    number = samples.first_id()
    if world is None:
        return number
    # Datasets that draw their samples differ from rank to rank.
    return int(from_first_rank(torch.tensor(number, device=device)))


def _as_estimator(setup: Setup, as_fitted: Callable[[Fitted], Any], net: ContrastiveNet) -> Any:
    """Return an embedder with a copy of what a net has learned so far, but not its optimizer."""
    rows = ({**row, "batches": []} for row in net.history)
    return as_fitted(
        Fitted(
            **{**vars(setup), "network": copy.deepcopy(net.module_).eval()},
            history=History(rows),
            estimates=dict(net.auto.values),
            optimizer_state=None,
            framework_state=None,
            interrupted=False,
        )
    )


def _fitted(setup: Setup, net: ContrastiveNet, samples: Samples | None) -> Fitted:
    """Return what is known after the training; what a later fit needs only with the samples."""
    optimizer, session = None, None
    if samples is not None:
        optimizer = optimizer_state(net.optimizer_, net.learned_parameters())
        session = framework_state(setup.framework, net.criterion_, samples.fingerprint)
    return Fitted(
        **{**vars(setup), "network": net.module_.eval()},
        history=net.history,
        estimates=net.auto.values,
        optimizer_state=optimizer,
        framework_state=session,
        interrupted=False,
    )
