"""`vocabulary`: the words of a column of the training data, without the rare ones.

Words are counted in one pass over the training rows, chunk by chunk where they are streamed. They
are kept next to the checkpoints, the most frequent first, and the columns become `vocabulary_file`:
a resumed training, `evaluate` and `predict` use the ids that the model was trained with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from estimatorkit.data.list_cells import filler
from estimatorkit.experiment.columns import Read
from estimatorkit.experiment.errors import DataError
from estimatorkit.experiment.examples import column_of
from estimatorkit.experiment.row_sets import training_chunks
from estimatorkit.experiment.schema import FEATURE_LISTS, Experiment
from estimatorkit.experiment.tables import require, source_name
from estimatorkit.storage.atomic_files import write_durably
from estimatorkit.storage.checkpoint import latest_checkpoint

if TYPE_CHECKING:
    import pandas as pd

FOLDER = "vocabulary"
"""The folder of the files in `model_dir`."""

_KEYS = (*FEATURE_LISTS, "sequences")


def resolve(experiment: Experiment, tell: Callable[[str], None] | None = None) -> Experiment:
    """Returns the experiment with files for the vocabularies of its columns.

    Args:
        tell: shows how many words there are; if given, and the model has no checkpoint, they are
            counted again.

    Raises:
        DataError: a column is missing, or no word is frequent enough.
    """
    data = experiment.model_dump(mode="json")
    wanted = list(_vocabularies({key: data[key] for key in _KEYS}))
    if not wanted:
        return experiment
    folder = Path(experiment.model_dir).resolve() / FOLDER
    files = [folder / _file_name(each) for each in wanted]
    trained = latest_checkpoint(experiment.model_dir) is not None
    if not all(file.is_file() for file in files) or (tell is not None and not trained):
        counts = counted(experiment, {each["key"] for each in wanted})
        for each, file in zip(wanted, files, strict=True):
            words = _frequent(each, counts[each["key"]], source_name(experiment.data.train))
            file.parent.mkdir(parents=True, exist_ok=True)
            write_durably(file, b"".join(word + b"\n" for word in words))
            if tell is not None:
                tell(
                    f"{each['key']}: {len(words):,} of {len(counts[each['key']]):,} words are seen "
                    f"at least {each['min_count']} times, kept in {file}"
                )
    return Experiment.model_validate(data | {key: _with_files(data[key], folder) for key in _KEYS})


def counted(experiment: Experiment, keys: set[str]) -> dict[str, pd.Series]:
    """How often each word of columns is in the training rows, by word.

    Raises:
        DataError: a column is missing.
    """
    import pandas as pd

    totals: dict[str, list[pd.Series]] = {key: [] for key in sorted(keys)}
    origin = source_name(experiment.data.train)
    for table in training_chunks(experiment):
        require(table, totals, origin, lambda table: table)
        for key, parts in totals.items():
            column = table[key].reshape(-1)
            if table[key].ndim > 1:  # list columns, which are padded
                column = column[column != filler(column.dtype)]
            found = pd.Series(column).value_counts(sort=False)
            words = column_of(found.index.to_numpy(), Read(key, "string"), origin, table.place)
            parts.append(pd.Series(found.to_numpy(), pd.Index(words, dtype=object)))
            # Merged sums are as long as the vocabulary: merge when the pending words have become as
            # many.
            if len(parts) > 1 and sum(map(len, parts[1:])) >= len(parts[0]):
                parts[:] = [_sum(parts)]
    return {key: _sum(parts).drop([b""], errors="ignore") for key, parts in totals.items()}


def _sum(parts: list[pd.Series]) -> pd.Series:
    import pandas as pd

    total: pd.Series = pd.concat(parts).groupby(level=0, sort=False).sum()
    return total


def _frequent(given: dict[str, Any], counts: pd.Series, origin: str) -> list[bytes]:
    """The words that are seen often enough: the most frequent first, equal ones in their order."""
    kept = counts[counts >= given["min_count"]]
    words = sorted(zip((-kept).tolist(), kept.index.tolist(), strict=True))
    found = [word for _, word in words if b"\n" not in word and b"\r" not in word]
    if not found:
        raise DataError.explained(
            f"{origin}: no word of the column {given['key']!r} is frequent enough",
            expected=f"one that is seen at least {given['min_count']} times",
            received=f"{len(counts)} words, seen {counts.max() if len(counts) else 0} times at "
            "most",
            hint="give a smaller min_count.",
        )
    return found[: given["max_size"]]


def _is_vocabulary(value: Any) -> bool:
    return isinstance(value, dict) and set(value) == {"vocabulary"}


def _vocabularies(value: Any) -> Iterator[dict[str, Any]]:
    """The arguments of all columns of this kind in a document."""
    if _is_vocabulary(value):
        yield value["vocabulary"]
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _vocabularies(each)


def _with_files(value: Any, folder: Path) -> Any:
    """Replaces `vocabulary` columns of a document by `vocabulary_file` columns."""
    if _is_vocabulary(value):
        given = value["vocabulary"]
        return {
            "vocabulary_file": {
                "key": given["key"],
                "file": str(folder / _file_name(given)),
                "num_oov_buckets": given["num_oov_buckets"],
            }
        }
    if isinstance(value, dict):
        return {key: _with_files(each, folder) for key, each in value.items()}
    return [_with_files(each, folder) for each in value] if isinstance(value, list) else value


def _file_name(given: dict[str, Any]) -> str:
    """A file for each column and threshold; keys may hold characters that names may not."""
    key = "".join(
        each if each.isalnum() or each in "-_" else f"%{ord(each):x}" for each in given["key"]
    )
    most = "" if given["max_size"] is None else f"_{given['max_size']}"
    return f"{key}_{given['min_count']}{most}.txt"
