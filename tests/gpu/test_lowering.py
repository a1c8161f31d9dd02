"""Programs for NVIDIA GPUs, lowered on any machine: without kernels of CPUs."""

from __future__ import annotations

import re
from typing import Any

import jax
import jax.extend.backend
import numpy as np
import pytest

import estimatorkit as tf
import estimatorkit.ops.all_ops
from estimatorkit.core import registry
from estimatorkit.core.registry import Case, OpDef
from estimatorkit.core.x64 import x64
from estimatorkit.runtime.xla.random_bits import random_key

pytestmark = pytest.mark.gpu

LIBRARIES = ("cusolver_", "cusparse_", "cu_")
"""How the names of CUDA's own custom calls begin."""


@pytest.fixture(autouse=True)
def _two_platforms(monkeypatch: pytest.MonkeyPatch) -> None:
    """JAX seems to have a GPU beside the CPU, so that both implementations are traced."""
    backends = jax.extend.backend.backends()
    monkeypatch.setattr(
        jax.extend.backend, "backends", lambda: {**backends, "cuda": backends["cpu"]}
    )
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")


def lowered(traced: jax.stages.Traced, platform: str = "cuda") -> str:
    text: str = traced.lower(lowering_platforms=(platform,)).as_text()
    return text


def custom_calls(text: str) -> list[str]:
    return [
        name
        for name in re.findall(r"custom_call @([\w.$]+)|call_target_name = \"([^\"]+)\"", text)
        for name in name
        if name and not name.startswith(LIBRARIES)
    ]


def device_rows() -> list[Any]:
    return [
        pytest.param(row, id=row.type)
        for row in map(registry.lookup, registry.registered_types())
        if not row.placement.context
        and any(row.placement.place(case.attrs) == "device" for case in row.cases())
    ]


@pytest.mark.parametrize("row", device_rows())
def test_op(row: OpDef) -> None:
    for case in row.cases():
        if row.placement.place(case.attrs) == "device":
            assert custom_calls(text_of(row, case)) == []


def text_of(row: OpDef, case: Case) -> str:
    arrays = [np.asarray(value) for value in case.inputs]
    static = row.semantics.static_positions(case.attrs)
    attrs = {key: value for key, value in case.attrs.items() if key[0] != "_"}
    if row.semantics.random:
        attrs["key"] = random_key(np.array([1, 2, 0], np.uint32))

    def call(*given: Any) -> Any:
        rest = iter(given)
        inputs = [array if at in static else next(rest) for at, array in enumerate(arrays)]
        return row.kernel(*inputs, **attrs)

    with x64():
        traced = [each for at, each in enumerate(arrays) if at not in static]
        return lowered(jax.jit(call).trace(*traced))


@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16])
@pytest.mark.parametrize("kernel", [1, 3, 5, 7])
def test_training_step_of_a_large_convolution(kernel: int, dtype: Any) -> None:
    """Large enough for oneDNN and the other rules of `convolution_cpu`."""
    images = tf.placeholder(dtype, [64, 56, 56, 32])
    y = tf.layers.conv2d(images, 64, kernel, padding="same", activation=tf.nn.relu)
    y = tf.layers.separable_conv2d(y, 64, 3, strides=2)
    loss = tf.reduce_mean(tf.cast(y, tf.float32) ** 2)
    step = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
    with tf.Session() as sess:
        (traced,) = sess.traced(step, [images])
        text = lowered(traced)
    assert custom_calls(text) == []
    assert text.count("stablehlo.convolution") >= 8


def test_training_step_with_rows_of_a_large_table() -> None:
    """CPUs prefetch such rows."""
    ids = tf.placeholder(tf.int32, [1000])
    table = tf.get_variable("table", [1 << 20, 32])
    loss = tf.reduce_sum(tf.nn.embedding_lookup(table, ids) ** 2)
    step = tf.train.AdagradOptimizer(0.1).minimize(loss)
    with tf.Session() as sess:
        (traced,) = sess.traced(step, [ids])
    fetches = re.compile(r"stablehlo.bitcast_convert .*xf32>\) -> ")
    assert fetches.search(lowered(traced, "cpu"))
    assert not fetches.search(lowered(traced))
