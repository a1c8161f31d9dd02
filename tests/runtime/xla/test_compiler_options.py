"""What XLA is told about a segment, and for all of a process."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import jax
import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.runtime.plan import Segment, make_plan
from estimatorkit.runtime.xla.compiler_options import (
    LARGE_BESIDE_CONVOLUTIONS,
    LARGE_BESIDE_LOOPS,
    LARGE_IN_PLACE,
    LARGE_VARIABLE,
    MANY,
    options_for,
    updates_apart,
)
from estimatorkit.runtime.xla.flags import compile_without_strength_reduction
from estimatorkit.runtime.xla.processors import processors

pytestmark = pytest.mark.skipif(jax.default_backend() != "cpu", reason="options of CPUs")

MLIR: dict[str, int] = {"xla_cpu_parallel_codegen_split_count": min(processors(), 32)}
LLVM = {**MLIR, "xla_cpu_use_fusion_emitters": False}
MODULE = "estimatorkit.runtime.xla.flags"
ALONE = "--xla_backend_extra_options=xla_cpu_disable_loop_unrolling"


@pytest.fixture(autouse=True)
def graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        ([(3,)], LLVM),
        ([(3,)] * (MANY - 1), LLVM),
        ([(3,)] * MANY, MLIR),
        ([(3,)] * MANY + [(4,)], LLVM),
        ([(3,)] * MANY + [(4,)] * MANY, MLIR),
        ([(3,), (LARGE_VARIABLE // 4,)], LLVM),
        ([(3,), (LARGE_VARIABLE // 4 + 1,)], MLIR),
    ],
)
def test_emitters(shapes: Sequence[tuple[int, ...]], expected: dict[str, int]) -> None:
    variables = [tf.get_variable(f"v{at}", shape) for at, shape in enumerate(shapes)]
    step = tf.group(*[variable.assign_add(variable * 2.0) for variable in variables])
    with tf.Session() as session:
        (segment,) = session.plan(step).segments
    assert options_for(segment) == expected


@pytest.mark.parametrize(
    ("size", "expected"), [(LARGE_IN_PLACE // 4, LLVM), (LARGE_IN_PLACE, MLIR)]
)
def test_emitters_of_updates_in_place(size: int, expected: dict[str, int]) -> None:
    step = tf.get_variable("v", [size]).assign_add(tf.ones([size]))
    with tf.Session() as session:
        (segment,) = session.plan(step.op).segments
    assert options_for(segment, in_place=True) == expected
    assert options_for(segment) == LLVM


@pytest.mark.parametrize(
    ("size", "in_place", "expected"),
    [
        (LARGE_BESIDE_CONVOLUTIONS // 4, False, LLVM),
        (LARGE_BESIDE_CONVOLUTIONS // 4 + 1, False, MLIR),
        (LARGE_IN_PLACE, True, MLIR),
    ],
)
def test_emitters_of_convolutions(size: int, in_place: bool, expected: dict[str, int]) -> None:
    images = tf.placeholder(tf.float32, [None, 9, 9, 3])
    convolved = tf.nn.conv2d(images, tf.ones([3, 3, 3, 4]), 1, "SAME")
    step = tf.get_variable("v", [size]).assign_add(tf.fill([size], tf.reduce_sum(convolved)))
    with tf.Session() as session:
        (segment,) = session.plan(step.op, [images]).segments
    assert options_for(segment, in_place=in_place) == expected


def test_segments_that_update_nothing_stay_with_mlir() -> None:
    with tf.Session() as session:
        (segment,) = session.plan(tf.get_variable("v", (3,)) * 2.0).segments
    assert options_for(segment) == MLIR


@pytest.mark.parametrize(
    ("size", "expected"),
    [(None, LLVM), (LARGE_BESIDE_LOOPS // 4, LLVM), (LARGE_BESIDE_LOOPS, MLIR)],
)
def test_emitters_of_loops(size: int | None, expected: dict[str, int]) -> None:
    start = tf.placeholder(tf.float32, [])
    fetches = [tf.while_loop(lambda x: x < 9.0, lambda x: x * 2.0, [start])]
    if size is not None:
        fetches.append(tf.get_variable("v", [size]).assign_add(tf.ones([size])).op)
    with tf.Session() as session:
        (segment,) = session.plan(fetches, [start]).segments
    options = options_for(segment)
    assert options is not None
    assert options.pop("xla_cpu_scheduler_type") == "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"
    assert options == expected


@pytest.mark.parametrize(
    ("before", "machine", "jaxlib", "accelerator", "after"),
    [
        (ALONE, "x86_64", "0.10.2", None, f"{ALONE},-disable-lsr"),
        (f"{ALONE},-disable-lsr", "x86_64", "0.10.2", None, f"{ALONE},-disable-lsr"),
        (f"{ALONE} --another", "x86_64", "0.10.2", None, f"{ALONE},-disable-lsr --another"),
        ("--xla_backend_extra_options=theirs", "x86_64", "0.10.2", None, None),
        (ALONE, "aarch64", "0.10.2", None, None),
        (ALONE, "x86_64", "0.11.0", None, None),
        (ALONE, "x86_64", "0.10.2", "jax_plugins", None),
        (ALONE, "x86_64", "0.10.2", "libtpu", None),
    ],
)
def test_strength_reduction(
    monkeypatch: pytest.MonkeyPatch,
    before: str,
    machine: str,
    jaxlib: str,
    accelerator: str | None,
    after: str | None,
) -> None:
    monkeypatch.setenv("XLA_FLAGS", before)
    monkeypatch.setattr("platform.machine", lambda: machine)
    monkeypatch.setattr("jaxlib.version.__version__", jaxlib)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name == accelerator or None)
    compile_without_strength_reduction()
    assert os.environ["XLA_FLAGS"] == (after or before)


def segment() -> Segment:
    """A device segment that updates nothing."""
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [None, 2])
        plan = make_plan(graph, [tf.tanh(x)], [], [x])
    (found,) = plan.segments
    return found


def test_what_runs_a_few_times_is_optimized_little() -> None:
    often, few = options_for(segment()), options_for(segment(), few_runs=True)
    assert often == MLIR
    assert few is not None
    assert few["xla_backend_optimization_level"] == 0


def test_xla_accepts_the_options() -> None:
    options = options_for(segment(), few_runs=True)
    assert jax.jit(lambda x: x + 1, compiler_options=options)(1) == 2


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
