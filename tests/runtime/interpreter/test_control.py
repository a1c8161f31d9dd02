"""Control flow, interpreted: loops, branches, functions with rules of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.custom_batching import custom_vmap

from estimatorkit.runtime.interpreter.table import program_of
from tests.runtime.interpreter.agreement import agree

ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)


def _sum_and_row(carried: Any, row: Any) -> Any:
    return carried + row, carried * row


def _scans(rows: Any) -> list[Any]:
    zero = jnp.zeros(3, np.float32)
    return [
        lax.scan(_sum_and_row, zero, rows),
        lax.scan(_sum_and_row, zero, rows, reverse=True),
        lax.scan(_sum_and_row, zero, rows[:0]),
        lax.scan(lambda _, row: (None, row + 1), None, rows),
        lax.scan(lambda x, _: (x * 2, None), rows, None, length=3),
        lax.scan(lambda x, _: (x * 2, None), rows, None, length=0),
        lax.scan(lambda x, row: (row, x), zero, rows),  # passes both through
        lax.scan(lambda x, row: ((x[1], x[0] + row), (x[0], zero)), (zero, zero), rows),
        lax.scan(lambda x, row: (x, (row, row)), zero, rows),
        lax.scan(lambda x, row: lax.scan(_sum_and_row, row, x)[::-1], rows, rows),
        lax.scan(lambda x, row: (x, (rows[1] * row).sum()), zero, rows),
    ]


def _loops(rows: Any, count: Any) -> list[Any]:
    def until(limit: int) -> Callable[[Any], Any]:
        return lambda carried: (carried[0] < limit) & (carried[0] < count)

    def twice(carried: Any) -> Any:
        return carried[0] + 1, carried[1] * 2

    def nested(carried: Any) -> Any:
        at, x = carried
        return at + 1, lax.fori_loop(0, at, lambda _, x: x + rows, x)

    def exchange(carried: Any) -> Any:
        return carried[0] + 1, carried[2], carried[1]

    return [
        lax.while_loop(until(3), twice, (0, rows)),
        lax.while_loop(until(0), twice, (0, rows)),
        lax.while_loop(until(4), nested, (0, rows)),
        lax.while_loop(until(3), exchange, (0, rows, -rows)),
        lax.fori_loop(0, count, lambda at, x: x.at[at].add(at), rows),
        lax.fori_loop(0, count, lambda at, x: lax.dynamic_update_slice(x, x[:1], (at, at)), rows),
    ]


def _branches(rows: Any, at: Any) -> list[Any]:
    branches = [lambda x: x + 1, lambda x: x, lambda x: -x]

    def inner(x: Any) -> Any:
        return lax.cond(x.sum() > 3, lambda x: x, lambda x: x * 2, x)

    return [
        lax.switch(at, branches, rows),
        lax.cond(at > 1, lambda: (rows, rows), lambda: (rows * 2, rows)),
        lax.map(inner, rows),
        jax.vmap(inner)(rows),
    ]


def test_scans() -> None:
    agree([(_scans, (ROWS,))], exact=True)


@pytest.mark.slow
@pytest.mark.parametrize("count", [0, 2, 4])
def test_loops(count: int) -> None:
    agree([(_loops, (ROWS, np.int32(count)))], exact=True)


@pytest.mark.slow
def test_branches() -> None:
    agree([(_branches, (ROWS, np.int32(at))) for at in (-5, 0, 1, 2, 9)], exact=True)


def test_indices_of_branches_are_clamped() -> None:
    def chosen(at: Any) -> Any:
        return lax.switch(at, [lambda: 1, lambda: 2, lambda: 3])

    program = program_of(jax.make_jaxpr(lambda at: lax.cond_p.bind(at, **_switch(chosen)))(1))
    assert [int(program(np.int32(at))[0]) for at in (-(2**31), -1, 0, 1, 2, 3, 100)] == [
        *(1, 1, 1, 2, 3, 3, 3)
    ]


def _switch(function: Any) -> Any:
    jaxpr = jax.make_jaxpr(function)(0).jaxpr
    (equation,) = (each for each in jaxpr.eqns if each.primitive is lax.cond_p)
    return equation.params


def test_functions_with_rules_of_their_own() -> None:
    @jax.custom_jvp
    def tangent(x: Any) -> Any:
        return x * 2

    tangent.defjvp(lambda given, tangents: (given[0] * 2, tangents[0]))

    @jax.custom_vjp
    def gradient(x: Any) -> Any:
        return x + 1

    gradient.defvjp(lambda x: (x + 1, x), lambda saved, given: (given * saved,))

    @custom_vmap
    def batched(x: Any) -> Any:
        return x - 3

    @batched.def_vmap
    def _rule(size: int, axes: Any, x: Any) -> Any:
        return x * 5, True

    def every(x: Any) -> list[Any]:
        checkpointed = jax.checkpoint(lambda x: jnp.square(x).sum())
        return [
            tangent(x),
            jax.grad(lambda x: gradient(x).sum())(x),
            batched(x),
            jax.vmap(batched)(x),
            jax.grad(checkpointed)(x),
            jax.jit(lambda x: x)(x),
        ]

    agree([(every, (ROWS,))], exact=True)


def test_results_do_not_share_memory_that_loops_write() -> None:
    def both(rows: Any) -> Any:
        last, seen = lax.scan(lambda x, row: (x.at[0].add(row[0]), x), rows[0], rows)
        return last, seen, lax.fori_loop(0, 3, lambda at, x: x.at[at].set(0), rows), rows

    given = ROWS.copy()
    agree([(both, (given,))], exact=True)
    np.testing.assert_array_equal(given, ROWS)
