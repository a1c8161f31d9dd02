"""The readers of untrusted bytes: what reads, what it may raise, and inputs to begin with.

A target gets bytes and an empty folder. Where a format has checksums, the target writes them anew,
so that mutated contents reach what lies behind them. XLA's parser of programs is left out: it ends
the process for some. Inputs to begin with are made by the package's
own writers, or are the golden files that TensorFlow and Keras wrote.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import itertools
import json
import struct
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import h5py
import numpy as np
import pandas as pd
import pyarrow
import yaml
from pyarrow import feather, parquet

import estimatorkit as tf
from estimatorkit import keras
from estimatorkit.core.errors import InvalidArgumentError, OpError
from estimatorkit.data.csv import read_csv
from estimatorkit.data.datasets import movielens
from estimatorkit.data.iterator_ops import iterator_states
from estimatorkit.data.list_cells import split_cells
from estimatorkit.data.readers.idx import read_idx
from estimatorkit.data.readers.parquet import ArrowDataset, ParquetDataset
from estimatorkit.data.sharded_dataset import Order
from estimatorkit.distribute.cluster_task import ClusterTask
from estimatorkit.distribute.tasks import array_messages, rpc
from estimatorkit.distribute.tasks.serialized_partition import SerializedPartition
from estimatorkit.estimator.evaluation.completion import FILE, read_completion
from estimatorkit.estimator.evaluation.early_stopping import (
    _STATE as _STATE_OF_BEST,
    BestCheckpoint,
)
from estimatorkit.estimator.evaluation.evaluation_records import LINES, read_eval_metrics
from estimatorkit.estimator.evaluation.metric_monitor import MetricMonitor
from estimatorkit.estimator.explanations import BACKGROUND_FILE, background_json, read_background
from estimatorkit.estimator.serving import rest_json
from estimatorkit.estimator.serving.exporters import BestExporter
from estimatorkit.estimator.serving.predictor import Predictor, load_predictor
from estimatorkit.experiment import folds, reading, tables
from estimatorkit.experiment.load import load_experiment
from estimatorkit.experiment.serving import rest
from estimatorkit.experiment.tuning.search import Search
from estimatorkit.experiment.tuning.space import Dimension
from estimatorkit.storage import checkpoint, checkpoint_delta, records, wire
from estimatorkit.storage.checkpoint_state import get_checkpoint_state
from estimatorkit.storage.tensor_slice import TensorSlice
from estimatorkit.train.saving.saver import restore_input
from tests.data.test_recommender_data import FILES_1M
from tests.estimator import exported
from tests.storage.table_writer import message, table

GOLDEN = Path(__file__).parents[1] / "golden"
CONFIGS = Path(__file__).parents[2] / "configs"


class Target(NamedTuple):
    """A reader.

    Attributes:
        kind: how its inputs are mutated (see `mutations`).
        read: reads the bytes; may write to the folder.
        seeds: makes valid inputs.
        allowed: the documented exceptions.
        native: whether a library in C++ parses the bytes, whose crashes end the process; then the
            suite reads the seeds and the corpus, but no mutations.
    """

    kind: str
    read: Callable[[bytes, Path], object]
    seeds: Callable[[], Sequence[bytes]]
    allowed: tuple[type[Exception], ...]
    native: bool


TARGETS: dict[str, Target] = {}
_Read = Callable[[bytes, Path], object]


def target(
    kind: str,
    seeds: Callable[[], Sequence[bytes]],
    allowed: tuple[type[Exception], ...] = (OpError,),
    native: bool = False,
) -> Callable[[_Read], _Read]:
    """Adds a function of bytes and a folder to the targets, under its name."""

    def add(read: _Read) -> _Read:
        name = read.__name__.strip("_")
        TARGETS[name] = Target(kind, read, functools.cache(seeds), allowed, native)
        return read

    return add


def written(folder: Path, files: dict[str, bytes]) -> Path:
    """Writes files by relative name."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def files_of(make: Callable[[Path], object]) -> dict[str, bytes]:
    """The files that a function writes to a folder, by relative name."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        make(folder)
        found = [path for path in folder.rglob("*") if path.is_file()]
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def file_of(make: Callable[[str], object], name: str = "file") -> bytes:
    """The file that a function writes to a path."""
    return files_of(lambda folder: make(str(folder / name)))[name]


def drained(rows: Iterable[Any], most: int = 10_000) -> None:
    """Reads all rows, or as many as a small file holds."""
    deque(itertools.islice(rows, most), maxlen=0)


class Op:
    """An operation on a scalar string, whose graph is built once."""

    def __init__(self, build: Callable[[Any], Any]) -> None:
        self._build = build

    @functools.cached_property
    def _call(self) -> Callable[[bytes], Any]:
        with tf.Graph().as_default() as graph:
            fed = tf.placeholder(tf.string, [])
            call: Any = tf.Session(graph=graph).make_callable(self._build(fed), [fed])
            return call  # type: ignore[no-any-return]

    def __call__(self, data: bytes, _: Path) -> None:
        self._call(np.array(data, object))


def op_target(
    name: str, seeds: Callable[[], Sequence[bytes]], build: Callable[[Any], Any], kind: str
) -> None:
    """Adds an operation to the targets."""
    TARGETS[name] = Target(kind, Op(build), functools.cache(seeds), (OpError,), False)


# -- records


def _record_files() -> list[bytes]:
    def write(options: str) -> Callable[[str], None]:
        def to(path: str) -> None:
            with records.TFRecordWriter(path, options) as writer:
                for text in (b"", b"one", b"x" * 300):
                    writer.write(text)

        return to

    return [file_of(write(each)) for each in ("", "GZIP", "ZLIB")]


@target("bytes", _record_files)
def tfrecords(data: bytes, folder: Path) -> None:
    path = folder / "file"
    path.write_bytes(data)
    compression = {b"\x1f": "GZIP", b"\x78": "ZLIB"}.get(data[:1], "")
    drained(records.read_records(path, compression))


@target("bytes", lambda: [struct.pack("<Q", 3) + b"one" + struct.pack("<Q", 2) + b"xy"])
def tfrecord_lengths(data: bytes, folder: Path) -> None:
    """Records of any length, under right checksums."""
    made, at = b"", 0
    while at < len(data):
        length, body = data[at : at + 8], b""
        if len(length) == 8:
            body = data[at + 8 : at + 8 + int.from_bytes(length, "little")]
            body += struct.pack("<I", records.masked_crc32c(body))
        made += length + struct.pack("<I", records.masked_crc32c(length)) + body
        at += 8 + max(len(body) - 4, 0)
    tfrecords(made, folder)


def _event_file() -> list[bytes]:
    def write(folder: Path) -> None:
        with tf.Graph().as_default() as graph, tf.summary.FileWriter(str(folder), graph) as writer:
            tf.constant(1.0)
            value = tf.Summary.Value(tag="loss", simple_value=0.5)
            writer.add_summary(tf.Summary(value=[value]), 3)

    return list(files_of(write).values())


@target("bytes", _event_file)
def events(data: bytes, folder: Path) -> None:
    path = folder / "events.out.tfevents.1"
    path.write_bytes(data)
    read_eval_metrics(folder)


@target(
    "proto",
    lambda: [
        tf.Event(
            step=3, summary=tf.Summary(value=[tf.Summary.Value(tag="loss", simple_value=0.5)])
        ).SerializeToString()
    ],
)
def event(data: bytes, folder: Path) -> None:
    """An event under right checksums."""
    events(file_of(lambda path: _write_record(path, data)), folder)


def _write_record(path: str, data: bytes) -> None:
    with records.TFRecordWriter(path) as writer:
        writer.write(data)


# -- operations on strings

_FEATURES = {
    "floats": tf.FixedLenFeature([2], tf.float32, [0.0, 0.0]),
    "words": tf.VarLenFeature(tf.string),
    "at": tf.SparseFeature("at_index", "at_value", tf.float32, 100),
    "steps": tf.FixedLenSequenceFeature([2], tf.int64, allow_missing=True),
}


def _example(shift: int) -> Any:
    def feature(*values: Any) -> Any:
        if isinstance(values[0], bytes):
            return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
        if isinstance(values[0], float):
            return tf.train.Feature(float_list=tf.train.FloatList(value=values))
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))

    return tf.train.Example(
        features=tf.train.Features(
            feature={
                "floats": feature(0.5, 1.5),
                "words": feature(b"a", b"word" * shift),
                "at_index": feature(3, 5 + shift),
                "at_value": feature(0.5, 2.5),
                "steps": feature(*range(2 * shift)) if shift else feature(1, 2),
            }
        )
    )


def _examples() -> list[bytes]:
    return [_example(shift).SerializeToString() for shift in range(3)]


def _parsed(serialized: Any) -> list[Any]:
    fixed = tf.convert_to_tensor(_examples())
    batch = tf.concat([fixed, serialized[None]], 0)
    found = {
        **tf.parse_example(batch, _FEATURES),
        "one": tf.parse_single_example(
            serialized, {key: each for key, each in _FEATURES.items() if key != "at"}
        ),
    }
    return [
        each.values if isinstance(each, tf.SparseTensor) else each
        for each in tf.nest.flatten(found)
    ]


def _sequences() -> list[bytes]:
    steps = [tf.train.Feature(int64_list=tf.train.Int64List(value=[n, n])) for n in range(3)]
    lists = tf.train.FeatureLists(feature_list={"steps": tf.train.FeatureList(feature=steps)})
    made = tf.train.SequenceExample(context=_example(1).features, feature_lists=lists)
    return [made.SerializeToString()]


def _parsed_sequence(serialized: Any) -> Any:
    steps = {"steps": tf.FixedLenSequenceFeature([2], tf.int64)}
    context = {"floats": _FEATURES["floats"]}
    one = tf.parse_single_sequence_example(serialized, context, steps)
    many = tf.io.parse_sequence_example(
        serialized[None], context, {"steps": tf.VarLenFeature(tf.int64)}
    )
    return [one[0], one[1], many[0], many[1]["steps"].values]


def _image(encode: Callable[[Any], Any]) -> bytes:
    with tf.Graph().as_default(), tf.Session() as session:
        pixels = tf.constant(np.arange(60, dtype=np.uint8).reshape(4, 5, 3))
        return bytes(session.run(encode(pixels)))


def _pictures(kind: str) -> list[bytes]:
    import io

    from PIL import Image

    pixels = Image.fromarray(np.arange(60, dtype=np.uint8).reshape(4, 5, 3))
    options: dict[str, Any] = {"save_all": True, "append_images": [pixels]} if kind == "GIF" else {}
    made = []
    for mode in ("RGB", "L", "P"):
        buffer = io.BytesIO()
        pixels.convert("L" if kind == "JPEG" and mode == "P" else mode).save(
            buffer, kind, **options
        )
        made.append(buffer.getvalue())
    return made


_CSV_DEFAULTS = [[0], [0.5], [""], [1.0], tf.constant([], tf.int64)]

op_target("example", _examples, _parsed, "proto")
op_target("sequence_example", _sequences, _parsed_sequence, "proto")
op_target(
    "json_example",
    lambda: [b'{"features": {"feature": {"x": {"floatList": {"value": [1.5]}}}}}'],
    tf.io.decode_json_example,
    "json",
)
op_target(
    "tensor",
    lambda: [tf.make_tensor_proto(each).SerializeToString() for each in ([1.5, 2.0], [0.0] * 9)],
    lambda serialized: tf.io.parse_tensor(serialized, tf.float32),
    "proto",
)
op_target(
    "csv_record",
    lambda: [b'1,2.5,"a ""b""",,7', b"-1,nan,,1e5,-9"],
    lambda record: tf.decode_csv(record, [[0], [0.5], [""], [1.0], [0.0]]),
    "bytes",
)
op_target("base64", lambda: [b"aGVsbG8"], tf.decode_base64, "bytes")
op_target("numbers", lambda: [b"1.5", b"-nan"], tf.string_to_number, "bytes")
op_target("image", lambda: _pictures("PNG") + _pictures("BMP"), tf.image.decode_image, "bytes")
op_target("jpeg", lambda: _pictures("JPEG"), tf.image.decode_jpeg, "bytes")
op_target("gif", lambda: _pictures("GIF"), tf.image.decode_gif, "bytes")
op_target(
    "png_16",
    lambda: _pictures("PNG"),
    lambda data: tf.image.decode_png(data, dtype=tf.uint16),
    "bytes",
)


