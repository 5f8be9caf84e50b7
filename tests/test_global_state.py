"""A public call leaves everything that belongs to the whole process as it was."""

import multiprocessing
import os
import pickle
import random
import signal
import sys
import threading
import warnings
from functools import partial

import matplotlib
import numpy as np
import pytest
import sklearn
import torch

from skcontrast import encoders
from tests.bad_values import VECTORS
from tests.doors import doors, fitted, tiny

# A download needs a network of another kind.
LONG = ("download_if_missing",)
OF_EMBEDDER = ("transform", "score")


def state():
    """Return by name what a program and its libraries share."""
    handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
    return {
        "numpy's generator": pickle.dumps(np.random.get_state()),  # noqa: NPY002
        "Python's generator": random.getstate(),
        "torch's generator": torch.get_rng_state().tolist(),
        "seeds that wait for CUDA": vars(torch.cuda._lazy_seed_tracker).copy(),
        "calls that wait for CUDA": len(torch.cuda._queued_calls),
        "threads": {thread.ident for thread in threading.enumerate()},
        "processes": len(multiprocessing.active_children()),
        "threads of torch": torch.get_num_threads(),
        "dtype and device": (torch.get_default_dtype(), torch.get_default_device()),
        "gradients": (torch.is_grad_enabled(), torch.is_inference_mode_enabled()),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "signals": handlers,
        "warnings": warnings.filters.copy(),
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "errors of numpy": np.geterr(),
        "hooks": (sys.excepthook, sys.getrecursionlimit(), sys.getswitchinterval()),
        "scikit-learn": sklearn.get_config(),
        "matplotlib": dict(matplotlib.rcParams),
    }


# What needs the network, or a value that the table of doors does not have.
NOT_CALLED = (
    "fit of",
    "fitted",
    "contrastive_loss of",
    "ContrastiveEmbedder.set",
)
CALLS = {
    door.name: partial(door.use, **door.valid)
    for door in doors()
    if door.argument not in LONG and not door.name.startswith(NOT_CALLED)
}
CALLS["a fit with dropout"] = partial(tiny(encoder=encoders.MLP(4, dropout=0.5)).fit, VECTORS)
CALLS |= {f"embedder.{name}": partial(getattr(fitted(), name), VECTORS) for name in OF_EMBEDDER}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_a_call_leaves_what_belongs_to_the_process_as_it_was(name):
    CALLS[name]()  # what is imported now may set something, once
    before = state()
    CALLS[name]()
    changed = {key for key, value in state().items() if value != before[key]}
    if name.partition(".")[0] in encoders.__all__:  # weights are drawn as torch.nn draws them
        changed.discard("torch's generator")
    assert not changed
