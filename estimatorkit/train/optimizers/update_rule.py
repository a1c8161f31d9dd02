"""`UpdateRule`: an optimizer's update of a variable and its slots, as a pure function.

A rule is a JAX kernel for whole arrays, from which two ops are registered: 'Apply...' for dense
gradients, and 'SparseApply...' for `IndexedSlices`, which sums repeated rows and runs the same
kernel on the touched rows only. Hyperparameters are inputs, so schedules cause no recompilation.
Formulas are those of TensorFlow's training ops, unless a rule says otherwise.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
from jax import lax

from estimatorkit.core import registry
from estimatorkit.core.registry import Case
from estimatorkit.core.shapes import differ
from estimatorkit.runtime.xla import host_tuning
from estimatorkit.runtime.xla.sharded_rows import ShardedRows, on_own_rows
from estimatorkit.train.optimizers.deduplicate_slices import (
    distinct,
    gather_rows,
    scatter_rows,
    segment_sum,
)

Rows = tuple[float, ...]
SparseRows = Literal["touched", "every", "every slot", "added", "none"]

# The example's initial state: two rows of equal numbers, and slots of 0.5, 0.25, 0.125.
_EXAMPLE_VALUE = np.array([[1.0], [-2.0]], np.float32)
_EXAMPLE_GRADIENT = np.array([[0.3], [-0.7]], np.float32)


@dataclass(frozen=True)
class UpdateRule:
    """An optimizer's update.

    Attributes:
        name: the op types are 'Apply' and 'SparseApply' plus this name.
        kernel: `kernel(variable, gradient, *slots, **hyperparameters)`, returns the new variable
            and slots. Its keyword-only parameters are the hyperparameters.
        slots: the slots' names, in the kernel's order.
        sparse_rows: the rows that sparse gradients update: 'touched' (their own), 'every' (as in
            TensorFlow, since the kernel also changes rows with zero gradient), 'every slot' (every
            row of the slots, but only touched rows of the variable), 'added' (touched rows, by
            adding steps, which are linear in the gradient and have no slots), or 'none' (sparse
            gradients are not supported).
        example: hyperparameters, and the resulting variable and slots of the example.
    """

    name: str
    kernel: Callable[..., tuple[Any, ...]]
    slots: tuple[str, ...]
    example: tuple[Mapping[str, float], tuple[Rows, ...]]
    sparse_rows: SparseRows = "touched"

    @functools.cached_property
    def hyperparameters(self) -> tuple[str, ...]:
        """The hyperparameters' names, in the order of the op's inputs."""
        parameters = inspect.signature(self.kernel).parameters.values()
        return tuple(each.name for each in parameters if each.kind is each.KEYWORD_ONLY)

    def dense(self, *inputs: Any) -> tuple[Any, ...]:
        """The op's kernel for dense gradients.

        `inputs` are the variable, its slots, the gradient and the hyperparameters.
        """
        count = 1 + len(self.slots)
        _check_gradient(inputs[count], inputs[0].shape)
        return self._step(inputs[:count], inputs[count], inputs[count + 1 :])

    def sparse(self, *inputs: Any) -> tuple[Any, ...]:
        """The op's kernel for sparse gradients.

        `inputs` are the variable, its slots, the gradient's values `(n, ...)` and indices `(n,)`,
        and the hyperparameters. Repeated indices are summed; those out of range are ignored.
        """
        count = 1 + len(self.slots)
        if isinstance(inputs[0], ShardedRows):
            updated: tuple[Any, ...] = on_own_rows(self.sparse, inputs, count + 1)
            return updated
        state, (values, indices) = inputs[:count], inputs[count : count + 2]
        hyperparameters = inputs[count + 2 :]
        rows = state[0].shape[0]
        _check_gradient(values, (*indices.shape, *state[0].shape[1:]))
        values = jnp.asarray(values, _computed_in(state[0]))
        # JAX counts negative indices from the end, so move them past the end, where they are
        # dropped.
        indices = jnp.where((indices < 0) | (indices >= rows), rows, indices)
        if self.sparse_rows == "added":
            (steps,) = self._step([jnp.zeros_like(values)], values, hyperparameters)
            return (scatter_rows(lax.scatter_add, state[0], indices, steps.astype(state[0].dtype)),)
        if self.sparse_rows != "touched":
            whole = segment_sum(values, indices, rows)
            variable, *slots = self._step(state, whole, hyperparameters)
            if self.sparse_rows == "every slot":
                variable = scatter_rows(
                    lax.scatter, state[0], indices, gather_rows(variable, indices)
                )
            return (variable, *slots)
        touched, position = distinct(indices, rows)
        touched = host_tuning.prefetch_rows(touched, *state)
        summed = segment_sum(values, position, indices.shape[0])
        new = self._step([gather_rows(each, touched) for each in state], summed, hyperparameters)
        return tuple(
            scatter_rows(lax.scatter, each, touched, rows)
            for each, rows in zip(state, new, strict=True)
        )

    def _step(
        self, state: Sequence[Any], gradient: Any, hyperparameters: Sequence[Any]
    ) -> tuple[Any, ...]:
        """Runs the kernel in the variable's dtype, but in float32 for 16-bit dtypes.

        TensorFlow computes in 16 bits, where Adam's epsilon of 1e-8 is 0 and the step is NaN.
        """
        dtype = _computed_in(state[0])
        variable, *slots = (jnp.asarray(each, dtype) for each in state)
        given = {
            name: jnp.asarray(value, dtype)
            for name, value in zip(self.hyperparameters, hyperparameters, strict=True)
        }
        new = self.kernel(variable, jnp.asarray(gradient, dtype), *slots, **given)
        return tuple(value.astype(each.dtype) for value, each in zip(new, state, strict=True))

    def cases(self, sparse: bool) -> list[Case]:
        """Returns the example as a case of the op registry; if sparse, with one row split."""
        values, expected = self.example
        slots = [
            np.full_like(_EXAMPLE_VALUE, 0.5**power) for power, _ in enumerate(self.slots, start=1)
        ]
        gradient: list[Any] = [_EXAMPLE_GRADIENT]
        if sparse:
            halves = _EXAMPLE_GRADIENT[[1, 0, 1]] * np.array([[0.5], [1.0], [0.5]], np.float32)
            gradient = [halves, np.array([1, 0, 1], np.int64)]
        hyperparameters = [np.float32(values[name]) for name in self.hyperparameters]
        result = tuple(np.array(rows, np.float32)[:, None] for rows in expected)
        return [Case((_EXAMPLE_VALUE, *slots, *gradient, *hyperparameters), {}, result)]


def _check_gradient(gradient: Any, wanted: Sequence[Any]) -> None:
    """Raises ValueError if a gradient would be broadcast."""
    if differ(gradient.shape, wanted):
        raise ValueError(
            "var and grad do not have the same shape: expected a gradient of shape "
            f"{list(wanted)}, received {list(gradient.shape)}"
        )


def _computed_in(variable: Any) -> Any:
    return jnp.promote_types(variable.dtype, jnp.float32)


def _no_outputs(inputs: Any, attrs: Any) -> list[Any]:
    return []


def update_rule(
    name: str,
    slots: Sequence[str] | None = None,
    *,
    example: tuple[Mapping[str, float], tuple[Rows, ...]],
    sparse_rows: SparseRows = "touched",
) -> Callable[[Callable[..., tuple[Any, ...]]], UpdateRule]:
    """Makes a rule of a kernel, and registers its ops.

    Args:
        name, example, sparse_rows: see `UpdateRule`.
        slots: the slots' names; those of the kernel's arguments after the first two by default.
    """

    def decorate(kernel: Callable[..., tuple[Any, ...]]) -> UpdateRule:
        parameters = inspect.signature(kernel).parameters.values()
        own = [each.name for each in parameters if each.kind is not each.KEYWORD_ONLY][2:]
        rule = UpdateRule(
            name, kernel, tuple(own if slots is None else slots), example, sparse_rows
        )
        ops = [("Apply", rule.dense, False)]
        if sparse_rows != "none":
            ops.append(("SparseApply", rule.sparse, True))
        for prefix, step, sparse in ops:
            registry.register(
                prefix + name,
                step,
                infer=_no_outputs,
                gradient=None,
                updates=tuple(range(1 + len(rule.slots))),
                pure=False,
                takes_shards=sparse,
                cases=functools.partial(rule.cases, sparse),
            )
        return rule

    return decorate


__all__ = ["UpdateRule", "update_rule"]
