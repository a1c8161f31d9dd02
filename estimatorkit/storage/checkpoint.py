"""The checkpoint store. Checkpoints are atomic: no crash loses a committed one.

A checkpoint is a folder `model.ckpt-100` of a model folder (layout: `checkpoint_format`).
`write_checkpoint` writes it under a temporary name, syncs and renames it. An existing checkpoint of
the same name is first renamed to `NAME.old-RANDOM`: readers fall back to it while NAME is missing
or damaged, and the next writer restores or removes it. Readers verify checksums:
`latest_checkpoint` follows the checkpoint state (`checkpoint_state`), or else searches for the
latest intact checkpoint. A model folder has one writer (`directory_lock`) and any number of
readers. TensorFlow's checkpoints are readable too (`tensorflow_checkpoint`).
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from numpy.typing import NDArray

from estimatorkit.core import errors
from estimatorkit.storage.atomic_files import (
    is_temporary,
    os_errors,
    remove_durably,
    sync_file,
    temporary_beside,
)
from estimatorkit.storage.checkpoint_format import (
    range_of,
    read_parts,
    read_state,
    read_tensors,
    shards_of,
    verify_files,
    write_contents,
)
from estimatorkit.storage.checkpoint_manifest import (
    MANIFEST,
    STATE,
    Manifest,
    TensorEntry,
    is_checkpoint_file,
    read_manifest,
)
from estimatorkit.storage.checkpoint_state import (
    CheckpointState,
    check_name,
    get_checkpoint_state,
    name_inside,
    warn_once,
    without_set_aside,
)
from estimatorkit.storage.directory_lock import keep_lock
from estimatorkit.storage.gfile import local_path
from estimatorkit.storage.tensor_slice import TensorSlice
from estimatorkit.storage.tensorflow_checkpoint import (
    is_tensorflow_checkpoint,
    open_tensorflow,
    remove_tensorflow,
    tensorflow_checkpoints_in,
    tensorflow_contents,
    verify_tensorflow,
)

SHARD_BYTES = 2 << 30
_STEP = re.compile(r"-([0-9]+)$")
# A reader whose checkpoint is removed retries with the newer one at once. Ten failures in a row
# mean that checkpoints are removed faster than they can be read.
_ATTEMPTS = 10

AnyPath = str | os.PathLike[str]
_T = TypeVar("_T")


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint in memory.

    Args:
        path: its path, such as `/dir/model.ckpt-100`.
        tensors: arrays by variable name, each with its own memory; strings are object arrays of
            bytes.
        state: the `state` that it was written with.
    """

    path: str
    tensors: dict[str, NDArray[Any]]
    state: dict[str, Any]

    @property
    def step(self) -> int | None:
        """The number at the end of the name, 100 for `model.ckpt-100`; None without one."""
        return checkpoint_step(self.path)


class _GoneError(errors.NotFoundError):
    """The checkpoint does not exist, or no longer."""


def write_checkpoint(
    directory: AnyPath,
    name: str,
    tensors: Mapping[str, Any],
    state: Mapping[str, Any] | None = None,
    *,
    shard_bytes: int = SHARD_BYTES,
) -> Path:
    """Writes a checkpoint atomically, without updating the checkpoint state; returns its path.

    The caller must be the folder's only writer (see `DirectoryLock`).

    Args:
        directory: the model folder; created if missing.
        name: such as `model.ckpt-100`. A checkpoint of this name is replaced.
        tensors: arrays by variable name: bool, integers, float16/32/64, bfloat16, complex, or
            strings (`bytes` or `str`, read back as `bytes`), of any shape.
        state: JSON values: iterator positions, random counters, best metric.
        shard_bytes: the maximum size of a file; a larger tensor gets its own file.

    Raises:
        InvalidArgumentError: the name, a dtype or the state cannot be stored.
        AlreadyExistsError: the path exists and is not a checkpoint.
        FailedPreconditionError: the folder was removed and is another process's now (`keep_lock`).
        OpError: by errno, such as ResourceExhaustedError. All existing checkpoints, also of this
            name, are then intact, and no temporaries remain.
    """
    folder = Path(local_path(directory))
    path = folder / check_name(name)
    keep_lock(folder)
    with os_errors("write the checkpoint", path):
        folder.mkdir(parents=True, exist_ok=True)
        _settle(folder)
        _check_is_checkpoint(path)
        with temporary_beside(path) as temporary:
            temporary.mkdir()
            write_contents(temporary, tensors, state or {}, shard_bytes)
            _commit(temporary, path)
    return path


