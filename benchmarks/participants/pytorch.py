"""PyTorch, written as somebody who knows it would: tensors in memory, one gather a batch.

The data set fits in memory, so there is no DataLoader, which would collate example by example.
With `ESTIMATORKIT_BENCH_TORCH_COMPILE=1`, model and loss are compiled by `torch.compile`
(participant "pytorch compiled").
"""

from __future__ import annotations

import functools
import itertools
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch  # type: ignore[import-not-found,unused-ignore]
from torch import nn  # type: ignore[import-not-found,unused-ignore]

from benchmarks import keras_programs
from benchmarks.graph_programs import digits
from benchmarks.participants import pytorch_data
from benchmarks.participants.protocol import CHECKED_EXAMPLES, Participant, answer
from benchmarks.workloads import Classification

LOG_STEPS = 100  # the Estimators look at the loss every 100 steps; so does this loop


def network(features: int, workload: Classification) -> Any:
    """Returns the MLP, initialised as TensorFlow's: Glorot uniform weights, zero biases."""
    layers: list[Any] = []
    for units in workload.hidden_units:
        layers += [nn.Linear(features, units), nn.ReLU()]
        features = units
    layers.append(nn.Linear(features, workload.n_classes))
    for layer in layers:
        if isinstance(layer, nn.Linear):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)
    return nn.Sequential(*layers)


def shuffled_batches(examples: int, batch_size: int) -> Iterator[Any]:
    """Yields batches of indices, from shuffled epochs end to end, so that no batch is short."""
    # At least 100 batches at a time, so that the cost of a new permutation is rarely met.
    epochs = math.ceil(100 * batch_size / examples)
    left = torch.empty(0, dtype=torch.int64)
    while True:
        order = torch.cat([left, *(torch.randperm(examples) for _ in range(epochs))])
        full = len(order) // batch_size * batch_size
        yield from order[:full].split(batch_size)
        left = order[full:]


@dataclass(frozen=True)
class TorchTrainer:
    """A `protocol.Trainer`."""

    workload: Classification
    inputs: Any
    labels: Any
    compiled: bool

    def fit(self, steps: int) -> Any:
        """Returns a fresh model, trained for `steps` steps."""
        model = network(self.inputs.shape[1], self.workload)
        optimizer = torch.optim.Adagrad(
            model.parameters(),
            lr=self.workload.learning_rate,
            initial_accumulator_value=self.workload.initial_accumulator_value,
            fused=True,  # 15 to 20 % off a step of either workload, against the default
        )

        def loss_of(inputs: Any, labels: Any) -> Any:
            return nn.functional.cross_entropy(model(inputs), labels)

        loss_function: Callable[[Any, Any], Any] = (
            torch.compile(loss_of) if self.compiled else loss_of
        )
        batches = shuffled_batches(len(self.inputs), self.workload.batch_size)
        for step, chosen in zip(range(steps), batches, strict=False):
            optimizer.zero_grad()
            loss = loss_function(
                self.inputs.index_select(0, chosen), self.labels.index_select(0, chosen)
            )
            loss.backward()
            optimizer.step()
            if step % LOG_STEPS == 0 and not torch.isfinite(loss):
                raise RuntimeError(f"loss is {loss.item()} at step {step}")
        return model

    def train(self, steps: int) -> None:
        """Trains a fresh model."""
        self.fit(steps)

    def loss_after(self, steps: int) -> float:
        """Trains a fresh model and returns its loss on the checked examples."""
        model = self.fit(steps)
        with torch.no_grad():
            logits = model(self.inputs[:CHECKED_EXAMPLES])
            return float(nn.functional.cross_entropy(logits, self.labels[:CHECKED_EXAMPLES]))


def trainer(workload: Classification) -> TorchTrainer:
    """Returns the workload's trainer, its data loaded."""
    features, labels = workload.data()
    inputs = np.concatenate([v.reshape(len(v), -1) for v in features.values()], axis=1)
    return TorchTrainer(
        workload,
        torch.from_numpy(inputs),
        torch.from_numpy(labels),
        compiled=os.environ.get("ESTIMATORKIT_BENCH_TORCH_COMPILE") == "1",
    )


def cnn_step() -> Callable[[], object]:
    """Returns a call that trains the network of `graph_programs.cnn_step` on 128 pictures."""
    model = nn.Sequential(
        nn.Conv2d(1, 32, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(7 * 7 * 64, 1024),
        nn.ReLU(),
        nn.Linear(1024, 10),
    )
    optimizer = torch.optim.Adam(model.parameters(), 1e-4, fused=True)
    batches = itertools.cycle(digits(50, 128))

    def call() -> object:
        images, labels = next(batches)
        optimizer.zero_grad()
        logits = model(torch.from_numpy(images).reshape(-1, 1, 28, 28))
        loss = nn.functional.cross_entropy(logits, torch.from_numpy(labels))
        loss.backward()
        optimizer.step()
        return loss

    call()
    return call


def fit(name: str) -> Callable[[], object]:
    """Returns a call that trains the network of `keras_programs.fit` for as many epochs."""
    data = keras_programs.DATA[name]()
    inputs, labels = torch.from_numpy(data.x), torch.from_numpy(data.y)
    if name == "fit_mnist_cnn":
        inputs = inputs.permute(0, 3, 1, 2).contiguous()
        hidden: list[Any] = [nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
        hidden += [nn.Linear(32 * 13 * 13, 128), nn.ReLU(), nn.Dropout(0.2)]
        width = 128
    else:
        hidden, width = [], inputs.shape[1]
        for units in (10, 10) if name == "fit_iris" else (256, 128):
            hidden += [nn.Linear(width, units), nn.ReLU()]
            width = units
    model = nn.Sequential(*hidden, nn.Linear(width, data.classes))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3, fused=True)

    def call() -> object:
        history = []
        for _ in range(data.epochs):
            total, right = torch.zeros(()), torch.zeros(())
            for chosen in torch.randperm(len(inputs)).split(data.batch_size):
                optimizer.zero_grad()
                logits, truth = model(inputs[chosen]), labels[chosen]
                loss = nn.functional.cross_entropy(logits, truth)
                loss.backward()
                optimizer.step()
                total += loss.detach() * len(chosen)
                right += (logits.detach().argmax(1) == truth).sum()
            history.append((float(total) / len(inputs), float(right) / len(inputs)))
        return history

    call()
    return call


if __name__ == "__main__":
    answer(
        Participant(
            imports={
                "import_time": "import torch",
                "import_classifier": "import torch; torch.nn.Linear; torch.optim.Adagrad",
            },
            versions={"torch": torch.__version__},
            trainer=trainer,
            calls={
                "mnist_cnn": cnn_step,
                **pytorch_data.PROGRAMS,
                **{name: functools.partial(fit, name) for name in keras_programs.DATA},
            },
        )
    )
