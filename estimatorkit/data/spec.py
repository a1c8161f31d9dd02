"""What an element is (`TensorSpec` structures), and how values become columns.

An element is a nested structure of dicts, tuples and named tuples; its leaves are arrays. A list is
a value and becomes an array, as in `tf.data`. A DataFrame counts as the dict of its columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core import dtypes, nest
from estimatorkit.core.dtypes import DType, as_dtype
from estimatorkit.core.errors import explain
from estimatorkit.core.shapes import ShapeLike, TensorShape, as_shape


@dataclass(frozen=True)
class TensorSpec:
    """The static shape and dtype of one leaf (`tf.TensorSpec`).

    Args:
        shape: anything that `TensorShape` takes; None where the rank is unknown.
        dtype: anything that `as_dtype` takes; default float32.
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
        """Whether a value may fit both."""
        return self.dtype is other.dtype and self.shape.is_compatible_with(other.shape)

    def __repr__(self) -> str:
        named = "" if self.name is None else f", name={self.name!r}"
        return f"TensorSpec(shape={self.shape}, dtype={self.dtype.name}{named})"


def flatten(structure: Any) -> list[Any]:
    """The leaves of an element structure (lists are leaves)."""
    return nest.flatten(structure, lists_are_leaves=True)


def pack(structure: Any, leaves: list[Any]) -> Any:
    """Puts `leaves` where those of `structure` are."""
    return nest.pack_sequence_as(structure, leaves, lists_are_leaves=True)


def leaf_names(structure: Any) -> list[str]:
    """Names the leaves for messages: `component ['age']`, or `the value` for a single leaf."""
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
        else:
            names.append(f"component {path}" if path else "the value")

    visit(structure, "")
    return names


def to_columns(structure: Any, what: str) -> tuple[Any, list[NDArray[Any]]]:
    """Converts the leaves of a structure to arrays.

    Args:
        structure: nested arrays, lists, scalars, Series, DataFrames.
        what: the function that was called, for messages.

    Returns:
        The structure (DataFrames opened into dicts), whose leaves are arrays, and these leaves.

    Raises:
        ValueError: the structure has no leaf, or a list is ragged, or a value is None.
        TypeError: a leaf cannot become a tensor.
    """
    structure = nest.map_structure(_open_dataframe, structure, lists_are_leaves=True)
    leaves = flatten(structure)
    if not leaves:
        raise ValueError(
            explain(
                f"{what} got an empty structure",
                expected="an array, or a dict or tuple with at least one array",
                received=repr(structure),
            )
        )
    names = leaf_names(structure)
    columns = [to_array(leaf, f"{what}: {name}") for leaf, name in zip(leaves, names, strict=True)]
    return pack(structure, columns), columns


def _open_dataframe(leaf: Any) -> Any:
    # By name, so that pandas is imported only by those who use it.
    if type(leaf).__name__ == "DataFrame" and hasattr(leaf, "columns"):
        return {key: leaf[key] for key in leaf.columns}
    return leaf


def to_array(value: Any, where: str, dtype: DType | None = None) -> NDArray[Any]:
    """Converts one value to a C-contiguous array of a tensor's dtype; no copy where it is one.

    Arrays and Series keep their dtype; Python ints become int32 (int64 where they do not fit) and
    floats float32; strings become objects of `bytes` (UTF-8).

    Args:
        value: an array, Series, scalar or rectangular list.
        where: what is converted, for messages.
        dtype: the dtype wanted; by default the value's own.

    Raises:
        ValueError: a ragged list, or a missing value (None, NaN) among strings.
        TypeError: dates, Python objects: nothing that a tensor holds.
    """
    if hasattr(
        value, "to_numpy"
    ):  # a Series or Index; nullable and categorical ones give objects or values
        value = value.to_numpy()
    first = _first(value)
    try:
        # NumPy would make "1" of 1 in a list of strings: objects keep what they are, to be checked.
        array = np.asarray(value, object if isinstance(first, (str, bytes)) else None)
    except ValueError as error:
        raise _ragged(value, where) from error
    if array.dtype.kind == "U" and not hasattr(value, "dtype"):
        array = np.asarray(value, object)  # a list that begins with a number
    if array.dtype.kind in "OSUT":
        array = _as_bytes(array, value, where)
    elif not isinstance(value, (np.ndarray, np.generic)) and not isinstance(
        first, (np.ndarray, np.floating)
    ):
        array = _narrow(array)
    try:
        found = as_dtype(array.dtype)
    except TypeError as error:
        raise TypeError(
            explain(
                f"{where} cannot become a tensor",
                expected="numbers, booleans or strings",
                received=f"{array.dtype}: {_excerpt(value)}",
                hint="convert dates to numbers, for example with .astype('int64')"
                if array.dtype.kind in "mM"
                else None,
            )
        ) from error
    wanted = found if dtype is None else dtype
    if not np.can_cast(found.numpy_dtype, wanted.numpy_dtype, "same_kind"):
        raise TypeError(
            explain(
                f"{where} has another dtype than declared",
                expected=wanted.name,
                received=f"{found.name}: {_excerpt(value)}",
            )
        )
    # Also makes the byte order native. ascontiguousarray would turn a scalar into a vector.
    return np.asarray(array, dtype=wanted.numpy_dtype, order="C")


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
            raise ValueError(
                explain(
                    f"{where} holds a missing value at position {index}",
                    expected="strings",
                    received=repr(item),
                    hint="fill missing values first, for example with .fillna('')",
                )
            )
        else:
            raise TypeError(
                explain(
                    f"{where} mixes strings with other objects, or holds objects",
                    expected="numbers, or strings only",
                    received=f"{type(item).__name__} at position {index}: {_excerpt(value)}",
                    hint="give the array a numeric dtype, for example with .astype('float32')",
                )
            )
    return out


def _is_missing(item: Any) -> bool:
    # pandas' NA has no truth value, so it is known by the name of its type.
    return item is None or type(item).__name__ == "NAType" or bool(item != item)


def _ragged(value: Any, where: str) -> ValueError:
    return ValueError(
        explain(
            f"{where} is a ragged list",
            expected="rows of equal length",
            received=_excerpt(value),
            hint="pad the rows to one length",
        )
    )


def _excerpt(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else text[:77] + "..."
