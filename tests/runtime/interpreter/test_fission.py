"""Loops in parts, and memory that is used again."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from estimatorkit.runtime.interpreter.batching import Batched
from estimatorkit.runtime.interpreter.fission import fission_of
from estimatorkit.runtime.interpreter.table import Program, Template, program_of
from tests.runtime.interpreter.agreement import agree
from tests.sweep import sweep

LENGTH, ROWS, UNITS = 5, 3, 4

rng = np.random.default_rng(0)
COLUMN = rng.normal(size=(LENGTH, ROWS, UNITS)).astype(np.float32)
NUMBERS = np.arange(LENGTH, dtype=np.int32)
START = rng.normal(size=(ROWS, UNITS)).astype(np.float32)
WEIGHTS = rng.normal(size=(2 * UNITS, 2 * UNITS)).astype(np.float32)
LENGTHS = np.array([1, 5, 3], np.int32)


def _recurrent(weights: Any, column: Any, start: Any, lengths: Any) -> Any:
    """A gated cell over sequences, which ends for each row at its length."""

    def step(carried: Any, given: Any) -> Any:
        at, state = carried
        time, row = given
        both = jnp.concatenate([row * 2, state], 1) @ weights
        gate, new = jnp.split(both, 2, 1)
        new = jnp.tanh(new) * jax.nn.sigmoid(gate)
        going = (time < lengths)[:, None]
        return (at + 1, jnp.where(going, new, state)), jnp.where(going, new, 0)

    times = jnp.arange(len(column))
    (_, state), rows = lax.scan(step, (0, start), (times, column))
    return (state**2).sum() + jnp.cos(rows).sum(), rows


def test_gradients_of_recurrent_cells() -> None:
    def both(weights: Any, column: Any, start: Any) -> Any:
        return jax.value_and_grad(_recurrent, (0, 1, 2), has_aux=True)(
            weights, column, start, LENGTHS
        )

    for count in (0, 1, 2, LENGTH):
        agree([(both, (WEIGHTS, COLUMN[:count], START))], rtol=2e-5, atol=2e-6)


def test_runs_give_the_same_bits() -> None:
    gradient = jax.grad(lambda *given: _recurrent(*given, LENGTHS)[0], (0, 1, 2))
    given = WEIGHTS, COLUMN, START
    closed = jax.make_jaxpr(gradient)(*given)
    program, other = program_of(closed), program_of(closed)
    runs = [[each.tobytes() for each in run(*given)] for run in (program, program, other)]
    assert runs[0] == runs[1] == runs[2]


_TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "elementwise": lambda x: jnp.exp(-x) * 2 + lax.integer_pow(x, 3),
    "numbers": lambda x: (x.sum() + 1) * x,
    "chosen": lambda x: jnp.where(x > 0, x, -1),
    "chosen by one": lambda x: lax.select(x[0, 0] > 0, x, x * 2),
    "chosen by number": lambda x: lax.select_n((x > 0).astype(np.int32), x, x * 2),
    "broadcast": lambda x: jnp.broadcast_to(x[:, :1], x.shape) + x,
    "reshaped": lambda x: (x.reshape(-1) + 1).reshape(x.shape),
    "transposed": lambda x: (x.T * 2).T,
    "sums": lambda x: x - x.sum(0) - x.max(1, keepdims=True) - x.min(),
    "sliced": lambda x: x[1:] + x[:-1],
    "stepped": lambda x: x[::2, 1::2] * 2,
    "turned": lambda x: lax.rev(x, (1,)),
    "split": lambda x: jnp.split(x, 2, 1)[1],
    "joined": lambda x: jnp.concatenate([x, x * 2, jnp.zeros_like(x)], 1),
    "by constants": lambda x: x @ WEIGHTS[:UNITS],
    "constants by": lambda x: START @ x.T,
    "by itself": lambda x: x @ x.T,
    "by matrices": lambda x: jnp.einsum("abc,acd->abd", x[:, None], jnp.ones((ROWS, UNITS, 2))),
    "pairs of matrices": lambda x: jnp.einsum("abc,acd->abd", x[:, None], x[:, :, None]),
    "in bits": lambda x: lax.bitcast_convert_type(x, np.int32) & 7,
    "as integers": lambda x: (x * 4).astype(np.int32) % 3,
    "without rows": lambda x: jnp.ones((2, 2)) * 3,
    "sorted": lambda x: jnp.sort(x, 1),
    "random": lambda x: x + jax.random.normal(jax.random.key(0), x.shape),
    "keys": lambda x: jax.random.normal(jax.random.fold_in(jax.random.key(1), x.size), x.shape),
}


@sweep("name", _TRANSFORMS, quick=5)
def test_transforms(name: str) -> None:
    function = _TRANSFORMS[name]

    def every(column: Any, start: Any) -> Any:
        def before(state: Any, row: Any) -> Any:
            new = function(row)
            return state * 2 + new.sum().astype(state.dtype), new

        def after(state: Any, row: Any) -> Any:
            return state * 0.5 + row, function(state)

        def between(state: Any, row: Any) -> Any:
            total = function(row).sum().astype(state.dtype)
            return total + state * 0.5, (state, function(row * state))

        return [
            lax.scan(body, start, column, reverse=reverse)
            for body, reverse in itertools.product((before, after, between), (False, True))
        ]

    agree([(every, (COLUMN, START))], rtol=1e-4, atol=1e-4)


def test_values_that_are_carried() -> None:
    pair = (START, START + 1)

    def loops(column: Any) -> Any:
        return [
            lax.scan(lambda x, row: (row * 2, row * 2), START, column),
            lax.scan(lambda x, row: (jnp.zeros_like(x), x), START, column),
            lax.scan(lambda x, row: ((x[1] + row, x[0]), (x[1], x[1])), pair, column),
            lax.scan(lambda x, row: ((x[0], x[1] + x[0]), x[0] * 2), pair, column),
            lax.scan(
                lambda x, row: ((x[0] + row.sum(0), x[1] * 2), x[1]), (START[0], START), column
            ),
            lax.scan(lambda x, row: ((x[0] + x[1], x[1] * 0.5), ()), pair, column, reverse=True),
            lax.scan(lambda x, row: ((x[0] + row, x[1]), x[0]), pair, column),
            lax.scan(lambda x, row: (x + row, (row, row, row * 2, row[0])), START, column),
            lax.scan(lambda x, _: (x + 1, x * 2), np.int32(7), None, length=LENGTH),
            lax.scan(lambda x, at: (x.at[at % ROWS].set(at), x[0]), START, jnp.asarray(NUMBERS)),
            lax.scan(lambda x, at: (jnp.zeros_like(x).at[at % ROWS].set(at), x), START, NUMBERS),
        ]

    agree([(loops, (COLUMN,))], rtol=1e-6, atol=1e-6)


def test_results_that_nothing_needs() -> None:
    def some(column: Any) -> Any:
        def body(carried: Any, row: Any) -> Any:
            time, x, dead, seen = carried
            return (time + 1, x * 0.5 + row, dead * x, seen + dead.sum()), (x, row * 2, x * row)

        carried = (0, START, START, np.float32(0))
        (_, last, _, _), (_, _, third) = lax.scan(body, carried, column)
        return last, third, lax.scan(body, carried, column)[0][3]

    agree([(some, (COLUMN,))], rtol=1e-5, atol=1e-5)


def _split(function: Callable[..., Any], *given: Any) -> tuple[Any, Program]:
    """The parts of the only scan of a function, and the function's program."""
    template = Template(jax.make_jaxpr(function)(*given))
    program = template.program(())
    (scan,) = (each for each in program.equations if each.name == "scan")
    return fission_of(scan), program


