"""`OptaxOptimizer` against plain optax, and its state as variables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import optax
import pytest

from estimatorkit.core.graph import Graph
from estimatorkit.core.variables import Variable
from estimatorkit.ops.array import indexing
from estimatorkit.ops.math import reduce
from estimatorkit.ops.variables.variable_collections import global_variables_initializer
from estimatorkit.ops.variables.variable_scope import get_variable
from estimatorkit.runtime.session import Session
from estimatorkit.train.global_steps import get_or_create_global_step
from estimatorkit.train.optimizers.optax_optimizer import OptaxOptimizer
from estimatorkit.train.saving.saver import Saver
from tests.sweep import sweep

X = np.array([[1.0, 2.0], [-0.5, 3.0]], np.float32)
START = {"dense/kernel": np.array([[1.0], [-2.0]], np.float32), "bias": np.zeros(1, np.float32)}
TRANSFORMATIONS: dict[str, Any] = {
    "adamw": optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.adamw(optax.exponential_decay(0.1, 5, 0.5), weight_decay=0.01),
    ),
    "parts": optax.multi_transform(
        {"fast": optax.sgd(0.5, momentum=0.9), "slow": optax.sgd(0.01)},
        lambda params: {name: "slow" if name == "bias" else "fast" for name in params},
    ),
    "lion": optax.inject_hyperparams(optax.lion)(learning_rate=0.05),
}


@pytest.fixture(autouse=True)
def graph() -> Iterator[Graph]:
    graph = Graph()
    with graph.as_default():
        yield graph


def model() -> tuple[list[Variable], Any]:
    variables = [get_variable(name, initializer=value) for name, value in START.items()]
    return variables, reduce.reduce_sum((X @ variables[0] + variables[1] - 1.0) ** 2)


def loss_in_jax(params: dict[str, Any]) -> Any:
    return ((X @ params["dense/kernel"] + params["bias"] - 1.0) ** 2).sum()


@pytest.mark.usefixtures("compiled")
@pytest.mark.slow
@sweep("name", TRANSFORMATIONS, quick=1)
def test_steps_match_optax(name: str, tmp_path: Path) -> None:
    tx = TRANSFORMATIONS[name]
    params: Any = dict(START)
    state = tx.init(params)
    for _ in range(8):
        changes, state = tx.update(jax.grad(loss_in_jax)(params), state, params)
        params = optax.apply_updates(params, changes)

    variables, loss = model()
    optimizer = OptaxOptimizer(tx)
    step = get_or_create_global_step()
    update = optimizer.minimize(loss, step)
    saver = Saver()
    with Session() as session:
        session.run(global_variables_initializer())
        assert [each.place for each in session.plan([update], []).segments] == ["device"]
        for _ in range(5):
            session.run(update)
        assert session.state.compilations[update.name] == 1
        path = saver.save(session, str(tmp_path / "model"))
        for _ in range(3):
            session.run(update)
        values = session.run(variables)
        held = session.run(optimizer.variables())
        assert session.run(step) == 8
    for variable, value in zip(variables, values, strict=True):
        np.testing.assert_allclose(value, params[variable.op.name], rtol=2e-5, atol=1e-6)
    leaves = jax.tree.leaves(state)
    assert len(held) == len(leaves)
    for own, leaf in zip(held, leaves, strict=True):
        np.testing.assert_allclose(own, leaf, rtol=2e-5, atol=1e-6)
    with Session() as session:  # what is restored goes on to the same bits
        saver.restore(session, path)
        for _ in range(3):
            session.run(update)
        for again, value in zip(session.run(variables), values, strict=True):
            np.testing.assert_array_equal(again, value)


@pytest.mark.usefixtures("compiled")
def test_hyperparameter_in_state_can_be_changed() -> None:
    w = Variable(np.array([1.0], np.float32), name="w")
    optimizer = OptaxOptimizer(optax.inject_hyperparams(optax.sgd)(learning_rate=0.5))
    update = optimizer.minimize(w * 1.0)
    (rate,) = [each for each in optimizer.variables() if each.op.name.endswith("learning_rate")]
    with Session() as session:
        session.run(global_variables_initializer())
        session.run(update)
        rate.load(np.float32(0.25), session)
        session.run(update)
        assert session.run(w) == pytest.approx([0.25])
        assert session.state.compilations[update.name] == 1


def test_sparse_gradients_become_dense_and_constraints_hold() -> None:
    table = Variable(
        np.ones((3, 1), np.float32), name="table", constraint=lambda value: value * 2.0
    )
    update = OptaxOptimizer(optax.sgd(0.25)).minimize(
        reduce.reduce_sum(indexing.gather(table, [1, 1]))
    )
    with Session() as session:
        session.run(global_variables_initializer())
        session.run(update)
        np.testing.assert_array_equal(session.run(table)[:, 0], [2.0, 1.0, 2.0])


def test_non_transformation_raises() -> None:
    with pytest.raises(TypeError, match="such as optax"):
        OptaxOptimizer("adam")  # type: ignore[arg-type]
    optimizer, w = OptaxOptimizer(optax.sgd(0.1)), Variable(np.zeros(1, np.float32))
    with pytest.raises(ValueError, match="No variables provided"):
        optimizer.apply_gradients([])
    with pytest.raises(ValueError, match="No gradients provided"):
        optimizer.apply_gradients([(None, w)])
    with pytest.raises(TypeError, match="global_step must be a variable"):
        optimizer.apply_gradients([(w * 1.0, w)], global_step=1)  # type: ignore[arg-type]
