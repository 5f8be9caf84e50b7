"""Work of numpy on the rows of a matrix, by as many threads as torch uses."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

# Starting a thread takes as long as numpy needs to sort some thousand numbers.
_FEWEST_ENTRIES = 2**15


def on_row_blocks(work: Callable[[np.ndarray], object], matrix: np.ndarray) -> None:
    """Change a matrix in place, a block of rows in each thread.

    Parameters
    ----------
    work : callable
        Changes a block of rows in place, each row independently of the others. It should be a
        function of numpy that releases the interpreter's lock, such as sorting.
    matrix : ndarray of shape (n, m)
        Cut into as many blocks as torch has threads, fewer if it is small.
    """
    n_blocks = min(torch.get_num_threads(), matrix.size // _FEWEST_ENTRIES, len(matrix))
    if n_blocks < 2:
        work(matrix)
        return
    with ThreadPoolExecutor(n_blocks) as pool:
        list(pool.map(work, np.array_split(matrix, n_blocks)))
