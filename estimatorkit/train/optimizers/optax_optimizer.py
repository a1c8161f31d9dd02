"""`OptaxOptimizer`: any optax gradient transformation as an optimizer.

The transformation's state is in variables, and thus in checkpoints; a step is one JAX operation in
the training step's executable. optax is not imported: a transformation is any object with `init`
and `update`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import jax

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.errors import type_error
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.variables import Variable
from estimatorkit.ops.control.jax_functions import jax_function
from estimatorkit.train.optimizers.optimizer import GradientAndVariable, Optimizer


class GradientTransformation(Protocol):
    """The interface of optax's optimizers: two pure functions on pytrees."""

    @property
    def init(self) -> Any:
        """`init(params)` returns the state."""

    @property
    def update(self) -> Any:
        """`update(gradients, state, params)` returns the increments of params, and the state."""


class OptaxOptimizer(Optimizer):
    """Wraps an optax optimizer, for example `OptaxOptimizer(optax.adamw(0.1))`.

    The transformation sees the variables as a dict by name (`'dense/kernel'`), for masks and
    `multi_transform`. Its schedules count their own steps. Sparse gradients become dense; for large
    tables, use the other optimizers of `train`.

    Args:
        tx: the optax gradient transformation.
        name: the name of the operations, and of the state's variables.

    Raises:
        TypeError: `tx` is not a transformation.
    """

    def __init__(self, tx: GradientTransformation, name: str = "Optax") -> None:
        if not callable(getattr(tx, "init", None)) or not callable(getattr(tx, "update", None)):
            raise type_error(
                "OptaxOptimizer takes a gradient transformation",
                expected="an object with init and update, such as optax.adam(0.001)",
                received=repr(tx)[:200],
            )
        super().__init__(use_locking=False, name=name)
        self._tx = tx
        self._states: dict[tuple[Graph, tuple[Variable, ...]], tuple[Any, list[Variable]]] = {}

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        self._state_of(var_list)

    def _updates(self, pairs: Sequence[GradientAndVariable]) -> list[Any]:
        """Treats the variables with gradients as one pytree, with its own state."""
        variables = [variable for _, variable in pairs]
        structure, state = self._state_of(variables)

        def step(gradients: Any, leaves: Any, params: Any) -> tuple[Any, list[Any]]:
            changes, new = self._tx.update(gradients, jax.tree.unflatten(structure, leaves), params)
            moved = jax.tree.map(lambda old, by: (old + by).astype(old.dtype), params, changes)
            # optax may promote a leaf's dtype; the variable keeps its own.
            kept = [
                jax.numpy.asarray(value, old.dtype)
                for value, old in zip(jax.tree.leaves(new), leaves, strict=True)
            ]
            return moved, kept

        gradients = {each.op.name: convert_to_tensor(gradient) for gradient, each in pairs}
        params = {each.op.name: each for each in variables}
        moved, kept = jax_function(step, gradients, state, params, name="update")
        assignments = [each.assign(value) for each, value in zip(state, kept, strict=True)]
        for variable in variables:
            value = moved[variable.op.name]
            if variable.constraint is not None:
                value = variable.constraint(value)
            assignments.append(variable.assign(value))
        return assignments

    def _state_of(self, variables: Sequence[Variable]) -> tuple[Any, list[Variable]]:
        """Returns the state's tree structure and leaves for these variables, creating them once."""
        graph = get_default_graph().outermost
        key = (graph, tuple(variables))
        if key not in self._states:
            with graph.init_scope(), graph.name_scope(self._name):
                params = {each.op.name: each.initialized_value() for each in variables}
                first = jax_function(self._tx.init, params, name="init")
                leaves, structure = jax.tree.flatten_with_path(first)
                made = [
                    Variable(value, trainable=False, name=_name_of(path)) for path, value in leaves
                ]
            by_name = {each.op.name: each for each in variables}
            for (path, _), leaf in zip(leaves, made, strict=True):
                primary = by_name.get(_key_of(path[-1])) if path else None
                if primary is not None and leaf.shape.as_list() == primary.shape.as_list():
                    leaf.belong_to(primary)
            self._states[key] = (structure, made)
        return self._states[key]

    def variables(self) -> list[Variable]:
        """Returns the state's variables in the default graph."""
        graph = get_default_graph().outermost
        return [
            each for (own, _), (_, made) in self._states.items() if own is graph for each in made
        ]


def _name_of(path: Any) -> str:
    """Returns the path of a leaf as a name, such as `0/mu/dense/kernel`."""
    return "/".join(map(_key_of, path)) or "state"


def _key_of(key: Any) -> str:
    return str(getattr(key, "name", getattr(key, "key", getattr(key, "idx", key))))


__all__ = ["GradientTransformation", "OptaxOptimizer"]
