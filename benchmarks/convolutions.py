"""Times ways to compute convolutions and poolings on a CPU, side by side: CONVOLUTIONS.md.

    PYTHONPATH=. python benchmarks/convolutions.py            # parts, shapes, whole step
    PYTHONPATH=. python benchmarks/convolutions.py --only step

Variants take turns and the figure is the median, in ms, with the processor time (of all cores)
beside it: where both are the same, one core worked. ESTIMATORKIT_BENCH_TENSORFLOW and
ESTIMATORKIT_BENCH_TORCH name the peers' Pythons (README.md) for the whole step.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Calls = dict[str, Callable[[], object]]

_HERE = Path(__file__).resolve().parent


def table(title: str, calls: Calls, rounds: int = 9) -> None:
    """Prints the calls' times; the ratio is to the first."""
    walls: dict[str, list[float]] = {name: [] for name in calls}
    cores: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
        call()
    for _ in range(rounds):
        for name, call in calls.items():
            wall, core = time.perf_counter(), time.process_time()
            call()
            walls[name].append((time.perf_counter() - wall) * 1e3)
            cores[name].append((time.process_time() - core) * 1e3)
    print(f"\n| {title} | ms | least | processor ms | ratio |\n|---|---|---|---|---|")
    first = statistics.median(next(iter(walls.values())))
    for name, times in walls.items():
        median = statistics.median(times)
        core = statistics.median(cores[name])
        print(f"| {name} | {median:.1f} | {min(times):.1f} | {core:.1f} | {median / first:.2f} |")


def _call(function: Any, *args: Any) -> Callable[[], object]:
    import jax

    compiled = jax.jit(function)
    return lambda: jax.block_until_ready(compiled(*args))  # type: ignore[no-untyped-call]


def _normal(*shape: int) -> Any:
    import jax.numpy as jnp

    return jnp.asarray(np.random.default_rng(0).normal(size=shape).astype(np.float32))


def _ways(x: Any, filters: Any, stride: int) -> dict[str, Calls]:
    """For each part of a convolution with padding SAME the ways to compute it."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    from estimatorkit.ops.nn import convolution_cpu as cpu

    window = cpu.as_window(x, filters, (stride, stride), "SAME", (1, 1))
    (top, bottom), (left, right) = window.pads
    high, wide, _, outputs = filters.shape

    def plain(x: Any, filters: Any) -> Any:
        return cpu._plain(x, filters, window)

    dy = jax.jit(plain)(x, filters)
    rows, places = dy.shape[1:3]

    def volume(x: Any, filters: Any) -> Any:  # XLA gives three dimensions to Eigen
        strides, pads = (1, stride, stride), ((0, 0), *window.pads)
        letters = ("NDHWC", "DHWIO", "NDHWC")
        return lax.conv_general_dilated(
            x[:, None], filters[None], strides, pads, dimension_numbers=letters
        )[:, 0]

    def columns(x: Any) -> Any:
        padded = jnp.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)))
        padded = lax.optimization_barrier(padded)  # type: ignore[no-untyped-call]
        parts = [
            padded[
                :,
                i : i + (rows - 1) * stride + 1 : stride,
                j : j + (places - 1) * stride + 1 : stride,
            ]
            for i in range(high)
            for j in range(wide)
        ]
        whole = jnp.concatenate(parts, -1).reshape(len(x) * rows * places, -1)
        return lax.optimization_barrier(whole)  # type: ignore[no-untyped-call]

    def pieces(x: Any, filters: Any) -> Any:
        return jnp.concatenate(cpu._in_pieces(lambda x: plain(x, filters), cpu._cut(x)))

    def backwards(dy: Any, filters: Any) -> Any:
        like = jax.ShapeDtypeStruct((len(dy), *x.shape[1:]), x.dtype)  # type: ignore[no-untyped-call]
        return jax.linear_transpose(lambda x: plain(x, filters), like)(dy)[0]

    def backwards_in_pieces(dy: Any, filters: Any) -> Any:
        return jnp.concatenate(cpu._in_pieces(lambda dy: backwards(dy, filters), cpu._cut(dy)))

    def in_blocks(x: Any, filters: Any) -> Any:
        cut = x.reshape(16, -1, *x.shape[1:])
        matrix = filters.reshape(-1, outputs)
        return lax.map(lambda each: columns(each) @ matrix, cut).reshape(dy.shape)

    def filter_in_blocks(x: Any, dy: Any) -> Any:
        cut = x.reshape(16, -1, *x.shape[1:]), dy.reshape(16, -1, outputs)
        start = jnp.zeros((math.prod(filters.shape[:3]), outputs))
        return lax.scan(lambda sum, each: (sum + columns(each[0]).T @ each[1], None), start, cut)[0]

    def gradient(function: Any, at: int) -> Callable[[], object]:
        return _call(
            lambda x, filters, dy: jax.vjp(function, x, filters)[1](dy)[at], x, filters, dy
        )

    matrix = filters.reshape(-1, outputs)
    ready = jax.jit(columns)(x)
    return {
        "forward": {
            "XLA": _call(plain, x, filters),
            "pieces": _call(pieces, x, filters),
            "columns in blocks": _call(in_blocks, x, filters),
            "columns of the whole batch": _call(lambda x: columns(x) @ matrix, x),
            "product with ready columns": _call(lambda ready: ready @ matrix, ready),
            "building the columns": _call(columns, x),
            "3 dimensions (Eigen)": _call(volume, x, filters),
        },
        "gradient of the input": {
            "XLA": _call(backwards, dy, filters),
            "pieces": _call(backwards_in_pieces, dy, filters),
        },
        "gradient of the filter": {
            "XLA": gradient(plain, 1),
            "pieces": _call(lambda x, dy: cpu.filter_gradient(dy, x, filters, window), x, dy),
            "columns in blocks": _call(filter_in_blocks, x, dy),
            "columns of the whole batch": _call(
                lambda x, dy: columns(x).T @ dy.reshape(-1, outputs), x, dy
            ),
            "3 dimensions (Eigen)": gradient(volume, 1),
        },
    }


def parts() -> None:
    for part, calls in _ways(_normal(128, 14, 14, 32), _normal(5, 5, 32, 64), 1).items():
        table(f"5x5x32x64 at 14x14, batch 128: {part}", calls)


_SHAPES = (
    ((128, 28, 28, 1), (5, 5, 1, 32), 1),
    ((32, 56, 56, 64), (3, 3, 64, 64), 1),
    ((32, 28, 28, 128), (3, 3, 128, 128), 1),
    ((32, 7, 7, 512), (3, 3, 512, 512), 1),
    ((32, 224, 224, 3), (7, 7, 3, 64), 2),
    ((32, 56, 56, 128), (3, 3, 128, 128), 2),
    ((128, 32, 32, 3), (3, 3, 3, 32), 1),
    ((128, 32, 32, 32), (3, 3, 32, 64), 1),
    ((64, 8, 8, 64), (3, 3, 64, 128), 1),
)


def shapes() -> None:
    for image, filters, stride in _SHAPES:
        for part, calls in _ways(_normal(*image), _normal(*filters), stride).items():
            kept = {name: calls[name] for name in calls if name in ("XLA", "pieces")}
            table(f"{image} {filters} stride {stride}: {part}", kept, 5)


def pools() -> None:
    import jax
    import jax.numpy as jnp
    from jax import lax

    from estimatorkit.ops.nn.pooling import _max_pool

    x, dy = _normal(128, 28, 28, 32), _normal(128, 14, 14, 32)

    def places(x: Any) -> Any:
        return _max_pool(x, (2, 2), (2, 2), "SAME", False)

    def reshaped(x: Any) -> Any:
        return jnp.max(x.reshape(128, 14, 2, 14, 2, 32), (2, 4))

    def windows(x: Any) -> Any:
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME")

    ways = {"places (ours)": places, "reshape and max": reshaped, "reduce_window": windows}
    table("2x2 pool of 28x28x32, batch 128", {name: _call(way, x) for name, way in ways.items()})
    table(
        "its gradient",
        {
            name: _call(lambda x, dy, way=way: jax.vjp(way, x)[1](dy)[0], x, dy)
            for name, way in ways.items()
        },
    )


_PEER = """
import sys, time
sys.path.insert(0, {here!r})
{make}
for _ in range(5): call()
print("ready", flush=True)
for _ in sys.stdin:
    start = time.perf_counter()
    for _ in range(5): call()
    print((time.perf_counter() - start) / 5 * 1e3, flush=True)
