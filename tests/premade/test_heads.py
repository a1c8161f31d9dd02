"""Heads on given logits: losses, metrics and predictions against NumPy, step checks, and errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from estimatorkit.core import builtin_ops, registry
from estimatorkit.core.conversion import constant
from estimatorkit.core.errors import InvalidArgumentError
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.sparse_tensor import SparseTensorValue
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.estimator.spec import EstimatorSpec, ModeKeys
from estimatorkit.keras.optimizers.optimizer import Optimizer as KerasOptimizer
from estimatorkit.layers.feature_column import numeric_column
from estimatorkit.ops.array import filling
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.variables.variable_collections import (
    global_variables_initializer,
    local_variables,
)
from estimatorkit.premade.classification_heads import BinaryClassHead, MultiClassHead
from estimatorkit.premade.head import Head
from estimatorkit.premade.multi_label_head import MultiLabelHead
from estimatorkit.premade.regression_head import RegressionHead
from estimatorkit.runtime.session import Session
from estimatorkit.train.checks import step_checks
from estimatorkit.train.global_steps import get_global_step
from estimatorkit.train.optimizers.optimizers import GradientDescentOptimizer

THREE = np.array([[1.0, -2.0, 0.5], [0.0, 1.0, 2.0], [-1.0, 0.0, 1.0]], np.float32)
ONE = np.array([[0.5], [-1.5], [2.0]], np.float32)
WEIGHTS = np.array([1.0, 2.0, 0.5], np.float32)
BINARY_KEYS = {
    *("accuracy", "accuracy_baseline", "auc", "auc_precision_recall", "average_loss"),
    *("label/mean", "precision", "prediction/mean", "recall"),
}


@pytest.fixture(autouse=True)
def graph() -> Any:
    with Graph().as_default() as graph:
        yield graph


def run(fetches: Any, feeds: Any = None) -> Any:
    with Session() as session:
        session.run([variable.initializer for variable in local_variables()])
        return session.run(fetches, feeds)


def evaluated(
    head: Head, logits: Any, labels: Any, features: Mapping[str, Any] | None = None, **rest: Any
) -> tuple[Any, dict[str, Any]]:
    """The loss and the metrics of one batch."""
    spec = head.create_estimator_spec(features or {}, ModeKeys.EVAL, logits, labels, **rest)
    updates = {key: update for key, (_, update) in spec.eval_metric_ops.items()}
    loss, values = run([spec.loss, updates])
    return loss, values


def check_steps(values: Mapping[Tensor, Any] | None = None) -> None:
    """What the loop does: fetches the checks' tensors and calls the checks."""
    for check in step_checks(get_default_graph()):
        check.check([np.asarray(each)[None] for each in run(list(check.tensors), values)])


def cross_entropies(logits: Any, labels: Any) -> Any:
    return np.log(np.exp(logits).sum(1)) - logits[np.arange(len(labels)), labels]


# -- losses and metrics


@pytest.mark.parametrize("shape", [(3,), (3, 1)])
def test_multi_class_loss_and_metrics(shape: tuple[int, ...]) -> None:
    labels = np.array([0, 2, 0])
    losses = cross_entropies(THREE.astype(np.float64), labels)
    head = MultiClassHead(3, weight_column="w")
    loss, metrics = evaluated(head, THREE, labels.reshape(shape), {"w": WEIGHTS.reshape(shape)})
    np.testing.assert_allclose(loss, (losses * WEIGHTS).sum() / 3, rtol=1e-6)
    assert set(metrics) == {"accuracy", "average_loss"}
    np.testing.assert_allclose(metrics["accuracy"], 3 / 3.5, rtol=1e-6)
    np.testing.assert_allclose(
        metrics["average_loss"], np.average(losses, weights=WEIGHTS), rtol=1e-6
    )


@pytest.mark.parametrize(
    ("reduction", "divisor"),
    [("sum", 1.0), ("SUM_OVER_BATCH_SIZE", 3.0), ("auto", 3.0), ("mean", 3.5)],
)
def test_loss_reductions(reduction: str, divisor: float) -> None:
    labels = np.array([0, 2, 0])
    head = MultiClassHead(3, weight_column=numeric_column("w"), loss_reduction=reduction)
    total = (cross_entropies(THREE, labels) * WEIGHTS).sum()
    np.testing.assert_allclose(
        run(head.loss(labels, THREE, {"w": WEIGHTS})), total / divisor, rtol=1e-6
    )


