"""A card says what the embedder knows."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from torch import nn

from skcontrast import ContrastiveEmbedder, model_card
from skcontrast.losses import BCL

X = np.random.default_rng(0).normal(size=(40, 6))


def test_a_card_has_the_choices_the_sizes_and_the_estimates():
    y = np.arange(40) % 2
    embedder = ContrastiveEmbedder(loss=BCL(tau_plus="auto"), max_epochs=6, random_state=0)
    card = model_card(embedder.fit(X, y), title="Noise")
    networks = nn.ModuleList([embedder.encoder_, embedder.projector_])
    n = sum(weights.numel() for weights in networks.parameters())
    assert card.startswith("# Noise\n")
    for text in ["vectors of shape (6,)", f"| {n:,} |", "tau_plus = ", "| epochs | 6 |"]:
        assert text in card
    assert repr(embedder) in card and "needed to load it, besides skcontrast | nothing" in card


def test_a_card_names_what_must_be_handed_over():
    class Net(nn.Linear):
        pass

    embedder = ContrastiveEmbedder(Net(6, 3), max_epochs=1, random_state=0).fit(X)
    assert "Net`" in model_card(embedder)


def test_only_a_fitted_embedder_has_a_card():
    with pytest.raises(NotFittedError):
        model_card(ContrastiveEmbedder())
