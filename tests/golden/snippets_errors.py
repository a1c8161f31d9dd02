"""Mistakes with graphs and sessions, written once: each function must fail.

`make_graph.py` records how TensorFlow fails, tests compare how this package does. A function takes
the module that it uses as `tf` (`tf.compat.v1`, or what stands in for it) and runs in a fresh
default graph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Mistake = Callable[[Any], object]
ERRORS: dict[str, Mistake] = {}


def mistake(function: Mistake) -> Mistake:
    """Registers a mistake under its function's name."""
    ERRORS[function.__name__] = function
    return function


@mistake
def feed_of_wrong_shape(tf: Any) -> object:
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    with tf.Session() as session:
        return session.run(x * 2, {x: np.zeros([2, 4], np.float32)})


@mistake
def feed_of_wrong_type(tf: Any) -> object:
    x = tf.placeholder(tf.float32, [2], name="x")
    with tf.Session() as session:
        return session.run(x * 2, {x: ["a", "b"]})


@mistake
def feed_of_a_tensor(tf: Any) -> object:
    x = tf.placeholder(tf.float32, [], name="x")
    with tf.Session() as session:
        return session.run(x * 2, {x: tf.constant(1.0)})


@mistake
def feed_of_something_else(tf: Any) -> object:
    with tf.Session() as session:
        return session.run(tf.constant(1.0), {3.5: 1.0})


@mistake
def feed_that_is_missing(tf: Any) -> object:
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    with tf.Session() as session:
        return session.run(x * 2)


@mistake
def feed_that_is_missing_scalar(tf: Any) -> object:
    x = tf.placeholder(tf.int32, name="x")
    with tf.Session() as session:
        return session.run(x * 2)


@mistake
def fetch_of_a_number(tf: Any) -> object:
    tf.constant(1.0)
    with tf.Session() as session:
        return session.run(3.5)


@mistake
def fetch_of_none(tf: Any) -> object:
    tf.constant(1.0)
    with tf.Session() as session:
        return session.run(None)


@mistake
def fetch_of_an_unknown_name(tf: Any) -> object:
    tf.constant(1.0)
    with tf.Session() as session:
        return session.run("nothing:0")


@mistake
def fetch_of_a_name_without_output(tf: Any) -> object:
    tf.constant(1.0, name="c")
    with tf.Session() as session:
        return session.run("c:1")


@mistake
def fetch_from_another_graph(tf: Any) -> object:
    a = tf.constant(1.0, name="a")
    with tf.Graph().as_default():
        tf.constant(1.0, name="b")
        with tf.Session() as session:
            return session.run(a)


@mistake
def tensor_of_another_graph(tf: Any) -> object:
    a = tf.constant(1.0, name="a")
    with tf.Graph().as_default():
        return a + tf.constant(2.0, name="b")


@mistake
def run_of_a_closed_session(tf: Any) -> object:
    session = tf.Session()
    session.close()
    return session.run(tf.constant(1.0))


@mistake
def run_of_an_empty_graph(tf: Any) -> object:
    with tf.Session() as session:
        return session.run("a:0")


@mistake
def eval_without_a_session(tf: Any) -> object:
    return tf.constant(1.0).eval()


@mistake
def uninitialized_variable(tf: Any) -> object:
    v = tf.Variable(1.0, name="v")
    with tf.Session() as session:
        return session.run(v)


@mistake
def uninitialized_resource_variable(tf: Any) -> object:
    v = tf.get_variable("v", [2], use_resource=True)
    with tf.Session() as session:
        return session.run(v)


@mistake
def add_of_float_and_int(tf: Any) -> object:
    return tf.constant(1.0, name="a") + tf.constant(1, name="b")


@mistake
def tf_add_of_float_and_int(tf: Any) -> object:
    return tf.add(tf.constant(1.0, name="a"), tf.constant(1, name="b"))


