"""Tensors stored in slices, and reading parts of them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from estimatorkit.core import dtypes, errors
from estimatorkit.storage.checkpoint import (
    list_variables,
    load_variable,
    read_checkpoint,
    read_checkpoint_parts,
    write_checkpoint,
)
from estimatorkit.storage.checkpoint_format import RemoteTensor, ShardedTensor, write_shard
from estimatorkit.storage.tensor_slice import TensorSlice

GOLDEN = Path(__file__).parents[1] / "golden" / "tensorflow_checkpoints"


def in_pieces(value: Any, cuts: list[int], axis: int = 0) -> ShardedTensor:
    """An array cut at these places."""
    parts = np.split(value, cuts, axis)
    return ShardedTensor(axis, {f"piece {number}": part for number, part in enumerate(parts)})


_NUMBERS = np.arange(24).reshape(4, 3, 2)
VALUES = {
    name: _NUMBERS % 5 == 0 if name == "bool" else _NUMBERS.astype(dtype.numpy_dtype)
    for name, dtype in dtypes.ALL.items()
    if name not in ("string", "resource")
}
VALUES["string"] = np.array([b"x" * n for n in range(24)], object).reshape(4, 3, 2)


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize(("axis", "cuts"), [(0, [1, 3]), (1, [2]), (2, []), (0, [0, 4])])
def test_slices_form_one_tensor(name: str, axis: int, cuts: list[int], tmp_path: Path) -> None:
    value = VALUES[name]
    path = write_checkpoint(tmp_path, "c", {"v": in_pieces(value, cuts, axis), "w": value})
    assert list_variables(path) == [("v", [4, 3, 2]), ("w", [4, 3, 2])]
    found = load_variable(path, "v")
    assert found.dtype == value.dtype
    np.testing.assert_array_equal(found, value)
    for of in "vw":
        for along, size in enumerate(value.shape):
            (part,) = read_checkpoint_parts(path, [TensorSlice(of, along, 1, size - 1)])
            np.testing.assert_array_equal(part, value.take(range(1, size), along))
            assert part.base is None or part.base.nbytes == part.nbytes  # not a view of the whole


@pytest.mark.slow
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_any_part_of_any_slices(data: st.DataObject, tmp_path: Path) -> None:
    shape = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3), "shape")
    axes = st.integers(0, len(shape) - 1)
    axis, along = data.draw(axes, "axis of the pieces"), data.draw(axes, "axis of the part")
    cuts = sorted(data.draw(st.lists(st.integers(0, shape[axis]), max_size=4), "cuts"))
    ends = sorted(data.draw(st.integers(0, shape[along]), f"end {end}") for end in range(2))
    value = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    path = write_checkpoint(tmp_path, "c", {"v": in_pieces(value, cuts, axis)})
    part = TensorSlice("v", along, ends[0], ends[1] - ends[0])
    whole, found = read_checkpoint_parts(path, [TensorSlice("v"), part])
    np.testing.assert_array_equal(whole, value)
    np.testing.assert_array_equal(found, value.take(range(*ends), along))


def test_slices_from_several_writers(tmp_path: Path) -> None:
    """Each writes one file; who reads a part needs only the files that hold it."""
    rows = np.arange(12.0).reshape(6, 2)
    held = {"own 0": rows[:2], "own 1": rows[2:5]}

    def writer(number: int) -> RemoteTensor:
        def write(path: Path, names: Any) -> dict[str, tuple[str, list[int]]]:
            return write_shard(path, {key: held[name] for key, name in names.items()})

        return RemoteTensor(write, f"own {number}")

    parts = {"v[0]": writer(0), "v[1]": writer(1), "v[2]": rows[5:]}
    path = write_checkpoint(tmp_path, "c", {"v": ShardedTensor(0, parts), "alone": np.ones(3)})
    assert len(list(path.glob("variables-*"))) == 3
    np.testing.assert_array_equal(load_variable(path, "v"), rows)
    (path / "variables-00002-of-00003.safetensors").write_bytes(b"damaged")
    (found,) = read_checkpoint_parts(path, [TensorSlice("v", 0, 0, 2)])
    np.testing.assert_array_equal(found, rows[:2])
    with pytest.raises(errors.DataLossError, match="00002-of-00003"):
        read_checkpoint_parts(path, [TensorSlice("v", 0, 1, 2)])


def test_parts_of_tensorflow_checkpoint() -> None:
    path = GOLDEN / "partitioned" / "p"
    whole = np.arange(30.0).reshape(6, 5)
    found = read_checkpoint_parts(
        path, [TensorSlice("axis_1", 1, 2, 3), TensorSlice("axis_1", 0, 4, 2)]
    )
    np.testing.assert_array_equal(found[0], whole[:, 2:])
    np.testing.assert_array_equal(found[1], whole[4:])
    with pytest.raises(errors.InvalidArgumentError, match="no such slice"):
        read_checkpoint_parts(path, [TensorSlice("axis_1", 1, 2, 4)])


@pytest.mark.parametrize(
    "part",
    [
        TensorSlice("v", 0, 3, 2),
        TensorSlice("v", 2, 0, 1),
        TensorSlice("v", 0, -1, 1),
        TensorSlice("v", 0, 1, -1),
    ],
)
def test_missing_parts_raise(part: TensorSlice, tmp_path: Path) -> None:
    path = write_checkpoint(tmp_path, "c", {"v": in_pieces(np.ones((4, 2)), [2])})
    with pytest.raises(errors.InvalidArgumentError, match=r"no such slice(.|\n)*\[4, 2\]"):
        read_checkpoint_parts(path, [part])
    with pytest.raises(errors.NotFoundError, match="Key u not found"):
        read_checkpoint_parts(path, [TensorSlice("u")])


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        (
            {"v": ShardedTensor(0, {"a": np.ones((2, 2)), "b": np.ones((2, 3))})},
            "not parts of one array",
        ),
        (
            {"v": ShardedTensor(0, {"a": np.ones(2), "b": np.ones(2, np.float32)})},
            "not parts of one",
        ),
        ({"v": ShardedTensor(0, {"w": np.ones(2)}), "w": np.ones(2)}, "two tensors"),
    ],
    ids=["shapes", "dtypes", "names"],
)
def test_invalid_slices_raise(tensors: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=message):
        write_checkpoint(tmp_path, "c", tensors)
    assert not (tmp_path / "c").exists()


def test_only_requested_bytes_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the tensor nor a piece of it is taken into memory for a part."""
    value = np.arange(1000.0).reshape(100, 10)
    path = write_checkpoint(tmp_path, "c", {"v": in_pieces(value, [40]), "w": value})
    made: list[int] = []
    original = np.concatenate

    def concatenate(arrays: Any, *args: Any, **kwargs: Any) -> Any:
        made.extend(len(each) for each in arrays)
        return original(arrays, *args, **kwargs)

    monkeypatch.setattr(np, "concatenate", concatenate)
    bounds = [30, 50, 60]
    wanted = [TensorSlice("v", 0, low, high - low) for low, high in pairwise(bounds)]
    for found, (low, high) in zip(
        read_checkpoint_parts(path, wanted), pairwise(bounds), strict=True
    ):
        np.testing.assert_array_equal(found, value[low:high])
    assert made == [10, 10]


def test_slices_in_whole_checkpoints(tmp_path: Path) -> None:
    value = np.arange(6.0)
    path = write_checkpoint(tmp_path, "c", {"v": in_pieces(value, [2]), "w": value}, {"a": 1})
    read = read_checkpoint(path)
    assert read.state == {"a": 1}
    assert {name: each.tolist() for name, each in read.tensors.items()} == {
        "v": value.tolist(),
        "w": value.tolist(),
    }
