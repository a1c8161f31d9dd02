"""Cluster sessions whose processes are killed, stopped or disconnected."""

from __future__ import annotations

import errno
import json
import random
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pytest

import estimatorkit as tf
from estimatorkit.distribute.tasks import task_channel, task_endpoint
from estimatorkit.distribute.tasks.array_messages import send
from estimatorkit.distribute.tasks.cluster_loop import ClusterLoop
from estimatorkit.distribute.tasks.rpc import WriteVariables
from estimatorkit.distribute.tasks.shared_memory import SharedMemory
from estimatorkit.distribute.tasks.task_channel import TaskConnection
from estimatorkit.distribute.tasks.task_cluster import TaskCluster, serve_target
from estimatorkit.distribute.tasks.task_placement import HERE
from estimatorkit.runtime.loop import StepSpec
from estimatorkit.runtime.resource_store import ResourceStore
from estimatorkit.runtime.targets import Target
from tests.distribute.processes import (
    TOKEN,
    Process,
    Processes,
    free_cluster,
    known_token,
    target,
    until,
)
from tests.distribute.proxies import Proxy, session_by

pytestmark = pytest.mark.multiprocess

MONITORED = """
    import json
    import logging
    import os
    import sys
    import time
    import numpy as np
    import estimatorkit as tf

    logging.basicConfig(level=logging.INFO, format="%(message)s")
    logging.getLogger("jax").setLevel(logging.ERROR)
    cluster = {
        job: {int(index): address for index, address in tasks.items()}
        for job, tasks in json.loads(sys.argv[1]).items()
    }
    job, index, folder, last = sys.argv[2], int(sys.argv[3]), sys.argv[4], int(sys.argv[5])
    server = tf.train.Server(cluster, job, index)
    if job == "ps":
        print("serving", flush=True)
        server.join()
    data = np.random.default_rng(3).normal(size=(64, 4)).astype(np.float32)
    goal = (data @ [1.0, -2.0, 3.0, 0.5]).astype(np.float32) + 1
    own = f"/job:worker/task:{index}"
    with tf.device(tf.train.replica_device_setter(worker_device=own, cluster=cluster)):
        weights = tf.get_variable("weights", [4], initializer=tf.zeros_initializer())
        bias = tf.get_variable("bias", [], initializer=tf.zeros_initializer())
        loss = tf.reduce_mean(tf.square(tf.reduce_sum(data * weights, 1) + bias - goal))
        step = tf.train.get_or_create_global_step()
        train = tf.train.AdamOptimizer(0.05).minimize(loss, step)
    with tf.device(own):
        seen = tf.get_local_variable("seen", [], tf.int32, tf.zeros_initializer())
        count = tf.assign_add(seen, 1)
    with tf.train.MonitoredTrainingSession(
        server.target,
        is_chief=index == 0,
        checkpoint_dir=folder,
        hooks=[tf.train.StopAtStepHook(last_step=last)],
        save_checkpoint_secs=None,
        save_checkpoint_steps=20,
        max_wait_secs=60,
    ) as session:
        while not session.should_stop():
            _, at, times, value = session.run([train, step, count, loss])
            print(json.dumps({"step": int(at), "times": int(times), "loss": float(value)}))
            time.sleep(0.005)
            while at > last - 50 and not os.path.exists(f"{folder}.may-end"):
                time.sleep(0.01)
    print("ended", bias.device, seen.device)
    """


def steps(process: Process) -> list[dict[str, Any]]:
    """What a worker tells of its steps."""
    return [json.loads(line) for line in process.lines if line.startswith('{"step"')]


def reaches(process: Process, step: int) -> None:
    """Waits until a worker is so far."""

    def there() -> bool:
        assert process.runs, process.join()
        return any(each["step"] >= step for each in steps(process))

    until(there, f"{process.name} did not reach step {step}")


