"""What `fit` does: from checked parameters and X to everything that a fitted embedder knows."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import torch
from sklearn.base import clone
from skorch.history import History

from .._data._batches import TrainingSet
from .._data._guess import guess_kind
from .._data._kinds import Schema
from .._data._metadata import check_descriptions, read_annotations
from .._data._sources import make_source, read, subset
from .._distributed._world import check_same, current_world, same_everywhere
from .._network._build import Widths, build_network
from .._network._inference import on_cpu
from .._network._network import Network
from .._warnings import warn
from ..augmentation import Augmentation, compose
from ..frameworks import Framework
from ..losses import Loss
from ..similarity import Similarity
from ._acceleration import prepared, trains_in_bf16
from ._choices import Choices
from ._defaults import default_chain, default_encoder
from ._estimated_parameters import AutoParameters, auto_parameters
from ._net import ContrastiveNet, make_net, train
from ._optimizer import load_optimizer, optimizer_state
from ._plan import Plan
from ._resume import (
    check_same_network,
    describe,
    framework_state,
    network_parameters,
    resume_session,
    samples_fingerprint,
)
from ._seeding import draws_random_numbers, seeded_rng

# Parameters that may differ between the ranks of a distributed fit.
_RANKS_OWN = {"callbacks", "device", "n_workers", "random_state", "verbose"}


@dataclass(frozen=True)
class Fitted:
    """Everything that a fit has found out; an embedder takes it over as a whole.

    Attributes
    ----------
    loss, framework, similarity : parameter objects
        The validated choices.
    schema : Schema
        What X was.
    scaler : object
        The map from X to batches.
    network : Network
        Encoder and projection head, trained, in inference mode.
    widths : Widths
        What the network returns.
    augmentation : list of Augmentation
        The fitted chain that drew the views.
    built_from : dict
        The parameters that the network depends on.
    history : History
        A row per epoch.
    estimates : dict of str to float
        The last values of what was estimated from the data.
    optimizer_state, framework_state : dict or None
        What a later fit resumes from.
    interrupted : bool
        Whether the user interrupted the fit.
    """

    loss: Loss
    framework: Framework
    similarity: Similarity
    schema: Schema
    scaler: Any
    network: Network
    widths: Widths
    augmentation: list[Augmentation]
    built_from: dict[str, Any]
    history: History | None = None
    estimates: dict[str, float] | None = None
    optimizer_state: dict[str, Any] | None = None
    framework_state: dict[str, Any] | None = None
    interrupted: bool = False

    @property
    def n_epochs(self) -> int:
        """Epochs trained in all."""
        return 0 if self.history is None else len(self.history)

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
    X, chain, inputs = choices.split_views(X)
    X, schema = _read_inputs(choices, X, chain, inputs, owner, past)
    known = read_annotations(
        y, metadata or {}, len(X), choices.loss, uses_classes=bool(auto_parameters(choices.loss))
    )
    world, seed = current_world(), choices.seed
    if world is not None:
        seed = _agree(choices, schema, X, known, chain, past, world)
    with torch.inference_mode(False), torch.enable_grad():
        fitted = _begin(choices, X, schema, chain, past, seed)
        check_descriptions(
            known.get("descriptions"), fitted.widths.projection // fitted.widths.n_parts
        )
        source = _source(choices, fitted, X, world)
        training_set = TrainingSet(source, **known)
        auto = AutoParameters(choices.loss, known.get("labels"), past and past.estimates)
        if past is None and not one_epoch:
            _warn_never_estimated(auto, choices.max_epochs)
        plan = _plan(choices, fitted, training_set, past, one_epoch, seed, world)
        fingerprint = cache(partial(samples_fingerprint, schema.kind, X, known.get("labels")))
        # What a framework adds to the network starts from different numbers than the network.
        with seeded_rng(seed + 1, choices.device):
            net = _net(choices, fitted.network, plan, auto, past, one_epoch, fingerprint)
        # Other threads wait only where the network itself draws random numbers.
        seeded = seeded_rng(seed, choices.device) if plan.seeds_layers else nullcontext()
        with seeded:
            interrupted = train(net, training_set)
        if interrupted and not len(net.history):
            raise KeyboardInterrupt
        keeps_state = choices.warm_start or one_epoch
        return _finish(fitted, net, fingerprint if keeps_state else None, interrupted)


def _read_inputs(choices, X, chain, inputs, owner, past):
    """Return X as it is cut into batches, and what it is."""
    if past is not None:
        X, schema = past.schema.reader.read(X, owner=owner, seen=past.schema, min_samples=2)
        check_same_network(choices, past.schema.kind, past.built_from)
        return X, past.schema
    kind, declared = choices.reader(chain)
    if kind is None and inputs is not None and len(inputs[0]) > 1:
        X, schema = inputs  # as an augmentation has checked it
    else:
        if kind is None:
            kind, X = guess_kind(X, declared)
        X, schema = kind.read(X, owner=owner, min_samples=2)
    schema.kind.warn_unusual(X)
    return X, schema


def _agree(choices, schema, X, known, chain, past, world):
    """Check that all ranks were given the same, and return the seed of rank 0."""
    if not schema.kind.shares_batches:
        raise ValueError(
            f"{schema.kind.name.capitalize()} are trained in one process: start fit without "
            "torchrun."
        )
    settings = {k: describe(v) for k, v in choices.settings.items() if k not in _RANKS_OWN}
    arrays = [*schema.kind.arrays(X), *(array.numpy() for array in known.values())]
    before = 0 if past is None else past.n_epochs
    check_same(arrays, (settings, describe(chain), list(known), before), world, choices.device)
    return same_everywhere(choices.seed, choices.device)


def _begin(choices, X, schema, chain, past, seed):
    """Return what is known before the training: all that it does not change, and the network."""
    array = read(X)
    if past is None:
        scaler = schema.kind.scaler(
            standardize=choices.standardize, node_features=choices.node_features
        ).fit(array)
        with seeded_rng(seed, choices.device):
            network, widths, schema, mixes = _build(choices, schema, scaler, array)
    else:
        scaler, schema, widths = past.scaler, past.schema, past.widths
        network = copy.deepcopy(past.network)
    if chain is None and past is not None:
        fitted_chain = past.augmentation
    else:
        if chain is None:
            chain = default_chain(
                schema.kind, schema.sample_shape, choices.framework, mixes_channels=mixes
            )
        fitted_chain = [_fitted(step, array, schema, choices.augmentation) for step in chain]
    return Fitted(
        loss=choices.loss,
        framework=choices.framework,
        similarity=choices.similarity,
        schema=schema,
        scaler=scaler,
        network=network,
        widths=widths,
        augmentation=fitted_chain,
        built_from=network_parameters(choices, schema.kind),
    )


def _fitted(step, array, schema, own):
    """Return an augmentation fitted to X; those of a Pipeline already are."""
    is_fitted = step.__sklearn_is_fitted__() and own is None
    return step if is_fitted else clone(step).fit_checked(array, schema)


def _build(choices, schema, scaler, array):
    """Return a new network, its widths, the schema with the border of a split, and whether
    augmentations may mix channels.
    """
    some = scaler.to_tensor(subset(array), torch.device("cpu"))
    split = choices.framework.split_samples(schema.kind, tuple(some.shape[1:]), schema.border)

    def choose_encoder(shape):
        return default_encoder(schema.kind, shape) if choices.encoder is None else choices.encoder

    network, widths = build_network(
        some,
        schema.kind,
        scaler,
        split,
        choose_encoder=choose_encoder,
        n_components=choices.n_components,
        projection_dim=choices.projection_dim,
        similarity=choices.similarity,
        standardize=choices.standardize,
        owner=choices.owner,
    )
    if not any(parameter.requires_grad for parameter in network.parameters()):
        raise ValueError(
            "There is nothing to train: 'encoder' has no trainable parameters and "
            "'projection_dim' is 0."
        )
    if split is None:
        return network, widths, schema, True
    return network, widths, replace(schema, border=split.border), not split.is_of_channels


def _warn_never_estimated(auto, n_epochs):
    """Warn if a hyperparameter that is "auto" keeps its initial value throughout the fit."""
    for name in auto.never_estimated(n_epochs):
        every = auto.settings[name].every
        warn(
            f"The {name!r} parameter of the loss is first estimated after {every} epochs, but "
            f"'max_epochs' is {n_epochs}: it keeps {auto.values[name]:g}. Pass "
            f"{name}=Auto(every=1) or train longer."
        )


def _source(choices, fitted, X, world):
    return make_source(
        X,
        fitted.schema.kind,
        fitted.scaler.to_tensor,
        choices.device,
        budget=choices.memory_budget,
        n_workers=choices.n_workers,
        n_sharing=1 if world is None or choices.device.type != "cpu" else world.size,
    )


def _plan(choices, fitted, training_set, past, one_epoch, seed, world):
    """Return what a step needs to know."""
    kind, device = fitted.schema.kind, choices.device
    prepare = partial(
        prepared,
        compile=choices.compile,
        bf16=trains_in_bf16(choices.precision, kind, choices.encoder, device),
        world=world,
    )
    module = fitted.network.to(device)
    n_extra = fitted.widths.n_parts * choices.similarity.n_extra
    return Plan(
        module=module,
        network=prepare(module),
        prepare=prepare,
        n_samples=len(training_set),
        n_views=choices.framework.n_views or choices.n_views,
        batch_size=choices.batch_size,
        width=fitted.widths.projection + n_extra,
        device=device,
        generator=torch.Generator(device=device),
        framework=choices.framework,
        loss=choices.loss,
        similarity=choices.similarity,
        draw=draw_views(fitted, device, fitted.augmentation),
        max_epochs=choices.max_epochs,
        first_epoch=past.n_epochs if one_epoch and past is not None else 0,
        lr_schedule=None if one_epoch else choices.lr_schedule,
        seed=seed,
        seeds_layers=choices.framework.draws_random_numbers or draws_random_numbers(module),
        world=world,
    )


def draw_views(fitted: Fitted, device: torch.device, chain: list[Augmentation]) -> Callable:
    """Return a fitted chain as a callable on batches on a device."""
    return compose(
        chain,
        fitted.schema.sample_shape,
        kind=fitted.schema.kind,
        convert=lambda samples: fitted.scaler.to_tensor(samples, device),
    )


def _net(choices, network, plan, auto, past, one_epoch, fingerprint):
    """Return a net that is about to train, in the state in which a past fit has left it."""
    is_first = plan.world is None or plan.world.rank == 0
    net = make_net(
        network,
        plan,
        auto,
        optimizer=choices.optimizer,
        lr=choices.lr,
        weight_decay=choices.weight_decay,
        max_epochs=1 if one_epoch else choices.max_epochs,
        callbacks=choices.callbacks,
        verbose=choices.verbose if is_first else 0,
    )
    if past is not None:
        net.history_ = copy.deepcopy(past.history)
        load_optimizer(net.optimizer_, past.optimizer_state)
        resume_session(plan.framework, net.criterion_, past.framework_state, fingerprint)
    return net


def _finish(
    fitted: Fitted, net: ContrastiveNet, fingerprint: Callable | None, interrupted: bool
) -> Fitted:
    """Return what is known after the training; with what a later fit needs, or without."""
    state: dict[str, Any] = {}
    if fingerprint is not None:
        state["optimizer_state"] = optimizer_state(net.optimizer_)
        state["framework_state"] = framework_state(fitted.framework, net.criterion_, fingerprint)
    return replace(
        fitted,
        network=net.module_.eval(),
        history=net.history,
        estimates=net.auto.values,
        interrupted=interrupted,
        **state,
    )
