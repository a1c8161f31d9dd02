"""Golden values of the premade estimators of TensorFlow 2.15.1, on iris.

Run, with TensorFlow 2.15.1 and the folder that holds `iris_training.csv` and `iris_test.csv`:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_estimators.py path/to/iris

Writes `estimators.npz` and `estimators.json` beside this file (about 80 seconds on one CPU).
Each case trains 100 steps from given weights on given batches, evaluates and predicts;
`README.md` lists the keys. The loss of a step is fetched in the run that updates, and is the one
before the update: `check_losses` computes the first and the last in NumPy from the weights
before these steps, and stops where they differ.
"""

from __future__ import annotations

import argparse
import csv
import logging
import re
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import write_json, write_npz
from numpy.typing import NDArray

Array = NDArray[Any]

STEPS = 100
BATCH_SIZE = 16
EVAL_BATCH_SIZE = 7  # 30 test rows: four full batches and a short one of 2
PREDICT_ROWS = 5
COLUMNS = ("sepal_length", "sepal_width", "petal_length", "petal_width")
SPECIES = ("setosa", "versicolor", "virginica")


def numeric(key: str, **arguments: Any) -> dict[str, Any]:
    """Describes a numeric column; `normalizer` is [subtract, divide]."""
    return {"key": key, **arguments}


ALL_COLUMNS = [numeric(key) for key in COLUMNS]
PAIRS = [
    numeric("sepal", shape=[2], normalizer=[5.0, 2.0]),
    numeric("petal", shape=[2], normalizer=[3.0, 1.5]),
]

