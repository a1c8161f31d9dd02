"""`tf.logging`: log messages in TensorFlow's format, through `absl.logging`."""

from __future__ import annotations

import logging

from absl import logging as absl_logging
from absl.logging import (
    DEBUG as DEBUG,
    ERROR as ERROR,
    FATAL as FATAL,
    INFO as INFO,
    WARN as WARN,
    debug as debug,
    error as error,
    fatal as fatal,
    flush as flush,
    get_verbosity as get_verbosity,
    info as info,
    log as log,
    log_every_n as log_every_n,
    log_first_n as log_first_n,
    vlog as vlog,
    warning as warning,
)

warn = warning


def set_verbosity(v: int | str) -> None:
    """Sets the least severe level of messages to show."""
    absl_logging.set_verbosity(v)
    absl_logging.use_absl_handler()


def get_logger() -> logging.Logger:
    """The underlying logger."""
    return absl_logging.get_absl_logger()


__all__ = [
    *("DEBUG", "ERROR", "FATAL", "INFO", "WARN", "debug", "error", "fatal", "flush", "get_logger"),
    *("get_verbosity", "info", "log", "log_every_n", "log_first_n", "set_verbosity", "vlog"),
    *("warn", "warning"),
]
