"""What fit costs next to a hand-written loop, and transform next to the bare encoder call.

    OMP_WAIT_POLICY=PASSIVE python -m benchmarks.speed.overhead
    OMP_WAIT_POLICY=PASSIVE python -m benchmarks.speed.overhead --rows

The hand-written loop uses the same encoder, optimizer settings, augmentation and number of steps,
and NT-Xent by ``F.cross_entropy``. "The same by hand" is in float32 on both sides, images in
channels-last memory format; "a usual loop" has the default format, and fit its default precision,
bfloat16 for images where the processor has it. Both sides are timed in turn within one process;
the figure is the median of the ratios, pair by pair. The bare encoder call gets tensors that are
scaled already, in portions as large as `transform` uses; "array to array" starts from X as
`transform` does, with the cast to float32 that a script would write.

`--rows` is for serving: milliseconds of `transform` for one row, 1,000 and many, next to the bare
encoder on the same float32 rows as one tensor, in portions as large as `transform` uses. For fewer
than 16 vectors `transform` computes 16, so that a vector has the same bits in a batch of any size.
The table `single` is of one sample: medians, and the median of the differences, for which the
target is .6 ms for `transform`, and 3 ms for `predict_proba` as a whole.
"""

from __future__ import annotations

from functools import partial
from statistics import median

import numpy as np
import torch
from sklearn.datasets import load_digits

from benchmarks._results import Table, make_parser
from benchmarks.speed._bench import in_turn, nt_xent, timed, with_head
from skcontrast import ContrastiveClassifier, ContrastiveEmbedder
from skcontrast.augmentation import GaussianNoise, SimCLRAugmentation, compose
from skcontrast.encoders import MLP, ConvNet

BATCH, EPOCHS = 256, 5
RATIOS = (
    "fit / the same by hand",
    "default fit / a usual loop",
    "transform / on tensors",
    "transform / array to array",
)


def hand_written_fit(X, encoder, augmentation, channels_last=False):
    """Train as a script would: tensors in memory, one loop, no library but torch."""
    images = torch.channels_last if channels_last and X.ndim == 4 else torch.contiguous_format
    if X.dtype == np.uint8:
        data = torch.from_numpy(X)
        mean, std = X.mean((0, 2, 3)) / 255, X.std((0, 2, 3)) / 255
        mean, std = (torch.tensor(v, dtype=torch.float32)[:, None, None] for v in (mean, std))
    else:
        data = torch.from_numpy(((X - X.mean(0)) / X.std(0)).astype(np.float32))
        mean, std = 0.0, 1.0
    draw = compose([augmentation.fit(data.numpy())], data.shape[1:])
    module, head = with_head(encoder, tuple(data.shape[1:]))
    module.to(memory_format=images)
    parameters = [*module.parameters(), *head.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=1e-3, weight_decay=1e-6)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    generator = torch.Generator().manual_seed(0)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(data)).split(BATCH):
            if len(rows) < BATCH:
                continue
            batch = data[rows]
            views = torch.cat([draw(batch, generator), draw(batch, generator)])
            views = ((views - mean) / std).contiguous(memory_format=images)
            z1, z2 = head(module(views)).chunk(2)
            loss = nt_xent(z1, z2)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss.item()
        schedule.step()


def compare(ours, theirs, repeats):
    """Return the median ratio of two calls, timed in turn, and the median seconds of ours."""
    ours(), theirs()
    pairs = []
    for k in range(repeats):
        first, second = (ours, theirs) if k % 2 else (theirs, ours)
        a, b = timed(first), timed(second)
        pairs.append((a, b) if k % 2 else (b, a))
    return median(a / b for a, b in pairs), median(a for a, _ in pairs)


def transforms(embedder, X):
    """Return `transform`, the encoder call on prepared tensors, and the call from the array."""
    module, prepared = embedder.encoder_, []
    device = next(module.parameters()).device
    hook = module.register_forward_pre_hook(lambda _, arguments: prepared.append(arguments[0]))
    embedder.transform(X)
    hook.remove()
    batch = len(prepared[0])

    @torch.inference_mode()
    def bare():
        return torch.cat([module(rows) for rows in prepared]).cpu().numpy()

    prepared[-1] = prepared[-1][: len(X) - batch * (len(prepared) - 1)]

    @torch.inference_mode()
    def from_array():
        tensor = torch.from_numpy(X)
        tensor = tensor if X.dtype == np.uint8 else tensor.float()
        return torch.cat([module(rows.to(device)).cpu() for rows in tensor.split(batch)]).numpy()

    return lambda: embedder.transform(X), bare, from_array


