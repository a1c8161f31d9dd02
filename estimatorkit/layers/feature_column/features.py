"""`Features`: the raw features of a batch, and what columns made of them, each once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import DType
from estimatorkit.core.errors import did_you_mean, value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import constant_value
from estimatorkit.core.sparse_tensor import SparseTensor
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.feature_column.column_values import Ids
from estimatorkit.layers.feature_column.columns import (
    CategoricalColumn,
    FeatureColumn,
    normalize_columns,
    raw_keys,
)
from estimatorkit.layers.feature_column.weights import notes_of_graph
from estimatorkit.ops.array import array
from estimatorkit.ops.debug.shape_matching import match_rank
from estimatorkit.ops.sparse.shapes import sparse_reshape
from estimatorkit.ops.sparse.sparse import convert_to_tensor_or_sparse_tensor


class Raw(NamedTuple):
    """A raw feature.

    Attributes:
        key: the feature's key.
        value: a tensor or a sparse tensor, of any rank but 0.
    """

    key: str
    value: Tensor | SparseTensor

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The tensor, or the three of a sparse tensor."""
        return self.value._components() if isinstance(self.value, SparseTensor) else (self.value,)

    @property
    def is_sparse(self) -> bool:
        """Whether it is a sparse tensor."""
        return isinstance(self.value, SparseTensor)

    @property
    def dtype(self) -> DType:
        """The dtype of the values."""
        return self.value.dtype

    def described(self) -> str:
        """What came, for an error message: the tensor and, where known, three of its values."""
        values = self.value.values if isinstance(self.value, SparseTensor) else self.value
        known = constant_value(values)
        shown = "" if known is None else f", for example {known.reshape(-1)[:3].tolist()}"
        kind = "SparseTensor" if self.is_sparse else "Tensor"
        return f"{kind} {values.name} {self.value.shape} {self.dtype.name}{shown}"


class Features:
    """The raw features of a batch, and the columns' transformations of them, each computed once.

    Args:
        features: tensors, sparse tensors, or values that convert to tensors, by key; the first
            dimension is the batch. Lists of lists of different lengths are padded with '' or -1,
            which are ignored.

    Raises:
        ValueError: `features` is not a dict.
    """

    def __init__(self, features: Any) -> None:
        if not isinstance(features, Mapping):
            raise value_error(
                f"features should be a dictionary of `Tensor`s. Given type: {type(features)}",
                expected="a dict of tensors by feature name",
                received=repr(features)[:200],
                hint="return ({'name': values, ...}, labels) from input_fn",
            )
        self._given = features
        self._raw: dict[str, Raw] = {}
        self._tensors: dict[str, Tensor] = {}
        self._transformed: dict[FeatureColumn, Any] = {}
        self._plain: dict[FeatureColumn | str, Any] = {}

    def raw(self, key: str, wanted_by: str) -> Raw:
        """Returns the raw feature `key`, unchanged.

        Args:
            key: the feature's key.
            wanted_by: the name of the reader, for the error message.

        Raises:
            ValueError: it is missing, or a single value without a batch.
        """
        if key in self._raw:
            return self._raw[key]
        if key not in self._given:
            known = [str(each) for each in self._given]
            raise value_error(
                f"Feature {key} is not in features dictionary",
                expected=f"a feature {key!r} for {wanted_by}",
                received=f"features {sorted(known)}",
                hint=did_you_mean(key, known)
                or "return the feature from input_fn, or remove the column",
            )
        value = as_tensor(key, self._given[key])
        if value.shape.rank == 0:
            raise value_error(
                f"Feature (key: {key}) cannot have rank 0",
                expected="the batch as the first dimension",
                received=value,
                made_at=value.op.source,
                hint="call .batch(n) on the dataset",
            )
        self._raw[key] = Raw(key, value)
        return self._raw[key]

    def tensor(self, key: str, wanted_by: str) -> Tensor:
        """Returns the raw feature `key` as a dense tensor; shape `(batch,)` becomes `(batch, 1)`.

        Raises:
            ValueError: as `raw`, or it is a sparse tensor.
        """
        if key not in self._tensors:
            raw = self.raw(key, wanted_by)
            tensor = raw.value
            if isinstance(tensor, SparseTensor):
                raise value_error(
                    "The corresponding Tensor of numerical column must be a Tensor. "
                    f"SparseTensor is not supported. key: {key}",
                    expected=f"a dense tensor for {wanted_by}",
                    received=raw.described(),
                    made_at=tensor.op.source,
                    hint="use sparse.to_dense in input_fn, or sequence_numeric_column",
                )
            self._tensors[key] = _as_matrix(tensor)
        return self._tensors[key]

    def get(self, key: Any, state_manager: Any = None, training: Any = None) -> Any:
        """The equivalent of TensorFlow's `FeatureTransformationCache.get`; computed once.

        Args:
            key: a raw feature's key, or a column.
            state_manager, training: have no effect.

        Returns:
            The raw feature, with rank 1 expanded to rank 2, or the result of
            `column.transform_feature(self)`.

        Raises:
            TypeError: `key` is neither a string nor a column.
            ValueError: there is no such feature, or the column returns None.
        """
        if not isinstance(key, (str, FeatureColumn)):
            raise TypeError(
                f'"key" must be either a "str" or "{self._word}". Provided type: {type(key)}'
            )
        if key not in self._plain:
            self._plain[key] = (
                self._as_rows(key) if isinstance(key, str) else key._transform_feature(self)
            )
        if self._plain[key] is None:
            raise ValueError(f"Column {getattr(key, 'name', key)} is not supported.")
        return self._plain[key]

    _word = "FeatureColumn"

    def _as_rows(self, key: str) -> Tensor | SparseTensor:
        value = self.raw(key, f"the column that reads {key!r}").value
        if isinstance(value, SparseTensor):
            return sparse_reshape(value, [-1, 1]) if value.shape.rank == 1 else value
        return self.tensor(key, key)

    def transformed(self, column: FeatureColumn) -> Any:
        """Returns `column.transform(self)`, computed once.

        Ids are computed once per graph, however many layers use them.
        """
        if column not in self._transformed:
            held = self.held(column)
            self._transformed[column] = column.transform(self) if held is None else held
            if held is None and isinstance(column, CategoricalColumn):
                self.hold(column, self._transformed[column])
        return self._transformed[column]

    def held(self, column: FeatureColumn) -> Any:
        """The ids that a column has computed for these features in this graph, or None."""
        if not isinstance(column, CategoricalColumn):
            return None
        return notes_of_graph().get("ids", {}).get(self._key(column))

    def hold(self, column: CategoricalColumn, ids: Ids) -> None:
        """Stores ids for `held`."""
        notes_of_graph().setdefault("ids", {})[self._key(column)] = ids

    def _key(self, column: FeatureColumn) -> Any:
        who = f"column {column.name!r}"
        read: list[Any] = [self.raw(key, who).tensors for key in raw_keys(column)]
        return (column, *(read or [self]))  # columns of other classes need not say what they read


