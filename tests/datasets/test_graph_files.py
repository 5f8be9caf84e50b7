"""The files of a set of TUDataset in all their forms, and what is refused."""

from __future__ import annotations

import hashlib

import networkx as nx
import numpy as np
import pytest

from skcontrast.datasets import fetch_tudataset
from skcontrast.graphs import PackedGraphs, pack_graphs
from tests.datasets.common import ALL, ATTRIBUTES, EDGES, LABELS, TEXTS, fetch, write_zip, zipped


def write_flat_zip(home, texts):
    (home / "SET.zip").write_bytes(zipped(texts, folder=""))


def write_folder(home, texts):
    (home / "SET").mkdir()
    for file, text in texts.items():
        (home / "SET" / file).write_text(text)


FORMS = [write_zip, write_flat_zip, write_folder]


# What is read


@pytest.mark.parametrize("write", FORMS)
def test_all_forms_are_read_alike(tmp_path, write):
    write(tmp_path, ALL)
    data = fetch(tmp_path)
    triangle, path, lonely = data.data
    assert nx.utils.graphs_equal(nx.Graph(triangle.edges), nx.cycle_graph(3))
    assert nx.utils.graphs_equal(nx.Graph(path.edges), nx.path_graph(4))
    assert list(lonely) == [0] and not lonely.edges
    assert type(path) is nx.Graph and list(path) == [0, 1, 2, 3]
    assert [label for g in data.data for _, label in g.nodes(data="label")] == [
        5,
        5,
        9,
        5,
        9,
        9,
        9,
        0,
    ]
    x = np.array([x for g in data.data for _, x in g.nodes(data="x")])
    assert x.dtype == np.float32
    np.testing.assert_array_equal(x, [[k + 0.5, -k] for k in range(8)])
    assert data.target.tolist() == [1, 0, 1] and data.target.dtype == np.int64
    assert data.target_names.tolist() == [-1, 3]
    assert data.DESCR.startswith("SET: 3 graphs in 2 classes, with 8 nodes")
    assert data.DESCR.endswith("What the set is.")


@pytest.mark.parametrize("write", FORMS)
@pytest.mark.parametrize("optional", [{}, LABELS, ATTRIBUTES])
def test_packed_graphs_are_those_of_networkx(tmp_path, write, optional):
    write(tmp_path, TEXTS | optional)
    graphs, y = fetch(tmp_path, return_X_y=True)
    packed, y_packed = fetch(tmp_path, return_X_y=True, as_packed=True)
    again = pack_graphs(graphs)
    assert isinstance(packed, PackedGraphs) and y.tolist() == y_packed.tolist() == [1, 0, 1]
    for one, other in zip(packed.topology[:3], again.topology[:3], strict=True):
        assert one.equal(other)
    assert packed.topology.symmetric
    assert (packed.attributes is None) == (optional is not ATTRIBUTES)
    assert (packed.labels is None) == (optional is not LABELS)
    if packed.attributes is not None:
        assert packed.attributes.equal(again.attributes)
    if packed.labels is not None:
        named = [[p.categories[code] for code in p.labels] for p in (packed, again)]
        assert named[0] == named[1] == [5, 5, 9, 5, 9, 9, 9, 0]


def test_edges_that_stand_twice_count_once_and_loops_stay(tmp_path):
    write_zip(tmp_path, TEXTS | {"SET_A.txt": TEXTS["SET_A.txt"] * 2 + "8, 8\n"})
    graphs = fetch(tmp_path, as_packed=True).data
    assert len(graphs.topology.sources) == 13
    assert list(fetch(tmp_path).data[2].edges) == [(0, 0)]


def test_edges_without_their_reverse_make_directed_graphs(tmp_path):
    write_zip(tmp_path, TEXTS | {"SET_A.txt": "1, 2\n4,5\n"})
    graphs = fetch(tmp_path).data
    assert type(graphs[0]) is nx.DiGraph and list(graphs[0].edges) == [(0, 1)]


def test_there_may_be_no_edges(tmp_path):
    write_zip(tmp_path, TEXTS | {"SET_A.txt": "\n"})
    assert [graph.number_of_edges() for graph in fetch(tmp_path).data] == [0, 0, 0]


