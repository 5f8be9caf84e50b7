"""What a step needs to know: values and seeds, epoch by epoch."""

from types import SimpleNamespace

import torch
from torch import nn

from skcontrast._fit._estimated_parameters import AutoParameters
from skcontrast._fit._plan import Plan
from skcontrast._fit._settings import epoch_progress
from skcontrast._runtime._random import LayerDraws
from skcontrast.losses import BCL, HCL, InfoNCE
from skcontrast.schedules import Auto, Linear
from skcontrast.similarity import Cosine


def plan(loss=None, similarity=None, **kwargs):
    module = nn.Linear(3, 2)
    defaults = {
        "module": module,
        "network": module.__call__,
        "prepare": lambda module: module.__call__,
        "n_samples": 10,
        "n_views": 2,
        "batch_size": 5,
        "width": 2,
        "device": torch.device("cpu"),
        "generator": torch.Generator(),
        "settings": SimpleNamespace(
            loss=loss or InfoNCE(), similarity=similarity or Cosine(), max_epochs=5
        ),
        "draw": lambda batch, generator: batch,
        "first_epoch": 0,
        "lr_schedule": None,
        "seed": 7,
        "layer_draws": LayerDraws(torch.device("cpu"), some=True),
        "world": None,
    }
    return Plan(**(defaults | kwargs))


def test_progress_runs_from_zero_to_one_and_stays_there():
    assert [epoch_progress(epoch, 5) for epoch in (0, 1, 4, 5, 99)] == [0, 0.25, 1, 1, 1]
    assert epoch_progress(0, 1) == 0 and epoch_progress(1, 1) == 1


def test_schedules_are_replaced_by_their_values_at_the_epoch():
    loss, similarity = HCL(tau_plus=0.1, beta=Linear(2, 0)), Cosine(Linear(1.0, 0.5))
    auto = AutoParameters(loss)
    for first_epoch, epoch in ((0, 2), (2, 0)):
        now = plan(loss=loss, similarity=similarity, first_epoch=first_epoch).at(epoch, auto)
        assert repr(now[0]) == repr(HCL(tau_plus=0.1, beta=1.0))
        assert repr(now[1]) == repr(Cosine(0.75))
        assert now[2] == {"loss__beta": 1.0, "similarity__temperature": 0.75}
    assert isinstance(loss.beta, Linear) and isinstance(similarity.temperature, Linear)


def test_estimates_are_taken_as_they_stand():
    loss = BCL(alpha=Auto(initial=0.8), tau_plus="auto")
    auto = AutoParameters(loss, past={"tau_plus": 0.25})
    now, _, values = plan(loss=loss).at(0, auto)
    assert (now.alpha, now.tau_plus) == (0.8, 0.25)
    assert values == {"loss__alpha": 0.8, "loss__tau_plus": 0.25}


def test_every_epoch_and_every_purpose_has_a_seed_of_its_own():
    seeds = [seed for epoch in range(50) for seed in plan().seeds(epoch)]
    assert len(set(seeds)) == 150
    assert plan().seeds(3) == plan().seeds(3) != plan(seed=8).seeds(3)


def test_ranks_share_the_order_and_the_views_and_not_the_layers():
    first, second = (plan(world=SimpleNamespace(rank=rank)).seeds(4) for rank in (0, 1))
    assert first == plan().seeds(4)
    assert first[:2] == second[:2] and first[2] != second[2]
