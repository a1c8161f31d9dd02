"""Loss scaling: scaled losses, unscaled gradients, skipped steps if they are not finite."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from estimatorkit.core import builtin_ops
from estimatorkit.core.graph import Graph
from estimatorkit.core.variables import Variable
from estimatorkit.keras import mixed_precision, optimizers
from estimatorkit.keras.mixed_precision import experimental
from estimatorkit.ops.array import indexing
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.variables.variable_collections import (
    global_variables,
    global_variables_initializer,
)
from estimatorkit.runtime.session import Session
from estimatorkit.train.global_steps import get_or_create_global_step
from estimatorkit.train.optimizers import loss_scale
from estimatorkit.train.optimizers.loss_scale import (
    DynamicLossScale,
    FixedLossScale,
    MixedPrecisionLossScaleOptimizer,
)
from estimatorkit.train.optimizers.optimizers import (
    AdagradOptimizer,
    AdamOptimizer,
    GradientDescentOptimizer,
)


@pytest.fixture(autouse=True)
def graph() -> Iterator[Graph]:
    graph = Graph()
    with graph.as_default():
        yield graph


def started() -> Session:
    session = Session()
    session.run(global_variables_initializer())
    return session


SCALE = DynamicLossScale(8.0, increment_period=2)
MAKERS: dict[str, Callable[[], Any]] = {
    "train": lambda: MixedPrecisionLossScaleOptimizer(AdamOptimizer(0.5), SCALE),
    "keras": lambda: mixed_precision.LossScaleOptimizer(
        optimizers.Adam(0.5), initial_scale=8.0, dynamic_growth_steps=2
    ),
}


@pytest.mark.usefixtures("compiled")
@pytest.mark.slow
@pytest.mark.parametrize("kind", MAKERS)
def test_non_finite_steps_are_skipped(kind: str) -> None:
    w = Variable(np.array([1.0, -1.0], np.float32), name="w")
    table = Variable(np.ones((4, 1), np.float32), name="table")
    factor = builtin_ops.placeholder("float32", [])
    rows = indexing.gather(table, [1, 1])
    loss = reduce.reduce_sum(w * factor) + reduce.reduce_sum(rows)
    optimizer = MAKERS[kind]()
    step = get_or_create_global_step()
    update = optimizer.minimize(loss, global_step=step, var_list=[w, table])
    scale, good_steps = optimizer._loss_scale.variables()
    seen = []
    with started() as session:
        for value in (1.0, 1.0, np.inf, 1.0, np.nan, 1.0, 1.0):
            before = session.run([w, table])
            session.run(update, {factor: value})
            after = session.run([w, table])
            moved = [not np.array_equal(a, b) for a, b in zip(before, after, strict=True)]
            assert moved == [np.isfinite(value)] * 2
            seen.append(tuple(map(int, session.run([scale, good_steps, step]))))
        assert session.state.compilations[update.name] == 1
        slot = session.run(optimizer.get_slot(w, "m"))
    assert seen == [(8, 1, 1), (16, 0, 2), (8, 0, 2), (8, 1, 3), (4, 0, 3), (4, 1, 4), (8, 0, 5)]
    np.testing.assert_allclose(slot, [1.0 - 0.9**5] * 2, rtol=1e-6)
    np.testing.assert_allclose(after[0], np.array([1.0, -1.0]) - 2.5, rtol=1e-5)
    assert after[1][0] == 1.0


@pytest.mark.slow
def test_scale_does_not_change_training() -> None:
    found = []
    for wrap in (
        lambda inner: inner,
        lambda inner: loss_scale.enable_mixed_precision_graph_rewrite(inner, 1024.0),
        loss_scale.enable_mixed_precision_graph_rewrite,
    ):
        with Graph().as_default():
            w = Variable(np.array([1.0, 2.0], np.float32))
            update = wrap(AdagradOptimizer(0.1)).minimize(lambda w=w: reduce.reduce_sum(w * w))
            with started() as session:
                for _ in range(3):
                    session.run(update)
                found.append(session.run(w))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


class Counting(FixedLossScale):
    """Says that steps are applied, or not, whatever the gradients are, and counts them."""

    def __init__(self, applies: bool) -> None:
        super().__init__(4.0)
        self.applies = applies
        self.seen = Variable(0, trainable=False)

    def update(self, grads: Any) -> Any:
        return self.seen.assign_add(1).op, self.applies


@pytest.mark.parametrize("applies", [True, False])
def test_custom_loss_scale(applies: bool) -> None:
    w = Variable(np.array([1.0], np.float32))
    scale = Counting(applies)
    update = MixedPrecisionLossScaleOptimizer(GradientDescentOptimizer(0.5), scale).minimize(
        w * 1.0
    )
    with started() as session:
        session.run(update)
        session.run(update)
        assert session.run(scale.seen) == 2
        assert session.run(w) == pytest.approx([0.0 if applies else 1.0])


def test_variable_names_are_unchanged() -> None:
    found = []
    for wrap in (lambda inner: inner, loss_scale.enable_mixed_precision_graph_rewrite):
        with Graph().as_default() as graph, graph.name_scope("model"):
            w = Variable(np.array([1.0], np.float32))
            wrap(AdamOptimizer(0.5)).minimize(w * 1.0)
            names = {each.op.name for each in global_variables()}
            found.append(names - {"current_loss_scale", "good_steps"})
    assert found[0] == found[1]


@pytest.mark.slow
def test_small_float16_gradients_survive() -> None:
    w = Variable(np.array([1.0], np.float32))
    half = elementwise.cast(w, "float16") * np.float16(1e-4)
    loss = reduce.reduce_sum(half) * np.float16(1e-4)  # 1e-8 is 0 in float16
    plain = optimizers.SGD(1e8).compute_gradients(loss, [w])[0][0]
    scaled = mixed_precision.LossScaleOptimizer(
        optimizers.SGD(1e8), dynamic=False, initial_scale=2.0**12
    )
    gradient = scaled.compute_gradients(loss, [w])[0][0]
    with started() as session:
        assert session.run(plain) == [0.0]
        assert session.run(gradient) == pytest.approx([1e-8], rel=0.02)


def test_keras_wrapper_delegates_to_optimizer() -> None:
    inner = optimizers.Adam(0.25)
    optimizer = mixed_precision.LossScaleOptimizer(inner)
    assert optimizer.inner_optimizer is inner
    assert (optimizer.initial_scale, optimizer.dynamic_growth_steps) == (2.0**15, 2000)
    assert optimizer.iterations is inner.iterations
    optimizer.lr = 0.125
    w = Variable(np.array([1.0], np.float32))
    (update,) = optimizer.get_updates(w * 1.0, [w])
    with started() as session:
        assert session.run(optimizer.learning_rate) == 0.125
        session.run(update)
        assert session.run(w) == pytest.approx([0.875], rel=1e-5)
        assert session.run(optimizer.dynamic_counter) == 1
        again = optimizers.deserialize(optimizers.serialize(optimizer))
        assert again.get_config() == optimizer.get_config()
    fixed = experimental.LossScaleOptimizer(optimizers.SGD(), 4.0)
    assert not fixed.dynamic
    assert experimental.Policy("mixed_float16").loss_scale is not None
    assert experimental.Policy("mixed_bfloat16").loss_scale is None
    with pytest.raises(AttributeError, match="no_such"):
        _ = fixed.no_such


def test_invalid_arguments_raise() -> None:
    with pytest.raises(TypeError, match="must be an instance of Optimizer"):
        MixedPrecisionLossScaleOptimizer("adam", "dynamic")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="Could not interpret loss scale"):
        loss_scale.as_loss_scale("static")
    with pytest.raises(ValueError, match='"initial_scale" must be specified'):
        mixed_precision.LossScaleOptimizer(optimizers.SGD(), dynamic=False)
    with pytest.raises(TypeError, match="cannot wrap another"):
        mixed_precision.LossScaleOptimizer(mixed_precision.LossScaleOptimizer(optimizers.SGD()))
