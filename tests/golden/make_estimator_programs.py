"""Programs with estimators of TensorFlow 2.15.1: hooks, subclasses, summaries, log messages.

Run, with TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_estimator_programs.py

Writes `estimator_programs.json` beside this file: what `snippets_estimator_programs.py` gives.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

import tensorflow as version_2  # type: ignore[import-not-found,import-untyped,unused-ignore]
import tensorflow.compat.v1 as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import write_json
from snippets_estimator_programs import (
    BASES,
    ENDINGS,
    HEADS,
    HOOKS,
    SUBCLASSES,
    SUMMARIES,
    log,
    run_ending,
    run_head,
    run_subclass,
)


def main() -> None:
    """Runs all snippets and writes the file."""
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.FATAL)

    def hooks(name: str) -> Callable[[str], Any]:
        def run(folder: str) -> Any:
            seen: dict[str, Any] = {}
            HOOKS[name](tf, folder, seen)
            return seen

        return run

    kinds: dict[str, dict[str, Callable[[str], Any]]] = {
        "hooks": {name: hooks(name) for name in HOOKS},
        "endings": {
            f"{way} in {method}": lambda folder, way=way, method=method: run_ending(
                tf, folder, way, method
            )
            for way, method in ENDINGS
        },
        "subclasses": {
            name: lambda folder, name=name: run_subclass(tf, folder, name) for name in SUBCLASSES
        },
        "heads": {
            f"{base}: {name}": lambda folder, name=name, base=base: run_head(
                tf, version_2, folder, name, base
            )
            for base in BASES
            for name in HEADS
        },
        "summaries": {
            name: lambda folder, run=run: run(tf, folder) for name, run in SUMMARIES.items()
        },
        "log": {"log": lambda folder: log(tf, folder)},
    }
    found: dict[str, dict[str, Any]] = {}
    for kind, programs in kinds.items():
        for name, run in programs.items():
            with tempfile.TemporaryDirectory() as folder:
                found.setdefault(kind, {})[name] = run(folder)
    write_json("estimator_programs.json", {"about": {"tensorflow": tf.__version__}, **found})


if __name__ == "__main__":
    main()
