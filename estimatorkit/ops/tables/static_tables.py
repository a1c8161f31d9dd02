"""Tables initialized once, from tensors or a text file: `StaticHashTable`, `HashTable`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Protocol

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import DType, as_dtype, int64, string
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.registry import apply
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.ops.tables.lookup_tables import LINE_NUMBER, WHOLE_LINE, Column, TableSpec
from estimatorkit.ops.tables.tables import LookupInterface


class TextFileIndex:
    """Special column indices of a text file; other columns are 0, 1, ..."""

    WHOLE_LINE = WHOLE_LINE
    LINE_NUMBER = LINE_NUMBER


class TableInitializer(Protocol):
    """Protocol of the initializers of static tables."""

    @property
    def key_dtype(self) -> DType:
        """The dtype of the keys."""

    @property
    def value_dtype(self) -> DType:
        """The dtype of the values."""

    def initialize(self, table: LookupInterface) -> Operation:
        """Makes the operation that fills `table`."""


def _collected(operation: Operation) -> Operation:
    get_default_graph().add_to_collection(GraphKeys.TABLE_INITIALIZERS, operation)
    return operation


class KeyValueTensorInitializer:
    """Initializes a table from two tensors of equal length.

    Args:
        keys, values: the keys and their values.
        key_dtype, value_dtype: their dtypes.

    Raises:
        ValueError: the numbers of keys and values differ.
    """

    def __init__(
        self,
        keys: Any,
        values: Any,
        key_dtype: Any = None,
        value_dtype: Any = None,
        name: str | None = None,
    ) -> None:
        self._name = name or "key_value_init"
        graph = get_default_graph()
        with graph.init_scope(), graph.outermost.name_scope(self._name):
            self._keys = convert_to_tensor(_listed(keys), _optional_dtype(key_dtype), "keys")
            self._values = convert_to_tensor(
                _listed(values), _optional_dtype(value_dtype), "values"
            )
        if not self._keys.shape.is_compatible_with(self._values.shape):
            raise value_error(
                "keys and values have different shapes",
                received=f"{self._keys.shape} and {self._values.shape}",
                made_at=self._keys.op.source,
            )

    @property
    def key_dtype(self) -> DType:
        """The dtype of the keys."""
        return self._keys.dtype

    @property
    def value_dtype(self) -> DType:
        """The dtype of the values."""
        return self._values.dtype

    def initialize(self, table: LookupInterface) -> Operation:
        """Makes the operation that fills `table`, in the collection TABLE_INITIALIZERS."""
        inputs = [self._keys, self._values]
        with get_default_graph().init_scope():
            return _collected(apply("InitializeTableV2", inputs, table.table_attrs, self._name))


def _optional_dtype(value: Any) -> DType | None:
    return None if value is None else as_dtype(value)


def _listed(values: Any) -> Any:
    """Converts tuples, ranges and other sequences to lists."""
    plain = isinstance(values, (str, bytes, Tensor)) or hasattr(values, "dtype")
    return values if plain or not isinstance(values, Sequence) else list(values)


class TextFileInitializer:
    """Initializes a table from a text file, one key and value per line.

    The file name is a tensor in the collection ASSET_FILEPATHS, so exported models include the
    file.

    Args:
        filename: a string or a scalar tensor.
        key_dtype, value_dtype: the dtypes of keys and values.
        key_index, value_index: their columns, or members of `TextFileIndex`.
        vocab_size: the number of lines to read; all by default.
        delimiter: the character between columns.
        value_index_offset: added to line numbers.

    Raises:
        ValueError: the arguments do not fit each other.
    """

    def __init__(
        self,
        filename: Any,
        key_dtype: Any,
        key_index: int,
        value_dtype: Any,
        value_index: int,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str | None = None,
        value_index_offset: int = 0,
    ) -> None:
        if not isinstance(filename, Tensor) and not filename:
            raise ValueError("`filename` argument required for tf.lookup.TextFileInitializer")
        self._key = Column(int(key_index), as_dtype(key_dtype))
        self._value = Column(int(value_index), as_dtype(value_dtype))
        for what, column in (("key", self._key), ("value", self._value)):
            _check_column(what, column)
        if vocab_size is not None and vocab_size <= 0:
            raise value_error(
                f"`vocab_size` should be > 0, received: {vocab_size}",
                hint="None reads every line",
            )
        if len(delimiter.encode()) != 1:
            raise value_error("delimiter must be one character", received=repr(delimiter))
        self._vocab_size = -1 if vocab_size is None else int(vocab_size)
        self._delimiter = delimiter
        self._offset = int(value_index_offset)
        self._name = name or "text_file_init"
        self._given = filename
        given = os.fspath(filename) if isinstance(filename, os.PathLike) else filename
        graph = get_default_graph()
        with graph.init_scope(), graph.outermost.name_scope(self._name):
            self._filename = convert_to_tensor(given, string, "asset_filepath")
        get_default_graph().add_to_collection(GraphKeys.ASSET_FILEPATHS, self._filename)

    @property
    def key_dtype(self) -> DType:
        """The dtype of the keys."""
        return self._key.dtype

    @property
    def value_dtype(self) -> DType:
        """The dtype of the values."""
        return self._value.dtype

    @property
    def shared_name(self) -> str | None:
        """The name under which tables of this file share content; None if the file is not known
        yet.
        """
        if isinstance(self._given, Tensor):
            return None
        how = (self._vocab_size, *self._key, *self._value, self._delimiter, self._offset)
        text = "_".join(each.name if isinstance(each, DType) else str(each) for each in how)
        return f"hash_table_{os.fsdecode(self._given)}_{text}"

    def initialize(self, table: LookupInterface) -> Operation:
        """Makes the operation that fills `table`, in the collection TABLE_INITIALIZERS."""
        attrs = {
            **table.table_attrs,
            "key_index": self._key.place,
            "value_index": self._value.place,
            "vocab_size": self._vocab_size,
            "delimiter": self._delimiter,
            "offset": self._offset,
        }
        with get_default_graph().init_scope():
            made = apply("InitializeTableFromTextFileV2", [self._filename], attrs, self._name)
            return _collected(made)


def _check_column(what: str, column: Column) -> None:
    problem = None
    if column.place < WHOLE_LINE:
        problem = f"`{what}_index` should be >= -2, received: {column.place}"
    elif column.place == LINE_NUMBER and column.dtype is not int64:
        problem = f"`{what}_dtype` must be int64 if `{what}_index` is {LINE_NUMBER} (line number)"
    elif column.place == WHOLE_LINE and not (column.dtype is string or column.dtype.is_integer):
        problem = f"`{what}_dtype` must be string or an integer if `{what}_index` is {WHOLE_LINE}"
    if problem:
        raise value_error(problem, received=column.dtype.name)


class TextFileStringTableInitializer(TextFileInitializer):
    """Maps line numbers to lines; see `TextFileInitializer`."""

    def __init__(
        self,
        filename: Any,
        key_column_index: int = LINE_NUMBER,
        value_column_index: int = WHOLE_LINE,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str | None = "text_file_string_table_init",
    ) -> None:
        super().__init__(
            filename,
            int64,
            key_column_index,
            string,
            value_column_index,
            vocab_size,
            delimiter,
            name,
        )


class TextFileIdTableInitializer(TextFileInitializer):
    """Maps lines to line numbers; see `TextFileInitializer`."""

    def __init__(
        self,
        filename: Any,
        key_column_index: int = WHOLE_LINE,
        value_column_index: int = LINE_NUMBER,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str | None = "text_file_id_table_init",
        key_dtype: Any = string,
    ) -> None:
        super().__init__(
            filename,
            key_dtype,
            key_column_index,
            int64,
            value_column_index,
            vocab_size,
            delimiter,
            name,
        )


class StaticHashTable(LookupInterface):
    """An immutable table, filled once by an initializer.

    Args:
        initializer: fills the table.
        default_value: the value of missing keys; a scalar.
        experimental_is_anonymous: accepted for compatibility only.
        shared_name: the name under which tables of a session share content.
    """

    def __init__(
        self,
        initializer: TableInitializer,
        default_value: Any,
        name: str | None = None,
        experimental_is_anonymous: bool = False,
        shared_name: str | None = None,
    ) -> None:
        dtypes = initializer.key_dtype, initializer.value_dtype
        super().__init__(TableSpec(name or "hash_table", *dtypes), shared_name)
        with get_default_graph().name_scope(f"{self._own}_default"):
            self._default = convert_to_tensor(default_value, self.value_dtype, "default_value")
        self._default.shape.with_rank(0)
        self._initializer = initializer.initialize(self)

    @property
    def default_value(self) -> Tensor:
        """The value of missing keys."""
        return self._default

    @property
    def initializer(self) -> Operation:
        """The operation that fills the table."""
        return self._initializer

    @property
    def init(self) -> Operation:
        """Deprecated alias of `initializer`."""
        return self._initializer

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The values of keys.

        Args:
            keys: a tensor or a sparse tensor, of the table's key dtype.

        Returns:
            Values of the same shape; sparse if the keys are.

        Raises:
            FailedPreconditionError: at run time, the table is not initialized.
            TypeError: the keys have another dtype.
        """
        return self._find(keys, self._default, name)

    def __getitem__(self, keys: Any) -> Any:
        return self.lookup(keys)


class HashTable(StaticHashTable):
    """`StaticHashTable`, with TensorFlow 1's order of arguments."""

    def __init__(
        self,
        initializer: TableInitializer,
        default_value: Any,
        shared_name: str | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(initializer, default_value, name, shared_name=shared_name)
