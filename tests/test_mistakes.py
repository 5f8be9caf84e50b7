"""Likely mistakes, and what their messages must hold: the place, or the line that works."""

import tempfile
import warnings

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from skorch.callbacks import LRScheduler
from torch import nn
from torch.utils.data import Dataset

import skcontrast
from skcontrast import (
    ContrastiveClassifier,
    ContrastiveEmbedder,
    LabeledFolds,
    contrastive_loss,
    losses,
)
from skcontrast._checks._names import ELSEWHERE  # private: the table that the messages read
from skcontrast.augmentation import AugmentationDropped, GaussianNoise
from skcontrast.callbacks import Evaluation
from skcontrast.datasets import ImageFolder
from skcontrast.encoders import MLP, Pretrained
from skcontrast.losses import BCL, DCL, InfoNCE
from skcontrast.metrics import knn_accuracy
from skcontrast.plotting import EmbeddingDisplay
from skcontrast.similarity import Cosine
from tests.common import X_DIGITS, small, vectors

X = vectors(40, 5)
Y = np.arange(40) % 2
IMAGES = X_DIGITS.reshape(-1, 8, 8)
TABLE = pd.DataFrame(X, columns=list("abcde"))
FEW = np.where(np.arange(40) < 8, Y, -1)
Z1, Z2 = torch.randn(2, 8, 4, generator=torch.Generator().manual_seed(0))


def fit(X=X, y=None, **parameters):
    return small(**parameters).fit(X, y)


def search(grid, **parameters):
    pipe = Pipeline([("embed", small(**parameters)), ("lr", LogisticRegression())])
    return GridSearchCV(pipe, grid, cv=2, error_score="raise").fit(X, Y)


def folder():
    """Return a folder that holds an image."""
    path = tempfile.mkdtemp()
    Image.new("RGB", (6, 4)).save(f"{path}/a.png")
    return path


class Cut(Dataset):
    """Has an item that cannot be read."""

    def __len__(self):
        return 20

    def __getitem__(self, i):
        if i == 7:
            raise OSError("image file is truncated")
        return X[i]


def path_graph(x):
    graph = nx.path_graph(4)
    nx.set_node_attributes(graph, x, "x")
    return graph