def overhead(X, encoder, augmentation, repeats):
    """Return the ratios of one kind of data by name, and the milliseconds of `fit`."""
    embedder = ContrastiveEmbedder(
        encoder=encoder,
        augmentation=augmentation,
        max_epochs=EPOCHS,
        batch_size=BATCH,
        random_state=0,
        device="cpu",
    )
    same, seconds = compare(
        lambda: embedder.set_params(precision="float32").fit(X),
        lambda: hand_written_fit(X, encoder, augmentation, True),
        repeats,
    )
    usual, _ = compare(
        lambda: embedder.set_params(precision="auto").fit(X),
        lambda: hand_written_fit(X, encoder, augmentation),
        repeats,
    )
    transform, bare, from_array = transforms(embedder.fit(X), X)
    return {
        RATIOS[0]: same,
        RATIOS[1]: usual,
        RATIOS[2]: compare(transform, bare, 15 * repeats)[0],
        RATIOS[3]: compare(transform, from_array, 15 * repeats)[0],
        "fit in float32, ms": seconds * 1e3,
    }


def add_rows(table, args):
    """Add the milliseconds and ratios of `transform` by number of rows."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(100 * args.size, 64)).astype(np.float32)
    images = rng.integers(0, 256, (args.size, 1, 28, 28), dtype=np.uint8)
    for name, X in {"vectors of 64 features": vectors, "images 28 × 28": images}.items():
        embedder = ContrastiveEmbedder(max_epochs=1, random_state=0, device="cpu").fit(X[:1000])
        for n in (1, 1000, len(X)):
            transform, bare, _ = transforms(embedder, X[:n])
            ratio, seconds = compare(transform, bare, max(3, min(300, 100_000 // n)))
            cells = {"data": name, "rows": n, "transform, ms": seconds * 1e3}
            table.add({**cells, "µs per row": seconds / n * 1e6, "/ bare encoder": ratio})


def add_single(table, repeats):
    """Add the milliseconds of `transform` and `predict_proba` for one sample."""
    rng = np.random.default_rng(0)
    digits, classes = load_digits(return_X_y=True)
    samples = {
        "a vector of 64 features": rng.standard_normal((200, 64), dtype=np.float32),
        "a series of 3 × 64 steps": rng.standard_normal((200, 3, 64), dtype=np.float32),
        "an image of 3 × 32 × 32": rng.integers(0, 256, (200, 3, 32, 32), dtype=np.uint8),
        "a digit of 8 × 8": digits[:200].reshape(-1, 8, 8),
    }
    for name, X in samples.items():
        embedder = ContrastiveEmbedder(max_epochs=1, random_state=0, device="cpu").fit(X)
        ours, bare, _ = transforms(embedder, X[:1])
        calls = {f"transform, {name}": ours}
        if "digit" in name:
            classifier = ContrastiveClassifier(embedder, random_state=0).fit(X, classes[:200])
            calls[f"predict_proba, {name}"] = partial(classifier.predict_proba, X[:1])
        seconds = in_turn({**calls, "bare": bare}, 50 * repeats)
        for call in calls:
            times = np.array([seconds[call], seconds["bare"]]) * 1e3
            row = {"call": call, "ms": median(times[0]), "bare encoder, ms": median(times[1])}
            table.add({**row, "difference, ms": median(times[0] - times[1])})


def main():
    """Run the comparisons."""
    options = {"repeats": 9, "rows": False, "size": 10_000, "threads": 1}
    args = make_parser(__doc__, **options).parse_args()
    torch.set_num_threads(args.threads)
    on = "" if args.threads == 1 else f", {args.threads} threads"
    if args.rows:
        with Table("single" + on, args, ratios=["difference, ms"], digits=2) as table:
            add_single(table, args.repeats)
        with Table("rows" + on, args, ratios=["/ bare encoder"], labels=2, digits=2) as table:
            add_rows(table, args)
        return
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(args.size // BATCH * BATCH + BATCH, 64))
    images = rng.integers(0, 256, (len(vectors) // 10, 3, 32, 32), dtype=np.uint8)
    single = vectors.astype(np.float32)
    cases = {
        "vectors 10,240 × 64, float64, MLP": (vectors, MLP(), GaussianNoise()),
        "vectors 10,240 × 64, float32, MLP": (single, MLP(), GaussianNoise()),
        "images 1,024 × 3 × 32 × 32, uint8, ConvNet": (images, ConvNet(), SimCLRAugmentation()),
    }
    with Table("ratios" + on, args, packages=["skorch"], ratios=RATIOS, digits=2) as table:
        for name, case in cases.items():
            table.add({"data": name, **overhead(*case, args.repeats)})


if __name__ == "__main__":
    main()
