"""Damaged, crafted and newer checkpoints are refused with file and reason, and skipped."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from estimatorkit.core import errors
from estimatorkit.storage.checkpoint import (
    checkpoint_exists,
    latest_checkpoint,
    read_checkpoint,
    read_latest,
    write_checkpoint,
)
from estimatorkit.storage.checkpoint_state import update_checkpoint_state

FILES = ["MANIFEST.json", "state.json", "variables-00000-of-00001.safetensors"]
SHARD = FILES[2]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("template")
    for step in (1, 2):
        tensors = {"w": np.arange(6.0).reshape(2, 3) + step, "vocabulary": np.array(["a", "bc"])}
        write_checkpoint(folder, f"model.ckpt-{step}", tensors, {"step": step, "list": [1, 2]})
    update_checkpoint_state(folder, "model.ckpt-2", ["model.ckpt-1", "model.ckpt-2"])
    return folder


@pytest.fixture
def folder(template: Path, tmp_path: Path) -> Path:
    """A model folder with checkpoints 1 and 2; the pointer names 2."""
    return Path(shutil.copytree(template, tmp_path, dirs_exist_ok=True))


def check_passed_over(folder: Path, file: str, caplog: pytest.LogCaptureFixture) -> None:
    """Reading names the file; the previous checkpoint is used, with one warning."""
    with pytest.raises(errors.DataLossError, match=r"model\.ckpt-2' is damaged: .*" + file):
        read_checkpoint(folder / "model.ckpt-2")
    caplog.clear()
    with caplog.at_level(logging.WARNING, "estimatorkit"):
        assert latest_checkpoint(folder) == os.fspath(folder / "model.ckpt-1")
        assert read_latest(folder).state["step"] == 1
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == 1
    assert file in messages[0]


@pytest.mark.parametrize("part", ["0", "1", "half", "size - 1", "missing"])
@pytest.mark.parametrize("file", FILES)
def test_truncated_files(
    file: str, part: str, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = folder / "model.ckpt-2" / file
    size = path.stat().st_size
    if part == "missing":
        path.unlink()
    else:
        os.truncate(path, {"0": 0, "1": 1, "half": size // 2, "size - 1": size - 1}[part])
    check_passed_over(folder, file, caplog)


@pytest.mark.parametrize("file", FILES)
def test_flipped_byte_is_detected(file: str, folder: Path) -> None:
    path = folder / "model.ckpt-2" / file
    whole = path.read_bytes()
    random = np.random.default_rng(0)
    for position in range(len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= int(random.integers(1, 256))
        path.unlink()
        path.write_bytes(damaged)
        with pytest.raises(errors.DataLossError, match=file):
            read_checkpoint(folder / "model.ckpt-2")
    path.unlink()
    path.write_bytes(whole)
    assert read_checkpoint(folder / "model.ckpt-2").state["step"] == 2


@pytest.mark.parametrize("file", FILES)
def test_flipped_byte_is_skipped(file: str, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = folder / "model.ckpt-2" / file
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    check_passed_over(folder, file, caplog)


def test_appended_bytes_and_swapped_files_are_detected(folder: Path) -> None:
    with open(folder / "model.ckpt-2" / SHARD, "ab") as file:
        file.write(b"\0")
    with pytest.raises(errors.DataLossError, match="wrong size"):
        read_checkpoint(folder / "model.ckpt-2")
    shutil.copy(folder / "model.ckpt-1" / SHARD, folder / "model.ckpt-2" / SHARD)
    with pytest.raises(errors.DataLossError, match=r"safetensors is damaged.*\n.*expected: sha256"):
        read_checkpoint(folder / "model.ckpt-2")


def test_no_valid_checkpoint(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    for step in (1, 2):
        os.truncate(folder / f"model.ckpt-{step}" / "MANIFEST.json", 10)
    assert latest_checkpoint(folder) is None
    assert len(caplog.records) == 2
    with pytest.raises(errors.NotFoundError, match="no valid checkpoint"):
        read_latest(folder)


# Crafted: the hashes are right, so that only the checks of the content stand in the way.


def seal(content: dict[str, Any]) -> bytes:
    body = json.dumps(content, indent=1).removesuffix("\n}").encode()
    digest = hashlib.sha256(body).hexdigest().encode()
    return body + b',\n "manifest_sha256": "' + digest + b'"\n}\n'


def craft(path: Path, change: Callable[[dict[str, Any]], Any], **files: bytes) -> None:
    """Changes the manifest of a checkpoint, and files (`shard`, `state`), and signs all anew."""
    content = json.loads((path / "MANIFEST.json").read_bytes())
    del content["manifest_sha256"]
    for key, data in files.items():
        name = {"shard": SHARD, "state": "state.json"}[key]
        (path / name).write_bytes(data)
        content["files"][name] = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    change(content)
    (path / "MANIFEST.json").write_bytes(seal(content))


def entry(shard: str = SHARD, dtype: str = "float64", shape: Any = (2, 3)) -> dict[str, Any]:
    return {"shard": shard, "dtype": dtype, "shape": shape}


def pieces(*listed: tuple[Any, Any, Any], dtype: str = "float64", axis: Any = 0) -> dict[str, Any]:
    named = [{"shard": shard, "name": name, "size": size} for shard, name, size in listed]
    return {"dtype": dtype, "shape": [2, 3], "axis": axis, "pieces": named}


def test_crafted_checkpoint_is_otherwise_valid(folder: Path) -> None:
    craft(folder / "model.ckpt-2", lambda content: None)
    assert read_checkpoint(folder / "model.ckpt-2").state["step"] == 2


@pytest.mark.parametrize(
    "name",
    [
        *("../secret", "/etc/passwd", "a/../../secret", "..", f"{SHARD}/x", "~/x"),
        *("state.json\n", "http://example.org/x", SHARD.replace("0", "\u0660")),
    ],
)
def test_path_traversal_is_refused(name: str, folder: Path) -> None:
    (folder / "secret").write_text("secret")
    outside = {"size": 6, "sha256": hashlib.sha256(b"secret").hexdigest()}
    craft(folder / "model.ckpt-2", lambda content: content["files"].update({name: outside}))
    with pytest.raises(errors.DataLossError, match="whose name is invalid"):
        read_checkpoint(folder / "model.ckpt-2")


def test_links_and_pipes_are_not_followed(folder: Path, tmp_path: Path) -> None:
    for file in FILES:
        path = folder / "model.ckpt-2" / file
        copy = shutil.copy(path, tmp_path / "outside")
        path.unlink()
        path.symlink_to(copy)
        with pytest.raises(errors.DataLossError, match=f"{file} is not a regular file"):
            read_checkpoint(folder / "model.ckpt-2")
        path.unlink()
        os.mkfifo(path)
        with pytest.raises(errors.DataLossError, match=f"{file} is not a regular file"):
            read_checkpoint(folder / "model.ckpt-2")
        path.unlink()
        shutil.copy(copy, path)
    assert read_checkpoint(folder / "model.ckpt-2").state["step"] == 2


def test_linked_folder_is_not_followed(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    model = folder / "model"
    model.mkdir()
    (model / "model.ckpt-9").symlink_to(folder / "model.ckpt-2", target_is_directory=True)
    update_checkpoint_state(model, "model.ckpt-9")
    assert latest_checkpoint(model) is None
    assert "a link leads out of the folder" in caplog.text


def test_variable_names_are_not_paths(tmp_path: Path) -> None:
    names = ["../../x", "/etc/passwd", "a/../b", "C:\\x", "w:0"]
    path = write_checkpoint(tmp_path / "m", "c-1", {name: np.ones(1) for name in names})
    assert list(read_checkpoint(path).tensors) == names
    assert os.listdir(tmp_path) == ["m"]
    assert sorted(os.listdir(path)) == FILES


@pytest.mark.parametrize(
    "tensor",
    [
        entry(shape=[-2, -3]),
        entry(shape=[float("nan")]),
        entry(shape=[2.0, 3.0]),
        entry(shape=[True, 6]),
        entry(shape="23"),
        entry(shape=[1] * 65),
        entry(shape=[2**62, 2, 0]),
        entry(shape=[10**30]),
        entry(dtype="object"),
        entry(dtype="resource"),
        entry(dtype="float128"),
        entry(shard="state.json"),
        entry(shard="variables-00001-of-00002.safetensors"),
        entry(shard="../variables-00000-of-00001.safetensors"),
        {"shard": SHARD, "dtype": "float64"},
        pieces(),
        pieces((SHARD, "w", 2), (SHARD, "w", 1)),
        pieces((SHARD, "w", 3), (SHARD, "u", -1)),
        pieces((SHARD, "w", 2.0)),
        pieces((SHARD, "w", True), (SHARD, "u", 1)),
        pieces((SHARD, 7, 2)),
        pieces(("state.json", "w", 2)),
        pieces(("../" + SHARD, "w", 2)),
        pieces((SHARD, "w", 2), axis=-2),
        pieces((SHARD, "w", 2), axis=2),
        pieces((SHARD, "w", 3), axis=True),
        pieces((SHARD, "w", 2), dtype="object"),
        {**pieces((SHARD, "w", 2)), "pieces": [[SHARD, "w", 2]]},
        [SHARD, "float64", [2, 3]],
        None,
    ],
)
def test_invalid_tensor_entries(tensor: Any, folder: Path) -> None:
    craft(folder / "model.ckpt-2", lambda content: content["tensors"].update(w=tensor))
    with pytest.raises(errors.DataLossError, match=r"invalid entry for the tensor 'w'|valid JSON"):
        read_checkpoint(folder / "model.ckpt-2")


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (entry(shape=[3, 2]), "wrong shape"),
        (entry(shape=[6]), "wrong shape"),
        (entry(shape=[2**40, 3]), "wrong shape"),
        (entry(dtype="int64"), "wrong dtype"),
        (entry(dtype="float32"), "wrong dtype"),
        (entry(dtype="string", shape=[3]), "wrong shape"),
        (entry(dtype="complex128", shape=[2, 3]), "wrong shape"),
        (pieces((SHARD, "w", 2), dtype="int64"), "wrong dtype"),
        (pieces((SHARD, "w", 1), (SHARD, "u", 1)), "list different tensors"),
        (pieces((SHARD, "w", 1), (SHARD, "w", 1)), "wrong shape"),
    ],
)
def test_manifest_and_shard_mismatch(tensor: Any, message: str, folder: Path) -> None:
    craft(folder / "model.ckpt-2", lambda content: content["tensors"].update(w=tensor))
    with pytest.raises(errors.DataLossError, match=message):
        read_checkpoint(folder / "model.ckpt-2")


def test_raw_bytes_of_wrong_length(folder: Path) -> None:
    """Complex numbers lie in the shard as bytes: the two strings have 27, not 32."""
    complexes = entry(dtype="complex128", shape=[2])
    craft(folder / "model.ckpt-2", lambda content: content["tensors"].update(vocabulary=complexes))
    with pytest.raises(errors.DataLossError, match="'vocabulary' has the wrong shape"):
        read_checkpoint(folder / "model.ckpt-2")


def test_added_or_dropped_tensors(folder: Path) -> None:
    for change in (
        lambda content: content["tensors"].pop("w"),
        lambda content: content["tensors"].update(more=entry()),
    ):
        path = Path(shutil.copytree(folder / "model.ckpt-1", folder / "copy", dirs_exist_ok=True))
        craft(path, change)
        with pytest.raises(errors.DataLossError, match="list different tensors"):
            read_checkpoint(path)


@pytest.mark.parametrize(
    "blob",
    [
        struct.pack("<3q", 0, 1, 4) + b"abc",
        struct.pack("<3q", 0, 5, 3) + b"abc",
        struct.pack("<3q", -1, 1, 3) + b"abc",
        struct.pack("<3q", 1, 1, 3) + b"abc",
        struct.pack("<2q", 0, 3),
        b"\0" * 7,
        b"",
    ],
)
def test_inconsistent_string_tensors(blob: bytes, folder: Path) -> None:
    data = safetensors.numpy.save(
        {"w": np.zeros((2, 3)), "vocabulary": np.frombuffer(blob, np.uint8)}
    )
    craft(folder / "model.ckpt-2", lambda content: None, shard=data)
    with pytest.raises(errors.DataLossError, match="string tensor 'vocabulary' is inconsistent"):
        read_checkpoint(folder / "model.ckpt-2")


def shard_with_header(header: bytes, data: bytes = b"\0" * 48) -> bytes:
    return struct.pack("<Q", len(header)) + header + data


@pytest.mark.parametrize(
    "shard",
    [
        b"",
        b"\0" * 8,
        struct.pack("<Q", 2**63) + b"{}",
        struct.pack("<Q", 90 << 20) + b"{}",
        shard_with_header(b"{"),
        shard_with_header(b"\xff\xfe"),
        shard_with_header(b'{"w":{"dtype":"F64","shape":[2,3],"data_offsets":[0,9999]}}'),
        shard_with_header(b'{"w":{"dtype":"F64","shape":[2,3],"data_offsets":[-8,40]}}'),
        shard_with_header(b'{"w":{"dtype":"F64","shape":[2,-3],"data_offsets":[0,48]}}'),
        shard_with_header(b'{"w":{"dtype":"F64","shape":[2,NaN],"data_offsets":[0,48]}}'),
        shard_with_header(b'{"w":{"dtype":"F64","shape":[9999999999999],"data_offsets":[0,48]}}'),
        shard_with_header(b'{"w":{"dtype":"EVIL","shape":[2,3],"data_offsets":[0,48]}}'),
        shard_with_header(b"[" * 100_000),
    ],
    ids=range(13),
)
def test_crafted_shards(shard: bytes, folder: Path) -> None:
    def only_w(content: dict[str, Any]) -> None:
        content["tensors"] = {"w": entry()}

    craft(folder / "model.ckpt-2", only_w, shard=shard)
    with pytest.raises(errors.DataLossError, match="not a valid safetensors file"):
        read_checkpoint(folder / "model.ckpt-2")


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (b"[" * 100_000 + b"]" * 100_000, "recursion"),
        (b'{"a": 1, "a": 2}', "duplicate name"),
        (b'{"a": NaN}', "NaN is not JSON"),
        (b'{"a": ' + b"9" * 5000 + b"}", "digits"),
        (b"[1]", "is not a JSON object"),
        (b"\xff", "not valid JSON"),
    ],
)
def test_crafted_states(state: bytes, reason: str, folder: Path) -> None:
    craft(folder / "model.ckpt-2", lambda content: None, state=state)
    with pytest.raises(errors.DataLossError, match=r"state\.json(.|\n)*" + reason):
        read_checkpoint(folder / "model.ckpt-2")


@pytest.mark.parametrize(
    "content",
    [
        {"format_version": 1},
        {"format_version": 1, "files": [], "tensors": {}},
        {"format_version": 1, "files": {"state.json": 3}, "tensors": {}},
        {"format_version": "1", "files": {}, "tensors": {}},
        {"format_version": 0, "files": {}, "tensors": {}},
        {"files": {}, "tensors": {}},
        {"format_version": 1, "files": {}, "tensors": {}},
    ],
    ids=range(7),
)
def test_crafted_manifests(content: dict[str, Any], folder: Path) -> None:
    (folder / "model.ckpt-2" / "MANIFEST.json").write_bytes(seal(content))
    with pytest.raises(errors.DataLossError, match=r"MANIFEST\.json|state\.json"):
        read_checkpoint(folder / "model.ckpt-2")


def test_file_larger_than_memory_is_not_read(folder: Path) -> None:
    os.truncate(folder / "model.ckpt-2" / "MANIFEST.json", 1 << 40)  # sparse
    with pytest.raises(errors.DataLossError, match=r"MANIFEST\.json is too large"):
        read_checkpoint(folder / "model.ckpt-2")


def test_newer_format_is_refused_not_skipped(folder: Path) -> None:
    craft(folder / "model.ckpt-2", lambda content: content.update(format_version=2, new="thing"))
    for call in (
        lambda: read_checkpoint(folder / "model.ckpt-2"),
        lambda: checkpoint_exists(folder / "model.ckpt-2"),
        lambda: latest_checkpoint(folder),
    ):
        with pytest.raises(errors.FailedPreconditionError, match="newer estimatorkit") as caught:
            call()
        assert "format version 2" in str(caught.value)
        assert "upgrade" in str(caught.value)
