"""A small TUDataset in all its forms."""

from __future__ import annotations

import io
import zipfile

from skcontrast.datasets import fetch_tudataset

# A triangle and a path of four nodes, the classes 3 and −1, and a node by itself, of class 3 too.
TEXTS = {
    "SET_A.txt": "1, 2\n2, 1\n2, 3\n3, 2\n3, 1\n1, 3\n4, 5\n5, 4\n5, 6\n6, 5\n6, 7\n7, 6\n",
    "SET_graph_indicator.txt": "1\n1\n1\n2\n2\n2\n2\n3\n",
    "SET_graph_labels.txt": "3\n-1\n3\n",
}
LABELS = {"SET_node_labels.txt": "5\n5\n9\n5\n9\n9\n9\n0\n"}
ATTRIBUTES = {"SET_node_attributes.txt": "".join(f"{k}.5, -{k}\n" for k in range(8))}
README = {"README.txt": "What the set is."}
ALL = TEXTS | LABELS | ATTRIBUTES | README


def zipped(texts, folder="SET/"):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for file, text in texts.items():
            archive.writestr(folder + file, text)
    return content.getvalue()


def fetch(home, **kwargs):
    return fetch_tudataset("SET", data_home=home, download_if_missing=False, **kwargs)


def write_zip(home, texts):
    (home / "SET.zip").write_bytes(zipped(texts))
