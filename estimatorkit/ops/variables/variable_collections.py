"""Variable collections, initialization, assignment and creator scopes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from estimatorkit.core import builtin_ops, registry
from estimatorkit.core.conversion import make
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.core.variable_options import Creator
from estimatorkit.core.variables import Variable


def global_variables(scope: str | None = None) -> list[Variable]:
    """The variables that checkpoints save.

    Args:
        scope: a regular expression that names must match at their beginning.
    """
    return get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES, scope)


def local_variables(scope: str | None = None) -> list[Variable]:
    """The variables that checkpoints omit, such as an evaluation's counters."""
    return get_default_graph().get_collection(GraphKeys.LOCAL_VARIABLES, scope)


def trainable_variables(scope: str | None = None) -> list[Variable]:
    """The variables that optimizers update by default: the collection TRAINABLE_VARIABLES."""
    return get_default_graph().get_collection(GraphKeys.TRAINABLE_VARIABLES, scope)


def model_variables(scope: str | None = None) -> list[Variable]:
    """The variables in the collection MODEL_VARIABLES."""
    return get_default_graph().get_collection(GraphKeys.MODEL_VARIABLES, scope)


def moving_average_variables(scope: str | None = None) -> list[Variable]:
    """The variables that have moving averages."""
    return get_default_graph().get_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, scope)


def all_variables() -> list[Variable]:
    """Deprecated alias of `global_variables()`."""
    return global_variables()


def variables_initializer(var_list: Sequence[Variable], name: str = "init") -> Operation:
    """Returns an operation that sets the variables to their initial values."""
    group: Operation = builtin_ops.group(
        *[variable.initializer for variable in var_list], name=name
    )
    return group


def global_variables_initializer() -> Operation:
    """Returns an operation that initializes all global variables."""
    return variables_initializer(global_variables())


def local_variables_initializer() -> Operation:
    """Returns an operation that initializes all local variables."""
    return variables_initializer(local_variables())


def tables_initializer(name: str = "init_all_tables") -> Operation:
    """Returns an operation that initializes all tables, by the collection TABLE_INITIALIZERS."""
    initializers = get_default_graph().get_collection(GraphKeys.TABLE_INITIALIZERS)
    group: Operation = builtin_ops.group(*initializers, name=name)
    return group


def is_variable_initialized(variable: Variable) -> Tensor:
    """A scalar bool tensor: whether the variable has a value in the session."""
    return make("VarIsInitializedOp", {}, {"variable": variable.op.name})


def report_uninitialized_variables(
    var_list: Sequence[Variable] | None = None, name: str = "report_uninitialized_variables"
) -> Tensor:
    """The names of the variables that have no value in the session: a string vector.

    Args:
        var_list: the variables to check; the global and local ones by default.
    """
    variables = [*global_variables(), *local_variables()] if var_list is None else var_list
    names = tuple(variable.op.name for variable in variables)
    return make("ReportUninitializedVariables", {}, {"variables": names}, name)


def assert_variables_initialized(var_list: Sequence[Variable] | None = None) -> Operation | None:
    """An operation that raises `FailedPreconditionError` if a variable is uninitialized.

    Returns None if there are no variables.

    Args:
        var_list: the variables to check; the global and local ones by default.
    """
    variables = [*global_variables(), *local_variables()] if var_list is None else var_list
    names = tuple(variable.op.name for variable in variables)
    if not names:
        return None
    return registry.apply("AssertVariablesInitialized", (), {"variables": names})


def assign(
    ref: Variable,
    value: Any,
    validate_shape: bool | None = None,
    use_locking: bool | None = None,
    name: str | None = None,
) -> Tensor:
    """`ref.assign(value)`."""
    return ref.assign(value, name=name)


def assign_add(
    ref: Variable, value: Any, use_locking: bool | None = None, name: str | None = None
) -> Tensor:
    """`ref.assign_add(value)`."""
    return ref.assign_add(value, name=name)


def assign_sub(
    ref: Variable, value: Any, use_locking: bool | None = None, name: str | None = None
) -> Tensor:
    """`ref.assign_sub(value)`."""
    return ref.assign_sub(value, name=name)


@contextmanager
def variable_creator_scope(variable_creator: Creator) -> Iterator[None]:
    """A context manager in which `variable_creator` makes the variables of `Variable(...)` and
    `get_variable`.

    Args:
        variable_creator: a function `(next_creator, **kwargs)` that returns a variable, usually
            `next_creator(**kwargs)`. `kwargs` are all arguments of `Variable`. The innermost
            creator is called first; the last `next_creator` makes the variable.

    Raises:
        RuntimeError: nested scopes are not exited in reverse order.

    Source: `tf.variable_creator_scope`.
    """
    graph = get_default_graph().outermost
    outer = graph.variable_creators
    inner = graph.variable_creators = (*outer, variable_creator)
    try:
        yield
    finally:
        if graph.variable_creators is not inner:
            raise RuntimeError("Exiting variable_creator_scope without proper nesting.")
        graph.variable_creators = outer
