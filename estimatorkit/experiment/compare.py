"""Runs side by side: the settings in which they differ, their metrics and learning curves."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from estimatorkit.estimator.evaluation.completion import read_completion, recorded_result
from estimatorkit.estimator.evaluation.metric_monitor import MetricMonitor
from estimatorkit.experiment import document, folds, report_html, row_sets
from estimatorkit.experiment.epochs import SHOWN
from estimatorkit.experiment.errors import ConfigurationError
from estimatorkit.experiment.load import load_experiment
from estimatorkit.experiment.report import INTEGERS, number
from estimatorkit.experiment.report_html import Section, read_scalars
from estimatorkit.experiment.schema import Experiment
from estimatorkit.experiment.sections import leaves
from estimatorkit.html import html_table
from estimatorkit.storage.atomic_files import write_durably
from estimatorkit.version import __version__

_CONFIG = "config.yaml"
_NOT_SHOWN = ("name", "model_dir", "tune", "run")
_OF_ROWS = ("data.train", "data.evaluate", "data.holdout", "data.part", "evaluate.folds")
"""Settings that say which rows measure a model."""

_LOSS = "training loss"
_FOLDS = "cross-validation"
_BARS = "▁▂▃▄▅▆▇█"
_CURVE = 16
"""Characters of a curve."""

_VALUE = 28
"""Characters of a setting."""


@dataclass(frozen=True)
class RunRecord:
    """What the folder of a run says.

    Attributes:
        name: the folder, without what all have in common.
        folder: the folder.
        experiment: its configuration; None for a model of a script.
        metrics: those of the model, by name of the evaluation: of the end of the training or, where
            it has not ended, of the last evaluation.
        curves: (step, value) of metrics of the main evaluation, and of the training's loss.
        has_ended: whether the training ended.
    """

    name: str
    folder: Path
    experiment: Experiment | None
    metrics: Mapping[str, Mapping[str, float]]
    curves: Mapping[str, Sequence[tuple[int, float]]]
    has_ended: bool

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the model and its training, by dotted name."""
        if self.experiment is None:
            return {}
        found = leaves(self.experiment.model_dump(mode="json"))
        return {key: each for key, each in found if key.split(".")[0] not in _NOT_SHOWN}

    @property
    def main(self) -> Mapping[str, float]:
        """The metrics of the main evaluation."""
        return self.metrics.get(row_sets.MAIN, {})


def runs_in(folders: Iterable[Path]) -> list[RunRecord]:
    """The runs in some folders; files and other folders are left out, so that `runs/*` works.

    Raises:
        ConfigurationError: there is none, or a configuration cannot be read.
    """
    given = list(dict.fromkeys(folders))
    found = [each for each in given if _is_run(each)]
    if not found:
        raise ConfigurationError.explained(
            f"{', '.join(map(str, given[:3]))}: no run is there",
            expected="folders of models that were trained: runs/people, or runs/*",
        )
    common = os.path.commonpath(each.absolute().parent for each in found)
    return [_read(each, os.path.relpath(each.absolute(), common)) for each in found]


def _is_run(folder: Path) -> bool:
    return folder.is_dir() and any(
        (folder / name).exists() for name in (_CONFIG, "checkpoint", "eval")
    )


def _read(folder: Path, name: str) -> RunRecord:
    config, done = folder / _CONFIG, read_completion(str(folder))
    curves = read_scalars(folder / "eval")
    results = None if done is None else done.results
    metrics: dict[str, dict[str, float]] = {}
    for label, record in (results or {}).items():
        values = recorded_result(record, str(folder))[0]
        metrics[label] = {key: float(each) for key, each in values.items() if np.ndim(each) == 0}
    if not metrics and curves:
        last = {key: points[-1][1] for key, points in curves.items()}
        step = max(points[-1][0] for points in curves.values())
        metrics = {row_sets.MAIN: {**last, "global_step": step}}
    experiment = load_experiment(config) if config.is_file() else None
    validated = folds.read(folder)
    if validated is not None:  # which measures a model that was trained on all rows
        apart = experiment is not None and experiment.data.measures_apart
        own = metrics.get(row_sets.MAIN, {}) if not apart else {}
        steps = {name: own[name] for name in INTEGERS if name in own}
        metrics[_FOLDS if apart else row_sets.MAIN] = validated.means | steps
    training = read_scalars(folder).get("loss")
    return RunRecord(
        name,
        folder,
        experiment,
        metrics,
        curves if training is None else {_LOSS: training, **curves},
        results is not None,
    )


