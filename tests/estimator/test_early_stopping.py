"""`EarlyStopping`: patience counted in evaluations, and restoring the best checkpoint."""

from __future__ import annotations

import json
import logging
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from estimatorkit.estimator.evaluation.continuous_evaluation import (
    EvaluatedTraining,
    FinishedEvaluation,
)
from estimatorkit.estimator.evaluation.early_stopping import EarlyStopping, Patience
from estimatorkit.estimator.evaluation.metric_monitor import MetricMonitor
from estimatorkit.estimator.run_config import RunConfig
from estimatorkit.estimator.train_spec import EvalSpec, TrainSpec
from estimatorkit.estimator.training_and_evaluation import train_and_evaluate
from estimatorkit.storage.checkpoint import load_variable, remove_checkpoint, write_checkpoint
from tests.estimator import scripted

SCORES = [9.0, 5.0, 3.0, 4.0, 6.0, 7.0, 8.0]


def run(
    model_dir: Path,
    stopping: EarlyStopping,
    scores: list[float] = SCORES,
    max_steps: int | None = 200,
    batches: int | None = None,
    **config: Any,
) -> tuple[Any, Any]:
    """Trains; the estimator and the metrics."""
    estimator = scripted.estimator(model_dir, scores, **config)
    train = TrainSpec(lambda: scripted.batches(batches), max_steps, [stopping])
    spec = EvalSpec(lambda: scripted.batches(2), throttle_secs=0)
    return estimator, train_and_evaluate(estimator, train, spec)[0]


def last_step(model_dir: Path) -> int:
    """The step at which the training ended."""
    step: int = json.loads((model_dir / "train_and_evaluate.json").read_text())["step"]
    return step


# -- the count


def _by_hand(values: list[float], patience: int, min_delta: float) -> int | None:
    """Keras' loop for mode 'min': the index at which it stops."""
    best, waited = float("inf"), 0
    for index, value in enumerate(values):
        waited += 1
        if value < best - min_delta or index == 0:
            best, waited = value, 0
        if waited >= patience:
            return index
    return None


@given(st.lists(st.integers(0, 20)), st.integers(1, 5), st.sampled_from([0, 1, 3]))
def test_patience_matches_reference(numbers: list[int], patience: int, min_delta: float) -> None:
    values = [float(number) for number in numbers]
    counted = Patience(MetricMonitor("loss"), patience, min_delta)
    stops = [index for index in range(len(values)) if counted.is_over(values[: index + 1])]
    assert (stops[0] if stops else None) == _by_hand(values, patience, min_delta)
    mirrored = Patience(MetricMonitor("accuracy"), patience, min_delta)
    assert mirrored.waited([-value for value in values]) == counted.waited(values)


def _simulated(folder: Path, scores: list[int], kills: set[int], patience: int) -> Any:
    """The step at which a training stops and its best checkpoint; killed at some evaluations, and
    then taken up at the last checkpoint, which is evaluated once more.
    """
    training = EvaluatedTraining(
        SimpleNamespace(model_dir=str(folder), config=RunConfig()),
        TrainSpec(scripted.batches),
        {"eval": EvalSpec(scripted.batches)},
        start_step=0,
    )
    stopping = EarlyStopping(patience=patience)
    stopping.before_training(training)
    for step, score in enumerate(scores, start=1):
        path = write_checkpoint(folder, f"model.ckpt-{step}", {"score": np.float32(score)})
        metrics = {"loss": np.float32(score), "global_step": np.int64(step)}
        finished = FinishedEvaluation("eval", metrics, str(path))
        if step in kills:
            if score % 2:  # before or after the evaluation is known
                stopping.after_evaluation(finished)
            stopping = EarlyStopping(patience=patience)
            if stopping.before_training(replace(training, start_step=step)) is not None:
                break
        if stopping.after_evaluation(finished) is not None:
            break
        remove_checkpoint(path)  # as keep_checkpoint_max would
    best = stopping.best_checkpoint()
    return step, None if best is None else load_variable(best, "score")


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=8),
    st.sets(st.integers(1, 8)),
    st.integers(1, 3),
)
def test_killed_training_stops_at_same_step(
    tmp_path_factory: pytest.TempPathFactory, scores: list[int], kills: set[int], patience: int
) -> None:
    whole = _simulated(tmp_path_factory.mktemp("whole"), scores, set(), patience)
    killed = _simulated(tmp_path_factory.mktemp("killed"), scores, kills, patience)
    assert killed == whole
    by_hand = _by_hand([float(score) for score in scores], patience, 0.0)
    assert whole[0] == (len(scores) if by_hand is None else by_hand + 1)
    assert whole[1] == min(scores[: whole[0]])


