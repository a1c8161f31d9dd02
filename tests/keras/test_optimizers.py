"""Keras optimizers against the trajectories of Keras 2.15's, and how they are used."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from estimatorkit.core import builtin_ops
from estimatorkit.core.graph import Graph
from estimatorkit.core.variables import Variable
from estimatorkit.keras import optimizers
from estimatorkit.keras.optimizers import schedules
from estimatorkit.ops.array import indexing
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.variables.variable_collections import (
    global_variables,
    global_variables_initializer,
)
from estimatorkit.ops.variables.variable_scope import get_variable
from estimatorkit.runtime.session import Session
from estimatorkit.train.optimizers import optimizers as train_optimizers
from tests.golden.golden_files import FOLDER
from tests.golden.golden_optimizers import (
    CASES,
    KEPT_STEPS,
    SCHEDULE_STEPS,
    SCHEDULES,
    STEPS,
    gradients,
    starts,
)

FACTS = json.loads((FOLDER / "keras_optimizers.json").read_text())


@pytest.fixture(scope="module")
def golden() -> dict[str, NDArray[Any]]:
    with np.load(FOLDER / "keras_optimizers.npz") as file:
        return dict(file)


@pytest.fixture(autouse=True)
def graph() -> Iterator[Graph]:
    graph = Graph()
    with graph.as_default():
        yield graph


def started() -> Session:
    session = Session()
    session.run(global_variables_initializer())
    return session


def weights(value: Any = (1.0, -2.0), name: str = "w", **rest: Any) -> Variable:
    return Variable(np.array(value, np.float32), name=name, **rest)


def _without_modules(config: dict[str, Any]) -> dict[str, Any]:
    rate = config["learning_rate"]
    if isinstance(rate, dict):
        rate = {key: rate[key] for key in ("class_name", "config")}
    return {**config, "learning_rate": rate}


def made_update(case: str, loss: Any, variables: list[Variable]) -> tuple[Any, Any]:
    """The operation of a step, and the optimizer."""
    namespace, class_name, arguments = CASES[case]
    if namespace == "train":
        step = Variable(np.int64(0), trainable=False, name="global_step")
        inner = getattr(train_optimizers, class_name)(global_step=step, **arguments)
        return inner.minimize(loss, step, variables), inner
    optimizer = optimizers.get({"class_name": class_name, "config": arguments})
    (update,) = optimizer.get_updates(loss, variables)
    return update, optimizer


@pytest.mark.parametrize("case", CASES)
def test_names_and_configs_match_tensorflow(case: str) -> None:
    first = starts()
    variables = [get_variable(name, initializer=first[name]) for name in ("matrix", "vector")]
    namespace, class_name, arguments = CASES[case]
    facts = FACTS["dense"][case]
    if namespace == "keras":
        config = optimizers.get({"class_name": class_name, "config": arguments}).get_config()
        assert config == _without_modules(facts["config"])
    loss = elementwise.add_n([reduce.reduce_sum(each) for each in variables])
    _, optimizer = made_update(case, loss, variables)
    made = [each.op.name for each in global_variables() if each not in variables]
    assert made == facts["variables"]
    if namespace == "keras":
        assert [each.op.name for each in optimizer.weights] == facts["weights"]
        assert optimizer.get_slot_names() == facts["slot_names"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_trajectories_match_tensorflow(golden: dict[str, NDArray[Any]], kind: str) -> None:
    names = ["matrix", "vector"] if kind == "dense" else ["table"]
    first, data = starts(), gradients()
    given = {name: builtin_ops.placeholder("float32", data[name].shape[1:]) for name in names}
    rows = builtin_ops.placeholder("int64", [4])
    updates, trained, held = {}, {}, {}
    for case in CASES:
        before = set(global_variables())
        variables = [Variable(first[name], name=f"{case}/{name}") for name in names]
        factors = [indexing.gather(variables[0], rows)] if kind == "sparse" else variables
        losses = [
            reduce.reduce_sum(each * given[name]) for name, each in zip(names, factors, strict=True)
        ]
        updates[case], _ = made_update(case, elementwise.add_n(losses), variables)
        own = [each for each in global_variables() if each not in before]
        trained[case], held[case] = variables, [each for each in own if each not in variables]
    everything = list(updates.values())
    with started() as session:
        at_start = session.run(held)
        kept = []
        for count in range(STEPS):
            feeds = {given[name]: data[name][count] for name in names}
            if kind == "sparse":
                feeds[rows] = data["rows"][count]
            session.run(everything, feeds)
            if count + 1 in KEPT_STEPS:
                kept.append(session.run(trained))
        at_end = session.run(held)
    for case in CASES:
        facts = FACTS[kind][case]
        found = {
            f"trajectory/{name}": np.stack([values[case][place] for values in kept])
            for place, name in enumerate(names)
        }
        begun = {
            name: np.ravel(v)[0] for name, v in zip(facts["variables"], at_start[case], strict=True)
        }
        assert begun == pytest.approx(facts["at_start"])
        last = zip(facts["variables"], at_end[case], strict=True)
        found |= {f"held/{name}": value for name, value in last}
        prefix = f"{kind}/{case}/"
        assert set(found) == {
            each.removeprefix(prefix) for each in golden if each.startswith(prefix)
        }
        for name, value in found.items():
            expected = golden[prefix + name]
            np.testing.assert_allclose(
                value, expected, rtol=1e-5, atol=1e-5, err_msg=f"{case} {name}"
            )


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_match_tensorflow(name: str) -> None:
    class_name, arguments = SCHEDULES[name]
    schedule = getattr(schedules, class_name)(**arguments)
    again = schedules.deserialize(schedules.serialize(schedule))
    assert type(again) is type(schedule)
    assert again.get_config() == schedule.get_config()
    step = builtin_ops.placeholder("float32", [])
    rate = schedule(step)
    with Session() as session:
        found = [session.run(rate, {step: each}) for each in SCHEDULE_STEPS]
    np.testing.assert_allclose(found, FACTS["schedules"][name], rtol=2e-6, atol=1e-8)
