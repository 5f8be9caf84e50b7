"""Random calls of `contrastive_loss`, each made from its number, compared with `naive_loss`.

What may differ. Scores are rounded in the dtype of the computation. So the naive loss is computed
again from scores that are off by that much, and value and gradient must lie within a multiple of
what this changes; the changes are drawn, a few more where few of them do not reach. In float64,
where hardly anything is rounded, every case must agree as well. Where ranks or the floor of an
estimate are decided by rounding, they jump then, and the comparison becomes as loose as it has to
be. Equal scores are compared exactly: a "lattice" has scores that no rounding touches, so ties are
ties in both.
"""

from __future__ import annotations

import random
import warnings
from dataclasses import dataclass, replace
from typing import Any

import torch

from skcontrast import contrastive_loss, losses
from skcontrast.similarity import Cosine, DotProduct, VonMisesFisher
from tests.naive_losses import ESTIMATES, RANKED, naive_loss

# The most changes of the scores that the naive loss is computed with, and the multiple of their
# effect that is allowed.
_NOISES = 24
_MULTIPLE = 10.0


@dataclass
class LossCase:
    """The arguments of one call."""

    views: list[Any]
    loss: Any
    similarity: Any
    dtype: torch.dtype
    form: str
    queue: Any = None
    y: torch.Tensor | None = None
    queue_y: torch.Tensor | None = None
    sample_weight: torch.Tensor | None = None


def make_case(number: int) -> LossCase:
    """Return the case of a number."""
    rng = random.Random(f"loss {number}")
    torch_rng = torch.Generator().manual_seed(rng.randrange(2**31))
    forms = ["long", "short", "zeros", "alike", "mix"]
    form = rng.choice(["normal"] * 4 + ["lattice"] * 2 + forms)
    dtype = rng.choice([torch.float64] * 2 + [torch.float32] * 3 + [torch.float16, torch.bfloat16])
    if dtype == torch.float16 and form in ("long", "short"):
        form = "normal"  # float16 has no such numbers, or no such gradients
    similarity = _similarity(rng, form, dtype)
    n, n_views = rng.choice([2, 2, 3, 5, 8]), rng.choice([2, 2, 2, 3, 4])
    d = 4 ** rng.choice([1, 2]) if form == "lattice" else rng.choice([2, 3, 8, 33])
    n_queue = rng.choice([0, 0, 1, 2, 11, 40])
    shape = rng.choice(["contiguous", "transposed", "strided"])

    def draw(rows: int) -> Any:
        z = _shaped(_rows(rng, torch_rng, form, rows, d), shape).to(dtype)
        if not isinstance(similarity, VonMisesFisher):
            return z
        kappa = 10 ** (torch.rand(rows, generator=torch_rng, dtype=torch.float64) * 3 - 1)
        return z, kappa.to(dtype).clamp_max(similarity.kappa_max)

    weight = None
    if rng.random() < 0.3:
        weight = torch.tensor([rng.choice([0.0, 1.0, 0.3, 1e-30, 1e2]) for _ in range(n)])
    case = LossCase(
        views=[draw(n) for _ in range(n_views)],
        loss=_loss(rng, n_queue or n_views * (n - 1), similarity),
        similarity=similarity,
        dtype=dtype,
        form=form,
        queue=draw(n_queue) if n_queue else None,
        y=torch.tensor([rng.randrange(-1, 3) for _ in range(n)]),
        queue_y=torch.tensor([rng.randrange(-1, 3) for _ in range(n_queue)]) if n_queue else None,
        sample_weight=weight,
    )
    return case if case.loss.requires_y else replace(case, y=None, queue_y=None)


def _similarity(rng: random.Random, form: str, dtype: torch.dtype) -> Any:
    if form == "lattice":
        return Cosine(rng.choice([0.25, 1.0, 4.0]))
    if form == "normal" and rng.random() < 0.3:
        return rng.choice([DotProduct(), VonMisesFisher(rng.choice([0.5, 8.0, 100.0]))])
    temperatures = [1e-3, 0.01, 0.07, 0.5, 1.0, 30.0, 1e3]
    return Cosine(rng.choice(temperatures[2:] if dtype == torch.float16 else temperatures))


