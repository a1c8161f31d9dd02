"""Traces of kernels that are used again, by types, attributes, shapes and constants."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.core import retraced as traces
from estimatorkit.core.retraced import retraced
from estimatorkit.core.sizes import Sizes
from estimatorkit.runtime import lower


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    traces._traces.clear()
    yield
    traces._traces.clear()


def calls(*constants: Any, shape: Any = (2,), key: Any = ("scaled",)) -> list[bool]:
    """Whether each of a kernel's calls in a trace, one for each constant, is an earlier trace's."""
    found = []

    def function(x: Any) -> Any:
        total = x
        for constant in constants:
            result, again = retraced(lambda a, b: a * b, key, [x, constant])
            found.append(again)
            total = total + result
        return total

    value = np.arange(2, dtype=np.float32) + 1
    if shape == (2,):
        expected = value + sum(np.float32(each) * value for each in constants)
        np.testing.assert_array_equal(jax.jit(function)(value), expected)
    else:
        jax.eval_shape(function, jax.ShapeDtypeStruct(shape, np.float32))
    return found


def test_equal_calls_are_inlined() -> None:
    three = np.float32(3)
    assert calls(three, three, three) == [False, True, True]
    assert calls(three) == [True]  # in another program
    assert calls(three, shape=(4,)) == [False]
    assert calls(three, key=("other",)) == [False]
    assert calls(three, key=(abs,)) == calls(three, key=(abs,)) == [False]  # has no key


def test_constants_that_compare_equal_are_told_apart() -> None:
    zeros = np.float32(0), np.float32(-0.0), np.float64(0), np.zeros(1, np.float32)
    assert calls(*zeros) == [False] * 4
    for attribute in (0.0, -0.0, 0, False, "0", (0,), {"a": 0}, slice(0, 0)):
        assert calls(np.float32(1), key=(attribute,)) == [False]


def test_known_results_stay_known() -> None:
    def function(x: Any) -> Any:
        for _ in range(3):
            known, again = retraced(lambda a: np.array(a.shape), ["shape"], [x])
            assert isinstance(known, np.ndarray)
            assert not again
        return x

    jax.eval_shape(function, jax.ShapeDtypeStruct((3,), np.float32))


def test_symbolic_sizes_are_traced_anew() -> None:
    size = Sizes().symbol(7)
    assert calls(np.float32(2), np.float32(2), shape=(size,)) == [False, False]


def test_forgets_when_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "MOST", 2)
    one, two, three = map(np.float32, (1, 2, 3))
    assert calls(one, two, three, one, three) == [False, False, False, False, True]
    assert len(traces._traces) == 2


def test_layers_that_are_alike_are_differentiated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pulls = []
    pull_back = lower.vjp._linearized

    def counting(forward_type: str, *arguments: Any) -> Any:
        pulls.append(forward_type)
        return pull_back(forward_type, *arguments)

    def gradients(inputs: Any) -> Any:
        with tf.Graph().as_default():
            y = x = tf.placeholder(tf.float32, [3, 3])
            for _ in range(8):
                y = tf.tanh(tf.matmul(y, y) / 3)
            with tf.Session() as session:
                return session.run([y, *tf.gradients(y, x)], {x: inputs})

    inputs = np.random.default_rng(1).normal(size=(3, 3)).astype(np.float32)
    monkeypatch.setattr(lower.vjp, "_linearized", counting)
    first = gradients(inputs)
    assert pulls.count("MatMul") == 2  # once as it is, and once to be inlined
    pulls.clear()
    monkeypatch.setattr(lower, "traced_for", lambda: None)
    anew = gradients(inputs)
    assert pulls.count("MatMul") == 8
    for one, other in zip(first, anew, strict=True):
        np.testing.assert_array_equal(one, other)