def test_binary_metrics_match_tensorflow() -> None:
    head = BinaryClassHead(thresholds=[0.25, 0.5], name="h")
    labels = np.array([1, 1, 0])
    loss, metrics = evaluated(head, ONE, labels, regularization_losses=[filling.ones([])])
    at = {
        f"{key}/positive_threshold_{t}"
        for key in ("accuracy", "precision", "recall")
        for t in (0.25, 0.5)
    }
    assert set(metrics) == {f"{key}/h" for key in BINARY_KEYS | at | {"regularization_loss"}}
    logistic = 1 / (1 + np.exp(-ONE[:, 0].astype(np.float64)))
    losses = -np.log(np.where(labels == 1, logistic, 1 - logistic))
    expected = {
        "average_loss/h": losses.mean(),
        "accuracy/h": 1 / 3,
        "accuracy_baseline/h": 2 / 3,
        "precision/h": 1 / 2,
        "recall/h": 1 / 2,
        "prediction/mean/h": logistic.mean(),
        "label/mean/h": 2 / 3,
        "regularization_loss/h": 1.0,
        "recall/positive_threshold_0.25/h": 1 / 2,
        "precision/positive_threshold_0.5/h": 1 / 2,
    }
    for key, value in expected.items():
        np.testing.assert_allclose(metrics[key], value, rtol=1e-6, err_msg=key)
    np.testing.assert_allclose(loss, losses.mean() + 1.0, rtol=1e-6)


@pytest.mark.parametrize(
    "labels",
    [np.array([1, 0, 1], np.int32), np.array([True, False, True]), np.array([1.0, 0.0, 1.0])],
)
def test_binary_label_dtypes(labels: Any) -> None:
    expected = np.log1p(np.exp([-0.5, -1.5, -2.0])).mean()
    np.testing.assert_allclose(run(BinaryClassHead().loss(labels, ONE)), expected, rtol=1e-6)
    check_steps()


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16, np.uint32])
def test_multi_class_label_dtypes(dtype: Any) -> None:
    """MNIST's are bytes; TensorFlow's cross-entropy refuses them."""
    logits = np.array([[1.0, 2.0, 3.0], [3.0, 1.0, 0.0]], np.float32)
    losses = [run(MultiClassHead(3).loss(np.array([2, 1], of), logits)) for of in (dtype, np.int64)]
    assert losses[0] == losses[1]
    check_steps()


def test_regression_loss_and_metrics_with_weight_per_label() -> None:
    logits = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    labels = np.array([[0, 2], [5, 1]])
    weights = np.array([[1.0, 2.0], [0.5, 1.0]], np.float32)
    head = RegressionHead(2, weight_column=numeric_column("w", 2))
    loss, metrics = evaluated(head, logits, labels, {"w": weights})
    errors = (logits - labels) ** 2
    np.testing.assert_allclose(loss, (errors * weights).sum() / 4)
    assert set(metrics) == {"average_loss", "label/mean", "prediction/mean"}
    for key, values in (
        ("average_loss", errors),
        ("label/mean", labels),
        ("prediction/mean", logits),
    ):
        np.testing.assert_allclose(metrics[key], np.average(values, weights=weights), rtol=1e-6)


@pytest.mark.parametrize("kind", ["binary", "multi", "regression"])
def test_weight_n_equals_n_examples(kind: str) -> None:
    random = np.random.default_rng(3)
    weights = random.integers(0, 4, 12)
    head, width = {
        "binary": (BinaryClassHead("w", loss_reduction="sum"), 1),
        "multi": (MultiClassHead(3, "w", loss_reduction="sum"), 3),
        "regression": (RegressionHead(1, "w", loss_reduction="sum"), 1),
    }[kind]
    logits = random.normal(size=(12, width)).astype(np.float32)
    labels = random.integers(0, 2, 12)
    weighted = evaluated(head, logits, labels, {"w": weights})
    with Graph().as_default():
        repeated = [np.repeat(each, weights, 0) for each in (logits, labels)]
        plain = evaluated(head, *repeated, {"w": np.ones(weights.sum(), np.float32)})
    np.testing.assert_allclose(weighted[0], plain[0], rtol=1e-5)
    for key, value in plain[1].items():
        np.testing.assert_allclose(weighted[1][key], value, rtol=1e-5, err_msg=key)


