"""Element types: `DType` and its instances (`float32`, `int64`, `string`, ...), as `tf.dtypes`.

A `DType` compares equal to its name and to the equivalent NumPy and Python types. String tensors
are NumPy object arrays of `bytes`, as in TensorFlow. `resource` is for handles (variables,
iterators), `variant` for arbitrary objects (such as nested datasets).
"""

from __future__ import annotations

import functools
from typing import Any

import ml_dtypes
import numpy as np

from estimatorkit.core.errors import did_you_mean, type_error


class DType:
    """The type of a tensor's elements; see this module's instances and `as_dtype`."""

    __slots__ = ("_numpy", "name")

    def __init__(self, name: str, numpy_dtype: Any) -> None:
        self.name = name
        self._numpy: np.dtype[Any] = np.dtype(numpy_dtype)

    @property
    def as_numpy_dtype(self) -> Any:
        """The NumPy scalar type, for example `np.float32`; `np.object_` for strings."""
        return self._numpy.type

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """The `np.dtype`."""
        return self._numpy

    @property
    def base_dtype(self) -> DType:
        """This dtype; there are no reference dtypes."""
        return self

    @property
    def real_dtype(self) -> DType:
        """The dtype of the real part of complex values; this dtype if it is not complex."""
        return as_dtype(np.zeros(0, self._numpy).real.dtype) if self.is_complex else self

    @property
    def is_quantized(self) -> bool:
        """Always False: quantized dtypes are not supported."""
        return False

    @property
    def limits(self) -> tuple[Any, Any]:
        """The intensity range of images of this dtype: 0 and 1, or 0 and the maximum.

        Raises:
            ValueError: images cannot have this dtype.
        """
        if self.is_floating or self.is_bool:
            return 0, 1
        if self.is_integer:
            return 0, self.max
        raise ValueError(f"{self} does not have defined limits.")

    def is_compatible_with(self, other: Any) -> bool:
        """Whether `other`, converted by `as_dtype`, is the same dtype."""
        return self is as_dtype(other)

    @property
    def kind(self) -> str:
        """One letter: f floating, c complex, i integer, b bool, s string, r resource, v variant."""
        if self._numpy.hasobject:
            return self.name[0]
        return "f" if self.is_floating else {"u": "i"}.get(self._numpy.kind, self._numpy.kind)

    @property
    def is_floating(self) -> bool:
        """Whether this is a real floating type, bfloat16 included."""
        return self.name in ("float16", "bfloat16", "float32", "float64")

    @property
    def is_integer(self) -> bool:
        """Whether this is a signed or unsigned integer."""
        return self._numpy.kind in "iu" and self.name != "bfloat16"

    @property
    def is_unsigned(self) -> bool:
        """Whether this is an unsigned integer."""
        return self._numpy.kind == "u"

    @property
    def is_complex(self) -> bool:
        """Whether this is complex64 or complex128."""
        return self._numpy.kind == "c"

    @property
    def is_bool(self) -> bool:
        """Whether this is bool."""
        return self.name == "bool"

    @property
    def is_differentiable(self) -> bool:
        """Whether gradients flow through values of this type."""
        return self.is_floating or self.is_complex

    @property
    def is_wide(self) -> bool:
        """Whether JAX needs 64-bit mode for values of this dtype."""
        return self.name in ("int64", "uint64", "float64", "complex128")

    @property
    def on_host(self) -> bool:
        """Whether values of this dtype can only live on the host."""
        return self.name in ("string", "variant")

    @property
    def size(self) -> int:
        """Bytes per element; 0 for strings and handles, whose size varies."""
        return 0 if self._numpy.hasobject else int(self._numpy.itemsize)

    @property
    def as_datatype_enum(self) -> int:
        """The number of this dtype in GraphDef files."""
        return _ENUMS[self.name]

    @property
    def is_numpy_compatible(self) -> bool:
        """Whether NumPy arrays can hold elements of this dtype."""
        return self.name not in ("resource", "variant")

    @property
    def min(self) -> Any:
        """The lowest finite value."""
        return self._limits().min

    @property
    def max(self) -> Any:
        """The largest finite value."""
        return self._limits().max

    def _limits(self) -> Any:
        if self.is_floating:
            return ml_dtypes.finfo(self._numpy)  # type: ignore[no-untyped-call]
        if self.is_integer:
            return np.iinfo(self._numpy)
        raise TypeError(f"dtype {self.name} has no minimum and maximum.")

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if other is None or isinstance(other, DType):
            return False
        try:
            return as_dtype(other) is self
        except TypeError:
            return False

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"tf.{self.name}"

    def __str__(self) -> str:
        return f"<dtype: {self.name!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return as_dtype, (self.name,)


