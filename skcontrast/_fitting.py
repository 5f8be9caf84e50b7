"""What fit does: assemble scaler, views, network and plan, train, keep the result."""

from __future__ import annotations

import copy

import torch
from sklearn.base import clone
from torch import nn

from . import _assembly as assembly
from ._inputs import IMAGES, InputScaler, kind_of, validate_inputs, validate_labels
from ._network import Network, Standardize, channel_statistics
from ._sklearn_compat import validate_parameters
from ._training import Plan, Samples, make_net, train
from .augmentation import compose
from .encoders import build_encoder, projection_head


class NetworkTraining:
    """Mixin of the embedder: from parameters and data to the fitted attributes."""

    def _train(self, X, y, *, go_on, one_epoch=False):
        """Train and set the fitted attributes; a failure leaves the embedder as it was."""
        validate_parameters(self)
        assembly.check_choices(self)
        before = dict(vars(self))
        try:
            for role in assembly.COMPONENTS:
                setattr(self, f"{role}_", assembly.resolve_component(self, role))
            X, chain = assembly.unwrap(X, self.augmentation)
            X = validate_inputs(self, X, reset=not go_on, min_samples=2)
            labels = None
            if self.loss_.requires_y:
                labels = validate_labels(y, len(X), needed_by=type(self.loss_).__name__)
                labels = torch.from_numpy(labels).to(assembly.resolve_device(self.device))
            self._train_on(X, labels, chain, go_on, one_epoch)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    def _train_on(self, X, labels, chain, go_on, one_epoch):
        device = assembly.resolve_device(self.device)
        seed = assembly.resolve_seed(self.random_state)
        with assembly.preserved_rng(device):
            torch.manual_seed(seed)
            if not go_on:
                self._scaler = InputScaler(self.standardize).fit(X)
            data = self._scaler.to_tensor(X, device)
            self._fit_augmentation(X, chain, go_on)
            if go_on:
                network = copy.deepcopy(Network(self.encoder_, self.projector_))
            else:
                network = self._build(data)
            plan = self._plan(X, data, seed, go_on, one_epoch)
            net = make_net(
                network,
                plan,
                optimizer=assembly.resolve_optimizer(self.optimizer),
                lr=self.lr,
                weight_decay=self.weight_decay,
                max_epochs=1 if one_epoch else self.max_epochs,
                device=device,
                callbacks=self.callbacks,
                verbose=self.verbose,
                past=(self.history_, self._optimizer_state) if go_on else None,
            )
            train(net, Samples(data, labels))
        self._keep(net, one_epoch)

    def _fit_augmentation(self, X, chain, go_on):
        if go_on and chain is None:
            return
        if chain is None:
            chain = assembly.default_chain(self._sample_shape)
        fitted = [hasattr(step, "n_features_in_") for step in chain]
        self.augmentation_ = [
            step if is_fitted and self.augmentation is None else clone(step).fit(X)
            for step, is_fitted in zip(chain, fitted, strict=True)
        ]

    def _build(self, data):
        sample_shape = tuple(data.shape[1:])
        encoder, self._width = build_encoder(self.encoder, sample_shape, self.n_components)
        if kind_of(sample_shape) == IMAGES:
            mean, std = channel_statistics(data) if self.standardize else (0.0, 1.0)
        else:
            mean, std = self._scaler.mean_, self._scaler.std_
        mean, std = (torch.as_tensor(v, dtype=torch.float32) for v in (mean, std))
        encoder = nn.Sequential(Standardize(mean, std), encoder)
        return Network(encoder, projection_head(self._width, self.projection_dim))

    def _plan(self, X, data, seed, go_on, one_epoch):
        lr_schedule = None if one_epoch else assembly.resolve_lr_schedule(self.lr_schedule)
        epochs_before = self.n_epochs_ if go_on else 0
        return Plan(
            framework=self.framework_,
            loss=self.loss_,
            similarity=self.similarity_,
            draw=self._drawing(data.device, X, data),
            n_views=self.n_views,
            batch_size=self.batch_size,
            lr_schedule=lr_schedule,
            seed=seed,
            n_epochs=self.max_epochs,
            epochs_before=epochs_before,
            first_epoch=epochs_before if one_epoch else 0,
        )

    def _drawing(self, device, X=None, data=None):
        """Return the fitted chain as a callable on batches; `data` is X as it lies on `device`."""

        def convert(samples):
            return data if samples is X else self._scaler.to_tensor(samples, device)

        prepared = [step.prepared(convert) for step in self.augmentation_]
        return compose(prepared, self._sample_shape)

    def _keep(self, net, one_epoch):
        network = net.module_.eval()
        self.encoder_, self.projector_ = network.encoder, network.projector
        self.history_ = net.history
        self.n_epochs_ = len(self.history_)
        self._optimizer_state = None
        if self.warm_start or one_epoch:
            self._optimizer_state = net.optimizer_.state_dict()