# A case: the estimator, its columns, the labels' kind (see `labels_of`) and its other arguments.
CASES: dict[str, dict[str, Any]] = {
    "dnn_classifier_multiclass": {
        "estimator": "DNNClassifier",
        "labels": "species",
        "arguments": {"hidden_units": [10, 10], "n_classes": 3},
    },
    "dnn_classifier_binary": {
        "estimator": "DNNClassifier",
        "labels": "is_versicolor",
        "arguments": {"hidden_units": [10, 10]},
    },
    **{
        f"dnn_classifier_{name.lower()}": {
            "estimator": "DNNClassifier",
            "labels": "species",
            "arguments": {"hidden_units": [10, 10], "n_classes": 3, "optimizer": name},
        }
        for name in ("Adam", "RMSProp", "SGD", "Ftrl")
    },
    "dnn_classifier_weighted": {
        "estimator": "DNNClassifier",
        "labels": "species",
        "arguments": {"hidden_units": [10, 10], "n_classes": 3, "weight_column": "weight"},
    },
    "dnn_classifier_binary_weighted": {
        "estimator": "DNNClassifier",
        "labels": "is_versicolor",
        "arguments": {"hidden_units": [10, 10], "weight_column": "weight"},
    },
    "dnn_classifier_batch_norm": {
        "estimator": "DNNClassifier",
        "labels": "species",
        "arguments": {"hidden_units": [10, 10], "n_classes": 3, "batch_norm": True},
    },
    "dnn_classifier_sum": {
        "estimator": "DNNClassifier",
        "labels": "species",
        "arguments": {"hidden_units": [10, 10], "n_classes": 3, "loss_reduction": "sum"},
    },
    "dnn_classifier_shaped_columns": {
        "estimator": "DNNClassifier",
        "labels": "species",
        "columns": PAIRS,
        "arguments": {"hidden_units": [10, 10], "n_classes": 3},
    },
    "dnn_classifier_vocabulary": {
        "estimator": "DNNClassifier",
        "labels": "species_name",
        "arguments": {"hidden_units": [10, 10], "n_classes": 3, "label_vocabulary": list(SPECIES)},
    },
    "dnn_classifier_binary_vocabulary": {
        "estimator": "DNNClassifier",
        "labels": "is_versicolor_name",
        "arguments": {"hidden_units": [10, 10], "label_vocabulary": ["other", "versicolor"]},
    },
    "dnn_regressor": {
        "estimator": "DNNRegressor",
        "labels": "petal_width",
        "arguments": {"hidden_units": [10, 10]},
    },
    "dnn_regressor_two": {
        "estimator": "DNNRegressor",
        "labels": "petal",
        "arguments": {"hidden_units": [10, 10], "label_dimension": 2},
    },
    "dnn_regressor_two_weighted": {
        "estimator": "DNNRegressor",
        "labels": "petal",
        "arguments": {"hidden_units": [10, 10], "label_dimension": 2, "weight_column": "weight"},
    },
    "linear_classifier_multiclass": {
        "estimator": "LinearClassifier",
        "labels": "species",
        "arguments": {"n_classes": 3},
    },
    "linear_classifier_binary": {
        "estimator": "LinearClassifier",
        "labels": "is_versicolor",
        "arguments": {},
    },
    "linear_classifier_binary_weighted_sum": {
        "estimator": "LinearClassifier",
        "labels": "is_versicolor",
        "arguments": {"weight_column": "weight", "loss_reduction": "sum", "optimizer": "Adagrad"},
    },
    "linear_classifier_shaped_columns": {
        "estimator": "LinearClassifier",
        "labels": "species",
        "columns": PAIRS,
        "arguments": {"n_classes": 3},
    },
    "linear_regressor": {
        "estimator": "LinearRegressor",
        "labels": "petal_width",
        "arguments": {},
    },
    "linear_regressor_two": {
        "estimator": "LinearRegressor",
        "labels": "petal",
        "arguments": {"label_dimension": 2},
    },
    "baseline_classifier_multiclass": {
        "estimator": "BaselineClassifier",
        "labels": "species",
        "arguments": {"n_classes": 3},
    },
    "baseline_classifier_binary": {
        "estimator": "BaselineClassifier",
        "labels": "is_versicolor",
        "arguments": {},
    },
    "baseline_classifier_weighted": {
        "estimator": "BaselineClassifier",
        "labels": "species",
        "arguments": {"n_classes": 3, "weight_column": "weight"},
    },
    "baseline_regressor": {
        "estimator": "BaselineRegressor",
        "labels": "petal_width",
        "arguments": {},
    },
    "baseline_regressor_two": {
        "estimator": "BaselineRegressor",
        "labels": "petal",
        "arguments": {"label_dimension": 2},
    },
    "dnn_linear_combined_classifier": {
        "estimator": "DNNLinearCombinedClassifier",
        "labels": "species",
        "arguments": {"dnn_hidden_units": [10, 10], "n_classes": 3},
    },
    "dnn_linear_combined_regressor": {
        "estimator": "DNNLinearCombinedRegressor",
        "labels": "petal_width",
        "arguments": {"dnn_hidden_units": [10, 10]},
    },
}
# The same under tf.compat.v1.estimator: its losses are sums, its optimizers tf.compat.v1.train's.
for _case in (
    "dnn_classifier_multiclass", "dnn_classifier_binary_weighted", "dnn_classifier_batch_norm",
    "dnn_regressor_two_weighted", "linear_classifier_multiclass", "linear_classifier_binary",
    "linear_regressor", "baseline_classifier_multiclass", "baseline_regressor",
    "dnn_linear_combined_classifier",
):  # fmt: skip
    CASES[f"v1_{_case}"] = {**CASES[_case], "api": "v1"}


def read_iris(path: Path) -> tuple[Array, Array]:
    """Returns measurements (rows, 4) float32 and species (rows,) int64."""
    with path.open(newline="") as file:
        rows = list(csv.reader(file))[1:]
    return (
        np.array([row[:4] for row in rows], np.float32),
        np.array([row[4] for row in rows], np.int64),
    )


