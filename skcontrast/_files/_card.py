"""A description of a fitted embedder in Markdown."""

from __future__ import annotations

from typing import Any

import torch
from sklearn.utils.validation import check_is_fitted

from .._arguments import checked
from .._storage._values import Writer
from .._version import __version__
from ..embedder import ContrastiveEmbedder
from ._classes import names
from ._save import inference_parts


@checked(embedder=ContrastiveEmbedder, title=[str])
def model_card(embedder: ContrastiveEmbedder, *, title: str = "Contrastive embedder") -> str:
    """Describe a fitted embedder in Markdown: what it takes, what it returns, how it was trained.

    A card belongs next to the file of :func:`save`. It states what the embedder knows; add what it
    does not: where the data come from, what the embedding is for, and how it was judged.

    Parameters
    ----------
    embedder : ContrastiveEmbedder
        A fitted embedder.
    title : str, default="Contrastive embedder"
        The heading.

    Returns
    -------
    card : str
        Markdown, which ends with a newline.

    See Also
    --------
    save : Writes the embedder itself.

    Examples
    --------
    >>> import numpy as np
    >>> from skcontrast import ContrastiveEmbedder, model_card
    >>> X = np.random.default_rng(0).normal(size=(40, 5))
    >>> embedder = ContrastiveEmbedder(max_epochs=1, random_state=0).fit(X)
    >>> print(model_card(embedder, title="Noise")[:58])
    # Noise
    <BLANKLINE>
    | | |
    |---|---|
    | input | vectors of shape (5,) |
    """
    check_is_fitted(embedder)
    fitted = embedder._fitted
    writer = Writer(names(), keep_samples=False)
    writer.write(inference_parts(fitted.on_cpu()), "fitted")
    own = ", ".join(f"`{name}`" for name in sorted(writer.own)) or "nothing"
    estimates = ", ".join(f"{name} = {value:.3g}" for name, value in fitted.estimates.items())
    rows: dict[str, Any] = {
        "input": f"{fitted.schema.kind.name} of shape {fitted.schema.sample_shape}",
        "embedding": f"{embedder._n_features_out} numbers, the {embedder.output}",
        "parameters of the network": f"{sum(p.numel() for p in fitted.network.parameters()):,}",
        "loss": f"`{_line(fitted.loss)}`",
        "framework": f"`{_line(fitted.framework)}`",
        "similarity": f"`{_line(fitted.similarity)}`",
        "views": ", ".join(f"`{_line(step)}`" for step in fitted.augmentation),
        "epochs": fitted.n_epochs,
        "last training loss": _last_loss(embedder),
        "estimated from the data": estimates or "nothing",
        "needed to load it, besides skcontrast": own,
        "versions": f"skcontrast {__version__}, torch {torch.__version__}",
    }
    lines = [f"# {title}", "", "| | |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in rows.items()]
    lines += ["", "```python", repr(embedder), "```", ""]
    return "\n".join(lines)


def _line(value: Any) -> str:
    """Return a representation on one line."""
    return " ".join(repr(value).split())


def _last_loss(embedder: ContrastiveEmbedder) -> str:
    """Return the last row of the history that has a loss."""
    losses = [row["train_loss"] for row in embedder.history_ if "train_loss" in row]
    return f"{losses[-1]:.4g}" if losses else "unknown"
