"""`train_and_evaluate`: stages, crash safety, several evaluations, errors.

What is trained, evaluated and exported when is compared with TensorFlow in
test_golden_train_and_evaluate.py.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from estimatorkit.data.dataset import Dataset
from estimatorkit.estimator import train_and_evaluate
from estimatorkit.estimator.estimator import Estimator
from estimatorkit.estimator.evaluation import early_stopping
from estimatorkit.estimator.evaluation.completion import (
    FILE,
    Completion,
    read_completion,
    recorded_result,
    result_record,
)
from estimatorkit.estimator.evaluation.continuous_evaluation import (
    EvaluationSchedule,
    SpecEvaluator,
)
from estimatorkit.estimator.evaluation.early_stopping import EarlyStopping
from estimatorkit.estimator.train_spec import EvalSpec, TrainSpec
from estimatorkit.train.hooks.checkpoint_hooks import CheckpointSaverListener
from estimatorkit.train.hooks.hooks import SessionRunHook
from estimatorkit.train.hooks.summary_hooks import SecondOrStepTimer
from tests.estimator import models, scripted
from tests.sweep import sweep
from tests.train import toy

SCORES = [9.0, 5.0, 3.0, 4.0, 6.0, 7.0]


def three_batches() -> Dataset:
    return scripted.batches(3)


def never() -> Any:
    raise AssertionError("there was to be no training and no evaluation")


def evaluated(**changes: Any) -> EvalSpec:
    return EvalSpec(**{"input_fn": three_batches, "throttle_secs": 0, **changes})


# -- the schedule


class Clock:
    """Seconds as the test wants them."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.floats(0, 900)), max_size=30),
    st.sampled_from([0.0, 60.0, 600.0]),
    st.integers(0, 3),
)
def test_schedule_keeps_minimum_distance(
    saves: list[tuple[int, float]], throttle: float, start: int
) -> None:
    """Saves come some steps and seconds apart; what is evaluated follows these laws."""
    clock = Clock()
    last = start + sum(steps for steps, _ in saves) + 1
    schedule = EvaluationSchedule(throttle, start, last, clock)
    step, evaluations, offered = start, [], []
    for steps, seconds in saves:
        step += steps
        clock.now += seconds
        if schedule.is_due(step):
            assert schedule.seconds_to_wait() == 0
            schedule.started(step)
            evaluations.append((step, clock.now))
            assert not schedule.is_due(step)
        elif step > start and step not in [each for each, _ in evaluations]:
            assert schedule.seconds_to_wait() > 0  # nothing but the throttle keeps a new one back
        offered.append(step)
    assert not schedule.is_due(last)
    steps_evaluated = [each for each, _ in evaluations]
    assert steps_evaluated == sorted(set(steps_evaluated))
    assert all(start < each < last for each in steps_evaluated)
    times = [at for _, at in evaluations]
    assert all(after - before >= throttle for before, after in pairwise(times))
    trained = [each for each in offered if each > start]
    if trained:
        assert steps_evaluated[0] == trained[0]
    if throttle == 0:
        assert steps_evaluated == sorted(set(trained))


def test_schedule_matches_tensorflow_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr("time.time", clock)
    timer, schedule = SecondOrStepTimer(every_secs=10), EvaluationSchedule(10, 0, None, clock)
    for step, seconds in enumerate([0, 3, 6.9, 0.1, 9.9, 10, 25, 1, 9], start=1):
        clock.now += seconds
        assert schedule.is_due(step) == timer.should_trigger_for_step(step)
        if schedule.is_due(step):
            schedule.started(step)
            timer.update_last_triggered_step(step)


