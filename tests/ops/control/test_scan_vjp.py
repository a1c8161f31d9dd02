"""Scans against `lax.scan`: values, derivatives, and where weight gradients are computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import estimatorkit as tf
from estimatorkit.ops.control import scan_vjp as scans
from estimatorkit.runtime.xla.collected_faults import scan_counts

rng = np.random.default_rng(5)
RECURRENT = jnp.asarray(rng.normal(size=(3, 3)) * 0.5, jnp.float32)
INPUT = jnp.asarray(rng.normal(size=(2, 3)) * 0.5, jnp.float32)
BIAS = jnp.asarray(rng.normal(size=3), jnp.float32)
START = jnp.asarray(rng.normal(size=(4, 3)), jnp.float32)
ELEMENTS = jnp.asarray(rng.normal(size=(6, 4, 2)), jnp.float32)


def step(constants: Any, carried: Any, element: Any, multiply: Callable[[int, Any], Any]) -> Any:
    """Two products with one matrix, which is used besides, and one with another."""
    recurrent, _, bias = constants
    (state,), (row,) = carried, element
    state = jnp.tanh(multiply(0, state) + multiply(1, row) + bias + recurrent[0])
    return (multiply(2, state),), (state * 2.0,)


def ours(*given: Any, reverse: bool = False) -> Any:
    recurrent, weights, bias, start, elements = given
    return scans.scan(
        step, (recurrent, weights, bias), (start,), (elements,), [0, 1, 0], reverse=reverse
    )


def theirs(*given: Any, reverse: bool = False) -> Any:
    *constants, start, elements = given

    def one(carried: Any, row: Any) -> Any:
        matrices = [constants[0], constants[1], constants[0]]
        return step(constants, carried, (row,), lambda number, a: a @ matrices[number])

    return lax.scan(one, (start,), elements, reverse=reverse)


def loss(run: Callable[..., Any], *given: Any, **options: Any) -> Any:
    (end,), (results,) = run(*given, **options)
    return jnp.sum(end**3) + jnp.sum(jnp.sin(results))


GIVEN = (RECURRENT, INPUT, BIAS, START, ELEMENTS)
ALL = tuple(range(len(GIVEN)))


def slope_size(run: Callable[..., Any], *given: Any) -> Any:
    found = jax.grad(lambda *given: loss(run, *given), ALL)(*given)
    return sum(jnp.sum(each**2) for each in found)


@pytest.mark.slow
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("count", [0, 1, 2, 6])
def test_values_and_gradients(count: int, reverse: bool) -> None:
    given = (*GIVEN[:-1], ELEMENTS[:count])
    found, wanted = (
        jax.jit(jax.value_and_grad(lambda *each, run=run: loss(run, *each, reverse=reverse), ALL))(
            *given
        )
        for run in (ours, theirs)
    )
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-6)


@pytest.mark.slow
def test_second_derivatives() -> None:
    found, wanted = (
        jax.jit(jax.grad(lambda *each, run=run: slope_size(run, *each), ALL))(*GIVEN)
        for run in (ours, theirs)
    )
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


def carried_shapes(run: Callable[..., Any]) -> list[tuple[int, ...]]:
    """What the loops of a gradient carry."""
    traced = jax.make_jaxpr(jax.grad(lambda *given: loss(run, *given), ALL))(*GIVEN)
    return [
        variable.aval.shape
        for equation in traced.jaxpr.eqns
        if equation.primitive.name == "scan"
        for variable in equation.outvars[: scan_counts(equation.params)[1]]
    ]


def test_weight_gradients_leave_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    assert carried_shapes(theirs).count(INPUT.shape) == 1
    assert INPUT.shape not in carried_shapes(ours)
    monkeypatch.setattr(scans, "_MOST_BYTES", 0)  # too much to keep: summed in the loop
    assert INPUT.shape in carried_shapes(ours)


def test_sums_and_products_are_computed_again_backward() -> None:
    """Of a step `tanh(a) * b` and its sigmoid, `tanh` and `logistic` are kept for each iteration;
    `1 - x` and the products of their derivatives are not."""

    def one(constants: Any, carried: Any, element: Any, multiply: Callable[[int, Any], Any]) -> Any:
        gate = jax.nn.sigmoid(multiply(0, carried[0]))
        return (gate * jnp.tanh(element[0]) + (1 - gate) * carried[0],), ()

    def total(weights: Any, start: Any, elements: Any) -> Any:
        (end,), _ = scans.scan(one, (weights,), (start,), (elements,), [0])
        return jnp.sum(end)

    elements = jnp.ones((6, 4, 3))
    traced = jax.make_jaxpr(jax.grad(total, (0, 1, 2)))(RECURRENT, START, elements)
    forward = next(each for each in traced.jaxpr.eqns if each.primitive.name == "scan")
    stacked = {each for each in forward.outvars[1:] if each.aval.shape[:1] == (6,)}
    assert len(stacked) <= 4  # of the operand, the carry, `tanh` and `logistic`


@pytest.mark.slow
def test_nested_scans() -> None:
    def nested(run: Callable[..., Any]) -> Callable[..., Any]:
        def both(recurrent: Any, weights: Any, bias: Any, start: Any, elements: Any) -> Any:
            def outer(carried: Any, scale: Any) -> Any:
                (end,), (results,) = run(recurrent, weights, bias, carried[0], elements * scale)
                return (end,), results

            end, results = lax.scan(outer, (start,), jnp.asarray([1.0, 0.5]))
            return end, (results,)

        return both

    found, wanted = (
        jax.jit(jax.grad(lambda *given, run=run: loss(nested(run), *given), ALL))(*GIVEN)
        for run in (ours, theirs)
    )
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_weight_read_changed_or_transposed_inside() -> None:
    """Products with variables, with constants and with what the loop itself changes."""
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable(np.asarray(RECURRENT))
        fixed = tf.constant(np.asarray(RECURRENT) * np.float32(0.5))
        x = tf.constant(np.asarray(START))
        elements = tf.constant(np.arange(4, dtype=np.float32))

        def one(state: Any, number: Any) -> Any:
            mixed = tf.matmul(state, v) + tf.matmul(state, v, transpose_b=True)
            return tf.tanh(mixed + tf.matmul(state, fixed) * number)

        looped = tf.scan(one, elements, x)[-1]
        unrolled = x
        for number in range(4):
            unrolled = one(unrolled, float(number))
        found = [tf.gradients(tf.reduce_sum(each**2), [v, fixed, x]) for each in (looped, unrolled)]
        session.run(tf.global_variables_initializer())
        for ours_, theirs_ in zip(*session.run(found), strict=True):
            np.testing.assert_allclose(ours_, theirs_, rtol=1e-4, atol=1e-5)
