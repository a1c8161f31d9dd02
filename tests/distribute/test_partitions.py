"""Runs partitioned by task: who does what when, with the same results as one process.

The tasks are objects of this process here; those that are processes are in tests/distribute.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import estimatorkit as tf
from estimatorkit.distribute.tasks.cluster_run import ClusterState
from estimatorkit.distribute.tasks.partitions import Partition, Partitions, partition_by_task
from estimatorkit.distribute.tasks.rpc import (
    AreInitialized,
    Done,
    Initialized,
    LoadProgram,
    Message,
    ReadVariables,
    RunPrograms,
    Values,
)
from estimatorkit.distribute.tasks.task_placement import HERE, TaskPlacer
from estimatorkit.runtime.executor import PlanRunner
from estimatorkit.runtime.plan import make_plan
from estimatorkit.runtime.resource_store import ResourceStore
from estimatorkit.runtime.state import ProcessState
from estimatorkit.runtime.xla.placement import Placer

TASKS = ("/job:ps/task:0", "/job:ps/task:1", "/job:worker/task:0")


def cut(fetches: Sequence[Any], feeds: Sequence[Any] = (), default: str = HERE) -> Partitions:
    graph = tf.get_default_graph()
    tensors = [each for each in fetches if isinstance(each, tf.Tensor)]
    targets = [each for each in fetches if isinstance(each, tf.Operation)]
    return partition_by_task(graph, tensors, targets, feeds, TaskPlacer(TASKS, default, None))


def parts_of(parts: Partitions) -> list[Partition]:
    return [part for level in parts.levels for part in level]


def shown(parts: Partitions) -> list[tuple[int, str, list[str]]]:
    """Level, task and operations of each part."""
    return [(part.level, part.task, [op.name for op in part.ops]) for part in parts_of(parts)]


# -- when they run


def training_step(optimizer: Any, **tasks: str) -> tuple[Any, Any, Any]:
    """Placeholder, loss and operation of a step on two servers."""
    setter = tf.train.replica_device_setter(ps_tasks=2, worker_device="/job:worker/task:0")
    with tf.device(setter):
        x = tf.placeholder(tf.float32, [None, 4], name="x")
        w = tf.get_variable("w", [4, 3], initializer=tf.ones_initializer())
        b = tf.get_variable("b", [3], initializer=tf.zeros_initializer())
        loss = tf.reduce_sum(tf.square(tf.matmul(x, w) + b))
        step = tf.train.get_or_create_global_step()
        return x, loss, optimizer.minimize(loss, step)


def test_step_is_read_compute_update() -> None:
    x, loss, step = training_step(tf.train.GradientDescentOptimizer(0.1))
    parts = cut([loss, step], [x])
    tasks = [[part.task for part in level] for level in parts.levels]
    # The count comes last: what waits for both servers does so here.
    assert tasks == [[*TASKS[:2]], [TASKS[2]], [*TASKS[:2]], [HERE], [TASKS[0]]]
    reads = parts_of(parts)[:2]
    assert [[op.type for op in part.ops] for part in reads] == [["ReadVariableOp"]] * 2
    told = parts.describe()
    assert "operations in 7 parts" in told
    assert "part 2 of /job:worker/task:0\n  receives: x:0, w/read:0, b/read:0\n" in told


def test_one_server_updates_and_counts_at_once() -> None:
    with tf.device(tf.train.replica_device_setter(ps_tasks=1, worker_device=TASKS[2])):
        w = tf.get_variable("w", [3], initializer=tf.ones_initializer())
        step = tf.train.get_or_create_global_step()
        done = tf.train.AdamOptimizer(0.1).minimize(tf.reduce_sum(tf.square(w)), step)
    parts = parts_of(cut([done]))
    assert [part.task for part in parts] == [TASKS[0], TASKS[2], TASKS[0]]
    assert {op.type for op in parts[2].ops} >= {"ApplyAdam", "AssignAddVariableOp"}


def test_embeddings_send_rows_only() -> None:
    with tf.device(TASKS[0]):
        table = tf.get_variable("table", [1000, 2], initializer=tf.zeros_initializer())
    ids = tf.placeholder(tf.int32, [None], name="ids")
    rows = tf.nn.embedding_lookup(table, ids, name="rows")
    step = tf.train.AdagradOptimizer(0.1).minimize(tf.reduce_sum(tf.square(rows)))
    parts = cut([step], [ids])
    first, *_, last = [part for part in parts_of(parts) if part.task == TASKS[0]]
    assert [op.type for op in first.ops] == ["ReadVariableOp", "GatherV2"]
    assert "SparseApplyAdagrad" in {op.type for op in last.ops}
    sent = [tensor for part in parts_of(parts) for tensor in parts.sent[part]]
    assert not any(tensor.shape.as_list() == [1000, 2] for tensor in sent)


def test_read_is_combined_with_other_work() -> None:
    with tf.device(TASKS[0]):
        w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
    x = tf.placeholder(tf.float32, [], name="x")
    with tf.device(TASKS[2]):
        first = tf.identity(x, name="first")
    with tf.device(TASKS[0]):
        later = tf.add(first, w, name="later")
    assert shown(cut([later], [x])) == [
        (0, TASKS[2], ["first"]),
        (1, TASKS[0], ["w/read", "later"]),
    ]


def test_client_works_as_late_as_possible() -> None:
    x = tf.placeholder(tf.float32, [], name="x")
    early = tf.negative(x, name="early")
    with tf.device(TASKS[0]):
        there = tf.negative(x, name="there")
    both = tf.add(early, there, name="both")
    assert shown(cut([both], [x])) == [(0, TASKS[0], ["there"]), (1, HERE, ["early", "both"])]


def test_waiting_needs_no_exchange() -> None:
    made = []
    for task in TASKS:
        with tf.device(task):
            w = tf.get_variable(f"w{task[-1]}{len(task)}", [], initializer=tf.zeros_initializer())
            made.append(tf.assign_add(w, 1.0).op)
    with tf.device(TASKS[2]):
        one = tf.group(made[0], name="one")
        every = tf.group(*made, name="every")
    alone = parts_of(cut([one]))
    assert [part.task for part in alone] == [TASKS[0]]
    assert [part.task for part in parts_of(cut([every]))] == [*TASKS, HERE]


def test_kept_and_sent_values() -> None:
    x = tf.placeholder(tf.float32, [], name="x")
    with tf.device(TASKS[0]):
        kept = tf.negative(x, name="kept")
        given = tf.exp(x, name="given")
    there = tf.identity(given, name="there")
    with tf.device(TASKS[0]):
        last = tf.add(kept, there, name="last")
    parts = cut([last], [x])
    first, _, second = parts_of(parts)
    assert [each.name for each in parts.sent[first]] == ["given:0"]
    assert [each.name for each in first.outputs] == ["given:0", "kept:0"]
    assert [each.name for each in second.kept] == ["kept:0"]
    assert (first.last, second.last) == (False, True)
    assert "  kept: kept:0\n" in parts.describe()


# -- that it comes to the same


class LocalTask:
    """A task as an object: what a process of a cluster does with a graph that it is given."""

    def __init__(self) -> None:
        self.held = ResourceStore()
        self.programs: dict[str, Callable[[Sequence[Any]], list[Any]]] = {}
        self.kept: dict[str, Any] = {}
        self.sizes: list[int] = []

    def add(self, request: LoadProgram) -> None:
        part = replace(request.partition, graph_def=request.arrays[0].tobytes())
        graph, fed, fetched, targets = part.load()
        state = ProcessState(graph, Placer(), self.held)
        runner = PlanRunner(make_plan(graph, fetched, targets, fed), state)
        names = [name for name in part.inputs if name not in part.kept]

        def run(arrays: Sequence[Any]) -> list[Any]:
            given = dict(zip(names, arrays, strict=True)) | {
                name: self.kept[name] for name in part.kept
            }
            values = runner.compute([given[name] for name in part.inputs])
            self.kept.update(zip(part.outputs, values, strict=True))
            return [np.asarray(self.kept[name]) for name in part.sent]

        self.programs[request.name] = run


class LocalChannel:
    def __init__(self, task: LocalTask) -> None:
        self._task = task
        self._request: Any = None

    def send(self, request: Any) -> None:
        self._request = request

    def call(self, request: Any, raise_if_cancelled: Any = None) -> Message:
        self.send(request)
        return self.receive()

    def receive(self, raise_if_cancelled: Callable[[], None] | None = None) -> Message:
        request, values = self._request, self._task.held.values
        match request:
            case LoadProgram():
                self._task.add(request)
                return Done()
            case RunPrograms():
                (program,) = request.programs
                return Values(arrays=self._task.programs[program](request.arrays))
            case ReadVariables():
                return Values(arrays=[np.asarray(values[name]) for name in request.names])
        assert isinstance(request, AreInitialized)
        return Initialized(tuple(name in values for name in request.names))

    def close(self) -> None:
        pass


class LocalCluster:
    worker, bound, generation = "client", None, 0

    def __init__(self, default: str = HERE) -> None:
        self.placer = TaskPlacer(TASKS, default, None)
        self.tasks = {task: LocalTask() for task in TASKS}

    def channel(self, task: str, raise_if_cancelled: Any = None) -> LocalChannel:
        return LocalChannel(self.tasks[task])

    def give_back(self, task: str, channel: Any) -> None:
        pass

    def clear(self) -> None:
        pass

    def close(self) -> None:
        pass


class ClusterSession:
    """Runs a graph on a `LocalCluster`."""

    def __init__(self, graph: tf.Graph, default: str = HERE) -> None:
        self.cluster = LocalCluster(default)
        self.state = ClusterState(graph, Placer(), ResourceStore(), self.cluster)

    def run(self, tensors: Sequence[Any], targets: Sequence[Any] = ()) -> list[Any]:
        return self.state.runner(tensors, targets, []).run([])


PLACES = ["", *TASKS]
moves = st.lists(
    st.tuples(
        st.sampled_from(["read", "add", "multiply", "change", "after", "group"]),
        st.integers(0, 3),
        st.integers(0, 30),
        st.integers(0, 30),
    ),
    min_size=1,
    max_size=14,
)


@pytest.mark.slow
@settings(deadline=None, max_examples=20)
@given(st.lists(st.integers(0, 3), min_size=2, max_size=4), moves, st.sampled_from(PLACES))
def test_every_graph_matches_one_process(
    homes: list[int], made: list[tuple[str, int, int, int]], default: str
) -> None:
    with tf.Graph().as_default() as graph:
        variables = []
        for number, home in enumerate(homes):
            with tf.device(PLACES[home]):
                variables.append(tf.Variable(number + 1, name=f"v{number}", dtype=tf.int64))
        tensors: list[Any] = [tf.constant(3, tf.int64)]
        operations: list[Any] = []
        for what, place, one, other in made:
            a, b = tensors[one % len(tensors)], tensors[other % len(tensors)]
            variable = variables[other % len(variables)]
            with tf.device(PLACES[place]):
                if what == "read":
                    tensors.append(variable.read_value())
                elif what == "add":
                    tensors.append(a + b)
                elif what == "multiply":
                    tensors.append(a * variable)
                elif what == "change":
                    tensors.append(tf.assign_add(variable, a))
                elif what == "group":
                    operations.append(tf.group(a.op, b.op))
                else:
                    waited = operations[one % len(operations)] if operations else a
                    with tf.control_dependencies([waited]):
                        tensors.append(variable.read_value() + 1)
        initial = tf.global_variables_initializer()
        parts = partition_by_task(graph, tensors, operations, [], TaskPlacer(TASKS, default, None))
        check(parts)
        several = ClusterSession(graph, default)
        several.run([], [initial])
        with tf.Session() as one:
            one.run(initial)
            for _ in range(2):
                expected = one.run(tensors + operations)[: len(tensors)]
                assert several.run(tensors, operations) == expected
        names = [variable.op.name for variable in variables]
        assert several.state.uninitialized([*names, "none"]) == ["none"]


def check(parts: Partitions) -> None:
    """What must be so of any cut."""
    made: dict[Any, Partition] = {}
    latest: dict[str, Partition] = {}
    for level in parts.levels:
        for part in level:
            for tensor in part.inputs:
                assert made[tensor].level < part.level
                assert (tensor in part.kept) == (part.task == made[tensor].task != HERE)
                assert (
                    tensor in part.kept or part.task == HERE or tensor in parts.sent[made[tensor]]
                )
            latest[part.task] = part
        for part in level:
            made.update((tensor, part) for op in part.ops for tensor in op.outputs)
    every = [op for part in parts_of(parts) for op in part.ops]
    assert len(every) == len(set(every))
    assert [part for part in parts_of(parts) if part.last] == [
        part for part in parts_of(parts) if latest[part.task] is part
    ]


def test_functions_and_their_lines_are_serialized() -> None:
    with tf.device(TASKS[0]):
        w = tf.get_variable("w", [2], initializer=tf.ones_initializer())
        yes = tf.placeholder_with_default(True, [])
        three = tf.placeholder_with_default([1.0, 2.0, 3.0], [None], name="three")
        chosen = tf.cond(yes, lambda: w.assign_add([1.0, 2.0]), lambda: w * 3.0)
        inside = tf.cond(yes, lambda: tf.check_numerics(w / 0.0, "not finite"), lambda: w.value())
        summed = tf.foldl(lambda total, x: total + x, tf.constant([1.0, 2.0, 4.0]))
    with tf.device(TASKS[1]):
        bad = tf.reshape(three, [2, 2], name="bad")
    session = ClusterSession(tf.get_default_graph())
    session.run([], [w.initializer])
    np.testing.assert_array_equal(session.run([chosen])[0], [2, 3])
    np.testing.assert_array_equal(session.state.read(["w"])[0], [2, 3])
    assert session.run([summed]) == [7.0]
    for wrong, told in ((bad, "three:0 (3,)"), (inside, "not finite")):
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            session.run([wrong])
        assert told in str(caught.value)
        assert "test_partitions.py" in str(caught.value)


def several_variables() -> list[tf.Variable]:
    """One on each task, and one that asks for none."""
    made = []
    for number, task in enumerate((*TASKS, "")):
        with tf.device(task):
            made.append(tf.get_variable(f"v{number}", [], initializer=tf.ones_initializer()))
    return made


def conditional() -> list[Any]:
    a, b, c, d = several_variables()

    def change() -> tf.Tensor:
        with tf.control_dependencies([a.assign_add(b), d.assign_add(1.0)]):
            return c.assign_add(a.read_value())

    under = tf.cond(tf.less(a, 4.0), change, lambda: tf.cond(b < 9, lambda: b.assign(9), b.value))
    return [under]


def loop() -> list[Any]:
    a, b, *_ = several_variables()

    def body(number: Any, total: Any) -> Any:
        with tf.control_dependencies([a.assign_add(2.0), b.assign_sub(total)]):
            return number + 1, total + a.read_value()

    return list(tf.while_loop(lambda number, _: number < 3, body, [0, 1.0]))


def elements() -> list[Any]:
    a, b, *_ = several_variables()
    return [tf.map_fn(lambda x: a.assign_add(x) * b.assign_sub(x), tf.constant([1.0, 2.0, 4.0]))]


def python() -> list[Any]:
    a, _, c, _ = several_variables()
    added = lambda: tf.py_func(lambda x: x + np.float32(5), [c], tf.float32)  # noqa: E731
    return [tf.cond(a > 0, lambda: a.assign(tf.reshape(added(), [])), lambda: a.value())]


def accumulation() -> list[Any]:
    """Gradients that are applied every other step."""
    variables = several_variables()
    count = tf.get_variable("count", [], tf.int32, tf.zeros_initializer())
    pairs = tf.train.AdamOptimizer(0.1).compute_gradients(
        tf.add_n([tf.square(each - 3.0) for each in variables])
    )
    optimizer = tf.train.AdamOptimizer(0.1)
    with tf.control_dependencies([count.assign_add(1)]):
        now = tf.equal(count.read_value() % 2, 0)

    def apply() -> tf.Tensor:
        with tf.control_dependencies([optimizer.apply_gradients(pairs)]):
            return tf.constant(1)

    return [tf.cond(now, apply, lambda: tf.constant(0))]


@pytest.mark.slow
@pytest.mark.parametrize("default", ["", TASKS[2]], ids=["here", "there"])
@pytest.mark.parametrize("build", [conditional, loop, elements, python, accumulation])
def test_functions_across_tasks(build: Callable[[], list[Any]], default: str) -> None:
    fetches = build()
    graph = tf.get_default_graph()
    variables = tf.global_variables()
    initial = tf.global_variables_initializer()
    several = ClusterSession(graph, default)
    several.run([], [initial])
    with tf.Session() as one:
        one.run(initial)
        for _ in range(4):
            for expected, found in zip(one.run(fetches), several.run(fetches), strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-6)
            names = [variable.op.name for variable in variables]
            np.testing.assert_allclose(several.state.read(names), one.run(variables), rtol=1e-6)


def test_equal_names_do_not_collide() -> None:
    """A fed output of an operation that runs all the same, and names that differ in case."""
    with tf.device(TASKS[0]):
        both = tf.split(tf.constant([1.0, 2.0]), 2, name="both")
        small, large = (tf.placeholder(tf.float32, [], name=name) for name in ("x", "X"))
        result = tf.add(both[0] - both[1], small / large, name="result")
    session = ClusterSession(tf.get_default_graph())
    runner = session.state.runner([result], [both[0].op], [both[0], small, large])
    assert runner.run([np.float32([7]), np.float32(3), np.float32(2)]) == [[6.5]]
