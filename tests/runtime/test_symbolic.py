"""Segments that are traced once for all sizes compute what they do when traced for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
from jax.extend.core import ClosedJaxpr, check_jaxpr

import estimatorkit as tf
from estimatorkit.core.conversion import constant
from estimatorkit.core.gradients import gradients
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.registry import lookup
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.x64 import x64
from estimatorkit.ops.math.elementwise import add_n
from estimatorkit.ops.math.reduce import reduce_sum
from estimatorkit.runtime.interpreter.control import Faulted
from estimatorkit.runtime.interpreter.floats import as_xla
from estimatorkit.runtime.interpreter.table import program_of
from estimatorkit.runtime.lower import state_names, traced_function
from estimatorkit.runtime.plan import Segment
from estimatorkit.runtime.session import Session
from estimatorkit.runtime.symbolic import SymbolicTrace, symbolic_trace
from estimatorkit.runtime.xla.collected_faults import collect
from estimatorkit.runtime.xla.jaxpr_optimizer import rewritten
from tests.ops.test_ops import (
    Example,
    _real_parts,
    apply,
    differentiable,
    examples,
    fed,
    gradient_examples,
    reads_a_handle,
)
from tests.runtime.sized_jaxprs import at_sizes
from tests.sweep import sweep

Feeds = Mapping[Tensor, Any]


class Step(NamedTuple):
    """The only device segment of a run."""

    segment: Segment
    static: dict[Tensor, Any]
    state: list[Any]

    @staticmethod
    def of(session: Session, fetches: Sequence[Any], feeds: Feeds) -> Step | None:
        """The step; None if the run needs none, or the host as well."""
        plan = session.plan(fetches, list(feeds))
        if [each.place for each in plan.segments] != ["device"]:
            return None
        (segment,) = plan.segments
        state = [
            np.array([1, 2, 0], np.uint32)
            if name in segment.random
            else np.asarray(session.state.values[name])
            for name in state_names(segment)
        ]
        return Step(segment, {tensor: feeds[tensor] for tensor in segment.static_inputs}, state)

    def inputs(self, feeds: Feeds) -> list[Any]:
        return [
            np.asarray(feeds[tensor]) if tensor in feeds else tensor.op.attrs["value"]
            for tensor in self.segment.inputs
            if tensor not in self.static
        ]

    def trace(self, feeds: Feeds) -> SymbolicTrace | str:
        return symbolic_trace(self.segment, self.static, self.inputs(feeds), self.state)

    def compare(self, trace: SymbolicTrace, feeds: Feeds) -> bool:
        """Whether the trace is valid for these inputs: then its results are the segment's."""
        given = [*self.inputs(feeds), *jax.tree.leaves(self.state)]
        values = trace.values([np.shape(each) for each in given])
        if values is None:
            return False
        at = at_sizes(trace.jaxpr, values)
        function = traced_function(self.segment, self.static)
        with x64() if self.segment.wide else nullcontext():
            check_jaxpr(at.jaxpr)
            wanted = jax.make_jaxpr(function)(self.inputs(feeds), self.state)
            for found, result in zip(run(at, given), run(wanted, given), strict=True):
                assert (found.shape, found.dtype) == (result.shape, result.dtype)
                np.testing.assert_allclose(found, result, rtol=2e-4, atol=2e-5)
        return True


def run(closed: ClosedJaxpr, given: Sequence[Any]) -> list[Any]:
    """In NumPy: XLA would compile each primitive for its shapes, which takes ten times as long."""
    try:
        with as_xla():
            return list(map(np.asarray, program_of(closed)(*map(np.asarray, given))))
    except Faulted:  # what the operations refuse stays in the results
        return list(map(np.asarray, jax.core.eval_jaxpr(closed.jaxpr, closed.consts, *given)))


# -- training steps

Made = tuple[Tensor, Callable[..., Feeds]]
RNG = np.random.default_rng(0)


def floats(*shape: int) -> Any:
    return RNG.random(shape, np.float32)


