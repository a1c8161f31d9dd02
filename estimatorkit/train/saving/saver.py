"""`Saver`: saves and restores a session's variables (`tf.train.Saver`).

Besides the variables, a checkpoint holds the counters of random operations and the positions of
iterators, so that a resumed run continues like an uninterrupted one. `storage.checkpoint` commits
the files; `checkpoint_compatibility` checks names, shapes and dtypes before a restore.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import accumulate
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimatorkit.core.conversion import as_array
from estimatorkit.core.errors import DataLossError, NotFoundError, OpError, type_error, value_error
from estimatorkit.core.graph import Graph, get_default_graph
from estimatorkit.core.graph_keys import VOCABULARY_FILES, GraphKeys
from estimatorkit.core.variables import Variable
from estimatorkit.interop.graph_util import write_proto
from estimatorkit.interop.projector import CONFIG as PROJECTOR_CONFIG, write_from_checkpoint
from estimatorkit.logger import logger
from estimatorkit.ops.variables.partitioned_variables import PartitionedVariable, whole_of
from estimatorkit.ops.variables.variable_collections import global_variables
from estimatorkit.storage.checkpoint import (
    Checkpoint,
    locate_checkpoint,
    name_without_step,
    read_checkpoint,
    read_contents,
    write_checkpoint,
)
from estimatorkit.storage.checkpoint_format import ShardedTensor
from estimatorkit.storage.checkpoint_reader import modified
from estimatorkit.storage.gfile import local_path
from estimatorkit.storage.retention import CheckpointRotation
from estimatorkit.storage.saveable import Saveable
from estimatorkit.storage.tensor_slice import TensorSlice
from estimatorkit.train.checks import STEP_CHECKS
from estimatorkit.train.saving.checkpoint_compatibility import (
    Found,
    Item,
    Whole,
    check_fits,
    keys_by_name,
    keys_of,
    with_wholes,
)
from estimatorkit.train.saving.column_notes import changed_columns, noted_columns
from estimatorkit.train.saving.meta_graph import (
    COLLECTION_READERS,
    LoadedMetaGraph,
    export_meta_graph,
    load_meta_graph,
)
from estimatorkit.train.saving.save_operations import (
    OPERATIONS,
    add_save_operations,
    restored_items,
)

_NEVER = 10000.0  # hours
_UNNAMED = "unnamed.ckpt"
"""The name of a checkpoint that gets none."""
NOT_SERIALIZED = (STEP_CHECKS, GraphKeys.SAVEABLE_OBJECTS)
"""Collections of Python objects; what a `Saver` saves of the second is in its operations."""


class Saver:
    """Saves and restores variables.

    Args:
        var_list: a list of variables and `Saveable`s, or a dict of them by checkpoint name; by
            default all global variables of the default graph and its SAVEABLE_OBJECTS collection.
        reshape: whether a variable may be restored from a tensor of another shape with the same
            number of elements.
        max_to_keep: the number of recent checkpoints to keep; 0 or None keeps all.
        keep_checkpoint_every_n_hours: additionally keep one checkpoint per this many hours.
        saver_def: a `SaverDef` with the settings. If it names operations of the default graph, as
            that of an imported graph does, the Saver saves what these restore.
        name: the name scope of the Saver's operations, 'save' by default; with a `saver_def`, the
            scope below which they were imported.
        filename: the path of the checkpoint for these operations where none is fed.
        defer_build: whether to evaluate `var_list` only when `build` is called.
        allow_empty: whether there may be nothing to save.
        pad_step_number: whether to zero-pad the step in file names to eight digits, so that they
            sort.
        sharded, restore_sequentially, builder, write_version, save_relative_paths: accepted for
            compatibility only. Checkpoints are always in the package's format, sharded by size,
            and paths in the checkpoint state are always relative.

    Raises:
        ValueError: there is nothing to save, or two items have the same name.
        TypeError: an item is neither a variable nor a `Saveable`.
    """

    def __init__(
        self,
        var_list: Any = None,
        reshape: bool = False,
        sharded: bool = False,
        max_to_keep: int | None = 5,
        keep_checkpoint_every_n_hours: float = _NEVER,
        name: str | None = None,
        restore_sequentially: bool = False,
        saver_def: Any = None,
        builder: Any = None,
        defer_build: bool = False,
        allow_empty: bool = False,
        write_version: Any = None,
        pad_step_number: bool = False,
        save_relative_paths: bool = False,
        filename: str | None = None,
    ) -> None:
        if defer_build and var_list is not None:
            raise ValueError(
                "If `var_list` is provided then build cannot be deferred. Either set "
                "defer_build=False or var_list=None."
            )
        if saver_def is not None:
            max_to_keep = saver_def.max_to_keep
            keep_checkpoint_every_n_hours = saver_def.keep_checkpoint_every_n_hours or _NEVER
        self._reshape = reshape
        self._sharded = sharded
        self._max_to_keep = max_to_keep
        self._every_n_hours = keep_checkpoint_every_n_hours
        self._allow_empty = allow_empty
        self._pad_step_number = pad_step_number
        self._name = name
        self._filename = filename
        self._operations: dict[str, str] = {}  # their names, by field of `SaverDef`
        self._managers: dict[tuple[str, str | None], CheckpointRotation] = {}
        self._given: dict[str, str] = {}  # the checkpoint's path as the program gave it
        self._items: dict[str, Item] | None = None
        self._meta_graph: tuple[Any, dict[Any, int], Any] | None = None
        self._saving = threading.RLock()  # saves in order of steps
        if saver_def is not None and saver_def.restore_op_name:
            self._take(saver_def)
        elif not defer_build:
            self._build(var_list)

    def build(self) -> None:
        """Collects the items to save from the default graph (see `defer_build`)."""
        if self._items is None:
            self._build(None)

    def _build(self, var_list: Any) -> None:
        items = saved_items() if var_list is None else _by_name(var_list)
        if not items and not self._allow_empty:
            raise ValueError("No variables to save")
        if items:
            with _modifiable(get_default_graph()):
                self._operations = add_save_operations(
                    items, self._name, self._filename, self._reshape
                )
        self._items = items

    def _take(self, saver_def: Any) -> None:
        """Makes this the Saver of a `SaverDef`, whose operations are in the default graph."""
        scope = f"{self._name.removesuffix('/')}/" if self._name else ""
        names = {field: getattr(saver_def, field) for field in OPERATIONS}
        self._operations = {field: f"{scope}{name}" for field, name in names.items() if name}
        self._sharded = saver_def.sharded
        self._items = restored_items(get_default_graph(), self._operations["restore_op_name"])

    def _built(self, doing: str) -> dict[str, Item]:
        if self._items is None:
            raise RuntimeError(f"`build()` should be called before {doing} if defer_build==True")
        return self._items

    @property
    def saved_items(self) -> Mapping[str, Item]:
        """The items to save, by checkpoint name."""
        return self._built("saved_items")

    @property
    def last_checkpoints(self) -> list[str]:
        """The checkpoints subject to rotation, oldest first; empty if all are kept."""
        if not self._max_to_keep:
            return []
        paths = [path for manager in self._managers.values() for path in manager.last_checkpoints]
        return [self._given.get(os.path.normpath(path), path) for path in paths]

    def set_last_checkpoints(self, last_checkpoints: Sequence[str]) -> None:
        """Sets the checkpoints subject to rotation, oldest first, with the current time."""
        if not isinstance(last_checkpoints, list):
            raise AssertionError("last_checkpoints must be a list")
        self.set_last_checkpoints_with_time([(path, time.time()) for path in last_checkpoints])

    def set_last_checkpoints_with_time(
        self, last_checkpoints_with_time: Sequence[tuple[str, float]]
    ) -> None:
        """Sets the checkpoints subject to rotation: (path, seconds since 1970), oldest first."""
        if not isinstance(last_checkpoints_with_time, list):
            raise AssertionError("last_checkpoints must be a list")
        listed: dict[str, list[tuple[str, float]]] = {}
        for path, when in last_checkpoints_with_time:
            directory, name = os.path.split(os.fspath(path))
            self._given[os.path.normpath(path)] = os.fspath(path)
            listed.setdefault(directory or ".", []).append((name, float(when)))
        for directory, latest_filename in self._managers:
            if latest_filename is None:
                listed.setdefault(directory, [])
        for directory, pairs in listed.items():
            self._manager(directory, None).set_listed(pairs)

    def recover_last_checkpoints(self, checkpoint_paths: Sequence[str]) -> None:
        """Sets the checkpoints subject to rotation after a restart, ignoring missing ones."""
        found = [(local_path(path), modified(path)) for path in checkpoint_paths]
        self.set_last_checkpoints_with_time(
            [(path, when) for path, when in found if when is not None]
        )

    def _manager(
        self, directory: str, latest_filename: str | None, name: str | None = None
    ) -> CheckpointRotation:
        """Returns the rotation of a folder's checkpoints.

        It includes checkpoints of an earlier process whose names match the first name saved; those
        of other Savers in the same folder are left alone.
        """
        key = (directory, latest_filename)
        if key not in self._managers:
            self._managers[key] = CheckpointRotation(
                directory,
                max_to_keep=self._max_to_keep or 0,
                keep_checkpoint_every_n_hours=self._every_n_hours,
                latest_filename=latest_filename,
                basename=None if name is None else name_without_step(name),
            )
        return self._managers[key]

    def save(
        self,
        sess: Any,
        save_path: str | os.PathLike[str],
        global_step: Any = None,
        latest_filename: str | None = None,
        meta_graph_suffix: str = "meta",
        write_meta_graph: bool = True,
        write_state: bool = True,
        strip_default_attrs: bool = False,
        save_debug_info: bool = False,
    ) -> str | None:
        """Writes a checkpoint, updates the checkpoint state, and removes old checkpoints.

        Args:
            save_path: the path prefix, for example 'model_dir/model.ckpt'; with 'model_dir/' the
                checkpoint is named 'unnamed.ckpt'.
            global_step: a number, tensor or variable that is appended to the name.
            latest_filename: the name of the checkpoint state file; 'checkpoint' by default.
            meta_graph_suffix: the suffix of the graph file.
            write_meta_graph: whether to write the graph too, for `import_meta_graph`.
            write_state: whether to update the checkpoint state and remove old checkpoints.
            strip_default_attrs, save_debug_info: accepted for compatibility only.

        Returns:
            The checkpoint's path, for `restore`; None if there is nothing to save.

        Raises:
            FailedPreconditionError: a variable is uninitialized.
            OpError: the file system reports an error (see `storage.checkpoint.write_checkpoint`).
            TypeError: `sess` is not a session.
        """
        items = self._built("save")
        _check_session(sess)
        if latest_filename is not None and os.path.split(latest_filename)[0]:
            raise ValueError("'latest_filename' must not contain path components")
        if not items:
            return None
        given = os.fspath(save_path)
        path = local_path(given)
        with self._saving:
            if global_step is not None:
                number = global_step if isinstance(global_step, Integral) else sess.run(global_step)
                path = f"{path}-{int(number):0{8 if self._pad_step_number else 1}d}"
            path = with_name(path)
            directory, name = os.path.split(path)
            directory = directory or "."
            if name == (latest_filename or "checkpoint") and write_state:
                raise ValueError(
                    f"'latest_filename' collides with 'save_path': {name!r} and {given!r}"
                )
            # State before variables: concurrent training in between is at worst repeated, never
            # lost.
            state = session_state(sess)
            tensors = tensors_to_save(sess, items, True)
            self._given[os.path.normpath(path)] = path

            def write_graph() -> None:
                if write_meta_graph:
                    self._write_graph(f"{path}.{meta_graph_suffix}", sess.graph)

            if write_state:
                rotation = self._manager(directory, latest_filename, name)
                rotation.save(name, tensors, state, before_state=write_graph)
            else:
                write_checkpoint(directory, name, tensors, state)
                write_graph()
            if os.path.exists(os.path.join(directory, PROJECTOR_CONFIG)):
                self._write_embeddings(directory)
        return f"file://{path}" if given.startswith("file://") else path

    def _write_graph(self, path: str, graph: Graph) -> None:
        try:
            made = self._described(graph)
            directory, name = os.path.split(path)
            write_proto(made, directory or ".", name, as_text=False)
        except (TypeError, ValueError) as error:
            # The checkpoint is committed and valid even if its graph cannot be serialized.
            logger.warning("The graph was not written to %s: %s", path, error)

    def _described(self, graph: Graph) -> Any:
        """The graph as a `MetaGraphDef`, which is made once where it does not change any more.

        A graph of 1,000 operations takes 0.1 s.
        """
        collected = {key: len(graph.get_collection(key)) for key in graph.get_all_collection_keys()}
        described = self._meta_graph
        if described is not None and described[0]() is graph and described[1] == collected:
            return described[2]
        with graph.as_default():
            made = self.export_meta_graph()
        self._meta_graph = (weakref.ref(graph), collected, made) if graph.finalized else None
        return made

    def _write_embeddings(self, directory: str) -> None:
        try:
            write_from_checkpoint(directory)
        except (OSError, OpError, ValueError) as error:  # as for the graph
            logger.warning("The projector's matrices were not written: %s", error)

    def export_meta_graph(
        self,
        filename: str | os.PathLike[str] | None = None,
        collection_list: Sequence[str] | None = None,
        as_text: bool = False,
        export_scope: str | None = None,
        clear_devices: bool = False,
        clear_extraneous_savers: bool = False,
        strip_default_attrs: bool = False,
        save_debug_info: bool = False,
    ) -> Any:
        """Exports the default graph and its collections as a `MetaGraphDef`.

        See `train.export_meta_graph`.
        """
        if collection_list is None:
            keys = get_default_graph().get_all_collection_keys()
            collection_list = [key for key in keys if key not in NOT_SERIALIZED]
        return export_meta_graph(
            filename,
            saver_def=self.as_saver_def(),
            collection_list=collection_list,
            as_text=as_text,
            export_scope=export_scope,
            clear_devices=clear_devices,
            clear_extraneous_savers=clear_extraneous_savers,
            strip_default_attrs=strip_default_attrs,
            save_debug_info=save_debug_info,
        )

    @property
    def saver_def(self) -> Any:
        """The settings as a `SaverDef`; see `as_saver_def`."""
        return self.as_saver_def()

    def as_saver_def(self) -> Any:
        """Returns the settings and the names of the operations as a `SaverDef`."""
        from tensorboard.compat.proto.saver_pb2 import SaverDef

        return SaverDef(
            **self._operations,
            max_to_keep=self._max_to_keep or 0,
            sharded=self._sharded,
            keep_checkpoint_every_n_hours=self._every_n_hours,
            version=SaverDef.V2,
        )

    def to_proto(self, export_scope: str | None = None) -> Any:
        """Returns `as_saver_def`; see there.

        Args:
            export_scope: a prefix to strip from the names.

        Returns:
            None if the operations are not in `export_scope`.
        """
        made = self.as_saver_def()
        prefix = f"{export_scope.removesuffix('/')}/" if export_scope else ""
        for field, name in self._operations.items():
            if not name.startswith(prefix):
                return None
            setattr(made, field, name.removeprefix(prefix))
        return made

    @staticmethod
    def from_proto(saver_def: Any, import_scope: str | None = None) -> Saver:
        """Returns the Saver of a `SaverDef`, whose operations are in the default graph.

        Args:
            saver_def: the result of `to_proto`.
            import_scope: a prefix for the names in it.

        Raises:
            KeyError: the operations are not in the graph.
        """
        return Saver(saver_def=saver_def, name=import_scope)

    def restore(self, sess: Any, save_path: str | os.PathLike[str] | None) -> None:
        """Restores the session's variables from a checkpoint, which TensorFlow may have written.

        Raises:
            ValueError: there is no such checkpoint.
            NotFoundError: a variable is not in the checkpoint.
            InvalidArgumentError: a variable's shape or dtype differs.
            DataLossError: a file is damaged.
        """
        items = self._built("restore")
        if not items:
            return
        if save_path is None:
            raise ValueError("Can't load save_path when it is None.")
        _check_session(sess)
        path = with_name(local_path(save_path))
        _check_is_checkpoint(path)
        logger.info("Restoring parameters from %s", path)
        found = {
            name: Found(entry.dtype, entry.shape) for name, entry in read_contents(path).items()
        }
        keys = keys_of(items)
        renamed = keys_by_name(path, found, keys)
        check_fits(path, {key: found[old] for key, old in renamed.items()}, items, self._reshape)
        held = {
            key: _parts_of(renamed[key], item)
            for key, item in items.items()
            if isinstance(item, Whole) and item.shape.is_compatible_with(found[renamed[key]].shape)
        }
        wanted = {name: part for parts in held.values() for name, part in parts.items()}
        elsewhere = sess.state.restore(path, wanted)
        items = {
            key: item
            for key, item in items.items()
            if key not in held or not elsewhere.issuperset(held[key])
        }
        keys = keys_of(items)
        read = read_checkpoint(path, [renamed[key] for key in keys])
        _put(sess, read, items, renamed)


def with_name(path: str) -> str:
    """Returns a checkpoint's path, with a name if it is only a folder with a final separator."""
    return path if os.path.basename(path) else f"{path}{_UNNAMED}"


