"""Writes parsing.json: what TensorFlow gives for the expressions of `snippets_parsing.py`."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from golden_files import error_of, write_json
from golden_values import plain
from snippets_parsing import ERRORS, EXPRESSIONS

v1 = tf.compat.v1


def run(function: Any) -> Any:
    with tf.Graph().as_default(), v1.Session() as session:
        return session.run(function(v1))


def main() -> None:
    content: dict[str, Any] = {
        "expressions": {name: plain(run(each)) for name, each in EXPRESSIONS.items()},
        "errors": {name: error_of(lambda each=each: run(each)) for name, each in ERRORS.items()},
    }
    write_json("parsing.json", content)


if __name__ == "__main__":
    main()
