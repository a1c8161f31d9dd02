"""Reverse-mode differentiation on graphs: `gradients(ys, xs)` adds a backward operation for each
forward one.

The registry's rows define the gradients: `jax.vjp` of the kernel ('auto'), a function that builds
operations, or None. The backward operation of an 'auto' row is a `VectorJacobianProduct`; if it is
compiled in the same segment as its forward operation, the two share one call of `jax.vjp` (see
`lower`).
"""

from __future__ import annotations

import uuid
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple, TypeAlias

from estimatorkit.core import registry
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import bool_, resource
from estimatorkit.core.errors import explain, type_error, value_error
from estimatorkit.core.function_graph import FunctionGraph, GraphFunction, trace
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.indexed_slices import IndexedSlices
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.core.vjp import vjp

Gradient: TypeAlias = Tensor | IndexedSlices


def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: Any = None,
    stop_gradients: Any = None,
    unconnected_gradients: str = "none",
) -> list[Any]:
    """Adds operations that compute the gradients of the sum of ys with respect to each of xs.

    Args:
        ys: a tensor or a list of them.
        xs: a tensor, a variable, or a list of these.
        grad_ys: the initial gradient (cotangent) of each y; ones by default.
        name: the name scope of the backward operations.
        colocate_gradients_with_ops: accepted for compatibility only; backward operations are
            always colocated with forward operations that requested a device.
        gate_gradients, aggregation_method: accepted for compatibility only.
        stop_gradients: tensors to treat as constants.
        unconnected_gradients: "none" or "zero": the gradient of an x that no y depends on.

    Returns:
        For each x a tensor, an `IndexedSlices` (if rows were gathered from it), or None.

    Raises:
        TypeError: a y is not numeric, nor a bool without grad_ys.
        ValueError: grad_ys or unconnected_gradients are invalid.
    """
    ys, xs = _as_list(ys), _as_list(xs)
    graph = get_default_graph()
    sources = [_source(x) for x in xs]
    targets = [convert_to_tensor(y) for y in ys]
    given = [None] * len(targets) if grad_ys is None else _as_list(grad_ys)
    if len(given) != len(targets):
        raise value_error(
            f"Length mismatch. Passed {len(given)} grad_ys for {len(targets)} ys",
            expected="one per y",
        )
    unconnected = getattr(unconnected_gradients, "value", unconnected_gradients)
    if unconnected not in ("none", "zero"):
        raise value_error(
            f"Unknown value for unconnected_gradients: {unconnected_gradients!r}",
            expected="'none' or 'zero'",
        )
    stopped = {_source(each) for each in _as_list([] if stop_gradients is None else stop_gradients)}
    with graph.name_scope(name):
        flowing: dict[Tensor, list[Gradient]] = {}
        integers: dict[Tensor, list[Gradient]] = {}  # these have gradients, but pass none on
        for target, gradient in zip(targets, given, strict=True):
            first = flowing if target.dtype.is_differentiable else integers
            first.setdefault(target, []).append(_first_gradient(target, gradient))
        _flow_back(graph, targets, set(sources), stopped, flowing)
        flowing.update(integers)
        results = [_total(flowing.get(source, ())) for source in sources]
        if unconnected == "zero":
            results = [
                _zeros_like(convert_to_tensor(x)) if result is None else result
                for x, result in zip(xs, results, strict=True)
            ]
        return results


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _source(x: Any) -> Tensor:
    """The tensor to differentiate by: a variable's handle, where the gradients of all its reads
    meet.
    """
    handle = getattr(x, "handle", None)
    return handle if isinstance(handle, Tensor) else convert_to_tensor(x)


