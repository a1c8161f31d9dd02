"""Dtypes: names, equality, NumPy counterparts, properties; compared with the golden table."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from estimatorkit.core import dtypes
from estimatorkit.core.dtypes import ALL, DType, as_dtype

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "graph.json").read_text("utf-8"))


@pytest.mark.parametrize("dtype", ALL.values(), ids=str)
def test_every_name_resolves(dtype: DType) -> None:
    assert as_dtype(dtype.name) is dtype
    assert as_dtype(dtype) is dtype
    assert dtype == dtype.name
    assert copy.deepcopy(dtype) is dtype
    assert hash(dtype) == hash(as_dtype(dtype.name))
    assert dtype.base_dtype is dtype
    if not dtype.numpy_dtype.hasobject:
        assert as_dtype(dtype.numpy_dtype) is dtype
        assert as_dtype(dtype.as_numpy_dtype) is dtype
        assert dtype == dtype.numpy_dtype
        assert dtype.size == dtype.numpy_dtype.itemsize
    kinds = [dtype.is_floating, dtype.is_integer, dtype.is_complex, dtype.is_bool]
    assert sum(kinds) == (0 if dtype.numpy_dtype.hasobject else 1)
    assert dtype.kind == "ficbsr"[[*kinds, dtype.name == "string", True].index(True)]


@pytest.mark.parametrize(
    ("value", "name"),
    [
        *((float, "float32"), (int, "int32"), (bool, "bool"), (str, "string"), (bytes, "string")),
        *((complex, "complex64"), ("float", "float32"), ("double", "float64"), ("half", "float16")),
        *((np.int64, "int64"), (np.dtype("S7"), "string"), (np.dtype("U2"), "string")),
        *(
            (jnp.float32, "float32"),
            (object, "string"),
            (np.dtype(">f8"), "float64"),
            (ml_dtypes.bfloat16, "bfloat16"),
        ),
    ],
)
def test_other_dtype_aliases(value: Any, name: str) -> None:
    assert as_dtype(value).name == name


@pytest.mark.parametrize("value", ["float33", None, 3.5, np.dtype("M8[s]"), [], "a,b", dict])
def test_unknown_dtypes_raise(value: Any) -> None:
    with pytest.raises(TypeError, match="is not a dtype"):
        as_dtype(value)


def test_misspelled_name_suggests_dtype() -> None:
    with pytest.raises(TypeError, match="did you mean 'float32'"):
        as_dtype("flaot32")


def test_equality() -> None:
    assert dtypes.float32 == "float32" == dtypes.float32
    assert dtypes.float32 == np.float32
    assert dtypes.float32 != dtypes.float64
    assert dtypes.float32 != "nothing"
    assert dtypes.float32 is not None
    assert dtypes.float32 != 3
    assert dtypes.string != dtypes.resource


def test_limits() -> None:
    assert (dtypes.int8.min, dtypes.int8.max) == (-128, 127)
    assert dtypes.uint16.max == 65535
    assert dtypes.float32.max == np.finfo(np.float32).max
    assert float(dtypes.bfloat16.max) == float(ml_dtypes.finfo(ml_dtypes.bfloat16).max)
    with pytest.raises(TypeError, match="no minimum and maximum"):
        _ = dtypes.string.max


def test_placement_and_width() -> None:
    assert {name for name, dtype in ALL.items() if dtype.is_wide} == {
        *("int64", "uint64", "float64", "complex128")
    }
    assert {name for name, dtype in ALL.items() if dtype.on_host} == {"string"}
    assert dtypes.bfloat16.is_differentiable
    assert not dtypes.int32.is_differentiable


def test_golden_dtypes() -> None:
    facts = GOLDEN["snippets"]["dtypes"]["facts"]
    for name, dtype in ALL.items():
        if name == "resource":
            continue
        assert {
            "repr": repr(dtype),
            "str": str(dtype),
            "name": dtype.name,
            "enum": dtype.as_datatype_enum,
            "size": dtype.size,
            "numpy": dtype.numpy_dtype.name,
            "is_floating": dtype.is_floating,
            "is_integer": dtype.is_integer,
            "is_numpy_compatible": dtype.is_numpy_compatible,
        } == facts[name]
