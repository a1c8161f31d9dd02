"""Feature columns: descriptions of how raw features become the inputs of a model, and the layers
that apply them.

A column is a frozen dataclass: it has a name, says what it reads (`parse_example_spec`, `parents`)
and, if it is dense, makes a float tensor `(batch, *variable_shape)` from the features. `Features`
is what a column reads from: it looks up and checks raw features, and runs each column's `transform`
once, however many layers and columns use it. `input_layer` concatenates dense columns in the order
of their names; `linear_model` gives each a matrix of weights. A new kind of column is a subclass;
the layers know nothing of kinds.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import DType, as_dtype, float32
from estimatorkit.core.errors import did_you_mean, explain
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.initializers import Zeros
from estimatorkit.core.ops import array, elementwise, joining, linalg, nn
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variable_scope import get_variable, variable_scope
from estimatorkit.lazy import listing

SPARSE_COMBINERS = ("sum", "mean", "sqrtn")


class FixedLenFeature(NamedTuple):
    """How a feature with a fixed number of values is read from an `Example`
    (`tf.io.FixedLenFeature`).

    Attributes:
        shape: of one example.
        dtype: of the values.
        default_value: stands for a missing feature; None: a missing feature is an error.
    """

    shape: tuple[int, ...]
    dtype: DType
    default_value: Any = None


class FeatureColumn(ABC):
    """What every column is: a name, what it reads, and a transformation of it."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name: unique in a model, part of variable names."""

    @property
    @abstractmethod
    def parse_example_spec(self) -> dict[str, Any]:
        """What to read from an `Example`, by feature key."""

    @property
    @abstractmethod
    def parents(self) -> tuple[FeatureColumn | str, ...]:
        """The columns and the keys of raw features that it reads."""

    @abstractmethod
    def transform(self, features: Features) -> Any:
        """What later steps work on, made once for each `features` (see `Features.transformed`)."""


class DenseColumn(FeatureColumn):
    """A column that gives a float tensor."""

    @property
    @abstractmethod
    def variable_shape(self) -> TensorShape:
        """The shape of one example, known in all dimensions."""

    @abstractmethod
    def dense_tensor(self, features: Features) -> Tensor:
        """float32 `(batch, *variable_shape)`."""


class Features:
    """Raw features, and what columns made of them.

    Args:
        raw: tensors by key, the first dimension of each the batch.

    Raises:
        ValueError: `raw` is no dict.
    """

    def __init__(self, raw: Any) -> None:
        if not isinstance(raw, Mapping):
            raise ValueError(
                explain(
                    f"features should be a dictionary of `Tensor`s. Given type: {type(raw)}",
                    expected="a dict of tensors by feature name",
                    received=repr(raw)[:200],
                    hint="let input_fn return ({'name': values, ...}, labels)",
                )
            )
        self._raw = raw
        self._tensors: dict[str, Tensor] = {}
        self._transformed: dict[FeatureColumn, Any] = {}

    def tensor(self, key: str, wanted_by: str) -> Tensor:
        """The raw feature `key`; a feature of shape `(batch,)` becomes `(batch, 1)`.

        Args:
            key: its key.
            wanted_by: who asks, for the error message.

        Raises:
            ValueError: it is missing, or a single value without a batch.
        """
        if key not in self._raw:
            known = [str(each) for each in self._raw]
            raise ValueError(
                explain(
                    f"Feature {key} is not in features dictionary",
                    expected=f"a feature {key!r} for {wanted_by}",
                    received=f"features {sorted(known)}",
                    hint=did_you_mean(key, known)
                    or "let input_fn give the feature, or leave out the column",
                )
            )
        if key not in self._tensors:
            tensor = convert_to_tensor(self._raw[key], name=key if _is_op_name(key) else None)
            if tensor.shape.rank == 0:
                raise ValueError(
                    explain(
                        f"Feature (key: {key}) cannot have rank 0",
                        expected="the batch as first dimension",
                        received=tensor,
                        made_at=tensor.op.source,
                        hint="call .batch(n) on the dataset",
                    )
                )
            self._tensors[key] = array.expand_dims(tensor, -1) if tensor.shape.rank == 1 else tensor
        return self._tensors[key]

    def transformed(self, column: FeatureColumn) -> Any:
        """`column.transform(self)`, made once."""
        if column not in self._transformed:
            self._transformed[column] = column.transform(self)
        return self._transformed[column]


