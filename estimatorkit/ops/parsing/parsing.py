"""`parse_example` and related functions: parsing of serialized `Example`s into tensors.

The feature descriptions are small frozen tuples; `example_parsing` parses, on the host.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import as_dtype, int64, string
from estimatorkit.core.errors import type_error, value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import Case, Spec, apply, register
from estimatorkit.core.shapes import TensorShape, as_shape
from estimatorkit.core.sparse_tensor import SparseTensor
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array.array import reshape
from estimatorkit.ops.parsing.example_blocks import parse_block
from estimatorkit.ops.parsing.example_parsing import (
    LISTS,
    Column,
    parse_examples,
    parse_sequence_examples,
    without_batch,
)
from estimatorkit.ops.text.sparse_rows import sparse_specs
from estimatorkit.ops.text.strings import string_array

# -- features


class FixedLenFeature(NamedTuple):
    """A fixed number of values per example: a dense tensor `(batch, *shape)`.

    Attributes:
        shape: the shape of one example's values.
        dtype: float32, int64 or string.
        default_value: the values for examples without the feature; None if it is required.
    """

    shape: Any
    dtype: Any
    default_value: Any = None


class VarLenFeature(NamedTuple):
    """Any number of values: a sparse tensor `(batch, longest)`.

    Attributes:
        dtype: float32, int64 or string.
    """

    dtype: Any


class SparseFeature(NamedTuple):
    """Values whose indices are in other features: a sparse tensor `(batch, *size)`.

    Attributes:
        index_key: the feature of int64 indices, or a list with one per dimension.
        value_key: the feature of values.
        dtype: float32, int64 or string.
        size: the dense size, or a list with one per dimension.
        already_sorted: whether the indices are sorted.
    """

    index_key: Any
    value_key: str
    dtype: Any
    size: Any
    already_sorted: bool = False


class FixedLenSequenceFeature(NamedTuple):
    """Any number of blocks of equal shape.

    In an example, the result is `(batch, longest, *shape)`, padded with `default_value`, and
    `allow_missing` must be True. In the steps of a sequence example, it is `(steps, *shape)`.

    Attributes:
        shape: the shape of a block.
        dtype: float32, int64 or string.
        allow_missing: whether the feature may be missing.
        default_value: the scalar padding; 0 or '' by default.
    """

    shape: Any
    dtype: Any
    allow_missing: bool = False
    default_value: Any = None


Features = Mapping[str, Any]
"""Features by name."""


class _Read(NamedTuple):
    """A feature in the form of the kernels.

    Attributes:
        name: its key in the result.
        column: how to read it.
        default: the default value, or None.
    """

    name: str
    column: Column
    default: Any = None


def _dtype(key: str, value: Any) -> Any:
    if value is None:
        raise value_error(f"Missing type for feature {key}")
    dtype = as_dtype(value)
    if dtype not in LISTS:
        raise type_error(
            f"Feature {key!r} has DataType {dtype.name} not in list of allowed values: "
            "float32, int64, string",
            hint="cast() the parsed values",
        )
    return dtype


def _shape(key: str, value: Any) -> tuple[int, ...]:
    shape = as_shape(value)
    if not shape.is_fully_defined():
        raise value_error(
            f"First dimension of shape for feature {key} unknown. Consider using "
            "FixedLenSequenceFeature"
            if shape.rank and shape[0] is None
            else f"All dimensions of shape for feature {key} need to be known",
            received=f"shape {shape}",
        )
    return tuple(int(dim) for dim in shape.as_list() if dim is not None)


def _reads(features: Features, *, steps: bool = False) -> list[_Read]:
    """Converts features to the form of the kernels, sorted by name.

    `steps`: for the steps of sequence examples. Raises ValueError if a feature is invalid.
    """
    return [_read(key, features[key], steps) for key in sorted(features)]


def _read(key: str, feature: Any, steps: bool) -> _Read:
    if isinstance(feature, VarLenFeature):
        return _Read(key, Column("lists", key, _dtype(key, feature.dtype)))
    if isinstance(feature, FixedLenSequenceFeature):
        dtype, shape = _dtype(key, feature.dtype), _shape(key, feature.shape)
        if steps:
            allowed = bool(feature.allow_missing)
            return _Read(key, Column("dense", key, dtype, shape, allow_missing=allowed))
        if not feature.allow_missing:
            raise value_error(
                "Unsupported: FixedLenSequenceFeature requires allow_missing to be True",
                received=f"{key!r}: {feature}",
            )
        default = feature.default_value
        return _Read(key, Column("padded", key, dtype, shape, default is not None), default)
    if isinstance(feature, FixedLenFeature) and not steps:
        dtype, shape = _dtype(key, feature.dtype), _shape(key, feature.shape)
        default = feature.default_value
        return _Read(key, Column("dense", key, dtype, shape, default is not None), default)
    if isinstance(feature, SparseFeature) and not steps:
        keys, sizes = feature.index_key, feature.size
        keys = (keys,) if isinstance(keys, str) else tuple(keys)
        sizes = (sizes,) if np.ndim(sizes) == 0 else tuple(sizes)
        if len(keys) != len(sizes):
            raise value_error(
                f"SparseFeature {key!r}: index_key and size must have equally many entries",
                received=f"{list(keys)} and {list(sizes)}",
            )
        dtype = _dtype(key, feature.dtype)
        sizes = tuple(int(size) for size in sizes)
        ordered = bool(feature.already_sorted)
        column = Column("sparse", feature.value_key, dtype, sizes, False, keys, ordered)
        return _Read(key, column)
    kinds = "FixedLenSequenceFeature, VarLenFeature"
    raise value_error(
        f"Invalid feature {key}:{feature!r}",
        expected=kinds if steps else f"FixedLenFeature, SparseFeature, {kinds}",
        received=type(feature).__name__,
    )


def _default_tensors(reads: Sequence[_Read]) -> list[Tensor]:
    tensors = []
    for read in reads:
        if read.column.default:
            column = read.column
            tensor = convert_to_tensor(read.default, column.dtype, _op_name(f"default_{read.name}"))
            shape = () if column.kind == "padded" else column.shape
            tensors.append(tensor if tensor.shape == shape else reshape(tensor, shape))
    return tensors


def _op_name(feature: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.\-/]", "_", feature)


# -- the operations


def _as_columns(columns: Sequence[Any]) -> list[Column]:
    """Columns from an operation's attribute, which holds plain tuples."""
    return [Column(*each) for each in columns]


