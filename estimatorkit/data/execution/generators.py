"""`GeneratorIterator`: elements of a Python generator as blocks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from estimatorkit.core.errors import InvalidArgumentError
from estimatorkit.data.execution.block_iterator import (
    BlockIterator,
    State,
    end_of_sequence,
    position,
)
from estimatorkit.data.execution.buffers import Columns, stack_rows
from estimatorkit.data.execution.checksums import GeneratorChecksums
from estimatorkit.data.spec import SparseTensorSpec, flatten, flatten_as, leaf_names, to_array

_MOST_AHEAD = 4096
"""Elements read ahead of a position to recognize a generator: more than a cursor's blocks have."""


class GeneratorIterator(BlockIterator):
    """Elements of a generator, created anew for each pass.

    Its position is the number of consumed elements; restoring skips that many of a new generator.
    An exact restart thus requires a deterministic generator: the checksums tell whether it
    is one.

    Args:
        generator: called without arguments; returns an iterable of elements.
        checksums: record its elements.
    """

    _position: int = position(0)
    _checksum: int = position(0)  # of the elements up to the position

    def __init__(
        self,
        generator: Callable[[], Iterable[Any]],
        element_spec: Any,
        checksums: GeneratorChecksums,
    ) -> None:
        super().__init__()
        self._checksums = checksums
        self._generator = generator
        self._structure = element_spec
        self._specs: list[Any] = flatten(element_spec)
        self._names = leaf_names(element_spec)
        self._running: Iterator[Any] | None = None
        self._raised: Exception | None = None  # deferred until preceding elements are returned
        self._ahead: deque[tuple[list[Any], int]] = deque()  # read to recognize them, not yet used
        self._unused = True  # none of this pass was used

    def _produce(self, n: int) -> Columns:
        if self._checksums.differ:
            raise end_of_sequence()  # nothing may be lost
        rows: list[list[Any]] = []
        while len(rows) < n:
            found = self._next(defer=bool(rows))
            if found is None:
                break
            row, self._checksum = found
            rows.append(row)
        self._unused &= not rows
        if not rows:
            raise end_of_sequence()
        self._position += len(rows)
        return stack_rows(rows, [spec.dtype.numpy_dtype for spec in self._specs])

    def _next(self, *, defer: bool) -> tuple[list[Any], int] | None:
        """The next element and the checksum up to it, None at the end.

        Args:
            defer: whether to keep an error for the next call.
        """
        if self._ahead:
            return self._ahead.popleft()
        failure, self._raised = self._raised, None
        if failure is not None:
            raise failure
        try:
            return self._read()
        except Exception as error:
            if not defer:
                raise
            self._raised = error
            return None

    def _read(self) -> tuple[list[Any], int] | None:
        if self._running is None:
            self._running = iter(self._generator())
        try:
            element = next(self._running)
        except StopIteration:
            return None
        row = self._to_row(element)
        return row, self._checksums.read(row)

    def _to_row(self, element: Any) -> list[Any]:
        try:
            leaves = flatten_as(self._structure, element)
        except ValueError as error:
            raise InvalidArgumentError.explained(
                "a generator yielded an element that does not have the declared structure",
                expected=self._structure,
                received=repr(element)[:200],
            ) from error
        row = []
        for leaf, spec, name in zip(leaves, self._specs, self._names, strict=True):
            if isinstance(spec, SparseTensorSpec):
                row.append(_sparse_row(leaf, name))
                continue
            try:
                if isinstance(leaf, (np.ndarray, np.generic)) and not spec.dtype.on_host:
                    # A copy: a generator may yield the same buffer repeatedly.
                    array = np.array(leaf, spec.dtype.numpy_dtype, order="C")
                else:  # Python numbers must fit
                    array = to_array(leaf, f"from_generator(): {name}", spec.dtype)
            except (TypeError, ValueError) as error:
                raise InvalidArgumentError.explained(
                    "`generator` yielded an element that could not be converted to the "
                    f"expected type. The expected type was {spec.dtype.name}",
                    expected=f"{spec.dtype.name} for {name}",
                    received=repr(leaf)[:200],
                ) from error
            if not spec.shape.is_compatible_with(array.shape):
                raise InvalidArgumentError.explained(
                    f"a generator yielded a shape other than declared for {name}",
                    expected=spec.shape,
                    received=array.shape,
                )
            row.append(array)
        return row

    def _restore(self, state: State) -> None:
        if not self._ahead or not self._unused:  # otherwise it is at its beginning
            self._rewind()
        if self._checksums.expected_count:
            self._look_ahead(1)  # other elements are found before any is lost
        count = state["position"]
        while not self._checksums.differ and self._position < count:
            if not self._skip(min(count - self._position, _MOST_AHEAD)):
                break
        self._checksums.check(self._checksum == state["checksum"])
        self._look_ahead(self._checksums.expected_count - self._position)

    def _look_ahead(self, count: int) -> None:
        while len(self._ahead) < min(count, _MOST_AHEAD) and not self._checksums.differ:
            try:
                row = self._read()
            except Exception as error:
                self._raised = error
                return
            self._checksums.check(row is not None)  # else it has ended too early
            if row is not None:
                self._ahead.append(row)

    def _restart(self, epoch: int) -> None:
        self._rewind()

    def _rewind(self) -> None:
        self._running = self._raised = None
        self._begin_pass(0)
        self._ahead.clear()
        self._unused = True
        self._checksums.begin()

    def close(self) -> None:
        super().close()
        self._running = self._raised = None


def _sparse_row(value: Any, name: str) -> Any:
    if hasattr(value, "dense_shape") and isinstance(value.indices, (np.ndarray, list, tuple)):
        return value
    raise InvalidArgumentError.explained(
        f"a generator did not yield a sparse value for {name}",
        expected="a SparseTensorValue",
        received=repr(value)[:200],
    )
