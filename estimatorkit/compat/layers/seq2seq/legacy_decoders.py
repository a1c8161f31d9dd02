"""RNN decoders over lists of inputs (`contrib.legacy_seq2seq`), without attention.

Identical steps run in one loop (see `run_decoder`), so compile time does not grow with their
number.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from estimatorkit.compat.layers.recurrent.rnn import are_alike, is_same_each_step, static_rnn
from estimatorkit.compat.layers.recurrent.rnn_cell import (
    EmbeddingWrapper,
    OutputProjectionWrapper,
    RNNCell,
)
from estimatorkit.core import nest
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import float32, int32
from estimatorkit.core.tensor import Tensor
from estimatorkit.lazy import listing
from estimatorkit.ops.array import array, joining
from estimatorkit.ops.control.control_flow import cond
from estimatorkit.ops.control.higher_order import scan_op
from estimatorkit.ops.math import reduce
from estimatorkit.ops.nn.activations import xw_plus_b
from estimatorkit.ops.nn.embedding import embedding_lookup
from estimatorkit.ops.variables.variable_scope import (
    get_variable,
    get_variable_scope,
    variable_scope,
)

LoopFunction = Callable[[Any, Any], Any]


class GreedyFeedback:
    """A loop function: the embedding of the most likely symbol of the previous output.

    Args:
        embedding: the table, `(symbols, size)`.
        output_projection: None, or weights and biases that turn outputs into logits.
        update_embedding: whether gradients flow into the table from here.
    """

    def __init__(
        self, embedding: Any, output_projection: Any = None, update_embedding: bool = True
    ) -> None:
        self._embedding = embedding
        self._projection = output_projection
        self._update = update_embedding

    def __call__(self, previous: Any, step: Any) -> Tensor:
        """The next input; `step` is ignored."""
        if self._projection is not None:
            previous = xw_plus_b(previous, self._projection[0], self._projection[1])
        found = embedding_lookup(self._embedding, reduce.argmax(previous, 1, output_type=int32))
        return found if self._update else array.stop_gradient(found)


def rnn_decoder(
    decoder_inputs: Iterable[Any],
    initial_state: Any,
    cell: RNNCell,
    loop_function: LoopFunction | None = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """Runs a cell over a list of inputs, or over a function of its outputs.

    Args:
        decoder_inputs: tensors `(batch, input size)`.
        initial_state: the cell's state before the first step.
        cell: the cell.
        loop_function: `loop_function(previous output, step)` gives the input of every step but the
            first; `decoder_inputs` are used unchanged by default.
        scope: the variable scope; 'rnn_decoder' by default.

    Returns:
        The list of outputs, and the last state.
    """
    with variable_scope(scope or "rnn_decoder"):
        return run_decoder(cell, decoder_inputs, initial_state, loop_function, cell)


def run_decoder(
    step: Callable[[Any, Any], tuple[Any, Any]],
    inputs: Iterable[Any],
    state: Any,
    loop_function: LoopFunction | None,
    cell: RNNCell,
) -> tuple[list[Any], Any]:
    """Runs a step over inputs, as one loop if all steps are identical.

    They are if `cell` belongs to this package, the inputs share a shape, and `loop_function` is
    None or a `GreedyFeedback`; otherwise the steps are unrolled. `step(input, state)`, which calls
    `cell`, returns an output and the next state. Returns the list of outputs, and the last state.
    """
    values = [nest.map_structure(convert_to_tensor, each) for each in inputs]
    known = loop_function is None or isinstance(loop_function, GreedyFeedback)
    if known and is_same_each_step(cell) and are_alike(values):
        return _in_one_loop(step, values, state, loop_function)
    outputs: list[Any] = []
    for number, value in enumerate(values):
        if number and loop_function is not None:
            value = _fed_back(loop_function, outputs[-1], number)
        if number:
            get_variable_scope().reuse_variables()
        output, state = step(value, state)
        outputs.append(output)
    return outputs, state


def _in_one_loop(
    step: Callable[[Any, Any], tuple[Any, Any]],
    values: Sequence[Any],
    state: Any,
    loop_function: LoopFunction | None,
) -> tuple[list[Any], Any]:
    state = nest.map_structure(convert_to_tensor, state)
    if loop_function is None:
        columns = nest.map_structure(lambda *each: joining.stack(each), *values)

        def given(carry: Any, value: Any) -> tuple[Any, Any]:
            output, after = step(value, carry)
            return after, output

        state, stacked = scan_op(given, state, columns)
    else:

        def fed_back(carry: Any, _: Any) -> tuple[Any, Any]:
            value, before = carry
            output, after = step(value, before)
            following = _fed_back(loop_function, output, None)
            following.set_shape(value.shape)
            return (following, after), output

        (_, state), stacked = scan_op(fed_back, (values[0], state), (), len(values))
    rows = [joining.unstack(each, len(values)) for each in nest.flatten(stacked)]
    outputs = [nest.pack_sequence_as(stacked, each) for each in zip(*rows, strict=True)]
    get_variable_scope().reuse_variables()
    return outputs, state


def _fed_back(loop_function: LoopFunction, previous: Any, step: int | None) -> Any:
    with variable_scope("loop_function", reuse=True):
        return loop_function(previous, step)


def basic_rnn_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    cell: RNNCell,
    dtype: Any = float32,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """An encoder and a decoder with cells of one kind that share no variables.

    Args:
        encoder_inputs, decoder_inputs: lists of tensors `(batch, input size)`.
        cell: the cell; the encoder runs a copy of it.
        dtype: of the encoder's initial state.
        scope: the variable scope; 'basic_rnn_seq2seq' by default.

    Returns:
        The list of the decoder's outputs, and its last state.
    """
    with variable_scope(scope or "basic_rnn_seq2seq"):
        _, state = static_rnn(copy.deepcopy(cell), encoder_inputs, dtype=dtype)
        return rnn_decoder(decoder_inputs, state, cell)


def tied_rnn_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    cell: RNNCell,
    loop_function: LoopFunction | None = None,
    dtype: Any = float32,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """An encoder and a decoder with the same variables.

    Args:
        encoder_inputs, decoder_inputs: lists of tensors `(batch, input size)`.
        cell: the cell of both.
        loop_function: see `rnn_decoder`.
        dtype: of the encoder's initial state.
        scope: the variable scope; 'tied_rnn_seq2seq' by default.

    Returns:
        The list of the decoder's outputs, and its last state.
    """
    with variable_scope("combined_tied_rnn_seq2seq"):
        scope = scope or "tied_rnn_seq2seq"
        _, state = static_rnn(cell, encoder_inputs, dtype=dtype, scope=scope)
        get_variable_scope().reuse_variables()
        return rnn_decoder(decoder_inputs, state, cell, loop_function, scope)


def embedding_rnn_decoder(
    decoder_inputs: Sequence[Any],
    initial_state: Any,
    cell: RNNCell,
    num_symbols: int,
    embedding_size: int,
    output_projection: Any = None,
    feed_previous: bool = False,
    update_embedding_for_previous: bool = True,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """A decoder of symbols, which may feed its own predictions back.

    Args:
        decoder_inputs: a list of int ids `(batch,)`.
        initial_state: the cell's state before the first step.
        cell: the cell.
        num_symbols: the number of ids.
        embedding_size: the size of a symbol's vector.
        output_projection: None, or a pair: weights `(output size, num_symbols)` and biases
            `(num_symbols,)` that turn outputs into logits where they are fed back.
        feed_previous: whether all inputs but the first are the most likely symbols of the outputs.
        update_embedding_for_previous: whether gradients flow into the embedding of what is fed
            back.
        scope: the variable scope; 'embedding_rnn_decoder' by default.

    Returns:
        The list of outputs, and the last state.

    Raises:
        ValueError: `output_projection` has other shapes.
    """
    with variable_scope(scope or "embedding_rnn_decoder") as inner:
        check_projection(output_projection, num_symbols, inner.dtype)
        table = get_variable("embedding", [num_symbols, embedding_size])
        feedback = None
        if feed_previous:
            feedback = GreedyFeedback(table, output_projection, update_embedding_for_previous)
        return rnn_decoder(embedded(table, decoder_inputs), initial_state, cell, feedback)


def embedding_rnn_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    cell: RNNCell,
    num_encoder_symbols: int,
    num_decoder_symbols: int,
    embedding_size: int,
    output_projection: Any = None,
    feed_previous: Any = False,
    dtype: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """An encoder and a decoder of symbols, each with its own embedding.

    Args:
        encoder_inputs, decoder_inputs: lists of int ids `(batch,)`.
        cell: the cell; the encoder runs a copy of it.
        num_encoder_symbols, num_decoder_symbols: the numbers of ids.
        embedding_size: the size of a symbol's vector.
        output_projection: see `embedding_rnn_decoder`; without it the cell's outputs are projected
            to `num_decoder_symbols`.
        feed_previous: see `embedding_rnn_decoder`; a bool scalar tensor chooses when it runs.
        dtype: of the initial states; the scope's by default.
        scope: the variable scope; 'embedding_rnn_seq2seq' by default.

    Returns:
        The list of outputs, and the decoder's last state.
    """
    with variable_scope(scope or "embedding_rnn_seq2seq") as inner:
        if dtype is not None:
            inner.set_dtype(dtype)
        _, state = encode_symbols(
            copy.deepcopy(cell), encoder_inputs, num_encoder_symbols, embedding_size, inner.dtype
        )
        if output_projection is None:
            cell = OutputProjectionWrapper(cell, num_decoder_symbols)

        def decode(feeds: bool, update: bool) -> tuple[list[Any], Any]:
            return embedding_rnn_decoder(
                decoder_inputs,
                state,
                cell,
                num_decoder_symbols,
                embedding_size,
                output_projection,
                feeds,
                update,
            )

        return either(feed_previous, decode)


def embedding_tied_rnn_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    cell: RNNCell,
    num_symbols: int,
    embedding_size: int,
    num_decoder_symbols: int | None = None,
    output_projection: Any = None,
    feed_previous: Any = False,
    dtype: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """An encoder and a decoder of symbols with the same variables and one embedding.

    Args:
        encoder_inputs, decoder_inputs: lists of int ids `(batch,)`.
        cell: the cell of both.
        num_symbols: the number of ids.
        embedding_size: the size of a symbol's vector.
        num_decoder_symbols: the number of logits; `num_symbols` by default.
        output_projection, feed_previous, dtype: see `embedding_rnn_seq2seq`.
        scope: the variable scope; 'embedding_tied_rnn_seq2seq' by default.

    Returns:
        The list of outputs, and the decoder's last state.

    Raises:
        ValueError: `output_projection` has other shapes.
    """
    with variable_scope(scope or "embedding_tied_rnn_seq2seq", dtype=dtype) as inner:
        check_projection(output_projection, num_symbols, inner.dtype)
        table = get_variable("embedding", [num_symbols, embedding_size], inner.dtype)
        encoder = embedded(table, encoder_inputs)
        decoder = embedded(table, decoder_inputs)
        if output_projection is None:
            cell = OutputProjectionWrapper(cell, num_decoder_symbols or num_symbols)

        def decode(feeds: bool, update: bool) -> tuple[list[Any], Any]:
            feedback = GreedyFeedback(table, output_projection, update) if feeds else None
            return tied_rnn_seq2seq(encoder, decoder, cell, feedback, inner.dtype)

        return either(feed_previous, decode)


def one2many_rnn_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs_dict: Mapping[Any, Sequence[Any]],
    enc_cell: RNNCell,
    dec_cells_dict: Mapping[Any, RNNCell],
    num_encoder_symbols: int,
    num_decoder_symbols_dict: Mapping[Any, int],
    embedding_size: int,
    feed_previous: Any = False,
    dtype: Any = None,
    scope: Any = None,
) -> tuple[dict[Any, list[Any]], dict[Any, Any]]:
    """One encoder and several decoders of symbols.

    Args:
        encoder_inputs: a list of int ids `(batch,)`.
        decoder_inputs_dict: by the decoder's name, its list of int ids `(batch,)`.
        enc_cell: the encoder's cell.
        dec_cells_dict: by the decoder's name, its cell.
        num_encoder_symbols: the number of ids of the encoder.
        num_decoder_symbols_dict: by the decoder's name, its number of ids.
        embedding_size: the size of a symbol's vector.
        feed_previous, dtype: see `embedding_rnn_seq2seq`.
        scope: the variable scope; 'one2many_rnn_seq2seq' by default.

    Returns:
        By the decoder's name the list of its outputs, and its last state.

    Raises:
        TypeError: a cell is not a `RNNCell`.
        ValueError: the dicts have other keys.
    """
    if not isinstance(enc_cell, RNNCell):
        raise TypeError(f"enc_cell is not an RNNCell: {type(enc_cell)}")
    if set(dec_cells_dict) != set(decoder_inputs_dict):
        raise ValueError("keys of dec_cells_dict != keys of decoder_inputs_dict")
    for cell in dec_cells_dict.values():
        if not isinstance(cell, RNNCell):
            raise TypeError(f"dec_cell is not an RNNCell: {type(cell)}")
    outputs, states = {}, {}
    with variable_scope(scope or "one2many_rnn_seq2seq", dtype=dtype) as inner:
        _, state = encode_symbols(
            enc_cell, encoder_inputs, num_encoder_symbols, embedding_size, inner.dtype
        )
        for name, decoder_inputs in decoder_inputs_dict.items():
            symbols = num_decoder_symbols_dict[name]
            with variable_scope(f"one2many_decoder_{name}"):
                projected = OutputProjectionWrapper(dec_cells_dict[name], symbols)

                def decode(
                    feeds: bool,
                    _: bool,
                    inputs: Any = decoder_inputs,
                    cell: RNNCell = projected,
                    count: int = symbols,
                ) -> tuple[list[Any], Any]:
                    return embedding_rnn_decoder(
                        inputs, state, cell, count, embedding_size, feed_previous=feeds
                    )

                outputs[name], states[name] = either(feed_previous, decode)
    return outputs, states


# -- what the models have in common


def encode_symbols(
    cell: RNNCell, inputs: Sequence[Any], symbols: int, size: int, dtype: Any
) -> tuple[list[Any], Any]:
    """`static_rnn` of an `EmbeddingWrapper`, with one lookup for all steps.

    A lookup inside the loop would add a gradient of the table's size at every step.
    """
    with variable_scope("rnn"), variable_scope("embedding_wrapper") as inner:
        table = EmbeddingWrapper(cell, symbols, size).table(dtype)
        return static_rnn(cell, embedded(table, inputs), dtype=dtype, scope=inner)


def embedded(table: Any, ids: Sequence[Any]) -> list[Tensor]:
    """Looks up each step's ids, in one lookup if they share a shape."""
    steps = [convert_to_tensor(each) for each in ids]
    if not are_alike(steps) or steps[0].shape.rank != 1:
        return [embedding_lookup(table, each) for each in steps]
    return joining.unstack(embedding_lookup(table, joining.stack(steps)), len(steps))


