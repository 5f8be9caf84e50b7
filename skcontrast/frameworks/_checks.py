"""Checks of the contrasts that frameworks return: in a test, and in the first steps of a fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .._checks import check_returned, validate_parameters, validated
from .._data._batches import Batch
from .._objective._contrast import Contrast
from .._objective._mean_loss import objective_value
from .._runtime import trial
from ..losses import InfoNCE
from ..similarity import Similarity
from ..similarity._checks import check_scores
from ._base import FitContext, Framework, Session

_RULE = (
    "A framework names anchors, their positives and candidate negatives in a Contrast, and the "
    "embedder's loss is formed from their scores. Methods that have no negatives, or a loss of "
    "their own, such as BYOL, SimSiam or VICReg, cannot be written as a framework."
)
# The axes of each field, and its dtype.
_ANCHORS, _CANDIDATES = ["n_anchors"], ["n_candidates"]
_FIELDS = {
    "anchors": (["n_anchors", "k"], "floating"),
    "candidates": (["n_candidates", "k"], "floating"),
    "positives": (["n_anchors", "n_positives"], "floating or int64"),
    "excluded": (["n_anchors", "n_excluded"], "int64"),
    "weights": (_ANCHORS, "floating"),
    "anchor_labels": (_ANCHORS, "int64"),
    "candidate_labels": (_CANDIDATES, "int64"),
    "anchor_groups": (_ANCHORS, "int64"),
    "candidate_groups": (_CANDIDATES, "int64"),
    "pair_weights": (_ANCHORS + _CANDIDATES, "floating"),
}
_OPTIONAL = list(_FIELDS)[4:]
# Samples of a made batch.
_N_SAMPLES = 12
# The largest number of anchors whose scores are checked.
_MOST_LOOKED_AT = 64


@validated(framework=Framework)
def check_framework(framework: Framework) -> None:
    """Check that a custom framework returns a valid contrast.

    A network of one layer is trained for three steps on synthetic vectors that have weights,
    labels and groups. ``fit`` checks what a framework returns in its first two steps in the same
    way, for any kind of samples.

    Parameters
    ----------
    framework : Framework
        The framework.

    Raises
    ------
    TypeError, ValueError
        If the framework has a network of its own, as CMC does, which only a fit builds; if
        ``start`` returns no session, or one that has registered the network; or if a contrast
        has fields that do not fit each other, scores out of bounds, or lacks what is known about
        the samples.

    See Also
    --------
    skcontrast.losses.check_loss : The same for a loss.
    skcontrast.similarity.check_similarity : The same for a similarity.

    Examples
    --------
    >>> from skcontrast.frameworks import Framework, check_framework, in_batch
    >>> class WithoutLabels(Framework):
    ...     def contrast(self, network, views, similarity, batch):
    ...         z = similarity.embed(network(torch.stack(views)))
    ...         return in_batch(z, None, batch.anchor_weights(z), batch.groups)
    >>> check_framework(WithoutLabels())
    Traceback (most recent call last):
    ...
    ValueError: WithoutLabels passes no anchor_labels and no candidate_labels to Contrast, so it...
    """
    validate_parameters(framework)
    if framework.network_signature is not None:
        raise ValueError(
            f"{framework!r} has a network of its own, which only fit builds: try fit."
        )
    cpu, loss, similarity = torch.device("cpu"), InfoNCE(), framework.default_similarity()
    width, n_views, rows = 8 + similarity.n_extra, framework.n_views or 2, torch.arange(36)
    # A fit in small: three batches, since a memory has nothing to answer with in the first. Each
    # sample has a class, a weight and a group, so that mixed up rows are seen.
    with trial(cpu):
        X, network = torch.arange(180.0).sin().view(36, 5), torch.nn.Linear(5, width)
        sizes: Any = len(X), n_views, _N_SAMPLES, width, cpu, torch.Generator(), rows // 2
        context = FitContext(network, network, lambda module: module, *sizes)
        session = started(framework, context)
        for part in rows.split(_N_SAMPLES):
            batch = Batch(X[part], part % 3, 1.0 + part, None, part, part // 2)
            views = [X[part] + 0.5 * X[part].roll(v) for v in range(n_views)]
            contrasts = as_contrasts(session.contrast(views, similarity, batch), framework)
            check_contrasts(contrasts, batch, framework, similarity)
            for contrast in contrasts:
                objective_value(contrast, loss, similarity, session.objective).backward()
            session.update()


def started(framework: Framework, context: FitContext) -> Session:
    """Return the session of a framework, checked.

    Raises
    ------
    TypeError
        If it is no session.
    ValueError
        If the network of the fit has been registered in it.
    """
    session = framework.start(context)
    if not isinstance(session, Session):
        raise TypeError(
            f"{type(framework).__name__}.start must return a skcontrast.frameworks.Session, got "
            f"{type(session).__name__}."
        )
    trained = {id(parameter) for parameter in context.module.parameters()}
    for name, parameter in session.named_parameters():
        if id(parameter) in trained:
            raise ValueError(
                f"{type(session).__name__} holds the network of the fit in its attribute "
                f"{name.split('.')[0]!r}, which registers it as a part of the session: call "
                "self.context.network instead."
            )
    return session


def as_contrasts(returned: Any, framework: Framework) -> list[Contrast]:
    """Return what a session has returned as a list of contrasts.

    Raises
    ------
    TypeError, ValueError
        If it is anything else.
    """
    owner = type(framework).__name__
    contrasts = list(returned) if isinstance(returned, (list, tuple)) else [returned]
    if not contrasts or not all(isinstance(one, Contrast) for one in contrasts):
        got = ", ".join(type(one).__name__ for one in contrasts) or "an empty list"
        raise TypeError(f"{owner} must return a Contrast or a list of them, got {got}. {_RULE}")
    return contrasts


@torch.no_grad()
def check_contrasts(
    contrasts: Sequence[Contrast], batch: Batch, framework: Framework, similarity: Similarity
) -> None:
    """Check the contrasts of a batch.

    Raises
    ------
    ValueError
        If the fields do not fit each other, nothing is left to contrast, scores are out of bounds
        or have no gradient, or what the user has passed about the samples is missing.
    """
    owner = type(framework).__name__
    for contrast in contrasts:
        _check_fields(contrast, owner)
        _check_numbers(contrast, owner)
        _check_metadata(contrast, batch, owner)
        with torch.autocast(contrast.anchors.device.type, enabled=False):
            _check_scores(contrast.take(slice(_MOST_LOOKED_AT)), similarity, owner)


def _check_fields(contrast: Contrast, owner: str) -> None:
    """Check types and shapes, and that nothing is empty."""
    sizes: dict[str, int] = {}
    for field, (axes, dtypes) in _FIELDS.items():
        value, got = getattr(contrast, field), type(getattr(contrast, field)).__name__
        if value is None and field in _OPTIONAL:
            continue
        fits = False
        if isinstance(value, Tensor):
            got = f"{value.dtype} of shape {tuple(value.shape)} on {value.device}"
            kind = "floating" if value.is_floating_point() else str(value.dtype)[6:]
            fits = kind in dtypes and value.ndim == len(axes)
            fits = fits and value.device == contrast.anchors.device
            # The first field with an axis defines its length, and the others must agree.
            lengths = zip(axes, value.shape, strict=False)
            fits = fits and all(sizes.setdefault(axis, n) == n for axis, n in lengths)
        if not fits:
            shape = ", ".join(f"{k} = {sizes[k]}" if k in sizes else k for k in axes)
            raise ValueError(
                f"{field} of the Contrast of {owner} must be a tensor, {dtypes}, of shape "
                f"({shape}), on the device of its anchors, got {got}."
            )
    for axis in ("n_anchors", "n_positives", "n_candidates"):
        if not sizes[axis]:
            raise ValueError(f"The Contrast of {owner} has no {axis[2:]}. {_RULE}")
    if sizes["n_excluded"] >= sizes["n_candidates"]:
        raise ValueError(f"The Contrast of {owner} excludes all candidates. {_RULE}")


def _check_numbers(contrast: Contrast, owner: str) -> None:
    """Check places among the candidates, and weights."""
    n_candidates, places = len(contrast.candidates), contrast.excluded.sort(1).values
    for name in ("weights", "pair_weights"):
        factors = getattr(contrast, name)
        if factors is not None and (factors.requires_grad or not (factors >= 0).all()):
            raise ValueError(
                f"{name} of the Contrast of {owner} must be at least 0 and have no gradient."
            )
    if ((places < 0) | (places >= n_candidates)).any() or (places.diff(dim=1) == 0).any():
        raise ValueError(
            f"excluded of the Contrast of {owner} must be places among its {n_candidates} "
            "candidates, and name no candidate twice for one anchor."
        )


def _check_metadata(contrast: Contrast, batch: Batch, owner: str) -> None:
    """Check that what is known about the samples has been passed on."""
    for argument, known, fields in (
        ("groups", batch.groups, ["anchor_groups", "candidate_groups"]),
        ("y", batch.labels, ["anchor_labels", "candidate_labels"]),
        ("sample_weight", batch.weights, ["weights"]),
        ("descriptions", batch.descriptions, ["weights"]),
    ):
        missing = [field for field in fields if getattr(contrast, field) is None]
        if missing and (known is not None or len(missing) < len(fields)):
            raise ValueError(
                f"{owner} passes no {' and no '.join(missing)} to Contrast, so it cannot be "
                f"fitted with {argument}: take them from the batch, see Batch.metadata."
            )


def _check_scores(few: Contrast, similarity: Similarity, owner: str) -> None:
    """Check that scores are in bounds, as those of vectors that were not embedded rarely are."""
    scores: Any = similarity.scores(few.anchors, few.candidates)
    shape = len(few.anchors), len(few.candidates)
    check_returned(f"{type(similarity).__name__}.scores", scores, shape)
    ends, whose = (few.anchors, few.candidates), f"the Contrast of {owner}"
    vectors = f"Anchors and candidates of {whose}, which must come from similarity.embed, have"
    # A vector's score with itself, which is excluded, may be NaN by rounding.
    is_read = torch.ones_like(scores, dtype=torch.bool).scatter_(1, few.excluded, False)
    check_scores(similarity, scores[is_read], *ends, vectors)
    if few.positives.is_floating_point():
        positives = f"The positives of {whose} have"
        if few.anchors.requires_grad and not few.positives.requires_grad:
            raise ValueError(f"{positives} no gradient: compute them from the network's output.")
        check_scores(similarity, few.positives, *ends, positives)
