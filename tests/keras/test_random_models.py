"""Random models train as in TensorFlow: predictions, losses, metrics, weights of each step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import estimatorkit as tf
from tests.golden.snippets_random_models import LEGACY, run
from tests.sweep import sweep

FILE = Path(__file__).parent.parent / "golden" / "random_models.json"
GOLDEN = json.loads(FILE.read_text())["results"]


@sweep("seed", [seed for seed in GOLDEN if seed not in LEGACY], quick=1)
def test_model(seed: str) -> None:
    with tf.Graph().as_default():
        ours: dict[str, Any] = run(tf, int(seed))
    theirs = GOLDEN[seed]
    assert list(ours) == list(theirs)
    for part, expected in theirs.items():
        if part == "layers":  # TensorFlow lists the operations between them, too
            continue
        found = ours[part]
        if isinstance(expected, dict):
            assert list(found) == list(expected), part
            found, expected = list(found.values()), list(expected.values())
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3, err_msg=part)
