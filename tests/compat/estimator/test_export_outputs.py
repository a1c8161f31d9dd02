"""The tests of `tests/estimator/test_export_outputs.py` that need names of TensorFlow 1."""

from __future__ import annotations

import importlib

from estimatorkit.estimator import export
from tests.estimator.test_export_outputs import _graph

__all__ = ["_graph"]


def test_public_names() -> None:
    import estimatorkit as v1

    assert importlib.import_module("estimatorkit.compat.v1.estimator.export").PredictOutput is (
        export.PredictOutput
    )
    for name in ("ClassificationOutput", "ExportOutput", "PredictOutput", "RegressionOutput"):
        assert getattr(v1.estimator.export, name) is getattr(export, name)
