"""Times convolutions and their gradients beside TensorFlow on the CPU: CONVOLUTIONS.md.

    export ESTIMATORKIT_BENCH_TENSORFLOW=DIR/bin/python  # README.md
    PYTHONPATH=. python benchmarks/convolutions.py                 # all rows
    PYTHONPATH=. python benchmarks/convolutions.py "full-width"    # the rows with this text

Each package runs in a process of its own, and they take turns, one row and one part at a time. A
figure is the median of `ROUNDS` rounds of some 50 ms each. One call is a `Session.run` that
computes the part from variables and assigns it to another variable, so that nothing is optimized
away, and fetches one number, so that it has ended.
"""

from __future__ import annotations

import json
import math
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.driver import ESTIMATORKIT, TENSORFLOW, Entrant
from benchmarks.report import machine

ROUNDS = 7
ROUND_SECS = 0.05
PARTS = ("forward", "input gradient", "filter gradient")

# name: operation, input, filters, strides, padding, dilations (TensorFlow's orders)
ROWS = """
1x1 to wide: conv2d 32,56,56,64 1,1,64,256 1 SAME 1
1x1 to narrow: conv2d 128,14,14,256 1,1,256,64 1 SAME 1
1x1 of small images: conv2d 32,7,7,512 1,1,512,512 1 SAME 1
1x1 with stride 2: conv2d 32,56,56,64 1,1,64,128 2 SAME 1
3x3 of MNIST: conv2d 128,28,28,1 3,3,1,32 1 SAME 1
3x3 of MNIST, 2nd: conv2d 128,26,26,32 3,3,32,64 1 VALID 1
3x3 of CIFAR: conv2d 128,32,32,3 3,3,3,32 1 SAME 1
3x3 of CIFAR, 2nd: conv2d 128,32,32,32 3,3,32,64 1 SAME 1
3x3 of CIFAR ResNet: conv2d 128,32,32,16 3,3,16,16 1 SAME 1
3x3 of CIFAR ResNet, 3rd: conv2d 128,8,8,64 3,3,64,64 1 SAME 1
3x3 of VGG, batch 1: conv2d 1,224,224,3 3,3,3,64 1 SAME 1
3x3 of VGG, batch 1, 2nd: conv2d 1,112,112,64 3,3,64,128 1 SAME 1
3x3 of ResNet: conv2d 32,56,56,64 3,3,64,64 1 SAME 1
3x3 of ResNet, 2nd: conv2d 32,28,28,128 3,3,128,128 1 SAME 1
3x3 of ResNet, 3rd: conv2d 32,14,14,256 3,3,256,256 1 SAME 1
3x3 of ResNet, 4th: conv2d 32,7,7,512 3,3,512,512 1 SAME 1
3x3 with stride 2: conv2d 32,56,56,64 3,3,64,128 2 SAME 1
3x3 with stride 2, few channels: conv2d 64,64,64,3 3,3,3,32 2 SAME 1
3x3 of batch 256: conv2d 256,14,14,32 3,3,32,32 1 SAME 1
3x3, little: conv2d 16,8,8,8 3,3,8,16 1 SAME 1
5x5 of MNIST: conv2d 128,28,28,1 5,5,1,32 1 SAME 1
5x5 of MNIST, 2nd: conv2d 128,14,14,32 5,5,32,64 1 SAME 1
5x5 of MNIST, batch 50: conv2d 50,14,14,32 5,5,32,64 1 SAME 1
5x5 of LeNet: conv2d 128,28,28,6 5,5,6,16 1 SAME 1
5x5 of the CIFAR tutorial: conv2d 128,24,24,3 5,5,3,64 1 SAME 1
5x5 of the CIFAR tutorial, 2nd: conv2d 128,12,12,64 5,5,64,64 1 SAME 1
5x5 with stride 2 of DCGAN: conv2d 64,28,28,1 5,5,1,64 2 SAME 1
5x5 with stride 2 of DCGAN, 2nd: conv2d 64,14,14,64 5,5,64,128 2 SAME 1
7x7 with stride 2: conv2d 32,224,224,3 7,7,3,64 2 SAME 1
11x11 with stride 4: conv2d 32,227,227,3 11,11,3,96 4 VALID 1
4x4 with stride 2 of pix2pix: conv2d 1,256,256,3 4,4,3,64 2 SAME 1
4x4 with stride 2: conv2d 64,32,32,64 4,4,64,128 2 SAME 1
8x8 with stride 4 of Atari: conv2d 32,84,84,4 8,8,4,32 4 VALID 1
4x4 with stride 2 of Atari: conv2d 32,20,20,32 4,4,32,64 2 VALID 1
3x3 of Atari: conv2d 32,9,9,64 3,3,64,64 1 VALID 1
full-width of 128: conv2d 64,56,128,1 3,128,1,32 1 VALID 1
full-width of 128, 5: conv2d 64,56,128,1 5,128,1,128 1 VALID 1
full-width of 300: conv2d 50,60,300,1 4,300,1,100 1 VALID 1
full-width and -height: conv2d 64,7,7,64 7,7,64,512 1 VALID 1
one column: conv2d 64,128,1,64 5,1,64,64 1 SAME 1
one row of signals: conv2d 64,1,256,9 1,9,9,64 1 SAME 1
dilated 2: conv2d 8,64,64,32 3,3,32,32 1 SAME 2
dilated 4: conv2d 4,64,64,64 3,3,64,64 1 SAME 4
1-D of text: conv1d 64,128,64 3,64,128 1 SAME 1
1-D of text, wide: conv1d 64,400,50 3,50,250 1 VALID 1
1-D of signals: conv1d 32,1000,1 9,1,16 1 SAME 1
1-D of signals, 2nd: conv1d 32,500,64 5,64,64 1 SAME 1
1-D with stride 2: conv1d 32,1000,16 8,16,32 2 SAME 1
1-D of WaveNet: conv1d 1,4000,32 2,32,32 1 VALID 8
depthwise: depthwise 32,56,56,32 3,3,32,1 1 SAME 1
depthwise, many channels: depthwise 32,14,14,512 3,3,512,1 1 SAME 1
depthwise with stride 2: depthwise 32,112,112,32 3,3,32,1 2 SAME 1
depthwise, 4 for each channel: depthwise 32,28,28,16 3,3,16,4 1 SAME 1
transposed 5x5: transpose 64,7,7,128 5,5,64,128 2 SAME 1
transposed 5x5, 2nd: transpose 64,14,14,64 5,5,1,64 2 SAME 1
transposed 5x5, many channels: transpose 64,4,4,512 5,5,256,512 2 SAME 1
transposed 4x4 of pix2pix: transpose 1,128,128,64 4,4,3,64 2 SAME 1
3-D of one channel: conv3d 2,16,32,32,1 3,3,3,1,16 1 SAME 1
3-D: conv3d 4,8,28,28,16 3,3,3,16,32 1 SAME 1
""".strip().splitlines()


