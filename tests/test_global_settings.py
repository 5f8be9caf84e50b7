"""Global settings change no result, and a public call leaves them as they were.

`CASES` has a computation for each public name: a new name needs a case, or a line in `NOTHING`.
"""

import importlib
import multiprocessing
import os
import pickle
import pkgutil
import random
import signal
import sys
import tempfile
import threading
import warnings
from contextlib import ExitStack, contextmanager
from pathlib import Path

import matplotlib
import networkx as nx
import numpy as np
import pandas
import polars  # noqa: F401  # its import sets variables of the environment
import pytest
import sklearn
import torch
from PIL import Image
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

import skcontrast
from skcontrast import (
    ContrastiveClassifier,
    GroupWhitening,
    LabeledFolds,
    ViewWhitening,
    contrastive_loss,
    encoders,
    estimation,
    features,
    frameworks,
    graphs,
    kinds,
    losses,
    metrics,
    plotting,
    similarity,
)
from skcontrast import augmentation as augmentations
from skcontrast.callbacks import Evaluation
from skcontrast.datasets import ImageFolder, Modalities
from skcontrast.optimizers import Optimizer
from skcontrast.schedules import Auto, CosineDecay, Linear, Steps, at_progress
from tests.augmentation.common import BUILT_IN, VECTOR_AUGMENTATIONS
from tests.common import LOSSES, Trains, images, random_views, small, vectors

MODULES = [module.name for module in pkgutil.iter_modules(skcontrast.__path__)]
# Their names are imported from the package.
PACKAGES = [name for name in MODULES if name[0] != "_" and name not in ("classifier", "embedder")]
NAMES = [
    f"{package}{name}"
    for package in ("", *(f"{package}." for package in PACKAGES))
    for name in importlib.import_module(f"skcontrast.{package}".rstrip(".")).__all__
]


# What a program sets, and what belongs to it


@contextmanager
def default_dtype(dtype):
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


SETTINGS = {
    "pandas": lambda: sklearn.config_context(transform_output="pandas"),
    "polars": lambda: sklearn.config_context(transform_output="polars"),
    "float64": lambda: default_dtype(torch.float64),
    "meta": lambda: torch.device("meta"),
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    "inference": torch.inference_mode,
    "no_grad": torch.no_grad,
}
# Settings that do not hide each other, as float64 would hide autocast.
TOGETHER = [["pandas", "autocast", "inference"], ["polars", "float64", "no_grad", "meta"]]


@contextmanager
def under(*names):
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(SETTINGS[name]())
        yield


