"""Programs with `tf.layers` against TensorFlow 2.15.1 (tests/golden/layer_programs.json).

The programs of `tests/golden/snippets_layers.py` run here on this package as they ran on
`tf.compat.v1`. Of errors, classes and the words that programs look for are compared.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import estimatorkit as tf
from tests.golden.golden_files import error_of
from tests.golden.snippets_layers import ERRORS, LEGACY, SNIPPETS, run_snippet

GOLDEN = json.loads((Path(__file__).parents[1] / "golden/layer_programs.json").read_text("utf-8"))
OTHER_WORDS = {
    "unknown_interpolation": "Value not recognized for `interpolation`",
    "noise_of_another_length": "Dimensions must be equal",
    "noise_of_another_rank": "Dimensions must be equal",
    "unknown_argument": "Keyword argument not understood",
    "window_larger_than_the_image": "Negative dimension size caused by subtracting 3 from 2",
    "keep_prob_that_is_a_vector": "must be a scalar",
    "pooling_padding": "`padding` argument must be",
    "input_of_another_dtype": "expected dtype=float32",
    "unknown_data_format": "The `data_format` argument must be one of",
    "pooling_data_format": "The `data_format` argument must be one of",
    "dense_of_integers": "non-floating point dtype",
    "scope_name_before_use": "No name available for layer scope",
}


@pytest.mark.parametrize("name", sorted(SNIPPETS.keys() - LEGACY))
def test_facts(name: str) -> None:
    assert json.loads(json.dumps(run_snippet(tf, name))) == GOLDEN["snippets"][name]


@pytest.mark.parametrize("name", list(ERRORS))
def test_errors(name: str) -> None:
    with tf.Graph().as_default():
        error = error_of(lambda: ERRORS[name](tf))
    expected = GOLDEN["errors"][name]
    assert error is not None
    assert error["class"] == expected["class"]
    words = expected["first_line"].partition(" Received")[0].partition(". ")[0]
    assert OTHER_WORDS.get(name, words.rstrip(".")) in error["first_line"]
