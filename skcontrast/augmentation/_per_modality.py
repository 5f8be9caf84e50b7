"""Augmentations of multimodal samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import torch
from sklearn.base import clone

from .._checks import learned, parameter, validate_parameters
from .._checks._arguments import check_component
from .._data._modalities import Modalities, MultimodalBatch, OneModality, naming_modality
from .._runtime import guarded
from ..kinds._base import Kind, Schema
from ..kinds._recognise import MultimodalKind
from ._base import Augmentation, changed, generator_for
from ._compose import compose


class PerModality(Augmentation):
    """Augment each modality of a sample by its own augmentations.

    Parameters
    ----------
    augmentations : list
        One item for each modality: an augmentation, a list of augmentations that are applied one
        after the other, or None for a modality that stays unchanged.

    Attributes
    ----------
    chains_ : list of list of Augmentation
        The fitted augmentations of each modality.

    See Also
    --------
    skcontrast.datasets.Modalities : The modalities as one X.
    skcontrast.frameworks.CMC : Trains an encoder for each modality.

    Examples
    --------
    >>> import numpy as np
    >>> from skcontrast import ContrastiveEmbedder
    >>> from skcontrast.augmentation import GaussianNoise, PerModality, RandomAffine
    >>> from skcontrast.datasets import Modalities
    >>> from skcontrast.frameworks import CMC
    >>> rng = np.random.default_rng(0)
    >>> X = Modalities(rng.uniform(size=(50, 1, 8, 8)), rng.normal(size=(50, 6)))
    >>> embedder = ContrastiveEmbedder(
    ...     framework=CMC(),
    ...     augmentation=PerModality([RandomAffine(), GaussianNoise()]),
    ...     max_epochs=1,
    ...     random_state=0,
    ... )
    >>> embedder.fit(X).transform(X).shape
    (50, 256)
    """

    augmentations: Sequence[Augmentation | Sequence[Augmentation] | None] = parameter(
        [list, tuple]
    )

    kind = MultimodalKind()

    chains_: list[list[Augmentation]] = learned()

    def validate(self) -> None:
        """Raise an error for anything but augmentations, and for invalid parameters."""
        for step in self._steps:
            check_component(step, Augmentation, "PerModality", "augmentations")
            validate_parameters(step)

    def _fit_checked(self, X: Modalities, schema: Schema) -> Self:
        """Fit the augmentations of each modality."""
        validate_parameters(self)
        self.check_kind(schema.sample_shape, schema.kind)
        self._schema, self.chains_ = schema, []
        modalities = zip(self.augmentations, X.modalities, schema.modalities, strict=True)
        for position, (chain, *modality) in enumerate(modalities):
            with naming_modality(position):
                fitted = [clone(step).fit_checked(*modality) for step in _chain(chain)]
            self.chains_.append(fitted)
        schema.assign_names(self)
        return self

    def check_kind(self, sample_shape: tuple, kind: Kind | None = None) -> None:
        """Raise ValueError unless each modality has augmentations of its kind.

        Parameters
        ----------
        sample_shape : tuple of tuple of int
            Shape of each modality of a sample.
        kind : Kind, default=None
            Their kind; None infers it from their shape.
        """
        if not isinstance(kind, MultimodalKind):
            return super().check_kind(sample_shape, kind)
        n_modalities, n_items = len(sample_shape), len(self.augmentations)
        if n_modalities != n_items:
            raise ValueError(
                f"augmentations has {n_items} items, but samples have {n_modalities} modalities."
            )
        modalities = zip(self.augmentations, sample_shape, kind.kinds_, strict=True)
        for position, (chain, *shape_and_kind) in enumerate(modalities):
            with naming_modality(position):
                for step in _chain(chain):
                    step.check_kind(*shape_and_kind)

    @guarded(gradients=False)
    def augment(
        self, batch: MultimodalBatch, generator: torch.Generator | None = None
    ) -> MultimodalBatch:
        """Return a view of each modality; see the base class."""
        generator = generator_for(batch, generator)
        draws = getattr(self, "_draws", None) or self._composed(lambda position: None)
        pairs = zip(draws, batch.modalities, strict=True)
        return MultimodalBatch.of(draw(samples, generator) for draw, samples in pairs)

    def prepared(self, convert: Callable[[Any], Any]) -> PerModality:
        """Return a copy whose augmentations are in the units of the training batches."""
        draws = self._composed(lambda k: lambda samples: convert(OneModality(k, samples)))
        return changed(self, _draws=draws)

    def _composed(self, convert: Callable[[int], Callable | None]) -> list[Callable]:
        """Return a function for each modality, which draws its views."""
        modalities = enumerate(zip(self.chains_, self._schema.modalities, strict=True))
        return [
            compose(chain, schema.sample_shape, kind=schema.kind, convert=convert(position))
            for position, (chain, schema) in modalities
        ]

    @property
    def uses_samples(self) -> bool:
        """Whether `fit` of an augmentation may use the samples themselves, beyond their shape."""
        return any(step.uses_samples for step in self._steps)

    @property
    def _steps(self) -> list[Any]:
        """All unfitted augmentations."""
        return [step for chain in map(_chain, self.augmentations) for step in chain]

    @property
    def lacks_samples(self) -> bool:
        """Whether training samples of an augmentation were left out of a file."""
        return any(step.lacks_samples for chain in self.chains_ for step in chain)


def _chain(augmentation: Any) -> list[Any]:
    """Return an augmentation, a list of them or None as a list."""
    if augmentation is None:
        return []
    return list(augmentation) if isinstance(augmentation, (list, tuple)) else [augmentation]
