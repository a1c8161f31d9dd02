"""Operations that hold functions: `If`, `While`, `Scan`, `Call`.

Each keeps its functions as attributes and takes their captures as inputs. On the device the bodies
are interpreted inside XLA's control flow, and JAX differentiates the whole. If a body needs the
host (strings, Python, changing shapes), the same operation runs on the host, with a plan per body.
The public functions are in `control_flow`, `higher_order` and `defun`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from estimatorkit.core import registry
from estimatorkit.core.builtin_ops import IDENTITY
from estimatorkit.core.dtypes import resource
from estimatorkit.core.errors import value_error
from estimatorkit.core.function_graph import GraphFunction, take_value
from estimatorkit.core.gradients import is_special
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import Place, Role, Spec, role_of
from estimatorkit.core.shapes import UNKNOWN, TensorShape
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.ops.control import host_gradients
from estimatorkit.ops.control.host_functions import ELEMENT, host_function, iteration_of
from estimatorkit.ops.control.scan_vjp import scan
from estimatorkit.ops.control.while_vjp import while_loop
from estimatorkit.ops.math.linalg import MATMUL, matrix_product
from estimatorkit.ops.math.random import random_words
from estimatorkit.runtime.interpreter.settings import numpy_settings
from estimatorkit.runtime.lower import call_function
from estimatorkit.runtime.xla.cancellation import FIRST, FIRST_OF_SCALARS, call_number
from estimatorkit.runtime.xla.faults import sites
from estimatorkit.runtime.xla.random_bits import split_key


def make_function_op(
    op_type: str,
    leading: Sequence[Tensor],
    functions: Sequence[GraphFunction],
    arguments: Sequence[Sequence[int]],
    attrs: Mapping[str, Any],
    name: str | None = None,
) -> Operation:
    """Adds an operation that holds functions to the default graph.

    Args:
        op_type: its type.
        leading: its first inputs; the functions' captures are appended.
        functions: traced in the default graph.
        arguments: for each function, the position in `leading` of each argument, or `ELEMENT`.
        attrs: attributes besides `functions`, `positions` and `keyed`.
        name: its name.
    """
    inputs = list(leading)
    first_captured = len(inputs)
    place: dict[Tensor, int] = {}
    positions = []
    changed = {tensor for function in functions for tensor in function.assigned}
    for function, given in zip(functions, arguments, strict=True):
        for tensor, inside in zip(function.captured, function.inputs[len(given) :], strict=True):
            if tensor not in place:
                place[tensor] = len(inputs)
                inputs.append(tensor if tensor in changed else value_of_handle(tensor))
            if inside.dtype is resource and tensor not in changed:
                take_value(inside)
        positions.append((*given, *(place[tensor] for tensor in function.captured)))
    keyed = any(function.is_random for function in functions)
    if keyed:
        seeds = (function.seed for function in functions)
        inputs.append(random_words(next((seed for seed in seeds if seed is not None), None)))
    held = {
        "functions": tuple(functions),
        "positions": tuple(positions),
        "keyed": keyed,
        "leading": first_captured,
        **attrs,
    }
    graph = get_default_graph()
    before = [op for function in functions for op in function.graph.outer_control]
    with graph.control_dependencies(before):
        return registry.apply(op_type, inputs, held, name)


def value_of_handle(tensor: Tensor) -> Tensor:
    """If the tensor is a variable's handle, the variable's value read before the operation; else
    the tensor.
    """
    if tensor.dtype is not resource:
        return tensor
    graph, name = get_default_graph(), f"{tensor.op.name}/read"
    made_with_it = graph._by_name.get(name)
    if made_with_it is not None and not graph.has_control_dependencies:
        return made_with_it.outputs[0]
    return registry.output("ReadVariableOp", [tensor], name=name)


def _known_inputs(attrs: Mapping[str, Any]) -> tuple[int, ...]:
    """The operation's inputs whose values must be known to compile its functions."""
    found = {
        positions[at]
        for function, positions in zip(attrs["functions"], attrs["positions"], strict=True)
        for at in function.static
    }
    return tuple(sorted(found - {ELEMENT}))


