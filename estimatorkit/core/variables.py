"""Variables: state with a name, operations that assign it, and the collections that list it.

A `Variable` is a handle in the graph; its value lives in a session. As TensorFlow's resource
variables: reading gives the value at that point of the graph's order (data and control edges first,
then the order of making), so a read made when the variable was made comes before every assignment.
A read under `control_dependencies` is a new one, after them. `variable_scope` shares variables by
name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from estimatorkit.core import registry, variable_updates
from estimatorkit.core.conversion import as_array, convert_to_tensor, make
from estimatorkit.core.default_session import get_default_session
from estimatorkit.core.dtypes import DType, as_dtype
from estimatorkit.core.errors import explain
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.ops import array
from estimatorkit.core.replica_context import over_replicas
from estimatorkit.core.shapes import ShapeOfDimensions, TensorShape, as_shape
from estimatorkit.core.tensor import Operation, Operators, Tensor


class VariableSynchronization(Enum):
    """When copies of a variable are brought together; accepted, as there is one copy."""

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


class VariableAggregation(Enum):
    """What a variable is assigned where several replicas assign it: the sum or the mean of what
    they give. By default all must give the same.
    """

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3
    ONLY_FIRST_TOWER = 3


@dataclass(frozen=True)
class SaveSliceInfo:
    """Which part of a tensor in checkpoints a variable is (`tf.Variable.SaveSliceInfo`).

    Attributes:
        full_name: the tensor's name.
        full_shape: its shape.
        var_offset: where the part begins, for each dimension.
        var_shape: the part's shape.
    """

    full_name: str
    full_shape: tuple[int, ...]
    var_offset: tuple[int, ...]
    var_shape: tuple[int, ...]


class Variable(Operators):
    """State that lives in a session and survives its runs.

    Args:
        initial_value: its first value: a tensor, an array, a number, or a function without
            arguments giving one.
        trainable: whether optimizers change it by default.
        collections: where it is listed; GLOBAL_VARIABLES by default (and TRAINABLE_VARIABLES if
            trainable).
        validate_shape: whether the shape is that of `initial_value`; otherwise it may change.
        caching_device: accepted for TensorFlow's signature.
        name: its name; 'Variable' by default.
        dtype: its dtype; that of `initial_value` by default.
        expected_shape: a shape that `initial_value` must have.
        constraint: a function that optimizers apply to the value after each update.
        use_resource, synchronization: accepted for TensorFlow's signature; every variable is a
            resource variable.
        aggregation: a `VariableAggregation`: what becomes of values that replicas assign.
        shape: the static shape, where it is to be less known than that of `initial_value`.

    Raises:
        ValueError: the initial value has another shape, or none is given.
    """

    aggregation: VariableAggregation = VariableAggregation.NONE
    """What becomes of values that replicas assign."""

    save_slice_info: SaveSliceInfo | None = None
    """Which part of a tensor in checkpoints it is, if it is one."""

    def __init__(
        self,
        initial_value: Any = None,
        trainable: bool = True,
        collections: Sequence[str] | None = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: str | None = None,
        dtype: Any = None,
        expected_shape: Any = None,
        constraint: Callable[[Tensor], Tensor] | None = None,
        use_resource: bool | None = None,
        synchronization: Any = None,
        aggregation: Any = None,
        shape: Any = None,
    ) -> None:
        if initial_value is None:
            raise ValueError("initial_value must be specified.")
        graph = get_default_graph().outermost
        wanted = None if dtype is None else as_dtype(dtype)
        with graph.init_scope(), graph.name_scope(name or "Variable") as scope:
            before = graph.version
            value = initial_value
            if callable(value):
                with graph.name_scope("Initializer"):
                    value = value()
            self.initial_value: Tensor = convert_to_tensor(value, wanted, "initial_value")
            if expected_shape is not None:
                self.initial_value.shape.assert_is_compatible_with(expected_shape)
            static = self.initial_value.shape if validate_shape else TensorShape(None)
            if shape is not None:
                static.assert_is_compatible_with(shape)
                static = as_shape(shape)
            self.dtype: DType = self.initial_value.dtype
            attrs = {"dtype": self.dtype, "shape": static}
            self._handle = registry.output("VarHandleOp", (), attrs, scope)
            for op in graph.get_operations()[before : self.op.index]:
                op.device = self.device  # what is made for it is made where it is
            with graph.device(self.device):
                self.initializer: Operation = make(
                    "AssignVariableOp",
                    {"ref": self._handle, "value": self.initial_value},
                    name="Assign",
                ).op
                self._snapshot = self._read("read")
        self.trainable = trainable
        self.constraint = constraint
        if aggregation is not None:
            self.aggregation = aggregation
        self._shape = static
        names = [GraphKeys.GLOBAL_VARIABLES] if collections is None else list(collections)
        if trainable and GraphKeys.TRAINABLE_VARIABLES not in names:
            names.append(GraphKeys.TRAINABLE_VARIABLES)
        graph.add_to_collections(names, self)

    def _read(self, name: str) -> Tensor:
        return make("ReadVariableOp", {"resource": self._handle}, name=name)

    def save_beside(self, primary: Variable) -> None:
        """Says that checkpoints take this variable as they take another, whose slot it is: where
        that is a part of a tensor, this is a part of one that is called after it.
        """
        info = primary.save_slice_info
        before, found, after = self.op.name.rpartition(primary.op.name)
        if info is not None and found and self.shape.as_list() == list(info.var_shape):
            self.save_slice_info = replace(info, full_name=f"{before}{info.full_name}{after}")

    # -- what it is

    @property
    def name(self) -> str:
        """Its name, for example 'dense/kernel:0'."""
        return self._handle.name

    @property
    def op(self) -> Operation:
        """The operation that stands for it."""
        return self._handle.op

    @property
    def handle(self) -> Tensor:
        """The handle that state ops take."""
        return self._handle

    @property
    def graph(self) -> Graph:
        """Its graph."""
        return self._handle.graph

    @property
    def device(self) -> str:
        """The device that was asked for, or ''."""
        return self._handle.device

    @property
    def shape(self) -> TensorShape:
        """Its static shape."""
        return self._shape

    def get_shape(self) -> TensorShape:
        """Its static shape, whose dimensions all have TensorFlow 1's `.value`."""
        return ShapeOfDimensions(self._shape)

    def __repr__(self) -> str:
        return f"<tf.Variable {self.name!r} shape={self._shape} dtype={self.dtype.name}>"

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self._as_tensor())

    def __bool__(self) -> bool:
        return bool(self._snapshot)

    # -- its value

    def _as_tensor(self) -> Tensor:
        current = get_default_graph()
        if current.has_control_dependencies and current.reaches(self.graph):
            return self.read_value()
        return self._snapshot

    def _as_graph_element(self) -> Tensor:
        return self._snapshot

    def value(self) -> Tensor:
        """The value, read at this point of the graph."""
        return self._as_tensor()

    def read_value(self) -> Tensor:
        """A new read, after the control dependencies in force."""
        return self._read("read")

    def initialized_value(self) -> Tensor:
        """The value in the session, or the initial value where it has none yet.

        For initializing another variable from this one.
        """
        attrs = {"variable": self.op.name}
        return make("InitializedValue", {"initial_value": self.initial_value}, attrs)

    def sparse_read(self, indices: Any, name: str | None = None) -> Tensor:
        """Its rows at `indices` (see `gather`)."""
        from estimatorkit.core.ops.indexing import gather

        return gather(self._as_tensor(), indices, name=name)

    @property
    def synchronization(self) -> None:
        """None: there is one copy."""
        return None

    def eval(self, session: Any = None) -> Any:
        """The value in `session` or in the default session."""
        return self._snapshot.eval(session=session)

    def load(self, value: Any, session: Any = None) -> None:
        """Puts `value` into a session, without an operation in the graph.

        Raises:
            ValueError: there is no session, or the shape differs.
        """
        session = session or get_default_session()
        if session is None:
            raise ValueError(
                "Either session argument should be provided or default session should be "
                "established"
            )
        session.load_variable(self, as_array(value, self.dtype))

    # -- changing it

    def assign(
        self,
        value: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Tensor:
        """An operation that sets the value; its output is the new value."""
        return _assign("AssignVariableOp", self, value, name or "Assign")

    def assign_add(
        self,
        delta: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Tensor:
        """An operation that adds `delta`; its output is the new value."""
        return _assign("AssignAddVariableOp", self, delta, name or "AssignAdd")

    def assign_sub(
        self,
        delta: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Tensor:
        """An operation that subtracts `delta`; its output is the new value."""
        return _assign("AssignSubVariableOp", self, delta, name or "AssignSub")

    def count_up_to(self, limit: int) -> Tensor:
        """The value before an operation that adds 1; see the function `count_up_to`."""
        return variable_updates.count_up_to(self, limit)

    def scatter_update(
        self, sparse_delta: Any, use_locking: bool = False, name: str | None = None
    ) -> Tensor:
        """An operation that sets rows to those of `IndexedSlices`; its output is the new value."""
        return variable_updates.scatter(
            "Update", self, sparse_delta.indices, sparse_delta.values, name
        )

    def scatter_add(
        self, sparse_delta: Any, use_locking: bool = False, name: str | None = None
    ) -> Tensor:
        """An operation that adds rows; see `scatter_update`."""
        return variable_updates.scatter(
            "Add", self, sparse_delta.indices, sparse_delta.values, name
        )

    def scatter_sub(
        self, sparse_delta: Any, use_locking: bool = False, name: str | None = None
    ) -> Tensor:
        """An operation that subtracts rows; see `scatter_update`."""
        return variable_updates.scatter(
            "Sub", self, sparse_delta.indices, sparse_delta.values, name
        )

    def scatter_mul(
        self, sparse_delta: Any, use_locking: bool = False, name: str | None = None
    ) -> Tensor:
        """An operation that multiplies rows; see `scatter_update`."""
        return variable_updates.scatter(
            "Mul", self, sparse_delta.indices, sparse_delta.values, name
        )

    def scatter_div(
        self, sparse_delta: Any, use_locking: bool = False, name: str | None = None
    ) -> Tensor:
        """An operation that divides rows; see `scatter_update`."""
        return variable_updates.scatter(
            "Div", self, sparse_delta.indices, sparse_delta.values, name
        )

    def scatter_min(
        self, sparse_delta: Any, use_locking: bool = False, name: str | None = None
    ) -> Tensor:
        """An operation that lowers rows to those given; see `scatter_update`."""
        return variable_updates.scatter(
            "Min", self, sparse_delta.indices, sparse_delta.values, name
        )

    def scatter_max(
        self, sparse_delta: Any, use_locking: bool = False, name: str | None = None
    ) -> Tensor:
        """An operation that raises rows to those given; see `scatter_update`."""
        return variable_updates.scatter(
            "Max", self, sparse_delta.indices, sparse_delta.values, name
        )

    def scatter_nd_update(self, indices: Any, updates: Any, name: str | None = None) -> Tensor:
        """An operation that sets slices; see the function `scatter_nd_update`."""
        return variable_updates.scatter("NdUpdate", self, indices, updates, name)

    def scatter_nd_add(self, indices: Any, updates: Any, name: str | None = None) -> Tensor:
        """An operation that adds slices; see the function `scatter_nd_update`."""
        return variable_updates.scatter("NdAdd", self, indices, updates, name)

    def scatter_nd_sub(self, indices: Any, updates: Any, name: str | None = None) -> Tensor:
        """An operation that subtracts slices; see the function `scatter_nd_update`."""
        return variable_updates.scatter("NdSub", self, indices, updates, name)


def _assign(op_type: str, variable: Variable, value: Any, name: str) -> Tensor:
    with get_default_graph().name_scope(name) as scope:
        tensor = convert_to_tensor(value, name="value", dtype_hint=variable.dtype)
        if tensor.dtype is not variable.dtype:
            raise TypeError(
                explain(
                    f"a value of another dtype is assigned to {variable.name}",
                    expected=variable.dtype.name,
                    received=tensor.dtype.name,
                    made_at=variable.op.source,
                )
            )
        fits = tensor.shape.is_compatible_with(variable.shape)
        if not fits and not (op_type != "AssignVariableOp" and tensor.shape.rank == 0):
            raise ValueError(
                explain(
                    f"Shapes of {variable.name} and of the value assigned to it are incompatible",
                    expected=str(variable.shape),
                    received=str(tensor.shape),
                    made_at=variable.op.source,
                )
            )
        if variable.aggregation in (VariableAggregation.SUM, VariableAggregation.MEAN):
            tensor = over_replicas(tensor, variable.aggregation is VariableAggregation.MEAN)
        return make(op_type, {"ref": variable.handle, "value": tensor}, name=scope)


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


# -- collections of variables


def global_variables(scope: str | None = None) -> list[Variable]:
    """The variables that checkpoints hold.

    Args:
        scope: a regular expression; only those whose name it matches.
    """
    return get_default_graph().get_collection(GraphKeys.GLOBAL_VARIABLES, scope)


def local_variables(scope: str | None = None) -> list[Variable]:
    """The variables that checkpoints leave out, such as counters of an evaluation."""
    return get_default_graph().get_collection(GraphKeys.LOCAL_VARIABLES, scope)


def trainable_variables(scope: str | None = None) -> list[Variable]:
    """The variables that optimizers change by default."""
    return get_default_graph().get_collection(GraphKeys.TRAINABLE_VARIABLES, scope)


def model_variables(scope: str | None = None) -> list[Variable]:
    """The variables in the collection MODEL_VARIABLES."""
    return get_default_graph().get_collection(GraphKeys.MODEL_VARIABLES, scope)


def moving_average_variables(scope: str | None = None) -> list[Variable]:
    """The variables that have moving averages."""
    return get_default_graph().get_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, scope)


def all_variables() -> list[Variable]:
    """`global_variables()` by its older name."""
    return global_variables()


def variables_initializer(var_list: Sequence[Variable], name: str = "init") -> Operation:
    """An operation that gives the variables their initial values."""
    group: Operation = array.group(*[variable.initializer for variable in var_list], name=name)
    return group


def global_variables_initializer() -> Operation:
    """An operation that initializes `global_variables()`."""
    return variables_initializer(global_variables())


def local_variables_initializer() -> Operation:
    """An operation that initializes `local_variables()`."""
    return variables_initializer(local_variables())


def tables_initializer(name: str = "init_all_tables") -> Operation:
    """An operation that runs those in the collection TABLE_INITIALIZERS."""
    initializers = get_default_graph().get_collection(GraphKeys.TABLE_INITIALIZERS)
    group: Operation = array.group(*initializers, name=name)
    return group


def is_variable_initialized(variable: Variable) -> Tensor:
    """A bool tensor: whether the variable has a value in the session."""
    return make("VarIsInitializedOp", {}, {"variable": variable.op.name})


def report_uninitialized_variables(
    var_list: Sequence[Variable] | None = None, name: str = "report_uninitialized_variables"
) -> Tensor:
    """The names of the variables without a value in the session: a vector of strings.

    Args:
        var_list: the variables asked about; the global and local ones by default.
        name: the operation's name.
    """
    variables = [*global_variables(), *local_variables()] if var_list is None else var_list
    names = tuple(variable.op.name for variable in variables)
    return make("ReportUninitializedVariables", {}, {"variables": names}, name)


def assert_variables_initialized(var_list: Sequence[Variable] | None = None) -> Operation:
    """An operation that raises `FailedPreconditionError` where a variable has no value yet.

    Args:
        var_list: the variables asked about; the global and local ones by default.
    """
    variables = [*global_variables(), *local_variables()] if var_list is None else var_list
    names = tuple(variable.op.name for variable in variables)
    return registry.apply("AssertVariablesInitialized", (), {"variables": names})
