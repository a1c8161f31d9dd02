"""Numeric columns, `input_layer` and `linear_model`: values, names of variables, and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from estimatorkit.core import builtin_ops
from estimatorkit.core.errors import InvalidArgumentError
from estimatorkit.core.graph import Graph
from estimatorkit.layers import feature_column as fc
from estimatorkit.ops.variables.variable_collections import global_variables, trainable_variables
from estimatorkit.runtime.session import Session

A = np.array([1.0, 2.0, 3.0], np.float32)
B = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]], np.float32)


@pytest.fixture(autouse=True)
def graph() -> Any:
    with Graph().as_default() as graph:
        yield graph


def run(fetches: Any, feeds: Any = None) -> Any:
    with Session() as session:
        session.run([variable.initializer for variable in global_variables()])
        return session.run(fetches, feeds)


def test_column_is_frozen_and_hashable() -> None:
    column = fc.numeric_column("x", [2, 3], default_value=1, dtype="int32")
    assert column.name == "x"
    assert column.shape == (2, 3)
    assert column.parents == ["x"]
    assert column.variable_shape == [2, 3]
    assert column.parse_example_spec["x"] == ((2, 3), "int32", ((1, 1, 1), (1, 1, 1)))
    assert column == fc.numeric_column("x", (2, 3), 1, "int32")
    assert len({column, fc.numeric_column("x", (2, 3), 1, "int32")}) == 1
    with pytest.raises(AttributeError):
        column.key = "y"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"shape": 1.5}, TypeError, "shape dimensions must be integer. shape: (1.5,), key: x"),
        (
            {"shape": (0,)},
            ValueError,
            "shape dimensions must be greater than 0. shape: (0,), key: x",
        ),
        (
            {"dtype": "string"},
            ValueError,
            "dtype must be convertible to float. dtype: <dtype: 'string'>, key: x",
        ),
        ({"normalizer_fn": 3}, TypeError, "normalizer_fn must be a callable. Given: 3"),
        ({"key": 3}, ValueError, "key must be a string. Got: type <class 'int'>. Given key: 3."),
        ({"default_value": [1.0, 2.0]}, ValueError, "The shape of default_value must be equal"),
        ({"default_value": 1.5, "dtype": "int32"}, TypeError, "default_value must be compatible"),
        ({"default_value": "a"}, TypeError, "default_value must be compatible"),
    ],
)
def test_argument_errors_match_tensorflow(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as caught:
        fc.numeric_column(**{"key": "x", **arguments})
    assert message in str(caught.value)


def test_columns_are_concatenated_by_name() -> None:
    columns = [fc.numeric_column("b", 2), fc.numeric_column("a")]
    outputs: dict[Any, Any] = {}
    layer = fc.input_layer({"b": B, "a": A}, columns, cols_to_output_tensors=outputs)
    assert layer.shape == [3, 3]
    np.testing.assert_array_equal(run(layer), np.column_stack([A, B]))
    assert set(outputs) == set(columns)


def test_features_of_any_dtype_and_shape_become_float_rows() -> None:
    flags = builtin_ops.placeholder("bool", [None])
    images = builtin_ops.placeholder("int32", [None, 2, 2])
    unknown = builtin_ops.placeholder("float64")
    columns = [
        fc.numeric_column("flags"),
        fc.numeric_column("images", (2, 2), normalizer_fn=lambda x: x * 10),
        fc.numeric_column("unknown", 3),
    ]
    layer = fc.input_layer({"flags": flags, "images": images, "unknown": unknown}, columns)
    assert (layer.dtype, layer.shape[1]) == ("float32", 8)
    values = run(
        layer,
        {flags: [True, False], images: np.arange(8).reshape(2, 2, 2), unknown: np.ones([2, 3])},
    )
    np.testing.assert_array_equal(
        values, [[1, 0, 10, 20, 30, 1, 1, 1], [0, 40, 50, 60, 70, 1, 1, 1]]
    )


def test_normalizer_runs_once() -> None:
    calls = []

    def normalize(x: Any) -> Any:
        calls.append(x)
        return (x - 2.0) / 0.5

    features = fc.Features({"a": A})
    column = fc.numeric_column("a", normalizer_fn=normalize)
    both = fc.input_layer(features, [column]), fc.linear_model(features, [column])
    np.testing.assert_array_equal(run(both[0]), [[-2.0], [0.0], [2.0]])
    assert len(calls) == 1


def test_linear_model_variables_match_tensorflow() -> None:
    variables: dict[Any, Any] = {}
    columns = [fc.numeric_column("b b", 2), fc.numeric_column("a")]
    model = fc.linear_model({"b b": B, "a": A}, columns, units=2, cols_to_vars=variables)
    assert [(each.op.name, each.shape.as_list()) for each in trainable_variables()] == [
        ("linear_model/a/weights", [1, 2]),
        ("linear_model/b_b/weights", [2, 2]),
        ("linear_model/bias_weights", [2]),
    ]
    assert variables["bias"] == [trainable_variables()[2]]
    np.testing.assert_array_equal(run(model), np.zeros([3, 2]))
    with Session() as session:
        for variable, value in zip(
            trainable_variables(), ([[1, 2]], [[3, 4], [5, 6]], [0.5, -0.5]), strict=True
        ):
            variable.load(np.array(value, np.float32), session)
        expected = A[:, None] @ [[1, 2]] + B @ [[3, 4], [5, 6]] + [0.5, -0.5]
        np.testing.assert_allclose(session.run(model), expected, rtol=1e-6)


def message_of(error: type[Exception], action: Any) -> str:
    with pytest.raises(error) as caught:
        action()
    return str(caught.value)


def test_missing_feature_suggests_names() -> None:
    columns = [fc.numeric_column("sepal_lenght")]
    text = message_of(ValueError, lambda: fc.input_layer({"sepal_length": A, "x": A}, columns))
    assert text.startswith("Feature sepal_lenght is not in features dictionary")
    assert "features ['sepal_length', 'x']" in text
    assert "did you mean 'sepal_length'?" in text


def test_shape_mismatch_names_both_shapes() -> None:
    text = message_of(ValueError, lambda: fc.input_layer({"b": B}, [fc.numeric_column("b")]))
    assert "feature 'b' does not match its numeric_column of shape (1,)" in text
    assert "expected: (?, 1), 1 values per example" in text
    assert "received: (3, 2), 2 values per example" in text
    assert "numeric_column('b', shape=(2,))" in text


def test_run_time_shape_is_checked() -> None:
    feature = builtin_ops.placeholder("float32")
    layer = fc.input_layer({"x": feature}, [fc.numeric_column("x")])
    np.testing.assert_array_equal(run(layer, {feature: A}), A[:, None])
    with pytest.raises(InvalidArgumentError):
        run(layer, {feature: B})


def test_strings_are_refused_with_hint() -> None:
    text = message_of(
        ValueError, lambda: fc.input_layer({"x": ["a", "b"]}, [fc.numeric_column("x")])
    )
    assert "numeric_column('x') cannot read a string feature" in text
    assert "categorical column" in text


def test_features_without_batch_are_refused() -> None:
    text = message_of(ValueError, lambda: fc.input_layer({"x": 1.0}, [fc.numeric_column("x")]))
    assert "Feature (key: x) cannot have rank 0" in text


def test_features_must_be_dict() -> None:
    text = message_of(ValueError, lambda: fc.input_layer(A, [fc.numeric_column("x")]))
    assert text.startswith("features should be a dictionary of `Tensor`s. Given type:")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([], "feature_columns must not be empty"),
        ({}, "Expected feature_columns to be iterable, found dict"),
        ("a", "Items of feature_columns must be a _FeatureColumn"),
        (["a"], "numeric_column('a')"),
        ([3], "Items of feature_columns must be a _FeatureColumn"),
        (
            [fc.numeric_column("a"), fc.numeric_column("a", 2)],
            "Duplicate feature column name found for columns",
        ),
    ],
)
def test_non_columns_are_refused(columns: Any, message: str) -> None:
    assert message in message_of(ValueError, lambda: fc.input_layer({"a": A}, columns))


def test_unknown_combiner_is_refused() -> None:
    text = message_of(
        ValueError, lambda: fc.linear_model({"a": A}, [fc.numeric_column("a")], 1, "summ")
    )
    assert "did you mean 'sum'?" in text
