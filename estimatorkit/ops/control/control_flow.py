"""Control flow: `cond`, `case`, `switch_case`, `while_loop`, with TensorFlow 1's signatures.

Branches and bodies become functions (`function_graph`) held by one operation (`function_ops`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from estimatorkit.core import nest
from estimatorkit.core.builtin_ops import identity
from estimatorkit.core.composite import is_composite
from estimatorkit.core.conversion import constant, convert_to_tensor
from estimatorkit.core.dtypes import DType, bool_, int32, resource
from estimatorkit.core.errors import InvalidArgumentError, explain, type_error, value_error
from estimatorkit.core.function_graph import GraphFunction, trace
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.nest import expand
from estimatorkit.core.registry import inference
from estimatorkit.core.shapes import as_shape
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.ops.control.function_ops import common_shape, make_function_op
from estimatorkit.ops.math.elementwise import add, equal, less, logical_and, logical_not


def cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    strict: bool = False,
    name: str | None = None,
    fn1: Callable[[], Any] | None = None,
    fn2: Callable[[], Any] | None = None,
) -> Any:
    """Returns `true_fn()` if `pred` is true, else `false_fn()`.

    Only operations created inside the branches are conditional; those created outside always run.

    Args:
        pred: a bool scalar tensor.
        true_fn, false_fn: functions without arguments that return the same nested structure of
            tensors, of the same dtypes.
        strict: keep lists and tuples of one element, which are otherwise unpacked.
        fn1, fn2: older names of `true_fn` and `false_fn`.

    Raises:
        TypeError: `pred` is a Python bool, or a branch is not callable.
        ValueError: the branches return different structures or dtypes.
    """
    functions: list[Callable[[], Any]] = []
    for called, given, older in (("true_fn", true_fn, fn1), ("false_fn", false_fn, fn2)):
        function = older if given is None else given
        if given is not None and older is not None:
            number = 1 if called == "true_fn" else 2
            raise TypeError(f"cond(): '{called}' and 'fn{number}' may not be set simultaneously.")
        if function is None:
            raise TypeError(f"cond(): '{called}' argument required")
        if not callable(function):
            raise TypeError(f"'{called}' must be callable, got {function!r}.")
        functions.append(function)
    if isinstance(pred, bool):
        raise TypeError("'pred' must not be a Python bool; use a Python `if` statement.")
    graph = get_default_graph()
    with graph.name_scope(name or "cond"):
        predicate = _as_predicate(pred, "cond")
        branches = [
            trace(
                function, (), convert=functools.partial(_as_results, called=called, strict=strict)
            )
            for function, called in zip(functions, ("true_fn", "false_fn"), strict=True)
        ]
        _check_branches(branches)
        op = make_function_op(
            "If", [predicate], branches, [(), ()], {"on_host": _shapes_differ(branches)}
        )
        results = _named([op.outputs[at] for at in range(len(op.outputs))], "Merge")
    return _rebuilt(branches[0], results)


def _as_results(returned: Any, called: str, strict: bool) -> Any:
    """A branch's results as tensors; unless strict, a list or tuple of one is that one."""
    results = _as_tensors(returned, called)
    one = isinstance(results, (list, tuple)) and len(results) == 1
    return results[0] if one and not strict and not nest.is_namedtuple(results) else results


def _as_predicate(pred: Any, what: str) -> Tensor:
    tensor = convert_to_tensor(pred, name="pred")
    if tensor.dtype is not bool_ or tensor.shape.rank not in (0, None):
        raise (TypeError if tensor.dtype is not bool_ else ValueError)(
            explain(
                f"{what}: the predicate must be a bool scalar",
                expected="bool ()",
                received=tensor,
                made_at=tensor.op.source,
                hint="compare, for example reduce_any(x > 0)",
            )
        )
    return tensor


def _as_tensors(returned: Any, called: str) -> Any:
    """A branch's results with tensors as leaves; operations are left unchanged."""
    if returned is None:
        raise value_error(
            f"'{called}' must have a return value",
            expected="a tensor or an operation, or a structure of them",
            hint="return no_op() where nothing is to be computed",
        )

    def convert(leaf: Any) -> Any:
        if isinstance(leaf, Operation) or is_composite(leaf):
            return leaf
        return convert_to_tensor(leaf)

    return nest.map_structure(convert, returned)


