"""`GradientTape` in graphs: `gradients` restricted to the recorded operations.

The tape keeps no log of operations: since they are ordered, it stores the intervals in which it
recorded and when each tensor was first watched. As in TensorFlow, gradients flow only through
operations recorded after something they depend on was watched.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import Any

import numpy as np

from estimatorkit.core import nest
from estimatorkit.core.conversion import convert_to_tensor
from estimatorkit.core.errors import explain, value_error
from estimatorkit.core.gradients import gradients
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.indexed_slices import IndexedSlices
from estimatorkit.core.registry import Role, role_of
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.ops.array.array import reshape, shape

_logger = logging.getLogger("estimatorkit")


class UnconnectedGradients(Enum):
    """The gradient returned for a source that the target does not depend on."""

    NONE = "none"
    ZERO = "zero"


class GradientTape:
    """Differentiates operations created inside a `with` block, as `tf.GradientTape`.

    Args:
        persistent: whether `gradient` and `jacobian` may be called more than once.
        watch_accessed_variables: watch trainable variables when they are used.
    """

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        self._persistent = persistent
        self._watch_accessed = watch_accessed_variables
        self._graph: Graph | None = None
        self._recording = False
        self._used = False
        self.reset()

    def reset(self) -> None:
        """Clears the recording and the watched tensors."""
        self._spans: list[tuple[int, int]] = []  # of operations; the open one has no end yet
        self._watched: dict[Tensor, int] = {}  # the first operation since it is watched
        if self._recording:
            self._start = self._current().version

    # -- recording

    def __enter__(self) -> GradientTape:
        self._begin()
        return self

    def __exit__(self, *_: object) -> None:
        if self._recording:
            self._end()

    def _current(self) -> Graph:
        if self._graph is None:
            self._graph = get_default_graph()
        return self._graph

    def _begin(self) -> None:
        if self._recording:
            raise ValueError(
                "Tape is already recording, This can happen if you have already entered the tape."
            )
        self._start = self._current().version
        self._recording = True

    def _end(self) -> None:
        self._spans.append((self._start, self._current().version))
        self._recording = False

    @contextmanager
    def stop_recording(self) -> Iterator[None]:
        """Context manager that suspends recording.

        Raises:
            ValueError: the tape is not recording.
        """
        if not self._recording:
            raise ValueError("Tape is not recording.")
        self._end()
        try:
            yield
        finally:
            self._begin()

    def watch(self, tensor: Any) -> None:
        """Watches a tensor, a variable or a structure of them from now on.

        Tensors without a derivative are skipped with a logged warning.

        Raises:
            ValueError: the tape is not recording.
        """
        if not self._recording:
            raise value_error(
                "GradientTape.watch outside of the recording",
                hint="call it inside `with GradientTape() as tape:`",
            )
        for each in nest.flatten(tensor):
            source = _handle(each)
            if not each.dtype.is_differentiable:
                _logger.warning(
                    "The dtype of the watched tensor must be floating (e.g. tf.float32), got %r",
                    each.dtype,
                )
            else:
                watched = each if source is None else source
                self._watched.setdefault(watched, self._current().version)

    def watched_variables(self) -> tuple[Variable, ...]:
        """The watched variables in order, including those used while recording."""
        tracked = self._tracked()[0]
        found = self._current().outermost.get_collection_ref(GraphKeys.GLOBAL_VARIABLES)
        listed = self._current().outermost.get_collection_ref(GraphKeys.TRAINABLE_VARIABLES)
        return tuple(each for each in dict.fromkeys([*listed, *found]) if each.handle in tracked)

    # -- what depends on what

    def _tracked(self) -> tuple[set[Tensor], set[Tensor]]:
        """The tensors that depend on something watched, and those that stop gradients."""
        graph = self._current()
        since = {_inside(graph, each): at for each, at in self._watched.items()}
        trainable: set[Tensor] = set()
        if self._watch_accessed:
            variables = graph.outermost.get_collection_ref(GraphKeys.TRAINABLE_VARIABLES)
            trainable = {_inside(graph, each.handle) for each in variables}
        stopped = {tensor for tensor in since if tensor.op.inputs}
        spans = [*self._spans, *([(self._start, graph.version)] if self._recording else [])]
        operations = graph.get_operations()
        for op in (operations[at] for start, end in spans for at in range(start, end)):
            inputs = [each if each in since else _read_from(each) for each in op.inputs]
            for source in inputs:
                if source in trainable:
                    since.setdefault(source, 0)
            if any(since.get(source, op.index + 1) <= op.index for source in inputs):
                since.update(dict.fromkeys(op.outputs, 0))
                stopped.difference_update(op.outputs)
                stopped.update(
                    tensor
                    for tensor, source in zip(op.inputs, inputs, strict=True)
                    if since.get(source, op.index + 1) > op.index
                )
        return set(since), stopped

    def _use(self) -> None:
        if self._used and not self._persistent:
            raise RuntimeError(
                explain(
                    "A non-persistent GradientTape can only be used to compute one set of "
                    "gradients (or jacobians)",
                    hint="GradientTape(persistent=True)",
                )
            )
        if self._recording and not self._persistent:
            self._end()
        self._used = True

    # -- derivatives

    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
    ) -> Any:
        """The derivatives of the sum of `target` with respect to `sources`.

        Args:
            target: a tensor or a structure of them.
            sources: a tensor, a variable, or a structure of these.
            output_gradients: the incoming gradient of each target; ones by default.
            unconnected_gradients: the result for sources that no target depends on.

        Returns:
            Tensors, `IndexedSlices` and None in the structure of `sources`.

        Raises:
            RuntimeError: the tape is used a second time and is not persistent.
            ValueError: `unconnected_gradients` is invalid.
        """
        self._use()
        unconnected = UnconnectedGradients(unconnected_gradients)
        targets = [convert_to_tensor(each) for each in nest.flatten(target)]
        given = None if output_gradients is None else nest.flatten(output_gradients)
        flat = nest.flatten(sources)
        found = self._flow(targets, flat, given, unconnected)
        return nest.pack_sequence_as(sources, found)

    def _flow(
        self,
        targets: Sequence[Tensor],
        sources: Sequence[Any],
        given: Sequence[Any] | None,
        unconnected: UnconnectedGradients = UnconnectedGradients.NONE,
        inner: Sequence[Tensor] | None = None,
    ) -> list[Any]:
        """`gradients` of `inner` (default: the targets), through tracked targets only."""
        tracked, stopped = self._tracked()
        graph = self._current()
        known = [_read_from(each) in tracked for each in targets]
        ys = [
            each
            for each, is_known in zip(inner or targets, known, strict=True)
            if is_known and each.dtype.is_differentiable
        ]
        grad_ys = given and [each for each, is_known in zip(given, known, strict=True) if is_known]
        xs = [
            (_source(each) if _inside(graph, _source(each)) in tracked else None)
            for each in sources
        ]
        connected = [x for x in xs if x is not None]
        found: list[Any] = [None] * len(connected)
        if ys and connected:
            found = gradients(ys, connected, grad_ys or None, stop_gradients=list(stopped))
        results = iter(found)
        flowed = [None if x is None else next(results) for x in xs]
        if unconnected is UnconnectedGradients.ZERO:
            from estimatorkit.ops.array.filling import zeros_like

            return [
                zeros_like(source) if each is None else each
                for source, each in zip(sources, flowed, strict=True)
            ]
        return flowed

    def jacobian(
        self,
        target: Any,
        sources: Any,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """The derivative of each element of `target` with respect to `sources`.

        Args:
            target: a tensor.
            sources: a tensor, a variable, or a structure of these.
            unconnected_gradients: see `gradient`.
            parallel_iterations, experimental_use_pfor: accepted for compatibility only.

        Returns:
            Tensors of shape `target.shape + source.shape`, in the structure of `sources`.

        Raises:
            RuntimeError: see `gradient`.
            ValueError: the target's static shape is not known.
        """
        self._use()
        unconnected = UnconnectedGradients(unconnected_gradients)
        tensor = convert_to_tensor(target)
        count = _known(tensor.shape.num_elements(), "jacobian", "the shape", tensor)
        flat = nest.flatten(sources)
        rows = np.eye(count, dtype=tensor.dtype.numpy_dtype)
        found = []
        for source in flat:
            slopes = self._rows(tensor, source, rows, unconnected)
            if slopes is not None:
                slopes = reshape(slopes, _joined(shape(tensor), shape(source)))
            found.append(slopes)
        return nest.pack_sequence_as(sources, found)

    def batch_jacobian(
        self,
        target: Any,
        source: Any,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """The Jacobian of each example of a batch.

        Args:
            target: `(batch, ...)`; each example depends only on the same example of `source`.
            source: `(batch, ...)`.
            unconnected_gradients: see `gradient`; zeros if nothing is connected.
            parallel_iterations, experimental_use_pfor: accepted for compatibility only.

        Returns:
            `(batch, *target.shape[1:], *source.shape[1:])`.

        Raises:
            RuntimeError: see `gradient`.
            ValueError: the target's static shape after the batch is not known.
        """
        from estimatorkit.ops.array.array import transpose

        self._use()
        tensor, given = convert_to_tensor(target), convert_to_tensor(source)
        if tensor.shape.rank is None or given.shape.rank is None:
            raise ValueError("batch_jacobian: the ranks of target and source must be known.")
        if not tensor.shape[:1].is_compatible_with(given.shape[:1]):
            raise value_error(
                "batch_jacobian: the batches of target and source differ",
                expected=tensor.shape,
                received=given.shape,
            )
        count = _known(tensor.shape[1:].num_elements(), "batch_jacobian", "the shape", tensor)
        rows = np.eye(count, dtype=tensor.dtype.numpy_dtype)
        flat = reshape(tensor, _joined(shape(tensor)[:1], [count]))
        slopes = self._rows(flat, source, rows, UnconnectedGradients.ZERO, tensor)
        order = [1, 0, *range(2, (given.shape.rank or 0) + 1)]
        dims = _joined(shape(tensor), shape(given)[1:])
        return reshape(transpose(slopes, order), dims)

    def _rows(
        self,
        tensor: Tensor,
        source: Any,
        rows: Any,
        unconnected: UnconnectedGradients,
        target: Tensor | None = None,
    ) -> Any:
        """Stacked gradients of `tensor` by `source`, one per incoming gradient in `rows`.

        `rows` is `(rows, ...)`, each broadcast to the shape of `tensor`, which is computed from
        `target`, the recorded one (default: `tensor` itself).
        """
        from estimatorkit.ops.array.filling import zeros_like
        from estimatorkit.ops.array.rearrange import broadcast_to
        from estimatorkit.ops.control.higher_order import map_fn

        targets, inner = [tensor if target is None else target], [tensor]
        probe = self._flow(targets, [source], None, unconnected, inner)[0]
        if probe is None:
            return None
        size = shape(tensor)
        ones = tensor.shape.rank == rows.ndim  # if batched, the row is every example's

        def slope(row: Tensor) -> Tensor:
            flows = broadcast_to(row, size) if ones else reshape(row, size)
            found = self._flow(targets, [source], [flows], unconnected, inner)[0]
            return zeros_like(source) if found is None else _dense(found)

        return map_fn(slope, rows)


def _dense(value: Any) -> Tensor:
    return convert_to_tensor(value) if isinstance(value, IndexedSlices) else value


def _known(count: int | None, method: str, what: str, tensor: Tensor) -> int:
    if count is None:
        raise value_error(
            f"{method}: {what} of the target must be known",
            received=tensor,
            made_at=tensor.op.source,
        )
    return count


def _joined(*parts: Any) -> Tensor:
    from estimatorkit.ops.array.joining import concat

    return concat([convert_to_tensor(part) for part in parts], 0)


def _handle(value: Any) -> Tensor | None:
    """A variable's handle; None for other values."""
    handle = getattr(value, "handle", None)
    return handle if isinstance(handle, Tensor) else None


def _source(value: Any) -> Tensor:
    handle = _handle(value)
    return convert_to_tensor(value) if handle is None else handle


def _inside(graph: Graph, tensor: Tensor) -> Tensor:
    """The argument that represents a captured tensor in a function's body."""
    captures: dict[Tensor, Tensor] = getattr(graph, "captures", {})
    return captures.get(tensor, tensor)


def _read_from(tensor: Tensor) -> Tensor:
    """The handle whose value a tensor is, wherever it was read; reads alone are not recorded."""
    op: Operation = tensor.op
    return op.inputs[0] if role_of(op) is Role.READ else tensor


__all__ = ["GradientTape", "UnconnectedGradients"]
