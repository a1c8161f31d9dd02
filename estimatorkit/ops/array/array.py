"""Shape and reshaping ops: placeholders, identity, shapes as values, reshape, transpose.

Arguments that determine a shape (`reshape`'s shape, `fill`'s dims, ...) may be tensors, as in
TensorFlow; XLA needs their values at compile time, so they are `static` inputs, known from
constants, from other tensors' shapes, or from feeds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import jax.numpy as jnp
import numpy as np

from estimatorkit.core.conversion import as_index_tensor, convert_to_tensor, make
from estimatorkit.core.dtypes import DType, as_dtype, int32
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import (
    Case,
    Spec,
    constant_value,
    constant_value_as_shape,
    register,
    same_as_input,
)
from estimatorkit.core.shapes import SCALAR, UNKNOWN, TensorShape, as_shape
from estimatorkit.core.sizes import as_known, dims_of
from estimatorkit.core.sparse_tensor import SparseTensor
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.math.axes import (
    as_tuple,
    in_range,
    input_attr,
    ints_of,
    register_with_axis,
    unknown_numbers,
    with_axis,
)

_SAMPLE = np.arange(6, dtype=np.float32).reshape(2, 3) - np.float32(2.5)


# -- shapes as values

for _type, _function, _jax_value in (
    ("Shape", lambda x: x.shape, None),
    ("Size", lambda x: math.prod(x.shape), None),
    ("Rank", lambda x: len(x.shape), None),
):

    def _value(x: Any, dtype: DType = int32, function: Any = _function) -> Any:
        return as_known(function(x), dtype.numpy_dtype)

    def _spec(inputs: Any, attrs: Any, op_type: str = _type) -> list[Spec]:
        return [
            Spec(
                attrs.get("dtype", int32),
                TensorShape([inputs[0].shape.rank]) if op_type == "Shape" else SCALAR,
            )
        ]

    register(
        _type,
        _value,
        infer=_spec,
        numpy_kernel=_value,
        gradient=None,
        moves=True,
        known_from_shape=True,
        cases=lambda: [Case((_SAMPLE,), {"dtype": int32})],
    )


def shape(input: Any, name: str | None = None, out_type: Any = int32) -> Tensor:
    """The run-time shape of `input` as a vector of integers."""
    if isinstance(input, SparseTensor):
        return make("Cast", {"x": input.dense_shape}, {"dtype": as_dtype(out_type)}, name)
    return make("Shape", {"input": input}, {"dtype": as_dtype(out_type)}, name)


def shape_n(input: Any, out_type: Any = int32, name: str | None = None) -> list[Tensor]:
    """The shapes of a list of tensors, as vectors of integers."""
    with get_default_graph().name_scope(name or "ShapeN"):
        return [shape(each, out_type=out_type) for each in input]


def size(input: Any, name: str | None = None, out_type: Any = int32) -> Tensor:
    """The number of elements of `input`."""
    if isinstance(input, SparseTensor):
        from estimatorkit.ops.math.reduce import reduce_prod

        return reduce_prod(shape(input, out_type=out_type), name=name)
    return make("Size", {"input": input}, {"dtype": as_dtype(out_type)}, name)


def rank(input: Any, name: str | None = None) -> Tensor:
    """The number of dimensions of `input`."""
    if isinstance(input, SparseTensor):
        return size(input.dense_shape, name)
    return make("Rank", {"input": input}, {"dtype": int32}, name)


# -- reshaping


def _infer_reshape(inputs: Any, attrs: Any) -> list[Spec]:
    tensor, target = inputs
    wanted = constant_value(target)
    known = constant_value_as_shape(target)
    if wanted is None and known.dims is not None:
        return [Spec(tensor.dtype, known)]
    if wanted is None:
        return [Spec(tensor.dtype, UNKNOWN)]
    dims = [int(dim) for dim in np.atleast_1d(wanted)]
    count = tensor.shape.num_elements()
    if dims.count(-1) > 1:
        raise value_error("reshape: only one dimension may be -1", received=dims)
    rest = int(np.prod([dim for dim in dims if dim != -1], dtype=np.int64))
    if count is not None:
        fits = count % rest == 0 if -1 in dims and rest else count == rest
        if not fits:
            raise value_error(
                f"Cannot reshape a tensor with {count} elements to shape {dims}",
                received=tensor,
                made_at=tensor.op.source,
            )
    if -1 in dims and count is not None:
        dims[dims.index(-1)] = count // rest if rest else _rest_of_nothing(tensor.shape, dims)
    return [Spec(tensor.dtype, TensorShape([None if dim == -1 else dim for dim in dims]))]


def _rest_of_nothing(given: Iterable[Any], wanted: Iterable[Any]) -> Any:
    """The length meant by -1 next to a 0: inferred from the dimensions that are not 0.

    So `[batch, -1]` flattens the rows of an empty batch.
    """
    whole, known = (math.prod(filter(None, dims)) for dims in (given, wanted))
    return whole // -known  # the -1 has made it negative


def _reshape(x: Any, shape: Any, module: Any = jnp) -> Any:
    dims = dims_of(shape)
    known = math.prod(dim for dim in dims if dim != -1)
    if known == 0 and -1 in dims and x.size == 0:
        rest = _rest_of_nothing(x.shape, dims)
        return module.reshape(x, [rest if dim == -1 else dim for dim in dims])
    if x.size != known and (-1 not in dims or not known or x.size % known):
        multiple = "a multiple of " if -1 in dims else ""
        raise ValueError(
            f"Input to reshape is a tensor with {x.size} values, but the requested shape "
            f"{'requires ' if multiple else 'has '}{multiple}{known} ({list(dims)})"
        )
    return module.reshape(x, dims)


register(
    "Reshape",
    _reshape,
    moves=True,
    infer=_infer_reshape,
    numpy_kernel=lambda x, shape: _reshape(x, shape, np),
    static=(1,),
    cases=lambda: [
        Case((_SAMPLE, np.array([3, -1], np.int32))),
        Case(
            (np.zeros((0, 3, 2), np.float32), np.array([0, -1], np.int32)),
            {},
            np.zeros((0, 6), np.float32),
        ),
    ],
    accepts=("", "x"),
)


def reshape(tensor: Any, shape: Any, name: str | None = None) -> Tensor:
    """Reshapes a tensor, keeping the order of its elements.

    Args:
        tensor: a tensor.
        shape: ints or an integer tensor; one dimension may be -1, and is then inferred.

    Raises:
        ValueError: the number of elements differs.
    """
    with get_default_graph().name_scope(name or "Reshape") as scope:
        target = as_index_tensor(shape, "shape")
        return make("Reshape", {"tensor": convert_to_tensor(tensor), "shape": target}, name=scope)


def _infer_expand_dims(inputs: Any, attrs: Any) -> list[Spec]:
    dims = inputs[0].shape.dims
    if dims is None:
        return [Spec(inputs[0].dtype, UNKNOWN)]
    at = in_range(attrs["axis"], len(dims) + 1, "expand_dims")
    return [Spec(inputs[0].dtype, TensorShape((*dims[:at], 1, *dims[at:])))]


register_with_axis(
    "ExpandDims",
    lambda x, axis: jnp.expand_dims(x, axis),
    moves=True,
    infer=_infer_expand_dims,
    numpy_kernel=lambda x, axis: np.expand_dims(x, axis),
    cases=lambda: [Case((_SAMPLE,), {"axis": -1}), Case((_SAMPLE,), {"axis": 0})],
)


def expand_dims(input: Any, axis: Any = None, name: str | None = None, dim: Any = None) -> Tensor:
    """Inserts a dimension of length 1 at `axis` (`dim` is its older name)."""
    if axis is not None and dim is not None:
        raise ValueError("Cannot specify both 'dim' and 'axis'.")
    if axis is None and dim is None:
        raise ValueError("Must specify an axis argument to tf.expand_dims()")
    inputs, attrs = with_axis({"input": input}, dim if axis is None else axis, "expand_dims")
    return make("ExpandDims", inputs, attrs, name)


def _infer_squeeze(inputs: Any, attrs: Any) -> list[Spec]:
    dims, axis = inputs[0].shape.dims, attrs["axis"]
    if dims is None or (axis is None and None in dims):
        return [Spec(inputs[0].dtype, UNKNOWN)]
    given = axis if axis is not None else [i for i, dim in enumerate(dims) if dim == 1]
    axes = {in_range(position, len(dims), "squeeze") for position in given}
    for position in axes:
        if dims[position] not in (1, None):
            raise value_error(
                f"Can not squeeze dim[{position}], expected a dimension of 1, got {dims[position]}",
                received=inputs[0],
                made_at=inputs[0].op.source,
            )
    kept = [dim for position, dim in enumerate(dims) if position not in axes]
    return [Spec(inputs[0].dtype, TensorShape(kept))]


register(
    "Squeeze",
    lambda x, axis: jnp.squeeze(
        x, tuple(at for at, dim in enumerate(x.shape) if dim == 1) if axis is None else axis
    ),
    moves=True,
    infer=_infer_squeeze,
    numpy_kernel=lambda x, axis: np.squeeze(x, axis),
    cases=lambda: [
        Case((_SAMPLE[:, None],), {"axis": (1,)}),
        Case((_SAMPLE[None],), {"axis": None}),
    ],
)


def squeeze(
    input: Any, axis: Any = None, name: str | None = None, squeeze_dims: Any = None
) -> Tensor:
    """Removes dimensions of length 1, all of them or those named by `axis`."""
    if axis is not None and squeeze_dims is not None:
        raise ValueError("Cannot specify both 'squeeze_dims' and 'axis'.")
    chosen = squeeze_dims if axis is None else axis
    axes = () if chosen is None else tuple(np.atleast_1d(ints_of(chosen, "squeeze")).tolist())
    return make("Squeeze", {"input": input}, {"axis": axes or None}, name)


def _infer_transpose(inputs: Any, attrs: Any) -> list[Spec]:
    dims, perm = inputs[0].shape.dims, attrs["perm"]
    if dims is None:
        return [Spec(inputs[0].dtype, UNKNOWN if perm is None else TensorShape([None] * len(perm)))]
    order = tuple(reversed(range(len(dims)))) if perm is None else perm
    if sorted(order) != list(range(len(dims))):
        outside = [at for at in order if at >= len(dims)]
        missing = [at for at in range(len(dims)) if at not in order]
        words = f"{missing[0]} is missing from perm" if missing else "there are too many"
        if outside:
            words = f"perm dim {outside[0]} is out of range of input rank {len(dims)}"
        raise value_error(
            f"transpose: perm is no permutation of the dimensions: {words}",
            expected=f"each of 0..{len(dims) - 1} once",
            received=list(order),
        )
    return [Spec(inputs[0].dtype, TensorShape([dims[position] for position in order]))]


def _infer_unknown_order(inputs: Any, attrs: Any) -> list[Spec]:
    x, perm = inputs
    rank = x.shape.rank if perm.shape.rank != 1 else perm.shape[0]
    return [Spec(x.dtype, UNKNOWN if rank is None else TensorShape([None] * rank))]


register_with_axis(
    "Transpose",
    lambda x, perm: jnp.transpose(x, perm),
    moves=True,
    infer=_infer_transpose,
    attr="perm",
    read=as_tuple("perm"),
    unknown=_infer_unknown_order,
    numpy_kernel=lambda x, perm: np.transpose(x, perm),
    accepts=("", "x"),
    cases=lambda: [
        Case((_SAMPLE,), {"perm": None}),
        Case((_SAMPLE[None],), {"perm": (2, 0, 1)}),
        Case((_SAMPLE, np.array([1, 0], np.int32)), {"perm": input_attr(1)}),
    ],
)


def transpose(a: Any, perm: Any = None, name: str | None = None, conjugate: bool = False) -> Tensor:
    """Permutes the dimensions of `a`; reverses them by default.

    Args:
        a: a tensor.
        perm: the order, ints or a tensor; if computed, each new value is a compilation.
        conjugate: whether to conjugate complex numbers as well.
    """
    if conjugate and (given := convert_to_tensor(a)).dtype.is_complex:
        a = make("Conj", {"x": given})
    inputs: dict[str, Any] = {"x": a}
    order: Any = None
    unknown = unknown_numbers(perm, "transpose")
    if unknown is not None:
        inputs["perm"], order = unknown, input_attr(1)
    elif perm is not None:
        found = ints_of(perm, "transpose")
        if found.ndim > 1:
            raise value_error(
                f"transpose: Shape must be rank 1 but is rank {found.ndim}: the order"
            )
        # As in NumPy, negative axes count from the end.
        order = tuple(at % found.size if -found.size <= at < 0 else at for at in found.flat)
    return make("Transpose", inputs, {"perm": order}, name or "transpose")


register(
    "PlaceholderWithDefault",
    lambda x, shape: x,
    infer=lambda inputs, attrs: [Spec(inputs[0].dtype, attrs["shape"])],
    numpy_kernel=lambda x, shape: x,
    cases=lambda: [Case((_SAMPLE,), {"shape": UNKNOWN})],
    pure=False,
)


def placeholder_with_default(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """A placeholder whose value is `input` unless another is fed.

    Raises:
        ValueError: `input` does not have this shape.
    """
    made = make("PlaceholderWithDefault", {"input": input}, {"shape": as_shape(shape)}, name)
    made.op.inputs[0].shape.assert_is_compatible_with(made.shape)
    return made


register(
    "StopGradient",
    lambda x: x,
    infer=same_as_input(),
    gradient=None,
    numpy_kernel=lambda x: x,
    cases=lambda: [Case((_SAMPLE,))],
)


def stop_gradient(input: Any, name: str | None = None) -> Tensor:
    """Returns the value of `input`, as a constant for gradients."""
    return make("StopGradient", {"input": input}, name=name)
