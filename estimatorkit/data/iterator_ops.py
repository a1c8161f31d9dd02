"""Datasets in graphs: iterators as resources, and `get_next()` as an operation.

The graph holds an iterator's name; its `Cursor` lives in the session. `get_next` is a host
operation, so a training step is a host segment (the next elements) followed by a device segment
(the model). An iterator's initializer takes the tensors that its dataset depends on as inputs.
"""

from __future__ import annotations

from collections.abc import Iterator as IteratorOf, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.dtypes import string
from estimatorkit.core.errors import (
    CancelledError,
    FailedPreconditionError,
    InvalidArgumentError,
    OutOfRangeError,
    explain,
    type_error,
    value_error,
)
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.registry import Role, Spec, apply, output, register, register_handle, role_of
from estimatorkit.core.shapes import SCALAR
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.data.dataset import Dataset, value_class
from estimatorkit.data.execution.cursor import Cursor
from estimatorkit.data.spec import (
    SparseTensorSpec,
    TensorSpec,
    compatible,
    flatten,
    flatten_as,
    map_leaves,
    of_types,
    pack,
)
from estimatorkit.data.traced_functions import bound, of_tensors, specs_of


def cursor_of(state: Any, iterator: str) -> Cursor:
    """The cursor of an iterator in a session.

    Args:
        state: the session's state.
        iterator: the iterator's name.

    Raises:
        FailedPreconditionError: the iterator is not initialized.
    """

    def make() -> Cursor:
        op = state.graph.get_operation_by_name(iterator)
        dataset = op.attrs.get("_dataset")
        if dataset is None:
            raise FailedPreconditionError.explained(
                "GetNext() failed because the iterator has not been initialized",
                received=iterator,
                made_at=op.source,
                hint="run iterator.initializer first",
                op=op,
            )
        return Cursor(Dataset(bound(dataset._plan, state)), op.graph.seed, state)

    cursor: Cursor = state.resources.get(iterator) or state.resource(iterator, make)
    return cursor


def put_cursor(state: Any, iterator: str, cursor: Cursor) -> None:
    """Replaces and closes the cursor of an iterator."""
    old = state.resources.get(iterator)
    state.resources[iterator] = cursor
    if old is not None:
        old.close()


def _get_next(iterator: str, specs: tuple[Spec, ...], *, context: Any) -> list[Any]:
    while True:
        cursor = cursor_of(context, iterator)
        try:
            return list(cursor.next_element())
        except OutOfRangeError as error:
            op = context.graph.get_operation_by_name(iterator)
            raise OutOfRangeError(None, op, "End of sequence") from error
        except CancelledError:
            # Another thread may have initialized the iterator in the meantime.
            if context.resources.get(iterator, cursor) is cursor:
                raise


def _get_next_of(handle: Any, specs: tuple[Spec, ...], *, context: Any) -> list[Any]:
    name = np.asarray(handle, object).item().decode()
    try:
        op = context.graph.get_operation_by_name(name)
    except KeyError as error:
        raise InvalidArgumentError.explained(
            "there is no iterator with this handle",
            expected="the result of session.run(iterator.string_handle())",
            received=name,
        ) from error
    found = specs_of(op.attrs["_spec"])
    alike = len(found) == len(specs) and all(
        one.dtype is two.dtype and one.shape.is_compatible_with(two.shape)
        for one, two in zip(found, specs, strict=True)
    )
    if not alike:
        raise InvalidArgumentError.explained(
            "the iterator with this handle has other element types, or incompatible shapes",
            expected=[f"{each.dtype.name} {each.shape}" for each in specs],
            received=[f"{each.dtype.name} {each.shape}" for each in found],
            made_at=op.source,
            op=op,
        )
    return _get_next(name, specs, context=context)


def next_values(*handle: Any, context: Any, **attrs: Any) -> list[Any]:
    """The tensors of the next element of the iterator given by `Iterator.source`."""
    return (_get_next_of if handle else _get_next)(*handle, context=context, **attrs)


