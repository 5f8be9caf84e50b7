"""What the papers leave open, or announce and do not show, paired over seeds.

    python -m benchmarks.studies.open_questions
    python -m benchmarks.studies.open_questions --tables "alpha, beta" "beta, N"

On the digits, as in ``papers_axes`` (1,347 images without labels, temperature .2, batches of 128,
24 epochs, except where a table says otherwise): BCL's debiasing α against its mining β, and β
against the number of negatives N; strength of the views against losses, the wrong positives of
the paper of PositiveDebiased, and several positives at once; its wrong anchors, by descriptions of
which a share is of another sample, and by images that fit no description; how concentrated the
projections are while training, the ground of BCL's schedule of β.

On the digits, and on 2,000 images of Fashion-MNIST and of CIFAR-10: PositiveDebiased, both forms,
against the epochs, by a linear probe of all labels, top-1 and top-5.

Columns: 5 labels a class (logistic regression, mean of 10 draws) and 20 nearest neighbours. Δ is
the difference from InfoNCE, or from no descriptions, with the same seeds, p that of a paired
t-test, uncorrected.

``--cache FILE`` keeps each fit's figures, so that a run that was cut off continues.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import torch

from benchmarks._image_sets import load_images
from benchmarks._results import Table, make_parser, spread
from benchmarks.studies._digit_fits import (
    PROBES,
    RAW,
    UNTRAINED,
    Figures,
    Setting,
    cells,
    differences,
    embedding_probes,
    make_embedder,
    probes,
    split,
)
from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import ColorJitter, RandomAffine, SimCLRAugmentation
from skcontrast.encoders import PatchNet
from skcontrast.estimation import project_views
from skcontrast.features import PatchDictionary
from skcontrast.losses import (
    BCL,
    DCL,
    HCL,
    InfoNCE,
    PositiveDebiased,
    SoftRing,
    SoftSupCon,
    Supervised,
)
from skcontrast.metrics import knn_accuracy, linear_probe, uniformity
from skcontrast.similarity import Cosine

BIASED = "InfoNCE"
ALPHAS = (0.5, 0.6, 0.7, 0.8, 0.9)
BETAS = (0.0, 0.25, 0.5, 1.0, 2.0)
BATCH_SIZES = (16, 64, 256)
N_STEPS = 264
STRENGTHS = (0.25, 0.5, 1.0, 1.5, 2.0)
SHARES = (0.0, 0.2, 0.4)
EPOCHS = (1, 2, 4, 8)
TEXTS, LEFT_OUT, MUTE = "class means", "left out", "weight of 0"
TOPS = ("top-1", "top-5", "20-NN")
N_IMAGES = 2000


def table_of(name, args, labels=1, names=PROBES):
    """Return a table of accuracies."""
    return Table(name, args, ratios=names, labels=labels, packages=("scipy",))


def alpha_beta(figures, args):
    """Debiasing α against mining β of BCL."""
    base = figures.of(Setting(InfoNCE()), args.seeds)
    with table_of("alpha, beta", args, labels=3) as table:
        for row in (RAW, UNTRAINED):
            table.add(
                {"α": "–", "β": "–", "loss": row, **cells(figures.of(Setting(row), args.seeds))}
            )
        table.add({"α": "–", "β": "–", "loss": BIASED, **cells(base)})
        for alpha in ALPHAS:
            for beta in BETAS:
                scores = figures.of(Setting(BCL(alpha, beta, tau_plus=0.1)), args.seeds)
                table.add({"α": alpha, "β": beta, "loss": "BCL", **cells(scores, base)})


def beta_n(figures, args):
    """Mining β of BCL against the number of negatives, 264 steps whatever the batch."""
    n_samples = len(split(0)[0])
    with table_of("beta, N", args, labels=3) as table:
        for size in BATCH_SIZES:
            own = {"batch_size": size, "epochs": round(N_STEPS / -(-n_samples // size))}
            base = figures.of(Setting(InfoNCE(), **own), args.seeds)
            row = {"N": 2 * (size - 1), "β": "–"}
            table.add({**row, "loss": BIASED, **cells(base)})
            for beta in (0.0, 0.5, 1.0, 2.0):
                for loss in (BCL(0.9, beta, tau_plus=0.1), HCL(0.1, beta=beta)):
                    scores = figures.of(Setting(loss, **own), args.seeds)
                    row |= {"β": beta, "loss": type(loss).__name__}
                    table.add({**row, **cells(scores, base)})


def strong(strength):
    """Return the views of the digits, so many times as strong."""
    low, high = 1 - 0.2 * strength, 1 + 0.2 * strength
    jitter = min(0.6 * strength, 1.0)
    affine = RandomAffine(15 * strength, 0.1 * strength, (low, high), 15 * strength)
    return [affine, ColorJitter(jitter, jitter, 0, 0)]


def viewed(loss, strength, seed, temperature=0.2):
    """Return the accuracies of a loss with views of a strength."""
    data = X, y, *_ = split(seed)
    setting = Setting(loss, temperature=temperature, seed=seed)
    embedder = make_embedder(setting).set_params(augmentation=strong(strength))
    return embedding_probes(embedder.fit(X, y if loss.requires_y else None), data)


def recipe(strength):
    """Return SimCLR's recipe for small images, so many times as strong."""
    colour = strength * SimCLRAugmentation().strength
    return SimCLRAugmentation(crop_scale=(1 - 0.8 * strength, 1.0), strength=colour)


