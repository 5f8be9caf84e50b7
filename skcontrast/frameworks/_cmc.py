"""CMC: an encoder for each modality of a sample, and a memory bank for all of them."""

from collections.abc import Sequence
from itertools import permutations
from numbers import Integral
from typing import Any, Literal, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from .._checks import FRACTION, POSITIVE_INT, parameter
from .._checks._arguments import naming
from .._data._batches import Batch, Metadata
from .._objective._contrast import Contrast, pairs_with
from ..kinds._base import Kind
from ..kinds._recognise import MultimodalKind
from ..similarity import Similarity
from ._base import FitContext, Framework, Session
from ._modalities import Lab, NoSplit, Split

_LARGEST_AUTO = 4096
_SPLITS = "a name, an int, a list of ints or a list of such lists"


class CMC(Framework):
    r"""Contrastive multiview coding: the modalities of a sample are each other's positives.

    Every sample has two or more modalities, such as lightness and colour of an image, or an
    image and a row of a table. Each modality has its own encoder and projection
    head. ``transform`` returns the representations by all encoders, concatenated.

    Every modality is contrasted with every other: each is an anchor, and its positives are all
    views of the other modality of the same sample [1]_. With P modalities, and
    :math:`L_{a \to b}` the mean loss of the anchors of modality a among candidates of modality b,
    the loss is the mean over the ordered pairs, the "full graph" of the paper,

    .. math:: L = \frac{1}{P (P - 1)} \sum_{a \ne b} L_{a \to b}.

    The paper has the sum; the mean keeps the learning rate independent of P.

    The negatives come from a memory bank with a vector for each modality of each sample of X, the
    moving average of its normalised projections,

    .. math:: v_i \leftarrow \frac{m\,v_i + (1 - m)\,\bar z_i}{|m\,v_i + (1 - m)\,\bar z_i|},

    where :math:`\bar z_i` is the normalised mean over the views. In every step `n_negatives`
    samples are drawn from the bank, the same for all anchors; the anchor's own vector is never a
    negative. A sample enters the bank when it is first visited. In the very first step, the
    negatives are the other samples of the batch.

    When ``partial_fit`` or a fit with ``warm_start`` gets the same samples and labels
    again, the bank continues unchanged. With other samples, such as the next part of a
    stream, it starts empty.

    CMC differs from the authors' code in three ways: the loss is the embedder's, not
    noise-contrastive estimation; the positive is the current projection of the other modality, not
    its vector from the last epoch; no sample is drawn twice in a step.

    Parameters
    ----------
    split : "auto", "lab", "random", int, list of int or list of lists of int, default="auto"
        The modalities of samples in one array. "lab": RGB images are converted to CIE L*a*b*,
        and L is contrasted with ab. "random": a random half of the features or channels is
        contrasted with the other half. An int k: the first k features (vectors) or channels
        (series, images) are contrasted with the others. A list: these features or channels are
        contrasted with the others. A list of lists: each is a modality; other columns are unused.
        "auto": "lab" for images of three channels, "random" for vectors and series. If X has
        several arrays, these are the modalities, and `split` must be "auto".
    n_negatives : int or "auto", default="auto"
        Maximum number N of samples drawn from the bank. "auto" is 4,096.
    momentum : float, default=0.5
        m in [0, 1]; 0 keeps only the last projection, 1 only the first.

    See Also
    --------
    skcontrast.datasets.Modalities : Several arrays as one X, which scikit-learn can split.
    skcontrast.kinds.MultimodalKind : Declares the kinds of several arrays.
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

    For Pipelines and searches, which split X by rows, pass
    :class:`~skcontrast.datasets.Modalities`. It may have more than two modalities, of different
    kinds, such as images and vectors:

    >>> from skcontrast.datasets import Modalities
    >>> X = Modalities(seen, heard, rng.uniform(size=(100, 1, 8, 8)))
    >>> embedder.fit(X).transform(X[:10]).shape
    (10, 384)
    """

    split: (
        Literal["auto", "lab", "random"] | int | Sequence[int] | Sequence[Sequence[int]] | NDArray
    ) = parameter([{"auto", "lab", "random"}, *POSITIVE_INT, "array-like"], default="auto")
    n_negatives: int | Literal["auto"] = parameter([*POSITIVE_INT, {"auto"}], default="auto")
    momentum: float = parameter(FRACTION, default=0.5)

    remembers_samples = True
    takes_modalities = True

    @property
    def network_signature(self) -> str:
        """The split, since the encoders are built for it."""
        return f"CMC(split={_listed(self.split)!r})"

    def split_samples(self, kind: Kind, sample_shape: tuple) -> Split | NoSplit:
        """Return the split of samples of a shape into modalities.

        Parameters
        ----------
        kind : Kind
            The kind of the samples.
        sample_shape : tuple of int
            Shape of one sample of a batch.

        Raises
        ------
        ValueError
            If `split` is invalid for the samples.
        """
        split = _listed(self.split)
        if isinstance(kind, MultimodalKind):
            if split != "auto":
                raise ValueError(
                    f"The 'split' parameter of CMC is {split!r}, but X already consists of "
                    "several arrays: pass split='auto'."
                )
            return NoSplit()
        if not kind.float_batches:
            raise ValueError(
                f"CMC splits vectors, series or images, but X holds {kind.name}: "
                "pass a different framework, such as SimCLR() or, for graphs, InfoGraph()."
            )
        is_auto = split == "auto"
        # Images of three channels have lightness and colour; other samples have random halves.
        if is_auto:
            split = "random" if kind.image_shape(sample_shape) is None else "lab"
        if split == "lab":
            if len(sample_shape) != 3 or sample_shape[0] != 3:
                rule = "'auto' needs vectors, series or" if is_auto else "'lab' needs"
                raise _bad_split(f"{rule} images of three channels", sample_shape)
            return Split([torch.tensor([0]), torch.tensor([1, 2])], sample_shape, Lab())
        return Split(_columns(split, sample_shape), sample_shape)

    def start(self, context: FitContext) -> Session:
        """Return a session with a memory bank.

        Raises
        ------
        ValueError
            If the bank does not fit into the memory.
        """
        return _CMCSession(self, context)


