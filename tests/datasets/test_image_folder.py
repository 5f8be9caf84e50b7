"""ImageFolder: which files, which classes, and what an embedder and scikit-learn do with it."""

import itertools
import pickle
import sys

import numpy as np
import pytest
from PIL import Image
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline

from skcontrast._data._pictures import read_image  # private: counts the reads
from skcontrast.datasets import ImageFolder
from tests.common import small_images

RNG = np.random.default_rng(0)
NAMES = ["a/x.png", "a/deep/er/y.PNG", "b/x.png", "b/z.jpg", "top.png"]


def fill(folder, names):
    for k, name in enumerate(names):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = RNG.integers(0, 256, size=(10 + k, 30 - k, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(path)
    return folder


@pytest.fixture
def folder(tmp_path):
    """Five images: two in `a`, two in `b`, one in neither."""
    return fill(tmp_path / "images", NAMES)


@pytest.fixture
def classes(tmp_path):
    """Thirty images in two classes."""
    return fill(tmp_path / "classes", [f"{'ab'[k % 2]}/{k:02}.png" for k in range(30)])


# Files and classes


def test_files_are_found_at_any_depth_and_sorted(folder):
    images = ImageFolder(folder)
    assert images.files == ["a/deep/er/y.PNG", "a/x.png", "b/x.png", "b/z.jpg", "top.png"]
    assert images.target.tolist() == [0, 0, 1, 1, -1] and images.target.dtype == np.int64
    assert images.target_names.tolist() == ["a", "b"]
    assert len(images) == 5 and images.shape == (5, 3, 64, 64)
    assert repr(images).endswith("5 images in 2 classes")


def test_hidden_files_and_other_files_are_left_out(folder):
    fill(folder, [".hidden.png", ".cache/x.png", "__MACOSX/._x.png"])
    (folder / "a" / "notes.txt").write_text("no image")
    (folder / "folder.png").mkdir()
    (folder / "empty").mkdir()
    assert len(ImageFolder(folder)) == 5
    assert ImageFolder(folder).target_names.tolist() == ["a", "b"]


def test_a_folder_without_subfolders_has_no_classes(tmp_path):
    images = ImageFolder(fill(tmp_path, ["x.png", "y.png"]))
    assert images.target.tolist() == [-1, -1] and images.target_names.tolist() == []


def test_links_are_followed_but_not_in_circles(folder, tmp_path):
    fill(tmp_path, ["elsewhere/x.png"])
    (folder / "c").symlink_to(tmp_path / "elsewhere")
    (folder / "a" / "circle").symlink_to(folder)
    images = ImageFolder(folder)
    assert len(images) == 6 and images.target_names.tolist() == ["a", "b", "c"]


def test_folders_that_link_to_each_other_are_read_once_for_each_class(tmp_path):
    fill(tmp_path, [f"{letter}/{letter}.png" for letter in "abcdefghij"])
    for one, other in itertools.permutations("abcdefghij", 2):
        (tmp_path / one / other).symlink_to(tmp_path / other)
    assert np.bincount(ImageFolder(tmp_path).target).tolist() == [10] * 10


def test_classes_of_a_training_set_number_those_of_a_test_set(folder):
    images = ImageFolder(folder, classes=["new", "b"])
    assert images.target.tolist() == [-1, -1, 1, 1, -1]
    assert images.target_names.tolist() == ["new", "b"]
    again = ImageFolder(folder, classes=ImageFolder(folder).target_names)
    assert again.target.tolist() == ImageFolder(folder).target.tolist()


def test_files_may_be_chosen_in_any_order(folder):
    images = ImageFolder(folder, files=["top.png", folder / "b" / "z.jpg"])
    assert images.files == ["top.png", "b/z.jpg"]
    assert images.target_names.tolist() == ["b"] and images.target.tolist() == [-1, 0]
    np.testing.assert_array_equal(images[0], ImageFolder(folder)[4])


def test_files_outside_the_folder_have_no_class(folder, tmp_path):
    outside = fill(tmp_path, ["outside.png"]) / "outside.png"
    images = ImageFolder(folder, files=["b/z.jpg", outside, "../outside.png"])
    assert images.target.tolist() == [0, -1, -1] and images.target_names.tolist() == ["b"]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda f: ImageFolder(f / "none"), NotADirectoryError, "none is not a folder"),
        (lambda f: ImageFolder(f / "top.png"), NotADirectoryError, "top.png is not a folder"),
        (lambda f: ImageFolder(f / "empty"), ValueError, r"no images in .*empty: .*\.png"),
        (lambda f: ImageFolder(f, files=[]), ValueError, "no images in"),
        (
            lambda f: ImageFolder(f, files=["top.png", "x.png", "y.png"]),
            FileNotFoundError,
            r"2 of 3 files do not exist, such as .*x.png",
        ),
        (lambda f: ImageFolder(f, size=0), ValueError, "'size' parameter of ImageFolder"),
        (lambda f: ImageFolder(f, size=(8, 8.5)), ValueError, "'size' parameter"),
        (lambda f: ImageFolder(f, size=(8, 8, 8)), ValueError, "size must be an int or"),
        (lambda f: ImageFolder(f)[True], IndexError, "can only be indexed by samples"),
        (lambda f: ImageFolder(f)[[[0]]], IndexError, "can only be indexed by samples"),
        (lambda f: ImageFolder(f, mode="CMYK"), ValueError, "'mode' parameter"),
        (lambda f: ImageFolder(f, resize="fit"), ValueError, "'resize' parameter"),
    ],
)
def test_what_is_wrong_is_named(folder, make, error, message):
    (folder / "empty").mkdir()
    with pytest.raises(error, match=message):
        make(folder)


