"""What is measured: the workloads' constants and data, the same for every participant.

NumPy only, because every participant imports this file in an environment of its own. A `Workload`
says what one unit of work is and who takes part; a `Classification` is a workload that trains a DNN
classifier, and each participant trains any `Classification` it is given: to add one, add a row to
`WORKLOADS`. Data are seeded and learnable, so that the loss after the same number of steps shows
that the participants did the same work.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Features = dict[str, Array]

TRAINERS = ("tensorflow", "pytorch", "pytorch compiled", "estimatorkit")


@dataclass(frozen=True)
class Workload:
    """One thing to measure.

    Attributes:
        name: as given to `--only`.
        about: one line for the report.
        unit: what is counted: "step", "call" or "import".
        participants: names of those that take part, in the order of the table.
        trial: units in the calibrating round, whose figure is thrown away.
        granule: units are measured in multiples of this.
    """

    name: str
    about: str
    unit: str
    participants: tuple[str, ...]
    trial: int
    granule: int

    def units_lasting(self, seconds: float, seconds_per_unit: float) -> int:
        """Returns how many units last about `seconds`, a multiple of `granule`, at least one."""
        return max(1, round(seconds / seconds_per_unit / self.granule)) * self.granule


@dataclass(frozen=True)
class CensusTraining(Workload):
    """Training of the census wide-and-deep model (`census_program`), its input included.

    Attributes:
        batch_size: rows a step.
        warm_steps: as for `Classification`.
    """

    batch_size: int
    warm_steps: int


@dataclass(frozen=True)
class Classification(Workload):
    """Training of a ReLU DNN classifier, its input pipeline included.

    The pipeline is `from_tensor_slices(...).shuffle(shuffle_buffer).repeat().batch(batch_size)`,
    the optimizer `Adagrad(learning_rate, initial_accumulator_value)`, the loss the batch's mean
    cross-entropy.

    Attributes:
        data: returns features (float32, first axis the examples) and labels (int64, one each).
        warm_steps: steps of the shorter of the two timed runs, and of the run before them, whose
            loss is reported.
    """

    data: Callable[[], tuple[Features, Array]]
    hidden_units: tuple[int, ...]
    n_classes: int
    batch_size: int
    shuffle_buffer: int
    warm_steps: int
    learning_rate: float = 0.05
    initial_accumulator_value: float = 0.1


# Mean and standard deviation (cm) of the columns for the three species in Fisher's data: clusters
# drawn from them are as hard to separate as the real ones, without a file to carry.
IRIS_COLUMNS = ("SepalLength", "SepalWidth", "PetalLength", "PetalWidth")
IRIS_MEANS = ((5.01, 3.43, 1.46, 0.25), (5.94, 2.77, 4.26, 1.33), (6.59, 2.97, 5.55, 2.03))
IRIS_DEVIATIONS = ((0.35, 0.38, 0.17, 0.11), (0.52, 0.31, 0.47, 0.20), (0.64, 0.32, 0.55, 0.27))


def iris_data() -> tuple[Features, Array]:
    """Returns 120 examples (as many as TensorFlow's training split) of 4 features, 3 classes."""
    random = np.random.default_rng(1936)
    labels = np.tile(np.arange(3), 40)
    values = random.normal(np.array(IRIS_MEANS)[labels], np.array(IRIS_DEVIATIONS)[labels])
    columns = values.astype(np.float32).T
    return dict(zip(IRIS_COLUMNS, map(np.ascontiguousarray, columns), strict=True)), labels


def mnist_shaped_data() -> tuple[Features, Array]:
    """Returns 60,000 x 784 pixels in [0, 1), a fifth of them lit as in MNIST, and 10 classes."""
    random = np.random.default_rng(1998)
    labels = random.integers(0, 10, 60_000)
    lit = random.choice(
        np.array([0.17, 0.23], np.float32), size=(10, 784)
    )  # how often, by class and pixel
    pixels = random.random((60_000, 784), dtype=np.float32)
    pixels[random.random((60_000, 784), dtype=np.float32) > lit[labels]] = 0.0
    return {"x": pixels}, labels


WORKLOADS: dict[str, Workload] = {
    workload.name: workload
    for workload in (
        Classification(
            name="iris",
            about="DNNClassifier [10, 10], 4 features, batch 32, Adagrad",
            unit="step",
            participants=TRAINERS,
            trial=2000,
            granule=100,
            data=iris_data,
            hidden_units=(10, 10),
            n_classes=3,
            batch_size=32,
            shuffle_buffer=1000,
            warm_steps=2000,
        ),
        Classification(
            name="mnist_dnn",
            about="DNNClassifier [256, 128], 784 features, batch 128, Adagrad",
            unit="step",
            participants=TRAINERS,
            trial=1000,
            granule=100,
            data=mnist_shaped_data,
            hidden_units=(256, 128),
            n_classes=10,
            batch_size=128,
            shuffle_buffer=10_000,
            warm_steps=500,
        ),
        CensusTraining(
            name="census",
            about="DNNLinearCombinedClassifier, wide and deep, census rows in memory, batch 128",
            unit="step",
            participants=("tensorflow", "estimatorkit"),
            trial=500,
            granule=100,
            batch_size=128,
            warm_steps=500,
        ),
        Workload(
            name="session_run",
            about="Session.run of placeholder + constant, one scalar fed and one fetched",
            unit="call",
            participants=("tensorflow", "estimatorkit"),
            trial=1000,
            granule=100,
        ),
        Workload(
            name="mnist_softmax",
            about="softmax regression by feed_dict, 784 features, batch 100, gradient descent",
            unit="call",
            participants=("tensorflow", "estimatorkit"),
            trial=500,
            granule=100,
        ),
        Workload(
            name="mnist_cnn",
            about="5x5x32, pool, 5x5x64, pool, 1024, 10 by feed_dict, batch 128, Adam",
            unit="call",
            participants=("tensorflow", "pytorch", "estimatorkit"),
            trial=20,
            granule=10,
        ),
        *(
            Workload(
                name=f"fit_{name}",
                about=f"Keras's fit: {about}, Adam, accuracy",
                unit="call",
                participants=("tensorflow", "keras 3", "pytorch", "estimatorkit"),
                trial=4,
                granule=2,
            )
            for name, about in (
                ("iris", "[10, 10], 20 epochs of 120 examples, batch 32"),
                ("mnist_dnn", "[256, 128], an epoch of 12,800 pictures, batch 128"),
                ("mnist_cnn", "3x3x32, pool, 128, dropout, an epoch of 5,120, batch 128"),
            )
        ),
        Workload(
            name="predict_again",
            about="predict of one example by a DNNClassifier that has predicted before",
            unit="call",
            participants=("tensorflow", "estimatorkit"),
            trial=4,
            granule=2,
        ),
        *(
            Workload(
                name=f"embedding_{name}",
                about=f"a step of Adagrad on 128 rows of a table of {rows} x 64",
                unit="call",
                participants=("tensorflow", "estimatorkit"),
                trial=200,
                granule=100,
            )
            for name, rows in (("10_thousand", "10,000"), ("1_million", "1,000,000"))
        ),
        Workload(
            name="data_shuffle",
            about="shuffling 60,000 pictures of 784 floats in memory, batches of 128",
            unit="call",
            participants=("tensorflow", "pytorch", "estimatorkit"),
            trial=500,
            granule=50,
        ),
        Workload(
            name="data_map",
            about="scaling pictures of bytes by a mapped function, batches of 128",
            unit="call",
            participants=("tensorflow", "pytorch", "estimatorkit"),
            trial=200,
            granule=50,
        ),
        Workload(
            name="data_csv",
            about="the census file (15 columns) by make_csv_dataset, batches of 128",
            unit="call",
            participants=("tensorflow", "pytorch", "estimatorkit"),
            trial=200,
            granule=50,
        ),
        Workload(
            name="data_clicks",
            about="a file like Criteo's (13 counts, 26 categories) by CsvDataset, batches of 4,096",
            unit="call",
            participants=("tensorflow", "estimatorkit"),
            trial=10,
            granule=5,
        ),
        Workload(
            name="data_parse_batches",
            about="TFRecords of the census, batch(128) before parse_example",
            unit="call",
            participants=("tensorflow", "estimatorkit"),
            trial=200,
            granule=50,
        ),
        Workload(
            name="data_parse_examples",
            about="TFRecords of the census, parse_single_example before batch(128)",
            unit="call",
            participants=("tensorflow", "estimatorkit"),
            trial=100,
            granule=50,
        ),
        Workload(
            name="input_layer",
            about="census: input_layer and linear_model of a wide-and-deep model, batch 128",
            unit="call",
            participants=("tensorflow", "estimatorkit"),
            trial=200,
            granule=50,
        ),
        Workload(
            name="build_chain",
            about="building a graph of 1000 additions",
            unit="call",
            participants=("tensorflow", "estimatorkit"),
            trial=10,
            granule=1,
        ),
        Workload(
            name="build_gradient",
            about="building a network of 50 layers and its gradient",
            unit="call",
            participants=("tensorflow", "estimatorkit"),
            trial=10,
            granule=1,
        ),
        Workload(
            name="import_time",
            about="importing the package in a fresh interpreter, files cached",
            unit="import",
            participants=("tensorflow", "pytorch", "estimatorkit"),
            trial=1,
            granule=1,
        ),
        Workload(
            name="import_classifier",
            about="the same, and what a classifier needs: a package may import lazily",
            unit="import",
            participants=("tensorflow", "pytorch", "estimatorkit"),
            trial=1,
            granule=1,
        ),
    )
}
