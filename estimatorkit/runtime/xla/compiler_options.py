"""XLA's compile options for CPU executables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import jax

from estimatorkit.core.function_graph import operations_within
from estimatorkit.core.registry import lookup
from estimatorkit.core.shapes import as_shape

if TYPE_CHECKING:
    from estimatorkit.runtime.plan import Segment

_EMITTERS = "xla_cpu_use_fusion_emitters"

LARGE_VARIABLE = 1 << 20
"""Variables of more bytes are large (see `options_for`)."""


def options_for(segment: Segment, in_order: bool | None = None) -> dict[str, bool | str] | None:
    """XLA compile options for a segment's executable; None on accelerators.

    Loops run their operations in order, each on all cores. By default, XLA runs those that do not
    depend on each other on different cores, which costs small ones more than it saves: a census
    wide-and-deep step, 250 of them, took 325 us and 430 us of the cores' time, and takes 285 and
    323 (on one core 245); a bidirectional LSTM 10.0 s, and takes 7.8.

    Small kernels come from XLA's LLVM emitters instead of its MLIR ones, whose passes take as long
    as LLVM: over the programs of `benchmarks/cold.py`, compilation takes 0.6 of the time. They run
    as fast, except for updates of large variables, which MLIR fuses better: with new values in
    buffers of their own (`updates_apart`), Adam on 784 x 256 takes 1.1 times as long, on 1152 x 512
    1.3 times. Segments that update no variable may be input pipelines with large images, and stay
    with MLIR.

    Args:
        segment: the segment.
        in_order: whether operations run in order; by default if the segment holds functions, such
            as bodies of loops, and no convolution, whose pieces should run in parallel.
    """
    if jax.default_backend() != "cpu":
        return None
    options: dict[str, bool | str] = {}
    if _has_small_loops(segment) if in_order is None else in_order:
        options["xla_cpu_scheduler_type"] = "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"
    # XLA refuses unknown options: these are jaxlib 0.10's.
    if jax.version.__version_info__[:2] == (0, 10) and _updates_only_small_variables(segment):
        options[_EMITTERS] = False
    return options


def updates_apart(options: Mapping[str, Any] | None) -> bool:
    """Whether new values of variables should get buffers of their own, and not those of the old.

    Kernels of the LLVM emitters test at run time that what they write is not what they read, and
    are not in vectors otherwise: Adam on 784 x 256 in place took 630 us, and takes 195.
    """
    return options is not None and options.get(_EMITTERS) is False


def _has_small_loops(segment: Segment) -> bool:
    within = [each for op in segment.ops for each in operations_within(op)]
    return bool(within) and not any(
        lookup(op.type).batching.unroll_on_cpu for op in (*segment.ops, *within)
    )


def _updates_only_small_variables(segment: Segment) -> bool:
    operation = segment.ops[0].graph.get_operation_by_name
    return bool(segment.writes) and all(_is_small(operation(name).attrs) for name in segment.writes)


def _is_small(variable: Mapping[str, Any]) -> bool:
    size = as_shape(variable["shape"]).num_elements()
    return size is not None and size * variable["dtype"].size <= LARGE_VARIABLE
