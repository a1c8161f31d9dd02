"""XLA's options for CPU executables."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # `import estimatorkit`, which sets XLA's flags, does not import JAX
    from estimatorkit.runtime.plan import Segment

LARGE_VARIABLE = 1 << 19
"""Bytes from which a variable is large to `options_for`."""

_EXTRA = "--xla_backend_extra_options"
_NO_UNROLLING = "xla_cpu_disable_loop_unrolling"


def compile_without_unrolling() -> None:
    """Turns LLVM's loop unrolling off, unless `XLA_FLAGS` has backend options already.

    It takes a fifth of the time of a compilation, and steps are as fast without: XLA's loops are
    vectorized, and the library of matrix products comes compiled. XLA reads the flags once, when
    JAX is first used; the package therefore calls this as it is imported.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    if _EXTRA not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {_EXTRA}={_NO_UNROLLING}".strip()


def options_for(segment: Segment, in_order: bool | None = None) -> dict[str, bool | str] | None:
    """The options for a segment's executable; None if it is not for a CPU.

    Loops run their operations in order, each on all cores. By default, XLA runs those that do not
    depend on each other on different cores, which costs small ones more than it saves: a census
    wide-and-deep step, 250 of them, took 325 us and 430 us of the cores' time, and takes 285 and
    323 (on one core 245); a bidirectional LSTM 10.0 s, and takes 7.8.

    Small kernels come from XLA's LLVM emitters instead of its MLIR ones, whose passes take as long
    as LLVM: over the programs of `benchmarks/cold.py`, compilation takes 0.6 of the time. They run
    as fast, except for updates of large variables, which MLIR fuses better: Adam on layers of
    784 x 256 takes 1.4 times as long. Segments that update no variable may be input pipelines with
    large images, and stay with MLIR.

    Args:
        segment: the segment.
        in_order: whether operations run in order; by default if the segment holds functions, such
            as bodies of loops, and no convolution, whose pieces are to run side by side.
    """
    import jax

    if jax.default_backend() != "cpu":
        return None
    options: dict[str, bool | str] = {}
    if _has_small_loops(segment) if in_order is None else in_order:
        options["xla_cpu_scheduler_type"] = "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"
    # XLA refuses to compile with options that it does not know: these are jaxlib 0.10's.
    if jax.version.__version_info__[:2] == (0, 10) and _updates_only_small_variables(segment):
        options["xla_cpu_use_fusion_emitters"] = False
    return options


def _has_small_loops(segment: Segment) -> bool:
    from estimatorkit.core.function_graph import operations_within
    from estimatorkit.core.registry import lookup

    within = [each for op in segment.ops for each in operations_within(op)]
    return bool(within) and not any(lookup(op.type).unroll_on_cpu for op in (*segment.ops, *within))


def _updates_only_small_variables(segment: Segment) -> bool:
    from estimatorkit.core.shapes import as_shape

    updated = [segment.ops[0].graph.get_operation_by_name(name).attrs for name in segment.writes]
    sizes = [as_shape(each["shape"]).num_elements() for each in updated]
    return bool(sizes) and all(
        size is not None and size * each["dtype"].size < LARGE_VARIABLE
        for size, each in zip(sizes, updated, strict=True)
    )
