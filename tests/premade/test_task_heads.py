"""Heads for several labels or tasks, counts and fractions; their exports; errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from estimatorkit.core import builtin_ops, registry
from estimatorkit.core.errors import InvalidArgumentError
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.sparse_tensor import SparseTensor
from estimatorkit.core.variables import Variable
from estimatorkit.estimator.serving.export_outputs import (
    ClassificationOutput,
    PredictOutput,
    RegressionOutput,
)
from estimatorkit.estimator.spec import ModeKeys
from estimatorkit.keras import optimizers as keras_optimizers
from estimatorkit.layers import metrics
from estimatorkit.ops.array import filling, joining
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.variables.variable_collections import (
    global_variables,
    global_variables_initializer,
    local_variables,
)
from estimatorkit.premade.classification_heads import BinaryClassHead, MultiClassHead
from estimatorkit.premade.head import Head
from estimatorkit.premade.multi_head import MultiHead
from estimatorkit.premade.multi_label_head import MultiLabelHead
from estimatorkit.premade.regression_head import (
    LogisticRegressionHead,
    PoissonRegressionHead,
    RegressionHead,
)
from estimatorkit.runtime.session import Session
from estimatorkit.train.checks import step_checks
from estimatorkit.train.global_steps import get_or_create_global_step
from estimatorkit.train.optimizers.optimizers import GradientDescentOptimizer

THREE = np.array([[1.0, -2.0, 0.5], [0.0, 1.0, 2.0], [-1.0, 0.0, 1.0]], np.float32)
ONE = np.array([[0.5], [-1.5], [2.0]], np.float32)


@pytest.fixture(autouse=True)
def graph() -> Any:
    with Graph().as_default() as graph:
        yield graph


def run(fetches: Any, feeds: Any = None) -> Any:
    with Session() as session:
        session.run([variable.initializer for variable in local_variables()])
        return session.run(fetches, feeds)


def cross_entropy(logits: Any, labels: Any) -> Any:
    logits = logits.astype(np.float64)
    return np.maximum(logits, 0) - logits * labels + np.log1p(np.exp(-np.abs(logits)))


def failing_step(head: Head, logits: Any, labels: Any) -> str:
    head.loss(labels, logits)
    check, *_ = step_checks(get_default_graph())[-1:]
    values = [np.asarray(each)[None] for each in run(list(check.tensors))]
    with pytest.raises(InvalidArgumentError) as caught:
        check.check(values)
    return str(caught.value)


# -- several labels

MULTI_HOT = np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0]])


def sparse_labels(values: Any) -> SparseTensor:
    return SparseTensor(np.array([[0, 0], [0, 1], [2, 0]], np.int64), values, [3, 2])


@pytest.mark.parametrize(
    ("labels", "vocabulary"),
    [
        (lambda: MULTI_HOT, None),
        (lambda: MULTI_HOT.astype(bool), None),
        (lambda: MULTI_HOT.astype(np.float32), None),
        (lambda: sparse_labels(np.array([2, 0, 1], np.int32)), None),
        (lambda: sparse_labels(np.array([b"c", b"a", b"b"], object)), ["a", "b", "c"]),
    ],
    ids=["integers", "bools", "floats", "sparse ids", "sparse names"],
)
def test_multi_label_formats(labels: Any, vocabulary: Any) -> None:
    head = MultiLabelHead(3, "w", label_vocabulary=vocabulary)
    weights = np.array([1.0, 2.0, 0.5], np.float32)
    loss = run(head.loss(labels(), THREE, {"w": weights}))
    losses = cross_entropy(THREE, MULTI_HOT).mean(1)
    np.testing.assert_allclose(loss, (losses * weights).sum() / 3, rtol=1e-6)


def test_per_class_metrics_use_vocabulary() -> None:
    names = ["a", "b", "c"]
    head = MultiLabelHead(
        3, label_vocabulary=names, classes_for_class_based_metrics=["c", "a"], name="h"
    )
    metrics = head.update_metrics(head.metrics(), {}, THREE, MULTI_HOT)
    found = run({key: update for key, (_, update) in metrics.items()})
    own = [f"{kind}/{name}" for kind in ("probability_mean", "auc", "auc_precision_recall")
           for name in ("a", "c")]  # fmt: skip
    assert set(found) == {
        f"{key}/h" for key in ("average_loss", "auc", "auc_precision_recall", *own)
    }
    sigmoid = 1 / (1 + np.exp(-THREE.astype(np.float64)))
    np.testing.assert_allclose(found["probability_mean/c/h"], sigmoid[:, 2].mean(), rtol=1e-6)
    predictions = run(head.predictions(THREE))
    assert list(predictions) == ["logits", "probabilities", "classes"]
    assert predictions["classes"].tolist() == [[b"a", b"b", b"c"]] * 3


def test_invalid_multi_labels_raise() -> None:
    head = MultiLabelHead(3)
    text = failing_step(head, THREE, MULTI_HOT * 2)
    assert "expected: labels in [0, 1]" in text
    with pytest.raises(InvalidArgumentError, match=r"with values in \[0, 3\)"):
        run(head.loss(sparse_labels(np.array([2, 3, 1])), THREE))
    for labels, message in (
        (sparse_labels(np.zeros(3, np.float32)), "Labels dtype should be integer"),
        (sparse_labels(np.array([b"a"] * 3, object)), "label_vocabulary="),
        (np.array([["a", "b", "c"]] * 3, object), "strings.split"),
        (np.zeros([3, 2], np.int64), "Expected labels dimension=3.  Received 2"),
    ):
        with pytest.raises(ValueError, match=message):
            head.loss(labels, THREE)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_classes": 1}, "n_classes must be > 1 for multi-label classification. Given: 1"),
        ({"thresholds": [1.0]}, "thresholds must be in (0, 1) range. Given: 1.0"),
        ({"label_vocabulary": {"a": 1}}, "label_vocabulary must be a list or tuple"),
        ({"label_vocabulary": ["a"]}, "Length of label_vocabulary must be n_classes (3). Given: 1"),
        ({"classes_for_class_based_metrics": [3]}, "must be in range [0, 2]. Given: 3"),
        ({"classes_for_class_based_metrics": ["a"]}, "label_vocabulary must be provided"),
        (
            {"label_vocabulary": ["ab", "b", "c"], "classes_for_class_based_metrics": ["bb"]},
            "'bb' is not in list label_vocabulary",
        ),
    ],
)
def test_multi_label_constructor_errors(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        MultiLabelHead(**{"n_classes": 3, **arguments})
    assert message in str(caught.value)


def test_label_indicator_op() -> None:
    row = registry.lookup("LabelIndicator")
    (case,) = row.cases()
    inputs = [builtin_ops.placeholder(each.dtype, each.shape) for each in case.inputs]
    output = registry.output("LabelIndicator", inputs, dict(case.attrs))
    found = run(output, dict(zip(inputs, case.inputs, strict=True)))
    assert output.shape.as_list() == [None, 3]
    np.testing.assert_array_equal(found, case.expected)


# -- counts and fractions


def test_poisson_and_logistic_losses_and_means() -> None:
    counts, fractions = np.array([2.0, 0.0, 5.0]), np.array([0.2, 1.0, 0.0])
    heads = {
        "full": (PoissonRegressionHead(), counts),
        "short": (PoissonRegressionHead(compute_full_loss=False), counts),
        "logistic": (LogisticRegressionHead(), fractions),
    }
    specs = {
        key: head.create_estimator_spec({}, ModeKeys.EVAL, ONE, labels)
        for key, (head, labels) in heads.items()
    }
    loss = run({key: spec.loss for key, spec in specs.items()})
    logits = ONE[:, 0].astype(np.float64)
    poisson = np.exp(logits) - counts * logits
    # Stirling's formula, for counts above 1
    big = np.maximum(counts, 1)
    stirling = np.where(counts > 1, big * np.log(big) - big + 0.5 * np.log(2 * np.pi * big), 0)
    np.testing.assert_allclose(loss["short"], poisson.mean(), rtol=1e-6)
    np.testing.assert_allclose(loss["full"], (poisson + stirling).mean(), rtol=1e-6)
    np.testing.assert_allclose(loss["logistic"], cross_entropy(logits, fractions).mean(), rtol=1e-6)
    for key, link in (("full", np.exp), ("logistic", lambda x: 1 / (1 + np.exp(-x)))):
        found = run(specs[key].predictions)
        assert set(found) == {"predictions", "logits"}
        np.testing.assert_allclose(found["predictions"][:, 0], link(logits), rtol=1e-6)
        assert set(specs[key].eval_metric_ops) == {"average_loss", "label/mean", "prediction/mean"}


def test_fractions_outside_0_and_1_stop_step() -> None:
    assert "labels in [0, 1]" in failing_step(LogisticRegressionHead(), ONE, np.array([0, 1.5, 1]))


# -- several tasks


def tasks(**rest: Any) -> MultiHead:
    heads = [BinaryClassHead(name="a"), RegressionHead(2, name="b")]
    return MultiHead(heads, **rest)


TASK_LABELS = {"a": np.array([1, 0, 1]), "b": np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 0.0]])}


@pytest.mark.parametrize("split", [True, False])
def test_losses_are_weighted_and_outputs_are_prefixed(split: bool) -> None:
    logits = {"a": THREE[:, :1], "b": THREE[:, 1:]} if split else THREE
    head = tasks(head_weights=[2.0, 0.5])
    assert (head.name, head.logits_dimension) == ("a_b", 3)
    spec = head.create_estimator_spec(
        {}, ModeKeys.EVAL, logits, TASK_LABELS, regularization_losses=[filling.ones([]) * 3.0]
    )
    updates = {key: update for key, (_, update) in spec.eval_metric_ops.items()}
    loss, found, predictions = run([spec.loss, updates, spec.predictions])
    first = cross_entropy(THREE[:, 0], TASK_LABELS["a"]).mean()
    second = ((THREE[:, 1:] - TASK_LABELS["b"]) ** 2).mean()
    np.testing.assert_allclose(loss, 2 * first + 0.5 * second + 3, rtol=1e-6)
    np.testing.assert_allclose(found["loss/a"], first, rtol=1e-6)
    np.testing.assert_allclose(found["average_loss/b"], second, rtol=1e-6)
    assert found["regularization_loss/a_b"] == 3.0
    assert {key for key in found if key.endswith("/b")} == {
        *("average_loss/b", "label/mean/b", "loss/b", "prediction/mean/b"),
    }
    np.testing.assert_array_equal(predictions["b", "predictions"], THREE[:, 1:])
    assert ("a", "logistic") in predictions


def test_tasks_train_in_one_step() -> None:
    head = tasks()
    scale = Variable(np.float32(1.0))
    spec = head.create_estimator_spec(
        {}, ModeKeys.TRAIN, THREE * scale, TASK_LABELS, optimizer=GradientDescentOptimizer(0.1)
    )
    with Session() as session:
        session.run(global_variables_initializer())
        losses = [session.run([spec.loss, spec.train_op])[0] for _ in range(3)]
        plan = session.plan([spec.loss, spec.train_op])
    assert losses[0] > losses[1] > losses[2]
    assert [segment.place for segment in plan.segments] == ["device"]


def test_invalid_tasks_raise() -> None:
    head = tasks()
    for labels, logits, message in (
        (TASK_LABELS, THREE[:, :2], r"individual logits dimensions: \[1, 2\]"),
        (TASK_LABELS, {"a": ONE}, r"logits has missing values for head\(s\): \['b'\]"),
        ({"a": ONE}, THREE, r"labels has missing values for head\(s\): \['b'\]"),
        (ONE, THREE, "labels must be a dict"),
    ):
        with pytest.raises(ValueError, match=message):
            head.loss(labels, logits)
    with pytest.raises(ValueError, match="must be the same for different heads"):
        _ = MultiHead(
            [RegressionHead(name="a"), RegressionHead(loss_reduction="sum", name="b")]
        ).loss_reduction
    for arguments, message in (
        (([],), "Must specify heads"),
        (([RegressionHead()],), "must have name specified"),
        (([RegressionHead(name="a")], [1.0, 2.0]), "heads and head_weights must have the same"),
        (([RegressionHead(name="a")] * 2,), "two heads have the same name"),
    ):
        with pytest.raises(ValueError, match=message):
            MultiHead(*arguments)  # type: ignore[arg-type]


# -- what is exported


@pytest.mark.parametrize(
    ("head", "kinds"),
    [
        (BinaryClassHead(), {"classification": "C", "regression": "R"}),
        (MultiClassHead(3), {"classification": "C"}),
        (MultiLabelHead(3), {"classification": "C"}),
        (RegressionHead(3), {"regression": "R"}),
        (PoissonRegressionHead(3), {"regression": "R"}),
        (LogisticRegressionHead(), {"regression": "R"}),
    ],
    ids=lambda each: type(each).__name__,
)
def test_exports_match_tensorflow(head: Head, kinds: dict[str, str]) -> None:
    classes = {"C": ClassificationOutput, "R": RegressionOutput}
    logits = THREE if head.logits_dimension == 3 else ONE
    spec = head.create_estimator_spec({}, ModeKeys.PREDICT, logits)
    outputs = spec.export_outputs
    assert set(outputs) == {"serving_default", "predict", *kinds}
    for key, kind in kinds.items():
        assert type(outputs[key]) is classes[kind]
    assert outputs["serving_default"] is outputs[next(iter(kinds))]
    assert type(outputs["predict"]) is PredictOutput
    assert set(outputs["predict"].outputs) == set(spec.predictions)
    if "classification" in outputs:
        output = outputs["classification"]
        scores, names = run([output.scores, output.classes])
        assert scores.shape == names.shape
        assert names[0].tolist() == [str(n).encode() for n in range(names.shape[1])]


def test_first_of_several_heads_is_served_by_default() -> None:
    spec = tasks().create_estimator_spec({}, ModeKeys.PREDICT, THREE)
    outputs = spec.export_outputs
    assert set(outputs) == {
        *("serving_default", "predict", "a", "a/classification", "a/regression", "a/predict"),
        *("b", "b/regression", "b/predict"),
    }
    assert type(outputs["serving_default"]) is ClassificationOutput
    assert outputs["serving_default"] is outputs["a"]
    assert type(outputs["b"]) is RegressionOutput
    assert {"a/logistic", "b/predictions"} <= set(outputs["predict"].outputs)


def test_exports_only_in_predictions() -> None:
    spec = RegressionHead().create_estimator_spec({}, ModeKeys.EVAL, ONE, ONE)
    assert not spec.export_outputs


# -- heads of one's own


class AbsoluteHead(Head):
    """A user's head, with TensorFlow's methods only."""

    name = "absolute"
    logits_dimension = 1
    loss_reduction = "weighted_sum_over_batch_size"

    def predictions(self, logits: Any, keys: Any = None) -> Any:
        return {"value": logits}

    def loss(
        self,
        labels: Any,
        logits: Any,
        features: Any = None,
        mode: Any = None,
        regularization_losses: Any = None,
    ) -> Any:
        return reduce.reduce_mean(elementwise.abs(labels - logits))

    def update_metrics(
        self,
        eval_metrics: Any,
        features: Any,
        logits: Any,
        labels: Any,
        regularization_losses: Any = None,
    ) -> Any:
        return {**eval_metrics, "error": metrics.mean(elementwise.abs(labels - logits))}


def test_custom_head_needs_only_tensorflow_methods() -> None:
    labels = np.zeros([3, 1], np.float32)
    head = AbsoluteHead()
    both = MultiHead([head, RegressionHead(name="b")])
    logits = joining.concat([ONE, ONE], 1)
    own = head.create_estimator_spec({}, ModeKeys.EVAL, builtin_ops.identity(ONE), labels)
    merged = both.create_estimator_spec({}, ModeKeys.EVAL, logits, {"absolute": labels, "b": ONE})
    served = head.create_estimator_spec({}, ModeKeys.PREDICT, builtin_ops.identity(ONE))
    found = run([own.loss, own.eval_metric_ops["error"][1], merged.loss])
    np.testing.assert_allclose(found, [np.abs(ONE).mean()] * 3, rtol=1e-6)
    assert {"error", "loss/absolute"} <= set(merged.eval_metric_ops)
    assert set(served.export_outputs) == {"serving_default", "predict"}

    class Lossless(AbsoluteHead):
        loss = Head.loss
        update_metrics = Head.update_metrics

    with pytest.raises(NotImplementedError, match="Lossless does not define its loss"):
        Lossless().create_estimator_spec({}, ModeKeys.EVAL, builtin_ops.identity(ONE), labels)


@pytest.mark.parametrize("kind", ["keras", "train", "function"])
def test_every_optimizer_increments_global_step_once(kind: str) -> None:
    scale = Variable(np.float32(1.0), name="scale")
    given: dict[str, Any] = {
        "keras": {"optimizer": keras_optimizers.Adam(0.1)},
        "train": {"optimizer": GradientDescentOptimizer(0.1)},
        "function": {
            "train_op_fn": lambda loss: GradientDescentOptimizer(0.1).minimize(
                loss, global_step=get_or_create_global_step()
            )
        },
    }[kind]
    head = RegressionHead()
    labels = np.zeros([3, 1], np.float32)
    spec = head.create_estimator_spec({}, ModeKeys.TRAIN, ONE * scale, labels, **given)
    with Session() as session:
        session.run(global_variables_initializer())
        losses = [session.run([spec.loss, spec.train_op])[0] for _ in range(3)]
        assert session.run(get_or_create_global_step()) == 3
    assert losses[0] > losses[1] > losses[2]
    counters = [each.op.name for each in global_variables() if each.dtype.is_integer]
    assert counters == ["global_step"]
