"""Writes exports.json: what TensorFlow computes with the exports of `snippets_exports.py`, and
op_defs.json: what it knows of the node types that this package writes.

First `python -m tests.golden.write_exports FOLDER` exports the cases with this package; then
`python make_exports.py FOLDER` loads them with the loaders of both versions and compares.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from golden_files import FOLDER, write_json
from golden_values import plain
from snippets_exports import CASES, answer, request_of, signature_of
from tensorflow.python.framework import op_def_registry

v1 = tf.compat.v1
SOURCES = ("interop/graphdef_export*.py", "train/saving/saved_model_builder.py")


def assert_equal(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert set(found) == set(expected), (sorted(found), sorted(expected))
    for key, value in expected.items():
        assert (found[key]["dtype"], found[key]["shape"]) == (value["dtype"], value["shape"]), key
        if value["dtype"].startswith("float"):
            numbers = [[float(each) for each in side["values"]] for side in (found[key], value)]
            np.testing.assert_allclose(*numbers, rtol=1e-5, atol=1e-5)
        else:
            assert found[key]["values"] == value["values"], key


def by_version_2(folder: str, given: dict[str, Any]) -> dict[str, Any]:
    """What TensorFlow 2's loader predicts."""
    signatures = tf.saved_model.load(folder).signatures
    request = {key: tf.constant(each) for key, each in given.items()}
    found = signatures[signature_of(signatures)](**request)
    return {key: value.numpy() for key, value in found.items()}


def op_defs() -> dict[str, Any]:
    """Inputs, outputs and attributes of the node types that stand in the exporter's source."""
    package = FOLDER.parents[1] / "estimatorkit"
    files = [file for pattern in SOURCES for file in package.glob(pattern)]
    text = "".join(file.read_text("utf-8") for file in files)
    found = {}
    for name in sorted(set(re.findall(r'"([A-Z]\w+)"', text))):
        known = op_def_registry.get(name)
        if known is not None:
            found[name] = {
                "inputs": [argument(each) for each in known.input_arg],
                "outputs": [argument(each) for each in known.output_arg],
                "attrs": {each.name: attribute(each) for each in known.attr},
            }
    return found


def argument(arg: Any) -> dict[str, Any]:
    """A dtype or the attribute that tells it, and the attribute that tells how many there are."""
    keys = ("type", "type_attr", "number_attr", "type_list_attr")
    return {key: getattr(arg, key) for key in keys if getattr(arg, key)}


def attribute(attr: Any) -> dict[str, Any]:
    """Its type, the values that it may have, and whether it may be left out."""
    allowed = attr.allowed_values.list
    values = [*allowed.type, *(each.decode() for each in allowed.s)]
    kept = {"allowed": values} if values else {}
    return {"type": attr.type, "optional": attr.HasField("default_value"), **kept}


def main(folder: str) -> None:
    base = Path(folder)
    os.chdir(base)
    found = {}
    for name, case in CASES.items():
        for receiver in case.receivers:
            key = f"{name}-{receiver}"
            (export,) = map(str, (base / "exports" / key).iterdir())
            with tf.Graph().as_default():  # columns that share embeddings need one
                request = request_of(tf, case, receiver)
            answered = answer(v1, request, receiver, export)
            values = {each: plain(value) for each, value in answered.items()}
            assert_equal(values, json.loads((base / f"{key}.json").read_text()))
            if receiver != "supervised":
                again = by_version_2(export, request)
                assert_equal({each: plain(value) for each, value in again.items()}, values)
            found[key] = values
            print(key, "is equal")
    write_json("exports.json", found)
    write_json("op_defs.json", op_defs())


if __name__ == "__main__":
    main(sys.argv[1])
