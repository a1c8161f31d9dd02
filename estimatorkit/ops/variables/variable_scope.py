"""Variable scopes and sharing: `variable_scope` and `get_variable`.

Each graph has one store with its variables by full name and the current scope of each thread. A
scope prefixes variable names and holds defaults and the reuse mode; `Variable(...)` itself sees
only name scopes. `get_variable` calls the custom getters, which wrap `VariableStore.get`.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from enum import Enum
from typing import Any

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import as_dtype, float32
from estimatorkit.core.errors import type_error, value_error
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.variable_options import validated
from estimatorkit.core.variables import Variable
from estimatorkit.ops.variables.partitioned_variables import PartitionedVariable
from estimatorkit.ops.variables.variable_collections import (
    global_variables,
    local_variables,
    trainable_variables,
)
from estimatorkit.ops.variables.variable_store import VariableStore


class _ReuseMode(Enum):
    AUTO_REUSE = "AUTO_REUSE"


AUTO_REUSE = _ReuseMode.AUTO_REUSE
"""Value of `reuse`: creates the variable if it does not exist, shares it otherwise."""


class VariableScope:
    """The defaults and name prefix that enclosing `variable_scope` blocks give to `get_variable`.

    Attributes:
        name: the prefix of variable names, without a trailing '/'.
        reuse: False, True or AUTO_REUSE.
        caching_device, use_resource: accepted for compatibility only.
        original_name_scope: the name scope that was opened with it.
    """

    def __init__(
        self,
        reuse: Any = False,
        name: str = "",
        initializer: Any = None,
        regularizer: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        custom_getter: Any = None,
        name_scope: str = "",
        dtype: Any = float32,
        use_resource: bool | None = None,
        constraint: Any = None,
    ) -> None:
        self.reuse = reuse
        self.name = name
        self.initializer = initializer
        self.regularizer = regularizer
        self.caching_device = caching_device
        self.partitioner = partitioner
        self.custom_getter = custom_getter
        self.original_name_scope = name_scope
        self.dtype = dtype
        self.use_resource = use_resource
        self.constraint = constraint

    def reuse_variables(self) -> None:
        """Sets `reuse` to True."""
        self.reuse = True

    def set_initializer(self, initializer: Any) -> None:
        """Sets the default initializer."""
        self.initializer = initializer

    def set_regularizer(self, regularizer: Any) -> None:
        """Sets the default regularizer."""
        self.regularizer = regularizer

    def set_caching_device(self, caching_device: Any) -> None:
        """Accepted for compatibility only."""
        self.caching_device = caching_device

    def set_partitioner(self, partitioner: Any) -> None:
        """Sets the default partitioner."""
        self.partitioner = partitioner

    def set_custom_getter(self, custom_getter: Any) -> None:
        """Sets the custom getter of `get_variable`."""
        self.custom_getter = custom_getter

    def set_dtype(self, dtype: Any) -> None:
        """Sets the default dtype."""
        self.dtype = dtype

    def set_use_resource(self, use_resource: bool) -> None:
        """Accepted for compatibility only."""
        self.use_resource = use_resource

    def global_variables(self) -> list[Variable]:
        """The global variables under this scope."""
        return global_variables(self._prefix)

    def local_variables(self) -> list[Variable]:
        """The local variables under this scope."""
        return local_variables(self._prefix)

    def trainable_variables(self) -> list[Variable]:
        """The trainable variables under this scope."""
        return trainable_variables(self._prefix)

    def get_collection(self, name: str) -> list[Any]:
        """The items of a collection under this scope."""
        return get_default_graph().get_collection(name, self._prefix)

    @property
    def _prefix(self) -> str | None:
        return f"{self.name}/" if self.name else None


class _OpenScopes(threading.local):
    """Thread-local state: the current variable scope and the counts of opened scopes."""

    def __init__(self) -> None:
        self.scope = VariableScope()
        self.counts: dict[str, int] = {}


class _Store(VariableStore):
    """A graph's variables by name, and the current scope of each thread."""

    def __init__(self) -> None:
        super().__init__()
        self._open = _OpenScopes()

    @property
    def scope(self) -> VariableScope:
        """The current scope of this thread."""
        return self._open.scope

    @scope.setter
    def scope(self, scope: VariableScope) -> None:
        self._open.scope = scope

    @property
    def scope_counts(self) -> dict[str, int]:
        """How many times this thread has opened each scope, by name."""
        return self._open.counts

    @scope_counts.setter
    def scope_counts(self, counts: dict[str, int]) -> None:
        self._open.counts = counts