def _check_branches(branches: Sequence[GraphFunction]) -> None:
    one, other = branches
    try:
        nest.assert_same_structure(one.structure, other.structure)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"true_fn and false_fn must return the same structure. {error}"
        ) from error
    kinds = [
        [type(leaf).__name__ if is_composite(leaf) else "Tensor" for leaf in leaves]
        for leaves in (nest.flatten(each.structure) for each in branches)
    ]
    if kinds[0] != kinds[1]:
        raise value_error(
            "Incompatible return values of 'true_fn' and 'false_fn'",
            expected=kinds[0],
            received=kinds[1],
        )
    if len(one.outputs) != len(other.outputs):
        raise ValueError("true_fn and false_fn must return the same structure.")
    for a, b in zip(one.outputs, other.outputs, strict=True):
        if a.dtype is not b.dtype:
            raise value_error(
                "Outputs of 'true_fn' and 'false_fn' must have the same type(s). Received "
                f"{a.dtype.name} from 'true_fn' and {b.dtype.name} from 'false_fn'",
                made_at=b.op.source,
                hint=f"use cast(x, {a.dtype.name}) in one of them",
            )


def _shapes_differ(branches: Sequence[GraphFunction]) -> bool:
    """Whether a result's shape depends on the branch, which XLA cannot compile."""
    pairs = zip(branches[0].outputs, branches[1].outputs, strict=True)
    return any(not a.shape.is_compatible_with(b.shape) for a, b in pairs)


def _named(tensors: Sequence[Tensor], name: str) -> list[Tensor]:
    return [identity(tensor, name) for tensor in tensors]


def _rebuilt(function: GraphFunction, tensors: Sequence[Tensor]) -> Any:
    _, rebuild = expand(function.structure)
    return rebuild(tensors)


def case(
    pred_fn_pairs: Any,
    default: Callable[[], Any] | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str = "case",
) -> Any:
    """Returns the result of the first function whose predicate is true.

    Args:
        pred_fn_pairs: a list of pairs (bool scalar tensor, function), or a dict of them.
        default: called if no predicate is true; without it, the last function runs after an
            assertion that some predicate holds.
        exclusive: assert that at most one predicate is true.
        strict: see `cond`.

    Raises:
        TypeError, ValueError: the pairs are malformed.
    """
    from estimatorkit.ops.array.joining import stack
    from estimatorkit.ops.debug.debug import Assert
    from estimatorkit.ops.math.reduce import reduce_any, reduce_sum

    if not isinstance(pred_fn_pairs, (list, tuple, Mapping)):
        raise TypeError(
            "'pred_fn_pairs' must be a list, tuple, or dict. Received: "
            f"{type(pred_fn_pairs).__name__}"
        )
    pairs = list(pred_fn_pairs.items() if isinstance(pred_fn_pairs, Mapping) else pred_fn_pairs)
    if not pairs:
        raise ValueError("case: 'pred_fn_pairs' must hold at least one pair.")
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(
                f"Each entry in 'pred_fn_pairs' must be a 2-tuple. Received {pair!r:.200}."
            )
        pred, function = pair
        if not isinstance(pred, Tensor) and not hasattr(pred, "_as_tensor"):
            raise TypeError(f"pred must be a Tensor, got: {pred!r:.200}")
        if pred.dtype is not bool_:
            raise TypeError(f"pred must be Tensor of type bool: {pred.name}")
        if not callable(function):
            raise TypeError(f"fn for pred {pred.name} must be callable.")
    if default is not None and not callable(default):
        raise TypeError("'default' must be callable.")
    graph = get_default_graph()
    with graph.name_scope(name):
        predicates = [_as_predicate(pred, "case") for pred, _ in pairs]
        functions = [function for _, function in pairs]
        checks = []
        if exclusive:
            together = stack(predicates, name="preds_c")
            count = reduce_sum(_as_int(together))
            checks.append(
                Assert(
                    less(count, 2),
                    ["Input error: exclusive=True: more than 1 conditions", together],
                )
            )
        if default is None:
            checks.append(
                Assert(
                    reduce_any(stack(predicates)),
                    ["Input error: None of conditions evaluated as True", stack(predicates)],
                )
            )
            predicates, default = predicates[:-1], functions.pop()
        checks = [check for check in checks if check is not None]
        with graph.control_dependencies(checks):
            predicates = [identity(each) for each in predicates]
            if not predicates:  # a single function
                return nest.map_structure(
                    lambda leaf: leaf if isinstance(leaf, Operation) else identity(leaf), default()
                )
        result = default
        for predicate, function in reversed(list(zip(predicates, functions, strict=True))):
            result = functools.partial(cond, predicate, function, result, strict)
        return result()


