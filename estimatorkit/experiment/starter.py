"""`estimatorkit init`: a commented experiment for a table."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from estimatorkit.data.cell_looks import Look
from estimatorkit.experiment import (
    defaults,
    formats as formatting,
    inferred,
    looking,
    sniffing,
    sources,
    tables,
)
from estimatorkit.experiment.document import dump, suggestion
from estimatorkit.experiment.errors import DataError
from estimatorkit.experiment.examples import text
from estimatorkit.experiment.schema import Experiment

_MOST_CLASSES = 20
"""Integer labels of more values are numbers to predict."""

_MEASURED, _HELD_OUT = 2_000, (0.1, 0.2)
"""Rows to measure with: an accuracy of 0.9 is then known to 0.7 %; and the share that they are."""

MEASURED_AT_ONCE = 4096
"""Batches of one size, which most tables then have, take 1.9 s to compile; those of two, 2.6 s."""

_RARE = 0.1
"""The share of the rows below which a class of two is rare."""

_TEMPLATE = """\
# Predicts {label} from the other columns of {file}.
#
{commands}

name: {name}
seed: 1                     # the same seed gives the same model; null: another at each run

data:
  train: {source}
  holdout: {holdout:<17}# the share of the rows to measure with; or evaluate: {{csv: test.csv}}
{split}  label: {label}
{missing}{formats}
infer: {infer:<21}# these columns, chosen from the data; or paste and change them
{columns}
# {why}
estimator:
{estimator}
{more}
train:
{train}

evaluate:
  batch_size: {measured}          # rows that are measured at once
  # training: true          # the training rows, too: overfitting shows

{predict}export: [best]              # the best of the evaluated models

tune:                       # what estimatorkit tune {config} searches
{tune}
"""

_STRATIFIED = "  holdout_stratified: true  # the same share of each class\n"

_SELECT = "  select: {share:<18}# the share of the other rows that chooses predict.threshold\n"

_NO_THRESHOLD = """\
# predict: {{threshold: f1}}  # from which probability on {second} is predicted; unless given, 0.5

"""

_LATEST = """\
  # holdout_latest: {column}
  #   holds out the rows with the latest {column}, to see how well later ones are predicted{instead}
"""

_THRESHOLD = """\
predict:                    # {found}
  threshold: f1             # it is predicted from the probability on with the best f1 on the rows
                            # of data.select; or {{precision: 0.9}}, {{recall: 0.8}}, a number,
                            # {{cost: {{missed: 10, false_alarm: 1}}}}; null: 0.5

