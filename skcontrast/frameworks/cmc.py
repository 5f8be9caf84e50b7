"""CMC: an encoder for each of two parts of a sample, and a memory bank for both."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .._arguments import naming
from .._data._batches import Batch
from .._data._memory import check_memory
from .._objective._contrast import Contrast
from .._parameters import Interval, StrOptions
from .._warnings import warn
from ..kinds._base import Kind
from ..similarity import Similarity
from ._bank import Bank
from ._base import FitContext, Framework, Session
from ._lab import Lab
from ._parts import Split

__all__ = ["CMC"]

_LARGEST_AUTO = 4096


class CMC(Framework):
    r"""Contrastive multiview coding: the two parts of a sample are each other's positives.

    Every sample has two parts of different nature, such as the lightness and the colour of an
    image. Each part has its own encoder and projection head. Each part is an anchor; its
    positives are the other part of the same sample, in all of its views [1]_. ``transform``
    returns the representations by both encoders, side by side.

    The negatives come from a memory bank with a vector for each part of each sample of X, the
    moving average of its normalised projections,

    .. math:: v_i \leftarrow \frac{m\,v_i + (1 - m)\,\bar z_i}{|m\,v_i + (1 - m)\,\bar z_i|},

    where :math:`\bar z_i` is the normalised mean over the views. In every step `n_negatives`
    samples are drawn from the bank, the same for all anchors; the anchor's own vector is never a
    negative. A sample enters the bank when it is first visited. In the very first step, the
    negatives are the other samples of the batch.

    ``partial_fit`` with a part of a long stream keeps vectors of earlier parts as negatives, with
    their classes and groups: the newest, as many as a step draws. The samples of the new part
    enter the bank beside them.

    CMC differs from the authors' code in three ways: the loss is the embedder's, not
    noise-contrastive estimation; the positive is the current projection of the other part, not
    its vector from the last epoch; no sample is drawn twice in a step.

    Parameters
    ----------
    split : "auto", "lab", "random", int or list of int, default="auto"
        The parts. "lab": RGB images are converted to CIE L*a*b*, and L is contrasted with ab.
        "random": a random half of the features is contrasted with the other half. An int k: the
        first k features (vectors) or channels (images) are contrasted with the others. A list:
        these features or channels are contrasted with the others. "auto": "lab" for images of
        three channels and "random" for vectors. If X is a pair of arrays, the arrays are the
        parts and `split` must be "auto".
    n_negatives : int or "auto", default="auto"
        Number of samples drawn from the bank, N. "auto" is 4,096, or all other samples if they
        are fewer. A number larger than all other samples is reduced to it, in `fit` with a
        warning.
    momentum : float, default=0.5
        m in [0, 1]; 0 keeps only the last projection, 1 only the first.

    See Also
    --------
    SimCLR : One encoder; the positives are other views of the whole sample.
    MoCo : One encoder and its momentum copy; the negatives come from a queue of recent keys.

    References
    ----------
    .. [1] Y. Tian, D. Krishnan, P. Isola, "Contrastive Multiview Coding", ECCV 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from skcontrast import ContrastiveEmbedder
    >>> from skcontrast.frameworks import CMC
    >>> rng = np.random.default_rng(0)
    >>> seen, heard = rng.normal(size=(100, 5)), rng.normal(size=(100, 8))
    >>> embedder = ContrastiveEmbedder(framework=CMC(), max_epochs=2, random_state=0)
    >>> embedder.fit((seen, heard)).transform((seen, heard)).shape
    (100, 256)

    A Pipeline or a search cannot index a pair. For these, put the arrays side by side and pass
    the width of the first as `split`:

    >>> embedder = ContrastiveEmbedder(framework=CMC(split=5), max_epochs=2, random_state=0)
    >>> embedder.fit_transform(np.hstack([seen, heard])).shape
    (100, 256)
    """

    _parameter_constraints: dict = {
        "split": [
            StrOptions({"auto", "lab", "random"}),
            Interval(Integral, 1, None, closed="left"),
            "array-like",
        ],
        "n_negatives": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "momentum": [Interval(Real, 0, 1, closed="both")],
    }

    draws_random_numbers = False
    only_encodes_views = True
    takes_pairs = True

    def __init__(
        self,
        split: Literal["auto", "lab", "random"] | int | Sequence[int] | NDArray = "auto",
        n_negatives: int | Literal["auto"] = "auto",
        momentum: float = 0.5,
    ):
        self.split = split
        self.n_negatives = n_negatives
        self.momentum = momentum

    @property
    def structure(self) -> str:
        """The split, since the encoders are built for it."""
        with naming("split", "a name, an int or a list of ints", self.split):
            split = self.split if isinstance(self.split, str) else np.asarray(self.split).tolist()
        return f"CMC(split={split!r})"

    def split_samples(self, kind: Kind, sample_shape: tuple, border: int | None = None) -> Split:
        """Return how samples of a shape are split into two parts.

        Parameters
        ----------
        kind : Kind
            The kind of the samples.
        sample_shape : tuple of int
            Shape of one sample of a batch.
        border : int, default=None
            Where the second array begins, if X is a pair of arrays.

        Raises
        ------
        ValueError
            If `split` does not suit the samples.
        """
        if not kind.float_batches:
            raise ValueError(
                f"CMC contrasts two parts of vectors or images, but X holds {kind.name}: pass a "
                "different framework, such as SimCLR() or, for graphs, InfoGraph()."
            )
        split, n = self._resolved(sample_shape, border), sample_shape[0]
        if isinstance(split, str) and split == "lab":
            if len(sample_shape) != 3 or n != 3:
                raise _bad_split("'lab' needs images of three channels", sample_shape)
            return Split(torch.tensor([0]), torch.tensor([1, 2]), sample_shape, Lab())
        if n < 2:
            raise _bad_split("1 feature(s) or channel cannot be split", sample_shape)
        if isinstance(split, str):
            first = torch.randperm(n)[: n // 2].sort().values
        else:
            first = _columns(split, n, sample_shape)
        rest = torch.ones(n, dtype=torch.bool)
        rest[first] = False
        return Split(first, torch.nonzero(rest).flatten(), sample_shape)

    def _resolved(self, sample_shape: tuple, border: int | None) -> Any:
        """Return `split`, with "auto" replaced by its meaning for samples of this shape."""
        is_auto = isinstance(self.split, str) and self.split == "auto"
        if border is not None:
            if not is_auto:
                raise ValueError(
                    f"The 'split' parameter of CMC is {self.split!r}, but X is a pair of arrays, "
                    "which are the parts themselves: pass split='auto'."
                )
            return border
        if not is_auto:
            return self.split
        if len(sample_shape) == 1:
            return "random"
        if sample_shape[0] == 3:
            return "lab"
        raise _bad_split("'auto' needs vectors or images of three channels", sample_shape)

    def start(self, fit: FitContext) -> Session:
        """Return a session with a memory bank.

        Raises
        ------
        ValueError
            If the bank does not fit into the memory.
        """
        return _CMCSession(self, fit)

    @property
    def _n_wanted(self) -> int:
        return _LARGEST_AUTO if self.n_negatives == "auto" else self.n_negatives

    def _n_drawn(self, fit: FitContext) -> int:
        """Return how many negatives each anchor gets, at most all other samples."""
        wanted = self._n_wanted
        if wanted >= fit.n_samples and self.n_negatives != "auto" and not fit.is_part:
            warn(
                f"The 'n_negatives' parameter of CMC is {wanted}, but there are "
                f"{fit.n_samples - 1} other samples: all of them are drawn."
            )
        return min(wanted, fit.n_samples - 1)


def _bad_split(problem: str, sample_shape: tuple) -> ValueError:
    return ValueError(
        f"The 'split' parameter of CMC: {problem}, got samples of shape {sample_shape}."
    )


def _columns(split: Any, n: int, sample_shape: tuple) -> Tensor:
    """Return the features or channels of the first part, checked."""
    with naming("split", "a name, an int or a list of ints", split):
        columns = np.arange(int(split)) if isinstance(split, Integral) else np.asarray(split)
    if columns.ndim != 1 or columns.dtype.kind not in "iu":
        raise _bad_split(f"must be an int or a list of ints, got {split!r}", sample_shape)
    if not len(columns) or columns.min() < 0 or columns.max() >= n:
        raise _bad_split(
            f"{split!r} is out of the range of {n} features or channels", sample_shape
        )
    if len(set(columns.tolist())) < len(columns) or len(columns) == n:
        raise _bad_split(
            f"{split!r} must leave some of the {n} features or channels and name none twice",
            sample_shape,
        )
    return torch.as_tensor(columns, dtype=torch.int64)


class _CMCSession(Session):
    """The memory bank of both parts."""

    def __init__(self, framework: CMC, fit: FitContext):
        super().__init__(fit)
        self.n_negatives, self.n_wanted = framework._n_drawn(fit), framework._n_wanted
        width = fit.width // 2
        check_memory(2 * fit.n_samples * width, fit.device, "The memory bank of CMC")
        self.bank = Bank(fit.n_samples, width, framework.momentum, fit.first_id)
        self._mark_samples()

    def _mark_samples(self) -> None:
        """Note the groups and the known classes of the samples of X."""
        if self.fit.groups is not None:
            self.bank.groups[: self.fit.n_samples].copy_(self.fit.groups)
        if (ids := self.fit.class_ids(self.fit.labels)) is not None:
            mine = self.bank.labels[: self.fit.n_samples]
            mine.copy_(torch.where(ids < 0, mine.to(ids.device), ids))

    def contrast(
        self, views: Sequence[Tensor], similarity: Similarity, batch: Batch
    ) -> list[Contrast]:
        """Contrast each part with the bank of the other."""
        z = self.fit.network(torch.cat(views)).float().unflatten(0, (len(views), -1))
        parts = torch.stack(z.chunk(2, dim=-1))  # (2, n_views, n, width)
        batch = batch._replace(labels=self.fit.class_ids(batch.labels))
        self.new = parts.detach(), batch.rows, batch.labels, similarity.remembered
        candidates, own, labels, groups = self._drawn(batch, parts, similarity)
        embedded = similarity.embed(parts)
        candidates = similarity.embed(candidates)
        n_views = len(views)
        return [
            Contrast(
                embedded[a].flatten(0, 1),
                candidates[1 - a],
                torch.cat([_scores(u, embedded[1 - a], similarity) for u in embedded[a]]),
                own.repeat(n_views, 1),
                _flat(batch.anchor_weights(parts[a])),
                _repeated(batch.labels, n_views),
                None if batch.labels is None else labels,
                _repeated(batch.groups, n_views),
                groups,
            )
            for a in (0, 1)
        ]

    def _drawn(
        self, batch: Batch, parts: Tensor, similarity: Similarity
    ) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
        """Return candidates (2, m, width), excluded ones (n, 1), labels and groups (m,)."""
        if self.bank.n_visited > 1:
            vectors, own, rows = self.bank.draw(
                self.n_negatives + 1, batch.rows, self.fit.generator
            )
            groups = None if batch.groups is None else self.bank.groups[rows]
            return vectors, own, self.bank.labels[rows], groups
        own = torch.arange(parts.shape[2], device=parts.device)[:, None]
        return similarity.remembered(parts[:, 0].detach()), own, batch.labels, batch.groups

    def update(self) -> None:
        """Move the vectors of the samples of the batch in the bank."""
        self.bank.update(*self.new)

    def resume(self, state: dict[str, Any], same_samples: bool) -> None:
        """Continue with the vectors of the samples, in a part of a stream also with others."""
        old = {k.removeprefix("bank."): v for k, v in state.items() if k.startswith("bank.")}
        if "ids" not in old:  # version 0.1.0 has stored none, and labels of one fit
            super().resume(state, same_samples)
            return
        n_others = self.bank.resume(old, self.n_wanted if self.fit.is_part else 0)
        self.n_negatives = min(self.n_wanted, self.fit.n_samples + n_others - 1)
        self._mark_samples()


def _scores(u: Tensor, others: Tensor, similarity: Similarity) -> Tensor:
    """Return the scores (n, n_views) of anchors u (n, k) with the other part (n_views, n, k)."""
    return torch.stack([similarity.pairs(u, other) for other in others], 1)


def _repeated(marks: Tensor | None, n: int) -> Tensor | None:
    return None if marks is None else marks.repeat(n)


def _flat(weights: Tensor | None) -> Tensor | None:
    return None if weights is None else weights.flatten()
