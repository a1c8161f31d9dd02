"""The tests of `tests/estimator/test_export.py` that need names of TensorFlow 1."""

from __future__ import annotations

import json

import numpy as np
import pytest

from estimatorkit.estimator.serving.predictor import load_predictor
from estimatorkit.estimator.serving.rest_json import predict_inputs
from tests.estimator.exported import shared_export
from tests.estimator.test_export import model

__all__ = ["model"]


@pytest.mark.slow
@pytest.mark.parametrize("parse", [False, True])
def test_tensorflow_1_scripts_load_exports(parse: bool) -> None:
    """TensorFlow 2.15.1 loads such a model and answers the same: checked by hand."""
    from estimatorkit.compat.predictor import from_saved_model
    from estimatorkit.interop.graphdef import is_from_tensorflow
    from estimatorkit.train.saving.saved_model_files import read_saved_model

    model = shared_export(parse)
    (graph,) = read_saved_model(model).meta_graphs
    assert is_from_tensorflow(graph.graph_def.node)
    request = json.loads((model / "example_request.json").read_text())
    with load_predictor(model) as predictor, from_saved_model(model) as old:
        inputs, _ = predict_inputs(request, predictor.signature())
        if not parse:  # words that are not in the vocabulary, and none
            inputs = {**inputs, "word": [["b", "zzz"], ["", "a"], ["", ""]]}
        found, expected = old(inputs), predictor(inputs)
        assert found.keys() == expected.keys()
        for key, values in expected.items():
            if values.dtype.kind == "f":
                np.testing.assert_allclose(found[key], values, rtol=1e-5, atol=1e-6)
            else:
                np.testing.assert_array_equal(found[key], values)
