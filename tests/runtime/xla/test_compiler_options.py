"""XLA's options for a segment, and where new values of variables are written."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.runtime.xla.compiler_options import LARGE_VARIABLE, options_for, updates_apart

on_cpu = pytest.mark.skipif(jax.default_backend() != "cpu", reason="options are those of CPUs")


@on_cpu
@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize(("floats", "in_place"), [(LARGE_VARIABLE // 4 + 1, True), (1000, False)])
def test_large_variables_alone_are_updated_in_place(floats: int, in_place: bool) -> None:
    variable = tf.get_variable("v", [floats], initializer=tf.zeros_initializer())
    step = variable.assign_sub(tf.sqrt(variable + 2.0))
    with tf.Session() as session:
        session.run(variable.initializer)
        session.run(step.op)
        segment = session.plan(step.op).segments[-1]
        assert updates_apart(options_for(segment)) is not in_place
        before = session.state.values["v"]
        session.run(step.op)
        assert before.is_deleted() is in_place
        expected = -np.sqrt(2.0) - np.sqrt(2.0 - np.sqrt(2.0))
        np.testing.assert_allclose(session.run(variable)[:3], expected, rtol=1e-6)
