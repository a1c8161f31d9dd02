"""Exports the cases of `snippets_exports.py` into a folder, for `make_exports.py` to load.

Run as `python -m tests.golden.write_exports FOLDER [PATTERN]`, the pattern for some of the cases.
It needs no TensorFlow. Beside the exports, `CASE-RECEIVER.json` has what this package computes.
"""

from __future__ import annotations

import json
import os
import re
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np

import estimatorkit as tf
from tests.golden.golden_values import plain
from tests.golden.snippets_exports import (
    CASES,
    VOCABULARY,
    Case,
    answer,
    feature_spec,
    receiver_of,
    request_of,
)


class WeightsByName(tf.train.SessionRunHook):
    """Starts training with weights that depend on variables' names and shapes alone: drawn ones
    change with the number of operations that are made before them.
    """

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Sets the weights."""
        for variable in tf.trainable_variables():
            random = np.random.default_rng(zlib.crc32(variable.op.name.encode()))
            variable.load(random.normal(scale=0.3, size=variable.shape.as_list()), session)


def trained(case: Case, folder: Path) -> Any:
    """The case's estimator after one step, in which it was fed serialized `Example`s."""

    def input_fn() -> tf.data.Dataset:
        spec = feature_spec(tf, case)
        examples = request_of(tf, case, "parsing")["examples"]

        def parsed(serialized: Any, *labels: Any) -> Any:
            features = tf.io.parse_example(serialized, spec)
            return (features, *labels) if labels else features

        given = (examples,) if case.labels is None else (examples, case.labels)
        return tf.data.Dataset.from_tensors(given).map(parsed)

    return case.build(tf, str(folder)).train(input_fn, [WeightsByName()], steps=1)


def export_of(estimator: Any, case: Case, receiver: str, base: Path) -> str:
    """The folder of an export of the case."""
    made = receiver_of(tf, case, receiver)
    modes = ["train", "eval"] if receiver == "supervised" else ["infer"]
    path = estimator.experimental_export_all_saved_models(str(base), dict.fromkeys(modes, made))
    found: str = path.decode()
    return found


def main(folder: str, pattern: str = "") -> None:
    base = Path(folder).absolute()
    base.mkdir(parents=True, exist_ok=True)
    os.chdir(base)
    Path(VOCABULARY[0]).write_bytes(VOCABULARY[1])
    for name in filter(re.compile(pattern).search, CASES):
        case = CASES[name]
        estimator = trained(case, base / "models" / name)
        for receiver in case.receivers:
            path = export_of(estimator, case, receiver, base / "exports" / f"{name}-{receiver}")
            found = answer(tf, request_of(tf, case, receiver), receiver, path)
            values = {key: plain(value) for key, value in found.items()}
            (base / f"{name}-{receiver}.json").write_text(json.dumps(values))


if __name__ == "__main__":
    main(*sys.argv[1:])
