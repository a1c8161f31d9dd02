"""`ExportedModule`: a compiled program in a graph matches the function it was made from."""

from __future__ import annotations

import jax
import jax.export
import numpy as np
import pytest

import estimatorkit as tf
from estimatorkit.core.errors import DataLossError
from estimatorkit.core.registry import output
from estimatorkit.estimator.serving.exported_module import OP_TYPE, PLATFORMS


def program() -> bytes:
    (rows,) = jax.export.symbolic_shape("rows")
    export = jax.export.export(
        jax.jit(lambda inputs: [inputs[0] * 2.0 + 1.0]), platforms=list(PLATFORMS)
    )
    like = jax.ShapeDtypeStruct((rows, 3), np.dtype(np.float32))  # type: ignore[no-untyped-call]
    return bytes(export([like]).serialize())


def test_value_and_shape() -> None:
    assert OP_TYPE == "ExportedModule"
    module = np.frombuffer(program(), np.uint8)
    x = tf.placeholder(tf.float32, [None, 3])
    y = output(OP_TYPE, [x], {"module": module})
    assert y.dtype is tf.float32
    assert y.shape.as_list() == [None, 3]
    with tf.Session() as session:
        for rows in (1, 4):
            given = np.arange(rows * 3, dtype=np.float32).reshape(rows, 3)
            np.testing.assert_array_equal(session.run(y, {x: given}), given * 2 + 1)


def test_other_inputs_raise() -> None:
    module = np.frombuffer(program(), np.uint8)
    for wrong in (tf.zeros([3]), tf.zeros([2, 3], tf.float64)):
        with pytest.raises(ValueError, match="a program takes other inputs"):
            output(OP_TYPE, [wrong], {"module": module})
    with pytest.raises(DataLossError, match="cannot be read"):
        output(OP_TYPE, [tf.zeros([2, 3])], {"module": module[:40]})
