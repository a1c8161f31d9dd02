"""Gradient accumulators: `ConditionalAccumulator`, `SparseConditionalAccumulator`.

Workers apply gradients; a chief takes their mean when there are enough. Each gradient carries the
step at which it was computed; it is stale, and dropped, if that precedes the accumulator's step.
The gradients live in the session (`_HostAccumulator`), under the handle's name or `shared_name`.
Source: Chen et al. 2016, "Revisiting Distributed Synchronous SGD"; `tf.ConditionalAccumulator`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import DType, as_dtype, int32, int64
from estimatorkit.core.errors import InvalidArgumentError, value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.indexed_slices import IndexedSlices
from estimatorkit.core.registry import Spec, apply, fixed, no_outputs, register, register_handle
from estimatorkit.core.shapes import TensorShape, as_shape
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.ops.math.elementwise import cast
from estimatorkit.ops.queues.queue_resource import Blocking


class _HostAccumulator(Blocking):
    """Sums of the gradients applied since the last `take`: by row, or the whole as row 0."""

    def __init__(self, shape: TensorShape, mean: bool) -> None:
        super().__init__()
        self._shape = shape
        self._mean = mean
        self._step = 0
        self._applied = 0
        self._sums: dict[int, NDArray[Any]] = {}
        self._counts: dict[int, int] = {}

    def apply(self, step: int, rows: Mapping[int, NDArray[Any]]) -> None:
        """Adds a gradient, unless it is stale.

        Raises InvalidArgumentError if its rows have another shape than those applied before.
        """
        with self._changed:
            if step < self._step:
                return
            known = {value.shape for value in self._sums.values()}
            for value in rows.values():
                if known and value.shape not in known:
                    raise _mismatch(f"expected {_text(known.pop())}, got {_text(value.shape)}")
            for row, value in rows.items():
                before = self._sums.get(row)
                self._sums[row] = value.copy() if before is None else before + value
                self._counts[row] = self._counts.get(row, 0) + 1
            self._applied += 1
            self._changed.notify_all()

    def take(self, required: int, context: Any) -> dict[int, NDArray[Any]]:
        """Waits for `required` gradients, returns the mean (or sum) of all, and advances the step.

        Raises InvalidArgumentError if `required` is not positive, CancelledError if cancelled.
        """
        if required < 1:
            raise InvalidArgumentError(
                None, None, f"Argument num_required must be positive, not {required}"
            )
        with self._changed:
            self._wait_until(
                lambda: self._applied >= required, context, "TakeGrad operation was cancelled"
            )
            taken = {
                row: (total / total.dtype.type(self._counts[row])).astype(total.dtype)
                if self._mean
                else total
                for row, total in self._sums.items()
            }
            self._sums, self._counts, self._applied = {}, {}, 0
            self._step += 1
            return taken

    def check_dense(self, gradient: NDArray[Any]) -> None:
        """Raises InvalidArgumentError if a gradient does not have the accumulator's shape."""
        if not self._shape.is_compatible_with(gradient.shape):
            raise _mismatch(f"expected {_text(self._shape.as_list())}, got {_text(gradient.shape)}")

    def check_sparse(
        self, indices: NDArray[Any], values: NDArray[Any], shape: tuple[int, ...] | None
    ) -> None:
        """Raises InvalidArgumentError if rows do not match each other or the accumulator."""
        if indices.ndim != 1:
            fault = f"Input indices should be vector but received shape: {_text(indices.shape)}"
            raise InvalidArgumentError(None, None, fault)
        if values.ndim == 0:
            raise InvalidArgumentError(None, None, "Values cannot be 0-dimensional.")
        if len(indices) != len(values):
            fault = f"Expected {len(indices)} non-empty input values, got {len(values)}"
            raise InvalidArgumentError(None, None, fault)
        known = self._shape.as_list() if self._shape.rank else []
        if shape is not None:
            _check_dims("shape", shape, known, 0)
        _check_dims("values", values.shape, known, 1)
        for applied in [*self._sums.values()][:1]:
            _check_dims("values", values.shape, [None, *applied.shape], 1)
        for place in np.flatnonzero(indices >= (known[0] or np.inf) if known else [])[:1]:
            raise _mismatch(
                f"index of slice {place} exceeded limits of shape; "
                f"index is {indices[place]} exceeded {known[0]}"
            )

    def whole_shape(self, rows: NDArray[Any]) -> list[int]:
        """The dense shape of sparse gradients; dimensions that the accumulator's shape does not
        give are -1 (the first) or those of the rows.
        """
        seen = [-1, *rows.shape[1:]]
        known = self._shape.as_list() if self._shape.rank else seen
        return [dim if size is None else int(size) for size, dim in zip(known, seen, strict=False)]

    def set_step(self, step: int) -> None:
        """Sets the step; earlier gradients are then stale."""
        with self._changed:
            self._step = step

    def applied(self) -> int:
        """The number of gradients applied since the last `take`."""
        with self._changed:
            return self._applied


