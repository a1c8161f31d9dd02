"""Writes `private_names.json`: where TensorFlow 2.15.1 defines the names of `tf.compat.v1`.

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_private_names.py

Maps a name of `python.<module>.<name>` to a public one, for functions and classes that are defined
in modules below `tensorflow.python` or `tensorflow_estimator.python`.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import tensorflow.compat.v1 as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import write_json

LEFT_OUT = {"app", "compat", "keras", "raw_ops", "test"}  # twins of other names; Keras is elsewhere


def public_names(module: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The functions and classes of the public modules."""
    for key in sorted(vars(module)):
        value = getattr(module, key, None)
        full = f"{name}.{key}".lstrip(".")
        if key.startswith("_") or full in LEFT_OUT:
            continue
        if inspect.ismodule(value) and "_api" in value.__name__:
            yield from public_names(value, full)
        elif inspect.isclass(value) or inspect.isfunction(value):
            yield full, value


def main() -> None:
    """Walks through the public modules and writes the file."""
    found: dict[str, str] = {}
    for name, value in public_names(tf):
        value = inspect.unwrap(value)
        package, _, below = value.__module__.partition(".")
        private = f"{below}.{value.__name__}"
        is_private = package.startswith("tensorflow") and below.startswith("python.")
        if is_private and name.rpartition(".")[2] == value.__name__:
            found.setdefault(private, name)
    write_json("private_names.json", {"about": {"tensorflow": tf.__version__}, "names": found})


if __name__ == "__main__":
    main()
