"""`Input` and `InputLayer`: the inputs of functional models (`tf.keras.Input`)."""

from __future__ import annotations

from typing import Any

from estimatorkit.core import builtin_ops
from estimatorkit.core.dtypes import as_dtype
from estimatorkit.core.graph import get_default_graph
from estimatorkit.layers.engine.base import Layer
from estimatorkit.layers.engine.call_record import LayerCall, record_of
from estimatorkit.ops.sparse.sparse import sparse_placeholder


class InputLayer(Layer):
    """A layer that represents an input of a model (`tf.keras.layers.InputLayer`).

    Args:
        input_shape: the shape without the batch; an int n means `(n,)`.
        batch_size: the batch size; None for any.
        dtype: float32 by default.
        input_tensor: a tensor to use instead of a new placeholder.
        sparse: whether the input is a `SparseTensor`.
        name: its name; 'input_1', 'input_2', ... by default.
        ragged: must be False.
        batch_input_shape: the shape with the batch, instead of the first two.
        kwargs: `shape` and `batch_shape`, other names for the shapes.

    Raises:
        ValueError: both shapes are given, or `ragged` is True.
    """

    def __init__(
        self,
        input_shape: Any = None,
        batch_size: int | None = None,
        dtype: Any = None,
        input_tensor: Any = None,
        sparse: bool | None = None,
        name: str | None = None,
        ragged: bool | None = None,
        batch_input_shape: Any = None,
        **kwargs: Any,
    ) -> None:
        if ragged:
            raise ValueError("Input: ragged inputs are not supported; use padding and masks")
        kwargs.pop("type_spec", None)
        trainable = kwargs.pop("trainable", True)
        if input_shape is not None and batch_input_shape is not None:
            raise ValueError(
                "Only provide the input_shape OR batch_input_shape argument to InputLayer, not "
                "both at the same time."
            )
        if input_tensor is not None:
            dtype = input_tensor.dtype if dtype is None else dtype
            batch_input_shape = tuple(input_tensor.shape.as_list())
        elif batch_input_shape is None:
            shape = (input_shape,) if isinstance(input_shape, int) else input_shape
            batch_input_shape = (batch_size, *(shape or ()))
        if name is None:
            number = record_of(get_default_graph().outermost).unique_name("input")
            name = f"input_{int(number.rpartition('_')[2] or 0) + 1 if '_' in number else 1}"
        wanted = as_dtype("float32" if dtype is None else dtype)
        super().__init__(trainable, name, None, **kwargs)
        self._dtype_of_input = wanted
        self._batch_input_shape = tuple(batch_input_shape)
        self.sparse = bool(sparse)
        self.ragged = False
        self.is_placeholder = input_tensor is None
        self.built = True
        self.supports_masking = True
        tensor = self._placeholder() if input_tensor is None else input_tensor
        LayerCall(self, (), {}, tensor, is_input=True).record()

    def _placeholder(self) -> Any:
        with get_default_graph().name_scope(None):
            if self.sparse:
                return sparse_placeholder(
                    self._dtype_of_input, self._batch_input_shape, name=self.name
                )
            return builtin_ops.placeholder(self._dtype_of_input, self._batch_input_shape, self.name)

    @property
    def dtype(self) -> Any:
        """The name of the input's dtype."""
        return self._dtype_of_input.name

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {
            "batch_input_shape": self._batch_input_shape,
            "dtype": self.dtype,
            "sparse": self.sparse,
            "ragged": False,
            "name": self.name,
        }


def Input(
    shape: Any = None,
    batch_size: int | None = None,
    name: str | None = None,
    dtype: Any = None,
    sparse: bool | None = None,
    tensor: Any = None,
    ragged: bool | None = None,
    batch_shape: Any = None,
    **kwargs: Any,
) -> Any:
    """Creates the input tensor of a functional model, a placeholder.

    Args:
        shape: the shape without the batch dimension; an int for a vector of that length.
        batch_size: the batch size; None for any.
        name: the name of the input layer.
        dtype: float32 by default.
        sparse: whether it is a `SparseTensor`.
        tensor: a tensor to use instead of a new placeholder.
        ragged: must be False.
        batch_shape: the shape with the batch dimension, instead of `shape` and `batch_size`.
        kwargs: `batch_input_shape`, an older name of `batch_shape`.

    Raises:
        ValueError: neither a shape nor a tensor is given, or two shapes are; or a keyword is
            unknown.
    """
    batch_shape = kwargs.pop("batch_input_shape", batch_shape)
    if kwargs:
        raise ValueError(f"Unrecognized keyword arguments: {sorted(kwargs)}")
    if shape is not None and batch_shape is not None:
        raise ValueError(
            "Only provide the `shape` OR `batch_input_shape` argument to Input, not both at the "
            "same time."
        )
    if shape is None and batch_shape is None and tensor is None:
        raise ValueError("Please provide to Input a `shape` or a `tensor` argument.")
    layer = InputLayer(
        shape, batch_size, dtype, tensor, sparse, name, ragged, batch_input_shape=batch_shape
    )
    return layer.output


__all__ = ["Input", "InputLayer"]