@pytest.mark.parametrize(("patience", "step"), [(1, 30), (3, 50)])
def test_pain_point_10_stops_at_exact_evaluation(patience: int, step: int, tmp_path: Path) -> None:
    """The best is at 20; so many evaluations later the training ends, no sooner and no later."""
    _, metrics = run(tmp_path, EarlyStopping(patience=patience))
    assert last_step(tmp_path) == step
    assert metrics == {"global_step": 20, "loss": 3.0, "score": 3.0}


@pytest.mark.parametrize(
    ("ended_by", "arguments"),
    [
        ("patience", {}),
        ("max_steps", {"max_steps": 45}),
        ("the end of the input", {"batches": 45, "max_steps": None}),
    ],
)
def test_pain_point_10_best_is_restored_however_training_ends(
    ended_by: str, arguments: Any, tmp_path: Path
) -> None:
    """Also where `keep_checkpoint_max` has removed it from the model's folder long ago."""
    stopping = EarlyStopping(patience=3)
    estimator, metrics = run(tmp_path, stopping, keep_checkpoint_max=1, **arguments)
    assert last_step(tmp_path) == (50 if ended_by == "patience" else 45)
    assert metrics == {"global_step": 20, "loss": 3.0, "score": 3.0}
    assert os.path.basename(estimator.latest_checkpoint()) == "model.ckpt-20"
    assert estimator.get_variable_value("global_step") == 20
    again = estimator.evaluate(lambda: scripted.batches(2))
    assert again == metrics
    assert estimator.train(scripted.batches, steps=5).get_variable_value("global_step") == 25
    assert sorted(os.listdir(tmp_path / "best")) == ["best.json", "model.ckpt-20"]


@pytest.mark.slow
def test_restore_best_is_optional(tmp_path: Path) -> None:
    estimator, metrics = run(tmp_path, EarlyStopping(patience=2, restore_best=False))
    assert (metrics["global_step"], metrics["loss"]) == (40, 6.0)
    assert os.path.basename(estimator.latest_checkpoint()) == "model.ckpt-40"
    assert os.listdir(tmp_path / "best") == ["best.json"]


@pytest.mark.slow
def test_small_improvements_do_not_reset_patience_but_are_kept(tmp_path: Path) -> None:
    scores = [9.0, 5.0, 4.9, 4.8, 4.7]
    _, metrics = run(tmp_path, EarlyStopping(patience=3, min_delta=0.5), scores)
    assert last_step(tmp_path) == 40
    assert metrics["loss"] == pytest.approx(4.7)


def test_nan_is_no_improvement() -> None:
    monitor = MetricMonitor("loss")
    assert Patience(monitor, 2).waited([1.0, float("nan"), float("nan")]) == 2
    assert Patience(monitor, 2).waited([float("nan"), 1.0]) == 0


@pytest.mark.slow
def test_resumed_training_remembers(tmp_path: Path) -> None:
    """Two evaluations without improvement before, one after: that is three."""
    run(tmp_path, EarlyStopping(patience=3), max_steps=40)
    (tmp_path / "train_and_evaluate.json").unlink()
    # Going on from the best takes the evaluations after it back ...
    _, metrics = run(tmp_path, EarlyStopping(patience=3))
    assert last_step(tmp_path) == 50
    assert metrics["loss"] == 3.0
    # ... and where the best is not gone back to, they count.
    other = tmp_path / "other"
    run(other, EarlyStopping(patience=3, restore_best=False), max_steps=40)
    run(other, EarlyStopping(patience=3, restore_best=False))
    assert last_step(other) == 50
    # More patience goes on.
    _, metrics = run(other, EarlyStopping(patience=4, restore_best=False), max_steps=201)
    assert last_step(other) == 60


