"""PyTorch's part in reading data: `DataLoader`, as its documentation shows it."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch  # type: ignore[import-not-found,unused-ignore]
from torch.utils.data import (  # type: ignore[import-not-found,unused-ignore]
    DataLoader,
    Dataset,
    IterableDataset,
    TensorDataset,
)

from benchmarks.data_programs import BATCH, CENSUS_COLUMNS, CENSUS_NUMBERS, census_file
from benchmarks.workloads import mnist_shaped_data


def _next_of(loader: Any) -> Callable[[], object]:
    batches = itertools.chain.from_iterable(itertools.repeat(loader))

    def call() -> object:
        return next(batches)

    call()
    return call


def shuffled_batches() -> Callable[[], object]:
    """Returns a call for the next of shuffled batches of pictures in memory."""
    features, labels = mnist_shaped_data()
    rows = TensorDataset(torch.from_numpy(features["x"]), torch.from_numpy(labels))
    return _next_of(DataLoader(rows, BATCH, shuffle=True, drop_last=True))


class Scaled(Dataset):  # type: ignore[misc,unused-ignore]
    """Pictures of bytes, scaled one by one."""

    def __init__(self, pixels: Any, labels: Any) -> None:
        self._pixels, self._labels = torch.from_numpy(pixels), torch.from_numpy(labels)

    def __len__(self) -> int:
        return len(self._labels)

    def __getitem__(self, row: int) -> Any:
        return self._pixels[row].float() / 255.0, self._labels[row]


def mapped_batches() -> Callable[[], object]:
    """Returns a call for the next batch of pictures that a function scales."""
    features, labels = mnist_shaped_data()
    pixels = (features["x"] * 255).astype(np.uint8)
    return _next_of(DataLoader(Scaled(pixels, labels), BATCH, drop_last=True))


class CensusRows(IterableDataset):  # type: ignore[misc,unused-ignore]
    """The rows of the census file."""

    def __iter__(self) -> Iterator[Any]:
        with Path(census_file()).open(newline="") as file:
            for row in csv.reader(file, skipinitialspace=True):
                if row:
                    yield {
                        name: float(cell) if name in CENSUS_NUMBERS else cell
                        for name, cell in zip(CENSUS_COLUMNS, row, strict=True)
                    }


def csv_batches() -> Callable[[], object]:
    """Returns a call for the next batch of the census file."""
    return _next_of(DataLoader(CensusRows(), BATCH))


PROGRAMS: dict[str, Callable[[], Callable[[], object]]] = {
    "data_shuffle": shuffled_batches,
    "data_map": mapped_batches,
    "data_csv": csv_batches,
}
