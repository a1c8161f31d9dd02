"""Sessions of clusters whose tasks are processes: what they share, where it runs, how they end.

One cluster, of two parameter servers and the workers 0 and 7, serves the whole file; each test
begins with its tasks empty. This process is a client outside of it. Failures are in
test_server_failures.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import estimatorkit.compat.v1 as tf
from tests.distribute.processes import (
    Cluster,
    Process,
    Processes,
    free_cluster,
    known_token,
    target,
    until,
)

pytestmark = pytest.mark.multiprocess

PS = ("/job:ps/task:0", "/job:ps/task:1")
WORKERS = ("/job:worker/task:0", "/job:worker/task:7")


class Running:
    """A running cluster.

    Attributes:
        cluster: the addresses.
        tasks: the processes, by job and number.
        master: the target of worker 7.
    """

    def __init__(self, cluster: Cluster, processes: Processes) -> None:
        self.cluster = cluster
        self.tasks: dict[tuple[str, int], Process] = processes.tasks(cluster)
        self.master = target(cluster, "worker", 7)

    def threads(self, job: str, index: int) -> int:
        """How many threads a task has."""
        found: int = psutil.Process(self.tasks[job, index].pid).num_threads()
        return found


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The cluster of the file."""
    with known_token(), Processes(tmp_path_factory.mktemp("cluster")) as processes:
        yield Running(free_cluster(ps=2, worker=[0, 7]), processes)


@pytest.fixture
def running(started: Running) -> Running:
    """The cluster with empty tasks."""
    tf.Session.reset(started.master)
    return started


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


# -- what sessions share


def test_variables_are_shared_by_all_sessions_of_the_cluster(running: Running) -> None:
    w = variable("w", PS[1], [2])
    more = tf.assign_add(w, [1.0, 2.0])
    with tf.Session(running.master) as session:
        session.run(w.initializer)
        session.run(more)
    with tf.Session(target(running.cluster, "ps", 0)) as session:
        np.testing.assert_array_equal(session.run(more), [2, 4])
    with tf.Graph().as_default():
        again = variable("w", PS[1], [2])
        with tf.Session(target(running.cluster, "worker", 0)) as session:
            np.testing.assert_array_equal(session.run(again), [2, 4])
            session.run(again.initializer)
    with tf.Session(running.master) as session:
        np.testing.assert_array_equal(session.run(w), [0, 0])


def test_reset_lets_all_tasks_forget(running: Running) -> None:
    variables = [variable("a", PS[0]), variable("b", PS[1]), variable("c", WORKERS[0])]
    with tf.Session(running.master) as session:
        session.run(tf.global_variables_initializer())
        assert session.run(tf.report_uninitialized_variables()).size == 0
    tf.Session.reset(running.master)
    with tf.Session(running.master) as session:
        missing = session.run(tf.report_uninitialized_variables())
        assert missing.tolist() == [b"a", b"b", b"c"]
        with pytest.raises(tf.errors.FailedPreconditionError, match="value b") as caught:
            session.run(variables[1])
        assert caught.value.op is variables[1].op
        assert "test_servers.py" in str(caught.value)


CLIENT = """
    import sys
    import estimatorkit as tf

    with tf.device("/job:ps/task:0"):
        count = tf.get_variable("count", [], tf.int32, tf.zeros_initializer())
        sums = tf.get_variable("sums", [1000], initializer=tf.zeros_initializer())
    with tf.device("/job:worker/task:0"):
        addend = tf.ones([1000]) * 2.0
    step = tf.group(tf.assign_add(count, 1), tf.assign_add(sums, addend))
    with tf.Session(sys.argv[1]) as session:
        for _ in range(50):
            session.run(step)
    print("done")
    """


