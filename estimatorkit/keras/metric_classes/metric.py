"""Keras metrics: `Metric`, and `StreamingMetric`, which is a formula of sums.

A metric's variables are neither trainable nor in checkpoints: their collections are LOCAL_VARIABLES
and METRIC_VARIABLES, so that the start of each evaluation resets them. `update_state` gives an
operation, which `updates` lists; `result` gives a tensor; so a metric may stand among an
`EstimatorSpec`'s `eval_metric_ops`. A `StreamingMetric` makes its variables in the graph in which
it is first used, and keeps them for each graph: one object serves the graphs of training and of
evaluation. Values are sums over examples, never means of batches.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from estimatorkit.core import builtin_ops
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.default_session import get_default_session
from estimatorkit.core.dtypes import DType, as_dtype, float32
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.shapes import as_shape
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.layers import initializers
from estimatorkit.layers.engine.arguments import kept_arguments
from estimatorkit.layers.engine.call_record import MetricCall, record_of
from estimatorkit.layers.metrics.streaming import metric_variable, variables_of


@dataclass
class _InGraph:
    """A metric's variables and tensors in one graph."""

    scope: str | None = None
    variables: list[Variable] = field(default_factory=list)
    sums: dict[str, Variable] = field(default_factory=dict)
    updates: list[Operation] = field(default_factory=list)
    reset: Operation | None = None


class Metric:
    """Base class of metrics. Subclasses create variables with `add_weight` and define two methods.

    `update_state(...)` changes the variables. It need not return anything: the assignments it makes
    are found. `result()` returns a tensor, a variable, or a dict of these. Calling a metric updates
    its state and returns the result.

    Args:
        name: the metric's name; by default that of the class in snake case, made unique.
        dtype: the dtype of its variables; float32 by default.
        kwargs: accepted for Keras's signature (`trainable`, `dynamic`).
    """

    def __init__(self, name: str | None = None, dtype: Any = None, **kwargs: Any) -> None:
        self._name = name or record_of().unique_name(_snake_case(type(self).__name__))
        self._dtype: DType = float32 if dtype is None else as_dtype(dtype)
        self._updating = False
        self.stateful = True

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name, wrapper in (("update_state", _updating), ("result", _tensors)):
            if name in vars(cls):
                setattr(cls, name, wrapper(vars(cls)[name]))

    # -- what a subclass writes

    def update_state(self, *args: Any, **kwargs: Any) -> Any:
        """Adds a batch to the state, and returns the operation that does so."""
        raise NotImplementedError("Must be implemented in subclasses.")

    def result(self) -> Any:
        """Returns the metric over all batches added so far."""
        raise NotImplementedError("Must be implemented in subclasses.")

    def add_weight(
        self,
        name: str,
        shape: Any = (),
        aggregation: Any = None,
        synchronization: Any = None,
        initializer: Any = None,
        dtype: Any = None,
    ) -> Variable:
        """Creates a variable.

        Args:
            name: its name, below the current name scope and not below the metric's, as in Keras.
            shape: its shape.
            aggregation, synchronization: accepted for Keras's signature.
            initializer: an initializer or its name; 'zeros' by default.
            dtype: its dtype; the metric's by default.
        """
        state = self._in_graph
        kind = self._dtype if dtype is None else as_dtype(dtype)
        dims = as_shape(shape).as_list()
        start = None
        if initializer not in (None, "zeros"):
            make = initializers.registry.get(initializer)
            start = make(dims, dtype=kind)
        variable = metric_variable(dims, kind, name, start)
        state.variables.append(variable)
        state.reset = None
        return variable

    # -- what it has

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    @property
    def dtype(self) -> str:
        """The name of its dtype."""
        return self._dtype.name

    @property
    def variables(self) -> list[Variable]:
        """Its variables in the default graph."""
        return list(self._in_graph.variables)

    @property
    def weights(self) -> list[Variable]:
        """Its variables in the default graph."""
        return self.variables

    @property
    def non_trainable_weights(self) -> list[Variable]:
        """Its variables in the default graph."""
        return self.variables

    @property
    def non_trainable_variables(self) -> list[Variable]:
        """Its variables in the default graph."""
        return self.variables

    @property
    def trainable_weights(self) -> list[Variable]:
        """None of them."""
        return []

    @property
    def trainable_variables(self) -> list[Variable]:
        """None of them."""
        return []

    @property
    def updates(self) -> list[Operation]:
        """The operations that `update_state` has returned in the default graph."""
        return list(self._in_graph.updates)

    @property
    def _in_graph(self) -> _InGraph:
        held: _InGraph = record_of(get_default_graph().outermost).metrics.setdefault(
            self, _InGraph()
        )
        return held

    def _scope(self) -> Any:
        state = self._in_graph
        name = state.scope or re.sub(r"[^A-Za-z0-9_.\\/>-]", "_", self._name)
        return _Remembered(get_default_graph().name_scope(name), state)

    # -- what is done with it

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Adds a batch to the state (see `update_state`), and returns the result including it."""
        update = self.update_state(*args, **kwargs)
        with get_default_graph().control_dependencies([update]):
            result = self.result()
        if isinstance(result, Tensor):
            record_of().metric_calls[result] = MetricCall(self, args, kwargs, update)
        return result

    def reset_state(self) -> Operation:
        """Resets the variables.

        Returns:
            The operation that resets them; it has been run in the default session or, without one,
            in Keras's (`keras.backend.get_session`) if there is one.
        """
        state, variables = self._in_graph, self.variables
        if state.reset is None:
            with get_default_graph().outermost.as_default():
                state.reset = builtin_ops.group(*(each.initializer for each in variables))
        graph = state.reset.graph
        for session in (get_default_session(), record_of(graph).session):
            if session is not None and session.graph is graph:
                session.run(state.reset)
                break
        return state.reset

    def reset_states(self) -> Operation:
        """The older name of `reset_state`."""
        return self.reset_state()

    def merge_state(self, metrics: Iterable[Metric]) -> list[Tensor]:
        """Returns operations that add the state of other metrics of this class to this one's.

        Raises:
            ValueError: a metric has different variables.
        """
        found = []
        for metric in metrics:
            if len(metric.variables) != len(self.variables):
                raise ValueError(f"Metric {metric} is not compatible with {self}")
            for mine, other in zip(self.variables, metric.variables, strict=True):
                found.append(mine.assign_add(other.value()))
        return found

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments from which `from_config` creates an equal metric."""
        own = kept_arguments(self, Metric, ("name", "dtype"))
        return {"name": self._name, "dtype": self.dtype, **own}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Metric:
        """Creates a metric from the result of `get_config`, here or in TensorFlow."""
        return cls(**config)

    def __repr__(self) -> str:
        given = ",".join(f"{key}={value}" for key, value in self.get_config().items())
        return f"{type(self).__name__}({given})"


