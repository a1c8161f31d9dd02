"""Vocabulary tables: words to ids and back, with hash buckets for out-of-vocabulary words.

An out-of-vocabulary word has the id `vocabulary size + hash % num_oov_buckets`, with TensorFlow's
hashes. A lookup with buckets is one host operation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.builtin_ops import no_op
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import DType, as_dtype, int64, string
from estimatorkit.core.errors import type_error, value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import Role, Spec, output, register
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.ops.array.array import size
from estimatorkit.ops.array.filling import range_
from estimatorkit.ops.math.elementwise import add, cast
from estimatorkit.ops.tables.static_tables import (
    HashTable,
    KeyValueTensorInitializer,
    StaticHashTable,
    TableInitializer,
    TextFileIdTableInitializer,
    TextFileIndex,
    TextFileInitializer,
    TextFileStringTableInitializer,
)
from estimatorkit.ops.tables.tables import host_table, join_values, split_keys
from estimatorkit.ops.text import farmhash
from estimatorkit.ops.text.strings import string_array


@dataclass(frozen=True)
class HasherSpec:
    """The hash function of out-of-vocabulary words.

    Args:
        hasher: 'fasthash' or 'stronghash'.
        key: two 64-bit numbers, for 'stronghash'.
    """

    hasher: str
    key: tuple[int, ...] = ()


FastHashSpec = HasherSpec("fasthash")
"""FarmHash's Fingerprint64, as in `string_to_hash_bucket_fast`."""


class StrongHashSpec(HasherSpec):
    """Keyed SipHash, as in `string_to_hash_bucket_strong`.

    Args:
        key: two 64-bit numbers.

    Raises:
        ValueError: the key is invalid.
    """

    def __init__(self, key: Sequence[int]) -> None:
        if len(key) != 2:
            raise value_error(f"`key` must have size 2, received: {list(key)}", expected="two ints")
        super().__init__("stronghash", tuple(int(word) % (1 << 64) for word in key))


def _find_or_hash(
    keys: Any,
    *,
    table: str,
    spec: tuple[Any, ...],
    num_oov_buckets: int,
    hash_key: tuple[int, ...],
    context: Any,
) -> NDArray[np.int64]:
    array = string_array(keys) if isinstance(keys, bytes) else np.asarray(keys)
    words = array.reshape(-1).tolist()
    if table:
        held = host_table(context, table, spec)
        found, first = held.find(words), held.size()
    else:
        found, first = [None] * len(words), 0
    outside = [place for place, value in enumerate(found) if value is None]
    ids = np.array([0 if value is None else value for value in found], np.int64)
    if outside:
        strings = [words[place] for place in outside]
        if not isinstance(strings[0], bytes):
            strings = [str(number).encode() for number in strings]
        hashed = (
            farmhash.strong_hash64(strings, (hash_key[0], hash_key[1]))
            if hash_key
            else farmhash.fingerprint64(strings)
        )
        ids[outside] = farmhash.buckets(hashed, num_oov_buckets) + first
    return ids.reshape(array.shape)


