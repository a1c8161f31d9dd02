"""Dtype policies, and variables that are cast when read."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from estimatorkit.core.graph import Graph
from estimatorkit.core.variables import Variable
from estimatorkit.layers.engine import policy
from estimatorkit.layers.engine.policy import AutoCastVariable, Policy, as_policy, autocast
from estimatorkit.ops.array import indexing
from estimatorkit.ops.math import reduce
from estimatorkit.ops.variables.variable_collections import global_variables_initializer
from estimatorkit.runtime.session import Session
from estimatorkit.train.optimizers.optimizers import AdamOptimizer


@pytest.fixture(autouse=True)
def graph() -> Iterator[Graph]:
    graph = Graph()
    with graph.as_default():
        yield graph
    policy.set_global_policy(None)


@pytest.mark.parametrize(
    ("name", "compute", "variables"),
    [
        ("mixed_bfloat16", "bfloat16", "float32"),
        ("mixed_float16", "float16", "float32"),
        ("float64", "float64", "float64"),
        ("int32", "int32", "int32"),
    ],
)
def test_policies(name: str, compute: str, variables: str) -> None:
    made = Policy(name)
    assert (made.name, made.compute_dtype, made.variable_dtype) == (name, compute, variables)
    assert made.is_mixed == (compute != variables)
    assert repr(made) == f'<Policy "{name}">'
    assert Policy.from_config(made.get_config()) == made
    assert as_policy({"class_name": "Policy", "config": made.get_config()}) == made
    assert as_policy(name) == made == as_policy(made)


def test_unknown_policies_raise() -> None:
    with pytest.raises(ValueError, match="did you mean 'mixed_bfloat16'"):
        Policy("mixed_bf16")
    with pytest.raises(ValueError, match="floating-point policies"):
        policy.set_global_policy("int32")


def test_global_policy() -> None:
    assert as_policy(None) == Policy("float32")
    policy.set_global_policy("mixed_bfloat16")
    assert policy.global_policy() == Policy("mixed_bfloat16") == as_policy(None)
    policy.set_global_policy(None)
    assert as_policy(None).name == "float32"


def test_variables_are_cast_inside_autocast_only() -> None:
    w = AutoCastVariable(np.array([[1.0, 2.0]], np.float32), name="w")
    count = AutoCastVariable(np.array(3), trainable=False)
    assert isinstance(w, Variable)
    assert (w + 0.0).dtype.name == "float32"
    with autocast("bfloat16"):
        assert (w * 2).dtype.name == w.read_value().dtype.name == "bfloat16"
        assert w.dtype.name == "float32"
        assert (count + 1).dtype.name == "int64"
        rows = w.sparse_read([0])
        assert rows.dtype.name == "bfloat16"
        assert rows.op.inputs[0].dtype.name == "float32"  # the rows are cast, not the table
        loss = reduce.reduce_sum(indexing.gather(w * w, [0]))
        with autocast(None):
            assert (w * 2).dtype.name == "float32"
    optimizer = AdamOptimizer(0.5)
    update = optimizer.minimize(loss)
    with Session() as session:
        session.run(global_variables_initializer())
        session.run(update)
        value = session.run(w)
    assert value.dtype == np.float32
    np.testing.assert_allclose(value, [[0.5, 1.5]], rtol=1e-5)
