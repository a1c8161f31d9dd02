"""The tests of `tests/distribute/test_mirrored.py` for optimizers of TensorFlow 1."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.distribute.processes import Processes

PROGRAM = """
import json
import estimatorkit as tf
from estimatorkit.compat.train.optimizers.moving_average_optimizer import MovingAverageOptimizer
from tests.distribute.programs.mirrored import compared, model, parted

averaged = lambda: MovingAverageOptimizer(tf.train.AdagradOptimizer(0.1))
lazy = lambda: tf.train.LazyAdamOptimizer(0.1)
print(json.dumps([compared(model(averaged)), parted(lazy)], default=float))
"""


@pytest.mark.slow
def test_every_optimizer(tmp_path: Path) -> None:
    with Processes(tmp_path, JAX_NUM_CPU_DEVICES="2") as processes:
        differences = processes.program("replicas", PROGRAM).answer()
    assert len(differences) == 2
    assert max(differences) < 1e-4
