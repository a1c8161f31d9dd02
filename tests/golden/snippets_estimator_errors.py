"""Mistakes with estimators, written once: each function ought to fail.

`make_estimator_errors.py` records how TensorFlow fails, tests compare how this package does. A
function takes the module that it uses as `tf` (`tensorflow`, or what stands in for it) and an
empty folder for `model_dir`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Mistake = Callable[[Any, str], object]
ERRORS: dict[str, Mistake] = {}


def mistake(function: Mistake) -> Mistake:
    """Registers a mistake under its function's name."""
    ERRORS[function.__name__] = function
    return function


def _input(tf: Any, labels: Any = None, feature: str = "x", rows: int = 4) -> Callable[[], Any]:
    features = {feature: np.arange(rows, dtype=np.float32)}
    if labels is None:
        labels = np.arange(rows, dtype=np.int64) % 3
    return lambda: tf.data.Dataset.from_tensor_slices((features, labels)).batch(2)


def _classifier(tf: Any, model_dir: str, **arguments: Any) -> Any:
    columns = [tf.feature_column.numeric_column("x")]
    arguments = {"n_classes": 3, "hidden_units": [4], **arguments}
    return tf.estimator.DNNClassifier(feature_columns=columns, model_dir=model_dir, **arguments)


def _custom(tf: Any, model_dir: str, **spec: Any) -> Any:
    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        made = {name: value() for name, value in spec.items()}
        return tf.estimator.EstimatorSpec(mode=mode, **made)

    return tf.estimator.Estimator(model_fn, model_dir)


def _step(tf: Any) -> Any:
    return tf.compat.v1.assign_add(tf.compat.v1.train.get_global_step(), 1)


@mistake
def evaluate_before_train(tf: Any, model_dir: str) -> object:
    return _classifier(tf, model_dir).evaluate(_input(tf), checkpoint_path=None)


@mistake
def evaluate_of_a_missing_checkpoint(tf: Any, model_dir: str) -> object:
    return _classifier(tf, model_dir).evaluate(_input(tf), checkpoint_path="nowhere/model.ckpt-1")


@mistake
def predict_before_train(tf: Any, model_dir: str) -> object:
    return next(_classifier(tf, model_dir).predict(_input(tf)))


@mistake
def variable_names_before_train(tf: Any, model_dir: str) -> object:
    return _classifier(tf, model_dir).get_variable_names()


@mistake
def export_before_train(tf: Any, model_dir: str) -> object:
    return _classifier(tf, model_dir).export_saved_model(model_dir + "/export", _input(tf))


@mistake
def steps_and_max_steps(tf: Any, model_dir: str) -> object:
    return _classifier(tf, model_dir).train(_input(tf), steps=1, max_steps=2)


@mistake
def steps_of_zero(tf: Any, model_dir: str) -> object:
    return _classifier(tf, model_dir).train(_input(tf), steps=0)


@mistake
def max_steps_of_zero(tf: Any, model_dir: str) -> object:
    return _classifier(tf, model_dir).train(_input(tf), max_steps=0)


@mistake
def evaluate_steps_of_zero(tf: Any, model_dir: str) -> object:
    return _classifier(tf, model_dir).evaluate(_input(tf), steps=0)


@mistake
def labels_too_large(tf: Any, model_dir: str) -> object:
    labels = np.array([0, 1, 2, 3])
    return _classifier(tf, model_dir).train(_input(tf, labels))


@mistake
def labels_negative(tf: Any, model_dir: str) -> object:
    labels = np.array([0, 1, 2, -1])
    return _classifier(tf, model_dir).train(_input(tf, labels))


@mistake
def labels_too_large_binary(tf: Any, model_dir: str) -> object:
    labels = np.array([0, 1, 2, 1])
    return _classifier(tf, model_dir, n_classes=2).train(_input(tf, labels))


@mistake
def labels_of_float(tf: Any, model_dir: str) -> object:
    return _classifier(tf, model_dir).train(_input(tf, np.zeros(4, np.float32)))


