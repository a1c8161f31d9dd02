"""Broadcasting of static shapes, which many rows infer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from estimatorkit.core.dtypes import DType
from estimatorkit.core.errors import value_error
from estimatorkit.core.registry import Attrs, Infer, Spec
from estimatorkit.core.shapes import UNKNOWN, TensorShape
from estimatorkit.core.tensor import Tensor


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
