"""`scoped`: derives the `tf.layers` class of a layer, which looks up variables by name.

`tf.layers.Dense` and `tf.keras.layers.Dense` compute the same. Layers of `tf.layers` open a
variable scope and call `get_variable`, so `reuse` and the scope's defaults apply; regularization
losses go to the collection REGULARIZATION_LOSSES.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.layers.engine.base import Layer, snake_case
from estimatorkit.layers.engine.call_record import record_of
from estimatorkit.layers.engine.policy import AutoCastVariable, local_policy
from estimatorkit.ops.variables.variable_collections import variable_creator_scope
from estimatorkit.ops.variables.variable_scope import (
    VariableScope,
    get_variable,
    get_variable_scope,
    variable_scope,
)


class ScopedLayer(Layer):
    """A layer whose variables come from `get_variable` (`tf.layers.Layer`).

    Args:
        trainable, name, dtype: as for `Layer`; the variable scope has the name, made unique.
        _reuse: whether to share the variables of a layer of this name.
        _scope: the variable scope, or its name, which is not made unique.
        kwargs: as for `Layer`.
    """

    def __init__(
        self, trainable: bool = True, name: str | None = None, dtype: Any = None, **kwargs: Any
    ) -> None:
        self._reuse = kwargs.pop("_reuse", None)
        self._scope: VariableScope | None = None
        wanted_scope = kwargs.pop("_scope", None)
        wanted = dtype if dtype is not None else local_policy() or "float32"
        super().__init__(trainable, name, wanted, **kwargs)
        self._dtype_given = dtype is not None
        if wanted_scope:
            self._take_scope(wanted_scope)

    def _chosen_name(self, name: str | None) -> str:
        self._base_name = name or snake_case(type(self).__name__)
        record = record_of(get_default_graph().outermost)
        return name or record.unique_name(self._base_name, zero_based=False)

    def _take_scope(self, scope: Any = None) -> None:
        if scope is None and self._reuse:
            scope = self._base_name
        with variable_scope(scope, self._base_name) as taken:
            self._scope = taken

    @property
    def scope_name(self) -> str:
        """The name of the variable scope.

        Raises:
            ValueError: the layer has not been called.
        """
        if self._scope is None:
            raise ValueError(
                f'No name available for layer scope because the layer "{self._name}" has not been '
                "used yet. The scope name is determined the first time the layer instance is "
                "called. You must therefore call the layer before querying `scope_name`."
            )
        return self._scope.name

    @property
    def graph(self) -> Any:
        """The default graph."""
        return get_default_graph()

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Calls the layer; see `Layer`.

        Args:
            inputs: tensors.
            args, kwargs: those of `call`; and `scope`, the variable scope (a name or a
                `VariableScope`) on the first call, which `call` gets if it accepts it.
        """
        scope = kwargs.pop("scope", None)
        if self._scope is None:
            self._take_scope(scope)
        if scope is not None and "scope" in inspect.signature(self.call).parameters:
            kwargs["scope"] = scope
        return super().__call__(inputs, *args, **kwargs)

    @contextmanager
    def _entered(self) -> Iterator[None]:
        if self._scope is None:
            self._take_scope()
        reuse = True if self.built else self._reuse
        with (
            variable_scope(self._scope, reuse=reuse, auxiliary_name_scope=False) as scope,
            get_default_graph().name_scope(scope.original_name_scope),
        ):
            yield

    def add_weight(self, *args: Any, **kwargs: Any) -> Any:
        """Gets a variable under the layer's scope; see `Layer`."""
        with self._entered():
            return super().add_weight(*args, **kwargs)

    add_variable = add_weight

    def _make_variable(
        self,
        name: str,
        shape: Any,
        dtype: Any,
        initializer: Any,
        trainable: bool,
        regularizer: Any,
        constraint: Any,
        mixed: bool,
        collections: Any,
        partitioner: Any,
    ) -> Any:
        losses = get_default_graph().outermost.get_collection(GraphKeys.REGULARIZATION_LOSSES)
        if partitioner is False:
            partitioner = None
            get_variable_scope().set_partitioner(None)  # the scope is entered for this weight only
        cast = variable_creator_scope(_autocast_variable) if mixed else nullcontext()
        with cast:
            variable = get_variable(
                name,
                shape,
                dtype,
                initializer,
                regularizer,
                trainable and self._trainable,
                collections,
                partitioner=partitioner,
                constraint=constraint,
            )
        if regularizer is not None:
            now = get_default_graph().outermost.get_collection(GraphKeys.REGULARIZATION_LOSSES)
            self._regularized += [(loss, _same) for loss in now[len(losses) :]]
        return variable

    def add_loss(self, losses: Any, inputs: Any = None) -> None:
        """Adds losses, to REGULARIZATION_LOSSES too."""
        before = len(self._made_losses)
        super().add_loss(losses, inputs)
        for loss in self._made_losses[before:]:
            get_default_graph().add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)


def _autocast_variable(_: Any, **arguments: Any) -> AutoCastVariable:
    return AutoCastVariable(**arguments)


def _same(loss: Any) -> Any:
    return loss


def scoped(kind: type[Layer]) -> type[ScopedLayer]:
    """Derives the `tf.layers` class of a layer class."""
    return type(
        kind.__name__,
        (kind, ScopedLayer) if kind is not Layer else (ScopedLayer,),
        {"__doc__": kind.__doc__, "__module__": __name__},
    )


__all__ = ["ScopedLayer", "scoped"]
