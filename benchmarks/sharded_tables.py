"""Steps with tables sharded by rows: time, and bytes that a device exchanges.

    JAX_NUM_CPU_DEVICES=8 python benchmarks/sharded_tables.py

The bytes are counted in the compiled HLO. They depend on the batch, not on the table.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

_BYTES = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "f32": 4, "s32": 4, "u32": 4}
_COLLECTIVE = re.compile(
    r"= (\S+|\(.*?\)) (all-gather|all-reduce|reduce-scatter|all-to-all|collective-permute)"
    r"(?:-start)?\(.*?replica_groups=(\S+)"
)


def collective_bytes(hlo: str) -> dict[str, int]:
    """The bytes that the collectives of an HLO module handle in a device, by kind.

    Those of an `all-gather` are what it results in, those of a `reduce-scatter` what it sums.
    """
    found: dict[str, int] = {}
    for result, kind, groups in _COLLECTIVE.findall(hlo):
        size = sum(
            _BYTES.get(dtype, 8) * int(np.prod([int(each) for each in dims.split(",") if each]))
            for dtype, dims in re.findall(r"(\w+)\[([\d,]*)\]", result)
        )
        if kind == "reduce-scatter":
            size *= _members(groups)
        found[kind] = found.get(kind, 0) + size
    return found


def _members(groups: str) -> int:
    """The number of devices in a group of `{{0,1},{2,3}}` or `[2,2]<=[4]`."""
    listed = re.match(r"\{\{([\d,]+)\}", groups)
    if listed is not None:
        return listed[1].count(",") + 1
    return int(groups.removeprefix("[").partition("]")[0].split(",")[1])


def dumped(folder: Path) -> list[str]:
    """The optimized modules in a folder of `--xla_dump_to`, in the order of compilation."""
    return [path.read_text() for path in sorted(folder.glob("*after_optimizations.txt"))]


def train(rows: int, batch: int, steps: int) -> dict[str, Any]:
    """Trains a table of this many rows of 16 numbers; returns milliseconds a step."""
    import estimatorkit as tf

    ids = np.random.RandomState(0).randint(0, rows, (64 * batch, 8)).astype(np.int32)
    labels = np.zeros((len(ids), 1), np.float32)

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        table = tf.get_variable("table", [rows, 16], initializer=tf.zeros_initializer())
        table.shard_rows = True
        outputs = tf.layers.dense(tf.reduce_sum(tf.gather(table, features), 1), 1)
        loss = tf.reduce_mean(tf.square(labels - outputs))
        update = tf.train.AdagradOptimizer(0.1).minimize(loss, tf.train.get_global_step())
        return tf.EstimatorSpec(mode, loss=loss, train_op=update)

    class Clock(tf.train.SessionRunHook):
        """Notes when calls of the loop end."""

        def __init__(self) -> None:
            self.ends: list[tuple[int, float]] = []

        def after_steps(self, done: Any) -> None:
            """Notes it."""
            self.ends.append((done.last, time.perf_counter()))

    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        config = tf.estimator.RunConfig(
            folder,
            train_distribute=tf.distribute.MirroredStrategy(),
            log_step_count_steps=None,
            save_checkpoints_secs=None,
            save_checkpoints_steps=None,
        )
        tf.estimator.Estimator(model_fn, config=config).train(
            lambda: tf.data.Dataset.from_tensor_slices((ids, labels)).repeat().batch(batch),
            max_steps=steps,
            hooks=[clock],
        )
    (first, start), (last, end) = clock.ends[len(clock.ends) // 2], clock.ends[-1]
    return {"ms": 1000 * (end - start) / (last - first)}


def measure(rows: int, batch: int, steps: int) -> dict[str, Any]:
    """Trains in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        dump = f"--xla_dump_to={folder} --xla_dump_hlo_as_text"
        environment = {
            **os.environ,
            "JAX_ENABLE_COMPILATION_CACHE": "false",
            "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {dump}".strip(),
        }
        environment.setdefault("JAX_NUM_CPU_DEVICES", "8")
        command = [sys.executable, __file__, "--rows", str(rows)]
        command += ["--batch", str(batch), "--steps", str(steps)]
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)  # noqa: S603
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        (exchanged,) = filter(None, map(collective_bytes, dumped(Path(folder))))
        return {**found, "bytes": exchanged}


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, help="train once, with this many rows")
    parser.add_argument("--base", type=int, default=4096, help="the rows of the smallest table")
    parser.add_argument("--batch", type=int, default=64, help="examples of a replica")
    parser.add_argument("--steps", type=int, default=400)
    given = parser.parse_args()
    if given.rows:
        print(json.dumps(train(given.rows, given.batch, given.steps)))
        return
    print("| rows | MB of the table | ms a step | bytes a step and device |")
    print("| ---: | ---: | ---: | --- |")
    for times in (1, 10, 100, 1000):
        rows = times * given.base
        found = measure(rows, given.batch, given.steps)
        kinds = ", ".join(f"{kind} {size:,}" for kind, size in sorted(found["bytes"].items()))
        total = sum(found["bytes"].values())
        print(
            f"| {rows:,} | {rows * 64 / 1e6:.1f} | {found['ms']:.2f} | {total:,}: {kinds} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
