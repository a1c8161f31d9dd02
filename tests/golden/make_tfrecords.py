"""Writes tfrecords.json: what TensorFlow's datasets of records give for files, sound and damaged.

Of each file there are its bytes in hexadecimal, of each dataset its elements and its error.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tensorflow as tf
from golden_files import error_of, write_json

RECORDS = [[b"", b"a", b"a record of some length"], [], [bytes(range(256)), b"x" * 400, b"end"]]


def _written(path: Path, compression: str, records: list[bytes]) -> None:
    with tf.io.TFRecordWriter(str(path), compression) as writer:
        for record in records:
            writer.write(record)


def _example(number: int) -> bytes:
    features = {
        "number": tf.train.Feature(int64_list=tf.train.Int64List(value=[number - 3, 1 << number])),
        "measure": tf.train.Feature(float_list=tf.train.FloatList(value=[number / 3])),
        "words": tf.train.Feature(
            bytes_list=tf.train.BytesList(value=[b"w%d" % each for each in range(number)])
        ),
    }
    example = tf.train.Example(features=tf.train.Features(feature=features))
    return bytes(example.SerializeToString())


def _elements(dataset: Any) -> dict[str, Any]:
    found: list[str] = []

    def run() -> None:
        for element in dataset:
            found.append(element.numpy().hex())

    error = error_of(run)
    if error is not None:
        error["first_line"] = re.sub(r'"[^"]*/', '"', error["first_line"])  # the folder
    return {"elements": found, "error": error}


def _files(folder: Path) -> Iterator[tuple[str, str, Path]]:
    """Names, compressions and paths of files of records."""
    for compression in ("", "GZIP", "ZLIB"):
        for number, records in enumerate(RECORDS):
            path = folder / f"{compression or 'plain'}{number}"
            _written(path, compression, records)
            yield path.name, compression, path
    sound = (folder / "plain0").read_bytes()
    for name, damaged in {
        "cut in a header": sound[:20],
        "cut in data": sound[:-5],
        "another length": sound[:16] + b"\x02" + sound[17:],
        "other data": sound[:28] + b"b" + sound[29:],
        "no records": b"age,sex\n30,f\n",
        "empty": b"",
    }.items():
        (folder / name).write_bytes(damaged)
        yield name, "", folder / name


FIXED: dict[str, tuple[bytes, dict[str, Any]]] = {
    "whole": (b"0123456789", {"record_bytes": 2}),
    "header and footer": (
        b"hh012345fff",
        {"record_bytes": 3, "header_bytes": 2, "footer_bytes": 3},
    ),
    "not whole": (b"0123456", {"record_bytes": 2, "header_bytes": 2}),
    "no body": (b"hh", {"record_bytes": 2, "header_bytes": 2}),
    "smaller than its header": (b"h", {"record_bytes": 2, "header_bytes": 2, "footer_bytes": 1}),
}


def main() -> None:
    content: dict[str, Any] = {"files": {}, "fixed": {}}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, compression, path in _files(folder):
            dataset = tf.data.TFRecordDataset(str(path), compression)
            content["files"][file] = {
                "compression": compression,
                "bytes": path.read_bytes().hex(),
                **_elements(dataset),
            }
        for file, (data, arguments) in FIXED.items():
            path = folder / "fixed"
            path.write_bytes(data)
            content["fixed"][file] = {
                "bytes": data.hex(),
                "arguments": arguments,
                **_elements(tf.data.FixedLengthRecordDataset(str(path), **arguments)),
            }
        _written(folder / "examples", "", [_example(number) for number in range(12)])
        features = {
            "number": tf.io.FixedLenFeature([2], tf.int64),
            "measure": tf.io.FixedLenFeature([], tf.float32),
            "words": tf.io.VarLenFeature(tf.string),
            "none": tf.io.FixedLenFeature([], tf.string, "nothing"),
        }

        def parse(texts: Any) -> Any:
            return tf.io.parse_example(texts, features)

        records = tf.data.TFRecordDataset(str(folder / "examples"))
        parsed = [
            {
                "number": batch["number"].numpy().tolist(),
                "measure": [float(each) for each in batch["measure"].numpy()],
                "indices": batch["words"].indices.numpy().tolist(),
                "words": [word.decode() for word in batch["words"].values.numpy()],
                "shape": batch["words"].dense_shape.numpy().tolist(),
                "none": [each.decode() for each in batch["none"].numpy()],
            }
            for batch in records.batch(5).map(parse)
        ]
        data = (folder / "examples").read_bytes().hex()
        content["examples"] = {"bytes": data, "batches": parsed}
    write_json("tfrecords.json", content)


if __name__ == "__main__":
    main()
