"""Sets of graphs that are made: like molecules, threads of a forum, and proteins of six families.

Their classes depend on structure, with noise, so that no simple count gives them away.
"""

from __future__ import annotations

import numpy as np
import torch

from skcontrast.graphs import PackedGraphs
from skcontrast.graphs._packed import Topology

VALENCES = {"C": 4, "N": 3, "O": 2, "S": 2, "Cl": 1}
SHARES = [0.68, 0.13, 0.12, 0.03, 0.04]


def made_graphs(name, n_graphs=600, seed=0):
    """Return packed graphs of the set of a name, and their classes."""
    rng = np.random.default_rng(seed)
    drawn = MADE[name](n_graphs, rng)
    edges, labels, y = zip(*drawn, strict=True)
    ptr = np.cumsum([0, *map(len, labels)])
    links = np.hstack([one + start for one, start in zip(edges, ptr, strict=False)])
    both = torch.from_numpy(np.hstack([links, links[::-1]]))
    packed = PackedGraphs(Topology.from_edges(both, torch.from_numpy(ptr), True))
    if labels[0][0] is not None:
        categories, codes = np.unique(np.concatenate(labels), return_inverse=True)
        packed.labels, packed.categories = torch.from_numpy(codes), tuple(categories.tolist())
    return packed, np.array(y)


def molecules(n_graphs, rng):
    """Return rings and chains of atoms; size and the neighbours of carbons decide."""
    found = [_molecule(rng) for _ in range(n_graphs)]
    scores = [_motifs(edges, atoms) + rng.normal(0, 0.3) for edges, atoms in found]
    active = scores > np.median(scores)
    return [(*molecule, int(one)) for molecule, one in zip(found, active, strict=True)]


def _molecule(rng):
    """Return the bonds, shape (2, m), and the atoms of a molecule."""
    size = np.clip(rng.lognormal(2.9, 0.4), 6, 60)
    atoms, bonds, free = ["C"], [], [4]

    def grow(parent, atom):
        atoms.append(atom)
        free.append(VALENCES[atom] - 1)
        free[parent] -= 1
        bonds.append((parent, len(atoms) - 1))
        return len(atoms) - 1

    while len(atoms) < size:
        open_atoms = np.flatnonzero(np.array(free) > 0)
        if not len(open_atoms):
            break
        last = start = rng.choice(open_atoms)
        if rng.random() < 0.15:
            for _ in range(rng.integers(4, 6)):
                last = grow(last, rng.choice(["C", "N"], p=[0.85, 0.15]))
            if free[start] > 0:
                bonds.append((start, last))
                free[start], free[last] = free[start] - 1, free[last] - 1
        else:
            grow(start, rng.choice(list(VALENCES), p=SHARES))
    return np.array(bonds).T, np.array(atoms)


def _motifs(edges, atoms):
    """Return carbons between nitrogen and oxygen, less those of chlorine, and size, as logs."""
    n = len(atoms)
    linked = np.zeros((n, n))
    linked[edges[0], edges[1]] = linked[edges[1], edges[0]] = 1
    next_to = {atom: linked @ (atoms == atom) for atom in VALENCES}
    carbon = atoms == "C"
    amides = (carbon & (next_to["N"] > 0) & (next_to["O"] > 0)).sum()
    chlorides = (carbon & (next_to["Cl"] > 0) & (next_to["C"] > 2)).sum()
    return np.log1p(2 * amides) - np.log1p(2 * chlorides) + np.log(n)


def threads(n_graphs, rng):
    """Return trees of replies: to the first post, to the last one, or to any; no labels."""
    found = []
    for _ in range(n_graphs):
        y = int(rng.integers(2))
        to_first = rng.beta(6, 6) if y else rng.beta(3, 9)
        to_last = rng.beta(3, 9) if y else rng.beta(6, 6)
        n = int(np.clip(rng.lognormal(3.5, 0.7), 5, 300))
        parents = []
        for k in range(1, n):
            u = rng.random()
            any_post = k - 1 if rng.random() < to_last else rng.integers(k)
            parents.append(0 if u < to_first else any_post)
        found.append((np.array([parents, range(1, n)]), [None] * n, y))
    return found


def proteins(n_graphs, rng):
    """Return folded chains of helices, sheets and turns, of six families."""
    common = np.array([[0.7, 0.1, 0.2], [0.1, 0.65, 0.25], [0.4, 0.4, 0.2]])
    families = [0.75 * common + 0.25 * rng.dirichlet(np.ones(3), 3) for _ in range(6)]
    stiffness = rng.uniform(0.2, 1.2, (6, 3))
    found = []
    for _ in range(n_graphs):
        y = int(rng.integers(6))
        n = int(np.clip(rng.lognormal(3.4, 0.4), 8, 120))
        parts = [int(rng.integers(3))]
        for _ in range(n - 1):
            parts.append(int(rng.choice(3, p=families[y][parts[-1]])))
        parts = np.array(parts)
        steps = rng.normal(size=(n, 3)) + 0.3
        for k in range(1, n):
            steps[k] += stiffness[y, parts[k]] * steps[k - 1]
        places = np.cumsum(steps / np.linalg.norm(steps, axis=1, keepdims=True), 0)
        distances = np.linalg.norm(places[:, None] - places, axis=2)
        chained = np.abs(np.subtract.outer(range(n), range(n))) == 1
        edges = np.array(np.nonzero(np.triu((distances < 1.6) | chained, 1)))
        found.append((edges, parts, y))
    return found


MADE = {"molecules": molecules, "threads": threads, "proteins": proteins}
