"""Sequence heads against the same heads on unmasked steps; recurrent estimators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.core import builtin_ops
from estimatorkit.core.graph import Graph
from estimatorkit.core.sparse_tensor import SparseTensor
from estimatorkit.data.dataset import Dataset
from estimatorkit.estimator.spec import ModeKeys
from estimatorkit.ops.variables.variable_collections import local_variables
from estimatorkit.premade.rnn import RNNClassifier, RNNEstimator
from estimatorkit.premade.sequential_head import SequentialHeadWrapper
from estimatorkit.runtime.session import Session
from estimatorkit.train.checks import step_checks
from tests.sweep import sweep

RANDOM = np.random.default_rng(4)
MASK = np.array([[1, 1, 1], [1, 0, 0], [1, 1, 0], [0, 0, 0]], bool)
LOGITS = RANDOM.normal(size=(4, 3, 3)).astype(np.float32)
WEIGHTS = RANDOM.uniform(0.5, 2, (4, 3)).astype(np.float32)
COUNTS = RANDOM.integers(0, 3, (4, 3))
estimator = tf.estimator


@pytest.fixture(autouse=True)
def graph() -> Any:
    with Graph().as_default() as graph:
        yield graph


def updates_of(head: Any, logits: Any, labels: Any, features: Any) -> dict[str, Any]:
    """The loss and the updates of the metrics of one batch."""
    spec = head.create_estimator_spec(features, ModeKeys.EVAL, logits, labels)
    return {"loss": spec.loss, **{key: up for key, (_, up) in spec.eval_metric_ops.items()}}


def run(fetches: Any) -> Any:
    with Session() as session:
        session.run([variable.initializer for variable in local_variables()])
        return session.run(fetches)


KINDS: dict[str, tuple[Any, Any]] = {
    "binary": (lambda **more: estimator.BinaryClassHead(thresholds=[0.5], **more), COUNTS % 2),
    "classes": (lambda **more: estimator.MultiClassHead(3, **more), COUNTS),
    "names": (
        lambda **more: estimator.MultiClassHead(3, label_vocabulary=["a", "b", "c"], **more),
        np.array(["a", "b", "c"], object)[COUNTS],
    ),
    "numbers": (lambda **more: estimator.RegressionHead(2, **more), LOGITS[..., 1:] * 2),
}


@sweep("reduction", ["sum_over_batch_size", "sum", "mean"], quick=1)
def test_padding_is_ignored(reduction: str) -> None:
    fetches: dict[str, Any] = {}
    for kind, (make, labels) in KINDS.items():
        plain = make(weight_column="w", loss_reduction=reduction)
        head = SequentialHeadWrapper(plain, "mask", "w")
        assert head.logits_dimension == plain.logits_dimension
        assert head.loss_reduction == plain.loss_reduction
        padded = labels.copy()
        padded[~MASK] = "?" if labels.dtype == object else -7
        logits = LOGITS[..., : plain.logits_dimension]
        fetches[kind] = (
            updates_of(head, logits, padded, {"mask": MASK, "w": WEIGHTS}),
            updates_of(plain, logits[MASK], labels[MASK], {"w": WEIGHTS[MASK]}),
        )
    for kind, (found, expected) in run(fetches).items():
        assert set(found) == set(expected)
        for key, value in expected.items():
            np.testing.assert_allclose(
                found[key], value, rtol=1e-5, atol=1e-6, err_msg=f"{kind} {key}"
            )


def test_sparse_labels_and_masked_predictions() -> None:
    head = SequentialHeadWrapper(estimator.MultiClassHead(3, name="h"), "mask")
    assert head.name == "h_sequential"
    indices = np.argwhere(MASK)
    sparse = SparseTensor(indices, COUNTS[MASK], [4, 3])
    spec = head.create_estimator_spec({"mask": MASK}, ModeKeys.PREDICT, LOGITS)
    updates = [updates_of(head, LOGITS, each, {"mask": MASK}) for each in (sparse, COUNTS)]
    first, second, predictions = run([*updates, spec.predictions])
    assert first == second
    np.testing.assert_array_equal(predictions["mask"], MASK)
    assert predictions["class_ids"].shape == (4, 3, 1)
    assert predictions["all_class_ids"].shape == predictions["all_classes"].shape == (4, 3)
    assert set(spec.export_outputs) == {"serving_default", "classification", "predict"}


def test_sparse_labels_must_match_unmasked_steps(graph: Graph) -> None:
    """TensorFlow says so; a label that was missing would count as class 0."""
    head = SequentialHeadWrapper(estimator.MultiClassHead(3), "mask")
    places = np.argwhere(MASK)
    for indices in (places, places[1:], np.concatenate([places, [[3, 0]]])):
        sparse = SparseTensor(indices, np.ones(len(indices), np.int64), [4, 3])
        updates_of(head, LOGITS, sparse, {"mask": MASK})
    checks = [each for each in step_checks(graph) if "steps" in each.check.__qualname__]
    right, missing, more = run([each.tensors for each in checks])
    for one, counts in zip(checks, (right, missing, more), strict=True):
        values = [np.atleast_1d(count) for count in counts]
        if counts is right:
            one.check(values)
            continue
        with pytest.raises(tf.errors.InvalidArgumentError, match="1 differing steps in a batch"):
            one.check(values)


def test_invalid_wrappers_raise() -> None:
    plain = estimator.RegressionHead(name="a")
    with pytest.raises(ValueError, match="`MultiHead` is not supported"):
        SequentialHeadWrapper(estimator.MultiHead([plain]))
    with pytest.raises(TypeError, match="Column must a string"):
        SequentialHeadWrapper(plain, 3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="iterable of strings"):
        SequentialHeadWrapper(plain, "mask", 3)  # type: ignore[arg-type]
    head = SequentialHeadWrapper(plain, "mask", "w")
    one = LOGITS[..., :1]
    for features, message in (
        ({}, "key `mask` should be included"),
        ({"mask": MASK}, "`w` column expected in features"),
        ({"mask": MASK[0], "w": WEIGHTS}, "Mask is expected to have two dimensions, got 1"),
        ({"mask": MASK, "w": WEIGHTS[0]}, "at least 2 dimensions, got 1"),
    ):
        with pytest.raises(ValueError, match=message):
            head.loss(one, one, features)


# -- recurrent estimators

COLUMN = tf.feature_column.sequence_numeric_column("x")


def test_cells_from_function_or_class(tmp_path: Path) -> None:
    cells = {
        "function": {"rnn_cell_fn": lambda: tf_cell(3)},
        "class": {"units": [3], "cell_type": tf_cell},
    }
    names = {}
    for key, arguments in cells.items():
        model = RNNEstimator(
            estimator.RegressionHead(),
            [tf.feature_column.embedding_column(token(), 2)],
            model_dir=str(tmp_path / key),
            **arguments,
        )
        with Graph().as_default() as graph:
            features = {"t": builtin_ops.placeholder("int64", [None, 4])}
            model.model_fn(features, None, ModeKeys.PREDICT, model.config)
            names[key] = [each.op.name for each in graph.get_collection("variables")]
    assert names["function"] == names["class"]
    assert "rnn_model/rnn/gru_cell/recurrent_kernel" in names["class"]


def tf_cell(units: int) -> Any:
    from estimatorkit.keras.layers import GRUCell

    return GRUCell(units)


def token() -> Any:
    return tf.feature_column.sequence_categorical_column_with_identity("t", 5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RNNClassifier([COLUMN]), "units must be a positive int, or a list"),
        (lambda: RNNClassifier([COLUMN], units=[3, 0]), "units must be a positive int, or a list"),
        (lambda: RNNClassifier([COLUMN], units=[3], cell_type="ltsm"), "did you mean 'lstm'"),
        (
            lambda: RNNClassifier([COLUMN], units=[3], rnn_cell_fn=lambda: None),
            "units and cell_type must not be specified when using rnn_cell_fn",
        ),
        (
            lambda: RNNEstimator(
                estimator.RegressionHead(), [COLUMN], units=[3], return_sequences=True
            ),
            "Provided head must be a `_SequentialHead` object",
        ),
    ],
)
def test_invalid_arguments_raise(make: Any, message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        make()
    assert message in str(caught.value)


@pytest.mark.slow
def test_recurrent_classifier_learns_and_reloads(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    tokens = random.integers(1, 5, (64, 6))
    tokens[np.arange(6) >= random.integers(1, 7, 64)[:, None]] = -1
    labels = (tokens == 3).any(1).astype(np.int64)

    def model() -> RNNClassifier:
        return RNNClassifier(
            [tf.feature_column.embedding_column(token(), 3)],
            units=8,
            cell_type="gru",
            optimizer=lambda: tf.train.AdamOptimizer(0.05),
            model_dir=str(tmp_path),
            config=estimator.RunConfig(tf_random_seed=1),
        )

    def input_fn() -> Dataset:
        return Dataset.from_tensor_slices(({"t": tokens}, labels)).batch(64)

    model().train(lambda: input_fn().repeat(), steps=100)
    metrics = model().evaluate(input_fn)
    assert metrics["accuracy"] > 0.95
    assert metrics["global_step"] == 100


def test_head_with_own_loss_is_refused() -> None:
    kind = type("Own", (estimator.RegressionHead,), {"loss": lambda self, *args: 0.0})
    with pytest.raises(ValueError, match="does not call loss of Own"):
        SequentialHeadWrapper(kind())