@mistake
def labels_of_strings_without_vocabulary(tf: Any, model_dir: str) -> object:
    return _classifier(tf, model_dir).train(_input(tf, np.array(["a", "b", "c", "a"])))


@mistake
def labels_not_in_vocabulary(tf: Any, model_dir: str) -> object:
    estimator = _classifier(tf, model_dir, label_vocabulary=["a", "b", "c"])
    return estimator.train(_input(tf, np.array(["a", "b", "c", "d"])))


@mistake
def labels_of_ids_with_vocabulary(tf: Any, model_dir: str) -> object:
    estimator = _classifier(tf, model_dir, label_vocabulary=["a", "b", "c"])
    return estimator.train(_input(tf))


@mistake
def labels_of_wrong_shape(tf: Any, model_dir: str) -> object:
    return _classifier(tf, model_dir).train(_input(tf, np.zeros([4, 3], np.int64)))


@mistake
def labels_that_are_missing(tf: Any, model_dir: str) -> object:
    def input_fn() -> Any:
        return tf.data.Dataset.from_tensor_slices({"x": [1.0, 2.0]}).batch(2)

    return _classifier(tf, model_dir).train(input_fn)


@mistake
def regression_labels_of_wrong_shape(tf: Any, model_dir: str) -> object:
    columns = [tf.feature_column.numeric_column("x")]
    estimator = tf.estimator.LinearRegressor(columns, label_dimension=2, model_dir=model_dir)
    return estimator.train(_input(tf, np.zeros([4, 3], np.float32)))


@mistake
def vocabulary_of_wrong_size(tf: Any, model_dir: str) -> object:
    return _classifier(tf, model_dir, label_vocabulary=["a", "b"])


@mistake
def one_class(tf: Any, model_dir: str) -> object:
    return _classifier(tf, model_dir, n_classes=1)


@mistake
def no_reduction_of_the_loss(tf: Any, model_dir: str) -> object:
    return _classifier(tf, model_dir, loss_reduction="none")


@mistake
def optimizer_that_is_unknown(tf: Any, model_dir: str) -> object:
    return _classifier(tf, model_dir, optimizer="Sgd").train(_input(tf))


@mistake
def optimizer_that_is_a_number(tf: Any, model_dir: str) -> object:
    return _classifier(tf, model_dir, optimizer=3).train(_input(tf))


@mistake
def feature_that_is_missing(tf: Any, model_dir: str) -> object:
    return _classifier(tf, model_dir).train(_input(tf, feature="y"))


@mistake
def feature_that_is_missing_linear(tf: Any, model_dir: str) -> object:
    columns = [tf.feature_column.numeric_column("x")]
    estimator = tf.estimator.LinearRegressor(columns, model_dir=model_dir)
    return estimator.train(_input(tf, feature="y"))


@mistake
def weight_column_that_is_missing(tf: Any, model_dir: str) -> object:
    return _classifier(tf, model_dir, weight_column="w").train(_input(tf))


@mistake
def feature_of_wrong_shape(tf: Any, model_dir: str) -> object:
    def input_fn() -> Any:
        features = {"x": np.zeros([4, 3], np.float32)}
        return tf.data.Dataset.from_tensor_slices((features, [0, 1, 2, 0])).batch(2)

    return _classifier(tf, model_dir).train(input_fn)


@mistake
def feature_of_strings(tf: Any, model_dir: str) -> object:
    def input_fn() -> Any:
        features = {"x": ["a", "b", "c", "d"]}
        return tf.data.Dataset.from_tensor_slices((features, [0, 1, 2, 0])).batch(2)

    return _classifier(tf, model_dir).train(input_fn)


@mistake
def features_that_are_no_dict(tf: Any, model_dir: str) -> object:
    def input_fn() -> Any:
        return tf.data.Dataset.from_tensor_slices(([1.0, 2.0], [0, 1])).batch(2)

    return _classifier(tf, model_dir).train(input_fn)


