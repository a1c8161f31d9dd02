"""Lowering: an interpreter of operations, which JAX traces for device segments and which runs host
segments directly.

`interpret` runs operations in order on values and state. Traced by `jax.jit`, it yields the
executable of a device segment. Values that follow from constants and shapes stay NumPy arrays while
tracing, so that computed shapes are static where XLA requires it. A forward operation with its
`VectorJacobianProduct` in the same segment runs once, by `jax.vjp`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, cast

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr

from estimatorkit.core import gradients, registry, trust, vjp
from estimatorkit.core.dtypes import DType, resource, uint32
from estimatorkit.core.errors import (
    InvalidArgumentError,
    OpError,
    value_error,
)
from estimatorkit.core.faults import Fault, FaultTest
from estimatorkit.core.function_graph import GraphFunction
from estimatorkit.core.indexed_slices import may_hold_surplus
from estimatorkit.core.registry import folding
from estimatorkit.core.retraced import retraced
from estimatorkit.core.shapes import TensorShape, as_shape, differ
from estimatorkit.core.sizes import as_traced, is_symbolic
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.core.x64 import x64
from estimatorkit.garbage import uncollected
from estimatorkit.runtime.graph_optimizer import Rewriting
from estimatorkit.runtime.plan import Segment
from estimatorkit.runtime.xla.collected_faults import collect, has
from estimatorkit.runtime.xla.faults import (
    GUARD,
    Sites,
    collecting,
    committed,
    is_collecting,
    marked,
    raise_found,
    tested,
)
from estimatorkit.runtime.xla.interrupts import interrupts_put_off
from estimatorkit.runtime.xla.jaxpr_optimizer import optimized, rewritten
from estimatorkit.runtime.xla.memory_errors import Shapes, abstract, out_of_memory
from estimatorkit.runtime.xla.platforms import traced_for
from estimatorkit.runtime.xla.random_bits import random_key, split_key, state_in_body
from estimatorkit.runtime.xla.sharded_rows import whole

_AS_WRITTEN = Rewriting()

_REFUSALS = (TypeError, ValueError, IndexError, ArithmeticError)
"""What kernels raise on values they cannot take; reported with the op and the user's line."""