@contextmanager
def _modifiable(graph: Graph) -> Iterator[None]:
    """Lets a finalized graph get a Saver's operations, which change nothing that is there."""
    finalized = graph.finalized
    graph.unfinalize()
    try:
        yield
    finally:
        if finalized:
            graph.finalize()


def _parts_of(key: str, item: Whole) -> dict[str, TensorSlice]:
    """Returns the slice of a checkpoint tensor for each part of an item, by variable name."""
    if isinstance(item, Variable):
        return {item.op.name: TensorSlice(key)}
    sizes = [part.shape[item.axis] for part in item]
    starts = accumulate(sizes, initial=0)
    return {
        part.op.name: TensorSlice(key, item.axis, start, size)
        for part, start, size in zip(item, starts, sizes, strict=False)
    }


def saved_items() -> dict[str, Item]:
    """Returns the default graph's global variables and `Saveable`s, by checkpoint name."""
    extra = get_default_graph().get_collection(GraphKeys.SAVEABLE_OBJECTS)
    return _by_name([*global_variables(), *extra])


_moves_input: ContextVar[bool] = ContextVar("moves_input", default=True)


@contextmanager
def input_stays() -> Iterator[None]:
    """Within it, restoring a session leaves its iterators where they are: an evaluation starts at
    the first element, wherever the training has saved the position of the same data.
    """
    token = _moves_input.set(False)
    try:
        yield
    finally:
        _moves_input.reset(token)


