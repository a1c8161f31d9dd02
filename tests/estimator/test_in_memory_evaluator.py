"""`InMemoryEvaluatorHook`: when it evaluates, and that training is unaffected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from estimatorkit.data.dataset import Dataset
from estimatorkit.estimator.experimental import InMemoryEvaluatorHook
from estimatorkit.train.hooks.hooks import FinishedSteps, SessionRunHook
from tests.estimator import models, scripted

SCORES = [float(number) for number in range(100)]


def lines(folder: Path) -> list[tuple[int, float]]:
    """The steps and losses of the evaluations."""
    records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [(record["step"], record["loss"]) for record in records]


class Losses(SessionRunHook):
    """Notes the loss of every step."""

    def __init__(self) -> None:
        self.values: list[float] = []

    def after_steps(self, steps: FinishedSteps) -> None:
        self.values += steps.losses.tolist()


@pytest.mark.parametrize(("every", "steps"), [(100, [0, 100, 200, 250]), (125, [0, 125, 250])])
def test_pain_point_38_evaluates_every_n_steps(
    every: int, steps: list[int], tmp_path: Path
) -> None:
    """Each evaluation is of the weights of its step; the loop stops for no other step."""
    spans: list[int] = []

    class Calls(SessionRunHook):
        def after_steps(self, steps: FinishedSteps) -> None:
            spans.append(len(steps.losses))

    estimator = scripted.estimator(tmp_path, SCORES, every=10, save_checkpoints_steps=10_000)
    hook = InMemoryEvaluatorHook(
        estimator, lambda: scripted.batches(2), name="live", every_n_iter=every
    )
    estimator.train(scripted.batches, [Calls(), hook], max_steps=250)
    assert lines(tmp_path / "eval_live") == [(step, float(step // 10)) for step in steps]
    assert len(list((tmp_path / "eval_live").glob("events*"))) == 1
    assert sum(spans) == 250
    assert len(spans) <= 8 * len(steps)
    assert hook.next_control_step(0) == 250 + every
    assert not hook.takes_part_in_runs


@pytest.mark.slow
def test_continues_counting_after_resume(tmp_path: Path) -> None:
    estimator = scripted.estimator(tmp_path, SCORES)
    estimator.train(scripted.batches, max_steps=30)
    hook = InMemoryEvaluatorHook(estimator, lambda: scripted.batches(2), every_n_iter=20)
    estimator.train(scripted.batches, [hook], max_steps=60)
    assert [step for step, _ in lines(tmp_path / "eval")] == [30, 50, 60]


@pytest.mark.slow
def test_training_is_unaffected(tmp_path: Path) -> None:
    """Same elements and random numbers to the bit; no checkpoint more. And the hook's last numbers
    are those of `evaluate`.
    """

    def numbers(count: int | None = None) -> Dataset:
        return Dataset.range(50).shuffle(50).repeat(count)

    def trained(name: str, evaluates: bool) -> tuple[Any, list[float], list[str]]:
        losses = Losses()
        estimator = models.noisy(tmp_path / name, 3)
        hook = InMemoryEvaluatorHook(estimator, lambda: numbers(1), every_n_iter=7)
        estimator.train(numbers, [losses, *([hook] if evaluates else [])], max_steps=20)
        found = sorted(each.name for each in (tmp_path / name).glob("model.ckpt-*"))
        return estimator, losses.values, found

    estimator, losses, checkpoints = trained("with", True)
    assert trained("without", False)[1:] == (losses, checkpoints)
    assert len(losses) == 20
    evaluations = lines(tmp_path / "with" / "eval")
    assert [step for step, _ in evaluations] == [0, 7, 14, 20]
    assert evaluations[-1][1] == estimator.evaluate(lambda: numbers(1))["loss"]


def test_several_machines_are_refused(tmp_path: Path) -> None:
    class Cluster:
        class config:
            num_ps_replicas = 2
            num_worker_replicas = 3

    with pytest.raises(ValueError, match="supports only single machine"):
        InMemoryEvaluatorHook(Cluster(), scripted.batches)


def test_steps_must_be_positive(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Must specify steps > 0, given: 0"):
        InMemoryEvaluatorHook(scripted.estimator(tmp_path, SCORES), scripted.batches, steps=0)
