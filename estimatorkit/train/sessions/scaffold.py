"""`Scaffold`: the operations that a training session needs (`tf.compat.v1.train.Scaffold`).

`finalize` takes missing parts from the graph's collections, or creates and adds them, then
finalizes the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from estimatorkit.core import builtin_ops
from estimatorkit.core.errors import explain
from estimatorkit.core.graph import add_to_collection, get_collection, get_default_graph
from estimatorkit.core.graph_keys import GraphKeys
from estimatorkit.core.tensor import Operation
from estimatorkit.logger import logger
from estimatorkit.ops.files.summary import merge_all
from estimatorkit.ops.variables.variable_collections import (
    global_variables,
    global_variables_initializer,
    local_variables_initializer,
    report_uninitialized_variables,
    tables_initializer,
)
from estimatorkit.train.saving.object_checkpoint import Checkpoint, saver_of_objects
from estimatorkit.train.saving.saver import Saver


class Scaffold:
    """The operations to initialize, save and summarize a session.

    Args:
        init_op: initializes the variables; `global_variables_initializer()` by default. Not run if
            a checkpoint is restored.
        init_feed_dict: its feeds.
        init_fn: a function `(scaffold, session)`, called after `init_op`.
        ready_op: a vector with the names of uninitialized variables; empty if ready.
        ready_for_local_init_op: the same, as a precondition of `local_init_op`.
        local_init_op: run in every session; `default_local_init_op()` by default.
        summary_op: all summaries as one; `summary.merge_all()` by default.
        saver: a `Saver`, or a `Checkpoint` whose objects are saved; by default the Saver of the
            SAVERS collection, or one of all variables.
        copy_from_scaffold: a scaffold that supplies parts not given here.
        local_init_feed_dict: the feeds of `local_init_op`.

    Raises:
        TypeError: `copy_from_scaffold` is not a scaffold.
    """

    def __init__(
        self,
        init_op: Any = None,
        init_feed_dict: Mapping[Any, Any] | None = None,
        init_fn: Callable[[Scaffold, Any], Any] | None = None,
        ready_op: Any = None,
        ready_for_local_init_op: Any = None,
        local_init_op: Any = None,
        summary_op: Any = None,
        saver: Saver | Checkpoint | None = None,
        copy_from_scaffold: Scaffold | None = None,
        local_init_feed_dict: Mapping[Any, Any] | None = None,
    ) -> None:
        parts: dict[str, Any] = {
            "init_op": init_op,
            "init_feed_dict": init_feed_dict,
            "init_fn": init_fn,
            "ready_op": ready_op,
            "ready_for_local_init_op": ready_for_local_init_op,
            "local_init_op": local_init_op,
            "local_init_feed_dict": local_init_feed_dict,
            "summary_op": summary_op,
            "saver": saver,
        }
        if copy_from_scaffold is not None:
            if not isinstance(copy_from_scaffold, Scaffold):
                raise TypeError("copy_from_scaffold is not a Scaffold instance.")
            others: dict[str, Any] = copy_from_scaffold._parts
            parts = {name: others[name] if part is None else part for name, part in parts.items()}
        self._parts: dict[str, Any] = parts

    def finalize(self) -> Scaffold:
        """Creates missing parts in the default graph, and finalizes the graph.

        Raises:
            RuntimeError: a collection has several candidates for a part, or the graph is finalized
                and a part is missing.
        """
        parts = self._parts
        for name, (collection, make) in _DEFAULTS.items():
            if parts[name] is None:
                parts[name] = Scaffold.get_or_default(name, collection, make)
        if isinstance(parts["saver"], Checkpoint):
            parts["saver"] = saver_of_objects(parts["saver"])
        parts["saver"].build()
        get_default_graph().finalize()
        logger.info("Graph was finalized.")
        return self

    @property
    def is_default(self) -> bool:
        """Whether no part has been given or created. Not in TensorFlow."""
        return all(part is None for part in self._parts.values())

    @property
    def init_op(self) -> Any:
        """Initializes the variables."""
        return self._parts["init_op"]

    @property
    def init_feed_dict(self) -> Mapping[Any, Any] | None:
        """The feeds of `init_op`."""
        fed: Mapping[Any, Any] | None = self._parts["init_feed_dict"]
        return fed

    @property
    def init_fn(self) -> Callable[[Any], Any] | None:
        """A function of the session, called after `init_op`, or None."""
        given = self._parts["init_fn"]
        return None if given is None else lambda session: given(self, session)

    @property
    def ready_op(self) -> Any:
        """The names of uninitialized variables."""
        return self._parts["ready_op"]

    @property
    def ready_for_local_init_op(self) -> Any:
        """The names of uninitialized variables that `local_init_op` requires."""
        return self._parts["ready_for_local_init_op"]

    @property
    def local_init_op(self) -> Any:
        """Run in every session."""
        return self._parts["local_init_op"]

    @property
    def local_init_feed_dict(self) -> Mapping[Any, Any] | None:
        """The feeds of `local_init_op`."""
        fed: Mapping[Any, Any] | None = self._parts["local_init_feed_dict"]
        return fed

    @property
    def summary_op(self) -> Any:
        """All summaries as one, or None."""
        return self._parts["summary_op"]

    @property
    def saver(self) -> Any:
        """The saver."""
        return self._parts["saver"]

    @staticmethod
    def get_or_default(
        arg_name: str, collection_key: str, default_constructor: Callable[[], Any]
    ) -> Any:
        """Returns the item of a collection, or creates and adds one.

        Args:
            arg_name: the constructor's argument, for errors.
            collection_key: the collection.
            default_constructor: creates the item; may return None.

        Raises:
            RuntimeError: the collection has several items.
        """
        found = get_collection(collection_key)
        if len(found) > 1:
            raise RuntimeError(
                explain(
                    f'More than one item in the collection "{collection_key}". Please indicate '
                    "which one to use by passing it to the tf.Scaffold constructor as: "
                    f"tf.Scaffold({arg_name}=item to use)",
                    received=found,
                )
            )
        if found:
            return found[0]
        made = default_constructor()
        if made is not None:
            add_to_collection(collection_key, made)
        return made

    @staticmethod
    def default_local_init_op() -> Operation:
        """Returns an operation that initializes local variables and tables."""
        group: Operation = builtin_ops.group(local_variables_initializer(), tables_initializer())
        return group


_DEFAULTS: dict[str, tuple[str, Callable[[], Any]]] = {
    "init_op": (GraphKeys.INIT_OP, lambda: builtin_ops.group(global_variables_initializer())),
    "ready_op": (GraphKeys.READY_OP, report_uninitialized_variables),
    "ready_for_local_init_op": (
        GraphKeys.READY_FOR_LOCAL_INIT_OP,
        lambda: report_uninitialized_variables(global_variables()),
    ),
    "local_init_op": (GraphKeys.LOCAL_INIT_OP, Scaffold.default_local_init_op),
    "summary_op": (GraphKeys.SUMMARY_OP, merge_all),
    "saver": (GraphKeys.SAVERS, lambda: Saver(sharded=True, allow_empty=True, defer_build=True)),
}
"""The collection and the constructor of each part."""