# -- tables

_FRAME = pd.DataFrame(
    {"n": [1, 2, 3], "x": [0.5, None, 1e9], "word": ["a", "b, c", ""], "y": [True, False, True]}
)


def _csv() -> list[bytes]:
    return [_FRAME.to_csv(index=False).encode(), b'\xef\xbb\xbfa,b\r\n1,"x\ny"\r\n2,z\r\n']


@target("bytes", _csv, (OpError, ValueError))
def csv_file(data: bytes, folder: Path) -> None:
    path = folder / "file.csv"
    path.write_bytes(data)
    read_csv(path)


@target("bytes", _csv, (OpError, ValueError))
def csv_dataset(data: bytes, folder: Path) -> None:
    path = folder / "file.csv"
    path.write_bytes(data)
    made = tf.data.experimental.make_csv_dataset(str(path), 2, num_epochs=1, shuffle=False)
    drained(made.as_numpy_iterator())


@target("bytes", lambda: [b'1,2.5,a\n2,3.5,"b"\n'])
def csv_rows(data: bytes, folder: Path) -> None:
    path = folder / "file.csv"
    path.write_bytes(data)
    made = tf.data.experimental.CsvDataset(str(path), [tf.int64, [0.5], ""])
    drained(made.as_numpy_iterator())