def _numbers(text: str) -> list[int]:
    return [int(each) for each in text.split(",")]


def _convolution(v1: Any, words: list[str], x: Any, filters: Any) -> Any:
    """The row's convolution in a package with TensorFlow 1's names."""
    kind, stride, padding, dilation = words[0], int(words[3]), words[4], int(words[5])
    if kind == "conv1d":
        return v1.nn.conv1d(x, filters, stride, padding, dilations=dilation)
    spaces = x.shape.rank - 2
    strides, dilations = [1, *[stride] * spaces, 1], [1, *[dilation] * spaces, 1]
    if kind == "transpose":
        rows, columns = x.shape[1] * stride, x.shape[2] * stride
        shape = [x.shape[0], rows, columns, filters.shape[2]]
        return v1.nn.conv2d_transpose(x, filters, shape, strides, padding)
    if kind == "depthwise":
        return v1.nn.depthwise_conv2d(x, filters, strides, padding)
    function = v1.nn.conv3d if kind == "conv3d" else v1.nn.conv2d
    return function(x, filters, strides, padding, dilations=dilations)


def _call(v1: Any, row: str, part: str) -> Callable[[], object]:
    """A call that computes a part of a row."""
    words = row.partition(": ")[2].split()
    graph, random = v1.Graph(), np.random.default_rng(0)
    with graph.as_default():

        def variable(shape: list[int]) -> Any:
            return v1.Variable(random.normal(size=shape).astype(np.float32), use_resource=True)

        x, filters = variable(_numbers(words[1])), variable(_numbers(words[2]))
        # Read once, as in a step of a training.
        x, filters = v1.identity(x), v1.identity(filters)
        result = _convolution(v1, words, x, filters)
        if part != "forward":
            dy = variable(result.shape.as_list())
            of = x if part == "input gradient" else filters
            (result,) = v1.gradients(result, of, v1.identity(dy))
        kept = variable(result.shape.as_list())
        with v1.control_dependencies([v1.assign(kept, result)]):
            step = v1.reshape(result, [-1])[0]
        init = v1.global_variables_initializer()
    session = v1.Session(graph=graph)
    session.run(init)
    return lambda: session.run(step)


