"""Conversion of Python values to tensors: `convert_to_tensor`, `constant`, and `make`, used by
every op.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core import nest, registry
from estimatorkit.core.dtypes import DType, as_dtype, int32, int64, string
from estimatorkit.core.errors import explain, type_error, value_error
from estimatorkit.core.graph import get_default_graph, in_graph_of
from estimatorkit.core.registry import Spec
from estimatorkit.core.shapes import Dimension, TensorShape, UnknownDimension, as_shape
from estimatorkit.core.tensor import Tensor, holds_tensors


def as_array(value: Any, dtype: DType | None = None) -> NDArray[Any]:
    """`value` as an array with TensorFlow's default dtypes.

    Args:
        value: an array, or arbitrarily nested lists of numbers, strings or bools.
        dtype: the dtype; by default that of an array or a NumPy scalar; float32 for Python floats
            and lists of floats, int32 for Python ints and lists of integers (int64 if they do not
            fit).

    Raises:
        TypeError: the value cannot be converted to the dtype without loss (a float to an int, a
            number to a string); arrays are cast as in NumPy.
        ValueError: the value is ragged or holds None.
    """
    if value is None:
        raise ValueError("None values not supported.")
    if isinstance(value, (TensorShape, Dimension, UnknownDimension)):
        value = _of_shape(value, dtype)
    try:
        # As objects: NumPy's own strings lose zero bytes at their end.
        array = np.asarray(value, object if isinstance(_first(value), (str, bytes)) else None)
    except ValueError as error:
        raise value_error(
            "setting an array element with a sequence: Argument must be a dense tensor",
            expected="lists nested to the same depth with equal lengths",
            received=repr(value)[:200],
        ) from error
    if array.dtype.kind in "SU" and not isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value, object)  # numbers beside strings stay numbers, and are refused
    if array.dtype.kind in "OSU" or dtype is string:
        return _as_strings(array, value, dtype)
    if dtype is None:
        return _default_dtype(array, value)
    wanted = dtype.numpy_dtype
    if array.dtype == wanted:
        return array
    kinds = {"b": 0, "u": 1, "i": 1, "f": 2, "V": 2, "c": 3}
    fits = kinds.get(array.dtype.kind, 9) <= kinds.get(wanted.kind, 9) or (
        array.size == 0 or (dtype.is_floating and array.dtype.kind in "fV")
    )
    if wanted.kind == "b" and array.size:
        fits = False
    if array.dtype.kind in _NUMBERS and isinstance(value, (np.ndarray, np.generic)):
        with np.errstate(invalid="ignore"):  # arrays are cast, as NumPy does
            return (array.real if wanted.kind != "c" else array).astype(wanted)
    if not fits or not _in_range(array, wanted):
        first = _first(value)
        raise type_error(
            f"Expected {dtype.name}, but got {first!r} of type {type(first).__name__!r}"
            + (" out of its range" if fits else ""),
            expected=dtype.name,
            received=repr(value)[:200],
            hint="use cast() for a conversion that may lose something",
        )
    return array.astype(wanted)


_NUMBERS = "biufcV"
"""Kinds of NumPy's dtypes; bfloat16's is `V`."""


def _of_shape(value: Any, dtype: DType | None) -> Any:
    """A shape as a vector, a dimension as a scalar."""
    if isinstance(value, UnknownDimension):
        raise ValueError("Cannot convert an unknown Dimension to a Tensor: unknown Dimension")
    if isinstance(value, TensorShape) and not value.is_fully_defined():
        raise ValueError(f"Cannot convert a partially known TensorShape {value} to a Tensor.")
    if dtype not in (None, int32, int64):
        raise TypeError(f"Cannot convert shape {value} to dtype {dtype}: use int32 or int64.")
    sizes = value.value if isinstance(value, Dimension) else value.as_list()
    if not np.size(sizes) or np.max(sizes) <= np.iinfo(np.int32).max:
        return np.asarray(sizes, np.int32)
    if dtype is int32:
        raise value_error(
            f"Cannot convert shape {value} to dtype int32: a dimension is too large",
            hint="use int64",
        )
    return np.asarray(sizes, np.int64)


def _in_range(array: NDArray[Any], wanted: np.dtype[Any]) -> bool:
    if array.dtype.kind not in "iu" or wanted.kind not in "iu" or not array.size:
        return True
    limits = np.iinfo(wanted)
    return bool(limits.min <= array.min() and array.max() <= limits.max)


def _first(value: Any) -> Any:
    """The first leaf of nested lists."""
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    return value


def _default_dtype(array: NDArray[Any], value: Any) -> NDArray[Any]:
    if isinstance(value, (np.ndarray, np.generic)) or hasattr(value, "__array__"):
        as_dtype(array.dtype)  # raises on dtypes that tensors cannot have
        return array
    # NumPy's scalars in a list count as Python's numbers, as in TensorFlow's graphs.
    if isinstance(first := _first(value), np.ndarray) and first.ndim > 0:
        return array
    if array.dtype == np.float64:
        return array.astype(np.float32)
    if array.dtype == np.int64:
        limits = np.iinfo(np.int32)
        if array.size == 0 or (limits.min <= array.min() and array.max() <= limits.max):
            return array.astype(np.int32)
    return array


def _as_strings(array: NDArray[Any], value: Any, dtype: DType | None) -> NDArray[Any]:
    if dtype in (None, string):  # 60 ns a string; 600 one by one
        items = array.reshape(-1).tolist()
        if items and type(items[0]) is bytes and set(map(type, items)) == {bytes}:
            return array if array.dtype == object else array.astype(object)
        try:
            return np.fromiter(map(str.encode, items), object, len(items)).reshape(array.shape)
        except TypeError:  # something other than a str among them
            pass
    result = np.empty(array.shape, object)
    for index, each in enumerate(array.flat):
        if isinstance(each, str):
            each = each.encode()
        if isinstance(each, int) and each.bit_length() > 63:
            raise value_error(
                "Can't convert a Python integer that is out of range to a tensor",
                expected="integers of at most 64 bits",
                received=f"an integer of {each.bit_length()} bits",
            )
        if not isinstance(each, bytes) or dtype not in (None, string):
            raise type_error(
                f"Expected {dtype.name if dtype else 'string or numbers'}, but got {each!r} "
                f"of type {type(each).__name__}",
                received=repr(value)[:200],
            )
        result.flat[index] = each
    return result


def convert_to_tensor(
    value: Any,
    dtype: Any = None,
    name: str | None = None,
    preferred_dtype: Any = None,
    dtype_hint: Any = None,
) -> Tensor:
    """Converts a value to a tensor.

    Args:
        value: a tensor (returned unchanged), a variable, an array, a number, a string, or nested
            lists of these; lists that contain tensors are stacked.
        dtype: the dtype.
        name: the name of the constant, if one is created.
        preferred_dtype: the dtype to try first if `dtype` is None; the same as `dtype_hint`.

    Raises:
        TypeError: the value cannot be converted to `dtype`.
        ValueError: the value cannot be converted to a tensor, or is one of another dtype.
    """
    wanted = None if dtype is None else as_dtype(dtype)
    if isinstance(value, Tensor):
        tensor = value
    elif hasattr(value, "_as_tensor"):
        tensor = value._as_tensor()
    elif (found := _converted(value, wanted, name)) is not None:
        tensor = found
    elif isinstance(value, (list, tuple)) and (holds_tensors(value) or _holds_registered(value)):
        hint = wanted or _first_dtype(value)
        other = next((each for each in _tensors_in(value) if each.dtype is not hint), None)
        if other is not None:
            raise type_error(
                f"Cannot convert a list containing a tensor of dtype {other.dtype} to {hint}",
                received=other,
                made_at=other.op.source,
            )
        parts = [convert_to_tensor(each, hint) for each in value]
        tensor = registry.output("Pack", parts, {"axis": 0}, name or "packed")
    else:
        preferred = preferred_dtype or dtype_hint
        if wanted is None and preferred is not None:
            try:
                return constant(value, preferred, name=name or "Const")
            except TypeError:
                pass  # the dtype was only a preference
        return constant(value, wanted, name=name or "Const")
    if wanted is not None and tensor.dtype is not wanted:
        raise value_error(
            f"Tensor conversion requested dtype {wanted.name} for Tensor with dtype "
            f"{tensor.dtype.name}",
            received=tensor,
            made_at=tensor.op.source,
            hint=f"use cast(x, {wanted.name})",
        )
    return tensor


_CONVERSIONS: list[tuple[int, type, Callable[..., Any]]] = []


def register_tensor_conversion_function(
    base_type: type | tuple[type, ...],
    conversion_func: Callable[..., Any],
    priority: int = 100,
) -> None:
    """Registers how instances of a class are converted to tensors.

    Args:
        base_type: the class or classes.
        conversion_func: called with `(value, dtype=None, name=None, as_ref=False)`; returns a
            tensor, or NotImplemented to defer to other functions.
        priority: functions with lower numbers are tried first.

    Raises:
        TypeError: `base_type` is not a class, or `conversion_func` not callable.
    """
    classes = base_type if isinstance(base_type, tuple) else (base_type,)
    if not all(isinstance(each, type) for each in classes):
        raise TypeError("base_type must be a type or a tuple of types.")
    if not callable(conversion_func):
        raise TypeError("conversion_func must be callable.")
    _CONVERSIONS.extend((priority, each, conversion_func) for each in classes)
    _CONVERSIONS.sort(key=lambda entry: entry[0])


def _converted(value: Any, dtype: DType | None, name: str | None) -> Tensor | None:
    for _, each, function in _CONVERSIONS:
        if isinstance(value, each):
            found = function(value, dtype=dtype, name=name, as_ref=False)
            if found is NotImplemented:
                continue
            called = f"Conversion function {function!r} for type {each} returned"
            if not isinstance(found, Tensor):
                raise RuntimeError(
                    explain(
                        f"{called} non-Tensor",
                        expected="a Tensor or NotImplemented",
                        received=repr(found)[:200],
                    )
                )
            if dtype is not None and found.dtype is not dtype:
                raise RuntimeError(
                    explain(
                        f"{called} incompatible dtype",
                        expected=dtype.name,
                        received=found.dtype.name,
                    )
                )
            return found
    return None


def _holds_registered(value: Any) -> bool:
    """Whether nested lists contain an instance of a class with a registered conversion."""
    if not _CONVERSIONS:
        return False
    classes = tuple(each for _, each, _ in _CONVERSIONS)
    return any(isinstance(leaf, classes) for leaf in nest.flatten(value))


def _tensors_in(value: Any) -> Iterator[Tensor]:
    for each in value:
        if isinstance(each, Tensor):
            yield each
        elif isinstance(each, (list, tuple)):
            yield from _tensors_in(each)


def _first_dtype(value: Any) -> DType | None:
    for each in value:
        if isinstance(each, Tensor) or hasattr(each, "_as_tensor"):
            return as_dtype(getattr(each, "read_dtype", each.dtype))
        if isinstance(each, (list, tuple)) and (found := _first_dtype(each)):
            return found
    return None


def constant(
    value: Any,
    dtype: Any = None,
    shape: Any = None,
    name: str = "Const",
    verify_shape: bool = False,
) -> Tensor:
    """Creates a constant tensor.

    Args:
        value: an array, or arbitrarily nested lists of numbers, strings or bools.
        dtype: the dtype; see `as_array` for the default.
        shape: the shape; if it has more elements than `value`, the last element is repeated, as in
            TensorFlow 1.
        name: the operation's name.
        verify_shape: raise an error if `value` does not already have `shape`.

    Raises:
        TypeError: the value cannot be converted to `dtype`, or does not have `shape` although
            `verify_shape` is set.
        ValueError: it has more elements than `shape`.
    """
    array = as_array(value, None if dtype is None else as_dtype(dtype))
    if shape is not None:
        array = _filled(array, tuple(as_shape(shape).as_list()), verify_shape)
    if array.dtype.kind != "O":
        array = array.copy() if array.flags.writeable else array
        array.flags.writeable = False
    return registry.output("Const", (), {"value": array}, name)


def _filled(array: NDArray[Any], shape: tuple[Any, ...], verify: bool) -> NDArray[Any]:
    if array.shape == shape:
        return array
    if verify:
        raise TypeError(f"Expected Tensor's shape: {shape}, but got {array.shape}.")
    count = int(np.prod(shape, dtype=np.int64))
    if array.size == 1 and not count:
        return np.empty(shape, array.dtype)
    if array.size > count or (array.size == 0 and count):
        raise value_error(
            f"Too many elements provided. Takes at most {count}, but got {array.size}"
            if array.size > count
            else "a constant's value does not match its shape",
            expected=f"shape {shape}, {count} elements",
            received=f"shape {array.shape}, {array.size} elements",
        )
    flat = array.reshape(-1)
    if flat.size < count:
        flat = np.concatenate([flat, np.full(count - flat.size, flat[-1], flat.dtype)])
    return flat.reshape(shape)


def _infer_const(inputs: Any, attrs: Mapping[str, Any]) -> list[Spec]:
    value = attrs["value"]
    return [Spec(as_dtype(value.dtype), as_shape(value.shape))]


registry.register(
    "Const",
    lambda value: value,
    role=registry.Role.CONSTANT,
    infer=_infer_const,
    gradient=None,
    numpy_kernel=lambda value: value,
    cases=lambda: [registry.Case((), {"value": np.array([1.0, 2.0], np.float32)})],
)


def make(
    op_type: str,
    inputs: Mapping[str, Any],
    attrs: dict[str, Any] | None = None,
    name: str | None = None,
    *,
    same_dtype: bool = False,
    dtypes: Mapping[str, Any] | None = None,
) -> Tensor:
    """Creates an operation with one output, converting its inputs to tensors.

    Inputs that are not tensors become constants named after the input (`Add/x`), as in TensorFlow.

    Args:
        op_type: the type.
        inputs: the inputs by name, in order.
        attrs: attributes for the kernel.
        name: the requested name; the type by default.
        same_dtype: all inputs must have the dtype of the first tensor among them, but for those
            that are the value of an attribute of their name.
        dtypes: the dtypes of some inputs.

    Raises:
        TypeError, ValueError: an input cannot be converted.
    """
    alike = [key for key in inputs if not attrs or key not in attrs] if same_dtype else []
    if all([isinstance(value, Tensor) for value in inputs.values()]):
        tensors = list(inputs.values())
        registry.check_same_dtype(op_type, [inputs[key] for key in alike], name)
        return registry.output(op_type, tensors, attrs, name)
    with in_graph_of(inputs.values()), get_default_graph().name_scope(name or op_type) as scope:
        shared = _first_dtype(inputs[key] for key in alike)
        tensors = []
        for key, value in inputs.items():
            wanted = (dtypes or {}).get(key)
            if wanted is not None and isinstance(value, Tensor) and value.dtype != wanted:
                raise type_error(
                    f"Input {key!r} of {(name or op_type)!r} ({op_type}) has type "
                    f"{value.dtype.name} that does not match expected type of "
                    f"{as_dtype(wanted).name}",
                    received=value,
                    made_at=value.op.source,
                    hint=f"use cast(x, {as_dtype(wanted).name})",
                )
            try:
                tensor = convert_to_tensor(
                    value, wanted, key, dtype_hint=shared if key in alike and not wanted else None
                )
            except (TypeError, ValueError) as error:
                raise type(error)(
                    f"{name or op_type}: input {key!r} cannot be used. {error}"
                ) from error
            shared = shared or (tensor.dtype if key in alike else None)
            tensors.append(tensor)
        shared_by = [each for key, each in zip(inputs, tensors, strict=True) if key in alike]
        registry.check_same_dtype(op_type, shared_by, name)
        return registry.output(op_type, tensors, attrs, scope)


def whole_numbers(value: Any) -> Any:
    """An argument for integers: arrays of floats are truncated, as in TensorFlow; Python's floats
    stay, to be refused.
    """
    floats = isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind == "f"
    return value.astype(np.int64) if floats else value


def as_index_tensor(value: Any, name: str) -> Tensor:
    """Converts a shape, size or index argument: int32, unless it is int64 already."""
    if isinstance(value, Tensor):
        return value
    if hasattr(value, "as_list"):
        value = value.as_list()
    value = whole_numbers(value)
    tensor = convert_to_tensor(value if _not_empty(value) else np.zeros([0], np.int32), name=name)
    if not tensor.dtype.is_integer:
        raise type_error(
            f"{name} must contain integers", expected="int32 or int64", received=repr(value)[:200]
        )
    return tensor


def _not_empty(value: Any) -> bool:
    return not (isinstance(value, (list, tuple)) and len(value) == 0)


__all__ = ["as_array", "as_index_tensor", "constant", "convert_to_tensor", "make"]