def test_loss_fn_gets_requested_arguments() -> None:
    def loss_fn(labels: Any, logits: Any, features: Any, loss_reduction: str) -> Any:
        assert loss_reduction == "weighted_sum"
        return elementwise.abs(logits - labels) * features["scale"]

    head = RegressionHead(loss_fn=loss_fn, loss_reduction="sum", inverse_link_fn=elementwise.exp)
    loss = head.loss(np.zeros(3, np.float32), ONE, {"scale": np.float32(2)})
    predictions = head.predictions(ONE)
    loss_value, found = run([loss, predictions])
    assert loss_value == 8.0
    np.testing.assert_allclose(found["predictions"], np.exp(ONE), rtol=1e-6)
    np.testing.assert_array_equal(found["logits"], ONE)
    mean = RegressionHead(loss_fn=lambda labels, logits: reduce.reduce_mean(logits))
    with pytest.raises(
        InvalidArgumentError,
        match=r"loss_fn must return Tensor of shape \[D0, D1, ... DN, 1\]. \] "
        r"\[logits_shape: \] \[3 1\] \[loss_shape: \] \[\]",
    ):
        run(mean.loss(ONE, ONE))
    with pytest.raises(ValueError, match="loss_fn must contain argument: labels"):
        RegressionHead(loss_fn=lambda logits: logits)
    with pytest.raises(ValueError, match=r"loss_fn has unexpected args: \['x'\]"):
        RegressionHead(loss_fn=lambda labels, logits, x: logits)


# -- predictions


def test_predictions_use_vocabulary() -> None:
    head = MultiClassHead(3, label_vocabulary=["a", "b", "ü"])
    found = run(head.predictions(THREE))
    assert list(found) == [
        *("logits", "probabilities", "class_ids", "classes", "all_class_ids", "all_classes"),
    ]
    assert found["classes"].tolist() == [[b"a"], ["ü".encode()], ["ü".encode()]]
    assert found["all_classes"].tolist() == [[b"a", b"b", "ü".encode()]] * 3
    assert found["all_class_ids"].tolist() == [[0, 1, 2]] * 3
    np.testing.assert_allclose(found["probabilities"].sum(1), 1.0, rtol=1e-6)
    assert list(head.predictions(THREE, ["logits"])) == ["logits"]
    with pytest.raises(ValueError, match="did you mean 'classes'"):
        head.predictions(THREE, ["clases"])


def test_class_names_only_in_predictions() -> None:
    weight = Variable(np.ones([3, 3], np.float32))
    head = MultiClassHead(3, label_vocabulary=["a", "b", "c"])
    labels = builtin_ops.placeholder("string", [None])
    logits = builtin_ops.placeholder("float32", [None, 3]) @ weight
    spec = head.create_estimator_spec(
        {}, ModeKeys.TRAIN, logits, labels, optimizer=GradientDescentOptimizer(0.1)
    )
    inputs = [labels, logits.op.inputs[0]]
    with Session() as session:
        session.run(global_variables_initializer())
        plan = session.plan([spec.loss, spec.train_op], inputs)
        types = {op.type for segment in plan.segments for op in segment.ops}
        assert [segment.place for segment in plan.segments] == ["host", "device"]
        assert "LabelIds" in types
        assert not types & {"ClassNames", "AllClassNames"}
        values = dict(zip(inputs, (["a", "c"], np.ones([2, 3])), strict=True))
        loss, _ = session.run([spec.loss, spec.train_op], values)
        np.testing.assert_allclose(loss, np.log(3), rtol=1e-6)
        assert session.run(get_global_step()) == 1


# -- the training operation


def trained(**arguments: Any) -> EstimatorSpec:
    logits = ONE * Variable(np.float32(1.0))
    return RegressionHead().create_estimator_spec({}, ModeKeys.TRAIN, logits, ONE, **arguments)


