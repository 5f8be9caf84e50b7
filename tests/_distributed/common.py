"""Processes of one group that wait for something to do."""

import contextlib
import socket
import traceback
import warnings
from datetime import timedelta

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn

from skcontrast.encoders import MLP, ConvNet, PatchNet
from skcontrast.losses import HCL, SupCon
from tests.common import processes

X, Y = (array[:101] for array in load_digits(return_X_y=True))
IMAGES = X.reshape(-1, 1, 8, 8)
SECONDS = 120


# Processes that wait for something to do
def serve(rank, size, port, pipe):
    """Join the group; call what comes through the pipe and send back what it returns."""
    warnings.simplefilter("error")
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo",
        init_method=f"tcp://127.0.0.1:{port}",
        rank=rank,
        world_size=size,
        timeout=timedelta(seconds=SECONDS),
    )
    while (task := pipe.recv()) is not None:
        function, args, kwargs = task
        try:
            pipe.send((function(*args, **kwargs), None))
        except (Exception, KeyboardInterrupt):
            pipe.send((None, traceback.format_exc()))
    torch.distributed.destroy_process_group()


class Ranks:
    """Processes of one group, started when they are first needed."""

    processes = ()

    def __init__(self, size=2):
        self.size = size

    def start(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        context = processes()
        self.pipes, theirs = zip(*(context.Pipe() for _ in range(self.size)), strict=True)
        self.processes = [
            context.Process(target=serve, args=(rank, self.size, port, pipe), daemon=True)
            for rank, pipe in enumerate(theirs)
        ]
        for process in self.processes:
            process.start()

    def stop(self):
        for pipe in self.pipes if self.processes else ():
            with contextlib.suppress(OSError):
                pipe.send(None)
        for process in self.processes:
            process.join(timeout=15)
            process.kill()
            process.join()
        self.processes = ()

    def __call__(self, function, *args, **kwargs):
        """Return what the function returns on each rank; None for a rank that is killed."""
        if not self.processes:
            self.start()
        for pipe in self.pipes:
            pipe.send((function, args, kwargs))
        answers = []
        for rank, pipe in enumerate(self.pipes):
            if not pipe.poll(SECONDS):
                self.stop()
                pytest.fail(f"rank {rank} did not answer in {SECONDS} s")
            try:
                answers.append(pipe.recv())
            except EOFError:
                answers.append((None, None))
        for _, error in answers:
            if error is not None:
                pytest.fail(error)
        return [answer for answer, _ in answers]


def rank():
    return torch.distributed.get_rank()


# Equal to one process
CASES = {
    "batch norm": {},
    "no batch norm": {"encoder": MLP((16,), batch_norm=False), "projection_dim": 0},
    "images": {"X": IMAGES, "encoder": ConvNet(widths=(4, 8)), "precision": "float32"},
    "patches": {
        "X": IMAGES,
        "encoder": PatchNet(n_patches=4, patch_size=3, widths=(4,)),
        "precision": "float32",
    },
    "uneven batches, three views": {"batch_size": 24, "n_views": 3},
    "batches of three": {"X": X[:9], "batch_size": 3},
    "labels": {"loss": SupCon(), "y": np.where(np.arange(len(Y)) % 3, Y, -1)},
    "hard negatives": {"loss": HCL(tau_plus=0.1, beta=1.0), "batch_size": 50},
    "a module's own batch norm": {
        "encoder": nn.Sequential(
            nn.Linear(64, 32),
            nn.BatchNorm1d(32, affine=False, track_running_stats=False),
            nn.ReLU(),
            nn.BatchNorm1d(32, momentum=None),
        )
    },
}