def _first_gradient(target: Tensor, gradient: Any) -> Gradient:
    dtype = target.dtype
    numeric = dtype.is_differentiable or dtype.is_integer
    if not numeric and (gradient is not None or dtype is not bool_):
        raise type_error(
            f"Tensor {target} with type {dtype.name} must be numeric to obtain a default gradient",
            expected="a numeric dtype",
            received=dtype.name,
            made_at=target.op.source,
        )
    if gradient is None:
        if target.dtype.is_complex:
            raise type_error(
                f"Gradients of complex tensors ({target}) must set grad_ys "
                f"(y.dtype = {target.dtype.name})",
                expected="grad_ys, or a real y: real(y), abs(y)",
                made_at=target.op.source,
            )
        return registry.output("OnesLike", [target], {"dtype": dtype}, "grad_ys_0")
    if isinstance(gradient, IndexedSlices):
        return gradient
    tensor = convert_to_tensor(gradient, dtype_hint=target.dtype)
    kind = "complex" if dtype.is_complex else "real or integer"
    if tensor.dtype.is_complex != dtype.is_complex or tensor.dtype is bool_:
        raise type_error(
            f"Gradient type {tensor.dtype.name} generated for {kind}-valued tensor {target} "
            f"with type {dtype.name} must be {kind}",
            received=tensor,
        )
    if dtype.is_floating and tensor.dtype is not dtype:
        raise type_error(
            f"grad_ys does not match type of {target.name}",
            expected=dtype.name,
            received=tensor,
            hint="use cast(x, dtype)",
        )
    if not tensor.shape.is_compatible_with(target.shape):
        raise value_error(
            f"the shape of grad_ys does not match {target.name}",
            expected=target.shape,
            received=tensor.shape,
        )
    return tensor


def _flow_back(
    graph: Graph,
    targets: Sequence[Tensor],
    sources: set[Tensor],
    stopped: set[Tensor],
    flowing: dict[Tensor, list[Gradient]],
) -> None:
    """Accumulates in `flowing` the gradients of tensors between the sources and the targets.

    In a function's body this includes tensors of enclosing graphs that the body captures.
    """
    around = captured_from(graph)
    reached = _reached_from(targets, around)
    carrying = _carrying(reached, around, sources, stopped)
    for op in reversed(reached):
        if not any(output in flowing for output in op.outputs):
            continue
        inputs = _inputs(op, around)
        wanted = tuple(position for position, tensor in enumerate(inputs) if tensor in carrying)
        if not wanted or any(output in stopped for output in op.outputs):
            continue
        incoming = [_total(flowing.get(output, ())) for output in op.outputs]
        for output, gradient in zip(op.outputs, incoming, strict=True):
            if gradient is not None:
                flowing[output] = [gradient]
        if inputs is op.inputs:
            with nullcontext() if not op.device else graph.device(op.device):  # where the op is
                found = _backward(op, incoming, wanted)
        else:
            found = incoming
        for position, gradient in zip(wanted, found, strict=True):
            if gradient is not None:
                flowing.setdefault(inputs[position], []).append(gradient)


def captured_from(graph: Graph) -> dict[Tensor, Tensor]:
    """Maps the inputs of a function's body to the captured tensors of the enclosing graph."""
    around: dict[Tensor, Tensor] = {}
    while isinstance(graph, FunctionGraph):
        around.update({inner: outer for outer, inner in graph.captures.items()})
        graph = graph.outer
    return around


def _inputs(op: Operation, around: Mapping[Tensor, Tensor]) -> Sequence[Tensor]:
    """An operation's inputs; the input of a captured tensor is the tensor outside."""
    if around and not op.inputs and len(op.outputs) == 1 and op.outputs[0] in around:
        return [around[op.outputs[0]]]
    return op.inputs


def _reached_from(targets: Sequence[Tensor], around: Mapping[Tensor, Tensor]) -> list[Operation]:
    """The operations that the targets depend on, in topological order."""
    seen: set[Operation] = set()
    pending = [target.op for target in targets]
    while pending:
        op = pending.pop()
        if op not in seen:
            seen.add(op)
            pending.extend(tensor.op for tensor in _inputs(op, around))
    # Within one graph that is creation order; outer graphs come first.
    return sorted(seen, key=lambda op: (_depth(op.graph) if around else 0, op.index))


