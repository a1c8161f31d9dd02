"""`keras.backend` against TensorFlow 2.15.1: sessions, functions, learning phases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estimatorkit.core.graph import Graph
from estimatorkit.core.nest import flatten
from estimatorkit.keras import backend as K
from estimatorkit.runtime.session import Session
from tests.golden.snippets_keras_backend import FACTS, NUMBERS

GOLDEN = json.loads(
    (Path(__file__).parents[2] / "golden" / "keras_backend.json").read_text("utf-8")
)


@pytest.fixture(autouse=True)
def graph() -> Any:
    with Graph().as_default() as graph:
        yield graph


@pytest.mark.slow
def test_every_function_matches_tensorflow() -> None:
    made = {name: program(K) for name, program in NUMBERS.items()}
    found = K.get_session().run({name: [*flatten([each])] for name, each in made.items()})
    assert sorted(found) == sorted(GOLDEN["numbers"])
    for name, golden in GOLDEN["numbers"].items():
        expected = golden if isinstance(golden, list) else [golden]
        assert len(found[name]) == len(expected), name
        for place, (value, wanted) in enumerate(zip(found[name], expected, strict=True)):
            where = f"{name}[{place}]"
            assert value.dtype == wanted["dtype"], where
            numbers = np.array([float(each) for each in wanted["values"]])
            np.testing.assert_allclose(
                value, numbers.reshape(wanted["shape"]), 2e-5, 2e-6, err_msg=where
            )


def test_static_tensor_properties() -> None:
    assert FACTS(K) == GOLDEN["facts"]
    assert K.int_shape(K.batch_flatten(K.placeholder((None, 3, 4)))) == (None, 12)  # TensorFlow: ?


def test_every_public_name_exists() -> None:
    assert len([getattr(K, name) for name in dir(K)]) > 140


def test_setting_values_does_not_recompile() -> None:
    v = K.variable(np.arange(3.0), name="v")
    double = K.get_session().make_callable(v * 2)
    np.testing.assert_array_equal(double(), [0, 2, 4])
    K.set_value(v, [5, 6, 7])
    np.testing.assert_array_equal(double(), [10, 12, 14])
    K.batch_set_value([(v, np.ones(3))])
    assert [each.tolist() for each in K.batch_get_value([v])] == [[1, 1, 1]]
    assert K.eval(v + 1).tolist() == [2, 2, 2]
    assert K.get_value(3) == 3


def test_function_feeds_runs_then_updates() -> None:
    x, y = K.placeholder((None, 2)), K.placeholder((None, 2))
    total = K.variable(0.0)
    call = K.function([x, y], [x + y, {"total": total * 1.0}], updates=[(total, total + K.sum(x))])
    ones = np.ones((1, 2), np.float32)
    assert call([ones, 2 * ones])[1] == {"total": 0.0}
    found, totals = call([ones, ones])
    np.testing.assert_array_equal(found, [[2, 2]])
    assert totals == {"total": 2.0}
    assert K.get_value(total) == 4.0
    with pytest.raises(ValueError, match="another number of inputs"):
        call([ones])
    with pytest.raises(ValueError, match="Invalid argument 'options'"):
        K.function([x], [x], options=1)


def test_learning_phase_is_fed_or_set() -> None:
    x = K.constant([1.0, 2.0])
    chosen = K.in_train_phase(x, -x)
    call = K.function([K.learning_phase()], chosen)
    assert call([True]).tolist() == [1, 2]
    assert call([False]).tolist() == [-1, -2]
    with K.learning_phase_scope(1):
        assert K.in_train_phase(x, -x) is x
    K.set_learning_phase(0)
    assert K.in_test_phase(x, -x) is x
    with pytest.raises(ValueError, match="0 or 1"):
        K.set_learning_phase(2)


def test_set_and_clear_session() -> None:
    with Session() as session:
        assert K.get_session() is session
    mine = Session()
    K.set_session(mine)
    assert K.get_session() is mine
    assert [K.get_uid("a"), K.get_uid("a"), K.get_uid("b")] == [1, 2, 1]
    K.reset_uids()
    assert K.get_uid("a") == 1


def test_manual_variable_initialization() -> None:
    v = K.variable(1.0)
    K.manual_variable_initialization(True)
    try:
        K.get_session()
        assert v.op.name not in K.get_session().state.values
    finally:
        K.manual_variable_initialization(False)
    K.get_session()
    assert v.op.name in K.get_session().state.values


def test_set_floatx() -> None:
    K.set_floatx("float64")
    try:
        assert K.constant(1).dtype.name == K.dtype(K.variable(1)) == "float64"
        assert K.random_normal((2,)).dtype.name == "float64"
    finally:
        K.set_floatx("float32")
    with pytest.raises(ValueError, match="Unknown `floatx` value: int8"):
        K.set_floatx("int8")


def test_random_distributions() -> None:
    ones, drawn = K.get_session().run(
        [K.random_bernoulli((2000,), p=0.3, seed=1), K.random_uniform((2000,), 2.0, 3.0, seed=1)]
    )
    assert set(ones) == {0.0, 1.0}
    assert abs(ones.mean() - 0.3) < 0.05
    assert drawn.min() >= 2
    assert drawn.max() < 3


def test_moving_averages_and_print_tensor(capfd: pytest.CaptureFixture[str]) -> None:
    v = K.variable([1.0, 2.0])
    move = K.moving_average_update(v, K.constant([3.0, 0.0]), 0.5)
    K.get_session().run(move)
    assert K.get_value(v).tolist() == [2.0, 1.0]
    assert K.eval(K.print_tensor(K.constant([1.0]), message="value")).tolist() == [1]
    assert "value" in capfd.readouterr().out


def test_invalid_arguments_raise() -> None:
    x = K.placeholder((None, 3))
    with pytest.raises(ValueError, match="rank < 2"):
        K.batch_dot(K.constant([1.0]), x)
    with pytest.raises(ValueError, match="3 != 4"):
        K.batch_dot(x, K.placeholder((None, 4)), axes=1)
    with pytest.raises(ValueError, match="Invalid pooling mode"):
        K.pool2d(K.placeholder((None, 4, 4, 1)), 2, pool_mode="median")
    with pytest.raises(ValueError, match="ragged"):
        K.placeholder((None,), ragged=True)
    with pytest.raises(ValueError, match="symbolic tensor"):
        K.is_keras_tensor(np.ones(2))
    assert not K.is_keras_tensor(x)


def test_backend_gradients() -> None:
    x = K.constant([1.0, 2.0])
    (found,) = K.gradients(K.sum(x * x), [x])
    assert K.eval(found).tolist() == [2.0, 4.0]
    assert K.gradients(K.sum(K.stop_gradient(x) * 2), [x]) == [None]


@pytest.mark.slow
def test_clear_session_starts_new_default_graph() -> None:
    import subprocess
    import sys

    program = (
        "from estimatorkit.keras import backend as K\n"
        "from estimatorkit.core.graph import get_default_graph\n"
        "v = K.variable(1.0); before = get_default_graph(); session = K.get_session()\n"
        "K.clear_session()\n"
        "assert get_default_graph() is not before and K.get_session() is not session\n"
        "assert K.get_uid('a') == 1\n"
        "print('ok')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "ok\n", done.stderr
