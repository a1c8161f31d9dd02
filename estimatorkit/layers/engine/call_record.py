"""Per-graph record of layer calls, layer names and the learning phase; masks of tensors.

Each graph has one `LayerRecord`. A `LayerCall` is an edge from inputs to outputs, by which a model
is traced back from its outputs and applied again (`keras.engine.network`). While layers call each
other, the innermost `CallScope` holds the training mode and collects the losses and updates of the
calls, so that a model's caller gets those of that call alone.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from estimatorkit.core.composite import is_composite
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.nest import flatten
from estimatorkit.core.tensor import Tensor
from estimatorkit.ops.array import array

if TYPE_CHECKING:
    from estimatorkit.layers.engine.base import Layer


@dataclass(frozen=True, eq=False)
class LayerCall:
    """One call of a layer.

    Attributes:
        args, kwargs: the call's arguments, without an inferred `training` or `mask`.
        is_input: whether it is that of an input layer.
    """

    layer: Layer
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    outputs: Any
    is_input: bool = False

    @property
    def inputs(self) -> Any:
        """The first argument; for an input layer, which has none, its output."""
        given = (*self.args, *self.kwargs.values())
        return given[0] if given else self.outputs

    @property
    def input_tensors(self) -> list[Tensor]:
        """The tensors among the arguments."""
        return [
            each for each in flatten([self.args, self.kwargs], True) if isinstance(each, Tensor)
        ]

    @property
    def of_inputs(self) -> bool:
        """Whether the layer was called on tensors computed from the `Input`s of a model."""
        return self.is_input or any(map(record_of().is_of_inputs, self.input_tensors))

    def record(self) -> None:
        """Registers this call as the source of its outputs, and of the components of sparse ones.

        The layer knows its own calls, but not those of a model's steps on batches.
        """
        calls = record_of().calls
        place = len(self.layer._nodes)
        scope = current_call()
        if scope is None or scope.keeps:
            self.layer._calls.append(self)
            if self.of_inputs:
                self.layer._calls_of_inputs.append(self)
        for number, output in enumerate(flatten(self.outputs)):
            for part in (output, *flatten(output, True)):
                if isinstance(part, Tensor) or is_composite(part):
                    calls[part] = self
                    part._keras_history = KerasHistory(self.layer, place, number)


class KerasHistory(NamedTuple):
    """Which call of which layer gave a tensor, under the names of Keras (`_keras_history`)."""

    layer: Any
    node_index: int
    tensor_index: int


@dataclass(frozen=True, eq=False)
class MetricCall:
    """One call of a metric: what updated its state before the result was read."""

    metric: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    update: Any


@dataclass(frozen=True, eq=False)
class AddedMetric:
    """What `add_metric` has added in a call.

    Attributes:
        layer: whose metric it is.
        name: its name.
        value: numbers, whose mean is shown; or the result of a metric.
        call: the metric's call where there is one.
    """

    layer: Any
    name: str
    value: Tensor
    call: MetricCall | None


@dataclass(eq=False)
class LayerRecord:
    """The layer calls, names and learning phase of a graph.

    Attributes:
        calls: the outermost call that produced each tensor.
        learning_phase: the training mode of calls without an explicit one: a bool, a tensor, or
            None for a placeholder that is created on demand.
        session: the session that holds the layers' weights, unless another is the default.
        metrics: the variables and updates of each metric (`keras.metric_classes.metric`).
        metric_calls: the call that gave each result of a metric.
        conditional_losses: the losses that layers have added for certain inputs.
        recent_steps: the steps of models that have executables, the last used last.
    """

    calls: dict[Tensor, LayerCall] = field(default_factory=dict)
    learning_phase: Any = None
    session: Any = None
    metrics: dict[Any, Any] = field(default_factory=dict)
    metric_calls: dict[Tensor, MetricCall] = field(default_factory=dict)
    conditional_losses: set[Tensor] = field(default_factory=set)
    recent_steps: OrderedDict[Any, None] = field(default_factory=OrderedDict)
    _names: dict[str, int] = field(default_factory=dict)
    _of_inputs: dict[Tensor, bool] = field(default_factory=dict)

    def is_of_inputs(self, tensor: Tensor) -> bool:
        """Whether a tensor is computed from an `Input` of a model."""
        known = self._of_inputs
        waiting = [tensor]
        while waiting:
            each = waiting[-1]
            call = self.calls.get(each)
            needed = each.op.inputs if call is None else call.input_tensors
            is_input = call is not None and call.is_input
            unknown = [] if is_input else [one for one in needed if one not in known]
            if each not in known and unknown and not any(known.get(one) for one in needed):
                known[each] = False  # until its inputs are known; a loop's body refers to itself
                waiting += unknown
                continue
            waiting.pop()
            known[each] = is_input or any(known.get(one, False) for one in needed)
        return known[tensor]

    def unique_name(self, base: str, zero_based: bool = True) -> str:
        """Returns the next layer name: `base`, `base_1`, `base_2`, ...

        Starts at `base_1` unless `zero_based`, as in `tf.layers`.
        """
        count = self._names.get(base, 0)
        self._names[base] = count + 1
        number = count if zero_based else count + 1
        return base if number == 0 else f"{base}_{number}"


def record_of(graph: Graph | None = None) -> LayerRecord:
    """The record of `graph`, by default the default graph."""
    return (graph or get_default_graph()).extension(LayerRecord)


def mask_on(tensor: Any) -> Any:
    """A tensor's mask of valid steps, bool `(batch, steps)`, or None.

    It is the attribute `_keras_mask`, which layers written for Keras read and set, too.
    """
    return getattr(tensor, "_keras_mask", None)


def set_mask(tensor: Any, mask: Any) -> None:
    """Gives a tensor a mask (see `mask_on`)."""
    tensor._keras_mask = mask


def learning_phase() -> Any:
    """The training mode of the default graph's layers, a bool or a scalar tensor.

    By default a placeholder with default value False, as in `tf.keras.backend.learning_phase`.
    """
    graph = get_default_graph().outermost
    record = record_of(graph)
    if record.learning_phase is None:
        with graph.as_default(), graph.name_scope(None), graph.control_dependencies(None):
            record.learning_phase = array.placeholder_with_default(
                False, [], "keras_learning_phase"
            )
    return record.learning_phase


def set_learning_phase(value: Any, graph: Graph | None = None) -> None:
    """Sets the value of `learning_phase` for a graph (by default the default graph).

    Args:
        value: True or 1 for training, False or 0 for inference; None for the placeholder.

    Raises:
        ValueError: `value` is none of these.
    """
    if value not in (0, 1, None) or isinstance(value, Tensor):
        raise ValueError(f"Expected learning phase to be 0 or 1, got {value!r}.")
    record_of((graph or get_default_graph()).outermost).learning_phase = (
        None if value is None else bool(value)
    )


@dataclass(eq=False)
class CallScope:
    """An active call: its training mode, and the losses and updates added so far.

    Attributes:
        training: True, False, a scalar tensor, or None if unspecified.
        losses: scalars from activity regularizers and `add_loss`.
        updates: operations for each training step, such as moving averages.
        metrics: what `add_metric` has added.
        keeps: whether the layers keep these, too; not those of a step on batches.
    """

    training: Any = None
    losses: list[Any] = field(default_factory=list)
    updates: list[Any] = field(default_factory=list)
    metrics: list[AddedMetric] = field(default_factory=list)
    keeps: bool = True


class _Stack(threading.local):
    def __init__(self) -> None:
        self.scopes: list[CallScope] = []


_stack = _Stack()


def current_call() -> CallScope | None:
    """This thread's innermost active call, or None."""
    return _stack.scopes[-1] if _stack.scopes else None


@contextmanager
def call_scope(training: Any, keeps: bool = True) -> Iterator[CallScope]:
    """Context manager that collects nested calls' losses and updates.

    `training=None` inherits the enclosing call's mode. `keeps=False`: the layers forget them.
    """
    outer = current_call()
    if training is None and outer is not None:
        training = outer.training
    inner = CallScope(training, keeps=keeps and (outer is None or outer.keeps))
    _stack.scopes.append(inner)
    try:
        yield inner
    finally:
        _stack.scopes.remove(inner)
        if outer is not None:
            outer.losses += inner.losses
            outer.updates += inner.updates
            outer.metrics += inner.metrics
