"""`SparseTensor`: the indices, values and dense shape of a sparse tensor.

A sparse tensor is a composite of three tensors (see `core.composite`); sessions feed and fetch it
as a `SparseTensorValue`. Its operations are in `ops.sparse`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from estimatorkit.core import ports
from estimatorkit.core.composite import OfValues
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.default_session import session_for
from estimatorkit.core.dtypes import int64
from estimatorkit.core.errors import type_error, value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import constant_value_as_shape
from estimatorkit.core.shapes import ShapeLike, TensorShape
from estimatorkit.core.tensor import Tensor

operators: dict[str, Callable[..., Any]] = {}
"""What `SparseTensor`'s Python operators call, by method name; filled by the op modules."""


class SparseTensorValue(NamedTuple):
    """The value of a `SparseTensor`: arrays in place of tensors."""

    indices: Any
    values: Any
    dense_shape: Any


class SparseTensor(OfValues):
    """A tensor with `values[i]` at `indices[i]` and zeros elsewhere.

    Most operations expect unique indices in row-major order (see `sparse_reorder`).

    Args:
        indices: int64 `(n, rank)`.
        values: `(n,)`, of any dtype.
        dense_shape: int64 `(rank,)`.

    Raises:
        ValueError: the shapes of the three are inconsistent.
        TypeError: the indices or the shape are not integers.
    """

    __array_priority__ = 200  # `array * sparse` comes to __rmul__ here instead of NumPy

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        with get_default_graph().name_scope("SparseTensor"):
            self.indices: Tensor = convert_to_tensor(indices, int64, name="indices")
            self.values = self._values = convert_to_tensor(values, name="values")
            shape = dense_shape.as_list() if isinstance(dense_shape, TensorShape) else dense_shape
            self.dense_shape: Tensor = convert_to_tensor(shape, int64, name="dense_shape")
        self._check()
        self._static_shape = constant_value_as_shape(self.dense_shape)

    def _check(self) -> None:
        indices, values, shape = self.indices.shape, self.values.shape, self.dense_shape.shape
        try:
            indices = indices.with_rank(2)
            shape = shape.with_rank(1)
            TensorShape([indices[0]]).merge_with(values.with_rank(1))
            TensorShape([indices[1]]).merge_with(shape)
        except ValueError as error:
            raise value_error(
                "SparseTensor: the shapes of indices, values and dense_shape do not match",
                expected="shapes (n, rank), (n,) and (rank,)",
                received=f"{indices}, {values} and {shape}",
                made_at=self.values.op.source,
            ) from error

    @classmethod
    def from_value(cls, sparse_tensor_value: Any) -> SparseTensor:
        """Creates a sparse tensor from a `SparseTensorValue` or a sparse tensor."""
        if isinstance(sparse_tensor_value, cls):
            return sparse_tensor_value
        if not isinstance(sparse_tensor_value, SparseTensorValue):
            raise type_error(
                "expected a sparse value",
                expected="SparseTensor or SparseTensorValue",
                received=repr(sparse_tensor_value)[:200],
            )
        return cls(*sparse_tensor_value)

    @property
    def shape(self) -> TensorShape:
        """The static dense shape."""
        return self._static_shape

    def get_shape(self) -> TensorShape:
        """The static dense shape."""
        return self._static_shape

    def set_shape(self, shape: ShapeLike) -> None:
        """Merges a shape into the static dense shape.

        Raises:
            ValueError: the shapes are incompatible.
        """
        self._static_shape = self._static_shape.merge_with(shape)

    def with_values(self, new_values: Any) -> SparseTensor:
        """The same indices with other values, `(n,)` of any dtype."""
        made = SparseTensor(self.indices, new_values, self.dense_shape)
        made.set_shape(self._static_shape)
        return made

    def eval(self, feed_dict: Mapping[Any, Any] | None = None, session: Any = None) -> Any:
        """Evaluates the sparse tensor in `session` or the default session."""
        return session_for(self.graph, session).run(self, feed_dict)

    def _components(self) -> tuple[Tensor, ...]:
        """Its component tensors."""
        return self.indices, self.values, self.dense_shape

    def _from_values(self, values: Sequence[Any]) -> SparseTensorValue:
        """The fetched value."""
        return SparseTensorValue(*values)

    def __mul__(self, other: Any) -> SparseTensor:
        return _operate("mul", self, other)

    def __rmul__(self, other: Any) -> SparseTensor:
        return _operate("mul", self, other)

    def __truediv__(self, other: Any) -> SparseTensor:
        return _operate("truediv", self, other)

    def __repr__(self) -> str:
        return (
            f"SparseTensor(indices={self.indices}, values={self.values}, "
            f"dense_shape={self.dense_shape})"
        )


def _operate(name: str, *operands: Any) -> SparseTensor:
    ports.ops.load()  # fills `operators`
    result: SparseTensor = operators[name](*operands)
    return result


__all__ = ["SparseTensor", "SparseTensorValue"]
