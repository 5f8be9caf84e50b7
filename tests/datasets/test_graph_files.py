"""The files of a set of TUDataset in all their forms, and what is refused."""

from __future__ import annotations

import zipfile

import numpy as np
import pytest

from skcontrast.graphs import PackedGraphs
from tests.datasets.common import ALL, ATTRIBUTES, EDGES, LABELS, TEXTS, fetch, write_zip, zipped


def write_flat_zip(home, texts):
    (home / "SET.zip").write_bytes(zipped(texts, folder=""))


def write_folder(home, texts):
    (home / "SET").mkdir()
    for file, text in texts.items():
        (home / "SET" / file).write_text(text)


FORMS = [write_zip, write_flat_zip, write_folder]


# What is read


def edges_of(graphs, k):
    """Return the edges of one graph, in ascending order."""
    return sorted(map(tuple, graphs[k].topology.edge_index.T.tolist()))


def named(codes, categories):
    return [categories[code] for code in codes]


@pytest.mark.parametrize("write", FORMS)
def test_all_forms_are_read_alike(tmp_path, write):
    write(tmp_path, ALL)
    data = fetch(tmp_path)
    graphs = data.data
    assert isinstance(graphs, PackedGraphs) and graphs.sizes.tolist() == [3, 4, 1]
    assert edges_of(graphs, 0) == [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]
    assert edges_of(graphs, 1) == [(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)]
    assert not edges_of(graphs, 2) and graphs.topology.symmetric
    assert named(graphs.labels, graphs.categories) == [5, 5, 9, 5, 9, 9, 9, 0]
    np.testing.assert_array_equal(graphs.attributes, [[k + 0.5, -k] for k in range(8)])
    assert data.target.tolist() == [1, 0, 1] and data.target.dtype == np.int64
    assert data.target_names.tolist() == [-1, 3] and data.kept.tolist() == [0, 1, 2]
    assert data.DESCR.startswith("SET, a set of TUDataset")
    assert data.DESCR.endswith("What the set is.")
    X, y = fetch(tmp_path, return_X_y=True)
    assert X.topology.sources.equal(graphs.topology.sources) and y.tolist() == [1, 0, 1]


@pytest.mark.parametrize("optional", [{}, LABELS, ATTRIBUTES])
def test_nodes_have_what_describes_them(tmp_path, optional):
    write_zip(tmp_path, TEXTS | optional)
    graphs = fetch(tmp_path).data
    assert (graphs.attributes is None) == (optional is not ATTRIBUTES)
    assert (graphs.labels is None) == (optional is not LABELS)


def test_edges_that_stand_twice_count_once_and_loops_stay(tmp_path):
    write_zip(tmp_path, TEXTS | {"SET_A.txt": TEXTS["SET_A.txt"] * 2 + "8, 8\n"})
    graphs = fetch(tmp_path).data
    assert len(graphs.topology.sources) == 13 and edges_of(graphs, 2) == [(0, 0)]


def test_edges_without_their_reverse_make_directed_graphs(tmp_path):
    write_zip(tmp_path, TEXTS | {"SET_A.txt": "1, 2\n4,5\n"})
    graphs = fetch(tmp_path).data
    assert not graphs.topology.symmetric and edges_of(graphs, 0) == [(0, 1)]


def test_there_may_be_no_edges(tmp_path):
    write_zip(tmp_path, TEXTS | {"SET_A.txt": "\n"})
    assert not len(fetch(tmp_path).data.topology.sources)


def test_node_labels_may_have_several_columns(tmp_path):
    pairs = [(1, 2), (0, 2), (1, 2), (1, 0), (0, 0), (1, 2), (0, 2), (1, 0)]
    write_zip(tmp_path, TEXTS | {"SET_node_labels.txt": "".join(f"{a}, {b}\n" for a, b in pairs)})
    graphs = fetch(tmp_path).data
    assert named(graphs.labels, graphs.categories) == pairs


# Edges, and other targets than classes


def test_edges_keep_what_describes_them(tmp_path):
    write_zip(tmp_path, TEXTS | EDGES)
    path = fetch(tmp_path).data[1]
    ends = map(tuple, path.topology.edge_index.T.tolist())
    labels = named(path.edge_labels, path.edge_categories)
    found = sorted(zip(ends, path.edge_attributes[:, 0].tolist(), labels, strict=True))
    forth = [((0, 1), 3.5, 3), ((1, 2), 4.5, 4), ((2, 3), 5.5, 4)]
    assert found == sorted(forth + [(ends[::-1], *rest) for ends, *rest in forth])
    assert path.topology.symmetric


