"""Activation functions and their lookup by name (`tf.keras.activations`)."""

from __future__ import annotations

from typing import Any

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import float16, float32
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.serialization import Registry
from estimatorkit.lazy import listing
from estimatorkit.ops.math import elementwise
from estimatorkit.ops.nn import nn


def linear(x: Any) -> Any:
    """Returns x unchanged."""
    return x


def relu(
    x: Any, alpha: float = 0.0, max_value: float | None = None, threshold: float = 0.0
) -> Tensor:
    """max(x, 0) by default. In general, x above `threshold`, limited to `max_value`, and
    alpha * (x - threshold) below it.
    """
    x = convert_to_tensor(x)
    if not alpha and not threshold:
        positive = nn.relu(x)
        return (
            positive
            if max_value is None
            else elementwise.minimum(positive, elementwise.cast(float(max_value), x.dtype))
        )
    above = elementwise.cast(elementwise.greater(x, elementwise.cast(threshold, x.dtype)), x.dtype)
    positive = x * above
    if max_value is not None:
        positive = elementwise.clip_by_value(positive, 0.0, float(max_value))
    if not alpha:
        return positive
    return positive - alpha * nn.relu(threshold - x)


def elu(x: Any, alpha: float = 1.0) -> Tensor:
    """x if x > 0, else alpha * (exp(x) - 1)."""
    result = nn.elu(x)
    if alpha == 1.0:
        return result
    x = convert_to_tensor(x)
    return nn.relu(x) + alpha * (result - nn.relu(x))


def selu(x: Any) -> Tensor:
    """Scaled exponential linear unit, `nn.selu` (Klambauer et al. 2017)."""
    return nn.selu(x)


def softmax(x: Any, axis: int = -1) -> Tensor:
    """`nn.softmax` along an axis.

    Raises:
        ValueError: the tensor has rank 1 or less.
    """
    x = convert_to_tensor(x)
    if x.shape.rank is not None and x.shape.rank < 2:
        raise ValueError(f"Cannot apply softmax to a tensor that is 1D. Received input: {x}")
    return nn.softmax(x, axis)


def softplus(x: Any) -> Tensor:
    """log(exp(x) + 1)."""
    return nn.softplus(x)


def softsign(x: Any) -> Tensor:
    """x / (|x| + 1)."""
    return nn.softsign(x)


def swish(x: Any) -> Any:
    """x * sigmoid(x) (Ramachandran et al. 2017)."""
    x = convert_to_tensor(x)
    return x * elementwise.sigmoid(x)


def tanh(x: Any) -> Tensor:
    """The hyperbolic tangent."""
    return elementwise.tanh(x)


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x))."""
    return elementwise.sigmoid(x)


def exponential(x: Any) -> Any:
    """exp(x)."""
    return elementwise.exp(x)


def hard_sigmoid(x: Any) -> Any:
    """0.2 * x + 0.5, clipped to [0, 1]."""
    x = convert_to_tensor(x)
    return elementwise.clip_by_value(0.2 * x + 0.5, 0.0, 1.0)


def mish(x: Any) -> Any:
    """x * tanh(softplus(x)) (Misra 2019)."""
    x = convert_to_tensor(x)
    if x.dtype is float16:  # in which n, and its square in the gradient, overflow
        return elementwise.cast(mish(elementwise.cast(x, float32)), float16)
    # With e = exp(x), the tangent is n / (n + 2) with n = e (e + 2): one exponential and no other
    # function. From x = 20 on it is 1.
    power = elementwise.exp(elementwise.minimum(x, elementwise.cast(20.0, x.dtype)))
    n = power * (power + 2.0)
    return x * (n / (n + 2.0))


def gelu(x: Any, approximate: bool = False) -> Any:
    """x * P(X <= x) for a standard normal X (Hendrycks & Gimpel 2016).

    Args:
        x: floats.
        approximate: whether to use the approximation by a hyperbolic tangent.
    """
    x = convert_to_tensor(x)
    if approximate:
        cubed = 0.044715 * elementwise.pow(x, elementwise.cast(3.0, x.dtype))
        return 0.5 * x * (1.0 + elementwise.tanh(0.7978845608028654 * (x + cubed)))
    return 0.5 * x * (1.0 + elementwise.erf(x / 1.4142135623730951))


_FUNCTIONS = (
    elu,
    exponential,
    gelu,
    hard_sigmoid,
    linear,
    mish,
    relu,
    selu,
    sigmoid,
    softmax,
    softplus,
    softsign,
    swish,
    tanh,
)
registry = Registry(
    "activation function",
    {
        **{function.__name__: function for function in _FUNCTIONS},
        "leaky_relu": nn.leaky_relu,
        "relu6": nn.relu6,
        "log_softmax": nn.log_softmax,
        "silu": swish,
    },
)
# Functions of `nn` are serialized under the names of the equivalent functions here.
_SAME = {
    nn.relu: "relu",
    nn.elu: "elu",
    nn.selu: "selu",
    nn.softmax: "softmax",
    nn.softplus: "softplus",
    nn.softsign: "softsign",
    elementwise.tanh: "tanh",
    elementwise.sigmoid: "sigmoid",
}


def get(identifier: Any) -> Any:
    """Resolves a name, config, function or layer to a function; None to `linear`."""
    return linear if identifier is None else registry.get(identifier)


def serialize(activation: Any) -> Any:
    """Returns the name of a function, or the config of a layer."""
    return _SAME.get(activation) or registry.serialize(activation)


deserialize = registry.deserialize

__all__ = [
    "deserialize",
    "elu",
    "exponential",
    "gelu",
    "get",
    "hard_sigmoid",
    "linear",
    "mish",
    "relu",
    "selu",
    "serialize",
    "sigmoid",
    "softmax",
    "softplus",
    "softsign",
    "swish",
    "tanh",
]
__dir__ = listing(__name__)
