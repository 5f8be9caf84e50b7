"""Does κ say how good an image is, and what does it cost?

    OMP_WAIT_POLICY=PASSIVE python -m benchmarks.studies.concentration
    OMP_WAIT_POLICY=PASSIVE python -m benchmarks.studies.concentration --data Fashion-MNIST
    OMP_WAIT_POLICY=PASSIVE python -m benchmarks.studies.concentration --crops

On the digits or on Fashion-MNIST: the accuracy of linear probes on representations trained
with Cosine and with VonMisesFisher, all else equal; the rank correlation of κ and the strength of
corruptions of held-out images that no view had; and the area under the risk-coverage curve of the
probe where it abstains by low κ, by its own margin, or at random, on mixed corruptions.

With ``--crops``, what the paper's first figure shows: the rank correlation of κ and the share of a
crop that is not background, by the temperature of VonMisesFisher (1 is the paper's), beside the
accuracies; crops of half the side at any place of held-out images, enlarged again.
"""

from __future__ import annotations

import numpy as np
from scipy.ndimage import gaussian_filter, rotate, zoom
from scipy.stats import spearmanr
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from benchmarks._image_sets import load_images
from benchmarks._results import Table, make_parser, spread
from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import RandomAffine, RandomResizedCrop
from skcontrast.metrics import few_label_accuracy, linear_probe
from skcontrast.similarity import Cosine, VonMisesFisher

LEVELS = np.arange(6)
TEMPERATURES = (1.0, 2.0, 4.0, 8.0, 16.0)
# Intensity from which a pixel is not background.
FOREGROUND = 0.1


def blur(images, level, rng):
    """Smooth by a Gaussian of up to 1.75 pixels."""
    return gaussian_filter(images, (0, 0, 0.35 * level, 0.35 * level))


def smear(images, level, rng):
    """Smooth by a Gaussian of up to .22 of the side."""
    sigma = 0.044 * level * images.shape[-1]
    return gaussian_filter(images, (0, 0, sigma, sigma))


def occlude(images, level, rng):
    """Blacken a square of up to .75 of the side."""
    images, n = images.copy(), images.shape[-1]
    side = round(0.15 * level * n)
    for image in images:
        row, column = rng.integers(0, n - side + 1, size=2)
        image[0, row : row + side, column : column + side] = 0
    return images


def turn(images, level, rng):
    """Rotate by up to 90 degrees."""
    return rotate(images, 18 * level, axes=(2, 3), reshape=False, order=1).clip(0, 1)


def fade(images, level, rng):
    """Take up to 90 % of the contrast away."""
    return 0.3 + (images - 0.3) * (1 - 0.18 * level)


def noise(images, level, rng):
    """Add normal noise of up to .6."""
    return (images + 0.12 * level * rng.normal(size=images.shape)).clip(0, 1)


CORRUPTIONS = {f.__name__: f for f in (blur, smear, occlude, turn, fade, noise)}


def load(name, n_train, n_test):
    """Return training and test images in [0, 1], (n, 1, side, side), and their classes."""
    if name is None:
        X, y = load_digits(return_X_y=True)
        X = (X.reshape(-1, 1, 8, 8) / 16).astype(np.float32)
        return train_test_split(X, y, stratify=y, random_state=0)
    X_train, y_train, X_test, y_test = load_images(name)
    images = [(X[:, None] / 255).astype(np.float32) for X in (X_train[:n_train], X_test[:n_test])]
    return *images, y_train[:n_train], y_test[:n_test]


def mixed(images, rng):
    """Return the images, each corrupted in one way or another."""
    names, levels = rng.choice(list(CORRUPTIONS), len(images)), rng.choice(LEVELS[1:], len(images))
    parts = [
        CORRUPTIONS[name](image[None], level, rng)
        for image, name, level in zip(images, names, levels, strict=True)
    ]
    return np.concatenate(parts).astype(np.float32)


def area(wrong, certainty):
    """Return the area under the risk-coverage curve."""
    return (wrong[np.argsort(-certainty)].cumsum() / np.arange(1, len(wrong) + 1)).mean()


