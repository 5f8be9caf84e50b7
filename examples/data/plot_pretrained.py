"""
Starting from a pretrained network
==================================

A network that has learned to tell the digits 0 to 4 apart is trained further, without labels, on
the digits 5 to 9. Its first layers get a smaller learning rate than the new projection head, or
are frozen.

The result: with a hundred images to train on, the pretrained network starts where one with random
weights does not arrive in twelve epochs. Training it further gains one or two per cent. A small
learning rate or a frozen layer keeps it closer to where it was: safe, but not always best.
"""

# %%
# The pretrained network
# ----------------------
# It takes the place of a network from torchvision or timm, with weights from a file. It learns the
# digits 0 to 4 with labels; then ``Identity`` replaces its last layer.

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

from skcontrast import ContrastiveEmbedder
from skcontrast.kinds import Images
from skcontrast.optimizers import Optimizer


class Network(nn.Module):
    """Two stages and a classifier; pixels in [0, 1] are centred by the network itself."""

    def __init__(self, n_classes):
        super().__init__()
        self.layer1 = nn.Sequential(nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU())
        self.layer2 = nn.Sequential(nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU())
        self.fc = nn.Linear(64 * 4, n_classes)

    def forward(self, x):
        x = nn.functional.max_pool2d(self.layer1(2 * x - 1), 2)
        return self.fc(nn.functional.adaptive_avg_pool2d(self.layer2(x), 2).flatten(1))


digits = load_digits()
X, y = (digits.images / 16).astype(np.float32), digits.target
is_source = y < 5

torch.manual_seed(0)
pretrained = Network(n_classes=5)
optimizer = torch.optim.Adam(pretrained.parameters(), lr=1e-3)
images, classes = torch.from_numpy(X[is_source])[:, None], torch.from_numpy(y[is_source])
for _ in range(10):
    for rows in torch.randperm(len(images)).split(100):
        optimizer.zero_grad()
        nn.functional.cross_entropy(pretrained(images[rows]), classes[rows]).backward()
        optimizer.step()
pretrained.fc = nn.Identity()

# %%
# Three ways to train it further
# ------------------------------
# ``Images(standardize=False)`` passes on pixels in [0, 1], because the network has its own
# normalisation. ``partial_fit`` trains for one epoch, after which a classifier with five labels of
# each class judges the representation of the test digits.

X_train, X_test, y_train, y_test = train_test_split(
    X[~is_source],
    y[~is_source],
    train_size=100,
    test_size=400,
    stratify=y[~is_source],
    random_state=0,
)
rng = np.random.default_rng(0)
draws = [
    np.concatenate([rng.permutation(np.flatnonzero(y_train == k))[:5] for k in range(5, 10)])
    for _ in range(5)
]


def accuracy(H_train, H_test):
    """Return the mean accuracy over five draws of five labels of each class."""
    classifier = make_pipeline(StandardScaler(), RidgeClassifier(alpha=10.0))
    return np.mean(
        [classifier.fit(H_train[few], y_train[few]).score(H_test, y_test) for few in draws]
    )


scratch = Network(n_classes=5)
scratch.fc = nn.Identity()
frozen = Network(n_classes=5)
frozen.fc = nn.Identity()
frozen.load_state_dict(pretrained.state_dict())
frozen.layer1.requires_grad_(False)
slow = Optimizer("adam", param_groups=[("encoder.*", {"lr": 2e-4})])
embedders = {
    "random weights": ContrastiveEmbedder(scratch),
    "pretrained": ContrastiveEmbedder(pretrained),
    "pretrained, a fifth of the rate": ContrastiveEmbedder(pretrained, optimizer=slow),
    "pretrained, layer1 frozen": ContrastiveEmbedder(frozen),
}
curves = {}
for name, embedder in embedders.items():
    embedder.set_params(kind=Images(standardize=False), lr=1e-3, batch_size=32, random_state=0)
    curves[name] = []
    for _ in range(12):
        embedder.partial_fit(X_train)
        curves[name].append(accuracy(embedder.transform(X_train), embedder.transform(X_test)))

# %%
# Accuracy by epochs
# ------------------

with torch.no_grad():
    unchanged = [
        pretrained.eval()(torch.from_numpy(x)[:, None]).numpy() for x in (X_train, X_test)
    ]
flat = [x.reshape(len(x), -1) for x in (X_train, X_test)]

fig, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
for name, values in curves.items():
    ax.plot(np.arange(1, 13), values, label=name)
ax.axhline(accuracy(*unchanged), color="black", ls="--", lw=1, label="pretrained, unchanged")
ax.axhline(accuracy(*flat), color="gray", ls=":", lw=1, label="raw pixels")
ax.set(xlabel="epochs of contrastive training", ylabel="accuracy with 5 labels of each class")
fig.legend(loc="outside upper center", ncols=2, fontsize="small")
plt.show()

# %%
# The groups are defined by the names of the parameters, which are those of the module:

list(dict(pretrained.named_parameters()))
