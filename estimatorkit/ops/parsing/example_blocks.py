"""Batched parsing of `Example`s, for `map(parse_example)` on a block of dataset elements.

An element is one serialized example or a batch of them. All examples of a block are parsed at once
(`example_parsing.parse_rows`), and the results are split into rows of columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.ops.parsing.example_parsing import Column as Feature, Part, parse_rows
from estimatorkit.runtime.steps.columns import NO_DIM, Column, RaggedColumn, SparseColumn

_Ints = NDArray[np.int64]


class _Elements:
    """Assignment of a block's examples to its elements.

    Attributes:
        sizes: the number of examples of each element, `(elements,)`.
        starts: the offset of each element's examples, and the end, `(elements + 1,)`.
        place: the index of each example within its element, `(examples,)`.
    """

    def __init__(self, sizes: _Ints) -> None:
        self.sizes = sizes
        self.starts = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(sizes, out=self.starts[1:])
        self.place = np.arange(self.starts[-1]) - np.repeat(self.starts[:-1], sizes)

    def most(self, counts: _Ints) -> _Ints:
        """The maximum of `counts` over each element's examples; 0 if it has none."""
        found = np.zeros(len(self.sizes), np.int64)
        full = np.flatnonzero(self.sizes)
        if len(full):
            found[full] = np.maximum.reduceat(counts, self.starts[full])
        return found


def parse_block(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> list[Column] | None:
    """Batched form of `ParseExampleV2`: one column per output, for a block of elements.

    `inputs` are a column of strings or of string vectors, the names of the examples for error
    messages, and the default values. Returns None if elements are neither strings nor vectors;
    raises like `parse_examples`.
    """
    column, names, *defaults = inputs
    if not _is_parsable(column):
        return None
    features = [Feature(*each) for each in attrs["columns"]]
    arrays = [np.asarray(each, None if _is_number(each) else object) for each in defaults]
    single = isinstance(column, np.ndarray) and column.ndim == 1
    if isinstance(column, RaggedColumn):
        flat, sizes = column.flat, column.first_axis()
    else:
        flat = column.reshape(-1)
        sizes = np.full(len(column), 1 if single else column.shape[1], np.int64)
    elements = _Elements(sizes)
    parts = parse_rows(
        flat.tolist(),
        features,
        arrays,
        np.asarray(names, object).reshape(-1).tolist(),
        places=elements.place,
    )
    rest = iter(arrays)
    outputs: list[Column] = []
    for part, feature in zip(parts, features, strict=True):
        default = next(rest) if feature.default else None
        outputs += _one_each(part) if single else _batched(part, feature, default, elements)
    return outputs


def _is_parsable(column: Column) -> bool:
    """Whether rows are strings or string vectors."""
    if isinstance(column, RaggedColumn):
        return column.shapes.shape[1] == 1 and bool((column.shapes != NO_DIM).all())
    return isinstance(column, np.ndarray) and column.ndim in (1, 2)


def _is_number(value: Any) -> bool:
    return isinstance(value, (np.ndarray, np.generic)) and value.dtype != object


def _one_each(part: Part) -> list[Column]:
    """The columns of a feature if each element is one example."""
    if part[0] == "dense":
        return [part[1]]
    if part[0] == "ragged":
        values, lengths = part[1:]
        return [_ragged(values, np.stack([lengths, *_repeated(values, len(lengths))], axis=1))]
    return list(SparseColumn(*part[1:]).parts())


def _batched(
    part: Part, feature: Feature, default: NDArray[Any] | None, elements: _Elements
) -> list[Column]:
    """The columns of a feature if each element is a batch of examples."""
    sizes = elements.sizes
    if part[0] == "dense":
        values = part[1]
        return [_ragged(values, np.stack([sizes, *_repeated(values, len(sizes))], axis=1))]
    if part[0] == "ragged":
        values, lengths = part[1:]
        longest = elements.most(lengths)
        begin = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(sizes * longest, out=begin[1:])
        fill = np.zeros((), values.dtype) if values.dtype != object else np.array(b"", object)
        padded = np.full(
            (int(begin[-1]), *values.shape[1:]),
            fill if default is None else default.reshape(-1)[0],
            values.dtype,
        )
        own = np.repeat(begin[:-1], sizes) + elements.place * np.repeat(longest, sizes)
        within = np.arange(len(values)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        padded[np.repeat(own, lengths) + within] = values
        shapes = np.stack([sizes, longest, *_repeated(values, len(sizes))], axis=1)
        return [_ragged(padded, shapes)]
    indices, values, shapes, offsets = part[1:]
    places = np.repeat(elements.place, np.diff(offsets))
    wide = np.empty((len(sizes), indices.shape[1] + 1), np.int64)
    wide[:, 0] = sizes
    wide[:, 1:] = feature.shape or elements.most(shapes[:, 0])[:, None]
    column = SparseColumn(
        np.concatenate([places[:, None], indices], axis=1), values, wide, offsets[elements.starts]
    )
    return list(column.parts())


def _repeated(values: NDArray[Any], count: int) -> list[_Ints]:
    """The trailing dimensions of `values`, repeated for `count` rows."""
    return [np.full(count, size, np.int64) for size in values.shape[1:]]


def _ragged(values: NDArray[Any], shapes: _Ints) -> Column:
    """A column of rows of these shapes; a plain array if they are equal."""
    if len(shapes) and (shapes == shapes[0]).all():
        return values.reshape(len(shapes), *shapes[0])
    return RaggedColumn(values.reshape(-1), shapes)


__all__ = ["parse_block"]
