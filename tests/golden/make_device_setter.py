"""Devices that TensorFlow 2.15.1's `replica_device_setter` gives to operations.

Run, with TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_device_setter.py

Writes `device_setter.json` beside this file: type and device of the operations of the models in
`snippets_device_setter.py`, with resource variables, and errors.
"""

from __future__ import annotations

import tensorflow.compat.v1 as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import error_of, write_json
from snippets_device_setter import ERRORS, SNIPPETS, devices_of


def main() -> None:
    """Builds all models and writes the file."""
    tf.disable_v2_behavior()
    tf.enable_resource_variables()
    tf.logging.set_verbosity(tf.logging.FATAL)
    write_json(
        "device_setter.json",
        {
            "about": {"tensorflow": tf.__version__},
            **{name: devices_of(tf, name) for name in SNIPPETS},
            "errors": {name: error_of(lambda each=each: each(tf)) for name, each in ERRORS.items()},
        },
    )


if __name__ == "__main__":
    main()
