"""Datasets in graphs against TensorFlow 2.15.1: see `tests/golden/make_pipelines.py`.

Optionals are among the programs: IteratorGetNextAsOptional, OptionalFromValue, OptionalGetValue,
OptionalHasValue, OptionalNone.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

import estimatorkit as tf
from tests.golden.golden_files import FOLDER, error_of
from tests.golden.golden_pipelines import elements_of, spec_of
from tests.golden.golden_values import plain
from tests.golden.snippets_pipeline_errors import ERRORS
from tests.golden.snippets_pipeline_functions import (
    PIPELINES as FUNCTION_PIPELINES,
    PROGRAMS as FUNCTION_PROGRAMS,
)
from tests.golden.snippets_pipelines import PIPELINES as PLAIN_PIPELINES, PROGRAMS as PLAIN_PROGRAMS

# Errors of another class, by intent. TensorFlow's AttributeErrors are mistakes of its own.
OTHER_CLASS = {
    "filter to a vector": "ValueError",
    "flat_map to a tensor": "TypeError",
    "interleave to a tensor": "TypeError",
    "group_by_window of a float key": "ValueError",
    "generator that raises": "KeyError",  # the generator's own, not the text of it
}

# Errors that begin with TensorFlow's words.
SAME_WORDS = {
    "filter to a number ValueError",
    "take_while to a number ValueError",
    "padded_shapes too small DataLossError",
    "padded_shapes statically too small ValueError",
    "padded_shapes of a rank ValueError",
    "batch of zero InvalidArgumentError",
    "unbatch of scalars ValueError",
    "interleave of none InvalidArgumentError",
    "interleave of a negative number InvalidArgumentError",
    "interleave in blocks of none InvalidArgumentError",
    "window of zero InvalidArgumentError",
    "window shifted by zero InvalidArgumentError",
    "shard of a large index InvalidArgumentError",
    "shard of a negative index InvalidArgumentError",
    "shard of none InvalidArgumentError",
    "shuffle of zero InvalidArgumentError",
    "prefetch of a negative number InvalidArgumentError",
    "group_by_window of no size ValueError",
    "group_by_window of size 0 InvalidArgumentError",
    "buckets and sizes ValueError",
    "buckets of a longer one InvalidArgumentError",
    "scan of one value TypeError",
    "reduce of types TypeError",
    "choose of a large number InvalidArgumentError",
    "single of none InvalidArgumentError",
    "single of two InvalidArgumentError",
    "bad number InvalidArgumentError",
    "after the end OutOfRangeError",
    "not initialized FailedPreconditionError",
    "placeholder in a one-shot iterator ValueError",
    "placeholder not fed InvalidArgumentError",
    "generator that is none TypeError",
}

# XLA gives a number where integers are divided by 0.
DIVIDES = {"ignored divisions", "division by zero"}

ENDED_BY_FUNCTIONS = {
    *("bad numbers in batches", "StopIteration in map", "StopIteration in map and batch"),
    "StopIteration in map, errors ignored",
}

PIPELINES = {**PLAIN_PIPELINES, **FUNCTION_PIPELINES}
PROGRAMS = {**PLAIN_PROGRAMS, **FUNCTION_PROGRAMS}
GOLDEN = json.loads((FOLDER / "pipelines.json").read_text(encoding="utf-8"))


def _run(name: str) -> dict[str, Any]:
    with tf.Graph().as_default(), tf.Session() as session:
        dataset = PIPELINES[name](tf)
        return {
            "spec": spec_of(dataset.element_spec),
            "cardinality": int(tf.data.experimental.cardinality(dataset)),
            "elements": elements_of(tf, session, dataset),
        }


@pytest.mark.parametrize("name", [name for name in PIPELINES if name not in DIVIDES])
def test_pipelines(name: str) -> None:
    golden, found = GOLDEN["pipelines"][name], _run(name)
    assert found["spec"] == golden["spec"]
    assert found["elements"] == golden["elements"]
    if golden["cardinality"] != -2:
        assert found["cardinality"] == golden["cardinality"]
    elif found["cardinality"] != -2 and name not in ENDED_BY_FUNCTIONS:
        # Known here, as functions do not change it.
        assert found["cardinality"] == len(found["elements"])


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        assert plain(PROGRAMS[name](tf)(session)) == GOLDEN["programs"][name]


@pytest.mark.parametrize("name", [name for name in ERRORS if name not in DIVIDES])
def test_errors(name: str) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        found = error_of(lambda: ERRORS[name](tf, session))
    assert found is not None
    golden = GOLDEN["errors"][name]
    assert found["class"] == OTHER_CLASS.get(name, golden["class"])
    if name in SAME_WORDS:
        assert found["first_line"][:15] == golden["first_line"][:15]
