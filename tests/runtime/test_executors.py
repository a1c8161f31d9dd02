"""The executors give the same values, and `auto` gives the same bits each time."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.runtime import interpreted
from estimatorkit.runtime.xla import compiler_thread
from estimatorkit.runtime.xla.shape_watch import HOST_LIMIT
from tests.runtime.executor_programs import (
    EXECUTORS,
    INTERPRETED_RUNS,
    PROGRAMS,
    at_once,
    change_soon,
    config,
    never,
    run_steps,
    same_bits,
)
from tests.sweep import sweep

STEPS = 6

QUICK = ("embedding_with_adagrad", "dropout", "batch_norm", "scattered")
CASES = [
    pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow, id=name)
    for name in PROGRAMS
]


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """`auto` changes to XLA after a few runs."""
    change_soon(monkeypatch)


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("name", CASES)
def test_executors_agree(name: str) -> None:
    auto, compiled, interpreted = (run_steps(PROGRAMS[name], each, STEPS) for each in EXECUTORS)
    assert auto.compiled == [False] * INTERPRETED_RUNS + [True] * (STEPS - INTERPRETED_RUNS)
    assert compiled.compiled == [True] * STEPS
    assert interpreted.compiled == [False] * STEPS
    for found in (auto, interpreted):
        jax.tree.map(
            lambda ours, theirs: np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=1e-6),
            (found.values, found.variables),
            (compiled.values, compiled.variables),
        )
    first = INTERPRETED_RUNS
    assert same_bits(auto.values[:first], interpreted.values[:first])


def test_random_bits_are_equal() -> None:
    found = [run_steps(PROGRAMS["dropout"], each, STEPS).values for each in EXECUTORS]
    assert same_bits(found[0], found[1])
    assert same_bits(found[1], found[2])
    assert not same_bits(found[0][0], found[0][1])


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("name", CASES)
def test_two_runs_give_the_same_bits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [run_steps(PROGRAMS[name], "auto", STEPS)]
    for submit in (at_once, never):
        monkeypatch.setattr(compiler_thread, "submit", submit)
        found.append(run_steps(PROGRAMS[name], "auto", STEPS))
    for other in found[1:]:
        assert same_bits(other.values, found[0].values)
        assert same_bits(other.variables, found[0].variables)
        assert other.compiled == found[0].compiled
        assert other.compilations == found[0].compilations
    assert set(found[0].compilations.values()) == {1}


def resized() -> Any:
    picture = tf.placeholder(tf.float32, [None, None, 1])
    total = tf.reduce_sum(tf.image.resize_images(picture / 2.0, [2, 2]))
    return total, lambda step: {picture: np.ones([3 + step % (HOST_LIMIT + 2), 4, 1])}


@pytest.mark.slow
@pytest.mark.usefixtures("soon")
def test_two_runs_move_operations_to_the_host_at_the_same_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = []
    for submit in (at_once, never):
        monkeypatch.setattr(compiler_thread, "submit", submit)
        found.append(run_steps(resized, "auto", (HOST_LIMIT + 2) * 5).compiled)
    first = (HOST_LIMIT + 2) * INTERPRETED_RUNS
    assert found[0] == found[1]
    assert found[0][: first + HOST_LIMIT + 1] == [False] * first + [True] * (HOST_LIMIT + 1)
    assert not found[0][first + HOST_LIMIT + 1]  # of a new plan, which is interpreted first


def test_default_costs_interpret_first() -> None:
    assert run_steps(PROGRAMS["dense_with_adam"], "auto", 2).compiled == [False, False]


# -- faults

FAULTS: dict[str, Callable[[Any, Any], Any]] = {
    "after an assignment": lambda v, ids: tf.group(
        tf.assign_add(v, tf.ones([4])), tf.assign(v[:1], tf.gather(v.read_value() * 2.0, ids))
    ),
    "in a loop": lambda v, ids: tf.assign_add(
        v,
        tf.while_loop(
            lambda at, y: at < 3, lambda at, y: (at + 1, y + tf.gather(v, ids + at)), (0, v + 1.0)
        )[1],
    ),
    "in a branch": lambda v, ids: tf.assign_add(
        v, tf.cond(v[0] > 0.0, lambda: tf.gather(v, ids) + v, lambda: v * 2.0)
    ),
    "of an integer division": lambda v, ids: tf.assign_add(
        v, tf.cast(7 // (ids - 5), v.dtype) + 0.0 * v
    ),
}


def fault(make: Callable[[Any, Any], Any], executor: str, warm: int) -> tuple[Any, ...]:
    """The error after some runs without a fault, and the variables before it, after it, and after
    another run without one."""
    with tf.Graph().as_default(), tf.Session(config=config(executor)) as session:
        ids = tf.placeholder(tf.int32, [1], "ids")
        v = tf.get_variable("v", initializer=[1.0, 2.0, 3.0, 4.0])
        w = tf.get_variable("w", initializer=0.0)
        counted = tf.assign_add(w, 1.0)
        step = [make(v, ids), counted]
        session.run(tf.global_variables_initializer())
        for _ in range(warm):
            session.run(step, {ids: [1]})
        found = [session.run([v, w])]
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            session.run(step, {ids: [5]})
        found.append(session.run([v, w]))
        session.run(step, {ids: [0]})
        return str(caught.value).partition("made at")[0], *found, session.run([v, w])


@pytest.mark.usefixtures("soon")
@sweep(("name", "warm"), [(name, warm) for name in FAULTS for warm in (0, 4)], quick=3)
def test_faults_are_equal(name: str, warm: int) -> None:
    auto, compiled, interpreted = (fault(FAULTS[name], each, warm) for each in EXECUTORS)
    for found in (auto, interpreted):
        assert found[0] == compiled[0]
        for ours, theirs in zip(found[1:], compiled[1:], strict=True):
            jax.tree.map(np.testing.assert_allclose, ours, theirs)


# -- what cannot be interpreted, or traced for all sizes


def own_callback() -> Any:
    x = tf.placeholder(tf.float32, [None])
    shape = jax.ShapeDtypeStruct((2,), np.float32)

    def double(values: Any) -> Any:
        return jax.pure_callback(lambda each: np.asarray(each) * 2.0, shape, values)

    y = tf.jax_function(double, x)
    return y + 1.0, lambda step: {x: [1.0, step]}


@pytest.mark.parametrize("executor", EXECUTORS)
def test_what_cannot_be_interpreted_is_compiled(executor: str) -> None:
    found = run_steps(own_callback, executor, 2)
    assert found.compiled == [True, True]
    assert [each.tolist() for each in found.values] == [[3.0, 1.0], [3.0, 3.0]]
    assert set(found.compilations.values()) == {1}


def test_untraceable_sizes_are_traced_for_each_shape(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    traces = []
    trace = interpreted.symbolic_trace

    def refused(*arguments: Any, known: bool = False) -> Any:
        traces.append(known)
        return trace(*arguments, known=True) if known else "ValueError: a size of interest"

    monkeypatch.setattr(interpreted, "symbolic_trace", refused)
    with caplog.at_level(logging.DEBUG, "estimatorkit"), tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None])
        y = tf.reduce_sum(x, name="total")
        with tf.Session(config=config("interpret")) as session:
            for length in (2, 3, 3, 2):
                assert session.run(y, {x: np.ones(length)}) == length
    assert traces == [False, True] * 2
    assert (
        caplog.messages.count("total is traced for each shape: ValueError: a size of interest") == 2
    )


def test_runs_in_auto_that_take_longer_than_a_compilation_are_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(interpreted, "compilation_seconds", lambda jaxpr: 1e-9)
    assert run_steps(PROGRAMS["dropout"], "auto", 2).compiled == [True, True]
    assert run_steps(PROGRAMS["dropout"], "interpret", 2).compiled == [False, False]


def test_new_values_of_large_variables_take_their_own_buffers() -> None:
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [4, 600])
        for at in range(3):
            x = tf.tanh(tf.matmul(x, tf.get_variable(f"w{at}", [600, 600])))
        loss = tf.reduce_mean(x * x)
        step = tf.train.AdamOptimizer(0.1).minimize(loss)
        initial = tf.global_variables_initializer()
    with tf.Session(graph=graph, config=config("xla")) as session:
        session.run(initial)

        def places() -> dict[str, int]:
            session.run([step, loss], {"Placeholder:0": np.ones([4, 600])})
            found = session.state.values
            return {
                name: value.unsafe_buffer_pointer()
                for name, value in found.items()
                if np.shape(value) == (600, 600)
            }

        first = places()
        assert len(first) == 9
        assert places() == first
