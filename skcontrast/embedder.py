"""The estimator: validate, assemble, fit, transform, score; nothing numerical."""

from __future__ import annotations

from numbers import Integral, Real

import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch import nn

from ._data._validation import check_border, join_pair, validate_inputs
from ._fit import _choices as assembly
from ._fit._densities import Densities
from ._fit._fit import NetworkTraining
from ._fit._optimizer import OPTIMIZERS
from ._network._inference import encode, on_cpu, on_device, rows_per_call
from ._network._network import Directions
from ._network._view_score import score_views
from ._parameters import Interval, Schedule, StrOptions, validate_parameters
from .augmentation import Views

__all__ = ["ContrastiveEmbedder"]

_OUTPUTS = {"representation", "projection"}


class ContrastiveEmbedder(
    NetworkTraining, Densities, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator
):
    r"""Learn a representation from unlabeled samples by contrasting their augmented views.

    An encoder network is trained so that two augmented views of one sample are close and views of
    different samples are not; `transform` returns what the encoder makes of each sample, for a
    classifier or any other step to work on. Four choices are independent of each other: how the
    expectation over true negatives is estimated (`loss`), who is contrasted with whom
    (`framework`), what the score of two embeddings is (`similarity`), and what a second view is
    (`augmentation`, or augmentation steps before the embedder in a Pipeline).

    With a batch of embeddings z of two views each, scores :math:`s` and positives
    :math:`s^+`, fit minimises the mean over the anchors of

    .. math:: L_i = -\log \frac{e^{s_i^+}}{e^{s_i^+} + N \hat E_i^-}

    where the loss says what :math:`\hat E_i^-` is [1]_.

    Parameters
    ----------
    encoder : Encoder, torch.nn.Module or callable, default=None
        The network from sample to representation. None chooses by the kind of X: ``MLP()`` for
        vectors, ``ConvNet()`` for images up to 32 pixels, ``ResNet(18)`` beyond, ``GIN()`` for
        graphs. An object of :mod:`skcontrast.encoders` is built once the shape of X is known; a
        module is copied, never trained in place; a callable gets the shape of one sample, of
        graphs ``(None, n_node_features)``, and returns a module. Modules of graphs are called as
        those of PyTorch Geometric, ``module(x, edge_index, batch=batch)``.
    loss : Loss, default=None
        An object of :mod:`skcontrast.losses`; None is ``InfoNCE()``. Its hyperparameters may be
        schedules.
    framework : Framework, default=None
        An object of :mod:`skcontrast.frameworks`; None is ``SimCLR()``.
    similarity : Similarity, default=None
        An object of :mod:`skcontrast.similarity`; None is ``Cosine()``, but ``DotProduct()`` for
        ``InfoGraph()``. Its hyperparameters may be schedules.
    augmentation : augmentation, list or Pipeline of augmentations, default=None
        What draws a view. None takes the augmentation steps before the embedder in a Pipeline;
        without any, ``MarginalCorruption()`` for vectors (which keeps some rows of X in the fitted
        embedder), ``RandomAffine()`` for grey images, ``SimCLRAugmentation()`` for colour images,
        unless the framework contrasts their channels as they are, and ``NodeDrop()`` for graphs,
        but nothing with ``InfoGraph()``.
    n_components : int, default=None
        Width of the representation, of each encoder's where the framework has two; None leaves it
        to the encoder.
    projection_dim : int, default=64
        Width of the projection head's output, which the loss sees; 0 trains the representation
        itself. Each of two encoders has a head of this width.
    output : {"representation", "projection"}, default="representation"
        What `transform` returns: the encoder's output, or the projection head's.
    n_views : int, default=2
        Views drawn of each sample and step, at least 2; ``InfoGraph`` always draws one.
    batch_size : int, default=256
        The most samples in a step. An epoch is cut into random batches whose sizes differ by at
        most one, so that none is left with a single sample.
    max_epochs : int, default=100
        Passes over the data.
    optimizer : {"adam", "adamw", "sgd"} or torch.optim.Optimizer class, default="adam"
        "sgd" has momentum 0.9.
    lr : float, default=1e-3
        Learning rate.
    weight_decay : float, default=1e-6
        Weight decay.
    lr_schedule : {"cosine", "constant"} or Schedule, default="cosine"
        Factor on the learning rate by the progress of the fit. `partial_fit`, which has no end,
        keeps it constant.
    standardize : bool, default=True
        Scale the input inside: vectors to zero mean and unit variance per feature, images to
        intensities in [0, 1] and then per channel. If False, vectors are taken as they are and
        float images must have intensities in [0, 1].
    node_features : {"auto", "attributes", "degree", "constant"}, default="auto"
        What the nodes of graphs are described by: their attributes ``x``, standardised but for
        columns of 0 and 1, and a one-hot code of ``label``, in which categories that were not
        seen in fit are zeros; a one-hot code of the in-degree, 64 and more in one; or a single 1.
        "auto" takes the attributes where there are any, else the degree.
    device : str or torch.device, default="auto"
        "cpu", "cuda", "cuda:1", "mps"; "auto" is the first of CUDA, MPS and CPU that there is.
        Under ``torchrun``, "auto" and "cuda" are the GPU of this process.
    precision : {"auto", "float32", "bf16"}, default="auto"
        What the network computes in while it trains. "bf16" is bfloat16 where that is safe, by
        autocast: up to twice as fast for images on processors that have it. "auto" chooses it for
        images on such processors with an encoder of :mod:`skcontrast.encoders`. Weights, losses
        and `transform` are float32.
    compile : bool, default=False
        Whether the network is trained through ``torch.compile``, which takes a minute at first
        and pays in long fits. Where it fails, a warning says why and the network runs as it is.
    memory_budget : float, default=None
        The most gigabytes of training samples that are held as tensors, on the device; what is
        larger, and a Dataset, stays where it is and is read batch by batch, with the same result.
        None is half of the memory that is free.
    n_workers : int, default=0
        Processes that read ahead where samples are read batch by batch; 0 reads in this one.
    callbacks : list, default=None
        Callbacks of skorch, e.g. ``EarlyStopping(monitor="train_loss")``,
        ``Checkpoint(monitor="train_loss_best")``, or ``LRScheduler`` with
        ``lr_schedule="constant"``.
    warm_start : bool, default=False
        Whether `fit` goes on from the previous fit's weights and optimizer, and from what the
        framework remembers, such as a queue.
    random_state : int, RandomState instance or None, default=None
        Seeds weights, batches and views. The global generators of numpy and torch are left
        untouched.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    encoder_ : torch.nn.Module
        The trained encoder, in inference mode. Its first step standardises: it takes vectors as
        float32, and images as uint8 or as floats in [0, 1]. One for graphs takes a
        :class:`~skcontrast.graphs.GraphBatch`, whose features are standardised already.
    projector_ : torch.nn.Module
        The trained projection head.
    loss_, framework_, similarity_ : objects
        The validated choices.
    augmentation_ : list of augmentations
        The fitted chain that drew the views.
    history_ : skorch.history.History
        A row per epoch: ``train_loss``, ``lr``, ``dur`` and the value of every schedule and of
        every hyperparameter that is read off the data, such as ``loss__alpha``.
    estimates_ : dict of str to float
        The last values of the loss's hyperparameters that are "auto".
    n_epochs_ : int
        Epochs trained in all.
    n_features_in_ : int
        Numbers per sample: features, or channels × height × width. Absent for graphs.
    feature_names_in_ : ndarray of str
        Names of the features, where X has names that are all strings.

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
    >>> pipe.fit(X[:500], y[:500]).score(X[500:], y[500:]) > 0.7
    True
    """

    _parameter_constraints: dict = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "projection_dim": [Interval(Integral, 0, None, closed="left")],
        "output": [StrOptions(_OUTPUTS)],
        "n_views": [Interval(Integral, 2, None, closed="left")],
        "batch_size": [Interval(Integral, 2, None, closed="left")],
        "max_epochs": [Interval(Integral, 1, None, closed="left")],
        "optimizer": [StrOptions(set(OPTIMIZERS)), type],
        "lr": [Interval(Real, 0, None, closed="neither")],
        "weight_decay": [Interval(Real, 0, None, closed="left")],
        "lr_schedule": [StrOptions({"cosine", "constant"}), Schedule],
        "standardize": ["boolean"],
        "node_features": [StrOptions({"auto", "attributes", "degree", "constant"})],
        "device": [str, torch.device],
        "precision": [StrOptions({"auto", "float32", "bf16"})],
        "compile": ["boolean"],
        "memory_budget": [Interval(Real, 0, None, closed="left"), None],
        "n_workers": [Interval(Integral, 0, None, closed="left")],
        "callbacks": [list, tuple, None],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        encoder=None,
        loss=None,
        framework=None,
        similarity=None,
        augmentation=None,
        n_components=None,
        projection_dim=64,
        output="representation",
        n_views=2,
        batch_size=256,
        max_epochs=100,
        optimizer="adam",
        lr=1e-3,
        weight_decay=1e-6,
        lr_schedule="cosine",
        standardize=True,
        node_features="auto",
        device="auto",
        precision="auto",
        compile=False,
        memory_budget=None,
        n_workers=0,
        callbacks=None,
        warm_start=False,
        random_state=None,
        verbose=0,
    ):
        self.encoder = encoder
        self.loss = loss
        self.framework = framework
        self.similarity = similarity
        self.augmentation = augmentation
        self.n_components = n_components
        self.projection_dim = projection_dim
        self.output = output
        self.n_views = n_views
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.optimizer = optimizer
        self.lr = lr
        self.weight_decay = weight_decay
        self.lr_schedule = lr_schedule
        self.standardize = standardize
        self.node_features = node_features
        self.device = device
        self.precision = precision
        self.compile = compile
        self.memory_budget = memory_budget
        self.n_workers = n_workers
        self.callbacks = callbacks
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def set_params(self, **params):
        """Set parameters, also those of a component that is left to its default.

        ``similarity__temperature=0.2`` on an embedder whose `similarity` is None sets the
        temperature of the default similarity.

        Parameters
        ----------
        **params : dict
            Parameters by name; ``component__parameter`` reaches into a component.

        Returns
        -------
        self : ContrastiveEmbedder
        """
        for role in {name.split("__")[0] for name in params if "__" in name}:
            value = params.get(role, getattr(self, role, None))
            if value is None and role in assembly.COMPONENTS:
                nested = {n: params.pop(n) for n in list(params) if n.startswith(f"{role}__")}
                default = assembly.COMPONENTS[role][1]()
                names = {name.partition("__")[2]: given for name, given in nested.items()}
                params[role] = default.set_params(**names)
            elif hasattr(self, role) and not hasattr(value, "set_params"):
                raise ValueError(
                    f"The {role!r} parameter of ContrastiveEmbedder is {value!r} and has no "
                    f"parameters of its own to set: pass an object as {role} first."
                )
        return super().set_params(**params)

    # Not in the signature of fit: there, scikit-learn takes sample_weight for a promise that a
    # weight of 2 is the same as a sample that occurs twice, which no in-batch contrast can keep.
    __metadata_request__fit = __metadata_request__partial_fit = {
        "sample_weight": None,
        "descriptions": None,
    }

    def fit(self, X, y=None, **metadata):
        """Train the encoder on X.

        Under ``torchrun``, or in any initialised group of ``torch.distributed``, all processes
        train one embedder together: each must call this with the same X and y, of which it takes
        its share of every batch. See the user guide, "Many machines, many processes".

        Parameters
        ----------
        X : array-like or Views
            Vectors of shape (n_samples, n_features); grey images (n_samples, height, width);
            images (n_samples, channels, height, width), uint8 or float; torch tensors; memory
            maps; a torch Dataset whose items are samples or tuples that start with one; with
            ``framework=CMC()`` a tuple of two arrays of the same samples; a list of graphs of
            networkx or of PyTorch Geometric's ``Data``, or
            :class:`~skcontrast.graphs.PackedGraphs`; or what an augmentation step of a Pipeline
            hands on. At least 2 samples.
        y : array-like of shape (n_samples,), default=None
            Classes, −1 where unknown. Read by ``Supervised`` and ``SupCon``, and where a
            hyperparameter of the loss is ``"auto"``; ignored by all other losses.
        **metadata : dict
            ``sample_weight``, array-like of shape (n_samples,): factors ≥ 0 on the losses of the
            samples. ``descriptions``, array-like of shape (n_samples, projection width): vectors
            that say what each sample shows; the loss of a view with projection z is multiplied by
            max(0, cos(z, description)), so that a wrong anchor counts less. Both go through a
            Pipeline as ``embed__sample_weight=`` or by metadata routing.

        Returns
        -------
        self : ContrastiveEmbedder

        Raises
        ------
        ValueError
            If X holds NaN or infinity or has a wrong shape, or a graph without nodes, or a
            parameter, at any depth, lies outside its range, or training diverges, or processes
            that train together were given different data. A fitted embedder stays as it was.
        TypeError
            If a class is passed where an instance is due, or an unknown keyword.
        KeyboardInterrupt
            If the user interrupts; the embedder keeps what it learned in the finished epochs.
        """
        self._train(X, y, metadata, go_on=self.warm_start and hasattr(self, "encoder_"))
        return self

    def partial_fit(self, X, y=None, **metadata):
        """Train for one more epoch, on the same or on other data.

        The first call builds the encoder and learns the scaling of the input; later calls keep
        both. Schedules advance by the epochs trained so far; the learning rate stays at `lr`.

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
        self._train(X, y, metadata, go_on=hasattr(self, "encoder_"), one_epoch=True)
        return self

    def transform(self, X):
        """Embed samples.

        Parameters
        ----------
        X : array-like, Dataset, tuple of two arrays or list of graphs
            Samples of the shape seen in `fit`.

        Returns
        -------
        h : ndarray of shape (n_samples, n_components), dtype float32
            Representations, or projections where ``output="projection"``; these are mean
            directions, of length 1 for each encoder, where the similarity has concentrations. A
            sample's row does not depend on the samples beside it.
        """
        check_is_fitted(self)
        if self.output not in _OUTPUTS:
            validate_parameters(self)
        return self._encode(
            X, self._projecting() if self.output == "projection" else self.encoder_
        )

    def _encode(self, X, module):
        # Where the scaler only casts, it looks for NaN and infinity in the same pass.
        X = validate_inputs(
            self, self._plain(X), reset=False, check_finite=not self._scaler.only_casts_
        )
        device = assembly.resolve_device(self.device)
        module = on_device(module, device)
        return encode(
            module,
            X,
            rows_per_call(X),
            to_tensor=lambda rows: self._scaler.to_tensor(rows, device),
        )

    def _projecting(self):
        """Return the network up to what is handed out of projections."""
        directions = Directions(self.similarity_, self._n_parts)
        return nn.Sequential(self.encoder_, self.projector_, directions)

    def score(self, X, y=None):
        r"""Return how well two views of held-out samples find each other; higher is better.

        Minus the InfoNCE loss of fresh views at temperature 0.5 and among at most 256 samples at a
        time, whatever loss, temperature and batch size the embedder was trained with, so that a
        search over these compares like with like. Needs no labels. Graphs that are not augmented,
        as with ``InfoGraph`` by default, are scored by views of ``NodeDrop()``.

        Parameters
        ----------
        X : array-like or list of graphs
            At least 2 samples of the shape seen in `fit`.
        y : ignored
            Present for API consistency.

        Returns
        -------
        score : float
            At most 0. The same X gives the same score.
        """
        check_is_fitted(self)
        X = validate_inputs(self, self._plain(X), reset=False, min_samples=2)
        device = assembly.resolve_device(self.device)
        network = self._projecting().to(device).eval()
        draw = self._drawing(device, assembly.scored_chain(self))
        return score_views(
            network, draw, len(X), lambda rows: self._scaler.to_tensor(X[rows], device), device
        )

    def _plain(self, X):
        X, border = join_pair(X.base if isinstance(X, Views) else X, self.framework_)
        check_border(border, self._border)
        return X

    @property
    def _n_features_out(self):
        return self._projection_width if self.output == "projection" else self._width

    def __sklearn_is_fitted__(self):
        return hasattr(self, "encoder_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.target_tags.required = getattr(self.loss, "requires_y", False)
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def __getstate__(self):
        """Hand out a state whose tensors lie on the CPU: it can be unpickled without a GPU."""
        state = super().__getstate__()
        for name in ("encoder_", "projector_", "_optimizer_state", "_framework_state"):
            if name in state:
                state[name] = on_cpu(state[name])
        return state