"""
_OURS = "import estimatorkit, graph_programs\ncall = graph_programs.cnn_step(estimatorkit)"
_PLAIN = (
    "from estimatorkit.ops.nn import convolution_cpu\n"
    "convolution_cpu.pays = lambda *given: False\n" + _OURS
)
_TENSORFLOW = (
    "import tensorflow.compat.v1 as tf, graph_programs\n"
    "tf.disable_v2_behavior()\ncall = graph_programs.cnn_step(tf)"
)
_TORCH = """
import torch
from torch import nn
model = nn.Sequential(
    nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(3136, 1024), nn.ReLU(), nn.Linear(1024, 10))
adam = torch.optim.Adam(model.parameters(), 1e-4)
x, y = torch.rand(128, 1, 28, 28), torch.randint(0, 10, (128,))
def call():
    adam.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    adam.step()
"""


def step() -> None:
    """The whole step (5x5x32, 5x5x64, 1024, 10; Adam; batch 128), each in a process of its own."""
    programs = [
        ("estimatorkit", sys.executable, _OURS),
        ("estimatorkit, XLA's convolutions", sys.executable, _PLAIN),
        ("TensorFlow", os.environ.get("ESTIMATORKIT_BENCH_TENSORFLOW"), _TENSORFLOW),
        ("PyTorch", os.environ.get("ESTIMATORKIT_BENCH_TORCH"), _TORCH),
    ]
    times: dict[str, list[float]] = {}
    running: dict[str, subprocess.Popen[str]] = {}
    for name, python, make in programs:
        if python is None:
            print(f"{name}: left out, its environment variable is not set")
            continue
        source = _PEER.format(here=str(_HERE), make=make)
        running[name] = subprocess.Popen(  # noqa: S603 - our own text, the caller's Python
            [python, "-c", source], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        times[name] = []
        _answer(running[name])
    for _ in range(9):
        for name, process in running.items():
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
            times[name].append(float(_answer(process)))
    for process in running.values():
        process.communicate()
    print("\n| training step | ms | least | ratio to the first |\n|---|---|---|---|")
    first = statistics.median(times["estimatorkit"])
    for name, each in times.items():
        median = statistics.median(each)
        print(f"| {name} | {median:.1f} | {min(each):.1f} | {median / first:.2f} |")


def _answer(process: subprocess.Popen[str]) -> str:
    """The next line that is ours: a number, or that the program is ready."""
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip() == "ready" or line.strip().replace(".", "").isdigit():
            return line
    raise RuntimeError("a program ended; its error stands above")


_PARTS = {"parts": parts, "shapes": shapes, "pools": pools, "step": step}

if __name__ == "__main__":
    from estimatorkit.runtime.host_tuning import keep_freed_memory

    keep_freed_memory()  # as sessions do
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=_PARTS, action="append")
    for chosen in parser.parse_args().only or _PARTS:
        _PARTS[chosen]()
