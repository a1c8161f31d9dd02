"""RNN decoders with attention over lists of inputs (`contrib.legacy_seq2seq`).

Attention as in Vinyals et al. 2015, "Grammar as a Foreign Language".
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from estimatorkit.compat.layers.recurrent.rnn_cell import OutputProjectionWrapper, RNNCell
from estimatorkit.compat.layers.recurrent.rnn_linear import linear_of
from estimatorkit.compat.layers.seq2seq.legacy_decoders import (
    GreedyFeedback,
    LoopFunction,
    either,
    embedded,
    encode_symbols,
    run_decoder,
)
from estimatorkit.core import nest
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import float32
from estimatorkit.core.errors import value_error
from estimatorkit.core.tensor import Tensor
from estimatorkit.lazy import listing
from estimatorkit.ops.array import array, filling, joining
from estimatorkit.ops.math import elementwise, linalg, reduce
from estimatorkit.ops.nn import nn
from estimatorkit.ops.variables.variable_scope import (
    get_variable,
    get_variable_scope,
    variable_scope,
)


class _Heads:
    """Attention heads over states `(batch, length, size)`, in the current variable scope.

    A head's weights are softmax(v . tanh(W states + U query + b)); it reads the weighted sum.
    """

    def __init__(self, states: Tensor, heads: int, dtype: Any) -> None:
        self._states = states
        self._dtype = dtype
        self._size = size = states.shape[2] or 0
        self._features, self._vectors = [], []
        flat = array.reshape(states, [-1, size])
        for number in range(heads):
            kernel = get_variable(f"AttnW_{number}", [1, 1, size, size], dtype=dtype)
            product = linalg.matmul(flat, array.reshape(kernel, [size, size]))
            self._features.append(array.reshape(product, array.shape(states)))
            self._vectors.append(get_variable(f"AttnV_{number}", [size], dtype=dtype))

    def nothing(self, batch: Any) -> list[Tensor]:
        """The initial attention: zeros."""
        zeros = [
            filling.zeros(joining.stack([batch, self._size]), self._dtype) for _ in self._vectors
        ]
        for each in zeros:
            each.set_shape([None, self._size])
        return zeros

    def read(self, query: Any) -> list[Tensor]:
        """Each head's attention for a state, `(batch, size)`."""
        parts = nest.flatten(query)
        if any(part.shape.rank not in (2, None) for part in parts):
            raise value_error(
                "attention_decoder: the parts of a cell's state must be matrices",
                received=[part.shape for part in parts],
            )
        joined = parts[0] if len(parts) == 1 else joining.concat(parts, 1)
        found = []
        for number, (features, vector) in enumerate(
            zip(self._features, self._vectors, strict=True)
        ):
            with variable_scope(f"Attention_{number}"):
                projected = elementwise.cast(linear_of(joined, self._size, True), self._dtype)
            hidden = elementwise.tanh(features + array.expand_dims(projected, 1))
            scores = reduce.reduce_sum(vector * hidden, 2)
            weights = nn.softmax(elementwise.cast(scores, float32))
            weights = array.expand_dims(elementwise.cast(weights, self._dtype), 2)
            read = reduce.reduce_sum(weights * self._states, 1)
            found.append(array.reshape(read, [-1, self._size]))
        return found


def attention_decoder(
    decoder_inputs: Sequence[Any],
    initial_state: Any,
    attention_states: Any,
    cell: RNNCell,
    output_size: int | None = None,
    num_heads: int = 1,
    loop_function: LoopFunction | None = None,
    dtype: Any = None,
    scope: Any = None,
    initial_state_attention: bool = False,
) -> tuple[list[Any], Any]:
    """A decoder that attends to `attention_states` at each step.

    A step runs the cell on a linear map of its input and the last attention, attends with the new
    state as the query, and returns a linear map of the cell's output and the attention.

    Args:
        decoder_inputs: a list of tensors `(batch, input size)`.
        initial_state: the cell's state before the first step.
        attention_states: `(batch, length, size)`; the size must be known.
        cell: the cell.
        output_size: the size of the outputs; that of the cell's by default.
        num_heads: how many vectors are read at each step.
        loop_function: see `legacy_decoders.rnn_decoder`.
        dtype: of the variables; the scope's by default.
        scope: the variable scope; 'attention_decoder' by default.
        initial_state_attention: whether to read with the initial state before the first step;
            zeros are the initial attention by default.

    Returns:
        The list of outputs `(batch, output_size)`, and the cell's last state.

    Raises:
        ValueError: there are no inputs or heads, or a size is not known.
    """
    if not decoder_inputs:
        raise ValueError("Must provide at least 1 input to attention decoder.")
    if num_heads < 1:
        raise ValueError("With less than 1 heads, use a non-attention decoder.")
    memory = convert_to_tensor(attention_states)
    if memory.shape.rank is None or memory.shape[2] is None:
        raise value_error(
            f"Shape[2] of attention_states must be known: {memory.shape}",
            received=memory,
            made_at=memory.op.source,
        )
    with variable_scope(scope or "attention_decoder", dtype=dtype) as inner:
        dtype = inner.dtype
        heads = _Heads(memory, num_heads, dtype)
        state = nest.map_structure(convert_to_tensor, initial_state)
        before = heads.nothing(array.shape(convert_to_tensor(decoder_inputs[0]))[0])
        if initial_state_attention:
            before = heads.read(state)

        def step(value: Any, carried: Any) -> tuple[Any, Any]:
            state, read = carried
            size = _input_size(value)
            inputs = [elementwise.cast(each, dtype) for each in (value, *read)]
            output, state = cell(linear_of(inputs, size, True), state)
            shared = True if initial_state_attention else None
            with variable_scope(get_variable_scope(), reuse=shared):
                read = heads.read(state)
            with variable_scope("AttnOutputProjection"):
                inputs = [elementwise.cast(output, dtype), *read]
                return linear_of(inputs, output_size or cell.output_size, True), (state, read)

        outputs, (state, _) = run_decoder(
            step, decoder_inputs, (state, before), loop_function, cell
        )
    return outputs, state


