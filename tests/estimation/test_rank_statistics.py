"""Ranks of positives among the candidates."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from skcontrast._objective import _mean_loss  # private: the size of the tiles
from skcontrast.estimation import macro_auc, positive_ranks

# private: counts against naive code
from skcontrast.estimation._samples import class_aucs, contrast_of, count_outscored
from skcontrast.frameworks import in_batch
from skcontrast.similarity import Cosine, VonMisesFisher
from tests.common import random_views


@pytest.mark.parametrize("n_views", [2, 3])
def test_positive_ranks_count_the_candidates_below(n_views, monkeypatch):
    monkeypatch.setattr(_mean_loss, "_MIN_ROWS", 4)
    monkeypatch.setattr(_mean_loss, "_TILE_ELEMENTS", 1)
    views = random_views(7, 5, n_views)
    u = torch.nn.functional.normalize(torch.stack(views), dim=-1)
    expected = []
    for v in range(n_views):
        for i in range(7):
            scores = u[:, [j for j in range(7) if j != i]].flatten(0, 1) @ u[v, i]
            for w in range(v + 1, v + n_views):
                positive = u[w % n_views, i] @ u[v, i]
                expected.append((scores <= positive).double().mean().item())
    np.testing.assert_allclose(positive_ranks(*views), expected)
    np.testing.assert_allclose(positive_ranks(*views, similarity=Cosine(0.1)), expected)


def test_distributions_are_ranked_by_their_mutual_likelihood():
    rng = np.random.default_rng(0)
    views = [(rng.normal(size=(6, 4)), rng.uniform(1, 50, size=6)) for _ in range(2)]
    similarity, y = VonMisesFisher(), [0, 0, 0, 1, 1, 1]
    both = [np.concatenate(parts) for parts in zip(*views, strict=True)]
    scores = similarity(*[tuple(map(torch.from_numpy, both))] * 2).numpy()
    others = [[j for j in range(12) if j % 6 != i % 6] for i in range(12)]
    expected = [(scores[i, others[i]] <= scores[i, (i + 6) % 12]).mean() for i in range(12)]
    np.testing.assert_allclose(positive_ranks(*views, similarity=similarity), expected)
    expected = [
        roc_auc_score(np.equal.outer(y * 2, y * 2)[i, others[i]], scores[i, others[i]])
        for i in range(12)
    ]
    assert macro_auc(*views, y=y, similarity=similarity).value == pytest.approx(np.mean(expected))
    with pytest.raises(TypeError, match="need similarity=VonMisesFisher"):
        positive_ranks(*views)


def test_areas_need_labels():
    z = Cosine().embed(torch.stack(random_views(4, 3)))
    with pytest.raises(ValueError, match="The contrast has no labels"):
        class_aucs(in_batch(z), Cosine())


def test_arrays_tensors_and_single_precision_give_one_contrast_in_double():
    views = random_views(6, 4, dtype=torch.float32)
    first, similarity = contrast_of(views, None, None, 2)
    second, _ = contrast_of([view.numpy() for view in views], Cosine(), None, 2)
    assert isinstance(similarity, Cosine) and first.anchors.dtype == torch.float64
    torch.testing.assert_close(first.anchors, second.anchors, rtol=0, atol=0)


def test_distributions_and_the_output_of_a_network_give_one_contrast():
    similarity = VonMisesFisher()
    raw = random_views(6, 5)
    pairs = [tuple(map(np.asarray, similarity.distribution(view))) for view in raw]
    first, second = (contrast_of(z, similarity, None, 2)[0] for z in (raw, pairs))
    torch.testing.assert_close(first.anchors, second.anchors)


def test_positives_that_are_named_by_their_places_have_the_ranks_of_their_scores():
    contrast, similarity = contrast_of(random_views(9, 4), None, None, 2)
    scores = similarity.scores(contrast.anchors, contrast.candidates)
    by_score = replace(contrast, positives=scores.gather(1, contrast.positives))
    counts = [count_outscored(one, similarity) for one in (contrast, by_score)]
    assert torch.equal(*counts) and counts[0].min() < counts[0].max()
