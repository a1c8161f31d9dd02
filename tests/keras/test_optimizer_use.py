"""Using Keras optimizers: changing learning rates, custom optimizers, configs, weights."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estimatorkit.core import builtin_ops
from estimatorkit.core.graph import Graph
from estimatorkit.core.variables import Variable
from estimatorkit.keras import optimizers
from estimatorkit.keras.optimizers import schedules
from estimatorkit.layers.engine.sessions import session_of, set_values
from estimatorkit.ops.array import indexing
from estimatorkit.ops.math import elementwise, reduce
from estimatorkit.ops.variables.variable_collections import global_variables_initializer
from estimatorkit.runtime.session import Session
from estimatorkit.storage.checkpoint import list_variables
from estimatorkit.train.global_steps import get_or_create_global_step
from estimatorkit.train.optimizers.optimizers import AdamOptimizer
from estimatorkit.train.saving.object_checkpoint import Checkpoint


@pytest.fixture(autouse=True)
def graph() -> Iterator[Graph]:
    graph = Graph()
    with graph.as_default():
        yield graph


def started() -> Session:
    session = Session()
    session.run(global_variables_initializer())
    return session


def weights(value: Any = (1.0, -2.0), name: str = "w", **rest: Any) -> Variable:
    return Variable(np.array(value, np.float32), name=name, **rest)


@pytest.mark.usefixtures("compiled")
@pytest.mark.slow
def test_changing_learning_rate_does_not_recompile() -> None:
    w = weights([10.0])
    optimizer = optimizers.SGD(lr=1.0)
    update = optimizer.minimize(w * 1.0, [w])
    with started() as session:
        session.run(update)
        optimizer.lr = 2.0
        session.run(update)
        set_values([(optimizer.lr, 0.5)])
        session.run(update)
        assert session.run(w) == [6.5]
        assert optimizer.get_config()["learning_rate"] == 0.5
        assert session.run(optimizer.iterations) == 3
        assert session.state.compilations[update.name] == 1
    assert optimizer.lr is optimizer.learning_rate
    assert {"lr", "momentum"} <= set(dir(optimizer))
    with pytest.raises(AttributeError, match="'SGD' object has no attribute 'rate'"):
        _ = optimizer.rate


class Halving(schedules.LearningRateSchedule):
    """A schedule of the user's own."""

    def __init__(self, first: float) -> None:
        self.first = first

    def __call__(self, step: Any) -> Any:
        """1, 1/2, 1/4, ..."""
        return self.first * elementwise.pow(0.5, step)

    def get_config(self) -> dict[str, Any]:
        """The argument."""
        return {"first": self.first}


def test_schedules_and_callable_losses() -> None:
    w = weights([0.0])
    named = {"class_name": "Halving", "config": {"first": 1.0}}
    optimizer = optimizers.SGD.from_config({"lr": named}, {"Halving": Halving})
    update = optimizer.minimize(lambda: w * 1.0, lambda: [w])
    by_function = optimizers.SGD(lambda: 0.25)
    other = by_function.minimize(w * 1.0, [w])
    with started() as session:
        for _ in range(3):
            session.run(update)
        assert session.run(w) == [-1.75]
        session.run(other)
        assert session.run(w) == [-2.0]
    assert optimizer.get_config()["learning_rate"] == named
    assert by_function.get_config()["learning_rate"] == 0.25
    with pytest.raises(NotImplementedError, match="must override get_config"):
        schedules.LearningRateSchedule.get_config(Halving(1.0))
    with pytest.raises(ValueError, match="does not support"):
        optimizers.Nadam(Halving(1.0))


class Sign(optimizers.Optimizer):
    """An optimizer of the user's own, as Keras 2's documentation describes it."""

    def __init__(self, learning_rate: float = 0.5, name: str = "Sign", **kwargs: Any) -> None:
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))

    def _create_slots(self, var_list: Any) -> None:
        for variable in var_list:
            self.add_slot(variable, "count", "ones")

    def _resource_apply_dense(self, grad: Any, var: Any, apply_state: Any = None) -> Any:
        rate = apply_state[var.device, var.dtype.base_dtype]["lr_t"]
        count = self.get_slot(var, "count").assign_add(abs(grad))
        return builtin_ops.group(count, var.assign_sub(rate * elementwise.sign(grad)))

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        rate = self._decayed_lr(var.dtype)
        count = self._resource_scatter_add(self.get_slot(var, "count"), indices, grad)
        step = self._resource_scatter_add(var, indices, -rate * elementwise.sign(grad))
        return builtin_ops.group(count, step)


