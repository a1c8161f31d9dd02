"""Object graphs: finds the variables of Python objects, and their checkpoint keys.

`object_checkpoint` walks attributes, lists and dicts, breadth first, and saves the graph as
TensorFlow's `TrackableObjectGraph`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from estimatorkit.core.errors import DataLossError
from estimatorkit.core.graph import Graph
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.ops.variables.partitioned_variables import PartitionedVariable
from estimatorkit.runtime.session import Session
from estimatorkit.storage.checkpoint import load_variable
from estimatorkit.storage.saveable import Saveable
from estimatorkit.train.optimizers.optimizer import Optimizer

OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
"""The key of the object graph."""
_VALUE = "VARIABLE_VALUE"
WHOLE = (Variable, PartitionedVariable)
"""Types that are one tensor of a checkpoint."""
_NEVER = (
    Tensor,
    Operation,
    Graph,
    Session,
    type,
    ModuleType,
    np.ndarray,
    np.generic,
    FunctionType,
    MethodType,
    BuiltinFunctionType,
)


def _is_leaf(value: Any) -> bool:
    return isinstance(value, WHOLE) or (isinstance(value, Saveable) and not _is_class(value))


def _is_class(value: Any) -> bool:
    return isinstance(value, type)


def is_followed(value: Any) -> bool:
    """Returns whether an object may contain variables."""
    if isinstance(value, (list, tuple, Mapping)) or _is_leaf(value):
        return True
    return hasattr(value, "__dict__") and not isinstance(value, _NEVER)


def _children(value: Any, graph: Graph) -> Iterator[tuple[str, Any]]:
    """Yields the children of an object, by name."""
    if _is_leaf(value):
        return
    pairs: Any
    held = getattr(value, "_held_objects", None)
    if held is not None:
        pairs = held.items()
    elif isinstance(value, Optimizer):
        pairs = ((name, each) for (name, own), each in value._non_slots.items() if own is graph)
    elif isinstance(value, Mapping):
        pairs = ((name, each) for name, each in value.items() if isinstance(name, str))
    elif isinstance(value, (list, tuple)):
        pairs = ((str(place), each) for place, each in enumerate(value))
    else:
        pairs = vars(value).items()
    for name, each in pairs:
        if is_followed(each):
            yield name, each


@dataclass
class Node:
    """An object of the graph.

    Attributes:
        path: the first path to it, escaped as in keys.
        children: node numbers by name.
        slots: (variable's node, name, slot) of an optimizer.
        key: the checkpoint key of a leaf.
    """

    value: Any
    path: str
    children: dict[str, int] = field(default_factory=dict)
    slots: list[tuple[int, str, int]] = field(default_factory=list)
    key: str = ""


def walk(root: Any, graph: Graph) -> list[Node]:
    """Returns the nodes reachable from `root`, breadth first, then the optimizers' slots."""
    nodes = [Node(root, "")]
    numbers = {id(root): 0}
    pending = deque([0])
    while pending:
        node = nodes[pending.popleft()]
        for name, child in _children(node.value, graph):
            if id(child) not in numbers:
                numbers[id(child)] = len(nodes)
                pending.append(len(nodes))
                path = "/".join(filter(None, [node.path, _escaped(name)]))
                nodes.append(Node(child, path))
            node.children[name] = numbers[id(child)]
    leaves = [(number, node) for number, node in enumerate(nodes) if _is_leaf(node.value)]
    for _, node in leaves:
        node.key = f"{node.path}/.ATTRIBUTES/{_VALUE}"
    for optimizer in [node for node in nodes if isinstance(node.value, Optimizer)]:
        for name in optimizer.value.get_slot_names():
            for number, node in leaves:
                slot = optimizer.value.get_slot(node.value, name)
                if slot is not None:
                    optimizer.slots.append((number, name, len(nodes)))
                    path = f"{node.path}/.OPTIMIZER_SLOT/{optimizer.path}/{_escaped(name)}"
                    nodes.append(Node(slot, path, key=f"{path}/.ATTRIBUTES/{_VALUE}"))
    return nodes


def _escaped(name: str) -> str:
    return name.replace(".", "..").replace("/", ".S")


def objects_proto(nodes: list[Node]) -> bytes:
    """Serializes the `TrackableObjectGraph`."""
    from tensorboard.compat.proto.trackable_object_graph_pb2 import TrackableObjectGraph

    made = TrackableObjectGraph()
    for node in nodes:
        entry = made.nodes.add()
        for name, number in node.children.items():
            entry.children.add(local_name=name, node_id=number)
        for variable, name, slot in node.slots:
            entry.slot_variables.add(
                original_variable_node_id=variable, slot_name=name, slot_variable_node_id=slot
            )
        if node.key:
            full_name = name_of(node.value)
            entry.attributes.add(name=_VALUE, full_name=full_name, checkpoint_key=node.key)
    data: bytes = made.SerializeToString(deterministic=True)
    return data


def name_of(item: Any) -> str:
    name = item.op.name if isinstance(item, Variable) else item.name
    return str(name)


def read_objects(path: str) -> Any:
    from google.protobuf.message import DecodeError
    from tensorboard.compat.proto.trackable_object_graph_pb2 import TrackableObjectGraph

    try:
        return TrackableObjectGraph.FromString(bytes(load_variable(path, OBJECT_GRAPH)))
    except DecodeError as error:
        raise DataLossError(
            None, None, f"The list of objects in the checkpoint {path!r} is damaged: {error}"
        ) from error


def stored_paths(stored: Any) -> list[str]:
    """Returns the paths of a checkpoint's nodes."""
    paths: dict[int, str] = {0: ""}
    pending = deque([0])
    while pending:
        number = pending.popleft()
        for child in stored.nodes[number].children:
            if child.node_id not in paths and child.node_id < len(stored.nodes):
                paths[child.node_id] = f"{paths[number]}.{child.local_name}".lstrip(".")
                pending.append(child.node_id)
    for node in stored.nodes:
        for slot in node.slot_variables:
            owner = paths.get(slot.original_variable_node_id, "?")
            paths.setdefault(slot.slot_variable_node_id, f"{owner} ({slot.slot_name})")
    return [paths.get(number, "?") for number in range(len(stored.nodes))]


__all__ = [
    "OBJECT_GRAPH",
    "WHOLE",
    "Node",
    "is_followed",
    "name_of",
    "objects_proto",
    "read_objects",
    "stored_paths",
    "walk",
]
