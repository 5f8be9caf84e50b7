"""Files that were made to do harm: nothing in them runs, and they take no memory."""

from __future__ import annotations

import os
import struct
import tracemalloc
import zlib

import pytest

from skcontrast.datasets import ImageFolder

POSIX = pytest.mark.skipif(os.name != "posix", reason="no such files there")


def peak_of(function, error, match):
    """Return the bytes that a function takes before it raises an error."""
    tracemalloc.start()
    try:
        with pytest.raises(error, match=match):
            function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


# Folders of images


def png(width, height):
    """Return an image file that is nothing but its size and no pixels."""

    def chunk(kind, content):
        checked = kind + content
        return struct.pack(">I", len(content)) + checked + struct.pack(">I", zlib.crc32(checked))

    size = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pixels = chunk(b"IDAT", zlib.compress(b""))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", size) + pixels + chunk(b"IEND", b"")


@pytest.mark.filterwarnings("ignore:Image size")
@pytest.mark.parametrize("side", [9_500, 13_000, 20_000, 2**31 - 1])
def test_images_of_more_pixels_than_pillow_allows_are_refused(tmp_path, side):
    pytest.importorskip("PIL")
    (tmp_path / "a.png").write_bytes(png(side, side))
    images = ImageFolder(tmp_path)
    assert peak_of(lambda: images[0], OSError, r"a.png cannot be read .* exceeds") < 2**22


@POSIX
def test_an_image_that_is_a_pipe_is_refused(tmp_path):
    pytest.importorskip("PIL")
    os.mkfifo(tmp_path / "a.png")
    with pytest.raises(OSError, match=r"a.png cannot be read as an image: it is not a file"):
        ImageFolder(tmp_path)[0]
