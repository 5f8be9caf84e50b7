"""Classes of unlabeled samples, spread from the labeled ones, and what a fit does with them."""

import tracemalloc

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits, make_blobs
from skorch.callbacks import Callback

from skcontrast import _label_spreading  # private: sizes of the parts

# private: the solver against naive code
from skcontrast._label_spreading import LabelGraph, LabelSpreader, confident_labels, summarize
from skcontrast.frameworks import CMC, MoCo
from skcontrast.losses import InfoNCE, Loss, PseudoLabels, SemiSupCon, SupCon
from tests.common import small

X, y = load_digits(return_X_y=True)
X, y = X[:300], y[:300]
FEW = np.where(np.arange(300) < 50, y, -1)


def blobs(n=300, labeled=1):
    """Return clusters far from each other, their classes, and the same with few known."""
    h, truth = make_blobs(n, 4, centers=3, cluster_std=0.5, center_box=(-20, 20), random_state=0)
    labels = np.full(n, -1)
    for k in range(3):
        rows = np.flatnonzero(truth == k)[:labeled]
        labels[rows] = k
    return torch.as_tensor(h).float(), truth, torch.as_tensor(labels)


class Labels(Callback):
    """Notes the labels of the training set at the end of each epoch."""

    def __init__(self):
        self.seen = []

    def on_epoch_end(self, net, dataset_train=None, **kwargs):
        self.seen.append(dataset_train.metadata["labels"].clone())


def spread_labels(h, labels, n_neighbors):
    """Return all probabilities."""
    return np.concatenate([block for _, block in LabelGraph(h, labels, n_neighbors).chunks()])


def of(probabilities):
    """Return what is kept of probabilities."""
    return summarize([probabilities], np.random.default_rng(0))


def test_one_label_a_cluster_is_enough():
    h, truth, labels = blobs()
    probabilities = spread_labels(h, labels, 10)
    np.testing.assert_allclose(probabilities.sum(1), 1, rtol=1e-5)
    assert (probabilities.argmax(1) == truth).all()


def test_samples_outside_of_a_bounded_graph_take_the_classes_of_their_neighbours(monkeypatch):
    monkeypatch.setattr(_label_spreading, "_LARGEST_GRAPH", 60)
    h, truth, labels = blobs()
    assert (spread_labels(h, labels, 10).argmax(1) == truth).all()


def test_chunks_of_rows_do_not_show(monkeypatch):
    h, _, labels = blobs()
    expected = spread_labels(h, labels, 10)
    monkeypatch.setattr(_label_spreading, "_CHUNK", 7)
    np.testing.assert_allclose(spread_labels(h, labels, 10), expected, atol=1e-5)


def test_memory_does_not_grow_with_rows_times_classes(monkeypatch):
    monkeypatch.setattr(_label_spreading, "_LARGEST_GRAPH", 300)
    monkeypatch.setattr(_label_spreading, "_CHUNK", 64)
    h = torch.randn(6000, 4, generator=torch.Generator().manual_seed(0))
    labels = torch.where(torch.arange(6000) < 1500, torch.arange(6000) % 300, -1)
    spreader = LabelSpreader(None, labels)
    tracemalloc.start()
    spread = spreader.spread(h, [0])
    labels = spreader.shares(spread), spreader.complete(spread), spreader.draw(spread)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * 6000 * 300


