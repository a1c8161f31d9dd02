"""`Optimizer`: the base class of optimizers (`tf.compat.v1.train.Optimizer`).

It computes gradients, manages slots (variables that belong to a variable), names the operations and
increments the global step. Subclasses define the update: by an update rule
(`rule_optimizer.RuleOptimizer`), or by overriding `_create_slots`, `_prepare`, `_apply_dense`,
`_apply_sparse` and `_finish`, as custom optimizers of TensorFlow 1 do. For `_resource_apply_dense`
and `_resource_apply_sparse`, the kind that the most derived class defines is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from estimatorkit.core import builtin_ops, nest
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import DType, bfloat16, float16, float32, float64
from estimatorkit.core.errors import explain, type_error, value_error
from estimatorkit.core.gradients import gradients
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.indexed_slices import IndexedSlices
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.distribute.replica_context import divided_loss, summed_gradients
from estimatorkit.ops.array import array, filling
from estimatorkit.ops.variables.variable_collections import trainable_variables
from estimatorkit.train.optimizers.deduplicate_slices import deduplicate_slices
from estimatorkit.train.optimizers.slot_creator import create_slot

GradientAndVariable = tuple[Any, Any]
_Method = TypeVar("_Method", bound=Callable[..., Any])


def apart_from_own(
    pairs: Sequence[GradientAndVariable], optimizer: Any
) -> tuple[list[GradientAndVariable], dict[Any, list[GradientAndVariable]]]:
    """The pairs that an optimizer updates, and those of variables with their own, by optimizer.

    Args:
        pairs: (gradient, variable) pairs.
        optimizer: the optimizer that is asked to update them.
    """
    by_optimizer: dict[Any, list[GradientAndVariable]] = {}
    made: dict[Any, Any] = {}
    for pair in pairs:
        own = pair[1].optimizer
        if callable(own):
            if own not in made:
                made[own] = own()
            own = pair[1].optimizer = made[own]
        by_optimizer.setdefault(own or optimizer, []).append(pair)
    return by_optimizer.pop(optimizer, []), by_optimizer


def takes_repeated_rows(method: _Method) -> _Method:
    """Marks an `_apply_sparse` that sums repeated rows itself."""
    vars(method)["takes_repeated_rows"] = True
    return method


class Optimizer:
    """The base class of optimizers. Use a subclass, for example `GradientDescentOptimizer`.

    Args:
        use_locking: accepted for compatibility only; updates are always atomic.
        name: the name of the update operations and the slots.

    Raises:
        ValueError: the name is empty.
    """

    GATE_NONE = 0
    GATE_OP = 1
    GATE_GRAPH = 2

    def __init__(self, use_locking: bool, name: str) -> None:
        if not name:
            raise ValueError("Must specify the optimizer name.")
        self._use_locking = use_locking
        self._name = name
        self._slots: dict[str, dict[Variable, Variable]] = {}
        self._non_slots: dict[tuple[str, Graph], Variable] = {}

    def get_name(self) -> str:
        """Returns the name given to the constructor."""
        return self._name

    @property
    def divides_loss(self) -> bool:
        """Whether each replica's loss is divided by their number.

        Losses that sum over the batch are not divided. Not in TensorFlow, where it depends on the
        class too.
        """
        return True

    def minimize(
        self,
        loss: Any,
        global_step: Variable | None = None,
        var_list: Any = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        name: str | None = None,
        grad_loss: Any = None,
    ) -> Operation:
        """Returns an operation that updates variables to reduce `loss`.

        Equivalent to `compute_gradients`, then `apply_gradients`; call these to process gradients.

        Args:
            global_step: a variable to increment after the updates.
            loss, var_list, gate_gradients, aggregation_method, colocate_gradients_with_ops,
                grad_loss: see `compute_gradients`.
            name: the operation's name; the optimizer's by default.

        Raises:
            ValueError: there are no variables, or the loss depends on none of them.
        """
        pairs = self.compute_gradients(
            loss,
            var_list=var_list,
            gate_gradients=gate_gradients,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
            grad_loss=grad_loss,
        )
        if all(gradient is None for gradient, _ in pairs):
            raise value_error(
                "No gradients provided for any variable, check your graph for ops that do not "
                f"support gradients, between variables {_listed(pairs)} and loss {loss}",
                made_at=_source_of(loss),
                hint="a loss that was created before its variables, from NumPy values or through "
                "argmax, casts to integers, comparisons or py_func does not depend on them",
            )
        return self.apply_gradients(pairs, global_step=global_step, name=name)

    def compute_gradients(
        self,
        loss: Any,
        var_list: Any = None,
        gate_gradients: int = GATE_OP,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Any = None,
    ) -> list[GradientAndVariable]:
        """Computes the gradients of `loss` with respect to the variables.

        Args:
            loss: a floating tensor, or a function without arguments that returns it. A tensor is
                summed if it is not a scalar, as in TensorFlow.
            var_list: variables, arbitrarily nested; `trainable_variables()` by default.
            gate_gradients: one of GATE_NONE, GATE_OP, GATE_GRAPH; without effect, since a run reads
                all variables before it changes any.
            aggregation_method, colocate_gradients_with_ops: accepted for compatibility only.
            grad_loss: the gradient of `loss`; ones by default.

        Returns:
            Pairs of a gradient (a tensor, an `IndexedSlices`, or None if the loss does not depend
            on the variable) and a variable.

        Raises:
            ValueError: there are no variables, or the loss or a variable is not floating.
        """
        if gate_gradients not in (self.GATE_NONE, self.GATE_OP, self.GATE_GRAPH):
            raise value_error(
                "gate_gradients must be one of: Optimizer.GATE_NONE, Optimizer.GATE_OP, "
                "Optimizer.GATE_GRAPH",
                received=repr(gate_gradients),
            )
        target = convert_to_tensor(loss() if callable(loss) else loss, name="loss")
        if self.divides_loss:
            target = divided_loss(target)
        self._assert_valid_dtypes([target])
        if grad_loss is not None:
            grad_loss = convert_to_tensor(grad_loss, name="grad_loss")
            self._assert_valid_dtypes([grad_loss])
        chosen = trainable_variables() if var_list is None else nest.flatten(var_list)
        if not chosen:
            raise value_error(
                "No variables to optimize",
                expected="at least one variable",
                received="no trainable variable in the default graph"
                if var_list is None
                else f"var_list={var_list!r}",
                hint="make the model's variables before the optimizer's operation, in the same "
                "graph, with trainable=True",
            )
        found = gradients(
            target,
            chosen,
            grad_ys=grad_loss,
            gate_gradients=gate_gradients == self.GATE_OP,
            aggregation_method=aggregation_method,
            colocate_gradients_with_ops=colocate_gradients_with_ops,
        )
        pairs = list(zip(found, chosen, strict=True))
        self._assert_valid_dtypes([each for gradient, each in pairs if gradient is not None])
        return pairs

    def apply_gradients(
        self,
        grads_and_vars: Iterable[GradientAndVariable],
        global_step: Variable | None = None,
        name: str | None = None,
        skip_gradients_aggregation: bool = False,
    ) -> Operation:
        """Returns an operation that applies gradients to variables.

        Args:
            grads_and_vars: pairs as from `compute_gradients`. A gradient is convertible to a
                tensor, an `IndexedSlices`, or None (the variable is not updated).
            global_step: a variable to increment after the updates.
            name: the operation's name; the optimizer's by default.
            skip_gradients_aggregation: whether replicas skip summing gradients, because these are
                already the same.

        Returns:
            The operation, which is also added to the TRAIN_OP collection.

        Raises:
            ValueError: there are no pairs, or none with a gradient, or a gradient does not match
                its variable.
            TypeError: an item is not a pair, or `global_step` is not a variable.
            NotImplementedError: a pair's second item is a tensor.
            RuntimeError: a variable with a constraint has a sparse gradient.
        """
        pairs = [checked_pair(pair) for pair in grads_and_vars]
        if not pairs:
            raise ValueError("No variables provided.")
        updated = [(gradient, each) for gradient, each in pairs if gradient is not None]
        if not updated:
            raise ValueError(f"No gradients provided for any variable: {_listed(pairs)}.")
        if global_step is not None and not isinstance(global_step, Variable):
            raise type_error(
                "global_step must be a variable",
                expected="a Variable, such as get_or_create_global_step()",
                received=repr(global_step)[:200],
            )
        graph = get_default_graph()
        updated, of_others = apart_from_own(updated, self)
        others = [other.apply_gradients(pairs) for other, pairs in of_others.items()]
        if not updated:  # every variable has its own optimizer
            with graph.control_dependencies(others):
                done = builtin_ops.no_op() if global_step is None else global_step.assign_add(1).op
            self._note_train_op(done)
            return done
        with graph.init_scope():
            self._create_slots([each for _, each in updated])
        with graph.name_scope(name or self._name) as scope:
            self._prepare()
            if not skip_gradients_aggregation:
                sums = summed_gradients([gradient for gradient, _ in updated])
                updated = [(each, var) for each, (_, var) in zip(sums, updated, strict=True)]
            updates = self._updates(updated) + others
            if global_step is None:
                done = self._finish(updates, scope)
            else:
                finished = self._finish(updates, "update")
                with graph.control_dependencies([finished]), graph.colocate_with(global_step):
                    done = global_step.assign_add(1, name=scope).op
        self._note_train_op(done)
        return done

    def _note_train_op(self, operation: Operation) -> None:
        """Adds an operation to TRAIN_OP, unless it is within a branch or loop."""
        graph = get_default_graph()
        known = graph.get_collection_ref(GraphKeys.TRAIN_OP)
        if graph is graph.outermost and operation not in known:
            known.append(operation)

    def _updates(self, pairs: Sequence[GradientAndVariable]) -> list[Any]:
        """Returns the update operations of pairs whose gradients are not None."""
        return [self._update(gradient, variable) for gradient, variable in pairs]

    def _update(self, gradient: Any, variable: Variable) -> Operation:
        graph = get_default_graph()
        update: Operation
        with graph.name_scope(f"update_{variable.op.name}"), graph.colocate_with(variable):
            if not isinstance(gradient, IndexedSlices):
                name = self._nearer("_resource_apply_dense", "_apply_dense")
                update = getattr(self, name)(gradient, variable)
            elif variable.constraint is None:
                update = self._rows_update(gradient, variable)
            else:
                raise RuntimeError(
                    explain(
                        "Cannot use a constraint function on a sparse variable",
                        received=f"{variable.name}, with a sparse gradient",
                        made_at=variable.op.source,
                        hint="make the gradient dense (convert_to_tensor), or drop the constraint",
                    )
                )
            if variable.constraint is not None:
                with graph.control_dependencies([update]):
                    update = variable.assign(variable.constraint(variable.read_value())).op
        return update

    def _rows_update(self, gradient: IndexedSlices, variable: Variable) -> Any:
        resource = "_resource_apply_sparse_duplicate_indices"
        name = self._nearer(resource, "_apply_sparse_duplicate_indices")
        return self._call_for_rows(name, gradient, variable, name == resource)

    def _call_for_rows(
        self, name: str, gradient: IndexedSlices, variable: Variable, separate: bool
    ) -> Any:
        method = getattr(self, name)
        if separate:
            return method(gradient.all_values, variable, gradient.all_indices)
        return method(gradient, variable)

    def _nearer(self, resource: str, other: str) -> str:
        """Returns which of two methods the most derived class defines; `other` if both."""
        kind = next(
            each for each in type(self).__mro__ if resource in vars(each) or other in vars(each)
        )
        return other if other in vars(kind) else resource

    def get_slot(self, var: Variable, name: str) -> Variable | None:
        """Returns the slot `name` of `var`, or None."""
        return self._slots.get(name, {}).get(var)

    def get_slot_names(self) -> list[str]:
        """Returns the names of the slots created by the optimizer."""
        return sorted(self._slots)

    def variables(self) -> list[Variable]:
        """Returns the optimizer's own variables in the default graph, by name."""
        graph = get_default_graph().outermost
        own = [*self._non_slots.values()]
        own.extend(slot for of_name in self._slots.values() for slot in of_name.values())
        return sorted((each for each in own if each.graph is graph), key=lambda each: each.name)

    def _zeros_slot(self, var: Variable, slot_name: str, op_name: str) -> Variable:
        """Returns the slot, initialized to zeros if it is created."""
        return self._slot(var, slot_name, op_name, lambda: filled_like(var, 0.0))

    def _get_or_make_slot(self, var: Variable, val: Any, slot_name: str, op_name: str) -> Variable:
        """Returns the slot, initialized to `val` (a tensor or number) if it is created."""

        def value() -> Any:
            return filled_like(var, val) if isinstance(val, (int, float)) else val

        return self._slot(var, slot_name, op_name, value)

    def _slot(
        self, variable: Variable, slot_name: str, op_name: str, value: Callable[[], Any]
    ) -> Variable:
        of_name = self._slots.setdefault(slot_name, {})
        if variable not in of_name:
            of_name[variable] = create_slot(variable, value, op_name)
        return of_name[variable]

    def _get_or_make_slot_with_initializer(
        self, var: Variable, initializer: Any, shape: Any, dtype: Any, slot_name: str, op_name: str
    ) -> Variable:
        """Returns the slot, initialized by `initializer` if it is created."""
        return self._slot(var, slot_name, op_name, lambda: initializer(shape, dtype))

    def _slot_dict(self, slot_name: str) -> dict[Variable, Variable]:
        """Returns the slots of one name, by variable."""
        return self._slots.setdefault(slot_name, {})

    def _call_if_callable(self, param: Any) -> Any:
        """Returns a hyperparameter's value, calling it if it is callable."""
        return param() if callable(param) else param

    def _resource_scatter_add(self, x: Variable, i: Any, v: Any) -> Tensor:
        """Adds the rows `v` to `x` at `i`."""
        return x.scatter_add(IndexedSlices(v, i))

    def _create_non_slot_variable(
        self, initial_value: Any, name: str, colocate_with: Any
    ) -> Variable:
        """Returns the graph's variable `name` that is not a slot, creating it once."""
        key = (name, colocate_with.graph)
        if key not in self._non_slots:
            with colocate_with.graph.colocate_with(colocate_with):
                self._non_slots[key] = Variable(initial_value, name=name, trainable=False)
        return self._non_slots[key]

    def _get_non_slot_variable(self, name: str, graph: Graph | None = None) -> Variable:
        """Returns a variable of `_create_non_slot_variable`."""
        return self._non_slots[name, graph or get_default_graph().outermost]

    def _valid_dtypes(self) -> Sequence[DType]:
        """Returns the valid dtypes of losses and variables."""
        return (float32, float64, float16, bfloat16)

    def _assert_valid_dtypes(self, values: Iterable[Any]) -> None:
        valid = self._valid_dtypes()
        for value in values:
            if value.dtype not in valid:
                names = ", ".join(map(repr, valid))
                raise value_error(
                    f"Invalid type {value.dtype!r} for {value.name}, expected: [{names}]",
                    made_at=_source_of(value),
                    hint="cast the model's numbers to float32",
                )

    def _create_slots(self, var_list: Sequence[Variable]) -> None:
        """Creates the slots of the variables (none by default)."""

    def _prepare(self) -> None:
        """Creates the tensors of the hyperparameters (none by default)."""

    def _apply_dense(self, grad: Tensor, var: Variable) -> Operation:
        """Returns an operation that applies a dense gradient."""
        raise NotImplementedError(f"{type(self).__name__} does not implement gradient updates.")

    def _resource_apply_dense(self, grad: Tensor, handle: Variable) -> Operation:
        """TensorFlow's name of `_apply_dense` for resource variables."""
        return self._apply_dense(grad, handle)

    @takes_repeated_rows
    def _apply_sparse(self, grad: IndexedSlices, var: Variable) -> Operation:
        """Returns an operation that applies a sparse gradient; by default it is made dense."""
        name = self._nearer("_resource_apply_dense", "_apply_dense")
        applied: Operation = getattr(self, name)(convert_to_tensor(grad), var)
        return applied

    def _resource_apply_sparse(self, grad: Tensor, handle: Variable, indices: Tensor) -> Operation:
        """TensorFlow's name of `_apply_sparse` for resource variables."""
        return self._apply_sparse(_rows_of(handle, grad, indices), handle)

    def _apply_sparse_duplicate_indices(self, grad: IndexedSlices, var: Variable) -> Any:
        """Applies a sparse gradient whose repeated rows are summed first (`deduplicate_slices`)."""
        resource = "_resource_apply_sparse"
        name = self._nearer(resource, "_apply_sparse")
        rows = var.shape[0]
        if rows is not None and not hasattr(getattr(self, name), "takes_repeated_rows"):
            with get_default_graph().without_tests():
                summed = deduplicate_slices(grad, rows)
                return self._call_for_rows(name, summed, var, name == resource)
        return self._call_for_rows(name, grad, var, name == resource)

    def _resource_apply_sparse_duplicate_indices(
        self, grad: Tensor, handle: Variable, indices: Tensor
    ) -> Operation:
        """The same for resource variables."""
        rows = _rows_of(handle, grad, indices)
        applied: Operation = self._apply_sparse_duplicate_indices(rows, handle)
        return applied

    def _finish(self, update_ops: Sequence[Operation], name_scope: str) -> Operation:
        """Returns an operation that depends on all updates."""
        operation: Operation = builtin_ops.group(*update_ops, name=name_scope)
        return operation