def _rows(rng, generator, form, n, d):
    z = torch.randn(n, d, generator=generator, dtype=torch.float64)
    if form == "lattice":
        return z.sign()
    some = torch.rand(n, generator=generator) < 0.4
    if form in ("zeros", "mix"):
        z[some] = 0.0
    if form in ("alike", "mix"):
        z[~some] = torch.ones(d, dtype=torch.float64)
    if form == "long":
        z[some] *= 1e15
    if form == "short":
        z[some] *= 1e-7
    return z


def _shaped(z: torch.Tensor, shape: str) -> torch.Tensor:
    if shape == "transposed":
        return z.T.contiguous().T
    return torch.stack([z, z], 2)[..., 0] if shape == "strided" else z


VALUES = {
    "tau_plus": [0.0, 1e-6, 0.1, 0.3, 0.9],
    "beta": [0.0, 0.5, 1.0, 3.0],
    "c": [0.0, 0.2, 1.0],
    "alpha": [0.5, 0.7, 0.95, 1.0],
    "outer": [0.5, 1.0],
    "inner": [0.0, 0.1, 0.5],
    "sharpness": [0.0, 1.0, 20.0],
    "floor": [0.0, 0.4, 1.0],
    "pull": [0.0, 0.3, 1.0],
    "detach_weights": [True, False],
    "form": ["inverted", "printed"],
}
# Near 1, the probability of a true negative, which is 1 − p, has few digits in float32.
OF_CLASS = {
    ("SoftSupCon", "tau_plus"): [1e-3, 0.1, 0.3],
    ("SoftSupCon", "sharpness"): [0.0, 4.0],
    ("NonparametricBCL", "beta"): [0.0, 0.5, 0.9],
    ("PositiveDebiased", "tau_plus"): [1e-3, 0.1, 0.3, 0.9],
    ("PositiveDebiased", "form"): ["mean", "printed"],
}
CLASSES = [getattr(losses, name) for name in (*ESTIMATES, "SupCon", "SINCERE", "SemiSupCon")]


def _loss(rng: random.Random, n_candidates: int, similarity: Any) -> Any:
    classes = CLASSES + [losses.PositiveDebiased] * 2 * (not isinstance(similarity, DotProduct))
    return _drawn(rng, rng.choice(classes), n_candidates)


def _drawn(rng: random.Random, cls: type, n_candidates: int) -> Any:
    names = cls._get_param_names() if cls is not losses.SemiSupCon else []
    values = {n: rng.choice(OF_CLASS.get((cls.__name__, n), VALUES.get(n, [None]))) for n in names}
    if cls is losses.PositiveDebiased:
        inner = rng.choice([None, *(c for c in CLASSES if c.__name__ in ESTIMATES)])
        values["negatives"] = inner and _drawn(rng, inner, n_candidates)
    if n_candidates == 1 and cls is losses.Ring:
        values["outer"] = 1.0
    return cls(**values)


def difference(case: LossCase) -> str | None:
    """Return how library and naive loss differ, or None if they agree."""
    in_float64 = replace(case, dtype=torch.float64)
    found = _difference(in_float64)
    if found is not None or case.dtype == torch.float64:
        return found if found is None else f"in float64: {found}"
    return _difference(case)