def _changed(attrs: Mapping[str, Any]) -> tuple[int, ...]:
    """The operation's inputs that are handles of variables assigned by its functions."""
    found = {
        positions[at]
        for function, positions in zip(attrs["functions"], attrs["positions"], strict=True)
        for at in function.updated
    }
    return tuple(sorted(found))


def _place(attrs: Mapping[str, Any]) -> Place:
    if attrs.get("on_host") or any(function.on_host for function in attrs["functions"]):
        return "host"
    return "device"


def _loop_place(attrs: Mapping[str, Any]) -> Place:
    """As `_place`; XLA cannot compile a body whose shapes follow from what the loop computes."""
    computed = {ELEMENT, *range(attrs["leading"])}
    for function, positions in zip(attrs["functions"], attrs["positions"], strict=True):
        if any(positions[at] in computed for at in function.static):
            return "host"
    return _place(attrs)


def _loop_known_inputs(attrs: Mapping[str, Any]) -> tuple[int, ...]:
    return tuple(at for at in _known_inputs(attrs) if at >= attrs["leading"])


class _Call:
    """Runs the functions of an operation on its inputs: `call(number, inputs)`."""

    def __init__(
        self,
        functions: Sequence[GraphFunction],
        positions: Sequence[Sequence[int]],
        run: Callable[..., tuple[list[Any], list[Any]]],
    ) -> None:
        self._functions = functions
        self._positions = positions
        self._run = run
        self.changed = _changed({"functions": functions, "positions": positions})

    def __call__(
        self,
        number: int,
        inputs: Sequence[Any],
        key: Any = None,
        elements: Sequence[Any] = (),
        **options: Any,
    ) -> tuple[list[Any], list[Any]]:
        """The new values at `changed` positions, and the outputs."""
        rest = iter(elements)
        given = [next(rest) if at == ELEMENT else inputs[at] for at in self._positions[number]]
        changed, outputs = self._run(self._functions[number], given, key, **options)
        own = [self._positions[number][at] for at in self._functions[number].updated]
        new = dict(zip(own, changed, strict=True))
        return [new.get(at, inputs[at]) for at in self.changed], outputs


def _known(value: Any) -> bool:
    return isinstance(value, (np.ndarray, np.generic))


# -- If


def _if(
    *inputs: Any,
    functions: Sequence[GraphFunction],
    positions: Sequence[Sequence[int]],
    keyed: bool,
    **_: Any,
) -> list[Any]:
    call = _Call(functions, positions, call_function)
    key = inputs[-1] if keyed else None
    if _known(inputs[0]):
        changed, outputs = call(0 if bool(inputs[0]) else 1, inputs, key)
        return [*changed, *outputs]
    traced = [at for at, value in enumerate(inputs) if not _known(value)]

    def branch(number: int) -> Callable[[Sequence[Any]], list[Any]]:
        def run(values: Sequence[Any]) -> list[Any]:
            every = list(inputs)
            for at, value in zip(traced, values, strict=True):
                every[at] = value
            changed, outputs = call(number, every, every[-1] if keyed else None)
            return [jnp.asarray(value) for value in (*changed, *outputs)]

        return run

    result: list[Any] = lax.cond(inputs[0], branch(0), branch(1), [inputs[at] for at in traced])
    return result


def _if_on_host(
    *inputs: Any,
    functions: Sequence[GraphFunction],
    positions: Sequence[Sequence[int]],
    context: Any,
    **_: Any,
) -> list[Any]:
    call = _Call(functions, positions, host_function(context))
    changed, outputs = call(0 if bool(inputs[0]) else 1, inputs)
    return [*changed, *outputs]