@target("bytes", lambda: [*_csv(), gzip.compress(_csv()[0])], (OpError, ValueError))
def csv_of_experiment(data: bytes, folder: Path) -> None:
    path = folder / ("file.csv.gz" if data[:2] == b"\x1f\x8b" else "file.csv")
    path.write_bytes(data)
    tables.read_file(path)


@target("bytes", lambda: [b"a:0.3|b:1\n\nc:2\n"], (ValueError,))
def list_cells(data: bytes, folder: Path) -> None:
    for weights in (None, ":"):
        split_cells(data.split(b"\n"), "|", weights)


@target("bytes", lambda: ["\0".join(FILES_1M.values()).encode("latin-1")])
def movielens_files(data: bytes, folder: Path) -> None:
    for name, content in zip(FILES_1M, [*data.split(b"\0"), b"", b""], strict=False):
        (folder / name).write_bytes(content)
    movielens.read(movielens.ML_1M, folder)


def _arrow(write: Callable[[Any, str], object]) -> list[bytes]:
    whole = pyarrow.Table.from_pandas(_FRAME)
    return [file_of(functools.partial(write, each)) for each in (whole, whole.select(["n"]))]


@target("bytes", lambda: _arrow(parquet.write_table), (OpError, ValueError, TypeError), native=True)
def parquet_file(data: bytes, folder: Path) -> None:
    path = folder / "file.parquet"
    path.write_bytes(data)
    made: Any = ParquetDataset(str(path), missing="default")
    drained(made.as_numpy_iterator())
    tables.read_file(path)


@target(
    "bytes", lambda: _arrow(feather.write_feather), (OpError, ValueError, TypeError), native=True
)
def arrow_file(data: bytes, folder: Path) -> None:
    path = folder / "file.arrow"
    path.write_bytes(data)
    drained(ArrowDataset(str(path), missing="default").as_numpy_iterator())


def _idx() -> list[bytes]:
    plain = b"\0\0\x0d\x02" + struct.pack(">II", 2, 3) + np.arange(6, dtype=">f4").tobytes()
    return [plain, gzip.compress(plain), b"\0\0\x08\x01" + struct.pack(">I", 4) + b"abcd"]


@target("bytes", _idx)
def idx(data: bytes, folder: Path) -> None:
    path = folder / "file"
    path.write_bytes(data)
    read_idx(path)


