"""Converts a model's graph for serving: a plan's device segments become `ExportedModule`s.

A signature is planned as in a session. JAX traces each device segment with symbolic dimensions, and
it is written as StableHLO; host operations (strings, vocabularies, parsing) are copied, tables
become constants with initializers, and fed tensors become placeholders. A segment that cannot be
exported (because shapes depend on values, or it draws random numbers) is copied and compiled on
loading. Large arrays are stored outside the graph.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.export
import numpy as np
from numpy.typing import NDArray

from estimatorkit.core import registry
from estimatorkit.core.builtin_ops import placeholder
from estimatorkit.core.conversion import constant
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import Graph
from estimatorkit.core.registry import Role, role_of
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.core.x64 import x64
from estimatorkit.estimator.serving.exported_files import is_allowed
from estimatorkit.estimator.serving.exported_module import OP_TYPE, PLATFORMS
from estimatorkit.interop.graphdef import graph_def_of_operations, node_def_of
from estimatorkit.ops.nn.nearest_neighbors import BUILD
from estimatorkit.ops.tables.lookup_tables import TableSpec
from estimatorkit.ops.tables.tables import host_table
from estimatorkit.runtime.executor import CompiledSegment, segment_name
from estimatorkit.runtime.host_segments import HostSegment
from estimatorkit.runtime.plan import Plan, Segment, make_plan
from estimatorkit.runtime.state import ProcessState
from estimatorkit.runtime.symbolic import is_refusal, polymorphic_function
from estimatorkit.runtime.xla.interrupts import interrupts_put_off
from estimatorkit.runtime.xla.platforms import portable
from estimatorkit.storage import tensor_proto

LARGE_ARRAY = 1024
"""Bytes; larger arrays are stored outside the graph, each once."""


@dataclass
class ServingGraph:
    """A graph for serving.

    Attributes:
        graph_def: the graph, without modules and large arrays.
        feeds: placeholder names by input.
        fetches: tensor names by output.
        modules: the programs, by operation.
        arrays: large arrays, by content.
        array_places: arrays by 'operation:attribute'.
        variables: names of the variables that are read.
        initializers: the operations that initialize tables.
        kept: the reasons why segments are not modules, by segment name.
    """

    graph_def: Any
    feeds: dict[str, str]
    fetches: dict[str, str]
    modules: dict[str, bytes] = field(default_factory=dict)
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    array_places: dict[str, str] = field(default_factory=dict)
    variables: list[str] = field(default_factory=list)
    initializers: list[str] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)


class NotServable(Exception):
    """The reason why a segment cannot become a module."""


def make_serving_graph(
    session: Any,
    feeds: Mapping[str, Tensor],
    fetches: Mapping[str, Tensor],
    samples: Sequence[Mapping[str, NDArray[Any]]],
    modules: bool = True,
) -> ServingGraph:
    """Converts the part of a session's graph that a signature needs.

    Args:
        session: holds the model, with initialized tables.
        feeds: the input tensors by name.
        fetches: the output tensors by name.
        samples: two sets of inputs with different batch sizes, to identify the batch dimension; one
            if there is no batch.
        modules: whether segments become modules; if not, all operations are copied.

    Raises:
        InvalidArgumentError: a required placeholder is not fed, or an input is rejected.
        ValueError: an operation cannot be serialized.
    """
    plan = make_plan(
        session.graph, list(fetches.values()), [], list(feeds.values()), session.state.placer
    )
    used = samples if modules else ()
    values = [_segment_inputs(plan, session.state, [each[key] for key in feeds]) for each in used]
    batches = [np.shape(next(iter(each.values())))[:1] for each in used]
    return _Writer(session, plan, values, batches, modules).write(feeds, fetches)


def _segment_inputs(plan: Plan, state: ProcessState, fed: Sequence[Any]) -> dict[Tensor, Any]:
    """The inputs of device segments, for one set of inputs."""
    values: dict[Any, Any] = dict(zip(plan.feeds, fed, strict=True))
    devices = [number for number, each in enumerate(plan.segments) if each.place == "device"]
    for segment in plan.segments[: devices[-1] if devices else 0]:
        if segment.place == "device":
            CompiledSegment(segment, state, segment_name(segment))(values)
        else:
            HostSegment(segment, state)(values)
    return values


class _Writer:
    """Writes the graph of one plan."""

    def __init__(
        self,
        session: Any,
        plan: Plan,
        samples: Sequence[Mapping[Tensor, Any]],
        batches: Sequence[tuple[int, ...]],
        modules: bool,
    ) -> None:
        self._modules = modules
        self._session = session
        self._plan = plan
        self._samples = samples
        self._batches = batches
        self._operations = {op.name for op in session.graph.get_operations()}
        self._taken = set(self._operations)
        self._names: dict[Tensor, str] = {}
        self._homes: dict[Operation, str] = {}  # module by operation
        self._copied: dict[Operation, None] = {}
        self._nodes: list[Any] = []
        self._scratch = Graph()

    def write(self, feeds: Mapping[str, Tensor], fetches: Mapping[str, Tensor]) -> ServingGraph:
        made = ServingGraph(None, {}, {})
        for key, tensor in feeds.items():
            if tensor not in self._names:
                with self._scratch.as_default():
                    fed = placeholder(tensor.dtype, tensor.shape)
                self._names[tensor] = self._add(fed.op, "serving_input")
            made.feeds[key] = self._names[tensor] + ":0"
        for segment in self._plan.segments:
            try:
                if segment.place == "device" and self._modules:
                    self._write_module(segment, made)
                    continue
            except NotServable as reason:
                made.kept[segment_name(segment)] = str(reason)
            self._copied.update(dict.fromkeys(segment.ops))
        made.fetches = {key: self._fetched(tensor) for key, tensor in fetches.items()}
        self._copy_operations(made)
        made.variables = sorted(op.name for op in self._copied if role_of(op) is Role.VARIABLE)
        return made

    # -- names

    def _unique(self, wished: str) -> str:
        name, number = wished, 0
        while name in self._taken:
            number += 1
            name = f"{wished}_{number}"
        self._taken.add(name)
        return name

    def _add(self, op: Operation, wished: str) -> str:
        """Adds a new operation, and returns its name."""
        node = node_def_of(op)
        node.name = self._unique(wished)
        self._nodes.append(node)
        return str(node.name)

    def _name(self, tensor: Tensor) -> str:
        """The name of a tensor in the new graph; copies its operation if necessary."""
        tensor = self._plan.rewriting.resolve(tensor)
        if tensor in self._names:
            return self._names[tensor]
        value = self._plan.rewriting.value(tensor)
        if value is not None and role_of(tensor.op) is not Role.CONSTANT:
            with self._scratch.as_default():
                known = constant(np.asarray(value), tensor.dtype)
            self._names[tensor] = self._add(known.op, "serving_constant")
            return self._names[tensor]
        self._copied[tensor.op] = None
        return tensor.op.name if tensor.value_index == 0 else tensor.name

    def _fetched(self, tensor: Tensor) -> str:
        name = self._name(tensor)
        return name if ":" in name else f"{name}:0"

    # -- operations that are copied

    def _copy_operations(self, made: ServingGraph) -> None:
        indexes = self._index_builders()
        self._copied.update(dict.fromkeys(indexes))
        done: dict[Operation, None] = {}
        inputs: dict[str, list[str]] = {}
        while len(done) < len(self._copied):  # naming an input may copy its operation
            for op in [each for each in self._copied if each not in done]:
                done[op] = None
                self._copy_variable_named(op)
                inputs[op.name] = [*map(self._name, op.inputs), *self._controls([op])]
        for op in self._copied:
            if not is_allowed(op.type):
                raise value_error(
                    f"{op.name} ({op.type}) cannot be part of an exported model",
                    expected="operations that compute, and tables",
                    made_at=op.source,
                    hint="Python functions and files are not there where it is served: give "
                    "the values as features, or use jax_function, which is exported",
                )
        written = graph_def_of_operations(sorted(self._copied, key=lambda op: op.index))
        for node in written.node:
            node.device = ""
            node.input[:] = inputs[node.name]
        written.node.extend(self._nodes)
        made.initializers = [*self._write_tables(written), *(op.name for op in indexes)]
        _take_arrays_out(written, made)
        made.graph_def = written

    def _copy_variable_named(self, op: Operation) -> None:
        """Copies the variable that an operation reads by its name: the ids of a dynamic table.

        Other holders may have a shared name, which no operation has.
        """
        name = op.attrs.get(registry.lookup(op.type).placement.holder)
        if not isinstance(name, str) or name not in self._operations:
            return
        if role_of(op.graph.get_operation_by_name(name)) is Role.VARIABLE:
            self._read(name)

    def _index_builders(self) -> list[Operation]:
        """The operations that build the indexes of nearest neighbors that are used."""
        used = {op.attrs["index"] for op in self._copied if op.type == "NearestNeighbors"}
        ops = self._session.graph.get_operations() if used else ()
        return [op for op in ops if op.type == BUILD and op.attrs["index"] in used]

    def _controls(self, ops: Sequence[Operation]) -> list[str]:
        """Control inputs, restricted to operations in the new graph."""
        found: dict[str, None] = {}
        for op in ops:
            for control in op.control_inputs:
                if control in self._homes:
                    found[f"^{self._homes[control]}"] = None
                elif control in self._copied:
                    found[f"^{control.name}"] = None
        return list(found)

    def _write_tables(self, written: Any) -> list[str]:
        """Stores the content of tables in the graph, so that serving reads no files."""
        tables: dict[str, tuple[Any, ...]] = {}
        for op in self._copied:
            if isinstance(op.attrs.get("table"), str) and "spec" in op.attrs:
                tables[op.attrs["table"]] = op.attrs["spec"]
        names = []
        for table, spec in tables.items():
            held = host_table(self._session.state, table, spec)
            with self._scratch.as_default():
                pairs = [constant(each) for each in held.export()]
                mutable = TableSpec(*spec).mutable
                kind = "LookupTableInsertV2" if mutable else "InitializeTableV2"
                fill = registry.apply(kind, pairs, {"table": table, "spec": spec})
            before = len(self._nodes)
            parts = [self._add(each.op, "serving_table") for each in pairs]
            names.append(self._add(fill, "serving_table_init"))
            self._nodes[-1].input[:] = parts
            written.node.extend(self._nodes[before:])
        return names

    # -- modules

    def _write_module(self, segment: Segment, made: ServingGraph) -> None:
        program = self._program(segment)
        name = self._unique("serving_module")
        inputs = [
            *map(self._name, segment.inputs),
            *(self._read(variable) for variable in segment.reads),
        ]
        from tensorboard.compat.proto.node_def_pb2 import NodeDef

        controls = self._controls(segment.ops)
        self._nodes.append(NodeDef(name=name, op=OP_TYPE, input=[*inputs, *controls]))
        made.modules[name] = program
        self._homes.update(dict.fromkeys(segment.ops, name))
        for number, tensor in enumerate(segment.outputs):
            self._names[tensor] = f"{name}:{number}" if number else name

    def _read(self, variable: str) -> str:
        """The name of the tensor that reads a variable."""
        handle = self._session.graph.get_operation_by_name(variable).outputs[0]
        if handle not in self._names:
            self._copied[handle.op] = None
            read = self._session.graph.get_tensor_by_name(f"{variable}/read:0")
            self._copied[read.op] = None
            self._names[handle] = handle.op.name
            return str(read.op.name)
        return f"{variable}/read"

    def _program(self, segment: Segment) -> bytes:
        """A segment as StableHLO.

        Raises:
            NotServable: it cannot be exported.
        """
        if segment.writes or segment.random:
            raise NotServable(f"it changes {', '.join([*segment.writes, *segment.random])}")
        if segment.static_inputs:
            names = ", ".join(tensor.name for tensor in segment.static_inputs)
            raise NotServable(f"shapes follow from the values of {names}")
        symbols = _Symbols(self._samples, self._batches)
        taken = [symbols.abstract(tensor) for tensor in segment.inputs]
        for variable in segment.reads:
            attrs = self._session.graph.get_operation_by_name(variable).attrs
            shape = attrs["shape"]
            if not shape.is_fully_defined():  # immutable from now on
                shape = np.shape(self._session.state.values[variable])
            taken.append(_abstract([*shape], attrs["dtype"]))
        function = jax.jit(polymorphic_function(segment))
        try:
            with x64() if segment.wide else nullcontext(), portable(), interrupts_put_off():
                program = jax.export.export(function, platforms=PLATFORMS)(taken)
                return bytes(program.serialize())
        except Exception as error:
            if not is_refusal(error):
                raise
            raise NotServable(f"{type(error).__name__}: {str(error).splitlines()[0]}") from error


class _Symbols:
    """Unknown dimensions as JAX symbolic dimensions.

    Leading dimensions equal to the batch size in both samples share one symbol.
    """

    def __init__(
        self, samples: Sequence[Mapping[Tensor, Any]], batches: Sequence[tuple[int, ...]]
    ) -> None:
        self._samples = samples
        self._batches = batches
        self._scope = jax.export.SymbolicScope(["batch >= 1"])
        self._count = 0

    def abstract(self, tensor: Tensor) -> Any:
        """A tensor's dtype and shape, for JAX."""
        dims = tensor.shape.dims
        if dims is None:
            raise NotServable(f"the rank of {tensor.name} is not known")
        sizes = [np.shape(values[tensor]) for values in self._samples if tensor in values]
        batches = list(self._batches)
        named: list[Any] = []
        for axis, dim in enumerate(dims):
            if dim is not None:
                named.append(dim)
                continue
            is_batch = axis == 0 and len(sizes) == 2 and [each[:1] for each in sizes] == batches
            self._count += not is_batch
            name = "batch" if is_batch else f"size{self._count}"
            named.append(jax.export.symbolic_shape(name, scope=self._scope)[0])
        return _abstract(named, tensor.dtype)


def _abstract(dims: Sequence[Any], dtype: Any) -> Any:
    return jax.ShapeDtypeStruct(dims, dtype.numpy_dtype)  # type: ignore[no-untyped-call]


# -- arrays


def _take_arrays_out(graph_def: Any, made: ServingGraph) -> None:
    for node in graph_def.node:
        for key, attr in node.attr.items():
            if attr.WhichOneof("value") != "tensor" or attr.tensor.ByteSize() <= LARGE_ARRAY:
                continue
            array = tensor_proto.tensor_value(attr.tensor)
            name = hashlib.sha256(attr.tensor.SerializeToString(deterministic=True)).hexdigest()
            made.arrays[f"array/{name}"] = array
            made.array_places[f"{node.name}:{key}"] = f"array/{name}"
            attr.ClearField("tensor")


__all__ = ["LARGE_ARRAY", "ServingGraph", "make_serving_graph"]
