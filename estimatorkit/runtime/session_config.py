"""The fields of a `ConfigProto` that sessions honor.

These are `allow_soft_placement`, `log_device_placement`, `device_count["CPU"]`,
`operation_timeout_in_ms`, `graph_options.infer_shapes`, in `graph_options.optimizer_options`
`opt_level` (L0 disables the graph optimizer) and `global_jit_level`, and
`experimental.executor_type` (for these two, see `execution_mode`). Other fields have no effect,
which is logged once.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from estimatorkit.core.errors import type_error
from estimatorkit.runtime.execution_mode import executor_of
from estimatorkit.runtime.xla.placement import Placer, set_cpu_devices

_logger = logging.getLogger("estimatorkit")

_IN_EFFECT = {
    "allow_soft_placement",
    "log_device_placement",
    "device_count",
    "operation_timeout_in_ms",
    "graph_options",
    "experimental.executor_type",
    "device_filters",  # a task reaches the parameter servers and itself, and no others
}
_told: set[str] = set()


@dataclass(frozen=True)
class SessionOptions:
    """The options of a session.

    Attributes:
        placer: maps operations to devices.
        timeout: the deadline of runs in seconds; 0 for none.
        optimize: whether to fold constants and eliminate common subexpressions.
        infer_shapes: whether the session's `graph_def` includes the shapes of tensors.
        executor: how device segments run (see `execution_mode`); None for the process's default.
    """

    placer: Placer
    timeout: float = 0.0
    optimize: bool = True
    infer_shapes: bool = False
    executor: str | None = None


def read_config(config: Any) -> SessionOptions:
    """Reads the options of a `ConfigProto`; None means soft placement.

    Raises:
        TypeError: it is not a `ConfigProto`.
        ValueError: it names an unknown executor.
    """
    if config is None:
        return SessionOptions(Placer())
    from tensorboard.compat.proto.config_pb2 import ConfigProto, OptimizerOptions

    if not isinstance(config, ConfigProto):
        raise type_error(
            f'Argument `config` must be a tf.ConfigProto, but got "{type(config).__name__}"',
            expected="ConfigProto or None",
        )
    if config.device_count.get("CPU", 0) > 1:
        set_cpu_devices(config.device_count["CPU"])
    ignored = _fields(config) - _IN_EFFECT - _told
    if ignored:
        _told.update(ignored)
        _logger.info(
            "Ignored ConfigProto fields: %s (XLA manages threads and memory itself; see "
            "JAX's environment variables)",
            ", ".join(sorted(ignored)),
        )
    level = config.graph_options.optimizer_options.opt_level
    return SessionOptions(
        Placer(config.allow_soft_placement, config.log_device_placement),
        config.operation_timeout_in_ms / 1000,
        level != OptimizerOptions.L0,
        config.graph_options.infer_shapes,
        executor_of(config),
    )


def _fields(config: Any) -> set[str]:
    """The fields that are set; those of `experimental` one by one, with its name before them."""
    names = {field.name for field, _ in config.ListFields()} - {"experimental"}
    return names | {f"experimental.{field.name}" for field, _ in config.experimental.ListFields()}
