"""Plans fold, share and prune operations; devices, traces, partial runs and timeouts."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.core.graph import Graph
from estimatorkit.runtime.xla.timeline import Timeline


@pytest.fixture(autouse=True)
def graph() -> Iterator[Graph]:
    with tf.Graph().as_default() as current:
        yield current


def test_describe_shows_folded_and_shared_operations() -> None:
    x = tf.placeholder(tf.float32, [2])
    constant = tf.add(2.0, 3.0, name="five")
    one = tf.tanh(x * constant, name="one")
    other = tf.tanh(x * constant, name="other")
    total = tf.add(one, other, name="total")
    tf.exp(x, name="unused")
    with tf.Session() as session:
        after = session.plan(total, [x]).describe()
        np.testing.assert_allclose(
            session.run(total, {x: [0.1, 0.2]}), 2 * np.tanh([0.5, 1.0]), rtol=1e-6
        )
    off = tf.ConfigProto()
    off.graph_options.optimizer_options.opt_level = tf.OptimizerOptions.L0
    with tf.Session(config=off) as session:
        before = session.plan(total, [x]).describe()
        np.testing.assert_allclose(
            session.run(total, {x: [0.1, 0.2]}), 2 * np.tanh([0.5, 1.0]), rtol=1e-6
        )
    assert "plan: 6 operations in 1 segments" in before
    assert "0 folded, 0 shared" in before
    assert "plan: 3 operations in 1 segments" in after
    assert "1 folded, 2 shared" in after
    assert "folded: five = Add" in after
    assert "shared: other = Tanh" in after
    assert "the same as one" in after
    assert "unused" not in before + after


@pytest.mark.slow
def test_singular_constant_matrices_are_not_folded() -> None:
    inverse, factor = tf.matrix_inverse([[1.0, 2.0], [2.0, 4.0]]), tf.cholesky([[1.0, 9], [9, 1.0]])
    with tf.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match="not invertible"):
            session.run(inverse)
        assert np.isnan(session.run(factor)).any()  # as TensorFlow's


@pytest.mark.slow
def test_stateful_and_random_operations_are_not_shared() -> None:
    v = tf.Variable(0.0)
    drawn = [tf.random_uniform([], seed=1) for _ in range(2)]
    added = [v.assign_add(1.0) for _ in range(2)]
    with tf.Session() as session:
        session.run(v.initializer)
        one, other = session.run(drawn)
        session.run(added)
        assert session.run(v) == 2.0
        assert session.plan(drawn).rewriting.same == {}
    assert np.isfinite([one, other]).all()


def test_fed_tensors_are_not_folded() -> None:
    two = tf.add(1.0, 1.0)
    four = tf.multiply(two, 2.0)
    with tf.Session() as session:
        assert session.run(four) == 4.0
        assert session.run(four, {two: 10.0}) == 20.0


def test_fed_array_may_change_after_run() -> None:
    """JAX reads fed arrays in place: a run that fetches nothing still waits for them."""
    x = tf.placeholder(tf.float32, [400, 400])
    kept = tf.Variable(tf.zeros([400, 400]))
    power = x
    for _ in range(6):
        power = tf.matmul(power, x) / 400.0
    keep = kept.assign(power).op
    given = np.ones((400, 400), np.float32)
    with tf.Session() as session:
        session.run(kept.initializer)
        for _ in range(3):
            given[:] = 1.0
            session.run(keep, {x: given})
            given[:] = 5.0
            np.testing.assert_allclose(session.run(kept), 1.0, rtol=1e-5)


def test_full_trace_is_a_chrome_trace() -> None:
    x = tf.placeholder(tf.float32, [3])
    y = tf.Print(tf.sin(x), [x], "x: ")
    metadata = tf.RunMetadata()
    with tf.Session() as session:
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        session.run(tf.exp(y), {x: [1, 2, 3]}, options=options, run_metadata=metadata)
    trace = json.loads(Timeline(metadata.step_stats).generate_chrome_trace_format())
    spans = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    assert len(spans) == 3  # device, host, device
    assert all(span["dur"] >= 0 for span in spans)
    assert {event["args"]["name"] for event in trace["traceEvents"] if event["ph"] == "M"} == {
        "/device:CPU:0 Compute",
        "host Compute",
    }


def test_partial_run_runs_nothing_twice() -> None:
    a, b = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    count = tf.Variable(0.0)
    first = count.assign_add(1.0) + a
    second = first * b
    with tf.Session() as session:
        session.run(count.initializer)
        handle = session.partial_run_setup([first, second], [a, b])
        assert session.partial_run(handle, first, {a: 2.0}) == 3.0
        assert session.partial_run(handle, second, {b: 10.0}) == 30.0
        assert session.run(count) == 1.0
        refused = tf.errors.InvalidArgumentError
        with pytest.raises(refused, match=r"was not specified in partial_run_setup\.$"):
            session.partial_run(handle, count.assign(0.0))
        with pytest.raises(refused, match=r"has already been fed\.$"):
            session.partial_run(handle, [], {b: 1.0})
        with pytest.raises(refused, match=r"has already been fetched\.$"):
            session.partial_run(handle, first)
        with pytest.raises(refused, match=r"specify at least one target to fetch or execute\.$"):
            session.partial_run_setup([], [a])


def test_timeout_ends_blocked_run() -> None:
    queue = tf.FIFOQueue(1, tf.float32)
    taken = queue.dequeue()
    with tf.Session() as session, pytest.raises(tf.errors.DeadlineExceededError):
        session.run(taken, options=tf.RunOptions(timeout_in_ms=50))


def test_feed_and_fetch_composites() -> None:
    sparse = tf.sparse_placeholder(tf.float32)
    dense = tf.sparse_tensor_to_dense(sparse)
    table = tf.Variable(np.eye(3, dtype=np.float32))
    (rows,) = tf.gradients(tf.gather(table, [2, 0]), table)
    value = tf.SparseTensorValue([[0, 1]], [5.0], [2, 2])
    with tf.Session() as session:
        session.run(table.initializer)
        result, again = session.run([dense, sparse], {sparse: value})
        gradient = session.run(rows)
    assert result.tolist() == [[0.0, 5.0], [0.0, 0.0]]
    assert (again.values.tolist(), again.indices.tolist()) == ([5.0], [[0, 1]])
    assert gradient.indices.tolist() == [2, 0]


def test_unknown_device_raises() -> None:
    with tf.device("/gpu:7"):
        y = tf.sin(tf.placeholder_with_default(1.0, []))
    with tf.Session() as session:
        assert session.run(y) == pytest.approx(np.sin(1.0))
    hard = tf.Session(config=tf.ConfigProto(allow_soft_placement=False))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"explicitly assigned to .*GPU:7"):
        hard.run(y)
    hard.close()


SEVERAL = """
import threading
import jax, numpy as np
import estimatorkit as tf

