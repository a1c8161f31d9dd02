"""`GradientTape`: what it records, what it watches, and its derivatives.

Which gradients are None follows TensorFlow 2.15.1's tape in graph mode.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.compat.ops.control.gradient_tape import GradientTape, UnconnectedGradients


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def run(fetches: Any, feeds: Any = None) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches, feeds)


def test_only_watched_tensors_have_gradients() -> None:
    x = tf.constant([1.0, 2.0])
    with GradientTape() as tape:
        y = x * x
    assert tape.gradient(y, x) is None
    with GradientTape() as tape:
        tape.watch(x)
        y = x * x
    by_x, by_y = tape.gradient(y, [x, y])
    assert [each.tolist() for each in run([by_x, by_y])] == [[2.0, 4.0], [1.0, 1.0]]


def test_operations_outside_tape_are_not_recorded() -> None:
    x = tf.constant(3.0)
    y = x * x
    with GradientTape() as tape:
        tape.watch([x, y])
        z = 5.0 * y
    assert run(tape.gradient(z, {"y": y})) == {"y": 5.0}
    with GradientTape(persistent=True) as tape:
        tape.watch([x, y])
        z = 5.0 * y + x
        with tape.stop_recording():
            hidden = x * x
        w = z + hidden
    assert run(tape.gradient(w, [x, y])) == [1.0, 5.0]
    assert tape.gradient(hidden, x) is None


def test_operations_before_watch_are_not_recorded() -> None:
    x = tf.constant(3.0)
    with GradientTape() as tape:
        z = x * x
        tape.watch(z)
        tape.watch(x)
        y = z * 3.0 + x
    assert run(tape.gradient(y, [x, z])) == [1.0, 3.0]
    with GradientTape() as tape:
        tape.watch(x)
        z = x * x
        tape.watch(z)
        y = z * 3.0 + x
    assert run(tape.gradient(y, [x, z])) == [19.0, 3.0]


@pytest.mark.slow
def test_trainable_variables_are_watched_on_read() -> None:
    a = tf.get_variable("a", initializer=2.0)
    b = tf.get_variable("b", initializer=3.0, trainable=False)
    unused = tf.get_variable("unused", initializer=1.0)
    with GradientTape() as tape:
        y = a * a * b
    assert tape.watched_variables() == (a,)
    found = tape.gradient(y, {"a": a, "b": b, "unused": unused})
    assert (found["b"], found["unused"]) == (None, None)
    assert run(found["a"]) == 12.0
    with GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(b)
        y = a * a * b
    assert tape.watched_variables() == (b,)
    found = tape.gradient(y, [a, b], unconnected_gradients=UnconnectedGradients.ZERO)
    assert run(found) == [0.0, 4.0]


def test_training_step() -> None:
    x = tf.placeholder(tf.float32, [None, 2])
    w = tf.get_variable("w", [2, 1], initializer=tf.ones_initializer())
    with GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - 1.0))
    step = tf.train.GradientDescentOptimizer(0.1).apply_gradients(
        [(tape.gradient(loss, w), w)], tf.train.get_or_create_global_step()
    )
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(step, {x: [[1.0, 2.0]]})
        assert session.run(w).reshape(-1).tolist() == pytest.approx([0.6, 0.2])


def test_tape_is_used_once_unless_persistent() -> None:
    x = tf.constant(2.0)
    with GradientTape() as tape:
        tape.watch(x)
        y = x * x
        first = tape.gradient(y, x)  # ends the recording
        z = y * y
    with pytest.raises(RuntimeError, match="A non-persistent GradientTape can only be used"):
        tape.gradient(z, x)
    with GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x**3.0
        slope = tape.gradient(y, x)
        curvature = tape.gradient(slope, x)
    assert run([first, slope, curvature, tape.gradient(y, x)]) == [4.0, 12.0, 12.0, 12.0]


def test_nested_tapes() -> None:
    x = tf.constant(2.0)
    with GradientTape() as outer:
        outer.watch(x)
        with GradientTape() as inner:
            inner.watch(x)
            y = x**3.0
        slope = inner.gradient(y, x)
    assert run(outer.gradient(slope, x)) == 12.0


def test_output_gradients_and_sparse_gradients() -> None:
    table = tf.get_variable("table", initializer=np.ones((4, 2), np.float32))
    with GradientTape() as tape:
        rows = tf.gather(table, [1, 3])
    found = tape.gradient([rows], table, output_gradients=[tf.constant([[1.0, 2.0], [3.0, 4.0]])])
    assert isinstance(found, tf.IndexedSlices)
    assert run(found.values).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert run(found.indices).tolist() == [1, 3]


def test_jacobians() -> None:
    p = tf.placeholder(tf.float32, [None, 2])
    x = tf.constant([1.0, 2.0, 3.0])
    with GradientTape(persistent=True) as tape:
        tape.watch([p, x])
        y = tf.stack([p[:, 0] * p[:, 1], p[:, 0] ** 2.0, p[:, 1]], 1)
        z = tf.stack([x[0] * x[1], x[2]])
        other = tf.constant(1.0)
    whole = tape.jacobian(z, {"x": x, "other": other})
    assert whole["other"] is None
    batch, known = run([tape.batch_jacobian(y, p), whole["x"]], {p: [[1, 2], [3, 4]]})
    assert batch.tolist() == [[[2, 1], [2, 0], [0, 1]], [[4, 3], [6, 0], [0, 1]]]
    assert known.tolist() == [[2, 1, 0], [0, 0, 1]]
    with pytest.raises(ValueError, match="the shape of the target must be known"):
        tape.jacobian(y, p)


def test_tape_inside_function() -> None:
    x = tf.constant([1.0, 2.0, 3.0])

    def slope(each: Any) -> Any:
        with GradientTape() as tape:
            tape.watch(each)
            y = each * each * x[1]
        return tape.gradient(y, each)

    assert run(tf.map_fn(slope, x)).tolist() == [4.0, 8.0, 12.0]


def test_errors(caplog: Any) -> None:
    x = tf.constant(2.0)
    tape = GradientTape()
    with pytest.raises(ValueError, match="outside of the recording"):
        tape.watch(x)
    with tape, pytest.raises(ValueError, match="Tape is already recording"):
        tape.__enter__()
    with pytest.raises(ValueError, match="not recording"), tape.stop_recording():
        pass
    with GradientTape() as tape:
        tape.watch(tf.constant(3))
    assert "must be floating" in caplog.text
    with pytest.raises(ValueError, match="not a valid UnconnectedGradients"):
        tape.gradient(x, x, unconnected_gradients="nothing")


def test_reset() -> None:
    x = tf.constant(2.0)
    with GradientTape() as tape:
        tape.watch(x)
        y = x * x
        tape.reset()
        z = x * x
    assert tape.gradient([y, z], x) is None
