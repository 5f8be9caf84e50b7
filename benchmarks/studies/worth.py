"""What an embedding is worth: the default embedder against everything that costs less.

    python -m benchmarks.studies.worth  # digits and small tables
    python -m benchmarks.studies.worth --sets digits --temperature 0.2 --epochs 60
    python -m benchmarks.studies.worth --sets Fashion-MNIST --n 4000
    python -m benchmarks.studies.worth --sets CIFAR-10 --n 5000 --epochs 50
    python -m benchmarks.studies.worth --sets PTC_MR ENZYMES --data-home FOLDER
    python -m benchmarks.studies.worth --sets molecules HAR_part --n 1200 --data-home FOLDER
    python -m benchmarks.studies.worth --sets HAR_part --n 250 --concatenated --quick

Rows that learn nothing: raw data, standardised, their principal components, UMAP where umap-learn
is installed, the bag of labels or degrees of a graph, histograms of oriented gradients where
scikit-image is installed (4×4 pixels to a cell, 2×2 cells to a block), patches of images, random
kernels of series, profiles and colours of graphs, patches, kernels or profiles whitened within
views, and the default with its first weights. A denoising autoencoder of images and vectors has
the encoder and the views of the default embedder and a linear decoder. Then come the default
embedder (``ContrastiveEmbedder(random_state=seed)``), the same with other losses, and the oracles,
which have all labels. With ``--concatenated``, the default also stands next to patches, kernels,
profile and colours, or standardised vectors: each block standardised, each with rows of norm 1, or
both in turn.

Columns: accuracy on test data of a logistic regression on standardised features with 1, 5 and 20
labels per class, of 20 neighbours (Euclidean, raw features), of 20 neighbours by cosine in
half whitened features, of the regression and of a ridge classifier with all labels,
its penalty by leave-one-out; the normalised mutual information of k-means and the classes; CPU
minutes of training and embedding. ``--quick`` leaves out one label, the ridge classifier and
k-means. Principal components, UMAP, whitened features and concatenations are not standardised. A
seed sets the split, the labels, the weights and the views, for all rows alike. p is that of a
paired t-test over the seeds, between the five-label accuracies of the row and of the default, or
of the first row where the default is left out. The gap closed is the part of the way from the
default to Supervised that a row goes, where that is longer than .005. With ``--save``, the folder
``.runs`` keeps each run, so that an interrupted study continues at the same commit.
"""

from __future__ import annotations

from pathlib import Path
from time import process_time

from joblib import Memory

from benchmarks._protocol import (
    FEW,
    SETS,
    TABLES,
    is_scaled,
    judged,
    row_of,
    split,
    use_threads,
)
from benchmarks._results import Table, commit, make_parser
from benchmarks._rows import ORACLE, ROWS, concatenated, fits, represented


def run(name, X, y, test, args, seed):
    """Return the columns of a row for a seed; of the default, those of concatenations, too."""
    train, test = split(y, test, args.n, seed)
    start = process_time()
    H, H_test = represented(name, X, y, train, test, args, seed)
    minutes = (process_time() - start) / 60
    parts = [(name, H, H_test)]
    if name == "default" and args.concatenated:
        parts += concatenated(H, H_test, X, y, train, test, args, seed)
    found = {}
    for part, some, some_test in parts:
        data = some, y[train], some_test, y[test]
        columns = judged(*data, seed, scale=is_scaled(part), quick=args.quick)
        found[part] = {**columns, "CPU min": minutes}
    return found


def main():
    """Print a table for each set."""
    options = {"data_home": str, "n": 4000, "epochs": int, "temperature": float, "seeds": 10}
    options |= {"concatenated": False, "quick": False}
    parser = make_parser(__doc__, **options)
    default_sets = ["digits", "digits as vectors", *TABLES]
    parser.add_argument("--sets", nargs="+", default=default_sets, choices=list(SETS))
    parser.add_argument("--rows", nargs="+", default=ROWS, choices=ROWS)
    args = parser.parse_args()
    use_threads()
    memory = Memory(Path(__file__).parent / ".runs" / commit() if args.save else None, verbose=0)
    measured = memory.cache(run)
    for name in args.sets:
        X, y, test = SETS[name](args)
        rows = [row for row in args.rows if fits(row, X)]
        found = {}
        for row in rows:
            runs = [measured(row, X, y, test, args, seed) for seed in range(args.seeds)]
            found |= {part: [one[part] for one in runs] for part in runs[0]}
        has_all = isinstance(test, float) and args.n >= (1 - test) * len(y)
        title = name if has_all else f"{name}, {args.n:,}"
        title += f", temperature {args.temperature}" if args.temperature else ""
        reference = found.get("default", next(iter(found.values())))
        with Table(title, args, ratios=[FEW, "20-NN", "linear"], packages=["umap-learn"]) as table:
            for row, runs in found.items():
                table.add(row_of(row, runs, reference, found.get(ORACLE)))


if __name__ == "__main__":
    main()
