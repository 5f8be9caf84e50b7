"""Views of samples as a fitted embedder sees them."""

from __future__ import annotations

import inspect
from numbers import Integral
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .._checks import POSITIVE_INT, Interval, checked
from .._network._inference import encode
from .._runtime._modes import plain_modes
from .._runtime._threads import one_thread


@checked(
    n_views=POSITIVE_INT,
    random_state=[Interval(Integral, 0, 2**63 - 1, closed="both")],
)
def project_views(
    embedder: Any, X: Any, *, n_views: int = 2, random_state: int = 0
) -> tuple[NDArray[np.float32], ...]:
    """Return the projections of random views of samples: the vectors that the loss compares.

    Parameters
    ----------
    embedder : ContrastiveEmbedder
        Fitted. Views are drawn by its `augmentation_`, and projected in inference mode.
    X : array-like, list of graphs or Views
        Samples of the shape seen in `fit`.
    n_views : int, default=2
        Number of views.
    random_state : int, default=0
        Seeds the draws.

    Returns
    -------
    views : tuple of n_views ndarrays of shape (n_samples, d), dtype float32
        Projections, as :meth:`ScoreSample.from_views
        <skcontrast.estimation.ScoreSample.from_views>`, :func:`macro_auc` and
        :func:`positive_ranks` take them together with ``similarity=embedder.similarity_``. With
        concentrations they have one more column. Without augmentation all views are equal.

    Examples
    --------
    >>> import numpy as np
    >>> from skcontrast import ContrastiveEmbedder
    >>> from skcontrast.estimation import macro_auc, project_views
    >>> X = np.repeat(np.eye(4), 10, axis=0)
    >>> embedder = ContrastiveEmbedder(max_epochs=1, random_state=0).fit(X)
    >>> z1, z2 = project_views(embedder, X)
    >>> macro_auc(z1, z2, y=np.repeat(np.arange(4), 10)).value > 0.5
    True
    """
    if inspect.isclass(embedder) or not hasattr(embedder, "_transforming"):
        raise TypeError(f"embedder must be a fitted ContrastiveEmbedder, got {embedder!r}.")
    check_is_fitted(embedder)
    setup = embedder._fitted.setup
    first = next(embedder.encoder_.parameters(), None)
    device = torch.device("cpu") if first is None else first.device
    draw = setup.composed(embedder.augmentation_, device)
    generator = torch.Generator(device=device).manual_seed(random_state)
    network = setup.network
    module = network if setup.similarity.n_extra else setup.projecting(network)
    with plain_modes(device), one_thread(device, blas=False):
        setup.use_threads()
        X = setup.read(X, embedder)
        n_rows = setup.schema.kind.rows_per_call(X)

        def view(rows: Any) -> Any:
            return draw(setup.scaler.to_tensor(rows, device), generator)

        return tuple(encode(module, X, n_rows, to_tensor=view) for _ in range(n_views))