def test_three_clients_and_two_threads_of_one_session(
    running: Running, processes: Processes
) -> None:
    with tf.Graph().as_default(), tf.Session(running.master) as session:
        with tf.device(PS[0]):
            count = tf.get_variable("count", [], tf.int32, tf.zeros_initializer())
            sums = tf.get_variable("sums", [1000], initializer=tf.zeros_initializer())
        step = tf.group(tf.assign_add(count, 1), tf.assign_add(sums, tf.ones([1000]) * 2.0))
        session.run(tf.global_variables_initializer())
        clients = [
            processes.program(f"client {number}", CLIENT, running.master) for number in range(3)
        ]

        def work() -> None:
            for _ in range(50):
                session.run(step)

        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for each in (*threads, *clients):
            each.join()
        assert session.run(count) == 250
        np.testing.assert_array_equal(session.run(sums), np.full(1000, 500.0))


def test_random_numbers_begin_anew_in_each_session(running: Running) -> None:
    with tf.device(WORKERS[0]):
        drawn = tf.random_uniform([3], seed=5)
    with tf.device(PS[0]):
        w = tf.get_variable("w", [3], initializer=tf.random_normal_initializer(seed=7))
    with tf.Session() as session:
        session.run(w.initializer)
        expected = [*(session.run(drawn) for _ in range(3)), session.run(w)]
    for _ in range(2):
        with tf.Session(running.master) as session:
            session.run(w.initializer)
            first, second = session.run(drawn), session.run(drawn)
            third = session.run([drawn, w])
        np.testing.assert_array_equal([first, second, *third], expected)


# -- what runs where


def test_each_operation_runs_in_the_process_that_it_asks_for(running: Running) -> None:
    """A relative path is one of the process that reads it."""
    for process, task in zip(running.tasks.values(), (*PS, *WORKERS), strict=True):
        with tf.device(task):
            name = tf.read_file("name")
        with tf.Session(running.master) as session:
            assert session.run(name) == process.name.encode()
    unplaced = tf.read_file("name")
    with tf.Session(running.master) as session:
        assert session.run(unplaced) == b"worker 7"


def test_python_and_datasets_run_in_the_sessions_process(running: Running) -> None:
    w = variable("w", PS[0])
    with tf.device(PS[0]):
        data = tf.data.Dataset.range(4).map(lambda x: x * 2)
        element = tf.data.make_one_shot_iterator(data).get_next()
        process = tf.py_func(lambda x: np.int64(os.getpid()), [element], tf.int64)
        below = tf.Assert(element < 5, [element], name="below")
        with tf.control_dependencies([below]):
            more = tf.assign_add(w, tf.cast(element, tf.float32))
    with tf.Session(running.master) as session:
        session.run(w.initializer)
        assert session.run(process) == os.getpid()
        assert [session.run(more), session.run(more)] == [2, 6]
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"assertion failed: \[6\]"):
            session.run(more)
        assert session.run(w) == 6
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(more)


def test_control_flow_with_variables_on_a_server(running: Running) -> None:
    w, v = variable("w", PS[0], value=1.0), variable("v", PS[1], value=2.0)
    yes = tf.placeholder(tf.bool, [])
    with tf.device(WORKERS[0]):
        chosen = tf.cond(yes, lambda: tf.assign_add(w, 1.0), lambda: w * 10.0)
        summed = tf.while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, x + w + v), [0, 0.0])[1]
        mapped = tf.map_fn(lambda x: x * w * v, tf.constant([1.0, 2.0]))
        slope = tf.gradients(summed, [w, v])
    with tf.Session(running.master) as session:
        session.run(tf.global_variables_initializer())
        assert session.run(chosen, {yes: True}) == 2
        assert session.run(chosen, {yes: False}) == 20
        assert session.run([summed, *slope]) == [20, 5, 5]
        np.testing.assert_array_equal(session.run(mapped), [4, 8])
        assert session.run(w) == 2


