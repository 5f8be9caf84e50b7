"""Figures of benchmarks as JSON: printed as they come, saved, and compared with the stored ones.

A file ``results/NAME.json`` next to ``NAME.py`` holds its tables by name. A table has the command,
date, commit, machine and versions that it was made with, and rows: labels first, then figures. A
figure is a number, a mean with a standard deviation, or a list with one number per run.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np

from skcontrast.metrics import compare_paired

MOVED = 0.1
OWN_OPTIONS = ("--save", "--compare")


HELP = {
    "data_home": "folder of the sets of images, graphs and series",
    "epochs": "those of the embedder if left out",
    "n": "samples to train on, of sets that are larger or made",
    "rounds": "turns of each contestant",
}


def make_parser(doc, **options):
    """Return a parser for a benchmark, with the options that all benchmarks have.

    Parameters
    ----------
    doc : str
        Docstring of the module.
    **options : dict
        Its own options by their defaults: a list for several values, a dict for all of its keys
        and no others, False for a flag, a type where there is none.
    """
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    for name, default in options.items():
        given = {"help": HELP.get(name)}
        if default is False:
            given["action"] = "store_true"
        elif isinstance(default, type):
            given["type"] = default
        elif isinstance(default, dict):
            given |= {"nargs": "+", "choices": list(default), "default": list(default)}
        elif isinstance(default, list | tuple):
            given |= {"nargs": "+", "type": type(default[0]), "default": list(default)}
        else:
            given |= {"type": type(default), "default": default}
        parser.add_argument(f"--{name.replace('_', '-')}", **given)
    parser.add_argument("--save", action="store_true", help="store the figures as JSON")
    parser.add_argument(
        "--compare", action="store_true", help="print what moved by more than 10 %% since then"
    )
    return parser


def spread(values):
    """Return mean and standard deviation (n in the denominator) of runs; None for a single one."""
    std = statistics.pstdev(values) if len(values) > 1 else None
    return {"mean": statistics.fmean(values), "std": std}


def means(runs):
    """Return the columns of a row by those of its runs: spreads, or the values of a single run."""
    if len(runs) == 1:
        return dict(runs[0])
    columns = {name: [one[name] for one in runs] for name in runs[0]}
    return {name: None if None in of else spread(of) for name, of in columns.items()}


def paired(ours, theirs, of=""):
    """Return the columns of a paired comparison, which `of` may name: 95 % interval, p and n.

    Parameters
    ----------
    ours, theirs : array-like of shape (n_seeds,)
        Scores with the same seeds. Interval and p are None where the differences do not vary, and
        all columns are if `theirs` is None.
    of : str, default=""
        Ends the names of interval and p.
    """
    names = (f"95 %, {of}", f"p, {of}") if of else ("95 %", "p")
    low_to_high = p = None
    n = None if theirs is None else len(ours)
    if n is not None and n > 1 and np.ptp(np.subtract(ours, theirs)) > 1e-9:
        found = compare_paired(ours, theirs)
        low_to_high, p = f"{found.low:+.3f} to {found.high:+.3f}", found.p_t
    return dict(zip(names, (low_to_high, p), strict=True)) | {"n": n}


class Table:
    """A table of figures: printed while it grows, compared and saved once it is complete.

    Parameters
    ----------
    name : str
        Name of the table in the benchmark's file.
    args : argparse.Namespace
        Has `save` and `compare`.
    packages : sequence of str
        Packages whose versions matter here, besides torch, numpy and scikit-learn.
    ratios : sequence of str, default=None
        Columns that are compared with the stored ones. None compares all figures; seconds,
        which depend on the machine, should be left out.
    labels : int, default=1
        Number of leading columns that say which row it is.
    digits : int, default=3
        Decimal places that are kept; numbers from 100 on are kept as integers.
    """

    def __init__(self, name, args, *, packages=(), ratios=None, labels=1, digits=3):
        self.name, self.args = name, args
        script = Path(sys.argv[0])
        self.path = script.parent / "results" / f"{script.stem}.json"
        self.content = {
            "command": command(sys.argv),
            "date": datetime.date.today().isoformat(),
            "commit": commit(),
            "machine": machine(),
            "versions": versions("torch", "numpy", "scikit-learn", *packages),
            "labels": labels,
            "ratios": None if ratios is None else list(ratios),
            "digits": digits,
            "rows": [],
        }

    def __enter__(self):
        print(f"\n{self.name}: {made_with(self.content)}", flush=True)
        return self

    def add(self, row):
        """Add a row, a dict by column, and print it."""
        digits, rows = self.content["digits"], self.content["rows"]
        rows.append({name: rounded(value, digits) for name, value in row.items()})
        lines = table_lines(self.content)
        print(*(lines if len(rows) == 1 else lines[-1:]), sep="\n", flush=True)

    def __exit__(self, error, *args):
        if error is not None:
            return
        if self.args.compare:
            report_moves(self.content, load(self.path).get(self.name))
        if self.args.save:
            stored = load(self.path)
            stored[self.name] = self.content
            self.path.write_text(as_json(stored))


def load(path):
    """Return the tables of a file by name, none if there is no file."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def as_json(tables):
    """Return the text of a file: a line for each entry of a table and for each row."""
    parts = []
    for name, table in tables.items():
        head = [f"    {_line(k)}: {_line(v)},\n" for k, v in table.items() if k != "rows"]
        rows = ",\n".join(f"      {_line(row)}" for row in table["rows"])
        parts.append(f'  {_line(name)}: {{\n{"".join(head)}    "rows": [\n{rows}\n    ]\n  }}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _line(value):
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def moved(new, stored, by=MOVED):
    """Return the figures that differ by more than a fraction from the stored ones.

    Parameters
    ----------
    new, stored : dict
        Tables. Only rows and columns that both have are compared.
    by : float, default=0.1
        Fraction of the stored figure.

    Returns
    -------
    moves : list of (str, str, float, float)
        Row, column, the stored figure and the new one.
    """
    before, moves = {_label(row, stored): row for row in stored["rows"]}, []
    for row in new["rows"]:
        label = _label(row, new)
        columns = list(row)[new["labels"] :] if new["ratios"] is None else new["ratios"]
        for column in columns:
            a, b = (middle(r.get(column)) for r in (before.get(label, {}), row))
            if a is not None and b is not None and abs(b - a) > by * abs(a):
                moves.append((label, column, a, b))
    return moves


def _label(row, table):
    return ", ".join(str(value) for value in list(row.values())[: table["labels"]])


def middle(figure):
    """Return the number that stands for a figure, None for text and for a missing one."""
    if isinstance(figure, dict):
        return figure["mean"]
    if isinstance(figure, list):
        return statistics.median(figure)
    return None if isinstance(figure, str) else figure


def report_moves(new, stored):
    """Print which figures moved since a table was stored."""
    if stored is None:
        print("nothing is stored to compare with")
        return
    moves = moved(new, stored)
    print(f"moved by more than {MOVED:.0%} since {made_with(stored)}: {len(moves)}")
    for label, column, before, after in moves:
        print(f"  {label}, {column}: {before:g} → {after:g}")


def rounded(value, digits):
    """Return a figure with a number of decimal places, or as an integer from 100 on."""
    if isinstance(value, dict):
        return {name: rounded(part, digits) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(part, digits) for part in value]
    if value is None or isinstance(value, int | str):
        return value
    return round(float(value), digits) if abs(value) < 100 else round(float(value))


def table_lines(table):
    """Return the lines of a table in Markdown."""
    columns = list(dict.fromkeys(name for row in table["rows"] for name in row))
    lines = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    for row in table["rows"]:
        cells = {name: cell(row.get(name), table["digits"]) for name in columns}
        if cells.get("p") == f"{0:.{table['digits']}f}":
            cells["p"] = f"< .{'1'.rjust(table['digits'], '0')}"
        lines.append(f"| {' | '.join(cells.values())} |")
    return lines


def cell(value, digits):
    """Return a figure as text."""
    if value is None:
        return "–"
    if isinstance(value, dict):
        figures = [value["mean"], value["std"]]  # of a single run there is no deviation
        return " ± ".join(cell(one, digits) for one in figures if one is not None)
    if isinstance(value, list):
        return ", ".join(cell(part, digits) for part in value)
    if isinstance(value, float):
        return f"{value:.{digits}f}"
    return value if isinstance(value, str) else f"{value:,}"


def made_with(table):
    """Return how a table was made, in a line."""
    its = table["machine"]
    threads = f"{its['threads']} thread" + "s" * (its["threads"] > 1)
    parts = [
        f"`{table['command']}`, {table['date']}, commit {table['commit']}",
        ", ".join(filter(None, [its["cpu"], f"{its['cores']} cores", threads, its.get("gpu")])),
        ", ".join(f"{name} {version}" for name, version in table["versions"].items()),
    ]
    return "; ".join(parts)


def command(argv):
    """Return a command line without the paths in it and without the options of this module."""
    words = [word for word in argv[1:] if word not in OWN_OPTIONS]
    words = ["…" if os.sep in word else word for word in words]
    return " ".join(["python -m", module_name(argv[0]), *words])


def module_name(path):
    """Return the name of a benchmark's module by its file."""
    return f"benchmarks.{Path(path).parent.name}.{Path(path).stem}"


def commit():
    """Return the commit that is checked out, with a mark where files differ from it.

    Stored results are left out: saving one table does not make the next one's code differ.
    """
    described = git("describe", "--always", "--exclude=*")
    code = ["--", ":/", ":/!benchmarks/*/results/*", ":/!docs/measured.rst"]
    changes = git("status", "--porcelain", "--untracked-files=no", *code)
    return (described or "unknown") + ("-dirty" if changes else "")


def git(*words):
    """Return what git answers in the checkout of this file, or nothing where it cannot."""
    folder = Path(__file__).parent
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def machine():
    """Return processor, cores and threads, and the GPU if there is one."""
    import torch

    found = {"cpu": _cpu(), "cores": os.cpu_count(), "threads": torch.get_num_threads()}
    if torch.cuda.is_available():
        found["gpu"] = torch.cuda.get_device_name()
    return found


def _cpu():
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def versions(*packages):
    """Return the version of Python and of those packages that are installed."""
    found = {"Python": platform.python_version()}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
