"""Conversions between strings and numbers, and hash buckets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.conversion import convert_to_tensor, make
from estimatorkit.core.dtypes import DType, as_dtype, float32, float64, int32, int64, string
from estimatorkit.core.errors import InvalidArgumentError, explain, type_error, value_error
from estimatorkit.core.registry import Case, Spec, register
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.text import farmhash
from estimatorkit.ops.text.regular_expressions import decode
from estimatorkit.ops.text.strings import (
    like_input,
    make_string_op,
    mapped,
    register_string_op,
    string_array,
)
from estimatorkit.storage.number_text import number_text, to_number


def _string_to_number(value: Any, out_type: DType) -> NDArray[Any]:
    convert = to_number(out_type)

    def converted(text: bytes) -> Any:
        try:
            return convert(text)
        except ValueError as error:
            shown = decode(text[:200])
            raise InvalidArgumentError.explained(
                f"StringToNumberOp could not correctly convert string: {shown}",
                expected=out_type.name,
                received=repr(text[:200]),
            ) from error

    return mapped(converted, value, out_type.numpy_dtype)


def _like_input_out_type(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    return [Spec(attrs["out_type"], inputs[0].shape)]


register_string_op(
    "StringToNumber",
    _string_to_number,
    lambda: [
        Case(
            (np.array([b"1.5", b" -2e3"], object),),
            {"out_type": float32},
            np.array([1.5, -2000], np.float32),
        ),
        Case((np.array(b"-7", object),), {"out_type": int64}, np.array(-7)),
    ],
    _like_input_out_type,
    elementwise=True,
)


def string_to_number(
    string_tensor: Any = None, out_type: Any = float32, name: str | None = None, input: Any = None
) -> Tensor:
    """Parses strings as numbers.

    Args:
        string_tensor: strings.
        out_type: float32, float64, int32 or int64.
        input: alias of `string_tensor`.

    Raises:
        InvalidArgumentError: at run time, a string is not such a number.
        TypeError: `out_type` is another dtype.
    """
    wanted = as_dtype(out_type)
    if wanted not in (float32, float64, int32, int64):
        raise type_error(
            f"Value passed to parameter 'out_type' has DataType {wanted.name} not in list of "
            "allowed values: float32, float64, int32, int64",
            received=wanted.name,
        )
    value = input if string_tensor is None else string_tensor
    return make_string_op("StringToNumber", value, {"out_type": wanted}, name, "string_tensor")


_PLAIN: dict[str, Any] = {
    "precision": -1,
    "scientific": False,
    "shortest": False,
    "width": -1,
    "fill": "",
}
register(
    "AsString",
    lambda value, **how: number_text(np.asarray(value), **how),
    infer=like_input(string),
    gradient=None,
    where="host",
    cases=lambda: [
        Case(
            (np.array([1, -20], np.int32),),
            {**_PLAIN, "width": 4, "fill": "0"},
            np.array([b"0001", b"-020"], object),
        ),
        Case(
            (np.array([1.5, 1e-10], np.float32),),
            {**_PLAIN, "precision": 2},
            np.array([b"1.50", b"0.00"], object),
        ),
    ],
    elementwise=True,
)


def as_string(
    input: Any,
    precision: int = -1,
    scientific: bool = False,
    shortest: bool = False,
    width: int = -1,
    fill: str = "",
    name: str | None = None,
) -> Tensor:
    """Formats numbers and bools as strings, with C's `printf` conventions.

    Args:
        input: numbers, bools or strings.
        precision: decimals of floating and complex numbers; 6 if negative.
        scientific: whether to use an exponent (`%e`).
        shortest: whether to use the shorter of both forms (`%g`).
        width: the minimum width; none if negative.
        fill: the padding: '' or ' ' (spaces), '0', '-' (spaces on the right) or '+' (a sign).

    Raises:
        InvalidArgumentError: the options conflict, or do not apply to the dtype.
    """
    tensor = convert_to_tensor(input, name="input")
    problem = None
    if len(fill) > 1 or fill not in "0 -+":
        words = "Fill string must be one or fewer characters"
        problem = words if len(fill) > 1 else f'Fill argument not supported: "{fill}"'
    elif scientific and shortest:
        problem = "Cannot select both scientific and shortest notation"
    elif tensor.dtype.kind not in "fc" and (scientific or shortest):
        problem = f"scientific and shortest format not supported for datatype {tensor.dtype.name}"
    elif tensor.dtype.kind not in "fc" and precision >= 0:
        problem = f"precision not supported for datatype {tensor.dtype.name}"
    if problem:
        problem = explain(f"as_string: {problem}", received=tensor, made_at=tensor.op.source)
        raise InvalidArgumentError(None, None, problem)
    attrs = {
        "precision": int(precision),
        "scientific": bool(scientific),
        "shortest": bool(shortest),
        "width": int(width),
        "fill": fill,
    }
    return make("AsString", {"input": tensor}, attrs, name)


# -- hashes


def _bucket_row(op_type: str, hashes: Callable[..., Any], attrs: Any, expected: Any) -> None:
    def kernel(value: Any, num_buckets: int, **rest: Any) -> NDArray[np.int64]:
        array = string_array(value)
        found = farmhash.buckets(hashes(array.reshape(-1).tolist(), **rest), num_buckets)
        return found.reshape(array.shape)

    register_string_op(
        op_type,
        kernel,
        lambda: [Case((np.array([b"a", b"Hello"], object),), attrs, np.array(expected))],
        like_input(int64),
        elementwise=True,
    )


_bucket_row("StringToHashBucketFast", farmhash.fingerprint64, {"num_buckets": 1000}, [939, 151])
_bucket_row(
    "StringToHashBucketStrong",
    farmhash.strong_hash64,
    {"num_buckets": 1000, "key": (1, 2)},
    [646, 274],
)
_bucket_row("StringToHashBucket", farmhash.legacy_hash64, {"num_buckets": 1000}, [868, 941])


def _num_buckets(value: Any) -> int:
    if value is None or int(value) < 1:
        raise value_error(
            f"Attr 'num_buckets' passed {value} less than minimum 1",
            expected="1 or more",
            received=value,
        )
    return int(value)


def string_to_hash_bucket_fast(input: Any, num_buckets: int, name: str | None = None) -> Tensor:
    """The FarmHash bucket of each string: int64, of the input's shape, equal to TensorFlow's."""
    attrs = {"num_buckets": _num_buckets(num_buckets)}
    return make_string_op("StringToHashBucketFast", input, attrs, name)


def string_to_hash_bucket_strong(
    input: Any, num_buckets: int, key: Sequence[int], name: str | None = None
) -> Tensor:
    """The bucket of each string by keyed SipHash: int64, of the input's shape.

    Args:
        input: strings.
        num_buckets: the number of buckets.
        key: two secret 64-bit numbers.

    Raises:
        InvalidArgumentError: the key is invalid.
    """
    words = tuple(int(word) % (1 << 64) for word in key)
    if len(words) != 2:
        problem = explain("Key must have 2 elements", received=list(key))
        raise InvalidArgumentError(None, None, problem)
    attrs = {"num_buckets": _num_buckets(num_buckets), "key": words}
    return make_string_op("StringToHashBucketStrong", input, attrs, name)


def string_to_hash_bucket(
    string_tensor: Any = None,
    num_buckets: int | None = None,
    name: str | None = None,
    input: Any = None,
) -> Tensor:
    """The MurmurHash64A bucket of each string; prefer `to_hash_bucket_fast` in new programs."""
    attrs = {"num_buckets": _num_buckets(num_buckets)}
    value = input if string_tensor is None else string_tensor
    return make_string_op("StringToHashBucket", value, attrs, name, "string_tensor")
