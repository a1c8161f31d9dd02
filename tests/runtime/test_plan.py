"""Plans: pruning, placement, number of segments, inputs and outputs of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.core import builtin_ops
from estimatorkit.core.builtin_ops import placeholder
from estimatorkit.core.conversion import constant
from estimatorkit.core.dtypes import float32, int32, string
from estimatorkit.core.errors import InvalidArgumentError
from estimatorkit.core.gradients import gradients
from estimatorkit.core.graph import Graph, control_dependencies
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.ops.array import array, filling, indexing, joining
from estimatorkit.ops.control.control_flow import while_loop
from estimatorkit.ops.math import elementwise, linalg, reduce
from estimatorkit.runtime.plan import LARGE_CONSTANT, Plan, make_plan
from estimatorkit.runtime.session import Session


@pytest.fixture
def graph() -> Iterator[Graph]:
    with Graph().as_default() as made:
        yield made


def plan_of(graph: Graph, fetches: Sequence[Any], feeds: Sequence[Tensor] = ()) -> Plan:
    tensors = [each for each in fetches if isinstance(each, Tensor)]
    targets = [each for each in fetches if isinstance(each, Operation)]
    plan = make_plan(graph, tensors, targets, feeds)
    check(plan)
    return plan


def check(plan: Plan) -> None:
    """What every plan must be: each operation once, after all that it depends on, of one place."""
    available = set(plan.feeds)
    done: set[Operation] = set()
    for segment in plan.segments:
        assert segment.ops
        for tensor in segment.inputs:
            assert tensor in available or tensor.op.type == "Const"
        for op in segment.ops:
            assert op not in done
            for tensor in op.inputs:
                assert tensor in plan.feeds or tensor.op in done or tensor.op.type in CONSTANTS, op
            for other in op.control_inputs:
                running = [each for part in plan.segments for each in part.ops]
                assert other in done or other not in running
            done.add(op)
        available.update(segment.outputs)
        assert set(segment.static_inputs) <= set(segment.inputs)
    for tensor in plan.results:
        assert tensor in available or plan.rewriting.value(tensor) is not None


CONSTANTS = ("Const", "VarHandleOp")


def places(plan: Plan) -> list[str]:
    return [segment.place for segment in plan.segments]


def names(plan: Plan) -> list[str]:
    return [op.name for segment in plan.segments for op in segment.ops]


def test_prunes_unneeded_operations(graph: Graph) -> None:
    x = placeholder(float32, [2], name="x")
    y = elementwise.exp(x, name="y")
    z = elementwise.square(y, name="z")
    elementwise.log(z, name="unused")
    assert names(plan_of(graph, [z], [x])) == ["y", "z"]
    assert names(plan_of(graph, [z], [x, y])) == ["z"]
    assert names(plan_of(graph, [z], [z])) == []
    assert names(plan_of(graph, [y, z.op], [x])) == ["y", "z"]
    assert plan_of(graph, [y], [x]).pruned == 3
    with pytest.raises(InvalidArgumentError, match="must feed a value for placeholder tensor 'x'"):
        plan_of(graph, [z])


def test_device_chain_is_one_segment(graph: Graph) -> None:
    x = placeholder(float32, [None, 3])
    w = Variable(np.ones([3, 2], np.float32), name="w")
    loss = reduce.reduce_mean(linalg.matmul(x, w))
    train = w.assign_sub(w * 0.5)
    plan = plan_of(graph, [loss, train.op], [x])
    (segment,) = plan.segments
    assert segment.place == "device"
    assert segment.reads == ["w"]
    assert segment.writes == ["w"]
    assert segment.inputs == [x]
    assert segment.outputs == [loss]
    assert segment.random == []


def test_host_segments_around_device(graph: Graph) -> None:
    words = placeholder(string, [None])
    joined = joining.concat([words, words], 0)
    count = elementwise.cast(array.size(joined), float32)
    doubled = count * 2.0
    rows = indexing.where(constant([1.0, 2.0]) < doubled)
    plan = plan_of(graph, [rows, doubled], [words])
    assert places(plan) == ["host", "device", "host"]
    assert plan.segments[0].outputs == [joined] or plan.segments[0].outputs[0].op.type == "Size"


def test_small_numbers_stay_on_host(graph: Graph) -> None:
    queue = tf.FIFOQueue(9, [tf.float32])
    fields = tf.decode_csv(tf.constant("1,2"), [[0.0], [0.0]])
    large = tf.random.uniform([5000]) + fields[0]
    with tf.Session() as session:
        plan = session.plan([queue.enqueue(tf.stack(fields))], [])
        assert [segment.place for segment in plan.segments] == ["host"]
        assert [segment.place for segment in session.plan([tf.stack(fields)], []).segments] == [
            *("host", "device")
        ]
        plan = session.plan([queue.enqueue(large)], [])
        assert "device" in [segment.place for segment in plan.segments]


def test_independent_operations_share_a_segment(graph: Graph) -> None:
    a, b = placeholder(string, [2]), placeholder(string, [2])
    sizes = [array.size(joining.concat([each, each], 0)) for each in (a, b)]
    total = elementwise.cast(sizes[0] + sizes[1], float32)
    x = placeholder(float32, [])
    plan = plan_of(graph, [total + elementwise.exp(x)], [a, b, x])
    assert places(plan).count("device") == 1
    assert places(plan).count("host") <= 1


def test_alternating_host_and_device(graph: Graph) -> None:
    x = placeholder(float32, [None])
    current = x
    for _ in range(3):
        index = indexing.where(current > 0.0)[:, 0]
        current = elementwise.square(indexing.gather(x, index)) - 1.0
    plan = plan_of(graph, [current], [x])
    assert places(plan) == ["device", "host"] * 3 + ["device"]


def test_static_inputs(graph: Graph) -> None:
    dims = placeholder(int32, [2])
    fed = filling.fill(dims * 2, 1.0)
    (segment,) = plan_of(graph, [fed], [dims]).segments
    assert segment.static_inputs == [dims]
    x = placeholder(float32, [None])
    computed = filling.fill([elementwise.cast(reduce.reduce_sum(x), int32)], 1.0)
    plan = plan_of(graph, [computed], [x])
    assert places(plan) == ["device", "device"]
    assert len(plan.segments[1].static_inputs) == 1
    by_shape = filling.zeros(array.shape(x))
    (segment,) = plan_of(graph, [by_shape], [x]).segments
    assert segment.static_inputs == []


def test_maximum_of_fed_lengths_is_computed_on_host(graph: Graph) -> None:
    lengths = placeholder(int32, [None], name="lengths")
    values = placeholder(float32, [None, None], name="values")
    longest = reduce.reduce_max(lengths + 1)
    total = reduce.reduce_sum(values[:, :longest] * 2.0)
    plan = plan_of(graph, [total], [lengths, values])
    check(plan)
    assert places(plan) == ["host", "device"]
    assert {op.type for op in plan.segments[0].ops} == {"Add", "Max"}
    # Other vectors of the same maximum compile nothing anew.
    assert plan.segments[1].static_inputs == [longest]

    own = reduce.reduce_sum(values[:, : array.shape(values)[1] - 1])
    assert places(plan_of(graph, [own], [values])) == ["device"]


def test_wide_values_inside_loops_count(graph: Graph) -> None:
    start = constant(np.zeros(3, np.float32))
    end = while_loop(
        lambda value: reduce.reduce_sum(value) < 2,
        lambda value: value + elementwise.cast(reduce.argmax(value, 0), float32) + 1.0,
        [start],
    )
    (segment,) = plan_of(graph, [end]).segments
    assert segment.wide
    (gradient,) = gradients(end, [start])
    assert all(each.wide for each in plan_of(graph, [gradient]).segments)


def test_large_constants_are_arguments(graph: Graph) -> None:
    large = constant(np.zeros(LARGE_CONSTANT, np.float32))
    small = constant(np.zeros(4, np.float32))
    (segment,) = plan_of(graph, [reduce.reduce_sum(large), small + 1.0]).segments
    assert segment.inputs == [large]


def test_reads_and_writes_run_in_creation_order(graph: Graph) -> None:
    v = Variable(1.0, name="v")
    before = builtin_ops.identity(v.read_value(), name="before")
    v_write = v.assign(2.0, name="write")
    after = v.read_value()
    order = names(plan_of(graph, [after, v_write.op, before]))
    assert order.index("before") > order.index(before.op.inputs[0].op.name)
    assert order.index(before.op.inputs[0].op.name) < order.index("write")
    assert order.index("write") < order.index(after.op.name)
    (segment,) = plan_of(graph, [v_write.op]).segments
    assert segment.reads == []  # overwritten, never read
    assert segment.writes == ["v"]


def test_control_edges_between_host_and_device(graph: Graph) -> None:
    words = placeholder(string, [None])
    on_host = array.size(joining.concat([words, words], 0))
    with control_dependencies([on_host]):
        on_device = elementwise.exp(constant(1.0) + placeholder(float32, [], name="p"))
    feeds = [words, graph.get_tensor_by_name("p:0")]
    plan = plan_of(graph, [on_device], feeds)
    assert places(plan) == ["host", "device"]


def test_describe(graph: Graph) -> None:
    x = placeholder(float32, [2], name="x")
    v = Variable([1.0, 2.0], name="v")
    y = elementwise.multiply(x, v, name="y")
    text = plan_of(graph, [y, v.assign_add(y).op], [x]).describe()
    for part in (
        *("operations in 1 segments", "segment 0 on the device (one XLA call)", "receives: x:0"),
        *("reads: v", "writes: v", "sends: y:0", "y = Mul(x:0, v/read:0) -> float32(2,)"),
    ):
        assert part in text


def test_hlo_of_xla_call(graph: Graph) -> None:
    x = placeholder(float32, [None, 2], name="x")
    y = elementwise.multiply(x, Variable([1.0, 2.0], name="v"), name="y")
    session = Session(graph=graph)
    (traced,) = session.traced(y, [x], unknown=7)
    assert "f32[7,2]" in str(traced.jaxpr)
    assert "stablehlo.multiply" in traced.lower().as_text()
    length = placeholder(int32, [], name="length")
    with pytest.raises(ValueError, match="compiled for the values of length:0"):
        session.traced(array.reshape(y, [length]), [x, length])
    anything = placeholder(float32)
    with pytest.raises(ValueError, match=r"rank of Placeholder\w*:0(?s:.*)test_plan"):
        session.traced(anything * 2.0, [anything])
