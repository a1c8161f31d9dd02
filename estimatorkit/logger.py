"""The package's logger, 'estimatorkit', in TensorFlow's format.

Where the program has configured logging, its handlers get the messages. Where it has not, training
would be silent; so the first training, evaluation or prediction attaches a handler that writes
`INFO:estimatorkit:...` lines to stderr.
"""

from __future__ import annotations

import logging
import sys

logger = logging.getLogger("estimatorkit")

# Programs that log everything would see that this machine has no TPU, line by line.
logging.getLogger("jax._src.xla_bridge").setLevel(logging.WARNING)


class _Stderr(logging.Handler):
    """Writes lines to what `sys.stderr` is at that moment, above a progress bar if one is shown."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("%(levelname)s:%(name)s:%(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        """Writes a message."""
        bars = getattr(sys.modules.get("tqdm"), "tqdm", None)  # imported by whoever shows one
        if bars is None:
            print(self.format(record), file=sys.stderr)
        else:
            bars.write(self.format(record), file=sys.stderr)


def attach_handler() -> bool:
    """Attaches the handler if nobody has configured logging; whether the logger has it."""
    if not logger.handlers and not logging.getLogger().handlers:
        logger.addHandler(_Stderr())
    return any(isinstance(handler, _Stderr) for handler in logger.handlers)


def ensure_visible() -> None:
    """Attaches the handler and shows lines of level INFO where nobody has configured logging."""
    if attach_handler() and logger.level == logging.NOTSET:
        logger.setLevel(logging.INFO)


def terminal() -> bool:
    """Whether a person watches: stderr is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()
