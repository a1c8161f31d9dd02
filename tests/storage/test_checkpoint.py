"""Writing and reading checkpoints: dtypes, shapes, names, shards, state and paths."""

from __future__ import annotations

import hashlib
import logging
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.extra import numpy as st_numpy

from estimatorkit.core import dtypes, errors
from estimatorkit.storage import checkpoint, checkpoint_format
from estimatorkit.storage.checkpoint import (
    checkpoint_exists,
    checkpoint_step,
    latest_checkpoint,
    list_variables,
    load_variable,
    read_checkpoint,
    read_latest,
    remove_checkpoint,
    write_checkpoint,
)
from estimatorkit.storage.checkpoint_state import update_checkpoint_state

NUMERIC = [dtype for name, dtype in dtypes.ALL.items() if name not in ("string", "resource")]


def write(directory: Path, step: int, **state: Any) -> Path:
    tensors = {"dnn/hiddenlayer_0/kernel": np.full((2, 3), step, np.float32)}
    return write_checkpoint(directory, f"model.ckpt-{step}", tensors, {"step": step, **state})


def same(left: Any, right: Any) -> bool:
    """Bit for bit, so that NaN equals NaN and 0.0 does not equal -0.0."""
    equal: bool = (left.dtype, left.shape, left.tobytes()) == (
        right.dtype,
        right.shape,
        right.tobytes(),
    )
    return equal


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (2, 3)])
@pytest.mark.parametrize("dtype", NUMERIC, ids=str)
def test_every_dtype_and_shape_round_trips(
    dtype: dtypes.DType, shape: tuple[int, ...], tmp_path: Path
) -> None:
    count = int(np.prod(shape)) * dtype.size
    raw = np.random.default_rng(0).integers(0, 2, count, np.uint8).tobytes()
    array = np.frombuffer(raw, dtype.numpy_dtype).reshape(shape)
    loaded = read_checkpoint(write_checkpoint(tmp_path, "c-1", {"x": array})).tensors["x"]
    assert same(loaded, array)
    loaded[...] = 0  # it owns its memory
    assert list_variables(tmp_path / "c-1") == [("x", list(shape))]


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8),
        st_numpy.arrays(
            st.sampled_from(["?", "i1", "u2", "<i4", ">i8", "f2", "<f4", ">f8", "c8", "c16"]),
            st_numpy.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
        ),
        max_size=4,
    ),
    st.integers(1, 200),
)
def test_any_names_arrays_and_shard_sizes(
    tmp_path: Path, tensors: dict[str, Any], shard_bytes: int
) -> None:
    path = write_checkpoint(tmp_path, "c-1", tensors, shard_bytes=shard_bytes)
    loaded = read_checkpoint(path).tensors
    assert list(loaded) == list(tensors)
    for name, array in tensors.items():
        assert same(loaded[name], array.astype(array.dtype.newbyteorder("=")))


def test_non_contiguous_arrays(tmp_path: Path) -> None:
    base = np.arange(24, dtype=np.int32).reshape(4, 6)
    tensors = {"transposed": base.T, "strided": base[::2, ::-1], "fortran": np.asfortranarray(base)}
    loaded = read_checkpoint(write_checkpoint(tmp_path, "c-1", tensors)).tensors
    for name, array in tensors.items():
        np.testing.assert_array_equal(loaded[name], array)


def test_strings_round_trip_without_pickle(tmp_path: Path) -> None:
    tensors = {
        "objects": np.array([[b"a\x00", "größe"], [b"", b"\xff\xfe"]], dtype=object),
        "scalar": np.array("one"),
        "fixed": np.array([b"ab", b"c"]),
        "none": np.empty((0, 2), dtype=object),
    }
    loaded = read_checkpoint(write_checkpoint(tmp_path, "c-1", tensors)).tensors
    assert loaded["objects"].tolist() == [[b"a\x00", "größe".encode()], [b"", b"\xff\xfe"]]
    assert loaded["scalar"].shape == ()
    assert loaded["scalar"].item() == b"one"
    assert loaded["fixed"].tolist() == [b"ab", b"c"]
    assert loaded["none"].shape == (0, 2)
    assert all(array.dtype == object for array in loaded.values())


