"""Static shapes: `TensorShape`, whose rank or dimensions may be unknown.

Shapes are immutable. Dimensions are ints that also have TensorFlow 1's `.value`, or None as in
TensorFlow 2. To modules that import `compat.v1`, and in `get_shape()` (`ShapeOfDimensions`),
unknown dimensions are `Dimension(None)`, which has `.value` as well.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import ModuleType
from typing import Any, TypeAlias, overload

from estimatorkit.core.errors import type_error, value_error
from estimatorkit.core.sizes import is_comparable

Dims: TypeAlias = tuple[int | None, ...]


class _Mergeable:
    """Comparison and merging of dimensions."""

    __slots__ = ()
    value: Any

    def is_compatible_with(self, other: Any) -> bool:
        """Whether both are equal or one is unknown."""
        one, two = self.value, _dimension(other)
        return one is None or two is None or one == two

    def assert_is_compatible_with(self, other: Any) -> None:
        """Raises ValueError if both are known and differ."""
        if not self.is_compatible_with(other):
            raise ValueError(f"Dimensions {self} and {other} are not compatible")

    def merge_with(self, other: Any) -> Any:
        """The known one of the two.

        Raises:
            ValueError: both are known and differ.
        """
        self.assert_is_compatible_with(other)
        known = _dimension(other) if self.value is None else self
        return UNKNOWN_DIMENSION if known is None else known


class Dimension(_Mergeable, int):
    """A known dimension: an int with TensorFlow 1's `.value`, closed under arithmetic."""

    __slots__ = ()

    @property
    def value(self) -> int:
        """The dimension as a plain int."""
        return int(self)


def _arithmetic(name: str) -> Callable[..., Any]:
    compute = getattr(int, name)

    def method(self: int, other: Any) -> Any:
        result = compute(self, other)
        return Dimension(result) if isinstance(result, int) else result

    return method


for _name in ("add", "sub", "mul", "floordiv", "mod"):
    for _side in ("", "r"):
        setattr(Dimension, f"__{_side}{_name}__", _arithmetic(f"__{_side}{_name}__"))


class UnknownDimension(_Mergeable):
    """TensorFlow 1's `Dimension(None)`: arithmetic with it is unknown, comparisons give None."""

    __slots__ = ()
    value = None

    def _unknown(self, other: Any = None) -> UnknownDimension:
        return self

    def _undecided(self, other: Any) -> Any:
        number = other is None or hasattr(other, "__index__") or hasattr(other, "value")
        return None if number else NotImplemented

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _unknown
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _unknown
    __lt__ = __le__ = __gt__ = __ge__ = _undecided
    __eq__ = __ne__ = _undecided

    def __hash__(self) -> int:
        return hash(None)

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "Dimension(None)"

    def __str__(self) -> str:
        return "?"


UNKNOWN_DIMENSION = UnknownDimension()
_VERSION_1 = "estimatorkit.compat.v1"


def _asked_by_version_1() -> bool:
    """Whether the calling module has imported `compat.v1`.

    TensorFlow has a process-wide switch (`disable_v2_tensorshape`); here modules of both kinds can
    share a process, and this package itself relies on None.
    """
    if _VERSION_1 not in sys.modules:
        return False
    scope = sys._getframe(2).f_globals
    name = scope.get("__name__", "")
    return not name.startswith("estimatorkit.") and any(
        isinstance(value, ModuleType) and f"{value.__name__}.".startswith(f"{_VERSION_1}.")
        for value in list(scope.values())
    )


