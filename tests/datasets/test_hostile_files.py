"""Files that were made to do harm: nothing in them runs, and they take no memory."""

from __future__ import annotations

import copy
import os
import struct
import tracemalloc
import zipfile
import zlib

import numpy as np
import pytest

from skcontrast.datasets import ImageFolder, fetch_tudataset
from skcontrast.graphs import PackedGraphs

TEXTS = {
    "A": "1, 2\n2, 1\n3, 4\n4, 3\n",
    "graph_indicator": "1\n1\n2\n2\n",
    "graph_labels": "1\n2\n",
}
ARRAYS = {
    "edge_index": np.array([[0, 1, 2, 3], [1, 0, 3, 2]]),
    "node_ptr": np.array([0, 2, 4]),
    "y": np.array([0, 1]),
}
BLANKS = bytes(2**26)
POSIX = pytest.mark.skipif(os.name != "posix", reason="no such files there")


def load(home, **kwargs):
    options = {"download_if_missing": False, "as_packed": True, **kwargs}
    return fetch_tudataset("SET", data_home=home, **options)


def peak_of(function, error, match):
    """Return the bytes that a function takes before it raises an error."""
    tracemalloc.start()
    try:
        with pytest.raises(error, match=match):
            function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def zipped(path, method=zipfile.ZIP_DEFLATED, **members):
    """Write an archive of the texts of a set, some of them replaced."""
    with zipfile.ZipFile(path / "SET.zip", "w", method) as archive:
        for name, content in {**TEXTS, **members}.items():
            archive.writestr(name if "." in name else f"SET/SET_{name}.txt", content)
    return path / "SET.zip"


def claim(path, member, size):
    """Let an archive say that a member has a size."""
    content, name, place = bytearray(path.read_bytes()), member.encode(), 0
    while (place := content.find(name, place)) >= 0:
        for signature, start, field in ((b"PK\1\2", 46, 24), (b"PK\3\4", 30, 22)):
            if content[place - start : place - start + 4] == signature:
                struct.pack_into("<I", content, place - start + field, size)
        place += 1
    path.write_bytes(content)


@pytest.mark.parametrize("member", ["README.txt", "SET/SET_A.txt"])
def test_an_archive_that_lies_about_sizes_is_unpacked_no_further_than_it_says(tmp_path, member):
    name = "README.txt" if member == "README.txt" else "A"
    path = zipped(tmp_path, **{name: TEXTS.get(name, "").encode() + BLANKS})
    claim(path, member, 24)
    assert peak_of(lambda: load(tmp_path), ValueError, "Bad CRC-32") < 2**22


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_methods_that_unpack_all_at_once_are_refused(tmp_path, method):
    claim(zipped(tmp_path, method, **{"README.txt": BLANKS}), "README.txt", 24)
    assert peak_of(lambda: load(tmp_path), ValueError, "a different method") < 2**22


def test_an_archive_in_which_many_files_are_the_same_bytes_is_refused(tmp_path):
    path = zipped(tmp_path, **{"README.txt": bytes(2**20)})
    with zipfile.ZipFile(path, "a") as archive:
        for k in range(80):
            member = copy.copy(archive.getinfo("README.txt"))
            member.filename = f"README{k}.txt"
            archive.filelist.append(member)
        archive._didModify = True
    assert peak_of(lambda: load(tmp_path), ValueError, "would unpack to 85 MB") < 2**22


def test_an_archive_of_very_many_files_is_refused(tmp_path):
    zipped(tmp_path, **{f"{k}.txt": "" for k in range(101)})
    with pytest.raises(ValueError, match="it has 104 files, more than any set"):
        load(tmp_path)


@pytest.mark.parametrize("name", ["A", "node_labels", "node_attributes"])
def test_a_text_of_a_single_endless_line_is_refused(tmp_path, name):
    zipped(tmp_path, **{name: b"1," * 2**22 + b"1\n"})
    message = f"SET_{name}.txt has more than 16384 columns"
    assert peak_of(lambda: load(tmp_path), ValueError, message) < 2**25


