"""The losses by their definitions: float64, all scores at once, differentiated by autograd."""

from __future__ import annotations

import torch
import torch.nn.functional as F


def naive_loss(loss, z1, z2, y=None, temperature=0.5):
    """Return the value of a loss for two views with in-batch negatives.

    Parameters
    ----------
    loss : skcontrast.losses.Loss
        Names the loss and holds its hyperparameters.
    z1, z2 : Tensor of shape (n, d)
        The two views.
    y : Tensor of shape (n,), default=None
        Classes, for losses that read them.
    temperature : float, default=0.5
        Of the cosine similarity.
    """
    z = F.normalize(torch.cat([z1, z2]).double(), dim=1)
    scores = z @ z.T / temperature
    n = len(z1)
    sample = torch.arange(2 * n) % n
    negative = sample[:, None] != sample
    s = scores[negative].view(2 * n, -1)
    positive = scores[torch.arange(2 * n), torch.arange(2 * n).roll(n)]
    same = None
    if y is not None:
        label = y.repeat(2)
        same = (label[:, None] == label)[negative].view(2 * n, -1)
    name = type(loss).__name__
    if name == "SupCon":
        log_all = torch.logsumexp(torch.cat([s, positive[:, None]], 1), 1)
        pulled = (s * same).sum(1) + positive
        return (log_all - pulled / (same.sum(1) + 1)).mean()
    p, count = positive.exp(), s.shape[1]
    if name == "SoftSupCon":
        likely = _false_negative_probability(loss, s)
        pulled = positive - (likely * s).sum(1) / likely.sum(1)
        pushed = ((1 - likely) * s.exp()).mean(1) / (1 - likely).mean(1)
        return (loss.pull * pulled - (p / (p + count * pushed)).log()).mean()
    if name == "PositiveDebiased":
        rest, g = 1 - loss.tau_plus, s.exp().mean(1)
        mean = (s.exp().sum(1) + p + torch.tensor(1 / temperature).exp()) / (count + 2)
        numerator = (mean - rest * g).clamp_min(0)
        return -(numerator / (mean + (count * loss.tau_plus - rest) * g)).log().mean()
    a, b = _coefficients(loss, name)
    estimate = a * (_weights(loss, name, s, same) * s.exp()).mean(1) - b * p
    estimate = estimate.clamp_min(torch.tensor(-1 / temperature).exp())
    return -(p / (p + count * estimate)).log().mean()


def _coefficients(loss, name):
    if name in ("DCL", "HCL"):
        return 1 / (1 - loss.tau_plus), loss.tau_plus / (1 - loss.tau_plus)
    if name == "PUCL":
        rest = 1 - loss.tau_plus
        return (1 - loss.tau_plus * loss.c) / rest, loss.tau_plus * (1 - loss.c) / rest
    return 1.0, 0.0


def _false_negative_probability(loss, s):
    """Return the sigmoid of k (logit u − m), where m makes its mean over ranks the prior."""
    ranks = torch.logit((torch.arange(2**14, dtype=torch.float64) + 0.5) / 2**14)
    low, high = -40.0, 40.0
    for _ in range(60):
        middle = (low + high) / 2
        above = (loss.sharpness * (ranks - middle)).sigmoid().mean() > loss.tau_plus
        low, high = (middle, high) if above else (low, middle)
    u = (s.detach().argsort(1).argsort(1) + 0.5) / s.shape[1]
    return (loss.sharpness * (torch.logit(u) - middle)).sigmoid()


def _weights(loss, name, s, same):
    if name == "HCL":
        w = (loss.beta * s).exp()
        return w / w.mean(1, keepdim=True)
    if name == "Supervised":
        return (~same).double() / (~same).double().mean(1, keepdim=True)
    if name == "SoftRing":
        w = 1 - _false_negative_probability(loss, s)
        return w / w.mean(1, keepdim=True)
    rank = s.detach().argsort(1).argsort(1)
    count = s.shape[1]
    if name == "Ring":
        within = int(loss.outer * count)
        closest = count - 1 - rank
        return ((closest >= int(loss.inner * within)) & (closest < within)).double()
    if name not in ("BCL", "NonparametricBCL"):
        return torch.ones_like(s)
    alpha, tau = loss.alpha, loss.tau_plus
    a = (1 - 2 * alpha) * (1 - 2 * tau)
    unlabeled = (rank + 1) / count
    phi = unlabeled
    if a:
        phi = ((1 - a) ** 2 + 4 * a * unlabeled).sqrt().sub(1 - a) / (2 * a)
    lower, upper = 2 * (1 - phi), 2 * phi
    true = alpha * lower + (1 - alpha) * upper
    false = (1 - alpha) * lower + alpha * upper
    unlabeled = (1 - tau) * true + tau * false
    if name == "NonparametricBCL":
        easy, hard = (1 - loss.beta) * alpha, loss.beta * (1 - alpha)
        return (easy * lower + hard * upper) / (easy + hard) / unlabeled
    w = (1 - tau) * true / unlabeled * (loss.beta * s.detach()).exp()
    return w / w.mean(1, keepdim=True)
