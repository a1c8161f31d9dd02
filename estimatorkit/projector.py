"""TensorBoard's embedding projector, as `tf.contrib.tensorboard.plugins.projector`."""

from __future__ import annotations

from estimatorkit.lazy import attach, names

_PLACES = {
    **names("estimatorkit.interop.projector", "visualize_embeddings write_embeddings"),
    **names(
        "tensorboard.plugins.projector.projector_config_pb2",
        "EmbeddingInfo ProjectorConfig SpriteMetadata",
    ),
}

__getattr__, __dir__, __all__ = attach(__name__, _PLACES)
