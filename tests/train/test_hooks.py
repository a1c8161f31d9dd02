"""Hooks: when each is called, what it sees, and what happens if one fails."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit import logger as log
from estimatorkit.estimator.spec import EstimatorSpec
from estimatorkit.runtime.session import Session
from estimatorkit.storage.checkpoint import latest_checkpoint, load_variable
from estimatorkit.storage.directory_lock import DirectoryLock
from estimatorkit.train.hooks.checkpoint_hooks import CheckpointSaverHook, CheckpointSaverListener
from estimatorkit.train.hooks.hooks import (
    FinishedSteps,
    LoggingTensorHook,
    LossLogHook,
    NanLossDuringTrainingError,
    NanTensorHook,
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
    StopAtStepHook,
)
from estimatorkit.train.hooks.progress import ProgressHook
from tests.train import counting
from tests.train.counting import Recorder, no_input


@pytest.fixture(autouse=True)
def _log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "estimatorkit")


def lines(caplog: pytest.LogCaptureFixture, pattern: str) -> list[str]:
    return [record.getMessage() for record in caplog.records if re.search(pattern, record.message)]


def checkpoints(model_dir: Path) -> list[int]:
    folders = [path for path in model_dir.glob("model.ckpt-*") if path.is_dir()]
    return sorted(int(path.name.rpartition("-")[2]) for path in folders)


class Clock:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


# -- single steps


class EveryStep(SessionRunHook):
    """Fetches 'value' at every step, and notes what it is given."""

    def __init__(self, fetches: Any = "value:0", feed: Any = None) -> None:
        self.seen: list[Any] = []
        self.contexts: list[SessionRunContext] = []
        self._args = SessionRunArgs(fetches, feed)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return self._args

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        self.seen.append(run_values.results)
        self.contexts.append(run_context)


def test_hook_sees_every_step_in_order(tmp_path: Path) -> None:
    hook = EveryStep()
    counting.train(tmp_path, [hook], 25)
    assert hook.seen == list(range(25))
    assert isinstance(hook.contexts[0].session, Session)
    assert len(set(map(id, hook.contexts))) == 25


def test_fetches_keep_their_structure(tmp_path: Path) -> None:
    fetches = {"a": "value:0", "b": ["value:0", ("value:0",)]}
    hook, nothing = EveryStep(fetches), EveryStep(None)
    counting.train(tmp_path, [hook, nothing], 2)
    assert hook.seen[1] == {"a": 1, "b": [1, (1,)]}
    assert nothing.seen == [None, None]


def test_hook_may_feed(tmp_path: Path) -> None:
    recorder = Recorder()
    counting.train(tmp_path, [EveryStep(None, {"value:0": 7.0}), recorder], 2)
    assert recorder.losses == [7.0, 7.0]


def test_single_steps_have_same_losses(tmp_path: Path) -> None:
    recorder = Recorder()
    counting.train(tmp_path, [EveryStep(), recorder], 12)
    assert recorder.losses == list(range(12))
    assert [len(steps.losses) for steps in recorder.steps] == [1] * 12


class AfterRunOnly(SessionRunHook):
    """Overrides one method: it is called around every step, as in TensorFlow."""

    def __init__(self) -> None:
        self.results: list[Any] = []

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        self.results.append(run_values.results)


def test_hook_without_fetches_is_called_around_every_step(tmp_path: Path) -> None:
    hook = AfterRunOnly()
    counting.train(tmp_path, [hook], 5)
    assert hook.results == [None] * 5


class AtMultiples(EveryStep):
    """Wants control around each tenth step."""

    def __init__(self, every: int = 10) -> None:
        super().__init__()
        self.every = every

    def next_control_step(self, global_step: int) -> int | None:
        return (global_step // self.every + 1) * self.every


def test_hook_is_called_only_at_requested_steps(tmp_path: Path) -> None:
    hook, recorder = AtMultiples(), Recorder()
    counting.train(tmp_path, [hook, recorder], 45)
    assert hook.seen == [9, 19, 29, 39]
    assert recorder.losses == list(range(45))
    alone = [steps.first for steps in recorder.steps if steps.last % 10 == 0]
    assert alone == [9, 19, 29, 39]
    assert len(recorder.steps) < 20


def test_hooks_are_called_at_their_own_steps(tmp_path: Path) -> None:
    hooks = [AtMultiples(10), AtMultiples(7), AtMultiples(1000)]
    counting.train(tmp_path, hooks, 30)
    assert hooks[0].seen == [9, 19, 29]
    assert hooks[1].seen == [6, 13, 20, 27]
    assert hooks[2].seen == []


class Boundary(Recorder):
    """Takes no part in steps, but must see the state after each eighth."""

    def next_control_step(self, global_step: int) -> int | None:
        return (global_step // 8 + 1) * 8


def test_multi_step_calls_end_where_hook_wants_control(tmp_path: Path) -> None:
    hook = Boundary()
    counting.train(tmp_path, [hook], 30)
    ends = [steps.last for steps in hook.steps]
    assert {8, 16, 24, 30} <= set(ends)
    assert hook.losses == list(range(30))


def test_few_calls_without_demanding_hooks(tmp_path: Path) -> None:
    recorder = Recorder()
    counting.train(tmp_path, [recorder], 1000)
    assert len(recorder.steps) <= 8
    assert recorder.session.state.compilations["train_step"] == 1


# -- the end


class Stops(SessionRunHook):
    """Requests a stop before or after the step at which 'value' is 3."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.runs = 0

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        if self.where == "before" and self.runs == 3:
            run_context.request_stop()
        return SessionRunArgs("value:0")

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        self.runs += 1
        if self.where == "after" and run_values.results == 3:
            run_context.request_stop()


