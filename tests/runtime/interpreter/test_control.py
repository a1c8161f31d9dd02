"""Control flow, interpreted: loops, branches, functions with rules of their own."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.custom_batching import custom_vmap
from jax.interpreters import ad

from estimatorkit.runtime.interpreter import rules
from estimatorkit.runtime.interpreter.aliases import FRESH
from estimatorkit.runtime.interpreter.equations import Equation
from estimatorkit.runtime.interpreter.table import Template, program_of
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


def test_branches_of_platforms() -> None:
    def both(x: Any) -> Any:
        known = lax.platform_dependent(x, tpu=lambda x: x - 1, cpu=lambda x: x + 1)
        return known, lax.platform_dependent(x, cuda=lambda x: -x, default=lambda x: x * 2)

    agree([(both, (ROWS,)), (lambda x: jnp.tile(x, (2, 3)), (ROWS,))], exact=True)


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


def _carried(body: Callable[..., Any], *given: Any) -> list[int]:
    """The arguments of a loop's body that it changes in place, counted from the first carried."""
    loop = jax.make_jaxpr(lambda *given: lax.fori_loop(0, given[-1], body, given[:-1]))(*given)
    (equation,) = (each for each in loop.jaxpr.eqns if each.primitive is lax.while_p)
    closed, count = equation.params["body_jaxpr"], equation.params["body_nconsts"]
    carried = range(count, len(closed.jaxpr.invars))
    return [at - count for at in Template(closed, None, carried).owned]


def test_small_results_of_constants_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def counted(equation: Equation) -> Any:
        return lambda *_: calls.append(1) or np.arange(*equation.result.shape, dtype=np.float32)

    def renewed(at: Any, x: Any) -> Any:
        return lax.iota(np.float32, 4).at[at].add(x.sum())  # a copy in each iteration

    monkeypatch.setitem(rules._rules, "iota", counted)
    program = program_of(jax.make_jaxpr(lambda x: lax.fori_loop(0, 3, renewed, x))(ROWS[:, 0]))
    for _ in range(2):
        (found,) = program(np.ones(4, np.float32))
        np.testing.assert_array_equal(found, [0, 1, 2 + 16, 3])
    assert len(calls) == 1


def test_loops_change_their_arrays_in_place() -> None:
    x, n = ROWS.copy(), np.int32(4)

    def written(at: Any, carried: Any) -> Any:
        (x,) = carried
        return (x.at[at].set(x[at - 1] * 2),)

    def with_result(at: Any, carried: Any) -> Any:
        x, _ = carried
        return x.at[at].set(0), x[0]  # the row is that of before

    def exchanged(at: Any, carried: Any) -> Any:
        x, y = carried
        return y, x.at[at].set(1)

    def twice(at: Any, carried: Any) -> Any:
        x, _ = carried
        new = x.at[at].add(1)
        return new, new

    def of_itself(at: Any, carried: Any) -> Any:
        (x,) = carried
        return (lax.dynamic_update_slice(x, x[1:], (at, at)),)

    def replaced(at: Any, carried: Any) -> Any:
        (x,) = carried
        return (jnp.broadcast_to(x[0], x.shape).at[at].add(x[at]),)

    # The first two slots of a `fori_loop` are its counter and limit.
    cases: list[tuple[Callable[..., Any], tuple[Any, ...], list[int]]] = [
        (written, (x,), [2]),
        (with_result, (x, x[0]), []),
        (exchanged, (x, -x), [2, 3]),
        (twice, (x, x), []),
        (of_itself, (x,), []),
        (replaced, (x,), []),
    ]
    for body, given, owned in cases:
        assert _carried(body, *given, n) == owned, body.__name__
    loops = [
        (lambda *given, body=body: lax.fori_loop(0, given[-1], body, given[:-1]), (*given, n))
        for body, given, _ in cases
    ]
    agree(loops, exact=True)
    np.testing.assert_array_equal(x, ROWS)


ARITHMETIC = ["add", "sub", "mul", "div", "max", "min", "rem", "eq", "ne", "lt", "le", "gt", "ge"]


