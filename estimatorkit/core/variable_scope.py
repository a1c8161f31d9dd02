"""Scopes that share variables by name: `variable_scope` and `get_variable`.

Each graph has one store: its variables by full name, and the current scope, which holds defaults
and says whether a name that is there is shared or refused. A scope is a prefix of variable names;
`Variable(...)` itself knows only name scopes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import Any

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import DType, as_dtype, float32
from estimatorkit.core.errors import explain
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.initializers import GlorotUniform, Initializer, Zeros
from estimatorkit.core.shapes import as_shape
from estimatorkit.core.variables import Variable, global_variables, trainable_variables


class _ReuseMode(Enum):
    AUTO_REUSE = "AUTO_REUSE"


AUTO_REUSE = _ReuseMode.AUTO_REUSE
"""As `reuse`: make the variable where it is not there, share it where it is."""


class VariableScope:
    """What `get_variable` is told by the `with variable_scope(...)` blocks around it.

    Attributes:
        name: the prefix of variable names, without a '/' at its end.
        reuse: False, True or AUTO_REUSE.
        initializer, regularizer, dtype, constraint: defaults for `get_variable`.
        original_name_scope: the name scope that was opened with it.
    """

    def __init__(
        self,
        reuse: Any = False,
        name: str = "",
        initializer: Any = None,
        regularizer: Any = None,
        dtype: Any = float32,
        constraint: Any = None,
        name_scope: str = "",
    ) -> None:
        self.reuse = reuse
        self.name = name
        self.initializer = initializer
        self.regularizer = regularizer
        self.dtype = dtype
        self.constraint = constraint
        self.original_name_scope = name_scope

    def reuse_variables(self) -> None:
        """Shares variables from here on."""
        self.reuse = True

    def set_initializer(self, initializer: Any) -> None:
        """Sets the default initializer."""
        self.initializer = initializer

    def global_variables(self) -> list[Variable]:
        """The global variables under this scope."""
        return global_variables(f"{self.name}/" if self.name else None)

    def trainable_variables(self) -> list[Variable]:
        """The trainable variables under this scope."""
        return trainable_variables(f"{self.name}/" if self.name else None)


class _Store:
    """The variables of a graph by name, and the current scope."""

    def __init__(self) -> None:
        self.variables: dict[str, Variable] = {}
        self.scope = VariableScope()
        self.scope_counts: dict[str, int] = {}


def _store() -> _Store:
    graph = get_default_graph()
    if graph.variable_store is None:
        graph.variable_store = _Store()
    store: _Store = graph.variable_store
    return store


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
        initializer, regularizer, dtype, constraint: defaults for `get_variable` inside.
        caching_device, partitioner, use_resource: accepted for TensorFlow's signature.
        custom_getter: refused: it is not supported yet.
        reuse: None (as outside), False, True or AUTO_REUSE.
        auxiliary_name_scope: whether to open the name scope.

    Raises:
        ValueError: neither a name nor a default name; or True, and a variable is not there.
    """
    if custom_getter is not None:
        raise ValueError("variable_scope: custom_getter is not supported.")
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
        dtype=base.dtype if dtype is None else dtype,
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
        validate_shape, constraint: see `Variable`.
        caching_device, partitioner, use_resource, custom_getter, synchronization, aggregation:
            accepted for TensorFlow's signature; without effect in one process.

    Raises:
        ValueError: it is there and may not be shared, or is to be shared and is not there; or no
            shape is known.
    """
    store = _store()
    scope = store.scope
    full_name = f"{scope.name}/{name}" if scope.name else name
    existing = store.variables.get(full_name)
    if existing is not None:
        return _shared(existing, scope, full_name, shape, dtype)
    if scope.reuse is True:
        raise ValueError(
            explain(
                f"Variable {full_name} does not exist, or was not created with get_variable()",
                hint="did you mean to set reuse=AUTO_REUSE in variable_scope?",
            )
        )
    wanted = as_dtype(dtype or scope.dtype)
    make_value = initializer if initializer is not None else scope.initializer
    if make_value is None:
        make_value = GlorotUniform() if wanted.is_floating else Zeros()
    if isinstance(make_value, type):
        make_value = make_value()
    if callable(make_value):
        if shape is None or not as_shape(shape).is_fully_defined():
            raise ValueError(
                explain(
                    f"Shape of a new variable ({full_name}) must be fully defined",
                    received=str(as_shape(shape)),
                )
            )
        chosen: Any = lambda: _initial(make_value, shape, wanted)  # noqa: E731
    else:
        if shape is not None and not isinstance(make_value, (int, float)):
            raise ValueError("If initializer is a constant, do not specify shape.")
        given = as_dtype(dtype) if dtype is not None else None
        chosen = convert_to_tensor(make_value, given)
    graph = get_default_graph().outermost
    with graph.name_scope(None), graph.control_dependencies(None):
        variable = Variable(
            chosen,
            trainable=trainable is None or trainable,
            collections=collections,
            validate_shape=validate_shape,
            name=full_name,
            dtype=wanted if callable(make_value) else None,
            constraint=constraint or scope.constraint,
        )
    store.variables[full_name] = variable
    penalty = regularizer or scope.regularizer
    if penalty is not None:
        with graph.as_default(), graph.name_scope(f"{full_name}/Regularizer/"):
            loss = penalty(variable)
        if loss is not None:
            graph.add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)
    return variable


def _initial(initializer: Any, shape: Any, dtype: DType) -> Any:
    if isinstance(initializer, Initializer):
        return initializer(as_shape(shape).as_list(), dtype)
    return initializer(as_shape(shape).as_list(), dtype=dtype)


def _shared(
    variable: Variable, scope: VariableScope, full_name: str, shape: Any, dtype: Any
) -> Variable:
    if not scope.reuse:
        raise ValueError(
            explain(
                f"Variable {full_name} already exists, disallowed",
                made_at=variable.op.source,
                hint="did you mean to set reuse=True or reuse=AUTO_REUSE in variable_scope?",
            )
        )
    if shape is not None and not variable.shape.is_compatible_with(shape):
        raise ValueError(
            explain(
                f"Trying to share variable {full_name}, but specified shape {as_shape(shape)} and "
                f"found shape {variable.shape}",
                made_at=variable.op.source,
            )
        )
    if dtype is not None and as_dtype(dtype) is not variable.dtype:
        raise ValueError(
            explain(
                f"Trying to share variable {full_name}, but specified dtype {as_dtype(dtype).name} "
                f"and found dtype {variable.dtype.name}",
                made_at=variable.op.source,
            )
        )
    return variable
