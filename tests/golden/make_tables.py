"""Writes tables.json: what TensorFlow gives for the expressions of `snippets_tables.py`.

TensorFlow 2 has kept `index_table_from_file` and its like out of its public names; here they are
taken from the module that defines them.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import tensorflow as tf
from golden_files import error_of, write_json
from golden_values import plain
from snippets_tables import ERRORS, EXPRESSIONS, FILES
from tensorflow.python.ops import lookup_ops

v1 = tf.compat.v1
PUBLIC = {name: getattr(v1.lookup, name) for name in dir(v1.lookup)}
LOOKUP = SimpleNamespace(**{**vars(lookup_ops), **PUBLIC})
MODULE = SimpleNamespace(**{**vars(v1), "lookup": LOOKUP})


def run(function: Any, folder: str) -> Any:
    with tf.Graph().as_default(), v1.Session() as session:
        made = function(MODULE, folder)
        session.run(v1.tables_initializer())
        return session.run(made)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, content in FILES.items():
            (Path(folder) / name).write_bytes(content)
        found: dict[str, Any] = {
            "expressions": {name: plain(run(each, folder)) for name, each in EXPRESSIONS.items()},
            "errors": {
                name: error_of(lambda each=each: run(each, folder)) for name, each in ERRORS.items()
            },
        }
        for error in found["errors"].values():
            if error:
                error["first_line"] = error["first_line"].replace(folder, "FOLDER")
    write_json("tables.json", found)


if __name__ == "__main__":
    main()
