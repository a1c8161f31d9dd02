"""What TensorFlow 2.15.1's tf.data pipelines and input functions give, element by element.

Run, with TensorFlow 2.15.1 and pandas:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_data.py

Writes `data.json` beside this file (ten seconds): the results of `snippets_data.py`. An element is
the list of its leaves (tuples in order, dicts by sorted key); `spec` has its structure, with
"dtype shape" for each leaf, a list for a tuple.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import error_of, write_json
from snippets_data import DATA_ERRORS, INPUT_ERRORS, INPUTS, PIPELINES

ENDLESS_BATCHES = 6  # so many batches are recorded of an input without end


def plain(value: Any) -> Any:
    """Turns an array of numbers or bytes into nested lists of numbers and strings."""
    array = np.asarray(value)
    if array.dtype.kind in "SO":
        texts = [item.decode() for item in array.ravel().tolist()]
        return np.array(texts, dtype=object).reshape(array.shape).tolist()
    return array.tolist()


def leaf(dtype: Any, shape: Any) -> str:
    """Describes a leaf, as `float32 [None, 2]`."""
    return f"{dtype.name} {'unknown' if shape.rank is None else shape.as_list()}"


def spec_of(structure: Any) -> Any:
    """Describes a nested structure of tensors or of specs."""
    if isinstance(structure, dict):
        return {key: spec_of(structure[key]) for key in sorted(structure)}
    if isinstance(structure, tuple):
        return [spec_of(item) for item in structure]
    return leaf(structure.dtype, structure.shape)


def run_pipeline(name: str) -> dict[str, Any]:
    """Returns all elements of a pipeline, what they look like, and how many it says that it has."""
    dataset = PIPELINES[name](tf)
    return {
        "spec": spec_of(dataset.element_spec),
        "cardinality": int(dataset.cardinality()),
        "elements": [
            [plain(item) for item in tf.nest.flatten(element)]
            for element in dataset.as_numpy_iterator()
        ],
    }


def run_input(name: str) -> dict[str, Any]:
    """Returns the batches of an input function, in graph mode with its queue runners."""
    with tf.Graph().as_default():
        made = INPUTS[name](tf.compat.v1.estimator.inputs)()
        leaves = tf.nest.flatten(made)
        batches: list[Any] = []
        with tf.compat.v1.train.MonitoredSession() as session:
            # A MonitoredSession ends its block quietly when the queue is at its end.
            while len(batches) < ENDLESS_BATCHES or "without end" not in name:
                batches.append([plain(value) for value in session.run(leaves)])
        return {"spec": spec_of(made), "batches": batches}


def run_input_error(name: str) -> dict[str, str] | None:
    """Runs a mistake with an input function in a fresh graph."""
    with tf.Graph().as_default():
        return error_of(lambda: INPUT_ERRORS[name](tf.compat.v1.estimator.inputs))


def main() -> None:
    """Runs all pipelines, inputs and mistakes, and writes the file."""
    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
    write_json(
        "data.json",
        {
            "about": {"tensorflow": tf.__version__},
            "pipelines": {name: run_pipeline(name) for name in PIPELINES},
            "inputs": {name: run_input(name) for name in INPUTS},
            "data_errors": {n: error_of(lambda n=n: DATA_ERRORS[n](tf)) for n in DATA_ERRORS},
            "input_errors": {name: run_input_error(name) for name in INPUT_ERRORS},
        },
    )


if __name__ == "__main__":
    main()