def _as_int(tensor: Tensor) -> Tensor:
    from estimatorkit.ops.math.elementwise import cast

    return cast(tensor, int32)


def switch_case(
    branch_index: Any,
    branch_fns: Any,
    default: Callable[[], Any] | None = None,
    name: str = "switch_case",
) -> Any:
    """Calls the function numbered `branch_index`, or `default` (the last one) if out of range.

    Args:
        branch_index: an int32 scalar tensor.
        branch_fns: functions, or pairs (number, function), or a dict of them.
        default: called if no number matches; the function with the greatest number by default.

    Raises:
        TypeError, ValueError: `branch_index` is not an integer tensor, or the numbers are not
            0, 1, ...
    """
    if not isinstance(branch_index, Tensor) and not hasattr(branch_index, "_as_tensor"):
        raise TypeError(f"'branch_index' must be a Tensor, got {type(branch_index).__name__}")
    if not branch_index.dtype.is_integer:
        raise TypeError(f"'branch_index' must be an integer Tensor, got {branch_index.dtype.name}")
    if not branch_fns:
        raise ValueError("Must provide at least one item in 'branch_fns'")
    entries = branch_fns.items() if isinstance(branch_fns, Mapping) else branch_fns
    pairs = [each if isinstance(each, tuple) else (at, each) for at, each in enumerate(entries)]
    only_functions = not isinstance(branch_fns, Mapping) and all(map(callable, branch_fns))
    for pair in pairs:
        if not only_functions and not (len(pair) == 2 and callable(pair[1])):
            raise TypeError(
                f"Each entry in 'branch_fns' must be a 2-tuple. Received {pair!r:.200}."
            )
        if not isinstance(pair[0], int):
            raise TypeError(f"key must be a Python `int`, got {type(pair[0]).__name__}")
    pairs.sort(key=lambda pair: pair[0])
    if [number for number, _ in pairs] != list(range(len(pairs))):
        keys = ",".join(str(number) for number, _ in pairs)
        raise ValueError(
            "branch indices (keys) must form contiguous range of "
            f"[0 to {len(pairs)}) but found {{{keys}}}"
        )
    with get_default_graph().name_scope(name):
        index = convert_to_tensor(branch_index, int32, "branch_index")
        last = pairs[-1][1] if default is None else default
        chosen = [(equal(index, number), function) for number, function in pairs]
        return case(chosen, default=last)


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
    maximum_iterations: Any = None,
    return_same_structure: bool = False,
) -> Any:
    """Repeats `body` while `cond` is true.

    Compiles to an XLA loop that is differentiable without a bound on its steps. If
    `shape_invariants` allow shapes to change between steps, the loop runs from the host, with one
    call per step.

    Args:
        cond: maps the loop variables to a bool scalar.
        body: maps the loop variables to new ones of the same structure.
        loop_vars: a list, tuple, dict or nested structure of tensors, tensor arrays, sparse
            tensors or convertible values.
        shape_invariants: for each loop variable, the shape that holds at every step; its initial
            shape by default.
        parallel_iterations, swap_memory: accepted for compatibility only.
        back_prop: whether gradients flow through.
        maximum_iterations: a bound on the steps, in addition to `cond`.
        return_same_structure: return a list even for one loop variable.

    Returns:
        The loop variables after the last step, in the structure of `loop_vars`.

    Raises:
        TypeError: `cond` or `body` is not a function.
        ValueError: `body` returns another structure, dtype or shape.
    """
    if not callable(cond):
        raise TypeError("'cond' must be callable.")
    if not callable(body):
        raise TypeError("'body' must be callable.")
    if parallel_iterations < 1:
        raise TypeError("'parallel_iterations' must be a positive integer.")
    if loop_vars is None or (isinstance(loop_vars, (list, tuple)) and not loop_vars):
        raise ValueError("'loop_vars' must be provided.")
    if maximum_iterations is not None:
        return _bounded(
            cond,
            body,
            loop_vars,
            shape_invariants,
            back_prop,
            name,
            maximum_iterations,
            return_same_structure,
        )
    graph = get_default_graph()
    whole = loop_vars if nest.is_nested(loop_vars) else [loop_vars]
    with graph.name_scope(name or "while"):
        converted = nest.map_structure(_as_loop_variable, whole)
        tensors, rebuild = expand(converted)
        declared = _declared_shapes(converted, tensors, shape_invariants)
        like = [_with_shape(tensor, shape) for tensor, shape in zip(tensors, declared, strict=True)]

        def arguments(inputs: Sequence[Tensor]) -> Sequence[Any]:
            structure = rebuild(inputs)
            # A sequence's elements are the functions' arguments; anything else is one argument.
            return structure if isinstance(structure, (list, tuple)) else [structure]

        condition = trace(cond, like, arguments, lambda value: _as_predicate(value, "while_loop"))
        bodies: list[Any] = []

        def next_values(value: Any) -> Any:
            bodies.append(value)
            return _next_values(value, converted)

        step = trace(body, like, arguments, next_values)
        arrays = _array_positions(converted)
        _check_step(step, tensors, declared, arrays)
        loose = any(
            not declared[at].is_fully_defined() for at in range(len(tensors)) if at not in arrays
        )
        changing = shape_invariants is not None and loose and not _keeps_shapes(step, tensors)
        positions = range(len(tensors))
        op = make_function_op(
            "While",
            tensors,
            [condition, step],
            [positions, positions],
            {
                "arrays": arrays,
                "recomputed": _written_only(step),
                "on_host": changing,
            },
        )
        results = _named(op.outputs, "Exit")
        if not back_prop:
            from estimatorkit.ops.array.array import stop_gradient

            results = [stop_gradient(each) for each in results]
    found = rebuild(results)
    if not isinstance(found, (list, tuple)):
        return found
    return _like_body(list(found), bodies[-1], return_same_structure)


