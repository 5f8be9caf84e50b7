"""A folder for data sets, and one that serves as the site."""

from __future__ import annotations

import pytest

from skcontrast.datasets import tudataset
from tests.datasets.common import ALL, zipped


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder that serves as the site."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.setattr(tudataset, "_SITE", f"file://localhost{folder.as_posix()}")
    (folder / "SET.zip").write_bytes(zipped(ALL))
    return folder
