"""TensorBoard's embedding projector, as `tf.contrib.tensorboard.plugins.projector`."""

from __future__ import annotations

from typing import Any

from estimatorkit.lazy import attach, names

_PLACES = {
    **names("estimatorkit.interop.projector", "visualize_embeddings", "write_embeddings"),
    **names(
        "tensorboard.plugins.projector.projector_config_pb2",
        *("EmbeddingInfo", "ProjectorConfig", "SpriteMetadata"),
    ),
}

_lazy_getattr, __dir__, __all__ = attach(__name__, _PLACES)


def __getattr__(name: str) -> Any:
    """Imports the public name `name`."""
    return _lazy_getattr(name)