class TensorShape:
    """A static shape, possibly partially known.

    Args:
        dims: None (unknown rank), an int (a vector), a sequence of ints and None, or a
            `TensorShapeProto`, in which -1 is unknown.

    Raises:
        ValueError: a dimension is negative.
        TypeError: it is not an integer.
    """

    __slots__ = ("_dims",)

    def __init__(self, dims: ShapeLike) -> None:
        self._dims: Dims | None
        if dims is None:
            self._dims = None
        elif isinstance(dims, TensorShape):
            self._dims = dims._dims
        elif isinstance(dims, Iterable):
            self._dims = tuple(_dimension(dim) for dim in dims)
        elif hasattr(dims, "unknown_rank"):
            sizes = (None if dim.size == -1 else _dimension(dim.size) for dim in dims.dim)
            self._dims = None if dims.unknown_rank else tuple(sizes)
        else:
            self._dims = (_dimension(dims),)

    def __reduce__(self) -> Any:
        return TensorShape, (self._dims,)

    @property
    def dims(self) -> Dims | None:
        """The dimensions, or None if the rank is unknown."""
        if self._dims is not None and None in self._dims and _asked_by_version_1():
            return ShapeOfDimensions(self).dims  # type: ignore[no-any-return]
        return self._dims

    @property
    def rank(self) -> int | None:
        """The number of dimensions, or None."""
        return None if self._dims is None else len(self._dims)

    @property
    def ndims(self) -> int | None:
        """The same as `rank`."""
        return self.rank

    def as_list(self) -> list[int | None]:
        """The dimensions as a list.

        Raises:
            ValueError: the rank is unknown.
        """
        if self._dims is None:
            raise ValueError("as_list() is not defined on an unknown TensorShape.")
        return [None if dim is None else int(dim) for dim in self._dims]

    def as_proto(self) -> Any:
        """This shape as a `TensorShapeProto`."""
        from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto

        if self._dims is None:
            return TensorShapeProto(unknown_rank=True)
        dims = [TensorShapeProto.Dim(size=-1 if dim is None else dim) for dim in self._dims]
        return TensorShapeProto(dim=dims)

    def is_fully_defined(self) -> bool:
        """Whether every dimension is known."""
        return self._dims is not None and None not in self._dims

    def num_elements(self) -> int | None:
        """The product of the dimensions, or None if one is unknown."""
        if self._dims is None:
            return None
        count = 1
        for dim in self._dims:
            if dim is None:
                return None
            count *= dim
        return count

    def is_compatible_with(self, other: ShapeLike) -> bool:
        """Whether a fully defined shape exists that both describe."""
        dims = as_shape(other)._dims
        if self._dims is None or dims is None:
            return True
        return len(self._dims) == len(dims) and all(
            one is None or two is None or one == two
            for one, two in zip(self._dims, dims, strict=True)
        )

    def merge_with(self, other: ShapeLike) -> TensorShape:
        """The shape with the known dimensions of both.

        Raises:
            ValueError: they are incompatible.
        """
        given = as_shape(other)
        if not self.is_compatible_with(given):
            raise ValueError(f"Shapes {self} and {given} are not compatible.")
        if self._dims is None:
            return given
        if given._dims is None:
            return self
        return TensorShape(
            [two if one is None else one for one, two in zip(self._dims, given._dims, strict=True)]
        )

    def most_specific_compatible_shape(self, other: ShapeLike) -> TensorShape:
        """The most specific shape that is compatible with both."""
        dims = as_shape(other)._dims
        if self._dims is None or dims is None or len(self._dims) != len(dims):
            return TensorShape(None)
        return TensorShape(
            [one if one == two else None for one, two in zip(self._dims, dims, strict=True)]
        )

    def concatenate(self, other: ShapeLike) -> TensorShape:
        """The concatenation of this shape and another."""
        dims = as_shape(other)._dims
        if self._dims is None or dims is None:
            return TensorShape(None)
        return TensorShape(self._dims + dims)

    def with_rank(self, rank: int) -> TensorShape:
        """This shape, with `rank` dimensions.

        Raises:
            ValueError: it has another rank.
        """
        self.assert_has_rank(rank)
        return self.merge_with([None] * rank)

    def with_rank_at_least(self, rank: int) -> TensorShape:
        """This shape.

        Raises:
            ValueError: it is known to have fewer than `rank` dimensions.
        """
        if self.rank is not None and self.rank < rank:
            raise ValueError(f"Shape {self} must have rank at least {rank}")
        return self

    def with_rank_at_most(self, rank: int) -> TensorShape:
        """This shape.

        Raises:
            ValueError: it is known to have more than `rank` dimensions.
        """
        if self.rank is not None and self.rank > rank:
            raise ValueError(f"Shape {self} must have rank at most {rank}")
        return self

    def assert_is_compatible_with(self, other: ShapeLike) -> None:
        """Raises ValueError if the shapes are incompatible."""
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {as_shape(other)} are incompatible.")

    def assert_has_rank(self, rank: int) -> None:
        """Raises ValueError if the rank is known to differ."""
        if self.rank not in (None, rank):
            raise ValueError(f"Shape {self} must have rank {rank}.")

    def assert_same_rank(self, other: ShapeLike) -> None:
        """Raises ValueError if the ranks are known to differ."""
        ranks = (self.rank, as_shape(other).rank)
        if None not in ranks and ranks[0] != ranks[1]:
            raise ValueError(f"Shapes {self} and {as_shape(other)} must have the same rank")

    def assert_is_fully_defined(self) -> None:
        """Raises ValueError if a dimension is unknown."""
        if not self.is_fully_defined():
            raise ValueError(f"Shape {self} is not fully defined")

    def __len__(self) -> int:
        if self._dims is None:
            raise ValueError("Cannot take the length of shape with unknown rank.")
        return len(self._dims)

    def __bool__(self) -> bool:
        return self._dims is not None

    def __iter__(self) -> Iterator[Any]:
        if self._dims is None:
            raise ValueError("Cannot iterate over a shape with unknown rank.")
        if None in self._dims and _asked_by_version_1():
            return iter([UNKNOWN_DIMENSION if dim is None else dim for dim in self._dims])
        return iter(self._dims)

    @overload
    def __getitem__(self, key: int) -> int | None: ...
    @overload
    def __getitem__(self, key: slice) -> TensorShape: ...
    def __getitem__(self, key: int | slice) -> Any:
        if isinstance(key, slice):
            return TensorShape(_unknown_slice(key) if self._dims is None else self._dims[key])
        dim = None if self._dims is None else self._dims[key]
        return UNKNOWN_DIMENSION if dim is None and _asked_by_version_1() else dim

    def __add__(self, other: ShapeLike) -> TensorShape:
        return self.concatenate(other)

    def __radd__(self, other: ShapeLike) -> TensorShape:
        return as_shape(other).concatenate(self)

    def __eq__(self, other: object) -> bool:
        try:
            return self._dims == as_shape(other)._dims
        except (TypeError, ValueError):
            return False

    def __hash__(self) -> int:
        return hash(self._dims)

    def __repr__(self) -> str:
        return f"TensorShape({None if self._dims is None else list(self._dims)})"

    def __str__(self) -> str:
        if self._dims is None:
            return "<unknown>"
        if len(self._dims) == 1:
            return f"({'?' if self._dims[0] is None else self._dims[0]},)"
        return "(" + ", ".join("?" if dim is None else str(dim) for dim in self._dims) + ")"


