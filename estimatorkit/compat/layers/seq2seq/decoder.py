"""`Decoder`, `BasicDecoder`, and `dynamic_decode`, which runs a decoder to completion."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple

from estimatorkit.compat.layers.recurrent.rnn_cell import assert_like_cell, zeros_of
from estimatorkit.compat.layers.seq2seq.helper import Helper
from estimatorkit.core import nest
from estimatorkit.core.composite import is_composite
from estimatorkit.core.conversion import constant, convert_to_tensor
from estimatorkit.core.dtypes import int32
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import name_scope
from estimatorkit.core.registry import constant_value
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.engine.base import Layer
from estimatorkit.lazy import listing
from estimatorkit.ops.array import array, filling, indexing
from estimatorkit.ops.control.control_flow import while_loop
from estimatorkit.ops.control.decoded_steps import first_steps, transposed
from estimatorkit.ops.control.higher_order import scan_op
from estimatorkit.ops.control.tensor_array import TensorArray
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.variables.variable_scope import variable_scope

_BLOCK = 64
"""Steps per compiled loop if there is no bound: output arrays grow by this many."""


class Decoder:
    """Interface of decoders run by `dynamic_decode`.

    Subclasses define the properties `batch_size`, `output_size` (a size or shape without the batch
    dimension, or a structure of them) and `output_dtype`, and the methods `initialize` and `step`.
    """

    _finalizes_unused_steps = False
    """Whether `finalize` tolerates steps beyond the last one executed."""

    @property
    def batch_size(self) -> Any:
        """The batch size, an int or an int32 scalar."""
        raise NotImplementedError

    @property
    def output_size(self) -> Any:
        """The output sizes, without the batch dimension."""
        raise NotImplementedError

    @property
    def output_dtype(self) -> Any:
        """The output dtypes, in the structure of `output_size`."""
        raise NotImplementedError

    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        """Returns the initial finished flags (bool `(batch,)`), inputs and state."""
        raise NotImplementedError

    def step(
        self, time: Any, inputs: Any, state: Any, name: str | None = None
    ) -> tuple[Any, Any, Any, Any]:
        """Runs one step.

        Args:
            time: the step number, int32 scalar.
            inputs, state: as returned by `initialize` or the previous step.
            name: the name scope.

        Returns:
            The outputs, next state, next inputs, and finished flags.
        """
        raise NotImplementedError

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> tuple[Any, Any]:
        """Postprocesses outputs `(steps, batch, ...)` and the state; optional."""
        raise NotImplementedError

    @property
    def tracks_own_finished(self) -> bool:
        """Whether `step` returns cumulative finished flags, e.g. because it reorders sequences."""
        return False

    def _steps(self) -> Any:
        """The number of steps if it is known before the loop, else None."""
        return None


class BasicDecoderOutput(NamedTuple):
    """The outputs of a `BasicDecoder`.

    Attributes:
        rnn_output: the output of the cell, or of the output layer.
        sample_id: the helper's sample.
    """

    rnn_output: Any
    sample_id: Any


class BasicDecoder(Decoder):
    """A decoder that runs a cell on inputs chosen by a helper.

    Args:
        cell: the RNN cell.
        helper: a `Helper`.
        initial_state: the cell's initial state.
        output_layer: a layer applied to the cell's outputs before sampling; none by default.

    Raises:
        TypeError: an argument has the wrong type.
    """

    def __init__(
        self, cell: Any, helper: Helper, initial_state: Any, output_layer: Any = None
    ) -> None:
        assert_like_cell(cell)
        if not isinstance(helper, Helper):
            raise TypeError(f"helper must be a Helper, received: {type(helper)}")
        check_output_layer(output_layer)
        self._cell = cell
        self._helper = helper
        self._initial_state = initial_state
        self._output_layer = output_layer

    @property
    def batch_size(self) -> Any:
        """The helper's batch size."""
        return self._helper.batch_size

    @property
    def output_size(self) -> BasicDecoderOutput:
        """The sizes of the outputs and of the sampled ids."""
        size = layered_size(self._cell.output_size, self._output_layer)
        return BasicDecoderOutput(size, self._helper.sample_ids_shape)

    @property
    def output_dtype(self) -> BasicDecoderOutput:
        """The state's dtype for outputs, and the helper's for ids."""
        dtype = convert_to_tensor(nest.flatten(self._initial_state)[0]).dtype
        sizes = self.output_size.rnn_output
        outputs = nest.map_structure(lambda _: dtype, sizes)
        return BasicDecoderOutput(outputs, self._helper.sample_ids_dtype)

    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        """See `Decoder`."""
        finished, inputs = self._helper.initialize()
        return finished, inputs, self._initial_state

    def step(
        self, time: Any, inputs: Any, state: Any, name: str | None = None
    ) -> tuple[Any, Any, Any, Any]:
        """See `Decoder`."""
        with name_scope(name, "BasicDecoderStep", [time]):
            outputs, after = self._cell(inputs, state)
            if self._output_layer is not None:
                outputs = self._output_layer(outputs)
            ids = self._helper.sample(time=time, outputs=outputs, state=after)
            finished, following, after = self._helper.next_inputs(
                time=time, outputs=outputs, state=after, sample_ids=ids
            )
        return BasicDecoderOutput(outputs, ids), after, following, finished

    def _steps(self) -> Any:
        own = type(self)
        changed = own.initialize, own.step
        if changed != (BasicDecoder.initialize, BasicDecoder.step):
            return None
        return self._helper._steps()


