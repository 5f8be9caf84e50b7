"""A campaign makes each row once, in as many calls as it needs."""

import json
import sys
from argparse import Namespace

import numpy as np
import pytest

from benchmarks.speed._campaign import Campaign
from benchmarks.speed._gpu_training import Deadline, trained
from skcontrast import ContrastiveEmbedder
from skcontrast.encoders import MLP


@pytest.fixture
def start(monkeypatch, tmp_path):
    """Return a function that starts a call of a campaign, always in the same folder."""
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "speed.py")])

    def call(budget=100.0, commit=None):
        args = Namespace(out=tmp_path, budget=budget, device="cpu", toy=True, commit=commit)
        return Campaign(args, "speed.json")

    return call


def stored(campaign):
    return json.loads(campaign.path.read_text(encoding="utf-8"))["time"]


def test_a_second_call_makes_the_rows_that_are_missing(start):
    made = []

    def make(name):
        made.append(name)
        return {"ms": 1.0}

    for names in (["DCL"], ["DCL", "HCL"]):
        table = start().table("time")
        for name in names:
            table.row({"loss": name}, make, name)
    assert made == ["DCL", "HCL"]
    assert stored(start())["rows"] == [{"loss": name, "ms": 1.0} for name in made]


def test_what_there_is_no_time_for_is_named_and_not_made(start):
    campaign = start(budget=5)
    campaign.table("time").row({"loss": "DCL"}, pytest.fail, needs=10)
    campaign.table("time").row({"loss": "HCL"}, lambda: None)
    assert campaign.left == ["time: DCL", "time: HCL"]
    assert not campaign.path.exists()


@pytest.mark.usefixtures("interruptible")
def test_a_training_that_is_stopped_resumes_and_ends_the_same(start, tmp_path, monkeypatch):
    monkeypatch.setattr(Deadline, "end", float("inf"))
    X, y = np.random.default_rng(0).normal(size=(60, 5)), np.arange(60) % 2

    def figures(budget, folder):
        fitted = ContrastiveEmbedder(
            encoder=MLP((8,)),
            max_epochs=3,
            random_state=0,
            callbacks=[Deadline()],
            checkpoint=tmp_path / folder,
        )
        return trained(start(budget), (X, y, X, y), fitted), fitted

    nothing, stopped = figures(0, "stopped")
    assert nothing is None and stopped.n_epochs_ == 1
    resumed, _ = figures(100, "stopped")
    at_once, _ = figures(100, "at once")
    for column in ("20-NN", "linear", "last loss"):
        assert resumed[column] == at_once[column]