def read_checkpoint(path: AnyPath, names: Iterable[str] | None = None) -> Checkpoint:
    """Reads `names` (by default all variables) of a checkpoint, verifying the files that hold them.

    Raises:
        NotFoundError: the checkpoint does not exist, was removed during the call, or lacks a name.
        DataLossError: a file is missing, truncated or changed.
        FailedPreconditionError: a newer version of the package wrote it.
    """
    wanted = None if names is None else list(names)
    path = local_path(path)
    foreign = open_tensorflow(path)
    if foreign is not None:
        chosen = list(foreign.tensors) if wanted is None else wanted
        _check_known(path, chosen, foreign.tensors)
        return Checkpoint(path, {name: foreign.read(name) for name in chosen}, {})

    def read(folder: Path, manifest: Manifest) -> Checkpoint:
        chosen = list(manifest.tensors) if wanted is None else wanted
        _check_known(path, chosen, manifest.tensors)
        files = None if wanted is None else {*shards_of(manifest, map(TensorSlice, chosen)), STATE}
        verify_files(folder, manifest, files)
        tensors = read_tensors(folder, manifest, chosen)
        return Checkpoint(path, tensors, read_state(folder))

    return _open(path, read)


def read_checkpoint_parts(path: AnyPath, parts: Iterable[TensorSlice]) -> list[NDArray[Any]]:
    """Reads slices of tensors, using memory only for these.

    Raises InvalidArgumentError if a slice is out of range; otherwise as `read_checkpoint`.
    """
    wanted = list(parts)
    names = [part.name for part in wanted]
    path = local_path(path)
    foreign = open_tensorflow(path)
    if foreign is not None:
        _check_known(path, names, foreign.tensors)
        return [_cut(foreign.read(part.name), part) for part in wanted]

    def read(folder: Path, manifest: Manifest) -> list[NDArray[Any]]:
        _check_known(path, names, manifest.tensors)
        verify_files(folder, manifest, shards_of(manifest, wanted))
        return read_parts(folder, manifest, wanted)

    return _open(path, read)


def _cut(whole: NDArray[Any], part: TensorSlice) -> NDArray[Any]:
    places = range_of(part, whole.shape)
    return whole if places is None else whole.take(range(*places), part.axis)


