"""`TensorArray`: a list of tensors of one shape, written and read by index, inside loops too.

It is a tensor with one leading dimension more; writing gives a new array, as in TensorFlow. Where
the elements' shape is not known before the first write, the array is made as `(size, 0)` and gets
its elements' shape from the value first written (`function_ops` does so for a loop's variables).
Arrays with `dynamic_size=True` grow, and so live on the host.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from estimatorkit.core import registry
from estimatorkit.core.conversion import as_index_tensor, convert_to_tensor
from estimatorkit.core.dtypes import DType, as_dtype, float32, int32
from estimatorkit.core.errors import explain
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.ops.array import shape as shape_of
from estimatorkit.core.ops.indexing import gather
from estimatorkit.core.registry import Case, Place, Spec, constant_value, register
from estimatorkit.core.shapes import UNKNOWN, TensorShape, as_shape
from estimatorkit.core.tensor import Operation, Tensor

_SAMPLE = np.arange(6, dtype=np.float32).reshape(3, 2)


def _place(attrs: Mapping[str, Any]) -> Place:
    return "host" if attrs["dynamic"] else "device"


def _empty(module: Any) -> Any:
    def kernel(size: Any, dtype: DType, element_shape: TensorShape, dynamic: bool) -> Any:
        known = element_shape.is_fully_defined()
        dims = element_shape.as_list() if known else [0]
        return module.zeros([int(size), *dims], dtype.numpy_dtype)

    return kernel


def _is_unset(array: Any, value_shape: Sequence[int]) -> bool:
    return array.ndim == 2 and array.shape[1] == 0 and tuple(value_shape) != (0,)


def _write(array: Any, index: Any, value: Any, dynamic: bool) -> Any:
    if _is_unset(array, value.shape):
        array = jnp.zeros((array.shape[0], *value.shape), value.dtype)
    return lax.dynamic_update_index_in_dim(array, value, index, 0)


def _write_on_host(array: Any, index: Any, value: Any, dynamic: bool) -> Any:
    at, count = int(index), len(array)
    if at < 0 or (at >= count and not dynamic):
        raise IndexError(
            f"Tried to write to index {at} but array is not resizeable and size is: {count}"
        )
    new = max(count, at + 1)
    value = np.asarray(value)
    result = np.zeros((new, *value.shape), value.dtype)
    if not _is_unset(array, value.shape):
        result[:count] = array
    result[at] = value
    return result


def _scatter(array: Any, indices: Any, values: Any, dynamic: bool) -> Any:
    if _is_unset(array, values.shape[1:]):
        array = jnp.zeros((array.shape[0], *values.shape[1:]), values.dtype)
    return jnp.asarray(array).at[indices].set(values)


def _scatter_on_host(array: Any, indices: Any, values: Any, dynamic: bool) -> Any:
    for index, value in zip(np.asarray(indices), np.asarray(values), strict=True):
        array = _write_on_host(array, index, value, dynamic)
    return array


def _write_vjp(
    attrs: Any, inputs: Sequence[Any], incoming: Sequence[Any], wanted: Sequence[int], context: Any
) -> list[Any]:
    """Of writing (one or several) elements on the host, where the array may have grown."""
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
    if array.op.type == "TensorArray":
        size = constant_value(array.op.inputs[0])
        return None if size is None else int(size)
    return None


register(
    "TensorArray",
    _empty(jnp),
    numpy_kernel=_empty(np),
    infer=_infer_empty,
    static=(0,),
    where=_place,
    gradient=None,
    cases=lambda: [
        Case((np.int32(3),), {"dtype": float32, "element_shape": as_shape([2]), "dynamic": False})
    ],
)
register(
    "TensorArrayWrite",
    _write,
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
    numpy_kernel=_scatter_on_host,
    host_vjp=_write_vjp,
    infer=_infer_scatter,
    where=_place,
    cases=lambda: [Case((_SAMPLE, np.array([2, 0], np.int32), -_SAMPLE[:2]), {"dynamic": False})],
)


class TensorArray:
    """A list of tensors of one shape and dtype (`tf.TensorArray`).

    Args:
        dtype: the elements' dtype.
        size: how many; an int or an int32 scalar tensor.
        dynamic_size: whether writing beyond the end makes it longer. Such an array lives on the
            host, and so does a loop that writes to it.
        clear_after_read: accepted for TensorFlow's signature.
        tensor_array_name: older than `name`.
        handle, flow: accepted for TensorFlow's signature; `flow` is the array's tensor.
        infer_shape: accepted for TensorFlow's signature.
        element_shape: the elements' shape; that of the first value written by default.
        colocate_with_first_write_call: accepted for TensorFlow's signature.
        name: the name scope.

    An element that was never written is 0, and an index beyond the end is the last inside compiled
    code, where XLA cannot raise; TensorFlow raises for both.
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
        if flow is None:
            if size is None and not dynamic_size:
                raise ValueError("Size must be provided for a TensorArray that cannot grow.")
            attrs = {
                "dtype": self.dtype,
                "element_shape": self.element_shape,
                "dynamic": self._dynamic,
            }
            count = convert_to_tensor(0 if size is None else size, int32, "size")
            flow = registry.output("TensorArray", [count], attrs, self._name)
        self.flow: Tensor = flow

    def _components(self) -> tuple[Tensor, ...]:
        return (self.flow,)

    def _with_components(self, tensors: Sequence[Tensor]) -> TensorArray:
        return self._after(tensors[0])

    def _from_values(self, values: Sequence[Any]) -> Any:
        return values[0]

    def _after(self, flow: Tensor) -> TensorArray:
        return TensorArray(
            self.dtype,
            dynamic_size=self._dynamic,
            flow=flow,
            element_shape=self.element_shape,
            name=self._name,
        )

    @property
    def handle(self) -> Tensor:
        """The array's tensor."""
        return self.flow

    @property
    def op(self) -> Operation:
        """The operation that made this state of the array."""
        return self.flow.op

    @property
    def dynamic_size(self) -> bool:
        """Whether it grows."""
        return self._dynamic

    def identity(self) -> TensorArray:
        """The array as it is after the control dependencies in force."""
        from estimatorkit.core.ops.array import identity

        return self._after(identity(self.flow))

    def write(self, index: Any, value: Any, name: str | None = None) -> TensorArray:
        """The array with `value` at `index`.

        Raises:
            TypeError, ValueError: `value` has another dtype, or not the elements' shape.
        """
        tensor = self._element(value)
        at = convert_to_tensor(index, name="index")
        attrs = {"dynamic": self._dynamic}
        return self._after(
            registry.output("TensorArrayWrite", [self.flow, at, tensor], attrs, name)
        )

    def _element(self, value: Any) -> Tensor:
        tensor = convert_to_tensor(value, dtype_hint=self.dtype)
        if tensor.dtype is not self.dtype:
            raise TypeError(
                explain(
                    f"TensorArray dtype is {self.dtype.name} but Op is trying to write dtype "
                    f"{tensor.dtype.name}",
                    made_at=tensor.op.source,
                    hint=f"use cast(x, {self.dtype.name})",
                )
            )
        if not self.element_shape.is_compatible_with(tensor.shape):
            raise ValueError(
                explain(
                    "a value does not fit a TensorArray",
                    expected=self.element_shape,
                    received=tensor,
                    made_at=tensor.op.source,
                )
            )
        return tensor

    def read(self, index: Any, name: str | None = None) -> Tensor:
        """The element at `index`."""
        element = gather(self.flow, index, name=name or "TensorArrayReadV3")
        element.set_shape(self.element_shape)
        return element

    def gather(self, indices: Any, name: str | None = None) -> Tensor:
        """The elements at `indices`, stacked."""
        elements = gather(self.flow, indices, name=name or "TensorArrayGatherV3")
        elements.set_shape(TensorShape([None]).concatenate(self.element_shape))
        return elements

    def stack(self, name: str | None = None) -> Tensor:
        """All elements in one tensor, `(size, ...)`."""
        from estimatorkit.core.ops.array import identity

        with get_default_graph().name_scope(name or "TensorArrayStack"):
            stacked = identity(self.flow, "TensorArrayGatherV3")
        stacked.set_shape(TensorShape([None]).concatenate(self.element_shape))
        return stacked

    def concat(self, name: str | None = None) -> Tensor:
        """The elements one after the other along their first dimension, `(size * n, ...)`."""
        from estimatorkit.core.ops.array import reshape
        from estimatorkit.core.ops.joining import concat

        with get_default_graph().name_scope(name or "TensorArrayConcatV3"):
            known = self.flow.shape.dims
            if known is not None and len(known) > 1 and None not in known[2:]:
                return reshape(self.flow, [-1, *known[2:]])
            return reshape(self.flow, concat([[-1], shape_of(self.flow)[2:]], 0))

    def unstack(self, value: Any, name: str | None = None) -> TensorArray:
        """The array whose elements are the rows of `value`."""
        tensor = convert_to_tensor(value, dtype_hint=self.dtype)
        if tensor.dtype is not self.dtype:
            self._element(tensor)
        if self._dynamic or self.flow.op.type != "TensorArray":
            indices = _row_numbers(tensor)
            return self.scatter(indices, tensor, name)
        return self._after(tensor)

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        """The array with the rows of `value` at `indices`."""
        tensor = convert_to_tensor(value, dtype_hint=self.dtype)
        at = as_index_tensor(indices, "indices")
        attrs = {"dynamic": self._dynamic}
        return self._after(
            registry.output("TensorArrayScatter", [self.flow, at, tensor], attrs, name)
        )

    def split(self, value: Any, lengths: Any, name: str | None = None) -> TensorArray:
        """The array whose elements are pieces of `value`, all of one length.

        Raises:
            ValueError: the lengths differ or are not known when the graph is built.
        """
        from estimatorkit.core.ops.array import reshape

        tensor = convert_to_tensor(value, self.dtype)
        known = constant_value(as_index_tensor(lengths, "lengths"))
        if known is None or len(set(np.atleast_1d(known).tolist())) > 1:
            raise ValueError(
                explain(
                    "TensorArray.split: the elements of an array have one shape",
                    expected="constant lengths, all the same",
                    received=lengths,
                )
            )
        count, length = len(np.atleast_1d(known)), int(np.atleast_1d(known)[0])
        rest = [-1 if dim is None else dim for dim in (tensor.shape.dims or ())[1:]]
        return self._after(reshape(tensor, [count, length, *rest], name=name))

    def size(self, name: str | None = None) -> Tensor:
        """The number of elements, int32."""
        from estimatorkit.core.ops.array import identity

        return identity(shape_of(self.flow)[0], name or "TensorArraySizeV3")

    def close(self, name: str | None = None) -> Operation:
        """An operation that does nothing (memory is given back by itself)."""
        return registry.apply("NoOp", name=name or "TensorArrayCloseV3")

    def __repr__(self) -> str:
        return f"<TensorArray of {self.dtype.name}{self.element_shape}>"


def _row_numbers(tensor: Tensor) -> Tensor:
    """0, 1, ... for the rows of a tensor."""
    from estimatorkit.core.ops.filling import range_

    return range_(shape_of(tensor)[0])
