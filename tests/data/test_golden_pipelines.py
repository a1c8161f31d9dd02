"""Datasets in graphs against TensorFlow 2.15.1: see `tests/golden/make_pipelines.py`."""

from __future__ import annotations

import json
from typing import Any

import pytest

import estimatorkit.compat.v1 as tf
from tests.golden.golden_files import FOLDER, error_of
from tests.golden.golden_pipelines import elements_of, spec_of
from tests.golden.golden_values import plain
from tests.golden.snippets_pipeline_errors import ERRORS
from tests.golden.snippets_pipelines import PIPELINES, PROGRAMS

# Errors of another class, by intent. TensorFlow's AttributeErrors are mistakes of its own.
OTHER_CLASS = {
    "filter to a vector": "ValueError",
    "flat_map to a tensor": "TypeError",
    "interleave to a tensor": "TypeError",
    "group_by_window of a float key": "ValueError",
    "dense_to_sparse_batch too large": "InvalidArgumentError",
    "structure of a nest": "TypeError",
    "generator that raises": "KeyError",  # the generator's own, not the text of it
}

# XLA gives a number where integers are divided by 0.
DIVIDES = {"ignored divisions", "division by zero"}

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
    elif found["cardinality"] != -2 and name != "bad numbers in batches":
        # Known here, as functions do not change it.
        assert found["cardinality"] == len(found["elements"])


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        assert plain(PROGRAMS[name](tf)(session)) == GOLDEN["programs"][name]


@pytest.mark.parametrize("name", [name for name in ERRORS if name not in DIVIDES])
def test_mistakes(name: str) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        found = error_of(lambda: ERRORS[name](tf, session))
    assert found is not None
    assert found["class"] == OTHER_CLASS.get(name, GOLDEN["errors"][name]["class"])
