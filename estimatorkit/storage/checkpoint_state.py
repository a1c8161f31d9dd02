"""The checkpoint state: the text file `checkpoint` of a model folder, in TensorFlow's format.

    model_checkpoint_path: "model.ckpt-200"
    all_model_checkpoint_paths: "model.ckpt-100"
    all_model_checkpoint_paths: "model.ckpt-200"

It names the latest checkpoint and those subject to rotation, relative to the folder, so that the
folder can be moved. It is only a hint, which `checkpoint.latest_checkpoint` verifies.
"""

from __future__ import annotations

import logging
import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from estimatorkit.core import errors
from estimatorkit.storage.atomic_files import is_temporary, os_errors, write_durably
from estimatorkit.storage.gfile import local_path

POINTER = "checkpoint"
_POINTER_BYTES = 16 << 20
_LINE_CHARACTERS = 4 * 4096 + 100  # a path, every byte of which is escaped
_SET_ASIDE = re.compile(r"\.old-[0-9a-f]{8}$")
# One line of a text-format proto: a name, a colon, a quoted string or a bare word.
_FIELD = re.compile(r'\s*(?P<key>\w+)\s*:\s*(?:"(?P<text>(?:[^"\\]|\\.)*)"|(?P<word>[^\s"]+))\s*')
_ESCAPE = re.compile(rb"\\(?:(?P<octal>[0-7]{1,3})|x(?P<hex>[0-9a-fA-F]{1,2})|(?P<char>.))", re.S)
_ESCAPED = {b"n": b"\n", b"r": b"\r", b"t": b"\t"}


@dataclass(frozen=True)
class CheckpointState:
    """The content of the checkpoint state file (`tf.train.CheckpointState`).

    Args:
        model_checkpoint_path: the path of the latest checkpoint.
        all_model_checkpoint_paths: the checkpoints subject to rotation, oldest first.
        all_model_checkpoint_timestamps: their times, seconds since 1970; or empty.
        last_preserved_timestamp: when a checkpoint was last kept permanently
            (`keep_checkpoint_every_n_hours`), or 0.
    """

    model_checkpoint_path: str
    all_model_checkpoint_paths: list[str] = field(default_factory=list)
    all_model_checkpoint_timestamps: list[float] = field(default_factory=list)
    last_preserved_timestamp: float = 0.0


def generate_checkpoint_state_proto(
    save_dir: str | os.PathLike[str],
    model_checkpoint_path: str | os.PathLike[str],
    all_model_checkpoint_paths: Sequence[str | os.PathLike[str]] | None = None,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
) -> CheckpointState:
    """Builds a checkpoint state (`tf.compat.v1.train.generate_checkpoint_state_proto`).

    Args:
        save_dir: the model folder. If it is relative, relative paths are made relative to it.
        model_checkpoint_path: the latest checkpoint.
        all_model_checkpoint_paths: the checkpoints subject to rotation, oldest first; the latest is
            added if missing.
        all_model_checkpoint_timestamps: their times, seconds since 1970.
        last_preserved_timestamp: see `CheckpointState`.

    Raises:
        ValueError: the numbers of timestamps and paths differ.
    """
    latest = os.fspath(model_checkpoint_path)
    paths = [os.fspath(path) for path in all_model_checkpoint_paths or ()]
    if not paths or paths[-1] != latest:
        paths.append(latest)
    times = _matching_times(all_model_checkpoint_timestamps, paths)
    if not os.path.isabs(save_dir):
        paths = [path if os.path.isabs(path) else os.path.relpath(path, save_dir) for path in paths]
    return CheckpointState(paths[-1], paths, times, last_preserved_timestamp or 0.0)


