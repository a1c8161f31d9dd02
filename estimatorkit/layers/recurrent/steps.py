"""Building blocks of loops over time steps, for recurrent layers of both APIs.

Tensors over time are time major: `(steps, batch, ...)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from estimatorkit.core import nest
from estimatorkit.core.registry import constant_value
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array import array, filling, indexing, joining
from estimatorkit.ops.array.rearrange import reverse, reverse_sequence
from estimatorkit.ops.control.higher_order import scan_op

Step: TypeAlias = Callable[[Any, Any], tuple[Any, Any]]
"""`(inputs, states) -> (output, new states)`."""


def size_of(tensor: Tensor, axis: int) -> Any:
    """The length of an axis: an int if it is known, else a tensor."""
    known = tensor.shape[axis] if tensor.shape.rank is not None else None
    return array.shape(tensor)[axis] if known is None else known


def known_size(size: Any) -> int | None:
    """A size as an int; None if it is a tensor without a constant value."""
    value = constant_value(size) if isinstance(size, Tensor) else size
    return None if value is None else int(value)


def zeros_of(size: Any, batch_size: Any, dtype: Any) -> Any:
    """Zeros `(batch, ...)` for a size: an int, a scalar tensor, a shape, or a structure of them."""
    if nest.is_nested(size):
        leaves = [zeros_of(each, batch_size, dtype) for each in nest.flatten(size)]
        return nest.pack_sequence_as(size, leaves)
    dims = [batch_size, *(size.as_list() if isinstance(size, TensorShape) else [size])]
    known = [known_size(each) for each in dims]
    computed = any(isinstance(each, Tensor) for each in dims)
    zeros = filling.zeros(joining.stack(dims) if computed else known, dtype)
    zeros.set_shape(known)
    return zeros


def initial_state_of(cell: Any, batch_size: Any, dtype: Any) -> Any:
    """The state of any cell before the first step: the cell's own, or zeros of its `state_size`."""
    own = getattr(cell, "get_initial_state", None)
    if own is not None:
        return own(inputs=None, batch_size=batch_size, dtype=dtype)
    if hasattr(cell, "zero_state"):
        return cell.zero_state(batch_size, dtype)
    return zeros_of(cell.state_size, batch_size, dtype)


def choose(going: Tensor, new: Any, old: Any) -> Any:
    """`new` for the examples for which `going`, `(batch,)`, is true, `old` for the others.

    Scalars are not per example: `new` is kept.
    """

    def chosen(one: Tensor, other: Tensor) -> Tensor:
        rank = one.shape.rank
        if rank == 0:
            return one
        condition = going
        for _ in range((rank or 1) - (going.shape.rank or 1)):
            condition = array.expand_dims(condition, -1)
        return indexing.where(condition, one, other)

    return nest.map_structure(chosen, new, old)


def reverse_steps(value: Tensor, lengths: Any = None, steps: int = 0, batch: int = 1) -> Tensor:
    """Reverses the axis `steps`; with `lengths`, the first `lengths[i]` steps of example i."""
    if lengths is None:
        return reverse(value, [steps])
    return reverse_sequence(value, lengths, seq_axis=steps, batch_axis=batch)


class StepResults(NamedTuple):
    """What `run_steps` returns.

    Attributes:
        outputs: of all steps, `(steps, batch, ...)`, or `()`.
        last: the output of the last step, or `()`.
        states: the states after the last step.
    """

    outputs: Any
    last: Any
    states: Any


def run_steps(
    step: Step,
    columns: Any,
    states: Any,
    mask: Tensor | None = None,
    *,
    before: Any = None,
    every: bool = True,
    zeros: bool = False,
    reverse: bool = False,
) -> StepResults:
    """Runs a cell over inputs `(steps, batch, ...)` in one XLA loop.

    Args:
        step: the cell.
        columns: the inputs.
        states: before the first step.
        mask: bool `(steps, batch)`: the steps that change the states; None for all.
        before: the output before the first step, which masked steps repeat; None if the
            last output is not needed.
        every: whether to return the outputs of all steps.
        zeros: whether the outputs of masked steps are zeros.
        reverse: whether to begin with the last step.
    """
    carried = before is not None

    def one(carry: Any, element: Any) -> tuple[Any, Any]:
        (states, before), (row, going) = carry, element
        output, new = step(row, states)
        new = nest.pack_sequence_as(states, nest.flatten(new))
        if mask is not None:
            new = choose(going, new, states)
            if zeros:
                output = choose(going, output, nest.map_structure(filling.zeros_like, output))
            elif carried:
                output = choose(going, output, before)
        return (new, output if carried else ()), output if every else ()

    elements = (columns, () if mask is None else mask)
    (states, last), outputs = scan_op(
        one, (states, before if carried else ()), elements, reverse=reverse
    )
    return StepResults(outputs, last, states)


__all__ = [
    "Step",
    "StepResults",
    "choose",
    "initial_state_of",
    "known_size",
    "reverse_steps",
    "run_steps",
    "size_of",
    "zeros_of",
]
