"""Models of scores of all kinds."""

import pytest

from skcontrast.simulation import ScoreModel

MODELS = [
    ScoreModel(alpha=0.5, tau_plus=0.3, gamma=0.0),
    ScoreModel(alpha=0.8, tau_plus=0.3, gamma=0.0, temperature=0.2),
    ScoreModel(alpha=1.0, tau_plus=0.3, gamma=0.0, form="printed"),
    ScoreModel(alpha=0.9, tau_plus=0.6, gamma=0.0, proposal="normal", temperature=2.0),
]


@pytest.fixture(params=MODELS, ids=repr)
def model(request):
    return request.param
