"""`TFRecordDataset`: the records of files of TFRecords."""

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
    """The records of files of TFRecords, strings, one file after the other.

    A position is a file and an offset in it: to go on in the middle of an epoch is a seek (a
    compressed file is unpacked up to there). Source: `tf.data.TFRecordDataset`.

    Args:
        filenames: a name, a list of names, a string tensor, or a dataset of names. Names may be
            URLs (`gs://...`).
        compression_type: None, '', 'GZIP' or 'ZLIB'; a string tensor.
        buffer_size: bytes read at a time; None for 128 KiB.
        num_parallel_reads: accepted. TensorFlow takes records of so many files in turn; here they
            come file by file, in the order of the names. `interleave()` takes them in turn.
        name: accepted for TensorFlow's signature.

    Raises:
        DataLossError: a record is damaged or cut off (when it is read; file and offset are named).
        NotFoundError: a file is not there (when it is read).
        InvalidArgumentError: there is no such compression.
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
