"""Rooms of the package stand on each other as CONTRIBUTING shows."""

import ast
import importlib
import pkgutil
from functools import cache
from importlib.util import resolve_name
from pathlib import Path

import networkx as nx

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


def test_only_the_embedder_imports_what_trains():
    importers = {
        name for name in FILES for module, _ in imports(name) if room(f"{module}.") == "_fit"
    }
    assert {room(name) for name in importers} == {"_fit", "embedder"}
