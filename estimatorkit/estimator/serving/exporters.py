"""Exporters: select the evaluated models to export (`tf.estimator.Exporter` and its subclasses).

An exporter writes into `model_dir/export/NAME/`, a folder named by time for each model.
`BestExporter` records the best evaluation there, in `best.json`, so that after a restart no worse
model replaces it.
"""

from __future__ import annotations

import abc
import functools
import glob
import inspect
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np

from estimatorkit.core.errors import NotFoundError, value_error
from estimatorkit.estimator.evaluation.evaluation_records import events
from estimatorkit.estimator.evaluation.metric_monitor import MetricMonitor, Mode
from estimatorkit.logger import logger
from estimatorkit.storage.atomic_files import read_plain, remove_durably, write_durably

CompareFn = Callable[..., bool]
ExportFn = Callable[..., Any]

BEST = "best.json"


class Exporter(abc.ABC):
    """Exports evaluated models; for `EvalSpec.exporters`."""

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """The folder's name in `model_dir/export`."""

    @abc.abstractmethod
    def export(
        self,
        estimator: Any,
        export_path: str,
        checkpoint_path: str,
        eval_result: Mapping[str, Any],
        is_the_final_export: bool,
    ) -> Any:
        """Exports the model, or skips it.

        Args:
            estimator: the `Estimator`.
            export_path: the exporter's folder.
            checkpoint_path: the evaluated checkpoint.
            eval_result: the metrics of its evaluation.
            is_the_final_export: whether training has ended. Differs from TensorFlow, where it stays
                False if training ends before `max_steps`. An exporter that returned None for the
                last checkpoint is called again with True.

        Returns:
            The path of the export, or None if skipped.
        """


class _SavedModelExporter(Exporter):
    """Calls `Estimator.export_saved_model` and removes its oldest exports.

    Args: see `LatestExporter`.
    """

    def __init__(
        self,
        name: str,
        serving_input_receiver_fn: Callable[[], Any] | None,
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
        exports_to_keep: int | None = 5,
        *,
        export_fn: ExportFn | None = None,
    ) -> None:
        if exports_to_keep is not None and exports_to_keep <= 0:
            raise ValueError(
                f"`exports_to_keep`, if provided, must be a positive number. Got {exports_to_keep}"
            )
        self._name = name
        self._serving_input_receiver_fn = serving_input_receiver_fn
        self._assets_extra = assets_extra
        self._as_text = as_text
        self._exports_to_keep = exports_to_keep
        self._export_fn = export_fn

    @property
    def name(self) -> str:
        """The folder's name in `model_dir/export`."""
        return self._name

    def export(
        self,
        estimator: Any,
        export_path: str,
        checkpoint_path: str,
        eval_result: Mapping[str, Any],
        is_the_final_export: bool,
    ) -> Any:
        """Exports if this model is selected; see `Exporter.export`."""
        if not self._is_wanted(export_path, eval_result, is_the_final_export, estimator):
            return None
        self._will_export(export_path, eval_result)
        export = estimator.export_saved_model
        if self._export_fn is not None:
            export = functools.partial(self._export_fn, estimator)
        exported = export(
            export_path,
            self._serving_input_receiver_fn,
            assets_extra=self._assets_extra,
            as_text=self._as_text,
            checkpoint_path=checkpoint_path,
        )
        if self._exports_to_keep is not None:
            _remove_oldest(Path(export_path), exported, self._exports_to_keep)
        return exported

    def _is_wanted(
        self,
        export_path: str,
        eval_result: Mapping[str, Any],
        is_the_final_export: bool,
        estimator: Any,
    ) -> bool:
        return True

    def _will_export(self, export_path: str, eval_result: Mapping[str, Any]) -> None:
        """Called before an export."""


class LatestExporter(_SavedModelExporter):
    """Exports every evaluated model, and keeps the newest (`tf.estimator.LatestExporter`).

    Args:
        name: the folder's name in `model_dir/export`.
        serving_input_receiver_fn: makes a `ServingInputReceiver`.
        assets_extra: files to copy, by destination path in the model's `assets.extra`.
        as_text: write TensorFlow's proto as text.
        exports_to_keep: the number of exports to keep; None for all.
        export_fn: exports instead of `Estimator.export_saved_model`, with the estimator as the
            first argument; `functools.partial(export_candidates, items_input_fn=...)`, for example.
            Not in TensorFlow.

    Raises:
        ValueError: `exports_to_keep` is not positive.
    """


