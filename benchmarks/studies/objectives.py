"""Objectives of adapting a pretrained network, by the same steps and views.

    python -m benchmarks.studies.objectives --sets cells textures clothing10

EfficientNet-lite0 of ImageNet, sets and columns as in ``pretrained``, images of 96 pixels. Every
objective trains the layers that ``Pretrained(adapt=True)`` trains, for 40 steps of 64 images with
two views, by Adam at .001 for the new layers and .0002 for the network, with a cosine decay. The
representation is that of ``Pretrained``: the sum of the outputs of the trained and of the frozen
network, each divided by its root mean square.

- InfoNCE: the default loss, with a head of two layers.
- DIET: each image is its own class, a linear layer and cross-entropy with label smoothing .8
  (arXiv:2302.10260 and 2509.06990).
- VICReg: invariance 25, variance 25, covariance 1, with an expander of two layers of 512
  (arXiv:2105.04906).
- clusters: InfoNCE in which the 40 k-means clusters of the frozen features are positives.
"""

from __future__ import annotations

import time
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.cluster import KMeans
from torch import nn

from benchmarks._photographs import COLUMNS, judge, load, pretrained_encoder
from benchmarks._results import Table, make_parser
from skcontrast import contrastive_loss
from skcontrast._model._adapt import adapt
from skcontrast._model._defaults import default_chain
from skcontrast.augmentation import compose
from skcontrast.kinds import Images
from skcontrast.losses import InfoNCE, SupCon

N_STEPS, BATCH, N_CLUSTERS = 40, 64, 40


def head(width, n_outputs=128, hidden=512):
    """Return a projection head of two layers."""
    return nn.Sequential(
        nn.Linear(width, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, n_outputs)
    )


def vicreg(first, second):
    """Return the loss of VICReg for projections of two views."""
    loss = 25 * F.mse_loss(first, second)
    for z in (first, second):
        z = z - z.mean(0)
        loss = loss + 12.5 * F.relu(1 - (z.var(0) + 1e-4).sqrt()).mean()
        covariance = z.T @ z / (len(z) - 1)
        loss = loss + (covariance.square().sum() - covariance.diag().square().sum()) / z.shape[1]
    return loss


def objectives(frozen, n, width):
    """Return for each objective a function that makes its layer, and the loss of two views."""
    clusters = torch.from_numpy(KMeans(N_CLUSTERS, random_state=0).fit_predict(frozen)).long()

    def diet(first, second, rows):
        both = torch.cat([first, second])
        return F.cross_entropy(both, torch.cat([rows, rows]), label_smoothing=0.8)

    return {
        "InfoNCE": (
            partial(head, width),
            lambda a, b, rows: contrastive_loss(a, b, loss=InfoNCE()),
        ),
        "DIET": (partial(nn.Linear, width, n), diet),
        "VICReg": (partial(head, width, 512), lambda a, b, rows: vicreg(a, b)),
        "clusters": (
            partial(head, width),
            lambda a, b, rows: contrastive_loss(a, b, loss=SupCon(), y=clusters[rows]),
        ),
    }


def rows_of(module, x):
    """Return the output of a module in inference mode as an array."""
    module.eval()
    with torch.no_grad():
        return torch.cat([module(images / 255) for images in x.split(64)]).numpy()


def main():
    """Print a row for each set, objective and seed."""
    parser = make_parser(__doc__, seeds=1)
    parser.add_argument("--sets", nargs="*", default=["cells", "textures", "clothing10", "steel"])
    parser.add_argument("--suffix", default="", help="of the name under which --save stores it")
    args = parser.parse_args()
    torch.set_num_threads(1)
    with Table("objectives" + args.suffix, args, labels=3, ratios=COLUMNS) as table:
        for name in args.sets:
            X, y, X_test, y_test = load(name)
            x, x_test, shape = torch.from_numpy(X), torch.from_numpy(X_test), X.shape[1:]
            encoder = pretrained_encoder("lite0", adapt=True)
            frozen = [rows_of(encoder.build(shape), part) for part in (x, x_test)]
            start = dict(zip(COLUMNS, judge(frozen[0], y, frozen[1], y_test), strict=True))
            table.add({"set": name, "objective": "frozen", "seed": "–"} | start)
            draw = compose(default_chain(Images(), shape), shape)
            of_objective = objectives(frozen[0], len(X), frozen[0].shape[1])
            for seed in range(args.seeds):
                for objective, (make, loss) in of_objective.items():
                    torch.manual_seed(seed)
                    new = make()
                    module, begin = encoder.build(shape), time.process_time()
                    adapt(encoder, module, x[:2] / 255, np.random.RandomState(seed), None)
                    network = [p for p in module.parameters() if p.requires_grad]
                    groups = [{"params": new.parameters()}, {"params": network, "lr": 2e-4}]
                    optimizer = torch.optim.Adam(groups, lr=1e-3)
                    decay = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, N_STEPS)
                    module.train()
                    generator = torch.Generator().manual_seed(seed)
                    for step in range(N_STEPS):
                        if step % (n := max(1, len(x) // BATCH)) == 0:
                            order = torch.randperm(len(x), generator=generator).tensor_split(n)
                        rows = order[step % n]
                        views = [draw(x[rows] / 255, generator) for _ in range(2)]
                        both = new(module(torch.cat(views))).chunk(2)
                        optimizer.zero_grad()
                        loss(*both, rows).backward()
                        optimizer.step()
                        decay.step()
                    minutes = (time.process_time() - begin) / 60
                    found = judge(rows_of(module, x), y, rows_of(module, x_test), y_test)
                    row = {"set": name, "objective": objective, "seed": str(seed)}
                    row |= dict(zip(COLUMNS, found, strict=True)) | {"CPU min": minutes}
                    table.add(row)


if __name__ == "__main__":
    main()
