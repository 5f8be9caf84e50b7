"""fetch_cifar10 and fetch_cifar100."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest

from skcontrast.datasets import cifar, fetch_cifar10, fetch_cifar100
from tests.datasets.common import remote_file, tarred

RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 10, size=(12, 1), dtype=np.uint8)
PAIRS = np.column_stack([np.arange(6) % 2, [2, 0, 1, 2, 1, 0]]).astype(np.uint8)
PIXELS = RNG.integers(0, 256, size=(12, 3, 32, 32), dtype=np.uint8)


def records(labels, images):
    return np.column_stack([labels, images.reshape(len(images), -1)]).tobytes()


CIFAR10 = {
    f"{'test_batch' if k == 5 else f'data_batch_{k + 1}'}.bin": records(
        LABELS[2 * k : 2 * k + 2], PIXELS[2 * k : 2 * k + 2]
    )
    for k in range(6)
}
CIFAR100 = {
    "train.bin": records(PAIRS[:4], PIXELS[:4]),
    "test.bin": records(PAIRS[4:], PIXELS[4:6]),
    "fine_label_names.txt": b"apple\nbaby\nbear\n",
    "coarse_label_names.txt": b"fruit\npeople",
}


@pytest.fixture
def site(server, monkeypatch):
    """The server as the site of both sets."""
    for name, files in {"CIFAR10": CIFAR10, "CIFAR100": CIFAR100}.items():
        archive = getattr(cifar, name)
        content = tarred(archive.folder, files | {"readme.html": b"CIFAR"})
        remote = remote_file(server, archive.remote.name, content)
        monkeypatch.setattr(cifar, name, archive._replace(remote=remote))
    return server


@pytest.mark.parametrize(
    ("subset", "rows"), [("train", slice(10)), ("test", slice(10, 12)), ("all", slice(12))]
)
def test_cifar10_is_downloaded_once_and_read(site, home, subset, rows):
    data = fetch_cifar10(subset=subset, data_home=home)
    np.testing.assert_array_equal(data.data, PIXELS[rows])
    np.testing.assert_array_equal(data.target, LABELS[rows, 0])
    assert data.data.dtype == np.uint8 and data.target.dtype == np.int64
    assert data.data.flags.c_contiguous and data.data.flags.writeable
    assert data.target_names.tolist()[::9] == ["airplane", "truck"]
    assert f"{len(data.data)} colour images" in data.DESCR and subset in data.DESCR
    X, y = fetch_cifar10(subset=subset, data_home=home, return_X_y=True, download_if_missing=False)
    np.testing.assert_array_equal(X, data.data)
    np.testing.assert_array_equal(y, data.target)
    assert site.asked == ["cifar-10-binary.tar.gz"]


@pytest.mark.parametrize(
    ("subset", "rows"), [("train", slice(4)), ("test", slice(4, 6)), ("all", slice(6))]
)
def test_cifar100_has_classes_and_superclasses(site, home, subset, rows):
    data = fetch_cifar100(subset=subset, data_home=home)
    np.testing.assert_array_equal(data.data, PIXELS[:6][rows])
    np.testing.assert_array_equal(data.coarse_target, PAIRS[rows, 0])
    np.testing.assert_array_equal(data.target, PAIRS[rows, 1])
    assert data.target_names.tolist() == ["apple", "baby", "bear"]
    assert data.coarse_target_names.tolist() == ["fruit", "people"]
    X, y = fetch_cifar100(subset=subset, data_home=home, return_X_y=True)
    np.testing.assert_array_equal(X, data.data)
    np.testing.assert_array_equal(y, data.target)
    assert site.asked == ["cifar-100-binary.tar.gz"]


def test_an_altered_archive_is_refused_and_not_kept(site, home):
    site.files["cifar-10-binary.tar.gz"] = site.files["cifar-10-binary.tar.gz"][:-1] + b"x"
    with pytest.raises(OSError, match=r"cifar-10-binary.tar.gz .* not the expected"):
        fetch_cifar10(data_home=home, delay=0.0)
    assert not list((home / "cifar10").iterdir())


def test_a_missing_batch_is_named(site, home):
    fetch_cifar10(data_home=home)
    (home / "cifar10" / "cifar-10-batches-bin" / "data_batch_3.bin").unlink()
    with pytest.raises(OSError, match=r"data_batch_3.bin not found"):
        fetch_cifar10(data_home=home, download_if_missing=False)
    assert len(fetch_cifar10(subset="test", data_home=home, download_if_missing=False).data) == 2
    assert len(fetch_cifar10(data_home=home).data) == 10


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (CIFAR10["test_batch.bin"][:-1], "has 6145 bytes, not 3073 for each of 1 to 10000"),
        (b"\x0a" + bytes(3072), "labels that are none of the 10 classes"),
    ],
)
def test_damaged_files_are_named(site, home, content, message):
    fetch_cifar10(data_home=home)
    (home / "cifar10" / "cifar-10-batches-bin" / "test_batch.bin").write_bytes(content)
    with pytest.raises(OSError, match=f"test_batch.bin cannot be read: .*{message}"):
        fetch_cifar10(subset="test", data_home=home)


@pytest.mark.parametrize("fetch", [fetch_cifar10, fetch_cifar100])
@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("subset", "unlabeled"),
        ("subset", None),
        ("n_retries", -1),
        ("delay", -0.5),
        ("timeout", 0.0),
        ("verbose", "yes"),
    ],
)
def test_parameters_are_checked_before_the_download(site, home, fetch, parameter, value):
    with pytest.raises(ValueError, match=f"The '{parameter}' parameter of {fetch.__name__}"):
        fetch(data_home=home, **{parameter: value})
    assert not site.asked and not home.exists()


# The real set

SHA256 = {
    "data_batch_1": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
    "data_batch_2": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
    "data_batch_3": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
    "data_batch_4": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
    "data_batch_5": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
    "test_batch": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
}


def decoded(path):
    """Return classes and images; differences of the planes G, R − G and B − G are stored."""
    with np.load(path, allow_pickle=False) as stored:
        sums = np.cumsum(stored["d"], axis=2, dtype=np.uint8)
        sums = np.cumsum(sums, axis=3, dtype=np.uint8)
        return stored["y"], np.stack([sums[1] + sums[0], sums[0], sums[2] + sums[0]], axis=1)


@pytest.mark.parametrize("batch", SHA256)
def test_the_real_batches_are_read(home, batch):
    data = Path(os.environ.get("SKCONTRAST_DATA", ""))
    path = data / f"cifar10_{batch.replace('_batch', '').replace('data', 'batch')}.npz"
    if not path.exists():
        pytest.skip("SKCONTRAST_DATA names no folder with the batches of CIFAR-10")
    y, X = decoded(path)
    content = records(y, X)
    assert hashlib.sha256(content).hexdigest() == SHA256[batch]
    folder = home / "cifar10" / "cifar-10-batches-bin"
    folder.mkdir(parents=True)
    subset = "test" if batch == "test_batch" else "train"
    names = CIFAR10 if subset == "train" else ["test_batch.bin"]
    for name in names:
        (folder / name).write_bytes(content)
    images, classes = fetch_cifar10(
        subset=subset, data_home=home, download_if_missing=False, return_X_y=True
    )
    np.testing.assert_array_equal(images[-10_000:], X)
    np.testing.assert_array_equal(classes[-10_000:], y)
    assert np.bincount(classes[-10_000:]).min() > 900
