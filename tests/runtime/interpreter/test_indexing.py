"""Gathers, scatters and slices, interpreted: as XLA on CPUs, also for indices that are outside."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.lax import GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers

from tests.runtime.interpreter.agreement import agree
from tests.sweep import sweep

MODES = (
    GatherScatterMode.CLIP,
    GatherScatterMode.FILL_OR_DROP,
    GatherScatterMode.PROMISE_IN_BOUNDS,
)


def _values(random: np.random.RandomState, shape: Any, dtype: str) -> Any:
    kind = np.dtype(jnp.dtype(dtype)).kind
    if kind == "b":
        return random.rand(*shape) < 0.5
    if kind in "iu":
        return random.randint(0, 100, shape).astype(dtype)
    found = random.randn(*shape)
    return np.asarray(found + 1j if kind == "c" else found).astype(jnp.dtype(dtype))


def _subset(random: np.random.RandomState, of: Any, count: int) -> tuple[int, ...]:
    return tuple(sorted(random.choice(of, count, replace=False).tolist())) if count else ()


def _windows(random: np.random.RandomState, least: int = 0) -> tuple[Any, ...]:
    """Random dimension numbers: (shape, indices, sizes, offset, collapsed, starts, batches...)."""
    rank = random.randint(1, 5)
    shape = tuple(random.randint(1, 5, rank).tolist())
    lead = random.randint(0, 3)
    indices_shape = list(random.randint(1, 4, lead))
    dims = list(range(rank))
    batches = _subset(random, dims, random.randint(0, min(lead, rank) + 1))
    rest = [at for at in dims if at not in batches]
    least = min(least, len(rest))
    along = tuple(random.permutation(lead)[: len(batches)].tolist())
    for dim, axis in zip(batches, along, strict=True):
        indices_shape[axis] = shape[dim]
    starts = tuple(random.permutation(rest)[: random.randint(least, len(rest) + 1)].tolist())
    sizes = [
        1 if at in batches or random.rand() < 0.4 else random.randint(1, shape[at] + 1)
        for at in dims
    ]
    ones = [at for at in rest if sizes[at] == 1]
    collapsed = _subset(random, ones, random.randint(0, len(ones) + 1))
    kept = rank - len(batches) - len(collapsed)
    offset = _subset(random, list(range(lead + kept)), kept)
    indices = random.randint(-2, 6, (*indices_shape, len(starts)))
    return shape, indices, tuple(sizes), offset, collapsed, starts, batches, along


def _random_gather(seed: int, dtype: str) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    random = np.random.RandomState(seed)
    mode = MODES[seed % 3]
    shape, indices, sizes, offset, collapsed, starts, batches, along = _windows(random)
    numbers = GatherDimensionNumbers(offset, collapsed, starts, batches, along)
    given = _values(random, shape, dtype), indices.astype(np.int32)
    gather = functools.partial(lax.gather, dimension_numbers=numbers, slice_sizes=sizes, mode=mode)
    return gather, given


SCATTERS = {
    "set": lax.scatter,
    "add": lax.scatter_add,
    "sub": lax.scatter_sub,
    "mul": lax.scatter_mul,
    "min": lax.scatter_min,
    "max": lax.scatter_max,
}


def _random_scatter(seed: int, kind: str, dtype: str) -> tuple[Callable[..., Any], Any]:
    random = np.random.RandomState(seed)
    mode = MODES[seed % 3]
    shape, indices, sizes, offset, collapsed, starts, batches, along = _windows(random, 1)
    numbers = ScatterDimensionNumbers(offset, collapsed, starts, batches, along)
    window = [sizes[at] for at in range(len(shape)) if at not in {*collapsed, *batches}]
    updates: list[int] = list(indices.shape[:-1])
    for at, size in zip(offset, window, strict=True):
        updates.insert(at, size)
    given = (
        _values(random, shape, dtype),
        indices.astype(np.int32),
        _values(random, updates, dtype),
    )
    scatter = functools.partial(SCATTERS[kind], dimension_numbers=numbers, mode=mode)
    return scatter, given


@sweep("dtype", ("float32", "int8", "bfloat16", "complex64", "bool", "float64"), quick=1)
def test_gathers(dtype: str) -> None:
    agree([_random_gather(seed, dtype) for seed in range(24)], exact=True)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(24, 500, 60))
def test_many_gathers(start: int) -> None:
    agree([_random_gather(seed, "float32") for seed in range(start, start + 60)], exact=True)


KINDS = [(kind, "float32") for kind in SCATTERS] + [
    *(("set", dtype) for dtype in ("bool", "bfloat16", "complex64", "int8")),
    *(("add", dtype) for dtype in ("int8", "float16", "complex64", "uint32", "float64")),
    *(("min", dtype) for dtype in ("int32", "float16", "uint8")),
    *((kind, "int32") for kind in ("sub", "mul", "max")),
]


@sweep("kind,dtype", KINDS, quick=1)
def test_scatters(kind: str, dtype: str) -> None:
    rounded = jnp.dtype(dtype).itemsize == 2 and kind not in ("set", "min")
    cases = [_random_scatter(seed, kind, dtype) for seed in range(24)]
    agree(cases, exact=not rounded, rtol=0.05 if rounded else None, atol=0.05 if rounded else None)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(24, 500, 60))
def test_many_scatters(start: int) -> None:
    agree(
        [_random_scatter(seed, "add", "float32") for seed in range(start, start + 60)], exact=True
    )
    agree(
        [_random_scatter(seed, "set", "float32") for seed in range(start, start + 60)], exact=True
    )


def test_places_in_tables() -> None:
    random = np.random.RandomState(0)
    table = random.randn(50, 8).astype(np.float32)
    ids = random.randint(-3, 55, (6, 4)).astype(np.int32)
    rows = random.randn(6, 4, 8).astype(np.float32)
    order = np.argsort(random.rand(6, 4), 1)
    agree(
        [
            (lambda t, i: t[i], (table, ids)),
            (lambda t, i: t.at[i].add(rows), (table, ids)),
            (lambda t, i: t.at[i].set(rows, mode="drop"), (table, ids)),
            (lambda t, i: jnp.take(t, i, axis=1, mode="fill"), (table, ids)),
            (lambda t, i: t[i[:, 0], i[:, 1]], (table, ids)),
            (lambda x, i: jnp.take_along_axis(x, i, 1), (rows[:, :, 0], order)),
            (lambda x, i: x[i], (table, np.int32(-2))),
            (lambda x, i: x.at[i].min(0.5), (table, np.int32(49))),
            (lambda x, i: x.at[i, 3].set(7), (table, np.int64(2**40))),
            (lambda x, i: x[:, i], (table[:0], np.int32(1))),
            (lambda x, i: x.at[i].set(1.0), (table, ids[:0])),
        ],
        exact=True,
    )


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "int32", "int8"])
def test_sums_of_many_rows(dtype: str) -> None:
    random = np.random.RandomState(0)
    table, rows = _values(random, (100, 16), dtype), _values(random, (600, 16), dtype)
    ids = random.randint(0, 105, 600).astype(np.int32)
    cases = [
        (lambda t, i, u: t.at[i].add(u), (table, ids, rows)),
        (lambda t, i, u: t.at[i].subtract(u), (table, ids, rows)),
        (lambda t, i, u: t.at[i].add(u.T.reshape(16, 600).T), (table, ids, rows)),
    ]
    agree(cases, exact=True)


_INDICES = [(2**32 + 1, "int64"), (-(2**40), "int64"), (2**63 + 5, "uint64"), (255, "uint8")]


@pytest.mark.slow
@pytest.mark.parametrize("length", [5, 300])
def test_indices_of_other_integers(length: int) -> None:
    x = np.arange(float(length))
    cases: list[Any] = []
    for number, dtype in [*_INDICES, (2**32 - 1, "uint32"), (-1, "int8"), (3, "uint16")]:
        index = np.asarray([[number]]).astype(dtype)
        both = np.concatenate([index, index])
        for mode in MODES:
            gather = functools.partial(
                lax.gather,
                dimension_numbers=GatherDimensionNumbers((), (0,), (0,)),
                slice_sizes=(1,),
                mode=mode,
            )
            scatter = functools.partial(
                lax.scatter_add,
                dimension_numbers=ScatterDimensionNumbers((), (0,), (0,)),
                mode=mode,
            )
            cases += [(gather, (x, index)), (gather, (x, both))]
            cases += [(scatter, (x, both, np.ones(2)))]
            if dtype != "uint8":  # of a single one, XLA makes a signed number
                cases += [(scatter, (x, index, np.ones(1)))]
    agree(cases, exact=True)


def test_slices_at_computed_places() -> None:
    x = np.arange(60.0, dtype=np.float32).reshape(3, 4, 5)
    update = -np.ones((2, 4, 2), np.float32)
    cases: list[Any] = []
    for starts in ((0, 0, 0), (9, 9, 9), (-9, 1, -1)):
        given = tuple(map(np.int32, starts))
        cases += [
            (lambda x, *at: lax.dynamic_slice(x, at, (1, 4, 2)), (x, *given)),
            (lambda x, *at: lax.dynamic_update_slice(x, update, at), (x, *given)),
        ]
    cases += [
        (lambda x, i: lax.dynamic_slice(x, (i,), (2,)), (x[0, 0], np.uint64(2**63))),
        (lambda x, i: lax.dynamic_slice(x, (i,), (0,)), (x[0, 0], np.int8(-100))),
        (lambda x: lax.dynamic_update_slice(x, x + 1, ()), (np.float32(2),)),
        (lambda x: lax.dynamic_slice(x, (), ()), (np.float32(2),)),
    ]
    agree(cases, exact=True)


def test_operands_are_not_written() -> None:
    x = np.zeros((4, 2), np.float32)
    given = (x, np.int32(1), np.array([0, 0, 3]))

    def scatters(x: Any, i: Any, several: Any) -> Any:
        updated = lax.dynamic_update_slice(x, x[:1] + 1, (i, i))
        return updated, x.at[i].set(1), x.at[several].add(1), x.at[several, 1].set(2)

    agree([(scatters, given)], exact=True)
    assert not x.any()
