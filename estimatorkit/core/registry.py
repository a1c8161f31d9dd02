"""The op registry: one row per op type, and `apply`, which creates operations.

A row says how the op computes (`kernel`), where (`device`: a pure JAX function; `host`: a
NumPy/Python function), how shapes are inferred (from the kernel itself unless `infer` is given) and
its gradient (`jax.vjp` of the kernel unless `gradient` is given). To add an op, write one function
and register it, with an example or two for the tests. Nothing else in the package switches on op
types.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal, NamedTuple, TypeAlias, cast

import numpy as np

from estimatorkit.core import faults, ports
from estimatorkit.core.dtypes import DType, as_dtype, members
from estimatorkit.core.errors import type_error, value_error
from estimatorkit.core.faults import FaultTest, ResultTest
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.shapes import SCALAR, UNKNOWN, TensorShape
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.core.trust import Effects, marked
from estimatorkit.core.x64 import x64


class Spec(NamedTuple):
    """The static type of a tensor: dtype and shape."""

    dtype: DType
    shape: TensorShape


class Case(NamedTuple):
    """An example of an op, for the tests of values, shapes and gradients.

    Attributes:
        inputs: arrays, in the order of the op's inputs.
        attrs: attributes.
        expected: the outputs (an array, or a tuple of arrays); None to compare with the op's
            `numpy_kernel`.
    """

    inputs: tuple[Any, ...]
    attrs: Mapping[str, Any] = {}
    expected: Any = None


Place: TypeAlias = Literal["device", "host"]
Infer: TypeAlias = Callable[[Sequence[Tensor], Mapping[str, Any]], Sequence[Spec]]
Gradient: TypeAlias = Callable[..., Sequence[Any]]


class Role(Enum):
    """The kind of an op, for planning and placement."""

    CONSTANT = "constant"  # a value that is known
    VARIABLE = "variable"  # the handle of a variable
    READ = "read"  # the value of a variable
    PLACEHOLDER = "placeholder"
    NO_OP = "no_op"  # only orders others
    ELEMENT = "element"  # the next element of an iterator, which an attribute names
    ELEMENT_OF_HANDLE = "element_of_handle"  # that of an iterator which an input names
    DEQUEUE = "dequeue"  # elements of a queue
    LOOKUP = "lookup"  # values of a table, which is filled before it is asked
    SESSION_HANDLE = "session_handle"  # a value that stays in the session, by its name
    ALL_REDUCE = "all_reduce"  # sums or means over replicas
    ALL_GATHER = "all_gather"  # the rows of all replicas


@dataclass(frozen=True)
class OpDef:
    """A row of the registry.

    Fields that depend on the attributes (`where`, `static`, `updates`, `rowwise`, `effects`) may be
    functions of them.

    Attributes:
        type: the op type.
        kernel: `kernel(*inputs, **attrs)` returns an array or a tuple of arrays, one per output.
        where: 'device' (pure JAX) or 'host' (NumPy and Python).
        infer: `infer(inputs, attrs)` returns the outputs' specs; None evaluates the kernel
            abstractly.
        gradient: 'auto' (`jax.vjp` of the kernel), 'same' (passed through unchanged, so that
            `IndexedSlices` stay sparse), None (not differentiable: nothing flows), 'undefined'
            (TensorFlow has none: differentiating it is an error), or
            `gradient(op, *output gradients)`, which returns a gradient or None for each input.
        row_gradient: `row_gradient(op, slices)` for a gradient that comes as `IndexedSlices`, to
            keep it in rows; without it the slices become dense.
        numpy_kernel: the same function in NumPy, for constant folding, strings and the tests.
        static: positions of inputs that must be compile-time constants.
        known_from_shape: whether the outputs depend on the inputs' shapes alone.
        updates: positions of variable handles whose new values the kernel returns before its
            outputs.
        overwrites: those of `updates` whose old value the kernel does not use (it gets None).
        random: whether the kernel takes `key`, a JAX random key that differs in each run; the
            `numpy_kernel` takes its three words, and draws float32 only.
        context: whether a host kernel takes `context`, the session's resources.
        pure: whether equal inputs always give equal outputs, without side effects.
        accepts: allowed dtypes of the first input in the notation of `dtypes.members` ("fi":
            floating or integer), or a tuple for the first inputs; '' for any.
        cases: examples; the tests require at least one.
        host_vjp: `host_vjp(attrs, inputs, output gradients, positions, context)` replaces
            `jax.vjp` for ops that hold functions and run on the host.
        elementwise: whether a host kernel maps elements of its first input independently (other
            inputs are scalars), so that it can run on many rows at once (`batched_executor`).
        rowwise: whether a host kernel maps rows independently, along any leading axes.
        on_block: `on_block(inputs, attrs)` runs a host op on a column of rows and returns a column
            per output, or None if it cannot.
        unroll_on_cpu: whether XLA on CPUs is only fast outside loops (see `compiled_loop`).
        holder: the attribute that names the handles a host kernel uses; it is colocated with them.
        colocate_with_input: whether to place it with its first input, if that is a variable's
            value, of which it reads a few rows.
        client_only: whether it always runs in the process that built the graph, because what it
            works on cannot be serialized.
        role: its kind, for planning and placement.
        effects: what the kernel touches beyond its inputs and the session (see `trust`); loaded
            graphs may not, unless they are trusted.
        moves: whether it only moves or copies elements, so that NumPy and XLA agree bit for bit.
        takes_shards: whether the kernel takes variables as `ShardedRows` where replicas divide
            their rows; others get the whole value.
        fault: tests of the inputs' values, which raise InvalidArgumentError (see `faults`).
        result_fault: the same of the results, given the inputs, the results, and the attributes;
            positions are those of results.
    """

    type: str
    kernel: Callable[..., Any]
    where: Place | Callable[[Mapping[str, Any]], Place] = "device"
    infer: Infer | None = None
    gradient: Literal["auto", "same", "undefined"] | Gradient | None = "auto"
    row_gradient: Gradient | None = None
    numpy_kernel: Callable[..., Any] | None = None
    static: tuple[int, ...] | Callable[[Mapping[str, Any]], tuple[int, ...]] = ()
    known_from_shape: bool = False
    updates: tuple[int, ...] | Callable[[Mapping[str, Any]], tuple[int, ...]] = ()
    overwrites: tuple[int, ...] = ()
    random: bool = False
    context: bool = False
    pure: bool = True
    accepts: str | tuple[str, ...] = ""
    cases: Callable[[], Sequence[Case]] = field(default=lambda: ())
    host_vjp: Callable[..., Sequence[Any]] | None = None
    elementwise: bool = False
    rowwise: bool | Callable[[Mapping[str, Any]], bool] = False
    on_block: Callable[[Sequence[Any], Mapping[str, Any]], Sequence[Any] | None] | None = None
    unroll_on_cpu: bool = False
    holder: str = ""
    colocate_with_input: bool = False
    client_only: bool = False
    role: Role | None = None
    effects: Effects | Callable[[Mapping[str, Any]], Effects] = ""
    moves: bool = False
    takes_shards: bool = False
    fault: FaultTest | None = None
    result_fault: ResultTest | None = None

    def made(self, op: Operation) -> bool:
        """Whether `op` is of this type."""
        return op.type == self.type

    def static_positions(self, attrs: Mapping[str, Any]) -> tuple[int, ...]:
        """`static` for an operation with these attributes."""
        return self.static(attrs) if callable(self.static) else self.static

    def updated_positions(self, attrs: Mapping[str, Any]) -> tuple[int, ...]:
        """`updates` for an operation with these attributes."""
        return self.updates(attrs) if callable(self.updates) else self.updates

    def place(self, attrs: Mapping[str, Any]) -> Place:
        """`where` for an operation with these attributes."""
        return self.where(attrs) if callable(self.where) else self.where

    def is_rowwise(self, attrs: Mapping[str, Any]) -> bool:
        """`rowwise` for an operation with these attributes."""
        return self.rowwise(attrs) if callable(self.rowwise) else self.rowwise

    def has_effects(self, attrs: Mapping[str, Any]) -> Effects:
        """`effects` for an operation with these attributes."""
        return self.effects(attrs) if callable(self.effects) else self.effects

    def accepted(self, position: int) -> tuple[DType, ...]:
        """The dtypes that the input at `position` may have; empty for any."""
        each = (self.accepts,) if isinstance(self.accepts, str) else self.accepts
        return members(each[position]) if position < len(each) else ()

    def lacks_inputs(self, count: int, attrs: Mapping[str, Any]) -> bool:
        """Whether the kernel requires more than `count` inputs beside these attributes."""
        if hasattr(self.kernel, "nin"):  # a ufunc
            return int(self.kernel.nin) > count
        needed = [
            name
            for name, each in inspect.signature(self.kernel).parameters.items()
            if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
            and each.default is each.empty
        ]
        return len([name for name in needed if name not in attrs]) > count

    @property
    def foldable(self) -> bool:
        """Whether it can be constant-folded by NumPy."""
        return self.numpy_kernel is not None and self.pure and self.where == "device"


_REGISTRY: dict[str, OpDef] = {}


def register(op_type: str, kernel: Callable[..., Any], **rest: Any) -> OpDef:
    """Adds a row to the registry (see `OpDef` for the keywords) and returns it.

    Raises:
        ValueError: the type is taken.
    """
    if op_type in _REGISTRY:
        raise ValueError(f"op type {op_type!r} is registered twice.")
    row = OpDef(op_type, kernel, **rest)
    _REGISTRY[op_type] = row
    return row


def lookup(op_type: str) -> OpDef:
    """The row of `op_type`; imports all op modules if it is not registered yet.

    Raises:
        KeyError: there is none.
    """
    if op_type not in _REGISTRY:
        ports.ops.load()
    return _REGISTRY[op_type]


def role_of(op: Operation) -> Role | None:
    """The role of an operation's type."""
    return lookup(op.type).role


