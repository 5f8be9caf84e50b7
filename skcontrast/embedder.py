"""The estimator that users call; each of its methods takes a few lines."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal, Self, cast

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted
from torch import nn

from ._checks import (
    NON_NEGATIVE,
    POSITIVE,
    POSITIVE_INT,
    Interval,
    NamesChecked,
    StrOptions,
    check_argument,
    validate_parameters,
)
from ._data._metadata import NAMES
from ._data._row_labels import labeled_output
from ._distributed._agreement import failing_together
from ._layers._wide import wide_part
from ._network._inference import Measure, encode, on_device, resolve_device
from ._runtime._interrupts import NotedInterrupt
from ._runtime._modes import plain_modes
from ._runtime._random import resolve_seed
from ._runtime._threads import one_thread
from ._sklearn_compat import CallbackSupportMixin, with_callbacks
from ._version import __version__
from ._warnings import warn
from .augmentation import Augmentation
from .augmentation._views import base_of
from .encoders import Encoder
from .frameworks import Framework
from .kinds import Kind, Tables
from .kinds._recognise import KindName, naming_kind
from .losses import Loss
from .optimizers import ALGORITHMS, Algorithm, Optimizer, as_optimizer
from .schedules import Schedule
from .similarity import Cosine, ProbabilisticSimilarity, Similarity

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

    from ._fit._fit import Fitted
    from ._fit._settings import Settings
    from ._skorch import Callback, History

__all__ = ["ContrastiveEmbedder"]


def __dir__() -> list[str]:
    return __all__


_OUTPUTS = {"representation", "projection"}
# Of so few samples, `score` compares ten neighbours with all others, or is noise.
_FEWEST_SCORED, _FEW_SCORED = 12, 100


def _has_concentrations(embedder: ContrastiveEmbedder) -> bool:
    similarity = getattr(embedder, "similarity_", embedder.similarity)
    similarity = Cosine() if similarity is None else similarity
    if not getattr(similarity, "n_extra", 0):
        raise AttributeError(
            f"The similarity {similarity!r} has no concentrations: an embedder with "
            "similarity=VonMisesFisher() learns how sure each embedding is."
        )
    return True


class ContrastiveEmbedder(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, CallbackSupportMixin, NamesChecked
):
    r"""Learn a representation from unlabeled samples by contrasting their augmented views.

    An encoder network is trained so that two augmented views of one sample are close and views of
    different samples are not. `transform` returns the encoder's output for each sample, which a
    classifier or any other step can work on. Four choices are independent of each other: how the
    expectation over true negatives is estimated (`loss`), who is contrasted with whom
    (`framework`), what the score of two embeddings is (`similarity`), and how a second view is
    drawn (`augmentation`, or augmentation steps before the embedder in a Pipeline).

    With the scores :math:`s_i^+` of the positives and N negatives per anchor i, `fit` minimises
    the mean over the anchors of

    .. math:: L_i = -\log \frac{e^{s_i^+}}{e^{s_i^+} + N \hat E_i^-}

    where :math:`\hat E_i^-` is the loss's estimate of the mean of :math:`e^s` over true negatives
    [1]_.

    The parameters form six groups:

    - what is learned: `encoder`, `loss`, `framework`, `similarity`, `augmentation`, `n_views`,
      `same_group`;
    - representation: `n_components`, `projection_dim`, `output`;
    - training: `batch_size`, `max_epochs`, `optimizer`, `lr`, `weight_decay`, `lr_schedule`;
    - data: `kind`, `memory_budget`, `n_workers`;
    - machine: `device`, `precision`, `compile`;
    - running: `callbacks`, `warm_start`, `checkpoint`, `random_state`, `verbose`.

    Parameters
    ----------
    encoder : Encoder, torch.nn.Module, callable or list of them, default=None
        The network from sample to representation. For photographs and other images in colour,
        begin with a network that has learned from others,
        :class:`Pretrained(network) <skcontrast.encoders.Pretrained>`, beside which its unchanged
        output, codes of patches and oriented gradients stand. None begins from nothing and
        chooses by the kind of X: ``Wide(MLP(), [Raw()])`` for vectors, without `Raw` if they have
        more than 1,000 features; ``Wide(MLP(n_learned=16), [Raw()])`` for tables;
        ``Wide(SeriesNet(), [MiniRocket()], weights=[4.0])`` for series; ``PatchNet()`` with codes
        and gradients beside it for images of 16 pixels or more, ``ConvNet()`` for smaller ones;
        ``GIN()`` with sizes, profiles and colours beside it for
        graphs, alone with ``InfoGraph()``. An object of
        :mod:`skcontrast.encoders` is built once the shape of X is known; a module is copied, never
        trained in place; a callable receives the shape of one sample, ``(n_channels, None)`` for
        series, ``(None, n_node_features)`` for graphs, or with a third number ``n_edge_features``
        if their edges have any, and returns a module. Encoders of tables get the features of a row
        as a vector; those of series find NaN behind the end of series that are shorter than others
        in their batch. Modules for graphs are called as in PyTorch Geometric,
        ``module(x, edge_index, batch=batch)``, with ``edge_attr`` and ``edge_weight`` if they take
        them. With a framework of several encoders, a list has one for each part.
    loss : Loss, default=None
        An object of :mod:`skcontrast.losses`; None is ``InfoNCE()``. Its hyperparameters may be
        schedules.
    framework : Framework, default=None
        An object of :mod:`skcontrast.frameworks`; None is ``SimCLR()``.
    similarity : Similarity, default=None
        An object of :mod:`skcontrast.similarity`; None is ``Cosine()``, or ``DotProduct()`` with
        ``InfoGraph()``. Its hyperparameters may be schedules.
    augmentation : augmentation, list or Pipeline of augmentations, default=None
        Draws the views. None takes the augmentation steps before the embedder in a Pipeline. If
        there are none, it depends on the kind of X, see :ref:`default-views`:
        ``MarginalCorruption`` for vectors and tables (which keeps rows of X in the fitted
        embedder); ``TimeCrop``, ``GaussianNoise``, ``MagnitudeScale`` and ``TimeMask`` for series;
        ``SimCLRAugmentation()`` for colour images of at most 32 pixels, crops with a weak
        ``ColorJitter`` for larger ones, or ``RandomAffine()`` if the framework contrasts their
        channels; crops and blur, or for fewer than 16 pixels ``RandomAffine``, and
        a strong ``ColorJitter`` for all other images, all of them mirrored and turned as the
        images allow, see :func:`~skcontrast.augmentation.image_symmetries`; ``NodeDrop()`` for
        graphs, or no augmentation with ``InfoGraph()``; the default of each part of ``Parts``.
    n_components : int, default=None
        Width of the representation; with a framework of several encoders, of the output of each.
        None leaves it to the encoder.
    projection_dim : int, default=64
        Width of the projection head's output, on which the loss is computed; 0 trains the
        representation itself. With several encoders, each has a head of this width.
    output : {"representation", "projection"}, default="representation"
        Which output `transform` returns: that of the encoder or of the projection head.
    same_group : {"neutral", "positive"}, default="neutral"
        How samples of one group relate, if `fit` is passed ``groups``: neither
        positives nor negatives, or positives like the views of one sample.
    n_views : int, default=2
        Views drawn of each sample in a step, at least 2; ``InfoGraph`` always draws one.
    batch_size : int, default=128
        The most samples in a step. An epoch is divided into random batches whose sizes differ by
        at most one, so that no batch has a single sample.
    max_epochs : int or "auto", default="auto"
        Passes over the data. "auto" takes 100, but no more than give 4,000 steps of `batch_size`,
        and at least 5: many samples need not be seen as often as few, see :ref:`cost`. Images of
        48 pixels or more on both sides, which take longer, are trained for at most 60. With
        ``Pretrained`` it takes as many as give about 140 steps.
    optimizer : {"adam", "adamw", "sgd"}, torch.optim.Optimizer class or Optimizer, default="adam"
        "sgd" has momentum 0.9. An :class:`~skcontrast.optimizers.Optimizer` sets other options,
        and gives parts of the network, such as a pretrained encoder, a separate learning rate.
    lr : float, default=1e-3
        Learning rate.
    weight_decay : float, default=1e-6
        Weight decay.
    lr_schedule : {"cosine", "constant"} or Schedule, default="cosine"
        Factor on the learning rate by the progress of the fit. `partial_fit` keeps the learning
        rate constant, since it has no end.
    kind : {"auto", "vectors", "tables", "series", "images", "graphs"} or Kind, default="auto"
        The kind of data in X, and how it is prepared: ``Vectors(standardize=False)`` or
        ``Graphs(node_features="degree")``, see :mod:`skcontrast.kinds`. "auto" recognises the kind
        of X, unless the augmentations or the encoder declare a custom one, see :ref:`own-kind`.
    device : str, int or torch.device, default="auto"
        "cpu", "cuda", "cuda:1", "mps"; 1 is "cuda:1"; "auto" is the first available of CUDA, MPS
        and CPU. Under ``torchrun``, "auto" and "cuda" are the GPU of this process.
    precision : {"auto", "float32", "bf16"}, default="auto"
        The precision in which the network computes during training. "bf16" is bfloat16 where that
        is safe, by autocast: up to twice as fast for images on processors that support it. "auto"
        chooses it for images on such processors with an encoder of :mod:`skcontrast.encoders`,
        other than `Pretrained`, in which it may be slower.
        Weights, losses and `transform` are float32.
    compile : bool, default=False
        Whether to train the network through ``torch.compile``. Compiling takes about a minute,
        which pays off in long fits. If it fails, a warning says why, and the network runs as it
        is.
    memory_budget : float, default=None
        The most gigabytes of training samples that are held as tensors on the device. Larger
        arrays, and Datasets, stay where they are and are read batch by batch, with the same
        result. None is half of the free memory.
    n_workers : int, default=0
        Processes that read ahead if samples are read batch by batch; 0 reads in this process.
    callbacks : list, default=None
        :class:`~skcontrast.callbacks.Evaluation`, which scores held-out samples, and callbacks of
        skorch, e.g. ``EarlyStopping(monitor="train_loss")``,
        ``Checkpoint(monitor="train_loss_best")``, or ``LRScheduler`` with
        ``lr_schedule="constant"``. scikit-learn's own callbacks are set by `set_callbacks`.
    warm_start : bool, default=False
        Whether `fit` continues from the weights and the optimizer of the previous fit, and from
        what the framework remembers, such as a queue.
    checkpoint : str or path-like, default=None
        A folder in which `fit` keeps its state, so that the same call resumes a fit that was
        killed or interrupted, and ends with the same bits. If the fit was finished, the call
        returns what was fitted without training. ``{fit}`` in the name becomes a code of the
        parameters and the data, which gives each candidate of a search its own folder.
        A module with random weights, as `encoder` or in an augmentation, must be built after
        ``torch.manual_seed``, or be passed as a callable or an object of
        :mod:`skcontrast.encoders`; otherwise the same call is refused.
        `partial_fit` ignores the folder. See :ref:`long-fits`.
    random_state : int, RandomState instance or None, default=None
        Seeds weights, batches and views. The global generators of numpy and torch are left
        untouched.
    verbose : int, default=0
        1 shows a progress bar and says, after the first steps, how long the fit will take, and
        how the default views of images are mirrored and turned.

    Attributes
    ----------
    encoder_ : torch.nn.Module
        The trained encoder, in inference mode. Its first step standardises: it takes vectors as
        float32, and images as uint8 or as floats in [0, 1]. An encoder of graphs takes a
        :class:`~skcontrast.graphs.GraphBatch`, whose features are already standardised, and one of
        tables takes rows of standardised numbers, codes of categories and NaN for gaps.
    projector_ : torch.nn.Module
        The trained projection head.
    loss_, framework_, similarity_ : Loss, Framework, Similarity
        The validated choices.
    augmentation_ : list of Augmentation
        The fitted augmentations that drew the views.
    history_ : skorch.history.History
        A row per epoch: ``train_loss``, ``lr``, ``dur`` and the value of every schedule and of
        every hyperparameter that is estimated from the data, such as ``loss__alpha``, and the
        scores of an :class:`~skcontrast.callbacks.Evaluation`.
    estimates_ : dict of str to float
        The last values of the loss's hyperparameters that are "auto".
    improvement_ : float or None
        How much higher the score without labels, see `score`, is after `fit` than it was before,
        on at most 256 training samples; features that are not learned are left out. Below 0.01
        a fit that does not continue another warns. None where the difference would be noise or
        cannot be scored: after `partial_fit`, fits of a single epoch, of fewer than 100 steps or
        of fewer than 50 samples, in an embedder from a file, and where the samples have no views
        other than themselves.
    n_epochs_ : int
        Epochs trained in total.
    n_features_in_ : int
        Numbers per sample: features, or channels × height × width. Absent for graphs and series.
    feature_names_in_ : ndarray of str
        Names of the features, if X has names that are all strings.

    See Also
    --------
    contrastive_loss : The losses as a function, for a training loop of your own.
    skcontrast.frameworks.MoCo : Many negatives from a queue, with small batches.
    skcontrast.frameworks.CMC : Contrasts the parts of each sample, such as colour and lightness.
    skcontrast.similarity.VonMisesFisher : Embeddings that know how sure they are.
    skcontrast.losses.Supervised : Uses labels, where there are any.
    skcontrast.augmentation.Augmentation : Base class of the augmentations.
    skcontrast.kinds.Kind : Base class of the kinds of data.

    References
    ----------
    .. [1] T. Chen, S. Kornblith, M. Norouzi, G. Hinton, "A Simple Framework for Contrastive
       Learning of Visual Representations", ICML 2020.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from skcontrast import ContrastiveEmbedder
    >>> from skcontrast.augmentation import RandomAffine
    >>> X, y = load_digits(return_X_y=True)
    >>> X = X.reshape(-1, 8, 8)
    >>> pipe = make_pipeline(
    ...     RandomAffine(),
    ...     ContrastiveEmbedder(max_epochs=3, random_state=0),
    ...     LogisticRegression(max_iter=1000),
    ... )
    >>> print(f"{pipe.fit(X[:500], y[:500]).score(X[500:], y[500:]):.1f}")
    0.9
    """

    _parameter_constraints: dict[str, Any] = {
        "n_components": [*POSITIVE_INT, None],
        "projection_dim": [Interval(Integral, 0, None, closed="left")],
        "output": [StrOptions(_OUTPUTS)],
        "same_group": [StrOptions({"neutral", "positive"})],
        "n_views": [Interval(Integral, 2, None, closed="left")],
        "batch_size": [Interval(Integral, 2, None, closed="left")],
        "max_epochs": [*POSITIVE_INT, StrOptions({"auto"})],
        "optimizer": [StrOptions(set(ALGORITHMS)), type, Optimizer],
        "lr": POSITIVE,
        "weight_decay": NON_NEGATIVE,
        "lr_schedule": [StrOptions({"cosine", "constant"}), Schedule],
        "kind": "no_validation",  # checked with the other choices, with a better message
        "device": [str, torch.device, Interval(Integral, 0, None, closed="left")],
        "precision": [StrOptions({"auto", "float32", "bf16"})],
        "compile": ["boolean"],
        "memory_budget": [*NON_NEGATIVE, None],
        "n_workers": [Interval(Integral, 0, None, closed="left")],
        "callbacks": [list, tuple, None],
        "warm_start": ["boolean"],
        "checkpoint": [str, os.PathLike, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    # Set by fit, see Attributes.
    encoder_: nn.Module
    projector_: nn.Module
    loss_: Loss
    framework_: Framework
    similarity_: Similarity
    augmentation_: list[Augmentation]
    history_: History
    estimates_: dict[str, float]
    improvement_: float | None
    n_epochs_: int
    n_features_in_: int
    feature_names_in_: NDArray[np.str_]
    _fitted: Fitted

    def __init__(
        self,
        encoder: Encoder
        | nn.Module
        | Callable[[tuple], nn.Module]
        | Sequence[Encoder | nn.Module | Callable[[tuple], nn.Module] | None]
        | None = None,
        loss: Loss | None = None,
        framework: Framework | None = None,
        similarity: Similarity | None = None,
        augmentation: Augmentation | Sequence[Augmentation] | Pipeline | None = None,
        n_components: int | None = None,
        projection_dim: int = 64,
        output: Literal["representation", "projection"] = "representation",
        same_group: Literal["neutral", "positive"] = "neutral",
        n_views: int = 2,
        batch_size: int = 128,
        max_epochs: int | Literal["auto"] = "auto",
        optimizer: Algorithm | Optimizer = "adam",
        lr: float = 1e-3,
        weight_decay: float = 1e-6,
        lr_schedule: Literal["cosine", "constant"] | Schedule = "cosine",
        kind: Literal["auto"] | KindName | Kind = "auto",
        device: str | int | torch.device = "auto",
        precision: Literal["auto", "float32", "bf16"] = "auto",
        compile: bool = False,
        memory_budget: float | None = None,
        n_workers: int = 0,
        callbacks: Sequence[Callback | tuple[str, Callback]] | None = None,
        warm_start: bool = False,
        checkpoint: str | os.PathLike | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ):
        self.encoder = encoder
        self.loss = loss
        self.framework = framework
        self.similarity = similarity
        self.augmentation = augmentation
        self.n_components = n_components
        self.projection_dim = projection_dim
        self.output = output
        self.same_group = same_group
        self.n_views = n_views
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.optimizer = optimizer
        self.lr = lr
        self.weight_decay = weight_decay
        self.lr_schedule = lr_schedule
        self.kind = kind
        self.device = device
        self.precision = precision
        self.compile = compile
        self.memory_budget = memory_budget
        self.n_workers = n_workers
        self.callbacks = callbacks
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose

    def set_params(self, **params: Any) -> Self:
        """Set parameters, including the parameters of components that are None.

        For example, ``similarity__temperature=0.2`` on an embedder whose `similarity` is None sets
        `similarity` to ``Cosine(temperature=0.2)``, unless its framework has another default. In
        the same way, ``optimizer__betas`` makes an ``Optimizer`` of the name "adam".

        Parameters
        ----------
        **params : dict
            Parameters by name; ``component__parameter`` reaches into a component.

        Returns
        -------
        self : ContrastiveEmbedder
        """
        from ._fit._settings import COMPONENTS, default_with

        framework = params.get("framework", self.framework)
        for role in {name.split("__")[0] for name in params if "__" in name}:
            value = params.get(role, getattr(self, role, None))
            is_unset = value is None and role in COMPONENTS
            if is_unset or (role == "optimizer" and not isinstance(value, Optimizer)):
                nested = {n: params.pop(n) for n in list(params) if n.startswith(f"{role}__")}
                names = {name.partition("__")[2]: given for name, given in nested.items()}
                params[role] = (
                    default_with(role, names, framework)
                    if is_unset
                    else as_optimizer(value).set_params(**names)
                )
        return super().set_params(**params)

    # Not in the signature of fit, where scikit-learn would take sample_weight as a promise that a
    # weight of 2 equals a sample that occurs twice, which no contrast within a batch can keep.
    __metadata_request__fit = __metadata_request__partial_fit = dict.fromkeys(sorted(NAMES))

    @with_callbacks
    @failing_together()
    def fit(self, X: Any, y: ArrayLike | None = None, **metadata: Any) -> Self:
        """Train the encoder on X.

        Under ``torchrun``, or in any initialised group of ``torch.distributed``, all processes
        train one embedder together. Each must call `fit` with the same X and y, and takes its
        share of every batch. See the user guide, "Many machines, many processes".

        Parameters
        ----------
        X : array-like or Views
            At least 2 samples: vectors of shape (n_samples, n_features), dense or sparse; a
            DataFrame with categories, times or gaps, see :ref:`tables`; series (n_samples,
            n_channels, n_times), or of unequal lengths a list of arrays (n_channels, n_times), see
            :ref:`series`; square grey images (n_samples, height, width); images (n_samples,
            channels, height, width), uint8 or float; torch tensors; memory maps; a torch Dataset
            whose items are samples or tuples that start with one; with ``framework=CMC()``
            :class:`~skcontrast.datasets.Parts`, or a tuple, of several of these with the same
            samples; a list of networkx graphs or of PyTorch Geometric's ``Data``, or
            :class:`~skcontrast.graphs.PackedGraphs`; samples of a
            :ref:`kind of your own <own-kind>`; or the views that an augmentation step of a
            Pipeline returns.
        y : array-like of shape (n_samples,), default=None
            Classes; −1, None, NaN or ``pandas.NA`` where unknown, as in `groups` and `domains`.
            Used by ``Supervised``, ``SupCon`` and ``SemiSupCon``, and to estimate hyperparameters
            of the loss that are ``"auto"``; otherwise ignored.
        **metadata : dict
            ``sample_weight``, array-like of shape (n_samples,): factors ≥ 0 on the losses of the
            samples. ``descriptions``, array-like of shape (n_samples, projection width): vectors
            that say what each sample shows. The loss of a view with projection z is multiplied by
            max(0, cos(z, description)), so that a view that does not show what its description
            says counts less. ``groups``, array-like of shape (n_samples,): which samples are
            known to belong together, such as those of one patient, video or scene, −1 for a
            sample without a group; they are never negatives of each other, see `same_group`.
            ``domains``, array-like of shape (n_samples,): the plate, batch, site or subject that
            each sample comes from, −1 where unknown. Every batch is drawn from one domain, so that
            the negatives of a sample are others of its domain and do not teach the network to tell
            domains apart; not with frameworks that remember samples, such as ``MoCo``. In a
            Pipeline, pass these as ``embed__groups=``, with the name of the step, or by metadata
            routing. See :ref:`structure`.

        Returns
        -------
        self : ContrastiveEmbedder

        Raises
        ------
        ValueError
            If X holds NaN, infinity or a graph without nodes, has a wrong shape or is ambiguous;
            if a parameter, at any depth, is outside its range; if training diverges; or if
            processes that train together were given different data or parameters; or if
            `checkpoint` holds a fit with other data or parameters, or a damaged file. A fitted
            embedder stays as it was.
        OSError
            If `checkpoint` cannot be read or written. The last file that was written stays.
        TypeError
            If a class is passed instead of an instance, or an unknown keyword.
        RuntimeError
            If processes train together and a different one failed, or did not come in time.
        KeyboardInterrupt
            If the user interrupts. The embedder is then, to the bit, what it was at the end of the
            last finished epoch.
        """
        from ._fit._settings import resolve_settings
        from ._fit._watch import EpochTasks

        settings = resolve_settings(self)
        past = getattr(self, "_fitted", None) if settings.warm_start else None
        has_tasks = getattr(self, "_skl_callbacks", None)
        n_epochs = None if self.max_epochs == "auto" else settings.max_epochs
        tasks = [EpochTasks(self, base_of(X), y, n_epochs)] if has_tasks else []
        settings = replace(settings, callbacks=[*(settings.callbacks or ()), *tasks])
        self._train(settings, X, y, metadata, past)
        for task in tasks:
            task.end()
        return self

    @failing_together()
    def partial_fit(self, X: Any, y: ArrayLike | None = None, **metadata: Any) -> Self:
        """Train for one more epoch, on the same or on different data.

        The first call builds the encoder and learns the scaling of the input; later calls keep
        both. The queue of ``MoCo`` and vectors of the bank of ``CMC`` stay as negatives when the
        next part of a stream comes, see :ref:`streams`. Schedules advance by the epochs trained so
        far; the learning rate stays at `lr`. `checkpoint` is ignored.

        Parameters
        ----------
        X : array-like or Views
            As in `fit`.
        y : array-like of shape (n_samples,), default=None
            As in `fit`.
        **metadata : dict
            As in `fit`.

        Returns
        -------
        self : ContrastiveEmbedder
        """
        from ._fit._settings import resolve_settings

        past = getattr(self, "_fitted", None)
        return self._train(resolve_settings(self), X, y, metadata, past, one_epoch=True)

    def _train(
        self, settings: Settings, X: Any, y: Any, metadata: Any, past: Any, one_epoch: bool = False
    ) -> Self:
        """Train, and take over all that was learned."""
        from ._fit._fit import fit_network

        with plain_modes(settings.device), one_thread(settings.device):
            fitted = fit_network(
                settings,
                X,
                y,
                metadata,
                owner=self,
                as_fitted=self._as_fitted,
                past=past,
                one_epoch=one_epoch,
            )
        return self._adopt(fitted)

    def _as_fitted(self, fitted: Fitted) -> Self:
        """Return a copy of the embedder that has taken over what a fit has learned."""
        embedder = object.__new__(type(self))
        embedder.__dict__.update(self.__dict__)
        return embedder._adopt(fitted)

    def _adopt(self, fitted: Fitted) -> Self:
        """Take over all that a fit has learned, at once."""
        with NotedInterrupt() as interrupt:
            self._fitted = fitted
            self.loss_, self.framework_ = fitted.loss, fitted.framework
            self.similarity_, self.augmentation_ = fitted.similarity, fitted.augmentation
            self.encoder_, self.projector_ = fitted.network.encoder, fitted.network.projector
            self.history_, self.n_epochs_ = fitted.history, fitted.n_epochs
            self.estimates_, self.improvement_ = fitted.estimates, fitted.improvement
            fitted.schema.assign_names(self)
        if fitted.interrupted or interrupt.came:
            raise KeyboardInterrupt(
                f"fit was interrupted; the embedder keeps what it learned in {self.n_epochs_} "
                "epochs"
            )
        return self

    if TYPE_CHECKING:  # scikit-learn, which defines it, has no annotations

        def fit_transform(
            self, X: Any, y: ArrayLike | None = None, **metadata: Any
        ) -> NDArray[np.float32]: ...

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Embed samples.

        Parameters
        ----------
        X : array-like, Dataset, Parts or list of graphs
            Samples of the shape seen in `fit`.

        Returns
        -------
        h : ndarray of shape (n_samples, n_components), dtype float32
            Representations, or projections if ``output="projection"``. If the similarity has
            concentrations, projections are mean directions, of length 1 for each encoder. The row
            of a sample does not depend on the other samples in X, except for the last digits.
        """
        return labeled_output(self._encode(X, self._transforming()), X, self)

    def _encode(self, X: Any, module: nn.Module) -> NDArray[np.float32]:
        """Return the output of a module for samples, shape (n_samples, width)."""
        scaler, kind = self._fitted.scaler, self._fitted.schema.kind
        device = resolve_device(self.device, type(self).__name__)
        with plain_modes(device), one_thread(device, blas=False):
            self._fitted.use_threads()
            # A scaler may find NaN and infinity in the pass in which it converts X.
            X = self._fitted.read(X, self, check_finite=not scaler.finds_nonfinite)
            with naming_kind(kind):
                return encode(
                    on_device(module, device),
                    X,
                    kind.rows_per_call(X),
                    to_tensor=lambda rows: scaler.to_tensor(rows, device),
                )

    def _transforming(self) -> nn.Module:
        """Return the network from samples to what `transform` returns."""
        check_is_fitted(self)
        if self.output not in _OUTPUTS:
            validate_parameters(self)
        is_projected = self.output == "projection"
        return self._fitted.projecting(self._fitted.network) if is_projected else self.encoder_

    def score(self, X: Any, y: Any = None) -> float:
        r"""Return how well held-out samples keep their neighbours from view to view.

        .. math:: \frac1{10n} \sum_i \left| N_{10}(h_i) \cap N_{10}(h_i') \right|

        where h and h' are what `transform` returns for two fresh views of the samples, and
        :math:`N_{10}` the ten samples with the highest cosines, among at most 1,024 samples at a
        time; see :func:`skcontrast.metrics.neighbor_agreement`. It needs no labels and does not
        depend on the loss, similarity, batch size and augmentation of the training: the views are
        those of the default augmentation of the kind of X, or, for kinds of your own, of
        `augmentation_`. So a search over these compares like with like. How far it agrees with
        accuracies, and when it does not: :ref:`label-free`.

        Parameters
        ----------
        X : array-like, Dataset, Parts or list of graphs
            At least 12 samples of the shape seen in `fit`; better a few hundred that were not used
            in it: fewer than 100 are warned about. Scores of the same number of samples can be
            compared.
        y : ignored
            Present for API consistency.

        Returns
        -------
        score : float
            In [0, 1]; by chance, 10 / (n_samples - 1), of more than 1,024 samples about .01. Two
            calls with the same X return the same score.

        See Also
        --------
        skcontrast.metrics.make_view_scorer : Scores by a different measure or different views.
        """
        from .metrics import neighbor_agreement

        return self._score_views(X, neighbor_agreement, min_samples=_FEWEST_SCORED)

    def _score_views(
        self, X: Any, measure: Measure, augmentation: Any = None, *, min_samples: int = 2
    ) -> float:
        """Return a measure of two views; None draws them by the default of the kind of X."""
        from ._fit._setup import scored_views

        module, fitted = self._transforming(), self._fitted
        device = resolve_device(self.device, type(self).__name__)
        with plain_modes(device), one_thread(device), naming_kind(fitted.schema.kind):
            fitted.use_threads()
            X = fitted.read(X, self, min_samples=2)
            if len(X) < min_samples:
                raise ValueError(
                    f"X must hold {min_samples} samples or more for score, got {len(X)}: the ten "
                    "nearest neighbours of each must not be all others."
                )
            if len(X) < _FEW_SCORED and min_samples == _FEWEST_SCORED:
                warn(
                    f"X has {len(X)} samples, and their score is mostly noise: pass a few "
                    "hundred, in a search by larger folds, or another 'scoring'."
                )
            chain = scored_views(fitted, X, augmentation)
            return fitted.score(on_device(module, device), X, measure, chain, device)

    def views(
        self,
        X: Any,
        n_views: int = 2,
        *,
        rows: ArrayLike | slice | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> tuple[Any, ...]:
        """Draw views of samples to look at, as training draws them.

        The embedder need not be fitted: then the augmentation, the range of intensities and all
        else are those that `fit` would use for this X, which is how augmentations are checked
        before a long fit. A fitted embedder uses the augmentation that it was trained with.

        Parameters
        ----------
        X : array-like, Dataset, Parts, list of graphs or Views
            Samples as for `fit`, at least 2 of them; for a fitted embedder, samples of the shape
            seen in `fit`, at least 1.
        n_views : int, default=2
            Views of each sample, at least 1.
        rows : array-like of int or bool, or slice, default=None
            The samples whose views are drawn; None is all. The others only serve an embedder that
            is not fitted, whose augmentation and scale are learned from X as a whole; of a Dataset
            of uint8 images, they are read only if an augmentation learns from them, as the default
            one does of at least 600 images of 16 pixels or more.
        random_state : int, RandomState instance or None, default=None
            Seeds the draws; None gives different views at each call. The global generators are
            left untouched.

        Returns
        -------
        views : tuple of n_views arrays of shape (n, ...)
            Each holds one view of each sample, in the units, shape and dtype of X: images have
            their own intensities. Of several parts, :class:`~skcontrast.datasets.Parts`; of
            graphs, :class:`~skcontrast.graphs.PackedGraphs`, in which a masked label is None.

        Raises
        ------
        ValueError
            If `n_views` is less than 1 or X is not as `fit` needs it.

        See Also
        --------
        skcontrast.plotting.ViewsDisplay : Draws them next to their originals.
        skcontrast.estimation.project_views : The network's output for views.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from skcontrast import ContrastiveEmbedder
        >>> from skcontrast.augmentation import RandomAffine
        >>> X = load_digits().images
        >>> embedder = ContrastiveEmbedder(augmentation=RandomAffine())
        >>> first, second = embedder.views(X, rows=slice(5), random_state=0)
        >>> first.shape, bool(first.max() <= X.max())
        ((5, 8, 8), True)
        """
        from ._fit._drawn_views import drawn_views

        device = resolve_device(self.device, type(self).__name__)
        with plain_modes(device), one_thread(device):
            return drawn_views(self, X, n_views, rows, random_state).views

    @available_if(_has_concentrations)
    def concentration(self, X: Any) -> NDArray[np.float32]:
        """Return how sure the embedding of each sample is.

        Only with a similarity that has concentrations, such as ``VonMisesFisher()``.

        Parameters
        ----------
        X : array-like or Dataset
            Samples of the shape seen in `fit`.

        Returns
        -------
        kappa : ndarray of shape (n_samples,), dtype float32
            Concentrations κ > 0, high if the views of the sample are close together and far from
            other samples. The κ of a sample does not depend on the other samples in X. With a
            framework that has several encoders, κ is the concentration of the product of their
            distributions, :math:`|\\sum_p \\kappa_p \\mu_p|`, at most κ_max times their number.

        See Also
        --------
        sample : Draws embeddings from these distributions.
        log_score : Compares these distributions.

        Examples
        --------
        >>> import numpy as np
        >>> from skcontrast import ContrastiveEmbedder
        >>> from skcontrast.similarity import VonMisesFisher
        >>> X = np.random.default_rng(0).normal(size=(100, 5))
        >>> embedder = ContrastiveEmbedder(
        ...     similarity=VonMisesFisher(), max_epochs=2, random_state=0
        ... )
        >>> embedder.fit(X).concentration(X).shape
        (100,)
        """
        return self._distributions(X)[1].float().numpy()

    @available_if(_has_concentrations)
    def sample(
        self, X: Any, n: int = 1, *, random_state: int | np.random.RandomState | None = None
    ) -> NDArray[np.float32]:
        """Draw embeddings of each sample from its distribution.

        Only with a similarity that has concentrations, such as ``VonMisesFisher()``.

        Parameters
        ----------
        X : array-like or Dataset
            Samples of the shape seen in `fit`.
        n : int, default=1
            Draws of each sample, at least 1.
        random_state : int, RandomState instance or None, default=None
            Seeds the draws; None gives different draws at each call. The global generators are
            left untouched.

        Returns
        -------
        z : ndarray of shape (n_samples, n, d), dtype float32
            Points of length 1, where d is the width of the projection.

        Examples
        --------
        >>> import numpy as np
        >>> from skcontrast import ContrastiveEmbedder
        >>> from skcontrast.similarity import VonMisesFisher
        >>> X = np.random.default_rng(0).normal(size=(100, 5))
        >>> embedder = ContrastiveEmbedder(
        ...     similarity=VonMisesFisher(), max_epochs=2, random_state=0
        ... )
        >>> embedder.fit(X).sample(X[:3], 10, random_state=0).shape
        (3, 10, 64)
        """
        check_argument("sample", "n", n, POSITIVE_INT)
        rng = np.random.RandomState(resolve_seed(random_state, "sample"))
        mu, kappa = self._distributions(X)
        return self._probabilistic.draw(mu.numpy(), kappa.numpy(), n, rng).astype("float32")

    @available_if(_has_concentrations)
    def log_score(self, X1: Any, X2: Any = None) -> NDArray[np.float64]:
        r"""Return the mutual likelihood scores of all pairs of samples, for retrieval.

        The logarithm of the probability density that both embeddings are the same point, relative
        to chance, :math:`h(\tilde\kappa) - h(\kappa_i) - h(\kappa_j)`: above 0 if the two agree
        more than by chance. With one encoder, it is the score that training maximises for views of
        one sample, without the temperature. With several encoders, it compares the products of
        their distributions, see `concentration`.

        Only with a similarity that has concentrations, such as ``VonMisesFisher()``.

        Parameters
        ----------
        X1 : array-like or Dataset
            n samples of the shape seen in `fit`.
        X2 : array-like or Dataset, default=None
            m samples; None compares X1 with itself.

        Returns
        -------
        scores : ndarray of shape (n, m), dtype float64

        Examples
        --------
        >>> import numpy as np
        >>> from skcontrast import ContrastiveEmbedder
        >>> from skcontrast.similarity import VonMisesFisher
        >>> X = np.random.default_rng(0).normal(size=(100, 5))
        >>> embedder = ContrastiveEmbedder(
        ...     similarity=VonMisesFisher(), max_epochs=2, random_state=0
        ... )
        >>> embedder.fit(X).log_score(X[:3], X).shape
        (3, 100)
        """
        check_is_fitted(self)
        similarity = self._probabilistic.without_temperature()
        given = {"X1": X1} if X2 is None else {"X1": X1, "X2": X2}
        embedded: list[Any] = []
        for name, X in given.items():
            try:
                embedded.append(similarity.embed(self._distributions(X)))
            except ValueError as error:
                raise ValueError(f"{name} of log_score: {error}") from error
        return similarity.scores(embedded[0], embedded[-1]).numpy()

    @property
    def _probabilistic(self) -> ProbabilisticSimilarity:
        """The fitted similarity, which has concentrations."""
        return cast(ProbabilisticSimilarity, self.similarity_)

    def _distributions(self, X: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """Return mean directions (n, d) and concentrations (n,), float64."""
        check_is_fitted(self)
        z = torch.from_numpy(self._encode(X, self._fitted.network)).double()
        n_parts = self._fitted.widths.n_parts
        mu, kappa = self._probabilistic.distribution(z.unflatten(1, (n_parts, -1)))
        if n_parts == 1:
            return mu[:, 0], kappa[:, 0]
        return self._probabilistic.product(mu, kappa)

    def get_feature_names_out(
        self, input_features: ArrayLike | None = None
    ) -> NDArray[np.object_]:
        """Return the names of the columns of the embedding.

        Columns of X that stand beside what is learned, as with the default encoders of vectors
        and tables, keep their names, such as ``age``; what a table makes of a column is
        ``port_Cherbourg``, ``age_missing`` or ``born_day_sin``. All others are numbered:
        ``contrastiveembedder0``.

        Parameters
        ----------
        input_features : array-like of shape (n_features_in_,), default=None
            Names of the columns of X, if `fit` saw none.

        Returns
        -------
        names : ndarray of shape (n_components,), dtype object
        """
        names = super().get_feature_names_out(input_features)
        beside = None if self.output == "projection" else wide_part(self.encoder_)
        place = None if beside is None else beside.raw_columns
        return self._fitted.schema.renamed(names, place, input_features)

    @property
    def _n_features_out(self) -> int:
        widths = self._fitted.widths
        return widths.projection if self.output == "projection" else widths.representation

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_fitted")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        takes_tables = self.kind == "tables" or isinstance(self.kind, Tables)
        tags.input_tags.sparse = not takes_tables
        tags.input_tags.allow_nan = tags.input_tags.string = takes_tables
        tags.target_tags.required = getattr(self.loss, "requires_y", False)
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """Return a state with all tensors on the CPU, which can be unpickled without a GPU."""
        state = super().__getstate__()
        if "_fitted" in state:
            fitted = state["_fitted"] = state["_fitted"].on_cpu()
            network = fitted.network
            state["encoder_"], state["projector_"] = network.encoder, network.projector
        return {**state, "_skcontrast_version": __version__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over a pickled state; warn if a different version has pickled it."""
        state = dict(state)
        if (written := state.pop("_skcontrast_version")) != __version__:
            warn(
                InconsistentVersionWarning(
                    estimator_name=f"{type(self).__name__} of skcontrast",
                    current_sklearn_version=__version__,
                    original_sklearn_version=written,
                )
            )
        super().__setstate__(state)