# -- checkpoints

_SHARD = "model.ckpt-3/variables-00000-of-00001.safetensors"
_STATE, _MANIFEST = "model.ckpt-3/state.json", "model.ckpt-3/MANIFEST.json"


@functools.cache
def _checkpoint() -> dict[str, bytes]:
    def write(folder: Path) -> None:
        tensors = {"w": np.arange(6.0).reshape(2, 3), "words": np.array([b"a", b"bc"], object)}
        tensors["c"] = np.array([1j])
        state = {"step": 3, "list": [1, {"a": None}]}
        checkpoint.write_checkpoint(folder, "model.ckpt-3", tensors, state)

    return files_of(write)


def _sealed(manifest: bytes) -> bytes:
    body = manifest.rstrip().removesuffix(b"}").rstrip()
    digest = hashlib.sha256(body).hexdigest().encode()
    return body + b',\n "manifest_sha256": "' + digest + b'"\n}\n'


def _unsealed(manifest: bytes) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(manifest)
    del content["manifest_sha256"]
    return content


def _replaced(files: dict[str, bytes], name: str, data: bytes, manifest: str) -> dict[str, bytes]:
    """The files of a checkpoint with another content of one, and a manifest that says so."""
    content = _unsealed(files[manifest])
    entry = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    content["files"][name.rpartition("/")[2]] = entry
    return {**files, name: data, manifest: _sealed(json.dumps(content).encode())}


def _read_all(folder: Path) -> None:
    path = folder / "model.ckpt-3"
    checkpoint.latest_checkpoint(folder)
    checkpoint.list_variables(path)
    checkpoint.read_checkpoint(path)


@target("json", lambda: [json.dumps(_unsealed(_checkpoint()[_MANIFEST])).encode()])
def manifest(data: bytes, folder: Path) -> None:
    _read_all(written(folder, {**_checkpoint(), _MANIFEST: _sealed(data)}))


@target("bytes", lambda: [_checkpoint()[_MANIFEST]])
def manifest_file(data: bytes, folder: Path) -> None:
    _read_all(written(folder, {**_checkpoint(), _MANIFEST: data}))


@target("json", lambda: [_checkpoint()[_STATE]])
def checkpoint_state(data: bytes, folder: Path) -> None:
    _read_all(written(folder, _replaced(_checkpoint(), _STATE, data, _MANIFEST)))


@target("bytes", lambda: [_checkpoint()[_SHARD]])
def safetensors_file(data: bytes, folder: Path) -> None:
    _read_all(written(folder, _replaced(_checkpoint(), _SHARD, data, _MANIFEST)))


def _safetensors_header() -> list[bytes]:
    data = _checkpoint()[_SHARD]
    return [data[8 : 8 + int.from_bytes(data[:8], "little")]]


@target("json", _safetensors_header)
def safetensors_header(data: bytes, folder: Path) -> None:
    shard = _checkpoint()[_SHARD]
    content = shard[8 + int.from_bytes(shard[:8], "little") :]
    safetensors_file(struct.pack("<Q", len(data)) + data + content, folder)


@target(
    "bytes",
    lambda: [
        b'model_checkpoint_path: "model.ckpt-3"\nall_model_checkpoint_paths: "model.ckpt-3"\n'
        b"all_model_checkpoint_timestamps: 1.5e9\nlast_preserved_timestamp: 1\n"
    ],
)
def pointer(data: bytes, folder: Path) -> None:
    written(folder, {**_checkpoint(), "checkpoint": data})
    get_checkpoint_state(str(folder))
    found = checkpoint.latest_checkpoint(folder)
    assert found is None or Path(found).parent == folder


_BUNDLES = GOLDEN / "tensorflow_checkpoints"


def _bundle(name: str) -> dict[str, bytes]:
    [index] = [path for path in (_BUNDLES / name).glob("*.index")]
    files = [index, *index.parent.glob(f"{index.stem}.data-*")]
    return {path.name.replace(index.stem, "model.ckpt-3"): path.read_bytes() for path in files}


def _index_of(name: str) -> bytes:
    return _bundle(name)["model.ckpt-3.index"]


def _pairs(data: bytes) -> list[bytes]:
    """The entries of a table as a message with keys (1) and values (2)."""
    from estimatorkit.storage.sorted_table import SortedTable

    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        pairs = list(SortedTable(file.name).items())
    return [message(*((3, message((1, key), (2, value))) for key, value in pairs))]


def _table(data: bytes) -> bytes:
    pairs = {}
    try:
        for each in wire.messages(data, 3):
            found = dict(wire.fields(each))
            key, value = found.get(1, b""), found.get(2, b"")
            if isinstance(key, bytes) and isinstance(value, bytes):
                pairs[key] = value
    except ValueError:
        return b""
    return table(pairs)


_TENSORFLOW = ("all_dtypes", "partitioned", "two_shards")


@target("bytes", lambda: [_index_of("partitioned")])
def bundle_index(data: bytes, folder: Path) -> None:
    _read_all(written(folder, {**_bundle("partitioned"), "model.ckpt-3.index": data}))


def _entries_of(name: str) -> None:
    @target("proto", lambda: _pairs(_index_of(name)))
    def read(data: bytes, folder: Path) -> None:
        _read_all(written(folder, {**_bundle(name), "model.ckpt-3.index": _table(data)}))

    TARGETS[f"bundle_{name}"] = TARGETS.pop("read")


