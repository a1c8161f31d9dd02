"""The network of tabular estimators: an ensemble in one computation, beside a linear model.

Numbers are embedded by cosines, categories by indicators or embeddings, and each member of the
ensemble has dense layers of its own. The parts are those of RealMLP (Holzmueller et al. 2024,
arXiv:2407.04491); the linear model keeps what is linear exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from estimatorkit.core.conversion import constant
from estimatorkit.core.dtypes import uint32
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.member_layers import MemberDense, ParametricActivation, ScalingLayer
from estimatorkit.layers.numeric_embeddings import PeriodicEmbedding
from estimatorkit.ops.array import array, joining
from estimatorkit.ops.math import elementwise, linalg, random, special
from estimatorkit.ops.variables.initializers import RandomNormal, Zeros
from estimatorkit.ops.variables.variable_scope import get_variable, variable_scope
from estimatorkit.premade.folds import repeated
from estimatorkit.premade.tabular_inputs import TableInputs

RATE_FACTORS = {
    "/scaling/": (6.0, 0.0),
    "/embedding/": (0.1, 0.0),
    "/linear/": (0.02, 0.0),
    "/(bias|alpha)$": (0.1, 0.0),
    "/kernel$": (1.0, 1.0),
    "": (1.0, 0.0),
}
"""The factors of the learning rate and the weight decay by the variables' names (see
`AdamWOptimizer`): those of RealMLP, and a small one for the linear model.
"""

_BYTES = 4
"""Of a random word."""


@dataclass(frozen=True)
class NetworkSettings:
    """The size of the network, and how it is regularized.

    Attributes:
        hidden_units: the width of each hidden layer.
        members: the networks of the ensemble.
        activation: the name of the activation, of which each unit learns the share.
        dropout: the probability of dropping an output of a hidden layer in training.
        sigma: the standard deviation of the initial frequencies of numbers.
        folds: see `folds`; each has as many members, one fold's after another's.
    """

    hidden_units: tuple[int, ...]
    members: int
    activation: str
    dropout: float
    sigma: float = 0.1
    folds: int = 1


def network_logits(
    inputs: TableInputs, settings: NetworkSettings, units: int, dropout: Tensor | None
) -> Tensor:
    """The logits of each member, float32 `(batch, members, units)`, the linear model's included.

    Args:
        inputs, settings: see these.
        units: the logits of a member.
        dropout: that of `settings` as a scalar in training, else None.
    """
    own: dict[str, Any] = {"shared": False, "parametrization": "ntk", "members_first": True}
    members = settings.members
    net = joined = _embedded(inputs, settings)
    if settings.folds > 1:
        net = repeated(net, members // settings.folds, axis=0)
    alike = members if settings.folds == 1 else None
    net = ScalingLayer(alike, members_first=True, name="scaling")(net)
    for number, width in enumerate(settings.hidden_units):
        net = MemberDense(width, members, name=f"hiddenlayer_{number}", **own)(net)
        net = ParametricActivation(
            settings.activation, members_first=True, name=f"activation_{number}"
        )(net)
        if settings.dropout and dropout is not None:
            net = dropped(net, members, dropout)
    first = RandomNormal(stddev=0.1)
    deep = MemberDense(
        units, members, kernel_initializer=first, bias_initializer="zeros", name="logits", **own
    )(net)
    linear = _linear(inputs, joined, units, settings.folds)
    if settings.folds > 1:
        linear = repeated(linear, members // settings.folds, axis=0)
    logits: Tensor = array.transpose(deep + linear, [1, 0, 2])
    return logits


def _linear(inputs: TableInputs, joined: Tensor, units: int, folds: int) -> Tensor:
    """The linear model's logits, `(folds, batch, units)`: zero at first.

    Its numbers are not clipped: only it can follow them beyond the usual.

    Args:
        joined: the network's inputs, which end with `inputs.others`. To join these with numbers
            again took as long as a hidden layer.
    """
    widths: list[Any] = [each.shape[-1] for each in (inputs.scaled, inputs.others, joined)]
    numbers, others, width = widths
    of_each_fold = [] if folds == 1 else [folds]
    with variable_scope("linear"):
        shape = [*of_each_fold, numbers + others, units]
        kernel = get_variable("kernel", shape, initializer=Zeros()).value()
    unused = np.zeros([*of_each_fold, width - others, units], np.float32)
    of_joined = joining.concat([unused, kernel[..., numbers:, :]], -2)
    logits = linalg.matmul(joined, of_joined)
    if numbers:
        logits = logits + linalg.matmul(inputs.scaled, kernel[..., :numbers, :])
    return logits if folds > 1 else array.expand_dims(logits, 0)


def dropped(net: Tensor, members: int, rate: Any) -> Tensor:
    """Dropout of `(members, batch, n)`, with 8 random bits for each value instead of 32.

    The rate is rounded to a multiple of 1 / 256, but to neither 0 nor 1: 0.15 is 38 / 256, 0.148.
    Of a step of 8 members, the random bits took 2.5 ms, and take 0.7.
    """
    rows, width = array.shape(net)[1], net.shape[2]
    of_256 = elementwise.clip_by_value(elementwise.round(256.0 * rate), 1.0, 255.0)
    words = random.random_bits([-(-members // _BYTES), 1, rows, width])
    shifts = constant(np.arange(0, 32, 8, dtype=np.uint32).reshape(1, _BYTES, 1, 1))
    drawn = special.bitwise_and(special.right_shift(words, shifts), np.uint32(255))
    drawn = array.reshape(drawn, [-1, rows, width])[:members]
    kept = elementwise.cast(drawn >= elementwise.cast(of_256, uint32), net.dtype)
    result: Tensor = net * kept * (256.0 / (256.0 - of_256))
    result.set_shape(net.shape)
    return result


def _embedded(inputs: TableInputs, settings: NetworkSettings) -> Tensor:
    if not inputs.clipped.shape[-1]:
        return inputs.others
    embedding = PeriodicEmbedding(sigma=settings.sigma, members_first=True, name="embedding")
    return joining.concat([embedding(inputs.clipped), inputs.others], -1)