def _like_body(results: list[Any], returned: Any, keep: bool) -> Any:
    """A loop's results in the kind of sequence that its body returned; one tensor is bare unless
    it is to be kept in its sequence.
    """
    first, *others = nest.flatten(results) or [None]
    if not keep and not others and (isinstance(first, Tensor) or hasattr(first, "write")):
        return results[0]
    if not _is_sequence_of(returned, len(results)):  # the structure of the only variable
        return results[0] if len(results) == 1 and not keep else results
    return type(returned)(*results) if nest.is_namedtuple(returned) else type(returned)(results)


def _as_loop_variable(value: Any) -> Any:
    return value if is_composite(value) else convert_to_tensor(value)


def _with_shape(tensor: Tensor, shape: Any) -> Tensor:
    """A placeholder tensor that carries only dtype and shape."""
    if shape == tensor.shape:
        return tensor
    stand_in = Tensor(tensor.op, tensor.value_index, tensor.dtype, shape)
    return stand_in


def _declared_shapes(converted: Any, tensors: Sequence[Tensor], invariants: Any) -> list[Any]:
    from estimatorkit.core.shapes import TensorShape

    arrays = _array_positions(converted)
    shapes = [
        TensorShape(None) if at in arrays else tensor.shape for at, tensor in enumerate(tensors)
    ]
    if invariants is None:
        return shapes
    wanted = _flatten_shapes(converted, invariants)
    position = 0
    for leaf, shape in zip(nest.flatten(converted), wanted, strict=True):
        count = len(leaf._components()) if is_composite(leaf) else 1
        if count == 1 and shape is not None and position not in arrays:
            known = as_shape(shape)
            if not known.is_compatible_with(tensors[position].shape):
                raise value_error(
                    f"The shape invariant specified for {tensors[position].name} is not "
                    "compatible with the initial shape of the loop variable",
                    expected=known,
                    received=tensors[position].shape,
                )
            shapes[position] = known
        elif is_composite(leaf) and not hasattr(leaf, "write"):
            for at in range(position, position + count):
                shapes[at] = TensorShape([None] * (tensors[at].shape.rank or 1))
        position += count
    return shapes


def _flatten_shapes(structure: Any, shapes: Any) -> list[Any]:
    """Flattens shapes in the structure of the loop variables; a list may also be a shape."""
    if not nest.is_nested(structure):
        return [shapes]
    if isinstance(structure, Mapping):
        parts = [(structure[key], shapes[key]) for key in sorted(structure)]
    else:
        if len(structure) != len(shapes):
            raise value_error(
                "while_loop: shape_invariants must have the structure of loop_vars",
                expected=len(structure),
                received=len(shapes),
            )
        parts = list(zip(structure, shapes, strict=True))
    return [shape for part, given in parts for shape in _flatten_shapes(part, given)]


