"""`SyncReplicasOptimizer` in one process: TensorFlow's numbers, staleness, shutdown and failures.

Clusters of processes are in tests/distribute/test_sync_replicas.py.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit.compat.v1 as tf
from estimatorkit.core.errors import FailedPreconditionError, InvalidArgumentError
from tests.golden import snippets_sync_replicas as snippets
from tests.golden.golden_files import error_of
from tests.sweep import sweep
from tests.threads import StartedThreads

GOLDEN = json.loads(
    (Path(__file__).parents[2] / "golden" / "sync_replicas.json").read_text("utf-8")
)

# The op type that no single call can show (see test_ops.py): QueueReopen.

SOON = 60.0
"""Seconds within which all ends, where something else could be waited for two minutes long."""


@pytest.fixture(autouse=True)
def no_threads_are_left(threads: StartedThreads) -> Iterator[None]:
    with tf.Graph().as_default():
        yield
    assert threads.have_ended(), threads.running()


# -- as TensorFlow


@sweep("case", GOLDEN["trained"], quick=2)
def test_training_matches_tensorflow(case: str) -> None:
    golden = GOLDEN["trained"][case]
    optimizer, aggregated = ("sgd", 2) if case == "averaged" else case.split()
    found = snippets.trained(tf, optimizer, int(aggregated), averaged=case == "averaged")
    values, expected = found.pop("values"), golden.pop("values")
    assert found == golden
    assert values.keys() == expected.keys()
    for number, wanted in expected.items():
        for value, each in zip(values[number], wanted, strict=True):
            np.testing.assert_allclose(value, each, atol=1e-6, rtol=1e-6)


def test_accumulator_and_queue_names_match_tensorflow() -> None:
    assert snippets.handles(tf) == GOLDEN["handles"]


@pytest.mark.parametrize("name", [each for each in snippets.ERRORS if each != "no gradients"])
def test_errors_match_tensorflow(name: str) -> None:
    assert error_of(lambda: snippets.fail(tf, name)) == GOLDEN["errors"][name]


def test_slots_belong_to_inner_optimizer() -> None:
    variable = tf.get_variable("x", [], initializer=tf.ones_initializer())
    optimizer = tf.train.SyncReplicasOptimizer(tf.train.MomentumOptimizer(0.1, 0.9), 1)
    optimizer.minimize(variable * 2.0, tf.train.get_or_create_global_step())
    assert optimizer.get_slot(variable, "momentum").op.name == "x/Momentum"
    assert [each.op.name for each in optimizer.variables()] == ["x/Momentum"]


def test_repeated_rows_are_one_gradient() -> None:
    """The mean of a row is over the gradients that hold it, however often they do."""
    table = tf.get_variable("table", [3, 1], initializer=tf.zeros_initializer())
    rows = tf.placeholder(tf.int32, [None])
    optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(1.0), 2, 1)
    loss = tf.reduce_sum(tf.gather(table, rows))
    train_op = optimizer.minimize(loss, tf.train.get_or_create_global_step())
    hook = optimizer.make_session_run_hook(True, num_tokens=1)
    with tf.train.MonitoredTrainingSession(hooks=[hook]) as session:
        session.run(train_op, {rows: [2, 0, 2]})
        session.run(train_op, {rows: [1, 2]})
        assert session.run(table).ravel().tolist() == [-1.0, -1.0, -1.5]


# -- replicas


class Replica:
    """A replica in a thread: a graph of its own, variables that all share.

    Args:
        target: of the session.
        number: 0 for the chief.
        aggregated, total: see `SyncReplicasOptimizer`.
    """

    def __init__(self, target: str, number: int, aggregated: int, total: int) -> None:
        with tf.Graph().as_default():
            step = tf.train.get_or_create_global_step()
            self.weights = tf.get_variable("w", [2], initializer=tf.zeros_initializer())
            self.gradient = tf.placeholder(tf.float32, [2])
            optimizer = tf.train.SyncReplicasOptimizer(
                tf.train.GradientDescentOptimizer(1.0), aggregated, total
            )
            with tf.name_scope(f"replica_{number}"):  # the step of each is its own
                pairs = [(self.gradient, self.weights)]
                self.train_op = optimizer.apply_gradients(pairs, step)
            hook = optimizer.make_session_run_hook(number == 0, num_tokens=0)
            self.session = tf.train.MonitoredTrainingSession(target, number == 0, hooks=[hook])
        self._thread = ThreadPoolExecutor(1)

    def step(self, *gradient: float) -> Future[Any]:
        """Begins a step; its result is the number of the next."""
        return self._thread.submit(self.session.run, self.train_op, {self.gradient: gradient})

    @property
    def values(self) -> list[float]:
        found: list[float] = self.session._tf_sess().run(self.weights).tolist()
        return found

    def close(self) -> None:
        """Ends its session."""
        self.session.close()
        self._thread.shutdown()


@pytest.mark.slow
def test_stale_gradients_are_dropped() -> None:
    target = tf.train.Server.create_local_server().target
    chief, fast, slow = (Replica(target, number, 2, 3) for number in range(3))
    first = [chief.step(1, 0), fast.step(3, 0)]
    assert [each.result(SOON) for each in first] == [1, 1]
    assert slow.step(1000, 1000).result(SOON) == 1
    assert chief.values == [-2, 0]
    second = [fast.step(0, 2), slow.step(0, 6)]
    assert [each.result(SOON) for each in second] == [2, 2]
    assert chief.values == [-2, -4]
    assert chief.step(1000, 1000).result(SOON) == 2
    assert chief.values == [-2, -4]
    for each in (fast, slow, chief):
        each.close()


def test_end_of_chief_releases_waiting_workers() -> None:
    target = tf.train.Server.create_local_server().target
    chief, other = (Replica(target, number, 2, 2) for number in range(2))
    waiting = other.step(1, 1)
    with pytest.raises(TimeoutError):
        waiting.result(0.2)
    chief.close()
    assert isinstance(waiting.exception(SOON), tf.errors.OutOfRangeError)
    other.close()


def test_ended_replica_leaves_work_to_others() -> None:
    target = tf.train.Server.create_local_server().target
    chief, other = (Replica(target, number, 2, 2) for number in range(2))
    first = [chief.step(1, 0), other.step(3, 0)]
    assert [each.result(SOON) for each in first] == [1, 1]
    other.close()
    assert chief.step(0, 1).result(SOON) == 1  # the token that the other did not use
    assert chief.step(0, 3).result(SOON) == 2
    assert chief.values == [-2, -2]
    chief.close()


@pytest.mark.slow
def test_target_serves_second_training() -> None:
    """The queue that the first one has closed is not in its way; nor are its gradients."""
    target = tf.train.Server.create_local_server().target
    for gradient in (1.0, 10.0):
        chief = Replica(target, 0, 1, 1)
        assert [chief.step(gradient, 0).result(SOON) for _ in range(3)] == [1, 2, 3]
        assert chief.values == [-3 * gradient, 0]
        chief.close()


# -- one process


def model(optimizer: Any, waits_for: Any = ()) -> Any:
    """An operation that trains."""
    weights = tf.get_variable("w", [2], initializer=tf.ones_initializer())
    with tf.control_dependencies(list(waits_for)):
        loss = tf.reduce_sum(tf.square(weights))
        return optimizer.minimize(loss, tf.train.get_or_create_global_step())


def synchronous(aggregated: int = 1) -> Any:
    """An optimizer of one replica."""
    return tf.train.SyncReplicasOptimizer(
        tf.train.GradientDescentOptimizer(0.1), aggregated, total_num_replicas=1
    )


@pytest.mark.slow
def test_step_dependencies_run_once() -> None:
    counter = tf.get_variable("counter", [], initializer=tf.zeros_initializer())
    optimizer = synchronous()
    train_op = model(optimizer, [counter.assign_add(1.0)])
    hook = optimizer.make_session_run_hook(True, num_tokens=0)
    with tf.train.MonitoredTrainingSession(hooks=[hook]) as session:
        assert [session.run(train_op) for _ in range(5)] == [1, 2, 3, 4, 5]
        assert session.run(counter) == 5


def test_stopping_hook_ends_at_its_step() -> None:
    optimizer = synchronous(3)
    train_op = model(optimizer)
    hooks = [optimizer.make_session_run_hook(True), tf.train.StopAtStepHook(last_step=4)]
    final = tf.train.FinalOpsHook(tf.train.get_global_step())
    started = time.monotonic()
    with tf.train.MonitoredTrainingSession(hooks=[*hooks, final]) as session:
        while not session.should_stop():
            session.run(train_op)
    assert final.final_ops_values == 4
    assert time.monotonic() - started < SOON


class Refusing(tf.train.GradientDescentOptimizer):  # type: ignore[misc, name-defined]
    """Updates that fail."""

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        with tf.control_dependencies([tf.Assert(False, ["refused"])]):
            return super()._apply_dense(grad, var)


def test_update_error_is_raised_in_training() -> None:
    optimizer = tf.train.SyncReplicasOptimizer(Refusing(0.1), 1)
    train_op = model(optimizer)
    hook = optimizer.make_session_run_hook(True, num_tokens=0)
    session = tf.train.MonitoredTrainingSession(hooks=[hook])
    session.run(train_op)  # gives gradients; what comes of them is known later
    with pytest.raises(InvalidArgumentError, match="refused"):
        session.run(train_op)
    session.close()


def test_uninitialized_variables_are_named() -> None:
    optimizer = synchronous()
    model(optimizer)
    hook = optimizer.make_session_run_hook(True)
    hook.begin()
    with tf.Session() as session, pytest.raises(RuntimeError, match=r"not initialized: .*w"):
        hook.after_create_session(session, None)


def test_without_hook() -> None:
    """The program of a chief with a plain session."""
    optimizer = synchronous()
    train_op = model(optimizer)
    coordinator = tf.train.Coordinator()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        with pytest.raises(FailedPreconditionError, match="sync_rep_local_step"):
            session.run(train_op)
        session.run(optimizer.chief_init_op)
        session.run(optimizer.get_init_tokens_op(0))
        runner = optimizer.get_chief_queue_runner()
        threads = runner.create_threads(session, coordinator, daemon=True, start=True)
        # The gradients of the run that failed may be there: it fails after them.
        steps = [session.run(train_op) for _ in range(4)]
        assert sorted(steps) == steps
        coordinator.request_stop()
        coordinator.join(threads, stop_grace_period_secs=SOON)
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run([train_op])


def test_supervisor_runs_chief_thread() -> None:
    optimizer = synchronous()
    train_op = model(optimizer)
    tokens = optimizer.get_init_tokens_op(0)
    runner = optimizer.get_chief_queue_runner()
    supervisor = tf.train.Supervisor(
        local_init_op=optimizer.chief_init_op,
        ready_for_local_init_op=optimizer.ready_for_local_init_op,
    )
    started = time.monotonic()
    with supervisor.managed_session() as session:
        session.run(tokens)
        supervisor.start_queue_runners(session, [runner])
        assert [session.run(train_op) for _ in range(3)] == [1, 2, 3]
    assert time.monotonic() - started < SOON


# -- estimators


def estimator(folder: Path, make: Any, **config: Any) -> Any:
    """A linear model; `make` gives an optimizer and the hooks that it needs."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        weights = tf.get_variable("w", [2], initializer=tf.zeros_initializer())
        loss = tf.reduce_mean(tf.square(tf.reduce_sum(features * weights, 1) - labels))
        optimizer, hooks = make()
        return tf.estimator.EstimatorSpec(
            mode,
            loss=loss,
            train_op=optimizer.minimize(loss, tf.train.get_global_step()),
            training_hooks=hooks,
        )

    run_config = tf.estimator.RunConfig(str(folder), save_summary_steps=None, **config)
    return tf.estimator.Estimator(model_fn, config=run_config)