def _parse(
    serialized: Any, names: Any, *defaults: Any, columns: tuple[Any, ...]
) -> list[NDArray[Any]]:
    array, read = string_array(serialized), _as_columns(columns)
    outputs = parse_examples(
        array.reshape(-1).tolist(),
        string_array(names).reshape(-1).tolist(),
        read,
        [_default_array(default) for default in defaults],
    )
    return outputs if array.ndim else without_batch(outputs, read)


def _default_array(value: Any) -> NDArray[Any]:
    return string_array(value) if isinstance(value, bytes) else np.asarray(value)


def _specs(columns: Sequence[Column], batch: TensorShape) -> list[Spec]:
    """The specs of the outputs; `batch` is the shape of `serialized`."""
    specs: list[Spec] = []
    for column in columns:
        if column.kind == "dense":
            specs.append(Spec(column.dtype, batch.concatenate(column.shape)))
        elif column.kind == "padded":
            specs.append(Spec(column.dtype, batch.concatenate([None, *column.shape])))
        else:
            rank = len(column.shape) if column.kind == "sparse" else 1
            known = batch.rank
            specs += sparse_specs(None if known is None else known + rank, column.dtype)
    return specs


PARSE_EXAMPLE = register(
    "ParseExampleV2",
    _parse,
    infer=lambda inputs, attrs: _specs(_as_columns(attrs["columns"]), inputs[0].shape),
    gradient=None,
    where="host",
    accepts="s",
    on_block=parse_block,
    cases=lambda: [
        Case(
            (
                np.array([b"\n\x0c\n\n\n\x01a\x12\x05\x1a\x03\n\x01\x03", b""], object),
                np.array([], object),
                np.array([7]),
            ),
            {
                "columns": (
                    tuple(Column("dense", "a", int64, (1,), True)),
                    tuple(Column("lists", "a", int64)),
                )
            },
            (np.array([[3], [7]]), np.array([[0, 0]]), np.array([3]), np.array([2, 1])),
        )
    ],
)


