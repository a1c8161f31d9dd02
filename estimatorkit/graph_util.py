"""`tf.graph_util`: work on `GraphDef`s."""

from __future__ import annotations

from typing import Any

from estimatorkit.lazy import attach, names

_PLACES = {
    **names(
        "estimatorkit.interop.graph_util",
        *("convert_variables_to_constants", "extract_sub_graph", "remove_training_nodes"),
    ),
    **names("estimatorkit.interop.graphdef", "import_graph_def"),
}

_lazy_getattr, __dir__, __all__ = attach(__name__, _PLACES)


def __getattr__(name: str) -> Any:
    """Imports the public name `name`."""
    return _lazy_getattr(name)