def test_update_ops_run_with_each_step() -> None:
    count = Variable(0, trainable=False)
    graph = get_default_graph()
    graph.add_to_collection(GraphKeys.UPDATE_OPS, count.assign_add(1).op)
    collected = trained(optimizer=GradientDescentOptimizer(0.1))
    none = trained(optimizer=GradientDescentOptimizer(0.1), update_ops=[])
    with Session() as session:
        session.run(global_variables_initializer())
        session.run(none.train_op)
        assert session.run(count) == 0
        session.run(collected.train_op)
        assert session.run(count) == 1


def test_exactly_one_way_to_train() -> None:
    optimizer = GradientDescentOptimizer(0.1)
    with pytest.raises(ValueError, match="train_op_fn and optimizer cannot both be None"):
        trained()
    with pytest.raises(ValueError, match="train_op_fn and optimizer cannot both be set"):
        trained(optimizer=optimizer, train_op_fn=optimizer.minimize)
    with pytest.raises(ValueError, match=r"nor a train.Optimizer"):
        trained(optimizer="Adam")
    with pytest.raises(ValueError, match="update_ops should be a list or a tuple"):
        trained(optimizer=optimizer, update_ops=builtin_ops.no_op())
    assert trained(train_op_fn=optimizer.minimize).train_op is not None


# -- values that a step must not have


def failing_step(head: Head, logits: Any, labels: Any, features: Any = None) -> str:
    head.loss(labels, logits, features)
    with pytest.raises(InvalidArgumentError) as caught:
        check_steps()
    assert caught.value.op is not None
    return str(caught.value)


def test_labels_from_one_are_recognized() -> None:
    text = failing_step(MultiClassHead(3), THREE, np.array([1, 2, 3]))
    assert text.startswith("Labels must be <= n_classes - 1.")
    assert "expected: labels in [0, 2], n_classes=3" in text
    assert "received: minimum 1, maximum 3 in a batch" in text
    assert "labels seem to be 1..3: subtract 1 in input_fn" in text


@pytest.mark.parametrize(
    ("head", "labels", "parts"),
    [
        (MultiClassHead(3), [0, -1, 2], ("Labels must be >= 0", "minimum -1, maximum 2")),
        (MultiClassHead(3), [0, 7, 2], ("Labels must be <= n_classes - 1", "n_classes=8")),
        (BinaryClassHead(), [-1, 1, 1], ("Labels must be >= 0", "(labels + 1) // 2")),
        (BinaryClassHead(), [0, 1, 2], ("Labels must be <= n_classes - 1", "maximum 2")),
        (BinaryClassHead(), [0.0, np.nan, 1.0], ("Labels must be >= 0", "maximum nan")),
        (RegressionHead(), [0.0, np.nan, np.inf], ("Labels must be finite", "received: 2 NaN")),
    ],
)
def test_out_of_range_labels_stop_step(head: Head, labels: Any, parts: Sequence[str]) -> None:
    text = failing_step(head, THREE if isinstance(head, MultiClassHead) else ONE, labels)
    for part in parts:
        assert part in text


@pytest.mark.parametrize("weight", [-1.0, np.nan])
def test_invalid_weights_stop_step(weight: float) -> None:
    weights = np.array([1.0, weight, 1.0], np.float32)
    text = failing_step(RegressionHead(weight_column="w"), ONE, ONE, {"w": weights})
    assert "weights in column 'w' must be >= 0" in text
    assert f"received: {weight:g} in a batch" in text


def test_check_finds_failing_step_of_call() -> None:
    MultiClassHead(3).loss(np.array([0, 1, 2]), THREE)
    (check,) = step_checks(get_default_graph())
    check.check([np.array([0, 0, 1]), np.array([2, 1, 2])])
    with pytest.raises(InvalidArgumentError, match="minimum 1, maximum 5"):
        check.check([np.array([0, 1, 0]), np.array([2, 5, 2])])


