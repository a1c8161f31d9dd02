"""Queue operations and their base class, `QueueBase`.

A queue is a handle in the graph, an operation whose attributes describe it; its elements live in
the session (`queue_resource.HostQueue`), under the handle's name or `shared_name`. Enqueue and
dequeue operations run on the host and refer to the queue by an attribute, or to several if an index
chooses among them (`QueueBase.from_list`). A waiting operation blocks only its own `session.run`.
See `queue_kinds` for the kinds of queues.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import DType, bool_, int32
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import (
    Role,
    Spec,
    apply,
    constant_value,
    fixed,
    no_outputs,
    register,
    register_handle,
)
from estimatorkit.core.shapes import UNKNOWN, TensorShape
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.ops.queues.queue_resource import Element, HostQueue, QueueSpec, component

KINDS = ("FIFOQueue", "RandomShuffleQueue", "PaddingFIFOQueue", "PriorityQueue")


def host_queue(context: Any, name: str) -> HostQueue:
    """The content of the queue whose handle has this name, in a session."""
    op: Operation = context.graph.get_operation_by_name(name)
    attrs = op.attrs
    spec = QueueSpec(
        op.type.removesuffix("V2"),
        name,
        attrs["capacity"],
        attrs["dtypes"],
        attrs["shapes"],
        attrs["min_after_dequeue"],
        attrs["seed"],
    )
    held: HostQueue = context.resource(attrs["shared_name"] or name, lambda: HostQueue(spec, op))
    held.check_is(spec, op)
    return held


def _chosen(
    values: Sequence[Any], queues: Sequence[str], context: Any
) -> tuple[HostQueue, Sequence[Any]]:
    """The queue on which an operation works, and the operation's other inputs."""
    if len(queues) == 1:
        return host_queue(context, queues[0]), values
    index = int(values[0])
    if not 0 <= index < len(queues):
        raise ValueError(f"indices = {index} is not in [0, {len(queues)})")
    return host_queue(context, queues[index]), values[1:]


def _enqueue(*values: Any, queues: tuple[str, ...], context: Any) -> list[Any]:
    queue, rest = _chosen(values, queues, context)
    queue.enqueue([tuple(component(value) for value in rest)], context)
    return []


def _enqueue_many(*values: Any, queues: tuple[str, ...], context: Any) -> list[Any]:
    queue, rest = _chosen(values, queues, context)
    rows = _rows(rest)
    queue.enqueue(rows, context, (len(rows),))
    return []


def _rows(values: Sequence[Any]) -> list[Element]:
    columns = [component(value) for value in values]
    for position, column in enumerate(columns):
        if not column.ndim:
            raise ValueError(f"Shape () of component {position} must have rank at least 1")
        if len(column) != len(columns[0]):
            raise ValueError(
                "All input tensors must have the same size in the 0th dimension. Component "
                f"{position} has {len(column)}, and should have {len(columns[0])}"
            )
    # `[row, ...]` keeps a string as an array without dimensions.
    return [tuple(column[row, ...] for column in columns) for row in range(len(columns[0]))]


def _enqueue_where(
    keep: Any, *values: Any, queues: tuple[str, ...], many: bool, context: Any
) -> list[Any]:
    queue, rest = _chosen(values, queues, context)
    rows = _rows(rest) if many else [tuple(component(value) for value in rest)]
    kept = np.broadcast_to(keep, [len(rows)])
    queue.enqueue([row for row, chosen in zip(rows, kept, strict=True) if chosen], context)
    return []


def _dequeue(
    *values: Any, queues: tuple[str, ...], specs: tuple[Spec, ...], context: Any
) -> Element:
    queue, _ = _chosen(values, queues, context)
    (element,) = queue.dequeue(1, context)
    return element


def _dequeue_many(
    *values: Any, queues: tuple[str, ...], specs: tuple[Spec, ...], up_to: bool, context: Any
) -> list[Any]:
    queue, (count,) = _chosen(values, queues, context)
    if int(count) < 0:
        raise ValueError(f"requests {int(count)} < 0 elements")
    queue.batch([])  # without shapes, fails before waiting
    return queue.batch(queue.dequeue(int(count), context, up_to=up_to))


