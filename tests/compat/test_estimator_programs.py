"""Estimator-era programs run with only the import line changed."""

from __future__ import annotations

import argparse
import io
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit.compat.v1 as tf
from estimatorkit.compat.v1.contrib import layers
from estimatorkit.compat.v1.contrib.learn.python.learn import learn_runner

RANDOM = np.random.default_rng(3)
IMAGES = RANDOM.random((32, 784)).astype(np.float32)
DIGITS = RANDOM.integers(0, 10, 32)


# -- the convolutional tutorial: tf.layers, logging hook, numpy_input_fn


def cnn_model_fn(features: Any, labels: Any, mode: Any) -> Any:
    input_layer = tf.reshape(features["x"], [-1, 28, 28, 1])
    conv1 = tf.layers.conv2d(
        inputs=input_layer, filters=4, kernel_size=[5, 5], padding="same", activation=tf.nn.relu
    )
    pool1 = tf.layers.max_pooling2d(inputs=conv1, pool_size=[2, 2], strides=4)
    flat = tf.reshape(pool1, [-1, 7 * 7 * 4])
    dense = tf.layers.dense(inputs=flat, units=16, activation=tf.nn.relu)
    dropout = tf.layers.dropout(
        inputs=dense, rate=0.4, training=mode == tf.estimator.ModeKeys.TRAIN
    )
    logits = tf.layers.dense(inputs=dropout, units=10)
    predictions = {
        "classes": tf.argmax(input=logits, axis=1),
        "probabilities": tf.nn.softmax(logits, name="softmax_tensor"),
    }
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode=mode, predictions=predictions)
    loss = tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)
    if mode == tf.estimator.ModeKeys.TRAIN:
        optimizer = tf.train.GradientDescentOptimizer(learning_rate=0.001)
        train_op = optimizer.minimize(loss=loss, global_step=tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode=mode, loss=loss, train_op=train_op)
    eval_metric_ops = {
        "accuracy": tf.metrics.accuracy(labels=labels, predictions=predictions["classes"])
    }
    return tf.estimator.EstimatorSpec(mode=mode, loss=loss, eval_metric_ops=eval_metric_ops)


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """What is logged at the level INFO."""
    stream = io.StringIO()
    logger, handler = logging.getLogger("estimatorkit"), logging.StreamHandler(stream)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield stream
    logger.removeHandler(handler)
    logger.setLevel(level)


@pytest.mark.slow
def test_cnn_mnist(tmp_path: Path, logged: io.StringIO) -> None:
    classifier = tf.estimator.Estimator(model_fn=cnn_model_fn, model_dir=str(tmp_path))
    logging_hook = tf.train.LoggingTensorHook(
        tensors={"probabilities": "softmax_tensor"}, every_n_iter=2
    )
    train_input_fn = tf.estimator.inputs.numpy_input_fn(
        x={"x": IMAGES}, y=DIGITS.astype(np.int32), batch_size=16, num_epochs=None, shuffle=True
    )
    classifier.train(input_fn=train_input_fn, steps=3, hooks=[logging_hook])
    assert "probabilities = [[" in logged.getvalue()
    eval_input_fn = tf.estimator.inputs.numpy_input_fn(
        x={"x": IMAGES}, y=DIGITS.astype(np.int32), num_epochs=1, shuffle=False
    )
    results = classifier.evaluate(input_fn=eval_input_fn)
    assert set(results) == {"accuracy", "loss", "global_step"}
    assert results["global_step"] == 3
    rows = list(classifier.predict(input_fn=eval_input_fn))
    assert len(rows) == len(IMAGES)
    assert np.mean([row["classes"] for row in rows] == DIGITS) == np.float32(results["accuracy"])


# -- wide and deep: csv lines, columns, flags, export, predictor

CENSUS_COLUMNS = ["age", "education", "occupation", "hours", "income"]
CENSUS_DEFAULTS: list[Any] = [[0], [""], [""], [0.0], [""]]


def census_lines() -> str:
    rows = [
        f"{20 + i},{'Bachelors' if i % 2 else 'Masters'},job{i % 5},{30 + i}.0,"
        f"{'>50K' if i % 2 else '<=50K'}"
        for i in range(40)
    ]
    return "\n".join(rows) + "\n"


