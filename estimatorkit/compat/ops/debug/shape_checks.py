"""`assert_shapes`: constraints on the shapes of several tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from estimatorkit.core import builtin_ops
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.graph import control_dependencies, get_default_graph
from estimatorkit.core.sparse_tensor import SparseTensor
from estimatorkit.core.tensor import Operation
from estimatorkit.ops.array import array
from estimatorkit.ops.debug.checks import assert_rank, assert_rank_at_least, assert_rank_in
from estimatorkit.ops.debug.debug import Assert
from estimatorkit.ops.math import elementwise


class _Constraint(NamedTuple):
    """A tensor and the required sizes of its dimensions, or of its last ones."""

    tensor: Any
    sizes: tuple[Any, ...]
    innermost: bool

    @property
    def shown(self) -> str:
        tensor = self.tensor
        is_sparse = isinstance(tensor, SparseTensor)
        return f"shape {tensor.shape}" if is_sparse else str(tensor.name)

    def size_of(self, dimension: int) -> Any:
        """The static size, or else a scalar tensor. Scalars count as vectors of length 1."""
        if self.tensor.shape.rank == 0:
            return 1
        if self.tensor.shape.rank is not None:
            known = self.tensor.shape.as_list()[dimension]
            return array.shape(self.tensor)[dimension] if known is None else known
        return array.shape(self.tensor)[dimension]

    def rank_assertion(self, **words: Any) -> Operation | None:
        rank = len(self.sizes)
        if self.innermost:
            return None if rank < 2 else assert_rank_at_least(self.tensor, rank, **words)
        if rank < 2:
            return assert_rank_in(self.tensor, [0, 1], **words)
        return assert_rank(self.tensor, rank, **words)


def _constraint(tensor: Any, wanted: Any, prefix: str) -> _Constraint:
    value = tensor if isinstance(tensor, SparseTensor) else convert_to_tensor(tensor)
    if not hasattr(wanted, "__iter__") and not hasattr(wanted, "__getitem__"):
        raise ValueError(
            f"{prefix}Tensor {_Constraint(value, (), False).shown}.  Specified shape must be an "
            f"iterable.  Received specified shape: {wanted}"
        )
    sizes = tuple(wanted)
    for at, size in enumerate(sizes):
        if at and (size is Ellipsis or size == "*"):
            raise ValueError(
                f"{prefix}Tensor {_Constraint(value, (), False).shown} specified shape index "
                f"{at}.  Symbol `...` or `*` for a variable number of unspecified dimensions is "
                "only allowed as the first entry"
            )
    innermost = bool(sizes) and (sizes[0] is Ellipsis or sizes[0] == "*")
    sizes = sizes[1:] if innermost else sizes
    # `()` requires a scalar, which counts as a vector of length 1.
    return _Constraint(value, sizes or (1,) if not innermost else sizes, innermost)


def _number(size: Any) -> int | None:
    try:
        return int(size)
    except (TypeError, ValueError):
        return None


def assert_shapes(
    shapes: Mapping[Any, Any] | Sequence[tuple[Any, Any]],
    data: Sequence[Any] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Asserts the shapes of tensors; dimensions of the same name must have equal size.

    Args:
        shapes: pairs of a tensor and its shape: for each dimension an int, a name such as 'N' for a
            size shared by all tensors, or None or '.' for any size. A leading `...` or '*' matches
            any number of dimensions. A tensor whose shape is None is not checked. Scalars count as
            vectors of length 1.
        data: values to print in the error; the expected and the actual size by default.
        summarize: the number of elements to print of each value.
        message: the beginning of the error text.

    Returns:
        An operation that checks whatever static shapes do not determine.

    Raises:
        ValueError: a constraint is statically violated, or invalid.
        InvalidArgumentError: at run time, a constraint is violated.
    """
    pairs = shapes.items() if isinstance(shapes, Mapping) else shapes
    prefix = f"{message}.  " if message else ""
    with get_default_graph().name_scope(name or "assert_shapes"):
        given = [_constraint(*pair, prefix) for pair in pairs if pair[1] is not None]
        words: dict[str, Any] = {"data": data, "summarize": summarize, "message": message}
        ranks = [each.rank_assertion(**words) for each in given]
        assertions = [op for op in ranks if op is not None]
        sized: dict[Any, tuple[Any, str]] = {}
        with control_dependencies(list(assertions)):
            for each in given:
                for place, wanted in enumerate(each.sizes):
                    if wanted is None or wanted == ".":
                        continue
                    dimension = place - len(each.sizes) if each.innermost else place
                    actual = each.size_of(dimension)
                    if _number(wanted) is not None:
                        expected, why = _number(wanted), "Specified explicitly"
                    elif wanted in sized:
                        expected, why = sized[wanted]
                    else:
                        why = f"Specified by tensor {each.shown} dimension {dimension}"
                        sized[wanted] = actual, why
                        continue
                    where = f"Tensor {each.shown} dimension"
                    if isinstance(actual, int) and isinstance(expected, int):
                        if actual != expected:
                            raise ValueError(
                                f"{prefix}{why}.  {where} {dimension} must have size {expected}.  "
                                f"Received size {actual}, shape {each.tensor.shape}"
                            )
                        continue
                    found = [f"{prefix}{why}", f"{where} {dimension} must have size", expected]
                    shown = [*found, "Received shape: ", array.shape(each.tensor)]
                    fits = elementwise.equal(actual, expected)
                    assertions.append(Assert(fits, data or shown, summarize=summarize))
            operation: Operation = builtin_ops.group(*assertions)
            return operation
