"""Which task of a cluster runs an operation."""

from __future__ import annotations

import pytest

import estimatorkit as tf
from estimatorkit.distribute.tasks.task_placement import HERE, TaskPlacer

TASKS = ("/job:ps/task:0", "/job:ps/task:1", "/job:worker/task:0")


def placed(op: tf.Operation, default: str = HERE, own: str | None = None) -> str:
    return TaskPlacer(TASKS, default, own)(op)


def test_operations_run_on_requested_task() -> None:
    with tf.device("/job:ps/task:1"):
        there = tf.constant(1.0) + tf.placeholder(tf.float32, [])
    with tf.device("/job:worker"):
        first = tf.identity(there)
    with tf.device("/cpu:0"):
        nowhere = tf.identity(there)
    assert placed(there.op) == TASKS[1]
    assert placed(first.op) == TASKS[2]
    assert placed(nowhere.op) == HERE
    assert placed(nowhere.op, TASKS[0]) == TASKS[0]
    assert placed(there.op, own=TASKS[1]) == HERE


def test_unknown_task_lists_known_tasks() -> None:
    with tf.device("/job:master/task:0"):
        x = tf.identity(tf.placeholder(tf.float32, []), name="x")
    with pytest.raises(tf.errors.InvalidArgumentError, match="for operation x") as caught:
        placed(x.op)
    assert all(task in str(caught.value) for task in TASKS)
    assert "test_task_placement.py" in str(caught.value)


def test_operations_follow_their_variable() -> None:
    with tf.device(TASKS[1]):
        w = tf.get_variable("w", [10, 2], initializer=tf.zeros_initializer())
    with tf.device(TASKS[2]):
        more = tf.assign_add(w, tf.ones([10, 2]))
        asked = tf.is_variable_initialized(w)
        rows = tf.gather(w, tf.placeholder(tf.int32, [None]))
        double = w * 2.0
    assert placed(more.op) == placed(asked.op) == placed(rows.op) == TASKS[1]
    assert placed(double.op) == TASKS[2]


def test_functions_follow_their_resources() -> None:
    with tf.device(TASKS[0]):
        w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
        queue = tf.FIFOQueue(2, tf.float32, [[]])
    with tf.device(TASKS[1]):
        v = tf.get_variable("v", [], initializer=tf.zeros_initializer())
    yes = tf.placeholder(tf.bool, [])
    with tf.device(TASKS[2]):
        plain = tf.while_loop(lambda x: x < 10, lambda x: x + w, [1.0])
        changes = tf.cond(yes, lambda: tf.assign_add(w, 1.0), lambda: tf.constant(0.0))
        waits = tf.cond(yes, queue.dequeue, lambda: tf.constant(0.0))
        nested = tf.cond(yes, lambda: tf.cond(yes, lambda: v.assign(2.0), lambda: 1.0), lambda: 0.0)
        called = tf.cond(yes, lambda: tf.py_func(abs, [1.0], tf.float32), lambda: 0.0)
        both = tf.cond(yes, lambda: w.assign(2.0), lambda: v.assign(2.0))
        mixed = tf.cond(
            yes, lambda: w.assign(tf.py_func(abs, [1.0], tf.float32)), lambda: w.assign(2.0)
        )

    def of(tensor: tf.Tensor) -> str:
        return placed(tensor.op.inputs[0].op)

    assert of(plain) == TASKS[2]
    assert of(changes) == of(waits) == TASKS[0]
    assert of(nested) == TASKS[1]
    assert of(called) == HERE
    placer = TaskPlacer(TASKS, HERE, None)
    for each, is_spread in ((changes, False), (called, False), (both, True), (mixed, True)):
        assert placer.is_spread(each.op.inputs[0].op) == is_spread
    assert of(both) == of(mixed) == HERE


def test_queues_of_several_tasks_cannot_be_selected() -> None:
    queues = []
    for task in TASKS[:2]:
        with tf.device(task):
            queues.append(tf.FIFOQueue(2, tf.float32, [[]]))
    chosen = tf.QueueBase.from_list(tf.placeholder(tf.int32, []), queues).dequeue()
    with pytest.raises(tf.errors.InvalidArgumentError, match="different tasks") as caught:
        placed(chosen.op)
    assert all(f"on {task}" in str(caught.value) for task in TASKS[:2])


def test_client_only_ops_run_in_client() -> None:
    with tf.device(TASKS[0]):
        element = tf.data.make_one_shot_iterator(tf.data.Dataset.range(3)).get_next()
        python = tf.py_func(abs, [1.0], tf.float32)
        ready = tf.report_uninitialized_variables()
        scan = tf.map_fn(lambda x: tf.py_func(abs, [x], tf.float32), tf.constant([1.0]))
    for each in (element, python, ready, scan.op.inputs[0]):
        assert placed(each.op, TASKS[1]) == HERE
