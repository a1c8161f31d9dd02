"""Sorting gives what XLA does, ties and NaN included."""

import numpy as np
import pytest
from jax import lax

from tests.runtime.interpreter.compare import COMPLEX, FLOATS, INTEGERS, check, normal, values
from tests.sweep import sweep

ALL = (*FLOATS, *INTEGERS, "bool")


def mixed(dtype, shape):
    """Numbers with many ties, and special ones."""
    generator = np.random.default_rng(0)
    return generator.choice(values(dtype, count=2), size=shape)


@sweep("dtype", [*ALL, *COMPLEX], quick=2)
@pytest.mark.parametrize("shape", [(17,), (3, 40, 5)])
def test_sorting(dtype, shape):
    x, place = mixed(dtype, shape), np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    axes = range(len(shape))
    check([lambda x, a=a: lax.sort(x, dimension=a) for a in axes], x)
    check([lambda x, p, a=a: lax.sort((x, p), dimension=a, num_keys=1) for a in axes], x, place)
    check([lambda x, p: lax.sort((x > x[0], x, p), dimension=0, num_keys=2)], x.real, place)
    other = mixed(np.float32, shape)
    check([lambda x, y, p: lax.sort((y, x, p), dimension=0, num_keys=3)], x, other, place)


@sweep("dtype", [*FLOATS, *INTEGERS], quick=2)
def test_largest_elements(dtype):
    x = mixed(dtype, (3, 30))
    check([lambda x, k=k: lax.top_k(x, k) for k in (0, 1, 2, 5, 30)], x)
    check([lambda x: lax.top_k(x, 3, axis=0), lambda x: lax.top_k(x, 1, axis=0)], x)
    x = mixed(dtype, (2, 700))
    check([lambda x, k=k: lax.top_k(x, k) for k in (1, 7, 100, 600)], x)
    x = normal(dtype, (1000,))
    check([lambda x, k=k: lax.top_k(x, k) for k in (1, 20)], x)


@sweep("dtype", FLOATS, quick=1)
def test_largest_elements_of_approximate_functions(dtype):
    x = np.random.default_rng(0).permutation(200).astype(dtype).reshape(2, 100)
    check([lambda x: lax.approx_max_k(x, 5), lambda x: lax.approx_min_k(x, 5)], x)
    check([lambda x: lax.approx_max_k(x, 2, reduction_dimension=0)], x)


@sweep("dtype", ["float32", "int32", "uint32", "float64"], quick=1)
def test_long_axes(dtype):
    x = mixed(dtype, (3000,))
    place = np.arange(3000, dtype=np.int32)
    check([lambda x, p: lax.sort((x, p), num_keys=1), lambda x, p: lax.sort(x)], x, place)