def state():
    """Return by name what a program and its libraries share."""
    handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
    return {
        "numpy's generator": pickle.dumps(np.random.get_state()),  # noqa: NPY002
        "Python's generator": random.getstate(),
        "torch's generator": torch.default_generator.get_state().numpy().tobytes(),
        "seeds that wait for CUDA": vars(torch.cuda._lazy_seed_tracker).copy(),
        "calls that wait for CUDA": len(torch.cuda._queued_calls),
        "threads": {thread.ident for thread in threading.enumerate()},
        "processes": len(multiprocessing.active_children()),
        "threads of torch": torch.get_num_threads(),
        "dtype and device": (torch.get_default_dtype(), torch.get_default_device()),
        "autocast": (torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")),
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


# A case for each public name: its function gets an empty folder, and returns what it computes

X = vectors(30)
Y = np.arange(30) % 2
X[:, 0] += 2 * Y
FEW = np.where(np.arange(30) < 12, Y, -1)
COLOURED = images(12, side=8)
COLOURS = torch.rand(4, 3, 8, 8, requires_grad=True)
GREY = images(12, channels=1, side=16)
PICTURES = images(30)
SERIES = np.random.default_rng(0).normal(size=(20, 1, 40)).cumsum(2)
GRAPHS = [nx.gnp_random_graph(6, 0.5, seed=k) for k in range(12)]
SAMPLES = {"images": COLOURED, "series": SERIES, "graphs": GRAPHS}
PAIR = Modalities(X, X[:, :3])
Z1, Z2 = random_views(12, 4, dtype=torch.float32)
LABELS = torch.arange(12) % 3
CONCENTRATED = similarity.VonMisesFisher()
NETWORK = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())
FITTED = small().fit(X)
SAMPLE = estimation.ScoreSample.from_views(Z1, Z2, y=np.arange(12) % 3)
RANKS = np.random.default_rng(0).uniform(size=400) ** 2
PACKED = graphs.pack_graphs(GRAPHS)
GRAPH_BATCH = kinds.Graphs().scaler().fit(PACKED).to_tensor(PACKED, "cpu")


def seeded():
    return torch.Generator().manual_seed(0)


def fitted(X=X, y=None, **params):
    return lambda folder: small(**params).fit(X, y).transform(X)


def augmented(augmentation, X):
    def compute(folder):
        embedder = small(encoder=None, augmentation=augmentation)
        views = embedder.views(X, random_state=0)
        if not isinstance(X, np.ndarray):
            return views
        batch = torch.from_numpy(X).float() / abs(X).max()
        return views, clone(augmentation).fit(X).augment(batch, seeded())

    return compute


def as_features(transformer, X):
    return lambda folder: clone(transformer).fit_transform(X)


def encoded(encoder, X):
    return as_features(features.Frozen(encoder, random_state=0), X)


def of_loss(loss):
    """Return what computes a loss, also of a custom subclass, and what `check_loss` says."""

    def compute(folder):
        losses.check_loss(loss)
        labels = {"y": LABELS, "queue_y": LABELS} if loss.requires_y else {}
        return [
            contrastive_loss(Z1, Z2, loss=loss, y=labels.get("y")),
            contrastive_loss(Z1, Z2, loss=loss, queue=Z2.flip(0), **labels),
        ]

    return compute


def of_similarity(chosen):
    z = [torch.cat([z, 1 + z[:, :1].square()], 1) if chosen.n_extra else z for z in (Z1, Z2)]
    return lambda folder: (chosen(*z), contrastive_loss(*z, similarity=chosen))


def drawn(make):
    def compute(folder):
        matplotlib.use("Agg")
        ax = make().ax_
        result = [line.get_xydata() for line in ax.lines]
        result += [points.get_offsets() for points in ax.collections]
        result += [image.get_array() for image in ax.images]
        matplotlib.pyplot.close("all")
        return result

    return compute


def saved(folder):
    skcontrast.save(FITTED, folder / "model")
    return np.frombuffer((folder / "model").read_bytes(), np.uint8)


def loaded(folder):
    skcontrast.save(FITTED, folder / "model")
    return skcontrast.load(folder / "model").partial_fit(X).transform(X)


def exported(folder):
    onnxruntime = pytest.importorskip("onnxruntime")
    skcontrast.export(FITTED, folder / "model.onnx", X)
    return onnxruntime.InferenceSession(folder / "model.onnx").run(None, {"X": X})


def read_folder(folder):
    for k, image in enumerate(COLOURED):
        (folder / str(k % 2)).mkdir(exist_ok=True)
        Image.fromarray(image.transpose(1, 2, 0)).save(folder / str(k % 2) / f"{k}.png")
    dataset = ImageFolder(folder, size=8)
    return dataset.load(), features.Raw().fit_transform(dataset)


def queued(folder):
    queue = frameworks.KeyQueue(n_slots=4, n_keys=1, width=4, n_samples=12)
    queue.push(Z1[:, None], rows=torch.arange(12, device="cpu"))
    return queue.filled()


def graph_batch(folder):
    kept = GRAPH_BATCH[:6].keep(torch.ones(36, dtype=torch.bool, device="cpu"))
    masked = kept.mask(torch.zeros(36, dtype=torch.bool, device="cpu"))
    both = torch.cat([masked, kept.with_edges(kept.edge_index)])
    return both.x, both.edge_index, both.batch


def compared(folder):
    y = np.repeat(Y, 2)
    X = vectors(60) + y[:, None]
    return metrics.compare_with_baselines(FITTED, X, y, n_labels=2, n_repeats=2, random_state=0)


def scored(measure, *args):
    """Return a measure of arrays, and of an embedder: as an array, a scorer and a DataFrame."""

    def compute(folder):
        embeddings = FITTED.transform(X)
        if args:
            return measure(embeddings, *args), measure(FITTED, X, *args)
        if measure.__name__ in ("uniformity", "effective_rank"):
            return measure(embeddings), measure(FITTED, X)
        return measure(embeddings, FITTED.transform(X + 0.1)), measure(FITTED, X)

    return compute


def noisy(x):
    return x + torch.rand_like(x)


class Own(losses.Loss):
    def losses(self, rows):
        return rows.scores.logsumexp(1) - rows.positives.mean(1)


class Column(kinds.Kind):
    name = "columns"

    def check(self, X):
        return np.sort(np.asarray(X, dtype=np.float64), axis=1)

    def to_tensor(self, X, device):
        return torch.tensor(X, device=device, dtype=torch.float32)


class Means(features.Features):
    kind = "images"

    def learn(self, batch, rng):
        return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())


