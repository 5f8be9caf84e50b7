"""Samples told apart by their views, against loops over all pairs."""

import math

import numpy as np
import pytest
import torch

from skcontrast import contrastive_loss
from skcontrast.metrics import _search, bits_above_chance, top_k
from skcontrast.similarity import Cosine, DotProduct

seeds = pytest.mark.parametrize("seed", range(3))


def views(seed, n=30, d=4, noise=0.7):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, d))
    return z, z + noise * rng.normal(size=(n, d))


def cosine(a, b):
    return a @ b / math.sqrt(a @ a * (b @ b))


def naive_top_k(z1, z2, k):
    def found(queries, candidates, i):
        scores = [cosine(queries[i], other) for other in candidates]
        return sum(s > scores[i] for s in scores) < k

    n = len(z1)
    return np.mean([found(a, b, i) for a, b in ((z1, z2), (z2, z1)) for i in range(n)])


def naive_bits(z1, z2, temperature):
    z, n = np.vstack([z1, z2]), len(z1)
    bits = []
    for i in range(2 * n):
        scores = [cosine(z[i], other) / temperature for other in z]
        positive = scores[(i + n) % (2 * n)]
        total = sum(math.exp(s) for j, s in enumerate(scores) if j != i)
        bits.append(math.log2(2 * n - 1) + math.log2(math.exp(positive) / total))
    return np.mean(bits)


@seeds
@pytest.mark.parametrize("entries", [1, 100, 10_000])
@pytest.mark.parametrize("k", [1, 5])
def test_top_k_agrees_with_a_loop(seed, entries, k, monkeypatch):
    monkeypatch.setattr(_search, "_ENTRIES", entries)
    pair = views(seed)
    found = top_k(*pair, k=k)
    assert 0 < found < 1 and found == pytest.approx(naive_top_k(*pair, k), abs=1e-12)


@seeds
@pytest.mark.parametrize("temperature", [0.1, 0.5])
def test_bits_agree_with_a_loop(seed, temperature):
    pair = views(seed)
    found = bits_above_chance(*pair, similarity=Cosine(temperature))
    assert found == pytest.approx(naive_bits(*pair, temperature), rel=1e-9)


def test_equal_views_are_found_and_give_all_bits():
    z = views(0)[0]
    assert top_k(z, 3 * z) == 1
    bits = bits_above_chance(z, z, similarity=Cosine(0.001))
    assert bits == pytest.approx(math.log2(59), abs=1e-6)


def test_there_are_never_more_bits_than_the_candidates_and_the_temperature_allow():
    for seed in range(20):
        pair = views(seed, n=8, noise=0.1)
        for temperature in (0.01, 0.5, 5.0):
            bits = bits_above_chance(*pair, similarity=Cosine(temperature))
            assert bits <= math.log2(15) and bits <= 2 / (temperature * math.log(2))


@pytest.mark.parametrize("point", [0.0, 1.0])
def test_collapsed_embeddings_are_at_chance(point):
    z = np.full((40, 3), point)
    assert bits_above_chance(z, z) == pytest.approx(0, abs=1e-12)
    for k in (1, 10, 40):
        assert top_k(z, z, k=k) == pytest.approx(k / 40)


def test_wrong_partners_are_below_chance():
    z = views(0)[0]
    assert bits_above_chance(z, -z, similarity=Cosine(0.1)) < 0
    assert top_k(z, -z) == 0


def test_top_k_increases_to_one():
    found = [top_k(*views(1), k=k) for k in range(1, 31)]
    assert found == sorted(found) and found[-1] == 1


def test_bits_are_those_of_the_loss_with_any_similarity():
    pair = [0.3 * z for z in views(2)]
    loss = contrastive_loss(*map(torch.from_numpy, pair), similarity=DotProduct())
    expected = math.log2(59) - float(loss) / math.log(2)
    assert bits_above_chance(*pair, similarity=DotProduct()) == pytest.approx(expected)


@pytest.mark.parametrize("measure", [top_k, bits_above_chance])
def test_views_that_do_not_match_are_refused(measure):
    z1, z2 = views(0)
    with pytest.raises(ValueError, match="equally wide, got 4 and 3"):
        measure(z1, z2[:, :3])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        measure(z1, z2[:5])
    with pytest.raises(ValueError, match="Input z2 contains NaN"):
        measure(z1, np.full_like(z1, np.nan))


def test_there_are_at_most_n_candidates():
    with pytest.raises(ValueError, match="k must be at most 30, the number of samples, got 31"):
        top_k(*views(0), k=31)
    with pytest.raises(TypeError, match="similarity"):
        bits_above_chance(*views(0), similarity="cosine")