def _check_known(path: AnyPath, names: Iterable[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            raise _no_variable(path, name, known)


def read_latest(
    directory: AnyPath, names: Iterable[str] | None = None, latest_filename: str | None = None
) -> Checkpoint:
    """Reads the latest checkpoint of a folder, retrying if its writer removes it meanwhile.

    `names` is as in `read_checkpoint`; `latest_filename` is the checkpoint state file. Raises
    NotFoundError if there is no checkpoint, or it lacks a name.
    """
    wanted = None if names is None else list(names)
    for _ in range(_ATTEMPTS):
        path = latest_checkpoint(directory, latest_filename)
        if path is not None:
            with suppress(_GoneError):
                return read_checkpoint(path, wanted)
    raise _not_found(os.fspath(directory), "there is no valid checkpoint in")


def latest_checkpoint(checkpoint_dir: AnyPath, latest_filename: str | None = None) -> str | None:
    """Finds the latest complete checkpoint in a folder (`tf.train.latest_checkpoint`).

    The checkpoint state is tried first. If it is missing or unreadable, or names a checkpoint that
    is outside the folder, missing or damaged, the folder's checkpoints are tried from the highest
    step down, with one warning for each skipped. TensorFlow trusts the state, and returns None if
    it is wrong.

    Args:
        latest_filename: the name of the checkpoint state file; `checkpoint` by default.

    Returns:
        The path prefix, such as `checkpoint_dir/model.ckpt-100`, or None.

    Raises:
        FailedPreconditionError: a newer version of the package wrote the latest checkpoint, and
            resuming from an older one would lose training.
        PermissionDeniedError: the latest checkpoint is not readable.
    """
    base = local_path(checkpoint_dir)
    pointer = get_checkpoint_state(base, latest_filename)
    for path in _candidates(base, pointer):
        try:
            name = name_inside(base, path)
            if os.path.dirname(os.path.realpath(path)) != os.path.realpath(base):
                raise _not_found(path, "a link leads out of the folder to")
            if not verify_tensorflow(path):
                _open(path, verify_files)
        except (errors.NotFoundError, errors.DataLossError, errors.InvalidArgumentError) as error:
            if get_checkpoint_state(base, latest_filename) != pointer:
                return latest_checkpoint(
                    checkpoint_dir, latest_filename
                )  # the writer has updated the state
            warn_once(f"{base}: skipping a checkpoint. {error}")
            continue
        return os.path.join(os.fspath(checkpoint_dir), name)
    return None


def checkpoint_version(path: AnyPath) -> tuple[Any, ...] | None:
    """Returns a value that changes when a checkpoint is rewritten; None if there is none."""
    base = local_path(path)
    for file in (os.path.join(base, MANIFEST), f"{base}.index"):
        try:
            found = os.stat(file)
        except OSError:
            continue
        return os.path.abspath(base), found.st_ino, found.st_size, found.st_mtime_ns
    return None


def checkpoint_exists(checkpoint_prefix: AnyPath) -> bool:
    """Returns whether a checkpoint exists (`tf.compat.v1.train.checkpoint_exists`).

    Only the manifest is read; tensors are not verified.
    """
    path = local_path(checkpoint_prefix)
    try:
        if open_tensorflow(path) is not None:
            return True
        return _open(path, lambda folder, manifest: True)
    except (errors.NotFoundError, errors.DataLossError):
        return False


def list_variables(ckpt_dir_or_file: AnyPath) -> list[tuple[str, list[int]]]:
    """Lists the variables of a checkpoint (`tf.train.list_variables`).

    Args:
        ckpt_dir_or_file: a checkpoint, or a model folder for its newest.

    Returns:
        (name, shape), sorted by name.
    """
    return [(name, list(entry.shape)) for name, entry in read_contents(ckpt_dir_or_file).items()]


def read_contents(path_or_directory: AnyPath) -> dict[str, TensorEntry]:
    """Returns a checkpoint's entries, sorted by name, without reading tensors.

    A model folder stands for its newest checkpoint. Unsupported dtypes are 'unknown'.
    """
    path = locate_checkpoint(path_or_directory)
    entries = tensorflow_contents(path)
    if entries is None:
        entries = dict(_open(path, lambda folder, manifest: manifest.tensors))
    return dict(sorted(entries.items()))


def load_variable(ckpt_dir_or_file: AnyPath, name: str) -> NDArray[Any]:
    """Reads one variable of a checkpoint (`tf.train.load_variable`); of rank 0 as a scalar.

    Args:
        ckpt_dir_or_file: a checkpoint, or a model folder for its newest.
        name: the variable's name; a trailing `:0` is ignored.

    Raises:
        NotFoundError: there is no such checkpoint or variable.
        DataLossError: the file that holds it is damaged.
    """
    key = name.removesuffix(":0")
    value = read_checkpoint(locate_checkpoint(ckpt_dir_or_file), [key]).tensors[key]
    return value if value.ndim else value[()]


def remove_checkpoint(
    checkpoint_prefix: AnyPath,
    checkpoint_format_version: Any = None,
    meta_graph_suffix: str = "meta",
) -> None:
    """Removes a checkpoint atomically, then its `.meta` (`tf.compat.v1.train.remove_checkpoint`).

    Args:
        checkpoint_format_version: accepted for compatibility only.
        meta_graph_suffix: the suffix of the graph file.

    Raises:
        NotFoundError: there is no checkpoint.
        AlreadyExistsError: the path is not a checkpoint.
    """
    target = Path(local_path(checkpoint_prefix))
    target.with_name(f"{target.name}.{meta_graph_suffix}").unlink(missing_ok=True)
    if is_tensorflow_checkpoint(os.fspath(target)):
        remove_tensorflow(os.fspath(target))
        return
    _check_is_checkpoint(target)
    for folder in [*set_aside(target), target]:
        remove_durably(folder)


def checkpoint_step(path: AnyPath) -> int | None:
    """Returns the number at the end of a checkpoint's name, 100 for `model.ckpt-100`, or None."""
    match = _STEP.search(os.path.basename(os.fspath(path)))
    return int(match[1]) if match else None


def name_without_step(name: str) -> str:
    """Returns the name without its number: `model.ckpt` for `model.ckpt-100`."""
    return _STEP.sub("", name)


def _commit(temporary: Path, path: Path) -> None:
    """Renames a finished folder into place; at any time PATH or one PATH.old-* is complete."""
    aside = None
    if path.exists():
        aside = path.with_name(f"{path.name}.old-{secrets.token_hex(4)}")
        os.rename(path, aside)
    try:
        os.rename(temporary, path)
    except OSError:
        if aside is not None:
            os.rename(aside, path)
        raise
    sync_file(path.parent)
    for old in set_aside(path):
        remove_durably(old)


def _settle(folder: Path) -> None:
    """Completes an interrupted `_commit`: restores or removes the old version."""
    for name in _folders(folder):
        path = folder / without_set_aside(name)
        if path.name == name or _foreign_files(folder / name):
            continue
        if not path.exists():
            os.rename(folder / name, path)
        elif _is_whole(path):
            remove_durably(folder / name)


def _is_whole(folder: Path) -> bool:
    try:
        verify_files(folder, read_manifest(folder))
    except errors.DataLossError:
        return False
    return True


def _check_is_checkpoint(path: Path) -> None:
    """Raises AlreadyExistsError if the path exists and is not a checkpoint."""
    if path.exists() and (not path.is_dir() or _foreign_files(path)):
        raise errors.AlreadyExistsError.explained(
            f"{os.fspath(path)!r} is not a checkpoint, so it is not replaced or removed",
            expected=f"a folder with only {MANIFEST}, {STATE} and variables-*.safetensors",
            received=", ".join(_foreign_files(path)[:5]) if path.is_dir() else "a file",
            hint="save under another name, or move it away",
        )


def own_checkpoints(directory: Path) -> list[tuple[str, int]]:
    """Returns the committed checkpoints of a folder: (name, time in nanoseconds since 1970).

    They have a manifest and nothing else than checkpoints of this package do.
    """
    found = []
    for name in _folders(directory):
        with suppress(OSError):
            names = os.listdir(directory / name)
            if MANIFEST in names and all(map(is_checkpoint_file, names)):
                found.append((name, os.stat(directory / name).st_mtime_ns))
    return [(name, written) for name, written in found if without_set_aside(name) == name]


def _foreign_files(folder: Path) -> list[str]:
    """Returns the files of a folder that no checkpoint has; [] if it was removed."""
    with suppress(FileNotFoundError):
        return sorted(name for name in os.listdir(folder) if not is_checkpoint_file(name))
    return []


def _candidates(directory: str, pointer: CheckpointState | None) -> Iterator[str]:
    """Yields the paths to try for the latest checkpoint, in order."""
    if pointer is not None:
        yield pointer.model_checkpoint_path
    for name in _checkpoints_in(directory):
        yield os.path.join(directory, name)


def _checkpoints_in(directory: str) -> list[str]:
    """Returns a folder's checkpoints, complete or not, by descending step, then time."""
    ages: dict[str, tuple[int, int]] = {}
    for folder in _folders(Path(directory)):
        name = without_set_aside(folder)
        step = checkpoint_step(name)
        try:
            files = os.listdir(os.path.join(directory, folder))
            written = os.stat(os.path.join(directory, folder)).st_mtime_ns
        except FileNotFoundError:
            continue  # removed by the writer since it was listed
        if any(map(is_checkpoint_file, files)):
            ages[name] = max(ages.get(name, (-1, 0)), (-1 if step is None else step, written))
    for name, written in tensorflow_checkpoints_in(directory):
        step = checkpoint_step(name)
        ages.setdefault(name, (-1 if step is None else step, written))
    return sorted(ages, key=ages.__getitem__, reverse=True)


def _folders(directory: Path) -> list[str]:
    """Returns the subfolders that may be checkpoints, current or set aside."""
    try:
        with os.scandir(directory) as entries:
            return sorted(e.name for e in entries if e.is_dir() and not is_temporary(e.name))
    except (FileNotFoundError, NotADirectoryError):
        return []


def set_aside(path: Path) -> list[Path]:
    """Returns the old versions of a checkpoint that a replacing writer has renamed."""
    names = [name for name in _folders(path.parent) if name != path.name]
    folders = [path.parent / name for name in names if without_set_aside(name) == path.name]
    return [folder for folder in folders if not _foreign_files(folder)]


def _versions(path: Path) -> Iterator[Path]:
    """Yields the folders that may hold a checkpoint, in the order to try them."""
    yield path
    yield from set_aside(path)
    yield path  # the writer may have put the new version in place meanwhile


def _open(path: AnyPath, read: Callable[[Path, Manifest], _T]) -> _T:
    """Calls `read` with the folder and the manifest of a checkpoint.

    The folder is PATH, or the version set aside if PATH is missing or damaged. If the folder's
    identity changes during the call, a writer replaced or removed it, so the result and any damage
    found are discarded.
    """
    failure: errors.OpError | None = None
    with os_errors("read the checkpoint", path):
        for folder in _versions(Path(path)):
            before = _identity(folder)
            if before is None:
                continue
            damage: errors.OpError | None = None
            try:
                result = read(folder, read_manifest(folder))
            except errors.DataLossError as error:
                damage = error
            except FileNotFoundError:
                damage = _vanished(path)
            if _identity(folder) != before:
                damage = _vanished(path)
            if damage is None:
                return result
            failure = failure or damage
    raise failure or _not_found(os.fspath(path), "there is no checkpoint", _GoneError)


def _identity(folder: Path) -> tuple[int, ...] | None:
    """Returns a value that distinguishes a folder from its successor; None if missing."""
    try:
        status = folder.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    identity = (status.st_dev, status.st_ino, status.st_mtime_ns)
    return identity if stat.S_ISDIR(status.st_mode) else None


def locate_checkpoint(path_or_directory: AnyPath) -> str:
    """Returns the checkpoint that a path denotes: itself, or the newest in a model folder."""
    path = local_path(path_or_directory)
    with os_errors("read the checkpoint", path):
        is_model_folder = os.path.isdir(path) and not any(map(is_checkpoint_file, os.listdir(path)))
    if is_model_folder:
        latest = latest_checkpoint(path)
        if latest is None:
            raise _not_found(path, "there is no valid checkpoint in")
        return latest
    return path


def _not_found(
    path: str, problem: str, kind: type[errors.NotFoundError] = errors.NotFoundError
) -> errors.NotFoundError:
    hint = "train first, or check the path"
    prefix = re.sub(r"\.(index|meta|data-[0-9]{5}-of-[0-9]{5})$", "", path)
    if prefix != path and is_tensorflow_checkpoint(prefix):
        hint = f"this is one file of a checkpoint of TensorFlow: give its prefix, {prefix!r}"
    return kind.explained(f"{problem} {path!r}", hint=hint)


def _vanished(path: AnyPath) -> _GoneError:
    return _GoneError.explained(
        f"the checkpoint {os.fspath(path)!r} was removed or replaced while it was read",
        hint="read the newest one; read_latest(directory) retries",
    )


def _no_variable(path: AnyPath, name: str, known: Collection[str]) -> errors.NotFoundError:
    return errors.NotFoundError.explained(
        f"Key {name} not found in checkpoint",
        expected=f"one of its {len(known)} variables",
        received=f"{name!r} is not in the checkpoint {os.fspath(path)!r}",
        hint=errors.did_you_mean(name, known) or "list_variables(path) lists them",
    )
