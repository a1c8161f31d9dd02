"""Networks for tables: statistics, invariance to units, schedules, ensembles, exports."""

from __future__ import annotations

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.premade.tabular import usual_batch_size, usual_epochs
from estimatorkit.premade.tabular_inputs import embedding_width, robust_factors
from estimatorkit.premade.tabular_network import dropped
from estimatorkit.sklearn import SKTabularClassifier, SKTabularRegressor

ROWS = 300
SMALL = {"hidden_units": (16,), "members": 2}


def _columns():
    words = tf.feature_column.categorical_column_with_vocabulary_list("word", ["a", "b"])
    many = tf.feature_column.categorical_column_with_hash_bucket("id", 40)
    numbers = [tf.feature_column.numeric_column(key) for key in ("x", "z")]
    return [*numbers, words, many]


def _features(rows=ROWS, factor=1.0, offset=0.0):
    random = np.random.default_rng(0)
    x = random.normal(size=rows).astype(np.float32)
    z = random.normal(size=rows).astype(np.float32)
    z[::7] = np.nan
    word = random.choice(np.array(["a", "b"], object), rows)
    ids = random.integers(0, 40, rows).astype(str).astype(object)
    return {"x": x * np.float32(factor) + np.float32(offset), "z": z, "word": word, "id": ids}


def _target(features):
    """A number that depends on a product, on a word and on where a value is missing."""
    z = features["z"]
    sign = np.where(features["word"] == "a", 1.0, -1.0)
    return (features["x"] * sign + np.where(np.isnan(z), 2.0, 0.0)).astype(np.float32)


def _input(features, labels, batch=64):
    def input_fn():
        dataset = tf.data.Dataset.from_tensor_slices((features, labels))
        return dataset.shuffle(ROWS, seed=3).repeat().batch(batch)

    return input_fn


def _rows(features):
    return lambda: tf.data.Dataset.from_tensor_slices(features).batch(100)


def _predictions(estimator, features, key):
    return np.array([row[key] for row in estimator.predict(_rows(features))])


def _config(tmp_path, name="model"):
    return tf.estimator.RunConfig(
        model_dir=str(tmp_path / name), tf_random_seed=1, log_step_count_steps=None
    )


def test_classifier_learns_words_products_and_missing_values(tmp_path):
    features = _features()
    labels = np.where(_target(features) > 0.5, "yes", "no").astype(object)
    classifier = tf.estimator.TabularClassifier(
        _columns(), label_vocabulary=["no", "yes"], config=_config(tmp_path), **SMALL
    )
    input_fn = _input(features, labels)
    classifier.train(input_fn, max_steps=300)
    metrics = classifier.evaluate(input_fn, steps=5)
    assert metrics["accuracy"] > 0.97
    assert metrics["auc"] > 0.99


def test_predictions_do_not_depend_on_the_units_of_numbers_and_labels(tmp_path):
    found = []
    for name, factor, offset in (("one", 1.0, 0.0), ("two", 1024.0, 4096.0)):
        features = _features(factor=factor, offset=offset)
        labels = _target(_features()) * np.float32(factor) + np.float32(offset)
        regressor = tf.estimator.TabularRegressor(
            _columns(), config=_config(tmp_path, name), **SMALL
        )
        regressor.train(_input(features, labels), max_steps=200)
        predictions = _predictions(regressor, features, "predictions")[:, 0]
        found.append((predictions - offset) / factor)
    assert np.corrcoef(found[0], _target(_features()))[0, 1] > 0.97
    np.testing.assert_allclose(found[1], found[0], atol=0.05)


def test_statistics_are_those_of_the_first_rows_and_the_input_is_rewound(tmp_path):
    features = _features()
    labels = _target(features) * 7 + 3
    seen = []

    def input_fn():
        def generate():
            for row in range(ROWS):
                seen.append(row)
                yield {key: values[row] for key, values in features.items()}, labels[row]

        types = ({"x": tf.float32, "z": tf.float32, "word": tf.string, "id": tf.string}, tf.float32)
        shapes = ({key: [] for key in features}, [])
        return tf.data.Dataset.from_generator(generate, types, shapes).batch(ROWS)

    regressor = tf.estimator.TabularRegressor(_columns(), config=_config(tmp_path), **SMALL)
    regressor.train(input_fn)
    assert regressor.get_variable_value("global_step") == 1  # the batch was still there
    numbers = np.stack([features["x"], features["z"]], 1)
    center, scale = robust_factors(numbers)
    for name, expected in (
        ("center", center),
        ("scale", scale),
        ("label_center", [labels.mean()]),
        ("label_scale", [labels.std()]),
    ):
        value = regressor.get_variable_value(f"tabular/statistics/{name}")
        np.testing.assert_allclose(value, expected, rtol=1e-5)


