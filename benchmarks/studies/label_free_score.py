"""Which score without labels ranks embedders as few labels and neighbours do.

    python -m benchmarks.studies.label_free_score  # digits
    python -m benchmarks.studies.label_free_score --set fashion

A setting is a loss, a temperature, views and a number of epochs, besides an untrained encoder and
one that training has collapsed. The learning rate is constant, so that one run gives a setting for
each number of epochs. Every score sees 512 held-out samples without their classes. The table has
Spearman's rank correlation over the settings of each score with the accuracy of 5 labels a class
(20 draws) and of 20 neighbours.

``--cache FOLDER`` keeps the embeddings, so that a new score needs no new fits.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.metrics import silhouette_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import normalize

from benchmarks._image_sets import load_images
from benchmarks._results import Table, make_parser
from skcontrast import ContrastiveEmbedder, contrastive_loss
from skcontrast.augmentation import (
    ColorJitter,
    GaussianBlur,
    RandomAffine,
    RandomFlip,
    RandomResizedCrop,
    compose,
)
from skcontrast.encoders import ConvNet
from skcontrast.losses import BCL, DCL, HCL, InfoNCE, Ring
from skcontrast.metrics import (
    alignment,
    effective_rank,
    few_label_accuracy,
    knn_accuracy,
    neighbor_agreement,
    uniformity,
)
from skcontrast.similarity import Cosine

JITTER = ColorJitter(0.6, 0.6, 0, 0)
CROP = RandomResizedCrop(scale=(0.5, 1.0))
VIEWS = {
    "none": [],
    "jitter": [JITTER],
    "weak affine": [RandomAffine(rotation=5, translate=0.03)],
    "affine": [RandomAffine()],
    "affine, jitter": [RandomAffine(), JITTER],
    "strong affine, jitter": [RandomAffine(rotation=40, translate=0.25, shear=20), JITTER],
    "crops": [CROP],
    "small crops, flips": [RandomResizedCrop(scale=(0.1, 1.0)), RandomFlip()],
    "crops, jitter, blur": [CROP, JITTER, GaussianBlur(p=0.3)],
}
# Views of one recipe for all settings.
COMMON = {"digits": "affine, jitter", "fashion": "crops, jitter, blur"}
LOSSES = {
    "InfoNCE": InfoNCE(),
    "DCL": DCL(tau_plus=0.1),
    "HCL": HCL(tau_plus=0.1, beta=1.0),
    "BCL": BCL(alpha=0.7, tau_plus=0.1),
    "Ring": Ring(outer=1.0, inner=0.1),
}
TEMPERATURES = (0.1, 0.2, 0.5, 1.0)
EPOCHS = {"digits": (2, 8, 40), "fashion": (1, 4, 12)}
N_SCORED = 512
INFONCE_BATCH = 256


def load(args, split):
    """Return X_train, y_train, X_test, y_test of a split."""
    if args.set == "digits":
        X, y = load_digits(return_X_y=True)
        X = (X.reshape(-1, 1, 8, 8) * 255 / 16).astype(np.uint8)
        parts = train_test_split(X, y, test_size=0.4, stratify=y, random_state=split)
        return parts[0], parts[2], parts[1], parts[3]
    X_train, y_train, X_test, y_test = load_images("Fashion-MNIST")
    rng = np.random.default_rng(split)
    rows = rng.choice(len(X_train), args.n_train, replace=False)
    held_out = rng.choice(len(X_test), 2 * N_SCORED, replace=False)
    X_train, X_test = X_train[rows, None], X_test[held_out, None]
    return X_train, y_train[rows], X_test, y_test[held_out]


def draw_runs(args, seed):
    """Return runs by name: parameters of an embedder, and after which epochs it is a setting.

    Losses, temperatures and views are shuffled and dealt, so that all of them occur.
    """
    rng, n = np.random.default_rng(seed), args.n_runs
    common = VIEWS[COMMON[args.set]]
    runs = {
        "untrained": ({"augmentation": common, "lr": 1e-12}, (1,)),
        "collapsed": ({"augmentation": common, "lr": 1.0, "optimizer": "sgd"}, (3,)),
    }
    dealt = [
        np.resize(rng.permutation(list(options)), n) for options in (VIEWS, LOSSES, TEMPERATURES)
    ]
    for views, loss, temperature in zip(*dealt, strict=True):
        runs[f"{loss}, t = {temperature}, {views}"] = (
            {
                "loss": LOSSES[str(loss)],
                "similarity": Cosine(float(temperature)),
                "augmentation": VIEWS[str(views)],
            },
            EPOCHS[args.set],
        )
    return runs


@torch.inference_mode()
def encoded(embedder, X):
    """Return representations and projections of images in [0, 1], shape (n, width) each."""
    h = torch.cat([embedder.encoder_(part) for part in X.split(256)])
    return h.numpy(), embedder.projector_(h).numpy()


def drawn(chain, X):
    """Return two views of images in [0, 1] by a chain of augmentations."""
    generator = torch.Generator().manual_seed(0)
    draw = compose([clone(step).fit(X.numpy()) for step in chain], X.shape[1:])
    return [draw(X, generator) for _ in range(2)]


def settings(args, seed, data):
    """Fit, and yield the name of each setting with all that scores and probes look at."""
    for name, (parameters, epochs) in draw_runs(args, seed).items():
        embedder = make_embedder(args, seed, parameters)
        for epoch in range(1, max(epochs) + 1):
            embedder.partial_fit(data[0])
            if epoch in epochs:
                yield f"{name}, {epoch} epochs", features(args, embedder, data)


def make_embedder(args, seed, parameters):
    """Return an embedder with the encoder and batch size of the set."""
    if args.set == "fashion":
        parameters = {"encoder": ConvNet(widths=(16, 32, 64)), "batch_size": 128, **parameters}
    return ContrastiveEmbedder(random_state=seed, device="cpu", **parameters)


def cached(args, data):
    """Yield settings as files keep them, or fit and keep them."""
    if args.cache is None:
        yield from settings(args, args.seed, data)
        return
    folder = Path(args.cache) / f"{args.set}{args.seed}"
    if not folder.exists():
        folder.mkdir(parents=True)
        for name, found in settings(args, args.seed, data):
            np.savez(folder / f"{name}.npz", **found)
    for path in sorted(folder.glob("*epochs.npz")):
        with np.load(path) as file:
            yield path.stem, dict(file)


def features(args, embedder, data):
    """Return arrays by name: ``train`` and ``test`` are representations.

    ``own``, ``common`` and ``affine`` are the representations (h) and projections (z) of two views
    each of held-out samples, drawn as in training and by two recipes for all settings.
    """
    X_train, _, X_test, _ = data
    scored = torch.from_numpy(X_test[:N_SCORED] / np.float32(255))
    found = {"train": embedder.transform(X_train), "test": embedder.transform(X_test)}
    found["h"], found["z"] = encoded(embedder, scored)
    chains = {"own": embedder.augmentation, "common": VIEWS[COMMON[args.set]]}
    chains["affine"] = VIEWS["affine"]
    for name, chain in chains.items():
        pairs = [encoded(embedder, view) for view in drawn(chain, scored)]
        for part, letter in enumerate("hz"):
            found[f"{name} {letter}"] = np.stack([pair[part] for pair in pairs])
    return found


def minus_infonce(views):
    """Return minus the InfoNCE loss of two views at temperature 0.5."""
    z1, z2 = torch.from_numpy(views[:, :INFONCE_BATCH])
    return -float(contrastive_loss(z1, z2, similarity=Cosine(0.5)))


def spectrum(z):
    """Return the singular values of centred embeddings, the largest first."""
    return np.linalg.svd(z - z.mean(axis=0), compute_uv=False).clip(1e-12)


def stable_rank(z):
    """Return the squared Frobenius norm divided by the squared largest singular value."""
    values = spectrum(z)
    return np.square(values / values[0]).sum()


def decay(z):
    """Return α-ReQ's exponent: how fast the first hundred eigenvalues fall."""
    eigenvalues = np.square(spectrum(z))[2:100]
    return -np.polyfit(np.log(np.arange(3, 3 + len(eigenvalues))), np.log(eigenvalues), 1)[0]


