"""Shape functions that many rows share, and the checks that they use."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from estimatorkit.core.dtypes import DType
from estimatorkit.core.errors import type_error, value_error
from estimatorkit.core.registry.op_def import Attrs, Infer, Spec
from estimatorkit.core.shapes import SCALAR, UNKNOWN, TensorShape
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


def broadcast(dtype: DType | None = None) -> Infer:
    """Infers the broadcast shape of inputs of one dtype; the output has that dtype, or `dtype`.

    Raises:
        TypeError: the dtypes differ; as in TensorFlow, there is no type promotion.
        ValueError: the shapes cannot be broadcast.
    """

    def infer(inputs: Sequence[Tensor], attrs: Attrs) -> Sequence[Spec]:
        def refusal(a: int, b: int) -> Exception:
            return value_error(
                f"Dimensions must be equal, but are {a} and {b}",
                expected="shapes that broadcast together (equal, or 1, from the right)",
                received=", ".join(f"{t.name} {t.shape}" for t in inputs),
                made_at=inputs[0].op.source,
            )

        shape = inputs[0].shape
        for other in inputs[1:]:
            shape = broadcast_shapes(shape, other.shape, refusal)
        return [Spec(dtype or inputs[0].dtype, shape)]

    return infer


def check_same_dtype(op_type: str, inputs: Sequence[Tensor], name: str | None = None) -> None:
    """Raises TypeError if the inputs' dtypes differ."""
    other = next((each for each in inputs[1:] if each.dtype is not inputs[0].dtype), None)
    if other is not None:
        raise type_error(
            f"Input {other.name!r} of '{name or op_type}' ({op_type}) has type "
            f"{other.dtype.name} that does not match type {inputs[0].dtype.name} of "
            f"{inputs[0].name!r}",
            expected=f"{inputs[0].dtype.name} for all, as for the first",
            received=", ".join(f"{t.name} {t.dtype.name}" for t in inputs),
            made_at=inputs[0].op.source,
            hint=f"use cast(x, {inputs[0].dtype.name}); dtypes are never promoted implicitly",
        )


def broadcast_shapes(
    one: TensorShape, two: TensorShape, refusal: Callable[[int, int], Exception]
) -> TensorShape:
    """The shape that two shapes broadcast to.

    Args:
        one, two: the shapes.
        refusal: the error to raise for incompatible dimensions.
    """
    if one.dims is None or two.dims is None:
        return UNKNOWN
    if one.dims == two.dims:
        return one
    length = max(len(one), len(two))
    left = (1,) * (length - len(one)) + one.dims
    right = (1,) * (length - len(two)) + two.dims
    result: list[int | None] = []
    for a, b in zip(left, right, strict=True):
        if a == 1 or b == 1:
            result.append(b if a == 1 else a)
        elif a is None or b is None:
            result.append(b if a is None else a)
        elif a == b:
            result.append(a)
        else:
            raise refusal(a, b)
    return TensorShape(result)