def test_node_labels_may_have_several_columns(tmp_path):
    pairs = [(1, 2), (0, 2), (1, 2), (1, 0), (0, 0), (1, 2), (0, 2), (1, 0)]
    write_zip(tmp_path, TEXTS | {"SET_node_labels.txt": "".join(f"{a}, {b}\n" for a, b in pairs)})
    graphs = fetch(tmp_path).data
    assert [label for g in graphs for _, label in g.nodes(data="label")] == pairs
    packed = fetch(tmp_path, as_packed=True).data
    assert [packed.categories[code] for code in packed.labels] == pairs


def test_files_are_compared_with_the_checksum_that_is_given(tmp_path):
    write_zip(tmp_path, ALL)
    (file,) = tmp_path.iterdir()
    assert len(fetch(tmp_path, sha256=hashlib.sha256(file.read_bytes()).hexdigest()).data) == 3
    with pytest.raises(OSError, match=r"SET.zip has the SHA-256 .* not the expected 0000"):
        fetch(tmp_path, sha256="0" * 64)


def test_a_folder_has_no_checksum(tmp_path):
    write_folder(tmp_path, TEXTS)
    with pytest.raises(ValueError, match="'sha256' parameter"):
        fetch(tmp_path, sha256="0" * 64)


# Edges, and other targets than classes


def test_edges_keep_what_describes_them(tmp_path):
    write_zip(tmp_path, TEXTS | EDGES)
    graphs = fetch(tmp_path).data
    found = [(*edge, own["x"].tolist(), own["label"]) for edge, own in graphs[1].edges.items()]
    assert found == [(0, 1, [3.5], 3), (1, 2, [4.5], 4), (2, 3, [5.5], 4)]
    packed, again = fetch(tmp_path, as_packed=True).data, pack_graphs(graphs)
    assert packed.topology.symmetric and packed.edge_attributes.equal(again.edge_attributes)
    named = [[p.edge_categories[code] for code in p.edge_labels] for p in (packed, again)]
    assert named[0] == named[1]


def test_an_edge_that_stands_twice_keeps_what_describes_it_first(tmp_path):
    more = EDGES | {
        "SET_A.txt": TEXTS["SET_A.txt"] + "1, 2\n",
        "SET_edge_labels.txt": EDGES["SET_edge_labels.txt"] + "7\n",
        "SET_edge_attributes.txt": EDGES["SET_edge_attributes.txt"] + "7\n",
    }
    write_zip(tmp_path, TEXTS | more)
    twice = fetch(tmp_path, as_packed=True).data
    (tmp_path / "once").mkdir()
    write_zip(tmp_path / "once", TEXTS | EDGES)
    once = fetch(tmp_path / "once", as_packed=True).data
    assert twice.edge_labels.equal(once.edge_labels)
    assert twice.edge_attributes.equal(once.edge_attributes)


def without_classes(**texts):
    kept = {file: text for file, text in TEXTS.items() if file != "SET_graph_labels.txt"}
    return kept | {f"SET_{name}.txt": text for name, text in texts.items()}


@pytest.mark.parametrize("as_packed", [False, True])
def test_a_set_may_have_no_target(tmp_path, as_packed):
    write_zip(tmp_path, without_classes())
    data = fetch(tmp_path, as_packed=as_packed)
    assert data.target is None and data.graph_attributes is None and len(data.data) == 3
    assert not len(data.target_names) and data.DESCR.startswith("SET: 3 graphs without a target")
    graphs, y = fetch(tmp_path, as_packed=as_packed, return_X_y=True)
    assert len(graphs) == 3 and y is None


def test_attributes_of_graphs_are_the_target_where_there_are_no_classes(tmp_path):
    write_zip(tmp_path, without_classes(graph_attributes="0.5, 1\n2, 3\n4, 5\n"))
    data = fetch(tmp_path)
    assert data.target.tolist() == [[0.5, 1], [2, 3], [4, 5]]
    assert data.target is data.graph_attributes
    assert data.DESCR.startswith("SET: 3 graphs with 2 numbers each as target")


def test_one_attribute_of_each_graph_is_a_target_of_one_dimension(tmp_path):
    write_zip(tmp_path, without_classes(graph_attributes="0.5\n2\n4\n"))
    assert fetch(tmp_path).target.tolist() == [0.5, 2, 4]


