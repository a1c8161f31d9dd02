"""Functions from columns to a dense tensor: `input_layer`, `sequence_input_layer`.

The corresponding Keras layers are in `keras_layers`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from estimatorkit.core import builtin_ops
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import float32
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.feature_column.columns import (
    DenseColumn,
    FeatureColumn,
    SequenceDenseColumn,
    normalize_columns,
)
from estimatorkit.layers.feature_column.features import Features
from estimatorkit.layers.feature_column.packing import pack
from estimatorkit.layers.feature_column.weights import (
    WeightMaker,
    remember_columns,
    remember_tensor,
)
from estimatorkit.ops.array import array, filling, joining
from estimatorkit.ops.debug import checks
from estimatorkit.ops.variables.variable_scope import variable_scope


def columns_of(kind: Any, feature_columns: Any, private: bool = False) -> list[Any]:
    """Returns the columns sorted by name, after checking their kind.

    Args:
        kind: the class, or a tuple of classes.
        feature_columns: columns.
        private: whether error messages use version 1's names, with an underscore.

    Raises:
        ValueError: one is of another kind.
    """
    word = "_" if private else ""
    found = []
    for column in normalize_columns(feature_columns, f"{word}FeatureColumn"):
        if not isinstance(column, kind):
            raise value_error(
                f"Items of feature_columns must be a {word}{kind.__name__}. You can wrap a "
                "categorical column with an embedding_column or indicator_column. "
                f"Given: {column}",
                hint=f"wrap {column.name!r} in indicator_column(...) or embedding_column(...)",
            )
        found.append(column)
    return found


def as_features(features: Any, columns: Iterable[FeatureColumn]) -> Features:
    """Raw features as `Features`; the graph notes that `columns` read them."""
    remember_columns(columns)
    return features if isinstance(features, Features) else Features(features)


def as_scope(name: str) -> str:
    """A column's name for variable names, with invalid characters replaced by '_', as in
    TensorFlow.
    """
    return re.sub(r"[^A-Za-z0-9_.\\-]", "_", name)


def flat_tensor(column: DenseColumn, features: Features, weights: WeightMaker) -> Tensor:
    """The column's tensor as `(batch, n)`."""
    tensor = column.dense_tensor(features, weights)
    count = math.prod(dim or 0 for dim in column.variable_shape)
    if tensor.shape.rank == 2 and tensor.shape[1] == count:
        return tensor
    return array.reshape(tensor, joining.stack([array.shape(tensor)[0], count]))


def check_batches(tensors: Iterable[Tensor], columns: Iterable[FeatureColumn]) -> None:
    """Raises ValueError if the tensors of two columns have batches of different size."""
    first: tuple[FeatureColumn, int] | None = None
    for tensor, column in zip(tensors, columns, strict=True):
        size = tensor.shape[0] if tensor.shape.rank else None
        if size is None:
            continue
        if first is None:
            first = (column, size)
        elif first[1] != size:
            raise value_error(
                "Batch size (first dimension) of each feature must be same. Batch size of "
                f"columns ({first[0].name}, {column.name}): ({first[1]}, {size})",
                hint="return the same number of values for each feature from input_fn",
            )


def made_variables(make: Callable[[], Any]) -> tuple[Any, list[Any]]:
    """Calls `make`; returns its result and the global variables that it created."""
    graph = get_default_graph()
    before = len(graph.get_collection(GraphKeys.GLOBAL_VARIABLES))
    result = make()
    return result, graph.get_collection(GraphKeys.GLOBAL_VARIABLES)[before:]


def input_layer(
    features: Any,
    feature_columns: Any,
    weight_collections: Any = None,
    trainable: bool = True,
    cols_to_vars: dict[Any, Any] | None = None,
    cols_to_output_tensors: dict[Any, Tensor] | None = None,
) -> Tensor:
    """Concatenates the columns' tensors, flattened to `(batch, n)` and sorted by column name.

    Variables: `input_layer/<column>/embedding_weights`.

    Args:
        features: tensors by key, with a leading batch dimension.
        feature_columns: dense columns.
        weight_collections: the variables' collections in addition to GLOBAL_VARIABLES and
            MODEL_VARIABLES.
        trainable: whether the variables are trainable.
        cols_to_vars: filled with each column's variables, if given.
        cols_to_output_tensors: filled with each column's flat tensor, if given.

    Returns:
        float32 `(batch, total number of values)`.

    Raises:
        ValueError: a column is not dense, two have the same name, or a feature is missing or has
            the wrong shape or dtype.
    """
    columns = columns_of(DenseColumn, feature_columns, private=True)
    source = as_features(features, columns)
    weights = WeightMaker([*(weight_collections or ()), GraphKeys.MODEL_VARIABLES], trainable)
    outputs = []
    with variable_scope(None, default_name="input_layer"):
        pack(source, columns)
        for column in columns:
            with variable_scope(None, default_name=as_scope(column.scope_name)):
                flat, made = made_variables(partial(flat_tensor, column, source, weights))
            outputs.append(flat)
            remember_tensor(column, flat)
            if cols_to_vars is not None:
                cols_to_vars[column] = made
            if cols_to_output_tensors is not None:
                cols_to_output_tensors[column] = flat
        check_batches(outputs, columns)
        return joining.concat(outputs, 1) if len(outputs) > 1 else outputs[0]


