"""The state of floating-point units in which NumPy computes as XLA does on CPUs."""

from __future__ import annotations

import ctypes
import functools
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

_FLUSHES = 0x8040
"""Bits of the control register MXCSR: operands and results that are subnormal are zeros."""


class _Environment(ctypes.Structure):
    """The state of a thread's units: `fenv_t` of Linux on x86-64."""

    _fields_ = (("x87", ctypes.c_uint32 * 7), ("mxcsr", ctypes.c_uint32))


@functools.cache
def _functions() -> tuple[Any, Any] | None:
    """Those that read and set the state; None where XLA's is not known to differ."""
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "AMD64"):
        return None
    library = ctypes.CDLL(None)
    if not hasattr(library, "fesetenv"):
        library = ctypes.CDLL("libm.so.6")
    read, write = library.fegetenv, library.fesetenv
    read.argtypes = write.argtypes = (ctypes.c_void_p,)
    return read, write


@contextmanager
def as_xla() -> Iterator[None]:
    """A context manager in which subnormal numbers are zeros, and nothing warns.

    Subnormal numbers would also take a hundred times as long. It holds for the calling thread.
    """
    functions = _functions()
    with np.errstate(all="ignore"):
        if functions is None:
            yield
            return
        read, write = functions
        environment = _Environment()
        address = ctypes.addressof(environment)
        read(address)
        before = environment.mxcsr
        environment.mxcsr = before | _FLUSHES
        write(address)
        try:
            yield
        finally:
            environment.mxcsr = before
            write(address)
