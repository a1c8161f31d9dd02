"""Shape functions that many rows share, and the checks that they use."""

from __future__ import annotations

from collections.abc import Sequence

from estimatorkit.core.dtypes import DType
from estimatorkit.core.errors import type_error
from estimatorkit.core.registry.op_def import Attrs, Infer, Spec
from estimatorkit.core.shapes import SCALAR, TensorShape
from estimatorkit.core.tensor import Tensor


def same_as_input(position: int = 0) -> Infer:
    """Infers one output with the spec of an input."""

    def infer(inputs: Sequence[Tensor], attrs: Attrs) -> Sequence[Spec]:
        return [Spec(inputs[position].dtype, inputs[position].shape)]

    return infer


def fixed(dtype: DType, shape: TensorShape = SCALAR) -> Infer:
    """Infers one output of this spec."""

    def infer(inputs: Sequence[Tensor], attrs: Attrs) -> Sequence[Spec]:
        return [Spec(dtype, shape)]

    return infer


def from_attrs(inputs: Sequence[Tensor], attrs: Attrs) -> Sequence[Spec]:
    """Infers one output with the attributes `dtype` and `shape`."""
    return [Spec(attrs["dtype"], attrs["shape"])]


def no_outputs(inputs: Sequence[Tensor], attrs: Attrs) -> Sequence[Spec]:
    """Infers no outputs."""
    return []


def check_same_dtype(op_type: str, inputs: Sequence[Tensor], name: str | None = None) -> None:
    """Raises TypeError if the inputs' dtypes differ."""
    for other in inputs[1:]:
        if other.dtype is inputs[0].dtype:
            continue
        raise type_error(
            f"Input {other.name!r} of '{name or op_type}' ({op_type}) has type "
            f"{other.dtype.name} that does not match type {inputs[0].dtype.name} of "
            f"{inputs[0].name!r}",
            expected=f"{inputs[0].dtype.name} for all, as for the first",
            received=", ".join(f"{t.name} {t.dtype.name}" for t in inputs),
            made_at=inputs[0].op.source,
            hint=f"use cast(x, {inputs[0].dtype.name}); dtypes are never promoted implicitly",
        )