# -- sequences


def steps_of(
    column: SequenceDenseColumn, features: Features, weights: WeightMaker
) -> tuple[Tensor, Tensor]:
    """The steps as `(batch, steps, n)`, and the lengths."""
    tensor, length = column.sequence(features, weights)
    count = math.prod(dim or 0 for dim in column.variable_shape)
    if tensor.shape.rank != 3 or tensor.shape[2] != count:
        shape = array.shape(tensor)
        tensor = array.reshape(tensor, joining.stack([shape[0], shape[1], count]))
    return tensor, length


def joined_steps(steps: Any, columns: Any) -> tuple[Tensor, Tensor]:
    """Concatenates all columns' steps; the lengths must be equal."""
    tensors, lengths = zip(*steps, strict=True)
    check_batches(lengths, columns)
    length = lengths[0]
    if len(lengths) > 1:
        equal = [
            checks.assert_equal(
                length,
                other,
                message=f"the sequences of {columns[0].name} and {column.name} differ in length",
            )
            for other, column in zip(lengths[1:], columns[1:], strict=True)
        ]
        with get_default_graph().control_dependencies(equal):
            length = builtin_ops.identity(length)
    return (joining.concat(list(tensors), 2) if len(tensors) > 1 else tensors[0]), length


def sequence_input_layer(
    features: Any, feature_columns: Any, weight_collections: Any = None, trainable: bool = True
) -> tuple[Tensor, Tensor]:
    """Concatenates the columns' sequences, sorted by column name.

    As `tf.contrib.feature_column.sequence_input_layer`. Variables:
    `sequence_input_layer/<column>/embedding_weights`.

    Args:
        features: tensors by key.
        feature_columns: columns of sequences: `sequence_numeric_column`, or an embedding or
            indicator of a sequence_categorical_column_with_*.
        weight_collections, trainable: see `input_layer`.

    Returns:
        float32 `(batch, steps, n)`, padded to the longest sequence, and the lengths, int64
        `(batch,)`.

    Raises:
        ValueError: a column is not a sequence column, or a feature is missing or has the wrong
            shape or dtype.
        InvalidArgumentError: (when run) the features' sequences differ in length.
    """
    columns = columns_of(SequenceDenseColumn, feature_columns)
    source = as_features(features, columns)
    weights = WeightMaker([*(weight_collections or ()), GraphKeys.MODEL_VARIABLES], trainable)
    steps = []
    with variable_scope(None, default_name="sequence_input_layer"):
        for column in columns:
            with variable_scope(None, default_name=as_scope(column.scope_name)):
                steps.append(steps_of(column, source, weights))
        return joined_steps(steps, columns)


def concatenate_context_input(context_input: Any, sequence_input: Any) -> Tensor:
    """Concatenates context features to every step of a sequence.

    Args:
        context_input: float32 `(batch, m)`.
        sequence_input: float32 `(batch, steps, n)`.

    Returns:
        float32 `(batch, steps, n + m)`.

    Raises:
        ValueError: an argument has the wrong rank.
        TypeError: an argument has the wrong dtype.
    """
    for name, rank, value in (
        ("sequence_input", 3, sequence_input),
        ("context_input", 2, context_input),
    ):
        tensor = convert_to_tensor(value)
        if tensor.shape.rank not in (rank, None):
            raise ValueError(f"{name} must have rank {rank}, got rank {tensor.shape.rank}")
        if tensor.dtype is not float32:
            raise TypeError(f"{name} must have dtype float32, got {tensor.dtype.name}")
    steps = array.shape(sequence_input)[1]
    repeated = filling.tile(array.expand_dims(context_input, 1), joining.stack([1, steps, 1]))
    return joining.concat([sequence_input, repeated], 2)