class ShapeOfDimensions(TensorShape):
    """A shape whose unknown dimensions are `UNKNOWN_DIMENSION` rather than None."""

    __slots__ = ()

    @property
    def dims(self) -> Any:
        """The dimensions as a list, or None if the rank is unknown."""
        return None if self._dims is None else list(self)

    def __iter__(self) -> Iterator[Any]:
        return (UNKNOWN_DIMENSION if dim is None else dim for dim in super().__iter__())

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return ShapeOfDimensions(super().__getitem__(key))
        dim = super().__getitem__(key)
        return UNKNOWN_DIMENSION if dim is None else dim


ShapeLike: TypeAlias = Any  # TensorShape | int | None | Iterable[int | None], NumPy ints included


_TOO_LARGE = 1 << 63
_MOST_DIMENSIONS = 64


def numpy_holds(shape: Sequence[int], itemsize: int) -> bool:
    """Whether NumPy supports arrays of this shape: at most 64 dimensions, and a size in bytes
    (ignoring zero dimensions) of less than 2**63."""
    return len(shape) <= _MOST_DIMENSIONS and math.prod(filter(None, shape)) * itemsize < _TOO_LARGE


def _dimension(value: Any) -> int | None:
    if value is None or (type(value) is Dimension and value >= 0):
        return value
    value = getattr(value, "value", value)  # TensorFlow 1's Dimension
    if value is None:
        return None
    try:
        dim = value.__index__()
    except AttributeError as error:
        raise type_error(
            "a dimension of a shape is not an integer", expected="int or None", received=repr(value)
        ) from error
    if not 0 <= dim < _TOO_LARGE:
        problem = "must be >= 0" if dim < 0 else "is too large"
        raise value_error(
            f"Dimension {dim} {problem}",
            expected="0 to 2**63 - 1, or None where it is not known",
            received=dim,
        )
    return Dimension(dim)


def _unknown_slice(key: slice) -> list[None] | None:
    """The dimensions of a slice of a shape of unknown rank, if it determines their number."""
    start, stop = key.start or 0, key.stop
    if key.step is not None or stop is None or start < 0 or stop < 0:
        return None
    return [None] * max(stop - start, 0)


def as_shape(value: ShapeLike) -> TensorShape:
    """Converts to a `TensorShape`, which lists the accepted values."""
    return value if type(value) is TensorShape else TensorShape(value)


UNKNOWN = TensorShape(None)
SCALAR = TensorShape(())


def differ(shape: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether two array shapes are known to differ; JAX's symbolic dimensions match any size."""
    if len(shape) != len(other):
        return True
    return any(is_comparable(a, b) and a != b for a, b in zip(shape, other, strict=True))
