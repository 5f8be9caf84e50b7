"""Pieces of gpu.py: trainings on CIFAR-10, each of which resumes where the last call stopped."""

from __future__ import annotations

import signal
from pathlib import Path
from time import perf_counter

import numpy as np
from skorch.callbacks import Callback

from benchmarks._image_sets import load_images
from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import SimCLRAugmentation
from skcontrast.encoders import ResNet
from skcontrast.frameworks import CMC, MoCo
from skcontrast.losses import (
    BCL,
    DCL,
    HCL,
    InfoNCE,
    PositiveDebiased,
    Ring,
    SoftSupCon,
    Supervised,
)
from skcontrast.metrics import knn_accuracy, linear_probe
from skcontrast.similarity import Cosine

# In the order of their worth, should time run out. The prior is that of ten classes.
TRAININGS = {
    "InfoNCE": {},
    "MoCo": {"framework": MoCo(momentum=0.99, symmetric=True)},
    "DCL": {"loss": DCL(tau_plus=0.1)},
    "SoftSupCon": {"loss": SoftSupCon(tau_plus=0.1)},
    "HCL": {"loss": HCL(tau_plus=0.1, beta=1.0)},
    "CMC": {"framework": CMC()},
    "BCL": {"loss": BCL.paper(tau_plus=0.1)},
    "Supervised (all labels)": {"loss": Supervised()},
}
SIDE_BY_SIDE = {
    "InfoNCE": InfoNCE(),
    "DCL": DCL(tau_plus=0.1),
    "HCL": HCL(tau_plus=0.1, beta=0.5),
    "BCL": BCL(alpha=0.9, tau_plus=0.1),
    "PositiveDebiased": PositiveDebiased(tau_plus=0.1),
    "Ring": Ring(outer=1.0, inner=0.1),
    "SoftSupCon": SoftSupCon(tau_plus=0.1),
}
# Numbers of negatives of the papers' tables, 2(B - 1), the ends and the middle first.
NEGATIVES = (510, 126, 30, 254, 62)
JUDGING = 60  # seconds


class Deadline(Callback):
    """Interrupts a fit at the end of an epoch when its time is over."""

    end = float("inf")  # of the class: what a callback has itself is a part of its fit's state

    def on_epoch_end(self, net, **kwargs):
        """Look at the clock."""
        if perf_counter() > self.end:
            signal.raise_signal(signal.SIGINT)


def images(args):
    """Return images and classes to train and to test on, random ones for a rehearsal."""
    if args.toy:
        rng = np.random.default_rng(0)
        X, y = rng.integers(0, 256, (128, 3, 32, 32), dtype=np.uint8), np.arange(128) % 10
        return X, y, X[:64], y[:64]
    return load_images("CIFAR-10")


def embedder(campaign, name, epochs, batch, **choices):
    """Return the embedder of a training, which resumes by its name."""
    args = campaign.args
    return ContrastiveEmbedder(
        encoder=ResNet(width=campaign.sized(64, 4)),
        augmentation=SimCLRAugmentation(),
        similarity=Cosine(temperature=args.temperature),
        projection_dim=128,
        batch_size=batch,
        max_epochs=epochs,
        optimizer="sgd",
        lr=args.lr * batch / 256,
        weight_decay=5e-4,
        device=campaign.device,
        callbacks=[Deadline()],
        checkpoint=Path(args.state) / name.replace(" ", "_"),
        random_state=0,
    ).set_params(**choices)


def trained(campaign, data, fitted):
    """Return the figures of a training, or None if time is over before it is finished."""
    X, y, X_test, y_test = data
    Deadline.end = campaign.end - campaign.sized(JUDGING, 0)
    try:
        fitted.fit(X, y)
    except KeyboardInterrupt:
        if perf_counter() < Deadline.end:
            raise
        return None
    H, H_test = fitted.transform(X), fitted.transform(X_test)
    minutes = sum(fitted.history_[:, "dur"]) / 60
    return {
        "20-NN": knn_accuracy(H, y, H_test, y_test),
        "200-NN": knn_accuracy(H, y, H_test, y_test, n_neighbors=min(200, len(H))),
        "linear": linear_probe(H, y, H_test, y_test),
        "last loss": fitted.history_[-1, "train_loss"],
        "min": minutes,
        "images/s": len(X) * len(fitted.history_) / minutes / 60,
    }


def train(campaign):
    """Trainings of full length."""
    data, args = images(campaign.args), campaign.args
    epochs, batch = campaign.sized((args.epochs, args.batch), (2, 32))
    with campaign.table("train", labels=2) as table:
        for name in args.runs:
            fit = embedder(campaign, name, epochs, batch, **TRAININGS[name])
            labels = {"training": name, "epochs": epochs}
            table.row(labels, trained, campaign, data, fit, needs=campaign.sized(JUDGING, 0))


def negatives(campaign):
    """Compare losses by the number of negatives, in short trainings of fewer images."""
    args = campaign.args
    X, y, *test = images(args)
    epochs, n = campaign.sized((args.short_epochs, args.short_images), (1, 64))
    data = X[:n], y[:n], *test
    with campaign.table("negatives", labels=3) as table:
        for number in campaign.sized(NEGATIVES, (30,)):
            for name, loss in SIDE_BY_SIDE.items():
                fit = embedder(campaign, f"{name} {number}", epochs, number // 2 + 1, loss=loss)
                labels = {"N": number, "loss": name, "images": n, "epochs": epochs}
                needs = campaign.sized(JUDGING, 0)
                table.row(labels, trained, campaign, data, fit, needs=needs)
