"""`scoped`: a layer as `tf.layers` has it, whose variables are looked up by name.

`tf.layers.Dense` and `tf.keras.layers.Dense` compute the same. Those of `tf.layers` open a variable
scope and get their variables there, so `reuse` shares them, and the scope's defaults hold; losses
of regularizers go to the collection REGULARIZATION_LOSSES.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.variable_scope import VariableScope, get_variable, variable_scope
from estimatorkit.layers.base import Layer, snake_case


class ScopedLayer(Layer):
    """A layer whose variables come from `get_variable` (`tf.layers.Layer`).

    Args:
        trainable, name, dtype: as for `Layer`; the name is that of the variable scope.
        _reuse: whether to share the variables of a layer of this name.
        _scope: the variable scope, or its name; `name` by default.
        kwargs: as for `Layer`.
    """

    def __init__(
        self, trainable: bool = True, name: str | None = None, dtype: Any = None, **kwargs: Any
    ) -> None:
        self._reuse = kwargs.pop("_reuse", None)
        self._wanted_scope = kwargs.pop("_scope", None)
        self._variable_scope: VariableScope | None = None
        super().__init__(trainable, name, dtype if dtype is not None else "float32", **kwargs)
        self._dtype_given = dtype is not None

    def _chosen_name(self, name: str | None) -> str:
        self._given_name = name
        return name or snake_case(type(self).__name__)

    @property
    def scope_name(self) -> str:
        """The name of the variable scope.

        Raises:
            ValueError: the layer has not been called.
        """
        if self._variable_scope is None:
            raise ValueError(
                f'No name available for layer scope because the layer "{self._name}" has not been '
                "used yet. The scope name is determined the first time the layer instance is "
                "called. You must therefore call the layer before querying `scope_name`."
            )
        return self._variable_scope.name

    @property
    def graph(self) -> Any:
        """The default graph."""
        return get_default_graph()

    @contextmanager
    def _entered(self) -> Iterator[None]:
        if self._variable_scope is not None:
            with get_default_graph().name_scope(self._name):
                yield
            return
        wanted = self._wanted_scope if self._wanted_scope is not None else self._given_name
        with variable_scope(wanted, self._name, reuse=self._reuse) as scope:
            self._variable_scope = scope
            self._name = scope.name.rsplit("/", 1)[-1]
            yield

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
        return get_variable(
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

    def add_loss(self, losses: Any, inputs: Any = None) -> None:
        """Adds losses, to REGULARIZATION_LOSSES too."""
        before = len(self._made_losses)
        super().add_loss(losses, inputs)
        for loss in self._made_losses[before:]:
            get_default_graph().add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)


def scoped(kind: type[Layer]) -> type[ScopedLayer]:
    """The class of `tf.layers` for a class of layers."""
    return type(
        kind.__name__,
        (kind, ScopedLayer) if kind is not Layer else (ScopedLayer,),
        {"__doc__": kind.__doc__, "__module__": __name__},
    )


__all__ = ["ScopedLayer", "scoped"]
