from estimatorkit.interop.projector import (
    visualize_embeddings as visualize_embeddings, write_embeddings as write_embeddings,
)
from tensorboard.plugins.projector.projector_config_pb2 import (
    EmbeddingInfo as EmbeddingInfo, ProjectorConfig as ProjectorConfig,
    SpriteMetadata as SpriteMetadata,
)
