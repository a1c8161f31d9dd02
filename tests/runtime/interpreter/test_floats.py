"""Subnormal numbers are zeros in interpreted programs, as in XLA's, and only there."""

import platform
import sys
import threading
from contextlib import nullcontext

import numpy as np
import pytest
from jax import lax

from estimatorkit.runtime.interpreter import blas
from estimatorkit.runtime.interpreter.floats import as_xla
from estimatorkit.runtime.interpreter.settings import numpy_settings
from tests.runtime.interpreter.compare import check

flushed = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="not known of other CPUs"
)


@flushed
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_subnormal_numbers(dtype):
    tiny = 2.0 ** (-1022 if dtype == "float64" else -126)
    x = np.array([tiny / 2, -tiny / 4, tiny, -0.0, tiny * 4, 1.0, np.inf], dtype)
    functions = [lax.sqrt, lax.sign, lax.ceil, lambda x: lax.eq(x, x - x)]
    functions += [lambda x: x * x, lambda x: x / np.asarray(8, x.dtype), lax.rsqrt]
    check([*functions, lambda x: lax.reduce_sum(x[:3], (0,)), lambda x: lax.lt(x, x * 2)], x)


@flushed
def test_the_state_of_the_thread_is_restored():
    x = np.full(8, 1e-40, np.float32)

    def zeros():
        return int((x == 0).sum())

    assert zeros() == 0
    with as_xla():
        assert zeros() == 8
        with as_xla():
            assert zeros() == 8
        assert zeros() == 8
        found = []
        thread = threading.Thread(target=lambda: found.append(np.exp(np.float32(-90)) == 0))
        thread.start()
        thread.join()
    assert zeros() == 0
    with pytest.raises(KeyError), as_xla():
        raise KeyError
    assert zeros() == 0


def test_nothing_warns():
    with as_xla():
        assert np.log(np.float32(0)) == -np.inf
        assert np.isnan(np.float32(np.inf) - np.float32(np.inf))


@flushed
def test_the_outermost_settings_of_a_thread_are_restored():
    x = np.full(8, 1e-40, np.float32)

    def threads():
        return [each.num_threads for each in blas._libraries()]

    before = threads()
    for end in (None, KeyError):
        with pytest.raises(KeyError) if end else nullcontext(), numpy_settings():
            with pytest.raises(KeyError), numpy_settings():
                raise KeyError
            assert not x.any()
            assert threads() == [1] * len(before)
            if end:
                raise end
        assert x.any()
        assert threads() == before


@flushed
def test_settings_are_those_of_a_thread():
    x, inside, found = np.full(8, 1e-40, np.float32), threading.Event(), threading.Event()

    def other():
        with numpy_settings():
            inside.set()
            found.wait(60)

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait(60)
    assert x.any()
    with numpy_settings():
        assert not x.any()
    assert x.any()
    found.set()
    thread.join()
