"""Random graphs, run five ways: as planned, one operation a call, in NumPy, imported with constants
in place of their inputs, and mapped over a dataset. All agree.

The graphs have 5 to 40 operations of several dtypes; values stay small, so that float64 differences
are rounding only. What NumPy does is the row's `numpy_kernel`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import estimatorkit as tf
from estimatorkit.core import registry
from estimatorkit.core.tensor import Operation, Tensor

Draw = Callable[[Any], Any]

UNARY: tuple[Callable[[Tensor], Tensor], ...] = (
    *(tf.negative, tf.abs, tf.tanh, tf.sigmoid, tf.sin, tf.cos, tf.square, tf.floor, tf.sign),
    *(tf.identity, tf.stop_gradient, tf.zeros_like, tf.nn.relu, tf.nn.softplus),
)
BINARY: tuple[Callable[[Tensor, Tensor], Tensor], ...] = (
    *(tf.add, tf.subtract, tf.multiply, tf.maximum, tf.minimum, tf.squared_difference),
)
COMPARISONS = (tf.less, tf.greater_equal, tf.equal)


def small(tensor: Tensor) -> Tensor:
    """Keeps values from growing from operation to operation."""
    return tf.tanh(tensor) if tensor.dtype.is_floating else tensor


def add_random_op(draw: Draw, tensors: list[Tensor]) -> None:
    """Adds one to three operations to the graph and their result to `tensors`."""
    x = draw(st.sampled_from([each for each in tensors if each.dtype is tf.float64]))
    kind = draw(st.integers(0, 9))
    rank = len(x.shape)
    if kind <= 1:
        made = draw(st.sampled_from(UNARY))(x)
    elif kind <= 3:
        fitting = [each for each in tensors if each.dtype is x.dtype and fits(each, x)]
        made = draw(st.sampled_from(BINARY))(x, draw(st.sampled_from(fitting)))
    elif kind == 4 and rank:
        reduce = draw(st.sampled_from([tf.reduce_sum, tf.reduce_mean, tf.reduce_max]))
        made = reduce(x, draw(st.integers(0, rank - 1)), keepdims=draw(st.booleans()))
    elif kind == 5 and rank:
        made = tf.transpose(x, draw(st.permutations(range(rank))))
    elif kind == 6 and rank:
        made = tf.concat([x, small(x)], draw(st.integers(0, rank - 1)))
        if made.shape.num_elements() > 64:
            made = x[tuple(slice(0, 1) for _ in range(rank))]
    elif kind == 7 and rank == 2:
        made = tf.matmul(x, x, transpose_b=True)
    elif kind == 8:
        fitting = [each for each in tensors if each.dtype is x.dtype and each.shape == x.shape]
        other = draw(st.sampled_from(fitting))
        made = tf.where(draw(st.sampled_from(COMPARISONS))(x, other), x, small(other))
    else:
        made = tf.cast(tf.cast(x * 4.0, tf.int32), tf.float64) if draw(st.booleans()) else x[None]
        if len(made.shape) > 3:
            made = tf.reshape(made, [-1])
    tensors.append(small(made) if draw(st.booleans()) else tf.clip_by_value(made, -8.0, 8.0))


def fits(one: Tensor, other: Tensor) -> bool:
    try:
        return bool(np.prod(np.broadcast_shapes(one.shape.as_list(), other.shape.as_list())) <= 64)
    except ValueError:
        return False


def in_numpy(op: Operation, values: dict[Tensor, Any]) -> list[Any]:
    row = registry.lookup(op.type)
    assert row.numpy_kernel is not None, op.type
    result = row.numpy_kernel(*(values[tensor] for tensor in op.inputs), **op.kernel_attrs)
    return list(result) if isinstance(result, (tuple, list)) else [result]


@pytest.mark.slow
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(st.data())
def test_random_graphs_agree(data: st.DataObject) -> None:
    draw: Draw = data.draw
    seed = draw(st.integers(0, 2**16))
    rng = np.random.default_rng(seed)
    with tf.Graph().as_default() as graph:
        shapes = draw(
            st.lists(st.sampled_from([(), (3,), (2, 3), (3, 3), (1, 2, 3)]), min_size=1, max_size=3)
        )
        inputs = [tf.placeholder(tf.float64, shape) for shape in shapes]
        tensors: list[Tensor] = list(inputs)
        wished = draw(st.integers(5, 38))
        while len(graph.get_operations()) < wished + len(inputs):
            add_random_op(draw, tensors)
        feeds = {tensor: rng.normal(size=tensor.shape.as_list()) for tensor in inputs}
        fetched = [tensor for op in graph.get_operations() for tensor in op.outputs]
        expected: dict[Tensor, Any] = dict(feeds)
        for op in graph.get_operations():
            if op.type != "Placeholder":
                values = in_numpy(op, expected)
                expected.update(zip(op.outputs, map(np.asarray, values), strict=True))
        with tf.Session() as session:
            planned = dict(zip(fetched, session.run(fetched, feeds), strict=True))
            for op in graph.get_operations():
                if op.type in ("Placeholder", "Const"):
                    continue
                given_values = {tensor: expected[tensor] for tensor in op.inputs}
                alone = session.run(list(op.outputs), given_values)
                for tensor, value in zip(op.outputs, alone, strict=True):
                    agree(value, expected[tensor], op)
    for tensor, value in planned.items():
        agree(value, expected[tensor], tensor.op)
    computed = [tensor for tensor in fetched if tensor not in feeds]
    definition, names = graph.as_graph_def(), [tensor.name for tensor in computed]

    def outputs(*given: Tensor) -> tuple[Tensor, ...]:
        places = dict(zip((tensor.name for tensor in feeds), given, strict=True))
        return tuple(tf.import_graph_def(definition, places, names))

    values = tuple(feeds.values())
    with tf.Graph().as_default(), tf.Session() as session:
        dataset = tf.data.Dataset.from_tensors(values).repeat(2).map(outputs)
        mapped = tf.data.make_one_shot_iterator(dataset).get_next()
        for found in session.run([outputs(*map(tf.constant, values)), mapped]):
            for tensor, value in zip(computed, found, strict=True):
                agree(value, expected[tensor], tensor.op)


def agree(value: Any, expected: Any, op: Operation) -> None:
    assert np.shape(value) == np.shape(expected), str(op)
    np.testing.assert_allclose(
        np.asarray(value, np.float64),
        np.asarray(expected, np.float64),
        rtol=1e-9,
        atol=1e-9,
        err_msg=str(op),
    )
