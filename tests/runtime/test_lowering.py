"""Lowering: random graphs agree by Session, op by op, and in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from numpy.typing import NDArray

from estimatorkit.core import builtin_ops
from estimatorkit.core.dtypes import float64
from estimatorkit.core.gradients import gradients
from estimatorkit.core.graph import Graph
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.ops.array import array, filling, indexing, joining
from estimatorkit.ops.math import elementwise, linalg, reduce
from estimatorkit.ops.nn import nn
from estimatorkit.runtime.session import Session

UNARY: dict[str, tuple[Any, Any]] = {
    "tanh": (elementwise.tanh, np.tanh),
    "sigmoid": (elementwise.sigmoid, lambda x: 1 / (1 + np.exp(-x))),
    "sin": (elementwise.sin, np.sin),
    "negative": (elementwise.negative, np.negative),
    "abs": (elementwise.abs, np.abs),
    "relu": (nn.relu, lambda x: np.maximum(x, 0)),
    "softmax": (
        nn.softmax,
        lambda x: (
            np.exp(x - x.max(-1, keepdims=True))
            / np.exp(x - x.max(-1, keepdims=True)).sum(-1, keepdims=True)
        ),
    ),
    "transpose": (array.transpose, np.transpose),
    "flip": (lambda x: x[::-1], lambda x: x[::-1]),
    "flatten and back": (
        lambda x: array.reshape(array.reshape(x, [-1]), array.shape(x)),
        lambda x: x,
    ),
    "mean of rows": (
        lambda x: reduce.reduce_mean(x, 0, keepdims=True) + filling.zeros_like(x),
        lambda x: x.mean(0, keepdims=True) + np.zeros_like(x),
    ),
    "sum": (lambda x: reduce.reduce_sum(x) * filling.ones(array.shape(x), float64), np.sum),
    "split and join": (
        lambda x: joining.concat(joining.split(x, 3, axis=1)[::-1], 1),
        lambda x: np.concatenate(np.split(x, 3, 1)[::-1], 1),
    ),
}
BINARY: dict[str, tuple[Any, Any]] = {
    "add": (elementwise.add, np.add),
    "subtract": (lambda x, y: x - y, np.subtract),
    "multiply": (elementwise.multiply, np.multiply),
    "maximum": (elementwise.maximum, np.maximum),
    "matmul": (lambda x, y: linalg.matmul(x, y) / 3.0, lambda x, y: x @ y / 3.0),
    "select": (lambda x, y: indexing.where(x < y, x, y), np.minimum),
    "stack and sum": (
        lambda x, y: reduce.reduce_sum(joining.stack([x, y], 2), axis=2),
        lambda x, y: np.stack([x, y], 2).sum(2),
    ),
    "pick": (lambda x, y: indexing.gather(x, [2, 0, 1]) * y, lambda x, y: x[[2, 0, 1]] * y),
}
STEPS = st.lists(
    st.tuples(st.sampled_from(sorted({**UNARY, **BINARY})), st.integers(0, 99), st.integers(0, 99)),
    min_size=5,
    max_size=30,
)
FED = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.5], [-2.0, 1.0, 0.75]])
HELD = np.array([[1.0, 0.5, -0.25], [0.1, -1.5, 1.0], [0.3, 2.0, -1.0]])

Pair = tuple[Tensor, NDArray[Any]]


def build(steps: list[tuple[str, int, int]], values: list[Pair]) -> list[Pair]:
    """A 3 x 3 tensor for each step, made of earlier ones, and what NumPy makes of it."""
    for name, first, second in steps:
        x, x_value = values[first % len(values)]
        y, y_value = values[second % len(values)]
        if name in UNARY:
            make, reference = UNARY[name]
            tensor, value = make(x), reference(x_value)
        else:
            make, reference = BINARY[name]
            tensor, value = make(x, y), reference(x_value, y_value)
        value = np.broadcast_to(value, [3, 3])
        if np.abs(value).max() > 1e3:  # keeps products of products within reach
            tensor, value = elementwise.tanh(tensor), np.tanh(value)
        values.append((tensor, value))
    return values


@pytest.mark.slow
@given(STEPS)
@settings(
    max_examples=14,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_random_graphs(steps: list[tuple[str, int, int]]) -> None:
    with Graph().as_default(), Session() as session:
        x = builtin_ops.placeholder(float64, [None, 3])
        v = Variable(HELD)
        session.run(v.initializer)
        values = build(steps, [(x, FED), (v.value(), HELD)])
        tensors = [tensor for tensor, _ in values]
        together = session.run(tensors, {x: FED})
        for (tensor, expected), value in zip(values, together, strict=True):
            assert tensor.shape.is_compatible_with(value.shape)
            np.testing.assert_allclose(value, expected, rtol=1e-9, atol=1e-9)
        last = tensors[-1]
        np.testing.assert_allclose(session.run(last, {x: FED}), together[-1], rtol=1e-9, atol=1e-9)
        # Cut in the middle: feeding an intermediate result gives what computing it gives.
        middle = tensors[len(tensors) // 2]
        cut = session.run(last, {x: FED, middle: together[len(tensors) // 2]})
        np.testing.assert_allclose(cut, together[-1], rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@given(STEPS)
@settings(max_examples=2, deadline=None, derandomize=True)
def test_random_graphs_op_by_op(steps: list[tuple[str, int, int]]) -> None:
    """Each operation alone, its inputs fed with what the whole graph computed."""
    with Graph().as_default() as graph, Session() as session:
        x = builtin_ops.placeholder(float64, [3, 3])
        build(steps[:12], [(x, FED), (builtin_ops.identity(x) * 0.5, FED * 0.5)])
        outputs = [tensor for op in graph.get_operations() for tensor in op.outputs]
        values = dict(zip(outputs, session.run(outputs, {x: FED}), strict=True))
        for op in graph.get_operations():
            if not op.inputs:
                continue
            feeds = {each: values[each] for each in op.inputs if each.op.type != "Const"}
            alone = session.run(list(op.outputs), feeds)
            for tensor, value in zip(op.outputs, alone, strict=True):
                np.testing.assert_allclose(value, values[tensor], rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@given(STEPS)
@settings(
    max_examples=6,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
def test_gradients_of_random_graphs(steps: list[tuple[str, int, int]]) -> None:
    """Against central differences, where no kink is near."""
    smooth = [
        (name if name not in ("abs", "relu", "maximum", "select") else "tanh", first, second)
        for name, first, second in steps[:15]
    ]
    with Graph().as_default(), Session() as session:
        x = builtin_ops.placeholder(float64, [3, 3])
        v = Variable(HELD)
        session.run(v.initializer)
        values = build(smooth, [(x, FED), (v.value(), HELD)])
        loss = reduce.reduce_sum(elementwise.sin(values[-1][0]) + values[-2][0])
        found = gradients(loss, [x, v], unconnected_gradients="zero")
        direction = np.random.default_rng(0).normal(size=[3, 3])

        def at(step: float) -> tuple[float, Any, Any]:
            session.load_variable(v, HELD + step * direction)
            result: tuple[float, Any, Any] = session.run(
                (loss, *found), {x: FED + step * direction}
            )
            return result

        (_, by_x, by_v), after, before = at(0.0), at(1e-6), at(-1e-6)
        assert np.sum((by_x + by_v) * direction) == pytest.approx(
            (after[0] - before[0]) / 2e-6, rel=1e-4, abs=1e-5
        )