def check_output_layer(layer: Any) -> None:
    """Raises TypeError unless `layer` is a `Layer` or None."""
    if layer is not None and not isinstance(layer, Layer):
        raise TypeError(f"output_layer must be a Layer, received: {type(layer)}")


def layered_size(size: Any, layer: Any) -> Any:
    """The size of a cell's outputs after an optional layer."""
    if layer is None:
        return size
    shapes = nest.map_structure(lambda each: TensorShape([None]).concatenate(_shape(each)), size)
    return nest.map_structure(
        lambda each: TensorShape(each)[1:], TensorShape(layer.compute_output_shape(shapes))
    )


def _shape(size: Any) -> TensorShape:
    return size if isinstance(size, TensorShape) else TensorShape([size])


def dynamic_decode(
    decoder: Any,
    output_time_major: bool = False,
    impute_finished: bool = False,
    maximum_iterations: Any = None,
    parallel_iterations: int = 32,
    swap_memory: bool = False,
    scope: Any = None,
    **kwargs: Any,
) -> tuple[Any, Any, Tensor]:
    """Runs a decoder until all sequences are finished.

    It is one compiled loop: of as many steps as a `TrainingHelper`'s longest sequence has, or at
    most `maximum_iterations`. Without a bound, a compiled loop of 64 steps is called repeatedly.

    Args:
        decoder: a `Decoder`.
        output_time_major: whether outputs are `(steps, batch, ...)` rather than
            `(batch, steps, ...)`.
        impute_finished: whether a sequence that is finished keeps its state and gives zeros.
        maximum_iterations: int32 scalar: the most steps; no limit by default.
        parallel_iterations, swap_memory: accepted for compatibility only.
        scope: the variable scope; 'decoder' by default.
        kwargs: accepted for compatibility only.

    Returns:
        The outputs, the last state, and the length of each sequence, int32 `(batch,)`.

    Raises:
        TypeError: `decoder` is not a `Decoder`.
        ValueError: `maximum_iterations` is not a scalar; `step` returns other structures.
    """
    if not isinstance(decoder, Decoder):
        raise TypeError(f"Expected decoder to be type Decoder, but saw: {type(decoder)}")
    with variable_scope(scope, "decoder"):
        limit = None
        if maximum_iterations is not None:
            limit = convert_to_tensor(maximum_iterations, int32, "maximum_iterations")
            if limit.shape.rank != 0:
                raise value_error(
                    "maximum_iterations must be a scalar",
                    received=limit,
                    made_at=limit.op.source,
                )
        loop = _Loop(decoder, impute_finished, limit)
        steps = decoder._steps()
        if steps is None:
            return loop.until_finished(output_time_major)
        if limit is not None:
            steps = elementwise.minimum(steps, limit)
        return loop.of_known_length(steps, output_time_major)


class _Carried(NamedTuple):
    """The loop variables of decoding."""

    time: Any
    state: Any
    inputs: Any
    finished: Any
    lengths: Any


