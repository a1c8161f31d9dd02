"""Elementwise string operations: case, length, substrings, regular expressions, base64.

Strings are bytes, decoded as UTF-8 where characters matter. All run on the host without gradients.
See also `string_pieces` (split and join), `string_numbers` (numbers, hashes) and `unicode`.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.conversion import convert_to_tensor, make
from estimatorkit.core.dtypes import (
    DType,
    bool_,
    int32,
    string,
)
from estimatorkit.core.errors import InvalidArgumentError, value_error
from estimatorkit.core.registry import Case, Infer, Spec, register, same_as_input
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.math.broadcasting import broadcast
from estimatorkit.ops.text.regular_expressions import compiled, decode, encode, replacer

Unit = Literal["BYTE", "UTF8_CHAR"]

_WORDS = np.array([b" Ab ", "é!".encode(), b""], object)


def string_array(value: Any) -> NDArray[Any]:
    """A kernel's input as an object array (a lone `bytes` would become a NumPy string)."""
    if isinstance(value, np.ndarray):
        return value if value.dtype == object else value.astype(object)
    array = np.empty((), object)
    array[()] = value
    return array


def mapped(function: Callable[[Any], Any], values: Any, dtype: Any = object) -> NDArray[Any]:
    """Applies `function` to each string; returns an array of the same shape."""
    array = string_array(values)
    result = np.empty(array.shape, dtype)
    found = [function(each) for each in array.reshape(-1).tolist()]
    with np.errstate(over="ignore"):  # a double that float32 does not hold is infinite
        result.reshape(-1)[:] = found
    return result


