"""The devices of the tests: the default one, and the CPU beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import jax

import estimatorkit

_Result = TypeVar("_Result")


@contextmanager
def on_cpu() -> Iterator[None]:
    """A context manager in which what has no device runs on the CPU."""
    with jax.default_device(jax.devices("cpu")[0]):
        yield


def on_both(program: Callable[[], _Result]) -> tuple[_Result, _Result]:
    """What a program returns on the default device, and on the CPU, each time in a new graph."""

    def run() -> _Result:
        estimatorkit.reset_default_graph()
        return program()

    first = run()
    with on_cpu():
        return first, run()


def has_accelerator() -> bool:
    """Whether the default device is no CPU."""
    return jax.default_backend() != "cpu"


def memory_limit() -> int | None:
    """The bytes of the default device that JAX may use; None if it does not say."""
    statistics: dict[str, Any] = jax.devices()[0].memory_stats() or {}
    return statistics.get("bytes_limit")
