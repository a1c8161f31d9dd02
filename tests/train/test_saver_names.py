"""A Saver's mapping from names to variables survives saving, exporting, importing and restoring.

The operations that it adds are run on their own, too: ShardedFilename, MergeV2Checkpoints, SaveV2,
RestoreV2, and LookupTableImportV2 of tables.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import estimatorkit as tf
from estimatorkit.compat.private.framework_meta_graph import copy_scoped_meta_graph
from tests.golden.snippets_saver_names import FORMS, READ_BACK, WAYS, WRITTEN, restored, results
from tests.sweep import sweep

FOLDER = Path(__file__).parents[1] / "golden"
GOLDEN = json.loads((FOLDER / "saver_names.json").read_text("utf-8"))


def plain(value: Any) -> Any:
    return json.loads(json.dumps(value))


def without_buckets(form: str, found: Any) -> Any:
    """The checkpoint of a dense table has its entries here, all buckets in TensorFlow."""
    if form == "dense_table" and isinstance(found, dict):
        return {key: value for key, value in found.items() if key != "saved"}
    return found


@sweep("form", FORMS, quick=2)
def test_restored_values_match_tensorflow(form: str, tmp_path: Path) -> None:
    found = plain(results(tf, form, str(tmp_path), trusted=True))
    different = {}
    for way in ("held", "saved", *WAYS):
        expected = without_buckets(form, GOLDEN[form][way])
        ours = without_buckets(form, found[way])
        # TensorFlow stumbles over tables without a `SaverDef`, and over graphs of tables alone.
        known = expected == "TypeError" or (form == "dense_table" and way == "saved")
        if not known and ours != expected:
            different[way] = (expected, ours)
    assert not different


@sweep(("form", "way"), [(form, way) for form in WRITTEN for way in READ_BACK], quick=6)
def test_tensorflow_graphs(form: str, way: str, tmp_path: Path) -> None:
    shutil.copytree(FOLDER / "saver_names", tmp_path / "model")
    path = os.path.join(tmp_path, "model", f"{form}.ckpt")
    given = {"path": path, "trust": {"trusted": True}}
    found = plain(restored(tf, WAYS[way], None, given))
    if GOLDEN[form][way] != "TypeError":
        assert without_buckets(form, found) == without_buckets(form, GOLDEN[form][way])


def test_imported_saver_ops_need_trust(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("a", initializer=1.0)
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(session, str(tmp_path / "m"))
    with tf.Graph().as_default(), tf.Session() as session:
        saver = tf.train.import_meta_graph(f"{path}.meta")
        feeds = {saver.saver_def.filename_tensor_name: path}
        with pytest.raises(tf.errors.PermissionDeniedError, match="trusted"):
            session.run(saver.saver_def.restore_op_name, feeds)
        saver.restore(session, path)


def test_other_savers_are_omitted_from_export() -> None:
    with tf.Graph().as_default():
        a = tf.get_variable("a", initializer=1.0)
        tf.train.Saver([a])
        saver = tf.train.Saver({"b": a}, max_to_keep=3)
        tf.add_to_collection(tf.GraphKeys.SAVERS, saver)
        scopes = []
        for cleared in (False, True):
            made = saver.export_meta_graph(clear_extraneous_savers=cleared)
            scopes.append({node.name.split("/")[0] for node in made.graph_def.node})
    assert scopes == [{"a", "save", "save_1"}, {"a", "save_1"}]
    with tf.Graph().as_default() as graph:
        tf.train.import_meta_graph(made, import_scope="s")
        (found,) = graph.get_collection(tf.GraphKeys.SAVERS)
    assert list(found.saved_items) == ["b"]
    assert found.saver_def.restore_op_name == "s/save_1/restore_all"
    assert found.saver_def.max_to_keep == 3
    assert found.to_proto("s").restore_op_name == "save_1/restore_all"
    assert found.to_proto("t") is None


def test_saver_of_finalized_graph(tmp_path: Path) -> None:
    with tf.Graph().as_default() as graph, tf.Session() as session:
        a = tf.get_variable("a", initializer=1.0)
        session.run(a.initializer)
        graph.finalize()
        saver = tf.train.Saver()
        assert graph.finalized
        path = saver.save(session, str(tmp_path / "m"))
        assert session.run(a) == 1.0
    with tf.Graph().as_default(), tf.Session() as session:
        tf.train.import_meta_graph(f"{path}.meta").restore(session, path)


def test_operation_names() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        a = tf.get_variable("a", initializer=1.0)
        with tf.name_scope("scope"):
            inner = tf.train.Saver([a])
        savers = [inner, *(tf.train.Saver([a]) for _ in range(2)), tf.train.Saver([a], name="x/")]
        names = [saver.saver_def.restore_op_name.removesuffix("restore_all") for saver in savers]
        assert names == ["scope/save/", "save/", "save_1/", "x/"]  # as TensorFlow
        made = tf.train.Saver([a], name="mine", filename="some").saver_def
        assert made.filename_tensor_name == "mine/Const:0"
        assert made.save_tensor_name == "mine/control_dependency:0"
        assert session.run(made.filename_tensor_name) == b"some"


def test_saver_is_copied_with_scope(tmp_path: Path) -> None:
    graph = tf.Graph()
    with graph.as_default(), tf.Session() as session:
        with tf.name_scope("one"):
            first = tf.Variable([1.0], name="v")
            savers = [tf.train.Saver([first])]
        with tf.name_scope("two"):
            second = tf.Variable([2.0], name="v")
        savers.append(tf.train.Saver([second], name="two/"))
        session.run(tf.global_variables_initializer())
        paths = []
        for number, saver in enumerate(savers):
            tf.add_to_collection(tf.GraphKeys.SAVERS, saver)
            paths.append(saver.save(session, str(tmp_path / f"m{number}")))
    for scope, path, value in (("one", paths[0], 1.0), ("two", paths[1], 2.0)):
        copied = tf.Graph()
        variables = copy_scoped_meta_graph(scope, f"new_{scope}", graph, copied)
        assert list(variables) == ["v:0"]
        (saver,) = copied.get_collection(tf.GraphKeys.SAVERS)
        with tf.Session(graph=copied) as session:
            saver.restore(session, path)
            assert session.run(variables["v:0"]).tolist() == [value]