def layers() -> Made:
    x, y = tf.placeholder(tf.float32, [None, 10]), tf.placeholder(tf.int32, [None])
    hidden = tf.layers.dropout(tf.layers.dense(x, 16, tf.nn.relu), training=True)
    loss = tf.losses.sparse_softmax_cross_entropy(y, tf.layers.dense(hidden, 3))
    return loss, lambda n, m: {x: floats(n, 10), y: RNG.integers(0, 3, n).astype(np.int32)}


def convolutions() -> Made:
    x = tf.placeholder(tf.float32, [None, 12, 12, 3])
    hidden = tf.layers.conv2d(x, 8, 3, padding="same")
    hidden = tf.layers.max_pooling2d(tf.layers.batch_normalization(hidden, training=True), 2, 2)
    hidden = tf.layers.flatten(tf.layers.conv2d(hidden, 8, 3, strides=2))
    return tf.reduce_mean(tf.square(hidden)), lambda n, m: {x: floats(n, 12, 12, 3)}


def rows_of_a_table() -> Made:
    x = tf.placeholder(tf.int32, [None, None])
    table = tf.get_variable("table", [50, 8])
    rows = tf.reduce_mean(tf.nn.embedding_lookup(table, x), 1)
    return tf.reduce_sum(tf.square(rows)), lambda n, m: {
        x: RNG.integers(0, 50, (n, m)).astype(np.int32)
    }


def shapes_as_values() -> Made:
    x, w = tf.placeholder(tf.float32, [None, None, 4]), tf.get_variable("w", [4, 6])
    n, m = tf.shape(x)[0], tf.shape(x)[1]
    flat = tf.reshape(x, [n * m, 4])
    parts = tf.transpose(tf.reshape(tf.matmul(flat, w), [n, m, 2, 3]), [0, 2, 1, 3])
    scores = tf.nn.softmax(tf.matmul(parts, parts, transpose_b=True))
    causal = tf.linalg.band_part(tf.ones([m, m]), -1, 0)
    mean = tf.reduce_sum(scores * causal) / tf.cast(n * m, tf.float32)
    return mean + tf.cast(tf.range(m)[-1], tf.float32), lambda n, m: {x: floats(n, m, 4)}


def loops() -> Made:
    x, w = tf.placeholder(tf.float32, [None, 4]), tf.get_variable("w", [4, 4])
    array = tf.TensorArray(tf.float32, tf.shape(x)[0])

    def body(at: Any, row: Any, array: Any) -> Any:
        row = tf.tanh(tf.matmul(row, w) + x[at][None] / tf.cast(tf.size(x), tf.float32))
        return at + 1, row, array.write(at, row[0])

    _, _, array = tf.while_loop(
        lambda at, *_: at < tf.shape(x)[0], body, [0, tf.zeros([1, 4]), array]
    )
    total = tf.scan(lambda one, row: one * 0.5 + tf.tanh(row * w[0]), array.stack())
    return tf.reduce_sum(total), lambda n, m: {x: floats(n, 4)}


def branches() -> Made:
    x, w = tf.placeholder(tf.float32, [None, 4]), tf.get_variable("w", [4])
    found = tf.cond(
        tf.reduce_sum(x) > 9.0,
        lambda: x * w + tf.zeros(tf.shape(x)),
        lambda: tf.tile(w[None], [tf.shape(x)[0], 1]),
    )
    return tf.reduce_sum(tf.square(found)), lambda n, m: {x: floats(n, 4)}


@pytest.mark.parametrize(
    "make", [layers, convolutions, rows_of_a_table, shapes_as_values, loops, branches]
)
def test_training_steps_are_traced_once(make: Callable[[], Made]) -> None:
    with Graph().as_default(), Session() as session:
        loss, feeds = make()
        train = tf.train.AdagradOptimizer(0.1).minimize(loss)
        session.run(tf.global_variables_initializer())
        step = Step.of(session, [train, loss], feeds(5, 7))
        assert step is not None
        trace = step.trace(feeds(5, 7))
        assert isinstance(trace, SymbolicTrace), trace
        for n, m in ((5, 7), (7, 6), (3, 2), (32, 9), (4, 2)):
            assert step.compare(trace, feeds(n, m))
        assert trace.values([(1,)] * len(trace.shapes)) is None


