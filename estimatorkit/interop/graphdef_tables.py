"""Import of TensorFlow's nodes for lookup tables, strings, `Example` parsing and checks.

Part of the table of `graphdef_tensorflow`. Table handles are not tensors here; during import, a
`Table` represents them.
"""

from __future__ import annotations

from typing import Any

from estimatorkit.core import registry
from estimatorkit.core.dtypes import DType, int32, resource
from estimatorkit.core.errors import value_error
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.interop.graphdef_rules import Call, Node, Rule
from estimatorkit.ops.array.array import reshape
from estimatorkit.ops.control import custom_gradients as _identity_n  # noqa: F401 (registers IdentityN)
from estimatorkit.ops.parsing.example_parsing import Column
from estimatorkit.ops.tables.lookup_tables import TableSpec
from estimatorkit.ops.tables.mutable_tables import BUCKETS, plain_key
from estimatorkit.ops.tables.tables import LookupInterface


class Table(LookupInterface):
    """A table of an imported graph, in place of TensorFlow's handle tensor."""

    @property
    def op(self) -> Operation:
        """The handle."""
        return self.resource_handle

    @property
    def dtype(self) -> DType:
        """The dtype of handles."""
        return resource


def _table(_: Any, n: Node) -> list[Any]:
    # Shared with the session's tables of the same name, as in TensorFlow.
    shared_name = n.get("shared_name", "") or None
    return [Table(TableSpec(n.name, n["key_dtype"], n["value_dtype"]), shared_name)]


def _mutable_table(_: Any, n: Node) -> list[Any]:
    shape = n.get("value_shape", TensorShape([]))
    made = TableSpec(n.name, n["key_dtype"], n["value_dtype"], tuple(shape.as_list()), True)
    if len(n.inputs):
        keys = [n.known(at) for at in (0, 1)]
        made = made._replace(
            reserved=tuple(map(plain_key, keys)),
            key_shape=keys[0].shape,
            buckets=n.get("initial_num_buckets", BUCKETS),
        )
    return [Table(made, n.get("shared_name", "") or None)]


def _import(f: Any, n: Node) -> Operation:
    table: Any = n[0]
    mutable = isinstance(table, Table) and TableSpec(*table.table_attrs["spec"]).mutable
    type_ = "LookupTableImportV2" if mutable else "InitializeTableV2"
    made: Operation = _on_table(type_)(f, n)
    return made


def _on_table(type_: str, *kept: str) -> Call:
    """Returns a call of the table operation of this type, with these attributes of the node."""

    def call(_: Any, n: Node) -> Operation:
        table, *inputs = n.inputs
        if not isinstance(table, Table):
            raise value_error(
                f"node {n.proto.name!r} ({n.proto.op}) does not have a table as its first input",
                expected="a HashTableV2",
                received=table,
            )
        attrs = {**table.table_attrs, **{key: n[key] for key in kept if key in n.proto.attr}}
        if "offset" in kept:
            attrs = {"vocab_size": -1, "delimiter": "\t", "offset": 0, **attrs}
        return registry.apply(type_, inputs, attrs, n.name)

    return call


_FILE = ("key_index", "value_index", "vocab_size", "delimiter", "offset")
_TABLES: dict[str, Call] = {
    "HashTable": _table,
    "InitializeTable": _on_table("InitializeTableV2"),
    "InitializeTableFromTextFile": _on_table("InitializeTableFromTextFileV2", *_FILE),
    "LookupTableFind": _on_table("LookupTableFindV2"),
    "LookupTableExport": _on_table("LookupTableExportV2"),
    "LookupTableImport": _import,
    "LookupTableInsert": _on_table("LookupTableInsertV2"),
    "LookupTableRemove": _on_table("LookupTableRemoveV2"),
    "MutableDenseHashTable": _mutable_table,
    "MutableHashTable": _mutable_table,
    "MutableHashTableOfTensors": _mutable_table,
    "LookupTableSize": _on_table("LookupTableSizeV2"),
}


def _parse_example(_: Any, n: Node) -> Operation:
    """Imports version 2: the keys are vectors."""
    if n.known(4).size:
        raise ValueError(f"node {n.proto.name!r} ({n.proto.op}) parses ragged features.")
    sparse, dense = n.known(2).tolist(), n.known(3).tolist()
    return _parsed(n, sparse, dense, n.inputs[5:])


