"""Every op of the registry on the default device by floating dtype, beside float32 on the CPU.

On an accelerator this compares it with the CPU; where the CPU is the only device, 16 bits with 32.
The cases are the registry's own. Both runs get the same numbers: those that the dtype can hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np
import pytest
from numpy.typing import NDArray

import estimatorkit.ops.all_ops  # noqa: F401 (registers the rows)
from estimatorkit.core import registry
from estimatorkit.core.builtin_ops import placeholder
from estimatorkit.core.conversion import constant, convert_to_tensor
from estimatorkit.core.dtypes import as_dtype
from estimatorkit.core.gradients import gradients
from estimatorkit.core.graph import Graph
from estimatorkit.core.registry import Case, OpDef
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.ops.math.elementwise import add_n
from estimatorkit.ops.math.reduce import reduce_sum
from estimatorkit.runtime.session import Session
from tests.gpu.devices import on_cpu

pytestmark = pytest.mark.gpu

# The distance over the length of the reference.
TOLERANCES = {"float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2}

# Ops whose result is no rounding of the result for more bits: these draw other bits.
OF_FLOAT32 = {"StatelessMultinomial"}


def rows() -> Iterator[OpDef]:
    for type_ in registry.registered_types():
        row = registry.lookup(type_)
        if (
            not row.semantics.random
            and not row.placement.context
            and any(map(floats, device_cases(row)))
        ):
            yield row


def device_cases(row: OpDef) -> list[Case]:
    return [case for case in row.cases() if row.placement.place(case.attrs) == "device"]


def floats(case: Case) -> list[int]:
    """The positions of the inputs that are cast."""
    return [at for at, value in enumerate(case.inputs) if np.asarray(value).dtype.kind == "f"]


@pytest.fixture(autouse=True)
def _all_bits_of_products() -> Iterator[None]:
    """Products of float32 are not rounded to TensorFloat-32, as GPUs do by default."""
    with jax.default_matmul_precision("highest"):
        yield


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("row", [pytest.param(row, id=row.type) for row in rows()])
def test_value(row: OpDef, dtype: str) -> None:
    arrays = [
        each for case in device_cases(row) if (each := cast_inputs(row, case, dtype)) is not None
    ]
    if not arrays or (row.type in OF_FLOAT32 and dtype != "float32"):
        return  # the row refuses the dtype: test_ops.py
    found = run(row, arrays, slopes=dtype == "float32")
    with on_cpu():
        expected = run(row, [widened(each) for each in arrays], slopes=dtype == "float32")
    for (outputs, grads), (wanted, wanted_grads) in zip(found, expected, strict=True):
        for one, other in zip((*outputs, *grads), (*wanted, *wanted_grads), strict=True):
            compare(one, other, dtype)


def cast_inputs(row: OpDef, case: Case, dtype: str) -> tuple[Case, list[NDArray[Any]]] | None:
    kind = as_dtype(dtype)
    static = row.semantics.static_positions(case.attrs)
    chosen = [at for at in floats(case) if at not in static]
    if any(row.accepted(at) and kind not in row.accepted(at) for at in chosen):
        return None
    arrays = [np.asarray(value) for value in case.inputs]
    for at in chosen:
        arrays[at] = arrays[at].astype(kind.numpy_dtype)
    return case, arrays


def widened(given: tuple[Case, list[NDArray[Any]]]) -> tuple[Case, list[NDArray[Any]]]:
    case, arrays = given
    small = {as_dtype(each).numpy_dtype for each in TOLERANCES}
    return case, [each.astype(np.float32) if each.dtype in small else each for each in arrays]


def run(
    row: OpDef, examples: Sequence[tuple[Case, list[NDArray[Any]]]], slopes: bool
) -> list[tuple[list[Any], list[Any]]]:
    """The outputs of each example, and the gradients of their sum if asked, in one run."""
    with Graph().as_default(), Session() as session:
        fetches, feeds, initializers = [], {}, []
        for case, arrays in examples:
            inputs: list[Tensor] = []
            for at, array in enumerate(arrays):
                if at in row.semantics.updated_positions(case.attrs):
                    variable = Variable(array)
                    initializers.append(variable.initializer)
                    inputs.append(variable.handle)
                elif at in row.semantics.static_positions(case.attrs):
                    inputs.append(constant(array))
                else:
                    inputs.append(placeholder(as_dtype(array.dtype), array.shape))
                    feeds[inputs[-1]] = array
            if row.type == "ReadVariableOp":
                variable = Variable(arrays[0])
                initializers.append(variable.initializer)
                inputs = [variable.handle]
            outputs = list(registry.apply(row.type, inputs, case.attrs).outputs)
            fetches.append((outputs, gradients_of(row, inputs, outputs) if slopes else []))
        session.run(initializers)
        found: list[tuple[list[Any], list[Any]]] = session.run(fetches, feeds)
        return found


def gradients_of(row: OpDef, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> list[Tensor]:
    sources = [each for each in inputs if each.dtype == np.float32]
    sums = [reduce_sum(each) for each in outputs if each.dtype == np.float32]
    if row.gradient in (None, "undefined") or not sources or not sums:
        return []
    found = gradients(add_n(sums), sources)
    return [convert_to_tensor(each) for each in found if each is not None]


def compare(one: Any, other: Any, dtype: str) -> None:
    one, other = np.asarray(one), np.asarray(other)
    assert one.shape == other.shape
    if other.dtype.kind not in "fc":
        np.testing.assert_array_equal(one, other)
        return
    wide = np.complex128 if other.dtype.kind == "c" else np.float64
    one, other = one.astype(wide), other.astype(wide)
    finite = np.isfinite(other) & (np.abs(other) < float(np.finfo(np.float16).max))
    np.testing.assert_array_equal(np.isnan(one[~finite]), np.isnan(other[~finite]))
    distance = np.linalg.norm((one - other)[finite])
    assert distance <= TOLERANCES[dtype] * (1 + np.linalg.norm(other[finite])), (one, other)
