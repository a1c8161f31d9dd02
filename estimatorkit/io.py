"""`tf.io`: files, records, and what is read from them."""

from __future__ import annotations

from estimatorkit.lazy import attach, names

_PLACES = {
    "gfile": "estimatorkit.gfile",
    **names("estimatorkit.ops.files.files", "matching_files read_file write_file"),
    **names(
        "estimatorkit.storage.records",
        "TFRecordCompressionType TFRecordOptions TFRecordWriter tf_record_iterator",
    ),
    **names("estimatorkit.ops.text.csv_records", "decode_csv"),
    **names(
        "estimatorkit.ops.text.decoding",
        "decode_json_example decode_raw parse_tensor serialize_tensor",
    ),
    **names(
        "estimatorkit.ops.parsing.parsing",
        "FixedLenFeature FixedLenSequenceFeature SparseFeature VarLenFeature parse_example",
        "parse_sequence_example parse_single_example parse_single_sequence_example",
    ),
    **names("estimatorkit.ops.text.strings", "decode_base64 encode_base64"),
    **names(
        "estimatorkit.ops.queues.queue_kinds", "PaddingFIFOQueue PriorityQueue RandomShuffleQueue"
    ),
    **names("estimatorkit.ops.queues.queues", "QueueBase"),
    **names("estimatorkit.ops.image.encoding", "encode_jpeg encode_png"),
    **names(
        "estimatorkit.ops.image.files",
        "decode_and_crop_jpeg decode_bmp decode_gif decode_image decode_jpeg decode_png",
        "extract_jpeg_shape is_jpeg",
    ),
    **names("estimatorkit.interop.graph_util", "write_graph"),
    **names("estimatorkit.train.queues.input_producers", "match_filenames_once"),
}

__getattr__, __dir__, __all__ = attach(__name__, _PLACES)