def _store(graph: Graph | None = None) -> _Store:
    # The outermost graph's: functions share variables by name.
    return (graph or get_default_graph()).outermost.extension(_Store)


def partitioned_variables(graph: Graph | None = None) -> list[PartitionedVariable]:
    """A graph's partitioned variables in creation order; by default the default graph's."""
    return list(_store(graph).partitioned.values())


def get_variable_scope() -> VariableScope:
    """The current variable scope."""
    return _store().scope


@contextmanager
def variable_scope(
    name_or_scope: Any,
    default_name: str | None = None,
    values: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    custom_getter: Any = None,
    reuse: Any = None,
    dtype: Any = None,
    use_resource: bool | None = None,
    constraint: Any = None,
    auxiliary_name_scope: bool = True,
) -> Iterator[VariableScope]:
    """A context manager that prefixes the names of `get_variable`'s variables and opens a name
    scope.

    Args:
        name_or_scope: a name, a `VariableScope` to re-enter, or None to use `default_name`.
        default_name: the name to use, made unique, if `name_or_scope` is None.
        initializer, regularizer, partitioner, dtype: defaults for `get_variable` inside.
        constraint: a default for `get_variable` inside, not inherited by nested scopes.
        values, caching_device, use_resource: accepted for compatibility only.
        custom_getter: a function `(getter, name, **arguments)` called in place of `getter`, which
            looks up or creates the variable. The innermost one is called first. Operations that it
            creates are outside all name scopes.
        reuse: True, AUTO_REUSE, or None or False to inherit.
        auxiliary_name_scope: whether to open the name scope.

    Raises:
        TypeError: neither a name nor a default name is given, or an argument has the wrong type.
        ValueError: `reuse` is invalid, or True with a default name.
        RuntimeError: nested scopes are not exited in reverse order.

    Source: `tf.compat.v1.variable_scope`.
    """
    if name_or_scope is None and default_name is None:
        raise TypeError("If default_name is None then name_or_scope is required")
    if name_or_scope is not None and not isinstance(name_or_scope, (str, VariableScope)):
        raise type_error(
            "VariableScope: name_or_scope must be a string or VariableScope.",
            received=repr(name_or_scope),
        )
    if reuse not in (None, False, True, AUTO_REUSE):
        raise value_error(
            "The reuse parameter must be True or False or None.", received=repr(reuse)
        )
    if not isinstance(auxiliary_name_scope, bool):
        raise TypeError(
            f"The auxiliary_name_scope must be `True` or `False`, while get {auxiliary_name_scope}"
        )
    if name_or_scope is None and reuse:
        raise ValueError("reuse=True cannot be used without a name_or_scope")
    store = _store()
    graph = get_default_graph()
    outer = store.scope
    entered = name_or_scope if isinstance(name_or_scope, VariableScope) else None
    base = entered or outer
    if entered is not None:
        name = entered.name
        leaf = name.rsplit("/", 1)[-1]
    else:
        leaf = str(default_name if name_or_scope is None else name_or_scope)
        unique = _unique_scope(store, leaf) if name_or_scope is None else leaf
        name = f"{outer.name}/{unique}" if outer.name else unique
    current = graph.get_name_scope()
    names = leaf if auxiliary_name_scope else current and f"{current}/"
    stays = auxiliary_name_scope and not leaf
    with nullcontext("") if stays else graph.name_scope(names) as scope:
        inner = VariableScope(
            reuse=reuse or base.reuse,
            name=name,
            initializer=_first(initializer, base.initializer),
            regularizer=_first(regularizer, base.regularizer),
            caching_device=_first(caching_device, base.caching_device),
            partitioner=_first(partitioner, base.partitioner),
            custom_getter=_nested(custom_getter, base.custom_getter),
            name_scope=scope if entered is None else entered.original_name_scope,
            dtype=_first(dtype, base.dtype),
            use_resource=_first(use_resource, base.use_resource),
            constraint=constraint,
        )
        store.scope = inner
        store.scope_counts[name] = store.scope_counts.get(name, 0) + 1
        counts = dict(store.scope_counts)
        try:
            yield inner
        finally:
            if store.scope is not inner:
                raise RuntimeError("Improper nesting of variable_scope.")
            store.scope = outer
            if entered is not None:
                store.scope_counts = counts
            else:
                for key in [key for key in store.scope_counts if key.startswith(f"{name}/")]:
                    del store.scope_counts[key]


