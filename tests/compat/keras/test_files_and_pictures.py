"""The tests of `tests/keras/test_files_and_pictures.py` that need names of TensorFlow 1."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import estimatorkit as tf

image = tf.keras.preprocessing.image


def test_images_and_arrays(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (6, 4, 3))
    image.save_img(tmp_path / "a.png", pixels, scale=False)
    loaded = image.load_img(tmp_path / "a.png")
    assert loaded.size == (4, 6)
    array = image.img_to_array(loaded)
    assert array.dtype == np.float32
    np.testing.assert_array_equal(array, pixels)
    channels_first = image.img_to_array(loaded, data_format="channels_first")
    np.testing.assert_array_equal(channels_first, np.transpose(pixels, (2, 0, 1)))
    again = image.array_to_img(channels_first, "channels_first", scale=False)
    np.testing.assert_array_equal(np.asarray(again), pixels)
    small = image.load_img(tmp_path / "a.png", target_size=(3, 2), color_mode="grayscale")
    assert image.img_to_array(small).shape == (3, 2, 1)
    cut = image.load_img(tmp_path / "a.png", target_size=(4, 4), keep_aspect_ratio=True)
    np.testing.assert_array_equal(image.img_to_array(cut), pixels[1:5])
    stretched = np.asarray(image.array_to_img([[[-1.0], [0.0], [1.0]]]))
    assert stretched.tolist() == [[0, 127, 255]]
    with pytest.raises(ValueError, match="did you mean 'rgb'"):
        image.load_img(tmp_path / "a.png", color_mode="rbg")
    with pytest.raises(ValueError, match="rank 3"):
        image.array_to_img(np.zeros([2, 2]))
    with pytest.raises(ValueError, match="channel number: 2"):
        image.array_to_img(np.zeros([2, 2, 2]))
