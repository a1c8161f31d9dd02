"""The fields of a `ConfigProto` that sessions honor.

Fields that mean something here:
`allow_soft_placement`, `log_device_placement`, `device_count["CPU"]`, `operation_timeout_in_ms` and
`graph_options.optimizer_options.opt_level` (L0: nothing is folded or shared) and
`graph_options.infer_shapes`. Other fields are accepted and have no effect, which is logged once.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from estimatorkit.core.errors import type_error
from estimatorkit.runtime.placement import Placer, set_cpu_devices

_logger = logging.getLogger("estimatorkit")

_IN_EFFECT = {
    *("allow_soft_placement", "log_device_placement", "device_count", "operation_timeout_in_ms"),
    "graph_options",
    "device_filters",  # a task of a cluster reaches the parameter servers and itself, and no others
}
_told: set[str] = set()


@dataclass(frozen=True)
class SessionOptions:
    """What a session does as its configuration says.

    Attributes:
        placer: gives operations their devices.
        timeout: seconds after which a blocked run ends with DeadlineExceededError; 0 for never.
        optimize: whether plans fold constants and share equal operations.
        infer_shapes: whether the session's `graph_def` tells the shapes of tensors.
    """

    placer: Placer
    timeout: float = 0.0
    optimize: bool = True
    infer_shapes: bool = False


def read_config(config: Any) -> SessionOptions:
    """The options of a `ConfigProto`; without one placement is soft.

    Raises:
        TypeError: it is no `ConfigProto`.
    """
    if config is None:
        return SessionOptions(Placer())
    from estimatorkit.runtime.protos import ConfigProto, OptimizerOptions

    if not isinstance(config, ConfigProto):
        raise type_error(
            f'Argument `config` must be a tf.ConfigProto, but got "{type(config).__name__}"',
            expected="ConfigProto or None",
        )
    if config.device_count.get("CPU", 0) > 1:
        set_cpu_devices(config.device_count["CPU"])
    ignored = {field.name for field, _ in config.ListFields()} - _IN_EFFECT - _told
    if ignored:
        _told.update(ignored)
        _logger.info(
            "ConfigProto fields without effect here: %s (XLA has its own threads and memory; see "
            "JAX's environment variables)",
            ", ".join(sorted(ignored)),
        )
    level = config.graph_options.optimizer_options.opt_level
    return SessionOptions(
        Placer(config.allow_soft_placement, config.log_device_placement),
        config.operation_timeout_in_ms / 1000,
        level != OptimizerOptions.L0,
        config.graph_options.infer_shapes,
    )