@pytest.mark.parametrize("where", ["before", "after"])
def test_stop_request_takes_effect_after_its_step(tmp_path: Path, where: str) -> None:
    recorder = Recorder()
    counting.train(tmp_path, [Stops(where), recorder], 100)
    assert recorder.losses == [0, 1, 2, 3]
    assert recorder.calls[-2:] == ["end", "close"]


class StopsAfterSteps(SessionRunHook):
    def after_steps(self, steps: FinishedSteps) -> None:
        if steps.last >= 10:
            steps.request_stop("enough")


def test_stop_request_after_multi_step_call(tmp_path: Path) -> None:
    recorder = Recorder()
    counting.train(tmp_path, [StopsAfterSteps(), recorder], 100_000)
    assert 10 <= len(recorder.losses) < 100_000


@pytest.mark.parametrize(("arguments", "steps"), [({"num_steps": 5}, 5), ({"last_step": 12}, 9)])
def test_stop_at_step(tmp_path: Path, arguments: dict[str, int], steps: int) -> None:
    config = {"save_checkpoints_steps": 1000}
    counting.train(tmp_path, [], 3, config=config)
    recorder = Recorder()
    counting.train(tmp_path, [StopAtStepHook(**arguments), recorder], None, config=config)
    assert recorder.losses == list(range(3, 3 + steps))


def test_stop_at_step_takes_one_argument() -> None:
    with pytest.raises(ValueError, match=r"One of num_steps or last_step must be specified\."):
        StopAtStepHook()
    with pytest.raises(ValueError, match=r"Only one of num_steps or last_step can be specified\."):
        StopAtStepHook(1, 2)


class TestNan:
    def test_raises_before_saving(self, tmp_path: Path, caplog: Any) -> None:
        config = {"save_checkpoints_steps": 10}
        with pytest.raises(NanLossDuringTrainingError) as caught:
            counting.train(tmp_path, [], 100, nan_at=37, config=config)
        message = str(caught.value)
        assert message.startswith("NaN loss during training.")
        assert "NaN at step 38 (the step before it: 36)" in message
        assert lines(caplog, "Model diverged with loss = NaN.")
        assert checkpoints(tmp_path) == [0, 10, 20, 30]
        assert load_variable(tmp_path, "x") == 30

    def test_nothing_bad_is_saved_at_checkpoint_boundary(self, tmp_path: Path) -> None:
        with pytest.raises(NanLossDuringTrainingError, match="NaN at step 20 "):
            counting.train(tmp_path, [], 100, nan_at=19, config={"save_checkpoints_steps": 20})
        assert checkpoints(tmp_path) == [0]

    def test_stops_training_if_requested(self, caplog: Any) -> None:
        steps = FinishedSteps(4, np.array([3.0, np.nan, np.nan], np.float32), None)
        NanTensorHook(None, fail_on_nan_loss=False).after_steps(steps)
        assert steps.stop == ["the loss is NaN"]
        assert lines(caplog, r"NaN loss during training\.\n.*\n.*NaN at step 6 ")

    def test_infinite_loss_is_accepted(self) -> None:
        steps = FinishedSteps(0, np.array([np.inf, -np.inf, 1.0]), None)
        NanTensorHook(None).after_steps(steps)
        assert steps.stop == []

    def test_first_step_has_no_predecessor(self) -> None:
        with pytest.raises(NanLossDuringTrainingError) as caught:
            NanTensorHook(None).after_steps(FinishedSteps(0, np.array([np.nan]), None))
        assert "  received: NaN at step 1" in str(caught.value).splitlines()