def _first(given: Any, inherited: Any) -> Any:
    return inherited if given is None else given


def _unique_scope(store: _Store, name: str) -> str:
    prefix = f"{store.scope.name}/" if store.scope.name else ""
    if store.scope_counts.get(prefix + name, 0) == 0:
        return name
    number = 1
    while store.scope_counts.get(f"{prefix}{name}_{number}", 0) > 0:
        number += 1
    return f"{name}_{number}"


def _nested(inner: Any, outer: Any) -> Any:
    """Composes two custom getters, either of which may be None."""
    if inner is None or outer is None:
        return outer if inner is None else inner
    return lambda getter, *args, **kwargs: inner(functools.partial(outer, getter), *args, **kwargs)


def get_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool | None = None,
    collections: Sequence[str] | None = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: Any = None,
    constraint: Any = None,
    synchronization: Any = None,
    aggregation: Any = None,
) -> Variable:
    """Gets the variable of this name in the current variable scope, or creates it.

    Args:
        name: the name within the scope.
        shape: not needed if `initializer` is a value.
        dtype: float32 by default.
        initializer: an `Initializer`, a function of (shape, dtype), a function without arguments
            if no shape is given, or a value; by default the scope's, then `GlorotUniform` for
            floats and zeros for other dtypes.
        regularizer: a function from the variable to a loss, which is added to
            REGULARIZATION_LOSSES.
        trainable: True by default, unless `synchronization` is ON_READ.
        partitioner: a function from (shape, dtype) to the number of slices along each axis; the
            result is then a `PartitionedVariable`.
        collections, validate_shape, constraint, aggregation: see `Variable`.
        custom_getter: see `variable_scope`; used instead of the scope's.
        synchronization: a `VariableSynchronization`; ON_READ makes `trainable` False by default.
        caching_device, use_resource: accepted for compatibility only.

    Returns:
        A `Variable`, a `PartitionedVariable`, or the custom getter's result.

    Raises:
        ValueError: the variable exists but `reuse` is off, or exists with another shape, dtype or
            number of slices; it does not exist but `reuse` is True; its shape is unknown; both a
            shape and an initial value are given, or that value's dtype is not `dtype`; or an
            argument is invalid.
    """
    store = _store()
    scope = store.scope
    full_name = f"{scope.name}/{name}" if scope.name else name
    getter = _first(custom_getter, scope.custom_getter)
    if getter is not None and not callable(getter):
        raise ValueError(f"Passed a custom_getter which is not callable: {getter}")
    sync, how, trained = validated(synchronization, aggregation, trainable, full_name)
    found: Variable  # for type checkers: the result without a partitioner and custom getter
    with get_default_graph().name_scope(None):
        if dtype is not None and initializer is not None and not callable(initializer):
            of_value = convert_to_tensor(initializer).dtype
            if of_value is not as_dtype(dtype):
                raise ValueError(
                    f"Initializer type '{of_value!r}' and explicit dtype '{as_dtype(dtype)!r}' "
                    "don't match."
                )
        arguments: dict[str, Any] = {
            "shape": shape,
            "dtype": as_dtype(_first(dtype, scope.dtype)),
            "initializer": _first(initializer, scope.initializer),
            "regularizer": _first(regularizer, scope.regularizer),
            "reuse": scope.reuse,
            "trainable": trained,
            "collections": collections,
            "caching_device": _first(caching_device, scope.caching_device),
            "partitioner": _first(partitioner, scope.partitioner),
            "validate_shape": validate_shape,
            "use_resource": _first(use_resource, scope.use_resource),
            "constraint": _first(constraint, scope.constraint),
            "synchronization": sync,
            "aggregation": how,
        }
        if getter is None:
            found = store.get(full_name, **arguments)
        else:
            found = getter(store.get, full_name, **_accepted(getter, arguments))
    return found