def _depth(graph: Graph) -> int:
    return 1 + _depth(graph.outer) if isinstance(graph, FunctionGraph) else 0


def _carrying(
    reached: Sequence[Operation],
    around: Mapping[Tensor, Tensor],
    sources: set[Tensor],
    stopped: set[Tensor],
) -> set[Tensor]:
    """The tensors that depend differentiably on a source."""
    carrying = {
        tensor for tensor in sources if tensor.dtype.is_differentiable or tensor.dtype is resource
    }
    for op in reached:
        if any(tensor in carrying for tensor in _inputs(op, around)):
            carrying.update(
                output
                for output in op.outputs
                if (output.dtype.is_differentiable or output.dtype is resource)
                and output not in stopped
            )
    return carrying


def _backward(
    op: Operation, incoming: Sequence[Gradient | None], wanted: tuple[int, ...]
) -> Sequence[Gradient | None]:
    rule, forward_type = gradient_rule(op)
    if rule is None:
        # Explicitly without a derivative (comparisons, rounding, stop_gradient): nothing flows, as
        # in TensorFlow.
        return [None] * len(wanted)
    if rule == "undefined":
        raise undefined_gradient(op)
    if rule == "same":
        return [incoming[at] if at < len(incoming) else None for at in wanted]
    with get_default_graph().name_scope(f"{op.name}_grad"):
        row = registry.lookup(forward_type)
        slices = incoming[0]
        if row.row_gradient and rule is row.gradient and isinstance(slices, IndexedSlices):
            found = row.row_gradient(op, slices)
            return [found[position] for position in wanted]
        if rule == "auto":
            return vjp(op, incoming, wanted, forward_type)
        dense = [
            _zeros_for(output) if gradient is None else convert_to_tensor(gradient)
            for output, gradient in zip(op.outputs, incoming, strict=True)
        ]
        results = _as_list(rule(op, *dense))
        if len(results) != len(op.inputs):
            raise value_error(
                f"Num gradients {len(results)} generated for op {op.name} ({op.type}) do not "
                f"match num inputs {len(op.inputs)}",
                made_at=op.source,
            )
        return [
            None if results[position] is None else _as_gradient(results[position])
            for position in wanted
        ]


def _zeros_like(x: Tensor) -> Tensor:
    return registry.output("ZerosLike", [x], {"dtype": x.dtype}, "zeros_like")


def _zeros_for(output: Tensor) -> Tensor | None:
    return _zeros_like(output) if output.dtype.is_differentiable else None


def _as_gradient(value: Any) -> Gradient:
    return value if isinstance(value, IndexedSlices) else convert_to_tensor(value)


_registered: dict[str, Callable[..., Any] | None] = {}