def restore_checkpoint(sess: Any, checkpoint: Checkpoint, items: Mapping[str, Item]) -> None:
    """Restores a session from a checkpoint in memory.

    Args:
        checkpoint: its tensors are removed as they are restored.
        items: variables and `Saveable`s by checkpoint name.

    Raises:
        NotFoundError, InvalidArgumentError: see `Saver.restore`; the message has a table of missing
            and different items.
        FailedPreconditionError: a feature column's vocabulary file has changed.
    """
    if sess.graph.get_collection(VOCABULARY_FILES):
        from estimatorkit.layers.feature_column.vocabulary import check_vocabulary_fingerprints

        check_vocabulary_fingerprints(checkpoint.state.get("vocabularies", {}), sess.graph)
    keys = keys_by_name(checkpoint.path, checkpoint.tensors, items)
    found = {name: Found.of_array(checkpoint.tensors[key]) for name, key in keys.items()}
    columns = changed_columns(checkpoint.state.get("columns", {}), noted_columns(sess.graph))
    check_fits(checkpoint.path, found, items, changes=columns)
    _put(sess, checkpoint, items, keys)


def restore_input(sess: Any, checkpoint: Checkpoint) -> None:
    """Restores the random counters and iterator positions, but no variables."""
    _put(sess, checkpoint, {}, {})


