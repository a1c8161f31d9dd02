"""Keras optimizers against the trajectories of Keras 2.15's, and how they are used."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from estimatorkit.core.graph import Graph
from estimatorkit.core.ops import array, elementwise, indexing, reduce
from estimatorkit.core.session import Session
from estimatorkit.core.variable_scope import get_variable
from estimatorkit.core.variables import Variable, global_variables, global_variables_initializer
from estimatorkit.keras import optimizers
from estimatorkit.keras.optimizers import schedules
from estimatorkit.train import optimizers as train_optimizers
from estimatorkit.train.global_steps import get_or_create_global_step
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


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("case", CASES)
def test_trajectories_and_names_are_tensorflows(
    golden: dict[str, NDArray[Any]], case: str, kind: str
) -> None:
    namespace, class_name, arguments = CASES[case]
    facts = FACTS[kind][case]
    names = ["matrix", "vector"] if kind == "dense" else ["table"]
    first, data = starts(), gradients()
    variables = [get_variable(name, initializer=first[name]) for name in names]
    given = {name: array.placeholder("float32", data[name].shape[1:]) for name in names}
    rows = array.placeholder("int64", [4])
    if kind == "dense":
        losses = [reduce.reduce_sum(v * given[n]) for n, v in zip(names, variables, strict=True)]
    else:
        losses = [reduce.reduce_sum(indexing.gather(variables[0], rows) * given["table"])]
    loss = elementwise.add_n(losses)
    if namespace == "train":
        step = get_or_create_global_step()
        made = getattr(train_optimizers, class_name)(global_step=step, **arguments)
        update = made.minimize(loss, step, variables)
    else:
        optimizer = optimizers.get({"class_name": class_name, "config": arguments})
        assert optimizer.get_config() == _without_modules(facts["config"])
        (update,) = optimizer.get_updates(loss, variables)
        assert [each.op.name for each in optimizer.weights] == facts["weights"]
        assert optimizer.get_slot_names() == facts["slot_names"]
    others = [each for each in global_variables() if each.op.name not in names]
    assert [each.op.name for each in others] == facts["variables"]
    kept: dict[str, list[Any]] = {name: [] for name in names}
    with started() as session:
        everything = [*variables, *others]
        values = session.run(everything)[len(names) :]
        at_start = {each.op.name: np.ravel(v)[0] for each, v in zip(others, values, strict=True)}
        assert at_start == pytest.approx(facts["at_start"])
        for count in range(STEPS):
            feeds = {given[name]: data[name][count] for name in names}
            if kind == "sparse":
                feeds[rows] = data["rows"][count]
            session.run(update, feeds)
            if count + 1 in KEPT_STEPS:
                values = session.run(everything)
                for name, value in zip(names, values, strict=False):
                    kept[name].append(value)
        assert session.state.compilations[update.name] == 1
    arrays = {f"trajectory/{name}": np.stack(each) for name, each in kept.items()}
    last = zip(others, values[len(names) :], strict=True)
    arrays |= {f"held/{each.op.name}": value for each, value in last}
    prefix = f"{kind}/{case}/"
    assert set(arrays) == {key.removeprefix(prefix) for key in golden if key.startswith(prefix)}
    for name, value in arrays.items():
        np.testing.assert_allclose(value, golden[prefix + name], rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_are_tensorflows(name: str) -> None:
    class_name, arguments = SCHEDULES[name]
    schedule = getattr(schedules, class_name)(**arguments)
    again = schedules.deserialize(schedules.serialize(schedule))
    assert type(again) is type(schedule)
    assert again.get_config() == schedule.get_config()
    step = array.placeholder("float32", [])
    rate = schedule(step)
    with Session() as session:
        found = [session.run(rate, {step: each}) for each in SCHEDULE_STEPS]
    np.testing.assert_allclose(found, FACTS["schedules"][name], rtol=2e-6, atol=1e-8)
