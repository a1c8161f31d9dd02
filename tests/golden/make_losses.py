"""Losses of TensorFlow 2.15.1's `tf.compat.v1.losses` and `tf.keras.losses`.

Run, with TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_losses.py

Writes `losses.json` beside this file: what the programs of `snippets_losses.py` give.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf2  # type: ignore[import-not-found,import-untyped,unused-ignore]
import tensorflow.compat.v1 as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import write_json
from golden_values import plain
from snippets_losses import (
    ARRAYS,
    FITTED_SHAPES,
    FUNCTIONS,
    KERAS,
    PAIRWISE,
    REDUCTIONS,
    V1,
    V1_REDUCTIONS,
    fitted,
    from_probabilities,
)


def _run(made: Any) -> Any:
    with tf.Session() as session:
        return plain(session.run(made))


def _container(function: Any) -> Any:
    from keras.src.engine.compile_utils import (  # type: ignore[import-not-found,import-untyped,unused-ignore]
        LossesContainer,
    )

    return LossesContainer(function)


def _fitted() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for labels in FITTED_SHAPES:
        for predictions in FITTED_SHAPES:
            with tf.Graph().as_default(), tf.Session() as session:
                try:
                    loss, shapes = fitted(_container, tf, labels, predictions)
                except ValueError:
                    found[f"{labels} {predictions}"] = None
                    continue
                session.run(tf.global_variables_initializer())
                found[f"{labels} {predictions}"] = [plain(session.run(loss)), *shapes]
    return found


def main() -> None:
    """Runs all losses and writes the file."""
    tf.disable_eager_execution()
    keras = tf2.keras.losses
    y, p, w = ARRAYS["numbers"]
    write_json(
        "losses.json",
        {
            "about": {"tensorflow": tf.__version__},
            "v1": _run(
                {
                    f"{name}/{reduction}": loss(tf, *ARRAYS[arrays], reduction)
                    for name, (arrays, loss) in V1.items()
                    for reduction in V1_REDUCTIONS
                }
                | {"mean_pairwise_squared_error": PAIRWISE(tf, y, p, w, None)}
            ),
            "keras": _run(
                {
                    f"{name}/{reduction}": make(keras, reduction)(*map(tf.constant, ARRAYS[arrays]))
                    for name, (arrays, make) in KERAS.items()
                    for reduction in REDUCTIONS
                }
            ),
            "functions": _run({name: loss(keras, ARRAYS) for name, loss in FUNCTIONS.items()}),
            "configs": {name: make(keras, "sum").get_config() for name, (_, make) in KERAS.items()},
            "serialized": {
                name: keras.serialize(make(keras, "sum")) for name, (_, make) in KERAS.items()
            },
            "from probabilities": _run(from_probabilities(tf)),
            "fitted": _fitted(),
        },
    )


if __name__ == "__main__":
    main()
