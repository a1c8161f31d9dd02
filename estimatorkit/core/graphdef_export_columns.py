"""What TensorFlow's nodes stand for the operations of feature columns and the names of classes.

Part of the table of `graphdef_export`. Ids of places without a value are -1 there; rows of sparse
features are as wide as the longest one, which is all that the operations after them ask. A
vocabulary is a table that each look-up fills first: TensorFlow fills a table once, so that it is
served by those, too, who run no initializers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from estimatorkit.core.dtypes import DType, int32, int64, string
from estimatorkit.core.graphdef_export import Rule, Writer

Kind = Callable[[Writer, str, DType], str]
"""Writes the look-up of raw values, and gives the name of their ids."""


def _texts(w: Writer, values: str, dtype: DType) -> str:
    """Values as strings."""
    if dtype is string:
        return values
    plain = {"precision": -1, "scientific": False, "shortest": False, "width": -1, "fill": ""}
    return w.node("AsString", [values], "AsString", T=dtype, **plain)


def _as_int64(w: Writer, values: str, dtype: DType) -> str:
    return w.node("Cast", [values], "ToInt64", SrcT=dtype, DstT=int64)


def _hash(w: Writer, values: str, dtype: DType, buckets: int) -> str:
    return w.node(
        "StringToHashBucketFast", [_texts(w, values, dtype)], "hash_bucket", num_buckets=buckets
    )


def _hashed(w: Writer, values: str, dtype: DType) -> str:
    return _hash(w, values, dtype, w.attrs["num_buckets"])


def _identity(w: Writer, values: str, dtype: DType) -> str:
    ids, default = _as_int64(w, values, dtype), w.attrs["default_value"]
    if default < 0:  # what is out of range is an error where the row is gathered
        return ids
    zero, end = w.const(0, "zero", int64), w.const(w.attrs["num_buckets"], "num_buckets", int64)
    below = w.node("Less", [ids, zero], "Less", T=int64)
    above = w.node("GreaterEqual", [ids, end], "GreaterEqual", T=int64)
    outside = w.node("LogicalOr", [below, above], "LogicalOr")
    return _select(w, outside, w.const(default, "default", int64), ids, "in_range")


def _looked_up(w: Writer, values: str, dtype: DType) -> str:
    words, buckets = w.attrs["vocabulary"], w.attrs["num_oov_buckets"]
    key_dtype = string if words.dtype == object else int64
    keys = values if key_dtype is string else _as_int64(w, values, dtype)
    table = w.node(
        "HashTableV2",
        [],
        "hash_table",
        container="",
        shared_name=f"{w.op.name}/hash_table",
        use_node_name_sharing=True,
        key_dtype=key_dtype,
        value_dtype=int64,
    )
    places = w.const(np.arange(len(words)), "ids", int64)
    filled = w.node(
        "InitializeTableV2",
        [table, w.const(words, "words"), places],
        "table_init",
        Tkey=key_dtype,
        Tval=int64,
    )
    default = w.const(-1 if buckets else w.attrs["default_value"], "default", int64)
    found = w.node(
        "LookupTableFindV2",
        [table, keys, default, f"^{filled}"],
        "Find",
        Tin=key_dtype,
        Tout=int64,
    )
    if not buckets:
        return found
    first = w.const(len(words), "words_count", int64)
    others = w.node("AddV2", [_hash(w, values, dtype, buckets), first], "other_words", T=int64)
    is_other = w.node("Equal", [found, default], "Equal", T=int64)
    return _select(w, is_other, others, found, "all_words")


def _select(w: Writer, condition: str, one: str, other: str, part: str) -> str:
    return w.node("SelectV2", [condition, one, other], part, T=int64)


# -- layouts


def _dense(kind: Kind) -> Rule:
    def rule(w: Writer) -> None:
        dtype = w.dtype()
        count = w.attrs["expand"]
        count = int(w.rank() == 1) if count < 0 else count
        ids = kind(w, w.inputs[0], dtype)
        missing = w.const(b"" if dtype is string else -1, "missing", dtype)
        is_missing = w.node("Equal", [w.inputs[0], missing], "is_missing", T=dtype)
        ids = _select(w, is_missing, w.const(-1, "absent", int64), ids, "present")
        for _ in range(count):
            axis = w.const(-1, "axis", int32)
            ids = w.node("ExpandDims", [ids, axis], "ExpandDims", T=int64, Tdim=int32)
        w.node("Identity", [ids], T=int64)

    return rule


def _sparse(kind: Kind) -> Rule:
    def rule(w: Writer) -> None:
        w.require(not w.attrs["steps"], "it lays out steps of a sequence")
        w.require(w.op.inputs[2].shape.as_list() == [2], "the rank of its values is not 2")
        indices, values, shape = w.inputs
        ids = kind(w, values, w.dtype(1))
        absent = w.const(-1, "absent", int64)
        w.node(
            "SparseToDense",
            [indices, shape, ids, absent],
            T=int64,
            Tindices=int64,
            validate_indices=False,
        )

    return rule


# -- classes


def _names(w: Writer) -> Any:
    names = np.empty(len(w.attrs["names"]), object)
    names[:] = w.attrs["names"]
    return names


def _class_names(w: Writer) -> None:
    inputs = [w.const(_names(w), "names"), w.inputs[0], w.const(0, "axis", int32)]
    dtypes = {"Tparams": string, "Tindices": w.dtype(), "Taxis": int32}
    w.node("GatherV2", inputs, batch_dims=0, **dtypes)


def _all_class_names(w: Writer) -> None:
    shape = w.node("Shape", w.inputs, "Shape", T=w.dtype(), out_type=int32)
    bounds = [w.const([0], "begin", int32), w.const([1], "size", int32)]
    rows = w.node("Slice", [shape, *bounds], "rows", T=int32, Index=int32)
    parts = [rows, w.const([1], "one", int32), w.const(0, "axis", int32)]
    multiples = w.node("ConcatV2", parts, "multiples", N=2, T=int32, Tidx=int32)
    names = w.const(_names(w)[None], "names")
    w.node("Tile", [names, multiples], T=string, Tmultiples=int32)


def _bucketize(w: Writer) -> None:
    boundaries = [float(each) for each in w.attrs["boundaries"]]
    w.node("Bucketize", w.inputs, T=w.dtype(), boundaries=boundaries)


_KINDS: dict[str, Kind] = {
    "HashedIds": _hashed,
    "IdentityIds": _identity,
    "PlainIds": _as_int64,
    "VocabularyIds": _looked_up,
}

COLUMN_RULES: dict[str, Rule] = {
    "AllClassNames": _all_class_names,
    "Bucketize": _bucketize,
    "ClassNames": _class_names,
    **{name: _dense(kind) for name, kind in _KINDS.items()},
    **{f"Sparse{name}": _sparse(kind) for name, kind in _KINDS.items()},
}

__all__ = ["COLUMN_RULES"]
