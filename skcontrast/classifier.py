"""A classifier for many samples with few labels."""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, TransformerMixin, clone, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, check_consistent_length, get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from ._blocks import Labels, WeightedBlocks, default_blocks, predict_in_batches
from ._checks import (
    Declared,
    available_unless_refused,
    check_component,
    naming,
    parameter,
    validate_parameters,
)
from ._checks._constraints import brief
from ._data._metadata import NAMES, checked_weights, group_codes, known_classes
from ._pseudo_labels import Trust, agreement_of, at_temperature, pooled, refit, spread_in_groups
from ._runtime import guarded, on_threads, resolve_seed
from ._sklearn_compat import CallbackSupportMixin, as_task, subtask
from ._warnings import say
from .embedder import ContrastiveEmbedder
from .encoders._base import epochs_of
from .losses import SemiSupCon
from .metrics import GroupAgreement
from .metrics._scorers import thawed

__all__ = ["ContrastiveClassifier"]


# Approximate steps of the default embedder, and the limits of its epochs.
_STEPS, _EPOCHS = 720, (10, 400)
# The largest number of samples for which the blocks and the classifier use one thread.
_MANY_ROWS = 20_000


def _if_classifier_has(method: str) -> Any:
    """Return a decorator of a method that exists only if the classifier has it."""

    def reason(model: ContrastiveClassifier) -> str | None:
        fallback = LogisticRegression if model.classifier is None else model.classifier
        classifier = getattr(model, "classifier_", fallback)
        has_it = hasattr(classifier, method)
        return None if has_it else f"its classifier {brief(classifier)} has none"

    return available_unless_refused(reason)