def never_runs(op: Operation) -> bool:
    """Whether an operation is a constant or a handle, which belongs to no segment."""
    return role_of(op) in (Role.CONSTANT, Role.VARIABLE)


def takes_element(op: Operation | None) -> bool:
    """Whether an operation takes the next element of an iterator."""
    return op is not None and role_of(op) in (Role.ELEMENT, Role.ELEMENT_OF_HANDLE)


def registered_types() -> list[str]:
    """All registered op types."""
    ports.ops.load()
    return sorted(_REGISTRY)


def apply(
    op_type: str,
    inputs: Sequence[Tensor] = (),
    attrs: dict[str, Any] | None = None,
    name: str | None = None,
) -> Operation:
    """Adds an operation of a registered type to the default graph.

    Args:
        op_type: the type.
        inputs: tensors (see `conversion.convert_to_tensor` for other values).
        attrs: attributes for the kernel.
        name: the requested name; the type by default.

    Raises:
        ValueError, TypeError: shapes or dtypes are incompatible.
    """
    row = lookup(op_type)
    attrs = attrs or {}
    if row.has_effects(attrs):
        attrs = marked(attrs)
    if row.accepts:
        for position, tensor in enumerate(inputs):
            allowed = row.accepted(position)
            if allowed and tensor.dtype not in allowed:
                raise not_allowed(tensor, allowed, f"{name or row.type} ({row.type})", position)
    outputs = row.infer(inputs, attrs) if row.infer else infer_from_kernel(row, inputs, attrs)
    graph = get_default_graph()
    if inputs and not graph.reaches(inputs[0].graph):
        graph = inputs[0].graph
    op = graph.create_op(op_type, inputs, outputs, attrs, name)
    written = row.updated_positions(attrs) if row.updates else ()
    if written:
        graph.note_write(op, (op.inputs[position] for position in written))
    return op


