"""Properties of all optimizers: sparse steps, and resuming, bit for bit."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from estimatorkit.core import builtin_ops
from estimatorkit.core.graph import Graph
from estimatorkit.core.variables import Variable
from estimatorkit.core.x64 import x64
from estimatorkit.keras import optimizers as keras
from estimatorkit.ops.array import indexing
from estimatorkit.ops.math import reduce
from estimatorkit.ops.variables.variable_collections import global_variables_initializer
from estimatorkit.runtime.session import Session
from estimatorkit.train.optimizers import keras_rules, optimizer_rules, optimizers
from estimatorkit.train.optimizers.deduplicate_slices import distinct
from estimatorkit.train.optimizers.update_rule import UpdateRule
from estimatorkit.train.saving.saver import Saver

Array = NDArray[Any]
ROWS, COLUMNS, TOUCHED = 7, 2, 5
NUMBERS = st.floats(-4.0, 4.0, width=32)
POSITIVE = st.floats(0.125, 4.0, width=32)


EXAMPLES: dict[str, Any] = {
    "table": hnp.arrays(np.float32, (ROWS, COLUMNS), elements=NUMBERS),
    "slots": hnp.arrays(np.float32, (3, ROWS, COLUMNS), elements=POSITIVE),
    "values": hnp.arrays(np.float32, (TOUCHED, COLUMNS), elements=NUMBERS),
    "indices": hnp.arrays(np.int64, TOUCHED, elements=st.integers(0, ROWS - 1)),
}


def hyperparameters_of(rule: UpdateRule) -> list[Any]:
    return [np.float32(rule.example[0][key]) for key in rule.hyperparameters]


@functools.cache
def all_steps(*modules: ModuleType) -> tuple[dict[str, UpdateRule], Callable[..., Any]]:
    """The rules of modules, and their steps, dense and with rows, as one executable."""
    rules = {
        each.name: each
        for module in modules
        for each in vars(module).values()
        if isinstance(each, UpdateRule) and each.sparse_rows != "none"
    }

    def run(table: Any, slots: Any, gradient: Any, values: Any, indices: Any) -> dict[str, Any]:
        found = {}
        for name, rule in rules.items():
            state = [table, *slots[: len(rule.slots)]]
            numbers = hyperparameters_of(rule)
            found[name] = (
                rule.dense(*state, gradient, *numbers),
                rule.sparse(*state, values, indices, *numbers),
            )
        return found

    return rules, jax.jit(run)


def check_steps(
    modules: Sequence[ModuleType], table: Array, slots: Array, values: Array, indices: Array
) -> None:
    """Steps with rows are the dense ones, for the rules of modules."""
    rules, steps = all_steps(*modules)
    gradient = np.zeros_like(table)
    np.add.at(gradient, indices, values)
    with x64():
        found = jax.device_get(steps(table, slots, gradient, values, indices))
    touched = np.unique(indices)
    others = np.setdiff1d(np.arange(ROWS), touched)
    for name, rule in rules.items():
        state = [table, *slots[: len(rule.slots)]]
        for position, (old, dense, sparse) in enumerate(zip(state, *found[name], strict=True)):
            np.testing.assert_allclose(
                sparse[touched], dense[touched], rtol=1e-5, atol=1e-5, err_msg=name
            )
            if rule.sparse_rows == "every" or (rule.sparse_rows == "every slot" and position):
                np.testing.assert_allclose(
                    sparse[others], dense[others], rtol=1e-6, atol=1e-6, err_msg=name
                )
            else:
                np.testing.assert_array_equal(sparse[others], old[others], err_msg=name)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(**EXAMPLES)
def test_sparse_steps_match_dense_steps(**example: Array) -> None:
    check_steps((optimizer_rules, keras_rules), **example)


@functools.cache
def distinct_of(rows: int) -> Callable[..., Any]:
    return jax.jit(functools.partial(distinct, rows=rows))


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    hnp.arrays(np.int64, 20, elements=st.integers(0, 2**40) | st.integers(0, 9)),
    st.sampled_from([50, 2**40 + 1]),
)
def test_distinct_indices(indices: Array, rows: int) -> None:
    indices %= rows
    with x64():
        touched, position = distinct_of(rows)(indices)
    first = {index: place for place, index in reversed(list(enumerate(indices.tolist())))}
    assert np.asarray(position).tolist() == [first[index] for index in indices.tolist()]
    expected = [
        index if first[index] == place else rows for place, index in enumerate(indices.tolist())
    ]
    assert np.asarray(touched).tolist() == expected


MAKERS: dict[str, Callable[[], Any]] = {
    "adam": lambda: optimizers.AdamOptimizer(0.1),
    "lazy": lambda: optimizers.LazyAdamOptimizer(0.1, name="Lazy"),
    "keras": lambda: keras.Adam(keras.schedules.ExponentialDecay(0.1, 2, 0.5), amsgrad=True),
    "nadam": lambda: keras.Nadam(0.1),
}


def check_restored(makers: Mapping[str, Callable[[], Any]]) -> None:
    """Training that is restored goes on with the same bits."""
    numbers = np.random.RandomState(0)
    ids, values = builtin_ops.placeholder("int64", [4]), builtin_ops.placeholder("float32", [4, 2])
    updates, variables = [], []
    for name, make in MAKERS.items():
        dense = Variable(numbers.normal(size=(2, 2)).astype(np.float32), name=f"{name}/dense")
        table = Variable(numbers.normal(size=(6, 2)).astype(np.float32), name=f"{name}/table")
        rows = indexing.gather(table, ids) * values
        loss = reduce.reduce_sum(rows) + reduce.reduce_sum(values @ dense)
        updates.append(make().minimize(loss, var_list=[dense, table]))
        variables += [dense, table]
    feeds = [
        {ids: numbers.randint(0, 6, 4), values: numbers.normal(size=(4, 2)).astype(np.float32)}
        for _ in range(10)
    ]
    saver = Saver()
    with tempfile.TemporaryDirectory() as folder:
        with Session() as session:
            session.run(global_variables_initializer())
            for each in feeds[:5]:
                session.run(updates, each)
            path = saver.save(session, str(Path(folder) / "model"))
            for each in feeds[5:]:
                session.run(updates, each)
            expected = session.run(variables)
        with Session() as session:
            saver.restore(session, path)
            for each in feeds[5:]:
                session.run(updates, each)
            for value, wanted in zip(session.run(variables), expected, strict=True):
                np.testing.assert_array_equal(value, wanted)


def test_restored_training_gives_same_bits() -> None:
    with Graph().as_default():
        check_restored(MAKERS)