# What is called, and the words that its message must hold.
MISTAKES = [
    # Parameters that are elsewhere.
    (lambda: ContrastiveEmbedder(temperature=0.5), "similarity=Cosine(temperature=...)"),
    (lambda: ContrastiveEmbedder(tau_plus=0.1), "loss=DCL(tau_plus=...)"),
    (lambda: ContrastiveEmbedder(alpha=0.9), "loss=BCL(alpha=...)"),
    (lambda: ContrastiveEmbedder(beta=0.9), "loss=HCL(beta=...)"),
    (lambda: ContrastiveEmbedder(c=0.9), "loss=PUCL(c=...)"),
    (lambda: ContrastiveEmbedder(queue_size=64), "framework=MoCo(queue_size=...)"),
    (lambda: ContrastiveEmbedder(learning_rate=0.1), "Did you mean 'lr'?"),
    (lambda: ContrastiveEmbedder(epochs=3), "Did you mean 'max_epochs'?"),
    (lambda: ContrastiveEmbedder(batch=3), "Did you mean 'batch_size'?"),
    (lambda: ContrastiveEmbedder(embedding_dim=3), "Did you mean 'n_components'?"),
    (lambda: ContrastiveEmbedder(seed=3), "Did you mean 'random_state'?"),
    (lambda: ContrastiveEmbedder(backbone=nn.Identity()), "Did you mean 'encoder'?"),
    (lambda: ContrastiveEmbedder(early_stopping=True), "Evaluation(scoring, X, y, patience=...)"),
    (lambda: ContrastiveEmbedder(hidden_dim=8), "encoder=MLP(widths=...)"),
    (lambda: ContrastiveEmbedder(amp=True), "precision='bf16'"),
    (lambda: ContrastiveClassifier(max_epochs=3), "embedder=ContrastiveEmbedder(...)"),
    (lambda: ContrastiveClassifier(epochs=3), "embedder=ContrastiveEmbedder(max_epochs=...)"),
    (
        lambda: ContrastiveClassifier().set_params(temperature=3),
        "embedder=ContrastiveEmbedder(similarity=Cosine(temperature=...)), in a search "
        "embedder__similarity__temperature",
    ),
    (lambda: InfoNCE(temperature=0.5), "similarity=Cosine(temperature=...)"),
    (lambda: DCL(alpha=0.9), "loss=BCL(alpha=...)"),
    (lambda: DCL(tau=0.1), "Did you mean 'tau_plus'?"),
    (lambda: ContrastiveEmbedder(tau=0.1), "similarity=Cosine(temperature=...)"),
    (lambda: ContrastiveEmbedder(criterion=InfoNCE()), "Did you mean 'loss'?"),
    (lambda: MLP(zzz=1), "its parameters are widths"),
    (lambda: small().set_params(temperature=0.5), "in a search similarity__temperature"),
    (lambda: small().set_params(learning_rate=0.5), "Did you mean 'lr'?"),
    (lambda: contrastive_loss(Z1, Z2, temperature=0.5), "similarity=Cosine(temperature=...)"),
    (lambda: contrastive_loss(Z1, Z2, alpha=0.5), "loss=BCL(alpha=...)"),
    (lambda: contrastive_loss(Z1, Z2, labels=Y), "Did you mean 'y'?"),
    (lambda: contrastive_loss(Z1, Z2, BCL()), "pass loss=BCL()"),
    (lambda: contrastive_loss(Z1, Z2, Cosine()), "pass similarity=Cosine()"),
    (lambda: search({"embed__temperature": [0.5]}), "in a search similarity__temperature"),
    (lambda: search({"embed__alpha": [0.5]}), "loss=BCL(alpha=...), in a search loss__alpha"),
    (lambda: search({"embed__epochs": [1]}), "Did you mean 'max_epochs'?"),
    (lambda: search({"embed__loss__temperature": [1]}), "in a search similarity__temperature"),
    (lambda: search({"embed__loss__alpha": [1]}), "pass an object as loss first, such as BCL()"),
    (
        lambda: small(callbacks=[("rate", LRScheduler())]).set_params(callbacks__rate__policy="x"),
        "set the list",
    ),
    # Values of another type.
    (lambda: fit(similarity=0.1), "Write similarity=Cosine(0.1)"),
    (lambda: fit(similarity="cosine"), "Write similarity=Cosine()"),
    (lambda: fit(loss="infonce"), "Write loss=InfoNCE()"),
    (lambda: fit(loss="SimCLR"), "Write loss=InfoNCE()"),
    (lambda: fit(loss="nt_xent"), "Write loss=InfoNCE()"),
    (lambda: fit(loss="debiased"), "Write loss=DCL()"),
    (lambda: fit(loss="hard"), "Write loss=HCL()"),
    (lambda: fit(loss=BCL), "Write loss=BCL()"),
    (lambda: fit(loss="magic"), "Choose from BCL(), DCL(),"),
    (lambda: fit(framework="moco"), "Write framework=MoCo()"),
    (lambda: fit(similarity="dot_product"), "Write similarity=DotProduct()"),
    (lambda: fit(augmentation="random_flip"), "Write augmentation=RandomFlip()"),
    (lambda: fit(lr_schedule="Cosine"), "Did you mean 'cosine'"),
    (lambda: fit(precision="BF16"), "Did you mean 'bf16'"),
    (lambda: fit(kind="image"), "Did you mean 'images'?"),
    (lambda: fit(lr_schedule="linear"), "Write lr_schedule=Linear()"),
    (lambda: fit(loss=nn.CrossEntropyLoss()), "Derive a class from Loss"),
    (lambda: fit(IMAGES, encoder="resnet18"), "Write encoder=Pretrained('resnet18')"),
    (lambda: fit(IMAGES, encoder="convnet"), "Write encoder=ConvNet()"),
    (lambda: fit(IMAGES, augmentation="crop"), "RandomResizedCrop()"),
    (lambda: fit(IMAGES, encoder=nn.Linear(64, 8)), "Put torch.nn.Flatten() before it"),
    (lambda: fit(encoder=nn.Linear(5, 8).double()), "weights in float64: pass it after .float()"),
    (lambda: fit(np.empty((0, 3, 16, 16))), "X is empty"),
    (
        lambda: fit(y=np.where(Y == 1, "-1.0", "a"), loss=losses.SupCon()),
        "the string '-1.0': rename it",
    ),
    (lambda: fit(device="gpu"), "must be 'auto', 'cpu', 'cuda', 'cuda:N' or 'mps'"),
    (lambda: fit(device="cuda:99"), "device='auto' uses"),
    (lambda: fit(precision="bfloat16"), "Mixed precision is 'bf16'"),
    (lambda: fit(precision="float16"), "Mixed precision is 'bf16'"),
    (lambda: fit(precision="amp"), "Mixed precision is 'bf16'"),
    (lambda: fit(precision=torch.float16), "Mixed precision is 'bf16'"),
    (lambda: fit(loss=DCL(tau_plus=10)), "It is a probability, such as 1/10 for ten classes"),
    (lambda: fit(optimizer="Adam"), "Did you mean 'adam'?"),
    (lambda: fit(callbacks=Evaluation(None, X)), "must be an instance of 'list'"),
    (lambda: fit(callbacks=[Evaluation(X, Y)]), "such as Evaluation(knn_accuracy, X, y)"),
    (lambda: ImageFolder(folder(), size=(3, 64, 64)), "an int or (height, width)"),
    # Samples in another form.
    (lambda: fit([]), "X is empty"),
    (lambda: fit(pd.DataFrame()), "X is empty"),
    (lambda: fit(X[0]), "X[None] is one sample, X[:, None] one feature"),
    (lambda: fit(list(X[0])), "X[None] is one sample"),
    (lambda: fit(torch.from_numpy(X[0])), "X[None] is one sample"),
    (lambda: fit(TABLE).transform(TABLE.iloc[0]), "table.iloc[[0]] is one row"),
    (lambda: fit(TABLE).transform(TABLE.where(TABLE > 0)), "SimpleImputer()"),
    (lambda: fit(TABLE).transform(TABLE.assign(e="n/k")), "must hold numbers, got 'n/k'"),
    (lambda: fit(np.where(X > 2, "n/k", X.astype(object))), "string to float: 'n/k'"),
    (lambda: fit(TABLE.to_dict("records")), "pass pandas.DataFrame(X)"),
    (lambda: fit(TABLE.to_dict("list")), "pass pandas.DataFrame(X)"),
    (lambda: fit((X, X)), "ContrastiveEmbedder(same_group='positive').fit("),
    (lambda: fit((X, Y)), "pass both, fit(X, y)"),
    (lambda: fit(Cut()), "This is item 7 of the Dataset in X"),
    (lambda: fit([path_graph("red")] * 8), "Categories go to the attribute 'label'"),
    # Classes.
    (lambda: LabeledFolds(5).split(X, FEW).__next__(), "n_splits=5 cannot be greater"),
    (lambda: ContrastiveClassifier(small()).fit(X, np.where(Y, "1", "-1")), "rename it"),
    (lambda: ContrastiveClassifier(small()).fit(X, 1 - 2 * Y), "np.where(y == -1, 0, y)"),
    (
        lambda: ContrastiveClassifier(small(), LogisticRegression).fit(X, FEW),
        "LogisticRegression()",
    ),
    (
        lambda: skcontrast.save(
            ContrastiveClassifier(fit(), LogisticRegression()).fit(
                X, np.array(["2020", "2021"], "M8[Y]")[Y]
            ),
            "a.safetensors",
        ),
        "classes",
    ),
    (lambda: EmbeddingDisplay.from_embeddings(X[:, :1]), "two columns or more"),
    (lambda: skcontrast.save(make_pipeline(small()), "a.safetensors"), "From a Pipeline, save"),
]


