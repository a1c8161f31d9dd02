"""Sums over two processes beside PyTorch's: what a synchronous step waits for.

    PYTHONPATH=. python benchmarks/all_reduce.py [--only 1MB] [--seconds 2] [--rounds 5] [--write]

Two processes on this machine add up an array of floats: estimatorkit by the `AllReduce` operation
of its steps, once as the only one of a call and once as one of many steps in a call; PyTorch by
`torch.distributed.all_reduce`, which DistributedDataParallel calls for each bucket of gradients.
Both use gloo. The figure of a round is the median over the sums that fit into the seconds; rounds
are interleaved and the median counts. PyTorch's interpreter is given by ESTIMATORKIT_BENCH_TORCH.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from benchmarks.report import duration, keep, machine
from estimatorkit.distribute import local_cluster

ROOT = Path(__file__).parents[1]
SIZES = {"4kB": 1 << 12, "1MB": 1 << 20, "40MB": 40 << 20}
GOAL = 1.0
"""PyTorch's time over that of estimatorkit, for 1MB."""

_OWN = """
import json, sys, time
import jax, numpy as np
from jax import lax
from estimatorkit.core import registry
from estimatorkit.ops.control.collectives import AXIS
from estimatorkit.distribute.replicas.replicas import axes
from estimatorkit.distribute import MultiWorkerMirroredStrategy
from estimatorkit.runtime.xla.host_tuning import keep_freed_memory

keep_freed_memory()  # as every session does
size, seconds, steps = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
replicas = MultiWorkerMirroredStrategy().replicas
kernel = registry.lookup("AllReduce").kernel

def sums(part):
    def step(_, value):
        return kernel(value, mean=True)[0]
    return lax.fori_loop(0, steps, step, part) if steps > 1 else step(0, part)

spread = jax.shard_map(
    sums, mesh=replicas.mesh, in_specs=axes(AXIS), out_specs=axes(AXIS), check_vma=False
)
call = jax.jit(spread, donate_argnums=0)
value = replicas.for_each(np.ones(size // 4, np.float32))

def once():
    global value
    started = time.perf_counter()
    value = call(value)
    value.block_until_ready()
    return time.perf_counter() - started

def agreed(number):
    return int(replicas.all_gather([number])[0, 0])

def leave():
    pass
"""

_TORCH = """
import json, os, sys, time
import torch, torch.distributed as dist

size, seconds, steps = int(sys.argv[1]), float(sys.argv[2]), 1
config = json.loads(os.environ["TF_CONFIG"])
number = config["task"]["index"]
dist.init_process_group(
    "gloo", init_method="tcp://" + config["cluster"]["worker"][0], rank=number, world_size=2
)
value = torch.ones(size // 4)

def once():
    started = time.perf_counter()
    dist.all_reduce(value)
    found = time.perf_counter() - started
    value.fill_(1.0)
    return found

def agreed(count):
    told = torch.tensor([count])
    dist.broadcast(told, 0)
    return int(told)

def leave():
    dist.destroy_process_group()  # else its threads may end the process with an error
"""

_TIMED = """
for _ in range(3):
    once()
spent = sorted(once() for _ in range(5))[2]
count = agreed(max(5, min(int(seconds / spent), 20000)))
print(json.dumps(sorted(once() for _ in range(count))[count // 2] / steps), flush=True)
leave()
"""


@dataclass(frozen=True)
class Participant:
    """A way to add up: its name, its interpreter, its program, and what that takes besides."""

    name: str
    python: str
    program: str
    arguments: tuple[str, ...] = ()


def run(participant: Participant, size: int, seconds: float) -> float:
    """The seconds of a sum, in a pair of new processes.

    Raises:
        RuntimeError: one of them failed.
    """
    cluster = local_cluster(ps=0, workers=2, synchronous=True)
    words = [participant.program + _TIMED, str(size), str(seconds), *participant.arguments]
    processes = [
        subprocess.Popen(  # noqa: S603 - the programs above
            [participant.python, "-c", *words],
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "GLOO_SOCKET_IFNAME": "lo",
                "TF_CONFIG": json.dumps(
                    {"cluster": cluster, "task": {"type": "worker", "index": number}}
                ),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(2)
    ]
    outputs = [process.communicate(timeout=600) for process in processes]
    if any(process.returncode for process in processes):
        raise RuntimeError(f"{participant.name} failed:\n{outputs[0][1]}\n{outputs[1][1]}")
    return max(float(json.loads(out.splitlines()[-1])) for out, _ in outputs)


def main(only: list[str] | None, seconds: float, rounds: int, write: bool) -> int:
    """Runs all, prints the table, and keeps it where asked for.

    Returns:
        The exit status: 1 where the goal is missed.
    """
    participants = [
        Participant("estimatorkit", sys.executable, _OWN, ("1",)),
        Participant("estimatorkit, 20 in a call", sys.executable, _OWN, ("20",)),
    ]
    peer = os.environ.get("ESTIMATORKIT_BENCH_TORCH")
    if peer:
        participants.append(Participant("pytorch", peer, _TORCH))
    else:
        print("pytorch is left out: ESTIMATORKIT_BENCH_TORCH=DIR_TORCH/bin/python")
    where = machine()
    lines = [
        "| array | participant | time per sum | rounds | pytorch's time / this |",
        "| --- | --- | --- | --- | --- |",
    ]
    missed = False
    for name in only or SIZES:
        found: dict[str, list[float]] = {each.name: [] for each in participants}
        for _ in range(rounds):
            for each in participants:
                found[each.name].append(run(each, SIZES[name], seconds))
                print(name, each.name, duration(found[each.name][-1]), flush=True)
        middle = {key: statistics.median(times) for key, times in found.items()}
        for key, times in found.items():
            ratio = middle["pytorch"] / middle[key] if "pytorch" in middle else None
            missed |= (name, key) == ("1MB", "estimatorkit") and ratio is not None and ratio < GOAL
            span = f"{duration(min(times))} to {duration(max(times))}"
            cells = name, key, duration(middle[key]), span, "" if ratio is None else f"{ratio:.2f}"
            lines.append(f"| {' | '.join(cells)} |")
    print("\n".join(lines))
    if write:
        versions = f"python {sys.version.split()[0]}, jax {metadata.version('jax')}"
        about = f"### Sums over two processes, by `benchmarks/all_reduce.py`: {versions}"
        text = f"{about}, torch 2.13.0\n\n" + "\n".join(lines)
        keep(ROOT / "benchmarks" / "RESULTS.md", where, [text])
    return int(missed)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", choices=list(SIZES), help="one of them")
    parser.add_argument("--seconds", type=float, default=2.0, help="measured, each round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="keep the table in RESULTS.md")
    options = parser.parse_args()
    sys.exit(main(options.only, options.seconds, options.rounds, options.write))