def interpret(
    ops: Sequence[Operation],
    values: dict[Tensor, Any],
    state: dict[str, Any],
    *,
    host: bool,
    context: Any = None,
    last_use: Mapping[Operation, Sequence[Tensor]] | None = None,
    differentiable: bool = False,
    rewriting: Rewriting = _AS_WRITTEN,
    instead: Mapping[Operation, Callable[..., Any]] | None = None,
) -> None:
    """Runs operations in order.

    Args:
        ops: the operations.
        values: the values of tensors; outputs are added.
        state: variables and random counters by name; updated in place.
        host: run host and NumPy kernels rather than JAX.
        context: the session's state, for host kernels that request it.
        last_use: tensors to release after an operation.
        differentiable: whether JAX may differentiate the result (the body of a function), which
            must then include custom gradients.
        rewriting: replacements of operations that do not run.
        instead: functions that replace the kernels of operations.

    Raises:
        InvalidArgumentError: a kernel rejected its inputs.
    """
    shared = {} if host else _shared_pulls(ops, rewriting)
    trace_context = None if host or differentiable else traced_for()
    pulls: dict[str, tuple[Sequence[Any], Any, tuple[int, ...]]] = {}
    outputs: Sequence[Any]
    for op in ops:
        row = registry.lookup(op.type)
        attrs = op.kernel_attrs
        inputs = [
            _input(position, rewriting.resolve(tensor), row, values, state, rewriting)
            for position, tensor in enumerate(op.inputs)
        ]
        if not host:
            if not row.placement.takes_shards or op.name in shared:
                inputs = list(map(whole, inputs))
            if any(map(is_symbolic, inputs)):
                inputs = _sizes_traced(op, row, inputs)
        marks: list[tuple[Any, int]] = []
        if row.fault is not None and (host or is_collecting()) and op.attrs.get("_checked", True):
            faults = _faults_of(op, row, inputs)
            if host:
                raise_found(op, faults)
            else:
                static = (
                    range(len(inputs))
                    if not differentiable
                    else row.semantics.static_positions(attrs)
                )
                inputs, marks = tested(op, inputs, faults, static)
        try:
            if instead is not None and op in instead:
                outputs = [instead[op](*inputs)]
            elif vjp.VECTOR_JACOBIAN_PRODUCT.made(op) and _forward_of(op, rewriting) in pulls:
                outputs = _pull(op, inputs, pulls[_forward_of(op, rewriting)])
            elif op.name in shared:
                given, pull = vjp.pull_back(op.type, attrs, inputs, shared[op.name], trace_context)
                pulls[op.name] = (given, pull, shared[op.name])
                outputs = given
            elif differentiable and gradients.is_special(op):
                outputs = _run_with_own_gradient(op, inputs, values, state)
            else:
                outputs = _run_kernel(op, row, inputs, attrs, state, host, context, trace_context)
        except OpError as error:
            attribute(op, error)
            raise
        except _REFUSALS as error:
            raise _refused(op, inputs, error) from error
        except MemoryError as error:
            raise out_of_memory([op], str(error)) from error
        if row.result_fault is not None and (host or is_collecting()):
            wrong = row.result_fault(inputs, outputs, op.attrs)
            if host:
                raise_found(op, wrong)
            else:
                outputs, later = tested(op, list(outputs), wrong, ())
                marks += later
        if not host:
            outputs = marked(outputs, marks)
            _check_sizes(op, outputs)
        updates = row.semantics.updated_positions(attrs)
        new_state, outputs = outputs[: len(updates)], outputs[len(updates) :]
        for position, new in zip(updates, new_state, strict=True):
            name = op.inputs[position].op.name
            _check_assigned(op, op.inputs[position].op, new)
            if not host and "functions" not in op.attrs:  # functions commit inside
                new = committed(state.get(name), new)
            state[name] = new
        for tensor, value in zip(op.outputs, outputs, strict=True):
            values[tensor] = value
        if last_use is not None:
            for tensor in last_use.get(op, ()):
                values.pop(tensor, None)


def _sizes_traced(op: Operation, row: registry.OpDef, inputs: list[Any]) -> list[Any]:
    """Inputs with sizes (`core.sizes`) as traced arrays, unless the operation needs them known:
    it is folded, or passes them on to the functions that it holds.
    """
    if "functions" in op.attrs:
        return inputs
    static = row.semantics.static_positions(op.kernel_attrs)
    if row.foldable and folding.fold(row, inputs, op.kernel_attrs, op.outputs) is not None:
        return inputs
    return [
        as_traced(value, tensor.dtype.numpy_dtype)
        if at not in static and is_symbolic(value)
        else value
        for at, (value, tensor) in enumerate(zip(inputs, op.inputs, strict=True))
    ]


def _faults_of(op: Operation, row: registry.OpDef, inputs: list[Any]) -> list[Fault]:
    """The tests of an operation's inputs, but those of indices that may be surplus."""
    test = cast(FaultTest, row.fault)
    try:
        faults = test(inputs, op.attrs)
    except _REFUSALS as error:  # incompatible shapes
        raise _refused(op, inputs, error) from error
    return [each for each in faults if not may_hold_surplus(op.inputs[each.position])]


def _input(
    position: int,
    tensor: Tensor,
    row: registry.OpDef,
    values: dict[Tensor, Any],
    state: dict[str, Any],
    rewriting: Rewriting,
) -> Any:
    if tensor.dtype is resource:
        return None if position in row.semantics.overwrites else state[tensor.op.name]
    value = values.get(tensor)
    return rewriting.value(tensor) if value is None else value


