"""The tests of `tests/train/test_loss_scale.py` that need names of TensorFlow 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from estimatorkit.compat.train.optimizers.moving_average_optimizer import MovingAverageOptimizer
from estimatorkit.core.graph import Graph
from estimatorkit.core.variables import Variable
from estimatorkit.ops.variables.variable_collections import global_variables
from estimatorkit.train.optimizers.loss_scale import MixedPrecisionLossScaleOptimizer
from estimatorkit.train.optimizers.optimizers import AdagradOptimizer
from tests.train.test_loss_scale import graph, started

__all__ = ["graph"]


def test_inner_optimizer_computes_gradients_and_creates_variables(graph: Graph) -> None:
    class Halved(AdagradOptimizer):
        def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
            return [(g * 0.5, v) for g, v in super().compute_gradients(*args, **kwargs)]

    w = Variable(np.array([1.0], np.float32))
    inner = Halved(0.1, 1.0)
    averaged = MovingAverageOptimizer(inner, 0.5)
    optimizer = MixedPrecisionLossScaleOptimizer(averaged, "dynamic")
    update = optimizer.minimize(w * 2.0)
    with started() as session:
        session.run(update)
        assert session.run(optimizer.get_slot(w, "accumulator")) == [2.0]
        assert session.run(w) == pytest.approx([1.0 - 0.1 / 2**0.5])
    assert graph.get_collection("train_op") == [update]
    own = [each.op.name for each in global_variables() if each is not w]
    assert own == [
        *("current_loss_scale", "good_steps", "Variable/Adagrad"),
        "Variable/ExponentialMovingAverage",
    ]
