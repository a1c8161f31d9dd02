"""Long-standing complaints about `tf.estimator`, each as a test of premade estimators.

Dtypes that do not fit (26), combinations of columns that fail (27), two optimizers that cannot be
saved (28), labels out of range (29), checkpoints after columns have changed (30), what a loss is
(32), weights that metrics ignore (33).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import estimatorkit as tf
import estimatorkit.compat.v1 as tf_v1
from estimatorkit.core import builtin_ops
from estimatorkit.core.errors import InvalidArgumentError, NotFoundError
from estimatorkit.core.graph import Graph
from estimatorkit.data.dataset import Dataset
from estimatorkit.estimator.run_config import RunConfig
from estimatorkit.estimator.spec import ModeKeys
from estimatorkit.ops.variables.variable_collections import local_variables, trainable_variables
from estimatorkit.runtime.session import Session
from estimatorkit.train.global_steps import get_or_create_global_step
from estimatorkit.train.optimizers.optimizers import AdamOptimizer
from tests.premade import model_graphs as graphs
from tests.sweep import sweep

fc = tf.feature_column
estimator = tf.estimator

ROWS = 12
FEATURES: dict[str, Any] = {
    "number": np.linspace(-1, 1, ROWS).astype(np.float32),
    "pair": np.arange(2 * ROWS, dtype=np.float32).reshape(ROWS, 2) / ROWS,
    "word": np.array(["red", "green", "blue", "red"] * 3, object),
    "colour": np.array(["red", "green", "blue", "pink"] * 3, object),
    "words": np.array([["red", "green"], ["blue", ""], ["red", "red"]] * 4, object),
    "factors": np.array([[1.0, 2.0], [0.5, 0.0], [1.0, 3.0]] * 4, np.float32),
    "id": np.arange(ROWS) % 4,
}
LABELS = np.array([0, 1, 2] * 4)


def inputs(
    labels: Any = LABELS, features: dict[str, Any] | None = None, batch: int = 4
) -> Callable[[], Dataset]:
    rows = FEATURES if features is None else features
    return lambda: Dataset.from_tensor_slices((rows, labels)).batch(batch)


# -- 26: dtypes


@pytest.mark.parametrize(
    ("column", "features", "parts"),
    [
        (
            lambda: fc.numeric_column("word"),
            FEATURES,
            ("word", "string", "numeric_column"),
        ),
        (
            lambda: fc.indicator_column(
                fc.categorical_column_with_vocabulary_list("number", ["red", "green"])
            ),
            FEATURES,
            ("number", "float32"),
        ),
        (
            lambda: fc.indicator_column(fc.categorical_column_with_identity("word", 3)),
            FEATURES,
            ("word", "string", "int"),
        ),
        (lambda: fc.numeric_column("numbr"), FEATURES, ("numbr", "did you mean 'number'")),
    ],
)
def test_26_feature_of_wrong_dtype_is_named(
    column: Any, features: Any, parts: tuple[str, ...], tmp_path: Path
) -> None:
    with pytest.raises((ValueError, TypeError, KeyError)) as caught:
        estimator.DNNClassifier([2], [column()], tmp_path, n_classes=3).train(inputs())
    for part in parts:
        assert part in str(caught.value)


# -- 27: every column in every estimator, built, saved and loaded


def categorical() -> dict[str, Any]:
    """Categorical columns of each kind, by name."""
    number = fc.numeric_column("number")
    return {
        "vocabulary": fc.categorical_column_with_vocabulary_list("word", ["red", "green"]),
        "hash": fc.categorical_column_with_hash_bucket("colour", 5),
        "identity": fc.categorical_column_with_identity("id", 4),
        "bucketized": fc.bucketized_column(number, [-0.5, 0.5]),
        "crossed": fc.crossed_column(["word", fc.bucketized_column(number, [0.0])], 7),
        "weighted": fc.weighted_categorical_column(
            fc.categorical_column_with_vocabulary_list("words", ["red", "green", "blue"]),
            "factors",
        ),
        "several": fc.categorical_column_with_hash_bucket("words", 6),
    }


def dense() -> dict[str, list[Any]]:
    """Dense columns of each kind, by name."""
    found: dict[str, list[Any]] = {
        "numeric": [fc.numeric_column("number")],
        "numeric pair": [fc.numeric_column("pair", 2, normalizer_fn=lambda x: x * 2.0)],
        "bucketized": [fc.bucketized_column(fc.numeric_column("number"), [0.0])],
        "shared": fc.shared_embeddings(
            [
                fc.categorical_column_with_hash_bucket("word", 5),
                fc.categorical_column_with_hash_bucket("words", 5),
            ],
            2,
        ),
    }
    for name, column in categorical().items():
        found[f"indicator of {name}"] = [fc.indicator_column(column)]
        found[f"embedding of {name}"] = [fc.embedding_column(column, 2)]
    return found


def made(family: str, wide: list[Any], deep: list[Any], folder: Any) -> Any:
    """A classifier of three classes."""
    common: dict[str, Any] = {"model_dir": folder, "n_classes": 3}
    if family == "DNN":
        return estimator.DNNClassifier([3], deep, **common)
    if family == "Linear":
        return estimator.LinearClassifier(wide, **common)
    return estimator.DNNLinearCombinedClassifier(
        linear_feature_columns=wide, dnn_feature_columns=deep, dnn_hidden_units=[3], **common
    )


FAMILIES = ("DNN", "Linear", "Combined")


@sweep("family", FAMILIES, quick=1)
def test_27_every_column_in_every_estimator_and_mode(family: str, tmp_path: Path) -> None:
    names = [*dense(), *(f"categorical {name}" for name in categorical())]
    built = 0
    for name in names:
        if name.startswith("categorical"):
            wide, deep = [categorical()[name.removeprefix("categorical ")]], []
        else:
            wide = deep = dense()[name]
        if family == "DNN" and not deep:
            continue
        model = made(family, wide, deep, tmp_path)
        found = {}
        for mode in (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT):
            with Graph().as_default():
                graphs.Built(model, FEATURES, LABELS, mode)
                found[mode] = {each.op.name: each.shape.as_list() for each in trainable_variables()}
            built += 1
        assert found[ModeKeys.TRAIN] == found[ModeKeys.EVAL] == found[ModeKeys.PREDICT]
        assert found[ModeKeys.TRAIN]
    assert built == 3 * (len(dense()) + (0 if family == "DNN" else len(categorical())))


@pytest.mark.slow
def test_27_all_columns_are_saved_and_loaded(tmp_path: Path) -> None:
    def model() -> Any:
        deep = [column for columns in dense().values() for column in columns]
        wide = [*categorical().values(), fc.numeric_column("pair", 2)]
        return made("Combined", wide, deep, tmp_path)

    model().train(inputs(batch=ROWS))
    rows = list(model().predict(inputs(batch=ROWS)))
    model().train(inputs(batch=ROWS))
    saved = {name: model().get_variable_value(name) for name in model().get_variable_names()}
    assert saved["global_step"] == 2
    tables = [name for name in saved if name.endswith(("weights", "embedding"))]
    assert len(tables) == 1 + 7 + 7 + 2  # shared; embeddings; linear, pair and bias
    np.testing.assert_allclose([row["probabilities"].sum() for row in rows], 1.0, rtol=1e-6)


# -- 28: two optimizers


@pytest.mark.slow
def test_28_two_optimizers_resume_bit_for_bit(tmp_path: Path) -> None:
    def model(folder: str) -> Any:
        return estimator.DNNLinearCombinedClassifier(
            str(tmp_path / folder),
            linear_feature_columns=[categorical()["hash"]],
            linear_optimizer=lambda: AdamOptimizer(0.05),
            dnn_feature_columns=[fc.numeric_column("number")],
            dnn_optimizer=lambda: AdamOptimizer(0.01),
            dnn_hidden_units=[3],
            n_classes=3,
            config=RunConfig(tf_random_seed=3),
        )

    def endless() -> Dataset:
        return inputs()().repeat()

    whole, halves = model("whole"), model("halves")
    whole.train(endless, steps=6)
    halves.train(endless, steps=3)
    model("halves").train(endless, steps=3)
    names = whole.get_variable_names()
    assert names == halves.get_variable_names()
    assert "linear/linear_model/colour/weights/Adam_1" in names
    assert "dnn/hiddenlayer_0/kernel/Adam_1" in names
    # Each optimizer has its own powers of beta; the step is counted once.
    powers = [name for name in names if name.startswith("beta1_power")]
    assert [halves.get_variable_value(name) for name in powers] == pytest.approx([0.9**7] * 2)
    assert halves.get_variable_value("global_step") == 6
    for name in names:
        np.testing.assert_array_equal(
            whole.get_variable_value(name), halves.get_variable_value(name), err_msg=name
        )


# -- 29: labels out of range


@sweep("family", ["DNN", "Linear", "Combined", "Baseline"], quick=2)
def test_29_labels_from_1_are_named_with_range(family: str, tmp_path: Path) -> None:
    number = [fc.numeric_column("number")]
    model = (
        estimator.BaselineClassifier(tmp_path, n_classes=3)
        if family == "Baseline"
        else made(family, number, number, tmp_path)
    )
    with pytest.raises(InvalidArgumentError) as caught:
        model.train(inputs(LABELS + 1))
    for part in ("labels in [0, 2], n_classes=3", "minimum 1, maximum 3", "subtract 1"):
        assert part in str(caught.value)


# -- 30: columns that have changed since


@sweep(
    ("family", "then", "now", "said"),
    [
        ("DNN", ["number"], ["number", "pair"], "feature columns of 'dnn' changed: added ['pair']"),
        (
            "Linear",
            ["number", "pair"],
            ["number", "id"],
            "feature columns of 'linear' changed: added ['id'], removed ['pair']",
        ),
        ("Combined", ["number", "id"], ["number"], "columns of 'dnn' changed: removed ['id']"),
    ],
    quick=1,
)
def test_30_checkpoint_of_other_columns_lists_changes(
    family: str, then: list[str], now: list[str], said: str, tmp_path: Path
) -> None:
    def model(keys: list[str]) -> Any:
        columns = [fc.numeric_column(key, 2 if key == "pair" else 1) for key in keys]
        return made(family, columns, columns, tmp_path)

    model(then).train(inputs(), steps=1)
    for run in (lambda: model(now).train(inputs(), steps=1), lambda: model(now).evaluate(inputs())):
        with pytest.raises((InvalidArgumentError, NotFoundError)) as caught:
            run()
        assert said in str(caught.value)
        assert "Use another model_dir" in str(caught.value)


@pytest.mark.slow
def test_30_table_of_other_size_names_column(tmp_path: Path) -> None:
    def model(size: int) -> Any:
        words = fc.categorical_column_with_hash_bucket("word", size)
        return made("DNN", [], [fc.embedding_column(words, 2)], tmp_path)

    model(5).train(inputs(), steps=1)
    with pytest.raises(InvalidArgumentError, match=r"word_embedding/embedding_weights +\(6, 2\)"):
        model(6).train(inputs(), steps=1)


# -- 32: what a loss is


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


# -- 33: a weight of n is an example n times

TIMES = 16  # rows after repeating: the same for all examples, so that all is compiled once


def heads(weight_column: str | None) -> dict[str, tuple[Any, Any]]:
    """Each kind of head with its labels, by name; all weighted by the same feature."""
    random = np.random.default_rng(1)
    bits = random.integers(0, 2, ROWS)
    numbers = random.normal(size=(ROWS, 2)).astype(np.float32)
    more: dict[str, Any] = {"weight_column": weight_column, "loss_reduction": "sum"}
    many = random.integers(0, 2, (ROWS, 3))
    return {
        "binary": (estimator.BinaryClassHead(thresholds=[0.4], **more), bits),
        "version 1": (_version_1_head(more), bits),
        "classes": (estimator.MultiClassHead(3, **more), LABELS),
        "labels": (
            estimator.MultiLabelHead(
                3, thresholds=[0.5], classes_for_class_based_metrics=[1], **more
            ),
            many,
        ),
        "numbers": (estimator.RegressionHead(2, **more), numbers),
        "counts": (estimator.PoissonRegressionHead(1, **more), bits * 3),
        "fractions": (estimator.LogisticRegressionHead(**more), bits * 0.5),
    }


def _version_1_head(more: dict[str, Any]) -> Any:
    from estimatorkit.premade.classification_heads import classification_head

    return classification_head(2, more["weight_column"], None, more["loss_reduction"], 1)


class Evaluations:
    """The losses and metrics of all heads on given logits, in one graph."""

    def __init__(self, rows: int, weight_column: str | None) -> None:
        self.graph = Graph()
        with self.graph.as_default():
            get_or_create_global_step()
            self.weights = builtin_ops.placeholder("float32", [rows])
            self.logits = builtin_ops.placeholder("float32", [rows, 3])
            self.labels: dict[str, Any] = {}
            self.fetches: dict[str, Any] = {}
            for name, (head, labels) in heads(weight_column).items():
                self.labels[name] = builtin_ops.placeholder(labels.dtype, [rows, *labels.shape[1:]])
                spec = head.create_estimator_spec(
                    {"w": self.weights},
                    ModeKeys.EVAL,
                    self.logits[:, : head.logits_dimension],
                    self.labels[name],
                )
                updates = {key: update for key, (_, update) in spec.eval_metric_ops.items()}
                self.fetches[name] = {"loss": spec.loss, **updates}
            self.initializers = [each.initializer for each in local_variables()]
        self.session = Session(graph=self.graph)

    def run(self, rows: Any, logits: Any, weights: Any) -> dict[str, dict[str, float]]:
        """Loss and metrics by head, of these rows."""
        labels = {key: values for key, (_, values) in heads(None).items()}
        feeds = {self.labels[key]: labels[key][rows] for key in labels}
        feeds |= {self.logits: logits[rows], self.weights: weights[rows]}
        self.session.run(self.initializers)
        found: dict[str, dict[str, float]] = self.session.run(self.fetches, feeds)
        return found


@pytest.mark.slow
def test_33_weight_n_equals_n_examples_in_every_head() -> None:
    weighted, repeated = Evaluations(ROWS, "w"), Evaluations(TIMES, None)

    @settings(max_examples=15, deadline=None, derandomize=True, database=None)
    @given(st.lists(st.integers(0, ROWS - 1), min_size=TIMES, max_size=TIMES), st.integers(0, 9))
    def check(drawn: list[int], seed: int) -> None:
        weights = np.bincount(drawn, minlength=ROWS).astype(np.float32)
        logits = np.random.default_rng(seed).normal(size=(ROWS, 3)).astype(np.float32)
        found = weighted.run(np.arange(ROWS), logits, weights)
        expected = repeated.run(np.array(drawn), logits, np.ones(ROWS, np.float32))
        for head, values in expected.items():
            assert set(found[head]) == set(values)
            for key, value in values.items():
                np.testing.assert_allclose(
                    found[head][key], value, rtol=2e-5, atol=1e-6, err_msg=f"{head} {key}"
                )

    check()


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
