"""Conversion of Python values to tensors: default dtypes, lists with tensors, errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from estimatorkit.core import builtin_ops
from estimatorkit.core.conversion import (
    as_array,
    constant,
    convert_to_tensor,
    register_tensor_conversion_function,
)
from estimatorkit.core.dtypes import as_dtype, float32, float64, int32, int64, string
from estimatorkit.core.graph import Graph
from estimatorkit.core.indexed_slices import IndexedSlices
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.variables import Variable
from estimatorkit.ops.array import filling
from estimatorkit.ops.debug.checks import is_tensor
from estimatorkit.ops.math import elementwise
from estimatorkit.runtime.session import Session


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    with Graph().as_default():
        yield


def value_of(tensor: Any) -> Any:
    with Session() as session:
        return session.run(tensor)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        *((1, "int32"), (1.0, "float32"), (True, "bool"), ("a", "string"), (b"a", "string")),
        *(([1, 2.5], "float32"), ([], "float32"), ([[]], "float32"), (2**40, "int64")),
        *((-(2**31), "int32"), (2**31, "int64"), (1j, "complex128"), (["a", b"b"], "string")),
        *((np.float64(1), "float64"), ([np.float64(1)], "float32"), (np.zeros(2), "float64")),
        *(([1, np.float64(2)], "float32"), ([np.int64(1), 2], "int32"), ([np.uint8(1)], "uint8")),
        *(([np.float16(1), 2.5], "float32"), ([np.int64(2**40), 1], "int64")),
        *((TensorShape([2**40]), "int64"), (TensorShape([2, 3]), "int32")),
        *((np.int64(1), "int64"), (np.array([1]), "int64"), (np.float16(1), "float16")),
        *((np.array(["a"]), "string"), (np.bool_(True), "bool"), (range(3), "int32")),
    ],
)
def test_default_dtypes(value: Any, name: str) -> None:
    tensor = convert_to_tensor(value)
    assert tensor.dtype.name == name
    assert tensor.dtype == np.asarray(value_of(builtin_ops.identity(tensor))).dtype


@pytest.mark.parametrize(
    ("value", "dtype", "fits"),
    [
        *((1, "float32", True), (1, "int64", True), (1.5, "int32", False), (1.0, "int32", False)),
        *((True, "int32", True), (1, "bool", False), ("a", "float32", False)),
        *(
            (1, "string", False),
            (True, "bool", True),
            (1.5, "bfloat16", True),
            (1, "complex64", True),
        ),
        *((np.float64(1), "float32", True), (np.int64(1), "int32", True), ([], "int32", True)),
        *((1.5, "float16", True), (1j, "float32", False)),
        *((np.array([1.5]), "int32", True), (np.array([300]), "uint8", True)),
        *((np.array([1j]), "float32", True), ([True], "float32", True)),
    ],
)
def test_explicit_dtypes(value: Any, dtype: str, fits: bool) -> None:
    if fits:
        assert constant(value, dtype).dtype.name == dtype
    else:
        with pytest.raises(TypeError, match=f"Expected {dtype}"):
            constant(value, dtype)


def test_overflowing_numbers_raise() -> None:
    for value, dtype in ((300, "uint8"), (-1, "uint8"), (2**40, "int32"), (-1, "uint64")):
        with pytest.raises(TypeError, match="out of its range"):
            constant(value, dtype)


def test_non_tensor_values_raise() -> None:
    for value in (None, [[1, 2], [3]], [None]):
        with pytest.raises((ValueError, TypeError)):
            convert_to_tensor(value)
    with pytest.raises(ValueError, match="None values not supported"):
        constant(None)


def test_tensors_variables_and_nested_lists() -> None:
    a = constant(1.0)
    v = Variable(2.0)
    assert convert_to_tensor(a) is a
    assert convert_to_tensor(v) is v.value()
    packed = convert_to_tensor([a, 5, [1.0][0]])
    assert packed.shape == (3,)
    assert value_of(packed).tolist() == [1.0, 5.0, 1.0]
    nested = convert_to_tensor([[a, 2.0], [3.0, a]])
    assert value_of(nested).tolist() == [[1.0, 2.0], [3.0, 1.0]]
    with pytest.raises(ValueError, match="requested dtype int32 for Tensor with dtype float32"):
        convert_to_tensor(a, int32)
    assert convert_to_tensor(1, preferred_dtype=float64).dtype is float64
    assert convert_to_tensor(1.5, preferred_dtype=int32).dtype is float32


def test_numbers_take_dtype_of_other_operand() -> None:
    for dtype in (float64, int64, as_dtype("bfloat16")):
        x = filling.ones([2], dtype)
        for tensor in (x + 1, 2 * x, x - 1, elementwise.maximum(x, 0), elementwise.add(3, x)):
            assert tensor.dtype is dtype
    with pytest.raises(TypeError, match="does not match type"):
        constant(1) + 1.5


def test_constants_are_immutable_copies() -> None:
    given = np.array([1.0, 2.0], np.float32)
    tensor = constant(given)
    given[0] = 9
    assert value_of(tensor).tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        tensor.op.attrs["value"][0] = 5


def test_constant_shape() -> None:
    assert value_of(constant(7, shape=[2, 2])).tolist() == [[7, 7], [7, 7]]
    assert value_of(constant([1, 2], shape=[2, 2])).tolist() == [[1, 2], [2, 2]]
    assert value_of(constant([1, 2, 3, 4], shape=[2, 2])).tolist() == [[1, 2], [3, 4]]
    for value in ([1, 2, 3], []):
        with pytest.raises(
            ValueError, match=r"Too many elements provided|does not match its shape"
        ):
            constant(value, shape=[2])


def test_strings() -> None:
    tensor = constant([["a", "ä"], [b"\xff", ""]])
    assert tensor.dtype is string
    assert value_of(tensor).tolist() == [[b"a", "ä".encode()], [b"\xff", b""]]
    assert as_array("x").tolist() == b"x"
    for value in (b"a\0", [b"a\0\0", "bc"], np.array([b"a\0"], object)):
        assert as_array(value).ravel()[0].startswith(b"a\0")


def test_shape_beyond_int32_raises() -> None:
    with pytest.raises(ValueError, match="a dimension is too large"):
        convert_to_tensor(TensorShape([2**40]), int32)


def test_registered_conversion_function() -> None:
    class Metres(float):
        pass

    def convert(
        value: Metres, dtype: Any = None, name: str | None = None, as_ref: bool = False
    ) -> Any:
        return constant(float(value) * 100, name="centimetres") if value > 0 else NotImplemented

    register_tensor_conversion_function(Metres, convert)
    with Graph().as_default(), Session() as session:
        made = convert_to_tensor(Metres(2))
        assert made.op.name == "centimetres"
        assert session.run(convert_to_tensor(Metres(-1))) == -1.0  # left to the others
        assert session.run(made) == 200.0
        assert session.run(convert_to_tensor([Metres(2), 3.0])).tolist() == [200.0, 3.0]
        with pytest.raises(RuntimeError, match="returned incompatible dtype"):
            convert_to_tensor(Metres(2), int32)
    with pytest.raises(TypeError, match="must be a type"):
        register_tensor_conversion_function("Metres", convert)  # type: ignore[arg-type]


def test_is_tensor() -> None:
    rows = IndexedSlices(constant([[1.0]]), constant([0]))
    assert all(is_tensor(each) for each in (constant(1.0), Variable(1.0), rows))
    assert not any(is_tensor(each) for each in (1.0, np.zeros(2), [constant(1.0)], None))


def test_zeros_and_ones_of_scalar_shape() -> None:
    with Graph().as_default(), Session() as session:
        length = builtin_ops.placeholder(int32, [])
        made = [filling.zeros(3), filling.ones(2), filling.zeros(length)]
        assert [each.shape for each in session.run(made, {length: 4})] == [(3,), (2,), (4,)]
        with pytest.raises(ValueError, match="Shape must be rank 1 but is rank 0"):
            filling.fill(3, 1.0)


def test_arrays_are_cast_and_numbers_are_checked() -> None:
    with Graph().as_default():
        values = [
            constant(np.array([1.7, -2.2]), int32),
            constant(True, int64),
            constant([True, False], float32),
            constant(5, shape=[2, 0]),
        ]
        with Session() as session:
            found = session.run(values)
        assert [np.asarray(each).tolist() for each in found] == [[1, -2], 1, [1.0, 0.0], [[], []]]
        with pytest.raises(TypeError, match=r"Expected int32, but got 1\.5 of type 'float'"):
            constant([1.5], int32)
        with pytest.raises(TypeError, match="Expected Tensor's shape"):
            constant([1, 2], shape=[2, 1], verify_shape=True)
        with pytest.raises(TypeError, match="list containing a tensor of dtype"):
            convert_to_tensor([constant(1), constant(1.0)])


def test_dtypes_from_enum_numbers() -> None:
    assert as_dtype(1) is float32
    assert as_dtype("float32_ref") is float32
    with pytest.raises(TypeError, match="is not a dtype"):
        as_dtype(12345)