def test_robust_statistics_of_quartiles_ranges_and_constants():
    nan = np.nan
    table = np.array(
        [[0.0, 5.0, 1.0, nan], [1.0, 5.0, 1.0, nan], [2.0, 5.0, 1.0, nan], [3.0, 5.0, 9.0, nan]]
    )
    table = np.concatenate([table, [[4.0, 5.0, 1.0, nan]]])
    center, scale = robust_factors(table)
    np.testing.assert_allclose(center, [2.0, 5.0, 1.0, 0.0])
    np.testing.assert_allclose(scale, [0.5, 0.0, 0.25, 0.0])


def test_training_in_pieces_equals_training_at_once(tmp_path):
    features = _features()
    labels = _target(features)
    made = []
    for name, ends in (("whole", [60]), ("pieces", [20, 40, 60])):
        regressor = tf.estimator.TabularRegressor(
            _columns(), config=_config(tmp_path, name), train_steps=60, **SMALL
        )
        for end in ends:
            regressor.train(_input(features, labels), max_steps=end)
        made.append(_predictions(regressor, features, "predictions"))
    np.testing.assert_array_equal(made[1], made[0])


def test_trainings_of_one_estimator_share_a_model(tmp_path, caplog):
    features = _features()
    regressor = tf.estimator.TabularRegressor(_columns(), config=_config(tmp_path), **SMALL)
    input_fn = _input(features, _target(features))
    with caplog.at_level("INFO", "estimatorkit"):
        for end in (5, 10, 15):
            regressor.train(input_fn, max_steps=end)
    assert sum("Calling model_fn" in each.message for each in caplog.records) == 1
    span = regressor.get_variable_value("tabular/train_span")
    np.testing.assert_array_equal(span, [0, 15])
    regressor.train(input_fn, steps=7)
    span = regressor.get_variable_value("tabular/train_span")
    np.testing.assert_array_equal(span, [15, 22])


class _Constants(tf.train.SessionRunHook):
    """The constants of the graph, but the first values of the rates."""

    def begin(self):
        operations = tf.get_default_graph().get_operations()
        self.found = [
            (each.name, each.get_attr("value").tolist())
            for each in operations
            if each.type == "Const" and not each.name.startswith("tabular/rates/")
        ]


def test_rates_are_no_constants_of_the_step(tmp_path):
    features = _features()
    input_fn = _input(features, _target(features))
    found, trained = [], []
    for rate, decay, dropout in ((0.0123, 0.0456, 0.1), (0.0789, 0.0321, 0.3)):
        regressor = tf.estimator.TabularRegressor(
            _columns(),
            config=_config(tmp_path, str(rate)),
            learning_rate=rate,
            weight_decay=decay,
            dropout=dropout,
            **SMALL,
        )
        constants = _Constants()
        regressor.train(input_fn, [constants], max_steps=3)
        found.append(constants.found)
        trained.append(regressor.get_variable_value("tabular/logits/kernel"))
        assert "tabular/rates" not in regressor.get_variable_names()
    assert found[0]
    assert found[0] == found[1]
    assert not np.allclose(trained[0], trained[1])


@pytest.mark.parametrize(("members", "rate", "share"), [(1, 0.5, 0.5), (6, 0.15, 38 / 256)])
def test_dropout_drops_values_of_members_by_themselves(members, rate, share):
    with tf.Graph().as_default() as graph, tf.Session() as session:
        graph.seed = 1
        given = tf.placeholder(tf.float32, [members, None, 64])
        made = dropped(given, members, rate)
        fed = {given: np.ones((members, 500, 64), np.float32)}
        first, second = session.run(made, fed), session.run(made, fed)
    assert made.shape.as_list() == [members, None, 64]
    np.testing.assert_allclose(np.unique(first), [0.0, 1 / (1 - share)], rtol=1e-6)
    zero = np.stack([*(first == 0), *(second == 0)]).reshape(2 * members, -1)
    np.testing.assert_allclose(zero.mean(1), share, atol=0.015)
    np.testing.assert_allclose(np.corrcoef(zero), np.eye(2 * members), atol=0.03)


