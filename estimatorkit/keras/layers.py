"""Layers (`tf.keras.layers`).

The classes of `estimatorkit.layers` by the names that Keras gives them, functions that merge
tensors, and the inputs of models.
"""

from __future__ import annotations

from estimatorkit.layers.registry import ALIASES, PLACES
from estimatorkit.lazy import attach, names

_PLACES = {
    **PLACES,
    **{alias: PLACES[name] for alias, name in ALIASES.items() if "V" not in alias},
    **names(
        "estimatorkit.layers.merging",
        "add average concatenate dot maximum minimum multiply subtract",
    ),
    **names("estimatorkit.layers.engine.base", "Layer"),
    **names("estimatorkit.layers.engine.input_spec", "InputSpec"),
    **names("estimatorkit.layers.registry", "deserialize serialize"),
    **names("estimatorkit.keras.engine.input_layer", "Input InputLayer"),
}

__getattr__, __dir__, __all__ = attach(__name__, _PLACES)