class _Loop:
    """A decoding loop, of known length or until all sequences are finished."""

    def __init__(self, decoder: Decoder, impute: bool, limit: Tensor | None) -> None:
        self._decoder = decoder
        self._impute = impute
        self._limit = limit
        finished, inputs, state = decoder.initialize()
        finished = convert_to_tensor(finished)
        if limit is not None:
            finished = elementwise.logical_or(finished, elementwise.less_equal(limit, 0))
        self._start = _Carried(
            constant(0, int32),
            nest.map_structure(_as_tensor, state),
            nest.map_structure(_as_tensor, inputs),
            finished,
            filling.zeros_like(finished, int32),
        )
        self._sizes, self._dtypes = decoder.output_size, decoder.output_dtype

    # -- the two forms

    def of_known_length(self, steps: Any, time_major: bool) -> tuple[Any, Any, Tensor]:
        """Runs `steps` steps as a scan, which stacks the outputs."""
        start = self._with_fixed_arrays(steps)
        last, outputs = scan_op(
            lambda carried, _: self._step(_Carried(*carried)), tuple(start), filling.range_(steps)
        )
        for each in nest.flatten(outputs):
            # As in TensorFlow, where the number of steps is never known when the graph is built.
            each._shape = TensorShape([None]).concatenate(each.shape[1:])
        end = _Carried(*last)
        end = end._replace(state=self._of_growing(end.state, _as_growing))
        return self._finished(outputs, end, None, time_major)

    def until_finished(self, time_major: bool) -> tuple[Any, Any, Tensor]:
        """Runs until all sequences are finished, or the limit is reached."""
        nothing_to_do = type(self._decoder).finalize is Decoder.finalize
        late = nothing_to_do or self._decoder._finalizes_unused_steps
        if self._limit is None:
            end, outputs = self._in_blocks()
            late = late and not any(map(_is_growing, nest.flatten(self._start.state)))
        else:
            size = elementwise.maximum(self._limit, 1)  # XLA compiles a step that is never run
            end, outputs = self._block(self._with_fixed_arrays(size), size)
            end = end._replace(state=self._of_growing(end.state, _as_growing))
        if late:
            return self._finished(outputs, end, end.time, time_major)
        outputs = nest.map_structure(lambda each: first_steps(each, end.time), outputs)
        if self._limit is not None:
            cut = self._of_growing(end.state, lambda each: _cut(each, end.time))
            end = end._replace(state=cut)
        return self._finished(outputs, end, None, time_major)

    def _in_blocks(self) -> tuple[_Carried, Any]:
        """Runs blocks of steps until all are finished, collecting outputs in growing arrays."""
        arrays = self._arrays(0, grow=True)

        def going_on(_: Any, *carried: Any) -> Tensor:
            return _unfinished(_Carried(*carried))

        def body(arrays: Any, *carried: Any) -> tuple[Any, ...]:
            before = _Carried(*carried)
            after, flows = self._block(before, _BLOCK)
            rows = before.time + filling.range_(_BLOCK)
            arrays = nest.map_structure(lambda one, new: one.scatter(rows, new), arrays, flows)
            return (arrays, *after)

        arrays, *last = while_loop(going_on, body, (arrays, *self._start))
        return _Carried(*last), nest.map_structure(lambda each: each.flow, arrays)

    def _block(self, start: _Carried, size: Any) -> tuple[_Carried, Any]:
        """Runs at most `size` steps; the outputs are `(size, batch, ...)`."""
        arrays = self._arrays(size, grow=False)
        end = start.time + size

        def going_on(_: Any, *carried: Any) -> Tensor:
            now = _Carried(*carried)
            return elementwise.logical_and(_unfinished(now), elementwise.less(now.time, end))

        def body(arrays: Any, *carried: Any) -> tuple[Any, ...]:
            now = _Carried(*carried)
            after, outputs = self._step(now)
            place = now.time - start.time
            arrays = nest.map_structure(lambda one, value: one.write(place, value), arrays, outputs)
            return (arrays, *after)

        arrays, *last = while_loop(going_on, body, (arrays, *start))
        return _Carried(*last), nest.map_structure(lambda each: each.flow, arrays)

    # -- a step

    def _step(self, now: _Carried) -> tuple[_Carried, Any]:
        """Runs one step; returns the next loop variables and the outputs."""
        decoder = self._decoder
        outputs, state, inputs, finished = decoder.step(now.time, now.inputs, now.state)
        nest.assert_same_structure(now.state, state)
        nest.assert_same_structure(self._sizes, outputs)
        nest.assert_same_structure(now.inputs, inputs)
        if not decoder.tracks_own_finished:
            finished = elementwise.logical_or(finished, now.finished)
        later = filling.fill(array.shape(now.lengths), now.time + 1)
        lengths = indexing.where(now.finished, now.lengths, later)
        outputs = nest.map_structure(convert_to_tensor, outputs)
        if self._impute:
            zeros = nest.map_structure(
                lambda size, dtype: zeros_of(size, decoder.batch_size, dtype),
                self._sizes,
                self._dtypes,
            )
            outputs = nest.map_structure(
                lambda value, zero: indexing.where(now.finished, zero, value), outputs, zeros
            )
            state = nest.map_structure(
                lambda new, old: _kept(now.finished, new, old), state, now.state
            )
        inputs = nest.map_structure(_like, inputs, now.inputs)
        state = nest.map_structure(_like, state, now.state)
        return _Carried(
            now.time + 1, state, inputs, _like(finished, now.finished), lengths
        ), outputs

    # -- arrays

    def _arrays(self, size: Any, grow: bool) -> Any:
        batch = constant_value(convert_to_tensor(self._decoder.batch_size))

        def made(shape: Any, dtype: Any) -> TensorArray:
            known = None
            if isinstance(shape, TensorShape) and shape.rank:
                known = TensorShape([None if batch is None else int(batch)]).concatenate(shape)
            return TensorArray(dtype, size, dynamic_size=grow, element_shape=known)

        return nest.map_structure(made, self._sizes, self._dtypes)

    def _with_fixed_arrays(self, size: Any) -> _Carried:
        """The initial loop variables, with growing arrays preallocated for XLA."""

        def fixed(leaf: Any) -> Any:
            if not _is_growing(leaf):
                return leaf
            return TensorArray(leaf.dtype, size, element_shape=leaf.element_shape)

        return self._start._replace(state=nest.map_structure(fixed, self._start.state))

    def _of_growing(self, state: Any, function: Callable[[Any], Any]) -> Any:
        """The state, with a function applied to leaves that began as growing arrays."""
        return nest.map_structure(
            lambda given, leaf: function(leaf) if _is_growing(given) else leaf,
            self._start.state,
            state,
        )

    # -- the end

    def _finished(
        self, outputs: Any, end: _Carried, count: Any, time_major: bool
    ) -> tuple[Any, Any, Tensor]:
        """Finalizes the results and, if `count` is given, drops unused steps.

        They are dropped after `finalize`, so that XLA compiles it once for all lengths.
        """
        state = end.state
        with contextlib.suppress(NotImplementedError):
            outputs, state = self._decoder.finalize(outputs, state, end.lengths)
        if count is not None:
            state = self._of_growing(state, lambda each: _cut(each, count))
            outputs = nest.map_structure(
                lambda each: first_steps(each, count, not time_major), outputs
            )
        elif not time_major:
            outputs = nest.map_structure(transposed, outputs)
        return outputs, state, end.lengths


