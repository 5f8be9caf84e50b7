"""Images and vectors augmented per second, next to other libraries.

    OMP_WAIT_POLICY=PASSIVE python -m benchmarks.speed.augmentation

Images: the recipe of SimCLR (crop, flip, colour jitter, grayscale; at 96×96 also blur), every
image with its own random numbers, from a batch of uint8 to floats in [0, 1]. kornia works on the
batch; its two ways to crop and its two colour jitters are separate rows. Vectors: the corruption
of SCARF, next to the same in numpy. All take turns within one process; rates are medians over the
rounds, and so are the ratios to the first row.
"""

from __future__ import annotations

import functools
from statistics import median

import numpy as np
import torch
from torch import nn

from benchmarks._results import Table, make_parser
from benchmarks.speed._bench import in_turn, ratios
from skcontrast.augmentation import MarginalCorruption, SimCLRAugmentation, compose

CROP_SCALE = (0.2, 1.0)
JITTER = (0.4, 0.4, 0.4, 0.1)
BLUR = {"sigma": (0.1, 2.0), "p": 0.5}


def simclr_skcontrast(side, device="cpu"):
    """Return a function from a batch of images to one view of each, by SimCLRAugmentation."""
    views = compose([SimCLRAugmentation()], (3, side, side))
    generator = torch.Generator(device).manual_seed(0)
    return lambda images: views(images, generator)


def simclr_kornia(side, cropping="slice", jitter="ColorJitter"):
    """Return the same by kornia, or None without it."""
    try:
        import kornia.augmentation as K
    except ImportError:
        return None
    chain = [
        K.RandomResizedCrop((side, side), scale=CROP_SCALE, cropping_mode=cropping),
        K.RandomHorizontalFlip(0.5),
        getattr(K, jitter)(*JITTER, p=0.8),
        K.RandomGrayscale(p=0.2),
    ]
    if side >= 64:
        width = side // 10 // 2 * 2 + 1
        chain.append(K.RandomGaussianBlur((width, width), **BLUR))
    recipe = nn.Sequential(*chain)
    return lambda images: recipe(images.float() / 255)


def corruption(X, samples, rate):
    """Return a function that corrupts the batch `samples` by MarginalCorruption."""
    fitted = MarginalCorruption(rate).fit(X).prepared(torch.from_numpy)
    return functools.partial(
        fitted.augment, torch.from_numpy(samples), torch.Generator().manual_seed(0)
    )


def corruption_numpy(X, samples, rate):
    """Return the same in plain numpy."""
    rng = np.random.default_rng(0)
    n, d = samples.shape
    count = round(rate * d)

    def corrupted():
        columns = rng.random((n, d), dtype=np.float32).argpartition(count, axis=1)[:, :count]
        rows = rng.integers(len(X), size=(n, count))
        views = samples.copy()
        np.put_along_axis(views, columns, X[rows, columns], axis=1)
        return views

    return corrupted


def compare(table, title, contestants, count, rounds):
    """Add how many samples per second each contestant makes."""
    present = {name: function for name, function in contestants.items() if function is not None}
    seconds = in_turn(present, rounds)
    relative = ratios(seconds, to=next(iter(present)))
    for name in contestants:
        if name not in present:
            print(f"{name} cannot be imported: skipped")
            continue
        rate = round(count / median(seconds[name]))
        table.add({"data": title, "by": name, "per second": rate, "relative": 1 / relative[name]})


def compare_images(table, rounds):
    """Add the rates of SimCLR's recipe."""
    generator = torch.Generator().manual_seed(0)
    for n, side in ((256, 32), (64, 96)):
        shape = n, 3, side, side
        images = torch.randint(256, shape, dtype=torch.uint8, generator=generator)
        recipes = {
            "skcontrast SimCLRAugmentation": simclr_skcontrast(side),
            "kornia": simclr_kornia(side),
            "kornia, crops by resampling": simclr_kornia(side, "resample"),
            "kornia, by resampling, ColorJiggle": simclr_kornia(side, "resample", "ColorJiggle"),
        }
        contestants = {
            name: recipe and functools.partial(recipe, images) for name, recipe in recipes.items()
        }
        compare(table, f"{n} images {side}×{side}, uint8", contestants, n, rounds)


def compare_vectors(table, rounds):
    """Add the rates of corruption."""
    rng = np.random.default_rng(0)
    for d in (64, 784):
        X = rng.normal(size=(10_000, d)).astype(np.float32)
        contestants = {
            "skcontrast MarginalCorruption": corruption(X, X[:256], 0.6),
            "numpy": corruption_numpy(X, X[:256], 0.6),
        }
        compare(table, f"256 vectors of {d} features", contestants, 256, 10 * rounds)


def main():
    """Run the comparisons."""
    args = make_parser(__doc__, rounds=30, threads=1).parse_args()
    torch.set_num_threads(args.threads)
    with Table("rate", args, packages=["kornia"], ratios=["relative"], labels=2) as table:
        compare_images(table, args.rounds)
        compare_vectors(table, args.rounds)


if __name__ == "__main__":
    main()
