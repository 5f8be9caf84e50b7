"""Fit a network: from validated parameters and X to the state of a fitted embedder."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from .._data._metadata import check_descriptions
from .._model._model import Model, continued_model, keeps_pretrained, new_model
from .._model._samples import TrainingData, read_training_data
from .._model._settings import Settings
from .._runtime import on_threads, seeded_rng
from .._warnings import say, warn
from ._checkpoint import (
    EpochState,
    identity_of,
    open_state,
    resume,
    states_to_resume,
    without_weights,
)
from ._net import ContrastiveNet, check_callbacks, plain_callbacks
from ._processes import Processes, checksum_in_memory, process_group
from ._watch import Epochs, check_trained_embeddings, describe_fit

# Warn if the replaced fit had at least this many times the samples.
_FEWER = 10


class Trained(NamedTuple):
    """What a fit returns.

    Attributes
    ----------
    model : Model
        The trained model.
    states : dict or None, default=None
        The states of the optimizer and of the framework, from which a later fit resumes.
    interrupted : bool, default=False
        Whether the user has interrupted the fit.
    """

    model: Model
    states: dict[str, Any] | None = None
    interrupted: bool = False


def fit_network(
    settings: Settings,
    X: Any,
    y: Any,
    metadata: dict[str, Any],
    estimator: Any,
    past: Model | None = None,
    states: dict[str, Any] | None = None,
) -> Trained:
    """Train a network on X.

    Parameters
    ----------
    settings : Settings
        The user's parameters, validated.
    X, y, metadata : array-like or Views, array-like or None, dict
        The arguments of `fit`.
    estimator : ContrastiveEmbedder
        Named in messages about X; reports to scikit-learn's callbacks.
    past : Model or None, default=None
        The model to continue with; None starts with a new network.
    states : dict or None, default=None
        States of an earlier fit.

    Returns
    -------
    trained : Trained

    Raises
    ------
    KeyboardInterrupt
        If the user interrupts the fit before its first epoch is finished.
    """
    callbacks = plain_callbacks(settings.callbacks)
    check_callbacks(callbacks, settings.lr_schedule, settings.owner)
    processes = process_group(settings.device)
    data = read_training_data(settings, X, y, metadata, estimator, past)
    settings = settings.for_samples(len(data.X), data.schema)
    n_samples = max(len(data.X), 0 if past is None else past.n_samples)
    if past is None:
        _warn_of_smaller_fit(n_samples, getattr(estimator, "_model", None))
    epoch_state = _open_state(settings, data, past, processes)
    settings = replace(settings, seed=epoch_state.seed)
    model, loaded = _model(settings, data, past), epoch_state.loaded or {}
    model = replace(model, n_threads=loaded.get("n_threads", model.n_threads))
    threads = on_threads(model.n_threads, settings.device)
    if keeps_pretrained(model.network, settings):
        if callbacks or getattr(estimator, "_skl_callbacks", []):
            warn(
                f"The callbacks of {settings.owner} do not run, because the pretrained network "
                "stays frozen, see adaptation_. Pretrained(adapt=True) trains it."
            )
        if settings.verbose:
            with threads:
                say(describe_fit(settings, model, len(data.X)))
        return Trained(replace(model, network=model.network.eval(), n_samples=n_samples))
    with threads, processes.synced(model.network, settings.device):
        estimates = {} if past is None else past.estimates
        # A framework's own layers get a different seed than the network.
        with seeded_rng(settings.seed + 1, settings.device):
            net = ContrastiveNet(
                settings, model, data, epoch_state, processes, estimator, estimates
            ).initialize()
            if past is not None:
                resume(net, past, states or {}, data)
        processes.copy_from_first(net.module_, net.criterion_)
        if hasattr(estimator, "set_callbacks") and not settings.one_epoch:
            # ScoringMonitor needs a y: -1 is an unknown class.
            y = np.full(len(data.X), -1) if y is None else y
            net.callbacks_.append(("epochs", Epochs(X, y)))
        train(net)
        check_trained_embeddings(net)
    trained = replace(
        model,
        network=net.module_.eval(),
        history=list(net.history),
        estimates=net.auto.values,
        n_samples=n_samples,
    )
    states = states_to_resume(net, data) if settings.warm_start or settings.one_epoch else None
    return Trained(trained, states, net.interrupted_)


def _warn_of_smaller_fit(n_samples: int, replaced: Model | None) -> None:
    """Warn if a fit to few samples replaces a fit to many, as in a Pipeline with few labels."""
    if replaced is not None and _FEWER * n_samples <= replaced.n_samples:
        warn(
            f"This fit on {n_samples:,} samples replaces the fit on {replaced.n_samples:,}. Pass "
            "FrozenEstimator(embedder) to keep it, or set warm_start=True to continue training."
        )


def _open_state(
    settings: Settings, data: TrainingData, past: Model | None, processes: Processes
) -> EpochState:
    """Return the epoch state, read from the checkpoint if there is one, by the first process.

    Raises
    ------
    ValueError
        If the processes have different data or parameters.
    """
    has_file = settings.checkpoint is not None and not settings.one_epoch
    identity = identity_of(settings, data, past) if has_file or processes.size > 1 else None
    if identity is not None and processes.size > 1:
        # A later call may change these, but processes must have the same.
        process_identity = {
            "all of X": checksum_in_memory(data.schema.kind.arrays(data.X)),
            "max_epochs": str(settings.max_epochs),
            "the method": "partial_fit" if settings.one_epoch else "fit",
        }
        # The weights of the encoder will be those of the first process.
        encoder = {"encoder": without_weights(identity["encoder"])}
        processes.check_same(identity | process_identity | encoder)
    # If there is a checkpoint of the same fit, its seed replaces the drawn one.
    n_before = 0 if past is None else len(past.history)
    checkpoint_identity = identity if has_file else None
    state = processes.value_of_first(lambda: open_state(settings, checkpoint_identity, n_before))
    state.path = None if processes.rank else state.path
    return state


def _model(settings: Settings, data: TrainingData, past: Model | None) -> Model:
    """Return the model of a new or continued fit, not trained yet."""
    if past is None:
        # Labels and pairs are worth adapting a pretrained network to.
        known, relations = data.metadata, None
        if settings.loss.requires_y and bool((known["labels"] >= 0).any()):
            relations = "labels"
        elif settings.same_group != "neutral" and "groups" in known:
            relations = "groups" if bool((known["groups"] >= 0).any()) else None
        model = new_model(settings, data.X, data.schema, data.chain, relations)
    else:
        model = continued_model(settings, data.X, data.chain, past)
    width = model.widths.projection // model.widths.n_modalities
    check_descriptions(data.metadata.get("descriptions"), width)
    return model


def train(net: ContrastiveNet) -> None:
    """Train, and remove an unfinished epoch from the history.

    Raises
    ------
    KeyboardInterrupt
        If the user interrupts before any epoch of this fit is finished.
    """
    n_before = len(net.history)
    try:
        net.partial_fit(net.sampler_)
    except KeyboardInterrupt:  # raised in callbacks at the beginning or the end
        net.interrupted_ = True
    for row in reversed(net.history):
        if row.pop("batches", None) is None:  # the last row of an earlier fit
            break
        row.update({k: float(v) for k, v in row.items() if isinstance(v, np.floating)})
    if len(net.history) and "train_loss" not in net.history[-1]:
        del net.history[-1]
    if net.interrupted_ and len(net.history) == n_before:
        raise KeyboardInterrupt
