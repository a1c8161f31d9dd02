"""Loaded graphs touch files and Python only if they are trusted."""

from __future__ import annotations

import importlib
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.core import registry
from estimatorkit.core.errors import PermissionDeniedError

REFUSED = "comes from a graph that was loaded, and accesses"


def saved(folder: Path, outputs: Callable[[], Any], main_op: Callable[[], Any] = tf.no_op) -> str:
    """A SavedModel; `outputs` and `main_op` add to its graph."""
    with tf.Graph().as_default(), tf.Session() as sess:
        tensor = outputs()
        signature = tf.saved_model.predict_signature_def(
            {"x": tf.placeholder(tf.float32, [None])}, {"y": tensor}
        )
        builder = tf.saved_model.Builder(str(folder))
        builder.add_meta_graph_and_variables(
            sess,
            [tf.saved_model.tag_constants.SERVING],
            {tf.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY: signature},
            assets_collection=tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS) or None,
            main_op=main_op(),
        )
        builder.save()
    return str(folder)


def loaded(folder: str, trusted: bool = False) -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.saved_model.loader.load(sess, ["serve"], folder, trusted=trusted)


def test_initializer_that_writes_a_file(tmp_path: Path) -> None:
    target = tmp_path / "written"
    model = saved(
        tmp_path / "model", lambda: tf.constant(1.0), lambda: tf.write_file(str(target), "mine")
    )
    with pytest.raises(PermissionDeniedError, match=r"WriteFile operation 'WriteFile'.* files"):
        loaded(model)
    assert not target.exists()
    loaded(model, trusted=True)
    assert target.read_text() == "mine"


def in_cond(f: Callable[[], Any]) -> Any:
    return tf.cond(tf.placeholder_with_default(True, []), f, lambda: tf.constant(b""))


def in_loop(f: Callable[[], Any]) -> Any:
    return tf.while_loop(lambda i, _: i < 1, lambda i, _: (i + 1, f()), [0, tf.constant(b"")])[1]


def in_map(f: Callable[[], Any]) -> Any:
    return tf.map_fn(lambda _: f(), tf.range(2), tf.string)[0]


@pytest.mark.parametrize("around", [in_cond, in_loop, in_map, lambda f: f()])
def test_functions_of_imported_graphs(tmp_path: Path, around: Callable[[Any], Any]) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hidden")
    with tf.Graph().as_default() as graph:
        name = around(lambda: tf.read_file(str(secret))).name
    graph_def = graph.as_graph_def()
    for node in graph_def.node:  # a writer who claims that it is trusted
        node.attr["_untrusted"].s = str(tmp_path).encode()
    with tf.Graph().as_default(), tf.Session() as sess:
        [read] = tf.import_graph_def(graph_def, return_elements=[name])
        with pytest.raises(PermissionDeniedError, match=REFUSED):
            sess.run(read)
    with tf.Graph().as_default(), tf.Session() as sess:
        [read] = tf.import_graph_def(graph.as_graph_def(), return_elements=[name], trusted=True)
        assert sess.run(read) == b"hidden"