def _run_kernel(
    op: Operation,
    row: registry.OpDef,
    inputs: list[Any],
    attrs: dict[str, Any],
    state: dict[str, Any],
    host: bool,
    context: Any,
    trace_context: Any = None,
) -> Sequence[Any]:
    if row.semantics.effects:
        trust.check(op, row.semantics.has_effects(attrs), inputs)
    if host:
        extra = {"context": context} if row.placement.context else {}
        if row.semantics.random:
            extra["key"] = np.asarray(state[op.name])
            state[op.name] = extra["key"] + np.array([0, 0, 1], np.uint32)
        if row.placement.where == "host":
            return folding.as_declared(row.kernel(*inputs, **attrs, **extra), op.outputs)
        if row.numpy_kernel is None:
            raise InvalidArgumentError.explained(
                f"{op.type} cannot process strings on a device",
                received=", ".join(str(tensor) for tensor in op.inputs),
                made_at=op.source,
                op=op,
            )
        return folding.in_numpy(row, inputs, attrs, op.outputs, **extra)
    if row.semantics.random:
        word = state[op.name]
        state[op.name] = word.at[2].add(np.uint32(1))
        result = row.kernel(*inputs, **attrs, key=random_key(word))
    else:
        known = folding.fold(row, inputs, attrs, op.outputs)
        if known is not None:
            return known
        if row.foldable:  # what NumPy may not compute, it must not compute in the kernel either
            static = row.semantics.static_positions(attrs)
            inputs = [
                jax.numpy.asarray(each)
                if isinstance(each, (np.ndarray, np.generic)) and at not in static
                else each
                for at, each in enumerate(inputs)
            ]
        with folding.quiet():  # constants are NumPy's
            if trace_context is not None and row.semantics.updates:
                kernel = partial(row.kernel, **attrs)
                result, _ = retraced(kernel, ("kernel", op.type, attrs, trace_context), inputs)
            else:
                result = row.kernel(*inputs, **attrs)
    return list(result) if isinstance(result, (tuple, list)) else [result]


def _run_with_own_gradient(
    op: Operation, inputs: list[Any], values: Mapping[Tensor, Any], state: dict[str, Any]
) -> Sequence[Any]:
    """Runs an operation with a custom gradient, as a `jax.custom_vjp`."""
    row = registry.lookup(op.type)

    def run(*given: Any) -> tuple[Any, ...]:
        return tuple(_run_kernel(op, row, list(given), op.kernel_attrs, state, False, None))

    if gradients.gradient_rule(op)[0] == "undefined":
        return _run_without_gradient(op, run, inputs)
    backward = gradients.backward_function(op)
    if backward is None:
        outputs = list(map(jax.lax.stop_gradient, run(*inputs)))
        for at, position in enumerate(row.semantics.updated_positions(op.kernel_attrs)):
            old = state[op.inputs[position].op.name]
            outputs[at] = _read_as(old, outputs[at])
        return outputs
    captured = [
        whole(state[tensor.op.name])
        if tensor.dtype is resource
        else whole(values[tensor])
        if tensor in values
        else tensor.op.attrs["value"]
        for tensor in backward.function.captured
    ]
    traced = [at for at, value in enumerate(inputs) if not isinstance(value, np.ndarray)]

    def completed(chosen: Sequence[Any]) -> list[Any]:
        every = list(inputs)
        for at, value in zip(traced, chosen, strict=True):
            every[at] = value
        return every

    @jax.custom_vjp
    def call(chosen: Sequence[Any], captured: Sequence[Any]) -> Any:
        return run(*completed(chosen))

    def forward(chosen: Sequence[Any], captured: Sequence[Any]) -> Any:
        outputs = run(*completed(chosen))
        return outputs, (chosen, captured, outputs)

    def pull(kept: Any, incoming: Any) -> Any:
        chosen, captured, outputs = kept
        dense = [
            jax.numpy.zeros(output.shape, output.dtype)
            if getattr(each, "dtype", None) == jax.dtypes.float0
            else each
            for each, output in zip(vjp.conjugated(incoming), outputs, strict=True)
        ]
        _, found = call_function(
            backward.function, [*completed(chosen), *outputs, *dense, *captured]
        )
        by_position = dict(zip(backward.positions, vjp.conjugated(found), strict=True))
        return [by_position.get(at) for at in traced], None

    call.defvjp(forward, pull)
    result: tuple[Any, ...] = call([inputs[at] for at in traced], captured)
    return result


