"""Exporters: which models are exported, which are kept, and what the best exporter remembers."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import estimatorkit as tf
from estimatorkit.estimator.estimator import Estimator
from estimatorkit.estimator.evaluation.metric_monitor import MetricMonitor
from estimatorkit.estimator.serving.exporters import (
    BestExporter,
    Exporter,
    FinalExporter,
    LatestExporter,
)
from estimatorkit.estimator.train_spec import EvalSpec, TrainSpec
from estimatorkit.interop.events import MetricsWriter
from tests.estimator import scripted


def receiver() -> Any:
    raise AssertionError("it is for export_saved_model to call")


class Model:
    """Stands for an estimator: its exports are folders, called by a clock that a test sets."""

    def __init__(self, model_dir: Path) -> None:
        self.model_dir = str(model_dir)
        self.clock = 1_700_000_000
        self.calls: list[Mapping[str, Any]] = []
        self.fails = False

    def export_saved_model(self, folder: str, receiver_fn: Any, **keywords: Any) -> bytes:
        self.calls.append({"receiver_fn": receiver_fn, **keywords})
        if self.fails:
            raise OSError("the disk is full")
        while (Path(folder) / str(self.clock)).exists():
            self.clock += 1
        made = Path(folder) / str(self.clock)
        made.mkdir(parents=True)
        (made / "saved_model.pb").write_bytes(b"")
        self.clock += 1
        return os.fsencode(made)


def export(
    model: Model, exporter: Exporter, step: int = 1, final: bool = False, **metrics: Any
) -> Any:
    """Exports the model of a step, whose evaluation gave these metrics."""
    return exporter.export(
        estimator=model,
        export_path=os.path.join(model.model_dir, "export", exporter.name),
        checkpoint_path=f"{model.model_dir}/model.ckpt-{step}",
        eval_result={**metrics, "global_step": np.int64(step)},
        is_the_final_export=final,
    )


def kept(model: Model, exporter: Exporter) -> list[str]:
    folder = Path(model.model_dir) / "export" / exporter.name
    return sorted(entry.name for entry in folder.iterdir() if entry.is_dir())


@pytest.fixture
def model(tmp_path: Path) -> Model:
    return Model(tmp_path)


# -- which models


def test_arguments_reach_export_saved_model(model: Model) -> None:
    for exporter in (
        LatestExporter("a", receiver, {"a.txt": "/a"}, True),
        FinalExporter("b", receiver, {"a.txt": "/a"}, True),
        BestExporter("c", receiver, assets_extra={"a.txt": "/a"}, as_text=True),
    ):
        made = export(model, exporter, 7, True, loss=1.0)
        assert os.fsdecode(made).startswith(f"{model.model_dir}/export/{exporter.name}/17")
    assert model.calls == 3 * [
        {
            "receiver_fn": receiver,
            "assets_extra": {"a.txt": "/a"},
            "as_text": True,
            "checkpoint_path": f"{model.model_dir}/model.ckpt-7",
        }
    ]


def test_final_exporter_exports_once(model: Model) -> None:
    exporter = FinalExporter("final", receiver)
    assert export(model, exporter, 1) is None
    assert export(model, exporter, 2, final=True) is not None
    assert len(model.calls) == 1


def test_latest_are_kept(model: Model) -> None:
    exporter = LatestExporter("latest", receiver, exports_to_keep=2)
    folder = Path(model.model_dir, "export", "latest")
    (folder / "notes").mkdir(parents=True)
    (folder / "1234567").mkdir()
    made = [os.path.basename(os.fsdecode(export(model, exporter, step))) for step in range(4)]
    assert kept(model, exporter) == ["1234567", *made[-2:], "notes"]
    everything = LatestExporter("all", receiver, exports_to_keep=None)
    for step in range(8):
        export(model, everything, step)
    assert len(kept(model, everything)) == 8


def test_clock_set_back_removes_no_new_export(model: Model) -> None:
    exporter = LatestExporter("latest", receiver, exports_to_keep=2)
    for clock in (1_700_000_000, 1_700_000_100):
        model.clock = clock
        export(model, exporter)
    model.clock = 1_600_000_000
    export(model, exporter)
    assert kept(model, exporter) == ["1600000000", "1700000100"]


@pytest.mark.parametrize("kind", [LatestExporter, BestExporter])
def test_oldest_are_removed_whatever_estimator_returns(kind: Any, tmp_path: Path) -> None:
    for version in range(1_700_000_000, 1_700_000_004):
        (tmp_path / str(version)).mkdir()
    estimator = mock.Mock(spec=Estimator, model_dir=str(tmp_path))
    exporter = kind("n", receiver, exports_to_keep=2)
    assert exporter.export(estimator, str(tmp_path), None, None, False) is not None
    assert [each.name for each in sorted(tmp_path.iterdir()) if each.is_dir()] == [
        "1700000002",
        "1700000003",
    ]


# -- the best


@pytest.mark.parametrize(
    ("arguments", "metric", "values"),
    [
        ({}, "loss", [3.0, 2.0, 2.0, 2.5, 1.0]),
        ({"metric": "loss"}, "loss", [3.0, 2.0, 2.0, 2.5, 1.0]),
        ({"metric": "auc"}, "auc", [0.3, 0.4, 0.4, 0.35, 0.5]),
        ({"metric": "label/mean", "mode": "max"}, "label/mean", [0.3, 0.4, 0.4, 0.35, 0.5]),
    ],
)
def test_better_model_is_exported(
    arguments: Any, metric: str, values: Sequence[float], model: Model
) -> None:
    exporter = BestExporter("best", receiver, **arguments)
    exported = [
        export(model, exporter, step, False, **{metric: value}) is not None
        for step, value in enumerate(values)
    ]
    assert exported == [True, True, False, False, True]


def test_pain_point_08_metric_has_a_name(model: Model) -> None:
    exporter = BestExporter("best", receiver, metric="acuracy", mode="max")
    with pytest.raises(ValueError, match=r"no metric 'acuracy'") as error:
        export(model, exporter, accuracy=np.float32(0.5), auc=np.float32(0.6), matrix=np.eye(2))
    assert "one of accuracy, auc, global_step" in str(error.value)
    assert "did you mean 'accuracy'?" in str(error.value)
    assert not model.calls
    with pytest.raises(ValueError, match="either `compare_fn` or `metric`"):
        BestExporter(compare_fn=lambda best_eval_result, current_eval_result: True, metric="auc")
    with pytest.raises(ValueError, match="whether a higher or a lower 'label/mean' is better"):
        BestExporter(metric="label/mean")
    with pytest.raises(ValueError, match="did you mean 'max'"):
        BestExporter(metric="auc", mode="maxx")  # type: ignore[arg-type]
    default = BestExporter("other", receiver)
    export(model, default, auc=1.0)
    with pytest.raises(ValueError, match="best_eval_result cannot be empty or no loss"):
        export(model, default, auc=1.0)


@pytest.mark.parametrize("memory", ["best.json", "no best.json"])
@pytest.mark.parametrize(
    "arguments",
    [
        {"metric": "score", "mode": "max"},
        {
            "compare_fn": lambda best_eval_result, current_eval_result: (
                current_eval_result["score"] > best_eval_result["score"]
            )
        },
    ],
    ids=["metric", "compare_fn"],
)
def test_pain_point_07_no_worse_model_after_restart(
    arguments: Any, memory: str, model: Model
) -> None:
    """TensorFlow exports the first model after a restart, better or not."""

    def evaluate_and_export(step: int, score: float) -> bool:
        writer = MetricsWriter(f"{model.model_dir}/eval")
        writer.write(step, {"score": np.float32(score)})
        writer.close()
        exporter = BestExporter("best", receiver, **arguments)  # each time a process of its own
        if memory == "no best.json":
            Path(model.model_dir, "export/best/best.json").unlink(missing_ok=True)
        return export(model, exporter, step, score=np.float32(score)) is not None

    exported = [evaluate_and_export(step, score) for step, score in enumerate([3, 5, 4, 2, 6])]
    assert exported == [True, True, False, False, True]


def test_first_model_is_always_exported(model: Model) -> None:
    writer = MetricsWriter(f"{model.model_dir}/eval")
    writer.write(1, {"loss": 0.5})
    writer.close()
    exporter = BestExporter("best", receiver)
    assert export(model, exporter, 2, loss=1.0) is not None
    assert export(model, exporter, 3, loss=1.5) is None
    assert export(model, exporter, 4, loss=0.9) is not None


def test_remembered_state(model: Model) -> None:
    exporter = BestExporter("best", receiver, metric="auc")
    export(model, exporter, 3, auc=np.float32(0.5), loss=np.float32(2), rows=np.eye(2))
    content = json.loads(Path(model.model_dir, "export/best/best.json").read_text())
    assert (content["metric"], content["mode"], content["value"]) == ("auc", "max", 0.5)
    assert (content["step"], content["metrics"]) == (3, {"auc": 0.5, "loss": 2.0, "global_step": 3})


def test_failed_export_is_not_best(model: Model) -> None:
    """It is written down before; what follows is compared with what is really there."""
    exporter = BestExporter("best", receiver)
    export(model, exporter, 1, loss=5.0)
    model.fails = True
    with pytest.raises(OSError, match="the disk is full"):
        export(model, exporter, 2, loss=1.0)
    model.fails = False
    assert export(model, BestExporter("best", receiver), 3, loss=6.0) is None
    assert export(model, BestExporter("best", receiver), 4, loss=4.0) is not None
    assert export(model, BestExporter("best", receiver), 5, loss=4.5) is None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"metrics": 3}', b"\xff", b"[" * 9999])
def test_damaged_state_is_ignored(
    content: bytes, model: Model, caplog: pytest.LogCaptureFixture
) -> None:
    exporter = BestExporter("best", receiver, metric="loss")
    export(model, exporter, 1, loss=5.0)
    Path(model.model_dir, "export/best/best.json").write_bytes(content)
    with caplog.at_level(logging.WARNING, "estimatorkit"):
        assert export(model, exporter, 2, loss=4.0) is not None
    assert "does not say which evaluation was best by 'loss'" in caplog.text
    assert export(model, exporter, 3, loss=4.5) is None


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.floats(-3, 3) | st.just(float("nan")), st.booleans()), max_size=12))
def test_exports_are_running_best(
    tmp_path_factory: pytest.TempPathFactory, evaluations: list[tuple[float, bool]]
) -> None:
    """With restarts anywhere in between: `True` begins a new process."""
    model = Model(tmp_path_factory.mktemp("model"))
    exporter = BestExporter("best", receiver, metric="loss", exports_to_keep=1)
    best: float | None = None
    for step, (value, restarts) in enumerate(evaluations):
        if restarts:
            exporter = BestExporter("best", receiver, metric="loss", exports_to_keep=1)
        wanted = best is None or value < best or (best != best and value == value)
        assert (export(model, exporter, step, loss=value) is not None) == wanted
        best = value if wanted else best
    if evaluations:
        assert len(kept(model, exporter)) == 1


@pytest.mark.parametrize(
    ("metric", "mode"),
    [
        *[(name, "min") for name in ("loss", "average_loss", "rmse", "mean_absolute_error")],
        *[(name, "max") for name in ("accuracy", "auc_precision_recall", "recall", "f1_score")],
        *[("false_negatives", "min"), ("true_positives", "max"), ("log_loss", "min")],
    ],
)
def test_metric_names_imply_direction(metric: str, mode: str) -> None:
    assert MetricMonitor(metric).mode == mode
    assert str(MetricMonitor(metric)) == f"{metric} ({mode})"


# -- with a real estimator


def test_exports_real_models(tmp_path: Path) -> None:
    """The best model is that of step 20; what is served computes with its variables."""
    estimator = scripted.estimator(tmp_path, [9, 5, 3, 4, 6, 7], keep_checkpoint_max=1)

    def serving_input() -> Any:
        features = tf.placeholder(tf.float32, [None], "features")
        return tf.estimator.export.TensorServingInputReceiver(features, {"features": features})

    exporters = [BestExporter("best", serving_input), FinalExporter("final", serving_input)]
    spec = EvalSpec(lambda: scripted.batches(2), exporters=exporters, throttle_secs=0, name="test")
    _, exports = tf.train_and_evaluate(estimator, TrainSpec(scripted.batches, 50), spec)
    assert exports[0] is None
    assert os.fsdecode(exports[1]).startswith(str(tmp_path / "export" / "final" / "1"))
    best = json.loads((tmp_path / "export/best/best.json").read_text())
    assert (best["step"], best["metrics"]["loss"]) == (20, 3.0)
    assert [len(list((tmp_path / "export" / name).glob("1*"))) for name in ("best", "final")] == [
        2,
        1,
    ]
    for name, expected in (("best", 20), ("final", 50)):
        newest = max((tmp_path / "export" / name).glob("1*"), key=lambda each: int(each.name))
        assert tf.train.load_variable(str(newest / "variables" / "variables"), "global_step") == (
            expected
        )


def test_best_is_known_if_exports_are_written_elsewhere(tmp_path: Path) -> None:
    exporter = tf.estimator.BestExporter("best", lambda: None, event_file_pattern=None)
    estimator = mock.Mock(spec=tf.estimator.Estimator)
    estimator.export_saved_model.return_value = str(tmp_path / "elsewhere")
    found = [
        exporter.export(estimator, str(tmp_path / "best"), "checkpoint", {"loss": loss}, False)
        for loss in (0.5, 0.6, 0.4)
    ]
    assert [each is not None for each in found] == [True, False, True]