def _close(
    *values: Any, queues: tuple[str, ...], cancel_pending_enqueues: bool, context: Any
) -> list[Any]:
    _chosen(values, queues, context)[0].close_queue(cancel_pending_enqueues, context)
    return []


def _clear(*values: Any, queues: tuple[str, ...], context: Any) -> list[Any]:
    _chosen(values, queues, context)[0].clear()
    return []


def _size(*values: Any, queues: tuple[str, ...], context: Any) -> Any:
    return np.asarray(_chosen(values, queues, context)[0].size(), np.int32)


def _is_closed(*values: Any, queues: tuple[str, ...], context: Any) -> Any:
    return np.asarray(_chosen(values, queues, context)[0].is_closed())


for _kind in KINDS:
    register_handle(f"{_kind}V2", "a queue")

for _type, _kernel, _infer in (
    ("QueueEnqueueV2", _enqueue, no_outputs),
    ("QueueEnqueueManyV2", _enqueue_many, no_outputs),
    ("QueueEnqueueWhere", _enqueue_where, no_outputs),
    ("QueueDequeueV2", _dequeue, lambda inputs, attrs: attrs["specs"]),
    ("QueueDequeueManyV2", _dequeue_many, lambda inputs, attrs: attrs["specs"]),
    ("QueueCloseV2", _close, no_outputs),
    ("QueueClear", _clear, no_outputs),
    ("QueueSizeV2", _size, fixed(int32)),
    ("QueueIsClosedV2", _is_closed, fixed(bool_)),
):
    register(
        _type,
        _kernel,
        infer=_infer,
        gradient=None,
        where="host",
        context=True,
        pure=False,
        holder="queues",
        role=Role.DEQUEUE if "Dequeue" in _type else None,
    )


