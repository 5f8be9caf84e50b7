"""Every module has a file of tests, or is listed with the file that specifies it."""

import re
from pathlib import Path

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "skcontrast"
MODULES = sorted(
    path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py") if path.name != "__init__.py"
)


def mirrored(module):
    """Return the file of tests of a module: ``losses/_base.py`` has ``losses/test_base.py``."""
    return TESTS / module.parent / f"test_{module.stem.removeprefix('_')}.py"


def listed():
    """Return by module the files that README.md names."""
    text = (TESTS / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w/]+\.py)` \| (.+) \|$", text, flags=re.MULTILINE)
    return {Path(module): re.findall(r"`([\w/]+\.py)`", place) for module, place in rows}


def test_a_module_has_a_file_of_tests_or_stands_in_the_list():
    have_a_file = {module for module in MODULES if mirrored(module).exists()}
    assert set(MODULES) - have_a_file - listed().keys() == set(), "write them, or list them"
    assert have_a_file & listed().keys() == set(), "strike them from the list"


def test_the_list_names_modules_and_files_that_exist():
    assert listed().keys() <= set(MODULES)
    for module, files in listed().items():
        assert files and all((TESTS / file).exists() for file in files), module
