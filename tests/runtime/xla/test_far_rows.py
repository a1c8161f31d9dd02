"""Rows of large tables are prefetched; indices and results are unchanged."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from estimatorkit.core.registry import lookup
from estimatorkit.core.x64 import x64
from estimatorkit.runtime.xla import host_tuning
from estimatorkit.runtime.xla.host_tuning import LEAST_BYTES
from tests.sweep import sweep

ROWS = LEAST_BYTES // 256


def table(dtype: Any = np.float32, rows: int = ROWS) -> Any:
    width = 256 // np.dtype(dtype).itemsize
    values = np.random.default_rng(0).normal(size=(rows, width)).astype(np.float32)
    values[5] = np.nan
    values[6] = np.inf
    return jnp.asarray(values, dtype)


@pytest.mark.parametrize("dtype", [np.float32, jnp.bfloat16, np.float16])
@sweep("index_dtype", [np.int32, np.int64], quick=1)
def test_indices_are_unchanged(dtype: Any, index_dtype: Any) -> None:
    fetch = jax.jit(host_tuning.prefetch_rows)
    one, other = table(dtype), table(dtype)
    for seed in range(10):
        indices = np.random.default_rng(seed).integers(-3, ROWS + 3, (4, 8)).astype(index_dtype)
        indices[0, :2] = 5, 6
        with x64():
            found = fetch(indices, one, other)
        assert found.dtype == index_dtype
        np.testing.assert_array_equal(found, indices)


def gathers(rows: int, count: int) -> int:
    """How many loops that gather an executable has which takes rows of a table."""
    take = jax.jit(take_rows)
    shapes = jnp.zeros((rows, 64)), jnp.zeros(count, np.int32)
    return take.lower(*shapes).compile().as_text().count(" gather(")


def take_rows(params: Any, indices: Any) -> Any:
    """The kernel of GatherV2, without a graph."""
    return lookup("GatherV2").kernel(params, indices, axis=0, batch_dims=0)


def test_prefetch_only_for_few_rows_of_large_tables() -> None:
    assert gathers(ROWS, 128) == 2
    assert gathers(ROWS - 1, 128) == 1
    assert gathers(ROWS, 4097) == 1


@pytest.mark.slow
def test_values_and_gradients_of_large_table() -> None:
    params = table()
    indices = jnp.asarray([[0, ROWS - 1], [7, 7]])
    np.testing.assert_array_equal(jax.jit(take_rows)(params, indices), params[indices])
    gradient = jax.jit(jax.grad(lambda params: take_rows(params, indices).sum()))(params)
    rows = np.asarray(gradient[:, 0])
    assert {int(row): rows[row] for row in np.flatnonzero(rows)} == {0: 1, 7: 2, ROWS - 1: 1}
    batches = jax.jit(jax.vmap(take_rows, (None, 0)))(params, indices)
    np.testing.assert_array_equal(batches, params[indices])
