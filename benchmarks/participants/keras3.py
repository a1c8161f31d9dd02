"""Keras 3 on its JAX backend."""

from __future__ import annotations

import functools
import os

os.environ["KERAS_BACKEND"] = "jax"

import jax
import keras

from benchmarks import keras_programs
from benchmarks.participants.protocol import Participant, answer
from benchmarks.workloads import Classification


def no_trainer(workload: Classification) -> None:
    """Raises LookupError: Keras has no Estimators."""
    raise LookupError(workload.name)


if __name__ == "__main__":
    answer(
        Participant(
            imports={},
            versions={"keras": keras.__version__, "jax": jax.__version__},
            trainer=no_trainer,  # type: ignore[arg-type]
            calls={
                name: functools.partial(keras_programs.fit, name, keras)
                for name in keras_programs.DATA
            },
        )
    )