@pytest.mark.parametrize("weights", [None, [0.5, 0.0, 0.5], [0.2, 0.3, 0.5]])
def test_heads_average_predictions(weights):
    logits = np.random.default_rng(1).normal(size=(4, 3, 5)).astype(np.float32) * 3
    shares = np.full(3, 1 / 3) if weights is None else np.array(weights)
    exp = np.exp(logits.astype(np.float64))
    softmax = (exp / exp.sum(-1, keepdims=True) * shares[:, None]).sum(1)
    sigmoid = (exp / (1 + exp) * shares[:, None]).sum(1)
    given = None if weights is None else np.array(weights, np.float32)
    heads = {
        "softmax": tf.estimator.MultiClassHead(5),
        "sigmoid": tf.estimator.MultiLabelHead(5),
        "binary": tf.estimator.BinaryClassHead(),
        "mean": tf.estimator.RegressionHead(5),
    }
    with tf.Session() as session:
        averaged = {
            name: session.run(
                head.average_logits(tf.constant(logits[..., : head.logits_dimension]), given)
            ).astype(np.float64)
            for name, head in heads.items()
        }
    found = np.exp(averaged["softmax"])
    np.testing.assert_allclose(found / found.sum(-1, keepdims=True), softmax, rtol=1e-5)
    np.testing.assert_allclose(1 / (1 + np.exp(-averaged["sigmoid"])), sigmoid, rtol=1e-5)
    np.testing.assert_allclose(1 / (1 + np.exp(-averaged["binary"])), sigmoid[:, :1], rtol=1e-5)
    expected = (logits * shares[:, None]).sum(1)
    np.testing.assert_allclose(averaged["mean"], expected, rtol=1e-5, atol=1e-6)


def test_export_predicts_as_the_estimator(tmp_path):
    features = _features()
    labels = (_target(features) > 0).astype(np.int64) + (_target(features) > 1)
    classifier = tf.estimator.TabularClassifier(
        _columns(), n_classes=3, config=_config(tmp_path), **SMALL
    )
    classifier.train(_input(features, labels), max_steps=30)
    spec = {
        "x": tf.placeholder(tf.float32, [None]),
        "z": tf.placeholder(tf.float32, [None]),
        "word": tf.placeholder(tf.string, [None]),
        "id": tf.placeholder(tf.string, [None]),
    }
    receiver = tf.estimator.export.build_raw_serving_input_receiver_fn(spec)
    path = classifier.export_saved_model(str(tmp_path / "export"), receiver)
    with tf.estimator.load_predictor(path) as predictor:
        served = predictor(features, "predict")["probabilities"]
    expected = _predictions(classifier, features, "probabilities")
    np.testing.assert_allclose(served, expected, atol=1e-5)


def test_wrappers_keep_the_best_epoch():
    features = _features()
    table = np.stack([features["x"], features["z"]], 1)
    table[np.isnan(table)] = 0.0
    labels = table[:, 0] * 100
    model = SKTabularRegressor(**SMALL, epochs=30, random_state=1).fit(table, labels)
    assert model.score(table, labels) > 0.9
    losses = [each["average_loss"] for each in model.history_]
    assert model.best_epoch_ == int(np.argmin(losses)) + 1
    classifier = SKTabularClassifier(**SMALL, epochs=60, random_state=1)
    assert classifier.fit(table, labels > 0).score(table, labels > 0) > 0.9


@pytest.mark.parametrize(
    ("rows", "batch_size", "epochs"),
    [(1, 16, 256), (77, 16, 256), (600, 128, 256), (10_000, 256, 128), (10**6, 256, 40)],
)
def test_small_tables_have_small_batches_and_are_seen_more_often(rows, batch_size, epochs):
    assert usual_batch_size(rows) == batch_size
    assert usual_epochs(rows) == epochs


def test_embeddings_grow_with_the_vocabulary():
    assert [embedding_width(each) for each in (5, 100, 10_000)] == [4, 21, 32]


def test_invalid_arguments_say_what_is_expected():
    with pytest.raises(ValueError, match="members must be positive"):
        tf.estimator.TabularClassifier(_columns(), members=0)
    sequence = tf.feature_column.sequence_numeric_column("x")
    with pytest.raises(ValueError, match="not a column of a table"):
        tf.estimator.TabularRegressor([sequence])
