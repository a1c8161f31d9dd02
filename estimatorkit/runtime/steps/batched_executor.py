"""`BatchedExecutor` and `BlockRunner`: element functions of datasets, run on blocks of elements.

`trace` traces a Python function to a `GraphFunction`, which a `BlockRunner` runs on whole columns.
Device segments are vectorized by `jax.vmap`: one XLA call per block. On the host, each operation
runs on all rows at once if the registry says how, and otherwise row by row. Random operations draw
by (seed, epoch, element number), so their results do not depend on the block size.
"""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from estimatorkit.core import registry
from estimatorkit.core.builtin_ops import placeholder
from estimatorkit.core.dtypes import resource
from estimatorkit.core.errors import InvalidArgumentError, value_error
from estimatorkit.core.function_graph import FunctionGraph, GraphFunction, after_actions, as_output
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.nest import expand
from estimatorkit.core.registry import Role, Spec, role_of
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.core.x64 import x64
from estimatorkit.runtime.lower import attribute, interpret, segment_function
from estimatorkit.runtime.plan import Plan, Segment, make_plan
from estimatorkit.runtime.state import ProcessState
from estimatorkit.runtime.steps.columns import (
    Column,
    RaggedColumn,
    as_plain,
    join,
    stack,
    take_rows,
)
from estimatorkit.runtime.xla.at_exit import check_not_forked
from estimatorkit.runtime.xla.faults import Sites
from estimatorkit.runtime.xla.placement import on_host
from estimatorkit.runtime.xla.random_bits import state_in_body

FEW_CALLS = 32
FEW_ELEMENTS = 1 << 20
"""Calls of a smaller size are padded to the usual number of rows up to these limits: so many calls,
and so many elements of the padded inputs. Beyond them, the size gets an executable of its own,
which takes half a second to compile."""


def trace(
    function: Callable[[Sequence[Tensor]], Any],
    arguments: Sequence[Spec],
    convert: Callable[[Any], Any],
) -> GraphFunction:
    """Traces a Python function to a new graph inside the default graph.

    Operations with side effects run for each element, also if the outputs do not depend on them.

    Args:
        function: takes the inputs; may use tensors of enclosing graphs.
        arguments: the dtype and shape of each input.
        convert: converts the function's result to tensors and composites, inside the graph; None
            to convert nothing.

    Raises:
        ValueError: the function assigns a variable.
    """
    graph = FunctionGraph(get_default_graph())
    graph.runs_actions = True
    with graph.as_default():
        inputs = [
            placeholder(spec.dtype, spec.shape, f"arg{i}") for i, spec in enumerate(arguments)
        ]
        returned = convert(function(inputs))
        leaves = [leaf for leaf in expand(returned)[0] if leaf is not None]
        outputs = after_actions(graph, [as_output(graph, leaf) for leaf in leaves])
    traced = GraphFunction(graph, inputs, outputs, returned)
    if traced.updated:
        changed = traced.inputs[traced.updated[0]].op.name
        raise value_error(
            "a dataset function assigns to a variable",
            expected="a function that only reads variables",
            received=f"an assignment to {changed!r}",
            hint="assign after iterator.get_next()",
        )
    return traced


class BatchedExecutor:
    """Runs a plan on blocks, in which the values of some feeds are columns.

    Args:
        plan: the plan.
        by_row: the feeds whose values are columns.
        shared: the values of the other feeds.
        state: holds variables, tables and compilations.
        key: hexadecimal digits that seed random operations without a seed.
        usual: the number of rows of most calls, to which smaller ones are padded at first.
    """

    def __init__(
        self,
        plan: Plan,
        by_row: Sequence[Tensor],
        shared: Mapping[Tensor, Any],
        state: ProcessState,
        key: str,
        usual: int = 1,
    ) -> None:
        self._by_row = tuple(by_row)
        self._results = plan.results
        self._shared = {**shared, **plan.constants}
        self._steps = [
            _DeviceStep(segment, state, key, usual)
            if segment.place == "device"
            else _HostStep(segment, state)
            for segment in plan.segments
        ]
        self.is_by_row = _is_by_row(plan, by_row)
        """Whether rows along the first axis of a feed, a batch, get results of their own."""

    def __call__(
        self, columns: Sequence[Column], count: int, first: int = 0, epoch: int = 0
    ) -> list[Any]:
        """Runs the plan for `count` rows.

        Args:
            columns: the columns of `by_row`.
            count: the number of rows.
            first: the index of the first row within the epoch.
            epoch: the epoch.

        Returns:
            A column for each fetch.
        """
        check_not_forked()
        rows = _Rows(count, first, epoch)
        values: dict[Tensor, Any] = dict(self._shared)
        spread: set[Tensor] = set(self._by_row)
        values.update(zip(self._by_row, columns, strict=True))
        for step in self._steps:
            step(values, spread, rows)
        return [
            values[tensor] if tensor in spread else _repeated(values[tensor], tensor, count)
            for tensor in self._results
        ]


