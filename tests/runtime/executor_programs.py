"""Small programs for the tests of executors, and what their steps give."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.interop.protos import ConfigProto
from estimatorkit.runtime import interpreted
from estimatorkit.runtime.executor import CompiledSegment
from estimatorkit.runtime.interpreter.cost import Meter

EXECUTORS = ("auto", "xla", "interpret")

INTERPRETED_RUNS = 3
"""With the fixture `soon`."""


def config(executor: str) -> Any:
    """A session's configuration."""
    made = ConfigProto(allow_soft_placement=True)
    made.experimental.executor_type = executor
    return made


@dataclass
class Steps:
    """What the steps of a program gave.

    Attributes:
        values: the fetched values of each step.
        variables: the values of all variables at the end, by name.
        compiled: whether XLA ran segments, by step.
        compilations: their number, by segment.
    """

    values: list[Any]
    variables: dict[str, Any]
    compiled: list[bool] = field(default_factory=list)
    compilations: dict[str, int] = field(default_factory=dict)


Program = Callable[[], tuple[Any, Callable[[int], Mapping[Any, Any]]]]
"""Adds a program to the default graph; returns what a step fetches, and its feeds."""


def run_steps(program: Program, executor: str, steps: int) -> Steps:
    """The first steps of a program in a new session."""
    calls = 0
    call = CompiledSegment._call

    def counted(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        return call(*arguments)

    with pytest.MonkeyPatch.context() as patch, tf.Graph().as_default():
        patch.setattr(CompiledSegment, "_call", counted)
        tf.set_random_seed(1)
        fetches, feeds = program()
        with tf.Session(config=config(executor)) as session:
            session.run(tf.global_variables_initializer())
            found = Steps([], {})
            calls = 0
            for step in range(steps):
                before = calls
                found.values.append(session.run(fetches, feeds(step)))
                found.compiled.append(calls > before)
            names = [each.op.name for each in tf.global_variables()]
            found.variables = dict(zip(names, session.run(tf.global_variables()), strict=True))
            found.compilations = dict(session.state.compilations)
    return found


class Runs(Meter):
    """Counts the runs."""

    def add(self, seconds: float) -> None:
        self.seconds += 1.0


def change_soon(patch: pytest.MonkeyPatch) -> None:
    """Makes `auto` compile after a run, and use the executable after `INTERPRETED_RUNS`."""
    patch.setattr(interpreted, "compilation_seconds", lambda jaxpr: 1.0)
    patch.setattr(interpreted, "START", 1.0)
    for name in ("ENOUGH", "ENOUGH_OF_FEW", "LONGEST"):
        patch.setattr(interpreted, name, float(INTERPRETED_RUNS))
    patch.setattr(interpreted, "Meter", Runs)
    patch.setattr(interpreted, "metered", lambda meter: patch.context())


def change_after(patch: pytest.MonkeyPatch, steps: int) -> None:
    """Makes `auto` compile shapes that may have few steps after so many."""
    change_soon(patch)
    patch.setattr(interpreted, "START", float(steps))


def at_once(function: Callable[..., Any], *arguments: Any) -> Future[Any]:
    """A compiler thread that has always finished."""
    future: Future[Any] = Future()
    future.set_result(function(*arguments))
    return future


def never(function: Callable[..., Any], *arguments: Any) -> Future[Any]:
    """A compiler thread that is always busy."""
    return Future()


def same_bits(ours: Any, theirs: Any) -> bool:
    """Whether two structures of arrays are equal to the bit."""
    pairs = zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True)
    return all(np.asarray(one).tobytes() == np.asarray(other).tobytes() for one, other in pairs)


# -- programs


def numbers(step: int, shape: Sequence[int]) -> Any:
    return np.random.default_rng(step).normal(size=shape).astype(np.float32)


