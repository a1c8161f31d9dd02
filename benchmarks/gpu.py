"""Training steps on one accelerator: estimatorkit beside PyTorch, eager and compiled.

    python -m benchmarks.gpu --json FILE [--quick] [--only NAME] [--seconds 280]

Each participant trains every workload in a process of its own, with data in memory. Networks for
images and text get one batch that stays on the device; tables are read, shuffled and sent.
`--quick` is for CPUs: does it run? For each the report has steps a second; what share of the
device's peak the network's own products are (that of products of 8192 x 8192, in the same process);
what the step costs the host, and for estimatorkit the part of the time in which the device
computes. The data are random: losses say nothing.
"""

from __future__ import annotations

import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks import gpu_peers
from benchmarks.gpu_workloads import WORKLOADS, Workload

PARTICIPANTS = ("estimatorkit", "pytorch", "pytorch compiled")


@dataclass
class Figure:
    """What one participant did in one workload.

    Attributes:
        participant, workload: the names.
        steps: steps a second.
        host: milliseconds of all the host's threads a step.
        share: of the peak of products in the same dtype; None if the operations are not counted.
        busy: the part of the time in which the device computed; None if nobody looked.
        seconds: the time of the whole measurement, compilation included.
    """

    participant: str
    workload: str
    steps: float
    host: float
    share: float | None
    busy: float | None
    seconds: float


