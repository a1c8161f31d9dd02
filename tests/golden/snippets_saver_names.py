"""Savers of every form of `var_list`, and the ways of their graphs, as functions of the module
used as `tf`.

`results(tf, form, folder)` saves the model of a form, lists the tensors of the checkpoint, and then
for each way exports the graph, imports it, restores, and returns what the variables hold.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np


def pair(tf: Any) -> tuple[Any, Any]:
    """Variables a = 1 and b = 2, and out = a + 10 b."""
    a = tf.get_variable("a", initializer=tf.constant(1.0))
    b = tf.get_variable("b", initializer=tf.constant(2.0))
    tf.add(a, 10.0 * b, name="out")
    return a, b


def everything(tf: Any) -> Any:
    """No `var_list`."""
    pair(tf)
    return tf.train.Saver()


def listed(tf: Any) -> Any:
    """One of two variables."""
    a, _ = pair(tf)
    return tf.train.Saver([a])


def same_names(tf: Any) -> Any:
    """A dict that renames nothing."""
    a, b = pair(tf)
    return tf.train.Saver({"a": a, "b": b})


def other_names(tf: Any) -> Any:
    """A dict of one variable under another name."""
    a, _ = pair(tf)
    return tf.train.Saver({"x/a": a})


def swapped(tf: Any) -> Any:
    """Each variable under the other's name."""
    a, b = pair(tf)
    return tf.train.Saver({"a": b, "b": a})


def named(tf: Any) -> Any:
    """A Saver with a name, and settings."""
    a, b = pair(tf)
    return tf.train.Saver({"a": b, "b": a}, name="mine", max_to_keep=2)


def sharded(tf: Any) -> Any:
    """A sharded Saver of variables on two devices."""
    with tf.device("/cpu:0"):
        a = tf.get_variable("a", initializer=tf.constant(1.0))
    b = tf.get_variable("b", initializer=tf.constant(2.0))
    tf.add(a, 10.0 * b, name="out")
    return tf.train.Saver({"a": b, "b": a}, sharded=True)


def version_1(tf: Any) -> Any:
    """The first format of checkpoints."""
    a, b = pair(tf)
    return tf.train.Saver({"a": b, "b": a}, write_version=tf.train.SaverDef.V1)


def in_sequence(tf: Any) -> Any:
    """One operation after the other."""
    a, b = pair(tf)
    return tf.train.Saver({"a": b, "b": a}, restore_sequentially=True)


def reshaped(tf: Any) -> Any:
    """A vector, with `reshape`."""
    a = tf.get_variable("a", initializer=tf.constant([1.0, 2.0, 3.0, 4.0]))
    tf.identity(a, name="out")
    return tf.train.Saver({"other": a}, reshape=True)


def in_scopes(tf: Any) -> Any:
    """Variables of scopes, saved under shorter names."""
    with tf.variable_scope("model/deep"):
        a, b = pair(tf)
    tf.add(a, b, name="out")
    return tf.train.Saver({"deep/a": a, "b": b})


def partitioned(tf: Any) -> Any:
    """A variable in two parts."""
    parts = tf.get_variable(
        "w",
        initializer=tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]),
        partitioner=lambda shape, dtype: [2, 1],
    )
    tf.identity(tf.convert_to_tensor(parts), name="out")
    return tf.train.Saver()


def partitioned_elsewhere(tf: Any) -> Any:
    """A variable in two parts, under its name, beside one of another name."""
    parts = tf.get_variable(
        "w",
        shape=[5, 2],
        initializer=tf.ones_initializer(),
        partitioner=tf.fixed_size_partitioner(2),
    )
    with tf.variable_scope("v"):
        a = tf.get_variable("a", initializer=tf.constant(1.0))
    tf.add(tf.convert_to_tensor(parts), a, name="out")
    return tf.train.Saver({"w": list(parts), "c": a})