def not_allowed(
    tensor: Tensor, allowed: Sequence[DType], what: str, parameter: int | str
) -> TypeError:
    """The error for a value of an unsupported dtype.

    Args:
        tensor: the value.
        allowed: the supported dtypes.
        what: the operation or the function.
        parameter: the input's number or name.
    """
    which = f"parameter {parameter!r}" if isinstance(parameter, str) else f"input {parameter}"
    return type_error(
        f"Value passed to {which} of {what} has DataType {tensor.dtype.name} not in list of "
        f"allowed values: {', '.join(dtype.name for dtype in allowed)}",
        received=tensor,
        made_at=tensor.op.source,
        hint=f"use cast(x, {allowed[0].name})" if tensor.dtype.kind in "fcib" else None,
    )


def check_allowed(tensor: Tensor, spec: str, what: str, parameter: str) -> None:
    """Raises TypeError unless a value's dtype is one of `dtypes.members(allowed)`."""
    allowed = members(spec)
    if tensor.dtype not in allowed:
        raise not_allowed(tensor, allowed, what, parameter)


def output(
    op_type: str,
    inputs: Sequence[Tensor] = (),
    attrs: dict[str, Any] | None = None,
    name: str | None = None,
) -> Tensor:
    """Adds an operation with one output, and returns that."""
    return apply(op_type, inputs, attrs, name).outputs[0]


