"""Parts of `contrib.lookup`."""

from __future__ import annotations

from typing import Any

from estimatorkit import lookup
from estimatorkit.compat.arguments import with_arguments
from estimatorkit.core.dtypes import string


def index_table_from_tensor(
    mapping: Any = None,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    hasher_spec: Any = lookup.FastHashSpec,
    dtype: Any = string,
    name: str | None = None,
    vocabulary_list: Any = None,
) -> Any:
    """`lookup.index_table_from_tensor` with `contrib`'s name for the vocabulary."""
    words = vocabulary_list if mapping is None else mapping
    return lookup.index_table_from_tensor(
        words, num_oov_buckets, default_value, hasher_spec, dtype, name
    )


def index_to_string_table_from_tensor(
    mapping: Any = None,
    default_value: str = "UNK",
    name: str | None = None,
    vocabulary_list: Any = None,
) -> Any:
    """`lookup.index_to_string_table_from_tensor` with `contrib`'s name for the vocabulary."""
    words = vocabulary_list if mapping is None else mapping
    return lookup.index_to_string_table_from_tensor(words, default_value, name)


string_to_index_table_from_file = with_arguments(
    __name__,
    "string_to_index_table_from_file",
    lookup.index_table_from_file,
    "vocabulary_file num_oov_buckets vocab_size default_value hasher_spec name",
    {"vocabulary_file": None},
)
string_to_index_table_from_tensor = index_table_from_tensor


def string_to_index(
    tensor: Any, mapping: Any, default_value: int = -1, name: str | None = None
) -> Any:
    """The indices of strings in `mapping`, int64."""
    table = lookup.index_table_from_tensor(mapping, default_value=default_value, name=name)
    return table.lookup(tensor)


def index_to_string(
    tensor: Any, mapping: Any, default_value: str = "UNK", name: str | None = None
) -> Any:
    """The strings at indices of `mapping`."""
    table = lookup.index_to_string_table_from_tensor(mapping, default_value, name)
    return table.lookup(tensor)
