"""Golden values of the premade estimators of TensorFlow 2.15.1, on rows of the census.

Run, with TensorFlow 2.15.1 and the folder that holds `adult.data`:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_premade.py path/to/census

Writes `premade.json` beside this file (about two minutes on one CPU): the rows, and for each case
of `snippets_premade.py` the losses of 100 steps, checksums of the final variables, metrics and
predictions; `README.md` lists the keys.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import snippets_premade as snippets
import tensorflow as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import write_json
from make_estimators import checkpoint_name
from numpy.typing import NDArray

Array = NDArray[Any]

FIELDS = {
    "age": 0,
    "education": 3,
    "marital": 5,
    "occupation": 6,
    "relationship": 7,
    "race": 8,
    "hours": 12,
    "rich": 14,
}


def read_rows(path: Path) -> dict[str, list[Any]]:
    """Every 97th row of the census that has one of four races, by field."""
    lines = [line.split(", ") for line in path.read_text().splitlines() if line]
    chosen = [line for line in lines[::97] if line[8] in snippets.RACES][: snippets.ROWS]
    rows: dict[str, list[Any]] = {
        key: [line[field] for line in chosen] for key, field in FIELDS.items()
    }
    rows["age"] = [int(age) for age in rows["age"]]
    rows["hours"] = [int(hours) for hours in rows["hours"]]
    rows["rich"] = [int(each == ">50K") for each in rows["rich"]]
    return rows


class Recorder(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
    """Gives the trainable variables their first values, and records the loss of each step."""

    def __init__(self) -> None:
        self.losses: list[float] = []
        self.trainable: list[str] = []

    def begin(self) -> None:
        # The estimator puts EstimatorSpec.loss last into this collection.
        self._loss = tf.compat.v1.get_collection(tf.compat.v1.GraphKeys.LOSSES)[-1]
        self._variables = {
            checkpoint_name(each): each for each in tf.compat.v1.trainable_variables()
        }
        self.trainable = list(self._variables)

    def after_create_session(self, session: Any, coord: Any) -> None:
        shapes = {name: each.shape.as_list() for name, each in self._variables.items()}
        for name, value in snippets.initial_values(shapes).items():
            self._variables[name].load(value.astype(np.float32), session)

    def before_run(self, run_context: Any) -> Any:
        return tf.compat.v1.train.SessionRunArgs(self._loss)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.losses.append(float(run_values.results))


def taken(values: Any, index: Any) -> Any:
    """Rows of an array, or of each array of a dict."""
    if isinstance(values, dict):
        return {key: each[index] for key, each in values.items()}
    return values[index]


def rounded(value: Any) -> Any:
    """Numbers with the digits that float32 has."""
    return float(f"{float(value):.9g}")


def run_case(case: snippets.Case, rows: dict[str, list[Any]]) -> dict[str, Any]:
    """Trains, evaluates and predicts; returns what is stored."""
    data = snippets.data_of(case, rows)
    features, labels, index, test = data.features, data.labels, data.batches, data.test

    def train_input() -> Any:
        # Repeated: where the input ends, TensorFlow decays the slots of sparse gradients once more.
        batches = (taken(features, index), taken(labels, index))
        return tf.data.Dataset.from_tensor_slices(batches).repeat()

    def eval_input() -> Any:
        rows = (taken(features, test), taken(labels, test))
        return tf.data.Dataset.from_tensor_slices(rows).batch(snippets.EVAL_BATCH_SIZE)

    def predict_input() -> Any:
        few = taken(features, test[: snippets.PREDICT_ROWS])
        return tf.data.Dataset.from_tensor_slices(few).batch(snippets.PREDICT_ROWS)

    # One thread, so that sums are added in one order and the files come out the same again.
    session_config = tf.compat.v1.ConfigProto(
        inter_op_parallelism_threads=1, intra_op_parallelism_threads=1
    )
    module = tf.compat.v1.estimator if case.api == "v1" else tf.estimator
    with tempfile.TemporaryDirectory() as model_dir:
        config = module.RunConfig(tf_random_seed=1, session_config=session_config)
        estimator = case.build(tf, model_dir, config)
        record = Recorder()
        estimator.train(train_input, hooks=[record], steps=snippets.STEPS)
        if len(record.losses) != snippets.STEPS:
            raise RuntimeError(f"{len(record.losses)} steps instead of {snippets.STEPS}")
        variables = {
            name: np.asarray(estimator.get_variable_value(name))
            for name in estimator.get_variable_names()
        }
        metrics = estimator.evaluate(eval_input)
        predictions = list(estimator.predict(predict_input))
    found: dict[str, Any] = {
        "losses": [rounded(loss) for loss in record.losses],
        "trainable": record.trainable,
        # dtype, shape, sum, sum of magnitudes
        "variables": {
            name: [
                str(value.dtype),
                list(value.shape),
                rounded(value.astype(np.float64).sum()),
                rounded(np.abs(value.astype(np.float64)).sum()),
            ]
            for name, value in variables.items()
        },
        "metrics": {key: rounded(value) for key, value in metrics.items()},
        "predictions": {},
    }
    for key in predictions[0]:
        stacked = np.stack([row[key] for row in predictions])
        is_text = stacked.dtype == object
        found["predictions"]["|".join(key) if isinstance(key, tuple) else key] = {
            "dtype": "bytes" if is_text else str(stacked.dtype),
            "values": [[each.decode() for each in row.ravel()] for row in stacked]
            if is_text
            else [[rounded(each) for each in row.ravel()] for row in stacked],
            "shape": list(stacked.shape),
        }
    return found


def main() -> None:
    """Reads the census, runs all cases, writes the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("census", type=Path, help="folder of adult.data")
    parser.add_argument("--only", default="", help="run the cases that hold this, write nothing")
    options = parser.parse_args()
    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
    rows = read_rows(options.census / "adult.data")
    cases = {}
    for name, case in snippets.CASES.items():
        if options.only in name:
            cases[name] = run_case(case, rows)
            losses = cases[name]["losses"]
            print(f"{name}: loss {losses[0]:.4f} -> {losses[-1]:.4f}", flush=True)
    if not options.only:
        about = {"tensorflow": tf.__version__}
        write_json("premade.json", {"about": about, "rows": rows, "cases": cases})


if __name__ == "__main__":
    main()