def test_branches_of_python_are_for_the_sizes_that_take_them() -> None:
    with Graph().as_default(), Session() as session:
        x = tf.placeholder(tf.float32, [None])
        more = tf.cond(tf.shape(x)[0] > 4, lambda: x * 2.0, lambda: x)
        step = Step.of(session, [more], {x: floats(6)})
        assert step is not None
        trace = step.trace({x: floats(6)})
        assert isinstance(trace, SymbolicTrace)
        valid = [step.compare(trace, {x: floats(n)}) for n in (1, 2, 4, 5, 6, 9)]
        assert valid == [False, False, False, True, True, True]


def test_equal_dimensions_are_one_symbol_and_broadcast_ones_are_numbers() -> None:
    with Graph().as_default(), Session() as session:
        x, y = (tf.placeholder(tf.float32, [None, 3]) for _ in range(2))
        step = Step.of(session, [x - y], {x: floats(6, 3), y: floats(6, 3)})
        assert step is not None
        trace = step.trace({x: floats(6, 3), y: floats(6, 3)})
        assert isinstance(trace, SymbolicTrace)
        assert len(trace.symbols) == 1
        assert step.compare(trace, {x: floats(8, 3), y: floats(8, 3)})
        for n, m in ((8, 1), (1, 8), (1, 1), (8, 7)):
            assert not step.compare(trace, {x: floats(n, 3), y: floats(m, 3)})
        trace = step.trace({x: floats(6, 3), y: floats(1, 3)})
        assert isinstance(trace, SymbolicTrace)
        assert step.compare(trace, {x: floats(8, 3), y: floats(1, 3)})
        assert not step.compare(trace, {x: floats(8, 3), y: floats(8, 3)})


def test_sizes_that_cannot_be_reshaped_are_not_valid() -> None:
    with Graph().as_default(), Session() as session:
        x = tf.placeholder(tf.float32, [None])
        step = Step.of(session, [tf.reshape(x, [-1, 3]) * 2.0], {x: floats(6)})
        assert step is not None
        trace = step.trace({x: floats(6)})
        assert isinstance(trace, SymbolicTrace)
        assert [step.compare(trace, {x: floats(n)}) for n in (9, 10)] == [True, False]


def test_faults_name_the_sizes_of_the_run() -> None:
    with Graph().as_default(), Session() as session:
        x, at = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.int32, [None])
        step = Step.of(session, [tf.gather(x, at)], {x: floats(6, 3), at: [0, 1]})
        assert step is not None
        trace = step.trace({x: floats(6, 3), at: [0, 1]})
        assert isinstance(trace, SymbolicTrace)
        given = [floats(5, 3), np.array([1, 2, 0, 7], np.int32)]
        values = trace.values([each.shape for each in given])
        assert values is not None
        _, vector = collect(rewritten(at_sizes(trace.jaxpr, values), given), given, None, None)
        error = trace.sites.error(vector, values)
        assert error is not None
        assert "indices[3] = 7 is not in [0, 5)" in str(error)


# -- the rows of the registry

