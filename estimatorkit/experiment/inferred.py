"""`infer`: feature columns chosen from the training data, as the settings that describe them.

`feature_columns.infer` looks at the table; here its proposal becomes the keys `features`, `derive`
and `label_scaling`. They are kept next to the checkpoints, so that a resumed training, `evaluate`
and `predict` use the columns that the model was trained with, even if the data have changed.
"""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from estimatorkit._inferred_code import Call, RobustScaling
from estimatorkit._inferred_findings import Feature as InferredFeature
from estimatorkit.experiment import date_features, document, looking, vocabularies
from estimatorkit.experiment.errors import DataError
from estimatorkit.experiment.estimators import Regressor, Trees
from estimatorkit.experiment.examples import labels_of, used_columns
from estimatorkit.experiment.row_sets import training_table
from estimatorkit.experiment.schema import Experiment
from estimatorkit.experiment.tables import Table, source_name
from estimatorkit.feature_columns import infer
from estimatorkit.storage.atomic_files import write_durably
from estimatorkit.storage.checkpoint import latest_checkpoint

FILE = "inferred.yaml"
"""The settings in `model_dir`."""

NOTES = "inferred_notes.json"
"""The notes on columns, beside it, for reports."""

_MOST_LINES = 60
"""Of the settings, that are shown."""

_DERIVED = {"dt.year": "year", "dt.month": "month", "dt.day_of_week": "weekday", "dt.hour": "hour"}


def resolve(experiment: Experiment, tell: Callable[[str], None] | None = None) -> Experiment:
    """Returns the experiment with the columns of `infer` listed, and words counted: those of its
    model, if there is one.

    Args:
        tell: shows newly inferred columns; if given, they are kept in `model_dir`.

    Raises:
        DataError: the training data have no column that can be used, or see `vocabularies`.
    """
    return vocabularies.resolve(_listed_columns(experiment, tell), tell)


def _listed_columns(experiment: Experiment, tell: Callable[[str], None] | None) -> Experiment:
    if experiment.infer is None:
        return experiment
    kept = Path(experiment.model_dir) / FILE
    if latest_checkpoint(experiment.model_dir) is None or not kept.is_file():
        chosen, notes = examined(experiment)
        if tell is not None:
            shown = document.dump(chosen)
            kept.parent.mkdir(parents=True, exist_ok=True)
            write_durably(kept, shown.encode())
            write_durably(kept.with_name(NOTES), (json.dumps(notes, indent=2) + "\n").encode())
            tell(f"The columns of {source_name(experiment.data.train)}:")
            tell("\n".join([*looking.note_lines(notes), ""]))
            tell(f"The columns that infer chooses, kept in {kept}:")
            lines = textwrap.indent(shown, "  ").splitlines()
            rest = len(lines) - _MOST_LINES
            tell("\n".join([*lines[:_MOST_LINES], f"  ... and {rest} more lines" * (rest > 0), ""]))
        return _merged(experiment, chosen)
    chosen = document.to_data(document.parse(document.read_text(kept), str(kept)))
    return _merged(experiment, chosen)


def notes_of(model_dir: str | os.PathLike[str]) -> dict[str, str]:
    """The notes on the columns of a model; empty if there are none."""
    path = Path(model_dir) / NOTES
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(key): str(note) for key, note in found.items()} if isinstance(found, dict) else {}


def settings(experiment: Experiment) -> dict[str, Any]:
    """Returns what `infer` chooses from the training data, as keys of an experiment.

    Raises:
        DataError: see `resolve`.
    """
    return examined(experiment)[0]


def examined(experiment: Experiment) -> tuple[dict[str, Any], dict[str, str]]:
    """Returns what `settings` does, and a note on each column: what it holds, what becomes of it.

    Raises:
        DataError: see `resolve`.
    """
    experiment, formats, seen = looking.with_formats(experiment, training_table(experiment))
    table = training_table(experiment)
    chosen = experiment.infer
    assert chosen is not None  # noqa: S101 (callers ask)
    options = {key: value for key, value in chosen if key not in ("without", "buckets_in_network")}
    if all(kind == "raw" for _, kind in experiment.estimator.columns.values()):
        options |= {"buckets": 0, "fill_missing": False}
    given = _to_infer_from(experiment, table)
    try:
        found = infer(given, read_text=False, **options)  # `data.formats` has read it
    except ValueError as error:
        raise DataError(f"{source_name(experiment.data.train)}: {error}") from error
    made = [feature for finding in found.findings for feature in finding.features]
    result: dict[str, Any] = {}
    for key, (_, kind) in experiment.estimator.columns.items():
        calls = [(each, each.deep if kind == "dense" else each.wide) for each in made]
        result[key] = [_setting(call, each) for each, call in calls if call is not None]
        if kind == "dense" and chosen.buckets_in_network:
            ranges = [_setting(each.wide, each) for each in made if each.wide is not None]
            result[key] += [{"indicator": each} for each in ranges if "bucketized" in each]
    derived = {each.key: {_derived(each): str(each.source)} for each in made if _derived(each)}
    dated = {str(each.source) for each in made if _derived(each) in _DERIVED.values()}
    notes = found.notes
    for name in (each for each in given if each in dated):
        parts, numbers = date_features.settings(name, given[name])
        derived |= parts
        for key in experiment.estimator.columns:
            result[key] += numbers
        notes[name] += "".join(f", {key}" for key in parts)
    if derived:
        result["derive"] = derived
    scaling = _label_scaling(experiment, table)
    if formats:
        result = {"data": {"formats": formats}, **result}
    result |= {"estimator": {"label_scaling": scaling}} if scaling else {}
    return result, looking.with_looks(notes, seen)