"""


def starter(
    path: Path,
    label: str | None,
    config: Path,
    seconds: float = 60.0,
    given: sniffing.Given = sniffing.NOTHING,
    tell: Callable[[str], None] = lambda line: None,
    free_text: str = "hash",
) -> str:
    """Returns the text of an experiment that learns a column of a file.

    Args:
        path: a file of a table.
        label: the column to predict.
        config: where the text will be.
        seconds: how long the training may take on two cores; see `defaults.chosen`.
        given: what is known of how the file is written.
        tell: gets lines on what is assumed of the file, and on each column.
        free_text: what becomes of it, see `feature_columns.infer`.

    Raises:
        DataError: the file cannot be read, or has no such column, or it has one value only.
    """
    source, written, assumed = sniffing.source_of(path, given)
    table = tables.read_source(source)
    label = _label_in(table, label, path)
    seen = looking.looks(source, table, given.decimal)
    formats = {name: formatting.setting(each.format) for name, each in seen.items()}
    labels = seen[label].format.values(table[label]) if label in seen else table[label]
    _check_varies(path, label, labels)
    rare = _rare_class(labels)
    kind, arguments, metric = _task(labels, None if rare is None else rare[0])
    holdout = _holdout(tables.row_count(table))
    rows = round(tables.row_count(table) * (1 - holdout))
    classes = arguments.get("n_classes", 2) if kind == "Classifier" else 0
    absent = int(tables.missing(labels).sum())
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", path.name.split(".")[0]).strip("-._") or "model"
    kinds = sources.FILE_SOURCES.items()
    described = {next(key for key, kind in kinds if isinstance(source, kind)): path.name}
    if path.parent.resolve() != config.parent.resolve():
        described = {next(iter(described)): str(path.resolve())}
    described |= written
    data = {"train": described, "holdout": holdout, "label": label, "missing_labels": "skip"}
    data |= {"formats": formats or None, "holdout_stratified": bool(classes)}
    document = {"name": name, "data": data, "infer": {"text": free_text}, "train": {"epochs": 1}}

    def examined(texts: int) -> tuple[defaults.Choice, dict[str, Any], dict[str, Any], Any]:
        found = defaults.chosen(rows, len(table) - 1, classes, seconds, texts)
        of = {"type": f"{found.name}{kind}", **arguments}
        context = {"folder": config.parent.resolve()}
        experiment = Experiment.model_validate({**document, "estimator": of}, context=context)
        return found, of, *inferred.examined(experiment)

    chosen, estimator, inferred_settings, notes = examined(0)
    texts = sum(" -> hashed words" in each for each in notes.values())
    if texts:  # which the time to train depends on
        chosen, estimator, inferred_settings, notes = examined(texts)
    columns = dump(inferred_settings)
    notes = looking.with_looks(notes, seen)
    for line in assumed:
        tell(f"Assumed of {path}: {line}.")
    tell(f"The columns of {path}:")
    if label in seen:
        notes = {label: f"the label: {seen[label]}", **notes}
    for line in looking.note_lines(notes):
        tell(line)
    skipped = f"  missing_labels: skip      # {absent:,} rows have no {label}\n" if absent else ""
    settings = chosen.sections(rows, metric)
    predict, split = "", _STRATIFIED if classes else ""
    if rare is not None and classes:
        found = f"class {' '.join(rare[0].split())} is {rare[1]:.1%} of the rows"
        settings["train"] += f"\n# class_weights: balanced   # {found}: its errors count more"
        predict = _THRESHOLD.format(found=found)
        split += _SELECT.format(share=holdout)
        tell(
            f"Of {label}, {found}: accuracy says little. Look at auc and average_precision.\n"
            f"  From which probability on it is predicted, f1 decides: see predict in {config},"
            " and class_weights."
        )
    elif classes == 2:
        second = arguments.get("label_vocabulary", ["0", "1"])[1]
        predict = _NO_THRESHOLD.format(second=" ".join(second.split()))
    for column in _dates(inferred_settings):
        instead = ",\n  #   in place of holdout_stratified" if classes else ""
        split += _LATEST.format(column=dump(column, flow=True), instead=instead)
        tell(f"To measure with the latest rows by {column}: see holdout_latest in {config}.")
    return _TEMPLATE.format(
        label=dump(label, flow=True),
        file=path.name,
        commands=_commands(config, name),
        config=config,
        name=name,
        source=f"{{{', '.join(_lines(described))}}}",
        missing=skipped,
        split=split,
        predict=predict,
        formats=_formats(formats, seen),
        measured=MEASURED_AT_ONCE,
        infer="true" if free_text == "hash" else f"{{text: {free_text}}}",
        columns=textwrap.indent(columns, "# ", lambda line: True),
        why=chosen.why,
        estimator=textwrap.indent("\n".join(_lines(estimator)), "  "),
        holdout=holdout,
        **{key: textwrap.indent(text, "  ") for key, text in settings.items()},
    )


_COMMANDS = {
    "run {config}": "train, evaluate, export, predict three examples",
    "tune {config}": "search for better settings",
    "predict runs/{name} --input FILE": "predict for another file",
    "report runs/{name}": "curves, errors, importance of columns, single rows",
    "serve runs/{name}/export/best": "answer requests",
}


def _commands(config: Path, name: str) -> str:
    """What may be done with the experiment, as comments."""
    told = {each.format(config=config, name=name): why for each, why in _COMMANDS.items()}
    width = max(map(len, told))
    return "\n".join(f"#   estimatorkit {each:<{width}}  {why}" for each, why in told.items())


def _label_in(table: tables.Table, label: str | None, path: Path) -> str:
    """The column to predict, also by its number in a file without names."""
    for name in (label, f"column_{label}"):
        if name is not None and name in table:
            return name
    raise DataError.explained(
        f"{path}: which column is to be predicted?"
        if label is None
        else f"{path}: there is no column {label!r}",
        expected=f"--label with one of {', '.join(table)}",
        hint=suggestion(label or "", list(table)),
    )


def _holdout(rows: int) -> float:
    """The share of the rows to measure with."""
    least, most = _HELD_OUT
    return round(min(max(_MEASURED / max(rows, 1), least), most), 2)


def _dates(chosen: dict[str, Any]) -> list[str]:
    """The columns of dates that infer chose."""
    derived = [next(iter(each.items())) for each in chosen.get("derive", {}).values()]
    return list(dict.fromkeys(source for kind, source in derived if kind != "missing"))


def _formats(formats: dict[str, Any], seen: dict[str, Look]) -> str:
    """The key `formats` of the data, with what was seen."""
    if not formats:
        return ""
    lines = ["  formats:                  # how cells are written; text: as they are"]
    for name, each in formats.items():
        line = f"    {dump(name, flow=True)}: {dump(each, flow=True)}"
        lines += [
            *textwrap.wrap(
                f"# {seen[name]}", 90, initial_indent="    ", subsequent_indent="    # "
            ),
            line,
        ]
    return "\n".join(lines) + "\n"


def _lines(settings: dict[str, Any]) -> list[str]:
    return [f"{key}: {dump(value, flow=True)}" for key, value in settings.items()]


def _check_varies(path: Path, label: str, column: Any) -> None:
    """Raises DataError if there is nothing to tell apart."""
    absent = tables.missing(column)
    values = set(column[~absent].tolist())
    if len(values) < 2:
        empty = f"{int(absent.sum()):,} cells are empty: if this is a class, write its name there. "
        raise DataError.explained(
            f"{path}: column {label!r} has {'one value only' if len(values) else 'no values'}",
            expected="two different ones, or more",
            received=", ".join(text(each) for each in values) or None,
            hint=f"{empty if absent.any() else ''}--label names another column; or add rows with "
            "other values.",
        )


def _task(column: Any, rare: str | None) -> tuple[str, dict[str, Any], str]:
    """What a label asks for, the estimator's arguments, and the metric to choose by.

    A rare class is the second of two: precision, recall and f1 are of the second.
    """
    present = column[~tables.missing(column)]
    if column.dtype.kind in "OUSb":
        words = sorted({text(each) for each in present}, key=lambda word: (word == rare, word))
        given: dict[str, Any] = {"label_vocabulary": words}
        if len(words) != 2:
            given = {"n_classes": len(words), **given}
        return "Classifier", given, _metric(len(words))
    values = np.unique(present)
    whole = bool((values == np.floor(values)).all())
    if whole and len(values) <= _MOST_CLASSES and values.tolist() == [*range(len(values))]:
        if rare == "0":
            return "Classifier", {"label_vocabulary": ["1", "0"]}, _metric(2)
        return "Classifier", {"n_classes": len(values)}, _metric(len(values))
    return "Regressor", {}, "rmse"


def _rare_class(labels: Any) -> tuple[str, float] | None:
    """The rarer of two classes and its share, if that is small."""
    values = Counter(labels[~tables.missing(labels)].tolist())
    value, count = values.most_common()[-1]
    share = count / values.total()
    if len(values) != 2 or share >= _RARE:
        return None
    return (f"{value:g}" if isinstance(value, float) else text(value), share)


def _metric(classes: int) -> str:
    """The metric of a classifier: of two classes, one of which may be rare, the ranking."""
    return "auc" if classes == 2 else "accuracy"
