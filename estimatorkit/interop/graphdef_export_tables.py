"""Export rules of lookup tables and of the operations that save and restore.

Part of the table of `graphdef_export_rules`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from estimatorkit.core.dtypes import int64, string
from estimatorkit.core.shapes import TensorShape
from estimatorkit.interop.graphdef_writer import Rule, Writer, plain
from estimatorkit.ops.tables.lookup_tables import DenseTable, TableSpec


def _table(w: Writer) -> None:
    attrs = {key: w.attrs[key] for key in ("key_dtype", "value_dtype", "shared_name")}
    w.node("HashTableV2", [], container="", use_node_name_sharing=True, **attrs)


def _mutable_table(w: Writer) -> None:
    spec = w.attrs.get("spec")
    w.require(spec is not None, "its graph was written by an older version")
    found = TableSpec(*spec)
    attrs: dict[str, Any] = {
        **{key: w.attrs[key] for key in ("key_dtype", "value_dtype", "shared_name")},
        "container": "",
        "use_node_name_sharing": True,
    }
    if not found.buckets and not found.value_shape:
        w.node("MutableHashTableV2", [], **attrs)
        return
    attrs["value_shape"] = TensorShape(found.value_shape)
    if not found.buckets:
        w.node("MutableHashTableOfTensorsV2", [], **attrs)
        return
    keys = [
        w.const(np.reshape(np.array(key, found.key_dtype.numpy_dtype), found.key_shape), part)
        for key, part in zip(found.reserved, ("empty_key", "deleted_key"), strict=True)
    ]
    attrs.update(initial_num_buckets=found.buckets, max_load_factor=DenseTable.FULL)
    w.node("MutableDenseHashTableV2", keys, **attrs)


def _import_table(w: Writer) -> None:
    """Fills a table; a dense one by insertion, as TensorFlow takes its buckets as they are."""
    dense = TableSpec(*w.attrs["spec"]).buckets
    _on_table(f"LookupTable{'Insert' if dense else 'Import'}V2", "Tin", "Tout")(w)


def _export_table(w: Writer) -> None:
    _on_table("LookupTableExportV2", "Tkeys", "Tvalues")(w)


def _on_table(type_: str, key: str, value: str, *kept: str) -> Rule:
    """Returns the rule of a node whose first input is a table.

    `key` and `value` are the attributes of the table's dtypes ('' for none), `kept` those to copy.
    """

    def rule(w: Writer) -> None:
        handle = _of_table(w)
        _, key_dtype, value_dtype, *_ = w.attrs["spec"]
        dtypes = {key: key_dtype, value: value_dtype} if key else {}
        w.node(type_, [handle, *w.inputs], **dtypes, **{name: w.attrs[name] for name in kept})

    return rule


def _remove(w: Writer) -> None:
    w.node("LookupTableRemoveV2", [_of_table(w), *w.inputs], Tin=w.dtype())


def _save(w: Writer) -> None:
    w.node("SaveV2", w.inputs, dtypes=[each.dtype for each in w.op.inputs[3:]])


def _of_table(w: Writer) -> str:
    handle = w.tables.get(w.attrs["table"])
    w.require(handle is not None, "its table is not in the graph")
    return str(handle)


def _find_or_hash(w: Writer) -> None:
    """Looks up ids in a vocabulary, with hash buckets for other words."""
    w.require(w.dtype() is string, "its keys are not strings")
    count, key = w.attrs["num_oov_buckets"], w.attrs["hash_key"]
    type_ = "StringToHashBucketStrong" if key else "StringToHashBucketFast"
    strong = {"key": list(key)} if key else {}
    part = "hash_bucket" if w.attrs["table"] else ""
    bucket = w.node(type_, w.inputs, part, num_buckets=count, **strong)
    if not w.attrs["table"]:
        return
    handle = _of_table(w)
    size = w.node("LookupTableSizeV2", [handle], "Size")
    outside = w.node("AddV2", [bucket, size], "Add", T=int64)
    missing = w.const(-1, "default", int64)
    found = w.node(
        "LookupTableFindV2", [handle, w.inputs[0], missing], "Find", Tin=string, Tout=int64
    )
    is_in = w.node("NotEqual", [found, missing], "NotEqual", T=int64)
    w.node("SelectV2", [is_in, found, outside], T=int64)


TABLE_RULES: dict[str, Rule] = {
    "HashTableV2": _table,
    "InitializeTableFromTextFileV2": _on_table(
        "InitializeTableFromTextFileV2",
        "",
        "",
        "key_index",
        "value_index",
        "vocab_size",
        "delimiter",
        "offset",
    ),
    "InitializeTableV2": _on_table("InitializeTableV2", "Tkey", "Tval"),
    "LookupTableExportV2": _export_table,
    "LookupTableFindOrHash": _find_or_hash,
    "LookupTableFindV2": _on_table("LookupTableFindV2", "Tin", "Tout"),
    "LookupTableImportV2": _import_table,
    "LookupTableInsertV2": _on_table("LookupTableInsertV2", "Tin", "Tout"),
    "LookupTableRemoveV2": _remove,
    "LookupTableSizeV2": _on_table("LookupTableSizeV2", "", ""),
    "MutableHashTableV2": _mutable_table,
    "RestoreV2": plain("RestoreV2", "", "dtypes"),
    "SaveV2": _save,
}