def test_custom_optimizer_gets_each_row_once() -> None:
    w, table = weights(), weights([[0.0], [0.0], [0.0]], "table")
    loss = reduce.reduce_sum(w * [2.0, -3.0]) + reduce.reduce_sum(indexing.gather(table, [1, 1]))
    optimizer = Sign(decay=1.0)
    update = optimizer.minimize(loss, [w, table])
    with started() as session:
        session.run(update)
        session.run(update)
        np.testing.assert_array_equal(session.run(w), [0.25, -1.25])  # by 0.5, then by 0.25
        np.testing.assert_array_equal(session.run(table)[:, 0], [0.0, -0.75, 0.0])
        counts = session.run([optimizer.get_slot(w, "count"), optimizer.get_slot(table, "count")])
    np.testing.assert_array_equal(counts[0], [5.0, 7.0])
    np.testing.assert_array_equal(counts[1][:, 0], [1.0, 5.0, 1.0])


def test_get_and_set_weights() -> None:
    w = weights()
    optimizer = optimizers.Adam(0.5)
    optimizer.build([w])
    made = optimizer.weights
    update = optimizer.minimize(reduce.reduce_sum(w * w), [w])
    assert optimizer.weights == made
    with started() as session:
        session.run(update)
        kept = optimizer.get_weights()
        assert [np.shape(each) for each in kept] == [(), (2,), (2,)]
        session.run(update)
        optimizer.set_weights(kept)
        assert session.run(optimizer.iterations) == 1
        np.testing.assert_array_equal(session.run(optimizer.get_slot(w, "m")), kept[1])
    with pytest.raises(ValueError, match="expecting 3 weights"):
        optimizer.set_weights(kept[:2])
    with pytest.raises(ValueError, match="not compatible with provided weight shape"):
        optimizer.set_weights([kept[0], kept[1], np.zeros(3)])


def test_object_checkpoint_keys_match_keras(tmp_path: Path) -> None:
    w = weights()
    optimizer = optimizers.Adam(0.5)
    update = optimizer.minimize(reduce.reduce_sum(w * w), [w])
    checkpoint = Checkpoint(w=w, optimizer=optimizer)
    with started() as session:
        session.run(update)
        path = checkpoint.save(str(tmp_path / "model"), session=session)
        session.run(update)
        expected = session.run(w)
        checkpoint.restore(path).run_restore_ops(session)
        session.run(update)
        np.testing.assert_array_equal(session.run(w), expected)
    keys = {name.removesuffix("/.ATTRIBUTES/VARIABLE_VALUE") for name, _ in list_variables(path)}
    names = ("iter", "beta_1", "beta_2", "decay", "learning_rate")
    assert {f"optimizer/{name}" for name in names} <= keys
    assert {f"w/.OPTIMIZER_SLOT/optimizer/{slot}" for slot in "mv"} <= keys


@pytest.mark.slow
def test_optimizer_in_two_graphs_with_global_step() -> None:
    optimizer = optimizers.Adam(0.5, clipvalue=1.0)
    for _ in range(2):
        with Graph().as_default():
            w = weights([4.0])
            step = get_or_create_global_step()
            update = optimizer.minimize(w * 8.0, [w], global_step=step)
            assert optimizer.iterations is step
            names = [each.op.name for each in optimizer.weights]
            assert names == ["global_step", "training/Adam/w/m", "training/Adam/w/v"]
            with started() as session:
                session.run(update)
                assert session.run([w, step]) == [pytest.approx([3.5]), 1]
                assert session.run(optimizer.get_slot(w, "m")) == pytest.approx([0.1])
            with pytest.raises(RuntimeError, match="Cannot set `iterations`"):
                optimizer.iterations = weights()


