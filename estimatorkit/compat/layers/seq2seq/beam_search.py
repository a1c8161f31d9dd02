"""`BeamSearchDecoder`: beam search as a decoder for `dynamic_decode`."""

from __future__ import annotations

from typing import Any, NamedTuple

from estimatorkit.compat.layers.recurrent.rnn_cell import assert_like_cell
from estimatorkit.compat.layers.seq2seq.beam_search_step import (
    BeamSearchDecoderOutput,
    BeamSearchDecoderState,
    attention_probabilities,
    beam_search_step,
)
from estimatorkit.compat.layers.seq2seq.decoder import Decoder, check_output_layer, layered_size
from estimatorkit.compat.layers.seq2seq.helper import embedding_function
from estimatorkit.compat.layers.seq2seq.inference_helper import start_and_end
from estimatorkit.core import nest
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import bool_, int32, int64
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import name_scope
from estimatorkit.core.registry import constant_value
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.recurrent.steps import size_of
from estimatorkit.lazy import listing
from estimatorkit.logger import logger
from estimatorkit.ops.array import array, filling, indexing, joining
from estimatorkit.ops.control.decoded_steps import gather_tree
from estimatorkit.ops.control.tensor_array import TensorArray
from estimatorkit.ops.math import reduce


class FinalBeamSearchDecoderOutput(NamedTuple):
    """The outputs of a beam search.

    Attributes:
        predicted_ids: int32 `(batch, steps, beams)`, the best beam first.
        beam_search_decoder_output: the `BeamSearchDecoderOutput` of all steps.
    """

    predicted_ids: Any
    beam_search_decoder_output: Any


def tile_batch(t: Any, multiplier: int, name: str | None = None) -> Any:
    """Each example `multiplier` times, in sequence.

    Args:
        t: a structure of tensors `(batch, ...)`.
        multiplier: how often; a `BeamSearchDecoder`'s `beam_width`.
        name: the name scope.

    Returns:
        The structure, of `(batch * multiplier, ...)`.

    Raises:
        ValueError: a tensor has no known rank, or none at all.
    """

    def tiled(value: Any) -> Tensor:
        tensor = convert_to_tensor(value, name="t")
        if not tensor.shape.rank:
            raise value_error(
                "t must have statically known rank", received=tensor, made_at=tensor.op.source
            )
        times = [1, multiplier, *([1] * (tensor.shape.rank - 1))]
        many = filling.tile(array.expand_dims(tensor, 1), times)
        sizes = array.shape(tensor)
        flat = array.reshape(
            many, joining.concat([array.reshape(sizes[0] * multiplier, [1]), sizes[1:]], 0)
        )
        batch = tensor.shape[0]
        rows = None if batch is None else batch * multiplier
        flat.set_shape(TensorShape([rows]).concatenate(tensor.shape[1:]))
        return flat

    with name_scope(name, "tile_batch", [*nest.flatten(t), multiplier]):
        return nest.map_structure(tiled, t)


def gather_tree_from_array(t: Any, parent_ids: Any, sequence_length: Any) -> Tensor:
    """Values of each step, in the order of the final beams.

    Args:
        t: `(steps, batch, beams, ...)`, or `(steps, batch * beams, ...)`.
        parent_ids: int32 `(steps, batch, beams)`.
        sequence_length: int `(batch, beams)`.

    Returns:
        A tensor of the shape of `t`.
    """
    values, parents = convert_to_tensor(t), convert_to_tensor(parent_ids, int32)
    lengths = convert_to_tensor(sequence_length)
    steps, batch, beams = (size_of(parents, axis) for axis in range(3))
    own = filling.tile(array.reshape(filling.range_(beams), [1, 1, -1]), [steps, batch, 1])
    longest = _as_int(reduce.reduce_max(lengths, axis=1))
    ordered = gather_tree(own, parents, longest, beams + 1)
    inside = filling.range_(steps)[:, None, None] < _as_int(lengths)[None]
    ordered = indexing.where(inside, ordered, own)
    flat = array.reshape(values, [steps, batch, beams, -1])
    found = indexing.gather(flat, ordered, axis=2, batch_dims=2)
    result = array.reshape(found, array.shape(values))
    result.set_shape(values.shape)
    return result


def _as_int(value: Tensor) -> Tensor:
    from estimatorkit.ops.math.elementwise import cast

    return cast(value, int32)


