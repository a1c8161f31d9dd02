"""The trials of `test_every_way`: examples of the rows with other dtypes and values."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import estimatorkit as tf
from estimatorkit.core.conversion import constant
from estimatorkit.core.dtypes import ALL, DType, as_dtype
from estimatorkit.core.tensor import Tensor
from tests.ops.test_ops import Example, apply, examples, fed, reads_a_handle


class Trial(NamedTuple):
    """An example with the arrays of its inputs."""

    example: Example
    label: str
    arrays: list[NDArray[Any]]

    def __str__(self) -> str:
        return f"{self.example.row.type} of {self.label}"

    @property
    def hash(self) -> int:
        """A number by which to choose some: it does not change where rows are added."""
        return zlib.crc32(str(self).encode())

    def build(self, inputs: Sequence[Tensor]) -> list[Tensor]:
        """The outputs for these inputs; those that must be known are constants."""
        known = [
            constant(array) if position in self.example.static else tensor
            for position, (array, tensor) in enumerate(zip(self.arrays, inputs, strict=True))
        ]
        return list(apply(self.example, known).outputs)


# -- the inputs

_DTYPES = [dtype for dtype in ALL.values() if dtype.kind in "fcib"]


def of_cases() -> list[Trial]:
    """The cases as they are."""
    return [Trial(example, "its case", example.arrays) for example in _examples()]


def of_every_dtype(part: int, parts: int) -> list[Trial]:
    """Some cases in every dtype that their row accepts, and with special values."""
    found = (trial for example in _examples() for trial in _variants(example))
    return [trial for trial in found if trial.hash % parts == part and _is_accepted(trial)]


def _examples() -> Iterator[Example]:
    for parameter in examples():
        example = parameter.values[0]
        # Their outputs depend on the replicas; a handle is not a value.
        if not reads_a_handle(example) and example.row.type not in ("AllReduce", "AllGather"):
            yield example


def _is_accepted(trial: Trial) -> bool:
    with tf.Graph().as_default():
        try:
            trial.build(fed(trial.arrays))
        except (TypeError, ValueError, tf.errors.InvalidArgumentError):
            return False
    return True


def _variants(example: Example) -> Iterator[Trial]:
    arrays = example.arrays
    if not arrays or arrays[0].dtype.kind in "OSU":
        return
    own = as_dtype(arrays[0].dtype)
    data = [
        position
        for position, array in enumerate(arrays)
        if as_dtype(array.dtype) is own and position not in example.static
    ]
    if not data:
        return

    for dtype in _DTYPES:
        if (own.is_integer and dtype.is_differentiable) or own.is_bool:
            continue  # indices, flags
        accepted = [example.row.accepted(position) for position in data]
        if any(each and dtype not in each for each in accepted):
            continue
        cast = _changed(arrays, data, _cast, dtype)
        yield Trial(example, dtype.name, cast)
        if dtype.is_floating:
            for special in ([np.nan], [np.inf, -np.inf]):
                label = f"{dtype.name} with {special[0]}"
                yield Trial(example, label, _changed(cast, data, _with, special))
        if dtype.is_integer and own.is_floating:
            label = f"{dtype.name} at its limits"
            yield Trial(example, label, _changed(cast, data, _with, [dtype.min, dtype.max]))
        if dtype.name in ("float16", "bfloat16"):
            yield Trial(example, f"4096 {dtype.name}", _changed(cast, data, _many))
    yield Trial(example, "no elements", _changed(arrays, data, _none))


def _changed(
    arrays: list[NDArray[Any]], data: list[int], change: Callable[..., NDArray[Any]], *how: Any
) -> list[NDArray[Any]]:
    return [change(each, *how) if at in data else each for at, each in enumerate(arrays)]


def _none(array: NDArray[Any]) -> NDArray[Any]:
    return array[:0] if array.ndim else array


def _cast(array: NDArray[Any], dtype: DType) -> NDArray[Any]:
    if array.dtype.kind == "c" and not dtype.is_complex:
        array = array.real
    elif dtype.is_complex and array.dtype.kind != "c":
        array = array * (1 + 0.5j)
    with np.errstate(invalid="ignore", over="ignore"):
        return (np.abs(array) if dtype.is_unsigned else array).astype(dtype.numpy_dtype)


def _with(array: NDArray[Any], values: Sequence[Any]) -> NDArray[Any]:
    """The array with the values as its first and last elements."""
    result = np.array(array)
    for place, value in zip((0, -1), values, strict=False):
        result.reshape(-1)[place : place + 1 or None] = value
    return result


def _many(array: NDArray[Any]) -> NDArray[Any]:
    repeats = 4096 // max(array.size, 1)
    return np.tile(array, [1] * (array.ndim - 1) + [repeats]) if array.ndim else array
