"""`tf.logging`: the package's logger, with the levels of Python's `logging`, as in TensorFlow.

`set_verbosity` also decides which lines of trainings are shown.
"""

from __future__ import annotations

import collections
import logging
import sys
from typing import Any

from estimatorkit.logger import attach_handler, logger

DEBUG = logging.DEBUG
ERROR = logging.ERROR
FATAL = logging.FATAL
INFO = logging.INFO
WARN = logging.WARNING

_calls: collections.Counter[tuple[str, int]] = collections.Counter()
"""How often `log_every_n` and `log_first_n` were called, by file and line."""


def get_logger() -> logging.Logger:
    """The package's logger; it writes to stderr unless the program has configured logging."""
    attach_handler()
    return logger


def log(level: int, msg: object, *args: Any, **kwargs: Any) -> None:
    """Logs `msg % args` at a level.

    Args:
        level: one of `DEBUG`, `INFO`, `WARN`, `ERROR` and `FATAL`, or a number between.
        msg: the message.
        args, kwargs: as for `logging.Logger.log`.
    """
    kwargs["stacklevel"] = kwargs.get("stacklevel", 1) + 1
    get_logger().log(level, msg, *args, **kwargs)


def debug(msg: object, *args: Any, **kwargs: Any) -> None:
    """Logs a message at level DEBUG."""
    log(DEBUG, msg, *args, stacklevel=2, **kwargs)


def info(msg: object, *args: Any, **kwargs: Any) -> None:
    """Logs a message at level INFO."""
    log(INFO, msg, *args, stacklevel=2, **kwargs)


def warning(msg: object, *args: Any, **kwargs: Any) -> None:
    """Logs a message at level WARN."""
    log(WARN, msg, *args, stacklevel=2, **kwargs)


def error(msg: object, *args: Any, **kwargs: Any) -> None:
    """Logs a message at level ERROR."""
    log(ERROR, msg, *args, stacklevel=2, **kwargs)


def fatal(msg: object, *args: Any, **kwargs: Any) -> None:
    """Logs a message at level FATAL; the program continues."""
    log(FATAL, msg, *args, stacklevel=2, **kwargs)


warn = warning
vlog = log


def log_every_n(level: int, msg: object, n: int, *args: Any) -> None:
    """Logs the first of every `n` messages of the calling line."""
    if _count() % n == 0:
        log(level, msg, *args, stacklevel=2)


def log_first_n(level: int, msg: object, n: int, *args: Any) -> None:
    """Logs the first `n` messages of the calling line."""
    if _count() < n:
        log(level, msg, *args, stacklevel=2)


def flush() -> None:
    """Flushes the logger's handlers."""
    for handler in logger.handlers:
        handler.flush()


def get_verbosity() -> int:
    """The threshold: messages below this level are not shown."""
    return get_logger().getEffectiveLevel()


def set_verbosity(v: int | str) -> None:
    """Sets the least severe level of messages to show, by number or name."""
    get_logger().setLevel(v)


def _count() -> int:
    """How often the line that called the caller has come here before."""
    frame = sys._getframe(2)
    place = (frame.f_code.co_filename, frame.f_lineno)
    _calls[place] += 1
    return _calls[place] - 1


__all__ = [
    "DEBUG",
    "ERROR",
    "FATAL",
    "INFO",
    "WARN",
    "debug",
    "error",
    "fatal",
    "flush",
    "get_logger",
    "get_verbosity",
    "info",
    "log",
    "log_every_n",
    "log_first_n",
    "set_verbosity",
    "vlog",
    "warn",
    "warning",
]