def test_an_edge_that_stands_twice_keeps_what_describes_it_first(tmp_path):
    more = EDGES | {
        "SET_A.txt": TEXTS["SET_A.txt"] + "1, 2\n",
        "SET_edge_labels.txt": EDGES["SET_edge_labels.txt"] + "7\n",
        "SET_edge_attributes.txt": EDGES["SET_edge_attributes.txt"] + "7\n",
    }
    write_zip(tmp_path, TEXTS | more)
    twice = fetch(tmp_path).data
    (tmp_path / "once").mkdir()
    write_zip(tmp_path / "once", TEXTS | EDGES)
    once = fetch(tmp_path / "once").data
    assert twice.edge_labels.equal(once.edge_labels)
    assert twice.edge_attributes.equal(once.edge_attributes)


def without_classes(**texts):
    kept = {file: text for file, text in TEXTS.items() if file != "SET_graph_labels.txt"}
    return kept | {f"SET_{name}.txt": text for name, text in texts.items()}


def test_a_set_may_have_no_target(tmp_path):
    write_zip(tmp_path, without_classes())
    data = fetch(tmp_path)
    assert data.target is None and data.graph_attributes is None and len(data.data) == 3
    assert not len(data.target_names)


def test_attributes_of_graphs_are_the_target_where_there_are_no_classes(tmp_path):
    write_zip(tmp_path, without_classes(graph_attributes="0.5, 1\n2, 3\n4, 5\n"))
    data = fetch(tmp_path)
    assert data.target.tolist() == [[0.5, 1], [2, 3], [4, 5]]
    assert data.target is data.graph_attributes


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


# Graphs without nodes

# Seven graphs: the first, fourth, fifth and last one have no nodes.
INDICATOR = "2\n2\n2\n3\n3\n3\n3\n6\n"
WITH_EMPTY = TEXTS | {
    "SET_graph_indicator.txt": INDICATOR,
    "SET_graph_labels.txt": "7\n3\n-1\n7\n-1\n3\n9\n",
}
LEFT_OUT = pytest.mark.filterwarnings("ignore:4 of the 7 graphs")


@LEFT_OUT
def test_graphs_without_nodes_are_left_out_with_any_target(tmp_path):
    attributes = "".join(f"{k}\n" for k in range(7))
    texts = without_classes(graph_indicator=INDICATOR, graph_attributes=attributes)
    write_zip(tmp_path, texts)
    data = fetch(tmp_path)
    assert data.target.tolist() == [1, 2, 5] and len(data.data) == 3
    assert data.graph_attributes.tolist() == [[1], [2], [5]]


def test_graphs_without_nodes_are_left_out_with_their_classes(tmp_path):
    write_zip(tmp_path, WITH_EMPTY | LABELS)
    with pytest.warns(UserWarning, match="4 of the 7 graphs of SET have no nodes: left out"):
        data = fetch(tmp_path)
    assert data.kept.tolist() == [1, 2, 5] and len(data.data) == 3
    assert data.target.tolist() == [1, 0, 1] and data.target_names.tolist() == [-1, 3]
    (tmp_path / "whole").mkdir()
    write_zip(tmp_path / "whole", TEXTS | LABELS)
    whole = fetch(tmp_path / "whole").data
    assert data.data.topology.node_ptr.equal(whole.topology.node_ptr)
    assert data.data.topology.sources.equal(whole.topology.sources)


# What is refused


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
        ("SET_graph_indicator.txt", "", "must ascend, .* 3"),
        ("SET_graph_labels.txt", "1\n2\n", "must ascend, .* 2"),
        ("SET_graph_labels.txt", "1\nnan\n1\n", "must hold integers, got NaN"),
        ("SET_edge_labels.txt", "1\n2\n", "edge_labels has 2 rows for 12 edges"),
        ("SET_edge_attributes.txt", "1\n" * 11 + "nan\n", "Graph 1 .* edge_attributes .* NaN"),
        ("SET_graph_labels.txt", "0.5\n1\n1\n", "SET_graph_labels.txt must hold integers"),
        ("SET_graph_labels.txt", "inf\n1\n1\n", "SET_graph_labels.txt must hold integers"),
        (
            "SET_graph_labels.txt",
            f"{2**60}\n1\n1\n",
            r"_labels.txt must hold integers below 2\*\*53",
        ),
        ("SET_graph_attributes.txt", "1\n" * 4, "graph_attributes has 4 rows for 3 graphs"),
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
    with pytest.raises(ValueError, match=f"SET.zip cannot be read .*{message}"):
        fetch(tmp_path)


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


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_archives_of_other_methods_are_refused(tmp_path, method):
    with zipfile.ZipFile(tmp_path / "SET.zip", "w", method) as archive:
        for name, text in TEXTS.items():
            archive.writestr(name, text)
    with pytest.raises(ValueError, match=r"SET.zip cannot be read .* stored or deflated"):
        fetch(tmp_path)


def test_files_of_other_folders_are_left_out(tmp_path):
    other = {f"SET/old/{name}": "9\n" for name in TEXTS}
    content = {f"SET/{name}": text for name, text in TEXTS.items()}
    (tmp_path / "SET.zip").write_bytes(zipped(content | other, folder=""))
    data = fetch(tmp_path)
    assert data.target.tolist() == [1, 0, 1] and len(data.data) == 3
