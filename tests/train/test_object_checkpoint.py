"""`train.Checkpoint`: trackable objects, files, and the status of restoring."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.ops.tables.mutable_tables import MutableHashTable
from estimatorkit.storage.checkpoint import read_contents

GOLDEN = Path(__file__).parents[1] / "golden" / "tensorflow_checkpoints"
VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


class Model:
    """A model as programs write them: variables in attributes, lists and dicts."""

    def __init__(self, first: float = 1.0) -> None:
        self.kernel = tf.get_variable("kernel", initializer=[first, 2.0])
        self.parts = [tf.get_variable("part", initializer=[3.0, 4.0])]
        self.named = {"a": self.parts[0]}
        self.rate = 0.5
        self.output = self.kernel * self.parts[0]


def build(first: float = 1.0) -> tuple[tf.train.Checkpoint, Model, Any]:
    model = Model(first)
    optimizer = tf.train.AdamOptimizer(0.1)
    step = tf.train.get_or_create_global_step()
    train = optimizer.minimize(tf.reduce_sum(model.output), step)
    return tf.train.Checkpoint(model=model, optimizer=optimizer, step=step), model, train


def values(session: tf.Session) -> list[Any]:
    names = {each.op.name: each for each in tf.global_variables()}
    names.pop("save_counter", None)
    return [session.run(names[name]).tolist() for name in sorted(names)]


def test_keys_match_tensorflow(tmp_path: Path) -> None:
    checkpoint, _, train = build()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        path = checkpoint.save(tmp_path / "new" / "ckpt", session=session)
        assert path == os.fspath(tmp_path / "new" / "ckpt-1")
        assert tf.train.latest_checkpoint(tmp_path / "new") == path
        assert checkpoint.save(tmp_path / "new" / "ckpt") == os.fspath(tmp_path / "new" / "ckpt-2")
        assert tf.train.latest_checkpoint(tmp_path / "new").endswith("ckpt-2")
        written = checkpoint.write(tmp_path / "written")
        assert session.run(checkpoint.save_counter) == 2
    assert sorted(read_contents(path)) == [
        "_CHECKPOINTABLE_OBJECT_GRAPH",
        f"model/kernel{VALUE}",
        f"model/kernel/.OPTIMIZER_SLOT/optimizer/m{VALUE}",
        f"model/kernel/.OPTIMIZER_SLOT/optimizer/v{VALUE}",
        f"model/parts/0{VALUE}",
        f"model/parts/0/.OPTIMIZER_SLOT/optimizer/m{VALUE}",
        f"model/parts/0/.OPTIMIZER_SLOT/optimizer/v{VALUE}",
        f"optimizer/beta1_power{VALUE}",
        f"optimizer/beta2_power{VALUE}",
        f"save_counter{VALUE}",
        f"step{VALUE}",
    ]
    assert set(read_contents(written)) == set(read_contents(path))


@pytest.mark.slow
def test_training_resumes(tmp_path: Path) -> None:
    checkpoint, _, train = build()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        path = checkpoint.save(tmp_path / "ckpt")
        session.run(train)
        expected = values(session)
    with tf.Graph().as_default():
        checkpoint, _, train = build(first=7.0)
        status = checkpoint.restore(path)
        assert status.assert_consumed() is status
        with tf.Session() as session:
            status.run_restore_ops()
            assert session.run(checkpoint.save_counter) == 1
            session.run(train)
            assert values(session) == expected
            assert checkpoint.save(tmp_path / "ckpt").endswith("ckpt-2")


def test_variables_match_by_path_not_name(tmp_path: Path) -> None:
    one, other = tf.get_variable("x", initializer=1.0), tf.get_variable("y", initializer=2.0)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        path = tf.train.Checkpoint(a=one, b=tf.train.Checkpoint(c=other)).save(tmp_path / "ckpt")
        swapped = tf.train.Checkpoint(b=tf.train.Checkpoint(c=one), a=other)
        swapped.restore(path).assert_consumed().run_restore_ops(session)
        assert session.run([one, other]) == [2.0, 1.0]


@pytest.mark.slow
def test_deferred_restoration(tmp_path: Path) -> None:
    checkpoint, _, train = build()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        path = checkpoint.save(tmp_path / "ckpt")
        expected = values(session)
    with tf.Graph().as_default():
        checkpoint = tf.train.Checkpoint()
        status = checkpoint.restore(path)
        with pytest.raises(AssertionError, match=r"Unresolved object in checkpoint \(root\)\.step"):
            status.assert_consumed()
        model = Model()
        checkpoint.model = model
        checkpoint.optimizer = tf.train.AdamOptimizer(0.1)
        checkpoint.step = tf.train.get_or_create_global_step()
        with pytest.raises(AssertionError, match="Unresolved object"):  # no slots yet
            status.assert_consumed()
        checkpoint.optimizer.minimize(tf.reduce_sum(model.output), checkpoint.step)
        status.assert_consumed()
        with tf.Session() as session:
            status.initialize_or_restore()
            assert values(session) == expected


def test_initialize_or_restore(tmp_path: Path) -> None:
    with tf.Session() as session:
        a = tf.get_variable("a", initializer=1.0)
        session.run(tf.global_variables_initializer())
        session.run(a.assign(5.0))
        path = tf.train.Checkpoint(a=a).save(tmp_path / "ckpt")
    b = tf.get_variable("b", initializer=2.0)
    checkpoint = tf.train.Checkpoint(a=a, b=b)
    for save_path, expected in ((None, [1.0, 2.0]), (path, [5.0, 2.0])):
        with tf.Session() as session:
            checkpoint.restore(save_path).initialize_or_restore(session)
            assert session.run([a, b]) == expected


def test_mismatches_are_reported(tmp_path: Path) -> None:
    checkpoint, model, _ = build()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        path = checkpoint.save(tmp_path / "ckpt")
        more = tf.train.Checkpoint(model=model, other=tf.train.get_global_step())
        status = more.restore(path).expect_partial()
        with pytest.raises(AssertionError, match="Found 1 Python objects that were not bound"):
            status.assert_existing_objects_matched()
        with pytest.raises(AssertionError, match="Unresolved object"):
            status.assert_consumed()
        status.run_restore_ops()
        less = tf.train.Checkpoint(model=model).restore(path)
        less.assert_existing_objects_matched().assert_nontrivial_match()
        other = tf.train.Checkpoint(z=tf.get_variable("z", initializer=1.0)).read(path)
        with pytest.raises(AssertionError, match="Nothing except the root object matched"):
            other.assert_nontrivial_match()
        wrong = tf.train.Checkpoint(
            model=tf.train.Checkpoint(kernel=tf.get_variable("k", initializer=[1.0, 2.0, 3.0]))
        )
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"lhs shape= \[3\]"):
            wrong.restore(path).run_restore_ops()


def test_errors(tmp_path: Path) -> None:
    a = tf.get_variable("a", initializer=1.0)
    checkpoint = tf.train.Checkpoint(a=a)
    with pytest.raises(RuntimeError, match="No session was given"):
        checkpoint.save(tmp_path / "ckpt")
    with tf.Session() as session:
        with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value a"):
            checkpoint.save(tmp_path / "ckpt", session)
        with pytest.raises(tf.errors.NotFoundError):
            checkpoint.restore(tmp_path / "nowhere")
        nothing = checkpoint.restore(None)
        for check in (nothing.assert_consumed, nothing.run_restore_ops):
            with pytest.raises(AssertionError, match="No checkpoint specified"):
                check()
    for value in (3, tf.constant(1.0), "text", tf.Graph(), tf.Session):
        with pytest.raises(ValueError, match="was expecting x to be a trackable object"):
            tf.train.Checkpoint(x=value)


def test_saver_checkpoints(tmp_path: Path) -> None:
    model = Model()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(model.kernel.assign([8.0, 9.0]))
        path = tf.train.Saver().save(session, tmp_path / "model.ckpt")
    checkpoint = tf.train.Checkpoint(anything=model)
    with tf.Session() as session:
        checkpoint.restore(path).assert_consumed().run_restore_ops()
        assert session.run(model.kernel).tolist() == [8.0, 9.0]


def test_tensorflow_checkpoint() -> None:
    path = GOLDEN / "objects" / "ckpt-1"
    kernel = tf.get_variable("other/kernel", [2, 3])
    bias = tf.get_variable("other/bias", [3])
    optimizer = tf.train.AdamOptimizer(0.5)
    optimizer.minimize(tf.reduce_sum(kernel * bias))
    checkpoint = tf.train.Checkpoint(kernel=kernel, bias=bias, optimizer=optimizer)
    status = checkpoint.restore(path).assert_nontrivial_match()
    with tf.Session() as session:
        status.initialize_or_restore()
        first = session.run({"bias": bias, "kernel": kernel, "m": optimizer.get_slot(kernel, "m")})
    reader = tf.train.load_checkpoint(path)
    slot = f"kernel/.OPTIMIZER_SLOT/optimizer/m{VALUE}"
    for name, key in (("kernel", f"kernel{VALUE}"), ("bias", f"bias{VALUE}"), ("m", slot)):
        np.testing.assert_array_equal(first[name], reader.get_tensor(key))


def test_tables_and_unusual_names(tmp_path: Path) -> None:
    table = MutableHashTable(tf.string, tf.int64, -1)
    insert = table.insert(["a"], tf.constant([7], tf.int64))
    found = table.lookup(tf.constant(["a", "b"]))
    a, b = tf.get_variable("a", initializer=1.0), tf.get_variable("b", initializer=2.0)
    checkpoint = tf.train.Checkpoint(named={"x/y": a, "x.y": (b,)}, table=table)
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), insert])
        path = checkpoint.save(tmp_path / "ckpt")
        assert {f"named/x.Sy{VALUE}", f"named/x..y/0{VALUE}"} <= set(read_contents(path))
        session.run([a.assign(0.0), b.assign(0.0)])
        checkpoint.restore(path).assert_consumed().run_restore_ops()
        assert session.run([a, b]) == [1.0, 2.0]
    with tf.Session() as session:
        checkpoint.restore(path).initialize_or_restore()
        assert session.run(found).tolist() == [7, -1]


def test_object_cycles(tmp_path: Path) -> None:
    model = Model()
    model.me = model  # type: ignore[attr-defined]
    checkpoint = tf.train.Checkpoint(model=model)
    checkpoint.root = checkpoint
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        path = checkpoint.save(tmp_path / "ckpt")
        checkpoint.restore(path).assert_consumed()
        del session
