"""Golden trajectories of `tf.keras.optimizers.legacy` and AdagradDA, TensorFlow 2.15.1, graph mode.

Run, with TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_keras_optimizers.py

Writes `keras_optimizers.npz` and `keras_optimizers.json` beside this file (a minute). The gradients
follow from the seed below and are not stored. Dense: `matrix` (3, 2) and `vector` (3,). Sparse:
`table` (5, 2), the IndexedSlices of a gather of four rows, two of them often the same. Of each
case the variables after some of the 50 steps are kept, and what the optimizer holds at the end.
Schedules: `tf.keras.optimizers.schedules` at some steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import write_json, write_npz
from golden_optimizers import CASES, KEPT_STEPS, SCHEDULE_STEPS, SCHEDULES, STEPS, gradients, starts
from numpy.typing import NDArray

Array = NDArray[Any]


def run_case(case: str, kind: str) -> tuple[dict[str, Array], dict[str, Any]]:
    """Runs one optimizer over the dense or the sparse data."""
    namespace, class_name, arguments = CASES[case]
    names = ["matrix", "vector"] if kind == "dense" else ["table"]
    first, data = starts(), gradients()
    with tf.Graph().as_default():
        variables = [
            tf.compat.v1.get_variable(name, initializer=first[name], use_resource=True)
            for name in names
        ]
        given = {name: tf.compat.v1.placeholder(tf.float32, data[name].shape[1:]) for name in names}
        rows = tf.compat.v1.placeholder(tf.int64, data["rows"].shape[1:])
        if kind == "dense":
            losses = [tf.reduce_sum(v * given[n]) for n, v in zip(names, variables, strict=True)]
        else:
            losses = [tf.reduce_sum(tf.gather(variables[0], rows) * given["table"])]
        loss = tf.add_n(losses)
        if namespace == "train":
            step = tf.compat.v1.train.get_or_create_global_step()
            optimizer = getattr(tf.compat.v1.train, class_name)(global_step=step, **arguments)
            update = optimizer.minimize(loss, step, variables)
        else:
            optimizer = tf.keras.optimizers.get(
                {"class_name": class_name, "config": dict(arguments)}, use_legacy_optimizer=True
            )
            config = optimizer.get_config()  # later its numbers are variables
            (update,) = optimizer.get_updates(loss, variables)
        others = [v for v in tf.compat.v1.global_variables() if v.op.name not in names]
        kept: dict[str, list[Array]] = {name: [] for name in names}
        with tf.compat.v1.Session() as session:
            session.run(tf.compat.v1.global_variables_initializer())
            at_start = dict(zip([v.op.name for v in others], session.run(others), strict=True))
            for step in range(STEPS):
                feeds = {given[name]: data[name][step] for name in names}
                if kind == "sparse":
                    feeds[rows] = data["rows"][step]
                session.run(update, feeds)
                if step + 1 in KEPT_STEPS:
                    for name, value in zip(names, session.run(variables), strict=True):
                        kept[name].append(value)
            at_end = dict(zip([v.op.name for v in others], session.run(others), strict=True))
    arrays = {f"trajectory/{name}": np.stack(values) for name, values in kept.items()}
    arrays |= {f"held/{name}": np.asarray(value) for name, value in at_end.items()}
    facts = {
        "variables": [v.op.name for v in others],
        "at_start": {name: float(np.asarray(value).flat[0]) for name, value in at_start.items()},
    }
    if namespace == "keras":
        facts["weights"] = [v.op.name for v in optimizer.weights]
        facts["slot_names"] = list(optimizer.get_slot_names())
        facts["config"] = config
    return arrays, facts


def schedule_values() -> dict[str, list[float]]:
    """The learning rates of the schedules."""
    values = {}
    for name, (class_name, arguments) in SCHEDULES.items():
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            step = tf.compat.v1.placeholder(tf.float32, [])
            rate = getattr(tf.keras.optimizers.schedules, class_name)(**arguments)(step)
            values[name] = [float(session.run(rate, {step: each})) for each in SCHEDULE_STEPS]
    return values


def main() -> None:
    """Runs all cases and writes both files."""
    arrays: dict[str, Array] = {}
    facts: dict[str, Any] = {"dense": {}, "sparse": {}}
    for kind, of_kind in facts.items():
        for case in CASES:
            found, of_kind[case] = run_case(case, kind)
            arrays |= {f"{kind}/{case}/{name}": value for name, value in found.items()}
            print(f"{kind} {case}: {of_kind[case]['variables']}", flush=True)
    write_npz("keras_optimizers.npz", arrays)
    about = {"tensorflow": tf.__version__}
    write_json("keras_optimizers.json", {"about": about, **facts, "schedules": schedule_values()})


if __name__ == "__main__":
    main()
