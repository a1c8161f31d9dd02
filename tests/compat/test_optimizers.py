"""Legacy optimizer names: contrib.opt, contrib.mixed_precision, training_ops, Keras's modules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import estimatorkit.compat.v1 as tf
from estimatorkit.compat.v1.contrib import opt
from estimatorkit.compat.v1.keras.optimizers import Adam
from estimatorkit.compat.v1.keras.optimizers.schedules import ExponentialDecay
from estimatorkit.compat.v1.python.training import training_ops
from estimatorkit.keras import optimizers


def test_optimizer_modules() -> None:
    assert Adam is optimizers.Adam is tf.keras.optimizers.legacy.Adam
    assert ExponentialDecay is optimizers.schedules.ExponentialDecay
    assert issubclass(opt.LazyAdamOptimizer, tf.train.AdamOptimizer)
    assert opt.MovingAverageOptimizer(tf.train.AdamOptimizer()).get_name() == "Adam"
    assert tf.python.keras.optimizer_v2.optimizer_v2.OptimizerV2 is optimizers.Optimizer
    assert tf.train.experimental.DynamicLossScale().initial_loss_scale == 2.0**15
    assert tf.keras.mixed_precision.experimental.Policy("mixed_bfloat16").compute_dtype
    with pytest.raises(AttributeError, match=r"train\.OptaxOptimizer"):
        _ = opt.ShampooOptimizer


class OldAdam(tf.train.Optimizer):  # type: ignore[misc,name-defined]
    """As the programs that call `training_ops` by themselves."""

    def __init__(self) -> None:
        super().__init__(False, "OldAdam")

    def _create_slots(self, var_list: Any) -> None:
        for variable in var_list:
            self._zeros_slot(variable, "m", self._name)
            self._zeros_slot(variable, "v", self._name)

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        numbers = (tf.constant(0.9), tf.constant(0.999), 0.5, 0.9, 0.999, 1e-8)
        return training_ops.apply_adam(var, m, v, *numbers, grad, use_locking=False).op

    def _resource_apply_dense(self, grad: Any, var: Any) -> Any:
        raise AssertionError("TensorFlow 1's variables take the other method")


def test_steps_as_functions() -> None:
    with tf.Graph().as_default():
        w, other, slot = (tf.Variable([1.0, 2.0], name=name) for name in ("w", "other", "slot"))
        update = OldAdam().minimize(tf.reduce_sum(w * w), var_list=[w])
        grad = tf.constant([1.0, -1.0])
        momentum = training_ops.resource_apply_momentum(
            other.handle, slot.handle, 0.5, grad, 0.0, use_nesterov=False
        )
        with tf.control_dependencies([momentum]):
            lowered = training_ops.apply_gradient_descent(other, alpha=0.25, delta=grad)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            session.run(update)
            np.testing.assert_allclose(session.run(w), [0.5, 1.5], rtol=1e-6)
            np.testing.assert_array_equal(session.run(lowered), [0.25, 2.75])


def test_function_arguments_match_tensorflow() -> None:
    with tf.Graph().as_default():
        w, slot = tf.Variable([1.0]), tf.Variable([1.0])
        step = training_ops.resource_apply_momentum(w, slot, 0.5, [1.0], 0.5, False, True)
        assert step.type == "ApplyNesterovMomentum"
        with pytest.raises(TypeError, match="missing a required argument: 'grad'"):
            training_ops.apply_adagrad(w, slot, 0.5)
        with pytest.raises(TypeError, match="too many positional"):
            training_ops.apply_gradient_descent(w, 0.5, [1.0], False, None, 3)
        with pytest.raises(ValueError, match="update_slots=False is not supported"):
            training_ops.apply_adagrad(w, slot, 0.5, [1.0], update_slots=False)


def test_contrib_loss_scales() -> None:
    manager = tf.contrib.mixed_precision.ExponentialUpdateLossScaleManager(8.0, 2, 2, 2.0, 0.25)
    seen = []
    with tf.Graph().as_default():
        w, factor = tf.Variable([1.0]), tf.placeholder(tf.float32, [])
        inner = tf.train.GradientDescentOptimizer(0.5)
        optimizer = tf.contrib.mixed_precision.LossScaleOptimizer(inner, manager)
        update = optimizer.minimize(w * factor)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for value in (1.0, 1.0, np.nan, np.inf, 1.0, np.nan):
                session.run(update, {factor: value})
                seen.append(float(session.run(manager())))
            assert session.run(w) == [-0.5]
    assert seen == [8.0, 16.0, 16.0, 4.0, 4.0, 4.0]
