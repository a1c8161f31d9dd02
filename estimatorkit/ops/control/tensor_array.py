"""`TensorArray`: a list of tensors, written and read by index, also inside loops.

It is a tensor with one additional leading dimension; writes return a new array, as in TensorFlow.
If the elements' shape is unknown before the first write, the array is created as `(size, 0)` and
takes its shape from the first value written (`function_ops` does so for a loop's variables).
Arrays with `dynamic_size=True`, and those whose elements may differ in shape (`infer_shape=False`,
or pieces of several lengths), live on the host: see `ragged_arrays`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from estimatorkit.core import registry
from estimatorkit.core.conversion import as_index_tensor, convert_to_tensor, make
from estimatorkit.core.dtypes import DType, as_dtype, float32, int32
from estimatorkit.core.errors import InvalidArgumentError
from estimatorkit.core.faults import Fault, in_range
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import (
    Case,
    Place,
    Spec,
    constant_value,
    register,
    same_as_input,
)
from estimatorkit.core.shapes import UNKNOWN, TensorShape, as_shape
from estimatorkit.core.sizes import dims_of
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.ops.array.array import shape as shape_of
from estimatorkit.ops.sparse import ragged_arrays

_SAMPLE = np.arange(6, dtype=np.float32).reshape(3, 2)


def _place(attrs: Mapping[str, Any]) -> Place:
    return "host" if attrs["dynamic"] else "device"


def _zeros_on_host(shape: Sequence[int], dtype: Any) -> Any:
    return np.full(shape, b"" if np.dtype(dtype).kind == "O" else 0, dtype)


def _empty(zeros: Callable[..., Any]) -> Any:
    def kernel(size: Any, dtype: DType, element_shape: TensorShape, dynamic: bool) -> Any:
        known = element_shape.is_fully_defined()
        dims = element_shape.as_list() if known else [0]
        return zeros([*dims_of(size), *dims], dtype.numpy_dtype)

    return kernel


def _is_unset(array: Any, value_shape: Sequence[int]) -> bool:
    return array.ndim == 2 and array.shape[1] == 0 and tuple(value_shape) != (0,)


def _write(array: Any, index: Any, value: Any, dynamic: bool) -> Any:
    if _is_unset(array, value.shape):
        array = jnp.zeros((array.shape[0], *value.shape), value.dtype)
    _check_fits(array, value.shape)
    return lax.dynamic_update_index_in_dim(array, value, index, 0)


def _check_fits(array: Any, value_shape: Sequence[int]) -> None:
    if tuple(array.shape[1:]) != tuple(value_shape):
        raise ValueError(
            f"Could not write to TensorArray because the value shape is {list(value_shape)} which "
            "is incompatible with the TensorArray's inferred element shape: "
            f"{list(array.shape[1:])} (consider setting infer_shape=False)."
        )


def _write_fault(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> list[Fault]:
    array, indices = inputs[:2]
    words = "TensorArray: Tried to write to index {value} but array is not resizeable and size is: "
    if attrs["dynamic"]:
        return in_range(1, indices, np.iinfo(np.int64).max, words + str(array.shape[0]))
    return in_range(1, indices, array.shape[0], words + "{bound}")


def _write_on_host(array: Any, index: Any, value: Any, dynamic: bool) -> Any:
    at, count = int(index), len(array)
    new = max(count, at + 1)
    value = np.asarray(value, array.dtype)
    result = _zeros_on_host((new, *value.shape), value.dtype)
    if not _is_unset(array, value.shape):
        _check_fits(array, value.shape)
        result[:count] = array
    result[at] = value[()]  # NumPy would store a 0-d array of text as an array
    return result


def _scatter(array: Any, indices: Any, values: Any, dynamic: bool) -> Any:
    if _is_unset(array, values.shape[1:]):
        array = jnp.zeros((array.shape[0], *values.shape[1:]), values.dtype)
    _check_fits(array, values.shape[1:])
    return jnp.asarray(array).at[indices].set(values)


def _scatter_on_host(array: Any, indices: Any, values: Any, dynamic: bool) -> Any:
    for index, value in zip(np.asarray(indices), np.asarray(values), strict=True):
        array = _write_on_host(array, index, value, dynamic)
    return array


def _write_vjp(
    attrs: Any, inputs: Sequence[Any], incoming: Sequence[Any], wanted: Sequence[int], context: Any
) -> list[Any]:
    """VJP of writing elements on the host, where the array may have grown."""
    array, at, _ = inputs
    rest = np.array(incoming[0])
    written = rest[at]
    rest[at] = 0
    before = np.zeros(np.shape(array), rest.dtype)
    if before.shape[1:] == rest.shape[1:]:
        before[:] = rest[: len(before)]
    found = {0: before, 2: written}
    return [found[position] for position in wanted]


def _infer_empty(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    size = constant_value(inputs[0])
    shape = attrs["element_shape"]
    if not shape.is_fully_defined() or attrs["dynamic"]:
        return [Spec(attrs["dtype"], UNKNOWN)]
    return [Spec(attrs["dtype"], TensorShape([None if size is None else int(size), *shape.dims]))]


def _infer_write(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    array, value = inputs[0], inputs[2]
    count = array.shape[0] if array.shape.rank and not attrs["dynamic"] else None
    if array.shape.rank is None and not attrs["dynamic"]:
        count = _size_of(array)
    return [Spec(array.dtype, TensorShape([count]).concatenate(value.shape))]


def _infer_scatter(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    array, values = inputs[0], inputs[2]
    if values.shape.rank is None:
        return [Spec(array.dtype, UNKNOWN)]
    count = None if attrs["dynamic"] else _size_of(array)
    return [Spec(array.dtype, TensorShape([count, *(values.shape.dims or ())[1:]]))]


def _size_of(array: Tensor) -> int | None:
    if array.shape.rank:
        return array.shape[0]
    if TENSOR_ARRAY.made(array.op):
        size = constant_value(array.op.inputs[0])
        return None if size is None else int(size)
    return None


TENSOR_ARRAY = register(
    "TensorArray",
    _empty(jnp.zeros),
    numpy_kernel=_empty(_zeros_on_host),
    infer=_infer_empty,
    static=(0,),
    where=_place,
    gradient=None,
    cases=lambda: [
        Case((np.int32(3),), {"dtype": float32, "element_shape": as_shape([2]), "dynamic": False})
    ],
)
register(
    "TensorArrayUnstack",  # so that the gradient of the rows is dense, whichever are read
    lambda x: x,
    numpy_kernel=lambda x: x,
    infer=same_as_input(),
    cases=lambda: [Case((_SAMPLE,), {})],
)
register(
    "TensorArrayWrite",
    _write,
    fault=_write_fault,
    numpy_kernel=_write_on_host,
    host_vjp=_write_vjp,
    infer=_infer_write,
    where=_place,
    cases=lambda: [
        Case((_SAMPLE, np.int32(1), np.array([0.5, -1.0], np.float32)), {"dynamic": False})
    ],
)
register(
    "TensorArrayScatter",
    _scatter,
    fault=_write_fault,
    numpy_kernel=_scatter_on_host,
    host_vjp=_write_vjp,
    infer=_infer_scatter,
    where=_place,
    cases=lambda: [Case((_SAMPLE, np.array([2, 0], np.int32), -_SAMPLE[:2]), {"dynamic": False})],
)


class TensorArray:
    """A list of tensors of one dtype (`tf.TensorArray`).

    Args:
        dtype: the elements' dtype.
        size: the number of elements, an int or an int32 scalar tensor.
        dynamic_size: whether writes beyond the end extend it. Such an array, and a loop that writes
            to it, run on the host.
        clear_after_read: accepted for compatibility only.
        tensor_array_name: older name of `name`.
        handle, flow: those of another array, whose state this one takes over.
        infer_shape: whether all elements have one shape. Without it and a complete
            `element_shape`, the array and loops that use it run on the host.
        element_shape: the elements' shape; that of the first value written by default.
        colocate_with_first_write_call: accepted for compatibility only.

    Unwritten elements are 0; TensorFlow raises if `element_shape` is not given. Elements can be
    written again, and read any number of times, regardless of `clear_after_read`.
    """

    def __init__(
        self,
        dtype: Any,
        size: Any = None,
        dynamic_size: bool | None = None,
        clear_after_read: bool | None = None,
        tensor_array_name: str | None = None,
        handle: Any = None,
        flow: Tensor | None = None,
        infer_shape: bool = True,
        element_shape: Any = None,
        colocate_with_first_write_call: bool = True,
        name: str | None = None,
    ) -> None:
        self.dtype: DType = as_dtype(dtype)
        self.element_shape = as_shape(element_shape)
        self._dynamic = bool(dynamic_size)
        self._name = name or tensor_array_name or "TensorArray"
        self._infer_shape = bool(infer_shape)
        self._layout: Tensor | None = None
        if handle is not None:
            given = {
                "size": size,
                "element_shape": element_shape,
                "dynamic_size": dynamic_size,
                "clear_after_read": clear_after_read,
            }
            for argument in (key for key, value in given.items() if value is not None):
                raise ValueError(
                    f"Cannot provide both a `handle` and `{argument}` arguments at the same time."
                )
            if flow is None:
                raise ValueError("TensorArray: a handle needs the flow that belongs to it.")
        if handle is not None and handle is not flow:
            self._layout = handle
        if flow is None:
            if size is None and not dynamic_size:
                raise ValueError("Argument `size` must be provided if handle is not provided.")
            attrs = {
                "dtype": self.dtype,
                "element_shape": self.element_shape,
                "dynamic": self._dynamic,
            }
            count = convert_to_tensor(0 if size is None else size, int32, "size")
            if not infer_shape and not self.element_shape.is_fully_defined():
                flow, self._layout = ragged_arrays.empty(self.dtype, count)
            else:
                flow = registry.output("TensorArray", [count], attrs, self._name)
        self.flow: Tensor = flow

    def _components(self) -> tuple[Tensor, ...]:
        return (self.flow,) if self._layout is None else (self.flow, self._layout)

    def _with_components(self, tensors: Sequence[Tensor]) -> TensorArray:
        return self._after(*tensors)

    def _from_values(self, values: Sequence[Any]) -> Any:
        return values[0]

    def _after(
        self, flow: Tensor, layout: Tensor | None = None, element_shape: Any = None
    ) -> TensorArray:
        made = TensorArray(
            self.dtype,
            dynamic_size=self._dynamic,
            flow=flow,
            infer_shape=self._infer_shape,
            element_shape=self.element_shape if element_shape is None else element_shape,
            name=self._name,
        )
        made._layout = layout
        return made

    @property
    def handle(self) -> Tensor:
        """Identifies an array of this state, together with `flow`."""
        return self.flow if self._layout is None else self._layout

    @property
    def op(self) -> Operation:
        """The operation that created this state of the array."""
        return self.flow.op

    @property
    def dynamic_size(self) -> bool:
        """Whether the array can grow."""
        return self._dynamic

    def identity(self) -> TensorArray:
        """The array after the current control dependencies."""
        from estimatorkit.core.builtin_ops import identity

        return self._after(*map(identity, self._components()))

    def write(self, index: Any, value: Any, name: str | None = None) -> TensorArray:
        """Returns the array with `value` at `index`.

        Raises:
            InvalidArgumentError: `value` has another dtype.
            ValueError: `value` does not have the elements' shape.
        """
        tensor = self._converted(value)
        shape = self._merged(tensor.shape)
        at = convert_to_tensor(index, name="index")
        if self._layout is not None:
            made = ragged_arrays.write(self.flow, self._layout, at, tensor, self._dynamic)
            return self._after(*made)
        attrs = {"dynamic": self._dynamic}
        written = registry.output("TensorArrayWrite", [self.flow, at, tensor], attrs, name)
        return self._after(written, element_shape=shape)

    def _converted(self, value: Any) -> Tensor:
        tensor = convert_to_tensor(value, dtype_hint=self.dtype)
        if tensor.dtype is not self.dtype:
            raise InvalidArgumentError.explained(
                f"TensorArray dtype is {self.dtype.name} but Op is trying to write dtype "
                f"{tensor.dtype.name}",
                made_at=tensor.op.source,
                hint=f"use cast(x, {self.dtype.name})",
            )
        return tensor

    def _merged(self, shape: TensorShape) -> TensorShape:
        """The elements' shape merged with that of one element; ValueError if incompatible."""
        if not self.element_shape.is_compatible_with(shape):
            raise ValueError(
                f"Inconsistent shapes: saw {shape} but expected {self.element_shape}"
                + ("" if self._infer_shape else " (and infer_shape=False)")
            )
        return self.element_shape.merge_with(shape) if self._infer_shape else self.element_shape

    def read(self, index: Any, name: str | None = None) -> Tensor:
        """The element at `index`."""
        name = name or "TensorArrayReadV3"
        if self._layout is not None:
            at = convert_to_tensor(index, name="index")
            element = ragged_arrays.read(self.flow, self._layout, at, name=name)
        else:
            element = _elements(self.flow, index, name)
        element.set_shape(self.element_shape)
        return element

    def gather(self, indices: Any, name: str | None = None) -> Tensor:
        """The elements at `indices`, stacked."""
        name = name or "TensorArrayGatherV3"
        at = as_index_tensor(indices, "indices")
        if self._layout is not None:
            elements = ragged_arrays.read(self.flow, self._layout, at, name=name)
        else:
            elements = _elements(self.flow, at, name)
        elements.set_shape(TensorShape([None]).concatenate(self.element_shape))
        return elements

    def stack(self, name: str | None = None) -> Tensor:
        """All elements in one tensor, `(size, ...)`."""
        from estimatorkit.core.builtin_ops import identity

        with get_default_graph().name_scope(name or "TensorArrayStack"):
            if self._layout is not None:
                return self.gather(_row_numbers(self._layout))
            stacked = identity(self.flow, "TensorArrayGatherV3")
        stacked.set_shape(TensorShape([None]).concatenate(self.element_shape))
        return stacked

    def concat(self, name: str | None = None) -> Tensor:
        """The elements concatenated along their first dimension, `(size * n, ...)`."""
        from estimatorkit.ops.array.array import reshape
        from estimatorkit.ops.array.joining import concat

        with get_default_graph().name_scope(name or "TensorArrayConcatV3"):
            if self._layout is not None:
                every = _row_numbers(self._layout)
                return ragged_arrays.read(self.flow, self._layout, every, joined=True)
            known = self.flow.shape.dims
            if known is not None and len(known) > 1 and all(known[2:]):
                return reshape(self.flow, [-1, *known[2:]])
            sizes = shape_of(self.flow)  # -1 cannot be inferred from rows that may be empty
            return reshape(self.flow, concat([[sizes[0] * sizes[1]], sizes[2:]], 0))

    def unstack(self, value: Any, name: str | None = None) -> TensorArray:
        """The array whose elements are the rows of `value`."""
        tensor = self._converted(value)
        size, rows = _size_of(self.flow), tensor.shape[0] if tensor.shape.rank else None
        other_size = size not in (None, rows)
        if self._dynamic or other_size or not TENSOR_ARRAY.made(self.flow.op):
            indices = _row_numbers(tensor)
            return self.scatter(indices, tensor, name)
        shape = self._merged(_row_shape(tensor))
        flow = registry.output("TensorArrayUnstack", [tensor], name=name)
        return self._after(flow, element_shape=shape)

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        """The array with the rows of `value` at `indices`."""
        tensor = self._converted(value)
        shape = self._merged(_row_shape(tensor))
        at = as_index_tensor(indices, "indices")
        if self._layout is not None:
            made = ragged_arrays.write(self.flow, self._layout, at, tensor, self._dynamic)
            return self._after(*made)
        attrs = {"dynamic": self._dynamic}
        written = registry.output("TensorArrayScatter", [self.flow, at, tensor], attrs, name)
        return self._after(written, element_shape=shape)

    def _fits(self, tensor: Tensor, lengths: Any) -> bool:
        """Whether pieces of these lengths are equal, and known to be as many as the elements."""
        equal = np.ndim(lengths) == 1 and len(set(lengths.tolist())) == 1
        size = len(lengths) if self._dynamic else _size_of(self.flow)
        whole = tensor.shape[0] if tensor.shape.rank else None
        return equal and size == len(lengths) and whole == int(lengths.sum())

    def split(self, value: Any, lengths: Any, name: str | None = None) -> TensorArray:
        """Returns the array whose elements are pieces of `value` along its first dimension.

        Args:
            value: the tensor.
            lengths: a vector of integers: the pieces' lengths. If they differ or are unknown at
                graph construction, the array lives on the host.
        """
        from estimatorkit.ops.array.array import reshape

        tensor, lengths = self._converted(value), as_index_tensor(lengths, "lengths")
        known = constant_value(lengths)
        if self._layout is None and known is not None and self._fits(tensor, known):
            rest = [-1 if dim is None else dim for dim in (tensor.shape.dims or ())[1:]]
            rows = reshape(tensor, [len(known), int(known[0]), *rest], name=name)
            return self._after(rows, element_shape=self._merged(_row_shape(rows)))
        with get_default_graph().name_scope(name or "TensorArraySplitV3"):
            size = shape_of(self.flow if self._layout is None else self._layout)[0]
            return self._after(*ragged_arrays.split(tensor, lengths, size, self._dynamic))

    def size(self, name: str | None = None) -> Tensor:
        """The number of elements, int32."""
        from estimatorkit.core.builtin_ops import identity

        return identity(shape_of(self.handle)[0], name or "TensorArraySizeV3")

    def close(self, name: str | None = None) -> Operation:
        """Returns a no-op; memory is freed automatically."""
        return registry.apply("NoOp", name=name or "TensorArrayCloseV3")

    def __repr__(self) -> str:
        return f"<TensorArray of {self.dtype.name}{self.element_shape}>"


def _elements(flow: Tensor, indices: Any, name: str) -> Tensor:
    attrs = {
        "axis": 0,
        "batch_dims": 0,
        "_refusal": "Tried to read from index {value} but array size is: {bound}",
    }
    return make("GatherV2", {"params": flow, "indices": indices}, attrs, name)


def _row_shape(tensor: Tensor) -> TensorShape:
    return tensor.shape[1:] if tensor.shape.rank else UNKNOWN


def _row_numbers(tensor: Tensor) -> Tensor:
    """The row indices 0, 1, ... of a tensor."""
    from estimatorkit.ops.array.filling import range_

    return range_(shape_of(tensor)[0])
