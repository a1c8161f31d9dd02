"""`Variable`: named state of a session, and the operations that assign it.

A `Variable` is a handle in the graph; its value lives in a session. Semantics are those of
TensorFlow's resource variables: reads and writes are ordered by data and control edges, then by
creation order, so a read created together with the variable precedes every assignment. A read under
`control_dependencies` is a new one, after them. `variable_scope` shares variables by name.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

from estimatorkit.core import ports, registry
from estimatorkit.core.conversion import as_array, convert_to_tensor, make
from estimatorkit.core.default_session import get_default_session
from estimatorkit.core.dtypes import DType, as_dtype
from estimatorkit.core.errors import explain, type_error, value_error
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.ports import replica_context, variable_updates
from estimatorkit.core.shapes import ShapeOfDimensions, TensorShape, as_shape
from estimatorkit.core.tensor import Operation, Operators, Reference, Tensor
from estimatorkit.core.variable_options import (
    CreatedByScopes,
    SaveSliceInfo as SaveSliceInfo,
    VariableAggregation,
    VariableSynchronization,
    validated,
)


def _changes_rows(kind: str, what: str) -> Callable[..., Tensor]:
    """A method `scatter_*` that updates rows."""

    def method(
        self: Variable, sparse_delta: Any, use_locking: bool = False, name: str | None = None
    ) -> Tensor:
        return variable_updates.scatter_rows(kind, self, sparse_delta, name)

    method.__name__ = f"scatter_{kind.lower()}"
    method.__doc__ = f"An operation that {what}; its output is the new value."
    return method


def _changes_slices(kind: str, what: str) -> Callable[..., Tensor]:
    """A method `scatter_nd_*` that updates slices."""

    def method(self: Variable, indices: Any, updates: Any, name: str | None = None) -> Tensor:
        return variable_updates.scatter(f"Nd{kind}", self, indices, updates, name)

    method.__name__ = f"scatter_nd_{kind.lower()}"
    method.__doc__ = f"An operation that {what} slices; see the function `{method.__name__}`."
    return method


class Variable(Operators, metaclass=CreatedByScopes):
    """A mutable tensor whose value lives in a session and persists across runs.

    Args:
        initial_value: a tensor, an array, a number, or a function without arguments that returns
            one.
        trainable: whether optimizers update it by default; True unless `synchronization` is
            ON_READ.
        collections: the collections to add it to; GLOBAL_VARIABLES by default (and
            TRAINABLE_VARIABLES if trainable).
        validate_shape: whether the shape is fixed to that of `initial_value`, which must then be
            known; otherwise assignments may change it.
        caching_device: accepted for compatibility only.
        name: its name; 'Variable' by default.
        variable_def: a `VariableDef`, instead of all other arguments, for a variable whose
            operations are already in the graph (see `from_proto`).
        dtype: its dtype; that of `initial_value` by default.
        expected_shape: the shape that `initial_value` must have.
        import_scope: a prefix for the names in `variable_def`.
        constraint: a function that optimizers apply to the value after each update.
        use_resource: accepted for compatibility only; every variable is a resource variable.
        synchronization: a `VariableSynchronization`.
        aggregation: a `VariableAggregation`: how values assigned by several replicas are combined.
        shape: the static shape, if it should be less specific than that of `initial_value`.

    Raises:
        ValueError: the initial value is missing, has the wrong or an unknown shape, or is computed
            inside a conditional or loop; or another argument is invalid.
    """

    aggregation: VariableAggregation = VariableAggregation.NONE
    """What becomes of values that replicas assign."""

    synchronization: VariableSynchronization = VariableSynchronization.AUTO
    """When copies are brought together, as it was asked for; there is one copy."""

    optimizer: Any = None
    """The variable's own `Optimizer`, or a function that returns it; None for the one whose
    `minimize` or `apply_gradients` is called."""

    row_ids: Variable | None = None
    """The variable that says which ids its rows belong to, if its rows are assigned to ids."""

    save_slice_info: SaveSliceInfo | None = None
    """Which part of a tensor in checkpoints it is, if it is one."""

    shard_rows: bool | None = None
    """Whether synchronous replicas divide its rows among their devices (see
    `distribute.MirroredStrategy`): True, False, or None for the strategy's `shard_rows_above` to
    decide. Optimizer slots follow their variable. To be set before the session is created; has no
    effect without replicas, on scalars and on parts of partitioned variables."""

    slot_of: Variable | None = None
    """The variable that an optimizer's slot belongs to."""

    def __init__(
        self,
        initial_value: Any = None,
        trainable: bool | None = None,
        collections: Sequence[str] | None = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: str | None = None,
        variable_def: Any = None,
        dtype: Any = None,
        expected_shape: Any = None,
        import_scope: str | None = None,
        constraint: Callable[[Tensor], Tensor] | None = None,
        use_resource: bool | None = None,
        synchronization: Any = None,
        aggregation: Any = None,
        shape: Any = None,
    ) -> None:
        if variable_def is not None:
            if initial_value is not None:
                raise ValueError("variable_def and initial_value are mutually exclusive.")
            self._take_proto(variable_def, get_default_graph(), import_scope)
            return
        if initial_value is None:
            raise ValueError("initial_value must be specified.")
        if collections is not None and not isinstance(collections, (list, tuple, set)):
            raise ValueError(
                "collections argument to Variable constructor must be a list, tuple, or set. "
                f"Got {collections} of type {type(collections)}"
            )
        if constraint is not None and not callable(constraint):
            raise ValueError("The `constraint` argument must be a callable.")
        self.synchronization, self.aggregation, self.trainable = validated(
            synchronization, aggregation, trainable, name
        )
        graph = get_default_graph().outermost
        wanted = None if dtype is None else as_dtype(dtype)
        with graph.init_scope(), graph.name_scope(name or "Variable") as scope:
            before = graph.version
            value = initial_value
            if callable(value):
                with graph.name_scope("Initializer"):
                    value = value()
            self.initial_value: Tensor = _as_initial_value(value, wanted, graph, scope)
            if validate_shape and not self.initial_value.shape.is_fully_defined():
                raise value_error(
                    f"initial_value must have a shape specified: {self.initial_value}",
                    hint="use validate_shape=False for a variable whose shape may change",
                )
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
                op.device = self.device  # created on the variable's device
            with graph.device(self.device):
                self.initializer: Operation = make(
                    "AssignVariableOp",
                    {"ref": self._handle, "value": self.initial_value},
                    name="Assign",
                ).op
                self._snapshot = self._read("read")
        self.constraint = constraint
        self._shape = static
        names = [GraphKeys.GLOBAL_VARIABLES] if collections is None else list(collections)
        if self.trainable and GraphKeys.TRAINABLE_VARIABLES not in names:
            names.append(GraphKeys.TRAINABLE_VARIABLES)
        graph.add_to_collections(names, self)

    def _take_proto(self, proto: Any, graph: Graph, scope: str | None) -> None:
        """Makes this the variable of a `VariableDef`, whose operations are in `graph`."""
        prefix = f"{scope.removesuffix('/')}/" if scope else ""
        self._handle = graph.get_tensor_by_name(prefix + proto.variable_name)
        self.initializer = graph.get_operation_by_name(prefix + proto.initializer_name)
        self._snapshot = graph.get_tensor_by_name(prefix + proto.snapshot_name)
        initial = proto.initial_value_name or self.initializer.inputs[1].name[len(prefix) :]
        self.initial_value = graph.get_tensor_by_name(prefix + initial)
        self.dtype = self._handle.op.attrs["dtype"]
        self._shape = self._handle.op.attrs["shape"]
        self.constraint = None
        self.synchronization, self.aggregation, self.trainable = validated(
            VariableSynchronization(proto.synchronization),
            VariableAggregation(proto.aggregation),
            proto.trainable,
            proto.variable_name,
        )
        if proto.HasField("save_slice_info_def"):
            info = proto.save_slice_info_def
            places = info.full_shape, info.var_offset, info.var_shape
            self.save_slice_info = SaveSliceInfo(prefix + info.full_name, *map(tuple, places))

    @staticmethod
    def from_proto(variable_def: Any, import_scope: str | None = None) -> Variable:
        """The variable of a `VariableDef`, whose operations are in the default graph.

        Args:
            variable_def: the result of `to_proto`.
            import_scope: a prefix for the names in it.

        Raises:
            KeyError: the operations are not in the graph.
        """
        return Variable(variable_def=variable_def, import_scope=import_scope)

    def to_proto(self, export_scope: str | None = None) -> Any:
        """A `VariableDef` with the names of its operations, without its value.

        Args:
            export_scope: a prefix to strip from the names.

        Returns:
            None if the variable is not in `export_scope`.
        """
        from tensorboard.compat.proto.variable_pb2 import SaveSliceInfoDef, VariableDef

        prefix = f"{export_scope.removesuffix('/')}/" if export_scope else ""
        if not self.name.startswith(prefix):
            return None
        names = {
            "variable_name": self.handle.name,
            "initializer_name": self.initializer.name,
            "snapshot_name": self._snapshot.name,
            "initial_value_name": self.initial_value.name,
        }
        made = VariableDef(
            **{key: name.removeprefix(prefix) for key, name in names.items()},
            is_resource=True,
            trainable=self.trainable,
            synchronization=self.synchronization.value,
            aggregation=self.aggregation.value,
        )
        info = self.save_slice_info
        if info is not None:
            words = {**asdict(info), "full_name": info.full_name.removeprefix(prefix)}
            made.save_slice_info_def.CopyFrom(SaveSliceInfoDef(**words))
        return made

    def _read(self, name: str) -> Tensor:
        return make("ReadVariableOp", {"resource": self._handle}, name=name)

    def _get_save_slice_info(self) -> SaveSliceInfo | None:
        """Its slice of a partitioned tensor in checkpoints, under TensorFlow's name."""
        return self.save_slice_info

    def _set_save_slice_info(self, save_slice_info: SaveSliceInfo) -> None:
        """Sets its slice of a partitioned tensor in checkpoints, under TensorFlow's name."""
        self.save_slice_info = save_slice_info

    def belong_to(self, primary: Variable) -> None:
        """Makes this variable a slot of another: replicas shard both in the same way, and it is
        saved as the same slice of a partitioned tensor, if the other is one.
        """
        self.slot_of = primary
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
        """The operation of its handle."""
        return self._handle.op

    @property
    def handle(self) -> Tensor:
        """The handle: the input of operations that read or update it."""
        return self._handle

    @property
    def graph(self) -> Graph:
        """Its graph."""
        return self._handle.graph

    @property
    def device(self) -> str:
        """The requested device, or ''."""
        return self._handle.device

    @property
    def shape(self) -> TensorShape:
        """Its static shape."""
        return self._shape

    def get_shape(self) -> TensorShape:
        """Its static shape; the dimensions have TensorFlow 1's `.value`."""
        return ShapeOfDimensions(self._shape)

    def __repr__(self) -> str:
        return f"<tf.Variable {self.name!r} shape={self._shape} dtype={self.dtype.name}>"

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self._as_tensor())

    def __getitem__(self, key: Any) -> Tensor:
        part = super().__getitem__(key)
        part.assign = functools.partial(variable_updates.assign_slice, self, key)
        return part

    def __deepcopy__(self, memo: Any) -> Variable:
        raise NotImplementedError(
            explain(
                f"__deepcopy__() of variable {self.name}: its value belongs to a session",
                hint="copy layers before building them",
            )
        )

    def ref(self) -> Reference:
        """A hashable reference; `deref()` returns the variable."""
        return Reference(self)

    def experimental_ref(self) -> Reference:
        """`ref()` by its older name."""
        return Reference(self)

    def __bool__(self) -> bool:
        # Custom getters test `average if average else variable`; the value belongs to a session.
        return True

    # -- its value

    def _as_tensor(self) -> Tensor:
        current = get_default_graph()
        if current is self.graph and not current.has_control_dependencies:
            changed = current.has_written(self._handle)
            return self.read_value() if changed else self._snapshot
        # A function body reads at run time: it may assign, or be one step of a loop.
        return self.read_value() if current.reaches(self.graph) else self._snapshot

    def _as_graph_element(self) -> Tensor:
        return self._snapshot

    def value(self) -> Tensor:
        """The value, read at this point of the graph."""
        return self._as_tensor()

    def read_value(self) -> Tensor:
        """A new read of the value, after the current control dependencies."""
        return self._read("read")

    def initialized_value(self) -> Tensor:
        """The value in the session, or the initial value if it has none yet.

        To initialize another variable from this one.
        """
        attrs = {"variable": self.op.name}
        return make("InitializedValue", {"initial_value": self.initial_value}, attrs)

    def sparse_read(self, indices: Any, name: str | None = None) -> Tensor:
        """Its rows at `indices` (see `gather`)."""
        return ports.indexing.gather(self._as_tensor(), indices, name=name)

    def gather_nd(self, indices: Any, name: str | None = None) -> Tensor:
        """Its slices at `indices` (see the function `gather_nd`)."""
        return ports.gather_nd.gather_nd(self._as_tensor(), indices, name=name)

    def eval(self, session: Any = None) -> Any:
        """Reads the value in `session` or the default session."""
        return self._snapshot.eval(session=session)

    def load(self, value: Any, session: Any = None) -> None:
        """Sets the value in a session, without adding an operation to the graph.

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
        """Creates an operation that assigns a value; its output is the new value."""
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

    scatter_update = _changes_rows("Update", "sets rows to those of `IndexedSlices`")
    scatter_add = _changes_rows("Add", "adds rows of `IndexedSlices`")
    scatter_sub = _changes_rows("Sub", "subtracts rows of `IndexedSlices`")
    scatter_mul = _changes_rows("Mul", "multiplies rows by those of `IndexedSlices`")
    scatter_div = _changes_rows("Div", "divides rows by those of `IndexedSlices`")
    scatter_min = _changes_rows("Min", "lowers rows to those of `IndexedSlices`")
    scatter_max = _changes_rows("Max", "raises rows to those of `IndexedSlices`")
    scatter_nd_update = _changes_slices("Update", "sets")
    scatter_nd_add = _changes_slices("Add", "adds to")
    scatter_nd_sub = _changes_slices("Sub", "subtracts from")
    scatter_nd_max = _changes_slices("Max", "raises")
    scatter_nd_min = _changes_slices("Min", "lowers")

    def batch_scatter_update(
        self, sparse_delta: Any, use_locking: bool = False, name: str | None = None
    ) -> Tensor:
        """An operation that sets elements of each row; see the function `batch_scatter_update`."""
        variable_updates.check_rows(sparse_delta)
        indices, values = sparse_delta.all_indices, sparse_delta.all_values
        return variable_updates.batch_scatter_update(self, indices, values, use_locking, name)


def _as_initial_value(value: Any, dtype: DType | None, graph: Graph, scope: str) -> Tensor:
    """Converts to a tensor of `graph`.

    Raises:
        ValueError: it is computed in a function, conditional or loop.
    """
    if isinstance(value, Tensor) and value.graph is not graph and value.graph.outermost is graph:
        raise value_error(
            f"Initializer for variable {scope} is from inside a control-flow construct, such "
            "as a loop or conditional",
            received=value,
            hint="When creating a variable inside a loop or conditional, use a lambda as the "
            "initializer.",
        )
    return convert_to_tensor(value, dtype, "initial_value")


def _assign(op_type: str, variable: Variable, value: Any, name: str) -> Tensor:
    with get_default_graph().name_scope(name) as scope:
        tensor = convert_to_tensor(value, name="value", dtype_hint=variable.dtype)
        if tensor.dtype is not variable.dtype:
            raise type_error(
                f"the value assigned to {variable.name} has the wrong dtype",
                expected=variable.dtype.name,
                received=tensor.dtype.name,
                made_at=variable.op.source,
            )
        fits = tensor.shape.is_compatible_with(variable.shape)
        if not fits and not (op_type != "AssignVariableOp" and tensor.shape.rank == 0):
            raise value_error(
                f"Shapes of {variable.name} and of the value assigned to it are incompatible",
                expected=str(variable.shape),
                received=str(tensor.shape),
                made_at=variable.op.source,
            )
        if variable.aggregation in (VariableAggregation.SUM, VariableAggregation.MEAN):
            is_mean = variable.aggregation is VariableAggregation.MEAN
            tensor = replica_context.over_replicas(tensor, is_mean)
        return make(op_type, {"ref": variable.handle, "value": tensor}, name=scope)