def test_classes_come_before_attributes_of_graphs(tmp_path):
    write_zip(tmp_path, TEXTS | {"SET_graph_attributes.txt": "0.5\n2\n4\n"})
    data = fetch(tmp_path)
    assert data.target.tolist() == [1, 0, 1] and data.graph_attributes.tolist() == [
        [0.5],
        [2],
        [4],
    ]


def test_several_tasks_have_classes_each_some_of_them_unknown(tmp_path):
    write_zip(tmp_path, TEXTS | {"SET_graph_labels.txt": "-1, 5\n1, nan\n1, 7\n"})
    data = fetch(tmp_path)
    assert data.target.tolist() == [[0, 0], [1, -1], [1, 1]]
    assert [names.tolist() for names in data.target_names] == [[-1, 1], [5, 7]]
    assert data.DESCR.startswith("SET: 3 graphs with 2 tasks")


def test_graphs_without_nodes_are_left_out_with_any_target(tmp_path):
    texts = without_classes(
        graph_indicator="2\n2\n2\n3\n3\n3\n3\n6\n",
        graph_attributes="".join(f"{k}\n" for k in range(7)),
    )
    write_zip(tmp_path, texts)
    data = fetch(tmp_path, drop_empty=True)
    assert data.target.tolist() == [1, 2, 5] and len(data.data) == 3
    assert data.graph_attributes.tolist() == [[1], [2], [5]]


# Graphs without nodes

# Seven graphs: the first, fourth, fifth and last one have no nodes.
WITH_EMPTY = TEXTS | {
    "SET_graph_indicator.txt": "2\n2\n2\n3\n3\n3\n3\n6\n",
    "SET_graph_labels.txt": "7\n3\n-1\n7\n-1\n3\n9\n",
}


@pytest.mark.parametrize("as_packed", [False, True])
def test_graphs_without_nodes_are_named_with_the_way_out(tmp_path, as_packed):
    write_zip(tmp_path, WITH_EMPTY)
    message = r"4 of its 7 graphs have no nodes.* graphs 0, 3, 4, 6, .* drop_empty=True"
    with pytest.raises(ValueError, match=message):
        fetch(tmp_path, as_packed=as_packed)


@pytest.mark.parametrize("as_packed", [False, True])
def test_graphs_without_nodes_are_left_out_with_their_classes(tmp_path, as_packed):
    write_zip(tmp_path, WITH_EMPTY | LABELS)
    data = fetch(tmp_path, as_packed=as_packed, drop_empty=True)
    assert data.kept.tolist() == [1, 2, 5] and len(data.data) == 3
    assert data.target.tolist() == [1, 0, 1] and data.target_names.tolist() == [-1, 3]
    assert "4 graphs without nodes were left out" in data.DESCR
    (tmp_path / "whole").mkdir()
    write_zip(tmp_path / "whole", TEXTS | LABELS)
    whole = fetch(tmp_path / "whole", as_packed=True)
    packed = data.data if as_packed else pack_graphs(data.data)
    assert packed.topology.node_ptr.equal(whole.data.topology.node_ptr)
    assert packed.topology.sources.equal(whole.data.topology.sources)


@pytest.mark.parametrize("write", FORMS)
def test_sets_without_empty_graphs_are_the_same_with_drop_empty(tmp_path, write):
    write(tmp_path, ALL)
    data, same = fetch(tmp_path), fetch(tmp_path, drop_empty=True)
    assert data.DESCR == same.DESCR and data.target.tolist() == same.target.tolist()
    assert data.kept.tolist() == [0, 1, 2]


# What is refused


BLANKS = " " * 150_000_000


@pytest.mark.parametrize("file", ["README.txt", "SET_node_labels.txt", "unread.txt"])
def test_archives_that_unpack_to_too_much_are_refused_and_not_kept(site, home, file):
    bomb = zipped(TEXTS | {file: BLANKS})
    site.files["SET.zip"] = bomb
    with pytest.raises(OSError, match=r"it would unpack to 150 MB, \d+ times its size"):
        fetch_tudataset("SET", data_home=home)
    assert not list(home.iterdir())
    (home / "SET.zip").write_bytes(bomb)
    with pytest.raises(ValueError, match=r"cannot be read .* would unpack to 150 MB"):
        fetch(home)


