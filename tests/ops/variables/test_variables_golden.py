"""Variables and variable scopes against TensorFlow 2.15.1 (tests/golden/variables.json).

The programs of `tests/golden/snippets_variables.py` run here on this package as they ran on
`tf.compat.v1`. Of errors, classes are compared, and the words of TensorFlow's message that programs
look for.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import estimatorkit as tf
from tests.golden.golden_files import error_of
from tests.golden.snippets_variables import ERRORS, LEGACY, SNIPPETS, run_snippet

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/variables.json").read_text("utf-8"))

# What differs by intent, each with ours and the reason.
DIFFERENT_FACTS: dict[tuple[str, str], tuple[Any, str]] = {}
DIFFERENT_ERRORS: dict[str, tuple[str | None, str]] = {
    "copy_of_a_variable": ("NotImplementedError", "as TensorFlow's resource variables"),
    "iteration_over_a_scalar_variable": ("TypeError", "the class that TensorFlow's derives from"),
    "slice_assigned_with_another_shape": ("ValueError", "seen when the graph is built"),
    "partition_axis_out_of_range": ("ValueError", "as the other partitioners"),
    "partition_shards_below_one": ("ValueError", "there is no such partition"),
}
OTHER_WORDS = {
    "counting_in_fractions": "has DataType float32 not in list of allowed values",
    "copy_of_a_variable": "__deepcopy__()",
    "part_of_another_shape": "All variables' full shapes must match shape: ",
    "constant_initializer_of_a_tensor": "Invalid type for initial value=",
    "constant_initializer_of_a_variable": "Invalid type for initial value=",
    "constant_initializer_of_too_many": "Too many elements provided",
    "unknown_distribution": "Argument `distribution` should be one of (",
    "orthogonal_vector": "The tensor to initialize",
    "identity_of_rank_three": "must be a matrix",
    "variable_shared_with_the_default_dtype": "specified dtype float32 and found dtype int32",
    "constant_of_another_dtype": "Initializer type",
    "number_of_another_dtype": "don't match",
    "complex_variable_without_an_initializer": "An initializer for variable u of",
    "initial_value_of_unknown_shape": "initial_value must have a shape specified: Tensor(",
    "iteration_over_a_scalar_variable": "can only be iterated over",
    "slice_assigned_with_another_shape": "Cannot broadcast input shape",
    "assignment_of_another_shape": "Shapes of Variable:0",
    "assignment_to_a_tensor": "has no attribute 'assign'",
    "assignment_to_a_slice_of_a_tensor": "has no attribute 'assign'",
    "hand_cut_into_more_parts_than_rows": "cannot be partitioned into 5 slices",
    "partition_axis_out_of_range": "Cannot partition variable along axis 2",
}


@pytest.mark.parametrize("name", sorted(SNIPPETS.keys() - LEGACY))
def test_facts(name: str) -> None:
    check_facts(tf, name)


def check_facts(module: Any, name: str) -> None:
    """Compares what a snippet finds with a module."""
    found = json.loads(json.dumps(run_snippet(module, name)))
    expected = {
        fact: DIFFERENT_FACTS.get((name, fact), (value,))[0]
        for fact, value in GOLDEN["snippets"][name].items()
    }
    assert found == expected


@pytest.mark.parametrize("name", sorted(ERRORS.keys() - LEGACY))
def test_errors(name: str) -> None:
    check_error(tf, name)


def check_error(module: Any, name: str) -> None:
    """Compares the error of a snippet with a module."""
    with tf.Graph().as_default():
        error = error_of(lambda: ERRORS[name](module))
    expected = GOLDEN["errors"][name]
    wanted = DIFFERENT_ERRORS.get(name, (expected and expected["class"],))[0]
    assert (error and error["class"]) == wanted
    if error and expected:
        words = OTHER_WORDS.get(name, expected["first_line"].partition(".")[0])
        assert words in error["first_line"]


def test_listed_exceptions_are_needed() -> None:
    for name, fact in DIFFERENT_FACTS:
        assert GOLDEN["snippets"][name][fact] != DIFFERENT_FACTS[name, fact][0]
    for name, (ours, _) in DIFFERENT_ERRORS.items():
        assert (GOLDEN["errors"][name] or {}).get("class") != ours
