"""ContrastiveClassifier against a logistic regression on each of its blocks, 5 labels per class.

    python -m benchmarks.studies.classifier --data-home FOLDER

Each set is split once: at most 600 samples to train on and 1,000 to test on. The embedder and the
blocks are fitted once, to all training samples without labels, as the classifier with its defaults
does it; ten draws of the labels follow. Columns are test accuracies of a logistic regression on
the raw numbers, on features without training, on these whitened within views, and on the
embedding; and of the classifier, with and without pseudo-labels. Columns of whitened features keep
their scale, others are standardised. "gain" is the classifier less the best of the four by its
mean, with the interval of the difference over the draws. Then come the mean weight of the
embedding, and the time of the whole fit relative to that of the embedder alone.
"""

from __future__ import annotations

from time import process_time

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from benchmarks._protocol import (
    SETS,
    draw_labels,
    numbers,
    remembering,
    series,
    split,
    use_threads,
)
from benchmarks._results import Table, make_parser, paired
from skcontrast import ContrastiveClassifier, ViewWhitening

NAMES = (
    "iris", "wine", "breast cancer", "digits as vectors", "digits", "PTC_MR", "ENZYMES",
    "SyntheticControl", "CBF", "ECGFiveDays", "MedicalImages",
)  # fmt: skip
N_TRAIN, N_TEST, N_LABELS, N_DRAWS = 600, 1000, 5, 10


def load(name, args):
    """Return samples and classes to train on and to test on."""
    X, y, test = (SETS.get(name) or series(name))(args)
    train, test = split(y, test, N_TRAIN, 0)
    train, test = train[:N_TRAIN], test[:N_TEST]
    return X[train], y[train], X[test], y[test]


def representations(model, X, X_test):
    """Return what a logistic regression sees, by column: to learn from and to test on."""
    found = {}
    if isinstance(X, np.ndarray):
        rows = np.concatenate([X, X_test])
        both = numbers(rows, np.arange(len(rows)))
        found["raw"] = both[: len(X)], both[len(X) :]
    for block in model.transformers_:
        if isinstance(block, ViewWhitening):
            found["whitened"] = block.transform(X), block.transform(X_test)
            block = block.transformer_
            found["training-free"] = block.transform(X), block.transform(X_test)
    found["learned"] = model.embedder_.transform(X), model.embedder_.transform(X_test)
    return {name: scaled(*both, as_whole=name == "whitened") for name, both in found.items()}


def scaled(H, H_test, *, as_whole):
    """Return standardised columns, or all divided by one number."""
    scaler = StandardScaler().fit(H)
    if as_whole:
        scaler.scale_[:] = np.sqrt(scaler.var_.mean())
    return scaler.transform(H), scaler.transform(H_test)


def row_of(name, args):
    """Return the row of a set."""
    X, y, X_test, y_test = load(name, args)
    start = process_time()
    model = ContrastiveClassifier(random_state=0).fit(X, draw_labels(y, N_LABELS, 0))
    whole, start = process_time() - start, process_time()
    ContrastiveClassifier(model.embedder_, random_state=0).fit(X, draw_labels(y, N_LABELS, 0))
    rest = process_time() - start
    for one in (model.embedder_, *model.transformers_):
        remembering(one)
    singles = representations(model, X, X_test)
    blocks = [FrozenEstimator(block) for block in model.transformers_]
    found = {column: [] for column in (*singles, "known labels", "classifier")}
    shares = []
    for seed in range(N_DRAWS):
        few = draw_labels(y, N_LABELS, seed)
        known = few >= 0
        for column, (H, H_test) in singles.items():
            linear = LogisticRegression(max_iter=1000).fit(H[known], few[known])
            found[column].append(linear.score(H_test, y_test))
        for column, pseudo_labels in (("known labels", False), ("classifier", True)):
            again = ContrastiveClassifier(model.embedder_, blocks=blocks)
            again.set_params(pseudo_labels=pseudo_labels)
            found[column].append(again.fit(X, few).score(X_test, y_test))
        shares.append(again.blocks_["embedding"])
    best = max(singles, key=lambda column: np.mean(found[column]))
    columns = ("raw", "training-free", "whitened", "learned", "known labels", "classifier")
    means = {column: np.mean(found[column]) if column in found else None for column in columns}
    gain = {"gain": means["classifier"] - means[best]}
    gain |= paired(found["classifier"], found[best])
    times = {"embedding": np.mean(shares), "time": whole / (whole - rest)}
    return {"set": name, **means, **gain, **times}


def main():
    """Print the table."""
    args = make_parser(__doc__, data_home=str, sets=NAMES, n=N_TRAIN).parse_args()
    use_threads()
    with Table("classifier", args, ratios=["classifier"]) as table:
        for name in args.sets:
            table.add(row_of(name, args))


if __name__ == "__main__":
    main()
