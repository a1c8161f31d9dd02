"""The tests of `tests/distribute/test_dynamic_sharding.py` that need names of TensorFlow 1."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.distribute.processes import Processes
from tests.distribute.test_dynamic_sharding import counts_of, covered
from tests.distribute.trainings import Training, all_end


@pytest.mark.slow
@pytest.mark.multiprocess
@pytest.mark.slow
def test_early_ending_synchronous_replica_does_not_block_others(
    processes: Processes, tmp_path: Path
) -> None:
    """Units are many or few for one of them: an update takes the gradients of two."""
    jobs = {"ps": 1, "chief": 1, "worker": 1}
    training = Training(
        processes, tmp_path, "dealing", jobs, units=5, epochs=1, elements=9, replicas=2
    )
    started = training.start_all()
    all_end(started)
    assert counts_of(training) == [9] * 5
    assert covered(started["chief 0"]) == ["epoch 0: 5 of 5 units"]
