"""Two ideas from other papers: a frozen guide that names false negatives, and weights by score.

    python -m benchmarks.studies.guides --data-home FOLDER

``Guided`` leaves out the candidates that a frozen embedding finds closer to the anchor than its
positive, as GISTEmbed does for sentences. ``ADNCE`` weighs candidates by a Gaussian of their
score, with its values for CIFAR-10. From scratch the guide is an embedding without
training: patches of images, random kernels of series. "lite0" are frozen features of
EfficientNet-lite0 as vectors, on which an MLP is trained, so a stand-in for a network that is
adapted; the guide is the vectors themselves. Temperature .5, Adam .001, batches of 128; columns
as in ``worth``, Δ against InfoNCE with the same seeds. A seed sets the
weights, the views and, from scratch, the split.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from benchmarks._photographs import load, pretrained_encoder
from benchmarks._protocol import SETS, judged, split, use_threads
from benchmarks._results import Table, make_parser, paired, spread
from benchmarks.studies._digit_fits import Figures
from benchmarks.studies.paper_losses import SETTINGS
from skcontrast import ContrastiveEmbedder
from skcontrast.encoders import MLP, SeriesNet
from skcontrast.features import Frozen, MiniRocket, PatchDictionary, Raw
from skcontrast.frameworks import SimCLR
from skcontrast.losses import Loss
from skcontrast.similarity import Cosine

FITS = Path(__file__).parent / "results" / "guides.jsonl"
PHOTOGRAPHS = ("steel", "cells", "textures")
TEMPERATURE = 0.5
# set: (encoder, epochs, samples to train on, guide)
FITTED = {
    "digits": (*SETTINGS["digits"][:2], 2000, PatchDictionary(random_state=0)),
    "Fashion-MNIST": (*SETTINGS["Fashion-MNIST"][:2], 1000, PatchDictionary(random_state=0)),
    "FacesUCR": (SeriesNet(), 20, 1000, MiniRocket(random_state=0)),
    **{f"lite0, {name}": (MLP(), 20, None, Raw()) for name in PHOTOGRAPHS},
}
ROWS = ("InfoNCE", "guide", "ADNCE, μ .7, σ .5")
COLUMNS = ("5 labels", "20-NN", "linear")


class Guided(SimCLR):
    """SimCLR without the candidates that `guide` finds closer to an anchor than its positive."""

    def __init__(self, guide, center):
        self.guide, self.center = guide, center

    def contrast(self, network, views, similarity, batch):
        """Return the contrast of SimCLR with weights of 0 for suspected false negatives."""
        found = super().contrast(network, views, similarity, batch)
        with torch.no_grad():
            g = F.normalize(self.guide(torch.cat(views)).flatten(1) - self.center, dim=1)
            scores = g @ g.T
            kept = scores <= scores.gather(1, found.positives)
        return replace(found, pair_weights=kept.float())


class ADNCE(Loss):
    """InfoNCE whose negatives have a Gaussian weight by their cosine, of mean 1."""

    def __init__(self, temperature, mu=0.7, sigma=0.5):
        self.temperature, self.mu, self.sigma = temperature, mu, sigma

    def losses(self, rows):
        """Return the loss of each anchor."""
        cosines = rows.scores.detach() * self.temperature  # −∞ where excluded: weight 0
        weights = (-((cosines - self.mu) ** 2) / (2 * self.sigma**2)).exp()
        log_mean = rows.log_mean(self, weights)
        positive = rows.positives.mean(1)
        return torch.logaddexp(positive, log_mean + np.log(rows.n_candidates)) - positive


def samples(name, args):
    """Return X and y, and where the test set begins or its share."""
    if not name.startswith("lite0"):
        return SETS[name](args)
    X, y, X_test, y_test = load(name.removeprefix("lite0, "))
    frozen = Frozen(pretrained_encoder("lite0")).fit(X)
    return frozen.transform(np.concatenate([X, X_test])), np.concatenate([y, y_test]), len(X)


def accuracies(data, fitted, row, seed):
    """Return the columns of a fit."""
    (X, y, test), (encoder, epochs, n, guide) = data, fitted
    rows = np.arange(len(y))
    train, test = split(y, test, n, seed) if n else (rows[:test], rows[test:])
    given = {}
    if row == "guide":
        guide = guide.fit(X[train])
        center = torch.from_numpy(guide.transform(X[train]).mean(0))
        given["framework"] = Guided(guide.module_, center)
    if row.startswith("ADNCE"):
        given["loss"] = ADNCE(TEMPERATURE)
    given |= {"similarity": Cosine(TEMPERATURE), "lr": 1e-3, "device": "cpu"}
    embedder = ContrastiveEmbedder(encoder, max_epochs=epochs, random_state=seed, **given)
    H, H_test = embedder.fit_transform(X[train]), embedder.transform(X[test])
    found = judged(H, y[train], H_test, y[test], seed, scale=True, quick=True)
    return {column: float(found[column]) for column in COLUMNS}


def main():
    """Print a table of all sets."""
    options = {"data_home": str, "sets": FITTED, "seeds": 3}
    args = make_parser(__doc__, **options, fits=str(FITS)).parse_args()
    use_threads()
    figures = Figures(args.fits)
    with Table("guides", args, labels=2, ratios=COLUMNS) as table:
        for name in args.sets:
            data, runs = samples(name, args), {}
            for row in ROWS:
                runs[row] = [
                    figures.get(
                        f"{name}, {row}, {seed}",
                        partial(accuracies, data, FITTED[name], row, seed),
                    )
                    for seed in range(args.seeds)
                ]
                made = {"data": name, "row": row}
                for column in COLUMNS:
                    ours, theirs = ([one[column] for one in runs[k]] for k in (row, ROWS[0]))
                    made[column] = spread(ours)
                    if row != ROWS[0]:
                        made[f"Δ {column}"] = f"{np.mean(ours) - np.mean(theirs):+.3f}"
                        made[f"95 %, {column}"] = paired(ours, theirs, column)[f"95 %, {column}"]
                table.add({**made, "n": args.seeds})


if __name__ == "__main__":
    main()