def data() -> Any:
    """Batches of one size."""
    rng = np.random.default_rng(3)
    features = rng.normal(size=(60, 2)).astype(np.float32)
    labels = (features @ [1.0, -2.0]).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((features, labels)).batch(4)


def made(aggregated: int = 1, inner: Any = tf.train.GradientDescentOptimizer) -> Any:
    """An optimizer with its hook."""
    optimizer = tf.train.SyncReplicasOptimizer(inner(0.1), aggregated, 1)
    return optimizer, [optimizer.make_session_run_hook(True, num_tokens=aggregated - 1)]


@pytest.mark.slow
def test_estimator_trains_alone(tmp_path: Path) -> None:
    alone = estimator(tmp_path / "alone", made).train(data, steps=6).train(data, steps=6)
    plain = estimator(tmp_path / "plain", lambda: (tf.train.GradientDescentOptimizer(0.1), []))
    plain.train(data, steps=6).train(data, steps=6)
    assert alone.get_variable_value("global_step") == 12
    np.testing.assert_allclose(
        alone.get_variable_value("w"), plain.get_variable_value("w"), atol=1e-6
    )


@pytest.mark.slow
def test_several_batches_equal_one_large_batch(tmp_path: Path) -> None:
    several = estimator(tmp_path / "several", lambda: made(3)).train(data, max_steps=5)
    plain = estimator(tmp_path / "plain", lambda: (tf.train.GradientDescentOptimizer(0.1), []))
    plain.train(lambda: data().unbatch().batch(12), max_steps=5)
    assert several.get_variable_value("global_step") == 5
    np.testing.assert_allclose(
        several.get_variable_value("w"), plain.get_variable_value("w"), atol=1e-6
    )


@pytest.mark.slow
def test_estimator_hooks_in_train(tmp_path: Path) -> None:
    optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.1), 1)
    columns = [tf.feature_column.numeric_column("x", 2)]
    config = tf.estimator.RunConfig(str(tmp_path), save_summary_steps=None)
    model = tf.estimator.LinearRegressor(columns, optimizer=optimizer, config=config)
    hook = optimizer.make_session_run_hook(True, num_tokens=0)

    def batches() -> Any:
        return data().map(lambda features, labels: ({"x": features}, labels[:, None]))

    for step in (7, 14):
        model.train(batches, hooks=[hook], max_steps=step)
        assert model.get_variable_value("global_step") == step


@pytest.mark.slow
def test_estimator_reports_update_error(tmp_path: Path) -> None:
    refusing = estimator(tmp_path, lambda: made(inner=Refusing))
    with pytest.raises(InvalidArgumentError, match="refused"):
        refusing.train(data, steps=6)
