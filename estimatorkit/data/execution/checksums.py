"""Checksums of values, and of the elements of generators, to recognize them when restoring.

A generator's content is known only by running it. Its iterator keeps the checksum of the elements
it has read in a pass, at 1, 2, 4, ... elements and at the last one. A position saved with them
applies to a generator only if its elements have the same checksums again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import google_crc32c
import numpy as np

from estimatorkit.core.sparse_tensor import SparseTensorValue


def checksum(value: Any, start: int = 0) -> int:
    """The CRC32C of an array (17 GB/s), of strings or of a sparse value, with dtype and shape.

    Args:
        value: an array, a NumPy scalar or a `SparseTensorValue`.
        start: the checksum of what comes before.
    """
    if isinstance(value, SparseTensorValue):
        for part in value:
            start = checksum(np.asarray(part), start)
        return start
    array = np.asarray(value)
    start = google_crc32c.extend(start, f"{array.dtype.str}{array.shape}".encode())
    if array.dtype.hasobject:
        texts = [each if isinstance(each, bytes) else repr(each).encode() for each in array.flat]
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        start = google_crc32c.extend(start, lengths.tobytes())
        return int(google_crc32c.extend(start, b"".join(texts)))
    if not array.size:
        return int(start)
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return int(google_crc32c.extend(start, data))


class GeneratorChecksums:
    """The checksums of the elements that a generator has yielded in a pass.

    Attributes:
        expected: those saved with the position to restore, by number of elements.

    Args:
        pipeline: the pipeline's checksums, which this one is one of.
    """

    def __init__(self, pipeline: PipelineChecksums) -> None:
        self._pipeline = pipeline
        self.expected: Mapping[int, int] = {}
        self._longest: dict[int, int] = {}  # of earlier passes
        self._marks: dict[int, int] = {}
        self._last = (0, 0)  # of this pass: an immutable tuple, as another thread may read it

    @property
    def expected_count(self) -> int:
        """The number of elements with expected checksums."""
        return max(self.expected, default=0)

    @property
    def differ(self) -> bool:
        """Whether the position being restored belongs to other elements."""
        return self._pipeline.restoring and self._pipeline.differ

    def begin(self) -> None:
        """Begins a pass."""
        self._longest = self.marks()
        self._marks, self._last = {}, (0, 0)

    def read(self, row: list[Any]) -> int:
        """Adds an element; returns the checksum of all."""
        count, found = self._last
        for leaf in row:
            found = checksum(leaf, found)
        count += 1
        self._last = count, found
        if not count & (count - 1):
            self._marks = {**self._marks, count: found}
        self.check(self.expected.get(count, found) == found)
        return found

    def check(self, is_expected: bool) -> None:
        """Records a difference unless something is as expected."""
        if not is_expected:
            self._pipeline.differ = True

    def marks(self) -> dict[int, int]:
        """The checksums of the longest pass, by number of elements."""
        count, found = self._last
        marks = {**self._marks, count: found} if count else {}
        return max(marks, self._longest, key=lambda each: max(each, default=0))


_MOST_NESTED = 4
"""The most generators of nested datasets: the first ones, which a replay reads again."""


class PipelineChecksums:
    """The checksums of a pipeline's generators, by position in the pipeline.

    Attributes:
        restoring: whether a position is being restored.
        differ: whether a generator did not yield the elements of that position.
    """

    def __init__(self) -> None:
        self.restoring = False
        self._checksums: dict[str, GeneratorChecksums] = {}
        self._expected: dict[str, dict[int, int]] = {}
        self.differ = False

    def of_generator(self, place: str) -> GeneratorChecksums:
        """New checksums for the generator at a place."""
        made = GeneratorChecksums(self)
        made.expected = self._expected.get(place, {})
        nested = [each for each in self._checksums if "/" in each]
        if "/" not in place or place in nested or len(nested) < _MOST_NESTED:
            self._checksums[place] = made
        return made

    def get_state(self) -> dict[str, Any]:
        """The checksums as JSON: `[elements, checksum]`s by place."""
        found = {place: each.marks() for place, each in list(self._checksums.items())}
        return {place: [list(pair) for pair in marks.items()] for place, marks in found.items()}

    def expect(self, state: Mapping[str, Any]) -> None:
        """Expects the checksums saved with a position (`get_state`), until `expect_nothing`."""
        self.restoring, self.differ = True, False
        self._expect(
            {
                place: {int(count): int(found) for count, found in marks}
                for place, marks in state.items()
            }
        )

    def expect_nothing(self) -> None:
        """Ends restoring."""
        self.restoring = False
        self._expect({})

    def _expect(self, expected: dict[str, dict[int, int]]) -> None:
        self._expected = expected
        for place, each in self._checksums.items():
            each.expected = self._expected.get(place, {})


__all__ = ["GeneratorChecksums", "PipelineChecksums", "checksum"]
