"""Exports with inputs of variable width: padding, and a bound on executables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.estimator.serving import predictor as predictors
from estimatorkit.estimator.serving.predictor import Predictor, load_predictor
from estimatorkit.estimator.serving.rest_json import predict_inputs


def compilations(predictor: Predictor) -> int:
    return sum(sum(each.state.compilations.values()) for each in predictor._sessions.values())


@pytest.fixture(scope="module")
def by_tags(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier of texts and ids, any number of each."""
    column = tf.feature_column
    columns = [
        column.embedding_column(
            column.categorical_column_with_vocabulary_list("tags", ["a", "b", "c"]), 4
        ),
        column.indicator_column(column.categorical_column_with_identity("ids", 1000)),
    ]

    def input_fn() -> Any:
        tags = [["a", "b", ""], ["c", "", ""]] * 4
        features = {"tags": np.array(tags), "ids": np.array([[1, 2], [3, -1]] * 4)}
        return tf.data.Dataset.from_tensor_slices((features, [0, 1] * 4)).batch(4)

    folder = tmp_path_factory.mktemp("model")
    model = tf.estimator.DNNClassifier([8], columns, model_dir=str(folder / "model"))
    model.train(input_fn, steps=2)
    receiver = tf.estimator.export.serving_input_receiver_fn_from_columns(columns)
    return Path(model.export_saved_model(str(folder / "export"), receiver).decode())


@pytest.mark.slow
def test_widths_are_padded_if_model_ignores_padding(by_tags: Path) -> None:
    with load_predictor(by_tags) as predictor:
        assert predictor.signature().pads == {"ids": -1, "tags": ""}
        for width in range(1, 65):
            inputs = {"tags": [["a", "b"] * width], "ids": [list(range(width))]}
            found = predictor(inputs)["probabilities"]
            wider = {"tags": [["a", "b"] * width + [""] * 7], "ids": [[*range(width), -1, -1]]}
            np.testing.assert_allclose(found, predictor(wider)["probabilities"], rtol=1e-6)
        assert compilations(predictor) <= 14  # powers of two, in pairs


@pytest.mark.slow
def test_rows_of_different_lengths(by_tags: Path) -> None:
    rows: list[Any] = [
        {"tags": ["a"], "ids": [1, 2, 3]},
        {"tags": [], "ids": [4]},
        {"tags": ["b", "c", "a"], "ids": []},
    ]
    with load_predictor(by_tags) as predictor:
        signature = predictor.signature()
        together = predictor(predict_inputs({"instances": rows}, signature)[0])["logits"]
        for row, expected in zip(rows, together, strict=True):
            [alone] = predictor(predict_inputs({"instances": [row]}, signature)[0])["logits"]
            np.testing.assert_allclose(alone, expected, rtol=1e-5)
        with pytest.raises(ValueError, match="input 'ids' is of another kind"):
            predictor({"tags": [["a"]], "ids": [["x"], [1, 2]]})


def by_mean(folder: Path, combine: Any, dtype: Any) -> Path:
    """A model whose output depends on the width of its input."""

    def model_fn(features: Any, mode: str) -> Any:
        weight = tf.get_variable("w", initializer=1.0)
        output = combine(tf.cast(features["x"], tf.float32) * weight)
        step = tf.train.get_global_step().assign_add(1)
        return tf.estimator.EstimatorSpec(mode, {"y": output}, tf.reduce_sum(output), step)

    def receiver() -> Any:
        x = {"x": tf.placeholder(dtype, [None, None])}
        return tf.estimator.export.ServingInputReceiver(x, x)

    model = tf.estimator.Estimator(model_fn, str(folder / "model"))
    model.train(lambda: tf.data.Dataset.from_tensors({"x": np.ones((2, 3))}), steps=1)
    return Path(model.export_saved_model(str(folder / "export"), receiver).decode())


@pytest.mark.parametrize("combine", ["mean", "sum", "size"])
def test_significant_padding_is_not_added(combine: str, tmp_path: Path) -> None:
    functions = {
        "mean": lambda x: tf.reduce_mean(x, 1),
        "sum": lambda x: tf.reduce_sum(x, 1),
        "size": lambda x: tf.reduce_sum(tf.zeros_like(x) + 1, 1),
    }
    folder = by_mean(tmp_path, functions[combine], tf.int64)
    with load_predictor(folder) as predictor:
        assert predictor.signature().pads == {}
        expected = {"mean": 2.0, "sum": 6.0, "size": 3.0}[combine]
        assert predictor({"x": [[1, 2, 3]]})["y"].tolist() == [expected]


@pytest.mark.usefixtures("compiled")
@pytest.mark.slow
def test_executables_per_width_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predictors, "_MOST_EXECUTABLES", 4)
    folder = by_mean(tmp_path, lambda x: tf.reduce_mean(x, 1), tf.float32)
    with load_predictor(folder) as predictor:
        for _ in range(2):
            for width in range(1, 7):
                found = predictor({"x": np.full((1, width), 2.0)})["y"]
                assert found.tolist() == [2.0]
        assert compilations(predictor) == 12  # each was the oldest when its turn came
        predictor({"x": np.ones((1, 3))})
        predictor({"x": np.ones((1, 6))})
        assert compilations(predictor) == 12  # two of the last four
