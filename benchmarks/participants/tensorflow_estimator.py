"""TensorFlow 2.15, the last with `tf.estimator`: the reference."""

from __future__ import annotations

import functools

import tensorflow as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]

from benchmarks import (
    census_program,
    data_programs,
    estimator_calls,
    graph_programs,
    keras_programs,
)
from benchmarks.estimator_program import EstimatorProgram
from benchmarks.participants.protocol import Participant, answer
from benchmarks.workloads import CensusTraining

if __name__ == "__main__":
    tf.get_logger().setLevel("ERROR")
    program = EstimatorProgram(
        estimator=tf.estimator,
        adagrad=tf.keras.optimizers.legacy.Adagrad,
        numeric_column=tf.feature_column.numeric_column,
        dataset=tf.data.Dataset,
    )
    legacy = tf.keras.optimizers.legacy
    optimizers = legacy.Ftrl, legacy.Adagrad
    answer(
        Participant(
            imports={
                "import_time": "import tensorflow",
                "import_classifier": "import tensorflow as tf; tf.estimator.DNNClassifier",
            },
            versions={"tensorflow": tf.__version__},
            trainer=lambda workload: (
                census_program.trainer(tf, optimizers, workload)
                if isinstance(workload, CensusTraining)
                else program.trainer(workload)
            ),
            calls={
                name: functools.partial(program, tf.compat.v1)
                for name, program in (
                    graph_programs.PROGRAMS | data_programs.PROGRAMS | estimator_calls.PROGRAMS
                ).items()
            }
            | {
                name: functools.partial(keras_programs.fit, name, tf.keras)
                for name in keras_programs.DATA
            },
        )
    )
