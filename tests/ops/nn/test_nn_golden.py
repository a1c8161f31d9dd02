"""`tf.nn` against TensorFlow's results: values, gradients, static shapes, errors.

Then what no golden file can hold: random numbers (by their properties) and channels first (which
TensorFlow does not compute on a CPU).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from tests.golden.golden_files import error_of
from tests.golden.snippets_nn import LEGACY, NN, NN_ERRORS, numbers
from tests.golden.snippets_sparse import run_arrays
from tests.sweep import sweep

FOLDER = Path(__file__).parents[2] / "golden"
GOLDEN = json.loads((FOLDER / "nn.json").read_text("utf-8"))
ARRAYS = dict(np.load(FOLDER / "nn.npz"))

DIFFERENT_SHAPES = {"ctc_v2": {3}}  # depends on values; TensorFlow computes constants beforehand

# Words of TensorFlow 2.15's messages that ours begin with, too.
WORDS = {
    "softmax_no_labels": "Both `labels` and `logits` must be provided for",
    "sparse_no_logits": "Both `labels` and `logits` must be provided for",
    "weighted_shapes": "`logits` and `labels` must have the same shape, received ((2, 3) vs (2, 1)",
    "poisson_shapes": "`log_input` and `targets` must have the same shape, received ((2, 3) vs",
    "sparse_scalar_logits": "`logits` cannot be a scalar. Received logits=Tensor(",
    "sparse_float_labels": "Value passed to parameter 'labels' has DataType float32 not in list of",
    "average_of_scalar": "Invalid value passed for `per_example_loss`. Expected a tensor with at ",
    "average_by_float": "global_batch_size must be an integer.",
    "average_by_vector": "global_batch_size must be scalar.",
    "average_by_less": "global_batch_size must be non-negative.",
    "softmax_of_integers": "Value passed to ",
    "softmax_axis": "`dim` must be in the range [-2, 2) where 2 is the number of dimensions in",
    "bias_rank": "Shape must be at least rank 2 but is rank 1",
    "dropout_rate": "`rate` must be a scalar tensor or a float in the range [0, 1)",
    "dropout_keep": "`rate` must be a scalar tensor or a float in the range [0, 1)",
    "dropout_nothing": "`rate` must be provided",
    "dropout_integers": "`x.dtype` must be a floating point tensor as `x` will be scaled",
    "conv2d_channels": "Depth of input (3) is not a multiple of input depth of filter (2)",
    "conv2d_too_large": "Negative dimension size caused by subtracting 7 from 5",
    "conv2d_rank": "Shape must be rank 4 but is rank 3",
    "pool_too_large": "Negative dimension size caused by subtracting 7 from 5",
    "groups_outputs": "Depth of output (5) is not a multiple of the number of groups (2)",
    "pool_dilated_same": "pooling with 'SAME' padding is not implemented for `dilation_rate` > 1",
    "pool_dilated_strides": "`strides > 1` not supported in conjunction with `dilation_rate > 1`",
    "pool_dilations": "`len(dilation_rate)` should be 2",
    "pool_rank": "Shape must be rank 4 but is rank 1",
    "fused_no_mean": "Both `mean` and `variance` must be",
    "top_k_too_many": "input must have last dimension >= k = 4 but is 3",
    "in_top_k_rows": "Dimensions must be equal, but are ",
    "embedding_nothing": "Length of params is currently 0. Need at least one param.",
    "embedding_none": "params must be specified",
    "embedding_strategy": "Unrecognized partition strategy: any.",
    "sparse_dense_ids": "sp_ids must be SparseTensor, got <class 'list'>",
    "sparse_combiner": "combiner must be one of 'mean', 'sqrtn' or 'sum', got max",
    "sparse_dense_weights": "sp_weights must be either None or SparseTensor,",
    "safe_nothing": "Missing embedding_weights [].",
    "ctc_dense_labels": "Expected argument `labels` to be a SparseTensor. Received labels=[[0]]",
    "ctc_rank": "Shape must be rank 3 but is rank 2",
    "ctc_lengths": "sequence_length(1) <= 7",
    "greedy_lengths": "sequence_length(0) <= 3",
    "beams_paths": "requested more paths than the beam width",
    "beams_leaves": "Less leaves in the beam search than requested",
    "sampler_too_many": "Sampler's range is too small",
    "unigrams_missing": "Must provide either vocab_file or unigrams",
}


@sweep("name", sorted(NN.keys() - LEGACY), quick=7)
def test_results(name: str) -> None:
    values, shapes = run_arrays(tf, NN[name])
    wanted = GOLDEN["shapes"][name]
    assert len(values) == len(wanted)
    for at, (found, shape, known) in enumerate(zip(values, shapes, wanted, strict=True)):
        expected = ARRAYS[f"{name}/{at}"]
        assert found.dtype == expected.dtype, at
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-5, err_msg=str(at))
        if known is not None and at not in DIFFERENT_SHAPES.get(name, ()):
            assert all(b in (None, a) for a, b in zip(shape, known, strict=True)), (at, shape)


@pytest.mark.parametrize("name", sorted(NN_ERRORS.keys() - LEGACY))
def test_errors(name: str) -> None:
    got, golden = error_of(lambda: run_arrays(tf, NN_ERRORS[name])), GOLDEN["errors"][name]
    assert got is not None
    assert got["class"] == golden["class"], got
    words = WORDS.get(name, "")
    assert golden["first_line"].startswith(words)
    assert got["first_line"].startswith(words)


@pytest.mark.parametrize("kind", ["softmax", "sparse_softmax", "sigmoid"])
def test_losses_require_keyword_arguments(kind: str) -> None:
    """As until TensorFlow 2.14: the order has changed once."""
    with pytest.raises(ValueError, match=r"Only call `.*_with_logits` with named arguments"):
        getattr(tf.nn, f"{kind}_cross_entropy_with_logits")(tf.ones([2, 3]), tf.ones([2, 3]))


def test_channels_first_matches_channels_last() -> None:
    x, w = numbers(0, 2, 7, 6, 4), numbers(1, 3, 2, 4, 6)
    line, volume = numbers(2, 2, 9, 3), numbers(3, 1, 4, 5, 6, 2)
    pairs = []

    def both(function: Any, value: Any, *arguments: Any, **lists: Any) -> None:
        """Options that are lists have an entry for each dimension."""

        def moved(given: Any) -> Any:
            return [given[0], given[-1], *given[1:-1]] if isinstance(given, list) else given

        first = tf.constant(np.moveaxis(value, -1, 1).copy())
        layout = {3: "NCW", 4: "NCHW", 5: "NCDHW"}[value.ndim]
        turned = {key: moved(given) for key, given in lists.items()}
        one = function(tf.constant(value), *arguments, **lists)
        other = function(first, *arguments, data_format=layout, **turned)
        pairs.append([each[0] if isinstance(each, tuple) else each for each in (one, other)])

    nn, same = tf.nn, "SAME"
    explicit = [[0, 0], [1, 2], [0, 1], [0, 0]]
    both(nn.conv2d, x, w, strides=[1, 2, 1, 1], padding=same)
    both(nn.conv2d, x, w, strides=1, padding=explicit)
    both(nn.conv2d, x, w, strides=1, padding=same, dilations=[1, 2, 1, 1])
    both(nn.conv1d, line, numbers(4, 3, 3, 4), stride=2, padding=same)
    both(nn.conv3d, volume, numbers(5, 2, 3, 2, 2, 3), strides=[1, 1, 2, 1, 1], padding=same)
    turned = w.transpose(0, 1, 3, 2)
    both(nn.conv2d_transpose, x, turned, output_shape=[2, 14, 12, 6], strides=[1, 2, 2, 1])
    both(nn.depthwise_conv2d, x, w[..., :2], strides=[1, 2, 2, 1], padding=same)
    both(nn.max_pool, x, ksize=[1, 3, 2, 1], strides=[1, 2, 1, 1], padding=same)
    both(nn.avg_pool, x, 3, 2, same)
    both(nn.fused_batch_norm, x, numbers(6, 4), numbers(7, 4))
    both(nn.bias_add, x, numbers(8, 4))
    with tf.Session() as session:
        for at, (last, other) in enumerate(session.run(pairs)):
            np.testing.assert_allclose(
                np.moveaxis(other, 1, -1), last, rtol=1e-5, atol=1e-5, err_msg=str(at)
            )


def test_grouped_convolutions() -> None:
    """Each group of channels is convolved alone, also backwards and with channels first."""
    x, w, dy = numbers(0, 2, 5, 6, 4), numbers(1, 3, 2, 2, 6), numbers(2, 2, 3, 3, 6)
    x_first = np.moveaxis(x, -1, 1).copy()
    steps, same, sizes = [1, 2, 2, 1], "SAME", [2, 5, 6, 4]
    whole = tf.nn.conv2d(x, w, steps, same)
    made = [
        whole,
        tf.nn.conv2d(x_first, w, [1, 1, 2, 2], same, data_format="NCHW"),
        tf.nn.conv2d_backprop_input(sizes, w, dy, steps, same),
        tf.nn.conv2d_backprop_filter(x, [3, 2, 2, 6], dy, steps, same),
    ]
    parts = []
    for at in range(2):
        seen, kernel, part = x[..., 2 * at :][..., :2], w[..., 3 * at :][..., :3], dy[..., 3 * at :]
        part = part[..., :3]
        parts.append(
            [
                tf.nn.conv2d(seen, kernel, steps, same),
                tf.nn.conv2d_backprop_input([2, 5, 6, 2], kernel, part, steps, same),
                tf.nn.conv2d_backprop_filter(seen, [3, 2, 2, 3], part, steps, same),
            ]
        )
    with tf.Session() as session:
        (out, first, back, kernels), alone = session.run([made, parts])
    joined = [np.concatenate(both, -1) for both in zip(*alone, strict=True)]
    np.testing.assert_allclose(out, joined[0], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(np.moveaxis(first, 1, -1), out, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(back, joined[1], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(kernels, joined[2], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("known", [True, False])
def test_filter_gradient_channel_mismatch(known: bool) -> None:
    x, dy = tf.ones([2, 5, 5, 3]), tf.ones([2, 5, 5, 4])
    sizes = [tf.constant([3, 3, 2, 4]), tf.constant([2, 5, 5, 3])]
    if not known:
        sizes = [tf.placeholder_with_default(each, [4]) for each in sizes]
    made = [
        tf.nn.conv2d_backprop_filter(x, sizes[0], dy, 1, "SAME"),
        tf.nn.conv2d_backprop_input(sizes[1], tf.ones([3, 3, 2, 4]), dy, 1, "SAME"),
    ]
    words = "input depth must be evenly divisible by filter depth: 3 vs 2"
    for each in made:
        with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=words):
            session.run(each)


def test_windows_of_dynamic_shapes() -> None:
    """Refused as TensorFlow's kernels do; empty where less than two strides are missing."""
    x = tf.placeholder(tf.float32, [2, None, None, 3])
    value = {x: np.ones([2, 5, 5, 3])}

    def made(size: int, step: int) -> list[Any]:
        return [
            tf.nn.conv2d(x, tf.ones([size, size, 3, 4]), step, "VALID"),
            tf.nn.max_pool(x, size, step, "VALID"),
            tf.nn.avg_pool(x, size, step, "VALID"),
        ]

    words = r"negative: -1 \[input_size: 5, effective_filter_size: 7, stride: 1\]"
    with tf.Session() as session:
        for empty in session.run([made(6, 1), made(7, 2)], value):
            assert [each.shape[1:3] for each in empty] == [(0, 0)] * 3
        for large in made(7, 1):
            with pytest.raises(tf.errors.InvalidArgumentError, match=words):
                session.run(large, value)


