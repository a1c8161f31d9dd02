"""`verify`: checks that a graph is well formed. The tests call it before each plan."""

from __future__ import annotations

from collections.abc import Iterator

from estimatorkit.core import registry
from estimatorkit.core.errors import explain
from estimatorkit.core.graph import Graph
from estimatorkit.core.registry import inference
from estimatorkit.core.tensor import Operation, Tensor


def verify(graph: Graph, start: int = 0) -> None:
    """Checks that a graph is well formed.

    Every operation has a registered type, a unique name, inputs and control inputs of the same
    graph that were created before it (so there are no cycles), and outputs whose number, dtypes and
    shapes agree with what the type infers from the inputs.

    Args:
        graph: the graph.
        start: the index of the first operation to check.

    Raises:
        ValueError: it is not; the message lists the problems.
    """
    ops = graph.get_operations()
    problems = [
        f"{op.name} ({op.type}): {problem}\n    made at: {op.source}"
        for position, op in enumerate(ops[start:], start)
        for problem in _problems(graph, ops, position, op)
    ]
    if problems:
        raise ValueError(
            explain(f"the graph is malformed; problems found: {len(problems)}")
            + "".join(f"\n  {each}" for each in problems)
        )


def verify_new(graph: Graph) -> None:
    """`verify` for the operations that were made since its last call."""
    verified = graph.extension(_Verified)
    verify(graph, verified.count)
    verified.count = len(graph.get_operations())


class _Verified:
    """How many operations of a graph have been verified."""

    count = 0


def _problems(graph: Graph, ops: list[Operation], position: int, op: Operation) -> Iterator[str]:
    if graph.find_operation(op.name) is not op:
        yield "another operation has the same name"
    for tensor in op.inputs:
        made = tensor.op.outputs
        if tensor.value_index >= len(made) or made[tensor.value_index] is not tensor:
            yield f"input {tensor.name} is not an output of its operation"
    for other in (*(tensor.op for tensor in op.inputs), *op.control_inputs):
        if other.index >= position or ops[other.index] is not other:
            yield f"it needs {other.name}, which is not an earlier operation of the graph"
    try:
        row = registry.lookup(op.type)
    except KeyError:
        yield "the type is not registered"
        return
    yield from _wrong_outputs(row, op.inputs, op)


def _wrong_outputs(row: registry.OpDef, inputs: tuple[Tensor, ...], op: Operation) -> Iterator[str]:
    inferred = inference.infer(row, inputs, op.attrs)
    if len(inferred) != len(op.outputs):
        yield f"it has {len(op.outputs)} outputs, and its type infers {len(inferred)}"
        return
    for tensor, (dtype, shape) in zip(op.outputs, inferred, strict=True):
        if tensor.dtype is not dtype or not tensor.shape.is_compatible_with(shape):
            yield (
                f"output {tensor.name} is {tensor.dtype.name} {tensor.shape}, its type infers "
                f"{dtype.name} {shape}"
            )