for _name in _TENSORFLOW:
    _entries_of(_name)


def _strings() -> list[bytes]:
    texts = [b"a", b"word", b""]
    return [bytes(map(len, texts)) + b"".join(texts)]


@target("bytes", _strings)
def bundle_strings(data: bytes, folder: Path) -> None:
    """Three strings, the first bytes of the input their lengths, under right checksums."""
    lengths, texts = data[:3], data[3:]
    first = wire.crc32c(b"".join(each.to_bytes(4, "little") for each in lengths))
    stored = wire.masked(first).to_bytes(4, "little")
    whole = wire.masked(wire.crc32c(stored + texts, first)).to_bytes(4, "little")
    content = lengths + stored + texts
    entry = message((1, 7), (2, message((2, message((1, 3))))), (5, len(content)))
    index = {
        b"": message((1, 1), (3, message((1, 1)))),
        b"s": entry + wire.encoded_varint(53) + whole,
    }
    files = {"model.ckpt-3.index": table(index), "model.ckpt-3.data-00000-of-00001": content}
    _read_all(written(folder, files))


def _version_1() -> bytes:
    [path] = [
        path
        for path in (_BUNDLES / "all_dtypes_version_1").iterdir()
        if path.name != "checkpoint" and not path.name.endswith(".meta")
    ]
    return path.read_bytes()


@target("bytes", lambda: [_version_1()])
def version_1_file(data: bytes, folder: Path) -> None:
    _read_all(written(folder, {"model.ckpt-3": data}))


@target("proto", lambda: _pairs(_version_1()))
def version_1(data: bytes, folder: Path) -> None:
    _read_all(written(folder, {"model.ckpt-3": _table(data)}))


# -- graphs


def _own_graph() -> list[bytes]:
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None, 2], "x")
        weights = tf.get_variable("w", [2, 3], initializer=tf.zeros_initializer())
        y = tf.cond(tf.reduce_any(x > 0), lambda: x @ weights, lambda: tf.zeros([1, 3]))
        tf.while_loop(lambda i, _: i < 3, lambda i, z: (i + 1, z * 2), [0, y])
        tf.strings.split(tf.constant(["a b"])).values.set_shape([None])
        tf.gradients(y, weights)
        words = tf.lookup.KeyValueTensorInitializer(["a", "b"], [0, 1])
        table = tf.lookup.StaticHashTable(words, -1)
        table.lookup(tf.constant(["b"]))
    return [graph.as_graph_def().SerializeToString()]


@target("proto", _own_graph, (OpError, ValueError, TypeError))
def own_graph(data: bytes, _: Path) -> None:
    _imported(data)


def _imported(data: bytes) -> None:
    from google.protobuf.message import DecodeError

    try:
        graph_def = tf.GraphDef.FromString(data)
    except DecodeError:
        return
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def)
        graph.as_graph_def()


def _graphs_of_tensorflow() -> list[bytes]:
    names = ("arrays", "cnn", "mlp", "strings", "variables")
    return [(GOLDEN / f"graphdef_{name}.pb").read_bytes() for name in names]


@target("proto", _graphs_of_tensorflow, (OpError, ValueError, TypeError))
def tensorflow_graph(data: bytes, _: Path) -> None:
    _imported(data)


def _meta_graph() -> list[bytes]:
    def write(path: str) -> None:
        with tf.Graph().as_default():
            weights = tf.get_variable("w", [2, 3], trainable=True)
            tf.add_to_collection("losses", tf.reduce_sum(weights))
            queue = tf.FIFOQueue(2, tf.int32)
            tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue(1)]))
            tf.train.export_meta_graph(path, saver_def=tf.train.Saver().as_saver_def())

    return [file_of(write)]


@target("proto", _meta_graph, (OpError, ValueError, TypeError))
def meta_graph(data: bytes, folder: Path) -> None:
    path = folder / "model.meta"
    path.write_bytes(data)
    with tf.Graph().as_default():
        tf.train.import_meta_graph(str(path))


def _saved_model(name: str) -> dict[str, bytes]:
    folder = GOLDEN / "saved_models" / name
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def _load_saved_model(folder: Path, data: bytes, name: str, file: str = "saved_model.pb") -> None:
    files = _saved_model(name)
    del files["saved_model.pb"]
    written(folder, {**files, file: data})
    with tf.Graph().as_default(), tf.Session() as session:
        tf.saved_model.loader.load(session, ["serve"], str(folder))


_OF_SAVED_MODELS = (OpError, OSError, ValueError, TypeError, RuntimeError)


@target(
    "proto", lambda: [_saved_model("tensorflow_vocabulary")["saved_model.pb"]], _OF_SAVED_MODELS
)
def tensorflow_saved_model(data: bytes, folder: Path) -> None:
    _load_saved_model(folder, data, "tensorflow_vocabulary")


@target(
    "proto", lambda: [_saved_model("estimatorkit_vocabulary")["saved_model.pb"]], _OF_SAVED_MODELS
)
def own_saved_model(data: bytes, folder: Path) -> None:
    _load_saved_model(folder, data, "estimatorkit_vocabulary")


def _as_text() -> list[bytes]:
    from google.protobuf import text_format

    from estimatorkit.train.saving.saved_model_files import saved_model_class

    data = _saved_model("estimatorkit_examples")["saved_model.pb"]
    return [text_format.MessageToString(saved_model_class().FromString(data)).encode()]


