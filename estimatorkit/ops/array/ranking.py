"""The largest values and their indices: `top_k`, `in_top_k`, `nth_element`."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from estimatorkit.core import registry
from estimatorkit.core.conversion import convert_to_tensor, make, whole_numbers
from estimatorkit.core.dtypes import bool_, int32
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import Case, Spec, constant_value, fixed_value, register
from estimatorkit.core.shapes import UNKNOWN, TensorShape, differ
from estimatorkit.core.sizes import traced_size
from estimatorkit.core.tensor import Tensor

_SAMPLE = np.array([[3.0, 1.0, 5.0, 4.0], [0.5, 2.5, -1.0, 2.0]], np.float32)


class TopK(NamedTuple):
    """The result of `top_k`.

    Attributes:
        values: the largest values, in descending order.
        indices: int32, their indices in the last dimension.
    """

    values: Tensor
    indices: Tensor


def _checked_count(k: Any, last: int | None) -> int:
    """`k` as an int, checked to be in [0, last]."""
    count = int(k)
    if count < 0:
        raise ValueError(f"Need k >= 0, got {count}: k must be non-negative")
    if last is not None and count > last:
        raise ValueError(
            f"input must have last dimension >= k = {count} but is {last}: "
            f"input must have at least k columns. Had {last}, needed {count}"
        )
    return count


def _top_k(x: Any, k: Any) -> Any:
    k = _checked_count(k, x.shape[-1])
    x = jnp.asarray(x)
    # XLA orders -0 before 0, TensorFlow by position.
    indices = lax.top_k(jnp.where(x == 0, jnp.zeros((), x.dtype), x), k)[1]
    return jnp.take_along_axis(x, indices, -1), indices.astype(np.int32)


def _numpy_top_k(x: Any, k: Any) -> Any:
    k = _checked_count(k, x.shape[-1])
    last = x.shape[-1] - 1  # reversed twice: of equal values the first comes first
    order = last - np.argsort(x[..., ::-1], axis=-1, kind="stable")[..., ::-1][..., : int(k)]
    return np.take_along_axis(x, order, -1), order.astype(np.int32)


def _infer_top_k(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    x, k = inputs
    if x.shape.dims is None:
        return [Spec(x.dtype, UNKNOWN), Spec(int32, UNKNOWN)]
    if k.shape.rank:
        raise value_error(f"top_k: Input must be scalar but has rank {k.shape.rank}: k", received=k)
    count = constant_value(k)
    if count is not None and count < 0:
        raise value_error(f"Need k >= 0, got {int(count)}", made_at=x.op.source)
    if not x.shape.dims:
        raise value_error("top_k: input must be at least rank 1", received=x, made_at=x.op.source)
    if count is not None:
        try:
            _checked_count(count, x.shape.dims[-1])
        except ValueError as error:
            raise value_error(str(error), received=x, made_at=x.op.source) from None
    shape = TensorShape([*x.shape.dims[:-1], None if count is None else int(count)])
    return [Spec(x.dtype, shape), Spec(int32, shape)]


register(
    "TopKV2",
    _top_k,
    infer=_infer_top_k,
    numpy_kernel=_numpy_top_k,
    static=(1,),
    accepts=("fi", "x int16"),
    cases=lambda: [Case((_SAMPLE, np.int32(2)))],
)


def top_k(input: Any, k: Any = 1, sorted: bool = True, name: str | None = None) -> TopK:
    """The k largest values along the last dimension, and their indices.

    Args:
        input: `(..., n)`.
        k: the number of values, at most n; an int or a scalar tensor of int16, int32 or int64.
        sorted: accepted for compatibility only: the values are always in descending order. Of
            equal values the one with the lower index comes first.

    Returns:
        `(values, indices)`, each `(..., k)`.

    Raises:
        ValueError: the input is a scalar, or has fewer than k values.
    """
    x = convert_to_tensor(input, name="input")
    count = convert_to_tensor(whole_numbers(k), name="k")
    op = registry.apply("TopKV2", [x, count], {}, name or "TopKV2")
    return TopK(*op.outputs)


def _in_top_k(predictions: Any, targets: Any, k: Any, module: Any = jnp) -> Any:
    classes = predictions.shape[1]
    if differ(targets.shape, predictions.shape[:1]):
        raise ValueError(
            f"First dimension of predictions {predictions.shape[0]} must match length of targets "
            f"{targets.shape[0]}"
        )
    inside = (targets >= 0) & (targets < classes)
    chosen = module.take_along_axis(
        predictions, module.clip(targets, 0, traced_size(classes - 1))[:, None], axis=1
    )
    greater = module.sum(predictions > chosen, axis=1)
    finite = module.all(module.isfinite(predictions), axis=1)  # otherwise the result is false
    return (greater < k) & inside & finite


def _infer_in_top_k(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    predictions, targets, _ = inputs
    if predictions.shape.rank not in (2, None):
        raise value_error(
            f"in_top_k: Shape must be rank 2 but is rank {predictions.shape.rank}",
            received=predictions,
            made_at=predictions.op.source,
        )
    batch = predictions.shape[:1]
    if not targets.shape.is_compatible_with(batch):
        raise value_error(
            f"Dimensions must be equal, but are {batch} and {targets.shape}: the rows of "
            "in_top_k's predictions and its targets",
            received=f"{predictions}, {targets}",
            made_at=targets.op.source,
        )
    return [Spec(bool_, targets.shape.merge_with(batch))]


register(
    "InTopKV2",
    _in_top_k,
    infer=_infer_in_top_k,
    numpy_kernel=functools.partial(_in_top_k, module=np),
    gradient=None,
    accepts=("float32", "x", "x"),
    cases=lambda: [Case((_SAMPLE, np.array([3, 0], np.int32), np.int32(2)))],
)


def in_top_k(predictions: Any, targets: Any, k: Any, name: str | None = None) -> Tensor:
    """Whether each target class is among the k highest predictions; ties with the k-th count.

    Args:
        predictions: float32 `(batch, classes)`.
        targets: int32 or int64 `(batch,)`.
        k: the number of highest predictions to consider, an int or an int scalar tensor.
    """
    inputs = {"predictions": predictions, "targets": targets, "k": whole_numbers(k)}
    with get_default_graph().name_scope(name or "in_top_k"):
        return make("InTopKV2", inputs)


def nth_element(input: Any, n: Any, reverse: bool = False, name: str | None = None) -> Tensor:
    """The n-th value (from 0) of the sorted last dimension.

    Args:
        input: `(..., m)`.
        n: an int, or a scalar tensor.
        reverse: whether to count from the largest.

    Raises:
        ValueError: the input is a scalar, or `n` is out of range.
    """
    x = convert_to_tensor(input, name="input")
    place = fixed_value(convert_to_tensor(n, name="n"))
    last = x.shape[-1] if x.shape.rank else None
    problem = None
    if x.shape.rank == 0:
        problem = "Shape must be at least rank 1 but is rank 0"
    elif place is not None and place.ndim:
        problem = f"n must be scalar but has rank {place.ndim}"
    elif place is not None and place < 0:
        problem = f"n must be non-negative but is {int(place)}"
    elif None not in (place, last) and last <= int(place):  # type: ignore[arg-type,operator]
        problem = f"Input must have last dimension > n = {int(place)} but is {last}"  # type: ignore[arg-type]
    if problem:
        raise value_error(f"nth_element: {problem}", received=x, made_at=x.op.source)
    if reverse:
        return top_k(x, n + 1, name=name).values[..., -1]
    return -top_k(-x, n + 1, name=name).values[..., -1]