# -- inference from the kernel


def infer_from_kernel(
    row: OpDef, inputs: Sequence[Tensor], attrs: Mapping[str, Any]
) -> Sequence[Spec]:
    """The outputs' specs by abstract evaluation of the kernel.

    The kernel is evaluated with two different sizes for unknown dimensions: output dimensions that
    agree are static. (`jax.export.symbolic_shape` needs a single evaluation, but rejects
    undecidable comparisons, such as of an unknown dimension with 3, which TensorFlow infers to be
    3.)

    Raises:
        ValueError: the kernel rejects the shapes, all of which are known.
    """
    specs = tuple(Spec(tensor.dtype, tensor.shape) for tensor in inputs)
    static = row.static_positions(attrs)
    values = tuple(
        _frozen(constant_value(tensor)) if position in static else None
        for position, tensor in enumerate(inputs)
    )
    if any(values[position] is None for position in static):
        return [Spec(spec.dtype, UNKNOWN) for spec in specs[:1]]
    try:
        return _infer(row.type, specs, values, _frozen(dict(attrs)))
    except _Refused as refused:
        cause = refused.cause
        raise value_error(
            f"{row.type} does not accept these inputs: {str(cause).splitlines()[0]}",
            received=", ".join(f"{t.name} {t.shape} {t.dtype.name}" for t in inputs),
            made_at=inputs[0].op.source if inputs else None,
        ) from cause


class _Refused(Exception):
    def __init__(self, cause: Exception) -> None:
        self.cause = cause


# Two sizes with many divisors, so that reshapes and strides by common factors work; never equal to
# a real one.
SIZES = (720720, 1441440)


@functools.lru_cache(maxsize=4096)
def _infer(
    op_type: str, specs: tuple[Spec, ...], values: tuple[Any, ...], frozen_attrs: Any
) -> tuple[Spec, ...]:
    import jax

    row = lookup(op_type)
    attrs = _thawed(frozen_attrs)
    unknown = any(not spec.shape.is_fully_defined() for spec in specs)
    if any(spec.shape.rank is None for spec in specs):
        return _infer_unknown_rank(row, specs, attrs)

    def evaluate(size: int) -> list[Any]:
        arguments = [
            _thawed(value)
            if value is not None
            else _abstract([size if dim is None else dim for dim in spec.shape], spec.dtype)
            for spec, value in zip(specs, values, strict=True)
        ]
        traced = [a for a, value in zip(arguments, values, strict=True) if value is None]

        def call(*given: Any) -> Any:
            rest = iter(given)
            return row.kernel(
                *(
                    next(rest) if value is None else argument
                    for argument, value in zip(arguments, values, strict=True)
                ),
                **attrs,
            )

        with x64():
            result = jax.eval_shape(call, *traced)
        return list(result) if isinstance(result, (tuple, list)) else [result]

    try:
        first = evaluate(SIZES[0])
        second = evaluate(SIZES[1]) if unknown else first
    except (TypeError, ValueError) as error:
        if unknown:
            return _infer_unknown_rank(row, specs, attrs)
        raise _Refused(error) from error
    return tuple(
        Spec(
            as_dtype(one.dtype),
            TensorShape([a if a == b else None for a, b in zip(one.shape, two.shape, strict=True)]),
        )
        for one, two in zip(first, second, strict=True)
    )


