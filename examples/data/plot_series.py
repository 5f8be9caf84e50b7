"""
Time series: the state of a machine from its vibrations
=======================================================

A recording of a machine is cut into windows of two channels. The shape of the vibration shows its
state: a pure tone, one with overtones, repeated knocks, or a tone that comes and goes. Windows
begin at random, and the speed varies, so that a single step has no meaning.

The result: with few labels, windows can be classified in an embedding that was learned without
labels, and not step by step. Fixed convolutions, which are training-free, are more accurate here:
try them first.
"""

# %%
# The data
# --------
# Each window has its own speed, phase and noise. The second channel is the first one, delayed and
# damped by the machine.

from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from skcontrast import ContrastiveEmbedder, ViewWhitening
from skcontrast.features import MiniRocket
from skcontrast.plotting import ViewsDisplay

STATES = ("tone", "overtones", "knocks", "beats")


def make_window(state, rng, n_times=128):
    """Return a window of two channels, (2, n_times)."""
    turns = np.arange(n_times + 8) / rng.uniform(12, 24) + rng.uniform(0, 1)
    wave = np.sin(2 * np.pi * turns)
    if state == "overtones":
        wave = 0.8 * wave + 0.5 * np.sin(6 * np.pi * turns + rng.uniform(0, 6))
    elif state == "knocks":
        wave = wave + 1.2 * np.exp(-8 * (turns % 1)) * np.cos(12 * np.pi * turns)
    elif state == "beats":
        wave = 1.3 * wave * np.sin(2 * np.pi * turns / rng.uniform(3, 5))
    window = np.stack([wave[8:], 0.7 * wave[:-8]]) * rng.uniform(0.6, 1.4)
    return window + rng.normal(scale=0.2, size=window.shape)


rng = np.random.default_rng(0)
y = np.arange(1200) % 4
X = np.stack([make_window(STATES[k], rng) for k in y])  # (windows, channels, steps)
X_train, X_test, y_train, y_test = X[:800], X[800:], y[:800], y[800:]

# %%
# Views
# -----
# An array of this shape is recognised as series. The default views are stretches of a window,
# enlarged, with noise, another amplitude and a gap. None of this changes the state of the machine.

display = ViewsDisplay.from_estimator(ContrastiveEmbedder(), X_train, rows=range(4))
display.ax_.set_yticks(range(4), STATES)
display.figure_.savefig("series_views.png", dpi=120)

# %%
# The embedding
# -------------

start = perf_counter()
embedder = ContrastiveEmbedder(max_epochs=20, random_state=0).fit(X_train)
print(f"trained on {len(X_train)} windows without labels in {perf_counter() - start:.0f} s")
kernels = MiniRocket(random_state=0).fit(X_train)
whitened = ViewWhitening(MiniRocket(random_state=0), random_state=0).fit(X_train)
representations = {
    "embedding": (embedder.transform(X_train), embedder.transform(X_test)),
    "fixed kernels": (kernels.transform(X_train), kernels.transform(X_test)),
    "whitened kernels": (whitened.transform(X_train), whitened.transform(X_test)),
    "steps": (X_train.reshape(len(X_train), -1), X_test.reshape(len(X_test), -1)),
}

# %%
# Few labels
# ----------
# The same linear classifier is trained on each representation, with 1 to 20 labels per class,
# drawn twenty times. What is scaled is scaled by all windows, since that needs no labels.


def accuracies(H_train, H_test, n_labels, n_draws=20):
    """Return the test accuracies of a linear classifier for random draws of labeled windows."""
    scale = StandardScaler().fit(H_train)
    accuracies = []
    for seed in range(n_draws):
        rng = np.random.default_rng(seed)
        few = np.concatenate(
            [rng.choice(np.flatnonzero(y_train == k), n_labels, replace=False) for k in range(4)]
        )
        classifier = LogisticRegression(max_iter=2000)
        classifier.fit(scale.transform(H_train[few]), y_train[few])
        accuracies.append(classifier.score(scale.transform(H_test), y_test))
    return np.array(accuracies)


label_counts = (1, 2, 5, 10, 20)
results = {
    name: [accuracies(*pair, n_labels) for n_labels in label_counts]
    for name, pair in representations.items()
}
print("labels per class " + "".join(f"{n:>14d}" for n in label_counts))
for name, accuracies in results.items():
    print(f"{name:17}" + "".join(f"{a.mean():8.3f} ±{a.std():.3f}" for a in accuracies))

# %%
# Accuracy
# --------

figure, axis = plt.subplots(figsize=(5, 3.4), layout="constrained")
for (name, accuracies), color in zip(results.items(), ("k", "0.3", "0.5", "0.7"), strict=True):
    means, stds = np.mean(accuracies, 1), np.std(accuracies, 1)
    axis.errorbar(label_counts, means, stds, marker="o", capsize=3, color=color, label=name)
axis.set(xscale="log", xlabel="labels per class", ylabel="accuracy on held-out windows")
axis.set_ylim(0, 1.02)
axis.set_xticks(label_counts, label_counts)
axis.minorticks_off()
axis.legend(loc="upper left")
figure.savefig("series.png", dpi=120)
print("saved series.png")