def test_safetensors_reads_shards(tmp_path: Path) -> None:
    tensors = {"w": np.arange(3, dtype=np.float32), "b": np.ones(2, ml_dtypes.bfloat16)}
    path = write_checkpoint(tmp_path, "c-1", tensors)
    loaded = safetensors.numpy.load_file(path / "variables-00000-of-00001.safetensors")
    assert same(loaded["w"], tensors["w"])
    assert same(loaded["b"], tensors["b"])


def test_shards_split_by_size_and_load_lazily(tmp_path: Path) -> None:
    tensors = {name: np.full(100, ord(name), np.uint8) for name in "abcde"}
    tensors["big"] = np.zeros(1000, np.uint8)
    path = write_checkpoint(tmp_path, "c-1", tensors, shard_bytes=250)
    shards = sorted(file.name for file in path.glob("variables-*"))
    assert shards == [f"variables-{i:05d}-of-00004.safetensors" for i in range(4)]
    (path / shards[3]).write_bytes(b"damaged")
    (path / shards[0]).unlink()
    assert list(read_checkpoint(path, ["d", "c"]).tensors) == ["d", "c"]
    assert load_variable(path, "e")[0] == ord("e")
    with pytest.raises(errors.DataLossError, match=r"00000-of-00004.safetensors is missing"):
        load_variable(path, "a")
    with pytest.raises(
        errors.DataLossError, match=r"00003-of-00004.safetensors has the wrong size"
    ):
        load_variable(path, "big")