def participate(package: str) -> None:
    """Answers lines of a row and a part with lines of milliseconds; 'again' repeats the last."""
    if package == "tensorflow":
        import tensorflow.compat.v1 as v1

        v1.disable_v2_behavior()
    else:
        import estimatorkit.compat.v1 as v1  # type: ignore[no-redef]
    call: Callable[[], object] = int
    count = 1
    for line in sys.stdin:
        if line.strip() != "again":
            call = _call(v1, *json.loads(line))
            call()
            call()
            start = time.perf_counter()
            call()
            count = max(1, math.ceil(ROUND_SECS / (time.perf_counter() - start)))
        wall, core = time.perf_counter(), time.process_time()
        for _ in range(count):
            call()
        wall, core = time.perf_counter() - wall, time.process_time() - core
        print(json.dumps([wall / count * 1e3, core / count * 1e3]), flush=True)


class _Participant:
    def __init__(self, entrant: Entrant) -> None:
        python = entrant.python()
        if python is None:
            raise SystemExit(entrant.how_to_get())
        self._process = subprocess.Popen(  # noqa: S603 - an interpreter that the user named
            [python, "-m", "benchmarks.convolutions", "--participant", entrant.name],
            cwd=entrant.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=entrant.whole_environment(),
        )

    def time(self, words: object) -> list[float]:
        """Milliseconds a call, by the clock and of all cores."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write((words if isinstance(words, str) else json.dumps(words)) + "\n")
        self._process.stdin.flush()
        answer: list[float] = json.loads(self._process.stdout.readline())
        return answer

    def end(self) -> None:
        """Ends the process."""
        self._process.communicate()


def main(wanted: str) -> None:
    """Prints the table."""
    # TensorFlow turns oneDNN on by itself on some processors only.
    tensorflow = replace(TENSORFLOW, environment={"TF_ENABLE_ONEDNN_OPTS": "1"})
    participants = [_Participant(ESTIMATORKIT), _Participant(tensorflow)]
    print(machine())
    print("Milliseconds (processor milliseconds), ours / TensorFlow's = ratio\n")
    print(f"| row | {' | '.join(PARTS)} |\n|---|---|---|---|")
    ratios = []
    for row in ROWS:
        if wanted not in row:
            continue
        cells = []
        for part in PARTS:
            times: list[list[list[float]]] = [[] for _ in participants]
            for number in range(1 + ROUNDS):
                for each, into in zip(participants, times, strict=True):
                    timed = each.time("again" if number else [row, part])
                    if number:
                        into.append(timed)
            (ours, core), (theirs, their_core) = (
                [statistics.median(each) for each in zip(*rounds, strict=True)] for rounds in times
            )
            ratios.append(ours / theirs)
            bold = "**" if ours / theirs > 1.5 else ""
            cells.append(
                f"{ours:.2f} ({core:.1f}) / {theirs:.2f} ({their_core:.1f}) = "
                f"{bold}{ours / theirs:.2f}{bold}"
            )
        print(f"| {row} | {' | '.join(cells)} |", flush=True)
    for each in participants:
        each.end()
    worst = sum(ratio > 1.5 for ratio in ratios)
    print(f"\ngeometric mean {statistics.geometric_mean(ratios):.2f}, above 1.5: {worst}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--participant"]:
        participate(sys.argv[2])
    else:
        main(" ".join(sys.argv[1:]))