class BeamSearchDecoder(Decoder):
    """Follows the `beam_width` best sequences; run it by `dynamic_decode`.

    The cell's states, and the memories of its attention, are of a batch made by `tile_batch`.

    Args:
        cell: the cell.
        embedding: a function of ids, or the table for `nn.embedding_lookup`.
        start_tokens: int32 `(batch,)`.
        end_token: int32 scalar.
        initial_state: the cell's state before the first step, of batch * beam_width examples.
        beam_width: the number of sequences.
        output_layer: a layer that turns the cell's outputs into logits; none by default.
        length_penalty_weight: the power of the lengths by which scores are divided (Wu et al.
            2016); 0 does not penalize.
        coverage_penalty_weight: the weight of what attention has not covered; 0 does not penalize.
        reorder_tensor_arrays: whether `TensorArray`s of the state, such as the history of
            alignments, are put into the order of the final beams.

    Raises:
        TypeError: `cell` or `output_layer` has the wrong type.
        ValueError: `start_tokens` is not a vector, `end_token` not a scalar, or the state is of
            another batch.
    """

    _finalizes_unused_steps = True

    def __init__(
        self,
        cell: Any,
        embedding: Any,
        start_tokens: Any,
        end_token: Any,
        initial_state: Any,
        beam_width: int,
        output_layer: Any = None,
        length_penalty_weight: float = 0.0,
        coverage_penalty_weight: float = 0.0,
        reorder_tensor_arrays: bool = True,
    ) -> None:
        assert_like_cell(cell)
        check_output_layer(output_layer)
        self._cell = cell
        self._output_layer = output_layer
        self._embedding_fn = embedding_function(embedding)
        self._beam_width = beam_width
        self._length_penalty_weight = length_penalty_weight
        self._coverage_penalty_weight = coverage_penalty_weight
        self._reorder_tensor_arrays = reorder_tensor_arrays
        start, self._end_token = start_and_end(start_tokens, end_token)
        self._batch_size = array.size(start)
        self._initial_cell_state = self._split_all(initial_state)
        self._start_tokens = filling.tile(array.expand_dims(start, 1), [1, beam_width])
        self._start_inputs = convert_to_tensor(self._embedding_fn(self._start_tokens))
        # Initially all beams are equal: only one of them counts.
        first = filling.zeros([self._batch_size], int32)
        self._finished = indexing.one_hot(first, beam_width, False, True, dtype=bool_)

    @property
    def batch_size(self) -> Tensor:
        """The number of start tokens."""
        return self._batch_size

    @property
    def tracks_own_finished(self) -> bool:
        """True: beams are reordered at each step."""
        return True

    @property
    def output_size(self) -> BeamSearchDecoderOutput:
        """`(beams,)` for each output."""
        shape = TensorShape([self._beam_width])
        return BeamSearchDecoderOutput(shape, shape, shape)

    @property
    def output_dtype(self) -> BeamSearchDecoderOutput:
        """The state's dtype for scores, int32 for ids."""
        sizes = layered_size(self._cell.output_size, self._output_layer)
        return BeamSearchDecoderOutput(
            nest.map_structure(lambda _: self._dtype, sizes), int32, int32
        )

    @property
    def _dtype(self) -> Any:
        return nest.flatten(self._initial_cell_state)[0].dtype

    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        """See `Decoder`."""
        first = filling.zeros([self._batch_size], int32)
        impossible = convert_to_tensor(float("-inf"), self._dtype)
        log_probs = indexing.one_hot(
            first,
            self._beam_width,
            convert_to_tensor(0.0, self._dtype),
            impossible,
            dtype=self._dtype,
        )
        attended = attention_probabilities(self._initial_cell_state, self._coverage_penalty_weight)
        state = BeamSearchDecoderState(
            cell_state=self._initial_cell_state,
            log_probs=log_probs,
            finished=self._finished,
            lengths=filling.zeros([self._batch_size, self._beam_width], int64),
            accumulated_attention_probs=() if attended is None else attended,
        )
        return self._finished, self._start_inputs, state

    def step(
        self, time: Any, inputs: Any, state: Any, name: str | None = None
    ) -> tuple[Any, Any, Any, Any]:
        """See `Decoder`."""
        with name_scope(name, "BeamSearchDecoderStep", [time]):
            merged = nest.map_structure(lambda each: self._merge(each, each.shape[2:]), inputs)
            outputs, after = self._cell(merged, self._merge_all(state.cell_state))
            outputs = nest.map_structure(lambda each: self._split(each, each.shape[1:]), outputs)
            if self._output_layer is not None:
                outputs = self._output_layer(outputs)
            found, following = beam_search_step(
                time,
                outputs,
                self._split_all(after),
                state,
                self._batch_size,
                self._beam_width,
                self._end_token,
                self._length_penalty_weight,
                self._coverage_penalty_weight,
            )
            return found, following, self._embedding_fn(found.predicted_ids), following.finished

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> tuple[Any, Any]:
        """Backtracks the final beams; reorders the state's arrays accordingly."""
        longest = _as_int(reduce.reduce_max(final_state.lengths, axis=1))
        ids = gather_tree(outputs.predicted_ids, outputs.parent_ids, longest, self._end_token)
        if self._reorder_tensor_arrays:
            state = nest.map_structure(
                lambda each: self._in_order(each, outputs.parent_ids, final_state.lengths),
                final_state.cell_state,
            )
            final_state = final_state._replace(cell_state=state)
        return FinalBeamSearchDecoderOutput(ids, outputs), final_state

    def _in_order(self, leaf: Any, parent_ids: Any, lengths: Any) -> Any:
        if not isinstance(leaf, TensorArray):
            return leaf
        shape, batch = leaf.element_shape, constant_value(self._batch_size)
        rows = [] if not shape.dims else list(shape.dims[:2])
        # As in TensorFlow, a known second dimension must be that of the beams.
        fits = [int(batch), self._beam_width] if batch is not None else None
        split = len(rows) < 2 or rows[1] is None or rows == fits
        if not rows or (fits and rows[0] and not (rows[0] == fits[0] * fits[1] and split)):
            logger.warning(
                "The TensorArray %s in the cell state is not put into the order of the beams: its "
                "elements, %s, are not of [batch_size, beam_size, -1]. Consider "
                "reorder_tensor_arrays=False.",
                leaf.flow.name,
                shape,
            )
            return leaf
        return gather_tree_from_array(leaf.stack(), parent_ids, lengths)

    # -- between (batch * beams, ...) and (batch, beams, ...)

    def _split_all(self, state: Any) -> Any:
        return nest.map_structure(self._maybe_split, state, self._cell.state_size)

    def _merge_all(self, state: Any) -> Any:
        return nest.map_structure(
            lambda each: (
                each
                if isinstance(each, TensorArray) or _rank(each) < 2
                else self._merge(each, each.shape[2:])
            ),
            state,
        )

    def _maybe_split(self, value: Any, size: Any) -> Any:
        if isinstance(value, TensorArray):
            return value
        tensor = convert_to_tensor(value)
        return self._split(tensor, size) if _rank(tensor) else tensor

    def _merge(self, value: Tensor, rest: TensorShape) -> Tensor:
        batch = constant_value(self._batch_size)
        rows = array.reshape(self._batch_size * self._beam_width, [1])
        merged = array.reshape(value, joining.concat([rows, array.shape(value)[2:]], 0))
        known = None if batch is None else int(batch) * self._beam_width
        merged.set_shape(TensorShape([known]).concatenate(rest))
        return merged

    def _split(self, value: Tensor, size: Any) -> Tensor:
        if isinstance(size, Tensor):
            known = constant_value(size)
            size = None if known is None else int(known)
        rest = size if isinstance(size, TensorShape) else TensorShape([size])
        batch = constant_value(self._batch_size)
        rows = joining.stack([self._batch_size, self._beam_width])
        split = array.reshape(value, joining.concat([rows, array.shape(value)[1:]], 0))
        expected = TensorShape([None if batch is None else int(batch), self._beam_width])
        expected = expected.concatenate(rest)
        if not split.shape.is_compatible_with(expected):
            raise value_error(
                "Unexpected behavior when reshaping between beam width and batch size.  The "
                f"reshaped tensor has shape: {split.shape}.  We expected it to have shape "
                f"(batch_size, beam_width, depth) == {expected}.  Perhaps you forgot to create "
                "a zero_state with batch_size=encoder_batch_size * beam_width?",
                made_at=value.op.source,
            )
        split.set_shape(expected)
        return split


def _rank(value: Any) -> int:
    rank: int | None = value.shape.rank
    if rank is None:
        raise value_error(
            f"Expected tensor ({value}) to have known rank, but ndims == None.",
            made_at=value.op.source,
        )
    return rank


__all__ = [
    "BeamSearchDecoder",
    "FinalBeamSearchDecoderOutput",
    "gather_tree_from_array",
    "tile_batch",
]
__dir__ = listing(__name__)
