"""Whatever is passed to a public door is taken, or refused by name: no error from the depths."""

import inspect
import itertools
import signal
import warnings

import matplotlib
import numpy as np
import pytest
import torch
from PIL import Image

import skcontrast
from skcontrast import (
    encoders,
)
from skcontrast.augmentation import FunctionAugmentation, MarginalCorruption
from skcontrast.kinds import Images
from tests.bad_values import GRAPHS, PICTURES, VECTORS, attack, bad_values
from tests.doors import MODULES, NO_DOORS, cases, doors, named_parameters, tiny

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="needs alarms")

# Errors that need not name the argument, by a part of the name of the door, the argument and the
# value; "" is any.
ADMITTED = [
    # A function of the user's own that fails, or is called with arguments that it does not have.
    *(
        ("", argument, value)
        for argument in (
            "encoder",
            "deep",
            "func",
            "measure",
            "metric",
            "estimators",
            "kw_args",
            "scoring",
        )
        for value in ("function", "class", "module", "dict")
    ),
    # It has a parameter `kind`, as encoders have, which is refused.
    ("ContrastiveEmbedder", "encoder", "an unfitted embedder"),
    ("Frozen", "encoder", "an unfitted embedder"),
    # Admissible by themselves, but not together with the other arguments, which the error names.
    ("Auto", "initial", "1e+30"),
    ("make_embedding_scorer", "needs_y", "False"),
    ("few_label_accuracy", "y", "a row"),
    ("linear_probe", "y", "a row"),
    ("map_at_r", "y_test", "a Dataset"),
    ("recall_at_k", "y_test", "a Dataset"),
    ("ReliabilityDisplay", "losses", ""),
    ("RetrievalDisplay", "pictures", ""),
    ("EmbeddingDisplay", "method", "embedder"),
    ("contrastive_loss", "views", "an empty tuple"),
    # Paths that do not exist, or do not hold what is looked for.
    ("save", "path", "''"),
    ("load", "path", ""),
    ("ImageFolder", "folder", "''"),
    ("ImageFolder", "files", ""),
    ("ImageFolder", "classes", "scalar"),
    # scikit-learn's own words on scorers and structured arrays, torch's on optimizers.
    ("Evaluation", "scoring", ""),
    ("EmbeddingDisplay", "y", "structured"),
    ("EmbeddingDisplay", "thumbnails", ""),
    ("Display", "estimator", "frame"),
    ("RetrievalDisplay", "queries", "graphs"),
    ("ViewsDisplay", "views", "empty"),
    ("Optimizer", "algorithm", "class"),
    # Vectors, for which the statistics of this augmentation are missing.
    ("GaussianNoise.augment", "batch", "tensor"),
]
# Doors that take long even where the value is good, or reach for the network.
LONG = ("download_if_missing",)


def is_admitted(outcome):
    return any(
        name in outcome.door.name and argument == outcome.door.argument and value in outcome.value
        for name, argument, value in ADMITTED
    )


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    """Files that are written where nobody expects them are written here; figures are closed."""
    monkeypatch.chdir(tmp_path)
    matplotlib.use("Agg")
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def unclear(cases):
    """Return a line for each case that was not taken and not refused by name."""
    outcomes = (attack(door, name, make) for door, (name, make) in cases)
    return [
        f"{outcome.door} <- {outcome.value}: {outcome.message[:200]}"
        for outcome in outcomes
        if outcome.verdict in ("unclear", "endless") and not is_admitted(outcome)
    ]


def some_cases(stride, offset=0):
    """Return every so-many-th case of the doors that are quick."""
    quick = (
        (door, case)
        for door, case in cases()
        if door.argument not in LONG and "fetch" not in door.name and "Eval" not in door.name
    )
    return itertools.islice(quick, offset, None, stride)


def test_a_part_of_all_values_is_taken_or_refused_by_name():
    assert not unclear(some_cases(83))


@pytest.mark.slow
def test_every_value_is_taken_or_refused_by_name_at_every_door():
    assert not unclear((door, case) for door, case in cases() if door.argument not in LONG)


