"""What a graph knows of layers: which call made a tensor, masks, names in use, the learning phase.

Each graph has one `LayerRecord`. `LayerCall` is the step from inputs to outputs by which a model is
traced back from its outputs and applied again (`keras.engine.network`). While layers call each
other, the innermost `CallScope` says whether this is training, and collects the losses and updates
of the calls, so that whoever calls a model gets those of that call alone.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from estimatorkit.core import builtin_ops
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.nest import flatten
from estimatorkit.core.tensor import Tensor

if TYPE_CHECKING:
    from estimatorkit.layers.engine.base import Layer


@dataclass(frozen=True, eq=False)
class LayerCall:
    """One call of a layer.

    Attributes:
        layer: the layer.
        args, kwargs: what it was called with, but for `training` and masks that it found itself.
        outputs: what came out.
    """

    layer: Layer
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    outputs: Any

    @property
    def inputs(self) -> Any:
        """The first argument."""
        return self.args[0] if self.args else next(iter(self.kwargs.values()))

    @property
    def input_tensors(self) -> list[Tensor]:
        """The tensors among the arguments."""
        return [
            each for each in flatten([self.args, self.kwargs], True) if isinstance(each, Tensor)
        ]


@dataclass(eq=False)
class LayerRecord:
    """What a graph knows of layers.

    Attributes:
        calls: the outermost call that made each tensor.
        masks: for each tensor of steps which of them count, bool `(batch, steps)`.
        learning_phase: whether layers that are not told are called for training: a bool, a tensor,
            or None for a placeholder that is made when it is needed.
        session: the session in which layers keep their weights where no other is the default.
        metrics: the variables and updates of each metric (`keras.metric_classes.metric`).
    """

    calls: dict[Tensor, LayerCall] = field(default_factory=dict)
    masks: dict[Tensor, Any] = field(default_factory=dict)
    learning_phase: Any = None
    session: Any = None
    metrics: dict[Any, Any] = field(default_factory=dict)
    _names: dict[str, int] = field(default_factory=dict)

    def unique_name(self, base: str, zero_based: bool = True) -> str:
        """`base`, `base_1`, `base_2`, ...: the name of the next layer called so.

        Not `zero_based`, the first is `base_1`, as layers of `tf.layers` are called.
        """
        count = self._names.get(base, 0)
        self._names[base] = count + 1
        number = count if zero_based else count + 1
        return base if number == 0 else f"{base}_{number}"


def record_of(graph: Graph | None = None) -> LayerRecord:
    """The record of a graph (the default graph)."""
    graph = graph or get_default_graph()
    if graph.layer_record is None:
        graph.layer_record = LayerRecord()
    record: LayerRecord = graph.layer_record
    return record


def learning_phase() -> Any:
    """Whether layers of the default graph are called for training: a bool, or a scalar tensor.

    Where nothing was set it is a placeholder that is False unless it is fed, as
    `tf.keras.backend.learning_phase`.
    """
    graph = get_default_graph().outermost
    record = record_of(graph)
    if record.learning_phase is None:
        with graph.as_default(), graph.name_scope(None), graph.control_dependencies(None):
            record.learning_phase = builtin_ops.placeholder_with_default(
                False, [], "keras_learning_phase"
            )
    return record.learning_phase


def set_learning_phase(value: Any, graph: Graph | None = None) -> None:
    """Sets what `learning_phase` gives for a graph (the default graph).

    Args:
        value: True or 1 for training, False or 0 for inference; None for the placeholder.
        graph: the graph.

    Raises:
        ValueError: the value is none of these.
    """
    if value not in (0, 1, None) or isinstance(value, Tensor):
        raise ValueError(f"Expected learning phase to be 0 or 1, got {value!r}.")
    record_of((graph or get_default_graph()).outermost).learning_phase = (
        None if value is None else bool(value)
    )


@dataclass(eq=False)
class CallScope:
    """A call under way: whether it trains, and what it and the calls inside it have made.

    Attributes:
        training: True, False, a scalar tensor, or None if nobody has said.
        losses: scalars made by the calls: activity regularizers, `add_loss`.
        updates: operations that a training step must run: moving averages.
        metrics: (name, tensor) pairs of `add_metric`.
    """

    training: Any = None
    losses: list[Any] = field(default_factory=list)
    updates: list[Any] = field(default_factory=list)
    metrics: list[Any] = field(default_factory=list)


class _Stack(threading.local):
    def __init__(self) -> None:
        self.scopes: list[CallScope] = []


_stack = _Stack()


def current_call() -> CallScope | None:
    """The innermost call under way in this thread, or None."""
    return _stack.scopes[-1] if _stack.scopes else None


@contextmanager
def call_scope(training: Any) -> Iterator[CallScope]:
    """Inside, layers are called as parts of one call, whose losses and updates it collects.

    Args:
        training: see `CallScope`; None takes that of the call around.
    """
    outer = current_call()
    if training is None and outer is not None:
        training = outer.training
    inner = CallScope(training)
    _stack.scopes.append(inner)
    try:
        yield inner
    finally:
        _stack.scopes.remove(inner)
        if outer is not None:
            outer.losses += inner.losses
            outer.updates += inner.updates
            outer.metrics += inner.metrics
