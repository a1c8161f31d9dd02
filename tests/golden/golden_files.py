"""What the `make_*.py` scripts of this folder share: writing small, reproducible files.

A value that a script generates is written in one of two ways: arrays of numbers to an `.npz` (no
pickle), everything else to a `.json`. Both come out the same, byte for byte, for the same content.
Nothing here imports TensorFlow.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FOLDER = Path(__file__).resolve().parent


def write_npz(name: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Writes `arrays` to `<this folder>/<name>`, compressed.

    Args:
        name: file name that ends in `.npz`.
        arrays: numeric or boolean arrays by key; strings belong in a JSON file.

    Raises:
        TypeError: an array has a dtype that would need pickle, or is text.
    """
    for key, array in arrays.items():
        if array.dtype.kind not in "biuf":
            raise TypeError(f"{name}: {key!r} has dtype {array.dtype}, only numbers go into npz")
    np.savez_compressed(FOLDER / name, **arrays)  # type: ignore[arg-type]


def write_json(name: str, content: Mapping[str, Any]) -> None:
    """Writes `content` to `<this folder>/<name>`: two levels indented, one line for each below."""
    text = json.dumps(content, indent=1, ensure_ascii=False, default=_plain)
    compact = json.loads(text)
    lines = []
    for key, value in compact.items():
        if isinstance(value, dict) and value:
            inner = [
                f"  {json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in value.items()
            ]
            lines.append(f" {json.dumps(key)}: {{\n" + ",\n".join(inner) + "\n }")
        else:
            lines.append(f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}")
    (FOLDER / name).write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def error_of(action: Callable[[], object]) -> dict[str, str] | None:
    """Runs `action`, which ought to fail.

    Returns:
        `class`: the exception's class name; `module`: where that class lives; `first_line`: the
        first line of its message that says something, cut to 200 characters, addresses replaced.
        Where a session or Keras puts a heading and a traceback first, the line after these.
        None where `action` does not fail.
    """
    try:
        action()
    except Exception as error:  # its class is what is recorded
        lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
        if lines[0] == "Graph execution error:":
            nodes = [index for index, line in enumerate(lines) if line.startswith("Node: ")]
            lines = lines[nodes[0] + 1 :] if nodes else lines[1:]
        elif lines[0] == "in user code:":
            start = f"{type(error).__name__}: "
            lines = [line.removeprefix(start) for line in lines if line.startswith(start)]
        line = re.sub(r"^\{\{function_node .*?\}\} ", "", lines[0])
        return {
            "class": type(error).__name__,
            "module": type(error).__module__,
            "first_line": re.sub(r"\b0x[0-9a-f]+", "<address>", line)[:200],
        }
    return None


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return value.decode("utf-8")
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} does not go into JSON: {value!r}")