def labels_of(kind: str, measurements: Array, species: Array) -> Array:
    """Returns the labels that a case learns: ids, names or measurements."""
    labels: dict[str, Array] = {
        "species": species,
        "species_name": np.array(SPECIES, dtype=object)[species],
        "is_versicolor": (species == 1).astype(np.int64),
        "is_versicolor_name": np.where(species == 1, "versicolor", "other").astype(object),
        "petal_width": measurements[:, 3],
        "petal": measurements[:, 2:4],
    }
    return labels[kind]


def feature_columns_of(case: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the case's columns: what it names, or all measurements that are not its target."""
    if "columns" in case:
        return list(case["columns"])
    targets = {"petal_width": ("petal_width",), "petal": ("petal_length", "petal_width")}
    return [
        column for column in ALL_COLUMNS if column["key"] not in targets.get(case["labels"], ())
    ]


def features_of(case: Mapping[str, Any], measurements: Array) -> dict[str, Array]:
    """Returns what the case's input gives: the columns' features and, where used, the weights."""
    all_features = {key: measurements[:, index] for index, key in enumerate(COLUMNS)}
    all_features |= {"sepal": measurements[:, :2], "petal": measurements[:, 2:]}
    chosen = {column["key"]: all_features[column["key"]] for column in feature_columns_of(case)}
    if "weight_column" in case["arguments"]:
        chosen["weight"] = (0.25 + np.arange(len(measurements)) % 5 * 0.5).astype(np.float32)
    return chosen


def normalizer(column: Mapping[str, Any]) -> Callable[[Any], Any] | None:
    """Returns the column's `normalizer_fn`, of tensors or arrays."""
    if "normalizer" not in column:
        return None
    subtract, divide = column["normalizer"]
    return lambda values: (values - subtract) / divide


def build(case: Mapping[str, Any], model_dir: str) -> Any:
    """Builds the estimator."""
    columns = [
        tf.feature_column.numeric_column(
            column["key"], shape=tuple(column.get("shape", (1,))), normalizer_fn=normalizer(column)
        )
        for column in feature_columns_of(case)
    ]
    arguments = dict(case["arguments"])
    name = case["estimator"]
    if "Combined" in name:
        arguments |= {"linear_feature_columns": columns, "dnn_feature_columns": columns}
    elif not name.startswith("Baseline"):
        arguments["feature_columns"] = columns
    # One thread, so that sums are added in one order and the files come out the same again.
    session_config = tf.compat.v1.ConfigProto(
        inter_op_parallelism_threads=1, intra_op_parallelism_threads=1
    )
    if case.get("api") == "v1":
        config = tf.compat.v1.estimator.RunConfig(tf_random_seed=1, session_config=session_config)
        return getattr(tf.compat.v1.estimator, name)(
            model_dir=model_dir, config=config, **arguments
        )
    config = tf.estimator.RunConfig(tf_random_seed=1, session_config=session_config)
    return getattr(tf.estimator, name)(model_dir=model_dir, config=config, **arguments)


def checkpoint_name(variable: Any) -> str:
    """Returns the name in checkpoints: v1's partitioners add `part_0` to the op's name only."""
    return str(variable.op.name.removesuffix("/part_0"))


class Recorder(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """Gives the trainable variables their first values, and records the loss of each step."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self.initial: dict[str, Array] = {}
        self.slots_at_start: dict[str, Array] = {}
        self.before_last: dict[str, Array] = {}
        self.losses: list[float] = []
        self.trainable: list[str] = []

    def begin(self) -> None:
        # The estimator puts EstimatorSpec.loss last into this collection.
        self._loss = tf.compat.v1.get_collection(tf.compat.v1.GraphKeys.LOSSES)[-1]
        self._variables = tf.compat.v1.trainable_variables()
        self.trainable = [checkpoint_name(variable) for variable in self._variables]

    def after_create_session(self, session: Any, coord: Any) -> None:
        for variable in self._variables:
            shape = variable.shape.as_list()
            value = self._random.uniform(-0.5, 0.5, shape).astype(np.float32)
            name = checkpoint_name(variable)
            if name.endswith("gamma"):
                value += 1.0
            variable.load(value, session)
            self.initial[name] = value
        others = [
            variable
            for variable in tf.compat.v1.global_variables()
            if checkpoint_name(variable) not in self.initial
        ]
        for variable, value in zip(others, session.run(others), strict=True):
            self.slots_at_start[variable.op.name] = np.asarray(value)

    def before_run(self, run_context: Any) -> Any:
        if len(self.losses) == STEPS - 1:
            values = run_context.session.run(self._variables)
            self.before_last = dict(zip(self.trainable, values, strict=True))
        return tf.compat.v1.train.SessionRunArgs(self._loss)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.losses.append(float(run_values.results))


def logits_by_hand(case: Mapping[str, Any], weights: Mapping[str, Array], features: Any) -> Array:
    """Computes the logits of a training step in NumPy (float64)."""
    columns = feature_columns_of(case)
    rows = len(next(iter(features.values())))
    inputs = {}
    for column in columns:
        values = features[column["key"]].reshape(rows, -1).astype(np.float64)
        apply = normalizer(column)
        inputs[column["key"]] = apply(values) if apply else values
    logits: Array = np.zeros(())
    if any("bias_weights" in name for name in weights):
        by_end = {
            name.split("linear_model/")[1]: w
            for name, w in weights.items()
            if "linear_model/" in name
        }
        logits = logits + by_end["bias_weights"]
        for key, values in inputs.items():
            logits = logits + values @ by_end[f"{key}/weights"]
    if any("hiddenlayer_0/kernel" in name for name in weights):
        # DenseFeatures puts columns in the order of their names.
        net = np.concatenate([inputs[key] for key in sorted(inputs)], axis=1)
        by_end = {name.removeprefix("dnn/"): value for name, value in weights.items()}
        for layer in ("hiddenlayer_0", "hiddenlayer_1"):
            net = np.maximum(net @ by_end[f"{layer}/kernel"] + by_end[f"{layer}/bias"], 0.0)
            scale = [value for name, value in by_end.items() if layer in name and "gamma" in name]
            shift = [value for name, value in by_end.items() if layer in name and "beta" in name]
            if scale:
                net = (net - net.mean(0)) / np.sqrt(net.var(0) + 1e-3) * scale[0] + shift[0]
        logits = logits + net @ by_end["logits/kernel"] + by_end["logits/bias"]
    if "baseline/bias" in weights:
        logits = np.tile(weights["baseline/bias"].astype(np.float64), (rows, 1))
    return logits


def loss_by_hand(
    case: Mapping[str, Any], logits: Array, labels: Array, weight: Array | None
) -> float:
    """Computes the training loss in NumPy from the logits."""
    if case["estimator"].endswith("Regressor"):
        losses = (logits - labels.reshape(logits.shape)) ** 2
    elif logits.shape[1] == 1:
        ids = np.array([label in (1, "versicolor") for label in labels])[:, None]
        losses = np.maximum(logits, 0) - logits * ids + np.log1p(np.exp(-np.abs(logits)))
    else:
        ids = np.array([SPECIES.index(x) if isinstance(x, str) else x for x in labels])
        losses = np.log(np.exp(logits).sum(1)) - logits[np.arange(len(ids)), ids]
        losses = losses[:, None]
    weighted = losses if weight is None else losses * weight[:, None]
    is_sum = case["arguments"].get("loss_reduction") == "sum" or case.get("api") == "v1"
    return float(weighted.sum() if is_sum else weighted.mean())


def check_losses(
    case: Mapping[str, Any], record: Recorder, features: Mapping[str, Array], labels: Array
) -> None:
    """Stops unless the first and the last loss are those of the weights before these steps."""
    for step, weights in ((0, record.initial), (STEPS - 1, record.before_last)):
        batch = {key: values[step] for key, values in features.items()}
        logits = logits_by_hand(case, weights, batch)
        expected = loss_by_hand(case, logits, labels[step], batch.get("weight"))
        np.testing.assert_allclose(record.losses[step], expected, rtol=2e-5, err_msg=f"step {step}")


def run_case(
    case: Mapping[str, Any], seed: int, data: Mapping[str, Array]
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Trains, evaluates, predicts one case; returns what goes to the JSON and to the npz."""
    indices = data["batches"]
    train_features = {
        key: values[indices]
        for key, values in features_of(case, data["train_measurements"]).items()
    }
    train_labels = labels_of(case["labels"], data["train_measurements"], data["train_species"])[
        indices
    ]
    test_features = features_of(case, data["test_measurements"])
    test_labels = labels_of(case["labels"], data["test_measurements"], data["test_species"])

    def train_input() -> Any:
        return tf.data.Dataset.from_tensor_slices((train_features, train_labels))

    def eval_input() -> Any:
        dataset = tf.data.Dataset.from_tensor_slices((test_features, test_labels))
        return dataset.batch(EVAL_BATCH_SIZE)

    def predict_input() -> Any:
        rows = {key: values[:PREDICT_ROWS] for key, values in test_features.items()}
        return tf.data.Dataset.from_tensor_slices(rows).batch(PREDICT_ROWS)

    arrays: dict[str, Array] = {}
    with tempfile.TemporaryDirectory() as model_dir:
        estimator = build(case, model_dir)
        record = Recorder(seed)
        estimator.train(train_input, hooks=[record])
        if len(record.losses) != STEPS:
            raise RuntimeError(f"{len(record.losses)} steps instead of {STEPS}")
        check_losses(case, record, train_features, train_labels)
        names = estimator.get_variable_names()
        variables = {name: np.asarray(estimator.get_variable_value(name)) for name in names}
        metrics = estimator.evaluate(eval_input)
        predictions = list(estimator.predict(predict_input))
    arrays["losses"] = np.array(record.losses, np.float32)
    arrays |= {f"initial/{name}": value for name, value in record.initial.items()}
    arrays |= {f"final/{name}": value for name, value in variables.items()}
    facts = {
        "estimator": case["estimator"],
        "api": case.get("api", "v2"),
        "feature_columns": []
        if case["estimator"].startswith("Baseline")
        else feature_columns_of(case),
        "arguments": case["arguments"],
        "labels": case["labels"],
        "features": list(train_features),
        "trainable_variables": record.trainable,
        "variable_names": names,
        "variables": {name: [str(v.dtype), list(v.shape)] for name, v in variables.items()},
        "other_variables_at_start": {
            name: float(value.flat[0]) for name, value in record.slots_at_start.items()
        },
        "metrics": {key: float(value) for key, value in metrics.items()},
        "predictions": {},
    }
    for key in predictions[0]:
        stacked = np.stack([row[key] for row in predictions])
        is_text = stacked.dtype == object
        facts["predictions"][key] = {
            "dtype": "bytes" if is_text else str(stacked.dtype),
            "shape_of_one": list(stacked.shape[1:]),
        }
        if is_text:
            facts["predictions"][key]["values"] = stacked.tolist()
        else:
            arrays[f"predict/{key}"] = stacked
    for name, value in record.slots_at_start.items():
        if value.size and not np.all(value == value.flat[0]):
            raise RuntimeError(f"{name} does not start as a constant")
    return facts, arrays


class LineCollector(logging.Handler):
    """Keeps the lines logged, with what changes from run to run replaced."""

    def __init__(self, model_dir: str) -> None:
        super().__init__()
        self._model_dir = model_dir
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if "is deprecated and will be removed" in record.getMessage():
            return
        line = record.getMessage().replace(self._model_dir, "<model_dir>")
        line = re.sub(r"\d{4}-\d\d-\d\d[T-]\d\d:\d\d:\d\d", "<time>", line)
        line = re.sub(r"Inference Time : [\d.]+s", "Inference Time : <seconds>s", line)
        line = re.sub(r"global_step/sec: [\d.e+]+", "global_step/sec: <rate>", line)
        line = re.sub(r"\([\d.]+ sec\)", "(<seconds> sec)", line)
        line = re.sub(r"\b0x[0-9a-f]+", "<address>", line)
        self.lines.append(f"{record.levelname}: {line[:400]}")


def log_lines(data: Mapping[str, Array]) -> dict[str, list[str]]:
    """Returns what is logged by building, training, evaluating and predicting."""
    case = {"estimator": "LinearRegressor", "labels": "petal_width", "arguments": {}}
    features = features_of(case, data["train_measurements"])
    labels = labels_of("petal_width", data["train_measurements"], data["train_species"])

    def endless() -> Any:
        return tf.data.Dataset.from_tensor_slices((features, labels)).repeat().batch(BATCH_SIZE)

    logger = logging.getLogger("tensorflow")
    level = logger.level
    logger.setLevel(logging.INFO)
    lines: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as model_dir:
        estimator: Any = None

        def build_it() -> None:
            nonlocal estimator
            estimator = build(case, model_dir)

        for name, action in {
            "construct": build_it,
            "train": lambda: estimator.train(endless, steps=250),
            "train_again": lambda: estimator.train(endless, steps=1),
            "train_max_steps_reached": lambda: estimator.train(endless, max_steps=10),
            "evaluate": lambda: estimator.evaluate(endless, steps=5),
            "evaluate_25_steps": lambda: estimator.evaluate(endless, steps=25),
            "evaluate_to_end_named": lambda: estimator.evaluate(
                lambda: endless().take(3), name="extra"
            ),
            "predict": lambda: next(estimator.predict(endless)),
        }.items():
            collector = LineCollector(model_dir)
            logger.addHandler(collector)
            action()
            logger.removeHandler(collector)
            lines[name] = collector.lines
    logger.setLevel(level)
    return lines


def main() -> None:
    """Reads iris, runs all cases, writes the three files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("iris", type=Path, help="folder of iris_training.csv and iris_test.csv")
    parser.add_argument(
        "--only", default="", help="run the cases whose name holds this, write nothing"
    )
    options = parser.parse_args()
    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)

    train_measurements, train_species = read_iris(options.iris / "iris_training.csv")
    test_measurements, test_species = read_iris(options.iris / "iris_test.csv")
    random = np.random.default_rng(20150)
    epochs = -(-STEPS * BATCH_SIZE // len(train_species))
    order = np.concatenate([random.permutation(len(train_species)) for _ in range(epochs)])
    data = {
        "train_measurements": train_measurements,
        "train_species": train_species,
        "test_measurements": test_measurements,
        "test_species": test_species,
        "batches": order[: STEPS * BATCH_SIZE].reshape(STEPS, BATCH_SIZE).astype(np.int64),
    }
    arrays = {f"data/{name}": value for name, value in data.items()}
    cases: dict[str, Any] = {}
    for seed, (name, case) in enumerate(CASES.items()):
        if options.only not in name:
            continue
        facts, case_arrays = run_case(case, seed, data)
        cases[name] = facts
        arrays |= {f"{name}/{key}": value for key, value in case_arrays.items()}
        print(f"{name}: loss {case_arrays['losses'][0]:.4f} -> {case_arrays['losses'][-1]:.4f}")
    if options.only:
        print(cases)
        return
    about = {
        "tensorflow": tf.__version__,
        "steps": STEPS,
        "batch_size": BATCH_SIZE,
        "eval_batch_size": EVAL_BATCH_SIZE,
        "predict_rows": PREDICT_ROWS,
        "columns": list(COLUMNS),
        "species": list(SPECIES),
    }
    write_npz("estimators.npz", arrays)
    write_json("estimators.json", {"about": about, "cases": cases, "log_lines": log_lines(data)})


if __name__ == "__main__":
    main()
