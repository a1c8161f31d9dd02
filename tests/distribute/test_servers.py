"""Cluster sessions across processes: shared state and placement.

One cluster, of two parameter servers and the workers 0 and 7, serves the whole file; each test
begins with its tasks empty (`conftest.py`). This process is a client outside of it.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.storage.checkpoint import read_checkpoint
from tests.distribute.conftest import Running
from tests.distribute.processes import Processes, target
from tests.train.test_partitioned_is_whole import check_parts

pytestmark = pytest.mark.multiprocess

PS = ("/job:ps/task:0", "/job:ps/task:1")
WORKERS = ("/job:worker/task:0", "/job:worker/task:7")


def variable(name: str, where: str, shape: Any = (), value: float = 0.0) -> tf.Variable:
    """A variable on a task."""
    with tf.device(where):
        return tf.get_variable(name, shape, initializer=tf.constant_initializer(value))


@pytest.mark.slow
def test_no_thread_outlives_run_with_timeout(running: Running) -> None:
    """It would let go of Arrow's streams at its end, which aborts a process that ends then."""
    w = variable("w", PS[1])
    before = threading.enumerate()
    with tf.Session(running.master) as session:
        session.run(w.initializer)
        for _ in range(20):
            session.run(w, options=tf.RunOptions(timeout_in_ms=60_000))
            assert not [each for each in threading.enumerate() if each not in before]


# -- what sessions share


def test_sessions_of_cluster_share_variables(running: Running) -> None:
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


def test_reset_clears_all_tasks(running: Running) -> None:
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


@pytest.mark.slow
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


def test_random_numbers_restart_in_each_session(running: Running) -> None:
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


def test_operations_run_in_requested_process(running: Running) -> None:
    """A relative path is one of the process that reads it."""
    for process, task in zip(running.tasks.values(), (*PS, *WORKERS), strict=True):
        with tf.device(task):
            name = tf.read_file("name")
        with tf.Session(running.master) as session:
            assert session.run(name) == process.name.encode()
    unplaced = tf.read_file("name")
    with tf.Session(running.master) as session:
        assert session.run(unplaced) == b"worker 7"


def test_python_and_datasets_run_in_client(running: Running) -> None:
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


@pytest.mark.slow
def test_control_flow_with_remote_variables(running: Running) -> None:
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


def test_branches_update_variables_of_several_servers(running: Running) -> None:
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


@pytest.mark.slow
@pytest.mark.parametrize(
    "partitioner",
    [
        tf.fixed_size_partitioner(2),
        tf.variable_axis_size_partitioner(800),
        tf.min_max_variable_partitioner(2, min_slice_size=100),
    ],
    ids=["fixed_size", "axis_size", "min_max"],
)
def test_table_on_two_servers_matches_one_process(partitioner: Any, running: Running) -> None:
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


@pytest.mark.slow
@pytest.mark.parametrize("lookup", ["embedding", "weighted column", "linear"])
def test_partitioned_remote_tables_match_local_table(lookup: str, running: Running) -> None:
    place = tf.train.replica_device_setter(worker_device=WORKERS[1], cluster=running.cluster)
    check_parts(lookup, "momentum", "three", running.master, place)


@pytest.mark.slow
def test_servers_save_and_restore_their_partitions(
    running: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This process reads none of it."""
    read: list[str] = []

    def noted(path: Any, names: Any) -> Any:
        read.extend(names)
        return read_checkpoint(path, names)

    monkeypatch.setattr("estimatorkit.train.saving.saver.read_checkpoint", noted)

    def built(parts: int) -> tuple[Any, Any]:
        with tf.device(
            tf.train.replica_device_setter(worker_device=WORKERS[1], cluster=running.cluster)
        ):
            table = tf.get_variable("t", [50, 8], partitioner=tf.fixed_size_partitioner(parts))
            loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(table, [1, 1, 49, 30], "div")))
            return table, tf.train.AdagradOptimizer(0.1).minimize(loss)

    def state(session: tf.Session) -> list[Any]:
        slots = [each for each in tf.global_variables() if "Adagrad" in each.name]
        return [np.concatenate(session.run(each)) for each in (list(table), slots)]

    table, step = built(2)
    with tf.Session(running.master) as session:
        session.run(tf.global_variables_initializer())
        session.run(step)
        path = tf.train.Saver().save(session, tmp_path / "m")
        session.run(step)
        wanted = state(session)
    assert tf.train.list_variables(path) == [("t", [50, 8]), ("t/Adagrad", [50, 8])]
    assert len(list(Path(path).glob("variables-*"))) == len(PS)
    for parts in (2, 3):
        tf.Session.reset(running.master)
        with tf.Graph().as_default():
            table, step = built(parts)
            assert {part.device for part in table} == {*PS}
            with tf.Session(running.master) as session:
                tf.train.Saver().restore(session, path)
                session.run(step)
                for found, value in zip(state(session), wanted, strict=True):
                    np.testing.assert_allclose(found, value, rtol=1e-6)
    assert read == []
    with tf.Graph().as_default(), tf.Session() as alone:
        whole = tf.get_variable("t", [50, 8])
        tf.train.Saver().restore(alone, path)
        assert alone.run(whole).shape == (50, 8)
    assert read == ["t"]


def test_dynamic_remote_tables_match_one_process(running: Running, tmp_path: Path) -> None:
    """Rows and ids are on the servers; a checkpoint has both."""
    table = tf.feature_column.EmbeddingTable(
        "t", dynamic=True, partitions=2, capacity=256, initializer=tf.ones_initializer()
    )
    ids = tf.placeholder(tf.int64, [None, 1])
    with tf.device(
        tf.train.replica_device_setter(worker_device=WORKERS[1], cluster=running.cluster)
    ):
        column = tf.feature_column.categorical_column_with_identity("id", 2**62)
        embedding = tf.feature_column.embedding_column(column, 3, table=table)
        vectors = tf.feature_column.input_layer({"id": ids}, [embedding])
        loss = tf.reduce_sum(tf.square(vectors))
        step = tf.train.AdagradOptimizer(0.1).minimize(loss)
    known = [each for each in tf.global_variables() if each.op.name.endswith("ids")]
    assert {each.device for each in known} == {*PS}
    batches = np.random.default_rng(0).integers(0, 10**9, [6, 700, 1])
    batches[3:] = batches[:3]
    with tf.Session(running.master) as several, tf.Session() as one:
        for session in (several, one):
            session.run(tf.global_variables_initializer())
        for batch in batches[:4]:
            found, alone = (
                session.run([loss, step], {ids: batch})[0] for session in (several, one)
            )
            np.testing.assert_allclose(found, alone, rtol=1e-6)
        path = tf.train.Saver().save(several, tmp_path / "model")
        counts = [len(each) for each in several.run(known)]
        assert sum(counts) == len(np.unique(batches))
        assert min(counts) > 900
        assert all(len(rows) > 1024 for rows in several.run(tf.trainable_variables()))
        for batch in batches[4:]:
            alone = one.run([loss, step], {ids: batch})[0]
            np.testing.assert_allclose(several.run([loss, step], {ids: batch})[0], alone, rtol=1e-6)
        tf.train.Saver().restore(several, path)
        again = several.run([loss, step], {ids: batches[5]})[0]
        np.testing.assert_allclose(again, alone, rtol=1e-6)


def test_lookup_tables_live_on_their_tasks(running: Running) -> None:
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


def test_unknown_task_lists_known_tasks(running: Running) -> None:
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
