"""Control flow, functions and gradients as TensorFlow 2.15.1 runs them.

Run, with TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_control_flow.py

Writes `control_flow.json` beside this file: what the programs of `snippets_control_flow.py` give,
or their errors. Variables are resource variables, whose reads do not race with assignments.
"""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import error_of, write_json
from golden_values import plain
from snippets_control_flow import ARRAYS, FUNCTIONS, GRAPHS, REFUSALS, STATE


def _run(program: Any) -> Any:
    found: list[Any] = []

    def run() -> None:
        with tf.Graph().as_default(), tf.Session() as session:
            found.append(plain(program(tf, session)))

    error = error_of(run)
    return {"error": error} if error else found[0]


def main() -> None:
    """Runs all programs and writes the file."""
    tf.disable_eager_execution()
    tf.enable_resource_variables()
    # Arrays of version 1, whose operations check more than the lists of version 2.
    tf.disable_control_flow_v2()
    arrays = {name: _run(program) for name, program in ARRAYS.items()}
    refusals = {name: _run(program) for name, program in REFUSALS.items()}
    tf.enable_control_flow_v2()
    write_json(
        "control_flow.json",
        {
            "about": {"tensorflow": tf.__version__},
            "state": {name: _run(program) for name, program in STATE.items()},
            "arrays": arrays,
            "functions": {name: _run(program) for name, program in FUNCTIONS.items()},
            "refusals": refusals,
            "graphs": {name: _run(program) for name, program in GRAPHS.items()},
        },
    )


if __name__ == "__main__":
    main()
