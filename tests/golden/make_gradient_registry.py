"""Which op types of TensorFlow 2.15.1 have a gradient.

Run, with TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_gradient_registry.py

Writes `gradient_registry.json` beside this file: for each op type True if a gradient is registered,
False if it is declared not differentiable (or its gradient is None for every input), None if
differentiating it is an error.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import tensorflow as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import write_json
from tensorflow.core.framework import (  # type: ignore[import-not-found,import-untyped,unused-ignore]
    op_def_pb2,
)
from tensorflow.python import ops as modules
from tensorflow.python.client import (  # type: ignore[import-not-found,import-untyped,unused-ignore]
    pywrap_tf_session,
)
from tensorflow.python.framework import (  # type: ignore[import-not-found,import-untyped,unused-ignore]
    ops,
)

NONE_FOR_EVERY_INPUT = (
    *("ArgMax", "ArgMin", "Ceil", "Floor", "FloorDiv", "Rint", "Round", "TruncateDiv"),
)


def _op_types() -> list[str]:
    every = op_def_pb2.OpList()
    every.ParseFromString(pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList()))
    return sorted(each.name for each in every.op)


def main() -> None:
    """Imports all modules of gradients, and writes the file."""
    for module in pkgutil.walk_packages(modules.__path__, modules.__name__ + "."):
        if "grad" in module.name.rpartition(".")[2] and not module.name.endswith("_test"):
            importlib.import_module(module.name)
    registry: Any = ops._gradient_registry
    registered = set(registry.list())
    types: dict[str, bool | None] = {
        name: None
        if name not in registered
        else registry.lookup(name) is not None and name not in NONE_FOR_EVERY_INPUT
        for name in _op_types()
    }
    write_json("gradient_registry.json", {"about": {"tensorflow": tf.__version__}, "types": types})


if __name__ == "__main__":
    main()
