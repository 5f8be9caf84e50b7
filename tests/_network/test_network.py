"""Encoder and head together, and the directions of projections."""

import torch
from torch import nn

from skcontrast._network._network import Directions, Network
from skcontrast.similarity import Cosine, VonMisesFisher


def test_a_network_is_the_head_on_the_encoder():
    encoder, projector = nn.Linear(4, 3), nn.Linear(3, 2)
    x = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    network = Network(encoder, projector)
    assert network(x).equal(projector(encoder(x)))
    assert network.encoder is encoder and network.projector is projector


def test_directions_are_the_projections_unless_the_similarity_says_otherwise():
    z = torch.randn(5, 6, generator=torch.Generator().manual_seed(0))
    assert Directions(Cosine(), 1)(z).equal(z)
    assert Directions(Cosine(), 2)(z).equal(z)


def test_directions_are_taken_of_each_part_and_lie_side_by_side():
    similarity = VonMisesFisher()
    first, second = torch.randn(2, 5, 4, generator=torch.Generator().manual_seed(0)).unbind()
    both = Directions(similarity, 2)(torch.cat([first, second], 1))
    expected = torch.cat([similarity.directions(first), similarity.directions(second)], 1)
    assert both.shape == (5, 2 * (4 - similarity.n_extra))
    torch.testing.assert_close(both, expected)
    torch.testing.assert_close(both[:, :3].norm(dim=1), torch.ones(5))
