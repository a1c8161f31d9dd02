"""The tests of `tests/premade/test_logit_fns.py` that need names of TensorFlow 1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import estimatorkit.compat.v1 as tf_v1
from tests.premade.test_logit_fns import COLUMNS, rows


def recording(calls: list[dict[str, Any]]) -> Any:
    """An optimizer that notes what `minimize` is given by name."""

    class Recording(tf_v1.train.GradientDescentOptimizer):
        def minimize(self, loss: Any, **given: Any) -> Any:  # type: ignore[override]
            calls.append(given)
            return super().minimize(loss, **given)

    return Recording(0.1)


@pytest.mark.slow
def test_minimize_arguments_match_tensorflow(tmp_path: Path) -> None:
    calls: list[dict[str, Any]] = []
    one = tf_v1.estimator.DNNClassifier([2], COLUMNS, tmp_path / "1", optimizer=recording(calls))
    one.train(rows)
    assert [set(given) for given in calls] == [{"global_step"}]
    assert one.get_variable_value("global_step") == 3
    calls.clear()
    both = tf_v1.estimator.DNNLinearCombinedClassifier(
        tmp_path / "2",
        linear_feature_columns=COLUMNS,
        linear_optimizer=recording(calls),
        dnn_feature_columns=COLUMNS,
        dnn_optimizer=recording(calls),
        dnn_hidden_units=[2],
    )
    both.train(rows)
    assert [set(given) for given in calls] == [{"var_list"}, {"var_list"}]
    scopes = [{variable.name.split("/")[0] for variable in given["var_list"]} for given in calls]
    assert scopes == [{"dnn"}, {"linear"}]
    assert both.get_variable_value("global_step") == 3