def check_projection(projection: Any, symbols: int, dtype: Any) -> None:
    """Raises ValueError if an output projection has incompatible shapes."""
    if projection is None:
        return
    weights, biases = (convert_to_tensor(each, dtype) for each in projection)
    weights.shape.assert_is_compatible_with([None, symbols])
    biases.shape.assert_is_compatible_with([symbols])


def either(
    feed_previous: Any, decode: Callable[[bool, bool], tuple[list[Any], Any]]
) -> tuple[list[Any], Any]:
    """Decodes with or without feedback; for a tensor, builds both and chooses at run time.

    `decode` takes whether to feed back, and whether to update the embedding of fed-back symbols.
    """
    if isinstance(feed_previous, bool):
        return decode(feed_previous, True)

    def branch(feeds: bool) -> Callable[[], Any]:
        def run() -> Any:
            with variable_scope(get_variable_scope(), reuse=None if feeds else True):
                return decode(feeds, False)

        return run

    found: tuple[list[Any], Any] = cond(feed_previous, branch(True), branch(False))
    return found


__all__ = [
    "basic_rnn_seq2seq",
    "embedding_rnn_decoder",
    "embedding_rnn_seq2seq",
    "embedding_tied_rnn_seq2seq",
    "one2many_rnn_seq2seq",
    "rnn_decoder",
    "tied_rnn_seq2seq",
]
__dir__ = listing(__name__)
