"""`contrib.image`: rotations, translations and their compositions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import estimatorkit.compat.v1 as tf

image = tf.contrib.image
SQUARE = np.arange(9).reshape(3, 3).astype(np.uint8)


def values_of(*tensors: Any) -> list[Any]:
    with tf.Session() as session:
        return session.run(list(tensors))


@pytest.mark.slow
def test_rotations_and_translations() -> None:
    with tf.Graph().as_default():
        turned = image.rotate(SQUARE, np.pi / 2)
        both = image.rotate(np.stack([SQUARE, SQUARE])[..., None], [0.0, np.pi], "BILINEAR")
        moved = image.translate(SQUARE, [1.0, -1.0])
        half = image.translate(SQUARE.astype(np.float32), [-0.5, 0.0], "bilinear")
        assert (turned.shape.as_list(), turned.dtype) == ([3, 3], tf.uint8)
        found = values_of(turned, both, moved, half)
    np.testing.assert_array_equal(found[0], np.rot90(SQUARE))
    np.testing.assert_array_equal(found[1][0, ..., 0], SQUARE)
    np.testing.assert_array_equal(found[2], [[0, 3, 4], [0, 6, 7], [0, 0, 0]])
    np.testing.assert_allclose(found[3][:, :2], SQUARE[:, :2] + 0.5)
    np.testing.assert_allclose(found[3][:, 2], SQUARE[:, 2] / 2)


def test_compositions_sizes_and_gradients() -> None:
    with tf.Graph().as_default():
        shift = image.translations_to_projective_transforms([1.0, 0.0])
        unknown = tf.placeholder_with_default(SQUARE.astype(np.float32)[..., None], [None] * 3)
        twice = image.transform(unknown, image.compose_transforms(shift, shift))
        larger = image.transform(unknown, shift, output_shape=[2, 5])
        gradient = tf.gradients(larger * 3.0, unknown)[0]
        assert larger.shape.as_list() == [2, 5, None]
        found = values_of(twice[..., 0], larger[..., 0], gradient[..., 0])
    np.testing.assert_array_equal(found[0], [[0, 0, 0], [0, 0, 3], [0, 0, 6]])
    np.testing.assert_array_equal(found[1], [[0, 0, 1, 2, 0], [0, 3, 4, 5, 0]])
    np.testing.assert_array_equal(found[2], [[3, 3, 3], [3, 3, 3], [0, 0, 0]])


def test_errors() -> None:
    with tf.Graph().as_default():
        with pytest.raises(TypeError, match="Images should have rank"):
            image.transform(tf.zeros([3]), [1.0] * 8)
        with pytest.raises(TypeError, match="Transforms should have rank"):
            image.transform(SQUARE, 1.0)
        with pytest.raises(TypeError, match="Invalid dtype"):
            image.transform(tf.zeros([2, 2], tf.bool), [1.0] * 8)
        with pytest.raises(ValueError, match="output_shape must be a 1-D Tensor"):
            image.transform(SQUARE, [1.0] * 8, output_shape=3)
        with pytest.raises(ValueError, match="no such interpolation"):
            image.transform(SQUARE, [1.0] * 8, "BICUBIC")
