"""`train_and_evaluate` trains, evaluates and exports when TensorFlow does, with the same errors."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest

import estimatorkit as tf
from tests.golden.golden_files import error_of
from tests.golden.snippets_train_and_evaluate import ERRORS, SNIPPETS
from tests.sweep import sweep

FILE = Path(__file__).parents[1] / "golden" / "train_and_evaluate.json"
GOLDEN = json.loads(FILE.read_text("utf-8"))
SIGNATURES = json.loads(FILE.with_name("signatures.json").read_text("utf-8"))

# What differs by intent: the last checkpoint is exported as such whatever ended the training.
FINAL_EXPORTS = {
    "input_ends": [["export", "final", 25, True]],
    "no_max_steps": [["export", "final", 20, True]],
}
WORDS = {"latest: exports_to_keep": "`exports_to_keep`, if provided, must be a positive number"}


@pytest.mark.parametrize(
    "name",
    [
        *("TrainSpec", "EvalSpec", "train_and_evaluate", "LatestExporter", "BestExporter"),
        *("FinalExporter", "add_metrics"),
    ],
)
def test_arguments_match(name: str) -> None:
    """Those that are only here come by keyword."""
    thing = getattr(tf.estimator, name)
    spec = name.endswith("Spec")
    parameters = list(inspect.signature(thing.__new__ if spec else thing).parameters.values())
    found = [
        (each.name, None if each.default is each.empty else repr(each.default).split(" at ")[0])
        for each in parameters[1 if spec else 0 :]
        if each.kind is not each.KEYWORD_ONLY
    ]
    theirs = [(each, default) for each, default, _ in SIGNATURES["v1"][name]]
    assert found == [(each, default and default.rstrip(">")) for each, default in theirs]


@sweep("snippet", SNIPPETS, ids=lambda snippet: snippet.__name__, quick=4)
def test_events_match(snippet: Any, tmp_path: Path) -> None:
    ours = snippet(tf, str(tmp_path))
    theirs = dict(GOLDEN["snippets"][snippet.__name__])
    extra = FINAL_EXPORTS.get(snippet.__name__, [])
    if extra:
        assert theirs["exports"][-1] is None
        theirs["exports"] = [*theirs["exports"][:-1], "final"]
        theirs["events"] = [*theirs["events"], *extra]
    assert ours == theirs


@pytest.mark.parametrize("name", ERRORS)
def test_errors_match(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ours = error_of(lambda: ERRORS[name](tf))
    theirs = GOLDEN["errors"][name]
    assert ours is not None
    assert ours["class"] == theirs["class"]
    line = WORDS.get(name, theirs["first_line"].partition("<function")[0])
    assert ours["first_line"].startswith(line.partition(" (<")[0])