@pytest.mark.parametrize("number", [2**31, 3037000500, 2**63 - 1, -(2**63)])
def test_edges_of_nodes_that_do_not_exist_are_refused_however_large(tmp_path, number):
    write_zip(tmp_path, TEXTS | {"SET_A.txt": f"1, 2\n{number}, 1\n"})
    with pytest.raises(ValueError, match=r"cannot be read .* numbers of nodes"):
        fetch(tmp_path)


@pytest.mark.parametrize("file", sorted(set(TEXTS) - {"SET_graph_labels.txt"}))
@pytest.mark.parametrize("write", [write_zip, write_folder])
def test_missing_files_are_named(tmp_path, file, write):
    write(tmp_path, {name: text for name, text in TEXTS.items() if name != file})
    with pytest.raises(ValueError, match=f"SET.* cannot be read .* {file} is missing"):
        fetch(tmp_path)


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("SET_A.txt", "1, 2\n2\n", "SET_A.txt must hold integers"),
        ("SET_A.txt", "1, 2, 3\n", r"SET_A.txt must have 2 column\(s\), got 3"),
        ("SET_A.txt", "1, x\n", "SET_A.txt must hold integers"),
        ("SET_A.txt", "0, 1\n", "numbers of nodes"),
        ("SET_A.txt", "1, 9\n", "numbers of nodes"),
        ("SET_A.txt", "1, 4\n", "An edge in edge_index leaves graph 0"),
        ("SET_graph_indicator.txt", "1\n1\n1\n3\n3\n2\n2\n3\n", "must ascend, .* 3"),
        ("SET_graph_indicator.txt", "1\n1\n1\n1\n1\n2\n2\n4\n", "must ascend, .* 3"),
        ("SET_graph_indicator.txt", "1\n1\n1\n1\n1\n3\n3\n3\n", "1 of its 3 graphs have no nodes"),
        ("SET_graph_indicator.txt", "", "must ascend, .* 3"),
        ("SET_graph_labels.txt", "1\n2\n", "must ascend, .* 2"),
        ("SET_graph_labels.txt", "1\nnan\n1\n", "must hold integers, got NaN"),
        ("SET_edge_labels.txt", "1\n2\n", "edge_labels has 2 rows for 12 edges"),
        ("SET_edge_attributes.txt", "1\n" * 11 + "nan\n", "Graph 1 .* edge_attributes .* NaN"),
        ("SET_graph_labels.txt", "0.5\n1\n1\n", "SET_graph_labels.txt must hold integers"),
        ("SET_node_labels.txt", "1\n2\n", r"labels must have shape \(8,\), got \(2,\)"),
        ("SET_node_attributes.txt", "1\n2\n", r"attributes must have shape \(8, n_attributes\)"),
        ("SET_node_attributes.txt", "1\n" * 7 + "nan\n", "Graph 2 .* NaN"),
        (
            "SET_node_attributes.txt",
            "1\n" * 7 + "red\n",
            "SET_node_attributes.txt must hold numbers",
        ),
    ],
)
def test_bad_contents_are_named(tmp_path, file, text, message):
    write_zip(tmp_path, TEXTS | {file: text})
    for as_packed in (False, True):
        with pytest.raises(ValueError, match=f"SET.zip cannot be read .*{message}"):
            fetch(tmp_path, as_packed=as_packed)


@pytest.mark.parametrize("damage", ["cut", "flipped", "text"])
def test_damaged_files_are_refused(tmp_path, damage):
    write_zip(tmp_path, ALL)
    (file,) = tmp_path.iterdir()
    content = bytearray(file.read_bytes())
    if damage == "cut":
        del content[len(content) // 2 :]
    elif damage == "flipped":
        content[80:110] = bytes(255 - byte for byte in content[80:110])
    else:
        content = b"no archive"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=f"{file.name} cannot be read as a data set"):
        fetch(tmp_path)


def test_files_of_other_folders_are_left_out(tmp_path):
    other = {f"SET/old/{name}": "9\n" for name in TEXTS}
    content = {f"SET/{name}": text for name, text in TEXTS.items()}
    (tmp_path / "SET.zip").write_bytes(zipped(content | other, folder=""))
    data = fetch(tmp_path)
    assert data.target.tolist() == [1, 0, 1] and len(data.data) == 3
