"""The papers' tables: each recipe runs at toy size, and prints the figure in print, too."""

import sys

import numpy as np
import pytest

from benchmarks import papers
from benchmarks._synthetic_graphs import made_graphs

LAST = {
    "bcl": "| BCL | CIFAR-10 | 92.18 |",
    "rebuttal": "| BCL | CIFAR-10 | 92.24 |",
    "positive-debiased": "| Debiased-Pos, authors' code | CIFAR-10 | – |",
    "pucl-simclr": "| SimCLR+PUCL | CIFAR-10 | 92.14 |",
    "pucl-cmc": "| CMC+PUCL | CIFAR-10 | 89.25 |",
    "pucl-moco": "| MoCo+PUCL | CIFAR-10 | 90.98 |",
    "pucl-graphs": "| InfoGraph+PUCL, α .5 | ENZYMES | 55.35 |",
    "probabilistic": "| mutual likelihood | CIFAR-10 | – |",
}
SLOW = [table for table in papers.TABLES if table != "pucl-graphs"]


def few_images(*_):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 256, (12, 3, 32, 32), np.uint8), np.arange(12) % 2
    return X, y, X[:4], y[:4]


@pytest.mark.parametrize(
    "table", [pytest.param(one, marks=[pytest.mark.slow] * (one in SLOW)) for one in papers.TABLES]
)
def test_the_last_row_of_a_table_runs_at_toy_size(table, monkeypatch, capsys):
    monkeypatch.setattr(papers, "load_images", few_images)
    monkeypatch.setattr(papers, "load_graphs", lambda *_: made_graphs("molecules", 40))
    row = list(papers.TABLES[table][1])[-1]
    argv = ["papers", table, "--rows", row, "--epochs", "1"]
    argv += ["--sets", "ENZYMES"] if table == "pucl-graphs" else ["--depth", "18"]
    monkeypatch.setattr(sys, "argv", argv)
    papers.main()
    line = capsys.readouterr().out.splitlines()[-1]
    assert line.startswith(LAST[table])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["pucl-graphs", "--depth", "18"], "no option --depth: it is a table of graphs"),
        (["pucl-graphs", "--n", "50"], "no option --n: it is a table of graphs"),
        (["bcl", "--sets", "ENZYMES"], "no option --sets: it is a table of images"),
        (["bcl", "--rows", "PUCL"], "no row 'PUCL'. Its rows are 'SimCLR', 'DCL', 'HCL', 'BCL'"),
    ],
)
def test_an_option_or_a_row_that_a_table_does_not_have_is_refused(
    options, message, monkeypatch, capsys
):
    monkeypatch.setattr(sys, "argv", ["papers", *options])
    with pytest.raises(SystemExit):
        papers.arguments()
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("table", "batch_size", "figure"),
    [("bcl", 16, 83.61), ("bcl", 256, 92.18), ("rebuttal", 256, 92.24), ("rebuttal", 16, None)],
)
def test_the_figure_in_print_is_that_of_the_batch(table, batch_size, figure):
    _, figures = papers.TABLES[table][1]["BCL"]
    assert papers.in_print(figures, "CIFAR-10", batch_size) == figure