def test_branches_change_variables_of_several_servers(running: Running) -> None:
    w, v = variable("w", PS[0], value=1.0), variable("v", PS[1], value=2.0)
    yes = tf.placeholder(tf.bool, [])
    changes = tf.cond(
        yes, lambda: tf.group(w.assign_add(v), v.assign_add(10.0)), lambda: tf.group(w.assign(0.0))
    )
    with tf.Session(running.master) as session:
        session.run(tf.global_variables_initializer())
        session.run(changes, {yes: True})
        assert session.run([w, v]) == [3, 12]
        session.run(changes, {yes: False})
        assert session.run([w, v]) == [0, 12]


def losses(session: Any, fetches: Any, feeds: Any = None, steps: int = 4) -> list[float]:
    """The first of the fetches in each of some steps."""
    session.run(tf.global_variables_initializer())
    return [float(session.run(fetches, feeds)[0]) for _ in range(steps)]


def test_a_recurrent_network_learns_as_in_one_process(running: Running) -> None:
    tf.set_random_seed(3)
    with tf.device(
        tf.train.replica_device_setter(worker_device=WORKERS[1], cluster=running.cluster)
    ):
        x = tf.placeholder(tf.float32, [2, 4, 3])
        outputs, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.LSTMCell(5), x, dtype=tf.float32)
        loss = tf.reduce_mean(tf.square(outputs - 0.5))
        step = tf.train.AdamOptimizer(0.1).minimize(loss)
    feeds = {x: np.random.default_rng(0).normal(size=(2, 4, 3))}
    with tf.Session(running.master) as several, tf.Session() as one:
        found = losses(several, [loss, step], feeds)
        np.testing.assert_allclose(found, losses(one, [loss, step], feeds), rtol=1e-6)
    assert found[-1] < found[0]


@pytest.mark.parametrize(
    "partitioner",
    [
        tf.fixed_size_partitioner(2),
        tf.variable_axis_size_partitioner(800),
        tf.min_max_variable_partitioner(2, min_slice_size=100),
    ],
    ids=["fixed_size", "axis_size", "min_max"],
)
def test_a_table_on_two_servers_learns_as_in_one_process(
    partitioner: Any, running: Running
) -> None:
    with tf.device(
        tf.train.replica_device_setter(worker_device=WORKERS[1], cluster=running.cluster)
    ):
        table = tf.get_variable(
            *("table", [50, 8]),
            initializer=tf.random_uniform_initializer(seed=1),
            partitioner=partitioner,
        )
        ids = tf.placeholder(tf.int32, [None])
        loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(table, ids)))
        step = tf.train.AdagradOptimizer(0.1).minimize(loss)
    assert [part.device for part in table] == [*PS]
    feeds = {ids: [1, 1, 49, 30]}
    with tf.Session(running.master) as several, tf.Session() as one:
        plan = several.plan([loss, step], [ids])
        for part in (part for level in plan.levels for part in level):
            sizes = [tensor.shape.as_list() for tensor in (*part.inputs, *plan.sent[part])]
            assert [25, 8] not in sizes  # rows travel, not the table
        found = losses(several, [loss, step], feeds)
        np.testing.assert_allclose(found, losses(one, [loss, step], feeds), rtol=1e-6)
        several_table, one_table = (
            np.concatenate(session.run(list(table))) for session in (several, one)
        )
        np.testing.assert_allclose(several_table, one_table, rtol=1e-6)


def test_tables_are_with_their_tasks(running: Running) -> None:
    with tf.device(PS[1]):
        counts = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1, name="counts")
        fixed = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(["a"], [7], tf.string, tf.int64), -1, name="fixed"
        )
    keys = tf.constant(["a", "b"])
    with tf.Session(running.master) as session:
        session.run([tf.tables_initializer(), counts.insert(keys, tf.constant([1, 2], tf.int64))])
    with tf.Session(target(running.cluster, "ps", 0)) as session:
        found = session.run([counts.lookup(keys), fixed.lookup(keys), counts.size()])
    assert [each.tolist() for each in found] == [[1, 2], [7, -1], 2]


