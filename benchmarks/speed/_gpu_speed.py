"""Pieces of gpu.py: speed and memory of losses, steps, epochs and `transform`."""

from __future__ import annotations

from statistics import median

import numpy as np
import torch

from benchmarks.speed._bench import peak_memory, stopped, timed
from benchmarks.speed.loss_engine import OURS, PEERS, PLAIN, make_problem, make_step
from benchmarks.speed.overhead import transforms
from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import SimCLRAugmentation
from skcontrast.encoders import MLP, ResNet

WIDTH = 64  # of the projection


def seconds_of(function, rounds):
    """Return the median of the seconds of some calls, after two to warm up."""
    for _ in range(2):
        function()
    return median(timed(function) for _ in range(rounds))


# The loss


def measured_loss(name, batch, campaign):
    """Return milliseconds and memory of a loss, forward and backward."""
    step = make_step(name, *(t.to(campaign.device) for t in make_problem(batch, 128)))
    if step is None:
        return {"note": "not installed, or too large"}
    ms = 1e3 * seconds_of(step, 3 if batch > 4096 else 10)
    found = {"ms": ms, "MiB": round(peak_memory(step, campaign.device))}
    rows = campaign.rows("loss")
    plain = [row.get("ms") for row in rows if row["B"] == batch and row["loss"] == PLAIN]
    return {**found, "of plain": ms / plain[0] if plain and plain[0] else None}


def loss(campaign):
    """Losses, forward and backward, next to plain NT-Xent and those of other libraries."""
    with campaign.table("loss", labels=2) as table:
        for batch in campaign.sized((256, 1024, 4096, 8192, 16384, 32768), (32, 64)):
            for name in (PLAIN, *OURS, *PEERS):
                table.row({"B": batch, "loss": name}, measured_loss, name, batch, campaign)


# A step of ResNet-18


def resnet_embedder(campaign, batch, **kwargs):
    """Return an embedder of images of CIFAR-10's shape with ResNet-18."""
    return ContrastiveEmbedder(
        encoder=ResNet(width=campaign.sized(64, 4)),
        augmentation=SimCLRAugmentation(),
        projection_dim=WIDTH,
        batch_size=batch,
        device=campaign.device,
        random_state=0,
        **kwargs,
    )


def random_images(n):
    """Return random images of CIFAR-10's shape."""
    return np.random.default_rng(0).integers(0, 256, (n, 3, 32, 32), dtype=np.uint8)


def network_step(fit):
    """Return a function that trains the network of a fit alone, on views drawn once."""
    context, optimizer = fit.context, fit.net.optimizer_
    x = next(iter(fit.net.sampler_)).x
    views = torch.cat([fit.net.draw(x, context.generator) for _ in range(context.n_views)])
    fit.net.module_.train()
    gradient = torch.randn_like(context.network(views)) * 1e-3

    def step():
        optimizer.zero_grad()
        context.network(views).backward(gradient)
        optimizer.step()

    return step


def measured_step(batch, campaign):
    """Return what a step of ResNet-18 costs, in all and by its parts."""
    X = random_images(campaign.sized(max(8192, 2 * batch), 2 * batch))
    fit = stopped(resnet_embedder(campaign, batch), X)
    rounds = campaign.sized(10, 2)
    x, generator = next(fit.batches).x, fit.context.generator
    step = seconds_of(fit.step, rounds)
    mib = peak_memory(fit.step, campaign.device)
    network = seconds_of(network_step(fit), rounds)
    views = seconds_of(lambda: [fit.net.draw(x, generator) for _ in range(2)], rounds)
    problem = (t.to(campaign.device) for t in make_problem(batch, WIDTH))
    of_loss = seconds_of(make_step("InfoNCE", *problem), rounds)
    return {
        "step, ms": 1e3 * step,
        "network, ms": 1e3 * network,
        "views, ms": 1e3 * views,
        "loss, ms": 1e3 * of_loss,
        "loss, share": of_loss / step,
        "images/s": batch / step,
        "of the encoder-only rate": network / step,
        "MiB": round(mib),
    }


def step(campaign):
    """A step of SimCLR with ResNet-18, its parts, and the rate of the encoder alone."""
    with campaign.table("step") as table:
        for batch in campaign.sized((256, 512, 1024, 4096), (16,)):
            needs = campaign.sized(20, 0)
            table.row({"B": batch}, measured_step, batch, campaign, needs=needs)


def measured_epoch(batch, precision, campaign):
    """Return seconds and rate of an epoch, the median of those after the first."""
    X = random_images(campaign.sized(50000, 64))
    embedder = resnet_embedder(campaign, batch, precision=precision, max_epochs=3)
    seconds = median(embedder.fit(X).history_[1:, "dur"])
    return {"s": seconds, "images/s": len(X) / seconds}


def epoch(campaign):
    """Images per second of whole epochs of `fit`, all of it included."""
    with campaign.table("epoch", labels=2) as table:
        for batch, precision in campaign.sized(
            ((512, "auto"), (256, "auto"), (1024, "auto"), (512, "float32")), ((16, "auto"),)
        ):
            labels = {"B": batch, "precision": precision}
            table.row(labels, measured_epoch, batch, precision, campaign)


# transform


def transform_cases(campaign):
    """Yield names, fitted embedders and samples."""
    n = campaign.sized(1_000_000, 512)
    vectors = np.random.default_rng(0).normal(size=(n, 64)).astype(np.float32)
    few = ContrastiveEmbedder(
        encoder=MLP(), batch_size=256, max_epochs=1, device=campaign.device, random_state=0
    ).fit(vectors[:512])
    for rows in campaign.sized((1, 1000, 1_000_000), (1, 100)):
        yield "64 columns, MLP", few, vectors[:rows]
    images = random_images(campaign.sized(50000, 64))
    deep = resnet_embedder(campaign, 32, max_epochs=1).fit(images[:512])
    for rows in campaign.sized((1, 1000, 50000), (1, 64)):
        yield "images, ResNet-18", deep, images[:rows]


def measured_transform(embedder, X, campaign):
    """Return what `transform` costs, and the encoder on tensors and from array to array."""
    ours, bare, from_array = transforms(embedder, X)
    rounds = campaign.sized(20 if len(X) < 10000 else 3, 2)
    seconds = [seconds_of(call, rounds) for call in (ours, bare, from_array)]
    return {
        "ms": 1e3 * seconds[0],
        "rows/s": len(X) / seconds[0],
        "on tensors, ms": 1e3 * seconds[1],
        "array to array, ms": 1e3 * seconds[2],
        "MiB": round(peak_memory(ours, campaign.device)),
    }


def transform(campaign):
    """`transform` next to the bare encoder."""
    with campaign.table("transform", labels=2) as table:
        for name, embedder, X in transform_cases(campaign):
            labels = {"data": name, "rows": len(X)}
            table.row(labels, measured_transform, embedder, X, campaign)
