"""`list_files`: the names of the files that match patterns, as a dataset."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core import dtypes
from estimatorkit.core.errors import InvalidArgumentError, type_error
from estimatorkit.data.dataset import Dataset
from estimatorkit.data.execution.block_iterator import BlockIterator
from estimatorkit.data.execution.iterators import GatherIterator, RangeIterator
from estimatorkit.data.execution.randomness import Seeds
from estimatorkit.data.parameters import Pending
from estimatorkit.data.plan import UNKNOWN, Plan
from estimatorkit.data.readers.record_files import file_names
from estimatorkit.data.spec import TensorSpec
from estimatorkit.storage import gfile

_ALL = 1 << 40  # a shuffle buffer grows only with its rows


@dataclass(frozen=True, eq=False)
class MatchingFiles(Plan):
    """The files that match `patterns`, strings `(n,)`, when an iterator is created; sorted."""

    patterns: Any

    @property
    def element_spec(self) -> TensorSpec:
        return TensorSpec((), dtypes.string)

    @property
    def filenames(self) -> Any:
        """The names now, or None."""
        return None if isinstance(self.patterns, Pending) else matching(self.patterns)

    @property
    def cardinality(self) -> int:
        return UNKNOWN if isinstance(self.patterns, Pending) else len(matching(self.patterns))

    def iterator(self, seeds: Seeds) -> BlockIterator:
        names = matching(self.patterns)
        if not len(names):
            patterns = ", ".join(each.decode("utf-8", "replace") for each in self.patterns)
            raise InvalidArgumentError.explained(
                f"No files matched pattern: {patterns}",
                expected="at least one file",
                hint="* does not match '/': data/*.csv does not search sub-folders of data",
            )
        return GatherIterator([names], RangeIterator(range(len(names))))


def matching(patterns: NDArray[Any]) -> NDArray[Any]:
    """The matching names, sorted: strings `(n,)`."""
    names = [os.fsencode(name) for name in gfile.glob(list(patterns))]
    return np.array(names, object)


def list_files(
    file_pattern: Any,
    shuffle: bool | None = None,
    seed: Any = None,
    name: str | None = None,
) -> Dataset:
    """A dataset of the names of matching files, which are listed whenever an iterator is created.

    Source: `tf.data.Dataset.list_files`.

    Args:
        file_pattern: a pattern, a list of them or a string tensor; see `gfile.glob`. Patterns may
            be URLs.
        shuffle: whether to shuffle, anew in each epoch; None for True. Otherwise names are sorted.
        seed: see `Dataset.shuffle`.
        name: has no effect.

    Raises:
        InvalidArgumentError: nothing matches (when an iterator is created).
    """
    if isinstance(file_pattern, Dataset):
        raise type_error(
            "list_files() takes patterns",
            expected="a string, a list of strings, or a string tensor",
            received=file_pattern,
        )
    files = Dataset(MatchingFiles(file_names(file_pattern, "list_files()")))
    return files.shuffle(_ALL, seed) if shuffle is None or shuffle else files
