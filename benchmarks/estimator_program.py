"""The Estimator program that TensorFlow and estimatorkit both run, each with its own names."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.participants.protocol import CHECKED_EXAMPLES
from benchmarks.workloads import Array, Classification, Features


@dataclass(frozen=True)
class EstimatorProgram:
    """Trains a workload with a premade Estimator, as its documentation teaches.

    Attributes:
        estimator: has `DNNClassifier` and `RunConfig`.
        adagrad: the optimizer's class. It is given, with its rate, because the default differs:
            the rate of `DNNClassifier`'s "Adagrad" is 0.05 in TensorFlow's `compat.v1` and 0.001
            (Keras's own) in its version 2.
        numeric_column: the feature column's constructor.
        dataset: the `Dataset` class.
    """

    estimator: Any
    adagrad: Callable[..., Any]
    numeric_column: Callable[..., Any]
    dataset: Any

    def trainer(self, workload: Classification) -> EstimatorTrainer:
        """Returns the workload's trainer, its data loaded."""
        features, labels = workload.data()
        return EstimatorTrainer(self, workload, features, labels)


@dataclass(frozen=True)
class EstimatorTrainer:
    """A `protocol.Trainer`: each run has a new Estimator in a new, temporary model directory."""

    program: EstimatorProgram
    workload: Classification
    features: Features
    labels: Array

    def classifier(self, model_dir: str, **config: Any) -> Any:
        """Returns the Estimator; logs every 100 steps, as is the default."""
        columns = [
            self.program.numeric_column(name, shape=values.shape[1:] or (1,))
            for name, values in self.features.items()
        ]
        return self.program.estimator.DNNClassifier(
            feature_columns=columns,
            hidden_units=list(self.workload.hidden_units),
            n_classes=self.workload.n_classes,
            optimizer=self.program.adagrad(
                learning_rate=self.workload.learning_rate,
                initial_accumulator_value=self.workload.initial_accumulator_value,
            ),
            model_dir=model_dir,
            config=self.program.estimator.RunConfig(save_summary_steps=None, **config),
        )

    def training_input(self) -> Any:
        """Returns the dataset that is trained on."""
        return (
            self.program.dataset.from_tensor_slices((self.features, self.labels))
            .shuffle(self.workload.shuffle_buffer)
            .repeat()
            .batch(self.workload.batch_size)
        )

    def checked_input(self) -> Any:
        """Returns the examples on which the loss is checked."""
        first = {name: values[:CHECKED_EXAMPLES] for name, values in self.features.items()}
        return self.program.dataset.from_tensor_slices(
            (first, self.labels[:CHECKED_EXAMPLES])
        ).batch(1000)

    def train(self, steps: int) -> None:
        """Trains without checkpoints or summaries."""
        with tempfile.TemporaryDirectory() as model_dir:
            classifier = self.classifier(
                model_dir, save_checkpoints_steps=None, save_checkpoints_secs=None
            )
            classifier.train(self.training_input, steps=steps)

    def loss_after(self, steps: int) -> float:
        """Trains with a checkpoint at the end, which `evaluate` reads."""
        with tempfile.TemporaryDirectory() as model_dir:
            # Arrays are constants of TensorFlow's graph: as text, 1 GB for 60,000 x 784 pixels.
            classifier = self.classifier(model_dir, checkpoint_save_graph_def=False)
            classifier.train(self.training_input, steps=steps)
            return float(classifier.evaluate(self.checked_input)["average_loss"])
