"""Convolutions along one dimension as a product are XLA's: values, gradients, their gradients."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from estimatorkit.core.ops import convolution, convolution_rows

_RANDOM = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def _small_ones_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convolution_rows, "LEAST_OPERATIONS", 0)


def _arrays() -> tuple[Any, Any]:
    x = _RANDOM.normal(size=(3, 11, 2)).astype(np.float32)
    return jnp.asarray(x), jnp.asarray(_RANDOM.normal(size=(4, 2, 5)).astype(np.float32))


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


@pytest.mark.parametrize("padding", ["SAME", "VALID", ((2, 1),)])
@pytest.mark.parametrize("dilation", [1, 2])
def test_is_the_convolution(padding: Any, dilation: int) -> None:
    x, filters = _arrays()
    attrs = ((1,), padding, (dilation,), False, 1)
    assert convolution._rows_for_cpu(x, filters, *attrs) is not None

    def ours(x: Any, filters: Any) -> Any:
        return convolution._convolve(x, filters, *attrs)

    def plain(x: Any, filters: Any) -> Any:
        return convolution._plain(x, filters, *attrs)

    for got, wanted in zip(
        jax.jit(lambda *arrays: _results(ours, *arrays))(x, filters),
        jax.jit(lambda *arrays: _results(plain, *arrays))(x, filters),
        strict=True,
    ):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)


def test_no_convolution_of_xla_is_left_of_it() -> None:
    """The kernel for the filter's gradient inside loops is what this is there to avoid."""
    x, filters = _arrays()

    def gradient(x: Any, filters: Any) -> Any:
        call = convolution._convolve
        return jax.grad(lambda w: jnp.sum(call(x, w, (1,), "SAME", (1,), False, 1) ** 2))(filters)

    compiled = jax.jit(gradient).lower(x, filters).compile().as_text()
    assert compiled is not None
    assert " convolution(" not in compiled


@pytest.mark.parametrize(
    ("strides", "dtype", "channels_first", "groups", "padding"),
    [
        pytest.param((2,), "float32", False, 1, "SAME", id="strides"),
        pytest.param((1,), "float16", False, 1, "SAME", id="float16"),
        pytest.param((1,), "float32", True, 1, "SAME", id="channels first"),
        pytest.param((1,), "float32", False, 2, "SAME", id="groups"),
        pytest.param((1,), "float32", False, 1, ((-1, 0),), id="cut"),
    ],
)
def test_others_are_left_to_xla(
    strides: Any, dtype: str, channels_first: bool, groups: int, padding: Any
) -> None:
    x, filters = (each.astype(dtype) for each in _arrays())
    attrs = (strides, padding, (1,), channels_first, groups)
    assert convolution._rows_for_cpu(x, filters, *attrs) is None


def test_wide_and_small_filters_are_left_to_xla(monkeypatch: pytest.MonkeyPatch) -> None:
    signal = jnp.zeros((4, 1000, 8), np.float32)
    wide = jnp.zeros((400, 8, 16), np.float32)
    assert not convolution_rows.pays(signal, wide, 1, 601)
    monkeypatch.undo()
    assert not convolution_rows.pays(*_arrays(), 1, 11)