@mistake
def add_of_int_and_a_float_number(tf: Any) -> object:
    return tf.constant(1, name="a") + 2.5


@mistake
def constant_of_wrong_type(tf: Any) -> object:
    return tf.constant("a", tf.float32)


@mistake
def constant_of_float_as_int(tf: Any) -> object:
    return tf.constant(1.5, tf.int32)


@mistake
def constant_of_none(tf: Any) -> object:
    return tf.constant(None)


@mistake
def constant_that_is_ragged(tf: Any) -> object:
    return tf.constant([[1, 2], [3]])


@mistake
def add_of_incompatible_shapes(tf: Any) -> object:
    return tf.zeros([2, 3], name="a") + tf.zeros([4], name="b")


@mistake
def matmul_of_incompatible_shapes(tf: Any) -> object:
    return tf.matmul(tf.zeros([2, 3]), tf.zeros([2, 3]))


@mistake
def matmul_of_vectors(tf: Any) -> object:
    return tf.matmul(tf.zeros([3]), tf.zeros([3]))


@mistake
def matmul_of_incompatible_fed_shapes(tf: Any) -> object:
    x = tf.placeholder(tf.float32, [None, None], name="x")
    with tf.Session() as session:
        return session.run(tf.matmul(x, tf.zeros([3, 1])), {x: np.zeros([2, 4])})


@mistake
def reshape_to_another_size(tf: Any) -> object:
    return tf.reshape(tf.zeros([2, 3]), [4])


@mistake
def concat_of_incompatible_shapes(tf: Any) -> object:
    return tf.concat([tf.zeros([2, 3]), tf.zeros([3, 3])], axis=1)


@mistake
def set_shape_that_contradicts(tf: Any) -> object:
    return tf.zeros([2, 3]).set_shape([3, 3])


@mistake
def reduce_over_an_axis_that_is_not_there(tf: Any) -> object:
    return tf.reduce_sum(tf.zeros([2, 3]), axis=2)


@mistake
def assign_of_another_shape(tf: Any) -> object:
    return tf.Variable([1.0, 2.0], name="v").assign([1.0, 2.0, 3.0])


@mistake
def gather_out_of_range(tf: Any) -> object:
    with tf.Session() as session:
        return session.run(tf.gather([1.0, 2.0], tf.placeholder_with_default([5], [1])))


@mistake
def get_variable_twice(tf: Any) -> object:
    tf.get_variable("v", [1])
    return tf.get_variable("v", [1])


@mistake
def get_variable_twice_in_scope(tf: Any) -> object:
    for _ in range(2):
        with tf.variable_scope("s"):
            tf.get_variable("v", [1])
    return None


@mistake
def reuse_of_a_missing_variable(tf: Any) -> object:
    with tf.variable_scope("s", reuse=True):
        return tf.get_variable("v", [1])


@mistake
def reuse_with_another_shape(tf: Any) -> object:
    with tf.variable_scope("s", reuse=tf.AUTO_REUSE):
        tf.get_variable("v", [1])
        return tf.get_variable("v", [2])


@mistake
def reuse_with_another_dtype(tf: Any) -> object:
    with tf.variable_scope("s", reuse=tf.AUTO_REUSE):
        tf.get_variable("v", [1])
        return tf.get_variable("v", [1], tf.int32)


@mistake
def get_variable_without_shape(tf: Any) -> object:
    return tf.get_variable("v")


@mistake
def get_variable_of_unknown_shape(tf: Any) -> object:
    return tf.get_variable("v", [None, 2])


@mistake
def bool_of_a_tensor(tf: Any) -> object:
    return bool(tf.constant(True))


@mistake
def if_of_a_comparison(tf: Any) -> object:
    return 1 if tf.constant(1) < tf.constant(2) else 0


@mistake
def iteration_over_unknown_rank(tf: Any) -> object:
    return list(tf.placeholder(tf.float32, name="x"))


