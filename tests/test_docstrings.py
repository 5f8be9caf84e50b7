"""The parameters that docstrings name are those of the signatures, private ones included."""

import importlib
import inspect
import pkgutil
import re

import skcontrast

MODULES = [m.name for m in pkgutil.walk_packages(skcontrast.__path__, "skcontrast.")]


def described(module):
    """Yield the functions, methods and classes of a module that have a section of parameters."""
    for thing in vars(module).values():
        is_of_dynamo = getattr(thing, "__name__", "").startswith("torch_dynamo")
        if getattr(thing, "__module__", None) != module.__name__ or is_of_dynamo:
            continue
        of_class = vars(thing).values() if inspect.isclass(thing) else ()
        for one in (thing, *of_class):
            one = getattr(one, "__func__", getattr(one, "fn", one))
            has_section = "Parameters\n-" in inspect.cleandoc(getattr(one, "__doc__", None) or "")
            if has_section and (inspect.isclass(one) or inspect.isfunction(inspect.unwrap(one))):
                yield one


def documented(docstring):
    section = inspect.cleandoc(docstring).split("Parameters\n----------\n", 1)[1]
    section = re.split(r"\n[^\n]+\n-{3,}\n", section, maxsplit=1)[0]
    heads = re.findall(r"^(\S.*?)(?: : .*)?$", section, re.MULTILINE)
    return [name.lstrip("*") for head in heads for name in head.split(", ")]


def test_documented_parameters_exist_and_are_in_order():
    wrong = {}
    for module in MODULES:
        for thing in described(importlib.import_module(module)):
            signature = inspect.signature(thing).parameters
            names = documented(thing.__doc__)
            if names != [n for n in signature if n in names and n not in ("self", "cls")]:
                wrong[f"{module}.{thing.__qualname__}"] = names
    assert not wrong
