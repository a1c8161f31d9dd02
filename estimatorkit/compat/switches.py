"""Switches between TensorFlow 1 and 2; those for the behaviour here have no effect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from estimatorkit.core.errors import value_error


def _already(name: str) -> Callable[[], None]:
    def switch() -> None:
        """Does nothing: this is the only behaviour."""

    switch.__name__ = switch.__qualname__ = name
    return switch


disable_v2_behavior = _already("disable_v2_behavior")
disable_eager_execution = _already("disable_eager_execution")
disable_control_flow_v2 = _already("disable_control_flow_v2")
enable_control_flow_v2 = _already("enable_control_flow_v2")
enable_resource_variables = _already("enable_resource_variables")
disable_resource_variables = _already("disable_resource_variables")
disable_tensor_equality = _already("disable_tensor_equality")
disable_v2_tensorshape = _already("disable_v2_tensorshape")


def resource_variables_enabled() -> bool:
    """True: variables behave like TensorFlow's resource variables."""
    return True


def executing_eagerly() -> bool:
    """False: programs are graphs with sessions."""
    return False


def enable_eager_execution(*args: Any, **kwargs: Any) -> NoReturn:
    """Not supported: always raises ValueError, as programs are graphs with sessions."""
    raise value_error(
        "eager execution is not part of estimatorkit",
        expected="a graph and a session, as in TensorFlow 1",
        hint="leave the call out, and evaluate tensors with session.run",
    )


compat_eager_only = enable_eager_execution