def census_input_fn(data_file: str, num_epochs: int, shuffle: bool, batch_size: int) -> Any:
    assert tf.gfile.Exists(data_file), f"{data_file} not found."

    def parse_csv(value: Any) -> Any:
        columns = tf.decode_csv(value, record_defaults=CENSUS_DEFAULTS)
        features = dict(zip(CENSUS_COLUMNS, columns, strict=True))
        labels = features.pop("income")
        return features, tf.equal(labels, ">50K")

    dataset = tf.data.TextLineDataset(data_file)
    if shuffle:
        dataset = dataset.shuffle(buffer_size=40)
    dataset = dataset.map(parse_csv, num_parallel_calls=5)
    return dataset.repeat(num_epochs).batch(batch_size)


@pytest.mark.slow
@pytest.mark.slow
def test_wide_deep_census(tmp_path: Path) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--train_epochs", type=int, default=2)
    flags, _ = parser.parse_known_args([])
    data = tmp_path / "adult.data"
    data.write_text(census_lines())
    age = tf.feature_column.numeric_column("age")
    hours = tf.feature_column.numeric_column("hours")
    education = tf.feature_column.categorical_column_with_vocabulary_list(
        "education", ["Bachelors", "Masters"]
    )
    occupation = tf.feature_column.categorical_column_with_hash_bucket(
        "occupation", hash_bucket_size=20
    )
    age_buckets = tf.feature_column.bucketized_column(age, boundaries=[25, 35, 45])
    base_columns = [education, occupation, age_buckets]
    crossed_columns = [
        tf.feature_column.crossed_column(["education", "occupation"], hash_bucket_size=50),
        tf.feature_column.crossed_column([age_buckets, "education"], hash_bucket_size=50),
    ]
    deep_columns = [
        age,
        hours,
        tf.feature_column.indicator_column(education),
        tf.feature_column.embedding_column(occupation, dimension=4),
    ]
    run_config = tf.estimator.RunConfig().replace(
        session_config=tf.ConfigProto(device_count={"GPU": 0})
    )
    model = tf.estimator.DNNLinearCombinedClassifier(
        model_dir=str(tmp_path / "model"),
        linear_feature_columns=base_columns + crossed_columns,
        dnn_feature_columns=deep_columns,
        dnn_hidden_units=[8, 4],
        config=run_config,
    )
    for _ in range(flags.train_epochs):
        model.train(input_fn=lambda: census_input_fn(str(data), 2, True, 10))
    results = model.evaluate(input_fn=lambda: census_input_fn(str(data), 1, False, 10))
    assert results["global_step"] == 16
    assert {"accuracy", "auc", "average_loss", "label/mean"} <= set(results)
    spec = tf.feature_column.make_parse_example_spec(
        [*base_columns, *crossed_columns, *deep_columns]
    )
    serving = tf.estimator.export.build_parsing_serving_input_receiver_fn(spec)
    exported = model.export_savedmodel(str(tmp_path / "export"), serving)
    example = tf.train.Example(
        features=tf.train.Features(
            feature={
                "age": tf.train.Feature(float_list=tf.train.FloatList(value=[21])),
                "hours": tf.train.Feature(float_list=tf.train.FloatList(value=[31])),
                "education": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"Masters"])),
                "occupation": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"job1"])),
            }
        )
    )
    predict = tf.contrib.predictor.from_saved_model(exported.decode(), "predict")
    served = predict({"examples": [example.SerializeToString()]})
    assert served["probabilities"].shape == (1, 2)


# -- a transformer's skeleton: TPUEstimator, assignment map, warm-up, clipping, metric_fn


