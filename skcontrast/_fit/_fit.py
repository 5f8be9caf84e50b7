"""What fit does: assemble scaler, views, network and plan, train, keep the result."""

from __future__ import annotations

import copy
from contextlib import nullcontext
from numbers import Real

import torch
from sklearn.base import clone

from .._data._batches import TrainingSet
from .._data._metadata import (
    check_descriptions,
    classes_or_none,
    validate_labels,
    validate_metadata,
)
from .._data._sources import make_source, read, subset
from .._data._validation import check_border, join_pair, validate_inputs
from .._distributed._world import check_same, current_world, fingerprint, same_everywhere
from .._network._build import build_network
from .._network._network import Network
from .._parameters import validate_parameters
from .._statistics import as_tensor
from ..augmentation import compose
from ..graphs import PackedGraphs
from . import _choices as assembly
from ._estimated_parameters import AutoParameters, auto_parameters
from ._net import framework_state, make_net, train
from ._optimizer import optimizer_state, resolve_lr_schedule, resolve_optimizer
from ._plan import Plan

# Parameters that may be others on each rank of a distributed fit.
_RANKS_OWN = {"callbacks", "device", "random_state", "verbose"}


class NetworkTraining:
    """Mixin of the embedder: from parameters and data to the fitted attributes."""

    def _train(self, X, y, metadata, *, go_on, one_epoch=False):
        """Train and set the fitted attributes; a failure leaves the embedder as it was."""
        validate_parameters(self)
        assembly.check_choices(self)
        before = dict(vars(self))
        interrupted = False
        try:
            for role in assembly.COMPONENTS:
                setattr(self, f"{role}_", assembly.resolve_component(self, role))
            X, chain = assembly.unwrap(X, self.augmentation)
            X, border = join_pair(X, self.framework_)
            if go_on:
                check_border(border, self._border)
            else:
                self._border = border
            X = validate_inputs(self, X, reset=not go_on, min_samples=2)
            known = self._annotations(y, metadata, len(X))
            if go_on:
                assembly.check_same_network(self, before["_built_from"])
            with torch.inference_mode(False), torch.enable_grad():
                interrupted = self._train_on(X, known, chain, go_on, one_epoch)
            if interrupted and not self.n_epochs_:
                raise KeyboardInterrupt
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise
        if interrupted:
            raise KeyboardInterrupt(
                f"fit was interrupted; the embedder keeps what it learned in {self.n_epochs_} "
                "epochs"
            )

    def _train_on(self, X, known, chain, go_on, one_epoch):
        world = current_world()
        device = assembly.resolve_device(self.device)
        seed = assembly.resolve_seed(self.random_state)
        if world is not None:
            assembly.check_no_graphs(X)
            seed = self._agree(X, known, seed, go_on, world, device)
        array = read(X)
        if not go_on:
            assembly.warn_channels_last(X)
            self._scaler = assembly.make_scaler(self, array).fit(array)
        network = self._network(array, seed, device, go_on)
        self._fit_augmentation(array, chain, go_on)
        check_descriptions(known.get("descriptions"), self._projection_width // self._n_parts)
        samples = TrainingSet(self._source(X, device, world), **known)
        plan = self._plan(samples, seed, go_on, one_epoch, world)
        past = self._past(X, known) if go_on else None
        # What a framework adds to the network starts from other numbers than the network.
        with assembly.seeded_rng(seed + 1, device):
            net = self._net(network, plan, device, past, 1 if one_epoch else self.max_epochs)
        # Other threads wait only where the network itself draws random numbers.
        with assembly.seeded_rng(seed, device) if plan.seeds_layers else nullcontext():
            interrupted = train(net, samples)
        self._keep(net, one_epoch)
        if self._framework_state is not None:
            self._framework_state["samples"] = _fingerprint(X, known)
        return interrupted

    def _source(self, X, device, world):
        return make_source(
            X,
            self._scaler.to_tensor,
            device,
            budget=self.memory_budget,
            n_workers=self.n_workers,
            n_sharing=1 if world is None or device.type != "cpu" else world.size,
        )

    def _network(self, array, seed, device, go_on):
        if go_on:
            return copy.deepcopy(Network(self.encoder_, self.projector_))
        with assembly.seeded_rng(seed, device):
            return self._build(array)

    def _net(self, network, plan, device, past, max_epochs):
        is_first = plan.world is None or plan.world.rank == 0
        return make_net(
            network,
            plan,
            optimizer=resolve_optimizer(self.optimizer),
            lr=self.lr,
            weight_decay=self.weight_decay,
            max_epochs=max_epochs,
            device=device,
            callbacks=self.callbacks,
            verbose=self.verbose if is_first else 0,
            past=past,
        )

    def _past(self, X, known):
        """Return what a fit goes on from beside the network."""
        framework = self._framework_state
        if framework is not None:
            same = framework["samples"] == _fingerprint(X, known)
            framework = {**framework, "same_samples": same}
        return self.history_, self._optimizer_state, framework

    def _fit_augmentation(self, X, chain, go_on):
        if go_on and chain is None:
            return
        if chain is None:
            chain = assembly.default_chain(
                self._sample_shape, self.framework_, self._contrasts_channels
            )
        fitted = [step.__sklearn_is_fitted__() for step in chain]
        self.augmentation_ = [
            step if is_fitted and self.augmentation is None else clone(step).fit(X)
            for step, is_fitted in zip(chain, fitted, strict=True)
        ]

    def _build(self, X):
        some = self._scaler.to_tensor(subset(X), torch.device("cpu"))
        split = self.framework_.split_samples(tuple(some.shape[1:]), self._border)
        network, self._width, self._projection_width = build_network(some, self, split)
        self._n_parts = 1 if split is None else len(split.shapes)
        self._border = None if split is None else split.border
        self._contrasts_channels = split is not None and split.is_of_channels
        if not any(parameter.requires_grad for parameter in network.parameters()):
            raise ValueError(
                "There is nothing to train: 'encoder' has no trainable parameters and "
                "'projection_dim' is 0."
            )
        self._built_from = assembly.network_parameters(self)
        return network

    def _annotations(self, y, metadata, n_samples):
        """Return what is known about the samples beside X: tensors by name."""
        weights, descriptions = validate_metadata(metadata, n_samples)
        known = {"labels": None, "weights": weights, "descriptions": descriptions}
        if self.loss_.requires_y:
            known["labels"] = validate_labels(y, n_samples, needed_by=type(self.loss_).__name__)
        elif auto_parameters(self.loss_) and y is not None:
            known["labels"] = classes_or_none(y, n_samples)
        return {name: as_tensor(a) for name, a in known.items() if a is not None}

    def _agree(self, X, known, seed, go_on, world, device):
        """Check that all ranks were given the same, and return the seed of rank 0."""
        settings = {
            name: value
            for name, value in self.get_params(deep=False).items()
            if name not in _RANKS_OWN and isinstance(value, (str, Real, type(None)))
        }
        arrays = [X, *(array.numpy() for array in known.values())]
        before = self.n_epochs_ if go_on else 0
        check_same(arrays, (settings, list(known), before), world, device)
        return same_everywhere(seed, device)

    def _plan(self, samples, seed, go_on, one_epoch, world):
        lr_schedule = None if one_epoch else resolve_lr_schedule(self.lr_schedule)
        epochs_before = self.n_epochs_ if go_on else 0
        past = self.estimates_ if go_on else None
        auto = AutoParameters(self.loss_, samples.known.get("labels"), past)
        if not go_on and not one_epoch:
            assembly.warn_never_estimated(auto, self.max_epochs)
        return Plan(
            framework=self.framework_,
            loss=self.loss_,
            similarity=self.similarity_,
            draw=self._drawing(samples.device, self.augmentation_),
            n_samples=len(samples),
            n_views=self.framework_.n_views or self.n_views,
            batch_size=self.batch_size,
            width=self._projection_width + self._n_parts * self.similarity_.n_extra,
            lr_schedule=lr_schedule,
            seed=seed,
            n_epochs=self.max_epochs,
            auto=auto,
            compile=self.compile,
            bf16=assembly.trains_in_bf16(self, samples.source),
            world=world,
            epochs_before=epochs_before,
            first_epoch=epochs_before if one_epoch else 0,
            seeds_layers=assembly.draws_random_numbers(self.encoder)
            or self.framework_.draws_random_numbers,
        )

    def _drawing(self, device, chain):
        """Return a fitted chain as a callable on batches on `device`."""
        prepared = [
            step.prepared(lambda samples: self._scaler.to_tensor(samples, device))
            for step in chain
        ]
        return compose(prepared, self._sample_shape)

    def _keep(self, net, one_epoch):
        network = net.module_.eval()
        self.encoder_, self.projector_ = network.encoder, network.projector
        self.history_ = net.history
        self.n_epochs_ = len(self.history_)
        self.estimates_ = net.plan.auto.values
        self._optimizer_state = self._framework_state = None
        if self.warm_start or one_epoch:
            self._optimizer_state = optimizer_state(net.optimizer_)
            self._framework_state = framework_state(net)


def _fingerprint(X, known):
    """Return a number that tells samples and their labels from others."""
    labels = known.get("labels")
    arrays = X.arrays() if isinstance(X, PackedGraphs) else [X]
    return fingerprint(arrays if labels is None else [*arrays, labels.numpy()])
