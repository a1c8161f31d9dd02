"""XLA's options for segments on CPUs."""

from __future__ import annotations

import jax
import pytest

import estimatorkit as tf
from estimatorkit.runtime.plan import Segment, make_plan
from estimatorkit.runtime.xla.compiler_options import options_for

pytestmark = pytest.mark.skipif(jax.default_backend() != "cpu", reason="options of CPUs")


def segment() -> Segment:
    """A device segment that updates nothing."""
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None, 2])
        plan = make_plan(graph, [tf.tanh(x)], [], [x])
    (found,) = plan.segments
    return found


def test_what_runs_a_few_times_is_optimized_little() -> None:
    often, few = options_for(segment()), options_for(segment(), few_runs=True)
    assert often == {}
    assert few is not None
    assert few["xla_backend_optimization_level"] == 0


def test_xla_accepts_the_options() -> None:
    options = options_for(segment(), few_runs=True)
    assert jax.jit(lambda x: x + 1, compiler_options=options)(1) == 2