def checked(check, *args):
    return lambda folder: check(*args)


CASES = {
    "ContrastiveEmbedder": lambda folder: [
        FITTED.transform(X),
        small().fit(X).partial_fit(X).transform(X),
        FITTED.score(X),
        *FITTED.views(X, random_state=0),
        small(output="projection").fit(X).transform(X),
    ],
    "ContrastiveClassifier": lambda folder: [
        ContrastiveClassifier(embedder, classifier, random_state=0).fit(X, FEW).predict_proba(X)
        for embedder, classifier in (
            (FITTED, None),
            (
                clone(FITTED).set_output(transform="pandas"),
                make_pipeline(StandardScaler(), LogisticRegression()).set_output(
                    transform="pandas"
                ),
            ),
        )
    ],
    "ViewWhitening": lambda folder: [
        ViewWhitening(transformer, random_state=0).fit_transform(X)
        for transformer, X in (
            (features.MiniRocket(random_state=0), SERIES),
            (features.PatchDictionary(n_patches=4, random_state=0), GREY),
            (features.GraphProfile(), GRAPHS),
            (StandardScaler(), X),
        )
    ],
    "GroupWhitening": lambda folder: [
        GroupWhitening().fit(X, groups=groups).transform(X)
        for groups in (np.arange(30) // 3, None)
    ],
    "LabeledFolds": lambda folder: list(LabeledFolds(2).split(X, FEW)),
    "contrastive_loss": lambda folder: contrastive_loss(Z1, Z2),
    "rows_to_label": lambda folder: skcontrast.rows_to_label(
        FITTED.transform(X), 5, random_state=0
    ),
    "save": saved,
    "load": loaded,
    "export": exported,
    **{
        f"augmentation.{type(one).__name__}": augmented(one, X)
        for X, few in (
            (X, [*VECTOR_AUGMENTATIONS, augmentations.FunctionAugmentation(noisy)]),
            *((SAMPLES[kind], few) for kind, few in BUILT_IN.items()),
        )
        for one in few
    },
    "augmentation.SimCLRAugmentation": lambda folder: small(
        augmentation=augmentations.SimCLRAugmentation()
    ).views(COLOURED, random_state=0),
    "augmentation.PerModality": lambda folder: [
        view.modalities
        for view in small(
            framework=frameworks.CMC(),
            augmentation=augmentations.PerModality(
                [augmentations.GaussianNoise(), augmentations.GaussianNoise()]
            ),
        ).views(PAIR, random_state=0)
    ],
    "augmentation.Unflatten": as_features(augmentations.Unflatten((1, 5)), X),
    "augmentation.Views": fitted(augmentations.GaussianNoise().fit_transform(X)),
    "augmentation.check_augmentation": checked(
        augmentations.check_augmentation, augmentations.TimeWarp(), SERIES
    ),
    "augmentation.compose": lambda folder: augmentations.compose(
        [augmentations.RandomFlip(), augmentations.ColorJitter(), augmentations.GaussianBlur()],
        (3, 8, 8),
    )(torch.from_numpy(COLOURED), seeded()),
    "augmentation.image_symmetries": lambda folder: vars(
        augmentations.image_symmetries(images(600, channels=1, side=16), random_state=0)
    ),
    "callbacks.Evaluation": lambda folder: (
        small(callbacks=[Evaluation(metrics.knn_accuracy, X, Y)])
        .fit(X)
        .history_[:, "knn_accuracy"]
    ),
    "datasets.ImageFolder": read_folder,
    "datasets.Modalities": lambda folder: PAIR[3:5].modalities,
    "encoders.GIN": encoded(encoders.GIN(4, 1), GRAPHS),
    "encoders.MLP": encoded(encoders.MLP((8,)), X),
    "encoders.ConvNet": encoded(encoders.ConvNet(widths=(4,)), COLOURED),
    "encoders.ResNet": encoded(encoders.ResNet(), COLOURED),
    "encoders.PatchNet": encoded(encoders.PatchNet(), GREY),
    "encoders.SeriesNet": fitted(SERIES, encoder=encoders.SeriesNet(), max_epochs=1),
    "encoders.Pretrained": fitted(
        COLOURED, encoder=encoders.Pretrained(NETWORK, mean=0.5, std=0.5), max_epochs=1
    ),
    "encoders.check_encoder": checked(encoders.check_encoder, encoders.MLP((8,)), X),
    "estimation.ScoreSample": lambda folder: estimation.ScoreSample.from_views(
        Z1, Z2.numpy(), y=np.arange(12) % 3
    ),
    "estimation.alpha_from_auc": lambda folder: estimation.alpha_from_auc(0.75, 0.01),
    "estimation.estimate_alpha_and_tau_plus": lambda folder: (
        estimation.estimate_alpha_and_tau_plus(RANKS)
    ),
    "estimation.estimate_soft_ring": lambda folder: estimation.estimate_soft_ring(SAMPLE),
    "estimation.importance_weights": lambda folder: estimation.importance_weights(
        losses.BCL(), SAMPLE
    ),
    "estimation.macro_auc": lambda folder: estimation.macro_auc(Z1, Z2, y=np.arange(12) % 3),
    "estimation.negative_bias": lambda folder: estimation.negative_bias(losses.BCL(), SAMPLE),
    "estimation.positive_ranks": lambda folder: estimation.positive_ranks(Z1, Z2),
    "estimation.project_views": lambda folder: estimation.project_views(FITTED, X),
    "estimation.push_share": lambda folder: estimation.push_share(losses.BCL(), SAMPLE),
    "estimation.reliability": lambda folder: estimation.reliability(losses.BCL(), SAMPLE),
    "estimation.tau_plus_from_labels": lambda folder: estimation.tau_plus_from_labels(Y),
    "features.Features": as_features(Means(), COLOURED),
    "features.Frozen": encoded(encoders.MLP((8,)), X),
    "features.GraphProfile": as_features(features.GraphProfile(), GRAPHS),
    "features.MiniRocket": as_features(features.MiniRocket(random_state=0), SERIES),
    "features.OrientedGradients": as_features(features.OrientedGradients(), GREY),
    "features.PartialWhitening": as_features(features.PartialWhitening(random_state=0), X),
    "features.PatchDictionary": as_features(
        features.PatchDictionary(n_patches=4, random_state=0), GREY
    ),
    "features.Raw": as_features(features.Raw(), X),
    "features.WeisfeilerLehman": as_features(features.WeisfeilerLehman(), GRAPHS),
    "frameworks.CMC": fitted(PAIR, framework=frameworks.CMC()),
    "frameworks.Framework": fitted(framework=Trains()),
    "frameworks.InfoGraph": fitted(
        GRAPHS, encoder=encoders.GIN(4, 1), framework=frameworks.InfoGraph(), max_epochs=1
    ),
    "frameworks.KeyQueue": queued,
    "frameworks.MoCo": fitted(framework=frameworks.MoCo(queue_size=16)),
    "frameworks.SimCLR": fitted(framework=frameworks.SimCLR()),
    "frameworks.check_framework": checked(frameworks.check_framework, frameworks.MoCo(16)),
    "frameworks.in_batch": lambda folder: vars(frameworks.in_batch(torch.stack([Z1, Z2]))),
    "graphs.GraphBatch": graph_batch,
    "graphs.PackedGraphs": lambda folder: (PACKED[3:6].arrays(), PACKED.sizes),
    "graphs.pack_graphs": lambda folder: graphs.pack_graphs(GRAPHS).arrays(),
    "kinds.Graphs": fitted(GRAPHS, encoder=None, kind=kinds.Graphs(), max_epochs=1),
    "kinds.Images": fitted(COLOURED, encoder=None, kind=kinds.Images(), max_epochs=1),
    "kinds.Kind": fitted(
        kind=Column(), augmentation=augmentations.FunctionAugmentation(noisy, kind=Column())
    ),
    "kinds.MultimodalKind": fitted(PAIR, framework=frameworks.CMC(), max_epochs=1),
    "kinds.Series": fitted(SERIES, encoder=None, kind=kinds.Series(), max_epochs=1),
    "kinds.TensorBatch": lambda folder: torch.cat(
        [kinds.TensorBatch(z=Z1), kinds.TensorBatch(z=Z2)[2:4]]
    )["z"],
    "kinds.Vectors": fitted(kind=kinds.Vectors()),
    "kinds.check_kind": checked(kinds.check_kind, Column(), X),
    "losses.Loss": of_loss(Own()),
    **{f"losses.{type(loss).__name__}": of_loss(loss) for loss in LOSSES},
    "losses.check_loss": of_loss(losses.InfoNCE()),
    "metrics.alignment": scored(metrics.alignment),
    "metrics.compare_paired": lambda folder: metrics.compare_paired(X[:, 0], X[:, 1]),
    "metrics.compare_with_baselines": lambda folder: compared(folder).scores,
    "metrics.effective_rank": scored(metrics.effective_rank),
    "metrics.few_label_accuracy": lambda folder: metrics.few_label_accuracy(
        FITTED.transform(X), Y, n_labels=2, n_draws=2, random_state=0
    ),
    "metrics.knn_accuracy": scored(metrics.knn_accuracy, Y),
    "metrics.linear_probe": scored(metrics.linear_probe, Y),
    "metrics.make_embedding_scorer": lambda folder: metrics.make_embedding_scorer(
        metrics.linear_probe
    )(FITTED, X, Y),
    "metrics.make_view_scorer": lambda folder: metrics.make_view_scorer(
        metrics.alignment, augmentation=augmentations.GaussianNoise()
    )(FITTED, X),
    "metrics.map_at_r": scored(metrics.map_at_r, Y),
    "metrics.neighbor_agreement": scored(metrics.neighbor_agreement),
    "metrics.recall_at_k": scored(metrics.recall_at_k, Y),
    "metrics.uniformity": scored(metrics.uniformity),
    "optimizers.Optimizer": fitted(optimizer=Optimizer("adamw", betas=(0.9, 0.95))),
    "plotting.BaselinesDisplay": drawn(lambda: plotting.BaselinesDisplay(compared(None)).plot()),
    "plotting.EmbeddingDisplay": drawn(
        lambda: plotting.EmbeddingDisplay.from_estimator(FITTED, X, Y, method="pca")
    ),
    "plotting.ReliabilityDisplay": drawn(
        lambda: plotting.ReliabilityDisplay.from_sample(SAMPLE, {"BCL": losses.BCL()})
    ),
    "plotting.RetrievalDisplay": drawn(
        lambda: plotting.RetrievalDisplay.from_estimator(
            FITTED, X, pictures=PICTURES, queries=[0, 1], n_neighbors=4
        )
    ),
    "plotting.ViewsDisplay": drawn(
        lambda: plotting.ViewsDisplay.from_estimator(small(), GREY, rows=range(3), random_state=0)
    ),
    "schedules.Auto": lambda folder: (
        small(loss=losses.BCL(alpha=Auto(), tau_plus="auto")).fit(X, Y).estimates_
    ),
    "schedules.CosineDecay": lambda folder: CosineDecay(2.0)(0.3),
    "schedules.Linear": lambda folder: Linear(0.5, 0.9)(0.25),
    "schedules.Steps": lambda folder: Steps([0.5, 0.7], milestones=[0.75])(0.8),
    "schedules.at_progress": lambda folder: (
        at_progress(losses.DCL(tau_plus=Linear(0.0, 0.4)), 0.3).tau_plus
    ),
    **{
        f"similarity.{type(chosen).__name__}": of_similarity(chosen)
        for chosen in (
            similarity.Cauchy(),
            similarity.Cosine(),
            similarity.DotProduct(),
            CONCENTRATED,
        )
    },
    "similarity.check_similarity": checked(similarity.check_similarity, similarity.Cauchy()),
}
ABSTRACT = "subclasses compute: the cases of the package are theirs"
RESULT = "holds the result of a function, which has a case"
WITHIN = "is used in a fit: the cases of the frameworks have it"
NOTHING = {
    "__version__": "is a string",
    "augmentation.Augmentation": ABSTRACT,
    "augmentation.AugmentationDropped": "is a warning",
    "augmentation.ImageSymmetries": RESULT,
    "callbacks.CollapseWarning": "is a warning",
    "encoders.Encoder": ABSTRACT,
    "estimation.Estimate": RESULT,
    "estimation.Reliability": RESULT,
    "frameworks.Batch": WITHIN,
    "frameworks.Contrast": WITHIN,
    "frameworks.FitContext": WITHIN,
    "frameworks.MomentumNetwork": WITHIN,
    "frameworks.Session": WITHIN,
    "losses.PseudoLabels": "`fit` reads it: the case of SemiSupCon has it",
    "losses.Rows": "a loss gets it: the cases of the losses have it",
    "metrics.BaselineComparison": RESULT,
    "metrics.EstimatedAccuracy": RESULT,
    "metrics.GroupAgreement": RESULT,
    "metrics.PairedComparison": RESULT,
    "schedules.Schedule": ABSTRACT,
    "schedules.interval": "declares a parameter",
    "similarity.Similarity": ABSTRACT,
}
# Cases of a second: among the fast tests, the first settings only.
SLOW = {"export", "augmentation.image_symmetries"}


def test_every_public_name_has_a_case_or_computes_nothing():
    assert set(NAMES) == CASES.keys() | NOTHING.keys()
    assert not CASES.keys() & NOTHING.keys()


# The sweep


def as_arrays(result):
    """Return all arrays in a result, in order."""
    if isinstance(result, torch.Tensor):
        return [result.detach().numpy()]
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, graphs.PackedGraphs):
        result = result.arrays()
    if isinstance(result, (list, tuple)):
        return [array for one in result for array in as_arrays(one)]
    return [] if result is None else [np.asarray(result)]