def _infer_if(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    one, other = attrs["functions"]
    return [
        Spec(a.dtype, common_shape(a.shape, b.shape))
        for a, b in zip(one.outputs, other.outputs, strict=True)
    ]


def common_shape(one: TensorShape, other: TensorShape) -> TensorShape:
    """What two shapes have in common: dimensions that differ are unknown."""
    if one.dims is None or other.dims is None or len(one.dims) != len(other.dims):
        return UNKNOWN
    return TensorShape([a if a == b else None for a, b in zip(one.dims, other.dims, strict=True)])


# -- While


def _while(
    *inputs: Any,
    functions: Sequence[GraphFunction],
    positions: Sequence[Sequence[int]],
    keyed: bool,
    leading: int,
    arrays: Sequence[int],
    recomputed: Sequence[bool],
    **_: Any,
) -> list[Any]:
    call = _Call(functions, positions, call_function)
    changed = call.changed
    variables = [output.dtype.numpy_dtype for output in functions[1].outputs]
    carried = [*range(leading), *changed]
    constant = [at for at, value in enumerate(inputs) if at not in carried and not _known(value)]

    def whole(constants: Sequence[Any], values: Sequence[Any]) -> list[Any]:
        every = list(inputs)
        for at, value in zip((*carried, *constant), (*values, *constants), strict=True):
            every[at] = value
        return every

    # The first constant is the call's number, for `cancellation`.
    def condition(constants: Any, values: Any) -> Any:
        _, (holds,) = call(0, whole(constants[1:], values[1:]), key_of(constants, values))
        return jnp.asarray(holds)

    def key_of(constants: Any, values: Any) -> Any:
        return split_key(constants[-1], values[0]) if keyed else None

    def body(constants: Any, values: Any) -> Any:
        new, outputs = call(1, whole(constants[1:], values[1:]), key_of(constants, values))
        return tuple(map(jnp.asarray, (values[0] + 1, *outputs, *new)))

    number = call_number()
    constants = [jnp.int32(0) if number is None else number]
    constants += [jnp.asarray(inputs[at]) for at in constant]
    if keyed and len(inputs) - 1 not in constant:
        raise AssertionError("the random words of a loop are drawn in each run")
    start = [
        jnp.zeros((), jnp.int32),
        *(jnp.asarray(inputs[at], dtype) for at, dtype in enumerate(variables)),
        *(jnp.asarray(inputs[at]) for at in changed),
    ]
    start = _with_arrays_allocated(body, constants, start, arrays)
    flags = (False, *recomputed, *(False for _ in changed))
    first = 0
    if number is not None:
        few = len(functions[1].ops) < 50 and not functions[1].may_not_end
        first = FIRST_OF_SCALARS if few and sum(each.size for each in start) < 50 else FIRST
    end = while_loop(condition, body, constants, start, flags, first)
    return [*end[1 + leading :], *end[1 : 1 + leading]]


def _with_arrays_allocated(
    body: Callable[..., Any], constants: Sequence[Any], start: list[Any], arrays: Sequence[int]
) -> list[Any]:
    """Allocates tensor arrays of unknown element shape by the shape of their first write."""
    if not any(_is_unset(start[1 + at]) for at in arrays):
        return start
    after = jax.eval_shape(body, tuple(constants), tuple(start))
    return [
        jnp.zeros(like.shape, value.dtype) if at - 1 in arrays and _is_unset(value) else value
        for at, (value, like) in enumerate(zip(start, after, strict=True))
    ]


def _is_unset(value: Any) -> bool:
    return bool(value.ndim == 2 and value.shape[1] == 0)


def _while_on_host(
    *inputs: Any,
    functions: Sequence[GraphFunction],
    positions: Sequence[Sequence[int]],
    keyed: bool,
    leading: int,
    context: Any,
    **_: Any,
) -> list[Any]:
    call = _Call(functions, positions, host_function(context))
    every = list(inputs)
    if not keyed and not call.changed:  # otherwise each function has a state of its own
        iteration, where = iteration_of(functions, positions, leading)
        call = _Call((functions[0], iteration), (positions[0], where), host_function(context))
    # Python functions keep the settings of the user's program.
    on_host = any(function.on_host for function in functions)
    with nullcontext() if on_host else numpy_settings():
        holds = call(0, every)[1]
        while bool(holds[0]):
            context.raise_if_cancelled()
            new, outputs = call(1, every)
            every[:leading], holds = outputs[:leading], outputs[leading:]
            for at, value in zip(call.changed, new, strict=True):
                every[at] = value
            holds = holds or call(0, every)[1]  # the body alone does not say
    return [*(every[at] for at in call.changed), *every[:leading]]


def _infer_while(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    body = attrs["functions"][1]
    return [
        Spec(output.dtype, common_shape(output.shape, argument.shape))
        if at not in attrs["arrays"]
        else Spec(output.dtype, output.shape)
        for at, (output, argument) in enumerate(zip(body.outputs, body.arguments, strict=True))
    ]


# -- Scan


def _scan(
    *inputs: Any,
    functions: Sequence[GraphFunction],
    positions: Sequence[Sequence[int]],
    keyed: bool,
    leading: int,
    carried: int,
    length: int | None,
    reverse: bool,
    **_: Any,
) -> list[Any]:
    call = _Call(functions, positions, call_function)
    dtypes = [output.dtype.numpy_dtype for output in functions[0].outputs]
    constant = [at for at in range(leading, len(inputs)) if not _known(inputs[at])]
    products = [
        (op, constant.index(at))
        for op, at in _products_with_inputs(functions[0], positions[0])
        if at in constant and at not in call.changed
    ]

    def step(constants: Any, carried_on: Any, element: Any, multiply: Any) -> Any:
        number, *current = carried_on
        every = [*current[:carried], *([None] * (leading - carried)), *inputs[leading:]]
        for at, value in zip(constant, constants, strict=True):
            every[at] = value
        for at, value in zip(call.changed, current[carried:], strict=True):
            every[at] = value
        key = split_key(every[-1], number) if keyed else None
        by_loop = {
            op: functools.partial(lambda which, operand, _: multiply(which, operand), which)
            for which, (op, _) in enumerate(products)
        }
        new, outputs = call(0, every, key, element, instead=by_loop)
        outputs = [jnp.asarray(value, dtype) for value, dtype in zip(outputs, dtypes, strict=True)]
        after = (number + 1, *outputs[:carried], *map(jnp.asarray, new))
        return after, tuple(outputs[carried:])

    start = [
        jnp.zeros((), jnp.int32),
        *(
            jnp.asarray(value, dtype)
            for value, dtype in zip(inputs[:carried], dtypes, strict=False)
        ),
        *(jnp.asarray(inputs[at]) for at in call.changed),
    ]
    constants = [inputs[at] for at in constant]
    columns = [jnp.asarray(value) for value in inputs[carried:leading]]

    def next_carried(constants: Any, carried_on: Any) -> Any:
        row = [jnp.zeros(column.shape[1:], column.dtype) for column in columns]
        return step(
            constants,
            carried_on,
            row,
            lambda which, operand: matrix_product(operand, constants[products[which][1]]),
        )[0]

    start = _with_arrays_allocated(next_carried, constants, start, range(carried))
    end, stacked = scan(
        step,
        constants,
        start,
        columns,
        [at for _, at in products],
        length,
        reverse,
    )
    return [*end[1 + carried :], *end[1 : 1 + carried], *stacked]


def _products_with_inputs(
    function: GraphFunction, positions: Sequence[int]
) -> list[tuple[Operation, int]]:
    """The matrix products whose second operand is an input, with its position among the inputs of
    the operation that holds the function.
    """
    place = dict(zip(function.inputs, positions, strict=True))
    found = []
    for op in function.ops:
        if not MATMUL.made(op) or op.attrs["transpose_a"] or op.attrs["transpose_b"]:
            continue
        operand, weights = op.inputs
        while (
            role_of(weights.op) is Role.READ or IDENTITY.made(weights.op)
        ) and weights not in place:
            weights = weights.op.inputs[0]
        fits = operand.shape.rank == 2 == op.inputs[1].shape.rank and op.inputs[1].dtype.is_floating
        if fits and weights in place and place[weights] != ELEMENT and not is_special(op):
            found.append((op, place[weights]))
    return found


def _scan_on_host(
    *inputs: Any,
    functions: Sequence[GraphFunction],
    positions: Sequence[Sequence[int]],
    leading: int,
    carried: int,
    length: int | None,
    reverse: bool,
    context: Any,
    **_: Any,
) -> list[Any]:
    call = _Call(functions, positions, host_function(context))
    every = list(inputs)
    columns = inputs[carried:leading]
    count = len(columns[0]) if columns else int(length or 0)
    rows: list[list[Any]] = []
    for at in reversed(range(count)) if reverse else range(count):
        context.raise_if_cancelled()
        new, outputs = call(0, every, None, [column[at] for column in columns])
        every[:carried] = outputs[:carried]
        for position, value in zip(call.changed, new, strict=True):
            every[position] = value
        rows.append(outputs[carried:])
    if reverse:
        rows.reverse()
    stacked = [
        _stacked([row[at] for row in rows], output)
        for at, output in enumerate(functions[0].outputs[carried:])
    ]
    return [*(every[at] for at in call.changed), *every[:carried], *stacked]


def _stacked(values: Sequence[Any], like: Tensor) -> Any:
    dtype = like.dtype.numpy_dtype
    if not values:
        return np.zeros((0, *(dim or 0 for dim in like.shape.dims or ())), dtype)
    arrays = [np.asarray(value, dtype) for value in values]
    if len({array.shape for array in arrays}) > 1:
        raise value_error(
            "the results of the elements cannot be stacked",
            expected="one shape for all elements",
            received=sorted({array.shape for array in arrays}),
        )
    return np.stack(arrays)


def _infer_scan(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    body, carried = attrs["functions"][0], attrs["carried"]
    columns = inputs[carried : attrs["leading"]]
    count = attrs["length"]
    for column in columns:
        if column.shape.rank is not None and column.shape[0] is not None:
            count = column.shape[0]
    return [
        *(
            Spec(output.dtype, common_shape(output.shape, argument.shape))
            for output, argument in zip(body.outputs[:carried], body.arguments, strict=False)
        ),
        *(
            Spec(output.dtype, TensorShape([count]).concatenate(output.shape))
            for output in body.outputs[carried:]
        ),
    ]


# -- Call


def _call(
    *inputs: Any,
    functions: Sequence[GraphFunction],
    positions: Sequence[Sequence[int]],
    keyed: bool,
    recomputed: bool = False,
    **_: Any,
) -> list[Any]:
    (function,) = functions
    given = [inputs[at] for at in positions[0]]
    key = inputs[-1] if keyed else None
    if recomputed:
        again = functools.partial(call_function, function)
        changed, outputs = jax.checkpoint(again)(given, key)
    elif function.may_not_end or any(_known(given[at]) for at in function.static):
        changed, outputs = call_function(function, given, key)
    else:  # traced once, however often it is called
        changed, outputs = function.jitted(call_function)(given, key, sites())
    own = [positions[0][at] for at in function.updated]
    new = dict(zip(own, changed, strict=True))
    return [*(new[at] for at in sorted(new)), *outputs]


def _call_on_host(
    *inputs: Any,
    functions: Sequence[GraphFunction],
    positions: Sequence[Sequence[int]],
    context: Any,
    **_: Any,
) -> list[Any]:
    changed, outputs = _Call(functions, positions, host_function(context))(0, inputs)
    return [*changed, *outputs]


def _infer_call(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> list[Spec]:
    return [Spec(output.dtype, output.shape) for output in attrs["functions"][0].outputs]


_loop = (_loop_place, _loop_known_inputs)
for _type, _kernel, _twin, _vjp, _infer, (_where, _static) in (
    ("If", _if, _if_on_host, host_gradients.branches, _infer_if, (_place, _known_inputs)),
    ("While", _while, _while_on_host, host_gradients.steps, _infer_while, _loop),
    ("Scan", _scan, _scan_on_host, host_gradients.elements, _infer_scan, _loop),
    ("Call", _call, _call_on_host, host_gradients.branches, _infer_call, (_place, _known_inputs)),
):
    registry.register(
        _type,
        _kernel,
        where=_where,
        infer=_infer,
        numpy_kernel=_twin,
        host_vjp=_vjp,
        static=_static,
        updates=_changed,
        context=True,
        pure=False,
    )
