"""Writes records.json: files of TFRecords as TensorFlow writes them, in hexadecimal."""

from __future__ import annotations

import tempfile
from pathlib import Path

import tensorflow as tf
from golden_files import write_json

RECORDS = [b"", b"a", b"a record of some length", bytes(range(256))]


def main() -> None:
    content = {"records": [record.hex() for record in RECORDS], "files": {}}
    with tempfile.TemporaryDirectory() as folder:
        for compression in ("", "GZIP", "ZLIB"):
            path = Path(folder) / "file"
            with tf.io.TFRecordWriter(str(path), compression) as writer:
                for record in RECORDS:
                    writer.write(record)
            content["files"][compression] = path.read_bytes().hex()
    write_json("records.json", content)


if __name__ == "__main__":
    main()