def _is_op_name(key: str) -> bool:
    return re.fullmatch(r"[A-Za-z0-9.][A-Za-z0-9_.\\-]*", key) is not None


@dataclass(frozen=True)
class NumericColumn(DenseColumn):
    """See `numeric_column`."""

    key: str
    shape: tuple[int, ...]
    default_value: tuple[Any, ...] | None
    dtype: DType
    normalizer_fn: Callable[[Tensor], Tensor] | None

    @property
    def name(self) -> str:
        """The key."""
        return self.key

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """A `FixedLenFeature` under the key."""
        return {self.key: FixedLenFeature(self.shape, self.dtype, self.default_value)}

    @property
    def parents(self) -> tuple[FeatureColumn | str, ...]:
        """The key."""
        return (self.key,)

    @property
    def variable_shape(self) -> TensorShape:
        """`shape`."""
        return TensorShape(self.shape)

    def transform(self, features: Features) -> Tensor:
        """The normalized feature as float32, in the shape in which it came.

        Raises:
            ValueError: it is missing or holds strings.
        """
        tensor = features.tensor(self.key, f"numeric_column({self.key!r})")
        if tensor.dtype.on_host:
            raise ValueError(
                explain(
                    f"numeric_column({self.key!r}) cannot take a feature of strings",
                    expected="numbers or bools",
                    received=f"{tensor.name} {tensor.shape} {tensor.dtype.name}",
                    made_at=tensor.op.source,
                    hint="use a categorical column, or convert the values to numbers in input_fn",
                )
            )
        if self.normalizer_fn is not None:
            tensor = convert_to_tensor(self.normalizer_fn(tensor))
        return elementwise.cast(tensor, float32)

    def dense_tensor(self, features: Features) -> Tensor:
        """float32 `(batch, *shape)`.

        Raises:
            ValueError: an example has another number of values than `shape`.
        """
        tensor: Tensor = features.transformed(self)
        count = math.prod(self.shape)
        dims = tensor.shape.dims
        per_example = None if dims is None else TensorShape(dims[1:]).num_elements()
        if per_example is not None and per_example != count:
            raise ValueError(
                explain(
                    f"feature {self.key!r} does not fit its numeric_column of shape {self.shape}",
                    expected=f"{TensorShape((None, *self.shape))}, {count} values an example",
                    received=f"{tensor.shape}, {per_example} values an example",
                    made_at=tensor.op.source,
                    hint=f"numeric_column({self.key!r}, shape={tuple(dims[1:]) if dims else ()})",
                )
            )
        if dims is not None and dims[1:] == self.shape:
            return tensor
        return array.reshape(tensor, joining.stack([array.shape(tensor)[0], *self.shape]))


def numeric_column(
    key: str,
    shape: Any = (1,),
    default_value: Any = None,
    dtype: Any = float32,
    normalizer_fn: Callable[[Tensor], Tensor] | None = None,
) -> NumericColumn:
    """A column of numbers.

    Args:
        key: the feature's key, and the column's name.
        shape: of one example: an int or a tuple of ints; `(1,)` by default.
        default_value: what stands for a missing feature when examples are parsed: a number, or
            numbers of `shape`; None (default): a missing feature is an error.
        dtype: of the values in an `Example`, integer or floating; float32 by default.
        normalizer_fn: a function of the raw tensor, for example `lambda x: (x - 3.0) / 4.2`.

    Raises:
        TypeError: a dimension is no int, default_value fits neither shape nor dtype, or
            normalizer_fn is not callable.
        ValueError: a dimension is not positive, dtype is no number, or key is no string.
    """
    dims = _checked_shape(shape, key)
    wanted = as_dtype(dtype)
    if not (wanted.is_integer or wanted.is_floating):
        raise ValueError(
            f"dtype must be convertible to float. dtype: <dtype: {wanted.name!r}>, key: {key}"
        )
    default = _checked_default(default_value, dims, wanted, key)
    if normalizer_fn is not None and not callable(normalizer_fn):
        raise TypeError(f"normalizer_fn must be a callable. Given: {normalizer_fn}")
    if not isinstance(key, str):
        raise ValueError(f"key must be a string. Got: type {type(key)}. Given key: {key}.")
    return NumericColumn(key, dims, default, wanted, normalizer_fn)


