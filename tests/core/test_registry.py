"""The registry: adding rows, inference from kernels, values known before running."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from estimatorkit.core import builtin_ops, registry
from estimatorkit.core.conversion import constant
from estimatorkit.core.dtypes import float32, int32
from estimatorkit.core.graph import Graph
from estimatorkit.core.registry import (
    Case,
    constant_value,
    constant_value_as_shape,
    inference,
    register,
    table,
)
from estimatorkit.core.variables import Variable
from estimatorkit.ops.array import array, filling, joining
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.runtime.session import Session


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    registry.registered_types()  # imports all modules, into the registry that stays
    monkeypatch.setattr(table, "_REGISTRY", dict(table._REGISTRY))
    monkeypatch.setattr(table, "_MODULES", dict(table._MODULES))
    with Graph().as_default():
        yield


def test_register_op_with_one_function() -> None:
    register("TwiceAndSum", lambda x, times: (x * times, jnp.sum(x)), cases=lambda: [Case(())])
    x = builtin_ops.placeholder(float32, [None, 2])
    doubled, total = registry.apply("TwiceAndSum", [x], {"times": 2.0}).outputs
    assert doubled.shape == [None, 2]
    assert total.shape == []
    with Session() as session:
        found = session.run([doubled, total], {x: [[1.0, 2.0]]})
    assert found[0].tolist() == [[2.0, 4.0]]
    assert found[1] == 3.0


def test_duplicate_op_type_raises() -> None:
    with pytest.raises(ValueError, match="registered twice"):
        register("Add", jnp.add)
    assert "Add" in registry.registered_types()
    with pytest.raises(KeyError):
        registry.lookup("Nothing")


def test_the_module_of_an_op_is_imported_when_its_type_is_looked_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "module_of_halve.py").write_text(
        "from estimatorkit.core.registry import register\nregister('Halve', lambda x: x / 2)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert registry.find("Halve") is None
    registry.add_ops("module_of_halve", "Halve")
    assert "module_of_halve" not in sys.modules
    halved = registry.output("Halve", [constant([3.0])])
    with Session() as session:
        assert session.run(halved).tolist() == [1.5]
    monkeypatch.delitem(sys.modules, "module_of_halve")
    with pytest.raises(ValueError, match="'Halve' has two modules: module_of_halve and another"):
        registry.add_ops("another", "Halve")


def test_inference_from_kernel() -> None:
    register("Outer", lambda x, y: jnp.einsum("i,j->ij", x, y))
    known, unknown = constant([1.0, 2.0]), builtin_ops.placeholder(float32, [None])
    row = registry.lookup("Outer")
    assert inference.infer_from_kernel(row, [known, known], {})[0].shape == [2, 2]
    assert inference.infer_from_kernel(row, [known, unknown], {})[0].shape == [2, None]
    assert inference.infer_from_kernel(row, [unknown, unknown], {})[0].shape == [None, None]
    whatever = builtin_ops.placeholder(float32)
    spec = inference.infer_from_kernel(row, [known, whatever], {})[0]
    assert spec.shape.rank is None
    assert spec.dtype is float32
    with pytest.raises(ValueError, match="Outer does not accept these inputs") as caught:
        inference.infer_from_kernel(row, [known, constant([[1.0]])], {})
    assert __file__ in str(caught.value)


def test_kernel_inference_is_cached_by_shape() -> None:
    calls: list[Any] = []

    def kernel(x: Any, table: Any) -> Any:
        calls.append(x.shape)
        return x + jnp.asarray(table)

    register("AddTable", kernel)
    for _ in range(3):
        registry.output("AddTable", [constant([1.0, 2.0])], {"table": np.ones(2, np.float32)})
    assert len(calls) == 1
    registry.output("AddTable", [constant([1.0, 2.0])], {"table": np.zeros(2, np.float32)})
    assert len(calls) == 2


def test_constant_values() -> None:
    x = builtin_ops.placeholder(float32, [2, None])
    full = builtin_ops.placeholder(float32, [2, 3])
    folded = elementwise.add(constant([1, 2]), 3) * 2
    assert constant_value(folded).tolist() == [8, 10]
    assert constant_value(array.shape(full)).tolist() == [2, 3]
    assert constant_value(array.size(full)) == 6
    assert constant_value(array.rank(full)) == 2
    assert constant_value(array.shape(x)) is None
    assert constant_value(x) is None
    assert constant_value(Variable(1.0).value()) is None
    assert constant_value(array.placeholder_with_default(1, [])) is None
    assert constant_value(filling.range_(3)).tolist() == [0, 1, 2]
    assert constant_value(joining.split(constant([1, 2, 3, 4]), 2)[1]).tolist() == [3, 4]
    assert constant_value(elementwise.cast(constant([1.7]), int32)).tolist() == [1]
    assert constant_value(reduce.reduce_sum(constant([1, 2]))) == 3
    assert constant_value(constant(["a"])).tolist() == [b"a"]


def test_large_constants_are_not_folded() -> None:
    large = filling.zeros([100, 100])
    assert constant_value(elementwise.exp(large)) is None


def test_constant_value_as_shape() -> None:
    x = builtin_ops.placeholder(float32, [None, 3, 4])
    dims = array.shape(x)
    assert constant_value_as_shape(dims) == [None, 3, 4]
    assert constant_value_as_shape(dims[1:]) == [3, 4]
    assert constant_value_as_shape(dims[:1]) == [None]
    assert constant_value_as_shape(dims[::-1]) == [4, 3, None]
    assert constant_value_as_shape(joining.stack([dims[0], dims[2], 5])) == [None, 4, 5]
    assert constant_value_as_shape(joining.concat([dims[:2], [7, -1]], 0)) == [None, 3, 7, None]
    assert constant_value_as_shape(constant([2, -1])) == [2, None]
    assert constant_value_as_shape(builtin_ops.placeholder(int32, [2])) == [None, None]
    assert constant_value_as_shape(builtin_ops.placeholder(int32, [None])).rank is None
    assert constant_value_as_shape(builtin_ops.placeholder(int32)).rank is None


def test_static_broadcasting() -> None:
    for one, other, expected in (
        ([2, 3], [3], [2, 3]),
        ([2, 1], [1, 4], [2, 4]),
        ([None, 3], [1], [None, 3]),
        ([None, 3], [5, 1], [5, 3]),
        ([None], [1], [None]),
        ([None], [4], [4]),
        ([], [2], [2]),
        ([2, 0], [1], [2, 0]),
    ):
        x, y = builtin_ops.placeholder(float32, one), builtin_ops.placeholder(float32, other)
        assert (x + y).shape == expected
        assert (y + x).shape == expected
    assert (builtin_ops.placeholder(float32) + constant([1.0])).shape.rank is None
    with pytest.raises(ValueError, match="must be equal, but are 2 and 3"):
        constant([1.0, 2.0]) + constant([1.0, 2.0, 3.0])
