"""Attention layers: `Attention`, `AdditiveAttention`, `MultiHeadAttention`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from estimatorkit.core.errors import value_error
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.basic import Softmax
from estimatorkit.layers.einsum_dense import EinsumDense
from estimatorkit.layers.engine.base import mask_of
from estimatorkit.layers.engine.configured import ConfiguredLayer, known_dimension
from estimatorkit.layers.noise import Dropout, in_training
from estimatorkit.ops.array import array, filling
from estimatorkit.ops.linalg.products import einsum
from estimatorkit.ops.math import elementwise, linalg, reduce
from estimatorkit.ops.nn import nn


def causal_mask(query: Tensor, value: Tensor) -> Tensor:
    """Lower-triangular mask, bool `(1, query steps, value steps)`."""
    lengths = [
        tensor.shape[1] if tensor.shape[1] is not None else array.shape(tensor)[1]
        for tensor in (query, value)
    ]
    rows, columns = (filling.range_(each) for each in lengths)
    return array.expand_dims(rows[:, None] >= columns[None, :], 0)


def _both(one: Any, other: Any) -> Any:
    if one is None or other is None:
        return other if one is None else one
    return elementwise.logical_and(one, other)


class _DotAttention(ConfiguredLayer):
    """Base class of `Attention` and `AdditiveAttention`: softmax(scores) x value, and masks."""

    def __init__(self, dropout: float = 0.0, causal: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.dropout = dropout
        self.causal = causal
        self.supports_masking = True

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        """`(batch, query steps, value steps)`."""
        raise NotImplementedError

    def call(
        self,
        inputs: Sequence[Tensor],
        mask: Any = None,
        training: Any = None,
        return_attention_scores: bool = False,
        use_causal_mask: bool = False,
    ) -> Any:
        """Returns the outputs, or with `return_attention_scores` the outputs and the weights.

        Args:
            inputs: a list of query, value and optionally key.
            mask: a list of the masks of query and value, each bool `(batch, steps)` or None.
            training: whether this is training, so that dropout applies.
            return_attention_scores: whether to return the attention weights too.
            use_causal_mask: whether to hide later values from each step of the query.

        Raises:
            ValueError: there are not two or three inputs.
        """
        self._check(inputs)
        query, value = inputs[0], inputs[1]
        key = inputs[2] if len(inputs) > 2 else value
        masks = list(mask) if mask is not None else [None, None]
        scores = self.scores(query, key)
        visible = None if masks[1] is None else array.expand_dims(masks[1], -2)
        if self.causal or use_causal_mask:
            visible = _both(visible, causal_mask(query, key))
        if visible is not None:
            most = 65504.0 if scores.dtype.name == "float16" else 1e9
            hidden = elementwise.cast(elementwise.logical_not(visible), scores.dtype)
            scores = scores - most * hidden
        weights = nn.softmax(scores)
        if self.dropout > 0:
            given = weights
            weights = in_training(training, lambda: nn.dropout(given, rate=self.dropout), given)
        result = linalg.matmul(weights, value)
        if masks[0] is not None:
            result = result * elementwise.cast(array.expand_dims(masks[0], -1), result.dtype)
        return (result, weights) if return_attention_scores else result

    def _check(self, inputs: Any) -> None:
        if not isinstance(inputs, (list, tuple)) or not 2 <= len(inputs) <= 3:
            raise value_error(
                f"{type(self).__name__} layer must be called on a list of inputs",
                expected="[query, value] or [query, value, key]",
                received=repr(inputs),
            )

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The query's mask."""
        return mask[0] if mask is not None else None


