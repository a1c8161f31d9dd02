"""Updates of parts of variables: the `scatter_` functions and `count_up_to`.

All build on `scatter`, for ops registered in `ops.variables.state`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from estimatorkit.core.conversion import as_index_tensor, convert_to_tensor, make
from estimatorkit.core.dtypes import int32, int64
from estimatorkit.core.errors import type_error, value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.tensor import Tensor

if TYPE_CHECKING:
    from estimatorkit.core.variables import Variable


def scatter(kind: str, variable: Variable, indices: Any, updates: Any, name: str | None) -> Tensor:
    """Makes the operation that updates `variable` at `indices`.

    Raises TypeError unless the indices are integers and the updates have the variable's dtype,
    ValueError if the updates have the wrong shape.
    """
    with get_default_graph().name_scope(name or f"Scatter{kind}") as scope:
        at = as_index_tensor(indices, "indices")
        values = convert_to_tensor(updates, variable.dtype, "updates")
        whole, chosen = variable.shape, at.shape
        at_points = kind.startswith("Nd")
        may_be_scalar = values.shape.rank == 0 and not at_points
        if whole.rank is not None and chosen.rank is not None and not may_be_scalar:
            if at_points:
                expected = chosen[:-1].concatenate(whole[chosen[-1] :]) if chosen[-1] else None
            else:
                expected = chosen.concatenate(whole[1:])
            if expected is not None and not values.shape.is_compatible_with(expected):
                raise value_error(
                    f"the updates of {variable.name} do not match the indices",
                    expected=f"shape {expected}: one slice per index"
                    + ("" if at_points else ", or a scalar"),
                    received=f"shape {values.shape}, indices of shape {chosen}",
                    made_at=variable.op.source,
                )
        inputs = {"ref": variable.handle, "indices": at, "updates": values}
        return make(f"ResourceScatter{kind}", inputs, name=scope)


def scatter_rows(kind: str, variable: Variable, rows: Any, name: str | None) -> Tensor:
    """`scatter` with the indices and values of `IndexedSlices`; raises TypeError otherwise."""
    check_rows(rows)
    return scatter(kind, variable, rows.all_indices, rows.all_values, name)


def check_rows(rows: Any) -> None:
    """Raises TypeError unless `rows` are `IndexedSlices`."""
    from estimatorkit.core.indexed_slices import IndexedSlices

    if not isinstance(rows, IndexedSlices):
        raise TypeError(f"sparse_delta is not IndexedSlices: {rows}")


def batch_scatter_update(
    ref: Variable, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None
) -> Tensor:
    """Sets elements of a variable: `ref[i1, ..., indices[i1, ..., j]] = updates[i1, ..., j]`.

    Args:
        ref: the variable.
        indices: int32 or int64, of known rank; all dimensions but the last equal those of `ref`.
        updates: `indices.shape + ref.shape[indices.rank:]`.
        use_locking: accepted for compatibility only.

    Returns:
        The variable's new value.

    Raises:
        ValueError: the rank of `indices` is unknown, or the updates have the wrong shape.

    Source: `tf.compat.v1.batch_scatter_update`.
    """
    from estimatorkit.ops.array import array, filling, joining
    from estimatorkit.ops.math import elementwise

    at = as_index_tensor(indices, "indices")
    if at.shape.rank is None:
        raise value_error("batch_scatter_update: the rank of indices must be known")
    places = []
    for axis in range(at.shape.rank - 1):
        row = elementwise.cast(filling.range_(array.shape(at)[axis]), at.dtype)
        size = [-1 if each == axis else 1 for each in range(at.shape.rank)]
        places.append(array.reshape(row, size) + filling.zeros_like(at))
    return scatter("NdUpdate", ref, joining.stack([*places, at], -1), updates, name)


def assign_slice(
    variable: Variable,
    key: Any,
    value: Any,
    use_locking: bool = False,
    name: str | None = None,
    read_value: bool = True,
) -> Tensor:
    """Makes the operation that sets `variable[key]` and outputs the variable's new value.

    `value` must broadcast to the slice's shape, or ValueError is raised. `use_locking` and
    `read_value` are accepted for compatibility only.
    """
    from estimatorkit.ops.array.indexing import parts_of

    with get_default_graph().name_scope(name or "strided_slice") as scope:
        parts, computed = parts_of(variable.value(), key)
        given = convert_to_tensor(value, variable.dtype, "value")
        inputs = {"ref": variable.handle, "value": given, **computed}
        return make("ResourceStridedSliceAssign", inputs, {"index": parts}, scope)


def count_up_to(ref: Variable, limit: int, name: str | None = None) -> Tensor:
    """The value of an integer variable before an operation that increments it.

    The increment is atomic across threads. The operation raises `OutOfRangeError` once the value
    has reached `limit`.

    Raises:
        TypeError: the variable is neither int32 nor int64.
    """
    if ref.dtype not in (int32, int64):
        raise type_error(
            f"count_up_to: value passed to parameter 'ref' has DataType {ref.dtype.name} not "
            "in list of allowed values",
            expected="int32, int64",
            made_at=ref.op.source,
        )
    in_body = get_default_graph().outermost is not get_default_graph()
    attrs = {"variable": ref.op.name, "limit": int(limit), "in_body": in_body}
    return make("CountUpTo", {"ref": ref.handle}, attrs, name)


def scatter_update(
    ref: Variable, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None
) -> Tensor:
    """Sets rows of a variable: `ref[indices[i]] = updates[i]`.

    Args:
        ref: the variable.
        indices: int32 or int64, of any shape.
        updates: `indices.shape + ref.shape[1:]`, or a scalar.
        use_locking: accepted for compatibility only.

    Returns:
        The variable's new value.
    """
    return scatter("Update", ref, indices, updates, name)


def scatter_add(
    ref: Variable, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Tensor:
    """`ref[indices[i]] += updates[i]`; duplicate indices accumulate. See `scatter_update`."""
    return scatter("Add", ref, indices, updates, name)


def scatter_sub(
    ref: Variable, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Tensor:
    """`ref[indices[i]] -= updates[i]`; duplicate indices accumulate. See `scatter_update`."""
    return scatter("Sub", ref, indices, updates, name)


def scatter_mul(
    ref: Variable, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Tensor:
    """`ref[indices[i]] *= updates[i]`. See `scatter_update`."""
    return scatter("Mul", ref, indices, updates, name)


def scatter_div(
    ref: Variable, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Tensor:
    """`ref[indices[i]] /= updates[i]`. See `scatter_update`."""
    return scatter("Div", ref, indices, updates, name)


def scatter_min(
    ref: Variable, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Tensor:
    """`ref[indices[i]] = minimum(ref[indices[i]], updates[i])`. See `scatter_update`."""
    return scatter("Min", ref, indices, updates, name)


def scatter_max(
    ref: Variable, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Tensor:
    """`ref[indices[i]] = maximum(ref[indices[i]], updates[i])`. See `scatter_update`."""
    return scatter("Max", ref, indices, updates, name)


def scatter_nd_update(
    ref: Variable, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None
) -> Tensor:
    """Sets slices of a variable: `ref[tuple(indices[i])] = updates[i]`.

    Args:
        ref: the variable.
        indices: int32 or int64 `(..., k)`: k indices for each slice.
        updates: `indices.shape[:-1] + ref.shape[k:]`, or a scalar.
        use_locking: accepted for compatibility only.

    Returns:
        The variable's new value.
    """
    return scatter("NdUpdate", ref, indices, updates, name)


def scatter_nd_add(
    ref: Variable, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Tensor:
    """`ref[tuple(indices[i])] += updates[i]`. See `scatter_nd_update`."""
    return scatter("NdAdd", ref, indices, updates, name)


def scatter_nd_sub(
    ref: Variable, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Tensor:
    """`ref[tuple(indices[i])] -= updates[i]`. See `scatter_nd_update`."""
    return scatter("NdSub", ref, indices, updates, name)
