"""How well views find each other: `score`."""

from skcontrast.similarity import Cosine
from tests.common import X_DIGITS, small


def test_score_rises_with_training_and_repeats():
    short, long = small(max_epochs=1).fit(X_DIGITS), small(max_epochs=30).fit(X_DIGITS)
    assert short.score(X_DIGITS) < long.score(X_DIGITS) < 0
    assert long.score(X_DIGITS) == long.score(X_DIGITS)


def test_score_compares_temperatures_on_one_scale():
    scores = [small(similarity=Cosine(t)).fit(X_DIGITS).score(X_DIGITS) for t in (0.05, 5.0)]
    assert abs(scores[0] - scores[1]) < 2
