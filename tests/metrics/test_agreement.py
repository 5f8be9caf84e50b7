"""Agreement of neighbours, against a naive loop."""

import math

import numpy as np
import pytest

from skcontrast.metrics import _embeddings, neighbor_agreement  # private: sizes of the parts

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
