"""TensorFlow's methods of feature columns, in both directions.

TensorFlow's columns are subclasses that define `_transform_feature`, `_get_sparse_tensors`,
`_get_dense_tensor` (version 1) or `transform_feature`, `get_sparse_tensors`, `get_dense_tensor`
(version 2). The columns of this package answer these calls, and a subclass that defines them works
in every layer: `ColumnProtocol` derives this package's methods from TensorFlow's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from estimatorkit.core.dtypes import float32, int64
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.sparse_tensor import SparseTensor
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.feature_column.column_values import Ids, Sequence
from estimatorkit.layers.feature_column.weights import WeightMaker
from estimatorkit.ops.array import array, indexing
from estimatorkit.ops.array.gather_nd import gather_nd
from estimatorkit.ops.array.joining import stack
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.sparse.sparse import sparse_tensor_to_dense
from estimatorkit.ops.tables.feature_ids import ABSENT


class IdsAndWeights(NamedTuple):
    """What TensorFlow's categorical columns give.

    Attributes:
        id_tensor: a `SparseTensor` of ids.
        weight_tensor: a `SparseTensor` of their weights; None if all are 1.
    """

    id_tensor: Any
    weight_tensor: Any


def sparse_of(values: Tensor, there: Tensor) -> SparseTensor:
    """The places of `values` where `there`, bool of its shape, is true."""
    indices = indexing.where(there)
    return SparseTensor(indices, gather_nd(values, indices), array.shape(values, out_type=int64))


def sparse_ids(ids: Tensor, *, packed: bool = False) -> SparseTensor:
    """Ids in rows as a sparse tensor.

    Args:
        ids: as in `Ids`.
        packed: whether the ids of a row, `(batch, width)`, move up to its beginning, and the last
            dimension is that of the longest row.
    """
    there = elementwise.not_equal(ids, ABSENT)
    found = sparse_of(ids, there)
    if not packed:
        return found
    counts = elementwise.cast(there, int64)
    before = gather_nd(reduce.cumsum(counts, -1, exclusive=True), found.indices)
    width = reduce.reduce_max(reduce.reduce_sum(counts, -1))
    return SparseTensor(
        stack([found.indices[:, 0], before], 1),
        found.values,
        stack([found.dense_shape[0], elementwise.maximum(width, np.int64(0))]),
    )


def _overrides(column: Any, name: str, owner: type) -> bool:
    return getattr(type(column), name) is not getattr(owner, name)


class ColumnProtocol:
    """What all columns answer."""

    if TYPE_CHECKING:
        name: Any
        parse_example_spec: Any
        transform: Any
        make_variables: Any

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Derives this package's methods where a class has TensorFlow's alone."""
        super().__init_subclass__(**kwargs)
        own = vars(cls)
        for ours, (theirs, adapter) in _ADAPTERS.items():
            if ours not in own and any(name in own for name in theirs):
                setattr(cls, ours, adapter)

    @property
    def _is_v2_column(self) -> bool:
        """True: columns work in the layers of both versions."""
        return True

    @property
    def _parse_example_spec(self) -> Any:
        return self.parse_example_spec

    @property
    def _var_scope_name(self) -> Any:
        return self.name

    def plain(self, features: Any) -> Any:
        """What TensorFlow's column makes of `Features`: tensors, sparse where ids are."""
        return features.transformed(self)

    def transform_feature(self, transformation_cache: Any, state_manager: Any) -> Any:
        """The column's transformation of raw features.

        Args:
            transformation_cache: `Features`.
            state_manager: ignored.
        """
        return self.plain(transformation_cache)

    def _transform_feature(self, inputs: Any) -> Any:
        return self.transform_feature(inputs, None)

    def create_state(self, state_manager: Any) -> None:
        """Makes the column's variables by `state_manager.create_variable`."""
        self.make_variables(_weights_by(state_manager.create_variable, {"dtype": float32}))


class DenseProtocol:
    """What dense columns answer."""

    if TYPE_CHECKING:
        variable_shape: Any
        dense_tensor: Any

    @property
    def _variable_shape(self) -> Any:
        return self.variable_shape

    def get_dense_tensor(self, transformation_cache: Any, state_manager: Any) -> Any:
        """The dense tensor, with the variables that `state_manager` has."""
        return self.dense_tensor(transformation_cache, _weights_of(state_manager))

    def _get_dense_tensor(
        self, inputs: Any, weight_collections: Any = None, trainable: bool | None = None
    ) -> Any:
        return self.dense_tensor(inputs, _new_weights(weight_collections, trainable))


