"""Lookup table operations and their base class.

A table is a handle in the graph, an operation whose attributes describe it; its content lives in
the session (`lookup_tables.HostTable`), under the handle's name or `shared_name`. Static tables are
filled by operations in the collection TABLE_INITIALIZERS, which `tables_initializer` runs. See
`static_tables`, `mutable_tables` and `vocabularies` for the kinds of tables.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import DType, int64
from estimatorkit.core.errors import type_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import (
    Role,
    Spec,
    apply,
    fixed,
    no_outputs,
    output,
    register,
    register_handle,
)
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.sparse_tensor import SparseTensor, SparseTensorValue
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.ops.tables.lookup_tables import (
    Column,
    DenseTable,
    HostTable,
    TableSpec,
    read_vocabulary,
)
from estimatorkit.ops.text.strings import string_array

# -- ops


def host_table(context: Any, table: str, spec: tuple[Any, ...]) -> HostTable:
    """The content of a table in a session, created on first use.

    `table` is its name in the session, `spec` its `TableSpec` as a plain tuple.
    """
    made = TableSpec(*spec)
    kind = DenseTable if made.buckets else HostTable
    held: HostTable = context.resource(("table", table), lambda: kind(made))
    return held


def _initialize(keys: Any, values: Any, *, table: str, spec: Any, context: Any) -> list[Any]:
    pairs = zip(_items(keys), _items(values), strict=True)
    host_table(context, table, spec).initialize(pairs)
    return []


def _items(value: Any) -> list[Any]:
    array = string_array(value) if isinstance(value, bytes) else np.asarray(value)
    items: list[Any] = array.reshape(-1).tolist()
    return items


def _initialize_from_file(
    filename: Any,
    *,
    table: str,
    spec: Any,
    key_index: int,
    value_index: int,
    vocab_size: int,
    delimiter: str,
    offset: int,
    context: Any,
) -> list[Any]:
    made = TableSpec(*spec)
    path = os.fsdecode(bytes(string_array(filename)[()]))
    key, value = Column(key_index, made.key_dtype), Column(value_index, made.value_dtype)
    items = read_vocabulary(path, key, value, vocab_size, delimiter, offset)
    host_table(context, table, spec).initialize(items)
    return []


def _find(keys: Any, default: Any, *, table: str, spec: Any, context: Any) -> NDArray[Any]:
    return host_table(context, table, spec).lookup(keys, default)


def _size(*, table: str, spec: Any, context: Any) -> Any:
    return np.asarray(host_table(context, table, spec).size(), np.int64)


def _export(*, table: str, spec: Any, context: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    return host_table(context, table, spec).export()


def _insert(keys: Any, values: Any, *, table: str, spec: Any, context: Any) -> list[Any]:
    host_table(context, table, spec).insert(keys, values)
    return []


def _import(keys: Any, values: Any, *, table: str, spec: Any, context: Any) -> list[Any]:
    host_table(context, table, spec).replace(keys, values)
    return []


def _remove(keys: Any, *, table: str, spec: Any, context: Any) -> list[Any]:
    host_table(context, table, spec).remove(keys)
    return []


def _infer_find(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    spec = TableSpec(*attrs["spec"])
    keys = inputs[0].shape
    if keys.rank is not None:
        keys = keys[: max(0, keys.rank - len(spec.key_shape))]
    return [Spec(spec.value_dtype, keys.concatenate(spec.value_shape))]


def _infer_export(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    spec = TableSpec(*attrs["spec"])
    if spec.buckets:
        return [
            Spec(each, TensorShape([None, None])) for each in (spec.key_dtype, spec.value_dtype)
        ]
    return [
        Spec(spec.key_dtype, TensorShape([None])),
        Spec(spec.value_dtype, TensorShape([None, *spec.value_shape])),
    ]


for _kind in ("HashTableV2", "MutableHashTableV2"):
    register_handle(_kind, "a table")

for _type, _kernel, _infer in (
    ("InitializeTableV2", _initialize, no_outputs),
    ("InitializeTableFromTextFileV2", _initialize_from_file, no_outputs),
    ("LookupTableFindV2", _find, _infer_find),
    ("LookupTableSizeV2", _size, fixed(int64)),
    ("LookupTableExportV2", _export, _infer_export),
    ("LookupTableImportV2", _import, no_outputs),
    ("LookupTableInsertV2", _insert, no_outputs),
    ("LookupTableRemoveV2", _remove, no_outputs),
):
    register(
        _type,
        _kernel,
        infer=_infer,
        gradient=None,
        where="host",
        context=True,
        pure=False,
        effects="asset" if _type == "InitializeTableFromTextFileV2" else "",
        elementwise=_type == "LookupTableFindV2",
        role=Role.LOOKUP if _type == "LookupTableFindV2" else None,
        holder="table",
    )


# -- the base class


class LookupInterface:
    """A table in a graph.

    Attributes:
        resource_handle: the handle, an operation.

    Args:
        spec: describes the table; its name is the requested one of the handle.
        shared_name: the name under which tables of a session share content.
    """

    def __init__(self, spec: TableSpec, shared_name: str | None) -> None:
        kind = "MutableHashTableV2" if spec.mutable else "HashTableV2"
        shared = shared_name or ""
        note: dict[str, Any] = {
            "key_dtype": spec.key_dtype,
            "value_dtype": spec.value_dtype,
            "shared_name": shared,
        }
        if spec.mutable:  # for the export, whose node types depend on it
            note["spec"] = tuple(spec._replace(value_shape=tuple(spec.value_shape)))
        with get_default_graph().init_scope():  # lifts it out of function bodies
            self.resource_handle: Operation = apply(kind, (), note, spec.name)
        self._spec = spec._replace(name=self.resource_handle.name)
        self._shared_name = shared_name

    @property
    def name(self) -> str:
        """The handle's name."""
        return self._spec.name

    @property
    def key_dtype(self) -> DType:
        """The dtype of the keys."""
        return self._spec.key_dtype

    @property
    def value_dtype(self) -> DType:
        """The dtype of the values."""
        return self._spec.value_dtype

    @property
    def table_attrs(self) -> dict[str, Any]:
        """The attributes of operations on the table."""
        spec = self._spec._replace(value_shape=tuple(self._spec.value_shape))
        return {"table": self._shared_name or spec.name, "spec": tuple(spec)}

    def size(self, name: str | None = None) -> Tensor:
        """The number of keys: an int64 scalar."""
        return output("LookupTableSizeV2", (), self.table_attrs, name or f"{self._own}_Size")

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """All keys `(n,)` and values `(n, *value shape)`."""
        made = apply("LookupTableExportV2", (), self.table_attrs, name or f"{self._own}_Export")
        keys, values = made.outputs
        return keys, values

    @property
    def _own(self) -> str:
        """The last component of its name."""
        return self._spec.name.rsplit("/", 1)[-1]

    def _find(self, keys: Any, default: Any, name: str | None) -> Any:
        """The values of keys; sparse if the keys are."""
        sparse, values = split_keys(keys, self._spec.key_dtype)
        with get_default_graph().name_scope(name or f"{self._own}_Lookup"):
            inputs = [values, convert_to_tensor(default, self._spec.value_dtype, "default_value")]
            found = output("LookupTableFindV2", inputs, self.table_attrs, "LookupTableFindV2")
        return join_values(sparse, found)

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} {self.name!r} from {self.key_dtype.name} to "
            f"{self.value_dtype.name}>"
        )


def split_keys(keys: Any, dtype: DType) -> tuple[SparseTensor | None, Tensor]:
    """Keys as a tensor, and the sparse tensor to which they belong, if any.

    Raises TypeError if their dtype is not `dtype`.
    """
    sparse = SparseTensor.from_value(keys) if isinstance(keys, SparseTensorValue) else keys
    given = sparse.values if isinstance(sparse, SparseTensor) else keys
    known = given if isinstance(given, Tensor) or hasattr(given, "_as_tensor") else None
    values = convert_to_tensor(given, None if known is not None else dtype, "keys")
    if values.dtype is not dtype:
        raise type_error(
            f"Dtype of argument `keys` must be {dtype.name}, received: {values.dtype.name}",
            received=values,
            made_at=values.op.source,
            hint=f"use cast(keys, {dtype.name})" if dtype.is_integer else None,
        )
    return (sparse if isinstance(sparse, SparseTensor) else None), values


def join_values(sparse: SparseTensor | None, values: Tensor) -> Any:
    """Puts values into the structure of a sparse tensor, if any."""
    if sparse is None:
        return values
    made = SparseTensor(sparse.indices, values, sparse.dense_shape)
    made.set_shape(sparse.get_shape())
    return made