def test_weight_decay_exclusions() -> None:
    w, bias = weights([1.0, 2.0]), weights([1.0], "bias")
    optimizer = optimizers.AdamW(0.5, weight_decay=0.1, epsilon=1e-9)
    optimizer.exclude_from_weight_decay(var_names=["bias"])
    update = optimizer.minimize(reduce.reduce_sum(w) + reduce.reduce_sum(bias), [w, bias])
    with started() as session:
        session.run(update)
        np.testing.assert_allclose(session.run(w), [0.95 - 0.5, 1.9 - 0.5], rtol=1e-5)
        np.testing.assert_allclose(session.run(bias), [0.5], rtol=1e-5)


def test_missing_and_transformed_gradients(caplog: pytest.LogCaptureFixture) -> None:
    w, other = weights([1.0]), weights([5.0], "other")
    double = [lambda pairs: [(2.0 * gradient, variable) for gradient, variable in pairs]]
    made = type("Doubled", (optimizers.SGD,), {})(0.25)
    made.gradient_transformers = double
    with caplog.at_level("WARNING", "estimatorkit"):
        update = made.minimize(w * 1.0, [w, other])
    assert "Gradients do not exist for variables ['other:0']" in caplog.text
    with started() as session:
        session.run(update)
        assert session.run([w, other]) == [[0.5], [5.0]]
    with pytest.raises(ValueError, match="No gradients provided"):
        made.apply_gradients([(None, w)])
    with pytest.raises(ValueError, match=r"`None` for gradient"):
        made.get_gradients(w * 1.0, [other])
    with pytest.raises(NotImplementedError, match="does not say how"):
        optimizers.Optimizer("plain").minimize(w * 1.0, [w])


def test_optimizers_by_name() -> None:
    for name in ("SGD", "sgd", "RMSprop", "rmsprop", "adam", "Adamax", "nadam", "Ftrl", "adamw"):
        made = optimizers.get(name)
        again = optimizers.deserialize(optimizers.serialize(made))
        assert type(again) is type(made)
        assert again.get_config() == made.get_config()
        assert type(made).__name__.lower() == name.lower()
    assert optimizers.legacy.Adam is optimizers.Adam
    inner = AdamOptimizer()
    assert optimizers.get(inner) is inner
    custom = {"class_name": "Sign", "config": {"learning_rate": 0.1}}
    assert isinstance(optimizers.deserialize(custom, {"Sign": Sign}), Sign)
    with pytest.raises(ValueError, match="did you mean 'adam'"):
        optimizers.get("adamm")
    with pytest.raises(ValueError, match="Could not interpret optimizer identifier"):
        optimizers.get(3)
    with pytest.raises(TypeError, match="Invalid keyword arguments"):
        optimizers.get("sgd", lr=0.1)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: optimizers.SGD(rate=0.1), TypeError, "Unexpected keyword argument"),
        (lambda: optimizers.SGD(clipnorm=-1.0), ValueError, "Expected clipnorm >= 0"),
        (
            lambda: optimizers.SGD(clipnorm=1.0, global_clipnorm=1.0),
            ValueError,
            "Cannot accept both",
        ),
        (lambda: optimizers.SGD(momentum=1.5), ValueError, r"must be between \[0, 1\]"),
        (lambda: optimizers.Ftrl(learning_rate_power=0.5), ValueError, "negative or zero"),
        (lambda: optimizers.Ftrl(l1_regularization_strength=-1.0), ValueError, "positive or zero"),
        (lambda: optimizers.Adagrad(initial_accumulator_value=-1.0), ValueError, "positive"),
        (lambda: optimizers.Adam(use_ema=True), ValueError, "ExponentialMovingAverage"),
    ],
)
def test_invalid_arguments_raise(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_learning_rate_set_before_first_step() -> None:
    w = weights([1.0])
    optimizer = optimizers.SGD(1.0)
    optimizer.learning_rate = 0.25
    update = optimizer.minimize(w * 1.0, [w])
    session = session_of()
    session.run(update)
    assert session.run(w) == [0.75]


def test_custom_weight_dtype() -> None:
    assert optimizers.SGD().add_weight("count", (), dtype="int64", initializer=0).dtype == "int64"