@target("bytes", _as_text, _OF_SAVED_MODELS)
def saved_model_text(data: bytes, folder: Path) -> None:
    _load_saved_model(folder, data, "estimatorkit_examples", "saved_model.pbtxt")


# -- exported models and requests


@functools.cache
def _export() -> dict[str, bytes]:
    return files_of(lambda folder: exported.export(exported.shared_model(), folder / "m"))


def _export_file(suffix: str) -> str:
    return min(name for name in _export() if name.endswith(suffix))


def _load_export(folder: Path, files: dict[str, bytes]) -> None:
    signature = _export_file("signature.json")
    home = (written(folder, files) / signature).parent
    with load_predictor(home) as predict:
        for each in predict.signatures:
            predict(_REQUEST, each)


_REQUEST = {key: value[:2] for key, value in exported.DATA.items()}


@target("json", lambda: [_export()[_export_file("signature.json")]], (OpError, ValueError))
def export_signature(data: bytes, folder: Path) -> None:
    _load_export(folder, {**_export(), _export_file("signature.json"): data})


def _export_with(name: str, data: bytes) -> dict[str, bytes]:
    """The files of an export with another content of one, whose checksum is right."""
    signature = _export_file("signature.json")
    content = json.loads(_export()[signature])
    entry = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    content["files"][name.split("/", 2)[2]] = entry
    return {**_export(), name: data, signature: json.dumps(content).encode()}


@target("proto", lambda: [_export()[_export_file("graph-0.pb")]], (OpError, ValueError))
def export_graph(data: bytes, folder: Path) -> None:
    _load_export(folder, _export_with(_export_file("graph-0.pb"), data))


@functools.cache
def _predictor() -> Predictor:
    folder = Path(tempfile.mkdtemp(prefix="fuzzed-export-"))
    signature = _export_file("signature.json")
    predictor = load_predictor((written(folder, _export()) / signature).parent)
    for rows in (1, 0):  # both graphs are read when they are first needed
        predictor(
            {
                key: np.full(
                    [rows, *(3 if dim is None else dim for dim in shape.as_list()[1:])],
                    b"a" if dtype.name == "string" else 1,
                )
                for key, (dtype, shape) in predictor.signature().inputs.items()
            }
        )
    return predictor


def _requests() -> list[bytes]:
    rows = [{"x": [1.0, 2.0, 3.5], "word": ["a"], "name": [{"b64": "dQ=="}]}]
    columns = {key: [row[key] for row in rows] for key in rows[0]}
    contents: list[Any] = [
        {"instances": rows},
        {"signature_name": "predict", "inputs": columns},
        {"inputs": {**columns, "word": [[None]]}},
    ]
    return [json.dumps(each).encode() for each in contents]


@target("json", _requests, (ValueError, InvalidArgumentError))
def request(data: bytes, _: Path) -> None:
    content = rest_json.parse(data)
    rest_json.dump(rest.ACTIONS[":predict"](_predictor(), content))


@target(
    "json",
    lambda: [
        b'{"examples": [{"x": [1.0], "w": "a"}, {"x": 2}], "context": {"n": {"b64": "dQ=="}}}'
    ],
    (ValueError,),
)
def examples_request(data: bytes, _: Path) -> None:
    signature: Any = SimpleNamespace(inputs={"examples": None})
    rest_json.example_inputs(rest_json.parse(data), signature)


@target("json", lambda: [background_json(_BACKGROUND).encode()], (ValueError, OpError))
def background(data: bytes, folder: Path) -> None:
    read_background(written(folder, {BACKGROUND_FILE: data}) / BACKGROUND_FILE)


_BACKGROUND = {"x": np.array([1.5, np.nan]), "w": np.array([b"a", b"\xff"], object)}

# -- Keras' files


def _model() -> Any:
    layers = keras.layers
    model = keras.Sequential(
        [
            layers.Dense(4, activation="relu", input_shape=(3,), name="one"),
            layers.BatchNormalization(name="norm"),
            layers.Dropout(0.5),
            layers.Dense(1, kernel_regularizer="l2", name="two"),
        ]
    )
    model.compile(keras.optimizers.Adam(0.01), "mse", metrics=["mae"])
    return model


@functools.cache
def _saved(suffix: str) -> bytes:
    with tf.Graph().as_default():
        return file_of(_model().save, f"model{suffix}")


@functools.cache
def _saved_folder() -> dict[str, bytes]:
    with tf.Graph().as_default():
        return files_of(lambda folder: _model().save(folder / "model.ckpt-3"))


def _load_model(path: Path) -> None:
    with tf.Graph().as_default():
        keras.models.load_model(str(path))


_OF_KERAS = (OpError, ValueError, TypeError)


@target("bytes", lambda: [_saved(".keras")], _OF_KERAS)
def keras_file(data: bytes, folder: Path) -> None:
    path = folder / "model.keras"
    path.write_bytes(data)
    _load_model(path)


@target("json", lambda: [_saved_folder()[_STATE]], _OF_KERAS)
def keras_state(data: bytes, folder: Path) -> None:
    files = _replaced(_saved_folder(), _STATE, data, _MANIFEST)
    _load_model(written(folder, files) / "model.ckpt-3")


@target("bytes", lambda: [_saved(".h5")], _OF_KERAS, native=True)
def hdf5_file(data: bytes, folder: Path) -> None:
    path = folder / "model.h5"
    path.write_bytes(data)
    _load_model(path)


