"""Golden trajectories of the optimizers of `tf.compat.v1.train`, TensorFlow 2.15.1, graph mode.

Run, with TensorFlow 2.15.1:

    TF_CPP_MIN_LOG_LEVEL=3 python tests/golden/make_optimizers.py

Writes `optimizers.npz` and `optimizers.json` beside this file (twenty seconds).
Dense: two variables, `matrix` (4, 3) and `vector` (5,), 50 steps of given gradients. Sparse: one
variable, `table` (6, 3), 50 steps; the gradient is the IndexedSlices of a gather of four rows, two
of them often the same. Each case is run with resource variables and with reference variables;
where these differ by more than rounding, the script stops.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf  # type: ignore[import-not-found,import-untyped,unused-ignore]
from golden_files import write_json, write_npz
from numpy.typing import NDArray

Array = NDArray[Any]

STEPS = 50
DENSE_SHAPES = {"matrix": (4, 3), "vector": (5,)}
TABLE_SHAPE = (6, 3)
ROWS_PER_STEP = 4

# A case: the class in tf.compat.v1.train and its arguments.
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "gradient_descent": ("GradientDescentOptimizer", {"learning_rate": 0.1}),
    "momentum": ("MomentumOptimizer", {"learning_rate": 0.1, "momentum": 0.9}),
    "momentum_nesterov": (
        "MomentumOptimizer",
        {"learning_rate": 0.1, "momentum": 0.9, "use_nesterov": True},
    ),
    "adagrad": ("AdagradOptimizer", {"learning_rate": 0.1}),
    "adagrad_initial": (
        "AdagradOptimizer",
        {"learning_rate": 0.1, "initial_accumulator_value": 1.0},
    ),
    "adadelta": ("AdadeltaOptimizer", {"learning_rate": 1.0}),
    "adam": ("AdamOptimizer", {"learning_rate": 0.1}),
    "adam_arguments": (
        "AdamOptimizer",
        {"learning_rate": 0.05, "beta1": 0.8, "beta2": 0.95, "epsilon": 0.01},
    ),
    "rmsprop": ("RMSPropOptimizer", {"learning_rate": 0.1}),
    "rmsprop_momentum": (
        "RMSPropOptimizer",
        {"learning_rate": 0.1, "decay": 0.8, "momentum": 0.5, "epsilon": 1e-3},
    ),
    "rmsprop_centered": (
        "RMSPropOptimizer",
        {"learning_rate": 0.1, "momentum": 0.5, "centered": True},
    ),
    "ftrl": ("FtrlOptimizer", {"learning_rate": 0.1}),
    "ftrl_l1_l2": (
        "FtrlOptimizer",
        {
            "learning_rate": 0.1,
            "l1_regularization_strength": 0.5,
            "l2_regularization_strength": 0.2,
        },
    ),
    "ftrl_shrinkage": (
        "FtrlOptimizer",
        {
            "learning_rate": 0.1,
            "l1_regularization_strength": 0.05,
            "l2_regularization_strength": 0.1,
            "l2_shrinkage_regularization_strength": 0.3,
        },
    ),
    "ftrl_power": (
        "FtrlOptimizer",
        {
            "learning_rate": 0.1,
            "learning_rate_power": -0.6,
            "initial_accumulator_value": 0.2,
            "l1_regularization_strength": 0.01,
        },
    ),
    "proximal_gradient_descent": (
        "ProximalGradientDescentOptimizer",
        {
            "learning_rate": 0.1,
            "l1_regularization_strength": 0.05,
            "l2_regularization_strength": 0.1,
        },
    ),
    "proximal_adagrad": (
        "ProximalAdagradOptimizer",
        {
            "learning_rate": 0.1,
            "l1_regularization_strength": 0.05,
            "l2_regularization_strength": 0.1,
        },
    ),
}


def make_data() -> dict[str, Array]:
    """Returns the starting values, the gradients, and the rows gathered at each sparse step."""
    random = np.random.default_rng(215)
    data: dict[str, Array] = {}
    for name, shape in DENSE_SHAPES.items():
        data[f"{name}/start"] = random.normal(size=shape).astype(np.float32)
        data[f"{name}/gradients"] = random.normal(size=(STEPS, *shape)).astype(np.float32)
    data["table/start"] = random.normal(size=TABLE_SHAPE).astype(np.float32)
    rows = random.integers(0, TABLE_SHAPE[0], (STEPS, ROWS_PER_STEP))
    rows[::2, 1] = rows[::2, 0]  # every other step has a row twice for certain
    data["table/rows"] = rows.astype(np.int64)
    size = (STEPS, ROWS_PER_STEP, TABLE_SHAPE[1])
    data["table/gradients"] = random.normal(size=size).astype(np.float32)
    return data


def run_case(
    case: str, kind: str, use_resource: bool, data: dict[str, Array]
) -> tuple[dict[str, Array], dict[str, Any]]:
    """Runs one optimizer over the dense or the sparse data.

    Returns:
        The arrays: each variable after every step, and the slots at the end, under the names that
        they have in a checkpoint; and the facts: names, shapes and starting values of the slots.
    """
    class_name, arguments = CASES[case]
    names = list(DENSE_SHAPES) if kind == "dense" else ["table"]
    with tf.Graph().as_default(), tempfile.TemporaryDirectory() as folder:
        variables = [
            tf.compat.v1.get_variable(
                name, initializer=data[f"{name}/start"], use_resource=use_resource
            )
            for name in names
        ]
        given = {
            name: tf.compat.v1.placeholder(tf.float32, data[f"{name}/gradients"].shape[1:])
            for name in names
        }
        rows = tf.compat.v1.placeholder(tf.int64, (ROWS_PER_STEP,))
        if kind == "dense":
            losses = [tf.reduce_sum(v * given[n]) for n, v in zip(names, variables, strict=True)]
        else:
            losses = [tf.reduce_sum(tf.gather(variables[0], rows) * given["table"])]
        global_step = tf.compat.v1.train.get_or_create_global_step()
        optimizer = getattr(tf.compat.v1.train, class_name)(**arguments)
        pairs = optimizer.compute_gradients(tf.add_n(losses), variables)
        if kind == "sparse" and not isinstance(pairs[0][0], tf.IndexedSlices):
            raise RuntimeError(f"the gradient is a {type(pairs[0][0]).__name__}")
        update = optimizer.apply_gradients(pairs, global_step)
        everything = tf.compat.v1.global_variables()
        others = [v for v in everything if v.op.name not in (*names, "global_step")]
        trajectory: dict[str, list[Array]] = {name: [] for name in names}
        with tf.compat.v1.Session() as session:
            session.run(tf.compat.v1.global_variables_initializer())
            at_start = dict(zip([v.op.name for v in others], session.run(others), strict=True))
            for step in range(STEPS):
                feeds = {given[name]: data[f"{name}/gradients"][step] for name in names}
                if kind == "sparse":
                    feeds[rows] = data["table/rows"][step]
                session.run(update, feeds)
                for name, value in zip(names, session.run(variables), strict=True):
                    trajectory[name].append(value)
            saver = tf.compat.v1.train.Saver()
            path = saver.save(session, str(Path(folder) / "model"))
            reader = tf.compat.v1.train.NewCheckpointReader(path)
            shapes = reader.get_variable_to_shape_map()
            slots = {name: reader.get_tensor(name) for name in sorted(shapes) if name not in names}
    arrays = {f"trajectory/{name}": np.stack(values) for name, values in trajectory.items()}
    arrays |= {
        f"slots/{name}": np.asarray(value) for name, value in slots.items() if name != "global_step"
    }
    facts = {
        "class": class_name,
        "arguments": arguments,
        "update_op": update.name,
        "default_name": optimizer.get_name(),
        "slot_variables": {
            slot: [optimizer.get_slot(variable, slot).op.name for variable in variables]
            for slot in optimizer.get_slot_names()
        },
        "variables_in_order_of_creation": [v.op.name for v in everything],
        "slots": {name: list(np.shape(value)) for name, value in slots.items()},
        "at_start": {name: float(np.asarray(value).flat[0]) for name, value in at_start.items()},
    }
    return arrays, facts


def main() -> None:
    """Runs all cases and writes both files."""
    data = make_data()
    arrays = {f"data/{name}": value for name, value in data.items()}
    facts: dict[str, Any] = {"dense": {}, "sparse": {}}
    for kind, of_kind in facts.items():
        for case in CASES:
            found, of_kind[case] = run_case(case, kind, True, data)
            reference, reference_facts = run_case(case, kind, False, data)
            for name, value in found.items():
                np.testing.assert_allclose(
                    reference[name], value, rtol=1e-5, atol=1e-6, err_msg=f"{case} {kind} {name}"
                )
            if reference_facts["slots"] != of_kind[case]["slots"]:
                raise RuntimeError(f"{case}: other slots with reference variables")
            arrays |= {f"{kind}/{case}/{name}": value for name, value in found.items()}
            print(f"{kind} {case}: {sorted(of_kind[case]['slots'])}")
    about = {"tensorflow": tf.__version__, "steps": STEPS}
    write_npz("optimizers.npz", arrays)
    write_json("optimizers.json", {"about": about, **facts})


if __name__ == "__main__":
    main()
