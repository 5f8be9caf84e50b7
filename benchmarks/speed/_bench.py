"""What the speed benchmarks share: timing in turn, single steps, losses of other libraries."""

from __future__ import annotations

import importlib.util
import itertools
import statistics
import subprocess
import sys
import threading
import types
from pathlib import Path
from time import perf_counter

import torch
import torch.nn.functional as F
from skorch.callbacks import Callback
from torch import nn

from benchmarks._results import module_name

LONG = 3.0


def timed(function, clock=perf_counter):
    """Return the seconds that a call takes; with a GPU, by its own clock, until it is done."""
    if not torch.cuda.is_available():
        start = clock()
        function()
        return clock() - start
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    function()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3


def in_turn(contestants, rounds, clock=perf_counter):
    """Time contestants in turn, in another order each round.

    Parameters
    ----------
    contestants : dict of str to callable
        Each is called once to warm up. Where that takes longer than `LONG` seconds, it takes
        part in two rounds only.
    rounds : int
        Calls of each that are timed.
    clock : callable, default=time.perf_counter
        ``time.process_time`` leaves out what other programs take, on one thread.

    Returns
    -------
    seconds : dict of str to list of float
        One entry per round in which the contestant took part.
    """
    warm_up = {name: timed(function, clock) for name, function in contestants.items()}
    names, seconds = list(contestants), {name: [] for name in contestants}
    for k in range(rounds):
        for name in names[k % len(names) :] + names[: k % len(names)]:
            if k < 2 or warm_up[name] < LONG:
                seconds[name].append(timed(contestants[name], clock))
    return seconds


def ratios(seconds, to):
    """Return for each contestant the median over the rounds of its time relative to `to`'s."""
    return {
        name: statistics.median(a / b for a, b in zip(times, seconds[to], strict=False))
        for name, times in seconds.items()
    }


def peak_memory(function, device="cpu"):
    """Return the MiB by which a device's memory rises at most during a call.

    On the CPU it is resident memory, Linux only; on a GPU, what torch has allocated.
    """
    if device != "cpu":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        function()
        return (torch.cuda.max_memory_allocated() - before) / 2**20
    Path("/proc/self/clear_refs").write_text("5")  # The peak starts anew from here.
    before = process_status("VmRSS")
    function()
    return (process_status("VmHWM") - before) / 1024


def process_status(field):
    """Return KiB of this process's memory by their name in /proc; Linux only."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))


def memory_of_a_long_call(function):
    """Return the MiB by which this process grows while a function runs, and the seconds it takes.

    Returns
    -------
    own, resident : float
        Growth of its own memory, and with the pages of files that it maps. Linux only.
    seconds : float
        Of the call.
    """
    fields, is_over = ("RssAnon", "VmRSS"), threading.Event()
    before = most = [process_status(field) for field in fields]

    def watch():
        nonlocal most
        while not is_over.wait(0.02):
            most = [max(a, process_status(field)) for a, field in zip(most, fields, strict=True)]

    watcher, start = threading.Thread(target=watch, daemon=True), perf_counter()
    watcher.start()
    function()
    seconds = perf_counter() - start
    is_over.set()
    watcher.join()
    own, resident = ((a - b) / 1024 for a, b in zip(most, before, strict=True))
    return own, resident, seconds


def in_another_process(*options):
    """Run this benchmark with other options in a new process, and return the last printed line."""
    command = [sys.executable, "-m", module_name(sys.argv[0]), *map(str, options)]
    printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return printed.splitlines()[-1] if printed else ""


class Stopped(Callback):
    """Takes the net of a fit that is about to begin, and stops the fit."""

    def on_epoch_begin(self, net, **kwargs):
        """Keep the net and its batches, which begin again when they are over."""
        self.net, self.batches = net, itertools.chain.from_iterable(itertools.repeat(net.sampler_))
        raise KeyboardInterrupt

    @property
    def context(self):
        """What the fit knows: the network as it runs it, the generator."""
        return self.net.context

    def step(self):
        """Take a training step."""
        self.net.train_step(next(self.batches))


def stopped(embedder, *data):
    """Return a fit of an embedder before its first step."""
    callback = Stopped()
    embedder.set_params(callbacks=[callback]).partial_fit(*data)
    return callback


def projection_head(width, n_components=64):
    """Return a head of the form and the first weights of the embedder's, written out."""
    hidden = min(width, 512)
    first, last = nn.Linear(width, hidden, bias=False), nn.Linear(hidden, n_components)
    nn.init.kaiming_normal_(first.weight, nonlinearity="relu")
    nn.init.kaiming_normal_(last.weight, nonlinearity="linear")
    nn.init.zeros_(last.bias)
    return nn.Sequential(first, nn.BatchNorm1d(hidden), nn.ReLU(), last)


def with_head(encoder, shape):
    """Return a new module of an encoder for samples of a shape, and a head for it."""
    module = encoder.build(shape)
    with torch.no_grad():
        width = module.eval()(torch.zeros(2, *shape)).shape[1]
    return module.train(), projection_head(width)


def nt_xent(z1, z2, temperature=0.5):
    """NT-Xent as it is usually written: all scores at once, and F.cross_entropy."""
    z = F.normalize(torch.cat([z1, z2]), dim=1)
    logits = z @ z.T / temperature
    logits.fill_diagonal_(-torch.inf)
    n = len(z1)
    return F.cross_entropy(logits, torch.arange(2 * n, device=z.device).roll(n))


def lightly_ntxent(temperature=0.5):
    """Return lightly's NTXentLoss, or None where lightly is not installed.

    Only the files that the loss needs are loaded: lightly's other modules import torchvision,
    which does not go with every build of torch. What stands for ``lightly.models.utils`` is
    empty: the loss calls it for memory banks of several processes only.
    """
    spec = importlib.util.find_spec("lightly")
    if spec is None:
        return None
    for name in ("lightly.loss", "lightly.models", "lightly.models.modules"):
        package = types.ModuleType(name)
        package.__path__ = [str(Path(spec.origin).parent.joinpath(*name.split(".")[1:]))]
        sys.modules.setdefault(name, package)
    sys.modules.setdefault("lightly.models.utils", types.ModuleType("lightly.models.utils"))
    from lightly.loss.ntx_ent_loss import NTXentLoss

    return NTXentLoss(temperature)


def metric_learning(name, temperature=0.5):
    """Return a loss of pytorch-metric-learning as a function of two views, or None without it.

    Every sample is a class of its own, of which its two views are the members.
    """
    try:
        from pytorch_metric_learning import losses
    except ImportError:
        return None
    loss = getattr(losses, name)(temperature=temperature)

    def of_views(z1, z2):
        return loss(torch.cat([z1, z2]), torch.arange(len(z1), device=z1.device).repeat(2))

    return of_views
