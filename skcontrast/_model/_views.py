"""Views of samples: augmentations fitted to X, and how they draw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, cast

import torch
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from .._checks import validate_parameters
from .._checks._arguments import check_component
from .._data._arrays import row_blocks
from ..augmentation._base import Augmentation, Chain
from ..augmentation._compose import compose
from ..augmentation._symmetries import may_show_symmetries, symmetries_of
from ..kinds._base import Scaler, Schema, in_units_of_X
from ._defaults import default_chain, no_default_error

# What a user may pass as augmentation.
Augmentations: TypeAlias = Augmentation | Sequence["Augmentations"] | Pipeline | None


class ViewSampler:
    """Draws views of samples.

    Parameters
    ----------
    chain : list of Augmentation
        Fitted to samples of the schema.
    schema : Schema
        The schema of the samples.
    scaler : object
        The fitted scaler, which converts samples to batches.
    device : torch.device or str, default="cpu"
        The device of the batches.
    sides : tuple of int or None, default=None
        Height and width to which images are reduced, if the augmentations take any size.

    Attributes
    ----------
    draw : callable
        ``draw(batch, generator)`` returns one view of each sample of a batch.
    """

    def __init__(
        self,
        chain: Chain,
        schema: Schema,
        scaler: Scaler,
        device: torch.device | str = "cpu",
        sides: Sequence[int] | None = None,
    ):
        self.scaler, self.device = scaler, torch.device(device)
        shape, kind = schema.sample_shape, schema.kind
        draw: Any = compose(chain, shape, kind=kind, convert=self.to_batch)
        if draw.image_shape and draw.takes_any_size:
            draw.sides = sides
        self.draw = draw

    def to_batch(self, samples: Any) -> Any:
        """Return samples as a batch."""
        return self.scaler.to_tensor(samples, self.device)

    @torch.no_grad()
    def in_units_of_X(self, samples: Any, generator: torch.Generator, n_rows: int) -> Any:
        """Return a view of each sample in the units of X, drawn for `n_rows` samples at a time."""
        blocks = row_blocks(samples, n_rows)
        views = [self.draw(self.to_batch(block), generator) for block in blocks]
        batch = torch.cat([view.to("cpu") for view in views]) if len(views) > 1 else views[0]
        batch = batch if self.device.type == "cpu" else batch.to("cpu")
        return in_units_of_X(self.scaler, batch, samples)


def augmentations_of(augmentation: Augmentations, owner: str) -> Chain | None:
    """Return an augmentation, a list or a Pipeline as a validated list; None stays None."""
    if augmentation is None:
        return None
    if isinstance(augmentation, Pipeline):
        steps = (step for _, step in augmentation.steps if step not in (None, "passthrough"))
        augmentation = list(steps)
    if isinstance(augmentation, (list, tuple)):
        return [part for step in augmentation for part in augmentations_of(step, owner) or ()]
    if callable(augmentation) and not isinstance(augmentation, (type, Augmentation)):
        name = getattr(augmentation, "__name__", type(augmentation).__name__)
        raise TypeError(
            f"The 'augmentation' parameter of {owner} got {name}, which is not an Augmentation: "
            f"pass FunctionAugmentation({name}), with per_sample=True if it takes one sample."
        )
    check_component(augmentation, Augmentation, owner=owner, parameter="augmentation")
    validate_parameters(augmentation)
    return [cast(Augmentation, augmentation)]


def fit_chain(chain: Chain | None, array: Any, schema: Schema, **conditions: Any) -> Chain:
    """Return augmentations fitted to X; None is the default of the kind under the conditions."""
    if chain is None:
        chain = default_chain(schema.kind, schema.sample_shape, **conditions)
    if chain is None:
        raise no_default_error("augmentation", schema.kind)
    return [clone(step).fit_checked(array, schema) for step in chain]


def shown_symmetries(array: Any, schema: Schema, scaler: Scaler) -> tuple[str, ...] | None:
    """Return the flips and rotations that X allows, None if they are unknown.

    They depend only on X, so that embedders of the same X are scored by the same views.
    """
    is_detectable = may_show_symmetries(len(array), schema.kind.image_shape(schema.sample_shape))
    return symmetries_of(array, scaler, seed=0).shown if is_detectable else None
