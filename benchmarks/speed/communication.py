"""What the processes of a fit send each other in a step, counted, beside the formulas.

    OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE python -m benchmarks.speed.communication
    python -m benchmarks.speed.communication --ranks 2 --batch 32  # a rehearsal

Processes of one machine, connected by gloo, run the same small fit of random vectors or graphs.
The bytes of the collectives of the third step are counted on rank 0, by the shapes of what is
added up: two rows or one for each rank are statistics of batch normalisation or their gradients,
other matrices are embeddings, vectors are gradients of the weights. The formulas are those of the
page "What a step costs" of the guide; the last column says whether they give the same bytes.
"""

from __future__ import annotations

import multiprocessing
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
from skorch.callbacks import Callback

from benchmarks._results import Table, make_parser
from benchmarks.speed.growth import WIDTH, embedder, random_graphs, vectors
from skcontrast.encoders import GIN
from skcontrast.frameworks import CMC, InfoGraph, MoCo, SimCLR

KINDS = ("embeddings", "batch norm", "gradients", "other")
CASES = {
    "SimCLR": {"framework": SimCLR()},
    "MoCo": {"framework": MoCo()},
    "MoCo, symmetric": {"framework": MoCo(symmetric=True)},
    "CMC": {"framework": CMC()},
    "InfoGraph": {"framework": InfoGraph(), "encoder": GIN(width=32), "augmentation": None},
}
STEP = 2


class Counter(Callback):
    """Counts the bytes that are summed over the ranks in a step, by what they are.

    Attributes
    ----------
    counted_, expected_ : dict of str to int
        Bytes by kind: those of the step, and those of the formulas.
    """

    def __init__(self, name):
        self.name = name

    def on_train_begin(self, net, **kwargs):
        """Count what torch is asked to add up from here on."""
        self.now_, self.n_steps_, all_reduce = dict.fromkeys(KINDS, 0), 0, dist.all_reduce

        def counted(tensor, *args, **kwargs):
            self.now_[kind(tensor)] += tensor.numel() * tensor.element_size()
            return all_reduce(tensor, *args, **kwargs)

        dist.all_reduce = counted

    def on_batch_begin(self, net, **kwargs):
        """Begin a step."""
        self.now_ = dict.fromkeys(KINDS, 0)

    def on_batch_end(self, net, batch=None, **kwargs):
        """Keep the figures of one step."""
        if self.n_steps_ == STEP:
            self.counted_, self.expected_ = dict(self.now_), expected(self.name, net, batch)
        self.n_steps_ += 1


def kind(tensor):
    """Return what a tensor is that is added up over the ranks."""
    if tensor.ndim == 2:
        return "batch norm" if len(tensor) in (2, dist.get_world_size()) else "embeddings"
    return "gradients" if tensor.is_floating_point() else "other"


def expected(name, net, batch):
    """Return the bytes by kind of the formulas of a framework."""
    ranks, n = dist.get_world_size(), len(batch.x)
    own = [m for part in (net.module_, net.criterion_) for m in part.modules()]
    norms = [m.num_features for m in own if isinstance(m, torch.nn.BatchNorm1d) and m.training]
    parameters = net.learned_parameters()
    sent = {
        "SimCLR": 2 * 2 * n,
        "MoCo": (2 + 1) * n,
        "MoCo, symmetric": (2 + 1) * 2 * n,
        "CMC": 2 * 2 * 2 * n,
        "InfoGraph": 2 * (n + getattr(batch.x, "n_nodes", 0)),
    }
    return {
        "embeddings": 4 * WIDTH * sent[name],
        "batch norm": sum(4 * ranks * (2 * c + 1) + 4 * 2 * c for c in norms),
        "gradients": 4 * (sum(p.numel() for p in parameters) + len(parameters) + 2),
        "other": 2 * 8 * ranks if name == "InfoGraph" else 0,
    }


def run(rank, args, file, pipe):
    """Fit as one of the processes; rank 0 sends what it counted."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{file}", rank=rank, world_size=args.ranks)
    all_reduce, n = dist.all_reduce, (STEP + 1) * args.batch
    for name, choices in CASES.items():
        X = random_graphs(n, 10) if name == "InfoGraph" else vectors(n, 32)
        counter = Counter(name)
        embedder(args.batch, **choices, max_epochs=1, callbacks=[counter]).fit(X)
        dist.all_reduce = all_reduce
        if rank == 0:
            pipe.send((name, counter.counted_, counter.expected_))
    dist.destroy_process_group()


def count(args):
    """Yield frameworks and the bytes of a step by kind, counted and expected."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    with tempfile.TemporaryDirectory() as folder:
        given = args, str(Path(folder) / "store"), theirs
        processes = [context.Process(target=run, args=(k, *given)) for k in range(args.ranks)]
        for process in processes:
            process.start()
        try:
            for _ in CASES:
                while not ours.poll(1):
                    if any(process.exitcode for process in processes):
                        raise RuntimeError("A process failed.")
                yield ours.recv()
        finally:
            for process in processes:
                process.kill()
                process.join()


def main():
    """Count what each framework sends."""
    args = make_parser(__doc__, ranks=8, batch=256).parse_args()
    with Table("bytes of a step", args, labels=3) as table:
        for name, counted, formulas in count(args):
            row = {"framework": name, "ranks": args.ranks, "B": args.batch, **counted}
            wrong = ", ".join(f"{k}: {v}" for k, v in formulas.items() if counted[k] != v)
            table.add({**row, "as the formulas say": f"no, {wrong}" if wrong else "yes"})


if __name__ == "__main__":
    main()
