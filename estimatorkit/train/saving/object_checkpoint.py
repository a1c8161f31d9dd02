"""`Checkpoint`: object-based checkpoints (`tf.train.Checkpoint`).

Variables are found by walking attributes, lists and dicts from the `Checkpoint`, breadth first. A
variable's key is the first path to it, for example 'model/kernel/.ATTRIBUTES/VARIABLE_VALUE';
optimizers add their slots. The object graph is saved as TensorFlow's proto, so checkpoints of
TensorFlow can be restored too. Files are those of `storage.checkpoint`.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.default_session import get_default_session
from estimatorkit.core.errors import explain, value_error
from estimatorkit.core.graph import get_default_graph
from estimatorkit.core.variables import Variable
from estimatorkit.ops.variables.partitioned_variables import PartitionedVariable
from estimatorkit.storage.checkpoint import (
    Checkpoint as Contents,
    read_checkpoint,
    read_contents,
    write_checkpoint,
)
from estimatorkit.storage.checkpoint_state import update_checkpoint_state
from estimatorkit.train.saving.checkpoint_compatibility import Item
from estimatorkit.train.saving.saver import (
    Saver,
    restore_checkpoint,
    session_state,
    tensors_to_save,
)
from estimatorkit.train.saving.trackable import (
    OBJECT_GRAPH,
    WHOLE,
    Node,
    is_followed,
    name_of,
    objects_proto,
    read_objects,
    stored_paths,
    walk,
)


class Checkpoint:
    """A group of objects whose variables are saved and restored together.

    Works like `tf.train.Checkpoint` in graph mode.

    Args:
        **kwargs: variables, optimizers, tables, lists and dicts of these, and objects that have
            them as attributes. Each becomes an attribute; more can be set later.

    Raises:
        ValueError: a value cannot contain variables.
    """

    _held_objects: dict[str, Any]
    _count: Any  # increments `save_counter`

    def __init__(self, **kwargs: Any) -> None:
        object.__setattr__(self, "_held_objects", {})
        object.__setattr__(self, "_count", None)
        for name, value in sorted(kwargs.items()):
            if not is_followed(value):
                raise value_error(
                    f"`Checkpoint` was expecting {name} to be a trackable object",
                    expected="a variable, an optimizer, a table, or an object, list or dict "
                    "that holds them",
                    received=repr(value)[:200],
                )
            setattr(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        if is_followed(value):
            self._held_objects[name] = value
        else:
            self._held_objects.pop(name, None)

    @property
    def save_counter(self) -> Variable:
        """The number of `save` calls: an int64 variable, created on first access."""
        if "save_counter" not in self._held_objects:
            with get_default_graph().init_scope():
                counter = Variable(np.int64(0), trainable=False, name="save_counter")
            self._held_objects["save_counter"] = counter
            counted = counter.assign_add(np.int64(1))
            object.__setattr__(self, "_count", counted)
        found: Variable = self._held_objects["save_counter"]
        return found

    def write(self, file_prefix: str | os.PathLike[str], session: Any = None) -> str:
        """Writes a checkpoint with exactly this name, and returns its path.

        Args:
            session: the default session by default.

        Raises:
            FailedPreconditionError: a variable is uninitialized.
            OpError: the file system reports an error.
            RuntimeError: there is no session.
        """
        tensors, state = self.contents(session_or_default(session))
        directory, name = os.path.split(os.fspath(file_prefix))
        return os.fspath(write_checkpoint(directory or ".", name, tensors, state))

    def contents(self, session: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Returns the tensors by key, and the session's state."""
        nodes = walk(self, session.graph)
        items = {node.key: node.value for node in nodes if node.key}
        tensors: dict[str, Any] = {**tensors_to_save(session, items)}
        tensors[OBJECT_GRAPH] = np.array(objects_proto(nodes), object)
        return tensors, session_state(session)

    def save(self, file_prefix: str | os.PathLike[str], session: Any = None) -> str:
        """Writes a numbered checkpoint, and updates the folder's checkpoint state.

        The number is `save_counter`, which is incremented first; `latest_checkpoint(folder)` finds
        the newest.

        Args:
            file_prefix: the path without the number.
            session: the default session by default.

        Returns:
            The path, for `restore`.

        Raises:
            FailedPreconditionError, OpError, RuntimeError: see `write`.
        """
        session = session_or_default(session)
        path = self.write(f"{os.fspath(file_prefix)}-{self.count_up(session)}", session)
        update_checkpoint_state(os.path.dirname(path) or ".", path, [path])
        return path

    def count_up(self, session: Any) -> int:
        """Increments `save_counter`, from 0 if uninitialized, and returns it."""
        with session.graph.as_default():
            counter = self.save_counter
        if session.state.uninitialized([counter.op.name]):
            session.run(counter.initializer)
        return int(session.run(self._count))

    def read(self, save_path: str | os.PathLike[str] | None) -> CheckpointLoadStatus:
        """Same as `restore`, without creating `save_counter`."""
        return CheckpointLoadStatus(self, None if save_path is None else os.fspath(save_path))

    def restore(self, save_path: str | os.PathLike[str] | None) -> CheckpointLoadStatus:
        """Opens a checkpoint, whose values the returned status restores.

        Nothing changes until `run_restore_ops` or `initialize_or_restore` of the status is called;
        variables created in the meantime are restored too.

        Args:
            save_path: a checkpoint of a `Checkpoint`, of this package or TensorFlow, or of a
                `Saver` (matched by variable names). With None, `initialize_or_restore` initializes.

        Raises:
            NotFoundError: there is no such checkpoint.
            DataLossError: it is damaged.
        """
        status = self.read(save_path)
        if save_path is not None:
            _ = self.save_counter
        return status


