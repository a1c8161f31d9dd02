"""`Hyperparameters`: attributes of an optimizer that are variables, or schedules or functions.

A number becomes a variable, one in each graph, so that it can change between steps without a new
compilation; `optimizer.lr = 0.1` sets the number, and the variable of the default graph.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import DType, float32
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.keras.optimizers.schedules import LearningRateSchedule
from estimatorkit.layers.engine.sessions import set_values, values_of
from estimatorkit.ops.math import elementwise
from estimatorkit.train.optimizers import optimizer as train_optimizer


class Hyperparameters(train_optimizer.Optimizer):
    """What `Optimizer` does about hyperparameters, which stand in `_hyper` by name."""

    _hyper: dict[str, Any]

    def _set_hyper(self, name: str, value: Any) -> None:
        """Sets a hyperparameter: a number, a tensor, a schedule or a function without arguments.

        If it already is a variable of the default graph, its value in the session is set.
        """
        self._hyper[name] = value
        made = self._non_slots.get((name, get_default_graph().outermost))
        if made is not None and is_number(value):
            set_values([(made, np.asarray(value, np.float32))])

    def _get_hyper(self, name: str, dtype: Any = None) -> Any:
        """A hyperparameter: its variable in the default graph, a tensor, or a schedule.

        Args:
            name: its name.
            dtype: the dtype to cast it to; None: unchanged.
        """
        value = self._hyper[name]
        if isinstance(value, LearningRateSchedule):
            return value
        if is_number(value):
            value = self._own_variable(name, value)
        elif callable(value) and not isinstance(value, (Tensor, Variable)):
            value = value()
        return value if dtype is None else elementwise.cast(value, dtype)

    def _own_variable(self, name: str, value: Any, dtype: DType = float32) -> Variable:
        graph = get_default_graph().outermost
        if (name, graph) not in self._non_slots:
            scope = graph.get_name_scope() or self._name
            with graph.init_scope(), graph.name_scope(None):
                first = np.asarray(value, dtype.numpy_dtype)
                made = Variable(first, trainable=False, name=f"{scope}/{name}")
            self._non_slots[name, graph] = made
        return self._non_slots[name, graph]

    def __getattr__(self, name: str) -> Any:
        hyper = vars(self).get("_hyper", {})
        name = "learning_rate" if name == "lr" else name
        if name in hyper:
            return self._get_hyper(name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        name = "learning_rate" if name == "lr" else name
        if name in vars(self).get("_hyper", {}):
            self._set_hyper(name, value)
        else:
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._hyper, "lr"})

    def _serialize_hyperparameter(self, hyperparameter_name: str) -> Any:
        value = self._hyper[hyperparameter_name]
        if isinstance(value, LearningRateSchedule):
            return {"class_name": type(value).__name__, "config": value.get_config()}
        if is_number(value):
            graph = get_default_graph().outermost
            made = self._non_slots.get((hyperparameter_name, graph))
            return value if made is None else float(values_of([made])[0])
        if isinstance(value, (Tensor, Variable)):
            return float(convert_to_tensor(value).eval())
        return value()


def is_number(value: Any) -> bool:
    """Whether a hyperparameter is a number, which becomes a variable."""
    return isinstance(value, (int, float, np.number, np.ndarray)) and np.ndim(value) == 0


__all__ = ["Hyperparameters", "is_number"]
