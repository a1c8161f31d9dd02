"""`TFRecordDataset`: the records of TFRecord files."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from estimatorkit.data.dataset import Dataset
from estimatorkit.data.readers.record_files import (
    OpenFile,
    RecordFiles,
    byte_count,
    compression,
    file_names,
)
from estimatorkit.storage.records import BUFFER_SIZE, RecordReader


@dataclass(frozen=True, eq=False)
class TFRecords(RecordFiles):
    """See `TFRecordDataset`."""

    compression: Any
    buffer_size: Any

    def _opener(self) -> OpenFile:
        return functools.partial(_opened, self.compression, self.buffer_size or BUFFER_SIZE)


def _opened(compression: str, buffer_size: int, name: str, offset: int) -> RecordReader:
    return RecordReader(name, compression, buffer_size, start=offset)


class TFRecordDataset(Dataset):
    """The records of TFRecord files as strings, one file after the other.

    A position is a file and a byte offset, so resuming mid-epoch is a seek (a compressed file is
    decompressed up to there). Source: `tf.data.TFRecordDataset`.

    Args:
        filenames: a name, a list of names, a string tensor, or a dataset of names. Names may be
            URLs (`gs://...`).
        compression_type: None, '', 'GZIP' or 'ZLIB', or a string tensor.
        buffer_size: bytes read at a time; None for 128 KiB.
        num_parallel_reads: has no effect: TensorFlow interleaves records of so many files, here
            files are read in the order of the names. Use `interleave()` to interleave them.
        name: has no effect.

    Raises:
        DataLossError: a record is damaged or truncated (when it is read); names file and offset.
        NotFoundError: a file does not exist (when it is read).
        InvalidArgumentError: the compression is unknown.
    """

    def __init__(
        self,
        filenames: Any,
        compression_type: Any = None,
        buffer_size: Any = None,
        num_parallel_reads: Any = None,
        name: str | None = None,
    ) -> None:
        what = "TFRecordDataset()"
        super().__init__(
            TFRecords(
                file_names(filenames, what),
                compression(compression_type, what),
                byte_count(f"{what}: buffer_size", buffer_size),
            )
        )
