"""Operations on NaN, infinities, zeros, ties and limits against TensorFlow, fed and constant."""

from __future__ import annotations

import collections
import fnmatch
import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import estimatorkit as tf
from tests.golden.snippets_special_values import (
    DTYPES,
    KINDS,
    LEGACY,
    Row,
    depths,
    outcome,
    points,
    stored,
)
from tests.sweep import sweep

_FOLDER = Path(__file__).parents[1] / "golden"

FED = ("bfloat16", "float32", "complex64", "int32", "uint8")

TOLERANCES = {"float16": 5e-3, "bfloat16": 4e-2, "float64": 1e-9, "complex64": 1e-4}

# `kind/row/dtype/tensor` that differ, by the reason.
REASONS = {
    "TensorFlow's comparisons put NaN anywhere, by the length of the row": (
        *("rows/*sort*/value *", "rows/top_k*/value *"),
    ),
    "NaN may be lost in TensorFlow, by its place; here it stays": (
        *("rows/*segment_m[ai][xn]/*", "rows/max_pool/*", "rows/*softmax*", "rows/*logsumexp*"),
    ),
    "casts of what does not fit depend on an element's place in TensorFlow": (
        "unary/cast to *int*",
    ),
    "TensorFlow's overflow to NaN, or are not exact": (
        *("unary/expm1/complex64/*", "unary/sigmoid/complex64/*", "unary/nn.swish/complex64/*"),
        *("unary/tan/complex64/*", "unary/[02] [*][*] x/complex64/*", "binary/pow/complex64/*"),
        *("unary/x [*][*] [012]*/complex64/*", "unary/poisson/*/second 0"),
    ),
    "branch cuts: the sign of a zero": (
        *("unary/a*sin*/complex64/gradient 0", "unary/acos/complex64/gradient 0"),
        *("unary/x [*][*] 0.5/*", "unary/rsqrt/*/second 0", "binary/distance/complex64/*"),
    ),
    "infinite orders, outside the domain": (
        *("binary/zeta/*", "binary/polygamma/*", "binary/igamma*"),
    ),
    "integers of 8 bits wrap in TensorFlow before the root is taken": (
        "*rows/math.reduce_euclidean_norm*int8/*",
    ),
    "documented: differences of unsigned integers are never negative": ("*non_decreasing*/uint*",),
    "documented: losses of float64 stay float64, those of 16 bits keep them": (
        *("binary/cosine/*float*", "*rows/huber/*", "*rows/hinge/*", "*rows/log_loss/*"),
    ),
    "documented: the gradient of labels that do not sum to 1": ("*rows/cross_entropy/*",),
    "0 and -0 of 16 bits are two values in TensorFlow": ("*rows/unique*float16/*",),
    "TensorFlow's gradient is 0 at 0, which is not the derivative": (
        *("*rows/cumprod*", "*rows/reduce_prod*/second 0", "*segment_prod*"),
    ),
    "TensorFlow omits the conjugate": (
        *(
            "binary/math.multiply_no_nan/complex64/gradient *",
            "binary/math.x*/complex64/gradient *",
        ),
    ),
    "derivatives of TensorFlow's that are not finite, or wrong, at 0": (
        *("unary/math.bessel_i*", "unary/math.erfcinv/*/second 0", "unary/atanh/*/second 0"),
        *("unary/safe log/*/second 0", "binary/math.xdivy/*/second 1"),
    ),
    "second derivatives that cancel": ("finite rows/cosine similarity/*/second 0",),
    "the mean of nothing is NaN": ("*rows/reduce_mean of nothing/complex64/*",),
}
DIFFERENT = [pattern for patterns in REASONS.values() for pattern in patterns]


@functools.cache
def golden() -> tuple[dict[Any, dict[str, Any]], dict[str, dict[str, str]]]:
    """TensorFlow's tensors by kind, row and dtype; the classes of its errors."""
    found: dict[Any, dict[str, Any]] = collections.defaultdict(dict)
    arrays = np.load(_FOLDER / "special_values.npz")
    for key in arrays.files:
        case, _, tensor = key.rpartition("/")
        found[case][tensor] = arrays[key]
    errors = json.loads((_FOLDER / "special_values.json").read_text("utf-8"))["errors"]
    return found, errors


def is_different(key: str) -> bool:
    return any(fnmatch.fnmatch(key, pattern) for pattern in DIFFERENT)


def finite(given: Any) -> Any:
    """Where all inputs are numbers: of gradients only these are compared."""
    return np.all([np.isfinite(each.astype(np.complex128)) for each in given], 0)


def check(key: str, ours: Any, theirs: Any, given: Any) -> None:
    dtype, tensor = key.rsplit("/", 2)[1:]
    assert ours.dtype == theirs.dtype, key
    assert ours.shape == theirs.shape, key
    if theirs.dtype.kind != "f":
        np.testing.assert_array_equal(ours, theirs, key)
        return
    if tensor[:5] != "value" and ours.shape[:1] == given[0].shape:
        ours, theirs = (each[finite(given)] for each in (ours, theirs))
    narrow = dtype in ("float16", "bfloat16")
    # Second derivatives cancel.
    least = 1e-2 if narrow else 2e-5 if tensor[:6] == "second" else 3e-6
    limits = {"rtol": TOLERANCES.get(dtype, 3e-5), "atol": least}
    np.testing.assert_allclose(ours, theirs, **limits, err_msg=key)


def deepest(kind: str, dtype: str, refused: dict[str, str]) -> str | None:
    """What TensorFlow computes of a row: up to the second gradients, the first, or its values."""
    return next((each for each in depths(kind, dtype) if each not in refused), None)


@sweep(
    ("kind", "dtype", "way"),
    [
        *((kind, dtype, "fed") for dtype in FED for kind in KINDS),
        *((kind, dtype, "constant") for dtype in DTYPES for kind in KINDS),
    ],
    quick=3,
)
def test_special_values(kind: str, dtype: str, way: str) -> None:
    check_rows({k: row for k, row in KINDS[kind].items() if k not in LEGACY}, kind, dtype, way)


def check_rows(rows: Mapping[str, Row], kind: str, dtype: str, way: str) -> None:
    """Compares some rows of a kind."""
    tensors, errors = golden()
    given = points(kind, dtype, tf.as_dtype(dtype).as_numpy_dtype)
    with tf.Graph().as_default(), tf.Session() as session:
        placeholders = [tf.placeholder(each.dtype, each.shape) for each in given]
        inputs = placeholders if way == "fed" else [tf.constant(each) for each in given]
        made = {}
        for name, row in rows.items():
            case = f"{kind}/{name}/{dtype}"
            depth = deepest(kind, dtype, errors.get(case, {}))
            if depth is not None:
                made[case] = outcome(tf, row, inputs, depth if way == "fed" else "value")
        feeds = dict(zip(placeholders, given, strict=True)) if way == "fed" else {}
        values = session.run(made, feeds)
    failed = []
    for case, found in values.items():
        for tensor, theirs in tensors[case].items():
            key = f"{case}/{tensor}"
            if is_different(key) or (way == "constant" and tensor[:5] != "value"):
                continue
            try:
                assert tensor in found, f"{key} is missing"
                check(key, stored(found[tensor]), theirs, given)
            except AssertionError as error:
                failed.append(" ".join(str(error).split())[:400])
    assert not failed, "\n".join(failed)