def _next_values(returned: Any, before: Any) -> Any:
    """A body's results in the structure of the loop variables."""
    sequence = isinstance(before, (list, tuple))
    if sequence and len(before) == 1 and not _is_sequence_of(returned, 1):
        returned = [returned]
    if sequence and isinstance(returned, (list, tuple)) and not nest.is_namedtuple(before):
        returned = type(before)(returned)
    try:
        nest.assert_same_structure(before, returned)
    except (TypeError, ValueError) as error:
        raise value_error(
            "The two structures don't have the same nested structure: while_loop's body must "
            "return what it was given",
            expected=nest.map_structure(lambda leaf: type(leaf).__name__, before),
            received=repr(returned)[:300],
        ) from error
    leaves = [
        after if is_composite(after) else convert_to_tensor(after, dtype_hint=leaf.dtype)
        for leaf, after in zip(nest.flatten(before), nest.flatten(returned), strict=True)
    ]
    return nest.pack_sequence_as(before, leaves)


def _is_sequence_of(value: Any, length: int) -> bool:
    return isinstance(value, (list, tuple)) and len(value) == length


def _check_step(
    step: GraphFunction,
    tensors: Sequence[Tensor],
    declared: Sequence[Any],
    arrays: Sequence[int],
) -> None:
    """Checks dtypes and shapes after one step."""
    for at, (before, after) in enumerate(zip(tensors, step.outputs, strict=True)):
        if before.dtype is not after.dtype:
            raise type_error(
                f"Input tensor {before.name!r} enters the loop with type {before.dtype.name} "
                f"but has type {after.dtype.name} after 1 iteration",
                made_at=after.op.source,
                hint=f"use cast(x, {before.dtype.name})",
            )
        if at in arrays or declared[at].dims is None:
            continue
        merged = common_shape(declared[at], after.shape)
        if merged != declared[at] and not _unknown_after_all(declared[at], after.shape):
            raise value_error(
                f"Input tensor {before.name!r} enters the loop with shape {declared[at]}, but "
                f"has shape {after.shape} after one iteration. To allow the shape to vary "
                "across iterations, use the `shape_invariants` argument of tf.while_loop to "
                "specify a less-specific shape",
                made_at=after.op.source,
            )


def _keeps_shapes(step: GraphFunction, tensors: Sequence[Tensor]) -> bool:
    """Whether a step preserves the shapes of its values, as far as JAX can infer.

    Unknown dimensions are tried with otherwise unused sizes (see `inference.SIZES`).
    """
    import jax

    from estimatorkit.core.registry import constant_value
    from estimatorkit.core.x64 import x64
    from estimatorkit.runtime.lower import call_function

    known = {at: constant_value(tensor) for at, tensor in enumerate(step.inputs)}
    known = {at: value for at, value in known.items() if value is not None}
    if step.on_host or not known.keys() >= set(step.static):
        return False
    specs = [(each.dtype, each.shape) for each in (*tensors, *step.inputs[len(tensors) :])]
    for at, tensor in enumerate(step.inputs):
        if tensor.dtype is resource:
            specs[at] = tensor.op.attrs["dtype"], tensor.op.attrs["shape"]
    if any(shape.dims is None for _, shape in specs):
        return False

    def abstract(dtype: DType, shape: Any) -> Any:
        dims = [inference.SIZES[0] if dim is None else dim for dim in shape.dims]
        return jax.ShapeDtypeStruct(dims, dtype.numpy_dtype)  # type: ignore[no-untyped-call]

    given = [abstract(dtype, shape) for dtype, shape in specs]

    def run(traced: Sequence[Any], key: Any) -> Any:
        return call_function(step, [known.get(at, value) for at, value in enumerate(traced)], key)

    key = jax.ShapeDtypeStruct((2,), np.uint32)  # type: ignore[no-untyped-call]
    try:
        with x64():
            _, after = jax.eval_shape(run, given, key)
    except (TypeError, ValueError, InvalidArgumentError):  # a size that does not fit
        return False
    return all(one.shape == other.shape for one, other in zip(after, given, strict=False))


def _unknown_after_all(declared: Any, after: Any) -> bool:
    """Whether the shape after a step is merely not known to be equal."""
    return bool(declared.is_compatible_with(after))


def _array_positions(converted: Any) -> tuple[int, ...]:
    found, position = [], 0
    for leaf in nest.flatten(converted):
        count = len(leaf._components()) if is_composite(leaf) else 1
        if hasattr(leaf, "write"):
            found.append(position)
        position += count
    return tuple(found)


