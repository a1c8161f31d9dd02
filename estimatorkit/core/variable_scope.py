"""Scopes that share variables by name: `variable_scope` and `get_variable`.

Each graph has one store: its variables by full name, and the current scope, which holds defaults
and says whether a name that is there is shared or refused. A scope is a prefix of variable names;
`Variable(...)` itself knows only name scopes. Custom getters stand between `get_variable` and
`_get`, which looks the variable up or makes it, in parts where a partitioner says so.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import Any

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import DType, as_dtype, float32
from estimatorkit.core.errors import explain
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.initializers import GlorotUniform, Zeros
from estimatorkit.core.partitioned_variables import PartitionedVariable, PartitionInfo, slices_of
from estimatorkit.core.shapes import as_shape
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variables import (
    SaveSliceInfo,
    Variable,
    global_variables,
    local_variables,
    trainable_variables,
)


class _ReuseMode(Enum):
    AUTO_REUSE = "AUTO_REUSE"


AUTO_REUSE = _ReuseMode.AUTO_REUSE
"""As `reuse`: make the variable where it is not there, share it where it is."""


class VariableScope:
    """What `get_variable` is told by the `with variable_scope(...)` blocks around it.

    Attributes:
        name: the prefix of variable names, without a '/' at its end.
        reuse: False, True or AUTO_REUSE.
        initializer, regularizer, dtype, constraint, partitioner, custom_getter: defaults for
            `get_variable`.
        caching_device, use_resource: kept for TensorFlow's signature.
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
        """Shares variables from here on."""
        self.reuse = True

    def set_initializer(self, initializer: Any) -> None:
        """Sets the default initializer."""
        self.initializer = initializer

    def set_regularizer(self, regularizer: Any) -> None:
        """Sets the default regularizer."""
        self.regularizer = regularizer

    def set_caching_device(self, caching_device: Any) -> None:
        """Accepted for TensorFlow's signature."""
        self.caching_device = caching_device

    def set_partitioner(self, partitioner: Any) -> None:
        """Sets the default partitioner."""
        self.partitioner = partitioner

    def set_custom_getter(self, custom_getter: Any) -> None:
        """Sets the getter that stands before `get_variable`."""
        self.custom_getter = custom_getter

    def set_dtype(self, dtype: Any) -> None:
        """Sets the default dtype."""
        self.dtype = dtype

    def set_use_resource(self, use_resource: bool) -> None:
        """Accepted for TensorFlow's signature."""
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
        """What a collection holds under this scope."""
        return get_default_graph().get_collection(name, self._prefix)

    @property
    def _prefix(self) -> str | None:
        return f"{self.name}/" if self.name else None


class _Store:
    """The variables of a graph by name, and the current scope."""

    def __init__(self) -> None:
        self.variables: dict[str, Variable] = {}
        self.partitioned: dict[str, PartitionedVariable] = {}
        self.scope = VariableScope()
        self.scope_counts: dict[str, int] = {}


def _store() -> _Store:
    graph = get_default_graph()
    if graph.variable_store is None:
        graph.variable_store = _Store()
    store: _Store = graph.variable_store
    return store


def partitioned_variables(graph: Graph | None = None) -> list[PartitionedVariable]:
    """The partitioned variables of a graph (the default graph), in the order of their making."""
    store: _Store | None = (graph or get_default_graph()).variable_store
    return [] if store is None else list(store.partitioned.values())


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
    """Puts variables made by `get_variable` inside under a prefix, and operations under a name
    scope.

    Args:
        name_or_scope: a name, a `VariableScope` to enter again, or None to use `default_name`.
        default_name: made unique, and used where `name_or_scope` is None.
        values: accepted for TensorFlow's signature.
        initializer, regularizer, partitioner, dtype, constraint: defaults for `get_variable`
            inside.
        caching_device, use_resource: accepted for TensorFlow's signature.
        custom_getter: a function `(getter, name, **arguments)` called instead of the getter, which
            looks the variable up or makes it. One inside another is called first.
        reuse: None (as outside), False, True or AUTO_REUSE.
        auxiliary_name_scope: whether to open the name scope.

    Raises:
        ValueError: neither a name nor a default name; or True, and a variable is not there.
    """
    store = _store()
    graph = get_default_graph()
    outer = store.scope
    if isinstance(name_or_scope, VariableScope):
        base = name_or_scope
        name = base.name
        leaf = name.rsplit("/", 1)[-1]
    else:
        base = outer
        if name_or_scope is not None:
            leaf = name_or_scope
        elif default_name is not None:
            leaf = _unique_scope(store, default_name)
        else:
            raise ValueError("If default_name is None then name_or_scope is required")
        name = f"{outer.name}/{leaf}" if outer.name else leaf
    counts = dict(store.scope_counts)
    inner = VariableScope(
        reuse=reuse or base.reuse,
        name=name,
        initializer=initializer or base.initializer,
        regularizer=regularizer or base.regularizer,
        caching_device=caching_device or base.caching_device,
        partitioner=partitioner or base.partitioner,
        custom_getter=_nested(custom_getter, base.custom_getter),
        dtype=base.dtype if dtype is None else dtype,
        use_resource=base.use_resource if use_resource is None else use_resource,
        constraint=constraint or base.constraint,
    )
    store.scope = inner
    store.scope_counts[name] = store.scope_counts.get(name, 0) + 1
    for key in [key for key in store.scope_counts if key.startswith(f"{name}/")]:
        del store.scope_counts[key]
    try:
        if auxiliary_name_scope and leaf:
            with graph.name_scope(leaf) as scope:
                inner.original_name_scope = scope
                yield inner
        else:
            yield inner
    finally:
        store.scope = outer
        if isinstance(name_or_scope, VariableScope):
            store.scope_counts = counts


