"""`Graph`: operations in creation order, with TensorFlow 1's scopes and collections.

A graph is data: operations, each with its inputs, control inputs, attributes, device and the line
of user code that created it. It is append-only. The functions at the end work on the default graph:
the innermost `with graph.as_default():` of the thread, or else the global one.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeVar

from estimatorkit.core import devices, ports
from estimatorkit.core.dtypes import DType
from estimatorkit.core.errors import did_you_mean, explain, type_error, value_error
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.source import user_line
from estimatorkit.core.tensor import Operation, Tensor, as_operation

_T = TypeVar("_T")

VALID_OP_NAME = re.compile(r"^[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*$")
_VALID_SCOPE_NAME = re.compile(r"^[A-Za-z0-9_.\\/>-]*$")


class _Scopes(threading.local):
    """The scopes opened by enclosing `with` blocks, per thread.

    Args:
        control, devices, colocation: the initial values in every thread.
    """

    def __init__(
        self,
        control: tuple[Operation, ...] = (),
        devices: tuple[Callable[[Any], str], ...] = (),
        colocation: tuple[Operation, ...] = (),
    ) -> None:
        self.name: str = ""
        self.control: list[tuple[Operation, ...]] = [control]
        self.devices = devices
        self.colocation = colocation
        self.container: str = ""
        self.gradients: dict[str, str] = {}
        self.unchecked = False
        self.creators: tuple[Callable[..., Any], ...] = ()
        self.writes: list[tuple[Operation, frozenset[Tensor]]] | None = None


class Graph:
    """A dataflow graph: operations in order of creation.

    Inside `with graph.as_default():` new operations are added to it. `print(graph)` lists them.
    """

    def __init__(self) -> None:
        self._ops: list[Operation] = []
        self._by_name: dict[str, Operation] = {}
        self._names_in_use: dict[str, int] = {}
        self._collections: dict[str, list[Any]] = {}
        self._scopes = _Scopes()
        self._finalized = False
        self.known_inputs: dict[Tensor, Tensor] = {}
        """Inputs of a function's body that have the value of a tensor of an enclosing graph."""
        self._not_fed: set[Tensor] = set()
        self._not_fetched: set[Operation] = set()
        self._lock = threading.RLock()
        self.seed: int | None = None
        self._extensions: dict[type[Any], Any] = {}

    # -- making operations

    def create_op(
        self,
        op_type: str,
        inputs: Sequence[Tensor],
        outputs: Sequence[tuple[DType, TensorShape]],
        attrs: dict[str, Any] | None = None,
        name: str | None = None,
    ) -> Operation:
        """Adds an operation.

        Args:
            op_type: its type.
            inputs: tensors of this graph.
            outputs: dtype and static shape of each output.
            attrs: attributes for the kernel.
            name: the requested name (default: the type), which is prefixed by the name scope and
                made unique. A name that ends in '/' is used verbatim.

        Raises:
            RuntimeError: the graph is finalized.
            ValueError: an input belongs to another graph, or the name is malformed.
        """
        inputs = tuple([each if each.graph is self else self.capture(each) for each in inputs])
        scopes = self._scopes
        with self._lock:
            if self._finalized:
                raise RuntimeError(
                    explain(
                        "Graph is finalized and cannot be modified",
                        received=f"a new {op_type}",
                        hint="create all operations before the session starts",
                    )
                )
            name = name.decode() if isinstance(name, bytes) else name or op_type
            if name.endswith("/"):
                full_name = name[:-1]
            else:
                if not VALID_OP_NAME.match(name):
                    raise value_error(
                        f"'{name}' is not a valid node name",
                        expected="letters, digits and ._/>-, not starting with one of _/>-",
                    )
                full_name = self.unique_name(name)
            override = scopes.gradients.get(op_type)
            if override is not None:
                attrs = {**(attrs or {}), "_gradient_op_type": override}
            if scopes.unchecked:
                attrs = {**(attrs or {}), "_checked": False}
            op = Operation(
                self,
                len(self._ops),
                op_type,
                full_name,
                inputs,
                self._control_inputs(inputs),
                attrs or {},
                "",
                user_line(),
                outputs,
            )
            if scopes.colocation:
                groups = (each.colocation_groups() for each in scopes.colocation)
                op.attrs["_class"] = tuple(
                    sorted({name.decode() for each in groups for name in each})
                )
            devices.place(op, scopes.devices)
            self._ops.append(op)
            self._by_name[full_name] = op
            return op

    def capture(self, tensor: Tensor) -> Tensor:
        """The tensor of this graph that represents one of another graph (see `FunctionGraph`).

        Raises:
            ValueError: always, for graphs that are not function bodies.
        """
        raise value_error(
            f"{tensor} must be from the same graph as the other inputs",
            made_at=tensor.op.source,
            hint="build the parts of a model under one `with graph.as_default():`",
        )

    def reaches(self, graph: Graph) -> bool:
        """Whether operations of this graph may have inputs in `graph`."""
        return graph is self

    @property
    def outermost(self) -> Graph:
        """The graph that holds the variables: this one, unless it is a function's body."""
        return self

    def _control_inputs(self, inputs: Sequence[Tensor]) -> tuple[Operation, ...]:
        current = self._scopes.control[-1]
        if not current:
            return ()
        direct = {tensor.op for tensor in inputs}
        return tuple(op for op in current if op not in direct)

    def unique_name(self, name: str, mark_as_used: bool = True) -> str:
        """A unique name for `name` in the current scope, with `_1`, `_2`, ... appended if taken.

        Uniqueness ignores case, as in TensorFlow.
        """
        if self._scopes.name:
            name = f"{self._scopes.name}/{name}"
        key = name.lower()
        with self._lock:
            count = self._names_in_use.get(key, 0)
            if mark_as_used:
                self._names_in_use[key] = count + 1
            if count > 0:
                stem = key
                while key in self._names_in_use:
                    key = f"{stem}_{count}"
                    count += 1
                if mark_as_used:
                    self._names_in_use[key] = 1
                    self._names_in_use[stem] = count
                name = f"{name}_{count - 1}"
        return name

    # -- scopes

    @contextmanager
    def as_default(self) -> Iterator[Graph]:
        """A context manager that makes this the default graph."""
        _defaults.graphs.append(self)
        try:
            yield self
        finally:
            if _defaults.graphs.pop() is not self:
                raise RuntimeError(
                    "nested `with graph.as_default():` blocks were exited out of order."
                )

    def __deepcopy__(self, memo: Any) -> Graph:
        return self

    @contextmanager
    def _scoped(self, **fields: Any) -> Iterator[None]:
        """A context manager that sets scopes of this thread."""
        own = vars(self._scopes)
        outer = {name: own[name] for name in fields}
        own.update(fields)
        try:
            yield
        finally:
            own.update(outer)

    @contextmanager
    def name_scope(self, name: str | None) -> Iterator[str]:
        """A context manager that prefixes the names of operations.

        Args:
            name: a new scope (made unique), an existing scope's string ending in '/' to re-enter
                it, or None or '' for the root.

        Yields:
            The scope's string, ending in '/'.
        """
        own = vars(self._scopes)
        outer = own["name"]
        if not name:
            inner = ""
        elif name.endswith("/"):
            inner = name[:-1]
        else:
            valid = _VALID_SCOPE_NAME if outer else VALID_OP_NAME
            if not valid.match(name):
                raise value_error(
                    f"'{name}' is not a valid scope name",
                    expected="letters, digits and ._/>-; top-level names do not start with _/>-",
                )
            inner = self.unique_name(name)
        # Not by `_scoped`: a nested context manager takes 6 % of the time to build a gradient.
        own["name"] = inner
        try:
            yield inner + "/" if inner else ""
        finally:
            own["name"] = outer

    def get_name_scope(self) -> str:
        """The current name scope, without the trailing '/'."""
        return self._scopes.name

    @property
    def variable_creators(self) -> tuple[Callable[..., Any], ...]:
        """The variable creators, outermost first; managed by `variable_creator_scope`."""
        return self._scopes.creators

    @variable_creators.setter
    def variable_creators(self, creators: tuple[Callable[..., Any], ...]) -> None:
        self._scopes.creators = creators

    @contextmanager
    def control_dependencies(self, control_inputs: Iterable[Any] | None) -> Iterator[None]:
        """A context manager whose operations run after `control_inputs`.

        `control_inputs` are operations, tensors, variables, or names of these; None clears the
        dependencies.

        Raises:
            ValueError: one of them belongs to another graph.
        """
        outer = self._scopes.control[-1]
        if control_inputs is None:
            inner: tuple[Operation, ...] = ()
        else:
            inner = tuple(dict.fromkeys((*outer, *map(self.control_input, control_inputs))))
        self._scopes.control.append(inner)
        try:
            yield
        finally:
            self._scopes.control.pop()

    def control_input(self, value: Any) -> Operation:
        """The operation of an operation, tensor, variable or name.

        Raises:
            KeyError, TypeError, ValueError: there is none, or it is in another graph.
        """
        op = as_operation(self.as_graph_element(value) if isinstance(value, str) else value)
        return op if self.reaches(op.graph) else as_operation(self.as_graph_element(op))

    @property
    def has_control_dependencies(self) -> bool:
        """Whether new operations get control inputs."""
        return bool(self._scopes.control[-1])

    @property
    def control_dependencies_in_force(self) -> tuple[Operation, ...]:
        """The control inputs of new operations."""
        return self._scopes.control[-1]

    @contextmanager
    def init_scope(self) -> Iterator[None]:
        """A context manager whose operations are added to this graph without control inputs."""
        # An initializer does not count as a step of the program (see `program_order`).
        with self._scoped(writes=None), self.as_default(), self.control_dependencies(None):
            yield

    @contextmanager
    def program_order(self) -> Iterator[list[Operation]]:
        """A context manager in which variables are read as the program says: after what has been
        assigned to them before, as in a Python function that runs line by line.

        Gives a list, which has the operations that assign variables once the context is left.
        """
        outer = self._scopes.writes
        writes = [] if outer is None else outer
        before, made = len(writes), list[Operation]()
        with self._scoped(writes=writes):
            try:
                yield made
            finally:
                made += [op for op, _ in writes[before:]]

    def note_write(self, op: Operation, handles: Iterable[Tensor]) -> None:
        """Notes an operation that assigns the variables of these handles (see `program_order`)."""
        if self._scopes.writes is not None:
            self._scopes.writes.append((op, frozenset(handles)))

    def has_written(self, handle: Tensor) -> bool:
        """Whether a variable has been assigned in this `program_order`; False outside of one."""
        return any(handle in handles for _, handles in self._scopes.writes or ())

    @contextmanager
    def device(self, device_name_or_function: devices.DeviceLike | None) -> Iterator[None]:
        """A context manager that requests a device for operations.

        Args:
            device_name_or_function: a name such as '/job:ps/task:1' or '/gpu:0', a `DeviceSpec`, or
                a function from an operation to a device name. Nested blocks are merged. None
                clears the request.

        Raises:
            ValueError: the name is malformed.
        """
        asked, outer = device_name_or_function, self._scopes.devices
        inner = () if asked is None else (*outer, devices.device_function(asked))
        with self._scoped(devices=inner):
            yield

    @contextmanager
    def colocate_with(self, op: Any, ignore_existing: bool = False) -> Iterator[None]:
        """A context manager that colocates operations with `op`.

        Device functions are still called, as in TensorFlow: they may count operations.

        Args:
            op: an operation, tensor or variable; None requires `ignore_existing`.
            ignore_existing: discard the colocation of enclosing blocks.

        Raises:
            ValueError: `op` is None without `ignore_existing`.
        """
        if op is None and not ignore_existing:
            raise ValueError(
                "Trying to reset colocation (op is None) but ignore_existing is not True"
            )
        asked: tuple[Any, ...] = ()
        others = () if ignore_existing else self._scopes.colocation
        if op is not None:
            place = op.device
            asked = (lambda _: place, *self._scopes.devices)  # the outermost is asked last
            others = (*others, as_operation(op))
        with self._scoped(devices=asked, colocation=others):
            yield

    @contextmanager
    def container(self, container_name: str) -> Iterator[str]:
        """Names a resource container; without effect, as a session has a single container."""
        with self._scoped(container=container_name):
            yield container_name

    def switch_to_thread_local(self) -> None:
        """Lets threads that use the graph later inherit this thread's device, colocation and
        control scopes. Unlike in TensorFlow, scopes are per thread before this call as well.
        """
        own = self._scopes
        self._scopes = _Scopes(own.control[-1], own.devices, own.colocation)
        self._scopes.__dict__.update(own.__dict__)

    @contextmanager
    def gradient_override_map(self, op_type_map: Mapping[str, str]) -> Iterator[None]:
        """A context manager that overrides the gradients of operations by type.

        Args:
            op_type_map: maps op types to the name of a gradient (see `RegisterGradient`) or another
                op type.

        Raises:
            TypeError: it is not a dict of strings.
        """
        if not isinstance(op_type_map, Mapping) or not all(
            isinstance(each, str) for pair in op_type_map.items() for each in pair
        ):
            raise TypeError("op_type_map must be a dictionary mapping strings to strings.")
        with self._scoped(gradients={**self._scopes.gradients, **op_type_map}):
            yield

    @contextmanager
    def without_tests(self) -> Iterator[None]:
        """A context manager whose operations take any values (see `faults`), such as the index of
        surplus rows."""
        with self._scoped(unchecked=True):
            yield

    # -- looking things up

    def get_operations(self) -> list[Operation]:
        """All operations, in creation order."""
        return list(self._ops)

    @property
    def version(self) -> int:
        """The number of operations, which serves as a version number."""
        return len(self._ops)

    def find_operation(self, name: str) -> Operation | None:
        """The operation called `name`, or None."""
        return self._by_name.get(name)

    def get_operation_by_name(self, name: str) -> Operation:
        """The operation called `name`.

        Raises:
            KeyError: there is none.
            ValueError: it is the name of a tensor.
        """
        found = self.find_operation(name)
        if found is None and ":" in name:
            raise ValueError(f"Name {name!r} appears to refer to a Tensor, not a Operation.")
        if found is None:
            raise KeyError(
                explain(
                    f"The name {name!r} refers to an Operation not in the graph",
                    hint=did_you_mean(name, self._by_name),
                )
            )
        return found

    def get_tensor_by_name(self, name: str) -> Tensor:
        """The tensor called `name`, for example 'Add:0'.

        Raises:
            KeyError: there is none.
            ValueError: `name` is not of the form `operation:index`.
        """
        op_name, colon, index = name.rpartition(":")
        if name in self._by_name:
            raise ValueError(
                f"The name {name!r} refers to an Operation, not a Tensor. Tensor names have the "
                f'form "<op_name>:<output_index>", for example {name + ":0"!r}.'
            )
        if not colon or not index.isdigit() or ":" in op_name:
            problem = (
                "looks a like a Tensor name, but is not a valid one."
                if colon
                else "looks like an (invalid) Operation name, not a Tensor."
            )
            raise value_error(
                f"The name {name!r} {problem} Tensor names must be of the form "
                '"<op_name>:<output_index>"',
                hint=did_you_mean(name, self._by_name),
            )
        if op_name not in self._by_name:
            raise KeyError(
                explain(
                    f"The name {name!r} refers to a Tensor which does not exist. The operation, "
                    f"{op_name!r}, does not exist in the graph",
                    hint=did_you_mean(op_name, self._by_name),
                )
            )
        outputs = self._by_name[op_name].outputs
        if int(index) >= len(outputs):
            raise KeyError(
                explain(
                    f"The name {name!r} refers to a Tensor which does not exist. The operation, "
                    f"{op_name!r}, exists but only has {len(outputs)} outputs",
                    expected=f"an index below {len(outputs)}",
                    received=index,
                )
            )
        return outputs[int(index)]

    def as_graph_element(
        self, obj: Any, allow_tensor: bool = True, allow_operation: bool = True
    ) -> Tensor | Operation:
        """The tensor or operation that `obj` refers to: itself, a variable, or a name.

        Raises:
            KeyError, TypeError, ValueError: there is none, or it is in another graph.
        """
        if hasattr(obj, "_as_graph_element"):
            obj = obj._as_graph_element()
        if isinstance(obj, bytes):
            obj = obj.decode()
        if isinstance(obj, str):
            obj = obj.removeprefix("^")
            if ":" in obj and allow_tensor:
                return self.get_tensor_by_name(obj)
            return (self.get_operation_by_name if allow_operation else self.get_tensor_by_name)(obj)
        if isinstance(obj, (Tensor, Operation)):
            if obj.graph is not self:
                raise value_error(
                    f"{obj!r} is not an element of this graph",
                    made_at=(obj.op if isinstance(obj, Tensor) else obj).source,
                    hint="use a session of the graph that contains it",
                )
            allowed = allow_tensor if isinstance(obj, Tensor) else allow_operation
            if allowed:
                return obj
        wanted = " or ".join(["Tensor"] * allow_tensor + ["Operation"] * allow_operation)
        raise type_error(
            f"Can not convert a {type(obj).__name__} into a {wanted}",
            expected=f"a {wanted}, a variable, or a name",
            received=repr(obj)[:200],
        )

    # -- collections

    def add_to_collection(self, name: str, value: Any) -> None:
        """Appends `value` to the collection `name`."""
        self._collections.setdefault(name, []).append(value)

    def add_to_collections(self, names: Iterable[str] | str, value: Any) -> None:
        """Appends `value` to each of the collections."""
        for name in [names] if isinstance(names, str) else dict.fromkeys(names):
            self.add_to_collection(name, value)

    def get_collection(self, name: str, scope: str | None = None) -> list[Any]:
        """A copy of the collection; with `scope`, only items whose names match that pattern."""
        items = self._collections.get(name, [])
        if scope is None:
            return list(items)
        pattern = re.compile(scope)
        return [item for item in items if hasattr(item, "name") and pattern.match(item.name)]

    def get_collection_ref(self, name: str) -> list[Any]:
        """The collection itself, as a mutable list."""
        return self._collections.setdefault(name, [])

    def get_all_collection_keys(self) -> list[str]:
        """The names of the collections that are strings."""
        return [name for name in self._collections if isinstance(name, str)]

    @property
    def collections(self) -> list[str]:
        """The names of all collections."""
        return list(self._collections)

    def clear_collection(self, name: str) -> None:
        """Empties the collection."""
        self._collections.pop(name, None)

    # -- the rest

    def extension(self, kind: type[_T]) -> _T:
        """This graph's object of a class, made on first use: what a module keeps for each graph."""
        with self._lock:
            if kind not in self._extensions:
                self._extensions[kind] = kind()
            found: _T = self._extensions[kind]
        return found

    def finalize(self) -> None:
        """Makes the graph read-only."""
        self._finalized = True

    def unfinalize(self) -> None:
        """Makes the graph writable again."""
        self._finalized = False

    _unsafe_unfinalize = unfinalize  # a private method that TensorFlow programs call

    @property
    def finalized(self) -> bool:
        """Whether the graph is read-only."""
        return self._finalized

    def prevent_feeding(self, tensor: Tensor) -> None:
        """Marks a tensor as not feedable."""
        self._not_fed.add(tensor)

    def is_feedable(self, tensor: Tensor) -> bool:
        """Whether the tensor may be fed."""
        return tensor not in self._not_fed

    def prevent_fetching(self, op: Tensor | Operation) -> None:
        """Marks a tensor or operation as not fetchable."""
        self._not_fetched.add(as_operation(op))

    def is_fetchable(self, tensor_or_op: Tensor | Operation) -> bool:
        """Whether the tensor or operation may be fetched."""
        return as_operation(tensor_or_op) not in self._not_fetched

    @property
    def building_function(self) -> bool:
        """Whether this is the graph of a function's body."""
        return self.outermost is not self

    @property
    def graph_def_versions(self) -> Any:
        """The `VersionDef` of the `GraphDef`s written from this graph."""
        return Graph().as_graph_def().versions

    def as_graph_def(self, from_version: int | None = None, add_shapes: bool = False) -> Any:
        """The graph as a `GraphDef` proto (see `graphdef.graph_def_of`)."""
        return ports.graphdef.graph_def_of(self, from_version, add_shapes)

    def verify(self) -> None:
        """Raises ValueError listing the problems if the graph is malformed."""
        ports.verification.verify(self)

    def to_dot(self, fetches: Any = None, depth: int | None = None) -> str:
        """The graph in the DOT language, for Graphviz (see `graph_dot.dot_of`)."""
        return ports.graph_dot.dot_of(self, fetches, depth)

    def to_svg(self, fetches: Any = None, depth: int | None = None) -> str:
        """The graph's picture as an SVG element (see `graph_dot.svg_of`)."""
        return ports.graph_dot.svg_of(self, fetches, depth)

    def __str__(self) -> str:
        return "\n".join(map(str, self._ops))

    def __repr__(self) -> str:
        return f"<Graph of {len(self._ops)} operations>"

    def _repr_html_(self) -> str:
        return ports.graph_dot.html_of(self)


