"""`tf.graph_util`: work on `GraphDef`s."""

from __future__ import annotations

from estimatorkit.lazy import attach, names

_PLACES = {
    **names(
        "estimatorkit.interop.graph_util",
        "convert_variables_to_constants extract_sub_graph remove_training_nodes",
    ),
    **names("estimatorkit.interop.graphdef", "import_graph_def"),
}

__getattr__, __dir__, __all__ = attach(__name__, _PLACES)
