"""The representation of a `TensorArray` whose elements differ in shape: a vector and a layout.

The vector (*flow*) concatenates all elements; the layout, int64 `(size, 1 + rank)`, has one row per
element: its rank (-1 if it was never written) and its shape, padded with -1. Operations on layouts
compute which positions of which vector make up the result; `RaggedTake` and `RaggedJoin` move the
numbers, and are differentiable to any order. All run on the host because XLA's shapes are static.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core import registry
from estimatorkit.core.conversion import constant
from estimatorkit.core.dtypes import DType, int64
from estimatorkit.core.errors import InvalidArgumentError
from estimatorkit.core.registry import Case, Spec, register
from estimatorkit.core.shapes import UNKNOWN, TensorShape
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.ops.array.array import shape as shape_of

_Array = NDArray[Any]
_SAMPLE = np.arange(6, dtype=np.float32)
_LAYOUT = np.array([[1, 2, -1], [-1, -1, -1], [2, 2, 2]])
"""The layout of `_SAMPLE`: a pair, nothing, and a matrix."""


# -- moving numbers


def _take(values: _Array, positions: _Array, shape: _Array) -> _Array:
    return np.asarray(values).reshape(-1)[positions].reshape(shape)


def _put(values: _Array, positions: _Array, shape: _Array) -> _Array:
    result = np.zeros(int(np.prod(shape)), np.asarray(values).dtype)
    np.add.at(result, positions, np.asarray(values).reshape(-1))
    return result.reshape(shape)


def _take_gradient(op: Operation, gradient: Tensor) -> list[Any]:
    whole = shape_of(op.inputs[0], out_type=int64)
    inverse = {"RaggedTake": "RaggedPut", "RaggedPut": "RaggedTake"}[op.type]
    return [registry.output(inverse, [gradient, op.inputs[1], whole]), None, None]


for _type, _kernel, _expected in (
    ("RaggedTake", _take, np.array([[4.0, 0.0]], np.float32)),
    ("RaggedPut", _put, np.array([[10.0, 5.0]], np.float32)),
):
    register(
        _type,
        _kernel,
        where="host",
        infer=lambda inputs, attrs: [Spec(inputs[0].dtype, _shape_from(inputs[2]))],
        gradient=_take_gradient,
        cases=lambda put=_type == "RaggedPut", expected=_expected: [
            Case(
                (_SAMPLE, np.array([0, 1, 0, 0, 0, 1] if put else [4, 0]), np.array([1, 2])),
                {},
                np.array([[9.0, 6.0]], np.float32) if put else expected,
            )
        ],
    )


def _shape_from(tensor: Tensor) -> TensorShape:
    return registry.constant_value_as_shape(tensor) if tensor.shape.rank == 1 else UNKNOWN


def _join_gradient(op: Operation, gradient: Tensor) -> list[Any]:
    found = []
    for part, start in zip(
        op.inputs, registry.apply("RaggedStarts", op.inputs).outputs, strict=True
    ):
        whole = shape_of(part, out_type=int64)
        found.append(registry.output("RaggedTake", [gradient, start, whole]))
    return found


register(
    "RaggedJoin",
    lambda one, other: np.concatenate([np.reshape(one, -1), np.reshape(other, -1)]),
    where="host",
    infer=lambda inputs, attrs: [Spec(inputs[0].dtype, TensorShape([None]))],
    gradient=_join_gradient,
    cases=lambda: [Case((_SAMPLE[:1], _SAMPLE[2:].reshape(2, 2)), {}, _SAMPLE[[0, 2, 3, 4, 5]])],
)
register(
    "RaggedStarts",
    lambda one, other: (np.arange(np.size(one)), np.size(one) + np.arange(np.size(other))),
    where="host",
    infer=lambda inputs, attrs: [Spec(int64, TensorShape([None]))] * 2,
    gradient=None,
    cases=lambda: [Case((_SAMPLE[:1], _SAMPLE[:2]), {}, (np.array([0]), np.array([1, 2])))],
)


# -- layouts


def _shapes(layout: _Array) -> list[tuple[int, ...] | None]:
    """The shape of each element, None if it was not written."""
    return [None if row[0] < 0 else tuple(row[1 : 1 + row[0]].tolist()) for row in layout]


def _layout(shapes: Sequence[Sequence[int] | None]) -> _Array:
    rank = max((len(each) for each in shapes if each is not None), default=0)
    result = np.full((len(shapes), 1 + rank), -1, np.int64)
    for row, each in zip(result, shapes, strict=True):
        if each is not None:
            row[0], row[1 : 1 + len(each)] = len(each), each
    return result


def _sizes(shapes: Sequence[Sequence[int] | None]) -> _Array:
    return np.array([0 if each is None else int(np.prod(each)) for each in shapes], np.int64)


def _refuse(message: str) -> InvalidArgumentError:
    return InvalidArgumentError(None, None, message)


def _written(
    layout: _Array, indices: _Array, shape: _Array, dynamic: bool
) -> tuple[_Array, _Array, _Array]:
    """The layout after a write, and the source position of each number of the new vector in the
    concatenation of old and new values.

    `shape` is that of the value; its first dimension is for the elements if `indices` is a vector.
    `dynamic` allows the array to grow.
    """
    at = np.atleast_1d(indices).tolist()
    shapes = _shapes(layout)
    old = _sizes(shapes)
    inner = tuple(np.asarray(shape).tolist()[np.ndim(indices) :])
    if dynamic:
        shapes += [None] * (max([*at, -1]) + 1 - len(shapes))
    starts = dict(enumerate((np.cumsum(old) - old).tolist()))
    size = int(np.prod(inner))
    for number, index in enumerate(at):
        if not 0 <= index < len(shapes):
            raise _refuse(
                f"Tried to write to index {index} but array is not resizeable and size is: "
                f"{len(shapes)}"
            )
        if shapes[index] is not None:
            raise _refuse(
                f"Could not write to TensorArray index {index} because it has already been read or "
                "written to"
            )
        shapes[index] = inner
        starts[index] = int(old.sum()) + number * size
    pieces = [starts.get(index, 0) + np.arange(count) for index, count in enumerate(_sizes(shapes))]
    order = np.concatenate([np.zeros(0, np.int64), *pieces])
    return _layout(shapes), order, np.array([len(order)])


def _read(layout: _Array, indices: _Array, joined: bool) -> tuple[_Array, _Array]:
    """The positions of the numbers to read, and the shape of the result.

    A vector of `indices` stacks elements, or concatenates them if `joined`.
    """
    shapes = _shapes(layout)
    sizes = _sizes(shapes)
    starts = np.cumsum(sizes) - sizes
    found: list[tuple[int, ...]] = []
    positions = [np.zeros(0, np.int64)]
    for index in np.atleast_1d(indices).tolist():
        if not 0 <= index < len(shapes):
            raise _refuse(f"Tried to read from index {index} but array size is: {len(shapes)}")
        each = shapes[index]
        if each is None:
            raise _refuse(
                f"Could not read from TensorArray index {index}. Furthermore, the element shape is "
                "not fully defined: it was never written"
            )
        found.append(each)
        positions.append(starts[index] + np.arange(sizes[index]))
    if np.ndim(indices) == 0:
        shape: tuple[int, ...] = found[0]
    elif not found:
        raise _refuse("TensorArray has size zero, but element shape is not fully defined")
    else:
        inner = [each[1:] if joined else each for each in found]
        if joined and not all(found):
            raise _refuse(
                f"Concat saw a scalar shape at index {found.index(())} but requires at least "
                "vectors"
            )
        what = "(excepting dimension 0) shape" if joined else "shape"
        for index, each in enumerate(inner):
            if each != inner[0]:
                raise _refuse(
                    f"TensorArray has inconsistent shapes.  Index 0 has {what}: "
                    f"{list(inner[0])} but index {index} has {what}: {list(each)}"
                )
        first = sum(each[0] for each in found) if joined else len(found)
        shape = (first, *inner[0])
    return np.concatenate(positions), np.array(shape, np.int64)


def _cut(shape: _Array, lengths: _Array, size: _Array, dynamic: bool) -> _Array:
    """The layout of a split along the first dimension into pieces of `lengths`."""
    if np.ndim(lengths) != 1:
        raise _refuse(f"Expected lengths to be a vector, received shape: {list(np.shape(lengths))}")
    whole, each = np.asarray(shape).tolist(), np.asarray(lengths).tolist()
    if not whole:
        raise _refuse("Expected value to be at least a vector, but received shape: []")
    if sum(each) != whole[0]:
        raise _refuse(
            f"Expected sum of lengths to be equal to values.shape[0], but sum of lengths is "
            f"{sum(each)} and value's shape is: {whole}"
        )
    if not dynamic and int(size) != len(each):
        raise _refuse(
            f"TensorArray's size is not equal to the size of lengths ({int(size)} vs. "
            f"{len(each)}), and the TensorArray is not marked as dynamically resizeable"
        )
    return _layout([(length, *whole[1:]) for length in each])


def _loose(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    return [Spec(int64, TensorShape([None, None]))]


def _infer_written(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    return [*_loose(inputs, attrs), *[Spec(int64, TensorShape([n])) for n in (None, 1)]]


def _infer_read(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    return [Spec(int64, TensorShape([None])), Spec(int64, UNKNOWN)]


_of_layout: Callable[..., Any]
for _type, _of_layout, _infer, _cases in (
    (
        "RaggedLayout",
        lambda size: np.full((int(size), 1), -1, np.int64),
        _loose,
        [Case((np.int32(2),), {}, np.array([[-1], [-1]]))],
    ),
    (
        "RaggedLayoutWrite",
        _written,
        _infer_written,
        [
            Case(
                (_LAYOUT, np.int32(1), np.array([1])),
                {"dynamic": False},
                (
                    np.array([[1, 2, -1], [1, 1, -1], [2, 2, 2]]),
                    np.array([0, 1, 6, 2, 3, 4, 5]),
                    np.array([7]),
                ),
            )
        ],
    ),
    (
        "RaggedLayoutRead",
        _read,
        _infer_read,
        [
            Case(
                (_LAYOUT, np.int32(2)),
                {"joined": False},
                (np.array([2, 3, 4, 5]), np.array([2, 2])),
            )
        ],
    ),
    (
        "RaggedLayoutSplit",
        _cut,
        _loose,
        [
            Case(
                (np.array([3, 2]), np.array([1, 2]), np.int32(2)),
                {"dynamic": False},
                np.array([[2, 1, 2], [2, 2, 2]]),
            )
        ],
    ),
):
    register(
        _type,
        _of_layout,
        where="host",
        infer=_infer,
        gradient=None,
        cases=lambda cases=_cases: cases,
    )


# -- operations of `TensorArray`


def empty(dtype: DType, size: Tensor) -> tuple[Tensor, Tensor]:
    """Flow and layout of an empty array."""
    flow = constant(np.zeros(0, dtype.numpy_dtype), dtype)
    return flow, registry.output("RaggedLayout", [size])


def write(
    flow: Tensor, layout: Tensor, indices: Tensor, value: Tensor, dynamic: bool
) -> tuple[Tensor, Tensor]:
    """Flow and layout after writing an element, or rows of `value`."""
    given = [layout, indices, shape_of(value, out_type=int64)]
    after, order, size = registry.apply("RaggedLayoutWrite", given, {"dynamic": dynamic}).outputs
    joined = registry.output("RaggedJoin", [flow, value])
    return registry.output("RaggedTake", [joined, order, size]), after


def read(
    flow: Tensor, layout: Tensor, indices: Tensor, joined: bool = False, name: str | None = None
) -> Tensor:
    """Reads an element; a vector of indices stacks elements, or concatenates them if `joined`."""
    found = registry.apply("RaggedLayoutRead", [layout, indices], {"joined": joined})
    return registry.output("RaggedTake", [flow, *found.outputs], name=name)


def split(value: Tensor, lengths: Tensor, size: Tensor, dynamic: bool) -> tuple[Tensor, Tensor]:
    """Flow and layout of an array of pieces of `value` along its first axis."""
    from estimatorkit.core.graph import control_dependencies
    from estimatorkit.ops.array.array import reshape

    given = [shape_of(value, out_type=int64), lengths, size]
    layout = registry.output("RaggedLayoutSplit", given, {"dynamic": dynamic})
    with control_dependencies([layout]):
        return reshape(value, [-1]), layout