def _unique_scope(store: _Store, name: str) -> str:
    prefix = f"{store.scope.name}/" if store.scope.name else ""
    if store.scope_counts.get(prefix + name, 0) == 0:
        return name
    number = 1
    while store.scope_counts.get(f"{prefix}{name}_{number}", 0) > 0:
        number += 1
    return f"{name}_{number}"


def _nested(inner: Any, outer: Any) -> Any:
    """A custom getter within another one."""
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
    """The variable of this name under the current variable scope: made, or shared if the scope says
    so.

    Args:
        name: the name within the scope.
        shape: its shape; not needed where `initializer` is a value.
        dtype: float32 by default.
        initializer: an `Initializer`, a function of (shape, dtype), or a value; by default the
            scope's, then `GlorotUniform` for floats and zeros for the rest.
        regularizer: a function of the variable giving a loss, which is put into
            REGULARIZATION_LOSSES.
        trainable: True by default.
        collections: see `Variable`.
        partitioner: makes a `PartitionedVariable`: a function of (shape, dtype) giving the number
            of slices for each axis.
        validate_shape, constraint, aggregation: see `Variable`.
        custom_getter: see `variable_scope`; used instead of the scope's.
        caching_device, use_resource, synchronization: accepted for TensorFlow's signature; without
            effect in one process.

    Returns:
        A `Variable`; with a partitioner a `PartitionedVariable`; with a custom getter what that
        returns.

    Raises:
        ValueError: it is there and may not be shared, or is to be shared and is not there; or no
            shape is known.
    """
    scope = _store().scope
    full_name = f"{scope.name}/{name}" if scope.name else name
    arguments: dict[str, Any] = {
        "shape": shape,
        "dtype": dtype,
        "initializer": scope.initializer if initializer is None else initializer,
        "regularizer": scope.regularizer if regularizer is None else regularizer,
        "reuse": scope.reuse,
        "trainable": trainable is None or trainable,
        "collections": collections,
        "caching_device": caching_device or scope.caching_device,
        "partitioner": scope.partitioner if partitioner is None else partitioner,
        "validate_shape": validate_shape,
        "use_resource": scope.use_resource if use_resource is None else use_resource,
        "constraint": scope.constraint if constraint is None else constraint,
        "synchronization": synchronization,
        "aggregation": aggregation,
    }
    getter = scope.custom_getter if custom_getter is None else custom_getter
    found: Variable  # as type checkers see it: what programs without the two arguments get
    if getter is None:
        found = _get(full_name, **arguments)
    else:
        arguments["dtype"] = as_dtype(dtype or scope.dtype)
        found = getter(_get, full_name, **_accepted(getter, arguments))
    return found