def _abstract(dims: Sequence[int], dtype: DType) -> Any:
    import jax

    return jax.ShapeDtypeStruct(dims, dtype.numpy_dtype)  # type: ignore[no-untyped-call]


def _infer_unknown_rank(
    row: OpDef, specs: tuple[Spec, ...], attrs: Mapping[str, Any]
) -> tuple[Spec, ...]:
    """Infers dtypes only, by trying ranks until the kernel accepts them."""
    import jax

    for rank in (2, 1, 0, 3, 4, 5):
        guesses = [
            _abstract(
                [1] * rank if spec.shape.rank is None else [dim or 1 for dim in spec.shape],
                spec.dtype,
            )
            for spec in specs
        ]
        try:
            with x64():
                result = jax.eval_shape(functools.partial(row.kernel, **attrs), *guesses)
        except (TypeError, ValueError):
            continue
        outputs = result if isinstance(result, (tuple, list)) else [result]
        return tuple(Spec(as_dtype(each.dtype), UNKNOWN) for each in outputs)
    return tuple(Spec(specs[0].dtype, UNKNOWN) for _ in range(1))


class _Frozen(NamedTuple):
    """A hashable array."""

    data: bytes
    dtype: str
    shape: tuple[int, ...]


def as_key(attrs: Mapping[str, Any]) -> Any:
    """Attributes as a hashable value, if their values are hashable."""
    return _frozen(dict(attrs))


