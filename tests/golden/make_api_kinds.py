"""Writes api_kinds.json: what the names of api_names.json are in TensorFlow.

    python tests/golden/make_api_kinds.py

Kinds: class, function, module, value; names that TensorFlow 2.15's compat.v1 has not are left out.
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import tensorflow.compat.v1 as tf

HERE = Path(__file__).parent


def kind(value: Any) -> str:
    """The kind of a value."""
    if inspect.ismodule(value):
        return "module"
    if inspect.isclass(value):
        return "class"
    return "function" if callable(value) else "value"


def main() -> None:
    """Reads the names and writes the file."""
    names = json.loads((HERE / "api_names.json").read_text("utf-8"))["names"]
    kinds: dict[str, str] = {}
    for tiers in names.values():
        for name in [*tiers.get("S", ()), *tiers.get("A", ())]:
            found: Any = tf
            for part in name.rstrip("†²").split("."):
                found = getattr(found, part, None)
            if found is not None:
                kinds[name.rstrip("†²")] = kind(found)
    (HERE / "api_kinds.json").write_text(json.dumps(kinds, indent=0, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
