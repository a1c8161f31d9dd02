"""Operations on the characters of strings: Unicode, in UTF-8 and other encodings.

What is taken apart is given as `string_pieces.split` gives it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.conversion import convert_to_tensor, make
from estimatorkit.core.dtypes import int32, string
from estimatorkit.core.errors import InvalidArgumentError, explain
from estimatorkit.core.ops.string_pieces import pieces, split_row
from estimatorkit.core.ops.strings import mapped, one_of, register_string_op
from estimatorkit.core.registry import Case, Spec, apply, register
from estimatorkit.core.shapes import UNKNOWN
from estimatorkit.core.tensor import Tensor

_ENCODINGS = {"UTF-8": "utf-8", "UTF-16-BE": "utf-16-be", "UTF-32-BE": "utf-32-be"}
_ERRORS = ("replace", "strict", "ignore")


def _code_points(text: bytes, encoding: str, errors: str, replacement_char: int) -> str:
    codec = _ENCODINGS.get(encoding, encoding)
    try:
        return text.decode(codec)
    except UnicodeDecodeError as error:
        if errors == "strict":
            raise InvalidArgumentError(
                None,
                None,
                explain(
                    "Invalid formatting on input string",
                    expected=encoding,
                    received=f"{text[:100]!r} ({error.reason} at {error.start})",
                ),
            ) from error
    chosen = chr(replacement_char) if errors == "replace" else ""
    return text.decode(codec, "replace").replace("\ufffd", chosen)


def _splitter_in_points(
    encoding: str, errors: str, replacement_char: int
) -> Callable[[bytes], Sequence[int]]:
    return lambda text: [
        ord(each) for each in _code_points(text, encoding, errors, replacement_char)
    ]


def _splitter_in_characters(
    encoding: str, errors: str, replacement_char: int
) -> Callable[[bytes], Sequence[bytes]]:
    codec = _ENCODINGS.get(encoding, encoding)
    return lambda text: [
        each.encode(codec) for each in _code_points(text, encoding, errors, replacement_char)
    ]


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


def _unicode(encoding: str, errors: str, replacement_char: int) -> dict[str, Any]:
    one_of("errors", errors, _ERRORS)
    return {"encoding": encoding, "errors": errors, "replacement_char": int(replacement_char)}


def unicode_decode(
    input: Any,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> Any:
    """The code points of each string, int32; what is returned is as in `split`.

    Args:
        input: strings.
        input_encoding: 'UTF-8', 'UTF-16-BE', 'UTF-32-BE', or any that Python knows.
        errors: what to do with bytes that are none: 'replace', 'ignore' or 'strict' (an
            InvalidArgumentError when the graph runs).
        replacement_char: the code point that replaces them.
        replace_control_characters: must be False.
        name: the operation's name.
    """
    _no_control_characters(replace_control_characters)
    values = convert_to_tensor(input, string, "input")
    attrs = {**_unicode(input_encoding, errors, replacement_char), "dtype": int32}
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


def _no_control_characters(replaced: bool) -> None:
    if replaced:
        raise ValueError(explain("replace_control_characters=True is not supported"))


def _transcode(
    value: Any, encoding: str, errors: str, replacement_char: int, output_encoding: str
) -> NDArray[Any]:
    codec = _ENCODINGS[output_encoding]
    return mapped(
        lambda text: _code_points(text, encoding, errors, replacement_char).encode(codec), value
    )


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
    """The strings in another encoding; see `unicode_decode`.

    Args:
        input: strings.
        input_encoding: that of the input.
        output_encoding: 'UTF-8', 'UTF-16-BE' or 'UTF-32-BE'.
        errors, replacement_char, replace_control_characters, name: as in `unicode_decode`.
    """
    _no_control_characters(replace_control_characters)
    attrs = {
        **_unicode(input_encoding, errors, replacement_char),
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
            raise InvalidArgumentError(
                None, None, explain(f"Code point is out of range for Unicode: {point}")
            )
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
    """The strings that code points spell, a string for each row.

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