def _accepted(function: Callable[..., Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """Drops those of the newer arguments that a custom getter does not accept."""
    parameters = inspect.signature(function).parameters
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values()):
        return arguments
    newer = {"constraint", "synchronization", "aggregation"} - set(parameters)
    return {key: value for key, value in arguments.items() if key not in newer}


def get_local_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = False,
    collections: Sequence[str] | None = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: Any = None,
    constraint: Any = None,
    synchronization: Any = None,
    aggregation: Any = None,
) -> Variable:
    """`get_variable` for a non-trainable variable in LOCAL_VARIABLES, which checkpoints omit."""
    return get_variable(
        name,
        shape,
        dtype,
        initializer,
        regularizer,
        False,
        [*(collections or ()), GraphKeys.LOCAL_VARIABLES],
        caching_device,
        partitioner,
        validate_shape,
        use_resource,
        custom_getter,
        constraint,
        synchronization,
        aggregation,
    )


def create_partitioned_variables(
    shape: Any,
    slicing: Sequence[int],
    initializer: Any,
    dtype: Any = float32,
    trainable: bool = True,
    collections: Sequence[str] | None = None,
    name: str | None = None,
    reuse: Any = None,
) -> list[Variable]:
    """Creates a variable partitioned by `slicing` and returns its slices.

    Args:
        shape: the shape of the whole variable.
        slicing: the number of slices along each axis; more than one along at most one axis.
        initializer, dtype: see `get_variable`.
        trainable: whether optimizers update the slices by default.
        collections: see `Variable`.
        name: under the current variable scope; 'PartitionedVariable', made unique, by default.
        reuse: see `variable_scope`.

    Raises:
        ValueError: `slicing` does not fit the shape.

    Source: `tf.compat.v1.create_partitioned_variables`.
    """
    if len(shape) != len(slicing):
        raise ValueError(
            "The 'shape' and 'slicing' of a partitioned Variable must have the length: "
            f"shape: {shape}, slicing: {slicing}"
        )
    with variable_scope(name, "PartitionedVariable", reuse=reuse) as scope:
        if scope.custom_getter is not None:
            raise value_error(
                "create_partitioned_variables does not support custom getters",
                received=repr(scope.custom_getter),
                hint="use get_variable(partitioner=...)",
            )
        whole: Any = _store().get(
            scope.name,
            shape=shape,
            dtype=dtype,
            initializer=_first(initializer, scope.initializer),
            regularizer=scope.regularizer,
            reuse=scope.reuse,
            trainable=trainable,
            collections=collections,
            partitioner=lambda shape, dtype: list(slicing),
            constraint=scope.constraint,
        )
    return list(whole)


def variable_op_scope(
    values: Any, name_or_scope: Any, default_name: str | None = None, **rest: Any
) -> Any:
    """Deprecated form of `variable_scope` with another order of arguments."""
    return variable_scope(name_or_scope, default_name, values, **rest)


def no_regularizer(_: Any) -> None:
    """A regularizer that adds no loss; use it to override a scope's."""
    return None