def _parse_example_v1(_: Any, n: Node) -> Operation:
    """Imports version 1: each key is a scalar."""
    sparse, dense = n["Nsparse"], n["Ndense"]
    keys = [n.known(2 + number).item() for number in range(sparse + dense)]
    return _parsed(n, keys[:sparse], keys[sparse:], n.inputs[2 + sparse + dense :])


def _parsed(n: Node, sparse: list[bytes], dense: list[bytes], defaults: list[Tensor]) -> Operation:
    columns = [
        Column("lists", key.decode(), dtype)
        for key, dtype in zip(sparse, n["sparse_types"], strict=True)
    ]
    given = []
    kinds = zip(dense, n["Tdense"], n["dense_shapes"], defaults, strict=True)
    for key, dtype, shape, default in kinds:
        there = default.shape.num_elements() != 0
        padded = bool(shape.rank) and shape[0] is None
        dims = tuple(int(dim) for dim in shape.as_list()[padded:])
        columns.append(Column("padded" if padded else "dense", key.decode(), dtype, dims, there))
        if there:
            given.append(reshape(default, () if padded else dims))
    attrs = {"columns": tuple(tuple(column) for column in columns)}
    inputs, count = [*n.inputs[:2], *given], 3 * len(sparse)
    if len(sparse) < 2:
        return registry.apply("ParseExampleV2", inputs, attrs, n.name)
    # TensorFlow outputs all indices first, then all values.
    outputs = registry.apply("ParseExampleV2", inputs, attrs, f"{n.name}parsed").outputs
    ordered = [*(each for part in range(3) for each in outputs[part:count:3]), *outputs[count:]]
    return registry.apply("IdentityN", ordered, None, n.name)


def _sparse_to_dense(_: Any, n: Node) -> Operation:
    attrs = {"validate_indices": n.get("validate_indices", True)}
    return registry.apply("SparseToDense", n.inputs, attrs, n.name)


def _assert(_: Any, n: Node) -> Operation:
    return registry.apply("Assert", n.inputs, {"summarize": n.get("summarize", 3)}, n.name)


def _unique(_: Any, n: Node) -> Operation:
    return registry.apply("Unique", n.inputs, {"dtype": n.get("out_idx", int32)}, n.name)


TABLE_RULES: dict[str, Rule] = {
    "Assert": Rule("", _assert),
    **{
        f"{type_}{version}": Rule("", call, True)
        for type_, call in _TABLES.items()
        for version in ("", "V2")
    },
    "IdentityN": Rule("", lambda _, n: registry.apply("IdentityN", n.inputs, None, n.name)),
    "ParseExample": Rule("", _parse_example_v1),
    "ParseExampleV2": Rule("", _parse_example),
    "RegexReplace": Rule(
        "regex_replace", lambda f, n: f(*n.inputs, n.get("replace_global", True), name=n.name)
    ),
    "StringSplitV2": Rule(
        "",
        lambda _, n: registry.apply(
            "StringSplitV2", n.inputs, {"maxsplit": n.get("maxsplit", -1)}, n.name
        ),
    ),
    "RegexFullMatch": Rule("strings.regex_full_match", lambda f, n: f(n[0], n[1], name=n.name)),
    "StaticRegexFullMatch": Rule(
        "strings.regex_full_match", lambda f, n: f(n[0], n["pattern"], name=n.name)
    ),
    "StaticRegexReplace": Rule(
        "regex_replace",
        lambda f, n: f(
            n[0], n["pattern"], n["rewrite"], n.get("replace_global", True), name=n.name
        ),
    ),
    "SparseToDense": Rule("", _sparse_to_dense),
    "StringLength": Rule(
        "strings.length", lambda f, n: f(n[0], unit=n.get("unit", "BYTE"), name=n.name)
    ),
    **{type_: Rule("", _unique) for type_ in ("Unique", "UniqueWithCounts")},
    "StringLower": Rule("strings.lower", lambda f, n: f(n[0], n.get("encoding", ""), name=n.name)),
    "StringUpper": Rule("strings.upper", lambda f, n: f(n[0], n.get("encoding", ""), name=n.name)),
    "StringToHashBucketStrong": Rule(
        "string_to_hash_bucket_strong",
        lambda f, n: f(n[0], n["num_buckets"], list(n["key"]), name=n.name),
    ),
    "DecodeImage": Rule(
        "image.decode_image",
        lambda f, n: f(
            n[0],
            n.get("channels", 0),
            n.get("dtype", "uint8"),
            name=n.name,
            expand_animations=n.get("expand_animations", True),
        ),
    ),
}
