"""What a row of the registry says: `OpDef`, and the groups of its facts."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any, Literal, NamedTuple, TypeAlias

from estimatorkit.core.dtypes import DType, members
from estimatorkit.core.faults import FaultTest, ResultTest
from estimatorkit.core.shapes import TensorShape
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.core.trust import Effects


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


Attrs: TypeAlias = Mapping[str, Any]
Place: TypeAlias = Literal["device", "host"]
Positions: TypeAlias = tuple[int, ...]
Infer: TypeAlias = Callable[[Sequence[Tensor], Attrs], Sequence[Spec]]
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
    ALL_REDUCE = "all_reduce"  # sums or means over replicas
    ALL_GATHER = "all_gather"  # the rows of all replicas


@dataclass(frozen=True)
class Semantics:
    """What the kernel's results depend on, and what it changes.

    Attributes:
        role: its kind, for planning and placement.
        pure: whether equal inputs always give equal outputs, without side effects.
        random: whether the kernel takes `key`, a JAX random key that differs in each run; the
            `numpy_kernel` takes its three words, and draws float32 only.
        moves: whether it only moves or copies elements, so that NumPy and XLA agree bit for bit.
        known_from_shape: whether the outputs depend on the inputs' shapes alone.
        static: positions of inputs that must be compile-time constants.
        updates: positions of variable handles whose new values the kernel returns before its
            outputs.
        overwrites: those of `updates` whose old value the kernel does not use (it gets None).
        effects: what the kernel touches beyond its inputs and the session (see `trust`); loaded
            graphs may not, unless they are trusted.
    """

    role: Role | None = None
    pure: bool = True
    random: bool = False
    moves: bool = False
    known_from_shape: bool = False
    static: Positions | Callable[[Attrs], Positions] = ()
    updates: Positions | Callable[[Attrs], Positions] = ()
    overwrites: Positions = ()
    effects: Effects | Callable[[Attrs], Effects] = ""

    def static_positions(self, attrs: Attrs) -> Positions:
        """`static` for an operation with these attributes."""
        return self.static(attrs) if callable(self.static) else self.static

    def updated_positions(self, attrs: Attrs) -> Positions:
        """`updates` for an operation with these attributes."""
        return self.updates(attrs) if callable(self.updates) else self.updates

    def has_effects(self, attrs: Attrs) -> Effects:
        """`effects` for an operation with these attributes."""
        return self.effects(attrs) if callable(self.effects) else self.effects


@dataclass(frozen=True)
class Batching:
    """How it runs on many rows, or for many steps, at once.

    Attributes:
        elementwise: whether a host kernel maps elements of its first input independently, with
            the same other inputs, so that it can run on many rows at once (`batched_executor`).
        broadcasts: the same of a kernel whose inputs have one shape, or are scalars.
        rowwise: whether a host kernel maps rows independently, along any leading axes.
        on_block: `on_block(inputs, attrs)` runs a host op on a column of rows and returns a column
            per output, or None if it cannot.
        unroll_on_cpu: whether XLA on CPUs is only fast outside loops (see `compiled_loop`).
    """

    elementwise: bool = False
    broadcasts: bool = False
    rowwise: bool | Callable[[Attrs], bool] = False
    on_block: Callable[[Sequence[Any], Attrs], Sequence[Any] | None] | None = None
    unroll_on_cpu: bool = False

    def is_rowwise(self, attrs: Attrs) -> bool:
        """`rowwise` for an operation with these attributes."""
        return self.rowwise(attrs) if callable(self.rowwise) else self.rowwise


@dataclass(frozen=True)
class Placement:
    """Where it runs, and what it needs there.

    Attributes:
        where: 'device' (pure JAX) or 'host' (NumPy and Python).
        context: whether a host kernel takes `context`, the session's resources.
        holder: the attribute that names the handles a host kernel uses; it is colocated with them.
        colocate_with_input: whether to place it with its first input, if that is a variable's
            value, of which it reads a few rows.
        client_only: whether it always runs in the process that built the graph, because what it
            works on cannot be serialized.
        takes_shards: whether the kernel takes variables as `ShardedRows` where replicas divide
            their rows; others get the whole value.
    """

    where: Place | Callable[[Attrs], Place] = "device"
    context: bool = False
    holder: str = ""
    colocate_with_input: bool = False
    client_only: bool = False
    takes_shards: bool = False

    def place(self, attrs: Attrs) -> Place:
        """`where` for an operation with these attributes."""
        return self.where(attrs) if callable(self.where) else self.where


@dataclass(frozen=True)
class OpDef:
    """A row of the registry: an op's functions, and three groups of facts about them.

    Facts that depend on the attributes (`where`, `static`, `updates`, `rowwise`, `effects`) may be
    functions of them.

    Attributes:
        type: the op type.
        kernel: `kernel(*inputs, **attrs)` returns an array or a tuple of arrays, one per output.
        numpy_kernel: the same function in NumPy, for constant folding, strings and the tests.
        infer: `infer(inputs, attrs)` returns the outputs' specs; None evaluates the kernel
            abstractly.
        accepts: allowed dtypes of the first input in the notation of `dtypes.members` ("fi":
            floating or integer), or a tuple for the first inputs; '' for any.
        fault: tests of the inputs' values, which raise InvalidArgumentError (see `faults`).
        result_fault: the same of the results, given the inputs, the results, and the attributes;
            positions are those of results.
        gradient: 'auto' (`jax.vjp` of the kernel), 'same' (passed through unchanged, so that
            `IndexedSlices` stay sparse), None (not differentiable: nothing flows), 'undefined'
            (TensorFlow has none: differentiating it is an error), or
            `gradient(op, *output gradients)`, which returns a gradient or None for each input.
        row_gradient: `row_gradient(op, slices)` for a gradient that comes as `IndexedSlices`, to
            keep it in rows; without it the slices become dense.
        host_vjp: `host_vjp(attrs, inputs, output gradients, positions, context)` replaces
            `jax.vjp` for ops that hold functions and run on the host.
        cases: examples; the tests require at least one.
        semantics: what the results depend on, and what the kernel changes.
        batching: how it runs on many rows at once.
        placement: where it runs.
    """

    type: str
    kernel: Callable[..., Any]
    numpy_kernel: Callable[..., Any] | None = None
    infer: Infer | None = None
    accepts: str | tuple[str, ...] = ""
    fault: FaultTest | None = None
    result_fault: ResultTest | None = None
    gradient: Literal["auto", "same", "undefined"] | Gradient | None = "auto"
    row_gradient: Gradient | None = None
    host_vjp: Callable[..., Sequence[Any]] | None = None
    cases: Callable[[], Sequence[Case]] = field(default=lambda: ())
    semantics: Semantics = Semantics()
    batching: Batching = Batching()
    placement: Placement = Placement()

    def made(self, op: Operation) -> bool:
        """Whether `op` is of this type."""
        return op.type == self.type

    @functools.cached_property
    def accepted_dtypes(self) -> tuple[tuple[DType, ...], ...]:
        """The supported dtypes of each of the first inputs; an empty tuple for any dtype."""
        each = (self.accepts,) if isinstance(self.accepts, str) else self.accepts
        return tuple(map(members, each)) if self.accepts else ()

    def accepted(self, position: int) -> tuple[DType, ...]:
        """The supported dtypes of the input at `position`; an empty tuple for any dtype."""
        return self.accepted_dtypes[position] if position < len(self.accepted_dtypes) else ()

    def lacks_inputs(self, count: int, attrs: Attrs) -> bool:
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
        return (
            self.numpy_kernel is not None
            and self.semantics.pure
            and self.placement.where == "device"
        )


_GROUPS = {"semantics": Semantics, "batching": Batching, "placement": Placement}
_GROUP_OF = {each.name: name for name, group in _GROUPS.items() for each in fields(group)}


def define(op_type: str, kernel: Callable[..., Any], **facts: Any) -> OpDef:
    """Makes a row from a flat list of facts.

    Args:
        op_type: the op type.
        kernel: the function that computes it.
        facts: attributes of `OpDef` and of its groups.
    """
    own: dict[str, Any] = {}
    grouped: dict[str, dict[str, Any]] = {}
    for name, value in facts.items():
        group = _GROUP_OF.get(name)
        (own if group is None else grouped.setdefault(group, {}))[name] = value
    groups = {name: _GROUPS[name](**values) for name, values in grouped.items()}
    return OpDef(op_type, kernel, **groups, **own)
