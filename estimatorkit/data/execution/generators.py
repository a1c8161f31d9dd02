"""`GeneratorIterator`: elements of a Python generator as blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from estimatorkit.core.errors import InvalidArgumentError
from estimatorkit.data.execution.block_iterator import BlockIterator, State, end_of_sequence
from estimatorkit.data.execution.buffers import Columns, stack_rows
from estimatorkit.data.spec import SparseTensorSpec, flatten, flatten_as, leaf_names, to_array


class GeneratorIterator(BlockIterator):
    """Elements of a generator, created anew for each pass.

    Its position is the number of consumed elements; restoring skips that many of a new generator.
    An exact restart thus requires a deterministic generator.

    Args:
        generator: called without arguments; returns an iterable of elements.
    """

    def __init__(self, generator: Callable[[], Iterable[Any]], element_spec: Any) -> None:
        super().__init__()
        self._generator = generator
        self._structure = element_spec
        self._specs: list[Any] = flatten(element_spec)
        self._names = leaf_names(element_spec)
        self._running: Iterator[Any] | None = None
        self._raised: Exception | None = None  # deferred until preceding elements are returned
        self._position = 0

    def _produce(self, n: int) -> Columns:
        rows: list[list[Any]] = []
        while len(rows) < n:
            row = self._next(defer=bool(rows))
            if row is None:
                break
            rows.append(row)
        if not rows:
            raise end_of_sequence()
        self._position += len(rows)
        return stack_rows(rows, [spec.dtype.numpy_dtype for spec in self._specs])

    def _next(self, *, defer: bool) -> list[Any] | None:
        """The next element, None at the end; with `defer`, an error is kept for the next call."""
        failure, self._raised = self._raised, None
        if failure is not None:
            raise failure
        try:
            if self._running is None:
                self._running = iter(self._generator())
            return self._to_row(next(self._running))
        except StopIteration:
            return None
        except Exception as error:
            if not defer:
                raise
            self._raised = error
            return None

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
                    array = np.asarray(leaf, spec.dtype.numpy_dtype, order="C")
                else:  # Python's numbers must fit
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

    def _save(self) -> State:
        return {"position": self._position}

    def _restore(self, state: State) -> None:
        self._rewind()
        self._skip(state["position"])

    def _restart(self, epoch: int) -> None:
        self._rewind()

    def _rewind(self) -> None:
        self._running = self._raised = None
        self._position = 0

    def close(self) -> None:
        super().close()
        self._rewind()


def _sparse_row(value: Any, name: str) -> Any:
    if hasattr(value, "dense_shape") and isinstance(value.indices, (np.ndarray, list, tuple)):
        return value
    raise InvalidArgumentError.explained(
        f"a generator did not yield a sparse value for {name}",
        expected="a SparseTensorValue",
        received=repr(value)[:200],
    )
