"""`contrib.framework`'s tensor checks and sums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from estimatorkit.core import builtin_ops
from estimatorkit.core.conversion import constant, convert_to_tensor
from estimatorkit.core.graph import control_dependencies, name_scope
from estimatorkit.core.sparse_tensor import SparseTensor
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers import weighting
from estimatorkit.ops.array import array
from estimatorkit.ops.debug import checks, debug
from estimatorkit.ops.math import elementwise, reduce


def reduce_sum_n(tensors: Sequence[Any], name: str | None = None) -> Tensor:
    """The sum of all elements of all tensors, a scalar.

    Raises:
        ValueError: there are no tensors.
    """
    if not tensors:
        raise ValueError("No tensors provided.")
    with name_scope(name, "reduce_sum_n", tensors):
        sums = [reduce.reduce_sum(each) for each in tensors]
        return sums[0] if len(sums) == 1 else elementwise.add_n(sums)


def remove_squeezable_dimensions(
    predictions: Any, labels: Any, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Predictions and labels; if their ranks differ by 1, squeezes the last dimension of length 1.

    The argument order differs from `tf.confusion_matrix.remove_squeezable_dimensions`.
    """
    truth, guesses = weighting.remove_squeezable_dimensions(labels, predictions, name=name)
    return guesses, truth


def assert_scalar_int(tensor: Any, name: str | None = None) -> Tensor:
    """Returns `tensor`, checked to be an integer scalar.

    Raises:
        ValueError: it is not.
    """
    with name_scope(name, "assert_scalar_int", [tensor]) as scope:
        made = convert_to_tensor(tensor)
        if not made.dtype.is_integer:
            raise ValueError(
                f"Expected integer type for {made.name}, received type: {made.dtype!r}."
            )
        return checks.assert_scalar(made, name=scope)


def with_same_shape(expected_tensor: Tensor, tensor: Tensor) -> Tensor:
    """Returns `tensor`, checked to have the shape of another; see `with_shape`."""
    shape = expected_tensor.shape
    known = shape.is_fully_defined()
    return with_shape(shape.as_list() if known else array.shape(expected_tensor), tensor)


def with_shape(expected_shape: Any, tensor: Tensor) -> Tensor:
    """Checks the shape of a tensor: statically if it is known, otherwise at run time.

    Args:
        expected_shape: int32 `(rank,)`: numbers or a tensor. With an empty shape, a tensor of one
            element is reshaped to a scalar.
        tensor: a tensor.

    Raises:
        ValueError: the shape is not int32, or the tensor's static shape differs.
        InvalidArgumentError: (when run) the tensor's shape differs.
    """
    if isinstance(tensor, SparseTensor):
        raise ValueError("SparseTensor not supported.")
    is_known = not isinstance(expected_shape, Tensor)
    expected = _as_shape(expected_shape) if is_known else expected_shape
    wanted = f"for shape {expected} expected of tensor {tensor.name}."
    if len(expected.shape) > 1:
        raise ValueError(f"Invalid rank {len(expected.shape)} {wanted}")
    if expected.dtype != np.int32:
        raise ValueError(f"Invalid dtype {expected.dtype} {wanted}")
    actual = tensor.shape
    if is_known and actual.is_fully_defined():
        if actual.is_compatible_with(expected.tolist()):
            return tensor
        if expected.size or not actual.is_compatible_with([1]):
            raise ValueError(
                f"Invalid shape for tensor {tensor.name}, expected {expected}, got {actual}."
            )
    if is_known and not expected.size:
        return array.reshape(tensor, [])
    with name_scope("assert_shape"):
        found = array.shape(tensor, name="actual")
        required = convert_to_tensor(expected)
        same = constant(False)
        if found.shape.is_compatible_with(required.shape):
            same = reduce.reduce_all(elementwise.equal(required, found))
        data = [f"Wrong shape for {tensor.name} [expected] [actual].", required, found]
        with control_dependencies([debug.Assert(same, data)]):
            result = builtin_ops.identity(tensor)
    if is_known:
        result.set_shape(expected.tolist())
    return result


def _as_shape(value: Any) -> Any:
    shape = np.asarray(value if len(value) else np.zeros([0], np.int32))
    is_list = isinstance(value, (list, tuple))
    return shape.astype(np.int32) if is_list and shape.dtype == np.int64 else shape
