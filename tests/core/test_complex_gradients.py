"""Gradients of complex numbers are TensorFlow's: the conjugates of JAX's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimatorkit as tf
from tests.golden.snippets_complex import GRADIENTS, LEGACY, R, Z

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "complex.json").read_text("utf-8"))


@pytest.mark.parametrize("name", sorted(GRADIENTS.keys() - LEGACY))
def test_gradients(name: str) -> None:
    check_gradients(tf, name)


def check_gradients(module: Any, name: str) -> None:
    """Compares gradients through a module's functions."""
    wanted = GOLDEN["gradients"][name]
    with tf.Graph().as_default(), tf.Session() as session:
        z, r = tf.placeholder(tf.complex64, [2]), tf.placeholder(tf.float32, [2])
        if "error" in wanted:
            assert wanted["error"]["class"] == "TypeError"
            with pytest.raises(TypeError, match=r"complex tensors .* must set grad_ys"):
                GRADIENTS[name](module, z, r)
            return
        found = session.run(GRADIENTS[name](module, z, r), {z: Z, r: R})
    assert found.dtype.name == wanted["dtype"]
    expected = np.array([complex(each) for each in wanted["values"]]).reshape(wanted["shape"])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
