"""Steps without hooks run as those with hooks did, where a loop would compile the network again."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.train import training
from estimatorkit.train.hooks.hooks import SessionRunArgs, SessionRunHook
from tests.train import toy

STEPS = 12


class Fetching(SessionRunHook):
    """Fetches a tensor with the first step and every fifth after it."""

    def __init__(self, fetched: Any) -> None:
        self.fetched = fetched
        self.results: list[Any] = []

    def next_control_step(self, global_step: int) -> int:
        return -(-global_step // 5) * 5 + 1

    def before_run(self, run_context: Any) -> SessionRunArgs:
        return SessionRunArgs(self.fetched)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        self.results.append(run_values.results)


def trained(*, convolution: bool = True, fetch: Any = lambda loss: loss * 2) -> tuple[Any, ...]:
    """The last loss, the hook's results and what was compiled."""
    model, session = toy.session_of(toy.dataset(42), convolution=convolution)
    with session, session.graph.as_default():
        hook = Fetching(fetch(model.loss))
        stop = tf.train.StopAtStepHook(num_steps=STEPS)
        for each in (hook, stop):
            each.begin()
            each.after_create_session(session, None)
        last = training.run_training(session, model.train_op, model.loss, [hook, stop])
        return last, hook.results, Counter(session.state.compilations)


def loops(compilations: Counter[str]) -> int:
    return compilations["train_step"]


def test_convolutions_are_compiled_once() -> None:
    last, results, compilations = trained()
    assert loops(compilations) == 0
    assert len(results) == 3
    assert np.isfinite(results).all()
    assert last is not None


def test_results_are_those_of_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    last, results, _ = trained()
    monkeypatch.setattr(training, "LIKE_HOOKED", 0)
    expected, theirs, compilations = trained()
    assert loops(compilations) == 1
    np.testing.assert_allclose(last, expected, rtol=1e-5)
    np.testing.assert_allclose(results, theirs, rtol=1e-5)


def test_loop_takes_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "LIKE_HOOKED", 3)
    _, results, compilations = trained()
    assert loops(compilations) == 1
    assert len(results) == 3


def test_steps_of_one_call_stay_in_their_loop() -> None:
    assert loops(trained(convolution=False)[-1]) == 1


@pytest.mark.parametrize(
    "fetch",
    [
        lambda loss: tf.fill([1 << 19], loss),
        lambda loss: tf.strings.as_string(loss),
        lambda loss: tf.add_n([tf.exp(loss * (1.0 + n)) for n in range(21)]),
        lambda loss: tf.nn.conv2d(tf.fill([1, 4, 4, 1], loss), tf.ones([2, 2, 1, 1]), 1, "SAME"),
    ],
    ids=["large", "host", "long", "convolution"],
)
def test_what_hooks_need_is_not_computed_in_vain(fetch: Any) -> None:
    assert loops(trained(fetch=fetch)[-1]) == 1


@pytest.mark.parametrize(
    "fetch",
    [
        lambda loss: tf.train.get_or_create_global_step().assign_add(0),
        lambda loss: tf.cond(loss > 0.0, lambda: tf.random_uniform([]), lambda: loss),
        lambda loss: tf.random_uniform([]),
    ],
    ids=["assignment", "random numbers in a function", "random numbers"],
)
def test_what_changes_state_runs_as_often_as_hooks_ask(fetch: Any) -> None:
    assert loops(trained(fetch=fetch)[-1]) == 1
