"""The model: the fitted state of an embedder, new or continued, and the views that it draws."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from torch import nn

from .._checks import POSITIVE_INT
from .._checks._arguments import check_argument, naming
from .._data._arrays import LazySamples, representative_array
from .._inference import Measure, embedded_views, encode, on_cpu, on_device, score_views
from .._layers._images import Reduced
from .._runtime import on_threads, resolve_device, resolve_seed, seeded_everywhere, threads_for
from .._warnings import warn
from ..augmentation._base import Chain
from ..augmentation._symmetries import may_show_symmetries
from ..augmentation._views import base_of
from ..encoders._base import is_pretrained
from ..frameworks import Framework
from ..frameworks._modalities import AnySplit, Split
from ..kinds._base import Kind, Request, Scaler, Schema, with_scaler
from ..kinds._images import Images
from ..losses import Loss
from ..similarity import Similarity
from ._defaults import default_chain, default_encoder
from ._network import Built, Directions, Network, Widths, build_network
from ._samples import read_training_samples
from ._settings import Settings, network_parameters, resolve_settings
from ._views import Augmentations, ViewSampler, augmentations_of, fit_chain, shown_symmetries

# Libraries of pretrained networks.
_LIBRARIES = ("timm", "torchvision", "transformers")


@dataclass(frozen=True, kw_only=True)
class Model:
    """What a fit needs and leaves: a network, how X is read, and how views are drawn.

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
    history : list of dict
        A row for each epoch.
    estimates : dict of str to float
        The last values of the hyperparameters that are estimated from the data.
    n_samples : int
        The number of samples in the largest fit.
    adaptation : dict, list of (dict or None), or None
        Whether pretrained networks are trained, and why; a list with several encoders.
    n_threads : int
        CPU threads on which it is trained, if as many are allowed.
    work : float
        Multiplications of the encoder for a sample.
    """

    loss: Loss
    framework: Framework
    similarity: Similarity
    schema: Schema
    scaler: Scaler
    network: Network
    widths: Widths
    augmentation: Chain
    mixes_channels: bool
    symmetries: tuple[str, ...] | None
    built_from: dict[str, Any]
    history: list[dict[str, Any]] = field(default_factory=list)
    estimates: dict[str, float] = field(default_factory=dict)
    n_samples: int = 0
    adaptation: Any = None
    n_threads: int = 1
    work: float = 0.0

    def on_cpu(self) -> Model:
        """Return a copy with all tensors on the CPU."""
        return replace(self, network=on_cpu(self.network))

    def read(self, X: Any, estimator: BaseEstimator, min_samples: int = 1) -> Any:
        """Validate an X, or `Views`, that is passed to a fitted embedder; see `Request`."""
        return self.schema.kind.read(base_of(X), Request(estimator, self.schema, min_samples))[0]

    def embed(
        self, module: nn.Module, X: Any, device: torch.device, to_batch: Callable | None = None
    ) -> NDArray[np.float32]:
        """Return the output of a module for samples that `read` has validated.

        `to_batch` maps samples to a batch, such as their views; None converts them.
        """

        def convert(samples: Any) -> Any:
            return self.scaler.to_tensor(samples, device)

        kind, module = self.schema.kind, on_device(module, device)
        with on_threads(threads_for(self.work * min(len(X), kind.rows_per_call(X))), device):
            return encode(module, X, kind, to_batch or convert)

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
                "frozen: fit again with output='projection' or Pretrained(adapt=True)."
            )
        directions = Directions(self.similarity, self.widths.n_modalities)
        return nn.Sequential(network.encoder, network.projector, directions)

    def sampler(
        self, chain: Chain, device: torch.device, *, is_for_network: bool = True
    ) -> ViewSampler:
        """Return a sampler of views by a fitted chain.

        Views for the network are reduced to the size of images that it reads.
        """
        layers = self.network.encoder.modules() if is_for_network else ()
        sides = next((layer.sides for layer in layers if isinstance(layer, Reduced)), None)
        return ViewSampler(chain, self.schema, self.scaler, device, sides)

    def scored_chain(self, X: Any, augmentation: Augmentations = None) -> Chain:
        """Return augmentations that draw the views of a score, fitted to samples of `read`.

        None takes the default of the kind, which makes embedders with different augmentations
        comparable, or, if it has none, the augmentations of the training.
        """
        chain, kind = augmentations_of(augmentation, "make_view_scorer"), self.schema.kind
        if chain is None:
            conditions = {"mixes_channels": self.mixes_channels, "symmetries": self.symmetries}
            chain = default_chain(kind, self.schema.sample_shape, **conditions)
        if chain is None:
            return self.augmentation
        return fit_chain(chain, representative_array(X), self.schema)

    def score(self, X: Any, measure: Measure, views: ViewSampler, module: nn.Module) -> float:
        """Return a measure of the embeddings of two views of each sample.

        Parameters
        ----------
        X : array-like of length n_samples
            Samples that `read` has validated.
        measure : callable
            Compares embeddings of two views.
        views : ViewSampler
            Draws the views.
        module : torch.nn.Module
            Maps batches to embeddings.
        """
        network, n, device = on_device(module, views.device).eval(), len(X), views.device
        blocks = embedded_views(network, views.draw, n, lambda k: views.to_batch(X[k]), device)
        return score_views(measure, blocks, n)


def new_model(
    settings: Settings, X: Any, schema: Schema, chain: Chain | None, relations: str | None = None
) -> Model:
    """Return the model of a first fit.

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
    relations : {"labels", "groups"} or None, default=None
        What is known of the samples beyond their views.
    """
    kind = schema.kind
    array, scaler, batch = with_scaler(kind, X)
    with seeded_everywhere(settings.seed, settings.device):
        split = settings.framework.split_samples(kind, tuple(batch.shape[1:]))
        built = _new_network(settings, schema, scaler, batch, split, relations)
    mixes_channels = not (isinstance(split, Split) and split.is_of_channels)
    symmetries = shown_symmetries(array, schema, scaler)
    conditions: Any = {
        "mixes_channels": mixes_channels,
        "takes_one_view": settings.framework.n_views == 1,
        "symmetries": symmetries,
    }
    return Model(
        loss=settings.loss,
        framework=settings.framework,
        similarity=settings.similarity,
        schema=schema,
        scaler=scaler,
        augmentation=fit_chain(chain, array, schema, **conditions),
        mixes_channels=mixes_channels,
        symmetries=symmetries,
        built_from=network_parameters(settings),
        **built._asdict(),
    )


def continued_model(settings: Settings, X: Any, chain: Chain | None, past: Model) -> Model:
    """Return the model of a fit that continues from another, whose network is copied.

    Parameters
    ----------
    settings : Settings
        The user's parameters, validated.
    X : array-like of length n_samples
        Samples that their kind has validated.
    chain : list of Augmentation or None
        The augmentations that draw the views; None keeps the fitted ones. Those that were saved
        without their samples take samples of X.
    past : Model
        The model of the earlier fit.
    """
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


def _new_network(
    settings: Settings,
    schema: Schema,
    scaler: Scaler,
    batch: Any,
    split: AnySplit,
    relations: str | None,
) -> Built:
    """Return a network with new weights, checked to be trainable."""

    def choose_encoder(index: int, kind: Kind, shape: tuple) -> Any:
        is_list = isinstance(settings.encoder, (list, tuple))
        encoder = settings.encoder[index] if is_list else settings.encoder
        library = type(encoder).__module__.partition(".")[0]
        if library in _LIBRARIES and kind.image_shape(shape) is not None:
            name = type(encoder).__name__
            warn(
                f"The encoder {name} is passed without Pretrained, so it gets X standardised in "
                "another way than in its pretraining, and its classifier, if it has one, stays. "
                "Pass skcontrast.encoders.Pretrained(network); networks with random weights, as "
                "torch.nn.Sequential(network)."
            )
        # The default encoder depends on the kind and shape of each modality.
        return default_encoder(kind, shape) if encoder is None else encoder

    _check_encoders(settings, split, schema)
    built = build_network(
        batch,
        schema.kind,
        scaler,
        split,
        choose_encoder=choose_encoder,
        n_components=settings.n_components,
        projection_dim=settings.projection_dim,
        similarity=settings.similarity,
        owner=settings.owner,
        batch_size=settings.batch_size,
        relations=relations,
    )
    _check_trainable(built.network, settings)
    return built


def keeps_pretrained(network: Network, settings: Settings) -> bool:
    """Return whether there is nothing to train: only a frozen pretrained network is used."""
    is_trainable = any(weights.requires_grad for weights in network.encoder.parameters())
    return is_pretrained(settings.encoder) and not (is_trainable or _uses_head(settings))


def _uses_head(settings: Settings) -> bool:
    """Return whether `transform` or concentrations depend on the projection head."""
    return settings.output == "projection" or settings.similarity.n_extra > 0


def _check_encoders(settings: Settings, split: AnySplit, schema: Schema) -> None:
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


def drawn_views(
    embedder: Any,
    X: Any,
    n_views: int,
    rows: ArrayLike | slice | None,
    random_state: int | np.random.RandomState | None,
) -> DrawnViews:
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
    with on_threads(1, device):
        if hasattr(embedder, "_model"):
            model = embedder._model
            X = model.read(X, embedder)
        else:
            settings = resolve_settings(embedder)
            X, schema, chain = read_training_samples(settings, X, embedder, None)
            with torch.inference_mode(False):
                # Augmentations are fitted as in `fit`; if none is, two samples are enough.
                subset = X if _needs_all_samples(X, schema, chain) else X[:2]
                model = new_model(settings, subset, schema, chain)
        samples = X[:] if rows is None else X[chosen_rows(rows, len(X))]
        if not len(samples):
            raise ValueError("The 'rows' parameter of views must choose at least one sample.")
        views = _draw(model, samples, int(n_views), seed, device)
    return DrawnViews(views, samples, X, model.schema)


def chosen_rows(rows: ArrayLike | slice, n_samples: int) -> NDArray[np.int64]:
    """Return the row numbers that an index, a slice, indices or a mask choose."""
    with naming("rows", f"a slice, ints below {n_samples} or a mask of {n_samples} bools", rows):
        index: Any = rows
        numbers = np.arange(n_samples)[index]
        if np.ndim(numbers) > 1:
            raise TypeError(f"got {rows!r}")
        return np.atleast_1d(numbers)


def _needs_all_samples(X: Any, schema: Schema, chain: Chain | None) -> bool:
    """Return whether the views depend on samples other than those to draw.

    uint8 images have a known scale; the default augmentation depends on their symmetries.
    """
    is_uint8 = isinstance(X, LazySamples) and X.dtype == np.uint8
    if not (is_uint8 and type(schema.kind) is Images):  # the scale is learned
        return True
    if chain is None:
        return may_show_symmetries(len(X), schema.sample_shape)
    return any(step.uses_samples for step in chain)


def _draw(model: Model, samples: Any, n_views: int, seed: int, device: torch.device) -> tuple:
    """Return views of samples; the first are the same for any number of views."""
    views = model.sampler(model.augmentation, device, is_for_network=False)
    generator = torch.Generator(device=device).manual_seed(seed)
    n_rows = model.schema.kind.rows_per_call(samples)
    # View by view, not batch by batch, so that the first views do not depend on their number.
    return tuple(views.in_units_of_X(samples, generator, n_rows) for _ in range(n_views))
