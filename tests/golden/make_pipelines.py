"""What TensorFlow 2.15.1's datasets give in graphs: the results of `snippets_pipelines.py` and
`snippets_pipeline_functions.py`.

Run, with TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_pipelines.py

Writes `pipelines.json` beside this file (half a minute). Of each pipeline its spec, how many
elements it says that it has, and its elements, as `golden_values.plain` writes them; an element
that cannot be made is an error's class. Errors: see `golden_files.error_of`.
"""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v1 as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import error_of, write_json
from golden_pipelines import elements_of, spec_of
from golden_values import plain
from snippets_pipeline_errors import ERRORS
from snippets_pipeline_functions import (
    PIPELINES as FUNCTION_PIPELINES,
    PROGRAMS as FUNCTION_PROGRAMS,
)
from snippets_pipelines import PIPELINES as PLAIN_PIPELINES, PROGRAMS as PLAIN_PROGRAMS

PIPELINES = {**PLAIN_PIPELINES, **FUNCTION_PIPELINES}
PROGRAMS = {**PLAIN_PROGRAMS, **FUNCTION_PROGRAMS}


def run_pipeline(name: str) -> dict[str, Any]:
    """Runs one pipeline in a graph and a session of its own."""
    with tf.Graph().as_default(), tf.Session() as session:
        dataset = PIPELINES[name](tf)
        return {
            "spec": spec_of(dataset.element_spec),
            "cardinality": int(session.run(tf.data.experimental.cardinality(dataset))),
            "elements": elements_of(tf, session, dataset),
        }


def run_program(name: str) -> Any:
    """Runs one program."""
    with tf.Graph().as_default(), tf.Session() as session:
        return plain(PROGRAMS[name](tf)(session))


def run_error(name: str) -> dict[str, str] | None:
    """Runs one mistake."""
    with tf.Graph().as_default(), tf.Session() as session:
        return error_of(lambda: ERRORS[name](tf, session))


def main() -> None:
    """Runs everything and writes the file."""
    tf.logging.set_verbosity(tf.logging.ERROR)
    write_json(
        "pipelines.json",
        {
            "about": {"tensorflow": tf.__version__},
            "pipelines": {name: run_pipeline(name) for name in PIPELINES},
            "programs": {name: run_program(name) for name in PROGRAMS},
            "errors": {name: run_error(name) for name in ERRORS},
        },
    )


if __name__ == "__main__":
    tf.disable_eager_execution()
    main()