@mistake
def input_fn_that_is_a_dataset(tf: Any, model_dir: str) -> object:
    return _classifier(tf, model_dir).train(_input(tf)())


@mistake
def input_fn_that_returns_none(tf: Any, model_dir: str) -> object:
    return _classifier(tf, model_dir).train(lambda: None)


@mistake
def input_fn_that_returns_three(tf: Any, model_dir: str) -> object:
    def input_fn() -> Any:
        return tf.data.Dataset.from_tensor_slices(({"x": [1.0]}, [0], [0])).batch(1)

    return _classifier(tf, model_dir).train(input_fn)


@mistake
def input_fn_that_returns_a_list_of_three(tf: Any, model_dir: str) -> object:
    return _classifier(tf, model_dir).train(lambda: ({"x": tf.zeros([2])}, tf.zeros([2]), 3))


@mistake
def input_fn_with_arguments(tf: Any, model_dir: str) -> object:
    return _classifier(tf, model_dir).train(lambda features: features)


@mistake
def input_that_is_not_batched(tf: Any, model_dir: str) -> object:
    def input_fn() -> Any:
        return tf.data.Dataset.from_tensor_slices(({"x": [1.0, 2.0]}, [0, 1]))

    return _classifier(tf, model_dir).train(input_fn)


@mistake
def hooks_that_are_no_hooks(tf: Any, model_dir: str) -> object:
    return _classifier(tf, model_dir).train(_input(tf), hooks=[3])


@mistake
def saving_listeners_that_are_none(tf: Any, model_dir: str) -> object:
    return _classifier(tf, model_dir).train(_input(tf), saving_listeners=[3])


@mistake
def hidden_units_that_are_missing(tf: Any, model_dir: str) -> object:
    columns = [tf.feature_column.numeric_column("x")]
    return tf.estimator.DNNClassifier(feature_columns=columns, model_dir=model_dir)


@mistake
def argument_that_is_unknown(tf: Any, model_dir: str) -> object:
    return _classifier(tf, model_dir, learning_rate=0.1)


@mistake
def combined_without_columns(tf: Any, model_dir: str) -> object:
    return tf.estimator.DNNLinearCombinedClassifier(model_dir=model_dir)


@mistake
def combined_without_hidden_units(tf: Any, model_dir: str) -> object:
    columns = [tf.feature_column.numeric_column("x")]
    estimator = tf.estimator.DNNLinearCombinedClassifier(
        dnn_feature_columns=columns, model_dir=model_dir
    )
    return estimator.train(_input(tf))


@mistake
def model_dir_in_two_places(tf: Any, model_dir: str) -> object:
    config = tf.estimator.RunConfig(model_dir="elsewhere")
    return _classifier(tf, model_dir, config=config)


@mistake
def config_that_is_a_dict(tf: Any, model_dir: str) -> object:
    return _classifier(tf, model_dir, config={"model_dir": model_dir})


@mistake
def config_that_saves_by_steps_and_seconds(tf: Any, model_dir: str) -> object:
    return tf.estimator.RunConfig(save_checkpoints_steps=1, save_checkpoints_secs=1)


@mistake
def config_with_an_unknown_property(tf: Any, model_dir: str) -> object:
    return tf.estimator.RunConfig().replace(batch_size=3)


@mistake
def model_fn_that_is_none(tf: Any, model_dir: str) -> object:
    return tf.estimator.Estimator(None, model_dir)


@mistake
def model_fn_without_features(tf: Any, model_dir: str) -> object:
    return tf.estimator.Estimator(lambda labels: None, model_dir)


@mistake
def model_fn_with_an_unknown_argument(tf: Any, model_dir: str) -> object:
    return tf.estimator.Estimator(lambda features, labels, mode, extra: None, model_dir)


@mistake
def model_fn_without_params(tf: Any, model_dir: str) -> object:
    return tf.estimator.Estimator(
        lambda features, labels, mode: None, model_dir, params={"learning_rate": 0.1}
    )


