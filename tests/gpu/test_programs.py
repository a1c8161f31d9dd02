"""Programs on the default device beside the CPU: random numbers, sparse tensors, tables, host
operations, checkpoints, trainings, donated buffers, sessions side by side, too little memory.

Where the CPU is the only device, both runs are its own, and what needs an accelerator is skipped.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import estimatorkit
import estimatorkit as tf
from estimatorkit.core.errors import ResourceExhaustedError
from estimatorkit.runtime.xla.compiler_options import options_for
from estimatorkit.runtime.xla.placement import available
from tests.gpu.devices import has_accelerator, memory_limit, on_both, on_cpu

pytestmark = pytest.mark.gpu

needs_accelerator = pytest.mark.skipif(
    not has_accelerator(), reason="the CPU is the only device: its own rules are on"
)


@pytest.fixture(autouse=True)
def _all_bits_of_products() -> Iterator[None]:
    """Products of float32 are not rounded to TensorFloat-32, as GPUs do by default."""
    with jax.default_matmul_precision("highest"):
        yield


def same(one: Any, other: Any, rtol: float = 1e-5) -> None:
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol, 1e-6), one, other)


# -- placement


def test_the_default_device_is_the_accelerator() -> None:
    kinds = [name.split(":")[1] for name in available()]
    assert kinds[0] == ("GPU" if has_accelerator() else "CPU")
    assert kinds[-1] == "CPU"


@pytest.mark.usefixtures("compiled")
def test_operations_run_where_they_are_asked_to() -> None:
    with tf.device("/cpu:0"):
        kept = tf.get_variable("kept", [4], initializer=tf.ones_initializer())
    moved = tf.get_variable("moved", [4], initializer=tf.ones_initializer())
    step = tf.group(kept.assign_add([1.0] * 4), moved.assign_add([1.0] * 4))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(3):
            sess.run(step)
        total = sess.run(kept + moved)
        places = {name: sess.state.values[name].devices() for name in ("kept", "moved")}
    assert total.tolist() == [8.0] * 4
    assert places == {"kept": {jax.devices("cpu")[0]}, "moved": {jax.devices()[0]}}


@needs_accelerator
def test_rules_for_cpus_are_off() -> None:
    images = tf.placeholder(tf.float32, [8, 28, 28, 3])
    y = tf.layers.conv2d(images, 8, 5, padding="same")
    step = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(y))
    with tf.Session() as sess:
        (segment,) = sess.plan(step, [images]).segments
        (traced,) = sess.traced(step, [images])
        text = traced.lower().as_text()
    assert options_for(segment) is None
    assert "stablehlo.convolution" in text
    assert "custom_call" not in text


# -- random numbers


def test_random_numbers_are_equal() -> None:
    def program() -> Any:
        tf.set_random_seed(7)
        exact = [
            tf.random_uniform([1000]),
            tf.random_uniform([1000], 0, 1 << 30, tf.int32),
            tf.random_shuffle(tf.range(100)),
            tf.multinomial(tf.zeros([3, 5]), 50),
        ]
        close = [
            tf.random_normal([1000]),
            tf.truncated_normal([1000]),
            tf.random_gamma([1000], 2.0),
            tf.nn.dropout(tf.ones([1000]), rate=0.5),
        ]
        variables = [
            tf.get_variable(f"v{at}", [30, 40], initializer=each)
            for at, each in enumerate(
                (tf.glorot_uniform_initializer(), tf.truncated_normal_initializer())
            )
        ]
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            return [sess.run([exact, [*close, *variables]]) for _ in range(2)]

    for (exact, close), (same_bits, near) in zip(*on_both(program), strict=True):
        jax.tree.map(np.testing.assert_array_equal, exact, same_bits)
        same(close, near)


# -- sparse tensors and shapes known at run time


def test_tables_that_grow() -> None:
    def program() -> Any:
        tf.set_random_seed(1)
        ids = tf.placeholder(tf.int64, [None])
        columns = tf.feature_column
        column = columns.embedding_column(
            columns.categorical_column_with_identity("id", 2**62),
            4,
            table=columns.EmbeddingTable(dynamic=True),
        )
        rows = columns.input_layer({"id": ids}, [column])
        loss = tf.reduce_sum((rows - 1.0) ** 2)
        step = tf.train.AdagradOptimizer(0.5).minimize(loss)
        random = np.random.default_rng(5)
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            return [
                sess.run([loss, step], {ids: random.integers(0, 2**40, 64)})[0] for _ in range(20)
            ]

    same(*on_both(program), rtol=1e-4)


# -- host operations beside device segments


def test_text_beside_matrices() -> None:
    def program() -> Any:
        tf.set_random_seed(2)
        lines = tf.placeholder(tf.string, [None])
        words = tf.string_split(lines).values
        numbers = tf.string_to_hash_bucket_fast(words, 100)
        table = tf.get_variable("t", [100, 16])
        found = tf.py_func(np.sort, [tf.reduce_sum(tf.gather(table, numbers), 1)], tf.float32)
        text = tf.as_string(tf.cast(tf.floor(found * 100), tf.int32))
        loss = tf.reduce_sum(tf.gather(table, numbers) ** 2)
        step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        feed = {lines: [b"the cat sat", b"on the mat", b"and the dog"]}
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            losses = [sess.run([loss, step], feed)[0] for _ in range(3)]
            return losses, *sess.run([found, numbers, tf.strings.length(text)], feed)

    same(*on_both(program))


def test_elements_of_mapped_datasets() -> None:
    def program() -> Any:
        data = tf.data.Dataset.range(100).map(lambda x: tf.cast(x, tf.float32) ** 2 / 7.0)
        batch = tf.data.make_one_shot_iterator(data.shuffle(50, seed=3).batch(25)).get_next()
        with tf.Session() as sess:
            return [sess.run(tf.reduce_sum(batch)) for _ in range(4)]

    same(*on_both(program))


# -- trainings


def test_losses_of_estimators_agree() -> None:
    def program() -> Any:
        random = np.random.default_rng(4)
        features = {
            "x": random.normal(size=(200, 3)).astype(np.float32),
            "word": random.choice(np.array([b"a", b"b", b"c"]), 200),
        }
        labels = (features["x"].sum(1) > 0).astype(np.int64)
        columns = tf.feature_column
        words = columns.categorical_column_with_vocabulary_list("word", ["a", "b", "c"])
        model = tf.estimator.DNNLinearCombinedClassifier(
            linear_feature_columns=[words],
            dnn_feature_columns=[
                columns.numeric_column("x", shape=[3]),
                columns.embedding_column(words, 2),
            ],
            dnn_hidden_units=[16, 8],
            config=tf.estimator.RunConfig(tf_random_seed=1),
        )
        data = tf.data.Dataset.from_tensor_slices((features, labels))
        model.train(lambda: data.repeat().batch(32), steps=60)
        found = model.evaluate(lambda: data.batch(50))
        predictions = [each["logistic"] for each in model.predict(lambda: data.batch(50))]
        return found["loss"], found["auc"], np.stack(predictions)

    same(*on_both(program), rtol=2e-3)


def test_products_are_rounded_as_in_tensorflow_2() -> None:
    """Without the fixture: TensorFloat-32 has 10 bits, and float32's range."""
    random = np.random.default_rng(1)
    one, other = random.normal(size=(2, 256, 256)).astype(np.float32)
    with jax.default_matmul_precision(None), tf.Session() as sess:
        product = sess.run(tf.matmul(tf.placeholder_with_default(one, one.shape), other))
    wanted = one.astype(np.float64) @ other
    assert np.linalg.norm(product - wanted) < 2e-3 * np.linalg.norm(wanted)


