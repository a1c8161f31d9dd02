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
    """Parses the command line's flags, runs `main`, and exits.

    Undefined flags are passed on to the program, which may parse them with `argparse`, as in
    TensorFlow; absl rejects them.

    Args:
        main: called with the remaining arguments, the program's name first; by default `main` of
            the calling program.
        argv: the command line; `sys.argv` by default.
    """
    engine = logging.getLogger("jax")
    if engine.level == logging.NOTSET:  # absl logs INFO of all, such as missing accelerators
        engine.setLevel(logging.WARNING)
    chosen = main if main is not None else sys.modules["__main__"].main
    app.run(chosen, argv=None if argv is None else list(argv), flags_parser=parse_known_flags)


def parse_known_flags(argv: Sequence[str]) -> list[str]:
    """Parses the flags that are defined; returns the rest of the command line."""
    rest: list[str] = flags.FLAGS(list(argv), known_only=True)
    return rest
