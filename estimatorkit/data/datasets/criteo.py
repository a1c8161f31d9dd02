"""Criteo's display advertising: was an advertisement clicked? 13 counts and 26 hashed categories.

The files (`train.txt` of the 2014 challenge, `day_0` to `day_23` of the terabyte) are licensed by
Criteo and too large to be fetched here: `read_files` streams those that are there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from estimatorkit.lazy import listing

if TYPE_CHECKING:
    from estimatorkit.data.dataset import Dataset

LABEL = "label"
COUNTS = tuple(f"I{number}" for number in range(1, 14))
IDS = tuple(f"C{number}" for number in range(1, 27))
COLUMNS = (LABEL, *COUNTS, *IDS)
_ROWS_IN_TURN = 1024  # row by row, files are read at a sixth of the speed


def read_files(
    files: str | Sequence[str],
    *,
    shuffle: bool = True,
    seed: int | None = None,
    shards: int = 1,
    shard: int = 0,
    files_at_once: int = 1,
    missing: float = 0.0,
) -> Dataset:
    """Streams files without a header: tab-separated, as Criteo publishes them.

    Args:
        files: names or patterns (`day_*`); either all of them or none end in `.gz`.
        shuffle: whether the files come in another order in each epoch. Rows of a file are in order:
            `.shuffle(n)` mixes them.
        seed: makes this order reproducible.
        shards, shard: read only the files of one of several workers.
        files_at_once: how many files are read in turn, so that a batch has rows of several.
        missing: the value of a count that a row lacks.

    Returns:
        A dataset of pairs: features by name (`COUNTS`, float32; `IDS`, strings, b""
        where missing) and the label, int32, 0 or 1.

    Raises:
        InvalidArgumentError: when iterated, no file matches.
        ValueError: some files are compressed and others are not.
    """
    from estimatorkit.core.errors import value_error
    from estimatorkit.data.dataset import Dataset
    from estimatorkit.data.readers.csv_dataset import CsvDataset
    from estimatorkit.storage.gfile import glob

    patterns = [files] if isinstance(files, str) else list(files)
    names = [name for pattern in patterns for name in glob(pattern)]
    packed = [name for name in names if name.endswith(".gz")]
    if len(packed) not in (0, len(names)):
        others = [name for name in names if name not in packed]
        raise value_error(
            "some files are compressed and others are not",
            expected="names that all end in .gz, or none",
            received=f"{packed[0]} and {others[0]}",
        )
    defaults: list[Any] = [[0], *[[missing]] * len(COUNTS), *[[""]] * len(IDS)]

    def rows(name: Any) -> Dataset:
        return CsvDataset(name, defaults, "GZIP" if packed else None, field_delim="\t")

    def named(label: Any, *cells: Any) -> Any:
        return dict(zip((*COUNTS, *IDS), cells, strict=True)), label

    chosen = Dataset.list_files(patterns, shuffle=False).shard(shards, shard)
    if shuffle:
        chosen = chosen.shuffle(max(len(names), 1), seed)
    if files_at_once > 1:
        return chosen.interleave(rows, files_at_once, block_length=_ROWS_IN_TURN).map(named)
    return rows(chosen).map(named)


__dir__ = listing(__name__)
