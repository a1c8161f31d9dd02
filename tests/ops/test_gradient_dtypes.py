"""The gradients of every row in each accepted dtype, many rows per run.

`test_ops` compares those of float64 with central differences. Here those of narrower floats are
compared with float64's, and those of complex numbers, of the rows whose cases are real, with
central differences. By TensorFlow's convention `real(conj(gradient) * direction)` is the slope.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from estimatorkit.core.conversion import constant, convert_to_tensor
from estimatorkit.core.dtypes import ALL, as_dtype
from estimatorkit.core.gradients import gradients
from estimatorkit.core.graph import Graph
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.math.elementwise import add_n
from estimatorkit.ops.math.reduce import reduce_sum
from estimatorkit.runtime.session import Session
from tests.ops.test_ops import (
    Example,
    _real_parts,
    along,
    apply,
    differentiable,
    fed,
    gradient_examples,
    reads_a_handle,
)
from tests.sweep import sweep

# The largest difference from float64, as a part of the largest gradient (or of 0.2).
NARROW = {"float64": 0.0, "float32": 1e-4, "float16": 2e-2, "bfloat16": 1.5e-1}

# Rows whose complex inputs are not independent, or which TensorFlow differentiates otherwise.
LEFT_OUT: dict[str, tuple[str, ...]] = {
    "bfloat16": ("SSIM", "SSIMMultiscale"),  # given float32 by `image.ssim`
    "complex128": (
        *("Cholesky", "SelfAdjointEigV2"),  # of Hermitian matrices
        "Sign",  # 0 in TensorFlow, although z / |z| varies
        *("Complex", "SparseSoftmaxGrad"),  # of real inputs only
        *("Checked", "CheckedOnHost"),  # compare their inputs
    ),
}


class Point(NamedTuple):
    """Inputs of one row."""

    example: Example
    wanted: list[int]
    arrays: list[NDArray[Any]]

    def cast(self, dtype: str) -> list[NDArray[Any]]:
        """The inputs with floats and complex numbers of the dtype."""
        static = self.example.static
        return [
            array.astype(as_dtype(dtype).numpy_dtype)
            if as_dtype(array.dtype).is_differentiable and position not in static
            else array
            for position, array in enumerate(self.arrays)
        ]

    def accepted(self, dtype: str) -> bool:
        """Whether the row takes inputs of the dtype."""
        return all(
            as_dtype(array.dtype) in (self.example.row.accepted(position) or ALL)
            for position, array in enumerate(self.cast(dtype))
        )


def points(dtype: str) -> Iterator[Point]:
    """A point of each row that accepts the dtype, a little off its case's."""
    for parameter in gradient_examples():
        example = parameter.values[0]
        if reads_a_handle(example) or any(array.dtype.kind == "c" for array in example.arrays):
            continue
        rng, arrays = example.rng, list(example.arrays)
        for position, array in enumerate(arrays):
            if as_dtype(array.dtype).is_floating and position not in example.static:
                arrays[position] = array + rng.uniform(0.005, 0.01, array.shape)
                if as_dtype(dtype).is_complex:
                    arrays[position] = arrays[position] + 1j * rng.uniform(0.1, 0.3, array.shape)
        point = Point(example, differentiable(example), arrays)
        if point.accepted(dtype) and example.row.type not in LEFT_OUT[dtype]:
            yield point._replace(arrays=point.cast(dtype))


def batches(dtype: str, every: int, size: int = 12) -> Iterator[Any]:
    """Parameters of tests: one of `every` points, `size` of them at once."""
    found = list(points(dtype))[::every]
    for start in range(0, len(found), size):
        chunk = found[start : start + size]
        yield pytest.param(chunk, id=f"{chunk[0].example.row.type}-{start}")


def weights(rng: np.random.Generator, output: Tensor) -> Tensor | None:
    """Small whole numbers, which every dtype has; None (ones) where the shape is not known."""
    if not output.shape.is_fully_defined():
        return None
    return constant(rng.integers(1, 4, output.shape.as_list()).astype(output.dtype.numpy_dtype))


