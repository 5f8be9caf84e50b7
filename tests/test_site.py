"""The documentation's pages, gallery and sidebars agree with each other."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").rglob("plot_*.py"))


def extension(name):
    """Return a module of docs/_extensions."""
    path = ROOT / "docs" / "_extensions" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_page_of_the_guide_has_a_row_and_a_place_in_the_sidebar():
    pages = sorted(path.stem for path in (ROOT / "docs" / "guide").glob("*.rst"))
    text = (ROOT / "docs" / "user_guide.rst").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^   \* - :doc:`guide/(\w+)`", text, flags=re.MULTILINE)) == pages
    assert sorted(re.findall(r"^   guide/(\w+)$", text, flags=re.MULTILINE)) == pages


def test_the_reading_order_names_examples_that_exist():
    assert set(extension("gallery").READING_ORDER) <= {path.stem for path in EXAMPLES}


def test_every_folder_of_examples_has_a_header():
    folders = {path.parent for path in EXAMPLES}
    assert all((folder / "GALLERY_HEADER.rst").exists() for folder in folders)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_a_figure_fits_the_column(path):
    widths = re.findall(r"figsize=\(([\d.]+),", path.read_text(encoding="utf-8"))
    assert all(float(width) <= 7 for width in widths)


def test_the_sidebar_of_the_api_has_the_names_of_the_page():
    pytest.importorskip("markupsafe")
    page = ROOT / "docs" / "api.rst"
    listed = extension("api_pages").modules(page)
    assert listed["skcontrast"][:2] == ["ContrastiveEmbedder", "ContrastiveClassifier"]
    assert sum(map(len, listed.values())) == len(
        re.findall(r"^   \w+$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    )
