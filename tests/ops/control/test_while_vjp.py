"""`while_loop` on JAX values: results and derivatives against the unrolled loop, for each way in
which the steps can fill the checkpoints; with few of them, so that every way is short.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from estimatorkit.core.x64 import x64
from estimatorkit.ops.control import while_vjp as loops
from estimatorkit.ops.control.while_vjp import while_loop

SLOTS = 3
COUNTS = [0, 1, SLOTS - 1, SLOTS, SLOTS + 1, 2 * SLOTS, 2 * SLOTS + 1, SLOTS**2, SLOTS**2 + 1]
Loss = Callable[[Any, Any, Any], Any]


@pytest.fixture(autouse=True)
def _few_checkpoints(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(loops, "_FEWEST", SLOTS)
    monkeypatch.setattr(loops, "_MOST", SLOTS)
    with x64():
        yield


def step(weight: Any, x: Any) -> Any:
    """One step that is linear in nothing."""
    return jnp.sin(weight * x) + 0.5 * x


def looped(weight: Any, x: Any, count: Any) -> Any:
    """`count` steps of a loop."""
    _, _, end = while_loop(
        lambda constants, values: values[0] < values[1],
        lambda constants, values: (values[0] + 1, values[1], step(constants[0], values[2])),
        (weight,),
        (jnp.asarray(0), jnp.asarray(count), x),
    )
    return end


def unrolled(weight: Any, x: Any, count: int) -> Any:
    """The same without a loop."""
    for _ in range(count):
        x = step(weight, x)
    return x


def loss_of(steps: Callable[[Any, Any, Any], Any]) -> Loss:
    return lambda weight, x, count: jnp.sum(steps(weight, x, count) ** 3)


WEIGHT = np.array([1.1, 0.7])
START = np.array([0.4, -1.3])


def derivatives(function: Loss, count: Any) -> list[Any]:
    """The value, the gradients, and the gradient of their weighted sum."""

    def slope(weight: Any, x: Any) -> Any:
        by_weight, by_x = jax.grad(function, (0, 1))(weight, x, count)
        return jnp.sum(by_weight * jnp.array([1.0, -2.0])) + jnp.sum(by_x * jnp.array([0.5, 3.0]))

    return [
        function(WEIGHT, START, count),
        *jax.grad(function, (0, 1))(WEIGHT, START, count),
        *jax.grad(slope, (0, 1))(WEIGHT, START),
    ]


@pytest.fixture(scope="module")
def compiled() -> Any:
    """The loop's derivatives to the second, compiled once for all numbers of steps."""
    return jax.jit(lambda count: derivatives(loss_of(looped), count))


