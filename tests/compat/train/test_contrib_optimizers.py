"""The optimizers of contrib.opt against their formulas in NumPy, and user-defined ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from estimatorkit.compat.contrib.optimize_loss import clip_gradients_by_global_norm
from estimatorkit.compat.train.optimizers import contrib_optimizers as contrib
from estimatorkit.compat.train.optimizers.moving_average_optimizer import MovingAverageOptimizer
from estimatorkit.core import builtin_ops
from estimatorkit.core.graph import Graph
from estimatorkit.core.indexed_slices import IndexedSlices
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.ops.array import indexing
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.variables.variable_collections import global_variables_initializer
from estimatorkit.runtime.session import Session
from estimatorkit.storage.checkpoint import load_variable
from estimatorkit.train.global_steps import get_or_create_global_step
from estimatorkit.train.optimizers.optimizer import Optimizer
from estimatorkit.train.optimizers.optimizers import (
    AdagradOptimizer,
    AdamOptimizer,
    GradientDescentOptimizer,
    LazyAdamOptimizer,
)

Array = NDArray[Any]
START = np.array([[1.0, -2.0], [0.5, 3.0]], np.float32)
GRADIENTS = np.random.RandomState(3).normal(size=(12, 2, 2)).astype(np.float32)


@pytest.fixture(autouse=True)
def graph() -> Iterator[Graph]:
    graph = Graph()
    with graph.as_default():
        yield graph


def started() -> Session:
    session = Session()
    session.run(global_variables_initializer())
    return session


def lars(w: Array, g: Array, slots: dict[str, Array]) -> Array:
    """The same step in NumPy."""
    trust = 0.5 * np.linalg.norm(w) / (np.linalg.norm(g) + 0.1 * np.linalg.norm(w) + 0.01)
    g = g + 0.1 * w
    slots["m"] = 0.9 * slots.get("m", 0 * g) + g
    return w - 0.1 * trust * (g + 0.9 * slots["m"])


@pytest.mark.slow
def test_steps_match_formula() -> None:
    given = builtin_ops.placeholder("float32", [2, 2])
    step = get_or_create_global_step()
    optimizer = contrib.LARSOptimizer(
        0.1, weight_decay=0.1, eeta=0.5, epsilon=0.01, use_nesterov=True
    )
    w = Variable(START)
    update = optimizer.apply_gradients([(given, w)], step)
    with started() as session:
        for gradient in GRADIENTS:
            session.run(update, {given: gradient})
        found = session.run(w)
        assert session.run(step) == len(GRADIENTS)
    expected, slots = START.astype(np.float64), dict[str, Array]()
    for gradient in GRADIENTS.astype(np.float64):
        expected = lars(expected, gradient, slots)
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-5)


@pytest.mark.slow
def test_names_slots_and_sparse_gradients() -> None:
    table = Variable(np.ones((4, 1), np.float32), name="table")
    loss = reduce.reduce_sum(indexing.gather(table, [2, 2]))
    lazy = LazyAdamOptimizer(0.5)
    first = lazy.minimize(loss)
    assert lazy.get_slot_names() == ["m", "v"]
    skipped = contrib.LARSOptimizer(0.5, momentum=0.0, skip_list=["table"])
    dense = skipped.minimize(reduce.reduce_sum(table))
    sparse = contrib.LARSOptimizer(0.5, momentum=0.0, name="rows").minimize(loss)
    found = []
    with started() as session:
        for update in (first, dense, sparse):
            session.run(update)
            found.append(session.run(table)[:, 0])
        slot = session.run(lazy.get_slot(table, "m"))[:, 0]
    np.testing.assert_allclose(found[0], [1.0, 1.0, 0.5, 1.0], rtol=1e-6)  # Adam's first step
    np.testing.assert_allclose(slot, [0.0, 0.0, 0.2, 0.0], rtol=1e-6)
    np.testing.assert_allclose(found[1], [0.5, 0.5, 0.0, 0.5], rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(found[2], [0.5, 0.5, -1.0, 0.5], rtol=1e-6)


def test_moving_averages_and_swapping_saver(tmp_path: Path) -> None:
    w = Variable(np.array([0.0], np.float32), name="w")
    optimizer = MovingAverageOptimizer(GradientDescentOptimizer(1.0), average_decay=0.5)
    with pytest.raises(RuntimeError, match="before creating the swapping_saver"):
        optimizer.swapping_saver()
    update = optimizer.minimize(w * 1.0)
    saver = optimizer.swapping_saver()
    with started() as session:
        session.run(update)
        session.run(update)
        path = saver.save(session, str(tmp_path / "model"))
    assert load_variable(path, "w") == [-1.25]  # -0.5, then half of that and half of -2
    assert load_variable(path, "w/ExponentialMovingAverage") == [-2.0]


def test_gradients_are_clipped_by_their_norm() -> None:
    w, other = (Variable(np.array([1.0], np.float32), name=name) for name in ("w", "other"))
    pairs = clip_gradients_by_global_norm([(w * 0.0 + 30.0, w), (None, other)])
    with started() as session:
        assert session.run(pairs[0][0]) == pytest.approx([20.0])
    assert pairs[1] == (None, other)


# -- optimizers of users' own, as TensorFlow 1's programs write them


class Clipped(AdamOptimizer):
    """Overrides `apply_gradients`."""

    def apply_gradients(self, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
        pairs = [(elementwise.clip_by_value(g, -0.1, 0.1), v) for g, v in grads_and_vars]
        return super().apply_gradients(pairs, *args, **kwargs)


class Accumulating(Optimizer):
    """Has methods for TensorFlow's two kinds of variables."""

    def __init__(self, rate: float) -> None:
        super().__init__(False, "Accumulating")
        self._rate = rate
        self._rate_t: Any = None

    def _prepare(self) -> None:
        self._rate_t = builtin_ops.identity(self._call_if_callable(self._rate), name="rate")

    def _create_slots(self, var_list: Any) -> None:
        for variable in var_list:
            self._zeros_slot(variable, "sum", self._name)

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Any:
        total = self.get_slot(handle, "sum").assign_add(grad)
        return builtin_ops.group(total, handle.assign_sub(self._rate_t * total))

    def _resource_apply_sparse(self, grad: Any, handle: Any, indices: Any) -> Any:
        total = self._resource_scatter_add(self.get_slot(handle, "sum"), indices, grad)
        rows = indexing.gather(total, indices)
        return handle.scatter_sub(IndexedSlices(self._rate_t * rows, indices))


