"""The tests of `tests/ops/image/test_images.py` that need names of TensorFlow 1."""

from __future__ import annotations

import numpy as np
import pytest

import estimatorkit as tf
from tests.golden.snippets_images import IMAGE_ERRORS, IMAGES, LEGACY, pixels
from tests.ops.image.test_images import test_errors as check_errors, test_results as check_results


@pytest.mark.slow
def test_random_changes_follow_seed_and_bounds() -> None:
    with tf.Graph().as_default():
        tf.set_random_seed(7)
        image = tf.constant(pixels(8))
        changed = [
            tf.image.random_flip_left_right(image),
            tf.image.random_flip_up_down(image[0]),
            tf.image.random_brightness(image, max_delta=0.2),
            tf.image.random_contrast(image, lower=0.5, upper=1.5),
            tf.image.random_hue(image, max_delta=0.1),
            tf.image.random_saturation(image, lower=0.5, upper=1.5),
            tf.image.random_crop(image, [8, 4, 3, 3]),
            tf.image.random_jpeg_quality(image[0], 50, 90),
        ]
        assert [each.shape.as_list()[-3:] for each in changed] == [[6, 5, 3]] * 6 + [
            [4, 3, 3],
            [6, 5, 3],
        ]
        with tf.Session() as session:
            first, second = session.run(changed), session.run(changed)
        with tf.Session() as session:
            again = session.run(changed)
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert sum(not np.array_equal(a, b) for a, b in zip(first, second, strict=True)) >= 6
    flips = [np.array_equal(a, b) for a, b in zip(first[0], pixels(8), strict=True)]
    assert 0 < sum(flips) < 8
    assert all(
        np.array_equal(a[:, ::-1], b)
        for a, b, kept in zip(first[0], pixels(8), flips, strict=True)
        if not kept
    )


def test_distorted_boxes_cover_object_within_bounds() -> None:
    objects = np.array([[[0.2, 0.3, 0.6, 0.7]]], np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        begin, size, box = tf.image.sample_distorted_bounding_box(
            [60, 80, 3],
            bounding_boxes=objects,
            seed=3,
            min_object_covered=0.8,
            aspect_ratio_range=[0.8, 1.25],
            area_range=[0.1, 0.9],
            max_attempts=200,
            use_image_if_no_bounding_boxes=True,
        )
        cut = tf.slice(tf.zeros([60, 80, 3]), begin, size)
        assert (begin.shape, size.shape, box.shape) == ([3], [3], [1, 1, 4])
        found = [session.run([begin, size, box]) for _ in range(30)]
        assert session.run(tf.rank(cut)) == 3
    for (y, x, _), (tall, wide, _), places in found:
        assert 0.75 < wide / tall < 1.35
        assert 0.09 < tall * wide / 4800 < 0.91
        np.testing.assert_allclose(
            places[0, 0], [y / 60, x / 80, (y + tall) / 60, (x + wide) / 80], rtol=1e-6
        )
        down = min(36, y + tall) - max(12, y)
        along = min(56, x + wide) - max(24, x)
        assert down * along >= 0.8 * 24 * 32 - 1e-3
    assert len({tuple(begin) for begin, _, _ in found}) > 5


@pytest.mark.parametrize("name", sorted(IMAGES.keys() & LEGACY))
def test_results(name: str) -> None:
    check_results(name)


@pytest.mark.parametrize("name", sorted(IMAGE_ERRORS.keys() & LEGACY))
def test_errors(name: str) -> None:
    check_errors(name)
