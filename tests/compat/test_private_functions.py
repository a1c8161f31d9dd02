"""Functions and heads of TensorFlow's private modules; CSV files of `contrib.learn`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit.compat.v1 as tf
from estimatorkit.compat.v1.contrib.learn.python.learn.estimators import rnn_common
from estimatorkit.compat.v1.python.ops import (
    control_flow_ops,
    metrics_impl,
    resource_variable_ops,
    rnn_cell_impl,
)
from estimatorkit.compat.v1.python.util import deprecation, function_utils, nest, tf_export


class Called:
    def __call__(self, features: Any, mode: Any = None) -> None:
        """Takes what a model_fn takes."""

    def method(self, labels: Any) -> None:
        """Takes labels."""


def function(a: Any, b: Any, *rest: Any, c: Any = None, **more: Any) -> None:
    """Takes anything."""


@pytest.mark.parametrize(
    ("fn", "names"),
    [
        (function, ("a", "b")),
        (Called(), ("features", "mode")),
        (Called().method, ("labels",)),
        (functools.partial(function, 1), ("b",)),
        (functools.partial(function, b=1), ("a",)),
        (functools.partial(functools.partial(function, 1), c=2), ("b",)),
    ],
)
def test_argument_names(fn: Callable[..., Any], names: tuple[str, ...]) -> None:
    assert function_utils.fn_args(fn) == names


def test_functions_are_documented() -> None:
    partial = functools.partial(function, 1)
    assert function_utils.has_kwargs(partial)
    assert not function_utils.has_kwargs(Called.method)
    assert [function_utils.get_func_name(fn) for fn in (partial, Called())] == [
        "function",
        "Called",
    ]
    with pytest.raises(ValueError, match="Argument must be a function"):
        function_utils.get_func_name(3)
    with pytest.raises(TypeError, match="fn should be a function-like object"):
        function_utils.has_kwargs(3)


def test_decorators_change_nothing() -> None:
    assert deprecation.deprecated("2019-01-01", "Use another.")(function) is function
    assert deprecation.deprecated_args(None, "Use b.", ("a", None))(function) is function
    assert tf_export.tf_export("nn.f", v1=["nn.f"])(function) is function


def test_resource_variables() -> None:
    with tf.Graph().as_default():
        variable = resource_variable_ops.ResourceVariable(1.0)
        assert resource_variable_ops.is_resource_variable(variable)
        assert not resource_variable_ops.is_resource_variable(variable + 1)


def test_concatenated_state_shapes() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        batch = tf.placeholder(tf.int32, [])
        assert rnn_cell_impl._concat(batch, [4, 5], static=True) == [None, 4, 5]
        assert rnn_cell_impl._concat(tf.constant([2]), 3, static=True) == [2, 3]
        joined = [
            rnn_cell_impl._concat(batch, 5),
            rnn_cell_impl._concat(batch, tf.TensorShape([])),
            rnn_cell_impl._concat([1, 2], tf.TensorShape([3])),
        ]
        found = [each.tolist() for each in session.run(joined, {batch: 9})]
        assert found == [[9, 5], [9], [1, 2, 3]]
        with pytest.raises(ValueError, match="unknown"):
            rnn_cell_impl._concat(3, tf.TensorShape(None))


def test_csv_files_of_iris_tutorial(tmp_path: Path) -> None:
    base = tf.contrib.learn.datasets.base
    (tmp_path / "plain.csv").write_text("1.5,2,0\n3,4.5,1\n")
    (tmp_path / "header.csv").write_text("2,2,setosa,versicolor\n1.5,2,0\n3,4.5,1\n")
    for found in (
        base.load_csv_with_header(str(tmp_path / "header.csv"), int, np.float32),
        base.load_csv_without_header(tmp_path / "plain.csv", np.int64, np.float32),
    ):
        assert found.data.dtype == np.float32
        assert found.data.tolist() == [[1.5, 2.0], [3.0, 4.5]]
        assert found.target.tolist() == [0, 1]
    first = base.load_csv_without_header(tmp_path / "plain.csv", np.float64, np.float64, 0)
    assert first.target.tolist() == [1.5, 3.0]


def test_star_imports() -> None:
    found: dict[str, Any] = {}
    exec("from estimatorkit.compat.v1.python.ops.rnn_cell import *", found)  # noqa: S102
    exec("from estimatorkit.compat.v1.keras.layers import *", found)  # noqa: S102
    assert {"RNNCell", "GRUCell", "Dense", "Layer"} <= set(found)


def test_flatten_up_to() -> None:
    deep = {"b": [1, (2, 3)], "a": {"x": 4}}
    assert nest.flatten_up_to({"b": [0, 0], "a": 0}, deep) == [{"x": 4}, 1, (2, 3)]
    assert nest.flatten_up_to([0, 0], (1, 2), check_types=False) == [1, 2]
    mapped = nest.map_structure_up_to([0, [0]], lambda a, b: (a, b), [[1], [2]], [3, [[4]]])
    assert mapped == [([1], 3), [(2, [4])]]
    assert nest.flatten([1, (2, 3)]) == [1, 2, 3]


@pytest.mark.parametrize(
    ("shallow", "deep", "error", "words"),
    [
        ([1, [2]], [1, 2], TypeError, "input must also be a sequence"),
        ([1, 2], (1, 2), TypeError, "don't have the same sequence type"),
        ([1, 2], [1], ValueError, "don't have the same sequence length"),
        ({"a": 1}, {"b": 1}, ValueError, "keys are not a subset"),
    ],
)
def test_flatten_up_to_errors(shallow: Any, deep: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        nest.assert_shallow_structure(shallow, deep)
    with pytest.raises(error, match=words):
        nest.map_structure_up_to(shallow, str, deep)


def test_flatten_dict_items() -> None:
    given = {(4, 5, (6, 8)): ("a", "b", ("c", "d")), 1: (2, 3)}
    expected = {4: "a", 5: "b", 6: "c", 8: "d", 1: (2, 3)}
    assert nest.flatten_dict_items(given) == expected
    for wrong, words in (
        ({(4, 5): ("a",)}, "Key had 2 elements, but value had 1 elements"),
        ({(4, 5): ("a", "b"), 4: "c"}, "not unique: 4"),
    ):
        with pytest.raises(ValueError, match=words):
            nest.flatten_dict_items(wrong)
    with pytest.raises(TypeError, match="must be a dictionary"):
        nest.flatten_dict_items([1])
    with pytest.raises(ValueError, match="Cannot map over no sequences"):
        nest.map_structure_up_to([1], str)


def test_switch_and_merge() -> None:
    switch, merge = control_flow_ops.switch, control_flow_ops.merge
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2])
        chosen = tf.placeholder(tf.int32, [])
        sides = [switch(x, tf.equal(chosen, case))[1] * (case + 1.0) for case in range(3)]
        merged = merge(sides)
        below, above = switch(x, chosen > 1)
        both = merge([below - 1.0, above + 1.0])
        (slope,) = tf.gradients(merged.output, x)
        for case in range(3):
            found = session.run([merged, both, slope], {x: [1.0, 2.0], chosen: case})
            assert found[0][0].tolist() == [case + 1.0, 2 * case + 2.0]
            assert found[0][1] == case
            assert found[1][0].tolist() == ([2.0, 3.0] if case > 1 else [0.0, 1.0])
            assert found[2].tolist() == [case + 1.0] * 2
    with pytest.raises(ValueError, match="At least one of the merge inputs is None"):
        merge([None])


def test_variable_arg_scope() -> None:
    slim = tf.contrib.slim
    with tf.Graph().as_default(), slim.arg_scope([slim.variable], trainable=False):
        slim.variable("held", [2])
        assert tf.trainable_variables() == []


def test_streaming_confusion_matrix() -> None:
    labels, guesses = tf.constant([[0, 1], [1, 2]]), tf.constant([[0, 2], [1, 2]])
    weights = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    matrix, update = metrics_impl._streaming_confusion_matrix(labels, guesses, 3, weights)
    assert matrix.name == "total_confusion_matrix:0"
    assert matrix.dtype is tf.float64
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        session.run(update)
        assert session.run(update).tolist() == [[2, 0, 0], [0, 6, 4], [0, 0, 8]]
        assert session.run(matrix).tolist() == [[2, 0, 0], [0, 6, 4], [0, 0, 8]]


@pytest.mark.parametrize("lengths", [[2, 3], None])
def test_last_activations_of_sequences(lengths: list[int] | None) -> None:
    rows = tf.placeholder(tf.float32, [None, None, 2])
    last = rnn_common.select_last_activations(rows, lengths)
    assert last.shape.as_list() == [None, 2]
    values = np.arange(12.0).reshape(2, 3, 2)
    with tf.Session() as session:
        found = session.run(last, {rows: values})
    assert found.tolist() == [values[0, 2 if lengths is None else 1].tolist(), [10.0, 11.0]]


def test_contrib_learn_datasets_by_name() -> None:
    iris = tf.contrib.learn.datasets.DATASETS["iris"]()
    assert (iris.data.shape, iris.data.dtype) == ((150, 4), np.float64)
    assert np.bincount(iris.target).tolist() == [50, 50, 50]
    assert "mnist" in tf.contrib.learn.datasets.DATASETS
