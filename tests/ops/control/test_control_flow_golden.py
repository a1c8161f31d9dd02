"""Control flow, functions and gradients against TensorFlow's results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from tests.golden.golden_files import error_of
from tests.golden.golden_values import plain
from tests.golden.snippets_control_flow import ARRAYS, GRAPHS, LEGACY, REFUSALS, STATE
from tests.sweep import sweep

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "control_flow.json").read_text("utf-8"))


def run(program: Any) -> Any:
    """What a program gives in a graph of its own, or its error."""
    found: list[Any] = []

    def action() -> None:
        with tf.Graph().as_default(), tf.Session() as session:
            found.append(plain(program(tf, session)))

    error = error_of(action)
    return {"error": error} if error else found[0]


def assert_same(found: Any, wanted: Any) -> None:
    """Equal but for the last digits of floating numbers; errors of one class."""
    if isinstance(wanted, list):
        assert isinstance(found, list)
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            assert_same(one, other)
    elif isinstance(wanted, dict) and "error" in wanted:
        subclasses = {"InaccessibleTensorError": "ValueError"}  # TensorFlow's is private
        name = wanted["error"]["class"]
        assert found["error"]["class"] == subclasses.get(name, name), found
    elif isinstance(wanted, dict):
        assert "error" not in found, found
        assert (found["dtype"], found["shape"]) == (wanted["dtype"], wanted["shape"])
        if wanted["dtype"].startswith("float"):
            numbers = [np.array([float(each) for each in v["values"]]) for v in (found, wanted)]
            np.testing.assert_allclose(*numbers, rtol=1e-5, atol=1e-6)
        else:
            assert found["values"] == wanted["values"]
    else:
        assert found == wanted


@sweep("name", STATE, quick=4)
def test_state_in_bodies(name: str) -> None:
    assert_same(run(STATE[name]), GOLDEN["state"][name])


@pytest.mark.parametrize("name", sorted(GRAPHS.keys() - LEGACY))
def test_loops_gradients_and_graphs(name: str) -> None:
    assert_same(run(GRAPHS[name]), GOLDEN["graphs"][name])


@pytest.mark.parametrize("name", ARRAYS)
def test_tensor_arrays(name: str) -> None:
    assert_same(run(ARRAYS[name]), GOLDEN["arrays"][name])


@pytest.mark.parametrize("name", sorted(REFUSALS.keys() - LEGACY))
def test_errors(name: str) -> None:
    assert_same(run(REFUSALS[name]), GOLDEN["refusals"][name])


def test_condition_reads_assignments_of_body() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("v", initializer=1.0)

        def body(i: Any) -> Any:
            with tf.control_dependencies([v.assign_add(1.0)]):
                return i + 1

        looped = tf.while_loop(lambda i: v < 4.0, body, [0])
        session.run(tf.global_variables_initializer())
        assert session.run(looped) == 3
        assert session.run(v) == 4


@pytest.mark.slow
def test_gradient_of_reads_between_assignments() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("v", initializer=1.0)

        def body(i: Any, x: Any) -> Any:
            with tf.control_dependencies([v.assign(v * 2.0)]):
                return i + 1, x * v

        product = tf.while_loop(lambda i, _: i < 3, body, [0, 2.0])[1]
        (gradient,) = tf.gradients(product, v)
        session.run(tf.global_variables_initializer())
        # 2 * 2 * 4 * 8, and that times 1/2 + 1/4 + 1/8
        np.testing.assert_allclose(session.run([product, gradient]), [128, 112])


def test_case_with_single_false_predicate_raises() -> None:
    only = tf.case([(tf.constant(False), lambda: tf.constant(3))])
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="None of"):
        session.run(only)
    assert tf.Session().run(tf.case([(tf.constant(True), lambda: tf.constant(3))])) == 3


def test_operators_of_bool_and_integer_variables() -> None:
    flags, numbers = tf.Variable([False, True]), tf.Variable([1, 2])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = session.run([flags & [True, True], [True, True] | flags, ~flags, numbers & [3, 2]])
    expected = [[False, True], [True, True], [True, False], [1, 2]]
    assert [each.tolist() for each in found] == expected
