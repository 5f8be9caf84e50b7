"""``import skcontrast`` is enough to reach every subpackage."""

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
    if name == "schedules":
        pytest.xfail("its names are listed with those that it imports")
    module = importlib.import_module(f"skcontrast.{name}")
    assert [found for found in dir(module) if found[0] != "_"] == sorted(module.__all__)


def test_submodules_are_reached_after_importing_the_package_alone():
    names = ", ".join(f"skcontrast.{name}" for name in SUBMODULES)
    code = f"import skcontrast; print(*(m.__name__ for m in [{names}]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [f"skcontrast.{name}" for name in SUBMODULES]


def test_other_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="module 'skcontrast' has no attribute 'dataset'"):
        skcontrast.dataset  # noqa: B018
    assert importlib.import_module("skcontrast.metrics") is skcontrast.metrics
