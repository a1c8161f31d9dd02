"""`Saver`: arguments, listings, graphs beside checkpoints, TensorFlow's checkpoints."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import estimatorkit as tf
from estimatorkit.storage.checkpoint import list_variables, read_checkpoint, write_checkpoint
from estimatorkit.storage.saveable import Saveable

GOLDEN = Path(__file__).parents[1] / "golden" / "tensorflow_checkpoints"
FACTS = json.loads((GOLDEN / "facts.json").read_text("utf-8"))


@pytest.fixture
def session() -> Iterator[tf.Session]:
    with tf.Graph().as_default(), tf.Session() as made:
        yield made


def made(session: tf.Session, *values: Any) -> list[Any]:
    """Variables v0, v1, ... with these values."""
    variables = [
        tf.get_variable(f"v{number}", initializer=tf.constant(value))
        for number, value in enumerate(values)
    ]
    session.run(tf.global_variables_initializer())
    return variables


# -- arguments


def test_reshape(session: tf.Session, tmp_path: Path) -> None:
    path = write_checkpoint(tmp_path, "m", {"v0": np.arange(6.0, dtype=np.float32)})
    (variable,) = made(session, np.zeros((2, 3), np.float32))
    words = r"Assign requires shapes of both tensors to match. lhs shape= \[2,3\] rhs shape= \[6\]"
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        tf.train.Saver().restore(session, path)
    tf.train.Saver(reshape=True).restore(session, path)
    assert session.run(variable).tolist() == [[0, 1, 2], [3, 4, 5]]
    write_checkpoint(tmp_path, "m", {"v0": np.zeros(5, np.float32)})
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"rhs shape= \[5\]"):
        tf.train.Saver(reshape=True).restore(session, path)


def test_error_messages(session: tf.Session, tmp_path: Path) -> None:
    made(session, 1.0)
    path = write_checkpoint(tmp_path, "m", {"other": np.zeros(())})
    with pytest.raises(tf.errors.NotFoundError, match=r"^Key v0 not found in checkpoint"):
        tf.train.Saver().restore(session, path)
    path = write_checkpoint(tmp_path, "n", {"v0": np.zeros((), np.int32)})
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected dtype float32 does not"):
        tf.train.Saver().restore(session, path)


def test_deferred(session: tf.Session, tmp_path: Path) -> None:
    saver = tf.train.Saver(defer_build=True)
    with pytest.raises(RuntimeError, match="should be called before save if defer_build==True"):
        saver.save(session, tmp_path / "m")
    with pytest.raises(RuntimeError, match="should be called before restore"):
        saver.restore(session, tmp_path / "m")
    made(session, 1.0)
    saver.build()
    saver.build()
    assert saver.save(session, tmp_path / "m") == str(tmp_path / "m")
    with pytest.raises(ValueError, match="then build cannot be deferred"):
        tf.train.Saver([], defer_build=True)


def test_empty(session: tf.Session, tmp_path: Path) -> None:
    saver = tf.train.Saver(allow_empty=True)
    assert saver.save(session, tmp_path / "m") is None
    saver.restore(session, None)
    assert list(tmp_path.iterdir()) == []


def test_steps_and_states(session: tf.Session, tmp_path: Path) -> None:
    made(session, 1.0)
    saver = tf.train.Saver(pad_step_number=True)
    assert saver.save(session, tmp_path / "m", np.int64(7)) == str(tmp_path / "m-00000007")
    saver.save(session, tmp_path / "m", 8, write_state=False, write_meta_graph=False)
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        *("checkpoint", "m-00000007", "m-00000007.meta", "m-00000008"),
    ]
    assert saver.last_checkpoints == [str(tmp_path / "m-00000007")]
    saver.save(session, tmp_path / "m", 9, latest_filename="other", meta_graph_suffix="graph")
    assert (tmp_path / "m-00000009.graph").exists()
    state = tf.train.get_checkpoint_state(tmp_path, "other")
    assert state is not None
    assert state.model_checkpoint_path == str(tmp_path / "m-00000009")
    with pytest.raises(ValueError, match="must not contain path components"):
        saver.save(session, tmp_path / "m", latest_filename="a/b")


def test_argument_errors(session: tf.Session, tmp_path: Path) -> None:
    one, _ = made(session, 1.0, 2.0)
    with pytest.raises(TypeError, match="Variable to save is not a Variable"):
        tf.train.Saver([tf.constant(1)])
    with pytest.raises(TypeError, match="must be a dict mapping string names"):
        tf.train.Saver({1: one})
    with pytest.raises(ValueError, match="At least two variables have the same name: v0"):
        tf.train.Saver([one, one])
    saver = tf.train.Saver()
    with pytest.raises(TypeError, match="'sess' must be a Session"):
        saver.save(session.graph, tmp_path / "m")
    with pytest.raises(ValueError, match="Can't load save_path when it is None"):
        saver.restore(session, None)
    with pytest.raises(ValueError, match="not a valid checkpoint"):
        saver.restore(session, tmp_path)
    with pytest.raises(ValueError, match=r"give its prefix, '.*two_shards/two'"):
        saver.restore(session, GOLDEN / "two_shards" / "two.index")
    with pytest.raises(ValueError, match=r"pass its newest checkpoint, '.*model\.ckpt-2'"):
        saver.restore(session, GOLDEN / "dnn_classifier")
    (tmp_path / "m.index").touch()
    with pytest.raises(tf.errors.DataLossError, match=r"m\.index', offset 0: it is too short"):
        saver.restore(session, tmp_path / "m")


def test_accepts_full_signature(session: tf.Session, tmp_path: Path) -> None:
    made(session, 1.0)
    saver = tf.train.Saver(
        tf.global_variables(),
        sharded=True,
        name="saver",
        restore_sequentially=True,
        builder=None,
        write_version=tf.train.SaverDef.V1,
        save_relative_paths=True,
        filename="model",
    )
    assert saver.as_saver_def().sharded
    saver.restore(session, saver.save(session, tmp_path / "m"))


def test_saver_defs(session: tf.Session) -> None:
    made(session, 1.0)
    saver = tf.train.Saver(max_to_keep=3, keep_checkpoint_every_n_hours=2.0)
    proto = saver.to_proto()
    assert (proto.max_to_keep, proto.keep_checkpoint_every_n_hours) == (3, 2.0)
    assert proto.version == tf.train.SaverDef.V2
    assert tf.train.Saver.from_proto(proto).as_saver_def() == proto
    assert tf.train.Saver(saver_def=proto).as_saver_def() == proto


# -- what is listed


def test_last_checkpoints(session: tf.Session, tmp_path: Path) -> None:
    made(session, 1.0)
    saver = tf.train.Saver(max_to_keep=2)
    paths = [saver.save(session, tmp_path / "m", step) for step in range(2)]
    again = tf.train.Saver(max_to_keep=2)
    assert again.last_checkpoints == []
    again.set_last_checkpoints(paths)
    assert again.last_checkpoints == paths
    again.set_last_checkpoints_with_time([(paths[1], 5.0)])
    assert again.last_checkpoints == paths[1:]
    again.recover_last_checkpoints([*paths, str(tmp_path / "m-9")])
    assert again.last_checkpoints == paths
    again.save(session, tmp_path / "m", 2)
    assert not os.path.exists(paths[0])
    assert not os.path.exists(f"{paths[0]}.meta")
    mtimes = tf.train.get_checkpoint_mtimes([*paths, GOLDEN / "partitioned" / "p"])
    assert mtimes == [
        os.stat(f"{paths[1]}/MANIFEST.json").st_mtime,
        os.stat(GOLDEN / "partitioned" / "p.index").st_mtime,
    ]


def test_checkpoint_state_proto() -> None:
    make = tf.train.generate_checkpoint_state_proto
    state = make("/d", "/d/m-2", ["/d/m-1"])
    assert state.all_model_checkpoint_paths == ["/d/m-1", "/d/m-2"]
    state = make("some/d", "some/d/m-2", ["some/d/m-1", "/e"], [1.0, 2.0, 3.0], 4.0)
    assert state == tf.train.CheckpointState("m-2", ["m-1", "/e", "m-2"], [1.0, 2.0, 3.0], 4.0)
    with pytest.raises(ValueError, match="must match all_model_checkpoint_paths"):
        make("/d", "/d/m-2", None, [1.0, 2.0])


def test_checkpoints_iterator(session: tf.Session, tmp_path: Path) -> None:
    made(session, 1.0)
    saver = tf.train.Saver()
    asked: list[int] = []

    def over() -> bool:
        asked.append(1)
        return len(asked) > 1

    seen = []
    for path in tf.train.checkpoints_iterator(tmp_path, timeout=0, timeout_fn=over):
        seen.append(path)
    assert seen == []
    assert len(asked) == 2
    saver.save(session, tmp_path / "m", 1)
    for path in tf.train.checkpoints_iterator(tmp_path, timeout=0):
        seen.append(path)
        if len(seen) == 1:
            saver.save(session, tmp_path / "m", 2)
            saver.save(session, tmp_path / "m", 3)
    assert seen == [str(tmp_path / "m-1"), str(tmp_path / "m-3")]


# -- other things than variables


class Counts:
    """A host object with two tensors."""

    saved_suffixes = ("-keys", "-values")

    def __init__(self, name: str) -> None:
        self.name = name
        self.content: dict[str, int] = {"a": 1, "b": 2}

    def values_to_save(self, state: Any) -> Sequence[NDArray[Any]]:
        keys = np.array([key.encode() for key in self.content], object)
        return keys, np.array(list(self.content.values()), np.int64)

    def restore_values(self, state: Any, values: Sequence[NDArray[Any]]) -> None:
        keys, counts = (value.tolist() for value in values)
        self.content = {key.decode(): count for key, count in zip(keys, counts, strict=True)}


def test_saveables(session: tf.Session, tmp_path: Path) -> None:
    (variable,) = made(session, 3.0)
    counts = Counts("table")
    assert isinstance(counts, Saveable)
    assert not isinstance(variable, Saveable)
    tf.add_to_collection(tf.GraphKeys.SAVEABLE_OBJECTS, counts)
    saver = tf.train.Saver()
    path = saver.save(session, tmp_path / "m")
    assert [name for name, _ in list_variables(path)] == ["table-keys", "table-values", "v0"]
    counts.content = {}
    saver.restore(session, path)
    assert counts.content == {"a": 1, "b": 2}
    renamed = tf.train.Saver({"other": counts})
    with pytest.raises(tf.errors.NotFoundError, match="Key other-keys not found") as caught:
        renamed.restore(session, path)
    assert "2 variables missing, 0 different, 3 unexpected" in str(caught.value)


# -- graphs


def test_graph_beside_checkpoint(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        weights = tf.get_variable("w", initializer=tf.constant([[1.0], [2.0]]))
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        tf.matmul(x, weights, name="y")
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver(max_to_keep=7).save(session, tmp_path / "m", 3)
    with tf.Graph().as_default(), tf.Session() as session:
        saver = tf.train.import_meta_graph(f"{path}.meta")
        saver.restore(session, path)
        assert session.run("y:0", {"x:0": [[3, 4]]}).tolist() == [[11]]
        assert saver.as_saver_def().max_to_keep == 7
        made = saver.export_meta_graph(tmp_path / "again.meta")
        assert {node.name for node in made.graph_def.node} >= {"w", "x", "y"}
        assert made.saver_def.max_to_keep == 7
        assert (tmp_path / "again.meta").exists()


def test_tensorflow_graph_and_checkpoint() -> None:
    """What programs of TensorFlow 1 do with a trained model."""
    facts = FACTS["graph"]
    with tf.Graph().as_default(), tf.Session() as session:
        saver = tf.train.import_meta_graph(GOLDEN / f"{facts['path']}.meta")
        saver.restore(session, GOLDEN / facts["path"])
        found = session.run("y:0", {"x:0": facts["x"]})
    np.testing.assert_allclose(found, facts["y"], rtol=1e-6)


# -- checkpoints of TensorFlow


@pytest.mark.parametrize("path", ["all_dtypes/model.ckpt-7", "all_dtypes_version_1/model.ckpt-7"])
def test_every_dtype(session: tf.Session, path: str) -> None:
    tensors = read_checkpoint(GOLDEN / path).tensors
    variables = {
        name: tf.get_variable(name.split("/")[1], value.shape, value.dtype, tf.zeros_initializer())
        for name, value in tensors.items()
        if value.dtype != object
    }
    tf.train.Saver(variables).restore(session, GOLDEN / path)
    assert len(variables) >= 14
    for name, value in zip(variables, session.run(list(variables.values())), strict=True):
        assert value.dtype == tensors[name].dtype
        np.testing.assert_array_equal(value, tensors[name])


@pytest.mark.parametrize("folder", ["partitioned", "partitioned_version_1"])
@pytest.mark.parametrize("parts", [1, 2, 5])
def test_partitioned_variables(session: tf.Session, folder: str, parts: int) -> None:
    """Whole here, or in other parts than there."""
    cut = tf.fixed_size_partitioner(parts, axis=1) if parts > 1 else None
    for axis in range(2):
        tf.get_variable(f"axis_{axis}", [6, 5], partitioner=cut)
    tf.train.Saver().restore(session, GOLDEN / folder / "p")
    found = np.concatenate(session.run(tf.global_variables("axis_1")), 1 if parts > 1 else 0)
    assert found.tolist() == np.arange(30.0).reshape(6, 5).tolist()


def test_objects_use_full_names(session: tf.Session) -> None:
    facts = FACTS["checkpoints"]["objects/ckpt-1"]
    with tf.variable_scope("dense"):
        kernel, bias = tf.get_variable("kernel", [2, 3]), tf.get_variable("bias", [3])
    tf.train.Saver().restore(session, GOLDEN / "objects" / "ckpt-1")
    assert session.run(kernel).tolist() == facts["kernel/.ATTRIBUTES/VARIABLE_VALUE"][2]
    key = "bias/.OPTIMIZER_SLOT/optimizer/m/.ATTRIBUTES/VARIABLE_VALUE"
    tf.train.Saver({key: bias}).restore(session, GOLDEN / "objects" / "ckpt-1")
    assert session.run(bias).tolist() == facts[key][2]
    tf.get_variable("nothing", [])
    with pytest.raises(tf.errors.NotFoundError, match="Key nothing not found in checkpoint"):
        tf.train.Saver().restore(session, GOLDEN / "objects" / "ckpt-1")


def test_checkpoint_without_name(session: tf.Session, tmp_path: Path) -> None:
    (variable,) = made(session, 1.0)
    saver = tf.train.Saver()
    folder = f"{tmp_path / 'model'}/"
    path = saver.save(session, folder)
    assert path is not None
    assert os.path.dirname(path) == folder.rstrip("/")
    assert tf.train.latest_checkpoint(folder) == path
    for given in (path, folder):
        session.run(variable.assign(5.0))
        saver.restore(session, given)
        assert session.run(variable) == 1.0
    numbered = saver.save(session, folder, global_step=3)
    assert numbered == f"{folder}-3"
    assert tf.train.latest_checkpoint(folder) == numbered


def test_partitions_in_a_dict(session: tf.Session, tmp_path: Path) -> None:
    parts = tf.get_variable(
        "w", [5, 2], initializer=tf.ones_initializer(), partitioner=tf.fixed_size_partitioner(2)
    )
    session.run(tf.global_variables_initializer())
    path = tf.train.Saver({"w": list(parts)}).save(session, tmp_path / "m")
    assert list_variables(path) == [("w", [5, 2])]
    with pytest.raises(ValueError, match="Slices must all be from the same tensor: 'w'"):
        tf.train.Saver({"w": list(parts)[:1]})
    with pytest.raises(ValueError, match="Slices must all be Variables"):
        tf.train.Saver({"w": [tf.get_variable("other", [])]})


def test_relative_paths_are_kept(
    session: tf.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in TensorFlow 2.15.1."""
    monkeypatch.chdir(tmp_path)
    made(session, 1.5)
    saver = tf.train.Saver()
    given = ["m", "./n-1", "d/x-2"]
    assert saver.save(session, "m") == given[0]
    assert saver.save(session, "./n", 1) == given[1]
    assert saver.save(session, "d/x", 2) == given[2]
    assert saver.last_checkpoints == given
    scalar = tf.train.load_variable("d", "v0")
    assert (type(scalar), scalar) == (np.float32, 1.5)
    saver.set_last_checkpoints(["a", "./b"])
    assert saver.last_checkpoints == ["a", "./b"]
