"""Executors are chosen by the process's environment and by a session's configuration."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.interop.protos import ConfigProto, OptimizerOptions
from estimatorkit.runtime import session_config
from estimatorkit.runtime.execution_mode import EXECUTORS, executor_of
from estimatorkit.runtime.executor import CompiledSegment
from tests.runtime.executor_programs import config


def jit(level: int) -> Any:
    made = ConfigProto()
    made.graph_options.optimizer_options.global_jit_level = level
    return made


@pytest.mark.parametrize("executor", EXECUTORS)
def test_sessions_have_the_executor_of_their_configuration(
    executor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ESTIMATORKIT_EXECUTOR", "xla" if executor == "interpret" else "interpret")
    with tf.Session(config=config(executor)) as session:
        assert session.state.executor == executor


@pytest.mark.parametrize("executor", EXECUTORS)
def test_the_environment_chooses_for_the_process(
    executor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ESTIMATORKIT_EXECUTOR", executor)
    for given in (None, ConfigProto()):
        with tf.Session(config=given) as session:
            assert session.state.executor == executor
    monkeypatch.setenv("ESTIMATORKIT_EXECUTOR", "")
    with tf.Session() as session:
        assert session.state.executor == "auto"


def test_global_jit_level_compiles() -> None:
    assert executor_of(jit(OptimizerOptions.ON_1)) == "xla"
    assert executor_of(jit(OptimizerOptions.ON_2)) == "xla"
    assert executor_of(jit(OptimizerOptions.OFF)) is None
    assert executor_of(jit(OptimizerOptions.DEFAULT)) is None
    both = jit(OptimizerOptions.ON_2)
    both.experimental.executor_type = "interpret"
    assert executor_of(both) == "interpret"


@pytest.mark.parametrize("kind", ["", "DEFAULT", "SINGLE_THREADED_EXECUTOR"])
def test_executor_types_of_tensorflow_choose_nothing(kind: str) -> None:
    assert executor_of(config(kind)) is None
    with tf.Session(config=config(kind)) as session:
        assert session.run(tf.constant(1.0) + 1.0) == 2.0


def test_unknown_executors_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="unknown executor 'fast'") as caught:
        tf.Session(config=config("fast"))
    assert "config.experimental.executor_type" in str(caught.value)
    assert "'auto' or 'xla' or 'interpret'" in str(caught.value)
    monkeypatch.setenv("ESTIMATORKIT_EXECUTOR", "XLA")
    with pytest.raises(ValueError, match="'XLA' in the environment variable ESTIMATORKIT_EXECUTOR"):
        tf.Session()


def test_other_experimental_fields_are_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(session_config, "_told", set())
    given = config("xla")
    given.experimental.collective_group_leader = "/job:worker"
    with caplog.at_level(logging.INFO, "estimatorkit"):
        tf.Session(config=config("xla")).close()
        assert not caplog.messages
        tf.Session(config=given).close()
    (message,) = caplog.messages
    assert message.startswith("Ignored ConfigProto fields: experimental.collective_group_leader (")


def test_functions_have_the_executor_of_their_session() -> None:
    for executor in ("xla", "interpret"):
        with tf.Graph().as_default(), tf.Session(config=config(executor)) as session:
            assert session.state.for_function(tf.Graph()).executor == executor


@pytest.mark.parametrize("executor", ["xla", "interpret"])
def test_estimators_pass_their_session_config(
    executor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = []
    call = CompiledSegment._call

    def counted(self: CompiledSegment, *arguments: Any) -> Any:
        called.append(self.segment.ops[-1].name)
        return call(self, *arguments)

    def model(features: Any, labels: Any, mode: str) -> Any:
        doubled = tf.multiply(features["x"], 2.0, name="doubled")
        return tf.estimator.EstimatorSpec(mode, predictions={"doubled": doubled})

    monkeypatch.setattr(CompiledSegment, "_call", counted)
    run = tf.estimator.RunConfig(session_config=config(executor))
    estimator = tf.estimator.Estimator(model, str(tmp_path), run)
    data = tf.data.Dataset.from_tensors({"x": np.ones(3, np.float32)})
    (row, *_) = estimator.predict(lambda: data)
    assert row["doubled"] == 2.0
    assert bool(called) == (executor == "xla")
