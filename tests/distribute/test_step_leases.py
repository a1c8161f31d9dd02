"""Step leases: none too many, none lost, and no message per step."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import estimatorkit as tf
from estimatorkit.data.iterator_ops import cursor_of
from estimatorkit.distribute.tasks.cluster_loop import ClusterLoop
from estimatorkit.distribute.tasks.rpc import LeaseSteps, Request, RunPrograms
from estimatorkit.distribute.tasks.step_leases import StepLeases
from estimatorkit.distribute.tasks.task_channel import TaskChannel
from estimatorkit.distribute.tasks.task_cluster import TaskCluster, serve_target
from estimatorkit.distribute.tasks.task_placement import HERE
from estimatorkit.runtime.loop import StepSpec
from estimatorkit.runtime.resource_store import ResourceStore
from estimatorkit.runtime.targets import Target
from tests.distribute.processes import Processes, free_cluster, known_token

COUNTS, HOLDS = "/job:ps/task:0", "/job:ps/task:1"


@given(
    turns=st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 9), st.booleans()), max_size=80)
)
def test_total_steps_are_not_exceeded(turns: list[tuple[str, int, bool]]) -> None:
    """Workers lease, report all of it, or die; survivors can always do the rest."""
    leases = StepLeases()
    count, until = 0, 40
    held: dict[str, int] = {}
    for worker, steps, dies in turns:
        if dies:
            held.pop(worker, None)
            leases.left(worker)
            continue
        count += held.pop(worker, 0)
        leases.left(worker)
        if count == until:
            return
        held[worker] = leases.lease(worker, steps, count, until)
        assert held[worker] == min(steps, until - count - sum(held.values()) + held[worker])
        assert count + sum(held.values()) <= until
    for worker in held:
        leases.left(worker)
    assert leases.lease("d", until, count, until) == until - count


def test_worker_at_the_end_finishes_started_step() -> None:
    leases = StepLeases()
    assert leases.lease("a", 5, 10, 10) == 1
    assert leases.lease("b", 5, 3, None) == 5


class Servers:
    """A server that counts and one that holds a weight, both of this process, and clients."""

    def __init__(self) -> None:
        self._servers = [
            tf.train.Server(free_cluster(ps=[index]), "ps", index) for index in range(2)
        ]
        self.addresses = {
            f"/job:ps/task:{index}": each.target.removeprefix("grpc://")
            for index, each in enumerate(self._servers)
        }
        self._clusters: list[TaskCluster] = []

    def loop(
        self, name: str, graph: Any, bound: int | None = None, ahead: int = 0
    ) -> tuple[Any, ClusterLoop]:
        """A session of a worker, and its loop of the steps that `training_graph` made."""
        cluster = TaskCluster(self.addresses, HERE, name, bound=bound, ahead=ahead)
        self._clusters.append(cluster)
        seen, train, step = graph
        session = tf.Session(serve_target(name, Target(ResourceStore(), cluster, shared=False)))
        if not session.run(tf.is_variable_initialized(step)):
            session.run(tf.global_variables_initializer())
        spec = StepSpec(
            [seen],
            [train],
            [step._as_graph_element()],
            lambda op: cursor_of(session.state, op.attrs["iterator"]),
            "step",
        )
        return session, ClusterLoop(session.state, spec)

    def close(self) -> None:
        for cluster in self._clusters:
            cluster.close()
        for server in self._servers:
            server.stop()


@pytest.fixture
def servers() -> Iterator[Servers]:
    with known_token():
        started = Servers()
        yield started
        started.close()


def training_graph(read_step: bool = False) -> tuple[Any, Any, Any]:
    """The weight as a step sees it (or the step), a step that adds one to it, and the counter."""
    with tf.device(COUNTS):
        step = tf.train.get_or_create_global_step()
    with tf.device(HOLDS):
        weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
    with tf.device(HERE):
        seen = weight.read_value()
        one = seen * 0.0 + 1.0
        shown = tf.identity(step._as_graph_element()) * 1 if read_step else one
    with tf.control_dependencies([tf.assign_add(weight, one)]):
        train = tf.assign_add(step, 1)
    return shown, train.op, step


@pytest.mark.multiprocess
def test_steps_send_nothing_to_counting_task(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, loop = servers.loop("/job:worker/task:0", training_graph())
    assert loop.leases_at == COUNTS
    sent: Counter[tuple[str, type[Request[Any]]]] = Counter()
    send = TaskChannel.send

    def counted(channel: Any, request: Request[Any]) -> None:
        sent[channel.connection.task, type(request)] += 1
        send(channel, request)

    monkeypatch.setattr(TaskChannel, "send", counted)
    done = loop.run(50)
    assert (done.count, int(done.after[0])) == (50, 50)
    assert sent[HOLDS, RunPrograms] == 51  # the first has a read only
    assert sent[COUNTS, LeaseSteps] == 2
    assert sent[COUNTS, RunPrograms] == 1  # what is read after the call


@pytest.mark.multiprocess
def test_schedule_reads_local_step_count(servers: Servers) -> None:
    _, loop = servers.loop("/job:worker/task:0", training_graph(read_step=True))
    assert loop.leases_at == COUNTS
    seen = np.concatenate([loop.run(count).every[0] for count in (3, 1, 4)])
    assert seen.tolist() == list(range(8))


@pytest.mark.multiprocess
@pytest.mark.parametrize(("bound", "ahead"), [(None, 0), (2, 0), (None, 1), (1, 1)])
def test_workers_do_requested_steps(servers: Servers, bound: int | None, ahead: int) -> None:
    graph = training_graph()
    names = [f"/job:worker/task:{index}" for index in range(3)]
    workers = [servers.loop(name, graph, bound, ahead) for name in names]
    until, done = 200, [0, 0, 0]

    def train(index: int) -> None:
        session, loop = workers[index]
        count = 0
        while count < until:
            found = loop.run(7 + index, until)
            done[index] += found.count
            assert int(found.after[0]) > count  # it never goes back
            count = int(found.after[0])
        loop.leave()
        session.close()
        session.state.cluster.close()  # one that has ended holds up nobody who is bound

    threads = [threading.Thread(target=train, args=(index,)) for index in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    session, _ = servers.loop("/job:worker/task:9", graph)
    with tf.variable_scope("", reuse=True):
        counted, weight = session.run([graph[2], tf.get_variable("weight", [])])
    assert weight == counted == sum(done)
    assert counted >= until
    if bound is None:  # where each step is counted, its worker guesses the rate of the others
        assert counted <= until + 2  # who began a step when another reported the last


HOLDER = """
    import json, sys, threading
    import estimatorkit as tf
    from tests.distribute import test_step_leases as own

    servers = own.Servers.__new__(own.Servers)
    servers.addresses, servers._clusters = json.loads(sys.argv[1]), []
    seen, train, step = own.training_graph()
    runs = 0

    def wait(value):
        global runs
        runs += 1
        if runs > 3 and sys.argv[2] == "holds":
            print("holds a lease", flush=True)
            threading.Event().wait()
        return value

    with tf.device(own.HERE):
        seen = tf.py_func(wait, [seen], tf.float32)
    session, loop = servers.loop("/job:worker/task:1", (seen, train, step))
    print("done", loop.run(30, 100).count, int(session.run(step)), flush=True)
    """


@pytest.mark.multiprocess
@pytest.mark.slow
def test_lease_of_killed_worker_is_done_by_others(servers: Servers, processes: Processes) -> None:
    graph = training_graph()
    session, loop = servers.loop("/job:worker/task:0", graph)
    loop.run(10)
    addresses = json.dumps(servers.addresses)
    holder = processes.program("holder", HOLDER, addresses, "holds")
    holder.wait_for("holds a lease")
    assert loop.run(1000, 40).count == 1  # 30 are leased; it waits a second, and goes on
    holder.kill()
    done = loop.run(1000, 40)
    assert (done.count, int(done.after[0])) == (29, 40)
    again = processes.program("again", HOLDER, addresses, "runs")
    assert again.join()[-1] == "done 30 70"
    assert int(session.run(graph[2])) == 70
