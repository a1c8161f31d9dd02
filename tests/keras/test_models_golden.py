"""Models give TensorFlow's numbers: histories, evaluations, predictions, weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import estimatorkit as tf
from tests.golden.snippets_keras_models import SNIPPETS
from tests.sweep import sweep

FILE = Path(__file__).parent.parent / "golden" / "keras_models.json"
GOLDEN = json.loads(FILE.read_text())["results"]


def same(ours: Any, theirs: Any, where: str) -> None:
    if isinstance(theirs, dict):
        assert set(ours) == set(theirs), where
        for key, value in theirs.items():
            same(ours[key], value, f"{where}/{key}")
    elif isinstance(theirs, str) or (
        theirs and isinstance(theirs, list) and where.endswith("s") and isinstance(theirs[0], str)
    ):
        assert ours == theirs, where
    elif isinstance(ours, (list, tuple)) and any(np.ndim(each) for each in ours):
        assert len(ours) == len(theirs), where
        for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            same(one, other, f"{where}[{number}]")
    else:
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-6, err_msg=where)


@sweep("name", SNIPPETS, quick=2)
def test_snippet(name: str) -> None:
    with tf.Graph().as_default():
        same(SNIPPETS[name](tf, tf.keras), GOLDEN[name], name)
