"""A small model for the tests of training: two layers, dropout, momentum by hand, in plain ops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import estimatorkit as tf
from estimatorkit.core.graph import Graph
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.data.dataset import Dataset
from estimatorkit.data.iterator_ops import make_one_shot_iterator
from estimatorkit.runtime.session import Session
from estimatorkit.train.global_steps import get_or_create_global_step

FEATURES = 4
CLASSES = 3


def rows(count: int, seed: int = 0) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Returns features (count, FEATURES) and labels (count,) that follow from them."""
    generator = np.random.default_rng(seed)
    features = generator.normal(size=(count, FEATURES)).astype(np.float32)
    return features, features[:, :CLASSES].argmax(1).astype(np.int64)


def dataset(
    count: int = 40,
    batch: int = 8,
    *,
    epochs: int | None = None,
    shuffle: bool = True,
    drop_remainder: bool = False,
    seed: int = 0,
) -> Dataset:
    """A dataset of `rows`: `epochs` times (None: without end), then cut into batches."""
    made = Dataset.from_tensor_slices(rows(count, seed))
    if shuffle:
        made = made.shuffle(count)
    return made.repeat(epochs).batch(batch, drop_remainder)


@dataclass(frozen=True)
class Model:
    """A model as tensors.

    Attributes:
        logits: (batch, CLASSES).
        loss: scalar.
        train_op: one update, which also counts the global step.
    """

    logits: Tensor
    loss: Tensor
    train_op: Operation


def build(
    features: Any,
    labels: Any,
    *,
    dropout: float = 0.25,
    rate: float = 0.1,
    units: int = 8,
    convolution: bool = False,
) -> Model:
    """Adds the model to the default graph.

    Args:
        features: float32 `(batch, FEATURES)`.
        labels: int64 `(batch,)`, or None: no loss and no update then.
        dropout: the share of hidden values that are dropped.
        rate: the learning rate.
        units: of the hidden layer; 0 for none.
        convolution: whether the features go through one first, as a row of points.
    """
    counter = get_or_create_global_step()
    if convolution:
        filters = tf.get_variable("filters", [2, 1, 3], initializer=tf.constant_initializer(0.3))
        points = tf.nn.conv1d(tf.expand_dims(features, 2), filters, 1, "SAME")
        features = tf.reshape(points, [-1, 3 * FEATURES])
    hidden = tf.nn.relu(dense(features, units, "hidden")) if units else features
    if dropout:
        hidden = tf.nn.dropout(hidden, rate=dropout)
    logits = dense(hidden, CLASSES, "logits")
    if labels is None:
        return Model(logits, None, None)  # type: ignore[arg-type]
    loss = tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    )
    return Model(logits, loss, momentum_step(loss, rate, counter))


def dense(inputs: Any, units: int, name: str) -> Tensor:
    """A fully connected layer."""
    with tf.variable_scope(name):
        kernel = tf.get_variable("kernel", [int(inputs.shape[-1]), units])
        bias = tf.get_variable("bias", [units], initializer=tf.zeros_initializer())
        made: Tensor = tf.nn.bias_add(tf.matmul(inputs, kernel), bias)
    return made


def momentum_step(loss: Tensor, rate: float, counter: Any) -> Operation:
    """Momentum, so that there are slots to save."""
    variables = tf.trainable_variables()
    updates = []
    for variable, gradient in zip(variables, tf.gradients(loss, variables), strict=True):
        slot = tf.get_variable(
            f"{variable.op.name}/slot",
            variable.shape,
            initializer=tf.zeros_initializer(),
            trainable=False,
        )
        moved = tf.assign(slot, 0.9 * slot + gradient)
        updates.append(tf.assign_sub(variable, rate * moved))
    with tf.control_dependencies(updates):
        made: Operation = tf.assign_add(counter, 1).op
    return made


def session_of(data: Dataset, *, seed: int | None = 7, **model: Any) -> tuple[Model, Session]:
    """A graph with the model on the elements of `data`, and a session with initial values."""
    graph = Graph()
    graph.seed = seed
    with graph.as_default():
        features, labels = make_one_shot_iterator(data).get_next()
        made = build(features, labels, **model)
        initializer = tf.global_variables_initializer()
    session = Session(graph=graph)
    session.run(initializer)
    return made, session


def weights(session: Session) -> dict[str, NDArray[Any]]:
    """The values of all variables, as copies."""
    return {
        variable.op.name: np.array(session.run(variable))
        for variable in session.graph.get_collection("variables")
    }


def assert_same_bits(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Fails unless both hold the same arrays, bit for bit."""
    assert one.keys() == other.keys()
    different = [name for name in one if one[name].tobytes() != other[name].tobytes()]
    assert not different


def partition(total: int, generator: np.random.Generator, most: int) -> Sequence[int]:
    """Positive numbers up to `most` whose sum is `total`."""
    parts: list[int] = []
    while total:
        parts.append(min(total, int(generator.integers(1, most + 1))))
        total -= parts[-1]
    return parts
