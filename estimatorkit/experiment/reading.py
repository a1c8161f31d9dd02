"""How an exported model reads files: as its training data were read.

`assets.extra/reader.json` of an export has the settings of `data.train` (delimiter, encoding, names
of columns, lists, formats, ...), without the file, so that `predict EXPORT` reads files as
`predict RUN` does.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

import estimatorkit as ek
from estimatorkit.estimator.explanations import BACKGROUND_FILE, background_json
from estimatorkit.experiment import sniffing, sources, tables
from estimatorkit.experiment.errors import DataError
from estimatorkit.experiment.examples import background_rows
from estimatorkit.experiment.schema import Experiment
from estimatorkit.storage.atomic_files import write_durably
from estimatorkit.train.saving.saved_model_constants import EXTRA_ASSETS_DIRECTORY

FILE = "reader.json"

_KINDS = ("csv", "parquet", "jsonl", "excel", "sqlite", "duckdb")


def keep_background(experiment: Experiment) -> None:
    """Writes some training rows into `model_dir`, for explanations and exports."""
    path = Path(experiment.model_dir) / BACKGROUND_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    write_durably(path, background_json(background_rows(experiment)).encode())


def assets_extra(experiment: Experiment) -> dict[str, str]:
    """The further files of an export: writes the settings into `model_dir`.

    TFRecord files have none; of data sets, files have the lists. Of a training, there are
    background rows.
    """
    background = Path(experiment.model_dir) / BACKGROUND_FILE
    found = {BACKGROUND_FILE: str(background)} if background.is_file() else {}
    source = experiment.data.as_read(experiment.data.train)
    if isinstance(source, sources.DataSetSource):
        source = sources.CsvSource(csv=(source.dataset,), lists=source.lists)
    kind = _kind(source)
    if kind is None:
        return found
    settings = source.model_dump(mode="json", exclude={kind, "rows"}, exclude_defaults=True)
    kept = {
        "kind": kind,
        "settings": settings,
        "without": [*(experiment.data.label or ()), *experiment.negatives],
    }
    path = Path(experiment.model_dir) / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    write_durably(path, (json.dumps(kept, indent=2) + "\n").encode())
    return {**found, FILE: str(path)}


def _kind(source: Any) -> str | None:
    return next(
        (kind for kind in _KINDS if isinstance(source, sources.FILE_SOURCES[kind])),
        None,
    )


def source_for(directory: Path, path: Path) -> Any:
    """The source of a file for an exported model: read as the training data were. For models of
    other data, or other programs: as the file is written, with text where the model takes text.

    Args:
        directory: the export.
        path: the file.

    Raises:
        DataError: the settings in the export are damaged, or see `tables.source_of`.
    """
    kept = directory / EXTRA_ASSETS_DIRECTORY / FILE
    if kept.is_file():
        return tables.source_of(path, *_read(kept, path))
    source, *_ = sniffing.source_of(path)
    if not isinstance(source, sources.CsvSource):
        return source
    inputs = ek.load_predictor(str(directory)).signature().inputs
    texts = tuple(key for key in inputs if inputs[key][0] is ek.string)
    return source.model_copy(update={"texts": texts})


def _read(kept: Path, path: Path) -> tuple[Any, tuple[str, ...]]:
    """The source that a file is read as, and the columns that it may lack."""
    try:
        found = json.loads(kept.read_text("utf-8"))
        kind = sources.FILE_SOURCES[found["kind"]]
        like = kind.model_validate({found["kind"]: str(path), **found["settings"]})
        return like, tuple(map(str, found["without"]))
    except (ValueError, KeyError, TypeError, ValidationError) as error:
        raise DataError.explained(
            f"{kept} does not say how files are read",
            expected="what the export wrote",
            received=str(error).splitlines()[0],
            hint="export the model again.",
        ) from error


__all__ = ["assets_extra", "keep_background", "source_for"]
