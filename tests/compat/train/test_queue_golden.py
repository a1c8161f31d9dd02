"""Queues, their runners and sessions behave as in TensorFlow 2.15.1."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import estimatorkit.compat.v1 as tf
from tests.golden.golden_files import error_of
from tests.golden.snippets_queues import ERRORS, SNIPPETS, fail

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "queues.json").read_text("utf-8"))

# Messages whose words differ: what ours say, where TensorFlow's have their own names of dtypes, of
# classes, or of nodes.
WORDS = {
    "shared dtypes": "Shared queue 'x' has component types float32 but requested component types",
    "shared components": "requested component types were float32, float32",
    "shared kind": "Expected FIFOQueue, found RandomShuffleQueue",
    "no components": "A queue must have components",
    "names of another kind": "List of names must have the same length as the list of dtypes",
    "negative count": "Input 'n' must be >= 0, but is -1",
    "accumulator of strings": "Value passed to parameter 'dtype' has DataType string not in list",
    "fetch of a set": "has invalid type set, must be a string or Tensor",
    "feeds of another kind": "must be a dictionary or collections.abc.Mapping type object",
    "stop that is no exception": "ex must be an exception",
    "session ended out of order": "Nesting violated for default stack of <class 'estimatorkit",
}


@pytest.mark.parametrize("name", SNIPPETS)
def test_matches_tensorflow(name: str) -> None:
    with tf.Graph().as_default():
        assert json.loads(json.dumps(SNIPPETS[name](tf))) == GOLDEN["snippets"][name]


@pytest.mark.parametrize("name", ERRORS)
def test_errors_match_tensorflow(name: str) -> None:
    found, expected = error_of(lambda: fail(tf, name)), GOLDEN["errors"][name]
    assert found is not None
    assert found["class"] == expected["class"]
    assert WORDS.get(name, expected["first_line"]).rstrip(".") in found["first_line"]