# -- checkpoints


@pytest.mark.parametrize("first_on_cpu", [False, True])
def test_checkpoints_move_between_devices(tmp_path: Path, first_on_cpu: bool) -> None:
    def graph() -> tuple[Any, Any, Any]:
        estimatorkit.reset_default_graph()
        tf.set_random_seed(4)
        weights = tf.get_variable("w", [64, 32])
        half = tf.get_variable("h", [32, 8], tf.bfloat16, tf.ones_initializer())
        x = np.random.default_rng(2).normal(size=(10, 64)).astype(np.float32)
        y = tf.cast(tf.matmul(tf.cast(tf.matmul(x, weights), tf.bfloat16), half), tf.float32)
        loss = tf.reduce_mean(y**2)
        return loss, tf.train.AdamOptimizer(0.01).minimize(loss), [weights, half]

    def train() -> Any:
        loss, step, variables = graph()
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            for _ in range(3):
                sess.run(step)
            path = tf.train.Saver().save(sess, str(tmp_path / "model"))
            return path, sess.run([variables, loss])

    def go_on(path: str) -> Any:
        loss, _, variables = graph()
        with tf.Session() as sess:
            tf.train.Saver().restore(sess, path)
            return sess.run([variables, loss])

    def on(cpu: bool, run: Callable[[], Any]) -> Any:
        if cpu:
            with on_cpu():
                return run()
        return run()

    path, (variables, loss) = on(first_on_cpu, train)
    restored, again = on(not first_on_cpu, lambda: go_on(path))
    jax.tree.map(np.testing.assert_array_equal, variables, restored)
    np.testing.assert_allclose(again, loss, rtol=2e-2)