@mistake
def iteration_over_a_vector(tf: Any) -> object:
    return list(tf.constant([1.0, 2.0]))


@mistake
def len_of_a_tensor(tf: Any) -> object:
    return len(tf.constant([1.0, 2.0]))


@mistake
def float_of_a_tensor(tf: Any) -> object:
    return float(tf.constant(1.0))


@mistake
def numpy_of_a_tensor(tf: Any) -> object:
    return np.asarray(tf.constant(1.0))


@mistake
def numpy_method_of_a_tensor(tf: Any) -> object:
    return tf.constant(1.0).numpy()


@mistake
def name_with_a_space(tf: Any) -> object:
    return tf.constant(1.0, name="a b")


@mistake
def get_tensor_without_output(tf: Any) -> object:
    tf.constant(1.0, name="a")
    return tf.get_default_graph().get_tensor_by_name("a")


@mistake
def get_operation_that_is_not_there(tf: Any) -> object:
    return tf.get_default_graph().get_operation_by_name("a")


@mistake
def graph_that_is_finalized(tf: Any) -> object:
    tf.get_default_graph().finalize()
    return tf.constant(1.0)


@mistake
def gradient_of_no_variables(tf: Any) -> object:
    tf.constant(1.0)
    return tf.train.GradientDescentOptimizer(0.1).minimize(tf.constant(1.0))


@mistake
def gradient_of_an_unrelated_loss(tf: Any) -> object:
    tf.Variable(1.0, name="v")
    return tf.train.GradientDescentOptimizer(0.1).minimize(tf.constant(1.0, name="loss"))


@mistake
def gradient_of_an_integer_loss(tf: Any) -> object:
    v = tf.Variable(1, name="v")
    return tf.train.GradientDescentOptimizer(0.1).minimize(v * 2)


@mistake
def gradient_of_a_string(tf: Any) -> object:
    return tf.gradients(tf.constant("a"), [tf.constant("b")])


@mistake
def iterator_at_its_end(tf: Any) -> object:
    value = tf.data.make_one_shot_iterator(tf.data.Dataset.range(1)).get_next()
    with tf.Session() as session:
        session.run(value)
        return session.run(value)


@mistake
def iterator_not_initialized(tf: Any) -> object:
    value = tf.data.make_initializable_iterator(tf.data.Dataset.range(1)).get_next()
    with tf.Session() as session:
        return session.run(value)


@mistake
def restore_of_a_missing_checkpoint(tf: Any) -> object:
    tf.Variable(1.0, name="v")
    with tf.Session() as session:
        return tf.train.Saver().restore(session, "nowhere/model.ckpt")


@mistake
def saver_without_variables(tf: Any) -> object:
    return tf.train.Saver()


@mistake
def assert_that_fails(tf: Any) -> object:
    check = tf.Assert(tf.constant(False), ["value:", 3], name="check")
    with tf.Session() as session:
        return session.run(check)


@mistake
def check_numerics_that_fails(tf: Any) -> object:
    with tf.Session() as session:
        return session.run(tf.check_numerics(tf.log(tf.constant(-1.0)), "loss"))


@mistake
def cond_with_different_types(tf: Any) -> object:
    return tf.cond(tf.constant(True), lambda: tf.constant(1.0), lambda: tf.constant(1))


@mistake
def while_loop_that_changes_its_shape(tf: Any) -> object:
    return tf.while_loop(
        lambda x: tf.reduce_sum(x) < 10.0, lambda x: tf.concat([x, x], 0), [tf.ones([1])]
    )


@mistake
def device_that_is_not_there(tf: Any) -> object:
    with tf.device("/job:nowhere/task:3"):
        a = tf.constant(1.0, name="a")
    with tf.Session() as session:
        return session.run(a)


@mistake
def device_that_is_not_a_device(tf: Any) -> object:
    with tf.device("my gpu"):
        return tf.constant(1.0)