def viewed_image(loss, strength, seed):
    """Return the accuracies of a loss with views of a strength, 10 epochs of 1,000 clothes."""
    data = X, y, *_ = images("Fashion-MNIST", seed, 1000)
    embedder = ContrastiveEmbedder(
        encoder=PatchNet(),
        augmentation=recipe(strength),
        loss=loss,
        similarity=Cosine(0.2),
        batch_size=128,
        max_epochs=10,
        lr=1e-3,
        device="cpu",
        random_state=seed,
    )
    return embedding_probes(embedder.fit(X, y if loss.requires_y else None), data)


def view_strength(name, compute, strengths, figures, args, rows=None):
    """Strength of the views against losses, all or those of the rows that are named."""
    losses = {
        BIASED: InfoNCE(),
        "DCL": DCL(0.1),
        "BCL": BCL(0.9, tau_plus=0.1),
        "PositiveDebiased": PositiveDebiased(0.1),
        "PositiveDebiased, printed": PositiveDebiased(0.1, form="printed"),
        "SoftRing": SoftRing(4.0, 0.1),
        "SoftSupCon": SoftSupCon(tau_plus=0.1),
        "Supervised-y": Supervised(),
    }
    with table_of(name, args, labels=2) as table:
        for strength in strengths:
            scores = {}
            for row, loss in losses.items() if rows is None else [(r, losses[r]) for r in rows]:
                own = partial(compute, loss, strength)
                scores[row] = figures.over(f"{name} {strength} {loss}", own, args.seeds)
                base = None if row == BIASED else scores[BIASED]
                table.add({"strength": strength, "loss": row, **cells(scores[row], base)})


def long_fit(loss, temperature, strength, seed):
    """Return the accuracies after 80 epochs."""
    data = split(seed)
    embedder = make_embedder(Setting(loss, temperature=temperature, epochs=80, seed=seed))
    return embedding_probes(embedder.set_params(augmentation=strong(strength)).fit(data[0]), data)


def longer(figures, args):
    """Losses that pull with weaker views, 80 epochs, against InfoNCE with the usual ones."""
    rows = [(InfoNCE(), 0.5, 1.0), (InfoNCE(), 0.5, 0.7)]
    rows += [(SoftSupCon(tau_plus=0.1), 0.2, strength) for strength in (0.35, 0.5, 0.7, 1.0)]
    rows += [(SoftRing(4.0, 0.1), 0.2, strength) for strength in (0.5, 0.7)]
    with table_of("80 epochs", args, labels=3) as table:
        base = None
        for loss, t, strength in rows:
            own = partial(long_fit, loss, t, strength)
            scores = figures.over(f"80 epochs {loss} {t} {strength}", own, args.seeds)
            row = {"loss": type(loss).__name__, "t": t, "strength": strength}
            table.add({**row, **cells(scores, base)})
            base = scores if base is None else base