def test_an_unknown_task_is_told_with_those_that_there_are(running: Running) -> None:
    given = tf.placeholder_with_default(1.0, [])
    with tf.device("/job:worker/task:1"):
        x = tf.identity(given, name="x")
    with (
        tf.Session(running.master) as session,
        pytest.raises(tf.errors.InvalidArgumentError, match="operation x") as caught,
    ):
        session.run(x)
    assert ", ".join([*PS, *WORKERS]) in str(caught.value)
    assert caught.value.op is x.op


# -- what travels


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (2, 3)], ids=str)
def test_values_of_all_dtypes_travel(shape: tuple[int, ...], running: Running) -> None:
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


def test_large_constants_and_strings_travel(running: Running) -> None:
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


def test_values_are_loaded_and_read_where_they_are(running: Running) -> None:
    w = variable("w", PS[0], [3])
    with tf.Session(running.master) as session:
        w.load([1, 2, 3], session)
        np.testing.assert_array_equal(session.state.take(["w"])[0], [1, 2, 3])
        np.testing.assert_array_equal(session.run(w), [1, 2, 3])
        assert session.run(tf.is_variable_initialized(w))


def test_sparse_values_travel(running: Running) -> None:
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


def test_checkpoints_of_clusters_and_of_one_process_are_the_same(
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


def test_runs_in_parts_and_callables(running: Running) -> None:
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


def test_traces_and_placements_name_the_tasks(
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


def test_devices_that_a_task_lacks(running: Running) -> None:
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
    assert "test_servers.py" in str(caught.value)


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


def test_one_process_fills_a_queue_and_another_empties_it(
    running: Running, processes: Processes
) -> None:
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
    assert "test_servers.py" in str(error)


def test_waits_end_with_the_session_and_with_time_and_take_nothing(running: Running) -> None:
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


def test_queue_runners_fill_queues_of_other_tasks(running: Running) -> None:
    with tf.device(WORKERS[0]):
        number = tf.train.range_input_producer(7, num_epochs=1, shuffle=False).dequeue()
    with tf.device(PS[1]):
        batch = tf.train.batch([number], 3, allow_smaller_final_batch=True)
    with tf.Session(running.master) as session:
        session.run(tf.local_variables_initializer())
        coord = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coord)
        assert [session.run(batch).tolist() for _ in range(3)] == [[0, 1, 2], [3, 4, 5], [6]]
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(batch)
        coord.request_stop()
        coord.join(threads)


def test_a_part_that_fails_ends_the_wait_of_another(running: Running) -> None:
    element = queue_on_server().dequeue()
    with tf.device(PS[1]):
        refused = tf.check_numerics(tf.placeholder_with_default([np.nan], [1]), "not a number")
    with (
        tf.Session(running.master) as session,
        pytest.raises(tf.errors.InvalidArgumentError, match="not a number"),
    ):
        session.run([element, refused])


# -- who may come


def test_another_token_is_refused(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESTIMATORKIT_TOKEN", "another")
    with pytest.raises(tf.errors.UnauthenticatedError, match="ESTIMATORKIT_TOKEN") as caught:
        tf.Session(running.master)
    assert running.master.removeprefix("grpc://") in str(caught.value)


def test_a_server_that_is_not_there() -> None:
    nowhere = target(free_cluster(worker=1), "worker", 0)
    with pytest.raises(tf.errors.DeadlineExceededError, match="did not come") as caught:
        tf.Session(nowhere, config=tf.ConfigProto(operation_timeout_in_ms=300))
    assert "cannot be reached" in str(caught.value)


def test_an_address_that_is_taken(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("estimatorkit.distribute.server._BIND_SECS", 0.1)
    with pytest.raises(tf.errors.UnavailableError, match="/job:ps/task:0 cannot listen") as caught:
        tf.train.Server(running.cluster, "ps", 0)
    assert running.cluster["ps"][0] in str(caught.value)
