"""Queue classes: FIFO, shuffling, padding and priority queues; and `StagingArea`, built on one."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from estimatorkit.core.dtypes import DType, as_dtype, int64
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.registry import apply
from estimatorkit.core.shapes import SCALAR, TensorShape, as_shape
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.ops.math.random import get_seed
from estimatorkit.ops.queues.queues import QueueBase


def _as_shapes(shapes: Any, *, partial: bool = False) -> list[TensorShape] | None:
    """Normalizes shapes of components; a single shape becomes a list of one.

    Raises ValueError if a rank is unknown, or a dimension unless `partial`.
    """
    if shapes is None:
        return None
    if not isinstance(shapes, (list, tuple)):
        shapes = [shapes]
    elif all(each is None or isinstance(each, int) for each in shapes):
        if partial:
            raise ValueError("When providing partial shapes, a list of shapes must be provided.")
        shapes = [shapes]
    found = [as_shape(each) for each in shapes]
    if any(shape.rank is None for shape in found):
        raise ValueError(f"All shapes must have a defined rank: {found}")
    if not partial and not all(shape.is_fully_defined() for shape in found):
        raise ValueError(f"All shapes must be fully defined: {found}")
    return found


class _Queue(QueueBase):
    """Base class of queues with their own handle; `first` components precede the given dtypes."""

    def __init__(
        self,
        kind: str,
        capacity: int,
        dtypes: Any,
        shapes: Any,
        names: Any,
        shared_name: str | None,
        name: str,
        *,
        min_after_dequeue: int = 0,
        seed: tuple[int, int] | None = None,
        first: Sequence[DType] = (),
    ) -> None:
        given = dtypes if isinstance(dtypes, (list, tuple)) else [dtypes]
        all_dtypes = [*first, *map(as_dtype, given)]
        all_shapes = _as_shapes(shapes, partial=kind == "PaddingFIFOQueue")
        if all_shapes is not None:
            all_shapes = [*(SCALAR for _ in first), *all_shapes]
        attrs = {
            "capacity": int(capacity),
            "dtypes": tuple(all_dtypes),
            "shapes": None if all_shapes is None else tuple(all_shapes),
            "shared_name": shared_name or "",
            "min_after_dequeue": int(min_after_dequeue),
            "seed": seed,
        }
        with get_default_graph().init_scope():
            handle = apply(f"{kind}V2", (), attrs, name)
        labels = names if isinstance(names, (list, tuple, type(None))) else [names]
        super().__init__(all_dtypes, all_shapes, labels, [handle])


class FIFOQueue(_Queue):
    """A first-in, first-out queue.

    Args:
        capacity: the maximum number of elements; unbounded if negative.
        dtypes: the components' dtypes, a list or a single one.
        shapes: their fully defined shapes; None for any, but then only `dequeue` works.
        names: their names; if given, elements are dicts.
        shared_name: the name under which queues of a session share content.

    Raises:
        ValueError: the lists differ in length, or a shape is not fully defined.
    """

    def __init__(
        self,
        capacity: int,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        name: str = "fifo_queue",
    ) -> None:
        super().__init__("FIFOQueue", capacity, dtypes, shapes, names, shared_name, name)


class RandomShuffleQueue(_Queue):
    """A queue that dequeues elements in random order.

    Args:
        capacity: the maximum number of elements.
        min_after_dequeue: the number of elements to retain, for mixing, until it is closed.
        dtypes, shapes, names, shared_name, name: see `FIFOQueue`.
        seed: see `set_random_seed`.

    Raises:
        ValueError: as for `FIFOQueue`; or `min_after_dequeue` leaves no room.
    """

    def __init__(
        self,
        capacity: int,
        min_after_dequeue: int,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        seed: int | None = None,
        shared_name: str | None = None,
        name: str = "random_shuffle_queue",
    ) -> None:
        if min_after_dequeue < 0 or 0 <= capacity <= min_after_dequeue:
            wanted = ">= 0" if min_after_dequeue < 0 else f"< capacity {capacity}"
            raise value_error(
                f"min_after_dequeue {min_after_dequeue} must be {wanted}",
                expected="0 <= min_after_dequeue < capacity",
            )
        super().__init__(
            "RandomShuffleQueue",
            capacity,
            dtypes,
            shapes,
            names,
            shared_name,
            name,
            min_after_dequeue=min_after_dequeue,
            seed=_seed(seed, shared_name),
        )


def _seed(seed: int | None, shared_name: str | None) -> tuple[int, int] | None:
    """The seeds of a queue; with only a graph seed, all queues of one `shared_name` agree."""
    found = get_seed(seed)
    if found is None or seed is not None or shared_name is None:
        return found
    digest = hashlib.md5(f"{found[0]}{shared_name}".encode(), usedforsecurity=False)
    return found[0], int(digest.hexdigest()[:8], 16) & 0x7FFFFFFF


class PaddingFIFOQueue(_Queue):
    """A `FIFOQueue` that pads the elements of a batch to one shape, with zeros or empty strings.

    Args:
        capacity, dtypes, names, shared_name, name: see `FIFOQueue`.
        shapes: the components' shapes, a list; None for a dimension that may vary.

    Raises:
        ValueError: as for `FIFOQueue`; or `shapes` is not a list.
    """

    def __init__(
        self,
        capacity: int,
        dtypes: Any,
        shapes: Any,
        names: Any = None,
        shared_name: str | None = None,
        name: str = "padding_fifo_queue",
    ) -> None:
        if not isinstance(shapes, (list, tuple)) or not shapes:
            raise ValueError("When providing partial shapes, a list of shapes must be provided.")
        super().__init__("PaddingFIFOQueue", capacity, dtypes, shapes, names, shared_name, name)


class PriorityQueue(_Queue):
    """A queue that dequeues the element with the lowest priority, its first component, an int64.

    Args:
        capacity, names, shared_name, name: see `FIFOQueue`.
        types: the dtypes of the components after the priority.
        shapes: their shapes, or None.

    Raises:
        ValueError: as for `FIFOQueue`.
    """

    def __init__(
        self,
        capacity: int,
        types: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        name: str = "priority_queue",
    ) -> None:
        super().__init__(
            "PriorityQueue", capacity, types, shapes, names, shared_name, name, first=[int64]
        )


class StagingArea:
    """A FIFO buffer between the stages of a pipeline, which is never closed.

    Args:
        dtypes: the components' dtypes.
        shapes: their shapes, or None.
        names: their names; if given, elements are dicts.
        shared_name: the name under which areas of a session share content.
        capacity: the maximum number of elements; unbounded if 0.
        memory_limit: accepted for compatibility only.
    """

    def __init__(
        self,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        capacity: int = 0,
        memory_limit: int = 0,
    ) -> None:
        self._queue = FIFOQueue(
            capacity or -1, dtypes, shapes, names, shared_name, name="StagingArea"
        )

    @property
    def name(self) -> str:
        """The name of its handle."""
        return self._queue.name

    def put(self, values: Any, name: str | None = None) -> Operation:
        """An operation that adds an element: a list of tensors, or a dict if there are names."""
        return self._queue.enqueue(values, name or f"{self.name}_put")

    def get(self, name: str | None = None) -> Any:
        """The tensors of one element, removed in each run: a list, or a dict if there are names."""
        taken = self._queue.dequeue(name or f"{self.name}_get")
        return [taken] if isinstance(taken, Tensor) else taken

    def size(self, name: str | None = None) -> Tensor:
        """The number of elements, an int32."""
        return self._queue.size(name or f"{self.name}_size")

    def clear(self, name: str | None = None) -> Operation:
        """An operation that removes all elements."""
        return self._queue.clear(name or f"{self.name}_clear")
