"""The optimizers of contrib.opt against their formulas in NumPy, and user-defined ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from estimatorkit.compat.train.optimizers import contrib_optimizers as contrib
from estimatorkit.compat.train.optimizers.moving_average_optimizer import MovingAverageOptimizer
from estimatorkit.compat.train.optimizers.multitask_optimizer import (
    MultitaskOptimizerWrapper,
    clip_gradients_by_global_norm,
)
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
    MomentumOptimizer,
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


# The same steps in NumPy: a function of (w, g, slots, step from 1) that gives the new w.
Formula = Callable[[Array, Array, dict[str, Array], int], Array]


def averages(g: Array, slots: dict[str, Array], beta1: float, beta2: float) -> tuple[Array, Array]:
    slots["m"] = beta1 * slots.get("m", 0 * g) + (1 - beta1) * g
    slots["v"] = beta2 * slots.get("v", 0 * g) + (1 - beta2) * g * g
    return slots["m"], slots["v"]


def nadam(w: Array, g: Array, slots: dict[str, Array], t: int) -> Array:
    m, v = averages(g, slots, 0.8, 0.9)
    rate = 0.1 * np.sqrt(1 - 0.9**t) / (1 - 0.8**t)
    return w - rate * (0.8 * m + 0.2 * g) / (np.sqrt(v) + 1e-8)


def ada_max(w: Array, g: Array, slots: dict[str, Array], t: int) -> Array:
    largest = np.maximum(0.9 * slots.get("largest", 0 * g), abs(g))
    m, _ = averages(g, slots, 0.8, 0.9)
    slots["largest"] = largest
    return w - 0.1 / (1 - 0.8**t) * m / (largest + 1e-8)


def add_sign(w: Array, g: Array, slots: dict[str, Array], t: int) -> Array:
    m, _ = averages(g, slots, 0.9, 0.9)
    decay = max(0.0, 1 - (t - 1) / 10)
    return w - 0.1 * (1 + decay * np.sign(g) * np.sign(m)) * g


def power_sign(w: Array, g: Array, slots: dict[str, Array], t: int) -> Array:
    m, _ = averages(g, slots, 0.9, 0.9)
    return w - 0.1 * 2.0 ** (np.sign(g) * np.sign(m)) * g


def lars(w: Array, g: Array, slots: dict[str, Array], t: int) -> Array:
    trust = 0.5 * np.linalg.norm(w) / (np.linalg.norm(g) + 0.1 * np.linalg.norm(w) + 0.01)
    g = g + 0.1 * w
    slots["m"] = 0.9 * slots.get("m", 0 * g) + g
    return w - 0.1 * trust * (g + 0.9 * slots["m"])


def adam_w(w: Array, g: Array, slots: dict[str, Array], t: int) -> Array:
    m, v = averages(g, slots, 0.9, 0.999)
    w = w - 0.05 * w
    return w - 0.1 * np.sqrt(1 - 0.999**t) / (1 - 0.9**t) * m / (np.sqrt(v) + 1e-8)


def momentum_w(w: Array, g: Array, slots: dict[str, Array], t: int) -> Array:
    slots["m"] = 0.9 * slots.get("m", 0 * g) + g
    return w - 0.05 * w - 0.1 * slots["m"]


CASES: dict[str, tuple[Callable[[], Optimizer], Formula]] = {
    "nadam": (lambda: contrib.NadamOptimizer(0.1, 0.8, 0.9), nadam),
    "ada_max": (lambda: contrib.AdaMaxOptimizer(0.1, 0.8, 0.9), ada_max),
    "add_sign": (
        lambda: contrib.AddSignOptimizer(sign_decay_fn=contrib.get_linear_decay_fn(10)),
        add_sign,
    ),
    "power_sign": (lambda: contrib.PowerSignOptimizer(base=2.0), power_sign),
    "lars": (
        lambda: contrib.LARSOptimizer(
            0.1, weight_decay=0.1, eeta=0.5, epsilon=0.01, use_nesterov=True
        ),
        lars,
    ),
    "adam_w": (lambda: contrib.AdamWOptimizer(0.05, 0.1), adam_w),
    "momentum_w": (lambda: contrib.MomentumWOptimizer(lambda: 0.05, 0.1, 0.9), momentum_w),
    "extended": (
        lambda: contrib.extend_with_decoupled_weight_decay(MomentumOptimizer)(0.05, 0.1, 0.9),
        momentum_w,
    ),
}


@pytest.mark.slow
def test_steps_match_formulas() -> None:
    given = builtin_ops.placeholder("float32", [2, 2])
    step = get_or_create_global_step()
    updates, variables = [], {}
    for name, (make, _) in CASES.items():
        w = variables[name] = Variable(START, name=name)
        updates.append(make().apply_gradients([(given, w)], step if name == "lars" else None))
    found: dict[str, Any] = {}
    with started() as session:
        for gradient in GRADIENTS:
            # Some read the step before it is counted: all are run with it.
            session.run(updates, {given: gradient})
        found = session.run(variables)
        assert session.run(step) == len(GRADIENTS)
    for name, (_, formula) in CASES.items():
        w, slots = START.astype(np.float64), dict[str, Array]()
        for t, gradient in enumerate(GRADIENTS.astype(np.float64), start=1):
            w = formula(w, gradient, slots, t)
        np.testing.assert_allclose(found[name], w, rtol=2e-5, atol=1e-5, err_msg=name)


@pytest.mark.slow
def test_names_slots_and_sparse_gradients() -> None:
    table = Variable(np.ones((4, 1), np.float32), name="table")
    loss = reduce.reduce_sum(indexing.gather(table, [2, 2]))
    lazy = LazyAdamOptimizer(0.5)
    first = lazy.minimize(loss)
    assert lazy.get_slot_names() == ["m", "v"]
    assert [each.op.name for each in contrib.AdaMaxOptimizer().variables()] == []
    decayed = contrib.extend_with_decoupled_weight_decay(GradientDescentOptimizer)(0.5, 0.25)
    second = decayed.minimize(loss, decay_var_list=[table])
    third = decayed.minimize(loss, decay_var_list=[])
    skipped = contrib.LARSOptimizer(0.5, momentum=0.0, skip_list=["table"])
    fourth = skipped.minimize(reduce.reduce_sum(table))
    fifth = contrib.LARSOptimizer(0.5, momentum=0.0, name="rows").minimize(loss)
    found = []
    with started() as session:
        for update in (first, second, third, fourth, fifth):
            session.run(update)
            found.append(session.run(table)[:, 0])
        slot = session.run(lazy.get_slot(table, "m"))[:, 0]
    np.testing.assert_allclose(found[0], [1.0, 1.0, 0.5, 1.0], rtol=1e-6)  # Adam's first step
    np.testing.assert_allclose(slot, [0.0, 0.0, 0.2, 0.0], rtol=1e-6)
    np.testing.assert_allclose(found[1], [1.0, 1.0, 0.25 - 0.5, 1.0], rtol=1e-6)
    np.testing.assert_allclose(found[2], [1.0, 1.0, -0.75, 1.0], rtol=1e-6)
    np.testing.assert_allclose(found[3], [0.5, 0.5, -1.25, 0.5], rtol=1e-6)
    np.testing.assert_allclose(found[4], [0.5, 0.5, -2.25, 0.5], rtol=1e-6)


def test_repeated_rows_decay_once_and_are_summed() -> None:
    class Setting(GradientDescentOptimizer):
        def _apply_sparse(self, grad: IndexedSlices, var: Variable) -> Any:
            kept = indexing.gather(var, grad.indices) - grad.values
            return var.scatter_update(IndexedSlices(kept, grad.indices))

    table = Variable(np.full((3, 1), 4.0, np.float32))
    kind = contrib.extend_with_decoupled_weight_decay(Setting)
    update = kind(0.5, 1.0).minimize(reduce.reduce_sum(indexing.gather(table, [1, 1, 0])))
    with started() as session:
        session.run(update)
        np.testing.assert_array_equal(session.run(table)[:, 0], [1.0, 0.0, 4.0])


def test_weight_decay_of_dense_only_optimizer() -> None:
    class Subtracting(Optimizer):
        def __init__(self) -> None:
            super().__init__(False, "Subtracting")

        def _resource_apply_dense(self, grad: Any, handle: Variable) -> Any:
            return handle.assign_sub(grad).op

    kind = contrib.extend_with_decoupled_weight_decay(Subtracting)
    table = Variable(np.full((3, 1), 4.0, np.float32))
    dense = kind(0.5).minimize(reduce.reduce_sum(table))
    rows = kind(0.5).minimize(reduce.reduce_sum(indexing.gather(table, [1])))
    with started() as session:
        session.run(dense)
        np.testing.assert_array_equal(session.run(table)[:, 0], [1.0, 1.0, 1.0])
        session.run(rows)
        np.testing.assert_array_equal(session.run(table)[:, 0], [1.0, -0.5, 1.0])


def test_sign_decays() -> None:
    step = builtin_ops.placeholder("int64", [])
    decays = [
        contrib.get_linear_decay_fn(10)(step),
        contrib.get_cosine_decay_fn(10)(step),
        contrib.get_cosine_decay_fn(10, num_periods=1, zero_after=0.75)(step),
        contrib.get_restart_decay_fn(10, num_periods=2)(step),
        contrib.get_restart_decay_fn(10, num_periods=2, zero_after=0.5)(step),
    ]
    with Session() as session:
        found = {at: session.run(decays, {step: at}) for at in (0, 4, 5, 8, 12)}
    half = 0.5 * (1 + np.cos(np.pi * 0.8))
    expected = {
        0: [1, 1, 1, 1, 1],
        4: [0.6, 0.5 * (1 + np.cos(np.pi * 0.4)), 0.5 * (1 + np.cos(np.pi * 0.8)), half, 0],
        5: [0.5, 0.5, 0, 1, 1],
        8: [0.2, 0.5 * (1 + np.cos(np.pi * 0.8)), 0, 0.5 * (1 + np.cos(np.pi * 0.6)), 0],
        12: [0, 0, 0, 0.5 * (1 + np.cos(np.pi * 0.4)), 0.5 * (1 + np.cos(np.pi * 0.4))],
    }
    for at, values in expected.items():
        np.testing.assert_allclose(found[at], values, atol=2e-6, err_msg=str(at))


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


def test_untrained_variables_stay() -> None:
    w, other = (Variable(np.array([1.0], np.float32), name=name) for name in ("w", "other"))
    on = builtin_ops.placeholder("float32", [])
    step = get_or_create_global_step()
    optimizer = MultitaskOptimizerWrapper(MomentumOptimizer(0.5, 0.5))
    update = optimizer.minimize(w * on + other * (1.0 - on), step)
    pairs = clip_gradients_by_global_norm([(w * 0.0 + 30.0, w), (None, other)])
    with started() as session:
        for value in (1.0, 0.0, 1.0):
            session.run(update, {on: value})
        assert session.run([w, other, step]) == [[1.0 - 0.5 - 0.75], [0.5], 3]
        assert session.run(optimizer.get_slot(w, "momentum")) == [1.5]
        assert session.run(pairs[0][0]) == pytest.approx([20.0])
    assert pairs[1] == (None, other)
    with pytest.raises(TypeError, match="updates variables individually"):
        MultitaskOptimizerWrapper(MovingAverageOptimizer(AdamOptimizer())).minimize(w * on)
    with pytest.raises(ValueError, match="No gradients provided for any variable"):
        MultitaskOptimizerWrapper(AdamOptimizer()).minimize(on, var_list=[w])


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
