"""Hooks that stop by evaluation results: cadence, what they read, warnings.

At which step they stop is compared with TensorFlow in test_golden_train_and_evaluate.py.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import estimatorkit as tf
import estimatorkit.estimator as ek
from estimatorkit.compat.v1.python.estimator import early_stopping, estimator as private_estimator
from estimatorkit.estimator import experimental
from estimatorkit.estimator.evaluation.evaluation_records import (
    EvaluationRecords,
    read_eval_metrics,
)
from estimatorkit.estimator.evaluation.stopping_hooks import StopAtCheckpointStepHook
from estimatorkit.interop.events import MetricsWriter
from estimatorkit.train.hooks.hooks import FinishedSteps, SessionRunHook, StopAtStepHook
from tests.estimator import scripted
from tests.train import counting

SCORES = [9.0, 5.0, 3.0, 4.0, 6.0, 7.0, 8.0]


def write(folder: Path, *evaluations: tuple[int, dict[str, Any]]) -> None:
    """Writes evaluations as `Estimator.evaluate` does."""
    writer = MetricsWriter(folder)
    for step, metrics in evaluations:
        writer.write(step, metrics)
    writer.close()


# -- what was evaluated


def test_reads_json_lines_and_event_files(tmp_path: Path) -> None:
    write(tmp_path, (20, {"loss": 0.1, "auc": 0.7}), (10, {"loss": 0.2, "matrix": np.eye(2)}))
    whole = {10: {"loss": 0.2}, 20: {"loss": 0.1, "auc": 0.7}}
    assert read_eval_metrics(tmp_path) == whole
    assert list(read_eval_metrics(tmp_path)) == [10, 20]
    (tmp_path / "metrics.jsonl").unlink()  # as TensorFlow has left it: float32
    found = read_eval_metrics(tmp_path)
    assert list(found) == [10, 20]
    assert found[20] == {"loss": np.float32(0.1), "auc": np.float32(0.7)}
    assert read_eval_metrics(tmp_path / "nowhere") == {}


@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty"])
def test_damaged_files_do_not_stop_readers(
    damage: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The rest of a file is lost, the other files are read."""
    write(tmp_path, *((step, {"loss": float(step)}) for step in (1, 2, 3)))
    (first,) = tmp_path.glob("*.tfevents.*")
    write(tmp_path, (4, {"loss": 4.0}))
    lines = tmp_path / "metrics.jsonl"
    text = lines.read_bytes()
    content = first.read_bytes()
    if damage == "truncated":
        first.write_bytes(content[:-5])
        lines.write_bytes(text[:-4])
    elif damage == "flipped":
        first.write_bytes(content[:-5] + bytes([content[-5] ^ 1]) + content[-4:])
        lines.write_bytes(text.replace(b'{"step": 3', b'{"st\xffp": 3'))
    else:
        first.write_bytes(b"")
        lines.write_bytes(b"")
    with caplog.at_level(logging.WARNING, "estimatorkit"):
        found = read_eval_metrics(tmp_path)
    expected = {"truncated": {1, 2, 3, 4}, "flipped": {1, 2, 4}, "empty": {4}}[damage]
    assert set(found) == expected
    if damage != "empty":
        assert str(first) in caplog.text
        assert "metrics.jsonl:" in caplog.text


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=200))
def test_lines_of_arbitrary_bytes(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    folder = tmp_path_factory.mktemp("eval")
    (folder / "metrics.jsonl").write_bytes(content + b'\n{"step": 7, "loss": 1.5}\n')
    assert read_eval_metrics(folder)[7]["loss"] == 1.5


def test_files_are_read_again_only_if_grown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[Path] = []

    def counted(folder: Path) -> Any:
        reads.append(folder)
        return read_eval_metrics(folder)

    module = "estimatorkit.estimator.evaluation.evaluation_records.read_eval_metrics"
    monkeypatch.setattr(module, counted)
    records = EvaluationRecords(tmp_path)
    assert records.read() == {}
    for step in (1, 2):
        write(tmp_path, (step, {"loss": 1.0}))
        assert list(records.read()) == list(range(1, step + 1))
        assert records.read() is records.read()
    assert len(reads) == 3


# -- how often they look


class Calls(SessionRunHook):
    """Notes the calls of the loop."""

    def __init__(self) -> None:
        self.spans: list[tuple[int, int]] = []

    def after_steps(self, steps: FinishedSteps) -> None:
        self.spans.append((steps.first, steps.last))


def test_steps_between_checks_are_one_call(tmp_path: Path) -> None:
    """After the first step, and each 100 later, as TensorFlow; the loop stops nowhere else."""
    looks: list[int] = []
    calls = Calls()

    def should_stop() -> bool:
        looks.append(calls.spans[-1][1] if calls.spans else 0)
        return len(looks) == 4

    estimator = counting.estimator(tmp_path)
    hook = experimental.make_early_stopping_hook(
        estimator, should_stop, run_every_secs=None, run_every_steps=100
    )
    estimator.train(counting.no_input, [calls, hook], max_steps=10_000)
    assert looks == [1, 101, 201, 301]
    assert calls.spans[-1][1] == 301
    assert len(calls.spans) < 4 + 3 * 8  # the calls grow: 1, 16, ...


def test_seconds_between_checks_cost_no_calls(tmp_path: Path) -> None:
    """A hook that looks every minute leaves the loop its calls."""

    def spans(folder: str, hooks: Callable[[Any], list[SessionRunHook]]) -> int:
        calls = Calls()
        estimator = counting.estimator(tmp_path / folder)
        estimator.train(counting.no_input, [calls, *hooks(estimator)], max_steps=3000)
        return len(calls.spans)

    asked: list[int] = []

    def should_stop() -> bool:
        asked.append(1)
        return False

    def hooks(estimator: Any) -> list[SessionRunHook]:
        looks = experimental.make_early_stopping_hook(estimator, should_stop)
        return [looks, experimental.stop_if_lower_hook(estimator, "loss", 0.1)]

    assert spans("with", hooks) <= spans("without", lambda _: []) + 3
    assert len(asked) == 1  # after the first call, and not again within the minute
    hook = experimental.stop_if_lower_hook(counting.estimator(tmp_path), "loss", 0.1)
    assert hook.next_control_step(5) is None
    assert not hook.takes_part_in_runs


def test_checks_after_evaluation_in_train_and_evaluate(tmp_path: Path) -> None:
    """TensorFlow looks at the clock, and trains on for a minute."""
    estimator = scripted.estimator(tmp_path, SCORES)
    hook = experimental.stop_if_no_decrease_hook(estimator, "loss", 20)
    metrics, _ = ek.train_and_evaluate(
        estimator,
        ek.TrainSpec(scripted.batches, 200, [hook]),
        ek.EvalSpec(lambda: scripted.batches(1), throttle_secs=0),
    )
    assert metrics["global_step"] == 40


# -- warnings and errors


def test_pain_point_09_ineffective_hook_warns(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    estimator = scripted.estimator(tmp_path, SCORES)
    hooks = [
        experimental.stop_if_no_increase_hook(estimator, "score", 3),
        experimental.stop_if_no_increase_hook(estimator, "score", 30),
        experimental.stop_if_higher_hook(estimator, "score", 30, estimator.eval_dir("a")),
    ]
    with caplog.at_level(logging.WARNING, "estimatorkit"):
        ek.train_and_evaluate(
            estimator,
            ek.TrainSpec(scripted.batches, 5, hooks),
            ek.EvalSpec(lambda: scripted.batches(1), name="a", throttle_secs=0),
        )
    assert "waits for 3 steps without improvement of 'score', but evaluations are 10 steps" in (
        caplog.text
    )
    assert caplog.text.count("without improvement of") == 1
    assert caplog.text.count("but the evaluations write into") == 2
    assert f"in {estimator.eval_dir()}, but the evaluations write into {tmp_path}/eval_a" in (
        caplog.text
    )


def test_missing_metric_is_named(tmp_path: Path) -> None:
    estimator = counting.estimator(tmp_path)
    write(Path(estimator.eval_dir()), (5, {"loss": 1.0, "auc": 0.5}))
    hook = experimental.stop_if_lower_hook(estimator, "los", 0.1)
    with pytest.raises(ValueError, match=r"no metric 'los'(.|\n)*did you mean 'loss'"):
        estimator.train(counting.no_input, [hook], max_steps=10)


def test_evaluations_before_min_steps_do_not_count(tmp_path: Path) -> None:
    for min_steps, expected in ((0, 1), (6, 10)):
        estimator = counting.estimator(
            tmp_path / str(min_steps), config={"save_checkpoints_steps": 100}
        )
        write(Path(estimator.eval_dir()), (5, {"loss": 0.01}), (6, {"auc": 0.3, "loss": 0.2}))
        hook = experimental.stop_if_lower_hook(
            estimator, "loss", 0.1, min_steps=min_steps, run_every_secs=None, run_every_steps=1
        )
        estimator.train(counting.no_input, [hook], max_steps=10)
        assert estimator.get_variable_value("global_step") == expected


def test_any_number_beats_initial_nan(tmp_path: Path) -> None:
    estimator = counting.estimator(tmp_path, config={"save_checkpoints_steps": 100})
    values = [(1, float("nan")), (4, 3.0), (6, 2.0), (8, 1.0)]
    write(Path(estimator.eval_dir()), *((step, {"loss": value}) for step, value in values))
    cadence = {"run_every_secs": None, "run_every_steps": 1}
    waits = experimental.stop_if_no_decrease_hook(estimator, "loss", 5, **cadence)
    below = experimental.stop_if_lower_hook(estimator, "loss", 0.5, **cadence)
    estimator.train(counting.no_input, [waits, below], max_steps=12)
    assert estimator.get_variable_value("global_step") == 12


# -- the step of a checkpoint


class Worker:
    """Stands for the estimator of a worker that saves no checkpoints."""

    class config:
        is_chief = False

    def __init__(self, model_dir: Path) -> None:
        self.model_dir = str(model_dir)


def test_chief_stops_by_counting(tmp_path: Path) -> None:
    hook = experimental.make_stop_at_checkpoint_step_hook(counting.estimator(tmp_path), 7)
    assert isinstance(hook, StopAtStepHook)


def test_workers_stop_after_checkpoint(tmp_path: Path) -> None:
    assert isinstance(
        experimental.make_stop_at_checkpoint_step_hook(Worker(tmp_path), 20),
        StopAtCheckpointStepHook,
    )
    chief = counting.estimator(tmp_path, config={"save_checkpoints_steps": 10})
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            chief.train(counting.no_input, max_steps=20)

    hook = StopAtCheckpointStepHook(str(tmp_path), 20, 12, sleep=sleep)
    assert hook.next_control_step(3) == 20
    assert hook.next_control_step(20) == 21
    stops: list[list[str]] = []
    for first, count in ((0, 10), (10, 10), (20, 1), (21, 1)):
        steps = FinishedSteps(first, np.zeros(count, np.float32), None, [])
        hook.after_steps(steps)
        stops.append(steps.stop)
    assert stops == [[], [], [], ["the checkpoint of step 20 is there"]]
    assert waits == [12, 12]


@pytest.mark.parametrize(("threshold", "stops"), [(0.6, True), (0.8, False)])
def test_hook_checks_after_runs_without_a_step(
    tmp_path: Path, threshold: float, stops: bool
) -> None:
    eval_dir = str(tmp_path / "eval")
    metrics = {"accuracy": np.float32(0.7), "global_step": 5}
    private_estimator._write_dict_to_summary(eval_dir, metrics, 5)
    assert early_stopping.read_eval_metrics(eval_dir) == {5: {"accuracy": pytest.approx(0.7)}}
    estimator = tf.estimator.Estimator(lambda features, labels: None, str(tmp_path))
    hook = tf.estimator.experimental.stop_if_higher_hook(estimator, "accuracy", threshold)
    with tf.Graph().as_default():
        tf.train.create_global_step()
        nothing = tf.no_op()
        with tf.train.SingularMonitoredSession(hooks=[hook]) as session:
            session.run(nothing)
            assert session.should_stop() is stops
