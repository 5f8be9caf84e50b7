"""``export``: write the network as an ONNX file."""

from __future__ import annotations

import json
import logging
import os
import warnings
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn

from .._group_whitening import GroupWhitening
from .._runtime import guarded
from .._safetensors import replace_file
from ..classifier import ContrastiveClassifier
from ..embedder import ContrastiveEmbedder
from ..encoders._base import is_pretrained
from ..features import Features
from ._save import check_model

# Largest difference from `transform`, relative to the largest number of the embedding. Deep
# networks with the same weights differ by 2e-4 between runtimes, wrong pixels by much more.
_TOLERANCE = 1e-3


@guarded()
def export(
    embedder: ContrastiveEmbedder | ContrastiveClassifier, path: str | os.PathLike, X: ArrayLike
) -> None:
    """Write the network from X to embeddings or probabilities, for use without skcontrast.

    The exported network does everything that `transform` does with an array: it scales X, applies
    the encoder and, with ``output="projection"``, the head. It takes any number of samples, in the
    units and the dtype of X (float64 if X holds integers other than uint8). Its output is compared
    with that of `transform` before the file is put in place.

    Parameters
    ----------
    embedder : ContrastiveEmbedder or ContrastiveClassifier
        Model on vectors, series or images. For a classifier, whose `classifier_` must be a
        ``LogisticRegression``, the file returns `predict_proba` and the labels of `predict`.
    path : str or path-like
        The file to write, whose name ends in ``.onnx``. It needs onnx, onnxscript and onnxruntime.
    X : array-like of shape (n_samples, ...)
        At least 2 samples as `transform` takes them, not sparse: they determine the dtype, and the
        output for them is compared. The file takes only the dtype of X if that is uint8, float32
        or float64. For other dtypes, such as int64 or bool, the file takes float64: convert
        samples before you pass them to it.

    Raises
    ------
    ValueError
        If the name ends differently, if X is not such an array, if the embedder's kind cannot be
        exported (graphs, several modalities, custom kinds), if `classifier_` is not a
        ``LogisticRegression``, or if the exported network differs from `transform` or
        `predict_proba` by more than a thousandth of the largest number.
    ImportError
        If a package is missing.
    OSError
        If the folder does not exist or the file cannot be written. An existing file is kept.

    See Also
    --------
    save : Writes the embedder itself.

    Notes
    -----
    The input and output are named ``X`` and ``embedding``, or, for a classifier, ``X``,
    ``probabilities`` and ``label``. Its metadata contain ``classes``, the class names in the order
    of the probabilities, as JSON.

    Series are one array (n_samples, n_channels, n_times), with NaN after the ends of shorter ones.
    If the encoder takes series of any length, as the default does, the file does, too, even if
    they are longer than in `fit`. If the encoder takes only one length, so does the file. Gaps are
    not filled.

    Examples
    --------
    >>> import os
    >>> import numpy as np
    >>> import onnxruntime
    >>> from skcontrast import ContrastiveEmbedder, export
    >>> X = np.random.default_rng(0).normal(size=(40, 5))
    >>> embedder = ContrastiveEmbedder(max_epochs=1, random_state=0).fit(X)
    >>> export(embedder, "embedder.onnx", X)
    >>> (H,) = onnxruntime.InferenceSession("embedder.onnx").run(None, {"X": X})
    >>> np.allclose(H, embedder.transform(X), atol=1e-5)
    True
    >>> os.remove("embedder.onnx")
    """
    check_model(embedder, "export")
    target = Path(path)
    if target.suffix != ".onnx":
        raise ValueError(f"The suffix of path must be .onnx, got {target.name!r}.")
    _require_onnx()
    model = embedder if isinstance(embedder, ContrastiveClassifier) else None
    embedder = embedder if model is None else model.embedder_
    network = _exported_network(embedder, model)
    array = _as_exported_dtype(embedder, X)
    # Messages about packages that the exporter does not need here, such as torchvision.
    logger = logging.getLogger("torch.onnx._internal.exporter._registration")
    logger.addFilter(silence := lambda record: record.levelno >= logging.ERROR)
    with ExitStack() as quiet:
        quiet.callback(logger.removeFilter, silence)
        quiet.enter_context(warnings.catch_warnings(action="ignore"))
        # The file is run at once, and must return what the embedder returns.
        expected = embedder.transform(array) if model is None else model.predict_proba(array)
        data = _write_onnx(network, torch.from_numpy(array[:2].copy()))
    if model is not None:
        data = _with_labels(data, model.classes_)
    _check_output(_run_onnx(data, array), np.asarray(expected), target)
    replace_file(target, data)


