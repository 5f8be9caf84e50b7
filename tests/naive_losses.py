"""The contrastive losses as their papers define them: in float64, anchor by anchor, by autograd.

Nothing of the package is imported, and the only such reference: tests and benchmarks use it.
Scores are logarithms of large numbers, so everything stays in logarithms. A loss that has no
formula here is read by its own `coefficients`, `hardness`, `rank_weights` and `class_weights`; one
that overrides `losses` needs a formula.
"""

import math
from functools import cache

import torch
from scipy.optimize import brentq
from scipy.special import ive
from torch.nn.functional import softplus

# Names of the losses whose weights depend on ranks, and of the others with a formula.
RANKED = ("Ring", "BCL", "NonparametricBCL", "SoftRing", "SoftSupCon")
ESTIMATES = (*RANKED, "InfoNCE", "DCL", "HCL", "PUCL", "Supervised")
OTHERS = ("SupCon", "SemiSupCon", "SINCERE", "PositiveDebiased")


class _LogPartition(torch.autograd.Function):
    """h(κ) = log I_v(κ) − v log κ + v log 2 + log Γ(v + 1), with h′ = I_{v+1}/I_v."""

    @staticmethod
    def forward(ctx, kappa, d):
        v, k = d / 2 - 1, kappa.numpy()
        bessel = ive(v, k)
        ctx.save_for_backward(torch.as_tensor(ive(v + 1, k) / bessel))
        log_bessel = torch.as_tensor(bessel).log() + kappa
        return log_bessel - v * kappa.log() + v * math.log(2) + math.lgamma(v + 1)

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0], None


def unit(z):
    """Return rows at length 1; a row that is shorter than 1e-8 has no direction."""
    length = z.norm(dim=-1, keepdim=True)
    return torch.where(length > 1e-8, z / torch.where(length > 1e-8, length, 1), 0)


def scores(first, second, similarity):
    """Return the scores of all pairs of rows."""
    name, p = type(similarity).__name__, similarity.get_params()
    if name == "Cosine":
        return unit(first) @ unit(second).T / p["temperature"]
    if name == "DotProduct":
        return first @ second.T
    (mu, kappa), (nu, lam) = first, second
    d = mu.shape[1]
    a, b = unit(mu) * kappa[:, None], unit(nu) * lam[:, None]
    both = (a[:, None] + b).square().sum(-1).clamp_min(1e-12).sqrt()
    h = _LogPartition.apply
    return (h(both, d) - h(kappa, d)[:, None] - h(lam, d)) / p["temperature"]


def bounds(first, similarity):
    """Return the lowest score there is, and the score of each anchor with itself."""
    name, p = type(similarity).__name__, similarity.get_params()
    if name == "Cosine":
        most = 1 / p["temperature"]
        return -most, torch.full((len(first),), most, dtype=torch.float64)
    if name == "DotProduct":
        return -math.inf, torch.full((len(first),), math.inf, dtype=torch.float64)
    most = torch.tensor(float(p["kappa_max"]), dtype=torch.float64)
    lowest = -2 * _LogPartition.apply(most, first[0].shape[1]) / p["temperature"]
    return float(lowest), scores(first, first, similarity).diagonal()


def log_mean(logits):
    return logits.logsumexp(0) - math.log(len(logits))


def cdf_inverted(cdf, alpha, tau):
    """Return Φ from Φ_UN."""
    a = (1 - 2 * alpha) * (1 - 2 * tau)
    b = 1 - a
    phi = (2 * cdf / (b + (b * b + 4 * a * cdf).clamp_min(0).sqrt())).clamp_max(1)
    return torch.where(cdf == 1, 1, phi)


def ratio(density, total):
    return torch.where(total > 0, density / total, 1.0)


def false_negative(u, sharpness, tau, floor=0.0):
    """Return p(FN | u), whose integral over u is τ⁺."""
    least = floor * tau
    rest = (tau - least) / (1 - least)
    if rest == 0 or sharpness == 0:
        return torch.full_like(u, tau)
    m = middle(sharpness, rest)
    return least + (1 - least) * torch.sigmoid(sharpness * (torch.logit(u) - m))


@cache
def middle(sharpness, mean):
    """Return the m with which the mean of σ(k (logit u − m)) over u is as wanted."""
    grid = torch.logit((torch.arange(2**14, dtype=torch.float64) + 0.5) / 2**14)

    def excess(m):
        return float(torch.sigmoid(sharpness * (grid - m)).mean()) - mean

    far = 1000 / min(sharpness, 1.0)
    return brentq(excess, -far, far, xtol=1e-15)


