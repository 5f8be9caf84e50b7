"""The API page of the documentation lists the public names, all of them and no others."""

import importlib
import pkgutil
import re
from pathlib import Path

import skcontrast

PAGE = Path(__file__).parents[1] / "docs" / "api.rst"


def listed():
    """Return the names on the page by module."""
    names, module, in_list = {}, None, False
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if directive := re.match(r"\.\. (\w+):: ?(\S*)", line):
            in_list = directive[1] == "autosummary"
            module = directive[2] if directive[1] == "currentmodule" else module
        elif line and not line.startswith(" "):
            in_list = False
        elif in_list and re.fullmatch(r"   \w+", line):
            names.setdefault(module, []).append(line.strip())
    return names


def public_modules():
    """Return the modules that have names to import, without the files of the estimators."""
    modules = [m.name for m in pkgutil.iter_modules(skcontrast.__path__) if m.name[0] != "_"]
    return {
        "skcontrast",
        *(f"skcontrast.{m}" for m in modules if m not in ("classifier", "embedder")),
    }


def test_the_page_has_a_section_for_every_public_module():
    assert set(listed()) == public_modules()


def test_the_page_lists_what_a_module_exports():
    for module in sorted(public_modules()):
        exported = set(importlib.import_module(module).__all__) - {"__version__"}
        assert sorted(listed()[module]) == sorted(exported)


def test_the_groups_of_parameters_name_each_of_them_once():
    text = skcontrast.ContrastiveEmbedder.__doc__
    groups = text.partition("form six groups")[2].partition("Parameters\n")[0]
    named = re.findall(r"`(\w+)`", groups)
    assert sorted(named) == sorted(skcontrast.ContrastiveEmbedder().get_params(deep=False))