class Attention(_DotAttention):
    """Dot-product attention (Luong et al. 2015; `tf.keras.layers.Attention`).

    Called with a list of query `(batch, query steps, n)`, value `(batch, value steps, m)` and
    optionally key `(batch, value steps, n)`, which is value by default. Outputs: `(batch, query
    steps, m)`. Variables: a scalar `scale` with `use_scale`, and a scalar `concat_score_weight` if
    the scores are 'concat'.

    Args:
        use_scale: whether to multiply the scores by a variable.
        score_mode: 'dot' (query x key) or 'concat' (the sum of tanh(query + key)).
        dropout: the probability that an attention weight is dropped in training.
        causal: the default of the call argument `use_causal_mask`.
        kwargs: as for `Layer`.

    Raises:
        ValueError: `score_mode` is unknown.
    """

    def __init__(self, use_scale: bool = False, score_mode: str = "dot", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.use_scale = use_scale
        self.score_mode = score_mode
        if score_mode not in ("dot", "concat"):
            raise ValueError(
                f"Received: score_mode={score_mode}. Acceptable values are: ['dot', 'concat']"
            )

    def build(self, input_shape: Any) -> None:
        """Makes the scales."""
        self.scale: Any = 1.0
        self.concat_score_weight: Any = None
        if self.use_scale:
            self.scale = self.add_weight("scale", (), initializer="ones")
        if self.score_mode == "concat":
            self.concat_score_weight = self.add_weight(
                "concat_score_weight", (), initializer="ones"
            )
        super().build(input_shape)

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        """`(batch, query steps, value steps)`."""
        if self.score_mode == "dot":
            products = linalg.matmul(query, key, transpose_b=True)
            result: Tensor = products * self.scale if self.use_scale else products
            return result
        sums = self.scale * (array.expand_dims(query, -2) + array.expand_dims(key, -3))
        total: Tensor = self.concat_score_weight * reduce.reduce_sum(elementwise.tanh(sums), -1)
        return total


class AdditiveAttention(_DotAttention):
    """Additive attention (Bahdanau et al. 2015; `tf.keras.layers.AdditiveAttention`).

    The scores are the sum of scale * tanh(query + key). Variables: `scale` `(n,)` with `use_scale`.
    Inputs and outputs are those of `Attention`.

    Args:
        use_scale: whether to multiply by a variable; else scale is 1.
        dropout: the probability that an attention weight is dropped in training.
        causal: the default of the call argument `use_causal_mask`.
        kwargs: as for `Layer`.
    """

    def __init__(self, use_scale: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.use_scale = use_scale

    def build(self, input_shape: Any) -> None:
        """Makes the scale."""
        self._check(input_shape)
        self.scale: Any = 1.0
        if self.use_scale:
            width = known_dimension(input_shape[1], -1, self)
            self.scale = self.add_weight("scale", [width], initializer="glorot_uniform")
        super().build(input_shape)

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        """`(batch, query steps, value steps)`."""
        sums = array.expand_dims(query, -2) + array.expand_dims(key, -3)
        return reduce.reduce_sum(self.scale * elementwise.tanh(sums), -1)


_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def _projection(free: int, bound: int, outputs: int) -> tuple[str, str]:
    """Einsum equation of a projection of `bound` dimensions to `outputs`, and its bias axes."""
    kept, summed = _LETTERS[:free], _LETTERS[free : free + bound]
    made = _LETTERS[free + bound : free + bound + outputs]
    return f"{kept}{summed},{summed}{made}->{kept}{made}", made


def _attention_equations(rank: int, axes: Sequence[int]) -> tuple[str, str, int]:
    """Einsum equations of key x query and weights x value, and the weights' rank.

    Args:
        rank: of projected tensors `(batch, ..., heads, n)`.
        axes: those that attention goes along.
    """
    target = _LETTERS[:rank]
    others = iter(_LETTERS[rank:])
    source = "".join(next(others) if at in axes else target[at] for at in range(rank))
    batch = [at for at in range(rank - 1) if at not in axes]
    product = "".join(
        [*(target[at] for at in batch), *(target[at] for at in axes), *(source[at] for at in axes)]
    )
    return f"{source},{target}->{product}", f"{product},{source}->{target}", len(product)


class MultiHeadAttention(ConfiguredLayer):
    """Multi-head attention (Vaswani et al. 2017; `tf.keras.layers.MultiHeadAttention`).

    Sublayers, each with a `kernel` and a `bias`: `query`, `key` and `value`, whose kernels are
    `(n, heads, key_dim)`, and `attention_output`, `(heads, value_dim, *output_shape)`.

    Args:
        num_heads: the number of heads.
        key_dim: the length of each head's queries and keys.
        value_dim: the length of each head's values; `key_dim` by default.
        dropout: the probability that an attention weight is dropped in training.
        use_bias: whether the projections have biases.
        output_shape: the shape of the outputs after the steps; that of the query by default.
        attention_axes: the axes to attend over; all but batch and features by default.
        kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer,
            activity_regularizer, kernel_constraint, bias_constraint: of the projections; see
            `Dense`.
        kwargs: as for `Layer`.
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        value_dim: int | None = None,
        dropout: float = 0.0,
        use_bias: bool = True,
        output_shape: Any = None,
        attention_axes: Any = None,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.keep_arguments(locals(), ("output_shape", "activity_regularizer"))
        self.supports_masking = True
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.value_dim = value_dim or key_dim
        self.dropout = dropout
        self._given_output_shape = output_shape
        single = isinstance(attention_axes, int)
        self.attention_axes = (attention_axes,) if single else attention_axes
        self._part_activity_regularizer = activity_regularizer
        self._parts_made = False

    def _make_parts(self, query: Tensor, key: Tensor, value: Tensor) -> None:
        """Creates the projections, given all inputs' ranks and the query's width."""
        heads, said = self.num_heads, self._given_output_shape
        if said is None:
            said = [known_dimension(query.shape, -1, self)]
        outputs = [said] if isinstance(said, int) else list(said)
        shared = {
            name: getattr(self, name)
            for name in (
                "kernel_initializer",
                "bias_initializer",
                "kernel_regularizer",
                "bias_regularizer",
                "kernel_constraint",
                "bias_constraint",
            )
        }

        def projection(name: str, free: int, bound: int, made: list[int]) -> EinsumDense:
            equation, bias_axes = _projection(free, bound, len(made))
            return EinsumDense(
                equation,
                [*(None,) * (free - 1), *made],
                bias_axes=bias_axes if self.use_bias else None,
                name=name,
                dtype=self.dtype_policy,
                activity_regularizer=self._part_activity_regularizer,
                **shared,
            )

        self._query = projection("query", len(query.shape) - 1, 1, [heads, self.key_dim])
        self._key = projection("key", len(key.shape) - 1, 1, [heads, self.key_dim])
        self._value = projection("value", len(value.shape) - 1, 1, [heads, self.value_dim])
        self._output = projection("attention_output", len(query.shape) - 1, 2, outputs)
        rank = len(query.shape) + 1
        self._axes = tuple(self.attention_axes or range(1, rank - 2))
        self._scoring, self._combining, scores_rank = _attention_equations(rank, self._axes)
        last = range(scores_rank - len(self._axes), scores_rank)
        self._softmax = Softmax(list(last), dtype=self.dtype_policy)
        self._dropping = Dropout(self.dropout, dtype=self.dtype_policy)
        self._parts_made = True

    def call(
        self,
        query: Tensor,
        value: Tensor,
        key: Tensor | None = None,
        attention_mask: Any = None,
        return_attention_scores: bool = False,
        training: Any = None,
        use_causal_mask: bool = False,
    ) -> Any:
        """Returns the outputs, or with `return_attention_scores` the outputs and the weights.

        Args:
            query: `(batch, query steps, n)`.
            value: `(batch, value steps, m)`.
            key: `(batch, value steps, k)`; value by default.
            attention_mask: bool `(batch, query steps, value steps)`, True for the values to attend
                to; the inputs' own masks apply as well.
            return_attention_scores: whether to return the attention weights too, `(batch, heads,
                query steps, value steps)`.
            training: whether this is training.
            use_causal_mask: whether to hide later values from each step of the query.
        """
        key = value if key is None else key
        if not self._parts_made:
            self._make_parts(query, key, value)
        visible = self._visible(query, key, value, attention_mask, use_causal_mask)
        queries = self._query(query) * (1.0 / math.sqrt(float(self.key_dim)))
        keys, values = self._key(key), self._value(value)
        scores = einsum(self._scoring, keys, queries)
        if visible is not None:
            for _ in range(len(scores.shape) - len(visible.shape)):
                visible = array.expand_dims(visible, -len(self._axes) * 2 - 1)
        weights = self._softmax(scores, visible)
        dropped = self._dropping(weights, training=training)
        result = self._output(einsum(self._combining, dropped, values))
        return (result, weights) if return_attention_scores else result

    def _visible(
        self, query: Tensor, key: Tensor, value: Tensor, given: Any, is_causal: bool
    ) -> Any:
        """Combined mask of the values that each query step sees; None for all."""
        of_query, of_value, of_key = mask_of(query), mask_of(value), mask_of(key)
        visible = None if of_query is None else array.expand_dims(of_query, 2)
        for mask in (of_value, of_key if key is not value else None):
            visible = _both(visible, None if mask is None else array.expand_dims(mask, 1))
        if is_causal:
            visible = _both(visible, causal_mask(query, value))
        if visible is None or given is None:
            return given if visible is None else visible
        return _both(elementwise.cast(given, "bool"), visible)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {**super().get_config(), "output_shape": self._given_output_shape}


__all__ = ["AdditiveAttention", "Attention", "MultiHeadAttention", "causal_mask"]
