"""`tf.summary`: summary operations, `FileWriter`, and TensorBoard's protos."""

from __future__ import annotations

from estimatorkit.lazy import attach, names

_PLACES = {
    **names(
        "estimatorkit.ops.files.summary",
        "audio get_summary_description histogram image merge merge_all scalar tensor_summary text",
    ),
    **names("estimatorkit.interop.summary_writer", "FileWriter FileWriterCache"),
    **names("tensorboard.compat.proto.event_pb2", "Event SessionLog TaggedRunMetadata"),
    **names("tensorboard.compat.proto.summary_pb2", "Summary SummaryDescription"),
    **names("tensorboard.compat.proto.summary_pb2", "SummaryMetadata"),
}

__getattr__, __dir__, __all__ = attach(__name__, _PLACES)
