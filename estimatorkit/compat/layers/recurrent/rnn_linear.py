"""`Linear`: a dense layer with variables `kernel` and `bias` of the current variable scope.

`_Linear` in `contrib.rnn.python.ops.core_rnn_cell`; cells and attention decoders older than
`tf.layers` use it.
"""

from __future__ import annotations

from typing import Any

from estimatorkit.core import nest
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.errors import value_error
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array import joining
from estimatorkit.ops.math import linalg
from estimatorkit.ops.nn import nn
from estimatorkit.ops.variables.initializers import Constant
from estimatorkit.ops.variables.variable_scope import (
    get_variable,
    get_variable_scope,
    variable_scope,
)

# The names of the variables.
KERNEL = "kernel"
BIAS = "bias"


class Linear:
    """Concatenated inputs times a kernel, plus a bias.

    The constructor creates or shares the variables.

    Args:
        args: a tensor `(batch, n)` or a list of such tensors; their sizes determine the kernel's.
        output_size: the number of columns of the kernel.
        build_bias: whether to add a bias.
        bias_initializer: of the bias; zeros by default.
        kernel_initializer: of the kernel; that of the variable scope by default.

    Raises:
        ValueError: `args` is empty, not two-dimensional, or its last dimension is unknown.
    """

    def __init__(
        self,
        args: Any,
        output_size: int,
        build_bias: bool,
        bias_initializer: Any = None,
        kernel_initializer: Any = None,
    ) -> None:
        values = _as_list(args)
        rows = sum(_checked_size(value) for value in values)
        dtype = values[0].dtype
        self._weights = get_variable(
            KERNEL, [rows, output_size], dtype, initializer=kernel_initializer
        )
        self._biases: Any = None
        if build_bias:
            with variable_scope(get_variable_scope()) as scope:
                scope.set_partitioner(None)
                zeros = Constant(0.0) if bias_initializer is None else bias_initializer
                self._biases = get_variable(BIAS, [output_size], dtype, initializer=zeros)

    def __call__(self, args: Any) -> Tensor:
        """The result, `(batch, output_size)`; `args` have the sizes given to the constructor."""
        values = _as_list(args)
        joined = values[0] if len(values) == 1 else joining.concat(values, 1)
        result = linalg.matmul(joined, self._weights)
        return result if self._biases is None else nn.bias_add(result, self._biases)


def linear_of(
    args: Any,
    output_size: int,
    bias: bool,
    bias_initializer: Any = None,
    kernel_initializer: Any = None,
) -> Tensor:
    """Applies a new `Linear`; see its arguments (`core_rnn_cell._linear`)."""
    return Linear(args, output_size, bias, bias_initializer, kernel_initializer)(args)


def _as_list(args: Any) -> list[Tensor]:
    if args is None or (nest.is_nested(args) and not args):
        raise ValueError("`args` must be specified")
    return [convert_to_tensor(each) for each in (args if nest.is_nested(args) else [args])]


def _checked_size(value: Tensor) -> int:
    if value.shape.rank != 2:
        raise value_error(
            f"linear is expecting 2D arguments: {value.shape}",
            received=value,
            made_at=value.op.source,
        )
    size = value.shape[1]
    if size is None:
        raise value_error(
            f"linear expects shape[1] to be provided for shape {value.shape}, but saw None",
            received=value,
            made_at=value.op.source,
            hint="give the placeholder a shape, or call set_shape",
        )
    return size
