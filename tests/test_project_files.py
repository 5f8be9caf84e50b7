"""What stands in several files of the project agrees."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import skcontrast
from skcontrast import _version  # private: where versions are read

ROOT = Path(__file__).parents[1]
EXTRAS_ALIKE = ("graphs", "images", "plot", "docs", "test")
README = (ROOT / "README.md").read_text(encoding="utf-8")
NUMBER = r"-?\d+(?:\.\d+)?"
README_BLOCKS = re.findall(r"^```python\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)


def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def requirements():
    """Return lower bounds by package, of what skcontrast and its tests need."""
    extras = project()["optional-dependencies"]
    used = ("graphs", "images", "plot", "test")
    lines = [*project()["dependencies"], *(line for extra in used for line in extras[extra])]
    pairs = (re.fullmatch(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", line).groups() for line in lines)
    return {canonical(name): bound for name, bound in pairs}


def canonical(name):
    return name.lower().replace("_", "-")


def pinned(file):
    """Return the versions in a file of constraints by package."""
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    pins = (line.split("==") for line in lines if "==" in line and not line.startswith("#"))
    return {canonical(name): version for name, version in pins}


def parts(version):
    """Return a version as a tuple without trailing zeros, so that 2.0 equals 2.0.0."""
    return tuple(int(part) for part in re.sub(r"(\.0)+$", "", version).split("."))


def test_the_version_is_the_same_everywhere():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    cited = re.search(r"^version: (\S+)$", citation, flags=re.MULTILINE)[1]
    assert "version" in project()["dynamic"] and cited == skcontrast.__version__


def test_the_bibtex_file_has_the_papers_of_the_citation_file():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    bibtex = (ROOT / "docs" / "_extra" / "references.bib").read_text(encoding="utf-8")
    titles = re.findall(r'^    title: "(.+)"$', citation, flags=re.MULTILINE)
    assert titles == re.findall(r"title = \{\{(.+)\}\}", bibtex)
    numbers = re.findall(r"arXiv:(\d+\.\d+)", citation)
    assert numbers == re.findall(r"eprint = \{(.+)\}", bibtex)


def test_the_version_is_not_that_of_stale_metadata(monkeypatch):
    monkeypatch.setattr(_version, "version", lambda name: f"installed {name}")
    assert _version.versions(["skcontrast", "torch"]) == {
        "skcontrast": skcontrast.__version__,
        "torch": "installed torch",
    }


def test_the_version_switcher_offers_the_version():
    entries = json.loads((ROOT / "docs" / "_static" / "switcher.json").read_text(encoding="utf-8"))
    assert skcontrast.__version__ in {entry["version"] for entry in entries}


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "RELEASING.md"])
def test_links_between_files_lead_somewhere(page):
    links = re.findall(r"\]\(([^)]+)\)", (ROOT / page).read_text(encoding="utf-8"))
    for link in links:
        assert link.startswith("https://") or (ROOT / link).exists(), link


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(README_BLOCKS)))
def test_a_block_of_the_readme_runs_as_printed(number, tmp_path):
    # PyTorch Geometric, which skorch imports where it is installed, compiles a class.
    pyg = "ignore:`torch.jit.script` is deprecated:DeprecationWarning"
    command = [sys.executable, "-W", "error", "-W", pyg, "-c", README_BLOCKS[number]]
    run = subprocess.run(
        command, cwd=tmp_path, check=True, timeout=600, stdout=subprocess.PIPE, text=True
    )
    comments = re.findall(r"^print\(.+\)  # (.+)$", README_BLOCKS[number], flags=re.MULTILINE)
    assert len(comments) == README_BLOCKS[number].count("print(")
    # A network may print lines of its own before.
    printed = run.stdout.splitlines()[-len(comments) :]
    for comment, line in zip(comments, printed, strict=True):
        assert is_printed(comment, line), f"README: {comment}; printed: {line}"


def is_printed(comment, line):
    """Return whether a line is what a comment has before its ";", with its rounding or "± n"."""
    value, _, tolerance = comment.partition(";")[0].partition(" ± ")
    expected, got = re.findall(NUMBER, value), re.findall(NUMBER, line)
    return re.sub(NUMBER, "", value) == re.sub(NUMBER, "", line) and all(
        abs(float(a) - float(b)) <= (float(tolerance or 0) or 0.5 / 10 ** len(a.partition(".")[2]))
        for a, b in zip(expected, got, strict=True)
    )


@pytest.mark.parametrize(
    ("comment", "line", "agrees"),
    [
        ("0.95", "0.9497", True),
        ("0.95", "0.9449", False),
        ("0.95 ± 0.01; the pixels: 0.78", "0.9449", True),
        ("0.95 ± 0.01", "0.93", False),
        ("0.9 (90 % interval 0.8 to 1.0)", "0.91 (90 % interval 0.76 to 0.98)", True),
        ("True; adapted", "False", False),
    ],
)
def test_a_printed_value_agrees_within_its_rounding_or_tolerance(comment, line, agrees):
    assert is_printed(comment, line) == agrees


def test_the_description_is_the_same_everywhere():
    description = project()["description"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    index = (ROOT / "docs" / "index.rst").read_text(encoding="utf-8")
    assert f'abstract: "{description}"' in citation
    assert all(f"\n\n{description}.\n" in page for page in (README, index))


def test_ci_runs_every_block_of_the_readme_here_and_with_the_wheel():
    assert README.count("```python") == README.count("```py") == len(README_BLOCKS) == 5
    ci = ROOT / ".ci" / "run"
    if not ci.exists():
        pytest.skip("the sdist has no .ci/run")
    command = "-m pytest -q -n 0 -m slow -k readme tests/test_project_files.py"
    assert ci.read_text(encoding="utf-8").count(command) == 2


def test_the_oldest_versions_are_the_lower_bounds():
    oldest = pinned("constraints-oldest.txt")
    for name, bound in requirements().items():
        if name != "torch":  # see constraints-oldest.txt
            assert parts(oldest[name]) == parts(bound), name


@pytest.mark.parametrize("newer", ["constraints.txt", "constraints-newest.txt"])
def test_the_tested_versions_satisfy_the_bounds(newer):
    tested = pinned(newer)
    for name, bound in requirements().items():
        assert parts(tested[name]) >= parts(bound), name


def test_no_tested_version_is_newer_than_the_newest():
    tested = pinned("constraints.txt")
    for name, version in pinned("constraints-newest.txt").items():
        assert parts(version) >= parts(tested[name]), name


def test_a_package_has_one_lower_bound():
    bounds = {}
    for extra in EXTRAS_ALIKE:
        for line in project()["optional-dependencies"][extra]:
            name, bound = re.split(r"(?:\[\w+\])?>=", line)
            assert bounds.setdefault(canonical(name), bound) == bound, name
