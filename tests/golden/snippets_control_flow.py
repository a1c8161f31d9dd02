"""Programs of control flow, functions and gradients: functions of the module `tf` and a session.

`STATE`: variables that bodies read and assign.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def _after(session: Any, tf: Any, result: Any, *variables: Any) -> list[Any]:
    """What a run gives, then the variables."""
    session.run(tf.global_variables_initializer())
    return [session.run(result), *(session.run(each) for each in variables)]


def _doubled_by_a_loop(tf: Any, session: Any) -> Any:
    v = tf.get_variable("v", initializer=1.0)

    def body(i: Any) -> Any:
        with tf.control_dependencies([v.assign(v * 2.0)]):
            return i + 1

    return _after(session, tf, tf.while_loop(lambda i: i < 4, body, [0]), v)


def _squared_by_a_loop(tf: Any, session: Any) -> Any:
    v = tf.get_variable("v", initializer=2.0)

    def body(i: Any) -> Any:
        with tf.control_dependencies([tf.assign(v, tf.square(v))]):
            return i + 1

    return _after(session, tf, tf.while_loop(lambda i: i < 4, body, [0]), v)


def _map_fn(tf: Any, session: Any) -> Any:
    v = tf.get_variable("v", initializer=1.0)

    def function(x: Any) -> Any:
        with tf.control_dependencies([v.assign(v * 2.0)]):
            return x + v

    mapped = tf.map_fn(function, tf.constant([1.0, 2.0, 3.0]), parallel_iterations=1)
    return _after(session, tf, mapped, v)


def _scan_and_foldl(tf: Any, session: Any) -> Any:
    v = tf.get_variable("v", initializer=1.0)

    def function(total: Any, x: Any) -> Any:
        with tf.control_dependencies([v.assign(v * 2.0)]):
            return total + x + v

    xs = tf.constant([1.0, 2.0, 3.0])
    scanned = tf.scan(function, xs, tf.constant(0.0), parallel_iterations=1)
    folded = tf.foldl(function, xs, tf.constant(0.0), parallel_iterations=1)
    return [*_after(session, tf, scanned, v), session.run(folded), session.run(v)]


def _nested(tf: Any, session: Any) -> Any:
    v = tf.get_variable("v", initializer=1.0)

    def inner(j: Any) -> Any:
        with tf.control_dependencies([v.assign(v + 1.0)]):
            return j + 1

    def body(i: Any) -> Any:
        count = tf.while_loop(lambda j: j < 2, inner, [0])
        doubled = tf.cond(count > 0, lambda: v.assign(v * 2.0), lambda: v + 0.0)
        with tf.control_dependencies([doubled]):
            return i + 1

    return _after(session, tf, tf.while_loop(lambda i: i < 3, body, [0]), v)


def _nested_map_fn(tf: Any, session: Any) -> Any:
    v = tf.get_variable("v", initializer=1.0)
    rows = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    one = {"parallel_iterations": 1}
    mapped = tf.map_fn(lambda x: tf.map_fn(lambda y: v.assign_add(y), x, **one), rows, **one)
    return _after(session, tf, mapped, v)


def _count_up_to(tf: Any, session: Any) -> Any:
    v = tf.get_variable("v", initializer=np.int64(0))

    def body(i: Any) -> Any:
        with tf.control_dependencies([v.count_up_to(3)]):
            return i + 1

    return _after(session, tf, tf.while_loop(lambda i: i < 3, body, [0]), v)


def _count_up_to_the_limit(tf: Any, session: Any) -> Any:
    v = tf.get_variable("v", initializer=np.int64(0))

    def body(i: Any) -> Any:
        with tf.control_dependencies([v.count_up_to(2)]):
            return i + 1

    return _after(session, tf, tf.while_loop(lambda i: i < 3, body, [0]), v)


def _scatter(tf: Any, session: Any) -> Any:
    v = tf.get_variable("v", initializer=tf.zeros([5]))

    def body(i: Any) -> Any:
        added = tf.scatter_add(v, [i], [tf.cast(i, tf.float32) + v[0] + 1.0])
        with tf.control_dependencies([added]):
            later = tf.scatter_nd_update(v, [[i + 1]], [v[i] * 2.0])
        with tf.control_dependencies([later]):
            return i + 1

    return _after(session, tf, tf.while_loop(lambda i: i < 4, body, [0]), v)


def _strings(tf: Any, session: Any) -> Any:
    v = tf.get_variable("v", initializer="a")

    def body(i: Any) -> Any:
        with tf.control_dependencies([v.assign(tf.strings.join([v, "b"]))]):
            return i + 1

    return _after(session, tf, tf.while_loop(lambda i: i < 3, body, [0]), v)


def _python(tf: Any, session: Any) -> Any:
    v = tf.get_variable("v", initializer=1.0)

    def body(i: Any) -> Any:
        tripled = tf.py_func(lambda x: np.float32(x * 3), [v], tf.float32)
        tripled.set_shape([])
        with tf.control_dependencies([v.assign(tripled)]):
            return i + 1

    return _after(session, tf, tf.while_loop(lambda i: i < 3, body, [0]), v)


def _optimizer(tf: Any, session: Any) -> Any:
    v = tf.get_variable("v", initializer=1.0)
    optimizer = tf.train.GradientDescentOptimizer(0.25)

    def body(i: Any) -> Any:
        with tf.control_dependencies([optimizer.minimize(tf.square(v - 3.0), var_list=[v])]):
            return i + 1

    return _after(session, tf, tf.while_loop(lambda i: i < 3, body, [0]), v)


def _initialized(tf: Any, session: Any) -> Any:
    v = tf.get_variable("v", initializer=1.0)
    asked = tf.placeholder_with_default(True, [])
    result = tf.cond(asked, lambda: tf.is_variable_initialized(v), lambda: True)
    return [bool(session.run(result)), *map(bool, _after(session, tf, result))]


def _under_control_dependencies(tf: Any, session: Any) -> Any:
    v = tf.get_variable("v", initializer=1.0)
    yes = tf.placeholder_with_default(True, [])
    with tf.control_dependencies([v.assign_add(5.0)]):
        chosen = tf.cond(yes, lambda: v + 0.0, lambda: -v)
        looped = tf.while_loop(lambda i, _: i < 2, lambda i, x: (i + 1, x * v), [0, 1.0])[1]
    return [*_after(session, tf, chosen), session.run(chosen, {yes: False}), session.run(looped)]


def _assigned_in_a_branch(tf: Any, session: Any) -> Any:
    v = tf.get_variable("v", initializer=1.0)
    which = tf.placeholder_with_default(0, [])

    def second() -> Any:
        return v.assign(v - 2.0)

    cases = [(tf.equal(which, 0), lambda: v.assign(4.0)), (tf.equal(which, 1), second)]
    result = tf.case(cases, default=lambda: v.assign_sub(3.0))
    later = [session.run(result, {which: at}) for at in (1, 2) if _after(session, tf, result)]
    return [*later, session.run(v)]


def _gradients_of_reads(tf: Any, session: Any) -> Any:
    v = tf.get_variable("v", initializer=3.0)
    looped = tf.while_loop(lambda i, _: i < 3, lambda i, x: (i + 1, x * v), [0, 2.0])[1]
    chosen = tf.cond(v > 1.0, lambda: v * v, lambda: -v)
    mapped = tf.reduce_sum(tf.map_fn(lambda x: v * x, tf.constant([1.0, 2.0])))
    return _after(session, tf, [tf.gradients(y, v) for y in (looped, chosen, mapped)])


STATE: dict[str, Callable[[Any, Any], Any]] = {
    function.__name__[1:]: function
    for function in (
        *(_doubled_by_a_loop, _squared_by_a_loop, _map_fn, _scan_and_foldl, _nested),
        *(_nested_map_fn, _count_up_to, _count_up_to_the_limit, _scatter, _strings, _python),
        *(_optimizer, _initialized, _under_control_dependencies, _assigned_in_a_branch),
        _gradients_of_reads,
    )
}
