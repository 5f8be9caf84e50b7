"""The embedder in what a user passes."""

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcontrast.plotting._estimators import split_at_embedder
from tests.common import small


def test_the_steps_before_the_embedder_are_those_of_the_pipeline():
    embedder, scaler = small(), StandardScaler()
    assert split_at_embedder(embedder) == (None, embedder)
    assert split_at_embedder(make_pipeline(embedder)) == (None, embedder)
    before, found = split_at_embedder(
        make_pipeline(scaler, embedder, LogisticRegression()),
    )
    assert found is embedder and [step for _, step in before.steps] == [scaler]


@pytest.mark.parametrize("estimator", [LogisticRegression(), make_pipeline(StandardScaler())])
def test_an_estimator_without_an_embedder_is_refused(estimator):
    with pytest.raises(TypeError, match="estimator must be a ContrastiveEmbedder or contain one"):
        split_at_embedder(estimator)