def _run_without_gradient(
    op: Operation, run: Callable[..., tuple[Any, ...]], inputs: list[Any]
) -> Sequence[Any]:
    """Runs an operation; differentiating it raises LookupError."""

    def refuse(kept: Any, incoming: Any) -> Any:
        raise gradients.undefined_gradient(op)

    call = jax.custom_vjp(run)
    call.defvjp(lambda *given: (run(*given), None), refuse)
    return call(*inputs)


@jax.custom_jvp
def _read_as(old: Any, new: Any) -> Any:
    """The value of a variable after an assignment. Later reads contribute to the variable's
    gradient like earlier ones; the assigned value gets none.
    """
    return new


@_read_as.defjvp
def _(primals: Any, tangents: Any) -> Any:
    return primals[1], tangents[0]


def call_function(
    function: GraphFunction,
    inputs: Sequence[Any],
    key: Any = None,
    instead: Mapping[Operation, Callable[..., Any]] | None = None,
) -> tuple[list[Any], list[Any]]:
    """Runs a function's body, in JAX.

    Args:
        function: the function.
        inputs: the values of its inputs; for handles, the variables' values. NumPy arrays are
            compile-time constants inside.
        key: two random words (see `split_key`), if it contains random operations.
        instead: see `interpret`.

    Returns:
        The new values of the variables that it updates, and its outputs.
    """
    values: dict[Tensor, Any] = {}
    state: dict[str, Any] = {}
    for tensor, value in zip(function.inputs, inputs, strict=True):
        if tensor.dtype is resource:
            state[tensor.op.name] = value
        else:
            values[tensor] = value
    for op in function.ops:
        if registry.lookup(op.type).semantics.random:
            state[op.name] = state_in_body(split_key(key, op.index))
    interpret(function.ops, values, state, host=False, differentiable=True, instead=instead)
    changed = [state[function.inputs[position].op.name] for position in function.updated]
    return changed, [_kept_known(values, tensor) for tensor in function.outputs]


def _kept_known(values: Mapping[Tensor, Any], tensor: Tensor) -> Any:
    value = values[tensor] if tensor in values else tensor.op.attrs["value"]
    if is_symbolic(value):
        return value
    known = isinstance(value, (np.ndarray, np.generic))
    return (np if known else jax.numpy).asarray(value, tensor.dtype.numpy_dtype)


def _forward_of(op: Operation, rewriting: Rewriting) -> str:
    """The name of the forward operation of a backward operation."""
    name: str = op.attrs["_forward"]
    return rewriting.same_name.get(name, name)


def _shared_pulls(ops: Sequence[Operation], rewriting: Rewriting) -> dict[str, tuple[int, ...]]:
    """The inputs that operations are differentiated by within the segment, by operation name."""
    here = {op.name for op in ops}
    wanted: dict[str, set[int]] = {}
    for op in ops:
        if vjp.VECTOR_JACOBIAN_PRODUCT.made(op) and _forward_of(op, rewriting) in here:
            wanted.setdefault(_forward_of(op, rewriting), set()).update(op.attrs["wanted"])
    return {name: tuple(sorted(positions)) for name, positions in wanted.items()}


def _pull(
    op: Operation, inputs: list[Any], shared: tuple[Sequence[Any], Any, tuple[int, ...]]
) -> list[Any]:
    outputs, pull, positions = shared
    incoming = inputs[op.attrs["inputs"] :]
    given = vjp.given_positions(
        op.attrs["forward_type"], op.attrs["forward_attrs"], op.attrs["given"]
    )
    results = pull(vjp.output_gradients(outputs, given, incoming))
    by_position = dict(zip(positions, results, strict=True))
    return [by_position[position] for position in op.attrs["wanted"]]


def attribute(op: Operation, error: OpError) -> None:
    """Adds the operation and the line of user code to an error, if missing."""
    if error.op is None:
        error.op = op
        if "made at:" not in error.message:
            error.message += f"\n  made at:  {op.source} ({op.name}, {op.type})"