@pytest.mark.parametrize(("call", "words"), MISTAKES)
def test_a_mistake_is_answered_with_what_works(call, words):
    with pytest.raises(Exception) as error:
        call()
    message = " ".join([str(error.value), *getattr(error.value, "__notes__", [])])
    assert words in message
    assert "\n" not in message and len(message) < 500


def test_classes_may_be_strings_of_any_dtype():
    names = np.array(["a", "b"])[Y]
    model = ContrastiveClassifier(fit(), LogisticRegression())
    found = model.fit(X, names.astype(np.dtypes.StringDType())).predict(X)
    np.testing.assert_array_equal(found, model.fit(X, names).predict(X))


def test_what_is_to_be_written_instead_of_another_name_works():
    names = {**vars(losses), **vars(skcontrast.similarity), **vars(skcontrast.frameworks)}
    names |= vars(skcontrast.encoders) | globals()
    names |= {"network": nn.Identity(), "scoring": None, "y": None}
    for there in set(ELSEWHERE.values()):
        owner = ContrastiveClassifier if there.startswith("embedder") else ContrastiveEmbedder
        if there != "y":
            call = there.replace("(...)", "()") if "=" in there else f"{there}=1"
            eval(f"{owner.__name__}({call})", names)


@pytest.mark.parametrize(
    "call",
    [lambda: knn_accuracy(Y, X, Y, X), lambda: fit(X + 1j), lambda: fit(loss=np.zeros(1000))],
)
def test_no_array_is_printed(call):
    with pytest.raises((ValueError, TypeError)) as error:
        call()
    assert len(str(error.value)) < 320 and "\n" not in str(error.value)


def test_a_fit_says_each_warning_once():
    photographs = np.random.default_rng(0).integers(0, 256, (20, 3, 32, 32)).astype(np.uint8)
    network = nn.Conv2d(3, 8, 3, 2)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for _ in range(2):
            fit(photographs / 255**2, encoder=Pretrained(network, mean=0.5, std=0.5))
    said = [one for one in found if "divided by 255 twice" in str(one.message)]
    assert len(said) == 2


def test_views_that_two_methods_of_a_step_read_are_reported_once():
    pipe = make_pipeline(GaussianNoise(), StandardScaler(), small())
    with pytest.warns(AugmentationDropped, match="move GaussianNoise directly before") as found:
        pipe.fit(X)
    assert len(found) == 1
