"""Cluster sessions across processes: serialization, runs, and cancelled waits.

One cluster, of two parameter servers and the workers 0 and 7, serves the whole file; each test
begins with its tasks empty (`conftest.py`). This process is a client outside of it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.distribute.tasks.rpc import ReadVariables, WriteVariables
from estimatorkit.distribute.tasks.task_channel import TaskConnection
from tests.distribute.conftest import Running
from tests.distribute.processes import TOKEN, Processes, free_cluster, target, until

pytestmark = pytest.mark.multiprocess

PS = ("/job:ps/task:0", "/job:ps/task:1")
WORKERS = ("/job:worker/task:0", "/job:worker/task:7")


def variable(name: str, where: str, shape: Any = (), value: float = 0.0) -> tf.Variable:
    """A variable on a task."""
    with tf.device(where):
        return tf.get_variable(name, shape, initializer=tf.constant_initializer(value))


def raised(call: Callable[[], Any]) -> list[BaseException]:
    """What a call raises, filled in by a thread that runs it."""
    found: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except (tf.errors.OpError, RuntimeError) as error:
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return found


# -- what travels


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (2, 3)], ids=str)
def test_values_of_all_dtypes(shape: tuple[int, ...], running: Running) -> None:
    dtypes = [tf.bool, tf.int8, tf.int32, tf.int64, tf.uint8, tf.uint16, tf.float16, tf.bfloat16]
    dtypes += [tf.float32, tf.float64, tf.complex64, tf.complex128, tf.string]
    values, feeds, fetches = [], {}, []
    for dtype in dtypes:
        with tf.device(PS[0]):
            given = tf.placeholder(dtype, shape)
            there = tf.identity(given)
        with tf.device(PS[1]):
            fetches.append(tf.identity(there))
        if dtype is tf.string:
            value = np.full(shape, b"a\0\xff", object)
        else:
            value = (np.arange(6)[: int(np.prod(shape))].reshape(shape) * 3).astype(
                dtype.as_numpy_dtype
            )
        values.append(value)
        feeds[given] = value
    with tf.Session(running.master) as session:
        found = session.run(fetches, feeds)
    for value, got, dtype in zip(values, found, dtypes, strict=True):
        assert np.shape(got) == shape
        assert dtype is tf.string or got.dtype == value.dtype
        assert np.asarray(got, value.dtype).tolist() == value.tolist(), dtype


def test_large_constants_and_strings(running: Running) -> None:
    million = np.random.default_rng(0).integers(0, 255, 1_000_000, np.uint8)
    with tf.device(PS[0]):
        constant = tf.constant(million)
        w = tf.Variable(constant, name="w")
        summed = tf.reduce_sum(tf.cast(constant, tf.int64))
    texts = tf.constant(["a", "é", ""])
    with tf.device(PS[1]):
        joined = tf.string_join([texts, tf.constant([b"\xff", b"", b"x" * 100_000])])
    with tf.Session(running.master) as session:
        session.run(w.initializer)
        assert session.run(summed) == million.sum()
        np.testing.assert_array_equal(session.run(w), million)
        assert session.run(joined).tolist() == [b"a\xff", "é".encode(), b"x" * 100_000]


def test_values_are_loaded_and_read_on_their_task(running: Running) -> None:
    w = variable("w", PS[0], [3])
    with tf.Session(running.master) as session:
        w.load([1, 2, 3], session)
        np.testing.assert_array_equal(session.state.read(["w"])[0], [1, 2, 3])
        np.testing.assert_array_equal(session.run(w), [1, 2, 3])
        assert session.run(tf.is_variable_initialized(w))


def test_large_arrays_use_shared_memory(running: Running) -> None:
    """Also where the first questions have small answers, and where later ones are larger."""
    connection = TaskConnection(running.cluster["ps"][0], "/job:ps/task:0", TOKEN)
    channel = connection.channel()
    for count in (100_000, 10, 300_000):
        value = np.arange(count, dtype=np.float32)
        for _ in range(3):
            channel.call(WriteVariables(("given",), zero_copy=True, arrays=[value]))
            (found,) = channel.call(ReadVariables(("given",), zero_copy=True)).arrays
            np.testing.assert_array_equal(found, value)
        assert channel._inbox is not None
        assert np.may_share_memory(found, channel._inbox._bytes) == (count > 10)
    channel.end()


def test_sparse_values(running: Running) -> None:
    with tf.device(PS[0]):
        sparse = tf.sparse_placeholder(tf.float32, [3, 4])
        dense = tf.sparse_tensor_to_dense(sparse)
    with tf.device(PS[1]):
        double = tf.SparseTensor(sparse.indices, sparse.values * 2.0, sparse.dense_shape)
    given = tf.SparseTensorValue([[0, 1], [2, 3]], [1.0, 2.0], [3, 4])
    with tf.Session(running.master) as session:
        found, doubled = session.run([dense, double], {sparse: given})
    assert found[[0, 2], [1, 3]].tolist() == [1, 2]
    assert found.sum() == 3
    assert doubled.values.tolist() == [2, 4]


@pytest.mark.slow
def test_cluster_checkpoints_equal_single_process_checkpoints(
    running: Running, tmp_path: Path
) -> None:
    with tf.device(tf.train.replica_device_setter(cluster=running.cluster)):
        variables = [
            *tf.get_variable(
                *("table", [10, 3]),
                initializer=tf.random_uniform_initializer(),
                partitioner=tf.fixed_size_partitioner(2),
            ),
            tf.get_variable("scale", [3], initializer=tf.random_uniform_initializer()),
        ]
    saver = tf.train.Saver()
    initial = tf.global_variables_initializer()
    with tf.Session(running.master) as several, tf.Session() as one:
        several.run(initial)
        values = several.run(variables)
        path = saver.save(several, tmp_path / "model.ckpt", global_step=1)
        saver.restore(one, path)
        one.run([variable.assign(variable * 2.0) for variable in variables])
        saver.restore(several, saver.save(one, tmp_path / "model.ckpt", global_step=2))
        for value, double in zip(values, several.run(variables), strict=True):
            np.testing.assert_array_equal(2 * value, double)


# -- the session's other ways to run


def test_partial_runs_and_callables(running: Running) -> None:
    with tf.device(PS[0]):
        a = tf.placeholder(tf.float32, [])
        first = a + 1.0
    with tf.device(PS[1]):
        b = tf.placeholder(tf.float32, [])
        second = first * b
    with tf.Session(running.master) as session:
        handle = session.partial_run_setup([first, second], [a, b])
        assert session.partial_run(handle, first, {a: 1.0}) == 2
        assert session.partial_run(handle, second, {b: 3.0}) == 6
        call = session.make_callable([first, second], [a, b])
        assert call(1.0, 2.0) == [2, 4]
        assert call(2.0, 3.0) == [3, 9]


def test_out_of_range_ids_end_run_without_update(running: Running) -> None:
    table = variable("table", PS[0], [4, 2], 1.0)
    ids = tf.placeholder(tf.int32, [None])
    with tf.device(WORKERS[0]):
        loss = tf.reduce_sum(tf.square(tf.gather(table, ids)))
    train = tf.train.AdagradOptimizer(0.5).minimize(loss)
    with tf.Session(running.master) as session:
        session.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[1\] = 4 is not in"):
            session.run(train, {ids: [1, 4]})
        np.testing.assert_array_equal(session.run(table), np.ones([4, 2]))
        session.run(train, {ids: [1, 3]})
        assert (session.run(table)[[1, 3]] < 1).all()


def test_traces_and_placements_name_tasks(
    running: Running, capfd: pytest.CaptureFixture[str]
) -> None:
    w = variable("w", PS[0], [2])
    with tf.device(WORKERS[0] + "/cpu:0"):
        double = tf.multiply(w, 2.0, name="double")
    here = tf.py_func(lambda x: x, [double], tf.float32, name="here")
    metadata = tf.RunMetadata()
    with tf.Session(running.master, config=tf.ConfigProto(log_device_placement=True)) as session:
        session.run(w.initializer)
        traced = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        session.run(here, options=traced, run_metadata=metadata)
    devices = {
        each.device: [node.node_name for node in each.node_stats]
        for each in metadata.step_stats.dev_stats
    }
    assert devices["/job:ps/replica:0/task:0"] == ["w/read"]
    assert devices["/job:worker/replica:0/task:0"] == ["double"]
    assert len(devices) == 3
    printed = capfd.readouterr().err
    for line in (
        "w/read: (ReadVariableOp): /job:ps/replica:0/task:0\n",
        "double: (Mul): /job:worker/replica:0/task:0/device:CPU:0\n",
        "here: (PyFunc): /job:localhost/replica:0/task:0\n",
    ):
        assert line in printed


def test_missing_devices(running: Running) -> None:
    with tf.device(PS[0] + "/gpu:3"):
        x = tf.negative(tf.placeholder_with_default(1.0, []), name="x")
    soft = tf.ConfigProto(allow_soft_placement=True)
    with tf.Session(running.master, config=soft) as session:
        assert session.run(x) == -1
    with (
        tf.Session(running.master, config=tf.ConfigProto()) as session,
        pytest.raises(tf.errors.InvalidArgumentError, match="GPU:3 but available") as caught,
    ):
        session.run(x)
    assert "test_server_runs.py" in str(caught.value)


# -- queues, and how waits end


FEEDER = """
    import sys
    import estimatorkit as tf

    with tf.device("/job:ps/task:0"):
        queue = tf.FIFOQueue(10, tf.float32, [[2]], shared_name="examples")
    with tf.Session(sys.argv[1]) as session:
        for number in range(3):
            session.run(queue.enqueue([[float(number), 1.0]]))
        print("filled", flush=True)
        sys.stdin.readline()
        session.run(queue.close())
        print("closed", flush=True)
    """


def queue_on_server(capacity: int = 10) -> tf.FIFOQueue:
    with tf.device(PS[0]):
        return tf.FIFOQueue(capacity, tf.float32, [[2]], shared_name="examples")


@pytest.mark.slow
def test_queue_between_processes(running: Running, processes: Processes) -> None:
    element = queue_on_server().dequeue()
    feeder = processes.program("feeder", FEEDER, running.master)
    with tf.Session(running.master) as session:
        assert [session.run(element)[0] for _ in range(3)] == [0, 1, 2]
        found = raised(lambda: session.run(element))
        feeder.wait_for("filled")
        feeder.write("close\n")
        feeder.join()
        (error,) = until(lambda: found, "the end of the queue was not told")
    assert isinstance(error, tf.errors.OutOfRangeError)
    assert "is closed and has insufficient elements" in str(error)
    assert "test_server_runs.py" in str(error)


@pytest.mark.slow
def test_waits_end_with_session_or_timeout_and_take_nothing(running: Running) -> None:
    queue = queue_on_server()
    element, enter, size = queue.dequeue(), queue.enqueue([[1.0, 2.0]]), queue.size()
    with tf.Session(running.master) as other:
        assert other.run(size) == 0
        before = running.threads("ps", 0)
        for _ in range(5):
            with tf.Session(running.master) as session:
                with pytest.raises(tf.errors.DeadlineExceededError):
                    session.run(element, options=tf.RunOptions(timeout_in_ms=50))
                found = raised(lambda session=session: session.run(element))
                until(lambda session=session: session.state._in_use, "the wait did not begin")
            (error,) = until(lambda found=found: found, "the wait did not end")
            assert isinstance(error, tf.errors.CancelledError | RuntimeError)
        other.run(enter)
        time.sleep(0.2)  # whoever still waited would have taken it
        assert other.run(size) == 1
        np.testing.assert_array_equal(other.run(element), [1, 2])
        until(lambda: running.threads("ps", 0) <= before + 3, "threads were left behind")


def test_failing_part_cancels_waiting_part(running: Running) -> None:
    element = queue_on_server().dequeue()
    with tf.device(PS[1]):
        refused = tf.check_numerics(tf.placeholder_with_default([np.nan], [1]), "not a number")
    with (
        tf.Session(running.master) as session,
        pytest.raises(tf.errors.InvalidArgumentError, match="not a number"),
    ):
        session.run([element, refused])


# -- who may come


def test_wrong_token_is_refused(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESTIMATORKIT_TOKEN", "another")
    with pytest.raises(tf.errors.UnauthenticatedError, match="ESTIMATORKIT_TOKEN") as caught:
        tf.Session(running.master)
    assert running.master.removeprefix("grpc://") in str(caught.value)


def test_unreachable_server() -> None:
    nowhere = target(free_cluster(worker=1), "worker", 0)
    with pytest.raises(tf.errors.DeadlineExceededError, match="did not become reachable") as caught:
        tf.Session(nowhere, config=tf.ConfigProto(operation_timeout_in_ms=300))
    assert "cannot be reached" in str(caught.value)


def test_address_in_use(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("estimatorkit.distribute.tasks.server.LISTEN_SECS", 0.1)
    with pytest.raises(tf.errors.UnavailableError, match="/job:ps/task:0 cannot listen") as caught:
        tf.train.Server(running.cluster, "ps", 0)
    assert running.cluster["ps"][0] in str(caught.value)