def _mismatch(what: str) -> InvalidArgumentError:
    return InvalidArgumentError(None, None, f"Shape mismatch: {what}")


def _check_dims(
    what: str, given: Sequence[int], known: Sequence[int | None], first_axis: int
) -> None:
    if len(given) < len(known):
        raise _mismatch(f"expected {what} rank at least {len(known)}, got {len(given)}")
    for axis in range(first_axis, len(known)):
        if known[axis] not in (None, given[axis]):
            raise _mismatch(f"expected {what} dim {axis} to be {known[axis]}, got {given[axis]}")


def _text(shape: Sequence[int | None]) -> str:
    return f"[{','.join('?' if dim is None else str(dim) for dim in shape)}]"


def _held(context: Any, name: str) -> _HostAccumulator:
    attrs = context.graph.get_operation_by_name(name).attrs
    held: _HostAccumulator = context.resource(
        attrs["shared_name"] or name, lambda: _HostAccumulator(attrs["shape"], attrs["mean"])
    )
    return held


def _apply(step: Any, gradient: Any, *, accumulator: str, context: Any) -> list[Any]:
    held = _held(context, accumulator)
    held.check_dense(np.asarray(gradient))
    held.apply(int(step), {0: np.array(gradient)})
    return []


def _take(required: Any, *, accumulator: str, spec: Spec, context: Any) -> Any:
    return _held(context, accumulator).take(int(required), context)[0]


def _apply_rows(
    step: Any, indices: Any, values: Any, *shape: Any, accumulator: str, context: Any
) -> list[Any]:
    held = _held(context, accumulator)
    given = tuple(np.ravel(shape[0]).tolist()) if shape else None
    held.check_sparse(np.asarray(indices), np.asarray(values), given)
    rows: dict[int, NDArray[Any]] = {}
    for row, value in zip(np.asarray(indices).tolist(), np.array(values), strict=True):
        rows[row] = rows[row] + value if row in rows else value
    held.apply(int(step), rows)
    return []


def _take_rows(required: Any, *, accumulator: str, spec: Spec, context: Any) -> list[Any]:
    held = _held(context, accumulator)
    taken = held.take(int(required), context)
    indices = sorted(taken)
    row = [dim or 0 for dim in spec.shape.as_list()[1:]] if spec.shape.rank else []
    empty = np.empty([0, *row], spec.dtype.numpy_dtype)
    values = np.stack([taken[each] for each in indices]) if indices else empty
    return [
        np.asarray(indices, np.int64),
        values,
        np.asarray(held.whole_shape(values), np.int64),
    ]


def _set_step(step: Any, *, accumulator: str, context: Any) -> list[Any]:
    _held(context, accumulator).set_step(int(step))
    return []


def _applied(*, accumulator: str, context: Any) -> Any:
    return np.asarray(_held(context, accumulator).applied(), np.int32)


