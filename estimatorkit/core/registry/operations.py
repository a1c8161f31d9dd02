"""Creating operations of registered types, with the checks of their inputs' dtypes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from estimatorkit.core.dtypes import DType, members
from estimatorkit.core.errors import type_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry.inference import infer
from estimatorkit.core.registry.table import lookup
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.core.trust import marked


def apply(
    op_type: str,
    inputs: Sequence[Tensor] = (),
    attrs: dict[str, Any] | None = None,
    name: str | None = None,
) -> Operation:
    """Adds an operation of a registered type to the default graph.

    Args:
        op_type: the type.
        inputs: tensors (see `conversion.convert_to_tensor` for other values).
        attrs: attributes for the kernel.
        name: the requested name; the type by default.

    Raises:
        ValueError, TypeError: shapes or dtypes are incompatible.
    """
    row = lookup(op_type)
    attrs = attrs or {}
    if row.semantics.has_effects(attrs):
        attrs = marked(attrs)
    for position, (tensor, allowed) in enumerate(zip(inputs, row.accepted_dtypes, strict=False)):
        if allowed and tensor.dtype not in allowed:
            raise not_allowed(tensor, allowed, f"{name or row.type} ({row.type})", position)
    outputs = infer(row, inputs, attrs)
    graph = get_default_graph()
    if inputs and not graph.reaches(inputs[0].graph):
        graph = inputs[0].graph
    op = graph.create_op(op_type, inputs, outputs, attrs, name)
    written = row.semantics.updated_positions(attrs) if row.semantics.updates else ()
    if written:
        graph.note_write(op, (op.inputs[position] for position in written))
    return op


def output(
    op_type: str,
    inputs: Sequence[Tensor] = (),
    attrs: dict[str, Any] | None = None,
    name: str | None = None,
) -> Tensor:
    """Adds an operation with one output, and returns that."""
    return apply(op_type, inputs, attrs, name).outputs[0]


def not_allowed(
    tensor: Tensor, allowed: Sequence[DType], what: str, parameter: int | str
) -> TypeError:
    """The error for a value of an unsupported dtype.

    Args:
        tensor: the value.
        allowed: the supported dtypes.
        what: the operation or the function.
        parameter: the input's number or name.
    """
    which = f"parameter {parameter!r}" if isinstance(parameter, str) else f"input {parameter}"
    return type_error(
        f"Value passed to {which} of {what} has DataType {tensor.dtype.name} not in list of "
        f"allowed values: {', '.join(dtype.name for dtype in allowed)}",
        received=tensor,
        made_at=tensor.op.source,
        hint=f"use cast(x, {allowed[0].name})" if tensor.dtype.kind in "fcib" else None,
    )


def check_allowed(tensor: Tensor, spec: str, what: str, parameter: str) -> None:
    """Raises TypeError unless a value's dtype is one of `dtypes.members(allowed)`."""
    allowed = members(spec)
    if tensor.dtype not in allowed:
        raise not_allowed(tensor, allowed, what, parameter)