def _written_only(step: GraphFunction) -> tuple[bool, ...]:
    """The write-only loop variables of a step: tensor arrays that collect results."""
    users: dict[Tensor, list[Operation]] = {}
    for op in step.ops:
        for tensor in op.inputs:
            users.setdefault(tensor, []).append(op)
    result = []
    for argument, output in zip(step.arguments, step.outputs, strict=True):
        tensor = argument
        while True:
            using = users.get(tensor, [])
            if tensor is output and not using:
                result.append(argument is not output)
                break
            if (
                len(using) != 1
                or using[0].type != "TensorArrayWrite"
                or (using[0].inputs[0] is not tensor or tensor in using[0].inputs[1:])
            ):
                result.append(False)
                break
            tensor = using[0].outputs[0]
    return tuple(result)


def _bounded(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any,
    back_prop: bool,
    name: str | None,
    maximum_iterations: Any,
    return_same_structure: bool,
) -> Any:
    """`while_loop` with an additional counter as a loop variable."""
    sequence = isinstance(loop_vars, (list, tuple)) and not nest.is_namedtuple(loop_vars)
    inner = list(loop_vars) if sequence else [loop_vars]
    limit = convert_to_tensor(maximum_iterations, int32, "maximum_iterations")
    if limit.shape.rank not in (0, None):
        raise ValueError(f"'maximum_iterations' must be a scalar. Received shape: {limit.shape}")

    def bounded_cond(count: Tensor, *values: Any) -> Tensor:
        return logical_and(less(count, limit), _as_predicate(cond(*values), "while_loop"))

    bodies: list[Any] = []

    def bounded_body(count: Tensor, *values: Any) -> Any:
        after = body(*values)
        bodies.append(after)
        if len(inner) == 1 and not _is_sequence_of(after, 1):
            after = [after]
        return [add(count, 1), *after]

    invariants = None
    if shape_invariants is not None:
        own = list(shape_invariants) if sequence else [shape_invariants]
        invariants = [as_shape([]), *own]
    results = while_loop(
        bounded_cond,
        bounded_body,
        [constant(0, int32), *inner],
        invariants,
        back_prop=back_prop,
        name=name,
        return_same_structure=True,
    )[1:]
    if not sequence:
        return results[0]
    return _like_body(list(results), bodies[-1], return_same_structure)


def smart_cond(
    pred: Any, true_fn: Callable[[], Any], false_fn: Callable[[], Any], name: str | None = None
) -> Any:
    """`cond` that is resolved at graph construction if `pred` is a Python value or a constant.

    Raises:
        TypeError: a function is not callable, or `pred` is not a tensor, bool, 0 or 1.
    """
    for called, function in (("true_fn", true_fn), ("false_fn", false_fn)):
        if not callable(function):
            raise TypeError(f"Argument `{called}` must be callable. Received {function}")
    if not hasattr(pred, "dtype") and pred not in (0, 1):
        raise TypeError(
            "Argument `pred` must be a Tensor, or a Python bool, or 1 or 0. "
            f"Received: pred={pred} of type {type(pred).__name__}"
        )
    known = constant_bool(pred)
    if known is None:
        return cond(pred, true_fn, false_fn, name=name)
    return true_fn() if known else false_fn()


def constant_bool(pred: Any) -> bool | None:
    """The predicate's value if known at graph construction."""
    from estimatorkit.core.registry import fixed_value

    if isinstance(pred, Tensor):
        value = fixed_value(pred)
        return None if value is None else bool(value)
    return bool(pred) if isinstance(pred, (bool, int)) else None


def tuple_(
    tensors: Sequence[Any], name: str | None = None, control_inputs: Sequence[Any] | None = None
) -> list[Any]:
    """Returns the tensors, synchronized: each is available once all of them are.

    Args:
        tensors: tensors, sparse tensors or `IndexedSlices`; None stays None.
        name: the name scope.
        control_inputs: operations that must run first.

    Raises:
        ValueError: there are no tensors.
    """
    with get_default_graph().name_scope(name or "tuple"):
        values = [
            each if each is None or is_composite(each) else convert_to_tensor(each)
            for each in tensors
        ]
        before = [value.op for value in values if value is not None]
        if not before:
            raise ValueError(f"'tensors' must have at least one Tensor. Received: {tensors}.")
        with get_default_graph().control_dependencies([*before, *(control_inputs or ())]):
            return [
                None if value is None else identity(value, "control_dependency") for value in values
            ]


__all__ = [
    "case",
    "cond",
    "constant_bool",
    "logical_not",
    "smart_cond",
    "switch_case",
    "tuple_",
    "while_loop",
]
