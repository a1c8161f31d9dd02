"""`Tensor` and `Operation`, the nodes and edges of graphs, and Python's operators on tensors.

`Graph.create_op` creates operations with their output tensors. Both are immutable afterwards,
except that static shapes may be refined. Kernels are looked up in `registry` by the operation's
type. The Python operators of `Tensor` call functions that `ops` registers in `operators`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from estimatorkit.core import ports
from estimatorkit.core.default_session import session_for
from estimatorkit.core.dtypes import DType
from estimatorkit.core.errors import explain, type_error, value_error
from estimatorkit.core.shapes import ShapeLike, ShapeOfDimensions, TensorShape
from estimatorkit.core.source import SourceLine

if TYPE_CHECKING:
    from estimatorkit.core.graph import Graph

operators: dict[str, Callable[..., Any]] = {}
"""What `Tensor`'s Python operators call, by method name; filled by the op modules."""


def _unary(name: str) -> Callable[[Any], Tensor]:
    def operator(self: Any) -> Tensor:
        return _operate(name, self)

    return operator


def _compared(name: str) -> Callable[[Any, Any], Tensor]:
    def operator(self: Any, other: Any) -> Tensor:
        return _operate(name, self, other)

    return operator


def _binary(name: str) -> tuple[Callable[[Any, Any], Tensor], Callable[[Any, Any], Tensor]]:
    """The methods for a tensor on the left, and on the right alone."""

    def reflected(self: Any, other: Any) -> Tensor:
        return _operate(name, other, self)

    return _compared(name), reflected


class Operators:
    """Python operators that create operations, for tensors and variables."""

    __slots__ = ()
    __array_priority__ = 100  # `array + tensor` comes to __radd__ here instead of NumPy

    __add__, __radd__ = _binary("add")
    __sub__, __rsub__ = _binary("sub")
    __mul__, __rmul__ = _binary("mul")
    __truediv__, __rtruediv__ = _binary("truediv")
    __floordiv__, __rfloordiv__ = _binary("floordiv")
    __mod__, __rmod__ = _binary("mod")
    __pow__, __rpow__ = _binary("pow")
    __matmul__, __rmatmul__ = _binary("matmul")
    __and__, __rand__ = _binary("and")
    __or__, __ror__ = _binary("or")
    __xor__, __rxor__ = _binary("xor")
    __lt__, __le__ = _compared("less"), _compared("less_equal")
    __gt__, __ge__ = _compared("greater"), _compared("greater_equal")
    __neg__, __abs__, __invert__ = _unary("neg"), _unary("abs"), _unary("invert")
    __getitem__ = _compared("getitem")


class Reference:
    """A hashable reference to a tensor or variable: the result of `ref()`."""

    __slots__ = ("_referred",)

    def __init__(self, referred: Any) -> None:
        self._referred = referred

    def deref(self) -> Any:
        """The tensor or variable."""
        return self._referred

    def __hash__(self) -> int:
        return id(self._referred)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and self._referred is other._referred

    def __repr__(self) -> str:
        return f"<Reference wrapping {self._referred!r}>"


class Tensor(Operators):
    """One output of an operation: a symbolic value, computed when the graph runs.

    Tensors compare and hash by identity, as in TensorFlow 1; use `equal` to compare values.

    Attributes:
        assign: for slices of variables, assigns to the slice (see `Variable`).
        aliases: for outputs collected by `contrib.layers`, their names there.
    """

    # Libraries attach attributes to tensors (`outputs._uses_learning_phase = True`).
    __slots__ = ("__dict__", "_shape", "aliases", "assign", "dtype", "op", "value_index")

    aliases: list[str]
    assign: Callable[..., Tensor]

    def __init__(self, op: Operation, value_index: int, dtype: DType, shape: TensorShape) -> None:
        self.op = op
        self.value_index = value_index
        self.dtype = dtype
        self._shape = shape

    @property
    def name(self) -> str:
        """`operation name:output index`."""
        return f"{self.op.name}:{self.value_index}"

    @property
    def graph(self) -> Graph:
        """The graph that holds the tensor."""
        return self.op.graph

    @property
    def shape(self) -> TensorShape:
        """The static shape."""
        return self._shape

    @property
    def device(self) -> str:
        """The requested device, or ''."""
        return self.op.device

    def get_shape(self) -> TensorShape:
        """The static shape; its dimensions have TensorFlow 1's `.value`."""
        return ShapeOfDimensions(self._shape)

    def set_shape(self, shape: ShapeLike) -> None:
        """Merges a shape into the static shape.

        Raises:
            ValueError: the shapes are incompatible.
        """
        self._shape = self._shape.merge_with(shape)

    def __deepcopy__(self, memo: Any) -> Tensor:
        return self  # objects owned by a graph are not copied with objects that refer to it

    def ref(self) -> Reference:
        """A hashable reference; `deref()` returns the tensor."""
        return Reference(self)

    def experimental_ref(self) -> Reference:
        """Older name of `ref()`."""
        return Reference(self)

    def consumers(self) -> list[Operation]:
        """The operations that have this tensor as an input."""
        return [op for op in self.graph.get_operations() if any(t is self for t in op.inputs)]

    def eval(self, feed_dict: Mapping[Any, Any] | None = None, session: Any = None) -> Any:
        """Evaluates the tensor in `session` or the default session."""
        return session_for(self.graph, session).run(self, feed_dict)

    def __repr__(self) -> str:
        return f"<tf.Tensor {self.name!r} shape={self._shape} dtype={self.dtype.name}>"

    def __str__(self) -> str:
        return f'Tensor("{self.name}", shape={self._shape}, dtype={self.dtype.name})'

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    def __bool__(self) -> NoReturn:
        raise type_error(
            "Using a `tf.Tensor` as a Python `bool` is not allowed",
            received=self,
            made_at=self.op.source,
            hint="use `if t is not None:` to test whether a tensor is defined, and `cond` or "
            "`where` to let the graph depend on a tensor's value",
        )

    def __len__(self) -> NoReturn:
        raise type_error(
            f"len is not well defined for a symbolic Tensor ({self.name})",
            hint="use `shape(x)[0]` for the size at run time, or `x.shape` for the static shape",
        )

    def __iter__(self) -> Iterator[Tensor]:
        if self._shape.rank is None or self._shape.rank == 0 or self._shape[0] is None:
            raise type_error(
                "a Tensor can only be iterated over when its first dimension is known",
                received=self,
                made_at=self.op.source,
                hint="use `map_fn` or `unstack(x, num=...)`",
            )
        return iter([self[index] for index in range(self._shape[0])])

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        raise NotImplementedError(
            explain(
                f"Cannot convert a symbolic Tensor ({self.name}) to a numpy array",
                made_at=self.op.source,
                hint="run it in a session: session.run(tensor)",
            )
        )

    def __format__(self, spec: str) -> str:
        return str(self)