class _Remembered:
    """A name scope that is made once in a graph and entered again after that."""

    def __init__(self, scope: Any, state: _InGraph) -> None:
        self._scope = scope
        self._state = state

    def __enter__(self) -> None:
        self._state.scope = self._scope.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._scope.__exit__(*error)


def _snake_case(name: str) -> str:
    """As Keras: 'AUC' is 'auc', 'MeanIoU' is 'mean_io_u'."""
    spaced = re.sub(r"(.)([A-Z][a-z0-9]+)", r"\1_\2", re.sub(r"\W+", "", name))
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", spaced).lower().strip("_")


def _updating(method: Callable[..., Any]) -> Callable[..., Any]:
    """`update_state`, which gives one operation that does all that the method assigned."""

    @functools.wraps(method)
    def update_state(self: Metric, *args: Any, **kwargs: Any) -> Any:
        if self._updating:  # called by a subclass's
            return method(self, *args, **kwargs)
        self._updating = True
        try:
            with get_default_graph().program_order() as assignments:
                returned = method(self, *args, **kwargs)
        finally:
            self._updating = False
        done = [*assignments, *([] if returned is None else [returned])]
        with self._scope():
            update: Operation = builtin_ops.group(*done, name="update")
        self._in_graph.updates.append(update)
        return update

    return update_state


def _tensors(method: Callable[..., Any]) -> Callable[..., Any]:
    """`result`, which gives tensors."""

    @functools.wraps(method)
    def result(self: Metric) -> Any:
        found = method(self)
        if isinstance(found, Mapping):
            return {key: convert_to_tensor(each) for key, each in found.items()}
        return convert_to_tensor(found)

    return result


class StreamingMetric(Metric):
    """Base class of metrics that are computed from sums over examples.

    Subclasses define `sums`, a batch's contribution to each sum, and `value`, the metric.
    The sums are attributes: `metric.total` is the variable of that name in the default graph.
    """

    def sums(self, y_true: Any, y_pred: Any, sample_weight: Any) -> Mapping[str, Tensor]:
        """Returns a batch's contribution to each sum, by the sum's name."""
        raise NotImplementedError("Must be implemented in subclasses.")

    def value(self, *sums: Tensor) -> Tensor:
        """Returns the metric given the sums, in the order of `sums`."""
        raise NotImplementedError("Must be implemented in subclasses.")

    def shapes(self) -> Mapping[str, Any] | None:
        """The shapes of the sums, or None if they follow from the first batch."""
        return None

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """Adds a batch to the sums.

        Args:
            y_true: labels `(batch, ...)`.
            y_pred: predictions `(batch, ...)`.
            sample_weight: None, a scalar, or weights `(batch, ...)`: an example of weight 2 counts
                as two.

        Returns:
            The operation that does so.
        """
        return self.add_sums(self.sums(y_true, y_pred, sample_weight))

    def result(self) -> Any:
        """Returns the metric over all batches added so far, as a tensor.

        Raises:
            ValueError: `update_state` was never called in this graph, and the shapes are unknown.
        """
        held = self._held()
        if not held:
            raise value_error(
                f"{type(self).__name__} does not have any value yet",
                expected="update_state(...) called in this graph before result()",
                hint="its variables take their shapes from the first batch",
            )
        return self.value(*(each.value() for each in held.values()))

    def add_sums(self, increments: Mapping[str, Tensor]) -> Operation:
        """The operation that adds to the sums; their variables are made if there are none."""
        state = self._in_graph
        if not state.sums:
            self._hold(dict(zip(increments, variables_of(increments), strict=True)))
        with self._scope():
            added = [state.sums[key].assign_add(each) for key, each in increments.items()]
            done: Operation = builtin_ops.group(*added)
            return done

    def _hold(self, sums: dict[str, Variable]) -> None:
        state = self._in_graph
        state.sums = sums
        state.variables.extend(sums.values())
        state.reset = None

    def _held(self) -> dict[str, Variable]:
        state = self._in_graph
        shapes = None if state.sums else self.shapes()
        if shapes is not None:
            self._hold(
                {
                    key: metric_variable(as_shape(shape).as_list(), self._dtype, key)
                    for key, shape in shapes.items()
                }
            )
        return state.sums

    @property
    def variables(self) -> list[Variable]:
        """Its variables in the default graph."""
        self._held()
        return super().variables

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and "_dtype" in vars(self):
            held = self._held()
            if name in held:
                return held[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