def _require_onnx() -> None:
    """Raise ImportError with the command to install if a package for ONNX is missing."""
    for name in ("onnx", "onnxscript", "onnxruntime"):
        if find_spec(name) is None:
            raise ImportError(f"ONNX needs the package {name}: pip install 'skcontrast[export]'.")


def _as_exported_dtype(embedder: ContrastiveEmbedder, X: Any) -> NDArray[Any]:
    """Return X as an array of a dtype that the exported network takes."""
    if issparse(X):
        raise ValueError("X must be a dense array, got a sparse matrix: pass X[:2].toarray().")
    # Raises the errors of transform, such as for columns in a different order.
    validated = embedder._model.read(X, embedder)
    X = X if getattr(X, "ndim", 1) > 1 else validated[:]  # lists of series, and Datasets
    array = np.ascontiguousarray(X.detach().cpu() if isinstance(X, Tensor) else X)
    if array.dtype not in (np.uint8, np.float32, np.float64):
        array = array.astype(np.float64)
    if len(array) < 2:
        raise ValueError(f"X must have at least 2 samples, got {len(array)}.")
    return array


def _classifier_layers(model: ContrastiveClassifier) -> list[nn.Module]:
    """Return scaler and logistic regression as one linear layer, followed by softmax."""
    scaler, classifier = model.scaler_, model.classifier_
    if not isinstance(classifier, LogisticRegression):
        raise ValueError(
            f"Only a LogisticRegression can be exported, and the classifier_ is {classifier!r}: "
            "export its embedder_."
        )
    weight = classifier.coef_ / scaler.scale_
    bias = (classifier.intercept_ - weight @ scaler.mean_) / model.temperature_
    weight = weight / model.temperature_
    if len(bias) == 1:  # the score of the second of two classes
        weight, bias = np.pad(weight, ((1, 0), (0, 0))), np.pad(bias, (1, 0))
    return [_linear_layer(weight, bias), nn.Softmax(dim=1)]


def _linear_layer(weight: NDArray, bias: NDArray) -> nn.Linear:
    layer = nn.Linear(*weight.shape[::-1])
    layer.load_state_dict({"weight": torch.as_tensor(weight), "bias": torch.as_tensor(bias)})
    return layer


def _exported_network(
    embedder: ContrastiveEmbedder, model: ContrastiveClassifier | None
) -> _Embedding:
    """Return scaler, network and classifier as one module on the CPU."""
    fitted = embedder._model
    if not hasattr(fitted.scaler, "layer"):
        raise ValueError(
            f"An embedder of {fitted.schema.kind.name} cannot be exported: only vectors, series "
            "and images are arrays of numbers of a fixed shape or length. Use skcontrast.save."
        )
    shape = fitted.schema.sample_shape
    scaler: Any = fitted.scaler
    layers = _Embedding(scaler.layer(), embedder._transforming().cpu())
    if model is not None:
        network = nn.Sequential(*layers)
        given = network if is_pretrained(embedder.encoder) else None
        blocks = [network, *(_features_layers(block, given) for block in model.transformers_)]
        layers = _Embedding(_Concatenated(blocks), *_classifier_layers(model))
    layers.n_axes = 1 + len(fitted.schema.kind.image_shape(shape) or shape)
    layers.takes_any_length = None in shape
    return layers.eval()


