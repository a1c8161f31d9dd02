"""`tf.python_io`: files of TFRecords."""

from __future__ import annotations

from estimatorkit.lazy import attach, names

_PLACES = names(
    "estimatorkit.storage.records",
    "TFRecordCompressionType TFRecordOptions TFRecordWriter tf_record_iterator",
)

__getattr__, __dir__, __all__ = attach(__name__, _PLACES)
