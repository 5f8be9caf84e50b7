"""The public estimator."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted
from torch import nn

from ._checks import (
    NON_NEGATIVE,
    POSITIVE,
    POSITIVE_INT,
    Declared,
    Interval,
    learned,
    parameter,
    validate_parameters,
)
from ._checks._names import available_unless_refused
from ._data._metadata import NAMES
from ._data._modalities import labeled_output
from ._inference import Measure, on_cpu
from ._objective._mean_loss import SameGroup
from ._runtime import guarded, on_threads, resolve_device
from ._sklearn_compat import CallbackSupportMixin, with_callbacks
from ._warnings import warn
from .augmentation import Augmentation
from .encoders import Encoder
from .frameworks import Framework
from .kinds import Kind
from .kinds._recognise import KindName, naming_kind
from .losses import Loss
from .optimizers import ALGORITHMS, Algorithm, Optimizer, as_optimizer
from .schedules import Schedule
from .similarity import Similarity

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline
    from skorch.callbacks import Callback
    from skorch.history import History

    from ._model._model import Model
    from ._model._views import Augmentations


__all__ = ["ContrastiveEmbedder"]


_Network: TypeAlias = Encoder | nn.Module | Callable[[tuple], nn.Module]
_OUTPUTS = {"representation", "projection"}
# The minimum number of samples for `score`, and for a reliable score.
_FEWEST_SCORED, _FEW_SCORED = 12, 100


def _without_concentrations(embedder: ContrastiveEmbedder) -> str | None:
    """Return how to get concentrations, None if the embedder has them."""
    similarity = getattr(embedder, "similarity_", embedder.similarity)
    has_some = getattr(similarity, "n_extra", 0) > 0
    return None if has_some else "pass similarity=VonMisesFisher(), and fit again"


class ContrastiveEmbedder(
    CallbackSupportMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Declared
):
    r"""Learn a representation from unlabeled samples by contrasting their augmented views.

    Views of the same sample are pulled together, views of different samples are pushed apart. With
    the score :math:`s_i^+` of the positive and N candidate negatives of anchor i, `fit` minimises
    the mean of

    .. math:: L_i = -\log \frac{e^{s_i^+}}{e^{s_i^+} + N \hat E_i^-}

    where :math:`\hat E_i^-` is the loss's estimate of the mean of :math:`e^s` over true negatives
    [1]_. See :ref:`four-choices`. The parameters form six groups:

    - method: `encoder`, `loss`, `framework`, `similarity`, `augmentation`, `n_views`,
      `same_group`;
    - representation: `n_components`, `projection_dim`, `output`;
    - training: `batch_size`, `max_epochs`, `optimizer`, `lr`, `weight_decay`, `lr_schedule`;
    - data: `kind`, `memory_budget`, `n_workers`;
    - hardware: `device`, `precision`;
    - running: `callbacks`, `warm_start`, `checkpoint`, `random_state`, `verbose`.

    Parameters
    ----------
    encoder : Encoder, torch.nn.Module, callable or list of them, default=None
        The network that maps samples to representations; None is the default of the kind of X, see
        :ref:`the defaults <default-encoders>`. For photographs, pass
        :class:`Pretrained(network) <skcontrast.encoders.Pretrained>`. A module is copied; a
        callable gets the shape of a sample and returns a module, see :ref:`own-encoder`. A list
        has an encoder for each modality, with ``CMC``.
    loss : Loss, default=None
        An object of :mod:`skcontrast.losses`, whose hyperparameters may be schedules; None is
        ``InfoNCE()``.
    framework : Framework, default=None
        An object of :mod:`skcontrast.frameworks`; None is ``SimCLR()``.
    similarity : Similarity, default=None
        An object of :mod:`skcontrast.similarity`, with schedules as for losses; None is
        ``Cosine()``, or ``DotProduct()`` with ``InfoGraph()``.
    augmentation : augmentation, list or Pipeline of augmentations, default=None
        Draws the views. None uses the augmentation steps of a Pipeline, or the default of the kind
        of X, see :ref:`default-views`.
    n_components : int, default=None
        Width of the representation of each encoder; None is the default of the encoder.
    projection_dim : int, default=64
        Width of the projection head, whose output is the input of the loss; 0 is no head.
    output : {"representation", "projection"}, default="representation"
        Whether `transform` returns the output of the encoder or of the projection head.
    same_group : {"neutral", "positive", "correct"}, default="neutral"
        Whether samples of one group, see `fit`, are neither positives nor negatives of each other,
        are positives, or stay negatives and correct ``DCL``, ``HCL``, ``PUCL`` or
        ``PositiveDebiased(negatives=...)`` of these, see :ref:`structure`.
    n_views : int, default=2
        Number of views per sample in a step, at least 2; ``InfoGraph`` always draws one.
    batch_size : int, default=128
        Maximum number of samples in a step, at least 2; sizes differ by at most one.
    max_epochs : int or "auto", default="auto"
        Passes over the data. "auto" is 100, reduced to 4,000 steps but at least 5 epochs, or
        increased to 800 steps but at most 400 epochs, see :ref:`cost`. With ``PatchNet`` and
        images of 48 pixels or more it is at most 160 epochs, with ``Pretrained`` about 40 steps.
    optimizer : {"adam", "adamw", "sgd"}, torch.optim.Optimizer class or Optimizer, default="adam"
        "sgd" has momentum 0.9. An :class:`~skcontrast.optimizers.Optimizer` sets other options,
        also for parts of the network.
    lr : float or "auto", default="auto"
        Learning rate, above 0. "auto" is .001; with ``PatchNet`` and images of 48 pixels or more,
        .002.
    weight_decay : float, default=1e-6
        Weight decay, at least 0.
    lr_schedule : {"cosine", "constant"} or Schedule, default="cosine"
        Schedule of the learning rate over the fit; `partial_fit` has a constant rate.
    kind : {"auto", "vectors", "series", "images", "graphs"} or Kind, default="auto"
        The kind of data in X; an object of :mod:`skcontrast.kinds` also has options of
        preprocessing. "auto" detects it, see :ref:`declare-kind`.
    device : str, int or torch.device, default="auto"
        "cpu", "cuda", "cuda:1", "mps"; 1 is "cuda:1"; "auto" is the first available of CUDA, MPS
        and CPU.
    precision : {"auto", "float32", "bf16"}, default="auto"
        The precision of the network in training; weights, losses and `transform` are float32.
        "bf16" is mixed precision with bfloat16. "auto" chooses it for images on hardware that
        supports it, with built-in encoders; with `Pretrained` only on GPUs.
    memory_budget : float, default=None
        Maximum gigabytes of samples on the device, at least 0; larger data are read batch by
        batch, with the same result. None is half of the free memory.
    n_workers : int, default=0
        Threads that read ahead if samples are read batch by batch; 0 reads in the thread of `fit`.
    callbacks : list, default=None
        :class:`~skcontrast.callbacks.Evaluation` and callbacks of skorch, see :ref:`callbacks`.
    warm_start : bool, default=False
        Whether `fit` continues with the weights, optimizer and memory of the previous fit.
    checkpoint : str or path-like, default=None
        A trusted folder in which `fit` saves its state: the same call resumes a killed fit, with
        the same result, see :ref:`long-fits`. ``{fit}`` is replaced by a hash of parameters and
        data.
    random_state : int, RandomState instance or None, default=None
        Seeds weights, batches and views; global generators are left untouched.
    verbose : int, default=0
        1 prints data, encoder and device, the expected time, a progress bar, and the last loss
        and scores.

    Attributes
    ----------
    encoder_ : torch.nn.Module
        The trained encoder, in inference mode, including standardisation: its input is vectors in
        float32, images in uint8 or as floats in [0, 1], or standardised graphs, as a
        :class:`~skcontrast.graphs.GraphBatch`.
    projector_ : torch.nn.Module
        The trained projection head.
    loss_, framework_, similarity_ : Loss, Framework, Similarity
        The validated components.
    augmentation_ : list of Augmentation
        The fitted augmentations that drew the views.
    history_ : skorch.history.History
        A row per epoch: ``train_loss``, ``lr``, ``dur``, schedules and estimates, such as
        ``loss__alpha``, and scores of an ``Evaluation``.
    estimates_ : dict of str to float
        The last values of the loss's hyperparameters that are "auto".
    n_epochs_ : int
        Epochs trained in total.
    adapted_ : bool
        Whether weights of the encoder were trained, also if only the linear layer of
        `n_components` was; ``Pretrained`` may leave its network frozen.
    adaptation_ : dict, list of (dict or None), or None
        Why a ``Pretrained`` network was trained or stayed frozen: ``adapted``, and as ``reason``
        "distance", "view retrieval", "participation ratio", "equal features", "labels", "groups",
        "adapt=True", "adapt=False" or "no trainable weights"; what was measured, with its limit.
        With several encoders, a list; None without ``Pretrained``, and in files of earlier
        versions.
    n_features_in_ : int
        Numbers per sample: features, or channels × height × width. Absent for graphs and series.
    feature_names_in_ : ndarray of str
        Names of the features, if X has names that are all strings.

    See Also
    --------
    contrastive_loss : The losses as a function, for custom training loops.
    ContrastiveClassifier : A classifier for data with few labels.

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
    >>> X, y = load_digits().images, load_digits().target
    >>> embedder = ContrastiveEmbedder(max_epochs=3, random_state=0)
    >>> pipe = make_pipeline(RandomAffine(), embedder, LogisticRegression(max_iter=1000))
    >>> round(pipe.fit(X[:500], y[:500]).score(X[500:], y[500:]), 1)
    0.9
    """

    encoder: _Network | Sequence[_Network | None] | None = parameter(default=None)
    loss: Loss | None = parameter(default=None)
    framework: Framework | None = parameter(default=None)
    similarity: Similarity | None = parameter(default=None)
    augmentation: Augmentation | Sequence[Augmentation] | Pipeline | None = parameter(default=None)
    n_components: int | None = parameter([*POSITIVE_INT, None], default=None)
    projection_dim: int = parameter([Interval(Integral, 0, None, closed="left")], default=64)
    output: Literal["representation", "projection"] = parameter(_OUTPUTS, default="representation")
    same_group: SameGroup = parameter({"neutral", "positive", "correct"}, default="neutral")
    n_views: int = parameter([Interval(Integral, 2, None, closed="left")], default=2)
    batch_size: int = parameter([Interval(Integral, 2, None, closed="left")], default=128)
    max_epochs: int | Literal["auto"] = parameter([*POSITIVE_INT, {"auto"}], default="auto")
    optimizer: Algorithm | Optimizer = parameter([{*ALGORITHMS}, type, Optimizer], default="adam")
    lr: float | Literal["auto"] = parameter([*POSITIVE, {"auto"}], default="auto")
    weight_decay: float = parameter(NON_NEGATIVE, default=1e-6)
    lr_schedule: Literal["cosine", "constant"] | Schedule = parameter(
        [{"cosine", "constant"}, Schedule], default="cosine"
    )
    # validated with the other components, with a better message
    kind: Literal["auto"] | KindName | Kind = parameter(default="auto")
    device: str | int | torch.device = parameter(
        [str, torch.device, Interval(Integral, 0, None, closed="left")], default="auto"
    )
    precision: Literal["auto", "float32", "bf16"] = parameter(
        {"auto", "float32", "bf16"}, default="auto"
    )
    memory_budget: float | None = parameter([*NON_NEGATIVE, None], default=None)
    n_workers: int = parameter([Interval(Integral, 0, None, closed="left")], default=0)
    callbacks: Sequence[Callback | tuple[str, Callback]] | None = parameter(
        [list, tuple, None], default=None
    )
    warm_start: bool = parameter(["boolean"], default=False)
    checkpoint: str | os.PathLike | None = parameter([str, os.PathLike, None], default=None)
    random_state: int | np.random.RandomState | None = parameter(["random_state"], default=None)
    verbose: int = parameter(["verbose"], default=0)

    # Set by fit, see Attributes.
    encoder_: nn.Module = learned()
    projector_: nn.Module = learned()
    loss_: Loss = learned()
    framework_: Framework = learned()
    similarity_: Similarity = learned()
    augmentation_: list[Augmentation] = learned()
    estimates_: dict[str, float] = learned()
    n_epochs_: int = learned()
    adapted_: bool = learned()
    adaptation_: dict[str, Any] | list[dict[str, Any] | None] | None = learned()
    n_features_in_: int = learned()
    feature_names_in_: NDArray[np.str_] = learned()
    _model: Model = learned()
    _states: dict[str, Any] | None = learned()

    def set_params(self, **params: Any) -> Self:
        """Set parameters, including the parameters of components that are None.

        ``similarity__temperature=0.2`` on an embedder whose `similarity` is None sets it to
        ``Cosine(temperature=0.2)``; ``optimizer__betas`` makes an ``Optimizer`` of a name.

        Parameters
        ----------
        **params : dict
            Parameters by name; ``component__parameter`` sets a parameter of a component.

        Returns
        -------
        self : ContrastiveEmbedder
        """
        from ._model._settings import COMPONENTS, default_with

        framework = params.get("framework", self.framework)
        for role in {name.split("__")[0] for name in params if "__" in name}:
            value = params.get(role, getattr(self, role, None))
            if value is None and role in COMPONENTS:
                nested = {n: params.pop(n) for n in list(params) if n.startswith(f"{role}__")}
                names = {name.partition("__")[2]: nested[name] for name in nested}
                params[role] = default_with(role, names, framework)
            elif role == "optimizer":
                params[role] = as_optimizer(value)
        return super().set_params(**params)

    # Not in the signature of fit: scikit-learn's checks would require that a weight of 2 equals a
    # sample that occurs twice, which is not so within a batch.
    __metadata_request__fit = __metadata_request__partial_fit = dict.fromkeys(sorted(NAMES))

    @with_callbacks
    @guarded()
    def fit(self, X: Any, y: ArrayLike | None = None, **metadata: Any) -> Self:
        """Train the encoder on X.

        Parameters
        ----------
        X : array-like or Views
            At least 2 samples: vectors (n_samples, n_features), dense or sparse; a DataFrame of
            numbers, see :ref:`tables` for others; series (n_samples, n_channels, n_times), or a
            list of arrays of unequal lengths, see :ref:`series`; images (n_samples, height, width)
            or (n_samples, channels, height, width), uint8 or float; paths of image files, or a
            list of images of Pillow, see :class:`~skcontrast.kinds.Images`; a list of networkx
            graphs or of PyTorch Geometric's ``Data``, or
            :class:`~skcontrast.graphs.PackedGraphs`; tensors,
            memory maps, or a torch Dataset whose items are samples or tuples that start with one;
            with ``CMC()`` also :class:`~skcontrast.datasets.Modalities`; a :ref:`custom kind
            <own-kind>`; or the output of an augmentation in a Pipeline.
        y : array-like of shape (n_samples,), default=None
            Classes; −1, None, NaN or ``pandas.NA`` where unknown, as in `groups` and `domains`.
            Used by ``Supervised``, ``SupCon`` and ``SemiSupCon``, and to estimate hyperparameters
            of the loss that are ``"auto"``; otherwise ignored.
        **metadata : dict
            In a Pipeline ``embed__groups=``, with the name of the step, or by metadata routing;
            see :ref:`metadata` and :ref:`structure`.

            - ``sample_weight`` (n_samples,): factors ≥ 0 on the losses of the samples.
            - ``descriptions`` (n_samples, projection width): vectors t that describe each sample.
              The loss of a view with projection z is multiplied by max(0, cos(z, t)).
            - ``groups`` (n_samples,): samples that belong together, such as those of one patient,
              are never negatives of each other, unless `same_group` is "correct". Classes may be
              groups.
            - ``domains`` (n_samples,): the plate, site or subject of each sample. Every batch is
              drawn from one domain; not with frameworks that remember samples, such as ``MoCo``.

        Returns
        -------
        self : ContrastiveEmbedder

        Raises
        ------
        ValueError
            If X holds NaN, infinity or a graph without nodes, has a wrong shape or is ambiguous;
            if a parameter, at any depth, is outside its range; if training diverges; if
            `checkpoint` has other data or parameters, or its file is damaged. A fitted embedder
            is unchanged then.
        OSError
            If `checkpoint` cannot be written to, or the disk is full.
        TypeError
            If a class is passed instead of an instance, or an unknown keyword.
        KeyboardInterrupt
            If the user interrupts. The embedder then has the state of the last finished epoch.
        """
        return self._train(X, y, metadata)

    @guarded()
    def partial_fit(self, X: Any, y: ArrayLike | None = None, **metadata: Any) -> Self:
        """Train for one more epoch, on the same or on different data.

        The first call builds the encoder and learns the scaling of the input; later calls keep
        both, and the memory of a framework, see :ref:`streams`. Schedules advance by the epochs
        trained so far; the learning rate stays at `lr`, and `checkpoint` is ignored.

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
        return self._train(X, y, metadata, one_epoch=True)

    def _train(self, X: Any, y: Any, metadata: dict[str, Any], *, one_epoch: bool = False) -> Self:
        """Train a network, and set the fitted attributes."""
        from ._fit._fit import fit_network
        from ._model._settings import resolve_settings

        settings = replace(resolve_settings(self), one_epoch=one_epoch)
        past = [getattr(self, name, None) for name in ("_model", "_states")]
        past = past if one_epoch or settings.warm_start else []
        with on_threads(1, settings.device):
            trained = fit_network(settings, X, y, metadata, self, *past)
        self._adopt(trained.model, trained.states)
        if trained.interrupted:
            raise KeyboardInterrupt(
                f"fit was interrupted; the embedder has the state after {self.n_epochs_} epochs"
            )
        return self

    def _as_fitted(self, model: Model) -> Self:
        """Return a copy of the embedder with the fitted attributes of a model."""
        embedder = object.__new__(type(self))
        embedder.__dict__.update(self.__dict__)
        return embedder._adopt(model)

    def _adopt(self, model: Model, states: dict[str, Any] | None = None) -> Self:
        """Set all fitted attributes at once."""
        self.__dict__.update(
            _model=model,
            _states=states,
            loss_=model.loss,
            framework_=model.framework,
            similarity_=model.similarity,
            augmentation_=model.augmentation,
            encoder_=model.network.encoder,
            projector_=model.network.projector,
            n_epochs_=len(model.history),
            adapted_=any(p.requires_grad for p in model.network.encoder.parameters()),
            adaptation_=copy.deepcopy(model.adaptation),
            estimates_=model.estimates,
        )
        model.schema.assign_names(self)
        return self

    @property
    def history_(self) -> History:
        """The history of the training, see Attributes."""
        if not hasattr(self, "_model"):
            raise AttributeError(f"{type(self).__name__} has no history_ before fit.")
        from skorch.history import History

        return History(map(dict, self._model.history))

    if TYPE_CHECKING:  # scikit-learn, which defines it, has no annotations

        def fit_transform(
            self, X: Any, y: ArrayLike | None = None, **metadata: Any
        ) -> NDArray[np.float32]: ...

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Embed samples.

        Parameters
        ----------
        X : array-like, Dataset, Modalities or list of graphs
            Samples of the shape seen in `fit`.

        Returns
        -------
        h : ndarray of shape (n_samples, n_components), dtype float32
            Representations, or projections if ``output="projection"``; with concentrations these
            are mean directions, of length 1 for each encoder. The row of a sample does not depend
            on the other samples, up to rounding. For a tensor, under scikit-learn's
            ``config_context(array_api_dispatch=True)``, a tensor on its device.
        """
        return labeled_output(self._encode(X, self._transforming()), X, self)

    @guarded()
    def _encode(self, X: Any, module: nn.Module) -> NDArray[np.float32]:
        """Return the output of a module for samples, shape (n_samples, width)."""
        device = resolve_device(self.device, type(self).__name__)
        return self._model.embed(module, self._model.read(X, self), device)

    def _transforming(self) -> nn.Module:
        """Return the network whose output `transform` returns."""
        check_is_fitted(self)
        if self.output not in _OUTPUTS:
            validate_parameters(self)
        model = self._model
        return model.projecting(model.network) if self.output == "projection" else self.encoder_

    @guarded()
    def score(self, X: Any, y: Any = None) -> float:
        r"""Return the share of nearest neighbours that two views of samples have in common.

        .. math:: \frac1{10n} \sum_i \left| N_{10}(h_i) \cap N_{10}(h_i') \right|

        where h and h' are the embeddings of two new views, and :math:`N_{10}` the ten samples with
        the highest cosines, among at most 1,024 at a time. It needs no labels. Views are drawn by
        the default augmentation of the kind of X for every `augmentation`, so that scores are
        comparable; for custom kinds, by `augmentation_`. :ref:`label-free` shows how it relates
        to accuracies.

        Parameters
        ----------
        X : array-like, Dataset, Modalities or list of graphs
            At least 12 samples of the shape seen in `fit`, better a few hundred held-out ones; a
            warning is issued below 100. Only compare scores of the same number of samples.
        y : ignored
            Present for API consistency.

        Returns
        -------
        score : float
            In [0, 1]. Chance level is 10 / (n_samples - 1), or .01 for more than 1,024 samples.
            Two calls with the same X return the same score.

        See Also
        --------
        skcontrast.metrics.make_view_scorer : Other measures or views.
        """
        from .metrics._neighbors import neighbor_agreement

        return self._score_views(X, neighbor_agreement, min_samples=_FEWEST_SCORED)

    def _score_views(
        self, X: Any, measure: Measure, augmentation: Augmentations = None, *, min_samples: int = 2
    ) -> float:
        """Return a measure of two views; by default of the augmentation of the kind of X."""
        module, model = self._transforming(), self._model
        device = resolve_device(self.device, type(self).__name__)
        with on_threads(model.n_threads, device), naming_kind(model.schema.kind):
            X = model.read(X, self, min_samples=2)
            if len(X) < min_samples:
                raise ValueError(
                    f"X must hold {min_samples} samples or more for score, got {len(X)}: score "
                    "uses ten nearest neighbours."
                )
            if len(X) < _FEW_SCORED and min_samples == _FEWEST_SCORED:
                warn(
                    f"X has {len(X)} samples, and their score is mostly noise: pass a few "
                    "hundred, in a search larger folds or another 'scoring'."
                )
            views = model.sampler(model.scored_chain(X, augmentation), device)
            return model.score(X, measure, views, module)

    @guarded()
    def views(
        self,
        X: Any,
        n_views: int = 2,
        *,
        rows: ArrayLike | slice | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> tuple[Any, ...]:
        """Draw views of samples as in training, for inspection.

        The embedder need not be fitted: the augmentation and the range of intensities are then
        those of a fit to this X.

        Parameters
        ----------
        X : array-like, Dataset, Modalities, list of graphs or Views
            Samples as for `fit`, at least 2 of them; for a fitted embedder, samples of the shape
            seen in `fit`, at least 1.
        n_views : int, default=2
            Number of views, at least 1.
        rows : array-like of int or bool, or slice, default=None
            The samples whose views are drawn; None is all. An unfitted embedder still learns
            augmentation and scale from all of X.
        random_state : int, RandomState instance or None, default=None
            Seeds the draws; None gives different views at each call. The global generators are
            left untouched.

        Returns
        -------
        views : tuple of n_views arrays of shape (n, ...)
            Each holds one view of each sample, in the units, shape and dtype of X; of several
            modalities, :class:`~skcontrast.datasets.Modalities`; of graphs,
            :class:`~skcontrast.graphs.PackedGraphs`, in which a masked label is None.

        Raises
        ------
        ValueError
            If `n_views` is less than 1, or X is invalid for `fit`.

        See Also
        --------
        skcontrast.plotting.ViewsDisplay : Plots views of images and series.
        skcontrast.estimation.project_views : Projections of views.

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
        from ._model._model import drawn_views

        return drawn_views(self, X, n_views, rows, random_state).views

    @available_unless_refused(_without_concentrations)
    @guarded()
    def concentration(self, X: Any) -> NDArray[np.float32]:
        """Return the concentration of the embedding of each sample, a measure of certainty.

        Only with a similarity such as ``VonMisesFisher()``.

        Parameters
        ----------
        X : array-like or Dataset
            Samples of the shape seen in `fit`.

        Returns
        -------
        kappa : ndarray of shape (n_samples,), dtype float32
            Concentrations κ > 0, high if the views of the sample are close together and far from
            other samples; with several encoders, that of the product of their distributions,
            :math:`|\\sum_p \\kappa_p \\mu_p|`, at most κ_max times their number.

        See Also
        --------
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

    @available_unless_refused(_without_concentrations)
    @guarded()
    def log_score(self, X1: Any, X2: Any = None) -> NDArray[np.float64]:
        r"""Return the mutual likelihood scores of all pairs of samples, for retrieval.

        The logarithm of the probability density that both embeddings are the same point, relative
        to chance, :math:`h(\tilde\kappa) - h(\kappa_i) - h(\kappa_j)`: above 0 if the two agree
        more than by chance. With several encoders, it compares the products of distributions.

        Only with a similarity such as ``VonMisesFisher()``.

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
        similarity: Any = clone(self.similarity_).set_params(temperature=1.0)
        first = similarity.embed(self._distributions(X1))
        second = first if X2 is None else similarity.embed(self._distributions(X2))
        return similarity.scores(first, second).numpy()

    def _distributions(self, X: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """Return mean directions (n, d) and concentrations (n,), float64."""
        check_is_fitted(self)
        z = torch.from_numpy(self._encode(X, self._model.network)).double()
        similarity: Any = self.similarity_
        n_modalities = self._model.widths.n_modalities
        mu, kappa = similarity.distribution(z.unflatten(1, (n_modalities, -1)))
        return (mu[:, 0], kappa[:, 0]) if n_modalities == 1 else similarity.product(mu, kappa)

    @property
    def _n_features_out(self) -> int:
        widths = self._model.widths
        return widths.projection if self.output == "projection" else widths.representation

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.sparse = True
        tags.target_tags.required = getattr(self.loss, "requires_y", False)
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """Return a state with all tensors on the CPU, which can be unpickled without a GPU."""
        state = super().__getstate__()
        if "_model" in state:
            network = (model := state["_model"].on_cpu()).network
            state["_model"], state["_states"] = model, on_cpu(state["_states"])
            state["encoder_"], state["projector_"] = network.encoder, network.projector
        return state