def _rows_of(variable: Variable, values: Tensor, indices: Tensor) -> IndexedSlices:
    return IndexedSlices(values, indices, array.shape(variable.read_value()))


def filled_like(variable: Variable, value: float) -> Tensor:
    if variable.shape.is_fully_defined():
        number = variable.dtype.numpy_dtype.type(value)
        return filling.fill(variable.shape.as_list(), number)
    return filling.zeros_like(variable.initial_value) + value


def part_of_mean(loss: Tensor, optimizer: Optimizer) -> Tensor:
    """Divides a replica's loss by their number, unless the optimizer's `divides_loss` is true."""
    return loss if optimizer.divides_loss else divided_loss(loss)


def checked_pair(pair: Any) -> GradientAndVariable:
    """Validates a (gradient, variable) pair, and converts its gradient."""
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise type_error(
            "apply_gradients requires pairs",
            expected="(gradient, variable), as returned by compute_gradients",
            received=repr(pair)[:200],
        )
    gradient, variable = pair
    if isinstance(variable, Tensor):
        raise NotImplementedError(
            explain(
                f"Trying to update a Tensor {variable}",
                expected="a Variable",
                made_at=variable.op.source,
            )
        )
    if not isinstance(variable, Variable):
        raise type_error(
            "apply_gradients cannot update this",
            expected="(gradient, variable)",
            received=repr(pair)[:200],
            hint="the variable is the second item of the pair",
        )
    if gradient is None:
        return None, variable
    if isinstance(gradient, IndexedSlices):
        expected, shape = variable.shape[1:], gradient.all_values.shape[1:]
    else:
        gradient = convert_to_tensor(gradient, dtype_hint=variable.dtype, name="gradient")
        expected, shape = variable.shape, gradient.shape
    if not shape.is_compatible_with(expected) or gradient.dtype is not variable.dtype:
        raise value_error(
            f"the gradient does not fit variable {variable.op.name}",
            expected=f"{variable.dtype.name} of shape {expected}",
            received=f"{gradient.dtype.name} of shape {shape}, {gradient.name}",
            made_at=variable.op.source,
        )
    return gradient, variable


def _listed(pairs: Iterable[GradientAndVariable]) -> list[str]:
    return [str(variable) for _, variable in pairs]


def _source_of(value: Any) -> Any:
    operation = getattr(value, "op", None)
    return operation.source if isinstance(operation, Operation) else None


__all__ = ["Optimizer", "checked_pair", "part_of_mean", "takes_repeated_rows"]
