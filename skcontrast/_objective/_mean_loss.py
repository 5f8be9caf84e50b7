"""The mean loss of a contrast as a function that autograd knows."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..losses import Loss
from ..similarity import Similarity
from . import _pairs, _rows
from ._base import Gradients, Objective, ObjectiveName
from ._contrast import Contrast
from ._objectives import CONTRASTIVE, JENSEN_SHANNON
from ._tile import GroupRole, LossInputs

OBJECTIVES: dict[ObjectiveName, Objective] = {
    "contrastive": CONTRASTIVE,
    "jensen-shannon": JENSEN_SHANNON,
}


def objective_value(
    contrast: Contrast,
    loss: Loss,
    similarity: Similarity,
    objective: ObjectiveName = "contrastive",
    group_role: GroupRole = "neutral",
) -> Tensor:
    """Return the mean loss over the anchors of a contrast, differentiable.

    Parameters
    ----------
    contrast : Contrast
        Who is contrasted with whom.
    loss : Loss
        How the expectation over true negatives is estimated; without schedules.
    similarity : Similarity
        The score; without schedules.
    objective : {"contrastive", "jensen-shannon"}, default="contrastive"
        φ = exp and −log(P/(P + N·E)), or φ = softplus and softplus(−s⁺) + E.
    group_role : {"neutral", "positive"}, default="neutral"
        The role of candidates of the anchor's group, if the contrast has groups.

    Returns
    -------
    value : Tensor of shape ()
    """
    # Under autocast the products would be taken in half precision, which 1/temperature magnifies.
    with torch.autocast(contrast.anchors.device.type, enabled=False):
        self_scores = None
        if loss.overrides("anchor_loss"):
            self_scores = similarity.self_scores(contrast.anchors)
        inputs = LossInputs(
            contrast, self_scores, loss, similarity, OBJECTIVES[objective], group_role, {}
        )
        tensors = contrast.anchors, contrast.candidates, contrast.positives
        return _MeanLoss.apply(inputs, *tensors, self_scores)


class _MeanLoss(torch.autograd.Function):
    """Mean loss over anchors; the gradient is computed along with it, a part at a time."""

    @staticmethod
    def forward(
        ctx: Any,
        inputs: LossInputs,
        anchors: Tensor,
        candidates: Tensor,
        positives: Tensor,
        self_scores: Tensor | float | None,
    ) -> Tensor:
        _, *needed = ctx.needs_input_grad
        walk = _pairs if _pairs.takes(inputs) else _rows
        adds_candidates = needed[1] and walk is _rows
        ctx.gradients = None
        if any(needed):
            ctx.gradients = Gradients(
                anchors=torch.empty_like(anchors),
                # A queue needs none, which saves a matrix product; pairs add to the anchors.
                candidates=torch.zeros_like(candidates) if adds_candidates else None,
                positives=torch.empty_like(positives) if positives.is_floating_point() else None,
                self_scores=(
                    torch.zeros_like(self_scores) if isinstance(self_scores, Tensor) else None
                ),
            )
        return walk.mean_loss(inputs, ctx.gradients)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            raise RuntimeError(
                "contrastive_loss computes its gradient along with its value and can be "
                "differentiated once: create_graph=True is not supported."
            )
        gradients = ctx.gradients
        # Multiplying by 1 is left out, but not on a device where looking means waiting.
        if grad.device.type != "cpu" or grad != 1:
            gradients = gradients.times(grad)
        return None, *gradients
