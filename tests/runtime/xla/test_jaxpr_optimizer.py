"""Unrolled steps become loops, joined slices a transposition; values are unchanged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from jax import lax

from estimatorkit.runtime.xla import jaxpr_optimizer, rolling

RANDOM = np.random.RandomState(0)


@pytest.fixture(autouse=True)
def short_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rolling, "LEAST_SAVED", 10)


def some(*shape: int) -> np.ndarray[Any, Any]:
    return RANDOM.randn(*shape).astype(np.float32) / 2


def primitives(function: Callable[..., Any], *arguments: Any) -> Counter[str]:
    """Counts the equations of a function by primitive, outside loops."""
    equations = jax.make_jaxpr(function)(*arguments).jaxpr.eqns
    return Counter(equation.primitive.name for equation in equations)


def optimized(function: Any) -> Any:
    """The function that computes the same in fewer equations."""

    def run(*arguments: Any) -> Any:
        closed, shapes = jax.make_jaxpr(function, return_shape=True)(*arguments)
        outputs = jaxpr_optimizer.optimized(closed)(jax.tree.leaves(arguments))
        return jax.tree.unflatten(jax.tree.structure(shapes), outputs)

    return run


def checked(function: Callable[..., Any], *arguments: Any) -> Counter[str]:
    """The equations of the optimized function, which must give the same values."""
    expected = jax.jit(function)(*arguments)
    found = jax.jit(optimized(function))(*arguments)
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-5)
    return primitives(optimized(function), *arguments)


def recurrent(w: Any, u: Any, x: Any) -> Any:
    """Each step needs the two states before it; all of them are used."""
    state = before = jnp.ones((3, 8), np.float32)
    total = jnp.float32(0)
    for step in range(x.shape[1]):
        before, state = state, jnp.tanh(state @ w + x[:, step] @ u) * 0.9 + before * 0.1
        total += jnp.sum(state**2)
    return total, state


ARGUMENTS = some(8, 8), some(4, 8), some(3, 10, 4)


@pytest.mark.slow
def test_unrolled_steps_become_loop() -> None:
    found = checked(recurrent, *ARGUMENTS)
    assert found["scan"] == 1
    assert found["dot_general"] <= 4 < primitives(recurrent, *ARGUMENTS)["dot_general"]


@pytest.mark.slow
def test_unrolled_gradients_become_loop() -> None:
    def gradient(*arguments: Any) -> Any:
        return jax.value_and_grad(lambda *given: recurrent(*given)[0], (0, 1, 2))(*arguments)

    found = checked(gradient, *ARGUMENTS)
    assert found["scan"] == 2
    assert found["dot_general"] < primitives(gradient, *ARGUMENTS)["dot_general"] / 2


def test_loop_with_summed_results() -> None:
    def steps(w: Any, x: Any) -> Any:
        state, products = x[0], []
        for row in x:
            state = jnp.tanh(state @ w + row) * 0.5
            products.append(jnp.outer(state[0], jnp.sin(row[0])))
        total = products[0]
        for product in products[1:]:
            total = total + product
        return total

    arguments = some(6, 6), some(9, 2, 6)
    assert checked(steps, *arguments)["scan"] == 1
    (scan,) = [
        equation
        for equation in jax.make_jaxpr(optimized(steps))(*arguments).jaxpr.eqns
        if equation.primitive.name == "scan"
    ]
    assert all(variable.aval.shape[:1] != (9,) for variable in scan.outvars)  # nothing is kept


@pytest.mark.parametrize(("rows", "kept"), [(2, True), (40, False)])
def test_summed_products_are_one_product(rows: int, kept: bool) -> None:
    """If the factors of all iterations, which are kept for it, are not much larger."""

    def gradient(w: Any, x: Any) -> Any:
        state, products = x[0], []
        for row in x:
            before, state = state, jnp.tanh(state @ w + row) * 0.5
            products.append(lax.dot_general(before, state, (((0,), (0,)), ((), ()))))
        return reduce(lax.add, products)

    arguments = some(6, 6), some(9, rows, 6)
    found = checked(gradient, *arguments)
    assert (found["scan"], found["dot_general"]) == (1, int(kept))


def test_large_weights_are_not_stacked() -> None:
    def layers(weights: Any, x: Any) -> Any:
        for weight in weights:
            x = jnp.tanh(jnp.sin(jnp.cos(x @ weight)))
        return x

    assert checked(layers, [some(8, 8) for _ in range(6)], some(2, 8))["scan"] == 1
    assert not checked(layers, [some(256, 256) for _ in range(6)], some(2, 256))["scan"]


def test_independent_equations_are_not_a_loop() -> None:
    def updates(weights: Any) -> Any:
        return [weight * 0.9 + jnp.sqrt(weight**2 + 1) / 2 for weight in weights]

    assert not checked(updates, [some(4, 4) for _ in range(9)])["scan"]


@jax.custom_vjp
def convolved(x: Any, kernel: Any) -> Any:
    return jax.jit(lax.conv, static_argnums=(2, 3))(x, kernel, (1, 1), "SAME")


convolved.defvjp(lambda x, kernel: (convolved(x, kernel), kernel), lambda kernel, dy: (dy, kernel))


@pytest.mark.parametrize("convolve", [lambda x, k: lax.conv(x, k, (1, 1), "SAME"), convolved])
def test_convolutions_stay_outside_loops(convolve: Callable[..., Any]) -> None:
    def steps(kernel: Any, x: Any) -> Any:
        for _ in range(6):
            x = jnp.tanh(convolve(x, kernel)) * 0.5
        return x

    assert not checked(steps, some(2, 2, 3, 3), some(1, 2, 8, 8))["scan"]


def test_effects_are_not_moved_into_loops() -> None:
    seen: list[float] = []

    def steps(x: Any) -> Any:
        for _ in range(6):
            x = jnp.tanh(x * 2 + 1) - 0.5
            jax.debug.callback(lambda value: seen.append(float(value)), x, ordered=True)
        return x

    jax.block_until_ready(jax.jit(optimized(steps))(np.float32(0.25)))
    jax.effects_barrier()
    assert len(seen) == 6


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("joined", [0, 1, 2])
@pytest.mark.parametrize("order", [1, -1])
def test_joined_slices_become_transposition(axis: int, joined: int, order: int) -> None:
    x = some(8, 8, 8)

    def of_stack(x: Any) -> Any:
        parts = [jnp.squeeze(part, axis) for part in jnp.split(x, 8, axis)]
        return jnp.stack(parts[::order], joined)

    def of_concatenation(x: Any) -> Any:
        return jnp.concatenate(jnp.split(x, 4, axis)[::order], joined)

    for function in (of_stack, of_concatenation):
        found = checked(function, x)
        assert not found["stack"] + found["concatenate"]


def test_partial_or_reordered_slices_are_kept() -> None:
    def joins(x: Any, y: Any) -> Any:
        rows, others = list(x), list(y)
        return (
            jnp.stack(rows[1:6]),
            jnp.stack([*rows[:4], others[4]]),
            jnp.stack(rows[::2]),
            jnp.concatenate([x[:1], x[1:3], x[3:4], x[4:]], 0),
            jnp.stack([rows[0].reshape(2, 3), rows[1].T.reshape(2, 3), *[rows[2]] * 3]),
        )

    checked(joins, some(6, 2, 3), some(6, 2, 3))


@st.composite
def programs(draw: st.DrawFn) -> Callable[[Any, Any], Any]:
    """Programs of a repeated step: random operations on states, inputs and weights."""
    unary = [jnp.tanh, jnp.sin, lambda value: value * 0.5, jnp.cos]
    binary = [jnp.add, jnp.multiply, lambda a, b: jnp.tanh(a @ b), jnp.subtract]
    count = draw(st.integers(1, 3))
    steps = draw(st.integers(4, 9))
    moves = draw(
        st.lists(
            st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(0, 9)),
            min_size=4,
            max_size=12,
        )
    )
    after = draw(st.lists(st.integers(0, 99), min_size=count, max_size=count))
    kept = draw(st.integers(0, 99))
    summed = draw(st.booleans())

    def program(weight: Any, x: Any) -> Any:
        states = [x[at] for at in range(count)]
        outputs = []
        for step in range(steps):
            values = [weight, *states, x[step]]
            for operation, a, b in moves:
                left, right = values[-1 - a % len(values)], values[b % len(values)]
                values.append(jnp.tanh(binary[operation](unary[operation](left), right)))
            states = [values[at % len(values)] for at in after]
            outputs.append(values[kept % len(values)])
        if summed:
            total = outputs[0]
            for output in outputs[1:]:
                total = total + output
            return total, states
        return jnp.stack(outputs[::-1]), states

    return program


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(programs())
def test_any_repeated_step(program: Callable[[Any, Any], Any]) -> None:
    weight, x = some(4, 4), some(9, 4, 4)
    checked(program, weight, x)
    checked(
        lambda *given: jax.grad(lambda *each: jnp.sum(program(*each)[0]), (0, 1))(*given), weight, x
    )
