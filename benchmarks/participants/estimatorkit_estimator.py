"""estimatorkit, as it lies in this tree."""

from __future__ import annotations

import functools
import logging
from importlib.metadata import version

import estimatorkit as ek
import estimatorkit.compat.v1 as v1
from benchmarks import (
    census_program,
    data_programs,
    estimator_calls,
    graph_programs,
    keras_programs,
)
from benchmarks.census_program import CensusTrainer
from benchmarks.estimator_program import EstimatorProgram, EstimatorTrainer
from benchmarks.participants.protocol import Participant, answer
from benchmarks.workloads import CensusTraining, Classification
from estimatorkit.version import __version__


def trainer(workload: Classification | CensusTraining) -> EstimatorTrainer | CensusTrainer:
    """Returns the workload's trainer, its data loaded."""
    if isinstance(workload, CensusTraining):
        optimizers = ek.train.FtrlOptimizer, ek.train.AdagradOptimizer
        return census_program.trainer(ek, optimizers, workload)
    program = EstimatorProgram(
        estimator=ek,
        adagrad=ek.train.AdagradOptimizer,
        numeric_column=ek.feature_column.numeric_column,
        dataset=ek.data.Dataset,
    )
    return program.trainer(workload)


if __name__ == "__main__":
    logging.getLogger("estimatorkit").setLevel(logging.ERROR)
    answer(
        Participant(
            imports={
                "import_time": "import estimatorkit",
                "import_classifier": "import estimatorkit as ek; ek.DNNClassifier",
            },
            versions={"estimatorkit": __version__, "jax": version("jax")},
            trainer=trainer,
            calls={
                name: functools.partial(program, v1)
                for name, program in (
                    graph_programs.PROGRAMS | data_programs.PROGRAMS | estimator_calls.PROGRAMS
                ).items()
            }
            | {
                name: functools.partial(keras_programs.fit, name, ek.keras)
                for name in keras_programs.DATA
            },
        )
    )
