"""The tests of `tests/ops/test_special_values.py` for rows that need names of TensorFlow 1."""

from __future__ import annotations

from tests.golden.snippets_special_values import FLOATS, KINDS, LEGACY
from tests.ops.test_special_values import FED, check_rows
from tests.sweep import sweep


@sweep(
    ("kind", "dtype", "way"),
    [
        *(
            (kind, dtype, "fed")
            for dtype in FLOATS
            if dtype in FED
            for kind in ("rows", "finite rows")
        ),
        *((kind, dtype, "constant") for dtype in FLOATS for kind in ("rows", "finite rows")),
    ],
    quick=1,
)
def test_special_values(kind: str, dtype: str, way: str) -> None:
    check_rows({name: KINDS[kind][name] for name in LEGACY}, kind, dtype, way)
