"""Forests as arrays: what the graph computes of them is what YDF predicts, also with gaps."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
import ydf

import estimatorkit as tf
from estimatorkit.premade import forest_fit
from estimatorkit.premade.forest import Forest, _Nodes, forest_logits, forest_variables
from estimatorkit.premade.forest_fit import Fitted, Growth, fit
from tests.slides.data import data_dir

LOSSES = {0: "SQUARED_ERROR", 2: "BINOMIAL_LOG_LIKELIHOOD"}
DEPTH = 5


def fitted(
    rows: Any, labels: Any, inputs: list[int], classes: int, depth: int = DEPTH
) -> tuple[Fitted, Any]:
    """A forest, and YDF's model of it."""
    models = []
    train = ydf.GradientBoostedTreesLearner.train
    with pytest.MonkeyPatch.context() as patch:

        def kept(*args: Any, **kwargs: Any) -> Any:
            models.append(train(*args, **kwargs))
            return models[-1]

        patch.setattr(ydf.GradientBoostedTreesLearner, "train", kept)
        growth = Growth(20, depth, 0.2, 0.0, 0.5, 5, 0.0)
        loss = LOSSES.get(classes, "MULTINOMIAL_LOG_LIKELIHOOD")
        found = fit(rows, labels, None, inputs, classes, loss, growth, 1)
    return found, models[0]


def walked(forest: Forest, rows: Any) -> Any:
    """The logits, by the graph."""
    with tf.Graph().as_default(), tf.Session() as session:
        inputs = forest.inputs.tolist()
        variables = forest_variables(len(forest.bias), inputs, len(forest.splits))
        logits = forest_logits(variables, tf.constant(rows), inputs)
        session.run(tf.global_variables_initializer())
        for variable, value in zip(variables, forest, strict=True):
            variable.load(value, session)
        return session.run(logits)


def check_against_ydf(
    rows: Any, labels: Any, tested: Any, inputs: list[int], classes: int, depth: int = DEPTH
) -> None:
    found, model = fitted(rows, labels, inputs, classes, depth)
    columns = [
        forest_fit._as_words(column, count) if count else column
        for column, count in zip(tested.T, inputs, strict=True)
    ]
    if classes:
        model.set_output_logits(True)
    want = model.predict({f"x{number}": column for number, column in enumerate(columns)})
    logits = walked(found.forest, tested)
    np.testing.assert_allclose(logits, want.reshape(logits.shape), rtol=2e-6, atol=2e-6)
    gains = dict.fromkeys((f"x{number}" for number in range(len(inputs))), 0.0)
    for place, gain in zip(found.forest.feature, found.forest.gain, strict=True):
        gains[f"x{place}"] += gain
    for gain, name in model.variable_importances()["SUM_SCORE"]:
        assert gains[name] == pytest.approx(gain, rel=1e-4)


@pytest.mark.parametrize("classes", [0, 2, 4])
@pytest.mark.parametrize("inputs", [[0, 0, 0], [0, 30, 3], [5000, 0, 0]])
def test_graph_computes_what_ydf_predicts(inputs: list[int], classes: int) -> None:
    random = np.random.default_rng(classes)
    rows = random.normal(size=(900, len(inputs))).astype(np.float32)
    for number, count in enumerate(inputs):
        if count:  # some categories are rare, and some come later only
            rows[:, number] = np.floor(count * random.random(900) ** 2)
    truth = np.sin(rows[:, 0] * 2) + (rows[:, 1] % 3) - rows[:, 2]
    rows[random.random(rows.shape) < 0.2] = np.nan
    edges = np.quantile(truth, np.arange(1, max(classes, 2)) / max(classes, 2))
    labels = np.searchsorted(edges, truth) if classes else truth.astype(np.float32)
    check_against_ydf(rows[:600], labels[:600], rows, inputs, classes)


@pytest.mark.parametrize(("depth", "word"), [(25, tf.int32), (26, tf.int64)])
def test_nodes_have_room_for_deep_trees(depth: int, word: tf.DType) -> None:
    random = np.random.default_rng(depth)
    rows = random.normal(size=(900, 5)).astype(np.float32)
    rows[:, 1] = np.floor(40 * random.random(900))
    rows[random.random(rows.shape) < 0.2] = np.nan
    inputs = [0, 40, 0, 0, 0]
    labels = random.normal(size=900).astype(np.float32)
    with tf.Graph().as_default():
        assert _Nodes.of(forest_variables(1, inputs, depth), inputs).packed.dtype == word
    check_against_ydf(rows[:600], labels[:600], rows, inputs, 0, depth)


def test_classes_that_never_come_are_improbable() -> None:
    rows = np.linspace(0, 1, 100, dtype=np.float32)[:, None]
    found, _ = fitted(rows, np.where(rows[:, 0] > 0.5, 3, 1), [0], 4)
    assert set(walked(found.forest, rows).argmax(axis=1)) == {1, 3}


def test_infinite_numbers_and_a_single_row() -> None:
    rows = np.linspace(0, 1, 100, dtype=np.float32)[:, None]
    found, _ = fitted(rows, rows[:, 0], [0], 0)
    low, high = walked(found.forest, np.array([[-np.inf], [np.inf]], np.float32))[:, 0]
    ends = walked(found.forest, rows)[[0, -1], 0]
    np.testing.assert_array_equal([low, high], ends)


def test_importing_ydf_leaves_logging_alone() -> None:
    handlers = list(logging.root.handlers)
    fitted(np.zeros((10, 1), np.float32), np.arange(10.0), [0], 0)
    assert logging.root.handlers == handlers


def test_interrupted_growth_is_not_a_forest() -> None:
    def interrupted(*_: Any, **__: Any) -> Any:
        raise ValueError("INVALID_ARGUMENT: Operation interrupted by user")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ydf.GradientBoostedTreesLearner, "train", interrupted)
        with pytest.raises(KeyboardInterrupt):
            fitted(np.zeros((10, 1), np.float32), np.arange(10.0), [0], 0)


TABLES = {"automobile": "price", "abalone": "rings", "census": "income_bracket"}


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_tables(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESTIMATORKIT_DATA_DIR", str(data_dir(name).parent))
    found = getattr(tf.datasets, name).load_data()
    frame = (found[0] if isinstance(found, tuple) else found).replace("?", None)
    frame = frame.dropna(subset=TABLES[name])
    labels = frame.pop(TABLES[name])
    words = [frame[key].dtype.kind not in "iuf" for key in frame]
    codes = {key: frame[key].astype("category").cat for key in frame}
    columns = [
        codes[key].codes.replace(-1, np.nan) if is_word else frame[key]
        for key, is_word in zip(frame, words, strict=True)
    ]
    inputs = [
        len(codes[key].categories) if is_word else 0
        for key, is_word in zip(frame, words, strict=True)
    ]
    rows = np.stack([column.to_numpy(np.float32) for column in columns], axis=1)
    classes = 2 if name == "census" else 0
    target = (labels == ">50K") if classes else labels
    half = len(rows) // 2
    check_against_ydf(rows[:half], target.to_numpy(np.float32)[:half], rows, inputs, classes)
