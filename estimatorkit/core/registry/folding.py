"""Constant folding: values that are known before the graph runs, computed by NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, cast

import numpy as np

from estimatorkit.core import faults
from estimatorkit.core.dtypes import as_dtype
from estimatorkit.core.registry.op_def import Attrs, OpDef, Role
from estimatorkit.core.registry.table import lookup
from estimatorkit.core.shapes import SCALAR, UNKNOWN, TensorShape
from estimatorkit.core.sizes import decides, is_size, is_symbolic, refusing
from estimatorkit.core.tensor import Operation, Tensor

_FOLD_LIMIT = 4096
"""The most elements of a folded constant: folding is for shapes, sizes and axes."""


def too_large_to_fold(op: Operation) -> bool:
    """Whether an input or output has more elements than `fold` computes."""
    return any(
        (tensor.shape.num_elements() or 0) > _FOLD_LIMIT for tensor in (*op.inputs, *op.outputs)
    )


def fold(
    row: OpDef, inputs: Sequence[Any], attrs: Attrs, outputs: Sequence[Tensor]
) -> list[Any] | None:
    """Constant folding: the op's outputs if computable without XLA, else None.

    Args:
        row: the op's row.
        inputs: NumPy arrays if known, otherwise anything with a `shape`.
        attrs: the op's attributes.
        outputs: the operation's tensors; large ones are not folded.
    """
    if not row.foldable:
        return None
    if not row.semantics.known_from_shape and not all(map(_is_foldable, inputs)):
        return None
    if any((tensor.shape.num_elements() or 0) > _FOLD_LIMIT for tensor in outputs):
        return None
    sizes = any(map(is_symbolic, inputs))
    if sizes and not all(_is_known_of_sizes(tensor, inputs) for tensor in outputs):
        return None
    try:
        if row.fault is not None and faults.first_fault(row.fault(inputs, attrs)) is not None:
            return None  # it raises when it runs
        with refusing() if sizes else nullcontext():
            results = in_numpy(row, inputs, attrs, outputs)
    except _refusals(sizes):  # XLA has a value for it, or reports the error with the operation
        return None
    test = row.result_fault
    is_faulty = test is not None and faults.first_fault(test(inputs, results, attrs)) is not None
    return None if is_faulty else results


def _is_known_of_sizes(tensor: Tensor, inputs: Sequence[Any]) -> bool:
    """Whether an output is known if inputs contain sizes: integers are sizes again, and bools if
    the sizes can tell (JAX's say that they differ if they may be equal).
    """
    return tensor.dtype.is_integer or (
        tensor.dtype.is_bool and not any(is_symbolic(each) and not decides(each) for each in inputs)
    )


def _refusals(sizes: bool) -> tuple[type[Exception], ...]:
    if not sizes:
        return NUMPY_REFUSES
    import jax

    return (*NUMPY_REFUSES, jax.errors.InconclusiveDimensionOperation)


_NARROW = (as_dtype("float16").numpy_dtype, as_dtype("bfloat16").numpy_dtype)


def _is_foldable(value: Any) -> bool:
    """Whether NumPy gives the same as XLA for a value: they differ in what NaN and infinities do,
    in convolutions, special functions, sorting and casts.
    """
    if not isinstance(value, np.ndarray) or value.size > _FOLD_LIMIT:
        return False
    numbers = value.dtype.kind in "fc" or value.dtype in _NARROW
    return not numbers or bool(np.isfinite(value).all())


NUMPY_REFUSES = (TypeError, ValueError, IndexError, ArithmeticError, np.linalg.LinAlgError)
"""What NumPy kernels raise on values that they cannot take: singular matrices, reductions of
nothing, Python integers beyond the dtype."""


def in_numpy(
    row: OpDef,
    inputs: Sequence[Any],
    attrs: Attrs,
    outputs: Sequence[Tensor],
    **extra: Any,
) -> list[Any]:
    """The results of a row's `numpy_kernel`: new values of variables, then the outputs as arrays.

    Like XLA, it computes with 16-bit floats in float32: in their own precision a sum of 4,096
    bfloat16 ones would stop at 256.

    Args:
        row: the row, which has one.
        inputs: the values.
        attrs: the attributes.
        outputs: the operation's tensors.
        extra: `key`, for kernels that draw.
    """
    kernel = cast(Callable[..., Any], row.numpy_kernel)
    if not (row.semantics.moves or row.semantics.updates):
        inputs = [
            value.astype(np.float32) if getattr(value, "dtype", None) in _NARROW else value
            for value in inputs
        ]
    tensors = [*outputs, *(each for output in outputs[:1] for each in output.op.inputs)]
    floats = any(tensor.dtype.is_differentiable for tensor in tensors)
    # Integers divided by 0 have no value: NumPy's would be another one than XLA's.
    with quiet() if floats else np.errstate(all="ignore", divide="raise", invalid="raise"):
        return as_declared(kernel(*inputs, **attrs, **extra), outputs)


def quiet() -> np.errstate:
    """A context manager in which NumPy does not warn: NaN and infinities are values."""
    return np.errstate(all="ignore")


def as_declared(result: Any, outputs: Sequence[Tensor]) -> list[Any]:
    """The result of a NumPy kernel as a list, outputs as arrays of their dtypes.

    A string would otherwise be `bytes`, which cannot be indexed like a scalar. Objects stay as they
    are, and so do new values of variables, which come first.
    """
    results = list(result) if isinstance(result, (tuple, list)) else [result]
    updated = len(results) - len(outputs)
    return results[:updated] + [
        value if tensor.dtype.name in ("variant", "resource") else _as_declared(value, tensor)
        for value, tensor in zip(results[updated:], outputs, strict=True)
    ]


def _as_declared(value: Any, tensor: Tensor) -> Any:
    if tensor.dtype.is_integer:
        array = np.asarray(value, object) if is_size(value) else value
        if is_symbolic(array):
            return array
    return np.asarray(value, tensor.dtype.numpy_dtype)


def constant_value(tensor: Tensor) -> Any | None:
    """The value of `tensor` if it follows from constants and static shapes, else None.

    That of a variable is None. Anything else is returned as is. For shape inference and checks; a
    run that is fed another value must not depend on it (see `fixed_value`).
    """
    if not isinstance(tensor, Tensor):
        return None if hasattr(tensor, "_as_tensor") else tensor
    return _constant_value(tensor)


def fixed_value(tensor: Tensor) -> Any | None:
    """`constant_value` for what becomes part of the graph: attributes, a number of operations, the
    choice of a branch. The tensors that it follows from cannot be fed any more, as in TensorFlow.
    """
    value = constant_value(tensor)
    pending = [tensor] if value is not None and isinstance(tensor, Tensor) else []
    while pending:
        each = pending.pop()
        each.graph.prevent_feeding(each)
        if each in each.graph.known_inputs:
            pending.append(each.graph.known_inputs[each])
        elif not lookup(each.op.type).semantics.known_from_shape:
            pending.extend(each.op.inputs)
    return value


def _constant_value(tensor: Tensor) -> Any | None:
    row = lookup(tensor.op.type)
    if row.semantics.role is Role.CONSTANT:
        value: Any = tensor.op.attrs["value"]
        return value
    if row.semantics.role is Role.PLACEHOLDER and tensor in tensor.graph.known_inputs:
        return _constant_value(tensor.graph.known_inputs[tensor])
    if not row.foldable:
        return None
    inputs: list[Any]
    if row.semantics.known_from_shape:
        found = [_shape_enough_for(row, source.shape) for source in tensor.op.inputs]
        shapes = [shape for shape in found if shape is not None]
        if len(shapes) < len(found):
            return None
        inputs = [np.broadcast_to(np.zeros((), np.int8), shape) for shape in shapes]
    else:
        inputs = []
        for source in tensor.op.inputs:
            value = _constant_value(source)
            if value is None:
                return None
            inputs.append(value)
    result = fold(row, inputs, tensor.op.kernel_attrs, tensor.op.outputs)
    return None if result is None else result[tensor.value_index]


def _shape_enough_for(row: OpDef, shape: TensorShape) -> tuple[int, ...] | None:
    """The input's shape if it determines the value (`Rank` needs no dimensions)."""
    if row.type == "Rank" and shape.dims is not None:
        return tuple(dim or 0 for dim in shape.dims)
    return tuple(shape) if shape.is_fully_defined() else None


def constant_value_as_shape(tensor: Tensor) -> TensorShape:
    """The static shape given by a 1-D integer tensor, in which -1 means unknown.

    Like TensorFlow's function of this name, it looks through `Shape`, `Pack`, `ConcatV2`, slices
    and casts.
    """
    tensor.shape.with_rank_at_most(1)
    value = constant_value(tensor)
    if value is not None:
        return TensorShape(
            None
            if np.ndim(value) == 0 and value == -1
            else [None if dim == -1 else dim for dim in np.atleast_1d(value).tolist()]
        )
    tensor = _uncast(tensor)
    op = tensor.op
    if op.type == "Shape":
        return op.inputs[0].shape
    if op.type == "Pack":
        return TensorShape([_dimension_of(each) for each in op.inputs])
    if op.type == "ConcatV2":
        shape = SCALAR
        for each in op.inputs:
            shape = shape.concatenate(constant_value_as_shape(each))
        return shape
    if op.type == "StridedSlice" and not op.inputs[1:]:
        index = op.attrs["index"][0]
        if isinstance(index, tuple):
            return constant_value_as_shape(op.inputs[0])[slice(*index[1:])]
    length = tensor.shape[0] if tensor.shape.rank == 1 else None
    return UNKNOWN if length is None else TensorShape([None] * length)


def packed(tensor: Tensor) -> Sequence[Tensor] | None:
    """The inputs of the `Pack` that computes a tensor; None if it is not one."""
    return tensor.op.inputs if tensor.op.type == "Pack" else None


def _uncast(tensor: Tensor) -> Tensor:
    """The source of an integer tensor before `Identity` and integer casts."""
    while tensor.op.type in ("Identity", "Cast"):
        before = tensor.op.inputs[0]
        if before.dtype.name not in ("int32", "int64"):
            break
        tensor = before
    return tensor


def _dimension_of(tensor: Tensor) -> int | None:
    value = constant_value(tensor)
    if value is not None:
        return None if value == -1 else int(value)
    op = _uncast(tensor).op
    if op.type == "StridedSlice" and not op.inputs[1:] and op.inputs[0].op.type == "Shape":
        index = op.attrs["index"][0]
        shape = op.inputs[0].op.inputs[0].shape
        if isinstance(index, int) and shape.rank is not None:
            return shape[index]
    return None
