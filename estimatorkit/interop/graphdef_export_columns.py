"""Export of feature-column operations and class names to TensorFlow's nodes.

Part of the table of `graphdef_export`. Sparse features become dense rows of the tensor's static
width, padded with ABSENT, which is all that later operations need. A vocabulary is a table that
each lookup initializes first; TensorFlow initializes a table once, so serving works without running
initializers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from estimatorkit.core.dtypes import DType, bool_, float32, int32, int64, string
from estimatorkit.core.registry import output
from estimatorkit.core.tensor import Tensor
from estimatorkit.interop.graphdef_writer import Rule, Writer, composed
from estimatorkit.ops.array.array import expand_dims
from estimatorkit.ops.array.indexing import one_hot
from estimatorkit.ops.array.joining import concat
from estimatorkit.ops.array.segment import unsorted_segment_max
from estimatorkit.ops.math.elementwise import add, cast, floordiv, maximum
from estimatorkit.ops.math.reduce import reduce_max
from estimatorkit.ops.tables.embedding_rows import ID, ROW
from estimatorkit.ops.tables.feature_ids import ABSENT

Kind = Callable[[Writer, str, DType], str]
"""Writes the lookup of raw values, and returns the name of their ids."""


def _texts(w: Writer, values: str, dtype: DType) -> str:
    """Converts values to strings."""
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
    if default < 0:  # the gather fails if an id is out of range
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
    places = w.const(np.arange(len(words)), "ids", int64)
    table, filled = _filled_table(w, w.const(words, "words"), places, key_dtype)
    default = w.const(-1 if buckets else w.attrs["default_value"], "default", int64)
    found = w.node(
        "LookupTableFindV2", [table, keys, default, filled], "Find", Tin=key_dtype, Tout=int64
    )
    if not buckets:
        return found
    first = w.const(len(words), "words_count", int64)
    others = w.node("AddV2", [_hash(w, values, dtype, buckets), first], "other_words", T=int64)
    is_other = w.node("Equal", [found, default], "Equal", T=int64)
    return _select(w, is_other, others, found, "all_words")


def _filled_table(w: Writer, keys: str, values: str, key_dtype: DType) -> tuple[str, str]:
    """A table of int64 values, and what a lookup in it must wait for."""
    table = w.node(
        "HashTableV2",
        [],
        "hash_table",
        container="",
        shared_name=f"{w.name}/hash_table",
        use_node_name_sharing=True,
        key_dtype=key_dtype,
        value_dtype=int64,
    )
    given = {"Tkey": key_dtype, "Tval": int64}
    filled = w.node("InitializeTableV2", [table, keys, values], "table_init", **given)
    return table, f"^{filled}"


def _embedding_rows(w: Writer) -> None:
    """Looks ids up in a table that is filled with the variable of ids and rows."""
    w.require(w.attrs["part"][1] == 1, "its table has several partitions")
    handle = w.op.graph.get_operation_by_name(w.attrs["table"]).outputs[0]
    known = w.node("ReadVariableOp", [w.names[handle]], "known", dtype=int64)
    axis = w.const(1, "axis", int32)
    dtypes = {"Tparams": int64, "Tindices": int32, "Taxis": int32, "batch_dims": 0}
    keys, rows = (
        w.node("GatherV2", [known, w.const(column, "column", int32), axis], part, **dtypes)
        for part, column in (("keys", ID), ("rows", ROW))
    )
    table, filled = _filled_table(w, keys, rows, int64)
    given = [table, w.inputs[0], w.const(ABSENT, "absent", int64), filled]
    w.node("LookupTableFindV2", given, Tin=int64, Tout=int64)


def _select(w: Writer, condition: str, one: str, other: str, part: str) -> str:
    return w.node("SelectV2", [condition, one, other], part, T=int64)


def _dense(kind: Kind) -> Rule:
    def rule(w: Writer) -> None:
        dtype = w.dtype()
        count = w.attrs["expand"]
        count = int(w.rank() == 1) if count < 0 else count
        ids = kind(w, w.inputs[0], dtype)
        missing = w.const(b"" if dtype is string else -1, "missing", dtype)
        is_missing = w.node("Equal", [w.inputs[0], missing], "is_missing", T=dtype)
        ids = _select(w, is_missing, w.const(ABSENT, "absent", int64), ids, "present")
        for _ in range(count):
            ids = _expanded(w, ids, int64)
        w.node("Identity", [ids], T=int64)

    return rule


def _expanded(w: Writer, name: str, dtype: DType) -> str:
    """Appends an axis of length 1 to a tensor."""
    axis = w.const(-1, "axis", int32)
    return w.node("ExpandDims", [name, axis], "ExpandDims", T=dtype, Tdim=int32)


def _sparse(kind: Kind) -> Rule:
    def rule(w: Writer) -> None:
        indices, values, shape = w.inputs
        (rank,) = w.op.inputs[2].shape.as_list()
        w.require(rank is not None, "the rank of its values is unknown")
        expand = rank == 1 or (rank == 2 and w.attrs["steps"])
        given = [indices, shape, kind(w, values, w.dtype(1)), w.const(ABSENT, "absent", int64)]
        attrs = {"T": int64, "Tindices": int64, "validate_indices": False}
        if expand:
            rows = w.node("SparseToDense", given, "rows", **attrs)
            w.node("Identity", [_expanded(w, rows, int64)], T=int64)
        else:
            w.node("SparseToDense", given, **attrs)

    return rule


def _sparse_weights(w: Writer) -> None:
    _, indices, values, shape = w.inputs
    w.require(w.op.inputs[3].shape.as_list() == [2], "the rank of its values is not 2")
    if w.dtype(2) is not float32:
        values = w.node("Cast", [values], "Cast", SrcT=w.dtype(2), DstT=float32)
    given = [indices, shape, values, w.const(0, "absent", float32)]
    w.node("SparseToDense", given, T=float32, Tindices=int64, validate_indices=False)


def _sequence_lengths(attrs: Any, indices: Tensor, shape: Tensor) -> list[Tensor]:
    ends = unsorted_segment_max(indices[:, 1] + np.int64(1), indices[:, 0], shape[0])
    steps, size = maximum(ends, np.int64(0)), np.int64(attrs["num_elements"])
    return [floordiv(steps + (size - 1), size)]


def _bucket_ids(attrs: Any, numbers: Tensor) -> list[Tensor]:
    boundaries = attrs["boundaries"]
    buckets = output("Bucketize", [cast(numbers, float32)], {"boundaries": boundaries})
    ids = cast(buckets, int64)
    for _ in range(attrs["expand"]):
        ids = expand_dims(ids, -1)
    width = ids.shape[-1] or 1
    if width > 1:
        ids = add(ids, np.arange(width, dtype=np.int64) * (len(boundaries) + 1))
    return [ids]


def _packed_ids(attrs: Any, *raw: Tensor) -> list[Tensor]:
    values = list(raw)
    for op_type, inputs, given in attrs["parts"]:
        values.append(output(op_type, [values[number] for number in inputs], dict(given)))
    return [concat([values[number] for number in attrs["kept"]], -1)]


# TensorFlow crosses the values before hashing, so the words stand for `MixedIds` and
# `SparseFingerprintIds`.


def _words(at: int) -> Rule:
    """Returns the rule for the words that an operation hashes."""

    def rule(w: Writer) -> None:
        words = w.inputs[at]
        for _ in range(w.attrs.get("expand", 0)):
            words = _expanded(w, words, string)
        w.node("Identity", [words], T=string)

    return rule


def _crossed(w: Writer) -> None:
    """Crosses in TensorFlow's order: columns' ids are sparse, and precede dense features."""
    sparse: list[tuple[str, str, str]] = []
    dense: list[str] = []
    types: tuple[list[DType], list[DType]] = ([], [])
    for position, tensor in enumerate(w.op.inputs):
        source = tensor.op.type
        if source == "SparseFingerprintIds":
            indices, values, shape = (w.names[each] for each in tensor.op.inputs)
            sparse.append((indices, values, shape))
            types[0].append(string)
        elif source.endswith("Ids") and source != "MixedIds":
            w.require(not dense and w.rank(position) == 2, "its features are in a different order")
            sparse.append(_present(w, w.inputs[position]))
            types[0].append(int64)
        else:
            dense.append(_dense_feature(w, position))
            types[1].append(string if tensor.dtype is string or source == "MixedIds" else int64)
    name = w.node(
        "SparseCross",
        [each for part in zip(*sparse, strict=True) for each in part] + dense,
        "SparseCross",
        N=len(sparse),
        hashed_output=True,
        num_buckets=w.attrs["num_buckets"],
        hash_key=w.attrs["hash_key"],
        sparse_types=types[0],
        dense_types=types[1],
        out_type=int64,
        internal_type=int64 if int64 in [*types[0], *types[1]] else string,
    )
    shape, width = f"{name}:2", w.op.outputs[0].shape
    if width.rank and width[-1] is not None:  # the maximum width, not the actual one
        bounds = [w.const([0], "begin", int32), w.const([1], "size", int32)]
        rows = w.node("Slice", [shape, *bounds], "rows", T=int64, Index=int32)
        parts = [rows, w.const([width[-1]], "width", int64), w.const(0, "axis", int32)]
        shape = w.node("ConcatV2", parts, "shape", N=2, T=int64, Tidx=int32)
    given = [name, shape, f"{name}:1", w.const(ABSENT, "absent", int64)]
    w.node("SparseToDense", given, T=int64, Tindices=int64, validate_indices=False)


def _present(w: Writer, ids: str) -> tuple[str, str, str]:
    """Converts rows of ids to a sparse tensor without ABSENT."""
    absent = w.const(ABSENT, "no_id", int64)
    there = w.node("NotEqual", [ids, absent], "is_present", T=int64)
    indices = w.node("Where", [there], "indices", T=bool_)
    values = w.node("GatherNd", [ids, indices], "values", Tparams=int64, Tindices=int64)
    return indices, values, w.node("Shape", [ids], "dense_shape", T=int64, out_type=int64)


def _dense_feature(w: Writer, position: int) -> str:
    """Returns a raw string or int64 feature `(batch, width)`."""
    tensor, name = w.op.inputs[position], w.inputs[position]
    dtype = string if tensor.op.type == "MixedIds" else tensor.dtype
    if dtype not in (string, int64):
        name, dtype = _as_int64(w, name, dtype), int64
    expand = w.attrs["expand"][position]
    return _expanded(w, name, dtype) if expand > 0 or (expand and w.rank(position) == 1) else name


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


def _label_ids(attrs: Any, labels: Tensor) -> list[Tensor]:
    """Maps unknown labels to -1, which consumers report as out of range."""
    words = np.empty(len(attrs["vocabulary"]), object)
    words[:] = attrs["vocabulary"]
    given = {"vocabulary": words, "num_oov_buckets": 0, "default_value": -1, "source": ()}
    return [output("VocabularyIds", [labels], {**given, "expand": 0})]


def _label_indicator(attrs: Any, indices: Tensor, ids: Tensor, shape: Tensor) -> list[Tensor]:
    rows = output("SparsePlainIds", [indices, ids, shape], {"steps": False})
    return [reduce_max(one_hot(rows, attrs["classes"], 1.0, 0.0), -2)]


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
    "BucketIds": composed(_bucket_ids),
    "Bucketize": _bucketize,
    "ClassNames": _class_names,
    "CrossedIds": _crossed,
    "EmbeddingRows": _embedding_rows,
    "LabelIds": composed(_label_ids),
    "LabelIndicator": composed(_label_indicator),
    "MixedIds": _words(0),
    "PackedIds": composed(_packed_ids),
    "SparseFeatureWeights": _sparse_weights,
    "SparseFingerprintIds": _words(1),
    "SparseSequenceLengths": composed(_sequence_lengths),
    **{name: _dense(kind) for name, kind in _KINDS.items()},
    **{f"Sparse{name}": _sparse(kind) for name, kind in _KINDS.items()},
}