def _checked_shape(shape: Any, key: Any) -> tuple[int, ...]:
    dims = tuple(shape) if isinstance(shape, Iterable) else (shape,)
    for dim in dims:
        if not isinstance(dim, (int, np.integer)) or isinstance(dim, bool):
            raise TypeError(f"shape dimensions must be integer. shape: {dims}, key: {key}")
        if dim < 1:
            raise ValueError(f"shape dimensions must be greater than 0. shape: {dims}, key: {key}")
    return tuple(int(dim) for dim in dims)


def _checked_default(
    value: Any, shape: tuple[int, ...], dtype: DType, key: Any
) -> tuple[Any, ...] | None:
    """The default as nested tuples of `shape`, so that the column stays hashable."""
    if value is None:
        return None
    array_of = np.asarray(value)
    numeric = array_of.dtype.kind in "iu" or (array_of.dtype.kind == "f" and dtype.is_floating)
    if not numeric or array_of.shape not in ((), shape):
        raise TypeError(
            explain(
                f"default_value must be compatible with shape and dtype of column {key!r}",
                expected=f"{dtype.name}, one number or shape {shape}",
                received=repr(value),
            )
        )
    full = np.broadcast_to(array_of, shape).astype(dtype.numpy_dtype)
    return tuple(_as_tuples(full.tolist()))


def _as_tuples(value: Any) -> Any:
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value


def normalize_columns(feature_columns: Any) -> list[FeatureColumn]:
    """Columns as a list, in the order of their names.

    Args:
        feature_columns: a column or an iterable of columns.

    Raises:
        ValueError: there is none, one is no column, or two have one name.
    """
    if isinstance(feature_columns, Mapping):
        raise ValueError("Expected feature_columns to be iterable, found dict.")
    if isinstance(feature_columns, FeatureColumn):
        feature_columns = [feature_columns]
    if isinstance(feature_columns, str) or not isinstance(feature_columns, Iterable):
        feature_columns = [feature_columns]
    columns = list(feature_columns)
    if not columns:
        raise ValueError("feature_columns must not be empty.")
    by_name: dict[str, FeatureColumn] = {}
    for column in columns:
        if not isinstance(column, FeatureColumn):
            raise ValueError(
                explain(
                    "Items of feature_columns must be a FeatureColumn. "
                    f"Given (type {type(column)}): {column}",
                    hint=f"use feature_column.numeric_column({column!r})"
                    if isinstance(column, str)
                    else None,
                )
            )
        if column.name in by_name:
            raise ValueError(
                explain(
                    f"Duplicate feature column name found for columns: {column} and "
                    f"{by_name[column.name]}",
                    expected="each column once",
                    hint="leave one out, or put the feature under a second key in input_fn",
                )
            )
        by_name[column.name] = column
    return sorted(columns, key=lambda column: column.name)


def _dense_columns(feature_columns: Any, who: str) -> list[DenseColumn]:
    columns = normalize_columns(feature_columns)
    dense = [column for column in columns if isinstance(column, DenseColumn)]
    for column in columns:
        if not isinstance(column, DenseColumn):
            raise ValueError(
                explain(
                    f"Items of feature_columns must be a DenseColumn for {who}",
                    received=column,
                    hint="wrap a categorical column in indicator_column or embedding_column",
                )
            )
    return dense


def input_layer(
    features: Any,
    feature_columns: Any,
    weight_collections: Any = None,
    trainable: bool = True,
    cols_to_vars: dict[FeatureColumn, Any] | None = None,
    cols_to_output_tensors: dict[FeatureColumn, Tensor] | None = None,
) -> Tensor:
    """The columns' tensors, each flattened to `(batch, n)`, concatenated in the order of the
    columns' names.

    Args:
        features: tensors by key, the first dimension of each the batch.
        feature_columns: dense columns.
        weight_collections, trainable: for variables that columns make; a numeric column makes none.
        cols_to_vars: filled with each column's variables, if given.
        cols_to_output_tensors: filled with each column's flat tensor, if given.

    Returns:
        float32 `(batch, total number of values)`.

    Raises:
        ValueError: a column is no dense column, two have one name, or a feature is missing or does
            not fit.
    """
    columns = _dense_columns(feature_columns, "input_layer")
    source = features if isinstance(features, Features) else Features(features)
    outputs = []
    with variable_scope(None, default_name="input_layer"):
        for column in columns:
            with variable_scope(_as_scope(column.name)):
                graph = get_default_graph()
                before = len(graph.get_collection(GraphKeys.GLOBAL_VARIABLES))
                flat = _flat(column, source)
                made = graph.get_collection(GraphKeys.GLOBAL_VARIABLES)[before:]
            outputs.append(flat)
            if cols_to_vars is not None:
                cols_to_vars[column] = made
            if cols_to_output_tensors is not None:
                cols_to_output_tensors[column] = flat
        return joining.concat(outputs, 1) if len(outputs) > 1 else outputs[0]


