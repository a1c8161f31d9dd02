"""Which checkpoints TensorFlow 2.15.1's `tf.compat.v1.train.Saver` keeps, and its pointer file.

Run, with TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_saver_retention.py

Writes `saver_retention.json` beside this file (ten seconds): `cases`, each with the Saver's
arguments, the hours at which it saves, and after each save the numbers of the checkpoints that it
lists and of those on the disk; `pointer`, the text of the file `checkpoint` for awkward names.
"""

from __future__ import annotations

import os
import re
import tempfile
from typing import Any
from unittest import mock

import tensorflow as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import write_json

START = 1_700_000_000.0
CASES = {
    "default": (5, 10000.0, [float(hour) for hour in range(8)]),
    "keep_one": (1, 10000.0, [0.0, 1.0, 2.0]),
    "keep_all": (0, 10000.0, [0.0, 1.0, 2.0]),
    "keep_all_none": (None, 1.0, [0.0, 1.0, 2.0]),
    "every_two_hours": (2, 2.0, [0.5 * step for step in range(16)]),
    "every_half_hour": (1, 0.5, [0.0, 0.1, 0.4, 0.6, 0.7, 1.0, 1.1, 1.6, 4.0, 4.1, 4.2]),
    "on_the_hour_exactly": (1, 1.0, [1.0, 2.0, 3.0, 3.5]),
    "long_gap": (2, 1.0, [0.0, 0.2, 30.0, 30.1, 30.2, 30.3, 31.5, 31.6, 31.7, 31.8]),
}
NAMES = ["model.ckpt-1", "with space-2", 'quote".back-3', "größe-4", "日本-5"]


def saves_of(max_to_keep: int | None, hours: float, moments: list[float]) -> dict[str, Any]:
    """Saves at `moments` (hours since the start) under a fake clock."""
    listed, on_disk = [], []
    with tempfile.TemporaryDirectory() as folder, tf.Graph().as_default():
        tf.compat.v1.get_variable("v", [])
        with (
            mock.patch("time.time", return_value=START) as clock,
            tf.compat.v1.Session() as session,
        ):
            saver = tf.compat.v1.train.Saver(
                max_to_keep=max_to_keep, keep_checkpoint_every_n_hours=hours
            )
            session.run(tf.compat.v1.global_variables_initializer())
            for number, moment in enumerate(moments):
                clock.return_value = START + moment * 3600.0
                saver.save(session, os.path.join(folder, "model.ckpt"), global_step=number)
                listed.append([int(path.split("-")[-1]) for path in saver.last_checkpoints])
                names = " ".join(os.listdir(folder))
                on_disk.append(sorted(int(n) for n in re.findall(r"ckpt-(\d+)\.index", names)))
    return {
        "max_to_keep": max_to_keep,
        "keep_checkpoint_every_n_hours": hours,
        "hours": moments,
        "listed": listed,
        "on_disk": on_disk,
    }


def pointer_text() -> str:
    """Returns the pointer file that TensorFlow writes for `NAMES`."""
    with tempfile.TemporaryDirectory() as folder:
        tf.__internal__.train.update_checkpoint_state(
            folder,
            NAMES[-1],
            list(NAMES),
            save_relative_paths=True,
            all_model_checkpoint_timestamps=[START + number for number in range(len(NAMES))],
            last_preserved_timestamp=START - 0.25,
        )
        with open(os.path.join(folder, "checkpoint"), encoding="utf-8") as file:
            return file.read()


if __name__ == "__main__":
    write_json(
        "saver_retention.json",
        {
            "start": START,
            "cases": {name: saves_of(*case) for name, case in CASES.items()},
            "names": NAMES,
            "pointer": pointer_text(),
        },
    )
