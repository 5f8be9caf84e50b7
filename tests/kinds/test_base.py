"""A kind of one's own: sequences of token ids, and what is named where it lacks something."""

import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from torch import nn

from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import Augmentation, RandomAffine
from skcontrast.encoders import Encoder
from skcontrast.frameworks import CMC, MoCo
from skcontrast.kinds import Kind
from skcontrast.losses import BCL, DCL

# A kind of one's own: sequences of token ids, of unequal length. 0 is the padding.


class Tokens(Kind):
    name = "sequences of token ids"

    def check(self, X):
        sequences = np.empty(len(X), dtype=object)
        sequences[:] = [np.asarray(x, dtype=np.int64) for x in X]
        if any(x.ndim != 1 or not len(x) or x.min() < 1 for x in sequences):
            raise ValueError("X must hold sequences of token ids, integers from 1 on.")
        return sequences

    def to_tensor(self, X, device):
        tensors = [torch.from_numpy(x) for x in X]
        return nn.utils.rnn.pad_sequence(tensors, batch_first=True).to(device)


class BagOfTokens(Encoder):
    kind = Tokens()

    def __init__(self, n_tokens=50, width=16):
        self.n_tokens = n_tokens
        self.width = width

    def build(self, sample_shape, n_components=None):
        return _MeanEmbedding(self.n_tokens, n_components or self.width)


class _MeanEmbedding(nn.Module):
    def __init__(self, n_tokens, width):
        super().__init__()
        self.embedding = nn.Embedding(n_tokens, width, padding_idx=0)
        self.linear = nn.Linear(width, width)

    def forward(self, tokens):
        n_known = (tokens > 0).sum(1, keepdim=True).clamp_min(1)
        return self.linear(self.embedding(tokens).sum(1) / n_known)


class TokenDropout(Augmentation):
    kind = Tokens()

    def __init__(self, rate=0.2):
        self.rate = rate

    def augment(self, batch, generator=None):
        dropped = torch.rand(batch.shape, generator=generator, device=batch.device) < self.rate
        return batch.masked_fill(dropped, 0)


def token_embedder(**kwargs):
    defaults = {"encoder": BagOfTokens(), "max_epochs": 3, "random_state": 0, "device": "cpu"}
    return ContrastiveEmbedder(**{**defaults, **kwargs})


def documents(n=60):
    """Return documents of three topics, each with words of its own, and the topics."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, n)
    return [list(rng.integers(1, 15, rng.integers(4, 12)) + 15 * topic) for topic in y], y


def test_a_kind_of_ones_own_trains_and_transforms():
    X, y = documents()
    embedder = token_embedder(augmentation=TokenDropout()).fit(X)
    h = embedder.transform(X)
    assert h.shape == (60, 16) and h.dtype == np.float32
    np.testing.assert_allclose(embedder.transform(X[:1]), h[:1], rtol=1e-4, atol=1e-6)
    again = clone(embedder).fit(X).transform(X)
    np.testing.assert_array_equal(again, h)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(embedder)).transform(X), h)
    assert 0 <= embedder.score(X) <= 1
    probe = LogisticRegression().fit(h[:40], y[:40])
    assert probe.score(h[40:], y[40:]) > 0.9


class Names(Tokens):
    """Names of documents, which are read when they are needed."""

    longest = 0

    def check(self, X):
        return np.asarray(X)

    def to_tensor(self, X, device):
        Names.longest = max(Names.longest, len(X))
        rows = torch.tensor([int(name) for name in X], device=device)
        return 1 + (rows[:, None] * torch.arange(1, 9, device=device)) % 49


def test_samples_that_take_too_much_memory_are_read_batch_by_batch():
    X = [str(row) for row in range(20_000)]
    given = {"kind": Names(), "augmentation": TokenDropout(), "max_epochs": 1}
    streamed = token_embedder(memory_budget=0, **given).fit(X)
    assert Names.longest == 10_000  # of which the scaler learns
    held = token_embedder(**given).fit(X)
    assert Names.longest == len(X)
    np.testing.assert_array_equal(streamed.transform(X), held.transform(X))


def test_a_kind_of_ones_own_sits_in_a_pipeline_and_a_search():
    X, y = documents()
    pipe = make_pipeline(TokenDropout(), token_embedder(), LogisticRegression())
    assert pipe.fit(X, y).score(X, y) > 0.9
    grid = {
        "tokendropout__rate": [0.1, 0.5],
        "contrastiveembedder__encoder__width": [4, 8],
        "contrastiveembedder__loss": [DCL(), BCL()],
    }
    search = GridSearchCV(pipe, grid, cv=2, error_score="raise").fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.predict(X[:5]).shape == (5,)


@pytest.mark.parametrize("framework", [MoCo(32, momentum=0.9), None])
def test_a_kind_of_ones_own_works_with_frameworks_and_resumes(framework):
    X, _ = documents()
    embedder = token_embedder(
        augmentation=TokenDropout(), framework=framework, warm_start=True
    ).fit(X)
    assert embedder.fit(X).n_epochs_ == 6
    assert embedder.partial_fit(X).n_epochs_ == 7


def test_a_kind_of_ones_own_may_be_declared_on_the_embedder():
    X, _ = documents()
    by_encoder = token_embedder(augmentation=TokenDropout()).fit(X).transform(X)
    module = token_embedder(
        kind=Tokens(), encoder=lambda shape: BagOfTokens().build(shape), augmentation=[]
    )
    assert module.fit(X).transform(X).shape == by_encoder.shape


def test_what_a_kind_of_ones_own_lacks_is_named():
    X, _ = documents()
    with pytest.raises(ValueError, match="no default 'augmentation' for sequences of token ids"):
        token_embedder().fit(X)
    with pytest.raises(ValueError, match="no default 'encoder' for sequences of token ids"):
        ContrastiveEmbedder(kind=Tokens(), augmentation=TokenDropout()).fit(X)
    with pytest.raises(ValueError, match="from 1 on"):
        token_embedder(augmentation=TokenDropout()).fit([[0, 1], [2]])
    with pytest.raises(ValueError, match=r"RandomAffine expects images .* got sequences of token"):
        token_embedder(augmentation=RandomAffine()).fit(X)
    with pytest.raises(ValueError, match=r"CMC splits .* sequences of token ids"):
        token_embedder(augmentation=TokenDropout(), kind=Tokens(), framework=CMC()).fit(X)


def test_few_sequences_are_refused():
    embedder = token_embedder(augmentation=TokenDropout())
    with pytest.raises(ValueError, match=r"Found 1 sample\(s\) in X while a minimum of 2"):
        embedder.fit([[1, 2]])
