"""The operations by which a graph saves and restores itself, as a `SaverDef` names them.

`add_save_operations` adds them for a `Saver`'s items; the constants beside them hold the mapping
from tensors in the checkpoint to variables and tables. `restored_items` reads that mapping back, so
a `Saver` of an imported graph, this package's or TensorFlow's, knows what the first one knew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from estimatorkit.core.builtin_ops import group, identity
from estimatorkit.core.conversion import constant
from estimatorkit.core.dtypes import string
from estimatorkit.core.errors import value_error
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.registry import apply, constant_value
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.core.variable_options import SaveSliceInfo
from estimatorkit.core.variables import Variable
from estimatorkit.logger import logger
from estimatorkit.ops.array.array import placeholder_with_default, reshape
from estimatorkit.ops.files.checkpoint_ops import parse_spec, restore_v2, save_v2
from estimatorkit.ops.tables.mutable_tables import TableContent, content_restored_by
from estimatorkit.ops.variables.partitioned_variables import PartitionedVariable, whole_of
from estimatorkit.train.saving.checkpoint_compatibility import Item

OPERATIONS = ("filename_tensor_name", "save_tensor_name", "restore_op_name")
"""The fields of a `SaverDef` that name operations."""

_RESTORES = ("RestoreV2", "Restore")
_FORWARDS = ("Identity", "Reshape")  # between reading and assigning


class _Saved(NamedTuple):
    """What one operation restores.

    Attributes:
        keys: the names of its tensors in the checkpoint.
        spec: the slice of the tensor that it is; '' for whole ones.
        values: the tensors to save.
        restore: adds the operation, given the restored tensors.
    """

    keys: Sequence[str]
    spec: str
    values: Sequence[Tensor]
    restore: Callable[..., Operation]


def add_save_operations(
    items: Mapping[str, Item], name: str | None, filename: str | None, reshaped: bool
) -> dict[str, str]:
    """Adds operations that save and restore items to the default graph.

    Args:
        items: what is saved, by checkpoint name.
        name: the name scope; 'save' by default.
        filename: the path of the checkpoint where none is fed; 'model' by default.
        reshaped: whether restored tensors get the shapes of the variables.

    Returns:
        The names of filename tensor, save tensor and restore operation, by field of `SaverDef`.
    """
    graph = get_default_graph()
    saved = [each for key, item in items.items() for each in _saved(key, item, reshaped)]
    keys = [key for each in saved for key in each.keys]
    specs = [each.spec for each in saved for _ in each.keys]
    values = [value for each in saved for value in each.values]
    with graph.control_dependencies(None), graph.name_scope(name or "save"):
        with graph.name_scope("filename") as scope:
            default = constant(filename or "model", string, name="input")
            given = placeholder_with_default(default, (), scope)
        path = placeholder_with_default(given, (), "Const")
        texts = {"tensor_names": keys, "shape_and_slices": specs}
        with graph.name_scope("SaveV2") as scope:
            names, slices = (_texts(value, name) for name, value in texts.items())
            write = save_v2(path, names, slices, values, scope)
        with graph.control_dependencies([write]):
            done = identity(path, "control_dependency")
        with graph.name_scope("RestoreV2") as scope:
            names, slices = (_texts(value, name) for name, value in texts.items())
            read = iter(restore_v2(path, names, slices, [each.dtype for each in values], scope))
        restored = [each.restore(*(next(read) for _ in each.keys)) for each in saved]
        restore = group(*restored, name="restore_all")
    return dict(zip(OPERATIONS, (path.name, done.name, restore.name), strict=True))


def _texts(values: Sequence[str], name: str) -> Tensor:
    return constant(np.array([each.encode() for each in values], object), string, name=name)


def _saved(key: str, item: Item, reshaped: bool) -> Iterator[_Saved]:
    """What of an item is saved; other state than variables and tables has no operations."""
    if isinstance(item, Variable):
        yield _saved_variable(key, "", item, reshaped)
    elif isinstance(item, PartitionedVariable):
        for part in item:
            info = part.save_slice_info
            yield _saved_variable(key, "" if info is None else info.spec, part, reshaped)
    elif isinstance(item, TableContent):
        keys = [key + suffix for suffix in item.saved_suffixes]
        yield _Saved(keys, "", item.saved_tensors(), item.restore_operation)


def _saved_variable(key: str, spec: str, variable: Variable, reshaped: bool) -> _Saved:
    def restore(value: Tensor) -> Operation:
        if reshaped and variable.shape.is_fully_defined():
            value = reshape(value, variable.shape.as_list())
        with get_default_graph().device(variable.device):
            return apply("AssignVariableOp", [variable.handle, value], None, "Assign")

    return _Saved([key], spec, [variable._snapshot], restore)


# -- and back


def restored_items(graph: Graph, restore_op: str) -> dict[str, Item]:
    """What a restore operation, given by name, restores, by checkpoint name.

    Raises:
        KeyError: the graph lacks the operation.
        ValueError: it restores slices of a tensor that do not cover it.
    """
    known = {
        item.op: item
        for key in graph.get_all_collection_keys()
        for item in graph.get_collection(key)
        if isinstance(item, Variable)
    }
    items: dict[str, Item] = {}
    parts: dict[str, list[Variable]] = {}
    for op in _operations_before(graph.get_operation_by_name(restore_op)):
        sources = [source for source in map(_source, op.inputs) if source is not None]
        if not sources:
            continue
        key, spec = sources[0]
        content = content_restored_by(op, key)
        if content is not None:
            items[content.name] = content
        elif op.type == "AssignVariableOp":
            handle = op.inputs[0].op
            if handle not in known:
                known[handle] = _variable_of(op)
            variable = known[handle]
            if not spec:
                items[key] = variable
                continue
            if variable.save_slice_info is None:
                variable._set_save_slice_info(_slice_info(key, spec))
            parts.setdefault(key, []).append(variable)
            items.setdefault(key, variable)  # reserves its position
        else:
            logger.warning("%s (%s) of an imported Saver restores nothing here.", op.name, op.type)
    for key, found in parts.items():
        whole = whole_of(key, found)
        if whole is None:
            raise value_error(
                f"the slices of {key!r} that the Saver restores do not cover it",
                expected=found[0].save_slice_info,
                received=", ".join(part.name for part in found),
            )
        items[key] = whole
    return items


def _operations_before(last: Operation) -> list[Operation]:
    """The operations that run before another because of control inputs, in the graph's order."""
    found: dict[Operation, None] = {}
    pending = [last]
    while pending:
        op = pending.pop()
        if op not in found:
            found[op] = None
            pending.extend(op.control_inputs)
    return sorted(found, key=lambda op: op.index)


