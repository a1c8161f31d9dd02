"""Checks and adaptations of shapes: `match_rank`, `broadcastable`, `ensure_leading`.

Static shapes are checked at graph construction. The rest is checked by the kernels, which see
actual shapes when XLA compiles them or when they run on the host, so the checks cost nothing per
step and leave no trace in the executable.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np

from estimatorkit.core.conversion import make
from estimatorkit.core.errors import InvalidArgumentError, explain, value_error
from estimatorkit.core.registry import Case, Spec, register
from estimatorkit.core.shapes import UNKNOWN, TensorShape, as_shape
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array import array
from estimatorkit.ops.math.broadcasting import broadcast_shapes

_Dims = Sequence[int | None] | None
_COLUMN = np.arange(3, dtype=np.float32)[:, None]

Adjust = Literal["squeeze", "expand", "either", "column"]


# -- computed shapes


def _broadcast_args(x: Any, y: Any) -> Any:
    length = max(len(x), len(y))
    one, other = (np.concatenate([np.ones(length - len(z), x.dtype), z]) for z in (x, y))
    if ((one != other) & (one != 1) & (other != 1)).any():
        raise InvalidArgumentError(
            None,
            None,
            f"Incompatible shapes for broadcasting: {list(map(int, x))} and {list(map(int, y))}",
        )
    return np.where(one == 1, other, one)


def _infer_broadcast_args(inputs: Any, attrs: Any) -> list[Spec]:
    for tensor in inputs:
        if tensor.shape.rank not in (1, None):
            raise value_error(
                "Shape must be rank 1: a shape is a vector of integers", received=tensor
            )
    lengths = [None if each.shape.dims is None else each.shape.dims[0] for each in inputs]
    known = None if None in lengths else max(each or 0 for each in lengths)
    return [Spec(inputs[0].dtype, TensorShape([known]))]


register(
    "BroadcastArgs",
    _broadcast_args,
    infer=_infer_broadcast_args,
    gradient=None,
    numpy_kernel=_broadcast_args,
    static=(0, 1),
    accepts=("i", "i"),
    cases=lambda: [
        Case((np.array([2, 1], np.int32), np.array([4, 1, 3], np.int32)), {}, np.array([4, 2, 3]))
    ],
)


def broadcast_static_shape(shape_x: Any, shape_y: Any) -> TensorShape:
    """The broadcast of two static shapes.

    Raises:
        ValueError: they are incompatible.
    """

    def refusal(a: int, b: int) -> Exception:
        return value_error(
            f"Incompatible shapes for broadcasting: {shape_x} and {shape_y}",
            expected="equal dimensions, or 1",
            received=f"{a} and {b}",
        )

    return broadcast_shapes(as_shape(shape_x), as_shape(shape_y), refusal)


def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> Tensor:
    """The broadcast of two shape tensors.

    Args:
        shape_x, shape_y: vectors of int32 or int64, of one dtype.

    Raises:
        ValueError: one is known not to be a vector.
        InvalidArgumentError: at run time, the shapes are incompatible.
    """
    return make("BroadcastArgs", {"s0": shape_x, "s1": shape_y}, same_dtype=True)


# -- ranks that differ by one


def _adjusted(values: _Dims, reference: _Dims, difference: int, adjust: Adjust) -> int | None:
    """1 to add a last dimension, -1 to remove it, 0 for neither, None if that is not static."""
    if values is None or reference is None:
        return None
    surplus = len(values) - len(reference) - difference
    if surplus == 1 and values and adjust in ("squeeze", "either"):
        return -1 if values[-1] in (1, None) else 0
    if surplus == -1 and reference and adjust == "column":
        return None if reference[-1] is None else int(reference[-1] == 1)
    return int(surplus == -1 and adjust in ("expand", "either"))


def _match_rank(values: Any, reference: Any, difference: int, adjust: Adjust, module: Any) -> Any:
    change = _adjusted(values.shape, reference.shape, difference, adjust)
    if not change:
        return values
    return module.squeeze(values, -1) if change < 0 else values[..., None]


def _infer_match_rank(inputs: Any, attrs: Any) -> list[Spec]:
    dims = inputs[0].shape.dims
    change = _adjusted(dims, inputs[1].shape.dims, **attrs)
    if change is None:
        return [Spec(inputs[0].dtype, UNKNOWN)]
    shape = (dims, (*dims, 1), dims[:-1])[change]
    return [Spec(inputs[0].dtype, TensorShape(shape))]


register(
    "MatchRank",
    functools.partial(_match_rank, module=jnp),
    infer=_infer_match_rank,
    gradient=lambda op, gradient: [array.reshape(gradient, array.shape(op.inputs[0])), None],
    numpy_kernel=functools.partial(_match_rank, module=np),
    cases=lambda: [
        Case((_COLUMN, _COLUMN[:, 0]), {"difference": 0, "adjust": "squeeze"}, _COLUMN[:, 0]),
        Case((_COLUMN[:, 0], _COLUMN), {"difference": 0, "adjust": "either"}, _COLUMN),
        Case((_COLUMN[:, 0], _COLUMN), {"difference": 0, "adjust": "column"}, _COLUMN),
        Case((_COLUMN, _COLUMN), {"difference": -1, "adjust": "squeeze"}, _COLUMN[:, 0]),
    ],
)


def match_rank(
    values: Tensor, reference: Tensor, difference: int = 0, adjust: Adjust = "squeeze"
) -> Tensor:
    """Removes or adds a last dimension of length 1 to match the rank of `reference`.

    `difference` is the desired rank of `values` minus that of `reference`. `adjust` 'squeeze'
    allows removing a dimension, 'expand' adding one, 'either' both; 'column' adds one if the last
    dimension of `reference` is 1. Returns `values` unchanged if ranks differ otherwise.

    Raises:
        InvalidArgumentError: at run time, the dimension to remove is not of length 1.
    """
    change = _adjusted(values.shape.dims, reference.shape.dims, difference, adjust)
    if change is None:
        attrs = {"difference": difference, "adjust": adjust}
        return make("MatchRank", {"values": values, "reference": reference}, attrs)
    if change < 0:
        return array.squeeze(values, [-1])
    return array.expand_dims(values, -1) if change else values


# -- weights


def _not_broadcastable(weights: _Dims, values: _Dims) -> bool:
    """Whether weights are statically neither a scalar nor of the rank of `values`, with equal sizes
    or 1 in each dimension.
    """
    if weights is None or values is None or not weights:
        return False
    return len(weights) != len(values) or any(
        one not in (1, None, other) and other is not None
        for one, other in zip(weights, values, strict=True)
    )


def _broadcastable_words(weights: Any, values: Any, **more: Any) -> str:
    dims = [TensorShape(shape) for shape in (weights, values)]
    return explain(
        f"weights can not be broadcast to values. values.rank={dims[1].rank}. "
        f"weights.rank={dims[0].rank}. values.shape={dims[1]}. weights.shape={dims[0]}",
        expected=f"a scalar, or shape {dims[1]} with any dimension replaced by 1",
        **more,
        hint="pass one weight per example, with as many dimensions as the values have",
    )


def _broadcastable(weights: Any, values: Any) -> Any:
    if _not_broadcastable(weights.shape, values.shape):
        raise InvalidArgumentError(None, None, _broadcastable_words(weights.shape, values.shape))
    return weights


register(
    "Broadcastable",
    _broadcastable,
    infer=lambda inputs, attrs: [Spec(inputs[0].dtype, inputs[0].shape)],
    gradient=lambda op, gradient: [gradient, None],
    numpy_kernel=_broadcastable,
    cases=lambda: [Case((_COLUMN, np.ones((3, 2), np.float32)), {}, _COLUMN)],
)


def broadcastable(weights: Tensor, values: Tensor) -> Tensor:
    """Returns `weights`, which must be a scalar, or in each dimension have size 1 or that of
    `values`.

    Other broadcasts are rejected (like TensorFlow's `assert_broadcastable` for losses and metrics),
    lest weights of three examples be applied to three columns.

    Raises:
        ValueError: the static shapes are incompatible.
        InvalidArgumentError: at run time, the shapes are incompatible.
    """
    given, wanted = weights.shape, values.shape
    if _not_broadcastable(given.dims, wanted.dims):
        received, source = f"{weights.name} {given}", weights.op.source
        raise ValueError(_broadcastable_words(given, wanted, received=received, made_at=source))
    if given.rank == 0 or (
        given.dims is not None
        and wanted.dims is not None
        and all(
            one == 1 or (one is not None and one == other)
            for one, other in zip(given, wanted, strict=True)
        )
    ):
        return weights
    return make("Broadcastable", {"weights": weights, "values": values})


# -- the leading dimensions of another tensor


_MAY_LACK = ("labels", "weights")
"""Kinds of values that may lack a last dimension of 1."""


def _with_leading(
    values: TensorShape, reference: TensorShape, last: Sequence[int], of: str
) -> TensorShape:
    """The shape of `values`, with the last dimension of 1 that labels and weights may lack."""
    lacks = _lacks_last(values.rank, reference.rank, last, of)
    return values.concatenate([1]) if lacks else values


def _lacks_last(rank: int | None, reference: int | None, last: Sequence[int], of: str) -> bool:
    if rank is None or reference is None or 1 not in last or of not in _MAY_LACK:
        return False
    return rank == reference - 1


def _ensure_leading(values: Any, reference: Any, last: Sequence[int], what: str, of: str) -> Any:
    shape = tuple(values.shape)
    if _lacks_last(len(shape), len(reference.shape), last, of):
        shape = (*shape, 1)
    if shape not in [(*reference.shape[:-1], each) for each in last]:
        wanted = [TensorShape([*reference.shape[:-1], each]) for each in last]
        shown = [wanted[0], TensorShape(values.shape), TensorShape(reference.shape)]
        expected, received, compared = ("[" + " ".join(map(str, each)) + "]" for each in shown)
        first = f"[expected_{of}_shape: ] {expected}"
        if len(last) > 1 or of != "labels":
            first = f"[logits_shape: ] {compared}"
        elif len(values.shape) < 2:
            first = f"[Received shape: ] {received} {first}"
        raise InvalidArgumentError.explained(
            f"[{what}. ] {first} [{of}_shape: ] {received}",
            expected=f"{of} of shape " + " or ".join(map(str, wanted)),
            received=shown[1],
        )
    return values.reshape(shape)


def _infer_leading(inputs: Any, attrs: Any) -> list[Spec]:
    values, last = inputs[0], attrs["last"]
    given = _with_leading(values.shape, inputs[1].shape, last, attrs["of"])
    if inputs[1].shape.rank is None and attrs["of"] in _MAY_LACK:
        return [Spec(values.dtype, UNKNOWN)]
    wanted = inputs[1].shape[:-1].concatenate([last[0] if len(last) == 1 else None])
    fits = given.is_compatible_with(wanted)
    return [Spec(values.dtype, given.merge_with(wanted) if fits else given)]


_LEADING: dict[str, Any] = {"last": (1,), "what": "", "of": "labels"}

register(
    "EnsureLeading",
    _ensure_leading,
    infer=_infer_leading,
    gradient=lambda op, gradient: [array.reshape(gradient, array.shape(op.inputs[0])), None],
    numpy_kernel=_ensure_leading,
    cases=lambda: [
        Case((_COLUMN, np.ones((3, 2), np.float32)), _LEADING, _COLUMN),
        Case((_COLUMN[:, 0], np.ones((3, 2), np.float32)), _LEADING, _COLUMN),
    ],
)


def ensure_leading(
    values: Tensor, reference: Tensor, last: Sequence[int], what: str, of: str
) -> Tensor:
    """Checks that `values` have the shape of the logits in all but the last dimension.

    Args:
        values: a tensor; labels and weights may lack a last dimension of 1.
        reference: the logits, `(D0, ..., DN, n)`.
        last: the sizes that the last dimension may have.
        what: the beginning of the error, without a full stop.
        of: the kind of values: 'labels', 'weights', 'loss' or 'logits'.

    Returns:
        The tensor, `(D0, ..., DN, one of last)`.

    Raises:
        InvalidArgumentError: at run time, it has another shape.
    """
    attrs = {"last": tuple(last), "what": what, "of": of}
    given = _with_leading(values.shape, reference.shape, last, of)
    leading = reference.shape[:-1]
    if leading.is_fully_defined() and any(given == leading.concatenate([each]) for each in last):
        return values if given == values.shape else array.expand_dims(values, -1)
    return make("EnsureLeading", {"values": values, "reference": reference}, attrs)


__all__ = ["broadcast_dynamic_shape", "broadcastable", "check_dims", "ensure_leading", "match_rank"]


# -- dimensions


def check_dims(tensor: Tensor, dims: Sequence[int | None], what: str) -> None:
    """Raises ValueError if the static shape of `tensor` does not match `dims` (None for any size).

    `what` names the tensor in the error.
    """
    given = tensor.shape.dims
    if given is None:
        return
    problem = None
    if len(given) != len(dims):
        problem = f"Shape must be rank {len(dims)} but is rank {len(given)}"
    else:
        pairs = [each for each in zip(dims, given, strict=True) if None not in each]
        wrong = [(wanted, got) for wanted, got in pairs if wanted != got]
        if wrong:
            problem = "Dimension must be {} but is {}".format(*wrong[0])
    if problem:
        problem = f"{problem}: {what}"
        raise value_error(problem, received=tensor, made_at=tensor.op.source)