def test_what_is_kept_of_probabilities_does_not_depend_on_blocks():
    h, _, labels = blobs()
    probabilities = spread_labels(h, labels, 10)
    whole = of(probabilities)
    halves = summarize(np.split(probabilities, [7]), np.random.default_rng(0))
    np.testing.assert_array_equal(whole.classes, probabilities.argmax(1))
    np.testing.assert_array_equal(whole.confidence, probabilities.max(1))
    np.testing.assert_allclose(whole.total, probabilities.sum(0), rtol=1e-5)
    for one, other in zip(whole, halves, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_samples_in_another_order_get_the_same_probabilities():
    h, _, labels = blobs(labeled=2)
    order = torch.randperm(len(h), generator=torch.Generator().manual_seed(0))
    expected = spread_labels(h, labels, 10)[order]
    np.testing.assert_allclose(spread_labels(h[order], labels[order], 10), expected, atol=1e-5)


@pytest.mark.parametrize("n_neighbors", [1, 1000])
def test_any_number_of_neighbours_gives_finite_probabilities(n_neighbors):
    h, _, labels = blobs(30)
    assert np.isfinite(spread_labels(h, labels, n_neighbors)).all()


def test_samples_that_no_label_reaches_have_no_class():
    h = torch.eye(4).repeat_interleave(5, 0)
    labels = torch.full((20,), -1)
    labels[0], labels[5] = 0, 1
    probabilities = spread_labels(h, labels, 3)
    np.testing.assert_allclose(probabilities.sum(1), [1] * 10 + [0] * 10, atol=1e-6)
    assert (confident_labels(of(probabilities), labels, 1.0)[10:] == -1).all()


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_given_labels_stay_and_the_surest_share_of_each_class_is_kept(share):
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet(np.ones(4), size=200).astype(np.float32)
    labels = torch.full((200,), -1)
    labels[:20] = torch.arange(20) % 4
    completed = confident_labels(of(probabilities), labels, share)
    assert (completed[:20] == labels[:20]).all()
    free, pseudo_labels = completed[20:].numpy(), probabilities[20:].argmax(1)
    for k in range(4):
        kept, dropped = (
            probabilities[20:][(pseudo_labels == k) & (free == c), k] for c in (k, -1)
        )
        assert len(kept) == round(share * (pseudo_labels == k).sum())
        assert not (len(kept) and len(dropped)) or kept.min() >= dropped.max()


def test_with_all_labels_the_fit_is_that_of_supcon():
    expected = small(loss=SupCon(), max_epochs=3).fit(X, y).transform(X)
    assert np.array_equal(
        small(loss=SemiSupCon(every=1), max_epochs=3).fit(X, y).transform(X), expected
    )


def test_without_any_label_the_fit_is_that_of_supcon_without_labels_and_of_infonce():
    def embedded(loss, optimizer="adam"):
        embedder = small(loss=loss, optimizer=optimizer, max_epochs=3)
        with pytest.warns(match="learns nothing from y"):
            return embedder.fit(X, np.full(300, -1)).transform(X)

    assert np.array_equal(embedded(SupCon()), embedded(SemiSupCon(every=1)))
    label_free = small(loss=InfoNCE(), optimizer="sgd", max_epochs=3).fit(X).transform(X)
    h = embedded(SemiSupCon(every=1), "sgd")
    np.testing.assert_allclose(h, label_free, atol=1e-4)


def test_without_pseudo_labels_and_without_more_labeled_samples_it_is_supcon():
    loss = SemiSupCon(every=1, share=0, labeled_share=0)
    expected = small(loss=SupCon(), max_epochs=3).fit(X, FEW).transform(X)
    assert np.array_equal(small(loss=loss, max_epochs=3).fit(X, FEW).transform(X), expected)


def test_a_single_known_class_gives_no_pseudo_labels():
    one = np.where(np.arange(300) < 20, 7, -1)
    labels = Labels()
    small(loss=SemiSupCon(every=1), max_epochs=3, callbacks=[labels]).fit(X, one)
    assert all((seen >= 0).sum() == 20 for seen in labels.seen)


def test_pseudo_labels_come_every_few_epochs_and_never_replace_given_labels():
    labels = Labels()
    small(loss=SemiSupCon(every=2), max_epochs=6, callbacks=[labels]).fit(X, FEW)
    first, second, third, fourth, fifth, sixth = labels.seen
    given = torch.as_tensor(FEW)
    assert torch.equal(first, given) and torch.equal(second, given)
    assert torch.equal(third, fourth) and torch.equal(fifth, sixth)
    known = given >= 0
    for seen in labels.seen[2:]:
        assert torch.equal(seen[known], given[known])
        assert 0.7 < (seen[~known] >= 0).double().mean() < 0.9


def test_renamed_classes_give_the_same_embedding():
    names = np.random.default_rng(0).permutation(10)
    renamed = np.where(FEW >= 0, names[FEW], -1)
    h = small(loss=SemiSupCon(every=1), max_epochs=3, optimizer="sgd").fit(X, FEW).transform(X)
    other = small(loss=SemiSupCon(every=1), max_epochs=3, optimizer="sgd").fit(X, renamed)
    np.testing.assert_allclose(other.transform(X), h, atol=1e-4)


def test_partial_fit_and_warm_start_begin_with_pseudo_labels_for_what_they_get():
    labels = Labels()
    embedder = small(loss=SemiSupCon(every=100), callbacks=[labels], warm_start=True)
    embedder.partial_fit(X, FEW).partial_fit(X, FEW).set_params(max_epochs=2).fit(
        X[:200], FEW[:200]
    )
    known = [(seen >= 0).double().mean() for seen in labels.seen]
    assert known[0] == pytest.approx(50 / 300)
    assert min(known[1:]) > 0.7
    assert len(labels.seen[-1]) == 200


def test_samples_that_are_read_in_batches_get_the_same_pseudo_labels():
    expected = small(loss=SemiSupCon(every=1), max_epochs=3).fit(X, FEW).transform(X)
    streamed = small(loss=SemiSupCon(every=1), max_epochs=3, memory_budget=0)
    assert np.array_equal(streamed.fit(X, FEW).transform(X), expected)


@pytest.mark.parametrize("framework", [MoCo(queue_size=60), CMC()], ids=repr)
def test_frameworks_with_a_memory_take_pseudo_labels(framework):
    embedder = small(loss=SemiSupCon(every=1), framework=framework, max_epochs=3)
    assert np.isfinite(embedder.fit(X, FEW).transform(X)).all()


def test_a_loss_of_ones_own_may_ask_for_pseudo_labels():
    class OwnClasses(Loss):
        requires_y = True

        def class_weights(self, same_class):
            return ~same_class

        def pseudo_labels(self):
            return PseudoLabels(every=1, share=0.5, labeled_share=0, n_neighbors=5)

    labels = Labels()
    small(loss=OwnClasses(), max_epochs=2, callbacks=[labels]).fit(X, FEW)
    assert (labels.seen[-1] >= 0).sum() > 100


def test_drawn_labels_keep_the_given_ones_and_follow_their_probabilities():
    probabilities = np.tile(np.array([[0.2, 0.5, 0.3]], np.float32), (9000, 1))
    probabilities[-1] = 0
    labels = torch.full((9000,), -1)
    labels[:50] = 2
    drawn = LabelSpreader(None, labels).draw(of(probabilities)).numpy()
    assert (drawn[:50] == 2).all() and drawn[-1] == -1
    shares = np.bincount(drawn[50:-1], minlength=3) / 8949
    np.testing.assert_allclose(shares, [0.2, 0.5, 0.3], atol=0.02)


def test_the_surest_classes_are_right_about_as_often_as_they_say():
    pixels = torch.as_tensor(X).float()
    right, said = [], []
    for seed in range(5):
        few = np.full(300, -1)
        for k in range(10):
            few[np.random.default_rng(seed).choice(np.flatnonzero(y == k), 5, replace=False)] = k
        probabilities = spread_labels(pixels, torch.as_tensor(few), 15)
        right.append((probabilities.argmax(1) == y).mean())
        said.append(probabilities.max(1).mean())
    assert np.mean(said) == pytest.approx(np.mean(right), abs=0.05)


def test_shares_are_those_of_the_clusters_or_where_nothing_is_sure_of_the_given_labels():
    labels = torch.tensor([0, 0, 0, 1, -1, -1, -1, -1])
    spreader = LabelSpreader(None, labels)
    sure = np.eye(2, dtype=np.float32)[[0, 0, 0, 1, 1, 1, 1, 1]]
    np.testing.assert_allclose(spreader.shares(of(sure)), [3 / 8, 5 / 8])
    np.testing.assert_allclose(spreader.shares(of(np.full_like(sure, 0.5))), [3 / 4, 1 / 4])


def test_a_class_that_the_graph_has_no_room_for_keeps_its_column(monkeypatch):
    monkeypatch.setattr(_label_spreading, "_LARGEST_GRAPH", 20)
    h = torch.randn(60, 4, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(60) % 2
    labels[1], labels[40:] = 2, -1
    spreader = LabelSpreader(None, labels)
    spread = spreader.spread(h, [0])
    assert len(spread.total) == 3
    assert spreader.shares(spread).shape == (3,)