def _source(tensor: Tensor) -> tuple[str, str] | None:
    """Name and slice of the restored value that a tensor holds; None if it is not restored."""
    while tensor.op.type in _FORWARDS:
        tensor = tensor.op.inputs[0]
    if tensor.op.type not in _RESTORES:
        return None
    at = tensor.value_index
    texts = [_text(each, at) for each in tensor.op.inputs[1:]]
    return texts[0], texts[1] if len(texts) > 1 else ""


def _text(tensor: Tensor, position: int) -> str:
    found = constant_value(tensor)
    if found is None:
        raise value_error("the names of a Saver's tensors must be constants", received=tensor)
    return str(np.asarray(found, object).reshape(-1)[position].decode())


def _slice_info(key: str, spec: str) -> SaveSliceInfo:
    shape, at = parse_spec(key, spec)
    offsets = tuple(each.start for each in at)
    return SaveSliceInfo(key, shape, offsets, tuple(each.stop - each.start for each in at))


def _variable_of(assign: Operation) -> Variable:
    """The variable of no collection that an operation assigns."""
    from tensorboard.compat.proto.variable_pb2 import VariableDef

    handle, value = assign.inputs
    reads = [op for op in handle.consumers() if op.type == "ReadVariableOp"]
    if not reads:
        raise value_error(f"nothing reads the variable {handle.op.name}", made_at=assign.source)
    made = VariableDef(
        variable_name=handle.name,
        initializer_name=assign.name,
        snapshot_name=reads[0].outputs[0].name,
        initial_value_name=value.name,
        is_resource=True,
        trainable=False,
    )
    with assign.graph.as_default():
        return Variable.from_proto(made)


__all__ = ["OPERATIONS", "add_save_operations", "restored_items"]
