"""The checkpoint state file: TensorFlow's text format, and malformed files."""

from __future__ import annotations

import json
import logging
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from estimatorkit.core import errors
from estimatorkit.storage import checkpoint_state
from estimatorkit.storage.checkpoint import latest_checkpoint, write_checkpoint
from estimatorkit.storage.checkpoint_state import get_checkpoint_state, update_checkpoint_state

GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden" / "saver_retention.json").read_text(encoding="utf-8")
)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("template")
    for step in (1, 9, 10):
        write_checkpoint(folder, f"model.ckpt-{step}", {})
    return folder


@pytest.fixture
def folder(template: Path, tmp_path: Path) -> Path:
    """A model folder with checkpoints 1, 9 and 10, and no pointer."""
    return Path(shutil.copytree(template, tmp_path, dirs_exist_ok=True))


def test_text_matches_tensorflow(tmp_path: Path) -> None:
    start, names = GOLDEN["start"], GOLDEN["names"]
    update_checkpoint_state(
        tmp_path,
        names[-1],
        names,
        all_model_checkpoint_timestamps=[start + number for number in range(len(names))],
        last_preserved_timestamp=start - 0.25,
    )
    assert (tmp_path / "checkpoint").read_text() == GOLDEN["pointer"]
    state = get_checkpoint_state(tmp_path)
    assert state is not None
    paths = [os.path.join(tmp_path, name) for name in names]
    assert state.model_checkpoint_path == paths[-1]
    assert state.all_model_checkpoint_paths == paths
    assert state.all_model_checkpoint_timestamps == [start + i for i in range(len(names))]
    assert state.last_preserved_timestamp == start - 0.25


def test_relative_paths_round_trip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkdir("m")
    for latest in ("c-2", "m/c-2", os.path.abspath("m/c-2"), "./m/c-2"):
        update_checkpoint_state("m", latest, ["c-1"])
        text = Path("m/checkpoint").read_text()
        assert text.splitlines() == [
            'model_checkpoint_path: "c-2"',
            'all_model_checkpoint_paths: "c-1"',
            'all_model_checkpoint_paths: "c-2"',
        ]
    state = get_checkpoint_state("m")
    assert state is not None
    assert state.model_checkpoint_path == "m/c-2"
    assert state.all_model_checkpoint_paths == ["m/c-1", "m/c-2"]
    update_checkpoint_state("m", "c-3", latest_filename="best")
    other = get_checkpoint_state("m", "best")
    assert other is not None
    assert other.model_checkpoint_path == "m/c-3"
    assert sorted(os.listdir("m")) == ["best", "checkpoint"]


@pytest.mark.parametrize(
    "path", ["../c-1", "/c-1", "sub/c-1", "..", "", "c-1/", "c-1.old-0123abcd"]
)
def test_paths_outside_folder_are_not_written(path: str, tmp_path: Path) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"outside|invalid checkpoint name"):
        update_checkpoint_state(tmp_path, path)
    with pytest.raises(errors.InvalidArgumentError, match=r"outside|invalid checkpoint name"):
        update_checkpoint_state(tmp_path, "c-2", [path, "c-2"])
    with pytest.raises(ValueError, match="2 timestamps"):
        update_checkpoint_state(tmp_path, "c-2", ["c-1"], all_model_checkpoint_timestamps=[1.0])
    assert os.listdir(tmp_path) == []


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_quoting_round_trips(text: str) -> None:
    quoted = checkpoint_state._quote(text)
    assert quoted.isascii()
    assert quoted.isprintable()
    parsed = checkpoint_state._parse(f"key: {quoted}".encode())
    assert parsed == {"key": [text]}


@given(st.binary(max_size=60))
def test_arbitrary_bytes_parse_or_raise(content: bytes) -> None:
    parsed = checkpoint_state._parse(content)
    assert parsed is None or all(isinstance(key, str) for key in parsed)