def _accepted(function: Callable[..., Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """Those of the newer arguments that a custom getter knows, and all the others."""
    parameters = inspect.signature(function).parameters
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values()):
        return arguments
    newer = {"constraint", "synchronization", "aggregation"} - set(parameters)
    return {key: value for key, value in arguments.items() if key not in newer}


def _get(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    reuse: Any = None,
    trainable: bool | None = None,
    collections: Sequence[str] | None = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    constraint: Any = None,
    synchronization: Any = None,
    aggregation: Any = None,
) -> Any:
    """The variable of this full name, shared or made; what custom getters call."""
    store = _store()
    reuse = store.scope.reuse if reuse is None else reuse
    existing = store.partitioned.get(name) or store.variables.get(name)
    if existing is not None:
        return _shared(existing, reuse, name, shape, dtype)
    if reuse is True:
        raise ValueError(
            explain(
                f"Variable {name} does not exist, or was not created with get_variable()",
                hint="did you mean to set reuse=AUTO_REUSE in variable_scope?",
            )
        )
    wanted = as_dtype(dtype or store.scope.dtype)
    if initializer is None:
        initializer = GlorotUniform() if wanted.is_floating else Zeros()
    if isinstance(initializer, type):
        initializer = initializer()
    of_value = not callable(initializer)
    if of_value:
        if shape is not None and not isinstance(initializer, (int, float)):
            raise ValueError("If initializer is a constant, do not specify shape.")
        given = None if dtype is None or isinstance(initializer, Tensor) else wanted
        initializer = convert_to_tensor(initializer, given)
        shape, wanted = initializer.shape, initializer.dtype
    elif shape is None or not as_shape(shape).is_fully_defined():
        raise ValueError(
            explain(
                f"Shape of a new variable ({name}) must be fully defined",
                received=str(as_shape(shape)),
            )
        )
    rest = {
        "trainable": trainable is None or trainable,
        "collections": collections,
        "validate_shape": validate_shape,
        "constraint": constraint,
        "aggregation": aggregation,
    }
    if partitioner is None or as_shape(shape).rank == 0:
        value = initializer if of_value else _maker(initializer, as_shape(shape).as_list(), wanted)
        variable = _make(name, value, None if of_value else wanted, regularizer, rest)
        store.variables[name] = variable
        return variable
    partitions, slices = slices_of(name, as_shape(shape), wanted, partitioner)
    parts = []
    for number, (info, part_shape) in enumerate(slices):
        if of_value:
            value = initializer[tuple(map(slice, info.var_offset, _ends(info, part_shape)))]
        else:
            value = _maker(initializer, part_shape, wanted, info)
        part = _make(f"{name}/part_{number}", value, wanted, regularizer, rest)
        places = info.full_shape, info.var_offset, part_shape
        part.save_slice_info = SaveSliceInfo(name, *map(tuple, places))
        parts.append(part)
    whole = PartitionedVariable(name, shape, wanted, parts, partitions)
    store.partitioned[name] = whole
    return whole


def _ends(info: PartitionInfo, shape: Sequence[int]) -> list[int]:
    return [start + size for start, size in zip(info.var_offset, shape, strict=True)]


def _make(name: str, value: Any, dtype: DType | None, regularizer: Any, rest: Any) -> Variable:
    """Makes a variable, and its regularization loss."""
    graph = get_default_graph().outermost
    with graph.name_scope(None), graph.control_dependencies(None):
        variable = Variable(value, name=name, dtype=dtype, **rest)
    if regularizer is not None:
        with graph.as_default(), graph.name_scope(f"{name}/Regularizer/"):
            loss = regularizer(variable)
        if loss is not None:
            graph.add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)
    return variable


def _maker(
    initializer: Any, shape: Sequence[Any], dtype: DType, info: PartitionInfo | None = None
) -> Callable[[], Any]:
    """`initializer` with its arguments; only those that know of slices are told."""

    def make_value() -> Any:
        if info is not None and "partition_info" in inspect.signature(initializer).parameters:
            return initializer(shape, dtype=dtype, partition_info=info)
        return initializer(shape, dtype=dtype)

    return make_value


def _shared(variable: Any, reuse: Any, full_name: str, shape: Any, dtype: Any) -> Any:
    if not reuse:
        raise ValueError(
            explain(
                f"Variable {full_name} already exists, disallowed",
                made_at=next(iter(_parts(variable))).op.source,
                hint="did you mean to set reuse=True or reuse=AUTO_REUSE in variable_scope?",
            )
        )
    if shape is not None and not variable.shape.is_compatible_with(shape):
        raise ValueError(
            explain(
                f"Trying to share variable {full_name}, but specified shape {as_shape(shape)} and "
                f"found shape {variable.shape}",
                made_at=next(iter(_parts(variable))).op.source,
            )
        )
    if dtype is not None and as_dtype(dtype) is not variable.dtype:
        raise ValueError(
            explain(
                f"Trying to share variable {full_name}, but specified dtype {as_dtype(dtype).name} "
                f"and found dtype {variable.dtype.name}",
                made_at=next(iter(_parts(variable))).op.source,
            )
        )
    return variable


def _parts(variable: Any) -> list[Variable]:
    return list(variable) if isinstance(variable, PartitionedVariable) else [variable]


def get_local_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = False,
    collections: Sequence[str] | None = None,
    **rest: Any,
) -> Variable:
    """As `get_variable`, in LOCAL_VARIABLES and not trainable: checkpoints leave it out."""
    listed = [*(collections or ()), GraphKeys.LOCAL_VARIABLES]
    return get_variable(name, shape, dtype, initializer, regularizer, False, listed, **rest)


def variable_op_scope(
    values: Any, name_or_scope: Any, default_name: str | None = None, **rest: Any
) -> Any:
    """`variable_scope` by its older name and with its older order of arguments."""
    return variable_scope(name_or_scope, default_name, values, **rest)


def no_regularizer(_: Any) -> None:
    """A regularizer that gives no loss: to undo a scope's."""
    return None
