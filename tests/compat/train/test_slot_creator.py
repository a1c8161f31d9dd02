"""Slots on their own: names, values, dtypes and checkpoints."""

from __future__ import annotations

import numpy as np

import estimatorkit as tf
from estimatorkit.compat.v1.python.training import slot_creator


def test_slots_of_variables_and_tensors() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.Variable([1.0, 2.5], name="var")
        constant = tf.constant([1.0, 2.5], name="const")
        slots = [
            slot_creator.create_slot(variable, variable.initialized_value(), name="slot"),
            slot_creator.create_slot(constant, constant * 2, name="slot"),
            slot_creator.create_zeros_slot(variable, name="zeros", dtype=tf.float64),
            slot_creator.create_zeros_slot(constant, name="zeros"),
            slot_creator.create_slot_with_initializer(
                variable, tf.ones_initializer(), tf.TensorShape([3]), tf.int32, name="ones"
            ),
        ]
        assert [slot.op.name for slot in slots] == [
            *("var/slot", "const/slot", "var/zeros", "const/zeros", "var/ones"),
        ]
        session.run(tf.global_variables_initializer())
        values = session.run(slots)
        expected = [[1.0, 2.5], [2.0, 5.0], [0.0, 0.0], [0.0, 0.0], [1, 1, 1]]
        for value, each in zip(values, expected, strict=True):
            np.testing.assert_array_equal(value, each)
        assert [value.dtype.name for value in values] == [
            *("float32", "float32", "float64", "float32", "int32"),
        ]
        assert tf.trainable_variables() == [variable]


def test_slots_of_unknown_shape() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        fed = tf.placeholder(tf.float32, [None])
        variable = tf.Variable(fed, validate_shape=False, name="var")
        slot = slot_creator.create_zeros_slot(variable, name="slot")
        session.run(tf.global_variables_initializer(), {fed: [1.0, 2.0]})
        np.testing.assert_array_equal(session.run(slot), [0.0, 0.0])


def test_slots_of_partitions() -> None:
    with tf.Graph().as_default(), tf.variable_scope("scope"):
        parts = tf.get_variable("w", [4, 2], partitioner=tf.fixed_size_partitioner(2))
        slots = [slot_creator.create_zeros_slot(part, name="slot") for part in parts]
    assert [slot.op.name for slot in slots] == [
        *("scope/scope/w/part_0/slot", "scope/scope/w/part_1/slot"),
    ]
    infos = [slot.save_slice_info for slot in slots]
    assert [(info.full_name, list(info.full_shape), list(info.var_offset)) for info in infos] == [
        ("scope/scope/w/slot", [4, 2], [0, 0]),
        ("scope/scope/w/slot", [4, 2], [2, 0]),
    ]