def half_described(share, with_y, strength, seed):
    """Return the accuracies after 12 epochs of InfoNCE and 12 more, with descriptions or not.

    A description is the mean projection of a class after the first half; a `share` of them are
    those of other samples, and None stands for no descriptions.
    """
    data = X, y, *_ = split(seed)
    rng = np.random.default_rng(seed)
    embedder = make_embedder(Setting(InfoNCE(), seed=seed))
    embedder.set_params(augmentation=strong(strength))
    for _ in range(12):
        embedder.partial_fit(X)
    descriptions = None
    if share is not None:
        Z = embedder.set_params(output="projection").transform(X)
        embedder.set_params(output="representation")
        Z /= np.linalg.norm(Z, axis=1, keepdims=True)
        rows = np.flatnonzero(rng.random(len(y)) < share)
        shown = y.copy()
        shown[rows] = y[rng.permutation(rows)]
        descriptions = np.stack([Z[y == label].mean(0) for label in range(10)])[shown]
    if with_y:
        embedder.set_params(loss=Supervised())
    for _ in range(12):
        embedder.partial_fit(X, y if with_y else None, descriptions=descriptions)
    return embedding_probes(embedder, data)


def wrong_anchors(figures, args):
    """Weights of anchors by descriptions, right and wrong ones."""
    rows = {"none": (None, False)}
    rows |= {f"class means, {share:.0%} of others": (share, False) for share in SHARES}
    rows["none, Supervised-y"] = (None, True)
    with table_of("wrong anchors", args, labels=2) as table:
        for strength in (1.0, 2.0):
            scores = {
                name: figures.over(
                    f"described {own} {strength}",
                    partial(half_described, *own, strength),
                    args.seeds,
                )
                for name, own in rows.items()
            }
            for name, of in scores.items():
                base = None if name == "none" else scores["none"]
                table.add({"strength": strength, "descriptions": name, **cells(of, base)})


def unfitting(share, row, seed):
    """Return the accuracies after 24 epochs where a share of the images fits no text.

    The pixels of these images are shuffled. Texts are class means of an embedder of clean images;
    with `row` "left out" the images that fit no text are left out, and with "weight of 0" they are
    negatives of others alone.
    """
    data = X, y, *_ = split(seed)
    rng = np.random.default_rng(seed)
    Z = make_embedder(Setting(InfoNCE(), seed=seed)).set_params(output="projection")
    Z = Z.fit_transform(X)
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    texts = np.stack([Z[y == label].mean(0) for label in range(10)])[y]
    wrong = np.flatnonzero(rng.random(len(y)) < share)
    shown, height = X.copy(), X.shape[1]
    shown[wrong] = rng.permuted(X[wrong].reshape(len(wrong), X[0].size), axis=1).reshape(
        -1, height, height
    )
    embedder = make_embedder(Setting(InfoNCE(), seed=seed))
    if row == LEFT_OUT:
        embedder.fit(np.delete(shown, wrong, axis=0))
    else:
        weights = (~np.isin(np.arange(len(y)), wrong)).astype(float) if row == MUTE else None
        embedder.fit(shown, sample_weight=weights, descriptions=texts if row == TEXTS else None)
    return embedding_probes(embedder, data)


def wrong_images(figures, args):
    """Weights of anchors by texts, where a share of the images fits none."""
    with table_of("wrong images", args, labels=2) as table:
        for share in SHARES:
            base = None
            for row in ("none", TEXTS, LEFT_OUT, MUTE) if share else ("none", TEXTS):
                own = partial(unfitting, share, row)
                scores = figures.over(f"wrong images {share} {row}", own, args.seeds)
                table.add({"wrong": f"{share:.0%}", "descriptions": row, **cells(scores, base)})
                base = scores if base is None else base


def of_three_views(loss, temperature, seed):
    """Return the accuracies after 24 epochs with two positives for each anchor."""
    data = split(seed)
    embedder = make_embedder(Setting(loss, temperature=temperature, seed=seed))
    return embedding_probes(embedder.set_params(n_views=3).fit(data[0]), data)


