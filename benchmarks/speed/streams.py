"""Memory that a fit holds on data larger than memory: does it grow with the number of samples?

    OMP_WAIT_POLICY=PASSIVE python -m benchmarks.speed.streams --rows 100000 1000000 --save

Each row is one process that trains for one epoch on numbers in a file (int16), read batch by
batch: from a memory map, and from the file in parts of 10,000 samples, with `partial_fit` and the
queue of MoCo. "own MiB" is the most memory besides the file that the process took for it,
"resident MiB" with the pages of the file that it held. Linux only. `--rows 10000000` needs 10 GB
on disk.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
import torch

from benchmarks._results import Table, make_parser
from benchmarks.speed._bench import in_another_process, memory_of_a_long_call
from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import GaussianNoise
from skcontrast.encoders import MLP
from skcontrast.frameworks import MoCo

PART = 10_000
ROWS_WRITTEN = 100_000


def embedder(**parameters):
    """Return a small embedder that reads batch by batch."""
    return ContrastiveEmbedder(
        MLP((32,)),
        augmentation=GaussianNoise(0.2),
        projection_dim=16,
        batch_size=1024,
        max_epochs=1,
        memory_budget=0,
        random_state=0,
        **parameters,
    )


def of_a_map(X):
    """Train on a memory map."""
    embedder().fit(X)


def in_parts(X):
    """Train on parts of a memory map, one after the other."""
    moco = embedder(framework=MoCo(queue_size=4096))
    for start in range(0, len(X), PART):
        moco.partial_fit(X[start : start + PART])


WAYS = {"memory map": of_a_map, "partial_fit, MoCo": in_parts}


def measure(way, path):
    """Train in one way; return the MiB of growth, own and resident, and the seconds."""
    torch.manual_seed(0)
    warm = np.random.default_rng(0).integers(0, 99, (2048, 8)).astype(np.int16)
    WAYS[way](warm)
    X = np.load(path, mmap_mode="r")
    return memory_of_a_long_call(lambda: WAYS[way](X))


def written(folder, n_rows, width):
    """Write a file of numbers and return its path."""
    path, rng = Path(folder) / f"{n_rows}.npy", np.random.default_rng(0)
    X = np.lib.format.open_memmap(path, "w+", np.int16, (n_rows, width))
    for start in range(0, n_rows, ROWS_WRITTEN):
        rows = slice(start, min(start + ROWS_WRITTEN, n_rows))
        X[rows] = rng.integers(-1000, 1000, X[rows].shape, dtype=np.int16)
    X.flush()
    return path


def row(way, path, n_rows):
    """Measure one way in a process of its own, and return a row of the table."""
    own, resident, seconds = json.loads(in_another_process("--only", way, "--file", path))
    return {
        "read": way,
        "samples": n_rows,
        "file MiB": path.stat().st_size / 2**20,
        "own MiB": own,
        "resident MiB": resident,
        "µs a sample": seconds / n_rows * 1e6,
    }


def main():
    """Print or store the table."""
    options = {"rows": [100_000, 1_000_000], "width": 512, "ways": WAYS}
    parser = make_parser(__doc__, **options)
    parser.add_argument("--folder", help="where the files are written; by default a temporary one")
    parser.add_argument("--only", choices=WAYS, help="measure this way in this process")
    parser.add_argument("--file", help="what --only reads")
    args = parser.parse_args()
    if args.only:
        print(json.dumps(measure(args.only, args.file)))
        return
    with (
        Table("streams", args, labels=2, ratios=("own MiB", "resident MiB"), digits=0) as table,
        tempfile.TemporaryDirectory(dir=args.folder) as folder,
    ):
        for n_rows in args.rows:
            path = written(folder, n_rows, args.width)
            for way in args.ways:
                table.add(row(way, path, n_rows))
            path.unlink()


if __name__ == "__main__":
    main()
