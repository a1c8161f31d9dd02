"""The cost of a run: XLA calls, compilations and Python calls, counted rather than timed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.runtime.executor import CompiledSegment


def python_calls(run: Callable[[], Any]) -> int:
    """How many Python functions a call of `run` enters, when nothing makes it wait."""
    return min(entered_functions(run) for _ in range(5))


def entered_functions(run: Callable[[], Any]) -> int:
    """How many Python functions one call of `run` enters."""
    entered = 0

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal entered
        entered += event == "call"

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return entered


def chain(length: int) -> Callable[[], Any]:
    """A second run of so many operations in a row."""
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [4])
        y = x
        for _ in range(length):
            y = tf.tanh(y)
    session = tf.Session(graph=graph)
    feeds = {x: np.ones(4, np.float32)}
    session.run(y, feeds)
    return lambda: session.run(y, feeds)


@pytest.mark.slow
def test_second_run_has_no_per_operation_python() -> None:
    assert python_calls(chain(1000)) <= python_calls(chain(3)) + 3


@pytest.mark.usefixtures("compiled")
@pytest.mark.slow
def test_training_step_is_one_xla_call(monkeypatch: pytest.MonkeyPatch) -> None:
    called = 0
    run = CompiledSegment._run

    def counting(segment: CompiledSegment, *given: Any) -> Any:
        nonlocal called
        called += 1
        return run(segment, *given)

    monkeypatch.setattr(CompiledSegment, "_run", counting)
    with tf.Graph().as_default(), tf.Session() as session:
        x, labels = tf.placeholder(tf.float32, [None, 8]), tf.placeholder(tf.int32, [None])
        hidden = tf.nn.dropout(tf.nn.relu(x @ tf.get_variable("hidden", [8, 16])), rate=0.2)
        logits = hidden @ tf.get_variable("logits", [16, 3])
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        )
        step = tf.train.get_or_create_global_step()
        train = tf.train.AdamOptimizer(0.01).minimize(loss, step)
        right = tf.equal(tf.argmax(logits, 1, output_type=tf.int32), labels)
        accuracy = tf.reduce_mean(tf.cast(right, tf.float32))
        session.run(tf.global_variables_initializer())
        feeds = {x: np.ones([5, 8]), labels: [0, 1, 2, 0, 1]}
        called = 0
        session.state.compilations.clear()
        for number in range(3):
            session.run([train, loss, accuracy], feeds)
            assert called == number + 1
        assert session.state.compilations.total() == 1
        assert session.run(step) == 3
