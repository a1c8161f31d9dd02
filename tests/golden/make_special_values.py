"""Operations on special values in TensorFlow 2.15.1: values, first and second gradients.

Run, with TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_special_values.py

Writes `special_values.npz` and `special_values.json` beside this file, of the rows of
`snippets_special_values.py`. The arrays have the keys `kind/row/dtype/tensor`; complex numbers are
pairs, bfloat16 is float32. The JSON has what TensorFlow refuses: the class of the error.
"""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import error_of, write_json, write_npz
from snippets_special_values import DTYPES, KINDS, depths, outcome, points, stored


def _run(kind: str, row: Any, dtype: str) -> Any:
    found: list[Any] = []

    def run(upto: str) -> None:
        with tf.Graph().as_default(), tf.Session() as session:
            given = points(kind, dtype, tf.as_dtype(dtype).as_numpy_dtype)
            inputs = [tf.placeholder(array.dtype, array.shape) for array in given]
            tensors = outcome(tf, row, inputs, upto)
            found.append(session.run(tensors, dict(zip(inputs, given, strict=True))))

    errors = {}
    for upto in depths(kind, dtype):
        error = error_of(lambda upto=upto: run(upto))
        if error is None:
            return found[0], errors
        errors[upto] = error["class"]
    return {}, errors


def main() -> None:
    """Runs all rows and writes the files."""
    tf.disable_eager_execution()
    arrays: dict[str, Any] = {}
    errors: dict[str, Any] = {}
    for kind, rows in KINDS.items():
        for name, row in rows.items():
            for dtype in DTYPES:
                found, failed = _run(kind, row, dtype)
                if failed:
                    errors[f"{kind}/{name}/{dtype}"] = failed
                arrays.update(
                    {f"{kind}/{name}/{dtype}/{key}": stored(each) for key, each in found.items()}
                )
    write_npz("special_values.npz", arrays)
    write_json("special_values.json", {"about": {"tensorflow": tf.__version__}, "errors": errors})


if __name__ == "__main__":
    main()