def evaluated(train, test, y_train, y_test, epochs, seed):
    """Return the figures of both similarities by name; those of κ are VonMisesFisher's."""
    figures = {}
    for similarity in (Cosine(), VonMisesFisher()):
        embedder = ContrastiveEmbedder(
            similarity=similarity,
            augmentation=[RandomResizedCrop(), RandomAffine(p=0.75)],
            max_epochs=epochs,
            random_state=seed,
        ).fit(train)
        h, h_test = embedder.transform(train), embedder.transform(test)
        name = type(similarity).__name__
        figures[f"linear probe, {name}"] = linear_probe(h, y_train, h_test, y_test)
        few = few_label_accuracy(h, y_train, h_test, y_test, n_labels=5)
        figures[f"5 labels per class, {name}"] = few.mean()
    rng = np.random.default_rng(seed)
    return {
        **figures,
        **correlations(embedder, test, rng),
        **risk_areas(embedder, h, y_train, test, y_test, rng),
    }


def correlations(embedder, test, rng):
    """Return Spearman's correlation of κ and strength by corruption."""
    found = {}
    for name, corrupt in CORRUPTIONS.items():
        kappa = [embedder.concentration(corrupt(test, k, rng).astype(np.float32)) for k in LEVELS]
        rho = spearmanr(np.repeat(LEVELS, len(test)), np.concatenate(kappa))[0]
        found[f"correlation with κ, {name}"] = rho
    return found


def risk_areas(embedder, h, y_train, test, y_test, rng):
    """Return areas under risk-coverage curves by what the probe abstains by."""
    images = mixed(test, rng)
    probe = LogisticRegression(max_iter=2000).fit(h, y_train)
    probability = probe.predict_proba(embedder.transform(images))
    wrong = probe.classes_[probability.argmax(1)] != y_test
    two = np.sort(probability, axis=1)[:, -2:]
    return {
        "risk-coverage area, by κ": area(wrong, embedder.concentration(images)),
        "risk-coverage area, by the margin": area(wrong, two[:, 1] - two[:, 0]),
        "risk-coverage area, at random": wrong.mean(),
    }


def cropped(images, rng):
    """Return a crop of half the side of each image, enlarged, and its share of foreground."""
    side = images.shape[-1]
    half = side // 2
    corners = rng.integers(0, side - half + 1, size=(len(images), 2))
    crops = np.stack(
        [x[:, i : i + half, j : j + half] for x, (i, j) in zip(images, corners, strict=True)]
    )
    enlarged = zoom(crops, (1, 1, side / half, side / half), order=1).clip(0, 1)
    return enlarged.astype(np.float32), (crops > FOREGROUND).mean((1, 2, 3))


def of_crops(data, temperature, seed, args):
    """Return the figures of one fit of VonMisesFisher."""
    train, test, y_train, y_test = data
    embedder = ContrastiveEmbedder(
        similarity=VonMisesFisher(temperature=temperature),
        augmentation=[RandomResizedCrop(), RandomAffine(p=0.75)],
        max_epochs=args.epochs,
        random_state=seed,
    ).fit(train)
    h, h_test = embedder.transform(train), embedder.transform(test)
    few = few_label_accuracy(h, y_train, h_test, y_test, n_labels=5).mean()
    crops, share = cropped(test, np.random.default_rng(seed))
    return {
        "5 labels": few,
        "linear": linear_probe(h, y_train, h_test, y_test),
        "κ and foreground": spearmanr(embedder.concentration(crops), share)[0],
    }


def crops(data, args):
    """Store the figures of crops by temperature."""
    with Table(f"crops, {args.data or 'digits'}", args, ratios=[]) as table:
        for temperature in TEMPERATURES:
            runs = [
                of_crops(data, temperature, seed, args)
                for seed in range(args.first_seed, args.first_seed + args.seeds)
            ]
            found = {name: spread([float(run[name]) for run in runs]) for name in runs[0]}
            table.add({"temperature": temperature, **found})


def main():
    """Train both, and print what they are worth."""
    parser = make_parser(__doc__)
    parser.add_argument("--data", choices=["Fashion-MNIST"], help="digits if absent")
    parser.add_argument("--n-train", type=int, default=5000)
    parser.add_argument("--n-test", type=int, default=2000)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--crops", action="store_true", help="κ of crops, by temperature")
    args = parser.parse_args()
    data = train, test, y_train, y_test = load(args.data, args.n_train, args.n_test)
    if args.crops:
        crops(data, args)
        return
    seeds = range(args.first_seed, args.first_seed + args.seeds)
    with Table(args.data or "digits", args, digits=3) as table:
        by_seed = [evaluated(train, test, y_train, y_test, args.epochs, seed) for seed in seeds]
        for figure in by_seed[0]:
            table.add({"figure": figure, "a number per seed": [of[figure] for of in by_seed]})


if __name__ == "__main__":
    main()
