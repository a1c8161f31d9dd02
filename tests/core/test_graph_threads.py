"""Building one graph on several threads: scopes belong to the thread that opens them."""

from __future__ import annotations

import threading
from collections.abc import Callable

import estimatorkit as tf
from tests.threads import run_together


def in_a_thread(function: Callable[[], None]) -> None:
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


def test_variable_scopes_are_thread_local() -> None:
    graph = tf.get_default_graph()
    found: list[object] = []

    def work() -> None:
        with graph.as_default():
            with tf.variable_scope("bar"):
                found.append(tf.get_variable("v", [1]).name)
                found.append(tf.constant(1.0).name)
            with tf.variable_scope(None, default_name="main") as scope:
                found.append(scope.name)
            found.append(tf.get_variable_scope().reuse)
            found.append(tf.get_default_session())

    with tf.variable_scope("main", reuse=tf.AUTO_REUSE), tf.Session():
        in_a_thread(work)
        found.append(tf.get_variable("v", [1]).name)
    with tf.variable_scope(None, default_name="main") as scope:
        found.append(scope.name)
    with tf.variable_scope(None, default_name="bar") as scope:
        found.append(scope.name)
    # As TensorFlow 2.15 gives them.
    assert found == ["bar/v:0", "bar/Const:0", "main", False, None, "main/v:0", "main_1", "bar"]


def test_threads_share_variables() -> None:
    graph = tf.get_default_graph()
    variable = tf.get_variable("v", [2])

    def work() -> None:
        with graph.as_default(), tf.variable_scope("", reuse=True):
            assert tf.get_variable("v") is variable

    run_together([work] * 3)


def test_names_stay_unique_across_threads() -> None:
    graph = tf.get_default_graph()

    def work() -> None:
        with graph.as_default():
            for _ in range(20):
                with tf.name_scope("scope"):
                    tf.no_op(name="op")
                tf.no_op(name="op")

    run_together([work] * 4)
    names = {op.name for op in graph.get_operations()}
    expected = {"op", *(f"op_{n}" for n in range(1, 80))}
    expected |= {"scope/op", *(f"scope_{n}/op" for n in range(1, 80))}
    assert names == expected
