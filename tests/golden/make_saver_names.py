"""What TensorFlow 2.15.1's Savers save and restore through meta graphs.

Run, with TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_saver_names.py

Writes `saver_names.json` beside this file: for each form of `snippets_saver_names.py` and each way
what the variables hold, or the class of the error; and the folder `saver_names`: checkpoints of
some forms with their graphs.
"""

from __future__ import annotations

import shutil
import tempfile

import tensorflow.compat.v1 as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import FOLDER, write_json
from snippets_saver_names import FORMS, WRITTEN, results, written


def main() -> None:
    """Saves and restores every form in every way, and writes the file."""
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.FATAL)
    found = {}
    for form in FORMS:
        with tempfile.TemporaryDirectory() as folder:
            found[form] = results(tf, form, folder)
    kept = FOLDER / "saver_names"
    shutil.rmtree(kept, ignore_errors=True)
    for form in WRITTEN:
        written(tf, form, str(kept))
    (kept / "checkpoint").unlink()
    write_json("saver_names.json", found)


if __name__ == "__main__":
    main()
