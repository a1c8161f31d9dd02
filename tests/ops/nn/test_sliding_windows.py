"""Window arguments in all forms that TensorFlow accepts, and the padding they imply."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from jax import lax

from estimatorkit import nn
from estimatorkit.ops.nn.sliding_windows import (
    as_padding,
    as_spatial,
    is_channels_first,
    window_pads,
    window_reach,
)


@pytest.mark.parametrize(
    ("given", "first", "wanted"),
    [
        (None, False, (1, 1)),
        (3, False, (3, 3)),
        ([3], False, (3, 3)),
        ((3, 2), True, (3, 2)),
        ([1, 3, 2, 1], False, (3, 2)),
        ([1, 1, 3, 2], True, (3, 2)),
    ],
)
def test_spatial_arguments(given: Any, first: bool, wanted: tuple[int, int]) -> None:
    assert as_spatial(given, 2, first, "strides") == wanted


@pytest.mark.parametrize(
    ("given", "first", "words"),
    [
        ([1, 2, 3], False, "strides should be of length 1, 2 or 4 but was 3"),
        ([], False, "strides should be of length 1, 2 or 4 but was 0"),
        ([2, 3, 2, 1], False, "strides in the batch and depth dimensions"),
        ([1, 3, 2, 1], True, "strides in the batch and depth dimensions"),
        (0, False, "strides must be positive"),
        ([1, 2, -2, 1], False, "strides must be positive"),
    ],
)
def test_invalid_spatial_arguments(given: Any, first: bool, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        as_spatial(given, 2, first, "strides")


def test_padding() -> None:
    assert as_padding("same", 2, False) == "SAME"
    assert as_padding([(1, 2), [3, 4]], 2, True) == ((1, 2), (3, 4))
    assert as_padding([(0, 0), (1, 2), (3, 4), (0, 0)], 2, False) == ((1, 2), (3, 4))
    assert as_padding([(0, 0), (0, 0), (1, 2), (3, 4)], 2, True) == ((1, 2), (3, 4))
    for given in ("FULL", None, 3, [(1, 2)], [(1, 2), (3, 4), (5, 6)], [1, 2, 3, 4]):
        with pytest.raises(ValueError, match="2 or 4 pairs of numbers"):
            as_padding(given, 2, False)
    with pytest.raises(ValueError, match="Nonzero explicit padding in the batch or depth"):
        as_padding([(0, 0), (0, 0), (1, 2), (3, 4)], 2, False)


def test_data_formats() -> None:
    for form, first in (("NHWC", False), ("NCHW", True), ("NCW", True), (None, False)):
        assert is_channels_first(form) == first
    with pytest.raises(ValueError, match="data_format is none of its values"):
        is_channels_first("HWCN")


def test_channels_last_only() -> None:
    image = np.zeros((1, 2, 2, 1), np.float32)
    with pytest.raises(ValueError, match="Data formats other than 'NHWC'"):
        nn.max_pool_with_argmax(image, 2, 1, "SAME", data_format="NCHW")


@pytest.mark.parametrize("dilations", [(1, 1), (2, 3)])
@pytest.mark.parametrize("strides", [(1, 1), (2, 3), (5, 1)])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_padding_matches_jax(
    dilations: tuple[int, int], strides: tuple[int, int], padding: str
) -> None:
    lengths, window = (9, 8), (3, 2)
    reach = [window_reach(*each) for each in zip(window, dilations, strict=True)]
    found = window_pads(lengths, window, strides, padding, dilations)
    assert found == lax.padtype_to_pads(lengths, reach, strides, padding)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (
            lambda tf: tf.nn.conv2d_transpose(
                tf.ones([1, 5, 5, 2]), tf.ones([3, 3, 2, 2]), [1, 9, 12, 2], 2
            ),
            "out_backprop doesn't match computed: actual = 5, computed = 6 spatial_dim: 2",
        ),
        (
            lambda tf: tf.nn.conv2d_backprop_filter(
                tf.ones([1, 5, 5, 2]), [3, 3, 2, 2], tf.ones([1, 3, 5, 2]), 1, "SAME"
            ),
            "out_backprop doesn't match computed: actual = 3, computed = 5 spatial_dim: 1",
        ),
        (
            lambda tf: tf.nn.conv2d_backprop_filter(
                tf.ones([2, 5, 5, 2]), [3, 3, 2, 2], tf.ones([1, 5, 5, 2]), 1, "SAME"
            ),
            "same batch size. Input batch: 2",
        ),
        (
            lambda tf: tf.nn.conv2d_transpose(
                tf.placeholder_with_default(np.ones([1, 5, 5, 2], np.float32), None),
                *(tf.ones([3, 3, 2, 3]), [1, 5, 5, 2], 1),
            ),
            "same out_depth",
        ),
    ],
)
def test_gradients_of_wrong_shape_raise(made: Any, words: str) -> None:
    import estimatorkit as tf

    refused = pytest.raises(tf.errors.InvalidArgumentError, match=words)
    with tf.Graph().as_default(), tf.Session() as session, refused:
        session.run(made(tf))
