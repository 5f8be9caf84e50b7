"""Whether training has improved the score without labels on that of its own start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._layers._wide import learned_alone
from .._warnings import warn
from ..kinds._recognise import naming_kind
from ._setup import scored_views
from ._watch import CollapseCheck

# Training samples that are scored: at most, and at least.
_MOST_SAMPLES, _LEAST_SAMPLES = 256, 50
# In shorter fits the difference is noise, and measuring it takes a good part of the time.
_LEAST_EPOCHS, _LEAST_STEPS = 2, 100
# A smaller rise of the score of 256 samples is noise.
_LEAST_RISE = 0.01


def scored_rows(net: Any) -> NDArray[np.int64] | None:
    """Return training samples, evenly spread, to score; None where a fit is short or has few."""
    n = net.sampler_.n_samples
    is_judged = _is_long(net, net.max_epochs) and n >= _LEAST_SAMPLES
    return np.arange(0, n, -(-n // _MOST_SAMPLES)) if is_judged else None


def improvement_from_now(net: Any, samples: Any, *, is_new: bool) -> Callable[[], float | None]:
    """Return a function that returns how much the score without labels has risen since now.

    The score is `ContrastiveEmbedder.score` of training samples, `scored_rows`; features that are
    not learned are left out. It draws views from a generator of its own, so the fit is the same
    without it, and a resumed fit has the same start. The function returns None if there is no such
    score, and warns if it has not risen in a fit that continues no earlier one, after which there
    may be little to gain.
    """
    start = None if samples is None else _score(net, samples)

    def improvement() -> float | None:
        if start is None or (end := _score(net, samples)) is None:
            return None
        if end - start < _LEAST_RISE and is_new and _is_to_warn(net):
            warn(
                f"Training has not improved the score without labels by {_LEAST_RISE} or more, "
                f"and less is noise: of training samples, it was {start:.3f} and is {end:.3f}. "
                "Train for more epochs, with other views ('augmentation') or a different 'lr', "
                "and see by metrics.compare_with_baselines whether it is worth its training."
            )
        return end - start

    return improvement


def _is_to_warn(net: Any) -> bool:
    """Return whether a missing improvement is worth a warning, which collapse already gave."""
    has_warned = any(isinstance(c, CollapseCheck) and c.has_warned_ for _, c in net.callbacks_)
    return not has_warned and _is_long(net, len(net.history))


def _is_long(net: Any, n_epochs: int) -> bool:
    """Return whether a fit of so many epochs is long enough to be judged."""
    n_steps = n_epochs * -(-net.sampler_.n_samples // net.settings.batch_size)
    return n_epochs >= _LEAST_EPOCHS and n_steps >= _LEAST_STEPS


def _score(net: Any, samples: Any) -> float | None:
    """Return the score, None where the views or embeddings of these samples have none."""
    from ..metrics._neighbors import neighbor_agreement  # only now, as short fits have no score

    setup, network = net.setup, net.module_
    try:
        with naming_kind(setup.schema.kind):
            chain = scored_views(setup, samples)
            if not chain:  # both views are the sample
                return None
            is_projected = net.settings.output == "projection"
            with learned_alone(network):
                module = setup.projecting(network) if is_projected else network.encoder
                return setup.score(module, samples, neighbor_agreement, chain, net.settings.device)
    except (RuntimeError, TypeError, ValueError):
        return None
