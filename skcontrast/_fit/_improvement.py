"""Whether training has improved the score without labels on that of its own start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import nn

from .._layers._wide import learned_alone
from .._warnings import warn
from ..kinds._recognise import naming_kind
from ..metrics._agreement import neighbor_agreement
from ._setup import Setup, scored_views
from ._watch import CollapseCheck

# Training samples that are scored: at most, and at least.
_MOST_SAMPLES, _LEAST_SAMPLES = 256, 50
# In shorter fits the difference is noise, and measuring it takes a good part of the time.
_LEAST_EPOCHS, _LEAST_STEPS = 2, 100
# A smaller rise of the score of 256 samples is noise.
_LEAST_RISE = 0.01


class Improvement:
    """The score without labels at the start of a fit, and how much higher it is later.

    It is `ContrastiveEmbedder.score` of training samples, evenly spread; features that are not
    learned are left out. The score draws views from a generator of its own, so the fit is the same
    without it, and a resumed fit has the same start.

    Parameters
    ----------
    net : ContrastiveNet
        About to train.
    setup : Setup
        What the training starts from.
    X : array-like of length n_samples
        The training samples, as their kind returns them.
    output : {"representation", "projection"}
        What `transform` will return.
    continues : bool
        Whether the fit continues an earlier one, after which there may be little to gain.
    """

    def __init__(self, net: Any, setup: Setup, X: Any, output: str, *, continues: bool):
        self.net, self.setup, self.output, self.continues = net, setup, output, continues
        self.start: float | None = None
        if _is_long(net, net.max_epochs) and len(X) >= _LEAST_SAMPLES:
            self.samples = X[np.arange(0, len(X), -(-len(X) // _MOST_SAMPLES))]
            self.start = self._score()

    def found(self) -> float | None:
        """Return the score now minus that at the start, None if there is no such score."""
        end = None if self.start is None else self._score()
        if end is None or self.start is None:
            return None
        if end - self.start < _LEAST_RISE and self._is_to_warn():
            warn(
                "Training has not improved on the start: the score without labels of training "
                f"samples is {end:.3f}, and was {self.start:.3f} before. Train for more epochs, "
                "with other views ('augmentation') or a different 'lr', and see by "
                "metrics.compare_with_baselines whether the embedding is worth its training."
            )
        return end - self.start

    def _is_to_warn(self) -> bool:
        """Return whether a score that has not risen says something, and is not said elsewhere."""
        net = self.net
        is_first = net.plan.world is None or net.plan.world.rank == 0
        is_new = is_first and not self.continues and not _has_collapsed(net.callbacks_)
        return is_new and _is_long(net, len(net.history))

    def _score(self) -> float | None:
        """Return the score, None where the views or embeddings of these samples have none."""
        setup, device = self.setup, self.net.plan.device
        try:
            with self.net.plan.layer_draws.aside(), naming_kind(setup.schema.kind):
                chain = scored_views(setup, self.samples)
                if not chain:  # both views are the sample
                    return None
                with learned_alone(self.net.module_):
                    scored = self._network(), self.samples, neighbor_agreement
                    return setup.score(*scored, chain, device)
        except (RuntimeError, TypeError, ValueError):
            return None

    def _network(self) -> nn.Module:
        """Return the map from samples to the output of `transform`."""
        network = self.net.module_
        is_projected = self.output == "projection"
        return self.setup.projecting(network) if is_projected else network.encoder


def _is_long(net: Any, n_epochs: int) -> bool:
    """Return whether a fit of so many epochs is long enough to be judged."""
    n_steps = n_epochs * -(-net.plan.n_samples // net.plan.batch_size)
    return n_epochs >= _LEAST_EPOCHS and n_steps >= _LEAST_STEPS


def _has_collapsed(callbacks: Sequence[tuple[str, Any]]) -> bool:
    """Return whether a warning about collapse says it already."""
    return any(isinstance(c, CollapseCheck) and c.has_warned_ for _, c in callbacks)
