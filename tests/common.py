"""Closed-form inputs and golden values that several test modules share."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import torch


@cache
def golden_cases():
    """Return the reference values; `meta` in the file says how each was made."""
    path = Path(__file__).parent / "golden" / "losses.json"
    return json.loads(path.read_text())["cases"]


@cache
def golden_vmf():
    """Return the table of the von Mises–Fisher distribution."""
    path = Path(__file__).parent / "golden" / "losses.json"
    return json.loads(path.read_text())["vmf"]


def golden_input(name, n, d):
    """Return the rows of the golden file's `inputs_formula`, float64, of unit length."""
    i = torch.arange(n, dtype=torch.float64)[:, None]
    j = torch.arange(d, dtype=torch.float64)
    wave = torch.sin(0.37 * (i + 1) * (j + 1))
    rows = {
        "A": wave + 0.1 * torch.cos(1.7 * i - 0.3 * j),
        "B": wave + 0.4 * torch.cos(0.53 * (i + 2) * (j + 1)),
        "C": wave + 0.3 * torch.sin(0.91 * (i + 1) + 0.47 * (j + 1) ** 2),
        "Q": torch.cos(0.29 * (i + 1) * (j + 2)) + 0.2 * torch.sin(1.1 * i + 0.7 * j),
    }[name]
    return rows / rows.norm(dim=1, keepdim=True)


def random_views(n, d, n_views=2, *, dtype=torch.float64, seed=0):
    """Return views that are noisy copies of common samples."""
    generator = torch.Generator().manual_seed(seed)
    base = torch.randn(n, d, generator=generator, dtype=dtype)
    noise = torch.randn(n_views, n, d, generator=generator, dtype=dtype)
    return list(base + 0.5 * noise)
