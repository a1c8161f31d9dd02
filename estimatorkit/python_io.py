"""`tf.python_io`: files of TFRecords."""

from __future__ import annotations

from typing import Any

from estimatorkit.lazy import attach, names

_PLACES = names(
    "estimatorkit.storage.records",
    *("TFRecordCompressionType", "TFRecordOptions", "TFRecordWriter", "tf_record_iterator"),
)

_lazy_getattr, __dir__, __all__ = attach(__name__, _PLACES)


def __getattr__(name: str) -> Any:
    """Imports the public name `name`."""
    return _lazy_getattr(name)