def several_positives(figures, args):
    """PositiveDebiased with two positives for each anchor (eq. 14)."""
    losses = {
        BIASED: InfoNCE(),
        "DCL": DCL(0.1),
        "PositiveDebiased": PositiveDebiased(0.1),
        "PositiveDebiased, printed": PositiveDebiased(0.1, form="printed"),
    }
    with table_of("several positives", args, labels=2) as table:
        for t in (0.2, 0.5):
            base = None
            for row, loss in losses.items():
                own = partial(of_three_views, loss, t)
                scores = figures.over(f"three views {loss} {t}", own, args.seeds)
                table.add({"t": t, "loss": row, **cells(scores, base)})
                base = scores if base is None else base


def spread_of_projections(loss, seed):
    """Return uniformity and push of a loss before training and after 1, 2, 5, 10 and 24 epochs."""
    X, _, X_test, _ = split(seed)
    embedder, found = make_embedder(Setting(loss, seed=seed)), []
    for epoch in range(1, 25):
        embedder.partial_fit(X)
        if epoch in (1, 2, 5, 10, 24):
            Z = np.asarray(project_views(embedder, X_test, random_state=0)[0])
            Z = Z / np.linalg.norm(Z, axis=1, keepdims=True)
            scores = np.exp((Z @ Z.T)[~np.eye(len(Z), dtype=bool)].reshape(len(Z), -1) / 0.2)
            weights = scores / scores.sum(1, keepdims=True)
            effective = (1 / (weights**2).sum(1)).mean() / weights.shape[1]
            found.append([uniformity(Z), float(effective)])
    return found


def concentration(figures, args):
    """How concentrated projections are while training."""
    losses = {BIASED: InfoNCE(), "HCL, β = 1": HCL(0.1, beta=1.0), "BCL": BCL(0.9, tau_plus=0.1)}
    with Table("concentration", args, labels=2, ratios=[]) as table:
        for name, loss in losses.items():
            found = figures.over(
                f"spread {loss}", partial(spread_of_projections, loss), args.seeds
            )
            for i, epoch in enumerate((1, 2, 5, 10, 24)):
                uniform, effective = (spread(found[:, i, k].tolist()) for k in (0, 1))
                row = {"loss": name, "epochs": epoch, "uniformity": uniform}
                table.add({**row, "share of negatives that count": effective})


def images(name, seed, n=N_IMAGES):
    """Return X_train, y_train, X_test, y_test: n images to train on, and others."""
    if name == "digits":
        return split(seed)
    rng = np.random.default_rng(seed)
    X_train, y_train, X_test, y_test = load_images(name)
    train, test = (rng.choice(len(y), n, replace=False) for y in (y_train, y_test))
    return X_train[train], y_train[train], X_test[test], y_test[test]


def curve(name, loss, t, seed):
    """Return top-1 and top-5 of a linear probe, and 20-NN, after 1, 2, 4 and 8 epochs."""
    X, y, X_test, y_test = images(name, seed)
    embedder = ContrastiveEmbedder(
        encoder=None if name == "digits" else PatchNet(),
        augmentation=strong(1.0) if name == "digits" else None,
        loss=loss,
        similarity=Cosine(t),
        batch_size=128,
        lr=1e-3,
        device="cpu",
        random_state=seed,
    )
    found = []
    for epoch in range(1, EPOCHS[-1] + 1):
        embedder.partial_fit(X)
        if epoch in EPOCHS:
            data = embedder.transform(X), y, embedder.transform(X_test), y_test
            tops = [linear_probe(*data, top_k=k) for k in (1, 5)]
            found.append([*tops, knn_accuracy(*data)])
    return found