class _Defaults(threading.local):
    """The stack of default graphs, per thread."""

    def __init__(self) -> None:
        self.graphs: list[Graph] = []


_defaults = _Defaults()
_global_graph = Graph()


def is_within_as_default() -> bool:
    """Whether this thread is inside a `with graph.as_default():` block."""
    return bool(_defaults.graphs)


def get_default_graph() -> Graph:
    """The graph that new operations are added to."""
    return _defaults.graphs[-1] if _defaults.graphs else _global_graph


def reset_default_graph() -> None:
    """Replaces the global default graph with an empty one.

    Raises:
        AssertionError: called inside a `with graph.as_default():` block, as in TensorFlow.
    """
    global _global_graph
    if _defaults.graphs:
        raise AssertionError(
            "Do not use reset_default_graph() to clear nested graphs. If you need a cleared graph, "
            "exit the nesting and create a new graph."
        )
    _global_graph = Graph()


def graph_of(values: Iterable[Any]) -> Graph:
    """The graph in which an operation on these values is created.

    The default graph, unless the values are tensors of a graph that it cannot reach.
    """
    graph = get_default_graph()
    for value in values:
        own = getattr(value, "graph", None)
        if isinstance(own, Graph):
            return graph if graph.reaches(own) or own.outermost is not own else own
    return graph


