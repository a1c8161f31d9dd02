"""The state of floating-point units in which NumPy computes as XLA does on CPUs."""

from __future__ import annotations

import ctypes
import functools
import platform
import sys
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


class as_xla:
    """A context manager in which subnormal numbers are zeros, and nothing warns.

    Subnormal numbers would also take a hundred times as long. It holds for the calling thread.
    """

    def __enter__(self) -> None:
        self._quiet = np.errstate(all="ignore")
        self._quiet.__enter__()
        functions = _functions()
        if functions is not None:
            read, write = functions
            self._environment = environment = _Environment()
            address = ctypes.addressof(environment)
            read(address)
            self._before = environment.mxcsr
            environment.mxcsr |= _FLUSHES
            write(address)

    def __exit__(self, *_: object) -> None:
        functions = _functions()
        if functions is not None:
            environment = self._environment
            environment.mxcsr = self._before
            functions[1](ctypes.addressof(environment))
        self._quiet.__exit__(None, None, None)