def _merged(experiment: Experiment, chosen: dict[str, Any]) -> Experiment:
    """The experiment with further columns."""
    experiment = looking.with_settings(experiment, chosen.get("data", {}).get("formats", {}))
    data = experiment.model_dump(mode="json") | {"infer": None}
    for key in experiment.estimator.columns:
        data[key] = [*data[key], *chosen.get(key, ())]
    data["derive"] = chosen.get("derive", {}) | (data["derive"] or {}) or None
    data["estimator"] = data["estimator"] | chosen.get("estimator", {})
    return Experiment.model_validate(data)


def _to_infer_from(experiment: Experiment, table: Table) -> dict[str, Any]:
    """The columns of a table that no feature, label or weight reads, in pandas' types."""
    without = experiment.infer.without if experiment.infer else ()
    known = {*used_columns(experiment), *(experiment.data.label or ()), *without}
    return {
        name: looking.values(experiment.formats.get(name), column)
        for name, column in table.items()
        if name not in known and column.ndim == 1
    }


def _derived(feature: InferredFeature) -> str | None:
    """The function of `derive` that makes a feature; None for a column of the data."""
    paths = [step.path for step in feature.steps]
    if paths[-2:] in (["isna", "astype"], ["eq", "astype"]):
        return "missing"
    return next((_DERIVED[path] for path in paths if path in _DERIVED), None)


def _setting(call: Call, feature: InferredFeature) -> dict[str, Any]:
    """A feature column as the item of `features` that makes it."""
    name, given, options = call.function.__name__, call.arguments[0], dict(call.keywords)
    if name == "numeric_column":
        return {"numeric": _numeric(call, feature)}
    if name == "bucketized_column":
        return {"bucketized": {"column": _numeric(given, feature)} | _listed(options)}
    if name == "indicator_column":
        return {"indicator": _setting(given, feature)}
    if name == "embedding_column":
        return {"embedding": {"column": _setting(given, feature)} | options}
    kind = name.removeprefix("categorical_column_with_")
    if kind == "vocabulary_list":
        return {kind: {"key": given, "words": list(call.arguments[1])}}
    return {kind: {"key": given} | options}


def _listed(options: dict[str, Any]) -> dict[str, Any]:
    return {name: list(value) for name, value in options.items()}


def _numeric(call: Call, feature: InferredFeature) -> dict[str, Any]:
    """The arguments of a column of numbers."""
    found: dict[str, Any] = {"key": call.arguments[0]}
    steps = {step.path: step.arguments for step in feature.steps}
    (filler,) = steps.get("fillna") or (None,)
    if _derived(feature) != "missing":
        found["default"] = filler if isinstance(filler, float) else "nan"
    if steps.get("astype") == ("float64",):
        found["dtype"] = "float64"
    scaling = dict(call.keywords).get("normalizer_fn")
    if isinstance(scaling, RobustScaling):
        found["normalizer"] = {"type": "robust"} | asdict(scaling)
    elif scaling is not None:
        mean, deviation = float(scaling.center), float(scaling.scale)
        found["normalizer"] = {"type": "standardize", "mean": mean, "deviation": deviation}
    return found


def _label_scaling(experiment: Experiment, table: Table) -> dict[str, float] | None:
    """The mean and standard deviation of a regressor's labels."""
    estimator = experiment.estimator
    if not isinstance(estimator, Regressor) or not estimator.columns or estimator.label_scaling:
        return None
    if isinstance(estimator, Trees):
        return None  # they do not depend on the labels' scale
    labels = labels_of(experiment, table, source_name(experiment.data.train))
    if labels is None or labels.ndim > 1:
        return None
    mean, deviation = float(labels.mean(dtype=float)), float(labels.std(dtype=float))
    if deviation == 0.0:
        return None
    return {"mean": float(f"{mean:.6g}"), "deviation": float(f"{deviation:.6g}")}