def skeleton_model_fn(features: Any, labels: Any, mode: Any, params: Any) -> Any:
    input_ids, segment = features["input_ids"], features["segment_ids"]
    training = mode == tf.estimator.ModeKeys.TRAIN
    with tf.variable_scope("bert"):
        table = tf.get_variable(
            "word_embeddings", [20, 8], initializer=tf.truncated_normal_initializer(stddev=0.02)
        )
        x = tf.nn.embedding_lookup(table, input_ids)
        x += tf.layers.dense(tf.one_hot(segment, 2), 8, use_bias=False, name="segments")
        mask = tf.cast(tf.not_equal(input_ids, 0), tf.float32)[:, None, :]
        scores = tf.matmul(x, x, transpose_b=True) / np.sqrt(8) + (1.0 - mask) * -10000.0
        x = layers.layer_norm(x + tf.matmul(tf.nn.softmax(scores), x), begin_norm_axis=-1)
        pooled = tf.layers.dense(tf.squeeze(x[:, 0:1, :], axis=1), 8, activation=tf.tanh)
    if training:
        pooled = tf.nn.dropout(pooled, keep_prob=0.9)
    logits = tf.layers.dense(pooled, params["num_labels"], name="output")
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.contrib.tpu.TPUEstimatorSpec(
            mode=mode, predictions={"probabilities": tf.nn.softmax(logits)}
        )
    per_example = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    loss = tf.reduce_mean(per_example)
    if training:
        step = tf.train.get_or_create_global_step()
        rate = tf.train.polynomial_decay(0.01, step, 10, end_learning_rate=0.0)
        warm = tf.cast(step, tf.float32) / 2.0
        rate = tf.cond(step < 2, lambda: 0.01 * warm, lambda: rate)
        optimizer = tf.train.AdamOptimizer(rate)
        if params["use_tpu"]:
            optimizer = tf.contrib.tpu.CrossShardOptimizer(optimizer)
        variables = tf.trainable_variables()
        gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), clip_norm=1.0)
        train_op = optimizer.apply_gradients(
            zip(gradients, variables, strict=True), global_step=step
        )
        return tf.contrib.tpu.TPUEstimatorSpec(
            mode=mode, loss=loss, train_op=train_op, scaffold_fn=None
        )

    def metric_fn(per_example_loss: Any, label_ids: Any, logits: Any) -> Any:
        predictions = tf.argmax(logits, axis=-1, output_type=tf.int32)
        return {
            "eval_accuracy": tf.metrics.accuracy(label_ids, predictions),
            "eval_loss": tf.metrics.mean(per_example_loss),
        }

    return tf.contrib.tpu.TPUEstimatorSpec(
        mode=mode, loss=loss, eval_metrics=(metric_fn, [per_example, labels, logits])
    )


@pytest.mark.slow
def test_transformer_skeleton(tmp_path: Path) -> None:
    ids = RANDOM.integers(0, 20, (24, 6)).astype(np.int32)
    sizes = []

    def input_fn(params: Any) -> Any:
        sizes.append(params["batch_size"])
        features = {"input_ids": ids, "segment_ids": np.zeros_like(ids)}
        data = tf.data.Dataset.from_tensor_slices((features, (ids[:, 0] > 9).astype(np.int32)))
        return data.batch(params["batch_size"], drop_remainder=True)

    run_config = tf.contrib.tpu.RunConfig(
        cluster=None,
        master=None,
        model_dir=str(tmp_path),
        save_checkpoints_steps=2,
        tpu_config=tf.contrib.tpu.TPUConfig(
            iterations_per_loop=1000,
            num_shards=8,
            per_host_input_for_training=tf.contrib.tpu.InputPipelineConfig.PER_HOST_V2,
        ),
    )
    estimator = tf.contrib.tpu.TPUEstimator(
        use_tpu=False,
        model_fn=skeleton_model_fn,
        config=run_config,
        train_batch_size=8,
        eval_batch_size=4,
        predict_batch_size=6,
        params={"num_labels": 2},
    )
    estimator.train(input_fn=input_fn, max_steps=3)
    result = estimator.evaluate(input_fn=input_fn, steps=None)
    assert {"eval_accuracy", "eval_loss", "loss", "global_step"} == set(result)
    np.testing.assert_allclose(result["loss"], result["eval_loss"], rtol=1e-5)
    assert len(list(estimator.predict(input_fn=input_fn))) == 24
    assert sizes == [8, 4, 6]
    assert estimator.config.tpu_config.iterations_per_loop == 1000
    assert any(name.startswith("bert/word_emb") for name, _ in tf.train.list_variables(tmp_path))


# -- Keras


