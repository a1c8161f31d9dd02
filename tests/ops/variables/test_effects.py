"""Random programs of assignments ordered by control dependencies, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

import estimatorkit as tf
from tests.sweep import sweep

ROWS = 4

SCATTERS = {
    "scatter_update": None,
    "scatter_add": np.add,
    "scatter_sub": np.subtract,
    "scatter_mul": np.multiply,
    "scatter_min": np.minimum,
    "scatter_max": np.maximum,
    "scatter_nd_update": None,
    "scatter_nd_add": np.add,
}
WHOLE = {"assign": None, "assign_add": np.add, "assign_sub": np.subtract}


def _step(variable: Any, kind: str, at: Any, values: Any) -> tuple[Any, Any]:
    """An operation, and what it does to an array."""
    if kind == "read":
        return variable.read_value(), lambda old: old
    if kind == "slice":
        effect = tf.identity(variable[1:3].assign(values[:2]))
        return effect, lambda old: np.concatenate([old[:1], values[:2], old[3:]])
    if kind in WHOLE:
        change = WHOLE[kind]
        effect = getattr(tf, kind)(variable, values)
        return effect, lambda old: values if change is None else change(old, values)
    change, rows = SCATTERS[kind], at[:, None] if kind.startswith("scatter_nd") else at

    def scattered(old: Any) -> Any:
        new = old.copy()
        for row, value in zip(at, values[: len(at)], strict=True):
            new[row] = value if change is None else change(new[row], value)
        return new

    return getattr(tf, kind)(variable, rows, values[: len(at)]), scattered


@sweep("seed", range(40), quick=3)
def test_effects_happen_in_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dtype = ["float32", "float64", "int32", "int64"][seed % 4]
    shape = (ROWS,) if seed % 8 < 4 else (ROWS, 2)
    start = rng.integers(-3, 6, shape).astype(dtype)
    variable = tf.Variable(start, use_resource=bool(rng.integers(2)))
    kinds = rng.choice([*WHOLE, *SCATTERS, "read", "slice"], 7)
    reads: list[Any] = []
    changes = []
    for kind in ["assign", *kinds] if seed % 3 else kinds:
        rows = rng.permutation(ROWS)[: rng.integers(1, ROWS)].astype(np.int32)
        values = rng.integers(-2, 4, shape).astype(dtype)
        with tf.control_dependencies(reads[-1:]):
            effect, change = _step(variable, kind, rows, values)
        with tf.control_dependencies([effect]):
            reads.append(variable.read_value())
        changes.append(change)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        expected = start
        for last in rng.integers(1, len(reads) + 1, 3):
            found = session.run(reads[last - 1])
            for change in changes[:last]:
                expected = change(expected)
            np.testing.assert_array_equal(found, expected)
