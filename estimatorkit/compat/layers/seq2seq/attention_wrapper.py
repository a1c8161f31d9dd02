"""`AttentionWrapper`: a cell with attention over memories."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from estimatorkit.compat.layers.recurrent.rnn_cell import RNNCell, assert_like_cell
from estimatorkit.compat.layers.seq2seq.attention import AttentionMechanism
from estimatorkit.core import builtin_ops, nest
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import int32
from estimatorkit.core.errors import InvalidArgumentError, value_error
from estimatorkit.core.graph import control_dependencies, name_scope
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Tensor
from estimatorkit.layers.functional import Dense
from estimatorkit.layers.recurrent.steps import initial_state_of, known_size, size_of, zeros_of
from estimatorkit.lazy import listing
from estimatorkit.ops.array import array, filling, joining
from estimatorkit.ops.control.tensor_array import TensorArray
from estimatorkit.ops.debug.checks import assert_equal
from estimatorkit.ops.math import linalg


class AttentionWrapperState(NamedTuple):
    """The state of an `AttentionWrapper`.

    Where there are several mechanisms, the last four are tuples.

    Attributes:
        cell_state: the state of the inner cell.
        attention: the attention of the previous step, `(batch, size)`.
        time: the number of the step, int32 scalar.
        alignments: those of the step before, `(batch, places)`.
        alignment_history: a `TensorArray` of the alignments of all steps, or ().
        attention_state: the states of the mechanisms.
    """

    cell_state: Any
    attention: Any
    time: Any
    alignments: Any
    alignment_history: Any
    attention_state: Any

    def clone(self, **kwargs: Any) -> AttentionWrapperState:
        """A copy with other parts, whose shapes must fit those of the old ones.

        Args:
            kwargs: the new parts by name; for example the state of an encoder as `cell_state`.

        Raises:
            ValueError: the structures or shapes differ.
        """

        def checked(old: Any, new: Any) -> Any:
            if isinstance(old, Tensor) and isinstance(new, Tensor):
                return _with_same_shape(old, new)
            return new

        found: AttentionWrapperState = nest.map_structure(checked, self, self._replace(**kwargs))
        return found


def _with_same_shape(old: Tensor, new: Tensor) -> Tensor:
    """Checks that `new` has the shape of `old`, statically if possible, else at run time."""
    if not old.shape.is_compatible_with(new.shape):
        raise value_error(
            "The shape of the AttentionWrapperState is expected to be same as the one to "
            f"clone. self.shape: {old.shape}, input.shape: {new.shape}",
            made_at=new.op.source,
        )
    if old.shape.is_fully_defined() and new.shape.is_fully_defined():
        return new
    with control_dependencies([assert_equal(array.shape(old), array.shape(new))]):
        same = builtin_ops.identity(new)
    same.set_shape(old.shape)
    return same


def compute_attention(
    attention_mechanism: Any, cell_output: Any, attention_state: Any, attention_layer: Any
) -> tuple[Any, Any, Any]:
    """The attention of a mechanism for a cell's output as the query.

    Args:
        attention_mechanism: the mechanism.
        cell_output: `(batch, size)`.
        attention_state: the mechanism's state.
        attention_layer: a layer of the cell's output and the context, or None.

    Returns:
        The attention, through the layer; the alignments; the mechanism's next state.
    """
    alignments, after = attention_mechanism(cell_output, state=attention_state)
    read = linalg.matmul(array.expand_dims(alignments, 1), attention_mechanism.values)
    read = array.squeeze(read, [1])
    if attention_layer is not None:
        read = attention_layer(joining.concat([cell_output, read], 1))
    return read, alignments, after


class AttentionWrapper(RNNCell):
    """A cell whose inputs are joined with the attention of the previous step.

    Args:
        cell: the inner cell.
        attention_mechanism: an `AttentionMechanism`, or a list of them.
        attention_layer_size: the size of a dense layer of the cell's output and the context,
            or a list of sizes; no layer by default.
        alignment_history: whether to keep the alignments of all steps in the state.
        cell_input_fn: joins inputs and attention; along the last dimension by default.
        output_attention: whether to return the attention; False returns the cell's output.
        initial_cell_state: the inner cell's state in `zero_state`; zeros by default.
        name: the variable scope.
        attention_layer: a layer, or a list of layers, in place of `attention_layer_size`.
        attention_fn: see `compute_attention`, which is the default.
        dtype: accepted for compatibility only.

    Raises:
        TypeError: an argument has another type.
        ValueError: there are not as many layers as mechanisms, or both layers and sizes; batches
            have different sizes.
    """

    def __init__(
        self,
        cell: Any,
        attention_mechanism: Any,
        attention_layer_size: Any = None,
        alignment_history: bool = False,
        cell_input_fn: Callable[[Any, Any], Any] | None = None,
        output_attention: bool = True,
        initial_cell_state: Any = None,
        name: str | None = None,
        attention_layer: Any = None,
        attention_fn: Callable[..., Any] | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(name=name, dtype=dtype)
        assert_like_cell(cell)
        self._is_multi = isinstance(attention_mechanism, (list, tuple))
        self._attention_mechanisms = _as_tuple(attention_mechanism)
        for mechanism in self._attention_mechanisms:
            if not isinstance(mechanism, AttentionMechanism):
                raise TypeError(
                    "attention_mechanism must contain only instances of AttentionMechanism, saw "
                    f"type: {type(mechanism).__name__}"
                    if self._is_multi
                    else "attention_mechanism must be an AttentionMechanism or list of multiple "
                    f"AttentionMechanism instances, saw type: {type(mechanism).__name__}"
                )
        if cell_input_fn is not None and not callable(cell_input_fn):
            raise TypeError(
                f"cell_input_fn must be callable, saw type: {type(cell_input_fn).__name__}"
            )
        self._cell = cell
        self._cell_input_fn = cell_input_fn or _joined
        self._attention_fn = attention_fn or compute_attention
        self._output_attention = output_attention
        self._alignment_history = alignment_history
        self._set_layers(attention_layer_size, attention_layer)
        self._initial_cell_state = None
        if initial_cell_state is not None:
            with name_scope(name, "AttentionWrapperInit"):
                self._initial_cell_state = self._checked(
                    initial_cell_state,
                    size_of(convert_to_tensor(nest.flatten(initial_cell_state)[-1]), 0),
                    f"When constructing AttentionWrapper {self.name}: Non-matching batch sizes "
                    "between the memory (encoder output) and initial_cell_state.  Are you using "
                    "the BeamSearchDecoder?  You may need to tile your initial state via the "
                    "tf.contrib.seq2seq.tile_batch function with argument multiple=beam_width.",
                )

    def _set_layers(self, sizes: Any, layers: Any) -> None:
        mechanisms = self._attention_mechanisms
        if sizes is not None and layers is not None:
            raise ValueError("Only one of attention_layer_size and attention_layer should be set")
        self._attention_layers: tuple[Any, ...] | None = None
        widths = [mechanism.values.shape[-1] for mechanism in mechanisms]
        for what, kind, given in (
            ("attention_layer_size", "integer", sizes),
            ("attention_layer", "layer", layers),
        ):
            if given is not None and len(_as_tuple(given)) != len(mechanisms):
                raise ValueError(
                    f"If provided, {what} must contain exactly one {kind} per "
                    f"attention_mechanism, saw: {len(_as_tuple(given))} vs {len(mechanisms)}"
                )
        if sizes is not None:
            self._attention_layers = tuple(
                Dense(size, name="attention_layer", use_bias=False, dtype=mechanism.dtype)
                for size, mechanism in zip(_as_tuple(sizes), mechanisms, strict=True)
            )
            widths = list(_as_tuple(sizes))
        elif layers is not None:
            self._attention_layers = _as_tuple(layers)
            widths = [
                TensorShape(
                    layer.compute_output_shape(TensorShape([None, self._cell.output_size + width]))
                )[-1]
                for layer, width in zip(self._attention_layers, widths, strict=True)
            ]
        self._attention_layer_size = sum(widths)

    def _checked(self, structure: Any, batch: Any, message: str) -> Any:
        """Checks that a structure has the memories' batch size, statically if possible."""
        checks = []
        for mechanism in self._attention_mechanisms:
            known = [known_size(batch), known_size(mechanism.batch_size)]
            if None in known:
                checks.append(assert_equal(batch, mechanism.batch_size, message=message))
            elif known[0] != known[1]:
                raise InvalidArgumentError.explained(message, expected=known[1], received=known[0])
        if not checks:
            return nest.map_structure(convert_to_tensor, structure)
        with control_dependencies(checks):
            return nest.map_structure(lambda each: builtin_ops.identity(each), structure)

    def _item_or_tuple(self, items: Sequence[Any]) -> Any:
        return tuple(items) if self._is_multi else items[0]

    @property
    def output_size(self) -> Any:
        """The size of the attention or of the cell's output."""
        return self._attention_layer_size if self._output_attention else self._cell.output_size

    @property
    def state_size(self) -> AttentionWrapperState:
        """The sizes of the state's components."""
        mechanisms = self._attention_mechanisms
        sizes = [each.alignments_size for each in mechanisms]
        kept = sizes if self._alignment_history else [() for _ in mechanisms]
        return AttentionWrapperState(
            cell_state=self._cell.state_size,
            attention=self._attention_layer_size,
            time=TensorShape([]),
            alignments=self._item_or_tuple(sizes),
            alignment_history=self._item_or_tuple(kept),
            attention_state=self._item_or_tuple([each.state_size for each in mechanisms]),
        )

    def zero_state(self, batch_size: Any, dtype: Any) -> AttentionWrapperState:
        """The state before the first step.

        Args:
            batch_size: an int or an int32 scalar tensor; with a `BeamSearchDecoder` the batch's
                size times `beam_width`.
            dtype: of the state.
        """
        with name_scope(f"{type(self).__name__}ZeroState"):
            state = self._initial_cell_state
            if state is None:
                state = initial_state_of(self._cell, batch_size, dtype)
            state = self._checked(
                state,
                batch_size,
                f"When calling zero_state of AttentionWrapper {self.name}: Non-matching batch "
                "sizes between the memory (encoder output) and the requested batch size.  Are you "
                "using the BeamSearchDecoder?  If so, make sure your encoder output has been tiled "
                "to beam_width via tf.contrib.seq2seq.tile_batch, and the batch_size= argument "
                "passed to zero_state is batch_size * beam_width.",
            )
            mechanisms = self._attention_mechanisms
            alignments = [each.initial_alignments(batch_size, dtype) for each in mechanisms]
            history: list[Any] = [() for _ in mechanisms]
            if self._alignment_history:
                history = [
                    TensorArray(dtype, 0, dynamic_size=True, element_shape=each.shape)
                    for each in alignments
                ]
            return AttentionWrapperState(
                cell_state=state,
                attention=zeros_of(self._attention_layer_size, batch_size, dtype),
                time=filling.zeros([], int32),
                alignments=self._item_or_tuple(alignments),
                alignment_history=self._item_or_tuple(history),
                attention_state=self._item_or_tuple(
                    [each.initial_state(batch_size, dtype) for each in mechanisms]
                ),
            )

    def call(self, inputs: Any, state: Any) -> tuple[Any, AttentionWrapperState]:
        """Runs the cell, then attends with its output.

        Raises:
            TypeError: `state` is not an `AttentionWrapperState`.
        """
        if not isinstance(state, AttentionWrapperState):
            raise TypeError(
                "Expected state to be instance of AttentionWrapperState. "
                f"Received type {type(state)} instead."
            )
        output, cell_state = self._cell(
            self._cell_input_fn(inputs, state.attention), state.cell_state
        )
        batch = output.shape[0]
        if batch is not None:
            self._check_query(batch)
        many = self._is_multi
        states = state.attention_state if many else [state.attention_state]
        history = list(state.alignment_history if many else [state.alignment_history])
        read: list[Any] = []
        alignments: list[Any] = []
        after: list[Any] = []
        for number, mechanism in enumerate(self._attention_mechanisms):
            layer = self._attention_layers[number] if self._attention_layers else None
            found = self._attention_fn(mechanism, output, states[number], layer)
            if self._alignment_history:
                history[number] = history[number].write(state.time, found[1])
            for values, each in zip((read, alignments, after), found, strict=True):
                values.append(each)
        attention = read[0] if len(read) == 1 else joining.concat(read, 1)
        following = AttentionWrapperState(
            cell_state=cell_state,
            attention=attention,
            time=state.time + 1,
            alignments=self._item_or_tuple(alignments),
            alignment_history=self._item_or_tuple(history),
            attention_state=self._item_or_tuple(after),
        )
        return (attention if self._output_attention else output), following

    def _check_query(self, batch: int) -> None:
        """Compares the sizes of the batches that are known; XLA would compare the others."""
        for mechanism in self._attention_mechanisms:
            size = known_size(mechanism.batch_size)
            if size is not None and size != batch:
                raise InvalidArgumentError.explained(
                    f"When applying AttentionWrapper {self.name}: Non-matching batch sizes "
                    "between the memory (encoder output) and the query (decoder output).  Are "
                    "you using the BeamSearchDecoder?  You may need to tile your memory input "
                    "via the tf.contrib.seq2seq.tile_batch function with argument "
                    "multiple=beam_width.",
                    expected=size,
                    received=batch,
                )


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


def _joined(inputs: Any, attention: Any) -> Tensor:
    return joining.concat([inputs, attention], -1)


__all__ = ["AttentionWrapper", "AttentionWrapperState", "compute_attention"]
__dir__ = listing(__name__)
