"""Moving averages of variables and tensors: `ExponentialMovingAverage`, `assign_moving_average`.

The average of `v` is the variable `v/ExponentialMovingAverage`, as in TensorFlow, so a `Saver` can
restore a model's variables from their averages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from estimatorkit.core.builtin_ops import group
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import bfloat16, float16, float32, float64
from estimatorkit.core.errors import type_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.distribute.replica_context import over_replicas
from estimatorkit.ops.array.filling import zeros
from estimatorkit.ops.math.elementwise import cast, div, minimum, truediv as divide
from estimatorkit.ops.variables.initializers import Zeros
from estimatorkit.ops.variables.variable_collections import (
    global_variables,
    moving_average_variables,
    trainable_variables,
)
from estimatorkit.ops.variables.variable_scope import get_variable, variable_scope
from estimatorkit.train.optimizers.slot_creator import create_slot, create_zeros_slot

_DTYPES = (float16, bfloat16, float32, float64)


class ExponentialMovingAverage:
    """Maintains averages: `average = decay * average + (1 - decay) * value` at each update.

    Args:
        decay: a number or scalar tensor, near 1.
        num_updates: the number of updates, such as the global step; the decay is then min(decay, (1
            + num_updates) / (10 + num_updates)), so that averages adapt faster at first.
        zero_debias: whether to correct averages of tensors, which start at 0, for that bias (Kingma
            & Ba 2015, section 3). Those of variables start at the initial values.
        name: the suffix of the averages' names.
    """

    def __init__(
        self,
        decay: Any,
        num_updates: Any = None,
        zero_debias: bool = False,
        name: str = "ExponentialMovingAverage",
    ) -> None:
        self._decay = decay
        self._num_updates = num_updates
        self._zero_debias = zero_debias
        self._name = name
        self._averages: dict[Variable | Tensor, Variable] = {}

    @property
    def name(self) -> str:
        """The suffix of the averages' names."""
        return self._name

    def apply(self, var_list: Sequence[Variable | Tensor] | None = None) -> Operation:
        """Returns an operation that updates the averages, creating missing ones.

        Args:
            var_list: floating-point variables and tensors; the trainable variables by default.

        Raises:
            TypeError: one has another dtype.
        """
        items = trainable_variables() if var_list is None else list(var_list)
        graph = get_default_graph()
        debiased = set()
        for item in items:
            if item.dtype not in _DTYPES:
                raise type_error(
                    f"The variables must be half, float, or double: {item.name}",
                    received=item.dtype.name,
                    made_at=item.op.source,
                )
            if item not in self._averages:
                self._averages[item] = self._make(item)
                if isinstance(item, Variable):
                    graph.add_to_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, item)
                elif self._zero_debias:
                    debiased.add(item)
        with graph.name_scope(self._name) as scope:
            decay = convert_to_tensor(self._decay, float32, "decay")
            if self._num_updates is not None:
                count = cast(self._num_updates, float32, name="num_updates")
                decay = minimum(decay, (1.0 + count) / (10.0 + count))
            updates = [
                assign_moving_average(self._averages[item], item, decay, item in debiased)
                for item in items
            ]
            grouped: Operation = group(*updates, name=scope)
            return grouped

    def _make(self, item: Variable | Tensor) -> Variable:
        """Creates the average of a variable or tensor."""
        with item.graph.init_scope():
            if isinstance(item, Variable):
                return create_slot(item, item.initialized_value(), self._name)
            return create_zeros_slot(item, self._name)

    def average(self, var: Variable | Tensor) -> Variable | None:
        """Returns the variable that holds the average, or None."""
        return self._averages.get(var)

    def average_name(self, var: Variable | Tensor) -> str:
        """Returns the name of the average's variable, even if it does not exist."""
        found = self._averages.get(var)
        if found is not None:
            return found.op.name
        name = f"{var.op.name}/{self._name}"
        return get_default_graph().unique_name(name, mark_as_used=False)

    def variables_to_restore(
        self, moving_avg_variables: Sequence[Variable] | None = None
    ) -> dict[str, Variable]:
        """Returns a `var_list` for a `Saver` that restores variables from their averages.

        Args:
            moving_avg_variables: the variables with averages; by default the trainable variables
                and the MOVING_AVERAGE_VARIABLES collection.

        Returns:
            All global variables by checkpoint name: the average's name, or their own without one.
        """
        if moving_avg_variables is None:
            moving_avg_variables = [*trainable_variables(), *moving_average_variables()]
        averaged = list(dict.fromkeys(moving_avg_variables))
        result = {self.average_name(variable): variable for variable in averaged}
        for variable in global_variables():
            if variable not in averaged:
                result.setdefault(variable.op.name, variable)
        return result


def assign_moving_average(
    variable: Variable, value: Any, decay: Any, zero_debias: bool = True, name: str | None = None
) -> Tensor:
    """Updates an average: variable -= (variable - value) * (1 - decay).

    Args:
        variable: holds the average.
        value: a tensor of its shape.
        decay: a number or scalar tensor.
        zero_debias: whether to correct for the start at 0: the average is then biased / (1 - decay
            ^ updates), with two more variables, `biased` and `local_step`.

    Returns:
        The new value of the variable.
    """
    graph = get_default_graph()
    with graph.name_scope(name or "AssignMovingAvg") as scope:
        kept = convert_to_tensor(decay, name="decay")
        rate = cast(1.0 - kept, variable.dtype)
        fresh = convert_to_tensor(value, variable.dtype, "value")
        if not isinstance(value, Variable):
            fresh = over_replicas(fresh, mean=True)
        if not zero_debias:
            return variable.assign_sub((variable.read_value() - fresh) * rate, name=scope)
        with graph.init_scope():
            biased = create_zeros_slot(variable, "biased")
            local_step = create_slot(variable, zeros((), variable.dtype), "local_step")
        new_biased = biased.assign_sub((biased.read_value() - fresh) * rate)
        count = local_step.assign_add(1.0)
        unbiased = new_biased / (1.0 - (1.0 - rate) ** count)
        return variable.assign_sub(variable.read_value() - unbiased, name=scope)


def weighted_moving_average(
    value: Any,
    decay: Any,
    weight: Any,
    truediv: bool = True,
    collections: Sequence[str] | None = None,
    name: str | None = None,
) -> Tensor:
    """The moving average of `value * weight`, divided by that of `weight`.

    Args:
        decay: a number or scalar tensor.
        weight: a tensor that broadcasts with `value`.
        truediv: whether to divide integers as floats.
        collections: of the variables `value_x_weight` and `weight`; GLOBAL_VARIABLES by default.
        name: the variable scope; "WeightedMovingAvg", made unique, by default.
    """
    value, weight = convert_to_tensor(value), convert_to_tensor(weight)
    with variable_scope(name, "WeightedMovingAvg", [value, weight, decay]) as scope:
        averages = []
        for kept, start, update in (
            ("value_x_weight", value, value * weight),
            ("weight", weight, weight),
        ):
            variable = get_variable(
                kept,
                start.shape,
                start.dtype,
                Zeros(),
                trainable=False,
                collections=None if collections is None else list(collections),
            )
            averages.append(assign_moving_average(variable, update, decay, zero_debias=False))
        numerator, denominator = averages
        divided = divide if truediv else div
        return divided(numerator, denominator, name=scope.name)
