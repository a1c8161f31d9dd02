"""`get_optimizer_by_name`: which version's defaults names mean, and errors."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from estimatorkit.core import builtin_ops
from estimatorkit.core.graph import Graph
from estimatorkit.core.variables import Variable
from estimatorkit.ops.array import indexing
from estimatorkit.ops.math import reduce
from estimatorkit.ops.variables.variable_collections import global_variables_initializer
from estimatorkit.runtime.session import Session
from estimatorkit.train.optimizers.optimizers import (
    AdagradOptimizer,
    AdamOptimizer,
    FtrlOptimizer,
    GradientDescentOptimizer,
    RMSPropOptimizer,
)
from estimatorkit.train.optimizers.optimizers_by_name import get_optimizer_by_name
from tests.golden.golden_files import FOLDER
from tests.sweep import sweep

ERRORS = json.loads((FOLDER / "estimator_errors.json").read_text())

# A table of three rows of one number (1, -2, 0.5) after four steps at learning rate 0.1, with the
# gradients below for all rows and, sparse, for the first two: tf.keras.optimizers.legacy and
# tf.compat.v1.train of TensorFlow 2.15.1.
GRADIENTS = np.array(
    [[0.3, -0.7, 0.001], [0.1, 0.2, -0.002], [-0.4, 0.5, 0.0], [0.2, 0.2, 0.003]], np.float32
)
EXPECTED: dict[tuple[int, str, bool], list[float]] = {
    (2, "Adagrad", False): [0.9438585, -2.008217, 0.4993676],
    (2, "Adagrad", True): [0.9438585, -2.008217, 0.5],
    (2, "Adam", False): [0.8064597, -1.8835895, 0.43239316],
    (2, "Adam", True): [0.8064597, -1.8835895, 0.5],
    (2, "Ftrl", False): [0.21838221, -1.1848302, -0.00062990584],
    (2, "Ftrl", True): [0.21838221, -1.1848302, 0.5],
    (2, "RMSProp", False): [0.7115424, -2.044468, 0.20613712],
    (2, "RMSProp", True): [0.7115424, -2.044468, 0.5],
    (2, "SGD", False): [0.98, -2.02, 0.49980003],
    (2, "SGD", True): [0.98, -2.02, 0.5],
    (1, "Adagrad", False): [0.9438585, -2.0082169, 0.4993676],
    (1, "Adagrad", True): [0.9438585, -2.0082169, 0.5],
    (1, "Adam", False): [0.8064579, -1.8835889, 0.43216687],
    (1, "Adam", True): [0.8064579, -1.8835889, 0.5],
    (1, "Ftrl", False): [0.21838221, -1.1848302, -0.00062990584],
    (1, "Ftrl", True): [0.21838221, -1.1848302, 0.5],
    (1, "RMSProp", False): [0.9793548, -2.0292757, 0.49974644],
    (1, "RMSProp", True): [0.9793548, -2.0292757, 0.5],
    (1, "SGD", False): [0.98, -2.02, 0.49980003],
    (1, "SGD", True): [0.98, -2.02, 0.5],
}


@sweep(("version", "name", "sparse"), EXPECTED, quick=10)
def test_names_mean_tensorflow_optimizers(version: Any, name: str, sparse: bool) -> None:
    with Graph().as_default():
        w = Variable(np.array([[1.0], [-2.0], [0.5]], np.float32), name="w")
        given = builtin_ops.placeholder("float32", [2 if sparse else 3, 1])
        rows = indexing.gather(w, [0, 1]) if sparse else w
        optimizer = get_optimizer_by_name(name, 0.1, version=version)
        update = optimizer.minimize(reduce.reduce_sum(rows * given))
        with Session() as session:
            session.run(global_variables_initializer())
            for gradient in GRADIENTS:
                session.run(update, {given: gradient[: 2 if sparse else 3, None]})
            value = session.run(w)[:, 0]
    np.testing.assert_allclose(value, EXPECTED[version, name, sparse], rtol=2e-6)


def test_every_name_is_compared_with_tensorflow() -> None:
    names = {(version, name) for version, name, _ in EXPECTED}
    known = ("Adagrad", "Adam", "Ftrl", "RMSProp", "SGD")
    assert names == {(version, name) for version in (1, 2) for name in known}


@pytest.mark.parametrize(
    ("name", "kind", "rate"),
    [
        ("Adagrad", AdagradOptimizer, 0.001),
        ("Adam", AdamOptimizer, 0.001),
        ("Ftrl", FtrlOptimizer, 0.001),
        ("RMSProp", RMSPropOptimizer, 0.001),
        ("SGD", GradientDescentOptimizer, 0.01),
    ],
)
def test_default_learning_rates(name: str, kind: type, rate: float) -> None:
    with Graph().as_default():
        optimizer = get_optimizer_by_name(name)
        assert type(optimizer) is kind
        update = optimizer.minimize(Variable([1.0]) * 1.0)
        found = update.graph.get_tensor_by_name(f"{optimizer.get_name()}/learning_rate:0")
        assert found.op.get_attr("value") == np.float32(rate)
    with pytest.raises(ValueError, match="learning_rate must be specified"):
        get_optimizer_by_name(name, version=1)


def test_optimizers_and_factories() -> None:
    optimizer = AdamOptimizer(0.25)
    assert get_optimizer_by_name(optimizer) is optimizer
    assert get_optimizer_by_name(lambda: optimizer) is optimizer
    assert isinstance(get_optimizer_by_name(AdamOptimizer), AdamOptimizer)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Sgd", "SGD"),
        ("adam", "Adam"),
        ("AdamOptimizer", "Adam"),
        ("RMSprop", "RMSProp"),
        ("GradientDescent", "SGD"),
        ("Adagrda", "Adagrad"),
    ],
)
def test_unknown_name_suggests_known_names(name: str, meant: str) -> None:
    with pytest.raises(ValueError, match="Unsupported optimizer name") as caught:
        get_optimizer_by_name(name)
    assert f"did you mean {meant!r}?" in str(caught.value)
    expected = ERRORS["errors"]["optimizer_that_is_unknown"]["first_line"]
    assert str(caught.value).splitlines()[0] == f"{expected.replace('Sgd', name)}."


@pytest.mark.parametrize("wrong", [3, None, lambda: 3])
def test_other_objects_raise(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"not an Optimizer instance. Given: (3|None)"):
        get_optimizer_by_name(wrong)
