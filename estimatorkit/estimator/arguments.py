"""Validation of the arguments of `Estimator` and its methods."""

from __future__ import annotations

import functools
import inspect
import math
import numbers
import os
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

from estimatorkit.core.errors import value_error
from estimatorkit.core.source import SourceLine
from estimatorkit.estimator.run_config import RunConfig, default_session_config
from estimatorkit.logger import logger

_MODEL_FN_ARGUMENTS = {"features", "labels", "mode", "params", "config"}


def check_steps(steps: float | None, max_steps: float | None) -> tuple[int | None, int | None]:
    """Validates both by `check_count`.

    Raises:
        ValueError: both are given, or one is not positive.
    """
    if steps is not None and max_steps is not None:
        raise ValueError("Can not provide both steps and max_steps.")
    return check_count("steps", steps), check_count("max_steps", max_steps)


def check_count(name: str, value: Any) -> int | None:
    """Rounds a number of steps up, as `len(x) / batch_size` is a fraction; None stays None.

    Raises:
        ValueError: it is not finite and positive.
    """
    if value is None:
        return None
    if not _is_count(value):
        raise value_error(
            f"Must specify {name} > 0, given: {value}",
            expected="a number of steps, or None",
            received=repr(value),
        )
    count: int = math.ceil(value)
    return count


def _is_count(value: Any) -> bool:
    """Whether it is a finite, positive number, and not a bool."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (numbers.Real, np.ndarray)):
        return False
    number: Any = value
    return bool(0 < number < math.inf)


def as_list(value: Any) -> list[Any]:
    """Converts None, an item or several to a list."""
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


def arguments_of(function: Callable[..., Any]) -> list[str]:
    """The names of a function's arguments, except those bound by `functools.partial`."""
    given = function.keywords if isinstance(function, functools.partial) else {}
    return [
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        and name not in given
    ]


def line_of(function: Callable[..., Any]) -> SourceLine | None:
    """Where a function begins, for messages; None unless it is written in Python."""
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    code = getattr(function, "__code__", None)
    if code is None:
        return None
    return SourceLine(code.co_filename, code.co_firstlineno, function.__qualname__)


def check_model_fn(model_fn: Callable[..., Any], params: Any) -> None:
    """Raises ValueError unless a `model_fn` accepts the arguments it is called with."""
    names = arguments_of(model_fn)
    if "features" not in names:
        raise ValueError(f"model_fn ({model_fn}) must include features argument.")
    if params is not None and "params" not in names:
        raise ValueError(
            f"model_fn ({model_fn}) does not include params argument, but params ({params}) is "
            "passed to Estimator."
        )
    unknown = sorted(set(names) - _MODEL_FN_ARGUMENTS)
    if unknown:
        raise ValueError(f"model_fn ({model_fn}) has following not expected args: {unknown}")


def checked_config(config: RunConfig | None, model_dir: str | os.PathLike[str] | None) -> RunConfig:
    """The config with `model_dir` (given or temporary) and session config filled in.

    Raises:
        ValueError: two different folders are given.
    """
    config = config or RunConfig()
    given = None if model_dir is None else os.fspath(model_dir)
    if given is not None and config.model_dir not in (None, given):
        raise ValueError(
            "`model_dir` are set both in constructor and `RunConfig`, but with different values. "
            f"In constructor: '{given}', in `RunConfig`: '{config.model_dir}'"
        )
    chosen = given or config.model_dir
    if chosen is None:
        chosen = tempfile.mkdtemp(prefix="estimatorkit-")
        logger.warning("Using temporary folder as model directory: %s", chosen)
    if "\0" in os.fspath(chosen):
        raise value_error("model_dir has a NUL character", received=chosen)
    sessions = config.session_config
    if sessions is None:
        sessions = default_session_config()
    return config.replace(model_dir=os.fspath(chosen), session_config=sessions)


__all__ = [
    "arguments_of",
    "as_list",
    "check_count",
    "check_model_fn",
    "check_steps",
    "checked_config",
    "line_of",
]