def test_dilated_pooling() -> None:
    """Of lengths that only the run tells, and with channels first."""
    x = tf.placeholder(tf.float32, [None, None, None, 2])
    value, options = numbers(0, 2, 7, 6, 2), {"dilation_rate": [2, 3]}
    last = tf.nn.pool(x, [2, 2], "MAX", "VALID", **options)
    turned = tf.transpose(x, [0, 3, 1, 2])
    first = tf.nn.pool(turned, [2, 2], "MAX", "VALID", data_format="NCHW", **options)
    with tf.Session() as session:
        found, other = session.run([last, first], {x: value})
    parts = [value[:, a : a + 5, b : b + 3] for a in (0, 2) for b in (0, 3)]
    np.testing.assert_array_equal(found, np.max(parts, 0))
    np.testing.assert_array_equal(np.moveaxis(other, 1, -1), found)


@pytest.mark.slow
def test_dropout() -> None:
    x = tf.constant(np.linspace(1, 2, 4000, dtype=np.float32).reshape(40, 100))
    fed = tf.placeholder_with_default(0.75, [])
    by_keep, by_rate = tf.nn.dropout(x, 0.25, seed=3), tf.nn.dropout(x, rate=fed, seed=4)
    rows = tf.nn.dropout(x, keep_prob=0.5, noise_shape=[40, 1], seed=5)
    slope = tf.gradients(by_rate, x)[0]
    whole = tf.nn.dropout(x, 1.0)
    with tf.Session() as session:
        kept, rated, together, gradient, same, start = session.run(
            [by_keep, by_rate, rows, slope, whole, x]
        )
        again, everything = session.run([by_keep, by_rate], {fed: 0.0})
    for found in (kept, rated):
        here = found != 0
        np.testing.assert_allclose(found[here], 4 * start[here], rtol=1e-6)
        assert abs(here.mean() - 0.25) < 0.035  # five standard deviations
    np.testing.assert_allclose(gradient, np.where(rated != 0, 4.0, 0.0))
    here = together != 0
    assert (here.all(1) | ~here.any(1)).all()
    assert here.any()
    assert not here.all()
    np.testing.assert_array_equal(same, start)
    np.testing.assert_array_equal(everything, start)
    assert (again != kept).any()  # another call draws other numbers
    with tf.Session() as session:  # another session draws the same
        np.testing.assert_array_equal(session.run(by_keep), kept)