def _features_layers(transformer: Any, network: nn.Module | None) -> nn.Module:
    """Return a block of features as a module; a pretrained network may be whitened."""
    inner = getattr(transformer, "transformer_", None) or transformer
    of_network = isinstance(inner, GroupWhitening) and network is not None
    if not (of_network or isinstance(inner, Features)):
        raise ValueError(
            f"A block can only be exported if it is of skcontrast.features, got {inner!r}: "
            "export the embedder_."
        )
    layers: Any = [network] if of_network else [inner._scaler.layer(), inner.module_]
    if isinstance(transformer, GroupWhitening):
        mean, V = transformer.mean_, transformer.components_
        V = np.eye(len(mean)) if V is None else V
        layers += [_linear_layer(V, -V @ mean), *([_Normalized()] if of_network else [])]
    elif inner is not transformer:  # whitened by views
        scaler, V = transformer.scaler_, transformer.components_
        rotation = transformer.gain_ * np.eye(V.shape[1]) + V.T * transformer.gains_ @ V
        weight = rotation / scaler.scale_
        layers.append(_linear_layer(weight, -weight @ scaler.mean_))
    return nn.Sequential(*layers)


class _Normalized(nn.Module):
    """Rows of length 1."""

    def forward(self, x: Tensor) -> Tensor:
        """Normalise a batch of shape (n, width)."""
        return nn.functional.normalize(x)


class _Concatenated(nn.ModuleList):
    """The outputs of several modules for a batch, concatenated."""

    def forward(self, x: Tensor) -> Tensor:
        """Map a batch of n samples to (n, width)."""
        return torch.cat([block(x) for block in self], 1)


class _Embedding(nn.Sequential):
    """Scaling, network and head; adds an axis of channels to samples without one."""

    n_axes: int
    takes_any_length: bool

    def forward(self, x: Tensor) -> Tensor:
        """Embed or classify X of shape (n, ...), in its own units."""
        return super().forward(x[:, None] if x.ndim < self.n_axes else x)


def _write_onnx(network: _Embedding, samples: Tensor) -> bytes:
    """Return an ONNX file for any number of samples, and any length of series."""
    sizes = {0: torch.export.Dim("n_samples")}
    if network.takes_any_length:
        sizes[samples.ndim - 1] = torch.export.Dim.AUTO
    onnx = torch.onnx.export(
        torch.export.export(network, (samples,), dynamic_shapes=(sizes,)),
        (samples,),
        input_names=["X"],
        output_names=["embedding" if len(network) == 2 else "probabilities"],
        external_data=False,
        dynamo=True,
        verbose=False,
    )
    if onnx is None:
        raise RuntimeError("torch.onnx.export returned no program.")
    return onnx.model_proto.SerializeToString()


def _with_labels(data: bytes, classes: NDArray[Any]) -> bytes:
    """Return an ONNX file that also outputs the most probable class, with classes as metadata."""
    import onnx

    model, helper = onnx.load_from_string(data), onnx.helper
    names = onnx.numpy_helper.from_array(classes, "classes")
    model.graph.initializer.append(names)
    settings: Any = {"axis": 1, "keepdims": 0}
    model.graph.node.append(helper.make_node("ArgMax", ["probabilities"], ["index"], **settings))
    model.graph.node.append(helper.make_node("Gather", ["classes", "index"], ["label"]))
    rows = [model.graph.output[0].type.tensor_type.shape.dim[0].dim_param]
    model.graph.output.append(helper.make_tensor_value_info("label", names.data_type, rows))
    helper.set_model_props(model, {"classes": json.dumps(classes.tolist())})
    return model.SerializeToString()


def _run_onnx(data: bytes, array: NDArray[Any]) -> NDArray[Any]:
    import onnxruntime

    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    return session.run(None, {"X": array})[0]


def _check_output(output: NDArray[Any], expected: NDArray[Any], path: Path) -> None:
    """Raise ValueError if the output of the exported network differs from `transform`."""
    error = float(np.abs(output - expected).max())
    if not error <= _TOLERANCE * max(float(np.abs(expected).max()), 1.0):
        raise ValueError(
            f"{path} was not written: the exported network differs from transform by {error:.2g}. "
            "X must have the units and the dtype that it had in fit, and no gaps."
        )
