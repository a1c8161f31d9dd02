"""Element specs (structures of `TensorSpec`s), and the conversion of values to columns.

An element is a nested structure of dicts, tuples and named tuples; its leaves are arrays, sparse
tensors, or datasets (windows). A list is a value and becomes an array, as in `tf.data`. A DataFrame
counts as the dict of its columns. None belongs to the structure: (features, None) has no labels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core import dtypes, nest
from estimatorkit.core.dtypes import DType, as_dtype, float32, int64
from estimatorkit.core.errors import type_error, value_error
from estimatorkit.core.indexed_slices import IndexedSlices
from estimatorkit.core.shapes import UNKNOWN, ShapeLike, TensorShape, as_shape


@dataclass(frozen=True)
class TensorSpec:
    """The static shape and dtype of one leaf (`tf.TensorSpec`).

    Args:
        shape: anything that `TensorShape` accepts; None if the rank is unknown.
        dtype: anything that `as_dtype` accepts; float32 by default.
        name: a name for messages and signatures.
    """

    shape: TensorShape
    dtype: DType
    name: str | None

    def __init__(self, shape: ShapeLike, dtype: Any = dtypes.float32, name: str | None = None):
        object.__setattr__(self, "shape", as_shape(shape))
        object.__setattr__(self, "dtype", as_dtype(dtype))
        object.__setattr__(self, "name", name)

    def is_compatible_with(self, other: TensorSpec) -> bool:
        """Whether a value could match both specs."""
        return self.dtype is other.dtype and self.shape.is_compatible_with(other.shape)

    def __repr__(self) -> str:
        named = "" if self.name is None else f", name={self.name!r}"
        return f"TensorSpec(shape={self.shape}, dtype={self.dtype.name}{named})"


@dataclass(frozen=True)
class SparseTensorSpec:
    """The static shape and dtype of a sparse tensor (`tf.SparseTensorSpec`).

    Args:
        shape: the dense shape.
        dtype: of the values; float32 by default.
    """

    shape: TensorShape
    dtype: DType

    def __init__(self, shape: ShapeLike = None, dtype: Any = dtypes.float32):
        object.__setattr__(self, "shape", as_shape(shape))
        object.__setattr__(self, "dtype", as_dtype(dtype))

    @property
    def parts(self) -> tuple[TensorSpec, ...]:
        """The specs of indices, values and dense shape."""
        rank = self.shape.rank
        return (
            TensorSpec((None, rank), dtypes.int64),
            TensorSpec((None,), self.dtype),
            TensorSpec((rank,), dtypes.int64),
        )

    def is_compatible_with(self, other: Any) -> bool:
        """Whether a value could match both specs."""
        return (
            isinstance(other, SparseTensorSpec)
            and self.dtype is other.dtype
            and self.shape.is_compatible_with(other.shape)
        )

    def __repr__(self) -> str:
        return f"SparseTensorSpec({self.shape}, {self.dtype!r})"


@dataclass(frozen=True)
class IndexedSlicesSpec:
    """The type of an `IndexedSlices`: dtypes and static shapes (`tf.IndexedSlicesSpec`).

    Args:
        shape: the dense shape; unknown by default.
        dtype: the dtype of the values; float32 by default.
        indices_dtype: int32 or int64 (the default).
        dense_shape_dtype: int32, int64, or None if there is no `dense_shape`.
        indices_shape: `(n,)`, unknown by default.
    """

    shape: TensorShape
    dtype: DType
    indices_dtype: DType
    dense_shape_dtype: DType | None
    indices_shape: TensorShape

    def __init__(
        self,
        shape: ShapeLike = None,
        dtype: Any = float32,
        indices_dtype: Any = int64,
        dense_shape_dtype: Any = None,
        indices_shape: ShapeLike = None,
    ) -> None:
        found = {
            "shape": as_shape(shape),
            "dtype": as_dtype(dtype),
            "indices_dtype": as_dtype(indices_dtype),
            "dense_shape_dtype": None if dense_shape_dtype is None else as_dtype(dense_shape_dtype),
            "indices_shape": as_shape(indices_shape).with_rank(1),
        }
        for name, value in found.items():
            object.__setattr__(self, name, value)

    @property
    def value_type(self) -> type[IndexedSlices]:
        """`IndexedSlices`."""
        return IndexedSlices

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Whether a spec or an `IndexedSlices` is compatible with this spec."""
        other = spec_or_value
        if isinstance(other, IndexedSlices):
            other = _spec_of_slices(other)
        return (
            isinstance(other, IndexedSlicesSpec)
            and self.shape.is_compatible_with(other.shape)
            and self.indices_shape.is_compatible_with(other.indices_shape)
            and (self.dtype, self.indices_dtype, self.dense_shape_dtype)
            == (other.dtype, other.indices_dtype, other.dense_shape_dtype)
        )

    def __repr__(self) -> str:
        parts = (self.shape, self.dtype, self.indices_dtype, self.dense_shape_dtype)
        return f"IndexedSlicesSpec({', '.join(map(repr, (*parts, self.indices_shape)))})"