def _operate(name: str, *operands: Any) -> Tensor:
    result: Tensor = ports.ops.operate(name, *operands)
    return result


class Operation:
    """A node of the graph; created by `Graph.create_op` and then immutable.

    Attributes:
        type: the key into the op registry.
        inputs: its input tensors, in order.
        attrs: keyword arguments of its kernel; names with a leading `_` are annotations, which are
            not passed to the kernel.
        device: the requested device, or ''.
        source: the line of user code that created it.
        outputs: its output tensors.
        index: its position in creation order.
    """

    __slots__ = (
        "_control_inputs",
        "attrs",
        "device",
        "graph",
        "index",
        "inputs",
        "name",
        "outputs",
        "source",
        "type",
    )

    def __init__(
        self,
        graph: Graph,
        index: int,
        op_type: str,
        name: str,
        inputs: tuple[Tensor, ...],
        control_inputs: tuple[Operation, ...],
        attrs: dict[str, Any],
        device: str,
        source: SourceLine,
        outputs: Sequence[tuple[DType, TensorShape]],
    ) -> None:
        self.graph = graph
        self.index = index
        self.type = op_type
        self.name = name
        self.inputs = inputs
        self._control_inputs = control_inputs
        self.attrs = attrs
        self.device = device
        self.source = source
        self.outputs = tuple(
            [Tensor(self, index, dtype, shape) for index, (dtype, shape) in enumerate(outputs)]
        )

    def __deepcopy__(self, memo: Any) -> Operation:
        return self

    @property
    def traceback(self) -> SourceLine:
        """The line of user code that created the operation."""
        return self.source

    @property
    def control_inputs(self) -> list[Operation]:
        """The operations that must run before it."""
        return list(self._control_inputs)

    def colocation_groups(self) -> list[bytes]:
        """The operations it is colocated with, as `loc:@name`; by default only itself."""
        return [name.encode() for name in self.attrs.get("_class", (f"loc:@{self.name}",))]

    @property
    def kernel_attrs(self) -> dict[str, Any]:
        """The attributes without annotations."""
        return {name: value for name, value in self.attrs.items() if name[0] != "_"}

    @property
    def node_def(self) -> Any:
        """The operation as a `NodeDef` proto."""
        return ports.graphdef.node_def_of(self)

    def get_attr(self, name: str) -> Any:
        """The attribute called `name`.

        Raises:
            ValueError: there is none.
        """
        if name not in self.attrs:
            implied = {"T": self.inputs, "dtype": self.outputs}.get(name)
            if implied:
                return implied[0].dtype
            raise value_error(
                f"operation {self.name!r} ({self.type}) has no attribute {name!r}",
                expected=f"one of {sorted(self.attrs)}",
            )
        return self.colocation_groups() if name == "_class" else self.attrs[name]

    def values(self) -> tuple[Tensor, ...]:
        """The output tensors."""
        return tuple(self.outputs)

    def run(self, feed_dict: Mapping[Any, Any] | None = None, session: Any = None) -> None:
        """Runs the operation in `session` or in the default session."""
        session_for(self.graph, session, "execute operation using `run()`").run(self, feed_dict)

    def __repr__(self) -> str:
        return f"<tf.Operation {self.name!r} type={self.type}>"

    def __str__(self) -> str:
        names = [tensor.name for tensor in self.inputs]
        inputs = ", ".join([*names, *(f"^{op.name}" for op in self.control_inputs)])
        outputs = ", ".join(f"{t.dtype.name}{t.shape}" for t in self.outputs)
        return f"{self.name} = {self.type}({inputs}) -> {outputs or 'nothing'}"


def as_operation(value: Any) -> Operation:
    """The operation of an operation, tensor or variable."""
    if isinstance(value, Operation):
        return value
    if isinstance(value, Tensor):
        return value.op
    op = getattr(value, "op", None)
    if isinstance(op, Operation):
        return op
    raise type_error(
        "a control input is not an operation",
        expected="an Operation, a Tensor or a Variable",
        received=repr(value)[:200],
    )


def holds_tensors(value: Any) -> bool:
    """Whether nested lists contain a tensor or variable."""
    return any(
        isinstance(each, Tensor)
        or hasattr(each, "_as_tensor")
        or (isinstance(each, (list, tuple)) and holds_tensors(each))
        for each in value
    )