def dense_with_adam() -> Any:
    x = tf.placeholder(tf.float32, [None, 4])
    hidden = tf.layers.dense(x, 5, tf.nn.relu, name="hidden")
    loss = tf.reduce_mean(tf.square(tf.layers.dense(hidden, 1) - tf.reduce_sum(x, 1, True)))
    train = tf.train.AdamOptimizer(0.1).minimize(loss)
    return (loss, train), lambda step: {x: numbers(step, (3, 4))}


def recurrent() -> Any:
    x = tf.placeholder(tf.float32, [2, None, 3])
    lengths = tf.placeholder(tf.int32, [2])
    cell = tf.nn.rnn_cell.GRUCell(4)
    outputs, state = tf.nn.dynamic_rnn(cell, x, lengths, dtype=tf.float32)
    loss = tf.reduce_sum(outputs * outputs) + tf.reduce_mean(state)
    train = tf.train.GradientDescentOptimizer(0.05).minimize(loss)
    return (loss, state, train), lambda step: {x: numbers(step, (2, 5, 3)), lengths: [5, 2]}


def control_flow() -> Any:
    x = tf.placeholder(tf.float32, [])
    w = tf.get_variable("w", initializer=1.1)
    power = tf.while_loop(lambda at, y: at < 4, lambda at, y: (at + 1, y * w + x), (0, x))[1]
    chosen = tf.cond(x > 0.0, lambda: tf.sin(power) * w, lambda: power - w)
    (gradient,) = tf.gradients(chosen, [w])
    return (chosen, gradient, tf.assign_sub(w, 0.01 * gradient)), lambda step: {x: 0.5 - step % 2}


def embedding_with_adagrad() -> Any:
    ids = tf.placeholder(tf.int64, [None])
    table = tf.get_variable("table", [7, 3])
    loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(table, ids) - 1.0))
    train = tf.train.AdagradOptimizer(0.2).minimize(loss)
    return (loss, train), lambda step: {ids: [step % 7, 2, 2, (3 * step) % 7]}


def dropout() -> Any:
    x = tf.placeholder(tf.float32, [None, 8])
    return tf.nn.dropout(x, 0.5, seed=3), lambda step: {x: np.ones([4, 8])}


def batch_norm() -> Any:
    x = tf.placeholder(tf.float32, [None, 3])
    normal = tf.layers.batch_normalization(x, training=True, momentum=0.5)
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    return (normal, updates), lambda step: {x: numbers(step, (6, 3)) * 2.0 + 1.0}


def tensor_array() -> Any:
    x = tf.placeholder(tf.float32, [5, 2])
    w = tf.get_variable("w", initializer=[0.5, 2.0])
    rows = tf.TensorArray(tf.float32, 5).unstack(x)

    def body(at: Any, total: Any, sums: Any) -> Any:
        total = total + rows.read(at) * w
        return at + 1, total, sums.write(at, total)

    begin = (0, tf.zeros([2]), tf.TensorArray(tf.float32, 5))
    sums = tf.while_loop(lambda at, *_: at < 5, body, begin)[2].stack()
    (gradient,) = tf.gradients(sums, [w])
    return (sums, tf.assign_sub(w, 0.01 * gradient)), lambda step: {x: numbers(step, (5, 2))}


def scattered() -> Any:
    at = tf.placeholder(tf.int32, [3])
    v = tf.get_variable("v", initializer=tf.zeros([6, 2]))
    whole = tf.get_variable("whole", initializer=np.arange(4, dtype=np.int64))
    with tf.control_dependencies([tf.scatter_add(v, at, tf.ones([3, 2]))]):
        read = v.read_value() * 2.0
    fetches = (read, tf.assign_add(whole, tf.cumsum(whole) % 5))
    return fetches, lambda step: {at: [step % 6, 1, 1]}


PROGRAMS: dict[str, Program] = {
    each.__name__: each
    for each in (
        dense_with_adam,
        recurrent,
        control_flow,
        embedding_with_adagrad,
        dropout,
        batch_norm,
        tensor_array,
        scattered,
    )
}
