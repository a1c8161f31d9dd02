"""The ids of a layer's columns by one operation on the host, where all widths are known.

Columns need not know: `pack` makes `PackedIds` of what their own operations would be, and gives
each its slice. Columns of sparse features, of sequences, and those alone keep their own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from estimatorkit.core.dtypes import string
from estimatorkit.core.registry import output
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.feature_column.categorical import KeyedColumn
from estimatorkit.layers.feature_column.column_values import Ids
from estimatorkit.layers.feature_column.columns import CategoricalColumn, FeatureColumn, raw_keys
from estimatorkit.layers.feature_column.crossed import CrossedColumn
from estimatorkit.layers.feature_column.features import Features, Raw
from estimatorkit.layers.feature_column.numeric import BucketizedColumn
from estimatorkit.layers.feature_column.sequence import SequenceCategoricalColumn
from estimatorkit.ops.tables.packed_ids import Part


def pack(features: Features, columns: Iterable[FeatureColumn]) -> None:
    """Makes the ids that columns will ask `features` for.

    Args:
        features: the features they read.
        columns: those of a layer.
    """
    wanted = dict.fromkeys(each for column in columns for each in _wanted(column))
    packer = _Packer(features)
    fitting = [each for each in wanted if features.held(each) is None and packer.takes(each)]
    if len(fitting) > 1:
        packer.run(fitting)


def _wanted(column: FeatureColumn) -> Iterator[KeyedColumn | CrossedColumn]:
    """The columns of ids that a column needs on the device."""
    if isinstance(column, (KeyedColumn, CrossedColumn)):
        yield column
    elif column.packs_ids and not isinstance(column, (SequenceCategoricalColumn, BucketizedColumn)):
        for parent in column.parents:
            if isinstance(parent, FeatureColumn):
                yield from _wanted(parent)


def _width(raw: Raw) -> int | None:
    """How many values an example has, if that is known and they are dense."""
    shape = raw.value.shape
    if raw.is_sparse or shape.rank not in (1, 2):
        return None
    return 1 if shape.rank == 1 else shape[1]


class _Packer:
    """A single operation under construction."""

    def __init__(self, features: Features) -> None:
        self._features = features
        self._inputs: dict[Tensor, int] = {}
        self._parts: list[Part] = []
        self._numbers: dict[Any, int] = {}

    def takes(self, column: CategoricalColumn | str) -> bool:
        """Whether a column or a raw feature can be a part."""
        return self._width_of(column) is not None

    def _width_of(self, column: CategoricalColumn | str) -> int | None:
        features = self._features
        if isinstance(column, str):
            return _width(features.raw(column, "a cross"))
        if isinstance(column, KeyedColumn):
            return _width(column.checked_raw(features))
        if isinstance(column, CrossedColumn):
            widths = [self._width_of(leaf) for leaf in column.ordered(features)]
            known = [width for width in widths if width is not None]
            return math.prod(known) if len(known) == len(widths) else None
        if isinstance(column, BucketizedColumn) and column.from_raw(features) is not None:
            return column.source_column.shape[0]
        return None

    def run(self, columns: list[KeyedColumn | CrossedColumn]) -> None:
        """Makes the operation, and gives each column its slice."""
        for column in columns:
            self._collect(column)
        batches = {tensor.shape[0] for tensor in self._inputs} - {None}
        if len(batches) > 1:
            return  # the layer has a better error message
        count = len(self._inputs)
        kept = tuple(count + self._part(column) for column in columns)
        widths = [self._width_of(column) or 0 for column in columns]
        attrs = {
            "parts": tuple(
                (kind, tuple(at if at >= 0 else count + ~at for at in inputs), given)
                for kind, inputs, given in self._parts
            ),
            "kept": kept,
            "width": sum(widths),
        }
        packed = output("PackedIds", list(self._inputs), attrs, "lookup")
        start = 0
        for column, width in zip(columns, widths, strict=True):
            self._features.hold(column, Ids(packed[:, start : start + width]))
            start += width

    def _collect(self, column: CategoricalColumn) -> None:
        """Puts the raw features of a column among the inputs."""
        for key in dict.fromkeys(raw_keys(column)):
            (tensor,) = self._features.raw(key, f"column {column.name!r}").tensors
            self._inputs.setdefault(tensor, len(self._inputs))

    def _input(self, key: str) -> tuple[int, int]:
        """A raw feature's number, and how many dimensions it lacks."""
        (tensor,) = self._features.raw(key, key).tensors
        return self._inputs[tensor], 2 - (tensor.shape.rank or 0)

    def _part(self, column: CategoricalColumn | str) -> int:
        """The number of a column's part, or of the mixed strings of a raw feature."""
        if column not in self._numbers:
            part = self._made(column)
            self._numbers[column] = len(self._parts)
            self._parts.append(part)
        return self._numbers[column]

    def _made(self, column: CategoricalColumn | str) -> Part:
        """A part; its inputs: 0, 1, ... raw features, -1, -2, ... parts 0, 1, ..."""
        if isinstance(column, str):
            number, lacks = self._input(column)
            return "MixedIds", (number,), {"expand": lacks}
        if isinstance(column, KeyedColumn):
            number, lacks = self._input(column.key)
            kind, attrs = column.kind
            column.note(attrs)
            return kind, (number,), {**attrs, "expand": lacks}
        if isinstance(column, BucketizedColumn):
            number, lacks = self._input(column.source_column.key)
            return "BucketIds", (number,), {"boundaries": column.boundaries, "expand": lacks}
        if not isinstance(column, CrossedColumn):
            raise AssertionError("asked by `takes`")
        numbers: list[int] = []
        expand: list[int] = []
        mixed: list[bool] = []
        for leaf in column.ordered(self._features):
            plain = isinstance(leaf, str) and self._features.raw(leaf, leaf).dtype is not string
            number, lacks = self._input(leaf) if isinstance(leaf, str) and plain else (0, 0)
            numbers.append(number if plain else ~self._part(leaf))
            expand.append(lacks)
            mixed.append(isinstance(leaf, str) and not plain)
        return "CrossedIds", tuple(numbers), column.attrs(tuple(expand), tuple(mixed))