def in_graph_of(values: Iterable[Any]) -> AbstractContextManager[Any]:
    """A context manager whose default graph is `graph_of` the values."""
    graph = graph_of(values)
    return _SAME if graph is get_default_graph() else graph.as_default()


_SAME: AbstractContextManager[None] = nullcontext()


@contextmanager
def name_scope(
    name: str | None, default_name: str | None = None, values: Sequence[Any] | None = None
) -> Iterator[str]:
    """A context manager that prefixes operation names with `name`, or `default_name` if None.

    Args:
        name: see `Graph.name_scope`.
        default_name: the prefix if `name` is None.
        values: the tensors that the operations will use; see `graph_of`.

    Yields:
        The scope's string, ending in '/'.

    Raises:
        ValueError: `values` are given, but neither name; or they belong to different graphs.
    """
    if name is None and default_name is None and values is not None:
        raise ValueError("At least one of name (None) and default_name (None) must be provided.")
    with in_graph_of(values or ()):
        graph = get_default_graph()
        for value in values or ():
            own = getattr(value, "graph", graph)
            if isinstance(own, Graph) and own.outermost is not graph.outermost:
                raise value_error(
                    f"{value} must be from the same graph as the other values",
                    expected="values of one graph",
                )
        with graph.name_scope(default_name if name is None else name) as scope:
            yield scope


