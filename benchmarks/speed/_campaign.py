"""A campaign: tables that are stored row by row, so that a second call makes what is missing."""

from __future__ import annotations

import gc
import json
from pathlib import Path
from time import perf_counter

import torch

from benchmarks._results import Table, as_json, load


class Campaign:
    """The figures of a benchmark that is too long for one call.

    Parameters
    ----------
    args : argparse.Namespace
        Has `out`, the folder of the figures; `state`, the folder of unfinished fits; `budget`,
        the seconds that this call may take; `device`; `toy`, whether all is small; and `commit`,
        what was measured, where there is no checkout to ask.
    file : str
        Name of the file of figures in `out`.

    Attributes
    ----------
    left : list of str
        Rows that this call had no time for.
    """

    def __init__(self, args, file):
        self.args, self.device = args, args.device
        self.path = Path(args.out) / file
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.end = perf_counter() + args.budget
        self.left = []

    @property
    def seconds_left(self):
        """Seconds that this call may still take."""
        return self.end - perf_counter()

    def sized(self, full, toy):
        """Return the first of two sizes, or the second if all is small."""
        return toy if self.args.toy else full

    def table(self, name, **kwargs):
        """Return a table of the file, with the rows that it has already."""
        return Kept(name, self, **kwargs)

    def rows(self, name):
        """Return the rows of a stored table, none if there is no table."""
        return load(self.path).get(name, {"rows": []})["rows"]


class Kept(Table):
    """A table that is stored after every row, and keeps the rows of earlier calls.

    Parameters
    ----------
    name : str
        Name of the table.
    campaign : Campaign
        What it belongs to.
    **kwargs : dict
        Of `Table`.
    """

    def __init__(self, name, campaign, **kwargs):
        super().__init__(name, campaign.args, **kwargs)
        self.campaign, self.path = campaign, campaign.path
        if campaign.args.commit:
            self.content["commit"] = campaign.args.commit
        if torch.device(campaign.device).type == "cpu":
            self.content["machine"].pop("gpu", None)
        self.content["rows"] = campaign.rows(name)

    def __exit__(self, error, *args):
        """Do nothing: the rows are stored as they come."""

    def row(self, labels, make, *args, needs=0):
        """Add a row unless the file has it or time is over.

        Parameters
        ----------
        labels : dict
            The first columns, which say which row it is.
        make : callable
            Returns the other columns, or None to leave the row for another call. A device with
            too little memory leaves them empty.
        *args : tuple
            What it is called with.
        needs : float, default=0
            Seconds without which the row is not begun.
        """
        labels = json.loads(json.dumps(labels))
        if any(labels.items() <= row.items() for row in self.content["rows"]):
            return
        name = f"{self.name}: {', '.join(map(str, labels.values()))}"
        figures = unless_too_large(make, args) if self.campaign.seconds_left > needs else None
        if figures is None:
            self.campaign.left.append(name)
            return
        self.add({**labels, **figures})
        stored = load(self.path)
        stored[self.name] = self.content
        self.path.write_text(as_json(stored), encoding="utf-8")


def unless_too_large(make, args):
    """Return what a function returns, or a note if the device has too little memory for it."""
    gc.collect()  # nets of earlier rows refer to themselves
    try:
        return make(*args)
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
        return {"note": "out of memory"}
