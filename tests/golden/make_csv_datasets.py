"""What TensorFlow 2.15.1 reads in files of text and CSV: the datasets of `snippets_csv.py`.

Run, with TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_csv_datasets.py

Writes `csv_datasets.json` beside this file (ten seconds): for each case its specs by sorted key
and its elements, as `golden_values.plain` writes them; a bad row is an error among the elements.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import tensorflow as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import error_of, write_json
from golden_values import plain
from snippets_csv import CASES, FILES

MOST = 20


def run(name: str, folder: Path) -> dict[str, Any]:
    """The elements and errors of one case."""
    made: list[Any] = []
    error = error_of(lambda: made.append(CASES[name](tf, lambda file: str(folder / file))))
    if error is not None:
        return {"error": {**error, "first_line": error["first_line"].replace(f"{folder}/", "")}}
    (dataset,) = made
    specs = [
        f"{spec.dtype.name} {spec.shape.as_list()}"
        for spec in tf.nest.flatten(dataset.element_spec)
    ]
    elements: list[Any] = []
    iterator = iter(dataset)
    while len(elements) < MOST:
        step: list[Any] = []
        error = error_of(lambda step=step: step.append(next(iterator, None)))
        if error is not None:
            elements.append({"error": error["class"]})
        elif step[0] is None:
            break
        else:
            elements.append([plain(leaf.numpy()) for leaf in tf.nest.flatten(step[0])])
    return {"specs": specs, "elements": elements}


def main() -> None:
    """Runs all cases and writes the file."""
    with tempfile.TemporaryDirectory() as folder:
        for name, content in FILES.items():
            (Path(folder) / name).write_bytes(content)
        write_json(
            "csv_datasets.json", {"cases": {name: run(name, Path(folder)) for name in CASES}}
        )


if __name__ == "__main__":
    main()