def test_state_round_trips_or_raises(tmp_path: Path) -> None:
    state = {"iterator": {"epoch": 3, "seed": 2**127 + 1, "order": [1.5, None, True, "x"]}, "é": []}
    assert read_checkpoint(write_checkpoint(tmp_path, "c-1", {}, state)).state == state
    assert read_checkpoint(write_checkpoint(tmp_path, "c-2", {})).state == {}
    deep: list[Any] = []
    for _ in range(60):
        deep = [deep]
    refused: list[tuple[dict[str, Any], str]] = [
        ({"a": {"b": [0, np.int64(3)]}}, r"state\['a'\]\['b'\]\[1\]"),
        ({"a": float("nan")}, r"state\['a'\]"),
        ({"a": (1, 2)}, "tuple"),
        ({"a": {1: 2}}, r"a key of state\['a'\]"),
        ({"a": np.zeros(2)}, "store it as a tensor"),
        ({"a": deep}, "nested at most"),
    ]
    for bad, where in refused:
        with pytest.raises(errors.InvalidArgumentError, match=where):
            write_checkpoint(tmp_path, "c-3", {}, bad)
    assert sorted(os.listdir(tmp_path)) == ["c-1", "c-2"]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("__metadata__", np.zeros(1), "__metadata__"),
        ("", np.zeros(1), "non-empty"),
        ("\ud800", np.zeros(1), "cannot be stored"),
        ("x", np.zeros(1, "datetime64[s]"), r"'x' has a dtype.*\n.*float16.*\n.*datetime64"),
        ("x", np.zeros(1, ml_dtypes.int4), "int4"),
        ("x", np.array([b"a", 3], dtype=object), r"'x' is an object array.*\n.*\n.*3 \(int\)"),
        ("x", np.array(["\ud800"], dtype=object), "UTF-8"),
    ],
)
def test_unsupported_values_raise_and_leave_nothing(
    name: str, value: Any, message: str, tmp_path: Path
) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=message):
        write_checkpoint(tmp_path, "c-1", {name: value})
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "name",
    [
        *("", ".", "..", "../c-1", "a/b", "/c", "a\\b", ".c", "a\nb", "a\0b", "\ud800"),
        *("c-1.tmp-12-0123abcd", "c-1.old-0123abcd", "x" * 226),
    ],
)
def test_invalid_names_raise(name: str, tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    with pytest.raises(errors.InvalidArgumentError, match="invalid checkpoint name"):
        write_checkpoint(inside, name, {})
    assert os.listdir(tmp_path) == []


def test_same_name_replaces_checkpoint(tmp_path: Path) -> None:
    for value in (1, 2, 3):
        write(tmp_path, 7, value=value)
        assert read_checkpoint(tmp_path / "model.ckpt-7").state["value"] == value
    assert os.listdir(tmp_path) == ["model.ckpt-7"]


def test_other_files_are_neither_replaced_nor_removed(tmp_path: Path) -> None:
    events = tmp_path / "eval" / "events.out.tfevents.1"
    events.parent.mkdir()
    events.write_bytes(b"precious")
    (tmp_path / "notes").write_text("precious")
    for name in ("eval", "notes"):
        with pytest.raises(errors.AlreadyExistsError, match="is not a checkpoint"):
            write_checkpoint(tmp_path, name, {})
        with pytest.raises(errors.AlreadyExistsError, match="is not a checkpoint"):
            remove_checkpoint(tmp_path / name)
    assert events.read_bytes() == b"precious"
    assert sorted(os.listdir(tmp_path)) == ["eval", "notes"]


def test_remove_checkpoint(tmp_path: Path) -> None:
    path = write(tmp_path, 1)
    remove_checkpoint(path)
    assert os.listdir(tmp_path) == []
    with pytest.raises(errors.NotFoundError, match=r"model\.ckpt-1"):
        remove_checkpoint(path)


def test_read_by_folder_or_path(tmp_path: Path) -> None:
    for step in (3, 20):
        write(tmp_path, step)
    update_checkpoint_state(tmp_path, "model.ckpt-20")
    name = "dnn/hiddenlayer_0/kernel"
    assert list_variables(tmp_path) == [(name, [2, 3])]
    assert load_variable(tmp_path, name)[0, 0] == 20
    assert load_variable(tmp_path / "model.ckpt-3", name + ":0")[0, 0] == 3
    assert read_latest(tmp_path).step == 20
    assert checkpoint_exists(tmp_path / "model.ckpt-3")
    assert not checkpoint_exists(tmp_path / "model.ckpt-4")
    assert not checkpoint_exists(tmp_path)
    assert checkpoint_step("/a-1/model.ckpt") is None
    with pytest.raises(errors.NotFoundError, match="did you mean 'dnn/hiddenlayer_0/kernel'"):
        load_variable(tmp_path, "dnn/hiddenlayer_1/kernel")


def test_missing_checkpoint_raises(tmp_path: Path) -> None:
    assert latest_checkpoint(tmp_path) is None
    assert latest_checkpoint(tmp_path / "missing") is None
    for call in (read_checkpoint, list_variables, read_latest):
        with pytest.raises(errors.NotFoundError, match="missing"):
            call(tmp_path / "missing")
    with pytest.raises(errors.NotFoundError, match="no valid checkpoint in"):
        list_variables(tmp_path)
    (tmp_path / "model.ckpt-5.index").touch()
    with pytest.raises(errors.DataLossError, match=r"5\.index', offset 0: it is too short"):
        read_checkpoint(tmp_path / "model.ckpt-5")
    with pytest.raises(errors.NotFoundError, match=r"its prefix, '.*model\.ckpt-5'"):
        read_checkpoint(tmp_path / "model.ckpt-5.index")


def test_moved_linked_and_relative_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Path("my größe 模型")
    write(folder, 1)
    update_checkpoint_state(folder, folder / "model.ckpt-1", [folder / "model.ckpt-1"])
    assert latest_checkpoint(folder) == "my größe 模型/model.ckpt-1"
    folder.rename("moved")
    Path("link").symlink_to("moved", target_is_directory=True)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    for moved in ("../moved", "../link", str(tmp_path / "link")):
        assert latest_checkpoint(moved) == f"{moved}/model.ckpt-1"
        assert read_latest(moved).state == {"step": 1}
    assert write_checkpoint("../link", "model.ckpt-2", {}) == Path("../link/model.ckpt-2")
    assert (tmp_path / "moved" / "model.ckpt-2").is_dir()


def test_permissions_follow_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        path = write(tmp_path, 1)
    finally:
        os.umask(before)
    assert {stat.S_IMODE(file.stat().st_mode) for file in path.iterdir()} == {0o640}
    assert stat.S_IMODE(path.stat().st_mode) == 0o750


def test_files_are_hashed_once_per_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, 1)
    read_checkpoint(path)
    hashed: list[str] = []
    digest = hashlib.file_digest

    def counted(file: Any, kind: str) -> Any:
        hashed.append(os.path.basename(file.name))
        return digest(file, kind)

    monkeypatch.setattr("hashlib.file_digest", counted)
    for _ in range(3):
        read_checkpoint(path)
        assert latest_checkpoint(tmp_path) is not None
    assert hashed == []
    (path / "state.json").touch()
    read_checkpoint(path)
    assert hashed == ["state.json"]


