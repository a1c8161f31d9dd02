"""Decoder outputs: `gather_tree` backtracks the beams of a beam search, `first_steps` truncates
arrays to the executed steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from estimatorkit.core.conversion import convert_to_tensor, make
from estimatorkit.core.dtypes import int32
from estimatorkit.core.errors import value_error
from estimatorkit.core.faults import Fault, in_range, xp
from estimatorkit.core.registry import Case, Spec, register
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.sizes import traced_size
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.ops.array import array, filling, joining


def _gather_tree(step_ids: Any, parent_ids: Any, lengths: Any, end_token: Any) -> Any:
    steps, batch, beams = step_ids.shape
    own = jnp.broadcast_to(jnp.arange(beams, dtype=parent_ids.dtype), (batch, beams))

    def back(carried: Any, row: Any) -> Any:
        parents, valid = carried
        number, ids, before = row
        inside = (number < lengths)[:, None]
        chosen = jnp.clip(parents, 0, traced_size(beams - 1))
        found = jnp.where(valid, jnp.take_along_axis(ids, chosen, 1), -1)
        after = jnp.where(inside, jnp.take_along_axis(before, chosen, 1), parents)
        still = valid & (after >= 0) & (after < beams)
        return (after, still), jnp.where(inside, found, end_token)

    rows = (jnp.arange(steps), step_ids, parent_ids)
    _, found = lax.scan(back, (own, jnp.ones((batch, beams), bool)), rows, reverse=True)
    ended = jnp.cumsum(found == end_token, axis=0) > 0
    return jnp.where(ended, end_token, found).astype(step_ids.dtype)


def _numpy_gather_tree(step_ids: Any, parent_ids: Any, lengths: Any, end_token: Any) -> Any:
    return np.asarray(_gather_tree(step_ids, parent_ids, lengths, end_token))


def _infer_gather_tree(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    step_ids, parent_ids, lengths, end_token = inputs
    for tensor, rank in ((step_ids, 3), (parent_ids, 3), (lengths, 1), (end_token, 0)):
        if tensor.shape.rank not in (None, rank):
            raise value_error(
                f"Shape must be rank {rank} but is rank {tensor.shape.rank}: gather_tree takes "
                "ids and parents (steps, batch, beams), lengths (batch,) and one end token",
                received=tensor,
                made_at=tensor.op.source,
            )
    return [Spec(step_ids.dtype, step_ids.shape.merge_with(parent_ids.shape))]


def _parent_fault(inputs: Sequence[Any], attrs: Mapping[str, Any]) -> list[Fault]:
    step_ids, parents, lengths, _ = inputs
    steps, _, beams = step_ids.shape
    module = xp(parents, lengths)
    # The steps that count: those after the first, up to the length of each example.
    number = module.arange(steps)[:, None, None]
    followed = (number > 0) & (number < lengths[None, :, None])
    own = module.where(followed, parents, 0)
    return in_range(1, own, beams, "Invalid parent id {value} at (time, batch, beam) = {at}")


register(
    "GatherTree",
    _gather_tree,
    fault=_parent_fault,
    infer=_infer_gather_tree,
    numpy_kernel=_numpy_gather_tree,
    gradient=None,
    cases=lambda: [
        Case(
            (
                np.array([[[1, 2, 3]], [[4, 5, 6]], [[7, 8, 9]], [[-1, -1, -1]]], np.int32),
                np.array([[[0, 0, 0]], [[0, 1, 1]], [[2, 1, 2]], [[-1, -1, -1]]], np.int32),
                np.array([3], np.int32),
                np.int32(10),
            ),
            {},
            np.array([[[2, 2, 2]], [[6, 5, 6]], [[7, 8, 9]], [[10, 10, 10]]], np.int32),
        )
    ],
)


def gather_tree(
    step_ids: Any,
    parent_ids: Any,
    max_sequence_lengths: Any,
    end_token: Any,
    name: str | None = None,
) -> Tensor:
    """The full sequence of each beam, backtracked through its parents from the last step.

    Args:
        step_ids: int32 `(steps, batch, beams)`: the id chosen by each beam at each step.
        parent_ids: int32 `(steps, batch, beams)`: the beam that it extends.
        max_sequence_lengths: int32 `(batch,)`: the number of steps of the longest beam.
        end_token: int32 scalar; fills a sequence from its first occurrence on.

    Returns:
        int32 `(steps, batch, beams)`.

    Raises:
        InvalidArgumentError: when run, a parent is out of range.
    """
    values = {
        "step_ids": step_ids,
        "parent_ids": parent_ids,
        "max_sequence_lengths": max_sequence_lengths,
        "end_token": end_token,
    }
    inputs = {key: convert_to_tensor(value, int32, key) for key, value in values.items()}
    return make("GatherTree", inputs, {}, name)


def _first_steps(values: Any, count: Any, batch_major: bool) -> Any:
    found = np.asarray(values)[: int(count)]
    return np.swapaxes(found, 0, 1) if batch_major else found


def _infer_first_steps(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    tensor = inputs[0]
    if not tensor.shape.dims:
        return [Spec(tensor.dtype, TensorShape(None))]
    dims = [None, *tensor.shape.dims[1:]]
    if attrs["batch_major"]:
        dims[:2] = [dims[1], dims[0]]
    return [Spec(tensor.dtype, TensorShape(dims))]


def _first_steps_gradient(op: Operation, gradient: Any) -> list[Any]:
    tensor = op.inputs[0]
    incoming = convert_to_tensor(gradient)
    if op.attrs["batch_major"]:
        incoming = transposed(incoming)
    sizes = array.shape(tensor)
    missing = sizes[0] - array.shape(incoming)[0]
    rest = joining.concat([array.expand_dims(missing, 0), sizes[1:]], 0)
    return [joining.concat([incoming, filling.zeros(rest, incoming.dtype)], 0), None]


def transposed(value: Tensor) -> Tensor:
    """Swaps the first two dimensions (steps and batch); lower ranks are returned unchanged."""
    rank = value.shape.rank
    if rank is None or rank < 2:
        return value
    return array.transpose(value, [1, 0, *range(2, rank)])


register(
    "FirstSteps",
    _first_steps,
    infer=_infer_first_steps,
    gradient=_first_steps_gradient,
    where="host",
    cases=lambda: [
        Case(
            (np.arange(6, dtype=np.float32).reshape(3, 2), np.int32(2)),
            {"batch_major": True},
            np.array([[0, 2], [1, 3]], np.float32),
        )
    ],
)


def first_steps(values: Any, count: Any, batch_major: bool = False) -> Tensor:
    """The first `count` (int32 scalar) rows of `values`, `(steps, batch, ...)`.

    Sliced on the host, so a new length causes no XLA recompilation. Returns
    `(batch, count, ...)` if `batch_major`.
    """
    inputs = {
        "values": convert_to_tensor(values),
        "count": convert_to_tensor(count, int32),
    }
    return make("FirstSteps", inputs, {"batch_major": batch_major}, "FirstSteps")
