"""The persistent cache of compiled programs, so that a script's second start compiles nothing.

It is JAX's cache in the user's cache folder. `ESTIMATORKIT_COMPILATION_CACHE` names another folder,
and 0 turns it off; a cache that JAX's own options name is left as it is. XLA cannot serialize
programs with oneDNN's convolutions (`convolution_onednn`): those are compiled at each start. Their
StableHLO is not kept instead: tracing and lowering take about a quarter of the compilation's time,
5 to 12 % of a start (four networks of `benchmarks/cold.py`), and a key that needs no trace would
have to hold all that kernels read.
"""

from __future__ import annotations

import functools
import hashlib
import math
import os
import platform
import stat
import threading
import warnings
import zlib
from contextlib import ExitStack
from pathlib import Path

import jax
from jax._src import compilation_cache as jax_cache
from jax._src.config import persistent_cache_min_compile_time_secs
from jaxlib.version import __version__ as jaxlib_version

from estimatorkit.logger import logger

MOST_BYTES = 512 << 20
"""At the start of a process, programs beyond this size are removed, those least recently read
first. A program takes some 20 to 200 KB."""

_VARIABLE = "ESTIMATORKIT_COMPILATION_CACHE"
_DIRECTORY = "jax_compilation_cache_dir"


@functools.cache
def use_compilation_cache() -> Path | None:
    """Turns the cache on; returns its folder, or None if it is off or cannot be used.

    The folder is readable and writable by its owner alone, since programs in it are executed.
    Several processes may use it at once; an entry that cannot be read is compiled again.
    """
    chosen = os.environ.get(_VARIABLE)
    if chosen == "0" or getattr(jax.config, _DIRECTORY):
        return None
    try:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        folder = (Path(chosen) if chosen else home / "estimatorkit") / _machine()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        found = folder.stat()
        if os.name == "posix" and (found.st_uid != os.getuid() or found.st_mode & 0o022):
            logger.warning(
                "Not using the compilation cache %s: users other than its owner can write to it.",
                folder,
            )
            return None
        _remove_old(folder)
    except (OSError, RuntimeError) as error:  # no home directory, or no space in it
        logger.debug("Compilation cache not available: %s", error)
        return None
    for problem in ("reading", "writing"):
        warnings.filterwarnings("ignore", f"Error {problem} persistent compilation cache")
    jax.config.update(_DIRECTORY, str(folder))  # type: ignore[no-untyped-call]
    _compress_quickly()
    least = "jax_persistent_cache_min_compile_time_secs"
    if os.environ.get(least.upper()) is None:
        jax.config.update(least, 0.0)  # type: ignore[no-untyped-call]
    return folder


def _compress_quickly() -> None:
    """Sets zlib's fastest level for cached programs, unless JAX uses zstandard.

    A seq2seq model's megabyte takes 9 ms instead of 42, and 220 KB instead of 177.
    """
    if not any(getattr(jax_cache, name, None) for name in ("zstd", "zstandard")):
        jax_cache.compress_executable = functools.partial(zlib.compress, level=1)


class _Thread(threading.local):
    """JAX options that are in effect until the thread's next compilation ends."""

    def __init__(self) -> None:
        self.until_compiled = ExitStack()


_thread = _Thread()


def do_not_store() -> None:
    """Excludes the program that this thread is lowering from the cache; for lowering rules.

    XLA's serializer, given a custom call that it does not know, asks malloc for as many bytes as an
    uninitialized number says. glibc then takes another arena for the thread, whose steps have their
    temporaries mapped anew in each call: a residual network's 100 had 2.7 million page faults, and
    have 0.3.
    """
    _listen()
    _thread.until_compiled.enter_context(persistent_cache_min_compile_time_secs(math.inf))


@functools.cache
def _listen() -> None:
    jax.monitoring.register_event_duration_secs_listener(_restore)


def _restore(event: str, duration_secs: float, **_: str | int) -> None:
    if event == "/jax/core/compile/backend_compile_duration":
        _thread.until_compiled.close()


def _machine() -> str:
    """A name of the environment that compiled programs depend on: compiler and processor."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            features = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    except OSError:
        features = platform.processor()
    digest = hashlib.sha256(f"{platform.machine()} {features}".encode()).hexdigest()
    return f"xla-{jaxlib_version}-{digest[:12]}"


def _remove_old(folder: Path) -> None:
    """Keeps the folder below `MOST_BYTES`."""
    files = []
    with os.scandir(folder) as entries:
        for entry in entries:
            found = entry.stat(follow_symlinks=False)
            if stat.S_ISREG(found.st_mode):
                files.append((max(found.st_atime, found.st_mtime), found.st_size, entry.path))
    size = sum(each[1] for each in files)
    if size <= MOST_BYTES:
        return
    for _, bytes_there, path in sorted(files):
        Path(path).unlink(missing_ok=True)  # another process may have removed it
        size -= bytes_there
        if size <= MOST_BYTES * 3 // 4:
            break
