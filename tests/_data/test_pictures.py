"""Images of every kind of file, upright, of one size and one mode."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from PIL import Image
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skcontrast import ContrastiveClassifier

# private: the pixels of one file
from skcontrast._data._pictures import SUFFIXES, as_pixels, read_image
from skcontrast.augmentation import RandomFlip
from skcontrast.datasets import ImageFolder
from skcontrast.encoders import Pretrained
from skcontrast.features import Raw
from skcontrast.kinds import Images

# private: how samples are read, before any fit
from skcontrast.kinds._recognise import read_samples
from tests.common import Items, reloaded, small, small_images

RNG = np.random.default_rng(0)
COLOURS = RNG.integers(0, 256, size=(20, 20, 3), dtype=np.uint8)
# Two quarters in each row, of four colours: red, green; blue, white.
QUARTERS = np.zeros((2, 2, 3), dtype=np.uint8)
QUARTERS[0, 0, 0] = QUARTERS[0, 1, 1] = QUARTERS[1, 0, 2] = 255
QUARTERS[1, 1] = 255
QUARTERS = QUARTERS.repeat(8, axis=0).repeat(8, axis=1)


def read(path, size=(20, 20), mode="RGB", resize="crop"):
    return read_image(path, size, mode, resize)


def small_network():
    return torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, 2), torch.nn.ReLU())


def saved(folder, pixels, suffix=".png", **kwargs):
    path = folder / f"image{suffix}"
    image = pixels if isinstance(pixels, Image.Image) else Image.fromarray(pixels)
    image.save(path, **kwargs)
    return path


@pytest.mark.parametrize("suffix", [".png", ".bmp", ".ppm", ".tif", ".tiff"])
def test_images_of_the_wanted_size_are_what_they_are(tmp_path, suffix):
    image = read(saved(tmp_path, COLOURS, suffix))
    assert image.shape == (3, 20, 20) and image.dtype == np.uint8
    assert image.flags.c_contiguous and image.flags.writeable
    np.testing.assert_array_equal(image, COLOURS.transpose(2, 0, 1))


@pytest.mark.parametrize("suffix", [".jpg", ".jpeg", ".webp", ".gif"])
def test_lossy_formats_are_about_what_they_are(tmp_path, suffix):
    image = read(saved(tmp_path, QUARTERS, suffix), (16, 16))
    error = np.abs(image.astype(float) - QUARTERS.transpose(2, 0, 1)).mean()
    assert error < 15 and suffix in SUFFIXES


def test_grey_and_colour_become_each_other(tmp_path):
    grey = COLOURS[..., 0]
    path = saved(tmp_path, grey)
    np.testing.assert_array_equal(read(path, mode="L"), grey[None])
    np.testing.assert_array_equal(read(path), np.stack([grey] * 3))
    weights = COLOURS @ [0.299, 0.587, 0.114]
    grey = read(saved(tmp_path, COLOURS), mode="L")
    assert grey.shape == (1, 20, 20) and np.abs(grey[0] - weights).max() <= 1


def test_black_and_white_palettes_and_cmyk_are_read(tmp_path):
    black = np.zeros((20, 20), dtype=bool)
    black[:10] = True
    white = saved(tmp_path, Image.fromarray(black))
    np.testing.assert_array_equal(read(white, mode="L")[0], black * np.uint8(255))
    image = Image.fromarray(QUARTERS)
    palette = saved(tmp_path, image.convert("P", palette=Image.Palette.ADAPTIVE))
    np.testing.assert_array_equal(read(palette, (16, 16)), QUARTERS.transpose(2, 0, 1))
    cmyk = saved(tmp_path, image.convert("CMYK"), ".tif")
    np.testing.assert_array_equal(read(cmyk, (16, 16)), QUARTERS.transpose(2, 0, 1))


@pytest.mark.parametrize("mode", ["RGB", "L"])
@pytest.mark.parametrize("stored", ["RGBA", "LA", "P"])
def test_what_is_transparent_is_white(tmp_path, stored, mode):
    alpha = np.zeros((20, 20), dtype=np.uint8)
    alpha[:, 10:] = 255
    image = Image.fromarray(np.zeros((20, 20, 4), dtype=np.uint8), "RGBA")
    image.putalpha(Image.fromarray(alpha))
    kwargs = {}
    if stored == "P":
        image = Image.fromarray((alpha > 0).astype(np.uint8), "P")
        image.putpalette([200, 0, 0, 0, 0, 0])
        kwargs["transparency"] = 0
    elif stored == "LA":
        image = image.convert("LA")
    found = read(saved(tmp_path, image, **kwargs), mode=mode)
    assert (found[:, :, :10] == 255).all() and (found[:, :, 10:] == 0).all()


@pytest.mark.parametrize("suffix", [".png", ".tif", ".pgm"])
def test_16_bits_are_rounded_to_8(tmp_path, suffix):
    wide = RNG.integers(0, 2**16, size=(20, 20)).astype(np.uint16)
    wide[0, :3] = 0, 255, 65535
    path = tmp_path / f"image{suffix}"
    if suffix == ".pgm":
        path.write_bytes(b"P5 20 20 65535\n" + wide.astype(">u2").tobytes())
    else:
        Image.fromarray(wide).save(path)
    found = read(path, mode="L")[0]
    np.testing.assert_array_equal(found, np.rint(wide / 257))
    assert found[0, :3].tolist() == [0, 1, 255]


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_32_bits_are_refused(tmp_path, dtype):
    path = saved(tmp_path, np.ones((20, 20), dtype=dtype), ".tif")
    with pytest.raises(OSError, match=r"image.tif cannot be read .* 32-bit"):
        read(path)


@pytest.mark.parametrize("suffix", [".png", ".tif", ".jpg"])
def test_images_are_turned_upright(tmp_path, suffix):
    for orientation in range(1, 9):
        # How the upright image is stored for each value of the EXIF tag 274.
        q = QUARTERS
        stored = [q, q[:, ::-1], q[::-1, ::-1], q[::-1], q.swapaxes(0, 1)]
        stored += [np.rot90(q), np.rot90(q.swapaxes(0, 1), 2), np.rot90(q, -1)]
        exif = Image.Exif()
        exif[274] = orientation
        kwargs = {"quality": 95, "subsampling": 0} if suffix == ".jpg" else {}
        pixels = np.ascontiguousarray(stored[orientation - 1])
        found = read(saved(tmp_path, pixels, suffix, exif=exif, **kwargs), (16, 16))
        assert np.abs(found.astype(int) - q.transpose(2, 0, 1)).mean() < 5


def test_the_first_frame_counts(tmp_path):
    frames = [Image.new("L", (20, 20), value) for value in (255, 0)]
    path = tmp_path / "image.gif"
    frames[0].save(path, save_all=True, append_images=frames[1:])
    assert (read(path, mode="L") == 255).all()


# Sizes


@pytest.mark.parametrize("shape", [(40, 100), (100, 40)])
def test_crop_keeps_the_middle_and_the_proportions(tmp_path, shape):
    pixels = np.zeros(shape, dtype=np.uint8)
    middle = tuple(slice(side // 2 - 20, side // 2 + 20) for side in shape)
    pixels[middle] = 255
    found = read(saved(tmp_path, pixels), mode="L")[0]
    # The pixels at the border take a little from outside.
    assert (found[1:-1, 1:-1] == 255).all() and found.min() > 200


def test_pad_keeps_everything_and_the_proportions(tmp_path):
    found = read(saved(tmp_path, np.full((50, 100), 255, dtype=np.uint8)), resize="pad", mode="L")
    assert (found[0, 5:15] == 255).all()
    assert (found[0, :5] == 0).all() and (found[0, 15:] == 0).all()


def test_stretch_keeps_everything(tmp_path):
    pixels = np.zeros((40, 100), dtype=np.uint8)
    pixels[:, 50:] = 255
    found = read(saved(tmp_path, pixels), resize="stretch", mode="L")
    assert (found[0, :, :9] == 0).all() and (found[0, :, 11:] == 255).all()


@pytest.mark.parametrize("resize", ["crop", "pad", "stretch"])
def test_every_size_becomes_the_wanted_one(tmp_path, resize):
    for shape in [(1, 1), (7, 31), (300, 200)]:
        path = saved(tmp_path, np.full(shape, 100, dtype=np.uint8))
        found = read(path, (12, 30), resize=resize)
        assert found.shape == (3, 12, 30)
        if resize != "pad":
            assert (found == 100).all()


def test_large_jpegs_are_decoded_at_a_reduced_size_with_nearly_the_same_result(
    tmp_path, monkeypatch
):
    smooth = Image.fromarray(COLOURS).resize((640, 400), Image.Resampling.BICUBIC)
    path = saved(tmp_path, smooth, ".jpg", quality=95)
    reduced = read(path)
    monkeypatch.setattr("PIL.JpegImagePlugin.JpegImageFile.draft", lambda *_: None)
    error = np.abs(reduced.astype(int) - read(path).astype(int))
    assert error.mean() < 2


# What is refused


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".gif", ".tif", ".webp", ".bmp"])
def test_damaged_files_are_named(tmp_path, suffix):
    for damage in ["cut", "text", "empty", "missing"]:
        path = saved(tmp_path, COLOURS, suffix)
        content = path.read_bytes()
        contents = {"cut": content[: len(content) // 2], "text": b"no image", "empty": b""}
        path.unlink()
        if damage != "missing":
            path.write_bytes(contents[damage])
        with pytest.raises(OSError, match=rf"image\{suffix} cannot be read as an image: "):
            read(path)


def test_formats_that_call_other_programs_are_not_opened(tmp_path):
    path = tmp_path / "image.png"
    path.write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 20 20\n")
    with pytest.raises(OSError, match=r"image.png cannot be read"):
        read(path)


def test_images_that_unpack_to_too_much_are_refused(tmp_path, monkeypatch):
    path = saved(tmp_path, COLOURS)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    with pytest.raises(OSError, match=r"image.png cannot be read .* exceeds limit"):
        read(path)


# As X


def written(folder):
    """Return the paths of twenty-four files of different sizes."""
    for k in range(24):
        pixels = RNG.integers(0, 256, size=(10 + k, 30 - k, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{k:02}.png")
    return [str(path) for path in sorted(folder.iterdir())]


@pytest.fixture
def paths(tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    return written(folder)


@pytest.fixture(scope="module")
def embedded(tmp_path_factory):
    """Return paths, and the embedding of the folder that holds them."""
    path = tmp_path_factory.mktemp("files")
    paths, folder = written(path), ImageFolder(path)
    return paths, small_images().fit(folder).transform(folder)


FORMS = {
    "list": list,
    "tuple": tuple,
    "Paths": lambda paths: list(map(Path, paths)),
    "array": np.array,
    "column of an array": lambda paths: np.array(paths)[:, None],
    "array of objects": lambda paths: np.array(paths, object),
    "Series": lambda paths: pd.Series(paths, index=range(5, 5 + len(paths))),
    "DataFrame": lambda paths: pd.DataFrame({"file": paths}),
    "polars": pl.Series,
}


@pytest.mark.parametrize("form", FORMS)
def test_paths_in_any_form_are_the_folder_that_holds_them(embedded, form):
    paths, expected = embedded
    X = FORMS[form](paths)
    fitted = small_images(kind="images" if form == "list" else "auto").fit(X)
    np.testing.assert_array_equal(fitted.transform(X), expected)
    assert fitted.get_feature_names_out(["file"]).shape == expected.shape[1:]


@pytest.mark.parametrize("memory_budget", [None, 0], ids=["once", "streamed"])
def test_images_get_the_size_of_their_kind(paths, tmp_path, memory_budget):
    folder = ImageFolder(Path(paths[0]).parent, size=12)
    expected = small_images().fit(folder).transform(folder)
    fitted = small_images(kind=Images(size=12), memory_budget=memory_budget).fit(paths)
    np.testing.assert_array_equal(fitted.transform(paths), expected)
    np.testing.assert_allclose(fitted.transform(paths[7:8]), expected[7:8], atol=1e-5)
    np.testing.assert_array_equal(reloaded(fitted, tmp_path).transform(paths), expected)
    steps = make_pipeline(RandomFlip(), small_images(kind=Images(size=12)))
    assert steps.fit_transform(paths).shape == expected.shape


def test_a_pretrained_network_gets_the_size_of_the_kind(paths):
    encoder = Pretrained(small_network(), mean=0.5, std=0.5)
    model = small(encoder=encoder, kind=Images(size=16)).fit(paths)
    folder = ImageFolder(Path(paths[0]).parent, size=16)
    np.testing.assert_array_equal(model.transform(paths), model.transform(folder))


def test_a_column_of_paths_stands_among_others_in_a_cross_validation(paths):
    table = pd.DataFrame(
        {"file": paths, "age": RNG.normal(size=24), "sex": RNG.choice(["f", "m"], 24)}
    )
    columns = make_column_transformer(
        (small_images(max_epochs=1), "file"),
        (StandardScaler(), ["age"]),
        (OneHotEncoder(sparse_output=False, handle_unknown="ignore"), ["sex"]),
    )
    model = make_pipeline(columns, LogisticRegression(max_iter=1000))
    assert np.isfinite(cross_val_score(model, table, np.arange(24) % 2, cv=3)).all()
    output = clone(columns).set_output(transform="pandas").fit_transform(table[::-1])
    assert output.index.tolist() == table.index[::-1].tolist()


def test_a_classifier_takes_paths(paths):
    y = np.where(np.arange(24) < 16, np.arange(24) % 2, -1)
    model = ContrastiveClassifier(small_images(max_epochs=1), blocks=[Raw()]).fit(paths, y)
    assert len(model.predict(paths[:3])) == 3


@pytest.mark.parametrize(
    ("spoil", "error", "message"),
    [
        (lambda paths: [*paths, "no/a.png"], FileNotFoundError, r"1 of 25 files .*no.a\.png"),
        (lambda paths: [*paths, None], TypeError, "item 24 is None"),
        (lambda paths: [np.nan, *paths][::-1], TypeError, "item 24 is nan"),
        (lambda paths: [None, *paths], TypeError, "item 0 is None"),
        (lambda paths: Path(paths[3]).write_bytes(b"-"), OSError, r"03\.png cannot be read as an"),
    ],
    ids=["missing", "none", "nan", "none first", "damaged"],
)
def test_files_that_cannot_be_read_are_named(paths, spoil, error, message):
    spoiled = spoil(paths)
    with pytest.raises(error, match=message):
        small_images().fit(spoiled if isinstance(spoiled, list) else paths)


COLUMN = [Image.fromarray(RNG.integers(0, 256, (12, 10, 3), dtype=np.uint8)) for _ in range(20)]
GREY = [image.convert("L") for image in COLUMN]


@pytest.mark.parametrize("images", [COLUMN, GREY], ids=["RGB", "L"])
def test_images_of_pillow_of_one_size_are_the_array_of_their_pixels(images):
    X = np.stack([np.atleast_3d(np.asarray(image)).transpose(2, 0, 1) for image in images])
    expected = small_images().fit(X).transform(X)
    np.testing.assert_array_equal(small_images().fit(images).transform(images), expected)
    labeled = [(image, 1) for image in images]
    np.testing.assert_array_equal(small_images().fit(labeled).transform(labeled), expected)


def test_images_of_pillow_of_several_sizes_need_one(paths):
    images = list(map(Image.open, paths))
    with pytest.raises(ValueError, match=r"one shape: .*get one size by kind=Images\(size=224\)"):
        small_images().fit(images)
    expected = small_images(kind=Images(size=12)).fit_transform(paths)
    np.testing.assert_array_equal(
        small_images(kind=Images(size=12)).fit_transform(images), expected
    )


def test_an_image_of_pillow_is_not_changed():
    clear = Image.fromarray(RNG.integers(0, 256, size=(8, 8, 4), dtype=np.uint8), "RGBA")
    before = clear.tobytes()
    assert as_pixels(clear, None).shape == (3, 8, 8)
    assert clear.tobytes() == before and clear.mode == "RGBA"


class Column(Items, Sequence):
    """A column of a Dataset of Hugging Face, which decodes an image when it is asked for."""

    def __getitem__(self, row):
        return self.items[row].copy()


class Table:
    """A Dataset of Hugging Face: rows are dicts, columns have names."""

    column_names = ("image", "label")

    def __len__(self):
        return len(COLUMN)

    def __getitem__(self, key):
        columns = {"image": Column(COLUMN), "label": [k % 2 for k in range(len(COLUMN))]}
        return columns[key] if isinstance(key, str) else {k: v[key] for k, v in columns.items()}

    def to_pandas(self):
        raise AssertionError("images are no table")


def test_datasets_of_torchvision_and_hugging_face_are_read():
    expected = small_images().fit(COLUMN).transform(COLUMN)
    for X in (Items(COLUMN, 1), Table()["image"]):
        np.testing.assert_array_equal(small_images().fit(X).transform(X), expected)
    with pytest.raises(TypeError, match=r"images in a column: pass X\['image'\], .* as y"):
        small_images().fit(Table())


def test_encoded_images_and_paths_in_columns_are_the_images(paths):
    data = [Path(path).read_bytes() for path in paths]
    kind = Images(size=16)
    expected = read_samples(paths, kind, estimator=small())[0][:]
    for X in (
        data,
        pl.Series(data),
        pa.array(data),
        [{"bytes": one, "path": None} for one in data],
        [{"bytes": None, "path": path} for path in paths],
        pa.array(paths),
        pl.Series(paths),
    ):
        np.testing.assert_array_equal(read_samples(X, kind, estimator=small())[0][:], expected)