class RegisterGradient:
    """Decorator that registers a gradient function under a name (`tf.RegisterGradient`).

    The name is an op type without a gradient, or one to use in `Graph.gradient_override_map`. The
    function takes the operation and the gradient of each output, and returns one (or None) for each
    input.

    Raises:
        KeyError: the name is taken.
    """

    def __init__(self, op_type: str) -> None:
        if not isinstance(op_type, str):
            raise TypeError("op_type must be a string")
        self._name = op_type

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Registers `function` and returns it."""
        _register(self._name, function)
        return function


def no_gradient(op_type: str) -> None:
    """Declares that an op type is not differentiable (`tf.NotDifferentiable`, `tf.NoGradient`)."""
    _register(op_type, None)


def _register(name: str, function: Callable[..., Any] | None) -> None:
    if name in _registered:
        raise KeyError(f"Registering two gradient with name '{name}'!")
    _registered[name] = function


_own: weakref.WeakValueDictionary[str, Callable[..., Any]] = weakref.WeakValueDictionary()


def own_gradient(function: Callable[..., Any]) -> dict[str, Any]:
    """The attributes of an operation whose gradient is `function`.

    A `GraphDef` holds the gradient's name. Where it is imported while the function lives, it is
    found again; elsewhere the operation cannot be differentiated, rather than differently.
    """
    name = f"CustomGradient-{uuid.uuid4().hex}"
    _own[name] = function
    return {"_gradient_function": function, "_gradient_op_type": name}


def gradient_rule(op: Operation) -> tuple[Any, str]:
    """The gradient of an operation, and the op type whose kernel 'auto' refers to.

    In order of precedence: its own function (`custom_gradient`, `Defun`), the name from
    `gradient_override_map`, a gradient registered for its type, that of its registry row.
    'undefined' where that is not known here.
    """
    if "_gradient_function" in op.attrs:
        return op.attrs["_gradient_function"], op.type
    name = op.attrs.get("_gradient_op_type", op.type)
    if name in _registered:
        return _registered[name], op.type
    if name in _own:
        return _own[name], op.type
    try:
        return registry.lookup(name).gradient, name
    except KeyError:
        return "undefined", name


def undefined_gradient(op: Operation) -> LookupError:
    """The error if an operation without a gradient is differentiated."""
    return LookupError(
        explain(
            f"No gradient defined for operation '{op.name}' (op type: {op.type})",
            expected="a name given to RegisterGradient, or an op type with a gradient",
            received=repr(gradient_rule(op)[1]),
            made_at=op.source,
            hint="use stop_gradient, custom_gradient or RegisterGradient",
        )
    )


def is_special(op: Operation) -> bool:
    """Whether the operation's gradient is something other than `jax.vjp` of its kernel."""
    rule, forward_type = gradient_rule(op)
    if rule in ("auto", "same"):
        return rule == "auto" and forward_type != op.type
    return any(tensor.dtype.is_differentiable for tensor in op.outputs)


class Backward(NamedTuple):
    """The gradient of one operation as a function.

    Attributes:
        function: takes the operation's inputs, outputs and output gradients; it may capture tensors
            of the operation's graph.
        positions: the inputs whose gradients it returns.
    """

    function: GraphFunction
    positions: tuple[int, ...]


def backward_function(op: Operation) -> Backward | None:
    """The gradient of a special operation as a function, traced once; None if it has none."""
    if gradient_rule(op)[0] is None:
        return None
    found = op.attrs.get("_backward")
    if found is None:
        found = op.attrs["_backward"] = _trace_backward(op)
    backward: Backward = found
    return backward


def _trace_backward(op: Operation) -> Backward:
    count = len(op.inputs)
    kept: list[int] = []

    def backward(*given: Tensor) -> list[Tensor]:
        # The operation again, on the function's own inputs; its outputs are given, not computed.
        again = get_default_graph().create_op(
            op.type,
            given[:count],
            [(tensor.dtype, tensor.shape) for tensor in op.outputs],
            {name: value for name, value in op.attrs.items() if name != "_backward"},
            op.name.rpartition("/")[2],
        )
        again.outputs = tuple(given[count : count + len(op.outputs)])
        incoming = given[count + len(op.outputs) :]
        found = _backward(again, incoming, tuple(range(count)))
        kept.extend(at for at, gradient in enumerate(found) if gradient is not None)
        return [convert_to_tensor(found[at]) for at in kept]

    with op.graph.as_default():
        function = trace(backward, [*op.inputs, *op.outputs, *op.outputs])
    return Backward(function, tuple(kept))


def _total(gradients: Sequence[Gradient]) -> Gradient | None:
    if not gradients:
        return None
    if len(gradients) == 1:
        return gradients[0]
    slices = [each for each in gradients if isinstance(each, IndexedSlices)]
    if len(slices) == len(gradients):
        return IndexedSlices(
            _rows([each.all_values for each in slices]),
            _rows([each.all_indices for each in slices]),
            slices[0].dense_shape,
        )
    return registry.output("AddN", [convert_to_tensor(each) for each in gradients])


def _rows(parts: Sequence[Tensor]) -> Tensor:
    return registry.output("ConcatV2", parts, {"axis": 0}, "concat")


__all__ = ["IndexedSlices", "gradients"]
