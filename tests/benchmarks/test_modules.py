"""Benchmarks can be started: each module imports with what the package itself needs."""

import importlib
from pathlib import Path

import pytest

import benchmarks

FOLDER = Path(benchmarks.__file__).parent
MODULES = [
    ".".join(path.relative_to(FOLDER.parent).with_suffix("").parts)
    for path in sorted(FOLDER.glob("s*/*.py"))
]


@pytest.mark.parametrize("module", MODULES)
def test_a_benchmark_imports(module):
    importlib.import_module(module)
