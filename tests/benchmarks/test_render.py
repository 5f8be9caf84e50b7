"""The page of figures is what the stored figures say, and a run tells what moved."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def _scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))


@pytest.fixture
def results(monkeypatch, tmp_path):
    """Return the module, as a script ``speed.py`` would use it in an empty folder."""
    import _results

    monkeypatch.setattr(_results, "FOLDER", tmp_path)
    arguments = [str(BENCHMARKS / "speed.py"), "--save", "--data", "/home/someone/data.npz"]
    monkeypatch.setattr(sys, "argv", arguments)
    return _results


def run(results, ratio, *, save=True, compare=False):
    with results.Table("time", Namespace(save=save, compare=compare), ratios=["ratio"]) as table:
        table.add({"loss": "DCL", "s": 60 * ratio, "ratio": ratio})
        table.add({"loss": "HCL", "s": 1.0, "ratio": {"mean": 0.5, "std": 0.1}})


def test_the_page_is_rendered_from_the_figures():
    import render

    assert render.render() == render.PAGE.read_text(encoding="utf-8")


def test_every_stored_table_is_on_the_page():
    import _results

    page = (_results.FOLDER / "page.md").read_text(encoding="utf-8")
    for path in _results.FOLDER.glob("*.json"):
        for name in _results.load(path):
            assert f"\n{{{{{path.stem} {name}}}}}\n" in page


def test_stored_figures_are_in_the_form_that_is_written():
    import _results

    for path in _results.FOLDER.glob("*.json"):
        assert _results.as_json(_results.load(path)) == path.read_text(encoding="utf-8")


def test_what_was_saved_is_loaded_and_has_its_circumstances(results, tmp_path):
    run(results, 0.91234)
    table = results.load(tmp_path / "speed.json")["time"]
    assert table["rows"][0] == {"loss": "DCL", "s": 54.74, "ratio": 0.912}
    assert table["machine"]["threads"] >= 1
    assert {"Python", "torch", "numpy"} <= set(table["versions"])
    assert table["command"] == "python benchmarks/speed.py --data …"


def test_saving_one_table_keeps_the_others(results, tmp_path):
    (tmp_path / "speed.json").write_text('{"memory": {"rows": []}}', encoding="utf-8")
    run(results, 1.0)
    assert list(results.load(tmp_path / "speed.json")) == ["memory", "time"]


def test_a_run_that_fails_saves_nothing(results, tmp_path):
    with pytest.raises(KeyError), results.Table("time", Namespace(save=True, compare=False)):
        raise KeyError
    assert not (tmp_path / "speed.json").exists()


@pytest.mark.parametrize("ratio, count", [(1.09, 0), (1.11, 1), (0.91, 0), (0.89, 1)])
def test_a_ratio_that_moved_by_more_than_a_tenth_is_named(results, capsys, ratio, count):
    run(results, 1.0)
    capsys.readouterr()
    run(results, ratio, save=False, compare=True)
    printed = capsys.readouterr().out
    assert f": {count}\n" in printed
    assert (f"DCL, ratio: 1 → {ratio:g}" in printed) == bool(count)


def test_seconds_are_not_compared_where_ratios_are_named(results, capsys):
    run(results, 1.0)
    run(results, 2.0, save=False, compare=True)
    assert "DCL, s:" not in capsys.readouterr().out


def test_of_several_runs_the_mean_or_the_median_is_compared(results):
    def table(mean, several):
        rows = [{"loss": "DCL", "of": {"mean": mean, "std": 0.0}, "runs": several, "by": "us"}]
        return {"labels": 1, "ratios": None, "rows": rows}

    before = table(1.0, [0.5, 1.0, 9.0])
    assert results.moved(table(1.0, [0.1, 1.0, 2.0]), before) == []
    moves = [("DCL", "of", 1.0, 2.0), ("DCL", "runs", 1.0, 2.0)]
    assert results.moved(table(2.0, [1.0, 2.0, 3.0]), before) == moves


def test_rows_that_only_one_run_has_are_not_compared(results):
    def table(name):
        return {"labels": 1, "ratios": None, "rows": [{"loss": name, "ratio": 1.0}]}

    assert results.moved(table("DCL"), table("HCL")) == []


def test_figures_keep_their_decimals_and_large_ones_are_integers(results):
    table = {"digits": 2, "rows": [{"loss": "a", "x": 0.9, "y": 1235}, {"loss": "b", "x": None}]}
    assert results.table_lines(table)[2:] == ["| a | 0.90 | 1,235 |", "| b | – | – |"]
    assert results.cell([0.5, 1.0], 1) == "0.5, 1.0"
    assert results.cell({"mean": 0.5, "std": 0.25}, 2) == "0.50 ± 0.25"
    assert results.rounded(1234.5678, 2) == 1235