def _make(*values: Any, iterator: str, dataset: Dataset, context: Any) -> list[Any]:
    op: Operation = context.graph.get_operation_by_name(iterator)
    plan = dataset._plan
    plan = plan.bind(dict(zip(plan.tensors(), values, strict=True)))
    cursor = Cursor(Dataset(plan), op.graph.seed, context)
    waiting = context.resources.pop(("iterator position", iterator), None)
    if waiting is not None and _RESUMING in context.resources:
        cursor.set_state(waiting.state)
    put_cursor(context, iterator, cursor)
    return []


_RESUMING = "iterators resume"


@contextmanager
def resuming(state: Any) -> IteratorOf[None]:
    """Within it, initializers move iterators to their restored positions.

    For the initializers that a training runs itself when it begins. One that the program runs
    always moves its iterator to the first element.

    Args:
        state: the session's state.
    """
    state.resources[_RESUMING] = True
    try:
        yield
    finally:
        del state.resources[_RESUMING]


class _Position:
    """The restored position of an iterator that is not initialized yet."""

    def __init__(self, state: Mapping[str, Any]) -> None:
        self.state = state


ITERATOR = register_handle("Iterator", "an iterator")
register(
    "MakeIterator",
    _make,
    infer=lambda inputs, attrs: [],
    gradient=None,
    where="host",
    context=True,
    pure=False,
    client_only=True,
)
for _type, _kernel, _role in (
    ("IteratorGetNext", _get_next, Role.ELEMENT),
    ("IteratorGetNextOf", _get_next_of, Role.ELEMENT_OF_HANDLE),
):
    register(
        _type,
        _kernel,
        role=_role,
        infer=lambda inputs, attrs: attrs["specs"],
        gradient=None,
        where="host",
        context=True,
        pure=False,
        client_only=True,
    )
register(
    "IteratorToStringHandle",
    lambda iterator: np.array(iterator.encode(), object),
    infer=lambda inputs, attrs: [Spec(string, SCALAR)],
    gradient=None,
    where="host",
    pure=False,
)