def _put(
    sess: Any, checkpoint: Checkpoint, items: Mapping[str, Item], keys: Mapping[str, str]
) -> None:
    """Loads values, random counters and iterator positions into a session.

    Each tensor is removed from the checkpoint as it is loaded, which bounds the peak of memory.

    Args:
        keys: the keys in the checkpoint, by the names of items.

    Raises:
        DataLossError: counters or positions are malformed; nothing is loaded.
    """
    state = checkpoint.state
    known = {op.name for op in sess.graph.get_operations()}
    counters = {
        name: _counter(words) for name, words in _section(state, "random").items() if name in known
    }
    positions, dealt = _section(state, "iterators"), _section(state, "dealt")
    uses = Counter(keys[name] for name in keys_of(items))

    def taken(name: str) -> NDArray[Any]:
        key = keys[name]
        uses[key] -= 1
        return checkpoint.tensors[key].copy() if uses[key] else checkpoint.tensors.pop(key)

    for name, item in items.items():
        if isinstance(item, Variable):
            value = as_array(taken(name), item.dtype)
            if not item.shape.is_compatible_with(value.shape):
                value = value.reshape([size or 0 for size in item.shape.as_list()])
            sess.load_variable(item, value, copy=False)
        elif isinstance(item, PartitionedVariable):
            value = taken(name).reshape([size or 0 for size in item.shape.as_list()])
            ends = np.cumsum([part.shape[item.axis] for part in item])[:-1]
            for part, share in zip(item, np.split(value, ends, item.axis), strict=True):
                sess.load_variable(part, share)
        else:
            values = [taken(name + suffix) for suffix in item.saved_suffixes]
            item.restore_values(sess.state, values)
    for name, counter in counters.items():
        sess.state.put(name, counter)
    if _moves_input.get() and (dealt or positions):
        from estimatorkit.data.iterator_ops import restore_iterators
        from estimatorkit.data.sharded_dataset import restore_shards

        restore_shards(sess.state, dealt, positions)
        restore_iterators(sess.state, positions)


