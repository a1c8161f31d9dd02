"""Layers of the Deep Interest Network (arXiv:1706.06978): `Dice` and `TargetAttention`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from estimatorkit.core.errors import value_error
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.basic import Activation
from estimatorkit.layers.dense_and_embedding import Dense
from estimatorkit.layers.engine.configured import ConfiguredLayer, known_dimension
from estimatorkit.layers.normalization import BatchNormalization
from estimatorkit.ops.array import array, filling, indexing, joining, rearrange
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.nn import nn


class Dice(ConfiguredLayer):
    """Data-adaptive activation (Zhou et al. 2018, arXiv:1706.06978, section 5.3).

    p * x + (1 - p) * alpha * x, where p is the sigmoid of x normalized as by `BatchNormalization`:
    with the moments of the batch in training, else with their moving averages. Inputs: floats
    `(..., n)`; outputs have the same shape. Variables: `alpha` `(n,)`, and the `moving_mean` and
    `moving_variance` of the sublayer `batch_normalization`.

    Args:
        momentum: of the moving averages.
        epsilon: added to the variance.
        alpha_initializer: an initializer or its name.
        kwargs: as for `Layer`.
    """

    def __init__(
        self,
        momentum: float = 0.99,
        epsilon: float = 1e-9,
        alpha_initializer: Any = "zeros",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.momentum = momentum
        self.epsilon = epsilon
        self.keep(alpha_initializer=alpha_initializer)
        self.supports_masking = True

    def build(self, input_shape: Any) -> None:
        """Creates alpha."""
        self.alpha = self.add_configured_weight("alpha", [known_dimension(input_shape, -1, self)])
        self._normalization = BatchNormalization(
            momentum=self.momentum,
            epsilon=self.epsilon,
            center=False,
            scale=False,
            dtype=self.dtype_policy,
            name="batch_normalization",
        )
        super().build(input_shape)

    def call(self, inputs: Tensor, training: Any = None) -> Tensor:
        """The activations.

        Args:
            inputs: floats.
            training: whether to normalize with the moments of the batch.
        """
        gate = elementwise.sigmoid(self._normalization(inputs, training=training))
        result: Tensor = inputs * (gate + (1.0 - gate) * self.alpha)
        return result


def activation_layer(activation: Any, **kwargs: Any) -> Any:
    """The layer of an activation.

    Args:
        activation: 'dice', or a function or its name.
        kwargs: as for `Layer`.
    """
    return Dice(**kwargs) if activation == "dice" else Activation(activation, **kwargs)


class TargetAttention(ConfiguredLayer):
    """Attention of a target over a sequence of behaviours (Zhou et al. 2018, arXiv:1706.06978).

    The score of a step is a network's output for [query, key, query - key, query * key], DIN's
    activation unit. The output is the sum of the keys, weighted by their scores; as in the paper,
    scores are not normalized unless `softmax` is set. Masked steps have no weight.

    Inputs: a list of query `(batch, n)`, keys `(batch, steps, n)` and optionally lengths, integers
    `(batch,)`. Outputs: `(batch, n)`. Sublayers: `hidden_<i>` and `score`, each with `kernel` and
    `bias`, and the activations `activation_<i>`.

    Args:
        hidden_units: the width of each hidden layer.
        activation: 'dice', or a function or its name.
        softmax: whether the scores of a sequence are normalized to sum to 1.
        kwargs: as for `Layer`.

    Call arguments:
        inputs: see above.
        mask: a list of the masks of the inputs, or the mask of the keys, bool `(batch, steps)`.
        training: whether this is training.
        return_attention_scores: whether to return the weights too, `(batch, steps)`.

    Raises:
        ValueError: there are not two or three inputs, or query and keys differ in width.
    """

    def __init__(
        self,
        hidden_units: Sequence[int] = (80, 40),
        activation: Any = "dice",
        softmax: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.hidden_units = tuple(hidden_units)
        self.softmax = softmax
        self.supports_masking = True
        self._is_dice = activation == "dice"
        self.keep(activation=None if self._is_dice else activation)

    def build(self, input_shape: Any) -> None:
        """Creates the network."""
        shapes = input_shape if isinstance(input_shape, (list, tuple)) else ()
        if not 2 <= len(shapes) <= 3:
            raise value_error(
                "TargetAttention must be called on a list of inputs",
                expected="[query, keys] or [query, keys, lengths]",
                received=repr(input_shape),
            )
        widths = [known_dimension(shape, -1, self) for shape in shapes[:2]]
        if len(shapes[0]) != 2 or len(shapes[1]) != 3 or widths[0] != widths[1]:
            raise value_error(
                "query and keys do not fit each other",
                expected="shapes (batch, n) and (batch, steps, n)",
                received=f"{shapes[0]} and {shapes[1]}",
                hint="let the columns of target and sequence share a table: shared_embeddings",
            )
        shared: dict[str, Any] = {"dtype": self.dtype_policy}
        self._hidden = [
            Dense(width, name=f"hidden_{at}", **shared)
            for at, width in enumerate(self.hidden_units)
        ]
        self._activations = [
            activation_layer(
                "dice" if self._is_dice else self.activation, name=f"activation_{at}", **shared
            )
            for at in range(len(self.hidden_units))
        ]
        self._score = Dense(1, name="score", **shared)
        super().build(input_shape)

    def call(
        self,
        inputs: Sequence[Tensor],
        mask: Any = None,
        training: Any = None,
        return_attention_scores: bool = False,
    ) -> Any:
        """The outputs; see the class."""
        query, keys = inputs[0], inputs[1]
        visible = mask[1] if isinstance(mask, (list, tuple)) else mask
        if len(inputs) > 2:
            within = rearrange.sequence_mask(inputs[2], array.shape(keys)[1])
            visible = within if visible is None else elementwise.logical_and(within, visible)
        weights = self._scores(query, keys, training)
        if visible is not None:
            hidden = np.float32(-1e9 if self.softmax else 0)
            weights = indexing.where(
                visible, weights, elementwise.cast(filling.fill([], hidden), weights.dtype)
            )
        if self.softmax:
            weights = nn.softmax(weights)
            if visible is not None:  # for an empty sequence, too
                weights = weights * elementwise.cast(visible, weights.dtype)
        result = reduce.reduce_sum(array.expand_dims(weights, -1) * keys, 1)
        return (result, weights) if return_attention_scores else result

    def _scores(self, query: Tensor, keys: Tensor, training: Any) -> Tensor:
        """`(batch, steps)`."""
        queries = array.expand_dims(query, 1) + filling.zeros_like(keys)
        net = joining.concat([queries, keys, queries - keys, queries * keys], -1)
        for dense, activation in zip(self._hidden, self._activations, strict=True):
            net = dense(net)
            net = activation(net, training=training) if self._is_dice else activation(net)
        return array.squeeze(self._score(net), [-1])

    def compute_mask(self, inputs: Any, mask: Any = None) -> None:
        """None: the outputs have no steps."""
        return

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        config = super().get_config()
        return config | {"activation": "dice"} if self._is_dice else config


__all__ = ["Dice", "TargetAttention", "activation_layer"]