def _hdf5_attributes() -> list[bytes]:
    with tempfile.NamedTemporaryFile() as named:
        Path(named.name).write_bytes(_saved(".h5"))
        with h5py.File(named.name) as file:
            found = {
                key: json.loads(file.attrs[key]) for key in ("model_config", "training_config")
            }
            group = file["model_weights"]
            found["layer_names"] = [each.decode() for each in group.attrs["layer_names"]]
            found["weight_names"] = [each.decode() for each in group["one"].attrs["weight_names"]]
    return [json.dumps(found).encode()]


@target("json", _hdf5_attributes, _OF_KERAS)
def hdf5_attributes(data: bytes, folder: Path) -> None:
    path = folder / "model.h5"
    path.write_bytes(_saved(".h5"))
    try:
        content = json.loads(data)
        with h5py.File(path, "r+") as file:
            for key, value in content.items():
                held = file["model_weights"]
                if key in ("model_config", "training_config"):
                    file.attrs[key] = json.dumps(value)
                elif key in ("layer_names", "weight_names"):
                    (held["one"] if key[0] == "w" else held).attrs[key] = value
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        return  # no attribute
    _load_model(path)


def _configs() -> list[bytes]:
    from tests.golden.snippets_keras_files import MODELS

    made = []
    for name in ("functional", "recurrent"):
        with tf.Graph().as_default():
            made.append(MODELS[name][0](keras).to_json().encode())
    return made


@target("json", _configs, _OF_KERAS)
def keras_config(data: bytes, _: Path) -> None:
    with tf.Graph().as_default():
        keras.models.model_from_json(data.decode(errors="replace"))


@target(
    "bytes", lambda: [yaml.safe_dump(json.loads(each)).encode() for each in _configs()], _OF_KERAS
)
def keras_yaml(data: bytes, _: Path) -> None:
    with tf.Graph().as_default():
        keras.models.model_from_yaml(data.decode(errors="replace"))


# -- experiments, clusters, what runs leave


@target(
    "bytes",
    lambda: [each.read_bytes() for each in sorted(CONFIGS.glob("*.yaml"))[:6]],
    (ValueError,),
)
def experiment(data: bytes, folder: Path) -> None:
    path = folder / "experiment.yaml"
    path.write_bytes(data)
    load_experiment(path)


def _experiments() -> list[bytes]:
    found = [yaml.safe_load(each.read_bytes()) for each in sorted(CONFIGS.glob("*.yaml"))]
    return [json.dumps(each).encode() for each in found]


@target("json", _experiments, (ValueError,))
def experiment_values(data: bytes, folder: Path) -> None:
    experiment(data, folder)  # JSON is YAML


@target(
    "json",
    lambda: [
        b'{"cluster": {"chief": ["a:1"], "worker": ["b:1", "c:2"], "ps": {"0": "d:1"}},'
        b' "task": {"type": "worker", "index": 1}, "environment": "cloud"}'
    ],
    (ValueError,),
)
def tf_config(data: bytes, _: Path) -> None:
    ClusterTask.of_environment({"TF_CONFIG": data.decode(errors="replace")})


def _completion() -> list[bytes]:
    metrics = {"loss": {"dtype": "float32", "value": 0.5}}
    ends = {"checkpoint": "model.ckpt-3", "restored": None}
    results = {"a": {"metrics": metrics, "exports": [None]}}
    made = {"version": 1, "step": 3, "max_steps": 5, "reason": None, **ends, "results": results}
    return [json.dumps(made).encode()]


@target("json", lambda: [b'{"metrics": {"auc": [0.5, 0.75]}, "epochs": 2.5}'])
def cross_validation(data: bytes, folder: Path) -> None:
    found = folds.read(written(folder, {folds.FILE: data}))
    if found is not None:
        found.lines()


@target("json", _completion)
def completion(data: bytes, folder: Path) -> None:
    (folder / FILE).write_bytes(data)
    read_completion(str(folder))


@target("json", lambda: [b'{"step": 3, "time": 1.5, "loss": 0.25, "words": ["a"]}'])
def metrics(data: bytes, folder: Path) -> None:
    (folder / LINES).write_bytes(data)
    read_eval_metrics(folder)


@target(
    "json",
    lambda: [
        b'{"kind": "TFRecordReader", "file": null, "in_file": 0, "produced": 2, "completed": 1}'
    ],
)
def reader_state(data: bytes, folder: Path) -> None:
    _restored(data, folder)


def _restore_reader(state: Any) -> Any:
    reader = tf.TFRecordReader()
    restore = reader.restore_state(state)
    with tf.control_dependencies([restore]):
        return reader.num_records_produced()


_restored = Op(_restore_reader)


def _pipeline() -> Any:
    shuffled = tf.data.Dataset.range(20).shuffle(5, seed=1).batch(4).repeat(3)
    rows = shuffled.interleave(lambda row: tf.data.Dataset.from_tensor_slices(row), cycle_length=2)
    return rows.make_one_shot_iterator().get_next()


def _positions() -> list[bytes]:
    with tf.Graph().as_default(), tf.Session() as session:
        element = _pipeline()
        for _ in range(7):
            session.run(element)
        return [json.dumps(iterator_states(session.state)).encode()]


