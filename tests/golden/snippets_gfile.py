"""Sequences of calls on files in every mode, as functions of the module used as `tf`."""

from __future__ import annotations

import os
from typing import Any

MODES = ("r", "w", "a", "r+", "w+", "a+", "rb", "wb", "rb+", "r+b", "wb+", "ab+")
CONTENT = b"hello\nworld\n"

CALLS: dict[str, list[tuple[Any, ...]]] = {
    "read": [("read",)],
    "read_again": [("read", 3), ("read", 4), ("read",), ("read",)],
    "write": [("write", "XY")],
    "write_twice": [("write", "XY"), ("write", "Z"), ("flush",), ("size",)],
    "write_flush_read": [("write", "XY"), ("flush",), ("read",)],
    "read_write": [("read", 3), ("write", "XY"), ("tell",)],
    "nothing": [],
    "readline": [("readline",), ("tell",), ("seek", 2), ("readline",), ("tell",)],
    "readlines": [("readline",), ("readlines",), ("readline",)],
    "seek_from": [("seek", -3, 2), ("read", 1), ("seek", 1, 1), ("read",), ("seek", 0, 7)],
    "tell": [("tell",), ("size",)],
}


def results(tf: Any, mode: str, folder: str) -> dict[str, Any]:
    """What the calls return, or the class of the error, and then the file's content.

    `missing` is the sequence `write_flush_read` on a file that does not exist.
    """
    path = os.path.join(folder, "file.txt")
    found = {}
    for name, calls in (*CALLS.items(), ("missing", CALLS["write_flush_read"])):
        if os.path.exists(path):
            os.remove(path)
        if name != "missing":
            with open(path, "wb") as made:
                made.write(CONTENT)
        file = tf.gfile.GFile(path, mode)
        answers = [_answer(tf, file, *call) for call in calls]
        file.close()
        content = None
        if os.path.exists(path):
            with open(path, "rb") as written:
                content = written.read().decode()
        found[name] = [*answers, content]
    return found


def _answer(tf: Any, file: Any, method: str, *arguments: Any) -> Any:
    try:
        found = getattr(file, method)(*arguments)
    except tf.errors.OpError as error:
        return type(error).__name__
    if isinstance(found, list):
        return [_text(each) for each in found]
    return _text(found)


def _text(value: Any) -> Any:
    return f"bytes {value.decode()}" if isinstance(value, bytes) else value


def folders(tf: Any) -> list[Any]:
    """Folders without a name."""
    return [
        *(tf.gfile.MakeDirs(""), tf.gfile.MkDir(""), tf.io.gfile.makedirs("")),
        *(tf.gfile.Exists(""), tf.gfile.IsDirectory("")),
    ]
