"""Collectives across the replicas of one step: `all_reduce`, `all_gather`.

Replicas run one graph, each on its own input; XLA runs it on all devices of a mesh (see
`distribute.replicas.replicas`). With one replica both operations are the identity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.errors import UnimplementedError
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import Case, Role, Spec, apply, register
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Operation, Tensor

AXIS = "replica"
"""The axis of the mesh of replicas."""

_MESSAGE = 1 << 20
"""Bytes that travel together: a message of its own costs an array 0.15 to 0.4 ms between two
processes on one machine; copying this much there and back costs 0.2."""


_psum: Any = lax.psum


def is_replicated() -> bool:
    """Whether the current trace runs on several replicas."""
    try:
        lax.axis_index(AXIS)
    except NameError:  # JAX's error if there is no such axis
        return False
    return True


def _all_reduce(*values: Any, mean: bool) -> list[Any]:
    if not is_replicated():
        return list(values)
    arrays = [jnp.asarray(value) for value in values]
    found: dict[int, Any] = {}
    for places in _messages(arrays):
        flat = _psum(jnp.concatenate([arrays[at].reshape(-1) for at in places]), AXIS)
        ends = np.cumsum([arrays[at].size for at in places])
        for at, part in zip(places, jnp.split(flat, ends[:-1]), strict=True):
            found[at] = part.reshape(arrays[at].shape)
    total = [found[at] for at in range(len(arrays))]
    return [divided(each, lax.axis_size(AXIS)) for each in total] if mean else total


def _messages(arrays: Sequence[Any]) -> list[list[int]]:
    """Indices of the arrays sent together: arrays of one dtype, up to the message size limit."""
    messages: list[tuple[Any, list[int]]] = []
    for at, array in enumerate(arrays):
        for dtype, places in messages:
            size = sum(arrays[each].nbytes for each in places)
            if dtype == array.dtype and size + array.nbytes <= _MESSAGE:
                places.append(at)
                break
        else:
            messages.append((array.dtype, [at]))
    return [places for _, places in messages]


def divided(total: Any, count: int) -> Any:
    """A sum divided by `count`, in its own dtype; integers are rounded down."""
    return total // count if jnp.issubdtype(total.dtype, jnp.integer) else total / count


def _all_gather(*values: Any) -> list[Any]:
    if not is_replicated():
        return list(values)
    return [lax.all_gather(value, AXIS, tiled=True) for value in values]


def _reduced_specs(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> Sequence[Spec]:
    return [Spec(tensor.dtype, tensor.shape) for tensor in inputs]


def _gathered_specs(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> Sequence[Spec]:
    return [
        Spec(tensor.dtype, TensorShape([None]).concatenate(tensor.shape[1:])) for tensor in inputs
    ]


def _reduce_gradient(op: Operation, *gradients: Any) -> Sequence[Any]:
    # Each replica's value contributes to the losses of all of them.
    given = [each for each in gradients if each is not None]
    found = iter(all_reduce(given, **op.attrs)) if given else iter(())
    return [None if each is None else next(found) for each in gradients]


_SAMPLE = np.array([[1.0, -2.0], [0.5, 3.0]], np.float32)

register(
    "AllReduce",
    _all_reduce,
    role=Role.ALL_REDUCE,
    infer=_reduced_specs,
    gradient=_reduce_gradient,
    cases=lambda: [Case((_SAMPLE, _SAMPLE[0]), {"mean": False}, (_SAMPLE, _SAMPLE[0]))],
)
register(
    "AllGather",
    _all_gather,
    role=Role.ALL_GATHER,
    infer=_gathered_specs,
    gradient=None,
    cases=lambda: [Case((_SAMPLE,), {}, _SAMPLE)],
)


def all_reduce(values: Sequence[Any], mean: bool = False, name: str | None = None) -> list[Tensor]:
    """Sums (or averages, if `mean`) tensors over all replicas.

    `values` must have the same shapes on all replicas; the results are identical on all of them.

    Raises:
        UnimplementedError: called inside a function or a loop.
    """
    return _made("AllReduce", values, {"mean": mean}, name)


def all_gather(values: Sequence[Any], name: str | None = None) -> list[Tensor]:
    """Concatenates the replicas' tensors (of rank 1 or more) along the first axis.

    Raises:
        UnimplementedError: called inside a function or a loop.
    """
    return _made("AllGather", values, {}, name)


def _made(
    op_type: str, values: Sequence[Any], attrs: dict[str, Any], name: str | None
) -> list[Tensor]:
    graph = get_default_graph()
    tensors = [convert_to_tensor(value) for value in values]
    if graph is not graph.outermost:
        raise UnimplementedError.explained(
            "replicas cannot exchange values inside of cond, while_loop or map_fn",
            expected="the exchange before or after it",
            received=", ".join(str(tensor) for tensor in tensors),
            hint="each replica may take another branch, and would wait for the others for ever",
        )
    return list(apply(op_type, tensors, attrs, name).outputs)


__all__ = ["AXIS", "all_gather", "all_reduce", "divided", "is_replicated"]