def _names(part: Any) -> list[str]:
    return [each.source.primitive.name for each in part.placed]


def test_iterations_do_only_what_needs_the_one_before() -> None:
    def loop(column: Any, start: Any, total: Any) -> Any:
        def body(carried: Any, row: Any) -> Any:
            x, total = carried
            new = jnp.tanh(x + jnp.exp(row))
            return (new, total + jnp.sin(new)), (jnp.cos(new), row * 2)

        return lax.scan(body, (start, total), column)

    parts, _ = _split(loop, COLUMN, START, START)
    assert sorted(_names(parts._before)) == ["exp", "mul"]
    assert _names(parts._within) == ["add", "tanh"]
    assert sorted(_names(parts._after)) == ["cos", "sin"]
    assert all(isinstance(each, Batched) for each in (*parts._before.placed, *parts._after.placed))
    agree([(loop, (COLUMN, START, START))], rtol=1e-6, atol=1e-6)


def test_large_columns_are_not_kept() -> None:
    def loop(column: Any, start: Any) -> Any:
        def body(x: Any, at: Any) -> Any:
            return x * 0.5 + jnp.broadcast_to(at, x.shape) * 2, ()

        return lax.scan(body, start, column)

    few = NUMBERS.astype(np.float32)
    start = np.zeros((1 << 19, 1), np.float32)
    closed = jax.make_jaxpr(loop)(few, start)
    (scan,) = program_of(closed).equations
    assert fission_of(scan).at(scan) is not None
    long = np.zeros(1 << 5, np.float32)
    (scan,) = program_of(jax.make_jaxpr(loop)(long, start)).equations
    assert fission_of(scan).at(scan) is None
    (found,) = program_of(jax.make_jaxpr(loop)(few, start))(few, start)
    np.testing.assert_allclose(found, 2 * (few * 0.5 ** np.arange(LENGTH)[::-1]).sum(), rtol=1e-6)


