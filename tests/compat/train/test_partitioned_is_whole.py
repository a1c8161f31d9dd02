"""The tests of `tests/train/test_partitioned_is_whole.py` for what only TensorFlow 1 has."""

from __future__ import annotations

from typing import Any

import estimatorkit.compat.v1 as tf
from estimatorkit.compat.train.optimizers import contrib_optimizers as contrib
from estimatorkit.compat.train.optimizers.moving_average_optimizer import MovingAverageOptimizer
from tests.sweep import sweep
from tests.train.test_partitioned_is_whole import (
    LOOKUPS,
    ROWS,
    Lookup,
    Maker,
    cases,
    check_model,
    table,
)

train = tf.train
OPTIMIZERS: dict[str, Maker] = {
    "contrib_nadam": lambda: contrib.NadamOptimizer(0.1),
    "contrib_ada_max": lambda: contrib.AdaMaxOptimizer(0.1),
    "add_sign": lambda: contrib.AddSignOptimizer(0.1),
    "power_sign": lambda: contrib.PowerSignOptimizer(0.1),
    "adam_w": lambda: contrib.AdamWOptimizer(0.01, 0.1),
    "momentum_w": lambda: contrib.MomentumWOptimizer(0.01, 0.1, 0.9),
    "averaged": lambda: MovingAverageOptimizer(train.MomentumOptimizer(0.1, 0.9), 0.9),
}


def sampled(loss: Any, ids: Any) -> Any:
    inputs = tf.sin(tf.reshape(tf.range(8.0), [4, 2]))
    draws = tf.constant([1, 2, 7], tf.int64), tf.ones([4, 1]), tf.ones([3])
    given = {"num_sampled": 3, "num_classes": ROWS, "sampled_values": draws}
    biases = tf.get_variable("biases", [ROWS])
    return loss(table(), biases, ids[:, None], inputs, **given, partition_strategy="div")


MODELS: dict[str, Lookup] = {
    "sampled softmax": lambda ids, weights: sampled(tf.nn.sampled_softmax_loss, ids),
    "noise contrast": lambda ids, weights: sampled(tf.nn.nce_loss, ids),
    **{name: LOOKUPS[name] for name in ("embedding", "sparse", "weighted column")},
}


@sweep(("lookup", "partitioner", "first", "second"), cases(MODELS, OPTIMIZERS), quick=1)
def test_partitions_train_like_the_whole(
    lookup: str, partitioner: str, first: str, second: str
) -> None:
    for name in (first, second):
        check_model(lookup, MODELS[lookup], OPTIMIZERS[name], partitioner)
