"""`IndexedSlices`: rows of a tensor by index, such as the gradient of `gather`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from estimatorkit.core.composite import OfValues
from estimatorkit.core.conversion import make
from estimatorkit.core.dtypes import int64
from estimatorkit.core.faults import in_range
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.registry import (
    Case,
    Role,
    Spec,
    apply,
    constant_value_as_shape,
    lookup,
    register,
)
from estimatorkit.core.shapes import UNKNOWN, TensorShape
from estimatorkit.core.sizes import dims_of, traced_size
from estimatorkit.core.tensor import Tensor


class IndexedSlicesValue(NamedTuple):
    """The value of an `IndexedSlices`: arrays in place of tensors."""

    values: Any
    indices: Any
    dense_shape: Any = None


class IndexedSlices(OfValues):
    """A sparse tensor of rows: `values[i]` at `indices[i]`, zero elsewhere; duplicates add up.

    Args:
        values: `(n, ...)`.
        indices: int32 or int64 `(n,)`.
        dense_shape: the shape of the dense tensor, an integer vector, or None.
    """

    def __init__(self, values: Tensor, indices: Tensor, dense_shape: Tensor | None = None) -> None:
        self.all_values = self._values = values
        self.all_indices = indices
        self.dense_shape = dense_shape
        self._own: dict[Graph, tuple[Tensor, Tensor]] = {}

    @property
    def values(self) -> Tensor:
        """The rows, without surplus ones (see `SURPLUS`), which `all_values` has."""
        return self._own_rows()[0]

    @property
    def indices(self) -> Tensor:
        """The indices of `values`, without surplus ones, which `all_indices` has."""
        return self._own_rows()[1]

    def _own_rows(self) -> tuple[Tensor, Tensor]:
        """Values and indices; how many are known when they are computed if some may be surplus."""
        if self.dense_shape is None or not may_hold_surplus(self.all_indices):
            return self.all_values, self.all_indices
        graph = get_default_graph()
        if graph not in self._own:
            attrs = {"axis": 0, "batch_dims": 0}
            indices, places = apply("OwnRows", [self.all_indices, self.dense_shape]).outputs
            values = make("GatherV2", {"params": self.all_values, "indices": places}, attrs)
            self._own[graph] = (values, indices)
        return self._own[graph]

    @property
    def device(self) -> str:
        """The device of the values."""
        return self.all_values.device

    @property
    def shape(self) -> TensorShape:
        """The static dense shape."""
        return UNKNOWN if self.dense_shape is None else constant_value_as_shape(self.dense_shape)

    def with_values(self, new_values: Tensor) -> IndexedSlices:
        """The same rows with other values, of the shape of `all_values`."""
        return IndexedSlices(new_values, self.all_indices, self.dense_shape)

    def _as_tensor(self) -> Tensor:
        """The dense tensor."""
        if self.dense_shape is None:
            raise ValueError("IndexedSlices without dense_shape cannot become a dense tensor.")
        inputs = {
            "values": self.all_values,
            "indices": self.all_indices,
            "dense_shape": self.dense_shape,
        }
        return make("IndexedSlicesToDense", inputs)

    def _components(self) -> tuple[Tensor, ...]:
        """Its component tensors."""
        parts = (self.all_values, self.all_indices, self.dense_shape)
        return tuple(part for part in parts if part is not None)

    def _from_values(self, values: Sequence[Any]) -> IndexedSlicesValue:
        """The fetched value, without surplus rows."""
        if len(values) == 2:
            return IndexedSlicesValue(*values)
        rows, indices, dense_shape = values
        own, places = _own_rows(indices, dense_shape)
        if len(own) < len(indices):
            rows, indices = rows[places], own
        return IndexedSlicesValue(rows, indices, dense_shape)

    def __neg__(self) -> IndexedSlices:
        return self.with_values(-self.all_values)

    def __repr__(self) -> str:
        whole = "" if self.dense_shape is None else f", dense_shape={self.dense_shape}"
        return f"IndexedSlices(indices={self.all_indices}, values={self.all_values}{whole})"


class RowsOfUpdate(IndexedSlices):
    """Slices whose `values` and `indices` are all, surplus ones too: an optimizer's update, which
    drops them, compiles once.
    """

    def _own_rows(self) -> tuple[Tensor, Tensor]:
        return self.all_values, self.all_indices


SURPLUS = "_surplus"
"""The attribute of an operation whose integers are indices of rows, some of which may be surplus.

XLA needs the number of rows of a gradient before it knows their values. So what turns out not to be
a row of the variable (an id of another part, a repeat) stays among the indices as the number of
rows, with a value of 0: one past the end, which updates and `scatter_` drop and `gather` clamps.
`IndexedSlices.values` and `.indices` are without such rows.
"""


def may_hold_surplus(indices: Tensor) -> bool:
    """Whether the number of rows may be among these indices, though no lookup was wrong."""
    seen: set[Tensor] = set()
    pending = [indices]
    while pending:
        tensor = pending.pop()
        if tensor in seen:
            continue
        seen.add(tensor)
        op = tensor.op
        if op.attrs.get(SURPLUS):
            return True
        if tensor in op.graph.known_inputs:  # captured by a function
            pending.append(op.graph.known_inputs[tensor])
        row = lookup(op.type)
        if row.semantics.moves or row.gradient == "same" or row.semantics.role is Role.ALL_GATHER:
            pending.extend(op.inputs)
    return False


def _own_rows(indices: Any, dense_shape: Any) -> tuple[Any, Any]:
    """The indices that are not surplus, and their positions."""
    (places,) = np.nonzero(indices < dense_shape[0])
    return indices[places], places


register(
    "OwnRows",
    _own_rows,
    where="host",
    infer=lambda inputs, attrs: [
        Spec(inputs[0].dtype, TensorShape([None])),
        Spec(int64, TensorShape([None])),
    ],
    gradient=None,
    accepts="i",
    cases=lambda: [
        Case(
            (np.array([1, 2, 0], np.int32), np.array([2, 1], np.int32)),
            {},
            (np.array([1, 0], np.int32), np.array([0, 2])),
        )
    ],
)


def _to_dense(values: Any, indices: Any, dense_shape: Any) -> Any:
    import jax.numpy as jnp

    whole = jnp.zeros(dims_of(dense_shape), values.dtype)
    if 0 in whole.shape[:1]:  # JAX has no derivative for out-of-range rows
        return whole
    places = jnp.where(
        indices < 0, traced_size(whole.shape[0]), indices
    )  # negative indices are dropped
    return whole.at[places].add(values, mode="drop")


register(
    "IndexedSlicesToDense",
    _to_dense,
    fault=lambda inputs, attrs: in_range(
        1,
        inputs[1],
        dims_of(inputs[2])[0],
        "segment_ids{at} = {value} is out of range [0, {bound})",
        low=None,
    ),
    infer=lambda inputs, attrs: [Spec(inputs[0].dtype, constant_value_as_shape(inputs[2]))],
    static=(2,),
    accepts="fic",
    cases=lambda: [
        Case(
            (
                np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], np.float32),
                np.array([2, 0, 2], np.int32),
                np.array([3, 2], np.int32),
            ),
            {},
            np.array([[3.0, 4.0], [0.0, 0.0], [6.0, 8.0]], np.float32),
        )
    ],
)
