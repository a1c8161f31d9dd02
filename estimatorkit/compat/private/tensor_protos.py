"""`tf.make_tensor_proto`, `tf.make_ndarray`: arrays as protocol buffers."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from estimatorkit.core.conversion import constant
from estimatorkit.core.graph import Graph
from estimatorkit.core.registry import fixed_value as constant_value  # noqa: F401
from estimatorkit.storage.tensor_proto import compact_tensor_proto, tensor_proto, tensor_value


def make_tensor_proto(
    values: Any,
    dtype: Any = None,
    shape: Any = None,
    verify_shape: bool = False,
    allow_broadcast: bool = False,
) -> Any:
    """Converts a value to a `TensorProto`.

    Args:
        values, dtype, shape, verify_shape: see `constant`.
        allow_broadcast: accepted for compatibility only.
    """
    with Graph().as_default():
        whole = constant(values, dtype, shape, verify_shape=verify_shape).op.attrs["value"]
        given = constant(values, dtype).op.attrs["value"]
    if given.size == whole.size > 1:
        return tensor_proto(whole)
    return compact_tensor_proto(given, whole.shape)


def make_ndarray(tensor: Any) -> NDArray[Any]:
    """Converts a `TensorProto` to an array."""
    array: NDArray[Any] = tensor_value(tensor)
    return array


MakeNdarray = make_ndarray
"""The private module's name."""


def TensorShapeProtoToList(shape: Any) -> list[int]:
    """The dimensions of a `TensorShapeProto`, -1 for unknown ones."""
    return [dim.size for dim in shape.dim]
