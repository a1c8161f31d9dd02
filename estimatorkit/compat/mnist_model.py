"""`tensorflow.examples.tutorials.mnist.mnist`: the fully connected network of the tutorial."""

from __future__ import annotations

import math
from typing import Any

from estimatorkit.core.dtypes import int32, int64
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.layers.losses import sparse_softmax_cross_entropy
from estimatorkit.lazy import listing
from estimatorkit.ops.array.ranking import in_top_k
from estimatorkit.ops.files import summary
from estimatorkit.ops.math.elementwise import cast
from estimatorkit.ops.math.linalg import matmul
from estimatorkit.ops.math.reduce import reduce_sum
from estimatorkit.ops.nn import nn
from estimatorkit.ops.variables.initializers import TruncatedNormal, Zeros
from estimatorkit.train.optimizers.optimizers import GradientDescentOptimizer

__dir__ = listing(__name__)

NUM_CLASSES = 10
IMAGE_SIZE = 28
IMAGE_PIXELS = IMAGE_SIZE * IMAGE_SIZE


def inference(images: Any, hidden1_units: int, hidden2_units: int) -> Tensor:
    """The logits, `(batch, 10)`, of images `(batch, 784)`: two hidden layers with ReLU."""
    outputs, width = images, IMAGE_PIXELS
    for name, units in (("hidden1", hidden1_units), ("hidden2", hidden2_units)):
        with get_default_graph().name_scope(name):
            outputs = nn.relu(_linear(outputs, width, units))
        width = units
    with get_default_graph().name_scope("softmax_linear"):
        return _linear(outputs, width, NUM_CLASSES)


def _linear(inputs: Any, width: int, units: int) -> Tensor:
    deviation = 1.0 / math.sqrt(width)
    weights = Variable(TruncatedNormal(stddev=deviation)([width, units]), name="weights")
    return matmul(inputs, weights) + Variable(Zeros()([units]), name="biases")


def loss(logits: Any, labels: Any) -> Tensor:
    """The mean cross-entropy; labels are `(batch,)` ints."""
    return sparse_softmax_cross_entropy(cast(labels, int64), logits)


def training(loss: Any, learning_rate: float) -> Any:
    """An operation that runs a step of gradient descent, with a summary of the loss."""
    summary.scalar("loss", loss)
    step = Variable(0, name="global_step", trainable=False)
    return GradientDescentOptimizer(learning_rate).minimize(loss, global_step=step)


def evaluation(logits: Any, labels: Any) -> Tensor:
    """The number of correctly classified examples of a batch, int32."""
    return reduce_sum(cast(in_top_k(logits, labels, 1), int32))
