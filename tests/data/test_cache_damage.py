"""A flipped byte of a cache file gives the same elements, or an error that names the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estimatorkit.core.errors import DataLossError
from estimatorkit.data.dataset import Dataset
from tests.sweep import sweep


def elements(file: Path) -> list[Any]:
    """Numbers and words in two batches, which are read from the file if it is there."""
    data = {"x": np.arange(6, dtype=np.float32), "word": np.array([b"a", b"bc", b"", b"d"] * 2)[:6]}
    dataset = Dataset.from_tensor_slices(data).batch(3).cache(str(file))
    return [
        {key: value.tolist() for key, value in each.items()} for each in dataset.as_numpy_iterator()
    ]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("cache")
    elements(folder / "whole")
    return (folder / "whole.cache").read_bytes()


@sweep("bits", [0x01, 0x20, 0xFF], quick=1)
def test_flipped_bytes_are_named(bits: int, written: bytes, tmp_path: Path) -> None:
    expected = elements(tmp_path / "whole")
    damaged = tmp_path / "damaged.cache"
    told = []
    for place in range(len(written)):
        damaged.write_bytes(written[:place] + bytes([written[place] ^ bits]) + written[place + 1 :])
        try:
            assert elements(tmp_path / "damaged") == expected
        except DataLossError as error:
            told.append(str(error))
    assert all("damaged.cache" in each for each in told)
    assert len(told) > len(written) / 2


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_a_truncated_cache_is_named(share: float, written: bytes, tmp_path: Path) -> None:
    (tmp_path / "cut.cache").write_bytes(written[: int(len(written) * share)])
    with pytest.raises(DataLossError, match=r"cut\.cache is damaged"):
        elements(tmp_path / "cut")
