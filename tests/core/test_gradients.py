"""Gradients through graphs: paths, grad_ys, stops, sparse rows, variables, higher orders."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from estimatorkit.core.builtin_ops import placeholder
from estimatorkit.core.conversion import constant, convert_to_tensor
from estimatorkit.core.dtypes import float32, float64, int32
from estimatorkit.core.gradients import IndexedSlices, gradients
from estimatorkit.core.graph import Graph
from estimatorkit.core.variables import Variable
from estimatorkit.ops.array import array, indexing, joining
from estimatorkit.ops.math import elementwise, linalg, reduce
from estimatorkit.ops.nn import nn
from estimatorkit.ops.variables.variable_collections import global_variables_initializer
from estimatorkit.runtime.session import Session


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    with Graph().as_default():
        yield


def run(fetches: Any, feeds: Any = None) -> Any:
    with Session() as session:
        session.run(global_variables_initializer())
        return session.run(fetches, feeds)


def test_gradient_sums_over_ys_and_paths() -> None:
    x = constant([1.0, 2.0])
    y = x * x + 3.0 * x
    assert run(gradients(y, x))[0].tolist() == [5.0, 7.0]
    assert run(gradients([y, x], [x]))[0].tolist() == [6.0, 8.0]
    assert run(gradients([y, y], x))[0].tolist() == [10.0, 14.0]


def test_one_gradient_per_x() -> None:
    a, b = constant(2.0), constant(3.0)
    found = run(gradients(a * b, [a, b, a]))
    assert found == [3.0, 2.0, 3.0]


def test_x_depends_on_another_x() -> None:
    x = constant(2.0)
    y = x * x
    z = y * x
    assert run(gradients(z, [x, y, z])) == [12.0, 2.0, 1.0]


def test_grad_ys() -> None:
    x = constant([1.0, 2.0])
    y, z = x * x, 3.0 * x
    assert run(gradients(y, x, [[10.0, 1.0]]))[0].tolist() == [20.0, 4.0]
    assert run(gradients([y, z], x, [constant([1.0, 0.0]), None]))[0].tolist() == [5.0, 3.0]
    with pytest.raises(ValueError, match="does not match"):
        gradients(y, x, [[1.0, 2.0, 3.0]])
    with pytest.raises(ValueError, match="Length mismatch"):
        gradients(y, x, [1.0, 2.0])


def test_stop_gradients() -> None:
    x = constant(2.0)
    y = x * x
    z = y + x
    assert run(gradients(z, x, stop_gradients=y)) == [1.0]
    assert run(gradients(z, [x, y], stop_gradients=[y])) == [1.0, 1.0]
    a, b = constant(3.0), constant(4.0)
    c = a * 2.0 + b
    assert gradients(c, [a], stop_gradients=[a, b]) is not None
    assert run(gradients(c + a, [a, b], stop_gradients=[a, b])) == [3.0, 1.0]
    assert run(gradients(array.stop_gradient(y) * x, x)) == [4.0]


def test_unconnected_gradients() -> None:
    x, other = constant([1.0, 2.0]), constant([3.0])
    y = x * 2.0
    assert gradients(y, [other]) == [None]
    found = gradients(y, [x, other], unconnected_gradients="zero")
    assert [value.tolist() for value in run(found)] == [[2.0, 2.0], [0.0]]
    assert gradients(array.stop_gradient(x), x) == [None]
    with pytest.raises(ValueError, match="unconnected"):
        gradients(y, [other], unconnected_gradients="nil")


def test_integers_have_no_gradient() -> None:
    i = constant([1, 2])
    x = elementwise.cast(i, float32)
    assert gradients(x * 2.0, [i]) == [None]
    y = placeholder(float32, [2])
    assert gradients(elementwise.cast(elementwise.cast(y, int32), float32), [y]) == [None]
    assert gradients(elementwise.floor(y), y) == [None]
    assert gradients([elementwise.cast(y, int32), y > 1.0], [y]) == [None]
    assert gradients(i * 2, i, grad_ys=[constant([3, 4])]) == [None]
    both = gradients([elementwise.cast(y, int32), y * 2.0], [y])
    assert run(both, {y: [1.0, 2.0]})[0].tolist() == [2.0, 2.0]
    (itself,) = gradients(i, [i])
    assert itself.dtype is int32
    assert run(itself).tolist() == [1, 1]
    (filled,) = gradients(elementwise.cast(y, int32), y, unconnected_gradients="zero")
    assert filled.dtype is float32
    with pytest.raises(TypeError, match="must be numeric to obtain a default gradient"):
        gradients(constant("a"), [y])
    with pytest.raises(TypeError, match="must be numeric to obtain a default gradient"):
        gradients(y > 1.0, [y], grad_ys=[constant([1.0, 1.0])])
    assert gradients(i * 2, i, grad_ys=[constant([3.0, 4.0])]) == [None]
    with pytest.raises(TypeError, match="does not match type"):
        gradients(y, y, grad_ys=[constant([1, 2])])
    with pytest.raises(TypeError, match="must be real or integer"):
        gradients(y, y, grad_ys=[constant([True, False])])


def test_casts_between_floats() -> None:
    x = constant([1.0, 2.0])
    wide = elementwise.cast(x, float64)
    (gradient,) = gradients(wide * wide, x)
    assert gradient.dtype is float32
    assert run(gradient).tolist() == [2.0, 4.0]


def test_broadcasting() -> None:
    x = placeholder(float32, [None, 3])
    row, scalar = Variable([1.0, 2.0, 3.0]), Variable(2.0)
    column = placeholder(float32, [None, 1])
    y = x * row + scalar * column - column
    found = run(
        gradients(y, [x, row, scalar, column]), {x: np.ones([2, 3]), column: [[5.0], [7.0]]}
    )
    assert found[0].tolist() == [[1.0, 2.0, 3.0]] * 2
    assert found[1].tolist() == [2.0, 2.0, 2.0]
    assert found[2] == 36.0
    assert found[3].tolist() == [[3.0], [3.0]]


def test_hessian_of_quadratic() -> None:
    matrix = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, -1.0], [0.0, -1.0, 4.0]])
    x = placeholder(float64, [3, 1])
    y = linalg.matmul(linalg.matmul(x, constant(matrix), transpose_a=True), x) * 0.5
    (first,) = gradients(y, x)
    rows = [gradients(first[i, 0], x)[0][:, 0] for i in range(3)]
    point = np.array([[1.0], [-2.0], [0.5]])
    found, hessian = run([first, rows], {x: point})
    np.testing.assert_allclose(found, matrix @ point)
    np.testing.assert_allclose(np.stack(hessian), matrix)


def test_third_order() -> None:
    x = placeholder(float64, [])
    y = elementwise.sin(x) * x**3.0
    orders = [y]
    for _ in range(3):
        orders.append(gradients(orders[-1], x)[0])
    at = 0.7
    s, c = np.sin(at), np.cos(at)
    expected = [
        s * at**3,
        c * at**3 + 3 * s * at**2,
        -s * at**3 + 6 * c * at**2 + 6 * s * at,
        -c * at**3 - 9 * s * at**2 + 18 * c * at + 6 * s,
    ]
    np.testing.assert_allclose(run(orders, {x: at}), expected)


def test_gather_gradient_is_sparse() -> None:
    table = Variable(np.arange(8, dtype=np.float32).reshape(4, 2))
    rows = indexing.gather(table, [[2, 0], [2, 3]])
    (gradient,) = gradients(reduce.reduce_sum(rows * rows), [table])
    assert isinstance(gradient, IndexedSlices)
    assert gradient.values.shape == (4, 2)
    dense = convert_to_tensor(gradient)
    assert dense.shape == (4, 2)
    indices, values, whole = run([gradient.indices, gradient.values, dense])
    assert indices.tolist() == [2, 0, 2, 3]
    assert values.tolist() == [[8.0, 10.0], [0.0, 2.0], [8.0, 10.0], [12.0, 14.0]]
    assert whole.tolist() == [[0.0, 2.0], [0.0, 0.0], [16.0, 20.0], [12.0, 14.0]]


def test_gradients_of_two_gathers_and_dense_path() -> None:
    table = Variable(np.ones([4, 2], np.float32))
    ids = placeholder(int32, [None])
    one = indexing.gather(table, ids)
    other = indexing.gather(table, [3])
    loss = reduce.reduce_sum(one) + 2.0 * reduce.reduce_sum(other)
    (rows,) = gradients(loss, [table])
    assert isinstance(rows, IndexedSlices)
    (mixed,) = gradients(loss + reduce.reduce_sum(table * 0.5), [table])
    assert not isinstance(mixed, IndexedSlices)
    found, whole = run([convert_to_tensor(rows), mixed], {ids: [1, 1]})
    assert found.tolist() == [[0, 0], [2, 2], [0, 0], [2, 2]]
    assert whole.tolist() == [[0.5, 0.5], [2.5, 2.5], [0.5, 0.5], [2.5, 2.5]]


def test_gather_of_computed_tensor_and_other_axis() -> None:
    table = Variable([[1.0, 2.0], [3.0, 4.0]])
    scaled = table * 3.0
    (by_rows,) = gradients(reduce.reduce_sum(indexing.gather(scaled, [1, 1])), table)
    (by_columns,) = gradients(reduce.reduce_sum(indexing.gather(table, [1, 1, 0], axis=1)), table)
    found = run([convert_to_tensor(by_rows), by_columns])
    assert found[0].tolist() == [[0.0, 0.0], [6.0, 6.0]]
    assert found[1].tolist() == [[1.0, 2.0], [1.0, 2.0]]


def test_second_order_through_gather() -> None:
    table = Variable(np.array([[1.0], [2.0], [3.0]]))
    rows = indexing.gather(table, [0, 2, 2])
    (first,) = gradients(reduce.reduce_sum(rows**3.0), table)
    (second,) = gradients(reduce.reduce_sum(convert_to_tensor(first)), table)
    assert run(convert_to_tensor(second)).tolist() == [[6.0], [0.0], [36.0]]


def test_variable_read_twice() -> None:
    v = Variable(3.0)
    y = v * v + v.read_value() * 5.0 + v.value()
    assert run(gradients(y, v)) == [12.0]
    assert run(gradients(y, [v, v])) == [12.0, 12.0]


def test_variable_read_between_updates() -> None:
    """The gradient is taken at the value that the loss was computed from."""
    v = Variable(3.0)
    loss = v * v
    (gradient,) = gradients(loss, v)
    update = v.assign_sub(gradient * 0.1)
    with Session() as session:
        session.run(v.initializer)
        for _ in range(2):
            before = session.run(v)
            found_loss, found_gradient, after = session.run([loss, gradient, update])
            assert found_loss == before * before
            assert found_gradient == 2 * before
            assert after == pytest.approx(before * 0.8)


@pytest.mark.usefixtures("compiled")
def test_forward_and_backward_compile_once() -> None:
    x = placeholder(float32, [None, 4])
    w = Variable(np.ones([4, 2], np.float32))
    loss = reduce.reduce_mean(nn.softplus(linalg.matmul(x, w)))
    (gradient,) = gradients(loss, w)
    train = w.assign_sub(gradient)
    with Session() as session:
        session.run(w.initializer)
        session.state.compilations.clear()
        assert len(session.plan([train, loss], [x]).segments) == 1
        for _ in range(3):
            session.run([train, loss], {x: np.ones([8, 4])})
        assert session.state.compilations.total() == 1


def test_differentiating_operation_twice() -> None:
    """Two calls of `gradients` share the forward operation, and neither disturbs the other."""
    x = constant([1.0, 2.0])
    y = elementwise.exp(x)
    (one,) = gradients(y, x)
    (other,) = gradients(y * 2.0, x)
    found = run([one, other, y])
    np.testing.assert_allclose(found[1], 2 * found[0])
    np.testing.assert_allclose(found[0], found[2])


def test_backward_without_forward() -> None:
    """Where the forward operation is fed, its backward operation computes what it needs alone."""
    x = placeholder(float32, [2])
    y = elementwise.exp(x)
    z = y * y
    (gradient,) = gradients(z, x)
    found = run(gradient, {x: [0.0, 0.0], y: [3.0, 4.0]})
    np.testing.assert_allclose(found, [6.0, 8.0])


def test_operation_with_several_outputs() -> None:
    x = constant([[1.0, 2.0, 3.0]])
    first, second, third = joining.unstack(x, axis=1)
    assert run(gradients(second * second, x))[0].tolist() == [[0.0, 4.0, 0.0]]
    assert run(gradients(first * third, x))[0].tolist() == [[3.0, 0.0, 1.0]]


def test_maximum_and_minimum_ties_go_to_first() -> None:
    x, y = constant([1.0, 2.0, 3.0]), constant([1.0, 3.0, 2.0])
    assert [g.tolist() for g in run(gradients(elementwise.maximum(x, y), [x, y]))] == [
        [1.0, 0.0, 1.0],
        [0.0, 1.0, 0.0],
    ]
    assert [g.tolist() for g in run(gradients(elementwise.minimum(x, y), [x, y]))] == [
        [1.0, 1.0, 0.0],
        [0.0, 0.0, 1.0],
    ]


def test_masked_division_by_zero() -> None:
    x, y = constant([1.0, 2.0]), constant([0.0, 4.0])
    found = run(gradients(elementwise.div_no_nan(x, y), [x, y]))
    assert [value.tolist() for value in found] == [[0.0, 0.25], [0.0, -0.125]]


@pytest.mark.parametrize(
    ("function", "at", "expected"),
    [
        (nn.relu, [-1.0, 0.0, 1.0], [0.0, 0.0, 1.0]),
        (nn.relu6, [0.0, 6.0, 3.0], [0.0, 0.0, 1.0]),
        (nn.elu, [0.0, -1.0], [1.0, np.exp(-1)]),
        (lambda x: nn.leaky_relu(x, 0.25), [0.0, -1.0, 1.0], [0.25, 0.25, 1.0]),
        (elementwise.abs, [0.0, -1.0], [0.0, -1.0]),
        (elementwise.sqrt, [0.0, 4.0], [np.inf, 0.25]),
        (lambda x: indexing.where(x > 1.0, elementwise.sqrt(x - 1.0), x), [1.0, 5.0], [1.0, 0.25]),
        (lambda x: indexing.where(x > 0.0, elementwise.rsqrt(x), x), [0.0, 4.0], [1.0, -1 / 16]),
        (lambda x: indexing.where(x > 0.0, elementwise.reciprocal(x), x), [0.0, 2.0], [1.0, -0.25]),
        (lambda x: elementwise.clip_by_value(x, 0.0, 1.0), [0.0, 1.0, 2.0], [1.0, 1.0, 0.0]),
        (lambda x: reduce.reduce_max(x), [1.0, 1.0, 0.0], [0.5, 0.5, 0.0]),
        (lambda x: reduce.reduce_prod(x), [0.0, 2.0, 3.0], [6.0, 0.0, 0.0]),
        (reduce.reduce_logsumexp, [1000.0, 1000.0], [0.5, 0.5]),
        (lambda x: nn.l2_normalize(x, 0), [0.0, 0.0], [1e6, 1e6]),
        (lambda x: elementwise.pow(x, 2.0), [0.0, 1.0], [0.0, 2.0]),
    ],
)
def test_gradients_at_kinks_and_poles(
    function: Any, at: list[float], expected: list[float]
) -> None:
    """Where a derivative is a matter of choice, ours is TensorFlow 2.15's."""
    x = constant(at)
    np.testing.assert_allclose(run(gradients(function(x), x))[0], expected, rtol=1e-6)


def test_gradient_names_and_devices() -> None:
    x = constant([1.0, 2.0], name="x")
    y = elementwise.square(x, name="y")
    (gradient,) = gradients(y, x)
    (again,) = gradients(y, x)
    assert gradient.name == "gradients/y_grad/square:0"
    assert again.name == "gradients_1/y_grad/square:0"
    assert gradient.shape == (2,)


def test_x_of_unknown_shape() -> None:
    x = placeholder(float32)
    (gradient,) = gradients(reduce.reduce_sum(x * x), x)
    assert run(gradient, {x: 3.0}) == 6.0
    assert run(gradient, {x: [[1.0, 2.0]]}).tolist() == [[2.0, 4.0]]
