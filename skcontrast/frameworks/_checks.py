"""Validation of the contrasts that frameworks return, in tests and in the first steps of a fit."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .._checks import validate_parameters
from .._checks._arguments import check_returned, validated
from .._data._batches import Batch
from .._objective._contrast import Contrast
from .._objective._mean_loss import objective_value
from .._runtime import guarded, seeded_rng
from ..losses import DCL
from ..similarity import Similarity
from ..similarity._base import check_scores
from ._base import FitContext, Framework, Session

_RULE = (
    "A framework returns anchors, positives and candidate negatives as a Contrast, and the "
    "embedder's loss is computed from their scores. Methods without negatives, or with another "
    "loss, such as BYOL, SimSiam or VICReg, cannot be written as a framework."
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
    "correcting": (["n_anchors", "n_correcting"], "floating"),
    "pair_weights": (_ANCHORS + _CANDIDATES, "floating"),
}
_OPTIONAL = list(_FIELDS)[4:]
# The size of synthetic batches.
_N_SAMPLES = 12
# The maximum number of anchors whose scores are checked.
_MOST_ANCHORS = 64


@guarded()
@validated(framework=Framework)
def check_framework(framework: Framework) -> None:
    """Check that a custom framework returns a valid contrast.

    A network of one layer is trained for three steps on synthetic vectors that have weights,
    labels and groups. ``fit`` checks its first two steps in the same way,
    for any kind of samples.

    Parameters
    ----------
    framework : Framework
        The framework.

    Raises
    ------
    TypeError, ValueError
        If the framework needs a special network, as CMC does, which only a fit builds; if
        ``start`` returns no session, or one that has registered the network; or if a contrast
        has inconsistent fields, scores out of bounds, or no metadata of the samples.

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
        raise ValueError(f"{framework!r} needs a network that only fit builds: call fit instead.")
    cpu, loss, similarity = torch.device("cpu"), DCL(), framework.default_similarity()
    width, n_views, rows = 8 + similarity.n_extra, framework.n_views or 2, torch.arange(36)
    # A small fit of three batches, since a memory is empty in the first. Each sample has a class,
    # a weight and a group, so that permuted rows are detected.
    with seeded_rng(0, cpu):
        X, network = torch.arange(180.0).sin().view(36, 5), torch.nn.Linear(5, width)
        sizes: Any = len(X), n_views, _N_SAMPLES, width, cpu, torch.Generator(), rows // 2
        context = FitContext(network, network, lambda module: module, *sizes)
        session = new_session(framework, context)
        for chosen in rows.split(_N_SAMPLES):
            batch = Batch(X[chosen], chosen % 3, 1.0 + chosen, None, chosen, chosen // 2)
            views = [X[chosen] + 0.5 * X[chosen].roll(v) for v in range(n_views)]
            contrasts = as_contrasts(session.contrast(views, similarity, batch), framework)
            check_contrasts(contrasts, batch, framework, similarity)
            for contrast in contrasts:
                objective_value(contrast, loss, similarity, session.objective).backward()
            session.update()


def new_session(framework: Framework, context: FitContext) -> Session:
    """Return the validated session of a framework.

    Raises
    ------
    TypeError
        If ``start`` returns no session.
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
                f"{type(session).__name__} registers the network of the fit as "
                f"{name.split('.')[0]!r}: call self.context.network instead."
            )
    return session


def as_contrasts(returned: Any, framework: Framework) -> list[Contrast]:
    """Return the output of a session as a list of contrasts.

    Raises
    ------
    TypeError, ValueError
        If it is neither a Contrast nor a list of them.
    """
    owner = type(framework).__name__
    contrasts = list(returned) if isinstance(returned, (list, tuple)) else [returned]
    if not contrasts or not all(isinstance(item, Contrast) for item in contrasts):
        got = ", ".join(type(item).__name__ for item in contrasts) or "an empty list"
        raise TypeError(f"{owner} must return a Contrast or a list of them, got {got}. {_RULE}")
    return contrasts


@torch.no_grad()
def check_contrasts(
    contrasts: Sequence[Contrast], batch: Batch, framework: Framework, similarity: Similarity
) -> None:
    """Validate the contrasts of a batch.

    Raises
    ------
    ValueError
        If fields are inconsistent or empty, scores are out of bounds or have no gradient, or
        metadata of the samples are missing.
    """
    owner = type(framework).__name__
    for contrast in contrasts:
        _check_fields(contrast, owner)
        _check_columns_and_weights(contrast, owner)
        _check_metadata(contrast, batch, owner)
        with torch.autocast(contrast.anchors.device.type, enabled=False):
            _check_scores_of(contrast.take(slice(_MOST_ANCHORS)), similarity, owner)


def _check_fields(contrast: Contrast, owner: str) -> None:
    """Validate types and shapes, and that no field is empty."""
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
    for axis in ("n_anchors", "n_positives", "n_candidates", "n_correcting"):
        if not sizes.get(axis, 1):
            raise ValueError(f"The Contrast of {owner} has no {axis[2:]}. {_RULE}")
    if sizes["n_excluded"] >= sizes["n_candidates"]:
        raise ValueError(f"The Contrast of {owner} excludes all candidates. {_RULE}")


def _check_columns_and_weights(contrast: Contrast, owner: str) -> None:
    """Validate indices of candidates, and weights."""
    n_candidates, columns = len(contrast.candidates), contrast.excluded.sort(1).values
    for name in ("weights", "pair_weights"):
        factors = getattr(contrast, name)
        if factors is not None and (factors.requires_grad or not (factors >= 0).all()):
            raise ValueError(
                f"{name} of the Contrast of {owner} must be at least 0 and have no gradient."
            )
    if ((columns < 0) | (columns >= n_candidates)).any() or (columns.diff(dim=1) == 0).any():
        raise ValueError(
            f"excluded of the Contrast of {owner} must be indices of its {n_candidates} "
            "candidates, all different for an anchor."
        )


def _check_metadata(contrast: Contrast, batch: Batch, owner: str) -> None:
    """Check that the metadata of the samples were passed on."""
    for argument, values, fields in (
        ("groups", batch.groups, ["anchor_groups", "candidate_groups"]),
        ("y", batch.labels, ["anchor_labels", "candidate_labels"]),
        ("sample_weight", batch.weights, ["weights"]),
        ("descriptions", batch.descriptions, ["weights"]),
    ):
        missing = [field for field in fields if getattr(contrast, field) is None]
        if missing and (values is not None or len(missing) < len(fields)):
            raise ValueError(
                f"{owner} passes no {' and no '.join(missing)} to Contrast, so it cannot be "
                f"fitted with {argument}: take them from the batch, see Batch.metadata."
            )


def _check_scores_of(contrast: Contrast, similarity: Similarity, owner: str) -> None:
    """Check that scores are in bounds, which they rarely are without ``similarity.embed``."""
    scores: Any = similarity.scores(contrast.anchors, contrast.candidates)
    shape = len(contrast.anchors), len(contrast.candidates)
    check_returned(f"{type(similarity).__name__}.scores", scores, shape)
    ends, whose = (contrast.anchors, contrast.candidates), f"the Contrast of {owner}"
    vectors = f"Anchors and candidates of {whose}, which must come from similarity.embed, have"
    # The score of a vector with itself, which is excluded, may be NaN by rounding.
    counts = torch.ones_like(scores, dtype=torch.bool).scatter_(1, contrast.excluded, False)
    check_scores(similarity, scores[counts], *ends, vectors)
    if contrast.positives.is_floating_point():
        positives = f"The positives of {whose} have"
        if contrast.anchors.requires_grad and not contrast.positives.requires_grad:
            raise ValueError(f"{positives} no gradient: compute them from the network's output.")
        check_scores(similarity, contrast.positives, *ends, positives)
