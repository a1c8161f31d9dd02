"""Function bodies as graphs: `FunctionGraph` captures tensors of enclosing graphs; `GraphFunction`
is a traced body with its inputs and outputs.

`cond`, `while_loop`, `map_fn`, `Defun` and custom gradients trace Python functions into these.
Tensors captured from outside become inputs of the operation that holds the function, so gradients,
placement and state need no special cases. Variables created inside belong to the outermost graph,
which also shares its collections and seed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import jax

from estimatorkit.core import registry
from estimatorkit.core.builtin_ops import identity, placeholder
from estimatorkit.core.dtypes import resource, variant
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.nest import expand
from estimatorkit.core.registry import Role, never_runs, role_of
from estimatorkit.core.tensor import Operation, Tensor


class FunctionGraph(Graph):
    """The graph of a function's body.

    Args:
        outer: the graph in which the function is used.

    Attributes:
        captures: maps captured tensors of outer graphs to the body's inputs.
        outer_control: operations of outer graphs that must run before the body.
        runs_actions: whether operations with side effects run though no output depends on them: so
            in functions of datasets, with the branches and loops inside.
    """

    def __init__(self, outer: Graph) -> None:
        super().__init__()
        self.outer = outer
        self.captures: dict[Tensor, Tensor] = {}
        self.outer_control: list[Operation] = []
        self.runs_actions: bool = getattr(outer, "runs_actions", False)
        self.seed = outer.seed
        self._collections = outer._collections
        self._scopes.name = outer.get_name_scope()

    @property
    def outermost(self) -> Graph:
        """The graph that holds the variables."""
        return self.outer.outermost

    def reaches(self, graph: Graph) -> bool:
        """Whether `graph` is this one or encloses it."""
        return graph is self or self.outer.reaches(graph)

    def capture(self, tensor: Tensor) -> Tensor:
        """The body's input for a tensor of an enclosing graph.

        Raises:
            ValueError: the tensor's graph does not enclose this one.
        """
        found = self.captures.get(tensor)
        if found is None and tensor.graph is not self.outer:
            tensor = self.outer.capture(tensor)
            found = self.captures.get(tensor)
        if found is None:
            found = self.captures[tensor] = self.add_input(tensor)
            if not tensor.dtype.is_differentiable:  # sizes stay static inside
                self.known_inputs[found] = tensor
        return found

    def add_input(self, like: Tensor) -> Tensor:
        """Adds an input with the dtype and shape of `like`, which may be a variable handle."""
        with self.as_default(), self.control_dependencies(None), self.name_scope(None):
            if like.dtype is resource:
                attrs = {name: like.op.attrs[name] for name in ("dtype", "shape")}
                handle = registry.output("VarHandleOp", (), attrs, like.op.name)
                handle.op.device = like.op.device
                return handle
            return placeholder(like.dtype, like.shape, f"{like.op.name}_{like.value_index}")

    def find_operation(self, name: str) -> Operation | None:
        """The operation called `name` in the body or an enclosing graph, or None."""
        return self._by_name.get(name) or self.outer.find_operation(name)

    @contextmanager
    def control_dependencies(self, control_inputs: Iterable[Any] | None) -> Iterator[None]:
        """As for a graph; operations of enclosing graphs run before the whole body."""
        if control_inputs is not None:
            given = list(map(self.control_input, control_inputs))
            self.outer_control.extend(op for op in given if op.graph is not self)
            control_inputs = [op for op in given if op.graph is self]
        with super().control_dependencies(control_inputs):
            yield

    @contextmanager
    def init_scope(self) -> Iterator[None]:
        """A context manager whose operations are added to the outermost graph."""
        with self.outermost.init_scope():
            yield

    def __repr__(self) -> str:
        return f"<FunctionGraph of {len(self._ops)} operations>"


def take_value(handle: Tensor) -> None:
    """Replaces a captured variable handle by an input for the variable's value.

    A body that only reads needs no handle: the variable may then be on another task, and gradients
    flow through the read outside the body.
    """
    for op in handle.consumers():
        if registry.role_of(op) is Role.READ:  # other consumers do not run
            op.type = "Identity"
    handle.op.type, handle.op.device = "Placeholder", ""
    handle.dtype, handle._shape = handle.op.attrs["dtype"], handle.op.attrs["shape"]


def operations_within(op: Operation) -> Iterator[Operation]:
    """All operations in the functions that an operation holds, recursively."""
    for function in functions_held(op.attrs):
        for each in function.graph.get_operations():
            yield each
            yield from operations_within(each)


def functions_held(value: Any) -> Iterator[GraphFunction]:
    """The functions in an attribute, or in all attributes of an operation."""
    if isinstance(value, GraphFunction):
        yield value
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from functions_held(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from functions_held(each)


def acts(op: Operation) -> bool:
    """Whether an operation has side effects, or may raise by intent: a function always runs it."""
    row = registry.lookup(op.type)
    if row.semantics.pure or row.semantics.random or never_runs(op) or role_of(op) is not None:
        return False
    if any(tensor.dtype in (resource, variant) for tensor in op.outputs):
        return False
    held = list(functions_held(op.attrs))
    return any(acts(each) for function in held for each in function.ops) if held else True


def after_actions(graph: FunctionGraph, outputs: list[Tensor]) -> list[Tensor]:
    """A function's outputs; if it `runs_actions`, the first one waits for those that are left."""
    if not graph.runs_actions:
        return outputs
    waits = set(graph.get_operations()).difference(_needed(outputs))
    actions = [op for op in graph.get_operations() if op in waits and acts(op)]
    if not actions or not outputs:
        return outputs
    with graph.control_dependencies(actions):
        return [identity(outputs[0]), *outputs[1:]]


