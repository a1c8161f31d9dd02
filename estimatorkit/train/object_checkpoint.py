"""`Checkpoint`: variables saved by where they are in Python objects (`tf.train.Checkpoint`).

What is saved is found by walking attributes, lists and dicts from the `Checkpoint`; a variable's
key is the first path to it, for example 'model/kernel/.ATTRIBUTES/VARIABLE_VALUE', and optimizers
add their slots. A proto of the objects lies beside them, by which the values find their objects
again, here and in TensorFlow's own checkpoints. Files are those of `core.checkpoint`.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from estimatorkit.core.checkpoint import (
    Checkpoint as Contents,
)
from estimatorkit.core.checkpoint import (
    load_variable,
    read_checkpoint,
    read_contents,
    write_checkpoint,
)
from estimatorkit.core.checkpoint_state import update_checkpoint_state
from estimatorkit.core.default_session import get_default_session
from estimatorkit.core.errors import DataLossError, explain
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.partitioned_variables import PartitionedVariable
from estimatorkit.core.saveable import Saveable
from estimatorkit.core.session import Session
from estimatorkit.core.tensor import Operation, Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.train.fitting import Item
from estimatorkit.train.optimizer import Optimizer
from estimatorkit.train.saver import restore_checkpoint, session_state, tensors_to_save

_OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
_VALUE = "VARIABLE_VALUE"
_ROOT = "(root)"
_LEAVES = (Variable, PartitionedVariable)
_NEVER = (
    *(Tensor, Operation, Graph, Session, type, ModuleType, np.ndarray, np.generic),
    *(FunctionType, MethodType, BuiltinFunctionType),
)


def _is_leaf(value: Any) -> bool:
    return isinstance(value, _LEAVES) or (isinstance(value, Saveable) and not _is_class(value))


def _is_class(value: Any) -> bool:
    return isinstance(value, type)


def _is_followed(value: Any) -> bool:
    """Whether there may be variables in it."""
    if isinstance(value, (list, tuple, Mapping)) or _is_leaf(value):
        return True
    return hasattr(value, "__dict__") and not isinstance(value, _NEVER)


def _children(value: Any, graph: Graph) -> Iterator[tuple[str, Any]]:
    """Yields what an object holds, by name."""
    if _is_leaf(value):
        return
    pairs: Any
    if isinstance(value, Checkpoint):
        pairs = value._held.items()
    elif isinstance(value, Optimizer):
        pairs = ((name, each) for (name, own), each in value._non_slots.items() if own is graph)
    elif isinstance(value, Mapping):
        pairs = ((name, each) for name, each in value.items() if isinstance(name, str))
    elif isinstance(value, (list, tuple)):
        pairs = ((str(place), each) for place, each in enumerate(value))
    else:
        pairs = vars(value).items()
    for name, each in pairs:
        if _is_followed(each):
            yield name, each


@dataclass
class _Node:
    """An object, and how it hangs together with the others.

    Attributes:
        value: the object.
        path: the first path to it, escaped as in keys.
        children: numbers of nodes by name.
        slots: (variable's node, name, slot) of an optimizer.
        key: of a leaf, its key.
    """

    value: Any
    path: str
    children: dict[str, int] = field(default_factory=dict)
    slots: list[tuple[int, str, int]] = field(default_factory=list)
    key: str = ""


def _walk(root: Any, graph: Graph) -> list[_Node]:
    """The objects that can be reached from one, breadth first, then the slots of optimizers."""
    nodes = [_Node(root, "")]
    numbers = {id(root): 0}
    pending = deque([0])
    while pending:
        node = nodes[pending.popleft()]
        for name, child in _children(node.value, graph):
            if id(child) not in numbers:
                numbers[id(child)] = len(nodes)
                pending.append(len(nodes))
                path = "/".join(filter(None, [node.path, _escaped(name)]))
                nodes.append(_Node(child, path))
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
                    nodes.append(_Node(slot, path, key=f"{path}/.ATTRIBUTES/{_VALUE}"))
    return nodes


def _escaped(name: str) -> str:
    return name.replace(".", "..").replace("/", ".S")


def _proto(nodes: list[_Node]) -> bytes:
    """The `TrackableObjectGraph` of objects."""
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
            full_name = _name_of(node.value)
            entry.attributes.add(name=_VALUE, full_name=full_name, checkpoint_key=node.key)
    data: bytes = made.SerializeToString(deterministic=True)
    return data


def _name_of(item: Any) -> str:
    name = item.op.name if isinstance(item, Variable) else item.name
    return str(name)


class Checkpoint:
    """Objects whose variables are saved and restored together.

    As `tf.train.Checkpoint` in graphs.

    Args:
        **kwargs: variables, optimizers, tables, lists and dicts of these, and objects that have
            them as attributes; each becomes an attribute, and more can be set later.

    Raises:
        ValueError: one of them can hold no variables.
    """

    _held: dict[str, Any]
    _count: Any  # what counts `save_counter` up

    def __init__(self, **kwargs: Any) -> None:
        object.__setattr__(self, "_held", {})
        object.__setattr__(self, "_count", None)
        for name, value in sorted(kwargs.items()):
            if not _is_followed(value):
                raise ValueError(
                    explain(
                        f"`Checkpoint` was expecting {name} to be a trackable object",
                        expected="a variable, an optimizer, a table, or an object, list or dict "
                        "that holds them",
                        received=repr(value)[:200],
                    )
                )
            setattr(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        if _is_followed(value):
            self._held[name] = value
        else:
            self._held.pop(name, None)

    @property
    def save_counter(self) -> Variable:
        """How often `save` was called: an int64 variable, made when it is first asked for."""
        if "save_counter" not in self._held:
            with get_default_graph().init_scope():
                counter = Variable(np.int64(0), trainable=False, name="save_counter")
            self._held["save_counter"] = counter
            counted = counter.assign_add(np.int64(1))
            object.__setattr__(self, "_count", counted)
        found: Variable = self._held["save_counter"]
        return found

    # -- saving

    def write(self, file_prefix: str | os.PathLike[str], session: Any = None) -> str:
        """Writes a checkpoint of this name.

        Args:
            file_prefix: its path.
            session: the session; the default session by default.

        Returns:
            Its path.

        Raises:
            FailedPreconditionError: a variable has no value.
            OpError: the disk refuses.
            RuntimeError: there is no session.
        """
        session = _session(session)
        nodes = _walk(self, session.graph)
        items = {node.key: node.value for node in nodes if node.key}
        tensors: dict[str, Any] = {**tensors_to_save(session, items)}
        tensors[_OBJECT_GRAPH] = np.array(_proto(nodes), object)
        directory, name = os.path.split(os.fspath(file_prefix))
        state = session_state(session)
        return os.fspath(write_checkpoint(directory or ".", name, tensors, state))

    def save(self, file_prefix: str | os.PathLike[str], session: Any = None) -> str:
        """Writes a checkpoint with a number behind its name, and moves the folder's pointer to it.

        The number is `save_counter`, which counts up; `latest_checkpoint(folder)` finds the newest.

        Args:
            file_prefix: the path without the number.
            session: the session; the default session by default.

        Returns:
            The path, to be given to `restore`.

        Raises:
            FailedPreconditionError, OpError, RuntimeError: see `write`.
        """
        session = _session(session)
        with session.graph.as_default():
            counter = self.save_counter
        if not session.state.is_initialized(counter.op.name):
            session.run(counter.initializer)
        number = int(session.run(self._count))
        path = self.write(f"{os.fspath(file_prefix)}-{number}", session)
        update_checkpoint_state(os.path.dirname(path) or ".", path, [path])
        return path

    # -- restoring

    def read(self, save_path: str | os.PathLike[str] | None) -> CheckpointLoadStatus:
        """As `restore`, without making `save_counter`."""
        return CheckpointLoadStatus(self, None if save_path is None else os.fspath(save_path))

    def restore(self, save_path: str | os.PathLike[str] | None) -> CheckpointLoadStatus:
        """Says which checkpoint the objects' values come from.

        Nothing is changed before one of the status's `run_restore_ops` and `initialize_or_restore`
        is called; variables that are made until then are restored too.

        Args:
            save_path: the checkpoint: of a `Checkpoint`, here or in TensorFlow, or of a `Saver`
                (then by the variables' names). None for none, so that `initialize_or_restore`
                initializes.

        Raises:
            NotFoundError: there is no such checkpoint.
            DataLossError: it is damaged.
        """
        status = self.read(save_path)
        if save_path is not None:
            _ = self.save_counter
        return status


def _session(session: Any) -> Any:
    found = get_default_session() if session is None else session
    if found is None:
        raise RuntimeError(
            explain(
                "No session was given, and there is no default session",
                hint="call it inside `with Session():`, or give session=",
            )
        )
    return found


class CheckpointLoadStatus:
    """What `Checkpoint.restore` gives: it compares, and puts values into a session.

    Args:
        root: the `Checkpoint`.
        path: the checkpoint, or None.

    Raises:
        NotFoundError, DataLossError: see `Checkpoint.restore`.
    """

    def __init__(self, root: Checkpoint, path: str | None) -> None:
        self._root, self._path = root, path
        self._stored: Any = None
        if path is None:
            return
        self._keys = set(read_contents(path))
        if _OBJECT_GRAPH in self._keys:
            self._stored = _read_proto(path)

    # -- what fits what

    def _matched(self) -> tuple[list[_Node], dict[str, Item], set[int]]:
        """The objects; those with values by their keys in the checkpoint; its nodes that have an
        object.
        """
        nodes = _walk(self._root, get_default_graph())
        if self._stored is None:
            found = {_name_of(node.value): node.value for node in nodes if node.key}
            items = {name: item for name, item in found.items() if self._has(name, item)}
            return nodes, items, set()
        stored = self._stored.nodes
        places: dict[int, int] = {}  # of stored nodes: the first object that fits
        items = {}
        pending = deque([(0, 0)])
        seen = set()
        while pending:
            number, at = pending.popleft()
            if (number, at) in seen or not 0 <= at < len(stored):
                continue
            seen.add((number, at))
            places.setdefault(at, number)
            node = nodes[number]
            if node.key:
                keys = (each.checkpoint_key for each in stored[at].attributes)
                items.update({key: node.value for key in keys if self._has(key, node.value)})
            for child in stored[at].children:
                if child.local_name in node.children:
                    pending.append((node.children[child.local_name], child.node_id))
        for number, at in seen:
            slots = {(variable, name): slot for variable, name, slot in nodes[number].slots}
            for each in stored[at].slot_variables:
                variable = places.get(each.original_variable_node_id, -1)
                slot = slots.get((variable, each.slot_name))
                if slot is not None and 0 <= each.slot_variable_node_id < len(stored):
                    places[each.slot_variable_node_id] = slot
                    for entry in stored[each.slot_variable_node_id].attributes:
                        items[entry.checkpoint_key] = nodes[slot].value
        return nodes, items, set(places)

    def _has(self, key: str, item: Item) -> bool:
        return self._keys.issuperset(_tensor_keys(key, item))

    def assert_consumed(self) -> CheckpointLoadStatus:
        """Checks that every value of the checkpoint has an object, and every variable a value.

        Raises:
            AssertionError: something is left over, or there is no checkpoint.
        """
        self._require_checkpoint()
        _, _, used = self._matched()
        if self._stored is not None:
            for number, path in enumerate(_stored_paths(self._stored)):
                if number not in used and self._stored.nodes[number].attributes:
                    raise AssertionError(
                        explain(
                            f"Unresolved object in checkpoint {_ROOT}.{path}",
                            received=self._path,
                            hint="give the Checkpoint this object, or use "
                            "assert_existing_objects_matched()",
                        )
                    )
        return self.assert_existing_objects_matched()

    def assert_existing_objects_matched(self) -> CheckpointLoadStatus:
        """Checks that every variable of the objects has a value in the checkpoint.

        Raises:
            AssertionError: one has none, or there is no checkpoint.
        """
        self._require_checkpoint()
        nodes, items, _ = self._matched()
        given = {id(item) for item in items.values()}
        lacking = [node for node in nodes if node.key and id(node.value) not in given]
        lacking = [node for node in lacking if node.path != "save_counter"]
        if lacking:
            raise AssertionError(
                explain(
                    f"Found {len(lacking)} Python objects that were not bound to checkpointed "
                    "values, likely due to changes in the Python program",
                    received=", ".join(f"{node.path}: {node.value!r}" for node in lacking[:10]),
                    hint=f"the checkpoint {self._path} has none for them",
                )
            )
        return self

    def assert_nontrivial_match(self) -> CheckpointLoadStatus:
        """Checks that some variable has a value in the checkpoint.

        Raises:
            AssertionError: none has, or there is no checkpoint.
        """
        self._require_checkpoint()
        nodes, items, _ = self._matched()
        if not items and any(node.key for node in nodes):
            raise AssertionError(
                explain(
                    "Nothing except the root object matched a checkpointed value",
                    received=self._path,
                    hint="are the names of the Checkpoint's attributes those it was saved with?",
                )
            )
        return self

    def expect_partial(self) -> CheckpointLoadStatus:
        """Says that not everything needs to fit; accepted for TensorFlow's signature."""
        return self

    def _require_checkpoint(self) -> None:
        if self._path is None:
            raise AssertionError(
                "No checkpoint specified (save_path=None); nothing is being restored."
            )

    # -- changing a session

    def run_restore_ops(self, session: Any = None) -> None:
        """Puts the values that fit into a session.

        Args:
            session: the session; the default session by default.

        Raises:
            AssertionError: there is no checkpoint.
            InvalidArgumentError: a variable has another shape or dtype in it.
            DataLossError: a file of it is damaged.
        """
        self._require_checkpoint()
        self._restore(_session(session))

    def initialize_or_restore(self, session: Any = None) -> None:
        """Puts the values that fit into a session, and initializes the other variables.

        Args:
            session: the session; the default session by default.
        """
        session = _session(session)
        restored = {id(item) for item in self._restore(session)}
        with session.graph.as_default():
            nodes = _walk(self._root, session.graph)
        initializers = [
            part.initializer
            for node in nodes
            if id(node.value) not in restored
            for part in _variables_of(node.value)
        ]
        session.run(initializers)

    def _restore(self, session: Any) -> list[Item]:
        if self._path is None:
            return []
        with session.graph.as_default():
            items = self._matched()[1]
        if not items:
            return []
        keys = [each for key, item in items.items() for each in _tensor_keys(key, item)]
        read = read_checkpoint(self._path, keys)
        restore_checkpoint(session, Contents(self._path, read.tensors, read.state), items)
        return list(items.values())


def _tensor_keys(key: str, item: Item) -> list[str]:
    suffixes = [""] if isinstance(item, _LEAVES) else item.saved_suffixes
    return [key + suffix for suffix in suffixes]


def _variables_of(value: Any) -> list[Variable]:
    if isinstance(value, PartitionedVariable):
        return list(value)
    return [value] if isinstance(value, Variable) else []


def _read_proto(path: str) -> Any:
    from google.protobuf.message import DecodeError
    from tensorboard.compat.proto.trackable_object_graph_pb2 import TrackableObjectGraph

    try:
        return TrackableObjectGraph.FromString(load_variable(path, _OBJECT_GRAPH).item())
    except DecodeError as error:
        raise DataLossError(
            None, None, f"The list of objects in the checkpoint {path!r} is damaged: {error}"
        ) from error


def _stored_paths(stored: Any) -> list[str]:
    """What the nodes of a checkpoint are called."""
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


__all__ = ["Checkpoint", "CheckpointLoadStatus"]