def test_without_pillow_an_error_says_what_to_install(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match=r"skcontrast\[images\]"):
        ImageFolder(folder)


# Images


@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_images_have_one_shape(folder, mode):
    images = ImageFolder(folder, size=(8, 12), mode=mode)
    shape = (3 if mode == "RGB" else 1, 8, 12)
    assert {image.shape for image in images} == {shape} and images.shape == (5, *shape)
    assert {image.dtype for image in images} == {np.dtype(np.uint8)}


def test_rows_of_a_folder_are_a_folder(folder):
    images = ImageFolder(folder, size=8)
    for rows in (slice(1, 4), [1, 2, 3], np.array([1, 2, 3]), [False, True, True, True, False]):
        part = images[rows]
        assert part.files == images.files[1:4] and part.target.tolist() == [0, 1, 1]
        assert part.shape == (3, 3, 8, 8)
        np.testing.assert_array_equal(part[0], images[1])
    assert len(images[[]]) == 0
    assert images[-1].shape == (3, 8, 8)
    with pytest.raises(IndexError):
        images[5]


def test_load_reads_all_images(folder, tmp_path):
    images = ImageFolder(folder, size=8)
    X = images.load()
    np.testing.assert_array_equal(X, np.stack(list(images)))
    mapped = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", np.uint8, images.shape)
    assert images.load(out=mapped, n_jobs=2) is mapped
    np.testing.assert_array_equal(np.load(tmp_path / "X.npy"), X)


def test_a_folder_can_be_pickled(folder):
    images = ImageFolder(folder, size=8)
    again = pickle.loads(pickle.dumps(images))
    np.testing.assert_array_equal(again[3], images[3])
    assert again.files == images.files and again.shape == images.shape


# As X


@pytest.mark.parametrize("n_workers", [0, 1])
@pytest.mark.parametrize("memory_budget", [None, 1e-9], ids=["once", "streamed"])
def test_an_embedder_reads_with_the_same_result_as_from_memory(classes, n_workers, memory_budget):
    images = ImageFolder(classes, size=8)
    read = small_images(n_workers=n_workers, memory_budget=memory_budget).fit(images)
    loaded = small_images().fit(images.load())
    np.testing.assert_array_equal(read.transform(images), loaded.transform(images.load()))


def test_fit_reads_each_file_once_where_all_fit_into_memory(classes, monkeypatch, capfd):
    files = []

    def counted(path, *args):
        files.append(path)
        return read_image(path, *args)

    monkeypatch.setattr("skcontrast.datasets.read_image", counted)
    images = ImageFolder(classes, size=8)
    small_images(max_epochs=3).fit(images)
    # The first one is also read to see what X holds.
    assert len(set(files[-30:])) == 30 and set(files[:-30]) <= {files[0]}
    assert not capfd.readouterr().err
    monkeypatch.setattr("skcontrast._warnings._SILENT", 1e-9)
    small_images(max_epochs=3).fit(images)
    assert "30/30" in capfd.readouterr().err


def test_transform_shows_a_bar_where_reading_takes_long(classes, monkeypatch, capfd):
    images = ImageFolder(classes, size=8)
    fitted = small_images().fit(images)
    expected, loaded = fitted.transform(images), images.load()
    assert not capfd.readouterr().err
    monkeypatch.setattr("skcontrast._warnings._SILENT", 1e-9)
    np.testing.assert_array_equal(fitted.transform(images), expected)
    assert "transform: 100%" in capfd.readouterr().err
    fitted.transform(loaded)
    assert not capfd.readouterr().err


def test_scikit_learn_splits_a_folder_without_reading_it(classes, monkeypatch):
    images = ImageFolder(classes, size=8)
    monkeypatch.setattr("skcontrast.datasets.read_image", None)
    train, test, y_train, y_test = train_test_split(
        images, images.target, test_size=10, stratify=images.target, random_state=0
    )
    assert isinstance(train, ImageFolder) and len(train) == 20 and len(test) == 10
    assert train.target.tolist() == y_train.tolist() and test.target.tolist() == y_test.tolist()
    assert {*train.files, *test.files} == set(images.files)


def test_scikit_learn_validates_on_a_folder_as_on_the_array(classes):
    images = ImageFolder(classes, size=8)
    model = make_pipeline(small_images(max_epochs=1), LogisticRegression())
    scores = [cross_val_score(model, X, images.target, cv=2) for X in (images, images.load())]
    np.testing.assert_array_equal(*scores)
