"""What a training sends to an accelerator: each block once, the next one while steps run."""

from __future__ import annotations

import threading
from typing import Any

import jax
import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.data.execution import cursor

ROWS, BATCH, STEPS = 60, 20, 24


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The thread and the bytes of each transfer of batches; loops take this for an accelerator."""
    found: list[tuple[str, int]] = []
    put = jax.device_put

    def device_put(value: Any, *rest: Any, **options: Any) -> Any:
        if isinstance(value, np.ndarray) and value.shape[1:] == (BATCH, 8):
            found.append((threading.current_thread().name, value.nbytes))
        return put(value, *rest, **options)

    monkeypatch.setattr(jax, "device_put", device_put)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(cursor, "BLOCK_BYTES", BATCH * 8 * 4 * 6)  # blocks of six batches
    return found


def test_bytes_per_step(sent: list[tuple[str, int]]) -> None:
    rows = np.random.default_rng(1).normal(size=(ROWS, 8)).astype(np.float32)

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        weights = tf.get_variable("w", [8, 1])
        loss = tf.reduce_mean(tf.square(tf.matmul(features, weights) - 1.0))
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)

    def input_fn() -> Any:
        data = tf.data.Dataset.from_generator(lambda: iter(rows), tf.float32, [8])
        return data.repeat().batch(BATCH, drop_remainder=True)

    tf.estimator.Estimator(model_fn).train(input_fn, steps=STEPS)
    batch = BATCH * 8 * 4
    total = sum(size for _, size in sent)
    # Each batch once, in blocks; one block is read ahead and not trained on.
    assert STEPS * batch <= total <= (STEPS + 12) * batch
    assert {size % batch for _, size in sent} == {0}
    ahead = [thread for thread, _ in sent if thread == cursor.THREAD_NAME]
    assert len(ahead) >= len(sent) - 1 > 1