@mistake
def model_fn_without_labels(tf: Any, model_dir: str) -> object:
    def model_fn(features: Any, mode: str) -> Any:
        return tf.estimator.EstimatorSpec(mode, loss=tf.constant(1.0), train_op=_step(tf))

    return tf.estimator.Estimator(model_fn, model_dir).train(_input(tf))


@mistake
def model_fn_that_returns_none(tf: Any, model_dir: str) -> object:
    estimator = tf.estimator.Estimator(lambda features, labels, mode: None, model_dir)
    return estimator.train(_input(tf))


@mistake
def train_without_loss(tf: Any, model_dir: str) -> object:
    return _custom(tf, model_dir, train_op=lambda: _step(tf)).train(_input(tf))


@mistake
def train_without_train_op(tf: Any, model_dir: str) -> object:
    return _custom(tf, model_dir, loss=lambda: tf.constant(1.0)).train(_input(tf))


@mistake
def evaluate_without_loss(tf: Any, model_dir: str) -> object:
    return _custom(tf, model_dir, predictions=lambda: tf.constant([1.0])).evaluate(_input(tf))


@mistake
def predict_without_predictions(tf: Any, model_dir: str) -> object:
    return next(_custom(tf, model_dir, loss=lambda: tf.constant(1.0)).predict(_input(tf)))


@mistake
def loss_that_is_a_vector(tf: Any, model_dir: str) -> object:
    estimator = _custom(
        tf, model_dir, loss=lambda: tf.constant([1.0, 2.0]), train_op=lambda: _step(tf)
    )
    return estimator.train(_input(tf))


@mistake
def loss_that_is_a_number(tf: Any, model_dir: str) -> object:
    estimator = _custom(tf, model_dir, loss=lambda: 1.0, train_op=lambda: _step(tf))
    return estimator.train(_input(tf))


@mistake
def loss_that_is_nan(tf: Any, model_dir: str) -> object:
    estimator = _custom(
        tf, model_dir, loss=lambda: tf.math.log(tf.constant(-1.0)), train_op=lambda: _step(tf)
    )
    return estimator.train(_input(tf))


@mistake
def train_op_that_is_a_number(tf: Any, model_dir: str) -> object:
    estimator = _custom(tf, model_dir, loss=lambda: tf.constant(1.0), train_op=lambda: 3)
    return estimator.train(_input(tf))


@mistake
def eval_metric_that_is_no_pair(tf: Any, model_dir: str) -> object:
    estimator = _custom(
        tf,
        model_dir,
        loss=lambda: tf.constant(1.0),
        eval_metric_ops=lambda: {"metric": tf.constant(1.0)},
    )
    return estimator.evaluate(_input(tf))


@mistake
def eval_metrics_that_are_no_dict(tf: Any, model_dir: str) -> object:
    estimator = _custom(
        tf, model_dir, loss=lambda: tf.constant(1.0), eval_metric_ops=lambda: [tf.constant(1.0)]
    )
    return estimator.evaluate(_input(tf))


@mistake
def mode_that_is_unknown(tf: Any, model_dir: str) -> object:
    return tf.estimator.EstimatorSpec(mode="training", predictions={"a": tf.zeros([2])})


@mistake
def predictions_of_different_lengths(tf: Any, model_dir: str) -> object:
    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        tf.compat.v1.get_variable("v", [1])
        predictions = {"a": tf.zeros([2]), "b": tf.zeros([3])}
        return tf.estimator.EstimatorSpec(
            mode, predictions, tf.constant(1.0), _step(tf) if mode == "train" else None
        )

    estimator = tf.estimator.Estimator(model_fn, model_dir)
    # Nothing consumes the input, so that it never ends.
    estimator.train(_input(tf), steps=1)
    return next(estimator.predict(_input(tf)))