class _ObjectGraph:
    """The description of objects in a checkpoint, as a `Saveable` that is only written."""

    name = OBJECT_GRAPH
    saved_suffixes: Sequence[str] = ("",)

    def __init__(self, description: bytes) -> None:
        self._description = description

    def values_to_save(self, state: Any) -> Sequence[NDArray[Any]]:
        """The description."""
        return [np.array(self._description, object)]

    def restore_values(self, state: Any, values: Sequence[NDArray[Any]]) -> None:
        """Does nothing: the objects are those of the program."""


def saver_of_objects(root: Checkpoint) -> Saver:
    """Returns a Saver of the objects that a `Checkpoint` holds now, under its keys.

    `Checkpoint.restore` reads what it saves.
    """
    nodes = walk(root, get_default_graph())
    items: dict[str, Item] = {node.key: node.value for node in nodes if node.key}
    items[OBJECT_GRAPH] = _ObjectGraph(objects_proto(nodes))
    return Saver(items, sharded=True)


def session_or_default(session: Any) -> Any:
    """Returns `session`, or the default session if it is None."""
    found = get_default_session() if session is None else session
    if found is None:
        raise RuntimeError(
            explain(
                "No session was given, and there is no default session",
                hint="call it inside `with Session():`, or pass session=",
            )
        )
    return found


class CheckpointLoadStatus:
    """The result of `Checkpoint.restore`: matches objects with values, and restores them.

    `path` is None without a checkpoint; see `Checkpoint.restore` for errors.
    """

    def __init__(self, root: Checkpoint, path: str | None) -> None:
        self._root, self._path = root, path
        self._stored: Any = None
        if path is None:
            return
        self._keys = set(read_contents(path))
        if OBJECT_GRAPH in self._keys:
            self._stored = read_objects(path)

    def _matched(self) -> tuple[list[Node], dict[str, Item], set[int]]:
        """Matches the objects with the checkpoint.

        Returns all objects, those with a value by checkpoint key, and the matched checkpoint
        nodes.
        """
        nodes = walk(self._root, get_default_graph())
        if self._stored is None:
            found = {name_of(node.value): node.value for node in nodes if node.key}
            items = {name: item for name, item in found.items() if self._has(name, item)}
            return nodes, items, set()
        stored = self._stored.nodes
        places: dict[int, int] = {}  # the first matching object of stored nodes
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
        """Checks that every checkpoint value has an object, and every variable a value.

        Raises:
            AssertionError: something is unmatched, or there is no checkpoint.
        """
        self._require_checkpoint()
        _, _, used = self._matched()
        if self._stored is not None:
            for number, path in enumerate(stored_paths(self._stored)):
                if number not in used and self._stored.nodes[number].attributes:
                    raise AssertionError(
                        explain(
                            f"Unresolved object in checkpoint (root).{path}",
                            received=self._path,
                            hint="add this object to the Checkpoint, or use "
                            "assert_existing_objects_matched()",
                        )
                    )
        return self.assert_existing_objects_matched()

    def assert_existing_objects_matched(self) -> CheckpointLoadStatus:
        """Checks that every variable of the objects has a value in the checkpoint.

        Raises:
            AssertionError: a variable has none, or there is no checkpoint.
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
        """Checks that at least one variable has a value in the checkpoint.

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
        """Does nothing: partial matches never warn; kept for TensorFlow's signature."""
        return self

    def _require_checkpoint(self) -> None:
        if self._path is None:
            raise AssertionError(
                "No checkpoint specified (save_path=None); nothing is being restored."
            )

    def run_restore_ops(self, session: Any = None) -> None:
        """Restores the matching values into a session.

        Args:
            session: the default session by default.

        Raises:
            AssertionError: there is no checkpoint.
            InvalidArgumentError: a variable's shape or dtype differs.
            DataLossError: a file is damaged.
        """
        self._require_checkpoint()
        self._restore(session_or_default(session))

    def initialize_or_restore(self, session: Any = None) -> None:
        """Restores the matching values into a session, and initializes the other variables.

        `session` is the default session by default.
        """
        session = session_or_default(session)
        restored = {id(item) for item in self._restore(session)}
        with session.graph.as_default():
            nodes = walk(self._root, session.graph)
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
    suffixes = [""] if isinstance(item, WHOLE) else item.saved_suffixes
    return [key + suffix for suffix in suffixes]


def _variables_of(value: Any) -> list[Variable]:
    if isinstance(value, PartitionedVariable):
        return list(value)
    return [value] if isinstance(value, Variable) else []


__all__ = ["Checkpoint", "CheckpointLoadStatus"]
