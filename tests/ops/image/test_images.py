"""Images against TensorFlow's results, damaged and oversized files, random distortions."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import estimatorkit as tf
from tests.golden.golden_files import error_of
from tests.golden.snippets_images import FILES, IMAGE_ERRORS, IMAGES, LEGACY, pixels
from tests.golden.snippets_sparse import run_arrays
from tests.sweep import sweep

FOLDER = Path(__file__).parents[2] / "golden"
GOLDEN = json.loads((FOLDER / "images.json").read_text("utf-8"))
ARRAYS: dict[str, NDArray[Any]] = dict(np.load(FOLDER / "images.npz"))
STORED = {
    key.removeprefix("files/"): array.tobytes()
    for key, array in ARRAYS.items()
    if key.startswith("files/")
}

# Decoders of JPEG may round differently.
COARSE = {"image": 8, "jpeg": 8}


def check(name: str, values: list[Any], shapes: list[Any]) -> None:
    wanted = GOLDEN["shapes"][name]
    assert len(values) == len(wanted)
    for at, (value, shape, known) in enumerate(zip(values, shapes, wanted, strict=True)):
        expected = ARRAYS[f"{name}/{at}"]
        assert value.dtype == expected.dtype, at
        assert value.shape == expected.shape, at
        off = COARSE.get(name, 0 if value.dtype.kind in "iub" else 1e-4)
        np.testing.assert_allclose(
            value.astype(np.float64), expected.astype(np.float64), rtol=0, atol=off, err_msg=str(at)
        )
        if known is not None:
            assert shape is not None, at
            assert all(b in (None, a) for a, b in zip(shape, known, strict=True)), (at, shape)


@sweep("name", sorted(IMAGES.keys() - LEGACY), quick=10)
def test_results(name: str) -> None:
    check(name, *run_arrays(tf, IMAGES[name]))


@pytest.mark.parametrize("name", sorted(FILES))
def test_files(name: str) -> None:
    check(name, *run_arrays(tf, lambda tf: FILES[name](tf, STORED)))


DIFFERENT_ERRORS: dict[str, tuple[str, str]] = {}


@pytest.mark.parametrize("name", sorted(IMAGE_ERRORS.keys() - LEGACY))
def test_errors(name: str) -> None:
    got = error_of(lambda: run_arrays(tf, lambda tf: IMAGE_ERRORS[name](tf, STORED)))
    expected = DIFFERENT_ERRORS.get(name, (GOLDEN["errors"][name]["class"], ""))[0]
    assert got is not None
    assert got["class"] == expected, got


# -- what is not to be trusted


def png(width: int, height: int) -> bytes:
    """A PNG file of these sizes, whose pixels compress to nothing."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check_sum = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check_sum

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b""))


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize("size", [(12_000, 12_000), (100_000, 100_000), (2**31 - 1, 2**31 - 1)])
def test_decompression_bombs_are_refused(size: tuple[int, int]) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        image = tf.image.decode_png(png(*size))
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"too large|exceeds limit"):
            session.run(image)


def test_damaged_image_decodes_or_raises() -> None:
    rng = np.random.default_rng(0)
    with tf.Graph().as_default(), tf.Session() as session:
        contents = tf.placeholder(tf.string, [])
        image = tf.image.decode_image(contents)
        refused = 0
        for kind in ("jpeg", "png", "gif", "bmp", "wide_png"):
            data = bytearray(STORED[kind])
            cuts = [bytes(data[:length]) for length in range(0, len(data), len(data) // 12)]
            for _ in range(25):
                damaged = bytearray(data)
                for at in rng.integers(len(data), size=3):
                    damaged[at] = rng.integers(256)
                cuts.append(bytes(damaged))
            for each in cuts:
                try:
                    assert session.run(image, {contents: each}).dtype == np.uint8
                except tf.errors.InvalidArgumentError:
                    refused += 1
    assert refused > 40


def test_truncated_jpeg_recovery() -> None:
    cut = STORED["jpeg"][:-20]
    with tf.Graph().as_default(), tf.Session() as session:
        assert session.run(tf.image.decode_jpeg(cut, try_recover_truncated=True)).shape == (6, 5, 3)


# -- random changes


# -- the rest


def test_computed_sizes_and_offsets() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        image = tf.placeholder(tf.float32, [None, None, 3])
        size = tf.placeholder(tf.int32, [2])
        half = tf.shape(image)[:2] // 2
        made = [
            tf.image.resize(image, size),
            tf.image.resize(image, half),
            tf.image.crop_to_bounding_box(image, size[0] - 3, 1, half[0], half[1]),
            tf.image.central_crop(image, 0.5),
            tf.image.rot90(image),
            tf.image.resize_image_with_crop_or_pad(image, 7, 4),
            tf.image.resize_with_pad(image, 7, 4),
            tf.image.flip_left_right(image),
        ]
        assert made[5].shape == [7, 4, 3]
        assert made[6].shape == [7, 4, 3]
        feeds = {image: pixels()[0], size: [4, 9]}
        found = session.run(made, feeds)
    shapes = [each.shape[:2] for each in found]
    assert shapes == [(4, 9), (3, 2), (3, 2), (4, 3), (5, 6), (7, 4), (7, 4), (6, 5)]
    np.testing.assert_array_equal(found[2], pixels()[0, 1:4, 1:3])


def test_antialiased_downscaling() -> None:
    """Antialiased, a checkerboard becomes gray; by points it does not."""
    board = np.indices((8, 8)).sum(0)[..., None] % 2
    with tf.Graph().as_default(), tf.Session() as session:
        image = tf.constant(board.astype(np.float32))
        soft = {
            method: tf.image.resize(image, [4, 4], method, antialias=True)
            for method in ("bilinear", "lanczos3", "gaussian", "mitchellcubic", "bicubic")
        }
        hard = tf.image.resize(image, [4, 4])
        smooth, points = session.run([soft, hard])
    for value in smooth.values():
        np.testing.assert_allclose(value, 0.5, atol=0.06)
    assert set(points.ravel().tolist()) == {0.0}
    with pytest.raises(ValueError, match="did you mean 'lanczos3'"), tf.Graph().as_default():
        tf.image.resize(np.zeros([2, 2, 1], np.float32), [1, 1], "lanczos33")


def test_encode_then_decode() -> None:
    image = pixels()[0]
    gray = pixels(channels=1)[0].astype(np.uint16) * 251
    with tf.Graph().as_default(), tf.Session() as session:
        again = [
            tf.image.decode_png(tf.image.encode_png(image, compression=9)),
            tf.image.decode_png(tf.image.encode_png(gray), dtype=tf.uint16),
            tf.image.decode_jpeg(
                tf.image.encode_jpeg(image, quality=100, chroma_downsampling=False)
            ),
            tf.image.encode_png(pixels(3)),
        ]
        plain, wide, lossy, several = session.run(again)
    np.testing.assert_array_equal(plain, image)
    np.testing.assert_array_equal(wide, gray)
    assert np.abs(lossy.astype(int) - image).max() < 12
    assert several.shape == (3,)


def test_sixteen_bit_color_is_not_written() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        file = tf.image.encode_png(pixels()[0].astype(np.uint16))
        with pytest.raises(tf.errors.UnimplementedError, match="16 bits"):
            session.run(file)