def test_reader_uses_backup_of_interrupted_replacement(tmp_path: Path, caplog: Any) -> None:
    """As a writer that was killed between its two renames leaves it."""
    path = write(tmp_path, 5)
    path.rename(tmp_path / "model.ckpt-5.old-0123abcd")
    update_checkpoint_state(tmp_path, "model.ckpt-5")
    with caplog.at_level(logging.WARNING, "estimatorkit"):
        assert latest_checkpoint(tmp_path) == os.fspath(path)
        assert read_latest(tmp_path).state == {"step": 5}
    assert caplog.records == []
    path.mkdir()
    (path / "MANIFEST.json").touch()
    assert read_checkpoint(path).state == {"step": 5}
    remove_checkpoint(path)
    assert os.listdir(tmp_path) == ["checkpoint"]


def test_next_writer_restores_or_removes_backup(tmp_path: Path) -> None:
    write(tmp_path, 5).rename(tmp_path / "model.ckpt-5.old-0123abcd")
    write(tmp_path, 6).rename(tmp_path / "model.ckpt-6.old-0123abcd")
    write(tmp_path, 6)
    user = tmp_path / "notes.old-0123abcd"
    user.mkdir()
    (user / "mine.txt").touch()
    write(tmp_path, 7)
    assert sorted(os.listdir(tmp_path)) == [
        *("model.ckpt-5", "model.ckpt-6", "model.ckpt-7", "notes.old-0123abcd")
    ]


def test_reader_sees_one_version_during_replacement(tmp_path: Path) -> None:
    """A writer replaces the checkpoint after the reader has looked at the manifest."""
    write(tmp_path, 1, version=1)
    replaced: list[Path] = []

    def replace_then_read(folder: Path, manifest: Any) -> Any:
        if not replaced:
            replaced.append(write(tmp_path, 1, version=2))
        return checkpoint_format.read_state(folder)

    state = checkpoint._open(tmp_path / "model.ckpt-1", replace_then_read)
    assert state["version"] == 2
    with pytest.raises(errors.NotFoundError, match="removed or replaced while it was read"):
        checkpoint._open(
            tmp_path / "model.ckpt-1",
            lambda folder, manifest: remove_checkpoint(folder) if folder.exists() else None,
        )


def test_import_does_not_load_jax() -> None:
    code = (
        "import sys, estimatorkit.storage.retention, estimatorkit.storage.directory_lock;"
        "print(sorted({'jax', 'pandas', 'tensorboard'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert done.stdout == "[]\n"