def _infer_ids(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    return [Spec(int64, inputs[0].shape)]


register(
    "LookupTableFindOrHash",
    _find_or_hash,
    role=Role.LOOKUP,
    infer=_infer_ids,
    gradient=None,
    where="host",
    context=True,
    pure=False,
    elementwise=True,
)


class IdTableWithHashBuckets:
    """Maps words to ids: those of a table, followed by hash buckets for all other words.

    Args:
        table: the table of the vocabulary, with int64 values; None for hash buckets only.
        num_oov_buckets: the number of buckets.
        hasher_spec: the hash function.
        key_dtype: the dtype of the words given to `lookup`, string or an integer; the table's by
            default.

    Raises:
        TypeError: the dtypes are incompatible.
        ValueError: there is neither a table nor a bucket.
    """

    def __init__(
        self,
        table: StaticHashTable | None,
        num_oov_buckets: int,
        hasher_spec: HasherSpec = FastHashSpec,
        name: str | None = None,
        key_dtype: Any = None,
    ) -> None:
        if table is None and num_oov_buckets <= 0:
            raise value_error(
                "`table` cannot be None if `num_oov_buckets` is not positive",
                received=num_oov_buckets,
            )
        if hasher_spec.hasher not in ("fasthash", "stronghash"):
            raise value_error(f"Unknown hasher {hasher_spec.hasher}")
        known = string if table is None else table.key_dtype
        self._key_dtype = known if key_dtype is None else as_dtype(key_dtype)
        if self._key_dtype is not string and not self._key_dtype.is_integer:
            raise type_error(
                "Invalid `key_dtype`, expected integer or string",
                received=self._key_dtype.name,
            )
        if table is not None and (known is string) != (self._key_dtype is string):
            raise type_error(
                f"Invalid `key_dtype` for a table of {known.name} keys",
                received=self._key_dtype.name,
            )
        if table is not None and table.value_dtype is not int64:
            raise type_error(
                "Invalid `value_dtype`", expected="int64", received=table.value_dtype.name
            )
        self._table = table
        self._num_oov_buckets = int(num_oov_buckets)
        self._hasher = hasher_spec
        self._name = name or (table.name if table is not None else "hash_bucket")

    @property
    def name(self) -> str:
        """The table's name."""
        return self._name

    @property
    def key_dtype(self) -> DType:
        """The dtype of the words."""
        return self._key_dtype

    @property
    def value_dtype(self) -> DType:
        """The dtype of the ids: int64."""
        return int64

    @property
    def resource_handle(self) -> Operation | None:
        """The handle of the vocabulary's table, or None."""
        return None if self._table is None else self._table.resource_handle

    @property
    def initializer(self) -> Operation:
        """The operation that fills the vocabulary's table."""
        if self._table is not None:
            return self._table.initializer
        nothing: Operation = no_op()
        return nothing

    @property
    def init(self) -> Operation:
        """Deprecated alias of `initializer`."""
        return self.initializer

    def size(self, name: str | None = None) -> Tensor:
        """The number of ids, buckets included: an int64 scalar."""
        buckets = convert_to_tensor(self._num_oov_buckets, int64)
        return buckets if self._table is None else add(self._table.size(), buckets, name)

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The ids of words: int64, of the same shape; sparse if the keys are.

        Args:
            keys: a tensor or a sparse tensor of the table's key dtype.
        """
        sparse, words = split_keys(keys, self._key_dtype)
        with get_default_graph().name_scope(name or f"{self._name.rsplit('/', 1)[-1]}_Lookup"):
            if words.dtype.is_integer and words.dtype is not int64:
                words = cast(words, int64)
            if self._table is not None and not self._num_oov_buckets:
                return join_values(sparse, self._table.lookup(words))
            attrs = {"table": "", "spec": ()} if self._table is None else self._table.table_attrs
            attrs = {
                **attrs,
                "num_oov_buckets": self._num_oov_buckets,
                "hash_key": self._hasher.key,
            }
            found = output("LookupTableFindOrHash", [words], attrs, "LookupTableFindOrHash")
        return join_values(sparse, found)

    def __getitem__(self, keys: Any) -> Any:
        return self.lookup(keys)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}, {self._num_oov_buckets} buckets>"


class StaticVocabularyTable(IdTableWithHashBuckets):
    """Maps words to ids, with hash buckets for out-of-vocabulary words.

    Args:
        initializer: maps the n words of the vocabulary to int64 ids from 0 to n - 1; None for hash
            buckets only.
        num_oov_buckets: the number of buckets, at least 1.
        lookup_key_dtype: the dtype of the words given to `lookup`; the initializer's by default.
        experimental_is_anonymous: accepted for compatibility only.

    Raises:
        TypeError: the dtypes are incompatible.
        ValueError: there is no bucket.
    """

    def __init__(
        self,
        initializer: TableInitializer | None,
        num_oov_buckets: int,
        lookup_key_dtype: Any = None,
        name: str | None = None,
        experimental_is_anonymous: bool = False,
    ) -> None:
        if num_oov_buckets <= 0:
            raise value_error(
                "`num_oov_buckets` must be > 0; use StaticHashTable", received=num_oov_buckets
            )
        table = None
        if initializer is not None:
            if initializer.value_dtype is not int64:
                raise type_error(
                    f"Invalid `value_dtype`, expected int64 but got {initializer.value_dtype.name}"
                )
            table = StaticHashTable(initializer, -1, name, shared_name=_shared(initializer))
        super().__init__(table, num_oov_buckets, FastHashSpec, name, lookup_key_dtype)


def _shared(initializer: Any) -> str | None:
    """The name under which tables of one file share content, so that the file is held once."""
    return initializer.shared_name if isinstance(initializer, TextFileInitializer) else None


# -- indices of words


def _with_buckets(
    table: StaticHashTable, num_oov_buckets: int, spec: HasherSpec, key_dtype: DType
) -> Any:
    if num_oov_buckets or key_dtype is not table.key_dtype:
        return IdTableWithHashBuckets(table, num_oov_buckets, spec, None, key_dtype)
    return table


def _check(num_oov_buckets: int, key_dtype: DType) -> None:
    if num_oov_buckets < 0:
        raise value_error(f"num_oov_buckets must be greater or equal than 0, got {num_oov_buckets}")
    if key_dtype is not string and not key_dtype.is_integer:
        raise type_error(
            "Dtype for `keys` should be either integer or string", received=key_dtype.name
        )


def _check_file(vocabulary_file: Any, vocab_size: int | None) -> None:
    if not isinstance(vocabulary_file, Tensor) and not vocabulary_file:
        raise value_error("`vocabulary_file` must be specified and must not be empty")
    if vocab_size is not None and vocab_size < 1:
        raise value_error(
            f"`vocab_size` must be greater than 0, got {vocab_size} for vocabulary_file: "
            f"{vocabulary_file}"
        )


def index_table_from_file(
    vocabulary_file: Any,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    hasher_spec: HasherSpec = FastHashSpec,
    key_dtype: Any = string,
    name: str | None = None,
    key_column_index: int = TextFileIndex.WHOLE_LINE,
    value_column_index: int = TextFileIndex.LINE_NUMBER,
    delimiter: str = "\t",
) -> Any:
    """Returns a table that maps the words of a file, one per line, to zero-based line numbers.

    Args:
        vocabulary_file: a string or a scalar tensor.
        num_oov_buckets: the number of hash buckets for other words.
        vocab_size: the number of lines to read; all by default.
        default_value: the id of other words if there are no buckets.
        hasher_spec: the hash function for other words.
        key_dtype: string, or an integer dtype.
        key_column_index, value_column_index: the columns of words and ids, or members of
            `TextFileIndex`.
        delimiter: the character between columns.

    Returns:
        A table with `lookup`, `size`, `initializer`.
    """
    dtype = as_dtype(key_dtype)
    _check_file(vocabulary_file, vocab_size)
    _check(num_oov_buckets, dtype)
    graph = get_default_graph()
    with graph.init_scope(), graph.outermost.name_scope(name or "string_to_index"):
        held = string if dtype is string else int64
        initializer = TextFileIdTableInitializer(
            vocabulary_file,
            key_column_index,
            value_column_index,
            vocab_size,
            delimiter,
            "table_init",
            held,
        )
        shared = initializer.shared_name
        table = HashTable(initializer, default_value, shared, "hash_table")
        return _with_buckets(table, num_oov_buckets, hasher_spec, dtype)


def index_table_from_tensor(
    vocabulary_list: Any,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    hasher_spec: HasherSpec = FastHashSpec,
    dtype: Any = string,
    name: str | None = None,
) -> Any:
    """Returns a table that maps words to their indices in a list (see `index_table_from_file`).

    Args:
        vocabulary_list: the words, a vector.
        num_oov_buckets: the number of hash buckets for other words.
        default_value: the id of other words if there are no buckets.
        hasher_spec: the hash function for other words.
        dtype: the dtype of the words: string, or an integer dtype.
    """
    if vocabulary_list is None:
        raise value_error("`vocabulary_list` must be specified")
    wanted = as_dtype(dtype)
    _check(num_oov_buckets, wanted)
    graph = get_default_graph()
    with graph.init_scope(), graph.outermost.name_scope(name or "string_to_index"):
        keys = convert_to_tensor(_as_list(vocabulary_list), name="keys")
        if keys.dtype.is_integer != wanted.is_integer:
            kind = "integer" if wanted.is_integer else "non-integer"
            raise value_error(
                f"Invalid `dtype`: Expected {kind}, got {keys.dtype.name}",
                made_at=keys.op.source,
            )
        if wanted.is_integer:
            keys = cast(keys, int64)
        count = keys.shape.num_elements()
        values = range_(size(keys, out_type=int64)) if count is None else np.arange(count)
        initializer = KeyValueTensorInitializer(keys, values, keys.dtype, int64, "table_init")
        table = HashTable(initializer, default_value, None, "hash_table")
        return _with_buckets(table, num_oov_buckets, hasher_spec, wanted)


def _as_list(values: Any) -> Any:
    plain = isinstance(values, Tensor) or hasattr(values, "dtype")
    return values if plain else list(values)


def index_to_string_table_from_file(
    vocabulary_file: Any,
    vocab_size: int | None = None,
    default_value: str | bytes = "UNK",
    name: str | None = None,
    key_column_index: int = TextFileIndex.LINE_NUMBER,
    value_column_index: int = TextFileIndex.WHOLE_LINE,
    delimiter: str = "\t",
) -> HashTable:
    """Returns a table that maps line numbers to lines of a file (see `index_table_from_file`).

    Args:
        vocabulary_file: a string or a scalar tensor.
        vocab_size: the number of lines to read; all by default.
        default_value: the word of other ids.
        key_column_index, value_column_index, delimiter: as for `index_table_from_file`.
    """
    _check_file(vocabulary_file, vocab_size)
    graph = get_default_graph()
    with graph.init_scope(), graph.outermost.name_scope(name or "index_to_string"):
        initializer = TextFileStringTableInitializer(
            vocabulary_file,
            key_column_index,
            value_column_index,
            vocab_size,
            delimiter,
            "table_init",
        )
        shared = initializer.shared_name
        return HashTable(initializer, default_value, shared, "hash_table")


def index_to_string_table_from_tensor(
    vocabulary_list: Any, default_value: str | bytes = "UNK", name: str | None = None
) -> HashTable:
    """Returns a table that maps zero-based indices to the words of a list.

    See `index_table_from_tensor`.

    Args:
        vocabulary_list: the words, a vector.
        default_value: the word of other indices.
    """
    if vocabulary_list is None:
        raise value_error("`vocabulary_list` must be specified")
    graph = get_default_graph()
    with graph.init_scope(), graph.outermost.name_scope(name or "index_to_string"):
        values = convert_to_tensor(_as_list(vocabulary_list), string, "values")
        count = values.shape.num_elements()
        keys = range_(size(values, out_type=int64)) if count is None else np.arange(count)
        initializer = KeyValueTensorInitializer(keys, values, int64, string, "table_init")
        return HashTable(initializer, default_value, None, "hash_table")