def _refused(op: Operation, inputs: Sequence[Any], error: Exception) -> InvalidArgumentError:
    received = ", ".join(
        f"{tensor.name} {tuple(getattr(value, 'shape', ()))} {tensor.dtype.name}"
        for tensor, value in zip(op.inputs, inputs, strict=True)
    )
    return InvalidArgumentError.explained(
        f"{op.name} ({op.type}) does not accept these inputs: {str(error).splitlines()[0]}",
        received=received or None,
        made_at=op.source,
        op=op,
    )


_MOST_BYTES = 1 << 62
"""The maximum size of an array; XLA aborts the process on larger ones."""


def _check_assigned(op: Operation, handle: Operation, new: Any) -> None:
    """Raises InvalidArgumentError if a value of unknown shape changes the shape of a variable."""
    static = handle.attrs.get("shape")
    if not isinstance(static, TensorShape) or static.dims is None:
        return
    wanted, given = static.dims, getattr(new, "shape", static.dims)
    if differ(wanted, given):
        raise InvalidArgumentError.explained(
            "Assign requires shapes of both tensors to match. Trying to assign to variable "
            f"{handle.name} with tensor with wrong shape. Expected {static} got {list(given)}",
            made_at=op.source,
            op=op,
        )


def _check_sizes(op: Operation, outputs: Sequence[Any]) -> None:
    """Raises InvalidArgumentError if an output is larger than memory can be addressed."""
    for value in outputs:
        shape = [dim for dim in getattr(value, "shape", ()) if isinstance(dim, int)]  # of exports
        if math.prod(shape) * 16 > _MOST_BYTES:
            raise InvalidArgumentError.explained(
                f"{op.name} ({op.type}) has an output that is too large: shape {tuple(shape)}",
                made_at=op.source,
                op=op,
            )