@pytest.mark.slow
def test_monitored_sessions_continue_after_kills(processes: Processes, tmp_path: Path) -> None:
    cluster = free_cluster(ps=2, worker=2)
    folder = tmp_path / "model"

    def start(job: str, index: int) -> Process:
        arguments = json.dumps(cluster), job, index, folder, 300
        return processes.program(f"{job} {index}", MONITORED, *arguments)

    servers = [start("ps", index) for index in range(2)]
    chief, worker = (start("worker", index) for index in range(2))
    reaches(worker, 20)
    worker.kill()
    before = len(steps(chief))
    worker = start("worker", 1)  # takes the model as it is
    reaches(worker, 80)
    assert len(steps(chief)) > before
    assert min(each["step"] for each in steps(worker)) > 0
    servers[1].kill()
    lost_at = max(each["step"] for each in steps(chief))
    (tmp_path / "model.may-end").touch()
    servers[1] = start("ps", 1)
    for process in (chief, worker):
        lines = process.join()
        assert lines[-1] == f"ended /job:ps/task:1 /job:worker/task:{int(process is worker)}"
        assert sum("session will be created" in line for line in lines) == 1
        found = steps(process)
        times = [each["times"] for each in found]
        anew = times.index(1, 1)  # the worker's own variable begins anew with the session
        assert times == [*range(1, anew + 1), *range(1, len(times) - anew + 1)]
        assert found[-1]["loss"] < found[0]["loss"]
    (restored,) = [line for line in chief.lines if "Restoring parameters from" in line]
    assert 60 <= int(restored.rpartition("-")[2]) <= lost_at + 20
    assert not any("Restoring" in line for line in worker.lines)
    assert all(server.runs for server in servers)
    newest = tf.train.latest_checkpoint(folder)
    assert newest is not None
    assert 300 <= tf.train.load_variable(newest, "global_step") < 320
    with tf.device("/job:ps/task:0"):
        weights = tf.get_variable("weights", [4])
    with tf.Session(target(cluster, "ps", 0)) as session:
        saved = tf.train.load_variable(newest, "weights")
        np.testing.assert_allclose(session.run(weights), saved, atol=0.1)


@pytest.mark.slow
def test_paused_server_is_waited_for(processes: Processes) -> None:
    cluster = free_cluster(ps=1)
    task = processes.tasks(cluster)["ps", 0]
    count, more = counter()
    with tf.Session(target(cluster, "ps", 0)) as session:
        session.run(count.initializer)
        task.signal(signal.SIGSTOP)
        again = threading.Timer(1, task.signal, (signal.SIGCONT,))
        again.start()
        assert [session.run(more) for _ in range(3)] == [1, 2, 3]
        again.join()


@pytest.mark.slow
def test_plain_session_reports_lost_server(processes: Processes) -> None:
    cluster = free_cluster(ps=1)
    task = processes.tasks(cluster)["ps", 0]
    count, more = counter()
    with tf.Session(target(cluster, "ps", 0)) as session:
        session.run(count.initializer)
        assert session.run(more) == 1
        task.kill()
        task = processes.task(cluster, "ps", 0)
        task.wait_for("serving")
        with pytest.raises(tf.errors.AbortedError, match="was restarted"):
            session.run(more)
        with pytest.raises(tf.errors.OpError, match="values were lost"):
            session.run(more)
        session.run(count.initializer)
        assert session.run(more) == 1
        task.kill()
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(more, options=tf.RunOptions(timeout_in_ms=300))


def counter() -> tuple[tf.Variable, tf.Tensor]:
    """A variable on the parameter server, and what counts it."""
    with tf.device("/job:ps/task:0"):
        count = tf.get_variable("count", [], tf.int64, tf.zeros_initializer())
        return count, tf.assign_add(count, 1)


# -- a server of this process, to look into it


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[tf.train.Server]:
    """The only task of a cluster; broken channels are forgotten soon."""
    monkeypatch.setattr(task_endpoint, "RECONNECT_SECS", 0.3)
    with known_token():
        made = tf.train.Server(free_cluster(ps=1), "ps", 0)
        yield made
        made.stop()


def channels(server: tf.train.Server) -> int:
    """How many channels it serves, or keeps."""
    return len(server._endpoint.channels)


WAITER = """
    import sys
    import estimatorkit as tf

    with tf.device("/job:ps/task:0"):
        queue = tf.FIFOQueue(10, tf.int32, [[]], shared_name="numbers")
        count = tf.get_variable("count", [], tf.int64, tf.zeros_initializer())
    with tf.Session(sys.argv[1]) as session:
        print("waits", flush=True)
        session.run([tf.assign_add(count, 1), queue.dequeue()])
    """