def averages(tf: Any) -> Any:
    """Moving averages, restored in place of the variables."""
    a, b = pair(tf)
    average = tf.train.ExponentialMovingAverage(0.5)
    with tf.control_dependencies([tf.assign_add(a, 4.0), tf.assign_add(b, 8.0)]):
        tf.group(average.apply([a, b]), name="step")
    return tf.train.Saver(average.variables_to_restore())


def slots(tf: Any) -> Any:
    """An optimizer's slots."""
    a, b = pair(tf)
    tf.train.MomentumOptimizer(0.5, 0.5).minimize(a * b, name="step")
    return tf.train.Saver()


def local(tf: Any) -> Any:
    """Local variables only."""
    a, _ = pair(tf)
    c = tf.get_local_variable("c", initializer=tf.constant(3.0))
    tf.group(tf.assign_add(c, a), name="step")
    return tf.train.Saver(tf.local_variables())


def in_no_collection(tf: Any) -> Any:
    """A variable of no collection."""
    a, _ = pair(tf)
    c = tf.get_variable("c", initializer=tf.constant(3.0), collections=["mine"])
    d = tf.get_variable("d", initializer=tf.constant(4.0), collections=[])
    tf.add(c, d, name="sum")
    tf.group(c.initializer, d.initializer, name="more")
    return tf.train.Saver({"p": d, "q": c, "r": a})


def two_savers(tf: Any) -> Any:
    """Another Saver of the same graph comes first."""
    a, b = pair(tf)
    tf.train.Saver([a])
    return tf.train.Saver({"bb": b, "aa": a})


def control_flow(tf: Any) -> Any:
    """A variable that a loop and a condition read."""
    a, b = pair(tf)
    total = tf.while_loop(lambda n, _: n < 3.0, lambda n, x: (n + 1.0, x + b), (0.0, a))[1]
    tf.cond(total > 3.0, lambda: total * a, lambda: total, name="choice")
    tf.identity(total, name="total")
    return tf.train.Saver({"a": b, "b": a})


def dtypes(tf: Any) -> Any:
    """Integers, bool and float64."""
    made = {
        name: tf.get_variable(name, initializer=tf.constant(value))
        for name, value in (
            ("n", np.int64(7)),
            ("t", np.array([True, False])),
            ("d", np.float64(0.1)),
        )
    }
    return tf.train.Saver({"n": made["n"], "second": made["t"], "third": made["d"]})


def table(tf: Any) -> Any:
    """A mutable table beside variables."""
    pair(tf)
    held = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1, name="words")
    tf.group(held.insert(tf.constant(["x", "y"]), np.array([5, 6], np.int64)), name="step")
    tf.identity(held.lookup(tf.constant(["x", "y", "z"])), name="found")
    return tf.train.Saver()


def table_of_vectors(tf: Any) -> Any:
    """A mutable table of vectors only."""
    held = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, [0.0, -1.0], name="t")
    keys, rows = np.array([3, 4], np.int64), np.array([[1, 2], [3, 4]], np.float32)
    tf.group(held.insert(tf.constant(keys), tf.constant(rows)), name="step")
    tf.identity(held.lookup(tf.constant([4, 9], tf.int64)), name="found")
    return tf.train.Saver()


def dense_table(tf: Any) -> Any:
    """A mutable table with reserved keys, and a static one."""
    held = tf.lookup.experimental.DenseHashTable(
        tf.int64,
        tf.int64,
        default_value=-1,
        empty_key=0,
        deleted_key=-1,
        initial_num_buckets=4,
        name="dense",
    )
    keys = tf.constant(np.array([3, 4], np.int64))
    tf.group(held.insert(keys, keys * 10), name="step")
    static = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["x"], [9]), -1)
    tf.group(tf.tables_initializer(), name="more")
    tf.identity(held.lookup(tf.constant([4, 9], tf.int64)), name="found")
    tf.identity(static.lookup(tf.constant(["x", "y"])), name="sum")
    return tf.train.Saver()


FORMS: dict[str, Callable[[Any], Any]] = {
    each.__name__: each
    for each in (
        *(everything, listed, same_names, other_names, swapped, named, sharded, version_1),
        *(in_sequence, reshaped, in_scopes, partitioned, partitioned_elsewhere, averages, slots),
        *(local, in_no_collection, two_savers, control_flow, dtypes),
        *(table, table_of_vectors, dense_table),
    )
}

