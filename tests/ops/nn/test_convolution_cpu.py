"""Each CPU lowering of a convolution matches XLA's values, gradients and second gradients."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from estimatorkit.ops.nn import (
    convolution,
    convolution_cpu,
    convolution_pieces,
    convolution_problem,
)
from estimatorkit.runtime.xla.platforms import portable
from tests.sweep import sweep

_RANDOM = np.random.default_rng(5)

_WINDOWS = [
    pytest.param((1, 1), "SAME", (1, 1), id="same"),
    pytest.param((2, 3), "SAME", (1, 1), id="strides"),
    pytest.param((1, 1), "VALID", (2, 1), id="dilated"),
    pytest.param((2, 1), ((2, 1), (0, 3)), (1, 2), id="explicit"),
]


@pytest.fixture(autouse=True)
def _small_ones_too(monkeypatch: pytest.MonkeyPatch) -> None:
    for part in ("", "_OF_FILTER_GRADIENT", "_OF_ONE_CHANNEL"):
        name = f"LEAST_OPERATIONS{part}"
        monkeypatch.setattr(convolution_pieces, name, 0)
    monkeypatch.setattr(convolution_cpu, "FEW_OUTPUTS", 0)
    monkeypatch.setattr(convolution_pieces, "PIECES_CHANNELS", 1)
    monkeypatch.setattr(convolution_pieces, "PIECES", 3)


def _arrays(batch: int) -> tuple[Any, Any]:
    x = _RANDOM.normal(size=(batch, 7, 8, 2)).astype(np.float32)
    filters = _RANDOM.normal(size=(3, 2, 2, 4)).astype(np.float32)
    return jnp.asarray(x), jnp.asarray(filters)


def _results(convolve: Any, x: Any, filters: Any) -> list[Any]:
    """The values, the gradients of a function of them, and the gradients of those."""

    def loss(x: Any, filters: Any) -> Any:
        return jnp.sum(jnp.sin(convolve(x, filters)))

    def second(x: Any, filters: Any) -> Any:
        return sum(jnp.sum(jnp.cos(each)) for each in jax.grad(loss, (0, 1))(x, filters))

    return [
        convolve(x, filters),
        *jax.grad(loss, (0, 1))(x, filters),
        *jax.grad(second, (0, 1))(x, filters),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("batch", [3, 7])
@pytest.mark.parametrize(("strides", "padding", "dilations"), _WINDOWS)
def test_lowering_matches_xla(strides: Any, padding: Any, dilations: Any, batch: int) -> None:
    x, filters = _arrays(batch)
    attrs = (strides, padding, dilations, False, 1)
    assert convolution._problem_for_cpu(x, filters, *attrs) is not None

    def ours(x: Any, filters: Any) -> Any:
        return convolution._convolve(x, filters, *attrs)

    def plain(x: Any, filters: Any) -> Any:
        return convolution._plain(x, filters, *attrs)

    for one, other in zip(
        *(jax.jit(_results, static_argnums=0)(each, x, filters) for each in (ours, plain)),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-3)


# input, filter, strides, padding, dilations, groups, the rules of the three parts
_RULED = {
    "point": ((3, 6, 5, 4), (1, 1, 4, 6), (2, 1), "VALID", (1, 1), 1, "_product"),
    "full": ((3, 6, 5, 4), (6, 5, 4, 6), (2, 1), "VALID", (1, 1), 1, "_folded"),
    "full width": ((3, 6, 5, 1), (3, 5, 1, 6), (1, 1), "VALID", (1, 1), 1, "_folded"),
    "full height": ((3, 6, 5, 1), (6, 2, 1, 6), (1, 1), "VALID", (1, 1), 1, "_folded"),
    "one column": ((2, 11, 1, 8), (3, 1, 8, 4), (1, 1), "SAME", (1, 1), 1, "_folded"),
    "volume": ((2, 5, 6, 7, 2), (3, 2, 3, 2, 4), (1, 2, 1), "SAME", (1, 1, 1), 1, "_of_volume"),
    "volume, dilated": (
        *((2, 7, 6, 7, 2), (3, 2, 3, 2, 4), (1, 1, 1)),
        *("VALID", (2, 1, 2), 1, "_of_volume"),
    ),
    "depthwise": ((2, 6, 7, 4), (3, 2, 1, 4), (1, 1), "SAME", (1, 1), 4, "_depthwise"),
    "depthwise, strides": ((2, 6, 7, 4), (3, 2, 1, 8), (2, 2), "SAME", (1, 1), 4, "_depthwise"),
    "depthwise, dilated": ((2, 6, 7, 4), (3, 2, 1, 8), (1, 1), "VALID", (2, 1), 4, "_depthwise"),
    "depthwise, 1-D": ((2, 9, 4), (3, 1, 8), (1,), "SAME", (1,), 4, "_depthwise"),
    "blocks": ((2, 21, 22, 2), (5, 8, 2, 4), (4, 4), "VALID", (1, 1), 1, "_in_blocks"),
    "blocks, padded": ((2, 21, 22, 2), (5, 8, 2, 4), (4, 5), "SAME", (1, 1), 1, "_in_blocks"),
    "few channels": ((3, 9, 7, 3), (3, 2, 3, 4), (1, 1), "SAME", (1, 1), 1, "_two_at_once"),
    "few, strides": ((3, 9, 9, 2), (3, 4, 2, 4), (2, 3), "SAME", (2, 1), 1, "_two_at_once"),
    "few, cut": ((3, 9, 12, 2), (3, 2, 2, 4), (1, 3), "VALID", (1, 1), 1, "_two_at_once"),
    "few, 1-D": ((3, 9, 2), (3, 2, 4), (1,), "VALID", (1,), 1, "_two_at_once"),
    "columns": ((3, 9, 7, 3), (3, 2, 3, 4), (2, 1), "SAME", (1, 2), 1, "_by_columns"),
    "phases": ((2, 9, 8, 8), (5, 5, 8, 4), (2, 2), "SAME", (1, 1), 1, "_by_phases"),
    "phases, unused places": (
        *((2, 9, 8, 8), (3, 2, 8, 8), (3, 3)),
        *(((1, 2), (0, 3)), (1, 1), 1, "_by_phases"),
    ),
    "phases, 1-D": ((2, 11, 8), (3, 8, 16), (2,), "SAME", (1,), 1, "_by_phases"),
}


@sweep("name", _RULED, quick=4)
def test_every_rule_matches_xla(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(convolution_cpu, "STRIDED_FILTER", 100)
    monkeypatch.setattr(convolution_pieces, "LARGEST_FILTER", 200)
    if "few" in name:
        monkeypatch.setattr(convolution_cpu, "FEW_LEAST_OPERATIONS", 0)
    if name == "columns":
        monkeypatch.setattr(convolution_cpu, "COLUMNS_LEAST_OPERATIONS", 0)
    size, window_size, *attrs, groups, rule = _RULED[name]
    x = jnp.asarray(_RANDOM.normal(size=size).astype(np.float32))
    filters = jnp.asarray(_RANDOM.normal(size=window_size, scale=0.2).astype(np.float32))
    window = convolution_problem.as_window(x.shape, filters.shape, *attrs, groups)
    problem = convolution_problem.Problem(x.shape, filters.shape, window)
    applied = [each for each in convolution_cpu.RULES[x.dtype] if each.applies(problem)]
    assert rule in {getattr(part, "__name__", "") for each in applied[:1] for part in each}

    def plain(x: Any, filters: Any) -> Any:
        return convolution._plain(x, filters, *attrs, False, groups)

    def ours(x: Any, filters: Any) -> Any:
        return convolution._convolve(x, filters, *attrs, False, groups)

    for one, other in zip(
        *(jax.jit(_results, static_argnums=0)(each, x, filters) for each in (ours, plain)),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-3)


@pytest.mark.slow
def test_channels_first() -> None:
    x, filters = _arrays(6)
    attrs: tuple[Any, ...] = ((1, 1), "SAME", (1, 1))
    moved = jnp.moveaxis(x, -1, 1)
    wanted = convolution._convolve(x, filters, *attrs, False, 1)
    received = convolution._convolve(moved, filters, *attrs, True, 1)
    np.testing.assert_allclose(jnp.moveaxis(received, 1, -1), wanted, rtol=1e-5, atol=1e-5)
    dy = jnp.asarray(_RANDOM.normal(size=wanted.shape).astype(np.float32))
    wanted = convolution._transposed(dy, filters, x.shape, *attrs, False)
    received = convolution._transposed(jnp.moveaxis(dy, -1, 1), filters, moved.shape, *attrs, True)
    np.testing.assert_allclose(jnp.moveaxis(received, 1, -1), wanted, rtol=1e-5, atol=1e-5)


def test_transposed_convolution() -> None:
    x, filters = _arrays(17)
    dy = jnp.asarray(_RANDOM.normal(size=(17, 4, 8, 4)).astype(np.float32))
    expected = jax.linear_transpose(
        lambda x: convolution._plain(x, filters, (2, 1), "SAME", (1, 1), False, 1), x
    )(dy)
    received = jax.jit(
        lambda dy: convolution._transposed(dy, filters, x.shape, (2, 1), "SAME", (1, 1), False)
    )(dy)
    np.testing.assert_allclose(received, expected[0], rtol=1e-5, atol=1e-5)


def test_portable_programs_lower_per_platform() -> None:
    """One for each piece on a CPU, one elsewhere."""
    x, filters = _arrays(6)
    with portable():
        traced = jax.jit(
            lambda x: convolution._convolve(x, filters, (1, 1), "SAME", (1, 1), False, 1)
        ).trace(x)
    for platform, count in (("cpu", convolution_pieces.PIECES), ("cuda", 1)):
        text = traced.lower(lowering_platforms=(platform,)).as_text()
        assert text.count("stablehlo.convolution") == count


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"dtype": np.float16}, "another dtype"),
        ({"padding": ((-1, 0), (0, 0))}, "negative padding"),
        ({"padding": "VALID", "dilations": (5, 1)}, "an empty output"),
    ],
)
def test_unsupported_convolutions_keep_xla(change: dict[str, Any], why: str) -> None:
    x = np.zeros((6, 7, 8, 2), change.get("dtype", np.float32))
    filters = np.zeros(change.get("filters", (3, 2, 2, 4)), x.dtype)
    attrs = ((1, 1), change.get("padding", "SAME"), change.get("dilations", (1, 1)), False, 1)
    assert convolution._problem_for_cpu(x, filters, *attrs) is None, why


def test_small_convolutions_keep_xla(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    x, filters = _arrays(6)
    assert convolution._problem_for_cpu(x, filters, (1, 1), "SAME", (1, 1), False, 1) is None