# -- memory


@pytest.mark.usefixtures("compiled")
def test_buffers_of_variables_are_donated() -> None:
    weights = tf.get_variable("w", [600, 600])  # on CPUs, small ones get other buffers
    step = tf.train.AdamOptimizer(0.1).minimize(tf.reduce_sum(tf.square(weights)))
    device = jax.devices()[0]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(step)
        before = sess.state.values["w"]
        sess.run(step)
        assert before.is_deleted()
        used = (device.memory_stats() or {}).get("bytes_in_use", 0)
        for _ in range(50):
            sess.run(step)
        sess.run(weights)
        assert (device.memory_stats() or {}).get("bytes_in_use", 0) <= used + weights.shape[0] ** 2


@pytest.mark.skipif(memory_limit() is None, reason="the device does not say what memory it has")
def test_too_little_memory_is_an_error_that_names_tensors() -> None:
    rows = math.isqrt(memory_limit() or 0)  # four times what there is
    x = tf.placeholder(tf.float32, [None])
    table = tf.get_variable("table", [8], initializer=tf.ones_initializer())
    products = x[:, None] * x[None, :] + table[0]
    step = table.assign_add(tf.reduce_mean(products[:8], 1))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        with pytest.raises(ResourceExhaustedError) as caught:
            sess.run([products, step], {x: np.ones(rows, np.float32)})
        assert f"float32[{rows}, {rows}]" in str(caught.value)
        assert f"the batch has {rows} rows" in str(caught.value)
        assert __file__ in str(caught.value)
        assert sess.run(step, {x: np.ones(10, np.float32)}).tolist() == [3.0] * 8


# -- sessions


def test_two_sessions_at_once() -> None:
    x = tf.placeholder(tf.float32, [None, 32])
    loss = tf.reduce_mean(tf.layers.dense(tf.layers.dense(x, 64, tf.nn.relu), 1) ** 2)
    step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    start = tf.global_variables_initializer()
    graph = tf.get_default_graph()
    batch = np.random.default_rng(1).normal(size=(64, 32)).astype(np.float32)
    weights = graph.get_collection("variables")
    found: dict[int, Any] = {}

    with tf.Session(graph=graph) as sess:
        sess.run(start)
        values = sess.run(weights)

    def train(number: int) -> None:
        with tf.Session(graph=graph) as sess:
            sess.run(start)
            for variable, value in zip(weights, values, strict=True):
                variable.load(value, sess)
            for _ in range(30):
                sess.run(step, {x: batch * 0.5**number})
            found[number] = sess.run(loss, {x: batch})

    threads = [threading.Thread(target=train, args=(number,)) for number in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    together = dict(found)
    for number in range(2):
        train(number)
    same(together, found)  # GPUs may have chosen other kernels for another compilation
