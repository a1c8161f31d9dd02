"""Premade estimators on census rows, as functions of the module that they use as `tf`.

`CASES` says how each estimator is built; rows, batches and first weights are the same for all, from
fixed formulas. `make_premade.py` runs them in TensorFlow, `tests/premade/test_golden_census.py`
here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

STEPS = 100
BATCH_SIZE = 32
TRAINING_ROWS = 256
ROWS = 320
EVAL_BATCH_SIZE = 32  # 64 test rows: one compilation
PREDICT_ROWS = 4

EDUCATION = ["Bachelors", "HS-grad", "Masters", "Some-college", "Assoc-voc", "11th"]
RACES = ["White", "Black", "Asian-Pac-Islander", "Other"]


def features_of(rows: Mapping[str, Any]) -> dict[str, Array]:
    """What the inputs give: numbers as float32, texts as objects, two texts an example."""
    features: dict[str, Array] = {
        "age": np.array(rows["age"], np.float32) / np.float32(50),
        "hours": np.array(rows["hours"], np.float32) / np.float32(40),
        "education": np.array(rows["education"], object),
        "occupation": np.array(rows["occupation"], object),
        "groups": np.array(
            list(zip(rows["marital"], rows["relationship"], strict=True)), dtype=object
        ),
        "race": np.array(rows["race"], object),
    }
    features["weight"] = (np.arange(ROWS) % 4 * 0.5).astype(np.float32)
    return features


def labels_of(rows: Mapping[str, Any]) -> dict[str, Any]:
    """Labels by kind: `(rows,)`, or for several labels `(rows, n)`."""
    rich = np.array(rows["rich"], np.int64)
    hours = np.array(rows["hours"], np.float32) / np.float32(20)
    married = np.array(["Married" in text for text in rows["marital"]], np.int64)
    return {
        "rich": rich,
        "rich_name": np.array([">50K" if each else "<=50K" for each in rich], object),
        "race": np.array([RACES.index(race) for race in rows["race"]], np.int64),
        "race_name": np.array(rows["race"], object),
        "hours": hours,
        "two": np.stack([hours, np.array(rows["age"], np.float32) / np.float32(30)], 1),
        "multi": np.stack([rich, married, (hours > 2).astype(np.int64)], 1),
        "tasks": {"money": rich, "time": hours, "kinds": np.stack([rich, married], 1)},
    }


def initial_values(shapes: Mapping[str, Any]) -> dict[str, Array]:
    """First values of trainable variables, by name."""
    random = np.random.default_rng(5)
    return {
        name: random.uniform(-0.3, 0.3, shapes[name]).astype(np.float32) + name.endswith("gamma")
        for name in sorted(shapes)
    }


# -- columns


def wide(tf: Any) -> list[Any]:
    """Categorical columns of each kind, one with two values an example, and a number."""
    fc = tf.feature_column
    age = fc.bucketized_column(fc.numeric_column("age"), [0.5, 0.7, 1.0])
    return [
        age,
        fc.categorical_column_with_vocabulary_list("education", EDUCATION, num_oov_buckets=2),
        fc.categorical_column_with_hash_bucket("occupation", 10),
        fc.crossed_column(["education", age], 20),
        fc.categorical_column_with_hash_bucket("groups", 12),
        fc.numeric_column("hours"),
    ]


def deep(tf: Any) -> list[Any]:
    """Dense columns of each kind."""
    fc = tf.feature_column
    return [
        fc.numeric_column("age"),
        fc.numeric_column("hours", normalizer_fn=lambda hours: hours - 1.0),
        fc.indicator_column(fc.categorical_column_with_vocabulary_list("education", EDUCATION)),
        fc.embedding_column(fc.categorical_column_with_hash_bucket("occupation", 10), 2),
        fc.embedding_column(
            fc.categorical_column_with_hash_bucket("groups", 12), 2, combiner="sqrtn"
        ),
    ]


def without(columns: Callable[[Any], list[Any]], key: str) -> Callable[[Any], list[Any]]:
    """The columns but for those of a feature: the one that is learned."""
    return lambda tf: [each for each in columns(tf) if getattr(each, "key", None) != key]


# -- cases


@dataclass(frozen=True)
class Case:
    """An estimator and what it learns.

    Attributes:
        estimator: its name.
        labels: which of `labels_of`.
        arguments: the arguments, from `tf` and its keyword arguments' names.
        api: 'v1' for `tf.compat.v1.estimator`, 'experimental' for `tf.estimator.experimental`.
    """

    estimator: str
    labels: str
    arguments: Callable[[Any], dict[str, Any]]
    api: str = "v2"

    def build(self, tf: Any, model_dir: str, config: Any = None) -> Any:
        """The estimator."""
        modules = {
            "v2": tf.estimator,
            "v1": tf.compat.v1.estimator,
            "experimental": tf.estimator.experimental,
        }
        return getattr(modules[self.api], self.estimator)(
            model_dir=model_dir, config=config, **self.arguments(tf)
        )


def _dnn(**more: Any) -> Callable[[Any], dict[str, Any]]:
    return _with({"feature_columns": deep, "hidden_units": lambda tf: [6, 4]}, more)


def _linear(**more: Any) -> Callable[[Any], dict[str, Any]]:
    return _with({"feature_columns": wide}, more)


def _both(**more: Any) -> Callable[[Any], dict[str, Any]]:
    columns = {"linear_feature_columns": wide, "dnn_feature_columns": deep}
    return _with({**columns, "dnn_hidden_units": lambda tf: [6, 4]}, more)


def _with(usual: Mapping[str, Any], more: Mapping[str, Any]) -> Callable[[Any], dict[str, Any]]:
    """All arguments; those that are functions called `of_tf` or given as usual are of `tf`."""
    merged = {**usual, **more}
    return lambda tf: {
        key: value(tf) if callable(value) and not isinstance(value, type) else value
        for key, value in merged.items()
    }


def _keras(name: str, *args: Any, **kwargs: Any) -> Callable[[Any], Any]:
    """An instance of a Keras optimizer."""
    return lambda tf: getattr(tf.keras.optimizers.legacy, name)(*args, **kwargs)


def _train(name: str, *args: Any, **kwargs: Any) -> Callable[[Any], Any]:
    """A function that makes an optimizer of TensorFlow 1."""
    return lambda tf: lambda: getattr(tf.compat.v1.train, name)(*args, **kwargs)


def _heads(tf: Any) -> Any:
    heads = [
        tf.estimator.BinaryClassHead(name="money"),
        tf.estimator.RegressionHead(name="time"),
        tf.estimator.MultiLabelHead(2, name="kinds"),
    ]
    return tf.estimator.MultiHead(heads, [1.0, 0.5, 2.0])


_HOURS = {"feature_columns": without(deep, "hours")}
_WIDE_HOURS = {"feature_columns": without(wide, "hours")}
_BOTH_HOURS = {
    "linear_feature_columns": without(wide, "hours"),
    "dnn_feature_columns": without(deep, "hours"),
}
_WEIGHTED = {"weight_column": "weight"}
_NAMES = {"n_classes": 4, "label_vocabulary": RACES}

CASES: dict[str, Case] = {
    # Every family, by every optimizer: by name, as an instance, as a function.
    "dnn_classifier_adagrad": Case(
        "DNNClassifier", "rich", _dnn(optimizer=_keras("Adagrad", 0.05))
    ),
    "dnn_classifier_adam": Case("DNNClassifier", "rich", _dnn(optimizer="Adam")),
    "dnn_classifier_keras_adam": Case(
        "DNNClassifier", "rich", _dnn(optimizer=_keras("Adam", 0.02, beta_2=0.99, epsilon=1e-6))
    ),
    "dnn_classifier_keras_sgd": Case(
        "DNNClassifier", "rich", _dnn(optimizer=_keras("SGD", 0.05, momentum=0.9, nesterov=True))
    ),
    "dnn_classifier_names_weighted": Case(
        "DNNClassifier", "race_name", _dnn(optimizer="Ftrl", **_NAMES, **_WEIGHTED)
    ),
    "dnn_classifier_rmsprop": Case("DNNClassifier", "rich", _dnn(optimizer="RMSProp")),
    "dnn_regressor_sgd": Case("DNNRegressor", "hours", _dnn(optimizer="SGD", **_HOURS)),
    "dnn_regressor_two": Case(
        "DNNRegressor", "two", _dnn(optimizer=_keras("RMSprop", 0.01), label_dimension=2, **_HOURS)
    ),
    "linear_classifier": Case("LinearClassifier", "rich", _linear()),
    "linear_classifier_mean_none": Case(
        "LinearClassifier", "rich", _linear(optimizer=None, sparse_combiner="mean", **_WEIGHTED)
    ),
    "linear_classifier_adam_sqrtn": Case(
        "LinearClassifier",
        "race",
        _linear(optimizer="Adam", sparse_combiner="sqrtn", n_classes=4),
    ),
    "linear_regressor": Case("LinearRegressor", "hours", _linear(**_WIDE_HOURS)),
    "linear_regressor_rmsprop": Case(
        "LinearRegressor", "two", _linear(optimizer="RMSProp", label_dimension=2, **_WIDE_HOURS)
    ),
    "combined_classifier": Case("DNNLinearCombinedClassifier", "rich", _both()),
    "combined_classifier_sgd_adam": Case(
        "DNNLinearCombinedClassifier",
        "race_name",
        _both(
            dnn_optimizer="Adam",
            linear_optimizer="SGD",
            linear_sparse_combiner="mean",
            loss_reduction="sum",
            **_NAMES,
        ),
    ),
    "combined_classifier_keras": Case(
        "DNNLinearCombinedClassifier",
        "rich_name",
        _both(
            dnn_optimizer=_keras("Adam", 0.01),
            linear_optimizer=_keras("Ftrl", 0.1, l1_regularization_strength=0.01),
            label_vocabulary=["<=50K", ">50K"],
            **_WEIGHTED,
        ),
    ),
    "combined_classifier_batch_norm": Case(
        "DNNLinearCombinedClassifier", "rich", _both(batch_norm=True)
    ),
    "combined_classifier_deep_only": Case(
        "DNNLinearCombinedClassifier", "rich", _both(linear_feature_columns=None)
    ),
    "combined_regressor": Case("DNNLinearCombinedRegressor", "hours", _both(**_BOTH_HOURS)),
    "baseline_classifier_adam": Case(
        "BaselineClassifier", "race_name", lambda tf: {"optimizer": "Adam", **_NAMES}
    ),
    "baseline_regressor_weighted": Case(
        "BaselineRegressor", "two", lambda tf: {"label_dimension": 2, **_WEIGHTED}
    ),
    # Heads
    "dnn_estimator_multi_label": Case(
        "DNNEstimator",
        "multi",
        _dnn(
            head=lambda tf: tf.estimator.MultiLabelHead(
                3,
                weight_column="weight",
                thresholds=[0.3, 0.5],
                classes_for_class_based_metrics=[0, 2],
            ),
            optimizer="Adam",
        ),
    ),
    "dnn_estimator_multi_head": Case(
        "DNNEstimator", "tasks", _dnn(head=_heads, optimizer=_keras("Adam", 0.01))
    ),
    "linear_estimator_poisson": Case(
        "LinearEstimator",
        "hours",
        _linear(head=lambda tf: tf.estimator.PoissonRegressionHead(), **_WIDE_HOURS),
    ),
    "baseline_estimator_logistic": Case(
        "BaselineEstimator",
        "rich",
        lambda tf: {"head": tf.estimator.LogisticRegressionHead(), "optimizer": "SGD"},
    ),
    "combined_estimator_thresholds": Case(
        "DNNLinearCombinedEstimator",
        "rich",
        _both(head=lambda tf: tf.estimator.BinaryClassHead(thresholds=[0.25, 0.75])),
    ),
    # TensorFlow 1's
    "v1_dnn_classifier": Case("DNNClassifier", "rich", _dnn(**_WEIGHTED), "v1"),
    "v1_dnn_classifier_momentum": Case(
        "DNNClassifier", "rich", _dnn(optimizer=_train("MomentumOptimizer", 0.001, 0.9)), "v1"
    ),
    "v1_dnn_regressor_adam": Case(
        "DNNRegressor", "hours", _dnn(optimizer=_train("AdamOptimizer", 0.01), **_HOURS), "v1"
    ),
    "v1_linear_classifier": Case("LinearClassifier", "rich", _linear(optimizer="Adagrad"), "v1"),
    "v1_linear_regressor": Case("LinearRegressor", "hours", _linear(**_WIDE_HOURS), "v1"),
    "v1_combined_classifier": Case(
        "DNNLinearCombinedClassifier", "race_name", _both(**_NAMES, **_WEIGHTED), "v1"
    ),
    "v1_combined_regressor": Case(
        "DNNLinearCombinedRegressor", "hours", _both(**_BOTH_HOURS), "v1"
    ),
    "v1_baseline_classifier": Case(
        "BaselineClassifier", "rich", lambda tf: {"optimizer": "RMSProp"}, "v1"
    ),
    "v1_baseline_regressor": Case("BaselineRegressor", "hours", lambda tf: {}, "v1"),
}


# -- recurrent networks

SEQUENCES = np.array([[1, 2, 3, 0], [2, 4, -1, -1], [4, -1, -1, -1], [0, 3, 1, 2]] * 16)
SEQUENCE_FEATURES: dict[str, Array] = {
    "token": SEQUENCES,
    "context": (np.arange(64) % 7 / 3 - 1).astype(np.float32),
    "step_weight": (1 + np.arange(256) % 3).reshape(64, 4).astype(np.float32),
}
SEQUENCE_LABELS = {
    "last": (np.arange(64) % 4 + np.arange(64) // 9) % 2,
    "steps": np.maximum(SEQUENCES, 0) % 3,
}


def _token(tf: Any) -> list[Any]:
    column = tf.feature_column.sequence_categorical_column_with_identity("token", 5)
    return [tf.feature_column.embedding_column(column, 2)]


def _rnn(labels: str, **more: Any) -> Case:
    usual = {"sequence_feature_columns": _token}
    return Case("RNNClassifier", labels, _with(usual, more), "experimental")


CASES |= {
    "rnn_simple": _rnn("last", units=[3], optimizer=_keras("SGD", 0.5)),
    "rnn_lstm_clipped": _rnn(
        "last",
        units=3,
        cell_type="lstm",
        context_feature_columns=lambda tf: [tf.feature_column.numeric_column("context")],
    ),
    "rnn_gru_stacked_steps": _rnn(
        "steps",
        units=[3, 2],
        cell_type="gru",
        return_sequences=True,
        n_classes=3,
        weight_column="step_weight",
        optimizer="Adam",
    ),
}


@dataclass(frozen=True)
class Data:
    """What a case trains and is tested with: arrays, the rows of batches, the rows of the test."""

    features: dict[str, Array]
    labels: Any
    batches: Array
    test: Array


def data_of(case: Case, rows: Mapping[str, Any]) -> Data:
    """The data of a case; `rows` of the census."""
    if case.api == "experimental":
        index = np.random.default_rng(8).integers(0, 48, (STEPS, BATCH_SIZE // 2))
        return Data(SEQUENCE_FEATURES, SEQUENCE_LABELS[case.labels], index, np.arange(48, 64))
    index = np.random.default_rng(8).integers(0, TRAINING_ROWS, (STEPS, BATCH_SIZE))
    labels = labels_of(rows)[case.labels]
    return Data(features_of(rows), labels, index, np.arange(TRAINING_ROWS, ROWS))