class Iterator:
    """Feeds a dataset's elements into a graph, one per run (`tf.data.Iterator`).

    Created by `make_one_shot_iterator`, `make_initializable_iterator` or the static methods.
    """

    def __init__(self, element_spec: Any, op: Operation | None, handle: Tensor | None = None):
        self._spec = element_spec
        self._op = op
        self._handle = handle
        self._initializer: Operation | None = None
        self._needs_none = False

    @staticmethod
    def from_structure(
        output_types: Any,
        output_shapes: Any = None,
        shared_name: str | None = None,
        output_classes: Any = None,
    ) -> Iterator:
        """Returns an iterator for any dataset of this structure; see `make_initializer`.

        Args:
            output_types: the nest of dtypes.
            output_shapes: the nest of shapes; unknown by default.
            shared_name: iterators of one graph with the same name are one.
            output_classes: the nest of classes (`Tensor`, `SparseTensor`); `Tensor` by default.
        """
        spec = _structure(output_types, output_shapes, output_classes)
        return Iterator(spec, _shared_op(spec, shared_name))

    @staticmethod
    def from_string_handle(
        string_handle: Any,
        output_types: Any,
        output_shapes: Any = None,
        output_classes: Any = None,
    ) -> Iterator:
        """Returns an iterator that reads from the one whose handle is fed.

        Args:
            string_handle: a scalar string, often a placeholder; see `Iterator.string_handle`.
            output_types, output_shapes, output_classes: see `from_structure`.
        """
        spec = _structure(output_types, output_shapes, output_classes)
        return Iterator(spec, None, convert_to_tensor(string_handle, string))

    @property
    def initializer(self) -> Operation:
        """The operation that moves the iterator to the first element.

        Raises:
            ValueError: the iterator is one-shot, or `make_initializer` was not called.
        """
        if self._initializer is None:
            if self._needs_none or self._handle is not None:
                raise ValueError("Iterator does not have an initializer.")
            raise value_error(
                "Iterator does not have an initializer.",
                hint="session.run(iterator.make_initializer(dataset))",
            )
        return self._initializer

    def make_initializer(self, dataset: Dataset, name: str | None = None) -> Operation:
        """Returns an operation that moves the iterator to the first element of `dataset`.

        Raises:
            TypeError: the elements of `dataset` have other dtypes or shapes.
            ValueError: they have another structure; or the iterator is one-shot or made from a
                handle.
        """
        if self._op is None or self._needs_none:
            raise ValueError("Iterator does not have an initializer.")
        if not compatible(self._spec, dataset.element_spec):
            forms = [
                pack(each, [0] * len(flatten(each))) for each in (self._spec, dataset.element_spec)
            ]
            raise (TypeError if forms[0] == forms[1] else ValueError)(
                explain(
                    "make_initializer(): Expected output types, classes and structure of the "
                    "iterator, but got dataset with others",
                    expected=self._spec,
                    received=dataset.element_spec,
                )
            )
        pairs = zip(flatten(self._spec), flatten(dataset.element_spec), strict=True)
        for mine, other in pairs:
            if not mine.shape.is_compatible_with(other.shape):
                raise type_error(
                    "make_initializer(): Expected output shapes compatible with the "
                    "iterator's, but got dataset with others",
                    expected=self._spec,
                    received=dataset.element_spec,
                )
        with get_default_graph().control_dependencies(None):
            attrs = {"iterator": self._op.name, "dataset": dataset}
            made = apply("MakeIterator", dataset._plan.tensors(), attrs, name or "MakeIterator")
        return made

    def start(self, state: Any, dataset: Dataset, epoch: int = 0) -> None:
        """Moves the iterator to the first element of `dataset` without running an operation.

        For running one graph on several datasets in turn. Not in TensorFlow.

        Args:
            state: the session's state.
            dataset: a dataset of the iterator's structure that depends on no tensor.
            epoch: the number of the pass; see `Cursor`.
        """
        put_cursor(state, self.resource_name, Cursor(dataset, state.graph.seed, state, epoch))

    @property
    def resource_name(self) -> str:
        """The name of its cursor among a session's resources.

        Raises:
            ValueError: the iterator was made from a handle.
        """
        if self._op is None:
            raise ValueError("the iterator was made from a handle")
        return self._op.name

    @property
    def dataset(self) -> Dataset:
        """The dataset of a one-shot iterator. Not in TensorFlow.

        Raises:
            ValueError: the iterator is not one-shot.
        """
        found = None if self._op is None else self._op.attrs["_dataset"]
        if found is None:
            raise ValueError("only one-shot iterators have a dataset")
        dataset: Dataset = found
        return dataset

    @property
    def element_spec(self) -> Any:
        """The nested spec of an element."""
        return self._spec

    def _map_spec(self, function: Any) -> Any:
        return map_leaves(function, self._spec)

    @property
    def output_types(self) -> Any:
        """The nested dtypes of an element."""
        return self._map_spec(lambda spec: spec.dtype)

    @property
    def output_shapes(self) -> Any:
        """The nested static shapes of an element."""
        return self._map_spec(lambda spec: spec.shape)

    @property
    def output_classes(self) -> Any:
        """The nested classes of an element's leaves."""
        return self._map_spec(value_class)

    def string_handle(self, name: str | None = None) -> Tensor:
        """A scalar string tensor that names this iterator within the session."""
        if self._handle is not None or self._op is None:
            return self._handle  # type: ignore[return-value]
        return output("IteratorToStringHandle", (), {"iterator": self._op.name}, name)

    def get_next(self, name: str | None = None) -> Any:
        """Tensors of the next element, in its structure.

        Each run that needs any of them advances the iterator by one element; at the end it raises
        `OutOfRangeError`.
        """
        inputs, attrs = self.source()
        op_type = "IteratorGetNextOf" if inputs else "IteratorGetNext"
        op = apply(op_type, inputs, attrs, name or "IteratorGetNext")
        return of_tensors(self._spec, op.outputs)

    def source(self) -> tuple[list[Tensor], dict[str, Any]]:
        """Inputs and attributes of an operation that takes its next element."""
        attrs: dict[str, Any] = {"specs": specs_of(self._spec)}
        if self._op is not None:
            attrs["iterator"] = self._op.name
        return [] if self._handle is None else [self._handle], attrs

    __next__ = get_next


