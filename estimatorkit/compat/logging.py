"""`tf.logging`: log messages in TensorFlow's format, through `absl.logging`."""

from __future__ import annotations

import logging

from absl import logging as absl_logging
from absl.logging import DEBUG as DEBUG
from absl.logging import ERROR as ERROR
from absl.logging import FATAL as FATAL
from absl.logging import INFO as INFO
from absl.logging import WARN as WARN
from absl.logging import debug as debug
from absl.logging import error as error
from absl.logging import fatal as fatal
from absl.logging import flush as flush
from absl.logging import get_verbosity as get_verbosity
from absl.logging import info as info
from absl.logging import log as log
from absl.logging import log_every_n as log_every_n
from absl.logging import log_first_n as log_first_n
from absl.logging import vlog as vlog
from absl.logging import warning as warning

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