@pytest.mark.parametrize("method", [9, 14, 93, 99])
def test_unknown_methods_are_refused(tmp_path, method):
    content = bytearray(zipped(tmp_path).read_bytes())
    for signature, field in ((b"PK\1\2", 10), (b"PK\3\4", 8)):
        place = -1
        while (place := content.find(signature, place + 1)) >= 0:
            struct.pack_into("<H", content, place + field, method)
    (tmp_path / "SET.zip").write_bytes(content)
    with pytest.raises(ValueError, match=r"SET\.zip cannot be read"):
        load(tmp_path)


# Arrays of numpy

BAD_ARRAYS = {
    "objects": ("edge_index", np.array([[0, None], [1, 0]], dtype=object), "Object arrays"),
    "objects as classes": ("y_original", np.array([{}, 1], dtype=object), "Object arrays"),
    "columns": ("node_labels", np.zeros((4, 2**16), np.int8), "more than 16384 columns"),
    "attributes": ("node_attributes", np.zeros((4, 2**16), np.int8), "more than 16384 columns"),
    "nodes": ("node_ptr", np.array([0, 2, 2**28]), "node_ptr ends with 268435456 nodes, but"),
    "more nodes": ("node_ptr", np.array([0, 2, 2**63 - 1]), "claims to have more than"),
    "unsigned": ("node_ptr", np.array([0, 2, 2**64 - 1], dtype=np.uint64), "claims to have more"),
    "negative": ("node_ptr", np.array([0, 2, -(2**63)]), "node_ptr must rise .* graph 1 begins"),
    "overflow": ("node_ptr", np.array([0, 2**63 - 1, -(2**63) + 3]), "claims to have more"),
    "edges": ("edge_index", np.array([[2**64 - 1], [0]], dtype=np.uint64), "numbers of nodes"),
    "negative edges": ("edge_index", np.array([[-(2**63)], [0]]), "numbers of nodes"),
    "structured": ("y", np.zeros(2, [("a", int)]), "'y' must have 1 or 2 dimension"),
    "no dimensions": ("node_labels", np.array(3), "'node_labels' must have 1 or 2"),
    "NaN": ("node_labels", np.array([np.nan, 0, 0, 0]), "hold integers, got float64"),
    "infinity": ("node_attributes", np.full((4, 1), np.inf), "NaN or infinite"),
}


@pytest.mark.parametrize("case", BAD_ARRAYS)
def test_arrays_that_would_exhaust_memory_or_wrap_around_are_refused(tmp_path, case):
    name, array, message = BAD_ARRAYS[case]
    np.savez_compressed(tmp_path / "SET.npz", **{**ARRAYS, name: array})
    assert peak_of(lambda: load(tmp_path), ValueError, message) < 2**22


def npy(header, content=b""):
    """Return a file of numpy with a header of one's own."""
    text = header.encode() + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text + content


HEADERS = {
    "large": "{'descr': '<i8', 'fortran_order': False, 'shape': (2, 1099511627776), }",
    "larger": f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({2**62}, {2**62}), }}",
    "short": "{'descr': '<i8', 'fortran_order': False, 'shape': (2, 3), }",
    "wide": "{'descr': '|V2147483647', 'fortran_order': False, 'shape': (2, 4), }",
    "negative": "{'descr': '<i8', 'fortran_order': False, 'shape': (-2, -4), }",
    "code": "__import__('os').abort()",
    "deep": "(" * 5000 + ")" * 5000,
    "objects": "{'descr': '|O', 'fortran_order': False, 'shape': (2, 4), }",
}
# Aborts the process if it is unpickled.
PICKLE = b"\x80\x04cos\nabort\n(tR."