def test_unknown_label_suggests_nearest() -> None:
    head = MultiClassHead(3, label_vocabulary=["setosa", "versicolor", "virginica"])
    loss = head.loss(np.array(["setosa", "versicolour", "setosa"]), THREE)
    with pytest.raises(InvalidArgumentError) as caught:
        run(loss)
    text = str(caught.value)
    assert text.startswith("label 'versicolour' is not in label_vocabulary")
    assert "did you mean 'versicolor'?" in text


def test_label_in_another_normalization_form_is_named() -> None:
    composed, decomposed = (
        "caf\N{LATIN SMALL LETTER E WITH ACUTE}",
        "cafe\N{COMBINING ACUTE ACCENT}",
    )
    for known, given in ((composed, decomposed), (decomposed, composed)):
        head = MultiClassHead(3, label_vocabulary=["tea", known, "milk"])
        with pytest.raises(InvalidArgumentError, match="another Unicode normalization form"):
            run(head.loss(np.array(["tea", given, "tea"]), THREE))


def test_labels_of_other_batch_size_are_not_broadcast() -> None:
    labels, logits = (
        builtin_ops.placeholder("int64", [None]),
        builtin_ops.placeholder("float32", [None, 1]),
    )
    loss = BinaryClassHead().loss(labels, logits)
    with pytest.raises(InvalidArgumentError):
        run(loss, {labels: [1], logits: ONE})


# -- the ops on strings


@pytest.mark.parametrize("type_", ["LabelIds", "ClassNames", "AllClassNames"])
def test_string_ops_match_their_rows(type_: str) -> None:
    row = registry.lookup(type_)
    for case in row.cases():
        inputs = [
            builtin_ops.placeholder(each.dtype, [None, *each.shape[1:]]) for each in case.inputs
        ]
        output = registry.output(type_, inputs, dict(case.attrs))
        found = run(output, dict(zip(inputs, case.inputs, strict=True)))
        assert (row.placement.where, row.gradient) == ("host", None)
        assert output.dtype == found.dtype
        assert output.shape.is_compatible_with(found.shape)
        assert found.tolist() == case.expected.tolist()


# -- what is refused while the graph is built


