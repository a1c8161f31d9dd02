"""Broadcasts are folded into elementwise equations."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from estimatorkit.runtime.interpreter.broadcasting import BROADCASTING
from estimatorkit.runtime.interpreter.table import program_of
from tests.runtime.interpreter.agreement import agree

SHAPE = (3, 4)
OPERANDS = ((), (4,), (1, 4), (3, 1), (1, 1))
"""Shapes that NumPy broadcasts to `SHAPE`."""

OF_BOOLEANS = ("and", "or", "xor")
FUNCTIONS: dict[str, Any] = {
    **{name: getattr(lax, name) for name in BROADCASTING if hasattr(lax, name)},
    **{name: getattr(lax, f"bitwise_{name}") for name in OF_BOOLEANS},
}
del FUNCTIONS["select_n"]


def _broadcast(x: Any, shape: tuple[int, ...] = SHAPE) -> Any:
    rank = len(shape)
    return lax.broadcast_in_dim(x, shape, range(rank - x.ndim, rank))


def _values(shape: tuple[int, ...], dtype: Any = np.float32) -> Any:
    drawn = (
        [0, 1, -2, 7] if np.dtype(dtype).kind in "bi" else [-0.0, 0.0, 1.0, -2.5, np.nan, np.inf]
    )
    return np.asarray(np.random.RandomState(len(shape)).choice(drawn, shape), dtype)


def _names(function: Any, *given: Any) -> list[str]:
    return [each.name for each in program_of(jax.make_jaxpr(function)(*given)).equations]


def test_every_elementwise_primitive_is_tested() -> None:
    assert {*FUNCTIONS, "select_n", "add_any"} == BROADCASTING  # the last is `add`


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "bool"])
def test_operands_of_two(dtype: str) -> None:
    wanted = OF_BOOLEANS if dtype == "bool" else [*FUNCTIONS]
    without = {"bool": (), "int32": ("pow",)}.get(dtype, OF_BOOLEANS)
    names = [name for name in wanted if name not in without]
    whole = _values(SHAPE, jnp.dtype(dtype))
    cases = []
    for name, shape in itertools.product(names, OPERANDS):
        part, function = _values(shape, jnp.dtype(dtype)), FUNCTIONS[name]

        def first(x: Any, y: Any, function: Any = function) -> Any:
            return function(_broadcast(y), x)

        def second(x: Any, y: Any, function: Any = function) -> Any:
            return function(x, _broadcast(y))

        cases += [(first, (whole, part)), (second, (whole, part))]
    agree(cases, exact=dtype != "bfloat16")
    for function, given in cases:
        assert "broadcast_in_dim" not in _names(function, *given)


@pytest.mark.parametrize("rows", [3, 2000])
def test_choices(rows: int) -> None:
    shape = (rows, 4)
    which, whole = np.arange(4 * rows).reshape(shape) % 3 == 0, _values(shape)
    parts = [_values(each) for each in ((), (4,), (rows, 1))]

    def choose(which: Any, no: Any, yes: Any) -> Any:
        return lax.select_n(which, _broadcast(no, shape), _broadcast(yes, shape))

    cases = [(choose, (w, a, b)) for w in (which, ~which) for a in parts for b in (*parts, whole)]
    one = [np.broadcast_to(each, shape) for each in (True, False)]
    agree([*cases, *((choose, (each, *parts[:2])) for each in one)], exact=True)
    for function, given in cases:
        assert "broadcast_in_dim" not in _names(function, *given)


def test_a_broadcast_that_others_need_is_computed() -> None:
    x, y = _values(SHAPE), _values((4,))

    def both(x: Any, y: Any) -> Any:
        wide = _broadcast(y)
        return x + wide, wide

    def neither(x: Any, y: Any) -> Any:
        return _broadcast(x[:, :1]) * _broadcast(y)  # no operand has the shape of the result

    def mask(x: Any, y: Any) -> Any:
        return lax.select_n(_broadcast(y > 0), x, -x)

    def one(which: Any, x: Any, y: Any) -> Any:
        return lax.select_n(which, x, _broadcast(y))  # the choice of one operand, as it is

    def leading(x: Any, y: Any) -> Any:
        return x + lax.broadcast_in_dim(y[:3], SHAPE, (0,))

    cases: list[Any] = [(each, (x, y)) for each in (both, neither, mask, leading)]
    cases += [(one, (np.array(each), x, y)) for each in (True, False)]
    agree(cases, exact=True)
    for function, given in cases:
        assert "broadcast_in_dim" in _names(function, *given)


def test_loops_broadcast_what_changes() -> None:
    rows = _values((5, 4))

    def step(total: Any, row: Any) -> Any:
        wide = _broadcast(row)
        total = jnp.where(total > _broadcast(row[0]), total * 0.5, total + wide)
        return total.at[0].set(row), jnp.sum(total, 0)

    agree([(lambda x, rows: lax.scan(step, x, rows), (np.ones(SHAPE, np.float32), rows))])