def _spec_of_slices(slices: IndexedSlices) -> IndexedSlicesSpec:
    """The spec of an `IndexedSlices`."""
    whole = slices.dense_shape
    shape = slices.all_values.shape[1:] if slices.all_values.shape.rank else UNKNOWN
    return IndexedSlicesSpec(
        TensorShape([None]).concatenate(shape) if whole is None else slices.shape,
        slices.dtype,
        slices.all_indices.dtype,
        None if whole is None else whole.dtype,
        slices.all_indices.shape,
    )


@dataclass(frozen=True)
class DatasetSpec:
    """A leaf that is itself a dataset, such as a window (`tf.data.DatasetSpec`).

    Args:
        element_spec: the nest of specs of its elements.
        dataset_shape: the leaf's own shape: `()`, or that of a batch of datasets.
    """

    element_spec: Any
    shape: TensorShape

    def __init__(self, element_spec: Any, dataset_shape: ShapeLike = ()):
        object.__setattr__(self, "element_spec", element_spec)
        object.__setattr__(self, "shape", as_shape(dataset_shape))

    @property
    def dtype(self) -> DType:
        """`variant`."""
        return dtypes.variant

    @property
    def parts(self) -> tuple[TensorSpec, ...]:
        """The spec of the handle that represents it."""
        return (TensorSpec(self.shape, dtypes.variant),)

    def is_compatible_with(self, other: Any) -> bool:
        """Whether a value could match both specs."""
        return isinstance(other, DatasetSpec) and compatible(self.element_spec, other.element_spec)

    def __repr__(self) -> str:
        return f"DatasetSpec({self.element_spec!r}, {self.shape})"


LeafSpec: TypeAlias = TensorSpec | SparseTensorSpec | DatasetSpec
"""The spec of a leaf."""


def compatible(one: Any, two: Any) -> bool:
    """Whether two specs have the same structure, and their leaves the same kind and dtype."""
    try:
        nest.assert_same_structure(one, two, lists_are_leaves=True)
        pairs = list(zip(flatten(one), flatten(two), strict=True))
    except (TypeError, ValueError):
        return False
    return all(type(a) is type(b) and a.dtype is b.dtype for a, b in pairs)


def either(one: Any, two: Any) -> Any:
    """The narrowest spec that covers two leaves of the same kind and dtype."""
    if isinstance(one, DatasetSpec):
        return one
    if one.shape.rank is None or one.shape.rank != two.shape.rank:
        return type(one)(None, one.dtype)
    dims = [a if a == b else None for a, b in zip(one.shape, two.shape, strict=True)]
    return type(one)(dims, one.dtype)


def with_leading(spec: Any, dim: int | None) -> Any:
    """The spec of a leaf with an additional leading dimension: that of a batch."""
    shape = TensorShape([dim]) + spec.shape
    if isinstance(spec, DatasetSpec):
        return DatasetSpec(spec.element_spec, shape)
    if isinstance(spec, SparseTensorSpec):
        return SparseTensorSpec(shape, spec.dtype)
    return TensorSpec(shape, spec.dtype, spec.name)


