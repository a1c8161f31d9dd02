"""Inputs that are read once, into memory, by estimators that need all rows at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.errors import OutOfRangeError, value_error
from estimatorkit.core.tensor import Tensor
from estimatorkit.data.dataset import Dataset
from estimatorkit.data.iterator_ops import make_one_shot_iterator
from estimatorkit.data.plan import INFINITE, Plan, Repeat, Unary
from estimatorkit.estimator.estimator import Estimator
from estimatorkit.estimator.model_input import ModelInput
from estimatorkit.runtime.session import Session

Array = NDArray[Any]


def without_repeats(given: ModelInput) -> ModelInput:
    """An input without its repetitions, as far as they are not below several sources."""
    if given.dataset is None:
        return given
    return replace(given, dataset=Dataset(_once(given.dataset._plan)))


def _once(plan: Plan) -> Plan:
    if not isinstance(plan, Unary):
        return plan
    source = _once(plan.source)
    if isinstance(plan, Repeat) and (plan.count is None or plan.count != 0):
        return source
    return plan if source is plan.source else replace(plan, source=source)


def check_one_process(estimator: Estimator, what: str) -> None:
    """Raises ValueError if an estimator has a strategy or parameter servers.

    Args:
        estimator: the estimator.
        what: what its training does, for the message.
    """
    strategy = estimator._train_distribution
    if estimator.cluster is not None or strategy is not None:
        raise value_error(
            what,
            expected="no parameter servers and no strategy",
            received=repr(strategy or "parameter servers"),
        )


def check_ends(given: ModelInput) -> None:
    """Raises ValueError if an input without repetitions never ends."""
    if given.dataset is not None and given.dataset._plan.cardinality == INFINITE:
        raise value_error(
            "the input never ends, and all rows are read before anything is learnt",
            expected="an input that ends, or a number of steps",
            received=repr(given.dataset),
            hint="leave out repeat(), or give steps=...: how many batches to read",
        )


def read_rows(given: ModelInput, steps: int | None) -> tuple[dict[str, Array], Array]:
    """Reads features, by key, and labels of an input of batches.

    Args:
        given: the input.
        steps: how many batches to read; None: all.

    Raises:
        ValueError: it is no dataset of dense features and one label, is empty or never ends.
    """
    given = without_repeats(given)
    features, labels = given.features, given.labels
    dense = isinstance(features, Mapping) and all(
        isinstance(each, Tensor) for each in (*features.values(), labels)
    )
    if given.dataset is None or not dense:
        raise value_error(
            "the rows cannot be read into memory",
            expected="an input_fn that returns a Dataset of (dict of dense features, labels)",
            received=repr(given.dataset or features)[:200],
        )
    if steps is None:
        check_ends(given)
    batches: list[Any] = []
    with given.graph.as_default(), Session(graph=given.graph) as session:
        following = make_one_shot_iterator(given.dataset).get_next()
        while steps is None or len(batches) < steps:
            try:
                batches.append(session.run(following))
            except OutOfRangeError:
                break
    if not batches:
        raise value_error("the input has no rows", received=repr(given.dataset))
    rows = {key: np.concatenate([each[0][key] for each in batches]) for key in features}
    return rows, np.concatenate([each[1] for each in batches])


__all__ = ["check_ends", "check_one_process", "read_rows", "without_repeats"]