def update_checkpoint_state(
    save_dir: str | os.PathLike[str],
    model_checkpoint_path: str | os.PathLike[str],
    all_model_checkpoint_paths: Sequence[str | os.PathLike[str]] | None = None,
    latest_filename: str | None = None,
    all_model_checkpoint_timestamps: Sequence[float] | None = None,
    last_preserved_timestamp: float | None = None,
    save_relative_paths: bool = True,
) -> None:
    """Atomically updates a folder's state (`tf.compat.v1.train.update_checkpoint_state`).

    Differs from TensorFlow: names are always written relative to the folder, and must be in it.

    Args:
        model_checkpoint_path: the latest checkpoint: its name, or its path including `save_dir`.
        all_model_checkpoint_paths: the checkpoints subject to rotation, oldest first; the latest is
            added if missing.
        latest_filename: the name of the checkpoint state file; `checkpoint` by default.
        all_model_checkpoint_timestamps: their times, seconds since 1970.
        last_preserved_timestamp: see `CheckpointState`.
        save_relative_paths: accepted for TensorFlow's `update_checkpoint_state_internal`.

    Raises:
        InvalidArgumentError: a path leads out of `save_dir`.
        ValueError: the numbers of timestamps and paths differ.
        OpError: the file cannot be written; the old state is intact.
    """
    directory = local_path(save_dir)
    latest = name_inside(directory, os.fspath(model_checkpoint_path))
    names = [name_inside(directory, os.fspath(path)) for path in all_model_checkpoint_paths or ()]
    if not names or names[-1] != latest:
        names.append(latest)
    times = _matching_times(all_model_checkpoint_timestamps, names)
    lines = [f"model_checkpoint_path: {_quote(latest)}"]
    lines += [f"all_model_checkpoint_paths: {_quote(name)}" for name in names]
    lines += [f"all_model_checkpoint_timestamps: {time!r}" for time in times]
    if last_preserved_timestamp:
        lines.append(f"last_preserved_timestamp: {float(last_preserved_timestamp)!r}")
    pointer = check_name(latest_filename or POINTER)
    if latest == pointer:
        raise RuntimeError(
            errors.explain(
                f"Save path '{os.path.join(directory, latest)}' conflicts with path used for "
                "checkpoint state.  Please use a different save path",
                expected=f"a name other than {pointer!r}",
            )
        )
    write_durably(Path(directory, pointer), "".join(f"{line}\n" for line in lines).encode())


def _matching_times(given: Sequence[float] | None, paths: Sequence[str]) -> list[float]:
    times = [float(time) for time in given or ()]
    if times and len(times) != len(paths):
        raise ValueError(
            errors.explain(
                "all_model_checkpoint_timestamps must match all_model_checkpoint_paths",
                expected=f"{len(paths)} timestamps",
                received=len(times),
            )
        )
    return times


def get_checkpoint_state(
    checkpoint_dir: str | os.PathLike[str], latest_filename: str | None = None
) -> CheckpointState | None:
    """Reads the checkpoint state of a folder (`tf.train.get_checkpoint_state`).

    Args:
        latest_filename: the name of the checkpoint state file; `checkpoint` by default.

    Returns:
        The state, or None if there is no state file, or, with a warning, if it is malformed
        (TensorFlow raises `ValueError` for an empty one). Relative paths are joined to
        `checkpoint_dir`; so are the names of absolute paths if the folder has such a checkpoint (it
        may have been moved). The checkpoints are not verified; use `latest_checkpoint` for that.
    """
    directory = os.fspath(checkpoint_dir)
    path = Path(local_path(directory), check_name(latest_filename or POINTER))
    try:
        with os_errors("read the checkpoint state", path):
            size = path.stat().st_size
            text = path.read_bytes() if size <= _POINTER_BYTES and path.is_file() else b""
    except (errors.NotFoundError, errors.FailedPreconditionError):
        return None
    fields = _parse(text)
    if fields is None or len(fields.get("model_checkpoint_path", ())) != 1:
        warn_once(f"{os.fspath(path)}: not a checkpoint state file ({text[:60]!r}); ignored.")
        return None
    times = _floats(fields.get("all_model_checkpoint_timestamps", []))
    preserved = _floats(fields.get("last_preserved_timestamp", []))
    return CheckpointState(
        _found(directory, fields["model_checkpoint_path"][0]),
        [_found(directory, p) for p in fields.get("all_model_checkpoint_paths", ())],
        times,
        preserved[0] if preserved else 0.0,
    )


