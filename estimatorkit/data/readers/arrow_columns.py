"""Conversion of Arrow (pyarrow) columns, from files or memory, to arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core import dtypes
from estimatorkit.core.dtypes import as_dtype
from estimatorkit.core.errors import type_error
from estimatorkit.data.spec import TensorSpec


def arrow_spec(kind: Any, where: str) -> TensorSpec:
    """The spec of a value of an Arrow type.

    `where` names the column in messages.

    Raises:
        TypeError: the type has no tensor equivalent.
    """
    import pyarrow as arrow

    types, hint = arrow.types, "leave the column out with columns=[...]"
    if types.is_dictionary(kind):
        return arrow_spec(kind.value_type, where)
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind):
        return TensorSpec((), as_dtype(kind.to_pandas_dtype()))
    if any(
        is_text(kind)
        for is_text in (
            types.is_string,
            types.is_large_string,
            types.is_binary,
            types.is_large_binary,
            types.is_fixed_size_binary,
        )
    ):
        return TensorSpec((), dtypes.string)
    if types.is_fixed_size_list(kind):
        inner = arrow_spec(kind.value_type, where)
        return TensorSpec([kind.list_size, *inner.shape.as_list()], inner.dtype)
    if types.is_list(kind) or types.is_large_list(kind):
        hint = (
            "its rows differ in length: pad them to one length (ParquetDataset's lengths={...}, or "
            f"pyarrow.list_({kind.value_type}, n)), or leave the column out with columns=[...]"
        )
    elif types.is_temporal(kind):
        hint = "write it as a number, for example table.column(name).cast('int64')"
    elif types.is_decimal(kind):
        hint = "write it as float64: table.column(name).cast('float64')"
    raise type_error(
        f"{where} has a type without tensor equivalent",
        expected="numbers, booleans, strings, or fixed-size lists of them",
        received=str(kind),
        hint=hint,
    )


def first_null(values: Any) -> int | None:
    """The first row of a column that is, or contains, a null; None if there is none."""
    if values.null_count:
        return int(np.argmax(np.asarray(values.is_null())))
    if hasattr(values.type, "list_size") and (inner := first_null(values.flatten())) is not None:
        return inner // int(values.type.list_size)
    return None


def arrow_values(values: Any, spec: TensorSpec) -> NDArray[Any]:
    """The values of an Arrow array without nulls; `spec` is the result of `arrow_spec`."""
    import pyarrow as arrow

    kind = values.type
    if spec.shape.rank:
        inner = TensorSpec(spec.shape.as_list()[1:], spec.dtype)
        rows: NDArray[Any] = arrow_values(values.flatten(), inner).reshape(
            -1, *spec.shape.as_list()
        )
        return rows
    if arrow.types.is_dictionary(kind):
        distinct = arrow_values(values.dictionary, spec)
        return distinct.take(np.asarray(values.indices))
    if spec.dtype is not dtypes.string:
        return np.asarray(values.to_numpy(zero_copy_only=False), spec.dtype.numpy_dtype)
    if arrow.types.is_string(kind) or arrow.types.is_large_string(kind):
        values = values.cast(arrow.large_binary())
    out = np.empty(len(values), object)
    out[:] = values.to_numpy(zero_copy_only=False)
    return out
