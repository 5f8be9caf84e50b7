"""What a process waits for once: the import of skcontrast, and its first fit.

    OMP_WAIT_POLICY=PASSIVE python -m benchmarks.speed.first_fit

Each time is of a new process. "Import" is the import of torch, scikit-learn and skcontrast, next
to that of torch and scikit-learn. "First fit" is one epoch on 64 vectors after these imports, next
to the first step of Adam for an MLP of two layers, for which torch imports its compiler. skorch
imports PyTorch Geometric where it is installed; the last row hides it. Ratio and difference are
medians over the rounds. The targets are a ratio of 1.1 for the import, and .3 s for the fit.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from statistics import median

from benchmarks._results import Table, make_parser

SCRIPT = """
import sys
from time import perf_counter
{before}
start = perf_counter()
{code}
print(perf_counter() - start)
"""
IMPORTS = "import torch, sklearn"
HIDDEN = "sys.modules['torch_geometric'] = None"
DATA = (
    "import numpy as np\nX = np.random.default_rng(0).standard_normal((64, 16), dtype=np.float32)"
)
STEP = """
network = torch.nn.Sequential(torch.nn.Linear(16, 128), torch.nn.ReLU(), torch.nn.Linear(128, 64))
optimizer = torch.optim.Adam(network.parameters())
network(torch.from_numpy(X)).square().mean().backward()
optimizer.step()
"""
FIT = "skcontrast.ContrastiveEmbedder(max_epochs=1, random_state=0, device='cpu').fit(X)"


def seconds(code, *before):
    """Return the seconds that code takes in a new process, after other code."""
    script = SCRIPT.format(before="\n".join(before), code=code)
    command = [sys.executable, "-W", "ignore", "-c", script]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return float(done.stdout.splitlines()[-1])


def cases():
    """Return by name two functions that time a new process: with skcontrast, and without."""
    both = f"{IMPORTS}, skcontrast"
    found = {
        "import": (lambda: seconds(both), lambda: seconds(IMPORTS)),
        "first fit": (lambda: seconds(FIT, both, DATA), lambda: seconds(STEP, IMPORTS, DATA)),
    }
    if importlib.util.find_spec("torch_geometric") is not None:
        found["first fit, without PyTorch Geometric"] = (
            lambda: seconds(FIT, HIDDEN, both, DATA),
            lambda: seconds(STEP, HIDDEN, IMPORTS, DATA),
        )
    return found


def main():
    """Time all cases in turn."""
    args = make_parser(__doc__, rounds=7).parse_args()
    pairs = {name: [] for name in cases()}
    for k in range(args.rounds):
        for name, (ours, bare) in cases().items():
            first, second = (ours, bare) if k % 2 else (bare, ours)
            pair = first(), second()
            pairs[name].append(pair if k % 2 else pair[::-1])
    with Table("first", args, packages=["skorch", "torch-geometric"], ratios=["ratio"]) as table:
        for name, times in pairs.items():
            row = {"data": name, "skcontrast, s": median(a for a, _ in times)}
            row |= {"bare, s": median(b for _, b in times)}
            row |= {"ratio": median(a / b for a, b in times)}
            table.add({**row, "difference, s": median(a - b for a, b in times)})


if __name__ == "__main__":
    main()