READ = ("out", "total", "sum", "found", "choice/Merge")


def held(tf: Any, session: Any, scope: str = "") -> dict[str, Any]:
    """What the variables of a graph hold, and what its outputs are."""
    found: dict[str, Any] = {}
    graph = session.graph
    listed = [*tf.global_variables(), *tf.local_variables()]
    for variable in listed:
        key = f"variable {variable.op.name}"
        try:
            found[key] = session.run(variable).tolist()
        except tf.errors.FailedPreconditionError:
            found[key] = "uninitialized"
    names = {op.name for op in graph.get_operations()}
    for name in READ:
        if scope + name in names:
            try:
                found[name] = session.run(f"{scope}{name}:0").tolist()
            except tf.errors.FailedPreconditionError:
                found[name] = "uninitialized"
    return found


def plainly(tf: Any, saver: Any, given: Mapping[str, Any]) -> tuple[Any, str]:
    """The graph beside the checkpoint."""
    return tf.train.import_meta_graph(f"{given['path']}.meta"), ""


def into_scope(tf: Any, saver: Any, given: Mapping[str, Any]) -> tuple[Any, str]:
    """`import_scope`."""
    return tf.train.import_meta_graph(f"{given['path']}.meta", import_scope="s/t"), "s/t/"


def twice(tf: Any, saver: Any, given: Mapping[str, Any]) -> tuple[Any, str]:
    """A second time, under another scope."""
    tf.train.import_meta_graph(f"{given['path']}.meta", import_scope="one")
    return tf.train.import_meta_graph(f"{given['path']}.meta", import_scope="two"), "two/"


def in_name_scope(tf: Any, saver: Any, given: Mapping[str, Any]) -> tuple[Any, str]:
    """A name scope around it."""
    with tf.name_scope("around"):
        return tf.train.import_meta_graph(f"{given['path']}.meta"), "around/"


def without_devices(tf: Any, saver: Any, given: Mapping[str, Any]) -> tuple[Any, str]:
    """`clear_devices`."""
    return tf.train.import_meta_graph(f"{given['path']}.meta", clear_devices=True), ""


def by_function(tf: Any, saver: Any, given: Mapping[str, Any]) -> tuple[Any, str]:
    """`export_meta_graph` of the module, with `saver_def`."""
    with given["graph"].as_default():
        made = tf.train.export_meta_graph(saver_def=saver.as_saver_def())
    return tf.train.import_meta_graph(made), ""


def by_function_into_scope(tf: Any, saver: Any, given: Mapping[str, Any]) -> tuple[Any, str]:
    """`export_meta_graph` of the module, with `saver_def`, and `import_scope`."""
    with given["graph"].as_default():
        made = tf.train.export_meta_graph(saver_def=saver.saver_def)
    return tf.train.import_meta_graph(made, import_scope="s"), "s/"


def without_saver(tf: Any, saver: Any, given: Mapping[str, Any]) -> tuple[Any, str]:
    """`export_meta_graph` of the module, without `saver_def`."""
    with given["graph"].as_default():
        made = tf.train.export_meta_graph()
    return tf.train.import_meta_graph(made), ""


def without_saver_into_scope(tf: Any, saver: Any, given: Mapping[str, Any]) -> tuple[Any, str]:
    """`export_meta_graph` of the module, without `saver_def`, and `import_scope`."""
    with given["graph"].as_default():
        made = tf.train.export_meta_graph()
    return tf.train.import_meta_graph(made, import_scope="s"), "s/"


def by_saver_def(tf: Any, saver: Any, given: Mapping[str, Any]) -> tuple[Any, str]:
    """A Saver of the `SaverDef`."""
    with given["graph"].as_default():
        made = saver.export_meta_graph()
    tf.train.import_meta_graph(made)
    return tf.train.Saver(saver_def=made.saver_def), ""


