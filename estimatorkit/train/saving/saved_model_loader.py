"""`load`: loads a SavedModel into a session (`tf.compat.v1.saved_model.loader.load`).

The graph is imported, what its Saver saved is read from the bundle, and the model's main operation
is run with the assets fed. Files are data only: nothing in them is evaluated, and no path in them
leads out of the folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from estimatorkit.core.errors import DataLossError, explain
from estimatorkit.core.graph import Graph
from estimatorkit.lazy import listing
from estimatorkit.logger import logger
from estimatorkit.storage.gfile import local_path
from estimatorkit.train.saving import saved_model_constants as constants
from estimatorkit.train.saving.meta_graph import (
    LoadedMetaGraph,
    MalformedCollectionError,
    load_meta_graph,
)
from estimatorkit.train.saving.saved_model_files import (
    assets_of,
    contains_saved_model as contains_saved_model,
    read_saved_model,
    variables_path,
)
from estimatorkit.train.saving.saver import Saver, saver_of

maybe_saved_model_directory = contains_saved_model


def load(
    sess: Any,
    tags: Iterable[str],
    export_dir: str | os.PathLike[str],
    import_scope: str | None = None,
    trusted: bool = False,
    **saver_kwargs: Any,
) -> Any:
    """Loads a model into a session: graph, variables and tables.

    Args:
        sess: the session; the model is added to its graph.
        tags: all the tags of the graph to load.
        import_scope: a name scope for the imported graph.
        trusted: whether the model may access files besides its assets, and Python functions. By
            default operations that do raise PermissionDeniedError when they run.
        **saver_kwargs: accepted for compatibility only.

    Returns:
        The `MetaGraphDef`, whose `signature_def` names inputs and outputs.

    Raises:
        OSError: there is no model.
        RuntimeError: it has no graph with these tags.
        DataLossError: a file is damaged or missing.
        ValueError: its graph is malformed, or its names are taken in the session's graph.
        PermissionDeniedError: its initialization accesses files, and it is not trusted.
    """
    return SavedModelLoader(export_dir, trusted).load(sess, tags, import_scope, **saver_kwargs)


class SavedModelLoader:
    """Loads a SavedModel in steps: graph, variables, initialization.

    Source: `tensorflow.python.saved_model.loader_impl.SavedModelLoader`.

    Args:
        export_dir: the model's folder.
        trusted: see `load`.

    Raises:
        OSError: there is no model.
    """

    def __init__(self, export_dir: str | os.PathLike[str], trusted: bool = False) -> None:
        self._export_dir = local_path(export_dir)
        self._trusted = trusted
        read_saved_model(self._export_dir)

    @property
    def export_dir(self) -> str:
        """The model's folder."""
        return self._export_dir

    @property
    def variables_path(self) -> str:
        """The path prefix of the variables' files."""
        return variables_path(self._export_dir)

    def get_meta_graph_def_from_tags(self, tags: Iterable[str]) -> Any:
        """Returns the `MetaGraphDef` with exactly these tags; RuntimeError if there is none."""
        return meta_graph_with_tags(self._export_dir, tags)

    def load_graph(
        self,
        graph: Graph,
        tags: Iterable[str],
        import_scope: str | None = None,
        **saver_kwargs: Any,
    ) -> tuple[Saver | None, list[Any]]:
        """Adds the model's operations to a graph.

        Args:
            tags, import_scope, saver_kwargs: see `load`; `saver_kwargs` may contain
                `return_elements`.

        Returns:
            A Saver of the model's variables (None if it has none), and the `return_elements`.
        """
        loaded = self._add_to(graph, tags, import_scope, saver_kwargs.get("return_elements"))
        with graph.as_default():
            saver = saver_of(loaded)
        return saver, list(loaded.elements)

    def restore_variables(
        self, sess: Any, saver: Saver | None, import_scope: str | None = None
    ) -> None:
        """Restores the model's variables.

        Args:
            sess: a session with the model's graph.
            saver: its variables are restored; None restores none.
            import_scope: accepted for compatibility only: the Saver knows its variables.

        Raises:
            NotFoundError: the model lacks a variable.
        """
        if saver is not None:
            self._restore(sess, saver)

    def run_init_ops(self, sess: Any, tags: Iterable[str], import_scope: str | None = None) -> None:
        """Runs the model's init operation, with its assets fed."""
        self._initialize(sess, self.get_meta_graph_def_from_tags(tags), import_scope)

    def load(
        self, sess: Any, tags: Iterable[str], import_scope: str | None = None, **saver_kwargs: Any
    ) -> Any:
        """Loads graph and variables, and initializes; see the function `load`."""
        tags = [tags] if isinstance(tags, str) else list(tags)
        loaded = self._add_to(sess.graph, tags, import_scope)
        meta_graph = self.get_meta_graph_def_from_tags(tags)
        with sess.graph.as_default():
            saver = saver_of(loaded)
        if saver is not None:
            self._restore(sess, saver)
        self._initialize(sess, meta_graph, import_scope)
        return meta_graph

    def _add_to(
        self, graph: Graph, tags: Iterable[str], import_scope: str | None, elements: Any = None
    ) -> LoadedMetaGraph:
        meta_graph = self.get_meta_graph_def_from_tags(tags)
        list(assets_of(meta_graph, self._export_dir))  # invalid ones raise before the graph changes
        with _damage_in(self._export_dir), graph.as_default():
            loaded = load_meta_graph(
                meta_graph,
                import_scope=import_scope,
                return_elements=elements,
                trusted=self._trusted,
                assets=os.path.join(self._export_dir, constants.ASSETS_DIRECTORY),
            )
        _warn_of_missing(graph, meta_graph, f"{import_scope}/" if import_scope else "")
        return loaded

    def _restore(self, sess: Any, saver: Saver) -> None:
        with _damage_in(self._export_dir):
            saver.restore(sess, self.variables_path)

    def _initialize(self, sess: Any, meta_graph: Any, import_scope: str | None) -> None:
        assets = dict(assets_of(meta_graph, self._export_dir))
        scope = f"{import_scope}/" if import_scope else ""
        name = init_op_name(meta_graph)
        if name:
            with _damage_in(self._export_dir):
                feeds = {scope + tensor: path for tensor, path in assets.items()}
                sess.run(sess.graph.get_operation_by_name(scope + name), feeds)