@pytest.mark.slow
@pytest.mark.parametrize("count", COUNTS)
def test_derivatives_for_every_checkpoint_layout(compiled: Any, count: int) -> None:
    found, expected = compiled(count), derivatives(loss_of(unrolled), count)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def test_checkpoints_are_spread_evenly() -> None:
    """Twice as far apart whenever they are full: at steps 0, stride, 2 stride, ..."""

    def run(count: Any) -> Any:
        start = (jnp.asarray(0), jnp.asarray(count), jnp.asarray(1.0))
        return loops._with_checkpoints(
            lambda constants, values: values[0] < values[1],
            lambda constants, values: (values[0] + 1, values[1], values[2] * 2),
            SLOTS,
            (False, True, False),
            0,
            (),
            start,
        )

    compiled = jax.jit(run)
    for count in [*COUNTS, 50]:
        end, steps, stride, (numbers, values) = compiled(count)
        assert int(steps) == int(end[0]) == count
        wanted = 1
        while wanted * SLOTS < count:
            wanted *= 2
        assert int(stride) == wanted
        used = -(-count // wanted)
        np.testing.assert_array_equal(numbers[:used], np.arange(used) * wanted)
        np.testing.assert_array_equal(values[:used], 2.0 ** (np.arange(used) * wanted))


@pytest.mark.slow
def test_nested_loops() -> None:
    """The inner loop's number of steps grows with the outer one's."""

    def inner(weight: Any, x: Any, count: Any) -> Any:
        return while_loop(
            lambda constants, values: values[0] < constants[1],
            lambda constants, values: (values[0] + 1, step(constants[0], values[1])),
            (weight, count),
            (jnp.asarray(0), x),
        )[1]

    def outer(weight: Any, x: Any, count: Any) -> Any:
        return while_loop(
            lambda constants, values: values[0] < constants[1],
            lambda constants, values: (
                values[0] + 1,
                inner(constants[0], values[1] * 0.9, values[0]),
            ),
            (weight, jnp.asarray(count)),
            (jnp.asarray(0), x),
        )[1]

    def plain(weight: Any, x: Any, count: int) -> Any:
        for number in range(count):
            x = unrolled(weight, x * 0.9, number)
        return x

    gradients = jax.jit(jax.grad(loss_of(outer), (0, 1)))
    for count in (0, 1, SLOTS + 2):
        found = gradients(WEIGHT, START, count)
        expected = jax.grad(loss_of(plain), (0, 1))(WEIGHT, START, count)
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_third_derivative() -> None:
    """Of the power that a loop of squares gives; traced, as XLA takes 15 seconds to compile it."""

    def power(x: Any) -> Any:
        squared = while_loop(
            lambda _, values: values[0] < 50, lambda _, values: (values[0] ** 2,), (), (x,)
        )
        return squared[0]

    third = jax.grad(jax.grad(jax.grad(power)))
    assert jax.eval_shape(third, jnp.asarray(1.2)).dtype == np.float64
    second = jax.jit(jax.grad(jax.grad(power)))
    np.testing.assert_allclose(second(1.2), 32 * 31 * 1.2**30, rtol=1e-9)


def test_data_dependent_condition() -> None:
    """The number of steps is known only at the end: Newton's method for a square root."""

    def root(x: Any) -> Any:
        return while_loop(
            lambda constants, values: jnp.abs(values[0] ** 2 - constants[0]) > 1e-9,
            lambda constants, values: ((values[0] + constants[0] / values[0]) / 2,),
            (x,),
            (jnp.asarray(1000.0),),
        )[0]

    compiled = jax.jit(jax.value_and_grad(root))
    for x in (2.0, 700.0, 1e5):
        value, slope = compiled(x)
        np.testing.assert_allclose(value, np.sqrt(x), rtol=1e-7)
        np.testing.assert_allclose(slope, 0.5 / np.sqrt(x), rtol=1e-4)


@pytest.mark.slow
def test_write_only_arrays_are_not_saved() -> None:
    """Their gradient is right though no checkpoint of them is there."""

    def written(x: Any, marked: bool) -> Any:
        def body(constants: Any, values: Any) -> Any:
            number, new = values[0], step(constants[0], values[1])
            return number + 1, new, values[2].at[number].set(new)

        flags = (False, False, True) if marked else None
        start = (jnp.asarray(0), x, jnp.zeros((SLOTS**2 + 1, 2)))
        return while_loop(lambda _, values: values[0] < SLOTS**2 + 1, body, (WEIGHT,), start, flags)

    def loss(x: Any, marked: bool) -> Any:
        return jnp.sum(
            written(x, marked)[2] ** 2 * jnp.arange(1.0, 2 * SLOTS**2 + 3).reshape(-1, 2)
        )

    def plain(x: Any) -> Any:
        total = jnp.zeros(())
        for number in range(SLOTS**2 + 1):
            x = step(WEIGHT, x)
            total += jnp.sum(x**2 * jnp.array([2.0 * number + 1, 2.0 * number + 2]))
        return total

    expected = jax.grad(plain)(START)
    for marked in (True, False):
        found = jax.jit(jax.grad(lambda x, marked=marked: loss(x, marked)))(START)
        np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.slow
def test_integers_and_booleans_in_state() -> None:
    def run(x: Any) -> Any:
        return while_loop(
            lambda _, values: values[0] < 4,
            lambda constants, values: (
                values[0] + constants[1],
                ~values[1],
                jnp.where(values[1], values[2] * 2, values[2] ** 2),
            ),
            (x, jnp.asarray(1)),
            (jnp.asarray(0), jnp.asarray(True), x),
        )

    number, flag, value = run(jnp.asarray(1.5))
    assert (int(number), bool(flag), float(value)) == (4, True, ((1.5 * 2) ** 2 * 2) ** 2)
    assert float(jax.grad(lambda x: run(x)[2])(jnp.asarray(1.5))) == pytest.approx(4 * 64 * 1.5**3)


def test_checkpoint_count_depends_on_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """64 MiB of them, but at least `_FEWEST` and at most `_MOST`."""
    monkeypatch.setattr(loops, "_FEWEST", 16)
    monkeypatch.setattr(loops, "_MOST", 1024)
    seen: list[int] = []
    monkeypatch.setattr(loops, "_while", lambda *given: seen.append(given[2]))
    for start, flags in (
        ([jnp.zeros(1)], None),
        ([jnp.zeros(1 << 20)], None),  # 8 MiB
        ([jnp.zeros(1 << 17)], None),  # 1 MiB
        ([jnp.zeros(1 << 20), jnp.zeros(1)], [True, False]),
    ):
        while_loop(lambda *_: True, lambda *_: (), (), start, flags)
    assert seen == [1024, 16, 64, 1024]


def test_memory_does_not_grow_with_steps() -> None:
    """The compiled gradient is one program for any number of steps."""
    calls = 0

    def counted(weight: Any, x: Any, count: Any) -> Any:
        nonlocal calls
        calls += 1
        return jnp.sum(looped(weight, x, count))

    gradient = jax.jit(jax.grad(counted))
    shape = jax.eval_shape(gradient, WEIGHT, START, 5).shape
    sizes = [gradient(WEIGHT, START, count).shape for count in (5, 500, 2000)]
    assert sizes == [shape] * 3
    assert calls == 1
