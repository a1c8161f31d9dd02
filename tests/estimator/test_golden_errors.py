"""Mistakes with estimators fail as in TensorFlow 2.15.1 (tests/golden/estimator_errors.json).

The class must be the same, and the first line must be TensorFlow's or a beginning of it: what was
given, or what to try, may follow on lines of its own. Where we differ by intent, the reason stands
here.
"""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

import estimatorkit
from tests.golden.golden_files import error_of
from tests.golden.snippets_estimator_errors import ERRORS

GOLDEN: dict[str, dict[str, str] | None] = json.loads(
    (Path(__file__).parents[1] / "golden" / "estimator_errors.json").read_text("utf-8")
)["errors"]


class Ours(NamedTuple):
    """How we fail instead, and why."""

    kind: str
    line: str
    why: str


UNTRAINED = Ours(
    "ValueError",
    r"Could not find trained model in model_dir: <model_dir>\.",
    "a model that was never trained is a mistake (a wrong model_dir, most often)",
)
LABELS = "the check is looked at on the host: no dump of graph tensors, but the label in words"

DIFFERENT = {
    "evaluate_before_train": UNTRAINED,
    "predict_before_train": UNTRAINED,
    "export_before_train": UNTRAINED,
    "labels_too_large": Ours("InvalidArgumentError", "Labels must be <= n_classes - 1", LABELS),
    "labels_too_large_binary": Ours(
        "InvalidArgumentError", "Labels must be <= n_classes - 1", LABELS
    ),
    "labels_negative": Ours("InvalidArgumentError", "Labels must be >= 0", LABELS),
    "labels_not_in_vocabulary": Ours(
        "InvalidArgumentError", "label 'd' is not in label_vocabulary", LABELS
    ),
    "optimizer_that_is_a_number": Ours(
        "ValueError", "The given object is not an Optimizer instance. Given: 3", "there is no Keras"
    ),
    "feature_of_wrong_shape": Ours(
        "ValueError", "feature 'x' does not match its numeric_column", "known while building"
    ),
    "feature_of_strings": Ours(
        "ValueError", r"numeric_column\('x'\) cannot read a string feature", "as above"
    ),
    "categorical_column_in_a_dnn": Ours(
        "ValueError",
        "Items of feature_columns must be a _DenseColumn. You can wrap a categorical column",
        "the class by its name",
    ),
    "input_fn_that_is_a_dataset": Ours(
        "TypeError", "input_fn must be a function", "says what it must be"
    ),
    "checkpoint_of_another_shape": Ours(
        "InvalidArgumentError",
        r"Assign requires shapes of both tensors to match\. .*: the checkpoint ",
        "TensorFlow takes the new shape's initial values without a word",
    ),
    "checkpoint_without_a_variable": Ours(
        "NotFoundError",
        "Key .* not found in checkpoint: ",
        "a table of all that differs",
    ),
    "train_and_evaluate_without_data": Ours(
        "ValueError", "the training input has no elements", "a training of no steps is no training"
    ),
}

RENAMED = {
    "DNNClassifierV2": "DNNClassifier",
    "tensorflow.python.framework.ops.SymbolicTensor": "estimatorkit.core.tensor.Tensor",
    "snippets_estimator_errors": "tests.golden.snippets_estimator_errors",
}
"""Python's own words for things that are called otherwise here."""


class Module:
    """estimatorkit, with the few names that the snippets take from elsewhere in TensorFlow."""

    compat = SimpleNamespace(v1=estimatorkit)
    math = estimatorkit

    def __getattr__(self, name: str) -> Any:
        return getattr(estimatorkit, name)


@pytest.mark.parametrize("name", ERRORS)
def test_mistake(name: str) -> None:
    # As when it was recorded: first lines are cut, so that the length of the folder's name counts.
    with tempfile.TemporaryDirectory() as model_dir:
        found = error_of(lambda: ERRORS[name](Module(), model_dir))
    line = "" if found is None else found["first_line"].replace(model_dir, "<model_dir>")
    kind = None if found is None else found["class"]
    golden = GOLDEN[name]
    if name in DIFFERENT:
        assert kind == DIFFERENT[name].kind
        assert re.match(DIFFERENT[name].line, line)
    elif golden is None:
        assert found is None
    else:
        expected = golden["first_line"]
        for theirs, ours in RENAMED.items():
            expected = expected.replace(theirs, ours)
        assert kind == golden["class"]
        assert expected.startswith(line.rstrip("."))
        assert len(line) > 12


def test_listed_differences_are_real() -> None:
    """Nothing stands in the table that TensorFlow does too."""
    assert set(DIFFERENT) <= set(ERRORS)
    for name, ours in DIFFERENT.items():
        golden = GOLDEN[name]
        if golden is not None:
            same = re.match(ours.line, golden["first_line"])
            assert not (same and golden["class"] == ours.kind), name