def judge(runs: Sequence[RunRecord], metric: str | None = None) -> MetricMonitor:
    """What the runs are ordered by: a metric, or the one that selects the best checkpoint of most
    runs, or the loss.

    Raises:
        ConfigurationError: no run has it.
    """
    chosen = [run.experiment.selection for run in runs if run.experiment is not None]
    named = [each.metric for each in chosen if each is not None]
    name = metric or max(named, key=named.count, default="loss")
    known = sorted({key for run in runs for key in run.main})
    if known and name not in known:
        raise ConfigurationError.explained(
            f"no run has the metric {name!r}",
            expected=f"one of {', '.join(known)}",
            hint=document.suggestion(name, known),
        )
    modes = [each.mode for each in chosen if each is not None and each.metric == name]
    return MetricMonitor(name, modes[0] if modes else "auto")


def ordered(runs: Sequence[RunRecord], by: MetricMonitor) -> list[RunRecord]:
    """The runs, the best first; those without the metric come last."""
    sign = 1.0 if by.mode == "min" else -1.0
    return sorted(runs, key=lambda run: sign * run.main.get(by.metric, sign * np.inf))


def differing(runs: Sequence[RunRecord]) -> dict[str, list[str]]:
    """The settings in which runs differ: by dotted name, the value of each run ('' for none)."""
    settings = [run.settings for run in runs if run.experiment is not None]
    names = dict.fromkeys(name for each in settings for name in each)
    found = {name: [_text(run, name) for run in runs] for name in names}
    return {
        name: values
        for name, values in found.items()
        if any(each.get(name) != settings[0].get(name) for each in settings)
    }


def _text(run: RunRecord, name: str) -> str:
    value = run.settings.get(name)
    if value is None:
        return ""
    return value if isinstance(value, str) else " ".join(document.dump(value, flow=True).split())


def notes(runs: Sequence[RunRecord], differences: Iterable[str]) -> list[str]:
    """What makes the metrics hard to compare."""
    found = []
    rows = [each for each in differences if each.startswith(_OF_ROWS)]
    if rows:
        found.append(f"Metrics are of different rows: {', '.join(rows)} differ.")
    running = [run.name for run in runs if not run.has_ended]
    if running:
        found.append(f"Not ended, with the metrics of the last evaluation: {', '.join(running)}.")
    return found


def text_lines(runs: Sequence[RunRecord], by: MetricMonitor, width: int) -> list[str]:
    """The comparison for a terminal.

    Args:
        runs: the best first.
        by: what orders them.
        width: of the terminal, in characters.
    """
    import pandas as pd

    shown = [each for each in dict.fromkeys((by.metric, "loss", *SHOWN)) if _has(runs, each)]
    table = {each: [_number(run, each) for run in runs] for each in ("global_step", *shown)}
    table |= {f"{by.metric} by step": [curve(run.curves.get(by.metric, ())) for run in runs]}
    names = [run.name for run in runs]
    lines = [f"Metrics, the best {by.metric} first:"]
    lines += _frame_lines(pd.DataFrame(table, index=names), width)
    differences = differing(runs)
    if differences:
        lines += ["", "Settings that differ:"]
        cut = {name: [_cut(each) for each in values] for name, values in differences.items()}
        lines += _frame_lines(pd.DataFrame.from_dict(cut, "index", columns=names), width)
    return [*lines, *(f"note: {each}" for each in notes(runs, differences))]


def _frame_lines(frame: Any, width: int) -> list[str]:
    text = frame.to_string(line_width=width - 2, max_colwidth=None)
    return [f"  {line.rstrip()}" for line in text.splitlines()]