def test_own_graphs_are_unaffected(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with tf.Graph().as_default(), tf.Session() as sess:
        with tf.Graph().as_default():
            tf.constant(1)
            graph_def = tf.get_default_graph().as_graph_def()
        tf.import_graph_def(graph_def)
        assert sess.run(tf.read_file(str(tmp_path / "file"))) == b"mine"


# -- every row

SESSION_ONLY = {
    *("AccumulatorApplyGradient", "AccumulatorNumAccumulated", "AccumulatorSetGlobalStep"),
    *("AccumulatorTakeGradient", "SparseAccumulatorApplyGradient", "SparseAccumulatorTakeGradient"),
    *("ConditionalAccumulator", "SparseConditionalAccumulator", "CountUpTo"),
    *("LookupTableImportV2", "Assert", "CheckNumerics", "Placeholder", "Print", "Timestamp"),
    *("AssertVariablesInitialized", "InitializedValue", "ReportUninitializedVariables"),
    *("VarIsInitializedOp", "DeleteSessionTensor", "GetSessionHandle", "GetSessionTensor"),
    *("Call", "If", "Scan", "While", "VectorJacobianProduct", "ExecuteInCriticalSection"),
    *("FIFOQueueV2", "PaddingFIFOQueueV2", "PriorityQueueV2", "RandomShuffleQueueV2", "MutexV2"),
    *("QueueClear", "QueueCloseV2", "QueueDequeueManyV2", "QueueDequeueV2", "QueueSizeV2"),
    *("QueueEnqueueManyV2", "QueueEnqueueV2", "QueueEnqueueWhere", "QueueIsClosedV2"),
    *("FixedLengthRecordReaderV2", "IdentityReaderV2", "TFRecordReaderV2", "TextLineReaderV2"),
    *("WholeFileReaderV2", "ReaderNumRecordsProducedV2", "ReaderNumWorkUnitsCompletedV2"),
    *("ReaderResetV2", "ReaderRestoreStateV2", "ReaderSerializeStateV2"),
    *("HashTableV2", "MutableHashTableV2", "InitializeTableV2", "LookupTableExportV2"),
    *("LookupTableFindOrHash", "LookupTableFindV2", "LookupTableInsertV2", "LookupTableRemoveV2"),
    *("LookupTableSizeV2", "LearnedUnigramCandidateSampler", "UnigramSampler"),
    *("DatasetVariant", "Iterator", "IteratorGetNext", "IteratorGetNextOf"),
    *("IteratorToStringHandle", "MakeIterator", "DatasetToSingleElement", "ReduceDataset"),
    *("QueueReopen", "EmbeddingRows", "KeepExamples", "KeptExamples", "GroupedListSums"),
    *("BuildNearestNeighbors", "NearestNeighbors"),
    *("IteratorGetNextAsOptional", "OptionalFromValue", "OptionalGetValue", "OptionalHasValue"),
    "OptionalNone",
}
"""Host rows with a state or a side effect, which is the session's, a stream's or a function's.

Datasets are objects in memory, which no file can hold.
"""


def test_ops_declare_their_effects() -> None:
    package = Path(tf.__file__).parent
    for path in package.rglob("*.py"):  # also those that are imported when they are needed
        if re.search(r"^register(_handle)?\(|^    register\(", path.read_text("utf-8"), re.M):
            importlib.import_module(
                ".".join(path.relative_to(package.parent).with_suffix("").parts)
            )
    undecided = {
        row.type
        for row in map(registry.lookup, registry.registered_types())
        if row.kernel.__module__.startswith("estimatorkit.")  # not those of other tests
        and row.placement.where != "device"
        and (row.placement.context or not row.semantics.pure)
        and not row.semantics.effects
    }
    assert undecided - SESSION_ONLY == set()


_touched: list[tuple[str, str]] = []
_audited: int | None = None


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if threading.get_ident() == _audited and event.partition(".")[0] in (
        *("open", "os", "socket", "subprocess", "shutil", "glob", "ctypes", "urllib", "import"),
    ):
        shown = repr(arguments)[:200]
        if str(jax.config.jax_compilation_cache_dir) not in shown:
            _touched.append((event, shown))


@pytest.fixture
def touched() -> Iterator[list[tuple[str, str]]]:
    """The files, sockets and processes that this thread touches."""
    global _audited
    sys.addaudithook(_audit)
    yield _touched
    _audited = None


def test_ops_without_effects_touch_nothing(touched: list[tuple[str, str]], tmp_path: Path) -> None:
    global _audited
    count = 0
    for row in map(registry.lookup, registry.registered_types()):
        kernel = row.kernel if row.placement.where == "host" else row.numpy_kernel
        if kernel is None or row.placement.context or row.semantics.random or row.semantics.effects:
            continue
        for case in row.cases():
            inputs = [np.asarray(each) for each in case.inputs]
            attrs = {key: value for key, value in case.attrs.items() if key[0] != "_"}
            with np.errstate(all="ignore"):
                kernel(*inputs, **attrs)  # what it imports
                _audited = threading.get_ident()
                try:
                    kernel(*inputs, **attrs)
                finally:
                    _audited = None
            assert touched == [], row.type
            count += 1
    assert count > 300
    _audited = threading.get_ident()
    registry.lookup("WriteFile").kernel(os.fsencode(tmp_path / "file"), b"text")
    _audited = None
    assert touched
    touched.clear()
