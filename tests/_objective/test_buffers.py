"""Room that is handed out again: nobody's numbers are overwritten."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from skcontrast import contrastive_loss
from skcontrast._objective import _buffers
from skcontrast._objective._buffers import Arena, buffers_on
from skcontrast.losses import BCL, HCL, InfoNCE, Loss, SupCon
from tests.common import random_views


class Nested(Loss):
    """Computes another loss while it is computed."""

    def row_loss(self, scores, positives):
        other = random_views(20, 4, 2, dtype=scores.dtype)
        inner = [view.requires_grad_() for view in other]
        contrastive_loss(*inner, loss=BCL()).backward()
        return torch.logsumexp(torch.cat([scores, positives], 1), 1) - positives[:, 0]


def test_a_loss_within_a_loss_does_not_overwrite_it():
    views = [view.requires_grad_() for view in random_views(20, 4, 2)]
    nested = torch.autograd.grad(contrastive_loss(*views, loss=Nested()), views)
    plain = torch.autograd.grad(contrastive_loss(*views), views)
    torch.testing.assert_close(nested, plain)


def test_losses_in_threads_do_not_overwrite_each_other():
    problems = [random_views(n, 4, 2) for n in (30, 31, 32, 33)]
    losses = [InfoNCE(), BCL(), HCL(), SupCon()]

    def gradient(views, loss):
        leaves = [view.clone().requires_grad_() for view in views]
        y = torch.arange(len(views[0])) % 3 if loss.requires_y else None
        value = contrastive_loss(*leaves, loss=loss, y=y)
        return torch.autograd.grad(value, leaves)

    expected = [gradient(views, loss) for views, loss in zip(problems, losses, strict=True)]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(10):
            found = list(pool.map(gradient, problems, losses))
            torch.testing.assert_close(found, expected)


def test_a_buffer_is_reserved_until_it_is_released():
    buffers = Arena(torch.device("cpu"))
    first, second = (buffers.empty((2, 3), torch.float32) for _ in range(2))
    assert first.data_ptr() != second.data_ptr()
    with buffers.released():
        third = buffers.empty((4,), torch.float32)
        assert third.data_ptr() not in (first.data_ptr(), second.data_ptr())
    assert buffers.empty((2, 2), torch.float32).data_ptr() == third.data_ptr()
    assert buffers.empty((4,), torch.int32).dtype == torch.int32


def test_arrays_do_not_overlap_and_begin_where_vectors_do():
    arena, generator = Arena(torch.device("cpu")), torch.Generator().manual_seed(0)
    dtypes = [torch.float64, torch.bool, torch.int32, torch.float32]
    for _ in range(2):
        sizes = torch.randint(0, 300_000, (40,), generator=generator).tolist()
        with arena.released():
            arrays = [arena.empty((n,), dtypes[k % 4]).fill_(k % 2) for k, n in enumerate(sizes)]
            assert [len(array) for array in arrays] == sizes
            assert all((array == k % 2).all() for k, array in enumerate(arrays))
            assert all(array.data_ptr() % 64 == 0 for array in arrays if len(array))
        arena.keep(2**30)


def test_an_arena_keeps_no_more_than_it_is_told_and_that_is_used_again():
    arena = Arena(torch.device("cpu"))
    arena.empty((1000,), torch.float32)
    arena.empty((10**6,), torch.float32)
    held = arena.n_bytes
    assert held >= 4 * 10**6
    arena.keep(held)
    assert arena.n_bytes == held
    arena.empty((held // 4,), torch.float32)
    assert arena.n_bytes == held  # in one piece
    arena.keep(held - 1)
    assert arena.n_bytes == 0


def test_a_change_of_one_array_is_none_of_another_that_autograd_has_saved():
    arena = Arena(torch.device("cpu"))
    factor = arena.empty((3,), torch.float32).fill_(2.0)
    leaf = torch.ones(3, requires_grad=True)
    total = (leaf * factor).sum()
    arena.empty((3,), torch.float32).zero_()
    total.backward()
    assert leaf.grad.tolist() == [2.0, 2.0, 2.0]


def test_a_thread_keeps_its_arena_but_no_large_memory(monkeypatch):
    cpu = torch.device("cpu")
    with buffers_on(cpu) as buffers:
        buffers.empty((10,), torch.float32)
        with buffers_on(cpu) as inner:
            assert inner is not buffers
    with buffers_on(cpu) as again:
        assert again is buffers
        assert again.n_bytes > 8
        monkeypatch.setattr(_buffers, "_KEPT_BYTES", 8)
    with buffers_on(cpu) as again:
        assert again is buffers
        assert again.n_bytes == 0


@pytest.mark.parametrize("loss", [InfoNCE(), BCL()], ids=repr)
def test_a_loss_in_inference_mode_leaves_nothing_that_training_cannot_use(loss):
    views = [torch.randn(50, 8, requires_grad=True) for _ in range(2)]
    _buffers._of_thread.buffers = None
    with torch.inference_mode():
        first = contrastive_loss(*[view.detach() for view in views], loss=loss)
    again = contrastive_loss(*views, loss=loss)
    again.backward()
    torch.testing.assert_close(again.detach(), first)


class Keeps(Loss):
    """Keeps the scores that it gets."""

    def row_loss(self, scores, positives):
        self.scores_ = scores
        return torch.logsumexp(torch.cat([scores, positives], 1), 1) - positives[:, 0]


def test_scores_that_a_loss_of_ones_own_keeps_stay_as_they_are():
    loss = Keeps()
    contrastive_loss(*random_views(20, 4, 2), loss=loss)
    before = loss.scores_.clone()
    contrastive_loss(*random_views(21, 4, 2), loss=BCL())
    assert torch.equal(loss.scores_, before)


class Fails(Loss):
    """Raises an error in the middle."""

    def rank_weights(self, ranks_from_farthest, n_candidates):
        raise RuntimeError("no weights")


def test_a_loss_after_an_error_is_what_it_is_without():
    views = random_views(20, 4, 2)
    expected = contrastive_loss(*views, loss=BCL())
    with pytest.raises(RuntimeError, match="no weights") as raised:
        contrastive_loss(*views, loss=Fails())
    held = raised.traceback  # and with it, the frames that hold arrays
    torch.testing.assert_close(contrastive_loss(*views, loss=BCL()), expected)
    del raised, held
    torch.testing.assert_close(contrastive_loss(*views, loss=BCL()), expected)
