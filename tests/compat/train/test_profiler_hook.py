"""`ProfilerHook`: traces of single steps (`test_monitored_session.py` tests which steps)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import estimatorkit as tf
from tests.golden.snippets_monitored import count, files, train
from tests.train import counting


def test_trace_shows_operations_and_devices(tmp_path: Path) -> None:
    hook = tf.train.ProfilerHook(
        save_steps=2, output_dir=str(tmp_path / "traces"), show_dataflow=True, show_memory=True
    )
    train(tf, None, 2, hooks=[hook])
    trace = json.loads((tmp_path / "traces" / "timeline-2.json").read_text("utf-8"))
    events = trace["traceEvents"]
    assert [each["args"]["name"] for each in events if each["ph"] == "M"]
    spans = [each for each in events if each["ph"] == "X"]
    assert spans
    assert all(each["dur"] >= 0 and each["ts"] > 0 for each in spans)
    assert any("AssignAdd" in each["args"]["op"] for each in spans)


def test_steps_continue_after_resuming(tmp_path: Path) -> None:
    for last_step in (5, 12):
        hook = tf.train.ProfilerHook(save_steps=4, output_dir=tmp_path)
        train(tf, str(tmp_path), last_step, hooks=[hook], save_summaries_steps=None)
    assert files(str(tmp_path), "timeline-*") == [
        *("timeline-4.json", "timeline-9.json"),
    ]


def test_save_secs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("estimatorkit.train.hooks.summary_hooks.time.time", lambda: now[0])
    with tf.Graph().as_default():
        op = count(tf)
        hook = tf.train.ProfilerHook(save_secs=10, output_dir=tmp_path)
        with tf.train.MonitoredSession(hooks=[hook]) as session:
            for _ in range(8):
                now[0] += 4
                session.run(op)
    assert files(str(tmp_path), "timeline-*") == ["timeline-3.json", "timeline-6.json"]


def test_works_in_estimator_training(tmp_path: Path) -> None:
    hook = tf.train.ProfilerHook(save_steps=10, output_dir=tmp_path / "traces")
    recorder = counting.Recorder()
    counting.train(tmp_path / "model", [hook, recorder], 25)
    assert files(str(tmp_path / "traces"), "*") == ["timeline-10.json", "timeline-20.json"]
    assert recorder.losses == list(range(25))
    assert len(recorder.steps) < 15  # the steps between are still run many at a time


def test_hook_and_caller_share_trace(tmp_path: Path) -> None:
    seen: list[Any] = []

    class Looks(tf.train.SessionRunHook):
        def after_run(self, run_context: Any, run_values: Any) -> None:
            seen.append((run_values.options, run_values.run_metadata))

    with tf.Graph().as_default():
        op = count(tf)
        hooks = [tf.train.ProfilerHook(save_steps=2, output_dir=tmp_path), Looks()]
        with tf.train.MonitoredSession(hooks=hooks) as session:
            session.run(op)
            metadata = tf.RunMetadata()
            session.run(op, options=tf.RunOptions(timeout_in_ms=60_000), run_metadata=metadata)
    assert seen[0] == (None, None)
    assert seen[1][0].trace_level == tf.RunOptions.FULL_TRACE
    assert seen[1][0].timeout_in_ms == 60_000
    assert seen[1][1] is metadata
    assert metadata.step_stats.dev_stats
    assert files(str(tmp_path), "timeline-*") == ["timeline-2.json"]


def test_timers() -> None:
    timer = tf.train.SecondOrStepTimer(every_steps=3)
    assert timer.last_triggered_step() is None
    assert timer.should_trigger_for_step(7)
    assert timer.update_last_triggered_step(7) == (None, None)
    assert [timer.should_trigger_for_step(step) for step in (7, 8, 9, 10, 11)] == [
        *(False, False, False, True, True)
    ]
    seconds, steps = timer.update_last_triggered_step(10)
    assert seconds is not None
    assert seconds >= 0
    assert (steps, timer.last_triggered_step()) == (3, 10)
    timer.reset()
    assert timer.should_trigger_for_step(10)