@pytest.mark.slow
def test_keras_mnist_mlp(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from estimatorkit.compat.v1.keras.layers import Dense, Dropout
    from estimatorkit.compat.v1.keras.models import Sequential
    from estimatorkit.compat.v1.keras.optimizers import RMSprop

    with tf.Graph().as_default():
        labels = tf.keras.utils.to_categorical(DIGITS, 10)
        model = Sequential()
        model.add(Dense(16, activation="relu", input_shape=(784,)))
        model.add(Dropout(0.2))
        model.add(Dense(10, activation="softmax"))
        model.summary()
        assert "Total params: 12,730" in capsys.readouterr().out.replace("12730", "12,730")
        model.compile(loss="categorical_crossentropy", optimizer=RMSprop(), metrics=["accuracy"])
        history = model.fit(
            IMAGES, labels, batch_size=16, epochs=2, verbose=1, validation_data=(IMAGES, labels)
        )
        assert {"loss", "val_loss"} <= set(history.history)
        score = model.evaluate(IMAGES, labels, verbose=0)
        np.testing.assert_allclose(score[0], history.history["val_loss"][-1], rtol=1e-4)
        model.save_weights(str(tmp_path / "weights"))
        before = model.predict(IMAGES[:4])
        model.load_weights(str(tmp_path / "weights"))
        np.testing.assert_allclose(model.predict(IMAGES[:4]), before, rtol=1e-6)


# -- hooks of one's own


class CountsAndStops(tf.train.SessionRunHook):  # type: ignore[misc, name-defined]
    """Asks for the loss, and stops below a bound or after some steps."""

    def __init__(self, last: int) -> None:
        self.last = last
        self.calls: list[str] = []
        self.losses: list[float] = []

    def begin(self) -> None:
        self.calls.append("begin")
        self._step = tf.train.get_global_step()

    def after_create_session(self, session: Any, coord: Any) -> None:
        self.calls.append("after_create_session")

    def before_run(self, run_context: Any) -> Any:
        assert run_context.session is not None
        loss = tf.get_default_graph().get_tensor_by_name("my_loss:0")
        return tf.train.SessionRunArgs({"loss": loss, "step": self._step})

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.losses.append(float(run_values.results["loss"]))
        if run_values.results["step"] >= self.last:
            run_context.request_stop()

    def end(self, session: Any) -> None:
        self.calls.append(f"end at {session.run(self._step)}")


def test_custom_hooks(tmp_path: Path) -> None:
    def model_fn(features: Any, labels: Any, mode: Any, params: Any) -> Any:
        weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
        loss = tf.identity(tf.reduce_mean(tf.square(weight * features - labels)), name="my_loss")
        tf.summary.scalar("loss_again", loss)
        train_op = tf.train.GradientDescentOptimizer(params.rate).minimize(
            loss, tf.train.get_global_step()
        )
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    hook = CountsAndStops(last=7)
    hparams = tf.contrib.training.HParams(rate=0.1)
    estimator = tf.estimator.Estimator(
        model_fn=lambda features, labels, mode: model_fn(features, labels, mode, hparams),
        model_dir=str(tmp_path),
        config=tf.estimator.RunConfig(save_summary_steps=2, keep_checkpoint_max=2),
    )

    def input_fn() -> Any:
        data = tf.data.Dataset.from_tensors((np.float32(1.0), np.float32(2.0)))
        return data.repeat().batch(4).make_one_shot_iterator().get_next()

    saver = tf.train.CheckpointSaverHook(str(tmp_path), save_steps=5)
    estimator.train(input_fn, hooks=[hook, saver], max_steps=100)
    assert hook.calls[:2] == ["begin", "after_create_session"]
    assert hook.losses == sorted(hook.losses, reverse=True)
    assert 7 <= len(hook.losses) <= 8
    assert estimator.get_variable_value("global_step") == len(hook.losses)


# -- contrib.learn: fit, ModelFnOps, MetricSpec, Experiment, learn_runner

FEATURES = RANDOM.normal(size=(60, 4))
CLASSES = (FEATURES[:, 0] > 0).astype(int) + (FEATURES[:, 1] > 0.5)


def learn_model_fn(features: Any, targets: Any, mode: Any, params: Any) -> Any:
    hidden = layers.stack(features, layers.fully_connected, [8, 8], scope="fc")
    logits = layers.fully_connected(hidden, 3, activation_fn=None)
    loss, train_op = None, None
    if mode != tf.contrib.learn.ModeKeys.INFER:
        loss = tf.losses.sparse_softmax_cross_entropy(targets, logits)
        train_op = layers.optimize_loss(
            loss,
            global_step=tf.contrib.framework.get_global_step(),
            learning_rate=params["learning_rate"],
            optimizer="Adam",
        )
    predictions = {"classes": tf.argmax(logits, 1), "probabilities": tf.nn.softmax(logits)}
    return tf.contrib.learn.ModelFnOps(
        mode=mode, predictions=predictions, loss=loss, train_op=train_op
    )


@pytest.mark.slow
def test_custom_contrib_learn_estimator(tmp_path: Path) -> None:
    learn = tf.contrib.learn
    estimator = learn.Estimator(
        model_fn=learn_model_fn, model_dir=str(tmp_path), params={"learning_rate": 0.05}
    )
    assert estimator.fit(x=FEATURES, y=CLASSES, steps=60, batch_size=30) is estimator
    metrics = {
        "accuracy": learn.MetricSpec(
            metric_fn=tf.contrib.metrics.streaming_accuracy, prediction_key="classes"
        )
    }
    result = estimator.evaluate(x=FEATURES, y=CLASSES, metrics=metrics)
    classes = estimator.predict(x=FEATURES, as_iterable=False)["classes"]
    np.testing.assert_allclose(result["accuracy"], np.mean(classes == CLASSES), rtol=1e-6)
    assert result["accuracy"] > 0.7
    with pytest.raises(ValueError, match="x or input_fn"):
        estimator.fit(steps=1)


@pytest.mark.slow
def test_premade_contrib_learn_estimator_in_experiment(tmp_path: Path) -> None:
    learn = tf.contrib.learn

    def input_fn() -> Any:
        return {"": tf.constant(FEATURES, tf.float32)}, tf.constant(CLASSES)

    def experiment_fn(output_dir: str) -> Any:
        classifier = learn.DNNClassifier(
            feature_columns=learn.infer_real_valued_columns_from_input(FEATURES),
            hidden_units=[8],
            n_classes=3,
            model_dir=output_dir,
            optimizer=tf.train.AdamOptimizer(0.05),
        )
        return learn.Experiment(
            estimator=classifier,
            train_input_fn=input_fn,
            eval_input_fn=input_fn,
            train_steps=30,
            eval_steps=1,
            eval_metrics={"hits": learn.MetricSpec(tf.metrics.accuracy, "class_ids")},
            min_eval_frequency=0,
        )

    metrics, _ = learn_runner.run(experiment_fn=experiment_fn, output_dir=str(tmp_path))
    assert metrics["hits"] == metrics["accuracy"]
    again = learn.DNNClassifier(
        [8], learn.infer_real_valued_columns_from_input(FEATURES), str(tmp_path), 3
    )
    classes = again.predict(FEATURES, as_iterable=False)
    np.testing.assert_allclose(metrics["accuracy"], np.mean(classes == CLASSES), rtol=1e-6)
    assert next(iter(again.predict_proba(FEATURES))).shape == (3,)
    with pytest.raises(ValueError, match="gradient_clip_norm here; give an optimizer"):
        learn.LinearRegressor([], gradient_clip_norm=1.0)
    columns = learn.infer_real_valued_columns_from_input(FEATURES)
    regressor = learn.DNNLinearCombinedRegressor(
        str(tmp_path / "numbers"),
        linear_feature_columns=columns,
        fix_global_step_increment_bug=True,
    ).fit(FEATURES, CLASSES.astype(np.float32), steps=1)
    scores = regressor.predict_scores(FEATURES, as_iterable=False)
    assert scores.shape == (len(FEATURES),)
    np.testing.assert_array_equal(list(regressor.predict(FEATURES)), scores)


def test_sequence_loss_is_weighted_mean() -> None:
    logits = RANDOM.normal(size=(2, 3, 4)).astype(np.float32)
    targets, weights = np.array([[0, 1, 2], [1, 1, 0]]), np.float32([[1, 1, 0], [1, 0, 0]])
    shifted = (
        np.log(np.exp(logits).sum(-1)) - np.take_along_axis(logits, targets[..., None], 2)[..., 0]
    )
    losses = shifted * weights
    sequence_loss = tf.contrib.seq2seq.sequence_loss
    with tf.Graph().as_default(), tf.Session() as session:
        values = session.run(
            [
                sequence_loss(logits=logits, targets=targets, weights=weights),
                sequence_loss(logits, targets, weights, average_across_timesteps=False),
                sequence_loss(logits, targets, weights, average_across_batch=False),
                sequence_loss(logits, targets, weights, False, False),
            ]
        )
        with pytest.raises(ValueError, match="Logits must be a"):
            sequence_loss(logits[0], targets, weights)
    expected = [losses.sum() / 3, losses.sum(0) / [2, 1, 1e-12], losses.sum(1) / [2, 1], losses]
    for value, wanted in zip(values, expected, strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-5)