def from_proto(tf: Any, saver: Any, given: Mapping[str, Any]) -> tuple[Any, str]:
    """`Saver.from_proto`, under a scope."""
    with given["graph"].as_default():
        made = saver.export_meta_graph()
    tf.train.import_meta_graph(made, import_scope="s")
    return tf.train.Saver.from_proto(saver.to_proto(), import_scope="s"), "s/"


class Operations:
    """Restores and saves by the operations that a `SaverDef` names."""

    def __init__(self, saver_def: Any) -> None:
        self._def = saver_def

    def restore(self, session: Any, path: str) -> None:
        """Runs the restore operation."""
        session.run(self._def.restore_op_name, {self._def.filename_tensor_name: path})

    def save(self, session: Any, path: str, write_meta_graph: bool = False) -> str:
        """Fetches the save tensor."""
        session.run(self._def.save_tensor_name, {self._def.filename_tensor_name: path})
        return path


def by_operations(tf: Any, saver: Any, given: Mapping[str, Any]) -> tuple[Any, str]:
    """The operations themselves, in the imported graph."""
    made = tf.train.import_meta_graph(f"{given['path']}.meta", **given["trust"])
    return Operations(made.saver_def), ""


WRITTEN = (
    *("swapped", "sharded", "version_1", "partitioned", "in_no_collection"),
    *("table", "table_of_vectors", "dense_table"),
)
"""Forms whose checkpoints and graphs by TensorFlow are kept in `saver_names/`."""

READ_BACK = ("plainly", "into_scope", "in_name_scope", "by_operations")
"""The ways to read these."""

WAYS: dict[str, Callable[..., tuple[Any, str]]] = {
    each.__name__: each
    for each in (
        *(plainly, into_scope, twice, in_name_scope, without_devices, by_function),
        *(by_function_into_scope, without_saver, without_saver_into_scope, by_saver_def),
        *(from_proto, by_operations),
    )
}


def written(tf: Any, form: str, folder: str) -> tuple[Any, Any, str, dict[str, Any]]:
    """The graph of a form, its Saver, the path of its checkpoint, and what is in it."""
    graph = tf.Graph()
    with graph.as_default(), tf.Session() as session:
        saver = FORMS[form](tf)
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        names = {op.name for op in graph.get_operations()}
        for name in ("more", "step"):
            if name in names:
                session.run(name)
        path = saver.save(session, os.path.join(folder, f"{form}.ckpt"))
        return graph, saver, path, {"saved": contents(tf, path), "held": held(tf, session)}


def results(tf: Any, form: str, folder: str, **trust: Any) -> dict[str, Any]:
    """What a form saves, and for each way what is restored and saved again.

    `trust` are arguments for an import whose operations access files.
    """
    graph, saver, path, found = written(tf, form, folder)
    for way, function in WAYS.items():
        given = {"graph": graph, "path": path, "trust": trust}
        found[way] = outcome(tf, partial(restored, tf, function, saver, given))
    return found


def contents(tf: Any, path: str) -> dict[str, Any]:
    """The shapes of the tensors in a checkpoint."""
    return {name: list(shape) for name, shape in sorted(tf.train.list_variables(path))}


def restored(tf: Any, way: Any, saver: Any, given: Mapping[str, Any]) -> Any:
    """What a graph holds after a way, and what its Saver writes."""
    with tf.Graph().as_default(), tf.Session() as session:
        other, scope = way(tf, saver, given)
        if other is None:
            return "no Saver"
        names = {op.name for op in session.graph.get_operations()}
        if f"{scope}more" in names and "dense" in given["path"]:
            session.run(f"{scope}more")
        other.restore(session, given["path"])
        again = other.save(session, f"{given['path']}-again", write_meta_graph=False)
        return {**held(tf, session, scope), "saved": contents(tf, again)}


def outcome(tf: Any, action: Callable[[], Any]) -> Any:
    """A result, or the class of the error."""
    try:
        return action()
    except (tf.errors.OpError, ValueError, TypeError, KeyError, RuntimeError) as error:
        return f"{type(error).__name__}"