@target("json", _positions)
def positions(data: bytes, _: Path) -> None:
    """Where a checkpoint's `state.json` says that iterators are."""
    try:
        states = json.loads(data)
    except ValueError:
        return
    with tf.Graph().as_default(), tf.Session() as session:
        _pipeline()
        restore_input(session, checkpoint.Checkpoint("path", {}, {"iterators": states}))


def _message() -> list[bytes]:
    sent: list[bytes] = []
    writer: Any = SimpleNamespace(
        write_with_metadata=lambda _, metadata: sent.append(bytes(metadata))
    )
    arrays = [np.arange(6.0).reshape(2, 3), np.array([b"a", b"bc"], object), np.array(True)]
    array_messages.send(writer, b'ReadVariables {"names": ["v"]}', arrays, number=3)
    return sent


@target("bytes", _message, (array_messages.BrokenMessage,))
def task_message(data: bytes, _: Path) -> None:
    column = SimpleNamespace(to_numpy=lambda: np.arange(16, dtype=np.uint8))
    chunk = SimpleNamespace(app_metadata=data, data=SimpleNamespace(column=lambda _: column))
    left = iter([chunk] * 3)
    array_messages.receive(lambda: next(left))


def _task_requests() -> list[bytes]:
    order = Order("data", 3, 1, None)
    partition = SerializedPartition(
        *(b"", ("x:0",), (), (), (), True, True, True, ()), {"x": ("a.py", 1, "x")}
    )
    made = [
        rpc.RunPrograms(("p", "q"), "worker", 1, 2, zero_copy=True),
        rpc.LoadProgram("p", partition),
        rpc.LeaseSteps("worker", "global_step", 1, 10, None),
        rpc.RestoreVariables("/model", {"v": TensorSlice("v", 0, 0, 3)}),
        rpc.Heartbeat("/job:ps/task:0", "process", {"digest": "0"}, True),
        rpc.RestoreShards(
            "worker", order, rpc.ShardQueueState(3, None, 2, ((0, 1),), ((0, 1, 2),))
        ),
    ]
    return [rpc.encode(each) for each in made]


@target("bytes", _task_requests, (rpc.MalformedMessage,))
def task_request(data: bytes, _: Path) -> None:
    rpc.encode(rpc.decode(data, (), rpc.Request))


# -- what runs leave in their folders


def _journal() -> list[bytes]:
    def write(folder: Path) -> None:
        _search(folder).run(lambda settings, report: report(0.5) or float(settings["rate"]), 2)

    return [files_of(write)["journal.log"]]


def _search(folder: Path) -> Search:
    space = {"rate": Dimension(choice=(1, 2))}
    return Search(space, MetricMonitor("loss", "min"), folder, 0)


@target("bytes", _journal)
def search_journal(data: bytes, folder: Path) -> None:
    _search(written(folder, {"journal.log": data})).best()


@target(
    "json",
    lambda: [
        b'{"metric": "loss", "mode": "min", "evaluation": "eval", "checkpoint": "model.ckpt-3",'
        b' "value": 0.5, "evaluations": [[3, 0.5]]}'
    ],
)
def best_checkpoint(data: bytes, folder: Path) -> None:
    found = BestCheckpoint(str(folder), MetricMonitor("loss", "min"), "eval")
    written(found._folder, {_STATE_OF_BEST: data})
    found._read_state()


@target(
    "json",
    lambda: [b'{"metrics": {"loss": 0.5}, "previous": {"loss": 1}, "exports_before": ["1"]}'],
)
def best_export(data: bytes, folder: Path) -> None:
    BestExporter(metric="loss")._read_best(written(folder, {"best.json": data}))


@target(
    "json",
    lambda: [b'{"kind": "csv", "settings": {"delimiter": ",", "header": true}, "without": ["y"]}'],
    (ValueError,),
)
def reading_of_export(data: bytes, folder: Path) -> None:
    reading._read(written(folder, {"reading.json": data}) / "reading.json", folder / "a.csv")


def _cached() -> list[bytes]:
    return [files_of(lambda folder: drained(_dataset(folder)))["file.cache"]]


def _dataset(folder: Path) -> Any:
    rows = {"x": np.arange(6, dtype=np.float32), "w": np.array([b"a", b"bc", b""] * 2, object)}
    made = tf.data.Dataset.from_tensor_slices(rows).batch(3).cache(str(folder / "file"))
    return made.as_numpy_iterator()


@target("bytes", _cached)
def dataset_cache(data: bytes, folder: Path) -> None:
    drained(_dataset(written(folder, {"file.cache": data})))


@functools.cache
def _delta() -> dict[str, bytes]:
    def write(folder: Path) -> None:
        written(folder, _checkpoint())
        tensors = {"w": np.arange(6.0).reshape(2, 3) * [[1.0], [2.0]]}
        checkpoint.write_checkpoint(folder, "model.ckpt-4", tensors, {"step": 4})
        names = (folder / "model.ckpt-3", folder / "model.ckpt-4", folder / "delta-4")
        checkpoint_delta.write_checkpoint_delta(*names)

    return {name: data for name, data in files_of(write).items() if "ckpt-4" not in name}


@target("json", lambda: [_delta()["delta-4/state.json"]])
def delta_state(data: bytes, folder: Path) -> None:
    files = _replaced(_delta(), "delta-4/state.json", data, "delta-4/MANIFEST.json")
    names = ("model.ckpt-3", "delta-4", "model.ckpt-5")
    checkpoint_delta.apply_checkpoint_delta(*(written(folder, files) / name for name in names))
