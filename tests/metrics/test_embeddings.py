"""Alignment, uniformity and effective rank, against naive loops."""

import math

import numpy as np
import pytest

# private: sizes of the parts
from skcontrast.metrics import (
    _embeddings,
    alignment,
    effective_rank,
    neighbor_agreement,  # private: sizes of the parts
    uniformity,
)

RNG = np.random.default_rng(0)
Z1, Z2 = RNG.normal(size=(2, 40, 6))


def unit(z):
    return z / math.sqrt(sum(x * x for x in z))


def test_alignment_agrees_with_a_loop():
    naive = sum(sum((unit(a) - unit(b)) ** 2) for a, b in zip(Z1, Z2, strict=True)) / len(Z1)
    assert alignment(Z1, Z2) == pytest.approx(naive, rel=1e-12)


@pytest.mark.parametrize("entries", [1, 280, 10_000])
def test_uniformity_agrees_with_a_loop_in_parts_of_any_size(entries, monkeypatch):
    monkeypatch.setattr(_embeddings, "_ENTRIES", entries)
    pairs = [(i, j) for i in range(len(Z1)) for j in range(i)]
    potentials = [math.exp(-3 * sum((unit(Z1[i]) - unit(Z1[j])) ** 2)) for i, j in pairs]
    assert uniformity(Z1, t=3) == pytest.approx(math.log(sum(potentials) / len(pairs)), rel=1e-12)


def test_effective_rank_agrees_with_its_formula():
    values = np.linalg.svd(Z1)[1]
    shares = values / values.sum()
    naive = math.exp(-sum(p * math.log(p) for p in shares))
    assert effective_rank(Z1) == pytest.approx(naive, rel=1e-12)


def test_a_single_point_is_the_least_uniform_and_has_rank_one():
    point = np.ones((20, 3))
    assert uniformity(point) == pytest.approx(0, abs=1e-12)
    assert effective_rank(point) == pytest.approx(1)
    assert effective_rank(np.zeros((20, 3))) == 0


def test_length_does_not_matter_on_the_sphere_and_scale_not_in_the_rank():
    lengths = RNG.uniform(1e-200, 1e200, size=(40, 1))
    assert uniformity(lengths * Z1) == pytest.approx(uniformity(Z1))
    assert alignment(lengths * Z1, Z2) == pytest.approx(alignment(Z1, Z2))
    assert effective_rank(1e-9 * Z1) == pytest.approx(effective_rank(Z1))


def test_rows_of_zeros_are_finite():
    zeros = np.zeros((5, 3))
    assert alignment(zeros, zeros) == 0 and uniformity(zeros) == 0


@pytest.mark.parametrize("t", [0, -1.0, math.nan])
def test_a_sharpness_that_is_not_positive_is_refused(t):
    with pytest.raises(ValueError, match="'t' parameter of uniformity must be"):
        uniformity(Z1, t=t)


def test_views_that_do_not_match_are_refused():
    with pytest.raises(ValueError, match="equally wide, got 6 and 5"):
        alignment(Z1, Z2[:, :5])
    with pytest.raises(ValueError, match="equally long"):
        alignment(Z1, Z2[:5])
    with pytest.raises(ValueError, match="NaN"):
        effective_rank(np.full((3, 2), np.nan))
    with pytest.raises(ValueError, match="minimum of 2"):
        uniformity(Z1[:1])


# Agreement of neighbours


def naive_agreement(z1, z2, k):
    def nearest(z, i):
        cosines = [(unit(z[i]) @ unit(z[j]), j) for j in range(len(z)) if j != i]
        return {j for _, j in sorted(cosines)[-k:]}

    return np.mean([len(nearest(z1, i) & nearest(z2, i)) / k for i in range(len(z1))])


@pytest.mark.parametrize("entries", [1, 35, 10_000])
@pytest.mark.parametrize("k", [1, 5])
def test_neighbor_agreement_agrees_with_a_loop(entries, k, monkeypatch):
    monkeypatch.setattr(_embeddings, "_ENTRIES", entries)
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
    with pytest.raises(ValueError, match=r"'n_neighbors' parameter of neighbor_agr.* Got 0"):
        neighbor_agreement(Z1, Z2, 0)


def test_embeddings_of_other_samples_are_refused():
    with pytest.raises(ValueError, match="equally long"):
        neighbor_agreement(Z1, Z2[:5])
    with pytest.raises(ValueError, match="Input z2 contains NaN"):
        neighbor_agreement(Z1, np.full_like(Z1, np.nan))
