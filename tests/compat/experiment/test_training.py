"""The tests of `tests/experiment/test_training.py` that need names of TensorFlow 1."""

from __future__ import annotations

import estimatorkit as ek
from estimatorkit.experiment import build
from estimatorkit.experiment.load import load_experiment
from tests.experiment.test_training import in_a_folder_of_its_own, write_people

__all__ = ["in_a_folder_of_its_own"]


def test_profiler_hook_matches_description() -> None:
    write_people()
    experiment = load_experiment("people.yaml", ["train.hooks=[{type: profiler}]"])
    assert [type(each) for each in build.hooks(experiment)] == [ek.train.ProfilerHook]