def may_not_end(op: Operation) -> bool:
    """Whether an operation is a `While`, or contains or differentiates one."""
    every = (op, *operations_within(op))
    return any("While" in (each.type, each.attrs.get("forward_type")) for each in every)


class GraphFunction:
    """A traced function: a graph with its inputs and outputs.

    Attributes:
        graph: its own graph.
        arguments: the inputs that the caller passes.
        captured: the captured tensors of the enclosing graph, in order.
        inputs: `arguments`, then the body's inputs for `captured`, which may be variable handles.
        outputs: its output tensors.
        structure: the structure that the Python function returned, with tensors as leaves.
        ops: the operations that its outputs depend on, in execution order.
        traces: how often JAX traced it as a whole (`jitted`).
    """

    def __init__(
        self,
        graph: FunctionGraph,
        arguments: Sequence[Tensor],
        outputs: Sequence[Tensor],
        structure: Any,
    ) -> None:
        self.graph = graph
        self.arguments = tuple(arguments)
        self.outputs = tuple(outputs)
        self.structure = structure
        self.traces = 0
        self.gradient: tuple[GraphFunction, list[int]] | None = None  # owned by `host_gradients`
        self.iteration: tuple[GraphFunction, tuple[int, ...]] | None = None  # of `host_functions`
        self._jitted: Callable[..., Any] | None = None
        self.ops = _needed(self.outputs)
        used = {tensor for op in self.ops for tensor in op.inputs} | set(self.outputs)
        kept = [(outer, inner) for outer, inner in graph.captures.items() if inner in used]
        self.captured = tuple(outer for outer, _ in kept)
        self.inputs = (*self.arguments, *(inner for _, inner in kept))

    def copied_into(self, graph: Graph, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Copies its operations into another graph, and returns the copies of its outputs.

        Args:
            graph: the other graph.
            inputs: tensors of that graph that replace the function's inputs.
        """
        found = dict(zip(self.inputs, inputs, strict=True))
        copies: dict[Operation, Operation] = {}
        names: dict[str, str] = {}
        with graph.as_default(), graph.name_scope(None):
            for op in sorted(ancestors(each.op for each in self.outputs), key=lambda op: op.index):
                if op.outputs and op.outputs[0] in found:
                    continue
                attrs = dict(op.attrs)
                if "_forward" in attrs:  # an operation's name
                    attrs["_forward"] = names.get(attrs["_forward"], "")
                given = [found[each] for each in op.inputs]
                specs = [(each.dtype, each.shape) for each in op.outputs]
                before = [copies[each] for each in op.control_inputs if each in copies]
                with graph.control_dependencies(before):
                    copy = graph.create_op(op.type, given, specs, attrs, op.name)
                copy.device, copy.source = op.device, op.source
                copies[op], names[op.name] = copy, copy.name
                found.update(zip(op.outputs, copy.outputs, strict=True))
        return [found[each] for each in self.outputs]

    # -- what an operation that holds it must know, by position among `inputs`

    @functools.cached_property
    def updated(self) -> tuple[int, ...]:
        """The positions of inputs that are handles of variables it updates."""
        changed = {
            op.inputs[position]
            for op in self.ops
            for position in registry.lookup(op.type).semantics.updated_positions(op.attrs)
        }
        return tuple(at for at, tensor in enumerate(self.inputs) if tensor in changed)

    @property
    def assigned(self) -> list[Tensor]:
        """The captured handles of variables it updates."""
        count = len(self.arguments)
        return [self.captured[at - count] for at in self.updated if at >= count]

    @functools.cached_property
    def static(self) -> tuple[int, ...]:
        """The inputs that must be compile-time constants for XLA."""
        needed: set[Tensor] = set()
        for op in self.ops:
            for position in registry.lookup(op.type).semantics.static_positions(op.attrs):
                _add_sources(op.inputs[position], needed)
        return tuple(at for at, tensor in enumerate(self.inputs) if tensor in needed)

    @functools.cached_property
    def is_random(self) -> bool:
        """Whether it contains random operations."""
        return any(registry.lookup(op.type).semantics.random for op in self.ops)

    @functools.cached_property
    def on_host(self) -> bool:
        """Whether it contains operations that only run on the host."""
        tensors = (*self.inputs, *self.outputs)
        return any(tensor.dtype.on_host for tensor in tensors) or any(
            registry.lookup(op.type).placement.place(op.attrs) == "host"
            or any(tensor.dtype.on_host for tensor in (*op.inputs, *op.outputs))
            for op in self.ops
        )

    @functools.cached_property
    def may_not_end(self) -> bool:
        """Whether it contains a loop of unbounded length."""
        return any(map(may_not_end, self.ops))

    def jitted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """A jitted function of `(inputs, key, sites)` that runs `call(function, inputs, key)`.

        It is traced anew for other sites, which number its tests (see `runtime.xla.faults`).
        """
        if self._jitted is None:

            def run(inputs: Sequence[Any], key: Any, sites: Any) -> Any:
                self.traces += 1
                return call(self, inputs, key)

            self._jitted = jax.jit(run, static_argnums=2)
        return self._jitted

    @functools.cached_property
    def seed(self) -> tuple[int, int] | None:
        """The first seed of its random operations."""
        seeds = [op.attrs.get("_seed") for op in self.ops if "_seed" in op.attrs]
        return next((seed for seed in seeds if seed is not None), None)

    def __repr__(self) -> str:
        return f"<GraphFunction of {len(self.ops)} operations>"


def ancestors(operations: Iterable[Operation]) -> set[Operation]:
    """The operations on which some depend, by inputs or control edges, and these themselves."""
    found: set[Operation] = set()
    pending = list(operations)
    while pending:
        op = pending.pop()
        if op not in found:
            found.add(op)
            pending.extend(tensor.op for tensor in op.inputs)
            pending.extend(op.control_inputs)
    return found


def _needed(outputs: Sequence[Tensor]) -> list[Operation]:
    ordered = sorted(ancestors(tensor.op for tensor in outputs), key=lambda op: op.index)
    return [op for op in ordered if not (never_runs(op) or role_of(op) is Role.PLACEHOLDER)]


def _add_sources(tensor: Tensor, found: set[Tensor]) -> None:
    """Adds the sources that a compile-time constant depends on."""
    if tensor in found:
        return
    found.add(tensor)
    row = registry.lookup(tensor.op.type)
    if not row.semantics.known_from_shape:
        for each in tensor.op.inputs:
            _add_sources(each, found)


def trace(
    function: Callable[..., Any],
    arguments: Sequence[Tensor],
    rebuild: Callable[[Sequence[Tensor]], Sequence[Any]] = lambda tensors: tensors,
    convert: Callable[[Any], Any] | None = None,
) -> GraphFunction:
    """Runs a Python function once, on inputs of a new graph inside the default graph.

    Args:
        function: may use tensors and variables of enclosing graphs.
        arguments: tensors (of any graph) with the dtype and shape of each input.
        rebuild: maps the inputs to the function's positional arguments.
        convert: applied to the function's result, inside the graph.

    Returns:
        The function as a graph. Its outputs are the leaves of the result; composite values (sparse
        tensors, tensor arrays) are flattened, and an operation becomes a bool that depends on it.
    """
    outer = get_default_graph()
    graph = FunctionGraph(outer)
    inputs = [graph.add_input(each) for each in arguments]
    with graph.as_default():
        returned = function(*rebuild(inputs))
        if convert is not None:
            returned = convert(returned)
        leaves, _ = expand(returned)
        outputs = after_actions(graph, [as_output(graph, leaf) for leaf in leaves])
    return GraphFunction(graph, inputs, outputs, returned)


def as_output(graph: FunctionGraph, leaf: Any) -> Tensor:
    """A function's result as a tensor of its graph; for an operation, a bool that depends on it."""
    from estimatorkit.core.conversion import constant, convert_to_tensor

    if isinstance(leaf, Operation):
        with graph.control_dependencies([leaf]):
            return identity(constant(True))
    tensor = convert_to_tensor(leaf)
    if tensor.graph is not graph:  # an output that the body does not compute
        return identity(tensor)
    return tensor
