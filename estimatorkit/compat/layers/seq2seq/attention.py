"""Attention mechanisms: alignment of a query with the places of a memory.

A mechanism is called with a query `(batch, size)` and its state, and gives alignments
`(batch, places)` and the next state. `AttentionWrapper` reads the memory by them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from estimatorkit.core import builtin_ops, nest
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import as_dtype, float32, int32
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import control_dependencies, name_scope
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.engine.base import Layer
from estimatorkit.layers.functional import Dense
from estimatorkit.layers.recurrent.steps import size_of, zeros_of
from estimatorkit.lazy import listing
from estimatorkit.ops.array import array, filling, indexing
from estimatorkit.ops.array.rearrange import sequence_mask
from estimatorkit.ops.debug.checks import assert_positive
from estimatorkit.ops.math import elementwise, linalg, reduce
from estimatorkit.ops.nn import nn
from estimatorkit.ops.variables.initializers import Constant, Ones, Zeros
from estimatorkit.ops.variables.variable_scope import get_variable, variable_scope

ProbabilityFunction = Callable[[Any, Any], Any]


class AttentionMechanism:
    """Base class of all attention mechanisms, for subclassing."""

    @property
    def alignments_size(self) -> Any:
        """The number of places in the memory."""
        raise NotImplementedError

    @property
    def state_size(self) -> Any:
        """The size of the state."""
        raise NotImplementedError


class BaseAttentionMechanism(AttentionMechanism):
    """A mechanism with a memory and layers for its keys and queries.

    Args:
        query_layer: a layer for queries, or None.
        memory: `(batch, places, size)`, as a rule an encoder's outputs.
        probability_fn: of the scores and the state, gives alignments.
        memory_sequence_length: int `(batch,)`: how many places count; all by default. The rest of
            the memory is zero, and gets no alignment.
        memory_layer: a layer that makes keys of the memory, or None.
        check_inner_dims_defined: whether the memory's size must be known.
        score_mask_value: the score of places that do not count; -infinity by default.
        custom_key_value_fn: makes keys and values of keys and values.
        name: the name scope.

    Raises:
        TypeError: a layer is not a layer, or `probability_fn` no function.
        ValueError: the memory's size is not known.
    """

    def __init__(
        self,
        query_layer: Any,
        memory: Any,
        probability_fn: ProbabilityFunction,
        memory_sequence_length: Any = None,
        memory_layer: Any = None,
        check_inner_dims_defined: bool = True,
        score_mask_value: Any = None,
        custom_key_value_fn: Callable[[Any, Any], Any] | None = None,
        name: str | None = None,
    ) -> None:
        for what, layer in (("query_layer", query_layer), ("memory_layer", memory_layer)):
            if layer is not None and not isinstance(layer, Layer):
                raise TypeError(f"{what} is not a Layer: {type(layer).__name__}")
        if not callable(probability_fn):
            raise TypeError(
                f"probability_fn must be callable, saw type: {type(probability_fn).__name__}"
            )
        self._name = name
        self._query_layer = query_layer
        self._memory_layer = memory_layer
        self.dtype: Any = as_dtype(float32 if memory_layer is None else memory_layer.dtype)
        self._function = probability_fn
        self._mask_value = -np.inf if score_mask_value is None else score_mask_value
        with name_scope(name, "BaseAttentionMechanismInit", nest.flatten(memory)):
            self._mask: Tensor | None = None
            values = convert_to_tensor(memory, name="memory")
            if check_inner_dims_defined and not values.shape[2:].is_fully_defined():
                raise value_error(
                    f"Expected memory {values.name} to have fully defined inner dims, but saw "
                    f"shape: {values.shape}",
                    made_at=values.op.source,
                )
            if memory_sequence_length is not None:
                self._mask = _mask_of(memory_sequence_length, array.shape(values)[1])
                values = _masked(values, self._mask)
            keys = values if memory_layer is None else memory_layer(values)
            if custom_key_value_fn is not None:
                keys, values = custom_key_value_fn(keys, values)
            self._keys, self._values = keys, values
            self._batch_size = size_of(keys, 0)
            self._alignments_size = size_of(keys, 1)

    @property
    def memory_layer(self) -> Any:
        """The layer that computes keys."""
        return self._memory_layer

    @property
    def query_layer(self) -> Any:
        """The layer for queries."""
        return self._query_layer

    @property
    def values(self) -> Any:
        """The memory, zero at masked places."""
        return self._values

    @property
    def keys(self) -> Any:
        """The keys, `(batch, places, units)`."""
        return self._keys

    @property
    def batch_size(self) -> Any:
        """The memory's batch size."""
        return self._batch_size

    @property
    def alignments_size(self) -> Any:
        """The number of places."""
        return self._alignments_size

    @property
    def state_size(self) -> Any:
        """The number of places."""
        return self._alignments_size

    def initial_alignments(self, batch_size: Any, dtype: Any) -> Any:
        """The initial alignments: zeros, `(batch, places)`."""
        return zeros_of(self._alignments_size, batch_size, dtype)

    def initial_state(self, batch_size: Any, dtype: Any) -> Any:
        """The initial state: the initial alignments."""
        return self.initial_alignments(batch_size, dtype)

    def _probability_fn(self, score: Any, state: Any) -> Any:
        """The alignments of scores; places that do not count have `score_mask_value`."""
        if self._mask is not None:
            masked = filling.fill(
                array.shape(score), convert_to_tensor(self._mask_value, score.dtype)
            )
            score = indexing.where(self._mask, score, masked)
        return self._function(score, state)