def named_iterator(element_spec: Any, name: str = "Iterator") -> Iterator:
    """Returns an iterator of name `name` for datasets given to `Iterator.start`."""
    return Iterator(element_spec, _handle_op(element_spec, name, None))


def _structure(output_types: Any, output_shapes: Any, output_classes: Any) -> Any:
    classes = None
    if output_classes is not None:
        kinds = flatten_as(output_types, output_classes)
        classes = [TensorSpec if issubclass(kind, Tensor) else SparseTensorSpec for kind in kinds]
    return of_types(output_types, output_shapes, classes)


def _shared_op(spec: Any, shared_name: str | None) -> Operation:
    """The operation of an iterator; equal names and specs share one."""
    for op in get_default_graph().get_operations() if shared_name else ():
        same = ITERATOR.made(op) and op.attrs.get("_shared_name") == shared_name
        if same and op.attrs["_spec"] == spec:
            return op
    made = _handle_op(spec, shared_name or "Iterator", None)
    if shared_name:
        made.attrs["_shared_name"] = shared_name
    return made


def _handle_op(spec: Any, name: str, dataset: Dataset | None) -> Operation:
    # The dataset is attached to the operation in memory; it is not part of the serialized graph.
    return apply("Iterator", (), {"_spec": spec, "_dataset": dataset}, name)


def make_one_shot_iterator(dataset: Dataset) -> Iterator:
    """Returns an iterator that needs no initialization and traverses `dataset` once per session.

    Raises:
        ValueError: the dataset depends on a placeholder.
    """
    for tensor in dataset._plan.tensors():
        if role_of(tensor.op) is Role.PLACEHOLDER:
            raise value_error(
                "Cannot capture a placeholder (name:" + tensor.op.name + ") by value.",
                received=tensor,
                made_at=tensor.op.source,
                hint="use make_initializable_iterator(), and feed its initializer",
            )
    made = Iterator(
        dataset.element_spec, _handle_op(dataset.element_spec, "OneShotIterator", dataset)
    )
    made._needs_none = True
    return made


def make_initializable_iterator(dataset: Dataset, shared_name: str | None = None) -> Iterator:
    """Returns an iterator that (re)starts whenever `iterator.initializer` is run.

    Args:
        dataset: the dataset.
        shared_name: iterators of one graph with the same name are one.
    """
    spec = dataset.element_spec
    made = Iterator(spec, _shared_op(spec, shared_name))
    made._initializer = made.make_initializer(dataset)
    return made


def iterator_states(state: Any) -> dict[str, Any]:
    """The positions of all iterators of a session, for a checkpoint."""
    return {
        name: held.get_state()
        for name, held in list(state.resources.items())
        if isinstance(held, Cursor)
    }


def restore_iterators(state: Any, saved: Mapping[str, Any]) -> dict[str, bool]:
    """Moves a session's iterators to saved positions; uninitialized ones when they are `resuming`.

    Returns:
        Whether it moved (see `Cursor.set_state`), for each iterator of the graph with a saved
        position.
    """
    graph: Graph = state.graph
    moved = {}
    for op in graph.get_operations():
        if not ITERATOR.made(op) or op.name not in saved:
            continue
        if op.name in state.resources or op.attrs["_dataset"] is not None:
            moved[op.name] = cursor_of(state, op.name).set_state(saved[op.name])
        else:
            state.resources["iterator position", op.name] = _Position(saved[op.name])
            moved[op.name] = True
    return moved


def get_output_types(dataset_or_iterator: Any) -> Any:
    """Returns the dtypes of an element, in its nested structure."""
    return dataset_or_iterator.output_types


def get_output_shapes(dataset_or_iterator: Any) -> Any:
    """Returns the static shapes of an element, in its nested structure."""
    return dataset_or_iterator.output_shapes


def get_output_classes(dataset_or_iterator: Any) -> Any:
    """Returns the classes of an element's leaves, in its nested structure."""
    return dataset_or_iterator.output_classes
