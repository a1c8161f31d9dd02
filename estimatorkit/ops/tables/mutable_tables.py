"""Mutable tables: `MutableHashTable` and `DenseHashTable`.

Checkpoints include their content (they are `Saveable`s in the collection SAVEABLE_OBJECTS).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import DType, as_dtype
from estimatorkit.core.errors import InvalidArgumentError, type_error, value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.registry import apply, fixed_value
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.lazy import listing
from estimatorkit.ops.tables.lookup_tables import TableSpec
from estimatorkit.ops.tables.tables import LookupInterface, host_table, split_keys


class TableContent:
    """The content of a mutable table as a `Saveable`: two tensors, keys and values.

    Args:
        name: its name in checkpoints.
        table_attrs: the attributes of operations on the table.
    """

    saved_suffixes: ClassVar[Sequence[str]] = ("-keys", "-values")

    def __init__(self, name: str, table_attrs: Mapping[str, Any]) -> None:
        self._name, self._attrs = name, dict(table_attrs)

    @property
    def name(self) -> str:
        """The name in checkpoints."""
        return self._name

    @property
    def table_attrs(self) -> dict[str, Any]:
        """The attributes of operations on the table."""
        return self._attrs

    def values_to_save(self, state: Any) -> Sequence[NDArray[Any]]:
        """All keys and values in a session."""
        return host_table(state, **self.table_attrs).entries()

    def restore_values(self, state: Any, values: Sequence[NDArray[Any]]) -> None:
        """Replaces the content in a session."""
        keys, rows = values
        host_table(state, **self.table_attrs).replace(keys, rows)

    def saved_tensors(self) -> Sequence[Tensor]:
        """Keys and values as tensors of the default graph."""
        return apply("LookupTableExportV2", (), self.table_attrs).outputs

    def restore_operation(self, keys: Tensor, values: Tensor) -> Operation:
        """An operation that replaces the content."""
        return apply(_IMPORT, [keys, values], self.table_attrs)


_IMPORT = "LookupTableImportV2"


def content_restored_by(op: Operation, key: str) -> TableContent | None:
    """The content of a table that an operation of a Saver fills, whose keys are `key` in
    checkpoints; None if it fills none. Dense tables are filled by insertion in TensorFlow's graphs.
    """
    if op.type not in (_IMPORT, "LookupTableInsertV2"):
        return None
    attrs = {name: op.attrs[name] for name in ("table", "spec")}
    return TableContent(key.removesuffix(TableContent.saved_suffixes[0]), attrs)


class MutableHashTable(LookupInterface, TableContent):
    """An initially empty table whose keys are inserted and removed by operations.

    Args:
        key_dtype, value_dtype: the dtypes of keys and values.
        default_value: the value of missing keys; its shape is that of all values.
        name: the table's name, also in checkpoints.
        checkpoint: whether a `Saver` saves the content.
        experimental_is_anonymous: accepted for compatibility only.
        shared_name: the name under which tables of a session share content.
    """

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        name: str = "MutableHashTable",
        checkpoint: bool = True,
        experimental_is_anonymous: bool = False,
        shared_name: str | None = None,
        *,
        reserved: tuple[Any, ...] = (),
        key_shape: tuple[int, ...] = (),
        buckets: int = 0,
    ) -> None:
        dtype = as_dtype(value_dtype)
        with get_default_graph().name_scope(f"{name}_default"):
            self._default = convert_to_tensor(default_value, dtype, "default_value")
        shape = self._default.shape
        if not shape.is_fully_defined():
            raise value_error(
                "the shape of a table's default value must be known",
                received=self._default,
                made_at=self._default.op.source,
            )
        dims = tuple(int(dim) for dim in shape.as_list() if dim is not None)
        spec = TableSpec(name, as_dtype(key_dtype), dtype, dims, True, reserved, key_shape, buckets)
        super().__init__(spec, shared_name)
        if checkpoint:
            get_default_graph().add_to_collection(GraphKeys.SAVEABLE_OBJECTS, self)

    def lookup(self, keys: Any, dynamic_default_values: Any = None, name: str | None = None) -> Any:
        """The values of keys.

        Args:
            keys: a tensor or a sparse tensor, of the table's key dtype.
            dynamic_default_values: the values of missing keys: one, or one per key.

        Returns:
            Values of shape `(*keys' shape, *value shape)`.
        """
        default = self._default if dynamic_default_values is None else dynamic_default_values
        return self._find(keys, default, name)

    def __getitem__(self, keys: Any) -> Any:
        return self.lookup(keys)

    def insert(self, keys: Any, values: Any, name: str | None = None) -> Operation:
        """An operation that inserts or overwrites values.

        Args:
            keys: of any shape.
            values: of shape `(*keys' shape, *value shape)`.
        """
        _, found = split_keys(keys, self.key_dtype)
        inputs = [found, convert_to_tensor(values, self.value_dtype, "values")]
        name = name or f"{self._own}_lookup_table_insert"
        return apply("LookupTableInsertV2", inputs, self.table_attrs, name)

    def remove(self, keys: Any, name: str | None = None) -> Operation:
        """An operation that removes keys; missing ones are ignored."""
        _, found = split_keys(keys, self.key_dtype)
        name = name or f"{self._own}_lookup_table_remove"
        return apply("LookupTableRemoveV2", [found], self.table_attrs, name)

    erase = remove


class DenseHashTable(MutableHashTable):
    """A mutable hash table with a given number of buckets and two reserved keys.

    Keys need not be scalars.

    As in TensorFlow, `export` returns all buckets, including empty and deleted ones: keys
    `(buckets, key size)`, values `(buckets, value size)`. Checkpoints store the entries only.

    Args:
        key_dtype, value_dtype: the dtypes of keys and values.
        default_value: the value of missing keys; its shape is that of all values.
        empty_key: a key that is never used; it marks empty buckets. Its shape is that of all keys.
        deleted_key: another key that is never used; it marks deleted entries.
        initial_num_buckets: a power of 2, at least 4; 2**17 by default. It doubles when more than
            0.8 of the buckets would be used.
        name: the table's name, also in checkpoints.
        checkpoint: whether a `Saver` saves the content.
        experimental_is_anonymous: accepted for compatibility only.

    Raises:
        InvalidArgumentError: the reserved keys differ in shape; at run time, they are equal, or the
            number of buckets is not a power of 2.
    """

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        empty_key: Any,
        deleted_key: Any,
        initial_num_buckets: int | None = None,
        name: str = "MutableDenseHashTable",
        checkpoint: bool = True,
        experimental_is_anonymous: bool = False,
    ) -> None:
        empty, deleted = (_value(key, as_dtype(key_dtype)) for key in (empty_key, deleted_key))
        if empty.shape != deleted.shape:
            raise InvalidArgumentError.explained(
                "Empty and deleted keys must have same shape, got shapes: "
                f"{list(empty.shape)} and {list(deleted.shape)}",
                received=f"table {name!r}",
            )
        super().__init__(
            key_dtype,
            value_dtype,
            default_value,
            name,
            checkpoint,
            reserved=(plain_key(empty), plain_key(deleted)),
            key_shape=empty.shape,
            buckets=BUCKETS if initial_num_buckets is None else int(initial_num_buckets),
        )


BUCKETS = 2**17
"""The default number of buckets."""


def _value(key: Any, dtype: DType) -> NDArray[Any]:
    """A reserved key, which must be known at graph construction."""
    value = fixed_value(convert_to_tensor(key, dtype, "key"))
    if value is None:
        raise type_error(
            "the reserved keys of a table must be known at graph construction",
            received=key,
            expected="values",
        )
    return np.asarray(value)


def plain_key(key: NDArray[Any]) -> Any:
    """A key in the table's representation: bytes or a Python number, or a tuple for keys with a
    shape.
    """
    return tuple(key.ravel().tolist()) if key.ndim else key.item()


__all__ = ["DenseHashTable", "MutableHashTable"]
__dir__ = listing(__name__)