def _is_by_row(plan: Plan, feeds: Sequence[Tensor]) -> bool:
    """Whether a plan consists of host operations that map rows independently."""
    spread = set(feeds)
    for segment in plan.segments:
        if segment.place == "device" or segment.reads:
            return False
        for op in segment.ops:
            row = registry.lookup(op.type)
            alone = row.batching.elementwise and len(op.inputs) == 1
            if not (row.semantics.pure and (alone or row.batching.is_rowwise(op.attrs))):
                return False
            if not all(segment.rewriting.resolve(tensor) in spread for tensor in op.inputs):
                return False
            spread.update(op.outputs)
    return spread.issuperset(plan.results)


class BlockRunner:
    """Runs a traced function on blocks.

    Args:
        function: the function.
        captured: the values of `function.captured`.
        state: the session's state, whose tables it shares; None without a session.
        key: hexadecimal digits that seed random operations without a seed.
    """

    def __init__(
        self, function: GraphFunction, captured: Sequence[Any], state: ProcessState | None, key: str
    ) -> None:
        graph = function.graph
        own = ProcessState(graph) if state is None else state.for_function(graph)
        shared: dict[Tensor, Any] = {}
        taken = function.inputs[len(function.arguments) :]
        for tensor, value in zip(taken, captured, strict=True):
            if tensor.dtype is resource:
                own.values[tensor.op.name] = np.array(value)
            else:
                shared[tensor] = np.asarray(value, tensor.dtype.numpy_dtype)
        feeds = [tensor for tensor in function.inputs if tensor.dtype is not resource]
        outputs = list(dict.fromkeys(function.outputs))
        self._order = [outputs.index(tensor) for tensor in function.outputs]
        plan = make_plan(graph, outputs, [], feeds)
        self._plan = BatchedExecutor(plan, function.arguments, shared, own, key)

    def __call__(
        self, columns: Sequence[Column], count: int, first: int = 0, epoch: int = 0
    ) -> list[Any]:
        """Applies the function to `count` elements; see `BatchedExecutor`."""
        results = self._plan(columns, count, first, epoch)
        return [results[place] for place in self._order]


class _Rows:
    """The range of elements of a call."""

    def __init__(self, count: int, first: int, epoch: int) -> None:
        self.count = count
        self.first = first
        self.epoch = epoch


def _repeated(value: Any, tensor: Tensor, count: int) -> NDArray[Any]:
    array = np.asarray(value, tensor.dtype.numpy_dtype)
    return np.ascontiguousarray(np.broadcast_to(array, (count, *array.shape)))