def _difference(case: LossCase) -> str | None:
    """Return how library and naive loss differ in the dtype of the case."""
    in_float64 = case.dtype == torch.float64
    eps = 1e-15 if in_float64 else 2.0**-24
    value, gradients = _evaluate(case, contrastive_loss, {}, case.dtype)
    exact, expected = _evaluate(case, naive_loss, {"noise": lambda s: s}, torch.float64)
    is_ranked = (
        type(case.loss).__name__ in RANKED
        or type(getattr(case.loss, "negatives", None)).__name__ in RANKED
    )
    rounding = {torch.float16: 1e-3, torch.bfloat16: 8e-3}.get(case.dtype, 0.0)
    # The highest and the lowest score there are, which some losses use, are rounded as well.
    bound = 1 / getattr(case.similarity, "temperature", 1.0)
    rooms = [(1e-11 if in_float64 else 1e-5) * (1 + abs(exact)) + 16 * eps * bound]
    # A gradient is a sum of terms of this size, which may cancel.
    most = 1.0 if case.sample_weight is None else max(1.0, float(case.sample_weight.max()))
    size = most * max(1.0, bound)
    rooms += [
        (1e-9 if in_float64 else 1e-5) * (float(g.abs().max()) + size)
        + (0.0 if in_float64 else rounding * (float(g.abs().max()) + 1))
        for g in expected
    ]
    n_noises = 0 if case.form == "lattice" else _NOISES
    for k in range(n_noises + 1):
        found = _beyond(rooms, value, gradients, exact, expected)
        if found is None or k == n_noises:
            return found
        noise = _noise(case, k, (64 if is_ranked else 16) * eps)
        other, moved = _evaluate(case, naive_loss, {"noise": noise}, torch.float64)
        effects = [abs(other - exact)]
        effects += [float((m - g).abs().max()) for m, g in zip(moved, expected, strict=True)]
        rooms = [room + _MULTIPLE * effect for room, effect in zip(rooms, effects, strict=True)]
    return None


def _beyond(rooms, value, gradients, exact, expected):
    """Return what differs by more than its room, or None."""
    room, *others = rooms
    if not abs(value - exact) <= room:
        return f"value {value!r}, naive {exact!r}, room {room:.3g}"
    for k, (g, e, room) in enumerate(zip(gradients, expected, others, strict=True)):
        off = float((g - e).abs().max())
        if not off <= room:
            return f"gradient {k} off by {off:.3g} of {float(e.abs().max()):.3g}, room {room:.3g}"
    return None


def _noise(case: LossCase, seed: int, relative: float) -> Any:
    """Return a function that changes scores by some roundings of the largest score.

    The first rounds them coarsely: scores that only rounding told apart are equal then.
    """
    generator = torch.Generator().manual_seed(seed)

    def change(s: torch.Tensor) -> torch.Tensor:
        shifts = torch.rand(s.shape, generator=generator, dtype=torch.float64) * 2 - 1
        temperature = getattr(case.similarity, "temperature", 1.0)
        # Exponentials are rounded too, as if scores were off by a rounding of 1.
        size = max(float(s.detach().abs().max()), 1 / temperature, 1.0)
        if isinstance(case.similarity, VonMisesFisher):
            size = max(size, (1e3 if relative > 1e-12 else 1e5) / temperature)
        step = relative * size
        rounded = (s.detach() / step).round() * step
        return s + (rounded - s.detach() if seed == 0 else step * shifts)

    return change


def _evaluate(case, function, further, dtype):
    """Return value and gradients of a loss; the gradient of a row is times its length.

    Directions do not depend on lengths, so a gradient is the larger the shorter its row.
    """
    leaves: list[torch.Tensor] = []

    def leaf(z: Any) -> Any:
        if isinstance(z, tuple):
            return tuple(map(leaf, z))
        leaves.append(z.detach().to(dtype).requires_grad_())
        if z.is_contiguous() or z.dtype != dtype:
            return leaves[-1]
        return leaves[-1].T.contiguous().T if z.ndim == 2 else leaves[-1]

    views = [leaf(view) for view in case.views]
    queue = None if case.queue is None else leaf(case.queue)
    weight = case.sample_weight
    kwargs: dict[str, Any] = {
        "loss": case.loss,
        "similarity": case.similarity,
        "queue": queue,
        "y": case.y,
        "queue_y": case.queue_y,
        "sample_weight": weight if weight is None else weight.to(torch.float64),
        **further,
    }
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="PositiveDebiased: with tau_plus")
        value = function(views, **kwargs) if further else function(*views, **kwargs)
    grads = torch.autograd.grad(value, leaves, materialize_grads=True, allow_unused=True)
    scaled = []
    for z, g in zip(leaves, grads, strict=True):
        length = z.detach().double().abs().reshape(len(z), -1).norm(dim=1)
        scale = length if isinstance(case.similarity, Cosine) or z.ndim == 1 else length * 0 + 1
        scaled.append(g.double() * (scale if z.ndim == 1 else scale[:, None]))
    return value.item(), scaled