@pytest.mark.parametrize("case", [*HEADERS, "pickle", "version 2"])
def test_headers_that_lie_are_refused_before_memory_is_taken(tmp_path, case):
    content = npy(HEADERS[case], PICKLE) if case in HEADERS else PICKLE
    if case == "version 2":
        content = b"\x93NUMPY\2\0" + b"\xff" * 4
    np.savez(tmp_path / "SET.npz", node_ptr=ARRAYS["node_ptr"], y=ARRAYS["y"])
    with zipfile.ZipFile(tmp_path / "SET.npz", "a") as archive:
        archive.writestr("edge_index.npy", content)
    assert peak_of(lambda: load(tmp_path), ValueError, r"SET\.npz cannot be read") < 2**22


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"node_ptr": [0, 2, 2**31]}, "ends with 2147483648 nodes, but .* only 11 numbers"),
        ({"node_ptr": [0, 2, 2**30]}, "ends with 1073741824 nodes"),
        ({"labels": np.array(["a", 1, None, {}], dtype=object)}, "labels .* of one type"),
        ({"attributes": np.ones((4, 1)) * 1j}, "attributes must be .* numbers: Complex"),
    ],
)
def test_packed_graphs_are_checked_before_memory_is_taken(arguments, message):
    arrays = {"edge_index": ARRAYS["edge_index"], "node_ptr": [0, 2, 4], **arguments}
    assert peak_of(lambda: PackedGraphs.from_arrays(**arrays), ValueError, message) < 2**22


# What is not a file


@POSIX
@pytest.mark.parametrize("name", ["SET.zip", "SET.npz"])
def test_pipes_and_devices_are_not_waited_for(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(OSError, match="not found"):
        load(tmp_path)
    (tmp_path / name).unlink()
    (tmp_path / name).symlink_to("/dev/zero")
    with pytest.raises(OSError, match="not found"):
        load(tmp_path)


@POSIX
def test_a_checksum_that_is_a_pipe_is_refused(tmp_path):
    (tmp_path / "SET.zip").write_bytes(b"PK")
    os.mkfifo(tmp_path / "SET.zip.sha256")
    with pytest.raises(OSError, match=r"SET\.zip\.sha256 is not a file"):
        load(tmp_path)


# Folders of images


def png(width, height):
    """Return an image file that is nothing but its size and no pixels."""

    def chunk(kind, content):
        checked = kind + content
        return struct.pack(">I", len(content)) + checked + struct.pack(">I", zlib.crc32(checked))

    size = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pixels = chunk(b"IDAT", zlib.compress(b""))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", size) + pixels + chunk(b"IEND", b"")


@pytest.mark.filterwarnings("ignore:Image size")
@pytest.mark.parametrize("side", [9_500, 13_000, 20_000, 2**31 - 1])
def test_images_of_more_pixels_than_pillow_allows_are_refused(tmp_path, side):
    pytest.importorskip("PIL")
    (tmp_path / "a.png").write_bytes(png(side, side))
    images = ImageFolder(tmp_path)
    assert peak_of(lambda: images[0], OSError, r"a.png cannot be read .* exceeds") < 2**22


@POSIX
def test_an_image_that_is_a_pipe_is_refused(tmp_path):
    pytest.importorskip("PIL")
    os.mkfifo(tmp_path / "a.png")
    with pytest.raises(OSError, match=r"a.png cannot be read as an image: it is not a file"):
        ImageFolder(tmp_path)[0]


@POSIX
def test_links_that_multiply_paths_are_refused(tmp_path):
    pytest.importorskip("PIL")
    for k in range(20):
        (tmp_path / f"{k}").mkdir()
        for name in "ab":
            (tmp_path / f"{k}" / name).symlink_to(tmp_path / f"{k + 1}")
    (tmp_path / "20").mkdir()
    with pytest.raises(ValueError, match="More than 100 paths lead to"):
        ImageFolder(tmp_path)