def lidar(views):
    """Return the effective rank of the linear discriminant analysis that takes views as classes.

    On the first 64 principal components.
    """
    z = PCA(min(64, views.shape[2]), random_state=0).fit_transform(np.concatenate(views))
    z = z.reshape(2, -1, z.shape[1]).astype(np.float64)
    middle = z.mean(axis=0)
    within = sum(part.T @ part for part in z - middle) / (2 * len(middle))
    within += (1e-4 * np.trace(within) / len(within) + 1e-12) * np.eye(len(within))
    between = np.cov(middle.T, bias=True)
    values = np.linalg.eigvals(np.linalg.solve(within, between)).real.clip(0)
    shares = values / max(values.sum(), 1e-12) + 1e-7
    return np.exp(-(shares * np.log(shares)).sum())


def clusters(z):
    """Return the silhouette of 20 clusters of k-means on 20 principal components."""
    z = PCA(min(20, z.shape[1]), random_state=0).fit_transform(normalize(z))
    labels = KMeans(20, n_init=1, random_state=0).fit_predict(z)
    return silhouette_score(z, labels) if len(set(labels)) > 1 else -1.0


def scores(found, X):
    """Return each score without labels by name; higher is better."""
    pixels = (X - X.mean(axis=0)).reshape(len(X), -1)
    # A cache may hold more samples than are scored.
    found = {name: array[..., : len(X), :] for name, array in found.items() if array.ndim > 1}
    h, own, common, affine = (found[name] for name in ("h", "own h", "common h", "affine h"))
    own_z, common_z = found["own z"], found["common z"]
    return {
        "neighbours of two common views": neighbor_agreement(*common),
        "the same, 5 neighbours": neighbor_agreement(*common, 5),
        "the same, plain affine views": neighbor_agreement(*affine),
        "the same, projections": neighbor_agreement(*common_z),
        "the same, own views": neighbor_agreement(*own),
        "neighbours of input and representation": neighbor_agreement(pixels, h),
        "silhouette of 20 clusters": clusters(h),
        "−InfoNCE, own views, projections (former score)": minus_infonce(own_z),
        "−InfoNCE, common views, projections": minus_infonce(common_z),
        "−InfoNCE, common views": minus_infonce(common),
        "−alignment, common views": -alignment(*common),
        "−uniformity": -uniformity(h),
        "−alignment − uniformity/2, own views, projections": -alignment(*own_z)
        - uniformity(own_z[0]) / 2,
        "RankMe": effective_rank(h),
        "RankMe, projections": effective_rank(found["z"]),
        "stable rank": stable_rank(h),
        "α-ReQ's exponent": decay(h),
        "LiDAR, common views": lidar(common),
    }