def posterior(loss, ranks, n):
    """Return p(TN | rank), or ω of NonparametricBCL, or 1 in the ring, without gradient."""
    name, p = type(loss).__name__, loss.get_params()
    if name == "Ring":
        within = math.floor(p["outer"] * n * (1 + 1e-12))
        dropped = math.floor(p["inner"] * within * (1 + 1e-12))
        return ((ranks > n - within) & (ranks <= n - dropped)).double()
    tau = p["tau_plus"]
    if name in ("SoftRing", "SoftSupCon"):
        u = (ranks - 0.5) / n
        return 1 - false_negative(u, p["sharpness"], tau, p.get("floor", 0.0))
    alpha, phi = p["alpha"], ranks / n
    if p["form"] != "printed":
        phi = cdf_inverted(phi, alpha, tau)
    first, second = 2 * (1 - phi), 2 * phi
    true = alpha * first + (1 - alpha) * second
    false = (1 - alpha) * first + alpha * second
    unlabeled = (1 - tau) * true + tau * false
    if name == "BCL":
        return ratio((1 - tau) * true, unlabeled)
    beta = p["beta"]
    wanted = (1 - beta) * alpha * first + beta * (1 - alpha) * second
    return ratio(wanted / ((1 - beta) * alpha + beta * (1 - alpha)), unlabeled)


def by_rank(s, table):
    """Return the weights of candidates by those at ranks 1 … N; equal scores share their mean."""
    weights = torch.empty_like(s)
    weights[s.sort(stable=True).indices] = table
    equal = (s[None] == s[:, None]).double()
    return equal @ weights / equal.sum(1)


def coefficients(loss):
    """Return a and b of Ê⁻ = a · mean over candidates − b · mean over positives."""
    name, p = type(loss).__name__, loss.get_params()
    if name not in ESTIMATES:
        return loss.coefficients()
    if name not in ("DCL", "HCL", "PUCL"):
        return 1.0, 0.0
    tau, c = p["tau_plus"], p.get("c", 0.0)
    return (1 - tau * c) / (1 - tau), tau * (1 - c) / (1 - tau)


def log_weights(loss, s, same):
    """Return the logarithms of the candidates' weights."""
    name, p, ranks = type(loss).__name__, loss.get_params(), torch.arange(1.0, len(s) + 1).double()
    if name not in ESTIMATES:
        return log_weights_by_hooks(loss, s, same, ranks)
    log_c = torch.zeros_like(s)
    if name in RANKED:
        log_c = by_rank(s.detach(), posterior(loss, ranks, len(s))).log()
    elif name == "Supervised":
        log_c = (~same).double().log()
    beta = 0.0 if name == "NonparametricBCL" else p.get("beta", 0.0)
    log_w = log_c + beta * (s.detach() if p.get("detach_weights") else s)
    if name in ("Ring", "NonparametricBCL"):
        return log_w
    return log_w - log_mean(log_w)


def log_weights_by_hooks(loss, s, same, ranks):
    """Return the logarithms of the weights as a loss without a formula here describes them."""
    factors = torch.ones_like(s)
    if loss.overrides("rank_weights"):
        factors = by_rank(s.detach(), loss.rank_weights(ranks, len(s)))
    if loss.overrides("class_weights"):
        factors = factors * loss.class_weights(same[None])[0]
    log_w = factors.log() + loss.hardness() * (s.detach() if loss.detach_weights else s)
    return log_w - log_mean(log_w) if loss.sum_of_weights == "N" else log_w


def log_estimate(loss, s, pos, same, lowest):
    """Return log Ê⁻ of one anchor."""
    log_w, (a, b) = log_weights(loss, s, same), coefficients(loss)
    if not bool((log_w > -math.inf).any()):  # no candidate counts
        return s.new_tensor(lowest)
    mean = log_mean(log_w + s)
    top = torch.maximum(mean, pos.max()).detach()
    estimate = a * (mean - top).exp() - b * (pos - top).exp().mean()
    if b == 0:
        return mean + math.log(a)
    return estimate.log() + top if estimate > math.exp(lowest - top) else s.new_tensor(lowest)


def positive_debiased(loss, s, pos, same, lowest, highest):
    """Return the loss of one anchor, L = −log (P − τ⁻g) / (P − τ⁻g + Nτ⁺E)."""
    p, n = loss.get_params(deep=False), len(s)
    tau, g = p["tau_plus"], log_mean(s)
    e = g if p["negatives"] is None else log_estimate(p["negatives"], s, pos, same, lowest)
    top = torch.maximum(g, pos.max()).detach()
    top = torch.maximum(top, highest).detach()
    mean = (n * (g - top).exp() + (pos - top).exp() + (highest - top).exp()) / (n + 2)
    numerator = mean - (1 - tau) * (g - top).exp()
    floor = math.log(tau) + lowest
    is_above = numerator > math.exp(floor - top)
    log_numerator = torch.where(is_above, torch.where(is_above, numerator, 1).log() + top, floor)
    if p["form"] == "printed":
        log_numerator = torch.logaddexp(pos, g + math.log(tau))
    excess = math.log(n * tau) + e - log_numerator
    return torch.logaddexp(excess, torch.zeros_like(excess)).mean()


