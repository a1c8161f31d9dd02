"""Convolutions and gradients by oneDNN equal XLA's, also within loops and under vmap."""

from __future__ import annotations

from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from estimatorkit.ops.nn import convolution_cpu, convolution_onednn
from estimatorkit.ops.nn.convolution_problem import (
    Problem,
    as_window,
    filter_gradient_of,
    input_gradient_of,
    plain,
)
from estimatorkit.runtime.xla.platforms import portable
from tests.sweep import sweep

pytestmark = pytest.mark.skipif(
    not convolution_onednn.is_available(), reason="XLA has no oneDNN on this machine"
)

_RANDOM = np.random.default_rng(11)


@pytest.fixture(autouse=True)
def _small_ones_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convolution_onednn, "LEAST_OPERATIONS", 0)
    monkeypatch.setattr(convolution_onednn, "PIECE_BYTES", 1 << 12)


# input, filter, strides, padding, dilations, groups
_PROBLEMS = {
    "same": ((9, 6, 7, 3), (3, 3, 3, 8), (1, 1), "SAME", (1, 1), 1),
    "valid": ((9, 6, 7, 16), (3, 2, 16, 16), (1, 1), "VALID", (1, 1), 1),
    "strides": ((20, 9, 8, 4), (3, 5, 4, 6), (2, 3), "SAME", (1, 1), 1),
    "strides, few channels": ((8, 9, 8, 3), (5, 4, 3, 8), (2, 2), "SAME", (1, 1), 1),
    "rows that no place reaches": ((8, 9, 12, 5), (5, 3, 5, 8), (3, 2), "VALID", (1, 1), 1),
    "dilations": ((8, 9, 10, 4), (3, 2, 4, 8), (1, 1), "SAME", (2, 3), 1),
    "pads": ((8, 5, 6, 4), (3, 2, 4, 8), (1, 1), ((2, 1), (0, 1)), (1, 1), 1),
    "pads beyond the filter": ((8, 5, 6, 4), (2, 3, 4, 8), (1, 1), ((2, 3), (1, 4)), (1, 1), 1),
    "one example": ((1, 12, 13, 8), (3, 3, 8, 16), (1, 1), "SAME", (1, 1), 1),
    "depthwise": ((8, 6, 7, 16), (3, 3, 1, 16), (2, 1), "SAME", (1, 1), 16),
    "depthwise, several outputs": ((8, 6, 7, 5), (3, 3, 1, 15), (1, 1), "SAME", (1, 1), 5),
    "groups": ((8, 6, 7, 8), (3, 3, 2, 12), (1, 2), "SAME", (1, 1), 4),
    "1-D": ((33, 40, 5), (7, 5, 8), (2,), "SAME", (1,), 1),
    "1-D, dilated": ((8, 40, 5), (2, 5, 8), (1,), "VALID", (8,), 1),
    "3-D": ((8, 5, 6, 7, 3), (3, 2, 3, 3, 8), (1, 2, 1), "SAME", (1, 1, 1), 1),
}


@sweep("name", _PROBLEMS, quick=4)
def test_convolution_and_gradients_match_xla(name: str) -> None:
    size, filter_size, *geometry = _PROBLEMS[name]
    window = as_window(size, filter_size, *geometry)
    problem = Problem(size, filter_size, window)
    x, filters, dy = (
        jnp.asarray(_RANDOM.normal(size=shape).astype(np.float32))
        for shape in (size, filter_size, (size[0], *problem.outputs, filter_size[-1]))
    )
    cases: list[tuple[Any, Any]] = [
        (
            jax.jit(lambda: convolution_onednn.forward(x, filters, window)),
            lambda: plain(x, filters, window),
        ),
        (
            jax.jit(lambda: convolution_cpu.input_gradient(dy, filters, problem)),
            lambda: input_gradient_of(plain)(dy, filters, problem),
        ),
    ]
    assert convolution_onednn.applies(problem)
    if convolution_onednn.applies_to_filter_gradient(problem):
        cases.append(
            (
                jax.jit(lambda: convolution_onednn.filter_gradient(x, dy, problem)),
                lambda: filter_gradient_of(plain)(x, dy, problem),
            )
        )
    for ours, theirs in cases:
        assert "__onednn$convolution" in ours.lower().as_text()
        np.testing.assert_allclose(ours(), theirs(), rtol=1e-4, atol=1e-4)


def _arrays() -> tuple[Any, Any]:
    x = _RANDOM.normal(size=(16, 8, 9, 4)).astype(np.float32)
    filters = _RANDOM.normal(size=(3, 3, 4, 8)).astype(np.float32)
    return jnp.asarray(x), jnp.asarray(filters)


_WINDOW = as_window((16, 8, 9, 4), (3, 3, 4, 8), (1, 1), "SAME", (1, 1))


def _loss(x: Any, filters: Any) -> Any:
    return jnp.sum(jnp.sin(convolution_cpu.convolve(x, filters, _WINDOW)))


def _plain_loss(x: Any, filters: Any) -> Any:
    return jnp.sum(jnp.sin(plain(x, filters, _WINDOW)))


def test_pieces_of_the_batch_are_compiled_once() -> None:
    size, filter_size, *geometry = _PROBLEMS["same"]
    size = (64, *size[1:])
    problem = Problem(size, filter_size, as_window(size, filter_size, *geometry))
    x = jnp.ones(size)
    dy = jnp.ones((64, *problem.outputs, filter_size[-1]))
    traced = jax.make_jaxpr(lambda *arrays: convolution_onednn.filter_gradient(*arrays, problem))
    assert convolution_onednn._piece(problem) < 64
    assert str(traced(x, dy)).count("onednn_convolution[") == 1


def test_inside_loop() -> None:
    x, filters = _arrays()

    def train(loss: Any) -> Any:
        def step(_: Any, filters: Any) -> Any:
            return filters - 1e-3 * jax.grad(loss, 1)(x, filters)

        return lax.fori_loop(0, 5, step, filters)

    ours = jax.jit(lambda: train(_loss))
    assert "__onednn$convolution" in ours.lower().as_text()
    np.testing.assert_allclose(ours(), train(_plain_loss), rtol=1e-4, atol=1e-4)


@sweep("axes", [(0, 0), (0, None), (None, 0)], quick=1)
def test_under_vmap(axes: Any) -> None:
    x, filters = _arrays()
    given = [
        each if axis is None else jnp.stack([each, 2 * each])
        for each, axis in zip((x, filters), axes, strict=True)
    ]
    for argument in (0, 1):
        ours, theirs = (
            jax.vmap(jax.grad(loss, argument), axes)(*given) for loss in (_loss, _plain_loss)
        )
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-3)


def test_exports_avoid_onednn() -> None:
    x, filters = _arrays()
    with portable():
        program = jax.export.export(jax.jit(jax.grad(_loss, 1)))(x, filters)
    assert "__onednn$convolution" not in program.mlir_module()
    expected = jax.grad(_plain_loss, 1)(x, filters)
    received = jax.export.deserialize(program.serialize()).call(x, filters)
    np.testing.assert_allclose(received, expected, rtol=1e-4, atol=1e-3)
    assert "__onednn$convolution" in jax.jit(jax.grad(_loss, 1)).lower(x, filters).as_text()


def test_other_jaxlib_versions_avoid_onednn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convolution_onednn, "jaxlib_version", "9.0.0")
    x, filters = _arrays()
    assert (
        "__onednn$convolution" not in jax.jit(jax.grad(_loss, (0, 1))).lower(x, filters).as_text()
    )