def like_input(dtype: DType) -> Infer:
    """Shape inference for one output of the first input's shape."""

    def infer(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
        return [Spec(dtype, inputs[0].shape)]

    return infer


def register_string_op(
    op_type: str,
    kernel: Callable[..., Any],
    cases: Callable[[], Sequence[Case]],
    infer: Infer | None = None,
    *,
    elementwise: bool = False,
    broadcasts: bool = False,
    on_block: Callable[..., Any] | None = None,
    accepts: str | tuple[str, ...] = "s",
) -> None:
    """Registers a host operation whose first input is strings (see `OpDef` for the rest)."""
    register(
        op_type,
        kernel,
        infer=infer or same_as_input(),
        gradient=None,
        where="host",
        accepts=accepts,
        cases=cases,
        elementwise=elementwise,
        broadcasts=broadcasts,
        on_block=on_block,
    )


def make_string_op(
    op_type: str, value: Any, attrs: dict[str, Any], name: str | None, input_name: str = "input"
) -> Tensor:
    return make(op_type, {input_name: value}, attrs, name, dtypes={input_name: string})


def one_of(what: str, value: str, allowed: Sequence[str]) -> str:
    """Returns `value`; raises ValueError if it is not in `allowed`."""
    if value not in allowed:
        raise value_error(
            f"Value for attr {what!r} of {value!r} is not in the list of allowed values",
            expected=", ".join(map(repr, allowed)),
            received=repr(value),
        )
    return value


# -- case, ends, length


register_string_op(
    "StringStrip",
    lambda value: mapped(bytes.strip, value),
    lambda: [Case((_WORDS,), {}, np.array([b"Ab", "é!".encode(), b""], object))],
    elementwise=True,
)


def string_strip(input: Any, name: str | None = None) -> Tensor:
    """Strips leading and trailing whitespace from each string."""
    return make_string_op("StringStrip", input, {}, name)


def _in_case(value: Any, encoding: str, change: str) -> NDArray[Any]:
    if encoding:
        return mapped(lambda text: encode(getattr(decode(text), change)()), value)
    return mapped(getattr(bytes, change), value)


register_string_op(
    "StringLower",
    lambda value, encoding: _in_case(value, encoding, "lower"),
    lambda: [
        Case((_WORDS,), {"encoding": ""}, np.array([b" ab ", "é!".encode(), b""], object)),
        Case((np.array("É".encode(), object),), {"encoding": "utf-8"}, np.array("é".encode(), "O")),
    ],
    elementwise=True,
)
register_string_op(
    "StringUpper",
    lambda value, encoding: _in_case(value, encoding, "upper"),
    lambda: [
        Case((_WORDS,), {"encoding": ""}, np.array([b" AB ", "é!".encode(), b""], object)),
        Case((np.array("é".encode(), object),), {"encoding": "utf-8"}, np.array("É".encode(), "O")),
    ],
    elementwise=True,
)


def string_lower(input: Any, encoding: str = "", name: str | None = None) -> Tensor:
    """Converts strings to lower case.

    Args:
        input: strings.
        encoding: '' (ASCII letters only) or 'utf-8'.
    """
    attrs = {"encoding": one_of("encoding", encoding, ("", "utf-8"))}
    return make_string_op("StringLower", input, attrs, name)


def string_upper(input: Any, encoding: str = "", name: str | None = None) -> Tensor:
    """Converts strings to upper case; see `lower` for the arguments."""
    attrs = {"encoding": one_of("encoding", encoding, ("", "utf-8"))}
    return make_string_op("StringUpper", input, attrs, name)


_CONTINUATION = re.compile(rb"[\x80-\xbf]")


def _length(text: bytes) -> int:
    return len(text)


def _characters(text: bytes) -> int:
    return len(text) - len(_CONTINUATION.findall(text))


register_string_op(
    "StringLength",
    lambda value, unit: mapped(_length if unit == "BYTE" else _characters, value, np.int32),
    lambda: [
        Case((_WORDS,), {"unit": "BYTE"}, np.array([4, 3, 0], np.int32)),
        Case((_WORDS,), {"unit": "UTF8_CHAR"}, np.array([4, 2, 0], np.int32)),
    ],
    like_input(int32),
    elementwise=True,
)


def string_length(input: Any, name: str | None = None, unit: Unit = "BYTE") -> Tensor:
    """The length of each string: int32, of the input's shape.

    Args:
        input: strings.
        unit: the unit of length, 'BYTE' or 'UTF8_CHAR'.
    """
    attrs = {"unit": one_of("unit", unit, ("BYTE", "UTF8_CHAR"))}
    return make_string_op("StringLength", input, attrs, name)


def _substr(value: Any, position: Any, length: Any, unit: str) -> NDArray[Any]:
    texts, starts, lengths = np.broadcast_arrays(string_array(value), position, length)
    result = np.empty(texts.shape, object)
    flat = result.reshape(-1)
    for index, (text, start, count) in enumerate(
        zip(texts.flat, starts.ravel().tolist(), lengths.ravel().tolist(), strict=True)
    ):
        units = text if unit == "BYTE" else decode(text)
        if not -len(units) <= start <= len(units) or count < 0:
            raise InvalidArgumentError.explained(
                f"pos {start} out of range for string b'{decode(text)}' at index {index}"
                if count >= 0
                else f"len {count} is negative at index {index}",
                expected=f"pos from -{len(units)} to {len(units)}, len of 0 or more",
                received=f"pos {start}, len {count}",
            )
        start += len(units) if start < 0 else 0
        part = units[start : start + count]
        flat[index] = part if isinstance(part, bytes) else encode(part)
    return result


register_string_op(
    "Substr",
    _substr,
    lambda: [
        Case(
            (np.array([b"hello", b"world"], object), np.array([1, -2]), np.array(3)),
            {"unit": "BYTE"},
            np.array([b"ell", b"ld"], object),
        ),
        Case(
            (np.array("aéb".encode(), object), np.array([1, 2], np.int32), np.array(1, np.int32)),
            {"unit": "UTF8_CHAR"},
            np.array(["é".encode(), b"b"], object),
        ),
    ],
    broadcast(string),
    broadcasts=True,
    accepts=("s", "x", "x"),
)


def substr(input: Any, pos: Any, len: Any, name: str | None = None, unit: Unit = "BYTE") -> Tensor:
    """Returns a substring of each string.

    Args:
        input: strings.
        pos: the start, int32 or int64, counted from the end if negative. Broadcasts with `input`.
        len: the maximum length, of the dtype of `pos`.
        unit: the unit of position and length, 'BYTE' or 'UTF8_CHAR'.

    Raises:
        InvalidArgumentError: at run time, `pos` is outside its string.
    """
    attrs = {"unit": one_of("unit", unit, ("BYTE", "UTF8_CHAR"))}
    start = convert_to_tensor(pos, name="pos")
    inputs = {"input": input, "pos": start, "len": len}
    return make("Substr", inputs, attrs, name, dtypes={"input": string, "len": start.dtype})


# -- patterns


def _pattern_bytes(pattern: Any) -> bytes:
    return bytes(string_array(pattern)[()])


register_string_op(
    "RegexReplace",
    lambda value, pattern, rewrite, replace_global: mapped(
        replacer(_pattern_bytes(pattern), _pattern_bytes(rewrite), replace_global), value
    ),
    lambda: [
        Case(
            (np.array([b"ab-ab", b"x"], object), np.array(b"(a)b", "O"), np.array(rb"<\1>", "O")),
            {"replace_global": every},
            np.array([expected, b"x"], object),
        )
        for every, expected in ((True, b"<a>-<a>"), (False, b"<a>-ab"))
    ],
    elementwise=True,
)


def regex_replace(
    input: Any, pattern: Any, rewrite: Any, replace_global: bool = True, name: str | None = None
) -> Tensor:
    """Replaces the matches of a regular expression.

    Difference from TensorFlow: RE2's syntax on Python's `re` (see `ops.text.regular_expressions`).

    Args:
        input: strings.
        pattern: the regular expression, a string.
        rewrite: the replacement; a backslash and a digit refer to a group.
        replace_global: whether to replace all matches or only the first.

    Raises:
        InvalidArgumentError: at run time, the pattern or the rewrite is invalid.
    """
    inputs = {"input": input, "pattern": pattern, "rewrite": rewrite}
    return make(
        "RegexReplace",
        inputs,
        {"replace_global": bool(replace_global)},
        name,
        dtypes=dict.fromkeys(inputs, string),
    )


def _full_match(value: Any, pattern: Any) -> NDArray[Any]:
    matches = compiled(_pattern_bytes(pattern)).fullmatch
    return mapped(lambda text: matches(decode(text)) is not None, value, np.bool_)


register_string_op(
    "RegexFullMatch",
    _full_match,
    lambda: [
        Case(
            (np.array([b"abc", b"abcd"], object), np.array(b"[a-c]+", object)),
            {},
            np.array([True, False]),
        )
    ],
    like_input(bool_),
    elementwise=True,
)


def regex_full_match(input: Any, pattern: Any, name: str | None = None) -> Tensor:
    """Whether each whole string matches a regular expression: bool, of the input's shape.

    Args:
        input: strings.
        pattern: a string; see `regex_replace`.
    """
    inputs = {"input": input, "pattern": pattern}
    return make("RegexFullMatch", inputs, {}, name, dtypes=dict.fromkeys(inputs, string))


# -- base64


def _encode_base64(text: bytes) -> bytes:
    return base64.urlsafe_b64encode(text)


def _decode_base64(text: bytes) -> bytes:
    bare = text.rstrip(b"=")
    padded = len(text) in (len(bare), -(-len(bare) // 4) * 4)
    if re.fullmatch(rb"[A-Za-z0-9_-]*", bare) is None or not padded:
        raise _not_base64(text, "Invalid character found in base64.")
    try:
        return base64.urlsafe_b64decode(bare + b"=" * (-len(bare) % 4))
    except binascii.Error as error:
        raise _not_base64(text, f"Base64 string has an impossible length: {error}") from error


def _not_base64(text: bytes, problem: str) -> InvalidArgumentError:
    return InvalidArgumentError.explained(
        problem,
        expected="letters, digits, - and _ (base64url, RFC 4648), with or without padding",
        received=repr(text[:200]),
    )


register_string_op(
    "EncodeBase64",
    lambda value, pad: mapped(
        _encode_base64 if pad else lambda text: _encode_base64(text).rstrip(b"="), value
    ),
    lambda: [
        Case((np.array(b"\xfb\xff", object),), {"pad": pad}, np.array(expected, object))
        for pad, expected in ((True, b"-_8="), (False, b"-_8"))
    ],
    elementwise=True,
)
register_string_op(
    "DecodeBase64",
    lambda value: mapped(_decode_base64, value),
    lambda: [Case((np.array([b"-_8", b"-_8="], object),), {}, np.array([b"\xfb\xff"] * 2, object))],
    elementwise=True,
)


def encode_base64(input: Any, pad: bool = False, name: str | None = None) -> Tensor:
    """Encodes strings in web-safe base64 (`-` and `_`).

    Args:
        input: strings.
        pad: whether to pad with `=`.
    """
    return make_string_op("EncodeBase64", input, {"pad": bool(pad)}, name)


def decode_base64(input: Any, name: str | None = None) -> Tensor:
    """Decodes web-safe base64, with or without padding.

    Raises:
        InvalidArgumentError: at run time, a string is not valid base64.
    """
    return make_string_op("DecodeBase64", input, {}, name)