def estimator_rate(workload: Workload) -> tuple[float, float, float | None]:
    """The steps a second of an Estimator, the host's seconds a step, and the device's busy part."""
    import jax

    import estimatorkit.compat.v1 as tf

    class Clock(tf.train.SessionRunHook):
        """The time of a training's steps: without its start, and what it saves at its end."""

        def after_create_session(self, session: Any, coord: Any) -> None:
            self.started, self.before = time.perf_counter(), time.process_time()

        def after_steps(self, steps: Any) -> None:
            self.ended, self.after = time.perf_counter(), time.process_time()

    config = tf.estimator.RunConfig(
        tempfile.mkdtemp(), save_checkpoints_steps=10**9, save_summary_steps=None
    )
    model, input_fn = workload.estimator(tf, config)
    rates = []
    for number in range(3):
        clock = Clock()
        model.train(input_fn, hooks=[clock], steps=workload.steps)
        if number:  # the first compiles
            rate = workload.steps / (clock.ended - clock.started)
            rates.append((rate, (clock.after - clock.before) / workload.steps))
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            model.train(input_fn, steps=max(2, workload.steps // 4))
        return *max(rates), busy_part(folder)


def busy_part(folder: str) -> float | None:
    """The part of the time in which the device computed, in the middle of a trace."""
    import jax

    (path,) = glob.glob(f"{folder}/**/*.xplane.pb", recursive=True)
    spans = sorted(
        (event.start_ns, event.start_ns + event.duration_ns)
        for plane in jax.profiler.ProfileData.from_file(path).planes
        if plane.name.startswith("/device:GPU")
        for line in plane.lines
        if line.name.startswith("Stream")
        for event in line.events
    )
    if len(spans) < 8:
        return None
    spans = spans[len(spans) // 4 : -len(spans) // 4]
    busy, end = 0.0, spans[0][0]
    for first, last in spans:
        busy += max(0.0, last - max(first, end))
        end = max(end, last)
    return busy / (end - spans[0][0])


def peak(participant: str, dtype: str) -> float:
    """Floating-point operations a second of a large product, as the participant makes it."""
    size, count = 8192, 20
    if participant == "estimatorkit":
        import jax
        import jax.numpy as jnp

        keys = jax.random.split(jax.random.key(1), 2)
        one, other = (jax.random.normal(key, (size, size), jnp.dtype(dtype)) for key in keys)
        product = jax.jit(jnp.matmul)
        product(one, other).block_until_ready()
        started = time.perf_counter()
        for _ in range(count):
            found = product(one, other)
        found.block_until_ready()
    else:
        started = gpu_peers.products(size, count, dtype)
    return 2 * size**3 * count / (time.perf_counter() - started)


def figures(participant: str, workloads: list[Workload]) -> Iterator[Figure]:
    """Measures a participant in this process."""
    on_device = participant != "estimatorkit" or _on_accelerator()
    peaks: dict[str, float] = {}
    for workload in workloads:
        started = time.perf_counter()
        busy = None
        if participant == "estimatorkit":
            rate, host, busy = estimator_rate(workload)
        else:
            rate, host = gpu_peers.rate(workload, participant.endswith("compiled"))
        share = None
        if workload.operations and on_device:
            if workload.dtype not in peaks:
                peaks[workload.dtype] = peak(participant, workload.dtype)
            share = workload.operations * rate / peaks[workload.dtype]
        seconds = time.perf_counter() - started
        yield Figure(participant, workload.name, rate, 1000 * host, share, busy, seconds)


def _on_accelerator() -> bool:
    import jax

    return jax.default_backend() != "cpu"


def measured(participant: str, options: argparse.Namespace, seconds: float) -> list[Figure]:
    """Measures a participant in a process of its own; if it is stopped, what it has counts."""
    command = [sys.executable, "-m", "benchmarks.gpu", "--participant", participant]
    command += ["--quick"] if options.quick else []
    for name in options.only or ():
        command += ["--only", name]
    with tempfile.TemporaryFile("w+") as output:
        try:
            subprocess.run(  # noqa: S603
                command, stdout=output, timeout=seconds, check=False, env=os.environ
            )
        except subprocess.TimeoutExpired:
            print(f"{participant}: stopped after {seconds:.0f} s", file=sys.stderr)
        output.seek(0)
        return [Figure(**json.loads(line)) for line in output if line.startswith("{")]


def table(found: list[Figure]) -> str:
    """The report, in Markdown."""
    lines = [
        "| workload | participant | steps a second | host ms a step | share of peak | device busy "
        "| of compiled |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    compiled = {each.workload: each.steps for each in found if each.participant == PARTICIPANTS[2]}
    for each in sorted(found, key=lambda each: list(WORKLOADS).index(each.workload)):
        best = compiled.get(each.workload)
        cells: list[tuple[float | None, Callable[[float], str]]] = [
            (each.steps, "{:,.4g}".format),
            (each.host, "{:.3g}".format),
            (each.share, "{:.0%}".format),
            (each.busy, "{:.0%}".format),
            (best and each.steps / best, "{:.2f}".format),
        ]
        texts = ["" if value is None else text(value) for value, text in cells]
        lines.append(f"| {each.workload} | {each.participant} | {' | '.join(texts)} |")
    return "\n".join(lines)


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description="Training steps on one accelerator.")
    parser.add_argument("--participant", choices=PARTICIPANTS, help="measure one, in this process")
    parser.add_argument("--only", action="append", choices=list(WORKLOADS))
    parser.add_argument("--quick", action="store_true", help="small networks, few steps")
    parser.add_argument("--seconds", type=float, default=280.0, help="for all participants")
    parser.add_argument("--json", help="the file to write")
    options = parser.parse_args()
    chosen = [WORKLOADS[name] for name in options.only or WORKLOADS]
    if options.participant:
        chosen = [each.quick() for each in chosen] if options.quick else chosen
        for each in figures(options.participant, chosen):
            print(json.dumps(asdict(each)), flush=True)
        return
    end = time.monotonic() + options.seconds
    found: list[Figure] = []
    for number, participant in enumerate(PARTICIPANTS):
        left = end - time.monotonic()
        found += measured(participant, options, left / (len(PARTICIPANTS) - number))
        if options.json:
            with open(options.json, "w", encoding="utf-8") as file:
                json.dump([asdict(each) for each in found], file, indent=1)
    print(table(found))


if __name__ == "__main__":
    main()
