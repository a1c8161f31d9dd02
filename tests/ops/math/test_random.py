"""Random ops: seeds as in TensorFlow, bounds, moments, order of draws, dropout."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from estimatorkit.core import builtin_ops
from estimatorkit.core.dtypes import as_dtype, float32, int32, int64
from estimatorkit.core.graph import Graph, set_random_seed
from estimatorkit.core.tensor import Tensor
from estimatorkit.core.variables import Variable
from estimatorkit.ops.array import array, filling
from estimatorkit.ops.math import random
from estimatorkit.ops.nn import nn
from estimatorkit.ops.variables.variable_scope import get_variable
from estimatorkit.runtime.session import Session
from tests.sweep import sweep

LARGE = [20000]
DRAWS: dict[str, Callable[..., Tensor]] = {
    "uniform": lambda seed=None: random.random_uniform([4], seed=seed),
    "uniform between": lambda seed=None: random.random_uniform([4], -1.0, 2.0, seed=seed),
    "integers": lambda seed=None: random.random_uniform([8], 0, 1000, int64, seed=seed),
    "normal": lambda seed=None: random.random_normal([4], 1.0, 2.0, seed=seed),
    "truncated": lambda seed=None: random.truncated_normal([4], seed=seed),
    "shuffle": lambda seed=None: random.random_shuffle(filling.range_(50), seed=seed),
    "multinomial": lambda seed=None: random.multinomial(np.zeros([1, 50], np.float32), 8, seed),
}


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    with Graph().as_default():
        yield


def draws(tensor: Tensor, times: int = 2) -> list[Any]:
    with Session(graph=tensor.graph) as session:
        return [np.asarray(session.run(tensor)).tolist() for _ in range(times)]


@pytest.mark.slow
def test_seeds() -> None:
    draw = DRAWS["uniform"]
    seeded, again, other, unseeded = draw(seed=7), draw(seed=7), draw(seed=8), draw()
    first = draws(seeded)
    assert first == draws(seeded)  # two sessions, one sequence
    assert first[0] != first[1]
    assert draws(again) == first
    assert draws(other) != first
    assert draws(unseeded) != draws(unseeded)


@pytest.mark.slow
def test_every_op_follows_its_seed() -> None:
    def sequences() -> dict[str, list[Any]]:
        with Graph().as_default() as graph, Session(graph=graph) as session:
            tensors = {name: draw(seed=7) for name, draw in DRAWS.items()}
            runs = [session.run(tensors) for _ in range(2)]
            return {name: [run[name].tolist() for run in runs] for name in DRAWS}

    found = sequences()
    assert found == sequences()
    for first, second in found.values():
        assert first != second


@pytest.mark.slow
def test_graph_seed() -> None:
    def build(seed: int, op_seed: int | None = None) -> tuple[list[Any], list[Any]]:
        with Graph().as_default():
            set_random_seed(seed)
            one, other = (DRAWS["uniform"](seed=op_seed) for _ in range(2))
        return draws(one), draws(other)

    one, other = build(1)
    assert one != other  # each op has its own sequence
    assert build(1) == (one, other)
    assert build(2) != (one, other)
    same, again = build(1, op_seed=5)
    assert same == again


def test_runs_without_draws_do_not_advance() -> None:
    x = random.random_uniform([3], seed=1)
    other = random.random_uniform([3], seed=2)
    expected = draws(x, 3)
    with Session() as session:
        found = []
        for _ in range(3):
            session.run(other)
            found.append(session.run(x).tolist())
    assert found == expected


def test_consumers_share_one_draw() -> None:
    x = random.random_uniform([3])
    y = x + 1.0
    with Session() as session:
        a, b, c = session.run([x, y, x])
    np.testing.assert_allclose(a + 1.0, b)
    np.testing.assert_array_equal(a, c)


def test_ops_draw_different_numbers() -> None:
    x, y = random.random_uniform([3]), random.random_uniform([3])
    with Session() as session:
        a, b = session.run([x, y])
    assert (a != b).any()


@pytest.mark.slow
def test_moments_and_bounds() -> None:
    tensors = {
        "uniform": random.random_uniform(LARGE, seed=1),
        "between": random.random_uniform(LARGE, 3.0, 5.0, seed=1),
        "integers": random.random_uniform(LARGE, -2, 3, int32, seed=1),
        "normal": random.random_normal(LARGE, 1.0, 2.0, seed=1),
        "truncated": random.truncated_normal(LARGE, seed=1),
    }
    with Session() as session:
        found = session.run(tensors)
    for name, low, high, mean, deviation in (
        ("uniform", 0, 1, 0.5, 12**-0.5),
        ("between", 3, 5, 4, 2 * 12**-0.5),
        ("integers", -2, 2, 0, 2**0.5),
        ("normal", -np.inf, np.inf, 1, 2),
        ("truncated", -2, 2, 0, 0.8796),
    ):
        values = found[name]
        assert low <= values.min()
        assert values.max() <= high
        assert values.mean() == pytest.approx(mean, abs=0.05)
        assert values.std() == pytest.approx(deviation, rel=0.03)
    assert (found["uniform"] < 1).all()
    assert set(found["integers"].tolist()) == {-2, -1, 0, 1, 2}


@sweep("name", ["float16", "bfloat16", "float32", "float64"], quick=2)
def test_floating_dtypes(name: str) -> None:
    tensors = [
        random.random_uniform([5], dtype=name),
        random.random_normal([5], dtype=name),
        random.truncated_normal([5], dtype=name),
    ]
    with Session() as session:
        for tensor, value in zip(tensors, session.run(tensors), strict=True):
            assert tensor.dtype.name == name
            assert value.dtype == as_dtype(name).numpy_dtype


def test_large_integers() -> None:
    tensor = random.random_uniform([1000], 0, 2**40, int64, seed=3)
    values = draws(tensor, 1)[0]
    assert min(values) >= 0
    assert 2**38 < max(values) < 2**40
    with pytest.raises(ValueError, match="Must specify maxval"):
        random.random_uniform([2], dtype=int32)


def test_shuffle_permutes_rows() -> None:
    x = builtin_ops.placeholder(float32, [None, 2])
    shuffled = random.random_shuffle(x, seed=4)
    rows = np.arange(40, dtype=np.float32).reshape(20, 2)
    with Session() as session:
        value = session.run(shuffled, {x: rows})
    assert value.tolist() != rows.tolist()
    assert sorted(value.tolist()) == rows.tolist()


@pytest.mark.slow
def test_multinomial_follows_logits() -> None:
    logits = np.log(np.array([[0.1, 0.2, 0.7], [0.8, 0.1, 0.1]], np.float32))
    (values,) = draws(random.multinomial(logits, 5000, seed=1), 1)
    for row, expected in zip(np.array(values), np.exp(logits), strict=True):
        np.testing.assert_allclose(np.bincount(row, minlength=3) / 5000, expected, atol=0.03)


@pytest.mark.slow
def test_initial_values_are_redrawn_per_initialization() -> None:
    v = get_variable("v", [10])
    w = Variable(random.random_normal([10], seed=1))
    with Session() as session:
        session.run([v.initializer, w.initializer])
        one = session.run([v, w])
        np.testing.assert_array_equal(session.run(v), one[0])
        session.run([v.initializer, w.initializer])
        other = session.run([v, w])
    assert (one[0] != other[0]).any()
    assert (one[1] != other[1]).any()


@pytest.mark.slow
def test_shape_from_tensor() -> None:
    x = builtin_ops.placeholder(float32, [None, 2])
    noise = random.random_normal(array.shape(x))
    assert noise.shape == [None, 2]
    with Session() as session:
        assert session.run(noise, {x: np.zeros([3, 2])}).shape == (3, 2)
        assert session.run(x + noise, {x: np.zeros([5, 2])}).shape == (5, 2)


@pytest.mark.slow
def test_dropout() -> None:
    x = builtin_ops.placeholder(float32, [None, 100])
    dropped = nn.dropout(x, rate=0.25, seed=1)
    whole = nn.dropout(x, keep_prob=1.0)
    rows = nn.dropout(x, rate=0.5, noise_shape=[50, 1], seed=1)
    fed_rate = builtin_ops.placeholder(float32, [])
    by_feed = nn.dropout(x, rate=fed_rate, seed=1)
    fed = np.ones([50, 100], np.float32)
    with Session() as session:
        value = session.run(dropped, {x: fed})
        assert set(np.unique(value)) == {0.0, np.float32(1 / 0.75)}
        assert (value == 0).mean() == pytest.approx(0.25, abs=0.02)
        assert value.mean() == pytest.approx(1.0, abs=0.03)
        np.testing.assert_array_equal(session.run(whole, {x: fed}), fed)
        assert (session.run(rows, {x: fed}).std(axis=1) == 0).all()
        assert (session.run(by_feed, {x: fed, fed_rate: 0.5}) == 0).mean() == pytest.approx(
            0.5, abs=0.02
        )
        np.testing.assert_array_equal(session.run(by_feed, {x: fed, fed_rate: 0.0}), fed)
    for arguments in ({"rate": 1.0}, {"rate": -0.1}, {}, {"rate": 0.1, "keep_prob": 0.9}):
        with pytest.raises(ValueError, match="rate"):
            nn.dropout(x, **arguments)
