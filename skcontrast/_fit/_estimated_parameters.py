"""α and τ⁺ of a loss, read off the data while it trains."""

from __future__ import annotations

import torch
from sklearn.base import clone

from .._distributed._world import pool
from .._parameters import Auto, is_auto, validate_parameters
from ..estimation import alpha_from_auc, estimate_alpha_and_tau_plus, tau_plus_from_labels
from ..estimation._from_labels import mean_auc
from ..estimation._rank_statistics import class_aucs, count_outscored

# α = .5 trusts no ranks; τ⁺ as the losses have it by default.
_INITIAL = {"alpha": 0.5, "tau_plus": 0.1}
_INSIDE = {"alpha": (0.5, 1 - 1e-6), "tau_plus": (0.001, 0.99)}


def auto_parameters(loss):
    """Return the settings, by name, of the hyperparameters of a loss that are to be estimated."""
    return {
        name: value if isinstance(value, Auto) else Auto()
        for name, value in loss.get_params().items()
        if is_auto(name, value)
    }


class AutoParameters:
    """The estimated hyperparameters of a loss and their present values.

    Parameters
    ----------
    loss : Loss
        Some of whose hyperparameters may be "auto".
    labels : Tensor of shape (n_samples,) or None
        Classes, −1 where unknown; without them ranks are used.
    past : dict, default=None
        Values, by name, that an earlier fit arrived at.
    """

    def __init__(self, loss, labels=None, past=None):
        self.settings = auto_parameters(loss)
        self.values = {
            name: _INITIAL[_symbol(name)] if auto.initial is None else auto.initial
            for name, auto in self.settings.items()
        }
        self.values.update((name, past[name]) for name in self.settings if name in (past or ()))
        validate_parameters(self.apply_to(loss))
        self.has_labels = labels is not None and bool((labels >= 0).any())
        if self.has_labels and self.settings:
            tau_plus = tau_plus_from_labels(labels.cpu().numpy()).value
            self._set("tau_plus", tau_plus, self.settings)

    def never_estimated(self, n_epochs):
        """Return the names whose first estimate comes too late for a fit of so many epochs."""
        known = {"tau_plus"} if self.has_labels else set()
        return [
            name
            for name, auto in self.settings.items()
            if auto.every >= n_epochs and _symbol(name) not in known
        ]

    def apply_to(self, loss):
        """Return the loss with the present values."""
        return clone(loss).set_params(**self.values) if self.values else loss

    def start_epoch(self, epoch):
        """Say which values are estimated from the steps of this epoch."""
        self.due = {name for name, auto in self.settings.items() if (epoch + 1) % auto.every == 0}
        if self.has_labels:
            self.due = {name for name in self.due if _symbol(name) == "alpha"}
        self.observed = []

    def observe(self, contrast, similarity):
        """Note what a step shows: ranks of the positives, or AUCs where there are labels."""
        if not self.due:
            return
        if self.has_labels:
            self.observed.append(class_aucs(contrast, similarity))
            return
        n_candidates = len(contrast.candidates) - contrast.excluded.shape[1]
        ranks = count_outscored(contrast, similarity).flatten().double() / n_candidates
        self.observed.append(ranks)
        self.n_candidates = n_candidates

    def end_epoch(self, loss, world=None):
        """Estimate anew what is due, from what all ranks of a distributed fit have observed."""
        if not (self.due and self.observed):
            return
        observed = torch.cat(self.observed)
        if world is not None:
            observed = pool(observed, world)
        if not self.has_labels:
            self._read_ranks(observed.cpu().numpy(), loss)
        elif not bool(observed.isnan().all()):
            self._set("alpha", alpha_from_auc(mean_auc(observed).value).value, self.due)

    def _read_ranks(self, ranks, loss):
        values = loss.get_params()
        for prefix in {name.removesuffix(_symbol(name)) for name in self.due}:
            # A given τ⁺ is knowledge about the classes; a given α is none about the encoder.
            name = f"{prefix}tau_plus"
            known = {} if name in self.settings else {"tau_plus": values.get(name)}
            estimates = estimate_alpha_and_tau_plus(
                ranks.clip(0, 1), n_candidates=self.n_candidates, **known
            )
            for symbol in _INITIAL:
                beside = {name for name in self.due if name == f"{prefix}{symbol}"}
                self._set(symbol, estimates[symbol].value, beside)

    def _set(self, symbol, value, names):
        # At their bounds a loss may be left without any negative or without any positive term.
        value = min(max(value, _INSIDE[symbol][0]), _INSIDE[symbol][1])
        self.values.update((name, value) for name in names if _symbol(name) == symbol)


def _symbol(name):
    """Return what a hyperparameter is, wherever in the loss it stands."""
    return name.rsplit("__")[-1]