@contextmanager
def control_dependencies(control_inputs: Iterable[Any] | None) -> Iterator[None]:
    """`Graph.control_dependencies` on the default graph."""
    with get_default_graph().control_dependencies(control_inputs):
        yield


@contextmanager
def device(device_name_or_function: devices.DeviceLike | None) -> Iterator[None]:
    """`Graph.device` on the default graph."""
    with get_default_graph().device(device_name_or_function):
        yield


@contextmanager
def colocate_with(op: Any, ignore_existing: bool = False) -> Iterator[None]:
    """`Graph.colocate_with` on the default graph."""
    with get_default_graph().colocate_with(op, ignore_existing):
        yield


@contextmanager
def container(container_name: str) -> Iterator[str]:
    """`Graph.container` on the default graph."""
    with get_default_graph().container(container_name) as name:
        yield name


@contextmanager
def init_scope() -> Iterator[None]:
    """A context manager that lifts operations out of functions, loops, control dependencies and
    name scopes into the outermost graph.
    """
    graph = get_default_graph().outermost
    with graph.init_scope(), graph.name_scope(None):
        yield


def add_to_collection(name: str, value: Any) -> None:
    """`Graph.add_to_collection` on the default graph."""
    get_default_graph().add_to_collection(name, value)


def get_collection(key: str, scope: str | None = None) -> list[Any]:
    """`Graph.get_collection` on the default graph."""
    return get_default_graph().get_collection(key, scope)


def get_collection_ref(key: str) -> list[Any]:
    """`Graph.get_collection_ref` on the default graph."""
    return get_default_graph().get_collection_ref(key)


def set_random_seed(seed: int | None) -> None:
    """Sets the seed of the default graph, from which random operations derive their own.

    Operations created later draw the same numbers in every new session. None unsets the seed.
    """
    get_default_graph().seed = None if seed is None else int(seed)