def test_results_have_memory_of_their_own() -> None:
    def loop(column: Any, start: Any) -> Any:
        def body(x: Any, row: Any) -> Any:
            new = row * 2
            return new.reshape(x.shape), (new, new, x, x, lax.exp(x), start, start)

        last, rows = lax.scan(body, start, column)
        return [last, *rows]

    program = program_of(jax.make_jaxpr(loop)(COLUMN, START))
    arrays = [*program(COLUMN, START), COLUMN, START]
    assert not any(np.shares_memory(a, b) for a, b in itertools.combinations(arrays, 2))


def _written(program: Program, *given: Any) -> Sequence[bool]:
    """Of each step, whether it writes to one of its operands."""
    slots: list[Any] = [*given]
    slots += program._slots[len(given) :]
    found = []
    for function, operands, to, _ in program._steps:
        before = operands(slots)
        slots[to] = function(*before)
        found.append(any(slots[to] is each for each in before))
    return found


def test_results_are_written_to_operands_that_nothing_needs() -> None:
    def chain(x: Any) -> Any:
        y = x * 3  # the argument is the caller's
        z = jnp.tanh(y)  # writes to y
        return z + x.sum(0), z  # z is returned

    given = START.copy()
    program = program_of(jax.make_jaxpr(chain)(given))
    names = [each.name for each in program.equations]
    written = dict(zip(names, _written(program, given), strict=True))
    assert written["tanh"]
    assert not written["mul"]
    assert not written["add"]
    agree([(chain, (given,))], rtol=1e-6)
    np.testing.assert_array_equal(given, START)


def test_views_keep_their_memory() -> None:
    def views(x: Any) -> Any:
        y = x * 3
        turned, part = y.T, y[0]
        z = -y  # others see its memory
        wide = jnp.broadcast_to(z[:1] * 2, z.shape) + z
        return wide, turned + z.T, part, jnp.exp(y) - lax.reshape(y, y.shape)

    agree([(views, (START,))], rtol=1e-5, atol=1e-6)