@pytest.mark.slow
def test_killed_client_leaves_server_consistent(
    server: tf.train.Server, processes: Processes
) -> None:
    with tf.device("/job:ps/task:0"):
        queue = tf.FIFOQueue(10, tf.int32, [[]], shared_name="numbers")
    count, more = counter()
    enter, leave, size = queue.enqueue(7), queue.dequeue(), queue.size()
    with tf.Session(server.target) as session:
        session.run(count.initializer)
        threads = psutil.Process().num_threads()
        clients = [processes.program(f"client {at}", WAITER, server.target) for at in range(3)]
        for client in clients:
            client.wait_for("waits")
        until(lambda: channels(server) == 3, "the clients did not come")
        for client in clients:
            client.kill()
        until(lambda: channels(server) == 0, "channels were kept")
        until(lambda: psutil.Process().num_threads() <= threads + 2, "threads were left behind")
        session.run(enter)
        assert session.run(size) == 1  # nobody who has gone takes it
        assert session.run(leave) == 7
        assert session.run(more) <= 4


def test_closed_sessions_leave_no_channels(server: tf.train.Server) -> None:
    count, more = counter()
    address = server.target.removeprefix("grpc://")
    with tf.Session(server.target) as own:
        own.run(count.initializer)
    for number in range(1, 4):
        with session_by(address) as session:
            assert session.run(more) == number
            assert channels(server) == 1
    until(lambda: channels(server) == 0, "channels were kept")


@pytest.mark.slow
def test_retried_requests_execute_once(
    server: tf.train.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_endpoint, "RECONNECT_SECS", 30.0)
    count, more = counter()
    with tf.device("/job:ps/task:0"):
        sums = tf.get_variable("sums", [50_000], initializer=tf.zeros_initializer())
        given = tf.placeholder(tf.float32, [50_000])
        added = tf.assign_add(sums, given)
    with tf.Session(server.target) as session:
        session.run(tf.global_variables_initializer())
    proxy, over = Proxy(server.target.removeprefix("grpc://")), threading.Event()
    random_pause = random.Random(0)

    def cut_now_and_then() -> None:
        while not over.wait(random_pause.uniform(0.005, 0.1)):
            proxy.cut()

    cutter = threading.Thread(target=cut_now_and_then)
    try:
        with session_by(proxy.address) as session:
            session.run([more, added], {given: np.zeros(50_000)})
            cutter.start()
            runs = 1
            while proxy.cuts < 20:
                found, _ = session.run([more, added], {given: np.ones(50_000)})
                runs += 1
                assert found == runs
            over.set()
            cutter.join()
    finally:
        over.set()
        proxy.close()
    with tf.Session(server.target) as session:
        assert session.run(count) == runs
        np.testing.assert_array_equal(session.run(sums), np.full(50_000, runs - 1))


