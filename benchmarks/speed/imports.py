"""Seconds and memory of importing the package, beside those of torch and scikit-learn.

    python -m benchmarks.speed.imports --save

The last rows also make an embedder, and fit it. Each call is a new process; they take turns, and
the figures are medians. Linux only.
"""

from __future__ import annotations

import json
import subprocess
import sys
from statistics import median

from benchmarks._results import Table, make_parser

IMPORTED = {
    "torch": "import torch",
    "torch, sklearn": "import torch, sklearn.base",
    "torch, sklearn, skcontrast": (
        "import torch, sklearn.base, skcontrast; skcontrast.ContrastiveEmbedder()"
    ),
    "the same and a fit": (
        "import torch, sklearn.base, skcontrast; "
        "skcontrast.ContrastiveEmbedder(max_epochs=1).fit(torch.rand(9, 2))"
    ),
}
MEASURED = """
import json, re, time
start, used = time.perf_counter(), time.process_time()
{}
seconds = time.perf_counter() - start, time.process_time() - used
status = open("/proc/self/status").read()
print(json.dumps([*seconds, int(re.search(r"VmRSS:\\s+(\\d+)", status)[1]) / 1024]))
"""


def measure(code):
    """Run code in a new process; return its seconds, those of the CPU, and the MiB it then has."""
    output = subprocess.check_output([sys.executable, "-c", MEASURED.format(code)], text=True)
    return json.loads(output)


def main():
    """Print or store the table."""
    parser = make_parser(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    found = {name: [] for name in IMPORTED}
    for _ in range(args.rounds):
        for name, code in IMPORTED.items():
            found[name].append(measure(code))
    columns = ("s", "CPU s", "resident MiB")
    with Table("imports", args, labels=1, ratios=columns, digits=2) as table:
        for name, runs in found.items():
            figures = map(median, zip(*runs, strict=True))
            table.add({"imported": name, **dict(zip(columns, figures, strict=True))})


if __name__ == "__main__":
    main()
