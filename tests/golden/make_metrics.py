"""Streaming metrics of TensorFlow 2.15.1's `tf.compat.v1.metrics` and `tf.keras.metrics`.

Run, with TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_metrics.py

Writes `metrics.json` beside this file: what the programs of `snippets_metrics.py` give.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf2  # type: ignore[import-not-found,import-untyped,unused-ignore]
import tensorflow.compat.v1 as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import write_json
from golden_values import plain
from snippets_metrics import ARRAYS, FUNCTIONS, KERAS, look_at, look_at_keras


def _updating(metric: Any) -> Callable[..., Any]:
    """Its `update_state` as one operation: in graphs, some of Keras's own do not return theirs."""

    @tf2.function
    def update(*args: Any, **kwargs: Any) -> Any:
        metric.update_state(*args, **kwargs)
        return tf.constant(0)

    return update  # type: ignore[no-any-return]


def main() -> None:
    """Runs all metrics and writes the file."""
    tf.disable_eager_execution()
    tf.logging.set_verbosity(tf.logging.ERROR)
    keras = tf2.keras.metrics
    with tf.Session() as session:
        functions = session.run({name: make(keras) for name, make in FUNCTIONS.items()})
    configs = {
        name: {key: each for key, each in make(keras).get_config().items() if not callable(each)}
        for name, (_, make) in KERAS.items()
    }
    write_json(
        "metrics.json",
        {
            "about": {"tensorflow": tf.__version__},
            "v1": plain(look_at(tf, ARRAYS)),
            "keras": plain(look_at_keras(tf, keras, ARRAYS, updating=_updating)),
            "functions": plain(functions),
            "configs": configs,
        },
    )


if __name__ == "__main__":
    main()
