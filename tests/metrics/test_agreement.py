"""Agreement of neighbours, CKA, and how well a view finds its sample, against naive loops."""

import math

import numpy as np
import pytest
import torch

from skcontrast import contrastive_loss
from skcontrast.metrics import (
    _search,
    bits_above_chance,
    linear_cka,
    neighbor_agreement,
    top_k,
)
from skcontrast.similarity import Cosine, DotProduct

RNG = np.random.default_rng(0)
Z1, Z2 = RNG.normal(size=(2, 40, 6))


def unit(z):
    return z / math.sqrt(sum(x * x for x in z))


def naive_agreement(z1, z2, k):
    def nearest(z, i):
        cosines = [(unit(z[i]) @ unit(z[j]), j) for j in range(len(z)) if j != i]
        return {j for _, j in sorted(cosines)[-k:]}

    return np.mean([len(nearest(z1, i) & nearest(z2, i)) / k for i in range(len(z1))])


@pytest.mark.parametrize("entries", [1, 35, 10_000])
@pytest.mark.parametrize("k", [1, 5])
def test_neighbor_agreement_agrees_with_a_loop(entries, k, monkeypatch):
    monkeypatch.setattr(_search, "_ENTRIES", entries)
    near = Z1 + 0.3 * Z2
    assert neighbor_agreement(Z1, near, k) == pytest.approx(naive_agreement(Z1, near, k))


def test_embeddings_of_unequal_width_and_length_have_neighbours_to_compare():
    turned = np.linalg.qr(RNG.normal(size=(9, 9)))[0][:6]
    assert neighbor_agreement(Z1, 5 * Z1 @ turned) == 1


def test_collapsed_embeddings_agree_by_chance_only():
    point = np.ones((400, 3))
    assert neighbor_agreement(point, point, 20) == pytest.approx(20 / 399, abs=0.02)


def test_there_are_at_most_n_minus_one_neighbours():
    assert neighbor_agreement(Z1[:4], Z2[:4], 100) == 1
    assert neighbor_agreement(Z1[:2], Z2[:2]) == 1


def test_no_neighbours_are_refused():
    with pytest.raises(ValueError, match="n_neighbors must be an int of at least 1, got 0"):
        neighbor_agreement(Z1, Z2, 0)


def naive_hsic(x, y):
    """Return Song's unbiased estimate, with matrices that have no diagonal."""
    n, (k, other) = len(x), (z @ z.T for z in (x, y))
    k, other = (m * (1 - np.eye(n)) for m in (k, other))
    one = np.ones(n)
    sums = (one @ k @ one) * (one @ other @ one) / ((n - 1) * (n - 2))
    return np.trace(k @ other) + sums - 2 / (n - 2) * (one @ k @ other @ one)


@pytest.mark.parametrize("seed", range(3))
def test_cka_agrees_with_the_kernel_matrices(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(30, 5)) + 2, rng.normal(size=(30, 8))
    y[:, :3] += x[:, :3]
    naive = naive_hsic(x, y) / math.sqrt(naive_hsic(x, x) * naive_hsic(y, y))
    assert linear_cka(x, y) == pytest.approx(naive, rel=1e-9)
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    norms = [np.linalg.norm(a.T @ b) for a, b in ((x, y), (x, x), (y, y))]
    biased = norms[0] ** 2 / (norms[1] * norms[2])
    assert linear_cka(x, y, debiased=False) == pytest.approx(biased, rel=1e-9)


@pytest.mark.parametrize("debiased", [True, False])
def test_cka_is_one_for_what_is_turned_shifted_and_scaled(debiased):
    turned = np.linalg.qr(RNG.normal(size=(9, 9)))[0][:6]
    assert linear_cka(Z1, 1e-9 * Z1 @ turned + 4, debiased=debiased) == pytest.approx(1, abs=1e-6)
    assert linear_cka(1e150 * Z1, Z1, debiased=debiased) == pytest.approx(1)
    there, back = (linear_cka(*pair, debiased=debiased) for pair in ((Z1, Z2), (Z2, Z1)))
    assert there == pytest.approx(back, rel=1e-12)


def test_unrelated_embeddings_have_a_cka_of_zero_on_average_only_without_bias():
    pairs = np.random.default_rng(1).normal(size=(200, 2, 40, 20))
    without, with_bias = ([linear_cka(*z, debiased=d) for z in pairs] for d in (True, False))
    assert np.mean(without) == pytest.approx(0, abs=4 * np.std(without) / math.sqrt(200))
    assert np.mean(with_bias) == pytest.approx(20 / 60, abs=0.02)


def test_a_constant_embedding_has_a_cka_of_zero():
    for debiased in (True, False):
        assert linear_cka(np.full((20, 3), 0.1), Z1[:20], debiased=debiased) == 0


def test_cka_needs_four_samples_of_both():
    with pytest.raises(ValueError, match="at least four samples, got 3"):
        linear_cka(Z1[:3], Z2[:3])
    with pytest.raises(ValueError, match="equally long"):
        linear_cka(Z1, Z2[:5])


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


def test_the_order_of_the_numbers_in_memory_does_not_matter():
    z1, z2 = views(3)
    copied = bits_above_chance(z1[::-1].copy(), z2[::-1].copy())
    assert bits_above_chance(z1[::-1], z2[::-1]) == copied


@pytest.mark.parametrize("measure", [top_k, bits_above_chance])
def test_contrastive_measures_refuse_views_that_do_not_match(measure):
    z1, z2 = views(0)
    with pytest.raises(ValueError, match="equally wide, got 4 and 3"):
        measure(z1, z2[:, :3])
    with pytest.raises(ValueError, match="equally long"):
        measure(z1, z2[:5])
    with pytest.raises(ValueError, match="Input z2 contains NaN"):
        measure(z1, np.full_like(z1, np.nan))


def test_there_are_at_most_n_candidates():
    with pytest.raises(ValueError, match="k must be at most 30, the number of samples, got 31"):
        top_k(*views(0), k=31)
    with pytest.raises(TypeError, match="similarity"):
        bits_above_chance(*views(0), similarity="cosine")


def test_scores_that_overflow_are_no_bits():
    z1, z2 = views(0)
    with pytest.raises(ValueError, match="z1 and z2 are too large"):
        bits_above_chance(z1 * 1e200, z2 * 1e200)