def _unfinished(now: _Carried) -> Tensor:
    return elementwise.logical_not(reduce.reduce_all(now.finished))


def _as_tensor(value: Any) -> Any:
    return value if is_composite(value) else convert_to_tensor(value)


def _is_growing(leaf: Any) -> bool:
    """Whether a leaf is a dynamically sized tensor array."""
    return (
        isinstance(leaf, TensorArray)
        and leaf.dynamic_size
        and leaf.flow.op.type == "TensorArray"
        and constant_value(leaf.flow.op.inputs[0]) == 0
    )


def _as_growing(leaf: TensorArray) -> TensorArray:
    return _with_flow(leaf, leaf.flow)


def _cut(leaf: Any, count: Any) -> Any:
    """Drops the steps that did not run from an array, or from `finalize`'s result for it."""
    if isinstance(leaf, TensorArray):
        return _with_flow(leaf, first_steps(leaf.flow, count))
    return first_steps(leaf, count)


def _with_flow(array_: TensorArray, flow: Tensor) -> TensorArray:
    shape = array_.element_shape
    return TensorArray(array_.dtype, dynamic_size=True, flow=flow, element_shape=shape)


def _like(new: Any, old: Any) -> Any:
    """Returns `new` with the static shape of `old`."""
    if isinstance(new, TensorArray):
        return new
    tensor = convert_to_tensor(new)
    tensor.set_shape(old.shape)
    return tensor


def _kept(finished: Tensor, new: Any, old: Any) -> Any:
    """Selects `old` for finished sequences; passes arrays and scalars through."""
    if isinstance(old, TensorArray) or old.shape.rank == 0:
        return new
    return indexing.where(finished, old, _like(new, old))


__all__ = ["BasicDecoder", "BasicDecoderOutput", "Decoder", "dynamic_decode"]
__dir__ = listing(__name__)
