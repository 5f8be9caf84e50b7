"""Who is contrasted with whom within a batch."""

import torch

from skcontrast._objective._contrast import in_batch
from tests._objective.common import NotBilinear


def test_in_batch_names_positives_and_excluded():
    views = torch.stack([torch.tensor([[1.0], [2.0]]) * k for k in (1, 10, 100)])
    contrast = in_batch(views, NotBilinear())
    assert contrast.anchors.flatten().tolist() == [1, 2, 10, 20, 100, 200]
    assert contrast.excluded[0].tolist() == [0, 2, 4]
    assert contrast.excluded[5].tolist() == [1, 3, 5]
    assert contrast.positives[0].tolist() == [-(9.0**2), -(99.0**2)]
    assert contrast.positives[3].tolist() == [-(18.0**2), -(180.0**2)]