def _as_matrix(tensor: Tensor) -> Tensor:
    """A tensor of static or run-time rank 1 as one column; others unchanged."""
    if tensor.shape.rank is None:
        return match_rank(tensor, convert_to_tensor([[0]]), adjust="expand")
    return array.expand_dims(tensor, -1) if tensor.shape.rank == 1 else tensor


def as_tensor(key: str, value: Any) -> Tensor | SparseTensor:
    """The raw feature `key` as a tensor, or a sparse one."""
    name = key if _is_op_name(key) else None
    return convert_to_tensor_or_sparse_tensor(_filled_up(value), name=name)


def _is_op_name(key: str) -> bool:
    return re.fullmatch(r"[A-Za-z0-9.][A-Za-z0-9_.\\-]*", key) is not None


def _filled_up(value: Any) -> Any:
    """Lists of different lengths, padded to the longest; anything else unchanged."""
    if not isinstance(value, (list, tuple)) or not all(
        isinstance(each, (list, tuple)) for each in value
    ):
        return value
    lengths = {len(each) for each in value}
    if len(lengths) < 2:
        return value
    first = next(item for each in value for item in each)
    if not isinstance(first, (str, bytes, int)):
        return value
    fill = -1 if isinstance(first, int) else ""
    return [[*each, *[fill] * (max(lengths) - len(each))] for each in value]


class LazyBuilder(Features):
    """`Features` with the words of version 1's `_LazyBuilder`."""

    _word = "_FeatureColumn"


def transform_features(features: Any, feature_columns: Any, state_manager: Any = None) -> Any:
    """What each column makes of raw features, by column (`_transform_features_v2`).

    Args:
        features: tensors by key.
        feature_columns: columns; they are transformed in the order of their names.
        state_manager: ignored.
    """
    columns = normalize_columns(feature_columns)
    builder = Features(features)
    with get_default_graph().name_scope("transform_features"):
        return {column: builder.get(column) for column in columns}