def test_unsendable_values_are_reported_once(
    server: tf.train.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server's own process asks nobody: all is sent by it as an answer."""
    count, more = counter()

    def refuse(writer: Any, header: Any, arrays: Any = (), area: Any = None) -> None:
        if len(arrays):
            raise tf.errors.UnimplementedError(None, None, "It stays here.")
        send(writer, header, arrays, area)

    with session_by(server.target.removeprefix("grpc://")) as session:
        session.run(count.initializer)
        monkeypatch.setattr(task_endpoint, "send", refuse)
        with pytest.raises(tf.errors.UnimplementedError, match="It stays here"):
            session.run(more)
        monkeypatch.undo()
        assert session.run(more) == 2


def test_incomplete_reply_is_given_up(
    server: tf.train.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    count, more = counter()
    sent = 0

    def broken(writer: Any, header: Any, arrays: Any = (), area: Any = None) -> None:
        nonlocal sent
        if len(arrays):
            sent += 1
            raise pa.ArrowInvalid("no batch can be so large")
        send(writer, header, arrays, area)

    monkeypatch.setattr(task_channel, "_ATTEMPTS", 3)
    monkeypatch.setattr(task_channel, "RECONNECT_SECS", 120.0)  # not over on a busy machine
    with session_by(server.target.removeprefix("grpc://")) as session:
        session.run(count.initializer)
        monkeypatch.setattr(task_endpoint, "send", broken)
        with pytest.raises(tf.errors.UnavailableError, match="no batch can be so large"):
            session.run(more)
    assert sent == 1 + 3


def test_lost_values_stay_lost_until_session_restarts(
    server: tf.train.Server,
) -> None:
    with tf.device("/job:ps/task:0"):
        never = tf.get_variable("never", [], initializer=tf.zeros_initializer())
    with session_by(server.target.removeprefix("grpc://")) as session:
        with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value never"):
            session.run(never)
        session.state.cluster.renew()
        with pytest.raises(tf.errors.AbortedError, match="values were lost"):
            session.run(never)
        session.state.variables_set()
        with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value never"):
            session.run(never)


def test_failed_shared_memory_leaves_nothing(
    server: tf.train.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is room for one area, and not for two."""
    made: list[SharedMemory] = []
    make = SharedMemory.make

    def one(size: int) -> SharedMemory:
        if made:
            raise OSError(errno.ENOSPC, "No space left on device")
        made.append(make(size))
        return made[0]

    monkeypatch.setattr(SharedMemory, "make", staticmethod(one))
    connection = TaskConnection(server.target.removeprefix("grpc://"), "/job:ps/task:0", TOKEN)
    channel = connection.channel()
    value = np.arange(100_000, dtype=np.float32)
    for _ in range(2):
        channel.call(WriteVariables(("given",), zero_copy=True, arrays=[value]))
    channel.end()
    assert len(made) == 1
    assert SharedMemory.open(made[0].name, made[0].secret) is None


@pytest.mark.slow
def test_each_step_sees_its_own_values(server: tf.train.Server) -> None:
    """Answers come in memory that the next one is written to; a value is taken of two servers."""
    other = tf.train.Server(free_cluster(ps=[1]), "ps", 1)
    try:
        addresses = {
            f"/job:ps/task:{index}": each.target.removeprefix("grpc://")
            for index, each in enumerate([server, other])
        }
        cluster = TaskCluster(addresses, HERE, None)
        with tf.device("/job:ps/task:0"):
            online = tf.get_variable("online", [100_000], initializer=tf.zeros_initializer())
            step = tf.train.get_or_create_global_step()
        with tf.device("/job:ps/task:1"):
            follower = tf.get_variable("follower", [100_000], initializer=tf.zeros_initializer())
        with tf.device(HERE):
            seen = online.read_value()
            ones = tf.ones_like(seen) + 0.0 * tf.reduce_sum(seen)
        train = tf.group(
            tf.assign_add(online, ones), tf.assign(follower, seen), tf.assign_add(step, 1)
        )
        made = serve_target("two", Target(ResourceStore(), cluster, shared=False))
        with tf.Session(made) as session:
            session.run(tf.global_variables_initializer())
            loop = cluster_loop(session, seen, train, step)
            assert loop.one_round_trip
            for first in range(0, 60, 20):
                done = loop.run(20)
                expected = np.repeat(np.arange(first, first + 20.0)[:, None], 100_000, axis=1)
                np.testing.assert_array_equal(done.every[0], expected)
                copied = session.run(follower)
                assert copied.min() == copied.max() == first + 19
    finally:
        other.stop()


def cluster_loop(session: tf.Session, every: Any, train: Any, step: Any) -> ClusterLoop:
    def no_source(op: Any) -> Any:
        raise AssertionError("the steps take no input")

    spec = StepSpec([every], [train], [step.read_value()], no_source, "step")
    return ClusterLoop(session.state, spec)


def test_late_worker_takes_no_step(server: tf.train.Server) -> None:
    """The chief waits for the last steps of those alone who were there."""
    address = server.target.removeprefix("grpc://")
    with tf.device("/job:ps/task:0"):
        weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
        step = tf.train.get_or_create_global_step()
    with tf.device(HERE):
        gradient = weight.read_value() + 1.0
    train = tf.group(tf.assign_add(weight, gradient), tf.assign_add(step, 1))

    clusters = []

    def loop_of(name: str) -> ClusterLoop:
        cluster = TaskCluster({"/job:ps/task:0": address}, HERE, name)
        clusters.append(cluster)
        session = tf.Session(serve_target(name, Target(ResourceStore(), cluster, shared=False)))
        if not session.run(tf.is_variable_initialized(weight)):
            session.run(tf.global_variables_initializer())
        return cluster_loop(session, gradient, train, step)

    early, late = loop_of("/job:worker/task:0"), loop_of("/job:worker/task:1")
    early.run(2)
    chief = TaskCluster({"/job:ps/task:0": address}, HERE, "/job:chief/task:0")
    clusters.append(chief)
    (status,) = chief.heartbeat(is_ending=True).values()
    assert status.workers == ("/job:worker/task:0",)
    with pytest.raises(tf.errors.AbortedError, match="the chief has ended the training"):
        late.run(1)
    assert early.run(2).after[0] == 4
    for cluster in clusters:
        cluster.close()


def test_idle_connections_are_pinged_as_rarely_as_servers_allow() -> None:
    """Else a session that rested for some minutes lost its channels ("too_many_pings")."""
    allowed_ms = 5 * 60 * 1000  # GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS' default
    assert dict(task_channel._OPTIONS)["grpc.keepalive_time_ms"] > allowed_ms