@pytest.mark.slow
def test_exhausted_training_is_not_resumed(tmp_path: Path) -> None:
    run(tmp_path, EarlyStopping(patience=2, restore_best=False))
    _, metrics = run(tmp_path, EarlyStopping(patience=2, restore_best=False), max_steps=300)
    assert (last_step(tmp_path), metrics["global_step"]) == (40, 40)


@pytest.mark.parametrize("content", [b"", b"[]", b'{"metric": "loss"}', b"\xff{", b"[" * 99999])
def test_damaged_state_is_ignored(
    content: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "best").mkdir()
    (tmp_path / "best" / "best.json").write_bytes(content)
    estimator = scripted.estimator(tmp_path, SCORES)
    specs = {"eval": EvalSpec(scripted.batches)}
    stopping = EarlyStopping()
    with caplog.at_level(logging.WARNING, "estimatorkit"):
        training = EvaluatedTraining(estimator, TrainSpec(scripted.batches), specs, start_step=5)
        assert stopping.before_training(training) is None
    assert "is damaged and ignored" in caplog.text
    assert stopping.best_checkpoint() is None


@pytest.mark.slow
def test_state_never_leaves_folder(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run(tmp_path, EarlyStopping(patience=2), max_steps=20)
    path = tmp_path / "best" / "best.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "checkpoint": "../../model.ckpt-20"}))
    with caplog.at_level(logging.WARNING, "estimatorkit"):
        run(tmp_path, EarlyStopping(patience=2), max_steps=30)
    assert "is damaged and ignored" in caplog.text


@pytest.mark.slow
def test_other_metric_starts_afresh(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run(tmp_path, EarlyStopping(patience=2, restore_best=False), max_steps=30)
    with caplog.at_level(logging.WARNING, "estimatorkit"):
        run(tmp_path, EarlyStopping("score", "max", patience=2, restore_best=False), max_steps=40)
    assert "is about loss (min) of the evaluation 'eval', not about score (max)" in caplog.text


# -- warnings and errors


@pytest.mark.slow
def test_pain_point_09_unreachable_patience_warns(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "estimatorkit"):
        run(tmp_path / "a", EarlyStopping(patience=3), max_steps=30)
    assert "waits for 3 evaluations without improvement, but there are at most 3" in caplog.text
    caplog.clear()
    with caplog.at_level(logging.WARNING, "estimatorkit"):
        run(tmp_path / "b", EarlyStopping(patience=3), max_steps=40)
    assert "evaluations without improvement" not in caplog.text


def test_pain_point_09_missing_evaluations_warn(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    estimator = scripted.estimator(tmp_path, SCORES)
    with caplog.at_level(logging.WARNING, "estimatorkit"):
        estimator.train(scripted.batches, [EarlyStopping()], max_steps=5)
    assert "EarlyStopping saw no evaluations" in caplog.text
    caplog.clear()
    with caplog.at_level(logging.WARNING, "estimatorkit"):
        run(tmp_path / "b", EarlyStopping(patience=3), max_steps=None, batches=25)
    assert "evaluations without improvement, but saw 2" in caplog.text


def test_invalid_arguments_raise(tmp_path: Path) -> None:
    for arguments in ({"patience": 0}, {"min_delta": -1.0}):
        with pytest.raises(ValueError, match="EarlyStopping: invalid patience or min_delta"):
            EarlyStopping(**arguments)
    with pytest.raises(ValueError, match=r"unknown evaluation\.(.|\n)*one of eval"):
        run(tmp_path / "a", EarlyStopping(evaluation="test"))
    with pytest.raises(ValueError, match=r"no metric 'scores'(.|\n)*did you mean 'score'"):
        run(tmp_path / "b", EarlyStopping("scores", "max"))


def test_one_of_several_evaluations_is_watched(tmp_path: Path) -> None:
    estimator = scripted.estimator(tmp_path, SCORES)
    train = TrainSpec(scripted.batches, 200, [EarlyStopping(patience=2, evaluation="b")])
    specs = [
        EvalSpec(lambda: scripted.batches(1), name=name, throttle_secs=throttle)
        for name, throttle in (("a", 600), ("b", 0))
    ]
    metrics, _ = train_and_evaluate(estimator, train, specs)
    assert {name: each["global_step"] for name, each in metrics.items()} == {"a": 20, "b": 20}
    assert last_step(tmp_path) == 40
