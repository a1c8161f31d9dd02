"""`init_from_checkpoint`, `warm_start`, and the ops that save and restore."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.core.registry import lookup
from estimatorkit.ops.files import checkpoint_ops
from estimatorkit.storage.checkpoint import read_checkpoint, write_checkpoint

GOLDEN = Path(__file__).parents[1] / "golden" / "tensorflow_checkpoints"
SAVED = {
    "old/a": np.array([[1, 2], [3, 4]], np.float32),
    "old/b": np.array([5, 6, 7], np.float32),
    "old/deep/c": np.array(8, np.int64),
    "root": np.array([9.0], np.float32),
}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> str:
    return os.fspath(write_checkpoint(tmp_path_factory.mktemp("old"), "m-1", SAVED))


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as made:
        yield made


def variables() -> list[Any]:
    with tf.variable_scope("new"):
        return [
            tf.get_variable("a", [2, 2]),
            tf.get_variable("b", [3]),
            tf.get_variable("deep/c", [], tf.int64, tf.zeros_initializer()),
        ]


def initialized(*wanted: Any) -> list[Any]:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return [value.tolist() for value in session.run(list(wanted))]


@pytest.mark.parametrize("model_folder", [False, True])
def test_scope(checkpoint: str, model_folder: bool) -> None:
    made = variables()
    place = os.path.dirname(checkpoint) if model_folder else checkpoint
    tf.train.init_from_checkpoint(place, {"old/": "new/"})
    assert initialized(*made) == [[[1, 2], [3, 4]], [5, 6, 7], 8]


def test_root_to_scope_and_scope_to_root(tmp_path: Path, checkpoint: str) -> None:
    with tf.variable_scope("new"):
        root = tf.get_variable("root", [1])
    tf.train.init_from_checkpoint(checkpoint, {"/": "new/"})
    assert initialized(root) == [[9]]
    with tf.Graph().as_default():
        a, b = tf.get_variable("a", [2, 2]), tf.get_variable("b", [3])
        tf.train.init_from_checkpoint(checkpoint, {"old/": "/"})
        assert initialized(a, b) == [[[1, 2], [3, 4]], [5, 6, 7]]


def test_single_variables(checkpoint: str) -> None:
    a, b, _ = variables()
    twin = tf.get_variable("twin", [3])
    pairs = [("old/a", a), ("old/b", "new/b"), ("old/b", twin)]
    tf.train.init_from_checkpoint(checkpoint, pairs)
    assert initialized(a, b, twin) == [[[1, 2], [3, 4]], [5, 6, 7], [5, 6, 7]]


def test_initial_values_are_replaced(checkpoint: str) -> None:
    """What is made from the initial value has that of the checkpoint."""
    _, b, _ = variables()
    tf.train.init_from_checkpoint(checkpoint, {"old/b": b})
    with tf.Session() as session:
        assert session.run(b.initialized_value()).tolist() == [5, 6, 7]
    assert b.initial_value.shape.as_list() == [3]


def test_partitioned_variables(checkpoint: str) -> None:
    """As one, as a list of parts, by name, and below a scope; along each axis."""
    rows = tf.get_variable("r", [3], partitioner=tf.fixed_size_partitioner(2))
    columns = tf.get_variable("c", [2, 2], partitioner=tf.fixed_size_partitioner(2, axis=1))
    with tf.variable_scope("s"):
        scoped = tf.get_variable("b", [3], partitioner=tf.fixed_size_partitioner(3))
    tf.train.init_from_checkpoint(
        checkpoint, [("old/b", "r"), ("old/a", list(columns)), ("old/", "s/")]
    )
    parts = [*rows, *columns, *scoped]
    assert initialized(*parts) == [[5, 6], [7], [[1], [3]], [[2], [4]], [5], [6], [7]]


def test_tensorflow_checkpoint() -> None:
    axis = tf.get_variable("x", [6, 5])
    tf.train.init_from_checkpoint(GOLDEN / "partitioned" / "p", {"axis_1": axis})
    assert initialized(axis) == [np.arange(30.0).reshape(6, 5).tolist()]


def test_checkpoint_is_found_from_another_folder(
    checkpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, b, _ = variables()
    monkeypatch.chdir(os.path.dirname(checkpoint))
    tf.train.init_from_checkpoint(os.path.basename(checkpoint), {"old/b": b})
    monkeypatch.chdir("/")
    assert initialized(b) == [[5, 6, 7]]


def test_errors(checkpoint: str) -> None:
    a, b, _ = variables()
    call = tf.train.init_from_checkpoint
    with pytest.raises(ValueError, match=r"Tensor old/d is not found in .* checkpoint"):
        call(checkpoint, {"old/d": a})
    with pytest.raises(ValueError, match=r"Shape of variable new/b \(\(3,\)\) doesn't match"):
        call(checkpoint, {"old/a": b})
    with tf.variable_scope("deep"):
        tf.get_variable("a", [])
    with pytest.raises(ValueError, match="Tensor new/deep/a is not found"):
        call(checkpoint, {"new/deep/": "deep/"})
    with pytest.raises(ValueError, match="did you mean 'new/b'"):
        call(checkpoint, {"old/b": "new/bb"})
    with pytest.raises(ValueError, match="doesn't match with shape of tensor old/b"):
        call(checkpoint, {"old/b": [a, b]})
    with pytest.raises(tf.errors.NotFoundError):
        call(checkpoint + "1", {"old/b": b})


def test_warm_start(checkpoint: str) -> None:
    with tf.variable_scope("old"):
        a = tf.get_variable("a", [2, 2])
        b = tf.get_variable("b", [3], initializer=tf.zeros_initializer())
        fixed = tf.get_variable("deep/c", initializer=tf.constant(1, tf.int64), trainable=False)
    tf.train.warm_start(checkpoint, "old/a")
    tf.train.warm_start(checkpoint, [fixed])
    assert initialized(a, b, fixed) == [[[1, 2], [3, 4]], [0, 0, 0], 8]
    tf.train.warm_start(checkpoint, ["^old/b$"])
    assert initialized(b) == [[5, 6, 7]]
    for wrong in ([1], ["old/a", b]):
        with pytest.raises(ValueError, match="must be all `Variable` or all `str`"):
            tf.train.warm_start(checkpoint, wrong)
    with tf.Graph().as_default():
        other = tf.get_variable("other", [3])
        tf.train.warm_start(checkpoint, var_name_to_prev_var_name={"other": "old/b"})
        assert initialized(other) == [[5, 6, 7]]
        with pytest.raises(ValueError, match=r"not used: \['nothing'\]"):
            tf.train.warm_start(checkpoint, var_name_to_prev_var_name={"nothing": "old/b"})
        with pytest.raises(ValueError, match="var_name_to_vocab_info that were not used"):
            tf.train.warm_start(checkpoint, var_name_to_vocab_info={"nothing": object()})


# -- the ops


def test_save_and_restore_ops(tmp_path: Path) -> None:
    """SaveV2 and RestoreV2, with slices; Save and Restore."""
    assert lookup("SaveV2").placement.where == lookup("Restore").placement.where == "host"
    path = os.fspath(tmp_path / "m")
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    text = tf.constant([b"a", b"bc"])
    names = ["x", "cut", "cut", "text"]
    specs = ["", "2 2 0,1:-", "2 2 1,1:-", ""]
    saving = checkpoint_ops.save_v2(path, names, specs, [x, x[:1], x[1:] * 2, text])
    where = tf.placeholder(tf.string, [])
    restored = checkpoint_ops.restore_v2(
        where, ["cut", "text", "x"], ["", "", "2 2 -:1,1"], [tf.float32, tf.string, tf.float32]
    )
    older = checkpoint_ops.save(f"{path}-1", ["y"], [x])
    again = checkpoint_ops.restore(f"{path}-1", "y", tf.float32)
    assert restored[0].shape.rank is None
    with tf.Session() as session:
        session.run([saving, older])
        values = session.run(restored, {where: path})
        assert [value.tolist() for value in values] == [[[1, 2], [6, 8]], [b"a", b"bc"], [[2], [4]]]
        assert session.run(again).tolist() == [[1, 2], [3, 4]]
    assert sorted(read_checkpoint(path).tensors) == ["cut", "text", "x"]


@pytest.mark.parametrize(
    ("name", "spec", "dtype", "error", "words"),
    [
        ("nothing", "", "float32", tf.errors.NotFoundError, "Key nothing not found in checkpoint"),
        ("root", "", "int32", tf.errors.InvalidArgumentError, "expected dtype int32 does not"),
        ("root", "2 0,1", "float32", tf.errors.InvalidArgumentError, "do not match"),
        ("root", "1 0,2", "float32", tf.errors.InvalidArgumentError, "is invalid"),
        ("root", "1 -:-", "float32", tf.errors.InvalidArgumentError, "is invalid"),
        ("root", "x", "float32", tf.errors.InvalidArgumentError, "is invalid"),
    ],
)
def test_invalid_restores_raise(
    checkpoint: str, name: str, spec: str, dtype: str, error: Any, words: str
) -> None:
    restored = checkpoint_ops.restore_v2(checkpoint, [name], [spec], [dtype])
    with tf.Session() as session, pytest.raises(error, match=words):
        session.run(restored)


def test_incomplete_slices_raise(tmp_path: Path) -> None:
    part = tf.ones([1, 2])
    path = os.fspath(tmp_path / "m")
    half = checkpoint_ops.save_v2(path, ["x"], ["2 2 0,1:-"], [part])
    wrong = checkpoint_ops.save_v2(path, ["x"], ["2 2 -:0,1"], [part])
    with tf.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match="do not cover it"):
            session.run(half)
        with pytest.raises(
            tf.errors.InvalidArgumentError, match="does not have the specified shape"
        ):
            session.run(wrong)
    assert not os.path.exists(path)


@pytest.mark.parametrize(
    "chosen", ["a:0", ["a:0"], ["a"], ["a/part_0:0", "a$"], ".*a.*", ["a/part_1"]]
)
@pytest.mark.parametrize("parts", [1, 2])
def test_expressions_match_full_names(chosen: Any, parts: int, tmp_path: Path) -> None:
    write_checkpoint(tmp_path, "m-1", {"a": np.ones(4, np.float32), "b": np.ones(4, np.float32)})
    partitioner = None if parts == 1 else tf.fixed_size_partitioner(parts)
    zeros = tf.zeros_initializer()
    made = tf.get_variable("a", [4], initializer=zeros, partitioner=partitioner)
    other = tf.get_variable("b", [4], initializer=zeros)
    tf.train.warm_start(tmp_path / "m-1", chosen)
    first, *rest = initialized(*([made] if parts == 1 else made), other)
    is_matched = "".join(chosen) != ("a/part_1" if parts == 1 else "a:0")
    assert first == [1.0 if is_matched else 0.0] * (4 // parts)
    assert rest[-1] == [0.0] * 4


class TestVocabularies:
    """Rows follow their words into a new vocabulary."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        (tmp_path / "old.txt").write_text("apple\npear\nplum\nfig\n")
        (tmp_path / "new.txt").write_text("plum\nkiwi\napple\n")
        table = np.arange(15, dtype=np.float32).reshape(5, 3)  # a bucket for unknown words
        write_checkpoint(tmp_path, "m-1", {"table": table, "logits": table.T.copy()})
        return tmp_path

    def info(self, folder: Path, **changes: Any) -> Any:
        given = {
            "new_vocab": folder / "new.txt",
            "new_vocab_size": 3,
            "num_oov_buckets": 1,
            "old_vocab": folder / "old.txt",
            **changes,
        }
        return tf.train.VocabInfo(**given)

    @pytest.mark.parametrize("axis", [0, 1])
    def test_rows_and_columns(self, folder: Path, axis: int) -> None:
        name = ("table", "logits")[axis]
        made = tf.get_variable(name, [(4, 3), (3, 4)][axis])
        backup = tf.constant_initializer(-1.0)
        info = self.info(folder, axis=axis, backup_initializer=backup)
        tf.train.warm_start(folder / "m-1", var_name_to_vocab_info={name: info})
        rows = np.array(initialized(made)[0])
        rows = rows if axis == 0 else rows.T
        assert rows.tolist() == [[6, 7, 8], [-1] * 3, [0, 1, 2], [-1] * 3]

    @pytest.mark.parametrize(("axis", "cut"), [(0, 0), (0, 1), (1, 0), (1, 1)])
    def test_slices_of_variable(self, folder: Path, axis: int, cut: int) -> None:
        name = ("table", "logits")[axis]
        made = tf.get_variable(
            name, [(4, 3), (3, 4)][axis], partitioner=tf.fixed_size_partitioner(2, axis=cut)
        )
        tf.train.warm_start(
            folder / "m-1", var_name_to_vocab_info={name: self.info(folder, axis=axis)}
        )
        rows = np.concatenate(initialized(*made), axis=cut)
        rows = rows if axis == 0 else rows.T
        assert rows.tolist() == [[6, 7, 8], [0] * 3, [0, 1, 2], [0] * 3]

    def test_new_words_start_at_zero_by_default(self, folder: Path) -> None:
        made = tf.get_variable("now", [4, 3])
        tf.train.warm_start(
            folder / "m-1",
            vars_to_warm_start=None,
            var_name_to_vocab_info={"now": self.info(folder)},
            var_name_to_prev_var_name={"now": "table"},
        )
        assert initialized(made)[0][1] == [0, 0, 0]

    @pytest.mark.parametrize(
        ("changes", "problem"),
        [
            ({"axis": 2}, "values of axis are 0 and 1"),
            ({"new_vocab_size": 4}, "fewer words than its given size"),
            ({"num_oov_buckets": 2}, "do not fit variable table"),
            ({"old_vocab_size": 9}, "fewer words than its given size"),
        ],
    )
    def test_mismatches_raise(self, folder: Path, changes: Any, problem: str) -> None:
        tf.get_variable("table", [4, 3])
        with pytest.raises(ValueError, match=problem):
            tf.train.warm_start(
                folder / "m-1", var_name_to_vocab_info={"table": self.info(folder, **changes)}
            )

    def test_invalid_axis_raises(self, folder: Path) -> None:
        write_checkpoint(folder, "m-1", {"bias": np.zeros(5, np.float32)})
        tf.get_variable("bias", [4])
        info = self.info(folder, axis=1)
        with pytest.raises(ValueError, match="expected: no rows along axis 1"):
            tf.train.warm_start(folder / "m-1", var_name_to_vocab_info={"bias": info})