REFUSED = {
    **dict.fromkeys(("StatelessShuffle-0", "RandomShuffle-0"), "JAX shuffles numbers of rows"),
    **dict.fromkeys(
        ("Cumprod-0", "Cumprod-1", "CumulativeLogsumexp-0", "CumulativeLogsumexp-1"),
        "JAX's associative scan needs a number, in gradients",
    ),
    **dict.fromkeys(
        ("MatrixDiagPartV3-0", "MatrixDiagPartV3-1", "MatrixSetDiagV3-0"),
        "indices by NumPy for each diagonal",
    ),
    **dict.fromkeys(("Repeat-0", "Repeat-1"), "indices by NumPy for each row"),
    **dict.fromkeys(("DCT-0", "DCT-3", "DCT-4", "DCT-5"), "factors by NumPy for each frequency"),
    **dict.fromkeys(("Frame-0", "Frame-1", "OverlapAndAdd-0"), "a quotient of sizes is rounded"),
    **dict.fromkeys(
        (
            "CropAndResize-0",
            "ExtractGlimpse-0",
            "ImageProjectiveTransformV2-0",
            "ImageProjectiveTransformV2-1",
            "ScaleAndTranslate-0",
        ),
        "coordinates are computed from the height and width",
    ),
    "MaxPool-3": "offsets of large windows, in gradients",
    "Prod-2": "JAX's gradient flattens the other dimensions, and compares their sizes",
}
"""Examples that are not traced if all dimensions are unknown, or their gradients, and why."""


def example_step(session: Session, example: Example, gradient: bool) -> tuple[Step, Feeds] | None:
    arrays = example.arrays
    shapes = [[None if dim >= 2 else dim for dim in array.shape] for array in arrays]
    inputs = [
        constant(array) if position in example.static else tensor
        for position, (array, tensor) in enumerate(zip(arrays, fed(arrays, shapes), strict=True))
    ]
    fetches = list(apply(example, inputs).outputs)
    if gradient:
        loss = add_n([reduce_sum(p * p) for each in fetches for p in _real_parts(each)])
        variables = get_default_graph().get_collection("variables")
        sources = variables or [inputs[position] for position in differentiable(example)]
        fetches = [each for each in gradients(loss, sources) if each is not None]
    feeds = {
        tensor: array
        for position, (tensor, array) in enumerate(zip(inputs, arrays, strict=True))
        if position not in example.static
    }
    for variable in get_default_graph().get_collection("variables"):
        session.run(variable.initializer, feeds)
    step = Step.of(session, fetches, feeds)
    return None if step is None else (step, feeds)


def larger(array: Any, twice: bool) -> Any:
    widths = [(0, 0 if dim < 2 else dim if twice else 1) for dim in array.shape]
    return np.pad(array, widths, mode="wrap" if twice else "edge") if array.ndim else array


def check_example(parameter_id: str, example: Example, gradient: bool) -> None:
    with Graph().as_default(), Session() as session:
        made = example_step(session, example, gradient)
        if made is None:
            return
        step, feeds = made
        trace = step.trace(feeds)
        if isinstance(trace, str):
            assert parameter_id in REFUSED, trace
            return
        assert step.compare(trace, feeds)
        for twice in (False, True):  # where it is valid
            step.compare(trace, {key: larger(value, twice) for key, value in feeds.items()})


def named(parameters: Sequence[Any]) -> list[Any]:
    return [
        pytest.param(parameter.id, *parameter.values, id=parameter.id)
        for parameter in parameters
        if lookup(parameter.values[0].row.type).placement.where != "host"
        and not reads_a_handle(parameter.values[0])
    ]


@sweep(
    ("name", "example"),
    named([*examples(), *examples(random=True), *examples(state=True)]),
    quick=30,
)
def test_rows(name: str, example: Example) -> None:
    check_example(name, example, gradient=False)


@sweep(("name", "example"), named(list(gradient_examples())), quick=12)
def test_gradients(name: str, example: Example) -> None:
    check_example(name, example, gradient=True)


@pytest.mark.parametrize("name", REFUSED)
def test_refused_examples_are_refused(name: str) -> None:
    found = {each.id: each.values[0] for each in (*examples(), *examples(random=True))}
    results = []
    for gradient in (False, True):
        if gradient and (
            found[name].row.gradient in (None, "undefined") or found[name].row.semantics.random
        ):
            continue
        with Graph().as_default(), Session() as session:
            made = example_step(session, found[name], gradient)
            assert made is not None
            results.append(made[0].trace(made[1]))
    assert any(isinstance(each, str) for each in results)
