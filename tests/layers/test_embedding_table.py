"""`EmbeddingTable` and its operations `EmbeddingRows` and `HashedRows`."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.ops.tables.hash_index import HashIndex

Table = tf.feature_column.EmbeddingTable


def any_id(key: str = "id") -> Any:
    return tf.feature_column.categorical_column_with_identity(key, 2**62)


class Lookup:
    """A graph that looks up ids in a table and takes gradient steps on the sum of the vectors."""

    def __init__(
        self, table: Any, dimension: int = 2, column: Any = None, optimizer: Any = None
    ) -> None:
        self.graph = tf.Graph()
        self.graph.seed = 1
        with self.graph.as_default():
            self.ids = tf.placeholder(tf.int64, [None, None])
            embedding = tf.feature_column.embedding_column(
                column or any_id(), dimension, combiner="sum", table=table
            )
            self.vectors = tf.feature_column.input_layer({"id": self.ids}, [embedding])
            step = (optimizer or tf.train.GradientDescentOptimizer(1.0)).minimize(
                tf.reduce_sum(self.vectors)
            )
            self.step = tf.group(step)
            self.session = tf.Session(graph=self.graph)
            self.session.run(tf.global_variables_initializer())
            self.saver = tf.train.Saver()

    def see(self, *ids: int) -> Any:
        """Takes a step on ids, one in each example; returns their vectors before it."""
        return self.session.run([self.vectors, self.step], {self.ids: np.array(ids)[:, None]})[0]

    def value(self, name: str) -> Any:
        variable = next(v for v in self.graph.get_collection("variables") if v.op.name == name)
        with self.graph.as_default():
            return self.session.run(variable)


def test_hash_index_lookup() -> None:
    keys = np.random.default_rng(0).permutation(200_000).astype(np.int64) * 1024
    index, known = HashIndex(keys[:0]), keys[:0]
    for start in range(0, len(keys), 7_001):
        new = keys[start : start + 7_001]
        known = keys[: start + len(new)]
        if index.has_room(len(known)):
            index.add(new, start)
        else:
            index = HashIndex(known)
    assert (index.find(keys, known) == np.arange(len(keys))).all()
    assert (index.find(keys + 1, known) == -1).all()


def test_dynamic_table_grows() -> None:
    model = Lookup(Table(dynamic=True))
    first = model.see(5, 10**15, 5)
    assert (first[0] == first[2]).all()
    assert np.abs(first[:2]).min() > 0
    again = model.see(5, 10**15)
    np.testing.assert_allclose(again, first[:2] - [[2.0], [1.0]], atol=1e-6)
    model.see(*range(100, 5_100))
    assert model.value("id/embedding_weights").shape[0] > 5_002
    assert model.value("id/ids").shape == (5_002, 4)
    np.testing.assert_allclose(model.see(5)[0], again[0] - 1, atol=1e-6)


def test_new_rows_follow_table_initializer() -> None:
    uniform = tf.random_uniform_initializer(2.0, 3.0, seed=4)
    model = Lookup(Table(dynamic=True, initializer=uniform), dimension=8)
    drawn = np.concatenate([model.see(*range(at, at + 1000)) for at in range(0, 4000, 1000)])
    assert 2.0 <= drawn.min() < 2.01
    assert 2.99 < drawn.max() <= 3.0
    assert len(np.unique(drawn, axis=0)) == 4000  # also across growth


@pytest.mark.parametrize(
    "optimizer",
    [
        lambda: tf.train.AdagradOptimizer(0.5),
        lambda: tf.train.LazyAdamOptimizer(0.5),
        lambda: tf.train.FtrlOptimizer(0.5),
        lambda: tf.train.RowwiseAdagradOptimizer(0.5),
        lambda: tf.keras.optimizers.legacy.Adagrad(0.5),
    ],
)
def test_slots_grow_with_table(optimizer: Any) -> None:
    """The same numbers as a table that was large enough from the start."""
    ids = np.random.default_rng(0).integers(0, 3000, [40, 200])
    column = tf.feature_column.categorical_column_with_identity("id", 3000)
    zeros = tf.zeros_initializer()
    fixed = Lookup(Table(initializer=zeros, optimizer=optimizer()), column=column)
    grown = Lookup(Table(initializer=zeros, optimizer=optimizer(), dynamic=True), column=column)
    for batch in ids:
        np.testing.assert_allclose(grown.see(*batch), fixed.see(*batch), rtol=1e-6, atol=1e-7)
    assert np.abs(fixed.see(*ids[0])).max() > 1


def test_id_is_admitted_on_nth_occurrence() -> None:
    model = Lookup(Table(dynamic=True, min_count=3))
    assert (model.see(7, 8) == 0).all()
    assert (model.see(7) == 0).all()
    assert (model.see(7) != 0).all()
    assert (model.see(8) == 0).all()
    known = model.value("id/ids")
    assert dict(known[:, [0, 2]].tolist()) == {7: 3, 8: 3 - 1}
    assert dict(known[:, [0, 1]].tolist()) == {7: 0, 8: -1}


@pytest.mark.slow
def test_unseen_ids_expire() -> None:
    adagrad = tf.train.AdagradOptimizer(1.0)
    model = Lookup(Table(dynamic=True, max_age=4, optimizer=adagrad))
    model.see(1, 2)
    for _ in range(8):
        model.see(2)
    assert model.value("id/ids")[:, 0].tolist() == [2]
    slot = model.value("id/embedding_weights/Adagrad")
    assert slot[1, 0] > 8
    np.testing.assert_allclose(slot[0], 0.1)
    model.see(3)
    known = dict(model.value("id/ids")[:, [0, 1]].tolist())
    assert known == {2: 1, 3: 0}  # the row of 1
    np.testing.assert_allclose(model.value("id/embedding_weights/Adagrad")[0], 1.1)


@pytest.mark.slow
def test_checkpoint_resumes(tmp_path: Any) -> None:
    batches = np.random.default_rng(1).integers(0, 4000, [30, 150])
    adagrad, zeros = tf.train.AdagradOptimizer(0.3), tf.zeros_initializer()
    table = Table(dynamic=True, min_count=2, max_age=10, optimizer=adagrad, initializer=zeros)
    whole = Lookup(table)
    for batch in batches[:15]:
        whole.see(*batch)
    path = whole.saver.save(whole.session, str(tmp_path / "model"))
    other = Lookup(table)
    other.see(*batches[-1])  # what a session knew before counts for nothing
    other.saver.restore(other.session, path)
    for batch in batches[15:]:
        expected = whole.see(*batch)
        np.testing.assert_allclose(other.see(*batch), expected, atol=1e-6)
    assert np.abs(expected).max() > 0.5
    np.testing.assert_array_equal(other.value("id/ids")[:, 2:], whole.value("id/ids")[:, 2:])


def test_partitions_share_ids() -> None:
    table = Table(dynamic=True, partitions=3, initializer=tf.ones_initializer())
    model = Lookup(table)
    assert (model.see(*range(60), 5) == 1).all()
    np.testing.assert_array_equal(model.see(5), [[-1.0, -1.0]])
    counts = [len(model.value(f"id/part_{number}/ids")) for number in range(3)]
    assert sum(counts) == 60
    assert min(counts) > 8


def test_hashes_share_few_rows() -> None:
    model = Lookup(Table(rows=50, hashes=2, initializer=tf.random_normal_initializer(seed=2)))
    vectors = model.see(*range(300))
    assert model.value("id/embedding_weights").shape == (50, 2)
    assert len(np.unique(vectors, axis=0)) > 250  # far more than rows
    np.testing.assert_array_equal(
        vectors[7],
        Lookup(Table(rows=50, hashes=2, initializer=tf.random_normal_initializer(seed=2))).see(7)[
            0
        ],
    )


def test_short_rows_are_projected() -> None:
    column = tf.feature_column.categorical_column_with_identity("id", 9)
    model = Lookup(Table(dimension=3), dimension=5, column=column)
    rows, matrix = (model.value(f"id/{name}") for name in ("embedding_weights", "projection_to_5"))
    assert rows.shape == (9, 3)
    np.testing.assert_allclose(model.see(4, 2), rows[[4, 2]] @ matrix, atol=1e-6)


def test_table_with_own_optimizer() -> None:
    column = tf.feature_column.categorical_column_with_identity("id", 4)
    table = Table(
        optimizer=tf.train.GradientDescentOptimizer(0.25), initializer=tf.zeros_initializer()
    )
    for optimizer in (tf.train.AdamOptimizer(9.0), tf.keras.optimizers.Adam(9.0)):
        model = Lookup(table, column=column, optimizer=_on_current_variables(optimizer))
        model.see(1, 1)
        np.testing.assert_array_equal(model.see(1, 2), [[-0.5, -0.5], [0.0, 0.0]])


def _on_current_variables(optimizer: Any) -> Any:
    class Minimizing:
        def minimize(self, loss: Any) -> Any:
            if isinstance(optimizer, tf.train.Optimizer):
                return optimizer.minimize(loss)
            return tf.group(optimizer.get_updates(loss, tf.trainable_variables()))

    return Minimizing()


def test_columns_share_table() -> None:
    table = Table("item", dynamic=True)
    with tf.Graph().as_default():
        columns = [tf.feature_column.embedding_column(any_id(key), 3, table=table) for key in "ab"]
        ids = np.array([[4], [6]])
        layer = tf.feature_column.input_layer({"a": ids, "b": ids[::-1].copy()}, columns)
        assert [each.op.name for each in tf.trainable_variables()] == ["item/embedding_weights"]
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            found = session.run(layer)
            np.testing.assert_array_equal(found[0, :3], found[1, 3:])
            assert (found != 0).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dynamic": True, "rows": 5}, "a row for each id"),
        ({"hashes": 2}, "need a number of rows"),
        ({"min_count": 2}, "are for dynamic tables"),
        ({"dimension": 0}, "invalid dimension"),
        ({"initializer": 3}, "must be callable"),
        ({"optimizer": "Adagrad"}, "must be an Optimizer"),
        ({"dynamic": True, "shard_rows": True}, "cannot be sharded"),
    ],
)
def test_invalid_arguments_raise(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Table(**arguments)


def test_shape_dependent_initializer_is_refused() -> None:
    with pytest.raises(ValueError, match="each row the same distribution"):
        Lookup(Table(dynamic=True, initializer=tf.glorot_uniform_initializer()))


def test_tables_of_same_name_must_agree() -> None:
    with tf.Graph().as_default():
        columns = [
            tf.feature_column.embedding_column(any_id(key), size, table=Table("t", dynamic=True))
            for key, size in (("a", 2), ("b", 3))
        ]
        with pytest.raises(ValueError, match="same name differ"):
            tf.feature_column.input_layer({"a": [[1]], "b": [[1]]}, columns)


@pytest.fixture
def clicks() -> tuple[dict[str, Any], Any]:
    """Users, of whom some click always and others never."""
    users = np.random.default_rng(0).zipf(1.3, 4000) % 2000
    likes = np.random.default_rng(1).random(2000) < 0.5
    return {"user": np.array([f"u{user}" for user in users])}, likes[users].astype(np.int64)


@pytest.mark.slow
def test_estimator_trains_evaluates_and_serves(clicks: Any, tmp_path: Any, caplog: Any) -> None:
    table = Table(dynamic=True, min_count=2, optimizer=tf.train.AdagradOptimizer(1.0))
    column = tf.feature_column.embedding_column(
        tf.feature_column.categorical_column_with_hash_bucket("user", 2**62), 4, table=table
    )
    config = tf.estimator.RunConfig(str(tmp_path), tf_random_seed=1)
    model = tf.estimator.DNNClassifier([8], [column], config=config)

    def input_fn() -> Any:
        return tf.data.Dataset.from_tensor_slices(clicks).repeat(5).batch(100)

    model.train(input_fn)
    known = model.get_variable_value("user/ids")
    assert known[:, 2].sum() == 20_000  # each example counts once, also of batches read ahead
    assert model.evaluate(input_fn, steps=40)["accuracy"] > 0.9
    assert len(model.get_variable_value("user/ids")) == len(known)

    def receiver() -> Any:
        features = {"user": tf.placeholder(tf.string, [None])}
        return tf.estimator.export.ServingInputReceiver(features, features)

    folder = model.export_saved_model(str(tmp_path / "export"), receiver)
    assert "TensorFlow cannot load" not in caplog.text
    served = tf.estimator.load_predictor(folder)
    asked = {"user": ["u1", "u2", "nobody", "", "u3"]}
    wanted = list(model.predict(lambda: tf.data.Dataset.from_tensors(asked)))
    found = served(asked, signature="predict")
    for number, each in enumerate(wanted):
        np.testing.assert_allclose(found["probabilities"][number], each["probabilities"], rtol=1e-5)
    np.testing.assert_array_equal(found["probabilities"][2], found["probabilities"][3])
    with_rows = int((known[:, 1] >= 0).sum())
    written = dict(tf.train.list_variables(os.fsdecode(folder) + "/variables/variables"))
    assert written["user/ids"] == [with_rows, 4]
    assert written["user/embedding_weights"] == [with_rows + 1, 4]


@pytest.mark.slow
def test_warm_start_restores_ids(clicks: Any, tmp_path: Any) -> None:
    column = tf.feature_column.embedding_column(
        tf.feature_column.categorical_column_with_hash_bucket("user", 2**62),
        *(4, "mean", None, None, None, None, True, True),
        table=Table(dynamic=True, min_count=2),
    )

    def model(name: str, **given: Any) -> Any:
        config = tf.estimator.RunConfig(str(tmp_path / name), tf_random_seed=1)
        return tf.estimator.DNNClassifier([8], [column], config=config, **given)

    first, second = model("first"), model("second", warm_start_from=str(tmp_path / "first"))
    first.train(lambda: tf.data.Dataset.from_tensor_slices(clicks).batch(100))
    stranger = ({"user": ["new"] * 10}, [1] * 10)
    second.train(lambda: tf.data.Dataset.from_tensor_slices(stranger).batch(10), steps=1)
    one, two = (each.get_variable_value("user/ids") for each in (first, second))
    np.testing.assert_array_equal(two[:-1], one)
    assert two[-1, 1:3].tolist() == [one[:, 1].max() + 1, 10]
    rows = [each.get_variable_value("user/embedding_weights") for each in (first, second)]
    np.testing.assert_array_equal(*(each[one[0, 1]] for each in rows))


def test_keras_model_trains_table(clicks: Any) -> None:
    features, labels = clicks
    table = Table("users", dynamic=True, optimizer=tf.train.AdagradOptimizer(1.0))
    column = tf.feature_column.embedding_column(
        tf.feature_column.categorical_column_with_hash_bucket("user", 2**62), 4, table=table
    )
    model = tf.keras.Sequential(
        [tf.keras.layers.DenseFeatures([column]), tf.keras.layers.Dense(1, "sigmoid")]
    )
    model.compile("adagrad", "binary_crossentropy", metrics=["accuracy"])
    model.fit(features, labels, batch_size=100, epochs=5, verbose=0)
    assert model.evaluate(features, labels, verbose=0)[1] > 0.9
    strangers = model.predict({"user": np.array(["x1", "x2", "x3"])}, verbose=0)
    assert len(np.unique(strangers)) == 1