class ContrastiveClassifier(CallbackSupportMixin, ClassifierMixin, TransformerMixin, Declared):
    r"""Semi-supervised classifier for many samples with few labels.

    `fit` trains an embedder on all rows, without labels, and concatenates the embedding with
    blocks of training-free features. Each block is weighted by how well the classes predicted
    from it agree with those predicted from all blocks, on the rows of unknown class. A classifier
    is fitted to the rows whose class is known. If it predicts the same class for an unlabeled row
    as label spreading, the row gets this pseudo-label. Then the classifier is fitted again, with
    the pseudo-labels.

    Parameters
    ----------
    embedder : ContrastiveEmbedder or FrozenEstimator, default=None
        A copy is trained; a fitted embedder is used unchanged. Searches and cross-validation would
        train it again: for them, pass ``FrozenEstimator(embedder)`` from :mod:`sklearn.frozen`.
        None trains a ``ContrastiveEmbedder`` for about 720 steps, which is 30 epochs of 3,000
        samples; at least 10 and at most 400 epochs, also with ``PatchNet``.
    classifier : classifier, default=None
        A classifier of scikit-learn. Copies of it are fitted to the weighted blocks. None is
        ``LogisticRegression(max_iter=1000)``.
    blocks : list of transformers, default=None
        Transformers whose features are concatenated with the embedding. Clones are fitted to X; a
        ``FrozenEstimator`` is used as fitted. For columns in different units, pass
        ``make_pipeline(block, StandardScaler())``. [] uses the embedding alone. None is the
        default of the kind of data: ``Raw()`` for vectors of at most 4,096 numbers;
        ``PatchDictionary()`` for images, ``MiniRocket()`` for series and ``GraphProfile()`` for
        graphs, in a :class:`~skcontrast.ViewWhitening` with the augmentation of the embedder; and
        ``WeisfeilerLehman()`` for graphs. Nothing for custom kinds, for samples of several
        modalities, and with a :class:`~skcontrast.encoders.Pretrained` encoder. With groups, also
        a :class:`GroupWhitening` of vectors, or of the features of a frozen pretrained network:
        with a `Pretrained` encoder, ``GroupWhitening()`` in this list whitens the embedding, and
        its rows are normalised. It gets the groups, but not as a step of a Pipeline.
    use_labels : bool, default=False
        Whether the embedder is trained with the known labels, too. If its `loss` is None, it is
        ``SemiSupCon()``. Training takes a quarter longer and adds little to the gain of
        `pseudo_labels`.
    pseudo_labels : bool, default=True
        Whether the classifier is fitted again with pseudo-labels: its predictions for the
        unlabeled rows for which label spreading on the blocks predicts the same class. If the
        classifier takes ``sample_weight``, the pseudo-labels of a class together weigh at most
        half as much as its known labels and those spread in groups, each of weight 1, and less if
        many predictions disagree. If False, it is fitted to the known classes alone.
    random_state : int, RandomState instance or None, default=None
        Seeds the default blocks, and the embedder where its own `random_state` is None.
    verbose : int, default=0
        1 prints the weights of the blocks and the estimated accuracy, or why there is none; and is
        the `verbose` of the default embedder.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The known classes, sorted; without −1 and missing values.
    embedder_ : ContrastiveEmbedder
        The trained embedder, with the complete epochs if Ctrl-C ended its training. After an
        interrupted `fit`, pass it as `embedder` so that it is not trained again.
    blocks_ : dict of str to float
        The weight of each block, "embedding" first: its share of the squared norm of what
        `transform` returns. They sum to 1.
    transformers_ : list of transformers
        The fitted blocks, without the embedder.
    scaler_ : sklearn.preprocessing.StandardScaler
        Scales the concatenated columns, weights included. A column is divided by the root of the
        mean of its variance and the average variance of its block, and by a factor of its block.
    classifier_ : classifier
        The fitted classifier.
    accuracy_ : EstimatedAccuracy or None
        The accuracy on the unlabeled rows of `fit`, estimated without further labels: ``value``,
        and the interval ``low`` to ``high``. None with ``pseudo_labels=False``, if the embedder
        learns from y, if classes are imbalanced among the labels, with fewer than two labels per
        class on average, fewer than 100 unlabeled rows, or more than 500 labels; then
        cross-validate with `LabeledFolds`. It holds if each class has labels. It is too high where
        most predictions are wrong, and too low where classes are imbalanced, such as 1 : 4. Do not
        choose settings by it. With groups, it is the accuracy before labels spread in them. At
        most 100 copies of a LogisticRegression are fitted, or 20 of another classifier.
    temperature_ : float
        `predict_proba` divides log-probabilities by it: the mean of the largest probabilities on
        the unlabeled rows is then ``accuracy_.value``, before labels spread in groups. 1 without
        `accuracy_`, and if probabilities of 0, as of neighbours or trees, keep the mean from it.
    group_agreement_ : GroupAgreement or None
        With groups, how often two labels of a group agree beyond chance: ``value``, the lower end
        ``low`` of its interval, and ``n_pairs``, the number of such pairs.
    uncertainty_ : ndarray of shape (n_samples,) or None
        For the unlabeled rows of `fit`, in [0, 1]: errors are most frequent where it is large. NaN
        for labeled rows. None with ``pseudo_labels=False``, without unlabeled rows, after `load`,
        and if the classifier has no `predict_proba`. For new samples, use
        ``1 - predict_proba(X).max(axis=1)``.
    n_features_in_ : int
        As of the embedder; absent for graphs and series.
    feature_names_in_ : ndarray of str
        As of the embedder, if X has names that are all strings.

    See Also
    --------
    LabeledFolds : Cross-validation with rows of unknown class.
    ContrastiveEmbedder : The embedding alone.
    skcontrast.losses.SemiSupCon : The loss of an embedder that is trained with few labels.

    Notes
    -----
    Where two predictions agree, they are wrong less often than either, as in co-training [1]_. The
    weight of a block is κ / (1 − κ), with Cohen's κ, on rows of unknown class, between the
    predictions from this block and those from all blocks with equal weights. If all classes are
    known, all blocks have the same weight. The embedding of series counts a quarter of that.

    The estimate `accuracy_` is

    .. math:: \sigma\bigl(\operatorname{logit} a
        + \tfrac12 (\operatorname{logit} c - \operatorname{logit} b)\bigr)

    a is the share of unlabeled rows for which the classifier of the known classes alone and label
    spreading predict the same class; b is the same share of labeled rows, each predicted without
    its label, and c the mean accuracy of both there. Rows of the same group are left out together.
    The interval was wide enough in nine of ten cases on 17 data sets. The uncertainty is
    :math:`1 - \sqrt{pq}`, with the probabilities p of the classifier and q of label spreading at
    the predicted class, scaled so that the classes sum to 1. :ref:`few-labels` has figures.

    References
    ----------
    .. [1] A. Blum, T. Mitchell, "Combining Labeled and Unlabeled Data with Co-Training",
       COLT 1998.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from skcontrast import ContrastiveClassifier, ContrastiveEmbedder
    >>> X, y = load_digits().images, load_digits().target
    >>> few = np.where(np.arange(len(y)) < 50, y, -1)  # -1 where the class is unknown
    >>> model = ContrastiveClassifier(ContrastiveEmbedder(max_epochs=4), random_state=0)
    >>> print(f"{model.fit(X[:1300], few[:1300]).score(X[1300:], y[1300:]):.1f}")
    0.9
    """

    # checked with a better message
    embedder: ContrastiveEmbedder | FrozenEstimator | None = parameter(default=None)
    classifier: Any = parameter(default=None)
    blocks: Any = parameter([list, tuple, None], default=None)
    use_labels: bool = parameter(["boolean"], default=False)
    pseudo_labels: bool = parameter(["boolean"], default=True)
    random_state: int | np.random.RandomState | None = parameter(["random_state"], default=None)
    verbose: int = parameter(["verbose"], default=0)

    # Not in the signature of fit, for the reason that ContrastiveEmbedder has.
    __metadata_request__fit = dict.fromkeys(sorted(NAMES))

    @as_task
    @guarded()
    def fit(self, X: Any, y: ArrayLike, **metadata: Any) -> Self:
        """Train the embedder on all rows, and the classifier on the labeled rows.

        Parameters
        ----------
        X : array-like or Views
            Samples as :meth:`ContrastiveEmbedder.fit` takes them.
        y : array-like of shape (n_samples,)
            Classes, numbers or strings, at least two of them; −1, None, NaN, ``pandas.NA`` or
            masked where unknown.
        **metadata : dict
            ``groups`` (n_samples,): samples that share a class, such as those of one patient; −1
            for none. Label some samples of the same groups. Unlabeled samples get the class of
            most labels of their group, weighted by the probability that the classifier gives to
            it, if ``group_agreement_.low`` is at least .7: if 8 of 8 pairs of labels agree with
            ten equal classes, 16 of 16 with two. Groups are ignored if
            ``group_agreement_.value`` is below .7. The embedder gets them, if it is to be
            trained. With 40 groups or more, vectors and frozen pretrained networks get a
            :class:`GroupWhitening` as a further block. ``domains`` and ``descriptions`` for the
            embedder, as :meth:`ContrastiveEmbedder.fit` takes them; ``sample_weight``, array-like
            of shape (n_samples,), for the embedder and the classifier; labels of weight 0 are
            unknown. Their mean should be 1: small weights regularise the classifier. In a
            Pipeline, pass them with the name of the step or by metadata routing.

        Returns
        -------
        self : ContrastiveClassifier

        Raises
        ------
        ValueError
            If y has not one entry per sample, or holds fewer than two classes or numbers that are
            not integers; and as :meth:`ContrastiveEmbedder.fit` does.
        TypeError
            If `embedder` is no embedder or `classifier` no classifier, for an unknown keyword, or
            one that a fitted embedder or the classifier cannot use.
        """
        validate_parameters(self)
        codes, classes, weight = _encoded(y, metadata.get("sample_weight"))
        if not isinstance(X, tuple):  # its length is the number of modalities
            with naming("X", "samples, one for each entry of y"):
                check_consistent_length(X, codes)
        # With many rows, matrix products are faster in several threads.
        with on_threads() if len(codes) <= _MANY_ROWS else nullcontext():
            classifier = self._new_classifier(metadata)
            own = Labels(codes, classes, weight)
            agreement: GroupAgreement | None = None
            if (groups := metadata.get("groups")) is not None:
                groups = group_codes(groups, len(codes))
                agreement = agreement_of(codes, groups)
                if agreement.is_low:
                    metadata = {**metadata, "groups": None}
                else:
                    own = replace(own, groups=groups)
            with naming("blocks", "a list of transformers, such as [PatchDictionary()]"):
                given = None if self.blocks is None else [clone(one) for one in self.blocks]
            embedder = self._trained(X, codes.clip(-1), metadata)
            if given is None:
                given = default_blocks(embedder, resolve_seed(self.random_state), own.groups)
            blocks = WeightedBlocks(embedder, given)
            Z = blocks.fit_transform(X, classifier, own)
            own.fit(classifier, Z)
            trust, in_groups = Trust(), agreement is not None and agreement.is_known
            if self.pseudo_labels and (codes == -1).any():
                trust = refit(
                    classifier, blocks, Z, own, in_groups=in_groups, uses_y=self.use_labels
                )
            elif in_groups and (spread := spread_in_groups(classifier, Z, own)) is not own:
                spread.fit(classifier, Z)
        self.embedder_, self.scaler_, self.classifier_ = embedder, blocks.scaler, classifier
        self.transformers_, self.classes_ = blocks.transformers, classes
        self.blocks_ = dict(zip(blocks.names, blocks.shares.tolist(), strict=True))
        self.accuracy_, self.temperature_ = trust.accuracy, trust.temperature
        self.uncertainty_, self.group_agreement_ = trust.uncertainty, agreement
        if self.verbose:
            if agreement is not None:
                say(f"Agreement in groups beyond chance: {agreement}")
            say("Blocks: " + ", ".join(f"{name} {w:.2f}" for name, w in self.blocks_.items()))
            estimate = trust.accuracy or f"not estimated: {trust.reason}"
            say(f"Accuracy on the unlabeled samples: {estimate}")
        return self

    @property
    def _weighted_blocks(self) -> WeightedBlocks:
        """The fitted embedder, transformers and scaler as one transformer."""
        return WeightedBlocks(self.embedder_, self.transformers_, self.scaler_)

    def _new_classifier(self, metadata: dict[str, Any]) -> Any:
        """Return an unfitted classifier; raise TypeError if it is invalid or takes no weights."""
        if self.classifier is None:
            return LogisticRegression(max_iter=1000)
        is_class = isinstance(self.classifier, type)
        if isinstance(thawed(self.classifier), ContrastiveEmbedder):
            owner = type(self).__name__
            raise TypeError(
                f"The 'classifier' parameter of {owner} got an embedder. The embedder comes "
                f"first: write {owner}(embedder, classifier)."
            )
        has_tags = not is_class and hasattr(self.classifier, "__sklearn_tags__")
        if not (has_tags and is_classifier(self.classifier)):
            advice = f" Write {self.classifier.__name__}()." if is_class else ""
            raise TypeError(
                "The 'classifier' parameter of ContrastiveClassifier must be an instance of a "
                f"classifier of scikit-learn, got {self.classifier!r}.{advice}"
            )
        takes_weight = has_fit_parameter(self.classifier, "sample_weight")
        if metadata.get("sample_weight") is not None and not takes_weight:
            raise TypeError(f"{self.classifier!r} takes no sample_weight.")
        return clone(self.classifier)

    def _trained(self, X: Any, codes: NDArray, metadata: dict[str, Any]) -> ContrastiveEmbedder:
        """Return the embedder that was passed if it is fitted, otherwise a trained copy."""
        embedder: Any = self.embedder
        is_frozen, embedder = isinstance(embedder, FrozenEstimator), thawed(embedder)
        owner = type(self).__name__
        if embedder is None:
            n_epochs = epochs_of(_STEPS, math.ceil(len(codes) / 128), *_EPOCHS)
            embedder = ContrastiveEmbedder(max_epochs=n_epochs, verbose=self.verbose)
        has_tags = hasattr(embedder, "__sklearn_tags__") and not isinstance(embedder, type)
        if has_tags and is_classifier(embedder) and not isinstance(embedder, Pipeline):
            raise TypeError(
                f"The 'embedder' parameter of {owner} got a classifier, {embedder!r}. The "
                f"embedder comes first: write {owner}(embedder, classifier)."
            )
        check_component(embedder, ContrastiveEmbedder, owner=owner, parameter="embedder")
        if is_frozen or embedder.__sklearn_is_fitted__():
            check_is_fitted(embedder)
            passed = {name for name, value in metadata.items() if value is not None}
            if unused := sorted(passed - {"sample_weight", "groups"}):
                takes = "with a fitted embedder it takes only groups and sample_weight"
                raise TypeError(f"fit got {unused[0]!r}; {takes}.")
            return embedder
        embedder = clone(embedder)
        if embedder.random_state is None:
            embedder.random_state = self.random_state
        if self.use_labels and embedder.loss is None:
            embedder.loss = SemiSupCon()
        if not self.use_labels and getattr(embedder.loss, "requires_y", False):
            raise ValueError(
                f"The loss {type(embedder.loss).__name__} of the embedder learns from y: pass "
                "ContrastiveClassifier(..., use_labels=True), which passes it the known classes."
            )
        try:
            with subtask(self, embedder):
                return embedder.fit(X, codes if self.use_labels else None, **metadata)
        finally:
            # Also after an interrupt. Attributes that were fitted to another embedder are removed.
            if embedder.__sklearn_is_fitted__():
                for name in [name for name in vars(self) if name.endswith("_")]:
                    delattr(self, name)
                self.embedder_ = embedder

    @guarded()
    def transform(self, X: Any) -> NDArray:
        """Return the input of the classifier: the embedding and other blocks, scaled and weighted.

        Parameters
        ----------
        X : array-like, Dataset, Modalities or list of graphs
            Samples of the shape seen in `fit`.

        Returns
        -------
        Z : ndarray of shape (n_samples, n_components)
        """
        check_is_fitted(self)
        return self._weighted_blocks.transform(X)

    @guarded()
    def predict(self, X: Any, *, groups: ArrayLike | None = None) -> NDArray:
        """Predict classes, never −1.

        Parameters
        ----------
        X : array-like, Dataset, Modalities or list of graphs
            Samples of the shape seen in `fit`.
        groups : array-like of shape (n_samples,), default=None
            As in `predict_proba`: the samples of a group get the same class. The classifier needs
            this method.

        Returns
        -------
        y : ndarray of shape (n_samples,)
        """
        if groups is not None and not hasattr(self, "predict_proba"):
            raise TypeError(
                f"groups need a classifier with predict_proba, got {self.classifier!r}: omit "
                "groups, or pass classifier=None."
            )
        if groups is not None:
            best = self.predict_proba(X, groups=groups).argmax(axis=1)
            return self.classes_[best]
        Z = np.asarray(self.transform(X))
        return predict_in_batches(self.classifier_, Z)

    @_if_classifier_has("predict_proba")
    @guarded()
    def predict_proba(self, X: Any, *, groups: ArrayLike | None = None) -> NDArray:
        """Predict the probability of each class; needs a classifier with this method.

        Parameters
        ----------
        X : array-like, Dataset, Modalities or list of graphs
            Samples of the shape seen in `fit`.
        groups : array-like of shape (n_samples,), default=None
            Groups of X whose samples have the same class, as in `fit`; −1 for none. The
            probabilities are multiplied over each group, as if its samples were independent, so
            that they are too close to 0 and 1.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            In the order of `classes_`.

        Raises
        ------
        ValueError
            If `groups` are passed, and those of `fit` had few labeled pairs, or labels that
            disagree.
        """
        Z = np.asarray(self.transform(X))
        probabilities = at_temperature(self.classifier_.predict_proba(Z), self.temperature_)
        if groups is None:
            return probabilities
        known = self.group_agreement_
        if known is None or not known.is_known:
            raise ValueError(
                "groups must be None, because fit has not shown that groups share a class, got "
                f"group_agreement_={known}. Pass fit(X, y, groups=...) with more labeled samples "
                "of the same groups."
            )
        return pooled(probabilities, group_codes(groups, len(Z)))

    @_if_classifier_has("decision_function")
    @guarded()
    def decision_function(self, X: Any) -> NDArray:
        """Return the classifier's scores of the classes; needs a classifier with this method.

        Parameters
        ----------
        X : array-like, Dataset, Modalities or list of graphs
            Samples of the shape seen in `fit`.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            With two classes, the scores of the second.
        """
        Z = np.asarray(self.transform(X))
        return self.classifier_.decision_function(Z)

    @guarded()
    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy on the samples whose class is known.

        Parameters
        ----------
        X : array-like, Dataset, Modalities or list of graphs
            Samples of the shape seen in `fit`.
        y : array-like of shape (n_samples,)
            Their classes, as in `fit`; samples of unknown class do not count.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.

        Returns
        -------
        score : float
            In [0, 1].
        """
        values, is_known = known_classes(y, needed_by="ContrastiveClassifier")
        predicted = self.predict(X)
        with naming("y", f"{len(predicted)} classes, one for each sample"):
            check_consistent_length(predicted, is_known)
        weight = _checked_sample_weight(sample_weight, is_known)
        weight = None if weight is None else weight[is_known]
        with naming("y", "classes, numbers or strings as in fit"):
            return accuracy_score(values, predicted[is_known], sample_weight=weight)

    @property
    def n_features_in_(self) -> int:
        """Number of features of a sample."""
        return self.embedder_.n_features_in_

    @property
    def feature_names_in_(self) -> NDArray[np.str_]:
        """Names of the features."""
        return self.embedder_.feature_names_in_

    def get_feature_names_out(
        self, input_features: ArrayLike | None = None
    ) -> NDArray[np.object_]:
        """Return the names of the columns of `transform`.

        The columns of blocks other than the embedding have the block's name as a prefix, as in
        ``Raw__age``.

        Parameters
        ----------
        input_features : array-like of shape (n_features,), default=None
            Names of the columns of X, if X of `fit` had none.

        Returns
        -------
        names : ndarray of shape (n_components,), dtype object
        """
        check_is_fitted(self)
        return self._weighted_blocks.get_feature_names_out(input_features)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "classifier_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        embedder = ContrastiveEmbedder() if self.embedder is None else self.embedder
        tags.input_tags = get_tags(embedder).input_tags
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


def _encoded(y: ArrayLike, weight: Any) -> tuple[NDArray[np.int64], NDArray, NDArray | None]:
    """Return the position of each entry of y among the classes, these, and checked weights.

    The position of unknown entries is −1, that of others with weight 0 is −2.
    """
    values, is_known = known_classes(y, needed_by="ContrastiveClassifier")
    codes = np.where(is_known, -2, -1)
    if (weight := _checked_sample_weight(weight, is_known)) is not None:
        values, is_known = values[weight[is_known] > 0], is_known & (weight > 0)
    classes, known = np.unique(values, return_inverse=True)
    if len(classes) < 2:
        of = "" if weight is None else " with sample_weight > 0"
        raise ValueError(
            f"y must hold at least two known classes{of}, got 1 class. -1 marks samples of "
            "unknown class: if it is a class, rename it, np.where(y == -1, 0, y)."
        )
    codes[is_known] = known
    return codes, classes, weight


def _checked_sample_weight(sample_weight: Any, is_known: NDArray[np.bool_]) -> NDArray | None:
    """Return checked weights of all samples, or None."""
    weights = checked_weights(sample_weight, len(is_known), np.float64)
    if weights is not None and not weights[is_known].any():
        raise ValueError("sample_weight must not be 0 for all samples whose class is known.")
    return weights