class FinalExporter(_SavedModelExporter):
    """Exports the model once, at the end of training (`tf.estimator.FinalExporter`).

    Args: see `LatestExporter`.
    """

    def __init__(
        self,
        name: str,
        serving_input_receiver_fn: Callable[[], Any],
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
        *,
        export_fn: ExportFn | None = None,
    ) -> None:
        super().__init__(
            name, serving_input_receiver_fn, assets_extra, as_text, None, export_fn=export_fn
        )

    def _is_wanted(
        self,
        export_path: str,
        eval_result: Mapping[str, Any],
        is_the_final_export: bool,
        estimator: Any,
    ) -> bool:
        if is_the_final_export:
            logger.info("Performing the final export in the end of training.")
        return is_the_final_export


def _loss_smaller(
    best_eval_result: Mapping[str, Any], current_eval_result: Mapping[str, Any]
) -> bool:
    """Whether the second evaluation has the smaller loss.

    Raises:
        ValueError: one of them has no loss.
    """
    for name, result in (
        ("best_eval_result", best_eval_result),
        ("current_eval_result", current_eval_result),
    ):
        if not result or "loss" not in result:
            raise ValueError(f"{name} cannot be empty or no loss is found in it.")
    return bool(best_eval_result["loss"] > current_eval_result["loss"])


class BestExporter(_SavedModelExporter):
    """Exports the model if its evaluation is the best so far (`tf.estimator.BestExporter`).

    Difference from TensorFlow: the best evaluation is recorded in the exporter's folder, so that a
    restart does not export a worse model. If the record is missing but exports exist, it is
    recovered from the event files.

    Args:
        name: the folder's name in `model_dir/export`.
        serving_input_receiver_fn: makes a `ServingInputReceiver`.
        event_file_pattern: event files of earlier evaluations, relative to `model_dir`.
        compare_fn: `compare_fn(best_eval_result, current_eval_result)` returns whether the current
            evaluation is better; by default, whether its 'loss' is smaller.
        assets_extra: files to copy, by destination path in the model's `assets.extra`.
        as_text: write TensorFlow's proto as text.
        exports_to_keep: the number of exports to keep; None for all.
        metric: compare by this metric, instead of `compare_fn`. Not in TensorFlow.
        mode: 'max' if a higher `metric` is better, 'min' if a lower one is; 'auto' infers it from
            the name.
        export_fn: see `LatestExporter`.
        at_end: export when training has ended only, if its model is the best: with `EarlyStopping`
            by the same metric, which restores the best, one export instead of many. Not in
            TensorFlow.

    Raises:
        ValueError: `compare_fn` takes other arguments, or is given together with `metric`; an
            argument is out of range.
    """

    def __init__(
        self,
        name: str = "best_exporter",
        serving_input_receiver_fn: Callable[[], Any] | None = None,
        event_file_pattern: str | None = "eval/*.tfevents.*",
        compare_fn: CompareFn = _loss_smaller,
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
        exports_to_keep: int | None = 5,
        *,
        metric: str | None = None,
        mode: Mode = "auto",
        export_fn: ExportFn | None = None,
        at_end: bool = False,
    ) -> None:
        super().__init__(
            name,
            serving_input_receiver_fn,
            assets_extra,
            as_text,
            exports_to_keep,
            export_fn=export_fn,
        )
        _check_compare_fn(compare_fn)
        if metric is not None and compare_fn is not _loss_smaller:
            raise ValueError("Give either `compare_fn` or `metric`, not both.")
        self._monitor = None if metric is None else MetricMonitor(metric, mode)
        self._compare_fn = compare_fn
        self._event_file_pattern = event_file_pattern
        self._at_end = at_end
        self._exported: dict[str, Mapping[str, Any]] = {}  # the best so far, by folder

    def export(
        self,
        estimator: Any,
        export_path: str,
        checkpoint_path: str,
        eval_result: Mapping[str, Any],
        is_the_final_export: bool,
    ) -> Any:
        """Exports if this evaluation is the best so far; see `Exporter.export`."""
        exported = super().export(
            estimator, export_path, checkpoint_path, eval_result, is_the_final_export
        )
        if exported is not None:
            self._exported[export_path] = dict(eval_result or {})
        return exported

    def _is_wanted(
        self,
        export_path: str,
        eval_result: Mapping[str, Any],
        is_the_final_export: bool,
        estimator: Any,
    ) -> bool:
        is_time = is_the_final_export or not self._at_end
        wanted = is_time and self._is_best(export_path, eval_result, estimator)
        if wanted:
            logger.info("Performing best model export.")
        return wanted

    def _is_best(self, export_path: str, result: Mapping[str, Any], estimator: Any) -> bool:
        folder = Path(export_path)
        best = self._read_best(folder)
        if self._monitor is not None:
            self._monitor.value(result)  # raises if the metric is missing
        if not any(_exports(folder)):
            # Other kinds of estimators may write their exports elsewhere.
            own = self._exported.get(export_path)
            return own is None or self._is_better(own, result)
        if best is not None:
            return self._is_better(best, result)
        # The event files include the current evaluation; none of them may be better than it.
        past = self._past_evaluations(estimator.model_dir)
        return not any(self._is_better(result, each) for each in past)

    def _is_better(self, best: Mapping[str, Any], current: Mapping[str, Any]) -> bool:
        if self._monitor is None:
            return bool(self._compare_fn(best_eval_result=best, current_eval_result=current))
        monitor = self._monitor
        return monitor.is_better(monitor.value(current), monitor.value(best))

    def _past_evaluations(self, model_dir: str) -> Iterator[Mapping[str, Any]]:
        if not self._event_file_pattern:
            return
        logger.info("Loading best metric from event files.")
        pattern = os.path.join(glob.escape(model_dir), self._event_file_pattern)
        for _, metrics in events([Path(file) for file in sorted(glob.glob(pattern))]):
            if self._monitor is None or self._monitor.metric in metrics:
                yield metrics

    def _read_best(self, folder: Path) -> Mapping[str, Any] | None:
        """The best evaluation in `best.json`; None if it is not recorded."""
        try:
            content = json.loads(read_plain(folder / BEST))
        except FileNotFoundError:
            return None
        except (ValueError, RecursionError):
            content = None
        record = content if isinstance(content, dict) else {}
        # The record precedes its export: if no export followed, the previous record is the best.
        before = record.get("exports_before")
        come = isinstance(before, list) and any(
            each.name not in before for each in _exports(folder)
        )
        best = record.get("metrics" if come else "previous")
        metric = None if self._monitor is None else self._monitor.metric
        if not isinstance(best, dict) or (metric is not None and metric not in best):
            logger.warning(
                "%s does not say which evaluation was best%s; the event files are asked",
                folder / BEST,
                "" if metric is None else f" by {metric!r}",
            )
            return None
        return cast("Mapping[str, Any]", best)

    def _will_export(self, export_path: str, eval_result: Mapping[str, Any]) -> None:
        folder = Path(export_path)
        folder.mkdir(parents=True, exist_ok=True)
        metrics = {
            name: np.asarray(value).item()
            for name, value in (eval_result or {}).items()
            if np.ndim(value) == 0 and np.asarray(value).dtype.kind in "biuf"
        }
        best: dict[str, Any] = {"step": metrics.get("global_step")}
        if self._monitor is not None:
            name = self._monitor.metric
            best |= {"metric": name, "mode": self._monitor.mode, "value": metrics[name]}
        before = [each.name for each in _exports(folder)]
        best |= {
            "metrics": metrics,
            "previous": self._read_best(folder) if before else None,
            "exports_before": before,
        }
        write_durably(folder / BEST, json.dumps(best, indent=1).encode())


