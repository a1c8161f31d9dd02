"""Arguments that TensorFlow 2.15.1 refuses in `tf.nn`, `tf.losses` and `tf.metrics` raise here too,
with the same class of error, also if shapes are known at run time only.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import estimatorkit as tf
from tests.golden.golden_files import error_of
from tests.golden.snippets_refusals import LEGACY, REFUSALS
from tests.golden.snippets_unknown_shapes import UNKNOWN_SHAPES

_EVERY = REFUSALS | UNKNOWN_SHAPES

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "refusals.json").read_text("utf-8"))


def _run(module: Any, name: str) -> object:
    with tf.Graph().as_default():
        made = _EVERY[name](module)
        with tf.Session() as session:
            session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            return session.run(made)


@pytest.mark.parametrize("name", sorted(_EVERY.keys() - LEGACY))
def test_raises_same_error_class(name: str) -> None:
    check_class(tf, name)


def check_class(module: Any, name: str) -> None:
    """Compares the class of the error of a module's function."""
    error = error_of(lambda: _run(module, name))
    assert error is not None
    assert error["class"] == GOLDEN["errors"][name]["class"]
