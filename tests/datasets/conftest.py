"""A folder for data sets, and a server that serves as the sites."""

from __future__ import annotations

import pytest

from skcontrast.datasets import _tudataset as tudataset
from tests.datasets.common import ALL, Server, zipped


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


@pytest.fixture
def server(monkeypatch):
    """A server on this machine, which no proxy comes between."""
    monkeypatch.setenv("no_proxy", "*")
    with Server() as server:
        yield server


@pytest.fixture
def site(server, monkeypatch):
    """The server as the site of TUDataset, with a small set."""
    monkeypatch.setattr(tudataset, "_SITE", server.url)
    server.files["SET.zip"] = zipped(ALL)
    return server