def positive_debiased(name, figures, args):
    """PositiveDebiased in both forms against the epochs."""
    losses = {
        BIASED: InfoNCE(),
        "DCL": DCL(0.1),
        "PositiveDebiased": PositiveDebiased(0.1),
        "PositiveDebiased, printed": PositiveDebiased(0.1, form="printed"),
    }
    with table_of(f"positives, {name}", args, labels=3, names=TOPS) as table:
        for t in (0.2, 0.5):
            scores = {
                row: figures.over(
                    f"curve {name} {loss} {t}", partial(curve, name, loss, t), args.seeds
                )
                for row, loss in losses.items()
            }
            for i, epochs in enumerate(EPOCHS):
                for row, of in scores.items():
                    base = None if row == BIASED else scores[BIASED][:, i]
                    table.add(
                        {"t": t, "epochs": epochs, "loss": row, **cells(of[:, i], base, TOPS)}
                    )


def together(figures, args):
    """PositiveDebiased against InfoNCE on five seeds of the digits and three of the other sets."""
    seeds = {"digits": 5, "Fashion-MNIST": 3, "CIFAR-10": 3}

    def all_sets(loss, t):
        """Return the figures by seed and set, epochs and column."""
        return np.concatenate(
            [
                figures.over(f"curve {name} {loss} {t}", partial(curve, name, loss, t), n_seeds)
                for name, n_seeds in seeds.items()
            ]
        )

    with table_of("positives, together", args, labels=3, names=TOPS) as table:
        for t in (0.2, 0.5):
            base = all_sets(InfoNCE(), t)
            for form in ("mean", "printed"):
                scores = all_sets(PositiveDebiased(0.1, form=form), t)
                for i, epochs in enumerate(EPOCHS):
                    row = {"t": t, "form": form, "epochs": epochs}
                    table.add(row | differences(scores[:, i], base[:, i], TOPS))


def of_features(name, n, row, seed):
    """Return the accuracies of what needs no training, the last that of a linear probe."""
    X, y, X_test, y_test = images(name, seed, n)
    if row == UNTRAINED:
        encoder = None if name == "digits" else PatchNet()
        features = ContrastiveEmbedder(encoder, max_epochs=1, lr=1e-12, random_state=seed)
    else:
        features = PatchDictionary(random_state=0)
    H, H_test = (part.reshape(len(part), -1) / float(X.max()) for part in (X, X_test))
    if row != RAW:
        H, H_test = features.fit(X).transform(X), features.transform(X_test)
    data = H, y, H_test, y_test
    return [*probes(*data), linear_probe(*data)]


def floors(figures, args):
    """What needs no training, on the images of the other tables."""
    names = (*PROBES, "linear")
    with table_of("no training", args, labels=3, names=names) as table:
        for name, n in (("digits", 1347), ("Fashion-MNIST", 1000), ("CIFAR-10", N_IMAGES)):
            for row in (RAW, "patches", UNTRAINED):
                own = partial(of_features, name, n, row)
                scores = figures.over(f"floor {name} {n} {row}", own, args.seeds)
                table.add({"data": name, "images": n, "row": row, **cells(scores, names=names)})


TABLES = {
    "no training": floors,
    "alpha, beta": alpha_beta,
    "beta, N": beta_n,
    "strength": partial(view_strength, "strength", viewed, STRENGTHS),
    "strength, Fashion-MNIST": partial(
        view_strength, "strength, Fashion-MNIST", viewed_image, STRENGTHS[:3]
    ),
    "strength, t = .5": partial(
        view_strength,
        "strength, t = .5",
        partial(viewed, temperature=0.5),
        STRENGTHS,
        rows=(BIASED, "PositiveDebiased", "PositiveDebiased, printed", "SoftSupCon"),
    ),
    "80 epochs": longer,
    "wrong anchors": wrong_anchors,
    "wrong images": wrong_images,
    "several positives": several_positives,
    "concentration": concentration,
    **{
        f"positives, {name}": partial(positive_debiased, name)
        for name in ("digits", "Fashion-MNIST", "CIFAR-10")
    },
    "positives, together": together,
}


def main():
    """Print the tables."""
    parser = make_parser(__doc__)
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--cache", help="file that keeps the figures of each fit")
    args = parser.parse_args()
    torch.set_num_threads(1)
    figures = Figures(args.cache)
    for name in args.tables:
        TABLES[name](figures, args)


if __name__ == "__main__":
    main()