def jensen_shannon_loss(loss, s, pos, same, lowest):
    """Return softplus(−s⁺) + Ê⁻[softplus] of one anchor, the arguments as in `anchor_loss`."""
    (a, b), weights = coefficients(loss), log_weights(loss, s, same).exp()
    if type(loss).__name__ == "Ring":  # without N, its weights have mean 1, too
        weights = weights / weights.mean()
    negative = a * (weights * softplus(s)).mean() - b * softplus(pos).mean()
    return softplus(-pos).mean() + negative.clamp_min(math.log1p(math.exp(lowest)))


def anchor_loss(loss, s, pos, same, lowest, highest=None):
    """Return the loss of one anchor.

    Parameters
    ----------
    s, pos : Tensor of shapes (N,) and (M,)
        Scores of its candidates and of its positives.
    same : Tensor of shape (N,), dtype bool
        Which candidates are known to be of its class.
    lowest, highest : float, Tensor of shape ()
        The lowest score there is, and the score of the anchor with itself, which only
        PositiveDebiased reads.
    """
    name, p = type(loss).__name__, loss.get_params(deep=False)
    if name not in (*ESTIMATES, *OTHERS) and loss.overrides("losses"):
        raise NotImplementedError(f"Write the formula of {name} in tests/naive_losses.py.")
    if name in ("SupCon", "SemiSupCon"):
        everyone = torch.cat([s, pos])
        return everyone.logsumexp(0) - torch.cat([s[same], pos]).mean()
    if name == "SINCERE":
        pulled = torch.cat([s[same], pos])
        excess = s[~same].logsumexp(0) - pulled  # softplus drops what is below e^-20
        return torch.logaddexp(excess, torch.zeros_like(excess)).mean()
    if name == "PositiveDebiased":
        return positive_debiased(loss, s, pos, same, lowest, highest)
    excess = math.log(len(s)) + log_estimate(loss, s, pos, same, lowest) - pos
    value = torch.logaddexp(excess, torch.zeros_like(excess)).mean()
    if name == "SoftSupCon":
        u = (torch.arange(1.0, len(s) + 1).double() - 0.5) / len(s)
        pull = by_rank(s.detach(), false_negative(u, p["sharpness"], p["tau_plus"]))
        value = value + p["pull"] * (pos.mean() - pull @ s / pull.sum())
    return value


def naive_loss(
    views, *, loss, similarity, queue=None, y=None, queue_y=None, sample_weight=None, noise=None
):
    """Return the mean loss over the anchors.

    Parameters
    ----------
    views, queue, y, queue_y, sample_weight : list of Tensor, and Tensor or None
        As `contrastive_loss` takes them; float64.
    noise : callable, default=None
        ``noise(scores)`` changes scores as rounding may.
    """
    noise = noise or (lambda s: s)
    n = len(views[0][0] if isinstance(views[0], tuple) else views[0])
    rows = [(v, i) for v in range(len(views) if queue is None else 1) for i in range(n)]
    between = {}
    for v in range(len(views)):
        for w in range(v, len(views)):
            between[v, w] = noise(scores(views[v], views[w], similarity))
            between[w, v] = between[v, w].T
    with_queue = None if queue is None else noise(scores(views[0], queue, similarity))
    limits = [bounds(view, similarity) for view in views]
    y = torch.full((n,), -1) if y is None else y
    total = 0.0
    for v, i in rows:
        others = [w for w in range(len(views)) if w != v]
        pos = torch.stack([between[v, w][i, i] for w in others])
        if queue is None:
            rest = torch.arange(n) != i
            s = torch.cat([between[v, w][i, rest] for w in range(len(views))])
            classes = torch.cat([y[rest]] * len(views))
        else:
            s = with_queue[i]
            classes = torch.full((len(s),), -1) if queue_y is None else queue_y
        lowest, highest = limits[v]
        same = (classes == y[i]) & (y[i] >= 0)
        weight = 1.0 if sample_weight is None else sample_weight[i]
        total = total + weight * anchor_loss(loss, s, pos, same, lowest, highest[i])
    return total / len(rows)


def infonce_with_groups(z, groups, attracts, temperature=0.5):
    """Return InfoNCE of views (n_views, n, d) whose groups are neutral, or attract as positives.

    Candidates of the anchor's group are no negatives. If they attract, they share the pull of the
    positives.
    """
    u, n = unit(z).flatten(0, 1), z.shape[1]
    groups, rows = groups.repeat(len(z)), torch.arange(n).repeat(len(z))
    total = 0.0
    for i in range(len(u)):
        s = u @ u[i] / temperature
        positives = (rows == rows[i]) & (torch.arange(len(u)) != i)
        mates = (groups == groups[i]) & (groups[i] >= 0) & (rows != rows[i])
        others = (rows != rows[i]) & ~mates
        estimate = int((rows != rows[i]).sum()) * s[others].exp().mean()
        loss = (1 + estimate * (-s[positives]).exp()).log().mean()
        if attracts and mates.any():
            share = mates.sum() / (mates.sum() + positives.sum())
            loss = loss + share * (s[positives].mean() - s[mates].mean())
        total = total + loss
    return total / len(u)
