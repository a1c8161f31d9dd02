"""What a reader of untrusted bytes may do, and a function that says how an input breaks it.

A reader returns, or raises a documented exception from the package's own code with a message in
its style, within `SECONDS` and `MEMORY`. It touches no file outside its folder and starts nothing.
"""

from __future__ import annotations

import gc
import os
import re
import shutil
import signal
import sys
import sysconfig
import tempfile
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import estimatorkit
from estimatorkit.core.errors import OpError
from tests.fuzz.targets import Target

SECONDS = 5
MEMORY = 1 << 30  # the largest image has 0.4 GB; other threads of the process may compile

_PACKAGE = str(Path(estimatorkit.__file__).parent) + os.sep
_ROOT = str(Path(__file__).parents[2])
# What NumPy, Python and JAX say of arguments that nobody has checked.
_RAW = re.compile(
    r"cannot reshape|buffer |invalid literal|could not convert|not enough values|too many values"
    r"|embedded null|zip\(\)|negative (shift|dimensions)|array is too big|maximum supported"
    r"|mmap length|'\w+' object|unhashable|unsupported operand|string indices|list indices"
    r"|.* (is not iterable|object is not|has no attribute)|must be real number|an integer is"
    r"|int\(\) argument|float\(\) argument|expected str, bytes|.*positional argument"
)
_READABLE = (
    *(_ROOT, sys.prefix, sys.base_prefix, sysconfig.get_path("stdlib"), sys.exec_prefix),
    *("/proc/", "/sys/", "/dev/", "/usr/", "/etc/"),
)
_STARTS = ("subprocess.", "os.system", "os.exec", "os.spawn", "os.fork", "socket.", "pickle.")
_CHANGES = ("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "shutil.")


class Late(BaseException):
    """An input takes too long; no `except Exception` of a library stops it."""


class _Watch:
    """The audit hook's state: a hook can't be removed."""

    folder: str | None = None
    thread = 0
    touched: str | None = None

    def hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.folder is None or threading.get_ident() != self.thread or self.touched:
            return
        if event.startswith(_STARTS):
            self.touched = f"{event} {arguments!r:.200}"
        elif event == "open" or event.startswith(_CHANGES):
            name = arguments[0]
            if not isinstance(name, (str, bytes, os.PathLike)) or not os.path.isabs(name):
                return  # a descriptor, or relative to one: shutil.rmtree
            path = os.path.realpath(os.fsdecode(name))
            flags = arguments[2] if event == "open" else os.O_WRONLY
            writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            cache = os.environ.get("JAX_COMPILATION_CACHE_DIR", self.folder)
            mine = path.startswith((self.folder, cache)) or "__pycache__" in path
            if not mine and (writes or not path.startswith(_READABLE)):
                self.touched = f"{event} {path!r:.200}"


_watch = _Watch()


@contextmanager
def _watched(folder: Path) -> Iterator[None]:
    if not _watch.thread:
        sys.addaudithook(_watch.hook)
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    _watch.thread, _watch.touched = threading.get_ident(), None
    _watch.folder = os.path.realpath(folder)
    gc.disable()  # collecting what another test left may remove that test's temporary folders
    try:
        yield
    finally:
        gc.enable()
        _watch.folder, tempfile.tempdir = None, before


@contextmanager
def _limited() -> Iterator[None]:
    def late(*_: object) -> None:
        raise Late(f"more than {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _memory(field: str) -> int:
    with suppress(OSError):  # Linux only
        found = re.search(rf"{field}:\s+(\d+) kB", Path("/proc/self/status").read_text())
        return int(found[1]) << 10 if found else 0
    return 0


def violation(target: Target, data: bytes) -> str | None:
    """How a target breaks the contract with an input; None if it does not."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    problem = None
    try:
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        before = _memory("VmRSS")
        try:
            with _watched(folder), _limited():
                target.read(data, folder)
        except target.allowed as error:
            problem = unclear(error)
        except (Exception, Late) as error:
            problem = _told(error)
        if _watch.touched:
            problem = f"outside of its folder: {_watch.touched}"
        used = _memory("VmHWM") - before
        if problem is None and used > MEMORY:
            problem = f"{used >> 20} MiB for {len(data)} bytes"
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        estimatorkit.reset_default_graph()
    return problem


def _told(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)[-6:]
    where = "\n".join(f"    {each.filename}:{each.lineno} {each.name}" for each in frames)
    return f"{type(error).__name__}: {str(error)[:300]}\n{where}"


def unclear(error: Exception) -> str | None:
    """Whether a documented exception is not the package's own."""
    frames = traceback.extract_tb(error.__traceback__)
    own = frames[-1].filename.startswith((_PACKAGE, __file__.rpartition(os.sep)[0]))
    plain = isinstance(error, (OpError, NotImplementedError)) or not _RAW.match(str(error))
    if own and plain and str(error) and not isinstance(error, UnicodeError):
        return None
    return f"not in the package's words: {_told(error)}"
