"""Runs an estimator's model function in a graph, batch by batch, without the files around it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from estimatorkit.core import builtin_ops
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.tensor import Tensor
from estimatorkit.estimator.estimator import Estimator
from estimatorkit.estimator.spec import EstimatorSpec, ModeKeys
from estimatorkit.ops.variables.variable_collections import (
    global_variables,
    local_variables,
    trainable_variables,
)
from estimatorkit.runtime.session import Session
from estimatorkit.train.checks import step_checks
from estimatorkit.train.global_steps import get_or_create_global_step

Values = dict[str, Any]


def _placeholders(values: Any) -> Any:
    if isinstance(values, Mapping):
        return {key: _placeholders(value) for key, value in values.items()}
    dtype = "string" if values.dtype == object else values.dtype
    return builtin_ops.placeholder(dtype, [None, *values.shape[1:]])


def _fed(tensors: Any, values: Any, rows: Any) -> dict[Tensor, Any]:
    if isinstance(tensors, Mapping):
        found: dict[Tensor, Any] = {}
        for key, tensor in tensors.items():
            found |= _fed(tensor, values[key], rows)
        return found
    return {tensors: values[rows]}


class Built:
    """A model function's graph for one mode, with placeholders for a batch."""

    def __init__(self, estimator: Estimator, features: Any, labels: Any, mode: str) -> None:
        get_or_create_global_step()
        self._data = (features, labels)
        self._inputs = (
            _placeholders(features),
            None if mode == ModeKeys.PREDICT else _placeholders(labels),
        )
        self.spec: EstimatorSpec = estimator.model_fn(*self._inputs, mode, estimator.config)
        self.checks = step_checks(get_default_graph())

    def feed(self, rows: Any) -> dict[Tensor, Any]:
        """The feeds of a batch of rows."""
        features, labels = self._inputs
        fed = _fed(features, self._data[0], rows)
        return fed if labels is None else {**fed, **_fed(labels, self._data[1], rows)}


class Training(NamedTuple):
    """What a training gave: losses before each update, variables by name before and after."""

    losses: list[float]
    trainable: list[str]
    at_start: Values
    final: Values


def train(
    estimator: Estimator,
    features: Any,
    labels: Any,
    batches: Iterable[Any],
    initial: Callable[[Mapping[str, Any]], Mapping[str, Any]],
) -> Training:
    """Trains one step a batch; `initial` gives the trainable variables' first values by shapes.

    Each segment is compiled once.
    """
    with Graph().as_default(), Session() as session:
        built = Built(estimator, features, labels, ModeKeys.TRAIN)
        trainable = {_whole(each): each for each in trainable_variables()}
        others = [each for each in global_variables() if _whole(each) not in trainable]
        session.run([each.initializer for each in others])
        shapes = {name: each.shape.as_list() for name, each in trainable.items()}
        for name, value in initial(shapes).items():
            trainable[name].load(value, session)
        at_start = _values(session)
        fetches = [built.spec.loss, built.spec.train_op, [c.tensors for c in built.checks]]
        losses = [session.run(fetches, built.feed(rows))[0] for rows in batches]
        compilations = session.state.compilations
        assert list(compilations.values()).count(1) == len(compilations)
        return Training(losses, list(trainable), at_start, _values(session))


def _whole(variable: Any) -> str:
    """What a checkpoint calls a variable; version 1's estimators have one part of each."""
    name: str = variable.op.name
    return name.replace("/part_0", "")


def _values(session: Session) -> Values:
    variables = global_variables()
    names = [_whole(each) for each in variables]
    return dict(zip(names, session.run(variables), strict=True))


def load(session: Session, values: Mapping[str, Any]) -> None:
    """Sets global variables to `values`, local ones to 0."""
    for variable in global_variables():
        variable.load(values[_whole(variable)], session)
    for variable in local_variables():
        variable.load(np.zeros(variable.shape.as_list(), np.float32), session)


class Evaluation(NamedTuple):
    """What an evaluation gave: metrics with 'loss', and the places of what ran."""

    metrics: Values
    places: list[str]


def evaluate(
    estimator: Estimator, features: Any, labels: Any, size: int, values: Mapping[str, Any]
) -> Evaluation:
    """Evaluates all rows in batches of `size`, with the variables' values."""
    rows = len(next(iter(features.values())))
    with Graph().as_default(), Session() as session:
        built = Built(estimator, features, labels, ModeKeys.EVAL)
        load(session, values)
        metrics = built.spec.eval_metric_ops
        updates = {key: update for key, (_, update) in metrics.items()}
        losses = []
        found: Values = {}
        for start in range(0, rows, size):
            fed = built.feed(slice(start, start + size))
            loss, found = session.run([built.spec.loss, updates], fed)
            losses.append(loss)
        places = [segment.place for segment in session.plan(updates, fed).segments]
        if size < rows:
            # The values are those of the last update.
            assert session.run({key: value for key, (value, _) in metrics.items()}) == found
        found["loss"] = np.mean(losses)
        found["global_step"] = values["global_step"]
    return Evaluation(found, places)


def predict(estimator: Estimator, features: Any, values: Mapping[str, Any]) -> dict[Any, Any]:
    """The predictions of all rows."""
    with Graph().as_default(), Session() as session:
        built = Built(estimator, features, None, ModeKeys.PREDICT)
        load(session, values)
        found: dict[Any, Any] = session.run(built.spec.predictions, built.feed(slice(None)))
        return found