@contextmanager
def _damage_in(folder: str) -> Iterator[None]:
    """Converts errors that only damaged files cause to DataLossError."""
    try:
        yield
    except (LookupError, MalformedCollectionError, TypeError, UnicodeDecodeError) as error:
        text = str(error.args[0]) if error.args else repr(error)
        raise DataLossError.explained(
            f"The SavedModel in {folder!r} is damaged",
            received=text.splitlines()[0][:300],
            hint="copy or export the model again",
        ) from error


def _warn_of_missing(graph: Graph, meta_graph: Any, scope: str) -> None:
    """Warns of signatures whose nodes were not imported (`load_meta_graph` logged why)."""
    there = {op.name for op in graph.get_operations()}
    for key, signature in meta_graph.signature_def.items():
        names = [info.name.partition(":")[0] for info in signature.outputs.values() if info.name]
        lacking = [name for name in names if scope + name not in there]
        if lacking:
            logger.warning("The signature %r lacks the outputs %s.", key, ", ".join(lacking))


def meta_graph_with_tags(folder: str, tags: Iterable[str]) -> Any:
    """Returns the `MetaGraphDef` of a SavedModel with exactly these tags.

    Args:
        folder: the model's folder.
        tags: one tag, or several.

    Raises:
        OSError, DataLossError, RuntimeError: see `load`.
    """
    tags = {tags} if isinstance(tags, str) else set(tags)
    there = []
    for meta_graph in read_saved_model(folder).meta_graphs:
        found = set(meta_graph.meta_info_def.tags)
        if found == tags:
            return _whole(meta_graph)
        there.append(",".join(sorted(found)) or "(none)")
    raise RuntimeError(
        explain(
            f"MetaGraphDef associated with tags {','.join(sorted(tags))!r} could not be found in "
            "SavedModel",
            expected=" or ".join(map(repr, there)),
            received=repr(",".join(sorted(tags))),
        )
    )


def _whole(meta_graph: Any) -> Any:
    """Returns the package's own graph if the model has one, else the `MetaGraphDef` itself."""
    held = meta_graph.collection_def.get(constants.OWN_META_GRAPH_KEY)
    if held is None:
        return meta_graph
    from google.protobuf.message import DecodeError

    try:
        return type(meta_graph).FromString(held.bytes_list.value[0])
    except (DecodeError, IndexError) as error:
        raise DataLossError(None, None, f"The model's own graph is damaged: {error}") from error


def init_op_name(meta_graph: Any) -> str | None:
    """Returns the name of the operation to run when the model is loaded, or None."""
    signature = meta_graph.signature_def.get(constants.INIT_OP_SIGNATURE_KEY)
    if signature is not None:
        key = constants.INIT_OP_SIGNATURE_KEY
        return str(signature.outputs[key].name)
    for key in (constants.MAIN_OP_KEY, constants.LEGACY_INIT_OP_KEY):
        held = meta_graph.collection_def.get(key)
        if held is not None and held.node_list.value:
            return str(held.node_list.value[0])
    return None


__all__ = [
    "SavedModelLoader",
    "contains_saved_model",
    "init_op_name",
    "load",
    "maybe_saved_model_directory",
    "meta_graph_with_tags",
]
__dir__ = listing(__name__)