def _frozen(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype == object:
        return ("objects", tuple(value.flat), value.shape)
    if isinstance(value, np.ndarray):
        return _Frozen(value.tobytes(), value.dtype.str, value.shape)
    if isinstance(value, dict):
        return ("dict", tuple((key, _frozen(each)) for key, each in sorted(value.items())))
    if isinstance(value, list):
        return ("list", tuple(map(_frozen, value)))
    return value


def _thawed(value: Any) -> Any:
    if isinstance(value, _Frozen):
        return np.frombuffer(value.data, np.dtype(value.dtype)).reshape(value.shape)
    if isinstance(value, tuple) and len(value) == 2 and value[0] == "dict":
        return {key: _thawed(each) for key, each in value[1]}
    if isinstance(value, tuple) and len(value) == 2 and value[0] == "list":
        return list(map(_thawed, value[1]))
    return value


# -- values known before the graph runs

_FOLD_LIMIT = 4096
"""Elements; above it a value is left to XLA (folding is for shapes, sizes and axes)."""


def too_large_to_fold(op: Operation) -> bool:
    """Whether an input or output has more elements than `fold` computes."""
    return any(
        (tensor.shape.num_elements() or 0) > _FOLD_LIMIT for tensor in (*op.inputs, *op.outputs)
    )


def fold(
    row: OpDef, inputs: Sequence[Any], attrs: Mapping[str, Any], outputs: Sequence[Tensor]
) -> list[Any] | None:
    """Constant folding: the op's outputs if computable without XLA, else None.

    Args:
        row: the op's row.
        inputs: NumPy arrays if known, otherwise anything with a `shape`.
        attrs: the op's attributes.
        outputs: the operation's tensors; large ones are not folded.
    """
    if not row.foldable:
        return None
    if not row.known_from_shape and not all(map(_is_foldable, inputs)):
        return None
    if any((tensor.shape.num_elements() or 0) > _FOLD_LIMIT for tensor in outputs):
        return None
    try:
        if row.fault is not None and faults.first_fault(row.fault(inputs, attrs)) is not None:
            return None  # it raises when it runs
        results = in_numpy(row, inputs, attrs, outputs)
    except NUMPY_REFUSES:  # XLA has a value for it, or reports the error with the operation
        return None
    test = row.result_fault
    is_faulty = test is not None and faults.first_fault(test(inputs, results, attrs)) is not None
    return None if is_faulty else results


_NARROW = (as_dtype("float16").numpy_dtype, as_dtype("bfloat16").numpy_dtype)


def _is_foldable(value: Any) -> bool:
    """Whether NumPy gives the same as XLA for a value: they differ in what NaN and infinities do,
    in convolutions, special functions, sorting and casts.
    """
    if not isinstance(value, np.ndarray) or value.size > _FOLD_LIMIT:
        return False
    numbers = value.dtype.kind in "fc" or value.dtype in _NARROW
    return not numbers or bool(np.isfinite(value).all())


NUMPY_REFUSES = (TypeError, ValueError, IndexError, ArithmeticError, np.linalg.LinAlgError)
"""What NumPy kernels raise on values that they cannot take: singular matrices, reductions of
nothing, Python integers beyond the dtype."""


def in_numpy(
    row: OpDef,
    inputs: Sequence[Any],
    attrs: Mapping[str, Any],
    outputs: Sequence[Tensor],
    **extra: Any,
) -> list[Any]:
    """The results of a row's `numpy_kernel`: new values of variables, then the outputs as arrays.

    Like XLA, it computes with 16-bit floats in float32: in their own precision a sum of 4,096
    bfloat16 ones would stop at 256.

    Args:
        row: the row, which has one.
        inputs: the values.
        attrs: the attributes.
        outputs: the operation's tensors.
        extra: `key`, for kernels that draw.
    """
    kernel = cast(Callable[..., Any], row.numpy_kernel)
    if not (row.moves or row.updates):
        inputs = [
            value.astype(np.float32) if getattr(value, "dtype", None) in _NARROW else value
            for value in inputs
        ]
    tensors = [*outputs, *(each for output in outputs[:1] for each in output.op.inputs)]
    floats = any(tensor.dtype.is_differentiable for tensor in tensors)
    # Integers divided by 0 have no value: NumPy's would be another one than XLA's.
    with quiet() if floats else np.errstate(all="ignore", divide="raise", invalid="raise"):
        return as_declared(kernel(*inputs, **attrs, **extra), outputs)


def quiet() -> Any:
    """A context manager in which NumPy does not warn: NaN and infinities are values."""
    return np.errstate(all="ignore")


def as_declared(result: Any, outputs: Sequence[Tensor]) -> list[Any]:
    """The result of a NumPy kernel as a list, outputs as arrays of their dtypes.

    A string would otherwise be `bytes`, which cannot be indexed like a scalar. Objects stay as they
    are, and so do new values of variables, which come first.
    """
    results = list(result) if isinstance(result, (tuple, list)) else [result]
    updated = len(results) - len(outputs)
    return results[:updated] + [
        value
        if tensor.dtype.name in ("variant", "resource")
        else np.asarray(value, tensor.dtype.numpy_dtype)
        for value, tensor in zip(results[updated:], outputs, strict=True)
    ]


def constant_value(tensor: Tensor) -> Any | None:
    """The value of `tensor` if it follows from constants and static shapes, else None.

    That of a variable is None. Anything else is returned as is. For shape inference and checks; a
    run that is fed another value must not depend on it (see `fixed_value`).
    """
    if not isinstance(tensor, Tensor):
        return None if hasattr(tensor, "_as_tensor") else tensor
    return _constant_value(tensor)


def fixed_value(tensor: Tensor) -> Any | None:
    """`constant_value` for what becomes part of the graph: attributes, a number of operations, the
    choice of a branch. The tensors that it follows from cannot be fed any more, as in TensorFlow.
    """
    value = constant_value(tensor)
    pending = [tensor] if value is not None and isinstance(tensor, Tensor) else []
    while pending:
        each = pending.pop()
        each.graph.prevent_feeding(each)
        if each in each.graph.known_inputs:
            pending.append(each.graph.known_inputs[each])
        elif not lookup(each.op.type).known_from_shape:
            pending.extend(each.op.inputs)
    return value


def _constant_value(tensor: Tensor) -> Any | None:
    row = lookup(tensor.op.type)
    if row.role is Role.CONSTANT:
        value: Any = tensor.op.attrs["value"]
        return value
    if row.role is Role.PLACEHOLDER and tensor in tensor.graph.known_inputs:
        return _constant_value(tensor.graph.known_inputs[tensor])
    if not row.foldable:
        return None
    inputs: list[Any]
    if row.known_from_shape:
        shapes = [_shape_enough_for(row, source.shape) for source in tensor.op.inputs]
        if any(shape is None for shape in shapes):
            return None
        inputs = [np.broadcast_to(np.zeros((), np.int8), shape) for shape in shapes]
    else:
        inputs = []
        for source in tensor.op.inputs:
            value = _constant_value(source)
            if value is None:
                return None
            inputs.append(value)
    result = fold(row, inputs, tensor.op.kernel_attrs, tensor.op.outputs)
    return None if result is None else result[tensor.value_index]


def _shape_enough_for(row: OpDef, shape: TensorShape) -> Any:
    """The input's shape if it determines the value (`Rank` needs no dimensions)."""
    if row.type == "Rank" and shape.dims is not None:
        return tuple(dim or 0 for dim in shape.dims)
    return tuple(shape) if shape.is_fully_defined() else None


def constant_value_as_shape(tensor: Tensor) -> TensorShape:
    """The static shape given by a 1-D integer tensor, in which -1 means unknown.

    Like TensorFlow's function of this name, it looks through `Shape`, `Pack`, `ConcatV2`, slices
    and casts.
    """
    tensor.shape.with_rank_at_most(1)
    value = constant_value(tensor)
    if value is not None:
        return TensorShape(
            None
            if np.ndim(value) == 0 and value == -1
            else [None if dim == -1 else dim for dim in np.atleast_1d(value).tolist()]
        )
    tensor = _uncast(tensor)
    op = tensor.op
    if op.type == "Shape":
        return op.inputs[0].shape
    if op.type == "Pack":
        return TensorShape([_dimension_of(each) for each in op.inputs])
    if op.type == "ConcatV2":
        shape = SCALAR
        for each in op.inputs:
            shape = shape.concatenate(constant_value_as_shape(each))
        return shape
    if op.type == "StridedSlice" and not op.inputs[1:]:
        index = op.attrs["index"][0]
        if isinstance(index, tuple):
            return constant_value_as_shape(op.inputs[0])[slice(*index[1:])]
    length = tensor.shape[0] if tensor.shape.rank == 1 else None
    return UNKNOWN if length is None else TensorShape([None] * length)


def packed(tensor: Tensor) -> Sequence[Tensor] | None:
    """The inputs of the `Pack` that computes a tensor; None if it is not one."""
    return tensor.op.inputs if tensor.op.type == "Pack" else None


def _uncast(tensor: Tensor) -> Tensor:
    """The source of an integer tensor before `Identity` and integer casts."""
    while tensor.op.type in ("Identity", "Cast"):
        before = tensor.op.inputs[0]
        if before.dtype.name not in ("int32", "int64"):
            break
        tensor = before
    return tensor


def _dimension_of(tensor: Tensor) -> int | None:
    value = constant_value(tensor)
    if value is not None:
        return None if value == -1 else int(value)
    op = _uncast(tensor).op
    if op.type == "StridedSlice" and not op.inputs[1:] and op.inputs[0].op.type == "Shape":
        index = op.attrs["index"][0]
        shape = op.inputs[0].op.inputs[0].shape
        if isinstance(index, int) and shape.rank is not None:
            return shape[index]
    return None


# -- inference rules that many rows share


def same_as_input(position: int = 0) -> Infer:
    """Infers one output with the spec of an input."""

    def infer(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> Sequence[Spec]:
        return [Spec(inputs[position].dtype, inputs[position].shape)]

    return infer


def fixed(dtype: DType, shape: TensorShape = SCALAR) -> Infer:
    """Infers one output of this spec."""

    def infer(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> Sequence[Spec]:
        return [Spec(dtype, shape)]

    return infer


def from_attrs(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> Sequence[Spec]:
    """Infers one output with the attributes `dtype` and `shape`."""
    return [Spec(attrs["dtype"], attrs["shape"])]


def no_outputs(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> Sequence[Spec]:
    """Infers no outputs."""
    return []


def register_handle(op_type: str, what: str) -> OpDef:
    """Adds a row for handles, which name an object that the session holds and never run.

    Args:
        op_type: the op type.
        what: the kind of object, with its article.
    """

    def never(**_: Any) -> Any:
        raise AssertionError(f"{what} is never executed: its value is looked up")

    rest = {"infer": no_outputs, "gradient": None, "where": "host", "pure": False}
    return register(op_type, never, **rest)


def broadcast(dtype: DType | None = None) -> Infer:
    """Infers the broadcast shape of inputs of one dtype; the output has that dtype, or `dtype`.

    Raises:
        TypeError: the dtypes differ; as in TensorFlow, there is no type promotion.
        ValueError: the shapes cannot be broadcast.
    """

    def infer(inputs: Sequence[Tensor], attrs: Mapping[str, Any]) -> Sequence[Spec]:
        def refusal(a: int, b: int) -> Exception:
            return value_error(
                f"Dimensions must be equal, but are {a} and {b}",
                expected="shapes that broadcast together (equal, or 1, from the right)",
                received=", ".join(f"{t.name} {t.shape}" for t in inputs),
                made_at=inputs[0].op.source,
            )

        shape = inputs[0].shape
        for other in inputs[1:]:
            shape = broadcast_shapes(shape, other.shape, refusal)
        return [Spec(dtype or inputs[0].dtype, shape)]

    return infer


def check_same_dtype(op_type: str, inputs: Sequence[Tensor], name: str | None = None) -> None:
    """Raises TypeError if the inputs' dtypes differ."""
    other = next((each for each in inputs[1:] if each.dtype is not inputs[0].dtype), None)
    if other is not None:
        raise type_error(
            f"Input {other.name!r} of '{name or op_type}' ({op_type}) has type "
            f"{other.dtype.name} that does not match type {inputs[0].dtype.name} of "
            f"{inputs[0].name!r}",
            expected=f"{inputs[0].dtype.name} for all, as for the first",
            received=", ".join(f"{t.name} {t.dtype.name}" for t in inputs),
            made_at=inputs[0].op.source,
            hint=f"use cast(x, {inputs[0].dtype.name}); dtypes are never promoted implicitly",
        )


def broadcast_shapes(
    one: TensorShape, two: TensorShape, refusal: Callable[[int, int], Exception]
) -> TensorShape:
    """The shape that two shapes broadcast to.

    Args:
        one, two: the shapes.
        refusal: the error to raise for incompatible dimensions.
    """
    if one.dims is None or two.dims is None:
        return UNKNOWN
    if one.dims == two.dims:
        return one
    length = max(len(one), len(two))
    left = (1,) * (length - len(one)) + one.dims
    right = (1,) * (length - len(two)) + two.dims
    result: list[int | None] = []
    for a, b in zip(left, right, strict=True):
        if a == 1 or b == 1:
            result.append(b if a == 1 else a)
        elif a is None or b is None:
            result.append(b if a is None else a)
        elif a == b:
            result.append(a)
        else:
            raise refusal(a, b)
    return TensorShape(result)