# -- checkpoints


class Listener(CheckpointSaverListener):
    def __init__(self, name: str, calls: list[str], stop_at: int | None = None) -> None:
        self.name, self.calls, self.stop_at = name, calls, stop_at

    def begin(self) -> None:
        self.calls.append(f"{self.name} begin")

    def before_save(self, session: Any, global_step_value: int) -> None:
        assert isinstance(session, Session)
        self.calls.append(f"{self.name} before {global_step_value}")

    def after_save(self, session: Any, global_step_value: int) -> bool | None:
        self.calls.append(f"{self.name} after {global_step_value}")
        return global_step_value == self.stop_at

    def end(self, session: Any, global_step_value: int) -> None:
        self.calls.append(f"{self.name} end {global_step_value}")


class TestCheckpoints:
    def test_by_steps(self, tmp_path: Path, caplog: Any) -> None:
        config = {"save_checkpoints_steps": 10, "keep_checkpoint_max": None}
        counting.train(tmp_path, [], 34, config=config)
        assert checkpoints(tmp_path) == [0, 10, 20, 30, 34]
        assert lines(caplog, "Saving checkpoints for 10 into ")
        counting.train(tmp_path, [], 20, config=config)
        assert checkpoints(tmp_path) == [0, 10, 20, 30, 34, 44, 54]

    def test_last_checkpoint_is_saved_once(self, tmp_path: Path, caplog: Any) -> None:
        counting.train(tmp_path, [], 20, config={"save_checkpoints_steps": 10})
        saved = lines(caplog, "Saving checkpoints for")
        assert [int(line.split()[3]) for line in saved] == [0, 10, 20]

    @pytest.mark.slow
    def test_restored_state_is_not_saved_again(self, tmp_path: Path, caplog: Any) -> None:
        counting.train(tmp_path, [], 10, config={"save_checkpoints_steps": 10})
        caplog.clear()
        counting.train(tmp_path, [], 10, config={"save_checkpoints_steps": 10})
        saved = lines(caplog, "Saving checkpoints for")
        assert [int(line.split()[3]) for line in saved] == [20]

    def test_max_to_keep(self, tmp_path: Path) -> None:
        config = {"save_checkpoints_steps": 5, "keep_checkpoint_max": 2}
        counting.train(tmp_path, [], 32, config=config)
        assert checkpoints(tmp_path) == [30, 32]

    def test_by_seconds(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A clock that a hook moves on by one second at each step."""
        clock = Clock()
        monkeypatch.setattr("estimatorkit.train.hooks.checkpoint_hooks.time.time", clock)

        class Ticks(AfterRunOnly):
            def after_run(self, *_: Any) -> None:
                clock.now += 1.0

        saver = CheckpointSaverHook(str(tmp_path), save_secs=7)
        counting.train(tmp_path, [Ticks(), saver], 30)
        assert checkpoints(tmp_path) == [0, 7, 14, 21, 28, 30][-5:]

    def test_clock_that_goes_back_delays_no_save(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        clock = Clock()
        monkeypatch.setattr("estimatorkit.train.hooks.checkpoint_hooks.time.time", clock)

        class SetBack(AfterRunOnly):
            def after_run(self, *_: Any) -> None:
                clock.now -= 3600.0

        saver = CheckpointSaverHook(str(tmp_path), save_secs=600)
        counting.train(tmp_path, [SetBack(), saver], 3)
        assert checkpoints(tmp_path) == [0, 1, 2, 3]

    def test_seconds_need_no_control(self, tmp_path: Path) -> None:
        saver, recorder = CheckpointSaverHook(str(tmp_path), save_secs=600), Recorder()
        counting.train(tmp_path, [saver, recorder], 1000)
        assert checkpoints(tmp_path) == [0, 1000]
        assert len(recorder.steps) <= 8

    def test_given_hook_replaces_config(self, tmp_path: Path) -> None:
        saver = CheckpointSaverHook(str(tmp_path), save_steps=15, checkpoint_basename="mine")
        calls: list[str] = []
        estimator = counting.estimator(tmp_path, config={"save_checkpoints_steps": 2})
        estimator.train(no_input, [saver], steps=20, saving_listeners=[Listener("late", calls)])
        assert sorted(path.name for path in tmp_path.glob("*-*") if path.is_dir()) == [
            "mine-0",
            "mine-15",
            "mine-20",
        ]
        assert calls[-1] == "late end 20"
        later: list[str] = []
        estimator.train(no_input, [saver], steps=1, saving_listeners=[Listener("later", later)])
        assert calls[-1] == "late end 20"  # it belongs to the training that it was given to
        assert later[-1] == "later end 21"

    def test_listeners_are_called_in_order(self, tmp_path: Path) -> None:
        calls: list[str] = []
        listeners = [Listener("a", calls), Listener("b", calls)]
        estimator = counting.estimator(tmp_path, config={"save_checkpoints_steps": 10})
        estimator.train(no_input, steps=15, saving_listeners=listeners)
        expected = ["a begin", "b begin"]
        for step in (0, 10, 15):
            expected += [f"{name} {when} {step}" for when in ("before", "after") for name in "ab"]
        assert calls == [*expected, "a end 15", "b end 15"]

    def test_listener_may_stop_training(self, tmp_path: Path) -> None:
        calls: list[str] = []
        listener = Listener("a", calls, stop_at=20)
        estimator = counting.estimator(tmp_path, config={"save_checkpoints_steps": 10})
        estimator.train(no_input, steps=100, saving_listeners=[listener])
        assert latest_checkpoint(tmp_path) == str(tmp_path / "model.ckpt-20")
        assert calls[-1] == "a end 20"

    def test_listeners_need_checkpoints(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="There should be a CheckpointSaverHook"):
            counting.estimator(tmp_path).train(
                no_input, steps=1, saving_listeners=[Listener("a", [])]
            )

    @pytest.mark.parametrize("arguments", [{}, {"save_secs": 1, "save_steps": 1}])
    def test_steps_or_seconds(self, tmp_path: Path, arguments: dict[str, Any]) -> None:
        with pytest.raises(ValueError, match="Exactly one of save_secs and save_steps"):
            CheckpointSaverHook(str(tmp_path), **arguments)

    def test_disabled(self, tmp_path: Path) -> None:
        counting.train(tmp_path, [], 10)
        assert checkpoints(tmp_path) == []


# -- logs


class TestLoggingTensorHook:
    def values(self, caplog: pytest.LogCaptureFixture) -> list[str]:
        return [re.sub(r"\d\.\d{3} sec", "_ sec", line) for line in lines(caplog, "value")]

    def test_logs_first_step_and_every_n(self, tmp_path: Path, caplog: Any) -> None:
        """The lines of TensorFlow 2.15's hook."""
        recorder = Recorder()
        hook = LoggingTensorHook({"value": "value:0", "again": "value"}, every_n_iter=100)
        counting.train(tmp_path, [hook, recorder], 250)
        assert self.values(caplog) == [
            "value = 0.0, again = 0.0",
            "value = 100.0, again = 100.0 (_ sec)",
            "value = 200.0, again = 200.0 (_ sec)",
        ]
        assert recorder.losses == list(range(250))
        assert len(recorder.steps) < 20

    @pytest.mark.slow
    def test_counts_from_start_of_training(self, tmp_path: Path, caplog: Any) -> None:
        config = {"save_checkpoints_steps": 1000}
        counting.train(tmp_path, [], 7, config=config)
        hook = LoggingTensorHook(["value:0"], every_n_iter=10)
        counting.train(tmp_path, [hook], 25, config=config)
        assert [line.split()[2] for line in self.values(caplog)] == ["7.0", "17.0", "27.0"]

    def test_by_seconds(self, tmp_path: Path, caplog: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        clock = Clock()
        monkeypatch.setattr("estimatorkit.train.hooks.hooks.time.time", clock)

        class Ticks(AfterRunOnly):
            def after_run(self, *_: Any) -> None:
                clock.now += 1.0

        hook = LoggingTensorHook({"value": "value:0"}, every_n_secs=4)
        counting.train(tmp_path, [hook, Ticks()], 10)
        assert lines(caplog, "value") == [
            "value = 0.0",
            "value = 4.0 (4.000 sec)",
            "value = 8.0 (4.000 sec)",
        ]
        caplog.clear()
        counting.train(tmp_path / "again", [hook, Ticks()], 1)
        assert lines(caplog, "value") == ["value = 0.0"]

    def test_at_the_end(self, tmp_path: Path, caplog: Any) -> None:
        counting.train(tmp_path, [LoggingTensorHook({"value": "value:0"}, at_end=True)], 10)
        assert lines(caplog, "value") == ["value = 10.0"]

    def test_formatter(self, tmp_path: Path, caplog: Any) -> None:
        hook = LoggingTensorHook(
            {"v": "value:0"}, every_n_iter=2, formatter=lambda values: f"value: <{values['v']:g}>"
        )
        counting.train(tmp_path, [hook], 4)
        assert lines(caplog, "value") == ["value: <0>", "value: <2>"]

    @pytest.mark.parametrize(
        "arguments", [{}, {"every_n_iter": 1, "every_n_secs": 1}, {"every_n_iter": 0}]
    )
    def test_arguments(self, arguments: dict[str, Any]) -> None:
        with pytest.raises(ValueError, match=r"every_n_iter"):
            LoggingTensorHook(["value:0"], **arguments)

    def test_missing_tensor(self, tmp_path: Path) -> None:
        with pytest.raises(KeyError, match="nowhere"):
            counting.train(tmp_path, [LoggingTensorHook(["nowhere:0"], every_n_iter=1)], 1)


def test_logged_lines(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """As TensorFlow 2.15 writes them, for the same steps."""
    counting.train(tmp_path, [], 250, config={"log_step_count_steps": 100})
    number = r"\d+(\.\d+)?(e[+-]\d+)?"
    expected = [
        r"loss = 0\.0, step = 0",
        rf"global_step/sec: {number}",
        r"loss = 100\.0, step = 100 \(\d+\.\d{3} sec\)",
        rf"global_step/sec: {number}",
        r"loss = 200\.0, step = 200 \(\d+\.\d{3} sec\)",
        r"Loss for final step: 249\.0\.",
    ]
    found = lines(caplog, "loss|Loss|global_step/sec")
    assert len(found) >= len(expected) - 1  # steps of one call share their line of speed
    assert [line for line in found if "sec:" not in line] == [
        line for line in found if any(re.fullmatch(e, line) for e in expected if "sec:" not in e)
    ]
    assert re.fullmatch(expected[1], next(line for line in found if "sec:" in line))
    assert [line.split()[5].rstrip(",") for line in found if "step = " in line] == [
        "0",
        "100",
        "200",
    ]


def test_logged_lines_of_multi_step_call(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr("estimatorkit.train.hooks.hooks.time.time", clock)
    hook = LossLogHook(10)
    hook.after_create_session(None, None)
    for first, last in ((5, 6), (6, 36), (36, 44), (44, 46)):
        clock.now += 0.5
        hook.after_steps(FinishedSteps(first, np.arange(first, last) * 0.5, None))
    assert [record.getMessage() for record in caplog.records] == [
        "loss = 2.5, step = 5",
        "global_step/sec: 30",
        "loss = 7.5, step = 15 (0.333 sec)",
        "loss = 12.5, step = 25 (0.333 sec)",
        "loss = 17.5, step = 35 (0.333 sec)",
        "global_step/sec: 10",
        "loss = 22.5, step = 45 (1.000 sec)",
    ]


# -- failing hooks


METHODS = ["begin", "after_create_session", "before_run", "after_run", "after_steps", "end"]


class Failing(SessionRunHook):
    """Fails in one method: around the 25th step, where that is one of a step."""

    def __init__(self, method: str) -> None:
        self.runs = 0
        self._method = method
        setattr(self, method, self._fail)

    def before_run(self, run_context: SessionRunContext) -> None:
        return None

    def _fail(self, *arguments: Any) -> None:
        self.runs += 1
        if self.runs == 25 or "run" not in self._method:
            raise ZeroDivisionError(self._method)


@pytest.mark.parametrize("method", METHODS)
def test_failing_hook(tmp_path: Path, method: str) -> None:
    """The session is closed, the lock is free, nobody's end() is called, no state is saved."""
    calls: list[str] = []
    recorders = [Recorder(calls, "first "), Recorder(calls, "second ")]
    with pytest.raises(ZeroDivisionError, match=method):
        counting.train(
            tmp_path,
            [recorders[0], Failing(method), recorders[1]],
            40,
            config={"save_checkpoints_steps": 10, "keep_checkpoint_max": 10},
        )
    before = {"begin": [], "after_create_session": [], "after_steps": [0]}
    saved = {**before, "before_run": [0, 10, 20], "after_run": [0, 10, 20], "end": [0, 10, 20, 30]}
    if method == "end":  # after 40 steps the state is saved as after any tenth
        saved["end"].append(40)
    assert checkpoints(tmp_path) == saved[method]
    ended = ["first end"] if method == "end" else []
    assert [call for call in calls if call.endswith("end")] == ended
    assert sorted(call for call in calls if call.endswith("close")) == [
        "first close",
        "second close",
    ]
    with DirectoryLock(tmp_path):
        pass
    if recorders[0].session is not None:
        with pytest.raises(RuntimeError, match="closed Session"):
            recorders[0].session.run("value:0")


def test_training_can_continue_after_failure(tmp_path: Path) -> None:
    config = {"save_checkpoints_steps": 10}
    with pytest.raises(ZeroDivisionError):
        counting.train(tmp_path, [Failing("after_run")], 40, config=config)
    recorder = Recorder()
    counting.train(tmp_path, [recorder], 10, config=config)
    assert recorder.losses == list(range(20, 30))


def test_hooks_are_called_in_order(tmp_path: Path) -> None:
    """Those of the chief, the caller's, those of all workers, as in TensorFlow."""
    calls: list[str] = []
    spec = {
        "training_chief_hooks": [Recorder(calls, "1 ")],
        "training_hooks": [Recorder(calls, "3 ")],
    }
    counting.train(tmp_path, [Recorder(calls, "2 ")], 2, spec=spec)
    for method in ("begin", "after_create_session", "end"):
        assert [c for c in calls if c.endswith(f" {method}")] == [f"{n} {method}" for n in "123"]


def test_checkpoint_saver_is_last(tmp_path: Path) -> None:
    """So what a failing hook refuses is never saved."""
    saver = CheckpointSaverHook(str(tmp_path), save_steps=25)
    with pytest.raises(ZeroDivisionError):
        counting.train(tmp_path, [saver, Failing("after_run")], 40)
    assert checkpoints(tmp_path) == [0]


# -- evaluation and prediction


class TestOtherModes:
    @pytest.fixture
    def trained(self, tmp_path: Path) -> Any:
        estimator = counting.estimator(tmp_path, config={"save_checkpoints_steps": 100})
        return estimator.train(no_input, steps=3)

    @staticmethod
    def batches() -> Any:
        return tf.data.Dataset.from_tensor_slices([1.0, 2.0, 3.0, 4.0, 5.0]).batch(2)

    def test_evaluation_hooks_see_every_batch(self, trained: Any) -> None:
        hook, recorder = EveryStep(), Recorder()
        metrics = trained.evaluate(self.batches, hooks=[hook, recorder])
        assert metrics["mean"] == 3
        assert hook.seen == [3.0] * 3
        assert recorder.calls == ["begin", "after_create_session", "end", "close"]

    def test_evaluation_without_hooks_compiles_once(
        self, trained: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("ESTIMATORKIT_EXECUTOR", "xla")
        recorder = Recorder()
        trained.evaluate(lambda: self.batches().take(2).repeat(20), hooks=[recorder])
        assert recorder.session.state.compilations["evaluation_step"] == 1

    @pytest.mark.slow
    def test_logging_in_evaluation(self, trained: Any, caplog: Any) -> None:
        hook = LoggingTensorHook({"value": "value:0"}, every_n_iter=4)
        trained.evaluate(lambda: self.batches().repeat(4), hooks=[hook])
        assert len(lines(caplog, "^value = 3.0")) == 3

    def test_hook_may_end_evaluation(self, trained: Any) -> None:
        class Two(AfterRunOnly):
            def after_run(self, run_context: SessionRunContext, run_values: Any) -> None:
                super().after_run(run_context, run_values)
                if len(self.results) == 2:
                    run_context.request_stop()

        assert trained.evaluate(self.batches, hooks=[Two()])["mean"] == 2.5

    def test_prediction_hooks_see_every_batch(self, trained: Any) -> None:
        hook, recorder = EveryStep(), Recorder()
        assert len(list(trained.predict(self.batches, hooks=[hook, recorder]))) == 5
        assert hook.seen == [3.0] * 3
        assert recorder.calls == ["begin", "after_create_session", "end", "close"]

    @pytest.mark.parametrize("mode", ["evaluation", "prediction"])
    def test_hooks_of_model_fn(self, tmp_path: Path, mode: str) -> None:
        recorder = Recorder()
        estimator = counting.estimator(
            tmp_path,
            config={"save_checkpoints_steps": 100},
            spec={f"{mode}_hooks": [recorder]},
        )
        estimator.train(no_input, steps=1)
        assert recorder.calls == []
        estimator.evaluate(no_input, steps=2)
        list(estimator.predict(no_input))
        assert recorder.calls == ["begin", "after_create_session", "end", "close"]

    @pytest.mark.parametrize("method", METHODS[:4])
    def test_failing_hook(self, trained: Any, method: str) -> None:
        recorder, failing = Recorder(), Failing(method)
        failing.runs = 24
        with pytest.raises(ZeroDivisionError):
            trained.evaluate(self.batches, hooks=[recorder, failing])
        assert "end" not in recorder.calls
        assert recorder.calls[-1] == "close"
        failing.runs = 24
        with pytest.raises(ZeroDivisionError):
            list(trained.predict(self.batches, hooks=[recorder, failing]))


# -- the global step


class TestGlobalStep:
    def test_train_op_without_increment_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(
            tf.errors.FailedPreconditionError,
            match=r"(?s)does not increment the global step.*made at: .*counting\.py:\d+.*hint",
        ):
            counting.train(tmp_path, [], 1000, by=0)

    def test_two_increments_per_step(self, tmp_path: Path) -> None:
        """Where two optimizers count, as in TensorFlow, 100 is reached after 50 steps."""
        recorder = Recorder()
        config = {"save_checkpoints_steps": 20, "keep_checkpoint_max": None}
        counting.train(tmp_path, [recorder], 100, by=2, config=config)
        assert recorder.steps[-1].last == 100
        assert recorder.losses == [n // 2 for n in range(100)]
        assert checkpoints(tmp_path) == [0, 20, 40, 60, 80, 100]
        assert load_variable(tmp_path, "x") == 50

    def test_increment_every_third_step(self, tmp_path: Path) -> None:
        """Gradients that are gathered over three batches are applied, and counted, once."""

        def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
            x = tf.get_variable("x", [], initializer=tf.zeros_initializer())
            loss = tf.identity(x)
            with tf.control_dependencies([loss]):
                added = tf.assign_add(x, 1.0)
            counted = tf.cast(tf.equal(added % 3.0, 0.0), tf.int64)
            train_op = tf.assign_add(tf.train.get_global_step(), counted)
            return EstimatorSpec(mode, loss=loss, train_op=train_op)

        recorder = Recorder()
        estimator = tf.estimator.Estimator(
            model_fn, tmp_path, tf.estimator.RunConfig(save_checkpoints_steps=10)
        )
        estimator.train(no_input, [recorder], steps=40)
        assert recorder.steps[-1].last == 40
        assert load_variable(tmp_path, "x") == 120
        assert checkpoints(tmp_path) == [0, 10, 20, 30, 40]


# -- people


class Terminal(io.StringIO):
    """A terminal that notes what is written to it."""

    def isatty(self) -> bool:
        return True


class TestProgress:
    def test_is_updated_at_most_five_times_per_second(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        clock = Clock()
        monkeypatch.setattr("tqdm.std.time", clock)
        terminal = Terminal()
        bar = ProgressHook(1000, stream=terminal)
        session = _Counts(0)
        bar.after_create_session(session, None)
        writes = terminal.getvalue().count("\r")
        for step in range(1000):  # ten seconds
            clock.now += 0.01
            bar.after_steps(FinishedSteps(step, np.array([1.0 / (step + 1)]), None))
        assert 10 <= terminal.getvalue().count("\r") - writes <= 51
        bar.end(session)
        bar.close()
        shown = terminal.getvalue()
        assert "1000/1000" in shown
        assert "loss=0.001" in shown
        assert "steps/s" in shown

    def test_counts_to_last_step(self) -> None:
        terminal = Terminal()
        bar = ProgressHook(last_step=100, stream=terminal)
        bar.after_create_session(_Counts(60), None)
        bar.after_steps(FinishedSteps(60, np.ones(40), None))
        bar.close()
        assert "40/40" in terminal.getvalue()

    def test_unknown_end(self) -> None:
        terminal = Terminal()
        bar = ProgressHook(stream=terminal)
        bar.after_create_session(_Counts(0), None)
        bar.after_steps(FinishedSteps(0, np.ones(7), None))
        bar.close()
        assert "7 steps" in terminal.getvalue()

    @pytest.mark.parametrize("terminal", [True, False])
    def test_bar_in_terminal_and_lines_in_file(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any, terminal: bool
    ) -> None:
        stream = Terminal() if terminal else io.StringIO()
        monkeypatch.setattr("sys.stderr", stream)
        counting.train(tmp_path, [], 20, config={"log_step_count_steps": 10})
        assert ("20/20" in stream.getvalue()) == terminal
        assert bool(lines(caplog, "^loss = ")) != terminal

    def test_no_bar_where_nothing_is_to_be_logged(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stream = Terminal()
        monkeypatch.setattr("sys.stderr", stream)
        counting.train(tmp_path, [], 20, config={"log_step_count_steps": None})
        assert "20/20" not in stream.getvalue()

    def test_bar_is_closed_on_failure(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stream = Terminal()
        monkeypatch.setattr("sys.stderr", stream)
        config = {"log_step_count_steps": 10}
        with pytest.raises(ZeroDivisionError):
            counting.train(tmp_path, [Failing("after_run")], 40, config=config)
        assert stream.getvalue().endswith("\n")


class _Counts:
    """A session that knows nothing but a global step."""

    def __init__(self, step: int) -> None:
        self.step = step
        self.graph = tf.Graph()

    def run(self, fetches: Any) -> int:
        return self.step


class TestVisibility:
    @staticmethod
    @contextmanager
    def unconfigured() -> Iterator[None]:
        """Logging as it is before anybody has configured it (pytest has)."""
        root = logging.getLogger()
        handlers, level = list(root.handlers), log.logger.level
        root.handlers.clear()
        log.logger.setLevel(logging.NOTSET)
        yield
        root.handlers[:] = handlers
        log.logger.handlers.clear()
        log.logger.setLevel(level)

    def test_training_logs_by_default(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with self.unconfigured():
            counting.train(tmp_path, [], 5, config={"log_step_count_steps": 10})
            counting.train(tmp_path, [], 5, config={"log_step_count_steps": 10})
            assert len(log.logger.handlers) == 1
        shown = capsys.readouterr().err.splitlines()
        assert shown.count("INFO:estimatorkit:loss = 0.0, step = 0") == 2

    def test_configured_level_is_kept(self, capsys: pytest.CaptureFixture[str]) -> None:
        with self.unconfigured():
            log.logger.setLevel(logging.WARNING)
            log.ensure_visible()
            log.logger.info("nothing")
            log.logger.warning("something")
        assert capsys.readouterr().err == "WARNING:estimatorkit:something\n"

    @pytest.mark.parametrize("where", ["", "estimatorkit"])
    def test_configured_logging_is_left_alone(self, where: str) -> None:
        with self.unconfigured():
            logging.getLogger(where).addHandler(logging.NullHandler())
            before = list(log.logger.handlers)
            log.ensure_visible()
            assert log.logger.handlers == before
            assert log.logger.level == logging.NOTSET
