"""Feature columns compared with TensorFlow 2.15.1: `tests/golden/make_feature_columns.py`."""

from __future__ import annotations

import hashlib
import inspect
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.core.graph import Graph
from estimatorkit.layers import feature_column as fc
from estimatorkit.runtime.session import Session
from tests.sweep import sweep

FOLDER = Path(__file__).parents[1] / "golden"
sys.path.insert(0, str(FOLDER))
import snippets_feature_columns as snippets  # noqa: E402
from snippets_feature_column_errors import ERRORS, LEGACY  # noqa: E402

GOLDEN = json.loads((FOLDER / "feature_columns.json").read_text("utf-8"))


@pytest.fixture
def words_file(tmp_path: Path) -> str:
    path = tmp_path / "words.txt"
    path.write_text("\n".join(snippets.VOCABULARY) + "\n", "utf-8")
    return str(path)


def compare(ours: Any, theirs: Any, where: str) -> None:
    if isinstance(theirs, dict):
        assert set(ours) == set(theirs), where
        for key in theirs:
            compare(ours[key], theirs[key], f"{where}, {key}")
    else:
        array = np.asarray(ours)
        expected = np.asarray(theirs, array.dtype)
        assert array.shape == expected.shape, where
        np.testing.assert_allclose(array, expected, 1e-5, 1e-6, err_msg=where)


@sweep("name", [name for name in snippets.CASES if name not in snippets.LEGACY], quick=8)
def test_values_variables_and_gradients(name: str, words_file: str) -> None:
    check_case(tf, name, words_file)


def check_case(module: Any, name: str, words_file: str) -> None:
    """Compares a case with a module's columns."""
    case, golden = snippets.CASES[name], GOLDEN["cases"][name]
    with Graph().as_default():
        found = snippets.run(module, case, words_file)
    assert found["variables"] == golden["variables"]
    assert found["in model_variables"] == golden["in model_variables"]
    for layer, expected in golden["layers"].items():
        ours = found["layers"][layer]
        assert len(ours["outputs"]) == len(expected["outputs"])
        for one, other in zip(ours["outputs"], expected["outputs"], strict=True):
            compare(one, other, layer)
        compare(ours["gradients"], expected["gradients"], layer)


def test_ids_of_ten_thousand_rows() -> None:
    with Graph().as_default(), Session() as session:
        features = fc.Features({k: tf.constant(v) for k, v in snippets.big_features().items()})
        columns = snippets.big_columns(tf)
        ids = {name: features.transformed(column).ids for name, column in columns.items()}
        values = session.run(ids)
    for name, golden in GOLDEN["big"].items():
        flat = values[name].reshape(-1)
        flat = flat[flat != np.iinfo(np.int64).min].astype("<i8")  # there was no value
        assert len(flat) == golden["count"], name
        assert flat[: len(golden["first"])].tolist() == golden["first"], name
        assert hashlib.sha256(flat.tobytes()).hexdigest() == golden["sha256"], name


# Where we say something else, and why.
OTHER_ERRORS = {
    "identity out of range": "indices[1] = 9 is not in [0, 4)",  # TensorFlow's op in v1's words
    "file gone": "could not open at '/nowhere'",  # what was done, and which file
}


@pytest.mark.parametrize("name", [name for name in ERRORS if name not in LEGACY])
def test_errors(name: str) -> None:
    check_error(tf, name)


def check_error(module: Any, name: str) -> None:
    """Compares the error of a module's columns."""
    golden = GOLDEN["errors"][name]
    with Graph().as_default(), pytest.raises(Exception) as caught:  # noqa: PT011 - compared below
        ERRORS[name](module)
    assert type(caught.value).__name__ == golden["class"]
    if name in OTHER_ERRORS:
        assert OTHER_ERRORS[name] in str(caught.value)
        return
    assert str(caught.value).split()[:4] == golden["first_line"].split()[:4]


SIGNATURES = json.loads((FOLDER / "signatures.json").read_text("utf-8"))["v1"]


@pytest.mark.parametrize("name", [each for each in SIGNATURES if each.startswith("feature_column")])
def test_parameters_and_defaults(name: str) -> None:
    golden = SIGNATURES[name]
    parameters = list(inspect.signature(tf_name(name)).parameters.values())
    for parameter, (expected, default, kind) in zip(parameters, golden, strict=False):
        assert (parameter.name, parameter.kind.name) == (expected, kind)
        ours = None if parameter.default is parameter.empty else parameter.default
        ours = f"tf.{ours.name}" if hasattr(ours, "as_numpy_dtype") else repr(ours)
        assert ours == str(default)
    assert all(each.default is not each.empty for each in parameters[len(golden) :])


def tf_name(name: str) -> Any:
    found: Any = tf
    for part in name.split("."):
        found = getattr(found, part)
    return found
