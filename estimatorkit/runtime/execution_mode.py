"""How device segments run: compiled by XLA, interpreted in NumPy, or both.

`auto`, the default, interprets the first runs of a segment, until its executable is worth its
compilation (see `interpreted`); `xla` compiles before the first run; `interpret` never compiles.
`ESTIMATORKIT_EXECUTOR` chooses for the process, and a session's `ConfigProto` for itself:
`config.experimental.executor_type` may be one of the three, and a `global_jit_level` of `ON_1` or
`ON_2` means `xla`. TensorFlow's own executor types leave the choice to the process.
"""

from __future__ import annotations

import os
from typing import Any

from estimatorkit.core.errors import value_error

EXECUTORS = ("auto", "xla", "interpret")

_VARIABLE = "ESTIMATORKIT_EXECUTOR"

_TENSORFLOWS = ("", "DEFAULT", "SINGLE_THREADED_EXECUTOR")
"""Executor types of TensorFlow, which say how threads share the operations of a step."""


def default_executor() -> str:
    """The executor of the process.

    Raises:
        ValueError: the environment names an unknown one.
    """
    return _checked(os.environ.get(_VARIABLE) or "auto", f"the environment variable {_VARIABLE}")


def executor_of(config: Any) -> str | None:
    """The executor that a `ConfigProto` chooses; None if it leaves it to the process.

    Raises:
        ValueError: it names an unknown one.
    """
    chosen = config.experimental.executor_type
    if chosen not in _TENSORFLOWS:
        return _checked(chosen, "config.experimental.executor_type")
    options = config.graph_options.optimizer_options
    on = options.global_jit_level in (options.ON_1, options.ON_2)
    return "xla" if on else None


def _checked(executor: str, where: str) -> str:
    if executor not in EXECUTORS:
        raise value_error(
            f"unknown executor {executor!r} in {where}",
            expected=" or ".join(map(repr, EXECUTORS)),
        )
    return executor