def _mask_of(lengths: Any, places: Any) -> Tensor:
    """The mask of valid places, bool `(batch, places)`."""
    lengths = convert_to_tensor(lengths, name="memory_sequence_length")
    message = "All values in memory_sequence_length must be greater than zero."
    with control_dependencies([assert_positive(lengths, message=message)]):
        return sequence_mask(builtin_ops.identity(lengths), places)


def _masked(values: Tensor, mask: Tensor) -> Tensor:
    rank = values.shape.rank or 3
    factors = elementwise.cast(mask, values.dtype)
    for _ in range(rank - 2):
        factors = array.expand_dims(factors, -1)
    return values * factors


# -- scores


def luong_score(query: Any, keys: Any, scale: Any) -> Tensor:
    """query . key, `(batch, places)`; times `scale` unless that is None."""
    depth, units = query.shape[-1], keys.shape[-1]
    if depth != units:
        raise value_error(
            "Incompatible or unknown inner dimensions between query and keys.  Query "
            f"({query.name}) has units: {depth}.  Keys ({keys.name}) have units: {units}.  "
            f"Perhaps you need to set num_units to the keys' dimension ({units})?",
            made_at=query.op.source,
        )
    score = array.squeeze(linalg.matmul(array.expand_dims(query, 1), keys, transpose_b=True), [1])
    return score if scale is None else scale * score


def bahdanau_score(
    query: Any, keys: Any, vector: Any, scale: Any = None, bias: Any = None
) -> Tensor:
    """vector . tanh(key + query), `(batch, places)`; with `scale` the vector has that length."""
    hidden = keys + array.expand_dims(query, 1)
    if scale is not None:
        length = reduce.reduce_sum(elementwise.square(vector))
        vector, hidden = scale * vector * elementwise.rsqrt(length), hidden + bias
    return reduce.reduce_sum(vector * elementwise.tanh(hidden), [2])


def own_layer(units: int, name: str, dtype: Any) -> Any:
    """Creates a bias-free layer for keys or queries."""
    return Dense(units, name=name, use_bias=False, dtype=dtype or float32)


class LuongScore(BaseAttentionMechanism):
    """Scores query . key."""

    _scope = "luong_attention"

    def _score(self, query: Any) -> Tensor:
        scale = None
        if self._scale:
            scale = get_variable("attention_g", (), query.dtype, initializer=Ones())
        return luong_score(query, self._keys, scale)

    _scale: bool

    def __call__(self, query: Any, state: Any) -> tuple[Any, Any]:
        """Returns the alignments of a query, and the next state."""
        with variable_scope(None, self._scope, [query]):
            score = self._score(query)
        alignments = self._probability_fn(score, state)
        return alignments, alignments


