"""Sparse tensors in queues: each example's tensor is boxed as one element.

A box is a Python tuple (indices, values, shape) in an object array, which the graph types as string
since its arrays hold objects too. Only the functions here create and open boxes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.dtypes import int64, string
from estimatorkit.core.registry import Spec, apply, register
from estimatorkit.core.shapes import SCALAR, UNKNOWN, TensorShape
from estimatorkit.core.sparse_tensor import SparseTensor
from estimatorkit.core.tensor import Tensor


def _box(indices: Any, values: Any, shape: Any, *, many: bool) -> NDArray[Any]:
    parts = [np.array(part) for part in (indices, values, shape)]
    if not many:
        box = np.empty((), object)
        box[()] = tuple(parts)
        return box
    boxes = np.empty([int(shape[0])], object)
    for row in range(len(boxes)):
        own = parts[0][:, 0] == row
        boxes[row] = (parts[0][own, 1:], parts[1][own], parts[2][1:])
    return boxes


def _open(boxes: Any, *, spec: Spec) -> list[NDArray[Any]]:
    rank = spec.shape.rank or 1 + max((len(shape) for _, _, shape in boxes), default=0)
    indices, values, shapes = [np.empty([0, rank], np.int64)], [], [np.zeros(rank - 1, np.int64)]
    values.append(np.empty([0], spec.dtype.numpy_dtype))
    for row, (own_indices, own_values, shape) in enumerate(boxes):
        indices.append(np.insert(own_indices, 0, row, axis=1))
        values.append(own_values)
        shapes.append(shape)
    whole = [len(boxes), *np.max(shapes, axis=0)]
    return [np.concatenate(indices), np.concatenate(values), np.asarray(whole, np.int64)]


def _infer_open(inputs: Any, attrs: Any) -> list[Spec]:
    spec: Spec = attrs["spec"]
    rank = spec.shape.rank
    return [
        Spec(int64, TensorShape([None, rank])),
        Spec(spec.dtype, TensorShape([None])),
        Spec(int64, TensorShape([rank])),
    ]


register(
    "SparseToBoxes",
    _box,
    infer=lambda inputs, attrs: [Spec(string, TensorShape([None]) if attrs["many"] else SCALAR)],
    gradient=None,
    where="host",
)
register("BoxesToSparse", _open, infer=_infer_open, gradient=None, where="host")


def box(sparse: SparseTensor, many: bool) -> Tensor:
    """Boxes an example's tensor, or with `many` each row, as a vector of boxes."""
    parts = [sparse.indices, sparse.values, sparse.dense_shape]
    return apply("SparseToBoxes", parts, {"many": many}).outputs[0]


def open_boxes(boxes: Tensor, like: SparseTensor, many: bool) -> SparseTensor:
    """Returns a batch as a sparse tensor, with a new first axis and the maximum of the shapes.

    `like` is the tensor boxed for the first example; `many` is as given to `box`.
    """
    rank = like.shape.rank
    shape = UNKNOWN if rank is None else TensorShape([None] * (rank + (not many)))
    op = apply("BoxesToSparse", [boxes], {"spec": Spec(like.dtype, shape)})
    return SparseTensor(*op.outputs)
