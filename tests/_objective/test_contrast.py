"""Who is contrasted with whom within a batch."""

import torch

from skcontrast.frameworks import Contrast, in_batch


def test_in_batch_names_positives_and_excluded():
    views = torch.stack([torch.tensor([[1.0], [2.0]]) * k for k in (1, 10, 100)])
    contrast = in_batch(views)
    assert contrast.anchors.flatten().tolist() == [1, 2, 10, 20, 100, 200]
    assert contrast.excluded[0].tolist() == [0, 2, 4]
    assert contrast.excluded[5].tolist() == [5, 1, 3]
    assert contrast.positives[0].tolist() == [2, 4]
    assert contrast.positives[5].tolist() == [1, 3]


def test_every_field_of_a_contrast_is_taken_or_kept():
    labels = torch.arange(9) % 3
    contrast = Contrast(
        anchors=torch.rand(9, 2),
        candidates=torch.rand(9, 2),
        positives=torch.rand(9, 1),
        excluded=torch.arange(9),
        weights=torch.ones(9),
        anchor_labels=labels,
        candidate_labels=labels,
        anchor_groups=labels,
        candidate_groups=labels,
        correcting=torch.rand(9),
        pair_weights=torch.ones(9, 9),
    )
    taken = contrast.take(slice(2, 5))
    for name, value in vars(contrast).items():
        kept = getattr(taken, name)
        belongs_to_candidates = name.startswith("candidate")
        assert kept is value if belongs_to_candidates else torch.equal(kept, value[2:5])
