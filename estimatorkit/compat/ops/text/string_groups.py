"""Joins of groups of strings: n-grams of rows, and segments. All run on the host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import string
from estimatorkit.core.errors import InvalidArgumentError, value_error
from estimatorkit.core.registry import Case, Spec, apply, constant_value
from estimatorkit.core.shapes import UNKNOWN, TensorShape
from estimatorkit.core.sparse_tensor import SparseTensor
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.text.sparse_rows import rows_as_sparse, sparse_specs
from estimatorkit.ops.text.strings import register_string_op, string_array

# -- n-grams


def _grams(
    row: Sequence[bytes],
    widths: Sequence[int],
    separator: bytes,
    pads: tuple[bytes, bytes],
    padding: int,
    whole: bool,
) -> list[bytes]:
    """The n-grams of one row; `padding` -1 pads by one less than each width."""
    found = []
    for width in widths:
        count = width - 1 if padding < 0 else min(padding, width - 1)
        padded = [pads[0]] * count + list(row) + [pads[1]] * count
        found += [separator.join(padded[at : at + width]) for at in range(len(padded) - width + 1)]
    if whole and row and not found:
        count = max(padding, 0)
        found = [separator.join([pads[0]] * count + list(row) + [pads[1]] * count)]
    return found


def _ngrams(values: Any, **how: Any) -> NDArray[Any]:
    array = string_array(values)
    rows = [_grams(row, **how) for row in array.reshape(-1, array.shape[-1]).tolist()]
    count = len(rows[0]) if rows else 0
    made = np.empty((*array.shape[:-1], count), object)
    made.reshape(-1)[:] = [each for row in rows for each in row]
    return made


def _ngrams_of_rows(values: Any, indices: Any, shape: Any, **how: Any) -> list[NDArray[Any]]:
    before = tuple(int(size) for size in shape[:-1])
    rows: list[list[bytes]] = [[] for _ in range(int(np.prod(before)))]
    owners = np.ravel_multi_index(tuple(indices[:, :-1].T), before)
    for owner, value in zip(owners.tolist(), string_array(values).tolist(), strict=True):
        rows[owner].append(value)
    return rows_as_sparse([_grams(row, **how) for row in rows], before, string)


_HOW: dict[str, Any] = {
    "widths": (2,),
    "separator": b" ",
    "pads": (b"", b""),
    "padding": 0,
    "whole": False,
}
_WORDS = np.array([[b"a", b"b", b"c"], [b"d", b"e", b"f"]], object)
register_string_op(
    "StringNGrams",
    _ngrams,
    lambda: [Case((_WORDS,), _HOW, np.array([[b"a b", b"b c"], [b"d e", b"e f"]], object))],
    lambda inputs, attrs: [Spec(string, inputs[0].shape[:-1].concatenate([None]))],
)
register_string_op(
    "StringNGramsOfRows",
    _ngrams_of_rows,
    lambda: [
        Case(
            (
                np.array([b"a", b"b", b"c"], object),
                np.array([[0, 0], [0, 1], [1, 0]]),
                np.array([2, 2]),
            ),
            _HOW,
            (np.array([[0, 0]]), np.array([b"a b"], object), np.array([2, 1])),
        )
    ],
    lambda inputs, attrs: sparse_specs(inputs[2].shape[0], string),
)


def ngrams(
    data: Any,
    ngram_width: Any,
    separator: str | bytes = " ",
    pad_values: Any = None,
    padding_width: int | None = None,
    preserve_short_sequences: bool = False,
    name: str | None = None,
) -> Any:
    """The n-grams of each row: adjacent strings, joined.

    Source: `tf.strings.ngrams`, with a `SparseTensor` in place of its RaggedTensor.

    Args:
        data: strings `(..., n)`, or a `SparseTensor` such as `split` returns.
        ngram_width: the number of strings to join: an int, or several, in sequence.
        separator: what to insert between two strings.
        pad_values: the strings to pad rows with, one or a pair (left, right); none by default.
        padding_width: how many to add on each side; at most `ngram_width - 1`, the default.
        preserve_short_sequences: whether a row shorter than all widths yields one n-gram.

    Returns:
        Strings `(..., count)`; a `SparseTensor` if `data` is one.

    Raises:
        TypeError: `pad_values` are not strings.
        ValueError: a width is below 1, `padding_width` is given alone, or `data` has unknown rank.
    """
    pads = pad_values if isinstance(pad_values, (list, tuple)) else (pad_values, pad_values)
    if pad_values is not None and not all(isinstance(each, (str, bytes)) for each in pads):
        raise TypeError("pad_values must be a string, tuple of strings, or None.")
    if padding_width is not None and padding_width < 1:
        raise ValueError("padding_width must be greater than 0.")
    if padding_width is not None and pad_values is None:
        raise ValueError("pad_values must be provided if padding_width is set.")
    widths = ngram_width if isinstance(ngram_width, (list, tuple)) else (ngram_width,)
    if min(widths) < 1:
        raise ValueError(f"All ngram_widths must be greater than 0. Got {ngram_width}")
    attrs = {
        "widths": tuple(int(width) for width in widths),
        "separator": _bytes(separator),
        "pads": tuple(_bytes(each or "") for each in pads[:2]),
        "padding": 0 if pad_values is None else -1 if padding_width is None else padding_width,
        "whole": bool(preserve_short_sequences),
    }
    if isinstance(data, SparseTensor):
        inputs = [data.values, data.indices, data.dense_shape]
        return SparseTensor(*apply("StringNGramsOfRows", inputs, attrs, name).outputs)
    values = convert_to_tensor(data, string, "data")
    if values.shape.rank is None:
        raise value_error("Rank of data must be known.", made_at=values.op.source)
    if values.shape.rank == 0:
        raise value_error("Data must have rank>0", received=values)
    return apply("StringNGrams", [values], attrs, name).outputs[0]


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


# -- segments


def _unsorted_segment_join(
    values: Any, segment_ids: Any, num_segments: Any, separator: bytes
) -> NDArray[Any]:
    array, ids, count = string_array(values), np.asarray(segment_ids), int(num_segments)
    if array.shape[: ids.ndim] != ids.shape:
        problem = f"segment_ids' shape {ids.shape} must be a prefix of inputs' {array.shape}"
        raise InvalidArgumentError(None, None, problem)
    if ids.size and not 0 <= int(ids.min()) <= int(ids.max()) < count:
        problem = "segment_ids are not allowed to exceed num_segments or to have negative values."
        received = f"{int(ids.min())} to {int(ids.max())}, num_segments {count}"
        raise InvalidArgumentError.explained(problem, received=received)
    rest = array.shape[ids.ndim :]
    rows = array.reshape(-1, int(np.prod(rest)))
    joined = np.empty((count, rows.shape[1]), object)
    for segment in range(count):
        own = rows[ids.reshape(-1) == segment]
        joined[segment] = [separator.join(column) for column in own.T.tolist()]
    return joined.reshape(count, *rest)


def _infer_join(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    values, ids, count = inputs
    if values.shape.dims is None or ids.shape.dims is None:
        return [Spec(string, UNKNOWN)]
    size = len(ids.shape.dims)
    if not TensorShape(values.shape.dims[:size]).is_compatible_with(ids.shape):
        raise value_error(
            "segment_ids' shape must be a prefix of that of inputs",
            received=f"{ids} for {values}",
            made_at=ids.op.source,
        )
    known = constant_value(count)
    return [
        Spec(
            string, TensorShape([None if known is None else int(known), *values.shape.dims[size:]])
        )
    ]


register_string_op(
    "UnsortedSegmentJoin",
    _unsorted_segment_join,
    lambda: [
        Case(
            (_WORDS, np.array([1, 1], np.int32), np.array(2, np.int32)),
            {"separator": b":"},
            np.array([[b"", b"", b""], [b"a:d", b"b:e", b"c:f"]], object),
        )
    ],
    _infer_join,
    accepts=("s", "x", "x"),
)


def unsorted_segment_join(
    inputs: Any,
    segment_ids: Any,
    num_segments: Any,
    separator: str | bytes = "",
    name: str | None = None,
) -> Tensor:
    """Joins the strings of each segment, in input order.

    Args:
        inputs: strings.
        segment_ids: int32 or int64 in [0, num_segments); its shape is a prefix of that of `inputs`.
        num_segments: the number of segments.
        separator: what to insert between two strings.

    Returns:
        Strings `(num_segments, remaining dimensions of inputs)`; '' for empty segments.

    Raises:
        ValueError: the shapes are incompatible.
        InvalidArgumentError: at run time, a segment id is out of range.
    """
    given = [
        convert_to_tensor(inputs, string, "inputs"),
        convert_to_tensor(segment_ids, name="segment_ids"),
        convert_to_tensor(num_segments, name="num_segments"),
    ]
    return apply("UnsortedSegmentJoin", given, {"separator": _bytes(separator)}, name).outputs[0]