def _found(directory: str, path: str) -> str:
    """Resolves a path of the state; absolute paths, as TensorFlow writes, may be outdated."""
    path = local_path(path)
    moved = os.path.join(directory, os.path.basename(path))
    return moved if os.path.isabs(path) and _is_there(moved) else os.path.join(directory, path)


def _is_there(path: str) -> bool:
    return os.path.exists(path) or os.path.exists(f"{path}.index")


def name_inside(directory: str, path: str) -> str:
    """Returns the name of a checkpoint in a folder, given its name or path.

    Raises InvalidArgumentError if the path is not directly in the folder, or the name is invalid.
    """
    parent, name = os.path.split(local_path(path))
    if parent and os.path.abspath(parent) != os.path.abspath(local_path(directory)):
        raise errors.InvalidArgumentError.explained(
            "a checkpoint is outside its folder", expected=f"{directory}/...", received=path
        )
    return check_name(name)


def check_name(name: str) -> str:
    """Returns `name` if it is a valid checkpoint or state file name.

    Raises InvalidArgumentError for separators, control characters, hidden and overlong names, and
    patterns of temporary files.
    """
    plain = bool(name) and not name.startswith(".") and name.isprintable()
    apart = not {os.sep, os.altsep, "/", "\\"} & set(name)
    # 255 bytes is what file systems take; the temporary suffix takes up to 24.
    short = plain and len(name.encode()) <= 225
    if not (plain and apart and short) or is_temporary(name) or without_set_aside(name) != name:
        raise errors.InvalidArgumentError.explained(
            "invalid checkpoint name",
            expected="a plain file name such as 'model.ckpt-100', of at most 225 bytes",
            received=repr(name),
        )
    return name


def without_set_aside(name: str) -> str:
    """Returns NAME for `NAME.old-RANDOM`, a checkpoint that was set aside, and for NAME itself."""
    return _SET_ASIDE.sub("", name)


@lru_cache(maxsize=1024)
def warn_once(message: str) -> None:
    """Logs a warning the first time only: an evaluator looks at the same folder every minute."""
    logging.getLogger("estimatorkit").warning(message)


def _parse(content: bytes) -> dict[str, list[str]] | None:
    """Reads a text-format proto without nesting; None if the content is not one."""
    fields: dict[str, list[str]] = {}
    try:
        text = content.decode()
        for line in text.replace("\r\n", "\n").split("\n"):
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            match = _FIELD.fullmatch(line) if len(line) <= _LINE_CHARACTERS else None
            if match is None:
                return None
            quoted = match["text"]
            value = match["word"] if quoted is None else _unquote(quoted)
            fields.setdefault(match["key"], []).append(value)
    except UnicodeDecodeError:
        return None
    return fields


def _floats(words: Sequence[str]) -> list[float]:
    try:
        values = list(map(float, words))
    except ValueError:
        return []
    return values if all(map(math.isfinite, values)) else []


def _quote(text: str) -> str:
    """Quotes as protobuf does: bytes that are not printable ASCII become three octal digits."""
    body = "".join(
        f"\\{chr(byte)}" if byte in b"\"'\\" else chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}"
        for byte in text.encode()
    )
    return f'"{body}"'


def _unquote(body: str) -> str:
    def plain(match: re.Match[bytes]) -> bytes:
        if match["octal"]:
            return bytes([int(match["octal"], 8) & 255])
        if match["hex"]:
            return bytes([int(match["hex"], 16)])
        return _ESCAPED.get(match["char"], match["char"])

    return _ESCAPE.sub(plain, body.encode()).decode()
