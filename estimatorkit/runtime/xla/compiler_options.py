"""XLA's compile options for CPU executables."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import jax

from estimatorkit.core.function_graph import operations_within
from estimatorkit.core.registry import lookup
from estimatorkit.core.shapes import as_shape
from estimatorkit.runtime.xla.processors import processors

if TYPE_CHECKING:
    from estimatorkit.runtime.plan import Segment

_EMITTERS = "xla_cpu_use_fusion_emitters"
_PARTS = "xla_cpu_parallel_codegen_split_count"

_MOST_PARTS = 32
"""XLA's default for the number of parts of a module that it compiles in parallel."""

LARGE_VARIABLE = 1 << 19
"""Variables of more bytes are large (see `options_for`). With variables of 800 KB, a step of an
autoencoder with RMSProp takes 0.75 of the time with MLIR's emitters, one of a perceptron with Adam
0.9, and their compilation 0.1 s more."""

LARGE_IN_PLACE = 1 << 17
"""The same for updates in place, which LLVM's emitters do not vectorize: they make a step of Adam
on 784 x 128 130 us longer, MLIR's the compilation 0.2 s."""

LARGE_BESIDE_LOOPS = 1 << 23
"""The same in segments with loops, which take longer than to write such a variable anew: a
bidirectional LSTM with a table of 4 MB compiles in 0.6 of the time, and its step takes 34 ms with
either emitters."""

LARGE_BESIDE_CONVOLUTIONS = 1 << 24
"""The same in segments with convolutions, which have many small kernels: a CNN's step on MNIST,
with Adam on 3136 x 1024, compiles in 0.8 instead of 1.5 s of all cores, and takes as long; those of
a DCGAN and of a text CNN compile in 0.6 of the time, and take 4 % longer."""

MANY = 12
"""The number of updated variables per distinct shape from which MLIR's emitters compile faster, as
they emit one kernel for equal ones: a transformer's step (21 for each shape) in 0.6 of the time, a
ResNet's (13) in 0.7, but a U-Net's (10) in 1.3 and a translator's (5) in 1.6 times."""


def options_for(
    segment: Segment,
    in_order: bool | None = None,
    few_runs: bool = False,
    in_place: bool = False,
) -> dict[str, bool | int | str] | None:
    """XLA compile options for a segment's executable; None on accelerators.

    Loops run their operations in order, each on all cores. By default, XLA runs those that do not
    depend on each other on different cores, which costs small ones more than it saves: a census
    wide-and-deep step, 250 of them, took 325 us and 430 us of the cores' time, and takes 285 and
    323 (on one core 245); a bidirectional LSTM 10.0 s, and takes 7.8.

    Small kernels come from XLA's LLVM emitters instead of its MLIR ones, whose passes take as long
    as LLVM: over the programs of `benchmarks/cold.py`, compilation takes 0.6 of the time. They run
    as fast, except for updates of large variables, which MLIR fuses better: with new values in
    buffers of their own (`updates_apart`), Adam on 784 x 256 takes 1.1 times as long, on 1152 x 512
    1.3 times. Nor do they vectorize other kernels that XLA gives the buffer of an input. Segments
    that update no variable may be input pipelines with large images, and stay with MLIR unless they
    have loops: a residual network's evaluation, whose sums share buffers with their terms, takes
    1.3 times as long with LLVM's. So do those that update many variables of a few shapes (see
    `MANY`).

    A module is compiled in as many parts as there are cores, instead of 32: each part is a module
    of its own for LLVM, and on two cores compilation takes 0.9 of the time.

    Executables that run a few times are compiled with little optimization: the verification of an
    exported ensemble takes 0.3 s of a core instead of 1.0.

    Args:
        segment: the segment.
        in_order: whether operations run in order; by default if the segment holds functions, such
            as bodies of loops, and no convolution, whose pieces should run in parallel.
        few_runs: whether the executable runs a few times only.
        in_place: whether updated variables keep their buffers, as in a loop over steps.
    """
    if jax.default_backend() != "cpu":
        return None
    options: dict[str, bool | int | str] = {}
    if few_runs:
        options["xla_backend_optimization_level"] = 0
    within = [each for op in segment.ops for each in operations_within(op)]
    convolves = any(lookup(op.type).batching.unroll_on_cpu for op in (*segment.ops, *within))
    has_loops = bool(within) and not convolves
    if has_loops if in_order is None else in_order:
        options["xla_cpu_scheduler_type"] = "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"
    if jax.version.__version_info__[:2] == (0, 10):  # XLA refuses options that it does not know
        options[_PARTS] = min(processors(), _MOST_PARTS)
        if few_runs or _suits_llvm(segment, has_loops, convolves, in_place):
            options[_EMITTERS] = False
    return options


def updates_apart(options: Mapping[str, Any] | None) -> bool:
    """Whether updated variables are written to new buffers instead of donated ones.

    Kernels of the LLVM emitters are vectorized only if their output does not alias an input, which
    they test at run time: Adam on 784 x 256 in place took 630 us, and takes 195.
    """
    return options is not None and options.get(_EMITTERS) is False


def _suits_llvm(segment: Segment, has_loops: bool, convolves: bool, in_place: bool) -> bool:
    """Whether LLVM's emitters suit a segment: it updates variables, or has loops, and the variables
    are neither large nor too many of the same shapes."""
    operation = segment.ops[0].graph.get_operation_by_name
    variables = [operation(name).attrs for name in segment.writes]
    if not variables:
        return has_loops
    kinds = {(str(each["shape"]), each["dtype"]) for each in variables}
    large = LARGE_VARIABLE
    if has_loops:
        large = LARGE_BESIDE_LOOPS
    elif in_place:
        large = LARGE_IN_PLACE
    elif convolves:
        large = LARGE_BESIDE_CONVOLUTIONS
    return len(variables) < MANY * len(kinds) and max(map(_bytes_of, variables)) <= large


def _bytes_of(variable: Mapping[str, Any]) -> float:
    size = as_shape(variable["shape"]).num_elements()
    return math.inf if size is None else size * variable["dtype"].size