def flatten(structure: Any) -> list[Any]:
    """The leaves of an element structure: lists are leaves, None is part of the structure."""
    return [leaf for leaf in nest.flatten(structure, lists_are_leaves=True) if leaf is not None]


def flatten_as(spec: Any, value: Any) -> list[Any]:
    """The leaves of `value`, flattened as far as `spec`: a leaf may itself be a tuple.

    Raises:
        ValueError: `value` has another structure.
    """
    if isinstance(spec, Mapping):
        if not isinstance(value, Mapping) or value.keys() != spec.keys():
            raise ValueError(f"expected a dict with the keys {sorted(spec)}, received {value!r}")
        return [leaf for key in sorted(spec) for leaf in flatten_as(spec[key], value[key])]
    if isinstance(spec, tuple):
        if not isinstance(value, (tuple, list)) or len(value) != len(spec):
            raise ValueError(f"expected {len(spec)} components, received {value!r}")
        pairs = zip(spec, value, strict=True)
        return [leaf for part, each in pairs for leaf in flatten_as(part, each)]
    return [] if spec is None else [value]


def pack(structure: Any, leaves: list[Any]) -> Any:
    """Packs `leaves` into the structure of `structure`."""
    places = nest.flatten(structure, lists_are_leaves=True)
    if any(place is None for place in places):
        rest = iter(leaves)
        leaves = [None if place is None else next(rest) for place in places]
    return nest.pack_sequence_as(structure, leaves, lists_are_leaves=True)


def map_leaves(function: Callable[..., Any], structure: Any, *others: Any) -> Any:
    """The structure of the function's results for the leaves of structures."""
    leaves = zip(*map(flatten, (structure, *others)), strict=True)
    return pack(structure, [function(*each) for each in leaves])


def leaf_names(structure: Any) -> list[str]:
    """Names of the leaves for messages: `component ['age']`, or `the value` for a single leaf."""
    names: list[str] = []

    def visit(part: Any, path: str) -> None:
        if isinstance(part, Mapping):
            for key in sorted(part):
                visit(part[key], f"{path}[{key!r}]")
        elif nest.is_namedtuple(part):
            for field, child in zip(part._fields, part, strict=True):
                visit(child, f"{path}.{field}")
        elif isinstance(part, tuple):
            for index, child in enumerate(part):
                visit(child, f"{path}[{index}]")
        elif part is not None:
            names.append(f"component {path}" if path else "the value")

    visit(structure, "")
    return names


def of_types(
    output_types: Any, output_shapes: Any = None, classes: Sequence[Any] | None = None
) -> Any:
    """The spec of elements given by nests of dtypes and shapes, as in TensorFlow 1.

    Args:
        output_shapes: the nest of shapes; unknown by default.
        classes: `TensorSpec` or `SparseTensorSpec` for each leaf; `TensorSpec` by default.

    Raises:
        ValueError: the shapes have another structure.
    """
    dtypes = flatten(output_types)
    unknown = output_shapes is None
    shapes = [None] * len(dtypes) if unknown else flatten_as(output_types, output_shapes)
    leaves = [
        kind(as_shape(shape), as_dtype(dtype))
        for kind, shape, dtype in zip(
            classes or [TensorSpec] * len(dtypes), shapes, dtypes, strict=True
        )
    ]
    return pack(output_types, leaves)