def _flat(column: DenseColumn, features: Features) -> Tensor:
    """The column's tensor as `(batch, n)`."""
    tensor = column.dense_tensor(features)
    if len(column.variable_shape) == 1:
        return tensor
    count = math.prod(dim or 0 for dim in column.variable_shape)
    return array.reshape(tensor, joining.stack([array.shape(tensor)[0], count]))


def _as_scope(name: str) -> str:
    """A column's name as a part of variable names: other characters than these become '_', as in
    TensorFlow.
    """
    return re.sub(r"[^A-Za-z0-9_.\\-]", "_", name)


def linear_model(
    features: Any,
    feature_columns: Any,
    units: int = 1,
    sparse_combiner: str = "sum",
    weight_collections: Any = None,
    trainable: bool = True,
    cols_to_vars: dict[Any, Any] | None = None,
) -> Tensor:
    """The sum over the columns of (column's tensor times weights), plus a bias.

    Variables, zero at first: `linear_model/<column>/weights` of shape `(n, units)` for each column
        in the order of
    the names, then `linear_model/bias_weights` of shape `(units,)`.

    Args:
        features: tensors by key, the first dimension of each the batch.
        feature_columns: columns.
        units: the number of outputs.
        sparse_combiner: how several values of a categorical column become one: "sum", "mean" or
            "sqrtn".
        weight_collections: collections that take the variables, besides the usual ones.
        trainable: whether they are trainable.
        cols_to_vars: filled with each column's variables, and "bias", if given.

    Returns:
        float32 `(batch, units)`.

    Raises:
        ValueError: an argument is out of its range; or as for `input_layer`.
    """
    check_sparse_combiner(sparse_combiner)
    columns = _dense_columns(feature_columns, "linear_model")
    source = features if isinstance(features, Features) else Features(features)
    collections = [GraphKeys.GLOBAL_VARIABLES, *(weight_collections or ())]
    sums = []
    with variable_scope(None, default_name="linear_model"):
        for column in columns:
            with variable_scope(_as_scope(column.name)):
                values = _flat(column, source)
                weights = get_variable(
                    "weights",
                    [values.shape[1], units],
                    float32,
                    Zeros(),
                    trainable=trainable,
                    collections=collections,
                )
                sums.append(linalg.matmul(values, weights, name="weighted_sum"))
            if cols_to_vars is not None:
                cols_to_vars[column] = [weights]
        bias = get_variable(
            "bias_weights", [units], float32, Zeros(), trainable=trainable, collections=collections
        )
        if cols_to_vars is not None:
            cols_to_vars["bias"] = [bias]
        return nn.bias_add(
            elementwise.add_n(sums, name="weighted_sum_no_bias"), bias, name="weighted_sum"
        )


def check_sparse_combiner(sparse_combiner: Any) -> None:
    """Raises ValueError where it is none of `SPARSE_COMBINERS`."""
    if sparse_combiner not in SPARSE_COMBINERS:
        raise ValueError(
            explain(
                "sparse_combiner is unknown",
                expected=f"one of {SPARSE_COMBINERS}",
                received=repr(sparse_combiner),
                hint=did_you_mean(str(sparse_combiner), SPARSE_COMBINERS),
            )
        )


__all__ = [
    "DenseColumn",
    "FeatureColumn",
    "Features",
    "FixedLenFeature",
    "NumericColumn",
    "check_sparse_combiner",
    "input_layer",
    "linear_model",
    "normalize_columns",
    "numeric_column",
]
__dir__ = listing(__name__)
