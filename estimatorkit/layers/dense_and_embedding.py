"""`Dense` and `Embedding` layers."""

from __future__ import annotations

from typing import Any

from estimatorkit.core.dtypes import as_dtype
from estimatorkit.core.sparse_tensor import SparseTensor
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.engine.configured import ConfiguredLayer, check_floating, known_dimension
from estimatorkit.layers.engine.input_spec import InputSpec
from estimatorkit.ops.array import indexing
from estimatorkit.ops.math import elementwise, linalg
from estimatorkit.ops.nn import nn
from estimatorkit.ops.nn.embedding import embedding_lookup_sparse
from estimatorkit.ops.sparse.joining import sparse_fill_empty_rows


class Dense(ConfiguredLayer):
    """Fully connected layer: activation(inputs x kernel + bias) (`tf.keras.layers.Dense`).

    Inputs: floats `(..., n)` of rank 2 or more, with n known. Outputs: `(..., units)`.
    Variables: `kernel` `(n, units)`, `bias` `(units,)`.

    Args:
        units: the number of outputs.
        activation: a function or its name; none by default.
        use_bias: whether to add a bias.
        kernel_initializer, bias_initializer: initializers or their names.
        kernel_regularizer, bias_regularizer: functions that return a loss given the variable, or
            their names.
        activity_regularizer: a function that returns a loss given the outputs.
        kernel_constraint, bias_constraint: functions that optimizers apply to the variable's new
            value after each step.
        kwargs: as for `Layer`.

    Raises:
        ValueError: `units` is negative.
    """

    def __init__(
        self,
        units: int,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.keep_arguments(locals())
        self.units = int(units)
        if self.units < 0:
            raise ValueError(
                f"Received an invalid value for `units`, expected a positive integer. "
                f"Received: units={units}"
            )
        self.supports_masking = True
        self.input_spec = InputSpec(min_ndim=2)

    def build(self, input_shape: Any) -> None:
        """Makes the kernel and the bias."""
        check_floating(self)
        problem = "The last dimension of the inputs to a Dense layer should be defined. Found None."
        width = known_dimension(input_shape, -1, self, problem)
        self.input_spec = InputSpec(min_ndim=2, axes={-1: width})
        self.kernel = self.add_configured_weight("kernel", [width, self.units])
        self.bias = self.add_configured_weight("bias", [self.units]) if self.use_bias else None
        super().build(input_shape)

    def call(self, inputs: Any) -> Tensor:
        """The outputs."""
        if not inputs.dtype.is_floating:
            inputs = elementwise.cast(inputs, self.compute_dtype)
        if isinstance(inputs, SparseTensor):
            outputs = self._of_rows(inputs)
        else:
            outputs = linalg.matmul(inputs, self.kernel)
        if self.bias is not None:
            outputs = nn.bias_add(outputs, self.bias)
        result: Tensor = self.activation(outputs)
        return result

    def _of_rows(self, inputs: SparseTensor) -> Any:
        """The product of a sparse matrix: sums of those rows of the kernel that it names, so that
        optimizers update these only.
        """
        filled, _ = sparse_fill_empty_rows(inputs, 0)
        columns = filled.with_values(filled.indices[:, 1])
        return embedding_lookup_sparse(self.kernel, columns, filled, combiner="sum")


class Embedding(ConfiguredLayer):
    """Looks up integers in a table of vectors (`tf.keras.layers.Embedding`).

    Inputs: integers in [0, input_dim) of any shape. Outputs: floats `(..., output_dim)`. Variables:
    `embeddings` `(input_dim, output_dim)`. Its gradient is an `IndexedSlices`, so optimizers
    update only the rows that were looked up.

    Args:
        input_dim: the number of rows.
        output_dim: the length of the vectors.
        embeddings_initializer, embeddings_regularizer, embeddings_constraint: see `Dense`.
        activity_regularizer: see `Dense`.
        mask_zero: whether 0 is padding, to be masked.
        input_length: the number of integers per example, if it is fixed.
        sparse: must be False: outputs are dense.
        kwargs: as for `Layer`.

    Raises:
        ValueError: a dimension is not positive, or `sparse` is True.
    """

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        embeddings_initializer: Any = "uniform",
        embeddings_regularizer: Any = None,
        activity_regularizer: Any = None,
        embeddings_constraint: Any = None,
        mask_zero: bool = False,
        input_length: int | None = None,
        sparse: bool = False,
        **kwargs: Any,
    ) -> None:
        if "input_shape" not in kwargs and "batch_input_shape" not in kwargs:
            kwargs["input_shape"] = (
                tuple(input_length) if isinstance(input_length, (list, tuple)) else (input_length,)
            )
        if input_dim <= 0 or output_dim <= 0:
            raise ValueError(
                "Both `input_dim` and `output_dim` should be positive, Received input_dim = "
                f"{input_dim} and output_dim = {output_dim}"
            )
        if sparse:
            raise ValueError("Embedding: sparse=True is not there; outputs are dense")
        kwargs["autocast"] = False
        super().__init__(**kwargs)
        self.keep_arguments(locals())
        self.input_dim, self.output_dim = int(input_dim), int(output_dim)
        self.mask_zero = self.supports_masking = mask_zero

    @property
    def _infers_dtype(self) -> bool:
        return False

    def build(self, input_shape: Any = None) -> None:
        """Makes the table."""
        self.embeddings = self.add_configured_weight(
            "embeddings", [self.input_dim, self.output_dim], experimental_autocast=False
        )
        super().build(input_shape)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """Returns the mask of nonzero integers if `mask_zero`."""
        if not self.mask_zero:
            return None
        return elementwise.not_equal(inputs, elementwise.cast(0, inputs.dtype))

    def call(self, inputs: Any) -> Tensor:
        """The vectors."""
        if not inputs.dtype.is_integer:
            inputs = elementwise.cast(inputs, "int32")
        rows = indexing.gather(self.embeddings, inputs)
        wanted = as_dtype(self.compute_dtype)
        return rows if rows.dtype == wanted else elementwise.cast(rows, wanted)


__all__ = ["Dense", "Embedding"]