def test_a_door_opens_with_valid_arguments():
    """A call that fails whatever is passed would show nothing about the argument."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, door in {door.name: door for door in doors() if door.valid}.items():
            if "fetch" not in name:
                door.use(**door.valid)


def test_every_public_callable_has_a_door_or_a_reason_for_none():
    known = {door.name.partition("(")[0].split(".")[0].split(" ")[0] for door in doors()}
    for module in MODULES:
        for name in module.__all__:
            thing = getattr(module, name)
            is_warning = inspect.isclass(thing) and issubclass(thing, Warning)
            if not callable(thing) or is_warning or thing in NO_DOORS:
                continue
            if not named_parameters(thing) and inspect.isclass(thing):
                continue
            assert name in known, f"no doors of {name}: see tests/doors.py"


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[1, 2], [3, "a"]], r"X must be .*item 1 is \[3, 'a'\]"),
        ([[1.0, 2.0], [3.0]], r"X must be .*item 1 has shape \(1,\), item 0 \(2,\)"),
        ([PICTURES[0], None], "X must hold samples of one type: item 1 is a NoneType"),
        ([PICTURES[0], "a"], "item 1 is a str, item 0 a ndarray"),
        ([torch.zeros(3, 8, 8), np.zeros((3, 8, 8))], "item 1 is a ndarray, item 0 a Tensor"),
        ([np.zeros((3, 8, 8)), torch.zeros(3, 8, 8)], "item 1 is a Tensor, item 0 a ndarray"),
        ([GRAPHS[0], "a"], "X must hold graphs only: item 1 is a str"),
        ([*GRAPHS[:3], VECTORS], "X must hold graphs only: item 3 is a ndarray"),
    ],
)
@pytest.mark.parametrize("method", ["fit", "views"])
def test_a_mixed_list_names_the_first_item_that_does_not_fit(X, message, method):
    with pytest.raises((ValueError, TypeError), match=message):
        getattr(tiny(encoder=None), method)(X)


def test_masked_entries_are_refused_and_a_mask_of_nothing_is_not():
    masked = np.ma.masked_greater(VECTORS, 0)
    with pytest.raises(ValueError, match=r"X has masked entries.*pass X\.filled\(value\)"):
        tiny().fit(masked)
    tiny().fit(np.ma.masked_greater(VECTORS, 1e9))
    with pytest.raises(ValueError, match="sample_weight has masked entries"):
        tiny().fit(VECTORS, sample_weight=masked[:, 0])


def test_a_dataset_of_complex_numbers_is_refused():
    with pytest.raises(ValueError, match="X must hold real numbers, got a Dataset of complex"):
        tiny().fit(bad_values()["a complex Dataset"]())


def test_a_bool_is_not_an_int_and_an_int_fits_into_a_tensor():
    for bad in (True, 2**70):
        with pytest.raises(ValueError, match=r"'n_views' parameter .* int in the range \[2, 2147"):
            tiny(n_views=bad).fit(VECTORS)
        with pytest.raises(ValueError, match="'widths' parameter of MLP"):
            encoders.MLP(bad).build((4,))


def test_floats_up_to_255_that_are_not_scaled_warn():
    images = 255 * PICTURES
    with pytest.warns(UserWarning, match="standardize=False leaves as they are"):
        tiny(encoder=None, kind=Images(standardize=False)).views(images)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tiny(encoder=None, kind=Images(standardize=False)).views(PICTURES)
        tiny(encoder=None).views(images)


def test_marginals_of_graphs_are_refused_before_they_are_learned():
    with pytest.raises(ValueError, match=r"MarginalCorruption expects vectors, .* got graphs"):
        MarginalCorruption().fit(GRAPHS)


def test_a_function_that_never_changes_anything_warns_and_one_that_rarely_does_not():
    with pytest.warns(UserWarning, match="returned its samples unchanged"):
        tiny(augmentation=FunctionAugmentation(_identity)).views(VECTORS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tiny(augmentation=FunctionAugmentation(_rarely)).views(VECTORS)


def _identity(x):
    return x


def _rarely(x):
    return torch.where(torch.rand(len(x), 1) < 0.1, -x, x)


def test_sparse_and_meta_tensors_are_refused_by_name():
    z = torch.zeros(4, 2)
    with pytest.raises(TypeError, match="view 2 must be a dense tensor"):
        skcontrast.contrastive_loss(z, z.to_sparse())
    with pytest.raises(ValueError, match="view 2 must hold data"):
        skcontrast.contrastive_loss(z, z.to("meta"))


PILLOW = [Image.fromarray(np.full((8, 8, 3), k, dtype=np.uint8)) for k in range(12)]


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (PILLOW, r"images of Pillow: .*np\.stack.*ImageFolder"),
        ([(image, 0) for image in PILLOW], r"images of Pillow: .* labels as y"),
        (PILLOW[0], "images of Pillow"),
        ((VECTORS, np.arange(len(VECTORS))), r"samples and their classes: pass both, fit\(X, y\)"),
        ((PICTURES, list(range(len(PICTURES)))), r"fit\(X, y\)"),
    ],
)
def test_images_of_pillow_and_pairs_with_labels_say_what_to_pass(X, message):
    with pytest.raises(TypeError, match=message):
        tiny(encoder=None).fit(X)


def test_an_optimizer_is_a_class_and_no_instance():
    adam = torch.optim.Adam([torch.zeros(2, requires_grad=True)])
    with pytest.raises(ValueError, match=r"got an instance of Adam: pass the class"):
        tiny(optimizer=adam).fit(VECTORS)


@pytest.mark.skipif(torch.backends.cuda.is_built(), reason="torch is built for a GPU")
def test_a_missing_gpu_says_that_torch_is_built_without():
    with pytest.raises(ValueError, match=r"got cuda: Torch not compiled with CUDA enabled\.$"):
        tiny(device="cuda").fit(VECTORS)


def test_samples_that_are_all_alike_warn():
    for X in (np.ones((20, 4)), np.zeros((20, 8, 8)), np.repeat(PICTURES[:1], 20, axis=0)):
        with pytest.warns(UserWarning, match="All samples in X are alike"):
            tiny(encoder=None).fit(X)


def test_one_image_in_colour_warns_and_a_declared_kind_does_not():
    colors = np.random.default_rng(0).random((3, 8, 8))
    with pytest.warns(UserWarning, match="three grey images, not as one image in colour"):
        tiny(encoder=None).fit(colors)
    tiny(encoder=None, kind="images").fit(colors)


def test_the_advice_on_intensities_follows_their_range():
    for white, advice in ((255, "divide X by 255, or pass uint8"), (16, "by their maximum, 16")):
        images = white * PICTURES / PICTURES.max()
        with pytest.warns(UserWarning, match=advice):
            tiny(encoder=None, kind=Images(standardize=False)).views(images)


def test_a_score_of_a_few_samples_is_refused_and_of_some_warned_about():
    X = np.random.default_rng(0).normal(size=(100, VECTORS.shape[1]))
    embedder = tiny().fit(X)
    with pytest.raises(ValueError, match="X must hold 12 samples or more for score, got 11"):
        embedder.score(X[:11])
    with pytest.warns(UserWarning, match="X has 99 samples, and their score is mostly noise"):
        assert 0 <= embedder.score(X[:99]) <= 1
    embedder.score(X)
