"""The census wide-and-deep program that TensorFlow and estimatorkit both run.

The classic setting: base columns and crosses for the linear part with Ftrl, embeddings and
indicators for the deep part with Adagrad. Rows are in memory, so that the input is shuffled batches
of strings and numbers, and all ids are made from words in every step.
"""

from __future__ import annotations

import csv
import tempfile
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.data_programs import CENSUS_COLUMNS, CENSUS_NUMBERS, census_file
from benchmarks.workloads import Array, CensusTraining

WORDS = {
    "education": (
        *("Bachelors", "HS-grad", "11th", "Masters", "9th", "Some-college", "Assoc-acdm"),
        *("Assoc-voc", "7th-8th", "Doctorate", "Prof-school", "5th-6th", "10th", "1st-4th"),
        *("Preschool", "12th"),
    ),
    "marital_status": (
        *("Married-civ-spouse", "Divorced", "Married-spouse-absent", "Never-married"),
        *("Separated", "Married-AF-spouse", "Widowed"),
    ),
    "relationship": (
        *("Husband", "Not-in-family", "Wife", "Own-child", "Unmarried", "Other-relative"),
    ),
    "workclass": (
        *("Self-emp-not-inc", "Private", "State-gov", "Federal-gov", "Local-gov", "?"),
        *("Self-emp-inc", "Without-pay", "Never-worked"),
    ),
}
AGES = (18, 25, 30, 35, 40, 45, 50, 55, 60, 65)


def census() -> tuple[dict[str, Array], Array]:
    """Returns features by name, and labels: 1 for an income above 50,000."""
    with open(census_file(), newline="") as file:
        rows = [row for row in csv.reader(file, skipinitialspace=True) if len(row) == 15]
    table = dict(zip(CENSUS_COLUMNS, zip(*rows, strict=True), strict=True))
    labels = np.array([value.startswith(">50K") for value in table.pop("income_bracket")], np.int64)
    features = {
        name: np.array(values, np.float32)
        if name in CENSUS_NUMBERS
        else np.array([value.encode() for value in values], object)
        for name, values in table.items()
    }
    return features, labels


def columns(tf: Any) -> tuple[list[Any], list[Any]]:
    """Returns the columns of the linear and of the deep part."""
    fc = tf.feature_column
    numbers = [fc.numeric_column(name) for name in CENSUS_NUMBERS if name != "fnlwgt"]
    words = {
        name: fc.categorical_column_with_vocabulary_list(name, list(known))
        for name, known in WORDS.items()
    }
    occupation = fc.categorical_column_with_hash_bucket("occupation", 1000)
    age = fc.bucketized_column(numbers[0], list(AGES))
    crosses = [
        fc.crossed_column(["education", "occupation"], 1000),
        fc.crossed_column([age, "education", "occupation"], 1000),
    ]
    wide = [*words.values(), occupation, age, *crosses]
    deep = [
        *numbers,
        *(fc.indicator_column(column) for column in words.values()),
        fc.embedding_column(occupation, 8),
    ]
    return wide, deep


@dataclass(frozen=True)
class CensusTrainer:
    """A `protocol.Trainer`: each run has a new Estimator in a new, temporary model directory.

    Attributes:
        tf: the package.
        optimizers: Ftrl for the linear part, Adagrad for the deep one: functions of a rate.
        workload: what is trained.
        features, labels: the data.
    """

    tf: Any
    optimizers: tuple[Any, Any]
    workload: CensusTraining
    features: dict[str, Array]
    labels: Array

    def classifier(self, model_dir: str, **config: Any) -> Any:
        """Returns the Estimator."""
        wide, deep = columns(self.tf)
        ftrl, adagrad = self.optimizers
        return self.tf.estimator.DNNLinearCombinedClassifier(
            model_dir=model_dir,
            linear_feature_columns=wide,
            linear_optimizer=ftrl(0.1),
            dnn_feature_columns=deep,
            dnn_optimizer=adagrad(0.05),
            dnn_hidden_units=[100, 75, 50, 25],
            config=self.tf.estimator.RunConfig(save_summary_steps=None, **config),
        )

    def rows(self) -> Any:
        """Returns the dataset of rows."""
        return self.tf.data.Dataset.from_tensor_slices((self.features, self.labels))

    def training_input(self) -> Any:
        """Returns the dataset that is trained on."""
        return self.rows().shuffle(len(self.labels)).repeat().batch(self.workload.batch_size)

    def train(self, steps: int) -> None:
        """Trains without checkpoints or summaries."""
        with tempfile.TemporaryDirectory() as model_dir:
            made = self.classifier(
                model_dir, save_checkpoints_steps=None, save_checkpoints_secs=None
            )
            made.train(self.training_input, steps=steps)

    def loss_after(self, steps: int) -> float:
        """Returns the mean loss on the rows after so many steps."""
        with tempfile.TemporaryDirectory() as model_dir:
            made = self.classifier(model_dir, checkpoint_save_graph_def=False)
            made.train(self.training_input, steps=steps)
            return float(made.evaluate(lambda: self.rows().batch(2000))["average_loss"])


def trainer(tf: Any, optimizers: tuple[Any, Any], workload: CensusTraining) -> CensusTrainer:
    """Returns the workload's trainer, its data loaded."""
    features, labels = census()
    return CensusTrainer(tf, optimizers, workload, features, labels)