def check(name, folder, combinations):
    """Check that settings change neither a bit of a case, nor themselves."""

    def new_folder():
        return Path(tempfile.mkdtemp(dir=folder))

    expected = as_arrays(CASES[name](new_folder()))
    for settings in combinations:
        with under(*settings):
            before = state()
            found = as_arrays(CASES[name](new_folder()))
            changed = {key for key, value in state().items() if value != before[key]}
        assert not changed, (name, settings)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other, err_msg=f"{name} {settings}")
            assert one.dtype == other.dtype, (name, settings)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_settings_change_no_bit_of_what_a_name_computes(name, tmp_path):
    check(name, tmp_path, TOGETHER[:1] if name in SLOW else TOGETHER)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("setting", SETTINGS)
def test_a_setting_alone_changes_no_bit(setting, tmp_path):
    for name in CASES:
        check(name, tmp_path, [[setting]])


def failing(**params):
    with pytest.raises(ValueError, match=r"'lr'|diverged"):
        small(**params).fit(X)


# Calls without a seed, and what the cases leave out.
CALLS = {
    "fit with dropout": lambda folder: small(encoder=encoders.MLP(4, dropout=0.5)).fit(X),
    "fit without a seed": lambda folder: small(random_state=None, callbacks=[]).fit(X),
    "fit with a checkpoint": lambda folder: small(checkpoint=folder).fit(X),
    "views": lambda folder: FITTED.views(X),
    "classifier": lambda folder: ContrastiveClassifier(small()).fit(X, FEW).predict(X),
    "augment": lambda folder: augmentations.GaussianNoise().fit(X).augment(torch.as_tensor(X)),
    "function": lambda folder: small(
        augmentation=augmentations.FunctionAugmentation(torch.rand_like)
    ).fit(X),
    "symmetries": lambda folder: augmentations.image_symmetries(GREY),
    "features": lambda folder: features.PatchDictionary(n_patches=4).fit_transform(GREY),
    "features of series": lambda folder: features.MiniRocket().fit_transform(SERIES),
    "probe": lambda folder: metrics.few_label_accuracy(X, Y, n_labels=2),
    "an error": lambda folder: failing(lr=-1),
    "divergence": lambda folder: failing(lr=1e30, optimizer="sgd"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_a_call_leaves_what_belongs_to_the_process_as_it_was(name, tmp_path):
    CALLS[name](tmp_path)  # what is imported now may set something, once
    for settings in ([], ["pandas", "float64", "no_grad"]):
        with under(*settings):
            before = state()
            CALLS[name](tmp_path)
            assert not {key for key, value in state().items() if value != before[key]}


# What the caller gets


TRANSFORMERS = {
    "embedder": (small(), X),
    "classifier": (ContrastiveClassifier(small(), random_state=0), X),
    "whitening": (ViewWhitening(features.Raw(), random_state=0), X),
    "partial whitening": (features.PartialWhitening(random_state=0), X),
    "features": (features.GraphProfile(), GRAPHS),
}


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("name", TRANSFORMERS)
def test_a_transformer_returns_the_dataframe_that_is_asked_for(name, library):
    transformer, samples = TRANSFORMERS[name]
    y = FEW if name == "classifier" else None
    index = [f"row {k}" for k in range(len(samples))]
    given = pandas.DataFrame(samples, index) if samples is X else pandas.Series(samples, index)
    expected = clone(transformer).fit(given, y).transform(given)
    with sklearn.config_context(transform_output=library):
        by_config = clone(transformer).fit(given, y)
        frames = [by_config.transform(given), clone(transformer).fit(given, y).transform(given)]
    frames.append(clone(transformer).set_output(transform=library).fit(given, y).transform(given))
    for frame in frames:
        assert type(frame).__module__.startswith(library)
        assert list(frame.columns) == list(by_config.get_feature_names_out())
        assert library == "polars" or list(frame.index) == index
        np.testing.assert_array_equal(frame, expected)


def test_the_output_of_steps_within_is_that_of_their_own_configuration():
    """A step gets arrays, unless the step before it has `set_output`."""
    received = []

    class Recording(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            received.append(type(X))
            return super().fit(X, y, sample_weight)

    def kinds_received(classifier):
        received.clear()
        ContrastiveClassifier(FITTED, classifier, random_state=0).fit(X, FEW)
        return set(received)

    with under("pandas"):
        assert kinds_received(Recording()) == {np.ndarray}
        assert kinds_received(make_pipeline(StandardScaler(), Recording())) == {np.ndarray}
        scaler = StandardScaler().set_output(transform="pandas")
        assert kinds_received(make_pipeline(scaler, Recording())) == {pandas.DataFrame}


def test_what_was_fitted_under_settings_trains_and_is_saved_as_otherwise(tmp_path):
    def results(*settings):
        embedder = small(warm_start=True, max_epochs=1)
        with under(*settings):
            embedder.fit(X)
            skcontrast.save(embedder, tmp_path / "model")
            copies = [embedder, skcontrast.load(tmp_path / "model")]
            pickled = pickle.dumps(embedder)
        copies += [skcontrast.load(tmp_path / "model"), pickle.loads(pickled)]
        for copy in copies:
            parameters = list(copy.encoder_.parameters())
            assert not any(p.is_inference() or p.dtype != torch.float32 for p in parameters)
        return [[copy.transform(X), copy.fit(X).transform(X)] for copy in copies]

    expected = results()
    for settings in TOGETHER:
        np.testing.assert_array_equal(results(*settings), expected)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
def test_a_loss_in_the_loop_of_the_caller_keeps_its_gradient(dtype):
    def slope():
        views = [z.clone().requires_grad_() for z in (Z1, Z2)]
        contrastive_loss(*views, loss=losses.BCL()).backward()
        return views[0].grad

    expected = slope()
    with default_dtype(dtype), under("pandas", "autocast"):
        assert torch.equal(slope(), expected)
    for setting in ("inference", "no_grad"):
        with under(setting):
            leaf = torch.ones(12, 4, requires_grad=True)
            assert not contrastive_loss(leaf, Z2).requires_grad
            assert not augmentations.RandomFlip().augment(COLOURS).requires_grad
    assert augmentations.RandomFlip().augment(COLOURS).requires_grad