float16 = DType("float16", np.float16)
bfloat16 = DType("bfloat16", ml_dtypes.bfloat16)
float32 = DType("float32", np.float32)
float64 = DType("float64", np.float64)
int8 = DType("int8", np.int8)
int16 = DType("int16", np.int16)
int32 = DType("int32", np.int32)
int64 = DType("int64", np.int64)
uint8 = DType("uint8", np.uint8)
uint16 = DType("uint16", np.uint16)
uint32 = DType("uint32", np.uint32)
uint64 = DType("uint64", np.uint64)
complex64 = DType("complex64", np.complex64)
complex128 = DType("complex128", np.complex128)
bool_ = DType("bool", np.bool_)
string = DType("string", np.object_)
resource = DType("resource", np.object_)
variant = DType("variant", np.object_)

_FLOATING = (float16, bfloat16, float32, float64)
_SIGNED = (int8, int16, int32, int64)
_UNSIGNED = (uint8, uint16, uint32, uint64)
_COMPLEX = (complex64, complex128)
ALL: dict[str, DType] = {
    dtype.name: dtype
    for dtype in (*_FLOATING, *_SIGNED, *_UNSIGNED, *_COMPLEX, bool_, string, resource)
}
_ENUMS = {
    **{"float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "string": 7},
    **{"complex64": 8, "int64": 9, "bool": 10, "bfloat16": 14, "uint16": 17, "complex128": 18},
    **{"float16": 19, "resource": 20, "variant": 21, "uint32": 22, "uint64": 23},
}
_BY_ENUM = {number: name for name, number in _ENUMS.items() if name in ALL}
_BY_NUMPY: dict[np.dtype[Any], DType] = {
    dtype.numpy_dtype: dtype for dtype in ALL.values() if dtype not in (string, resource)
}
_ALIASES: dict[Any, DType] = {
    "float": float32,
    "double": float64,
    "half": float16,
    "int": int32,
    "str": string,
    "bytes": string,
    "variant": variant,
    float: float32,
    int: int32,
    bool: bool_,
    complex: complex64,
    str: string,
    bytes: string,
    object: string,
}


_CLASSES = {
    "f": _FLOATING,
    "d": (float32, float64),
    "n": _SIGNED,
    "x": (int32, int64),
    "i": (*_SIGNED, *_UNSIGNED),
    "c": _COMPLEX,
    "b": (bool_,),
    "s": (string,),
}


@functools.cache
def members(spec: str) -> tuple[DType, ...]:
    """Expands an abbreviated list of dtypes, in the order of `ALL`.

    Args:
        spec: words; each is the name of a dtype, or letters for classes of dtypes: `f` floating,
            `d` float32 and float64, `i` integers, `n` signed integers, `x` int32 and int64, `c`
            complex, `b` bool, `s` string. For example `"xc uint8"`.
    """
    found: set[DType] = set()
    for word in spec.split():
        found.update([ALL[word]] if word in ALL else (each for c in word for each in _CLASSES[c]))
    return tuple(dtype for dtype in ALL.values() if dtype in found)


def as_dtype(value: Any) -> DType:
    """Converts to a `DType`.

    Args:
        value: a DType, a name ("float32"), a NumPy dtype or scalar type, a Python type (`float`
            is float32 and `int` is int32), or the number of a dtype in GraphDef files.

    Raises:
        TypeError: there is no corresponding dtype.
    """
    if isinstance(value, DType):
        return value
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        number = int(value) - 100 if value > 100 else int(value)  # of GraphDef files; references
        value = _BY_ENUM.get(number, value)
    if isinstance(value, str):
        value = value.removesuffix("_ref")  # there are no reference dtypes
    if isinstance(value, (str, type)):
        known = ALL.get(value) if isinstance(value, str) else None
        if known is None:
            known = _ALIASES.get(value)
        if known is not None:
            return known
    if isinstance(value, type):  # NumPy's and JAX's scalar types; to NumPy any other is `object`
        declared = getattr(value, "dtype", None)
        scalar = issubclass(value, np.generic) or isinstance(declared, np.dtype)
        value = np.dtype(value) if scalar else value
    if isinstance(value, np.dtype):
        numpy_dtype = value
        if numpy_dtype.kind in "OSU":
            return string
        found = _BY_NUMPY.get(numpy_dtype.newbyteorder("="))
        if found is not None:
            return found
    raise type_error(
        f"{value!r} is not a dtype",
        expected="one of " + ", ".join(ALL),
        received=repr(value),
        hint=did_you_mean(value, ALL) if isinstance(value, str) else None,
    )
