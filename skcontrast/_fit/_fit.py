"""Fit a network: from validated parameters and X to the state of a fitted embedder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from skorch.callbacks import PrintLog

from .._data._batches import BatchSampler, Source, is_streamed
from .._data._metadata import check_descriptions
from .._network._inference import in_bf16, trains_in_bf16
from .._runtime import seeded_rng
from .._warnings import say, warn
from ..callbacks import Evaluation
from ..frameworks import FitContext
from ..kinds._recognise import is_custom, naming_kind
from ._checkpoint import EpochState, identity_of, open_state, resume, states_to_resume
from ._estimated_parameters import AutoParameters
from ._label_spreading import LabelSpreader
from ._net import ContrastiveNet
from ._processes import Processes, checksum_in_memory, process_group
from ._samples import TrainingData, read_training_data
from ._settings import Settings, plain_callbacks
from ._setup import Fitted, continued_setup, keeps_pretrained, new_setup
from ._watch import Epochs, ProgressBar, check_trained_embeddings, describe_fit

# Warn if the replaced fit had at least this many times the samples.
_FEWER = 10


def fit_network(
    settings: Settings, X: Any, y: Any, metadata: dict[str, Any], past: Fitted | None, owner: Any
) -> Fitted:
    """Train a network on X.

    Parameters
    ----------
    settings : Settings
        The user's parameters, validated.
    X, y, metadata : array-like or Views, array-like or None, dict
        The arguments of `fit`.
    past : Fitted or None
        The fit to continue; None starts with a new network.
    owner : ContrastiveEmbedder
        Named in messages about X; reports to scikit-learn's callbacks.

    Returns
    -------
    fitted : Fitted

    Raises
    ------
    KeyboardInterrupt
        If the user interrupts the fit before its first epoch is finished.
    """
    processes = process_group(settings.device)
    data = read_training_data(settings, X, y, metadata, owner, past)
    settings = settings.for_samples(len(data.X), data.schema)
    n_samples = max(len(data.X), 0 if past is None else past.n_samples)
    if past is None:
        _warn_of_loss(n_samples, getattr(owner, "_fitted", None))
    epoch_state = _open_state(settings, data, past, processes)
    # The caller may have disabled gradients.
    with torch.inference_mode(False), torch.enable_grad():
        settings = replace(settings, seed=epoch_state.seed)
        setup = _setup(settings, data, past)
        if keeps_pretrained(setup.network, settings.output):
            if settings.verbose:
                say(describe_fit(settings, setup, len(data.X)))
            return replace(setup, network=setup.network.eval(), n_samples=n_samples)
        with processes.synced(setup.network, settings.device):
            net = _net(settings, setup, data, past, epoch_state, processes, owner)
            processes.copy_from_first(net.module_, net.criterion_)
            if hasattr(owner, "set_callbacks") and not settings.one_epoch:
                # ScoringMonitor needs a y: -1 is an unknown class.
                y = np.full(len(data.X), -1) if y is None else y
                net.callbacks_.append(("epochs", Epochs(X, y)))
            train(net)
        check_trained_embeddings(net)
        is_continued = settings.warm_start or settings.one_epoch
        return replace(
            setup,
            network=net.module_.eval(),
            history=net.history,
            estimates=net.auto.values,
            n_samples=n_samples,
            interrupted=net.interrupted_,
            **(states_to_resume(net, data) if is_continued else {}),
        )


def _warn_of_loss(n_samples: int, replaced: Fitted | None) -> None:
    """Warn if a fit to few samples replaces one to many, as in a Pipeline with few labels."""
    if replaced is not None and _FEWER * n_samples <= replaced.n_samples:
        warn(
            f"This fit on {n_samples:,} samples replaces the fit on {replaced.n_samples:,}. Pass "
            "FrozenEstimator(embedder) to keep it, or set warm_start=True to continue training."
        )


def _open_state(
    settings: Settings, data: TrainingData, past: Fitted | None, processes: Processes
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
            "all of X": checksum_in_memory(data.schema.kind._arrays(data.X)),
            "max_epochs": str(settings.max_epochs),
            "the method": "partial_fit" if settings.one_epoch else "fit",
        }
        processes.check_same(identity | process_identity)
    # If there is a checkpoint of the same fit, its seed replaces the drawn one.
    n_before, checkpoint_identity = (
        0 if past is None else past.n_epochs,
        identity if has_file else None,
    )
    state = processes.value_of_first(lambda: open_state(settings, checkpoint_identity, n_before))
    state.path = None if processes.rank else state.path
    return state


def _setup(settings: Settings, data: TrainingData, past: Fitted | None) -> Fitted:
    """Return the setup of a new or continued fit."""
    if past is None:
        setup = new_setup(settings, data.X, data.schema, data.chain)
    else:
        setup = continued_setup(settings, data.X, data.chain, past)
    width = setup.widths.projection // setup.widths.n_parts
    check_descriptions(data.metadata.get("descriptions"), width)
    return setup


def _net(
    settings: Settings,
    setup: Fitted,
    data: TrainingData,
    past: Fitted | None,
    epoch_state: EpochState,
    processes: Processes,
    owner: Any,
) -> ContrastiveNet:
    """Return a net that is ready to train, in the state of the earlier fit if there is one."""
    labels = data.metadata.get("labels")
    spreader = LabelSpreader(settings.loss.label_spreading(), labels)
    sampler = _sampler(settings, setup, data, spreader, processes)
    context = _context(settings, setup, data, processes)
    auto = AutoParameters(settings.loss, labels, None if past is None else past.estimates)
    # A framework's own layers get a different seed than the network.
    with seeded_rng(settings.seed + 1, settings.device):
        net = ContrastiveNet(
            settings,
            setup,
            context,
            sampler,
            auto,
            spreader,
            epoch_state,
            processes,
            owner,
            callbacks=_callbacks(settings),
            # PrintLog prints only if the net is verbose.
            verbose=not processes.rank
            and sum(isinstance(c, PrintLog) for c in plain_callbacks(settings.callbacks)),
        ).initialize()
        if past is not None:
            resume(net, past, data)
    return net


def _sampler(
    settings: Settings,
    setup: Fitted,
    data: TrainingData,
    spreader: LabelSpreader,
    processes: Processes,
) -> BatchSampler:
    """Return a sampler of random batches, with samples in memory or streamed."""
    X, to_tensor, device = data.X, setup.scaler.to_tensor, settings.device
    # X is one tensor on the device, or is read in batches during training.
    if is_streamed(X, setup.schema.kind._nbytes(X), device, settings.memory_budget):
        source = Source(X, device, to_tensor, settings.n_workers)
    else:
        source = Source(to_tensor(X, device), device)
    are_pairs = settings.same_group == "positive"
    return BatchSampler(
        source,
        settings.batch_size,
        spreader.labeled,
        spreader.labeled_share,
        pairs=data.metadata.get("groups") if are_pairs else None,
        share=processes.share,
        **data.metadata,
    )


def _context(
    settings: Settings, setup: Fitted, data: TrainingData, processes: Processes
) -> FitContext:
    """Return the fit's context for the framework's session."""
    kind, device, widths = setup.schema.kind, settings.device, setup.widths
    bf16 = trains_in_bf16(settings.precision, kind, settings.encoder, device)

    def prepare(module: Callable) -> Callable:
        run = partial(in_bf16, module) if bf16 else module
        return processes.prepare(run, settings.framework)

    module, groups = setup.network.to(device), data.metadata.get("groups")
    network = prepare(module)
    # The width counts projections and concentrations of all modalities.
    return FitContext(
        module=module,
        network=naming_kind(kind)(network) if is_custom(kind) else network,
        prepare=prepare,
        n_samples=len(data.X),
        n_views=settings.framework.n_views or settings.n_views,
        batch_size=settings.batch_size,
        width=widths.projection + widths.n_parts * settings.similarity.n_extra,
        device=device,
        generator=torch.Generator(device=device),
        groups=None if groups is None else groups.to(device),
        n_parts=widths.n_parts,
    )


def _callbacks(settings: Settings) -> list[Any]:
    """Return the callbacks; evaluations come first, because others may monitor their scores."""
    callbacks = sorted(
        settings.callbacks,
        key=lambda item: not isinstance(plain_callbacks([item])[0], Evaluation),
    )
    return [*callbacks, *([ProgressBar()] if settings.verbose else [])]


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
