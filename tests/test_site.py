"""The documentation's pages, gallery and sidebars agree with each other."""

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


def test_every_page_of_the_guide_is_listed():
    pages = sorted(path.stem for path in (ROOT / "docs" / "guide").glob("*.rst"))
    text = (ROOT / "docs" / "user_guide.rst").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^   guide/(\w+)$", text, flags=re.MULTILINE)) == pages


def test_the_reading_order_names_examples_that_exist():
    assert set(extension("gallery").READING_ORDER) <= {path.stem for path in EXAMPLES}


def test_every_folder_of_examples_has_a_header():
    folders = {path.parent for path in EXAMPLES}
    assert all((folder / "GALLERY_HEADER.rst").exists() for folder in folders)


@pytest.mark.parametrize("path", ["index.rst", "guide/few_labels.rst"])
def test_the_images_of_a_first_page_exist(path):
    text = (ROOT / "docs" / path).read_text(encoding="utf-8")
    assert all((ROOT / "docs" / image).exists() for image in re.findall(r"_static/[\w.]+", text))


def test_parameters_stand_under_their_groups():
    pytest.importorskip("markupsafe")
    text = (
        "A sum,\nof two. They form two groups:\n\n- one: `a`,\n  `c`;\n- two: `b`.\n\n"
        ":Parameters:\n\n"
        "    **a** : int\n        A.\n\n    **b** : int\n        B.\n\n    **c** : int\n\n"
        ":Attributes:\n"
    )
    grouped = extension("api_pages").grouped
    order = re.findall(r"rubric:: \w+|\*\*\w\*\*", grouped(text))
    assert order == ["rubric:: One", "**a**", "**c**", "rubric:: Two", "**b**"]
    assert grouped(text).endswith(":Attributes:\n")
    assert grouped(text).startswith("A sum,\nof two.\n\n:Parameters:\n\n")
    with pytest.raises(ValueError, match=r"lack \['b'\]"):
        grouped(text.replace("`b`", ""))


def test_the_sidebar_of_the_api_has_the_names_of_the_page():
    pytest.importorskip("markupsafe")
    page = ROOT / "docs" / "api.rst"
    listed = extension("api_pages").modules(page)
    assert listed["skcontrast"][:2] == ["ContrastiveEmbedder", "ContrastiveClassifier"]
    assert sum(map(len, listed.values())) == len(
        re.findall(r"^   \w+$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    )
