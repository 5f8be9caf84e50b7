"""How the features of a sample are cut into parts."""

import numpy as np
import pytest
import torch
from sklearn.model_selection import GridSearchCV

from skcontrast.frameworks import CMC

# private: colours against published values
from skcontrast.frameworks._modalities import Split, rgb_to_lab
from tests.common import small
from tests.frameworks.common import X


@pytest.mark.parametrize("split", [1, 63, [0], [5, 3, 60], np.array([1, 2]), "random", "auto"])
def test_splits_cut_all_features_in_two(split):
    one = small(framework=CMC(split=split)).fit(X)
    first, second = one.encoder_[-1].split.columns
    assert sorted([*first.tolist(), *second.tolist()]) == list(range(64))
    if isinstance(split, int):
        assert first.tolist() == list(range(split))
    elif isinstance(split, str):
        again = small(framework=CMC(split=split)).fit(X).encoder_[-1].split.columns[0]
        reseeded = small(framework=CMC(split=split), random_state=1).fit(X)
        other = reseeded.encoder_[-1].split.columns[0]
        assert len(first) == 32 and torch.equal(first, again) and not torch.equal(first, other)
    else:
        assert first.tolist() == list(split)


def test_a_list_of_lists_names_more_than_two_parts():
    for split in ([[0, 2], range(3, 30), [40]], np.arange(6).reshape(3, 2)):
        one = small(framework=CMC(split=split)).fit(X)
        found = one.encoder_[-1].split
        assert [part.tolist() for part in found.columns] == [list(part) for part in split]
        assert one.transform(X).shape == (101, 3 * 128)
    in_order = Split([torch.arange(2), torch.arange(2, 5)], (5, 4, 4))
    assert in_order.shapes == [(2, 4, 4), (3, 4, 4)]
    x = torch.rand(3, 5, 4, 4)
    assert torch.cat(in_order(x), 1).equal(x)


@pytest.mark.parametrize(
    "split, message",
    [
        ([[0, 1], [1, 2]], "none twice"),
        ([[0], [64]], "must name features or channels from 0 to 63"),
        ([[0, 1]], "must name .* in two lists or more, or not all in one list of ints"),
        ([[0], []], "must be a name"),
        ([[0.5], [1]], "must be a name, an int, a list of ints or a list of such lists"),
        ([[[0]], [[1]]], "must be a name"),
        ([[0], 1], "split"),
    ],
)
def test_parts_that_cannot_be_are_refused(split, message):
    with pytest.raises(ValueError, match=message):
        small(framework=CMC(split=split)).fit(X)


def test_a_search_over_parts_of_different_number():
    grid = {"framework__split": [20, [[0, 1, 2], [3, 4], list(range(5, 64))]]}
    search = GridSearchCV(small(framework=CMC()), grid, cv=2, error_score="raise").fit(X)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize(
    "rgb, lab",
    [
        ((0, 0, 0), (0, 0, 0)),
        ((255, 255, 255), (100, 0, 0)),
        ((255, 0, 0), (53.24, 80.09, 67.20)),
        ((0, 255, 0), (87.73, -86.18, 83.18)),
        ((0, 0, 255), (32.30, 79.19, -107.86)),
        ((119, 119, 119), (50.03, 0, 0)),
        ((1, 1, 1), (0.27, 0, 0)),
    ],
)
def test_rgb_to_lab(rgb, lab):
    image = torch.tensor(rgb, dtype=torch.uint8).view(1, 3, 1, 1).expand(2, 3, 4, 5)
    expected = torch.tensor(lab, dtype=torch.float32).view(1, 3, 1, 1).expand(2, 3, 4, 5)
    torch.testing.assert_close(rgb_to_lab(image), expected, rtol=0, atol=0.02)
    as_float = (image / 255).requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        converted = rgb_to_lab(as_float)
    torch.testing.assert_close(converted, rgb_to_lab(image))
    converted.sum().backward()
    assert as_float.grad.isfinite().all()
