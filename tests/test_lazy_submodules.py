"""``import skcontrast`` is quiet and light, and enough to reach every subpackage."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys

import pytest

import skcontrast

PUBLIC = sorted(
    module.name for module in pkgutil.iter_modules(skcontrast.__path__) if module.name[0] != "_"
)
SUBMODULES = [name for name in PUBLIC if name != "embedder"]  # its class is at the top


def test_dir_lists_the_public_names_only():
    assert dir(skcontrast) == sorted([*skcontrast.__all__, *SUBMODULES])


@pytest.mark.parametrize("name", SUBMODULES)
def test_dir_of_a_module_lists_its_own_names_only(name):
    module = importlib.import_module(f"skcontrast.{name}")
    assert [found for found in dir(module) if found[0] != "_"] == sorted(module.__all__)


@pytest.fixture(scope="module")
def fresh():
    """A new interpreter that imports the package alone, with warnings as errors, and what it says.

    Its second line has the submodules that it reached, its third those of the packages that only
    drawing or graphs need which are imported by then.
    """
    names = ", ".join(f"skcontrast.{name}" for name in SUBMODULES)
    code = (
        "import skcontrast, sys; print('imported'); "
        f"print(*(m.__name__ for m in [{names}])); "
        "print(*{'matplotlib', 'networkx'}.intersection(sys.modules))"
    )
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True
    )


def test_importing_the_package_warns_of_nothing(fresh):
    assert fresh.stdout.startswith("imported") and not fresh.stderr


def test_submodules_are_reached_after_importing_the_package_alone(fresh):
    assert fresh.stdout.splitlines()[1].split() == [f"skcontrast.{name}" for name in SUBMODULES]


def test_what_only_drawing_or_graphs_need_is_not_imported_with_the_submodules(fresh):
    assert fresh.stdout.splitlines()[2] == ""


def test_other_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="module 'skcontrast' has no attribute 'dataset'"):
        skcontrast.dataset  # noqa: B018
    assert importlib.import_module("skcontrast.metrics") is skcontrast.metrics
