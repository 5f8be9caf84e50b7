"""The pages of figures are what the stored figures say, and a run tells what moved."""

import re
import sys
from argparse import Namespace

import pytest

from benchmarks import _results, render
from benchmarks.studies import five_labels

FIGURES = sorted(render.FOLDER.glob("*/results/*.json"))


@pytest.fixture
def results(monkeypatch, tmp_path):
    """Return the module, as a benchmark ``speed`` would use it in an empty folder."""
    (tmp_path / "results").mkdir()
    arguments = [str(tmp_path / "speed.py"), "--save", "--data", "/home/someone/data.npz"]
    monkeypatch.setattr(sys, "argv", arguments)
    return _results


def run(results, ratio, *, save=True, compare=False):
    with results.Table("time", Namespace(save=save, compare=compare), ratios=["ratio"]) as table:
        table.add({"loss": "DCL", "s": 60 * ratio, "ratio": ratio})
        table.add({"loss": "HCL", "s": 1.0, "ratio": {"mean": 0.5, "std": 0.1}})


def test_the_pages_have_the_stored_figures():
    stale = [p for p in render.pages() if render.rendered(p) != p.read_text(encoding="utf-8")]
    assert not stale, "run python -m benchmarks.render"


def test_every_stored_table_is_on_the_page_of_its_benchmark():
    for path in FIGURES:
        page = path.with_suffix(".md").read_text(encoding="utf-8")
        shown = re.findall(r"^<!-- table: (.+) -->$", page, flags=re.MULTILINE)
        assert sorted(shown) == sorted(_results.load(path)), path


def test_figures_have_a_module_or_name_the_last_commit_that_has_it():
    for path in FIGURES:
        page = path.with_suffix(".md").read_text(encoding="utf-8")
        module = f"benchmarks/{path.parents[1].name}/{path.stem}.py"
        is_answered = re.search(rf"^Answered: `{module}` is in commit [0-9a-f]{{7}} ", page, re.M)
        assert (render.FOLDER.parent / module).exists() != bool(is_answered), path


def test_the_pages_of_the_documentation_have_their_tables():
    for path, tables in render.DOCUMENTED.items():
        page = path.read_text(encoding="utf-8")
        shown = re.findall(r"^\.\. table: (.+)$", page, flags=re.MULTILINE)
        assert shown == list(tables), path


def test_the_table_of_readme_is_that_of_its_rows():
    table = _results.load(five_labels.RESULTS.with_suffix(".json"))["five labels"]
    rows = [{k: _results.rounded(v, 3) for k, v in row.items()} for row in five_labels.table_of()]
    assert table["rows"] == rows


def test_the_best_figures_of_a_row_of_readme_are_bold():
    lines = render.five_labels().splitlines()
    rows = [line.split("|")[2:6] for line in lines if line.startswith("| ") and "**" in line]
    assert len(rows) == 9
    for cells in rows:
        figures = [re.search(r"\d\.\d+", cell)[0] for cell in cells]
        bold = [figure for figure, cell in zip(figures, cells, strict=True) if "**" in cell]
        assert bold == [figure for figure in figures if figure == max(figures)]


def test_stored_figures_are_in_the_form_that_is_written():
    for path in FIGURES:
        assert _results.as_json(_results.load(path)) == path.read_text(encoding="utf-8"), path


def test_a_table_with_p_has_n_and_intervals():
    for path in FIGURES:
        for name, table in _results.load(path).items():
            columns = {column.split(",")[0] for row in table["rows"] for column in row}
            if "p" in columns and table["date"] >= "2026-11-25":
                assert {"95 %", "n"} <= columns, (path, name)


def test_paired_differences_have_an_interval():
    found = _results.paired([0.91, 0.93, 0.90], [0.89, 0.90, 0.89], "20-NN")
    assert list(found) == ["95 %, 20-NN", "p, 20-NN", "n"] and found["n"] == 3
    low, high = map(float, found["95 %, 20-NN"].split(" to "))
    assert low < 0 < 0.02 < high
    assert _results.paired([0.9, 0.8], [0.8, 0.7]) == {"95 %": None, "p": None, "n": 2}
    assert _results.paired([0.9, 0.8], None) == {"95 %": None, "p": None, "n": None}


def test_what_was_saved_is_loaded_and_has_its_circumstances(results, tmp_path):
    run(results, 0.91234)
    table = results.load(tmp_path / "results" / "speed.json")["time"]
    assert table["rows"][0] == {"loss": "DCL", "s": 54.74, "ratio": 0.912}
    assert table["machine"]["threads"] >= 1
    assert {"Python", "torch", "numpy"} <= set(table["versions"])
    assert table["command"] == f"python -m benchmarks.{tmp_path.name}.speed --data …"


def test_saving_one_table_keeps_the_others(results, tmp_path):
    (tmp_path / "results" / "speed.json").write_text('{"memory": {"rows": []}}', encoding="utf-8")
    run(results, 1.0)
    assert list(results.load(tmp_path / "results" / "speed.json")) == ["memory", "time"]


def test_a_run_that_fails_saves_nothing(results, tmp_path):
    with pytest.raises(KeyError), results.Table("time", Namespace(save=True, compare=False)):
        raise KeyError
    assert not (tmp_path / "results" / "speed.json").exists()


@pytest.mark.parametrize("ratio, count", [(1.09, 0), (1.11, 1), (0.91, 0), (0.89, 1)])
def test_a_ratio_that_moved_by_more_than_a_tenth_is_named(results, capsys, ratio, count):
    run(results, 1.0)
    capsys.readouterr()
    run(results, ratio, save=False, compare=True)
    printed = capsys.readouterr().out
    assert f": {count}\n" in printed
    assert (f"DCL, ratio: 1 → {ratio:g}" in printed) == bool(count)


def test_figures_keep_their_decimals_and_large_ones_are_integers(results):
    table = {"digits": 2, "rows": [{"loss": "a", "x": 0.9, "y": 1235}, {"loss": "b", "x": None}]}
    assert results.table_lines(table)[2:] == ["| a | 0.90 | 1,235 |", "| b | – | – |"]
    assert results.cell([0.5, 1.0], 1) == "0.5, 1.0"
    assert results.cell({"mean": 0.5, "std": 0.25}, 2) == "0.50 ± 0.25"
    assert results.cell({"mean": 0.5, "std": None}, 2) == "0.50"
    assert results.rounded(1234.5678, 2) == 1235