class BahdanauScore(BaseAttentionMechanism):
    """Scores v . tanh(key + query)."""

    _scope = "bahdanau_attention"
    _num_units: int
    _normalize: bool

    def _score(self, query: Any) -> Tensor:
        projected = query if self._query_layer is None else self._query_layer(query)
        units, dtype = self._num_units, query.dtype
        vector = get_variable("attention_v", [units], dtype)
        scale = bias = None
        if self._normalize:
            start = Constant(math.sqrt(1.0 / units))
            scale = get_variable("attention_g", (), dtype, initializer=start)
            bias = get_variable("attention_b", [units], dtype, initializer=Zeros())
        score: Tensor = bahdanau_score(projected, self._keys, vector, scale, bias)
        return score

    def __call__(self, query: Any, state: Any) -> tuple[Any, Any]:
        """Returns the alignments of a query, and the next state."""
        with variable_scope(None, self._scope, [query]):
            score = self._score(query)
        alignments = self._probability_fn(score, state)
        return alignments, alignments


class LuongAttention(LuongScore):
    """Multiplicative attention (Luong et al. 2015): scores query . (memory W).

    Args:
        num_units: the size of keys; that of queries.
        memory, memory_sequence_length, score_mask_value, custom_key_value_fn, name: see
            `BaseAttentionMechanism`.
        scale: whether to multiply scores by a variable `attention_g`.
        probability_fn: of scores, gives alignments; softmax by default.
        dtype: of the layer's variables; float32 by default.
    """

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        scale: bool = False,
        probability_fn: Callable[[Any], Any] | None = None,
        score_mask_value: Any = None,
        dtype: Any = None,
        custom_key_value_fn: Any = None,
        name: str = "LuongAttention",
    ) -> None:
        function = probability_fn or nn.softmax
        super().__init__(
            None,
            memory,
            lambda score, _: function(score),
            memory_sequence_length,
            own_layer(num_units, "memory_layer", dtype),
            score_mask_value=score_mask_value,
            custom_key_value_fn=custom_key_value_fn,
            name=name,
        )
        self._num_units = num_units
        self._scale = scale


class BahdanauAttention(BahdanauScore):
    """Additive attention (Bahdanau et al. 2015): scores v . tanh(memory W + query U).

    Args:
        num_units: the size of keys and of projected queries.
        memory, memory_sequence_length, score_mask_value, custom_key_value_fn, name: see
            `BaseAttentionMechanism`.
        normalize: whether v has a separate length, `attention_g`, and a bias `attention_b` is
            added inside (weight normalization, Salimans & Kingma 2016).
        probability_fn: of scores, gives alignments; softmax by default.
        dtype: of the layers' variables; float32 by default.
    """

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        normalize: bool = False,
        probability_fn: Callable[[Any], Any] | None = None,
        score_mask_value: Any = None,
        dtype: Any = None,
        custom_key_value_fn: Any = None,
        name: str = "BahdanauAttention",
    ) -> None:
        function = probability_fn or nn.softmax
        super().__init__(
            own_layer(num_units, "query_layer", dtype),
            memory,
            lambda score, _: function(score),
            memory_sequence_length,
            own_layer(num_units, "memory_layer", dtype),
            score_mask_value=score_mask_value,
            custom_key_value_fn=custom_key_value_fn,
            name=name,
        )
        self._num_units = num_units
        self._normalize = normalize


def hardmax(logits: Any, name: str | None = None) -> Tensor:
    """One-hot argmax over the last dimension; ties go to the first."""
    with name_scope(name, "Hardmax", [logits]):
        values = convert_to_tensor(logits, name="logits")
        greatest = reduce.argmax(values, -1, output_type=int32)
        return indexing.one_hot(greatest, size_of(values, -1), dtype=values.dtype)


__all__ = [
    "AttentionMechanism",
    "BahdanauAttention",
    "BaseAttentionMechanism",
    "LuongAttention",
    "hardmax",
]
__dir__ = listing(__name__)
