"""fetch_tudataset: its parameters, its folder, and the sets themselves."""

from __future__ import annotations

import sys

import pytest

from skcontrast.datasets import fetch_tudataset
from tests.datasets.common import TEXTS, fetch, write_zip


def test_the_folder_is_that_of_scikit_learn(tmp_path, monkeypatch):
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    (tmp_path / "tudataset").mkdir()
    write_zip(tmp_path / "tudataset", TEXTS)
    assert len(fetch(None).data) == 3
    monkeypatch.setenv("HOME", str(tmp_path))
    assert len(fetch("~/tudataset").data) == 3
    assert len(fetch(str(tmp_path / "tudataset")).data) == 3


def test_without_networkx_there_are_packed_graphs(tmp_path, monkeypatch):
    write_zip(tmp_path, TEXTS)
    monkeypatch.setitem(sys.modules, "networkx", None)
    assert len(fetch(tmp_path, as_packed=True).data) == 3
    with pytest.raises(ImportError, match="as_packed=True"):
        fetch(tmp_path)


@pytest.mark.parametrize(
    "name", ["", "../SET", "a/b", "a\\b", ".hidden", "a b", "ä", 3, None, "SET\n"]
)
def test_names_are_names(name, home):
    with pytest.raises(ValueError, match=r"name.* must be "):
        fetch_tudataset(name, data_home=home)


@pytest.mark.parametrize(
    ("parameter", "value"), [("n_retries", -1), ("delay", -0.5), ("timeout", 0)]
)
def test_numbers_are_checked(parameter, value, home):
    with pytest.raises(ValueError, match=parameter):
        fetch_tudataset("SET", data_home=home, **{parameter: value})


@pytest.mark.parametrize("sha256", [5, "xyz", "", "0" * 63])
def test_a_bad_checksum_is_refused_before_the_download(sha256, site, home):
    with pytest.raises(ValueError, match=r"sha256.* must be "):
        fetch_tudataset("SET", data_home=home, sha256=sha256)
    assert not home.exists()
