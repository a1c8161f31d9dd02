"""TensorFlow's checkpoints: values as TensorFlow reads them, and all kinds of damage."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from numpy.typing import NDArray

from estimatorkit.core import errors
from estimatorkit.storage.checkpoint import (
    checkpoint_exists,
    latest_checkpoint,
    list_variables,
    load_variable,
    read_checkpoint,
    remove_checkpoint,
)
from estimatorkit.storage.checkpoint_reader import CheckpointReader, load_checkpoint
from estimatorkit.storage.checkpoint_state import get_checkpoint_state
from estimatorkit.storage.snappy import decompress
from estimatorkit.storage.sorted_table import SortedTable
from estimatorkit.storage.tensor_slices import slice_key
from estimatorkit.storage.tensorflow_checkpoint import open_tensorflow
from tests.storage.table_writer import bundle_entry, literal, message, table, varint

GOLDEN = Path(__file__).parents[1] / "golden" / "tensorflow_checkpoints"
FACTS = json.loads((GOLDEN / "facts.json").read_text("utf-8"))
HEADER = message((1, 1), (3, message((1, 1))))
SLOW = (HealthCheck.function_scoped_fixture,)


def plain(array: NDArray[Any]) -> Any:
    """A value as `facts.json` has it."""
    if array.dtype == object:
        texts = [text.decode("latin-1") for text in array.ravel().tolist()]
        return np.array(texts, object).reshape(array.shape).tolist()
    if array.dtype.kind == "c":
        return np.stack([array.real, array.imag], -1).astype(np.float64).tolist()
    return array.astype(np.float64).tolist() if array.dtype.kind in "fV" else array.tolist()


@pytest.mark.parametrize("path", FACTS["checkpoints"])
def test_values_match_tensorflow(path: str) -> None:
    expected = FACTS["checkpoints"][path]
    reader = CheckpointReader(GOLDEN / path)
    dtypes = reader.get_variable_to_dtype_map()
    found = {
        name: [dtypes[name].name, shape, plain(np.asarray(reader.get_tensor(name)))]
        for name, shape in reader.get_variable_to_shape_map().items()
        if dtypes[name].name != "string"
    }
    assert found == {name: fact for name, fact in expected.items() if fact[0] != "string"}
    tensors = read_checkpoint(GOLDEN / path).tensors
    strings = {
        name: [dtypes[name].name, list(value.shape), plain(value)]
        for name, value in tensors.items()
        if value.dtype == object
    }
    assert strings == {name: fact for name, fact in expected.items() if fact[0] == "string"}
    assert list_variables(GOLDEN / path) == [
        (name, fact[1]) for name, fact in sorted(expected.items())
    ]
    assert all(value.flags.owndata or value.base is not None for value in tensors.values())
    assert all(value.flags.writeable for value in tensors.values())


def test_checkpoint_reader() -> None:
    reader = load_checkpoint(GOLDEN / "dnn_classifier")
    assert reader.has_tensor("global_step")
    assert not reader.has_tensor("nothing")
    assert reader.get_tensor("global_step") == 2
    assert isinstance(reader.get_tensor("global_step"), np.int64)
    assert b"dnn/logits/kernel (DT_FLOAT) [4,3]\n" in reader.debug_string()
    with pytest.raises(errors.NotFoundError, match="Key nothing not found in checkpoint"):
        reader.get_tensor("nothing")
    objects = CheckpointReader(GOLDEN / "objects/ckpt-1")
    graph = objects.get_tensor("_CHECKPOINTABLE_OBJECT_GRAPH")
    assert isinstance(graph, bytes)
    assert load_variable(GOLDEN / "objects/ckpt-1", "bias/.ATTRIBUTES/VARIABLE_VALUE").shape == (3,)


def test_reader_reads_own_format(tmp_path: Path) -> None:
    from estimatorkit.storage.checkpoint import write_checkpoint

    path = write_checkpoint(tmp_path, "model-3", {"a": np.ones((2, 3), np.float16), "s": b"x"})
    reader = CheckpointReader(path)
    assert reader.get_variable_to_shape_map() == {"a": [2, 3], "s": []}
    assert {k: v.name for k, v in reader.get_variable_to_dtype_map().items()} == {
        "a": "float16",
        "s": "string",
    }
    assert reader.debug_string() == b"a (DT_HALF) [2,3]\ns (DT_STRING) []\n"
    assert reader.get_tensor("s") == b"x"


# -- model folders


def copied(tmp_path: Path, name: str) -> Path:
    return Path(shutil.copytree(GOLDEN / name, tmp_path / name))


def test_tensorflow_model_dir_is_found(tmp_path: Path) -> None:
    folder = copied(tmp_path, "dnn_classifier")
    assert latest_checkpoint(folder) == str(folder / "model.ckpt-2")
    assert checkpoint_exists(folder / "model.ckpt-0")
    assert not checkpoint_exists(folder / "model.ckpt-1")
    (folder / "checkpoint").unlink()
    assert latest_checkpoint(folder) == str(folder / "model.ckpt-2")


@pytest.mark.parametrize("name", ["all_dtypes", "all_dtypes_version_1"])
def test_absolute_pointer_of_moved_folder(tmp_path: Path, name: str) -> None:
    """The file says `/elsewhere/all_dtypes/model.ckpt-7`."""
    folder = copied(tmp_path, name)
    state = get_checkpoint_state(folder)
    assert state is not None
    assert state.model_checkpoint_path == str(folder / "model.ckpt-7")
    assert state.all_model_checkpoint_paths == [str(folder / "model.ckpt-7")]
    assert latest_checkpoint(folder) == str(folder / "model.ckpt-7")


@pytest.mark.parametrize("victim", ["index", "data-00000-of-00001"])
def test_damaged_newest_checkpoint_is_skipped(tmp_path: Path, victim: str) -> None:
    folder = copied(tmp_path, "dnn_classifier")
    path = folder / f"model.ckpt-2.{victim}"
    content = bytearray(path.read_bytes())
    content[20] ^= 4
    path.write_bytes(content)
    assert latest_checkpoint(folder) == str(folder / "model.ckpt-0")
    path.unlink()
    assert latest_checkpoint(folder) == str(folder / "model.ckpt-0")


def test_remove_checkpoint(tmp_path: Path) -> None:
    folder = copied(tmp_path, "dnn_classifier")
    (folder / "model.ckpt-2.meta").touch()
    remove_checkpoint(folder / "model.ckpt-2")
    left = sorted(path.name for path in folder.iterdir())
    assert left == ["checkpoint", "model.ckpt-0.data-00000-of-00001", "model.ckpt-0.index"]
    folder = copied(tmp_path, "all_dtypes_version_1")
    remove_checkpoint(folder / "model.ckpt-7")
    assert [path.name for path in folder.iterdir()] == ["checkpoint"]


def test_version_1_shards(tmp_path: Path) -> None:
    """A pattern means all its files together."""
    for number, name in enumerate(["all_dtypes_version_1/model.ckpt-7", "partitioned_version_1/p"]):
        shutil.copy(GOLDEN / name, tmp_path / f"model-5-{number:05d}-of-00002")
    path = tmp_path / "model-5-?????-of-00002"
    assert len(list_variables(path)) == 19
    assert load_variable(path, "axis_1").tolist() == np.arange(30.0).reshape(6, 5).tolist()
    assert latest_checkpoint(tmp_path) == str(path)


# -- damage


def every_file() -> list[Path]:
    names = [
        "all_dtypes",
        "all_dtypes_version_1",
        "partitioned",
        "partitioned_version_1",
        "objects",
    ]
    files = [path for name in names for path in sorted((GOLDEN / name).iterdir())]
    return [path for path in files if path.name != "checkpoint"]


def failure(action: Callable[[], object], *kinds: type[Exception]) -> Exception | None:
    """The error of these kinds that an action ends with, if any."""
    try:
        action()
    except kinds as error:
        return error
    return None


def read_all(folder: Path) -> None:
    """Reads what is there by every public way."""
    for path in {path.name.split(".data")[0].removesuffix(".index") for path in folder.iterdir()}:
        checkpoint_exists(folder / path)
        read_checkpoint(folder / path)


@settings(max_examples=60, deadline=None, suppress_health_check=SLOW)
@given(st.data())
def test_truncated_and_corrupted_files(tmp_path_factory: Any, data: st.DataObject) -> None:
    """All that comes is `DataLossError`, or `NotFoundError` where no table is left to see."""
    source = data.draw(st.sampled_from(every_file()))
    content = bytearray(source.read_bytes())
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    else:
        for _ in range(data.draw(st.integers(1, 3))):
            content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    if bytes(content) == source.read_bytes():
        return
    folder = tmp_path_factory.mktemp("damaged")
    for path in source.parent.iterdir():
        if path.name != "checkpoint":
            shutil.copy(path, folder)
    (folder / source.name).write_bytes(content)
    error = failure(lambda: read_all(folder), errors.DataLossError, errors.NotFoundError)
    if error is not None:
        assert source.name.split(".data")[0] in str(error)
        assert "offset" in str(error) or isinstance(error, errors.NotFoundError)
    else:
        # The padding of the footer says nothing.
        changed = [at for at, byte in enumerate(source.read_bytes()) if byte != content[at]]
        assert all(at >= len(content) - 48 for at in changed)


def bundle(folder: Path, entries: dict[bytes, bytes], data: bytes = b"") -> str:
    """A checkpoint of these entries, under right checksums."""
    (folder / "b.index").write_bytes(table({b"": HEADER, **entries}))
    (folder / "b.data-00000-of-00001").write_bytes(data)
    return str(folder / "b")


wire_values = st.one_of(
    st.integers(0, 40), st.sampled_from([1 << 31, 1 << 40, 1 << 62, (1 << 64) - 1])
)
nested = st.recursive(
    st.one_of(wire_values, st.binary(max_size=12)),
    lambda inner: st.lists(st.tuples(st.integers(1, 7), inner), max_size=5).map(
        lambda fields: message(*fields)
    ),
    max_leaves=8,
)
any_message = st.lists(st.tuples(st.integers(1, 8), nested), max_size=8).map(
    lambda fields: message(*fields)
)


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=SLOW)
@given(
    st.dictionaries(st.binary(max_size=6), st.one_of(any_message, st.binary(max_size=30))),
    st.binary(max_size=64),
)
def test_arbitrary_entries(tmp_path: Path, entries: dict[bytes, bytes], data: bytes) -> None:
    """Entries whose checksums are right, but not what they say."""
    path = bundle(tmp_path, entries, data)
    try:
        found = open_tensorflow(path)
        assert found is not None
        for name, stored in found.tensors.items():
            try:
                value = found.read(name)
            except (errors.DataLossError, errors.UnimplementedError):
                continue
            assert value.shape == stored.shape
            assert value.nbytes <= 8 * len(data) * max(1, len(entries))
    except (errors.DataLossError, errors.UnimplementedError, errors.FailedPreconditionError):
        pass


@pytest.mark.slow
@settings(max_examples=100, deadline=None, suppress_health_check=SLOW)
@given(any_message, st.binary(max_size=8).flatmap(lambda _: any_message))
def test_arbitrary_version_1_entries(tmp_path: Path, first: bytes, second: bytes) -> None:
    sliced = message((1, b"v"), (2, message((2, message((1, 2))))), (3, 1), (4, message((1, b""))))
    for contents in (first, message((1, message((1, sliced))))):
        (tmp_path / "v1").write_bytes(
            table({b"": contents, slice_key("v", ((0, -1),)): message((2, second))})
        )
        error = failure(
            lambda: read_checkpoint(tmp_path / "v1"),
            errors.DataLossError,
            errors.UnimplementedError,
        )
        assert error is None or "v1" in str(error) or "dtype number" in str(error)


def entry_of(shape: tuple[int, ...], data: bytes, dtype: int = 1) -> dict[bytes, bytes]:
    return {b"x": bundle_entry(dtype, shape, 0, data)}


def slices(*places: tuple[int, int]) -> dict[bytes, bytes]:
    """A float vector of 4 elements in slices, each with its own data at offset 0."""
    extents = [message((1, message((1, start), (2, length)))) for start, length in places]
    dims = message((2, message((1, 4))))
    parts = {
        slice_key("x", ((start, length),)): bundle_entry(1, (length,), 0, bytes(4 * length))
        for start, length in places
    }
    return {b"x": message((1, 1), (2, dims), *((7, extent) for extent in extents)), **parts}


WRONG: dict[str, Callable[[], tuple[dict[bytes, bytes], bytes]]] = {
    "too few bytes": lambda: (entry_of((3,), bytes(8)), bytes(8)),
    "a huge shape": lambda: (entry_of((1 << 40,), bytes(8)), bytes(8)),
    "a shape beyond 63 bits": lambda: (entry_of((1 << 40, 1 << 40), b""), b""),
    "a huge shape without elements": lambda: (entry_of((0, 1 << 62), b""), b""),
    "a negative size": lambda: (entry_of((-1,), b""), b""),
    "beyond the end of the file": lambda: (entry_of((2,), bytes(8)), bytes(4)),
    "other bytes": lambda: (entry_of((2,), bytes(8)), b"12345678"),
    "no bool": lambda: (entry_of((2,), b"\x00\x02", 10), b"\x00\x02"),
    "strings without lengths": lambda: (entry_of((9,), b"\x80" * 13, 7), b"\x80" * 13),
    "strings of many bytes": lambda: (entry_of((1,), b"\xff\x7f" + bytes(9), 7), b"\xff\x7f" * 9),
    "a hole between slices": lambda: (slices((0, 1), (2, 2)), bytes(16)),
    "overlapping slices": lambda: (slices((0, 2), (1, 2)), bytes(16)),
    "a slice outside": lambda: (slices((0, 2), (3, 2)), bytes(16)),
}


@pytest.mark.parametrize("name", WRONG)
def test_impossible_entries_raise(tmp_path: Path, name: str) -> None:
    entries, data = WRONG[name]()
    path = bundle(tmp_path, entries, data)
    with pytest.raises(errors.DataLossError, match=r"b\.(index|data-00000-of-00001)', offset \d+"):
        read_checkpoint(path)


def test_valid_slices_are_read(tmp_path: Path) -> None:
    """The files of `WRONG` are right but for what is wrong."""
    assert read_checkpoint(bundle(tmp_path, slices((0, 1), (1, 3)), bytes(12))).tensors[
        "x"
    ].tolist() == [0, 0, 0, 0]


def test_error_messages(tmp_path: Path) -> None:
    (tmp_path / "big.index").write_bytes(table({b"": message((1, 1), (2, 1))}))
    with pytest.raises(errors.UnimplementedError, match="big-endian"):
        read_checkpoint(tmp_path / "big")
    (tmp_path / "new.index").write_bytes(table({b"": message((1, 1), (3, message((2, 2))))}))
    with pytest.raises(errors.FailedPreconditionError, match="format version 1 or lower"):
        read_checkpoint(tmp_path / "new")
    path = bundle(tmp_path, {b"v": bundle_entry(21, (), 0, b"")})
    assert list_variables(path) == [("v", [])]
    with pytest.raises(errors.UnimplementedError, match="dtype number 21"):
        load_variable(path, "v")


# -- the parts


@pytest.mark.parametrize("compress", [None, literal])
def test_multi_block_tables(tmp_path: Path, compress: Any) -> None:
    pairs = {f"key/{number:04d}".encode(): varint(number) * 30 for number in range(100)}
    (tmp_path / "t").write_bytes(table(pairs, 7, compress))
    read = SortedTable(str(tmp_path / "t"))
    assert dict(read.items()) == pairs
    assert {key: read.get(key) for key in pairs} == pairs
    assert read.get(b"key/0004x") is None
    assert read.get(b"z") is None


def test_snappy() -> None:
    sample = FACTS["snappy"]
    compressed = base64.b64decode(sample["compressed"])
    assert decompress(compressed).decode() == sample["text"]
    assert decompress(b"\x06\x00a\x05\x01") == b"aaaaaa"
    assert decompress(b"\x05\x00a\x0f\x01\x00\x00\x00") == b"aaaaa"
    for end in range(len(compressed)):
        with pytest.raises(ValueError, match=r"Snappy|number"):
            decompress(compressed[:end])


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=80))
def test_snappy_of_arbitrary_bytes(data: bytes) -> None:
    with suppress(ValueError):
        assert len(decompress(data)) <= 22 * len(data)


@pytest.mark.parametrize(
    ("number", "code"),
    [(0, "80"), (-1, "7f"), (63, "bf"), (64, "c040"), (-64, "40"), (-65, "3fbf"), (8191, "dfff")],
)
def test_key_order(number: int, code: str) -> None:
    """As LevelDB's users know it: `OrderedCode` of signed numbers."""
    assert slice_key("", ((number, 0),)).hex() == f"0000010101{code}80"


def test_numeric_key_order() -> None:
    numbers = sorted(
        {sign * (1 << bits) + d for bits in range(63) for sign in (-1, 1) for d in (-1, 0, 1)}
    )
    keys = [slice_key("v", ((number, 1),)) for number in numbers]
    assert keys == sorted(keys)