def first_gradients(point: Point, arrays: Sequence[NDArray[Any]]) -> tuple[Any, list[Tensor]]:
    """The fed inputs with their values, and the gradients of the wanted ones."""
    rng, inputs = point.example.rng, fed(arrays)
    outputs = [
        output for output in apply(point.example, inputs).outputs if output.dtype.is_differentiable
    ]
    sources = [inputs[position] for position in point.wanted]
    found = gradients(outputs, sources, [weights(rng, output) for output in outputs])
    assert [each is None for each in found] == [False] * len(found) or len(found) > 1
    tensors = [convert_to_tensor(each) for each in found if each is not None]
    assert {tensor.dtype for tensor in tensors} <= {source.dtype for source in sources}
    return dict(zip(inputs, arrays, strict=True)), tensors


@sweep("chunk", list(batches("bfloat16", every=6)), quick=0)
def test_narrow_floats(chunk: Sequence[Point]) -> None:
    """At a point that all dtypes have, as the gradients of float64; a row takes 0.3 s."""
    with Graph().as_default(), Session() as session:
        feeds: dict[Tensor, Any] = {}
        fetches: dict[str, dict[int, list[Tensor]]] = {dtype: {} for dtype in NARROW}
        for at, point in enumerate(chunk):
            for dtype, found in fetches.items():
                if point.accepted(dtype):
                    own, found[at] = first_gradients(point, point.cast(dtype))
                    feeds |= own
        values = session.run(fetches, feeds)
    wrong = {
        (chunk[at].example.row.type, dtype): (found, expected)
        for dtype, tolerance in NARROW.items()
        for at in values[dtype].keys() & values["float64"].keys()
        for found, expected in zip(values[dtype][at], values["float64"][at], strict=True)
        if not agree(found, expected, tolerance)
    }
    assert not wrong


def agree(found: NDArray[Any], expected: NDArray[Any], tolerance: float) -> bool:
    scale = float(np.abs(expected).max(initial=0.2))
    with np.errstate(over="ignore"):  # what is too large for a narrow float is infinite
        rounded = expected.astype(found.dtype).astype(np.float64)
    return found.shape == expected.shape and bool(
        np.allclose(found.astype(np.float64), rounded, rtol=0, atol=tolerance * scale)
    )


@sweep("chunk", list(batches("complex128", every=1)), quick=1)
def test_complex(chunk: Sequence[Point]) -> None:
    """Against central differences in a random direction."""
    step = 1e-5
    with Graph().as_default(), Session() as session:
        inputs, slopes, losses = {}, {}, {}
        directions = {}
        for point in chunk:
            rng, own = point.example.rng, fed(point.arrays)
            parts = [
                part for output in apply(point.example, own).outputs for part in _real_parts(output)
            ]
            sums = [
                reduce_sum(part * part)
                if (weight := weights(rng, part)) is None
                else reduce_sum(part * weight)
                for part in parts
            ]
            direction = {
                position: _complex_normal(rng, point.arrays[position]) for position in point.wanted
            }
            loss = add_n(sums)
            found = gradients(loss, [own[position] for position in point.wanted])
            key = f"{point.example.row.type}-{id(point)}"
            inputs[key], directions[key], losses[key] = own, direction, loss
            slopes[key] = along(found, direction, point.wanted)

        def values(step: float) -> Any:
            feeds = {
                tensor: array + step * directions[key][position]
                if position in directions[key]
                else array
                for point, key in zip(chunk, inputs, strict=True)
                for position, (tensor, array) in enumerate(
                    zip(inputs[key], point.arrays, strict=True)
                )
            }
            return session.run([losses, slopes], feeds)

        (_, slope), (after, _), (before, _) = values(0.0), values(step), values(-step)
    numeric = {key: (after[key] - before[key]) / (2 * step) for key in slope}
    assert slope == pytest.approx(numeric, rel=1e-5, abs=1e-6)


def _complex_normal(rng: np.random.Generator, like: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(rng.normal(size=like.shape) + 1j * rng.normal(size=like.shape))
