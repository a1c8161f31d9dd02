"""Models that compute in 16 bits and keep float32 variables."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from estimatorkit.core.graph import Graph
from estimatorkit.keras import layers, mixed_precision, models, optimizers
from estimatorkit.layers.engine.sessions import session_of


@pytest.fixture(autouse=True)
def graph() -> Iterator[Graph]:
    graph = Graph()
    with graph.as_default():
        yield graph
    mixed_precision.set_global_policy(None)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision_model_learns(graph: Graph, name: str) -> None:
    random = np.random.RandomState(0)
    x = random.normal(size=(256, 8)).astype(np.float32)
    y = (x @ random.normal(size=(8, 1))).astype(np.float32)
    mixed_precision.set_global_policy(name)
    stack = [layers.Dense(16, activation="relu", input_shape=(8,)), layers.Dense(1)]
    model = models.Sequential(stack)
    optimizer = optimizers.Adam(0.02)
    if name == "mixed_float16":
        optimizer = mixed_precision.LossScaleOptimizer(optimizer, initial_scale=2.0**30)
    model.compile(optimizer, loss="mse")
    losses = model.fit(x, y, epochs=6, batch_size=32, verbose=0).history["loss"]
    assert losses[-1] < 0.3 * losses[0]
    assert {each.dtype.name for each in model.weights} == {"float32"}
    assert {each.dtype.name for each in optimizer.weights[1:]} == {"float32"}
    short = name.removeprefix("mixed_")
    assert stack[0].compute_dtype == short
    assert model.predict(x[:2]).dtype.name == short
    products = [op for op in graph.get_operations() if op.type == "MatMul"]
    assert products
    assert {op.outputs[0].dtype.name for op in products} == {short}
    if name == "mixed_float16":  # 2^30 is too much for float16: the first steps are left out
        steps, scale = optimizer.iterations, optimizer.loss_scale
        assert [each.op.name.removeprefix("train/") for each in optimizer.weights[:2]] == [
            *("Adam/iter", "Adam/dense/kernel/m"),
        ]
        done, now = session_of().run([steps, scale])
        assert now < 2.0**30
        assert done == 48 - np.log2(2.0**30 / now)
