"""Unicode operations: decoding, encoding, splitting into characters.

Splits return what `string_pieces.split` returns.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.conversion import convert_to_tensor, make
from estimatorkit.core.dtypes import int32, int64, string
from estimatorkit.core.errors import InvalidArgumentError, explain
from estimatorkit.core.registry import Case, Spec, apply, register
from estimatorkit.core.shapes import UNKNOWN, TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.text.sparse_rows import rows_as_sparse, sparse_specs
from estimatorkit.ops.text.string_pieces import pieces, split_row
from estimatorkit.ops.text.strings import mapped, one_of, register_string_op, string_array

_ENCODINGS = {"UTF-8": "utf-8", "UTF-16-BE": "utf-16-be", "UTF-32-BE": "utf-32-be"}
_ERRORS = ("replace", "strict", "ignore")


def _located(
    text: bytes,
    encoding: str,
    errors: str,
    replacement_char: int,
    replace_control_characters: bool = False,
) -> list[tuple[str, int]]:
    """The characters of a string, each with the offset of its first byte."""
    codec, chosen = _ENCODINGS.get(encoding, encoding), chr(replacement_char)
    try:
        codecs.lookup(codec)
    except LookupError as error:
        problem = f"Could not create converter for input encoding: {encoding}"
        raise InvalidArgumentError(None, None, problem) from error
    found: list[tuple[str, int]] = []
    at, wrong = 0, None
    while at < len(text):
        try:
            part, after = text[at:].decode(codec), len(text)
        except UnicodeDecodeError as error:
            wrong = error
            part, after = text[at : at + error.start].decode(codec), at + error.end
        stop = after if wrong is None else at + wrong.start
        for character in part:
            found.append((character, at))
            at += len(character.encode(codec))
        if wrong is not None:
            if errors == "strict":
                received = f"{text[:100]!r} ({wrong.reason} at {stop})"
                problem = "Invalid formatting on input string"
                problem = explain(problem, expected=encoding, received=received)
                raise InvalidArgumentError(None, None, problem) from wrong
            found += [(chosen, stop)] if errors == "replace" else []
        at, wrong = after, None
    if not replace_control_characters:
        return found
    if errors == "ignore":
        return [each for each in found if each[0] > "\x1f"]
    return [(chosen if each <= "\x1f" else each, at) for each, at in found]


def _code_points(text: bytes, **how: Any) -> str:
    return "".join(character for character, _ in _located(text, **how))


def _splitter_in_points(*how: Any, **named: Any) -> Callable[[bytes], Sequence[int]]:
    return lambda text: [ord(each) for each, _ in _located(text, *how, **named)]


def _splitter_in_characters(encoding: str, *how: Any, **named: Any) -> Callable[[bytes], Any]:
    codec = _ENCODINGS.get(encoding, encoding)
    return lambda text: [each.encode(codec) for each, _ in _located(text, encoding, *how, **named)]


_UTF8 = {"encoding": "UTF-8", "errors": "replace", "replacement_char": 65533}
split_row(
    "UnicodeDecode",
    _splitter_in_points,
    lambda: [
        Case(
            (np.array("aé".encode(), object),),
            {**_UTF8, "dtype": int32},
            (np.array([[0], [1]]), np.array([97, 233], np.int32), np.array([2])),
        )
    ],
)
split_row(
    "UnicodeSplit",
    _splitter_in_characters,
    lambda: [
        Case(
            (np.array(["aé".encode(), b"\xff"], object),),
            _UTF8,
            (
                np.array([[0, 0], [0, 1], [1, 0]]),
                np.array([b"a", "é".encode(), "\ufffd".encode()], object),
                np.array([2, 2]),
            ),
        )
    ],
)


def _with_offsets(value: Any, characters: bool, **how: Any) -> list[Any]:
    array = string_array(value)
    located = [_located(text, **how) for text in array.reshape(-1).tolist()]
    codec = _ENCODINGS.get(how["encoding"], how["encoding"])
    pieces = [
        [each.encode(codec) if characters else ord(each) for each, _ in row] for row in located
    ]
    offsets = [[at for _, at in row] for row in located]
    indices, values, shape = rows_as_sparse(pieces, array.shape, string if characters else int32)
    return [indices, values, shape, rows_as_sparse(offsets, array.shape, int64)[1]]


def _infer_offsets(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    rank = inputs[0].shape.rank
    parts = sparse_specs(
        None if rank is None else rank + 1, string if attrs["characters"] else int32
    )
    return [*parts, Spec(int64, TensorShape([None]))]


register_string_op(
    "UnicodeDecodeWithOffsets",
    _with_offsets,
    lambda: [
        Case(
            (np.array(["aé!".encode(), b"\xff"], object),),
            {**_UTF8, "characters": False},
            (
                np.array([[0, 0], [0, 1], [0, 2], [1, 0]]),
                np.array([97, 233, 33, 65533], np.int32),
                np.array([2, 3]),
                np.array([0, 1, 3, 0]),
            ),
        )
    ],
    _infer_offsets,
)


def _unicode(
    encoding: str, errors: str, replacement_char: int, replace_control_characters: bool = False
) -> dict[str, Any]:
    one_of("errors", errors, _ERRORS)
    if not 0 <= int(replacement_char) <= 0x10FFFF:
        problem = "replacement_char out of unicode codepoint range"
        raise InvalidArgumentError.explained(problem, received=replacement_char)
    return {
        "encoding": encoding,
        "errors": errors,
        "replacement_char": int(replacement_char),
        "replace_control_characters": bool(replace_control_characters),
    }


def unicode_decode(
    input: Any,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> Any:
    """The code points of each string, int32; the result has the form of that of `split`.

    Args:
        input: strings.
        input_encoding: 'UTF-8', 'UTF-16-BE', 'UTF-32-BE', or any that Python supports.
        errors: how to handle invalid bytes: 'replace', 'ignore' or 'strict' (InvalidArgumentError
            at run time).
        replacement_char: the code point that replaces them.
        replace_control_characters: whether to treat code points up to 31 as invalid.
    """
    values = convert_to_tensor(input, string, "input")
    how = _unicode(input_encoding, errors, replacement_char, replace_control_characters)
    attrs = {**how, "dtype": int32}
    return pieces(values, apply("UnicodeDecode", [values], attrs, name).outputs)


def unicode_split(
    input: Any,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    name: str | None = None,
) -> Any:
    """The characters of each string, as strings; see `unicode_decode`."""
    values = convert_to_tensor(input, string, "input")
    attrs = _unicode(input_encoding, errors, replacement_char)
    return pieces(values, apply("UnicodeSplit", [values], attrs, name).outputs)


def _located_pieces(
    input: Any, how: dict[str, Any], characters: bool, name: str | None
) -> tuple[Any, Any]:
    values = convert_to_tensor(input, string, "input")
    attrs = {**how, "characters": characters}
    made = apply("UnicodeDecodeWithOffsets", [values], attrs, name).outputs
    indices, found, shape, starts = made
    return pieces(values, [indices, found, shape]), pieces(values, [indices, starts, shape])


def unicode_decode_with_offsets(
    input: Any,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> tuple[Any, Any]:
    """The code points of each string, and the byte offset of each, int64.

    Both are structured as in `split`; arguments as in `unicode_decode`.
    """
    how = _unicode(input_encoding, errors, replacement_char, replace_control_characters)
    return _located_pieces(input, how, False, name)


def unicode_split_with_offsets(
    input: Any,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    name: str | None = None,
) -> tuple[Any, Any]:
    """The characters of each string, and the byte offset of each, int64.

    Both are structured as in `split`; arguments as in `unicode_decode`.
    """
    how = _unicode(input_encoding, errors, replacement_char)
    return _located_pieces(input, how, True, name)


def _transcode(value: Any, output_encoding: str, **how: Any) -> NDArray[Any]:
    codec = _ENCODINGS[output_encoding]
    return mapped(lambda text: _code_points(text, **how).encode(codec, "replace"), value)


register_string_op(
    "UnicodeTranscode",
    _transcode,
    lambda: [
        Case(
            (np.array([b"a\xff"], object),),
            {**_UTF8, "output_encoding": "UTF-16-BE"},
            np.array([b"\0a\xff\xfd"], object),
        )
    ],
    elementwise=True,
)


def unicode_transcode(
    input: Any,
    input_encoding: str,
    output_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> Tensor:
    """Transcodes strings; see `unicode_decode`.

    Args:
        input: strings.
        input_encoding: that of the input.
        output_encoding: 'UTF-8', 'UTF-16-BE' or 'UTF-32-BE'.
        errors, replacement_char, replace_control_characters, name: as in `unicode_decode`.
    """
    attrs = {
        **_unicode(input_encoding, errors, replacement_char, replace_control_characters),
        "output_encoding": one_of("output_encoding", output_encoding, tuple(_ENCODINGS)),
    }
    return make("UnicodeTranscode", {"input": input}, attrs, name, dtypes={"input": string})


def _encode(points: Any, output_encoding: str, errors: str, replacement_char: int) -> NDArray[Any]:
    array = np.asarray(points)
    codec = _ENCODINGS[output_encoding]

    def character(point: int) -> str:
        if 0 <= point < 0xD800 or 0xDFFF < point <= 0x10FFFF:
            return chr(point)
        if errors == "strict":
            raise InvalidArgumentError.explained(f"Code point is out of range for Unicode: {point}")
        return chr(replacement_char) if errors == "replace" else ""

    def text(row: Iterable[int]) -> bytes:
        return "".join(map(character, row)).encode(codec)

    result = np.empty(array.shape[:-1], object)
    result.reshape(-1)[:] = [text(row) for row in array.reshape(result.size, -1).tolist()]
    return result


def _infer_encode(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    shape = inputs[0].shape
    return [Spec(string, UNKNOWN if shape.rank is None else shape[:-1])]


register(
    "UnicodeEncode",
    _encode,
    infer=_infer_encode,
    gradient=None,
    where="host",
    accepts="i",
    cases=lambda: [
        Case(
            (np.array([[97, 233], [98, 99]], np.int32),),
            {"output_encoding": "UTF-8", "errors": "replace", "replacement_char": 65533},
            np.array(["aé".encode(), b"bc"], object),
        )
    ],
)


def unicode_encode(
    input: Any,
    output_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    name: str | None = None,
) -> Tensor:
    """Encodes rows of code points as strings.

    Args:
        input: int32 `(..., n)`.
        output_encoding: 'UTF-8', 'UTF-16-BE' or 'UTF-32-BE'.
        errors, replacement_char, name: as in `unicode_decode`.
    """
    one_of("errors", errors, _ERRORS)
    attrs = {
        "output_encoding": one_of("output_encoding", output_encoding, tuple(_ENCODINGS)),
        "errors": errors,
        "replacement_char": int(replacement_char),
    }
    return make("UnicodeEncode", {"input": input}, attrs, name, dtypes={"input": int32})
