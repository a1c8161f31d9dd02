"""`tf.app.run`: parses the flags and calls `main`."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence
from typing import Any

from absl import app, flags


def run(
    main: Callable[[Sequence[str]], Any] | None = None, argv: Sequence[str] | None = None
) -> None:
    """Runs the program with the command line's flags parsed; ends the process.

    Flags that are not defined are left to the program (`argparse` often reads them), as in
    TensorFlow; absl refuses them.

    Args:
        main: the function, called with the arguments that no flag has taken, the program's name
            first; the calling program's `main` by default.
        argv: the command line; that of the process by default.
    """
    engine = logging.getLogger("jax")
    if engine.level == logging.NOTSET:  # absl shows INFO of all: which accelerators are not there
        engine.setLevel(logging.WARNING)
    chosen = main if main is not None else sys.modules["__main__"].main
    app.run(chosen, argv=None if argv is None else list(argv), flags_parser=parse_known_flags)


def parse_known_flags(argv: Sequence[str]) -> list[str]:
    """Parses the flags that are defined; returns the rest of the command line."""
    rest: list[str] = flags.FLAGS(list(argv), known_only=True)
    return rest