def accuracies(found, y_train, y_test):
    """Return the accuracies of 5 labels a class and of 20 neighbours."""
    data = found["train"], y_train, found["test"], y_test
    return few_label_accuracy(*data, n_labels=5, n_draws=20).mean(), knn_accuracy(*data)


def correlations(values, few, knn):
    """Return Spearman's rank correlation with both accuracies."""
    return {
        "5 labels per class": spearmanr(values, few).statistic,
        "20-NN": spearmanr(values, knn).statistic,
    }


def main():
    """Print the table: a row per score."""
    parser = make_parser(__doc__)
    parser.add_argument("--set", choices=list(COMMON), default="digits")
    parser.add_argument("--n-train", type=int, default=1500, help="images of Fashion-MNIST")
    parser.add_argument("--n-runs", type=int, default=11, help="runs of three settings each")
    parser.add_argument("--seed", type=int, default=0, help="of the split, settings and weights")
    parser.add_argument("--cache", help="folder for the embeddings")
    args = parser.parse_args()
    data = load(args, args.seed)
    truth, found = [], []
    for name, arrays in cached(args, data):
        truth.append(accuracies(arrays, data[1], data[3]))
        found.append(scores(arrays, data[2][:N_SCORED]))
        print(f"{name}: {truth[-1][0]:.3f}, {truth[-1][1]:.3f}", flush=True)
    few, knn = np.transpose(truth)
    with Table(f"{args.set}, seed {args.seed}", args, packages=["scipy"], digits=2) as table:
        table.add({"score": "accuracy of 20 neighbours", **correlations(knn, few, knn)})
        for name in found[0]:
            values = [row[name] for row in found]
            table.add({"score": name, **correlations(values, few, knn)})


if __name__ == "__main__":
    main()
