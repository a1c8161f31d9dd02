"""Synchronous trainings of TensorFlow 2.15.1: variables, steps, names, errors.

Run, with TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_sync_replicas.py

Writes `sync_replicas.json` beside this file: what `snippets_sync_replicas.py` gives.
"""

from __future__ import annotations

import tensorflow.compat.v1 as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import error_of, write_json
from snippets_sync_replicas import AGGREGATED, ERRORS, OPTIMIZERS, fail, handles, trained


def main() -> None:
    """Trains, and writes the file."""
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.FATAL)
    found = {
        f"{optimizer} {aggregated}": trained(tf, optimizer, aggregated)
        for optimizer in OPTIMIZERS
        for aggregated in AGGREGATED
    }
    found["averaged"] = trained(tf, "sgd", 2, averaged=True, pause=0.1)
    errors = {name: error_of(lambda name=name: fail(tf, name)) for name in ERRORS}
    write_json(
        "sync_replicas.json",
        {
            "about": {"tensorflow": tf.__version__},
            "trained": found,
            "handles": handles(tf),
            "errors": errors,
        },
    )


if __name__ == "__main__":
    main()
