"""Samples, sessions and callbacks that the tests of frameworks share."""

import copy

import torch
from sklearn.datasets import load_digits
from skorch.callbacks import Callback
from torch import nn

from skcontrast.frameworks import FitContext, MoCo

X, Y = (array[:101] for array in load_digits(return_X_y=True))
IMAGES = X.reshape(-1, 1, 8, 8)
MOCOS = [MoCo(momentum=0.9), MoCo(queue_size=20, momentum=0.5), MoCo(symmetric=True)]


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def make_fit(module=None, n_samples=30, n_views=2, width=4, n_modalities=1):
    module = module or nn.Linear(6, width)
    return FitContext(
        module=module,
        network=module.__call__,
        prepare=lambda module: module.__call__,
        n_samples=n_samples,
        n_views=n_views,
        batch_size=8,
        width=width,
        device=torch.device("cpu"),
        generator=torch.Generator(),
        n_modalities=n_modalities,
    )


class Watches(Callback):
    """Calls a function with the session after every step."""

    def __init__(self, function):
        self.function = function

    def on_batch_end(self, net, **kwargs):
        self.function(net.criterion_)


class Keeps(Callback):
    """Keeps the memory of a session as it is when the training begins and ends."""

    def __init__(self, name):
        self.name = name

    def on_train_begin(self, net, **kwargs):
        self.session = net.criterion_
        self.before = copy.deepcopy(getattr(self.session, self.name))

    def on_train_end(self, net, **kwargs):
        self.after = copy.deepcopy(getattr(self.session, self.name))


class StopsAfter(Callback):
    """The user loses patience after some steps of the second epoch."""

    def __init__(self, n_steps):
        self.n_steps = n_steps

    def on_train_begin(self, net, **kwargs):
        self.left = len(net.get_iterator(kwargs["X"])) + self.n_steps

    def on_epoch_end(self, net, **kwargs):
        self.state = copy.deepcopy(net.criterion_.state_dict())

    def on_batch_end(self, net, **kwargs):
        self.left -= 1
        if not self.left:
            net.train_step_single = raises_interrupt  # not notify, which ends the fit in order


def raises_interrupt(*args, **kwargs):
    raise KeyboardInterrupt