def test_timer_triggers_after_a_clock_that_went_back(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr("time.time", clock)
    timer = SecondOrStepTimer(every_secs=10)
    timer.update_last_triggered_step(1)
    clock.now -= 3600
    assert timer.should_trigger_for_step(2)
    assert timer.update_last_triggered_step(2) == (0.0, 1)
    assert not timer.should_trigger_for_step(3)


# -- one training


@pytest.mark.slow
def test_results_match_evaluate(tmp_path: Path) -> None:
    """Weights that learn, not scripted ones: dropout, momentum, shuffled input."""
    estimator = models.network(tmp_path, save_steps=20)
    test = toy.dataset(32, 8, epochs=1, shuffle=False, seed=1)
    metrics, exports = train_and_evaluate(
        estimator, TrainSpec(models.batches, 50), evaluated(input_fn=lambda: test)
    )
    assert exports == []
    assert metrics == estimator.evaluate(lambda: test)
    assert metrics["global_step"] == 50
    alone = models.network(tmp_path / "alone", save_steps=20).train(models.batches, max_steps=50)
    theirs = models.variables(str(estimator.latest_checkpoint()))
    ours = models.variables(str(alone.latest_checkpoint()))
    toy.assert_same_bits(theirs, ours)  # evaluations leave the training as it is


@pytest.mark.slow
def test_second_call_returns_stored_results(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def call(train_input: Callable[[], Any], max_steps: int, evaluate: Callable[[], Any]) -> Any:
        estimator = scripted.estimator(tmp_path, SCORES)
        spec = evaluated(input_fn=evaluate, exporters=scripted.Recorder())
        return train_and_evaluate(estimator, TrainSpec(train_input, max_steps), spec)

    first = call(scripted.batches, 20, three_batches)
    with caplog.at_level(logging.INFO, "estimatorkit"):
        metrics, exports = call(never, 20, never)
    assert "Training is already complete (step 20 is reached)" in caplog.text
    assert (metrics, [os.fsdecode(each) for each in exports]) == first
    assert {name: value.dtype for name, value in metrics.items()} == {
        name: value.dtype for name, value in first[0].items()
    }
    more, _ = call(scripted.batches, 30, three_batches)
    assert more["global_step"] == 30
    scripted.estimator(tmp_path, SCORES).train(scripted.batches, steps=10)
    again, _ = call(never, 30, three_batches)  # trained since: nothing to train, but to evaluate
    assert again["global_step"] == 40


def test_evaluates_after_plain_train(tmp_path: Path) -> None:
    """TensorFlow returns None where max_steps are reached already."""
    scripted.estimator(tmp_path, SCORES).train(scripted.batches, max_steps=20)
    recorder = scripted.Recorder()
    metrics, _ = train_and_evaluate(
        scripted.estimator(tmp_path, SCORES), TrainSpec(never, 20), evaluated(exporters=recorder)
    )
    assert (metrics["loss"], recorder.asked) == (3.0, [(20, True)])


def test_final_export_however_training_ends(tmp_path: Path) -> None:
    """The input ends at a checkpoint, which is evaluated and exported in the course already."""
    recorder, idle = scripted.Recorder(), scripted.Recorder("idle", wanted=False)
    estimator = scripted.estimator(tmp_path, SCORES)
    spec = evaluated(exporters=[recorder, idle])
    metrics, exports = train_and_evaluate(estimator, TrainSpec(lambda: scripted.batches(20)), spec)
    assert recorder.asked == [(10, False), (20, False)]  # it has exported this one: not twice
    assert idle.asked == [(10, False), (20, False), (20, True)]
    assert exports == [str(tmp_path / "export/recorder/model.ckpt-20"), None]
    done = read_completion(str(tmp_path))
    assert done is not None
    assert (done.step, done.max_steps, done.reason) == (20, None, "the input has ended")
    # Until the input ends: that is asked for again.
    metrics, _ = train_and_evaluate(estimator, TrainSpec(lambda: scripted.batches(20)), spec)
    assert metrics["global_step"] == 40


def test_stop_reason_of_hook_is_kept(tmp_path: Path) -> None:
    class Stops(SessionRunHook):
        def after_steps(self, steps: Any) -> None:
            if steps.last >= 10:
                steps.request_stop("that is enough")

    estimator = scripted.estimator(tmp_path, SCORES, every=5)
    train_and_evaluate(estimator, TrainSpec(scripted.batches, 30, [Stops()]), evaluated())
    done = read_completion(str(tmp_path))
    assert done is not None
    assert (done.step, done.reason) == (10, "that is enough")


def test_pain_point_04_several_evaluations(tmp_path: Path) -> None:
    estimator = scripted.estimator(tmp_path, SCORES)
    recorders = scripted.Recorder("one"), scripted.Recorder("two")
    calls: list[tuple[str, int]] = []

    def counted(name: str, count: int) -> Callable[[], Dataset]:
        def input_fn() -> Dataset:
            calls.append((name, count))
            return scripted.batches(count)

        return input_fn

    specs = [
        evaluated(input_fn=counted("a", 2), name="a", exporters=recorders[0]),
        evaluated(input_fn=counted("b", 3), name="b", throttle_secs=600),
        evaluated(input_fn=counted("eval", 4), exporters=recorders[1]),
    ]
    metrics, exports = train_and_evaluate(estimator, TrainSpec(scripted.batches, 30), specs)
    assert list(metrics) == list(exports) == ["a", "b", "eval"]
    assert {float(each["loss"]) for each in metrics.values()} == {4.0}
    assert [name for name, _ in calls] == ["a", "b", "eval", "a", "eval", "a", "b", "eval"]
    for name, steps in (("eval_a", [10, 20, 30]), ("eval_b", [10, 30]), ("eval", [10, 20, 30])):
        lines = (tmp_path / name / "metrics.jsonl").read_text().splitlines()
        assert [json.loads(line)["step"] for line in lines] == steps
    assert recorders[0].asked == recorders[1].asked == [(10, False), (20, False), (30, True)]
    stored = train_and_evaluate(estimator, TrainSpec(never, 30), tuple(specs))
    assert stored[0] == metrics


def test_pain_point_03_evaluations_are_built_and_compiled_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And they cost the training nothing: no checkpoint more, and the loop's calls stay long."""
    monkeypatch.setenv("ESTIMATORKIT_EXECUTOR", "xla")
    spans: list[int] = []
    sessions: list[Any] = []

    class Calls(SessionRunHook):
        def after_steps(self, steps: Any) -> None:
            spans.append(len(steps.losses))

    class Evaluations(SessionRunHook):
        def end(self, session: Any) -> None:
            sessions.append(session)

    estimator = scripted.estimator(tmp_path, SCORES, every=1000, keep_checkpoint_max=None)
    train = TrainSpec(scripted.batches, 3000, [Calls()])
    train_and_evaluate(estimator, train, evaluated(hooks=[Evaluations()]))
    assert len(sessions) == 3
    assert len(set(map(id, sessions))) == 1
    assert sessions[0].state.compilations["evaluation_step"] == 1
    assert sorted(each.name for each in tmp_path.glob("model.ckpt-*") if each.is_dir()) == [
        f"model.ckpt-{step}" for step in (0, 1000, 2000, 3000)
    ]
    assert sum(spans) == 3000
    assert len(spans) < 60


# -- steps=100


def test_truncated_input_warns_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """An input without end is meant to be cut off."""
    estimator = scripted.estimator(tmp_path, SCORES).train(scripted.batches, max_steps=1)
    path = str(estimator.latest_checkpoint())
    for batches, steps, told in (
        *((101, 100, 1), (100, 100, 0), (3, 2, 1), (3, None, 0), (None, 3, 0)),
    ):
        caplog.clear()
        spec = evaluated(input_fn=partial(scripted.batches, batches), steps=steps)
        evaluator = SpecEvaluator(estimator, spec)
        with caplog.at_level(logging.WARNING, "estimatorkit"):
            assert evaluator.evaluate(path).metrics == evaluator.evaluate(path).metrics
        assert caplog.text.count("and its input has more") == told
        assert caplog.text.count("EvalSpec(steps=100 is the default)") == (batches == 101)


# -- crashes


class Killed(BaseException):
    """Stands for the end of the process."""


def _at_evaluation(number: int) -> Callable[[pytest.MonkeyPatch], None]:
    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        evaluate, calls = Estimator.evaluate, iter(range(1, 100))

        def killed(self: Any, *args: Any, **kwargs: Any) -> Any:
            if next(calls) == number:
                raise Killed
            return evaluate(self, *args, **kwargs)

        monkeypatch.setattr(Estimator, "evaluate", killed)

    return patch


def _at_record(number: int, after: bool) -> Callable[[pytest.MonkeyPatch], None]:
    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        write, calls = Completion.write, iter(range(1, 100))

        def killed(self: Completion, model_dir: str) -> None:
            last = next(calls) == number
            if last and not after:
                raise Killed
            write(self, model_dir)
            if last:
                raise Killed

        monkeypatch.setattr(Completion, "write", killed)

    return patch


def _while_going_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*args: Any) -> None:
        raise Killed

    monkeypatch.setattr(early_stopping, "update_checkpoint_state", killed)


def _while_keeping_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    write, calls = early_stopping.BestCheckpoint._write_state, iter(range(1, 100))

    def killed(self: Any, *args: Any) -> None:
        if next(calls) == 2:
            raise Killed
        write(self, *args)

    monkeypatch.setattr(early_stopping.BestCheckpoint, "_write_state", killed)


@sweep(
    "crash",
    [
        pytest.param(_at_evaluation(2), id="second evaluation"),
        pytest.param(_while_keeping_the_best, id="while the best is kept"),
        pytest.param(_at_record(2, after=False), id="before it is known that it ended"),
        pytest.param(_at_record(2, after=True), id="when the training has ended"),
        pytest.param(_at_record(3, after=True), id="before going back"),
        pytest.param(_while_going_back, id="while going back"),
        pytest.param(_at_record(4, after=False), id="before the last record"),
    ],
    quick=1,
)
def test_results_survive_crash(
    crash: Callable[[pytest.MonkeyPatch], None],
    tmp_path: Path,
) -> None:
    """Killed at any stage and called again, it comes to the same numbers and the same model."""

    def call() -> Any:
        estimator = scripted.estimator(tmp_path, SCORES, keep_checkpoint_max=2)
        train = TrainSpec(scripted.batches, 200, [EarlyStopping(patience=3)])
        recorder = scripted.Recorder()
        spec = evaluated(exporters=recorder)
        return estimator, recorder, train_and_evaluate(estimator, train, spec)

    with pytest.MonkeyPatch.context() as monkeypatch:
        crash(monkeypatch)
        with pytest.raises(Killed):
            call()
    estimator, recorder, (metrics, _) = call()
    assert metrics == {"global_step": 20, "loss": 3.0, "score": 3.0}
    assert os.path.basename(estimator.latest_checkpoint()) == "model.ckpt-20"
    assert recorder.asked[-1] == (20, True)
    done = read_completion(str(tmp_path))
    assert done is not None
    assert (done.step, done.restored) == (50, "model.ckpt-20")


RECORD = {
    "version": 1,
    "step": 20,
    "max_steps": 20,
    "reason": "",
    "checkpoint": "model.ckpt-20",
    "restored": None,
    "results": None,
}


def _record(**changes: Any) -> bytes:
    return json.dumps({**RECORD, **changes}).encode()


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{", b"[1]", b"\xff", b"[" * 99999, _record(version=2), _record(more=1)),
        *(_record(step="x"), _record(max_steps=2.5), _record(results=[])),
        *(_record(checkpoint="../model.ckpt-20"), _record(restored="/etc"), _record(restored="..")),
        *(_record(results={"eval": 3}), _record(results={"eval": {"metrics": {}}})),
        _record(results={"eval": {"metrics": {"loss": 3}, "exports": []}}),
    ],
)
def test_damaged_record_is_ignored(
    content: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / FILE).write_bytes(content)
    with caplog.at_level(logging.WARNING, "estimatorkit"):
        assert read_completion(str(tmp_path)) is None
    assert "is damaged or of another version; ignored" in caplog.text
    (tmp_path / FILE).write_bytes(_record())
    assert read_completion(str(tmp_path)) is not None


def test_record_holds_returned_values(tmp_path: Path) -> None:
    metrics = {
        "loss": np.float32(0.1),
        "matrix": np.array([[1, 2], [3, 4]], np.int64),
        "nan": np.float64("nan"),
        "flag": np.True_,
    }
    model_dir = str(tmp_path)
    exports = [os.fsencode(tmp_path / "export/latest/17"), None, 3, "/models/17"]
    record = json.loads(json.dumps(result_record(metrics, exports, model_dir)))
    moved = str(tmp_path / "elsewhere")
    stored, paths = recorded_result(record, moved)
    assert stored.keys() == metrics.keys()
    for name, value in metrics.items():
        np.testing.assert_array_equal(stored[name], value)
        assert stored[name].dtype == np.asarray(value).dtype
    assert paths == [os.fsencode(f"{moved}/export/latest/17"), None, None, b"/models/17"]


# -- what is refused


def test_throttled_checkpoint_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Of 10, 20, 30 and 40 the first is evaluated, and the last one when the training is over."""
    estimator = scripted.estimator(tmp_path, SCORES)
    with caplog.at_level(logging.INFO, "estimatorkit"):
        train_and_evaluate(estimator, TrainSpec(scripted.batches, 40), evaluated(throttle_secs=60))
    assert caplog.text.count("Skip the current checkpoint eval due to throttle secs (60 secs)") == 2
    assert caplog.text.count("Starting evaluation at") == 2


def test_names_must_differ(tmp_path: Path) -> None:
    estimator = scripted.estimator(tmp_path, SCORES)
    train = TrainSpec(never, 10)
    with pytest.raises(ValueError, match=r"unique names.*\n.*\n.*eval, a, eval"):
        train_and_evaluate(
            estimator, train, [evaluated(), evaluated(name="a"), evaluated(name="eval")]
        )
    one, two = (evaluated(name=name, exporters=scripted.Recorder()) for name in "ab")
    with pytest.raises(ValueError, match="`exporters` must have unique names"):
        train_and_evaluate(estimator, train, [one, two])
    with pytest.raises(ValueError, match="one EarlyStopping"):
        train_and_evaluate(
            estimator, TrainSpec(never, 10, [EarlyStopping(), EarlyStopping()]), evaluated()
        )
    with pytest.raises(TypeError, match="`eval_spec` must have type"):
        train_and_evaluate(estimator, train, [])
    assert not list(tmp_path.iterdir())


EVALUATOR = {"task": {"type": "evaluator", "index": 0}}
CLUSTER = {"cluster": {"chief": ["a:1"], "worker": ["b:1"]}, "task": {"type": "chief", "index": 0}}


@pytest.mark.parametrize(
    ("tf_config", "kind", "words"),
    [
        (json.dumps(CLUSTER), ValueError, "share no parameters"),
        (json.dumps(EVALUATOR), ValueError, "task type must be WORKER"),
        ("{'cluster': {}}", ValueError, "TF_CONFIG: invalid JSON"),
    ],
)
def test_invalid_environments_raise(
    tf_config: str, kind: type, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TF_CONFIG", tf_config)
    with pytest.raises(kind, match=words):
        train_and_evaluate(scripted.estimator(tmp_path, SCORES), TrainSpec(never, 10), evaluated())


def test_cluster_of_one_task_is_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = {"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 0}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    estimator = scripted.estimator(tmp_path, SCORES)
    metrics, _ = train_and_evaluate(estimator, TrainSpec(scripted.batches, 10), evaluated())
    assert metrics["loss"] == 5.0


def test_no_evaluations_without_checkpoints(tmp_path: Path) -> None:
    estimator = scripted.estimator(
        tmp_path, SCORES, save_checkpoints_steps=None, save_checkpoints_secs=None
    )
    with pytest.raises(ValueError, match="There should be a CheckpointSaverHook"):
        train_and_evaluate(estimator, TrainSpec(scripted.batches, 10), evaluated())


def test_listeners_run_before_evaluation(tmp_path: Path) -> None:
    story: list[Any] = []

    class Listener(CheckpointSaverListener):
        def after_save(self, session: Any, global_step_value: int) -> None:
            story.append(global_step_value)

    def input_fn() -> Dataset:
        story.append("evaluate")
        return scripted.batches(1)

    estimator = scripted.estimator(tmp_path, SCORES)
    train = TrainSpec(scripted.batches, 15, saving_listeners=[Listener()])
    train_and_evaluate(estimator, train, evaluated(input_fn=input_fn))
    assert story == [0, 10, "evaluate", 15, "evaluate"]


@pytest.mark.parametrize(
    ("kind", "index", "message"),
    [
        ("evaluator", 1, "there can only be one `evaluator` task .*with task id 0"),
        ("local", 0, "`task.type` in TF_CONFIG cannot be `local`"),
        ("alloc", 0, r"Task type alloc is not supported. Supported task types are ((?!local).)*$"),
    ],
)
def test_processes_without_role(
    kind: str, index: int, message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cluster = {"chief": ["a:0"], "ps": ["b:0"], **({} if index else {kind: ["c:0"]})}
    task = {"type": kind, "index": index}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": task}))
    estimator = Estimator(lambda features: features, tmp_path)
    with pytest.raises(ValueError, match=message):
        train_and_evaluate(estimator, TrainSpec(list, 1), EvalSpec(list))
