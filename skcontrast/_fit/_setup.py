"""The setup of a fit: a new network, or a copy of a trained one; and the fitted state."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from skorch.history import History
from torch import nn

from .._checks import POSITIVE_INT, check_argument, naming
from .._data._arrays import LazySamples, representative_array, row_blocks
from .._layers._images import Reduced
from .._layers._pretrained import PretrainedNetwork
from .._network._build import Directions, Network, Widths, build_network
from .._network._inference import Measure, embedded_views, on_cpu, score_views
from .._runtime import (
    one_thread,
    resolve_device,
    resolve_seed,
    seeded_everywhere,
    use_threads_for,
)
from .._warnings import say, warn
from ..augmentation import Augmentation, compose
from ..augmentation._compose import Composition
from ..augmentation._symmetries import may_show_symmetries, symmetries_of
from ..augmentation._views import base_of
from ..frameworks import Framework
from ..frameworks._modalities import NoSplit, Split
from ..kinds._base import Kind, Request, Schema, in_units_of_X, with_scaler
from ..kinds._images import Images
from ..losses import Loss
from ..similarity import Similarity
from ._defaults import default_chain, default_encoder, no_default_error
from ._samples import read_training_samples
from ._settings import Settings, augmentations_of, network_parameters, resolve_settings


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """The setup of a fit and, after training, the fitted state of an embedder.

    Attributes
    ----------
    loss, framework, similarity : Loss, Framework, Similarity
        The validated components.
    schema : Schema
        The schema of X.
    scaler : object
        The fitted scaler, which converts X to batches.
    network : Network
        Encoder and projection head; in inference mode after the training.
    widths : Widths
        The widths of the network's outputs.
    augmentation : list of Augmentation
        The fitted chain that draws the views.
    mixes_channels : bool
        Whether augmentations may mix channels; False if channels are contrasted.
    symmetries : tuple of str or None
        Flips and rotations that leave the distribution of the images unchanged, for the default
        augmentations; None if images are too few or too small to test, and for other kinds.
    built_from : dict
        The parameters that determine the network.
    history : History
        The history, with a row for each epoch.
    estimates : dict of str to float
        The last values of the hyperparameters that are estimated from the data.
    n_samples : int
        The number of samples in the largest fit.
    optimizer_state, framework_state : dict or None
        The states from which a later fit resumes.
    interrupted : bool
        Whether the user interrupted the fit.
    """

    loss: Loss
    framework: Framework
    similarity: Similarity
    schema: Schema
    scaler: Any
    network: Network
    widths: Widths
    augmentation: list[Augmentation]
    mixes_channels: bool
    symmetries: tuple[str, ...] | None
    built_from: dict[str, Any]
    history: History = field(default_factory=History)
    estimates: dict[str, float] = field(default_factory=dict)
    n_samples: int = 0
    optimizer_state: dict[str, Any] | None = None
    framework_state: dict[str, Any] | None = None
    interrupted: bool = False

    def on_cpu(self) -> Fitted:
        """Return a copy with all tensors on the CPU."""
        names = ("network", "optimizer_state", "framework_state")
        return replace(self, **{name: on_cpu(getattr(self, name)) for name in names})

    def read(self, X: Any, owner: Any, min_samples: int = 1) -> Any:
        """Validate an X, or `Views`, that is passed to a fitted embedder; see `Request`."""
        return self.schema.kind.read(base_of(X), Request(owner, self.schema, min_samples))[0]

    def composed(
        self, chain: list[Augmentation], device: torch.device, *, is_for_network: bool = True
    ) -> Composition:
        """Return a fitted chain as one function of batches on a device.

        Views for the network are reduced to the size of images that it reads.
        """
        draw: Any = compose(
            chain,
            self.schema.sample_shape,
            kind=self.schema.kind,
            convert=lambda samples: self.scaler.to_tensor(samples, device),
        )
        if is_for_network and draw.image_shape and draw.takes_any_size:
            reducing_layers = (
                layer for layer in self.network.encoder.modules() if isinstance(layer, Reduced)
            )
            draw.sides = next((layer.sides for layer in reducing_layers), None)
        return draw

    def use_threads(self) -> None:
        """Within `one_thread`, compute in all threads if the network is large."""
        schemas = self.schema.modalities or (self.schema,)
        kinds = ((schema.kind, schema.sample_shape) for schema in schemas)
        use_threads_for(self.network.encoder, *kinds)

    def projecting(self, network: Network) -> nn.Sequential:
        """Return the map from samples to projections, without concentrations.

        Raises
        ------
        ValueError
            If a pretrained network stayed frozen, so that its head was not trained.
        """
        if not self.history and any(True for _ in network.projector.parameters()):
            raise ValueError(
                "The projection head is not trained, because the pretrained network stayed "
                "frozen: pass output='projection' or Pretrained(adapt=True), and fit again."
            )
        directions = Directions(self.similarity, self.widths.n_modalities)
        return nn.Sequential(network.encoder, network.projector, directions)

    def score(
        self, network: nn.Module, X: Any, measure: Measure, chain: list[Augmentation], device: Any
    ) -> float:
        """Return a measure of the embeddings of two views of each sample."""

        def read(rows: NDArray) -> Any:
            return self.scaler.to_tensor(X[rows], device)

        view_blocks = embedded_views(
            network.eval(), self.composed(chain, device), len(X), read, device
        )
        return score_views(measure, view_blocks, len(X))


def new_setup(
    settings: Settings, X: Any, schema: Schema, chain: list[Augmentation] | None
) -> Fitted:
    """Return the setup of a first fit.

    Parameters
    ----------
    settings : Settings
        The user's parameters, validated.
    X : array-like of length n_samples
        Samples that their kind has validated.
    schema : Schema
        The schema of X.
    chain : list of Augmentation or None
        The augmentations that draw the views; None is the default of the kind.
    """
    kind = schema.kind
    array, scaler, batch = with_scaler(kind, X)
    with seeded_everywhere(settings.seed, settings.device):
        split = settings.framework.split_samples(kind, tuple(batch.shape[1:]))
        network, widths = _new_network(settings, schema, scaler, batch, split)
    mixes_channels = not (isinstance(split, Split) and split.is_of_channels)
    symmetries = shown_symmetries(array, schema, scaler)
    conditions: Any = {
        "mixes_channels": mixes_channels,
        "takes_one_view": settings.framework.n_views == 1,
        "symmetries": symmetries,
    }
    return Fitted(
        loss=settings.loss,
        framework=settings.framework,
        similarity=settings.similarity,
        schema=schema,
        scaler=scaler,
        network=network,
        widths=widths,
        augmentation=fit_chain(chain, array, schema, **conditions),
        mixes_channels=mixes_channels,
        symmetries=symmetries,
        built_from=network_parameters(settings),
    )


def shown_symmetries(array: Any, schema: Schema, scaler: Any) -> tuple[str, ...] | None:
    """Return the flips and rotations that X allows, None if they are unknown.

    They depend only on X, so that embedders of the same X are scored by the same views.
    """
    is_detectable = may_show_symmetries(len(array), schema.kind.image_shape(schema.sample_shape))
    return symmetries_of(array, scaler, seed=0).shown if is_detectable else None


def continued_setup(
    settings: Settings, X: Any, chain: list[Augmentation] | None, past: Fitted
) -> Fitted:
    """Return the setup of a fit that continues from another, whose network is copied.

    Parameters
    ----------
    settings : Settings
        The user's parameters, validated.
    X : array-like of length n_samples
        Samples that their kind has validated.
    chain : list of Augmentation or None
        The augmentations that draw the views; None keeps the fitted ones. Those that were saved
        without their samples take samples of X.
    past : Fitted
        The setup of the earlier fit.
    """
    past.use_threads()
    array = representative_array(X)
    augmentation = past.augmentation if chain is None else fit_chain(chain, array, past.schema)
    # Those that were loaded without their samples are fitted to the new X.
    augmentation = [
        clone(step).fit_checked(array, past.schema) if step.lacks_samples else step
        for step in augmentation
    ]
    return replace(
        past,
        loss=settings.loss,
        framework=settings.framework,
        similarity=settings.similarity,
        network=copy.deepcopy(past.network),
        augmentation=augmentation,
        built_from=network_parameters(settings),
    )


def scored_views(setup: Fitted, X: Any, augmentation: Any = None) -> list[Augmentation]:
    """Return the fitted augmentations that draw the views.

    Parameters
    ----------
    setup : Fitted
        The fitted state of the embedder.
    X : array-like of length n_samples
        The samples to score, validated by their kind; the augmentations are fitted to them.
    augmentation : augmentation, list, Pipeline or None
        None takes the default of the kind or, if it has none, the augmentations of the training.
    """
    schema = setup.schema
    chain = augmentations_of(augmentation, "make_view_scorer")
    if chain is None:  # the default compares embedders that had different augmentations
        chain = default_chain(
            schema.kind,
            schema.sample_shape,
            mixes_channels=setup.mixes_channels,
            symmetries=setup.symmetries,
        )
    if chain is None:
        return setup.augmentation
    return fit_chain(chain, representative_array(X), schema)


def fit_chain(
    chain: list[Augmentation] | None, array: Any, schema: Schema, **conditions: Any
) -> list[Augmentation]:
    """Return augmentations fitted to X; None is the default of the kind under the conditions."""
    if chain is None:
        chain = default_chain(schema.kind, schema.sample_shape, **conditions)
    if chain is None:
        raise no_default_error("augmentation", schema.kind)
    return [clone(step).fit_checked(array, schema) for step in chain]


def _new_network(
    settings: Settings, schema: Schema, scaler: Any, batch: Any, split: Split | NoSplit | None
) -> tuple[Network, Widths]:
    """Return a network with new weights, checked to be trainable, and its widths."""

    def choose_encoder(index: int, kind: Kind, shape: tuple) -> Any:
        is_list = isinstance(settings.encoder, (list, tuple))
        encoder = settings.encoder[index] if is_list else settings.encoder
        encoder = default_encoder(kind, shape) if encoder is None else encoder
        # Labels and pairs are worth adapting a pretrained network to.
        has_relations = settings.loss.requires_y or settings.same_group == "positive"
        if getattr(encoder, "adapt", None) == "auto" and has_relations:
            encoder = copy.copy(encoder)
            encoder.adapt = True
            say("Pretrained adapts the network to labels or groups. adapt=False overrides this.")
        return encoder

    _check_encoders(settings, split, schema)
    # The default encoder depends on the kind and shape of each modality.
    network, widths = build_network(
        batch,
        schema.kind,
        scaler,
        split,
        choose_encoder=choose_encoder,
        n_components=settings.n_components,
        projection_dim=settings.projection_dim,
        similarity=settings.similarity,
        owner=settings.owner,
    )
    _check_trainable(network, settings)
    return network, widths


def keeps_pretrained(network: Network, settings: Settings) -> bool:
    """Return whether there is nothing to train: only a frozen pretrained network is used."""
    encoder = network.encoder
    is_pretrained = any(isinstance(item, PretrainedNetwork) for item in encoder.modules())
    is_trainable = any(weights.requires_grad for weights in encoder.parameters())
    return is_pretrained and not (is_trainable or _uses_head(settings))


def _uses_head(settings: Settings) -> bool:
    """Return whether `transform` or concentrations depend on the projection head."""
    return settings.output == "projection" or settings.similarity.n_extra > 0


def _check_encoders(settings: Settings, split: Split | NoSplit | None, schema: Schema) -> None:
    """Raise ValueError if a list of encoders does not have one for each modality."""
    if not isinstance(settings.encoder, (list, tuple)):
        return
    n_modalities = len(split.shapes if isinstance(split, Split) else schema.modalities) or 1
    if len(settings.encoder) != n_modalities:
        raise ValueError(
            f"The 'encoder' parameter of {settings.owner} has {len(settings.encoder)} encoders, "
            f"but {settings.framework!r} needs one for each modality, that is {n_modalities}."
        )


def _check_trainable(network: Network, settings: Settings) -> None:
    """Raise ValueError if nothing is trainable; warn if training cannot change `transform`."""
    if keeps_pretrained(network, settings):
        return
    if not any(parameter.requires_grad for parameter in network.parameters()):
        raise ValueError(
            "There is nothing to train: 'encoder' has no trainable parameters and "
            "'projection_dim' is 0."
        )
    encoder = [parameter.requires_grad for parameter in network.encoder.parameters()]
    if encoder and not (any(encoder) or _uses_head(settings)):
        warn(
            "All parameters of 'encoder' are frozen: fit trains only the projection head, which "
            "transform with output='representation' does not use. Pass output='projection'."
        )


class DrawnViews(NamedTuple):
    """Views of samples, in the units of X.

    Attributes
    ----------
    views : tuple of n_views array-likes of length n
        The views.
    samples : array-like of length n
        The original samples.
    X : array-like of length n_samples
        All samples, validated by their kind.
    schema : Schema
        The schema of X.
    """

    views: tuple[Any, ...]
    samples: Any
    X: Any
    schema: Schema


def drawn_views(embedder: Any, X: Any, n_views: int, rows: Any, random_state: Any) -> DrawnViews:
    """Draw the views that `ContrastiveEmbedder.views` returns.

    Parameters
    ----------
    embedder : ContrastiveEmbedder
        The embedder, fitted or not, which is not changed.
    X, n_views, rows, random_state : array-like, int, array-like or slice, int
        As in `ContrastiveEmbedder.views`.
    """
    check_argument("views", "n_views", n_views, POSITIVE_INT)
    seed = resolve_seed(random_state)
    device = resolve_device(embedder.device, type(embedder).__name__)
    with one_thread(device):
        if hasattr(embedder, "_fitted"):
            setup = embedder._fitted
            X = setup.read(X, embedder)
        else:
            settings = resolve_settings(embedder)
            X, schema, chain = read_training_samples(settings, X, embedder, None)
            with torch.inference_mode(False):
                # Augmentations are fitted as in `fit`; if none is, two samples are enough.
                subset = X if _needs_all_samples(X, schema, chain) else X[:2]
                setup = new_setup(settings, subset, schema, chain)
        samples = X[:] if rows is None else X[chosen_rows(rows, len(X))]
        if not len(samples):
            raise ValueError("The 'rows' parameter of views must choose at least one sample.")
        views = _draw(setup, samples, int(n_views), seed, device)
    return DrawnViews(views, samples, X, setup.schema)


def chosen_rows(rows: Any, n_samples: int) -> NDArray[np.int64]:
    """Return the row numbers that an index, a slice, indices or a mask choose."""
    with naming("rows", f"a slice, ints below {n_samples} or a mask of {n_samples} bools", rows):
        numbers = np.arange(n_samples)[rows]
        if np.ndim(numbers) > 1:
            raise TypeError(f"got {rows!r}")
        return np.atleast_1d(numbers)


def _needs_all_samples(X: Any, schema: Schema, chain: list[Augmentation] | None) -> bool:
    """Return whether the views depend on samples other than those to draw.

    uint8 images have a known scale; the default augmentation depends on their symmetries.
    """
    has_known_scale = (
        isinstance(X, LazySamples) and type(schema.kind) is Images and X.dtype == np.uint8
    )
    if not has_known_scale:
        return True
    if chain is None:
        return may_show_symmetries(len(X), schema.sample_shape)
    return any(step.uses_samples for step in chain)


@torch.no_grad()
def _draw(setup: Fitted, samples: Any, n_views: int, seed: int, device: Any) -> tuple[Any, ...]:
    """Return views of samples; the first are the same for any number of views."""
    batches = list(row_blocks(samples, setup.schema.kind.rows_per_call(samples)))
    draw = setup.composed(setup.augmentation, device, is_for_network=False)
    generator = torch.Generator(device=device).manual_seed(seed)
    views = []
    # View by view, not batch by batch, so that the first views do not depend on their number.
    for _ in range(n_views):
        drawn = [draw(setup.scaler.to_tensor(batch, device), generator) for batch in batches]
        concatenated = torch.cat([batch.to("cpu") for batch in drawn])
        views.append(in_units_of_X(setup.scaler, concatenated, samples))
    return tuple(views)
