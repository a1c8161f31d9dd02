"""The tests of `tests/premade/test_pain_points.py` that need names of TensorFlow 1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
import estimatorkit.compat.v1 as tf_v1
from estimatorkit.core.graph import Graph
from estimatorkit.estimator.run_config import RunConfig
from estimatorkit.estimator.spec import ModeKeys
from tests.premade import model_graphs as graphs
from tests.premade.test_pain_points import FEATURES, LABELS, estimator, fc, inputs


@pytest.mark.slow
@pytest.mark.parametrize("version", [1, 2])
def test_32_loss_is_mean_in_version_2_and_sum_in_version_1(version: int, tmp_path: Path) -> None:
    module = estimator if version == 2 else tf_v1.estimator
    features = {**FEATURES, "weight": np.array([0.5, 2.0, 1.0] * 4, np.float32)}
    model = module.BaselineRegressor(
        tmp_path, weight_column="weight", optimizer="SGD", config=RunConfig(tf_random_seed=1)
    )
    rows = inputs(LABELS.astype(np.float32), features, batch=5)  # batches of 5, 5 and 2
    model.train(rows, steps=1)
    (bias,) = model.get_variable_value("baseline/bias")
    metrics = model.evaluate(rows)
    errors = (LABELS - bias) ** 2
    weighted = errors * features["weight"]
    parts = [weighted[:5], weighted[5:10], weighted[10:]]
    # `loss` is the mean over the batches of each one's loss; `average_loss` is that of the rows.
    of_batch = np.sum if version == 1 else np.mean
    np.testing.assert_allclose(metrics["loss"], np.mean([of_batch(each) for each in parts]), 1e-5)
    np.testing.assert_allclose(
        metrics["average_loss"], weighted.sum() / features["weight"].sum(), 1e-5
    )


def test_33_estimators_pass_weights_to_head(tmp_path: Path) -> None:
    features = {**FEATURES, "weight": np.array([0.0, 2.0, 1.0] * 4, np.float32)}
    number = [fc.numeric_column("number")]
    weighted: dict[str, Any] = {"model_dir": tmp_path, "weight_column": "weight"}
    kinds = {
        **{name: estimator for name in ("DNN", "Linear", "DNNLinearCombined", "Baseline")},
        **{f"v1 {name}": tf_v1.estimator for name in ("DNN", "Linear", "Baseline")},
    }
    for name, module in kinds.items():
        family = name.removeprefix("v1 ")
        columns = {
            "DNN": {"feature_columns": number, "hidden_units": [2]},
            "Linear": {"feature_columns": number},
            "DNNLinearCombined": {"linear_feature_columns": number},
            "Baseline": {},
        }[family]
        for kind in ("Classifier", "Regressor"):
            model = getattr(module, family + kind)(**columns, **weighted)
            with Graph().as_default():
                built = graphs.Built(model, features, (LABELS > 0).astype(int), ModeKeys.TRAIN)
                weights = built.feed(slice(None))
                assert depends_on(built.spec.loss, next(iter(list(weights)[-2:-1]))), name


def depends_on(target: Any, source: Any) -> bool:
    """Whether a tensor is computed from another one."""
    seen, left = set(), [target]
    while left:
        tensor = left.pop()
        if tensor is source:
            return True
        if tensor.op not in seen:
            seen.add(tensor.op)
            left.extend(tensor.op.inputs)
    return False


@pytest.mark.slow
def test_31_serving_signature_follows_columns(tmp_path: Path) -> None:
    """No placeholders by hand, no weights in requests, keys that come back."""
    towns = fc.categorical_column_with_vocabulary_list("town", ["Rome", "Oslo"])
    columns = [fc.numeric_column("age"), fc.embedding_column(towns, 2)]
    features = {
        "age": np.array([20.0, 60.0, 30.0, 50.0], np.float32),
        "town": np.array(["Rome", "Oslo", "Rome", "Oslo"], object),
        "weight": np.array([1.0, 2.0, 1.0, 0.5], np.float32),
        "key": np.array([7, 8, 9, 10]),
    }
    rows = inputs(np.array([0, 1, 0, 1]), features)
    model = estimator.DNNClassifier([4], columns, tmp_path / "model", weight_column="weight")
    model.train(rows, steps=5)
    served = tf_v1.contrib.estimator.forward_features(model, "key")
    answers = list(served.predict(rows))
    receiver = estimator.export.serving_input_receiver_fn_from_columns(
        columns, forward_features={"key": tf.TensorSpec([None], tf.int64)}
    )
    with tf.load_predictor(served.export_saved_model(tmp_path / "export", receiver)) as predict:
        request = {key: features[key] for key in ("age", "town", "key")}
        found = predict({**request, "town": features["town"][:, None]})
        for key in ("key", "probabilities"):
            wanted = [each[key] for each in answers]
            np.testing.assert_allclose(found[key], wanted, rtol=1e-5)
        del request["age"]
        with pytest.raises(ValueError, match="age"):
            predict(request)