def traced_function(
    segment: Segment,
    static_values: Mapping[Tensor, Any],
    watch: Callable[[Mapping[Tensor, Any]], None] | None = None,
) -> Callable[..., tuple[list[Any], list[Any]]]:
    """A device segment as a function of (inputs, state) that JAX traces: its kernels, one after
    another. Tests of values are marks in its jaxpr (see `segment_function` for the arguments).
    """
    traced_inputs = [tensor for tensor in segment.inputs if tensor not in static_values]
    names = state_names(segment)

    def function(inputs: Sequence[Any], state: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        values: dict[Tensor, Any] = dict(zip(traced_inputs, inputs, strict=True))
        values.update(static_values)
        current = dict(zip(names, state, strict=True))
        interpret(segment.ops, values, current, host=False, rewriting=segment.rewriting)
        if watch is not None:
            watch(values)
        return (
            [_as_declared(values[tensor], tensor) for tensor in segment.outputs],
            [current[name] for name in changed_names(segment)],
        )

    return function


def segment_function(
    segment: Segment,
    static_values: Mapping[Tensor, Any],
    watch: Callable[[Mapping[Tensor, Any]], None] | None = None,
    sites: Sites | None = None,
    axis: str | None = None,
) -> Callable[..., tuple[list[Any], list[Any], list[Any]]]:
    """A device segment as a function for `jax.jit`.

    Args:
        segment: the segment.
        static_values: the values of its static inputs.
        watch: called with the traced values of all tensors, once per compilation.
        sites: receives the tests of operations.
        axis: the mesh axis of replicas; None without them.

    Returns:
        `function(inputs, state, before) -> (outputs, new state, faults)`, where `inputs` are the
        traced inputs in order, `state` the values of `state_names(segment)`, and the new state
        those of `changed_names(segment)`. `faults` is empty if nothing is tested, else a vector
        (see `runtime.xla.faults`); `before` is that of the steps before this one, if any.
    """
    sites = sites or Sites()

    @interrupts_put_off()
    @uncollected()
    def run(
        inputs: Sequence[Any], state: Sequence[Any], before: Any = None
    ) -> tuple[list[Any], list[Any], list[Any]]:
        closed, tree = segment_jaxpr(segment, static_values, inputs, state, watch, sites)
        leaves, faults = jax.tree.leaves((inputs, state)), []
        if has(closed.jaxpr, GUARD):
            outputs, vector = collect(rewritten(closed, leaves), leaves, before, axis)
            faults = [vector]
        else:
            outputs = optimized(closed)(leaves)
        return (*jax.tree.unflatten(tree, outputs), faults)

    return run


@interrupts_put_off()
@uncollected()
def segment_jaxpr(
    segment: Segment,
    static_values: Mapping[Tensor, Any],
    inputs: Sequence[Any],
    state: Sequence[Any],
    watch: Callable[[Mapping[Tensor, Any]], None] | None = None,
    sites: Sites | None = None,
) -> tuple[ClosedJaxpr, Any]:
    """The jaxpr of a device segment, with the marks of its tests, and the structure of its results:
    the outputs and the new state (see `segment_function`)."""
    function = traced_function(segment, static_values, watch)
    with collecting(sites or Sites()):
        closed, shapes = jax.make_jaxpr(function, return_shape=True)(inputs, state)
    return closed, jax.tree.structure(shapes)


def shapes_within(
    segment: Segment, static_values: Mapping[Tensor, Any], inputs: Sequence[Any], state: Any
) -> Shapes:
    """The shapes of all tensors of a device segment, for these inputs (see `segment_function`)."""
    found: dict[Tensor, tuple[int, ...]] = {}

    def keep(values: Mapping[Tensor, Any]) -> None:
        found.update((tensor, np.shape(value)) for tensor, value in values.items())

    jax.eval_shape(segment_function(segment, static_values, keep), *abstract((inputs, state)))
    return found


def trace_segment(segment: Segment, unknown: int = 1) -> jax.stages.Traced:
    """Traces a device segment: see `.jaxpr`, `.lower().as_text()` (StableHLO) and
    `.lower().compile().as_text()` (optimized HLO).

    Args:
        segment: the segment.
        unknown: the length to trace for dimensions that are unknown before a run.

    Raises:
        ValueError: it is on the host, has static inputs that are fed, or an input of unknown rank.
    """
    if segment.place != "device":
        raise ValueError(f"host segments are not compiled: {segment.ops[-1].name}")
    if segment.static_inputs:
        names = ", ".join(tensor.name for tensor in segment.static_inputs)
        raise value_error(
            f"the XLA call of {segment.ops[-1].name} is compiled for the values of {names}",
            hint="use constants for shapes and axes to see its code",
        )

    for tensor in segment.inputs:
        if tensor.shape.rank is None:
            raise value_error(
                f"the code of the XLA call depends on the rank of {tensor.name}, which is unknown",
                made_at=tensor.op.source,
                hint="give the placeholder a shape: tf.placeholder(dtype, shape)",
            )

    def spec(dtype: DType, shape: TensorShape) -> jax.ShapeDtypeStruct:
        dims = [unknown if dim is None else int(dim) for dim in shape]
        return jax.ShapeDtypeStruct(dims, dtype.numpy_dtype)  # type: ignore[no-untyped-call]

    operation = segment.ops[0].graph.get_operation_by_name
    variables = [operation(name).attrs for name in segment.reads]
    inputs = [spec(tensor.dtype, tensor.shape) for tensor in segment.inputs]
    state = [spec(each["dtype"], as_shape(each["shape"])) for each in variables]
    counters = [spec(uint32, TensorShape([3])) for _ in segment.random]
    with x64() if segment.wide else nullcontext():
        return jax.jit(segment_function(segment, {})).trace(inputs, [*state, *counters])


def _as_declared(value: Any, tensor: Tensor) -> Any:
    if is_symbolic(value):
        return as_traced(value, tensor.dtype.numpy_dtype)
    return jax.numpy.asarray(whole(value), tensor.dtype.numpy_dtype)


def state_names(segment: Segment) -> list[str]:
    """The state that a segment reads: variables, and counters of its random operations."""
    return [*segment.reads, *segment.random]


def changed_names(segment: Segment) -> list[str]:
    """The state that a segment updates."""
    return [*segment.writes, *segment.random]