def _input_size(value: Tensor) -> int:
    size = value.shape.with_rank(2)[1]
    if size is None:
        raise value_error(
            f"Could not infer input size from input: {value.name}",
            received=value,
            made_at=value.op.source,
        )
    return size


def embedding_attention_decoder(
    decoder_inputs: Sequence[Any],
    initial_state: Any,
    attention_states: Any,
    cell: RNNCell,
    num_symbols: int,
    embedding_size: int,
    num_heads: int = 1,
    output_size: int | None = None,
    output_projection: Any = None,
    feed_previous: bool = False,
    update_embedding_for_previous: bool = True,
    dtype: Any = None,
    scope: Any = None,
    initial_state_attention: bool = False,
) -> tuple[list[Any], Any]:
    """`attention_decoder` of symbols, which may feed its own predictions back.

    Args:
        decoder_inputs: a list of int ids `(batch,)`.
        initial_state, attention_states, cell, num_heads, output_size, dtype,
            initial_state_attention: see `attention_decoder`.
        num_symbols, embedding_size, output_projection, feed_previous,
            update_embedding_for_previous: see `legacy_decoders.embedding_rnn_decoder`.
        scope: the variable scope; 'embedding_attention_decoder' by default.

    Returns:
        The list of outputs, and the cell's last state.

    Raises:
        ValueError: `output_projection` has other shapes; see also `attention_decoder`.
    """
    if output_projection is not None:
        biases = convert_to_tensor(output_projection[1], dtype)
        biases.shape.assert_is_compatible_with([num_symbols])
    with variable_scope(scope or "embedding_attention_decoder", dtype=dtype):
        table = get_variable("embedding", [num_symbols, embedding_size])
        feedback = None
        if feed_previous:
            feedback = GreedyFeedback(table, output_projection, update_embedding_for_previous)
        return attention_decoder(
            embedded(table, decoder_inputs),
            initial_state,
            attention_states,
            cell,
            output_size,
            num_heads,
            feedback,
            initial_state_attention=initial_state_attention,
        )


def embedding_attention_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    cell: RNNCell,
    num_encoder_symbols: int,
    num_decoder_symbols: int,
    embedding_size: int,
    num_heads: int = 1,
    output_projection: Any = None,
    feed_previous: Any = False,
    dtype: Any = None,
    scope: Any = None,
    initial_state_attention: bool = False,
) -> tuple[list[Any], Any]:
    """An encoder, and a decoder that reads the encoder's outputs; both of symbols.

    Args:
        encoder_inputs, decoder_inputs: lists of int ids `(batch,)`.
        cell: the cell; the encoder runs a copy of it.
        num_encoder_symbols, num_decoder_symbols: the numbers of ids.
        embedding_size: the size of a symbol's vector.
        num_heads, initial_state_attention: see `attention_decoder`.
        output_projection, feed_previous, dtype: see `legacy_decoders.embedding_rnn_seq2seq`.
        scope: the variable scope; 'embedding_attention_seq2seq' by default.

    Returns:
        The list of outputs, and the decoder's last state.
    """
    with variable_scope(scope or "embedding_attention_seq2seq", dtype=dtype) as inner:
        outputs, state = encode_symbols(
            copy.deepcopy(cell), encoder_inputs, num_encoder_symbols, embedding_size, inner.dtype
        )
        states = joining.concat(
            [array.reshape(each, [-1, 1, cell.output_size]) for each in outputs], 1
        )
        output_size = None
        if output_projection is None:
            cell = OutputProjectionWrapper(cell, num_decoder_symbols)
            output_size = num_decoder_symbols

        def decode(feeds: bool, update: bool) -> tuple[list[Any], Any]:
            return embedding_attention_decoder(
                decoder_inputs,
                state,
                states,
                cell,
                num_decoder_symbols,
                embedding_size,
                num_heads,
                output_size,
                output_projection,
                feeds,
                update,
                initial_state_attention=initial_state_attention,
            )

        return either(feed_previous, decode)


__all__ = [
    "attention_decoder",
    "embedding_attention_decoder",
    "embedding_attention_seq2seq",
]
__dir__ = listing(__name__)
