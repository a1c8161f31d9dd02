"""Datasets in graphs: iterators as resources, `get_next()` as an operation, and functions traced
for `map`.

An iterator is a name in the graph; its `Cursor` lives in the session. `get_next` is a host
operation, so a training step is a host segment (the next elements) and a device segment (the
model).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from estimatorkit.core import functions, nest
from estimatorkit.core.errors import FailedPreconditionError, OutOfRangeError, explain
from estimatorkit.core.graph import Graph
from estimatorkit.core.registry import Spec, apply, register, register_handle
from estimatorkit.core.tensor import Operation
from estimatorkit.data import dataset as datasets
from estimatorkit.data.buffers import Columns
from estimatorkit.data.cursor import Cursor
from estimatorkit.data.dataset import Dataset
from estimatorkit.data.spec import TensorSpec


def cursor_of(state: Any, iterator: str) -> Cursor:
    """The cursor of an iterator in a session.

    Args:
        state: the session's state.
        iterator: the iterator's name.

    Raises:
        FailedPreconditionError: the iterator was not initialized.
    """
    found = state.resources.get(iterator)
    if found is None:
        op = state.graph.get_operation_by_name(iterator)
        dataset = op.attrs.get("_dataset")
        if dataset is None:
            raise FailedPreconditionError(
                None,
                op,
                explain(
                    f"GetNext() failed because the iterator {iterator!r} has not been initialized",
                    made_at=op.source,
                    hint="run iterator.initializer first",
                ),
            )
        found = state.resources[iterator] = Cursor(dataset, op.graph.seed)
    cursor: Cursor = found
    return cursor


def _get_next(iterator: str, specs: tuple[Spec, ...], *, context: Any) -> list[Any]:
    try:
        return list(cursor_of(context, iterator).next_element())
    except OutOfRangeError as error:
        op = context.graph.get_operation_by_name(iterator)
        raise OutOfRangeError(None, op, "End of sequence") from error


def _make(iterator: str, *, context: Any) -> list[Any]:
    op: Operation = context.graph.get_operation_by_name(iterator)
    old = context.resources.pop(iterator, None)
    if old is not None:
        old.close()
    context.resources[iterator] = Cursor(op.attrs["_source"], op.graph.seed)
    return []


register_handle("Iterator", "an iterator")
register(
    "MakeIterator",
    _make,
    infer=lambda inputs, attrs: [],
    gradient=None,
    where="host",
    context=True,
    pure=False,
)
register(
    "IteratorGetNext",
    _get_next,
    infer=lambda inputs, attrs: attrs["specs"],
    gradient=None,
    where="host",
    context=True,
    pure=False,
)


class Iterator:
    """Hands a dataset's elements to a graph, one for each run (`tf.data.Iterator`).

    Made by `make_one_shot_iterator` and `make_initializable_iterator`.
    """

    def __init__(self, dataset: Dataset, name: str, *, one_shot: bool) -> None:
        self._spec = dataset.element_spec
        # The dataset is a note on the operation: a plan in memory, not part of the graph's
        # description.
        note = "_dataset" if one_shot else "_source"
        self._op = apply("Iterator", (), {note: dataset}, name)
        self._one_shot = one_shot
        self._initializer: Operation | None = None

    @property
    def initializer(self) -> Operation:
        """The operation that puts the iterator at the first element.

        Raises:
            ValueError: a one-shot iterator needs none.
        """
        if self._one_shot:
            raise ValueError("Iterator does not have an initializer.")
        if self._initializer is None:
            self._initializer = apply(
                "MakeIterator", (), {"iterator": self._op.name}, "MakeIterator"
            )
        return self._initializer

    @property
    def element_spec(self) -> Any:
        """The nested `TensorSpec` of an element."""
        return self._spec

    @property
    def output_types(self) -> Any:
        """The nested dtypes of an element."""
        return nest.map_structure(lambda spec: spec.dtype, self._spec, lists_are_leaves=True)

    @property
    def output_shapes(self) -> Any:
        """The nested static shapes of an element."""
        return nest.map_structure(lambda spec: spec.shape, self._spec, lists_are_leaves=True)

    def get_next(self, name: str | None = None) -> Any:
        """Tensors of the next element, in its structure.

        A run that needs any of them moves the iterator on by one; at the end it raises
        `OutOfRangeError`.
        """
        leaves = nest.flatten(self._spec, lists_are_leaves=True)
        specs = tuple(Spec(leaf.dtype, leaf.shape) for leaf in leaves)
        op = apply(
            "IteratorGetNext",
            (),
            {"iterator": self._op.name, "specs": specs},
            name or "IteratorGetNext",
        )
        return nest.pack_sequence_as(self._spec, op.outputs, lists_are_leaves=True)


def make_one_shot_iterator(dataset: Dataset) -> Iterator:
    """An iterator that needs no initialization and goes through `dataset` once a session."""
    return Iterator(dataset, "OneShotIterator", one_shot=True)


def make_initializable_iterator(dataset: Dataset, shared_name: str | None = None) -> Iterator:
    """An iterator that starts (again) whenever `iterator.initializer` is run."""
    return Iterator(dataset, shared_name or "Iterator", one_shot=False)


def iterator_states(state: Any) -> dict[str, Any]:
    """The positions of all iterators of a session, for a checkpoint."""
    return {
        name: held.get_state() for name, held in state.resources.items() if isinstance(held, Cursor)
    }


def restore_iterators(state: Any, saved: Mapping[str, Any]) -> dict[str, bool]:
    """Moves a session's iterators to saved positions.

    Returns:
        For each iterator that the graph has and a position was saved of, whether it moved (see
        `Cursor.set_state`).
    """
    graph: Graph = state.graph
    names = {op.name for op in graph.get_operations() if op.type == "Iterator"}
    return {name: cursor_of(state, name).set_state(saved[name]) for name in names & set(saved)}


class _MappedFunction:
    """A function of elements for `Dataset.map` and `filter` (`data.plan.TracedFunction`)."""

    def __init__(self, function: Callable[[Any], Any], element_spec: Any) -> None:
        self._function = functions.trace(function, element_spec)

    @property
    def output_spec(self) -> Any:
        """The nested `TensorSpec` of what the function returns."""
        return nest.map_structure(
            lambda tensor: TensorSpec(tensor.shape, tensor.dtype),
            self._function.structure,
            lists_are_leaves=True,
        )

    def __call__(self, columns: Columns, count: int) -> Columns:
        """Applies the function to `count` elements at once."""
        return self._function.map(columns, count)


datasets.function_tracer = _MappedFunction
