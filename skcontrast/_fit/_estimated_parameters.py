"""α and τ⁺ of a loss, estimated from the data while it trains."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from torch import Tensor

from .._objective._contrast import Contrast
from ..losses import Loss
from ..schedules import Schedule, at_progress
from ..schedules._numbers import auto_parameters, estimable_parameters
from ..similarity import Similarity

# With α = .5, ranks have no effect; τ⁺ = .1 is the default of the losses.
_INITIAL = {"alpha": 0.5, "tau_plus": 0.1}
# Beyond these ranges, a loss may lose all its negative or all its positive terms.
_RANGES = {"alpha": (0.5, 1 - 1e-6), "tau_plus": (0.001, 0.99)}


class AutoParameters:
    """The hyperparameters of a loss that are "auto", and their current values.

    Parameters
    ----------
    loss : Loss
        The loss; hyperparameters may be "auto".
    labels : Tensor of shape (n_samples,) or None
        Classes, −1 where unknown; without labels, estimates come from ranks.
    past : dict, default=None
        The last values, by name, of an earlier fit.

    Attributes
    ----------
    settings : dict of str to Auto
        How often each is estimated, by name.
    values : dict of str to float
        The current value of each, by name.
    """

    def __init__(self, loss: Loss, labels: Tensor | None = None, past: Mapping[str, float] = {}):
        self.settings = auto_parameters(loss)
        self.declared = estimable_parameters(loss)
        self.values = {name: _INITIAL[self.declared[name].quantity] for name in self.settings}
        # Start from the estimates of an earlier fit.
        self.values.update((name, past[name]) for name in self.settings if name in past)
        self.due = set(self.settings)
        self.observed: list[Tensor] = []
        known = torch.empty(0) if labels is None else labels[labels >= 0].cpu()
        self.has_labels = len(known) > 0
        self.has_all_labels = labels is not None and 0 < len(known) == len(labels)
        if self.has_labels:
            counts = np.unique(known.numpy(), return_counts=True)[1]
            self.estimate_prior(counts / counts.sum())

    def at(
        self, loss: Loss, similarity: Similarity, progress: float
    ) -> tuple[Loss, Similarity, dict[str, float]]:
        """Return loss and similarity at a progress, and the values that vary, by name."""
        values = {
            f"{role}__{name}": value(progress)
            for role, component in (("loss", loss), ("similarity", similarity))
            for name, value in component.get_params().items()
            if isinstance(value, Schedule)
        }
        values.update((f"loss__{name}", value) for name, value in self.values.items())
        if not values:
            return loss, similarity, {}
        loss = clone(loss).set_params(**self.values) if self.values else loss
        return at_progress(loss, progress), at_progress(similarity, progress), values

    def start_epoch(self, epoch: int) -> None:
        """Determine which hyperparameters are estimated in this epoch."""
        self.due = {name for name, auto in self.settings.items() if (epoch + 1) % auto.every == 0}
        if self.has_all_labels:
            self.due -= self._of_quantity("tau_plus", self.due)
        self.observed = []

    def estimate_prior(self, shares: NDArray) -> None:
        """Estimate τ⁺ from the shares of the classes, shape (n_classes,), if that is due."""
        prior = float((shares**2).sum())
        self._set(self._of_quantity("tau_plus", self.due), "tau_plus", prior)

    def observe(self, contrast: Contrast, similarity: Similarity) -> None:
        """Record the ranks of the positives in a step or, with labels, the AUCs of the anchors."""
        if not self.due:
            return
        # Imported here and below, because most losses have nothing to estimate.
        from ..estimation._samples import class_aucs, count_outscored

        if self.has_labels:
            if self._of_quantity("alpha", self.due):
                self.observed.append(class_aucs(contrast, similarity))
            return
        n_candidates = len(contrast.candidates) - contrast.excluded.shape[1]
        ranks = count_outscored(contrast, similarity).flatten().double() / n_candidates
        self.observed.append(ranks)
        self.n_candidates = n_candidates

    def end_epoch(self, loss: Loss) -> None:
        """Make the due estimates from the observations of the epoch."""
        if not self.observed:
            return
        observed = torch.cat(self.observed)
        if not self.has_labels:
            self._estimate_from_ranks(observed.cpu().numpy(), loss)
        elif not bool(observed.isnan().all()):
            self._estimate_from_aucs(observed, loss)

    def _estimate_from_aucs(self, aucs: Tensor, loss: Loss) -> None:
        """Make the due estimates of α from the AUCs of anchors, shape (n,)."""
        from ..estimation._estimates import alpha_from_auc, mean_auc

        auc, parameters = mean_auc(aucs), loss.get_params()
        for name in self._of_quantity("alpha", self.due):
            is_printed_form = parameters.get(f"{self.declared[name].prefix}form") == "printed"
            self._set({name}, "alpha", (auc if is_printed_form else alpha_from_auc(auc)).value)

    def _estimate_from_ranks(self, ranks: NDArray, loss: Loss) -> None:
        """Make the due estimates from ranks, for each object in the loss that has some."""
        from ..estimation import estimate_alpha_and_tau_plus

        present = estimable_parameters(loss)
        for prefix in {self.declared[name].prefix for name in self.due}:
            names = {name for name, declared in self.declared.items() if declared.prefix == prefix}
            # A fixed τ⁺ is a property of the classes, and is used; a fixed α is not.
            fixed = self._of_quantity("tau_plus", names) - set(self.settings)
            known: dict[str, Any] = {"n_candidates": self.n_candidates}
            known["tau_plus"] = present[min(fixed)].value if fixed else None
            estimates = estimate_alpha_and_tau_plus(ranks.clip(0, 1), **known)
            for quantity, estimate in estimates.items():
                self._set(self._of_quantity(quantity, names & self.due), quantity, estimate.value)

    def _of_quantity(self, quantity: str, names: Iterable[str]) -> set[str]:
        return {name for name in names if self.declared[name].quantity == quantity}

    def _set(self, names: Iterable[str], quantity: str, value: float) -> None:
        low, high = _RANGES[quantity]
        self.values.update(dict.fromkeys(names, min(max(value, low), high)))