def _bad_split(problem: str, shape: tuple) -> ValueError:
    return ValueError(f"The 'split' parameter of CMC: {problem}, got samples of shape {shape}.")


def _listed(split: Any) -> Any:
    """Return a split as a name, an int, a list of ints or a list of such lists."""
    with naming("split", _SPLITS, split):
        if isinstance(split, (str, Integral)):
            return split if isinstance(split, str) else int(split)
        if len(split) > 1 and all(np.ndim(columns) == 1 for columns in split):
            return [np.asarray(columns).tolist() for columns in split]
        return np.asarray(split).tolist()


def _columns(split: Any, sample_shape: tuple) -> list[Tensor]:
    """Return the validated features or channels of each modality."""
    n = sample_shape[0]
    if n < 2:
        raise _bad_split("1 feature(s) or channel cannot be split", sample_shape)
    lists: Any = list(range(split)) if isinstance(split, int) else split
    if split == "random":
        lists = torch.randperm(n)[: n // 2].sort().values.tolist()
    # A single list is contrasted with all other columns.
    is_alone = not any(isinstance(columns, list) for columns in lists)
    lists = [lists] if is_alone else lists
    if not all(isinstance(item, list) and set(map(type, item)) == {int} for item in lists):
        raise _bad_split(f"must be {_SPLITS}, got {split!r}", sample_shape)
    rest = sorted(set(range(n)).difference(*lists))
    if len(rest) + sum(map(len, lists)) != n or (len(lists) == 1 and not (is_alone and rest)):
        rule = f"features or channels from 0 to {n - 1}, none twice, in two lists or more, or"
        raise _bad_split(f"{split!r} must name {rule} not all in one list of ints", sample_shape)
    return [torch.tensor(columns) for columns in ([*lists, rest] if is_alone else lists)]


class Bank(nn.Module):
    """A vector for each modality of each sample, the moving average of its projections.

    Parameters
    ----------
    n_samples : int
        Number of samples in X.
    width : int
        Width of a vector.
    momentum : float
        m in [0, 1], the weight of the old vector in the average.
    n_modalities : int
        Number of modalities of a sample.

    Attributes
    ----------
    vectors : Tensor of shape (n_modalities, n_samples, width)
        The averages; zeros for a sample that was never visited.
    labels : Tensor of shape (n_samples,), dtype int64
        Classes, −1 where unknown.
    visited : Tensor of shape (n_samples,), dtype int64
        The row numbers of the `n_visited` samples that have a vector, then −1.
    n_visited : int
        Number of samples that have a vector.
    """

    vectors: Tensor
    labels: Tensor
    visited: Tensor

    def __init__(self, n_samples: int, width: int, momentum: float, n_modalities: int):
        super().__init__()
        self.momentum, self.n_visited = momentum, 0
        self.register_buffer("vectors", torch.zeros(n_modalities, n_samples, width))
        self.register_buffer("labels", torch.full((n_samples,), -1))
        self.register_buffer("visited", torch.full((n_samples,), -1))

    def draw(
        self, n: int, rows: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Draw the vectors of n different samples; of all visited samples if they are fewer.

        Parameters
        ----------
        n : int
            Number of samples to draw.
        rows : Tensor of shape (n_anchors,), dtype int64
            Row numbers of the anchors in X.
        generator : torch.Generator
            Source of randomness, on the device of the bank.

        Returns
        -------
        vectors : Tensor of shape (n_modalities, n, width)
            The vectors of all modalities.
        own : Tensor of shape (n_anchors, 1), dtype int64
            The index of the anchor itself among the drawn samples. If it was not drawn, the last
            index, so that all anchors have the same number of negatives.
        drawn : Tensor of shape (n,), dtype int64
            Row numbers of the drawn samples in X.
        """
        device = rows.device
        order = torch.randperm(self.n_visited, generator=generator, device=device)[:n]
        drawn = self.visited[order]
        index = torch.full((len(self.labels),), len(drawn) - 1, device=device)
        index[drawn] = torch.arange(len(drawn), device=device)
        return self.vectors[:, drawn], index[rows][:, None], drawn

    @torch.no_grad()
    def update(
        self, z: Tensor, rows: Tensor, labels: Tensor | None, similarity: Similarity
    ) -> None:
        """Move the vectors of samples towards their projections.

        Parameters
        ----------
        z : Tensor of shape (n_modalities, n_views, n, width)
            Projections of all modalities in all views.
        rows : Tensor of shape (n,), dtype int64
            Row numbers of the samples in X, all different.
        labels : Tensor of shape (n,), dtype int64, or None
            Classes of the samples.
        similarity : Similarity
            Its `bank_vectors` scales the projections and their averages.
        """
        stored, old = similarity.bank_vectors, self.vectors[:, rows]
        new = stored(stored(z).mean(1))
        # A sample without a vector has zeros: its first vector is the projection itself.
        is_new = (old == 0).all(-1, keepdim=True)
        moved = torch.where(is_new, new, self.momentum * old + (1 - self.momentum) * new)
        self.vectors[:, rows] = stored(moved)
        if labels is not None:
            self.labels[rows] = labels
        if self.n_visited < len(self.labels):
            rows = rows[~torch.isin(rows, self.visited[: self.n_visited])]
            self.visited[self.n_visited : self.n_visited + len(rows)] = rows
            self.n_visited += len(rows)

    def get_extra_state(self) -> int:
        """Return the non-tensor state, `n_visited`."""
        return self.n_visited

    def set_extra_state(self, n_visited: int) -> None:
        """Load the non-tensor state."""
        self.n_visited = n_visited


class _CMCSession(Session):
    """The memory bank of all modalities."""

    def __init__(self, framework: CMC, context: FitContext):
        super().__init__(context)
        wanted = framework.n_negatives
        self.n_negatives = _LARGEST_AUTO if wanted == "auto" else wanted
        width = context.width // context.n_modalities
        self.bank = Bank(context.n_samples, width, framework.momentum, context.n_modalities)

    def contrast(self, views: list[Any], similarity: Similarity, batch: Batch) -> list[Contrast]:
        """Contrast each modality with the banks of the others."""
        n_modalities = self.context.n_modalities
        z = self.context.network(torch.cat(views)).float().unflatten(0, (len(views), -1))
        # (n_modalities, n_views, n, width)
        projections = torch.stack(z.chunk(n_modalities, dim=-1))
        self.new: Any = projections.detach(), batch.rows, batch.labels, similarity
        vectors, excluded, known = self._drawn(batch, projections, similarity)
        embedded, candidates = similarity.embed(projections), similarity.embed(vectors)
        metadata = [batch.metadata(z_modality) for z_modality in projections]
        return [
            Contrast(
                anchors=embedded[a].flatten(0, 1),
                candidates=candidates[b],
                positives=torch.cat([pairs_with(u, embedded[b], similarity) for u in embedded[a]]),
                excluded=excluded.repeat(len(views), 1),
                **metadata[a].of_anchors(known),
            )
            for a, b in permutations(range(n_modalities), 2)
        ]

    def _drawn(
        self, batch: Batch, projections: Tensor, similarity: Similarity
    ) -> tuple[Tensor, Tensor, Metadata]:
        """Return vectors (n_modalities, m, width), excluded indices (n, 1) and metadata."""
        if self.bank.n_visited > 1:
            n, generator = self.n_negatives + 1, self.context.generator
            vectors, excluded, rows = self.bank.draw(n, cast(Tensor, batch.rows), generator)
            known = Metadata(self.bank.labels[rows], self.context.groups_of(rows))
            return vectors, excluded, known
        excluded = torch.arange(projections.shape[2], device=projections.device)[:, None]
        known = Metadata(batch.labels, batch.groups)
        return similarity.bank_vectors(projections[:, 0].detach()), excluded, known

    def update(self) -> None:
        """Move the vectors of the samples of the batch in the bank."""
        self.bank.update(*self.new)
