"""The graphs of TUDataset."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from http.client import HTTPException
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib import request

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import get_data_home
from sklearn.utils import Bunch

from .._checks import checked
from ..graphs import PackedGraphs
from ._graph_files import check_archive, find_dataset, read_dataset

_SITE = "https://www.chrsmrrs.com/graphkerneldatasets"
# Seconds within which the server has to answer.
_TIMEOUT = 60.0


@checked(
    name=[str],
    data_home=[str, os.PathLike, None],
    download_if_missing=["boolean"],
    return_X_y=["boolean"],
)
def fetch_tudataset(
    name: str,
    *,
    data_home: str | os.PathLike | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
) -> Any:
    """Load a data set of TUDataset: graphs, and a class or other target of each.

    The collection [1]_ has more than a hundred sets, of molecules, proteins, social networks and
    others. A set is downloaded once, from ``www.chrsmrrs.com``, and read from `data_home` from
    then on. You can also store it there yourself: as ``NAME.zip``, the archive, or as the folder
    ``NAME`` with its contents, ``NAME_A.txt`` and so on. Graphs in arrays of numpy are packed by
    :meth:`PackedGraphs.from_arrays <skcontrast.graphs.PackedGraphs.from_arrays>`.

    Parameters
    ----------
    name : str
        Name of the set as on the site, such as ``"PTC_MR"`` or ``"REDDIT-BINARY"``.
    data_home : str or path-like, default=None
        Folder of the files; None is ``tudataset`` in scikit-learn's folder of data, see
        :func:`sklearn.datasets.get_data_home`.
    download_if_missing : bool, default=True
        If False, a set that is not in `data_home` is an error.
    return_X_y : bool, default=False
        If True, return ``(data, target)`` only.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        With the following attributes.

        data : :class:`~skcontrast.graphs.PackedGraphs`
            The graphs, with the attributes and labels of nodes and edges that the set has. They
            are directed unless every edge has its reverse, with the same attributes. Graphs
            without nodes, of which a few sets such as ``Fingerprint`` have some, are left out with
            their classes: they have no embedding.
        target : ndarray of shape (n_graphs,), dtype int64
            The class of each graph: 0, 1, …. If the set has several tasks, shape
            (n_graphs, n_tasks), with −1 where a class is unknown. If it has no classes, its
            `graph_attributes`, shape (n_graphs,) if there is one of each; or None.
        target_names : ndarray of shape (n_classes,)
            The classes as the set numbers them; a list of such arrays for several tasks. Empty if
            there are no classes.
        graph_attributes : ndarray of shape (n_graphs, n_graph_attributes) or None
            Numbers that describe each graph, such as targets of a regression.
        kept : ndarray of shape (n_graphs,), dtype int64
            The position of each graph in the set, counted from 0: ``arange(n_graphs)`` unless
            graphs without nodes were left out.
        DESCR : str
            A description of the set and its origin.
    (data, target) : tuple if `return_X_y` is True
        The first two of these.

    Raises
    ------
    OSError
        If the set is missing and cannot or must not be downloaded. A download that fails leaves
        nothing behind.
    ValueError
        If a parameter is out of its range, or the files do not hold a set.

    See Also
    --------
    skcontrast.graphs.pack_graphs : Packs a list of graphs.

    References
    ----------
    .. [1] C. Morris, N. M. Kriege, F. Bause, K. Kersting, P. Mutzel, M. Neumann, "TUDataset: A
       collection of benchmark datasets for learning with graphs", ICML 2020 Workshop GRL+.

    Examples
    --------
    Your own set, a pair of nodes and a path, in the format of the collection:

    >>> import pathlib, tempfile
    >>> from skcontrast.datasets import fetch_tudataset
    >>> home = tempfile.TemporaryDirectory()
    >>> folder = pathlib.Path(home.name, "TWO")
    >>> folder.mkdir()
    >>> for file, text in {
    ...     "TWO_A.txt": "1, 2\\n2, 1\\n3, 4\\n4, 3\\n4, 5\\n5, 4\\n",
    ...     "TWO_graph_indicator.txt": "1\\n1\\n2\\n2\\n2\\n",
    ...     "TWO_graph_labels.txt": "-1\\n1\\n",
    ... }.items():
    ...     _ = folder.joinpath(file).write_text(text)
    >>> graphs, y = fetch_tudataset("TWO", data_home=home.name, return_X_y=True)
    >>> graphs, graphs.sizes, y
    (PackedGraphs(2 graphs, 5 nodes, 6 edges), array([2, 3]), array([0, 1]))
    >>> home.cleanup()
    """
    if not re.fullmatch(r"\w[\w.+-]*", name, re.ASCII):
        raise ValueError(f"name must be that of a set, got {name!r}.")
    if data_home is None:
        data_home = Path(get_data_home(), "tudataset")
    folder = Path(data_home).expanduser()
    path = find_dataset(folder, name)
    if path is None:
        path = folder / f"{name}.zip"
        if not download_if_missing:
            raise OSError(f"{path} not found, nor a folder {name}; download_if_missing=False.")
        _download(f"{_SITE}/{name}.zip", path)
    try:
        dataset = read_dataset(path, name)
        data = _packed(dataset)
    except ValueError as error:
        raise ValueError(f"{path} cannot be read as a data set of graphs: {error}") from error
    if return_X_y:
        return data, dataset["target"]
    described = ("target", "target_names", "graph_attributes", "kept")
    return Bunch(
        data=data,
        **{field: dataset[field] for field in described},
        DESCR=_describe(name, dataset["readme"]),
    )


def _download(url: str, path: Path) -> None:
    """Download an archive, or raise OSError and leave nothing behind."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f"{path.name}.part_", dir=path.parent) as folder:
        part = Path(folder, path.name)
        try:
            with request.urlopen(url, timeout=_TIMEOUT) as response, part.open("wb") as file:
                shutil.copyfileobj(response, file)
            check_archive(part)
        except (OSError, HTTPException) as error:
            raise OSError(
                f"{url} cannot be downloaded: {error}. If you can get the file in a different "
                f"way, store it as {path}."
            ) from error
        os.replace(part, path)


def _packed(dataset: Mapping[str, Any]) -> PackedGraphs:
    """Return the graphs as PackedGraphs."""
    labels, categories = _categories(dataset["node_labels"])
    edge_labels, edge_categories = _categories(dataset["edge_labels"])
    packed = PackedGraphs.from_arrays(
        dataset["edge_index"],
        dataset["node_ptr"],
        dataset["node_attributes"],
        labels,
        edge_attributes=dataset["edge_attributes"],
        edge_labels=edge_labels,
    )
    packed.categories, packed.edge_categories = categories, edge_categories
    return packed


def _categories(labels: NDArray | None) -> tuple[NDArray | None, tuple]:
    """Return labels (n, k) as codes (n,) and their categories, ints or tuples."""
    if labels is None:
        return None, ()
    rows, codes = np.unique(labels, axis=0, return_inverse=True)
    categories = [row[0] if len(row) == 1 else tuple(row) for row in rows.tolist()]
    return codes.reshape(-1), tuple(categories)


def _describe(name: str, readme: str) -> str:
    """Return the description of a set."""
    return (
        f"{name}, a set of TUDataset, from {_SITE}/{name}.zip; please cite Morris et al.,\n"
        "TUDataset, 2020, and the papers named on the site of the collection,\n"
        f"https://chrsmrrs.github.io/datasets.\n{readme}"
    ).strip()
