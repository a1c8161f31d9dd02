"""`LayerWeights`: the variables of a layer and its sublayers, and their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from estimatorkit.core.dtypes import as_dtype
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.shapes import TensorShape, as_shape
from estimatorkit.core.variable_options import VariableSynchronization
from estimatorkit.core.variables import Variable
from estimatorkit.layers.engine.policy import AutoCastVariable, Policy
from estimatorkit.layers.engine.tracking import Tracker
from estimatorkit.ops.variables.initializers import GlorotUniform, Zeros


class LayerWeights(Tracker):
    """Mixin of `Layer`: its variables."""

    _name: str
    built: bool
    _policy: Policy
    _trainable: bool
    _weights: list[Any]
    _frozen: list[Any]
    _names_before: list[str]
    _regularized: list[tuple[Any, Callable[[Any], Any]]]

    def add_weight(
        self,
        name: str | None = None,
        shape: Any = (),
        dtype: Any = None,
        initializer: Any = None,
        regularizer: Any = None,
        trainable: bool | None = None,
        constraint: Any = None,
        partitioner: Any = None,
        use_resource: bool | None = None,
        synchronization: Any = None,
        aggregation: Any = None,
        experimental_autocast: bool = True,
        collections: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Makes a variable of the layer.

        Args:
            name: its name within the layer; 'Variable' by default.
            shape: its shape, known in all dimensions.
            dtype: the layer's variable dtype by default.
            initializer: an object, a function of (shape, dtype), or a name; Glorot uniform for
                floats and zeros for the rest by default (in `tf.layers` the scope's, first).
            regularizer: a function of the variable giving a loss, see `losses`.
            trainable: True by default.
            constraint: a function that optimizers apply to a new value.
            experimental_autocast: whether a mixed policy casts it when read.
            collections, aggregation: see `Variable`.
            partitioner: for layers of `tf.layers` only; False: none, whatever the variable scope's.
            synchronization: a `VariableSynchronization`: ON_READ is for variables that are not
                trainable.
            use_resource, kwargs: accepted for compatibility only.

        Raises:
            ValueError: the shape is not known, or `synchronization` does not fit `trainable`.
        """
        from estimatorkit.layers import constraints, initializers, regularizers

        if synchronization is VariableSynchronization.ON_READ:
            if trainable:
                raise ValueError(
                    "Synchronization value can be set to VariableSynchronization.ON_READ only for "
                    "non-trainable variables. You have specified trainable=True and "
                    "synchronization=VariableSynchronization.ON_READ."
                )
            trainable = False
        wanted = as_dtype(dtype or self._policy.variable_dtype)
        static = as_shape(tuple(shape) if isinstance(shape, list) else shape)
        if not static.is_fully_defined():
            raise value_error(
                f"Shape of a new variable ({self._name}/{name}) must be fully defined",
                received=str(static),
                hint="give the inputs known dimensions, all but the batch",
            )
        variable = self._make_variable(
            name or "Variable",
            static,
            wanted,
            initializers.get(initializer),
            trainable is None or trainable,
            regularizers.get(regularizer),
            constraints.get(constraint),
            mixed=self._policy.is_mixed and experimental_autocast and wanted.is_floating,
            collections=collections,
            partitioner=partitioner,
        )
        if aggregation is not None:
            variable.aggregation = aggregation
        self._weights.append(variable)
        if trainable is not None and not trainable:
            self._frozen.append(variable)
        return variable

    add_variable = add_weight

    def _make_variable(
        self,
        name: str,
        shape: TensorShape,
        dtype: Any,
        initializer: Any,
        trainable: bool,
        regularizer: Any,
        constraint: Any,
        mixed: bool,
        collections: Sequence[str] | None,
        partitioner: Any,
    ) -> Any:
        """Creates a variable under the layer's name; overridden by `scoped` to look it up."""
        if initializer is None:
            initializer = GlorotUniform() if dtype.is_floating else Zeros()
        kind = AutoCastVariable if mixed else Variable
        graph = get_default_graph()
        scope = graph.get_name_scope()
        full_name = f"{scope}/{name}" if scope else name
        if self._names_before:
            full_name = self._names_before.pop(0)
        with graph.outermost.name_scope(None):
            variable = kind(
                lambda: initializer(shape.as_list(), dtype=dtype),
                trainable=trainable,
                name=full_name,
                dtype=dtype,
                constraint=constraint,
                collections=collections,
            )
        if regularizer is not None:
            self._regularized.append((variable, regularizer))
        return variable

    def _own_weights(self) -> list[Any]:
        """Variables made by `add_weight` or assigned as attributes, without sublayers'."""
        return _unique([*self._weights, *self._attribute_variables()])

    @property
    def weights(self) -> list[Any]:
        """The variables, trainable ones first."""
        return self.trainable_weights + self.non_trainable_weights

    variables = weights

    @property
    def trainable_weights(self) -> list[Any]:
        """The variables that optimizers update."""
        if not self._trainable:
            return []
        frozen = set(self._frozen)
        own = [each for each in self._own_weights() if each not in frozen and each.trainable]
        return _unique(own + [w for each in self._parts() for w in each.trainable_weights])

    @property
    def non_trainable_weights(self) -> list[Any]:
        """The variables that optimizers do not update."""
        frozen = set(self._frozen)
        own = [
            each
            for each in self._own_weights()
            if each in frozen or not self._trainable or not each.trainable
        ]
        if not self._trainable:
            return _unique(own + [w for each in self._parts() for w in each.weights])
        return _unique(own + [w for each in self._parts() for w in each.non_trainable_weights])

    @property
    def trainable_variables(self) -> list[Any]:
        """`trainable_weights`."""
        return self.trainable_weights

    @property
    def non_trainable_variables(self) -> list[Any]:
        """`non_trainable_weights`."""
        return self.non_trainable_weights

    @property
    def trainable(self) -> bool:
        """Whether optimizers update the variables; setting it also sets it for all sublayers."""
        return self._trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        self._trainable = bool(value)
        for each in self._parts():
            each.trainable = value

    def get_weights(self) -> list[Any]:
        """The variables' values as arrays, in the order of `weights`."""
        from estimatorkit.layers.engine.sessions import values_of

        return values_of(self.weights)

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Sets the variables' values.

        Args:
            weights: arrays in the order and shapes of `weights`.

        Raises:
            ValueError: the number of arrays or a shape does not match.
        """
        from estimatorkit.layers.engine.sessions import set_values

        expected = self.weights
        if len(expected) != len(weights):
            raise value_error(
                f'You called `set_weights(weights)` on layer "{self._name}" with a weight list '
                f"of length {len(weights)}, but the layer was expecting {len(expected)} "
                "weights",
                expected=", ".join(f"{each.op.name} {each.shape}" for each in expected),
            )
        for variable, value in zip(expected, weights, strict=True):
            if not variable.shape.is_compatible_with(np.shape(value)):
                raise ValueError(
                    f"Layer weight shape {variable.shape} not compatible with provided weight "
                    f"shape {np.shape(value)} ({variable.op.name})."
                )
        set_values(list(zip(expected, weights, strict=True)))

    def count_params(self) -> int:
        """The number of elements of all variables.

        Raises:
            ValueError: the layer is not built.
        """
        if not self.built:
            raise ValueError(
                f"You tried to call `count_params` on layer {self._name}, but the layer isn't "
                f"built. You can build it manually via: `{self._name}.build(batch_input_shape)`."
            )
        return sum(int(np.prod(each.shape.as_list())) for each in self.weights)


def _unique(items: Sequence[Any]) -> list[Any]:
    return list({id(each): each for each in items}.values())


__all__ = ["LayerWeights"]
