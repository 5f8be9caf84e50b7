"""A public call leaves everything that belongs to the whole process as it was."""

import multiprocessing
import os
import pickle
import random
import signal
import sys
import threading
import warnings

import matplotlib
import numpy as np
import pytest
import sklearn
import torch

import skcontrast
from skcontrast import ContrastiveClassifier, contrastive_loss
from skcontrast.augmentation import FunctionAugmentation, GaussianNoise, image_symmetries
from skcontrast.encoders import MLP
from skcontrast.estimation import project_views
from skcontrast.features import MiniRocket, PatchDictionary
from skcontrast.frameworks import MoCo
from skcontrast.metrics import compare_with_baselines, linear_probe
from skcontrast.plotting import EmbeddingDisplay, ViewsDisplay
from tests.common import IMAGES, X_DIGITS, random_views, small

X, Y = X_DIGITS[:60], np.arange(60) % 3
SOME_IMAGES = IMAGES[:40]


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


FITTED = small().fit(X)
# What trains, draws, computes in threads or reads and writes files.
CALLS = {
    "fit": lambda folder: small(callbacks=[]).fit(X),
    "fit with dropout": lambda folder: small(encoder=MLP(4, dropout=0.5)).fit(X),
    "fit with a memory": lambda folder: small(framework=MoCo(queue_size=20)).fit(X),
    "fit with a checkpoint": lambda folder: small(checkpoint=folder).fit(X),
    "fit of images": lambda folder: small(encoder=None).fit(SOME_IMAGES),
    "partial_fit": lambda folder: small().partial_fit(X),
    "transform": lambda folder: FITTED.transform(X),
    "score": lambda folder: FITTED.score(X),
    "views": lambda folder: FITTED.views(X),
    "classifier": lambda folder: ContrastiveClassifier(small()).fit(X, Y).predict(X),
    "loss": lambda folder: contrastive_loss(*random_views(8, 5)),
    "augment": lambda folder: GaussianNoise().fit(X).augment(torch.as_tensor(X)),
    "function": lambda folder: small(augmentation=FunctionAugmentation(torch.rand_like)).fit(X),
    "symmetries": lambda folder: image_symmetries(SOME_IMAGES),
    "project_views": lambda folder: project_views(FITTED, X),
    "features": lambda folder: PatchDictionary(n_patches=4).fit_transform(SOME_IMAGES),
    "features of series": lambda folder: MiniRocket().fit_transform(X[:, None]),
    "probe": lambda folder: linear_probe(X, Y),
    "baselines": lambda folder: compare_with_baselines(FITTED, X, Y, n_labels=1),
    "plot": lambda folder: EmbeddingDisplay.from_estimator(FITTED, X, Y),
    "plot of views": lambda folder: ViewsDisplay.from_estimator(small(), SOME_IMAGES),
    "save": lambda folder: skcontrast.save(FITTED, folder / "embedder.safetensors"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_a_call_leaves_what_belongs_to_the_process_as_it_was(name, tmp_path):
    CALLS[name](tmp_path)  # what is imported now may set something, once
    before = state()
    CALLS[name](tmp_path)
    assert not {key for key, value in state().items() if value != before[key]}