def _parse_sequence(
    serialized: Any,
    names: Any,
    *defaults: Any,
    context: tuple[Any, ...],
    sequence: tuple[Any, ...],
) -> list[NDArray[Any]]:
    array = string_array(serialized)
    context_columns, steps = _as_columns(context), _as_columns(sequence)
    found, outputs, lengths = parse_sequence_examples(
        array.reshape(-1).tolist(),
        string_array(names).reshape(-1).tolist(),
        context_columns,
        steps,
        [_default_array(default) for default in defaults],
    )
    if array.ndim:
        return [*found, *outputs, *lengths]
    return [
        *without_batch(found, context_columns),
        *without_batch(outputs, steps),
        *(length[0, ...] for length in lengths),
    ]


def _infer_sequence(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    batch, steps = inputs[0].shape, _as_columns(attrs["sequence"])
    return [
        *_specs(_as_columns(attrs["context"]), batch),
        *_specs(steps, batch.concatenate([None])),
        *(Spec(int64, batch) for column in steps if column.kind == "dense"),
    ]


_SEQUENCE = b"\x12\x17\n\x15\n\x01s\x12\x10\n\x05\x1a\x03\n\x01\x01\n\x07\x1a\x05\n\x03\x02\x03\x04"
register(
    "ParseSequenceExampleV2",
    _parse_sequence,
    infer=_infer_sequence,
    gradient=None,
    where="host",
    accepts="s",
    cases=lambda: [
        Case(
            (np.array([_SEQUENCE, b""], object), np.array([], object)),
            {"context": (), "sequence": (tuple(Column("lists", "s", int64)),)},
            (
                np.array([[0, 0, 0], [0, 1, 0], [0, 1, 1], [0, 1, 2]]),
                np.array([1, 2, 3, 4]),
                np.array([2, 2, 3]),
            ),
        )
    ],
)


def _take(reads: Sequence[_Read], outputs: Any) -> dict[str, Any]:
    """Collects the outputs of an operation as tensors and sparse tensors by name."""
    return {
        read.name: next(outputs)
        if read.column.kind in ("dense", "padded")
        else SparseTensor(next(outputs), next(outputs), next(outputs))
        for read in reads
    }


def _columns(reads: Sequence[_Read]) -> tuple[Any, ...]:
    return tuple(tuple(read.column) for read in reads)


def _texts(serialized: Any, names: Any, rank: int | None) -> list[Tensor]:
    values = convert_to_tensor(serialized, string, "serialized")
    if rank is not None or values.shape.rank not in (None, 0, 1):
        try:
            values.set_shape(TensorShape([None] * (1 if rank is None else rank)))
        except ValueError as error:
            raise value_error(
                f"Input serialized must be a {'scalar' if rank == 0 else 'vector'}",
                received=values,
                made_at=values.op.source,
            ) from error
    given = np.array([], object) if names is None else names
    return [values, convert_to_tensor(given, string, "names")]


def _parse_features(
    op_name: str, serialized: Any, features: Features, names: Any, name: str | None, rank: Any
) -> dict[str, Any]:
    if not features:
        raise value_error("Argument `features` cannot be None", received=repr(features))
    reads = _reads(features)
    with get_default_graph().name_scope(name or op_name):
        texts = _texts(serialized, names, rank)
        inputs = [*texts, *_default_tensors(reads)]
        made = apply("ParseExampleV2", inputs, {"columns": _columns(reads)}, "ParseExampleV2")
        return _take(reads, iter(made.outputs))


def parse_example(
    serialized: Any, features: Features, name: str | None = None, example_names: Any = None
) -> dict[str, Any]:
    """Parses serialized `Example`s into tensors and sparse tensors by name.

    Source: `tf.compat.v1.parse_example` (TensorFlow 2 has `name` and `example_names` in the
    opposite order; pass them as keyword arguments).

    Args:
        serialized: strings `(batch,)`; a scalar is one example, without a batch dimension.
        features: `FixedLenFeature`, `VarLenFeature`, `SparseFeature` or `FixedLenSequenceFeature`
            by name.
        example_names: strings `(batch,)`, names of the examples for error messages.

    Raises:
        InvalidArgumentError: at run time, an example is invalid or lacks a feature.
        ValueError: a feature is invalid.
    """
    return _parse_features("ParseExample", serialized, features, example_names, name, None)


def parse_single_example(
    serialized: Any, features: Features, name: str | None = None, example_names: Any = None
) -> dict[str, Any]:
    """Parses one serialized `Example`; see `parse_example`.

    Args:
        serialized: a scalar string.
        features: as for `parse_example`; the results have no batch dimension.
        example_names: a scalar string, a name of the example for error messages.
    """
    return _parse_features("ParseSingleExample", serialized, features, example_names, name, 0)


def _parse_sequences(
    op_name: str,
    serialized: Any,
    context_features: Features | None,
    sequence_features: Features | None,
    names: Any,
    name: str | None,
    rank: int,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    if not (context_features or sequence_features):
        raise value_error("Missing features: neither context nor sequence features")
    context = _reads(context_features or {})
    sequence = _reads(sequence_features or {}, steps=True)
    with get_default_graph().name_scope(name or op_name):
        inputs = [*_texts(serialized, names, rank), *_default_tensors(context)]
        attrs = {"context": _columns(context), "sequence": _columns(sequence)}
        outputs = iter(apply("ParseSequenceExampleV2", inputs, attrs, op_name).outputs)
        found, steps = _take(context, outputs), _take(sequence, outputs)
        dense = [read.name for read in sequence if read.column.kind == "dense"]
        return found, steps, dict(zip(dense, outputs, strict=True))


def parse_sequence_example(
    serialized: Any,
    context_features: Features | None = None,
    sequence_features: Features | None = None,
    example_names: Any = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Parses serialized `SequenceExample`s.

    Args:
        serialized: strings `(batch,)`.
        context_features: features of the contexts, as for `parse_example`.
        sequence_features: features of the steps: `FixedLenSequenceFeature` or `VarLenFeature` by
            name.
        example_names: strings `(batch,)`, names of the examples for error messages.

    Returns:
        Three dicts: the features of the contexts; those of the steps, `(batch, max steps, *shape)`
        padded with 0 or '', or sparse `(batch, max steps, longest)`; and for each dense feature of
        the steps the number of steps, int64 `(batch,)`.
    """
    return _parse_sequences(
        "ParseSequenceExample",
        serialized,
        context_features,
        sequence_features,
        example_names,
        name,
        1,
    )


def parse_single_sequence_example(
    serialized: Any,
    context_features: Features | None = None,
    sequence_features: Features | None = None,
    example_name: Any = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parses one serialized `SequenceExample`; see `parse_sequence_example`.

    Returns:
        The features of the context, and those of the steps: `(steps, *shape)`, or sparse
        `(steps, longest)`.
    """
    context, steps, _ = _parse_sequences(
        "ParseSingleSequenceExample",
        serialized,
        context_features,
        sequence_features,
        example_name,
        name,
        0,
    )
    return context, steps


__all__ = [
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "SparseFeature",
    "VarLenFeature",
    "parse_example",
    "parse_sequence_example",
    "parse_single_example",
    "parse_single_sequence_example",
]