def to_array(value: Any, where: str, dtype: DType | None = None) -> NDArray[Any]:
    """Converts a value to a C-contiguous array of a tensor's dtype, without a copy if it is one
    already.

    Arrays and Series keep their dtype; ints and lists of them become int32 (int64 if they
    overflow), floats float32; strings become objects of `bytes` (UTF-8).

    Args:
        value: an array, Series, scalar or rectangular list.
        where: describes the value in messages.
        dtype: the dtype; by default the value's own.

    Raises:
        ValueError: a ragged list, or a missing value (None, NaN) among strings.
        TypeError: dates, Python objects and other values without a tensor dtype.
    """
    if hasattr(
        value, "to_numpy"
    ):  # a Series or Index; nullable and categorical ones become objects or values
        value = value.to_numpy()
    first = _first(value)
    try:
        # NumPy would convert 1 in a list of strings to "1": objects keep their types for the check.
        array = np.asarray(value, object if isinstance(first, (str, bytes)) else None)
    except ValueError as error:
        raise _ragged(value, where) from error
    if array.dtype.kind == "U" and not hasattr(value, "dtype"):
        array = np.asarray(value, object)  # a list whose first element is a number
    if array.dtype.kind in "OSUT":
        array = _as_bytes(array, value, where)
    elif not isinstance(value, (np.ndarray, np.generic)) and not isinstance(first, np.ndarray):
        array = _narrow(array)
    try:
        found = as_dtype(array.dtype)
    except TypeError as error:
        raise type_error(
            f"{where} cannot be converted to a tensor",
            expected="numbers, booleans or strings",
            received=f"{array.dtype}: {_excerpt(value)}",
            hint="convert dates to numbers, for example with .astype('int64')"
            if array.dtype.kind in "mM"
            else None,
        ) from error
    wanted = found if dtype is None else dtype
    if not _fits(array, value, found, wanted):
        raise type_error(
            f"{where} does not have the declared dtype",
            expected=wanted.name,
            received=f"{found.name}: {_excerpt(value)}",
        )
    # Also converts to native byte order. ascontiguousarray would turn a scalar into a vector.
    return np.asarray(array, dtype=wanted.numpy_dtype, order="C")


def _fits(array: NDArray[Any], value: Any, found: DType, wanted: DType) -> bool:
    """Whether an array can have a dtype: numbers of Python by their values, others by kind."""
    if isinstance(value, (np.ndarray, np.generic)):
        return np.can_cast(found.numpy_dtype, wanted.numpy_dtype, "same_kind")
    if not array.size or found is wanted:
        return True
    if found.is_integer and wanted.is_integer:
        limits = np.iinfo(wanted.numpy_dtype)
        return bool(limits.min <= int(array.min()) and int(array.max()) <= limits.max)
    if found.is_integer and wanted.is_bool:
        return bool(np.isin(array, (0, 1)).all())
    if wanted.on_host or found.on_host:
        return found is wanted
    return np.can_cast(found.numpy_dtype, wanted.numpy_dtype, "same_kind")


def _first(value: Any) -> Any:
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    return value


def _narrow(array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype == np.float64:
        return array.astype(np.float32)
    if array.dtype == np.int64:
        limits = np.iinfo(np.int32)
        if array.size == 0 or (array.min() >= limits.min and array.max() <= limits.max):
            return array.astype(np.int32)
    return array


def _as_bytes(array: NDArray[Any], value: Any, where: str) -> NDArray[Any]:
    out = np.empty(array.shape, object)
    flat = out.reshape(-1)
    for index, item in enumerate(array.reshape(-1)):
        if isinstance(item, str):
            flat[index] = item.encode()
        elif isinstance(item, bytes):
            flat[index] = bytes(item)
        elif isinstance(item, (list, tuple, np.ndarray)):
            raise _ragged(value, where)
        elif _is_missing(item):
            raise value_error(
                f"{where} has a missing value at position {index}",
                expected="strings",
                received=repr(item),
                hint="fill missing values first, for example with .fillna('')",
            )
        else:
            raise type_error(
                f"{where} holds objects other than strings",
                expected="numbers, or strings only",
                received=f"{type(item).__name__} at position {index}: {_excerpt(value)}",
                hint="give the array a numeric dtype, for example with .astype('float32')",
            )
    return out


def _is_missing(item: Any) -> bool:
    # pandas' NA has no truth value, so it is recognized by its type's name.
    return item is None or type(item).__name__ == "NAType" or bool(item != item)


def _ragged(value: Any, where: str) -> ValueError:
    return value_error(
        f"{where} is a ragged list",
        expected="rows of equal length",
        received=_excerpt(value),
        hint="pad the rows to the same length",
    )


def _excerpt(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else text[:77] + "..."
