"""Validation of custom encoders."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from .._runtime import trial
from ..kinds._base import Kind, with_scaler
from ..kinds._recognise import declared_kind, read_samples
from ._base import Encoder, build_encoder

# Samples that are encoded together and alone.
_N_SAMPLES = 8


def check_encoder(encoder: Any, X: Any, kind: Kind | None = None) -> None:
    """Check that a custom encoder treats samples independently, and that all parameters train.

    Call this in a test of your class. ``fit`` only checks the type and the shape of the output
    of the module.

    Parameters
    ----------
    encoder : Encoder, torch.nn.Module or callable
        As the parameter `encoder` of :class:`skcontrast.ContrastiveEmbedder`. Not modified.
    X : array-like of shape (n_samples, ...)
        Samples that differ from each other, such as the first 100 of a data set.
    kind : Kind, default=None
        The kind of the samples. None takes the kind of the encoder, or detects it.

    Raises
    ------
    TypeError, ValueError
        If the encoder cannot be built for such samples; if the row of a sample depends, in
        inference, on the other samples, on padding or on random numbers; or if trainable
        parameters get no gradient.

    See Also
    --------
    skcontrast.kinds.check_kind : Checks how a custom kind reads samples.
    skcontrast.augmentation.check_augmentation : The same for an augmentation.

    Examples
    --------
    >>> import numpy as np
    >>> from torch import nn
    >>> from skcontrast.encoders import check_encoder
    >>> class Centred(nn.Linear):
    ...     def forward(self, x):
    ...         return super().forward(x - x.mean(0))
    >>> X = np.random.default_rng(0).normal(size=(20, 5))
    >>> check_encoder(nn.Linear(5, 8), X)
    >>> check_encoder(Centred(5, 8), X)
    Traceback (most recent call last):
    ...
    ValueError: The encoder Centred must be deterministic and treat samples independently in...
    """
    owner, hint = encoder if isinstance(encoder, Encoder) else Encoder(), declared_kind(encoder)
    X, schema = read_samples(X, kind, hint=hint, owner=owner, min_samples=2)
    kind, cpu = schema.kind, torch.device("cpu")
    with trial(cpu):
        array, scaler, batch = with_scaler(kind, X)
        layer = kind._first_layer(batch, scaler, channels_last=False) or nn.Identity()
        few = array[np.unique(np.linspace(0, len(array) - 1, _N_SAMPLES, dtype=int))]
        samples, shape = scaler.to_tensor(few, cpu), kind._encoded_shape(tuple(batch.shape[1:]))
        example = layer(samples)
        module, _ = build_encoder(
            encoder, shape, kind=kind, example=example, owner="check_encoder"
        )
        if isinstance(encoder, Encoder):
            encoder.learn(module, layer(batch), np.random.RandomState(0))
        rows = module.eval()(example)
        alone = [module(layer(scaler.to_tensor(few[k : k + 1], cpu))) for k in range(len(few))]
    name = getattr(encoder, "__name__", type(encoder).__name__)
    slack = 1e-4 * float(rows.detach().nan_to_num().abs().max())
    if not torch.allclose(rows, torch.cat(alone), rtol=1e-3, atol=slack, equal_nan=True):
        raise ValueError(
            f"The encoder {name} must be deterministic and treat samples independently in eval "
            "mode. If the samples are padded, it must ignore the padding, for example by a mask "
            "in a skcontrast.kinds.TensorBatch."
        )
    trained = {key: p for key, p in module.named_parameters() if p.requires_grad}
    if not trained:
        return
    slopes = torch.autograd.grad(rows.sum(), list(trained.values()), allow_unused=True)
    if idle := [key for key, slope in zip(trained, slopes, strict=True) if slope is None]:
        raise ValueError(
            f"The encoder {name} has parameters that get no gradient: {', '.join(idle[:5])}"
            f"{', ...' if len(idle) > 5 else ''}. Leave out detach and no_grad, or freeze the "
            "parameters by requires_grad_(False)."
        )
