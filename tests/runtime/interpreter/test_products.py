"""Products, interpreted: all dimension numbers and dtypes, as XLA on CPUs."""

from __future__ import annotations

import functools
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.runtime.interpreter.agreement import agree
from tests.sweep import sweep


def _values(random: np.random.RandomState, shape: Any, dtype: str) -> Any:
    kind = np.dtype(jnp.dtype(dtype)).kind
    if kind == "b":
        return np.asarray(random.rand(*shape) < 0.5)
    if kind in "iu":
        info = jnp.iinfo(dtype)
        return np.asarray(random.randint(info.min, int(info.max) + 1, shape, dtype))
    found = random.randn(*shape)
    return np.asarray(found + 1j * random.randn(*shape) if kind == "c" else found, dtype)


def _random_product(seed: int, dtype: str, wanted: str | None = None) -> tuple[Any, Any]:
    """A product with random dimension numbers, some of length 0."""
    random = np.random.RandomState(seed)
    counts = random.randint(0, [2, 3, 3, 3])
    dims = {name: random.randint(1, 5, count) for name, count in zip("bkfg", counts, strict=True)}
    if seed % 7 == 6:
        for lengths in dims.values():
            lengths[:1] = 0
    sides = []
    for name in "fg":
        names = [(kind, at) for kind in ("b", "k", name) for at in range(len(dims[kind]))]
        names = [names[at] for at in random.permutation(len(names))]
        sides.append(names)
    contracted = [tuple(side.index(("k", at)) for at in range(counts[1])) for side in sides]
    batches = [tuple(side.index(("b", at)) for at in range(counts[0])) for side in sides]
    given = [_values(random, tuple(dims[kind][at] for kind, at in side), dtype) for side in sides]
    numbers = (tuple(contracted), tuple(batches))
    preferred = None if wanted is None else jnp.dtype(wanted)
    function = functools.partial(
        lax.dot_general, dimension_numbers=numbers, preferred_element_type=preferred
    )
    return function, given


DTYPES = (
    ("float32", None),
    ("float64", None),
    ("float16", None),
    ("bfloat16", None),
    ("bfloat16", "float32"),
    ("complex64", None),
    ("bool", None),
    ("int8", None),
    ("int8", "int32"),
    ("uint16", None),
    ("int32", None),
    ("int32", "int64"),
)


@sweep("dtype,wanted", DTYPES, quick=2)
def test_dimension_numbers(dtype: str, wanted: str | None) -> None:
    tolerance = {"float16": 2e-2, "bfloat16": 6e-2}.get(dtype, 2e-5)
    cases = [_random_product(seed, dtype, wanted) for seed in range(8)]
    agree(cases, rtol=tolerance, atol=tolerance)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(8, 300, 60))
def test_many_dimension_numbers(start: int) -> None:
    cases = [_random_product(seed, "float32") for seed in range(start, start + 60)]
    agree(cases, rtol=2e-5, atol=2e-5)


def test_large_products_of_small_integers() -> None:
    random = np.random.RandomState(0)
    for dtype, wanted in (("int8", "int8"), ("uint8", "int32"), ("int16", "int32")):
        a, b = _values(random, (20, 300), dtype), _values(random, (300, 20), dtype)
        found = functools.partial(jnp.matmul, preferred_element_type=wanted)
        agree([(found, (a, b))])


def test_matrices_and_vectors() -> None:
    random = np.random.RandomState(0)
    a, b = random.randn(3, 4).astype("f"), random.randn(4, 3).astype("f")
    cases: list[Any] = []
    for own in (0, 1):
        for x, y in ((a, b), (a, a), (b, a), (a, a[:, 0]), (a[:, 0], a), (a[0], b), (b, b[0])):
            for other in range(y.ndim):
                if own < x.ndim and x.shape[own] == y.shape[other]:
                    axes = ((own,), (other,))
                    cases.append((functools.partial(jnp.tensordot, axes=axes), (x, y)))
    cases += [
        (jnp.vdot, (a[0], a[1])),
        (lambda x, y: lax.dot_general(x, y, (((), ()), ((), ()))), (a[0, 0], b)),
        (lambda x, y: lax.dot_general(x, y, (((), ()), ((), ()))), (a[0, 0], b[0, 0])),
        (lambda x, y: x @ y, (a[:, :0], b[:0])),
        (lambda x: x @ np.array([1, np.nan, np.inf, -np.inf], "f"), (a,)),
    ]
    agree(cases, rtol=1e-5, atol=1e-6)
