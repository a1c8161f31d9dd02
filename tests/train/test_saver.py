"""`Saver`: variables, random counters and input positions, saved and restored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.core.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
)
from estimatorkit.core.graph import Graph
from estimatorkit.data.dataset import Dataset
from estimatorkit.runtime.session import Session
from estimatorkit.storage.checkpoint import latest_checkpoint, read_checkpoint
from estimatorkit.train.saving.saver import Saver


class Model:
    """A graph with two variables, a random number and an input, and a session of it."""

    def __init__(
        self, *, shape: tuple[int, ...] = (2, 3), names: str = "ab", seed: int = 4
    ) -> None:
        self.graph = Graph()
        self.graph.seed = seed
        with self.graph.as_default():
            self.a = tf.get_variable(names[0], shape)
            self.b = tf.get_variable(names[1], [], tf.int64, initializer=tf.constant_initializer(5))
            self.noise = tf.random_uniform([])
            self.element = Dataset.range(100).shuffle(100).make_one_shot_iterator().get_next()
            initializer = tf.global_variables_initializer()
            self.saver = Saver()
        self.session = Session(graph=self.graph)
        self.session.run(initializer)

    def draw(self, count: int) -> list[Any]:
        """So many random numbers and elements."""
        return [self.session.run([self.noise, self.element]) for _ in range(count)]

    def values(self) -> list[Any]:
        return [value.tolist() for value in self.session.run([self.a, self.b])]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[Any], list[Any]]:
    """A checkpoint, the values in it, and what came next in its session."""
    model = Model()
    model.draw(3)
    path = model.saver.save(model.session, tmp_path_factory.mktemp("saved") / "model", 7)
    return path, model.values(), model.draw(4)


def test_round_trip(saved: tuple[str, list[Any], list[Any]]) -> None:
    """Another session goes on with the values, the noise and the elements of the first."""
    path, values, following = saved
    other = Model(seed=9)
    assert other.values() != values
    other.saver.restore(other.session, path)
    assert other.values() == values
    assert other.draw(4) == following


def test_path_has_step(tmp_path: Path) -> None:
    model = Model()
    with model.graph.as_default():
        step = tf.constant(12)
    save = model.saver.save
    assert save(model.session, tmp_path / "m") == str(tmp_path / "m")
    assert save(model.session, str(tmp_path / "m"), 3) == str(tmp_path / "m-3")
    assert save(model.session, tmp_path / "m", step) == str(tmp_path / "m-12")
    assert save(model.session, tmp_path / "m", model.b) == str(tmp_path / "m-5")
    assert latest_checkpoint(tmp_path) == str(tmp_path / "m-5")


def test_max_to_keep(tmp_path: Path) -> None:
    model = Model()
    with model.graph.as_default():
        saver = Saver(max_to_keep=2)
    for step in range(4):
        saver.save(model.session, tmp_path / "m", step)
    assert saver.last_checkpoints == [str(tmp_path / f"m-{step}") for step in (2, 3)]
    names = ["m-2", "m-2.meta", "m-3", "m-3.meta"]
    assert sorted(path.name for path in tmp_path.glob("m-*")) == names


def test_mapped_names(saved: tuple[str, list[Any], list[Any]]) -> None:
    path, values, _ = saved
    other = Model(names="cd")
    with other.graph.as_default():
        saver = Saver({"a": other.a, "b": other.b})
    saver.restore(other.session, path)
    assert other.values() == values


def test_subset_of_variables(saved: tuple[str, list[Any], list[Any]], tmp_path: Path) -> None:
    path, values, _ = saved
    other = Model(seed=9)
    with other.graph.as_default():
        saver = Saver([other.a])
    saver.restore(other.session, path)
    assert other.values()[0] == values[0]
    assert set(read_checkpoint(saver.save(other.session, tmp_path / "m")).tensors) == {"a"}


def test_restored_value_is_a_copy(saved: tuple[str, list[Any], list[Any]]) -> None:
    """Later updates reach neither the other sessions nor the files."""
    path, values, _ = saved
    one, two = Model(seed=9), Model(seed=9)
    for model in (one, two):
        model.saver.restore(model.session, path)
    one.session.load_variable(one.a, np.zeros((2, 3), np.float32))
    assert two.values() == values


def test_no_variables_raises() -> None:
    with Graph().as_default():
        with pytest.raises(ValueError, match="No variables to save"):
            Saver()
        Saver(allow_empty=True)


def test_uninitialized_variables_raise(tmp_path: Path) -> None:
    with Graph().as_default() as graph:
        tf.get_variable("never", [])
        saver = Saver()
    with pytest.raises(FailedPreconditionError, match="uninitialized value never"):
        saver.save(Session(graph=graph), tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


class TestMisfits:
    def restore(self, path: str, **model: Any) -> list[str]:
        """The message's lines; no value has changed."""
        other = Model(seed=9, **model)
        before = other.values()
        with pytest.raises((NotFoundError, InvalidArgumentError)) as caught:
            other.saver.restore(other.session, path)
        assert other.values() == before
        return [type(caught.value).__name__, *str(caught.value).splitlines()]

    def test_shape(self, saved: tuple[str, list[Any], list[Any]]) -> None:
        kind, *lines = self.restore(saved[0], shape=(2, 4))
        assert kind == "InvalidArgumentError"
        assert "    different  a         (2, 4) float32  (2, 3) float32" in lines

    def test_names(self, saved: tuple[str, list[Any], list[Any]]) -> None:
        kind, *lines = self.restore(saved[0], names="ac")
        assert kind == "NotFoundError"
        assert "  received: 1 variables missing, 0 different, 1 unexpected" in lines
        assert "    missing     c         () int64      -" in lines
        assert "    unexpected  b         -             () int64" in lines

    def test_dtype(self, tmp_path: Path) -> None:
        model = Model()
        with model.graph.as_default():
            swapped = Saver({"a": model.b, "b": model.a})
        path = model.saver.save(model.session, tmp_path / "m")
        with pytest.raises(InvalidArgumentError, match="2 different"):
            swapped.restore(model.session, path)

    def test_no_checkpoint(self, tmp_path: Path) -> None:
        model = Model()
        with pytest.raises(ValueError, match="The passed save_path is not a valid checkpoint"):
            model.saver.restore(model.session, tmp_path / "nothing")