@pytest.mark.parametrize(
    ("head", "labels", "message"),
    [
        (MultiClassHead(3), None, "You must provide a labels Tensor. Given: None"),
        (MultiClassHead(3), {"a": 1}, "labels must be one tensor for this head"),
        (
            MultiClassHead(3),
            np.zeros([3], np.float32),
            "Labels dtype should be integer. Instead got <dtype: 'float32'>",
        ),
        (MultiClassHead(3), np.zeros([3], bool), "Labels dtype should be integer"),
        (MultiClassHead(3), ["a", "b", "c"], "label_vocabulary=[...] for string labels"),
        (
            MultiClassHead(3),
            np.zeros([3, 3], np.int64),
            "Mismatched label shape. Expected labels dimension=1.  Received 3",
        ),
        (MultiClassHead(3), np.int64(1), "Mismatched label shape"),
        (
            MultiClassHead(3, label_vocabulary=["a", "b", "c"]),
            np.zeros([3], np.int64),
            "Labels dtype should be string if there is a vocabulary. Instead got <dtype: 'int64'>",
        ),
        (
            RegressionHead(3),
            np.zeros([3, 2], np.float32),
            "Mismatched label shape. Expected labels dimension=3.  Received 2",
        ),
        (RegressionHead(3), np.zeros([3], np.float32), "Mismatched label shape"),
        (RegressionHead(3), [["a"] * 3] * 3, "Regression labels must be numbers"),
        (
            MultiClassHead(3),
            SparseTensorValue([[0, 0]], [1], [3, 1]),
            "SparseTensor labels are not supported. Labels must be a Tensor of shape",
        ),
    ],
)
def test_mismatched_labels_raise(head: Head, labels: Any, message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        head.loss(labels, THREE)
    assert message in str(caught.value)


def test_mismatched_logits_and_weights_raise() -> None:
    head = MultiClassHead(3, weight_column="w")
    labels = np.zeros([3], np.int64)
    for features, message in (
        ({"v": WEIGHTS}, "Feature w is not in features dictionary"),
        ({"w": THREE}, r"weights shape must be \[D0, D1, ... DN\] or \[D0, D1, ... DN, 1\]"),
        ({"w": ["a", "b", "c"]}, "cannot read a string feature"),
    ):
        with pytest.raises(ValueError, match=message):
            head.loss(labels, THREE, features)
    with pytest.raises(ValueError, match="logits shape must be"):
        head.loss(labels, ONE, {"w": WEIGHTS})
    with pytest.raises(TypeError, match="Weight column must be either a string or NumericColumn"):
        MultiClassHead(3, weight_column=3).loss(labels, THREE, {})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MultiClassHead(2), "n_classes must be > 2: 2."),
        (lambda: MultiClassHead(None), "n_classes cannot be None"),  # type: ignore[arg-type]
        (
            lambda: MultiClassHead(3, label_vocabulary=["a", "b"]),
            '"label_vocabulary" does not have "n_classes" items. len(label_vocabulary)=2',
        ),
        (lambda: MultiClassHead(3, label_vocabulary="abc"), "should be a list or a tuple"),
        (lambda: MultiClassHead(3, label_vocabulary=["a", "b", "a"]), "lists a class twice"),
        (lambda: MultiClassHead(3, label_vocabulary=[1, 2, 3]), "should hold strings"),  # type: ignore[list-item]
        (lambda: MultiClassHead(3, loss_reduction="none"), "Invalid loss_reduction: none"),
        (lambda: BinaryClassHead(thresholds=[0.5, 1.0]), "thresholds not in (0, 1)"),
        (lambda: RegressionHead(0), "Invalid label_dimension 0."),
    ],
)
def test_constructors_validate_arguments(make: Any, message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        make()
    assert message in str(caught.value)


def test_session_run_checks_labels() -> None:
    head = MultiClassHead(3, weight_column="w")
    labels, weights = builtin_ops.placeholder("int64"), builtin_ops.placeholder("float32")
    loss = head.loss(labels, THREE, {"w": weights})
    classes = head.predictions(THREE)["class_ids"]
    with Session() as session:
        feeds = {labels: [[0], [1], [2]], weights: [1.0, 0.0, 1.0]}
        assert np.isfinite(session.run(loss, feeds))
        for wrong, message in (
            ({labels: [[0], [3], [2]]}, "Labels must be <= n_classes - 1"),
            ({labels: [[0], [-1], [2]]}, "Labels must be >= 0"),
            ({weights: [1.0, -1.0, 1.0]}, "weights in column 'w' must be >= 0"),
        ):
            with pytest.raises(InvalidArgumentError, match=message):
                session.run([loss, classes], {**feeds, **wrong})
        assert session.run(classes).shape == (3, 1)


def test_constant_number_of_classes() -> None:
    assert MultiClassHead(constant(3)).logits_dimension == 3
    with pytest.raises(ValueError, match="n_classes must be > 2"):
        MultiClassHead(constant(2))


def test_trainable_variables_are_a_list() -> None:
    with pytest.raises(ValueError, match="trainable_variables should be a list or a tuple"):
        RegressionHead().create_estimator_spec(
            *({}, ModeKeys.TRAIN, ONE, ONE, GradientDescentOptimizer(0.1)),
            trainable_variables={"w": ONE},  # type: ignore[arg-type]
        )


def test_keras_get_updates_defines_step() -> None:
    class Own(KerasOptimizer):
        def get_updates(self, loss: Any, params: Any) -> list[Any]:
            assert params == [variable]
            return [variable.assign(loss)]

    variable = Variable(0.0)
    head = RegressionHead()
    for given in (None, [variable]):
        spec = head.create_estimator_spec(
            {}, ModeKeys.TRAIN, ONE, np.zeros([3, 1], np.float32), Own("own"), given
        )
        with Session() as session:
            session.run(global_variables_initializer())
            loss, _ = session.run([spec.loss, spec.train_op])
            assert session.run(variable) == loss == np.float32(6.5 / 3)


def test_rank_1_multi_labels_raise() -> None:
    labels = builtin_ops.placeholder("float32")
    loss = MultiLabelHead(3).loss(labels, THREE)
    problem = r"labels shape must be \[D0, D1, ... DN, 3\]\..*\[Received shape: \] \[3\]"
    with pytest.raises(InvalidArgumentError, match=problem):
        run(loss, {labels: np.ones(3)})
