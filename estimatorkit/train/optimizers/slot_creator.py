"""Slots: variables that belong to a variable or tensor, such as an optimizer's moments.

As `tensorflow.python.training.slot_creator`. The slot `name` of `primary` is the non-trainable
variable `<variable scope>/<primary>/<name>`. In checkpoints, slots of a partitioned variable's
parts are parts of the whole's slot.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from estimatorkit.core.dtypes import as_dtype
from estimatorkit.core.shapes import as_shape
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.ops.array.filling import zeros, zeros_like
from estimatorkit.ops.variables.variable_scope import get_variable_scope


def create_slot(
    primary: Variable | Tensor, val: Any, name: str, colocate_with_primary: bool = True
) -> Variable:
    """Creates a slot with an initial value.

    Args:
        primary: the variable or tensor that owns the slot.
        val: the initial value, or a function that returns it.
        name: the last part of the slot's name; may be empty.
        colocate_with_primary: whether to place the slot on the device of `primary`.
    """
    graph = primary.graph
    place = graph.colocate_with(primary) if colocate_with_primary else nullcontext()
    with graph.name_scope(None), place:
        slot = Variable(
            val,
            trainable=False,
            validate_shape=as_shape(primary.shape).is_fully_defined(),
            name="/".join(filter(None, [get_variable_scope().name, primary.op.name, name])),
        )
    if isinstance(primary, Variable):
        slot.belong_to(primary)
    return slot


def create_slot_with_initializer(
    primary: Variable | Tensor,
    initializer: Any,
    shape: Any,
    dtype: Any,
    name: str,
    colocate_with_primary: bool = True,
) -> Variable:
    """Creates a slot with an initializer; see `create_slot`.

    `initializer` is a function of the shape and the dtype.
    """
    return create_slot(primary, lambda: initializer(shape, dtype), name, colocate_with_primary)


def create_zeros_slot(
    primary: Variable | Tensor, name: str, dtype: Any = None, colocate_with_primary: bool = True
) -> Variable:
    """Creates a slot of zeros with the shape, and by default the dtype, of `primary`.

    See `create_slot`.
    """
    kind = as_dtype(dtype or primary.dtype).base_dtype
    static = as_shape(primary.shape)

    def value() -> Tensor:
        if static.is_fully_defined():
            return zeros(static, kind)
        known = primary.initialized_value() if isinstance(primary, Variable) else primary
        return zeros_like(known, kind)

    return create_slot(primary, value, name, colocate_with_primary)