def _section(state: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = state.get(name, {})
    if not isinstance(found, Mapping):
        raise _malformed(name, "an object", found)
    return found


def _counter(words: Any) -> NDArray[Any]:
    """The three words of a random operation's counter."""
    try:
        counter = np.array(words, np.uint32)
    except (OverflowError, TypeError, ValueError) as error:
        raise _malformed("random", "three 32-bit words", words) from error
    if counter.shape != (3,):
        raise _malformed("random", "three 32-bit words", words)
    return counter


def _malformed(section: str, expected: str, received: Any) -> DataLossError:
    return DataLossError.explained(
        f"the state of the checkpoint is malformed: {section!r}",
        expected=expected,
        received=repr(received)[:200],
        hint="the checkpoint is damaged: restore another one",
    )


def _by_name(given: Any) -> dict[str, Item]:
    """Returns the items by checkpoint name."""
    if isinstance(given, Mapping):
        pairs = list(given.items())
        if not all(isinstance(name, str) for name, _ in pairs):
            raise type_error(
                "names_to_saveables must be a dict mapping string names to Tensors/Variables",
                received=repr([name for name, _ in pairs])[:200],
            )
    else:
        pairs = [(None, item) for item in given]
    named: list[tuple[str, Item]] = []
    for name, item in pairs:
        if isinstance(item, (list, tuple)) and name is not None:
            named.append((name, _whole(name, item)))
        elif isinstance(item, Variable):
            named.append((name or item.op.name, item))
        elif isinstance(item, PartitionedVariable | Saveable):
            named.append((name or item.name, item))
        else:
            raise type_error(
                f"Variable to save is not a Variable: {item!r}",
                expected="variables, or objects with the members of storage.saveable.Saveable",
                received=type(item).__name__,
            )
    twice = [name for name, count in Counter(name for name, _ in named).items() if count > 1]
    if twice:
        raise ValueError(f"At least two variables have the same name: {twice[0]}")
    seen: set[int] = set()
    for name, item in named:
        if id(item) in seen:
            raise ValueError(f"The same saveable will be restored with two names: {name}")
        seen.add(id(item))
    return with_wholes(dict(named))


def _whole(name: str, parts: Sequence[Any]) -> PartitionedVariable:
    """The partitioned variable whose parts are listed.

    Raises:
        ValueError: an item is not part of one, or they do not cover it.
    """
    for part in parts:
        if not isinstance(part, Variable) or part.save_slice_info is None:
            raise value_error(f"Slices must all be Variables: {part!r}", received=f"{name!r}")
    found = whole_of(name, parts) if parts else None
    if found is None:
        raise value_error(
            f"Slices must all be from the same tensor: {name!r}",
            expected="all parts of a partitioned variable",
            received=[part.name for part in parts],
        )
    return found


def _check_is_checkpoint(path: str) -> None:
    """Raises ValueError with a hint if `path` is not a checkpoint; damage raises other errors."""
    problem = f"The passed save_path is not a valid checkpoint: {path}"
    try:
        found = locate_checkpoint(path)
        read_checkpoint(found, [])
    except NotFoundError as error:
        raise value_error(problem, received=error) from error
    if found != path:
        hint = f"pass its newest checkpoint, {found!r}; latest_checkpoint(directory) finds it"
        raise value_error(problem, received="a model folder", hint=hint)


def _check_session(sess: Any) -> None:
    if not hasattr(sess, "load_variable"):
        raise type_error(
            f"'sess' must be a Session; {sess!r}",
            received=type(sess).__name__,
            hint="pass the plain session, not its graph or a monitored session",
        )


def tensors_to_save(
    sess: Any, items: Mapping[str, Item], may_be_elsewhere: bool = False
) -> dict[str, Any]:
    """Returns the items' values in a session, by tensor name in checkpoints.

    Args:
        items: variables and `Saveable`s by checkpoint name.
        may_be_elsewhere: whether to return variables of other processes as `RemoteTensor`s, and
            partitioned ones as `ShardedTensor`s, rather than to fetch them.

    Raises:
        FailedPreconditionError: a variable is uninitialized.
    """
    wholes = {name: item for name, item in items.items() if isinstance(item, Whole)}
    names = [
        variable.op.name
        for whole in wholes.values()
        for variable in ([whole] if isinstance(whole, Variable) else whole)
    ]
    taken = sess.state.to_save(names) if may_be_elsewhere else sess.state.read(names)
    values: dict[str, Any] = dict(zip(names, taken, strict=True))
    tensors: dict[str, Any] = {}
    for name, whole in wholes.items():
        if isinstance(whole, Variable):
            tensors[name] = values[whole.op.name]
            continue
        parts = [values[part.op.name] for part in whole]
        if may_be_elsewhere:
            numbered = {f"{name}[{number}]": part for number, part in enumerate(parts)}
            tensors[name] = ShardedTensor(whole.axis, numbered)
        else:
            tensors[name] = np.concatenate(parts, whole.axis)
    for name, item in items.items():
        if isinstance(item, Saveable):
            saved = item.values_to_save(sess.state)
            tensors.update(
                (name + suffix, value)
                for suffix, value in zip(item.saved_suffixes, saved, strict=True)
            )
    return tensors


def session_state(sess: Any) -> dict[str, Any]:
    """Returns the JSON state of a session, such as random counters and iterator positions."""
    random = {
        name: [int(word) for word in np.asarray(value)]
        for name, value in sess.state.random_counters().items()
    }
    iterators, dealt = _input_states(sess.state)
    state = {"random": random, "iterators": iterators}
    notes = {
        "vocabularies": _vocabularies(sess.graph),
        "columns": noted_columns(sess.graph),
        "dealt": dealt,
    }
    return {**state, **{key: note for key, note in notes.items() if note}}


def _input_states(state: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the positions of a session's iterators, and which shards are still to be assigned.

    A graph with iterators has imported their module; for others that would take 20 ms.
    """
    if "estimatorkit.data.iterator_ops" not in sys.modules:
        return {}, {}
    from estimatorkit.data.iterator_ops import iterator_states
    from estimatorkit.data.sharded_dataset import shard_states

    return iterator_states(state), shard_states(state)


def _vocabularies(graph: Graph) -> dict[str, Any]:
    """Returns fingerprints of the vocabulary files that the graph's feature columns have read."""
    if not graph.get_collection(VOCABULARY_FILES):
        return {}
    from estimatorkit.layers.feature_column.vocabulary import vocabulary_fingerprints

    return vocabulary_fingerprints(graph)


def import_meta_graph(
    meta_graph_or_file: Any,
    clear_devices: bool = False,
    import_scope: str | None = None,
    **kwargs: Any,
) -> Any:
    """Imports a graph with its collections into the default graph.

    Args:
        meta_graph_or_file: a `MetaGraphDef`, or a file written by `export_meta_graph` or
            `Saver.save`.
        clear_devices: whether to ignore devices.
        import_scope: a name scope for the imported graph.
        **kwargs: `input_map`, `return_elements` and `trusted`, see `import_graph_def`.

    Returns:
        The `Saver` that was exported with it; without one, a `Saver` of all variables of the
        default graph; None if there are none.
    """
    loaded = load_meta_graph(meta_graph_or_file, clear_devices, import_scope, **kwargs)
    return saver_of(loaded)


def saver_of(loaded: LoadedMetaGraph) -> Saver | None:
    """Returns the Saver of a graph that was loaded into the default graph.

    It is the one that the `SaverDef` describes; without one, a Saver of all global variables; None
    if there are none. If the operations of a `SaverDef` were not imported, it saves the variables
    of the loaded graph under their names there.
    """
    graph, found = get_default_graph(), loaded.saver_def
    if found is None:
        return Saver() if saved_items() else None
    name = f"{loaded.scope}{found.restore_op_name}"
    if found.restore_op_name and name in {op.name for op in graph.get_operations()}:
        try:
            return Saver(saver_def=found, name=loaded.scope or None)
        except (AttributeError, LookupError, TypeError) as error:
            raise value_error(
                "the operations that the SaverDef of a MetaGraphDef names do not restore",
                received=f"{name}; {error!r:.300}",
            ) from error
    if not loaded.variables:
        return None
    return Saver(
        loaded.variables,
        max_to_keep=found.max_to_keep,
        keep_checkpoint_every_n_hours=found.keep_checkpoint_every_n_hours or _NEVER,
    )


COLLECTION_READERS[GraphKeys.SAVERS] = Saver.from_proto