barrier = threading.Barrier(2, timeout=20)

def meet(x):
    def wait(v):
        barrier.wait()
        return np.asarray(v)
    return jax.pure_callback(wait, jax.ShapeDtypeStruct(x.shape, x.dtype), x) + 1.0

x = tf.placeholder(tf.float32, [])
with tf.device("/cpu:0"):
    one = tf.jax_function(meet, x)
with tf.device("/cpu:1"):
    v = tf.Variable(3.0)
    other = tf.jax_function(meet, x * 2.0) * v
    (slope,) = tf.gradients(tf.sin(x) * v, v)
    change = v.assign_add(1.0)
with tf.device("/cpu:0"):
    both = one + other
with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
    session.run(v.initializer)
    # Each of the two waits for the other: they run at the same time, or not at all.
    print(float(session.run(both, {x: 1.0})))
    text = session.plan(both, [x]).describe()
    print("Send(" in text, "Recv(" in text, "/device:CPU:1" in text)
    session.run(change)
    print(next(iter(session.state.values["Variable"].devices())).id)
    print([segment.device for segment in session.plan(slope, [x]).segments][-1])
    print([device.name[-13:] for device in session.list_devices()])
"""


@pytest.mark.usefixtures("compiled")
@pytest.mark.slow
def test_segments_on_several_devices_run_concurrently() -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SEVERAL)],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "11.0",
        "True True True",
        "1",
        "/device:CPU:1",
        "['/device:CPU:0', '/device:CPU:1']",
    ]


def test_size_before_host_operation_is_static_after_it() -> None:
    """It crosses two segments; XLA needs its value in both."""
    x = tf.placeholder(tf.float32, [None, 2])
    rows = tf.shape(x)[0]
    before = tf.reduce_sum(tf.ones([rows, 3]) * x[0, 0])
    on_host = tf.py_func(lambda value: value + np.float32(1), [before], tf.float32)
    after = tf.fill([rows], on_host)
    with tf.Session() as session:
        for count in (2, 5):
            found = session.run(after, {x: np.ones((count, 2))})
            np.testing.assert_array_equal(found, [3 * count + 1] * count)


@pytest.mark.slow
@pytest.mark.parametrize(
    "expression", ["[1, 2] / x", "x @ [[1.0], [2.0]]", "x[0]", "-x", "x > 1", "abs(x)", "x + 1"]
)
def test_operators_work_before_op_modules_are_imported(expression: str) -> None:
    program = f"import estimatorkit as tf\nx = tf.constant([[1.0, 2.0]])\nprint({expression})"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith("Tensor("), done.stderr


def test_folded_division_rounds_like_xla() -> None:
    """By constants, by what is broadcast, and in the gradient."""
    numbers = np.arange(1, 2000, dtype=np.float32)
    x, y = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [])
    found = [x / 49.0, x / y, tf.div_no_nan(x, 49.0), tf.gradients(x / 49.0, x, grad_ys=x)[0]]
    with tf.Session() as session:
        for quotient in session.run(found, {x: numbers, y: 49.0}):
            np.testing.assert_array_equal(quotient, numbers / np.float32(49))
        special = np.array([np.nan, np.inf, -np.inf, 0.0], np.float32)
        np.testing.assert_array_equal(session.run(found[0], {x: special}), special)
