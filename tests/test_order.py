"""Rooms of the package stand on each other, and X goes through them, as CONTRIBUTING shows."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import sys
from functools import cache
from importlib.util import resolve_name
from pathlib import Path

import networkx as nx
import numpy as np

import skcontrast

PACKAGE = Path(skcontrast.__file__).parent
ROOT = Path(__file__).parents[1]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
# The door of metrics hands out names of what stands on embedders, when they are asked for.
HANDED_OUT = ("metrics", "_baselines")


def module_name(path):
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_name(path): path for path in PACKAGE.rglob("*.py")}


@cache
def imports(name):
    """Return the modules that a module imports, at its top or later, and what it takes of each."""
    return tuple(imported(name))


def imported(name):
    path = FILES[name]
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if alias.name in FILES)
        if isinstance(node, ast.ImportFrom):
            base = resolve_name("." * node.level + (node.module or ""), package)
            for alias in node.names:
                inside = f"{base}.{alias.name}"
                if inside in FILES or base in FILES:
                    yield (inside if inside in FILES else base), alias.name


def room(name):
    return name.split(".")[1]


def shown():
    """Return the rooms by name, as CONTRIBUTING shows them, with what it says of them."""
    tree = CONTRIBUTING.partition("```\nskcontrast/\n")[2].partition("```")[0]
    return dict(line.split(maxsplit=1) for line in tree.splitlines())


ROOMS = [name.removesuffix("/").removesuffix(".py") for name in shown()]


def test_contributing_shows_the_rooms_of_the_package():
    modules = pkgutil.iter_modules(skcontrast.__path__, "skcontrast.")
    assert shown() == {
        module.name.partition(".")[2] + ("/" if module.ispkg else ".py"): (
            importlib.import_module(module.name).__doc__.splitlines()[0]
        )
        for module in modules
    }


def test_a_room_imports_only_rooms_that_stand_below_it():
    for importer in ROOMS:
        inside = {name for name in FILES if name != "skcontrast" and room(name) == importer}
        used = {room(target) for name in inside for target, _ in imports(name)} - {importer}
        above = used & set(ROOMS[: ROOMS.index(importer)])
        assert above <= ({HANDED_OUT[1]} if importer == HANDED_OUT[0] else set())


def test_files_that_import_each_other_in_a_circle_are_three_at_most():
    inside = FILES.keys() - {"skcontrast"}
    pairs = [(name, target) for name in inside for target, _ in imports(name)]
    circles = nx.strongly_connected_components(nx.DiGraph(pairs))
    assert max(map(len, circles)) <= 3


def drawn():
    """Return depth, file, function and whether it is dotted, of each line of the drawing."""
    lines = re.findall(r"^([ │├└─┄]*)(\w[\w/]*\.py): (\S+)", CONTRIBUTING, re.MULTILINE)
    return [(len(stem) // 4, file, function, "┄" in stem) for stem, file, function in lines]


def uses(importer, imported):
    """Return whether a file imports another, or from a door something that is defined there."""
    target = module_name(PACKAGE / imported)
    for module, name in imports(module_name(PACKAGE / importer)):
        taken = getattr(importlib.import_module(module), name, None)
        if target in (module, getattr(taken, "__module__", None)):
            return True
    return False


@cache
def step_of(code):
    """Return file and function of a code object of the package, else None."""
    path = Path(code.co_filename)
    inside = PACKAGE in path.parents
    return (path.relative_to(PACKAGE).as_posix(), code.co_qualname) if inside else None


def callers(frame):
    """Yield the steps that are being taken around a frame, the nearest first."""
    while frame := frame.f_back:
        yield step_of(frame.f_code)


def test_x_goes_the_way_that_contributing_draws():
    steps, found = [line[1:3] for line in drawn()], {}

    def follow(frame, event, _):
        called = step_of(frame.f_code)
        if event == "call" and called in steps and called not in found:
            above = [step for step in callers(frame) if step in steps]
            found[called] = len(above), above and not uses(above[0][0], called[0])

    X = np.random.default_rng(0).uniform(size=(10, 8, 8))
    embedder = skcontrast.ContrastiveEmbedder(max_epochs=1, kind="images", random_state=0)
    before = sys.getprofile()
    sys.setprofile(follow)
    try:
        embedder.fit(X).transform(X)
    finally:
        sys.setprofile(before)
    assert len(steps) > 9
    assert [(depth, *step, bool(dotted)) for step, (depth, dotted) in found.items()] == drawn()


def test_only_the_embedder_imports_what_trains():
    importers = {
        name for name in FILES for module, _ in imports(name) if room(f"{module}.") == "_fit"
    }
    assert {room(name) for name in importers} == {"_fit", "embedder"}