class Reference(Accumulating):
    """Overrides the methods for variables of TensorFlow 1 only."""

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        return var.assign_sub(2.0 * self._rate_t * grad)

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        assert isinstance(grad.values, Tensor)
        return var.scatter_sub(IndexedSlices(2.0 * self._rate_t * grad.values, grad.indices))


class OfAdagrad(AdagradOptimizer):
    """Overrides one of two kinds of methods of a class that has the other."""

    def _resource_apply_dense(self, grad: Any, handle: Any) -> Any:
        return handle.assign_sub(grad)


@pytest.mark.usefixtures("compiled")
@pytest.mark.slow
def test_overridden_methods() -> None:
    w = Variable(np.array([1.0, 2.0], np.float32), name="w")
    table = Variable(np.zeros((3, 1), np.float32), name="table")
    loss = reduce.reduce_sum(w * [4.0, -8.0]) + reduce.reduce_sum(indexing.gather(table, [1, 1]))
    makers: dict[str, Callable[[], Optimizer]] = {
        "clipped": lambda: Clipped(0.5),
        "own": lambda: Accumulating(0.25),
        "reference": lambda: Reference(0.25),
        "adagrad": lambda: OfAdagrad(0.5, initial_accumulator_value=0.0, epsilon=1e-7),
    }
    updates = {name: make().minimize(loss) for name, make in makers.items()}
    found = {}
    for name, update in updates.items():
        with started() as session:
            session.run(update)
            session.run(update)
            values = session.run([w, table])
            found[name] = [*values[0].tolist(), values[1][1, 0]]
            assert session.state.compilations[update.name] == 1
            assert values[1][[0, 2]].tolist() == [[0.0], [0.0]]
    assert found["clipped"] == pytest.approx([0.0, 3.0, -1.0], abs=1e-4)
    assert found["own"] == [1.0 - 1 - 2, 2.0 + 2 + 4, -0.5 - 1.0]
    assert found["reference"] == [1.0 - 4, 2.0 + 8, -2.0]
    assert found["adagrad"][:2] == [1.0 - 8, 2.0 + 16]
    assert found["adagrad"][2] == pytest.approx(-0.5 * (1 + 1 / np.sqrt(2)), rel=1e-5)
