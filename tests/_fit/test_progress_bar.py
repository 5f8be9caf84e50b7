"""``verbose=1`` prints what is trained, a bar and how it ended."""

import re

import pytest
import torch

from skcontrast import ContrastiveEmbedder
from tests.common import X_DIGITS, images, small, vectors


def test_silent_unless_asked(capfd):
    small().fit(X_DIGITS)
    out, err = capfd.readouterr()
    assert out == err == ""


@pytest.mark.parametrize(
    ("X", "encoder", "said"),
    [
        (images(20), None, "20 images of shape (3, 6, 6); ConvNet, {} parameters, 128 comp"),
        (vectors(), None, "60 vectors of shape (5,); MLP, {} parameters, 128 components; cpu"),
        (
            vectors(),
            torch.nn.Linear(5, 3),
            "60 vectors of shape (5,); Linear, 18 parameters, 3 comp",
        ),
    ],
)
def test_one_line_says_what_is_trained_and_one_how_it_ended(X, encoder, said, capfd):
    embedder = ContrastiveEmbedder(encoder, max_epochs=2, verbose=1, device="cpu").fit(X)
    first, last = [
        one for one in capfd.readouterr().err.splitlines() if "; " in one or " of " in one
    ]
    n_parameters = sum(one.numel() for one in embedder.encoder_.parameters())
    assert said.format(f"{n_parameters:,}") in first
    loss = embedder.history_[-1, "train_loss"]
    assert re.search(rf"2 of 2 epochs in \d\d:\d\d\. loss={loss:.4f}", last)