def _infer_rows(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    spec: Spec = attrs["spec"]
    rank = spec.shape.rank
    return [Spec(int64, TensorShape([None])), spec, Spec(int64, TensorShape([rank]))]


for _type in ("ConditionalAccumulator", "SparseConditionalAccumulator"):
    register_handle(_type, "an accumulator")
for _type, _kernel, _infer in (
    ("AccumulatorApplyGradient", _apply, no_outputs),
    ("AccumulatorTakeGradient", _take, lambda inputs, attrs: [attrs["spec"]]),
    ("SparseAccumulatorApplyGradient", _apply_rows, no_outputs),
    ("SparseAccumulatorTakeGradient", _take_rows, _infer_rows),
    ("AccumulatorSetGlobalStep", _set_step, no_outputs),
    ("AccumulatorNumAccumulated", _applied, fixed(int32)),
):
    register(
        _type,
        _kernel,
        infer=_infer,
        gradient=None,
        where="host",
        context=True,
        pure=False,
        holder="accumulator",
    )


class _Accumulator:
    """Base class of the accumulators."""

    def __init__(
        self,
        kind: str,
        dtype: Any,
        shape: Any,
        shared_name: str | None,
        name: str,
        reduction_type: str,
    ) -> None:
        if reduction_type not in ("MEAN", "SUM"):
            raise value_error(
                f"{kind}: invalid reduction_type",
                expected="'MEAN' or 'SUM'",
                received=repr(reduction_type),
            )
        self.dtype: DType = as_dtype(dtype)
        if self.dtype.numpy_dtype.kind in "OSUb":
            raise TypeError(
                f"Value passed to parameter 'dtype' has DataType {self.dtype.name} not in list of "
                "allowed values: numeric dtypes"
            )
        self._shape = as_shape(shape)
        attrs = {
            "shape": self._shape,
            "shared_name": shared_name or "",
            "mean": reduction_type == "MEAN",
        }
        with get_default_graph().init_scope():
            self._handle = apply(kind, (), attrs, name)

    @property
    def accumulator_ref(self) -> Operation:
        """The handle, an operation."""
        return self._handle

    @property
    def name(self) -> str:
        """The name, without scopes."""
        return self._handle.name.rsplit("/", 1)[-1]

    def num_accumulated(self, name: str | None = None) -> Tensor:
        """The number of gradients accumulated since the last `take_grad`, an int32."""
        return self._op("AccumulatorNumAccumulated", [], name or f"{self.name}_NumAccumulated")[0]

    def set_global_step(self, new_global_step: Any, name: str | None = None) -> Operation:
        """An operation that makes gradients from before `new_global_step` stale."""
        step = _as_int64(new_global_step, "new_global_step")
        attrs = {"accumulator": self._handle.name}
        return apply("AccumulatorSetGlobalStep", [step], attrs, name)

    def _op(
        self, op_type: str, inputs: Sequence[Tensor], name: str | None, **attrs: Any
    ) -> tuple[Tensor, ...]:
        return apply(op_type, inputs, {"accumulator": self._handle.name, **attrs}, name).outputs


def _as_int64(value: Any, name: str) -> Tensor:
    return cast(convert_to_tensor(value, name=name), int64)


class ConditionalAccumulator(_Accumulator):
    """Accumulates dense gradients that are not stale.

    Args:
        dtype: the dtype of the gradients.
        shape: the shape of the gradients; None for any.
        shared_name: the name under which accumulators of a session share content.
        reduction_type: 'MEAN' or 'SUM'.

    Raises:
        ValueError: `reduction_type` is invalid.
    """

    def __init__(
        self,
        dtype: Any,
        shape: Any = None,
        shared_name: str | None = None,
        name: str = "conditional_accumulator",
        reduction_type: str = "MEAN",
    ) -> None:
        super().__init__("ConditionalAccumulator", dtype, shape, shared_name, name, reduction_type)

    def apply_grad(self, grad: Any, local_step: Any = 0, name: str | None = None) -> Operation:
        """An operation that accumulates a gradient, or drops it if it is stale.

        Args:
            grad: the gradient.
            local_step: the step at which it was computed.

        Raises:
            ValueError: the gradient has another shape or dtype.
        """
        gradient = convert_to_tensor(grad, self.dtype, "gradient")
        gradient.shape.assert_is_compatible_with(self._shape)
        inputs = [_as_int64(local_step, "local_step"), gradient]
        attrs = {"accumulator": self._handle.name}
        return apply("AccumulatorApplyGradient", inputs, attrs, name)

    def take_grad(self, num_required: Any, name: str | None = None) -> Tensor:
        """Waits for `num_required` gradients, returns the mean of all, and advances the step.

        Args:
            num_required: an int or an int32 scalar, at least 1.
        """
        required = convert_to_tensor(num_required, int32, "num_required")
        spec = Spec(self.dtype, self._shape)
        return self._op("AccumulatorTakeGradient", [required], name, spec=spec)[0]


class SparseAccumulatorTakeGradient(NamedTuple):
    """The result of `SparseConditionalAccumulator.take_grad`."""

    indices: Tensor
    values: Tensor
    shape: Tensor


class SparseConditionalAccumulator(_Accumulator):
    """Accumulates sparse gradients (`IndexedSlices`) that are not stale.

    The mean of a row is over the gradients that contain the row.

    Args:
        dtype, shared_name, reduction_type: see `ConditionalAccumulator`.
        shape: the dense shape; None, or that of a scalar, for any.
    """

    def __init__(
        self,
        dtype: Any,
        shape: Any = None,
        shared_name: str | None = None,
        name: str = "sparse_conditional_accumulator",
        reduction_type: str = "MEAN",
    ) -> None:
        dense = as_shape(shape) if as_shape(shape).rank else None
        super().__init__(
            "SparseConditionalAccumulator", dtype, dense, shared_name, name, reduction_type
        )

    def apply_grad(
        self,
        grad_indices: Any,
        grad_values: Any,
        grad_shape: Any = None,
        local_step: Any = 0,
        name: str | None = None,
    ) -> Operation:
        """An operation that accumulates a gradient, or drops it if it is stale.

        Args:
            grad_indices: the rows, integers `(n,)`.
            grad_values: their gradients, `(n, ...)`.
            grad_shape: the dense shape, or None.
            local_step: the step at which it was computed.

        Raises:
            ValueError: the values have another dtype. In the run InvalidArgumentError: indices,
                values or the shape do not fit each other, the accumulator's shape, or the
                gradients before.
        """
        values = convert_to_tensor(grad_values, self.dtype, "gradient_values")
        inputs = [_as_int64(local_step, "local_step"), _as_int64(grad_indices, "indices"), values]
        if grad_shape is not None:
            inputs.append(_as_int64(grad_shape, "gradient_shape"))
        attrs = {"accumulator": self._handle.name}
        return apply("SparseAccumulatorApplyGradient", inputs, attrs, name)

    def apply_indexed_slices_grad(
        self, grad: IndexedSlices, local_step: Any = 0, name: str | None = None
    ) -> Operation:
        """`apply_grad` of `IndexedSlices`."""
        return self.apply_grad(grad.indices, grad.values, grad.dense_shape, local_step, name)

    def take_grad(
        self, num_required: Any, name: str | None = None
    ) -> SparseAccumulatorTakeGradient:
        """Like `ConditionalAccumulator.take_grad`; returns sorted indices, values and the shape."""
        required = convert_to_tensor(num_required, int32, "num_required")
        rest = self._shape[1:] if self._shape.rank else TensorShape(None)
        spec = Spec(self.dtype, TensorShape([None]).concatenate(rest))
        found = self._op("SparseAccumulatorTakeGradient", [required], name, spec=spec)
        return SparseAccumulatorTakeGradient(*found)

    def take_indexed_slices_grad(self, num_required: Any, name: str | None = None) -> IndexedSlices:
        """The mean as `IndexedSlices`; see `take_grad`."""
        indices, values, shape = self.take_grad(num_required, name)
        return IndexedSlices(values, indices, shape)