def test_results_that_loops_may_change_share_no_memory() -> None:
    none = (((), ()), ((), ()))
    functions: dict[str, list[Callable[[Any], Any]]] = {
        **{
            name: [lambda x, name=name: getattr(lax, name)(x, x)]
            for name in [
                "add",
                "sub",
                "mul",
                "div",
                "max",
                "min",
                "rem",
                "eq",
                "ne",
                "lt",
                "le",
                "gt",
                "ge",
            ]
        },
        **{
            name: [lambda x, name=name: getattr(lax, name)(x)]
            for name in ["neg", "exp", "log", "tanh", "logistic", "sqrt"]
        },
        "add_any": [lambda x: ad.add_jaxvals_p.bind(x, x)],
        "dot_general": [lambda x: x @ x.T, lambda x: lax.dot_general(x, x[0, 0], none)],
        "argmax": [lambda x: lax.argmax(x, 0, np.int32)],
        "argmin": [lambda x: lax.argmin(x, 0, np.int32)],
        "concatenate": [lambda x: lax.concatenate_p.bind(x, dimension=0)],
        "stack": [lambda x: lax.stack([x])],
        "pad": [lambda x: lax.pad(x, np.float32(0), [(0, 0, 0), (0, 0, 0)])],
        "select_n": [lambda x: jnp.where(x > 100, x, -x), lambda x: lax.select(True, x, x)],
        "random_bits": [],
        "random_split": [],
        "random_fold_in": [],
    }
    assert {*functions} == {*FRESH, "select_n"}
    for name, several in functions.items():
        for dtype in (np.float32, np.int32, np.float64):
            x = ROWS.astype(dtype)
            for function in several:
                try:
                    program = program_of(jax.make_jaxpr(function)(x))
                except TypeError:  # no integers
                    continue
                with np.errstate(all="ignore"):
                    (found,) = program(x)
                assert not np.shares_memory(found, x), name


SEVENS = np.full((3, 3), 7, np.float32)


def _swapped(at: Any, carried: Any) -> Any:
    return carried[1], carried[0].at[at].set(0)


MOVES: list[Callable[..., Any]] = [
    lambda x, y, row, at, place: lax.dynamic_update_slice(x, row * 2, (place, at)),
    lambda x, y, row, at, place: lax.dynamic_update_slice(x, row, (at, place)),
    lambda x, y, row, at, place: x.at[(at + place) % 3].add(y[0]),
    lambda x, y, row, at, place: x.at[jnp.array([0, place])].set(y[1:]),
    lambda x, y, row, at, place: x.T,
    lambda x, y, row, at, place: x + y,
    lambda x, y, row, at, place: jnp.where(at > place, x, y),
    lambda x, y, row, at, place: lax.cond(at > place, lambda: x, lambda: jnp.asarray(SEVENS)),
    lambda x, y, row, at, place: lax.cond(at > place, lambda: x.at[0].add(y[1]), lambda: y),
    lambda x, y, row, at, place: lax.fori_loop(0, at, lambda i, c: c.at[i].add(y[0]), x),
    lambda x, y, row, at, place: lax.fori_loop(0, at, _swapped, (x, y))[1],
    lambda x, y, row, at, place: lax.scan(lambda c, r: (c.at[0].add(r), c[0]), x, y)[0],
    lambda x, y, row, at, place: lax.scan(lambda c, r: (c.at[1].set(r), c[0]), x, y)[1],
    lambda x, y, row, at, place: lax.scan(lambda c, r: (c[::-1], r), (x, y), y)[0][0],
    lambda x, y, row, at, place: lax.fori_loop(0, at, lambda i, c: c[::-1], (x, y))[1],
    lambda x, y, row, at, place: jax.jit(lambda x: x.T)(x) if place else jnp.asarray(SEVENS),
]


def _random_body(seed: int) -> Callable[..., Any]:
    """The body of a loop over three matrices, of updates, views and copies in random order."""
    random = np.random.RandomState(seed)
    steps = [
        (random.randint(len(MOVES)), *random.randint(0, 9, 3).tolist())
        for _ in range(random.randint(2, 9))
    ]
    returned = random.randint(0, 9, 3).tolist()

    def body(at: Any, carried: Any) -> Any:
        known = list(carried)
        for kind, one, other, place in steps:
            x, y = known[one % len(known)], known[other % len(known)]
            row = lax.dynamic_slice(y, (at, place % 3), (1, 2))
            made = MOVES[kind](x, y, row, at, place % 3)
            known.append(made)
        return tuple(known[-1 - each % len(known)] for each in returned)

    return body


def _loop(body: Any, count: Any, *given: Any) -> Any:
    return lax.fori_loop(0, count, body, given)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 300, 60))
def test_loops_of_updates_and_views(start: int) -> None:
    given = tuple(np.arange(9.0, dtype=np.float32).reshape(3, 3) + at for at in range(3))
    kept = [each.copy() for each in given]
    cases: list[Any] = []
    owned = 0
    for seed in range(start, start + 60):
        body = _random_body(seed)
        owned += len(_carried(body, *given, np.int32(3)))
        loop = functools.partial(_loop, body)
        cases.append((loop, (np.int64(3), *given)))

        def scanned(*x: Any, body: Any = body) -> Any:
            def step(x: Any, at: Any) -> Any:
                changed = body(at, x)
                return changed, changed[1]

            return lax.scan(step, x, jnp.arange(3))

        cases.append((scanned, given))
    agree(cases, exact=True)
    assert owned
    assert (SEVENS == 7).all()
    for each, before in zip(given, kept, strict=True):
        np.testing.assert_array_equal(each, before)
