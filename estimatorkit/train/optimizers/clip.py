"""Gradient clipping by norm: `global_norm`, `clip_by_global_norm`, `clip_by_norm`, ...

Arguments may be tensors and `IndexedSlices`. As in TensorFlow, the norm of `IndexedSlices` is that
of its values: repeated rows are not summed first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from estimatorkit.core import builtin_ops
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.indexed_slices import IndexedSlices
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array import array, filling, indexing
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.nn import nn


def global_norm(t_list: Sequence[Any], name: str | None = None) -> Tensor:
    """The square root of the sum of squares of all elements of all tensors.

    Source: `tf.linalg.global_norm`.

    Args:
        t_list: tensors, `IndexedSlices`, or None (ignored).

    Returns:
        A scalar; 0 of no tensors.

    Raises:
        TypeError: `t_list` is not a list or tuple.
    """
    values = _values(t_list)
    with get_default_graph().name_scope(name or "global_norm"):
        halves = [nn.l2_loss(value) for value in values if value is not None]
        halves = halves or [convert_to_tensor(0.0)]
        return elementwise.sqrt(elementwise.add_n(halves) * 2.0, name="global_norm")


def clip_by_global_norm(
    t_list: Sequence[Any], clip_norm: Any, use_norm: Any = None, name: str | None = None
) -> tuple[list[Any], Tensor]:
    """Scales tensors by one factor so that their global norm is at most `clip_norm`.

    t * clip_norm / max(global norm, clip_norm) (Pascanu et al. 2012). Source:
    `tf.clip_by_global_norm`.

    Args:
        t_list: tensors, `IndexedSlices`, or None (stays None).
        clip_norm: a positive scalar.
        use_norm: the precomputed global norm.

    Returns:
        The scaled tensors, and the global norm before scaling. If the norm is not finite, all
        elements are NaN, so that it is noticed.

    Raises:
        TypeError: `t_list` is not a list or tuple.
    """
    values = _values(t_list)
    norm = global_norm(t_list, name) if use_norm is None else convert_to_tensor(use_norm)
    with get_default_graph().name_scope(name or "clip_by_global_norm") as scope:
        limit = convert_to_tensor(clip_norm, norm.dtype, "clip_norm")
        scale = limit * elementwise.minimum(1.0 / norm, 1.0 / limit)
        scale = scale + (norm - norm)  # 0, or NaN if the norm is not finite
        clipped = [
            None
            if value is None
            else elementwise.multiply(
                value, elementwise.cast(scale, value.dtype), name=f"{scope}_{index}"
            )
            for index, value in enumerate(values)
        ]
        return [_like(old, new) for old, new in zip(t_list, clipped, strict=True)], norm


def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None, name: str | None = None) -> Any:
    """Scales a tensor so that its norm is at most `clip_norm`.

    t * clip_norm / max(norm, clip_norm). Source: `tf.clip_by_norm`.

    Args:
        t: a tensor or an `IndexedSlices`.
        clip_norm: a positive scalar.
        axes: the axes over which to compute norms; all by default.

    Returns:
        A tensor or `IndexedSlices`, as `t`.
    """
    (value,) = _values([t])
    with get_default_graph().name_scope(name or "clip_by_norm") as scope:
        limit = convert_to_tensor(clip_norm, value.dtype, "clip_norm")
        total = reduce.reduce_sum(value * value, axes, True)
        # The derivative of the root at 0 is infinite; replacing 0 keeps gradients finite.
        positive = total > 0.0
        root = elementwise.sqrt(indexing.where(positive, total, filling.ones_like(total)))
        norm = indexing.where(positive, root, total)
        largest = elementwise.maximum(norm, limit)
        return _like(t, elementwise.truediv(value * limit, largest, name=scope))


def clip_by_average_norm(t: Any, clip_norm: Any, name: str | None = None) -> Tensor:
    """Scales a tensor so that its norm divided by its size is at most `clip_norm`.

    t * clip_norm * min(n / norm, 1 / clip_norm) of n elements. Source: `tf.clip_by_average_norm`.

    Args:
        t: a floating tensor.
        clip_norm: a positive scalar.
    """
    with get_default_graph().name_scope(name or "clip_by_average_norm") as scope:
        value = convert_to_tensor(t, name="t")
        limit = convert_to_tensor(clip_norm, value.dtype, "clip_norm")
        count = elementwise.cast(array.size(value), value.dtype)
        inverse = elementwise.rsqrt(reduce.reduce_sum(value * value))
        scale = elementwise.minimum(inverse * count, 1.0 / limit)
        return builtin_ops.identity(value * limit * scale, name=scope)


def _values(t_list: Sequence[Any]) -> list[Any]:
    if not isinstance(t_list, (list, tuple)):
        raise TypeError(f"`t_list` should be a sequence of tensors. Received {type(t_list)}.")
    return [
        None
        if t is None
        else convert_to_tensor(t.all_values if isinstance(t, IndexedSlices) else t)
        for t in t_list
    ]


def _like(old: Any, new: Any) -> Any:
    """Returns `new` as `IndexedSlices` if `old` is one."""
    return old.with_values(new) if isinstance(old, IndexedSlices) else new


def scale_gradient(gradient: Any, factor: Any) -> Any:
    """Multiplies a gradient by a number or a tensor of any floating dtype."""
    (values,) = _values([gradient])
    return _like(gradient, values * elementwise.cast(factor, values.dtype))


__all__ = [
    "clip_by_average_norm",
    "clip_by_global_norm",
    "clip_by_norm",
    "global_norm",
    "scale_gradient",
]