class QueueBase:
    """Base class of queues. Elements are tuples of tensors, one per component.

    Args:
        dtypes: the components' dtypes.
        shapes: their shapes, or None if they are arbitrary.
        names: their names, or None; if given, elements are dicts.
        handles: the queues' handles; several with an `index`.
        index: an int32 scalar that chooses among several handles.
    """

    def __init__(
        self,
        dtypes: Sequence[DType],
        shapes: Sequence[TensorShape] | None,
        names: Sequence[str] | None,
        handles: Sequence[Operation],
        index: Tensor | None = None,
    ) -> None:
        if shapes is not None and len(shapes) != len(dtypes):
            raise value_error(
                "Queue shapes must have the same length as dtypes",
                expected=f"{len(dtypes)} shapes",
                received=f"{len(shapes)}",
            )
        if not dtypes:
            raise value_error(
                "A queue must have components", expected="dtypes", received=repr(dtypes)
            )
        if names is not None and len(names) != len(dtypes):
            raise value_error(
                "List of names must have the same length as the list of dtypes",
                expected=f"{len(dtypes)} names",
                received=str(list(names)),
            )
        self._dtypes = list(dtypes)
        self._shapes = [UNKNOWN] * len(dtypes) if shapes is None else list(shapes)
        self._names = None if names is None else list(names)
        self._handles = tuple(handles)
        self._index = index

    @staticmethod
    def from_list(index: Any, queues: Sequence[QueueBase]) -> QueueBase:
        """The queue at `index` of a list, chosen at run time.

        Args:
            index: an int32 scalar.
            queues: queues of the same dtypes and names.

        Raises:
            TypeError: they are not queues, or their dtypes or names differ.
        """
        if (
            not isinstance(queues, Sequence)
            or not queues
            or not all(isinstance(queue, QueueBase) for queue in queues)
        ):
            raise TypeError("A list of queues expected")
        first = queues[0]
        if any(queue.dtypes != first.dtypes for queue in queues):
            raise TypeError("Queues do not have matching component dtypes.")
        if any(queue.names != first.names for queue in queues):
            raise TypeError("Queues do not have matching component names.")
        shapes = [_common(each) for each in zip(*(queue.shapes for queue in queues), strict=True)]
        handles = [handle for queue in queues for handle in queue._handles]
        chosen = convert_to_tensor(index, int32, "index")
        return QueueBase(first.dtypes, shapes, first.names, handles, chosen)

    @property
    def name(self) -> str:
        """The name of its handle."""
        return self._handles[0].name

    @property
    def queue_ref(self) -> Operation:
        """The handle, an operation."""
        return self._handles[0]

    @property
    def dtypes(self) -> list[DType]:
        """The components' dtypes."""
        return self._dtypes

    @property
    def shapes(self) -> list[TensorShape]:
        """The components' shapes."""
        return self._shapes

    @property
    def names(self) -> list[str] | None:
        """The components' names, or None."""
        return self._names

    def __repr__(self) -> str:
        dtypes = ", ".join(dtype.name for dtype in self._dtypes)
        return f"<{type(self).__name__} {self.name!r} of ({dtypes})>"

    # -- operations

    def enqueue(self, vals: Any, name: str | None = None) -> Operation:
        """An operation that adds one element, waiting while the queue is full.

        Args:
            vals: a tensor, a list with one per component, or a dict if there are names.

        Raises:
            ValueError: the components do not match the queue's.
        """
        with get_default_graph().name_scope(name or f"{self._own_name}_enqueue") as scope:
            return self._apply("QueueEnqueueV2", self._element(vals), {}, scope)

    def enqueue_many(self, vals: Any, name: str | None = None) -> Operation:
        """An operation that adds one element for each row of `vals`.

        Args:
            vals: as for `enqueue`, with an additional first dimension.

        Raises:
            ValueError: the components do not match the queue's, or differ in their first dimension.
        """
        with get_default_graph().name_scope(name or f"{self._own_name}_EnqueueMany") as scope:
            return self._apply("QueueEnqueueManyV2", self._elements(vals), {}, scope)

    def enqueue_where(
        self, keep: Tensor | None, vals: Any, *, many: bool, name: str | None = None
    ) -> Operation:
        """An operation that adds the elements for which `keep` is true.

        Args:
            keep: a bool, scalar or one per row; None to keep all.
            vals: as for `enqueue`, or with `many` as for `enqueue_many`.
            many: whether `vals` are several elements.
        """
        if keep is None:
            return self.enqueue_many(vals, name) if many else self.enqueue(vals, name)
        with get_default_graph().name_scope(name or f"{self._own_name}_enqueue") as scope:
            tensors = self._elements(vals) if many else self._element(vals)
            return self._apply("QueueEnqueueWhere", tensors, {"many": many}, scope, [keep])

    def dequeue(self, name: str | None = None) -> Any:
        """The tensors of one element, removed in each run; waits while the queue is empty.

        Returns:
            A tensor, a list of them, or a dict if there are names.
        """
        specs = tuple(map(Spec, self._dtypes, self._shapes))
        name = name or f"{self._own_name}_Dequeue"
        return self._returned(self._apply("QueueDequeueV2", [], {"specs": specs}, name))

    def dequeue_many(self, n: Any, name: str | None = None) -> Any:
        """The tensors of `n` elements, stacked; waits until that many are available.

        Args:
            n: an int or an int32 scalar.

        Raises:
            ValueError: `n` is negative or not a scalar.
        """
        return self._dequeue_batch(n, name or f"{self._own_name}_DequeueMany", up_to=False)

    def dequeue_up_to(self, n: Any, name: str | None = None) -> Any:
        """Like `dequeue_many`, but returns fewer (at least one) once the queue is closed."""
        return self._dequeue_batch(n, name or f"{self._own_name}_DequeueUpTo", up_to=True)

    def _dequeue_batch(self, n: Any, name: str, *, up_to: bool) -> Any:
        with get_default_graph().name_scope(name) as scope:
            count = convert_to_tensor(n, int32, "n")
            count.shape.assert_has_rank(0)
            known = constant_value(count)
            if known is not None and int(known) < 0:
                raise ValueError(f"Input 'n' must be >= 0, but is {int(known)}.")
            known = None if up_to else known
            rows = TensorShape([None if known is None else int(known)])
            specs = tuple(map(Spec, self._dtypes, map(rows.concatenate, self._shapes)))
            attrs = {"specs": specs, "up_to": up_to}
            return self._returned(self._apply("QueueDequeueManyV2", [count], attrs, scope))

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
        """An operation that closes the queue to new elements; the remaining ones can be dequeued.

        Args:
            cancel_pending_enqueues: whether to cancel waiting enqueues; otherwise waits for them.
        """
        attrs = {"cancel_pending_enqueues": bool(cancel_pending_enqueues)}
        return self._apply("QueueCloseV2", [], attrs, name or f"{self._own_name}_Close")

    def is_closed(self, name: str | None = None) -> Tensor:
        """Whether the queue is closed, a bool scalar."""
        name = name or f"{self._own_name}_Is_Closed"
        return self._apply("QueueIsClosedV2", [], {}, name).outputs[0]

    def size(self, name: str | None = None) -> Tensor:
        """The number of elements, an int32 scalar."""
        return self._apply("QueueSizeV2", [], {}, name or f"{self._own_name}_Size").outputs[0]

    def clear(self, name: str | None = None) -> Operation:
        """An operation that removes all elements."""
        return self._apply("QueueClear", [], {}, name or f"{self._own_name}_Clear")

    # -- helpers

    @property
    def _own_name(self) -> str:
        return self.name.rsplit("/", 1)[-1]

    def _apply(
        self,
        op_type: str,
        inputs: Sequence[Tensor],
        attrs: dict[str, Any],
        name: str,
        first: Sequence[Tensor] = (),
    ) -> Operation:
        queues = tuple(handle.name for handle in self._handles)
        chooser = [] if self._index is None or len(queues) == 1 else [self._index]
        return apply(op_type, [*first, *chooser, *inputs], {"queues": queues, **attrs}, name)

    def _element(self, vals: Any) -> list[Tensor]:
        """The components of one element, after validation."""
        tensors = self._components(vals)
        for tensor, shape in zip(tensors, self._shapes, strict=True):
            tensor.shape.assert_is_compatible_with(shape)
        return tensors

    def _elements(self, vals: Any) -> list[Tensor]:
        """The components of stacked elements, after validation."""
        tensors = self._components(vals)
        count = TensorShape([None])
        for tensor, shape in zip(tensors, self._shapes, strict=True):
            if tensor.shape.rank == 0:
                raise ValueError(f"Shape {tensor.shape} must have rank at least 1")
            if tensor.shape.rank is not None:
                count = count.merge_with(tensor.shape[:1])
                tensor.shape[1:].assert_is_compatible_with(shape)
        return tensors

    def _components(self, vals: Any) -> list[Tensor]:
        if isinstance(vals, Mapping):
            if not self._names:
                raise ValueError("Queue must have names to enqueue a dictionary")
            if sorted(self._names) != sorted(vals):
                raise value_error(
                    "Keys in dictionary to enqueue do not match names of Queue",
                    expected=sorted(self._names),
                    received=sorted(vals),
                )
            values = [vals[name] for name in self._names]
        elif self._names:
            raise ValueError("You must enqueue a dictionary in a Queue with names")
        else:
            values = list(vals) if isinstance(vals, (list, tuple)) else [vals]
        if len(values) != len(self._dtypes):
            raise value_error(
                f"an element of queue {self.name!r} has the wrong number of components",
                expected=f"{len(self._dtypes)} ({self!r})",
                received=f"{len(values)}",
                made_at=self.queue_ref.source,
                hint="a list is a list of components: write enqueue([[1, 2]]) for a vector",
            )
        return [
            convert_to_tensor(value, dtype, f"component_{position}")
            for position, (value, dtype) in enumerate(zip(values, self._dtypes, strict=True))
        ]

    def _returned(self, op: Operation) -> Any:
        if self._names:
            return dict(zip(self._names, op.outputs, strict=True))
        return op.outputs[0] if len(op.outputs) == 1 else list(op.outputs)


def _common(shapes: Sequence[TensorShape]) -> TensorShape:
    """The most specific shape compatible with all."""
    first, *rest = shapes
    if first.dims is None or any(other.rank != first.rank for other in rest):
        return UNKNOWN
    return TensorShape(
        [
            dim if all(other[axis] == dim for other in rest) else None
            for axis, dim in enumerate(first.dims)
        ]
    )
