"""Writes saved_models/estimatorkit_*: the models of `snippets_saved_model.py` as this package
exports them, for `make_saved_model.py` to load.

Run as `python -m tests.golden.write_saved_models`; it needs no TensorFlow.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import estimatorkit as tf
from tests.golden.golden_files import FOLDER
from tests.golden.snippets_saved_model import MODELS, OURS, VOCABULARY, export


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path(VOCABULARY[0]).write_bytes(VOCABULARY[1])
        for name in (*MODELS, *OURS):
            written = FOLDER / "saved_models" / f"estimatorkit_{name}"
            shutil.rmtree(written, ignore_errors=True)
            export(tf, name, str(written))


if __name__ == "__main__":
    main()
