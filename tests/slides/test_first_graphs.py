"""The introductory lecture (graphs, sessions, placeholders, datasets, variables), by its slides."""

from __future__ import annotations

import numpy as np
import pytest

import estimatorkit as tf


def test_simple_graph(capsys: pytest.CaptureFixture[str]) -> None:
    a = tf.add(3, 5)
    print(a)
    assert capsys.readouterr().out == 'Tensor("Add:0", shape=(), dtype=int32)\n'
    assert [tensor.name for tensor in a.op.inputs] == ["Add/x:0", "Add/y:0"]


def test_running_the_graph(capsys: pytest.CaptureFixture[str]) -> None:
    a = tf.add(3, 5)
    with tf.Session() as sess:
        print(sess.run(a))
    assert capsys.readouterr().out == "8\n"


def test_another_graph() -> None:
    x = 2
    y = 3
    op1 = tf.add(x, y)
    op2 = tf.multiply(x, y)
    op3 = tf.pow(op2, op1)
    with tf.Session() as sess:
        op3 = sess.run(op3)
    assert op3 == 7776


def test_unneeded_operations_do_not_run() -> None:
    x = 2
    y = 3
    add_op = tf.add(x, y)
    mul_op = tf.multiply(x, y)
    useless = tf.multiply(x, add_op)
    pow_op = tf.pow(add_op, mul_op)
    with tf.Session() as sess:
        z = sess.run(pow_op)
        plan = sess.plan(pow_op)
    assert z == 15625
    assert useless.name not in plan.describe()
    assert plan.pruned == len(tf.get_default_graph().get_operations()) - 3


def test_placeholders(capsys: pytest.CaptureFixture[str]) -> None:
    x = tf.placeholder(tf.float32)
    y = tf.placeholder(tf.float32)
    z = x + y
    sess = tf.Session()
    print(sess.run(z, feed_dict={x: 3, y: 4.5}))
    print(sess.run(z, feed_dict={x: [1, 3], y: [2, 4]}))
    assert capsys.readouterr().out == "7.5\n[3. 7.]\n"
    sess.close()


def test_dataset_iterator() -> None:
    my_data = [
        [0, 1],
        [2, 3],
        [4, 5],
        [6, 7],
    ]
    slices = tf.data.Dataset.from_tensor_slices(my_data)
    next_item = slices.make_one_shot_iterator().get_next()
    rows = []
    with tf.Session() as sess:
        while True:
            try:
                rows.append(sess.run(next_item).tolist())
            except tf.errors.OutOfRangeError:
                break
    assert rows == my_data


@pytest.mark.slow
def test_table_of_operations() -> None:
    """An operation of each category on the slide."""
    m = tf.constant([[4.0, 1.0], [2.0, 3.0]])
    v = tf.Variable(tf.zeros([2]))
    categories = {
        "element-wise": [
            tf.add(m, m),
            tf.subtract(m, m),
            tf.multiply(m, 2.0),
            tf.divide(m, 2.0),
            tf.exp(m),
            tf.log(m),
            tf.greater(m, 2.0),
            tf.less(m, 2.0),
            tf.equal(m, 2.0),
        ],
        "array": [
            tf.concat([m, m], 0),
            tf.slice(m, [0, 0], [1, 2]),
            tf.split(m, 2)[0],
            tf.constant(1),
            tf.rank(m),
            tf.shape(m),
            tf.random_shuffle(m),
        ],
        "matrix": [tf.matmul(m, m), tf.matrix_inverse(m), tf.matrix_determinant(m)],
        "stateful": [v.initializer, tf.assign(v, [1.0, 2.0]), tf.assign_add(v, [1.0, 1.0])],
        "neural": [
            tf.nn.softmax(m),
            tf.nn.sigmoid(m),
            tf.nn.relu(m),
            tf.nn.conv2d(tf.ones([1, 4, 4, 1]), tf.ones([2, 2, 1, 1]), [1, 1, 1, 1], "SAME"),
            tf.nn.max_pool(tf.ones([1, 4, 4, 1]), [1, 2, 2, 1], [1, 2, 2, 1], "SAME"),
        ],
    }
    queue = tf.FIFOQueue(4, tf.float32)
    categories["queue"] = [queue.enqueue([1.0]), queue.dequeue()]
    lock = tf.CriticalSection()
    categories["synchronization"] = [lock.execute(lambda: v + 1.0)]
    categories["control flow"] = [tf.cond(tf.constant(True), lambda: m, lambda: -m)]
    with tf.Session() as sess:
        for operations in categories.values():
            for each in operations:
                sess.run(each)
        np.testing.assert_allclose(
            sess.run(categories["matrix"][1]), [[0.3, -0.1], [-0.2, 0.4]], atol=1e-6
        )
        np.testing.assert_allclose(sess.run(categories["matrix"][2]), 10.0, rtol=1e-6)
        np.testing.assert_array_equal(sess.run(v), [2.0, 3.0])


def test_variables() -> None:
    my_variable = tf.get_variable("my_variable", [1, 2, 3])
    my_int_variable = tf.get_variable(
        "my_int_variable", [1, 2, 3], dtype=tf.int32, initializer=tf.zeros_initializer
    )
    v = tf.get_variable("v", shape=(), initializer=tf.zeros_initializer())
    w = v + 1  # w is a tf.Tensor which is computed based on the value of v.
    assert isinstance(w, tf.Tensor)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert sess.run(my_variable).shape == (1, 2, 3)
        assert sess.run(my_int_variable).tolist() == [[[0, 0, 0], [0, 0, 0]]]
        assert sess.run(w) == 1.0
