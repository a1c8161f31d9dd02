"""The training loop: step checks, and the global step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.core.errors import FailedPreconditionError, InvalidArgumentError
from estimatorkit.core.graph import Graph
from estimatorkit.estimator.estimator import Estimator
from estimatorkit.estimator.run_config import RunConfig
from estimatorkit.estimator.spec import EstimatorSpec
from estimatorkit.runtime.session import Session
from estimatorkit.train.checks import add_step_check, step_checks
from estimatorkit.train.training import losses_by_count, run_training
from tests.train.counting import Recorder, no_input


def refusing(model_dir: Path, limit: float, every: int) -> Estimator:
    """Counts; a step check refuses counts from `limit` on. Saves every so many steps."""

    def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
        x = tf.get_variable("x", [], initializer=tf.zeros_initializer())
        count = tf.identity(x, name="count")

        def check(values: list[Any]) -> None:
            if (values[0] >= limit).any():
                raise InvalidArgumentError(None, None, f"count {values[0].max():g}")

        add_step_check([count], check)
        with tf.control_dependencies([count]):
            train_op = tf.group(tf.assign_add(x, 1.0), tf.assign_add(tf.train.get_global_step(), 1))
        return EstimatorSpec(mode, {"count": features * count}, count, train_op)

    config = RunConfig(save_checkpoints_steps=every, save_summary_steps=None)
    return Estimator(model_fn, model_dir, config)


class TestStepChecks:
    def test_raise_before_checkpoint(self, tmp_path: Path) -> None:
        """The step that is refused is the last before a checkpoint."""
        with pytest.raises(InvalidArgumentError, match="count 19"):
            refusing(tmp_path, limit=19, every=10).train(no_input, steps=50)
        saved = sorted(path.name for path in tmp_path.glob("model.ckpt-*") if path.is_dir())
        assert saved == ["model.ckpt-0", "model.ckpt-10"]

    def test_raise_before_hooks(self, tmp_path: Path) -> None:
        class EveryStep(tf.train.SessionRunHook):  # type: ignore[misc]
            def __init__(self) -> None:
                self.seen: list[float] = []

            def before_run(self, run_context: Any) -> Any:
                return tf.train.SessionRunArgs("count:0")

            def after_run(self, run_context: Any, run_values: Any) -> None:
                self.seen.append(run_values.results)

        hook, recorder = EveryStep(), Recorder()
        with pytest.raises(InvalidArgumentError, match="count 4"):
            refusing(tmp_path, limit=4, every=10).train(no_input, [hook, recorder], steps=50)
        assert hook.seen == recorder.losses == [0, 1, 2, 3]

    @pytest.mark.slow
    def test_apply_to_evaluation(self, tmp_path: Path) -> None:
        refusing(tmp_path, limit=6, every=10).train(no_input, steps=5)
        assert refusing(tmp_path, limit=6, every=10).evaluate(no_input)["loss"] == 5
        with pytest.raises(InvalidArgumentError, match="count 5"):
            refusing(tmp_path, limit=5, every=10).evaluate(no_input)

    def test_belong_to_graph_of_their_tensors(self) -> None:
        with Graph().as_default() as graph:
            added = add_step_check([tf.constant(1.0)], lambda values: None)
        assert step_checks(graph) == [added]
        assert step_checks(Graph()) == []


@pytest.mark.parametrize(
    ("losses", "moved", "expected"),
    [
        ([1, 2, 3], 3, [1, 2, 3]),
        ([1, 2, 3], 6, [1, 1, 2, 2, 3, 3]),
        ([1, 2, 6, 4, 5, 6], 2, [3, 5]),
        ([1, 3, 5], 2, [1, 4]),
        ([2, 4], 1, [3]),
        ([1, np.nan, 3, 4], 2, [np.nan, 3.5]),
    ],
)
def test_every_global_step_has_a_loss(
    losses: list[float], moved: int, expected: list[float]
) -> None:
    found = losses_by_count(np.array(losses, np.float32), moved)
    np.testing.assert_array_equal(found, np.array(expected, np.float32))
    assert found.dtype == np.float32


class TestGlobalStep:
    def test_is_created_once(self) -> None:
        assert tf.train.get_global_step() is None
        made = tf.train.create_global_step()
        assert tf.train.get_global_step() is made
        assert tf.train.get_or_create_global_step() is made
        assert (made.op.name, made.dtype, made.shape) == ("global_step", tf.int64, [])
        assert made in tf.global_variables()
        assert made not in tf.trainable_variables()
        with pytest.raises(ValueError, match='"global_step" already exists'):
            tf.train.create_global_step()

    def test_belongs_to_a_graph(self) -> None:
        graph = Graph()
        made = tf.train.get_or_create_global_step(graph)
        assert made.graph is graph
        assert tf.train.get_global_step() is None
        assert tf.train.get_global_step(graph) is made

    def test_has_same_name_in_any_scope(self) -> None:
        with tf.name_scope("outer"):
            assert tf.train.create_global_step().op.name == "global_step"

    def test_is_required_for_training(self) -> None:
        loss = tf.constant(1.0)
        session = Session()
        with pytest.raises(FailedPreconditionError, match="Global step should be created"):
            run_training(session, tf.no_op(), loss, [])