class SequenceProtocol:
    """What dense columns of sequences answer."""

    if TYPE_CHECKING:
        variable_shape: Any
        sequence: Any

    @property
    def _variable_shape(self) -> Any:
        return self.variable_shape

    def get_sequence_dense_tensor(self, transformation_cache: Any, state_manager: Any) -> Any:
        """The steps and lengths, with the variables that `state_manager` has."""
        return self.sequence(transformation_cache, _weights_of(state_manager))

    def _get_sequence_dense_tensor(
        self, inputs: Any, weight_collections: Any = None, trainable: bool | None = None
    ) -> Any:
        return self.sequence(inputs, _new_weights(weight_collections, trainable))


class CategoricalProtocol:
    """What categorical columns answer."""

    IdWeightPair = IdsAndWeights

    if TYPE_CHECKING:
        num_buckets: Any

    @property
    def _num_buckets(self) -> Any:
        return self.num_buckets

    def plain(self, features: Any) -> Any:
        """The ids as a `SparseTensor`."""
        return sparse_ids(features.transformed(self).ids)

    def get_sparse_tensors(self, transformation_cache: Any, state_manager: Any) -> IdsAndWeights:
        """The ids and weights."""
        found = transformation_cache.get(self, state_manager)
        return IdsAndWeights(*found) if isinstance(found, tuple) else IdsAndWeights(found, None)

    def _get_sparse_tensors(
        self, inputs: Any, weight_collections: Any = None, trainable: bool | None = None
    ) -> IdsAndWeights:
        return self.get_sparse_tensors(inputs, None)


# -- variables


def _new_weights(collections: Any, trainable: bool | None) -> Any:
    return WeightMaker(collections or (), trainable is not False)


def _weights_by(use: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    """A `WeightMaker` whose variables a state manager makes."""

    class Weights(WeightMaker):
        def make(
            self, column: Any, name: str, shape: Any, initializer: Any, trainable: bool = True
        ) -> Any:
            told = {"shape": shape, "initializer": initializer, "trainable": trainable}
            return use(column, name, **told, **options) if options else use(column, name)

        def make_shared(self, *args: Any, **options: Any) -> Any:
            return WeightMaker().make_shared(*args, **options)

    return Weights()


def _weights_of(state_manager: Any) -> Any:
    if state_manager is None:
        return _new_weights(None, None)
    return _weights_by(state_manager.get_variable, {})


# -- this package's methods by TensorFlow's


def _transform(self: Any, features: Any) -> Any:
    if isinstance(self, CategoricalProtocol):
        return _ids(self, features)
    return features.get(self)


def _ids(column: Any, features: Any) -> Ids:
    ids, weights = column._get_sparse_tensors(features)
    rows = sparse_tensor_to_dense(
        ids if ids.dtype is int64 else _with_values(ids, int64), ABSENT, validate_indices=False
    )
    if weights is None:
        return Ids(rows)
    return Ids(rows, sparse_tensor_to_dense(_with_values(weights, float32), 0.0, False))


def _with_values(sparse: SparseTensor, dtype: Any) -> SparseTensor:
    values = elementwise.cast(sparse.values, dtype)
    return SparseTensor(sparse.indices, values, sparse.dense_shape)


def _dense_tensor(self: Any, features: Any, weights: Any) -> Any:
    if _overrides(self, "_get_dense_tensor", DenseProtocol):
        return self._get_dense_tensor(features, weights.collections, weights.trainable)
    return self.get_dense_tensor(features, weights.state)


def _sequence(self: Any, features: Any, weights: Any) -> Sequence:
    if _overrides(self, "_get_sequence_dense_tensor", SequenceProtocol):
        found = self._get_sequence_dense_tensor(features, weights.collections, weights.trainable)
    else:
        found = self.get_sequence_dense_tensor(features, weights.state)
    return Sequence(*found)


_ADAPTERS: Mapping[str, tuple[tuple[str, ...], Any]] = {
    "parse_example_spec": (
        ("_parse_example_spec",),
        property(lambda self: self._parse_example_spec),
    ),
    "variable_shape": (
        ("_variable_shape",),
        property(lambda self: TensorShape(self._variable_shape)),
    ),
    "num_buckets": (("_num_buckets",), property(lambda self: self._num_buckets)),
    "transform": (
        (
            "transform_feature",
            "_transform_feature",
            "get_sparse_tensors",
            "_get_sparse_tensors",
        ),
        _transform,
    ),
    "dense_tensor": (("get_dense_tensor", "_get_dense_tensor"), _dense_tensor),
    "sequence": (("get_sequence_dense_tensor", "_get_sequence_dense_tensor"), _sequence),
    "make_variables": (
        ("create_state",),
        lambda self, weights: self.create_state(weights.state),
    ),
}
