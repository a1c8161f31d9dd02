"""`Optimizer`, the base of the Keras optimizers (`tf.keras.optimizers.legacy.Optimizer`).

A `train.Optimizer` whose hyperparameters are variables, so that a learning rate can change between
steps without recompilation; it counts its own steps (`iterations`) and clips gradients. One object
may serve several graphs, with separate variables in each. Names, the order of variables and the
keys in object checkpoints are those of Keras 2.15's optimizers in graph mode.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from estimatorkit.core import builtin_ops, nest
from estimatorkit.core.dtypes import DType, float32, float64, int64
from estimatorkit.core.errors import explain, type_error, value_error
from estimatorkit.core.gradients import gradients
from estimatorkit.core.graph import Graph, get_default_graph, is_within_as_default
from estimatorkit.core.indexed_slices import IndexedSlices
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.distribute.replica_context import summed_gradients
from estimatorkit.keras.optimizers.hyperparameters import Hyperparameters, is_number
from estimatorkit.keras.optimizers.schedules import (
    LearningRateSchedule,
    deserialize as deserialize_schedule,
)
from estimatorkit.layers import initializers
from estimatorkit.layers.engine.sessions import set_values, values_of
from estimatorkit.logger import logger
from estimatorkit.ops.math import elementwise
from estimatorkit.ops.variables.initializers import Zeros
from estimatorkit.train.optimizers import optimizer as train_optimizer
from estimatorkit.train.optimizers.clip import clip_by_global_norm, clip_by_norm
from estimatorkit.train.optimizers.deduplicate_slices import deduplicate_slices
from estimatorkit.train.optimizers.optimizer import GradientAndVariable

Transformer = Callable[[list[GradientAndVariable]], Iterable[GradientAndVariable]]
_CLIPPING = ("clipnorm", "clipvalue", "global_clipnorm")
_ALLOWED = (*_CLIPPING, "decay", "jit_compile", "lr", "use_ema", "weight_decay")


class Optimizer(Hyperparameters):
    """Base class of the Keras optimizers. Use a subclass such as `Adam`.

    A custom optimizer calls `_set_hyper` in its constructor and overrides `_create_slots` (with
    `add_slot`), `_resource_apply_dense`, `_resource_apply_sparse` and `get_config`; its update
    rules read `_get_hyper`, `_decayed_lr` and `get_slot`.

    Args:
        name: the name scope of its operations and variables.
        gradient_aggregator: accepted for Keras' signature.
        gradient_transformers: functions from a list of (gradient, variable) pairs to another,
            applied before each step.
        **kwargs: `clipvalue` clips gradients by value, `clipnorm` each gradient by its norm,
            `global_clipnorm` all of them by their joint norm; `decay` divides the learning rate by
            1 + decay * iterations; `lr` is an alias of `learning_rate`; `weight_decay` subtracts
            this fraction of a variable, times the learning rate, at each step; `jit_compile` and
            `use_ema=False` are accepted for the signatures of Keras 2.11 and later.

    Raises:
        TypeError: an argument is unknown.
        ValueError: an argument is negative, or two exclude each other.
    """

    _HAS_AGGREGATE_GRAD = True

    def __init__(
        self,
        name: str,
        gradient_aggregator: Any = None,
        gradient_transformers: Sequence[Transformer] | None = None,
        **kwargs: Any,
    ) -> None:
        self._hyper: dict[str, Any] = {}
        super().__init__(use_locking=True, name=name)
        for key, value in kwargs.items():
            if key not in _ALLOWED:
                raise type_error(
                    f"Unexpected keyword argument passed to optimizer: {key}",
                    expected=f"some of {', '.join(_ALLOWED)}",
                )
            if value is not None and isinstance(value, (int, float)) and value < 0:
                raise ValueError(f"Expected {key} >= 0, received: {value}")
        if kwargs.get("use_ema"):
            raise value_error(
                "use_ema=True is not part of these optimizers",
                hint="keep averages with train.ExponentialMovingAverage",
            )
        self.clipnorm = kwargs.get("clipnorm")
        self.clipvalue = kwargs.get("clipvalue")
        self.global_clipnorm = kwargs.get("global_clipnorm")
        if self.clipnorm is not None and self.global_clipnorm is not None:
            raise ValueError(
                "Cannot accept both `clipnorm` and `global_clipnorm`. Received: "
                f"`clipnorm`={self.clipnorm}, `global_clipnorm`={self.global_clipnorm}."
            )
        self.weight_decay = kwargs.get("weight_decay")
        self.gradient_transformers = list(gradient_transformers or ())
        self._initial_decay = kwargs.get("decay") or 0.0
        self._weights: dict[Graph, list[Variable]] = {}
        self._undecayed: tuple[str, ...] = ()

    @property
    def divides_loss(self) -> bool:
        """False: as in Keras, the `model_fn` divides its loss by the number of replicas."""
        return False

    def _decayed_lr(self, var_dtype: Any) -> Tensor:
        """The learning rate of this step."""
        rate = self._get_hyper("learning_rate")
        if isinstance(rate, LearningRateSchedule):
            rate = rate(elementwise.cast(self.iterations, var_dtype))
        rate = elementwise.cast(rate, var_dtype)
        if self._initial_decay:
            done = elementwise.cast(self.iterations, var_dtype)
            rate = rate / (1.0 + self._initial_decay * done)
        return rate

    @property
    def iterations(self) -> Variable:
        """The step counter in the default graph.

        Outside of all `with graph.as_default():` blocks, if the default graph has none: that of the
        graph that ran steps last.
        """
        graph = get_default_graph().outermost
        if ("iter", graph) not in self._non_slots:
            counters = [each for (name, _), each in self._non_slots.items() if name == "iter"]
            if counters and not is_within_as_default():
                return counters[-1]
            made = self._own_variable("iter", 0, int64)
            self._weights.setdefault(graph, []).insert(0, made)
        return self._non_slots["iter", graph]

    @iterations.setter
    def iterations(self, variable: Variable) -> None:
        graph = get_default_graph().outermost
        known = self._non_slots.get(("iter", graph))
        if known is variable:
            return
        if known is not None:
            raise RuntimeError(
                explain(
                    "Cannot set `iterations` to a new Variable after the Optimizer weights have "
                    "been created",
                    expected=known,
                    received=variable,
                )
            )
        self._non_slots["iter", graph] = variable
        self._weights.setdefault(graph, []).insert(0, variable)

    # -- steps

    def minimize(  # type: ignore[override]
        self,
        loss: Any,
        var_list: Any = None,
        grad_loss: Any = None,
        name: str | None = None,
        tape: Any = None,
        *,
        global_step: Variable | None = None,
        **kwargs: Any,
    ) -> Operation:
        """An operation that minimizes `loss`.

        Args:
            loss: a scalar tensor, or a function without arguments that returns one.
            var_list: variables, nested, or a function that returns them, called after `loss`; the
                trainable variables by default.
            grad_loss: the gradient with respect to `loss`.
            name: the operation's name.
            tape: accepted for Keras' signature.
            global_step: a variable that counts the steps instead of `iterations`; estimators' heads
                pass the global step, and names then begin with 'training/', as in TensorFlow.
            **kwargs: those of `train.Optimizer.minimize`, without effect.
        """
        graph = get_default_graph()
        if global_step is not None:
            self.iterations = global_step
            with graph.name_scope("training"):
                return self.minimize(loss, var_list, grad_loss, name, tape)
        made = loss() if callable(loss) else loss
        chosen = var_list() if callable(var_list) else var_list
        with graph.name_scope(f"{self._name}/gradients"):
            pairs = self._compute_gradients(made, chosen, grad_loss)
        return self.apply_gradients(pairs, name)

    def _compute_gradients(
        self, loss: Any, var_list: Any, grad_loss: Any = None, tape: Any = None
    ) -> list[GradientAndVariable]:
        return self.compute_gradients(self._transform_loss(loss), var_list, grad_loss=grad_loss)

    def _transform_loss(self, loss: Any) -> Any:
        """The value to differentiate: the loss, unless a subclass scales it."""
        return loss

    def get_gradients(self, loss: Any, params: Any) -> list[Any]:
        """The gradients of `loss` with respect to variables.

        Raises:
            ValueError: the loss does not depend on one of them.
        """
        variables = nest.flatten(params)
        with get_default_graph().name_scope(f"{self._name}/gradients"):
            found = gradients(loss, variables)
        for gradient, variable in zip(found, variables, strict=True):
            if gradient is None:
                raise value_error(
                    f"Variable {variable} has `None` for gradient",
                    made_at=variable.op.source,
                    hint="operations without a gradient are argmax, round, casts to integers",
                )
        return found

    def get_updates(self, loss: Any, params: Any) -> list[Operation]:
        """`minimize` as a list of operations."""
        variables = nest.flatten(params)
        found = self.get_gradients(loss, variables)
        return [self.apply_gradients(list(zip(found, variables, strict=True)))]

    def apply_gradients(  # type: ignore[override]
        self,
        grads_and_vars: Iterable[GradientAndVariable],
        name: str | None = None,
        experimental_aggregate_gradients: bool = True,
        skip_gradients_aggregation: bool = False,
        *,
        global_step: Variable | None = None,
    ) -> Operation:
        """An operation that applies gradients to variables and counts the step.

        Args:
            grads_and_vars: (gradient, variable) pairs; pairs without gradient are skipped with a
                warning.
            name: the operation's name; the optimizer's by default.
            experimental_aggregate_gradients, skip_gradients_aggregation: accepted for Keras'
                signatures; replicas always have the summed gradients.
            global_step: a variable that counts the steps instead of `iterations`.

        Raises:
            ValueError: there is no gradient, or one is incompatible with its variable.
        """
        given = [train_optimizer.checked_pair(pair) for pair in grads_and_vars]
        pairs = [(gradient, variable) for gradient, variable in given if gradient is not None]
        graph = get_default_graph()
        if given and not pairs:
            names = [variable.name for _, variable in given]
            raise ValueError(f"No gradients provided for any variable: {names}.")
        if len(pairs) < len(given):
            names = [variable.name for gradient, variable in given if gradient is None]
            logger.warning(
                "Gradients do not exist for variables %s when minimizing the loss.", names
            )
        if global_step is not None:
            self.iterations = global_step
        pairs, of_others = train_optimizer.apart_from_own(pairs, self)
        variables = [variable for _, variable in pairs]
        with graph.name_scope(self._name):
            with graph.init_scope():
                self._create_all_weights(variables)
            if not given:
                nothing: Operation = builtin_ops.no_op()
                return nothing
            apply_state = self._prepare(variables)
            if experimental_aggregate_gradients and not skip_gradients_aggregation:
                sums = summed_gradients([gradient for gradient, _ in pairs])
                pairs = list(zip(sums, variables, strict=True))
            pairs = self._transform_gradients(pairs)
        with graph.name_scope(name or self._name) as scope:
            self._apply_state = apply_state
            updates = [self._update(gradient, variable) for gradient, variable in pairs]
            updates += [other.apply_gradients(of_other) for other, of_other in of_others.items()]
            with graph.control_dependencies(updates):
                return self.iterations.assign_add(1, name=scope).op

    def _transform_gradients(self, pairs: list[GradientAndVariable]) -> list[GradientAndVariable]:
        """Clips gradients, then applies the `gradient_transformers`."""
        clip = self.clipvalue
        if clip is not None:
            pairs = [(elementwise.clip_by_value(each, -clip, clip), var) for each, var in pairs]
        if self.clipnorm is not None:
            pairs = [(clip_by_norm(each, self.clipnorm), variable) for each, variable in pairs]
        if self.global_clipnorm is not None:
            clipped, _ = clip_by_global_norm([each for each, _ in pairs], self.global_clipnorm)
            pairs = [(each, variable) for each, (_, variable) in zip(clipped, pairs, strict=True)]
        for transform in self.gradient_transformers:
            pairs = list(transform(pairs))
        return pairs

    def _prepare(self, var_list: Sequence[Variable] = ()) -> dict[Any, Any]:  # type: ignore[override]
        """The tensors of a step, by device and dtype of variables (see `_prepare_local`)."""
        state: dict[Any, Any] = {}
        for key in dict.fromkeys((each.device, each.dtype) for each in var_list):
            state[key] = {}
            self._prepare_local(*key, state)
        return state

    def _prepare_local(self, var_device: str, var_dtype: DType, apply_state: Any) -> None:
        """Puts the tensors of a step into `apply_state[var_device, var_dtype]`: 'lr_t'."""
        if "learning_rate" in self._hyper:
            dtype = computed_in(var_dtype)
            apply_state[var_device, var_dtype]["lr_t"] = self._decayed_lr(dtype)

    def _fallback_apply_state(self, var_device: str, var_dtype: DType) -> dict[str, Any]:
        """The tensors of a step, if a subclass did not receive them."""
        state: dict[Any, Any] = {(var_device, var_dtype): {}}
        self._prepare_local(var_device, var_dtype, state)
        found: dict[str, Any] = state[var_device, var_dtype]
        return found

    def _update(self, gradient: Any, variable: Variable) -> Operation:
        decay = self.weight_decay
        if decay is None or any(part in variable.name for part in self._undecayed):
            return super()._update(gradient, variable)
        rate = self._decayed_lr(variable.dtype)
        graph = get_default_graph()
        with graph.control_dependencies([variable.assign_sub(variable * (rate * decay))]):
            return super()._update(gradient, variable)

    def exclude_from_weight_decay(
        self,
        var_list: Sequence[Variable] | None = None,
        var_names: Sequence[str] | None = None,
    ) -> None:
        """Excludes variables from `weight_decay`: `var_list`, and those whose names contain one of
        `var_names`."""
        named = [each.name for each in var_list or ()]
        self._undecayed = (*self._undecayed, *named, *(var_names or ()))

    def _call_for_step(self, method: str, *args: Any) -> Any:
        function = getattr(self, method)
        if "apply_state" in inspect.signature(function).parameters:
            return function(*args, apply_state=self._apply_state)
        return function(*args)

    def _apply_dense(self, grad: Any, var: Variable) -> Operation:
        applied: Operation = self._call_for_step("_resource_apply_dense", grad, var)
        return applied

    def _resource_apply_dense(self, grad: Any, handle: Variable) -> Operation:
        """An operation that applies a dense gradient; custom optimizers override it."""
        raise NotImplementedError(f"{type(self).__name__} does not say how to apply a gradient.")

    def _rows_update(self, gradient: IndexedSlices, variable: Variable) -> Any:
        method = "_resource_apply_sparse_duplicate_indices"
        return self._call_for_step(method, gradient.all_values, variable, gradient.all_indices)

    def _resource_apply_sparse_duplicate_indices(
        self, grad: Tensor, handle: Variable, indices: Tensor, **kwargs: Any
    ) -> Any:
        """Applies a gradient of rows that may repeat: sums duplicates first."""
        rows, taken = handle.shape[0], self._resource_apply_sparse
        if rows is not None and not hasattr(taken, "takes_repeated_rows"):
            with get_default_graph().without_tests():
                summed = deduplicate_slices(IndexedSlices(grad, indices), rows)
                return self._call_for_step(
                    "_resource_apply_sparse", summed.values, handle, summed.indices
                )
        return self._call_for_step("_resource_apply_sparse", grad, handle, indices)

    def _nearer(self, resource: str, other: str) -> str:
        return other  # calls the method of Keras's name, with the step's tensors

    # -- variables

    def build(self, var_list: Sequence[Variable]) -> None:
        """Creates the optimizer's variables for `var_list` before the first step."""
        graph = get_default_graph()
        with graph.name_scope(self._name), graph.init_scope():
            self._create_all_weights(var_list)

    def _create_all_weights(self, var_list: Sequence[Variable]) -> None:
        """Creates the optimizer's missing variables."""
        _ = self.iterations
        self._create_hypers()
        self._create_slots(var_list)

    def _create_hypers(self) -> None:
        for name, value in sorted(self._hyper.items()):
            if is_number(value):
                self._own_variable(name, value)

    def add_slot(
        self, var: Variable, slot_name: str, initializer: Any = "zeros", shape: Any = None
    ) -> Variable:
        """Returns the slot `slot_name` of `var`, created if missing.

        Args:
            initializer: an initializer, its name, or an initial value.
            shape: the slot's shape; that of `var` by default.
        """
        of_name = self._slots.setdefault(slot_name, {})
        if var not in of_name:
            is_fixed = shape is not None or var.shape.is_fully_defined()
            size = shape or (var.shape if is_fixed else var.initial_value.shape)
            value = initializer
            if isinstance(initializer, str) or callable(initializer):
                make = initializers.get(initializer) or Zeros()
                value = lambda: make(size, var.dtype)  # noqa: E731  (evaluated in its name scope)
            graph = var.graph
            with graph.init_scope(), graph.colocate_with(var):
                made = Variable(
                    value,
                    trainable=False,
                    name=f"{var.op.name}/{slot_name}",
                    dtype=var.dtype,
                    shape=None if is_fixed else var.shape,
                )
            made.belong_to(var)
            of_name[var] = made
            self._weights.setdefault(graph, []).append(made)
        return of_name[var]

    def add_weight(
        self,
        name: str,
        shape: Any,
        dtype: Any = None,
        initializer: Any = "zeros",
        trainable: bool | None = None,
        **kwargs: Any,
    ) -> Variable:
        """Returns a variable of the optimizer, created once per graph."""
        graph = get_default_graph().outermost
        if (name, graph) not in self._non_slots:
            make = initializers.get(initializer) if not is_number(initializer) else None
            with graph.init_scope():
                first = (lambda: make(shape, dtype or float32)) if make else initializer
                made = Variable(first, trainable=False, name=name, dtype=dtype)
            self._non_slots[name, graph] = made
        return self._non_slots[name, graph]

    def get_slot_names(self) -> list[str]:
        """The names of the slots, in creation order."""
        return list(self._slots)

    def variables(self) -> list[Variable]:
        """`iterations` and the slots in the default graph, in creation order."""
        return list(self._weights.get(get_default_graph().outermost, ()))

    @property
    def weights(self) -> list[Variable]:
        """`variables()`."""
        return self.variables()

    def get_weights(self) -> list[Any]:
        """The values of `weights` in the graph's session, as arrays."""
        return values_of(self.weights)

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Assigns values to `weights`.

        Raises:
            ValueError: the number or a shape of the values does not match.
        """
        known = self.weights
        if len(known) != len(weights):
            raise value_error(
                f"You called `set_weights(weights)` on optimizer {self._name} with a weight "
                f"list of length {len(weights)}, but the optimizer was expecting {len(known)} "
                "weights",
                expected=[each.name for each in known],
                hint="an optimizer has its weights once a step was made",
            )
        for variable, value in zip(known, weights, strict=True):
            if not variable.shape.is_compatible_with(np.shape(value)):
                raise ValueError(
                    f"Optimizer weight shape {variable.shape} not compatible with provided weight "
                    f"shape {np.shape(value)}."
                )
        set_values(list(zip(known, weights, strict=True)))

    # -- as plain values

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments as plain values."""
        config = {"name": self._name}
        for key in (*_CLIPPING, "weight_decay"):
            if getattr(self, key) is not None:
                config[key] = getattr(self, key)
        return config

    @classmethod
    def from_config(
        cls, config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None
    ) -> Any:
        """Creates an optimizer from the result of `get_config`.

        Args:
            config: the arguments; `lr` means `learning_rate`.
            custom_objects: the user's own schedules, by name.
        """
        arguments = dict(config)
        if "lr" in arguments:
            arguments["learning_rate"] = arguments.pop("lr")
        if isinstance(arguments.get("learning_rate"), Mapping):
            arguments["learning_rate"] = deserialize_schedule(
                arguments["learning_rate"], custom_objects
            )
        return cls(**arguments)


def computed_in(dtype: DType) -> DType:
    """The dtype in which a step is computed: float32 for 16-bit variables."""
    return float64 if dtype is float64 else float32


__all__ = ["Optimizer", "computed_in"]