def test_embedding_ids_of_higher_rank() -> None:
    """`safe_embedding_lookup_sparse` keeps all dimensions but the last of the ids."""
    table = tf.constant(numbers(0, 7, 3))
    places = [[0, 0, 0], [0, 1, 0], [0, 1, 1], [1, 1, 0]]
    ids = tf.SparseTensor(places, tf.constant([1, 2, 4, 6], tf.int64), [2, 2, 2])
    weights = tf.SparseTensor(places, [1.0, 3.0, 1.0, 2.0], [2, 2, 2])
    found = tf.nn.safe_embedding_lookup_sparse(table, ids, weights, combiner="mean")
    assert found.shape.as_list() == [2, 2, 3]
    rows = numbers(0, 7, 3)
    expected = np.zeros((2, 2, 3), np.float32)
    expected[0, 0], expected[0, 1] = rows[1], (3 * rows[2] + rows[4]) / 4
    expected[1, 1] = rows[6]
    with tf.Session() as session:
        np.testing.assert_allclose(session.run(found), expected, rtol=1e-5)


def test_argument_order_and_names_match_tensorflow() -> None:
    x, w = tf.constant(numbers(0, 2, 5, 5, 2)), tf.constant(numbers(1, 3, 3, 2, 2))
    native = tf.nn.depthwise_conv2d_native(x, w, [1, 1, 1, 1], "SAME", "NHWC", [1, 2, 2, 1], "own")
    assert native.name == "own:0"
    named = tf.nn.depthwise_conv2d_native(x, w, [1, 1, 1, 1], "SAME", dilations=[1, 2, 2, 1])
    assert named.name == "DepthwiseConv2dNative:0"
    pooled = [
        function(**{key: x}, ksize=2, strides=[1, 2, 2, 1], padding="VALID", data_format="NHWC")
        for function in (tf.nn.avg_pool2d, tf.nn.max_pool2d)
        for key in ("value", "input")
    ]
    wanted = [
        tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME", rate=[2, 2]),
        *(function(x, 2, 2, "VALID") for function in (tf.nn.avg_pool, tf.nn.max_pool)),
    ]
    with tf.Session() as session:
        found, expected = session.run([[native, named, *pooled], wanted])
    for value, place in zip(found, (0, 0, 1, 1, 2, 2), strict=True):
        np.testing.assert_array_equal(value, expected[place])