@mistake
def predict_keys_that_are_unknown(tf: Any, model_dir: str) -> object:
    estimator = _classifier(tf, model_dir)
    estimator.train(_input(tf))
    return next(estimator.predict(_input(tf), predict_keys=["nothing"]))


@mistake
def checkpoint_of_another_shape(tf: Any, model_dir: str) -> object:
    _classifier(tf, model_dir).train(_input(tf))
    return _classifier(tf, model_dir, hidden_units=[5]).train(_input(tf))


@mistake
def checkpoint_without_a_variable(tf: Any, model_dir: str) -> object:
    _classifier(tf, model_dir).train(_input(tf))
    return _classifier(tf, model_dir, hidden_units=[4, 4]).evaluate(_input(tf))


@mistake
def variable_value_that_is_not_there(tf: Any, model_dir: str) -> object:
    estimator = _classifier(tf, model_dir)
    estimator.train(_input(tf))
    return estimator.get_variable_value("nothing")


@mistake
def train_spec_without_steps(tf: Any, model_dir: str) -> object:
    return tf.estimator.TrainSpec(_input(tf), max_steps=0)


@mistake
def train_spec_with_a_wrong_hook(tf: Any, model_dir: str) -> object:
    return tf.estimator.TrainSpec(_input(tf), hooks=[3])


@mistake
def eval_spec_with_negative_delay(tf: Any, model_dir: str) -> object:
    return tf.estimator.EvalSpec(_input(tf), start_delay_secs=-1)


@mistake
def eval_spec_with_an_exporter_that_is_none(tf: Any, model_dir: str) -> object:
    return tf.estimator.EvalSpec(_input(tf), exporters=3)


@mistake
def train_and_evaluate_of_something_else(tf: Any, model_dir: str) -> object:
    train = tf.estimator.TrainSpec(_input(tf), max_steps=1)
    return tf.estimator.train_and_evaluate(3, train, tf.estimator.EvalSpec(_input(tf)))


@mistake
def train_and_evaluate_without_data(tf: Any, model_dir: str) -> object:
    estimator = _classifier(tf, model_dir)
    train = tf.estimator.TrainSpec(lambda: _input(tf)().take(0), max_steps=1)
    return tf.estimator.train_and_evaluate(estimator, train, tf.estimator.EvalSpec(_input(tf)))


@mistake
def subclass_that_overrides(tf: Any, model_dir: str) -> object:
    class Mine(tf.estimator.Estimator):  # type: ignore[misc, name-defined]
        def train(self, input_fn: Any) -> Any:
            return self

    return Mine(lambda features, labels, mode: None, model_dir)


@mistake
def numeric_column_of_strings(tf: Any, model_dir: str) -> object:
    return tf.feature_column.numeric_column("x", dtype=tf.string)


@mistake
def numeric_column_of_shape_zero(tf: Any, model_dir: str) -> object:
    return tf.feature_column.numeric_column("x", shape=(0,))


@mistake
def numeric_column_with_a_wrong_normalizer(tf: Any, model_dir: str) -> object:
    return tf.feature_column.numeric_column("x", normalizer_fn=3)


@mistake
def numeric_column_without_a_string_key(tf: Any, model_dir: str) -> object:
    return tf.feature_column.numeric_column(3)


@mistake
def column_twice(tf: Any, model_dir: str) -> object:
    columns = [tf.feature_column.numeric_column("x"), tf.feature_column.numeric_column("x")]
    return tf.estimator.LinearRegressor(columns, model_dir=model_dir).train(_input(tf))


@mistake
def categorical_column_in_a_dnn(tf: Any, model_dir: str) -> object:
    columns = [tf.feature_column.categorical_column_with_identity("x", 3)]
    return tf.estimator.DNNRegressor([4], columns, model_dir=model_dir).train(_input(tf))


@mistake
def empty_columns(tf: Any, model_dir: str) -> object:
    return tf.estimator.DNNRegressor([4], [], model_dir=model_dir).train(_input(tf))
