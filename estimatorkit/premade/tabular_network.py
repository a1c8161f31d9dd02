"""The network of tabular estimators: an ensemble in one computation, beside a linear model.

Numbers are embedded by cosines, categories by indicators or embeddings, and each member of the
ensemble has dense layers of its own. The parts are those of RealMLP (Holzmueller et al. 2024,
arXiv:2407.04491); the linear model keeps what is linear exact.
"""

from __future__ import annotations

from dataclasses import dataclass

from estimatorkit.core.tensor import Tensor
from estimatorkit.layers import functional as layers
from estimatorkit.layers.member_layers import MemberDense, ParametricActivation, ScalingLayer
from estimatorkit.layers.numeric_embeddings import PeriodicEmbedding
from estimatorkit.ops.array import array, joining
from estimatorkit.ops.variables.initializers import RandomNormal, Zeros
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


@dataclass(frozen=True)
class NetworkSettings:
    """The size of the network, and how it is regularized.

    Attributes:
        hidden_units: the width of each hidden layer.
        members: the networks of the ensemble.
        activation: the name of the activation, of which each unit learns the share.
        dropout: the probability of dropping an output of a hidden layer in training.
        sigma: the standard deviation of the initial frequencies of numbers.
    """

    hidden_units: tuple[int, ...]
    members: int
    activation: str
    dropout: float
    sigma: float = 0.1


def network_logits(
    inputs: TableInputs, settings: NetworkSettings, units: int, *, training: bool
) -> Tensor:
    """The logits of each member, float32 `(batch, members, units)`, the linear model's included."""
    members = settings.members
    net = ScalingLayer(members, name="scaling")(_embedded(inputs, settings))
    for number, width in enumerate(settings.hidden_units):
        name = f"hiddenlayer_{number}"
        net = MemberDense(width, members, shared=False, parametrization="ntk", name=name)(net)
        net = ParametricActivation(settings.activation, name=f"activation_{number}")(net)
        if settings.dropout:
            net = layers.dropout(net, settings.dropout, training=training)
    deep = MemberDense(
        units,
        members,
        shared=False,
        parametrization="ntk",
        kernel_initializer=RandomNormal(stddev=0.1),
        bias_initializer="zeros",
        name="logits",
    )(net)
    plain = joining.concat([inputs.scaled, inputs.others], 1)
    # Zero at first. Its numbers are not clipped: only it can follow them beyond the usual.
    linear = layers.dense(plain, units, use_bias=False, kernel_initializer=Zeros(), name="linear")
    logits: Tensor = deep + array.expand_dims(linear, 1)
    return logits


def _embedded(inputs: TableInputs, settings: NetworkSettings) -> Tensor:
    if not inputs.clipped.shape[1]:
        return inputs.others
    embedding = PeriodicEmbedding(sigma=settings.sigma, name="embedding")
    return joining.concat([embedding(inputs.clipped), inputs.others], 1)