def _round_up(count: int) -> int:
    """Rounds up to one of few sizes, to bound the number of compilations.

    Up to 64 these are powers of two, since extra rows cost less than another size. Larger counts
    grow by at most an eighth.
    """
    bits = (count - 1).bit_length()
    unit = 1 << (bits if bits <= 6 else bits - 3)
    return -(-count // unit) * unit


class _DeviceStep:
    """A device segment on a block: one XLA call for all rows of equal shapes."""

    def __init__(self, segment: Segment, state: ProcessState, key: str, usual: int) -> None:
        self._segment = segment
        self._state = state
        self._usual = usual
        self._fewer: Counter[int] = Counter()
        self._traced = [each for each in segment.inputs if each not in segment.static_inputs]
        ops = {op.name: op for op in segment.ops}
        self._words = np.array([_words(ops[name], key) for name in segment.random], np.uint32)
        self._compiled: dict[Any, Callable[..., Any]] = {}
        self._ready: set[Any] = set()
        self._sites = Sites()
        self._compiling = threading.Lock()
        self._wide = segment.wide
        self._moves_only = not segment.random and all(map(_is_exact, segment.ops))

    def __call__(self, values: dict[Tensor, Any], spread: set[Tensor], rows: _Rows) -> None:
        segment = self._segment
        for tensor in segment.inputs:
            if role_of(tensor.op) is Role.CONSTANT:
                values.setdefault(tensor, tensor.op.attrs["value"])
        varying = [tensor for tensor in segment.inputs if tensor in spread]
        if not varying and not len(self._words):
            once = self._run(values, set(), np.zeros(1, np.int64), rows)
            values.update(
                (tensor, out[0]) for tensor, out in zip(segment.outputs, once, strict=True)
            )
            return
        ragged = any(isinstance(values[tensor], RaggedColumn) for tensor in varying)
        if ragged and self._moves_only:
            outputs: Sequence[Any] = self._by_numpy(values, varying, rows)
        else:
            groups = self._groups(values, varying, rows.count)
            parts = [
                self._run(_taken(values, varying, group), spread, group, rows) for group in groups
            ]
            outputs = parts[0] if len(parts) == 1 else _put_together(parts, groups)
        values.update(zip(segment.outputs, outputs, strict=True))
        spread.update(segment.outputs)

    def _groups(
        self, values: Mapping[Tensor, Any], varying: Sequence[Tensor], count: int
    ) -> list[NDArray[np.int64]]:
        """Groups rows that can run in one call: of equal shapes and static values."""
        keys: list[Any] = []
        for tensor in varying:
            column = values[tensor]
            if isinstance(column, RaggedColumn):
                keys.append(list(map(bytes, np.ascontiguousarray(column.shapes))))
            elif tensor in self._segment.static_inputs:
                keys.append([row.tobytes() for row in column])
        if not keys:
            return [np.arange(count)]
        groups: dict[Any, list[int]] = {}
        for row, key in enumerate(zip(*keys, strict=True)):
            groups.setdefault(key, []).append(row)
        return [np.array(group) for group in groups.values()]

    def _run(
        self,
        values: Mapping[Tensor, Any],
        spread: set[Tensor],
        group: NDArray[np.int64],
        rows: _Rows,
    ) -> list[NDArray[Any]]:
        """The outputs for a group of rows."""
        segment = self._segment
        count = len(group)
        columns = [as_plain(values[tensor]) for tensor in self._traced if tensor in spread]
        size = self._size(count, columns)
        static = {
            tensor: np.asarray(values[tensor][0] if tensor in spread else values[tensor])
            for tensor in segment.static_inputs
        }
        by_row = [_lengthened(column, size) for column in columns]
        shared = [np.asarray(values[tensor]) for tensor in self._traced if tensor not in spread]
        key = (
            tuple(tensor in spread for tensor in self._traced),
            tuple((value.tobytes(), value.shape) for value in static.values()),
        )
        if key not in self._compiled:
            self._compiled[key] = self._compile(static, spread)
        epoch = np.array([rows.epoch & 0xFFFFFFFF, rows.epoch >> 32 & 0xFFFFFFFF], np.uint32)
        numbers = _lengthened((rows.first + group).astype(np.uint32), size)
        signature = (key, *((each.shape, each.dtype) for each in (*by_row, *shared)))
        # Threads that arrive with the same shapes wait for one compilation.
        lock = nullcontext() if signature in self._ready else self._compiling
        with lock, on_host(), x64() if self._wide else nullcontext():
            variables = self._state.take(segment.reads)
            words = self._words ^ epoch if len(self._words) else self._words
            outputs, faults = self._compiled[key](by_row, numbers, shared, variables, words)
            self._ready.add(signature)
            if faults:
                self._raise_first(np.asarray(faults[0])[:count])
            return [np.asarray(output)[:count] for output in outputs]

    def _size(self, count: int, columns: Sequence[Any]) -> int:
        """The number of rows to pad a call to."""
        size = _round_up(count)
        elements = sum(column.size for column in columns) // count * self._usual
        if size >= self._usual or elements > FEW_ELEMENTS or self._fewer[size] >= FEW_CALLS:
            return size
        self._fewer[size] += 1
        return self._usual

    def _raise_first(self, vectors: NDArray[np.int32]) -> None:
        """Raises the error of the first row that has one (see `faults`)."""
        failed = vectors[:, 0] != 0
        error = self._sites.error(vectors[failed.argmax()])
        if error is not None:
            raise error

    def _compile(self, static: dict[Tensor, Any], spread: set[Tensor]) -> Callable[..., Any]:
        function = segment_function(self._segment, static, sites=self._sites)
        is_row = [tensor in spread for tensor in self._traced]

        def of_one(by_row: Any, number: Any, shared: Any, variables: Any, words: Any) -> Any:
            one, all_ = iter(by_row), iter(shared)
            inputs = [next(one) if row else next(all_) for row in is_row]
            counters = [state_in_body(pair, number) for pair in words]
            outputs, _, faults = function(inputs, [*variables, *counters])
            return outputs, faults

        def of_all(by_row: Any, numbers: Any, shared: Any, variables: Any, words: Any) -> Any:
            self._state.compilations["dataset function"] += 1
            axes = (0, 0, None, None, None)
            pairs = [words[index] for index in range(len(self._words))]
            return jax.vmap(of_one, axes)(by_row, numbers, shared, variables, pairs)

        return jax.jit(of_all)

    def _by_numpy(
        self, values: Mapping[Tensor, Any], varying: Sequence[Tensor], rows: _Rows
    ) -> list[Column]:
        """The outputs computed in NumPy, which avoids a compilation per shape."""
        segment = self._segment
        fixed = {each: values[each] for each in segment.inputs if each not in varying}

        variables = dict(zip(segment.reads, self._state.take(segment.reads), strict=True))

        def run(local: dict[Tensor, Any]) -> None:
            interpret(
                segment.ops,
                local,
                variables,
                host=True,
                context=self._state,
                rewriting=segment.rewriting,
            )

        columns = {each: values[each] for each in varying}
        return _row_by_row(run, fixed, columns, rows, segment.outputs)


def _row_by_row(
    run: Callable[[dict[Tensor, Any]], None],
    fixed: Mapping[Tensor, Any],
    columns: Mapping[Tensor, Any],
    rows: _Rows,
    outputs: Sequence[Tensor],
) -> list[Column]:
    """Calls `run` for each row, and collects the outputs in columns."""
    made: list[list[Any]] = [[] for _ in outputs]
    for number in range(rows.count):
        local = {
            **fixed,
            **{
                tensor: np.asarray(column[number], tensor.dtype.numpy_dtype)
                for tensor, column in columns.items()
            },
        }
        run(local)
        for out, tensor in zip(made, outputs, strict=True):
            out.append(np.asarray(local[tensor], tensor.dtype.numpy_dtype))
    return [stack(out, tensor.dtype.numpy_dtype) for out, tensor in zip(made, outputs, strict=True)]


def _words(op: Operation, key: str) -> Any:
    seed = op.attrs["_seed"]
    if seed is None:
        digest = hashlib.blake2b(f"{key} {op.name}".encode(), digest_size=8).digest()
        seed = tuple(np.frombuffer(digest, np.uint32))
    return [int(word) & 0xFFFFFFFF for word in seed]


def _is_exact(op: Operation) -> bool:
    row = registry.lookup(op.type)
    moves = row.semantics.moves or not any(each.dtype.is_differentiable for each in op.outputs)
    return moves and row.numpy_kernel is not None


def _lengthened(column: Any, size: int) -> Any:
    if len(column) == size:
        return column
    return np.concatenate([column, np.repeat(column[-1:], size - len(column), 0)])


def _taken(
    values: Mapping[Tensor, Any], varying: Sequence[Tensor], group: NDArray[np.int64]
) -> Mapping[Tensor, Any]:
    if all(len(values[tensor]) == len(group) for tensor in varying):
        return values
    return {**values, **{tensor: take_rows(values[tensor], group) for tensor in varying}}


def _put_together(
    parts: Sequence[Sequence[Any]], groups: Sequence[NDArray[np.int64]]
) -> list[Column]:
    order = np.argsort(np.concatenate(groups), kind="stable")
    return [take_rows(join(each), order) for each in zip(*parts, strict=True)]


def _are_alike(columns: Sequence[Any]) -> bool:
    """Whether an elementwise operation can process all rows of these columns at once."""
    return all(
        isinstance(column, np.ndarray) and column.shape == columns[0].shape for column in columns
    )


class _HostStep:
    """A host segment on a block: operations in order, each on all rows."""

    def __init__(self, segment: Segment, state: ProcessState) -> None:
        self._segment = segment
        self._state = state

    def __call__(self, values: dict[Tensor, Any], spread: set[Tensor], rows: _Rows) -> None:
        names = self._segment.reads
        variables = dict(zip(names, self._state.take(names), strict=True))
        resolve = self._segment.rewriting.resolve
        for op in self._segment.ops:
            inputs = [resolve(tensor) for tensor in op.inputs]
            row = registry.lookup(op.type)
            varying = [tensor for tensor in inputs if tensor in spread]
            if not varying and row.semantics.pure:
                self._interpret(op, values, variables)
                continue
            outputs = self._at_once(op, row, inputs, varying, values, variables)
            if outputs is None:
                outputs = _row_by_row(
                    partial(self._interpret, op, variables=variables),
                    values,
                    {tensor: values[tensor] for tensor in varying},
                    rows,
                    op.outputs,
                )
            values.update(zip(op.outputs, outputs, strict=True))
            spread.update(op.outputs)

    def _interpret(
        self, op: Operation, values: dict[Tensor, Any], variables: dict[str, Any]
    ) -> None:
        interpret(
            [op],
            values,
            variables,
            host=True,
            context=self._state,
            rewriting=self._segment.rewriting,
        )

    def _at_once(
        self,
        op: Operation,
        row: registry.OpDef,
        inputs: Sequence[Tensor],
        varying: Sequence[Tensor],
        values: dict[Tensor, Any],
        variables: dict[str, Any],
    ) -> Sequence[Any] | None:
        """The outputs, if one call can process all rows, else None."""
        column = values.get(inputs[0]) if inputs else None
        given = [values[tensor] for tensor in varying]
        plain = all(isinstance(each, np.ndarray) for each in given)
        if plain and len(given) == len(inputs) and row.batching.is_rowwise(op.attrs):
            return self._outputs(op, values, variables)

        def value_of(tensor: Tensor) -> Any:
            known = values.get(tensor)
            return self._segment.rewriting.value(tensor) if known is None else known

        first_only = varying == inputs[:1]
        if (row.batching.elementwise and first_only) or (
            row.batching.broadcasts
            and all(each in varying or not np.ndim(value_of(each)) for each in inputs)
        ):
            if _are_alike(given):
                return self._outputs(op, values, variables)
            if first_only and isinstance(column, RaggedColumn):
                made = self._outputs(op, {**values, inputs[0]: column.flat}, variables)
                if all(each.ndim == 1 for each in made):
                    return [column.with_values(each) for each in made]
        if not first_only or row.batching.on_block is None:
            return None

        try:
            block = row.batching.on_block([column, *map(value_of, inputs[1:])], op.kernel_attrs)
        except InvalidArgumentError as error:
            attribute(op, error)
            raise
        return None if block is None else [as_plain(each) for each in block]

    def _outputs(
        self, op: Operation, values: dict[Tensor, Any], variables: dict[str, Any]
    ) -> list[NDArray[Any]]:
        self._interpret(op, values, variables)
        return [np.asarray(values[tensor], tensor.dtype.numpy_dtype) for tensor in op.outputs]
