"""The graphs of TUDataset."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import get_data_home
from sklearn.utils import Bunch

from .._arguments import Interval, checked
from ..graphs import PackedGraphs
from ._fetch import download
from ._graph_files import check_archive, find_dataset, read_dataset

_SITE = "https://www.chrsmrrs.com/graphkerneldatasets"


@checked(
    name=[str],
    data_home=[str, os.PathLike, None],
    download_if_missing=["boolean"],
    return_X_y=["boolean"],
    as_packed=["boolean"],
    drop_empty=["boolean"],
    sha256=[str, None],
    n_retries=[Interval(Integral, 0, None, closed="left")],
    delay=[Interval(Real, 0, None, closed="left")],
    timeout=[Interval(Real, 0, None, closed="neither")],
)
def fetch_tudataset(
    name: str,
    *,
    data_home: str | os.PathLike | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    as_packed: bool = False,
    drop_empty: bool = False,
    sha256: str | None = None,
    n_retries: int = 3,
    delay: float = 1.0,
    timeout: float = 60.0,
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
    as_packed : bool, default=False
        If True, `data` is :class:`~skcontrast.graphs.PackedGraphs`, which takes less time and
        memory and does not need networkx.
    drop_empty : bool, default=False
        If True, graphs without nodes are left out, together with their classes. They are an error
        otherwise, because they have no embedding. ``Fingerprint`` is a set that has such graphs.
    sha256 : str, default=None
        The SHA-256 that the archive must have, 64 hexadecimal digits. None compares only the
        checksums inside it.
    n_retries : int, default=3
        How often a failed or cut connection is tried again, at least 0.
    delay : float, default=1.0
        Seconds between attempts, at least 0.
    timeout : float, default=60.0
        Seconds, more than 0, within which the server has to answer.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        With the following attributes.

        data : list of n_graphs networkx.Graph, or PackedGraphs
            The graphs. Nodes and edges have the attributes ``x``, ndarray of shape
            (n_attributes,), and ``label``, an int, or a tuple of ints, if the set has them. Graphs
            are directed unless every edge has its reverse, with the same attributes.
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
            `drop_empty` left graphs out.
        DESCR : str
            A description of the set and its origin.
    (data, target) : tuple if `return_X_y` is True
        The first two of these.

    Raises
    ------
    OSError
        If the set is missing and cannot or must not be downloaded, or its file does not have
        the expected SHA-256. A download that fails leaves nothing behind.
    ValueError
        If a parameter is out of its range, or the files do not hold a set, or would unpack to
        far more than a set does, or there are graphs without nodes and `drop_empty` is False.

    See Also
    --------
    skcontrast.graphs.pack_graphs : Packs a list of graphs, as `as_packed` does.

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
    >>> graphs[1].number_of_nodes(), graphs[1].number_of_edges(), y
    (3, 2, array([0, 1]))
    >>> home.cleanup()
    """
    if not re.fullmatch(r"\w[\w.+-]*", name, re.ASCII):
        raise ValueError(f"name must be that of a set, got {name!r}.")
    if sha256 is not None and not re.fullmatch(r"[0-9a-fA-F]{64}", sha256):
        raise ValueError(f"sha256 must be 64 hexadecimal digits, got {sha256!r}.")
    if data_home is None:
        data_home = Path(get_data_home(), "tudataset")
    folder = Path(data_home).expanduser()
    path = find_dataset(folder, name)
    if path is None:
        path = folder / f"{name}.zip"
        if not download_if_missing:
            raise OSError(f"{path} not found, nor a folder {name}; download_if_missing=False.")
        url, check = f"{_SITE}/{name}.zip", partial(check_archive, sha256=sha256)
        download(url, path, check, n_retries=n_retries, delay=delay, timeout=timeout)
    try:
        dataset = read_dataset(path, name, sha256, drop_empty)
        data = _packed(dataset) if as_packed else _networkx(dataset)
    except ValueError as error:
        raise ValueError(f"{path} cannot be read as a data set of graphs: {error}") from error
    target, target_names = dataset["target"], dataset["target_names"]
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        target_names=target_names,
        graph_attributes=dataset["graph_attributes"],
        kept=dataset["kept"],
        DESCR=_describe(name, dataset),
    )


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


def _networkx(dataset: Mapping[str, Any]) -> list[Any]:
    """Return the graphs as a list of graphs of networkx."""
    try:
        import networkx as nx
    except ImportError as error:
        raise ImportError(
            "fetch_tudataset needs networkx, or as_packed=True: pip install 'skcontrast[graphs]'"
        ) from error

    packed = _packed(dataset)
    topology, (edge_attributes, _, edge_labels) = packed.topology, packed.of_edges()
    nodes = _described(topology.n_nodes, packed.attributes, packed.labels, packed.categories)
    n_edges = len(topology.sources)
    edges = _described(n_edges, edge_attributes, edge_labels, packed.edge_categories)
    starts = topology.node_ptr.tolist()
    places = pairwise(topology.edge_ptr[topology.node_ptr].tolist())
    graphs = []
    for (start, end), (first, last) in zip(pairwise(starts), places, strict=True):
        graph = nx.Graph() if topology.symmetric else nx.DiGraph()
        graph.add_nodes_from(enumerate(nodes[start:end]))
        links = (topology.edge_index[:, first:last] - start).T.tolist()
        for (u, v), own in zip(links, edges[first:last], strict=True):
            if u <= v or not topology.symmetric:
                graph.add_edge(u, v, **own)
        graphs.append(graph)
    return graphs


def _described(n: int, attributes: Any, labels: Any, categories: tuple) -> list[dict[str, Any]]:
    """Return the attributes ``x`` and ``label`` of each node or edge."""
    found: list[dict[str, Any]] = [{} for _ in range(n)]
    if attributes is not None:
        for own, x in zip(found, attributes.numpy(), strict=True):
            own["x"] = x.copy()
    if labels is not None:
        for own, code in zip(found, labels.tolist(), strict=True):
            own["label"] = categories[code]
    return found


def _describe(name: str, dataset: Mapping[str, Any]) -> str:
    """Return the description of a set."""
    target, names, n_graphs = dataset["target"], dataset["target_names"], len(dataset["kept"])
    n_nodes, n_edges = int(dataset["node_ptr"][-1]), dataset["edge_index"].shape[1]
    if target is None:
        described = "without a target"
    elif len(names):
        described = f"in {len(names)} classes" if target.ndim == 1 else f"with {len(names)} tasks"
    else:
        n = target[:1].size
        described = f"with {n} number{'' if n == 1 else 's'} each as target"
    n_left_out = dataset["n_graphs"] - n_graphs
    left_out = f" {n_left_out} graphs without nodes were left out." if n_left_out else ""
    return (
        f"{name}: {n_graphs} graphs {described}, with {n_nodes} nodes and\n"
        f"{n_edges} edges, counted in both directions.{left_out}\n"
        f"From TUDataset, {_SITE}/{name}.zip; please cite Morris et al., TUDataset, 2020, and\n"
        "the papers named on the site of the collection, https://chrsmrrs.github.io/datasets.\n"
        f"{dataset['readme']}"
    ).strip()
