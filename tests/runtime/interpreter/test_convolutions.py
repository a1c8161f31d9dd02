"""Convolutions, interpreted, with random parameters: as XLA on CPUs."""

from __future__ import annotations

import functools
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from estimatorkit.ops.nn import convolution_onednn
from estimatorkit.ops.nn.convolution_problem import Window, problem_of
from tests.runtime.interpreter.agreement import agree
from tests.sweep import sweep


def _random_convolution(seed: int, dtype: str) -> tuple[Any, Any]:
    random = np.random.RandomState(seed)
    rank = random.randint(1, 4)
    groups, batches = [(1, 1), (1, 1), (random.randint(2, 4), 1), (1, random.randint(2, 4))][
        random.randint(4)
    ]
    many = 40 if random.rand() < 0.2 else 4
    channels, outputs = random.randint(1, many), random.randint(1, 4) * groups * batches
    if groups > 1 and random.rand() < 0.5:
        channels = 1
    sizes, lengths = random.randint(1, 7, rank), random.randint(1, 5, rank)
    large = random.rand() < 0.3  # as in gradients of filters
    if large:
        lengths = random.randint(3, 7, rank)

    def factors(most: int) -> Any:
        return random.randint(1, most, rank) if random.rand() < 0.5 else np.ones(rank, int)

    strides, dilations, input_dilations = factors(4), factors(3), factors(4)
    padding = []
    for at in range(rank):
        reach = (lengths[at] - 1) * dilations[at] + 1
        size = (sizes[at] - 1) * input_dilations[at] + 1
        before, after = random.randint(-2, 4), random.randint(-2, 4)
        after += max(0, reach - size - before - after)
        if before < 0 < after:  # XLA shifts a 1-D input of 2 elements the other way
            before = 0
        padding.append((before, after))
    orders = [random.permutation(rank + 2).tolist() for _ in range(3)]
    x = [random.randint(1, 4) * batches, channels * groups, *sizes]
    w = [outputs, channels, *lengths]
    given = []
    for spec, shape in zip(orders, (x, w), strict=False):
        placed = [0] * (rank + 2)
        for dim, size in zip(spec, shape, strict=True):
            placed[dim] = int(size)
        values = random.randint(-3, 4, placed)
        given.append(values.astype(jnp.dtype(dtype)))
    function = functools.partial(
        lax.conv_general_dilated,
        window_strides=tuple(strides.tolist()),
        padding=padding,
        lhs_dilation=tuple(input_dilations.tolist()),
        rhs_dilation=tuple(dilations.tolist()),
        dimension_numbers=lax.ConvDimensionNumbers(*map(tuple, orders)),
        feature_group_count=int(groups),
        batch_group_count=int(batches),
    )
    return function, given


@sweep("dtype", ("float32", "bfloat16", "float64", "int32", "complex64"), quick=1)
def test_convolutions(dtype: str) -> None:
    tolerance = 1e-2 if dtype == "bfloat16" else 1e-6
    agree([_random_convolution(seed, dtype) for seed in range(4)], rtol=tolerance, atol=tolerance)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(4, 300, 30))
def test_many_convolutions(start: int) -> None:
    cases = [_random_convolution(seed, "float32") for seed in range(start, start + 30)]
    agree(cases, rtol=1e-6, atol=1e-6)


ONEDNN = [
    Window((1, 1), ((1, 1), (1, 1)), (1, 1), 1),
    Window((2, 1), ((0, 2), (1, 0)), (1, 1), 1),
    Window((1, 1), ((2, 2), (0, 3)), (2, 3), 1),
    Window((2, 2), ((1, 1), (1, 1)), (1, 1), 4),
]


@pytest.mark.slow
@pytest.mark.skipif(not convolution_onednn.is_available(), reason="oneDNN needs Linux on x86-64")
def test_convolutions_of_onednn() -> None:
    random = np.random.RandomState(0)
    x = random.randint(-3, 4, (4, 9, 10, 8)).astype(np.float32)
    cases: list[Any] = []
    for window in ONEDNN:
        filters = random.randint(-3, 4, (3, 2, 8 // window.groups, 8)).astype(np.float32)
        call = functools.partial(convolution_onednn.forward, window=window)
        cases.append((call, (x, filters)))
        if window.groups == 1:
            problem = problem_of(x, filters, window)
            dy = random.randint(-3, 4, (4, *problem.outputs, 8)).astype(np.float32)
            gradient = functools.partial(convolution_onednn.filter_gradient, problem=problem)
            cases.append((gradient, (x, dy)))
    line = Window((2,), ((1, 2),), (1,), 1)
    filters = random.randint(-3, 4, (3, 8, 8)).astype(np.float32)
    cases.append((functools.partial(convolution_onednn.forward, window=line), (x[0], filters)))
    agree(cases, exact=True)