def _check_compare_fn(compare_fn: Any) -> None:
    if compare_fn is None:
        raise ValueError("`compare_fn` must not be None.")
    expected = {"best_eval_result", "current_eval_result"}
    given = set(inspect.signature(compare_fn).parameters)
    for name in sorted(expected - given):
        raise ValueError(f"compare_fn ({compare_fn}) must include {name} argument.")
    if given - expected:
        raise value_error(
            f"compare_fn ({compare_fn}) has following not expected args: "
            f"{sorted(given - expected)}",
            expected="best_eval_result and current_eval_result",
        )


def _versions(folder: Path) -> list[Path]:
    """The sub-folders with names of exports, newest first by name."""
    try:
        entries = [entry for entry in folder.iterdir() if entry.is_dir()]
    except FileNotFoundError:
        return []
    versions = [entry for entry in entries if len(entry.name) == 10 and entry.name.isdigit()]
    return sorted(versions, key=lambda entry: int(entry.name), reverse=True)


def _exports(folder: Path) -> list[Path]:
    """The exports in a folder, newest first by name. Empty folders are not exports."""
    return [entry for entry in _versions(folder) if any(entry.iterdir())]


def _remove_oldest(folder: Path, exported: Any, keep: int) -> None:
    """Keeps `keep` exports, always including the one just written whatever its number; empty
    folders are removed first.

    Args:
        folder: the folder of exports.
        exported: the result of the estimator's `export_saved_model`.
    """
    newest = None
    if isinstance(exported, (str, bytes, os.PathLike)):  # others may return anything
        newest = os.path.basename(os.fsdecode(exported))
    written = _exports(folder)
    order = sorted(_versions(folder), key=lambda each: (each.name != newest, each not in written))
    for entry in order[keep:]:
        try:
            remove_durably(entry)
        except NotFoundError:
            logger.warning("%s was to be removed, but is gone", entry)
