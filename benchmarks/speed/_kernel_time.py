"""Print the CPU milliseconds that MiniRocket takes for a series: ours, or aeon's.

A script that imports nothing of the project unless it measures it, for other environments:

    PYTHON benchmarks/speed/_kernel_time.py aeon [200,1,1000] 9
"""

from __future__ import annotations

import json
import statistics
import sys
from time import process_time

import numpy as np


def milliseconds(MiniRocket, shape, rounds):
    """Return the median over rounds of noise of a shape (n, channels, times)."""
    X = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    features, seconds = MiniRocket(2016, random_state=0).fit(X), []
    for _ in range(rounds + 1):
        start = process_time()
        features.transform(X)
        seconds.append(process_time() - start)
    return 1e3 * statistics.median(seconds[1:]) / len(X)


def main():
    """Measure what is named."""
    package, shape, rounds = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])
    if package == "aeon":
        import numba
        from aeon.transformations.collection.convolution_based import MiniRocket

        numba.set_num_threads(1)
    else:
        import torch

        from skcontrast.features import MiniRocket

        torch.set_num_threads(1)
    print(milliseconds(MiniRocket, shape, rounds))


if __name__ == "__main__":
    main()
