"""Seconds of small fits beside busy programs, with torch's own threads and with one.

    python -m benchmarks.speed.threads --rounds 3 --save

Each fit is a new process, as a user starts it, or with ``OMP_NUM_THREADS=1``; the two take turns,
and the figures are medians. A busy program is a loop of Python in a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from statistics import median

from benchmarks._results import Table, make_parser

FITS = {
    "digits, README's seven lines": """
from sklearn.datasets import load_digits
from skcontrast import ContrastiveClassifier
X, y = load_digits().images[:1300], load_digits().target[:1300]
few = np.where(np.arange(1300) < 50, y, -1)
start = time.perf_counter()
ContrastiveClassifier(random_state=0).fit(X, few)
""",
    "2,000 images of 28 × 28 pixels, an epoch": """
from skcontrast import ContrastiveEmbedder
X = np.random.default_rng(0).integers(0, 255, size=(2000, 28, 28)).astype(np.uint8)
start = time.perf_counter()
ContrastiveEmbedder(max_epochs=1, random_state=0).fit(X)
""",
    "600 graphs of 20 nodes, 5 epochs": """
import networkx as nx
from skcontrast import ContrastiveEmbedder
X = [nx.gnp_random_graph(20, 0.2, seed=k) for k in range(600)]
start = time.perf_counter()
ContrastiveEmbedder(max_epochs=5, random_state=0).fit(X)
""",
}
BEFORE = "import time, warnings\nimport numpy as np\nwarnings.simplefilter('ignore')\n"
AFTER = "print(time.perf_counter() - start)"
THREADS = ("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def seconds(code, **environment):
    """Return the seconds of a fit in a new process."""
    inherited = {name: value for name, value in os.environ.items() if name not in THREADS}
    command = [sys.executable, "-c", BEFORE + code + AFTER]
    return float(subprocess.check_output(command, env=inherited | environment, text=True))


def main():
    """Print or store the table."""
    parser = make_parser(__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--busy", type=int, nargs="+", default=[0, 1, 2])
    args = parser.parse_args()
    columns = ("s", "s, one thread", "ratio")
    with Table("threads", args, labels=2, ratios=columns, digits=2) as table:
        for name, code in FITS.items():
            for n_busy in args.busy:
                loops = [
                    subprocess.Popen([sys.executable, "-c", "while True: pass"])
                    for _ in range(n_busy)
                ]
                try:
                    pairs = [
                        (seconds(code), seconds(code, OMP_NUM_THREADS="1"))
                        for _ in range(args.rounds)
                    ]
                finally:
                    for loop in loops:
                        loop.kill()
                        loop.wait()
                own, one = map(median, zip(*pairs, strict=True))
                ratio = median(pair[0] / pair[1] for pair in pairs)
                figures = dict(zip(columns, (own, one, ratio), strict=True))
                table.add({"fit": name, "busy programs": n_busy, **figures})


if __name__ == "__main__":
    main()