def test_reads_other_writers_files(folder: Path) -> None:
    (folder / "checkpoint").write_bytes(
        b'# by hand\r\n\r\n  model_checkpoint_path:"model.ckpt-9"\r\n'
        b'all_model_checkpoint_paths : "model.ckpt-9"\nunknown_field: 3\n'
        b"all_model_checkpoint_timestamps: nan\n"
    )
    state = get_checkpoint_state(folder)
    assert state is not None
    assert state.all_model_checkpoint_timestamps == []
    assert latest_checkpoint(folder) == os.fspath(folder / "model.ckpt-9")


def test_pointer_takes_precedence(folder: Path) -> None:
    update_checkpoint_state(folder, "model.ckpt-1")
    assert latest_checkpoint(folder) == os.fspath(folder / "model.ckpt-1")
    (folder / "checkpoint").write_text(f'model_checkpoint_path: "{folder}/model.ckpt-9"\n')
    assert latest_checkpoint(folder) == os.fspath(folder / "model.ckpt-9")


def test_highest_step_without_pointer(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert get_checkpoint_state(folder) is None
    assert latest_checkpoint(folder) == os.fspath(folder / "model.ckpt-10")
    assert latest_checkpoint(folder, "best") == os.fspath(folder / "model.ckpt-10")
    assert caplog.records == []


GARBAGE = {
    "empty": b"",
    "blank": b"\n \n",
    "text": b"hello world",
    "binary": bytes(range(256)),
    "cut off": b'model_checkpoint_path: "model.ckp',
    "no name": b'model_checkpoint_path: ""',
    "only the list": b'all_model_checkpoint_paths: "model.ckpt-1"',
    "twice": b'model_checkpoint_path: "model.ckpt-1"\nmodel_checkpoint_path: "model.ckpt-9"',
    "missing": b'model_checkpoint_path: "model.ckpt-11"',
    "above": b'model_checkpoint_path: "../../etc"',
    "above, hidden": b'model_checkpoint_path: "\\056\\056/x"',
    "absolute": b'model_checkpoint_path: "/etc/passwd"',
    "below": b'model_checkpoint_path: "model.ckpt-1/state.json"',
    "itself": b'model_checkpoint_path: "."',
    "a temporary": b'model_checkpoint_path: "model.ckpt-1.tmp-1-0123abcd"',
    "a null byte": b'model_checkpoint_path: "model\\000"',
    "invalid utf-8": b'model_checkpoint_path: "\\377"',
    "a file": b'model_checkpoint_path: "checkpoint"',
    "too long": b'model_checkpoint_path: "' + b"x" * 5000 + b'"',
}


@pytest.mark.parametrize("content", GARBAGE.values(), ids=GARBAGE)
def test_garbage_falls_back_with_one_warning(
    content: bytes, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / "checkpoint").write_bytes(content)
    with caplog.at_level(logging.WARNING, "estimatorkit"):
        for _ in range(3):
            assert latest_checkpoint(folder) == os.fspath(folder / "model.ckpt-10")
    assert len(caplog.records) == 1
    assert os.fspath(folder) in caplog.text


def test_pointer_is_folder_or_broken_link(folder: Path) -> None:
    (folder / "checkpoint").symlink_to("nowhere")
    assert latest_checkpoint(folder) == os.fspath(folder / "model.ckpt-10")
    (folder / "checkpoint").unlink()
    (folder / "checkpoint").mkdir()
    assert latest_checkpoint(folder) == os.fspath(folder / "model.ckpt-10")


def test_huge_pointer_is_read_quickly(tmp_path: Path) -> None:
    for content in ("\\101" * 1_000_000, "\\" * 4_000_000, "a" * 4_000_000):
        (tmp_path / "checkpoint").write_text(f'model_checkpoint_path: "{content}"\n')
        assert get_checkpoint_state(tmp_path) is None
    name = "n" * 225
    update_checkpoint_state(tmp_path, name)
    state = get_checkpoint_state(tmp_path)
    assert state is not None
    assert state.model_checkpoint_path == str(tmp_path / name)