def _has(runs: Sequence[RunRecord], metric: str) -> bool:
    return any(metric in run.main for run in runs)


def _number(run: RunRecord, metric: str) -> str:
    value = run.main.get(metric)
    if value is None:
        return ""
    return f"{int(value):,}" if metric in INTEGERS else number(value)


def _cut(text: str) -> str:
    return text if len(text) <= _VALUE else f"{text[: _VALUE - 3]}..."


def curve(points: Sequence[tuple[int, float]]) -> str:
    """A curve in a line of blocks, each the value at a step of equally distant ones.

    Args:
        points: (step, value) in the order of steps; fewer than two make ''.
    """
    if len(points) < 2:
        return ""
    steps, values = np.array(points, float).T
    low, high = values.min(), values.max()
    at = np.linspace(steps[0], steps[-1], min(_CURVE, len(points)))
    shares = (np.interp(at, steps, values) - low) / ((high - low) or 1.0)
    return "".join(_BARS[round(each * (len(_BARS) - 1))] for each in shares)


def write_page(runs: Sequence[RunRecord], by: MetricMonitor, path: Path) -> None:
    """Writes the comparison as one HTML file.

    Args:
        runs: the best first.
        by: what orders them.
        path: the file.

    Raises:
        ImportError: matplotlib is not installed.
    """
    differences = differing(runs)
    remarks = "".join(f"<p>{escape(each)}</p>" for each in notes(runs, differences))
    labels = dict.fromkeys(label for run in runs for label in run.metrics)
    sections = [_metrics_section(runs, by, label) for label in labels]
    rows = [(name, *values) for name, values in differences.items()]
    table = html_table(("setting", *(run.name for run in runs)), rows)
    sections.append(Section("Settings that differ", table if rows else "<p>None.</p>"))
    sections += _curve_sections(runs, by)
    folders = [(run.name, str(run.folder.absolute())) for run in runs]
    sections.append(Section("Folders", html_table(("run", "folder"), folders)))
    if remarks:
        sections.insert(0, Section("Notes", remarks))
    subtitle = (
        f"{len(runs)} runs, the best {escape(by.metric)} first; "
        f"estimatorkit {__version__}, {time.strftime('%Y-%m-%d %H:%M')}"
    )
    write_durably(path, report_html.page("Comparison of runs", subtitle, sections).encode())


def _metrics_section(runs: Sequence[RunRecord], by: MetricMonitor, label: str) -> Section:
    found = dict.fromkeys(key for run in runs for key in run.metrics.get(label, {}))
    names = sorted(found, key=lambda name: (name != by.metric, name in INTEGERS, name))
    rows = []
    for name in names:
        values = [run.metrics.get(label, {}).get(name) for run in runs]
        rows.append(
            (name, *("" if each is None else report_html.number_text(each) for each in values))
        )
    source = next((run.experiment for run in runs if label in run.metrics), None)
    where = ""
    if source is not None:
        where = _FOLDS if label == _FOLDS else row_sets.evaluation_source(source, label)
    title = "Metrics" if label == row_sets.MAIN else f"Metrics: {label}"
    caption = f"of {where}" if where else None
    return Section(title, html_table(("metric", *(run.name for run in runs)), rows, caption))


def _curve_sections(runs: Sequence[RunRecord], by: MetricMonitor) -> list[Section]:
    """Curves of all runs in one plot for each metric: by examples if batches differ in size."""
    sizes = [1 if run.experiment is None else run.experiment.train.batch_size for run in runs]
    over = "step" if len(set(sizes)) == 1 else "examples"
    scalars = {
        run.name: {
            metric: [(step * (1 if over == "step" else size), value) for step, value in points]
            for metric, points in run.curves.items()
        }
        for run, size in zip(runs, sizes, strict=True)
    }
    content = report_html.curves_by_run(scalars, (by.metric, _LOSS, "loss", *SHOWN), over)
    return [Section("Learning curves", content)] if content else []


__all__ = [
    "RunRecord",
    "curve",
    "differing",
    "judge",
    "ordered",
    "runs_in",
    "text_lines",
    "write_page",
]
