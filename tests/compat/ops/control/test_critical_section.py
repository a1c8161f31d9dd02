"""Critical sections (`MutexV2`, `ExecuteInCriticalSection`): one thread at a time."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.core import errors


@pytest.fixture(autouse=True)
def session() -> Iterator[tf.Session]:
    with tf.Graph().as_default(), tf.Session() as opened:
        yield opened


def test_no_update_is_lost(session: tf.Session) -> None:
    """Each run reads on the device, thinks on the host, and writes on the device."""
    v = tf.Variable(0.0)
    inside: list[int] = []
    together: list[int] = []

    def think(value: Any) -> Any:
        inside.append(1)
        together.append(len(inside))
        inside.pop()
        return np.float32(value + 1.0)

    def add() -> tf.Tensor:
        more = tf.py_func(think, [v * 1.0], tf.float32)
        more.set_shape([])
        return v.assign(more)

    added = tf.CriticalSection().execute(add)
    assert added.name == "critical_section_execute:0"
    session.run(v.initializer)
    with ThreadPoolExecutor(4) as threads:
        seen = list(threads.map(lambda _: session.run(added), range(40)))
    assert sorted(seen) == [float(n) for n in range(1, 41)]
    assert set(together) == {1}
    assert session.run(v) == 40.0


def test_run_waits_for_another_run(session: tf.Session) -> None:
    section = tf.CriticalSection(name="section")
    events: list[str] = []
    with ThreadPoolExecutor(1) as thread:

        def inner_run() -> None:
            waiting = thread.submit(session.run, second)
            events.append("first in")
            assert not waiting.done()
            events.append("first out")

        first = section.execute(lambda: tf.py_func(inner_run, [], []))
        second = section.execute(lambda: tf.py_func(lambda: events.append("second"), [], []))
        session.run(first)
    assert events == ["first in", "first out", "second"]


def test_captured_inputs_and_outputs(session: tf.Session) -> None:
    v = tf.Variable([1.0, 2.0])
    x = tf.placeholder(tf.float32, [2])
    outside = x * 2.0
    result = tf.CriticalSection().execute(
        lambda: {"sum": v.assign_add(outside), "x": x, "done": tf.no_op(), "constant": 3}
    )
    assert result["sum"].shape.as_list() == [2]
    assert isinstance(result["done"], tf.Operation)
    session.run(v.initializer)
    got = session.run(result, {x: [1.0, 1.0]})
    assert got["sum"].tolist() == [3.0, 4.0]
    assert (got["x"].tolist(), got["done"], got["constant"]) == ([1.0, 1.0], None, 3)
    assert session.run(v).tolist() == [3.0, 4.0]


def test_two_calls_in_one_run(session: tf.Session) -> None:
    v = tf.Variable(1.0)
    section = tf.CriticalSection()
    doubled = section.execute(lambda: v.assign(v * 2.0))
    added = section.execute(lambda: v.assign_add(1.0))
    with tf.control_dependencies([doubled, added]):
        after = v.read_value()
    session.run(v.initializer)
    assert session.run(after) == 3.0


def test_error_releases_lock(session: tf.Session) -> None:
    section = tf.CriticalSection()
    bad = section.execute(lambda: tf.Assert(False, ["no"]))
    good = section.execute(lambda: tf.constant(1) + 1)
    for _ in range(2):
        with pytest.raises(errors.InvalidArgumentError, match="assertion failed"):
            session.run(bad)
    assert session.run(good) == 2


def test_invalid_arguments_raise() -> None:
    section, other = tf.CriticalSection(name="one"), tf.CriticalSection(name="two")
    v = tf.Variable(1.0)
    with pytest.raises(ValueError, match="while in it already"):
        section.execute(lambda: section.execute(lambda: tf.constant(1)))
    section.execute(lambda: v.assign_add(1.0))
    with pytest.raises(ValueError, match="one use the same variables: Variable"):
        other.execute(lambda: v.assign_add(1.0))
    outside = v.assign(3.0)

    def waits() -> tf.Tensor:
        with tf.control_dependencies([outside]):
            return v.read_value()

    with pytest.raises(ValueError, match="which is outside"):
        section.execute(waits)
