"""Partitioned variables in checkpoints: one tensor, whatever the partitions."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import optax
import pytest

import estimatorkit.compat.v1 as tf
from estimatorkit.compat.train.optimizers.moving_average_optimizer import MovingAverageOptimizer
from estimatorkit.storage.checkpoint import read_checkpoint
from estimatorkit.train.optimizers.optax_optimizer import OptaxOptimizer
from tests.sweep import sweep

TABLE = np.arange(28.0, dtype=np.float32).reshape(7, 4)


def table(parts: int | None, axis: int = 0, **options: Any) -> Any:
    partitioner = None if parts is None else tf.fixed_size_partitioner(parts, axis)
    start = tf.constant_initializer(TABLE) if parts is None else None
    return tf.get_variable("table", [7, 4], initializer=start, partitioner=partitioner, **options)


def whole(session: tf.Session, variable: Any, axis: int = 0) -> Any:
    if isinstance(variable, tf.Variable):
        return session.run(variable)
    return np.concatenate(session.run(list(variable)), axis)


OPTIMIZERS: dict[str, tuple[Any, list[str]]] = {
    "adam": (lambda: tf.train.AdamOptimizer(0.1), ["table/Adam", "table/Adam_1"]),
    "momentum": (lambda: tf.train.MomentumOptimizer(0.1, 0.9), ["table/Momentum"]),
    "keras": (lambda: tf.keras.optimizers.Adagrad(0.1), ["training/Adagrad/table/accumulator"]),
    "optax": (lambda: OptaxOptimizer(optax.sgd(0.1, 0.9)), ["Optax/0/trace/table"]),
}


def trained(
    name: str, parts: int | None, axis: int, path: Path, steps: int, restore: bool = False
) -> Any:
    """The path of a checkpoint after some steps, and the loss of the next one."""
    with tf.Graph().as_default(), tf.Session() as session:
        variable = table(parts, axis)
        ids = tf.constant([0, 3, 6, 6])
        rows = variable if axis else tf.nn.embedding_lookup(variable, ids, "div")
        loss = tf.reduce_sum(tf.square(tf.convert_to_tensor(rows) - 0.5))
        step = tf.train.get_or_create_global_step()
        train = OPTIMIZERS[name][0]().minimize(loss, global_step=step)
        session.run(tf.global_variables_initializer())
        if not restore and parts is not None:
            cut = np.array_split(TABLE, parts, axis)
            session.run([each.assign(value) for each, value in zip(variable, cut, strict=True)])
        saver = tf.train.Saver()
        if restore:
            saver.restore(session, path)
        for _ in range(steps):
            session.run(train)
        return saver.save(session, path.with_name("again" if restore else path.name)), session.run(
            loss
        )


CUTS = [(2, 3, 0), (3, 1, 1), (1, 2, 0), (4, None, 1), (None, 3, 0), (3, None, 0), (None, 2, 1)]


@sweep(
    ("name", "before", "after", "axis"),
    [(name, *cut) for name, cut in zip(itertools.cycle(OPTIMIZERS), CUTS * 2, strict=False)],
    quick=1,
)
def test_training_resumes_with_other_partitions(
    name: str, before: int | None, after: int | None, axis: int, tmp_path: Path
) -> None:
    _, wanted = trained(name, before, axis, tmp_path / "straight", 5)
    path, _ = trained(name, before, axis, tmp_path / "first", 3)
    wholes = [each for each, shape in tf.train.list_variables(path) if shape == [7, 4]]
    assert wholes == sorted(["table", *OPTIMIZERS[name][1]])
    again, found = trained(name, after, axis, Path(path), 2, restore=True)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    assert tf.train.list_variables(again) == tf.train.list_variables(path)


@pytest.mark.slow
def test_averages_are_named_after_the_whole(tmp_path: Path) -> None:
    def built(parts: int | None) -> tuple[Any, Any, Any]:
        variable = table(parts)
        own = [variable] if parts is None else list(variable)
        averages = tf.train.ExponentialMovingAverage(0.5)
        return variable, averages, averages.apply(own)

    with tf.Graph().as_default(), tf.Session() as session:
        variable, _, apply = built(2)
        session.run(tf.global_variables_initializer())
        start = whole(session, variable)
        session.run([part.assign(part * 3) for part in variable])
        session.run(apply)
        path = tf.train.Saver().save(session, tmp_path / "m")
    names = ["table", "table/ExponentialMovingAverage"]
    assert [name for name, _ in tf.train.list_variables(path)] == names
    for parts in (2, 3, None):
        with tf.Graph().as_default(), tf.Session() as session:
            variable, averages, _ = built(parts)
            session.run(tf.global_variables_initializer())
            wanted = averages.variables_to_restore()
            tf.train.Saver(wanted).restore(session, path)
            np.testing.assert_allclose(whole(session, variable), start * 2, rtol=1e-6)


@pytest.mark.slow
def test_swapping_savers(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        variable = table(2)
        loss = tf.reduce_sum(tf.nn.embedding_lookup(variable, [0, 6], "div") ** 2)
        optimizer = MovingAverageOptimizer(tf.train.GradientDescentOptimizer(0.1), 0.5)
        step = optimizer.minimize(loss)
        session.run(tf.global_variables_initializer())
        session.run(step)
        path = optimizer.swapping_saver().save(session, tmp_path / "m")
        average = [each for each in tf.global_variables() if "ExponentialMoving" in each.name]
        wanted = np.concatenate(session.run(average))
    for parts in (3, None):
        with tf.Graph().as_default(), tf.Session() as session:
            variable = table(parts)
            tf.train.Saver().restore(session, path)
            np.testing.assert_array_equal(whole(session, variable), wanted)


def test_some_partitions_under_their_own_names(tmp_path: Path) -> None:
    with tf.Session() as session:
        variable = table(3)
        session.run(tf.global_variables_initializer())
        first, second, _ = variable
        saver = tf.train.Saver([first, second])
        path = saver.save(session, tmp_path / "m")
        assert tf.train.list_variables(path) == [("table/part_0", [3, 4]), ("table/part_1", [2, 4])]
        before = session.run(first)
        session.run(first.assign(first * 0))
        saver.restore(session, path)
        np.testing.assert_array_equal(session.run(first), before)


def test_custom_names(tmp_path: Path) -> None:
    with tf.Session() as session:
        variable = table(2)
        session.run(tf.global_variables_initializer())
        before = whole(session, variable)
        saver = tf.train.Saver({f"there/{part.op.name}": part for part in variable})
        path = saver.save(session, tmp_path / "m")
        assert tf.train.list_variables(path) == [("there/table", [7, 4])]
        apart = tf.train.Saver({"a": variable._variables[0], "b": variable._variables[1]})
        assert [
            name for name, _ in tf.train.list_variables(apart.save(session, tmp_path / "n"))
        ] == [
            "a",
            "b",
        ]
        session.run([part.assign(part * 0) for part in variable])
        saver.restore(session, path)
        np.testing.assert_array_equal(whole(session, variable), before)


def test_imported_graph_knows_partitions(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        with tf.variable_scope("model"):
            variable = table(2)
        tf.reduce_sum(tf.convert_to_tensor(variable) ** 2, name="sum")
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(session, tmp_path / "m")
        before = session.run("sum:0")
        (part, _) = variable
        assert part.save_slice_info.full_name == "model/table"
    with tf.Graph().as_default(), tf.Session() as session:
        tf.train.import_meta_graph(f"{path}.meta").restore(session, path)
        assert session.run("sum:0") == before
        again = tf.train.Saver().save(session, tmp_path / "again")
        assert tf.train.list_variables(again) == [("model/table", [7, 4])]
    with tf.Graph().as_default(), tf.Session() as session:
        saver = tf.train.import_meta_graph(f"{path}.meta", import_scope="outer")
        (first, second) = tf.global_variables()
        assert first.save_slice_info.full_name == "outer/model/table"
        named = {each.op.name.removeprefix("outer/"): each for each in (first, second)}
        tf.train.Saver(named).restore(session, path)
        assert session.run("outer/sum:0") == before
        assert saver is not None


def test_saved_model_holds_whole_variable(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.int32, [None], name="x")
        y = tf.identity(tf.nn.embedding_lookup(table(2), x), name="y")
        session.run(tf.global_variables_initializer())
        before = session.run(y, {x: [0, 5]})
        tf.saved_model.simple_save(session, str(tmp_path / "saved"), {"x": x}, {"y": y})
    names = [name for name, _ in tf.train.list_variables(tmp_path / "saved/variables/variables")]
    assert names == ["table"]
    with tf.Graph().as_default(), tf.Session() as session:
        tf.saved_model.load(session, ["serve"], str(tmp_path / "saved"))
        np.testing.assert_array_equal(session.run("y:0", {"x:0": [0, 5]}), before)


@pytest.mark.parametrize("parts", [None, 1, 2, 3])
def test_init_from_checkpoint_of_other_partitions(parts: int | None, tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        variable = table(2)
        session.run(tf.global_variables_initializer())
        wanted = whole(session, variable)
        path = tf.train.Saver().save(session, tmp_path / "m")
    with tf.Graph().as_default(), tf.Session() as session:
        variable = table(parts)
        tf.train.init_from_checkpoint(path, {"table": "table"})
        session.run(tf.global_variables_initializer())
        np.testing.assert_array_equal(whole(session, variable), wanted)
    with tf.Graph().as_default(), tf.Session() as session:
        variable = table(parts)
        tf.train.warm_start(path, [".*"])
        session.run(tf.global_variables_initializer())
        np.testing.assert_array_equal(whole(session, variable), wanted)


@pytest.mark.slow
def test_estimators_predict_with_other_partitions(tmp_path: Path) -> None:
    """Trained with the partitioner of a cluster, used without one."""
    words = [f"w{number}" for number in range(40)]
    column = tf.feature_column.categorical_column_with_vocabulary_list("word", words)

    def estimator(parts: int) -> Any:
        return tf.estimator.LinearClassifier(
            [column],
            model_dir=str(tmp_path / "model"),
            partitioner=tf.min_max_variable_partitioner(parts, min_slice_size=4),
            config=tf.estimator.RunConfig(tf_random_seed=1),
        )

    def input_fn() -> Any:
        labels = np.arange(40) % 2
        return tf.data.Dataset.from_tensor_slices(({"word": words}, labels)).batch(8)

    def predicted(parts: int) -> list[float]:
        return [float(each["logits"][0]) for each in estimator(parts).predict(input_fn)]

    estimator(4).train(input_fn, steps=5)
    names = estimator(1).get_variable_names()
    assert "linear/linear_model/word/weights" in names
    assert not any("part_" in name for name in names)
    found = predicted(4)
    assert len(set(np.sign(found))) == 2
    assert predicted(1) == predicted(3) == found
    estimator(2).train(input_fn, steps=5)
    assert estimator(2).evaluate(input_fn)["accuracy"] == 1.0


def test_mismatched_checkpoint_tensor_raises(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("table", [7, 5], partitioner=tf.fixed_size_partitioner(2))
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(session, tmp_path / "m")
    with tf.Graph().as_default(), tf.Session() as session:
        table(2)
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"(?s)table.*\(7, 4\).*\(7, 5\)"):
            tf.train.Saver().restore(session, path)


def test_files_equal_those_of_one_tensor(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        variable = table(3)
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(session, tmp_path / "m")
        np.testing.assert_array_equal(
            read_checkpoint(path).tensors["table"], whole(session, variable)
        )
        assert tf.train.load_variable(path, "table").shape == (7, 4)


def test_saved_model_restores_each_partition_from_its_slice(tmp_path: Path) -> None:
    """TensorFlow restores variables by the operations of the `SaverDef`."""
    with tf.Graph().as_default(), tf.Session() as session:
        parts = table(2)
        output = tf.convert_to_tensor(parts)
        session.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(
            session, str(tmp_path / "model"), {"x": tf.placeholder(tf.float32)}, {"table": output}
        )
    with tf.Graph().as_default(), tf.Session() as session:
        model = tf.saved_model.loader.load(session, ["serve"], str(tmp_path / "model"))
    nodes = {node.name: node for node in model.graph_def.node}
    texts = {
        name: list(nodes[f"save/RestoreV2/{name}"].attr["value"].tensor.string_val)
        for name in ("tensor_names", "shape_and_slices")
    }
    assert texts == {
        "tensor_names": [b"table", b"table"],
        "shape_and_slices": [b"7 4 0,4:0,4", b"7 4 4,3:0,4"],
    }
    assigned = [node.input[:] for node in nodes.values() if node.name.startswith("save/Assign")]
    assert assigned == [
        ["table/part_0", "save/RestoreV2"],
        ["table/part_1", "save/RestoreV2:1"],
    ]
