"""File operations: reading and writing whole files, and glob patterns."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.conversion import convert_to_tensor, make
from estimatorkit.core.dtypes import string
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import apply, fixed, no_outputs, register
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.ops.text.strings import string_array
from estimatorkit.storage import gfile
from estimatorkit.storage.filesystem import file_errors, open_file


def _text(value: Any) -> bytes:
    return bytes(string_array(value)[()])


def _read(filename: Any) -> NDArray[Any]:
    path = os.fsdecode(_text(filename))
    with open_file(path) as file, file_errors("read", path):
        return string_array(file.read())


def _write(filename: Any, contents: Any) -> list[Any]:
    path = os.fsdecode(_text(filename))
    folder = os.path.dirname(path)
    if folder:
        gfile.makedirs(folder)
    with open_file(path, "wb") as file, file_errors("write", path):
        file.write(_text(contents))
    return []


def _match(pattern: Any) -> NDArray[Any]:
    found = gfile.glob(string_array(pattern).reshape(-1).tolist())
    result = np.empty(len(found), object)
    result[:] = [os.fsencode(name) for name in found]
    return result


_FILES: dict[str, Any] = {"gradient": None, "where": "host", "pure": False, "accepts": "s"}
_NAMES = fixed(string, TensorShape([None]))

register("ReadFile", _read, infer=fixed(string), effects="asset", **_FILES)
register("WriteFile", _write, infer=no_outputs, effects="files", **_FILES)
register("MatchingFiles", _match, infer=_NAMES, effects="files", **_FILES)


def read_file(filename: Any, name: str | None = None) -> Tensor:
    """The content of a file: a scalar string.

    Args:
        filename: a scalar string.

    Raises:
        NotFoundError: at run time, the file does not exist.
    """
    return make("ReadFile", {"filename": filename}, {}, name, dtypes={"filename": string})


def write_file(filename: Any, contents: Any, name: str | None = None) -> Operation:
    """An operation that writes a file, creating its folder if missing.

    Args:
        filename: a scalar string.
        contents: a scalar string.
    """
    with get_default_graph().name_scope(name or "WriteFile") as scope:
        inputs = [
            convert_to_tensor(filename, string, "filename"),
            convert_to_tensor(contents, string, "contents"),
        ]
        return apply("WriteFile", inputs, {}, scope)


def matching_files(pattern: Any, name: str | None = None) -> Tensor:
    """The names of the files that match a pattern: strings `(n,)`, sorted.

    Args:
        pattern: a string, or a vector of them; see `gfile.glob`.
    """
    return make("MatchingFiles", {"pattern": pattern}, {}, name, dtypes={"pattern": string})
