"""`LayerLosses`: losses, updates and metrics added by calls of a layer."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.nest import flatten
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.layers.engine.call_record import AddedMetric, current_call, record_of
from estimatorkit.layers.engine.tracking import Tracker


class LayerLosses(Tracker):
    """Mixin of `Layer`: losses, updates and metrics."""

    _trainable: bool
    stateful: bool
    _regularized: list[tuple[Any, Callable[[Any], Any]]]
    _regularization: dict[Graph, dict[int, Tensor]]
    _made_losses: list[Any]
    _made_updates: list[Any]

    @property
    def losses(self) -> list[Tensor]:
        """Losses of the layer and its sublayers in the default graph.

        Those added by calls, and one per regularized variable; also of a layer that is not
        trainable.
        """
        graph = get_default_graph().outermost
        own: list[Tensor] = [loss for loss in self._made_losses if loss.graph.outermost is graph]
        made = self._regularization.setdefault(graph, {})
        for number, (variable, regularizer) in enumerate(self._regularized):
            if number not in made and (variable is None or variable.graph is graph):
                made[number] = regularizer(variable)
        return own + list(made.values()) + [loss for each in self._parts() for loss in each.losses]

    @property
    def updates(self) -> list[Any]:
        """Operations that each training step must run, such as moving averages.

        Empty if the layer is not trainable, unless it is `stateful`.
        """
        if not self._is_updated:
            return []
        graph = get_default_graph().outermost
        own = [each for each in self._made_updates if each.graph.outermost is graph]
        return own + [update for each in self._parts() for update in each.updates]

    def add_loss(self, losses: Any, inputs: Any = None) -> None:
        """Adds losses that `fit` adds to the model's.

        Args:
            losses: a scalar tensor, a function without arguments giving one, or a list of them.
            inputs: the inputs of the layer for which the losses hold, see `get_losses_for`.
        """
        for loss in flatten(losses):
            if callable(loss):
                self._regularized.append((None, functools.partial(_called, loss)))
                continue
            tensor = convert_to_tensor(loss)
            if inputs is not None:
                record_of(tensor.graph).conditional_losses.add(tensor)
            scope = current_call()
            if scope is not None:
                scope.losses.append(tensor)
            if scope is None or scope.keeps:
                self._made_losses.append(tensor)

    def add_update(self, updates: Any, inputs: Any = None) -> None:
        """Adds operations that a training step must run; they are in UPDATE_OPS too.

        A layer that is not trained adds none, unless it is `stateful`, as in TensorFlow.

        Args:
            updates: operations or tensors, or functions giving them.
            inputs: accepted for compatibility only.
        """
        if not self._is_updated:
            return
        for update in flatten(updates):
            made = update() if callable(update) else update
            scope = current_call()
            if scope is not None:
                scope.updates.append(made)
            if scope is None or scope.keeps:
                self._made_updates.append(made)
                get_default_graph().add_to_collection(GraphKeys.UPDATE_OPS, made)

    @property
    def _is_updated(self) -> bool:
        return self._trainable or self.stateful

    def add_metric(self, value: Any, name: str | None = None, **kwargs: Any) -> None:
        """Adds a metric that is shown by `fit` and `evaluate`.

        Args:
            value: a tensor, the mean of whose numbers over all batches is shown; or the result of
                calling a `Metric`, which has its own name.
            name: its name.
            kwargs: accepted for compatibility only.

        Raises:
            ValueError: there is no name.
        """
        tensor = convert_to_tensor(value)
        made = record_of(tensor.graph).metric_calls.get(tensor)
        name = name if made is None else made.metric.name
        if name is None:
            raise ValueError("Please provide a name for your metric like `add_metric(x, name=...)`")
        scope = current_call()
        if scope is not None:
            scope.metrics.append(AddedMetric(self, name, tensor, made))

    def get_updates_for(self, inputs: Any) -> list[Any]:
        """The `updates` that are computed from some inputs; for None, those from no input."""
        if inputs is None:
            known = record_of()
            return [each for each in self.updates if not any(map(known.is_of_inputs, _read(each)))]
        return [each for each in self.updates if _depends(_read(each), inputs)]

    def get_losses_for(self, inputs: Any) -> list[Any]:
        """The `losses` that calls have added for some inputs; for None, all others."""
        conditional = record_of().conditional_losses
        if inputs is None:
            return [loss for loss in self.losses if loss not in conditional]
        made = [loss for loss in self.losses if loss in conditional]
        return [loss for loss in made if _depends([loss], inputs)]


def _read(update: Any) -> list[Tensor]:
    """The tensors that an update reads."""
    op = update if isinstance(update, Operation) else convert_to_tensor(update).op
    return [*op.inputs, *(each for before in op.control_inputs for each in before.inputs)]


def _depends(tensors: Sequence[Tensor], inputs: Any) -> bool:
    """Whether tensors are computed from some of the inputs."""
    wanted, waiting, seen = set(flatten(inputs)), list(tensors), set[Tensor]()
    while waiting:
        each = waiting.pop()
        if each in wanted:
            return True
        if each not in seen:
            seen.add(each)
            waiting += each.op.inputs
    return False


def _called(loss: Callable[[], Any], _: Any) -> Any:
    return loss()


__all__ = ["LayerLosses"]
